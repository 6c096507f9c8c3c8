"""What happens to units over time in the SQLite store: promotion, coverage, supersession, erasure, backups."""

from __future__ import annotations

import json
import logging
import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from datetime import datetime
from pathlib import Path

from holdfast.errors import BusyStoreError, ForeignStoreError, InputError, NotFoundError, StoreError, shown
from holdfast.settings import StoreSettings
from holdfast.store import snapshot
from holdfast.store.connection import Connected
from holdfast.store.erasure import Run, erase, residue, resting_on, surviving, windows
from holdfast.store.migrate import IN_MEMORY, PRIVATE, close_connection, identity_of, open_connection, translated
from holdfast.store.queries import queries
from holdfast.store.rows import GLOBAL, Row, columns, gate_text, unit_of
from holdfast.store.sync import EPOCH
from holdfast.types import JSON, Document, Draft, Erasure, Gate, Unit, View, Written, iso

log = logging.getLogger("holdfast")
# An erasure whose old bytes a reader still holds on to is finished by whoever writes or opens next.
_ERASING = "erasing"
# A copy is nobody's working file; who holds it anyway is waited for by whoever forgets, and by no other write.
_COPY_PATIENCE_MS = 1000

# What SQLite puts beside a database.
_OF_SQLITE = ("-wal", "-shm", "-journal")
_A_READER = "a reader still holds old bytes"

# Of a unit that became durable: tenant, user, key, and its checksum before and after.
Promotion = tuple[str, str, int, int, int]


class Upkeep(Connected):
    """The part of the store that keeps it true."""

    @contextmanager
    def _write(self, *, finishing: bool = True) -> Iterator[None]:
        """Run a block as one transaction, and then go on with an erasure that a reader held up."""
        with self._transaction():
            yield
        if finishing:
            self.finish_erasing_if_possible()

    # ----------------------------------------------------------------------------------------- promotion

    def put_gates(self, gates: Sequence[tuple[Unit, Gate]]) -> None:
        """See `Store.put_gates`."""
        with self._write():
            promoted = self._decide(gates)
        self._promoted(promoted)
        self._follow()

    def _decide(self, gates: Sequence[tuple[Unit, Gate]]) -> list[Promotion]:
        """Write decisions inside a transaction; a unit that has changed since it was read waits for another.

        Return what became durable: the index hears of it when the transaction has held.
        """
        promoted = []
        for unit, gate in gates:
            row = {**columns(unit), "gate": gate_text(gate)}
            for (key,) in self._run("put_gate", row).fetchall():
                if gate.promoted and unit.scope == "session":
                    promoted.append(self._promote(key))
                self._record(key, unit)
        return promoted

    def _promoted(self, promotions: Sequence[Promotion]) -> None:
        with self._lock:
            for promotion in promotions:
                self._index.promoted(*promotion)

    def _promote(self, key: int) -> Promotion:
        row = self._run("unit_by_key", {"key": key}).fetchone()
        durable = unit_of(row).evolve(scope="user")
        values = columns(durable)
        self._run("rewrite_unit", {"body": values["body"], "checksum": values["checksum"], "key": key})
        return durable.tenant, durable.user or GLOBAL, key, row[2], values["checksum"]

    # ---------------------------------------------------------------------------------------- compaction

    def cover(self, summary: Draft, sources: Sequence[Unit]) -> Written | None:
        """See `Store.cover`."""
        unit = summary.unit
        with self._write():
            rows = [row for one in sources if (row := self._as_read(one)) is not None]
            if len(rows) < len(sources):
                return None
            at = iso(unit.recorded_time)
            before = self._find(unit.tenant, unit.user, unit.id)
            if before is None:
                key = self._run("insert_unit", columns(unit)).lastrowid
                assert key is not None  # noqa: S101 - an INSERT that did not raise has a row id
            else:  # the same turns were covered before and uncovered since: the summary is in force again
                key = before[0]
                unit = unit.evolve(version=unit_of(before).version + 1)
                self._replace(key, unit)
                self._run("supersede_unit", {"by": None, "at": None, "why": None, "key": key})
            self._record(key, unit)
            for row in rows:
                self._run("cover_unit", {"by": unit.id, "at": at, "key": row[0]})
                self._record(row[0], unit)
            analysis = summary.analyse(unit)
        self._follow({key: (columns(unit)["checksum"], analysis)})
        return Written(unit.id, "added" if before is None else "updated", unit.version)

    def _as_read(self, unit: Unit) -> Row | None:
        """Return the row of a turn that is still as it was read, and still to be covered."""
        row = self._find(unit.tenant, unit.user, unit.id)
        if row is None or row[3] is not None or row[5] is not None:
            return None
        return row if unit_of(row).version == unit.version else None

    def _uncover(self, row: Row, at: datetime) -> None:
        """Withdraw the summary that stands for a turn: it no longer says what its turns say."""
        turn = unit_of(row)
        if turn.covered_by is None:
            return
        owner = {"tenant": turn.tenant, "user": turn.user or GLOBAL}
        summary = self._find(turn.tenant, turn.user, turn.covered_by)
        if summary is not None:
            self._run("supersede_unit", {"by": turn.id, "at": iso(at), "why": "its turn changed", "key": summary[0]})
            self._record(summary[0], unit_of(summary))
        for (key,) in self._run("uncover_units", {**owner, "by": turn.covered_by}).fetchall():
            self._record(key, turn)

    def _release(self, row: Row) -> None:
        """Let the turns speak again that a summary stood for; it no longer counts, or not for ever."""
        summary = unit_of(row)
        if summary.lineage is not None:
            owner = {"tenant": summary.tenant, "user": summary.user or GLOBAL}
            for (key,) in self._run("uncover_units", {**owner, "by": summary.id}).fetchall():
                self._record(key, summary)

    # -------------------------------------------------------------------------------------- supersession

    def supersede(self, view: View, unit_id: str, by: str, at: datetime, why: str = "") -> None:
        """See `Store.supersede`."""
        with self._write():
            newer, _ = self._own(view, by), self._own(view, unit_id)
            self._supersede(newer, unit_id, at, why)
        self._follow()

    def reinstate(self, view: View, unit_id: str, at: datetime) -> Unit:
        """See `Store.reinstate`."""
        with self._write():
            unit = self._own(view, unit_id)
            if unit.kind == "summary":
                raise InputError(
                    f"{shown(unit_id)} is a summary of turns that have changed since; compact the session instead"
                )
            row = self._find(unit.tenant, unit.user, unit_id)
            assert row is not None  # noqa: S101 - it was found a line ago, in this transaction
            self._run("record_absence", {"key": row[0], "until": iso(at)})
            self._run("supersede_unit", {"by": None, "at": None, "why": None, "key": row[0]})
            self._record(row[0], unit)
        self._follow()
        return unit.evolve(superseded_by=None, superseded_why="")

    def _own(self, view: View, unit_id: str) -> Unit:
        row = self._visible_row(view, unit_id)
        if row is None:
            raise NotFoundError(f"there is no unit {shown(unit_id)} for user {shown(view.user)}; check id and owner")
        return unit_of(row)

    def _supersede(self, newer: Unit, target: str, at: datetime, why: str = "") -> None:
        row = self._find(newer.tenant, newer.user, target)
        hidden = row is not None and newer.agent is not None and unit_of(row).agent not in (newer.agent, None)
        if row is None or hidden or target == newer.id:
            raise NotFoundError(f"{shown(target)} cannot be superseded: the owner has no other unit of that id")
        self._refuse_circle(newer, target)
        self._run("supersede_unit", {"by": newer.id, "at": iso(at), "why": why or None, "key": row[0]})
        self._record(row[0], newer)
        self._uncover(row, at)
        self._release(row)

    def _refuse_circle(self, newer: Unit, target: str) -> None:
        chain, owner = [newer.id], {"tenant": newer.tenant, "user": newer.user or GLOBAL}
        while (found := self._run("superseded_by", {**owner, "id": chain[-1]}).fetchone()) and found[0]:
            if found[0] == target:
                steps = " → ".join([*chain, target])
                raise InputError(
                    f"{shown(target)} cannot be superseded by {shown(newer.id)}, which it supersedes itself "
                    f"({steps}); reinstate one of them first"
                )
            if found[0] in chain:
                return
            chain.append(found[0])

    # ------------------------------------------------------------------------------------------- erasure

    def forget(
        self, view: View, ids: Sequence[str], documents: Sequence[Document] = (), *, dry_run: bool = False,
        owner: bool = False,
    ) -> Erasure:  # fmt: skip
        """See `Store.forget`."""
        if dry_run:
            with self._read():
                units = self._doomed(view, ids)
                return Erasure(units=units, summaries=tuple(resting_on(self._run, units)), complete=False)
        with self._write(finishing=False):
            units = self._doomed(view, ids)
            summaries = tuple(resting_on(self._run, units))
            pieces = self._pieces((*units, *summaries), documents)
            uncovered = erase(self._run, (*units, *summaries), self._record)
            self._erase_documents(documents)
            self._run("agree", {"name": _ERASING, "value": "1"})
            self._note_copies((*units, *summaries), documents, view if owner else None)
            if owner:
                _erase_owner(self._run, view.tenant, view.user)
        unreached, missing = self._reach_copies(pieces)
        held_up = self._scrub(pieces)
        return Erasure(
            units=units,
            summaries=summaries,
            uncovered=tuple(unit_id for unit_id in uncovered if unit_id not in {unit.id for unit in units}),
            complete=not held_up and not unreached,
            pending=bool(held_up),
            reason=held_up,
            files=tuple(self._called(path) for path in self._files()),
            outside=(*unreached, *missing),
        )

    def _doomed(self, view: View, ids: Sequence[str]) -> tuple[Unit, ...]:
        return tuple(self._own(view, unit_id) for unit_id in dict.fromkeys(ids))

    def _pieces(self, units: Sequence[Unit], documents: Sequence[Document]) -> list[bytes]:
        """Return what the proof will look for: words of every version, vectors, and documents."""
        texts: list[str] = []
        keys = []
        for unit in units:
            row = self._find(unit.tenant, unit.user, unit.id)
            assert row is not None  # noqa: S101 - the caller found it in this transaction
            keys.append(row[0])
            versions = [unit_of(old) for old in self._run("unit_versions", {"key": row[0]})]
            texts += [word for one in (unit, *versions) for word in _words(one)]
        vectors = [data for (data,) in self._run("vectors_of_keys", {"keys": json.dumps(keys)})]
        return windows([*texts, *(one.body.decode("utf-8", "replace") for one in documents)], vectors)

    def _erase_documents(self, documents: Sequence[Document]) -> None:
        for document in documents:
            keys = {"tenant": document.tenant, "user": document.user or GLOBAL, "name": document.name}
            self._run("erase_document", keys)

    def _scrub(self, pieces: Sequence[bytes]) -> str:
        """Let no file of this store hold anything of what was erased; return why that is not proven, or nothing.

        The units are gone by now: an error here holds the rest up, and undoes nothing.
        """
        try:
            with self._read():
                return self._scrubbed(pieces)
        except (StoreError, OSError) as error:
            return str(error)

    def _scrubbed(self, pieces: Sequence[bytes]) -> str:
        # Deleted cells are overwritten, but pages that SQLite has moved keep old bytes in their gaps: only a file
        # that is written anew has none.
        self._index.erased()
        if self._location == IN_MEMORY:
            return ""
        if not self._rewritten(wait=True):
            return _A_READER
        if not self._files():
            return f"{self._location} is no longer there, so that nothing could be searched"
        left = {piece for path in self._files() for piece in residue(self._location, path, pieces)}
        if left - surviving(self._run, left):
            return "bytes of it are left in the file"
        self._finished()
        return ""

    def _rewritten(self, *, wait: bool) -> bool:
        """Write the file anew, and empty its log; return whether no reader prevents it."""
        if not self._truncated_log(wait=wait):
            return False
        self._connection.execute("VACUUM")
        return self._truncated_log(wait=wait)

    def _finished(self) -> None:
        """Say that an erasure has nothing left to do, unless copies are still to be reached."""
        if not self._run("noted_copies", {}).fetchall():
            with self._transaction():
                self._run("disagree", {"name": _ERASING})

    def _truncated_log(self, *, wait: bool = True) -> bool:
        """Empty the write-ahead log; a reader that still needs it prevents that."""
        [patience] = self._connection.execute("PRAGMA busy_timeout").fetchone()
        self._connection.execute(f"PRAGMA busy_timeout = {patience if wait else 0}")
        try:
            busy, _, _ = self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        finally:
            self._connection.execute(f"PRAGMA busy_timeout = {patience}")
        return not busy

    def _files(self) -> list[str]:
        """Return the files of this store that exist."""
        return [] if self._location == IN_MEMORY else _files_of(self._location)

    def _called(self, path: str) -> str:
        """Return what the opener calls a file, as long as that name leads there."""
        leads_there = str(Path(self._name).absolute()) == self._location
        return path.replace(self._location, self._name, 1) if leads_there else path

    def finish_erasing(self) -> bool:
        """See `Store.finish_erasing`."""
        with self._read():
            if self._run("agreed", {"name": _ERASING}).fetchone() is None:
                return True
            unreached, _ = self._erase_copies((), patience_ms=0)
            if unreached or not self._truncated_log(wait=False):
                return False
            self._index.erased()
            if not self._rewritten(wait=False):
                return False
            self._finished()
            return True

    def finish_erasing_if_possible(self) -> None:
        """Go on with a pending erasure; one that cannot go on keeps nobody from reading or writing."""
        try:
            self.finish_erasing()
        except (StoreError, OSError) as error:
            log.warning("an erasure is not finished yet, and stays pending: %s", error)

    # ------------------------------------------------------------------------------------------- backups

    def backup(self, path: Path, at: datetime) -> int:
        """See `Store.backup`."""
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
            with self._write():
                self._run("record_backup", {"path": str(target), "at": iso(at)})
            return self._copied(target)
        except BaseException:
            self._drop_copy(target)
            raise

    def _copied(self, target: Path) -> int:
        with self._read(), closing(sqlite3.connect(target, isolation_level=None)) as copy:
            self._connection.backup(copy)
            [verdict] = copy.execute("PRAGMA integrity_check").fetchone()
            [count] = copy.execute(queries()["store_units"]).fetchone()
        if verdict != "ok":
            raise StoreError(f"the copy at {target} cannot be read back ({verdict}); it was removed; check the disk")
        return int(count)

    def _drop_copy(self, target: Path) -> None:
        """Leave nothing of a copy that failed."""
        for side in ("", *_OF_SQLITE):
            Path(f"{target}{side}").unlink(missing_ok=True)
        try:
            with self._write():
                self._run("forget_backup", {"path": str(target)})
        except StoreError as error:  # why it failed is what the caller has to hear
            log.warning("a copy that is not there stays recorded: %s", error)

    def _note_copies(self, units: Sequence[Unit], documents: Sequence[Document], owner: View | None) -> None:
        """Note, in the erasing transaction, what every copy has to lose: an interruption must not leave it there."""
        for (path,) in self._run("backups", {}).fetchall():
            if path == self._location:  # a copy knows of itself, too
                continue
            for unit in units:
                self._run("note_copy", {"path": path, "kind": "unit", **_keys(unit)})
            for one in documents:
                keys = {"tenant": one.tenant, "user": one.user or GLOBAL, "id": one.name}
                self._run("note_copy", {"path": path, "kind": "document", **keys})
            if owner is not None:
                keys = {"tenant": owner.tenant, "user": owner.user, "id": ""}
                self._run("note_copy", {"path": path, "kind": "owner", **keys})

    def _reach_copies(self, pieces: Sequence[bytes]) -> tuple[list[str], list[str]]:
        """Erase from the copies; an error leaves them to the next write or open."""
        try:
            with self._read():
                return self._erase_copies(pieces, patience_ms=_COPY_PATIENCE_MS)
        except StoreError as error:
            return [f"backups ({error}; the next write or open tries again)"], []

    def _erase_copies(self, pieces: Sequence[bytes], *, patience_ms: int) -> tuple[list[str], list[str]]:
        """Erase from the copies what is noted; return those that could not be changed, and those that are gone."""
        unreached, missing = [], []
        for (name,) in self._run("noted_copies", {}).fetchall():
            noted = self._run("notes_of_copy", {"path": name}).fetchall()
            try:
                if not Path(name).is_file():
                    missing.append(f"{name} (not found: it was moved or deleted)")
                elif identity_of(name, patience_ms) != self._identity:
                    missing.append(f"{name} (another store lies there now, and is left alone)")
                else:
                    _erase_copy(name, noted, pieces, patience_ms)
            except ForeignStoreError:
                missing.append(f"{name} (no Holdfast store lies there now; the file is left alone)")
            except (StoreError, OSError) as error:
                unreached.append(f"{name} ({error}; the next write or open tries again)")
                continue
            with self._transaction():
                self._run("forget_notes", {"path": name})
        return unreached, missing


def _erase_copy(
    path: str, noted: Sequence[tuple[str, str, str, str]], pieces: Sequence[bytes], patience_ms: int
) -> None:
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
                raise BusyStoreError(_A_READER)
            snapshot.remove(Path(f"{path}.index"))
            left = {piece for one in _files_of(path) for piece in residue(path, one, pieces)}
            if left - surviving(run, left):
                raise StoreError("bytes of it are left in the copy")
    finally:
        close_connection(connection, path)


def _runner(connection: sqlite3.Connection) -> Run:
    def run(name: str, values: Mapping[str, JSON]) -> sqlite3.Cursor:
        return connection.execute(queries()[name], values)

    return run


def _erase_noted(run: Run, noted: Sequence[tuple[str, str, str, str]]) -> None:
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
            _erase_owner(run, tenant, user)


def _erase_owner(run: Run, tenant: str, user: str) -> None:
    """Take an owner out of the feed; whoever follows it hears of a new epoch instead."""
    run("erase_changes", {"tenant": tenant, "user": user})
    run("agree", {"name": EPOCH, "value": os.urandom(8).hex()})


def _files_of(location: str) -> list[str]:
    return [path for side in ("", *_OF_SQLITE, ".index") if Path(path := f"{location}{side}").exists()]


def _keys(unit: Unit) -> dict[str, str]:
    return {"tenant": unit.tenant, "user": unit.user or GLOBAL, "id": unit.id}


def _words(unit: Unit) -> list[str]:
    """Return whatever of a unit its row holds as text."""
    other = (unit.topic, unit.condition, unit.utility_note, unit.claim, unit.procedure)
    given = [json.dumps(unit.metadata, ensure_ascii=False)] if unit.metadata else []
    return [unit.text, *(text for text in other if text and text != unit.text), *given]
