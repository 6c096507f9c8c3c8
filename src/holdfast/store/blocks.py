"""What a shard holds besides postings: columns that grow, vectors (C10), and a cache of hypervectors (C5).

Vectors are small whole numbers, and only propose, through the funnel; scores come from the stored vectors.
Hypervectors are keyed by id and by content: a unit whose words changed misses, and is encoded again. A shard has one
owner, so the cache is never shared across tenants. Role and act vectors are shared by all units that have the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.kernels import hypervectors as hv
from holdfast.kernels import vectors
from holdfast.kernels.vectors import at_least_top
from holdfast.store.contract import HYPER_FIELDS, MISSING_FIELD, HyperQuery, UnitHypervectors
from holdfast.types import Act, Role

_FIRST_ROOM = 16


class Column:
    """One value, or one row of `width` values, for each place."""

    def __init__(self, dtype: object, width: int = 0) -> None:
        self._shape = (width,) if width else ()
        self._data: NDArray[Any] = np.zeros((_FIRST_ROOM, *self._shape), dtype=dtype)  # type: ignore[call-overload]
        self._size = 0

    def append(self, value: object) -> None:
        """Add one row."""
        if self._size == len(self._data):
            self._grow(2 * self._size)
        self._data[self._size] = value
        self._size += 1

    def extend(self, rows: NDArray[Any]) -> None:
        """Add many rows."""
        needed = self._size + len(rows)
        if needed > len(self._data):
            self._grow(max(needed, 2 * self._size))
        self._data[self._size : needed] = rows
        self._size = needed

    def _grow(self, room: int) -> None:
        grown = np.zeros((room, *self._shape), dtype=self._data.dtype)
        grown[: self._size] = self._data[: self._size]
        self._data = grown

    @property
    def values(self) -> NDArray[Any]:
        """Return the rows written so far, as a view."""
        written: NDArray[Any] = self._data[: self._size]
        return written

    def keep(self, mask: NDArray[np.bool_]) -> None:
        """Drop the rows that `mask` does not name."""
        kept = self._data[: self._size][mask]
        self._data, self._size = (kept if len(kept) else self._data[:_FIRST_ROOM]), len(kept)

    def replace(self, rows: NDArray[Any]) -> None:
        """Hold these rows and nothing else."""
        self._data, self._size = np.array(rows), len(rows)


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
_NO_VECTOR = -1
# How many numbers are multiplied at once. Above it OpenBLAS starts threads, which wait for each other where other
# work is running; below it the rows stay in the cache, too.
_MULTIPLIED_TOGETHER = 1 << 18


class DenseBlock:
    """The vectors of one shard in one embedding space: a row for each place, empty where there is no vector."""

    def __init__(self, dims: int) -> None:
        self.dims = dims
        self._checksums = Column(np.int64)  # of the stored vector, to see whether it is another one by now
        self._rows = Column(np.int8, dims)
        self._scales = {tier: Column(np.float32) for tier in self.tiers}
        # The first tier is read whole for every question: kept as floats, so that no time goes into conversion.
        self._first = Column(np.float32, self.tiers[0])

    @property
    def tiers(self) -> tuple[int, ...]:
        """Return the tiers from coarse to full; one that is not smaller than the vector is the full tier."""
        return (*(tier for tier in TIERS if tier < self.dims), self.dims)

    def holds(self, place: int, checksum: int) -> bool:
        """Return whether a place has just that vector."""
        sums = self._checksums.values
        return place < len(sums) and int(sums[place]) == checksum

    def checksums(self, places: NDArray[np.intp]) -> list[int | None]:
        """Return the checksum of the vector of each place; None where there is none."""
        known, held = np.full(len(places), _NO_VECTOR), places < len(self._checksums.values)
        known[held] = self._checksums.values[places[held]]
        return [None if one == _NO_VECTOR else one for one in known.tolist()]

    def add(self, places: NDArray[np.int32], matrix: NDArray[np.float32], checksums: Sequence[int] | int = 0) -> None:
        """Set the vectors of some places."""
        if (missing := int(places.max(initial=-1)) + 1 - len(self._checksums.values)) > 0:
            self._checksums.extend(np.full(missing, _NO_VECTOR))
            self._rows.extend(np.zeros((missing, self.dims), dtype=np.int8))
            self._first.extend(np.zeros((missing, self.tiers[0]), dtype=np.float32))
            for column in self._scales.values():
                column.extend(np.zeros(missing, dtype=np.float32))
        whole = vectors.quantise(matrix)
        self._checksums.values[places] = checksums
        self._rows.values[places] = whole
        self._first.values[places] = whole[:, : self.tiers[0]]
        for tier, column in self._scales.items():
            column.values[places] = vectors.inverse_lengths(whole, tier)

    def drop(self, place: int) -> None:
        """Let a place have no vector; most have none to lose."""
        if place < len(self._checksums.values):
            self._checksums.values[place] = _NO_VECTOR

    def renumber(self, alive: NDArray[np.bool_]) -> None:
        """Follow the shard: dead places leave, the others move up."""
        for column in (self._checksums, self._rows, self._first, *self._scales.values()):
            column.keep(alive[: len(column.values)])

    def to_arrays(self) -> dict[str, NDArray[np.generic]]:
        """Return the rows as arrays."""
        scales = {f"scales {tier}": column.values for tier, column in self._scales.items()}
        return {"checksums": self._checksums.values, "rows": self._rows.values, **scales}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> DenseBlock:
        """Read what `to_arrays` gave."""
        block = cls(arrays["rows"].shape[1])
        block._checksums.replace(arrays["checksums"])
        block._rows.replace(arrays["rows"])
        block._first.replace(arrays["rows"][:, : block.tiers[0]].astype(np.float32))
        for tier, column in block._scales.items():
            column.replace(arrays[f"scales {tier}"])
        return block

    def propose(
        self, query: NDArray[np.float32], eligible: NDArray[np.bool_], depth: int, tier: int | None
    ) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
        """Return places that may be among the `depth` nearest, and their approximate cosines."""
        rows = self._living(eligible)
        return self._narrow(vectors.quantise(query), rows, depth, tier)

    def propose_all(
        self, queries: NDArray[np.float32], masks: Sequence[NDArray[np.bool_]], depths: Sequence[int],
        least: Sequence[float],
    ) -> list[list[NDArray[np.intp]]]:  # fmt: skip
        """Return, for each mask and each query, what `propose` would, but nothing whose cosine is below `least`.

        A tier is one product of all queries with every row that any of them has left, under any mask.
        """
        products = _Products(vectors.quantise(queries), np.arange(len(self._rows.values)))
        found = [[self._living(mask)] * len(queries) for mask in masks]
        searched = [len(rows[0]) if rows else 0 for rows in found]
        for tier in self.tiers:
            is_last = tier == self.tiers[-1]
            sizes = zip(depths, searched, strict=True)
            widths = [depth if is_last else self._width(tier, depth, count) for depth, count in sizes]
            cut = [len(rows) > width for near, width in zip(found, widths, strict=True) for rows in near]
            if not is_last and not any(cut):
                continue
            several = {id(rows): rows for near in found for rows in near}  # at first all queries have the same rows
            products = products.narrow([*several.values()])
            products = products.extend(self._first.values, self._rows.values, tier)
            scores, column_of = products.cosines(self._scales[tier].values), products.columns()
            columns = {name: column_of[rows] for name, rows in several.items()}
            margin = _ROUNDING if is_last else vectors.TIE_MARGIN
            found = [
                [
                    rows[_take_top(line.take(columns[id(rows)]), width, margin, bar if is_last else -1.0)]
                    for rows, line in zip(near, scores, strict=True)
                ]
                for near, width, bar in zip(found, widths, least, strict=True)
            ]
        return found

    def _living(self, eligible: NDArray[np.bool_]) -> NDArray[np.intp]:
        held = self._checksums.values != _NO_VECTOR
        return np.flatnonzero(held & eligible[: len(held)])

    def _narrow(
        self, query: NDArray[np.int8], rows: NDArray[np.intp], depth: int, tier: int | None
    ) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
        """Let every tier hand on its best rows."""
        steps = self.tiers if tier is None else (min(tier, self.dims),)
        searched = len(rows)
        scores = np.zeros(len(rows), dtype=np.float32)
        for step in steps:
            scores = self._scores(rows, query, step)
            if step == steps[-1]:
                best = at_least_top(scores, depth, _ROUNDING)
            elif (width := self._width(step, depth, searched)) >= len(rows):
                continue
            else:
                best = at_least_top(scores, width)
            rows, scores = rows[best], scores[best]
        return rows, scores.astype(np.float64)

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


def _take_top(scores: NDArray[np.float32], most: int, margin: float, least: float) -> NDArray[np.intp]:
    best = at_least_top(scores, most, margin)
    return best if least <= -1.0 else best[scores[best] >= least]


@dataclass(frozen=True, slots=True)
class _Products:
    """Exact products of some rows of a block with quantised queries, over the dimensions that were added so far.

    Whole numbers: a tier adds the dimensions that the one before has left out, and the sum is that of the whole tier.
    """

    queries: NDArray[np.int8]
    rows: NDArray[np.intp]  # ascending
    dims: int = 0
    sums: NDArray[Any] | None = None  # rows × queries

    def narrow(self, parts: Sequence[NDArray[np.intp]]) -> _Products:
        """Keep the rows that any of the parts has."""
        wanted = np.zeros(self._room, dtype=np.bool_)
        for rows in parts:
            wanted[rows] = True
        kept = wanted[self.rows]
        if kept.all():
            return self
        return replace(self, rows=self.rows[kept], sums=None if self.sums is None else self.sums[kept])

    def extend(self, first: NDArray[np.float32], whole: NDArray[np.int8], dims: int) -> _Products:
        """Add the dimensions up to `dims` of a block; `first` are those of its first tier as floats."""
        exact = np.float32 if dims <= vectors.EXACT_DIMS else np.float64
        factors = np.ascontiguousarray(self.queries[:, self.dims : dims].T, dtype=exact)
        source = first if dims == first.shape[1] else whole[:, self.dims : dims]
        sums = np.empty((len(self.rows), len(self.queries)), dtype=exact)
        step = max(1, _MULTIPLIED_TOGETHER // max(1, factors.size))
        for start in range(0, len(sums), step):
            some = slice(start, start + step)
            rows = source[some if len(sums) == len(source) else self.rows[some]]
            np.matmul(rows.astype(exact, copy=False), factors, out=sums[some])
        if self.sums is not None:
            sums += self.sums
        return replace(self, dims=dims, sums=sums)

    def cosines(self, scales: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return queries × rows approximate cosines: bit for bit those of one query alone."""
        assert self.sums is not None  # noqa: S101 - only asked after `extend`
        scores = (np.ascontiguousarray(self.sums.T) * scales[self.rows]).astype(np.float32, copy=False)
        scores *= vectors.inverse_lengths(self.queries, self.dims)[:, None]
        return scores

    def columns(self) -> NDArray[np.intp]:
        """Return the column of each row, by row."""
        columns = np.empty(self._room, dtype=np.intp)
        columns[self.rows] = np.arange(len(self.rows))
        return columns

    @property
    def _room(self) -> int:
        return int(self.rows[-1]) + 1 if len(self.rows) else 0


_NO_ROW = -1
# When this share of the rows is dead, they leave; a handful is not worth the move.
_DEAD_SHARE = 0.5
_FEW = 16


class HyperCache:
    """Hypervectors of units, by id and content."""

    def __init__(self) -> None:
        self._entries: dict[str, tuple[int, int]] = {}
        self._texts = {"topic": Column(np.uint64, hv.WORDS), "claim": Column(np.uint64, hv.WORDS)}
        self._rows = {"topic": Column(np.int32), "claim": Column(np.int32)}
        self._roles: list[Role] = []
        self._acts: list[tuple[Act, ...]] = []

    def missing(self, contents: Sequence[tuple[str, int]]) -> list[str]:
        """Return the ids of (id, content) pairs that are not here as they are."""
        return [unit_id for unit_id, content in contents if self._entries.get(unit_id, (None, 0))[0] != content]

    def add(self, unit_id: str, content: int, vectors: UnitHypervectors) -> None:
        """Keep the vectors of one unit."""
        if len(self._roles) * _DEAD_SHARE > len(self._entries) + _FEW:
            self._compact()
        self._entries[unit_id] = (content, len(self._roles))
        for name, vector in (("topic", vectors.topic), ("claim", vectors.claim)):
            self._rows[name].append(_NO_ROW if vector is None else len(self._texts[name].values))
            if vector is not None:
                self._texts[name].append(vector)
        self._roles.append(vectors.role)
        self._acts.append(vectors.acts)

    def invalidate(self, unit_id: str) -> None:
        """Forget one unit; unknown ids are fine."""
        self._entries.pop(unit_id, None)

    def invalidate_all(self) -> None:
        """Forget everything."""
        HyperCache.__init__(self)

    def _compact(self) -> None:
        """Keep the rows that an id still points to, and only those."""
        living = [(unit_id, content, self._vectors(row)) for unit_id, (content, row) in self._entries.items()]
        self.invalidate_all()
        for unit_id, content, encoded in living:
            self.add(unit_id, content, encoded)

    def _vectors(self, row: int) -> UnitHypervectors:
        at = {name: int(rows.values[row]) for name, rows in self._rows.items()}
        texts = {name: None if at[name] == _NO_ROW else self._texts[name].values[at[name]].copy() for name in at}
        return UnitHypervectors(texts["topic"], texts["claim"], self._roles[row], self._acts[row])

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, unit_id: object) -> bool:
        return unit_id in self._entries

    def distances(self, query: HyperQuery, ids: Sequence[str]) -> NDArray[np.int64]:
        """Return ids × `HYPER_FIELDS` distances; a field that is missing on either side is `MISSING_FIELD`."""
        rows = np.array([self._entries[unit_id][1] for unit_id in ids], dtype=np.intp)
        found = np.full((len(ids), len(HYPER_FIELDS)), MISSING_FIELD, dtype=np.int64)
        for column, name in enumerate(("topic", "claim")):
            at = self._rows[name].values[rows]
            present = at != _NO_ROW
            if query.text is not None and present.any():
                found[present, column] = hv.hamming(self._texts[name].values[at[present]], query.text)
        places = rows.tolist()
        if query.role is not None:
            wanted = query.role
            roles = {role: int(hv.hamming(hv.random(role)[None, :], wanted)[0]) for role in set(self._roles)}
            found[:, 2] = [roles[self._roles[row]] for row in places]
        if query.act is not None:
            bags = {acts: hv.bag(acts) for acts in set(self._acts) if acts}
            near = {
                acts: int(hv.hamming(bag[None, :], query.act)[0]) for acts, bag in bags.items() if bag is not None
            }
            found[:, 3] = [near.get(self._acts[row], MISSING_FIELD) for row in places]
        return found
