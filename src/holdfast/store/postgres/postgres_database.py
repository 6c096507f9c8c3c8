"""One PostgreSQL database in use: a pool of connections, transactions of a tenant, and statements by name."""

from __future__ import annotations

import hashlib
import json
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import psycopg
from psycopg import sql
from psycopg.pq import TransactionStatus

from holdfast.errors import BusyStoreError, ClosedStoreError, NotFoundError, StoreError, quote_value
from holdfast.settings import StoreSettings
from holdfast.store.postgres.address import DatabaseAddress
from holdfast.store.postgres.connections import (
    Connections,
    Half,
    connect,
    explain_error,
    is_retryable,
    translate_driver_errors,
)
from holdfast.store.postgres.schema import APP_ROLE, queries
from holdfast.store.rows import GLOBAL, UnitRow, columns, unit_of
from holdfast.store.visibility import agent_matches
from holdfast.types import Deadline, Unit, View

# A serialisation failure goes away by itself; what fails so often has another reason.
_TRIES = 6
# Vectors that are read at once: a megabyte or two.
_READ_TOGETHER = 2000
# A statement that is cancelled costs its answer: on a busy machine it may run longer than the question's budget.
_LEAST_TIMEOUT_MS = 2000
# What a view shows of a large owner is looked up in a hash table, which is not made where it might not fit.
_ROOM = "SET LOCAL work_mem = '128MB'"
_LOCK_NAME = "holdfast"
EVERYONE = ""  # in place of a tenant, for what is the whole store's: it has no rows
_NOBODY = "\0"  # no tenant's name: NUL is not taken
_READING, _WRITING = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", "BEGIN ISOLATION LEVEL READ COMMITTED"


@dataclass(slots=True)
class _Open:
    """The transaction that a thread has open."""

    connection: psycopg.Connection[Any]
    writing: bool
    tenant: str = _NOBODY
    # What was written and is not yet told to the index: key → tenant and user.
    changed: dict[int, tuple[str, str]] = field(default_factory=dict)
    inserts: list[dict[str, Any]] = field(default_factory=list)
    keys: list[int] = field(default_factory=list)
    added_to: set[str] = field(default_factory=set)  # tenants that have new units


class PostgresDatabase:
    """Statements run in the transaction that the calling thread has open; nothing else is remembered."""

    def __init__(self, address: DatabaseAddress, settings: StoreSettings) -> None:
        self.address = address
        self.patience_ms = settings.busy_timeout_ms
        self._process = os.getpid()
        self._closed = False
        self._local = threading.local()
        self._connections = Connections(address.conninfo, address.shown, address.connections, self.patience_ms)

    def close(self) -> None:
        """Release the connections; further calls raise `ClosedStoreError`."""
        if self.is_usable():
            self._connections.close()
        self._closed = True

    def is_usable(self) -> bool:
        """Return whether it is open, and by this process."""
        return not self._closed and os.getpid() == self._process

    # ---------------------------------------------------------------------------------------- transactions

    @contextmanager
    def snapshot(self, tenant: str) -> Iterator[None]:
        """Read one state in a block, whatever others write; a block inside a block reads the same state."""
        outer = self._current()
        if outer is None:
            with self._begun():
                self._begin(_READING, tenant)
                yield
            return
        before = outer.tenant
        self.bind(tenant)
        try:
            yield
        finally:
            if outer.connection.info.transaction_status == TransactionStatus.INTRANS:
                self.bind(before)

    @contextmanager
    def transaction(self, tenant: str, users: Sequence[str] = ()) -> Iterator[None]:
        """Run a block as one transaction of a tenant, alone with the units of some of its users."""
        if self._current() is not None:
            raise StoreError(
                "nothing is written while this thread reads: an embedder or counter of a question called back "
                "into its memory; write before or after the question"
            )
        locks = [lock_number(tenant, user) for user in sorted({*users})]
        with self._begun():
            self._begin(_WRITING, tenant, locks=locks)
            yield

    def retry(self, work: Callable[[], Any]) -> Any:  # noqa: ANN401 - whatever the work gives
        """Do work that is one transaction, again when it ran into another one; done twice, it is the same."""
        for tries_left in range(_TRIES - 1, -1, -1):
            try:
                return work()
            except BusyStoreError as error:
                if not tries_left or not is_retryable(error.__cause__):
                    raise
        raise AssertionError

    @contextmanager
    def _begun(self) -> Iterator[None]:
        """Run a block that begins a transaction of this thread, and end it."""
        self._refuse_unusable()
        try:
            yield
            self.flush()
            self._open.connection.execute("COMMIT")
        except psycopg.Error as error:
            opened = self._current()
            writing = opened is not None and opened.writing
            raise explain_error(error, self.address.shown, writing=writing) from error
        finally:
            opened, self._local.open = self._current(), None
            if opened is not None:
                self._connections.give_back(opened.connection)

    def _begin(self, statement: str, tenant: str, *, locks: Sequence[int] = ()) -> None:
        if statement is _WRITING:
            self._local.open = _Open(self._connections.begin(statement)[0], writing=True)
            self.bind(tenant, locks=locks)
            return
        connection, _ = self._connections.begin(sql.SQL("; ").join([sql.SQL(statement), *_binding(tenant)]))
        self._local.open = _Open(connection, writing=False, tenant=tenant)

    def _current(self) -> _Open | None:
        found: _Open | None = getattr(self._local, "open", None)
        return found

    @property
    def _open(self) -> _Open:
        found = self._current()
        assert found is not None  # noqa: S101 - every statement runs inside `snapshot` or `transaction`
        return found

    def _refuse_unusable(self) -> None:
        if os.getpid() != self._process:
            raise ClosedStoreError("this memory was opened by the parent process; open it again after a fork")
        if self._closed:
            raise ClosedStoreError("this memory is closed; open it again")

    def bind(self, tenant: str, *, locks: Sequence[int] = ()) -> None:
        """Let the statements that follow be about one tenant, and see no other: as a role that row security binds.

        A writer takes locks first, before it sees anything.
        """
        opened = self._open
        if opened.tenant == tenant and not locks:
            return
        self.flush()
        steps = _binding(tenant, locks)
        if opened.writing and tenant != EVERYONE:
            steps.append(sql.SQL(queries()["add_tenant"]).format(sql.Literal(tenant)))
        opened.connection.execute(sql.SQL("; ").join(steps))
        opened.tenant = tenant

    def lock(self, tenant: str, users: Sequence[str]) -> None:
        """Have the units of some more users to itself, until the transaction ends."""
        self.bind(tenant, locks=[lock_number(tenant, user) for user in users])

    @contextmanager
    def as_owner(self) -> Iterator[None]:
        """Run a block with the rights of who opened the store: for what is not one tenant's."""
        connection = self._open.connection
        connection.execute("SET LOCAL ROLE NONE")
        yield
        connection.execute(sql.SQL("SET LOCAL ROLE {}").format(sql.Identifier(APP_ROLE)))

    @contextmanager
    def everywhere(self, *, writing: bool = False) -> Iterator[psycopg.Connection[Any]]:
        """Yield a connection in a transaction of the whole store, with the rights of who opened it."""
        self._refuse_unusable()
        if self._current() is not None:
            raise StoreError("nothing of the whole store is asked inside a question; ask before or after it")
        with translate_driver_errors(self.address.shown, writing=writing):
            connection, _ = self._connections.begin("BEGIN" if writing else _READING)
            try:
                yield connection
                connection.execute("COMMIT")
            finally:
                self._connections.give_back(connection)

    @contextmanager
    def alone(self) -> Iterator[psycopg.Connection[Any]]:
        """Yield a connection of its own, outside of any transaction, with the rights of who opened the store."""
        self._refuse_unusable()
        with connect(self.address.conninfo) as connection, translate_driver_errors(self.address.shown):
            connection.execute("SELECT set_config('lock_timeout', %s, false)", (f"{self.patience_ms}ms",))
            yield connection

    @contextmanager
    def within(self, deadline: Deadline) -> Iterator[Callable[[], bool]]:
        """Give the statements of a block as long as a question has left; those that take longer are cancelled.

        The yielded function says afterwards whether that happened. A plan may sort again, if the block forbade that.
        """
        opened, cancelled = self._open, False
        left = max(_LEAST_TIMEOUT_MS, int(deadline.timeout_ms - deadline.elapsed_ms()))
        opened.connection.execute(f"SAVEPOINT budget; SET LOCAL statement_timeout = {min(left, 2**31 - 1)}; {_ROOM}")
        try:
            yield lambda: cancelled
        except psycopg.errors.QueryCanceled:
            cancelled = True
            opened.connection.execute("ROLLBACK TO SAVEPOINT budget; RELEASE SAVEPOINT budget")
            return
        # Not by going back to the savepoint: whoever says ROLLBACK to psycopg loses all prepared statements.
        opened.connection.execute(
            "RELEASE SAVEPOINT budget; SET LOCAL statement_timeout = 0; SET LOCAL enable_sort = on; "
            "SET LOCAL work_mem TO DEFAULT"
        )

    # ------------------------------------------------------------------------------------------ statements

    def run(self, name: str, values: Mapping[str, Any] = {}, *, visible: str = "") -> psycopg.Cursor[Any]:
        """Run the statement called `name` for the bound tenant; `visible` is a compiled view."""
        statement = queries()[name]
        return self.execute(statement.replace("{where}", visible) if visible else statement, values)

    def statement(self, name: str) -> str:
        """Return the statement called `name`."""
        return queries()[name]

    def execute(self, statement: str, values: Mapping[str, Any] = {}) -> psycopg.Cursor[Any]:
        """Run a statement for the bound tenant."""
        opened = self._open
        if opened.inserts:
            self.flush()
        given = {**values, "tenant": opened.tenant}
        if isinstance(vector := given.get("vector"), bytes):
            given["vector"] = Half(vector)
        return opened.connection.execute(statement, given, binary=True)

    def stream(self, name: str, values: Mapping[str, Any]) -> Iterator[Any]:
        """Yield the rows of a statement a few at a time, inside a transaction."""
        with self._open.connection.cursor(name=name, binary=True) as cursor:
            cursor.itersize = _READ_TOGETHER
            cursor.execute(queries()[name], values)
            yield from cursor

    def ask(self, name: str, values: Mapping[str, Any]) -> Any:  # noqa: ANN401 - a row of whatever was asked for
        """Run one statement of the whole store and return its first row: in the open transaction, or in none."""
        if self._current() is not None:
            return self.run(name, values).fetchone()
        self._refuse_unusable()
        with translate_driver_errors(self.address.shown):
            connection, cursor = self._connections.begin(queries()[name], values)
            try:
                return cursor.fetchone()
            finally:
                self._connections.give_back(connection)

    def run_many(self, name: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Run a statement for each of some rows, all on their way before the first answer."""
        opened = self._open
        given = [{**row, "tenant": opened.tenant} for row in rows]
        with opened.connection.cursor() as cursor:
            cursor.executemany(queries()[name], given)

    # ------------------------------------------------------------------------------------- what all need

    def agreed(self, name: str) -> str | None:
        """Return what the whole store agrees on under a name."""
        row = self.run("agreed", {"name": name}).fetchone()
        return None if row is None else str(row[0])

    def agree(self, name: str, value: str) -> None:
        """Let the whole store agree on something."""
        with self.as_owner():
            self.run("agree", {"name": name, "value": value})

    def find(self, tenant: str, user: str | None, unit_id: str) -> UnitRow | None:
        """Return the row of one owner's unit."""
        self.bind(tenant)
        row: UnitRow | None = self.run("find_unit", {"user": user or GLOBAL, "id": unit_id}).fetchone()
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

    # --------------------------------------------------------------------------------------------- writing

    def insert(self, unit: Unit, document: str | None = None) -> tuple[int, int]:
        """Write a new unit, together with others of the same call; return its key and its checksum."""
        opened = self._open
        if not opened.keys:
            wanted = 2 * len(opened.inserts) + 1
            opened.keys = [key for (key,) in opened.connection.execute(queries()["next_keys"], {"count": wanted})]
        key, row = opened.keys.pop(0), {**columns(unit, document), **repeated(unit)}
        opened.inserts.append({**row, "key": key})
        opened.added_to.add(unit.tenant)
        self.record_change(key, unit.tenant, unit.user or GLOBAL)
        return key, row["checksum"]

    def flush(self) -> None:
        """Write the units that wait to be written together."""
        opened = self._open
        if opened.inserts:
            rows, opened.inserts = opened.inserts, []
            self.run_many("insert_unit", rows)

    def replace(self, key: int, unit: Unit) -> int:
        """Write a new version; the one before is kept, with its vector. Return its checksum."""
        for name in ("archive_version", "unarchive_vector", "archive_vector"):
            self.run(name, {"key": key})
        return self.rewrite(key, unit)

    def rewrite(self, key: int, unit: Unit) -> int:
        """Write a version in the place of what is there, which is not kept. Return its checksum."""
        row = {**columns(unit), **repeated(unit)}
        self.run("replace_unit", {**row, "key": key})
        self.record_change(key, unit.tenant, unit.user or GLOBAL)
        checksum: int = row["checksum"]
        return checksum

    def record_change(self, key: int, tenant: str, user: str) -> None:
        """Note a unit of an owner that is not what it was."""
        self._open.changed[key] = (tenant, user)

    def has_added(self, tenant: str) -> bool:
        """Return whether this transaction has written new units of a tenant."""
        return tenant in self._open.added_to

    def take_changes(self) -> dict[str, list[int]]:
        """Return the keys of the units that changed in this transaction, by tenant."""
        self.flush()
        opened, found = self._open, dict[str, list[int]]()
        for key, (tenant, _) in opened.changed.items():
            found.setdefault(tenant, []).append(key)
        opened.changed.clear()
        return found


def _binding(tenant: str, locks: Sequence[int] = ()) -> list[sql.Composed]:
    """Return the statements that make those behind them one tenant's."""
    steps = [sql.SQL("SELECT set_config('holdfast.tenant', {}, true)").format(sql.Literal(tenant))]
    steps += [sql.SQL("SELECT pg_advisory_xact_lock({})").format(sql.Literal(one)) for one in locks]
    return [*steps, sql.SQL("SET LOCAL ROLE {}").format(sql.Identifier(APP_ROLE))]


def repeated(unit: Unit) -> dict[str, Any]:
    """Return the columns of a unit that SQL searches by, besides those of every store."""
    said = unit.to_json()
    return {
        "agent": unit.agent or "",
        "kind": unit.kind,
        "scope": unit.scope,
        "recorded_time": said["recorded_time"],
        "expires_at": "~" if unit.pinned or unit.expires_at is None else said["expires_at"],
        "valid_from": "" if unit.valid_from is None else said["valid_from"],
        "valid_to": "~" if unit.valid_to is None else said["valid_to"],
        "metadata": json.dumps(unit.metadata, ensure_ascii=False, allow_nan=False),
    }


def lock_number(*names: str) -> int:
    """Return the number of an advisory lock; two names that share one only wait for each other."""
    text = json.dumps([_LOCK_NAME, *names]).encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big", signed=True)
