"""A store on more than one PostgreSQL server: shards that lie elsewhere, and tenants that move between them.

The leaves of such a shard are tables of another server, and foreign tables (postgres_fdw) here: whoever asks for a
tenant reaches that server alone, through this one. What another server does comes first and can be done again; what
this one knows changes in one transaction behind it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from holdfast.errors import BusyStoreError, HoldfastError, InputError, NotFoundError, StoreError, shown
from holdfast.store.postgres.address import Address, read_address
from holdfast.store.postgres.database import PostgresDatabase, lock_number
from holdfast.store.postgres.failures import translated
from holdfast.store.postgres.schema import SCHEMA, SHARD, add_leaf, bring_up_to_date, connect, partitioned, queries

# Servers are added one at a time. Any number that no owner's lock has.
_ADDING = 0x484F4C45
_NAME = re.compile(r"[a-z][a-z0-9_]{0,40}")
# In the other server's own agreements: which shard of whom it has.
# Rows on their way between two servers, together: a few megabytes of long texts or of vectors.
_FETCHED, _SENT = 500, 200
# How often replicas are looked at, while they are waited for.
_LOOK_MS = 50
# What readings on other servers need to know of the store; kept alike by triggers.
_SHARED = {"spaces": "key integer, name text", "agreements": "name text, value text"}
# libpq's options that say who connects; the others say where.
_WHO = ("user", "password", "passfile", "sslcert", "sslkey", "sslpassword")
# What postgres_fdw sets by itself.
_OWN = ("client_encoding", "fallback_application_name", "application_name", "options", "connect_timeout")


@dataclass(frozen=True, slots=True)
class Shard:
    """One shard: where it lies, and how much is in it. What cannot be told of a server that is away is None."""

    number: int
    server: str | None  # None is the server that the store was opened at
    address: str
    takes_tenants: bool
    tenants: int
    units: int | None
    bytes: int | None
    problem: str  # why it cannot be reached, or nothing


@dataclass(frozen=True, slots=True)
class Move:
    """What became of a tenant that was moved; `remains` says why rows that it left are still there, or nothing."""

    tenant: str
    left: int
    shard: int
    rows: int
    remains: str


# ---------------------------------------------------------------------------------------------------- servers


def add_server(database: PostgresDatabase, name: str, location: str) -> int:
    """Let new tenants go to another server too; return the number of its shard. Done again, it changes nothing.

    Raises:
        InputError: the name is none, or is another server's.
        StoreError: the other database cannot be used.
        ServerError: the other server cannot be reached.
    """
    if not _NAME.fullmatch(name):
        raise InputError(f"{shown(name)} is no name of a server: small letters, digits and _, at most 41")
    there = read_address(location)
    bring_up_to_date(there)
    with database.everywhere(writing=True) as here, connect(there.conninfo) as other:
        here.execute("SELECT pg_advisory_xact_lock(%s)", (_ADDING,))
        row = here.execute("SELECT shard, address FROM shards WHERE server = %s", (name,)).fetchone()
        if row is not None:
            if row[1] != _without_password(there):
                raise InputError(f"there is a server {name} already, at {row[1]}; choose another name")
            return int(row[0])
        with translated(there.shown):
            shard = _prepare(here, other, there)
        _introduce(here, name, there, shard)
    return shard


def _prepare(here: psycopg.Connection[Any], other: psycopg.Connection[Any], there: Address) -> int:
    """Make the tables of a new shard where they will lie, and return its number."""
    other.execute(f"SET search_path = {SCHEMA}, public")
    # Locks of this kind are a database's own: here it is held, so whoever cannot have it is here.
    [elsewhere] = other.execute("SELECT pg_try_advisory_lock(%s)", (_ADDING,)).fetchone() or (False,)
    if not elsewhere:
        raise StoreError(f"{there.shown} is the store itself, or is being added somewhere; give another database")
    taken = {number for (number,) in here.execute("SELECT shard FROM shards")}
    row = other.execute("SELECT value FROM agreements WHERE name = %s", (SHARD,)).fetchone()
    shard = max(taken) + 1 if row is None or int(row[0]) in taken else int(row[0])
    with other.transaction():
        _refuse_used(other, there)
        other.execute(queries()["agree"], {"name": SHARD, "value": str(shard)})
        [made] = other.execute("SELECT to_regclass(%s)", (f"{SCHEMA}.units_{shard}",)).fetchone() or (None,)
        other.execute("ALTER TABLE spaces ALTER COLUMN key DROP IDENTITY IF EXISTS")  # they come with their keys
        if made is None:
            add_leaf(other, shard)
            for table in partitioned():
                other.execute(f"ALTER TABLE {table} ATTACH PARTITION {table}_{shard} FOR VALUES IN ({shard})")
    return shard


def _refuse_used(other: psycopg.Connection[Any], there: Address) -> None:
    for table in ("tenants", *partitioned()):
        [used] = other.execute(f"SELECT EXISTS (SELECT 1 FROM {table})").fetchone() or (False,)  # noqa: S608
        if used:
            raise StoreError(f"{there.shown} holds a store already ({table}); give an empty database")


def _introduce(here: psycopg.Connection[Any], name: str, there: Address, shard: int) -> None:
    """Make the foreign tables of a shard here, and let tenants go to it."""
    try:
        here.execute("CREATE EXTENSION IF NOT EXISTS postgres_fdw")
    except psycopg.errors.InsufficientPrivilege as error:
        raise StoreError(
            "this role may not add postgres_fdw; let an administrator run CREATE EXTENSION postgres_fdw; "
            f"GRANT USAGE ON FOREIGN DATA WRAPPER postgres_fdw TO {here.info.user}"
        ) from error
    given = {option: str(value) for option, value in conninfo_to_dict(there.conninfo).items() if value}
    where = {option: value for option, value in given.items() if option not in (*_WHO, *_OWN)}
    patience = here.execute("SHOW lock_timeout").fetchone() or ("0",)
    where |= {
        "extensions": "vector",  # so that distances are taken where the vectors lie
        "fetch_size": str(_FETCHED),
        "batch_size": str(_SENT),
        "options": f"-c lock_timeout={patience[0]} -c search_path={SCHEMA},public",
    }
    who = {option: value for option, value in given.items() if option in _WHO}
    who.setdefault("user", here.info.user)
    if "password" not in who:
        who["password_required"] = "false"  # noqa: S105 - no password
    server = sql.Identifier(name)
    here.execute(
        sql.SQL("CREATE SERVER {} FOREIGN DATA WRAPPER postgres_fdw OPTIONS ({})").format(server, _options(where))
    )
    try:
        # One for all: with one of its own, each role would have a transaction of its own on the other server.
        here.execute(sql.SQL("CREATE USER MAPPING FOR PUBLIC SERVER {} OPTIONS ({})").format(server, _options(who)))
    except psycopg.errors.InsufficientPrivilege as error:
        raise StoreError(
            f"{there.shown}: only a superuser of the store may connect servers without a password; give one in the "
            "address"
        ) from error
    for table in partitioned():
        far = {"schema_name": SCHEMA, "table_name": f"{table}_{shard}"}
        here.execute(
            sql.SQL("CREATE FOREIGN TABLE {} PARTITION OF {} FOR VALUES IN ({}) SERVER {} OPTIONS ({})").format(
                _leaf(table, shard), sql.Identifier(table), sql.Literal(shard), server, _options(far)
            )
        )
    for table, columns in _SHARED.items():
        far = {"schema_name": SCHEMA, "table_name": table}
        here.execute(
            sql.SQL("CREATE FOREIGN TABLE {} ({}) SERVER {} OPTIONS ({})").format(
                _leaf(table, shard), sql.SQL(columns), server, _options(far)
            )
        )
    here.execute(f"DELETE FROM spaces_{shard}; INSERT INTO spaces_{shard} SELECT key, name FROM spaces")  # noqa: S608
    here.execute(
        f"DELETE FROM agreements_{shard} WHERE name = 'space'; "  # noqa: S608
        f"INSERT INTO agreements_{shard} SELECT name, value FROM agreements WHERE name = 'space'"
    )
    here.execute(
        "INSERT INTO shards (shard, server, address) VALUES (%s, %s, %s)", (shard, name, _without_password(there))
    )


def _options(values: dict[str, str]) -> sql.Composed:
    return sql.SQL(", ").join(
        sql.SQL("{} {}").format(sql.Identifier(name), sql.Literal(value)) for name, value in values.items()
    )


def _without_password(there: Address) -> str:
    given = conninfo_to_dict(there.conninfo)
    kept = {name: value for name, value in given.items() if name not in ("password", "sslpassword")}
    return make_conninfo("", **kept)


def _leaf(table: str, shard: int) -> sql.Identifier:
    return sql.Identifier(f"{table}_{shard}")


def take_tenants(database: PostgresDatabase, shard: int, *, takes: bool) -> None:
    """Say whether new tenants go to a shard.

    Raises:
        NotFoundError: there is no such shard.
        InputError: no shard would be left for them.
    """
    with database.everywhere(writing=True) as connection:
        done = connection.execute("UPDATE shards SET takes_tenants = %s WHERE shard = %s", (takes, shard))
        if not done.rowcount:
            raise NotFoundError(f"there is no shard {shard}; `holdfast cluster list` has all")
        [left] = connection.execute("SELECT count(*) FROM shards WHERE takes_tenants").fetchone() or (0,)
        if not left:
            raise InputError(f"new tenants would have nowhere to go without shard {shard}; add a server first")


def list_shards(database: PostgresDatabase) -> list[Shard]:
    """Return every shard, with what is in it; a server that is away is among them, with the reason."""
    with database.everywhere() as connection:
        rows = connection.execute(queries()["all_shards"]).fetchall()
    return [_describe(database, *row[:3], takes_tenants=row[3]) for row in rows]


def _describe(
    database: PostgresDatabase, number: int, server: str | None, tenants: Sequence[str], *, takes_tenants: bool
) -> Shard:
    place, units, size, problem = database.address.shown, None, None, ""
    try:
        with database.direct(number) as connection:
            place = f"postgresql://{connection.info.host}:{connection.info.port}/{connection.info.dbname}"
            [(units, size)] = connection.execute(
                sql.SQL(queries()["shard_contents"]).format(counts=sql.Identifier(SCHEMA, f"counts_{number}")),
                {"shard": number, "tables": [*partitioned()], "tenants": [*tenants]},
            )
    except HoldfastError as error:
        problem = str(error)
    return Shard(number, server, place, takes_tenants, len(tenants), units, size, problem)


# ---------------------------------------------------------------------------------------------------- tenants


def move_tenant(database: PostgresDatabase, tenant: str, shard: int) -> Move:
    """Bring all rows of a tenant to another shard. Writers of the tenant wait meanwhile, readers do not.

    Killed at any moment, the tenant has its rows in one of the two shards; done again, it goes on.

    Raises:
        NotFoundError: there is no such tenant, or no such shard.
        BusyStoreError: rows of an earlier move cannot be deleted yet.
        StoreError: what arrived is not what was sent; the tenant stays where it was.
    """
    left = _place_of(database, tenant, shard)
    rows = 0
    if left != shard:
        if held_up := _clear(database, tenant, shard):
            raise BusyStoreError(held_up)
        with database.everywhere(writing=True) as connection:
            connection.execute(queries()["note_move"], {"tenant": tenant, "shard": shard})
        rows = _copy(database, tenant, left, shard)
    with database.everywhere() as connection:
        noted = connection.execute(queries()["moves_of"], {"tenant": tenant}).fetchall()
    remains = [_clear(database, tenant, other) for other, deleted in noted if not deleted]
    return Move(tenant, left, shard, rows, "; ".join(filter(None, remains)))


def _place_of(database: PostgresDatabase, tenant: str, shard: int) -> int:
    with database.everywhere() as connection:
        row = connection.execute(queries()["tenant_shard"], {"tenant": tenant}).fetchone()
        known = connection.execute("SELECT 1 FROM shards WHERE shard = %s", (shard,)).fetchone()
    if row is None:
        raise NotFoundError(f"there is no tenant {shown(tenant)}; nothing was ever written for it")
    if known is None:
        raise NotFoundError(f"there is no shard {shard}; `holdfast cluster list` has all")
    return int(row[0])


def _copy(database: PostgresDatabase, tenant: str, left: int, shard: int) -> int:
    """Copy a tenant's rows, compare them, and let everybody go to the new ones; return how many there are."""
    total = 0
    with database.everywhere(writing=True) as connection:
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (lock_number(tenant),))
        # Who changes the space of vectors lets units of every tenant wait, and does not lock them.
        connection.execute("SELECT 1 FROM agreements WHERE name = 'space' FOR SHARE")
        row = connection.execute(queries()["tenant_shard"], {"tenant": tenant}).fetchone()
        if row is None or row[0] != left:
            raise StoreError(f"the tenant {shown(tenant)} was moved by somebody else meanwhile; look, and try again")
        for table in partitioned():
            columns = _columns(connection, table)
            connection.execute(
                sql.SQL("INSERT INTO {} (shard, {}) SELECT {}, {} FROM {} WHERE shard = {} AND tenant = %s").format(
                    sql.Identifier(table), columns, sql.Literal(shard), columns, sql.Identifier(table),
                    sql.Literal(left),
                ), (tenant,),
            )  # fmt: skip
            before, after = (_fingerprint(connection, table, columns, one, tenant) for one in (left, shard))
            if before != after:
                raise StoreError(
                    f"{table} of tenant {shown(tenant)}: {before[0]} rows were sent and {after[0]} arrived, or not "
                    "as they were; the tenant stays where it was"
                )
            total += before[0]
        connection.execute("UPDATE tenants SET shard = %s WHERE tenant = %s", (shard, tenant))
        connection.execute(queries()["forget_move"], {"tenant": tenant, "shard": shard})
        connection.execute(queries()["note_move"], {"tenant": tenant, "shard": left})
    return total


def _columns(connection: psycopg.Connection[Any], table: str) -> sql.Composed:
    names = connection.execute(
        "SELECT attname FROM pg_attribute WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped "
        "AND attname <> 'shard' ORDER BY attnum",
        (f"{SCHEMA}.{table}",),
    ).fetchall()
    return sql.SQL(", ").join(sql.Identifier(name) for (name,) in names)


def _fingerprint(
    connection: psycopg.Connection[Any], table: str, columns: sql.Composed, shard: int, tenant: str
) -> tuple[int, Any]:
    """Return how many rows a tenant has in a shard, and a number that is another one if any of them is."""
    statement = sql.SQL(
        "SELECT count(*), sum(hashtextextended(ROW({})::text, 0)::numeric) FROM {} WHERE shard = {} AND tenant = %s"
    ).format(columns, sql.Identifier(table), sql.Literal(shard))
    [(count, number)] = connection.execute(statement, (tenant,))
    return count, number


# ------------------------------------------------------------------------------------------- what a move leaves


def _clear(database: PostgresDatabase, tenant: str, shard: int) -> str:
    """Delete the rows of a tenant in a shard that is not its own; return why that cannot be now, or nothing."""
    if not _is_known_everywhere(database):
        return (
            f"shard {shard} still has rows that tenant {shown(tenant)} left, because a replica of this server does "
            "not know yet that they moved; move it again when the replica has caught up, and they go"
        )
    with database.everywhere(writing=True) as connection:
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (lock_number(tenant),))
        row = connection.execute(queries()["tenant_shard"], {"tenant": tenant}).fetchone()
        if row is None or row[0] == shard:
            return ""
        for table in partitioned():
            connection.execute(
                sql.SQL("DELETE FROM {} WHERE shard = {} AND tenant = %s").format(
                    sql.Identifier(table), sql.Literal(shard)
                ), (tenant,),
            )  # fmt: skip
        connection.execute(queries()["note_deleted"], {"tenant": tenant, "shard": shard})
    return ""


def _is_known_everywhere(database: PostgresDatabase) -> bool:
    """Wait for the replicas of this server; return whether all of them know what it knows now.

    A reading looks here where its tenant is, and once more after it has begun there. So it does at a replica.
    """
    with database.everywhere() as connection:
        [written] = connection.execute("SELECT pg_current_wal_insert_lsn()::text").fetchone() or ("0/0",)
    for _ in range(max(1, database.patience_ms // _LOOK_MS)):
        with database.everywhere() as connection:
            [behind] = connection.execute(queries()["replicas_behind"], {"written": written}).fetchone() or (0,)
            if not behind:
                return True
            connection.execute("SELECT pg_sleep(%s)", (_LOOK_MS / 1000,))
    return False
