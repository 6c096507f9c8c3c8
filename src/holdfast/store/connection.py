"""The SQLite store's plumbing: one connection, one lock, transactions, and rows by their owner's keys."""

from __future__ import annotations

import logging
import os
import sqlite3
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from holdfast.errors import ClosedStoreError, StoreError
from holdfast.store.contract import Derivation
from holdfast.store.migrate import IDENTITY, IN_MEMORY, close_connection, translated
from holdfast.store.queries import queries
from holdfast.store.rows import GLOBAL, Row, agent_matches, columns, unit_of
from holdfast.store.sync import Fresh, LiveIndex
from holdfast.types import JSON, Unit, View

log = logging.getLogger("holdfast")


class Connected:
    """A connection that is shared between threads by a lock, and refuses to be used across a fork.

    `location` is where the file really lies, `name` what its opener calls it: links and the working folder change.
    """

    def __init__(self, connection: sqlite3.Connection, location: str, name: str, derivation: Derivation) -> None:
        self._connection = connection
        self._location = location
        self._name = name
        self._lock = threading.RLock()
        self._process = os.getpid()
        self._closed = False
        self._identity = self._agreed_identity()
        beside = None if location == IN_MEMORY else Path(f"{location}.index")
        self._index = LiveIndex(
            self._run, self._transaction, derivation, beside, f"{self._identity} {derivation.fingerprint}"
        )

    def close(self) -> None:
        """See `Store.close`."""
        with self._lock:
            if not self._closed and os.getpid() == self._process:
                try:
                    with translated(self._location):
                        self._index.save()
                except (StoreError, OSError) as error:
                    log.warning("the index is not saved beside the store, so opening it takes longer: %s", error)
                finally:
                    close_connection(self._connection, self._location)
            self._closed = True
            self._index.clear()

    def _agreed_identity(self) -> str:
        """Return what tells this store and its copies from all others."""
        with self._read():
            found = self._run("agreed", {"name": IDENTITY}).fetchone()
        if found is None:
            with self._transaction():
                self._run("agree_first", {"name": IDENTITY, "value": os.urandom(16).hex()})
                found = self._run("agreed", {"name": IDENTITY}).fetchone()
        return str(found[0])

    def _run(self, name: str, values: Mapping[str, JSON], *, visible: str = "") -> sqlite3.Cursor:
        statement = queries()[name]
        return self._connection.execute(statement.replace("{where}", visible) if visible else statement, values)

    def _find(self, tenant: str, user: str | None, unit_id: str) -> Row | None:
        keys = {"tenant": tenant, "user": user or GLOBAL, "id": unit_id}
        row: Row | None = self._run("find_unit", keys).fetchone()
        return row

    def _visible_row(self, view: View, unit_id: str) -> Row | None:
        """Return the owner's unit of that id, else the global one; None for any other owner's."""
        for user in (view.user, None):
            row = self._find(view.tenant, user, unit_id)
            if row is not None and (view.agent is None or agent_matches(view, unit_of(row))):
                return row
        return None

    @contextmanager
    def _reading(self, *, writing: bool = False) -> Iterator[None]:
        if self._closed:
            raise ClosedStoreError("this memory is closed; open it again")
        if os.getpid() != self._process:
            raise ClosedStoreError("this memory was opened by the parent process; open it again after a fork")
        with translated(self._location, writing=writing):
            yield

    @contextmanager
    def _read(self) -> Iterator[None]:
        with self._lock, self._reading():
            yield

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """Run a block as one transaction: all of it or nothing."""
        with self._lock, self._reading(writing=True):
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise

    def _follow(self, fresh: Fresh | None = None) -> None:
        """Bring the index up to date after a commit; what was written is kept, whatever becomes of this."""
        try:
            with self._read():
                self._index.follow(fresh)
        except StoreError as error:
            log.warning("what was written is kept; the index is brought up to date by the next question: %s", error)

    def _replace(self, key: int, unit: Unit) -> None:
        self._run("archive_version", {"key": key})
        self._run("replace_unit", {**columns(unit), "key": key})

    def _record(self, key: int, unit: Unit) -> None:
        self._index.changed()
        self._run("record_change", {"tenant": unit.tenant, "user": unit.user or GLOBAL, "key": key})
