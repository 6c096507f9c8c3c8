"""What was written before still opens, and answers to the last digit as it did then (`make same`)."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import builders

SCRIPT = "scripts/same.py"


@pytest.mark.slow
def test_the_sample_written_before_answers_as_it_did():
    done = subprocess.run(
        [sys.executable, Path(__file__).parents[2] / SCRIPT, "sample"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_difference_is_found_wherever_it_is():
    same = builders.program(SCRIPT)
    before = json.loads((same.SAMPLE / "said-export.json").read_text(encoding="utf-8"))
    assert list(same.differences(before, json.loads(json.dumps(before)))) == []
    changed = json.loads(json.dumps(before))
    changed["export.jsonl"][0]["version"] = 2
    changed["import"][1] = ""
    assert len(list(same.differences(before, changed))) == 2
    assert len(list(same.differences(before, {}))) == len(before)


def test_a_value_is_told_by_what_it_holds():
    same = builders.program(SCRIPT)
    assert same.plain(0.1) == "0x1.999999999999ap-4"
    assert same.plain(builders.make_unit("u1")) != same.plain(builders.make_unit("u2"))
