"""What a shard holds besides postings: columns that grow, vectors (C10), and a cache of hypervectors (C5).

Vectors are small whole numbers, and only propose; scores come from the stored vectors. All rows are compared by all
dimensions, or first by a few, as far as those were measured to carry (`Funnel`).
Hypervectors are keyed by id and by content: a unit whose words changed misses, and is encoded again. A shard has one
owner, so the cache is never shared across tenants. Role and act vectors are shared by all units that have the same.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.kernels import hypervectors as hv
from holdfast.kernels import vectors
from holdfast.kernels.vectors import ROUNDING, TIERS, at_least_top
from holdfast.store.queries import HYPER_FIELDS, MISSING_FIELD, HyperQuery, UnitHypervectors
from holdfast.types import Act, Role
from holdfast.values import dataclass

_FIRST_ROOM = 16


class Column:
    """One value, or one row of `width` values, for each place."""

    def __init__(self, dtype: object, width: int = 0) -> None:
        self._shape = (width,) if width else ()
        self._data: NDArray[Any] = np.zeros((_FIRST_ROOM, *self._shape), dtype=dtype)  # type: ignore[call-overload]
        self._size = 0
        # Rows that nobody has read yet: many are turned into an array in a tenth of the time that one by one takes.
        self._pending: list[object] = []

    def append(self, value: object) -> None:
        """Add one row."""
        self._pending.append(value)

    def extend(self, rows: NDArray[Any]) -> None:
        """Add many rows."""
        self._settle()
        self._add(rows)

    def _settle(self) -> None:
        if self._pending:
            pending, self._pending = self._pending, []
            self._add(np.array(pending, dtype=self._data.dtype))

    def _add(self, rows: NDArray[Any]) -> None:
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
        self._settle()
        written: NDArray[Any] = self._data[: self._size]
        return written

    def keep(self, mask: NDArray[np.bool_]) -> None:
        """Drop the rows that `mask` does not name."""
        self._settle()
        kept = self._data[: self._size][mask]
        self._data, self._size = (kept if len(kept) else self._data[:_FIRST_ROOM]), len(kept)

    def replace(self, rows: NDArray[Any]) -> None:
        """Hold these rows and nothing else."""
        self._pending.clear()
        self._data, self._size = np.array(rows), len(rows)


TurnPosition = tuple[int, int, int]  # event time, position in its session, place in the shard
_NONE = -1


class TurnOrder:
    """The turns of each session in its order (C1), and so which place is before and after each; dead ones stay."""

    def __init__(self) -> None:
        self._sessions: dict[int, list[TurnPosition]] = {}
        self._beside = (Column(np.int32), Column(np.int32))

    @classmethod
    def of(
        cls, sessions: NDArray[np.int32], events: NDArray[np.int64], positions: NDArray[np.int32],
        places: NDArray[np.intp],
    ) -> TurnOrder:  # fmt: skip
        """Put many turns in order."""
        turns, order = cls(), np.lexsort((places, positions, events, sessions))
        codes, placed = sessions[order].tolist(), places[order]
        for code, *moment in zip(
            codes, events[order].tolist(), positions[order].tolist(), placed.tolist(), strict=True
        ):
            turns._sessions.setdefault(code, []).append(tuple(moment))
        turns._make_room(int(places.max(initial=_NONE)))
        same = sessions[order][1:] == sessions[order][:-1]
        before, after = (column.values for column in turns._beside)
        before[placed[1:][same]], after[placed[:-1][same]] = placed[:-1][same], placed[1:][same]
        return turns

    def _make_room(self, place: int) -> None:
        for column in self._beside:
            column.extend(np.full(max(0, place + 1 - len(column.values)), _NONE, dtype=np.int32))

    def add(self, session: int, moment: TurnPosition) -> None:
        """Put one more turn in its order."""
        order, place = self._sessions.setdefault(session, []), moment[2]
        at = bisect_left(order, moment)
        order.insert(at, moment)
        self._make_room(place)
        before, after = (column.values for column in self._beside)
        if at > 0:
            before[place], after[order[at - 1][2]] = order[at - 1][2], place
        if at + 1 < len(order):
            after[place], before[order[at + 1][2]] = order[at + 1][2], place

    def beside(
        self, places: NDArray[np.intp], eligible: NDArray[np.bool_]
    ) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Return the eligible places right before and right after each place; -1 where there is none."""
        self._make_room(int(places.max(initial=_NONE)))
        before, after = (_skip(column.values, places, eligible) for column in self._beside)
        return before, after


def _skip(links: NDArray[np.int32], places: NDArray[np.intp], eligible: NDArray[np.bool_]) -> NDArray[np.int32]:
    """Follow links from some places to the next eligible one."""
    found = links[places]
    while (hidden := (found != _NONE) & ~eligible[found]).any():
        found[hidden] = links[found[hidden]]
    return found


NO_VECTOR = -1
_FARTHEST = np.iinfo(np.int32).min  # the product of a row that is not searched
# Comparing a row that the first tier hands on takes as long as comparing three in one sweep.
_SWEEP_GAIN = 3
# Of the best by a few dimensions at least so many, for each row that is asked for.
_LEAST_FOR_EACH = 10


@dataclass(frozen=True, slots=True)
class Funnel:
    """How many of `rows` rows the first tier hands on; of more rows as many more as `growth` says."""

    rows: int
    width: int
    growth: float = 1.0

    def width_for(self, searched: int, depth: int) -> int:
        """Return how many are handed on when so many rows are searched for the best `depth`."""
        more: float = max(1.0, searched / self.rows) ** self.growth
        return max(int(self.width * more), _LEAST_FOR_EACH * depth)


CARRIED = Funnel(28_000, 1_000, 0.5)
# What is measured: the share of the exact ten best that is to be kept when stored vectors are the questions. People's
# questions are harder, by a factor of at most 2.4 where .99 was measured with both.
_KEPT_BEST, _KEPT_SHARE, _HARDER = 10, 0.99, 2.5
_LEAST_WIDTH = 500  # fewer save no time, and a sample says little of the rarest questions
_MEASURED_WITH, _MEASURED_TOGETHER = 200, 50


# By question, eligible rows, dimensions and width: which rows were compared, and how near they are.
Compared = dict[tuple[int, int, int, int], tuple[NDArray[np.intp], NDArray[np.float32], object]]


class DenseBlock:
    """The vectors of one shard in one embedding space: a row for each place, empty where there is no vector."""

    def __init__(self, dims: int) -> None:
        self.dims = dims
        self._checksums = Column(np.int64)  # of the stored vector, to see whether it is another one by now
        self._rows = Column(np.int8, dims)
        self._scales = Column(np.float32)
        self._first = Column(np.int8, min(TIERS[0], dims))
        self._held: NDArray[np.bool_] | None = None  # which places have a vector; None after a change

    @property
    def vector_count(self) -> int:
        """Return how many places have a vector."""
        return int(np.count_nonzero(self._checksums.values != NO_VECTOR))

    def holds(self, place: int, checksum: int) -> bool:
        """Return whether a place has just that vector."""
        sums = self._checksums.values
        return place < len(sums) and int(sums[place]) == checksum

    def checksums(self, places: NDArray[np.intp]) -> NDArray[np.int64]:
        """Return the checksum of the vector of each place; `NO_VECTOR` where there is none."""
        known, sums = np.full(len(places), NO_VECTOR), self._checksums.values
        held = places < len(sums)
        known[held] = sums[places[held]]
        return known

    def add(self, places: NDArray[np.int32], matrix: NDArray[np.float32], checksums: Sequence[int] | int = 0) -> None:
        """Set the vectors of some places."""
        if (missing := int(places.max(initial=-1)) + 1 - len(self._checksums.values)) > 0:
            self._checksums.extend(np.full(missing, NO_VECTOR))
            self._scales.extend(np.zeros(missing, dtype=np.float32))
            for column, width in ((self._rows, self.dims), (self._first, min(TIERS[0], self.dims))):
                column.extend(np.zeros((missing, width), dtype=np.int8))
        whole, self._held = vectors.quantise(matrix), None
        self._checksums.values[places] = checksums
        self._rows.values[places] = whole
        self._first.values[places] = vectors.quantise_prefix(whole, TIERS[0])
        self._scales.values[places] = vectors.inverse_lengths(whole, self.dims)

    def drop(self, place: int) -> None:
        """Let a place have no vector; most have none to lose."""
        if place < len(self._checksums.values):
            self._checksums.values[place], self._held = NO_VECTOR, None

    def renumber(self, alive: NDArray[np.bool_]) -> None:
        """Follow the shard: dead places leave, the others move up."""
        self._held = None
        for column in (self._checksums, self._rows, self._first, self._scales):
            column.keep(alive[: len(column.values)])

    def to_arrays(self) -> dict[str, NDArray[np.generic]]:
        """Return the rows as arrays."""
        return {"checksums": self._checksums.values, "rows": self._rows.values, "scales": self._scales.values}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> DenseBlock:
        """Read what `to_arrays` gave."""
        block = cls(arrays["rows"].shape[1])
        block._checksums.replace(arrays["checksums"])
        block._rows.replace(arrays["rows"])
        block._scales.replace(arrays["scales"])
        block._first.replace(vectors.quantise_prefix(arrays["rows"], TIERS[0]))
        return block

    def propose(
        self, query: NDArray[np.float32], eligible: NDArray[np.bool_], depth: int, tier: int | None = None,
        funnel: Funnel | None = None, compared: Compared | None = None,
    ) -> tuple[NDArray[np.intp], NDArray[np.float64]]:  # fmt: skip
        """Return places that may be among the `depth` nearest, and their approximate cosines.

        All rows are compared by all dimensions; or by those of a tier; or those that a funnel hands on. What was
        `compared` for another depth is not compared again.
        """
        living, dims = self._living(eligible), min(tier or self.dims, self.dims)
        searched = int(np.count_nonzero(living))
        width = searched if tier is not None else self._width(funnel, searched, depth)
        number, kept = (id(query), id(eligible), dims, width), {} if compared is None else compared
        if number not in kept:  # with whatever its number is made of, so that nothing else can have it
            kept[number] = (*self._compare(query, living, dims, width), (query, eligible))
        rows, scores, _ = kept[number]
        best = at_least_top(scores, depth, ROUNDING)
        return rows[best], scores[best].astype(np.float64)

    def _compare(
        self, query: NDArray[np.float32], living: NDArray[np.bool_], dims: int, width: int
    ) -> tuple[NDArray[np.intp], NDArray[np.float32]]:
        """Return the rows that the first tier hands on, and their approximate cosines."""
        whole, searched = vectors.quantise(query), int(np.count_nonzero(living))
        rows = np.flatnonzero(living) if width == searched else self._narrow(whole, living, searched, width)
        products = vectors.multiply(self._rows.values[:, :dims], whole[:dims], rows)
        lengths = self._scales.values if dims == self.dims else vectors.inverse_lengths(self._rows.values, dims)
        lengths = lengths if len(rows) == len(lengths) else lengths[rows]
        return rows, vectors.approximate(products, lengths, vectors.inverse_lengths(whole, dims))

    def propose_all(
        self, queries: NDArray[np.float32], masks: Sequence[NDArray[np.bool_]], depths: Sequence[int],
        least: Sequence[float], funnel: Funnel | None = None,
    ) -> list[list[NDArray[np.intp]]]:  # fmt: skip
        """Return, for each mask and each query, what `propose` would, but nothing whose cosine is below `least`."""
        whole, living = vectors.quantise(queries), [self._living(mask) for mask in masks]
        own, near = vectors.inverse_lengths(whole, self.dims), np.flatnonzero(np.logical_or.reduce(living))
        found = [np.flatnonzero(one) for one in living]
        widths = [self._width(funnel, len(some), depth) for some, depth in zip(found, depths, strict=True)]
        narrowed = any(width < len(some) for some, width in zip(found, widths, strict=True))
        asked = vectors.quantise_prefix(whole, TIERS[0]) if narrowed else whole
        products = vectors.multiply_all((self._first if narrowed else self._rows).values, asked, near)
        best: list[list[NDArray[np.intp]]] = [[] for _ in masks]
        for kept, some, width, depth, bar in zip(best, found, widths, depths, least, strict=True):
            columns = slice(None) if len(some) == len(near) else np.searchsorted(near, some)
            for query, line, length in zip(whole, products, own, strict=True):
                rows, scored = some, line[columns]
                if narrowed:
                    rows = some[at_least_top(scored, width, 0)]
                    scored = vectors.multiply(self._rows.values, query, rows)
                scores = vectors.approximate(scored, self._scales.values[rows], length)
                top = at_least_top(scores, depth, ROUNDING)
                kept.append(rows[top[scores[top] >= bar]])
        return best

    def _living(self, eligible: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return which rows are eligible and have a vector."""
        if self._held is None:
            self._held = self._checksums.values != NO_VECTOR
        return self._held & eligible[: len(self._held)]

    def _narrow(
        self, whole: NDArray[np.int8], living: NDArray[np.bool_], searched: int, width: int
    ) -> NDArray[np.intp]:
        """Return the rows that the first tier hands on."""
        query = vectors.quantise_prefix(whole, TIERS[0])
        if 2 * searched <= len(living):
            rows = np.flatnonzero(living)
            return rows[at_least_top(vectors.multiply(self._first.values, query, rows), width, 0)]
        products = vectors.multiply(self._first.values[: len(living)], query)
        if searched < len(living):
            products = np.where(living, products, _FARTHEST)
        return at_least_top(products, width, 0)

    def _width(self, funnel: Funnel | None, searched: int, depth: int) -> int:
        """Return how many of the rows that are searched the first tier hands on: all when that is as fast."""
        if funnel is None or self.dims <= TIERS[0]:
            return searched
        width = funnel.width_for(searched, depth)
        return width if _SWEEP_GAIN * width < searched else searched

    def measure(self, order: NDArray[np.intp], most: int) -> Funnel | None:
        """Return what the first tier has to hand on of the first `most` vectors, with some of them as questions.

        `order` are the living places, in the same order whoever measures; None when they have fewer vectors.
        """
        places = order[order < len(self._checksums.values)]
        places = places[self._checksums.values[places] != NO_VECTOR][:most]
        if len(places) < most:
            return None
        rows, first, scales = (one.values[places] for one in (self._rows, self._first, self._scales))
        asked = np.unique(np.linspace(0, len(places) - 1, _MEASURED_WITH).astype(np.intp))
        ranks = []
        for some in np.array_split(asked, max(1, len(asked) // _MEASURED_TOGETHER)):
            near = vectors.multiply_all(rows, rows[some]) * scales
            by_first = vectors.multiply_all(first, first[some])
            for itself, exact, coarse in zip(some.tolist(), near, by_first, strict=True):
                exact[itself] = coarse[itself] = -np.inf
                best = at_least_top(exact, _KEPT_BEST, 0)
                ranks += [int(np.count_nonzero(coarse > value)) for value in coarse[best].tolist()]
        needed = sorted(ranks)[math.ceil(_KEPT_SHARE * len(ranks)) - 1] + 1
        return Funnel(most, max(_LEAST_WIDTH, int(_HARDER * needed)))


# The same units are found again and again, and reading a vector takes longer than comparing it: 16 MB of them.
_NUMBERS_KEPT = 1 << 22


class VectorCache:
    """Vectors of one embedding space as they were read: each has one row by its key, the last one read keeps it."""

    def __init__(self, space: str | None = None, dims: int = 1) -> None:
        self._space = space
        rows = _NUMBERS_KEPT // dims if space else 1
        self._matrix = np.empty((rows, dims), dtype=np.float32)
        self._keys = np.full(rows, _NONE, dtype=np.int64)
        self._checksums = np.zeros(rows, dtype=np.int64)

    def clear(self) -> None:
        """Forget everything."""
        VectorCache.__init__(self)

    def holds(self, space: str, keys: NDArray[np.int64], checksums: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return which vectors are here, as their checksums say."""
        rows = keys % len(self._keys)
        here: NDArray[np.bool_] = (self._keys[rows] == keys) & (self._checksums[rows] == checksums)
        return here & (space == self._space)

    def take(self, keys: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return vectors that are here."""
        return self._matrix.take(keys % len(self._keys), axis=0)

    def add(
        self, space: str, keys: NDArray[np.int64], checksums: NDArray[np.int64], matrix: NDArray[np.float32]
    ) -> None:
        """Keep what was read."""
        if (space, matrix.shape[1]) != (self._space, self._matrix.shape[1]):
            VectorCache.__init__(self, space, matrix.shape[1])
        rows = keys % len(self._keys)
        self._keys[rows], self._checksums[rows], self._matrix[rows] = keys, checksums, matrix


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
