"""One question sees one state of the store, whatever is written between any two of its statements."""

import contextlib
import itertools
import sqlite3
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from meddler import QUESTION, meddle

from builders import opened
from holdfast.testing.contracts import HashEmbedder

PROFILES = ("fast", "balanced", "thinking", "hybrid")
# More than a question has statements for; few enough that whoever tries again comes to an end.
MOST_WRITES = 200


class Meanwhile:
    """Another process, in effect: it writes before each statement of a reader, on a connection of its own."""

    def __init__(self, write):
        self._write = write
        self.writes = 0
        self.busy = False

    def __call__(self, _statement):
        if not self.busy or self.writes >= MOST_WRITES:
            return
        self.busy = False  # a write is not written into
        self._write(self.writes)
        self.writes += 1
        self.busy = True

    @contextlib.contextmanager
    def at_work(self):
        self.busy = True
        yield
        self.busy = False
        if not self.writes:
            pytest.fail("nothing was written meanwhile: the reader has no statement that could be seen")


@contextlib.contextmanager
def disturbed(path, write):
    """Open a memory whose every statement comes right after a `write(writer, number)`; yield both."""
    with opened(path=path, embedder=HashEmbedder(64)) as writer:
        writer.remember(f"{QUESTION} is number 0", user="ana", id="shared")
        writer.remember([f"a keeper tells of boat {n} and of the shared harbour" for n in range(20)], user="ana")
        meanwhile, connect = Meanwhile(lambda number: write(writer, number)), sqlite3.connect

        def listening(*given, **more):
            connection = connect(*given, **more)
            connection.set_trace_callback(meanwhile)
            return connection

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sqlite3, "connect", listening)
            reader = opened(path=path, embedder=HashEmbedder(64))
        with reader:
            reader.search(QUESTION, user="ana")  # loads the index
            yield reader, meanwhile


def updating(writer, number):
    writer.update("shared", user="ana", text=f"{QUESTION} is number {number + 1}")


def adding(writer, number):
    writer.remember(f"the keeper of lighthouse {number} shared a boat", user="ana")


def both(writer, number):
    (updating if number % 2 else adding)(writer, number)


@pytest.mark.parametrize("write", [updating, adding, both])
@pytest.mark.parametrize("profile", PROFILES)
def test_every_explanation_composes_to_its_score_while_others_write(tmp_path, profile, write):
    with disturbed(tmp_path / "m.db", write) as (reader, meanwhile):
        with meanwhile.at_work():
            found = reader.search(QUESTION, user="ana", profile=profile, explain=True)
        assert [hit.contributions.compose() for hit in found] == [hit.score for hit in found]


def test_a_unit_that_always_exists_is_always_there_while_others_update_it(tmp_path):
    with disturbed(tmp_path / "m.db", updating) as (reader, meanwhile), meanwhile.at_work():
        assert reader.get("shared", user="ana").id == "shared"


def test_a_unit_that_always_answers_is_always_found_while_others_update_it(tmp_path):
    with disturbed(tmp_path / "m.db", updating) as (reader, meanwhile):
        with meanwhile.at_work():
            found = reader.search(QUESTION, user="ana")
        assert "shared" in [hit.unit.id for hit in found]


def test_a_context_holds_a_unit_that_always_answers_while_others_update_it(tmp_path):
    with disturbed(tmp_path / "m.db", updating) as (reader, meanwhile):
        with meanwhile.at_work():
            # Counting what was shown is a write: another one before its statement would wait for it, in vain.
            context = reader.assemble(QUESTION, user="ana", budget=300, track_access=False)
        assert QUESTION in context.text


def test_left_alone_every_explanation_composes_to_its_score(tmp_path):
    with disturbed(tmp_path / "m.db", both) as (reader, _):
        found = reader.search(QUESTION, user="ana", explain=True)
        assert [hit.contributions.compose() for hit in found] == [hit.score for hit in found]
        assert reader.get("shared", user="ana").version == 1


# ----------------------------------------------------------------------------------- threads and processes

SEARCHES = 300
MEDDLER = Path(__file__).with_name("meddler.py")


@contextlib.contextmanager
def meddling_processes(path, names):
    """Let processes change the store until the block ends; each has changed something before it begins."""
    command = [sys.executable, str(MEDDLER), str(path)]
    running = [subprocess.Popen([*command, name], stdout=subprocess.PIPE) for name in names]
    with ThreadPoolExecutor(len(names)) as ears:
        try:
            assert [process.stdout.readline() for process in running] == [b"0\n"] * len(names)
            for process in running:
                ears.submit(process.stdout.read)  # a full pipe would stop it
            yield
            assert [process.poll() for process in running] == [None] * len(names)
        finally:
            for process in running:
                process.kill()
                process.wait()
    for process in running:
        process.stdout.close()


@contextlib.contextmanager
def meddling_threads(path, names):
    """Let threads change the store, each through a memory of its own, until the block ends."""
    stop = threading.Event()

    def work(name):
        with opened(path=path, embedder=HashEmbedder(64)) as memory:
            for number in itertools.takewhile(lambda _: not stop.is_set(), itertools.count()):
                meddle(memory, name, number)

    with ThreadPoolExecutor(len(names)) as hands:
        working = [hands.submit(work, name) for name in names]
        try:
            yield
        finally:
            stop.set()
    assert [one.result() for one in working] == [None] * len(names)


def test_every_answer_is_of_one_state_while_threads_and_processes_write(tmp_path):
    path = tmp_path / "m.db"
    with opened(path=path, embedder=HashEmbedder(64)) as reader:
        reader.remember(f"{QUESTION} is number 0", user="ana", id="shared")
        reader.remember([f"a keeper tells of boat {n} and of the shared harbour" for n in range(20)], user="ana")
        with meddling_processes(path, ("p1", "p2")), meddling_threads(path, ("t1", "t2")):
            for number in range(SEARCHES):
                profile = PROFILES[number % len(PROFILES)]
                found = reader.search(QUESTION, user="ana", profile=profile, explain=True, limit=100)
                assert [hit.contributions.compose() for hit in found] == [hit.score for hit in found]
                assert "shared" in [hit.unit.id for hit in found]
                assert reader.get("shared", user="ana").id == "shared"
        assert reader.get("shared", user="ana").version > 2
        assert reader.store.verify() == []
