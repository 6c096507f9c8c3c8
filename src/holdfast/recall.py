"""The read path: every stage is one line, and the trace keeps what each decided."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from holdfast.assembly.context import Context, Recalled
from holdfast.assembly.pack import fill, term_overlap
from holdfast.assembly.plan import ContextRequest, Plan, plan_tail
from holdfast.language.lexical import TOKENIZERS
from holdfast.prospects import anchored, is_temporal, links_of, prospects_of, richest
from holdfast.ranking.cover import speaking
from holdfast.ranking.discover import widened
from holdfast.ranking.diversity import diversified
from holdfast.ranking.fuse import Fusion, cut, explain_fused, explain_rel, fuse, nearness, refusal
from holdfast.ranking.links import linked
from holdfast.ranking.project import project
from holdfast.ranking.score import Scoring
from holdfast.ranking.stages import Stage, identified, in_time, perspective, smoothing, staged
from holdfast.retrieval.asking import Engine, Question, profiled
from holdfast.retrieval.mentions import mentions_of, targets_of
from holdfast.retrieval.pool import completed, explained, joined, retrieved
from holdfast.settings import Settings
from holdfast.types import (
    Candidate,
    Contribution,
    Dropped,
    Hit,
    QueryProfile,
    RetrievalResult,
    SearchResult,
    Trace,
    View,
)


def search(engine: Engine, question: Question, view: View, *, explain: bool = False) -> SearchResult:
    """Answer a question with ranked hits."""
    engine = engine.for_one_question()
    query = profiled(engine, question, view)
    results = retrieved(engine, question, query, view, engine.settings.retrieval.max_candidates)
    found = _found(engine, question, query, results, view, explain=explain)
    kept, dropped = _kept(engine, question, found)
    measure = _measure(engine, question, found.fusion, view)
    ranked = _ranked(kept, measure)
    hits, beyond = _limited(question, ranked, measure if explain else None)
    return SearchResult(hits, _trace(question, query, results, found, view, (*dropped, *beyond)))


def assemble(engine: Engine, question: Question, view: View, request: ContextRequest) -> Context:
    """Pack rules, the recent tail and what the question brings up into a text that keeps its budget."""
    engine = engine.for_one_question()
    query = profiled(engine, question, view)
    pool = _pool(engine, question, query, view, engine.settings.retrieval.max_candidates)
    first = _first_hit(engine, question, pool.found, view, request)
    plan = plan_tail(dataclasses.replace(request, first=first.unit if first is not None else None))
    settings = _with_room(engine.settings, plan)
    shown = Shown(plan.tail_ids | request.hidden, request.hidden_words)
    if (depth := _depth(settings, shown.ids)) > pool.depth:
        pool = _pool(engine, question, query, view, depth).after(pool)
    found = pool.found.without(shown)
    kept, dropped = _kept(engine, question, found)
    lead = first if first is not None and not shown.holds(first) else None
    entering = _led(kept, lead)[: _most(question, settings)]
    spare = _recoverable(engine, question, query, pool.found, entering, shown, view)
    asked, prospects = prospects_of(engine, question, query, (*entering, *spare), view)
    prospects, recoverable = prospects[: len(entering)], prospects[len(entering) :]
    links, targets = links_of(engine, prospects, shown.ids, view)
    projection = project(
        prospects, links, asked, settings, targets=targets, recoverable=recoverable,
        lead=lead.unit.id if lead is not None else None,
    )  # fmt: skip
    recalled = [Recalled(item.unit, item.score) for item in projection.items]
    context = fill(plan, recalled, term_overlap(query.terms, TOKENIZERS[settings.analysis.tokenizer]))
    trace = _trace(question, query, pool.results, found, view, dropped)
    return dataclasses.replace(
        context.with_warnings(trace.warnings), trace=dataclasses.replace(trace, projection=projection)
    )


# ------------------------------------------------------------------------------------------------ searching


@dataclass(frozen=True, slots=True)
class Shown:
    """What a context shows anyway: units, and words of the host that no session of ours has."""

    ids: frozenset[str]
    words: frozenset[tuple[str, str]]

    def holds(self, candidate: Candidate) -> bool:
        """Return whether it shows a candidate, or all the turns that a summary stands for (C18)."""
        unit = candidate.unit
        summed = unit.lineage is not None and self.ids.issuperset(unit.lineage.sources)
        return unit.id in self.ids or (unit.author, unit.text) in self.words or summed


@dataclass(frozen=True, slots=True)
class Found:
    """The pool after fusion and stages, and why the question gets no answer, if it gets none."""

    fusion: Fusion
    candidates: tuple[Candidate, ...]
    refused: str

    def without(self, shown: Shown) -> Found:
        """Return the pool without units that are shown anyway."""
        rest = tuple(candidate for candidate in self.candidates if not shown.holds(candidate))
        return dataclasses.replace(self, candidates=rest)


def _found(
    engine: Engine,
    question: Question,
    query: QueryProfile,
    results: Sequence[RetrievalResult],
    view: View,
    *,
    explain: bool = False,
) -> Found:
    fusion = Fusion.of(results, question.profile, engine.settings.fusion)
    ours = question.profile.rank_by == "score"  # a fused rank is the contract's own; nothing of ours is mixed in
    whole = ours or bool(question.profile.mix)
    beside, pool = completed(engine, question, query, results, view) if whole else ({}, tuple(results))
    candidates = fuse(pool, fusion)
    refused = _refused(engine, query, candidates)
    stages = _stages(engine, query, candidates, beside) if ours else []
    candidates = staged(candidates, stages, fusion.full_marks)
    mentions = mentions_of(engine, query, candidates, view) if ours else ()
    if newcomers := targets_of(mentions, pool):
        pool = joined(engine, question, query, pool, newcomers, view)
    pool = explained(engine, question, query, pool, view) if explain else pool
    if newcomers or explain:  # the pool has grown, or its claims have trees now
        candidates = staged(fuse(pool, fusion), stages, fusion.full_marks)
    candidates = linked(candidates, mentions, engine.settings.stages, fusion.full_marks)
    if ours:
        candidates = diversified(candidates, engine.settings.stages, question.profile.max_results, fusion.full_marks)
    return Found(fusion, candidates, refused)


def _kept(engine: Engine, question: Question, found: Found) -> tuple[tuple[Candidate, ...], tuple[Dropped, ...]]:
    """Let summaries and their turns settle who answers, then cut (C6)."""
    settled, left = speaking(() if found.refused else found.candidates, engine.settings.score)
    kept, dropped = cut(settled, question.profile)
    return tuple(kept), (*left, *dropped)


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
        weight = 1.0 if query.only_time else settings.time_range
        stages.append(in_time(*query.time_range, weight, query.date_terms))
    if (query.identifiers or query.years) and settings.identifiers:
        stages.append(identified(settings.identifiers))
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


def _ranked(kept: Sequence[Candidate], measure: Measure) -> list[tuple[Candidate, float]]:
    """Return the candidates with what the profile ranks by, best first, ties by id."""
    return sorted(((candidate, measure.value(candidate)) for candidate in kept), key=_best_first)


def _best_first(scored: tuple[Candidate, float]) -> tuple[float, str]:
    return (-scored[1], scored[0].unit.id)


def _limited(
    question: Question, ranked: Sequence[tuple[Candidate, float]], measure: Measure | None
) -> tuple[tuple[Hit, ...], list[Dropped]]:
    """Cut at the caller's maximum; the profile's stands in where none is named."""
    most = question.limit or question.profile.max_results
    explain = measure.explain if measure is not None else lambda _: None
    hits = tuple(
        Hit(
            candidate.unit,
            score,
            candidate.rel,
            rank,
            explain(candidate),
            candidate.merged_ids,
            _notes(candidate) if measure is not None else (),
            *nearness(candidate),
        )
        for rank, (candidate, score) in enumerate(ranked[:most], start=1)
    )
    bar = hits[-1].score if hits else 0.0
    return hits, [Dropped(candidate, "max", bar, score) for candidate, score in ranked[most:]]


def _notes(candidate: Candidate) -> tuple[str, ...]:
    """Return what the strategies say of a candidate besides their names and the words they matched."""
    said = (note for name, claim in candidate.claims.items() for note in claim.notes if note != name)
    return tuple(dict.fromkeys(note for note in said if not note.startswith("matched: ")))


def _trace(
    question: Question,
    query: QueryProfile,
    results: tuple[RetrievalResult, ...],
    found: Found,
    view: View,
    dropped: tuple[Dropped, ...],
) -> Trace:
    return Trace(query, question.profile_name, results, found.candidates, dropped, view.reference_time, found.refused)


# ----------------------------------------------------------------------------------------------- assembling


@dataclass(frozen=True, slots=True)
class Pool:
    """What strategies find when each looks so deep, and what is made of it."""

    depth: int
    results: tuple[RetrievalResult, ...]
    found: Found

    def after(self, earlier: Pool) -> Pool:
        """Return the same pool; a strategy that ran out of time in either look did so for the answer."""
        late = {result.strategy_id for result in earlier.results if result.exhausted_budget}
        results = tuple(
            dataclasses.replace(result, exhausted_budget=result.exhausted_budget or result.strategy_id in late)
            for result in self.results
        )
        return dataclasses.replace(self, results=results)


def _pool(engine: Engine, question: Question, query: QueryProfile, view: View, depth: int) -> Pool:
    results = retrieved(engine, question, query, view, depth)
    return Pool(depth, results, _found(engine, question, query, results, view))


def _first_hit(
    engine: Engine, question: Question, found: Found, view: View, request: ContextRequest
) -> Candidate | None:
    """Return the first of the hits that `search` gives, unless the host shows it already."""
    if not engine.settings.assembly.first_hit:
        return None
    kept, _ = _kept(engine, question, found)
    ranked = _ranked(kept, _measure(engine, question, found.fusion, view))
    first = ranked[0][0] if ranked else None
    return None if first is None or Shown(request.hidden, request.hidden_words).holds(first) else first


def _led(kept: Sequence[Candidate], lead: Candidate | None) -> tuple[Candidate, ...]:
    """Return the candidates with one at their head; a deeper look may have merged it with a copy, or cut it."""
    if lead is None:
        return tuple(kept)
    same = next((one for one in kept if one.unit.id == lead.unit.id), lead)
    return (same, *(one for one in kept if lead.unit.id not in (one.unit.id, *one.merged_ids)))


def _recoverable(
    engine: Engine, question: Question, query: QueryProfile, found: Found, entering: Sequence[Candidate],
    shown: Shown, view: View,
) -> list[Candidate]:  # fmt: skip
    """Return whom the temporal selector may bring back besides those that enter, whatever cut them off (C13)."""
    if found.refused or not is_temporal(engine, question):
        return []
    taken = {candidate.unit.id for candidate in entering}
    settled, _ = speaking(found.without(shown).candidates, engine.settings.score)
    left = [candidate for candidate in settled if candidate.unit.id not in taken]
    merged = (unit_id for one in found.candidates for unit_id in (one.unit.id, *one.merged_ids))
    beyond = anchored(engine, question, query, found.fusion, shown.ids.union(merged), view)
    if question.profile.rank_by == "score":
        beyond = staged(beyond, _stages(engine, query, beyond, {}), found.fusion.full_marks)
    return richest(engine, [*left, *(one for one in beyond if not shown.holds(one))], view)


def _with_room(settings: Settings, plan: Plan) -> Settings:
    """Let the passes look at more units when there is room for more."""
    return dataclasses.replace(settings, projection=widened(settings.projection, plan.room))


def _depth(settings: Settings, hidden: frozenset[str]) -> int:
    """Return how deep strategies look: what the tail shows already must not take the places of others."""
    return max(settings.retrieval.max_candidates, settings.projection.first + len(hidden))


def _most(question: Question, settings: Settings) -> int:
    """Return how many candidates may enter pass 1: C6's maximum, unless pass 1 itself looks at more."""
    return max(question.profile.max_results, settings.projection.first)
