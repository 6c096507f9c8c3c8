"""Changed facts through `Memory.remember` (C19): seen, told, undone, and never more than was said."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import NOW, costly, known_facts, later, opened
from holdfast import Contribution, Settings
from holdfast.cli import output
from holdfast.testing.contracts import HashEmbedder

OLD, NEW = "I live in Lisbon.", "I moved to Porto."
WHY = "lives_in: Lisbon → Porto (said: moved)"


def kept(settings=None, **more):
    return opened(settings, embedder=HashEmbedder(64), **more)


@pytest.fixture
def memory():
    with kept() as opened_memory:
        yield opened_memory


def say(memory, text, day, *, user="ana", **more):
    [written] = memory.remember(text, user=user, at=later(days=day), **more)
    return written


def current(memory, user="ana", **more):
    return {unit.text for unit in memory.list(user=user, limit=None, **more)}


# ---------------------------------------------------------------------------------------------- detection


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        (OLD, NEW, WHY),
        ("I work at Northwind.", "I no longer work at Northwind.", "works_at: Northwind → ended (said: no longer)"),
        ("I use Trello.", "I switched from Trello to Linear.", "uses: Trello → Linear (said: switched)"),
    ],
)  # fmt: skip
def test_a_change_is_seen_reported_and_told(memory, old, new, why):
    first = say(memory, old, 0)
    second = say(memory, new, 1)
    assert second.superseded == (first.id,)
    unit = memory.get(first.id, user="ana")
    assert (unit.superseded_by, unit.superseded_why) == (second.id, why)
    assert current(memory) == {new}
    assert current(memory, current_only=False) == {old, new}
    assert [version.text for version in memory.history(first.id, user="ana")] == [old]


def test_a_search_no_longer_finds_it_and_one_that_sees_everything_says_why(memory):
    first, second = say(memory, OLD, 0), say(memory, NEW, 1)
    now = memory.search("Where do I live? Lisbon or Porto", user="ana")
    assert [hit.unit.id for hit in now] == [second.id]
    then = memory.search("Where do I live? Lisbon or Porto", user="ana", current_only=False, explain=True)
    told = json.loads(json.dumps(output.search_json(then)))
    [old] = [hit for hit in told["hits"] if hit["unit"]["id"] == first.id]
    assert old["unit"]["superseded_by"] == second.id
    assert old["unit"]["superseded_why"] == WHY
    assert Contribution.from_json(old["contributions"]).compose() == old["score"]
    assert "superseded" in memory.why("Where do I live?", first.id, user="ana").verdict


@pytest.mark.parametrize(
    "said",
    [
        "Should I move to Porto?",
        "Did I say that I moved to Porto?",
        "Maybe I moved to Porto in my mind.",
        "I might move to Porto.",
        "I plan to move to Porto next year.",
        "If I moved to Porto, I would surf.",
        "She said that I moved to Porto.",
        "I also live in Porto.",
        "I live in Porto until Friday.",
        "I live in Porto at weekends.",
        "I used to live in Porto.",
        "I do not live in Porto.",
        "Bruno moved to Porto.",
    ],
)
def test_what_is_asked_hedged_planned_added_or_anothers_changes_nothing(memory, said):
    say(memory, OLD, 0)
    assert say(memory, said, 1).superseded == ()
    assert current(memory) == {OLD, said}


def test_a_plain_second_statement_changes_only_what_is_declared_to_have_one_value(memory):
    say(memory, OLD, 0)
    assert say(memory, "I live in Porto.", 1).superseded == ()
    declared = Settings.load({"symbolic.functional": ("lives_in",)}, environ={})
    with kept(declared) as strict:
        first = say(strict, OLD, 0)
        assert say(strict, "I live in Porto.", 1).superseded == (first.id,)
        assert strict.get(first.id, user="ana").superseded_why == "lives_in: Lisbon → Porto"


def test_a_turn_that_says_more_than_what_changed_is_left_alone(memory):
    say(memory, "I live in Lisbon. My cat is called Miso.", 0)
    assert say(memory, NEW, 1).superseded == ()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("I live in Lisbon with Rui.", NEW),
        ("I live in Lisbon by the river.", "I live in Porto now."),
        ("I work at Northwind as an engineer.", "I work at Halden now."),
    ],
)
def test_a_sentence_that_says_more_than_what_changed_is_left_alone(memory, old, new):
    say(memory, old, 0)
    assert say(memory, new, 1).superseded == ()
    assert current(memory) == {old, new}
    assert [fact for fact in memory.facts(user="ana", current_only=False) if not fact.current]


def test_detection_is_turned_off_by_settings(memory):
    for settings in (Settings.load({"changes.detect": False}, environ={}), Settings.reference()):
        with kept(settings) as quiet:
            say(quiet, OLD, 0)
            assert say(quiet, NEW, 1).superseded == ()
            assert current(quiet) == {OLD, NEW}


def test_a_change_is_seen_without_an_embedder_and_without_a_common_word():
    with opened() as memory:
        first = say(memory, OLD, 0)
        assert say(memory, NEW, 1).superseded == (first.id,)


def test_a_change_is_seen_behind_many_turns_that_are_nearer(memory):
    first = say(memory, OLD, 0)
    for i in range(40):
        say(memory, f"Somebody moved a piano to Porto, number {i}.", 0)
    assert say(memory, NEW, 1).superseded == (first.id,)


def test_one_of_very_many_things_is_replaced_by_name(memory):
    for number in range(40):
        say(memory, f"I use Trello{number:02}.", 0)
    replaced = say(memory, "I switched from Trello39 to Linear.", 1).superseded
    assert [memory.get(unit, user="ana").text for unit in replaced] == ["I use Trello39."]


# ------------------------------------------------------------------------------------------------- undoing


def test_it_is_undone_by_reinstate_and_not_done_again_by_the_same_message(memory):
    first, second = say(memory, OLD, 0), say(memory, NEW, 1)
    back = memory.reinstate(first.id, user="ana")
    assert (back.superseded_by, back.superseded_why) == (None, "")
    assert current(memory) == {OLD, NEW}
    again = say(memory, NEW, 1)
    assert (again.id, again.status, again.superseded) == (second.id, "duplicate", ())
    assert current(memory) == {OLD, NEW}
    assert memory.get(first.id, user="ana").superseded_why == ""


def test_re_sending_a_longer_list_keeps_what_was_reinstated(memory):
    talk = [{"role": "user", "content": OLD}, {"role": "user", "content": NEW}]
    first, second = memory.remember(talk, user="ana", session="s")
    assert second.superseded == (first.id,)
    memory.reinstate(first.id, user="ana")
    memory.remember([*talk, {"role": "user", "content": "Thanks."}], user="ana", session="s")
    assert current(memory) == {OLD, NEW, "Thanks."}


def test_a_pinned_turn_is_safe(memory):
    say(memory, OLD, 0, pinned=True)
    assert say(memory, NEW, 1).superseded == ()
    assert current(memory) == {OLD, NEW}


# ----------------------------------------------------------------------------------------------- ownership


def test_other_users_tenants_and_agents_statements_are_untouched(memory):
    say(memory, OLD, 0, user="ben")
    say(memory, OLD, 0, tenant="elsewhere")
    say(memory, OLD, 0, agent="cook")
    assert say(memory, NEW, 1, agent="clerk").superseded == ()
    assert current(memory, user="ben") == {OLD}
    assert current(memory, tenant="elsewhere") == {OLD}
    assert current(memory, agent="cook") == {OLD}


def test_another_speakers_statement_is_untouched(memory):
    berta = say(memory, OLD, 0, speaker="Berta")
    assert say(memory, NEW, 1, speaker="Carla").superseded == ()
    assert say(memory, "I live in Faro.", 1).superseded == ()
    assert say(memory, NEW, 2, speaker="Berta").superseded == (berta.id,)


def test_an_assistants_words_and_a_documents_are_untouched(memory):
    memory.remember({"role": "assistant", "content": OLD}, user="ana", at=NOW)
    memory.ingest(f"{OLD}\n", name="diary.md", user="ana")
    assert say(memory, NEW, 1).superseded == ()
    assert current(memory) == {OLD, NEW}
    [said] = memory.remember({"role": "assistant", "content": "I moved to Faro."}, user="ana", at=later(days=2))
    assert said.superseded == ()


def test_a_documents_sentence_replaces_nothing(memory):
    say(memory, OLD, 0)
    [written] = memory.ingest(f"{NEW}\n", name="diary.md", user="ana")
    assert written.superseded == ()
    assert current(memory) == {OLD, NEW}


def test_a_change_in_one_session_holds_in_the_others(memory):
    first = say(memory, OLD, 0, session="one")
    assert say(memory, NEW, 1, session="two").superseded == (first.id,)


def test_a_statement_without_an_agent_leaves_an_agents_statement_alone(memory):
    say(memory, OLD, 0, agent="cook")
    assert say(memory, NEW, 1).superseded == ()


# ------------------------------------------------------------------------------------------- order and time


def test_an_older_statement_imported_later_replaces_nothing(memory):
    say(memory, "I live in Faro.", 5)
    assert say(memory, NEW, 1).superseded == ()
    assert current(memory) == {"I live in Faro.", NEW}


def test_an_older_statement_imported_after_its_change_stays(memory):
    say(memory, NEW, 5)
    say(memory, OLD, 1)
    assert current(memory) == {NEW, OLD}


def test_as_of_gives_the_answer_of_then():
    clock = [NOW]
    with kept(now=lambda: clock[0]) as memory:
        memory.remember(OLD, user="ana", id="old")
        clock[0] = later(days=10)
        memory.remember(NEW, user="ana", id="new")
        question = "Where do I live? Lisbon or Porto"
        assert [hit.unit.id for hit in memory.search(question, user="ana")] == ["new"]
        then = memory.search(question, user="ana", as_of=later(days=1))
        assert [hit.unit.id for hit in then] == ["old"]
        facts = known_facts(memory, memory._view(user="ana", as_of=later(days=1)))
        assert [fact.key for fact in facts.about(["ana"], 10)] == [("ana", "lives_in", "lisbon")]
        facts = known_facts(memory, memory._view(user="ana"))
        assert [fact.key for fact in facts.about(["ana"], 10)] == [("ana", "lives_in", "porto")]


SAID = (
    OLD,
    NEW,
    "I moved to Faro.",
    "I live in Leeds now.",
    "I work at Brightwater.",
    "I left Brightwater.",
    "I use Trello.",
    "I switched from Trello to Linear.",
    "Hello.",
)


def outcome(memory):
    units = memory.list(user="ana", limit=None, current_only=False)
    return {(unit.text, unit.event_time, bool(unit.superseded_by), unit.superseded_why) for unit in units}


@costly
@given(st.lists(st.sampled_from(SAID), min_size=1, max_size=6, unique=True))
def test_a_batch_does_what_one_by_one_does(said):
    timed = [{"role": "user", "content": text, "at": later(hours=i)} for i, text in enumerate(said)]
    with kept() as together, kept() as apart:
        together.remember(timed, user="ana")
        for message in timed:
            apart.remember(message, user="ana")
        assert outcome(together) == outcome(apart)


@costly
@given(st.lists(st.sampled_from(SAID), min_size=1, max_size=6), st.sampled_from(["ana", "ben"]))
def test_nothing_is_lost_and_what_is_superseded_says_by_whom_and_why(said, other):
    with kept() as memory:
        for i, text in enumerate(said):
            memory.remember(text, user="ana", at=later(hours=i))
            memory.remember(text, user=other, at=later(hours=i), session="s")
        units = {unit.id: unit for unit in memory.list(user="ana", limit=None, current_only=False)}
        assert {unit.text for unit in units.values()} == set(said)
        for unit in units.values():
            assert (unit.superseded_by is None) == (unit.superseded_why == "")
            if unit.superseded_by is not None:
                by = units[unit.superseded_by]
                assert by.event_time > unit.event_time
                assert by.user == unit.user
