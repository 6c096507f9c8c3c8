"""Opening a store: a SQLite file, or a PostgreSQL database by its address."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from importlib import import_module
from pathlib import Path

from holdfast.errors import MissingExtraError
from holdfast.settings import StoreSettings
from holdfast.store.contract import Derivation, Store
from holdfast.store.postgres.address import is_postgres


def open_store(
    location: str | Path, settings: StoreSettings, derivation: Derivation, *, mending: bool = False
) -> Store:
    """Open or create the store at a path (`:memory:` keeps nothing) or an address, `postgresql://…`.

    `mending` opens also a database that was loaded or derived in part, or derived in another way.

    Raises:
        StoreError: it cannot be used; the message says why and what to do.
        ServerError: the database cannot be reached.
        MissingExtraError: PostgreSQL needs an extra that is not installed.
    """
    # Each back end is imported when it is asked for: one needs an extra.
    try:
        if is_postgres(location):
            back_end = import_module("holdfast.store.postgres.postgres_store").PostgresStore
        else:
            back_end = import_module("holdfast.store.sqlite.sqlite_store").SqliteStore
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            f"a store on PostgreSQL needs {error.name}; pip install 'holdfast[postgres]'"
        ) from error
    more = {"mending": mending} if is_postgres(location) else {}
    store: Store = back_end.open(location, settings, derivation, **more)
    return store


def is_missing(location: str | Path) -> bool:
    """Return whether a location names a file that does not exist; of a database only its server knows."""
    return not is_postgres(str(location)) and str(location) != ":memory:" and not Path(location).exists()


def empty_place(path: str) -> AbstractContextManager[str]:
    """Return where a store is empty, for a while: in this process, or in a database beside the one of an address."""
    if not is_postgres(path):
        return nullcontext(":memory:")
    made: AbstractContextManager[str] = import_module("holdfast.store.postgres.scratch").scratch_database(path)
    return made
