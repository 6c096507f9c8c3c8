"""Run the Python blocks of a page, in order, in an empty folder; compare or write down what they print.

A block may be followed by a text block: that is what it prints.

    python tests/docs/blocks.py            write down what every block prints
    python tests/docs/blocks.py run PAGE   run one page here and report as JSON (what `outputs` calls)
"""

import contextlib
import io
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from holdfast.testing import EmbedderContract, StoreContract, StrategyContract

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(
    r"^```python\n(?P<code>.*?)^```\n(?P<shown>\n```text\n(?P<text>.*?)^```\n)?", re.DOTALL | re.MULTILINE
)
# A page shows the same on a busy machine: no strategy is cut short.
PATIENT = {"HOLDFAST_RETRIEVAL__TIMEOUT_MS": "600000", "HOLDFAST_RETRIEVAL__ESCALATION_TIMEOUT_MS": "600000"}
COLUMNS = "100"  # as wide as the console blocks


def pages():
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def pages_with_python():
    return [page for page in pages() if BLOCK.search(page.read_text(encoding="utf-8"))]


def shown(page):
    """Return what the page says each block prints."""
    return [match["text"] or "" for match in BLOCK.finditer(page.read_text(encoding="utf-8"))]


def outputs(page):
    """Return what each block really prints, and how many tests of contract suites the page brought along."""
    keep = {name: value for name, value in os.environ.items() if not name.startswith(("HOLDFAST_", "FORCE_COLOR"))}
    path = os.pathsep.join([str(Path(sys.executable).parent), keep.get("PATH", "")])
    environment = keep | {"PATH": path, "COLUMNS": COLUMNS, "NO_COLOR": "1", "PYTHONIOENCODING": "utf-8"} | PATIENT
    with tempfile.TemporaryDirectory(prefix="holdfast-docs-") as folder:
        done = subprocess.run(
            [sys.executable, __file__, "run", str(page)],
            cwd=folder,
            env=environment | {"XDG_CONFIG_HOME": folder},  # no settings file of whoever runs this
            capture_output=True,
            encoding="utf-8",
            check=False,
        )
    if done.returncode:
        raise AssertionError(f"a Python block of {page.relative_to(ROOT)} failed:\n{done.stderr}")
    report = json.loads(done.stdout)
    return report["outputs"], report["contract_tests"]


def run(page):
    """Run the blocks of one page in this process and folder, then the contract suites they define."""
    text = page.read_text(encoding="utf-8")
    names = {"__name__": "docs"}
    printed = []
    for match in BLOCK.finditer(text):
        line = text[: match.start("code")].count("\n")
        # The blank lines let a traceback name the line of the page.
        program = compile("\n" * line + match["code"], page.name, "exec")
        with contextlib.redirect_stdout(io.StringIO()) as out:
            exec(program, names)
        printed.append(out.getvalue())
    return {"outputs": printed, "contract_tests": sum(map(run_suite, list(names.values())))}


def run_suite(value):
    """Run every test of a contract suite in a folder of its own; return how many there were."""
    base = (EmbedderContract, StoreContract, StrategyContract)
    if not isinstance(value, type) or not issubclass(value, base) or value in base:
        return 0
    tests = [name for name in dir(value) if name.startswith("test_")]
    for name in tests:
        with tempfile.TemporaryDirectory() as folder, contextlib.suppress(unittest.SkipTest):
            getattr(value(), name)(*([] if issubclass(value, EmbedderContract) else [Path(folder)]))
    return len(tests)


def rewritten(page):
    """Return the page with what its blocks print now."""
    printed = iter(outputs(page)[0])

    def block(match):
        text = next(printed)
        return f"```python\n{match['code']}```\n" + (f"\n```text\n{text}```\n" if match["shown"] else "")

    return BLOCK.sub(block, page.read_text(encoding="utf-8"))


if __name__ == "__main__":
    if sys.argv[1:2] == ["run"]:
        json.dump(run(Path(sys.argv[2])), sys.stdout)
    else:
        for each in pages_with_python():
            each.write_text(rewritten(each), encoding="utf-8")
