"""What is current: signs that a later turn takes the place of an earlier one.

A cheap reading for ranking, not for facts: nothing is superseded by it. People tell a change in many ways, so that no
single sign is sure; the stage weighs them together.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from holdfast.language.words import any_of, entries, words

# Of a longer turn the beginning is read: who tells a change needs a few sentences, and a long list has to be read.
_MOST_CHARACTERS = 400
# What more of the turns at hand hold than this is what all of them are about.
_RARE = 3
# So many rare words in common leave no doubt that two turns speak of one thing.
_ENOUGH_SHARED = 4

_BLANKS = str.maketrans(dict.fromkeys(string.punctuation + "\u2018\u2019\u201c\u201d\u2026\u2013\u2014", " "))
_SENTENCE = re.compile(r"(?<=[.!?\n])\s+")
_STOP, _CUES = frozenset(words("lexical", "stop")), frozenset(words("current", "cues"))
_CUE_PAIRS = frozenset(tuple(pair.split()) for pair in words("current", "cue_pairs"))
_CORRECTION = re.compile(
    rf"^\W*(?:{any_of('current', 'before_correction')}\W+)*{any_of('current', 'opens_correction')}\b"
    rf"|\b{any_of('current', 'corrects')}\b",
    re.IGNORECASE,
)
_ASKS = re.compile(rf"(?:\W|\b{any_of('current', 'before_correction')}\b)*\b{any_of('questions', 'openers')}\b")

_TOKEN = re.compile(r"[$£€%]|\d+(?:[.,:]\d+)*(?:st|nd|rd|th)?|[^\W\d_]+(?:'[a-z]+)?")
_ORDINAL = re.compile(r"(?<=\d)(?:st|nd|rd|th)$")
_NUMBERS = frozenset((*words("calendar", "numbers"), *words("calendar", "tens")))
_MONTHS, _BEFORE_TIME = frozenset(words("calendar", "months")), frozenset(words("current", "before_time"))
_DAYS = {name: day for day in words("calendar", "weekdays") for name in (day, f"{day}s")}
# What stands behind a number tells what it is; one that nothing tells of counts something.
_KINDS = {unit: kind for kind, units in entries("current", "units").items() for unit in units.split()}
_ASKED_FOR = tuple(
    (re.compile(rf"\b(?:{pattern})\b"), frozenset(kinds.split()))
    for kinds, pattern in entries("current", "asked_for").items()
)
_YES_OR_NO = re.compile(rf"(?:\W|\b{any_of('current', 'before_correction')}\b)*{any_of('current', 'yes_or_no')}\b")

# Its kind, and its number or name.
Value = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence of a turn: its words, whether it tells of a change, and whether it asks."""

    words: frozenset[str]
    changes: bool
    asks: bool


@dataclass(frozen=True, slots=True)
class Told:
    """A turn as its signs are looked for."""

    words: frozenset[str]
    sentences: tuple[Sentence, ...]


@dataclass(frozen=True, slots=True)
class Asked:
    """A question: its words, the kinds of value that would answer it, and the values that it holds itself."""

    words: frozenset[str]
    kinds: frozenset[str]
    values: frozenset[Value]


def read_told(text: str) -> Told:
    """Read the beginning of a turn."""
    sentences = tuple(_read(part) for part in _sentences(text))
    return Told(frozenset[str]().union(*(sentence.words for sentence in sentences)), sentences)


def _sentences(text: str) -> list[str]:
    return [part for part in _SENTENCE.split(text[:_MOST_CHARACTERS].casefold()) if part.strip()]


def _read(sentence: str) -> Sentence:
    said = sentence.translate(_BLANKS).split()
    asks = sentence.rstrip().endswith("?") and _ASKS.match(sentence) is not None
    return Sentence(_content(said), _tells_change(said), asks)


def _content(said: Sequence[str]) -> frozenset[str]:
    """Return the words that are no function words, without the s of a plural."""
    return frozenset([word.removesuffix("s") for word in said if word not in _STOP])


def _tells_change(said: Sequence[str]) -> bool:
    return not _CUES.isdisjoint(said) or not _CUE_PAIRS.isdisjoint(pairwise(said))


def read_asked(text: str) -> Asked:
    """Read a question as turns are read."""
    plain = text[:_MOST_CHARACTERS].casefold().replace("\u2019", "'")
    # A question for yes or no asks for no value, whatever it holds.
    asked = () if _YES_OR_NO.match(plain) else _ASKED_FOR
    kinds = frozenset[str]().union(*(kinds for pattern, kinds in asked if pattern.search(plain)))
    return Asked(read_told(text).words, kinds, read_values(text))


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


def corrects(text: str) -> bool:
    """Return whether a turn puts right what was said just before: "no wait, the 21st"."""
    return _CORRECTION.search(text[:_MOST_CHARACTERS]) is not None


def find_rare(turns: Sequence[Told]) -> frozenset[str]:
    """Return the words that few of the turns hold."""
    counts = Counter(word for turn in turns for word in turn.words)
    return frozenset([word for word, count in counts.items() if count <= _RARE])


def find_said(asked: Asked, older: Told, newer: Told) -> tuple[bool, bool]:
    """Return whether what is nearest to the question and the earlier turn has words of change, and whether it asks.

    Of sentences that are equally near, one with words of change is enough, and all have to ask.
    """
    about = asked.words | older.words
    near = [len(sentence.words & about) for sentence in newer.sentences]
    said = [sentence for sentence, common in zip(newer.sentences, near, strict=True) if common == max(near)]
    return any(sentence.changes for sentence in said), bool(said) and all(sentence.asks for sentence in said)


def share_rare(asked: Asked, older: Told, newer: Told, rare: frozenset[str]) -> float:
    """Return how far two turns speak of one thing beside what is asked: 1 for four rare words or more."""
    return min(len((older.words & newer.words & rare) - asked.words) / _ENOUGH_SHARED, 1.0)


def has_other_value(asked: Asked, older: frozenset[Value], newer: frozenset[Value]) -> bool | None:
    """Return whether the later turn holds another value of the kind that is asked for; None if the earlier has none.

    Who asks for a value and was told one is told another one by what replaces it.
    """
    if not any(value[0] in asked.kinds for value in older - asked.values):
        return None
    return any(value[0] in asked.kinds for value in newer - older - asked.values)
