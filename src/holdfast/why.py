"""Why a unit is, or is not, among the hits of a question, or in a context; and scores in plain words."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Mapping
from contextvars import ContextVar
from functools import partial
from typing import NamedTuple

from holdfast.context.candidates import add_session, event_slots_of
from holdfast.context.plan import ContextRequest
from holdfast.errors import quote_value
from holdfast.recall import assemble, search
from holdfast.retrieval.collect import search_strategies
from holdfast.retrieval.question import Engine, Question
from holdfast.retrieval.strategy import Strategy
from holdfast.store.contract import Reading, Store, read_once
from holdfast.text.terms import terms
from holdfast.types import (
    Contribution,
    DroppedCandidate,
    QueryProfile,
    RetrievalResult,
    SearchResult,
    StrategyRank,
    Unit,
    View,
    Why,
)
from holdfast.types.contexts import MEMORY_FITS, Context

# Whether an answer may name other users of the tenant. An interface that is held to one user says no for its calls.
NAMING_OTHERS: ContextVar[bool] = ContextVar("naming_others", default=True)
_MOST_NAMED = 5


def suggest_users(store: Store, view: View) -> str:
    """Say who has units in this tenant when the one who asks has none: a name may be mistyped, or left out.

    Empty when the user has some, or nobody has, or others may not be named.
    """
    if not NAMING_OTHERS.get():
        return ""
    found = [one.name for one in read_once(store, view, lambda reading: reading.names("user", _MOST_NAMED + 1))]
    if not found or found[0] == view.user:  # the one who asks comes first
        return ""
    names = ", ".join(quote_value(name)[1:-1] for name in found[:_MOST_NAMED])
    more = " and others" if len(found) > _MOST_NAMED else ""
    return f"user {quote_value(view.user)} has nothing here; there are: {names}{more}"


def why(engine: Engine, question: Question, unit: Unit, view: View) -> Why:
    """Say why `unit` is, or is not, among the hits of a question."""
    engine, question = engine.prepare(question, view)
    with engine.store.reading(view) as reading:  # the search inside reads the same state
        result = search(engine, question, view, explain=True)
        everything = search_strategies(engine, question, result.trace.query, reading, _NO_LIMIT)
        standings = tuple(
            _standing(strategy, found, result.trace.query, unit, reading)
            for strategy, found in zip((*question.strategies, *question.escalation), everything, strict=False)
        )
        if (hidden := _why_hidden(reading, unit)) is not None:
            verdict = Why(unit, returned=False, verdict=f"not searched: {hidden}", standings=standings)
        else:
            verdict = _verdict(engine, result, unit, standings)
        return dataclasses.replace(verdict, degraded=result.degraded)


def why_in_context(engine: Engine, question: Question, unit: Unit, view: View, request: ContextRequest) -> Why:
    """Say why `unit` is, or is not, in the context of a question; what the budget dropped comes with its tokens."""
    engine, question = engine.prepare(question, view, event_slots_of(engine, question))
    with engine.store.reading(view) as reading:
        request = add_session(engine.store, request, view)
        found = why(engine, question, unit, view)
        if (hidden := _why_hidden(reading, unit)) is not None:
            return dataclasses.replace(found, verdict=f"not searched: {hidden}")
        context = assemble(engine, question, view, request)
    pool = context.trace.candidates if context.trace is not None else ()
    copies = {candidate.unit_id for candidate in pool if unit.id in candidate.merged_ids}
    for section in context.sections:
        for item in section.items:
            if item.id == unit.id or item.id in copies:
                copy = f", as a copy of {item.id}" if item.id != unit.id else ""
                fits = f", {MEMORY_FITS}" if item.score is None and section.name == "projection" else ""
                return dataclasses.replace(
                    found, returned=True, verdict=f"in the context, in its {section.name}{copy}{fits}"
                )
    verdict, short = _why_left_out(context, unit, request) or (found.verdict, None)
    return dataclasses.replace(found, returned=False, verdict=verdict, tokens_short=short)


def _why_hidden(reading: Reading, unit: Unit) -> str | None:
    hidden: str | None = reading.columns([unit.id], ("hidden",))["hidden"][0]
    return hidden


def _why_left_out(context: Context, unit: Unit, request: ContextRequest) -> tuple[str, int | None] | None:
    if unit.id in request.hidden:
        return "not needed: the host shows this message already", None
    for left in context.left_out:
        if left.id == unit.id:
            return (
                f"left out by the budget ({left.cut}): it needs {left.needed} tokens, {left.short} short",
                left.short,
            )
    projection = context.trace.projection if context.trace is not None else None
    falls = projection.falls(unit.id) if projection is not None else ()
    if falls:
        last = falls[-1]
        return f"not projected: at {last.step} it needed {last.needed:.4f} and had {last.had:.4f}", None
    return None


# How far down a rank is counted: beyond it "not among the best 10,000" says enough.
_NO_LIMIT = 10_000
_CUTS = {
    "min_score": "dropped: its combined score is below `min_score`",
    "gap": "dropped: its combined score is too far below the best hit's (the gap rule)",
    "max": "dropped: the list was full, and it ranked lower",
    "turns": "left out: it is a summary, and one of its own turns answers better",
    "session": "left out: `group` shows a better hit of its session",
    "summary": "left out: the summary that covers it answers better",
}


def _standing(
    strategy: Strategy, result: RetrievalResult, query: QueryProfile, unit: Unit, reading: Reading
) -> StrategyRank:
    account = strategy.explain(query, reading, [unit.id])[unit.id]
    matched = tuple(note.removeprefix("matched: ") for note in account.notes if note.startswith("matched: "))
    ids = result.claims.ids
    return StrategyRank(
        strategy_id=strategy.id,
        rank=ids.index(unit.id) + 1 if unit.id in ids else None,
        found=len(ids),
        score=account.tree.value,
        matched=matched,
        missing=tuple(term for term in query.terms if term not in matched) if strategy.id == "lexical" else (),
    )


def _verdict(engine: Engine, result: SearchResult, unit: Unit, standings: tuple[StrategyRank, ...]) -> Why:
    found = partial(Why, unit, standings=standings, returned=True)
    absent = partial(Why, unit, standings=standings, returned=False)
    if result.refused and not result.hits:
        return absent(verdict=f"the question was refused: {result.refused}")
    for hit in result:
        if unit.id in (hit.unit.id, *hit.merged_ids):
            copy = f", as a copy of {hit.unit.id}" if unit.id != hit.unit.id else ""
            verdict = f"returned at rank {hit.rank}{copy}"
            return found(verdict=verdict, rank=hit.rank, score=hit.score, contributions=hit.contributions)
    for drop in result.trace.dropped:
        if unit.id in (drop.unit_id, *drop.merged_ids):
            verdict = _CUTS[drop.cut] + _why_lowered(result, drop)
            return absent(verdict=verdict, score=drop.had, distance_to_cut=drop.needed - drop.had)
    late = "".join(f" ({warning})" for warning in result.warnings)
    if any(standing.rank is not None for standing in standings):
        depth = engine.settings.retrieval.max_candidates
        return absent(verdict=f"not considered: no strategy has it among its best {depth}{late}")
    return absent(verdict=f"not found: no strategy sees anything in common with the question{late}")


def _why_lowered(result: SearchResult, drop: DroppedCandidate) -> str:
    """Say that a unit would have stayed but for the time asked for, if that is so."""
    made = next(one.adjustments for one in result.trace.candidates if one.unit_id == drop.unit_id)
    for change in made:
        lowered = change.stage in _OF_TIME and not change.signal
        if lowered and drop.cut in ("min_score", "gap") and drop.had >= (1.0 - change.weight) * drop.needed:
            return ", because it was neither said in the time asked for nor tells of it"
    return ""


def unranked(standing: StrategyRank) -> str:
    """Return why a strategy has no rank for a unit."""
    return f"not among its best {standing.found:,}" if standing.score else "no match"


PLAIN_NAMES = {
    "lexical": "words",
    "dense": "meaning",
    "hdc-vsa": "phrase match",
    "thinkingdb-symbolic": "facts",
    "agreement": "found in several ways",
    "identifiers": "exact names",
    "opening": "opens with the name",
    "mentions": "named by a better hit",
    "only asks": "it only asks",
    "diversity": "repeats a better hit",
    "read": "read together",
    "summary": "is a summary",
}
# What is smaller changes no rank that anybody looks at; JSON has every digit.
_SMALLEST_SHOWN = 1e-6
_JOINTS = {"sum": " + ", "product": " × ", "ratio": " ÷ ", "minimum": ", "}
# How notes begin that tell something of the unit; others only help to follow the arithmetic.
TELLING = ("derived: ", "via: ", "contradicts: ")
# A stage that lowers a score says why in other words than one that raises it.
_OF_TIME = {
    "time range": ("in the time asked for", "not in the time asked for"),
    "nearest time": ("nearest to the time asked for", "not in the time asked for"),
}


class ScorePart(NamedTuple):
    """What one strategy, stage or trait brings to a score; a `change` is what a stage made of the parts before it."""

    name: str
    value: float
    change: bool = False


def parts_of(node: Contribution) -> tuple[ScorePart, ...]:
    """Return the parts of a score, in the order in which they come in; their values add up to it, up to rounding.

    Weights, ceilings and divisors are no parts: they scale those they act on.
    """
    if node.name == "fused":
        return tuple(ScorePart(part.name, part.value) for part in node.parts)
    if (stage := _stage(node)) is not None:
        name, before = stage
        change = node.value - before.value
        return (*parts_of(before), *([ScorePart(name, change, change=True)] if change else []))
    inner = [part for part in node.parts if part.parts]
    if node.op == "sum":
        return tuple(found for part in node.parts for found in parts_of(part))
    if len(inner) == 1:
        scale = node.value / inner[0].value if inner[0].value else 0.0
        return tuple(part._replace(value=part.value * scale) for part in parts_of(inner[0]))
    return (ScorePart(node.name, node.value),)


def _stage(node: Contribution) -> tuple[str, Contribution] | None:
    """Return the name of a stage and the score before it, if the node is one."""
    if node.name.startswith("rel with "):
        mixed = node.parts[0]
        return mixed.name, mixed.parts[0].parts[1]
    return ("summary", node.parts[0]) if node.name == "base × quality" else None


def speaker_name(unit: Unit) -> str:
    """Return who said it: the name where there is one, else the author."""
    return "summary" if unit.kind == "summary" else unit.speaker or unit.author


def plain_name(part: ScorePart, unit: Unit) -> str:
    """Return what a part is called in plain words."""
    if part.name == "perspective":
        return f"said by {speaker_name(unit)}"
    if part.name in _OF_TIME:
        return _OF_TIME[part.name][part.value < 0]
    return PLAIN_NAMES.get(part.name, part.name)


def terms_of(node: Contribution) -> Iterable[str]:
    """Yield the terms that a score rests on."""
    if node.name.startswith("term "):
        yield node.name.removeprefix("term ")
    for part in node.parts:
        yield from terms_of(part)


def typed_words(text: str) -> dict[str, str]:
    """Return, for every term of a question, the word as it was typed.

    Text without spaces is searched for by its characters and pairs of them: these are shown as they are.
    """
    typed: dict[str, str] = {}
    for word in text.split():
        whole = re.sub(r"^\W+|\W+$", "", word)
        for piece in (whole, *re.split(r"[\W_]+", whole)):
            for term in terms(piece):
                literal = not piece.isascii() and term in piece.lower()
                typed.setdefault(term, term if literal else piece)
    return typed


def typed_forms(found: Iterable[str], typed: Mapping[str, str]) -> tuple[str, ...]:
    """Return terms as the words that were typed, each once."""
    return tuple(dict.fromkeys(typed.get(term, term) for term in found))


def simplify(node: Contribution) -> Contribution:
    """Return the node without neutral steps: a ceiling that does not bind, a factor or divisor of 1, a sum of one."""
    parts = tuple(simplify(part) for part in node.parts)
    if node.op == "minimum":
        telling = tuple(part for part in parts if part.value == node.value)[:1]
    elif node.op in ("product", "ratio"):
        telling = tuple(part for part in parts if part.op != "given" or part.value != 1.0)
    else:
        telling = parts
    if len(telling) == 1 and telling[0].parts and not telling[0].name.startswith("term "):
        return telling[0]._replace(name=node.name)
    return node._replace(parts=parts)


def branches(node: Contribution, depth: int = 0) -> Iterable[tuple[int, Contribution]]:
    """Yield a node and those below it, each with its depth; leaves stand in the formula of the node above them."""
    yield depth, node
    if any(part.op != "given" for part in node.parts):
        for part in node.parts:
            yield from branches(part, depth + 1)


def formula(node: Contribution) -> str:
    """Return how a node is combined from its parts; leaves with their values."""
    leaves = all(part.op == "given" for part in node.parts)
    shown = (f"{part.name} {number(part.value)}" if leaves else part.name for part in node.parts)
    return f"{'min' if node.op == 'minimum' else ''}({_JOINTS[node.op].join(shown)})"


def number(value: float) -> str:
    """Return a number of a tree with six digits."""
    return f"{value:.6g}" if value == 0.0 or abs(value) >= _SMALLEST_SHOWN else "≈0"
