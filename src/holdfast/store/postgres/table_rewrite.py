"""Erasing units from a PostgreSQL store for good (C19, law 16).

Rows that are deleted stay in their pages until a table is written anew (VACUUM FULL), and nobody reads it meanwhile.
Small tables are written anew at once; of large ones that is left to `finish`, at a time that suits. Backups that the
engine made are erased from, as far as they lie on this machine. The server's own copies are its write-ahead log, its
archive and base backups: the answer names them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any
from uuid import uuid4

import psycopg

from holdfast.errors import ServerError, StoreError
from holdfast.store.postgres.copies import Copies
from holdfast.store.postgres.postgres_database import PostgresDatabase
from holdfast.store.postgres.schema import TABLES
from holdfast.store.rows import GLOBAL, ReadUnits, Row, agent_matches, unit_of
from holdfast.store.sqlite.purge import Doomed, doomed_of, erase, resting_on
from holdfast.store.updates import Marker
from holdfast.types import Document, Erasure, View

# Writing so much anew takes about as long as a question may.
_AT_ONCE_BYTES = 64 * 2**20
# That tables hold bytes of what was erased is agreed on under this name.
_ERASING = "erasing"
_SAMPLED = "pages of pg_statistic may hold names of it: VACUUM FULL pg_catalog.pg_statistic as a superuser"
_OUTSIDE = "the server's write-ahead log, its archive, base backups, replicas and logs hold it until it is recycled"
_UNSEEN = "earlier transactions of other roles may still see it: GRANT pg_read_all_stats TO the owner of the store"
# Whoever reads a table keeps it from being written anew, and who waits for that keeps all others from reading it.
_LOCK_MS = 500
# A reader that began before the erasure still sees what was erased; most are done in less.
_LOOKS, _BETWEEN_SECONDS = 40, 0.05
Progress = Callable[[str], None]
Write = Callable[[Mapping[str, set[str]]], AbstractContextManager[Marker]]


class PostgresEraser:
    """Erases units and documents, and then their bytes from the tables."""

    def __init__(self, database: PostgresDatabase, write: Write) -> None:
        self._database = database
        self._run = database.run
        self._write = write
        self._copies = Copies(database)
        self._untold: tuple[str, ...] = ()  # what the server kept us from

    def forget(
        self, view: View, ids: Sequence[str], documents: Sequence[Document], *, owner: bool, progress: Progress
    ) -> Erasure:
        """Erase in one transaction, then write tables anew where that is quick; see `Store.forget`."""
        progress("erasing")
        with self._write({view.tenant: {view.user, GLOBAL}}):
            rows = self._doomed(view, ids, owner=owner)
            gone: list[Doomed] = [*map(doomed_of, rows)]
            summaries = [] if owner else resting_on(self._run, gone)
            gone += map(doomed_of, summaries)
            pieces = self._copies.note((*rows, *summaries), gone, documents, view if owner else None)
            uncovered = erase(self._run, gone, self._database.record_change)
            for one in documents:
                self._run("erase_document", {"user": one.user or GLOBAL, "name": one.name})
            self._database.agree(_ERASING, uuid4().hex)
        progress("reaching copies")
        unreached, missing = self._reach_copies(pieces)
        progress("writing the tables anew")
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

    def _reach_copies(self, pieces: Sequence[bytes]) -> tuple[list[str], list[str]]:
        """Erase from the copies; an error leaves them to whoever finishes."""
        try:
            return self._copies.erase(pieces)
        except StoreError as error:
            return [f"backups ({error}; the next `holdfast postgres vacuum` tries again)"], []

    def preview(self, view: View, ids: Sequence[str], *, owner: bool) -> Erasure:
        """Return what would be erased."""
        with self._database.snapshot(view.tenant):
            rows = self._doomed(view, ids, owner=owner)
            summaries = resting_on(self._run, [*map(doomed_of, rows)])
            return Erasure(units=ReadUnits(rows), summaries=tuple(map(unit_of, summaries)), complete=False)

    def _doomed(self, view: View, ids: Sequence[str], *, owner: bool) -> list[Row]:
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
