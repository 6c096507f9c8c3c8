"""Sentences as a deontic rule sees them (C14): their words, what stands between, and where a clause begins."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

# Identifiers, paths and compounds are one word each: `use_tabs` and "use-case" tell nobody to use anything.
_WORD = re.compile(r"\w+(?:['./_-]\w+)*")
_SENTENCE_END = re.compile(r"[.!?][^\w\s]*\s|\n")
_CLAUSE_END = re.compile(r"[:;][^\w\s]*\s")
_ABBREVIATIONS = frozenset("e.g i.e cf vs".split())
# What a quotation says is not said to the reader.
_OPENING_QUOTES = ('"', "'", "“", "‘", "«")
# Words a command may follow without losing its place at the start.
_LEADS = frozenset("please also then finally instead otherwise additionally likewise similarly therefore".split())
_CONTRACTIONS = {
    "can't": ("can", "not"),
    "cannot": ("can", "not"),
    "won't": ("will", "not"),
    "shan't": ("shall", "not"),
    "you're": ("you", "are"),
}


@dataclass(frozen=True, slots=True)
class Word:
    """One word, in lower case and as written, with the gap before it; `starts` when a command could begin here."""

    text: str
    raw: str
    gap: str
    starts: bool


@dataclass(frozen=True, slots=True)
class Sentence:
    """The words of one sentence. Places outside it are empty, so that a rule may look ahead freely."""

    words: tuple[Word, ...]

    def at(self, i: int) -> str:
        """Return the i-th word in lower case."""
        return self.words[i].text if 0 <= i < len(self.words) else ""

    def gap(self, i: int) -> str:
        """Return what stands between the i-th word and the one before it."""
        return self.words[i].gap if 0 <= i < len(self.words) else ""

    def shouts(self, i: int) -> bool:
        """Return whether the i-th word is written in capitals."""
        return 0 <= i < len(self.words) and len(self.words[i].raw) > 1 and self.words[i].raw.isupper()

    def says(self, i: int, *phrase: str) -> bool:
        """Return whether `phrase` stands at the i-th word."""
        return self.at(i) == phrase[0] and all(self.at(i + k) == word for k, word in enumerate(phrase))


def sentences(text: str) -> Iterator[Sentence]:
    """Yield the sentences of `text` that are not questions."""
    words: list[Word] = []
    last, text = 0, text.replace("’", "'")
    for match in _WORD.finditer(text):
        gap = text[last : match.start()]
        last = match.end()
        shortened = bool(words) and words[-1].text in _ABBREVIATIONS and "\n" not in gap
        if words and _SENTENCE_END.search(gap) and not shortened:
            if "?" not in gap:
                yield Sentence(tuple(words))
            words = []
        words.extend(_split(match.group(), gap, starts=_starts(words, gap)))
    if words and "?" not in text[last:]:
        yield Sentence(tuple(words))


def _starts(before: list[Word], gap: str) -> bool:
    if gap.endswith(_OPENING_QUOTES):
        return False
    if not before or _CLAUSE_END.search(gap):
        return True
    return before[-1].starts and before[-1].text in _LEADS


def _split(raw: str, gap: str, *, starts: bool) -> Iterator[Word]:
    """Yield one word, or the two that a contraction stands for."""
    text = raw.lower()
    parts = _CONTRACTIONS.get(text) or ((text[:-3], "not") if text.endswith("n't") else (text,))
    yield Word(parts[0], raw, gap, starts)
    for part in parts[1:]:
        yield Word(part, raw, "", starts=False)
