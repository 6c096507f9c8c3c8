"""Erasing units from a PostgreSQL store for good, and from the backups that it recorded (C19, law 16).

Deleted rows stay in their pages until a table is rewritten (VACUUM FULL), and nobody reads it meanwhile. Small tables
are rewritten at once; large ones are left to `finish`, at a time that suits. A backup is a store of one file on the
machine of the process that made it: on another machine an erasure notes what the file has yet to lose, names it, and
leaves the rest to whoever forgets or finishes there. The server's own copies are its write-ahead log, its archive and
base backups: the answer names them.
"""

from __future__ import annotations

import json
import logging
import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg

from holdfast.errors import ServerError, StoreError
from holdfast.settings import StoreSettings
from holdfast.store.contract import Derivation
from holdfast.store.copying import Copyable, copy_store
from holdfast.store.erasure import ErasedUnit, dependent_summaries, erase, erased_unit, text_fragments
from holdfast.store.postgres.connections import SCHEMA, connect, translate_driver_errors
from holdfast.store.postgres.postgres_database import PostgresDatabase, lock_number
from holdfast.store.postgres.schema import TABLES
from holdfast.store.rows import GLOBAL, ReadUnits, UnitRow, unit_of
from holdfast.store.sqlite.purge import COPY_PATIENCE_MS, Note, erase_from_file, new_file, notes_of, remove_files
from holdfast.store.sqlite.sqlite_store import SqliteStore
from holdfast.store.updates import UpdateWriter
from holdfast.store.visibility import agent_matches
from holdfast.types import Document, Erasure, View, iso
from holdfast.types.outcomes import StepProgress

# Writing so much anew takes about as long as a question may.
_AT_ONCE_BYTES = 64 * 2**20
log = logging.getLogger("holdfast")
# That tables hold bytes of what was erased is agreed on under this name.
_ERASING = "erasing"
_SAMPLED = "pages of pg_statistic may hold names of it: VACUUM FULL pg_catalog.pg_statistic as a superuser"
_OUTSIDE = "the server's write-ahead log, its archive, base backups, replicas and logs hold it until it is recycled"
_UNSEEN = "earlier transactions of other roles may still see it: GRANT pg_read_all_stats TO the owner of the store"
# Whoever reads a table keeps it from being written anew, and who waits for that keeps all others from reading it.
_LOCK_MS = 500
# A reader that began before the erasure still sees what was erased; most are done in less.
_LOOKS, _BETWEEN_SECONDS = 40, 0.05
OpenUpdates = Callable[[Mapping[str, set[str]]], AbstractContextManager[UpdateWriter]]


class PostgresEraser:
    """Erases units and documents, and then their bytes from the tables."""

    def __init__(self, database: PostgresDatabase, write: OpenUpdates) -> None:
        self._database = database
        self._run = database.run
        self._write = write
        self._copies = Backups(database)
        self._untold: tuple[str, ...] = ()  # what the server kept us from

    def forget(
        self, view: View, ids: Sequence[str], documents: Sequence[Document], *, owner: bool, progress: StepProgress
    ) -> Erasure:
        """Erase in one transaction, then write tables anew where that is quick; see `Store.forget`."""
        progress("erasing")
        with self._write({view.tenant: {view.user, GLOBAL}}):
            rows = self._doomed(view, ids, owner=owner)
            gone: list[ErasedUnit] = [*map(erased_unit, rows)]
            summaries = [] if owner else dependent_summaries(self._run, gone)
            gone += map(erased_unit, summaries)
            notes, pieces = self._copies.note((*rows, *summaries), gone, documents, view if owner else None)
            uncovered = erase(self._run, gone, self._database.record_change)
            for one in documents:
                self._run("erase_document", {"user": one.user or GLOBAL, "name": one.name})
            self._database.agree(_ERASING, uuid4().hex)
        progress("reaching copies")
        unreached, missing = self._reach_copies(notes, pieces)
        progress("rewriting the tables")
        held_up = self._rewrite(most=_AT_ONCE_BYTES)
        return Erasure(
            units=ReadUnits(rows),
            summaries=tuple(map(unit_of, summaries)),
            uncovered=tuple(uncovered),
            complete=not held_up and not unreached,
            pending=bool(held_up),
            reason=held_up,
            files=(self._database.address.shown,),
            outside=(*unreached, *missing, _OUTSIDE, *self._untold),
        )

    def _reach_copies(self, notes: Sequence[Note], pieces: Sequence[bytes]) -> tuple[list[str], list[str]]:
        """Erase from all copies, and search them; an error leaves them to whoever finishes."""
        try:
            return self._copies.erase(notes, pieces)
        except StoreError as error:
            return [f"backups ({error}; the next `holdfast postgres vacuum` tries again)"], []

    def preview(self, view: View, ids: Sequence[str], *, owner: bool) -> Erasure:
        """Return what would be erased."""
        with self._database.snapshot(view.tenant):
            rows = self._doomed(view, ids, owner=owner)
            summaries = dependent_summaries(self._run, [*map(erased_unit, rows)])
            return Erasure(units=ReadUnits(rows), summaries=tuple(map(unit_of, summaries)), complete=False)

    def _doomed(self, view: View, ids: Sequence[str], *, owner: bool) -> list[UnitRow]:
        """Return the rows of the units that are named, the owner's own, else everyone's; or all that the owner has.

        Raises:
            NotFoundError: there is none of one of the ids.
        """
        if owner:
            return self._run("owned_units", {"user": view.user}).fetchall()
        read = self._run("find_units", {"user": view.user, "ids": json.dumps([*ids])})
        # Global units come first, so that a user's own of the same id takes their place.
        known = {row[10]: row for row in read if view.agent is None or agent_matches(view, unit_of(row))}
        named = dict.fromkeys(ids)
        if missing := named.keys() - known.keys():
            self._database.find_seen(view, min(missing))  # says what is wrong
        return [known[unit_id] for unit_id in named]

    # ------------------------------------------------------------------------------------------- the pages

    def finish(self) -> bool:
        """Write the tables anew that hold bytes of what was erased; return whether nothing is left to do."""
        unreached, _ = self._copies.erase()
        with self._database.everywhere() as connection:
            marked = connection.execute(self._database.statement("agreed"), {"name": _ERASING}).fetchone()
        return not (marked and self._rewrite()) and not unreached

    def _rewrite(self, most: int | None = None) -> str:
        """Write the tables anew; return why that is still to be done, or nothing."""
        with self._database.everywhere() as connection:
            marked = connection.execute(self._database.statement("agreed"), {"name": _ERASING}).fetchone()
        try:
            with self._database.alone() as connection:
                found = connection.execute(self._database.statement("tables"), {"tables": [*TABLES]}).fetchall()
                size = sum(bytes_ for _, bytes_ in found)
                if most is not None and size > most:
                    told = f"tables of {size:,} bytes are to be written anew (VACUUM FULL), and all wait meanwhile; "
                    return f"{told}run `holdfast postgres vacuum` when it suits"
                if not self._is_past(connection):
                    return "an older transaction still sees it; end it, and run `holdfast postgres vacuum`"
                self._untold = _write_anew(connection, [name for name, _ in found])
        except (StoreError, ServerError, psycopg.errors.LockNotAvailable) as error:
            return f"the tables are in use: {error}"
        if marked is not None:
            with self._database.everywhere(writing=True) as connection:
                # What was erased meanwhile has marked it anew.
                connection.execute("DELETE FROM agreements WHERE name = %s AND value = %s", (_ERASING, marked[0]))
        return ""

    def _is_past(self, connection: psycopg.Connection[Any]) -> bool:
        """Return whether nobody can see any more what was erased before now."""
        [now] = connection.execute("SELECT pg_current_xact_id()::text").fetchone() or ("0",)
        for _ in range(_LOOKS):
            [older] = connection.execute(self._database.statement("older_readers"), {"now": now}).fetchone() or (0,)
            if not older:
                return True
            connection.execute("SELECT pg_sleep(%s)", (_BETWEEN_SECONDS,))
        return False


def _write_anew(connection: psycopg.Connection[Any], tables: Sequence[str]) -> tuple[str, ...]:
    """Write tables anew, and what the server has sampled of them; return what it did not let us do."""
    connection.execute(f"SET lock_timeout = {_LOCK_MS}")
    for name in tables:
        connection.execute(f"VACUUM (FULL, ANALYZE) {name}")
    [may] = connection.execute("SELECT rolsuper FROM pg_roles WHERE rolname = current_user").fetchone() or (False,)
    if may:
        # Of a table that has become empty nothing is sampled anew, and the old samples stay; so do those of vectors
        # that were made before their index said that there are to be none.
        empty = "starelid = ANY (%(tables)s::regclass[]) AND pg_relation_size(starelid) = 0"
        indexes = (
            "SELECT indexrelid FROM pg_index WHERE indrelid = ANY (%(tables)s::regclass[]) AND indexprs IS NOT NULL"
        )
        stale = f"DELETE FROM pg_catalog.pg_statistic WHERE {empty} OR starelid IN ({indexes})"  # noqa: S608 - fixed
        connection.execute(stale, {"tables": [*tables]})
        connection.execute("VACUUM FULL pg_catalog.pg_statistic")
        return ()
    [sees] = connection.execute("SELECT pg_has_role('pg_read_all_stats', 'USAGE')").fetchone() or (False,)
    return (_SAMPLED,) if sees else (_SAMPLED, _UNSEEN)


def is_local_path() -> str:
    """Return the name of this machine: a path means something on one machine alone."""
    return platform.node()


class Backups:
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
            with self._holding(str(target)):
                count = self._fill(store, derivation, target, at)
        except BaseException:
            remove_files(target)
            self._forget(target)
            raise
        self._catch_up(str(target))
        return count

    def _catch_up(self, target: str) -> None:
        """Erase from a new copy what was erased from the store while it was made."""
        for host, path, identity in self._listed("noted_copies"):
            if (host, path) == (is_local_path(), target):
                try:
                    self._erase_one(path, identity)
                except (StoreError, OSError) as error:
                    log.warning("%s holds what was erased while it was made; `holdfast postgres vacuum` tries "
                                "again: %s", path, error)  # fmt: skip

    def _listed(self, name: str) -> list[tuple[str, str, str]]:
        with self._database.everywhere() as connection:
            return connection.execute(self._database.statement(name)).fetchall()

    @contextmanager
    def _holding(self, path: str) -> Iterator[None]:
        """Let nobody else make a copy or erase from it meanwhile; the end of this process lets it go, too.

        Raises:
            BusyStoreError: somebody else is at it.
        """
        with self._database.alone() as connection:
            connection.execute("SELECT set_config('lock_timeout', %s, false)", (f"{COPY_PATIENCE_MS}ms",))
            connection.execute("SELECT pg_advisory_lock(%s)", (lock_number("copy", is_local_path(), path),))
            yield

    def _fill(self, store: Copyable, derivation: Derivation, target: Path, at: datetime) -> int:
        settings = StoreSettings(busy_timeout_ms=self._database.patience_ms)
        with closing(SqliteStore.open(target, settings, derivation)) as copy:
            # Recorded before it is filled: a copy that an interruption leaves behind is still known to an erasure.
            with self._database.everywhere(writing=True) as connection:
                made = {"host": is_local_path(), "path": str(target), "at": iso(at), "identity": copy.identity}
                connection.execute(self._database.statement("record_backup"), made)
                connection.execute(self._database.statement("forget_notes"), made)  # of an earlier file of that name
            done = copy_store(store, copy)
        if not done.whole:
            raise StoreError(
                f"the copy at {target} is not what was copied ({', '.join(done.differing)}); it was removed; check "
                "the disk"
            )
        return done.units

    def _forget(self, target: Path) -> None:
        with self._database.everywhere(writing=True) as connection:
            connection.execute(
                self._database.statement("forget_backup"), {"host": is_local_path(), "path": str(target)}
            )

    # ----------------------------------------------------------------------------------------------- erasing

    def note(
        self, rows: Sequence[UnitRow], units: Sequence[ErasedUnit], documents: Sequence[Document], owner: View | None
    ) -> tuple[list[Note], list[bytes]]:
        """Note, in the erasing transaction, what every copy has to lose; return it, and what the proof looks for.

        A copy is recorded before it reads the store: one that is not recorded yet will not read what goes now.
        """
        with self._database.as_owner():  # tenants do not see where copies lie
            self._database.run("keep_backups")
            if self._database.run("backups").fetchone() is None:
                return [], []
        notes = notes_of(units, documents, owner)
        pieces = text_fragments(self._database.run, rows, documents)
        kinds, _, users, names = (list(one) for one in zip(*notes, strict=True)) if notes else ([], [], [], [])
        with self._database.as_owner():
            self._database.run("note_copies", {"kinds": kinds, "users": users, "ids": names})
        return notes, pieces

    def erase(self, mine: Sequence[Note] = (), pieces: Sequence[bytes] = ()) -> tuple[list[str], list[str]]:
        """Erase from the copies what is noted; return those that could not be changed, and those that are gone.

        With notes of `mine`, every copy is reached and searched: others who erase at the same time may have done some
        of it, and proven none. What could not be changed is tried again by the next one that forgets or finishes.
        """
        unreached, missing = [], []
        found = self._listed("recorded_copies" if mine else "noted_copies")
        for host, path, identity in found:
            if host != is_local_path():
                unreached.append(f"{path} (on {host}: run `holdfast postgres vacuum` there)")
                continue
            try:
                gone = self._erase_one(path, identity, mine, pieces)
            except (StoreError, OSError) as error:
                unreached.append(f"{path} ({error}; the next `holdfast postgres vacuum` tries again)")
                continue
            missing += [f"{path} ({gone})"] if gone else []
        if found:
            self._rewrite_notes()
        return unreached, missing

    def _erase_one(self, path: str, identity: str, mine: Sequence[Note] = (), pieces: Sequence[bytes] = ()) -> str:
        """Erase from one copy and drop its notes; return why it is not there, or nothing."""
        place = {"host": is_local_path(), "path": path}
        with self._holding(path):
            with self._database.everywhere() as connection:
                noted = connection.execute(self._database.statement("notes_of_copy"), place).fetchall()
            notes = [*dict.fromkeys((*noted, *mine))]
            if not notes:  # somebody else has done it
                return ""
            gone = erase_from_file(path, identity, notes, pieces, COPY_PATIENCE_MS)
            with self._database.everywhere(writing=True) as connection:  # others may have noted more meanwhile
                done = dict(
                    zip(("kinds", "tenants", "users", "ids"), map(list, zip(*notes, strict=True)), strict=True)
                )
                connection.execute(self._database.statement("forget_noted"), {**place, **done})
        return gone

    def _rewrite_notes(self) -> None:
        """Leave no bytes of notes that are done: they name what was erased."""
        address = self._database.address
        with connect(address.conninfo) as connection, translate_driver_errors(address.shown):
            connection.execute(f"VACUUM FULL {SCHEMA}.copies")
