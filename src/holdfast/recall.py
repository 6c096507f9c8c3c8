"""The read path: every step is one line, and the trace keeps what each decided."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta

import numpy as np

from holdfast.context.candidates import (
    VisibleToHost,
    add_session,
    add_standing,
    event_slots_of,
    limit_candidates,
    load_candidates,
    read_memory,
    recover_anchored,
)
from holdfast.context.pack import SentenceScore, fill, fill_whole, term_overlap
from holdfast.context.plan import ContextRequest, Plan, plan_tail
from holdfast.context.project import group_units, grow_limits, project
from holdfast.errors import ClosedStoreError, DamagedStoreError, StoreError
from holdfast.kernels import Floats
from holdfast.kernels.vectors import order_rows
from holdfast.ranking.pool import Pool, ReadingInputs
from holdfast.ranking.read import find_outdated
from holdfast.ranking.score import (
    LIMITS,
    Scoring,
    choose_summaries,
    confidences,
    cut,
    explain_fused,
    explain_rel,
    is_sure,
    missing,
    refusal,
)
from holdfast.ranking.stages import STAGES, run_stages
from holdfast.retrieval.collect import Retrieval, collect, stage_inputs
from holdfast.retrieval.question import Engine, Question, read_question, score_once
from holdfast.settings import Settings
from holdfast.store.contract import Access, Reading, Store, read_once
from holdfast.text.sentences import matching_part
from holdfast.text.terms import TOKENIZERS
from holdfast.types import (
    AnswerState,
    CutRows,
    Hit,
    Projection,
    QueryProfile,
    SearchResult,
    StrategyExplanation,
    Trace,
    Unit,
    View,
)
from holdfast.types.contexts import Context, RecalledUnit, ReplacedAt
from holdfast.values import dataclass

# A month: what is of a shorter time is likely meant by who asks for it.
_LONGEST_TIME = timedelta(days=31)


def search(engine: Engine, question: Question, view: View, *, explain: bool = False) -> SearchResult:
    """Answer a question with ranked hits."""
    engine, question = engine.prepare(question, view)
    with engine.store.reading(view) as reading:
        query = read_question(engine, question, reading)
        found = retrieve_candidates(engine, question, query, reading, engine.settings.retrieval.max_candidates)
        kept, cuts = cut_candidates(engine, question, found)
        ranked, scores = rank(engine, question, kept, view)
        state = _state(question, query, found, ranked)
        ranked, scores, grouped = _group(question, ranked, scores)
        hits, beyond = _limit(question, ranked, scores, reading)
        hits = _show_parts(engine, query, hits)
        hits = _explain_hits(engine, question, query, found, ranked, hits, reading) if explain else hits
        return SearchResult(hits, _trace(question, query, found, view, (*cuts, grouped, beyond), state))


def count_access(store: Store, view: View, ids: tuple[str, ...]) -> tuple[str, ...]:
    """Count that a context held units (C11); where that cannot be written, the context is none the worse for it."""
    try:
        store.apply([Access(view, ids)])
    except (ClosedStoreError, DamagedStoreError):
        raise
    except StoreError as error:  # somebody else writes for long, a disk is full, a server is gone
        return (f"that these memories were used is not counted: {error}",)
    return ()


def read_access(store: Store, view: View, unit: Unit) -> Unit:
    """Return a unit with how often contexts held it."""
    counted = read_once(store, view, lambda reading: reading.columns([unit.id], ("access_count",)))
    return unit.evolve(access_count=int(counted["access_count"][0]))


def assemble(engine: Engine, question: Question, view: View, request: ContextRequest) -> Context:
    """Pack rules, the recent tail and what the question brings up into a text that keeps its budget."""
    engine, question = engine.prepare(question, view, event_slots_of(engine, question))
    with engine.store.reading(view) as reading:
        request = add_session(engine.store, request, view)
        query = read_question(engine, question, reading)
        question = score_once(question, query)
        found = retrieve_candidates(engine, question, query, reading, engine.settings.retrieval.max_candidates)
        request = add_standing(engine, request, query, reading)
        hits = _rank_hits(engine, question, found, view)
        state = _state(question, query, found, hits)
        first = _first_hit(engine, hits, request, reading)
        plan = plan_tail(dataclasses.replace(request, first=first.unit if first else None))
        settings = dataclasses.replace(engine.settings, projection=grow_limits(engine.settings.projection, plan.room))
        settings, lenient = _loosen(settings, question)
        shown = VisibleToHost(plan.shown_ids | request.hidden, request.hidden_words)
        found = _look_deeper(engine, question, query, reading, found, _depth(settings, shown.ids))
        unseen = shown.without(found.pool, reading)
        shown = shown.leaving(found.pool, unseen)
        rest = dataclasses.replace(found, pool=_read_alone(engine, query, unseen, reading))
        kept, cuts = cut_candidates(engine, lenient, rest)
        lead = first if first is not None and not shown.holds(first.unit) else None
        entering = limit_candidates(
            kept, lead.pool if lead else None, max(question.profile.max_results, settings.projection.first)
        )
        spare = recover_anchored(engine, question, query, found, entering, shown, reading)
        asked, prospects = load_candidates(engine, question, query, entering, spare, shown, reading)
        projection = project(asked, prospects, settings, lead=lead.unit.id if lead else None)
        recalled = _recalled_units(engine, projection, rest.pool, _late(engine, question, kept))
        overlap = term_overlap(query.terms, TOKENIZERS[settings.analysis.tokenizer])
        context = _pack(plan, recalled, overlap, shown, reading, state)
        trace = dataclasses.replace(_trace(question, query, rest, view, cuts, state), projection=projection)
        degraded = "; ".join(filter(None, (context.degraded, trace.degraded)))
        return dataclasses.replace(context.with_warnings(trace.warnings), degraded=degraded, trace=trace, state=state)


def _loosen(settings: Settings, question: Question) -> tuple[Settings, Question]:
    """Return what a context asks of candidates: it has room for more than the hits of a search (C6)."""
    part, profile, limits = settings.assembly.cut_share, question.profile, settings.projection
    lenient = dataclasses.replace(profile, min_score=profile.min_score * part, gap=profile.gap * part)
    projection = dataclasses.replace(limits, min_similarity=limits.min_similarity * part)
    return dataclasses.replace(settings, projection=projection), dataclasses.replace(question, profile=lenient)


def _late(engine: Engine, question: Question, kept: Pool) -> frozenset[str]:
    """Return which candidates came in only because a context asks for less."""
    strict, _ = cut(kept, question.profile)
    near = strict.keep(strict.rel >= engine.settings.projection.min_similarity)
    return frozenset(kept.ids).difference(near.ids)


def _read_alone(engine: Engine, query: QueryProfile, pool: Pool, reading: Reading) -> Pool:
    """Return the pool with the turns that reading is sure are out of date; only a context has remarks."""
    if engine.reader is None or pool.readings is None:
        return pool
    return find_outdated(pool, query, reading.units([*pool.readings.turns]), engine.reader.pair)


def _recalled_units(engine: Engine, projection: Projection, pool: Pool, late: Collection[str]) -> list[RecalledUnit]:
    """Return the items of a projection, each with its group, and with the day of what seems to have replaced it."""
    units, groups, read = [item.unit for item in projection.items], dict[str, str](), frozenset[str]()
    if engine.settings.assembly.packing != "prefix":
        read = frozenset(pool.readings.turns if pool.readings is not None else ())
        groups = group_units(units, pool.replaced if not read else {})  # newest first, two need no common group
    days = {unit.id: unit.event_time for unit in units}
    when: dict[str, ReplacedAt] = dict.fromkeys(pool.outdated, "later")
    when |= {older: days[newer] for older, newer in pool.replaced.items() if newer in days}
    late = {*late}.difference(one.unit.id for one in projection.chosen)
    return [
        RecalledUnit(
            unit, item.score, when.get(unit.id), groups.get(unit.id, ""), unit.id in late, unit.id in read
        )
        for unit, item in zip(units, projection.items, strict=True)
    ]  # fmt: skip


def _pack(
    plan: Plan, recalled: Sequence[RecalledUnit], overlap: SentenceScore, shown: VisibleToHost, reading: Reading,
    state: AnswerState,
) -> Context:  # fmt: skip
    """Put all of a small memory in, where a summary of what is there adds nothing; of another what was recalled."""
    memory = read_memory(plan, shown, {one.unit.id for one in recalled}, reading)
    whole = shown.joined(memory)
    beside = [one for one in recalled if one.unit.lineage is None or not whole.holds(one.unit)]
    context = fill_whole(plan, beside, memory, overlap, state) if memory else None
    return context or fill(plan, recalled, overlap, state)


# ------------------------------------------------------------------------------------------------ searching


def retrieve_candidates(
    engine: Engine, question: Question, query: QueryProfile, reading: Reading, depth: int
) -> Retrieval:
    """Collect candidates, run the recipe's stages over them, and judge whether something answers (C4)."""
    found = collect(engine, question, query, reading, depth)
    terms, settings = _terms_judged(query, found.pool), engine.settings.refusal
    limits = LIMITS.get(question.read)  # none where nothing is read

    def refuse(turns: float | None = None, pool: Pool = found.pool) -> str:
        return "" if terms is None else refusal(pool, terms, settings, turns)

    found = dataclasses.replace(found, refused=refuse(limits.far if limits else None))
    staging = stage_inputs(engine, question, query, reading, found)
    staging = dataclasses.replace(staging, reading=_reading_inputs(engine, question, found, reading.view))
    pool = run_stages(STAGES if question.is_staged else (), found.pool, staging)
    unanswered = ""
    if terms is not None and limits:
        unanswered = missing(pool, terms, settings, limits.nothing_far if refuse(limits.near) else limits.nothing)
    late = refuse() if unanswered or pool.readings is None else ""
    return dataclasses.replace(found, pool=pool, refused=found.refused or late, unanswered=unanswered)


def _reading_inputs(engine: Engine, question: Question, found: Retrieval, view: View) -> ReadingInputs | None:
    """Return what reading the first hits together works with, where they are read."""
    if engine.reader is None or found.refused:
        return None

    def rank_hits(pool: Pool) -> tuple[Pool, Floats]:
        kept, _ = cut_candidates(engine, question, dataclasses.replace(found, pool=pool))
        return rank(engine, question, kept, view)

    return ReadingInputs(
        engine.reader.judge, engine.reader.read_alone, rank_hits, engine.settings.score.shares[0], question.read
    )


def _terms_judged(query: QueryProfile, pool: Pool) -> int | None:
    """Return how many terms a question is judged by (C4); None for one that nobody can judge by its words.

    That is one that asks for a time alone, and any where meaning is not compared. What is of the time that is asked
    for need not hold its words; in a long time lies something of anybody.
    """
    if query.vector is None or query.only_time:
        return None
    if query.time_range is None or not pool.columns["of_time"].any():
        return len(query.terms)
    start, end = query.time_range
    return len(query.terms) - (len(query.time_terms) if end - start <= _LONGEST_TIME else 0)


def cut_candidates(engine: Engine, question: Question, found: Retrieval) -> tuple[Pool, tuple[CutRows, ...]]:
    """Let summaries and their turns settle who answers, then cut (C6)."""
    pool = found.pool.take([]) if found.refused else found.pool
    settled, left = choose_summaries(pool, engine.settings.score)
    kept, cuts = cut(settled, question.profile)
    return kept, (*left, *cuts)


def rank(engine: Engine, question: Question, kept: Pool, view: View) -> tuple[Pool, Floats]:
    """Return what was kept with what the profile ranks by, best first, ties by id."""
    scoring = Scoring(engine.settings.score, view.session, view.reference_time)
    scores = kept.fused if question.profile.rank_by == "fused" else scoring.score(kept)
    order = order_rows(scores, kept.ids)
    return kept.take(order), scores[order]


def _rank_hits(engine: Engine, question: Question, found: Retrieval, view: View) -> Pool:
    """Return the hits that `search` gives, best first."""
    kept, _ = cut_candidates(engine, question, found)
    return rank(engine, question, kept, view)[0]


def _state(question: Question, query: QueryProfile, found: Retrieval, ranked: Pool) -> AnswerState:
    """Return what the hits are worth, however many of them a caller wants (C4).

    What is of a time that alone is asked for answers; where nothing is of the time asked for, nobody can be sure.
    """
    if found.refused or found.unanswered or not len(ranked):
        return "nothing"
    if found.notice or query.only_time:
        return "closest" if found.notice else "found"
    return "found" if is_sure(ranked, confidences(ranked, question.profile.max_results)) else "closest"


def _group(question: Question, ranked: Pool, scores: Floats) -> tuple[Pool, Floats, CutRows]:
    """Keep the best hit of each session, if that is asked for; what belongs to no session stays."""
    rows, best = np.arange(len(ranked)), dict[str, int]()
    if not question.by_session:
        return ranked, scores, ranked.cut_rows(rows[:0], "session", 0.0)
    sessions = enumerate(ranked.columns["session"].tolist())
    first = [row if session is None else best.setdefault(session, row) for row, session in sessions]
    stands_for = np.array(first, dtype=np.intp)
    kept, rest = np.flatnonzero(stands_for == rows), np.flatnonzero(stands_for != rows)
    return ranked.take(kept), scores[kept], ranked.cut_rows(rest, "session", scores[stands_for[rest]], scores[rest])


def _limit(question: Question, ranked: Pool, scores: Floats, reading: Reading) -> tuple[tuple[Hit, ...], CutRows]:
    """Cut at the caller's maximum, else at the profile's; whole units are read for hits only."""
    most = question.limit or question.profile.max_results
    units = reading.units(ranked.ids[:most])
    coverage, sure = ranked.coverage, confidences(ranked, most)
    hits = tuple(
        Hit(
            units[unit_id],
            float(scores[row]),
            float(ranked.rel[row]),
            row + 1,
            merged_ids=ranked.merged.get(unit_id, ()),
            coverage=float(coverage[row]),
            cosine=ranked.cosine(row),
            confidence=sure[row],
        )
        for row, unit_id in enumerate(ranked.ids[:most])
    )
    bar = hits[-1].score if hits else 0.0
    rest = np.arange(min(most, len(ranked)), len(ranked))
    return hits, ranked.cut_rows(rest, "max", bar, scores[rest])


def _show_parts(engine: Engine, query: QueryProfile, hits: Sequence[Hit]) -> tuple[Hit, ...]:
    """Give each hit that is long the part of its text that the question's words are in."""
    terms_of = TOKENIZERS[engine.settings.analysis.tokenizer]
    return tuple(dataclasses.replace(hit, part=matching_part(hit.unit.text, query.terms, terms_of)) for hit in hits)


def _explain_hits(
    engine: Engine, question: Question, query: QueryProfile, found: Retrieval, ranked: Pool, hits: Sequence[Hit],
    reading: Reading,
) -> tuple[Hit, ...]:  # fmt: skip
    """Give each hit the tree of its score, from the columns that ranked it, and what strategies note on it."""
    ids = [hit.unit.id for hit in hits]
    strategies = (*question.strategies, *question.escalation)
    accounts = {one.id: one.explain(query, reading, ids) for one in strategies if one.id in ranked.scores}
    scoring = Scoring(engine.settings.score, reading.view.session, reading.view.reference_time)
    explained = []
    for row, hit in enumerate(hits):
        mine = {name: said[hit.unit.id] for name, said in accounts.items() if ranked.scored[name][row]}
        if question.profile.rank_by == "fused":
            tree = explain_fused(ranked, row, mine, found.fusion)
        else:
            tree = scoring.explain(ranked, row, explain_rel(ranked, row, mine, found.fusion))
        explained.append(dataclasses.replace(hit, contributions=tree, notes=_notes(mine)))
    return tuple(explained)


def _notes(accounts: Mapping[str, StrategyExplanation]) -> tuple[str, ...]:
    """Return what the strategies say of a unit besides their names and the words they matched."""
    said = (note for name, account in accounts.items() for note in account.notes if note != name)
    return tuple(dict.fromkeys(note for note in said if not note.startswith("matched: ")))


def _trace(
    question: Question, query: QueryProfile, found: Retrieval, view: View, cuts: tuple[CutRows, ...],
    state: AnswerState,
) -> Trace:  # fmt: skip
    return Trace(
        query, question.profile_name, found.results, found.pool, cuts, view.reference_time,
        found.refused or found.unanswered, notice="; ".join(filter(None, (question.notice, found.notice))),
        degraded=question.degraded, state=state,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class FirstHit:
    """The first of the hits that `search` gives: the unit, and its row."""

    unit: Unit
    pool: Pool


def _first_hit(engine: Engine, hits: Pool, request: ContextRequest, reading: Reading) -> FirstHit | None:
    """Return the first hit, unless the host shows it already."""
    if not engine.settings.assembly.first_hit:
        return None
    shown = VisibleToHost(request.hidden, request.hidden_words)
    units = [unit for unit in reading.units(hits.ids[:1]).values() if not shown.holds(unit)]
    return FirstHit(units[0], hits.take([0])) if units else None


def _depth(settings: Settings, hidden: frozenset[str]) -> int:
    """Return how deep strategies look: what the tail shows already must not take the places of others."""
    return max(settings.retrieval.max_candidates, settings.projection.first + len(hidden))


def _look_deeper(
    engine: Engine, question: Question, query: QueryProfile, reading: Reading, found: Retrieval, depth: int
) -> Retrieval:
    """Look again where a context has room for more; a strategy that ran out of time in either look did so at all."""
    if depth <= found.depth:
        return found
    deeper = retrieve_candidates(engine, question, query, reading, depth)
    late = {result.strategy_id for result in found.results if result.exhausted_budget}
    results = tuple(
        dataclasses.replace(one, exhausted_budget=one.exhausted_budget or one.strategy_id in late)
        for one in deeper.results
    )
    # What a search says holds for its context.
    return dataclasses.replace(deeper, results=results, refused=found.refused, unanswered=found.unanswered)
