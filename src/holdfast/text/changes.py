"""Changed facts (C19): whether a new statement takes the place of an earlier one.

Conservative on purpose, because what is taken for replaced is no longer recalled by default. A change needs words
that say so ("moved", "new", "switched", "now", "no longer", "instead"), or a relation that has one value at a time
with both sides plain present statements. What is stated is what facts are read of: speaker and subject must be the
same. Questions, hedges, plans, reports, the past, additions ("also", "too") and what holds only at times ("at
weekends", "until Friday") never replace anything.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from holdfast.text.facts import StatedTriple, extract, resolve_speaker, speaker_of
from holdfast.text.names import symbol
from holdfast.text.sentences import PROSE, memoize_short, parts_in
from holdfast.text.words import any_of, regex, words
from holdfast.types import Unit
from holdfast.values import dataclass

# Usually one value at a time: a second one replaces the first when its words speak of a change. Without such words
# "I live in England" may only say more about "I live in Leeds", so that the plain rule needs a declared relation.
_MARKED = frozenset({"lives_in", "works_at", "works_as", "married_to", "drives"})


def _any_of(name: str) -> re.Pattern[str]:
    return regex(rf"\b{any_of('changes', name)}\b", re.IGNORECASE)


_ADDS, _AT_TIMES, _ENDED, _MARKER = map(_any_of, ("adds", "at_times", "ended", "markers"))
# The first words of every marker, and of what ends something: most turns have none, and need not be read.
_CHANGE_WORDS = frozenset(words("changes", "first_words"))

# Words that somebody else says, or that are written for somebody: a colon, a quote, code, a text to work on.
_QUOTING = regex(
    r"""(?<!\d)(?<!update)(?<!news):|["“”„«»`>]|\b(?:stor(?:y|ies)|letter|essay|poem|novel|script|lyrics|quote|proofread|translate|rewrite|draft)\b""",
    re.IGNORECASE,
)
_TITLE = regex(r"""["“«](?![^"“”«»]*\b(?:i|we|my|our)\b)[^"“”«»\n]*["”»]""", re.IGNORECASE)

# Where one clause of a sentence ends: a mark, or a conjunction with a new subject behind it.
_SUBJECT = regex(r"(?:i|we|my|our|the|he|she|it|they|you|which|so|because|since|but)\b", re.IGNORECASE)
_CUT = regex(
    r"(?:[,;:—–]|\s-)\s+(?:(?:and|but|so|because|while|though|then)\s+)?"
    rf"|\s(?:and|but|so|because|while|since|though)\s+(?={_SUBJECT.pattern})",
    re.IGNORECASE,
)
# In characters, and of a sentence: they bound the search, and nobody tells a change at such length.
_LONGEST_CLAUSE, _MOST_CLAUSES = 200, 64


@dataclass(frozen=True, slots=True)
class Assertion:
    """What a unit says that a later one could replace: one value in one slot of one subject.

    `marker` holds the words that speak of a change, `replaces` the value that is said to go; an `ended` assertion
    only takes its value away.
    """

    speaker: str
    subject: str
    slot: str
    value: str
    marker: str = ""
    replaces: str = ""
    ended: bool = False
    adds: bool = False

    def may_change(self, functional: frozenset[str]) -> bool:
        """Return whether it may replace an earlier one, or take it away."""
        return bool(self.marker or self.replaces or self.ended or self.slot in functional)


@dataclass(frozen=True, slots=True)
class StatementChange:
    """A replaced value: its slot, the value that goes, the one that comes ("" when none), the rule and the words."""

    slot: str
    old: str
    new: str
    rule: str
    words: str


def is_quoting(text: str) -> bool:
    """Return whether a text holds words that its speaker may not mean; the quoted title of a book is none."""
    return _QUOTING.search(_TITLE.sub("", text)) is not None


def speaks_of_change(text: str) -> bool:
    """Return whether a text may say that something changed: a cheap look before it is read."""
    if _CHANGE_WORDS.isdisjoint(parts_in(text)):
        return False
    return _MARKER.search(text) is not None or _ENDED.search(text) is not None


@memoize_short
def read_assertions(text: str, speaker: str) -> tuple[Assertion, ...]:
    """Return what `text`, said by `speaker`, states in a form that can replace or be replaced."""
    found: list[Assertion] = []
    stated = resolve_speaker(extract(text), speaker)
    for start, end in PROSE.spans(text) if stated else ():
        said = text[start:end].replace("’", "'")
        if (own := [one for one in stated if one.start == start]) and not _AT_TIMES.search(said):
            found.extend(_read_sentence(own, said, speaker))
    return tuple(dict.fromkeys(found))


def read_assertions_of(unit: Unit) -> tuple[Assertion, ...]:
    """Return what a turn of a user asserts; any other unit nothing."""
    return read_assertions(unit.text, speaker_of(unit)) if unit.kind == "turn" and unit.author == "user" else ()


def find_changes(
    new: Iterable[Assertion], old: Iterable[Assertion], functional: frozenset[str] = frozenset()
) -> tuple[StatementChange, ...]:
    """Return every change that the assertions of one unit make to those of an earlier one, each once."""
    earlier = tuple(old)
    found = (find_change(one, other, functional) for one in new for other in earlier)
    return tuple(dict.fromkeys(one for one in found if one))


def find_change(new: Assertion, old: Assertion, functional: frozenset[str] = frozenset()) -> StatementChange | None:
    """Return how `new` changes what `old` said, or None. The caller knows that `new` is the later one.

    `functional` names the slots declared to have one value (C8: none by default), such as `lives_in`: there a second
    plain statement is enough.
    """
    if new.speaker != old.speaker or old.ended or new.adds:
        return None
    rule = _rule(new, old, functional)
    return StatementChange(old.slot, old.value, "" if new.ended else new.value, rule, new.marker) if rule else None


def _rule(new: Assertion, old: Assertion, functional: frozenset[str]) -> str:
    """Return the name of the rule by which `new` takes the place of `old`, or nothing."""
    if new.slot != old.slot or symbol(new.subject) != symbol(old.subject):
        return ""
    if new.replaces and symbol(new.replaces) == symbol(old.value):
        return "replaced"
    if new.ended:
        return "ended" if symbol(new.value) == symbol(old.value) else ""
    if not _differ(new.value, old.value):
        return ""
    if new.marker and (old.slot in functional | _MARKED or old.slot.startswith("favourite_")):
        return "marked"
    return "functional" if old.slot in functional else ""


def _differ(new: str, old: str) -> bool:
    """Return whether two values exclude each other; "Lisbon" and "Lisbon Portugal" only say more or less."""
    one, other = set(symbol(new).split()), set(symbol(old).split())
    return not one <= other and not other <= one


def _read_sentence(stated: list[StatedTriple], said: str, speaker: str) -> Iterator[Assertion]:
    adds, ended = _ADDS.search(said) is not None, _ENDED.search(said)
    gone = {one.fact.relation: one.fact.object for one in stated if one.negated and one.rule in {"shift", "contrast"}}
    kept = {one.fact.relation for one in stated if not one.negated}
    clauses = [clause[:_LONGEST_CLAUSE] for clause in _CUT.split(said, _MOST_CLAUSES)]
    for one in stated:
        parts = (speaker, one.fact.subject, one.fact.relation, one.fact.object)
        if not one.negated:
            # The words of change stand in the clause of the value: "I live in Leeds and I have a new job".
            clause = next((clause for clause in clauses if one.fact.object in clause), said[:_LONGEST_CLAUSE])
            marker = _MARKER.search(clause.replace(one.fact.object, ""))  # "New York" is not new
            mark = marker.group().lower() if marker else ""
            yield Assertion(*parts, mark, gone.get(one.fact.relation, ""), adds=adds)
        elif ended and one.fact.relation not in kept:
            yield Assertion(*parts, ended.group().lower(), ended=True)
