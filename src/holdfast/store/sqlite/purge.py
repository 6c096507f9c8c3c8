"""Erasing units from a SQLite store and from its copies for good, and the proof that nothing is left (C19, law 16).

Copies that the engine made are recorded, so that an erasure reaches them too. What a reader holds up is finished by
whoever writes or opens next.
"""

from __future__ import annotations

import json
import logging
import os
import re
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from datetime import datetime
from operator import itemgetter
from pathlib import Path

from holdfast.errors import BusyStoreError, ForeignStoreError, InputError, StoreError, shown
from holdfast.settings import StoreSettings
from holdfast.store.rows import EPOCH, GLOBAL, Found, ReadUnits, Row, agent_matches, columns, unit_of
from holdfast.store.sqlite import index_file
from holdfast.store.sqlite.live_index import GoneOwner, LiveIndex
from holdfast.store.sqlite.migrate import (
    IN_MEMORY,
    PRIVATE,
    close_connection,
    identity_of,
    open_connection,
    queries,
    translated,
)
from holdfast.store.sqlite.raw_files import TWO_WORDS, chunks, search
from holdfast.store.sqlite.sqlite_database import Database
from holdfast.types import JSON, Document, Erasure, Unit, View, iso

log = logging.getLogger("holdfast")
# An erasure whose old bytes a reader still holds on to is finished by whoever writes or opens next.
_ERASING = "erasing"
# A copy is nobody's working file; who holds it anyway is waited for by whoever forgets, and by no other write.
COPY_PATIENCE_MS = 1000
Progress = Callable[[str], None]
Run = Callable[..., Found]
# Is told the key, the tenant and the user of every unit that changed.
Record = Callable[[int, str, str], None]
# A unit that is to go: key, tenant, user, id. Erasing it takes no more, and reading it takes longer.
Doomed = tuple[int, str, str, str]
doomed_of: Callable[[Row], Doomed] = itemgetter(0, 8, 9, 10)
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
        self, view: View, ids: Sequence[str], documents: Sequence[Document], *, owner: bool, progress: Progress
    ) -> Erasure:
        """Erase in one transaction, then write the files anew and prove that nothing is left; see `Store.forget`."""
        progress("erasing")
        gone_owner: GoneOwner | None = None
        with self._database.in_use(), freeing(self._database.connection), self._database.transaction():
            rows = self._doomed(view, ids, owner=owner)
            gone = [*map(doomed_of, rows)]
            summaries = [] if owner else resting_on(self._run, gone)  # of all there is, nothing else is left
            gone += map(doomed_of, summaries)
            pieces = pieces_of(self._run, (*rows, *summaries), documents)
            uncovered = erase(self._run, gone, self._database.record_change)
            for one in documents:
                keys = {"tenant": one.tenant, "user": one.user or GLOBAL, "name": one.name}
                self._run("erase_document", keys)
            self._run("agree", {"name": _ERASING, "value": "1"})
            note_copies(self._database, gone, documents, view if owner else None)
            if owner:
                self._database.forget_changes(view.tenant, view.user)
                gone_owner = GoneOwner(view.tenant, view.user, *erase_owner(self._run, view.tenant, view.user))
        progress("reaching copies")
        unreached, missing = self._reach_copies(pieces)
        held_up = self._scrub(pieces, gone_owner, progress)
        return Erasure(
            units=ReadUnits(rows),
            summaries=tuple(map(unit_of, summaries)),
            uncovered=tuple(uncovered),
            complete=not held_up and not unreached,
            pending=bool(held_up),
            reason=held_up,
            files=tuple(self._called(path) for path in self._files()),
            outside=(*unreached, *missing),
        )

    def preview(self, view: View, ids: Sequence[str], *, owner: bool) -> Erasure:
        """Return what would be erased."""
        with self._database.snapshot():
            rows = self._doomed(view, ids, owner=owner)
            summaries = resting_on(self._run, [*map(doomed_of, rows)])
            return Erasure(units=ReadUnits(rows), summaries=tuple(map(unit_of, summaries)), complete=False)

    def _doomed(self, view: View, ids: Sequence[str], *, owner: bool) -> list[Row]:
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

    def _reach_copies(self, pieces: Sequence[bytes]) -> tuple[list[str], list[str]]:
        """Erase from the copies; an error leaves them to the next write or open."""
        try:
            with self._database.in_use():
                return erase_copies(self._database, pieces, patience_ms=COPY_PATIENCE_MS)
        except StoreError as error:
            return [f"backups ({error}; the next write or open tries again)"], []

    # ------------------------------------------------------------------------------------------- the files

    def _scrub(self, pieces: Sequence[bytes], owner: GoneOwner | None, progress: Progress) -> str:
        """Let no file of this store hold anything of what was erased; return why that is not proven, or nothing.

        The units are gone by now: an error here holds the rest up, and undoes nothing.
        """
        try:
            with self._database.in_use():
                self._index.drop_erased(owner)
                return self._scrub_files(pieces, progress)
        except (StoreError, OSError) as error:
            return str(error)

    def _scrub_files(self, pieces: Sequence[bytes], progress: Progress) -> str:
        # Deleted cells are overwritten, but pages that SQLite has moved keep old bytes in their gaps: only a file
        # that is written anew has none.
        if self._database.location == IN_MEMORY:
            return ""
        progress("writing the file anew")
        if not self._rewrite(wait=True):
            return "a reader still holds old bytes"
        if not self._files():
            return f"{self._database.location} is no longer there, so that nothing could be searched"
        progress("searching the files for what is left")
        if residue(self._run, self._database.location, pieces):
            return "bytes of it are left in the file"
        self._finish()
        return ""

    def _rewrite(self, *, wait: bool) -> bool:
        """Write the file anew, and empty its log; return whether no reader prevents it."""
        if not self._truncate_log(wait=wait):
            return False
        self._database.connection.execute("VACUUM")
        return self._truncate_log(wait=wait)

    def _truncate_log(self, *, wait: bool) -> bool:
        """Empty the write-ahead log; a reader that still needs it prevents that."""
        connection = self._database.connection
        [patience] = connection.execute("PRAGMA busy_timeout").fetchone()
        connection.execute(f"PRAGMA busy_timeout = {patience if wait else 0}")
        try:
            busy, _, _ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        finally:
            connection.execute(f"PRAGMA busy_timeout = {patience}")
        return not busy

    def _finish(self) -> None:
        """Say that an erasure has nothing left to do, unless copies are still to be reached."""
        if not self._run("noted_copies", {}).fetchall():
            with self._database.transaction():
                self._run("disagree", {"name": _ERASING})

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
        return self._database.agreed(_ERASING) is not None

    def finish(self) -> bool:
        """Go on with an erasure that was held up; return whether nothing is left to do."""
        with self._database.in_use():
            if not self.is_pending():
                return True
            unreached, _ = erase_copies(self._database, (), patience_ms=0)
            if unreached or not self._truncate_log(wait=False):
                return False
            self._index.drop_all()
            if not self._rewrite(wait=False):
                return False
            self._finish()
            return True

    def finish_if_possible(self) -> None:
        """Go on with a pending erasure; one that cannot go on keeps nobody from reading or writing."""
        try:
            self.finish()
        except (StoreError, OSError) as error:
            log.warning("an erasure is not finished yet, and stays pending: %s", error)


def _words(unit: Unit) -> list[str]:
    """Return whatever of a unit its row holds as text."""
    other = (unit.topic, unit.condition, unit.utility_note, unit.claim, unit.procedure)
    given = [json.dumps(unit.metadata, ensure_ascii=False)] if unit.metadata else []
    return [unit.text, *(text for text in other if text and text != unit.text), *given]


def pieces_of(run: Run, rows: Sequence[Row], documents: Sequence[Document]) -> list[bytes]:
    """Return what the proof will look for: words of every version, vectors, documents; of many units, of some."""
    some = rows[:: max(1, len(rows) // _MOST_WINDOWS)]
    keys = json.dumps([row[0] for row in some])
    versions = [unit_of(row) for row in (*some, *run("versions_of_keys", {"keys": keys}))]
    texts = [word for one in versions for word in _words(one)]
    vectors = [data for (data,) in run("vectors_of_keys", {"keys": keys})]
    return windows([*texts, *(one.body.decode("utf-8", "replace") for one in documents)], vectors)


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
        # Recorded before it is filled: a copy that an interruption leaves behind is still known to an erasure.
        with database.transaction():
            database.run("record_backup", {"path": str(target), "at": iso(at)})
        return _copy(database, target)
    except BaseException:
        _drop_copy(database, target)
        raise


def new_file(path: Path) -> Path:
    """Create an empty file for a copy, which from here on is ours to remove; return where it really lies.

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
    return target


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


def note_copies(database: Database, units: list[Doomed], documents: Sequence[Document], owner: View | None) -> None:
    """Note, in the erasing transaction, what every copy has to lose: an interruption must not leave it there."""
    for (path,) in database.run("backups", {}).fetchall():
        if path == database.location:  # a copy knows of itself, too
            continue
        notes = [("unit", tenant, user, name) for _, tenant, user, name in units]
        notes += [("document", one.tenant, one.user or GLOBAL, one.name) for one in documents]
        notes += [("owner", owner.tenant, owner.user, "")] if owner is not None else []
        for kind, tenant, user, name in notes:
            keys = {"tenant": tenant, "user": user, "id": name}
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
                erase_copy(name, noted, pieces, patience_ms)
        except ForeignStoreError:
            missing.append(f"{name} (no Holdfast store lies there now; the file is left alone)")
        except (StoreError, OSError) as error:
            unreached.append(f"{name} ({error}; the next write or open tries again)")
            continue
        with database.transaction():
            database.run("forget_notes", {"path": name})
    return unreached, missing


def erase_copy(path: str, noted: Sequence[Note], pieces: Sequence[bytes], patience_ms: int) -> None:
    """Erase what is noted from a copy, and prove it.

    Raises:
        StoreError: it cannot be changed now, or something is left in it.
    """
    connection = open_connection(path, StoreSettings(busy_timeout_ms=patience_ms))
    try:
        with translated(path, writing=True):
            run = _runner(connection)
            with freeing(connection):
                connection.execute("BEGIN IMMEDIATE")
                _erase_noted(run, noted)
                connection.execute("COMMIT")
        with translated(path):
            connection.execute("VACUUM")
            busy, _, _ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            if busy:
                raise BusyStoreError("a reader still holds old bytes")
            index_file.remove(Path(f"{path}.index"))
            if residue(run, path, pieces):
                raise StoreError("bytes of it are left in the copy")
    finally:
        close_connection(connection, path)


@contextmanager
def freeing(connection: sqlite3.Connection) -> Iterator[None]:
    """Let an erasure give pages up as they are: afterwards the file is written anew, without them."""
    connection.execute("PRAGMA secure_delete = FAST")
    try:
        yield
    finally:
        connection.execute("PRAGMA secure_delete = ON")


def _runner(connection: sqlite3.Connection) -> Run:
    def run(name: str, values: Mapping[str, JSON]) -> sqlite3.Cursor:
        return connection.execute(queries()[name], values)

    return run


def _erase_noted(run: Run, noted: Sequence[Note]) -> None:
    def record(key: int, tenant: str, user: str) -> None:
        run("record_change", {"tenant": tenant, "user": user, "key": key})

    keys = [{"tenant": tenant, "user": user, "id": name} for kind, tenant, user, name in noted if kind == "unit"]
    known = [doomed_of(row) for one in keys if (row := run("find_unit", one).fetchone()) is not None]
    erase(run, [*known, *map(doomed_of, resting_on(run, known))], record)
    for kind, tenant, user, name in noted:
        if kind == "document":
            run("erase_document", {"tenant": tenant, "user": user, "name": name})
        if kind == "owner":
            erase_owner(run, tenant, user)


# Stands where the id of an erased unit stood: ids are derived from words, and a unit that was superseded stays so.
ERASED = "(erased)"
_ERASING_UNITS = ("erase_units", "erase_versions", "erase_vectors", "erase_version_vectors", "erase_absences")
# SQLite gives all pages of a table up much faster than row after row.
_EMPTYING = ("empty_units", "empty_versions", "empty_vectors", "empty_version_vectors", "empty_absences")
# A window is long enough to be no accident, and there are enough of them that page borders cannot hide a text.
_WINDOW = 24
_SHORTEST = 6
_STRIDE = 64
_MOST_WINDOWS, _MOST_SHORT = 512, 32  # short ones are searched for one by one
# Rows that are searched together, and what stands between them: no part of any text, nor of a vector of numbers.
_KEPT_TOGETHER, _APART = 256, b"\xff\xff\xff\xff"


def resting_on(run: Run, units: Sequence[Doomed]) -> list[Row]:
    """Return the row of every summary that has one of `units` in its lineage, directly or through another summary."""
    found: dict[str, Row] = {}
    for (tenant, user), gone in _ids_of_owners(units).items():
        rows = [row for row in run("owner_summaries", {"tenant": tenant, "user": user}) if row[10] not in gone]
        left = [(row, unit) for row in rows if (unit := unit_of(row)).lineage is not None]
        while resting := {one.id: row for row, one in left if one.lineage and gone & {*one.lineage.sources}}:
            found |= resting
            gone.update(resting)
            left = [(row, one) for row, one in left if one.id not in gone]
    return [*found.values()]


def _ids_of_owners(units: Iterable[Doomed]) -> dict[tuple[str, str], set[str]]:
    found: dict[tuple[str, str], set[str]] = {}
    for _, tenant, user, name in units:
        found.setdefault((tenant, user), set()).add(name)
    return dict(sorted(found.items()))


def erase(run: Run, units: Sequence[Doomed], record: Record) -> list[str]:
    """Delete `units` with their versions and vectors, and every trace of their ids; return what was uncovered.

    A unit that one of them superseded stays superseded. `record` is told of every unit that changed.
    """
    keys = {key for key, *_ in units}
    whole = len(keys) == run("store_units", {}).fetchone()[0]
    for statement in _EMPTYING if whole else _ERASING_UNITS:
        run(statement, {} if whole else {"keys": json.dumps([*keys])})
    for key, tenant, user, _ in units:
        record(key, tenant, user)
    uncovered: list[str] = []
    for (tenant, user), gone in _ids_of_owners(units).items():
        owner: dict[str, JSON] = {"tenant": tenant, "user": user, "ids": json.dumps(sorted(gone))}
        for key, name in sorted(run("uncover_units", owner).fetchall()):
            uncovered.append(name)
            record(key, tenant, user)
        _erase_ids(run, owner, gone, record)
    return uncovered


def _erase_ids(run: Run, owner: Mapping[str, JSON], gone: set[str], record: Record) -> None:
    """Take the ids of erased units out of what other units say of them."""
    for (key,) in run("forget_superseders", {**owner, "erased": ERASED}).fetchall():
        record(key, owner["tenant"], owner["user"])
    run("forget_absences", {**owner, "erased": ERASED})
    for row in run("mentioning_units", owner).fetchall():
        unit = _without(run, unit_of(row), gone)
        run("rewrite_unit", {**_body(unit), "key": row[0]})
        record(row[0], unit.tenant, unit.user or GLOBAL)
    for key, version, body in run("mentioning_versions", owner).fetchall():
        unit = _without(run, Unit.from_json(json.loads(body)), gone)
        run("rewrite_version", {**_body(unit), "key": key, "version": version})


def _without(run: Run, unit: Unit, gone: set[str]) -> Unit:
    """Return a unit without those of the ids that name nothing for it any more: of its owner, or of everyone."""
    owners = (unit.user or GLOBAL, GLOBAL)
    unknown = {
        name
        for name in gone.intersection((*unit.supersedes, *unit.links))
        if not any(run("find_unit", {"tenant": unit.tenant, "user": user, "id": name}).fetchone() for user in owners)
    }
    return unit.evolve(
        supersedes=tuple(one for one in unit.supersedes if one not in unknown),
        links=tuple(one for one in unit.links if one not in unknown),
    )


def _body(unit: Unit) -> dict[str, JSON]:
    row = columns(unit)
    return {"body": row["body"], "checksum": row["checksum"]}


def erase_owner(run: Run, tenant: str, user: str) -> tuple[str | None, str]:
    """Take an owner out of the feed, and of what was measured.

    Whoever follows the feed hears of a new epoch instead. Return the old and the new.
    """
    before, after = run("agreed", {"name": EPOCH}).fetchone(), os.urandom(8).hex()
    run("erase_changes", {"tenant": tenant, "user": user})
    run("erase_funnel", {"tenant": tenant, "user": user})
    run("agree", {"name": EPOCH, "value": after})
    return (before[0] if before else None), after


# --------------------------------------------------------------------------------------------------- proof


def windows(texts: Iterable[str], vectors: Iterable[bytes] = ()) -> list[bytes]:
    """Return pieces of what is to be erased, as bytes that a file would hold: enough of them, from all of it."""
    # As SQLite holds it: JSON escapes break a text into pieces.
    split = (re.split(r"\\.", json.dumps(text, ensure_ascii=False)[1:-1]) for text in texts)
    runs = [one.encode("utf-8", "surrogatepass") for pieces in split for one in pieces]
    runs = [data for data in runs if len(data) >= _SHORTEST]
    starts = [(data, at) for data in runs for at in range(0, max(1, len(data) - _WINDOW + 1), _STRIDE)]
    starts += [(data, 0) for data in vectors if any(data[:_WINDOW])]
    found = dict.fromkeys(data[at : at + _WINDOW] for data, at in starts)
    short = [piece for piece in found if len(piece) < TWO_WORDS]
    long = [piece for piece in found if len(piece) >= TWO_WORDS]
    return [*long[:: max(1, len(long) // _MOST_WINDOWS)], *short[:: max(1, len(short) // _MOST_SHORT)]]


def residue(run: Run, location: str, pieces: Sequence[bytes]) -> set[bytes]:
    """Return the pieces that the raw bytes of a store's files still hold, and nothing that is kept says."""
    found = (search(chunks(location, path, overlap=_WINDOW), pieces) for path in files_of(location))
    left = set[bytes]().union(*found)
    return left - surviving(run, left)


def surviving(run: Run, pieces: Iterable[bytes]) -> set[bytes]:
    """Return the pieces that units which are kept say too: finding those proves nothing."""
    kept = run("kept", {})
    batches = iter(lambda: _APART.join(data for (data,) in kept.fetchmany(_KEPT_TOGETHER)), b"")
    return search(batches, pieces)
