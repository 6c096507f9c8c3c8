"""The SQLite store's plumbing: one connection, one lock, transactions, and rows by their owner's keys."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from holdfast.errors import ClosedStoreError
from holdfast.store.base import Derivation
from holdfast.store.live import LiveIndex
from holdfast.store.migrate import translated
from holdfast.store.queries import queries
from holdfast.store.rows import GLOBAL, Row, agent_matches, columns, unit_of
from holdfast.types import JSON, Unit, View

_IDENTITY = "identity"


class Connected:
    """A connection that is shared between threads by a lock, and refuses to be used across a fork."""

    def __init__(self, connection: sqlite3.Connection, location: str, derivation: Derivation) -> None:
        self._connection = connection
        self._location = location
        self._lock = threading.RLock()
        self._process = os.getpid()
        self._closed = False
        self._index = LiveIndex(self._run, derivation, _beside(location), self._fingerprint(derivation))

    def close(self) -> None:
        """See `Store.close`."""
        with self._lock:
            if not self._closed and os.getpid() == self._process:
                try:
                    with translated(self._location):
                        self._index.save()
                finally:
                    self._connection.close()
            self._closed = True
            self._index.clear()

    def _fingerprint(self, derivation: Derivation) -> str:
        """Return what a snapshot must agree with: this store, and the way its index is derived."""
        with self._read():
            [identity] = self._run("agreed", {"name": _IDENTITY}).fetchone() or [""]
        if not identity:
            identity = os.urandom(16).hex()
            with self._write():
                self._run("agree", {"name": _IDENTITY, "value": identity})
        return f"{identity} {derivation.fingerprint}"

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
    def _reading(self) -> Iterator[None]:
        if self._closed:
            raise ClosedStoreError("this memory is closed; open it again")
        if os.getpid() != self._process:
            raise ClosedStoreError("this memory was opened by the parent process; open it again after a fork")
        with translated(self._location):
            yield

    @contextmanager
    def _read(self) -> Iterator[None]:
        with self._lock, self._reading():
            yield

    @contextmanager
    def _write(self) -> Iterator[None]:
        """Run a block as one transaction: all of it or nothing."""
        with self._lock, self._reading():
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise

    def _replace(self, key: int, unit: Unit) -> None:
        self._run("archive_version", {"key": key})
        self._run("replace_unit", {**columns(unit), "key": key})

    def _record(self, key: int, unit: Unit) -> None:
        self._index.changed()
        self._run("record_change", {"tenant": unit.tenant, "user": unit.user or GLOBAL, "key": key})


def _beside(location: str) -> Path | None:
    """Return where the snapshot of a store lies; a store in memory has none."""
    return None if location == ":memory:" else Path(f"{location}.index")
