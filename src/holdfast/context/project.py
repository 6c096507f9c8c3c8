"""The projection Proj(V_rest, q): what is injected besides rules and tail, and in which order.

pass 1 → pass 2 → hops → temporal selection:   Proj = (S* if active else P2) ∪ C_hop*

Two-pass discovery (C11) and hop expansion (C12):

    ω(d)       = ω0 + (1-ω0)·(α_r·r + α_f·f + α_a·a)
    f(d)       = ln(1 + acc) / ln(1 + max_acc + 1)          M(K,d) = |K ∩ terms(d)| / max(|K|, 1)
    S_final(d) = ω · max(sim, 0) · (1 + κ·M)/(1 + κ) · Q    S_hop(d') = η · max S_final(parent)

Temporal-compositional selection (C13), a set of units that together cover the events a question names:

    ΔΦ(d,S) = newly covered slots / max(|E|, 1)
    S_cov   = μ·S_final + ν·A + ρ·ΔΦ            S_proj = (1-ξ)·S_final + ξ·S_cov
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import field
from datetime import datetime
from functools import cache, cached_property, partial
from typing import TypeVar

from holdfast.ranking.score import quality, recency
from holdfast.settings import ProjectionSettings, Settings, TemporalSettings
from holdfast.types import (
    ContextCandidate,
    Contribution,
    ProjectedCandidate,
    Projection,
    ProjectionQuery,
    ProjectionStep,
    StepDrop,
    Unit,
)
from holdfast.values import dataclass

# A of a unit with a single anchor (C13).
_ONE_ANCHOR = 1 / 3
_CEILING = Contribution("ceiling", 1.0)
T = TypeVar("T", ContextCandidate, ProjectedCandidate)


@dataclass(frozen=True, slots=True)
class CandidateSets:
    """Who may be projected, all in V_rest, visible and current.

    `entering` was found and not cut; `linked` can come in by a hop and by nothing else; `spare` only the temporal
    selector may bring back. `links` leads from a unit's id to the ids it names.
    """

    entering: tuple[ContextCandidate, ...]
    linked: tuple[ContextCandidate, ...] = ()
    spare: tuple[ContextCandidate, ...] = ()
    links: Mapping[str, Iterable[str]] = field(default_factory=dict)


def project(
    asked: ProjectionQuery, prospects: CandidateSets, settings: Settings, *, lead: str | None = None
) -> Projection:
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


def _led(
    items: tuple[ProjectedCandidate, ...], lead: ContextCandidate, weighing: CandidateWeights
) -> tuple[ProjectedCandidate, ...]:
    """Return the items with one at their head; one that is none of them comes in with its S_final."""
    first = [one for one in items if one.unit.id == lead.unit.id]
    rest = (one for one in items if one.unit.id != lead.unit.id)
    return (*(first or [ProjectedCandidate(lead, "first hit", weighing.final(lead))]), *rest)


def _arranged(
    second: tuple[ProjectedCandidate, ...],
    hops: tuple[ProjectedCandidate, ...],
    selection: TemporalSelection,
    *,
    keep_rest: bool,
) -> tuple[ProjectedCandidate, ...]:
    """Return the injection order: one list by σ, or with `keep_rest` S* first and then the rest by its own score."""
    if not selection.active:
        return in_order((*second, *hops))
    chosen = {one.unit.id for one in selection.chosen}
    linked = tuple(one for one in hops if one.unit.id not in chosen)  # a target in S* keeps its S_proj
    if not keep_rest:
        return in_order((*selection.chosen, *linked))
    others = tuple(one for one in second if one.unit.id not in chosen)
    return (*selection.chosen, *in_order((*others, *linked)))


def group_units(units: Sequence[Unit], replaced: Mapping[str, str]) -> dict[str, str]:
    """Return of each unit the group of those that it stands with: one of them names it.

    Turns of a session on one day stand together, and a turn with the one that seems to have replaced it.
    """
    group_of = {unit.id: unit.id for unit in units}

    def join(one: str, other: str) -> None:
        old, new = group_of[one], group_of[other]
        group_of.update((name, new) for name, group in group_of.items() if group == old)

    first: dict[tuple[str, object], str] = {}
    for unit in units:
        if unit.kind == "turn" and unit.session is not None:
            group_of[unit.id] = first.setdefault((unit.session, unit.event_time.date()), unit.id)
    for older, newer in replaced.items():
        if older in group_of and newer in group_of:
            join(older, newer)
    return group_of


@dataclass(frozen=True)
class CandidateWeights:
    """What S_final of one question needs to know; `max_access` is the highest access count of V_rest.

    Many are weighed for one question: what they share is made once.
    """

    settings: Settings
    keywords: frozenset[str]
    at: datetime
    max_access: int

    def final(self, prospect: ContextCandidate) -> Contribution:
        """Return S_final ∈ [0, 1] as a tree."""
        product = Contribution.of(
            "ω × sim × keywords × Q",
            "product",
            self._omega(prospect.unit),
            Contribution("max(sim, 0)", max(prospect.sim, 0.0)),
            self._keyword_factors[len(self.keywords & prospect.terms)],
            Contribution("Q", quality(prospect.unit, self.settings.score)),
        )
        return cap_score("S_final", product)

    def _omega(self, unit: Unit) -> Contribution:
        floor, above_floor, (share_recency, _, _), _ = self._leaves
        rate = self.settings.projection.rates.get(unit.kind, 0.0)  # an authored rule has none
        mix = Contribution.of(
            "mix",
            "sum",
            Contribution.of("recency", "product", share_recency, Contribution("r", recency(unit, rate, self.at))),
            self._frequency(unit.access_count),
            self._authority(unit.authority),
        )
        above = Contribution.of("above the floor", "product", above_floor, mix)
        return cap_score("ω", Contribution.of("floor + mix", "sum", floor, above))

    @cached_property
    def _leaves(self) -> tuple[Contribution, Contribution, list[Contribution], Contribution]:
        settings = self.settings.projection
        shares = [Contribution(*pair) for pair in zip(("α_r", "α_f", "α_a"), settings.shares, strict=True)]
        highest = Contribution("ln(2 + max acc)", math.log(2 + self.max_access))
        return Contribution("ω0", settings.floor), Contribution("1 - ω0", 1.0 - settings.floor), shares, highest

    @cached_property
    def _frequency(self) -> Callable[[int], Contribution]:
        _, _, (_, share, _), highest = self._leaves
        often = partial(Contribution, "ln(1 + acc)")
        ratio = partial(Contribution.of, "f", "ratio")
        return cache(
            lambda count: Contribution.of("frequency", "product", share, ratio(often(math.log(1 + count)), highest))
        )

    @cached_property
    def _authority(self) -> Callable[[float], Contribution]:
        _, _, (_, _, share), _ = self._leaves
        return cache(lambda value: Contribution.of("authority", "product", share, Contribution("a", value)))

    @cached_property
    def _keyword_factors(self) -> list[Contribution]:
        """Return the factor of a unit for each number of keywords that it may hold."""
        return [self._keyword_factor(matched) for matched in range(len(self.keywords) + 1)]

    def _keyword_factor(self, matched: int) -> Contribution:
        kappa = self.settings.projection.keyword_weight
        share = Contribution.of(
            "M",
            "ratio",
            Contribution("matched keywords", float(matched)),
            Contribution("keywords asked", float(max(len(self.keywords), 1))),
        )
        gain = Contribution.of("1 + κ·M", "sum", Contribution("1", 1.0), weight_score("κ·M", "κ", kappa, share))
        return Contribution.of("keywords", "ratio", gain, Contribution("1 + κ", 1.0 + kappa))


@dataclass(frozen=True, slots=True)
class Discovery:
    """What the two passes kept, best first: P1 by similarity, P2 by S_final."""

    first: tuple[ContextCandidate, ...]
    second: tuple[ProjectedCandidate, ...]
    fallen: tuple[StepDrop, ...]
    weighing: CandidateWeights


def discover(
    prospects: Collection[ContextCandidate],
    keywords: frozenset[str],
    settings: Settings,
    at: datetime,
    *,
    max_access: int = 0,
) -> Discovery:
    """Return P1 and P2 of `prospects` at the moment `at` (t_ref).

    `max_access` is max_acc over the whole V_rest; a prospect's own count raises it.
    """
    most = max((prospect.unit.access_count for prospect in prospects), default=0)
    weighing = CandidateWeights(settings, keywords, at, max(most, max_access))
    limits = settings.projection
    near, beyond = best(prospects, limits.first, "k1", by=lambda prospect: (prospect.sim,))
    first = tuple(prospect for prospect in near if prospect.sim >= limits.min_similarity)
    far = [
        StepDrop(prospect.unit.id, "θ1", limits.min_similarity, prospect.sim)
        for prospect in near
        if prospect.sim < limits.min_similarity
    ]
    scored = [ProjectedCandidate(prospect, "pass 2", weighing.final(prospect)) for prospect in first]
    second, lower = best(scored, limits.second, "k2", by=lambda one: (one.score,))
    return Discovery(first, second, (*beyond, *far, *lower), weighing)


def hop(
    discovery: Discovery,
    links: Mapping[str, Iterable[str]],
    prospects: Mapping[str, ContextCandidate],
    settings: Settings,
) -> tuple[tuple[ProjectedCandidate, ...], tuple[StepDrop, ...]]:
    """Return C_hop*, best first, and the linked units whose score was too low.

    `links` leads from a unit's id to the ids it names; one that `prospects` does not hold is not followed. Links are
    followed once and from P2 alone, so that a ring of links ends (law 8).
    """
    limits = settings.projection
    taken = {parent.unit.id for parent in discovery.second}
    found: dict[str, ProjectedCandidate] = {}
    for parent in discovery.second:  # best first, so the first parent of a target is its best
        for target in links.get(parent.unit.id, ()):
            if target in prospects and target not in taken:
                share = weight_score("S_hop", "η", limits.hop_share, parent.contributions)
                found.setdefault(target, ProjectedCandidate(prospects[target], f"hop from {parent.unit.id}", share))
    ranked = in_order(found.values())
    kept = tuple(one for one in ranked if one.score >= limits.hop_floor)
    low = [StepDrop(one.unit.id, "θ_hop", limits.hop_floor, one.score) for one in ranked[len(kept) :]]
    return kept, tuple(low)


def grow_limits(settings: ProjectionSettings, variant_budget: int) -> ProjectionSettings:
    """Return settings whose k1 and k2 have grown by one for every `growth` tokens of the variant budget τ_V."""
    extra = max(variant_budget, 0) // settings.growth if settings.growth else 0
    return dataclasses.replace(settings, first=settings.first + extra, second=settings.second + extra)


@dataclass(frozen=True, slots=True)
class TemporalSelection:
    """What the selector did: C_rec, and S* by σ. A question that is not temporal enough leaves both empty."""

    active: bool
    recovered: tuple[ProjectedCandidate, ...] = ()
    chosen: tuple[ProjectedCandidate, ...] = ()
    fallen: tuple[StepDrop, ...] = ()


@dataclass(frozen=True, slots=True)
class SlotCoverage:
    """What S_proj of one question needs to know: ξ, the number of event slots |E|, and the shares."""

    xi: float
    slots: int
    settings: TemporalSettings

    def gain(self, prospect: ContextCandidate, others: Iterable[ContextCandidate]) -> Contribution:
        """Return ΔΦ ∈ [0, 1]: the share of the slots that `prospect` covers and none of `others` does."""
        new = self._covered(prospect).difference(*(self._covered(other) for other in others))
        return Contribution.of(
            "ΔΦ",
            "ratio",
            Contribution("newly covered slots", float(len(new))),
            Contribution("slots", float(max(self.slots, 1))),
        )

    def value(self, one: ProjectedCandidate, taken: set[int]) -> float:
        """Return S_proj when the slots `taken` are covered: the arithmetic of `projected`, without its tree."""
        relevance, anchors, coverage = self.settings.shares
        gain = len(self._covered(one.prospect) - taken) / float(max(self.slots, 1))
        mix = relevance * one.score + anchors * one.prospect.anchor_density + coverage * gain
        return min((1.0 - self.xi) * one.score + self.xi * min(mix, 1.0), 1.0)

    def slots_of(self, picks: Iterable[ProjectedCandidate]) -> set[int]:
        """Return the slots that some picks cover together."""
        return set[int]().union(*(self._covered(one.prospect) for one in picks))

    def _covered(self, prospect: ContextCandidate) -> set[int]:
        return {place for place, covers in enumerate(prospect.slots[: self.slots]) if covers}

    def projected(self, one: ProjectedCandidate, others: Iterable[ProjectedCandidate]) -> ProjectedCandidate:
        """Return `one` with S_proj ∈ [0, 1] in the company of `others`; it must come in with S_final."""
        relevance, anchors, coverage = self.settings.shares
        final, prospect = one.contributions, one.prospect
        mix = Contribution.of(
            "coverage mix",
            "sum",
            weight_score("relevance", "μ", relevance, final),
            weight_score("anchors", "ν", anchors, Contribution("A", prospect.anchor_density)),
            weight_score("coverage", "ρ", coverage, self.gain(prospect, (other.prospect for other in others))),
        )
        blend = Contribution.of(
            "blend",
            "sum",
            weight_score("plain", "1 - ξ", 1.0 - self.xi, final),
            weight_score("temporal", "ξ", self.xi, cap_score("S_cov", mix)),
        )
        return ProjectedCandidate(prospect, one.via, cap_score("S_proj", blend))


def select(
    discovery: Discovery, prospects: Collection[ContextCandidate], xi: float, slots: int, settings: TemporalSettings
) -> TemporalSelection:
    """Return S*, the units that cover the question's events together, when the question is temporal enough.

    `prospects` is V_rest as the strategies found it, `slots` is |E|.
    """
    if not settings.enabled or xi < settings.activation:
        return TemporalSelection(active=False)
    recovered, left_out = _recover(discovery, prospects, settings)
    coverage = SlotCoverage(xi, slots, settings)
    members = [ProjectedCandidate(one.prospect, "temporal", one.contributions) for one in discovery.second]
    pool = (*members, *recovered)
    picks, passed_over = pick_covering(pool, coverage)
    picked = {one.unit.id for one in picks}
    chosen = [one for one in pool if one.unit.id in picked]
    # C13: each is scored in the company of all the others, whatever the order in which they were picked.
    scored = [coverage.projected(one, [other for other in chosen if other is not one]) for one in chosen]
    return TemporalSelection(
        active=True, recovered=recovered, chosen=in_order(scored), fallen=(*left_out, *passed_over)
    )


def _recover(
    discovery: Discovery, prospects: Collection[ContextCandidate], settings: TemporalSettings
) -> tuple[tuple[ProjectedCandidate, ...], tuple[StepDrop, ...]]:
    """Return C_rec with S_final: the anchor-rich units outside P2, by (A, sim, id)."""
    taken = {one.unit.id for one in discovery.second}
    eligible: list[ContextCandidate] = []
    fallen: list[StepDrop] = []
    for prospect in sorted(prospects, key=lambda one: one.unit.id):
        unit_id, density = prospect.unit.id, prospect.anchor_density
        if unit_id in taken:
            continue
        if prospect.sim < settings.recovery_similarity:
            fallen.append(StepDrop(unit_id, "θ_rec", settings.recovery_similarity, prospect.sim))
        elif settings.anchors_required and density <= 0.0:
            fallen.append(StepDrop(unit_id, "anchors", _ONE_ANCHOR, density))
        else:
            eligible.append(prospect)
    kept, beyond = best(eligible, settings.recovered, "k_rec", by=lambda one: (one.anchor_density, one.sim))
    recovered = tuple(ProjectedCandidate(one, "temporal, recovered", discovery.weighing.final(one)) for one in kept)
    return recovered, (*fallen, *beyond)


def pick_covering(
    pool: Sequence[ProjectedCandidate], coverage: SlotCoverage
) -> tuple[tuple[ProjectedCandidate, ...], tuple[StepDrop, ...]]:
    """Return up to k_cov members of the pool, each the best by S_proj given those before it, and who lost where.

    A pick carries the S_proj it was picked with.
    """
    settings = coverage.settings
    picks: tuple[ProjectedCandidate, ...] = ()
    scores: dict[str, float] = {}
    left = {one.unit.id: one for one in pool}
    while left and len(picks) < settings.picks:
        taken = coverage.slots_of(picks)
        values = {unit_id: coverage.value(one, taken) for unit_id, one in left.items()}
        scores = dict(sorted(values.items(), key=lambda pair: (-pair[1], pair[0])))
        first = next(iter(scores))
        if scores[first] < settings.stop:
            return picks, tuple(
                StepDrop(unit_id, "θ_stop", settings.stop, score) for unit_id, score in scores.items()
            )
        picks = (*picks, coverage.projected(left.pop(first), picks))
        del scores[first]
    return picks, tuple(StepDrop(unit_id, "k_cov", picks[-1].score, score) for unit_id, score in scores.items())


def slot_covered(slot_terms: frozenset[str], unit_terms: frozenset[str]) -> bool:
    """Return φ without a dense strategy: at least half of the slot's terms occur in the unit."""
    return bool(slot_terms) and 2 * len(slot_terms & unit_terms) >= len(slot_terms)


# ------------------------------------------------------------------------------------------------ small tools


def in_order(found: Iterable[ProjectedCandidate]) -> tuple[ProjectedCandidate, ...]:
    """Return what was found by score, best first, ties by id."""
    return tuple(sorted(found, key=lambda one: (-one.score, one.unit.id)))


def best(
    ranked: Iterable[T], most: int, step: ProjectionStep, by: Callable[[T], Sequence[float]]
) -> tuple[tuple[T, ...], tuple[StepDrop, ...]]:
    """Return the first `most` by the measures `by`, higher is better, ties by id; and those that fell behind them.

    What a fallen one needed, and had, is its first measure.
    """
    order = sorted(ranked, key=lambda one: (*(-measure for measure in by(one)), one.unit.id))
    kept, rest = tuple(order[:most]), order[most:]
    return kept, tuple(StepDrop(one.unit.id, step, by(kept[-1])[0], by(one)[0]) for one in rest)


def weight_score(name: str, weight_name: str, weight: float, node: Contribution) -> Contribution:
    """Return weight × node."""
    return Contribution.of(name, "product", Contribution(weight_name, weight), node)


def cap_score(name: str, node: Contribution) -> Contribution:
    """Return min(node, 1): the shares of a mix may add up to a hair more than 1 (law 5: clamped last)."""
    return Contribution.of(name, "minimum", node, _CEILING)
