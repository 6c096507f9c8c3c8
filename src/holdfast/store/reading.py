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
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import DamagedStoreError, shown
from holdfast.kernels import bm25
from holdfast.kernels import hypervectors as hv
from holdfast.kernels.facts import Facts, JoinedFacts
from holdfast.kernels.vectors import at_least_top, row_cosines, tier
from holdfast.store.contract import (
    HYPER_FIELDS,
    MISSING_FIELD,
    ColumnName,
    Columns,
    DenseEvidence,
    DenseQuery,
    DocumentQuery,
    HyperEvidence,
    HyperQuery,
    LexicalEvidence,
    LexicalQuery,
    Order,
    Proposal,
    SimilarityEvidence,
    SimilarityQuery,
    TimeQuery,
)
from holdfast.store.index import CALLED, DURABLE, NAMING, TURN, Shard, microseconds
from holdfast.store.rows import (
    GLOBAL,
    Row,
    agent_matches,
    check_vectors,
    hidden_by,
    read_vectors,
    then_by,
    unit_of,
    where,
)
from holdfast.store.sync import LiveIndex
from holdfast.store.visible import NOWHERE, Bools, Places, VisibleShards
from holdfast.types import (
    AUTHORS,
    FIELDS,
    KINDS,
    ROLES,
    SCOPES,
    Condition,
    Deadline,
    Document,
    Junction,
    Unit,
    View,
    iso,
)

_EVERYTHING = -1  # SQLite's "no limit"
# Ten times what quantising moves a cosine by: an approximate one that is further below a bar cannot reach it.
_FAR_OFF = 0.05
# What one shard finds: places, their approximate scores, and whether time ran out.
Look = Callable[[Shard, Bools], tuple[Places, NDArray[np.float64], bool]]


class SqliteReading:
    """See `Reading`. The store holds its lock and a read transaction as long as this is used."""

    def __init__(self, view: View, run: Callable[..., Cursor], index: LiveIndex, place: Callable[[], str]) -> None:
        self.view = view
        self._run = run
        self._index = index
        self._place = place  # what tells this store from a copy of it
        self._visible = VisibleShards(view, run, index.shards)

    # ------------------------------------------------------------------------------------------- proposing

    @singledispatchmethod
    def propose(self, query: Any, depth: int, deadline: Deadline) -> Proposal:  # noqa: ANN401 - one of `Query`
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
                return np.zeros(0, dtype=np.intp), np.zeros(0), False
            if query.density is not None:
                eligible = eligible & (shard.column("anchor_density") == np.float32(query.density))
            return (*shard.dense.propose(query.vector, eligible, depth, query.tier, shard.funnel), False)

        if self._index.space() != query.space:
            return Proposal(())
        return replace(self._best_of(depth, nearest), exhausted=deadline.expired())

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
        start = Condition("field", ("event_time",), "gte", iso(query.start))
        end = Condition("field", ("event_time",), "lt", iso(query.end))
        parts = (start, end) if self.view.filters is None else (self.view.filters, start, end)
        then = replace(self.view, filters=Junction("and", parts))
        return Proposal(tuple(unit.id for unit in self._scan(then, "newest", depth)), deadline.expired())

    @propose.register
    def _(self, query: DocumentQuery, depth: int, deadline: Deadline) -> Proposal:
        keys = {"tenant": self.view.tenant, "name": query.name}
        found = [self._run("document_parts", {**keys, "user": user}).fetchall() for user in (self.view.user, GLOBAL)]
        parts = [unit_id for unit_id, lasting in (found[0] or found[1]) if query.ended or lasting]
        return Proposal(tuple(parts[:depth]), deadline.expired())

    def _best_of(self, depth: int, look: Look) -> Proposal:
        """Return what `look` finds best in the shards."""
        ids: list[str] = []
        parts: list[NDArray[np.float64]] = []
        exhausted = False
        for shard, eligible in zip(self._visible.shards, self._visible.eligible, strict=True):
            if not len(eligible):
                continue
            places, scores, ran_out = look(shard, eligible)
            exhausted |= ran_out
            ids += [shard.ids[place] for place in places.tolist()]
            parts.append(scores)
        best = at_least_top(np.concatenate(parts), depth) if parts else ()
        return Proposal(tuple(ids[i] for i in best), exhausted)

    # -------------------------------------------------------------------------------------------- evidence

    @singledispatchmethod
    def evidence(self, query: Any, ids: Sequence[str]) -> Any:  # noqa: ANN401 - see the overloads of `Reading`
        """See `Reading.evidence`."""
        raise TypeError(query, ids)

    @evidence.register
    def _(self, query: LexicalQuery, ids: Sequence[str]) -> LexicalEvidence:
        found, rows = self._visible.find_known(ids)
        tf = np.zeros((len(found), len(FIELDS), len(query.terms)), dtype=np.int64)
        lengths = np.zeros((len(found), len(FIELDS)), dtype=np.int64)
        roles = np.zeros(len(found), dtype=np.intp)
        for shard, mine, places in self._visible.group_by_shard(rows):
            tf[mine] = shard.counts(query.terms, places)
            lengths[mine] = shard.column("lengths")[places]
            roles[mine] = shard.column("role")[places]
        return LexicalEvidence(
            ids=found,
            roles=tuple(ROLES[role] for role in roles.tolist()),
            tf=tf,
            lengths=lengths,
            unit_count=self._visible.totals[0],
            df=self._visible.count(query.terms),
            field_totals=self._visible.totals[1],
        )

    @evidence.register
    def _(self, query: DenseQuery, ids: Sequence[str]) -> DenseEvidence:
        found, rows = self._visible.find_known(ids)
        stored: dict[int, bytes] = {}
        for shard, mine, places in self._visible.group_by_shard(rows):
            stored |= self._stored(shard, query.space, mine, places)
        held = sorted(stored)
        matrix = read_vectors([stored[row] for row in held], -1 if held else 0)
        return DenseEvidence(tuple(found[row] for row in held), matrix)

    def _stored(self, shard: Shard, space: str, rows: Places, places: Places) -> dict[int, bytes]:
        """Return the stored vectors of some places, by the rows that they belong to."""
        keys = [shard.keys[place] for place in places.tolist()]
        row_of, sums = (
            dict(zip(keys, some, strict=True)) for some in (rows.tolist(), shard.vector_checksums(places))
        )
        name = "vectors_of_units" if shard.past is None else "vectors_of_versions"
        read = self._run(name, {"space": space, "keys": json.dumps(keys)})
        # The vector of another version has another checksum than the one that is searched.
        fitting = [row for row in read if row[2] == sums[row[0]]]
        check_vectors(fitting)
        return {row_of[row[0]]: row[1] for row in fitting}

    @evidence.register
    def _(self, query: HyperQuery, ids: Sequence[str]) -> HyperEvidence:
        found, rows = self._visible.find_known(ids)
        distances = np.full((len(found), len(HYPER_FIELDS)), MISSING_FIELD, dtype=np.int64)
        for shard, mine, _ in self._visible.group_by_shard(rows):
            if shard.past is not None:  # hypervectors are of present words
                continue
            here = [found[row] for row in mine.tolist()]
            self._index.encode(shard, here, None)
            distances[mine] = shard.hyper.distances(query, here)
        return HyperEvidence(found, distances, self._visible.totals[0])

    @evidence.register
    def _(self, query: SimilarityQuery, ids: Sequence[str]) -> SimilarityEvidence:
        """Compare with the user's own present units alone."""
        own = self._visible.present[0]
        if self._index.space() != query.space or own.dense is None or own.dense.dims != query.vectors.shape[1]:
            nothing = tuple(() for _ in ids)
            return SimilarityEvidence(nothing, nothing)
        eligible = own.eligible(self.view, None)
        kinds = (eligible & (own.column("kind") == TURN), eligible & (own.column("scope") == DURABLE))
        depths = (query.turns, query.durable)
        least = (query.similar - _FAR_OFF, -math.inf)
        near = own.dense.propose_all(query.vectors, kinds, [depth + 1 for depth in depths], least, own.funnel)
        places = np.unique(np.concatenate([one for found in near for one in found]))
        stored, dims = self._stored(own, query.space, places, places), query.vectors.shape[1]
        row_of_place = np.full(len(own.keys), NOWHERE, dtype=np.intp)
        row_of_place[[*stored]] = range(len(stored))
        matrix = tier(read_vectors([*stored.values()], dims), dims)
        given = tier(query.vectors, dims)
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
        found: dict[str, NDArray[Any]] = {}
        for name in names:
            if name in _CODED:
                found[name] = self._coded(rows, *_CODED[name])
            elif name in _NUMBERS:
                found[name] = self._numbers(rows, name, _NUMBERS[name])
            elif name not in found:
                found |= _DERIVED[name](self, ids, rows)
        return {name: found[name] for name in names}

    def _numbers(self, rows: Places, name: str, kind: type) -> NDArray[Any]:
        values: NDArray[Any] = np.zeros(len(rows), dtype=kind)
        for shard, mine, places in self._visible.group_by_shard(rows):
            values[mine] = shard.column(name)[places]
        return values

    def _coded(self, rows: Places, name: str, words: Sequence[str] | None) -> NDArray[Any]:
        """Return words that the shards hold as numbers: those of a fixed list, or a shard's own names."""
        values: NDArray[Any] = np.full(len(rows), None, dtype=object)
        for shard, mine, places in self._visible.group_by_shard(rows):
            texts = shard.name_of_code if words is None else words
            values[mine] = [texts[code] for code in shard.column(name)[places].tolist()]
        return values

    def lineage_columns(self, _ids: Sequence[str], rows: Places) -> Columns:
        """Return the spans and decay rates of summaries, and which summary covers a unit."""
        starts = self._numbers(rows, "event_time", np.int64)
        ends, rates = starts.copy(), np.full(len(rows), np.nan)
        covered_by = np.full(len(rows), None, dtype=object)
        for shard, mine, places in self._visible.group_by_shard(rows):
            if not shard.lineages and not shard.covered_by:
                continue
            for row, place in zip(mine.tolist(), places.tolist(), strict=True):
                key = shard.keys[place]
                covered_by[row] = shard.covered_by.get(key)
                if (lineage := shard.lineages.get(key)) is not None:
                    starts[row], ends[row] = microseconds(lineage.starts), microseconds(lineage.ends)
                    rates[row] = lineage.decay_rate
        return {"starts": starts, "ends": ends, "decay_rate": rates, "covered_by": covered_by}

    def neighbour_columns(self, ids: Sequence[str], _rows: Places) -> Columns:
        """Return the visible turns around each turn."""
        before, after = (np.full(len(ids), None, dtype=object) for _ in range(2))
        present = [
            pair for pair in zip(self._visible.shards, self._visible.eligible, strict=True) if pair[0].past is None
        ]
        left = [*range(len(ids))]
        for shard, eligible in present:
            mine = [row for row in left if shard.shows(ids[row], self.view)]
            places = np.array([shard.place_of_id[ids[row]] for row in mine], dtype=np.intp)
            for row, (last, following) in zip(mine, shard.beside(places, eligible) if mine else (), strict=True):
                before[row] = None if last is None else shard.ids[last]
                after[row] = None if following is None else shard.ids[following]
            left = [row for row in left if row not in {*mine}] if len(mine) < len(left) else []
        return {"before": before, "after": after}

    def document_column(self, ids: Sequence[str], _rows: Places) -> Columns:
        """Return the document that each unit is part of."""
        keys = {"tenant": self.view.tenant, "user": self.view.user, "ids": json.dumps([*ids])}
        name_of = dict(self._run("documents_of_units", keys).fetchall())
        return {"document": np.array([name_of.get(unit_id) for unit_id in ids], dtype=object)}

    def access_columns(self, ids: Sequence[str], rows: Places) -> Columns:
        """Count the user's own units only: what others read of everyone's is not one user's to see."""
        owner = {"tenant": self.view.tenant, "user": self.view.user}
        keys = np.full(len(ids), NOWHERE, dtype=np.int64)
        for shard, mine, places in self._visible.group_by_shard(rows):
            keys[mine] = [shard.keys[place] for place in places.tolist()]
        counts = dict(self._run("access_counts", {**owner, "keys": json.dumps(keys.tolist())}).fetchall())
        [most] = self._run("most_accessed", owner).fetchone()
        return {
            "access_count": np.array([counts.get(key, 0) for key in keys.tolist()], dtype=np.int64),
            "most_accessed": np.full(len(ids), most, dtype=np.int64),
        }

    def hidden_column(self, ids: Sequence[str], _rows: Places) -> Columns:
        """Return why the view hides each unit."""
        return {"hidden": np.array([self._why_hidden(unit_id) for unit_id in ids], dtype=object)}

    def _why_hidden(self, unit_id: str) -> str | None:
        row = self._row(unit_id)
        if row is None:
            return "not found"
        if self.view.as_of is None:
            return hidden_by(self.view, unit_of(row), row[3], row[5])
        if any(unit_id in shard.past for shard in self._visible.shards if shard.past is not None):
            return None
        then = self._run("lifetimes", {"key": row[0], "as_of": iso(self.view.as_of)}).fetchone()
        return hidden_by(self.view, unit_of(row), *then_by(then))

    # ---------------------------------------------------------------------------------------------- units

    def units(self, ids: Sequence[str]) -> dict[str, Unit]:
        """See `Reading.units`."""
        if not self._index.has_loaded(self.view):  # one unit is read faster than an index is loaded
            keys = {"tenant": self.view.tenant, "user": self.view.user, "ids": json.dumps([*ids])}
            read = self._run("find_units", keys).fetchall()
            # Global units come first, so that a user's own of the same id takes their place.
            return {unit.id: unit for unit in map(unit_of, read) if agent_matches(self.view, unit)}
        found, rows = self._visible.find_known(ids)
        here: dict[str, tuple[Shard, int]] = {}
        for shard, mine, places in self._visible.group_by_shard(rows):
            here |= {found[row]: (shard, place) for row, place in zip(mine.tolist(), places.tolist(), strict=True)}
        return self._index.units([(unit_id, *here[unit_id]) for unit_id in found])

    def _row(self, unit_id: str) -> Row | None:
        """Return the owner's unit of that id, else the global one; None for any other owner's."""
        for user in (self.view.user, GLOBAL):
            keys = {"tenant": self.view.tenant, "user": user, "id": unit_id}
            row: Row | None = self._run("find_unit", keys).fetchone()
            if row is not None and (self.view.agent is None or agent_matches(self.view, unit_of(row))):
                return row
        return None

    def scan(self, *, order: Order, limit: int | None) -> Iterator[Unit]:
        """See `Reading.scan`."""
        return self._scan(self.view, order, limit)

    def _scan(self, view: View, order: Order, limit: int | None) -> Iterator[Unit]:
        visible, values = where(view)
        values["limit"] = _EVERYTHING if limit is None else limit
        rows = self._run(f"scan_{order}", values, visible=visible).fetchall()
        past = self._index.past_units(view) if view.as_of is not None else []
        if not past:
            return map(unit_of, rows)
        found = sorted((*map(unit_of, rows), *past), key=lambda u: (u.event_time, u.position, u.id))
        return iter((found[::-1] if order == "newest" else found)[:limit])

    def history(self, unit_id: str) -> list[Unit]:
        """See `Reading.history`."""
        row = self._row(unit_id)
        if row is None:
            return []
        return [unit_of(old) for old in self._run("unit_versions", {"key": row[0]})] + [unit_of(row)]

    # ------------------------------------------------------------------------------- names, facts, documents

    def named(self, keys: Sequence[str], most: int, *, mentioned: bool) -> dict[str, tuple[str, ...]]:
        """See `Reading.named`. Filters do not make a name rarer."""
        kinds = (CALLED, NAMING) if mentioned else (CALLED,)
        # Most of what is asked for is nobody's name, so that is found out first.
        asked, shards = dict.fromkeys(keys).keys(), self._visible.shards
        found = {}
        for key in sorted({key for shard in shards for kind in kinds for key in asked & shard.names(kind)}):
            places = [{p for kind in kinds for p in shard.named(kind, key).tolist()} for shard in shards]
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

    def names(self, kind: Literal["speaker", "session"]) -> tuple[str, ...]:
        """See `Reading.names`."""
        if kind == "speaker":
            return tuple(sorted({name for shard in self._visible.shards for name in shard.speakers if name}))
        rows = self._run("owner_sessions", {"tenant": self.view.tenant, "user": self.view.user})
        return tuple(name for (name,) in rows)

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
                raise DamagedStoreError(f"the document {shown(called)} fails its checksum; ingest it again")
            is_here = bool(here) and given_to == here
            found.append(Document(view.tenant, user or None, called, body, path, bool(is_core), is_here))
        return found


# Columns that a shard holds as numbers for words: the column, and the words (None for the shard's own names).
_CODED: dict[str, tuple[str, tuple[str, ...] | None]] = {
    "author": ("author", AUTHORS),
    "kind": ("kind", KINDS),
    "scope": ("scope", SCOPES),
    "speaker": ("speaker", None),
    "session": ("session", None),
}
_NUMBERS: dict[str, type] = {
    "event_time": np.int64, "length": np.int64, "said": np.int64, "anchor_density": np.float64,
}  # fmt: skip
_Derive = Callable[[SqliteReading, Sequence[str], Places], Columns]
_DERIVED: dict[str, _Derive] = {
    **dict.fromkeys(("starts", "ends", "decay_rate", "covered_by"), SqliteReading.lineage_columns),
    **dict.fromkeys(("before", "after"), SqliteReading.neighbour_columns),
    **dict.fromkeys(("access_count", "most_accessed"), SqliteReading.access_columns),
    "document": SqliteReading.document_column,
    "hidden": SqliteReading.hidden_column,
}
