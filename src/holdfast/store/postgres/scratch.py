"""A database for a while: empty when it is made, and gone afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit, urlunsplit
from uuid import uuid4

from psycopg import sql

from holdfast.store.postgres.address import read_address
from holdfast.store.postgres.failures import translated
from holdfast.store.postgres.schema import connect


@contextmanager
def scratch_database(location: str) -> Iterator[str]:
    """Make a database beside the one of an address, and yield its own address.

    Raises:
        StoreError: the role may not create databases.
    """
    address, name = read_address(location), f"holdfast_scratch_{uuid4().hex}"
    with connect(address.conninfo) as connection, translated(address.shown):
        connection.execute(sql.SQL("CREATE DATABASE {} TEMPLATE template0").format(sql.Identifier(name)))
        try:
            yield urlunsplit(urlsplit(location)._replace(path=f"/{name}"))
        finally:
            connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))
