"""What a sentence is there for: whether it asks, or puts off an answer, by a linear model of its words (C19).

Weights are small integers, learned by `scripts/build_asking.py` from texts written for this; the sum of those of a
sentence decides, so that the decision is the same everywhere. Names, numbers and rare words count by their form.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from functools import cache
from importlib import resources
from typing import Any, Literal

from holdfast.text.words import regex
from holdfast.values import dataclass

Purpose = Literal["asks", "delays"]
DATA = "asking.json"
_PART = regex(r"[^\W_]+(?:['-][^\W_]+)*|[,;:()!…—–]|[?？؟]|\.$|(?<=\s)-+(?=\s)")
_QUESTION_MARKS = frozenset("?？؟")
_ENDINGS = ("ing", "ed", "ly", "'s", "s'", "est", "s")
# Of fewer known words a sentence is too strange to be judged: one of three, but for one.
_LEAST_KNOWN, _UNKNOWN = 3, 1
# What a run of words may be, and how many of the first words are one more.
_LONGEST_RUN, _BEGINNING = 3, 4
_LONGEST = 32


@dataclass(frozen=True)
class _Model:
    words: frozenset[str]
    weights: dict[str, dict[str, int]]
    least: dict[str, int]


def parts_of(sentence: str) -> list[str]:
    """Return the words and marks of a sentence that is in lower case."""
    return ["?" if part in _QUESTION_MARKS else part for part in _PART.findall(sentence)]


def form_of(part: str, known: Collection[str]) -> str:
    """Return a known word or a mark as it is, of another word its ending, or that it holds a digit."""
    if part in known or not part[0].isalnum():
        return part
    if not part.isalpha() and any(map(str.isdigit, part)):
        return "0"
    return "_" + next((ending for ending in _ENDINGS if part.endswith(ending) and len(part) > len(ending) + 1), "")


def features_of(parts: list[str], known: Collection[str]) -> set[str]:
    """Return what the model looks at: words, runs of two and three, how it begins, about how long it is, and "^"."""
    forms = ["^", *(form_of(part, known) for part in parts), "$"]
    found = set(forms[:-1])
    for width in range(2, _LONGEST_RUN + 1):
        found.update(map(" ".join, zip(*(forms[start:] for start in range(width)), strict=False)))
    found.add(" ".join(forms[:_BEGINNING]))
    length = min(len(parts), _LONGEST)
    found.add(f"#{length if length < 8 else length // 4 * 4}")
    return found


def is_for(sentence: str, purpose: Purpose) -> bool:
    """Return whether a sentence in lower case asks, or puts off; of another language than English it is not known."""
    model = _model()
    parts = parts_of(sentence)
    known = sum(part in model.words for part in parts)
    if _LEAST_KNOWN * known + _UNKNOWN < sum(part[0].isalnum() for part in parts):
        return False
    weights = model.weights[purpose]
    return sum(weights.get(one, 0) for one in features_of(parts, model.words)) >= model.least[purpose]


@cache
def _model() -> _Model:
    data: dict[str, Any] = json.loads((resources.files("holdfast.text") / DATA).read_text(encoding="utf-8"))
    weights = {
        name: {one: int(weight) for weight, listed in groups.items() for one in listed.split("|")}
        for name, groups in data["weights"].items()
    }
    return _Model(frozenset(data["words"].split()), weights, data["least"])
