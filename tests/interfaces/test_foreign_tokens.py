"""Names and ids of others through every route: nothing of theirs is told, and nothing of theirs is changed."""

import json
import re

import pytest
from served import client, served

from builders import opened
from holdfast.server.access import Tokens, token_file
from holdfast.server.http import ROUTED
from holdfast.testing.contracts import HashEmbedder
from holdfast.verbs import write_call

# Whose words hold which mark; nobody else may read it. "everyone" is what acme shares.
PEOPLE = {"ana": ("acme", "ana"), "bob": ("acme", "bob"), "carol": ("other", "carol"), "everyone": ("acme", "ana")}
MARK = "BELONGS-TO-"
# Token, and the person whose things it names.
STRANGERS = [("bob", "ana"), ("bob", "carol"), ("bob", "everyone"), ("acme", "carol"), ("other", "ana")]
READABLE = {"bob": {"bob", "everyone"}, "acme": {"ana", "bob", "everyone"}, "other": {"carol"}}


def furnish(memory):
    for name, (tenant, user) in PEOPLE.items():
        mark, scope = f"{MARK}{name}", "global" if name == "everyone" else None
        owner = {"user": user, "tenant": tenant, "scope": scope}
        memory.remember(f"the key is under the wisteria, {mark}", id=f"{name}-1", session=f"s-{name}", **owner)
        memory.remember(f"I live in {mark}", id=f"{name}-2", **owner)
        for core in (False, True):
            text = f"# Notes\n\n- Always answer in French, {mark}.\n"
            document = {**owner, "scope": scope or "user", "name": f"{name}-{core}.md", "core": core}
            memory.ingest(text, **document)


def kept(memory, name):
    """Return all that there is of somebody, for a comparison."""
    tenant, user = PEOPLE[name]
    own = None if name == "everyone" else user
    units = memory.list(user=user, tenant=tenant, limit=None, current_only=False)
    told = memory.assemble("which language?", user=user, tenant=tenant, track_access=False).text
    return [unit for unit in units if unit.user == own], told.count(f"{MARK}{name}")


def values(argument, name, unit):
    """Return what of somebody's an argument can name; `unit` is one of a document."""
    tenant, user = PEOPLE[name]
    ids, documents = [f"{name}-1", unit], [f"{name}-{core}.md" for core in (False, True)]
    return {
        "id": ids, "by": ids, "ids": [[one] for one in ids], "supersedes": [[one] for one in ids],
        "session": [f"s-{name}"], "document": documents, "name": documents, "scope": ["global", "session"],
        "all": [True], "whole": [True], "user": [user], "tenant": [tenant, ""],
        "filters": [{"user": user}, {"or": [{"tenant": tenant}, {"id": f"{name}-1"}]}],
        "content": [
            {"text": "x", "supersedes": [f"{name}-1"]}, {"text": "x", "id": f"{name}-1"},
            {"content": "x", "user": user, "tenant": tenant, "scope": "global", "session": f"s-{name}"},
        ],
    }.get(argument, [])  # fmt: skip


def calls(verb, name, unit):
    """Yield the arguments of calls that name somebody's things, one argument at a time."""
    usual = {"content": "x", "query": "key wisteria French", "source": "# x\n\nx", "text": "mine now", "by": "bob-1"}
    usual["messages"] = [{"role": "user", "content": "key wisteria French"}]
    base = {
        one.name: (values(one.name, name, unit) or [usual.get(one.name)])[0]
        for one in verb.arguments.values()
        if (one.needed and one.name != "user") or (verb.name, one.name) == ("update", "text")
    }
    yield {**base, **({"content": "x"} if "content" in base else {})}
    for argument in verb.arguments:
        for value in values(argument, name, unit):
            yield {**base, argument: value}


@pytest.mark.parametrize(("token", "name"), STRANGERS)
def test_whatever_a_token_names_of_others_stays_theirs(tmp_path, token, name):
    tokens = Tokens(token_file(tmp_path / "a.db"))
    secret = tokens.add(token, "other" if token == "other" else "acme", "bob" if token == "bob" else None)
    with opened(embedder=HashEmbedder()) as memory:
        furnish(memory)
        before = kept(memory, name)
        unit = next(one.id for one in before[0] if one.kind == "knowledge")
        with served(memory, tokens) as address, client(address, secret) as http:
            for verb in reversed(ROUTED):  # before there is something of its own under these names
                for arguments in calls(verb, name, unit):
                    call = write_call(verb, arguments)
                    query = call.query | ({"detail": "full"} if verb.brief else {})
                    headers = {"Content-Type": call.media_type} if call.media_type else {}
                    answer = http.request(call.method, call.path, params=query, content=call.body, headers=headers)
                    assert answer.status_code in (200, 403, 404, 422), (verb.name, arguments, answer.text)
                    given = json.dumps(arguments)
                    told = {*re.findall(rf"{MARK}(\w+)", answer.text)} - {*re.findall(rf"{MARK}(\w+)", given)}
                    assert told <= READABLE[token], (verb.name, arguments)
        assert kept(memory, name) == before
