"""Temporal-compositional selection (C13): a set of units that together cover the events a question names.

ΔΦ(d,S) = newly covered slots / max(|E|, 1)
S_cov   = μ·S_final + ν·A + ρ·ΔΦ            S_proj = (1-ξ)·S_final + ξ·S_cov
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from holdfast.ranking.discover import Discovery, best, capped, in_order, weighed
from holdfast.settings import TemporalSettings
from holdfast.types import Contribution, Fallen, Projected, Prospect

# A of a unit with a single anchor (C13).
_ONE_ANCHOR = 1 / 3


@dataclass(frozen=True, slots=True)
class Selection:
    """What the selector did: C_rec, and S* by σ. A question that is not temporal enough leaves both empty."""

    active: bool
    recovered: tuple[Projected, ...] = ()
    chosen: tuple[Projected, ...] = ()
    fallen: tuple[Fallen, ...] = ()


@dataclass(frozen=True, slots=True)
class Coverage:
    """What S_proj of one question needs to know: ξ, the number of event slots |E|, and the shares."""

    xi: float
    slots: int
    settings: TemporalSettings

    def gain(self, prospect: Prospect, others: Iterable[Prospect]) -> Contribution:
        """Return ΔΦ ∈ [0, 1]: the share of the slots that `prospect` covers and none of `others` does."""
        new = self._covered(prospect).difference(*(self._covered(other) for other in others))
        return Contribution.of(
            "ΔΦ",
            "ratio",
            Contribution("newly covered slots", float(len(new))),
            Contribution("slots", float(max(self.slots, 1))),
        )

    def _covered(self, prospect: Prospect) -> set[int]:
        return {place for place, covers in enumerate(prospect.slots[: self.slots]) if covers}

    def projected(self, one: Projected, others: Iterable[Projected]) -> Projected:
        """Return `one` with S_proj ∈ [0, 1] in the company of `others`; it must come in with S_final."""
        relevance, anchors, coverage = self.settings.shares
        final, prospect = one.contributions, one.prospect
        mix = Contribution.of(
            "coverage mix",
            "sum",
            weighed("relevance", "μ", relevance, final),
            weighed("anchors", "ν", anchors, Contribution("A", prospect.anchor_density)),
            weighed("coverage", "ρ", coverage, self.gain(prospect, (other.prospect for other in others))),
        )
        blend = Contribution.of(
            "blend",
            "sum",
            weighed("plain", "1 - ξ", 1.0 - self.xi, final),
            weighed("temporal", "ξ", self.xi, capped("S_cov", mix)),
        )
        return Projected(prospect, one.via, capped("S_proj", blend))


def select(
    discovery: Discovery, prospects: Collection[Prospect], xi: float, slots: int, settings: TemporalSettings
) -> Selection:
    """Return S*, the units that cover the question's events together, when the question is temporal enough.

    `prospects` is V_rest as the strategies found it, `slots` is |E|.
    """
    if not settings.enabled or xi < settings.activation:
        return Selection(active=False)
    recovered, left_out = _recover(discovery, prospects, settings)
    coverage = Coverage(xi, slots, settings)
    members = [Projected(one.prospect, "temporal", one.contributions) for one in discovery.second]
    pool = (*members, *recovered)
    picks, passed_over = pick(pool, coverage)
    picked = {one.unit.id for one in picks}
    chosen = [one for one in pool if one.unit.id in picked]
    # C13: each is scored in the company of all the others, whatever the order in which they were picked.
    scored = [coverage.projected(one, [other for other in chosen if other is not one]) for one in chosen]
    return Selection(active=True, recovered=recovered, chosen=in_order(scored), fallen=(*left_out, *passed_over))


def _recover(
    discovery: Discovery, prospects: Collection[Prospect], settings: TemporalSettings
) -> tuple[tuple[Projected, ...], tuple[Fallen, ...]]:
    """Return C_rec with S_final: the anchor-rich units outside C2, by (A, sim, id)."""
    taken = {one.unit.id for one in discovery.second}
    eligible: list[Prospect] = []
    fallen: list[Fallen] = []
    for prospect in sorted(prospects, key=lambda one: one.unit.id):
        unit_id, density = prospect.unit.id, prospect.anchor_density
        if unit_id in taken:
            continue
        if prospect.sim < settings.recovery_similarity:
            fallen.append(Fallen(unit_id, "θ_rec", settings.recovery_similarity, prospect.sim))
        elif settings.anchors_required and density <= 0.0:
            fallen.append(Fallen(unit_id, "anchors", _ONE_ANCHOR, density))
        else:
            eligible.append(prospect)
    kept, beyond = best(eligible, settings.recovered, "k_rec", by=lambda one: (one.anchor_density, one.sim))
    recovered = tuple(Projected(one, "temporal, recovered", discovery.weighing.final(one)) for one in kept)
    return recovered, (*fallen, *beyond)


def pick(pool: Sequence[Projected], coverage: Coverage) -> tuple[tuple[Projected, ...], tuple[Fallen, ...]]:
    """Return up to k_cov members of the pool, each the best by S_proj given those before it, and who lost where.

    A pick carries the S_proj it was picked with.
    """
    settings = coverage.settings
    picks: tuple[Projected, ...] = ()
    ranked: tuple[Projected, ...] = ()
    left = {one.unit.id: one for one in pool}
    while left and len(picks) < settings.picks:
        ranked = in_order(coverage.projected(one, picks) for one in left.values())
        if ranked[0].score < settings.stop:
            return picks, tuple(Fallen(one.unit.id, "θ_stop", settings.stop, one.score) for one in ranked)
        picks = (*picks, ranked[0])
        del left[ranked[0].unit.id]
    return picks, tuple(Fallen(one.unit.id, "k_cov", picks[-1].score, one.score) for one in ranked[1:])


def slot_covered(slot_terms: frozenset[str], unit_terms: frozenset[str]) -> bool:
    """Return φ without a dense strategy: at least half of the slot's terms occur in the unit."""
    return bool(slot_terms) and 2 * len(slot_terms & unit_terms) >= len(slot_terms)
