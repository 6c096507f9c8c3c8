"""Candidates → prospects: what projection needs to know, looked up in one place so that projection stays pure."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.analysis.keywords import plain_words
from holdfast.analysis.lexical import terms
from holdfast.analysis.temporal import event_slots, indicator
from holdfast.kernels import vectors
from holdfast.ranking.temporal import slot_covered
from holdfast.retrieval.asking import Engine, Question
from holdfast.types import Asked, Candidate, Prospect, QueryProfile, View


def prospects_of(
    engine: Engine, question: Question, query: QueryProfile, kept: Sequence[Candidate], view: View
) -> tuple[Asked, list[Prospect]]:
    """Look up what projection needs to know of the question and of each candidate."""
    settings, store = engine.settings, engine.store
    ids = [candidate.unit.id for candidate in kept]
    counts, most = store.access_counts(view, ids)
    densities = store.anchor_densities(view, ids)
    xi = indicator(question.text, wide=settings.temporal.wide)
    active = settings.temporal.enabled and xi.value >= settings.temporal.activation
    slots = event_slots(question.text) if active else ()
    covered = _covered(engine, query, slots, kept, view)
    plain = settings.projection.keywords == "words"
    prospects = [
        Prospect(
            candidate.unit.evolve(access_count=counts.get(candidate.unit.id, 0)),
            candidate.rel,
            frozenset(plain_words(candidate.unit.text)) if plain else _matched(candidate),
            densities.get(candidate.unit.id, 0.0),
            covered.get(candidate.unit.id, ()),
        )
        for candidate in kept
    ]
    keywords = frozenset(plain_words(question.text)) if plain else frozenset(query.terms)
    return Asked(keywords, view.reference_time, xi, slots, most), prospects


def _matched(candidate: Candidate) -> frozenset[str]:
    """Return which of the question's terms a candidate holds, as the lexical strategy saw it."""
    notes = candidate.claims["lexical"].notes if "lexical" in candidate.claims else ()
    return frozenset(note.removeprefix("matched: ") for note in notes if note.startswith("matched: "))


def _covered(
    engine: Engine, query: QueryProfile, slots: Sequence[str], kept: Sequence[Candidate], view: View
) -> dict[str, tuple[bool, ...]]:
    """Return φ: which event slots each candidate covers, by meaning, or by words when there are no vectors."""
    embedder = engine.embedder() if query.vector is not None and slots else None
    if embedder is None or query.space is None:
        asked = [frozenset(terms(slot)) for slot in slots]
        said = {c.unit.id: frozenset(terms(c.unit.text)) for c in kept} if slots else {}
        return {unit_id: tuple(slot_covered(slot, held) for slot in asked) for unit_id, held in said.items()}
    evidence = engine.store.dense_evidence(view, query.space, [candidate.unit.id for candidate in kept])
    if not evidence.ids:
        return {}
    bar = engine.settings.temporal.slot_similarity
    near = [
        vectors.cosines(evidence.vectors, vector, len(vector)) >= bar
        for vector in (embedder.embed_query(slot) for slot in slots)
    ]
    return {unit_id: tuple(bool(row[i]) for row in near) for i, unit_id in enumerate(evidence.ids)}


def links_of(
    engine: Engine,
    prospects: Sequence[Prospect],
    hidden: frozenset[str],
    view: View,
) -> tuple[dict[str, tuple[str, ...]], list[Prospect]]:
    """Return where the authored links of the prospects lead, and the linked units that no strategy found."""
    names = dict.fromkeys(link for prospect in prospects for link in prospect.unit.links)
    # A link names a unit, or a document and so all of its units.
    leads = {name: engine.store.parts(view, name) or [name] for name in names}
    links = {
        prospect.unit.id: tuple(target for link in prospect.unit.links for target in leads[link])
        for prospect in prospects
        if prospect.unit.links
    }
    known = {prospect.unit.id for prospect in prospects}
    wanted = {target for targets in links.values() for target in targets} - known - hidden
    units = engine.store.units(view, sorted(wanted)) if wanted else {}
    visible = [unit for unit in units.values() if engine.store.visible(view, unit.id) is None]
    return links, [Prospect(unit, 0.0, frozenset(), 0.0) for unit in visible]
