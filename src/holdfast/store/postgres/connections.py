"""The connections of one process to one PostgreSQL server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import psycopg
from psycopg import sql
from psycopg.pq import TransactionStatus
from psycopg_pool import ConnectionPool, PoolTimeout

from holdfast.errors import BusyStoreError
from holdfast.store.postgres.failures import is_lost
from holdfast.store.postgres.schema import SCHEMA, connect
from holdfast.store.postgres.values import register

# Who waits for a connection looks so often whether there is a server at all; the pool itself gives up so soon, and
# tries anew for the next who asks.
_LOOK_SECONDS, _RECONNECT_SECONDS = 1.0, 0.5


class Connections:
    """Connections that are lent one by one; `shown` says in messages to whom they are."""

    def __init__(self, conninfo: str, shown: str, most: int, patience_ms: int) -> None:
        self.shown = shown
        self._conninfo = conninfo
        self._most = most
        self._patience_ms = patience_ms
        self._pool = ConnectionPool(
            conninfo,
            min_size=0,
            max_size=most,
            open=True,
            configure=self._configure,
            reconnect_timeout=_RECONNECT_SECONDS,
            kwargs={"autocommit": True, "connect_timeout": 10},
        )

    def _configure(self, connection: psycopg.Connection[Any]) -> None:
        register(connection)
        connection.execute(
            sql.SQL("SELECT set_config('search_path', {}, false), set_config('lock_timeout', {}, false)").format(
                f"{SCHEMA}, public", f"{self._patience_ms}ms"
            )
        )

    def close(self) -> None:
        """Release them."""
        self._pool.close()

    def begin(
        self, statement: str | sql.Composed, values: Mapping[str, Any] | None = None
    ) -> tuple[psycopg.Connection[Any], psycopg.Cursor[Any]]:
        """Lend a connection with a first statement run on it; one that died since it was last used is replaced."""
        for _ in range(self._most + 1):
            connection = self._take()
            try:
                cursor = connection.execute(statement, values)
            except psycopg.OperationalError as error:
                self.give_back(connection)
                if not is_lost(error):
                    raise
            except BaseException:
                self.give_back(connection)
                raise
            else:
                return connection, cursor
        connect(self._conninfo).close()
        raise BusyStoreError(f"connections to {self.shown} die as soon as they are used; see the server's log")

    def _take(self) -> psycopg.Connection[Any]:
        """Take a connection from the pool; whoever waits hears soon that the server is away."""
        slices = max(1, round(self._patience_ms / 1000 / _LOOK_SECONDS))
        for left in range(slices - 1, -1, -1):
            try:
                return self._pool.getconn(min(_LOOK_SECONDS, max(0.05, self._patience_ms / 1000)))
            except PoolTimeout as error:
                connect(self._conninfo).close()  # says why, when no connection can be had at all
                if not left and self._pool.get_stats().get("pool_size", 0) < self._most:
                    raise BusyStoreError(f"{self.shown} is only just back; try again") from error
                if not left:
                    raise BusyStoreError(
                        f"all {self._most} connections to {self.shown} are in use; raise `pool` in the address, or "
                        "ask less at a time"
                    ) from error
        raise AssertionError

    def give_back(self, connection: psycopg.Connection[Any]) -> None:
        """Take a connection back; whatever it had not committed is undone."""
        if not connection.closed and connection.info.transaction_status != TransactionStatus.IDLE:
            try:
                connection.execute("ROLLBACK")
            except psycopg.OperationalError:  # why it failed is what the caller has to hear
                connection.close()
        self._pool.putconn(connection)
