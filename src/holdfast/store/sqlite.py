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

from holdfast.errors import ClosedStoreError, InputError, NotFoundError, shown
from holdfast.settings import StoreSettings
from holdfast.store import index
from holdfast.store.base import Analyse, LexicalEvidence, LexicalQuery, Order, Problem, Proposal
from holdfast.store.migrate import open_connection, schema_version, translated
from holdfast.store.queries import queries
from holdfast.store.rows import GLOBAL, Row, agent_matches, columns, forget_read_rows, hidden_by, unit_of, where
from holdfast.types import JSON, Analysis, Deadline, Draft, Stats, Unit, View, Written, from_iso

_EVERYTHING = -1  # SQLite's "no limit"


class SqliteStore:
    """Units in one SQLite file. Shared between threads by a lock; refuses to be used across a fork."""

    def __init__(self, connection: sqlite3.Connection, location: str, analyse: Analyse) -> None:
        self._connection = connection
        self._location = location
        self._analyse = analyse
        self._lock = threading.RLock()
        self._process = os.getpid()
        self._closed = False
        self._shards: dict[tuple[str, str], index.Shard] = {}
        self._followed = 0
        self._data_version = -1

    @classmethod
    def open(cls, location: str | Path, settings: StoreSettings, analyse: Analyse) -> SqliteStore:
        """Open or create the store at `location` (`:memory:` keeps nothing).

        Raises:
            StoreError: the file is foreign, newer, damaged, read-only or busy; the message says what to do.
        """
        return cls(open_connection(str(location), settings), str(location), analyse)

    # ------------------------------------------------------------------------------------------- writing

    def put(self, drafts: Sequence[Draft]) -> list[Written]:
        """See `Store.put`."""
        fresh: dict[int, Analysis] = {}
        with self._write():
            written = [self._put_one(draft, fresh) for draft in drafts]
        self._follow(fresh)
        return written

    def _put_one(self, draft: Draft, fresh: dict[int, Analysis]) -> Written:
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
        fresh[key] = draft.analysis
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
        self._follow({row[0]: analysis})
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
        self._run("supersede_unit", {"by": unit.id, "key": row[0]})
        self._record(row[0], unit)

    def _record(self, key: int, unit: Unit) -> None:
        self._run("record_change", {"tenant": unit.tenant, "user": unit.user or GLOBAL, "key": key})

    # ------------------------------------------------------------------------------------------- reading

    def units(self, view: View, ids: Sequence[str]) -> dict[str, Unit]:
        """See `Store.units`."""
        keys = {"tenant": view.tenant, "user": view.user, "ids": json.dumps([*ids])}
        with self._read():
            rows = self._run("find_units", keys).fetchall()
        # Global units come first, so that a user's own of the same id takes their place.
        return {unit.id: unit for unit in map(unit_of, rows) if agent_matches(view, unit)}

    def scan(self, view: View, *, order: Order, limit: int | None) -> Iterator[Unit]:
        """See `Store.scan`."""
        with self._read():
            visible, values = where(view)
            values["limit"] = _EVERYTHING if limit is None else limit
            rows = self._run(f"scan_{order}", values, visible=visible).fetchall()
        return map(unit_of, rows)

    def history(self, view: View, unit_id: str) -> list[Unit]:
        """See `Store.history`."""
        with self._read():
            row = self._visible_row(view, unit_id)
            if row is None:
                return []
            return [unit_of(old) for old in self._run("unit_versions", {"key": row[0]})] + [unit_of(row)]

    def neighbours(self, view: View, unit_id: str, *, before: int, after: int) -> list[Unit]:
        """See `Store.neighbours`."""
        with self._read():
            row = self._visible_row(view, unit_id)
            if row is None or (unit := unit_of(row)).session is None:
                return []
            values = columns(unit)
            earlier = self._run("session_before", {**values, "limit": before}).fetchall()
            later = self._run("session_after", {**values, "limit": after}).fetchall()
        around = [unit_of(found) for found in (*reversed(earlier), *later)]
        return [unit for unit in around if agent_matches(view, unit)]

    def visible(self, view: View, unit_id: str) -> str | None:
        """See `Store.visible`."""
        with self._read():
            row = self._visible_row(view, unit_id)
        return "not found" if row is None else hidden_by(view, unit_of(row), row[3])

    def speakers(self, view: View) -> tuple[str, ...]:
        """See `Store.speakers`."""
        with self._read():
            names = {name for shard in self._owner_shards(view) for name in shard.speakers if name}
        return tuple(sorted(names))

    # ----------------------------------------------------------------------------------------- searching

    def lexical_candidates(self, view: View, query: LexicalQuery, depth: int, deadline: Deadline) -> Proposal:
        """See `Store.lexical_candidates`."""
        with self._read():
            allowed = None
            if view.filters is not None:
                visible, values = where(view)
                allowed = frozenset(key for (key,) in self._run("matching_keys", values, visible=visible))
            return index.propose(self._owner_shards(view), view, query, depth, deadline, allowed)

    def lexical_evidence(self, view: View, terms: Sequence[str], ids: Sequence[str]) -> LexicalEvidence:
        """See `Store.lexical_evidence`."""
        with self._read():
            return index.evidence(self._owner_shards(view), view, terms, ids)

    def _owner_shards(self, view: View) -> list[index.Shard]:
        self._follow({})
        return [self._shard(view.tenant, view.user), self._shard(view.tenant, GLOBAL)]

    def _shard(self, tenant: str, user: str) -> index.Shard:
        shard = self._shards.get((tenant, user))
        if shard is None:
            shard = self._shards[tenant, user] = self._load(tenant, user)
        return shard

    def _load(self, tenant: str, user: str) -> index.Shard:
        shard = index.Shard()
        with shard.bulk():
            for row in self._run("owner_units", {"tenant": tenant, "user": user}):
                unit = unit_of(row, remember=False)
                shard.add(row[0], unit, self._analyse(unit), superseded=row[3] is not None)
        return shard

    def _follow(self, fresh: Mapping[int, Analysis]) -> None:
        """Bring the loaded shards up to date with the feed; `fresh` holds analyses this process already has."""
        with self._lock, self._reading():
            version = self._connection.execute("PRAGMA data_version").fetchone()[0]
            if version == self._data_version and not fresh:
                return
            if not self._shards:
                self._followed = self._run("last_change", {}).fetchone()[0]
            for seq, tenant, user, key in self._run("changes_since", {"seq": self._followed}).fetchall():
                self._followed = seq
                shard = self._shards.get((tenant, user))
                if shard is not None:
                    self._refresh(shard, key, fresh.get(key))
            self._data_version = version

    def _refresh(self, shard: index.Shard, key: int, analysis: Analysis | None) -> None:
        row = self._run("unit_by_key", {"key": key}).fetchone()
        if row is None:
            shard.remove(key)
        else:
            unit = unit_of(row)
            shard.add(key, unit, analysis or self._analyse(unit), superseded=row[3] is not None)

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
                Problem(f"unit row {key} fails its checksum", "restore a backup")
                for key, body, checksum, *_ in rows
                if zlib.crc32(body.encode()) != checksum
            ]
            return problems

    def close(self) -> None:
        """See `Store.close`."""
        with self._lock:
            if not self._closed and os.getpid() == self._process:
                self._connection.close()
            self._closed = True
            self._shards.clear()
            forget_read_rows()

    # ------------------------------------------------------------------------------------------ plumbing

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
