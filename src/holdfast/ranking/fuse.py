"""Several strategies' claims → one relevance (C6).

fused(u) = Σ weight·normalised + bonus·(strategies that found u - 1)
F        = Σ weights of the profile's primary strategies + bonus·(their number - 1)
rel(u)   = min(1, fused(u) / F)
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from holdfast.settings import FusionSettings, ProfileSettings
from holdfast.types import Candidate, Contribution, Dropped, RetrievalResult, StrategyCandidate

# A strategy nobody gave a weight counts like the lexical one.
_UNLISTED_WEIGHT = 1.0


@dataclass(frozen=True, slots=True)
class Fusion:
    """What the fusion of one query needs to know: what each strategy's raw scores are divided by, and F."""

    scales: Mapping[str, float]
    full_marks: float
    settings: FusionSettings

    @classmethod
    def of(cls, results: Sequence[RetrievalResult], primary: Sequence[str], settings: FusionSettings) -> Fusion:
        """Read it off the results; `primary` are the strategies that always run."""
        scales = {result.strategy_id: result.scale for result in results}
        total = 0.0
        for strategy_id in primary:
            total = total + settings.weights.get(strategy_id, _UNLISTED_WEIGHT)
        return cls(scales, total + settings.agreement_bonus * (len(primary) - 1), settings)

    def weight(self, strategy_id: str) -> float:
        """Return the weight of one strategy."""
        return self.settings.weights.get(strategy_id, _UNLISTED_WEIGHT)


def fuse(results: Sequence[RetrievalResult], fusion: Fusion) -> tuple[Candidate, ...]:
    """Return one candidate per unit, copies merged, best first, ties by id."""
    claims: dict[str, dict[str, StrategyCandidate]] = {}
    for result in results:
        for claim in result.candidates:
            claims.setdefault(claim.unit_id, {})[result.strategy_id] = claim
    candidates = [_fuse_claims(found, fusion) for found in claims.values()]
    return merge_copies(sorted(candidates, key=lambda candidate: (-candidate.fused, candidate.unit.id)))


def _fuse_claims(claims: Mapping[str, StrategyCandidate], fusion: Fusion) -> Candidate:
    fused = 0.0
    for name, claim in claims.items():
        fused = fused + fusion.weight(name) * claim.normalized_score
    if len(claims) > 1:
        fused = fused + fusion.settings.agreement_bonus * (len(claims) - 1)
    return Candidate(next(iter(claims.values())).unit, fused, min(fused / fusion.full_marks, 1.0), claims)


def explain_fused(candidate: Candidate, fusion: Fusion) -> Contribution:
    """Return the fused score of a candidate as a tree: the same arithmetic as `fuse`, node by node."""
    parts = [_explain_strategy(name, claim, fusion) for name, claim in candidate.claims.items()]
    if len(parts) > 1:
        bonus = Contribution("agreement bonus", fusion.settings.agreement_bonus)
        parts.append(
            Contribution.of("agreement", "product", bonus, Contribution("further strategies", len(parts) - 1.0))
        )
    return Contribution.of("fused", "sum", *parts)


def explain_rel(candidate: Candidate, fusion: Fusion) -> Contribution:
    """Return the relevance of a candidate as a tree."""
    full = Contribution("full marks", fusion.full_marks)
    share = Contribution.of("share of full marks", "ratio", explain_fused(candidate, fusion), full)
    return Contribution.of("rel", "minimum", share, Contribution("ceiling", 1.0))


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
    """Drop what lies below `min_score` or below its share of the best; keep the order."""
    if not candidates:
        return (), ()
    kept: list[Candidate] = []
    dropped: list[Dropped] = []
    gap = candidates[0].fused * profile.gap
    for candidate in candidates:
        if candidate.fused < profile.min_score:
            dropped.append(Dropped(candidate, "min_score", profile.min_score, candidate.fused))
        elif candidate.fused < gap:
            dropped.append(Dropped(candidate, "gap", gap, candidate.fused))
        else:
            kept.append(candidate)
    return tuple(kept), tuple(dropped)
