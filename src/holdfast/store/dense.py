"""The dense part of a shard: vectors as small whole numbers, and the funnel that proposes from them (C10).

What is held here only proposes; scores come from the stored vectors. Rows follow the shard's places: a unit that
changes gets a new row, and the old one is dead.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.kernels import topk, vectors
from holdfast.store.column import Column

# The tiers of C10 below the full vector.
TIERS = (64, 256)
# How many a tier hands to the next: a share of the store, and never fewer than this. Measured for MiniLM, whose first
# dimensions carry little by themselves: recall@10 of .996 against exact search at 5 % or 1,000.
_FUNNEL_SHARE = 0.05
_FUNNEL_LEAST = 1000
_SECOND_SHARE = 0.01
_SECOND_LEAST = 300
# Whole numbers round a cosine by about .0006; the cut keeps whatever might really lie above it.
_ROUNDING = 0.004
_DEAD = -1


class DenseBlock:
    """The vectors of one shard in one embedding space."""

    def __init__(self, dims: int) -> None:
        self.dims = dims
        self.places = Column(np.int32)
        self._row_of_place: dict[int, int] = {}
        self._rows = Column(np.int8, dims)
        self._scales = {tier: Column(np.float32) for tier in self.tiers}
        # The first tier is read whole for every question: kept as floats, so that no time goes into conversion.
        self._first = Column(np.float32, self.tiers[0])

    @property
    def tiers(self) -> tuple[int, ...]:
        """Return the tiers from coarse to full; one that is not smaller than the vector is the full tier."""
        return (*(tier for tier in TIERS if tier < self.dims), self.dims)

    def add(self, places: NDArray[np.int32], matrix: NDArray[np.float32]) -> None:
        """Add the vectors of some places; a vector that a place had before is dead."""
        for row, place in enumerate(places.tolist(), start=len(self.places.values)):
            before = self._row_of_place.get(place)
            if before is not None:
                self.places.values[before] = _DEAD
            self._row_of_place[place] = row
        self.places.extend(places)
        whole = vectors.quantise(matrix)
        self._rows.extend(whole)
        self._first.extend(whole[:, : self.tiers[0]])
        for tier, column in self._scales.items():
            column.extend(vectors.inverse_lengths(whole, tier))

    def renumber(self, alive: NDArray[np.bool_]) -> None:
        """Follow the shard: dead places leave, the others move up."""
        places = self.places.values
        kept = (places >= 0) & alive[np.maximum(places, 0)]
        moved = (np.cumsum(alive) - 1).astype(np.int32)[places[kept]]
        for column in (self.places, self._rows, self._first, *self._scales.values()):
            column.keep(kept)
        self.places.values[:] = moved
        self._row_of_place = {int(place): row for row, place in enumerate(moved)}

    def to_arrays(self) -> dict[str, NDArray[np.generic]]:
        """Return the living rows as arrays."""
        kept = self.places.values >= 0
        scales = {f"scales {tier}": column.values[kept] for tier, column in self._scales.items()}
        return {"places": self.places.values[kept], "rows": self._rows.values[kept], **scales}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> DenseBlock:
        """Read what `to_arrays` gave."""
        block = cls(arrays["rows"].shape[1])
        block.places.replace(arrays["places"])
        block._rows.replace(arrays["rows"])
        block._first.replace(arrays["rows"][:, : block.tiers[0]].astype(np.float32))
        for tier, column in block._scales.items():
            column.replace(arrays[f"scales {tier}"])
        block._row_of_place = {int(place): row for row, place in enumerate(arrays["places"])}
        return block

    def propose(
        self, query: NDArray[np.float32], eligible: NDArray[np.bool_], depth: int, tier: int | None
    ) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
        """Return places that may be among the `depth` nearest, and their approximate cosines."""
        whole = vectors.quantise(query)
        places = self.places.values
        rows = np.flatnonzero((places >= 0) & eligible[np.maximum(places, 0)])
        steps = self.tiers if tier is None else (min(tier, self.dims),)
        searched = len(rows)
        scores = np.zeros(len(rows), dtype=np.float32)
        for step in steps:
            scores = self._scores(rows, whole, step)
            if step == steps[-1]:
                best = topk.at_least_top(scores, depth, _ROUNDING)
            else:
                best = topk.at_least_top(scores, self._width(step, depth, searched))
            rows, scores = rows[best], scores[best]
        return places[rows].astype(np.intp), scores.astype(np.float64)

    def _scores(self, rows: NDArray[np.intp], query: NDArray[np.int8], tier: int) -> NDArray[np.float32]:
        source = self._first.values if tier == self.tiers[0] else self._rows.values[:, :tier]
        scales = self._scales[tier].values
        if len(rows) < len(source):
            source, scales = source[rows], scales[rows]
        lengths: NDArray[np.float32] = vectors.inverse_lengths(query[None, :], tier)
        return vectors.approximate(source, scales, query, tier) * lengths

    def _width(self, tier: int, depth: int, searched: int) -> int:
        """Return how many of the rows that are searched a tier hands on."""
        first = tier == self.tiers[0]
        share, least = (_FUNNEL_SHARE, _FUNNEL_LEAST) if first else (_SECOND_SHARE, _SECOND_LEAST)
        return max(int(share * searched), least, 3 * depth)
