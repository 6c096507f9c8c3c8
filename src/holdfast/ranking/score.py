"""Claims of strategies → one relevance (C6); relevance, recency, scope and summary quality → the score (C9).

fused(u) = Σ weight·normalised + bonus·(strategies that found u - 1)
F        = Σ weights of the profile's primary strategies + bonus·(their number - 1)
rel(u)   = min(1, fused(u) / F)
base(d)  = α·rel + β·R + γ·S          score(d) = base·Q, at most 1
R = exp(-λ_scope·age)                 Q = 1 - δ·decay_rate for a summary, else 1

Also how sure a hit is, when nothing answers a question (C4), and whether a summary or its turns rank (C18).
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from holdfast.kernels import Bools, Floats
from holdfast.kernels.vectors import decay, decay_all
from holdfast.ranking.pool import Pool
from holdfast.settings import FusionSettings, ProfileSettings, RefusalSettings, ScoreSettings
from holdfast.types import (
    Adjustment,
    Contribution,
    Cut,
    CutRows,
    Readings,
    RetrievalResult,
    StrategyExplanation,
    StrategyScores,
    Unit,
)
from holdfast.values import dataclass


class Evidence(NamedTuple):
    """What speaks for a hit: a constant, its nearness in meaning, rel, the logarithm of its rank, and the reader.

    `share` is the logarithm of the hit's share among all turns that were read and "nothing here answers"; `answers`
    is the logit that it answers at all.
    """

    base: float
    cosine: float
    rel: float
    rank: float
    share: float = 0.0
    answers: float = 0.0


# Derived (benchmarks/refusal.py): logistic fits to which hits answer, of those not read and of those that were.
_UNREAD = Evidence(base=-4.494, cosine=0.671, rel=5.294, rank=-1.231)
_READ = Evidence(base=-2.794, cosine=2.759, rel=1.157, rank=-0.765, share=0.031, answers=0.303)
# A hit more likely answers than not; where nobody compared meaning, it holds all words of the question.
_SURE = 0.5
# Beyond this a logit says no more.
_SUREST = 30.0
# S of a unit of the active session, of a user's promoted unit, and of everything else (C9).
_SCOPE_ACTIVE, _SCOPE_DURABLE, _SCOPE_REST = 1.0, 0.6, 0.3
_EPOCH, _MICROSECOND = datetime(1970, 1, 1, tzinfo=UTC), timedelta(microseconds=1)


def confidence(given: Evidence, *, read: bool) -> float:
    """Return how often a hit with this evidence answers its question."""
    weights = _READ if read else _UNREAD
    return 1.0 / (1.0 + math.exp(-sum(value * weight for value, weight in zip(given, weights, strict=True))))


def confidences(ranked: Pool, most: int) -> tuple[float | None, ...]:
    """Return the confidence of each of the first hits; None where nobody compared meaning."""
    found: list[float | None] = []
    for row, unit_id in enumerate(ranked.ids[:most]):
        cosine, reading = ranked.cosine(row), reading_of(ranked.readings, unit_id)
        known = None if cosine is None else evidence_of(cosine, float(ranked.rel[row]), row + 1, reading)
        found.append(None if known is None else confidence(known, read=reading is not None))
    return tuple(found)


def reading_of(readings: Readings | None, unit_id: str) -> tuple[float, float] | None:
    """Return what the reader says of a unit as evidence, its share and that it answers; None if it read it not."""
    if readings is None or unit_id not in readings.turns:
        return None
    ranks = [one.rank for one in readings.turns.values()]
    most, reading = max(ranks), readings.turns[unit_id]
    every = most + math.log(sum(math.exp(rank - most) for rank in ranks))
    nothing = math.log1p(math.exp(min(readings.nothing, _SUREST)))
    chance = min(max(reading.answers, math.exp(-_SUREST)), 1.0 - math.exp(-_SUREST))
    return reading.rank - every - nothing, math.log(chance / (1.0 - chance))


def evidence_of(cosine: float, rel: float, rank: int, reading: tuple[float, float] | None) -> Evidence:
    """Return what speaks for a hit."""
    return Evidence(1.0, cosine, rel, math.log(rank), *(reading or ()))


def is_sure(ranked: Pool, sure: Sequence[float | None]) -> bool:
    """Return whether one of the first hits more likely answers than not."""
    if any(one is not None for one in sure):
        return max(one for one in sure if one is not None) >= _SURE
    return bool((ranked.coverage[: len(sure)] >= _EVERY_WORD).any())


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
        everyones = pool.columns["scope"] == "global"
        active = ~everyones & (pool.columns["session"] == self.session) & (self.session is not None)
        durable = pool.columns["scope"] == "user"
        lasting = np.where(durable, _SCOPE_DURABLE, _SCOPE_REST)  # neither is everyone's
        scopes = np.where(active, _SCOPE_ACTIVE, lasting)
        rates = np.where(active, settings.lambda_session, settings.lambda_user)
        return scopes, np.where(everyones, settings.lambda_global, rates)

    def _recency(self, pool: Pool, rates: Floats) -> Floats:
        """Return R ∈ [0, 1]; an authored rule does not age, a summary is as old as its last source."""
        ages = ((self.at - _EPOCH) // _MICROSECOND - pool.columns["ends"]) / 1e6
        return np.where(pool.columns["kind"] == "authored", 1.0, decay_all(rates, ages))


def qualities(pool: Pool, settings: ScoreSettings) -> Floats:
    """Return Q ∈ [1 - δ, 1] of every row."""
    rates: Floats = pool.columns["decay_rate"]
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


def choose_summaries(pool: Pool, settings: ScoreSettings) -> tuple[Pool, tuple[CutRows, ...]]:
    """Let a summary answer, or the turns that it stands for (C18).

    A summary says several turns in fewer words, and one of the turns may say it better. Where a turn reaches its
    summary, turns speak for themselves and the summary gives way; where none does, the summary speaks for all.
    """
    weighed = pool.fused * qualities(pool, settings)
    summaries = np.flatnonzero(~np.isnan(pool.columns["decay_rate"])).tolist()
    weights = {pool.ids[row]: float(weighed[row]) for row in summaries}
    if not weights:
        return pool, ()
    covered_by = pool.columns["covered_by"].tolist()
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


# A strategy nobody gave a weight counts like the lexical one.
_UNLISTED_WEIGHT = 1.0
# Derived (benchmarks/refusal.py): of 2 to 8, this tells answerable questions from others best on chats and documents.
_COSINE_WEIGHT = 4.0
# A short question has few words that could be met: what each of its first terms asks for.
_TERM_WEIGHT, _MOST_TERMS = 0.15, 4

# Derived (benchmarks/refusal.py has the curve): the least nearness that keeps 99.6 % of the answerable questions of
# every development set, as at 99 % fewer answers are found, among turns and among passages of documents; what is
# asked of documents is nearer, and may be shorter than there.
LEAST_NEARNESS_TURNS, LEAST_NEARNESS_DOCUMENTS = 0.66, 1.25


class ReadingLimits(NamedTuple):
    """When nothing answers where turns are read (C4).

    The reader says so above `nothing`, or above `nothing_far` where no turn has the nearness `near`; where none has
    the nearness `far` it is not asked.
    """

    nothing: float
    nothing_far: float
    near: float
    far: float


# Derived (benchmarks/refusal.py), for each way of reading.
LIMITS: Mapping[str, ReadingLimits] = {
    "once": ReadingLimits(nothing=5.0, nothing_far=3.0, near=0.78, far=0.58),
    "wide": ReadingLimits(nothing=5.0, nothing_far=3.0, near=0.78, far=0.58),
}
# All of the question's idf mass, but for rounding.
_EVERY_WORD = 1.0 - 1e-9


@dataclass(frozen=True, slots=True)
class Fusion:
    """What the fusion of one query needs to know: weights, what raw scores are divided by, the bonus, and F.

    A unit that waits for its vector has the relevance that words alone give it: that of `words`.
    """

    weights: Mapping[str, float]
    scales: Mapping[str, float]
    bonus: float
    full_marks: float
    words: Fusion | None = None

    @classmethod
    def of(
        cls, results: Sequence[RetrievalResult], profile: ProfileSettings, settings: FusionSettings,
        asking: Collection[str] = (),
    ) -> Fusion:  # fmt: skip
        """Read it off the results: C6's weights and bonus, or the profile's own convex mix without a bonus.

        Units that are `asking` hold the words of the question, and are no measure of how well it is answered.
        """
        weights, bonus = (profile.mix, 0.0) if profile.mix else (settings.weights, settings.agreement_bonus)
        scales = {result.strategy_id: _scale(result, profile, asking) for result in results}
        total = 0.0
        for strategy_id in profile.strategies:
            total = total + weights.get(strategy_id, _UNLISTED_WEIGHT)
        return cls(weights, scales, bonus, total + bonus * (len(profile.strategies) - 1))

    def fuse(self, claims: Mapping[str, StrategyScores], rows: int) -> Floats:
        """Return the fused scores of so many rows."""
        fused, found = np.zeros(rows), np.zeros(rows)
        for name, one in claims.items():
            if name in self.scales:
                fused = fused + self.weight(name) * np.minimum(one.raw / self.scales[name], 1.0)
                found = found + (one.raw > 0.0)
        return fused + self.bonus * np.maximum(found - 1.0, 0.0) if self.bonus else fused

    def weight(self, strategy_id: str) -> float:
        """Return the weight of one strategy."""
        return self.weights.get(strategy_id, _UNLISTED_WEIGHT)


def _scale(result: RetrievalResult, profile: ProfileSettings, asking: Collection[str]) -> float:
    if profile.normalise == "own" or not result.claims.ids:
        return result.scale
    best = next((row for row, unit_id in enumerate(result.claims.ids) if unit_id not in asking), 0)
    return float(result.claims.raw[best]) or 1.0


def fuse(
    ids: tuple[str, ...],
    claims: Mapping[str, StrategyScores],
    claimed: Mapping[str, Bools],
    known: Mapping[str, NDArray[Any]],
    fusion: Fusion,
) -> Pool:
    """Return a pool of the units `ids` with their fused scores."""
    fused = fusion.fuse(claims, len(ids))
    rel = np.minimum(fused / fusion.full_marks, 1.0)
    pool = Pool(ids, claims, claimed, known, fused, fused, rel, fusion.full_marks)
    if fusion.words is None or not (waits := pool.waits).any():
        return pool
    by_words = np.minimum(fusion.words.fuse(claims, len(ids)) / fusion.words.full_marks, 1.0)
    rel = np.where(waits, by_words, rel)
    fused = np.where(waits, rel * fusion.full_marks, fused)
    return dataclasses.replace(pool, first=fused, fused=fused, rel=rel)


# ------------------------------------------------------------------------------------------------ explaining


def explain_fused(pool: Pool, row: int, accounts: Mapping[str, StrategyExplanation], fusion: Fusion) -> Contribution:
    """Return the fused score of a row as a tree: the same arithmetic as `fuse`, node by node."""
    if fusion.words is not None and pool.waits[row]:
        full = Contribution("full marks", fusion.full_marks)
        return Contribution.of("fused", "product", _explain_share(pool, row, accounts, fusion.words), full)
    return _explain_sum(pool, row, accounts, fusion)


def _explain_sum(pool: Pool, row: int, accounts: Mapping[str, StrategyExplanation], fusion: Fusion) -> Contribution:
    names = [name for name in pool.scores if pool.scored[name][row] and name in fusion.scales]
    parts = [_explain_strategy(name, accounts[name].tree, fusion) for name in names]
    others = max(0.0, sum(float(pool.scores[name].raw[row]) > 0.0 for name in names) - 1.0)
    if others and fusion.bonus:
        bonus = Contribution("agreement bonus", fusion.bonus)
        parts.append(Contribution.of("agreement", "product", bonus, Contribution("further strategies", others)))
    return Contribution.of("fused", "sum", *parts)


def explain_rel(pool: Pool, row: int, accounts: Mapping[str, StrategyExplanation], fusion: Fusion) -> Contribution:
    """Return the relevance of a row as a tree, with what the stages did to it."""
    waits = fusion.words is not None and pool.waits[row]
    rel = _explain_share(pool, row, accounts, fusion.words if fusion.words is not None and waits else fusion)
    for adjustment in pool.candidate(row).adjustments:
        rel = _explain_adjustment(rel, adjustment)
    return rel


def _explain_share(pool: Pool, row: int, accounts: Mapping[str, StrategyExplanation], fusion: Fusion) -> Contribution:
    full = Contribution("full marks", fusion.full_marks)
    share = Contribution.of("share of full marks", "ratio", _explain_sum(pool, row, accounts, fusion), full)
    return Contribution.of("rel", "minimum", share, Contribution("ceiling", 1.0))


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


def refusal(pool: Pool, terms: int, settings: RefusalSettings, turns: float | None = None) -> str:
    """Return why all candidates are too far from a question of so many terms to answer it (C4), or nothing.

    The best coverage and the best cosine are weighed together, among `turns`, of which another nearness may be asked
    than where none is read, and among passages of documents. One that holds every word of the question is never too
    far, and of one that waits for its vector nobody knows.
    """
    coverage = pool.coverage
    if not settings.enabled or not len(pool) or (pool.waits & (coverage > 0.0)).any():
        return ""
    cosine = _cosines(pool)
    documents = pool.columns["author"] == "document"
    of_turns = LEAST_NEARNESS_TURNS if turns is None else turns
    for kind, least in ((~documents, of_turns), (documents, LEAST_NEARNESS_DOCUMENTS)):
        if kind.any() and nearness(float(coverage[kind].max()), float(cosine[kind].max()), terms) >= least:
            return ""
    if coverage.max() >= _EVERY_WORD:
        return ""
    return f"no candidate covers more than {coverage.max():.2f} of its words or has a cosine above {cosine.max():.2f}"


def missing(pool: Pool, terms: int, settings: RefusalSettings, least: float) -> str:
    """Return why none of the turns that were read answers (C4), or nothing where something may, or none was read.

    The reader says so, above `least`. Of a passage of a document that is near enough, and of what rests on a proof,
    it knows nothing.
    """
    readings = pool.readings
    if readings is None or not settings.enabled or pool.proven.any():
        return ""
    documents = pool.keep(pool.columns["author"] == "document")
    if len(documents) and not refusal(documents, terms, settings):
        return ""
    count = len(readings.turns)
    said = f"none of the {count} turns that were read answers" if count > 1 else "the one turn read does not answer"
    return f"{said} it ({readings.nothing:.2f} > {least:g})" if readings.nothing > least else ""


def _cosines(pool: Pool) -> Floats:
    dense = pool.scores.get("dense")
    return np.zeros(len(pool)) if dense is None else np.where(pool.scored["dense"], dense.raw, 0.0)


def nearness(coverage: float, cosine: float, terms: int) -> float:
    """Return how near a question is to what it finds: its best coverage and cosine, less what its length asks for."""
    return coverage + _COSINE_WEIGHT * cosine - _TERM_WEIGHT * min(terms, _MOST_TERMS)
