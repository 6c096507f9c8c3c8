"""The embedded store: one SQLite file, and an index of it in this process.

Every write is one transaction in WAL mode with `synchronous=FULL`: when a call returns, its words survive a kill
and a power cut. The index is loaded owner by owner when first asked, and follows the file's feed of changes, so
that two processes on one file read each other's writes.
"""

from __future__ import annotations

import json
import logging
import os
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from itertools import chain, count
from pathlib import Path
from sqlite3 import Connection, Cursor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import DamagedStoreError, EmbeddingSpaceError, InputError, StoreError, shown
from holdfast.kernels.vectors import halve
from holdfast.settings import StoreSettings
from holdfast.store import snapshot
from holdfast.store.contract import Derivation, Mark, Problem, Promotion, Reading, SpaceChange
from holdfast.store.conversation import given_again, told_apart
from holdfast.store.database import Database
from holdfast.store.erasure import ERASED, Eraser, back_up
from holdfast.store.marks import Marker
from holdfast.store.migrate import IN_MEMORY, close_connection, open_connection, schema_version, translated
from holdfast.store.reading import SqliteReading
from holdfast.store.rows import GLOBAL, Row, unit_keys, unit_of
from holdfast.store.sync import LiveIndex
from holdfast.types import Analysis, Document, Draft, Erasure, Stats, Unit, View, Written, from_iso

Run = Callable[[str, Mapping[str, Any]], Cursor]


def problems_in(connection: Connection, run: Run) -> list[Problem]:
    """Return what is wrong, inside a read transaction; `run` runs a query by its name."""
    pages = [
        Problem(f"SQLite reports: {line}", "restore a backup; the file has lost bytes")
        for (line,) in connection.execute("PRAGMA integrity_check")
        if line != "ok"
    ]
    vectors = [
        Problem(f"vector of unit row {key} fails its checksum", "run `holdfast reembed`")
        for key, vector, checksum in run("all_vectors", {})
        if zlib.crc32(vector) != checksum
    ]
    rows = chain(run("all_units", {}), run("all_versions", {}))
    units = [problem for row in rows if (problem := _problem(row))]
    fates = [
        Problem(f"unit row {key} is superseded or covered by nothing that is known", "restore a backup")
        for (key,) in run("odd_fates", {"erased": ERASED})
    ]
    return [*pages, *vectors, *units, *fates]


def _problem(row: Row) -> Problem | None:
    try:
        unit_of(row)
    except DamagedStoreError as error:
        return Problem(str(error).partition("; ")[0], "restore a backup")
    return None


log = logging.getLogger("holdfast")


# The next position of each conversation that a call writes to.
Positions = dict[tuple[str | None, ...], int]
# Which of the ids that a call asks for somebody has: tenant, user and id.
Taken = set[tuple[str, str, str]]


class SqliteStore:
    """Units in one SQLite file. Shared between threads by a lock; refuses to be used across a fork."""

    def __init__(self, database: Database, derivation: Derivation) -> None:
        self._database = database
        self._run = database.run
        self._index = LiveIndex(database, derivation)
        self._eraser = Eraser(database, self._index)

    @classmethod
    def open(cls, location: str | Path, settings: StoreSettings, derivation: Derivation) -> SqliteStore:
        """Open or create the store at `location` (`:memory:` keeps nothing).

        Raises:
            StoreError: the file is foreign, newer, damaged, read-only or busy; the message says what to do.
        """
        name = str(location)
        place = name if name == IN_MEMORY else os.path.realpath(name)
        connection = open_connection(place, settings)
        try:
            store = cls(Database(connection, place, name), derivation)
        except BaseException:
            close_connection(connection, place)
            raise
        if name != IN_MEMORY:
            snapshot.remove_misplaced(name, place)
        store._eraser.finish_if_possible()
        return store

    def close(self) -> None:
        """See `Store.close`."""
        if not self._database.is_usable():
            return
        with self._database.lock:
            if self._database.is_usable():
                try:
                    with translated(self._database.location):
                        self._index.save()
                except (StoreError, OSError) as error:
                    log.warning("the index is not saved beside the store, so opening it takes longer: %s", error)
            self._database.close()
            self._index.clear()

    # ------------------------------------------------------------------------------------------- reading

    @contextmanager
    def reading(self, view: View) -> Iterator[Reading]:
        """See `Store.reading`. Other threads wait as long as it lasts; other processes do not."""
        with self._database.snapshot():
            yield SqliteReading(view, self._run, self._index, self._place)

    def _place(self) -> str:
        """Return what tells this store from a copy: where it lies, and the number of its file."""
        location = self._database.location
        if location == IN_MEMORY:
            return location
        try:
            return f"{os.path.realpath(location)} {Path(location).stat().st_ino}"
        except OSError:
            return ""

    def space(self) -> str | None:
        """See `Store.space`."""
        with self._database.in_use():
            return self._index.space()

    # ------------------------------------------------------------------------------------------- writing

    @contextmanager
    def _write(self) -> Iterator[Marker]:
        """Run a block as one transaction; then follow it, and go on with an erasure that a reader held up.

        What was written is kept, whatever becomes of the index: the next question brings it up to date.
        """
        marker = Marker(self._database, self._place)
        with self._database.transaction():
            yield marker
            is_erasing = self._eraser.is_pending()
        if is_erasing:
            self._eraser.finish_if_possible()
        try:
            with self._database.snapshot():
                for promotion in marker.promoted:
                    self._index.promoted(*promotion)
                self._index.follow(marker.fresh)
            with self._database.in_use():  # a question that another thread asks would see rows move under it
                self._index.save_when_behind()
        except (StoreError, OSError) as error:
            log.warning("what was written is kept; the index is brought up to date by the next question: %s", error)

    def put(self, drafts: Sequence[Draft], *, retry_seconds: float = 0.0) -> list[Written]:
        """See `Store.put`."""
        with self._write() as marker:
            told = told_apart(drafts, self._last_turns, retry_seconds)
            taken, positions = self._taken(told), Positions()
            return [self._put_one(draft, marker, taken, positions) for draft in told]

    def _taken(self, drafts: Sequence[Draft]) -> Taken:
        """Return which of the ids that drafts ask for first are known already: one look for all of them."""
        asked: dict[tuple[str, str], list[str]] = {}
        for draft in drafts:
            name = draft.unit.id if draft.naming is None else draft.naming(0)
            asked.setdefault((draft.unit.tenant, draft.unit.user or GLOBAL), []).append(name)
        return {
            (tenant, user, name)
            for (tenant, user), ids in asked.items()
            for (name,) in self._run("taken_ids", {"tenant": tenant, "user": user, "ids": json.dumps(ids)})
        }

    def _last_turns(self, unit: Unit, limit: int) -> list[Unit]:
        """Return the last turns of a unit's conversation in the order in which they came, as they were first said."""
        keys = {
            "tenant": unit.tenant,
            "user": unit.user or GLOBAL,
            "session": unit.session,
            "agent": unit.agent or "",
        }
        rows = self._run("last_turns", {**keys, "limit": limit}).fetchall()
        return [self._as_first_said(row) for row in reversed(rows)]

    def _as_first_said(self, row: Row) -> Unit:
        unit = unit_of(row)
        first = self._run("first_version", {"key": row[0]}).fetchone() if unit.version > 1 else None
        return unit if first is None else unit_of(first)

    def _put_one(self, draft: Draft, marker: Marker, taken: Taken, positions: Positions) -> Written:
        unit = draft.unit
        known_as = None if draft.naming else (unit.tenant, unit.user or GLOBAL, unit.id)
        row = self._database.find(unit.tenant, unit.user, unit.id) if known_as in taken else None
        if row is None:
            unit = self._placed(draft, taken, positions)
            key, checksum = self._database.insert(unit, draft.document)
            taken.add((unit.tenant, unit.user or GLOBAL, unit.id))
        else:
            key, known, unit = row[0], unit_of(row), self._restated(row, draft)
            if unit == known:
                return Written(known.id, "duplicate", known.version)
            unit = unit.evolve(version=known.version + 1, recorded_time=draft.unit.recorded_time)
            checksum = self._restate(row, unit, marker)
        for target in unit.supersedes if row is None or draft.id_given else ():
            marker.supersede(unit, target, draft.unit.recorded_time)
        marker.fresh.units[key] = (checksum, unit, draft.analyse(unit))
        return Written(unit.id, "added" if row is None else "updated", unit.version)

    def _restated(self, row: Row, draft: Draft) -> Unit:
        """Return what a known unit becomes: an id that the caller gave takes new content, a message stays."""
        known = unit_of(row)
        if not draft.id_given:
            return known.evolve(**given_again(known, draft.unit))
        if known.agent not in (draft.unit.agent, None):
            raise InputError(f"the id {shown(known.id)} is taken by another agent's unit; choose another")
        unit = draft.unit.evolve(
            # Where a unit belongs is fixed at its first version, as its id is: nobody who saw it loses it.
            agent=known.agent,
            session=known.session,
            scope=known.scope,
            position=known.position,
            version=known.version,
            recorded_time=known.recorded_time,
            event_time=draft.unit.event_time if draft.time_given else known.event_time,
        )
        if unit != known:
            self._refuse_taken(row, draft)
        return unit

    def _refuse_taken(self, row: Row, draft: Draft) -> None:
        """Let no document write over what is no part of it, and nobody but a document over its parts."""
        [document] = self._run("document_of_unit", {"key": row[0]}).fetchone()
        if document == draft.document:
            return
        taken = "a unit that is no part of a document" if document is None else f"the document {shown(document)}"
        remedy = "choose another id" if draft.document is None else f"give {shown(draft.document)} another name"
        raise InputError(f"the id {shown(draft.unit.id)} is taken by {taken}; {remedy}")

    def revise(self, view: View, unit_id: str, revise: Callable[[Unit], tuple[Unit, Analysis]]) -> Unit:
        """See `Store.revise`."""
        with self._write() as marker:
            row = self._database.find_seen(view, unit_id)
            known = unit_of(row)
            unit, analysis = revise(known)
            unit = unit.evolve(version=known.version + 1)
            marker.fresh.units[row[0]] = (self._restate(row, unit, marker), unit, analysis)
            kept = self._database.find(unit.tenant, unit.user, unit.id)
        return unit if kept is None else unit_of(kept)

    def _restate(self, row: Row, unit: Unit, marker: Marker) -> int:
        """Write a new version; a summary of what the unit no longer says, or says for a time only, is withdrawn."""
        known = unit_of(row)
        checksum = self._database.replace(row[0], unit)
        ends = unit.expires_at is not None or unit.valid_to is not None
        if unit.text != known.text or ends:
            marker.uncover(row, unit.recorded_time)
        if ends:
            marker.release(row)
        return checksum

    def _placed(self, draft: Draft, taken: Taken, positions: Positions) -> Unit:
        """Return a new unit with its place in its conversation, and the id that its place gives it."""
        unit = draft.unit
        if unit.kind != "turn" or draft.document is not None:
            return unit
        position = self._next_position(unit, positions)
        if draft.naming is None:
            return unit if unit.position == position else unit.evolve(position=position)
        return unit.evolve(position=position, id=self._free_id(unit, position, draft.naming, taken))

    def _next_position(self, unit: Unit, positions: Positions) -> int:
        """Return the next place of a session, or of an agent's turns without one; `positions` are of this call."""
        keys = {"tenant": unit.tenant, "user": unit.user or GLOBAL, "session": unit.session}
        conversation = (*keys.values(), unit.agent if unit.session is None else None)
        if conversation not in positions and unit.session is None:
            positions[conversation] = max((turn.position + 1 for turn in self._last_turns(unit, 1)), default=0)
        elif conversation not in positions:
            positions[conversation] = self._run("next_position", keys).fetchone()[0]
        positions[conversation] += 1
        return positions[conversation] - 1

    def _free_id(self, unit: Unit, position: int, naming: Callable[[int], str], taken: Taken) -> str:
        """Return the first id of these words that nobody has; what said them before stands at an earlier place."""
        first = naming(0)
        if (unit.tenant, unit.user or GLOBAL, first) not in taken:
            return first
        tried = map(naming, count(max(position, 1)))
        return next(name for name in tried if self._database.find(unit.tenant, unit.user, name) is None)

    def mark(self, marks: Sequence[Mark]) -> list[Written | None]:
        """See `Store.mark`."""
        with self._write() as marker:
            return [marker.write(one) for one in marks]

    # ------------------------------------------------------------------------------------------- vectors

    def put_vectors(
        self, space: str, units: Sequence[Unit], vectors: NDArray[np.float32], marks: Sequence[Promotion] = ()
    ) -> int:
        """See `Store.put_vectors`."""
        written = 0
        with self._write() as marker:
            agreed = self._index.space()
            if agreed is None:
                marker.write(SpaceChange(space))
            elif agreed != space:
                raise EmbeddingSpaceError(
                    f"the store holds vectors of {agreed}, not of {space}; run `holdfast reembed`"
                )
            self._run("name_space", {"space": space})
            for unit, vector in zip(units, halve(vectors), strict=True):
                data = vector.tobytes()
                checksum = zlib.crc32(data)
                row = {**unit_keys(unit), "space": space, "vector": data, "checksum": checksum}
                for (key,) in self._run("put_vector", row).fetchall():
                    self._database.record_change(key, unit.tenant, unit.user or GLOBAL)
                    marker.fresh.vectors[key] = (checksum, vector.astype(np.float32))
                    written += 1
            for one in marks:
                marker.write(one)
        for owner in {(unit.tenant, unit.user or GLOBAL): unit for unit in units}.values():
            self._measure(owner)
        return written

    def _measure(self, unit: Unit) -> None:
        """Keep what the vectors of a unit's owner need of the first tier, when it is time to measure that."""
        owner = {"tenant": unit.tenant, "user": unit.user or GLOBAL}
        with self._database.in_use():
            funnel, space = self._index.measure_funnel(*owner.values()), self._index.space()
            row = None if funnel is None else self._database.find(unit.tenant, unit.user, unit.id)
        if funnel is not None and row is not None:
            with self._write():
                self._run("put_funnel", {**owner, "space": space, "rows": funnel.rows, "width": funnel.width})
                self._database.record_change(row[0], unit.tenant, unit.user or GLOBAL)  # its followers hear of it

    def waiting(self, space: str, limit: int, after: Unit | None = None) -> list[Unit]:
        """See `Store.waiting`."""
        with self._database.in_use():
            row = None if after is None else self._database.find(after.tenant, after.user, after.id)
            known = {"space": space, "limit": limit, "after": 0 if row is None else row[0]}
            rows = self._run("waiting_units", known).fetchall()
        return [unit_of(row) for row in rows]

    # ------------------------------------------------------------------------------- documents and erasure

    def forget(
        self, view: View, ids: Sequence[str], documents: Sequence[Document] = (), *, dry_run: bool = False,
        owner: bool = False, progress: Callable[[str], None] = lambda _step: None,
    ) -> Erasure:  # fmt: skip
        """See `Store.forget`."""
        if dry_run:
            return self._eraser.preview(view, ids, owner=owner)
        return self._eraser.forget(view, ids, documents, owner=owner, progress=progress)

    def finish_erasing(self) -> bool:
        """See `Store.finish_erasing`."""
        return self._eraser.finish()

    # ------------------------------------------------------------------------------------------ operating

    def backup(self, path: Path, at: datetime) -> int:
        """See `Store.backup`."""
        return back_up(self._database, path, at)

    def stats(self, view: View, *, whole: bool = False) -> Stats:
        """See `Store.stats`."""
        keys = {"tenant": view.tenant, "user": view.user}
        with self._database.snapshot():
            units, sessions, earliest, latest, versions = self._run("owner_stats", keys).fetchone()
            kinds = dict(self._run("owner_kinds", keys).fetchall())
            scopes = dict(self._run("owner_scopes", keys).fetchall())
            space = self._index.space()
            return Stats(
                units=units,
                versions=versions,
                sessions=sessions,
                by_kind=kinds,
                by_scope=scopes,
                earliest=from_iso(earliest) if earliest else None,
                latest=from_iso(latest) if latest else None,
                store_units=self._run("store_units", {}).fetchone()[0] if whole else None,
                store_bytes=self._run("store_bytes", {}).fetchone()[0] if whole else None,
                waiting=self._run("waiting_count", {"space": space}).fetchone()[0] if whole else None,
                space=space,
                schema_version=schema_version(self._database.connection),
                location=self._database.name,
            )

    def verify(self) -> list[Problem]:
        """See `Store.verify`."""
        with self._database.snapshot():
            return problems_in(self._database.connection, self._run)
