"""What one view may see of a store's index: shards laid end to end, a row for each place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import repeat
from sqlite3 import Cursor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.kernels import Bools
from holdfast.store.sqlite.shard import Shard
from holdfast.store.visibility import visible_sql
from holdfast.types import AUTHORS, KINDS, SCOPES, View

Places = NDArray[np.intp]
# Which of some rows a shard has, all of them or those at some indices, and their places in it.
Groups = Sequence[tuple[Shard, Places | slice, Places]]
NOWHERE = -1
# Columns that a shard holds as numbers for words: of a fixed list, or (None) of the shard's own names.
CODED: dict[str, NDArray[Any] | None] = {
    "author": np.array(AUTHORS, dtype=object),
    "kind": np.array(KINDS, dtype=object),
    "scope": np.array(SCOPES, dtype=object),
    "speaker": None,
    "session": None,
}
NUMBERS: dict[str, type] = {
    "event_time": np.int64, "length": np.int64, "said": np.int64, "stating": np.int64, "anchor_density": np.float64,
}  # fmt: skip


class VisibleShards:
    """The shards of one view in one state, each read when it is first asked for."""

    def __init__(self, view: View, run: Callable[..., Cursor], find: Callable[[View], list[Shard]]) -> None:
        self._view, self._run, self._find = view, run, find
        self._df: dict[str, int] = {}
        # By the identity of a tuple, which is kept so that no other one can have it.
        self._located: dict[tuple[int, bool], tuple[tuple[str, ...], Places]] = {}

    @cached_property
    def shards(self) -> list[Shard]:
        """Return what the view may see: earlier versions for a read of the past, the user's own, the global one."""
        return self._find(self._view)

    @cached_property
    def _offsets(self) -> NDArray[np.intp]:
        """Return the row at which each shard begins, when they are laid end to end."""
        sizes = [len(shard.keys) for shard in self.shards]
        return np.concatenate([[0], np.cumsum(sizes)]).astype(np.intp)

    @cached_property
    def _alone(self) -> Shard | None:
        """Return the only shard that has units, when it shows them all: most memories have just one."""
        filled = [shard for shard in self.shards if shard.keys]
        alone = len(filled) == 1 and filled[0].past is None and self._seen is None
        return filled[0] if alone else None

    @cached_property
    def present(self) -> list[Shard]:
        """Return the shards that statistics are taken from: those of the present, also for a read of the past."""
        return [shard for shard in self.shards if shard.past is None]

    @cached_property
    def _seen(self) -> list[Bools] | None:
        """Return which places of each shard the named agent may see, or None when no agent is named."""
        return None if self._view.agent is None else [shard.seen_by(self._view.agent) for shard in self.shards]

    @cached_property
    def _allowed(self) -> frozenset[int] | None:
        """Return the keys that pass the view's filters, or None when it has none."""
        if self._view.filters is None and self._view.as_of is None:
            return None
        visible, values = visible_sql(self._view, searching=True)
        return frozenset(key for (key,) in self._run("matching_keys", values, visible=visible))

    @cached_property
    def eligible(self) -> list[Bools]:
        """Return which places of each shard the view may see; a user's own unit hides a global one of the same id."""
        masks = [shard.eligible(self._view, self._allowed) for shard in self.shards]
        for i, shard in enumerate(self.shards):
            for own in self.shards[:i]:
                if twice := own.place_of_id.keys() & shard.place_of_id.keys():
                    hiding = [unit_id for unit_id in twice if own.shows(unit_id, self._view)]
                    masks[i][[shard.place_of_id[unit_id] for unit_id in hiding]] = False
        return masks

    @cached_property
    def totals(self) -> tuple[int, tuple[int, ...]]:
        """Return how many units the owner, or one agent of it, may see, and how many terms each field has."""
        if self._seen is None:  # kept up to date by the shards
            lengths = zip(*(shard.field_totals for shard in self.present), strict=True)
            return sum(shard.unit_count for shard in self.present), tuple(map(sum, lengths))
        pairs = [pair for pair in zip(self.shards, self._seen, strict=True) if pair[0].past is None]
        fields = sum(shard.column("lengths")[mask].sum(axis=0, dtype=np.int64) for shard, mask in pairs)
        return sum(int(np.count_nonzero(mask)) for _, mask in pairs), tuple(int(total) for total in fields)

    def count(self, terms: Sequence[str]) -> tuple[int, ...]:
        """Return df of each term; filters, sessions and moments leave the statistics as they are."""
        for term in terms:
            if term not in self._df:
                seen = self._seen or [shard.column("alive") for shard in self.shards]
                pairs = zip(self.shards, seen, strict=True)
                self._df[term] = sum(shard.df(term, mask) for shard, mask in pairs if shard.past is None)
        return tuple(self._df[term] for term in terms)

    def locate(self, ids: Sequence[str], *, present: bool = False) -> Places:
        """Return the row of each of `ids`: in the first shard that shows it, or of the present; else `NOWHERE`."""
        known = self._located.get((id(ids), present))
        if known is not None:
            return known[1]
        if self._alone is not None:
            rows = _find_places(self._alone, ids)
        else:
            rows = np.full(len(ids), NOWHERE, dtype=np.intp)
            for i in range(len(self.shards) - 1, -1, -1):
                if present and self.shards[i].past is not None:
                    continue
                places = _find_places(self.shards[i], ids)
                here = places != NOWHERE
                if self._seen is not None:
                    here[here] = self._seen[i][places[here]]
                rows[here] = self._offsets[i] + places[here]
        if type(ids) is tuple:  # a list may be another one by the next call
            self._located[id(ids), present] = (ids, rows)
        return rows

    def find_known(self, ids: Sequence[str]) -> tuple[tuple[str, ...], Places]:
        """Return those of `ids` that are somewhere, each once, and their rows."""
        rows = self.locate(ids)
        if NOWHERE in rows or len(set(ids)) < len(ids):
            pairs = {unit_id: row for unit_id, row in zip(ids, rows.tolist(), strict=True) if row != NOWHERE}
            return tuple(pairs), np.array([*pairs.values()], dtype=np.intp)
        return tuple(ids), rows

    def name(self, places: Sequence[Places]) -> tuple[str, ...]:
        """Return the ids of eligible places, shard by shard, where they are found again."""
        named = zip(self.shards, places, strict=True)
        ids = tuple(unit_id for shard, some in named for unit_id in map(shard.ids.__getitem__, some.tolist()))
        rows = [some + offset for some, offset in zip(places, self._offsets.tolist(), strict=False)]
        self._located[id(ids), False] = (ids, np.concatenate(rows))
        return ids

    def group_by_shard(self, rows: Places) -> Groups:
        """Return each shard that has some of `rows`."""
        if self._alone is not None and len(rows) and NOWHERE not in rows:
            return [(self._alone, slice(None), rows)]
        found: list[tuple[Shard, Places | slice, Places]] = []
        for i, shard in enumerate(self.shards):
            mine = np.flatnonzero((rows >= self._offsets[i]) & (rows < self._offsets[i + 1]))
            if len(mine):
                found.append((shard, mine, rows[mine] - self._offsets[i]))
        return found


def _find_places(shard: Shard, ids: Sequence[str]) -> Places:
    return np.fromiter(map(shard.place_of_id.get, ids, repeat(NOWHERE)), np.intp, len(ids))


def read_numbers(groups: Groups, rows: int, name: str) -> NDArray[Any]:
    """Return a column of `NUMBERS` for so many rows."""
    values: NDArray[Any] = np.zeros(rows, dtype=NUMBERS[name])
    for shard, mine, places in groups:
        values[mine] = shard.column(name)[places]
    return values


def read_coded(groups: Groups, rows: int, name: str) -> NDArray[Any]:
    """Return a column of `CODED` for so many rows, in words."""
    values: NDArray[Any] = np.empty(rows, dtype=object)  # of None
    for shard, mine, places in groups:
        codes, words = shard.column(name)[places], CODED[name]
        values[mine] = [*map(shard.name_of_code.__getitem__, codes.tolist())] if words is None else words[codes]
    return values
