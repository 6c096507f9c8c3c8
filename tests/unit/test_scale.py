"""The arithmetic of docs/scale.md."""

import json
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "scale.py"
FLAT = {"bytes_per_unit": 5000, "questions_per_second": {"1": 40, "2": 70, "4": 75}}
PART = {"units": 10, "bytes/unit": 5000, "questions/s": FLAT["questions_per_second"]}
PARTS = {"parts": {"one file, 99 units": {}, "PostgreSQL, 10 units": PART, "PostgreSQL, 5 units": {"units": 5}}}


@pytest.mark.parametrize("figures", [FLAT, PARTS])
def test_units_and_questions_grow_with_the_servers(tmp_path, figures):
    path = tmp_path / "figures.json"
    path.write_text(json.dumps(figures))
    script = runpy.run_path(str(SCRIPT))
    rows = script["table"](script["read"](path), 1000.0, 16, 400.0).splitlines()
    assert rows[4] == "| 1 | 107 M | 537 G | 420 | 400 | 3.73 |"
    assert rows[-1] == "| 1,000 | 107 G | 537 T | 420 k | 400,000 | 3.73 |"


@pytest.mark.parametrize("text", [None, "{}", "no JSON"])
def test_without_figures_there_is_no_table(tmp_path, text):
    path = tmp_path / "figures.json"
    if text is not None:
        path.write_text(text)
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "--figures", str(path)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert "benchmarks/postgres.py" in done.stderr
