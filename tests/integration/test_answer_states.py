"""What an answer is worth (C4): found, closest or nothing, the same at every interface."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders import NOW, later, opened
from holdfast import Memory, ReaderError, Settings
from holdfast.cli import output
from holdfast.server.host import recall as host_recall
from holdfast.testing.contracts import HashEmbedder
from holdfast.types import SearchResult
from holdfast.types.contexts import Context
from holdfast.wire import decode, encode

SAID = (
    "The flat in Utrecht is lovely, we moved in last week.",
    "My rent is nine hundred euros.",
    "We unpacked the last boxes in Rotterdam, the new flat is bright.",
    "I had pasta with Ines.",
    "My sister Ines teaches at a school in Leiden.",
    "Karen is our dentist's receptionist, she is very kind.",
)
FOUND, CLOSEST = "Who teaches at a school?", "Where do I live?"
NEAR_MISS, LONELY, FAR = "Which bank is Ines at?", "What is my dentist called?", "Explain quicksort complexity"
ANA = {"user": "ana"}


def filled(memory):
    for number, text in enumerate(SAID):
        memory.remember({"role": "user", "content": text, "at": later(days=number - 30)}, session=f"s{number}", **ANA)
    return memory


@pytest.fixture(scope="module")
def memory():
    with Memory.open(":memory:", now=lambda: NOW) as kept:
        yield filled(kept)


@pytest.mark.parametrize(
    ("question", "state"), [(FOUND, "found"), (CLOSEST, "closest"), (NEAR_MISS, "nothing"), (FAR, "nothing")]
)
def test_search_and_its_context_say_the_same_of_a_question(memory, question, state):
    found, context = memory.search(question, **ANA), memory.assemble(question, budget=120, **ANA)
    assert (found.state, context.state) == (state, state)
    assert bool(found.refused) == bool(context.refused) == (state == "nothing")


def test_a_near_miss_keeps_what_is_closest_and_says_that_none_answers(memory):
    found = memory.search(NEAR_MISS, **ANA)
    assert found[0].unit.text == SAID[4]
    assert found.refused.startswith("none of the")
    assert found[0].confidence < 0.5
    assert memory.why(NEAR_MISS, found[0].unit.id, **ANA).returned


def test_the_only_hit_is_read_too(memory):
    [hit] = found = memory.search(LONELY, **ANA)
    assert (hit.unit.text, found.state) == (SAID[5], "nothing")
    assert found.refused.startswith("the one turn read")


def test_a_question_of_another_world_gets_no_hits(memory):
    assert len(memory.search(FAR, **ANA)) == 0


def test_a_context_says_in_its_heading_that_nothing_answers(memory):
    small, whole = (memory.assemble(NEAR_MISS, budget=budget, **ANA) for budget in (120, 4000))
    assert "newest first; nothing that was found seems to answer" in small.text
    assert "nothing close to the question was found; all that is remembered" in whole.text
    assert len(whole.items) == len(SAID)
    assert "[recalled, best first, UTC" in memory.assemble(FOUND, budget=120, **ANA).text


def test_a_hit_decides_however_many_are_wanted(memory):
    for question in (FOUND, CLOSEST, NEAR_MISS):
        states = {memory.search(question, limit=limit, group=group, **ANA).state
                  for limit in (1, 20) for group in (None, "session")}  # fmt: skip
        assert len(states) == 1


def test_without_reading_only_nearness_judges_and_nothing_claims_otherwise(memory):
    found = memory.search(NEAR_MISS, read=False, **ANA)
    assert found.state in ("found", "closest")
    assert found.refused == ""
    assert memory.search(FAR, read=False, **ANA).state == "nothing"


def test_without_the_model_file_it_is_the_same_and_the_answer_says_so(memory, monkeypatch):
    def missing():
        raise ReaderError("the reader cannot be read: no such file")

    plain = memory.search(NEAR_MISS, read=False, **ANA)
    monkeypatch.setattr("holdfast.retrieval.question.open_reader", missing)
    found = memory.search(NEAR_MISS, **ANA)
    assert found.degraded.startswith("hits were not read together")
    assert (found.state, [hit.unit.id for hit in found]) == (plain.state, [hit.unit.id for hit in plain])
    assert [hit.confidence for hit in found] == [hit.confidence for hit in plain]


def test_a_refusal_that_is_switched_off_leaves_nothing_to_an_empty_answer_alone():
    with filled(Memory.open(":memory:", settings=Settings.load({"refusal.enabled": False}, environ={}))) as memory:
        found = memory.search(NEAR_MISS, **ANA)
        assert (found.state, found.refused) == ("closest", "")
        assert found.trace.readings.nothing > 4.0
        assert memory.search("What is it?", user="bea").state == "nothing"


def test_words_alone_are_sure_of_what_holds_all_of_them():
    with filled(opened()) as memory:
        assert memory.search("the pasta with Ines", read=False, **ANA).state == "found"
        assert memory.search("the pasta of Karen", read=False, **ANA).state == "closest"


def test_nobody_is_sure_where_nothing_is_of_the_time_asked_for(memory):
    assert memory.search("What did I say in 2024?", **ANA).state == "closest"
    assert memory.search("What did I say in April 2026?", **ANA).state == "found"


def test_a_near_document_may_answer_what_no_turn_does():
    with Memory.open(":memory:", now=lambda: NOW) as memory:
        filled(memory).ingest("# Banks\n\nInes keeps her money at the Triodos bank.", name="banks.md", **ANA)
        assert memory.search(NEAR_MISS, **ANA).state != "nothing"


# ------------------------------------------------------------------------------------------------ interfaces


@pytest.mark.parametrize("question", [FOUND, CLOSEST, NEAR_MISS, FAR])
def test_a_state_travels_as_json_and_comes_back(memory, question):
    found, context = memory.search(question, explain=True, **ANA), memory.assemble(question, budget=120, **ANA)
    for kind, value in ((SearchResult, found), (Context, context)):
        sent = json.loads(json.dumps(encode(kind, value)))
        assert (sent["state"], sent["refused"]) == (value.state, value.refused)
        assert encode(kind, value, full=False)["state"] == value.state
        arrived = decode(kind, sent)
        assert (arrived.state, arrived.refused) == (value.state, value.refused)
    assert output.search_json(found)["state"] == found.state
    assert output.context_json(context)["state"] == context.state
    assert context.state in context.explain().split("\n")[0]


def test_a_host_is_told_above_the_hits(memory):
    texts = {question: host_recall(memory, query=question, **ANA).text for question in (FOUND, CLOSEST, NEAR_MISS)}
    assert texts[FOUND].startswith("[recalled, best first, ")
    assert texts[CLOSEST].startswith("[recalled, closest first; it is not sure that one of these answers, ")
    assert texts[NEAR_MISS].startswith("[recalled, closest first; nothing that was found seems to answer, ")
    assert "none of the" in texts[NEAR_MISS].splitlines()[-1]


# --------------------------------------------------------------------------------------------------- a law


THINGS = st.sampled_from(["kettle", "boat", "rent", "flat", "school", "dentist", "blue", "moved", "my"])
PHRASES = st.lists(THINGS, min_size=1, max_size=4).map(" ".join)


@settings(max_examples=25)
@given(st.lists(PHRASES, min_size=0, max_size=6, unique=True), PHRASES, st.integers(1, 20))
def test_a_state_is_a_function_of_question_and_store(said, question, limit):
    states = []
    for order in (said, said[::-1]):
        with opened(embedder=HashEmbedder(64)) as memory:
            for text in order:
                memory.remember(text, id=f"u {text}", at=NOW, **ANA)
            found = memory.search(question, **ANA)
            states += [found.state, memory.search(question, limit=limit, explain=True, **ANA).state]
            states.append(memory.assemble(question, **ANA).state)
            assert (found.state == "nothing") == bool(found.refused or not found.hits)
    assert len({*states}) == 1
