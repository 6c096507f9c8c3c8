"""The projection Proj(V_rest, q) (C11, C12, C13): what is injected besides rules and tail, and in which order.

pass 1 → pass 2 → hops → temporal selection:   Proj = (S* if active else C2) ∪ C_hop*
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from holdfast.ranking.discover import discover, hop, in_order
from holdfast.ranking.temporal import Selection, select
from holdfast.settings import Settings
from holdfast.types import Asked, Projected, Projection, Prospect


def project(
    prospects: Collection[Prospect],
    links: Mapping[str, Iterable[str]],
    asked: Asked,
    settings: Settings,
    *,
    targets: Iterable[Prospect] = (),
) -> Projection:
    """Return the projection of `prospects`, which the strategies found in V_rest.

    `links` leads from a unit's id to the ids it names. `targets` are linked units that no strategy found: they can
    come in by a hop and by nothing else. Both hold only what is in V_rest, visible and current.
    """
    discovery = discover(prospects, asked.keywords, settings, asked.at, max_access=asked.max_access)
    by_id = {prospect.unit.id: prospect for prospect in (*targets, *prospects)}
    hops, low = hop(discovery, links, by_id, settings)
    selection = select(discovery, prospects, asked.indicator.value, len(asked.slots), settings.temporal)
    return Projection(
        items=_arranged(discovery.second, hops, selection, keep_rest=settings.temporal.keep_rest),
        asked=asked,
        active=selection.active,
        first=tuple(prospect.unit.id for prospect in discovery.first),
        second=discovery.second,
        hops=hops,
        recovered=selection.recovered,
        chosen=selection.chosen,
        fallen=(*discovery.fallen, *low, *selection.fallen),
    )


def _arranged(
    second: tuple[Projected, ...], hops: tuple[Projected, ...], selection: Selection, *, keep_rest: bool
) -> tuple[Projected, ...]:
    """Return the injection order: one list by σ, or with `keep_rest` S* first and then the rest by its own score."""
    if not selection.active:
        return in_order((*second, *hops))
    chosen = {one.unit.id for one in selection.chosen}
    linked = tuple(one for one in hops if one.unit.id not in chosen)  # a target in S* keeps its S_proj
    if not keep_rest:
        return in_order((*selection.chosen, *linked))
    others = tuple(one for one in second if one.unit.id not in chosen)
    return (*selection.chosen, *in_order((*others, *linked)))
