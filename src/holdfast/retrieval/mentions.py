"""The best units of a first ranking → what they name, and the units that those names lead to (C12)."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.analysis.mentions import entities, phrases, spoken, titles
from holdfast.retrieval.asking import Engine
from holdfast.types import Candidate, Mention, QueryProfile, View


def mentions_of(engine: Engine, query: QueryProfile, ranked: Sequence[Candidate], view: View) -> tuple[Mention, ...]:
    """Return the links that lead away from the best candidates.

    A name that stands in the question leads nowhere: what it names was looked for already.
    """
    settings = engine.settings.stages
    if not (settings.mentions or settings.shared_names):
        return ()
    parents = [one.unit for one in ranked[: settings.link_parents] if one.rel > 0.0]
    written = {unit.id: phrases(unit.text) if settings.mentions else () for unit in parents}
    shared = {
        unit.id: (*titles(unit.topic), *entities(unit.text)) if settings.shared_names else () for unit in parents
    }
    keys = dict.fromkeys(key for said in (written, shared) for unit in parents for key in said[unit.id])
    leads = engine.store.named(view, [*keys], settings.rare_names)
    asked = spoken(query.text)
    leads = {key: named for key, named in leads.items() if f" {key} " not in asked}
    links = [
        Mention(unit.id, target, key, called)
        for unit in parents
        for called, said in ((True, written), (False, shared))
        for key in said[unit.id]
        if key in leads
        for target in (leads[key].called if called else leads[key].sharing)
        if target != unit.id
    ]
    return tuple(dict.fromkeys(links))


def targets_of(mentions: Sequence[Mention]) -> list[str]:
    """Return where links lead, each target once."""
    return [*dict.fromkeys(mention.target for mention in mentions)]
