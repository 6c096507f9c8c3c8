"""The connections of one process to one PostgreSQL server: a pool, the driver's errors as ours, values both ways."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import psycopg
from psycopg import errors, sql
from psycopg.adapt import Buffer, Dumper, Loader
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import Format, TransactionStatus
from psycopg.types import TypeInfo
from psycopg_pool import ConnectionPool, PoolTimeout

from holdfast.errors import BusyStoreError, DamagedStoreError, ReadOnlyStoreError, ServerError, StoreError
from holdfast.kernels.hypervectors import Hypervector

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
                if not is_connection_lost(error):
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


# Another transaction was in the way, and this one was undone whole: it can be done again.
_AGAIN = (errors.SerializationFailure, errors.DeadlockDetected)
_Remedy = tuple[type[StoreError | ServerError], str]
_NO_RIGHT = "the role has no right to do this; log in as the owner of the store's tables, or as a member of that role"
_CROWDED = "the server takes no more connections; lower `pool`, or raise its max_connections"
_TRANSLATION: dict[type[psycopg.Error], _Remedy] = {
    errors.SerializationFailure: (BusyStoreError, "others write the same; try again"),
    errors.DeadlockDetected: (BusyStoreError, "others write the same; try again"),
    errors.LockNotAvailable: (BusyStoreError, "others write there; try again, or raise store.busy_timeout_ms"),
    errors.TooManyConnections: (BusyStoreError, _CROWDED),
    errors.QueryCanceled: (BusyStoreError, "a statement took too long or was cancelled; try again"),
    errors.ReadOnlySqlTransaction: (ReadOnlyStoreError, "the server is only read; write to the primary server"),
    errors.InsufficientPrivilege: (ReadOnlyStoreError, _NO_RIGHT),
    errors.DiskFull: (StoreError, "the disk of the server is full; make room and try again"),
    errors.OutOfMemory: (StoreError, "the server has no memory left; ask less at a time"),
    errors.InvalidPassword: (StoreError, "the server refuses the password; check the address"),
    errors.InvalidAuthorizationSpecification: (StoreError, "the server refuses the role; check the address"),
    errors.InvalidCatalogName: (StoreError, "there is no such database; create it, or check the address"),
    errors.DataCorrupted: (DamagedStoreError, "the server reports damage; restore a backup"),
    errors.IndexCorrupted: (DamagedStoreError, "an index of the server is damaged; REINDEX it"),
}
_UNREACHABLE = "the server cannot be reached, or went away; start it, or check the address"


def is_connection_lost(error: BaseException | None) -> bool:
    """Return whether the connection is gone, and not just the statement refused."""
    if not isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
        return False
    gone = (
        errors.AdminShutdown,
        errors.CrashShutdown,
        errors.CannotConnectNow,
        errors.IdleInTransactionSessionTimeout,
    )
    return error.sqlstate is None or isinstance(error, gone) or error.sqlstate.startswith("08")


def is_retryable(error: BaseException | None) -> bool:
    """Return whether the same transaction would go through, had it come a moment later."""
    return isinstance(error, _AGAIN)


@contextmanager
def translate_driver_errors(place: str, *, writing: bool = False) -> Iterator[None]:
    """Turn the errors of a block into ours; of one transaction (`writing`) the message says what became of it."""
    try:
        yield
    except psycopg.Error as error:
        raise explain_error(error, place, writing=writing) from error


def explain_error(error: psycopg.Error, place: str, *, writing: bool = False) -> StoreError | ServerError:
    """Return an error of ours that says what happened, where, and what to do."""
    said = (error.diag.message_primary or str(error)).strip().splitlines()
    found = next((remedy for kind, remedy in _TRANSLATION.items() if isinstance(error, kind)), None)
    undone = "this write was undone; " if writing else ""
    if found is None and is_connection_lost(error):
        found, undone = (ServerError, _UNREACHABLE), "this write is not acknowledged; " if writing else ""
    kind, remedy = found or (StoreError, "run `holdfast doctor`")
    return kind(f"{place}: {undone}{remedy} (PostgreSQL: {said[0] if said else type(error).__name__})")


SCHEMA = "holdfast"
_CONNECT_SECONDS = 10


def connect(conninfo: str) -> psycopg.Connection[Any]:
    """Connect once.

    Raises:
        ServerError: nobody answers there.
        StoreError: the server refuses.
    """
    try:
        return psycopg.connect(conninfo, autocommit=True, connect_timeout=_CONNECT_SECONDS)
    except psycopg.OperationalError as error:
        raise explain_error(_refusal(error), _shown(conninfo)) from error
    except psycopg.ProgrammingError as error:
        raise StoreError(f"{_shown(conninfo)}: the address is not understood ({str(error).strip()})") from error


def _refusal(error: psycopg.OperationalError) -> psycopg.Error:
    """Return an error of connecting with the class of its cause, which libpq gives in words alone."""
    said = str(error)
    kinds: dict[str, type[psycopg.Error]] = {
        "password authentication failed": psycopg.errors.InvalidPassword,
        "no password supplied": psycopg.errors.InvalidPassword,
        "too many clients": psycopg.errors.TooManyConnections,
        "too many connections": psycopg.errors.TooManyConnections,
        "remaining connection slots": psycopg.errors.TooManyConnections,
        'role "': psycopg.errors.InvalidAuthorizationSpecification,
        "does not exist": psycopg.errors.InvalidCatalogName,
        "no pg_hba.conf entry": psycopg.errors.InvalidAuthorizationSpecification,
    }
    return next((kind(said) for words, kind in kinds.items() if words in said), error)


def _shown(conninfo: str) -> str:
    try:
        parts = conninfo_to_dict(conninfo)
    except psycopg.ProgrammingError:
        return "the address"
    return f"postgresql://{parts.get('host', '')}:{parts.get('port', 5432)}/{parts.get('dbname', '')}"


# halfvec's binary form: dimensions and a reserved number, 16 bits each, then the numbers, big endian.
_HEAD = np.dtype(">i2").itemsize * 2


# PostgreSQL's numbers of types.
_BIT, _BIGINT, _BIGINTS = 1560, 20, 1016
_KEY = np.dtype([("bytes", ">i4"), ("key", ">i8")])


class Bits(bytes):
    """A hypervector that is to be written as bits."""

    @classmethod
    def of(cls, vector: Hypervector | None) -> Bits | None:
        """Return a hypervector as it is written; which bit stands where is the same for all."""
        return None if vector is None else cls(vector.astype("<u8").tobytes())


class KeyArray(list[int]):
    """Keys of units that are to be written as one array: a list goes number by number."""


class Half(bytes):
    """A vector of 16-bit floats, little endian, that is to be written as a halfvec."""


def register(connection: psycopg.Connection[Any]) -> None:
    """Let a connection read halfvec as bytes, and write `Half`; without pgvector there is nothing to register."""
    connection.adapters.register_dumper(Bits, _BitsDumper)
    connection.adapters.register_dumper(KeyArray, _KeysDumper)
    info = TypeInfo.fetch(connection, "halfvec")
    if info is None:
        return
    info.register(connection)
    connection.adapters.register_dumper(Half, type("_HalfDumper", (_HalfDumper,), {"oid": info.oid}))
    connection.adapters.register_loader(info.oid, _HalfLoader)
    connection.adapters.register_loader(info.oid, _HalfTextLoader)


class _BitsDumper(Dumper):
    format = Format.BINARY
    oid = _BIT

    def dump(self, obj: Bits) -> Buffer | None:
        return (8 * len(obj)).to_bytes(4, "big") + obj


class _KeysDumper(Dumper):
    format = Format.BINARY
    oid = _BIGINTS

    def dump(self, obj: KeyArray) -> Buffer | None:
        rows = np.empty(len(obj), dtype=_KEY)
        rows["bytes"], rows["key"] = _KEY["key"].itemsize, obj
        # How many dimensions, whether there is a NULL, of what; of the one dimension its length and first number.
        return np.array([1, 0, _BIGINT, len(obj), 1], dtype=">i4").tobytes() + rows.tobytes()


class _HalfDumper(Dumper):
    format = Format.BINARY

    def dump(self, obj: Half) -> Buffer | None:
        numbers = np.frombuffer(obj, dtype="<f2").astype(">f2")
        return np.array([len(numbers), 0], dtype=">i2").tobytes() + numbers.tobytes()


class _HalfLoader(Loader):
    format = Format.BINARY

    def load(self, data: Buffer) -> bytes:
        numbers = array("H", bytes(data[_HEAD:]))
        numbers.byteswap()  # a question reads hundreds of vectors: numpy takes twice as long for one
        return numbers.tobytes()


class _HalfTextLoader(Loader):
    format = Format.TEXT

    def load(self, data: Buffer) -> bytes:
        text = bytes(data).decode("ascii").strip("[]")
        return np.array(text.split(","), dtype="<f2").tobytes()
