"""Law 16 with several processes: what is complete is gone from every copy, whoever erases or copies at the time."""

import contextlib
import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import settings

from builders import opened
from histories import bytes_of
from holdfast.testing.contracts import HashEmbedder

CROWD = Path(__file__).with_name("crowd.py")
EMBEDDER = HashEmbedder(64)
LONG = settings.default.max_examples >= 1_000
# Who forgets at once, how much each, and how many copies there are before.
PEOPLE, ROUNDS, COPIES = (("ada", "bob", "eve"), 30, 8) if LONG else (("ada", "bob"), 4, 3)


def secret(key):
    return f"the code of the door of {key} is SECRET{key}z"


@contextlib.contextmanager
def crowd(place, tasks):
    """Start a process for each task, a verb with what it is given and a name, and let them begin together."""
    running = [
        subprocess.Popen(
            [sys.executable, str(CROWD), place, *map(str, task)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for task in tasks
    ]  # fmt: skip
    try:
        assert [one.stdout.readline() for one in running] == ["ready\n"] * len(running)
        for one in running:
            one.stdin.write("go\n")
            one.stdin.flush()
        yield running
    finally:
        for one in running:
            one.kill()
            one.wait()
            for pipe in (one.stdin, one.stdout, one.stderr):
                pipe.close()


def told_by(place, tasks):
    with crowd(place, tasks) as running:
        told = [one.communicate() for one in running]
    assert [error for _, error in told] == [""] * len(tasks)
    return [json.loads(said) for said, _ in told]


def begin(place, folder):
    """Keep what is forgotten later, and copy it; return all its ids."""
    keys = [f"{who}-{n}" for who in PEOPLE for n in range(ROUNDS)]
    with opened(path=place, embedder=EMBEDDER) as memory:
        memory.remember([{"id": key, "text": secret(key)} for key in keys], user="ana")
        memory.remember({"id": "kept", "text": "the boat is red"}, user="ana")
        for number in range(COPIES):
            memory.backup(folder / f"before-{number}.db")
    return keys


def left_in(folder, keys):
    """Return which of the keys a file below a folder still speaks of, and where."""
    return {
        (name, key) for name, data in bytes_of(folder).items() for key in keys if f"SECRET{key}z".encode() in data
    }


def check_forgetting_at_once(place, folder, finish):
    """Let several processes forget at once; what they called complete is nowhere, and soon nothing is anywhere."""
    keys = begin(place, folder)
    assert {key for _, key in left_in(folder, keys)} == {*keys}, "the copies do not hold what is to be found in them"
    complete = {}
    for one in told_by(place, [("forget", ROUNDS, who) for who in PEOPLE]):
        complete |= one
    assert complete.keys() == {*keys}
    assert left_in(folder, [key for key, is_complete in complete.items() if is_complete]) == set()
    finish()
    assert left_in(folder, keys) == set()
    for path in folder.glob("*.db"):
        with opened(path=path, embedder=EMBEDDER) as copy:
            assert [unit.id for unit in copy.list(user="ana", limit=None)] == ["kept"]


def check_copying_meanwhile(place, folder, finish):
    """Let processes forget and make backups at once; no backup keeps what was called complete."""
    keys = begin(place, folder)
    tasks = [("forget", ROUNDS, who) for who in PEOPLE]
    told = told_by(place, [*tasks, ("back_up", 2 * ROUNDS, folder, "zoe")])
    complete = {key: is_complete for one in told[: len(PEOPLE)] for key, is_complete in one.items()}
    assert left_in(folder, [key for key, is_complete in complete.items() if is_complete]) == set()
    finish()
    assert left_in(folder, keys) == set()
    for path in folder.glob("*.db"):
        with opened(path=path, embedder=EMBEDDER) as copy:
            assert [unit.id for unit in copy.list(user="ana", limit=None)] == ["kept"]
            assert copy.store.verify() == []


CHECKS = pytest.mark.parametrize(
    "check", [check_forgetting_at_once, pytest.param(check_copying_meanwhile, marks=pytest.mark.slow)]
)


@CHECKS
def test_what_processes_forget_at_once_is_gone_from_every_copy_of_a_file(tmp_path, check):
    place = str(tmp_path / "store.db")

    def write_once():
        with opened(path=place, embedder=EMBEDDER) as memory:
            memory.remember("the next write tries again", user="somebody")

    check(place, _folder(tmp_path), write_once)


@CHECKS
def test_what_processes_forget_at_once_is_gone_from_every_copy_of_a_database(database, tmp_path, check):
    def vacuum():
        with opened(path=database, embedder=EMBEDDER) as memory:
            assert memory.store.finish_erasing()

    check(database, _folder(tmp_path), vacuum)


def _folder(tmp_path):
    folder = tmp_path / "copies"
    folder.mkdir()
    return folder
