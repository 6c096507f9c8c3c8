"""Verbs of change: "moved from A to B" says where somebody lives and where no longer."""

from __future__ import annotations

from holdfast.language.facts.grammar import Group, Object
from holdfast.language.facts.phrases import Name, has_shape, name, phrase_end
from holdfast.language.facts.sentences import Sentence
from holdfast.language.facts.vocabulary import ADVERBS, Meaning, Shape

_MOVED = frozenset({"moved", "relocated"})
_SWITCHED = frozenset({"switched", "migrated"})
_RULE = "shift"
_LIVES = Meaning("lives_in", _RULE, shape="place")
_USES = Meaning("uses", _RULE)
_WORKS = Meaning("works_at", _RULE, shape="name")
# A move of long ago need not be the last one.
_LONG_AGO = frozenset(
    "years year decade decades childhood child kid boy girl teenager college university when before then once".split()
)

_COMING_BACK = frozenset("early late today yesterday tonight at around for to after with".split())


def shift(s: Sentence, v: int) -> tuple[Group, list[Object], int] | None:
    """Return what a verb of change at `v` states, with its objects and where they end."""
    p = v
    while s.at(p) in ADVERBS or (s.at(p) in {"has", "have"} and p == v):
        p += 1
    verb = s.at(p)
    if verb in _MOVED | _SWITCHED:
        return _moved(s, p + 1, _LIVES if verb in _MOVED else _USES)
    if verb == "replaced" and (old := _part(s, p + 1, "thing")) and s.at(old[1]) == "with":
        return _ended(s, _USES, old, _part(s, old[1] + 1, "thing"))
    if verb in {"joined", "left"} and (found := _part(s, p + 1, "name")):
        group = Group(_WORKS, p + 1, negated=verb == "left", verb=verb)
        return (
            None
            if _long_ago(s, found[1]) or (verb == "left" and _for_now(s, found[1]))
            else (group, [Object(found[0])], found[1])
        )
    return None


def _moved(s: Sentence, p: int, meaning: Meaning) -> tuple[Group, list[Object], int] | None:
    p += s.at(p) in {"back", "over"}
    if s.at(p) == "from" and (old := _part(s, p + 1, meaning.shape)) and s.at(old[1]) == "to":
        return _ended(s, meaning, old, _part(s, old[1] + 1, meaning.shape))
    if s.at(p) in {"away", "out"} and s.at(p + 1) in {"from", "of"} and (old := _part(s, p + 2, meaning.shape)):
        return Group(meaning, p, negated=True, verb="moved"), [Object(old[0])], old[1]
    if s.at(p) == "to" and (new := _part(s, p + 1, meaning.shape)) and not _long_ago(s, new[1]):
        return Group(meaning, p, negated=False, verb="moved"), [Object(new[0])], new[1]
    return None


def _ended(
    s: Sentence, meaning: Meaning, old: tuple[Name, int], new: tuple[Name, int] | None
) -> tuple[Group, list[Object], int] | None:
    if new is None or _long_ago(s, new[1]):
        return None
    return Group(meaning, old[1], negated=False), [Object(new[0]), Object(old[0], denied=True)], new[1]


def _part(s: Sentence, p: int, shape: Shape) -> tuple[Name, int] | None:
    end = phrase_end(s, p)
    found = name(s, p, end)
    return (found, end) if found and not found.first and has_shape(found.text, shape) else None


def _for_now(s: Sentence, p: int) -> bool:
    """Return whether somebody only left for the day."""
    return any(token.text in _COMING_BACK for token in s.tokens[p:])


def _long_ago(s: Sentence, p: int) -> bool:
    rest = [token.text for token in s.tokens[p:]]
    recent = "last" in rest or "this" in rest
    return any(word in _LONG_AGO and not (recent and word == "year") for word in rest) or any(
        len(word) == 4 and word.isdigit() for word in rest
    )
