"""Opening a SQLite file: is it ours, is it whole, is it new enough, can it be written; and bringing it up to date."""

from __future__ import annotations

import logging
import os
import re
import sqlite3
import stat
import zlib
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import cache
from importlib import resources
from pathlib import Path
from urllib.parse import quote

import numpy as np

from holdfast.errors import (
    BusyStoreError,
    DamagedStoreError,
    ForeignStoreError,
    NewerStoreError,
    ReadOnlyStoreError,
    StoreError,
    quote_value,
)
from holdfast.kernels.vectors import halve
from holdfast.settings import StoreSettings
from holdfast.store.sqlite import raw_files

log = logging.getLogger("holdfast")
IN_MEMORY = ":memory:"
# What tells this store from any other, and its copies from strangers.
IDENTITY = "identity"
# Is agreed on when all of a file was written under secure deletion: from its first write, or since it was rewritten.
OVERWRITTEN = "overwritten"

# "HOLD": lets `file` and us tell a Holdfast store from any other SQLite file.
APPLICATION_ID = 0x484F4C44
SQLITE_VERSION = sqlite3.sqlite_version
# STRICT tables came with 3.37, JSON functions are always there from 3.38.
_OLDEST_SQLITE = (3, 38, 0)
_SQLITE_HEADER = b"SQLite format 3\x00"
# Memories are private: only their owner reads them.
PRIVATE = stat.S_IRUSR | stat.S_IWUSR
_OF_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_SIDES = ("-wal", "-shm", ".index")
_FILE_HEADER = 100
_FLOAT32 = 4
# A file with more free pages than this after a migration is written anew: it would keep its size for years.
_FREE_SHARE = 0.1

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
    sqlite3.SQLITE_FULL: (StoreError, "the disk is full; make room and try again"),
    sqlite3.SQLITE_IOERR: (StoreError, "the disk reported an error; check the device"),
}
_NO_TEXT = "Could not decode to UTF-8"  # how sqlite3 begins to say that damaged bytes are no longer text
# Only a commit that ran into an error of the device may be on the disk all the same.
_UNDONE = {sqlite3.SQLITE_IOERR: "this write is not acknowledged"}

_NAME = re.compile(r"^-- name: (\w+)\n", re.MULTILINE)


@cache
def queries() -> dict[str, str]:
    """Return every named statement of `sql/queries.sql`."""
    text = (resources.files("holdfast.store.sqlite") / "sql" / "queries.sql").read_text(encoding="utf-8")
    parts = _NAME.split(text)[1:]
    found = {name: body.strip().rstrip(";") for name, body in zip(parts[::2], parts[1::2], strict=True)}
    row, version = found.pop("row"), found.pop("version")
    return {name: body.replace("{row}", row).replace("{version}", version) for name, body in found.items()}


@cache
def migrations() -> tuple[tuple[int, str], ...]:
    """Return the numbered migrations, in order."""
    folder = resources.files("holdfast.store.sqlite") / "sql" / "migrations"
    scripts = sorted((f for f in folder.iterdir() if f.name.endswith(".sql")), key=lambda f: f.name)
    return tuple((int(script.name[:4]), script.read_text(encoding="utf-8")) for script in scripts)


@contextmanager
def translate_errors(location: str, *, writing: bool = False) -> Iterator[None]:
    """Turn SQLite's errors into ours, once, with the original as cause.

    Of a block that is one transaction (`writing`), the message also says what became of it.
    """
    try:
        yield
    except sqlite3.Error as error:
        if str(error).startswith(_NO_TEXT):  # with the text itself, which belongs in no message
            raise DamagedStoreError(f"{location}: {_TRANSLATION[sqlite3.SQLITE_CORRUPT][1]} ({_NO_TEXT})") from None
        code = (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF
        if code == sqlite3.SQLITE_CORRUPT and not _is_damaged(location):
            code = sqlite3.SQLITE_IOERR
        kind, remedy = _TRANSLATION.get(code, (StoreError, "run `holdfast doctor`"))
        undone = f"{_UNDONE.get(code, 'this write was undone')}; " if writing else ""
        raise kind(f"{location}: {undone}{remedy} (SQLite: {error})") from error
    except UnicodeDecodeError as error:  # sqlite3 lets it through when damaged bytes are no longer text
        raise DamagedStoreError(f"{location}: {_TRANSLATION[sqlite3.SQLITE_CORRUPT][1]} ({error})") from error


def _is_damaged(location: str) -> bool:
    """Return whether a file is damaged that SQLite calls so; a read that the device refuses it calls so, too."""
    if location == IN_MEMORY:
        return True
    raw_files.register_open(location)
    try:
        for _ in raw_files.chunks(location, location):
            pass
        with closing(sqlite3.connect(f"file:{quote(location)}?mode=ro", uri=True)) as connection:
            return bool(connection.execute("PRAGMA integrity_check(1)").fetchone() != ("ok",))
    except OSError:
        return False
    except (sqlite3.Error, UnicodeDecodeError):
        return True
    finally:
        raw_files.unregister_open(location)


def open_connection(location: str, settings: StoreSettings) -> sqlite3.Connection:
    """Return a connection to a store that is ours, whole and of the present schema; create it when missing.

    `location` has no links in it, and `close_connection` ends what is begun here.
    """
    if sqlite3.sqlite_version_info < _OLDEST_SQLITE:
        raise StoreError(f"SQLite {SQLITE_VERSION} is too old; Holdfast needs 3.38, so use a newer Python")
    if location == IN_MEMORY:
        return _connected(location, settings)
    raw_files.register_open(location)
    try:
        _prepare_file(Path(location))
        return _connected(location, settings)
    except BaseException:
        raw_files.unregister_open(location)
        raise


def close_connection(connection: sqlite3.Connection, location: str) -> None:
    """Close what `open_connection` gave."""
    try:
        connection.close()
    finally:
        if location != IN_MEMORY:
            raw_files.unregister_open(location)


def _connected(location: str, settings: StoreSettings) -> sqlite3.Connection:
    with translate_errors(location):
        connection = sqlite3.connect(
            location, isolation_level=None, check_same_thread=False, timeout=settings.busy_timeout_ms / 1000
        )
        try:
            _refuse_foreign(connection, location)  # before anything that writes to the file
            _configure(connection)
            if _migrate(connection):
                _shrink(connection)
        except BaseException:
            connection.close()
            raise
    return connection


def identity_of(location: str, patience_ms: int) -> str | None:
    """Return which store lies at a place, without changing it; None when it has not said so.

    Raises:
        ForeignStoreError: it is a file of another program.
        StoreError: it cannot be read.
    """
    raw_files.register_open(location)
    try:
        _refuse_other_file(location, next(raw_files.chunks(location, location), b""))
    finally:
        raw_files.unregister_open(location)
    place = f"file:{quote(location)}?mode=rw"
    with (
        translate_errors(location),
        closing(sqlite3.connect(place, uri=True, timeout=patience_ms / 1000)) as connection,
    ):
        _refuse_foreign(connection, location)
        [tables] = connection.execute("SELECT count(*) FROM sqlite_master WHERE name = 'agreements'").fetchone()
        found = connection.execute(queries()["agreed"], {"name": IDENTITY}).fetchone() if tables else None
    return None if found is None else str(found[0])


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
        descriptor = raw_files.writable(str(path), PRIVATE)
    except OSError as error:
        raise ReadOnlyStoreError(f"{path}: {error.strerror}; choose a folder you may write to") from error
    try:
        header = raw_files.read_at(descriptor, _FILE_HEADER, 0)
    except OSError as error:
        raise StoreError(f"{path}: {error.strerror}; check the device") from error
    _refuse_other_file(str(path), header)
    if 0 < len(header) < _FILE_HEADER:
        raise DamagedStoreError(f"{path} is cut short at {len(header)} bytes; restore a backup")
    _narrow(path)
    _refuse_damaged_log(path, _page_size(path, header))


# Where Linux lists what is mounted, and how it writes what would break a line there.
_MOUNTS, _MOUNT_POINT = Path("/proc/self/mountinfo"), 4
_ESCAPED = re.compile(rb"\\([0-7]{3})")


def refuse_other_names(location: str) -> None:
    """Refuse a file that has two names: SQLite calls its log after one, and writes in a log beside another are lost.

    Raises:
        StoreError: it has hard links, or is mounted without its folder.
    """
    if location == IN_MEMORY:
        return
    try:
        found = Path(location).stat()
    except OSError:  # a new file; or opening it says what is wrong
        return
    if not stat.S_ISREG(found.st_mode):  # a folder has a name in each of its folders; opening it says what is wrong
        return
    if found.st_nlink > 1:
        raise StoreError(
            f"{location} is one of {found.st_nlink} names of one file (hard links): SQLite keeps a log for each, so "
            f"that writes under two names are lost; remove the others (find / -samefile {location}); `holdfast "
            "backup` makes copies"
        )
    if os.fsencode(location) in _mounted():
        raise StoreError(
            f"{location} is mounted as a single file, so that its log would lie elsewhere and be lost; mount the "
            "folder that it lies in"
        )


def _mounted() -> set[bytes]:
    """Return where something is mounted, as far as this system says."""
    try:
        lines = _MOUNTS.read_bytes().splitlines()
    except OSError:
        return set()
    return {_ESCAPED.sub(lambda code: bytes([int(code[1], 8)]), line.split(b" ")[_MOUNT_POINT]) for line in lines}


def _page_size(path: Path, header: bytes) -> int:
    if not header:  # a new file, and a log beside it is nobody's
        return raw_files.PAGE_SIZES[0]
    size = raw_files.read_page_size(header)
    if size not in raw_files.PAGE_SIZES:
        raise DamagedStoreError(f"{path} is damaged: its header speaks of pages of {size} bytes; restore a backup")
    return size


def _refuse_other_file(location: str, header: bytes) -> None:
    if header and not header.startswith(_SQLITE_HEADER):
        raise ForeignStoreError(
            f"{location} is not a Holdfast store (it starts with {quote_value(header[:8])}); name another file"
        )


def _narrow(path: Path) -> None:
    """Let nobody but the owner read the files of a store, whoever made them."""
    for one in (path, *(Path(f"{path}{side}") for side in _SIDES)):
        try:
            mode = one.stat().st_mode
            if mode & _OF_OTHERS:
                one.chmod(mode & PRIVATE)
        except FileNotFoundError:
            continue
        except OSError as error:
            log.warning("%s can be read by others, and its mode cannot be changed: %s", one, error.strerror)


def _refuse_damaged_log(path: Path, page_size: int) -> None:
    """Refuse a log of which SQLite would leave acknowledged writes out, while nobody else is writing to it."""
    if _loss(path, page_size) == raw_files.Loss():
        return
    with raw_files.exclusive_access(str(path)) as alone:
        loss = _loss(path, page_size) if alone else raw_files.Loss()
    if loss.acknowledged:
        raise DamagedStoreError(
            f"{path}-wal is damaged before {loss.acknowledged} acknowledged writes or more, which would be lost; "
            f"restore a backup, or keep a copy of both files and give these writes up with: sqlite3 {path} 'PRAGMA "
            "wal_checkpoint(TRUNCATE)'"
        )
    if loss.last:
        log.warning("the last write in %s-wal is not whole and is left out, as after a power cut", path)


def _loss(path: Path, page_size: int) -> raw_files.Loss:
    try:
        return raw_files.examine_wal(Path(f"{path}-wal").read_bytes(), page_size)
    except OSError:  # there is none; or SQLite will say what is wrong with it
        return raw_files.Loss()


def _configure(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")  # law 17: a commit that returned survives a power cut
    connection.execute("PRAGMA secure_delete = ON")  # law 16: deleted bytes are overwritten, on every connection


def _migrate(connection: sqlite3.Connection) -> bool:
    """Apply the migrations the file has not seen, in one transaction; return whether there were any."""
    latest = migrations()[-1][0]
    if schema_version(connection) == latest:
        return False
    connection.create_function("halve", 1, _halve, deterministic=True)
    connection.create_function("crc32", 1, zlib.crc32, deterministic=True)
    connection.execute("BEGIN IMMEDIATE")
    try:
        present = schema_version(connection)  # another process may have migrated while we waited for the lock
        for number, script in migrations():
            if number > present:
                for statement in _statements(script):
                    connection.execute(statement)
        if not present:  # a new file, which nobody has written to without secure deletion
            connection.execute(queries()["agree"], {"name": OVERWRITTEN, "value": "from the first write"})
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {latest}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    return True


def _halve(data: bytes) -> bytes:
    """Return a vector of 32-bit floats as it is stored now; what is none of them was damaged, and stays so."""
    if len(data) % _FLOAT32:
        return data
    with np.errstate(all="ignore"):  # damaged bytes may be any numbers
        return halve(np.frombuffer(data, dtype="<f4")).tobytes()


def _shrink(connection: sqlite3.Connection) -> None:
    """Write the file anew when a migration has emptied much of it; somebody else's use of it is no reason to wait."""
    [pages], [free] = (connection.execute(f"PRAGMA {name}").fetchone() for name in ("page_count", "freelist_count"))
    if free > _FREE_SHARE * pages:
        try:
            connection.execute("VACUUM")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        except sqlite3.OperationalError as error:
            log.warning("the file keeps %d free pages, to be used again: %s", free, error)


def _refuse_foreign(connection: sqlite3.Connection, location: str) -> None:
    latest = migrations()[-1][0]
    owner = connection.execute("PRAGMA application_id").fetchone()[0]
    tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    if owner != APPLICATION_ID and (owner or tables):
        raise ForeignStoreError(f"{location} is a database of another program; name another file")
    if (found := schema_version(connection)) > latest:
        raise NewerStoreError(f"{location} has schema {found}, this Holdfast knows {latest}; upgrade Holdfast")


def _statements(script: str) -> Iterator[str]:
    """Split a script at its semicolons; `executescript` would commit the transaction it runs in."""
    pending = ""
    for line in script.splitlines(keepends=True):
        pending += line
        if sqlite3.complete_statement(pending):
            yield pending
            pending = ""
