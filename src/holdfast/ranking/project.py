"""The projection Proj(V_rest, q) (C11, C12, C13): what is injected besides rules and tail, and in which order.

pass 1 → pass 2 → hops → temporal selection:   Proj = (S* if active else C2) ∪ C_hop*
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from holdfast.ranking.discover import Weighing, discover, hop, in_order
from holdfast.ranking.temporal import Selection, select
from holdfast.settings import Settings
from holdfast.types import Asked, Projected, Projection, Prospect


@dataclass(frozen=True, slots=True)
class Prospects:
    """Who may be projected, all in V_rest, visible and current.

    `entering` was found and not cut; `linked` can come in by a hop and by nothing else; `spare` only the temporal
    selector may bring back. `links` leads from a unit's id to the ids it names.
    """

    entering: tuple[Prospect, ...]
    linked: tuple[Prospect, ...] = ()
    spare: tuple[Prospect, ...] = ()
    links: Mapping[str, Iterable[str]] = field(default_factory=dict)


def project(asked: Asked, prospects: Prospects, settings: Settings, *, lead: str | None = None) -> Projection:
    """Return the projection of `prospects`. The prospect `lead` stands first, whatever its score."""
    entering = prospects.entering
    discovery = discover(entering, asked.keywords, settings, asked.at, max_access=asked.max_access)
    by_id = {prospect.unit.id: prospect for prospect in (*prospects.linked, *entering)}
    hops, low = hop(discovery, prospects.links, by_id, settings)
    rest = (*entering, *prospects.spare)
    selection = select(discovery, rest, asked.indicator.value, len(asked.slots), settings.temporal)
    items = _arranged(discovery.second, hops, selection, keep_rest=settings.temporal.keep_rest)
    return Projection(
        items=items if lead is None else _led(items, by_id[lead], discovery.weighing),
        asked=asked,
        active=selection.active,
        first=tuple(prospect.unit.id for prospect in discovery.first),
        second=discovery.second,
        hops=hops,
        recovered=selection.recovered,
        chosen=selection.chosen,
        fallen=(*discovery.fallen, *low, *selection.fallen),
    )


def _led(items: tuple[Projected, ...], lead: Prospect, weighing: Weighing) -> tuple[Projected, ...]:
    """Return the items with one at their head; one that is none of them comes in with its S_final."""
    first = [one for one in items if one.unit.id == lead.unit.id]
    rest = (one for one in items if one.unit.id != lead.unit.id)
    return (*(first or [Projected(lead, "first hit", weighing.final(lead))]), *rest)


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
