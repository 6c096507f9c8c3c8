"""The embedded store: one SQLite file, and an index of it in this process.

Every write is one transaction in WAL mode with `synchronous=FULL`: when a call returns, its words survive a kill
and a power cut. The index is loaded owner by owner when first asked, and follows the file's feed of changes, so
that two processes on one file read each other's writes.
"""

from __future__ import annotations

import json
import os
import sqlite3
import threading
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import ClosedStoreError, DamagedStoreError, EmbeddingSpaceError, InputError, NotFoundError, shown
from holdfast.settings import StoreSettings
from holdfast.store import shards as searching
from holdfast.store.base import (
    HYPER_FIELDS,
    DenseEvidence,
    DenseQuery,
    Derivation,
    HyperEvidence,
    HyperQuery,
    LexicalEvidence,
    LexicalQuery,
    Order,
    Problem,
    Proposal,
)
from holdfast.store.index import CALLED, NAMING
from holdfast.store.live import Fresh, LiveIndex
from holdfast.store.mentions import leads
from holdfast.store.migrate import open_connection, schema_version, translated
from holdfast.store.queries import queries
from holdfast.store.rows import (
    GLOBAL,
    Row,
    agent_matches,
    columns,
    hidden_by,
    unit_of,
    vector_of,
    where,
)
from holdfast.types import JSON, Analysis, CoreDocument, Deadline, Draft, Stats, Unit, View, Written, from_iso, iso

_EVERYTHING = -1  # SQLite's "no limit"
_SPACE, _IDENTITY = "space", "identity"


class SqliteStore:
    """Units in one SQLite file. Shared between threads by a lock; refuses to be used across a fork."""

    def __init__(self, connection: sqlite3.Connection, location: str, derivation: Derivation) -> None:
        self._connection = connection
        self._location = location
        self._lock = threading.RLock()
        self._process = os.getpid()
        self._closed = False
        self._index = LiveIndex(self._run, derivation, _beside(location), self._fingerprint(derivation))

    @classmethod
    def open(cls, location: str | Path, settings: StoreSettings, derivation: Derivation) -> SqliteStore:
        """Open or create the store at `location` (`:memory:` keeps nothing).

        Raises:
            StoreError: the file is foreign, newer, damaged, read-only or busy; the message says what to do.
        """
        return cls(open_connection(str(location), settings), str(location), derivation)

    # ------------------------------------------------------------------------------------------- writing

    def put(self, drafts: Sequence[Draft]) -> list[Written]:
        """See `Store.put`."""
        fresh: Fresh = {}
        with self._write():
            written = [self._put_one(draft, fresh) for draft in drafts]
        with self._read():
            self._index.follow(fresh)
        return written

    def _put_one(self, draft: Draft, fresh: Fresh) -> Written:
        unit = draft.unit
        row = self._find(unit.tenant, unit.user, unit.id)
        if row is None:
            unit = self._placed(unit)
            key = self._run("insert_unit", columns(unit)).lastrowid
            assert key is not None  # noqa: S101 - an INSERT that did not raise has a row id
        else:
            key, known = row[0], unit_of(row)
            if known.agent not in (unit.agent, None):
                raise InputError(f"the id {shown(unit.id)} is taken by another agent's unit; choose another")
            unit = unit.evolve(
                # Where a unit belongs is fixed at its first version, as its id is: nobody who saw it loses it.
                agent=known.agent,
                session=known.session,
                scope=known.scope,
                position=known.position,
                version=known.version,
                recorded_time=known.recorded_time,
                event_time=unit.event_time if draft.time_given else known.event_time,
            )
            if not draft.id_given or unit == known:
                return Written(known.id, "duplicate", known.version)
            unit = unit.evolve(version=known.version + 1, recorded_time=draft.unit.recorded_time)
            self._replace(key, unit)
        self._record(key, unit)
        for target in unit.supersedes:
            self._supersede(unit, target)
        fresh[key] = (columns(unit)["checksum"], draft.analysis)
        return Written(unit.id, "added" if row is None else "updated", unit.version)

    def revise(self, view: View, unit_id: str, revise: Callable[[Unit], tuple[Unit, Analysis]]) -> Unit:
        """See `Store.revise`."""
        with self._write():
            row = self._visible_row(view, unit_id)
            if row is None:
                raise NotFoundError(
                    f"there is no unit {shown(unit_id)} for user {shown(view.user)}; check id and owner"
                )
            known = unit_of(row)
            unit, analysis = revise(known)
            unit = unit.evolve(version=known.version + 1)
            self._replace(row[0], unit)
            self._record(row[0], unit)
        with self._read():
            self._index.follow({row[0]: (columns(unit)["checksum"], analysis)})
        return unit.evolve(access_count=row[4])

    def _placed(self, unit: Unit) -> Unit:
        if unit.session is None:
            return unit
        keys = {"tenant": unit.tenant, "user": unit.user or GLOBAL, "session": unit.session}
        return unit.evolve(position=self._run("next_position", keys).fetchone()[0])

    def _replace(self, key: int, unit: Unit) -> None:
        self._run("archive_version", {"key": key})
        self._run("replace_unit", {**columns(unit), "key": key})

    def _supersede(self, unit: Unit, target: str) -> None:
        row = self._find(unit.tenant, unit.user, target)
        hidden = row is not None and unit.agent is not None and unit_of(row).agent not in (unit.agent, None)
        if row is None or hidden or target == unit.id:
            raise NotFoundError(f"{shown(target)} cannot be superseded: the owner has no other unit of that id")
        self._run("supersede_unit", {"by": unit.id, "at": iso(unit.recorded_time), "key": row[0]})
        self._record(row[0], unit)

    def _record(self, key: int, unit: Unit) -> None:
        self._index.changed()
        self._run("record_change", {"tenant": unit.tenant, "user": unit.user or GLOBAL, "key": key})

    # ------------------------------------------------------------------------------------------- reading

    def units(self, view: View, ids: Sequence[str]) -> dict[str, Unit]:
        """See `Store.units`."""
        with self._read():
            if (view.tenant, view.user) in self._index:
                return self._index.units(view, ids)
            keys = {"tenant": view.tenant, "user": view.user, "ids": json.dumps([*ids])}
            rows = self._run("find_units", keys).fetchall()
        # Global units come first, so that a user's own of the same id takes their place.
        return {unit.id: unit for unit in map(unit_of, rows) if agent_matches(view, unit)}

    def scan(self, view: View, *, order: Order, limit: int | None) -> Iterator[Unit]:
        """See `Store.scan`."""
        with self._read():
            visible, values = where(view)
            values["limit"] = _EVERYTHING if limit is None else limit
            rows = self._run(f"scan_{order}", values, visible=visible).fetchall()
            past = self._index.past_units(view) if view.as_of is not None else []
        if not past:
            return map(unit_of, rows)
        found = sorted((*map(unit_of, rows), *past), key=lambda u: (u.event_time, u.position, u.id))
        return iter((found[::-1] if order == "newest" else found)[:limit])

    def history(self, view: View, unit_id: str) -> list[Unit]:
        """See `Store.history`."""
        with self._read():
            row = self._visible_row(view, unit_id)
            if row is None:
                return []
            return [unit_of(old) for old in self._run("unit_versions", {"key": row[0]})] + [unit_of(row)]

    def neighbours(self, view: View, ids: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """See `Store.neighbours`."""
        with self._read():
            return searching.neighbours(self._index.shards(view), view, ids, self._allowed(view))

    def called(self, view: View, keys: Sequence[str], most: int) -> dict[str, tuple[str, ...]]:
        """See `Store.called`."""
        with self._read():
            return leads((CALLED,), self._index.shards(view), view, keys, most, self._allowed(view))

    def naming(self, view: View, keys: Sequence[str], most: int) -> dict[str, tuple[str, ...]]:
        """See `Store.naming`."""
        with self._read():
            return leads((CALLED, NAMING), self._index.shards(view), view, keys, most, self._allowed(view))

    def anchor_densities(self, view: View, ids: Sequence[str]) -> dict[str, float]:
        """See `Store.anchor_densities`."""
        with self._read():
            places = searching.located(self._index.shards(view), view, ids)
            return {
                unit_id: float(shard.column("anchor_density")[shard.place_of_id[unit_id]])
                for shard, unit_id in places
            }

    def visible(self, view: View, unit_id: str) -> str | None:
        """See `Store.visible`."""
        with self._read():
            row = self._visible_row(view, unit_id)
            if row is None:
                return "not found"
            if view.as_of is not None:
                then = {unit.id: unit for unit in self._index.past_units(view)}
                [at] = self._run("superseded_at", {"key": row[0]}).fetchone()
                return None if unit_id in then else hidden_by(view, unit_of(row), row[3], at)
            return hidden_by(view, unit_of(row), row[3])

    def speakers(self, view: View) -> tuple[str, ...]:
        """See `Store.speakers`."""
        with self._read():
            names = {name for shard in self._index.shards(view) for name in shard.speakers if name}
        return tuple(sorted(names))

    # ----------------------------------------------------------------------------------------- searching

    def lexical_candidates(self, view: View, query: LexicalQuery, depth: int, deadline: Deadline) -> Proposal:
        """See `Store.lexical_candidates`."""
        with self._read():
            return searching.propose(self._index.shards(view), view, query, depth, deadline, self._allowed(view))

    def lexical_evidence(self, view: View, terms: Sequence[str], ids: Sequence[str]) -> LexicalEvidence:
        """See `Store.lexical_evidence`."""
        with self._read():
            return searching.evidence(self._index.shards(view), view, terms, ids)

    def dense_candidates(self, view: View, query: DenseQuery, depth: int, deadline: Deadline) -> Proposal:
        """See `Store.dense_candidates`. The funnel is one sweep of a few milliseconds: it is not cut short."""
        with self._read():
            if self.space() != query.space:
                return Proposal(())
            found = searching.propose_dense(self._index.shards(view), view, query, depth, self._allowed(view))
            return Proposal(found.ids, exhausted=deadline.expired())

    def dense_evidence(self, view: View, space: str, ids: Sequence[str]) -> DenseEvidence:
        """See `Store.dense_evidence`."""
        with self._read():
            # An earlier version has no vector: the one that is kept is of the present words.
            now = {
                unit_id
                for shard, unit_id in searching.located(self._index.shards(view), view, ids)
                if shard.past is None
            }
            keys = self._keys(view, [unit_id for unit_id in ids if unit_id in now])
            rows = self._run("vectors_of_units", {"space": space, "keys": json.dumps([*keys])}).fetchall()
        matrix = [vector_of(row) for row in rows]
        return DenseEvidence(tuple(keys[row[0]] for row in rows), np.array(matrix, dtype=np.float32))

    def hyper_candidates(self, view: View, query: HyperQuery, depth: int, deadline: Deadline) -> Proposal:
        """See `Store.hyper_candidates`."""
        with self._read():
            shards = self._index.shards(view)
            for shard in shards:
                self._index.encode(shard, shard.ids, deadline)
            return searching.propose_hyper(shards, view, query, depth, self._allowed(view))

    def hyper_evidence(self, view: View, query: HyperQuery, ids: Sequence[str]) -> HyperEvidence:
        """See `Store.hyper_evidence`."""
        with self._read():
            shards = self._index.shards(view)
            places = searching.located(shards, view, ids)
            parts = [np.zeros((0, len(HYPER_FIELDS)), dtype=np.int64)]
            for shard in shards:
                here = [unit_id for owner, unit_id in places if owner is shard]
                self._index.encode(shard, here, None)
                parts.append(shard.hyper.distances(query, here))
            found = tuple(unit_id for shard in shards for owner, unit_id in places if owner is shard)
            return HyperEvidence(found, np.concatenate(parts), sum(shard.unit_count for shard in shards))

    def _allowed(self, view: View) -> frozenset[int] | None:
        """Return the keys that pass the view's filters, or None when it has none."""
        if view.filters is None and view.as_of is None:
            return None
        visible, values = where(view)
        return frozenset(key for (key,) in self._run("matching_keys", values, visible=visible))

    # ------------------------------------------------------------------------------------------- vectors

    def space(self) -> str | None:
        """See `Store.space`."""
        with self._read():
            return self._index.space()

    def agree_on_space(self, space: str) -> None:
        """See `Store.agree_on_space`."""
        with self._write():
            self._run("agree", {"name": _SPACE, "value": space})
            self._index.changed()

    def waiting(self, space: str, limit: int) -> list[Unit]:
        """See `Store.waiting`."""
        with self._read():
            rows = self._run("waiting_units", {"space": space, "limit": limit}).fetchall()
        return [unit_of(row) for row in rows]

    def waiting_count(self, space: str) -> int:
        """See `Store.waiting_count`."""
        with self._read():
            return int(self._run("waiting_count", {"space": space}).fetchone()[0])

    def put_vectors(self, space: str, units: Sequence[Unit], vectors: NDArray[np.float32]) -> int:
        """See `Store.put_vectors`."""
        written = 0
        with self._write():
            agreed = self.space()
            if agreed is None:
                self._run("agree", {"name": _SPACE, "value": space})
            elif agreed != space:
                raise EmbeddingSpaceError(
                    f"the store holds vectors of {agreed}, not of {space}; run `holdfast reembed`"
                )
            for unit, vector in zip(units, vectors, strict=True):
                data = np.ascontiguousarray(vector, dtype="<f4").tobytes()
                row = {**columns(unit), "space": space, "vector": data, "checksum": zlib.crc32(data)}
                found = self._run("put_vector", row).fetchall()
                for (key,) in found:
                    self._record(key, unit)
                written += len(found)
        with self._read():
            self._index.follow()
        return written

    # ------------------------------------------------------------------------------------------ contexts

    def access_counts(self, view: View, ids: Sequence[str]) -> tuple[dict[str, int], int]:
        """See `Store.access_counts`."""
        with self._read():
            keys = self._keys(view, ids)
            rows = self._run("access_counts", {"keys": json.dumps([*keys])}).fetchall()
            owners = (view.user, GLOBAL)
            most = [
                self._run("most_accessed", {"tenant": view.tenant, "user": user}).fetchone()[0] for user in owners
            ]
        return {keys[key]: count for key, count in rows}, max(most)

    def count_access(self, view: View, ids: Sequence[str]) -> None:
        """See `Store.count_access`."""
        with self._write():
            keys = self._keys(view, ids)
            self._run("count_access", {"tenant": view.tenant, "user": view.user, "keys": json.dumps([*keys])})

    def put_document(self, document: CoreDocument) -> None:
        """See `Store.put_document`."""
        row = {
            "tenant": document.tenant, "user": document.user or GLOBAL, "name": document.name, "path": document.path,
            "core": int(document.core), "body": document.body, "checksum": zlib.crc32(document.body),
        }  # fmt: skip
        with self._write():
            self._run("put_document", row)

    def documents(self, view: View) -> list[CoreDocument]:
        """See `Store.documents`."""
        with self._read():
            rows = self._run("owner_documents", {"tenant": view.tenant, "user": view.user}).fetchall()
        found = []
        for _, user, name, path, core, body, checksum in rows:
            if zlib.crc32(body) != checksum:
                raise DamagedStoreError(f"the document {shown(name)} fails its checksum; ingest it again")
            found.append(CoreDocument(view.tenant, user or None, name, body, path, bool(core)))
        return found

    def document_owners(self) -> list[tuple[str, str]]:
        """See `Store.document_owners`."""
        with self._read():
            return [(tenant, user) for tenant, user in self._run("document_owners", {})]

    def _keys(self, view: View, ids: Sequence[str]) -> dict[int, str]:
        places = searching.located(self._index.shards(view), view, ids)
        return {shard.keys[shard.place_of_id[unit_id]]: unit_id for shard, unit_id in places}

    # ------------------------------------------------------------------------------------------ operating

    def stats(self, view: View) -> Stats:
        """See `Store.stats`."""
        keys = {"tenant": view.tenant, "user": view.user}
        with self._read():
            count, sessions, earliest, latest, versions = self._run("owner_stats", keys).fetchone()
            kinds = dict(self._run("owner_kinds", keys).fetchall())
            scopes = dict(self._run("owner_scopes", keys).fetchall())
            pages = self._connection.execute("PRAGMA page_count").fetchone()[0]
            page_size = self._connection.execute("PRAGMA page_size").fetchone()[0]
            return Stats(
                units=count,
                versions=versions,
                sessions=sessions,
                by_kind=kinds,
                by_scope=scopes,
                earliest=from_iso(earliest) if earliest else None,
                latest=from_iso(latest) if latest else None,
                store_units=self._run("store_units", {}).fetchone()[0],
                store_bytes=pages * page_size,
                schema_version=schema_version(self._connection),
                location=self._location,
            )

    def verify(self) -> list[Problem]:
        """See `Store.verify`."""
        with self._read():
            problems = [
                Problem(f"SQLite reports: {line}", "restore a backup; the file has lost bytes")
                for (line,) in self._connection.execute("PRAGMA integrity_check")
                if line != "ok"
            ]
            rows = chain(self._run("all_units", {}), self._run("all_versions", {}))
            problems += [
                Problem(f"vector of unit row {key} fails its checksum", "run `holdfast reembed`")
                for key, vector, checksum in self._run("all_vectors", {})
                if zlib.crc32(vector) != checksum
            ]
            problems += [
                Problem(f"unit row {key} fails its checksum", "restore a backup")
                for key, body, checksum, *_ in rows
                if zlib.crc32(body.encode()) != checksum
            ]
            return problems

    def close(self) -> None:
        """See `Store.close`."""
        with self._lock:
            if not self._closed and os.getpid() == self._process:
                try:
                    with translated(self._location):
                        self._index.save()
                finally:
                    self._connection.close()
            self._closed = True
            self._index.clear()

    # ------------------------------------------------------------------------------------------ plumbing

    def _fingerprint(self, derivation: Derivation) -> str:
        """Return what a snapshot must agree with: this store, and the way its index is derived."""
        with self._read():
            [identity] = self._run("agreed", {"name": _IDENTITY}).fetchone() or [""]
        if not identity:
            identity = os.urandom(16).hex()
            with self._write():
                self._run("agree", {"name": _IDENTITY, "value": identity})
        return f"{identity} {derivation.fingerprint}"

    def _run(self, name: str, values: Mapping[str, JSON], *, visible: str = "") -> sqlite3.Cursor:
        statement = queries()[name]
        return self._connection.execute(statement.replace("{where}", visible) if visible else statement, values)

    def _find(self, tenant: str, user: str | None, unit_id: str) -> Row | None:
        keys = {"tenant": tenant, "user": user or GLOBAL, "id": unit_id}
        row: Row | None = self._run("find_unit", keys).fetchone()
        return row

    def _visible_row(self, view: View, unit_id: str) -> Row | None:
        """Return the owner's unit of that id, else the global one; None for any other owner's."""
        for user in (view.user, None):
            row = self._find(view.tenant, user, unit_id)
            if row is not None and (view.agent is None or agent_matches(view, unit_of(row))):
                return row
        return None

    @contextmanager
    def _reading(self) -> Iterator[None]:
        if self._closed:
            raise ClosedStoreError("this memory is closed; open it again")
        if os.getpid() != self._process:
            raise ClosedStoreError("this memory was opened by the parent process; open it again after a fork")
        with translated(self._location):
            yield

    @contextmanager
    def _read(self) -> Iterator[None]:
        with self._lock, self._reading():
            yield

    @contextmanager
    def _write(self) -> Iterator[None]:
        """Run a block as one transaction: all of it or nothing."""
        with self._lock, self._reading():
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise


def _beside(location: str) -> Path | None:
    """Return where the snapshot of a store lies; a store in memory has none."""
    return None if location == ":memory:" else Path(f"{location}.index")
