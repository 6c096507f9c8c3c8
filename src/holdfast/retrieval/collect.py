"""What is found for a question: everything that any strategy found is one pool, scored by all of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, compress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.kernels import Bools
from holdfast.ranking.pool import Pool, StageInputs
from holdfast.ranking.score import Fusion, fuse
from holdfast.retrieval.question import Engine, Question
from holdfast.retrieval.strategy import Strategy, retrieve
from holdfast.store.contract import ColumnName, Reading, TimeQuery
from holdfast.text.questions import asks_what_was_asked
from holdfast.types import QUESTION, QueryProfile, RetrievalResult, StrategyScores

# What ranking needs to know of a unit besides its scores.
_KNOWN: tuple[ColumnName, ...] = (
    "author", "speaker", "session", "scope", "kind", "event_time", "starts", "ends", "decay_rate", "covered_by",
    "length", "said", "stating",
)  # fmt: skip
_NEIGHBOURS: tuple[ColumnName, ...] = ("before", "after")


@dataclass(frozen=True, slots=True)
class Retrieval:
    """What a question finds when strategies look `depth` deep: their own results, how they are fused, and the pool.

    `refused` says why the question gets no answer, if it gets none.
    """

    results: tuple[RetrievalResult, ...]
    fusion: Fusion
    pool: Pool
    depth: int
    refused: str = ""


def collect(engine: Engine, question: Question, query: QueryProfile, reading: Reading, depth: int) -> Retrieval:
    """Let the profile's strategies look `depth` deep, and every part of a mix score the whole pool."""
    results = search_strategies(engine, question, query, reading, depth)
    ids = tuple(dict.fromkeys(unit_id for result in results for unit_id in result.claims.ids))
    beside: Mapping[str, NDArray[Any]] = {}
    if question.is_staged:
        ids, beside = _add_neighbours(engine, query, reading, ids)
    whole = question.is_staged or bool(question.profile.mix)
    primary = question.strategies if whole else ()
    claims, claimed = _align(results, ids, {one.id: partial(one.score, query, reading) for one in primary})
    known = {**reading.columns(ids, _KNOWN), **beside}
    known["asks"] = _find_asking(engine, question, query, known["stating"])
    asking = {*compress(ids, known["asks"].tolist())}
    fusion = Fusion.of(results, question.profile, engine.settings.fusion, asking)
    return Retrieval(results, fusion, fuse(ids, claims, claimed, known, fusion).merge_copies(), depth)


def _find_asking(engine: Engine, question: Question, query: QueryProfile, stating: NDArray[Any]) -> Bools:
    """Return which units answer nothing, as they only ask; none where the question is about what was asked."""
    minded = question.is_staged and engine.settings.stages.questions > 0.0 and not asks_what_was_asked(query.text)
    return (stating & QUESTION) * minded > 0


def search_strategies(
    engine: Engine, question: Question, query: QueryProfile, reading: Reading, depth: int
) -> tuple[RetrievalResult, ...]:
    """Let the profile's strategies look, and its escalation too when the first of them finds too little."""
    limits = engine.settings.retrieval

    def look(strategy: Strategy, timeout_ms: float) -> RetrievalResult:
        return retrieve(strategy, query, reading, depth, engine.deadline(timeout_ms))

    results = [look(strategy, limits.timeout_ms) for strategy in question.strategies]
    if len(results[0].claims.ids) < question.profile.escalate_below:
        further = (look(strategy, limits.escalation_timeout_ms) for strategy in question.escalation)
        results += [dataclasses.replace(one, escalated=True) for one in further]
    return tuple(results)


def _add_neighbours(
    engine: Engine, query: QueryProfile, reading: Reading, ids: tuple[str, ...]
) -> tuple[tuple[str, ...], Mapping[str, NDArray[Any]]]:
    """Return the ids with the turns beside them, and who is beside whom.

    A question that asks for a time alone finds what happened then (C13).
    """
    if query.time_range is not None and query.only_time:
        limits = engine.settings.retrieval
        then = reading.propose(
            TimeQuery(*query.time_range), limits.max_candidates, engine.deadline(limits.timeout_ms)
        )
        ids = tuple(dict.fromkeys((*ids, *then.ids)))
    if not engine.settings.stages.smoothing:
        return ids, {}
    around = reading.columns(ids, _NEIGHBOURS)
    pairs = zip(*(around[name].tolist() for name in _NEIGHBOURS), strict=True)
    known = {None, *ids}
    near = tuple(one for one in dict.fromkeys(chain.from_iterable(pairs)) if one not in known)
    theirs = reading.columns(near, _NEIGHBOURS)  # they lean on who brought them
    return (*ids, *near), {name: np.concatenate([around[name], theirs[name]]) for name in _NEIGHBOURS}


def _align(
    results: Sequence[RetrievalResult],
    ids: tuple[str, ...],
    score: Mapping[str, Callable[[Sequence[str]], StrategyScores]],
) -> tuple[dict[str, StrategyScores], dict[str, Bools]]:
    """Return the columns of each strategy over all the rows, and of which rows it said anything.

    What a strategy did not find itself it scores, if `score` says how: a mix needs all its parts.
    """
    row_of = {unit_id: row for row, unit_id in enumerate(ids)}
    claims, claimed = {}, {}
    for result in results:
        name, found = result.strategy_id, result.claims
        rows = np.fromiter(map(row_of.__getitem__, found.ids), np.intp, len(found.ids))
        mask = np.zeros(len(ids), dtype=np.bool_)
        mask[rows] = True
        rest = np.flatnonzero(~mask)
        if len(rest):
            missing = tuple(map(ids.__getitem__, rest.tolist()))
            nothing = partial(StrategyScores.of, relative=found.relative, terms=found.matched.shape[1])
            found, rows = found.joined(score.get(name, nothing)(missing)), np.concatenate([rows, rest])
        claims[name], claimed[name] = found.take(np.argsort(rows)), mask | (name in score)
    return claims, claimed


def score_units(
    engine: Engine, question: Question, query: QueryProfile, reading: Reading, found: Retrieval, ids: Sequence[str]
) -> Pool:
    """Return a pool of further units with their fused scores: nobody found them, every primary strategy scores them.

    They are not smoothed: what is beside them was not looked for.
    """
    rows = tuple(ids)
    primary = {strategy.id: strategy for strategy in question.strategies}
    claims, claimed = {}, {}
    for name, known in found.pool.scores.items():
        scored = primary[name].score(query, reading, rows) if name in primary else None
        claims[name] = scored or StrategyScores.of(rows, relative=known.relative, terms=known.matched.shape[1])
        claimed[name] = np.full(len(rows), scored is not None)
    columns = dict(reading.columns(rows, _KNOWN))
    columns["asks"] = _find_asking(engine, question, query, columns["stating"])
    columns |= {name: np.full(len(rows), None, dtype=object) for name in _NEIGHBOURS if name in found.pool.columns}
    return fuse(rows, claims, claimed, columns, found.fusion)


def stage_inputs(
    engine: Engine, question: Question, query: QueryProfile, reading: Reading, found: Retrieval
) -> StageInputs:
    """Return what the stages work with: what is asked, and where to look up more."""
    profile, settings = question.profile, engine.settings
    least = max(profile.min_score / found.fusion.full_marks, profile.gap, settings.projection.min_similarity)
    return StageInputs(
        query, settings.stages, profile.max_results, reading.units,
        lambda keys, most, mentioned: reading.find_names(keys, most, mentioned=mentioned),
        lambda ids: score_units(engine, question, query, reading, found, ids), least,
    )  # fmt: skip
