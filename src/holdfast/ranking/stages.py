"""Stages of the default recipe: what else speaks for a unit than its own words and meaning.

Each is a convex mix, rel' = (1 - w)·rel + w·signal, on the uncut pool and its neighbours, before min_score, gap and
max. The candidate keeps what every stage did, so that an explanation can show it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

from holdfast.ranking.fuse import adjusted
from holdfast.types import Adjustment, Candidate, QueryProfile, Unit

Stage = Callable[[Candidate], Adjustment | None]


def staged(candidates: Sequence[Candidate], stages: Sequence[Stage], full_marks: float) -> tuple[Candidate, ...]:
    """Return the candidates after every stage, best first, ties by id."""
    found = [_adjusted(candidate, stages, full_marks) for candidate in candidates]
    return tuple(sorted(found, key=lambda candidate: (-candidate.fused, candidate.unit.id)))


def _adjusted(candidate: Candidate, stages: Sequence[Stage], full_marks: float) -> Candidate:
    rel, made = candidate.rel, []
    for stage in stages:
        adjustment = stage(candidate)
        if adjustment is not None and adjustment.weight > 0.0:
            rel = adjusted(rel, adjustment)
            made.append(adjustment)
    if not made:
        return candidate
    return Candidate(
        candidate.unit, rel * full_marks, rel, candidate.claims, candidate.merged_ids, (*candidate.adjustments, *made)
    )


def smoothing(
    candidates: Sequence[Candidate], beside: Mapping[str, Sequence[str]], weight: float, length: float
) -> Stage:
    """Return the stage in which a short turn takes over from the better of the turns before and after it.

    An answer of five words says little by itself; the question it answers says what it is about. The longer a turn,
    the less it needs that: it takes over weight / (1 + (characters / length)²).
    """
    rels = {candidate.unit.id: candidate.rel for candidate in candidates}

    def stage(candidate: Candidate) -> Adjustment | None:
        near = [rels[unit_id] for unit_id in beside.get(candidate.unit.id, ()) if unit_id in rels]
        if not near:
            return None
        taken = weight / (1.0 + (len(candidate.unit.text) / length) ** 2)
        return Adjustment("neighbours", taken, max(near))

    return stage


def perspective(query: QueryProfile, weight: float) -> Stage:
    """Return the stage that prefers the one whose words are asked for: a named speaker, the user, the assistant."""
    speakers = {name.casefold() for name in query.participants}

    def matches(unit: Unit) -> bool:
        if query.perspective in ("user", "assistant"):
            return unit.author == query.perspective
        return unit.speaker.casefold() in speakers

    def stage(candidate: Candidate) -> Adjustment | None:
        if query.perspective is None:
            return None
        return Adjustment("perspective", weight, float(matches(candidate.unit)))

    return stage


def in_time(start: datetime, end: datetime, weight: float, dated: Sequence[str] = ()) -> Stage:
    """Return the stage that prefers what happened from `start` up to `end`; a summary counts by all of its span.

    A unit that holds all words of the date, `dated`, tells of that time, whenever it was said.
    """
    words = {f"matched: {term}" for term in dated}

    def stage(candidate: Candidate) -> Adjustment | None:
        unit, lexical = candidate.unit, candidate.claims.get("lexical")
        first, last = (unit.lineage.starts, unit.lineage.ends) if unit.lineage else (unit.event_time, unit.event_time)
        told = bool(words) and lexical is not None and words.issubset(lexical.notes)
        return Adjustment("time range", weight, float(told or (first < end and last >= start)))

    return stage


def identified(weight: float) -> Stage:
    """Return the stage that prefers what holds the very identifiers of the question: a code, a path, a quoted word.

    What merely looks like E0308 to a model is something else; the rarer the identifier, the more it decides.
    """

    def stage(candidate: Candidate) -> Adjustment | None:
        claim = candidate.claims.get("lexical")
        if claim is None or claim.identified is None:
            return None
        return Adjustment("identifiers", weight, claim.identified)

    return stage
