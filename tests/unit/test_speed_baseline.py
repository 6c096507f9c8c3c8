"""Code on the hot path does not change without its speed being checked."""

import json
from pathlib import Path

import pytest

from builders import program

ROOT = Path(__file__).parents[2]
measuring = program("benchmarks/measuring.py")


@pytest.mark.slow
def test_the_speed_of_this_code_was_checked():
    kept = json.loads((ROOT / "benchmarks" / "baseline.json").read_text(encoding="utf-8"))["code"]
    assert kept == measuring.digest_hot_path(ROOT / "src" / "holdfast"), (
        "code that remembers, finds or assembles has changed since its speed was checked;"
        " run `make bench-check`, a minute, or `make bench`"
    )


CODE = {"recall.py": "def f(x):\n    return x + 1\n", "store/rows.sql": "SELECT 1;\n", "eval/run.py": "a = 1\n"}


@pytest.mark.parametrize(
    ("file", "text", "same"),
    [
        ("recall.py", '"""What it is."""\n\n\ndef f(x):  # one more\n    """Add."""\n    return x + 1\n', True),
        ("recall.py", "def f(x):\n    return x + 2\n", False),
        ("recall.py", "def f(x, y):\n    return x + 1\n", False),
        ("store/rows.sql", "SELECT 2;\n", False),
        ("eval/run.py", "a = 2\n", True),
        ("cli/main.py", "b = 3\n", True),
        ("kernels/new.py", "c = 4\n", False),
    ],
)
def test_the_digest_follows_what_runs_and_nothing_else(tmp_path, file, text, same):
    for name, content in CODE.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(content, encoding="utf-8")
    before = measuring.digest_hot_path(tmp_path)
    (tmp_path / file).parent.mkdir(exist_ok=True)
    (tmp_path / file).write_text(text, encoding="utf-8")
    assert (measuring.digest_hot_path(tmp_path) == before) is same
