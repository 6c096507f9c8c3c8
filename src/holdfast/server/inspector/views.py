"""Results of `Memory`, and the lists beside them → what a template shows. Pure: equal results give an equal page."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, tzinfo
from itertools import groupby
from typing import Any, Literal

from holdfast.documents.markdown import partition
from holdfast.documents.parser import read_source, source_units
from holdfast.errors import NotFoundError, quote_value
from holdfast.memory import Memory
from holdfast.server.inspector.charts import SMALLEST_PART, BarSegment, colour_of, share, stack
from holdfast.settings import Settings
from holdfast.store.contract import read_once
from holdfast.text.facts import sentences_of
from holdfast.types import (
    AnswerState,
    Contribution,
    Document,
    DroppedCandidate,
    Hit,
    KnownFact,
    NameCount,
    SearchResult,
    Trace,
    Unit,
    View,
    Why,
)
from holdfast.types.contexts import Context, ContextSection, Item, OmittedItem
from holdfast.types.known import About, AboutLine
from holdfast.values import dataclass
from holdfast.why import (
    PLAIN_NAMES,
    branches,
    formula,
    number,
    parts_of,
    plain_name,
    simplify,
    terms_of,
    typed_forms,
    typed_words,
    unranked,
)

# What a cut left out is told by its nearest few; `why` answers for any other.
MOST_LEFT_OUT = 5
# A comparison of longer texts takes long and tells little.
_MOST_COMPARED = 2_000
# A tree is indented up to a depth that leaves room to read.
_DEEPEST = 9
_CUTS = {
    "min_score": ("too weak", "their combined score is below `min_score`"),
    "gap": ("too far behind", "too far below the best hit"),
    "max": ("list full", "others ranked higher, and the list has an end"),
    "turns": ("summaries next to their turns", "one of their own turns answers better"),
    "summary": ("turns next to their summary", "the summary that covers them answers better"),
    "session": ("same session", "a better hit of their session is shown"),
}
_SECTIONS = {
    "hard": ("Rules", "always here"),
    "soft": ("Guidance", "as far as it fits"),
    "tail": ("Last turns", "of the session"),
    "standing": ("Standing requests", "of the user"),
    "projection": ("Recalled", "by the question"),
}
_LEFT_OUT_BY = {
    "soft": "guidance has its share already",
    "standing": "standing requests have their share already",
    "tail": "the last turns do not fit",
    "budget": "does not fit what is left",
    "prefix": "after one that does not fit",
    "degraded": "nothing is recalled in a degraded context",
    "shown": "is in the context already",
}
_SIGNALS = {
    "novelty": "new",
    "repetition": "repeated",
    "frequency": "often said",
    "saturation": "redundancy",
    "statement": "states something",
    "technical_density": "technical",
    "specificity": "specific",
    "action": "asks for action",
    "structure": "structured",
}
_TIMES = {"event_time", "recorded_time", "valid_from", "valid_to", "expires_at"}
# Told elsewhere on the page.
_TOLD = {"text", "claim", "lineage", "fact", "metadata", "id", "tenant"}


# ------------------------------------------------------------------------------------------------------------ scores


@dataclass(frozen=True, slots=True)
class PartView:
    """One part of a score as a reader sees it."""

    colour: str
    label: str
    value: str
    words: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Branch:
    """One line of a score's tree."""

    depth: int
    name: str
    value: str
    formula: str


@dataclass(frozen=True, slots=True)
class ScoreView:
    """A score, its parts, the bar of them, and the whole arithmetic."""

    value: float
    parts: tuple[PartView, ...]
    bar: tuple[BarSegment, ...]
    tree: tuple[Branch, ...]

    @property
    def told(self) -> str:
        """Return the parts in one line, for whoever cannot see the bar."""
        return ", ".join(f"{part.label} {part.value}" for part in self.parts)


def view_score(score: Contribution, unit: Unit, typed: Mapping[str, str]) -> ScoreView:
    """Return a score with everything it is made of."""
    parts = [(part, plain_name(part, unit)) for part in parts_of(score)]
    words = typed_forms(dict.fromkeys(terms_of(score)), typed)
    shown = tuple(
        PartView(
            colour_of(part.name) if part.value > 0 else "taken", label, _signed(part.value, change=part.change),
            words if part.name == "lexical" else (),
        )
        for part, label in parts
        if abs(part.value) >= SMALLEST_PART
    )  # fmt: skip
    tree = tuple(
        Branch(min(depth, _DEEPEST), node.name, number(node.value), formula(node) if node.parts else "")
        for depth, node in branches(simplify(score))
    )
    return ScoreView(score.value, shown, stack(parts), tree)


def _signed(value: float, *, change: bool) -> str:
    sign = ("+" if value > 0 else "−") if change else ""
    return f"{sign}{abs(value):.2f}"


# ------------------------------------------------------------------------------------------------------------ recall


@dataclass(frozen=True, slots=True)
class HitView:
    """One hit with its score."""

    hit: Hit
    score: ScoreView


@dataclass(frozen=True, slots=True)
class PassView:
    """How many units a step of recall had; `width` is that beside the most, in percent."""

    label: str
    count: int
    note: str = ""
    width: float = 0.0


@dataclass(frozen=True, slots=True)
class CutView:
    """What one cut left out: how many, and the nearest of them."""

    label: str
    note: str
    count: int
    nearest: tuple[DroppedCandidate, ...]


@dataclass(frozen=True, slots=True)
class RecallView:
    """The answer to a question: hits, the way to them, and what was left out."""

    hits: tuple[HitView, ...]
    legend: tuple[tuple[str, str], ...]
    words: tuple[str, ...]
    state: AnswerState
    refused: str
    warnings: tuple[str, ...]
    found: tuple[PassView, ...]
    passes: tuple[PassView, ...]
    cuts: tuple[CutView, ...]
    considered: int
    milliseconds: float

    @property
    def mentioned(self) -> list[str]:
        """Return the ids of what was left out and is shown."""
        return [one.unit_id for cut in self.cuts for one in cut.nearest]


def view_recall(result: SearchResult, context: Context | None) -> RecallView:
    """Return what `search` and, for its passes, `assemble` said to one question."""
    trace = result.trace
    typed = typed_words(f"{trace.query.text} {trace.query.borrowed or ''}")
    hits = tuple(
        HitView(hit, view_score(hit.contributions, hit.unit, typed))
        for hit in result
        if hit.contributions is not None
    )
    present = {part.colour for one in hits for part in one.score.parts}
    legend = ((colour, label) for colour, label in _LEGEND.items() if colour in present)
    return RecallView(
        hits, tuple(legend), typed_forms(trace.query.terms, typed), result.state, result.refused,
        result.warnings, _strategies(trace, len(hits)), _passes(context), _cuts(trace),
        len(trace.candidates), sum(one.duration_ms for one in trace.results),
    )  # fmt: skip


_LEGEND = {
    "words": "words",
    "meaning": "meaning",
    "wording": "phrase match",
    "facts": "facts",
    "stage": "its surroundings",
    "recency": "recency",
    "scope": "scope",
    "taken": "taken away",
}


def _scaled(steps: Sequence[PassView]) -> tuple[PassView, ...]:
    most = max((step.count for step in steps), default=0) or 1
    return tuple(PassView(one.label, one.count, one.note, round(100 * one.count / most, 2)) for one in steps)


def _strategies(trace: Trace, hits: int) -> tuple[PassView, ...]:
    named = ((PLAIN_NAMES.get(one.strategy_id, one.strategy_id), one) for one in trace.results)
    found = [PassView(f"by {name}", len(one.claims.ids), f"{one.duration_ms:.1f} ms") for name, one in named]
    together = PassView("considered", len(trace.candidates), "each once, with neighbours")
    return _scaled([*found, together, PassView("hits", hits)])


def _passes(context: Context | None) -> tuple[PassView, ...]:
    projection = context.trace.projection if context is not None and context.trace is not None else None
    if context is None or projection is None:
        return ()
    items = len(context.section("projection").items)
    picked = len(projection.recovered) + len(projection.chosen)
    return _scaled([
        PassView("candidates", len(projection.first), "nearest in relevance"),
        PassView("re-ranked", len(projection.second), "scored with time and standing"),
        PassView("linked", len(projection.hops), "linked from one of those"),
        PassView("by date", picked, "for a question about time" if projection.active else "not about time"),
        PassView("in the context", items, "what the budget holds"),
    ])  # fmt: skip


def _cuts(trace: Trace) -> tuple[CutView, ...]:
    found = []
    for name, rows in groupby(trace.dropped, key=lambda one: one.cut):
        dropped = sorted(rows, key=lambda one: (one.needed - one.had, one.unit_id))
        label, note = _CUTS[name]
        found.append(CutView(label, note, len(dropped), tuple(dropped[:MOST_LEFT_OUT])))
    return tuple(found)


# ----------------------------------------------------------------------------------------------------------- context


@dataclass(frozen=True, slots=True)
class SectionView:
    """One part of a context, in words."""

    name: str
    label: str
    note: str
    tokens: int
    items: tuple[Item, ...]


@dataclass(frozen=True, slots=True)
class ContextView:
    """A context under its budget, and what another budget would change."""

    context: Context
    bar: tuple[BarSegment, ...]
    sections: tuple[SectionView, ...]
    left_out: tuple[tuple[OmittedItem, str, str], ...]
    ways: Mapping[str, str]
    comes: Mapping[str, str]
    goes: Mapping[str, str]


def view_context(context: Context, before: Context | None = None) -> ContextView:
    """Return a context beside another one, if there is one."""
    sections = tuple(_section(one) for one in context.sections if one.items)
    bar = share(
        ((one.name, one.tokens, f"{_SECTIONS[one.name][0]}: {one.tokens} tokens") for one in context.sections),
        max(context.budget, context.tokens, 1),
    )
    projection = context.trace.projection if context.trace is not None else None
    units = {one.unit.id: one.unit for one in projection.items} if projection is not None else {}
    left = tuple(
        (one, _LEFT_OUT_BY[one.cut], units[one.id].text if one.id in units else "") for one in context.left_out
    )
    ways = {one.unit.id: one.via for one in projection.items if one.via != "pass 2"} if projection is not None else {}
    now, then = _texts(context), _texts(before) if before is not None else {}
    return ContextView(
        context, bar, sections, left, ways,
        {name: text for name, text in now.items() if name not in then} if before is not None else {},
        {name: text for name, text in then.items() if name not in now},
    )  # fmt: skip


def _section(section: ContextSection) -> SectionView:
    label, note = _SECTIONS[section.name]
    return SectionView(section.name, label, note, section.tokens, section.items)


def _texts(context: Context) -> dict[str, str]:
    return {item.id: item.text for item in context.items}


# -------------------------------------------------------------------------------------------------------------- unit


@dataclass(frozen=True, slots=True)
class Signal:
    """One signal of the gate, in percent."""

    label: str
    value: float


@dataclass(frozen=True, slots=True)
class FieldChange:
    """Words of a version: kept, added or removed since the version before."""

    text: str
    kind: str


@dataclass(frozen=True, slots=True)
class VersionView:
    """One version of a unit, and what changed in its words."""

    unit: Unit
    changes: tuple[FieldChange, ...]


@dataclass(frozen=True, slots=True)
class UnitView:
    """Everything that is known of a unit."""

    unit: Unit
    fields: tuple[tuple[str, str], ...]
    metadata: str
    facts: tuple[tuple[str, str, str, float, str], ...]
    signals: tuple[Signal, ...]
    versions: tuple[VersionView, ...]


def view_unit(unit: Unit, versions: Sequence[Unit], zone: tzinfo = UTC) -> UnitView:
    """Return a unit with its versions, newest first."""
    told = {name: value for name, value in unit.to_json().items() if name not in _TOLD}
    told |= {name: moment(getattr(unit, name), zone) for name in _TIMES & told.keys()}
    fields = tuple((name.replace("_", " "), _written(value)) for name, value in told.items())
    facts = tuple(
        (fact.subject, fact.relation, fact.object, fact.confidence, sentence) for fact, sentence in sentences_of(unit)
    )
    signals: tuple[Signal, ...] = ()
    if unit.gate is not None:
        values = ((label, getattr(unit.gate, name)) for name, label in _SIGNALS.items())
        signals = tuple(Signal(label, round(100 * value, 1)) for label, value in values if value)
    earlier = [None, *versions]
    views = [VersionView(one, _changes(before, one)) for before, one in zip(earlier, versions, strict=False)]
    metadata = json.dumps(dict(unit.metadata), ensure_ascii=False, indent=2) if unit.metadata else ""
    return UnitView(unit, fields, metadata, facts, signals, tuple(reversed(views)))


def _written(value: Any) -> str:  # noqa: ANN401 - a JSON value
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _changes(before: Unit | None, after: Unit) -> tuple[FieldChange, ...]:
    if before is None or max(len(before.text), len(after.text)) > _MOST_COMPARED:
        return (FieldChange(after.text, "kept"),)
    old, new = before.text.split(" "), after.text.split(" ")
    changes = []
    for what, old_start, old_end, new_start, new_end in difflib.SequenceMatcher(None, old, new).get_opcodes():
        if what in ("replace", "delete"):
            changes.append(FieldChange(" ".join(old[old_start:old_end]), "removed"))
        if what in ("replace", "insert"):
            changes.append(FieldChange(" ".join(new[new_start:new_end]), "added"))
        if what == "equal":
            changes.append(FieldChange(" ".join(new[new_start:new_end]), "kept"))
    return tuple(changes)


@dataclass(frozen=True, slots=True)
class WhyView:
    """Why a unit is, or is not, among the hits: the verdict, and where each strategy sees it."""

    why: Why
    score: ScoreView | None
    standings: tuple[tuple[str, str, tuple[str, ...], tuple[str, ...]], ...]


def view_why(why: Why, question: str) -> WhyView:
    """Return a verdict in plain words."""
    typed = typed_words(question)
    standings = []
    for one in why.standings:
        matched = typed_forms(one.matched, typed)
        missing = tuple(word for word in typed_forms(one.missing, typed) if word not in matched)
        rank = f"rank {one.rank:,} of {one.found:,}" if one.rank else unranked(one)
        standings.append((PLAIN_NAMES.get(one.strategy_id, one.strategy_id), rank, matched, missing))
    score = view_score(why.contributions, why.unit, typed) if why.contributions is not None else None
    return WhyView(why, score, tuple(standings))


# ------------------------------------------------------------------------------------------------------------- facts


def group_known(found: About) -> list[tuple[str, list[AboutLine]]]:
    """Return what is known of a user by topic, in the order of the questions."""
    return [(topic, [*lines]) for topic, lines in groupby(found, key=lambda one: one.topic)]


def group_facts(facts: Iterable[KnownFact]) -> list[tuple[str, list[KnownFact]]]:
    """Return facts by their subject, in their order."""
    return [(subject, [*found]) for subject, found in groupby(facts, key=lambda one: one.subject)]


# ------------------------------------------------------------------------------------------------------------- times


def day(at: datetime, zone: tzinfo = UTC) -> str:
    """Return a date as people write it."""
    local = at.astimezone(zone)
    return f"{local.day} {local:%b %Y}"


def clock(at: datetime, zone: tzinfo = UTC) -> str:
    """Return a time to the minute."""
    return f"{at.astimezone(zone):%H:%M}"


def moment(at: datetime, zone: tzinfo = UTC) -> str:
    """Return a date and a time."""
    return f"{day(at, zone)}, {clock(at, zone)}"


OwnerArguments = Mapping[str, Any]
# More than anybody looks through in one list.
MOST_LISTED = 1_000
# Users that are named where one has nothing.
MOST_USERS = 20
# No moment is asked for: documents are kept, and not said at some time.
_ANY_TIME = datetime(1970, 1, 1, tzinfo=UTC)


def list_sessions(memory: Memory, owner: OwnerArguments) -> tuple[NameCount, ...]:
    """Return the newest sessions of an owner."""
    return memory.sessions(**owner, limit=MOST_LISTED)


def list_users(memory: Memory, tenant: str | None, limit: int = MOST_USERS) -> tuple[NameCount, ...]:
    """Return who has something here, newest first."""
    return memory.users(tenant=tenant, limit=limit)


def space_of(memory: Memory) -> str | None:
    """Return the embedding space of the store; its statistics would count every unit first."""
    return memory.store.space()


# ---------------------------------------------------------------------------------------------------------- documents


BlockTier = Literal["hard", "soft", "variant", "heading", "between"]


@dataclass(frozen=True, slots=True)
class DocumentBlock:
    """A piece of a document's text: how binding it is, and the unit that it became."""

    tier: BlockTier
    text: str
    unit_id: str = ""


def list_documents(memory: Memory, owner: OwnerArguments) -> tuple[NameCount, ...]:
    """Return the newest documents of an owner and of everyone."""
    return memory.documents(**owner, limit=MOST_LISTED)


def read_blocks(
    memory: Memory, owner: OwnerArguments, name: str, *, shared: bool
) -> tuple[Document, Sequence[DocumentBlock]]:
    """Return a document and its text in blocks, as it was last read.

    Raises:
        NotFoundError: the owner has no such document.
    """
    kept = read_once(memory.store, _view(memory, owner), lambda reading: reading.documents(name=name))
    found = next((one for one in kept if (one.user is None) == shared), None)
    if found is None:
        raise NotFoundError(f"there is no document {quote_value(name)}; /documents names them")
    blocks = _core_blocks(found, memory.settings) if found.core else _knowledge_blocks(found, memory.settings)
    return found, [*blocks]


def _view(memory: Memory, owner: OwnerArguments) -> View:
    tenant = owner["tenant"] or memory.settings.store.tenant
    return View(tenant=tenant, user=owner["user"], now=_ANY_TIME, reference_time=_ANY_TIME)


def _core_blocks(document: Document, settings: Settings) -> Iterator[DocumentBlock]:
    for node in partition(document.name, document.body, max_bytes=settings.authored.max_bytes).nodes:
        if node.kind == "heading":
            yield DocumentBlock("heading", node.markdown)
        else:
            unit_id = f"{document.name}#{node.ordinal:06d}" if node.tier == "variant" and node.text.strip() else ""
            yield DocumentBlock(node.tier, node.markdown, unit_id)


def _knowledge_blocks(document: Document, settings: Settings) -> Iterator[DocumentBlock]:
    source = read_source(document.name, document.body, relations=settings.symbolic.relations)
    ids = [unit.id for unit in source_units(source)] or [""] * len(source.pieces)
    at = 0
    for piece, unit_id in zip(source.pieces, ids, strict=True):
        if source.text[at : piece.start].strip():
            yield DocumentBlock("between", source.text[at : piece.start])
        yield DocumentBlock("variant", source.text[max(at, piece.start) : piece.end], unit_id)
        at = max(at, piece.end)
    if source.text[at:].strip():
        yield DocumentBlock("between", source.text[at:])
