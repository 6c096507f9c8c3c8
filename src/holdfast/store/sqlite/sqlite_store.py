"""The embedded store: one SQLite file, and an index of it in this process.

Every write is one transaction in WAL mode with `synchronous=FULL`: when a call returns, its words survive a kill
and a power cut. The index is loaded owner by owner when first asked, and follows the file's feed of changes, so
that two processes on one file read each other's writes.
"""

from __future__ import annotations

import logging
import os
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from itertools import chain
from pathlib import Path
from sqlite3 import Connection, Cursor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import DamagedStoreError, EmbeddingSpaceError, StoreError
from holdfast.kernels.vectors import halve
from holdfast.settings import StoreSettings
from holdfast.store.contract import Derivation, Problem, Promotion, Reading, SpaceChange, Update
from holdfast.store.erasure import ERASED
from holdfast.store.rows import GLOBAL, UnitRow, find_unfit, unit_keys, unit_of
from holdfast.store.sqlite import index_file
from holdfast.store.sqlite.live_index import LiveIndex
from holdfast.store.sqlite.migrate import (
    IN_MEMORY,
    close_connection,
    open_connection,
    refuse_other_names,
    schema_version,
    translate_errors,
)
from holdfast.store.sqlite.purge import Eraser, back_up
from holdfast.store.sqlite.sqlite_database import Database
from holdfast.store.sqlite.sqlite_reading import SqliteReading
from holdfast.store.updates import UpdateWriter
from holdfast.store.writing import Writer
from holdfast.types import Analysis, Document, Draft, Erasure, Stats, Unit, View, WriteResult, from_iso

_RunOnCursor = Callable[[str, Mapping[str, Any]], Cursor]


def problems_in(connection: Connection, run: _RunOnCursor) -> list[Problem]:
    """Return what is wrong, inside a read transaction; `run` runs a query by its name."""
    pages = [
        Problem(f"SQLite reports: {line}", "restore a backup; the file has lost bytes")
        for (line,) in connection.execute("PRAGMA integrity_check")
        if line != "ok"
    ]
    vectors = [
        Problem(f"vector of unit row {key} {why}", "run `holdfast reembed`")
        for key, why in find_unfit(run("all_vectors", {}))
    ]
    rows = chain(run("all_units", {}), run("all_versions", {}))
    units = [problem for row in rows if (problem := _problem(row))]
    fates = [
        Problem(f"unit row {key} is superseded or covered by nothing that exists", "restore a backup")
        for (key,) in run("odd_fates", {"erased": ERASED})
    ]
    return [*pages, *vectors, *units, *fates]


def _problem(row: UnitRow) -> Problem | None:
    try:
        unit_of(row)
    except DamagedStoreError as error:
        return Problem(str(error).partition("; ")[0], "restore a backup")
    return None


log = logging.getLogger("holdfast")
# So many analyses of other units are written with a transaction: a tenth of a second after an upgrade.
_WRITTEN_BESIDE = 1_000


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
        refuse_other_names(place)
        connection = open_connection(place, settings)
        try:
            store = cls(Database(connection, place, name), derivation)
        except BaseException:
            close_connection(connection, place)
            raise
        if name != IN_MEMORY:
            index_file.remove_misplaced(name, place)
        store._eraser.finish_if_possible()
        return store

    def close(self) -> None:
        """See `Store.close`."""
        if not self._database.is_usable():
            return
        with self._database.lock:
            if self._database.is_usable():
                try:
                    with translate_errors(self._database.location):
                        self._index.save()
                except (StoreError, OSError) as error:
                    log.warning("the index is not saved next to the store, so opening it takes longer: %s", error)
            self._database.close()
            self._index.clear()

    def __str__(self) -> str:
        return self._database.name

    @property
    def identity(self) -> str:
        """Return what tells this store and its copies from all others."""
        return self._database.identity

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
    def _write(self) -> Iterator[UpdateWriter]:
        """Run a block as one transaction; then follow it, and go on with an erasure that a reader held up.

        What was written is kept, whatever becomes of the index: the next question brings it up to date.
        """
        marker = UpdateWriter(self._database, self._place)
        with self._database.transaction():
            yield marker
            self._keep_analyses(marker)
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
            log.warning("what was written is stored; the index is brought up to date by the next question: %s", error)

    def _keep_analyses(self, marker: UpdateWriter) -> None:
        """Write what was derived from the units of this transaction, and some of what waits to be written."""
        made = marker.fresh.units.items()
        self._index.analyses.write({key: (content, analysis) for key, (content, _, analysis) in made})
        for _, _, key, before, content in marker.promoted:
            self._run("keep_analysis", {"key": key, "before": before, "content": content})
        self._index.analyses.write_waiting(_WRITTEN_BESIDE)

    def put(self, drafts: Sequence[Draft], *, retry_seconds: float = 0.0) -> list[WriteResult]:
        """See `Store.put`."""
        with self._write() as marker:
            return Writer(self._database, marker).put(drafts, retry_seconds)

    def revise(self, view: View, unit_id: str, revise: Callable[[Unit], tuple[Unit, Analysis]]) -> Unit:
        """See `Store.revise`."""
        with self._write() as marker:
            return Writer(self._database, marker).revise(view, unit_id, revise)

    def apply(self, marks: Sequence[Update]) -> list[WriteResult | None]:
        """See `Store.apply`."""
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
            self._index.fit_vectors(vectors.shape[1])
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

    def pending(self, space: str, limit: int, after: Unit | None = None) -> list[Unit]:
        """See `Store.pending`."""
        with self._database.in_use():
            row = None if after is None else self._database.find(after.tenant, after.user, after.id)
            known = {"space": space, "limit": limit, "after": 0 if row is None else row[0]}
            rows = self._run("waiting_units", known).fetchall()
        return [unit_of(row) for row in rows]

    # ------------------------------------------------------------------------------- documents and erasure

    def forget(
        self, view: View, ids: Sequence[str], documents: Sequence[Document] = (), *, dry_run: bool = False,
        owner: bool = False, compact: bool = False, progress: Callable[[str], None] = lambda _step: None,
    ) -> Erasure:  # fmt: skip
        """See `Store.forget`."""
        if dry_run:
            return self._eraser.preview(view, ids, owner=owner)
        return self._eraser.forget(view, ids, documents, owner=owner, compact=compact, progress=progress)

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

    def reset_caches(self) -> None:
        """Forget all that is derived from units: shards, hypervectors, units read, and the saved index.

        What is asked for next derives it again; nothing is lost but time.
        """
        with self._database.in_use():
            self._index.drop_all()

    def tenants(self) -> list[str]:
        """See `Copyable.tenants`."""
        with self._database.in_use():
            return [name for (name,) in self._run("tenants", {})]

    @contextmanager
    def loading(self, _units: int) -> Iterator[Callable[[Sequence[Update]], list[WriteResult | None]]]:
        """See `Copyable.loading`: nothing is derived before it is asked for, so that there is no quicker way."""
        yield self.apply

    def verify(self) -> list[Problem]:
        """See `Store.verify`."""
        with self._database.snapshot():
            return problems_in(self._database.connection, self._run)
