"""The read path: every stage is one line, and the trace keeps what each decided."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from holdfast.analysis.lexical import TOKENIZERS
from holdfast.analysis.tokens import TokenCounter
from holdfast.assembly.assemble import fill
from holdfast.assembly.context import Context, Recalled
from holdfast.assembly.excerpt import term_overlap
from holdfast.assembly.plan import Plan, Request, plan_tail
from holdfast.prospects import links_of, prospects_of
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
    AuthoredText,
    Candidate,
    Contribution,
    Dropped,
    Hit,
    QueryProfile,
    RetrievalResult,
    SearchResult,
    Trace,
    Unit,
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
    ranked = sorted(((candidate, measure.value(candidate)) for candidate in kept), key=_best_first)
    hits, beyond = _limited(question, ranked, measure if explain else None)
    return SearchResult(hits, _trace(question, query, results, found, view, (*dropped, *beyond)))


@dataclass(frozen=True, slots=True)
class Making:
    """What a context is made of besides the answer to its question.

    `hidden` are units that the host shows already, `hidden_words` what it shows of no known session.
    """

    budget: int
    counter: TokenCounter
    hard: Sequence[AuthoredText] = ()
    soft: Sequence[AuthoredText] = ()
    session_turns: Sequence[Unit] = ()
    hidden: frozenset[str] = frozenset()
    hidden_words: frozenset[tuple[str, str]] = frozenset()
    strict: bool = False


def assemble(engine: Engine, question: Question, view: View, making: Making) -> Context:
    """Pack rules, the recent tail and what the question brings up into a text that keeps its budget."""
    engine = engine.for_one_question()
    plan = _planned(engine, making)
    settings = _with_room(engine.settings, plan)
    hidden = plan.tail_ids | making.hidden
    query = profiled(engine, question, view)
    results = retrieved(engine, question, query, view, _depth(settings, hidden))
    found = _found(engine, question, query, results, view).without(hidden, making.hidden_words)
    kept, dropped = _kept(engine, question, found)
    asked, prospects = prospects_of(engine, question, query, kept[: _most(question, settings)], view)
    links, targets = links_of(engine, prospects, hidden, view)
    projection = project(prospects, links, asked, settings, targets=targets)
    recalled = [Recalled(item.unit, item.score) for item in projection.items]
    context = fill(plan, recalled, term_overlap(query.terms, TOKENIZERS[settings.analysis.tokenizer]))
    trace = _trace(question, query, results, found, view, dropped)
    return dataclasses.replace(
        context.with_warnings(trace.warnings), trace=dataclasses.replace(trace, projection=projection)
    )


# ------------------------------------------------------------------------------------------------ searching


@dataclass(frozen=True, slots=True)
class Found:
    """The pool after fusion and stages, and why the question gets no answer, if it gets none."""

    fusion: Fusion
    candidates: tuple[Candidate, ...]
    refused: str

    def without(self, ids: frozenset[str], words: frozenset[tuple[str, str]]) -> Found:
        """Return the pool without units that are shown anyway."""
        rest = tuple(
            candidate
            for candidate in self.candidates
            if candidate.unit.id not in ids
            and (candidate.unit.author, candidate.unit.text) not in words
            # A summary of nothing but turns that are shown says nothing new (C18).
            and not (candidate.unit.lineage is not None and ids.issuperset(candidate.unit.lineage.sources))
        )
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
        stages.append(in_time(*query.time_range, 1.0 if query.only_time else settings.time_range))
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


def _planned(engine: Engine, making: Making) -> Plan:
    request = Request(
        budget=making.budget,
        counter=making.counter,
        settings=engine.settings.assembly,
        hard=making.hard,
        soft=making.soft,
        session_turns=making.session_turns,
        strict=making.strict,
    )
    return plan_tail(request)


def _with_room(settings: Settings, plan: Plan) -> Settings:
    """Let the passes look at more units when there is room for more."""
    return dataclasses.replace(settings, projection=widened(settings.projection, plan.room))


def _depth(settings: Settings, hidden: frozenset[str]) -> int:
    """Return how deep strategies look: what the tail shows already must not take the places of others."""
    return max(settings.retrieval.max_candidates, settings.projection.first) + len(hidden)


def _most(question: Question, settings: Settings) -> int:
    """Return how many candidates may enter pass 1: C6's maximum, unless pass 1 itself looks at more."""
    return max(question.profile.max_results, settings.projection.first)
