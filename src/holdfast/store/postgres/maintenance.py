"""Caring for a store on PostgreSQL: indexes over vectors, deriving everything again, quotas."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
from psycopg import sql

from holdfast.errors import InputError, NotFoundError, shown
from holdfast.store.contract import Derivation
from holdfast.store.postgres.index_rows import TOGETHER, derive_changed
from holdfast.store.postgres.postgres_database import PostgresDatabase
from holdfast.store.postgres.schema import SCHEMA
from holdfast.store.postgres.search import APPROXIMATE_FROM
from holdfast.store.postgres.vector_index import vector_index_statements
from holdfast.store.rows import Fresh

# What the index was derived with, and what stands there while it is derived again: then nobody opens the store.
DERIVATION, _AGAIN = "derivation", "deriving again"
# A graph that does not fit is built many times slower: a million vectors of 384 numbers take about this much.
_GRAPH = "2GB"
_MOST_UNITS = 2**62
# Is told how much is done, and of how much.
Progress = Callable[[int, int], None]


def fingerprint_of(derivation: Derivation) -> str:
    """Return what names a way of deriving, in short."""
    return f"{zlib.crc32(derivation.fingerprint.encode()):08x}"


# ------------------------------------------------------------------------------------------- indexes over vectors


def build_vector_indexes(
    database: PostgresDatabase, *, least: int = APPROXIMATE_FROM, concurrently: bool = False
) -> list[str]:
    """Build what large owners' vectors are found by in the space that is searched; return what was there or built.

    Where no owner has `least` units nothing is searched by it. `concurrently` takes longer, and nobody waits.
    """
    with database.everywhere() as connection:
        space = connection.execute(database.statement("space_key")).fetchone()
    if space is None:
        return []
    with database.alone() as connection:
        connection.execute(f"SET search_path = {SCHEMA}, public; SET maintenance_work_mem = '{_GRAPH}'")
        [most] = connection.execute(database.statement("largest_owner")).fetchone() or (None,)
        asked = "SELECT vector_dims(vector) FROM vectors WHERE space = %s LIMIT 1"
        found = connection.execute(asked, (space[1],)).fetchone()
        if found is None or (most or 0) < least:
            return []
        statements = vector_index_statements(space[1], found[0], space[0])
        for statement in statements:
            _drop_invalid(connection, statement)
            _build(connection, statement, concurrently=concurrently)
            _sample_nothing_of(connection, _index_of(statement))
    return [_index_of(one) for one in statements]


def _index_of(statement: str) -> str:
    return statement.partition(" IF NOT EXISTS ")[2].partition(" ")[0]


def _sample_nothing_of(connection: psycopg.Connection[Any], name: str) -> None:
    """Let the server keep no samples of vectors, which would outlive an erasure (law 16)."""
    index = sql.Identifier(SCHEMA, name)
    connection.execute(sql.SQL("ALTER INDEX {} ALTER COLUMN 1 SET STATISTICS 0").format(index))


def _drop_invalid(connection: psycopg.Connection[Any], statement: str) -> None:
    """Drop an index that an interruption has left unfinished: nothing uses it."""
    name = _index_of(statement)
    row = connection.execute(
        "SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass(%s)", (f"{SCHEMA}.{name}",)
    ).fetchone()
    if row is not None and not row[0]:
        connection.execute(sql.SQL("DROP INDEX {}").format(sql.Identifier(SCHEMA, name)))


def _build(connection: psycopg.Connection[Any], statement: str, *, concurrently: bool) -> None:
    if concurrently:
        statement = statement.replace("CREATE INDEX", "CREATE INDEX CONCURRENTLY", 1)
    try:
        connection.execute(statement)
    except psycopg.errors.DiskFull:  # several processes share memory, of which a container may have little
        _drop_invalid(connection, statement)
        connection.execute("SET max_parallel_maintenance_workers = 0")
        connection.execute(statement)


# ------------------------------------------------------------------------------------------- deriving everything


def derive_again(
    database: PostgresDatabase, derivation: Derivation, progress: Progress = lambda _done, _of: None
) -> int:
    """Derive what is searched from every unit; return how many there are. Interrupted, it is begun again.

    Nobody opens the store meanwhile. Who has it open writes what another way of deriving gives: end those first.
    """
    with database.everywhere(writing=True) as connection:
        connection.execute(database.statement("agree"), {"name": DERIVATION, "value": _AGAIN})
        tenants = [name for (name,) in connection.execute(database.statement("tenants"))]
        [count] = connection.execute(database.statement("all_units")).fetchone() or (0,)
    done = 0
    for tenant in tenants:
        for number in _derive_tenant(database, derivation, tenant):
            done += number
            progress(done, max(count, done))
    with database.everywhere(writing=True) as connection:
        value = fingerprint_of(derivation)
        connection.execute(database.statement("agree"), {"name": DERIVATION, "value": value})
    return done


def _derive_tenant(database: PostgresDatabase, derivation: Derivation, tenant: str) -> Iterator[int]:
    last = 0
    while True:
        with database.snapshot(tenant):
            found = database.run("next_units", {"after": last, "limit": TOGETHER}).fetchall()
        if not found:
            return
        last, users = found[-1][0], sorted({user for _, user in found})
        with database.transaction(tenant, users):
            keys = [key for key, _ in found]
            database.run("forget_derivation", {"keys": json.dumps(keys)})
            derive_changed(database, derivation, keys, Fresh())
        yield len(found)


# --------------------------------------------------------------------------------------------------------- quotas


def set_quota(database: PostgresDatabase, tenant: str, most: int | None) -> None:
    """Let a tenant keep at most so many units, or any number; one that has more keeps them, and gets no more.

    Raises:
        InputError: the number is none.
        NotFoundError: nobody has written for such a tenant.
    """
    if most is not None and not 0 <= most <= _MOST_UNITS:
        raise InputError(f"{most} units cannot be a quota; give a number from 0 on")
    with database.everywhere(writing=True) as connection:
        changed = connection.execute(database.statement("set_quota"), {"tenant": tenant, "most": most}).rowcount
    if not changed:
        raise NotFoundError(f"there is no tenant {shown(tenant)}; it is known from its first write on")
