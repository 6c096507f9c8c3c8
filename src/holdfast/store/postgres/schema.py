"""Opening a PostgreSQL database: can it be reached, is it ours, is it new enough; and bringing it up to date."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import resources
from typing import Any
from urllib.parse import urlsplit, urlunsplit
from uuid import uuid4

import psycopg
from psycopg import sql

from holdfast.errors import ForeignStoreError, NewerStoreError, ReadOnlyStoreError, StoreError, quote_value
from holdfast.store.postgres.address import DatabaseAddress, read_address
from holdfast.store.postgres.connections import SCHEMA, connect, translate_driver_errors

# What tenants' transactions run as: it has no right to pass row security, and nobody logs in as it.
APP_ROLE = "holdfast_app"
# halfvec and Hamming distances came with 0.7, scans that go on behind a filter with 0.8.
_OLDEST_VECTOR = (0, 8)
_OLDEST_SERVER = 160_000
# Whoever opens a store first brings it up to date; the others wait for that. Any number that no owner's lock has.
_MIGRATING = 0x484F4C44
# Each time somebody else was faster, and is done by now.
_ROLE_TRIES = 5
# Whose rows belong to tenants.
TABLES = (
    "units", "versions", "vectors", "version_vectors", "absences", "documents", "entries", "postings", "counts",
    "names", "facts", "symbols", "waiting",
)  # fmt: skip
# What no plan needs to know: words and vectors. Names are sampled, as plans go by them, until an erasure.
_NEVER_SAMPLED = (
    "body metadata gate superseded_why path given_to terms fields tfs impacts lengths acts topic claim vector low "
    "high"
).split()
_SAMPLE_NOTHING = """
DO $$
DECLARE one record;
BEGIN
    FOR one IN SELECT attrelid::regclass AS place, attname FROM pg_attribute
        WHERE attrelid = ANY (string_to_array(current_setting('holdfast.tables'), ',')::regclass[]) AND attnum > 0
            AND NOT attisdropped AND attname = ANY (string_to_array(current_setting('holdfast.columns'), ','))
    LOOP
        EXECUTE format('ALTER TABLE %s ALTER COLUMN %I SET STATISTICS 0', one.place, one.attname);
    END LOOP;
END $$
"""
_NAME = re.compile(r"^-- name: (\w+)\n", re.MULTILINE)


def _folder() -> Any:  # noqa: ANN401 - importlib's Traversable, whose module moves between Pythons
    return resources.files("holdfast.store.postgres") / "sql"


@cache
def queries() -> dict[str, str]:
    """Return every named statement."""
    found: dict[str, str] = {}
    for file in ("queries.sql", "search.sql"):
        path = _folder() / file
        parts = _NAME.split(path.read_text(encoding="utf-8"))[1:] if path.is_file() else []
        found |= {name: body.strip().rstrip(";") for name, body in zip(parts[::2], parts[1::2], strict=True)}
    row, version, given = found.pop("row"), found.pop("version"), found.pop("ids")
    keys, counted, known, entry = (found.pop(name) for name in ("keys", "counted", "known", "entry"))
    filled = {
        "{row}": row, "{version}": version, "{ids}": given, "{keys}": keys, "{counted}": counted, "{known}": known,
        "{entry}": entry,
    }  # fmt: skip
    for mark, text in filled.items():
        found = {name: body.replace(mark, text) for name, body in found.items()}
    return found


@cache
def migrations() -> tuple[tuple[int, str], ...]:
    """Return the numbered migrations, in order."""
    scripts = sorted(
        (f for f in (_folder() / "migrations").iterdir() if f.name.endswith(".sql")), key=lambda f: f.name
    )
    return tuple((int(script.name[:4]), script.read_text(encoding="utf-8")) for script in scripts)


def migrate_schema(address: DatabaseAddress) -> bool:
    """Create the schema or bring it up to date; return whether this server is a replica, which is only read.

    Raises:
        StoreError: the database cannot be used; the message says why and what to do.
    """
    with connect(address.conninfo) as connection, translate_driver_errors(address.shown):
        if connection.info.server_version < _OLDEST_SERVER:
            found = connection.info.server_version // 10_000
            raise StoreError(f"{address.shown} runs PostgreSQL {found}; 16 is the oldest that fits")
        [replica] = connection.execute("SELECT pg_is_in_recovery()").fetchone() or (False,)
        if _check(connection, address):
            return bool(replica)
        if replica:
            _refuse_spread(connection, address)
            return True
        with connection.transaction():
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (_MIGRATING,))
            if not _check(connection, address):
                _refuse_spread(connection, address)
                _create(connection, address)
        return False


def _check(connection: psycopg.Connection[Any], address: DatabaseAddress) -> bool:
    """Return whether the schema is here and up to date."""
    known = connection.execute("SELECT to_regclass(%s)", (f"{SCHEMA}.migrations",)).fetchone()
    if known is None or known[0] is None:
        return False
    try:
        [applied] = connection.execute(f"SELECT max(number) FROM {SCHEMA}.migrations").fetchone() or (0,)  # noqa: S608
    except psycopg.errors.UndefinedColumn as error:
        raise ForeignStoreError(
            f"{address.shown} has a schema {SCHEMA} that is not Holdfast's; use another database"
        ) from error
    newest = migrations()[-1][0]
    if (applied or 0) > newest:
        raise NewerStoreError(
            f"{address.shown} has schema {applied}, written by a newer Holdfast; this one knows {newest}: upgrade it"
        )
    return bool(applied == newest)


def _refuse_spread(connection: psycopg.Connection[Any], address: DatabaseAddress) -> None:
    """Refuse one of several servers that older versions could spread a store over."""
    [known] = connection.execute("SELECT to_regclass(%s)", (f"{SCHEMA}.shards",)).fetchone() or (None,)
    if known is None:
        return
    connection.execute(f"SET search_path = {SCHEMA}, public")
    [spread] = connection.execute(queries()["is_spread"]).fetchone() or (False,)
    if spread:
        raise StoreError(
            f"{address.shown} belongs to a store that is spread over several servers, which this version cannot "
            "read; with the version that spread it, move every tenant home (`holdfast cluster move TENANT front`), "
            "run `holdfast cluster vacuum`, and open the front with this version then"
        )


def _create(connection: psycopg.Connection[Any], address: DatabaseAddress) -> None:
    _need_extension(connection, address)
    connection.execute(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}")
    connection.execute(f"SET LOCAL search_path = {SCHEMA}, public")
    connection.execute(
        "CREATE TABLE IF NOT EXISTS migrations "
        "(number integer PRIMARY KEY, applied timestamptz NOT NULL DEFAULT now())"
    )
    [last] = connection.execute("SELECT coalesce(max(number), 0) FROM migrations").fetchone() or (0,)
    for number, script in migrations():
        if number > last:
            connection.execute(script)
            connection.execute("INSERT INTO migrations (number) VALUES (%s)", (number,))
    if last == 0:
        _sample_nothing(connection)
    _secure(connection, address)


def _need_extension(connection: psycopg.Connection[Any], address: DatabaseAddress) -> None:
    try:
        with connection.transaction():
            connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
    except psycopg.Error as error:
        raise StoreError(
            f"{address.shown} has no pgvector, and this role cannot add it: install it on the server and let an "
            f"administrator run CREATE EXTENSION vector ({(error.diag.message_primary or '').strip()})"
        ) from error
    [version] = connection.execute("SELECT extversion FROM pg_extension WHERE extname = 'vector'").fetchone() or (
        "0",
    )
    if tuple(map(int, version.split(".")[:2])) < _OLDEST_VECTOR:
        raise StoreError(
            f"{address.shown} has pgvector {version}; 0.8 is the oldest that fits: ALTER EXTENSION vector UPDATE"
        )


def _sample_nothing(connection: psycopg.Connection[Any]) -> None:
    """Let the server keep no samples of what people say: what is erased would live on in them (law 16)."""
    connection.execute("SELECT set_config('holdfast.tables', %s, true)", (",".join(TABLES),))
    connection.execute("SELECT set_config('holdfast.columns', %s, true)", (",".join(_NEVER_SAMPLED),))
    connection.execute(_SAMPLE_NOTHING)


def _secure(connection: psycopg.Connection[Any], address: DatabaseAddress) -> None:
    """Let tenants' transactions see their own rows alone (row-level security)."""
    _need_role(connection, address)
    role, mine = sql.Identifier(APP_ROLE), "tenant = (SELECT current_setting('holdfast.tenant', true))"
    connection.execute(sql.SQL("GRANT USAGE ON SCHEMA {} TO {}").format(sql.Identifier(SCHEMA), role))
    connection.execute(sql.SQL("GRANT USAGE ON SEQUENCE unit_keys, document_keys TO {}").format(role))
    connection.execute(sql.SQL("GRANT SELECT ON agreements, spaces TO {}").format(role))
    connection.execute(sql.SQL("GRANT SELECT, INSERT ON tenants TO {}").format(role))
    for table in (*TABLES, "tenants"):
        name = sql.Identifier(table)
        if table != "tenants":
            connection.execute(sql.SQL("GRANT SELECT, INSERT, UPDATE, DELETE ON {} TO {}").format(name, role))
        connection.execute(sql.SQL("ALTER TABLE {} ENABLE ROW LEVEL SECURITY").format(name))
        connection.execute(sql.SQL("DROP POLICY IF EXISTS own ON {}").format(name))
        connection.execute(sql.SQL("CREATE POLICY own ON {} TO {} USING (" + mine + ")").format(name, role))


def _need_role(connection: psycopg.Connection[Any], address: DatabaseAddress) -> None:
    """Make the role, which all databases of a server share: another one may make it at the same moment."""
    raced = (psycopg.errors.DuplicateObject, psycopg.errors.UniqueViolation, psycopg.errors.InternalError_)
    for tries_left in range(_ROLE_TRIES - 1, -1, -1):
        try:
            with connection.transaction():
                _make_role(connection, address)
            return
        except raced:
            if not tries_left:
                raise
        except psycopg.errors.InsufficientPrivilege as error:
            raise ReadOnlyStoreError(
                f"{address.shown}: this role may not create {APP_ROLE}; let an administrator run CREATE ROLE "
                f"{APP_ROLE} NOLOGIN; GRANT {APP_ROLE} TO {connection.info.user}"
            ) from error


def _make_role(connection: psycopg.Connection[Any], address: DatabaseAddress) -> None:
    role = sql.Identifier(APP_ROLE)
    known = connection.execute(
        "SELECT rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = %s", (APP_ROLE,)
    ).fetchone()
    if known is None:
        connection.execute(sql.SQL("CREATE ROLE {} NOLOGIN NOBYPASSRLS").format(role))
    elif known[0]:
        raise StoreError(
            f"{address.shown}: the role {quote_value(APP_ROLE)} passes row security; "
            f"ALTER ROLE {APP_ROLE} NOSUPERUSER NOBYPASSRLS"
        )
    [may] = connection.execute("SELECT pg_has_role(current_user, %s, 'SET')", (APP_ROLE,)).fetchone() or (False,)
    if not may:
        connection.execute(sql.SQL("GRANT {} TO CURRENT_USER").format(role))


@contextmanager
def temporary_database(location: str) -> Iterator[str]:
    """Make a database beside the one of an address, and yield its own address.

    Raises:
        StoreError: the role may not create databases.
    """
    address, name = read_address(location), f"holdfast_scratch_{uuid4().hex}"
    with connect(address.conninfo) as connection, translate_driver_errors(address.shown):
        connection.execute(sql.SQL("CREATE DATABASE {} TEMPLATE template0").format(sql.Identifier(name)))
        try:
            yield urlunsplit(urlsplit(location)._replace(path=f"/{name}"))
        finally:
            connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))
