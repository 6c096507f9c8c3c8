"""What may enter a context: candidates as projection sees them, looked up in one place so that it stays pure."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import compress

import numpy as np

from holdfast.context.plan import ContextRequest, Plan, share_of
from holdfast.context.project import CandidateSets, slot_covered
from holdfast.kernels import vectors
from holdfast.messages.content import match_visible
from holdfast.ranking.pool import Pool
from holdfast.ranking.score import choose_summaries
from holdfast.ranking.stages import PREFERENCES, lower_questions
from holdfast.retrieval.collect import Retrieval, score_units, stage_inputs
from holdfast.retrieval.question import Engine, Question
from holdfast.store.contract import NO_DEADLINE, NO_LIMIT, Reading, Store, read_once
from holdfast.store.queries import DenseQuery, DocumentQuery, KindQuery, StatementQuery
from holdfast.text.names import Aliases
from holdfast.text.quotes import CHARS_PER_TOKEN
from holdfast.text.statements import StatementLedger
from holdfast.text.temporal import DENSITIES, event_slots, temporal_indicator
from holdfast.text.terms import plain_words, terms
from holdfast.types import INSTRUCTIONS, ContextCandidate, Kind, ProjectionQuery, QueryProfile, Unit, View
from holdfast.types.contexts import StandingInstruction
from holdfast.values import dataclass

# A tail is a quarter of a budget of at most 32,000 tokens, and a turn costs several.
_MOST_TURNS = 1024


def session_turns(store: Store, view: View) -> list[Unit]:
    """Return the last turns of the active session, oldest first; more than any tail can hold."""
    if view.session is None:
        return []
    whole = dataclasses.replace(view, only_session=True, filters=None)
    found = read_once(store, whole, lambda reading: [*reading.scan(order="newest", limit=_MOST_TURNS)])
    return [unit for unit in found if unit.kind == "turn"][::-1]


def add_session(store: Store, request: ContextRequest, view: View) -> ContextRequest:
    """Return the request with the turns of the active session; those that the host shows already are hidden."""
    turns = session_turns(store, view)
    hidden = match_visible(turns, request.said)
    rest = [turn for turn in turns if turn.id not in hidden]
    return dataclasses.replace(request, session_turns=rest, hidden=hidden)


@dataclass(frozen=True, slots=True)
class VisibleToHost:
    """What a context shows anyway: units, and words of the host that no session of ours has."""

    ids: frozenset[str]
    words: frozenset[tuple[str, str]]

    def holds(self, unit: Unit) -> bool:
        """Return whether it shows a unit, or all the turns that a summary stands for (C18)."""
        summed = unit.lineage is not None and self.ids.issuperset(unit.lineage.sources)
        return unit.id in self.ids or (unit.author, unit.text) in self.words or summed

    def joined(self, units: Iterable[Unit]) -> VisibleToHost:
        """Return the same with some units more."""
        return VisibleToHost(self.ids.union(unit.id for unit in units), self.words)

    def leaving(self, pool: Pool, rest: Pool) -> VisibleToHost:
        """Return the same with the ids that `rest` lacks of a pool: known by the host's words, or a summary."""
        return VisibleToHost(self.ids.union(pool.ids).difference(rest.ids), self.words)

    def without(self, pool: Pool, reading: Reading) -> Pool:
        """Return the rows that are not shown; words and summaries have to be read for that, ids have not."""
        if not self.ids and not self.words:
            return pool
        summary = ~np.isnan(pool.columns["decay_rate"])
        read = [unit_id for unit_id, yes in zip(pool.ids, summary, strict=True) if yes or self.words]
        units = reading.units(read) if read else {}
        rest = [
            unit_id not in self.ids and not (unit_id in units and self.holds(units[unit_id])) for unit_id in pool.ids
        ]
        return pool.keep(np.array(rest, dtype=np.bool_))


def limit_candidates(kept: Pool, lead: Pool | None, most: int) -> Pool:
    """Return who may enter pass 1, led by `lead`; a deeper look may have merged that with a copy, or cut it."""
    if lead is None:
        return kept.take([*range(min(most, len(kept)))])
    [name] = lead.ids
    place = kept.rows_by_id().get(name)
    rest = [row for row in range(len(kept)) if row != place][: most - 1]
    if place is not None and kept.ids[place] == name:
        return kept.take([place, *rest])
    return lead.joined(kept.take(rest))


# ------------------------------------------------------------------------------------------------ prospects


def load_candidates(
    engine: Engine, question: Question, query: QueryProfile, entering: Pool, spare: Pool, shown: VisibleToHost,
    reading: Reading,
) -> tuple[ProjectionQuery, CandidateSets]:  # fmt: skip
    """Look up what projection needs to know of the question and of each candidate."""
    pool = entering.joined(spare) if len(spare) else entering
    plain = engine.settings.projection.keywords == "words"
    slots = event_slots_of(engine, question)
    units = reading.units(pool.ids)
    known = reading.columns(pool.ids, ("access_count", "anchor_density"))
    others = reading.columns((*pool.ids, *shown.ids), ("most_accessed",))["most_accessed"]  # of V_rest besides these
    covered = _cover_slots(engine, query, slots, units, reading)
    # A question names the events that it asks for, and tells of none.
    tells = ~pool.columns["asks"]
    held = [] if plain else _matched(pool, query)
    prospects = [
        ContextCandidate(
            _counted(units[unit_id], int(known["access_count"][row])),
            float(pool.rel[row]),
            frozenset(plain_words(units[unit_id].text)) if plain else held[row],
            float(known["anchor_density"][row] * tells[row]),
            covered.get(unit_id, ()) if tells[row] else (),
        )
        for row, unit_id in enumerate(pool.ids)
    ]
    keywords = frozenset(plain_words(question.text)) if plain else frozenset(query.terms)
    most = int(max(others.max(initial=0), known["access_count"].max(initial=0)))
    xi = temporal_indicator(question.text, wide=engine.settings.temporal.wide)
    asked = ProjectionQuery(keywords, reading.view.reference_time, xi, slots, most)
    first, rest = prospects[: len(entering)], prospects[len(entering) :]
    links, linked = _follow_links(first, shown.ids, reading)
    return asked, CandidateSets(tuple(first), tuple(linked), tuple(rest), links)


def _counted(unit: Unit, count: int) -> Unit:
    """Return the unit with the count of this moment: one that was read before may have an older one."""
    return unit if unit.access_count == count else unit.evolve(access_count=count)


def _matched(pool: Pool, query: QueryProfile) -> list[frozenset[str]]:
    """Return which of the question's terms each candidate holds, as the lexical strategy saw it."""
    if "lexical" not in pool.scores:
        return [frozenset()] * len(pool)
    return [frozenset(compress(query.terms, held)) for held in pool.scores["lexical"].matched.tolist()]


def _cover_slots(
    engine: Engine, query: QueryProfile, slots: Sequence[str], units: Mapping[str, Unit], reading: Reading
) -> dict[str, tuple[bool, ...]]:
    """Return φ: which event slots each unit covers, by meaning, or by words when there are no vectors."""
    if not slots:
        return {}
    embedder = engine.embedder() if query.vector is not None else None
    if embedder is None or query.vector is None:
        asked = [frozenset(terms(slot)) for slot in slots]
        said = {unit_id: frozenset(terms(unit.text)) for unit_id, unit in units.items()}
        return {unit_id: tuple(slot_covered(slot, held) for slot in asked) for unit_id, held in said.items()}
    evidence = reading.evidence(DenseQuery(query.space or "", query.vector), [*units])
    if not evidence.ids:
        return {}
    bar = engine.settings.temporal.slot_similarity
    near = [
        vectors.cosines(evidence.vectors, vector, len(vector)) >= bar
        for vector in (embedder.embed_query(slot) for slot in slots)
    ]
    return {unit_id: tuple(bool(row[i]) for row in near) for i, unit_id in enumerate(evidence.ids)}


def _follow_links(
    prospects: Sequence[ContextCandidate], hidden: frozenset[str], reading: Reading
) -> tuple[dict[str, tuple[str, ...]], list[ContextCandidate]]:
    """Return where the authored links of the prospects lead, and the linked units that no strategy found."""
    names = dict.fromkeys(link for prospect in prospects for link in prospect.unit.links)
    # A link names a unit, or a document and so all of its units.
    leads = {name: reading.propose(DocumentQuery(name), NO_LIMIT, NO_DEADLINE).ids or (name,) for name in names}
    links = {
        prospect.unit.id: tuple(target for link in prospect.unit.links for target in leads[link])
        for prospect in prospects
        if prospect.unit.links
    }
    known = {prospect.unit.id for prospect in prospects}
    wanted = sorted({target for targets in links.values() for target in targets} - known - hidden)
    if not wanted:
        return links, []
    units, why_hidden = reading.units(wanted), reading.columns(wanted, ("hidden",))["hidden"].tolist()
    visible = [unit_id for unit_id, why in zip(wanted, why_hidden, strict=True) if why is None and unit_id in units]
    return links, [ContextCandidate(units[unit_id], 0.0, frozenset(), 0.0) for unit_id in visible]


# ------------------------------------------------------------------------------------------------- recovery


def event_slots_of(engine: Engine, question: Question) -> tuple[str, ...]:
    """Return the events that a temporal question names."""
    wide = engine.settings.temporal.wide
    return event_slots(question.text, wide=wide) if is_temporal(engine, question) else ()


def is_temporal(engine: Engine, question: Question) -> bool:
    """Return whether a question is temporal enough for the selector (C13)."""
    settings = engine.settings.temporal
    return settings.enabled and temporal_indicator(question.text, wide=settings.wide).value >= settings.activation


def recover_anchored(
    engine: Engine, question: Question, query: QueryProfile, found: Retrieval, entering: Pool, shown: VisibleToHost,
    reading: Reading,
) -> Pool:  # fmt: skip
    """Return whom C_rec can come to hold besides those that enter, whatever cut them off: k_rec by (A, sim, id)."""
    if found.refused or not is_temporal(engine, question):
        return entering.take([])
    settled, _ = choose_summaries(shown.without(found.pool, reading), engine.settings.score)
    taken = {*entering.ids}
    left = settled.keep(np.array([unit_id not in taken for unit_id in settled.ids], dtype=np.bool_))
    beyond = _richest_in_anchors(engine, question, query, found, shown, reading)
    pool = left.joined(beyond) if beyond is not None else left
    settings = engine.settings.temporal
    densities = reading.columns(pool.ids, ("anchor_density",))["anchor_density"].tolist()
    near = [row for row in range(len(pool)) if pool.rel[row] >= settings.recovery_similarity]
    order = sorted(near, key=lambda row: (-densities[row], -pool.rel[row], pool.ids[row]))
    return pool.take(order[: settings.recovered])


def _richest_in_anchors(
    engine: Engine, question: Question, query: QueryProfile, found: Retrieval, shown: VisibleToHost, reading: Reading
) -> Pool | None:
    """Return the units richest in anchors that are near enough and nobody found: k_rec of them, or more (C13).

    Anchor densities are few, so that the richest are the nearest of the highest one, then of the next. Exact where
    relevance is the cosine; else they are proposed by it.
    """
    settings = engine.settings.temporal
    if query.vector is None or query.space is None:
        return None
    known = shown.ids.union(found.pool.rows_by_id())
    levels = reading.columns([*known], ("anchor_density",))["anchor_density"].tolist()
    near: list[str] = []
    for density in DENSITIES:
        if len(near) >= settings.recovered or (settings.anchors_required and density == 0.0):
            break
        taken = sum(round(level - density, 3) == 0.0 for level in levels)
        wanted = DenseQuery(query.space, query.vector, len(query.vector), density)
        ids = reading.propose(wanted, settings.recovered + taken, NO_DEADLINE).ids
        evidence = reading.evidence(wanted, [unit_id for unit_id in ids if unit_id not in known])
        if evidence.ids:
            cosines = vectors.cosines(evidence.vectors, query.vector, len(query.vector)).tolist()
            pairs = zip(evidence.ids, cosines, strict=True)
            near += [unit_id for unit_id, cosine in pairs if cosine >= settings.recovery_similarity]
    if not near:
        return None
    pool = score_units(engine, question, query, reading, found, [*dict.fromkeys(near)]).merge_copies()
    pool = pool.keep(np.array([by is None for by in pool.columns["covered_by"]], dtype=np.bool_))
    staging = stage_inputs(engine, question, query, reading, found)
    for prefer in (*PREFERENCES, lower_questions) if question.is_staged else ():
        pool = prefer(pool, staging)
    return shown.without(pool, reading).sorted()


# --------------------------------------------------------------------------------------------- whole memory


def read_memory(plan: Plan, shown: VisibleToHost, found: Collection[str], reading: Reading) -> list[Unit]:
    """Return all turns that the view may recall, where they may fit their share; else none of them (C16).

    Passages of documents are looked up and do not come along. A summary does where it hides its turns. Of copies of
    the same words the one that was `found` counts.
    """
    most = min(share_of(plan.budget, plan.settings.fill), plan.room)
    kinds: tuple[Kind, ...] = ("turn", "summary") if reading.view.hide_covered else ("turn",)
    # Each costs a token or more, so that a large memory is told by its number of turns alone.
    ids = reading.propose(KindQuery(kinds), most + len(shown.ids), NO_DEADLINE).ids if most > 0 else ()
    rest = tuple(unit_id for unit_id in ids if unit_id not in shown.ids)
    if not rest or reading.columns(rest, ("length",))["length"].sum() > most * CHARS_PER_TOKEN:
        return []
    units = sorted(reading.units(rest).values(), key=lambda unit: (unit.id in found, unit.id))
    return [*{unit.said(): unit for unit in units if not shown.holds(unit)}.values()]


_MOST_READ = 64  # nobody keeps more instructions in mind


def standing_instructions(store: Store, view: View) -> list[StandingInstruction]:
    """Return what the user has told the assistant and not taken back, the newest first, whatever the filters."""
    ledger = StatementLedger(Aliases())
    with store.reading(dataclasses.replace(view, current_only=True, hide_covered=False, filters=None)) as reading:
        for unit in units_stating(reading, INSTRUCTIONS, _MOST_READ):
            ledger.instruct(unit)
    newest = sorted(ledger.holding.values(), key=lambda entry: entry.units[-1].moment, reverse=True)
    return [
        StandingInstruction(one.units[-1], one.said.value, one.told is not None and one.told.at_times)
        for one in newest
    ]


def units_stating(reading: Reading, kinds: int, most: int = NO_LIMIT) -> list[Unit]:
    """Return the visible units that state something of these kinds, oldest first."""
    ids = reading.propose(StatementQuery(kinds), most, NO_DEADLINE).ids
    return sorted(reading.units(ids).values(), key=lambda unit: unit.moment)


_MOST_STANDING = 12  # a context has room for few


# ----------------------------------------------------------------------------------------------- assembling


def add_standing(engine: Engine, request: ContextRequest, query: QueryProfile, reading: Reading) -> ContextRequest:
    """Add the user's standing instructions that the host does not show: those for some questions only come last.

    Of these the nearest in meaning come first, of the others the newest.
    """
    wanted, shown = engine.settings.assembly.standing_share > 0.0, VisibleToHost(request.hidden, request.hidden_words)
    found = standing_instructions(engine.store, reading.view) if wanted else ()
    standing = [one for one in found if not shown.holds(one.unit)]
    near: dict[str, float] = {}
    if query.vector is not None and (ids := [one.unit.id for one in standing if one.at_times]):
        evidence = reading.evidence(DenseQuery(query.space or "", query.vector), ids)
        cosines = vectors.cosines(evidence.vectors, query.vector, len(query.vector)).tolist() if evidence.ids else []
        near = dict(zip(evidence.ids, cosines, strict=True))
    standing.sort(key=lambda one: (one.at_times, -near.get(one.unit.id, 0.0)))
    return dataclasses.replace(request, standing=standing[:_MOST_STANDING])
