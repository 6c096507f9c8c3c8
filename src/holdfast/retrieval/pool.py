"""What the strategies find, made whole: the pool that fusion, stages and projection work on."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from holdfast.retrieval.asking import Engine, Question
from holdfast.retrieval.strategy import Strategy
from holdfast.types import Budget, Condition, Deadline, Junction, QueryProfile, RetrievalResult, View, iso


def retrieved(
    engine: Engine, question: Question, query: QueryProfile, view: View, depth: int
) -> tuple[RetrievalResult, ...]:
    """Let the profile's strategies look, and its escalation too when the first of them finds too little."""
    limits = engine.settings.retrieval

    def look(strategy: Strategy, timeout_ms: float) -> RetrievalResult:
        deadline = Deadline.start(engine.clock, timeout_ms)
        return strategy.retrieve(query, view, engine.store, Budget(timeout_ms, depth), deadline)

    results = [look(strategy, limits.timeout_ms) for strategy in question.strategies]
    if len(results[0].candidates) < question.profile.escalate_below:
        results += [look(strategy, limits.escalation_timeout_ms) for strategy in question.escalation]
    return tuple(results)


def completed(
    engine: Engine, question: Question, query: QueryProfile, results: Sequence[RetrievalResult], view: View
) -> tuple[dict[str, tuple[str, ...]], tuple[RetrievalResult, ...]]:
    """Let every primary strategy score the whole pool: what only another one found, and the turns beside it.

    A mix needs all its parts, and the stages need exact scores of neighbours. Return who is beside whom, too.
    """
    pool = dict.fromkeys(claim.unit_id for result in results for claim in result.candidates)
    pool |= dict.fromkeys(_said_then(engine, query, view))
    beside: dict[str, tuple[str, ...]] = {}
    if engine.settings.stages.smoothing and question.profile.rank_by == "score":
        around = engine.store.neighbours(view, [*pool])
        pool |= dict.fromkeys(unit_id for near in around.values() for unit_id in near)
        beside = engine.store.neighbours(view, [*pool])  # those of the newcomers too: they lean on who brought them
    return beside, joined(engine, question, query, results, [*pool], view)


def joined(
    engine: Engine,
    question: Question,
    query: QueryProfile,
    results: Sequence[RetrievalResult],
    ids: Sequence[str],
    view: View,
) -> tuple[RetrievalResult, ...]:
    """Let every primary strategy score those of `ids` that it did not find itself."""
    joined = []
    for strategy, result in zip(question.strategies, results, strict=False):
        known = {claim.unit_id for claim in result.candidates}
        missing = [unit_id for unit_id in ids if unit_id not in known]
        claims = strategy.score(query, view, engine.store, missing, explain=False) if missing else {}
        joined.append(dataclasses.replace(result, candidates=(*result.candidates, *claims.values())))
    return (*joined, *results[len(joined) :])


def _said_then(engine: Engine, query: QueryProfile, view: View) -> list[str]:
    """Return what happened in the time asked for, when the question asks for nothing else (C13)."""
    if query.time_range is None or not query.only_time:
        return []
    since, until = query.time_range
    start = Condition("field", ("event_time",), "gte", iso(since))
    end = Condition("field", ("event_time",), "lt", iso(until))
    parts = (start, end) if view.filters is None else (view.filters, start, end)
    then = dataclasses.replace(view, filters=Junction("and", parts))
    found = engine.store.scan(then, order="newest", limit=engine.settings.retrieval.max_candidates)
    return [unit.id for unit in found]


def explained(
    engine: Engine, question: Question, query: QueryProfile, results: Sequence[RetrievalResult], view: View
) -> tuple[RetrievalResult, ...]:
    """Let every claim carry its strategy's own tree instead of a bare raw score."""
    explained = []
    for strategy, result in zip((*question.strategies, *question.escalation), results, strict=False):
        trees = strategy.score(query, view, engine.store, [claim.unit_id for claim in result.candidates])
        claims = tuple(
            dataclasses.replace(claim, explanation=trees[claim.unit_id].explanation)
            for claim in result.candidates
            if claim.unit_id in trees
        )
        explained.append(dataclasses.replace(result, candidates=claims))
    return tuple(explained)
