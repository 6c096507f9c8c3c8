"""Several strategies' claims → one relevance (C6).

fused(u) = Σ weight·normalised + bonus·(strategies that found u - 1)
F        = Σ weights of the profile's primary strategies + bonus·(their number - 1)
rel(u)   = min(1, fused(u) / F)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.ranking.pool import Bools, Pool
from holdfast.settings import FusionSettings, ProfileSettings, RefusalSettings
from holdfast.types import Account, Adjustment, Claims, Contribution, CutRows, RetrievalResult

# A strategy nobody gave a weight counts like the lexical one.
_UNLISTED_WEIGHT = 1.0
# Derived (benchmarks/refusal.py): of 2 to 8, this tells answerable questions from others best on chats and documents.
_COSINE_WEIGHT = 4.0
# A short question has few words that could be met: what each of its first terms asks for.
_TERM_WEIGHT, _MOST_TERMS = 0.15, 4
# All of the question's idf mass, but for rounding.
_EVERY_WORD = 1.0 - 1e-9


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
    if profile.normalise == "own" or not result.claims.ids:
        return result.scale
    return float(result.claims.raw[0]) or 1.0


def fuse(
    ids: tuple[str, ...],
    claims: Mapping[str, Claims],
    claimed: Mapping[str, Bools],
    known: Mapping[str, NDArray[Any]],
    fusion: Fusion,
) -> Pool:
    """Return a pool of the units `ids` with their fused scores."""
    fused = np.zeros(len(ids))
    found = np.zeros(len(ids))
    for name, one in claims.items():
        fused = fused + fusion.weight(name) * np.minimum(one.raw / fusion.scales[name], 1.0)
        found = found + (one.raw > 0.0)
    if fusion.bonus:
        fused = fused + fusion.bonus * np.maximum(found - 1.0, 0.0)
    rel = np.minimum(fused / fusion.full_marks, 1.0)
    return Pool(ids, claims, claimed, known, fused, fused, rel, fusion.full_marks)


# ------------------------------------------------------------------------------------------------ explaining


def explain_fused(pool: Pool, row: int, accounts: Mapping[str, Account], fusion: Fusion) -> Contribution:
    """Return the fused score of a row as a tree: the same arithmetic as `fuse`, node by node."""
    names = [name for name in pool.claims if pool.claimed[name][row]]
    parts = [_explain_strategy(name, accounts[name].tree, fusion) for name in names]
    others = max(0.0, sum(float(pool.claims[name].raw[row]) > 0.0 for name in names) - 1.0)
    if others and fusion.bonus:
        bonus = Contribution("agreement bonus", fusion.bonus)
        parts.append(Contribution.of("agreement", "product", bonus, Contribution("further strategies", others)))
    return Contribution.of("fused", "sum", *parts)


def explain_rel(pool: Pool, row: int, accounts: Mapping[str, Account], fusion: Fusion) -> Contribution:
    """Return the relevance of a row as a tree, with what the stages did to it."""
    full = Contribution("full marks", fusion.full_marks)
    share = Contribution.of("share of full marks", "ratio", explain_fused(pool, row, accounts, fusion), full)
    rel = Contribution.of("rel", "minimum", share, Contribution("ceiling", 1.0))
    for adjustment in pool.candidate(row).adjustments:
        rel = _explain_adjustment(rel, adjustment)
    return rel


def _explain_adjustment(rel: Contribution, adjustment: Adjustment) -> Contribution:
    """Return what a stage did as a tree over the tree of what it was done to."""
    rest = Contribution("what is left", 1.0 - adjustment.weight)
    weight, signal = Contribution("weight", adjustment.weight), Contribution(adjustment.because, adjustment.signal)
    mixed = Contribution.of(
        adjustment.stage,
        "sum",
        Contribution.of("before", "product", rest, rel),
        Contribution.of("added", "product", weight, signal),
    )
    return Contribution.of(f"rel with {adjustment.stage}", "minimum", mixed, Contribution("ceiling", 1.0))


def _explain_strategy(name: str, raw: Contribution, fusion: Fusion) -> Contribution:
    share = Contribution.of(
        "share of the best", "ratio", raw, Contribution("best of this query", fusion.scales[name])
    )
    normalised = Contribution.of("normalised", "minimum", share, Contribution("ceiling", 1.0))
    return Contribution.of(name, "product", Contribution("strategy weight", fusion.weight(name)), normalised)


# --------------------------------------------------------------------------------------------------- cutting


def cut(pool: Pool, profile: ProfileSettings) -> tuple[Pool, tuple[CutRows, ...]]:
    """Drop what lies below `min_score` or below its share of the best; keep the order.

    A unit on which a proof rests stays, however far it is from the best: its words need not be the question's (C6).
    """
    if not len(pool):
        return pool, ()
    gap = float(pool.fused[0]) * profile.gap
    low = pool.fused < profile.min_score
    far = ~low & (pool.fused < gap) & ~pool.proven
    cuts = (
        pool.cut_rows(np.flatnonzero(low), "min_score", profile.min_score),
        pool.cut_rows(np.flatnonzero(far), "gap", gap),
    )
    return pool.keep(~(low | far)), cuts


def refusal(pool: Pool, terms: int, settings: RefusalSettings) -> str:
    """Return why all candidates are too far from a question of so many terms to answer it (C4), or nothing.

    The best coverage and the best cosine are weighed together, among turns and among passages of documents. One that
    holds every word of the question is never too far.
    """
    if not settings.enabled or not len(pool):
        return ""
    coverage = pool.coverage
    dense = pool.claims.get("dense")
    cosine = np.zeros(len(pool)) if dense is None else np.where(pool.claimed["dense"], dense.raw, 0.0)
    documents = pool.known["author"] == "document"
    for kind, least in ((~documents, settings.turns), (documents, settings.documents)):
        if kind.any() and nearness(float(coverage[kind].max()), float(cosine[kind].max()), terms) >= least:
            return ""
    if coverage.max() >= _EVERY_WORD:
        return ""
    return f"no candidate covers more than {coverage.max():.2f} of its words or has a cosine above {cosine.max():.2f}"


def nearness(coverage: float, cosine: float, terms: int) -> float:
    """Return how near a question is to what it finds: its best coverage and cosine, less what its length asks for."""
    return coverage + _COSINE_WEIGHT * cosine - _TERM_WEIGHT * min(terms, _MOST_TERMS)
