"""What was decided about a unit automatically is listed, overruled by one call, and kept with the unit."""

import pytest

from builders import later, opened
from commands import BY_WORDS, command_line
from holdfast import InputError, NotFoundError

FRENCH, LISBON, PORTO = "Always answer in French.", "I live in Lisbon.", "I moved to Porto."


@pytest.fixture
def memory():
    with opened() as opened_memory:
        yield opened_memory


def say(memory, text, day, **more):
    [written] = memory.remember(text, user="ana", at=later(days=day), **more)
    return written.id


def decided(memory, unit_id, user="ana"):
    return {one.kind: one.overruled for one in memory.decisions(unit_id, user=user)}


def told(memory):
    return [one.value for one in memory.facts(user="ana", relation="instruction")]


def shown(memory):
    return [item.text for item in memory.assemble("boat", user="ana").section("standing").items]


def test_a_unit_that_nothing_was_decided_about_lists_nothing(memory):
    assert decided(memory, say(memory, "The boat leaks.", 0)) == {}
    with pytest.raises(NotFoundError):
        memory.decisions("nobody", user="ana")
    with pytest.raises(NotFoundError):
        memory.overrule("nobody", decision="standing", user="ana")


def test_only_what_can_be_decided_is_overruled(memory):
    with pytest.raises(InputError, match="superseded"):
        memory.overrule(say(memory, FRENCH, 0), decision="pinned", user="ana")


# ------------------------------------------------------------------------------------------------- the kinds


def test_a_turn_that_only_asks_ranks_like_any_other_when_that_is_overruled(memory):
    told, asked = say(memory, "The boat lies in Porto.", 0), say(memory, "Where is the boat in Porto?", 1)
    assert [hit.unit.id for hit in memory.search("boat in Porto", user="ana")] == [told, asked]
    assert decided(memory, asked) == {"question": False}
    memory.overrule(asked, decision="question", user="ana")
    assert [hit.unit.id for hit in memory.search("boat in Porto", user="ana")] == [asked, told]
    memory.overrule(asked, decision="question", undo=True, user="ana")
    assert [hit.unit.id for hit in memory.search("boat in Porto", user="ana")] == [told, asked]


def test_a_standing_request_is_taken_back_by_one_call_and_again(memory):
    unit = say(memory, FRENCH, 0)
    [one] = memory.decisions(unit, user="ana")
    assert (one.kind, one.why, one.overruled) == ("standing", FRENCH, False)
    [one] = memory.overrule(unit, decision="standing", user="ana")
    assert (one.kind, one.why, one.overruled) == ("standing", FRENCH, True)
    assert told(memory) == shown(memory) == []
    assert [hit.unit.id for hit in memory.search("French", user="ana")] == [unit]
    [one] = memory.overrule(unit, decision="standing", undo=True, user="ana")
    assert not one.overruled
    assert told(memory) == shown(memory) == [FRENCH]


def test_what_took_a_request_back_can_be_overruled_too(memory):
    say(memory, FRENCH, 0)
    unit = say(memory, "You can stop answering in French.", 1)
    assert decided(memory, unit) == {"standing": False}
    memory.overrule(unit, decision="standing", user="ana")
    assert told(memory) == [FRENCH]


def test_what_was_superseded_automatically_counts_again_for_good(memory):
    old, new = say(memory, LISBON, 0), say(memory, PORTO, 1)
    [one] = memory.decisions(old, user="ana")
    assert (one.kind, one.why, one.overruled) == ("superseded", "lives_in: Lisbon → Porto (said: moved)", False)
    memory.overrule(old, decision="superseded", user="ana")
    assert memory.get(old, user="ana").superseded_by is None
    assert decided(memory, old)["superseded"] is True
    assert memory.get(old, user="ana").superseded_by is None
    memory.overrule(old, decision="superseded", undo=True, user="ana")
    back = memory.get(old, user="ana")
    assert (back.superseded_by, back.superseded_why) == (new, "lives_in: Lisbon → Porto (said: moved)")
    assert decided(memory, old) == {"superseded": False}


def test_what_was_overruled_is_not_decided_again_by_a_later_turn(memory):
    old = say(memory, LISBON, 0)
    memory.overrule(old, decision="superseded", user="ana")
    say(memory, PORTO, 1)
    assert memory.get(old, user="ana").superseded_by is None
    memory.overrule(old, decision="superseded", undo=True, user="ana")
    assert memory.get(old, user="ana").superseded_why == "lives_in: Lisbon → Porto (said: moved)"


def test_what_was_taken_away_is_taken_away_again_when_that_is_undone(memory):
    old, new = say(memory, "I work at Northwind.", 0), say(memory, "I no longer work at Northwind.", 1)
    memory.overrule(old, decision="superseded", user="ana")
    assert memory.get(old, user="ana").superseded_by is None
    memory.overrule(old, decision="superseded", undo=True, user="ana")
    assert memory.get(old, user="ana").superseded_by == new


def test_reinstate_overrules_what_was_automatic_and_nothing_else(memory):
    old = say(memory, LISBON, 0)
    say(memory, PORTO, 1)
    memory.reinstate(old, user="ana")
    assert decided(memory, old)["superseded"] is True
    mine, by = say(memory, "The boat leaks.", 2), say(memory, "The boat is dry.", 3)
    memory.supersede(mine, by=by, user="ana")
    assert decided(memory, mine) == {}
    assert memory.reinstate(mine, user="ana").overruled == ()


def test_what_was_marked_as_earlier_is_marked_no_more(memory):
    first = say(memory, "I work at Northwind.", 0)
    say(memory, "I work at Fietskoerier.", 3)
    assert decided(memory, first) == {"earlier": False}
    memory.overrule(first, decision="earlier", user="ana")
    assert [one.later_in for one in memory.facts(user="ana")] == ["", ""]
    assert decided(memory, first) == {"earlier": True}
    memory.overrule(first, decision="earlier", undo=True, user="ana")
    assert decided(memory, first) == {"earlier": False}


# --------------------------------------------------------------------------------------------- it stays


def test_it_survives_an_update_a_repetition_an_export_a_backup_and_a_reopening(tmp_path):
    with opened(path=tmp_path / "a.db") as memory:
        memory.remember(FRENCH, user="ana", id="f")
        memory.overrule("f", decision="standing", user="ana")
        memory.update("f", user="ana", text=f"{FRENCH} Please.")
        memory.remember({"role": "user", "content": FRENCH}, user="ana", id="f")
        memory.export(tmp_path / "a.jsonl", user="ana")
        memory.backup(tmp_path / "b.db")
    with opened() as other:
        other.import_(tmp_path / "a.jsonl", user="ana")
        assert (decided(other, "f"), told(other)) == ({"standing": True}, [])
    for name in ("a.db", "b.db"):
        with opened(path=tmp_path / name) as again:
            assert (decided(again, "f"), told(again)) == ({"standing": True}, [])


def test_as_of_a_moment_before_it_was_overruled_it_holds():
    moment = [later(days=0)]
    with opened(now=lambda: moment[0]) as memory:
        [written] = memory.remember(FRENCH, user="ana")
        moment[0] = later(days=5)
        memory.overrule(written.id, decision="standing", user="ana")
        assert told(memory) == []
        assert [one.value for one in memory.facts(user="ana", as_of=later(days=1))] == [FRENCH]


def test_an_import_refuses_a_decision_that_is_none(tmp_path, memory):
    memory.remember(FRENCH, user="ana", id="f")
    memory.overrule("f", decision="standing", user="ana")
    memory.export(tmp_path / "a.jsonl", user="ana")
    lines = (tmp_path / "a.jsonl").read_text(encoding="utf-8").replace('["standing"]', '["sitting"]')
    with opened() as other, pytest.raises(InputError, match="no unit that can be read"):
        other.import_(lines.encode(), user="ana", name="a.jsonl")


def test_the_command_line_lists_and_overrules(tmp_path, monkeypatch):
    run = command_line(tmp_path, monkeypatch, **BY_WORDS)
    [written] = run("remember", FRENCH, "--json")
    assert run("decisions", written["id"]) == f"standing: {FRENCH}\n"
    assert run("overrule", written["id"], "standing") == f"standing (overruled): {FRENCH}\n"
    assert run("facts", "--json") == []
    [one] = run("overrule", written["id"], "standing", "--undo", "--json")
    assert one == {"kind": "standing", "why": FRENCH, "overruled": False}
    assert "superseded, standing, question, earlier" in run("overrule", written["id"], "sitting", code=2)
