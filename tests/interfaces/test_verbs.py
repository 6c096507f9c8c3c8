"""The table of verbs names every verb of a memory, and a call that is written is the call that is read."""

import inspect
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast import AsyncMemory, InputError, Memory
from holdfast.cli.main import app
from holdfast.client.remote import RemoteMemory
from holdfast.server.mcp import TOOLS
from holdfast.verbs import (
    BYTES,
    LOCAL,
    TEXT,
    VERBS,
    check_argument,
    json_types,
    known_argument,
    read_query,
    write_call,
)


def test_every_public_verb_is_in_the_table_or_has_a_reason_to_stay():
    public = {name for name in vars(Memory) if not name.startswith("_")}
    assert public == VERBS.keys() | LOCAL.keys()
    assert not VERBS.keys() & LOCAL.keys()


def test_every_argument_travels_or_is_a_function():
    for verb in VERBS.values():
        names = set(inspect.signature(getattr(Memory, verb.name)).parameters) - {"self"}
        assert names == verb.arguments.keys() | set(verb.kept)
        assert set(verb.kept) <= {"progress", "counter", "target"}
        assert {one.place for one in verb.arguments.values()} <= {"path", "query", "body", "raw"}


def test_routes_and_tools_are_unique_and_commands_exist():
    routes = [(verb.method, verb.path) for verb in VERBS.values()]
    tools = [verb.tool for verb in VERBS.values() if verb.tool]
    commands = {command.name or command.callback.__name__ for command in app.registered_commands}
    assert len(set(routes)) == len(routes)
    assert len(set(tools)) == len(tools)
    assert {verb.command for verb in VERBS.values()} <= commands
    assert set(tools) == TOOLS.keys()


@pytest.mark.parametrize("kind", [AsyncMemory, RemoteMemory])
def test_other_memories_have_every_verb_and_take_the_same(kind):
    for name in VERBS.keys() | {"close", "open", "backup", "ingest_folder"}:
        assert name in vars(kind) or name == "open", name
    for name in VERBS:
        assert inspect.signature(getattr(kind, name)) == inspect.signature(getattr(Memory, name))


ids = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=20).filter(str.strip)


@given(ids | st.sampled_from([".", "..", "a/b", "%2F", "a?b#c", "naïve 🌧"]))
def test_any_id_has_a_path_of_one_segment(unit_id):
    call = write_call(VERBS["history"], {"id": unit_id, "user": "ana"})
    before, units, segment, after = call.path.removeprefix("/").split("/")
    assert (before, units, unquote(segment), after) == ("v1", "units", unit_id, "history")
    assert segment.strip(".")


@given(st.booleans(), st.integers(1, 99) | st.none(), ids, st.dictionaries(ids, ids | st.integers(), max_size=2))
def test_what_stands_in_a_query_is_read_as_it_was_meant(flag, limit, user, filters):
    given = {"user": user, "limit": limit, "current_only": flag, "filters": filters}
    assert read_query(VERBS["list"], write_call(VERBS["list"], given).query) == given


def test_a_body_is_json_with_times_as_text():
    at = datetime(2026, 5, 4, 12, 0, 0, 1, tzinfo=UTC)
    call = write_call(VERBS["remember"], {"content": "hello", "user": "ana", "at": at, "ttl": timedelta(hours=1)})
    assert (call.method, call.path) == ("POST", "/v1/units")
    assert json.loads(call.body) == {
        "content": "hello", "user": "ana", "at": "2026-05-04T12:00:00.000001+00:00", "ttl": 3600.0,
    }  # fmt: skip


def test_documents_travel_as_bytes_or_text_and_never_as_a_path():
    ingest = VERBS["ingest"]
    as_bytes = write_call(ingest, {"source": b"%PDF", "user": "ana", "name": "a.pdf", "core": False})
    assert (as_bytes.body, as_bytes.media_type) == (b"%PDF", BYTES)
    assert as_bytes.query == {"user": "ana", "name": "a.pdf", "core": "false"}
    as_text = write_call(ingest, {"source": "naïve", "user": "ana", "name": "a.md"})
    assert (as_text.body.decode(), as_text.media_type) == ("naïve", TEXT)
    with pytest.raises(InputError, match="a server cannot read"):
        write_call(ingest, {"source": Path("a.md"), "user": "ana"})


def test_functions_stay_at_home():
    with pytest.raises(InputError, match="counter cannot be sent"):
        write_call(VERBS["assemble"], {"query": "x", "user": "ana", "counter": len})


@pytest.mark.parametrize(
    ("verb", "name", "value"),
    [
        ("search", "explain", "yes"), ("search", "explain", 1), ("search", "profile", ["hybrid"]),
        ("search", "limit", True), ("search", "limit", 1.5), ("list", "filters", []), ("remember", "ttl", "soon"),
        ("remember", "content", None), ("remember", "user", None), ("forget", "ids", {"a": 1}),
    ],
)  # fmt: skip
def test_a_value_of_another_type_is_refused_by_name(verb, name, value):
    with pytest.raises(InputError, match=f"{name} = "):
        check_argument(VERBS[verb].arguments[name], value)


def test_unknown_arguments_are_refused_with_those_that_are_known():
    with pytest.raises(InputError, match="search takes no 'quary' in its body; it takes query, user"):
        known_argument(VERBS["search"], "quary", "body")
    with pytest.raises(InputError, match="is not JSON, as true is"):
        read_query(VERBS["stats"], {"user": "ana", "whole": "yes"})


def test_every_argument_has_a_type_in_json():
    for verb in VERBS.values():
        for argument in verb.arguments.values():
            assert json_types(argument.kind), (verb.name, argument.name)
