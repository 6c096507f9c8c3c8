"""The hyperdimensional part of a shard (C5): a cache of unit vectors, filled when it is first asked for.

Keyed by id and by content: a unit whose words changed misses, and is encoded again. A shard has one owner, so the
cache is never shared across tenants. Role and act vectors are shared by all units that have the same.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from holdfast.kernels import hypervectors as hv
from holdfast.store.column import Column
from holdfast.store.contract import HYPER_FIELDS, MISSING_FIELD, HyperQuery, UnitHypervectors
from holdfast.types import Act, Role

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
        for unit_id, content, vectors in living:
            self.add(unit_id, content, vectors)

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
