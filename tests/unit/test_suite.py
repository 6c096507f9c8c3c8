"""The suite itself: a plain run draws the same every time, an exploration says how to repeat it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
# Two laws that write down what they are given.
LAWS = """
from pathlib import Path
from hypothesis import given, strategies as st

def write(name, *values):
    with Path(name).open("a") as file:
        print(ascii(values), file=file)

@given(st.text(), st.floats(), st.randoms())
def test_one(text, number, chance):
    write("one.txt", text, number, chance.random())

@given(st.integers(), st.text())
def test_two(number, text):
    write("two.txt", number, text)
"""
CONSTANTS = "WORDS, NUMBERS = ('walnut', 'kettle'), (7001, 7002)\n"
BROKEN = "from hypothesis import given, strategies as st\n@given(st.integers())\ndef test_it(n): assert n < 100\n"


def run(folder, source, *arguments, hash_seed="0"):
    """Run the tests of `source` in a process of their own, with our conftest; return what it prints."""
    folder.mkdir()
    (folder / "test_laws.py").write_text(source)
    (folder / "constants.py").write_text(CONSTANTS)
    path = os.pathsep.join([str(TESTS), *sys.path])
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "conftest", "-p", "no:cacheprovider", "test_laws.py", *arguments],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": path, "PYTHONHASHSEED": hash_seed},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout + done.stderr


def test_no_two_files_of_tests_have_one_name():
    names = sorted(path.name for path in TESTS.rglob("test_*.py"))
    assert names == sorted(set(names))  # pytest imports them by name: of two it refuses one, or not, as workers go


def drawn(folder):
    return {name: (folder / f"{name}.txt").read_text() for name in ("one", "two")}


@pytest.mark.slow
def test_neither_order_nor_hash_seed_nor_loaded_modules_change_what_is_drawn(tmp_path):
    first, second, other = tmp_path / "first", tmp_path / "second", tmp_path / "other"
    run(first, LAWS, "--randomly-seed=1", hash_seed="1")
    run(second, "import constants\n" + LAWS, "--randomly-seed=2", hash_seed="2")
    assert drawn(first) == drawn(second)
    assert len(drawn(first)["one"].splitlines()) == 50
    run(other, LAWS, "--randomly-seed=1", "--hypothesis-seed=1")
    assert drawn(other)["one"] != drawn(first)["one"]


def test_the_order_of_the_plain_run_is_fixed():
    assert "--randomly-seed=1" in (TESTS.parent / "pyproject.toml").read_text("utf-8")


@pytest.mark.slow
def test_an_exploration_that_fails_says_how_to_repeat_it(tmp_path):
    printed = run(tmp_path / "broken", BROKEN, "--hypothesis-seed=7", "--randomly-seed=9")
    assert "to repeat this: HOLDFAST_EXAMPLES=50 python -m pytest --hypothesis-seed=7 --randomly-seed=9" in printed
