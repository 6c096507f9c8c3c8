"""The benchmark runs from end to end and says what it promises. No test here looks at how long anything took."""

import json
import math
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from builders import program

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
BENCHMARKS = ROOT / "benchmarks"
UNITS = 60
PARTS = {f"{name} {UNITS}" for name in ("remember", "search", "assemble", "open", "forget", "hypervectors")}
QUICK = ("--quick", "--sizes", UNITS)


def python(*arguments):
    command = [sys.executable, *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def result_file(tmp_path_factory):
    file = tmp_path_factory.mktemp("bench") / "speed.json"
    done = python(BENCHMARKS / "run.py", *QUICK, "--out", file, "--dir", file.parent)
    assert done.returncode == 0, done.stderr
    return file


@pytest.fixture(scope="module")
def result(result_file):
    return json.loads(result_file.read_text(encoding="utf-8"))


def values(result, part, label):
    [row] = [row for row in result["parts"][part]["rows"] if row["label"] == label]
    return row["values"]


def test_every_part_says_what_was_measured_and_how_to_repeat_it(result, result_file):
    assert result["parts"].keys() == PARTS | {"embed", "vectors"}
    for name, part in result["parts"].items():
        assert part.keys() == {"commit", "code", "date", "command", "load", "rows"}
        assert part["command"].startswith(f"python benchmarks/run.py --only {name.split()[0]} --quick")
    # The file is committed: no path of this machine belongs in it.
    assert str(result_file.parent) not in json.dumps(result)


def test_every_figure_is_real(result):
    rows = [row for part in result["parts"].values() for row in part["rows"]]
    # So few units may fit into memory that was there before, and are not worth a snapshot.
    figures = [value for row in rows for name, value in row["values"].items() if "bytes" not in name]
    assert all(value >= 0 and math.isfinite(value) for value in figures)
    assert all(row["values"]["p50 ms"] <= row["values"]["p95 ms"] for row in rows if "p95 ms" in row["values"])


def test_holdfast_stands_in_every_part(result):
    assert values(result, f"remember {UNITS}", "Holdfast `remember`")["units/s ÷ SQLite"] > 0
    assert values(result, f"search {UNITS}", "Holdfast `search`, hybrid")["p50 ms"] > 0
    assert values(result, f"open {UNITS}", "open and search, with one half behind")["s"] > 0
    assert values(result, f"forget {UNITS}", "`forget` of one unit")["÷ rewrite"] > 0
    assert {row["label"] for row in result["parts"]["embed"]["rows"]} == {"minilm", "potion"}
    # Made-up topics are far apart: whoever loses much of them has a fault.
    assert all(row["values"]["recall@10"] > 0.95 for row in result["parts"]["vectors"]["rows"])


def test_a_part_is_measured_once_until_the_code_changes(result_file, tmp_path):
    copy, before = tmp_path / "speed.json", json.loads(result_file.read_text(encoding="utf-8"))
    before["parts"][f"forget {UNITS}"]["code"] = "older"
    before["parts"][f"search {UNITS}"]["rows"] = ["as it was"]
    copy.write_text(json.dumps(before), encoding="utf-8")
    parts = ("--only", "forget", "--only", "search")
    done = python(BENCHMARKS / "run.py", *QUICK, *parts, "--out", copy, "--dir", tmp_path)
    assert done.returncode == 0, done.stderr
    again = json.loads(copy.read_text(encoding="utf-8"))["parts"]
    assert again[f"forget {UNITS}"]["code"] == again["embed"]["code"]
    assert again[f"search {UNITS}"]["rows"] == ["as it was"]


def test_the_page_is_complete_and_reproducible(result, result_file, tmp_path):
    pytest.importorskip("matplotlib")
    for name in ("one", "two"):
        done = python(BENCHMARKS / "report.py", result_file, "--out-dir", tmp_path / name)
        assert done.returncode == 0, done.stderr
    page = (tmp_path / "one/benchmarks.md").read_text(encoding="utf-8")
    assert page == (tmp_path / "two/benchmarks.md").read_text(encoding="utf-8")
    for part in result["parts"].values():
        assert f"`{part['commit']}`" in page
        assert f"`{part['command']}`" in page
        assert all(f"| {row['label']} |" in page for row in part["rows"])
    for plot in ("bench-search.svg", "bench-open.svg"):
        assert f"img/{plot}" in page
        drawing = (tmp_path / "one/img" / plot).read_bytes()
        assert ET.fromstring(drawing).tag.endswith("svg")
        assert drawing == (tmp_path / "two/img" / plot).read_bytes()


@pytest.mark.parametrize(("script", "package"), [("run.py", "bm25s"), ("report.py", "matplotlib")])
def test_a_missing_package_is_one_line_with_the_remedy(script, package):
    hide = (
        "import importlib.util, runpy, sys; there = importlib.util.find_spec;"
        f"importlib.util.find_spec = lambda name, *rest: None if name == {package!r} else there(name, *rest)"
        f" if name not in ('chromadb', 'lancedb') else there('json'); sys.path.insert(0, {str(BENCHMARKS)!r});"
        f"sys.argv = [{script!r}]; runpy.run_path({str(BENCHMARKS / script)!r}, run_name='__main__')"
    )
    done = python("-c", hide)
    assert done.returncode == 1
    assert done.stderr.splitlines() == [f"{package} is not installed; run: pip install --group bench"]


# ------------------------------------------------------------------------------------------------- the check


@pytest.fixture(scope="module")
def check():
    sys.path.insert(0, str(BENCHMARKS))
    try:
        yield program("benchmarks/check.py")
    finally:
        sys.path.remove(str(BENCHMARKS))


def test_a_ratio_that_doubles_fails_and_says_by_how_much(check):
    kept = {"a": 2.0, "b": 1.0}
    assert check.find_failures({"a": 3.9, "b": 0.1, "new": 9.0}, kept) == []
    [failure] = check.find_failures({"a": 4.1, "b": 1.0}, kept)
    assert failure == "a: 4.10, and 2.00 before; at 4.00 it fails"


def test_a_machine_that_stumbles_is_asked_again(check, monkeypatch):
    found = iter([{"a": 9.0, "b": 1.0}, {"a": 2.0, "b": 3.0}, {"a": 1.0, "b": 1.0}])
    monkeypatch.setattr(check, "measure", lambda folder: next(found))
    assert check.measure_best(3, lambda best: best["a"] < 5) == {"a": 2.0, "b": 1.0}


def test_every_ratio_of_the_baseline_is_measured(check, monkeypatch, tmp_path):
    for name, value in {"UNITS": 40, "QUESTIONS": 3, "ROUNDS": 1}.items():
        monkeypatch.setattr(check, name, value)
    found = check.measure(tmp_path)
    assert found.keys() == json.loads(check.BASELINE.read_text(encoding="utf-8"))["ratios"].keys()
    assert all(ratio > 0 for ratio in found.values())
