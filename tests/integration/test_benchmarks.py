"""The benchmark runs from end to end and says what it promises. No test here looks at how long anything took."""

import importlib.util
import json
import math
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

ROOT = Path(__file__).parents[2]
BENCHMARKS = ROOT / "benchmarks"
UNITS = 300
OURS = {"hybrid", "fast", "lexical_retrieve", "lexical_propose"}
PEERS = {"bm25s", "bm25s_select", "fts5"}
PLOTS = ("bench-ingest.svg", "bench-search.svg")

pytest.importorskip("bm25s")


def python(*arguments):
    command = [sys.executable, *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def numbers(value):
    """Yield every number of a JSON value, flags left out."""
    if isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from numbers(part)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield value


@pytest.fixture(scope="module")
def result_file(tmp_path_factory):
    file = tmp_path_factory.mktemp("bench") / "result.json"
    done = python(BENCHMARKS / "run.py", "--quick", "--sizes", UNITS, "--out", file, "--dir", file.parent)
    assert done.returncode == 0, done.stderr
    assert "search, profile hybrid" in done.stdout
    return file


@pytest.fixture(scope="module")
def result(result_file):
    return json.loads(result_file.read_text(encoding="utf-8"))


def test_a_result_says_what_was_measured_and_where(result, result_file):
    assert {"commit", "dirty", "date", "command", "versions", "machine", "parameters", "results"} == result.keys()
    assert isinstance(result["dirty"], bool)
    assert {"python", "numpy", "sqlite", "bm25s", "holdfast"} == result["versions"].keys()
    assert {"cpu", "cores", "memory_bytes", "system", "load_before", "load_after"} == result["machine"].keys()
    assert result["parameters"]["sizes"] == [UNITS]
    assert result["command"] == f"python benchmarks/run.py --quick --sizes {UNITS}"
    # The file may be committed: no path of this machine belongs in it.
    assert str(result_file.parent) not in json.dumps(result)


def test_a_result_has_every_number_and_all_are_real(result):
    (found,) = result["results"]
    assert {"units", "ingest", "open", "size", "search", "findable"} == found.keys()
    assert found["search"]["times"].keys() == OURS | PEERS
    assert found["search"]["ratios"].keys() == {f"{name}/{peer}" for name in OURS for peer in PEERS}
    assert found["findable"].keys() == {"bare_commit", "remember", "remember_and_search"}
    assert found["open"].keys() == {"open", "first_search", "open_and_first_search"}
    assert found["ingest"]["stages_us_per_unit"].keys() == {"analysis", "store", "rest"}
    assert found["size"].keys() == {f"{name}_bytes_per_unit" for name in ("resident", "disk", "text")}
    # So few units may fit into memory that was there before, and no question should run out of time.
    zero_allowed = found["size"].pop("resident_bytes_per_unit"), found["search"].pop("out_of_time")
    assert all(number >= 0 for number in zero_allowed)
    assert all(number > 0 and math.isfinite(number) for number in numbers(found))


def test_times_are_ordered(result):
    (found,) = result["results"]
    groups = (found["search"]["times"], found["findable"], found["open"], {"call": found["ingest"]["call"]})
    for times in (times for group in groups for times in group.values()):
        assert times["min_ms"] <= times["p50_ms"] <= times["p95_ms"]


def test_holdfast_and_bm25s_did_the_same_work(result):
    # Ratios of times mean nothing otherwise. Measured 1.0; room for a tie that 32 bits cut differently.
    assert result["results"][0]["search"]["bm25s_agreement"] > 0.99


def test_the_report_is_complete_and_reproducible(result, result_file, tmp_path):
    pytest.importorskip("matplotlib")
    for name in ("one", "two"):
        done = python(BENCHMARKS / "report.py", result_file, "--out-dir", tmp_path / name)
        assert done.returncode == 0, done.stderr
    page = (tmp_path / "one/benchmarks.md").read_text(encoding="utf-8")
    assert result["commit"] in page
    assert result["command"] in page
    for plot in PLOTS:
        assert f"img/{plot}" in page
        drawing = (tmp_path / "one/img" / plot).read_bytes()
        assert ET.fromstring(drawing).tag.endswith("svg")
        assert drawing == (tmp_path / "two/img" / plot).read_bytes()
    assert page == (tmp_path / "two/benchmarks.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(("script", "package"), [("run.py", "bm25s"), ("report.py", "matplotlib")])
def test_a_missing_package_is_one_line_with_the_remedy(script, package):
    hide = (
        f"import runpy, sys; sys.modules[{package!r}] = None; sys.path.insert(0, {str(BENCHMARKS)!r});"
        f"sys.argv = [{script!r}]; runpy.run_path({str(BENCHMARKS / script)!r}, run_name='__main__')"
    )
    done = python("-c", hide)
    assert done.returncode == 1
    assert done.stderr.splitlines() == [f"{package} is not installed; run: pip install --group bench"]


def test_the_report_takes_the_newest_result_by_its_own_date(tmp_path):
    spec = importlib.util.spec_from_file_location("report", BENCHMARKS / "report.py")
    report = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(report)
    for name, date in (("b", "2026-01-02T00:00:00+00:00"), ("a", "2026-03-01T00:00:00+00:00")):
        content = {"commit": name, "date": date, "results": []}
        (tmp_path / f"{name}.json").write_text(json.dumps(content), encoding="utf-8")
    (tmp_path / "other.json").write_text('{"date": "2027-01-01"}', encoding="utf-8")
    assert report.newest(tmp_path).name == "a.json"
    (tmp_path / "empty").mkdir()
    with pytest.raises(SystemExit, match="there is no result yet"):
        report.newest(tmp_path / "empty")
