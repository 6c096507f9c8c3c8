"""Write into the docs what the commands they show really print, and what scripts generate.

Every console block of a page is run: what follows a line that starts with `$ ` is replaced by what that command
prints. Two comments do more:

    <!-- quietly: holdfast demo --db sample.db -->      runs and shows nothing
    <!-- table: python scripts/reference.py verbs -->   is followed by the Markdown that the script prints,
    <!-- end -->                                        up to this line

`python scripts/docs.py` rewrites every page; `--check` fails when one is stale. The commands of one page run in order
in one empty folder, on a terminal of fixed width without colours.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BLOCK = re.compile(
    r"<!-- quietly: (?P<quiet>.+?) -->"
    r"|<!-- table: (?P<table>.+?) -->\n.*?<!-- end -->"
    r"|^```console\n(?P<console>.*?)^```$",
    re.DOTALL | re.MULTILINE,
)
# A page shows the same on a busy machine: no strategy is cut short.
PATIENT = {"HOLDFAST_RETRIEVAL__TIMEOUT_MS": "600000", "HOLDFAST_RETRIEVAL__ESCALATION_TIMEOUT_MS": "600000"}
# Wide enough for tables, narrow enough for a page.
COLUMNS = "100"


def pages() -> list[Path]:
    """Return every page; one that measures the others comes last."""
    found = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return sorted(found, key=lambda page: "scripts/architecture.py measures" in page.read_text(encoding="utf-8"))


def rewritten(page: Path) -> str:
    """Return the page with every block run again."""
    text = page.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory(prefix="holdfast-docs-") as folder:
        return BLOCK.sub(lambda match: _block(match, Path(folder)), text)


def _block(match: re.Match[str], folder: Path) -> str:
    if match["quiet"]:
        _run(match["quiet"], folder)
        return match[0]
    if match["table"]:
        return f"<!-- table: {match['table']} -->\n{_run(match['table'], folder)}\n<!-- end -->"
    commands = [line.removeprefix("$ ") for line in match["console"].splitlines() if line.startswith("$ ")]
    shown = (f"$ {command}\n{_run(command, folder)}".rstrip() for command in commands)
    return "```console\n" + "\n".join(shown) + "\n```"


def _run(command: str, folder: Path) -> str:
    words = shlex.split(command)
    program = str(Path(sys.executable).with_name("holdfast")) if words[0] == "holdfast" else sys.executable
    arguments = words[1:] if words[0] == "holdfast" else [str(ROOT / words[1]), *words[2:]]
    keep = {name: value for name, value in os.environ.items() if not name.startswith(("HOLDFAST_", "FORCE_COLOR"))}
    alone = {"XDG_CONFIG_HOME": str(folder)}  # no settings file of whoever runs this
    environment = keep | {"COLUMNS": COLUMNS, "NO_COLOR": "1", "TERM": "dumb", "PYTHONIOENCODING": "utf-8"}
    environment |= PATIENT | alone
    done = subprocess.run(
        [program, *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        encoding="utf-8",
    )
    output = done.stdout + done.stderr
    if done.returncode and not done.stderr.startswith("error:"):
        raise SystemExit(f"{command} failed with {done.returncode}:\n{output}")
    return "\n".join(line.rstrip() for line in output.splitlines()).strip("\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--check", action="store_true", help="change nothing; fail when a page is stale")
    parser.add_argument("pages", nargs="*", type=Path, help="only these pages")
    options = parser.parse_args()
    stale = []
    for page in [path.resolve() for path in options.pages] or pages():
        new = rewritten(page)
        if new != page.read_text(encoding="utf-8"):
            stale.append(str(page.relative_to(ROOT)))
            if not options.check:
                page.write_text(new, encoding="utf-8")
    if stale:
        print(("stale: " if options.check else "rewritten: ") + ", ".join(stale))
    if stale and options.check:
        raise SystemExit("run `make docs` and commit what changed")


if __name__ == "__main__":
    main()
