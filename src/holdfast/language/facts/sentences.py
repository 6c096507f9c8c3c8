"""Sentences and words with their places, as the rules for facts read them.

`analysis/clauses.py` keeps no places and leaves questions out; a fact needs the first for its provenance and has to
see the second to refuse them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

# Possessive and anchored at the start of a run: a text of a million dots is scanned once.
_END = re.compile(r"(?<![.!?…])[.!?…]++[\"'”’)\]]*+(?=\s|$)|[。！？]++|[\r\n\v\f\x85\u2028\u2029]")
# After these a full stop ends no sentence.
_ABBREVIATED = re.compile(
    r"(?:^|[^\w.])(?:Dr|Mr|Mrs|Ms|Prof|Sr|Jr|St|vs|cf|No|e\.g|i\.e|approx|Inc|Ltd)$", re.IGNORECASE
)
_TITLE = r"(?:Dr|Mr|Mrs|Ms|Prof|St)\.(?=\s)"
_TOKEN = re.compile(rf"{_TITLE}|(?:(?<!\S)\.)?\w+(?:['./@&_:-]\w+)*(?:\+\+|#)?|[^\w\s]", re.IGNORECASE)
_IRREGULAR = {"can't": "can", "cannot": "can", "won't": "will", "shan't": "shall"}
_SHORT = {"'m": "am", "'re": "are", "'ve": "have", "'ll": "will", "'d": "would"}
# After these 's is a verb; after a name it is one only before an article or a negation.
_WITH_IS = frozenset("it he she that this what who where there here how when why everything everyone".split())
_AFTER_IS = frozenset("a an not".split())


@dataclass(frozen=True, slots=True)
class Token:
    """One word or mark: in lower case, as written, and where it stands. Half a contraction has no width."""

    text: str
    raw: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Sentence:
    """The words and marks of one sentence. Places outside it are empty, so that a rule may look ahead freely."""

    source: str
    start: int
    end: int
    tokens: tuple[Token, ...]

    def at(self, i: int) -> str:
        """Return the i-th word in lower case."""
        return self.tokens[i].text if 0 <= i < len(self.tokens) else ""

    def raw(self, i: int) -> str:
        """Return the i-th word as written."""
        return self.tokens[i].raw if 0 <= i < len(self.tokens) else ""

    def says(self, i: int, phrase: tuple[str, ...]) -> bool:
        """Return whether `phrase` stands at the i-th word."""
        return all(self.at(i + k) == word for k, word in enumerate(phrase))

    def words(self, i: int, j: int) -> str:
        """Return the text from the i-th to before the j-th word, as written."""
        return self.source[self.tokens[i].start : self.tokens[j - 1].end] if i < j else ""

    @property
    def asks(self) -> bool:
        """Return whether the sentence ends as a question."""
        return "?" in self.source[max(self.start, self.end - 4) : self.end] or self.source[self.end - 1] == "？"


def spans(text: str) -> list[tuple[int, int]]:
    """Return where each sentence of `text` starts and ends, white space around it left out."""
    found, start = [], 0
    for end in (*(match.end() for match in _END.finditer(text) if not _shortened(text, match)), len(text)):
        words = text[start:end]
        first = end - len(words.lstrip())
        if first < end:
            found.append((first, start + len(words.rstrip())))
        start = end
    return found


def sentences(text: str) -> Iterator[Sentence]:
    """Yield the sentences of `text` with their words."""
    plain = text.replace("’", "'")
    for start, end in spans(text):
        yield Sentence(text, start, end, tuple(_tokens(plain, start, end)))


def _shortened(text: str, match: re.Match[str]) -> bool:
    # The longest abbreviation has six letters.
    return match.group() == "." and _ABBREVIATED.search(text[max(0, match.start() - 8) : match.start()]) is not None


def _tokens(text: str, start: int, end: int) -> Iterator[Token]:
    matches = list(_TOKEN.finditer(text, start, end))
    for i, match in enumerate(matches):
        after = matches[i + 1].group().lower() if i + 1 < len(matches) else ""
        yield from _split(Token(match.group().lower(), match.group(), *match.span()), after)


def _split(token: Token, after: str) -> Iterator[Token]:
    """Yield one word, or the two that a contraction stands for."""
    word, second = token.text, ""
    if word in _IRREGULAR:
        word, second = _IRREGULAR[word], "not"
    elif word.endswith("n't"):
        word, second = word[:-3], "not"
    elif word == "let's":
        word, second = "let", "us"
    elif word[-3:] in _SHORT or word[-2:] in _SHORT:
        ending = word[-3:] if word[-3:] in _SHORT else word[-2:]
        word, second = word[: -len(ending)], _SHORT[ending]
    elif word.endswith("'s") and (word[:-2] in _WITH_IS or after in _AFTER_IS):
        word, second = word[:-2], "is"
    if not second:
        yield token
        return
    if not word:  # "has n't": split by a tokeniser, the half that is left is the whole word
        yield Token(second, token.raw, token.start, token.end)
        return
    # The name is what was written before the apostrophe.
    cut = min(token.end, token.start + len(word))
    yield Token(word, token.raw[: cut - token.start], token.start, cut)
    yield Token(second, "", cut, cut)
