"""Symbols and aliases (C8: case-folded symbols)."""

import pytest

from holdfast.text.names import Aliases, learned_aliases, symbol, symbol_tokens


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("Sandboxing", "sandboxing"),
        ("  The   Wheel ", "wheel"),
        ('"Quoted"', "quoted"),
        ("“Curly”", "curly"),
        ("Ana's phone", "ana phone"),
        ("the boss’s", "boss"),
        ("capabilities", "capability"),
        ("Capabilities", "capability"),
        ("live databases", "live database"),
        ("members of the crew", "member of the crew"),
        ("boxes", "box"),
        ("classes", "class"),
        ("redis", "redis"),
        ("Kubernetes", "kubernetes"),
        ("analysis", "analysis"),
        ("Jenkins", "jenkins"),
        ("James", "james"),
        ("Windows", "windows"),
        ("series", "series"),
        ("C++", "c++"),
        ("C#", "c#"),
        (".NET", ".net"),
        ("node.js 20", "node.js 20"),
        ("snake_case-key", "snake case key"),
        ("a", "a"),
        ("...", ""),
        ("STRASSE", "strasse"),
        ("straße", "strasse"),
        ("cafe\u0301", "café"),
    ],
)
def test_a_name_has_one_key(text, key):
    assert symbol(text) == key


def test_tokens_are_singular_whole_and_without_function_words():
    assert symbol_tokens("members of the crew") == ("member", "crew")
    assert symbol_tokens("c++") == ("c++",)
    assert symbol_tokens("about") == ("about",)
    assert symbol_tokens("") == ()


def test_aliases_lead_to_the_smallest_name_of_their_group():
    aliases = Aliases.of([("Postgres", "PostgreSQL"), ("PostgreSQL", "pg"), ("pg", "Postgres")])
    assert {aliases.symbol(name) for name in ("Postgres", "PostgreSQL", "PG")} == {"pg"}
    assert aliases.symbol("Redis") == "redis"


def test_an_empty_name_is_no_alias():
    assert Aliases.of([("...", "Redis")]) == Aliases.of([])


@pytest.mark.parametrize(
    ("text", "pairs"),
    [
        ("Kestrel, also known as Windhover, is fast.", (("Kestrel", "Windhover"),)),
        ("We met Bo Lind (aka Red Fox).", (("Bo Lind", "Red Fox"),)),
        ("The Harbour Control System (HCS) is down.", (("Harbour Control System", "HCS"),)),
        ("Ask the department of public works (DPW).", (("department of public works", "DPW"),)),
        ("Our planner (HCS) is down.", ()),
        ("also known as nothing", ()),
    ],
)
def test_aliases_are_found_where_a_text_declares_them(text, pairs):
    assert learned_aliases(text) == pairs
