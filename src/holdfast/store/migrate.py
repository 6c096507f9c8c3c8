"""Opening a SQLite file: is it ours, is it whole, is it new enough, can it be written; and bringing it up to date."""

from __future__ import annotations

import os
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from holdfast.errors import (
    BusyStoreError,
    DamagedStoreError,
    ForeignStoreError,
    NewerStoreError,
    ReadOnlyStoreError,
    StoreError,
    shown,
)
from holdfast.settings import StoreSettings
from holdfast.store.queries import migrations

# "HOLD": lets `file` and us tell a Holdfast store from any other SQLite file.
APPLICATION_ID = 0x484F4C44
SQLITE_VERSION = sqlite3.sqlite_version
# STRICT tables came with 3.37, JSON functions are always there from 3.38.
_OLDEST_SQLITE = (3, 38, 0)
_SQLITE_HEADER = b"SQLite format 3\x00"
# Memories are private: only their owner reads them.
_FILE_MODE = stat.S_IRUSR | stat.S_IWUSR

# SQLite's primary result codes (https://www.sqlite.org/rescode.html), each with the error it becomes.
_TRANSLATION: dict[int, tuple[type[StoreError], str]] = {
    sqlite3.SQLITE_BUSY: (
        BusyStoreError,
        "another process is writing; try again, or raise store.busy_timeout_ms",
    ),
    sqlite3.SQLITE_LOCKED: (BusyStoreError, "another connection holds it; try again"),
    sqlite3.SQLITE_READONLY: (
        ReadOnlyStoreError,
        "the file or its folder cannot be written; change its permissions",
    ),
    sqlite3.SQLITE_CANTOPEN: (
        ReadOnlyStoreError,
        "the file cannot be opened; check the folder and its permissions",
    ),
    sqlite3.SQLITE_CORRUPT: (
        DamagedStoreError,
        "the file is damaged; run `holdfast doctor`, then restore a backup",
    ),
    sqlite3.SQLITE_NOTADB: (DamagedStoreError, "the file is damaged or not a database; restore a backup"),
    sqlite3.SQLITE_FULL: (StoreError, "the disk is full; nothing was written; make room and try again"),
    sqlite3.SQLITE_IOERR: (
        StoreError,
        "the disk reported an error; nothing was acknowledged; check the device",
    ),
}


@contextmanager
def translated(location: str) -> Iterator[None]:
    """Turn SQLite's errors into ours, once, with the original as cause."""
    try:
        yield
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", None)
        kind, remedy = _TRANSLATION.get(code & 0xFF if code else 0, (StoreError, "run `holdfast doctor`"))
        raise kind(f"{location}: {remedy} (SQLite: {error})") from error
    except UnicodeDecodeError as error:  # sqlite3 lets it through when damaged bytes are no longer text
        raise DamagedStoreError(f"{location}: {_TRANSLATION[sqlite3.SQLITE_CORRUPT][1]} ({error})") from error


def open_connection(location: str, settings: StoreSettings) -> sqlite3.Connection:
    """Return a connection to a store that is ours, whole and of the present schema; create it when missing."""
    if sqlite3.sqlite_version_info < _OLDEST_SQLITE:
        raise StoreError(f"SQLite {SQLITE_VERSION} is too old; Holdfast needs 3.38, so use a newer Python")
    if location != ":memory:":
        _prepare_file(Path(location))
    with translated(location):
        connection = sqlite3.connect(
            location, isolation_level=None, check_same_thread=False, timeout=settings.busy_timeout_ms / 1000
        )
        try:
            _refuse_foreign(connection, location)  # before anything that writes to the file
            _configure(connection)
            _migrate(connection)
        except BaseException:
            connection.close()
            raise
    return connection


def schema_version(connection: sqlite3.Connection) -> int:
    """Return the number of the last migration the file has seen."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _prepare_file(path: Path) -> None:
    """Refuse what is not ours before SQLite touches it, and create a new file that only its owner can read."""
    if path.is_dir():
        raise StoreError(f"{path} is a folder; name a file inside it, such as {path / 'holdfast.db'}")
    if not path.parent.is_dir():
        raise StoreError(f"the folder {path.parent} does not exist; create it first")
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, _FILE_MODE)
    except OSError as error:
        raise ReadOnlyStoreError(f"{path}: {error.strerror}; choose a folder you may write to") from error
    with os.fdopen(descriptor, "rb") as file:
        header = file.read(100)
    if not header:
        return
    if not header.startswith(_SQLITE_HEADER):
        raise ForeignStoreError(
            f"{path} is not a Holdfast store (it starts with {shown(header[:8])}); name another file"
        )
    if len(header) < 100:
        raise DamagedStoreError(f"{path} is cut short at {len(header)} bytes; restore a backup")


def _configure(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")  # law 17: a commit that returned survives a power cut
    connection.execute("PRAGMA secure_delete = ON")  # law 16: deleted bytes are overwritten, on every connection


def _migrate(connection: sqlite3.Connection) -> None:
    """Apply the migrations the file has not seen, in one transaction."""
    latest = migrations()[-1][0]
    if schema_version(connection) == latest:
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        present = schema_version(connection)  # another process may have migrated while we waited for the lock
        for number, script in migrations():
            if number > present:
                for statement in _statements(script):
                    connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {latest}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _refuse_foreign(connection: sqlite3.Connection, location: str) -> None:
    latest = migrations()[-1][0]
    owner = connection.execute("PRAGMA application_id").fetchone()[0]
    tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    if owner != APPLICATION_ID and (owner or tables):
        raise ForeignStoreError(f"{location} is a database of another program; name another file")
    if (found := schema_version(connection)) > latest:
        raise NewerStoreError(
            f"{location} has schema {found}, this Holdfast knows {latest}; upgrade with `pip install -U holdfast`"
        )


def _statements(script: str) -> Iterator[str]:
    """Split a script at its semicolons; `executescript` would commit the transaction it runs in."""
    pending = ""
    for line in script.splitlines(keepends=True):
        pending += line
        if sqlite3.complete_statement(pending):
            yield pending
            pending = ""
