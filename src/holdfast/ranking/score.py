"""Relevance, recency, scope and summary quality → the score that `search` ranks by (C9).

base(d)  = α·rel + β·R + γ·S          score(d) = base·Q, at most 1
R = exp(-λ_scope·age)                 Q = 1 - δ·decay_rate for a summary, else 1
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import numpy as np

from holdfast.kernels.vectors import decay, decay_all
from holdfast.ranking.pool import Floats, Pool
from holdfast.settings import ScoreSettings
from holdfast.types import Contribution, Cut, CutRows, Unit


class Evidence(NamedTuple):
    """What speaks for a hit: a constant, its nearness in words and in meaning, rel, the logarithm of its rank."""

    base: float
    coverage: float
    cosine: float
    rel: float
    rank: float


# Derived (benchmarks/refusal.py): a logistic fit to which hits answer, one question in five having no answer at all.
_CONFIDENCE = Evidence(base=-4.862, coverage=0.906, cosine=2.624, rel=3.603, rank=-0.692)
# S of a unit of the active session, of a user's promoted unit, and of everything else (C9).
_SCOPE_ACTIVE, _SCOPE_DURABLE, _SCOPE_REST = 1.0, 0.6, 0.3
_EPOCH, _MICROSECOND = datetime(1970, 1, 1, tzinfo=UTC), timedelta(microseconds=1)


def confidence(coverage: float, cosine: float | None, rel: float, rank: int) -> float | None:
    """Return how often a hit with this evidence answers its question; None when nobody compared meaning."""
    if cosine is None:
        return None
    given = Evidence(1.0, coverage, cosine, rel, math.log(rank))
    return 1.0 / (1.0 + math.exp(-sum(value * weight for value, weight in zip(given, _CONFIDENCE, strict=True))))


@dataclass(frozen=True, slots=True)
class Scoring:
    """What the hybrid score of one query needs to know: the active session and t_ref."""

    settings: ScoreSettings
    session: str | None
    at: datetime

    def score(self, pool: Pool) -> Floats:
        """Return the hybrid score of every row, in [0, 1]."""
        alpha, beta, gamma = self.settings.shares
        scopes, rates = self._scopes(pool)
        base = alpha * pool.rel + beta * self._recency(pool, rates) + gamma * scopes
        return np.minimum(base * qualities(pool, self.settings), 1.0)

    def explain(self, pool: Pool, row: int, rel: Contribution) -> Contribution:
        """Return the score of a row as a tree over the tree of its relevance: the same arithmetic, node by node."""
        alpha, beta, gamma = self.settings.shares
        pool = pool.take([row])
        scopes, rates = self._scopes(pool)
        recent = Contribution("R", float(self._recency(pool, rates)[0]))
        base = Contribution.of(
            "base",
            "sum",
            Contribution.of("relevance", "product", Contribution("alpha", alpha), rel),
            Contribution.of("recency", "product", Contribution("beta", beta), recent),
            Contribution.of("scope", "product", Contribution("gamma", gamma), Contribution("S", float(scopes[0]))),
        )
        quality_node = Contribution("Q", float(qualities(pool, self.settings)[0]))
        product = Contribution.of("base × quality", "product", base, quality_node)
        return Contribution.of("score", "minimum", product, Contribution("ceiling", 1.0))

    def _scopes(self, pool: Pool) -> tuple[Floats, Floats]:
        """Return (S, λ) of C1's visibility rule for every row."""
        settings = self.settings
        everyones = pool.known["scope"] == "global"
        active = ~everyones & (pool.known["session"] == self.session) & (self.session is not None)
        durable = pool.known["scope"] == "user"
        lasting = np.where(durable, _SCOPE_DURABLE, _SCOPE_REST)  # neither is everyone's
        scopes = np.where(active, _SCOPE_ACTIVE, lasting)
        rates = np.where(active, settings.lambda_session, settings.lambda_user)
        return scopes, np.where(everyones, settings.lambda_global, rates)

    def _recency(self, pool: Pool, rates: Floats) -> Floats:
        """Return R ∈ [0, 1]; an authored rule does not age, a summary is as old as its last source."""
        ages = ((self.at - _EPOCH) // _MICROSECOND - pool.known["ends"]) / 1e6
        return np.where(pool.known["kind"] == "authored", 1.0, decay_all(rates, ages))


def qualities(pool: Pool, settings: ScoreSettings) -> Floats:
    """Return Q ∈ [1 - δ, 1] of every row."""
    rates: Floats = pool.known["decay_rate"]
    return np.where(np.isnan(rates), 1.0, 1.0 - settings.delta * rates)


def quality(unit: Unit, settings: ScoreSettings) -> float:
    """Return Q(d) ∈ [1 - δ, 1]."""
    return 1.0 if unit.lineage is None else 1.0 - settings.delta * unit.lineage.decay_rate


def recency(unit: Unit, rate: float, at: datetime) -> float:
    """Return R(d) ∈ [0, 1]; an authored rule does not age, a summary is as old as its last source."""
    if unit.kind == "authored":
        return 1.0
    moment = unit.lineage.ends if unit.lineage is not None else unit.event_time
    return decay(rate, (at - moment).total_seconds())


def settle_summaries(pool: Pool, settings: ScoreSettings) -> tuple[Pool, tuple[CutRows, ...]]:
    """Let a summary answer, or the turns that it stands for (C18).

    A summary says several turns in fewer words, and one of the turns may say it better. Where a turn reaches its
    summary, turns speak for themselves and the summary gives way; where none does, the summary speaks for all.
    """
    weighed = pool.fused * qualities(pool, settings)
    summaries = np.flatnonzero(~np.isnan(pool.known["decay_rate"])).tolist()
    weights = {pool.ids[row]: float(weighed[row]) for row in summaries}
    if not weights:
        return pool, ()
    covered_by = pool.known["covered_by"].tolist()
    best: dict[str, float] = {}
    for row, by in enumerate(covered_by):
        if by in weights:
            best[by] = max(best.get(by, 0.0), float(pool.fused[row]))
    turns: dict[int, tuple[float, float]] = {}
    summed: dict[int, tuple[float, float]] = {}
    for row, by in enumerate(covered_by):
        unit_id = pool.ids[row]
        if unit_id in best and best[unit_id] >= weights[unit_id]:
            turns[row] = (best[unit_id], weights[unit_id])
        elif by in weights and best[by] < weights[by]:
            summed[row] = (weights[by], float(pool.fused[row]))
    kept = np.ones(len(pool), dtype=np.bool_)
    kept[[*turns, *summed]] = False
    return pool.keep(kept), (_cut_rows(pool, "turns", turns), _cut_rows(pool, "summary", summed))


def _cut_rows(pool: Pool, cut: Cut, rows: Mapping[int, tuple[float, float]]) -> CutRows:
    bars = np.array([*rows.values()], dtype=np.float64).reshape(-1, 2)
    return pool.cut_rows(np.array([*rows], dtype=np.intp), cut, bars[:, 0], bars[:, 1])
