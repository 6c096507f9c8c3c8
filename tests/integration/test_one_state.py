"""One question sees one state of the store, whatever is written between any two of its statements."""

import contextlib
import sqlite3

import pytest

from builders import opened
from holdfast import NotFoundError
from holdfast.testing.embedders import HashEmbedder

QUESTION = "the shared lighthouse keeper"
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


NEWER = pytest.mark.xfail(
    raises=AssertionError, reason="a question asks the store several times, and each call sees a newer state"
)


@pytest.mark.parametrize(
    ("profile", "write"),
    [
        ("hybrid", updating),
        pytest.param("hybrid", both, marks=NEWER),
        *(pytest.param(profile, adding, marks=NEWER) for profile in ("fast", "balanced", "thinking", "hybrid")),
    ],
)
def test_every_explanation_composes_to_its_score_while_others_write(tmp_path, profile, write):
    with disturbed(tmp_path / "m.db", write) as (reader, meanwhile):
        with meanwhile.at_work():
            found = reader.search(QUESTION, user="ana", profile=profile, explain=True)
        assert [hit.contributions.compose() for hit in found] == [hit.score for hit in found]


@pytest.mark.xfail(raises=NotFoundError, reason="the index is read at one moment and the unit at a later one")
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
            context = reader.assemble(QUESTION, user="ana", budget=300)
        assert QUESTION in context.text


def test_left_alone_every_explanation_composes_to_its_score(tmp_path):
    with disturbed(tmp_path / "m.db", both) as (reader, _):
        found = reader.search(QUESTION, user="ana", explain=True)
        assert [hit.contributions.compose() for hit in found] == [hit.score for hit in found]
        assert reader.get("shared", user="ana").version == 1
