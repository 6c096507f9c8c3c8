"""One consistent state of a SQLite store, as one view may see it: a read transaction, and the index that fits it."""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import singledispatchmethod
from itertools import pairwise
from sqlite3 import Cursor
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import DamagedStoreError, quote_value
from holdfast.kernels import Bools, bm25
from holdfast.kernels import hypervectors as hv
from holdfast.kernels.triples import Facts, JoinedFacts
from holdfast.kernels.vectors import ROUNDING, TIE_MARGIN, at_least_top, row_cosines, tier
from holdfast.store.contract import ColumnName, Columns, ListedKind
from holdfast.store.queries import (
    HYPER_FIELDS,
    MISSING_FIELD,
    DenseEvidence,
    DenseQuery,
    DocumentQuery,
    HyperEvidence,
    HyperQuery,
    KindQuery,
    LexicalEvidence,
    LexicalQuery,
    Order,
    Proposal,
    SimilarityEvidence,
    SimilarityQuery,
    StatementQuery,
    TimeQuery,
)
from holdfast.store.rows import (
    CALLED,
    EPOCH,
    GLOBAL,
    NAMING,
    TITLE_CHARS,
    UnitRow,
    listed,
    microseconds,
    read_fitting,
    unit_of,
)
from holdfast.store.sqlite.blocks import NO_VECTOR, Compared
from holdfast.store.sqlite.live_index import LiveIndex
from holdfast.store.sqlite.shard import DURABLE, TURN, Shard
from holdfast.store.sqlite.visible_shards import (
    CODED,
    NOWHERE,
    NUMBERS,
    Groups,
    Places,
    VisibleShards,
    read_coded,
    read_numbers,
)
from holdfast.store.updates import read_stored_all
from holdfast.store.visibility import agent_matches, hidden_reason, state_as_of, visible_sql
from holdfast.types import (
    FIELDS,
    KINDS,
    ROLES,
    Deadline,
    Document,
    NameCount,
    StoredUnit,
    Unit,
    View,
    iso,
)

_EVERYTHING = -1  # SQLite's "no limit"
# Ten times what quantising moves a cosine by: an approximate one that is further below a bar cannot reach it.
_FAR_OFF = 0.05
# What one shard finds: places, their approximate scores, and whether time ran out.
Look = Callable[[Shard, Bools], tuple[Places, NDArray[np.float64], bool]]
_NOTHING = (np.zeros(0, dtype=np.intp), np.zeros(0), False)


class SqliteReading:
    """See `Reading`. The store holds its lock and a read transaction as long as this is used."""

    def __init__(self, view: View, run: Callable[..., Cursor], index: LiveIndex, place: Callable[[], str]) -> None:
        self.view = view
        self._run = run
        self._index = index
        self._place = place  # what tells this store from a copy of it
        self._visible = VisibleShards(view, run, index.shards)
        self._compared: Compared = {}

    # ------------------------------------------------------------------------------------------- proposing

    @singledispatchmethod
    def propose(self, query: Any, depth: int, deadline: Deadline) -> Proposal:  # noqa: ANN401 - one of `StoreQuery`
        """See `Reading.propose`."""
        raise TypeError(query, depth, deadline)

    @propose.register
    def _(self, query: LexicalQuery, depth: int, deadline: Deadline) -> Proposal:
        units, fields = self._visible.totals
        idfs = {t: bm25.idf(units, df) for t, df in zip(query.terms, self._visible.count(query.terms), strict=True)}
        averages = [total / max(1, units) for total in fields]
        return self._best_of(depth, lambda shard, seen: shard.propose(query, idfs, averages, seen, depth, deadline))

    @propose.register
    def _(self, query: DenseQuery, depth: int, deadline: Deadline) -> Proposal:
        """Propose by vectors. The funnel is one sweep of a few milliseconds: it is not cut short."""

        def nearest(shard: Shard, eligible: Bools) -> tuple[Places, NDArray[np.float64], bool]:
            if shard.dense is None or shard.dense.dims != len(query.vector):
                return _NOTHING
            if query.density is not None:
                eligible = eligible & (shard.column("anchor_density") == np.float32(query.density))
            near = shard.dense.propose(query.vector, eligible, depth, query.tier, shard.funnel, self._compared)
            return (*near, False)

        if self._index.space() != query.space:
            return Proposal(())
        self._index.fit_vectors(len(query.vector))
        return replace(self._best_of(depth, nearest, ROUNDING), exhausted=deadline.expired())

    @propose.register
    def _(self, query: HyperQuery, depth: int, deadline: Deadline) -> Proposal:
        """Propose by hypervectors; only those that are cached in time are seen."""

        def nearest(shard: Shard, eligible: Bools) -> tuple[Places, NDArray[np.float64], bool]:
            self._index.encode(shard, shard.ids, deadline)
            cached = [p for p in np.flatnonzero(eligible).tolist() if shard.ids[p] in shard.hyper]
            places = np.array(cached, dtype=np.intp)
            distances = shard.hyper.distances(query, [shard.ids[p] for p in cached])
            near = np.where(distances == MISSING_FIELD, 0.0, hv.shifted(hv.similarity(distances)))
            heard = near[:, :2].max(axis=1, initial=0.0) >= hv.noise_floor(self._visible.totals[0])
            scores = np.where(heard, near @ np.array(query.weights), 0.0)
            best = np.flatnonzero(scores > 0.0)
            best = best[at_least_top(scores[best], depth)]
            return places[best], scores[best], shard.past is None and len(places) < int(np.count_nonzero(eligible))

        return self._best_of(depth, nearest)

    @propose.register
    def _(self, query: TimeQuery, depth: int, deadline: Deadline) -> Proposal:
        start, end = microseconds(query.start), microseconds(query.end)

        def is_then(shard: Shard) -> Bools:
            moments = shard.column("event_time")
            return (moments >= start) & (moments < end)

        return self._by_time(is_then, depth, deadline, query.order)

    @propose.register
    def _(self, query: DocumentQuery, depth: int, deadline: Deadline) -> Proposal:
        keys = {"tenant": self.view.tenant, "name": query.name}
        found = [self._run("document_parts", {**keys, "user": user}).fetchall() for user in (self.view.user, GLOBAL)]
        parts = [unit_id for unit_id, lasting in (found[0] or found[1]) if query.ended or lasting]
        return Proposal(tuple(parts[:depth]), deadline.expired())

    @propose.register
    def _(self, query: StatementQuery, depth: int, deadline: Deadline) -> Proposal:
        return self._by_time(lambda shard: shard.column("stating") & np.uint8(query.stating) > 0, depth, deadline)

    def _by_time(
        self, choose: Callable[[Shard], Bools], depth: int, deadline: Deadline, order: Order = "newest"
    ) -> Proposal:
        """Return the units of the rows that are chosen in each shard, by time."""
        sign, found = 1 if order == "newest" else -1, list[tuple[int, int, str]]()
        for shard, eligible in zip(self._visible.shards, self._visible.eligible, strict=True):
            places = np.flatnonzero(eligible & choose(shard))
            places = places[at_least_top(sign * shard.column("event_time")[places], depth, 0.0)]
            moments = (shard.column(name)[places].tolist() for name in ("event_time", "position"))
            found += zip(*moments, (shard.ids[place] for place in places.tolist()), strict=True)
        ordered = sorted(found, reverse=order == "newest")
        return Proposal(tuple(unit_id for *_, unit_id in ordered[:depth]), deadline.expired())

    @propose.register
    def _(self, query: KindQuery, depth: int, deadline: Deadline) -> Proposal:
        codes = [KINDS.index(kind) for kind in query.kinds]
        masks = [
            eligible & np.logical_or.reduce([shard.column("kind") == code for code in codes])
            for shard, eligible in zip(self._visible.shards, self._visible.eligible, strict=True)
        ]
        if sum(map(np.count_nonzero, masks)) > depth:
            return Proposal((), deadline.expired())
        return Proposal(self._visible.name([*map(np.flatnonzero, masks)]), deadline.expired())

    def _best_of(self, depth: int, look: Look, margin: float = TIE_MARGIN) -> Proposal:
        """Return what `look` finds best in the shards, and what lies within `margin` of the last of it."""
        places: list[Places] = []
        parts: list[NDArray[np.float64]] = []
        exhausted = False
        for shard, eligible in zip(self._visible.shards, self._visible.eligible, strict=True):
            found, scores, ran_out = look(shard, eligible) if len(eligible) else _NOTHING
            exhausted |= ran_out
            places.append(found)
            parts.append(scores)
        best = at_least_top(np.concatenate(parts), depth, margin)
        spans = zip(places, pairwise(np.cumsum([0, *map(len, parts)]).tolist()), strict=True)
        kept = [found[best[(best >= start) & (best < end)] - start] for found, (start, end) in spans]
        return Proposal(self._visible.name(kept), exhausted)

    # -------------------------------------------------------------------------------------------- evidence

    @singledispatchmethod
    def evidence(self, query: Any, ids: Sequence[str]) -> Any:  # noqa: ANN401 - see the overloads of `Reading`
        """See `Reading.evidence`."""
        raise TypeError(query, ids)

    @evidence.register
    def _(self, query: LexicalQuery, ids: Sequence[str]) -> LexicalEvidence:
        found, rows = self._visible.find_known(ids)
        groups = self._visible.group_by_shard(rows)
        tf = np.zeros((len(FIELDS), len(query.terms), len(found)), dtype=np.int64).transpose(2, 0, 1)
        lengths = np.zeros((len(FIELDS), len(found)), dtype=np.int64).T
        roles = np.zeros(len(found), dtype=np.intp)
        for shard, mine, places in groups:
            tf[mine] = shard.counts(query.terms, places)
            lengths[mine] = shard.column("lengths")[places]
            roles[mine] = shard.column("role")[places]
        return LexicalEvidence(
            ids=found,
            roles=tuple(map(ROLES.__getitem__, roles.tolist())),
            tf=tf,
            lengths=lengths,
            unit_count=self._visible.totals[0],
            df=self._visible.count(query.terms),
            field_totals=self._visible.totals[1],
        )

    @evidence.register
    def _(self, query: DenseQuery, ids: Sequence[str]) -> DenseEvidence:
        found, rows = self._visible.find_known(ids)
        parts = [(np.zeros(0, dtype=np.intp), np.zeros((0, 0), dtype=np.float32))]
        for shard, mine, places in self._visible.group_by_shard(rows):
            held, matrix = self._read_vectors(shard, query.space, places)
            parts.append((np.arange(len(found))[mine][held], matrix))
        numbers, matrix = _in_order(parts)
        whole = len(numbers) == len(found)
        return DenseEvidence(found if whole else tuple(found[row] for row in numbers.tolist()), matrix)

    def _read_vectors(self, shard: Shard, space: str, places: Places) -> tuple[Places, NDArray[np.float32]]:
        """Return which of some places have a stored vector, in order, and those vectors."""
        sums = shard.vector_checksums(places)
        held = np.flatnonzero(sums != NO_VECTOR)
        sums, cache = sums[held], self._index.vectors
        keys = np.fromiter(map(shard.keys.__getitem__, places[held].tolist()), np.int64, len(held))
        here = cache.holds(space, keys, sums)
        if here.all():
            return held, cache.take(keys)
        missing = zip(held[~here].tolist(), sums[~here].tolist(), strict=True)
        unread = dict(zip(keys[~here].tolist(), missing, strict=True))
        name = "vectors_of_units" if shard.past is None else "vectors_of_versions"
        read = self._run(name, {"space": space, "keys": json.dumps([*unread])})
        # The vector of another version has another checksum than the one that is searched.
        fitting = {row[0]: row for row in read if row[2] == unread[row[0]][1]}
        dims = None if shard.dense is None else shard.dense.dims
        usable, matrix = read_fitting([row[:3] for row in fitting.values()], dims)
        fresh = np.array([(row[0], *unread[row[0]]) for row in usable], dtype=np.int64).reshape(-1, 3)
        found = _in_order([(held[here], cache.take(keys[here])), (fresh[:, 1], matrix)])
        if usable:
            cache.add(space, fresh[:, 0], fresh[:, 2], matrix)
        return found

    @evidence.register
    def _(self, query: HyperQuery, ids: Sequence[str]) -> HyperEvidence:
        found, rows = self._visible.find_known(ids)
        distances = np.full((len(found), len(HYPER_FIELDS)), MISSING_FIELD, dtype=np.int64)
        for shard, mine, places in self._visible.group_by_shard(rows):
            if shard.past is not None:  # hypervectors are of present words
                continue
            here = [shard.ids[place] for place in places.tolist()]
            self._index.encode(shard, here, None)
            distances[mine] = shard.hyper.distances(query, here)
        return HyperEvidence(found, distances, self._visible.totals[0])

    @evidence.register
    def _(self, query: SimilarityQuery, ids: Sequence[str]) -> SimilarityEvidence:
        """Compare with the user's own present units alone."""
        own = self._visible.present[0]
        if self._index.space() == query.space:
            self._index.fit_vectors(query.vectors.shape[1])
        if self._index.space() != query.space or own.dense is None or own.dense.dims != query.vectors.shape[1]:
            nothing = tuple(() for _ in ids)
            return SimilarityEvidence(nothing, nothing)
        eligible = own.eligible(self.view, None)
        kinds = (eligible & (own.column("kind") == TURN), eligible & (own.column("scope") == DURABLE))
        depths = (query.turns, query.durable)
        least = (query.similar - _FAR_OFF, -math.inf)
        near = own.dense.propose_all(query.vectors, kinds, [depth + 1 for depth in depths], least, own.funnel)
        places = np.unique(np.concatenate([one for found in near for one in found]))
        (held, stored), dims = self._read_vectors(own, query.space, places), query.vectors.shape[1]
        row_of_place = np.full(len(own.keys), NOWHERE, dtype=np.intp)
        row_of_place[places[held]] = range(len(held))
        matrix, given = tier(stored, dims), tier(query.vectors, dims)
        itself = np.array([own.place_of_id.get(unit_id, NOWHERE) for unit_id in ids], dtype=np.intp)

        def nearest(found: Sequence[Places], depth: int) -> tuple[tuple[float, ...], ...]:
            numbers, others = np.repeat(np.arange(len(found)), [len(some) for some in found]), np.concatenate(found)
            compared = (others != itself[numbers]) & (row_of_place[others] != NOWHERE)
            numbers, rows = numbers[compared], row_of_place[others[compared]]
            exact = row_cosines(matrix[rows], given[numbers]).tolist()
            ends = np.searchsorted(numbers, np.arange(len(found) + 1)).tolist()
            return tuple(tuple(sorted(exact[a:b], reverse=True)[:depth]) for a, b in pairwise(ends))

        return SimilarityEvidence(*map(nearest, near, depths))

    # -------------------------------------------------------------------------------------------- columns

    def columns(self, ids: Sequence[str], names: Sequence[ColumnName]) -> Columns:
        """See `Reading.columns`."""
        # What a row of the store says takes no index, which may not be loaded yet.
        rows = np.zeros(0, dtype=np.intp) if {*names} <= {"document", "hidden"} else self._visible.locate(ids)
        groups = self._visible.group_by_shard(rows) if len(rows) else []
        found: dict[str, NDArray[Any]] = {}
        for name in names:
            if name in CODED:
                found[name] = read_coded(groups, len(rows), name)
            elif name in NUMBERS:
                found[name] = read_numbers(groups, len(rows), name)
            elif name not in found:
                found |= _DERIVED[name](self, ids, groups)
        return {name: found[name] for name in names}

    def lineage_columns(self, ids: Sequence[str], groups: Groups) -> Columns:
        """Return the spans and decay rates of summaries, and which summary covers a unit."""
        starts = read_numbers(groups, len(ids), "event_time")
        ends, rates = starts.copy(), np.full(len(ids), np.nan)
        covered_by = np.empty(len(ids), dtype=object)  # of None
        for shard, mine, places in groups:
            if not shard.lineages and not shard.covered_by:
                continue
            for row, place in zip(np.arange(len(ids))[mine].tolist(), places.tolist(), strict=True):
                key = shard.keys[place]
                covered_by[row] = shard.covered_by.get(key)
                if (lineage := shard.lineages.get(key)) is not None:
                    starts[row], ends[row] = microseconds(lineage.starts), microseconds(lineage.ends)
                    rates[row] = lineage.decay_rate
        return {"starts": starts, "ends": ends, "decay_rate": rates, "covered_by": covered_by}

    def neighbour_columns(self, ids: Sequence[str], groups: Groups) -> Columns:
        """Return the visible turns around each turn, of the present."""
        around = np.empty((2, len(ids)), dtype=object)  # of None
        if any(shard.past is not None for shard in self._visible.shards):
            groups = self._visible.group_by_shard(self._visible.locate(ids, present=True))
        for shard, mine, places in groups:
            eligible = self._visible.eligible[self._visible.shards.index(shard)]
            for column, beside in zip(around, shard.beside(places, eligible), strict=True):
                column[mine] = [None if place == NOWHERE else shard.ids[place] for place in beside.tolist()]
        return {"before": around[0], "after": around[1]}

    def document_column(self, ids: Sequence[str], _groups: Groups) -> Columns:
        """Return the document that each unit is part of."""
        keys = {"tenant": self.view.tenant, "user": self.view.user, "ids": json.dumps([*ids])}
        name_of = dict(self._run("documents_of_units", keys).fetchall())
        return {"document": np.array([name_of.get(unit_id) for unit_id in ids], dtype=object)}

    def access_columns(self, ids: Sequence[str], groups: Groups) -> Columns:
        """Count the user's own units only: what others read of everyone's is not one user's to see."""
        owner = {"tenant": self.view.tenant, "user": self.view.user}
        keys = np.full(len(ids), NOWHERE, dtype=np.int64)
        for shard, mine, places in groups:
            keys[mine] = [shard.keys[place] for place in places.tolist()]
        asked = {**owner, "keys": json.dumps(keys.tolist())}
        counts = dict(self._run("access_counts", asked).fetchall())
        [most] = self._run("most_accessed", asked).fetchone()
        return {
            "access_count": np.array([counts.get(key, 0) for key in keys.tolist()], dtype=np.int64),
            "most_accessed": np.full(len(ids), most, dtype=np.int64),
        }

    def hidden_column(self, ids: Sequence[str], _groups: Groups) -> Columns:
        """Return why the view hides each unit."""
        return {"hidden": np.array([self._why_hidden(unit_id) for unit_id in ids], dtype=object)}

    def _why_hidden(self, unit_id: str) -> str | None:
        row = self._row(unit_id)
        if row is None:
            return "not found"
        if self.view.as_of is None:
            return hidden_reason(self.view, unit_of(row), row[3], row[5])
        if any(unit_id in shard.past for shard in self._visible.shards if shard.past is not None):
            return None
        then = self._run("lifetimes", {"key": row[0], "as_of": iso(self.view.as_of)}).fetchone()
        return hidden_reason(self.view, unit_of(row), *state_as_of(then))

    # ---------------------------------------------------------------------------------------------- units

    def units(self, ids: Sequence[str]) -> dict[str, Unit]:
        """See `Reading.units`."""
        if not self._index.has_loaded(self.view):  # one unit is read faster than an index is loaded
            keys = {"tenant": self.view.tenant, "user": self.view.user, "ids": json.dumps([*ids])}
            read = self._run("find_units", keys).fetchall()
            # Global units come first, so that a user's own of the same id takes their place.
            return {unit.id: unit for unit in map(unit_of, read) if agent_matches(self.view, unit)}
        found, rows = self._visible.find_known(ids)
        parts = [self._index.units(shard, places) for shard, _, places in self._visible.group_by_shard(rows)]
        if len(parts) == 1:
            return parts[0]
        units = {unit_id: unit for part in parts for unit_id, unit in part.items()}
        return {unit_id: units[unit_id] for unit_id in found if unit_id in units}

    def _row(self, unit_id: str) -> UnitRow | None:
        """Return the owner's unit of that id, else the global one; None for any other owner's."""
        for user in (self.view.user, GLOBAL):
            keys = {"tenant": self.view.tenant, "user": user, "id": unit_id}
            row: UnitRow | None = self._run("find_unit", keys).fetchone()
            if row is not None and (self.view.agent is None or agent_matches(self.view, unit_of(row))):
                return row
        return None

    def scan(self, *, order: Order, limit: int | None) -> Iterator[Unit]:
        """See `Reading.scan`."""
        return self._scan(self.view, order, limit)

    def _scan(self, view: View, order: Order, limit: int | None) -> Iterator[Unit]:
        visible, values = visible_sql(view)
        values["limit"] = _EVERYTHING if limit is None else limit
        rows = self._run(f"scan_{order}", values, visible=visible).fetchall()
        past = self._index.past_units(view) if view.as_of is not None else []
        if not past:
            return map(unit_of, rows)
        found = sorted((*map(unit_of, rows), *past), key=lambda unit: unit.moment)
        return iter((found[::-1] if order == "newest" else found)[:limit])

    def history(self, unit_id: str) -> list[Unit]:
        """See `Reading.history`."""
        row = self._row(unit_id)
        if row is None:
            return []
        return [unit_of(old) for old in self._run("unit_versions", {"key": row[0]})] + [unit_of(row)]

    # ------------------------------------------------------------------------------- names, facts, documents

    def find_names(self, keys: Sequence[str], most: int, *, mentioned: bool) -> dict[str, tuple[str, ...]]:
        """See `Reading.find_names`. Filters do not make a name rarer."""
        kinds = (CALLED, NAMING) if mentioned else (CALLED,)
        # Most of what is asked for is nobody's name, so that is found out first.
        asked, shards = dict.fromkeys(keys).keys(), self._visible.shards
        found = {}
        for key in sorted({key for shard in shards for kind in kinds for key in asked & shard.names(kind)}):
            lists = [[shard.named(kind, key) for kind in kinds] for shard in shards]
            if (
                sum(max(map(len, some)) for shard, some in zip(shards, lists, strict=True) if shard.past is None)
                > most
            ):
                continue
            places = [{place for one in some for place in one.tolist()} for some in lists]
            count = sum(len(here) for shard, here in zip(shards, places, strict=True) if shard.past is None)
            ids = {
                shard.ids[place]
                for shard, here, eligible in zip(shards, places, self._visible.eligible, strict=True)
                for place in here
                if eligible[place]
            }
            if ids and count <= most:
                found[key] = tuple(sorted(ids))
        return found

    def facts(self) -> Facts:
        """See `Reading.facts`."""
        pairs = zip(self._visible.shards, self._visible.eligible, strict=True)
        return JoinedFacts([shard.facts_among(eligible) for shard, eligible in pairs], self._visible.shards[0].tokens)

    @overload
    def names(self, kind: Literal["speaker"]) -> tuple[str, ...]: ...
    @overload
    def names(self, kind: ListedKind, limit: int | None = None) -> tuple[NameCount, ...]: ...
    def names(
        self, kind: Literal["speaker"] | ListedKind, limit: int | None = None
    ) -> tuple[str, ...] | tuple[NameCount, ...]:
        """See `Reading.names`."""
        if kind == "speaker":
            return tuple(sorted({name for shard in self._visible.shards for name in shard.speakers if name}))
        most = _EVERYTHING if limit is None else limit
        keys = {"tenant": self.view.tenant, "user": self.view.user, "limit": most, "words": TITLE_CHARS}
        return tuple(map(listed, self._run(f"list_{kind}s", keys)))

    def mark(self) -> str:
        """See `Reading.mark`. Whoever erases begins an epoch."""
        owner = {"tenant": self.view.tenant, "user": self.view.user, "everyone": GLOBAL}
        last = self._run("last_change_of_owner", owner).fetchone()
        return json.dumps([self._run("agreed", {"name": EPOCH}).fetchone(), self._index.space(), last])

    def stored(self, *, whole: bool = False) -> Iterator[Document | StoredUnit]:
        """See `Reading.stored`."""
        return read_stored_all(self._run, self.view, whole=whole)

    def documents(self, *, core: bool = False, name: str | None = None, bodies: bool = True) -> list[Document]:
        """See `Reading.documents`."""
        view = self.view
        wanted: Mapping[str, Any] = {
            "tenant": view.tenant, "user": view.user, "least_core": int(core), "name": name, "bodies": int(bodies),
        }  # fmt: skip
        rows = self._run("owner_documents", wanted).fetchall()
        here = self._place() if rows else ""
        found = []
        for user, called, path, is_core, body, checksum, given_to in rows:
            if bodies and zlib.crc32(body) != checksum:
                raise DamagedStoreError(f"the document {quote_value(called)} fails its checksum; ingest it again")
            is_here = bool(here) and given_to == here
            found.append(Document(view.tenant, user or None, called, body, path, bool(is_core), is_here))
        return found


_Derive = Callable[[SqliteReading, Sequence[str], Groups], Columns]
_DERIVED: dict[str, _Derive] = {
    **dict.fromkeys(("starts", "ends", "decay_rate", "covered_by"), SqliteReading.lineage_columns),
    **dict.fromkeys(("before", "after"), SqliteReading.neighbour_columns),
    **dict.fromkeys(("access_count", "most_accessed"), SqliteReading.access_columns),
    "document": SqliteReading.document_column,
    "hidden": SqliteReading.hidden_column,
}


def _in_order(parts: Sequence[tuple[Places, NDArray[np.float32]]]) -> tuple[Places, NDArray[np.float32]]:
    """Return numbered rows of several matrices, by number."""
    filled = [part for part in parts if len(part[0])] or parts[:1]
    numbers, rows = filled[0] if len(filled) == 1 else (np.concatenate(some) for some in zip(*filled, strict=True))
    if (numbers[1:] > numbers[:-1]).all():
        return numbers, rows
    order = np.argsort(numbers)
    return numbers[order], rows[order]
