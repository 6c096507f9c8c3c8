"""The address of a PostgreSQL store: libpq's, with our own options, which libpq does not see."""

from __future__ import annotations

from typing import Literal, get_args
from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit

from holdfast.errors import InputError, quote_value
from holdfast.values import dataclass

Search = Literal["approximate", "exact"]
# Questions are bound by the processors of the database: more connections than that only wait there instead of here.
_CONNECTIONS, _MOST_CONNECTIONS = 8, 1000


@dataclass(frozen=True, slots=True)
class DatabaseAddress:
    """Where the database is, how large owners are searched, and how many connections one process has at most."""

    conninfo: str
    shown: str  # without the password, for messages
    search: Search = "approximate"
    connections: int = _CONNECTIONS


def read_address(location: str) -> DatabaseAddress:
    """Take our options off an address.

    Raises:
        InputError: an option has a value that it cannot have.
    """
    try:
        parts = urlsplit(location)
    except ValueError as error:
        raise InputError(
            f"{quote_value(location)} is no address: {error}; write postgresql://user@host/database"
        ) from error
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    search, pool = options.pop("search", "approximate"), options.pop("pool", str(_CONNECTIONS))
    if search not in get_args(Search):
        raise InputError(f"search = {quote_value(search)} in the address is none of {', '.join(get_args(Search))}")
    if not pool.isascii() or not pool.isdigit() or not 1 <= int(pool) <= _MOST_CONNECTIONS:
        raise InputError(f"pool = {quote_value(pool)} in the address is no number from 1 to {_MOST_CONNECTIONS}")
    conninfo = urlunsplit(parts._replace(query=urlencode(options, quote_via=quote)))
    who, at, where = parts.netloc.rpartition("@")
    plain = urlunsplit(parts._replace(netloc=f"{who.partition(':')[0]}{at}{where}", query=""))
    return DatabaseAddress(conninfo, plain, "exact" if search == "exact" else "approximate", int(pool))
