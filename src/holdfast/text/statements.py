"""What turns state, read together: values, corrections, standing requests, and which statement ended which (C19).

Nothing of this is stored. The words are read again in the order in which they were said, so that a table of facts
always fits the units that are left. A unit may state several facts of which one has changed: that fact ends, while
the unit is still recalled. The cues of a change are a cheap reading for ranking: no single sign is sure, and they are
weighed together.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from itertools import pairwise

from holdfast.text.changes import Assertion, find_change, is_quoting, read_assertions_of
from holdfast.text.facts import facts_of, speaker_of
from holdfast.text.instructions import Instruction, instructions_of
from holdfast.text.names import Aliases
from holdfast.text.words import any_of, entries, regex, words
from holdfast.types import KnownFact, Unit
from holdfast.values import dataclass


@dataclass(slots=True)
class LedgerEntry:
    """A fact or an instruction while statements are entered: what a later one may change, and who said it."""

    said: Assertion
    units: list[Unit]
    confidence: float = 1.0
    document: str = ""
    told: Instruction | None = None
    replaced: LedgerEntry | None = None
    ended_by: Unit | None = None

    def known(self, current: frozenset[str], successors: Mapping[str, Unit]) -> KnownFact:
        """Return the fact as it stands at the end; it holds while a unit that states it does."""
        first, last, said, replaced = self.units[0], self.units[-1], self.said, self.replaced
        holds = self.ended_by is None and any(unit.id in current for unit in self.units)
        ended_by = None if holds else self.ended_by or successors.get(last.superseded_by or "")
        return KnownFact(
            subject=said.subject, relation=said.slot, value=said.value,
            since=first.valid_from or first.event_time, sources=tuple(dict.fromkeys(unit.id for unit in self.units)),
            confidence=self.confidence, document=self.document, current=holds,
            replaced=replaced.said.value if replaced else "", replaced_in=replaced.units[-1].id if replaced else "",
            until=ended_by.event_time if ended_by else None if holds else last.valid_to,
            ended_by=ended_by.id if ended_by else "",
        )  # fmt: skip


@dataclass(slots=True)
class StatementLedger:
    """Statements by what they say, entered in the order in which they were said."""

    aliases: Aliases
    functional: frozenset[str] = frozenset()
    successors: Mapping[str, Unit] = field(default_factory=dict)
    holding: dict[tuple[str, ...], LedgerEntry] = field(default_factory=dict)
    ended: list[LedgerEntry] = field(default_factory=list)

    def enter(self, unit: Unit, document: str) -> None:
        """Enter what a unit states; what it changes ends first."""
        said = read_assertions_of(unit) if unit.fact is None else ()
        changing = [one for one in said if one.may_change(self.functional) and not is_quoting(unit.text)]
        replaced = []
        if changing or unit.id in self.successors:
            own = [entry for entry in self.holding.values() if not entry.document]
            replaced = [entry for entry in own if all(one.superseded_by == unit.id for one in entry.units)]
            for new in changing:
                replaced += [one for one in own if not one.told and find_change(new, one.said, self.functional)]
        self._end(replaced, unit)
        for statement, confidence in _statements(unit):
            self._add(LedgerEntry(statement, [unit], confidence, document), replaced)

    def instruct(self, unit: Unit) -> None:
        """Enter what a user tells the assistant, in their own words; what it takes back ends first."""
        speaker = speaker_of(unit)
        for told in instructions_of(unit) if unit.user is not None else ():
            known = [entry for entry in self.holding.values() if entry.told and told.ends(entry.told)]
            gone = [entry for entry in known if entry.said.speaker == speaker]
            self._end(gone, unit)
            if not told.revokes:
                said = Assertion(speaker, speaker, "instruction", told.text)
                self._add(LedgerEntry(said, [unit], told=told), gone)

    def _end(self, entries: Sequence[LedgerEntry], unit: Unit) -> None:
        for entry in {id(entry): entry for entry in entries}.values():
            entry.ended_by = unit
            self.ended.append(entry)
            del self.holding[self._key(entry)]

    def _add(self, new: LedgerEntry, replaced: Sequence[LedgerEntry]) -> None:
        known = self.holding.setdefault(self._key(new), new)
        if known is not new:
            known.units += new.units
            known.confidence = max(known.confidence, new.confidence)
        for old in replaced if known is new else ():
            new.replaced = old if self._key(old)[:2] == self._key(new)[:2] else new.replaced

    def _key(self, entry: LedgerEntry) -> tuple[str, ...]:
        said, symbol = entry.said, self.aliases.symbol if entry.told is None else str  # a sentence is no name
        return (symbol(said.subject), said.slot, symbol(said.value), entry.document)


def _statements(unit: Unit) -> Iterator[tuple[Assertion, float]]:
    for fact in dict.fromkeys(fact for fact, _ in facts_of(unit)):
        yield Assertion(speaker_of(unit), fact.subject, fact.relation, fact.object), fact.confidence


# Of a longer turn the beginning is read: who tells a change needs a few sentences, and a long list has to be read.
_MOST_CHARACTERS = 400
# What more of the turns at hand hold than this is what all of them are about.
_RARE = 3
# So many rare words in common leave no doubt that two turns speak of one thing.
_ENOUGH_SHARED = 4

_BLANKS = str.maketrans(dict.fromkeys(string.punctuation + "\u2018\u2019\u201c\u201d\u2026\u2013\u2014", " "))
_SENTENCE = regex(r"(?<=[.!?\n])\s+")
_STOP, _CUES = frozenset(words("lexical", "stop")), frozenset(words("current", "cues"))
_CUE_PAIRS = frozenset(tuple(pair.split()) for pair in words("current", "cue_pairs"))
_CORRECTION = regex(
    rf"^\W*(?:{any_of('current', 'before_correction')}\W+)*{any_of('current', 'opens_correction')}\b"
    rf"|\b{any_of('current', 'corrects')}\b",
    re.IGNORECASE,
)

_TOKEN = regex(r"[$£€%]|\d+(?:[.,:]\d+)*(?:st|nd|rd|th)?|[^\W\d_]+(?:'[a-z]+)?")
_ORDINAL = regex(r"(?<=\d)(?:st|nd|rd|th)$")
_NUMBERS = frozenset((*words("calendar", "numbers"), *words("calendar", "tens")))
_MONTHS, _BEFORE_TIME = frozenset(words("calendar", "months")), frozenset(words("current", "before_time"))
_DAYS = {name: day for day in words("calendar", "weekdays") for name in (day, f"{day}s")}
# What stands behind a number tells what it is; one that nothing tells of counts something.
_KINDS = {unit: kind for kind, units in entries("current", "units").items() for unit in units.split()}
_ASKED_FOR = tuple(
    (regex(rf"\b(?:{pattern})\b"), frozenset(kinds.split()))
    for kinds, pattern in entries("current", "asked_for").items()
)
_YES_OR_NO = regex(rf"(?:\W|\b{any_of('current', 'before_correction')}\b)*{any_of('current', 'yes_or_no')}\b")


# ------------------------------------------------------------------------------------------------- the reading

# Its kind, and its number or name.
Value = tuple[str, str]


@dataclass(frozen=True, slots=True)
class CueSentence:
    """A sentence of a turn: its words, and whether it tells of a change."""

    words: frozenset[str]
    changes: bool


@dataclass(frozen=True, slots=True)
class TurnCues:
    """A turn as its signs are looked for."""

    words: frozenset[str]
    sentences: tuple[CueSentence, ...]


@dataclass(frozen=True, slots=True)
class QuestionCues:
    """A question: its words, the kinds of value that would answer it, and the values that it holds itself."""

    words: frozenset[str]
    kinds: frozenset[str]
    values: frozenset[Value]


def read_cues(text: str) -> TurnCues:
    """Read the beginning of a turn."""
    sentences = tuple(_read(part) for part in _sentences(text))
    return TurnCues(frozenset[str]().union(*(sentence.words for sentence in sentences)), sentences)


def _sentences(text: str) -> list[str]:
    return [part for part in _SENTENCE.split(text[:_MOST_CHARACTERS].casefold()) if part.strip()]


def _read(sentence: str) -> CueSentence:
    said = sentence.translate(_BLANKS).split()
    return CueSentence(_content(said), _has_cues(said))


def _content(said: Sequence[str]) -> frozenset[str]:
    """Return the words that are no function words, without the s of a plural."""
    return frozenset([word.removesuffix("s") for word in said if word not in _STOP])


def _has_cues(said: Sequence[str]) -> bool:
    return not _CUES.isdisjoint(said) or not _CUE_PAIRS.isdisjoint(pairwise(said))


def read_question_cues(text: str) -> QuestionCues:
    """Read a question as turns are read."""
    plain = text[:_MOST_CHARACTERS].casefold().replace("\u2019", "'")
    # A question for yes or no asks for no value, whatever it holds.
    asked = () if _YES_OR_NO.match(plain) else _ASKED_FOR
    kinds = frozenset[str]().union(*(kinds for pattern, kinds in asked if pattern.search(plain)))
    return QuestionCues(read_cues(text).words, kinds, read_values(text))


def read_values(text: str) -> frozenset[Value]:
    """Return the values that the beginning of a turn holds."""
    said = ["", *_TOKEN.findall(text[:_MOST_CHARACTERS].casefold()), ""]
    found = [
        (_find_kind(said[place - 1], word, said[place + 1]), _ORDINAL.sub("", word.replace(",", "")))
        for place, word in enumerate(said)
        if word[:1].isdigit() or word in _NUMBERS
    ]
    return frozenset((*found, *(("time", _DAYS[word]) for word in said if word in _DAYS)))


def _find_kind(before: str, number: str, after: str) -> str:
    """Return what a number is, by itself and by the words beside it."""
    if before in _KINDS and not before.isalpha():
        return _KINDS[before]
    if ":" in number or _ORDINAL.search(number) or not _MONTHS.isdisjoint((before, after)):
        return "time"
    if before in _BEFORE_TIME and after not in _KINDS:
        return "time"
    return _KINDS.get(after, "count")


def is_correction(text: str) -> bool:
    """Return whether a turn puts right what was said just before: "no wait, the 21st"."""
    return _CORRECTION.search(text[:_MOST_CHARACTERS]) is not None


def find_rare(turns: Sequence[TurnCues]) -> frozenset[str]:
    """Return the words that few of the turns hold."""
    counts = Counter(word for turn in turns for word in turn.words)
    return frozenset([word for word, count in counts.items() if count <= _RARE])


def tells_change(asked: QuestionCues, older: TurnCues, newer: TurnCues) -> bool:
    """Return whether what is nearest to the question and the earlier turn has words of change.

    Of sentences that are equally near, one with words of change is enough.
    """
    about = asked.words | older.words
    near = [len(sentence.words & about) for sentence in newer.sentences]
    said = zip(newer.sentences, near, strict=True)
    return any(sentence.changes for sentence, common in said if common == max(near))


def share_rare_words(asked: QuestionCues, older: TurnCues, newer: TurnCues, rare: frozenset[str]) -> float:
    """Return how far two turns speak of one thing beside what is asked: 1 for four rare words or more."""
    return min(len((older.words & newer.words & rare) - asked.words) / _ENOUGH_SHARED, 1.0)


def has_other_value(asked: QuestionCues, older: frozenset[Value], newer: frozenset[Value]) -> bool | None:
    """Return whether the later turn holds another value of the kind that is asked for; None if the earlier has none.

    Who asks for a value and was told one is told another one by what replaces it.
    """
    if not any(value[0] in asked.kinds for value in older - asked.values):
        return None
    return any(value[0] in asked.kinds for value in newer - older - asked.values)
