"""Maintaining a store on PostgreSQL: vector indexes, rebuilding, quotas, verification, and workers that embed.

A worker that embeds some units has their rows of `waiting` locked meanwhile, so that others pass over them; the locks
end with the connection, however the process does. Whoever writes passes over them, too, and leaves it to the one who
has the lock to drop the row.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import groupby, islice
from operator import itemgetter
from typing import Any

import psycopg
from psycopg import sql

from holdfast.errors import DamagedStoreError, InputError, NotFoundError, quote_value
from holdfast.store.contract import Derivation, Problem
from holdfast.store.erasure import ERASED
from holdfast.store.postgres.connections import SCHEMA
from holdfast.store.postgres.index_rows import TOGETHER, update_index_rows
from holdfast.store.postgres.postgres_database import PostgresDatabase
from holdfast.store.postgres.schema import queries
from holdfast.store.postgres.search import APPROXIMATE_FROM, vector_index_statements
from holdfast.store.rows import GLOBAL, Fresh, find_unfit, unit_of
from holdfast.types import Unit
from holdfast.types.outcomes import ClaimedUnits, Progress

# What the index was derived with, and what stands there while it is derived again: then nobody opens the store.
DERIVATION, _AGAIN = "derivation", "deriving again"
# A graph that does not fit is built many times slower: a million vectors of 384 numbers take about this much.
_GRAPH = "2GB"
_MOST_UNITS = 2**62


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


def rebuild_index(
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
            update_index_rows(database, derivation, keys, Fresh())
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
        raise NotFoundError(f"there is no tenant {quote_value(tenant)}; it is known from its first write on")


# A store that is damaged all over needs no list of all its units.
_MOST_SHOWN = 100
_READ_TOGETHER = 2000
_REBUILD = "derive the index again: `holdfast postgres reindex`"


def problems_in(connection: psycopg.Connection[Any]) -> list[Problem]:
    """Return what is wrong with a store, inside a read transaction."""
    return [*islice(_problems(connection), _MOST_SHOWN)]


def _problems(connection: psycopg.Connection[Any]) -> Iterator[Problem]:
    for name in ("all_bodies", "all_versions"):
        for row in _stream(connection, name):
            try:
                unit_of(row)
            except DamagedStoreError as error:
                yield Problem(str(error).partition("; ")[0], "restore a backup")
    for key, why in find_unfit(_stream(connection, "all_vectors")):
        yield Problem(f"vector of unit row {key} {why}", "run `holdfast reembed`")
    for (key,) in connection.execute(queries()["odd_fates"], {"erased": ERASED}):
        yield Problem(f"unit row {key} is superseded or covered by nothing that exists", "restore a backup")
    for name, what in (("stale_entries", "entry"), ("wrong_postings", "postings")):
        for (key,) in connection.execute(queries()[name]):
            yield Problem(f"the {what} of unit row {key} is not what the unit says", _REBUILD)
    for tenant, user, places in connection.execute(queries()["wrong_counts"]):
        yield Problem(
            f"{places} counts of user {quote_value(user)} of tenant {quote_value(tenant)} are wrong", _REBUILD
        )


def _stream(connection: psycopg.Connection[Any], name: str) -> Iterator[Any]:
    with connection.cursor(name=name, binary=True) as cursor:
        cursor.itersize = _READ_TOGETHER
        cursor.execute(queries()[name])
        yield from cursor


# Where somebody who goes through all that waits has come to: tenant and key.
QueuePosition = tuple[str, int]
_START: QueuePosition = ("", 0)


@contextmanager
def claim_pending(
    database: PostgresDatabase, space: str, most: int, after: QueuePosition | None
) -> Iterator[ClaimedUnits]:
    """Claim the first units behind a place that nobody has claimed."""
    with database.alone() as connection:
        rows = _lock(connection, after or _START, most)
        by_tenant = {tenant: [key for _, key in some] for tenant, some in groupby(rows, key=itemgetter(0))}
        found = {tenant: _read(database, space, tenant, keys) for tenant, keys in by_tenant.items()}
        yield ClaimedUnits(tuple(unit for one in found.values() for unit in one.values()), rows[-1] if rows else None)
    for tenant, keys in by_tenant.items():
        _drop(database, tenant, keys)


def _lock(connection: psycopg.Connection[Any], start: QueuePosition, most: int) -> list[QueuePosition]:
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
