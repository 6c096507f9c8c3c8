"""Backups of a PostgreSQL store: stores of one file each, recorded, so that an erasure reaches them too.

A file lies on the machine of the process that made it, and only a process there can reach it: on another one, an
erasure notes what the file has yet to lose, names it, and leaves the rest to whoever forgets or finishes over there.
"""

from __future__ import annotations

import platform
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import datetime
from pathlib import Path

from holdfast.errors import ForeignStoreError, StoreError
from holdfast.settings import StoreSettings
from holdfast.store.contract import Derivation
from holdfast.store.copying import Copyable, copy_store
from holdfast.store.postgres.failures import translated
from holdfast.store.postgres.postgres_database import PostgresDatabase
from holdfast.store.postgres.schema import SCHEMA, connect
from holdfast.store.rows import GLOBAL, Row
from holdfast.store.sqlite.migrate import identity_of
from holdfast.store.sqlite.purge import COPY_PATIENCE_MS, Doomed, erase_copy, new_file, pieces_of, remove_files
from holdfast.store.sqlite.sqlite_store import SqliteStore
from holdfast.types import Document, View, iso


def here() -> str:
    """Return the name of this machine: a path means something on one machine alone."""
    return platform.node()


class Copies:
    """The backups that this store knows of."""

    def __init__(self, database: PostgresDatabase) -> None:
        self._database = database

    # ------------------------------------------------------------------------------------------------ making

    def make(self, store: Copyable, derivation: Derivation, path: Path, at: datetime) -> int:
        """Copy a store to a new file, read it back, and record where it lies; return its units.

        Raises:
            InputError: the path cannot be used.
            StoreError: the copy is not what was copied; nothing of it is left.
        """
        target = new_file(path)
        try:
            return self._fill(store, derivation, target, at)
        except BaseException:
            remove_files(target)
            self._forget(target)
            raise

    def _fill(self, store: Copyable, derivation: Derivation, target: Path, at: datetime) -> int:
        settings = StoreSettings(busy_timeout_ms=self._database.patience_ms)
        with closing(SqliteStore.open(target, settings, derivation)) as copy:
            # Recorded before it is filled: a copy that an interruption leaves behind is still known to an erasure.
            with self._database.everywhere(writing=True) as connection:
                made = {"host": here(), "path": str(target), "at": iso(at), "identity": copy.identity}
                connection.execute(self._database.statement("record_backup"), made)
            done = copy_store(store, copy)
        if not done.whole:
            raise StoreError(
                f"the copy at {target} is not what was copied ({', '.join(done.differing)}); it was removed; check "
                "the disk"
            )
        return done.units

    def _forget(self, target: Path) -> None:
        with self._database.everywhere(writing=True) as connection:
            connection.execute(self._database.statement("forget_backup"), {"host": here(), "path": str(target)})

    # ----------------------------------------------------------------------------------------------- erasing

    def note(
        self, rows: Sequence[Row], units: Sequence[Doomed], documents: Sequence[Document], owner: View | None
    ) -> list[bytes]:
        """Note, in the erasing transaction, what every copy has to lose; return what the proof will look for."""
        with self._as_owner():
            if self._database.run("backups").fetchone() is None:
                return []
        notes = [("unit", user, name) for _, _, user, name in units]
        notes += [("document", one.user or GLOBAL, one.name) for one in documents]
        notes += [("owner", owner.user, "")] if owner is not None else []
        kinds, users, names = (list(one) for one in zip(*notes, strict=True)) if notes else ([], [], [])
        pieces = pieces_of(self._database.run, rows, documents)
        with self._as_owner():
            self._database.run("note_copies", {"kinds": kinds, "users": users, "ids": names})
        return pieces

    @contextmanager
    def _as_owner(self) -> Iterator[None]:
        with self._database.as_owner():  # tenants do not see where copies lie
            yield

    def erase(self, pieces: Sequence[bytes] = ()) -> tuple[list[str], list[str]]:
        """Erase from the copies what is noted; return those that could not be changed, and those that are gone.

        What could not be changed is tried again by the next one that forgets or finishes.
        """
        unreached, missing = [], []
        with self._database.everywhere() as connection:
            noted = connection.execute(self._database.statement("noted_copies")).fetchall()
        for host, path, identity in noted:
            if host != here():
                unreached.append(f"{path} (on {host}: run `holdfast postgres vacuum` there)")
                continue
            try:
                gone = self._erase_one(path, identity, pieces)
            except (StoreError, OSError) as error:
                unreached.append(f"{path} ({error}; the next `holdfast postgres vacuum` tries again)")
                continue
            missing += [f"{path} ({gone})"] if gone else []
            with self._database.everywhere(writing=True) as connection:
                connection.execute(self._database.statement("forget_notes"), {"host": host, "path": path})
        if noted:
            self._rewrite_notes()
        return unreached, missing

    def _erase_one(self, path: str, identity: str, pieces: Sequence[bytes]) -> str:
        """Erase from one copy; return why it is not there, or nothing."""
        with self._database.everywhere() as connection:
            rows = connection.execute(
                self._database.statement("notes_of_copy"), {"host": here(), "path": path}
            ).fetchall()
        try:
            if not Path(path).is_file():
                return "not found: it was moved or deleted"
            if identity_of(path, COPY_PATIENCE_MS) != identity:
                return "another store lies there now, and is left alone"
            erase_copy(path, rows, pieces, COPY_PATIENCE_MS)
        except ForeignStoreError:
            return "no Holdfast store lies there now; the file is left alone"
        return ""

    def _rewrite_notes(self) -> None:
        """Leave no bytes of notes that are done: they name what was erased."""
        address = self._database.address
        with connect(address.conninfo) as connection, translated(address.shown):
            connection.execute(f"VACUUM FULL {SCHEMA}.copies")
