"""Whatever JSON a caller sends, the answer is a result or a typed error, and nothing is half-written."""

import random
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from builders import opened
from holdfast import FilterError, HoldfastError, InputError, Settings, SettingsError, UnknownProfileError
from holdfast.messages.checks import MAX_IDS, MAX_NAME, MAX_NOTE


def nested(depth):
    value = []
    for _ in range(depth):
        value = [value]
    return value


DEEP = nested(3_000)
LAST = datetime(9999, 12, 31, 23, 59, tzinfo=timezone(-timedelta(hours=5)))
VALUES = (
    None, True, False, 0, -1, 2**63, 10**400, 10**5000, 1e308, float("nan"), float("inf"), "", " ", "x", "\x00",
    "\ud800", "user", "2026-01-01", "x" * 300, [], {}, [[]], [{}], {"a": 1}, {"": ""}, {"role": "user"}, ["user"],
    DEEP, {"a": DEEP}, [1, "a", None], {"type": "text", "text": "x"}, "Procedure", "knowledge", 1_712_345_678, LAST,
)  # fmt: skip
FIELDS = """
    id kind text role topic claim procedure condition utility_acts utility_note author speaker message_id bundle_id at
    valid_from valid_to supersedes expires_at pinned links subject relation object confidence authority origin
    metadata parts content name tool_calls created_at timestamp session conversation_id type sender anything
    """.split()


def tried(call, *arguments, **named):
    """Call; the errors that may come are the typed ones, with short messages."""
    message = ""
    try:
        call(*arguments, **named)
    except HoldfastError as error:
        message = str(error)
    assert len(message) < 600


@pytest.mark.parametrize("kind", ["content", "claim"])
def test_any_value_in_any_field_of_a_message_or_a_unit_is_taken_or_refused(kind):
    with opened() as memory:
        for field in FIELDS:
            for value in VALUES:
                tried(memory.remember, {kind: "a word", field: value}, user="ana")


def test_messages_of_random_fields_are_taken_or_refused():
    chance = random.Random("json")
    with opened() as memory:
        for _ in range(1_500):
            item = {name: chance.choice(VALUES) for name in chance.sample(FIELDS, chance.randint(1, 5))}
            item |= {"content": "a word"} if chance.random() < 0.5 else {}
            tried(memory.remember, chance.choice([item, [item], [item, "a word"]]), user="ana")
            tried(memory.search, [item], user="ana")


@pytest.mark.parametrize(
    ("verb", "given", "names"),
    [
        ("remember", {"content": "x"}, "content user session agent tenant scope at id author speaker metadata ttl"),
        ("remember", {"content": "x"}, "pinned valid_from valid_to supersedes links"),
        ("search", {"query": "x"}, "query user session agent tenant profile limit filters only_session current_only"),
        ("search", {"query": "x"}, "reference_time as_of"),
        ("assemble", {"query": "x"}, "query user session profile budget window filters as_of strict track_access"),
        ("why", {"query": "x", "id": "u"}, "query id limit profile filters budget"),
        ("update", {"id": "u"}, "id user text topic metadata pinned ttl valid_from valid_to links"),
        ("list", {}, "user session agent tenant limit filters current_only order"),
        ("get", {"id": "u"}, "id user"),
        ("history", {"id": "u"}, "id user"),
        ("stats", {}, "user tenant"),
        ("supersede", {"id": "u", "by": "u"}, "id by user"),
        ("reinstate", {"id": "u"}, "id user"),
        ("decisions", {"id": "u"}, "id user"),
        ("overrule", {"id": "u", "decision": "earlier"}, "id user decision undo"),
        ("forget", {"dry_run": True}, "user ids session filters document all agent tenant"),
        ("compact", {}, "user session"),
        ("expand", {"id": "u"}, "id user"),
        ("widen", {"id": "u"}, "id user"),
        ("ingest", {"source": "x", "name": "a.txt"}, "source user tenant name scope core"),
        ("ingest_folder", {"folder": Path("nowhere")}, "folder user tenant scope include exclude"),
        ("backup", {"path": "nowhere/x.db"}, "path"),
    ],
)  # fmt: skip
def test_any_value_for_any_argument_of_a_verb_is_taken_or_refused(verb, given, names, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with opened() as memory:
        memory.remember("a word", user="ana", id="u")
        arguments = {**given} if verb == "backup" else {"user": "ana", **given}
        for name in names.split():
            for value in VALUES:
                tried(getattr(memory, verb), **{**arguments, name: value})


@pytest.mark.parametrize(
    ("call", "error", "expected"),
    [
        (lambda m: m.remember({"role": ["user"], "text": "x"}, user="ana"), InputError, "there is no role ['user']"),
        (lambda m: m.remember({"role": {}, "claim": "x"}, user="ana"), InputError, "there is no role {}"),
        (lambda m: m.remember({"role": "user", "content": [DEEP]}, user="ana"), InputError, "more than 32 deep"),
        (lambda m: m.remember("x", user="ana", ttl=10**400), InputError, "is not a positive time"),
        (lambda m: m.remember("x", user="ana", ttl=timedelta.max), InputError, "is not a positive time"),
        (lambda m: m.list(user="ana", limit=2**63), InputError, "limit = 9223372036854775808"),
        (lambda m: m.search("x", user="ana", profile=["fast"]), UnknownProfileError, "profile = ['fast']"),
        (lambda m: m.search("x", user="ana", filters={"a": DEEP}), FilterError, " on 'a' cannot be compared"),
        (lambda m: m.search("x", user="ana", filters={"a": LAST}), FilterError, "outside 1900"),
        (lambda m: m.search("x", user="ana", filters={"event_time": {"gt": LAST}}), FilterError, "outside 1900"),
        (lambda m: m.backup({"a": 1}), InputError, "path = {'a': 1} is not a path"),
        (lambda m: m.backup("a" * 300), InputError, "is too long"),
        (lambda m: m.ingest_folder(7, user="ana"), InputError, "folder = 7 is not a path"),
        (lambda m: m.ingest_folder("a" * 300, user="ana"), InputError, "is too long"),
        (lambda m: m.ingest(Path("a" * 300), user="ana"), InputError, "is too long"),
    ],
)
def test_what_is_refused_is_named(call, error, expected):
    with opened() as memory, pytest.raises(error) as caught:
        call(memory)
    assert expected in str(caught.value)


# ----------------------------------------------------------------------------------------------------------- sizes


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ({"content": "x", "speaker": "n" * (MAX_NAME + 1)}, "has 257 characters; the most is 256"),
        ({"content": "x", "name": "n" * (MAX_NAME + 1)}, "has 257 characters; the most is 256"),
        ({"claim": "x", "speaker": "n" * (MAX_NAME + 1)}, "has 257 characters; the most is 256"),
        ({"claim": "x", "topic": "t" * (MAX_NOTE + 1)}, "has 4,097 characters; the most is 4,096"),
        ({"claim": "x", "condition": "t" * (MAX_NOTE + 1)}, "has 4,097 characters; the most is 4,096"),
        ({"claim": "x", "utility_note": "t" * (MAX_NOTE + 1)}, "has 4,097 characters; the most is 4,096"),
        ({"claim": "x", "subject": "t" * 5_000, "relation": "uses", "object": "y"}, "has 5,000 characters"),
        ({"claim": "x", "links": ["y"] * (MAX_IDS + 1)}, "links has 1,001 ids; the most is 1,000"),
        ({"claim": "x", "supersedes": ["y"] * (MAX_IDS + 1)}, "supersedes has 1,001 ids"),
        ({"claim": "x", "parts": ["y" * 200]}, "more than ingest.max_parts_bytes = 100"),
        ({"content": [{"type": "image", "text": "x", "data": "y" * 200}]}, "more than ingest.max_parts_bytes = 100"),
        ({"content": "x", "tool_calls": [{"data": "y" * 200}]}, "more than ingest.max_parts_bytes = 100"),
        ({"content": "x", "anything": "y" * 70_000}, "more than ingest.max_metadata_bytes = 65,536"),
    ],
)
def test_every_field_has_a_largest_size(content, expected):
    with opened(Settings.load({"ingest.max_parts_bytes": 100}, environ={})) as memory:
        with pytest.raises(InputError) as caught:
            memory.remember(content, user="ana")
        assert expected in str(caught.value)
        assert memory.list(user="ana") == []


def test_arguments_have_the_same_limits():
    with opened() as memory:
        memory.remember("x", user="ana", id="u")
        for call in (
            lambda: memory.remember("y", user="ana", links=["u"] * (MAX_IDS + 1)),
            lambda: memory.update("u", user="ana", topic="t" * (MAX_NOTE + 1)),
            lambda: memory.remember("y", user="ana", speaker="n" * (MAX_NAME + 1)),
        ):
            with pytest.raises(InputError, match="the most is"):
                call()


def test_what_is_asked_for_may_name_more_than_a_unit_may_point_at(tmp_path):
    many = MAX_IDS + 1
    with opened() as memory:
        written = memory.remember([f"note number {number}" for number in range(many)], user="ana")
        assert len(memory.forget(ids=[one.id for one in written], user="ana").units) == many
        assert memory.ingest_folder(tmp_path, user="ana", exclude=["*.txt"] * many).units == 0


# -------------------------------------------------------------------------------------------------------- settings


@pytest.mark.parametrize(
    "text",
    ["a = " + "[" * 3_000, "a = " + "{a = " * 3_000, "[" + "a." * 3_000 + "a]", "a" + ".a" * 3_000 + " = 1"],
)
def test_a_settings_file_that_is_nested_without_end_is_refused(text, tmp_path):
    file = tmp_path / "h.toml"
    file.write_text(text)
    with pytest.raises(SettingsError):
        Settings.load(file=file, environ={})


def test_a_variable_that_is_nested_without_end_is_refused():
    with pytest.raises(SettingsError, match=r"lexical\.k1"):
        Settings.load(environ={"HOLDFAST_LEXICAL__K1": "[" * 100_000})
