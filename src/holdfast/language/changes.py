"""Changed facts (C19): whether a new statement takes the place of an earlier one.

Conservative on purpose, because what is taken for replaced is no longer recalled by default. A change needs words
that say so ("moved", "new", "switched", "now", "no longer", "instead", "changed to"), or a relation that has one
value at a time with both sides plain present statements. Speaker and subject must be the same. Questions, hedges,
plans, reports, the past, additions ("also", "too") and what holds only at times ("at weekends", "until Friday")
never replace anything.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from holdfast.language.calendar import MONTHS
from holdfast.language.facts import Stated, extract, speaker_of, spoken_by, states_nothing
from holdfast.language.sentences import PROSE, is_asked, parts_in, read_sentence, remember_short
from holdfast.language.symbols import symbol
from holdfast.language.words import any_of, words
from holdfast.types import Unit

# Usually one value at a time: a second one replaces the first when its words speak of a change. Without such words
# "I live in England" may only say more about "I live in Leeds", so that the plain rule needs a declared relation.
_MARKED = frozenset({"lives_in", "works_at", "works_as", "married_to", "drives"})
_SINGLE = frozenset(words("changes", "single"))


def _any_of(name: str) -> re.Pattern[str]:
    return re.compile(rf"\b{any_of('changes', name)}\b", re.IGNORECASE)


_ADDS, _AT_TIMES, _ENDED, _MARKER = map(_any_of, ("adds", "at_times", "ended", "markers"))
# The first words of every marker, and what the patterns below ask for: most turns have none, and need not be read.
_CHANGE_WORDS = frozenset(words("changes", "first_words"))
_ANY_CHANGE = re.compile(
    rf"{_MARKER.pattern}|{_ENDED.pattern}|\b(?:actually|sorry|correction|no|rescheduled|postponed|shifted)\b",
    re.IGNORECASE,
)

# Words that somebody else says, or that are written for somebody: a colon, a quote, code, a text to work on.
QUOTING = re.compile(
    r"""[:"“”„«»`>]|\b(?:stor(?:y|ies)|letter|essay|poem|novel|script|lyrics|quote|proofread|translate|rewrite|draft)\b""",
    re.IGNORECASE,
)

_WEEKDAY = any_of("calendar", "weekdays")
_VALUE = r"(?P<value>[^,;:!?()]+?)"
# "My new phone is a Pixel", "Ana's address is now 9 Quay Street".
_ATTRIBUTE = re.compile(
    rf"^(?:actually,? |so,? |btw,? |by the way,? )?(?P<owner>my|our|[A-Z]\w+'s) (?P<new>new |current )?"
    rf"(?P<what>[a-z]+(?: [a-z]+){{0,2}}) (?:is|are) (?P<now>now )?{_VALUE}(?P<later> now)?[.!]*$",
    re.IGNORECASE,
)
# "The meeting is now at 4".
_DEFINITE = re.compile(
    rf"^(?:actually,? |so,? )?the (?P<what>[\w-]+(?: [\w-]+){{0,3}}?) (?:is|are) (?P<now>now )?"
    rf"(?P<where>at |on |in )?{_VALUE}(?P<later> now)?[.!]*$",
    re.IGNORECASE,
)
# "The meeting was moved to 4", "my address changed to 9 Quay Street".
_RESET = re.compile(
    rf"^(?P<owner>the|my|our) (?P<what>[\w-]+(?: [\w-]+){{0,3}}?) (?:(?:was|is|has been|got|has) )?(?:now |just )?"
    rf"(?P<verb>moved|changed|rescheduled|postponed|shifted) (?:from (?P<old>[^,;]+?) )?to {_VALUE}[.!]*$",
    re.IGNORECASE,
)
# "Actually it is Tuesday, not Monday".
_CORRECTION = re.compile(
    rf"^(?P<mark>actually|sorry|correction|no)[,:]? (?:it is|it's|that is|that's) (?:on |at |in )?{_VALUE},? not "
    r"(?:on |at |in )?(?P<old>[^,;:!?()]+?)[.!]*$",
    re.IGNORECASE,
)
# Small words inside a day or a time.
_SMALL = frozenset({"of", "pm", "am"})
_TIME = re.compile(r"^\d{1,2}(?:[:.]\d\d)?(?: ?[ap]\.?m\.?)?$", re.IGNORECASE)
_DAY = re.compile(rf"^(?:{_WEEKDAY}|\d{{1,2}}(?:st|nd|rd|th)? \w+|\w+ \d{{1,2}}(?:st|nd|rd|th)?)$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Assertion:
    """What a unit says that a later one could replace: one value in one slot of one subject.

    `marker` holds the words that speak of a change, `replaces` the value that is said to go; an `ended` assertion
    only takes its value away. A correction has no subject and no slot of its own.
    """

    speaker: str
    subject: str
    slot: str
    value: str
    start: int
    end: int
    marker: str = ""
    replaces: str = ""
    ended: bool = False
    adds: bool = False

    def may_change(self, functional: frozenset[str]) -> bool:
        """Return whether it may replace an earlier one, or take it away."""
        return bool(self.marker or self.replaces or self.ended or self.slot in functional)


@dataclass(frozen=True, slots=True)
class Change:
    """A replaced value: its slot, the value that goes, the one that comes ("" when none), the rule and the words."""

    slot: str
    old: str
    new: str
    rule: str
    words: str


def speaks_of_change(text: str) -> bool:
    """Return whether a text may say that something changed: a cheap look before it is read."""
    return not _CHANGE_WORDS.isdisjoint(parts_in(text)) and _ANY_CHANGE.search(text) is not None


@remember_short
def read_assertions(text: str, speaker: str) -> tuple[Assertion, ...]:
    """Return what `text`, said by `speaker`, states in a form that can replace or be replaced."""
    found: list[Assertion] = []
    stated = spoken_by(extract(text), speaker)
    for start, end in PROSE.spans(text):
        said = text[start:end]
        own = [one for one in stated if one.start == start]
        match = _first_match(said.replace("’", "'"))
        if not (own or match) or _AT_TIMES.search(said):
            continue
        found.extend(_from_facts(own, said, speaker))
        if match and not is_asked(text, start, end) and not states_nothing(read_sentence(text, start, end)):
            found.extend(_from_pattern(match, (start, end), speaker))
    return tuple(dict.fromkeys(found))


def read_told(unit: Unit) -> tuple[Assertion, ...]:
    """Return what a turn of a user asserts; any other unit nothing."""
    return read_assertions(unit.text, speaker_of(unit)) if unit.kind == "turn" and unit.author == "user" else ()


def find_changes(
    new: Iterable[Assertion], old: Iterable[Assertion], functional: frozenset[str] = frozenset()
) -> tuple[Change, ...]:
    """Return every change that the assertions of one unit make to those of an earlier one, each once."""
    earlier = tuple(old)
    found = (find_change(one, other, functional) for one in new for other in earlier)
    return tuple(dict.fromkeys(one for one in found if one))


def find_change(new: Assertion, old: Assertion, functional: frozenset[str] = frozenset()) -> Change | None:
    """Return how `new` changes what `old` said, or None. The caller knows that `new` is the later one.

    `functional` names the slots declared to have one value (C8: none by default), such as `lives_in` or `has car`:
    there a second plain statement is enough.
    """
    if new.speaker != old.speaker or old.ended or new.adds:
        return None
    rule = _rule(new, old, functional)
    return Change(old.slot, old.value, "" if new.ended else new.value, rule, new.marker) if rule else None


def _rule(new: Assertion, old: Assertion, functional: frozenset[str]) -> str:
    """Return the name of the rule by which `new` takes the place of `old`, or nothing."""
    if new.replaces and symbol(new.replaces) == symbol(old.value) and _may_replace(new, old):
        return "replaced"
    if symbol(new.subject) != symbol(old.subject) or not _fill_one_slot(new, old):
        return ""
    if new.ended:
        return "ended" if symbol(new.value) == symbol(old.value) else ""
    if not _differ(new.value, old.value):
        return ""
    if new.marker:
        marked = old.slot in functional | _MARKED or old.slot.startswith("is ") or _is_single(old.slot)
        return "marked" if marked else ""
    return "functional" if old.slot in functional else ""


def _may_replace(new: Assertion, old: Assertion) -> bool:
    """Return whether the value that `new` says goes can be the one of `old`."""
    if not new.slot:
        return True  # a correction names what it corrects
    if symbol(new.subject) == symbol(old.subject):
        return _fill_one_slot(new, old)
    # "I switched from the ThinkPad to …" is about "my laptop is a ThinkPad".
    return new.slot == "uses" and old.slot.startswith("has ") and old.subject == f"{new.subject} {old.slot[4:]}"


def _fill_one_slot(new: Assertion, old: Assertion) -> bool:
    """Return whether both fill one slot; "moved to Friday" fills whichever slot holds a day."""
    if new.slot != "is reset":
        return new.slot == old.slot
    return old.slot.startswith(("is ", "has ")) and _sort(new.value) == _sort(old.value)


def _sort(value: str) -> str:
    """Return what sort of value it is: a meeting at 3 that was moved to Friday may still be at 3."""
    return "time" if _TIME.match(value) else "day" if _DAY.match(value) else "name"


def _is_single(slot: str) -> bool:
    return slot.startswith("favourite_") or (slot.startswith("has ") and slot.rsplit(maxsplit=1)[-1] in _SINGLE)


def _differ(new: str, old: str) -> bool:
    """Return whether two values exclude each other; "Lisbon" and "Lisbon Portugal" only say more or less."""
    one, other = set(symbol(new).split()), set(symbol(old).split())
    return not one <= other and not other <= one


def _from_facts(stated: list[Stated], said: str, speaker: str) -> Iterator[Assertion]:
    if not stated:
        return
    marker, adds, ended = _MARKER.search(said), _ADDS.search(said) is not None, _ENDED.search(said)
    gone = {one.fact.relation: one.fact.object for one in stated if one.negated and one.rule in {"shift", "contrast"}}
    kept = {one.fact.relation for one in stated if not one.negated}
    for one in stated:
        parts = (speaker, one.fact.subject, one.fact.relation, one.fact.object, one.start, one.end)
        if not one.negated:
            mark = marker.group().lower() if marker else ""
            yield Assertion(*parts, mark, gone.get(one.fact.relation, ""), adds=adds)
        elif ended and one.fact.relation not in kept:
            yield Assertion(*parts, ended.group().lower(), ended=True)


def _first_match(said: str) -> re.Match[str] | None:
    return _CORRECTION.match(said) or _RESET.match(said) or _ATTRIBUTE.match(said) or _DEFINITE.match(said)


def _from_pattern(match: re.Match[str], span: tuple[int, int], speaker: str) -> Iterator[Assertion]:
    """Yield what a sentence says that is one of the patterns as a whole."""
    part = match.groupdict("")
    value, old = _bare(part["value"]), _bare(part.get("old", ""))
    if match.re is _CORRECTION:
        yield Assertion(speaker, "", "", value, *span, part["mark"].lower(), old)
        return
    what, mine = part["what"].lower(), part.get("owner", "the").lower() in {"my", "our"}
    owner = speaker if mine else part.get("owner", "")[:-2]
    adds = _ADDS.search(match.string) is not None
    marker = "now" if part.get("now") or part.get("later") else ""
    if not _is_definite(part["value"]) or (mine and not speaker):
        return
    if match.re is _RESET:
        subject = f"{speaker} {what}" if mine else what
        yield Assertion(speaker, subject, "is reset", value, *span, part["verb"].lower(), old)
    elif match.re is _DEFINITE:
        yield Assertion(speaker, what, f"is {part['where'].strip().lower()}", value, *span, marker, adds=adds)
    elif not what.startswith(("favourite ", "favorite ")):  # the rules for facts read favourites
        marker = "new" if part["new"].strip().lower() == "new" else marker
        yield Assertion(speaker, f"{owner} {what}", f"has {what}", value, *span, marker, adds=adds)


def _bare(value: str) -> str:
    return re.sub(r"^(?:a|an|the|on|at|in) ", "", value.strip().rstrip("."), flags=re.IGNORECASE)


def _is_definite(value: str) -> bool:
    """Return whether a value could be told apart from another: a number, a day, a name, an identifier, "a Pixel"."""
    said = value.strip().split()
    if not 0 < len(said) <= 5 or said[0].lower() in {"not", "no", "on", "at", "in", "so", "very", "more"}:
        return False
    bare = _bare(value).split()
    return bool(bare) and all(_tells(word) or word.lower() in MONTHS or word.lower() in _SMALL for word in bare)


def _tells(word: str) -> bool:
    return any(c.isdigit() or c.isupper() for c in word) or "@" in word
