"""The projection: what a question may bring into a context (C11, C12, C13), and where the rest fell out."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from holdfast.types.explanation import Contribution
from holdfast.types.units import Unit


@dataclass(frozen=True, slots=True)
class Indicator:
    """How temporal a question is: ξ ∈ [0, 1], and the groups of patterns that say so."""

    value: float
    groups: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Prospect:
    """A unit of V_rest as projection sees it.

    `sim` is its relevance, `terms` what keywords are looked up in, `slots` says of each event slot whether the unit
    covers it (φ). A set of prospects holds a unit once.
    """

    unit: Unit
    sim: float
    terms: frozenset[str]
    anchor_density: float
    slots: tuple[bool, ...] = ()


@dataclass(frozen=True, slots=True)
class Projected:
    """A prospect that a step took in: how it came in, and the tree of the score it has there."""

    prospect: Prospect
    via: str
    contributions: Contribution

    @property
    def unit(self) -> Unit:
        """Return the unit."""
        return self.prospect.unit

    @property
    def score(self) -> float:
        """Return σ ∈ [0, 1]."""
        return self.contributions.value


# In the order of the pipeline. k1, θ1, k2: passes 1 and 2. θ_hop: hops. The others: temporal selection.
Step = Literal["k1", "θ1", "k2", "θ_hop", "θ_rec", "anchors", "k_rec", "k_cov", "θ_stop"]


@dataclass(frozen=True, slots=True)
class Fallen:
    """A unit that a step left out: what it needed there, and what it had, in that step's own measure.

    A unit that had exactly enough lost a tie by its id. One that fell may still have come in by another way.
    """

    unit_id: str
    step: Step
    needed: float
    had: float


@dataclass(frozen=True, slots=True)
class Asked:
    """What projection needs to know of the question: K, t_ref, ξ, E, and max_acc over V_rest."""

    keywords: frozenset[str]
    at: datetime
    indicator: Indicator
    slots: tuple[str, ...] = ()
    max_access: int = 0


@dataclass(frozen=True, slots=True)
class Projection:
    """What is projected, in injection order, and what every step kept and left out."""

    items: tuple[Projected, ...]
    asked: Asked
    active: bool
    first: tuple[str, ...]
    second: tuple[Projected, ...]
    hops: tuple[Projected, ...]
    recovered: tuple[Projected, ...]
    chosen: tuple[Projected, ...]
    fallen: tuple[Fallen, ...]

    def falls(self, unit_id: str) -> tuple[Fallen, ...]:
        """Return where one unit fell out, in the order of the steps."""
        return tuple(fall for fall in self.fallen if fall.unit_id == unit_id)
