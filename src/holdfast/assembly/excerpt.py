"""The best sentences of a text that is too long to be shown whole (C16)."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable

from holdfast.assembly.render import GAP, LINE_BREAKS
from holdfast.errors import InputError, shown
from holdfast.language.lexical import Tokenizer, terms

SentenceScore = Callable[[str], float]

# Anchored at the start of a run and possessive, or a text of a million dots would be scanned a million times.
_END = re.compile(rf"(?<![.!?…])[.!?…]++[\"'”’)\]]*+(?=\s)|[。！？]++[」』”’]*+|[{LINE_BREAKS}]")


def term_overlap(query_terms: Iterable[str], tokenise: Tokenizer = terms) -> SentenceScore:
    """Return a scorer: how many distinct terms of the question a sentence holds (C2 terms on both sides)."""
    wanted = frozenset(query_terms)
    return lambda sentence: float(len(wanted.intersection(tokenise(sentence))))


def sentences(text: str) -> list[tuple[int, int]]:
    """Return where each sentence of `text` starts and ends, white space around it left out."""
    spans, start = [], 0
    for end in (*(match.end() for match in _END.finditer(text)), len(text)):
        words = text[start:end]
        first = end - len(words.lstrip())
        if first < end:
            spans.append((first, start + len(words.rstrip())))
        start = end
    return spans


def excerpts(text: str, score: SentenceScore, most: int) -> list[str]:
    """Return excerpts of `text`, the longest first: its `most` best sentences, then one less each time.

    Sentences stand in their order, with a mark where something is left out between them. One that scores nothing
    is not worth showing; equal ones are taken from the front.
    """
    spans = sentences(text)
    scores = [_checked(score(text[start:end])) for start, end in spans]
    best = sorted((index for index, value in enumerate(scores) if value > 0.0), key=lambda i: (-scores[i], i))[:most]
    found = [_joined(text, [spans[index] for index in sorted(best[:size])]) for size in range(len(best), 0, -1)]
    return [excerpt for excerpt in found if excerpt != text.strip()]


def _checked(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or math.isnan(value):
        raise InputError(f"the sentence scorer gave {shown(value)}; it must give a number")
    return float(value)


def _joined(text: str, spans: list[tuple[int, int]]) -> str:
    """Return the spans of `text`; what lies between two neighbours is white space, and stays as it is."""
    joined, behind = "", None
    for start, end in spans:
        between = "" if behind is None else text[behind:start]
        joined += (GAP if between.strip() else between) + text[start:end]
        behind = end
    return joined
