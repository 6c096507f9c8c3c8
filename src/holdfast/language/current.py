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

from holdfast.language.words import any_of, words

# Of a longer turn the beginning is read: who tells a change needs a few sentences, and a long list has to be read.
_MOST_CHARACTERS = 400
# What more of the turns at hand hold than this is what all of them are about.
_RARE = 3
# So many rare words in common leave no doubt that two turns speak of one thing.
_ENOUGH_SHARED = 4

_BLANKS = str.maketrans(dict.fromkeys(string.punctuation + "\u2018\u2019\u201c\u201d\u2026\u2013\u2014", " "))
_SENTENCE = re.compile(r"[.!?\n]+\s+|\n")
_STOP, _CUES = frozenset(words("lexical", "stop")), frozenset(words("current", "cues"))
_CUE_PHRASES = tuple(f" {phrase} " for phrase in words("current", "cue_phrases"))
_CORRECTION = re.compile(
    rf"^\W*(?:{any_of('current', 'before_correction')}\W+)*{any_of('current', 'opens_correction')}\b"
    rf"|\b{any_of('current', 'corrects')}\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Told:
    """A turn as its signs are looked for: its words, and those of each sentence with whether it tells of a change."""

    words: frozenset[str]
    sentences: tuple[tuple[frozenset[str], bool], ...]


def read_told(text: str) -> Told:
    """Read the beginning of a turn."""
    parts = [part.split() for part in _sentences(text)]
    sentences = tuple((_content(part), _tells_change(part)) for part in parts if part)
    return Told(frozenset[str]().union(*(part for part, _ in sentences)), sentences)


def _sentences(text: str) -> list[str]:
    return [part.translate(_BLANKS) for part in _SENTENCE.split(text[:_MOST_CHARACTERS].casefold())]


def _content(said: Sequence[str]) -> frozenset[str]:
    """Return the words that are no function words, without the s of a plural."""
    return frozenset([word.removesuffix("s") for word in said if word not in _STOP])


def _tells_change(said: Sequence[str]) -> bool:
    if not _CUES.isdisjoint(said):
        return True
    whole = f" {' '.join(said)} "
    return any(phrase in whole for phrase in _CUE_PHRASES)


def content_words(text: str) -> frozenset[str]:
    """Return the words of a question as those of a turn are read."""
    return frozenset(word for part in _sentences(text) for word in _content(part.split()))


def corrects(text: str) -> bool:
    """Return whether a turn puts right what was said just before: "no wait, the 21st"."""
    return _CORRECTION.search(text[:_MOST_CHARACTERS]) is not None


def find_rare(turns: Sequence[Told]) -> frozenset[str]:
    """Return the words that few of the turns hold."""
    counts = Counter(word for turn in turns for word in turn.words)
    return frozenset([word for word, count in counts.items() if count <= _RARE])


def tells_change(asked: frozenset[str], older: Told, newer: Told) -> bool:
    """Return whether the sentence that is nearest to the question and to the earlier turn has words of change."""
    if len(newer.sentences) < 2:
        return bool(newer.sentences) and newer.sentences[0][1]
    about = asked | older.words
    return max(newer.sentences, key=lambda one: len(one[0] & about))[1]


def share_rare(asked: frozenset[str], older: Told, newer: Told, rare: frozenset[str]) -> float:
    """Return how far two turns speak of one thing beside what is asked: 1 for four rare words or more."""
    return min(len((older.words & newer.words & rare) - asked) / _ENOUGH_SHARED, 1.0)
