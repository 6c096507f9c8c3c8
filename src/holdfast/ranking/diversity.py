"""Near-duplicates step back: a unit that says what a better one says already leaves its place to another.

rel' = (1 - w)·rel for it. Two units say the same when nearly all of their words are the same and no number differs:
a changed number or date is news, however alike the rest is. So is it when another one says it.
"""

from __future__ import annotations

import string
from collections.abc import Sequence

from holdfast.ranking.fuse import adjusted
from holdfast.settings import StageSettings
from holdfast.types import Adjustment, Candidate, Unit

_NO_PUNCTUATION = str.maketrans(dict.fromkeys(string.punctuation, " "))


def diversified(
    candidates: Sequence[Candidate], settings: StageSettings, most: int, full_marks: float
) -> tuple[Candidate, ...]:
    """Return the candidates, best first, ties by id, after repetitions were lowered.

    As soon as `most` units say something of their own the list is full, and nobody looks further down.
    """
    if not settings.diversity:
        return tuple(candidates)
    said: list[tuple[Unit, frozenset[str]]] = []
    found = []
    for candidate in candidates:
        if len(said) == most:
            break
        words = frozenset(candidate.unit.text.casefold().translate(_NO_PUNCTUATION).split())
        first = next(
            (
                unit
                for unit, other in said
                if same(words, other, settings.same_words)
                and (unit.author, unit.speaker) == (candidate.unit.author, candidate.unit.speaker)
            ),
            None,
        )
        if first is None:
            said.append((candidate.unit, words))
        found.append(candidate if first is None else _lowered(candidate, first.id, settings.diversity, full_marks))
    return tuple(sorted((*found, *candidates[len(found) :]), key=lambda one: (-one.fused, one.unit.id)))


def same(one: frozenset[str], other: frozenset[str], share: float) -> bool:
    """Return whether two sets of words have at least `share` of their words in common, and all that hold a digit."""
    if not one or min(len(one), len(other)) < share * max(len(one), len(other)):
        return False
    common = len(one & other)
    if common < share * (len(one) + len(other) - common):
        return False
    return not any(character.isdigit() for word in one ^ other for character in word)


def _lowered(candidate: Candidate, first: str, weight: float, full_marks: float) -> Candidate:
    change = Adjustment("diversity", weight, 0.0, f"{first} says the same")
    rel = adjusted(candidate.rel, change)
    return Candidate(
        candidate.unit,
        rel * full_marks,
        rel,
        candidate.claims,
        candidate.merged_ids,
        (*candidate.adjustments, change),
    )
