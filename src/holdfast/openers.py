"""Opening a store: a SQLite file, or a PostgreSQL database by its address; and how its index is derived."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict
from functools import partial
from importlib import import_module
from pathlib import Path

from holdfast.errors import MissingExtraError
from holdfast.messages.checks import check_location
from holdfast.retrieval.hyperdimensional import encode_unit
from holdfast.settings import Settings, StoreSettings
from holdfast.store.contract import Derivation, Store
from holdfast.store.postgres.address import is_postgres
from holdfast.text import analyse
from holdfast.text.names import symbol_tokens


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


# ------------------------------------------------------------------------------------------------------ servers


def is_address(path: object) -> bool:
    """Return whether a caller names a server, and not a file."""
    return isinstance(path, str) and path.startswith(("http://", "https://", "unix:"))


def connect(address: object, token: str | None, own: Mapping[str, object]) -> object:
    """Return the memory of a server; its door is an extra, and is found when it is asked for.

    Raises:
        MissingExtraError: the extra is not installed.
    """
    return import_module("holdfast.client.remote").connect(address, token, own)


def check_store(what: str, path: object) -> str | Path:
    """Return where a store is: the address of a database, or a path."""
    if isinstance(path, str) and is_postgres(path):
        return path
    return check_location(what, path)


# Counted up whenever analysis, or what an index keeps of it, changes: indexes saved before no longer fit.
_ANALYSIS_VERSION = 7


def derivation(settings: Settings) -> Derivation:
    """Return the derivation the settings describe."""
    return Derivation(  # of nothing but what another process can be given
        analyse=partial(analyse, settings=settings.analysis),
        hypervectors=partial(encode_unit, settings=settings.hyper),
        fingerprint=json.dumps([_ANALYSIS_VERSION, asdict(settings.analysis)]),
        tokens=symbol_tokens,
    )
