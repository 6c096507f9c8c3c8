"""A strategy that runs out of time returns what it has, and every answer that is made of it says so."""

from itertools import count

import pytest

from builders import opened, watched
from commands import BY_WORDS, command_line
from holdfast import Settings
from holdfast.testing.contracts import HashEmbedder

LATE = ("lexical",)
WARNING = "the search ran out of time, so that units may be missing; raise retrieval.timeout_ms"
TURNS = ["the copper kettle leaks", "the kettle is on the left shelf", "a copper lid lies on the shelf"]
QUESTION = "the copper kettle on the shelf"


def hurried(**given):
    """Open a memory in which every look at the watch is a second later: nothing but the first step is in time."""
    seconds = count()
    with watched(lambda: float(next(seconds))):
        memory = opened(**given)
    memory.remember(TURNS, user="ana")
    return memory


@pytest.fixture
def late():
    with hurried() as memory:
        yield memory


@pytest.fixture
def patient():
    with opened() as memory:
        memory.remember(TURNS, user="ana")
        yield memory


def test_a_search_that_ran_out_of_time_says_so(late, patient):
    found = late.search(QUESTION, user="ana")
    assert found.trace.out_of_time == LATE
    assert found.warnings == (WARNING,)
    whole = patient.search(QUESTION, user="ana")
    assert (whole.trace.out_of_time, whole.warnings) == ((), ())


def test_every_strategy_that_ran_out_of_time_is_named():
    with hurried(embedder=HashEmbedder(64)) as memory:
        found = memory.search(QUESTION, user="ana")
    assert found.trace.out_of_time == ("lexical", "dense")
    assert found.warnings == (WARNING,)


def test_nothing_is_missing_when_only_what_helps_out_is_late():
    # A thousandth of a second at each look: in time for all but what only runs when words find little.
    looks = count()
    with watched(lambda: next(looks) / 1000):
        memory = opened(Settings.load({"retrieval.escalation_timeout_ms": 1e-3}, environ={}))
    with memory:
        memory.remember(TURNS, user="ana")
        found = memory.search("where is the lid?", user="ana", profile="balanced")
        assert (found.trace.out_of_time, found.warnings) == (("hdc-vsa",), ())
        assert memory.assemble("where is the lid?", user="ana", budget=300).warnings == ()
        assert found[0].unit.text == TURNS[-1]


def test_by_default_nothing_is_made_for_a_question_whose_words_are_unknown():
    with opened(embedder=HashEmbedder(64)) as memory:
        memory.remember(TURNS, user="ana")
        found = memory.search("zebra", user="ana")
        assert [one.strategy_id for one in found.trace.results] == ["lexical", "dense"]


def test_a_context_that_ran_out_of_time_says_so(late, patient):
    context = late.assemble(QUESTION, user="ana", budget=300)
    assert context.warnings == (WARNING,)
    assert context.to_json()["warnings"] == [WARNING]
    assert context.trace.out_of_time == LATE
    assert patient.assemble(QUESTION, user="ana", budget=300).warnings == ()


def test_a_verdict_that_ran_out_of_time_claims_no_absence(late, patient):
    [written] = late.remember("the harbour sleeps", user="ana")
    assert late.why(QUESTION, written.id, user="ana").verdict.endswith(f"({WARNING})")
    [written] = patient.remember("the harbour sleeps", user="ana")
    assert "out of time" not in patient.why(QUESTION, written.id, user="ana").verdict


def test_the_command_line_says_so(tmp_path, monkeypatch):
    run = command_line(tmp_path, monkeypatch, COLUMNS="200", **BY_WORDS)
    for text in TURNS:
        run("remember", text)
    assert WARNING not in run("search", QUESTION)
    seconds = count()
    with watched(lambda: float(next(seconds))):
        assert f"warning: {WARNING}" in run("search", QUESTION)
        assert run("search", QUESTION, "--json")["warnings"] == [WARNING]
        assert f"warning: {WARNING}" in run("assemble", QUESTION, "--budget", "300")
        assert run("assemble", QUESTION, "--budget", "300", "--json")["warnings"] == [WARNING]
