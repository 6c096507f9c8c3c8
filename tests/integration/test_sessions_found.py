"""Hits by session: each session once, at its best hit, in Python and on the command line."""

import pytest

from builders import later, opened
from commands import BY_WORDS, command_line
from holdfast import InputError, Settings

EAGER = Settings.load(
    {"refusal.enabled": False, "hybrid.min_score": 0.0, "hybrid.gap": 0.0}, environ={}
).without_timeouts()
TALK = {
    "april": ["The violin lesson was long.", "The violin teacher is strict.", "Violin strings are dear."],
    "may": ["We talked about the violin again.", "It rained."],
}


@pytest.fixture
def memory():
    with opened(EAGER) as memory:
        for hours, (session, texts) in enumerate(TALK.items()):
            for number, text in enumerate(texts):
                memory.remember(text, user="ana", session=session, at=later(hours=hours, minutes=number))
        memory.remember("A violin hangs in the hall.", user="ana")
        yield memory


def test_each_session_comes_once_at_its_best_hit_and_units_of_none_stay(memory):
    every = memory.search("violin", user="ana")
    grouped = memory.search("violin", user="ana", group="session")
    best = {hit.unit.session: hit.unit.id for hit in reversed([*every])}
    assert [hit.unit.session for hit in every].count("april") == 3
    assert {hit.unit.session: hit.unit.id for hit in grouped} == best
    assert len(grouped) == len(best) == 3
    assert [hit.rank for hit in grouped] == [1, 2, 3]
    assert [hit.unit.id for hit in every if hit.unit.id in best.values()] == [hit.unit.id for hit in grouped]


def test_the_limit_counts_sessions_and_the_trace_says_who_gave_way(memory):
    found = memory.search("violin", user="ana", group="session", limit=2)
    assert len(found) == 2
    dropped = [drop for drop in found.trace.dropped if drop.cut == "session"]
    assert len(dropped) >= 2
    assert all(drop.had <= drop.needed for drop in dropped)


def test_another_group_is_refused_with_what_there_is(memory):
    with pytest.raises(InputError, match="there is no group 'day'; choose one of session"):
        memory.search("violin", user="ana", group="day")


def test_the_command_line_groups_too(tmp_path, monkeypatch):
    run = command_line(tmp_path, monkeypatch, HOLDFAST_REFUSAL__ENABLED="false", **BY_WORDS)
    db = ["--db", str(tmp_path / "a.db"), "--user", "ana"]
    for session, texts in TALK.items():
        for text in texts[:2]:
            run("remember", text, "--session", session, *db)
    found = run("search", "violin", "--group", "session", "--json", *db)
    sessions = [hit["unit"]["session"] for hit in found["hits"]]
    assert sorted(sessions) == ["april", "may"]
