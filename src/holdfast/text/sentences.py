"""Where sentences end, and the words of one with their places.

There is one splitter. Readers differ in which marks end a sentence for them and after which words a full stop ends
none; both are its fields.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from functools import cached_property, lru_cache, wraps
from itertools import chain
from typing import Any, TypeVar, cast

from holdfast.text.words import regex, words
from holdfast.values import dataclass


@dataclass(frozen=True)
class Splitter:
    """Cuts a text into sentences: at `end`, unless what ends there is a full stop behind an abbreviation."""

    end: re.Pattern[str]
    abbreviations: frozenset[str] = frozenset()

    @cached_property
    def _abbreviated(self) -> re.Pattern[str]:
        listed = "|".join(map(re.escape, sorted(self.abbreviations)))
        return re.compile(rf"(?:^|[^\w.])(?:{listed})$", re.IGNORECASE)

    @cached_property
    def _longest(self) -> int:
        return max(map(len, self.abbreviations)) + 1

    def ends(self, text: str) -> list[int]:
        """Return where the sentences of `text` end, the last one left out unless a mark ends it."""
        return [match.end() for match in self.end.finditer(text) if not self._is_shortened(text, match)]

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Return where each sentence of `text` starts and ends, white space around it left out."""
        found, start = [], 0
        for end in (*self.ends(text), len(text)):
            said = text[start:end]
            first = end - len(said.lstrip())
            if first < end:
                found.append((first, start + len(said.rstrip())))
            start = end
        return found

    def _is_shortened(self, text: str, match: re.Match[str]) -> bool:
        if not self.abbreviations or text[match.start()] != ".":
            return False
        before = text[max(0, match.start() - self._longest) : match.start()]
        return self._abbreviated.search(before) is not None


# Possessive and anchored at the start of a run: a text of a million dots is scanned once.
_END = regex(r"(?<![.!?…])[.!?…]++[\"'”’)\]]*+(?=\s|$)|[。！？]++[」』”’]*+|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")
# Prose, as facts and changes read it; an excerpt is cut at the same marks, abbreviations or not.
PROSE = Splitter(_END, frozenset(words("sentences", "abbreviations")))
EXCERPT = Splitter(_END)

# As much of a long text as a hit shows: three or four lines of a usual terminal.
SHOWN = 300


def matching_part(text: str, wanted: Collection[str], terms_of: Callable[[str], list[str]]) -> str | None:
    """Return the run of sentences and lines of a text that holds most of the terms `wanted`; of a short one nothing.

    A term that stands in few of them tells more. A text that holds none of the terms is shown from its beginning.
    """
    spans = PROSE.spans(text) if len(text) > SHOWN else []
    if not spans:
        return None
    held = [frozenset(wanted).intersection(terms_of(text[start:end])) for start, end in spans]
    spread = Counter(chain.from_iterable(held))
    parts = []
    for first, (start, _) in enumerate(spans):
        if spread and not held[first]:  # a part begins with what matched
            continue
        last = max([first, *(row for row, span in enumerate(spans) if span[1] - start <= SHOWN)])
        found = frozenset[str]().union(*held[first : last + 1])
        parts.append((sum(1.0 / spread[term] for term in sorted(found)), -first, last))
    _, first, last = max(parts)
    return text[spans[-first][0] : spans[last][1]]


_Read = TypeVar("_Read", bound=Callable[..., Any])
_LONGEST_REMEMBERED, _REMEMBERED = 2_000, 512


def memoize_short(read: _Read) -> _Read:
    """Return a reader with a memo: a turn is read for several ends; long texts are documents, and read once."""
    again = lru_cache(maxsize=_REMEMBERED)(read)

    @wraps(read)
    def look(text: str, *more: str) -> Any:  # noqa: ANN401 - whatever is read
        return again(text, *more) if len(text) <= _LONGEST_REMEMBERED else read(text, *more)

    return cast("_Read", look)


_PART = regex(r"[a-z]+|[^a-z\s]")


@memoize_short
def parts_in(text: str) -> frozenset[str]:
    """Return the runs of plain letters, and the other characters, of a text in lower case.

    A cheap look for words before anything is read: a word of plain letters that stands in the text is among them,
    and so are parts of other words.
    """
    return frozenset(_PART.findall(text.lower()))


_TITLE = r"(?:dr|mr|mrs|ms|prof|st)\.(?=\s)"
_TOKEN = regex(rf"{_TITLE}|(?:(?<!\S)\.)?\w+(?:['./@&_:-]\w+)*(?:\+\+|#)?|[^\w\s]", re.IGNORECASE)
# Contractions of a verb and "not" that do not just end in "n't".
IRREGULAR = {"can't": "can", "cannot": "can", "won't": "will", "shan't": "shall"}
_SHORT = {"'m": "am", "'re": "are", "'ve": "have", "'ll": "will", "'d": "would"}
_WITH_IS = frozenset(words("sentences", "with_is"))
_AFTER_IS = frozenset({"a", "an", "not"})


@dataclass(frozen=True, slots=True)
class Sentence:
    """The words and marks of one sentence: in lower case, as written, and where they start and end.

    Half a contraction has no width. Places outside the sentence are empty, so that a rule may look ahead freely.
    """

    source: str
    start: int
    end: int
    words: tuple[str, ...]
    written: tuple[str, ...]
    places: tuple[tuple[int, int], ...]

    def at(self, i: int) -> str:
        """Return the i-th word in lower case."""
        return self.words[i] if 0 <= i < len(self.words) else ""

    def raw(self, i: int) -> str:
        """Return the i-th word as written."""
        return self.written[i] if 0 <= i < len(self.words) else ""

    def says(self, i: int, phrase: tuple[str, ...]) -> bool:
        """Return whether `phrase` stands at the i-th word."""
        return self.words[i : i + len(phrase)] == phrase

    def slice(self, i: int, j: int) -> str:
        """Return the text from the i-th to before the j-th word, as written."""
        return self.source[self.places[i][0] : self.places[j - 1][1]] if i < j else ""


def is_question(text: str, start: int, end: int) -> bool:
    """Return whether the sentence of `text` at [start, end) ends as a question."""
    return "?" in text[max(start, end - 4) : end] or text[end - 1] == "？"


def read_sentence(text: str, start: int, end: int) -> Sentence:
    """Return the words of the sentence of `text` at [start, end)."""
    said = text[start:end].replace("’", "'")
    tokens = [(match.group(), start + match.start(), start + match.end()) for match in _TOKEN.finditer(said)]
    halves: list[tuple[str, str, tuple[int, int]]] = []
    for number, (raw, first, last) in enumerate(tokens):
        word = raw.lower()
        if "'" in word or word == "cannot":
            after = tokens[number + 1][0].lower() if number + 1 < len(tokens) else ""
            halves.extend(_halves(word, raw, first, last, after))
        else:
            halves.append((word, raw, (first, last)))
    lowered, written, places = zip(*halves, strict=True) if halves else ((), (), ())
    return Sentence(text, start, end, lowered, written, places)


def _halves(word: str, raw: str, start: int, end: int, after: str) -> Iterator[tuple[str, str, tuple[int, int]]]:
    """Yield one word, or the two that a contraction stands for."""
    first, second = _uncontracted(word, after)
    if not second:
        yield word, raw, (start, end)
    elif not first:  # "has n't": split by a tokeniser, the half that is left is the whole word
        yield second, raw, (start, end)
    else:
        # The name is what was written before the apostrophe.
        cut = min(end, start + len(first))
        yield first, raw[: cut - start], (start, cut)
        yield second, "", (cut, cut)


def _uncontracted(word: str, after: str) -> tuple[str, str]:
    """Return the two words that a contraction stands for, the second empty where it is none."""
    if word in IRREGULAR:
        return IRREGULAR[word], "not"
    if word.endswith("n't"):
        return word[:-3], "not"
    if word == "let's":
        return "let", "us"
    for ending in (word[-3:], word[-2:]):
        if ending in _SHORT:
            return word[: -len(ending)], _SHORT[ending]
    if word.endswith("'s") and (word[:-2] in _WITH_IS or after in _AFTER_IS):
        return word[:-2], "is"
    return word, ""
