"""Names in a text → keys under which units meet that speak of the same thing (C12).

A name is told by its capitals, so this says nothing about scripts that have none. A key is the name's words, folded:
lower case, no accents, no possessive, no leading article, one space between them.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from holdfast.analysis.lexical import STOP_WORDS

# "O'Neill", "AT&T", "J.R.R", "Saint-Malo" are one word each.
_WORD = re.compile(r"[^\W_]+(?:['\u2019.&-][^\W_]+)*")
_QUALIFIER = re.compile(r"\s*\([^()]*\)\s*$")
# What may stand before the first word of a sentence, a line, a quotation or a bracket.
_OPENING = re.compile(r"(?:^|[.!?:;\n\"\u201c\u201d\u2018(*#>|-])\s*$")
_OPENING_LENGTH = 3
_ARTICLES = frozenset({"the", "a", "an"})
# Small words that stand inside a name: "Bank of England", "Ludwig van Beethoven". "And" parts two names more often
# than it joins one.
_JOINING = frozenset("of the de la le du von van der den di da del y al bin ibn".split())
# Two of them may follow each other ("Lord of the Rings"), not more.
_MOST_JOINING = 2
# Capitalised, but the name of nothing in particular.
_NO_NAMES = STOP_WORDS | frozenset(
    """
    january february march april may june july august september october november december monday tuesday wednesday
    thursday friday saturday sunday however although though since yes okay sure thanks please mr mrs ms dr english
    """.split()
)
# Shorter single words are initials and abbreviations of too many things.
_SHORTEST = 4
# A longer title is a sentence, and nobody names it whole.
_MOST_WORDS = 8
# A pasted book is read up to here.
_MOST_CHARACTERS = 20_000


class Word(NamedTuple):
    """A word of a text: its key, where it stands, and whether it is written like a part of a name."""

    key: str
    start: int
    end: int
    capital: bool


def titles(topic: str) -> tuple[str, ...]:
    """Return the keys of what a unit is called: its topic, and that without what is in brackets or after a comma."""
    bare = _QUALIFIER.sub("", topic)
    found = (_key([word.key for word in _words(text)]) for text in (topic, bare, bare.partition(",")[0]))
    return tuple(dict.fromkeys(key for key in found if key and key.count(" ") < _MOST_WORDS))


def entities(text: str) -> tuple[str, ...]:
    """Return the keys of the names in a text, in reading order: runs of capitalised words.

    A single word at the start of a sentence is none: its capital says nothing.
    """
    words, found, at = _words(text), [], 0
    while at < len(words):
        end = _span_end(text, words, at) if words[at].capital else at
        if end > at and (key := _name(text, words, at, end)):
            found.append(key)
        at = max(end, at + 1)
    return tuple(dict.fromkeys(found))


def phrases(text: str) -> tuple[str, ...]:
    """Return every run of words that starts with a capital or a digit and could be a title, in reading order."""
    words = _words(text)
    return tuple(dict.fromkeys(_phrases(words)))


def _phrases(words: Sequence[Word]) -> Iterator[str]:
    for at, word in enumerate(words):
        if word.capital or word.key[0].isdigit():
            for end in range(at + 1, min(at + _MOST_WORDS, len(words)) + 1):
                if key := _key([one.key for one in words[at:end]]):
                    yield key


def spoken_of(key: str, text: str) -> bool:
    """Return whether a text says the words of a key, one after the other, capitals or not."""
    return f" {key} " in f" {' '.join(word.key for word in _words(text))} "


def _span_end(text: str, words: Sequence[Word], start: int) -> int:
    """Return where the name that begins at `start` ends: at the last capital or number before anything else."""
    end = at = start + 1
    while at < len(words) and text[words[at - 1].end : words[at].start].isspace() and not _broken(text, words, at):
        word = words[at]
        if word.capital or word.key.isdigit():
            end = at + 1
        elif word.key not in _JOINING or at - end >= _MOST_JOINING:
            break
        at += 1
    return end


def _broken(text: str, words: Sequence[Word], at: int) -> bool:
    return "\n" in text[words[at - 1].end : words[at].start]


def _name(text: str, words: Sequence[Word], start: int, end: int) -> str:
    """Return the key of a capitalised run, or nothing when it is not the name of something."""
    first = start
    while first < end and words[first].key in STOP_WORDS:
        first += 1
    if first == end:
        return ""
    opening = first == start and _OPENING.search(
        text[max(0, words[start].start - _OPENING_LENGTH) : words[start].start]
    )
    if end - first == 1 and (opening or words[first].key in _NO_NAMES):
        return ""
    return _key([word.key for word in words[first:end]])


def _key(words: Sequence[str]) -> str:
    """Return words as a key; nothing when they are too little to tell one thing from another."""
    if len(words) > 1 and words[0] in _ARTICLES:
        words = words[1:]
    if not words or (len(words) == 1 and (len(words[0]) < _SHORTEST or words[0] in _NO_NAMES)):
        return ""
    return " ".join(words)


def _words(text: str) -> list[Word]:
    return [
        Word(_folded(said := match.group()), match.start(), match.end(), said[0].isupper())
        for match in _WORD.finditer(text[:_MOST_CHARACTERS])
    ]


# Names repeat: a bounded memo makes folding cheap and cannot grow without limit.
@lru_cache(maxsize=65_536)
def _folded(word: str) -> str:
    bare = word.lower().replace("\u2019", "'").removesuffix("'s")
    if bare.isascii():
        return bare
    return "".join(mark for mark in unicodedata.normalize("NFKD", bare) if not unicodedata.combining(mark)) or bare
