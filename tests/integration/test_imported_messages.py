"""Messages as other programs write them: when, where and by whom they were said is kept, and so is all the rest."""

import json
from datetime import UTC, datetime

import pytest

from builders import NOW, opened
from holdfast import Settings
from holdfast.errors import InputError

SAID = datetime(2026, 4, 3, 18, 7, tzinfo=UTC)
SECONDS = int(SAID.timestamp())
TIMES = {
    "at": ("at", "2026-04-03T18:07:00Z", SAID),
    "another zone": ("created_at", "2026-04-03T20:07:00+02:00", SAID),
    "in camel case": ("createdAt", "2026-04-03T18:07:00.000Z", SAID),
    "seconds": ("created_at", SECONDS, SAID),
    "seconds with a fraction": ("create_time", SECONDS + 0.5, SAID.replace(microsecond=500_000)),
    "milliseconds": ("timestamp", SECONDS * 1_000, SAID),
    "a time": ("time", "2026-04-03T18:07:00Z", SAID),
    "a day": ("date", "2026-04-03", datetime(2026, 4, 3, tzinfo=UTC)),
    "nothing": ("created_at", None, NOW),
}


def kept(way, message):
    """Return the unit that a message becomes: remembered, or read from a line of a file."""
    with opened() as memory:
        if way == "remember":
            memory.remember(message, user="ana")
        else:
            memory.ingest(json.dumps(message), name="talk.jsonl", user="ana")
        [unit] = memory.list(user="ana")
        return unit


WAYS = pytest.mark.parametrize("way", ["remember", "a file"])


@WAYS
@pytest.mark.parametrize("case", TIMES)
def test_a_message_keeps_its_time(way, case):
    name, value, expected = TIMES[case]
    assert kept(way, {"role": "user", "content": "The kettle is new.", name: value}).event_time == expected


@WAYS
@pytest.mark.parametrize("name", ["session", "session_id", "conversation_id", "thread_id"])
def test_a_message_keeps_its_session(way, name):
    unit = kept(way, {"role": "user", "content": "ok then", name: "talk-7"})
    assert (unit.session, unit.scope) == ("talk-7", "session")


@WAYS
@pytest.mark.parametrize(("name", "role"), [("role", "assistant"), ("type", "ai"), ("sender", "assistant")])
def test_a_message_keeps_its_author(way, name, role):
    assert kept(way, {name: role, "content": "The kettle is new."}).author == "assistant"


@WAYS
def test_what_a_message_has_besides_is_kept_in_its_metadata(way):
    message = {
        "role": "user", "content": "The kettle is new.", "type": "message", "mood": "calm", "model": {"name": "m"},
        "created_at": "2026-04-03T18:07:00Z", "updated_at": "2026-04-04T00:00:00Z", "timestamp": SECONDS,
        "speaker": "Ana", "name": "ana_7", "metadata": {"room": "kitchen"},
    }  # fmt: skip
    unit = kept(way, message)
    assert (unit.text, unit.speaker, unit.parts, unit.event_time) == ("The kettle is new.", "Ana", (), SAID)
    assert unit.metadata == {
        "type": "message", "mood": "calm", "model": {"name": "m"}, "updated_at": "2026-04-04T00:00:00Z",
        "timestamp": SECONDS, "name": "ana_7", "room": "kitchen",
    }  # fmt: skip


def test_messages_of_several_sessions_are_kept_apart_and_in_order():
    messages = [
        {"role": "user", "content": f"Turn {turn} of {name}.", "conversation_id": name}
        for turn in range(3)
        for name in ("first", "second")
    ]
    with opened() as memory:
        memory.remember([*messages, "A word without a session."], user="ana", session="third")
        for name in ("first", "second"):
            found = memory.list(user="ana", session=name, order="oldest")
            assert [unit.text for unit in found] == [f"Turn {turn} of {name}." for turn in range(3)]
        assert [unit.text for unit in memory.list(user="ana", session="third")] == ["A word without a session."]


def test_a_session_of_a_message_may_be_the_only_one():
    with opened() as memory:
        memory.remember({"content": "Tea.", "session": "s"}, user="ana", scope="session")
        memory.remember({"claim": "Tea is hot.", "session": "s"}, user="ana")
        assert {unit.session for unit in memory.list(user="ana")} == {"s"}


def test_metadata_for_all_messages_joins_that_of_each():
    with opened() as memory:
        memory.remember({"content": "Tea.", "mood": "calm"}, user="ana", metadata={"source": "import"})
        assert memory.list(user="ana")[0].metadata == {"mood": "calm", "source": "import"}


def test_a_day_without_a_time_is_its_first_moment_wherever_a_time_is_given():
    with opened() as memory:
        memory.remember("The kettle is new.", user="ana", at="2026-04-03", valid_from="2026-04-03")
        memory.remember("The kettle is old.", user="ana", at="2026-04-02T23:59:59Z")
        [unit] = memory.list(user="ana", filters={"event_time": {"gte": "2026-04-03"}})
        assert unit.event_time == unit.valid_from == datetime(2026, 4, 3, tzinfo=UTC)
        assert memory.search("kettle", user="ana", as_of="2026-05-05", reference_time="2026-05-05").hits
        assert not memory.search("kettle", user="ana", as_of="2026-05-04").hits


# ------------------------------------------------------------------------------------------------------- secrets


def test_with_redaction_what_a_key_calls_a_secret_is_not_kept():
    settings = Settings.load({"ingest.redact": True}, environ={})
    message = {
        "content": "The oven is new.",
        "api_key": "swordfish",
        "metadata": {"password": "hunter2tango", "room": "hall"},
    }
    with opened(settings) as memory:
        memory.remember(message, user="ana", id="u", metadata={"db": {"passwd": 4711}})
        memory.remember(
            {"claim": "x", "subject": "the safe", "relation": "uses", "object": "password=hunter2tango"},
            user="ana", id="f",
        )  # fmt: skip
        mark = "[redacted: assigned secret]"
        assert memory.get("u", user="ana").metadata == {
            "api_key": mark, "password": mark, "room": "hall", "db": {"passwd": mark},
        }  # fmt: skip
        assert memory.get("f", user="ana").fact.object == f"password={mark}"
        assert memory.update("u", user="ana", metadata={"secret": "tango"}).metadata == {"secret": mark}


def test_messages_without_words_of_their_own_are_kept_with_what_they_hold():
    talk = [
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "t1", "name": "tides", "input": {"port": "Faro"}}],
        },
        {"role": "user", "content": [{"type": "tool_result", "content": [{"type": "text", "text": "high at nine"}]}]},
        {"role": "user", "content": [{"type": "image", "source": {"data": "AAAA"}}]},
        {"role": "tool", "content": ""},
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "nine is early"}]},
    ]
    with opened() as memory:
        memory.remember(talk, user="ana", session="s")
        kept = memory.list(user="ana", order="oldest")
        assert [unit.text for unit in kept] == [
            'tides {"port": "Faro"}', "high at nine", "[image]", "[empty]", "nine is early",
        ]  # fmt: skip
        assert [list(unit.parts) for unit in kept[:3]] == [message["content"] for message in talk[:3]]


def test_a_message_that_holds_nothing_at_all_is_refused():
    with opened() as memory, pytest.raises(InputError, match="content is blank"):
        memory.remember({"role": "user", "content": []}, user="ana")
