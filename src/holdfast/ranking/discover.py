"""Two-pass discovery (C11) and hop expansion (C12): which units may enter a context.

ω(d)       = ω0 + (1-ω0)·(α_r·r + α_f·f + α_a·a)
f(d)       = ln(1 + acc) / ln(1 + max_acc + 1)          M(K,d) = |K ∩ terms(d)| / max(|K|, 1)
S_final(d) = ω · max(sim, 0) · (1 + κ·M)/(1 + κ) · Q    S_hop(d') = η · max S_final(parent)
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from holdfast.ranking.score import quality, recency
from holdfast.settings import ProjectionSettings, Settings
from holdfast.types import Contribution, Fallen, Projected, Prospect, Step, Unit

T = TypeVar("T", Prospect, Projected)
# λ_r: decay per second of every kind that ages (half-life 19 hours; C11).
_RATE = 1e-5


@dataclass(frozen=True, slots=True)
class Weighing:
    """What S_final of one question needs to know; `max_access` is the highest access count of V_rest."""

    settings: Settings
    keywords: frozenset[str]
    at: datetime
    max_access: int

    def final(self, prospect: Prospect) -> Contribution:
        """Return S_final ∈ [0, 1] as a tree."""
        product = Contribution.of(
            "ω × sim × keywords × Q",
            "product",
            self._omega(prospect.unit),
            Contribution("max(sim, 0)", max(prospect.sim, 0.0)),
            self._keyword_factor(prospect),
            Contribution("Q", quality(prospect.unit, self.settings.score)),
        )
        return capped("S_final", product)

    def _omega(self, unit: Unit) -> Contribution:
        settings = self.settings.projection
        share_recency, share_frequency, share_authority = settings.shares
        recent = recency(unit, _RATE, self.at)
        mix = Contribution.of(
            "mix",
            "sum",
            weighed("recency", "α_r", share_recency, Contribution("r", recent)),
            weighed("frequency", "α_f", share_frequency, self._frequency(unit)),
            weighed("authority", "α_a", share_authority, Contribution("a", unit.authority)),
        )
        above = weighed("above the floor", "1 - ω0", 1.0 - settings.floor, mix)
        return capped("ω", Contribution.of("floor + mix", "sum", Contribution("ω0", settings.floor), above))

    def _frequency(self, unit: Unit) -> Contribution:
        return Contribution.of(
            "f",
            "ratio",
            Contribution("ln(1 + acc)", math.log(1 + unit.access_count)),
            Contribution("ln(2 + max acc)", math.log(2 + self.max_access)),
        )

    def _keyword_factor(self, prospect: Prospect) -> Contribution:
        kappa = self.settings.projection.keyword_weight
        matched = Contribution.of(
            "M",
            "ratio",
            Contribution("matched keywords", float(len(self.keywords & prospect.terms))),
            Contribution("keywords asked", float(max(len(self.keywords), 1))),
        )
        gain = Contribution.of("1 + κ·M", "sum", Contribution("1", 1.0), weighed("κ·M", "κ", kappa, matched))
        return Contribution.of("keywords", "ratio", gain, Contribution("1 + κ", 1.0 + kappa))


@dataclass(frozen=True, slots=True)
class Discovery:
    """What the two passes kept, best first: C1 by similarity, C2 by S_final."""

    first: tuple[Prospect, ...]
    second: tuple[Projected, ...]
    fallen: tuple[Fallen, ...]
    weighing: Weighing


def discover(
    prospects: Collection[Prospect],
    keywords: frozenset[str],
    settings: Settings,
    at: datetime,
    *,
    max_access: int = 0,
) -> Discovery:
    """Return C1 and C2 of `prospects` at the moment `at` (t_ref).

    `max_access` is max_acc over the whole V_rest; a prospect's own count raises it.
    """
    most = max((prospect.unit.access_count for prospect in prospects), default=0)
    weighing = Weighing(settings, keywords, at, max(most, max_access))
    limits = settings.projection
    near, beyond = best(prospects, limits.first, "k1", by=lambda prospect: (prospect.sim,))
    first = tuple(prospect for prospect in near if prospect.sim >= limits.min_similarity)
    far = [
        Fallen(prospect.unit.id, "θ1", limits.min_similarity, prospect.sim)
        for prospect in near
        if prospect.sim < limits.min_similarity
    ]
    scored = [Projected(prospect, "pass 2", weighing.final(prospect)) for prospect in first]
    second, lower = best(scored, limits.second, "k2", by=lambda one: (one.score,))
    return Discovery(first, second, (*beyond, *far, *lower), weighing)


def hop(
    discovery: Discovery, links: Mapping[str, Iterable[str]], prospects: Mapping[str, Prospect], settings: Settings
) -> tuple[tuple[Projected, ...], tuple[Fallen, ...]]:
    """Return C_hop*, best first, and the linked units whose score was too low.

    `links` leads from a unit's id to the ids it names; one that `prospects` does not hold is not followed. Links are
    followed once and from C2 alone, so that a ring of links ends (law 8).
    """
    limits = settings.projection
    taken = {parent.unit.id for parent in discovery.second}
    found: dict[str, Projected] = {}
    for parent in discovery.second:  # best first, so the first parent of a target is its best
        for target in links.get(parent.unit.id, ()):
            if target in prospects and target not in taken:
                share = weighed("S_hop", "η", limits.hop_share, parent.contributions)
                found.setdefault(target, Projected(prospects[target], f"hop from {parent.unit.id}", share))
    ranked = in_order(found.values())
    kept = tuple(one for one in ranked if one.score >= limits.hop_floor)
    low = [Fallen(one.unit.id, "θ_hop", limits.hop_floor, one.score) for one in ranked[len(kept) :]]
    return kept, tuple(low)


def widened(settings: ProjectionSettings, variant_budget: int) -> ProjectionSettings:
    """Return settings whose k1 and k2 have grown by one for every `growth` tokens of the variant budget τ_V."""
    extra = max(variant_budget, 0) // settings.growth if settings.growth else 0
    return dataclasses.replace(settings, first=settings.first + extra, second=settings.second + extra)


# ------------------------------------------------------------------------------------------------ small tools


def in_order(found: Iterable[Projected]) -> tuple[Projected, ...]:
    """Return what was found by score, best first, ties by id."""
    return tuple(sorted(found, key=lambda one: (-one.score, one.unit.id)))


def best(
    ranked: Iterable[T], most: int, step: Step, by: Callable[[T], Sequence[float]]
) -> tuple[tuple[T, ...], tuple[Fallen, ...]]:
    """Return the first `most` by the measures `by`, higher is better, ties by id; and those that fell behind them.

    What a fallen one needed, and had, is its first measure.
    """
    order = sorted(ranked, key=lambda one: (*(-measure for measure in by(one)), one.unit.id))
    kept, rest = tuple(order[:most]), order[most:]
    return kept, tuple(Fallen(one.unit.id, step, by(kept[-1])[0], by(one)[0]) for one in rest)


def weighed(name: str, weight_name: str, weight: float, node: Contribution) -> Contribution:
    """Return weight × node."""
    return Contribution.of(name, "product", Contribution(weight_name, weight), node)


def capped(name: str, node: Contribution) -> Contribution:
    """Return min(node, 1): the shares of a mix may add up to a hair more than 1 (law 5: clamped last)."""
    return Contribution.of(name, "minimum", node, Contribution("ceiling", 1.0))
