"""Backups of a SQLite store, and erasing units from it and them for good, with the proof (C19, law 16).

Copies that the engine made are recorded, so that an erasure reaches them too. What a reader holds up is finished by
whoever writes or opens next.
"""

from __future__ import annotations

import json
import logging
import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import closing, contextmanager
from datetime import datetime
from pathlib import Path

from holdfast.errors import BusyStoreError, ForeignStoreError, InputError, StoreError, quote_value
from holdfast.settings import StoreSettings
from holdfast.store.erasure import (
    WINDOW,
    ErasedUnit,
    dependent_summaries,
    erase,
    erase_owner,
    erased_unit,
    find_fragments,
    still_used,
    text_fragments,
)
from holdfast.store.rows import GLOBAL, ReadUnits, RunStatement, UnitRow, unit_of
from holdfast.store.sqlite import index_file, raw_files, unused_bytes
from holdfast.store.sqlite.live_index import ErasedOwner, LiveIndex
from holdfast.store.sqlite.migrate import (
    IN_MEMORY,
    PRIVATE,
    close_connection,
    identity_of,
    open_connection,
    queries,
    translate_errors,
)
from holdfast.store.sqlite.raw_files import chunks
from holdfast.store.sqlite.sqlite_database import Database
from holdfast.store.visibility import agent_matches
from holdfast.types import JSON, Document, Erasure, View, iso
from holdfast.types.outcomes import StepProgress

log = logging.getLogger("holdfast")
# An erasure whose old bytes a reader still holds on to is finished by whoever writes or opens next.
ERASING = "erasing"
_HELD = "a reader still holds old bytes"
# How the value of it begins when no page was given up with its bytes: any other needs the whole file written anew.
_IN_PLACE = "in place "
# Where so much of a store goes, writing what is left costs less than overwriting what goes.
_MOST = 0.5
# Why a file is written anew as a whole.
_ASKED, _MOST_GONE = "that was asked for", "most of the store was erased"
_OLDER = "a version wrote it that did not overwrite all that it freed"
_UNKNOWN = "it is laid out in a way that is not read page by page"
_FOUND = "bytes of what was erased were left"
# A copy is nobody's working file; who holds it anyway is waited for by whoever forgets, and by no other write.
COPY_PATIENCE_MS = 1000
# What is noted for a copy: a kind, and the keys of a unit, a document or an owner.
Note = tuple[str, str, str, str]
_OWNED, _EVERYTHING = "tenant = :tenant AND user = :user", -1  # for SQLite, -1 is no limit
# What SQLite puts beside a database.
_OF_SQLITE = ("-wal", "-shm", "-journal")


class Eraser:
    """Erases units and documents, and every byte of them in the files of the store."""

    def __init__(self, database: Database, index: LiveIndex) -> None:
        self._database = database
        self._run = database.run
        self._index = index

    def forget(
        self, view: View, ids: Sequence[str], documents: Sequence[Document], *, owner: bool, compact: bool,
        progress: StepProgress,
    ) -> Erasure:  # fmt: skip
        """Erase in one transaction, overwrite what it freed, and prove that nothing is left; see `Store.forget`."""
        progress("erasing")
        gone_owner: ErasedOwner | None = None
        with self._database.transaction():
            rows = self._doomed(view, ids, owner=owner)
            gone = [*map(erased_unit, rows)]
            summaries = [] if owner else dependent_summaries(self._run, gone)  # of all there is, nothing else is left
            gone += map(erased_unit, summaries)
            pieces = text_fragments(self._run, (*rows, *summaries), documents)
            why = _ASKED if compact else _why_anew(self._run, len(gone))
            with giving_up_pages(self._database.connection, as_they_are=bool(why)):
                uncovered = erase(self._run, gone, self._database.record_change)
                for one in documents:
                    keys = {"tenant": one.tenant, "user": one.user or GLOBAL, "name": one.name}
                    self._run("erase_document", keys)
            self._mark(in_place=not why)
            unused_bytes.renew_mark(self._database.connection)
            notes = notes_of(gone, documents, view if owner else None)
            note_copies(self._database, notes)
            if owner:
                self._database.forget_changes(view.tenant, view.user)
                gone_owner = ErasedOwner(view.tenant, view.user, *erase_owner(self._run, view.tenant, view.user))
        progress("reaching copies")
        unreached, missing = self._reach_copies(notes, pieces)
        owners = {(tenant, user) for _, tenant, user, _ in gone}
        held_up, why = self._scrub(pieces, owners, gone_owner, why, progress)
        return Erasure(
            units=ReadUnits(rows),
            summaries=tuple(map(unit_of, summaries)),
            uncovered=tuple(uncovered),
            complete=not held_up and not unreached,
            pending=bool(held_up),
            reason=held_up,
            rewritten=why,
            files=tuple(self._called(path) for path in self._files()),
            outside=(*unreached, *missing),
        )

    def _mark(self, *, in_place: bool) -> None:
        """Say that an erasure is under way; one that gave pages up as they are stays one until it is finished."""
        before = self._database.agreed(ERASING)
        begins = _IN_PLACE if in_place and (before is None or before.startswith(_IN_PLACE)) else ""
        # A value of its own: whoever finished what came before has not finished this.
        self._run("agree", {"name": ERASING, "value": f"{begins}{os.urandom(8).hex()}"})

    def preview(self, view: View, ids: Sequence[str], *, owner: bool) -> Erasure:
        """Return what would be erased."""
        with self._database.snapshot():
            rows = self._doomed(view, ids, owner=owner)
            summaries = dependent_summaries(self._run, [*map(erased_unit, rows)])
            return Erasure(units=ReadUnits(rows), summaries=tuple(map(unit_of, summaries)), complete=False)

    def _doomed(self, view: View, ids: Sequence[str], *, owner: bool) -> list[UnitRow]:
        """Return the rows of the units that are named, the owner's own, else everyone's; or all that the owner has.

        Raises:
            NotFoundError: there is none of one of the ids.
        """
        keys = {"tenant": view.tenant, "user": view.user}
        if owner:
            return self._run("scan_oldest", {**keys, "limit": _EVERYTHING}, visible=_OWNED).fetchall()
        read = self._run("find_units", {**keys, "ids": json.dumps([*ids])})
        # Global units come first, so that a user's own of the same id takes their place.
        known = {row[10]: row for row in read if view.agent is None or agent_matches(view, unit_of(row))}
        named = dict.fromkeys(ids)
        if missing := named.keys() - known.keys():
            self._database.find_seen(view, min(missing))  # says what is wrong
        return [known[unit_id] for unit_id in named]

    def _reach_copies(self, notes: Sequence[Note], pieces: Sequence[bytes]) -> tuple[list[str], list[str]]:
        """Erase from all copies, and search them; an error leaves them to the next write or open."""
        try:
            with self._database.in_use():
                return erase_copies(self._database, notes, pieces, patience_ms=COPY_PATIENCE_MS)
        except StoreError as error:
            return [f"backups ({error}; the next write or open tries again)"], []

    # ------------------------------------------------------------------------------------------- the files

    def _scrub(
        self, pieces: Sequence[bytes], owners: AbstractSet[tuple[str, str]], owner: ErasedOwner | None, why: str,
        progress: StepProgress,
    ) -> tuple[str, str]:  # fmt: skip
        """Let no file of this store hold anything of what was erased; return why that is not proven, or nothing.

        Return also why the file was written anew, or nothing. The units are gone by now: an error here holds the rest
        up, and undoes nothing.
        """
        try:
            with self._database.in_use():
                self._index.drop_erased(owners, owner)
                return self._scrub_files(pieces, why, progress)
        except (StoreError, OSError) as error:
            return str(error), ""

    def _scrub_files(self, pieces: Sequence[bytes], why: str, progress: StepProgress) -> tuple[str, str]:
        location = self._database.location
        if location == IN_MEMORY:
            return "", ""
        progress("overwriting what was erased")
        marked = self._database.agreed(ERASING)
        is_clean, why = self._clean(marked, why, wait=True)
        if not is_clean:
            return _HELD, ""
        if not self._files():
            return f"{location} is no longer there, so that nothing could be searched", why
        progress("searching the files for what is left")
        is_left = bool(find_residue(self._run, location, pieces))
        if is_left and not why:
            why, is_clean = _FOUND, unused_bytes.rewrite(self._database.connection, wait=True)
            is_left = not is_clean or bool(find_residue(self._run, location, pieces))
        if is_left:
            return "bytes of it are left in the file", why
        self._finish(marked)
        return "", why

    def _clean(self, marked: str | None, why: str, *, wait: bool) -> tuple[bool, str]:
        """Let the file hold nothing but what rows need; see `clean_file`. An erasure may need it written anew."""
        if self._database.location == IN_MEMORY:  # there is none
            return True, ""
        why = why or ("" if (marked or _IN_PLACE).startswith(_IN_PLACE) else _MOST_GONE)
        return clean_file(self._database.connection, self._database.location, why, wait=wait)

    def _finish(self, marked: str | None) -> None:
        """Say that the erasures up to a mark have nothing left to do, unless copies are still to be reached."""
        with self._database.transaction():
            if not self._run("noted_copies", {}).fetchall():
                self._run("disagree", {"name": ERASING, "value": marked})

    def _files(self) -> list[str]:
        """Return the files of this store that exist."""
        return [] if self._database.location == IN_MEMORY else files_of(self._database.location)

    def _called(self, path: str) -> str:
        """Return what the opener calls a file, as long as that name leads there."""
        location, name = self._database.location, self._database.name
        leads_there = str(Path(name).absolute()) == location
        return path.replace(location, name, 1) if leads_there else path

    # ------------------------------------------------------------------------------------------- finishing

    def is_pending(self) -> bool:
        """Return whether an erasure was held up; the caller uses the database."""
        return self._database.agreed(ERASING) is not None

    def finish(self) -> bool:
        """Go on with an erasure that was held up; return whether nothing is left to do."""
        with self._database.in_use():
            if not self.is_pending():
                return True
            marked = self._database.agreed(ERASING)
            unreached, _ = erase_copies(self._database, patience_ms=0)
            if unreached or not unused_bytes.truncate_log(self._database.connection, wait=False):
                return False
            unused_bytes.renew_mark(self._database.connection)
            self._index.drop_all()
            if not self._clean(marked, "", wait=False)[0]:
                return False
            self._finish(marked)
            return True

    def finish_if_possible(self) -> None:
        """Go on with a pending erasure; one that cannot go on keeps nobody from reading or writing."""
        try:
            self.finish()
        except (StoreError, OSError) as error:
            log.warning("an erasure is not finished yet, and stays pending: %s", error)


def _why_anew(run: RunStatement, gone: int) -> str:
    """Return why a file is better written anew than overwritten where so many units go, or nothing."""
    [units] = run("store_units", {}).fetchone()
    return _MOST_GONE if gone > _MOST * units else ""


def clean_file(connection: sqlite3.Connection, location: str, why: str, *, wait: bool) -> tuple[bool, str]:
    """Let a file and its log hold nothing but what rows need; return whether no reader prevents it.

    It is overwritten in place, or for a reason `why` written anew; return that reason too, or the one found here.
    """
    if not why and not unused_bytes.is_overwritten(connection):
        why = _OLDER
    if not why:
        is_clean = unused_bytes.overwrite(connection, location, wait=wait)
        if is_clean is not None:
            return is_clean, ""
        why = _UNKNOWN
    return unused_bytes.rewrite(connection, wait=wait), why


def files_of(location: str) -> list[str]:
    """Return the files of a store that exist."""
    return [path for side in ("", *_OF_SQLITE, ".index") if Path(path := f"{location}{side}").exists()]


def back_up(database: Database, path: Path, at: datetime) -> int:
    """Copy the store while it is in use, read the copy back, and record where it lies; return its units.

    Raises:
        InputError: the path cannot be used.
    """
    target = new_file(path)
    try:
        with database.in_use():
            return _make_copy(database, str(target), at)
    except BaseException:
        _drop_copy(database, target)
        raise


def _make_copy(database: Database, target: str, at: datetime) -> int:
    """Fill a new file, and erase from it what others have erased from the store meanwhile.

    The file is recorded before it is filled: a copy that an interruption leaves behind is still known to an erasure.
    It is locked before it is recorded: nobody takes it for a copy that holds nothing.
    """
    raw_files.register_open(target)
    try:
        with closing(sqlite3.connect(target, isolation_level=None)) as copy:
            copy.execute("PRAGMA locking_mode = EXCLUSIVE")
            copy.execute("BEGIN EXCLUSIVE")
            copy.execute("COMMIT")
            with database.transaction():
                database.run("forget_notes", {"path": target})  # of an earlier file of that name
                database.run("record_backup", {"path": target, "at": iso(at)})
                is_erasing = database.agreed(ERASING) is not None
            count = _copy(database, copy, target, compact=is_erasing)
        Path(f"{target}-journal").unlink(missing_ok=True)  # done with, and left by a connection that locks for good
    finally:
        raw_files.unregister_open(target)
    try:
        _erase_noted_from(database, target, patience_ms=COPY_PATIENCE_MS)
    except (StoreError, OSError) as error:
        log.warning(
            "%s holds what was erased while it was made; the next write or open tries again: %s", target, error
        )
    return count


def new_file(path: Path) -> Path:
    """Create an empty file for a copy, which from here on is ours to remove; return where it really lies.

    Raises:
        InputError: the path cannot be used.
    """
    target = path.resolve()
    if target.exists():
        raise InputError(
            f"{quote_value(str(path))} exists; name a file that does not, so that nothing is overwritten"
        )
    if not target.parent.is_dir():
        raise InputError(f"the folder {quote_value(str(target.parent))} does not exist; create it first")
    try:
        os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE))
    except OSError as error:
        raise StoreError(f"{target}: {error.strerror}; no copy was made; name another file") from error
    return target


def _copy(database: Database, copy: sqlite3.Connection, target: str, *, compact: bool) -> int:
    """Copy page by page; `compact` leaves the bytes behind that no row needs, as those of an erasure under way."""
    database.connection.backup(copy)
    if compact:
        copy.execute("VACUUM")
    [verdict] = copy.execute("PRAGMA integrity_check").fetchone()
    [count] = copy.execute(queries()["store_units"]).fetchone()
    if verdict != "ok":
        raise StoreError(f"the copy at {target} cannot be read back ({verdict}); it was removed; check the disk")
    return int(count)


def _drop_copy(database: Database, target: Path) -> None:
    """Leave nothing of a copy that failed."""
    remove_files(target)
    try:
        with database.transaction():
            database.run("forget_backup", {"path": str(target)})
    except StoreError as error:  # why it failed is what the caller has to hear
        log.warning("a copy that is not there stays recorded: %s", error)


def remove_files(target: Path) -> None:
    """Remove a store's file, and what SQLite puts beside it."""
    for side in ("", *_OF_SQLITE):
        Path(f"{target}{side}").unlink(missing_ok=True)


def notes_of(units: Sequence[ErasedUnit], documents: Sequence[Document], owner: View | None) -> list[Note]:
    """Return what every copy has to lose."""
    notes = [("unit", tenant, user, name) for _, tenant, user, name in units]
    notes += [("document", one.tenant, one.user or GLOBAL, one.name) for one in documents]
    return [*notes, *([("owner", owner.tenant, owner.user, "")] if owner is not None else [])]


def note_copies(database: Database, notes: Sequence[Note]) -> None:
    """Note, in the erasing transaction, what the copies have to lose: an interruption must not leave it there."""
    for path in _recorded(database):
        for kind, tenant, user, name in notes:
            keys = {"tenant": tenant, "user": user, "id": name}
            database.run("note_copy", {"path": path, "kind": kind, **keys})


def _recorded(database: Database) -> list[str]:
    """Return where copies lie; a copy knows of itself, too."""
    return [path for (path,) in database.run("backups", {}).fetchall() if path != database.location]


def erase_copies(
    database: Database, mine: Sequence[Note] = (), pieces: Sequence[bytes] = (), *, patience_ms: int
) -> tuple[list[str], list[str]]:
    """Erase from the copies what is noted; return those that could not be changed, and those that are gone.

    With notes of `mine`, every copy is reached and searched: others who erase at the same time may have done some of
    it, and proven none.
    """
    unreached, missing = [], []
    noted = {path for (path,) in database.run("noted_copies", {}).fetchall()}
    for name in sorted(noted.union(_recorded(database) if mine else ())):
        try:
            gone = _erase_noted_from(database, name, mine, pieces, patience_ms=patience_ms)
        except (StoreError, OSError) as error:
            unreached.append(f"{name} ({error}; the next write or open tries again)")
        else:
            missing += [f"{name} ({gone})"] if gone else []
    return unreached, missing


def _erase_noted_from(
    database: Database, name: str, mine: Sequence[Note] = (), pieces: Sequence[bytes] = (), *, patience_ms: int
) -> str:
    """Erase from one copy and drop its notes; return why it is not there, or nothing.

    Raises:
        StoreError: it cannot be changed now, or something is left in it.
    """
    notes = [*dict.fromkeys((*database.run("notes_of_copy", {"path": name}).fetchall(), *mine))]
    gone = erase_from_file(name, database.identity, notes, pieces, patience_ms) if notes else ""
    if notes:
        with database.transaction():  # others may have noted more meanwhile
            database.run("forget_noted", {"path": name, "notes": json.dumps(notes)})
    return gone


def erase_from_file(
    name: str, identity: str, notes: Sequence[Note], pieces: Sequence[bytes], patience_ms: int
) -> str:
    """Erase what is noted from a copy of the store of that identity; return why there is none, or nothing.

    Raises:
        StoreError: it cannot be changed now, or something is left in it.
    """
    try:
        if not Path(name).is_file():
            return "not found: it was moved or deleted"
        if identity_of(name, patience_ms) != identity:
            return "another store is there now, and is left unchanged"
        erase_copy(name, notes, pieces, patience_ms)
    except ForeignStoreError:
        return "no Holdfast store is there now; the file is left unchanged"
    return ""


def erase_copy(path: str, noted: Sequence[Note], pieces: Sequence[bytes], patience_ms: int) -> None:
    """Erase what is noted from a copy, and prove it.

    Raises:
        StoreError: it cannot be changed now, or something is left in it.
    """
    connection = open_connection(path, StoreSettings(busy_timeout_ms=patience_ms))
    try:
        with translate_errors(path, writing=True):
            run = _runner(connection)
            connection.execute("BEGIN IMMEDIATE")
            why = _why_anew(run, len(noted))
            with giving_up_pages(connection, as_they_are=bool(why)):
                _erase_noted(run, noted)
            unused_bytes.renew_mark(connection)
            connection.execute("COMMIT")
        with translate_errors(path):
            is_clean, why = clean_file(connection, path, why, wait=True)
            index_file.remove(Path(f"{path}.index"))
            if is_clean and not why and find_residue(run, path, pieces):
                is_clean = unused_bytes.rewrite(connection, wait=True)
            if not is_clean:
                raise BusyStoreError(_HELD)
            if find_residue(run, path, pieces):
                raise StoreError("bytes of it are left in the copy")
    finally:
        close_connection(connection, path)


@contextmanager
def giving_up_pages(connection: sqlite3.Connection, *, as_they_are: bool) -> Iterator[None]:
    """Let an erasure give pages up without overwriting them, where the file is then written anew without them."""
    connection.execute(f"PRAGMA secure_delete = {'FAST' if as_they_are else 'ON'}")
    try:
        yield
    finally:
        connection.execute("PRAGMA secure_delete = ON")


def _runner(connection: sqlite3.Connection) -> RunStatement:
    def run(name: str, values: Mapping[str, JSON]) -> sqlite3.Cursor:
        return connection.execute(queries()[name], values)

    return run


def _erase_noted(run: RunStatement, noted: Sequence[Note]) -> None:
    def record(key: int, tenant: str, user: str) -> None:
        run("record_change", {"tenant": tenant, "user": user, "key": key})

    keys = [{"tenant": tenant, "user": user, "id": name} for kind, tenant, user, name in noted if kind == "unit"]
    known = [erased_unit(row) for one in keys if (row := run("find_unit", one).fetchone()) is not None]
    erase(run, [*known, *map(erased_unit, dependent_summaries(run, known))], record)
    for kind, tenant, user, name in noted:
        if kind == "document":
            run("erase_document", {"tenant": tenant, "user": user, "name": name})
        if kind == "owner":
            erase_owner(run, tenant, user)


def find_residue(run: RunStatement, location: str, pieces: Sequence[bytes]) -> set[bytes]:
    """Return the pieces that the raw bytes of a store's files still hold, and nothing that is kept says."""
    found = (find_fragments(chunks(location, path, overlap=WINDOW), pieces) for path in files_of(location))
    left = set[bytes]().union(*found)
    return left - still_used(run, left)
