"""One SQLite file in use: a connection, a lock, transactions, and statements by name."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from holdfast.errors import ClosedStoreError, NotFoundError, StoreError, quote_value
from holdfast.store.rows import GLOBAL, UnitRow, columns, unit_of
from holdfast.store.sqlite.migrate import IDENTITY, close_connection, queries, translate_errors
from holdfast.store.visibility import agent_matches
from holdfast.types import JSON, Unit, View


class Database:
    """A connection that is shared between threads by a lock, and refuses to be used across a fork.

    `location` is where the file really lies, `name` what its opener calls it: links and the working folder change.
    """

    def __init__(self, connection: sqlite3.Connection, location: str, name: str) -> None:
        self.connection = connection
        self.location = location
        self.name = name
        self.lock = threading.RLock()
        self.written = True  # since the index last looked; SQLite reports the writes of other connections only
        self._changed: dict[int, tuple[str, str]] = {}
        self._process = os.getpid()
        self._closed = False
        self.identity = self._agree_on_identity()

    def close(self) -> None:
        """Release the file; further calls raise `ClosedStoreError`."""
        if self.is_usable():
            close_connection(self.connection, self.location)
        self._closed = True

    def is_usable(self) -> bool:
        """Return whether it is open, and by this process."""
        return not self._closed and os.getpid() == self._process

    def _agree_on_identity(self) -> str:
        """Return what tells this store and its copies from all others."""
        with self.in_use():
            found = self.agreed(IDENTITY)
        if found is None:
            with self.transaction():
                self.run("agree_first", {"name": IDENTITY, "value": os.urandom(16).hex()})
                found = self.agreed(IDENTITY)
        return found or ""

    # ------------------------------------------------------------------------------------------ statements

    def run(self, name: str, values: Mapping[str, JSON], *, visible: str = "") -> sqlite3.Cursor:
        """Run the statement called `name`; `visible` is a compiled view."""
        statement = queries()[name]
        return self.connection.execute(statement.replace("{where}", visible) if visible else statement, values)

    @contextmanager
    def in_use(self, *, writing: bool = False) -> Iterator[None]:
        """Hold the lock; errors of SQLite become ours."""
        if os.getpid() != self._process:  # before the lock, which another thread of the parent may have held
            raise ClosedStoreError("this memory was opened by the parent process; open it again after a fork")
        with self.lock:
            if self._closed:
                raise ClosedStoreError("this memory is closed; open it again")
            with translate_errors(self.location, writing=writing):
                yield

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Read one state in a block, whatever other processes write; a block inside a block reads the same state."""
        with self.in_use():
            outermost = not self.connection.in_transaction
            try:
                if outermost:
                    self.connection.execute("BEGIN")
                    self.run("last_change", {}).fetchone()  # the first read decides which state it is
                yield
            finally:
                if outermost and self.connection.in_transaction:
                    self.connection.execute("ROLLBACK")

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Run a block as one transaction: all of it or nothing."""
        with self.in_use(writing=True):
            if self.connection.in_transaction:
                raise StoreError(
                    "nothing is written while this thread reads: an embedder or counter of a question called back "
                    "into its memory; write before or after the question"
                )
            self._changed.clear()
            try:
                self.connection.execute("BEGIN IMMEDIATE")
                yield
                self._write_changes()
                self.connection.execute("COMMIT")
            except BaseException:
                if self.connection.in_transaction:
                    self.connection.execute("ROLLBACK")
                raise

    # ------------------------------------------------------------------------------------- what all need

    def agreed(self, name: str) -> str | None:
        """Return what the whole store agrees on under a name; the caller holds the lock."""
        row = self.run("agreed", {"name": name}).fetchone()
        return None if row is None else str(row[0])

    def agree(self, name: str, value: str) -> None:
        """Let the whole store agree on something; its followers hear of it."""
        self.run("agree", {"name": name, "value": value})
        self.written = True

    def find(self, tenant: str, user: str | None, unit_id: str) -> UnitRow | None:
        """Return the row of one owner's unit."""
        keys = {"tenant": tenant, "user": user or GLOBAL, "id": unit_id}
        row: UnitRow | None = self.run("find_unit", keys).fetchone()
        return row

    def find_seen(self, view: View, unit_id: str) -> UnitRow:
        """Return the owner's unit of that id, else the global one.

        Raises:
            NotFoundError: there is none that the view's owner may see.
        """
        for user in (view.user, None):
            row = self.find(view.tenant, user, unit_id)
            if row is not None and (view.agent is None or agent_matches(view, unit_of(row))):
                return row
        raise NotFoundError(
            f"there is no unit {quote_value(unit_id)} for user {quote_value(view.user)}; check id and owner"
        )

    def insert(self, unit: Unit, document: str | None = None) -> tuple[int, int]:
        """Write a new unit and tell whoever follows; return its key and its checksum."""
        row = columns(unit, document)
        key = self.run("insert_unit", row).lastrowid
        assert key is not None  # noqa: S101 - an INSERT that did not raise has a row id
        self.record_change(key, unit.tenant, unit.user or GLOBAL)
        return key, row["checksum"]

    def replace(self, key: int, unit: Unit) -> int:
        """Write a new version; the one before is kept, with its vector. Return its checksum."""
        self.run("archive_version", {"key": key})
        self.run("archive_vector", {"key": key})
        return self.rewrite(key, unit)

    def rewrite(self, key: int, unit: Unit) -> int:
        """Write a version in the place of what is there, which is not kept. Return its checksum."""
        row = columns(unit)
        self.run("replace_unit", {**row, "key": key})
        self.record_change(key, unit.tenant, unit.user or GLOBAL)
        checksum: int = row["checksum"]
        return checksum

    def record_change(self, key: int, tenant: str, user: str) -> None:
        """Tell whoever follows the feed that a unit of an owner is not what it was."""
        self._changed[key] = (tenant, user)

    def forget_changes(self, tenant: str, user: str) -> None:
        """Tell nobody of the changes of an owner in this transaction: nothing is to name who is forgotten."""
        self._changed = {key: owner for key, owner in self._changed.items() if owner != (tenant, user)}
        self.written = True

    def _write_changes(self) -> None:
        """Write what changed in a transaction to the feed, each unit once."""
        if self._changed:
            rows = [{"tenant": tenant, "user": user, "key": key} for key, (tenant, user) in self._changed.items()]
            self.connection.executemany(queries()["record_change"], rows)
            self.written = True
