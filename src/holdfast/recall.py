"""The read path: every stage is one line, and the trace keeps what each decided."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from holdfast.analysis.dates import TimeMention, TimeRange, time_mention
from holdfast.analysis.query import asks_for_nothing, profile_query, without_names
from holdfast.embedders.base import Embedder, checked
from holdfast.ranking.fuse import Fusion, cut, explain_fused, explain_rel, fuse, refusal
from holdfast.ranking.score import Scoring
from holdfast.ranking.stages import Stage, in_time, perspective, smoothing, staged
from holdfast.retrieval.base import Strategy
from holdfast.settings import ProfileSettings, Settings
from holdfast.store.base import Store
from holdfast.types import (
    Budget,
    Candidate,
    Condition,
    Contribution,
    Deadline,
    Dropped,
    Hit,
    Junction,
    QueryProfile,
    RetrievalResult,
    SearchResult,
    StrategyStanding,
    Trace,
    Unit,
    View,
    Why,
    iso,
)

# A unit that tells of an event says most of the event's words; "the trip" alone is told by many.
_EVENT_COVERAGE = 0.6


@dataclass(frozen=True, slots=True)
class Engine:
    """What a recall needs and does not own. `clock` counts seconds for time budgets."""

    store: Store
    settings: Settings
    clock: Callable[[], float]
    embedder: Callable[[], Embedder | None]


@dataclass(frozen=True, slots=True)
class Question:
    """One search: the words, the user's message before them, the profile, and how many hits are wanted."""

    text: str
    previous: str | None
    profile_name: str
    profile: ProfileSettings
    strategies: Sequence[Strategy]
    escalation: Sequence[Strategy] = ()
    limit: int | None = None


def search(engine: Engine, question: Question, view: View, *, explain: bool = False) -> SearchResult:
    """Answer a question with ranked hits."""
    query = _profiled(engine, question, view)
    results = _retrieved(engine, question, query, view, engine.settings.retrieval.max_candidates)
    fusion = Fusion.of(results, question.profile, engine.settings.fusion)
    beside, pool = _completed(engine, question, query, results, view) if question.profile.mix else ({}, results)
    pool = _explained(engine, question, query, pool, view) if explain else pool
    candidates = fuse(pool, fusion)
    refused = _refused(engine, query, candidates)
    candidates = staged(candidates, _stages(engine, query, candidates, beside), fusion.full_marks)
    kept, dropped = cut(() if refused else candidates, question.profile)
    measure = _measure(engine, question, fusion, view)
    ranked = sorted(((candidate, measure.value(candidate)) for candidate in kept), key=_best_first)
    hits, beyond = _limited(question, ranked, measure if explain else None)
    trace = Trace(
        query, question.profile_name, results, candidates, (*dropped, *beyond), view.reference_time, refused
    )
    return SearchResult(hits, trace)


def why(engine: Engine, question: Question, unit: Unit, view: View) -> Why:
    """Say why `unit` is, or is not, among the hits of a question."""
    result = search(engine, question, view, explain=True)
    everything = _retrieved(engine, question, result.trace.query, view, _NO_LIMIT)
    standings = tuple(
        _standing(engine, strategy, found, result.trace.query, unit, view)
        for strategy, found in zip((*question.strategies, *question.escalation), everything, strict=False)
    )
    hidden = engine.store.visible(view, unit.id)
    if hidden is not None:
        return Why(unit, returned=False, verdict=f"not searched: {hidden}", standings=standings)
    return _verdict(engine, result, unit, standings)


# ------------------------------------------------------------------------------------------------ stages


def _profiled(engine: Engine, question: Question, view: View) -> QueryProfile:
    query = profile_query(
        question.text,
        previous=question.previous,
        speakers=engine.store.speakers(view),
        separators=engine.settings.analysis.compound_separators,
    )
    query = dataclasses.replace(query, **_time_asked(engine, question, query, view))
    embedder = engine.embedder() if "dense" in question.profile.strategies else None
    if embedder is None:
        return query
    text = f"{query.borrowed}\n{query.text}" if query.borrowed else query.text
    if engine.settings.stages.names_leave:
        text = without_names(text, query.participants)
    [vector] = checked([embedder.embed_query(text)], 1, embedder.dims, embedder.space)
    return dataclasses.replace(query, vector=vector, space=embedder.space)


def _time_asked(engine: Engine, question: Question, query: QueryProfile, view: View) -> dict[str, Any]:
    """Find the time that the question names; one that is told by an event is looked up by the event's words."""
    if not engine.settings.stages.time_range or not question.profile.mix:
        return {}
    mention = time_mention(query.text, view.reference_time)
    if mention is None:
        return {}
    span = mention.range or _event_range(engine, question, mention, view)
    if span is None:
        return {}
    return {"time_range": (span.start, span.end), "only_time": asks_for_nothing(mention.rest)}


def _event_range(engine: Engine, question: Question, mention: TimeMention, view: View) -> TimeRange | None:
    """Return the range around an event that a unit tells of in nearly all of the event's own words."""
    event = profile_query(mention.event or "", separators=engine.settings.analysis.compound_separators)
    lexical = next((strategy for strategy in question.strategies if strategy.id == "lexical"), None)
    if lexical is None or not event.terms:
        return None
    deadline = Deadline.start(engine.clock, engine.settings.retrieval.timeout_ms)
    budget = Budget(engine.settings.retrieval.timeout_ms, 1)
    found = lexical.retrieve(event, view, engine.store, budget, deadline).candidates
    if not found or found[0].coverage < _EVENT_COVERAGE:
        return None
    return mention.around(found[0].unit.event_time)


def _retrieved(
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


def _completed(
    engine: Engine, question: Question, query: QueryProfile, results: Sequence[RetrievalResult], view: View
) -> tuple[dict[str, tuple[str, ...]], tuple[RetrievalResult, ...]]:
    """Let every primary strategy score the whole pool: what only another one found, and the turns beside it.

    A mix needs all its parts, and the stages need exact scores of neighbours. Return who is beside whom, too.
    """
    pool = dict.fromkeys(claim.unit_id for result in results for claim in result.candidates)
    pool |= dict.fromkeys(_said_then(engine, query, view))
    beside = engine.store.neighbours(view, [*pool]) if engine.settings.stages.smoothing else {}
    pool |= dict.fromkeys(unit_id for near in beside.values() for unit_id in near)
    completed = []
    for strategy, result in zip(question.strategies, results, strict=False):
        known = {claim.unit_id for claim in result.candidates}
        missing = [unit_id for unit_id in pool if unit_id not in known]
        claims = strategy.score(query, view, engine.store, missing, explain=False) if missing else {}
        completed.append(dataclasses.replace(result, candidates=(*result.candidates, *claims.values())))
    return beside, (*completed, *results[len(completed) :])


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


def _refused(engine: Engine, query: QueryProfile, candidates: Sequence[Candidate]) -> str:
    """Return why a question gets no answer; one that asks for a time alone cannot be judged by its words."""
    if query.vector is None or query.only_time:
        return ""
    return refusal(candidates, engine.settings.refusal)


def _stages(
    engine: Engine, query: QueryProfile, candidates: Sequence[Candidate], beside: Mapping[str, Sequence[str]]
) -> list[Stage]:
    """Return the stages of the default recipe, in their order; the reference recipe has none."""
    settings = engine.settings.stages
    stages: list[Stage] = []
    if beside:
        stages.append(smoothing(candidates, beside, settings.smoothing, settings.smoothing_length))
    if settings.perspective:
        stages.append(perspective(query, settings.perspective))
    if query.time_range is not None:
        stages.append(in_time(*query.time_range, 1.0 if query.only_time else settings.time_range))
    return stages


@dataclass(frozen=True, slots=True)
class Measure:
    """What a profile ranks by: a number for every candidate, and the tree behind it for those that are explained."""

    value: Callable[[Candidate], float]
    explain: Callable[[Candidate], Contribution]


def _measure(engine: Engine, question: Question, fusion: Fusion, view: View) -> Measure:
    if question.profile.rank_by == "fused":
        return Measure(lambda candidate: candidate.fused, lambda candidate: explain_fused(candidate, fusion))
    scoring = Scoring(engine.settings.score, view.session, view.reference_time)
    return Measure(scoring.score, lambda candidate: scoring.explain(candidate, explain_rel(candidate, fusion)))


def _best_first(scored: tuple[Candidate, float]) -> tuple[float, str]:
    return (-scored[1], scored[0].unit.id)


def _limited(
    question: Question, ranked: Sequence[tuple[Candidate, float]], measure: Measure | None
) -> tuple[tuple[Hit, ...], list[Dropped]]:
    """Cut at the smaller of the profile's and the caller's maximum."""
    most = min(question.profile.max_results, question.limit or question.profile.max_results)
    explain = measure.explain if measure is not None else lambda _: None
    hits = tuple(
        Hit(candidate.unit, score, candidate.rel, rank, explain(candidate), candidate.merged_ids)
        for rank, (candidate, score) in enumerate(ranked[:most], start=1)
    )
    bar = hits[-1].score if hits else 0.0
    return hits, [Dropped(candidate, "max", bar, score) for candidate, score in ranked[most:]]


def _explained(
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


# --------------------------------------------------------------------------------------------- explaining

# How far down a rank is counted: beyond it "not among the best 10,000" says enough.
_NO_LIMIT = 10_000
_CUTS = {
    "min_score": "dropped: its fused score is below the profile's min_score",
    "gap": "dropped: its fused score is too far below the best hit's (the gap rule)",
    "max": "dropped: the list was full, and it ranked lower",
}


def _standing(
    engine: Engine, strategy: Strategy, result: RetrievalResult, query: QueryProfile, unit: Unit, view: View
) -> StrategyStanding:
    claim = strategy.score(query, view, engine.store, [unit.id]).get(unit.id)
    notes = claim.notes if claim else ()
    matched = tuple(note.removeprefix("matched: ") for note in notes if note.startswith("matched: "))
    ids = [candidate.unit_id for candidate in result.candidates]
    return StrategyStanding(
        strategy_id=strategy.id,
        rank=ids.index(unit.id) + 1 if unit.id in ids else None,
        found=len(ids),
        score=claim.raw_score if claim else 0.0,
        matched=matched,
        missing=tuple(term for term in query.terms if term not in matched) if strategy.id == "lexical" else (),
    )


def _verdict(engine: Engine, result: SearchResult, unit: Unit, standings: tuple[StrategyStanding, ...]) -> Why:
    found = partial(Why, unit, standings=standings, returned=True)
    absent = partial(Why, unit, standings=standings, returned=False)
    if result.trace.refused:
        return absent(verdict=f"the question was refused: {result.trace.refused}")
    for hit in result:
        if unit.id in (hit.unit.id, *hit.merged_ids):
            copy = f", as a copy of {hit.unit.id}" if unit.id != hit.unit.id else ""
            verdict = f"returned at rank {hit.rank}{copy}"
            return found(verdict=verdict, rank=hit.rank, score=hit.score, contributions=hit.contributions)
    for drop in result.trace.dropped:
        if unit.id in (drop.candidate.unit.id, *drop.candidate.merged_ids):
            short = drop.needed - drop.had
            return absent(verdict=_CUTS[drop.cut], score=drop.had, distance_to_cut=short)
    if any(standing.rank is not None for standing in standings):
        depth = engine.settings.retrieval.max_candidates
        return absent(verdict=f"not considered: no strategy has it among its best {depth}")
    return absent(verdict="not found: no strategy sees anything in common with the question")
