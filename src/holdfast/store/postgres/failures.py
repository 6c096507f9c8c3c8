"""PostgreSQL's errors as ours, once, with the original as cause."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from psycopg import errors

from holdfast.errors import BusyStoreError, DamagedStoreError, ReadOnlyStoreError, ServerError, StoreError

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


def is_lost(error: BaseException | None) -> bool:
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


def is_worth_another_try(error: BaseException | None) -> bool:
    """Return whether the same transaction would go through, had it come a moment later."""
    return isinstance(error, _AGAIN)


@contextmanager
def translated(place: str, *, writing: bool = False) -> Iterator[None]:
    """Turn the errors of a block into ours; of one transaction (`writing`) the message says what became of it."""
    try:
        yield
    except psycopg.Error as error:
        raise explained(error, place, writing=writing) from error


def explained(error: psycopg.Error, place: str, *, writing: bool = False) -> StoreError | ServerError:
    """Return an error of ours that says what happened, where, and what to do."""
    said = (error.diag.message_primary or str(error)).strip().splitlines()
    found = next((remedy for kind, remedy in _TRANSLATION.items() if isinstance(error, kind)), None)
    undone = "this write was undone; " if writing else ""
    if found is None and is_lost(error):
        found, undone = (ServerError, _UNREACHABLE), "this write is not acknowledged; " if writing else ""
    kind, remedy = found or (StoreError, "run `holdfast doctor`")
    return kind(f"{place}: {undone}{remedy} (PostgreSQL: {said[0] if said else type(error).__name__})")
