"""The best units of a first ranking → what they name, and the units that those names lead to (C12)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from holdfast.language.mentions import entities, phrases, spoken, titles
from holdfast.retrieval.asking import Engine
from holdfast.types import Candidate, Mention, QueryProfile, RetrievalResult, Unit, View


def mentions_of(engine: Engine, query: QueryProfile, ranked: Sequence[Candidate], view: View) -> tuple[Mention, ...]:
    """Return the links that lead away from the best candidates, each once.

    A name that stands in the question leads nowhere: what it names was looked for already.
    """
    settings, store, asked = engine.settings.stages, engine.store, spoken(query.text)
    parents = [one.unit for one in ranked[: settings.link_parents] if one.rel > 0.0]
    found: list[Mention] = []
    if settings.mentions:
        names = _unasked({unit.id: phrases(unit.text) for unit in parents}, asked)
        leads = store.called(view, _all(names), settings.rare_names)
        found += _links(parents, names, leads, called=True)
    if settings.shared_names:
        names = _unasked({unit.id: (*titles(unit.topic), *entities(unit.text)) for unit in parents}, asked)
        leads = store.naming(view, _all(names), settings.rare_names)
        found += _links(parents, names, leads, called=False)
    return tuple(dict.fromkeys(found))


def targets_of(mentions: Sequence[Mention], pool: Sequence[RetrievalResult]) -> list[str]:
    """Return where links lead outside the pool, each target once."""
    known = {claim.unit_id for result in pool for claim in result.candidates}
    return [target for target in dict.fromkeys(mention.target for mention in mentions) if target not in known]


Names = Mapping[str, Sequence[str]]


def _unasked(names: Names, asked: str) -> Names:
    return {unit_id: [key for key in keys if f" {key} " not in asked] for unit_id, keys in names.items()}


def _all(names: Names) -> list[str]:
    return [*dict.fromkeys(key for keys in names.values() for key in keys)]


def _links(parents: Sequence[Unit], names: Names, leads: Names, *, called: bool) -> list[Mention]:
    return [
        Mention(unit.id, target, key, called)
        for unit in parents
        for key in names[unit.id]
        for target in leads.get(key, ())
        if target != unit.id
    ]
