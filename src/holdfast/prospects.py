"""Candidates → prospects: what projection needs to know, looked up in one place so that projection stays pure."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.kernels import vectors
from holdfast.language.lexical import plain_words, terms
from holdfast.language.temporal import DENSITIES, event_slots, indicator
from holdfast.ranking.fuse import Fusion, fuse
from holdfast.ranking.temporal import slot_covered
from holdfast.retrieval.asking import Engine, Question
from holdfast.store.contract import DenseQuery
from holdfast.types import Asked, Candidate, Deadline, Prospect, QueryProfile, RetrievalResult, View

# One sweep over the vectors of one anchor density; a store does not cut it short.
_NO_HURRY = Deadline.start(lambda: 0.0, 1.0)


def prospects_of(
    engine: Engine, question: Question, query: QueryProfile, kept: Sequence[Candidate], view: View
) -> tuple[Asked, list[Prospect]]:
    """Look up what projection needs to know of the question and of each candidate."""
    settings, store = engine.settings, engine.store
    ids = [candidate.unit.id for candidate in kept]
    counts, most = store.access_counts(view, ids)
    densities = store.anchor_densities(view, ids)
    xi = indicator(question.text, wide=settings.temporal.wide)
    slots = event_slots(question.text) if is_temporal(engine, question) else ()
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


def is_temporal(engine: Engine, question: Question) -> bool:
    """Return whether a question is temporal enough for the selector (C13)."""
    settings = engine.settings.temporal
    return settings.enabled and indicator(question.text, wide=settings.wide).value >= settings.activation


def anchored(
    engine: Engine, question: Question, query: QueryProfile, fusion: Fusion, known: frozenset[str], view: View
) -> tuple[Candidate, ...]:
    """Return the units richest in anchors that are near enough and not among `known`: k_rec of them, or more (C13).

    Anchor densities are few, so that the richest are the nearest of the highest one, then of the next. Exact where
    relevance is the cosine; else they are proposed by it.
    """
    settings, store = engine.settings.temporal, engine.store
    if query.vector is None or query.space is None:
        return ()
    level_of = store.anchor_densities(view, [*known])
    found: dict[str, float] = {}
    for density in DENSITIES:
        if len(found) >= settings.recovered or (settings.anchors_required and density == 0.0):
            break
        taken = sum(round(level - density, 3) == 0.0 for level in level_of.values())
        wanted = DenseQuery(query.space, query.vector, len(query.vector), density)
        ids = store.dense_candidates(view, wanted, settings.recovered + taken, _NO_HURRY).ids
        evidence = store.dense_evidence(view, query.space, [unit_id for unit_id in ids if unit_id not in known])
        near = vectors.cosines(evidence.vectors, query.vector, len(query.vector)) if evidence.ids else ()
        cosines = zip(evidence.ids, (float(cosine) for cosine in near), strict=True)
        found |= {unit_id: cosine for unit_id, cosine in cosines if cosine >= settings.recovery_similarity}
    claims = [
        RetrievalResult(each.id, tuple(each.score(query, view, store, [*found], explain=False).values()), 0.0)
        for each in question.strategies
    ]
    # What a summary stands for is recalled by the summary.
    return tuple(one for one in fuse(claims, fusion) if one.unit.covered_by is None) if found else ()


def richest(engine: Engine, candidates: Sequence[Candidate], view: View) -> list[Candidate]:
    """Return whom C_rec can come to hold: the first k_rec by (A, sim, id)."""
    densities = engine.store.anchor_densities(view, [candidate.unit.id for candidate in candidates])
    order = sorted(candidates, key=lambda one: (-densities.get(one.unit.id, 0.0), -one.rel, one.unit.id))
    near = [one for one in order if one.rel >= engine.settings.temporal.recovery_similarity]
    return near[: engine.settings.temporal.recovered]


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
