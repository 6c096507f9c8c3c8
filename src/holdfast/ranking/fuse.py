"""Several strategies' claims → one relevance (C6).

fused(u) = Σ weight·normalised + bonus·(strategies that found u - 1)
F        = Σ weights of the profile's primary strategies + bonus·(their number - 1)
rel(u)   = min(1, fused(u) / F)
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from holdfast.settings import FusionSettings, ProfileSettings, RefusalSettings
from holdfast.types import Adjustment, Candidate, Contribution, Dropped, RetrievalResult, StrategyCandidate

# A strategy nobody gave a weight counts like the lexical one.
_UNLISTED_WEIGHT = 1.0


@dataclass(frozen=True, slots=True)
class Fusion:
    """What the fusion of one query needs to know: weights, what raw scores are divided by, the bonus, and F."""

    weights: Mapping[str, float]
    scales: Mapping[str, float]
    bonus: float
    full_marks: float

    @classmethod
    def of(cls, results: Sequence[RetrievalResult], profile: ProfileSettings, settings: FusionSettings) -> Fusion:
        """Read it off the results: C6's weights and bonus, or the profile's own convex mix without a bonus."""
        weights, bonus = (profile.mix, 0.0) if profile.mix else (settings.weights, settings.agreement_bonus)
        scales = {result.strategy_id: _scale(result, profile) for result in results}
        total = 0.0
        for strategy_id in profile.strategies:
            total = total + weights.get(strategy_id, _UNLISTED_WEIGHT)
        return cls(weights, scales, bonus, total + bonus * (len(profile.strategies) - 1))

    def weight(self, strategy_id: str) -> float:
        """Return the weight of one strategy."""
        return self.weights.get(strategy_id, _UNLISTED_WEIGHT)


def _scale(result: RetrievalResult, profile: ProfileSettings) -> float:
    if profile.normalise == "own" or not result.candidates:
        return result.scale
    return result.candidates[0].raw_score or 1.0


def fuse(results: Sequence[RetrievalResult], fusion: Fusion) -> tuple[Candidate, ...]:
    """Return one candidate per unit, copies merged, best first, ties by id."""
    claims: dict[str, dict[str, StrategyCandidate]] = {}
    sums: dict[str, float] = {}
    for result in results:
        name = result.strategy_id
        weight, scale = fusion.weight(name), fusion.scales[name]
        for claim in result.candidates:
            claims.setdefault(claim.unit_id, {})[name] = claim
            sums[claim.unit_id] = sums.get(claim.unit_id, 0.0) + weight * min(claim.raw_score / scale, 1.0)
    candidates = [_candidate(found, sums[unit_id], fusion) for unit_id, found in claims.items()]
    return merge_copies(sorted(candidates, key=lambda candidate: (-candidate.fused, candidate.unit.id)))


def _candidate(claims: Mapping[str, StrategyCandidate], fused: float, fusion: Fusion) -> Candidate:
    if fusion.bonus and (others := _further(claims)):
        fused = fused + fusion.bonus * others
    return Candidate(next(iter(claims.values())).unit, fused, min(fused / fusion.full_marks, 1.0), claims)


def _further(claims: Mapping[str, StrategyCandidate]) -> float:
    """Return how many strategies beyond the first found the unit; a score of 0 is not a find."""
    return max(0.0, sum(claim.raw_score > 0.0 for claim in claims.values()) - 1.0)


def explain_fused(candidate: Candidate, fusion: Fusion) -> Contribution:
    """Return the fused score of a candidate as a tree: the same arithmetic as `fuse`, node by node."""
    parts = [_explain_strategy(name, claim, fusion) for name, claim in candidate.claims.items()]
    if (others := _further(candidate.claims)) and fusion.bonus:
        bonus = Contribution("agreement bonus", fusion.bonus)
        parts.append(Contribution.of("agreement", "product", bonus, Contribution("further strategies", others)))
    return Contribution.of("fused", "sum", *parts)


def explain_rel(candidate: Candidate, fusion: Fusion) -> Contribution:
    """Return the relevance of a candidate as a tree, with what the stages did to it."""
    full = Contribution("full marks", fusion.full_marks)
    share = Contribution.of("share of full marks", "ratio", explain_fused(candidate, fusion), full)
    rel = Contribution.of("rel", "minimum", share, Contribution("ceiling", 1.0))
    for adjustment in candidate.adjustments:
        rel = explain_adjustment(rel, adjustment)
    return rel


def adjusted(rel: float, adjustment: Adjustment) -> float:
    """Return rel' of one stage, in [0, 1]: a convex mix, clamped last because floats round."""
    return min((1.0 - adjustment.weight) * rel + adjustment.weight * adjustment.signal, 1.0)


def explain_adjustment(rel: Contribution, adjustment: Adjustment) -> Contribution:
    """Return `adjusted` as a tree over the tree of what was adjusted."""
    rest = Contribution("what is left", 1.0 - adjustment.weight)
    weight, signal = Contribution("weight", adjustment.weight), Contribution(adjustment.because, adjustment.signal)
    mixed = Contribution.of(
        adjustment.stage,
        "sum",
        Contribution.of("before", "product", rest, rel),
        Contribution.of("added", "product", weight, signal),
    )
    return Contribution.of(f"rel with {adjustment.stage}", "minimum", mixed, Contribution("ceiling", 1.0))


def _explain_strategy(name: str, claim: StrategyCandidate, fusion: Fusion) -> Contribution:
    raw = claim.explanation or Contribution("raw score", claim.raw_score)
    share = Contribution.of(
        "share of the best", "ratio", raw, Contribution("best of this query", fusion.scales[name])
    )
    normalised = Contribution.of("normalised", "minimum", share, Contribution("ceiling", 1.0))
    return Contribution.of(name, "product", Contribution("strategy weight", fusion.weight(name)), normalised)


def merge_copies(candidates: Sequence[Candidate]) -> tuple[Candidate, ...]:
    """Fold copies of the same words, said by the same one at the same time, into the best of them."""
    kept: dict[tuple[object, ...], Candidate] = {}
    for candidate in candidates:
        said = candidate.unit.said()
        first = kept.get(said)
        if first is None:
            kept[said] = candidate
        else:
            kept[said] = dataclasses.replace(first, merged_ids=(*first.merged_ids, candidate.unit.id))
    return tuple(kept.values())


def cut(
    candidates: Sequence[Candidate], profile: ProfileSettings
) -> tuple[tuple[Candidate, ...], tuple[Dropped, ...]]:
    """Drop what lies below `min_score` or below its share of the best; keep the order.

    A unit on which a proof rests stays, however far it is from the best: its words need not be the question's (C6).
    """
    if not candidates:
        return (), ()
    kept: list[Candidate] = []
    dropped: list[Dropped] = []
    gap = candidates[0].fused * profile.gap
    for candidate in candidates:
        if candidate.fused < profile.min_score:
            dropped.append(Dropped(candidate, "min_score", profile.min_score, candidate.fused))
        elif candidate.fused < gap and not _proven(candidate):
            dropped.append(Dropped(candidate, "gap", gap, candidate.fused))
        else:
            kept.append(candidate)
    return tuple(kept), tuple(dropped)


# How a strategy notes that a unit carries a proof of something it does not state itself.
PROVEN = "derived: "


def _proven(candidate: Candidate) -> bool:
    return any(note.startswith(PROVEN) for claim in candidate.claims.values() for note in claim.notes)


def refusal(candidates: Sequence[Candidate], settings: RefusalSettings) -> str:
    """Return why even the candidate that is nearest to the question is too far to answer it (C4), or nothing.

    Words and meaning are weighed together: coverage / enough + cosine / enough must reach 1.
    """
    if not settings.enabled or not candidates:
        return ""
    near = [(words, cosine or 0.0) for words, cosine in map(nearness, candidates)]
    share, coverage, cosine = max(
        (words / settings.coverage + cos / settings.cosine, words, cos) for words, cos in near
    )
    if share >= 1.0:
        return ""
    return f"the nearest candidate covers {coverage:.2f} of its words and has a cosine of {cosine:.2f}"


def nearness(candidate: Candidate) -> tuple[float, float | None]:
    """Return how near a candidate is: the share of the question's idf mass that it matches, and its cosine."""
    dense = candidate.claims.get("dense")
    coverage = max((claim.coverage for claim in candidate.claims.values()), default=0.0)
    return coverage, None if dense is None else dense.raw_score
