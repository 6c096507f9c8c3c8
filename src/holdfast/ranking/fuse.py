"""Several strategies' claims → one relevance (C6).

fused(u) = Σ weight·normalised + bonus·(strategies that found u - 1)
F        = Σ weights of the profile's primary strategies + bonus·(their number - 1)
rel(u)   = min(1, fused(u) / F)
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from holdfast.settings import FusionSettings, ProfileSettings
from holdfast.types import Candidate, Contribution, Dropped, RetrievalResult, StrategyCandidate

# A strategy nobody gave a weight counts like the lexical one.
_UNLISTED_WEIGHT = 1.0


def fuse(
    results: Sequence[RetrievalResult], primary: Sequence[str], settings: FusionSettings
) -> tuple[Candidate, ...]:
    """Return one candidate per unit, copies merged, best first, ties by id."""
    claims: dict[str, dict[str, StrategyCandidate]] = {}
    for result in results:
        for claim in result.candidates:
            claims.setdefault(claim.unit_id, {})[result.strategy_id] = claim
    best = {result.strategy_id: result.candidates[0].raw_score for result in results if result.candidates}
    full = full_marks(primary, settings)
    candidates = [fuse_claims(found, best, full, settings) for found in claims.values()]
    return merge_copies(sorted(candidates, key=_rank_key))


def full_marks(primary: Sequence[str], settings: FusionSettings) -> float:
    """Return F: what a unit gets that every primary strategy puts first."""
    total = 0.0
    for strategy_id in primary:
        total = total + settings.weights.get(strategy_id, _UNLISTED_WEIGHT)
    return total + settings.agreement_bonus * (len(primary) - 1)


def fuse_claims(
    claims: Mapping[str, StrategyCandidate], best: Mapping[str, float], full: float, settings: FusionSettings
) -> Candidate:
    """Return the fused candidate of one unit. `best` is each strategy's best raw score of this query."""
    parts = [_strategy_part(name, claim, best[name], settings) for name, claim in claims.items()]
    if len(claims) > 1:
        bonus = Contribution("agreement bonus", settings.agreement_bonus)
        others = Contribution("further strategies", float(len(claims) - 1))
        parts.append(Contribution.of("agreement", "product", bonus, others))
    fused = Contribution.of("fused", "sum", *parts)
    share = Contribution.of("share of full marks", "ratio", fused, Contribution("full marks", full))
    rel = Contribution.of("rel", "minimum", share, Contribution("ceiling", 1.0))
    unit = next(iter(claims.values())).unit
    return Candidate(unit, fused.value, rel.value, dict(claims), rel)


def _strategy_part(name: str, claim: StrategyCandidate, best: float, settings: FusionSettings) -> Contribution:
    weight = Contribution("strategy weight", settings.weights.get(name, _UNLISTED_WEIGHT))
    raw = claim.explanation or Contribution("raw score", claim.raw_score)
    normalised = Contribution.of("normalised", "ratio", raw, Contribution("best of this query", best))
    return Contribution.of(name, "product", weight, normalised)


def merge_copies(candidates: Sequence[Candidate]) -> tuple[Candidate, ...]:
    """Fold copies of the same words, said by the same one at the same time, into the best of them."""
    kept: dict[tuple[str, ...], Candidate] = {}
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


def _rank_key(candidate: Candidate) -> tuple[float, str]:
    return (-candidate.fused, candidate.unit.id)
