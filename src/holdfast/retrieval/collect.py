"""What is found for a question: everything that any strategy found is one pool, scored by all of them."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import UTC, timedelta, tzinfo
from functools import cache, partial
from itertools import chain, compress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.kernels import Bools, Floats
from holdfast.kernels.vectors import order_rows
from holdfast.ranking.pool import Pool, StageInputs, UnitCache
from holdfast.ranking.score import Fusion, fuse
from holdfast.retrieval.question import Engine, Question, without_dense
from holdfast.retrieval.strategy import Strategy, retrieve
from holdfast.settings import FusionSettings, ProfileSettings
from holdfast.store.contract import ColumnName, Reading
from holdfast.store.queries import TimeQuery
from holdfast.store.rows import microseconds
from holdfast.text.calendar import EPOCH, FIRST, LATEST, midnight
from holdfast.text.dates import TimeRange
from holdfast.text.questions import asks_what_was_asked, profile_query
from holdfast.text.temporal import date_words, name_day, name_time, told_times
from holdfast.text.terms import TOKENIZERS
from holdfast.types import QUESTION, QueryProfile, RetrievalResult, StrategyScores
from holdfast.values import dataclass

# What ranking needs to know of a unit besides its scores.
_KNOWN: tuple[ColumnName, ...] = (
    "author", "speaker", "session", "scope", "kind", "event_time", "starts", "ends", "decay_rate", "covered_by",
    "length", "said", "stating",
)  # fmt: skip
_NEIGHBOURS: tuple[ColumnName, ...] = ("before", "after")

_FIRST, _LAST = (midnight(day).replace(tzinfo=UTC) for day in (FIRST, LATEST))
_DAY = timedelta(days=1) / timedelta(microseconds=1)
# Of a question with a topic, so many of the best are read for the times that they tell of.
_TIMES_READ = 50


@dataclass(frozen=True, slots=True)
class Retrieval:
    """What a question finds when strategies look `depth` deep: their own results, how they are fused, and the pool.

    `refused` says why the question gets no answer, if it gets none; `unanswered` why what it gets is none; `notice`
    that nothing is of the time asked for.
    """

    results: tuple[RetrievalResult, ...]
    fusion: Fusion
    pool: Pool
    depth: int
    refused: str = ""
    unanswered: str = ""
    notice: str = ""


def collect(engine: Engine, question: Question, query: QueryProfile, reading: Reading, depth: int) -> Retrieval:
    """Let the profile's strategies look `depth` deep, and every part of a mix score the whole pool."""
    results = search_strategies(engine, question, query, reading, depth)
    ids = tuple(dict.fromkeys(unit_id for result in results for unit_id in result.claims.ids))
    beside: Mapping[str, NDArray[Any]] = {}
    if question.is_staged:
        ids, beside = _add_neighbours(engine, question, query, reading, ids)
    whole = question.is_staged or bool(question.profile.mix)
    primary = question.strategies if whole else ()
    claims, claimed = _align(results, ids, {one.id: partial(one.score, query, reading) for one in primary})
    known = {**reading.columns(ids, _KNOWN), **beside}
    known["asks"] = _find_asking(engine, question, query, known["stating"])
    asking = {*compress(ids, known["asks"].tolist())}
    fusion = _fusion_of(results, question.profile, engine.settings.fusion, asking)
    pool, notice = add_times(fuse(ids, claims, claimed, known, fusion).merge_copies(), query, reading)
    return Retrieval(results, fusion, pool, depth, notice=notice)


def _fusion_of(
    results: Sequence[RetrievalResult], profile: ProfileSettings, settings: FusionSettings, asking: Collection[str]
) -> Fusion:  # fmt: skip
    """Return how claims are fused, and how those of units are that wait for their vectors: as words alone are."""
    fusion = Fusion.of(results, profile, settings, asking)
    if "dense" not in profile.strategies:
        return fusion
    others = [one for one in results if one.strategy_id != "dense" and not one.escalated]
    return dataclasses.replace(fusion, words=Fusion.of(others, without_dense(profile), settings, asking))


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


def _find_by_time(engine: Engine, question: Question, query: QueryProfile, reading: Reading) -> Iterator[str]:
    """Yield what was said in a time that alone is asked for, last before and first after it, and what tells of it.

    What was on a day is told shortly before or after it ("yesterday", "on Friday"), or by its date.
    """
    if query.time_range is None or not query.only_time:
        return
    asked, zone, limits = TimeRange(*query.time_range), _zone(reading), engine.settings.retrieval
    deadline = engine.deadline(limits.timeout_ms)
    sides = TimeQuery(asked.start, asked.end), TimeQuery(_FIRST, asked.start), TimeQuery(asked.end, _LAST, "oldest")
    shares = limits.max_candidates, limits.max_candidates // 2, limits.max_candidates // 2
    inside, before, after = (
        reading.propose(side, most, deadline).ids for side, most in zip(sides, shares, strict=True)
    )
    dated = profile_query(date_words(asked, zone), tokenise=TOKENIZERS[engine.settings.analysis.tokenizer])
    lexical = [strategy for strategy in question.strategies if strategy.id == "lexical" and dated.terms]
    named = [retrieve(one, dated, reading, limits.max_candidates, deadline).claims.ids for one in lexical]
    yield from (*inside, *before[:1], *after[:1])
    for unit in reading.units([*dict.fromkeys(chain(before, after, *named))]).values():
        if any(time.share_in(asked) for time in _times_in(zone)(unit)):
            yield unit.id


def _add_neighbours(
    engine: Engine, question: Question, query: QueryProfile, reading: Reading, ids: tuple[str, ...]
) -> tuple[tuple[str, ...], Mapping[str, NDArray[Any]]]:
    """Return the ids with the turns beside them, and who is beside whom.

    A question that asks for a time alone finds what was said then, or tells of it (C13).
    """
    ids = tuple(dict.fromkeys((*ids, *_find_by_time(engine, question, query, reading))))
    if not engine.settings.stages.smoothing:
        return ids, {}
    around = reading.columns(ids, _NEIGHBOURS)
    pairs = zip(*(around[name].tolist() for name in _NEIGHBOURS), strict=True)
    known = {None, *ids}
    near = tuple(one for one in dict.fromkeys(chain.from_iterable(pairs)) if one not in known)
    theirs = reading.columns(near, _NEIGHBOURS)  # they lean on who brought them
    return (*ids, *near), {name: np.concatenate([around[name], theirs[name]]) for name in _NEIGHBOURS}


@cache
def _times_in(zone: tzinfo) -> UnitCache[tuple[TimeRange, ...]]:
    return UnitCache(lambda unit: told_times(unit.text, unit.event_time.astimezone(zone)))


def _zone(reading: Reading) -> tzinfo:
    return reading.view.reference_time.tzinfo or UTC


def add_times(pool: Pool, query: QueryProfile, reading: Reading) -> tuple[Pool, str]:
    """Add how far units are of the time asked for, said or told; where nothing is, what is nearest, and say so."""
    if query.time_range is None:
        return pool, ""
    asked, zone = TimeRange(*query.time_range), _zone(reading)
    start, end = microseconds(asked.start), microseconds(asked.end)
    first, last = pool.columns["starts"], pool.columns["ends"]
    before, after = np.where(last < start, last, -np.inf), np.where(first >= end, first, np.inf)
    of_time: Floats = ((first < end) & (last >= start)).astype(np.float64)
    row_of = {unit_id: row for row, unit_id in enumerate(pool.ids)}
    best = order_rows(pool.fused, pool.ids)[: None if query.only_time else _TIMES_READ].tolist()
    for unit_id, unit in reading.units([pool.ids[row] for row in best]).items():
        row = row_of[unit_id]
        for time in _times_in(zone)(unit):
            # Ten days around the one asked for are worth a third of it, a year next to nothing.
            of_time[row] = max(of_time[row], math.sqrt(time.share_in(asked)))
            if time.end <= asked.start:
                before[row] = max(before[row], microseconds(time.end) - 1)
            elif time.start >= asked.end:
                after[row] = min(after[row], microseconds(time.start))
    columns = {**pool.columns, "of_time": of_time}
    if of_time.any():
        return dataclasses.replace(pool, columns=columns), ""
    when = f"was said or dated {name_time(asked, zone)}"
    if not query.only_time or not len(pool):
        return dataclasses.replace(pool, columns=columns), f"nothing that was found {when}"
    edges = float(before.max()), float(after.min())
    columns["nearest"] = (before > edges[0] - _DAY) | (after < edges[1] + _DAY)
    moments = [EPOCH + timedelta(microseconds=edge) for edge in edges if np.isfinite(edge)]
    nearest = " and ".join(name_day(moment.astimezone(zone).date()) for moment in moments)
    return dataclasses.replace(pool, columns=columns), f"nothing {when}; nearest: {nearest}"


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
        claims[name] = found.take(np.argsort(rows))
        claimed[name] = (mask | (name in score)) & ~claims[name].waits
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
        claimed[name] = np.full(len(rows), scored is not None) & ~claims[name].waits
    columns = dict(reading.columns(rows, _KNOWN))
    columns["asks"] = _find_asking(engine, question, query, columns["stating"])
    columns |= {name: np.full(len(rows), None, dtype=object) for name in _NEIGHBOURS if name in found.pool.columns}
    pool = fuse(rows, claims, claimed, columns, found.fusion)
    if "of_time" not in found.pool.columns:
        return pool
    nearest = {"nearest": np.zeros(len(rows), dtype=np.bool_)} if "nearest" in found.pool.columns else {}
    timed, _ = add_times(pool, query, reading)
    return dataclasses.replace(pool, columns={**columns, "of_time": timed.columns["of_time"], **nearest})


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
