"""Copies of a SQLite store that the engine made: recorded, so that an erasure reaches them too (C19)."""

from __future__ import annotations

import logging
import os
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from datetime import datetime
from pathlib import Path

from holdfast.errors import BusyStoreError, ForeignStoreError, InputError, StoreError, shown
from holdfast.settings import StoreSettings
from holdfast.store import snapshot
from holdfast.store.database import Database
from holdfast.store.erasure import Run, erase, erase_owner, residue, resting_on, surviving
from holdfast.store.migrate import PRIVATE, close_connection, identity_of, open_connection, translated
from holdfast.store.queries import queries
from holdfast.store.rows import GLOBAL, unit_of
from holdfast.types import JSON, Document, Unit, View, iso

log = logging.getLogger("holdfast")
# What SQLite puts beside a database.
_OF_SQLITE = ("-wal", "-shm", "-journal")
# What is noted for a copy: a kind, and the keys of a unit, a document or an owner.
Note = tuple[str, str, str, str]


def files_of(location: str) -> list[str]:
    """Return the files of a store that exist."""
    return [path for side in ("", *_OF_SQLITE, ".index") if Path(path := f"{location}{side}").exists()]


def back_up(database: Database, path: Path, at: datetime) -> int:
    """Copy the store while it is in use, read the copy back, and record where it lies; return its units.

    Raises:
        InputError: the path cannot be used.
    """
    target = path.resolve()
    if target.exists():
        raise InputError(f"{shown(str(path))} exists; name a file that does not, so that nothing is overwritten")
    if not target.parent.is_dir():
        raise InputError(f"the folder {shown(str(target.parent))} does not exist; create it first")
    try:
        os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE))
    except OSError as error:
        raise StoreError(f"{target}: {error.strerror}; no copy was made; name another file") from error
    # From here on the file is ours to remove.
    try:
        # Recorded before it is filled: a copy that an interruption leaves behind is still known to an erasure.
        with database.transaction():
            database.run("record_backup", {"path": str(target), "at": iso(at)})
        return _copy(database, target)
    except BaseException:
        _drop_copy(database, target)
        raise


def _copy(database: Database, target: Path) -> int:
    with database.in_use(), closing(sqlite3.connect(target, isolation_level=None)) as copy:
        database.connection.backup(copy)
        [verdict] = copy.execute("PRAGMA integrity_check").fetchone()
        [count] = copy.execute(queries()["store_units"]).fetchone()
    if verdict != "ok":
        raise StoreError(f"the copy at {target} cannot be read back ({verdict}); it was removed; check the disk")
    return int(count)


def _drop_copy(database: Database, target: Path) -> None:
    """Leave nothing of a copy that failed."""
    for side in ("", *_OF_SQLITE):
        Path(f"{target}{side}").unlink(missing_ok=True)
    try:
        with database.transaction():
            database.run("forget_backup", {"path": str(target)})
    except StoreError as error:  # why it failed is what the caller has to hear
        log.warning("a copy that is not there stays recorded: %s", error)


def note_copies(database: Database, units: Sequence[Unit], documents: Sequence[Document], owner: View | None) -> None:
    """Note, in the erasing transaction, what every copy has to lose: an interruption must not leave it there."""
    for (path,) in database.run("backups", {}).fetchall():
        if path == database.location:  # a copy knows of itself, too
            continue
        notes = [("unit", unit.tenant, unit.user, unit.id) for unit in units]
        notes += [("document", one.tenant, one.user, one.name) for one in documents]
        notes += [("owner", owner.tenant, owner.user, "")] if owner is not None else []
        for kind, tenant, user, name in notes:
            keys = {"tenant": tenant, "user": user or GLOBAL, "id": name}
            database.run("note_copy", {"path": path, "kind": kind, **keys})


def erase_copies(database: Database, pieces: Sequence[bytes], *, patience_ms: int) -> tuple[list[str], list[str]]:
    """Erase from the copies what is noted; return those that could not be changed, and those that are gone."""
    unreached, missing = [], []
    for (name,) in database.run("noted_copies", {}).fetchall():
        noted = database.run("notes_of_copy", {"path": name}).fetchall()
        try:
            if not Path(name).is_file():
                missing.append(f"{name} (not found: it was moved or deleted)")
            elif identity_of(name, patience_ms) != database.identity:
                missing.append(f"{name} (another store lies there now, and is left alone)")
            else:
                _erase_copy(name, noted, pieces, patience_ms)
        except ForeignStoreError:
            missing.append(f"{name} (no Holdfast store lies there now; the file is left alone)")
        except (StoreError, OSError) as error:
            unreached.append(f"{name} ({error}; the next write or open tries again)")
            continue
        with database.transaction():
            database.run("forget_notes", {"path": name})
    return unreached, missing


def _erase_copy(path: str, noted: Sequence[Note], pieces: Sequence[bytes], patience_ms: int) -> None:
    """Erase what is noted from a copy, and prove it.

    Raises:
        StoreError: it cannot be changed now, or something is left in it.
    """
    connection = open_connection(path, StoreSettings(busy_timeout_ms=patience_ms))
    try:
        with translated(path, writing=True):
            run = _runner(connection)
            connection.execute("BEGIN IMMEDIATE")
            _erase_noted(run, noted)
            connection.execute("COMMIT")
        with translated(path):
            connection.execute("VACUUM")
            busy, _, _ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            if busy:
                raise BusyStoreError("a reader still holds old bytes")
            snapshot.remove(Path(f"{path}.index"))
            left = {piece for one in files_of(path) for piece in residue(path, one, pieces)}
            if left - surviving(run, left):
                raise StoreError("bytes of it are left in the copy")
    finally:
        close_connection(connection, path)


def _runner(connection: sqlite3.Connection) -> Run:
    def run(name: str, values: Mapping[str, JSON]) -> sqlite3.Cursor:
        return connection.execute(queries()[name], values)

    return run


def _erase_noted(run: Run, noted: Sequence[Note]) -> None:
    def record(key: int, unit: Unit) -> None:
        run("record_change", {"tenant": unit.tenant, "user": unit.user or GLOBAL, "key": key})

    rows = [
        run("find_unit", {"tenant": tenant, "user": user, "id": name}).fetchone()
        for kind, tenant, user, name in noted
        if kind == "unit"
    ]
    known = [unit_of(row) for row in rows if row is not None]
    erase(run, (*known, *resting_on(run, known)), record)
    for kind, tenant, user, name in noted:
        if kind == "document":
            run("erase_document", {"tenant": tenant, "user": user, "name": name})
        if kind == "owner":
            erase_owner(run, tenant, user)
