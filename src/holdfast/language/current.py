"""What is current: signs that a later turn takes the place of an earlier one.

A cheap reading for ranking, not for facts: nothing is superseded by it. People tell a change in many ways, so that no
single sign is sure; the stage weighs them together.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.language.words import any_of, words

# Of a longer turn the beginning is read: who tells a change needs a few sentences.
MOST_CHARACTERS = 1000
# What more of the turns at hand hold than this is what all of them are about.
_RARE = 3
# So many rare words in common leave no doubt that two turns speak of one thing.
_ENOUGH_SHARED = 4

_STOP = frozenset(words("lexical", "stop"))
_WORD = re.compile(r"[^\W_]+")
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
_CUE = re.compile(rf"\b{any_of('current', 'cues')}\b", re.IGNORECASE)
_CORRECTION = re.compile(
    rf"^\W*(?:{any_of('current', 'before_correction')}\W+)*{any_of('current', 'opens_correction')}\b"
    rf"|\b{any_of('current', 'corrects')}\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Told:
    """A turn as its signs are looked for: the words of each sentence, and which of them has words of change."""

    words: frozenset[str]
    sentences: tuple[tuple[frozenset[str], bool], ...]
    corrects: bool


def read_told(text: str) -> Told:
    """Read the beginning of a turn."""
    plain = text[:MOST_CHARACTERS].replace("\u2019", "'")
    sentences = tuple((content_words(part), bool(_CUE.search(part))) for part in _SENTENCE.split(plain) if part)
    together = frozenset[str]().union(*(part for part, _ in sentences))
    return Told(together, sentences, _CORRECTION.search(plain) is not None)


def content_words(text: str) -> frozenset[str]:
    """Return the words that are no function words, without the s of a plural."""
    return frozenset(word.removesuffix("s") for word in _WORD.findall(text.casefold()) if word not in _STOP)


def find_rare(turns: Sequence[Told]) -> frozenset[str]:
    """Return the words that few of the turns hold."""
    counts = Counter(word for turn in turns for word in turn.words)
    return frozenset(word for word, count in counts.items() if count <= _RARE)


def tells_change(asked: frozenset[str], older: Told, newer: Told) -> bool:
    """Return whether the sentence that is nearest to the question and to the earlier turn has words of change."""
    about = asked | older.words
    return max(newer.sentences, key=lambda one: len(one[0] & about), default=(about, False))[1]


def share_rare(asked: frozenset[str], older: Told, newer: Told, rare: frozenset[str]) -> float:
    """Return how far two turns speak of one thing beside what is asked: 1 for four rare words or more."""
    return min(len((older.words & newer.words & rare) - asked) / _ENOUGH_SHARED, 1.0)
