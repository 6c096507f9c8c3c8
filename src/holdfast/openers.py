"""Opening a memory by where it is: a SQLite file here, anything else through the entry point of its scheme.

What needs an extra or stands above this module registers itself in the group `holdfast.openers`, by scheme: the class
of a store (`open` and `temporary`) for a database, a function that returns a memory for a server.
"""

from __future__ import annotations

import json
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from holdfast.errors import MissingExtraError, say_install
from holdfast.messages.checks import check_location, read_rules
from holdfast.retrieval.hyperdimensional import encode_unit
from holdfast.settings import Settings, StoreSettings
from holdfast.store.contract import Derivation, Store
from holdfast.text import analyse
from holdfast.text.names import aliases_of, symbol_tokens

GROUP = "holdfast.openers"
_DATABASES = ("postgresql://", "postgres://")
_SERVERS = ("http://", "https://", "unix:")


def find_opener(scheme: str) -> Any:  # noqa: ANN401 - see above
    """Return what opens addresses of a scheme.

    Raises:
        MissingExtraError: what it needs is not installed.
    """
    from importlib.metadata import entry_points  # noqa: PLC0415 - brings a parser of mail along; a file needs none

    for entry in entry_points(group=GROUP, name=scheme):
        try:
            return entry.load()
        except ModuleNotFoundError as error:
            raise MissingExtraError(f"a store on PostgreSQL needs {error.name}; {say_install('postgres')}") from error
    raise MissingExtraError(f"nothing is installed that opens {scheme} addresses; install Holdfast again")


# ------------------------------------------------------------------------------------------------------- stores


def is_database(location: object) -> bool:
    """Return whether a location is the address of a database, and not a file."""
    return isinstance(location, str) and location.lower().startswith(_DATABASES)


def check_store(what: str, path: object) -> str | Path:
    """Return where a store is: the address of a database, or a path."""
    if isinstance(path, str) and is_database(path):
        return path
    return check_location(what, path)


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
    if is_database(location):
        store: Store = _database(str(location)).open(location, settings, derivation, mending=mending)
        return store
    from holdfast.store.sqlite.sqlite_store import SqliteStore  # noqa: PLC0415 - a server's memory needs no SQLite

    return SqliteStore.open(location, settings, derivation)


def open_configured(path: object, settings: Settings) -> Store:
    """Open or create the store at a path, else the one that the settings name, to be searched as they say."""
    location = check_store("path", settings.store.path if path is None else path)
    # Refused before a file is made, not at the first question or word.
    read_rules(settings.symbolic.rules)
    aliases_of(settings.analysis.aliases)
    return open_store(location, settings.store, derivation(settings))


def is_missing(location: str | Path) -> bool:
    """Return whether a location names a file that does not exist; of a database only its server knows."""
    return not is_database(str(location)) and str(location) != ":memory:" and not Path(location).exists()


def temporary_store(path: str) -> AbstractContextManager[str]:
    """Return where a store is empty, for a while: in this process, or in a database beside the one of an address."""
    if not is_database(path):
        return nullcontext(":memory:")
    made: AbstractContextManager[str] = _database(path).temporary(path)
    return made


def _database(location: str) -> Any:  # noqa: ANN401 - the class of a store
    return find_opener(location.partition("://")[0].lower())


# ------------------------------------------------------------------------------------------------------ servers


def is_address(path: object) -> bool:
    """Return whether a caller names a server, and not a store."""
    return isinstance(path, str) and path.startswith(_SERVERS)


def open_remote(address: object, token: str | None, own: dict[str, object]) -> object:
    """Return the memory of a server; `own` are values that only a memory of one's own can use.

    Raises:
        MissingExtraError: the extra is not installed.
    """
    scheme = address.partition(":")[0] if isinstance(address, str) and is_address(address) else "http"
    return find_opener(scheme)(address, token, own)


# --------------------------------------------------------------------------------------------------- derivation

# Counted up whenever analysis, or what an index keeps of it, changes: indexes saved before no longer fit.
_ANALYSIS_VERSION = 14


def derivation(settings: Settings) -> Derivation:
    """Return the derivation the settings describe."""
    analysis, positional = settings.analysis, settings.hyper.positional
    # Hypervectors that go with no recipe's words are another index; those of the recipes are told by the words.
    apart = [{"positional": positional}] if positional == (analysis.tokenizer == "default") else []
    return Derivation(  # of nothing but what another process can be given
        analyse=partial(analyse, settings=analysis),
        hypervectors=partial(encode_unit, settings=settings.hyper),
        fingerprint=json.dumps([_ANALYSIS_VERSION, asdict(analysis), *apart]),
        tokens=symbol_tokens,
    )
