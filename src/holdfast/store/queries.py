"""What a store is asked for candidates, and the evidence behind their scores (C4, C5, C10)."""

from __future__ import annotations

from datetime import datetime
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from holdfast.kernels import bm25
from holdfast.kernels.hypervectors import Hypervector
from holdfast.types import Act, Kind, Role
from holdfast.values import dataclass

Order = Literal["newest", "oldest"]


@dataclass(frozen=True, slots=True)
class LexicalQuery:
    """What a store needs to propose lexical candidates (C4). `weights` are in `FIELDS` order."""

    terms: tuple[str, ...]
    weights: tuple[float, ...]
    k1: float
    b: float
    boosted_roles: frozenset[Role]
    role_boost: float


@dataclass(frozen=True, slots=True)
class Proposal:
    """Units that may be among the best, unordered; `exhausted` when time ran out before all terms were seen."""

    ids: tuple[str, ...]
    exhausted: bool = False


@dataclass(frozen=True)
class LexicalEvidence:
    """The exact integers of C4 for some units and terms.

    `tf` is units × fields × terms, `lengths` is units × fields. `unit_count`, `df` and `field_totals` cover the
    owner this call may see, whatever its filters.
    """

    ids: tuple[str, ...]
    roles: tuple[Role, ...]
    tf: NDArray[np.int64]
    lengths: NDArray[np.int64]
    unit_count: int
    df: tuple[int, ...]
    field_totals: tuple[int, ...]

    @cached_property
    def idfs(self) -> NDArray[np.float64]:
        """Return the weight of each term; one that nobody holds counts with df 0."""
        return np.array([bm25.idf(self.unit_count, df) for df in self.df], dtype=np.float64)

    @cached_property
    def coverage(self) -> NDArray[np.float64]:
        """Return, unit by unit, the share of the terms' idf mass that it matches in any field (C4)."""
        total = float(self.idfs.sum())
        covered = np.zeros(len(self.ids), dtype=np.float64)
        for part in np.where(self.matched.T, self.idfs[:, None], 0.0):
            covered += part  # in this order, so that a unit's share is the same in any company
        return covered / total if total > 0.0 else covered

    @cached_property
    def rarities(self) -> NDArray[np.float64]:
        """Return how rare each term is: 1 where a single unit holds it, 0 where every unit does or none."""
        most = bm25.idf(self.unit_count, 1)
        return np.where(np.array(self.df) > 0, np.minimum(self.idfs / most, 1.0), 0.0)

    @cached_property
    def matched(self) -> NDArray[np.bool_]:
        """Return which terms each unit holds in any field: units × terms."""
        found: NDArray[np.bool_] = np.any(self.tf, axis=1)
        return found

    @property
    def averages(self) -> NDArray[np.float64]:
        """Return avgdl per field, over units with an empty field too; 0 for an empty store."""
        count = max(self.unit_count, 1)
        return np.array([total / count for total in self.field_totals], dtype=np.float64)


@dataclass(frozen=True, slots=True)
class DenseQuery:
    """What a store needs to propose by meaning (C10). `tier` asks for one tier's order; all dimensions are exact.

    Without a tier the store may look at few dimensions first, as far as they were measured to carry. `density` asks
    for units of one anchor density alone (C13).
    """

    space: str
    vector: NDArray[np.float32]
    tier: int | None = None
    density: float | None = None


@dataclass(frozen=True, slots=True)
class DenseEvidence:
    """The stored vectors of some units, row by row, in one embedding space: directions, to 11 bits a number."""

    ids: tuple[str, ...]
    vectors: NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class HyperQuery:
    """The hypervectors of a question (C5): its needed roles, its words, its act; None where there is none.

    `weights` are those of `HYPER_FIELDS`, so that a store proposes by the score that will be computed.
    """

    role: Hypervector | None
    text: Hypervector | None
    act: Hypervector | None
    weights: tuple[float, float, float, float] = (0.35, 0.35, 0.2, 0.1)


# The order of the columns of `HyperEvidence.distances`.
HYPER_FIELDS = ("topic", "claim", "role", "acts")
MISSING_FIELD = -1


@dataclass(frozen=True, slots=True)
class HyperEvidence:
    """In how many bits each unit differs from the question by field; `MISSING_FIELD` where one side is empty."""

    ids: tuple[str, ...]
    distances: NDArray[np.int64]
    unit_count: int


@dataclass(frozen=True, slots=True)
class UnitHypervectors:
    """The hypervectors of one unit; those of role and acts are shared by all units that have the same."""

    topic: Hypervector | None
    claim: Hypervector | None
    role: Role
    acts: tuple[Act, ...]


@dataclass(frozen=True, slots=True)
class TimeQuery:
    """Ask for what happened from `start` up to `end`, newest first (C13), or oldest first."""

    start: datetime
    end: datetime
    order: Order = "newest"


@dataclass(frozen=True, slots=True)
class DocumentQuery:
    """Ask for the units of a document: the user's own, else everyone's; with `ended`, past ones too."""

    name: str
    ended: bool = True


@dataclass(frozen=True, slots=True)
class StatementQuery:
    """Ask for the units that state something of these kinds, newest first: `FACTS`, `INSTRUCTIONS` or both."""

    stating: int


@dataclass(frozen=True, slots=True)
class KindQuery:
    """Ask for all units of some kinds, in no order; for none of them when there are more than the depth (C16)."""

    kinds: tuple[Kind, ...]


@dataclass(frozen=True, slots=True)
class SimilarityQuery:
    """Ask how near the user's own turns and durable units are to some vectors (C17).

    Turns below `similar` may be left out of the answer: only those that say the same are counted.
    """

    space: str
    vectors: NDArray[np.float32]
    turns: int
    durable: int
    similar: float = -1.0


@dataclass(frozen=True, slots=True)
class SimilarityEvidence:
    """For each vector the cosines of the nearest turns and of the nearest durable units, best first."""

    turns: tuple[tuple[float, ...], ...]
    durable: tuple[tuple[float, ...], ...]


StoreQuery = LexicalQuery | DenseQuery | HyperQuery | TimeQuery | DocumentQuery | StatementQuery | KindQuery
