"""Sharing out the units that wait for their vectors among any number of processes.

Who embeds some units has their rows of `waiting` locked meanwhile, so that others pass over them; the locks end with
the connection, however the process does. Whoever writes passes over them, too, and leaves it to the one who has the
lock to drop the row. A row that is left of a unit that has its vector, or is gone, is dropped by the next one who
claims it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import groupby
from operator import itemgetter
from typing import Any

import psycopg

from holdfast.store.postgres.postgres_database import PostgresDatabase
from holdfast.store.postgres.schema import SCHEMA
from holdfast.store.rows import GLOBAL, unit_of
from holdfast.types import Unit
from holdfast.types.outcomes import Claimed

# Where somebody who goes through all that waits has come to: tenant and key.
Place = tuple[str, int]
_START: Place = ("", 0)


@contextmanager
def claimed(database: PostgresDatabase, space: str, most: int, after: Place | None) -> Iterator[Claimed]:
    """Claim the first units behind a place that nobody has claimed."""
    with database.alone() as connection:
        rows = _lock(connection, after or _START, most)
        by_tenant = {tenant: [key for _, key in some] for tenant, some in groupby(rows, key=itemgetter(0))}
        found = {tenant: _read(database, space, tenant, keys) for tenant, keys in by_tenant.items()}
        yield Claimed(tuple(unit for one in found.values() for unit in one.values()), rows[-1] if rows else None)
    for tenant, keys in by_tenant.items():
        _drop(database, tenant, keys)


def _lock(connection: psycopg.Connection[Any], start: Place, most: int) -> list[Place]:
    """Lock the first rows that nobody has locked, until the connection ends."""
    connection.execute("BEGIN")
    return connection.execute(
        f"SELECT tenant, unit_key FROM {SCHEMA}.waiting WHERE (tenant, unit_key) > (%s, %s) "  # noqa: S608
        "ORDER BY tenant, unit_key LIMIT %s FOR UPDATE SKIP LOCKED",
        (*start, most),
    ).fetchall()


def _read(database: PostgresDatabase, space: str, tenant: str, keys: list[int]) -> dict[int, Unit]:
    """Return those units of a tenant that have no vector of their present words."""
    with database.snapshot(tenant):
        rows = database.run("waiting_of_keys", {"space": space, "keys": json.dumps(keys)}).fetchall()
    return {row[0]: unit_of(row) for row in rows}


def _drop(database: PostgresDatabase, tenant: str, keys: list[int]) -> None:
    """Drop what waits no more, alone with its owners: who gives a unit new words meanwhile has it wait again."""
    asked = {"keys": json.dumps(keys)}
    with database.snapshot(tenant):
        users = {row[9] or GLOBAL for row in database.run("units_by_key", asked)}
    with database.transaction(tenant, sorted(users)):
        database.run("drop_waiting", asked)
