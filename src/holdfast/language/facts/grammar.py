"""Verb groups and their objects: what a clause says, and whether it denies it."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.language.facts.phrases import Name, has_shape, is_verb, name, phrase_end
from holdfast.language.facts.sentences import Sentence
from holdfast.language.facts.vocabulary import (
    ADVERBS,
    AUXILIARIES,
    BE,
    LASTING,
    LONGEST_STATE,
    LONGEST_VERB,
    NEGATIONS,
    QUIT,
    STATES,
    VERBS,
    WAS,
    Form,
    Meaning,
    Shape,
)

_COPULA = Meaning("instance_of", "copula")
# The auxiliary before a verb decides which of its forms states something about now.
_FORMS: dict[str, tuple[Form, ...]] = {
    "": ("base", "third", "past"),
    "do": ("base",),
    "cannot": ("base",),
    "be": ("ing",),
    "have": ("past",),
    "been": ("ing",),
    "quit": ("ing",),
}
# Function words that say nothing about a verb.
_NO_VERBS = frozenset("to as than or nor not no so if because even again yet unless ever".split())
_CONTRASTS = (("not",), ("but", "not"), (",", "not"), (",", "but", "not"), ("instead", "of"), ("rather", "than"))


@dataclass(frozen=True, slots=True)
class Group:
    """A verb group: its meaning, where its objects begin, whether it is denied, the form its subject must fit."""

    meaning: Meaning
    end: int
    negated: bool
    form: Form | None = None
    verb: str = ""


@dataclass(frozen=True, slots=True)
class Object:
    """One object, as written, and whether it is set apart ("not Memcached")."""

    name: Name
    denied: bool = False


@dataclass(frozen=True, slots=True)
class _Opening:
    """What stands before the main verb."""

    end: int
    auxiliary: str
    negated: bool
    verb: str


def verb_group(s: Sentence, v: int) -> Group | None:
    """Return the verb group that begins at `v` and names a relation, if there is one."""
    opening = _opening(s, v)
    if opening is None:
        return None
    p, auxiliary = opening.end, opening.auxiliary
    if auxiliary in {"be", "was"} and (state := _state(s, opening)):
        return state
    for size in range(LONGEST_VERB, 0, -1):
        phrase = tuple(s.at(p + k) for k in range(size))
        if phrase in VERBS and VERBS[phrase][0] in _FORMS.get(auxiliary, ()):
            form, meaning = VERBS[phrase]
            agrees = form if auxiliary == "" else None
            return Group(meaning, p + size, opening.negated != meaning.denies, agrees, opening.verb or phrase[0])
    return None


def _opening(s: Sentence, v: int) -> _Opening | None:
    p, auxiliary, negated, verb = v, "", False, ""
    while p < len(s.tokens):
        word = s.at(p)
        if word in ADVERBS:
            p += 1
        elif word in NEGATIONS or s.says(p, ("no", "longer")):
            p, negated = p + (2 if word == "no" else 1), True
        elif following := _auxiliary(s, p, auxiliary):
            p, auxiliary, verb = p + 1, following, verb or word
            negated = negated or following == "quit"
        else:
            break
    return _Opening(p, auxiliary, negated, verb)


def _auxiliary(s: Sentence, p: int, before: str) -> str:
    """Return what kind of auxiliary stands at `p`, or nothing."""
    word = s.at(p)
    if before == "have" and word == "been":
        return "been"
    if before in {"", "have"} and word in QUIT:
        return "quit"
    return "" if before else _first_auxiliary(s, p)


def _first_auxiliary(s: Sentence, p: int) -> str:
    word = s.at(p)
    if word == "can":
        # What something can do says nothing about what it does; what it cannot, it does not.
        return "cannot" if s.at(p + 1) == "not" else ""
    if word in {"has", "have"}:
        return "have" if _is_perfect(s, p + 1) else ""
    if word in {"do", "does"}:
        return "do"
    return "be" if word in BE else "was" if word in WAS else ""


def _is_perfect(s: Sentence, p: int) -> bool:
    while s.at(p) in ADVERBS | NEGATIONS:
        p += 1
    return s.at(p) in QUIT | {"been"} or any(s.at(p) == k[0] and v[0] == "past" for k, v in VERBS.items())


def _state(s: Sentence, opening: _Opening) -> Group | None:
    p = opening.end
    for size in range(LONGEST_STATE, 0, -1):
        meaning = STATES.get(tuple(s.at(p + k) for k in range(size)))
        if meaning and (opening.auxiliary == "be" or meaning.relation in LASTING):
            return Group(meaning, p + size, opening.negated, None, opening.verb)
    if opening.auxiliary == "be" and s.at(p) in {"a", "an"}:
        return Group(_COPULA, p, opening.negated, None, opening.verb)
    return None


def objects(s: Sentence, p: int, shape: Shape, *, relative: bool = False) -> tuple[list[Object], int] | None:
    """Return the objects that begin at `p` and where they end; None where anything about them is in doubt.

    A list is read to its "and"; without one, what follows a comma is an apposition and is left out. "Or" leaves
    open which, and a first object that runs into another verb was no object.
    """
    denied = s.at(p) == "neither"
    p += denied
    first = _object(s, p, shape)
    if first is None or (_runs_on(s, first[1]) and not relative):
        return None
    found, end, listed = [Object(first[0], denied)], first[1], False
    last, here = end, end
    pending: list[Object] = []
    while (after := _conjunction(s, here)) and verb_group(s, after) is None:
        following = _object(s, after, shape)
        if following is None or _runs_on(s, following[1]):
            break
        closing = s.at(after - 1) != ","
        pending.append(Object(following[0], denied))
        here = following[1]
        if closing:
            found, last, pending, listed = found + pending, here, [], True
    if s.at(last) == "or" or s.at(here) == "or" or (s.at(here) == "," and s.at(here + 1) == "or"):
        return None
    if not listed and s.at(end) == "nor":
        return None
    return _with_contrast(s, found, last, shape)


def _with_contrast(s: Sentence, found: list[Object], end: int, shape: Shape) -> tuple[list[Object], int]:
    for words in _CONTRASTS:
        if s.says(end, words) and (other := _object(s, end + len(words), shape)):
            return [*found, Object(other[0], denied=True)], other[1]
    return found, end


def _object(s: Sentence, p: int, shape: Shape) -> tuple[Name, int] | None:
    end = phrase_end(s, p)
    found = name(s, p, end)
    return (found, end) if found and not found.first and has_shape(found.text, shape) else None


def _conjunction(s: Sentence, p: int) -> int:
    """Return where the words after a conjunction at `p` begin, or 0."""
    if s.says(p, ("as", "well", "as")):
        return p + 3
    if s.at(p) == "," and s.at(p + 1) in {"and", "&"}:
        return p + 2
    return p + 1 if s.at(p) in {",", "and", "&", "nor"} else 0


def _runs_on(s: Sentence, p: int) -> bool:
    """Return whether a verb follows at `p`."""
    word = s.at(p)
    if word in AUXILIARIES:
        return word not in _NO_VERBS
    return is_verb(word) or (word not in ADVERBS and verb_group(s, p) is not None)
