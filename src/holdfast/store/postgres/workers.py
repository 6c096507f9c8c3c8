"""Sharing out the units that wait for their vectors among any number of processes.

Who embeds some units has their rows of `waiting` locked meanwhile, on the server where they lie, so that others pass
over them; the locks end with the connection, however the process does. Whoever writes passes over them, too, and
leaves it to the one who has the lock to drop the row. Through a foreign table nobody can: there the locks are
released before anything is written, and a unit may be embedded twice, to the same vector. A row that is left of a
unit that has its vector, or is gone, is dropped by the next one who claims it.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import groupby
from operator import itemgetter
from typing import Any

import psycopg

from holdfast.errors import ServerError
from holdfast.store.postgres.database import PostgresDatabase
from holdfast.store.postgres.schema import SCHEMA
from holdfast.store.rows import GLOBAL, unit_of
from holdfast.types import Unit
from holdfast.types.lifecycle import Claimed

log = logging.getLogger("holdfast")
# Where somebody who goes through all that waits has come to: shard, tenant and key.
Place = tuple[int, str, int]
_START: Place = (-1, "", 0)


@contextmanager
def claimed(database: PostgresDatabase, space: str, most: int, after: Place | None) -> Iterator[Claimed]:
    """Claim the first units behind a place that nobody has claimed."""
    start = after or _START
    with database.everywhere() as connection:
        shards = connection.execute("SELECT shard, server IS NULL FROM shards ORDER BY shard").fetchall()
    for shard, is_here in ((one, here) for one, here in shards if one >= start[0]):
        with ExitStack() as stack:
            try:
                connection = stack.enter_context(database.direct(shard))
                rows = _lock(connection, start if shard == start[0] else (shard, *_START[1:]), most)
            except ServerError as error:
                if is_here:
                    raise
                log.warning("units wait for their vectors on a server that cannot be reached: %s", error)
                continue
            if not rows:
                continue
            by_tenant = {tenant: [key for _, key in some] for tenant, some in groupby(rows, key=itemgetter(0))}
            found = {tenant: _read(database, space, tenant, keys) for tenant, keys in by_tenant.items()}
            units = tuple(unit for one in found.values() for unit in one.values())
            yield Claimed(units, (shard, *rows[-1]), _nothing if is_here else connection.rollback)
        for tenant, keys in by_tenant.items():
            _drop(database, tenant, keys)
        return
    yield Claimed()


def _nothing() -> None:
    """Hold on to the locks: whoever writes passes over them."""


def _lock(connection: psycopg.Connection[Any], start: Place, most: int) -> list[tuple[str, int]]:
    """Lock the first rows of a shard that nobody has locked, until the transaction or the connection ends."""
    shard, tenant, key = start
    connection.execute("BEGIN")
    return connection.execute(
        f"SELECT tenant, unit_key FROM {SCHEMA}.waiting_{shard} WHERE (tenant, unit_key) > (%s, %s) "  # noqa: S608
        "ORDER BY tenant, unit_key LIMIT %s FOR UPDATE SKIP LOCKED",
        (tenant, key, most),
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
