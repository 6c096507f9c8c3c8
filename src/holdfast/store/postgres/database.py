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
from psycopg.conninfo import make_conninfo
from psycopg.pq import TransactionStatus
from psycopg_pool import ConnectionPool, PoolTimeout

from holdfast.errors import BusyStoreError, ClosedStoreError, NotFoundError, StoreError, shown
from holdfast.settings import StoreSettings
from holdfast.store.postgres.address import Address
from holdfast.store.postgres.failures import is_lost, is_worth_another_try, translated
from holdfast.store.postgres.schema import APP_ROLE, SCHEMA, connect, queries
from holdfast.store.postgres.values import Half, register
from holdfast.store.rows import GLOBAL, Row, agent_matches, columns, unit_of
from holdfast.types import Deadline, Unit, View

# A tenant that nobody has written for has no shard, and no leaf has this number.
NO_SHARD = -1
# A serialisation failure goes away by itself; what fails so often has another reason.
_TRIES = 6
# A statement that is cancelled costs its answer: on a busy machine it may run longer than the question's budget.
_LEAST_TIMEOUT_MS = 2000
_LOCK_NAME = "holdfast"
# Who waits for a connection looks so often whether there is a server at all; the pool itself gives up so soon, and
# tries anew for the next who asks.
_LOOK_SECONDS, _RECONNECT_SECONDS = 1.0, 0.5


@dataclass(slots=True)
class _Open:
    """The transaction that a thread has open."""

    connection: psycopg.Connection[Any]
    writing: bool
    tenant: str = ""
    shard: int = NO_SHARD
    server: str | None = None  # where the shard lies, if not here
    # What was written and is not yet told to the index: key → tenant and user.
    changed: dict[int, tuple[str, str]] = field(default_factory=dict)
    inserts: list[dict[str, Any]] = field(default_factory=list)
    keys: list[int] = field(default_factory=list)


class PostgresDatabase:
    """Statements run in the transaction that the calling thread has open; nothing else is remembered."""

    def __init__(self, address: Address, settings: StoreSettings) -> None:
        self.address = address
        self.patience_ms = settings.busy_timeout_ms
        self._process = os.getpid()
        self._closed = False
        self._local = threading.local()
        self._pool = ConnectionPool(
            address.conninfo,
            min_size=0,
            max_size=address.connections,
            open=True,
            configure=self._configure,
            reconnect_timeout=_RECONNECT_SECONDS,
            kwargs={"autocommit": True, "connect_timeout": 10},
        )

    def _configure(self, connection: psycopg.Connection[Any]) -> None:
        register(connection)
        connection.execute(
            sql.SQL("SELECT set_config('search_path', {}, false), set_config('lock_timeout', {}, false)").format(
                f"{SCHEMA}, public", f"{self.patience_ms}ms"
            )
        )

    def close(self) -> None:
        """Release the connections; further calls raise `ClosedStoreError`."""
        if self.is_usable():
            self._pool.close()
        self._closed = True

    def is_usable(self) -> bool:
        """Return whether it is open, and by this process."""
        return not self._closed and os.getpid() == self._process

    # ---------------------------------------------------------------------------------------- transactions

    @contextmanager
    def snapshot(self, tenant: str) -> Iterator[None]:
        """Read one state in a block, whatever others write; a block inside a block reads the same state."""
        outer = self._current()
        if outer is not None:
            before = outer.tenant
            self.bind(tenant)
            try:
                yield
            finally:
                if outer.connection.info.transaction_status == TransactionStatus.INTRANS:
                    self.bind(before)
            return
        with self._begun("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", tenant, writing=False):
            yield

    @contextmanager
    def transaction(self, tenant: str, users: Sequence[str] = ()) -> Iterator[None]:
        """Run a block as one transaction of a tenant, alone with the units of some of its users."""
        if self._current() is not None:
            raise StoreError(
                "nothing is written while this thread reads: an embedder or counter of a question called back "
                "into its memory; write before or after the question"
            )
        locks = [lock_number(tenant, user) for user in sorted({*users})]
        with self._begun("BEGIN ISOLATION LEVEL READ COMMITTED", tenant, writing=True, locks=locks):
            yield

    def retry(self, work: Callable[[], Any]) -> Any:  # noqa: ANN401 - whatever the work gives
        """Do work that is one transaction, again when it ran into another one; done twice, it is the same."""
        for tries_left in range(_TRIES - 1, -1, -1):
            try:
                return work()
            except BusyStoreError as error:
                if not tries_left or not is_worth_another_try(error.__cause__):
                    raise
        raise AssertionError

    @contextmanager
    def _begun(self, statement: str, tenant: str, *, writing: bool, locks: Sequence[int] = ()) -> Iterator[None]:
        self._refuse_unusable()
        with translated(self.address.shown, writing=writing):
            connection = self._begin(statement)
            self._local.open = opened = _Open(connection, writing)
            try:
                self.bind(tenant, locks=locks)
                yield
                self.flush()
                connection.execute("COMMIT")
            except BaseException:
                self._roll_back(connection)
                raise
            finally:
                self._local.open = None
                opened.changed.clear()
                self._pool.putconn(connection)

    def _begin(self, statement: str) -> psycopg.Connection[Any]:
        return self._first(statement)[0]

    def _first(
        self, statement: str, values: Mapping[str, Any] | None = None
    ) -> tuple[psycopg.Connection[Any], psycopg.Cursor[Any]]:
        """Take a connection and run a first statement on it; one that died since it was last used is replaced."""
        for _ in range(self.address.connections + 1):
            connection = self._take()
            try:
                cursor = connection.execute(statement, values)
            except psycopg.OperationalError as error:
                self._pool.putconn(connection)
                if not is_lost(error):
                    raise
            else:
                return connection, cursor
        connect(self.address.conninfo).close()
        raise BusyStoreError(
            f"connections to {self.address.shown} die as soon as they are used; see the server's log"
        )

    def _take(self) -> psycopg.Connection[Any]:
        """Take a connection from the pool; whoever waits hears soon that the server is away."""
        slices = max(1, round(self.patience_ms / 1000 / _LOOK_SECONDS))
        for left in range(slices - 1, -1, -1):
            try:
                return self._pool.getconn(min(_LOOK_SECONDS, max(0.05, self.patience_ms / 1000)))
            except PoolTimeout as error:
                connect(self.address.conninfo).close()  # says why, when no connection can be had at all
                if not left:
                    raise BusyStoreError(
                        f"all {self.address.connections} connections to {self.address.shown} are in use; raise `pool` "
                        "in the address, or ask less at a time"
                    ) from error
        raise AssertionError

    def _roll_back(self, connection: psycopg.Connection[Any]) -> None:
        if not connection.closed and connection.info.transaction_status != TransactionStatus.IDLE:
            try:
                connection.execute("ROLLBACK")
            except psycopg.OperationalError:  # why it failed is what the caller has to hear
                connection.close()

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

        A writer has the tenant for itself against whoever moves it, and takes locks first, before it sees anything.
        """
        opened = self._open
        if opened.tenant == tenant and not locks:
            return
        self.flush()
        name = sql.Literal(tenant)
        steps = [sql.SQL("SELECT set_config('holdfast.tenant', {}, true)").format(name)]
        if opened.writing:
            moving = sql.Literal(lock_number(tenant))
            steps.append(sql.SQL("SELECT pg_advisory_xact_lock_shared({})").format(moving))
            steps += [sql.SQL("SELECT pg_advisory_xact_lock({})").format(sql.Literal(one)) for one in locks]
        steps.append(sql.SQL("SET LOCAL ROLE {}").format(sql.Identifier(APP_ROLE)))
        place = "SELECT shard, server FROM tenants JOIN shards USING (shard) WHERE tenant = {}"
        steps.append(sql.SQL(place).format(name))
        cursor = opened.connection.execute(sql.SQL("; ").join(steps))
        while cursor.nextset():
            pass
        row = cursor.fetchone()
        if row is None and opened.writing:
            opened.connection.execute(queries()["add_tenant"], {"tenant": tenant})
            row = opened.connection.execute(queries()["tenant_shard"], {"tenant": tenant}).fetchone()
        opened.tenant, (opened.shard, opened.server) = tenant, row or (NO_SHARD, None)

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
        with translated(self.address.shown, writing=writing):
            connection = self._begin("BEGIN" if writing else "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                self._roll_back(connection)
                raise
            finally:
                self._pool.putconn(connection)

    @contextmanager
    def direct(self, shard: int) -> Iterator[psycopg.Connection[Any]]:
        """Yield a connection to the server where a shard lies, outside of any transaction."""
        self._refuse_unusable()
        with self.everywhere() as connection:
            row = connection.execute(queries()["far_address"], {"shard": shard}).fetchone()
        there, password = row or (None, None)
        conninfo = self.address.conninfo if there is None else make_conninfo(there, password=password)
        with connect(conninfo) as connection, translated(there or self.address.shown):
            connection.execute("SELECT set_config('lock_timeout', %s, false)", (f"{self.patience_ms}ms",))
            yield connection

    def shard(self) -> int:
        """Return the shard of the bound tenant."""
        return self._open.shard

    @contextmanager
    def within(self, deadline: Deadline) -> Iterator[Callable[[], bool]]:
        """Give the statements of a block as long as a question has left; those that take longer are cancelled.

        The yielded function says afterwards whether that happened.
        """
        opened, cancelled = self._open, False
        left = max(_LEAST_TIMEOUT_MS, int(deadline.timeout_ms - deadline.elapsed_ms()))
        opened.connection.execute(f"SAVEPOINT budget; SET LOCAL statement_timeout = {min(left, 2**31 - 1)}")
        try:
            yield lambda: cancelled
        except psycopg.errors.QueryCanceled:
            cancelled = True
            opened.connection.execute("ROLLBACK TO SAVEPOINT budget; RELEASE SAVEPOINT budget")
            return
        opened.connection.execute("RELEASE SAVEPOINT budget; SET LOCAL statement_timeout = 0")

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
        given = {**values, "shard": opened.shard, "tenant": opened.tenant}
        if isinstance(vector := given.get("vector"), bytes):
            given["vector"] = Half(vector)
        return opened.connection.execute(statement, given, binary=True)

    def ask(self, name: str, values: Mapping[str, Any]) -> Any:  # noqa: ANN401 - a row of whatever was asked for
        """Run one statement of the whole store and return its first row: in the open transaction, or in none."""
        if self._current() is not None:
            return self.run(name, values).fetchone()
        self._refuse_unusable()
        with translated(self.address.shown):
            connection, cursor = self._first(queries()[name], values)
            try:
                return cursor.fetchone()
            finally:
                self._pool.putconn(connection)

    def run_many(self, name: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Run a statement for each of some rows, all on their way before the first answer."""
        opened = self._open
        given = [{**row, "shard": opened.shard, "tenant": opened.tenant} for row in rows]
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

    def find(self, tenant: str, user: str | None, unit_id: str) -> Row | None:
        """Return the row of one owner's unit."""
        self.bind(tenant)
        row: Row | None = self.run("find_unit", {"user": user or GLOBAL, "id": unit_id}).fetchone()
        return row

    def find_seen(self, view: View, unit_id: str) -> Row:
        """Return the owner's unit of that id, else the global one.

        Raises:
            NotFoundError: there is none that the view's owner may see.
        """
        for user in (view.user, None):
            row = self.find(view.tenant, user, unit_id)
            if row is not None and (view.agent is None or agent_matches(view, unit_of(row))):
                return row
        raise NotFoundError(f"there is no unit {shown(unit_id)} for user {shown(view.user)}; check id and owner")

    # --------------------------------------------------------------------------------------------- writing

    def insert(self, unit: Unit, document: str | None = None) -> tuple[int, int]:
        """Write a new unit, together with others of the same call; return its key and its checksum."""
        opened = self._open
        if not opened.keys:
            wanted = 2 * len(opened.inserts) + 1
            opened.keys = [key for (key,) in opened.connection.execute(queries()["next_keys"], {"count": wanted})]
        key, row = opened.keys.pop(0), {**columns(unit, document), **repeated(unit)}
        opened.inserts.append({**row, "key": key})
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

    def take_changes(self) -> dict[str, list[int]]:
        """Return the keys of the units that changed in this transaction, by tenant."""
        self.flush()
        opened, found = self._open, dict[str, list[int]]()
        for key, (tenant, _) in opened.changed.items():
            found.setdefault(tenant, []).append(key)
        opened.changed.clear()
        return found


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
