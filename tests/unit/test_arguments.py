"""Keywords that many verbs share: shown by `help`, and refused by name when they are wrong."""

import inspect

import pytest

from builders import opened
from holdfast import InputError, Memory

VERBS = {name: verb for name, verb in inspect.getmembers(Memory, callable) if not name.startswith("_")}
OWNER = ["user", "agent", "tenant"]
VIEW = ["user", "session", "agent", "tenant", "filters", "only_session", "current_only", "reference_time", "as_of"]


def keywords(verb):
    return [one.name for one in inspect.signature(verb).parameters.values() if one.kind is one.KEYWORD_ONLY]


@pytest.mark.parametrize("name", VERBS)
def test_every_keyword_is_spelled_out(name):
    assert all(one.kind is not one.VAR_KEYWORD for one in inspect.signature(VERBS[name]).parameters.values())


@pytest.mark.parametrize("name", ["get", "widen", "history", "expand", "reinstate", "decisions"])
def test_a_verb_for_one_unit_names_its_owner(name):
    assert keywords(VERBS[name]) == OWNER


@pytest.mark.parametrize("name", ["search", "assemble", "why"])
def test_a_verb_that_answers_names_what_it_sees(name):
    assert keywords(VERBS[name])[: len(VIEW)] == VIEW
    defaults = {one.name: one.default for one in inspect.signature(VERBS[name]).parameters.values()}
    assert (defaults["session"], defaults["only_session"], defaults["current_only"]) == (None, False, True)
    assert defaults["user"] is inspect.Parameter.empty


# An export may be of everybody, an import names its users, and a list of users needs none.
ANYBODYS = ("export", "import_", "users")
OWNED = [name for name, verb in VERBS.items() if "user" in keywords(verb) and name not in ANYBODYS]


@pytest.mark.parametrize("name", OWNED)
def test_a_wrong_keyword_and_a_missing_owner_are_refused_by_name(name):
    with opened() as memory:
        verb = getattr(memory, name)
        needed = [one for one in inspect.signature(verb).parameters.values() if one.default is one.empty]
        given = ["x"] * sum(one.kind is one.POSITIONAL_OR_KEYWORD for one in needed)
        named = {"supersede": {"by": "y"}, "ingest": {"name": "n"}, "update": {"text": "t"}}
        named = (named | {"overrule": {"decision": "earlier"}}).get(name, {})
        with pytest.raises(TypeError, match=rf"{name}\(\).*'usr'"):
            verb(*given, usr="ana", **named)
        with pytest.raises(TypeError, match=rf"{name}\(\).*'user'"):
            verb(*given, **named)
        with pytest.raises(InputError, match="user is missing"):
            verb(*given, user=None, **named)


def test_an_update_without_a_change_says_what_can_be_changed():
    with opened() as memory, pytest.raises(InputError, match="one of text, topic, metadata, pinned, ttl, valid_from"):
        memory.update("x", user="ana")
