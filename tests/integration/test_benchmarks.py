"""The benchmark runs from end to end and says what it promises. No test here looks at how long anything took."""

import importlib.util
import json
import math
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from builders import program

ROOT = Path(__file__).parents[2]
BENCHMARKS = ROOT / "benchmarks"
UNITS = 300
VECTORS = 2000
OURS = {"hybrid", "fast", "lexical_retrieve", "lexical_propose"}
MEANING = {"dense_retrieve", "dense_propose"}
PEERS = {"bm25s", "bm25s_select", "fts5"}
# A look does without faiss.
VECTOR_SYSTEMS = {"funnel", "faiss"} if importlib.util.find_spec("faiss") else {"funnel"}
PLOTS = ("bench-ingest.svg", "bench-open.svg", "bench-search.svg", "bench-vectors.svg")

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
    sizes = ("--sizes", UNITS, "--vectors", VECTORS)
    done = python(BENCHMARKS / "run.py", "--quick", *sizes, "--out", file, "--dir", file.parent)
    assert done.returncode == 0, done.stderr
    assert "search, profile hybrid" in done.stdout
    return file


@pytest.fixture(scope="module")
def result(result_file):
    return json.loads(result_file.read_text(encoding="utf-8"))


def test_a_result_says_what_was_measured_and_where(result, result_file):
    about = {"commit", "dirty", "date", "command", "versions", "machine", "parameters"}
    assert about | {"results", "embedders", "vectors"} == result.keys()
    assert isinstance(result["dirty"], bool)
    peers = {"bm25s", "faiss"}
    assert {"python", "numpy", "sqlite", "onnxruntime", "holdfast"} | peers == result["versions"].keys()
    assert {"cpu", "cores", "memory_bytes", "system", "load_before", "load_after"} == result["machine"].keys()
    assert result["parameters"]["sizes"] == [UNITS]
    assert result["command"] == f"python benchmarks/run.py --quick --sizes {UNITS} --vectors {VECTORS}"
    # The file may be committed: no path of this machine belongs in it.
    assert str(result_file.parent) not in json.dumps(result)


def test_a_result_has_every_number_and_all_are_real(result):
    (found,) = result["results"]
    parts = {"units", "ingest", "open", "size", "search", "findable", "rare_word_ms", "hyper"}
    assert parts == found.keys()
    assert found["search"]["times"].keys() == OURS | MEANING | PEERS
    assert found["search"]["ratios"].keys() == {f"{name}/{peer}" for name in OURS for peer in PEERS}
    assert found["findable"].keys() == {"bare_commit", "remember", "remember_and_search"}
    assert found["open"].keys() == {"snapshot", "built"}
    for opened in found["open"].values():
        assert opened.keys() == {"open", "first_search", "open_and_first_search", "close"}
    assert found["ingest"]["stages_us_per_unit"].keys() == {"analysis", "store", "vectors", "rest"}
    room = ("resident", "restored", "disk", "snapshot", "text")
    assert found["size"].keys() == {f"{name}_bytes_per_unit" for name in room}
    # So few units may fit into memory that was there before, are not worth a snapshot, and are found in time.
    in_memory = [found["size"].pop(f"{name}_bytes_per_unit") for name in ("resident", "restored", "snapshot")]
    zero_allowed = *in_memory, found["search"].pop("out_of_time"), found["search"].pop("refused")
    assert all(number >= 0 for number in zero_allowed)
    assert all(number > 0 and math.isfinite(number) for number in numbers(found))


def test_both_shipped_models_are_measured_beside_remember(result):
    assert result["embedders"].keys() == {"minilm", "potion"}
    assert all(number > 0 and math.isfinite(number) for number in numbers(result["embedders"]))


def test_vectors_are_measured_with_their_recall(result):
    (found,) = result["vectors"]
    assert found["units"] == VECTORS
    assert found["times"].keys() == found["recall_at_10"].keys() == VECTOR_SYSTEMS
    assert ("ratio" in found) == ("faiss" in VECTOR_SYSTEMS)
    # Made-up topics are far apart: whoever loses much of them has a fault.
    assert all(share > 0.95 for share in found["recall_at_10"].values())


def test_times_are_ordered(result):
    (found,) = result["results"]
    groups = (found["search"]["times"], found["findable"], *found["open"].values(), result["vectors"][0]["times"])
    groups += ({"call": found["ingest"]["call"], "hyper": found["hyper"]["query"]},)
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
    report = program("benchmarks/report.py")
    for name, date in (("b", "2026-01-02T00:00:00+00:00"), ("a", "2026-03-01T00:00:00+00:00")):
        content = {"commit": name, "date": date, "results": []}
        (tmp_path / f"{name}.json").write_text(json.dumps(content), encoding="utf-8")
    (tmp_path / "other.json").write_text('{"date": "2027-01-01"}', encoding="utf-8")
    assert report.newest(tmp_path).name == "a.json"
    (tmp_path / "empty").mkdir()
    with pytest.raises(SystemExit, match="there is no result yet"):
        report.newest(tmp_path / "empty")
