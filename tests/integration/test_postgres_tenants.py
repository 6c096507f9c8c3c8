"""What a tenant can reach: by a raw connection with the role of its transactions, by the catalogue, by statements."""

import dataclasses
import re
from importlib import resources
from uuid import uuid4

import pytest

from builders import NOW, make_view, opened
from holdfast.store.filters import parse_filter
from holdfast.store.postgres.connections import SCHEMA
from holdfast.store.postgres.schema import APP_ROLE, TABLES, queries
from holdfast.store.postgres.view_sql import compile_view
from holdfast.testing.contracts import HashEmbedder
from postgres_server import name_of

pytest.importorskip("psycopg", reason="psycopg is not installed, so the store on PostgreSQL is not tested")
import psycopg
from psycopg import errors

TENANTS = ("north", "south")


@pytest.fixture(scope="module")
def shared(postgres):
    """Return the address of a store with two tenants, everything of each in every table."""
    with postgres.database() as address:
        with opened(path=address, embedder=HashEmbedder(64)) as memory:
            for tenant in TENANTS:
                fill(memory, tenant)
        yield address


def fill(memory, tenant):
    owner = {"user": "ana", "tenant": tenant}
    memory.remember(
        [f"the {tenant} boat {n} belongs to Mara; I live in Porto" for n in range(5)], session="s", **owner
    )
    memory.remember(f"a first word of {tenant}", id="a", **owner)
    memory.update("a", text=f"another word of {tenant}", **owner)
    memory.remember(f"a last word of {tenant}", id="b", supersedes="a", **owner)
    memory.reinstate("a", **owner)
    memory.ingest(f"# {tenant}\n\nThe mill depends on {tenant}.\n", name="m.md", **owner)


@pytest.fixture
def login(postgres, shared):
    """Return a function that connects as somebody who may do what the application role may, and no more."""
    name = f"visitor_{uuid4().hex[:8]}"
    postgres.run(f"CREATE ROLE {name} LOGIN IN ROLE {APP_ROLE}")
    connections = []

    def connect(tenant=None):
        connection = postgres.connect(name_of(shared), user=name)
        connections.append(connection)
        connection.execute(f"SET search_path = {SCHEMA}, public")
        if tenant is not None:
            connection.execute("SELECT set_config('holdfast.tenant', %s, false)", (tenant,))
        return connection

    yield connect
    for connection in connections:
        connection.close()
    postgres.run(f"DROP ROLE {name}")


@pytest.fixture
def owner(postgres, shared):
    with postgres.connect(name_of(shared)) as connection:
        connection.execute(f"SET search_path = {SCHEMA}, public")
        yield connection


def counted(connection, table, where="true"):
    return connection.execute(f"SELECT count(*) FROM {table} WHERE {where}").fetchone()[0]


# ------------------------------------------------------------------------------------------ a raw connection


def test_without_a_tenant_nothing_is_seen(login, owner):
    visitor = login()
    for tenant in (None, "", "nobody", "north%", "'north'", "NORTH", "north "):
        if tenant is not None:
            visitor.execute("SELECT set_config('holdfast.tenant', %s, false)", (tenant,))
        assert {table: counted(visitor, table) for table in (*TABLES, "tenants")} == dict.fromkeys(
            (*TABLES, "tenants"), 0
        )
    filled = {table for table in TABLES if counted(owner, table)}
    assert filled >= {*TABLES} - {"waiting", "version_vectors"}  # else nothing is tested above


@pytest.mark.parametrize("tenant", TENANTS)
def test_with_a_tenant_its_rows_are_seen_and_no_others(login, owner, tenant):
    visitor = login(tenant)
    for table in (*TABLES, "tenants"):
        seen = counted(visitor, table)
        assert seen == counted(owner, table, f"tenant = '{tenant}'"), table
        assert counted(visitor, table, f"tenant <> '{tenant}'") == 0, table


def test_no_row_of_another_tenant_is_written_or_changed(login, owner):
    visitor, before = login("north"), {table: counted(owner, table) for table in TABLES}
    for table in TABLES:
        assert visitor.execute(f"UPDATE {table} SET tenant = tenant WHERE tenant = 'south'").rowcount == 0
        assert visitor.execute(f"DELETE FROM {table} WHERE tenant = 'south'").rowcount == 0
        if counted(visitor, table):
            with pytest.raises(errors.InsufficientPrivilege):
                visitor.execute(f"UPDATE {table} SET tenant = 'south'")
    with pytest.raises(errors.InsufficientPrivilege):
        visitor.execute("INSERT INTO waiting (tenant, unit_key) VALUES ('south', 1)")
    with pytest.raises(errors.InsufficientPrivilege):
        visitor.execute("INSERT INTO tenants (tenant) VALUES ('east')")
    assert {table: counted(owner, table) for table in TABLES} == before


FURTHER = """
SET ROLE postgres
SET SESSION AUTHORIZATION postgres
ALTER TABLE units DISABLE ROW LEVEL SECURITY
ALTER TABLE units OWNER TO CURRENT_USER
DROP POLICY own ON units
CREATE POLICY all_of_it ON units USING (true)
TRUNCATE units
ALTER ROLE CURRENT_USER BYPASSRLS
ALTER ROLE CURRENT_USER SUPERUSER
CREATE TABLE holdfast.mine (n int)
CREATE FUNCTION public.f() RETURNS int LANGUAGE sql SECURITY DEFINER AS 'SELECT 1'
UPDATE tenants SET most_units = NULL
DELETE FROM tenants
INSERT INTO agreements (name, value) VALUES ('a', 'b')
DELETE FROM migrations
ALTER SEQUENCE unit_keys RESTART
SELECT setval('unit_keys', 1)
DROP SCHEMA holdfast CASCADE
"""


@pytest.mark.parametrize("statement", FURTHER.strip().splitlines())
def test_the_application_role_cannot_reach_further(login, statement):
    with pytest.raises(psycopg.Error) as refused:
        login("north").execute(statement)
    assert isinstance(refused.value, errors.InsufficientPrivilege | errors.UndefinedObject), refused.value


def test_row_security_cannot_be_turned_off(login):
    visitor = login("north")
    visitor.execute("SET row_security = off")
    for table in (*TABLES, "tenants"):
        with pytest.raises(errors.InsufficientPrivilege):
            visitor.execute(f"SELECT count(*) FROM {table}")


def test_nothing_leaks_by_errors_or_by_statistics(login, owner):
    owner.execute("ANALYZE")
    visitor = login("north")
    trap = "1 / (CASE WHEN tenant = 'south' THEN 0 ELSE 1 END) = 1"
    assert counted(visitor, "units", trap) == counted(visitor, "units") > 0
    seen = visitor.execute("SELECT tablename FROM pg_stats WHERE tablename = ANY (%s)", ([*TABLES],)).fetchall()
    assert seen == []


# --------------------------------------------------------------------------------------------- the catalogue

TENANTS_TABLES = """
SELECT c.relname, c.relrowsecurity,
    has_table_privilege(%(role)s, c.oid, 'SELECT, INSERT, UPDATE, DELETE, TRUNCATE'),
    (SELECT count(*) FROM pg_policy p WHERE p.polrelid = c.oid AND p.polcmd = '*' AND p.polpermissive
        AND pg_get_expr(p.polqual, p.polrelid) LIKE '%%(tenant = %%holdfast.tenant%%'
        AND (p.polwithcheck IS NULL OR pg_get_expr(p.polwithcheck, p.polrelid) = pg_get_expr(p.polqual, p.polrelid))),
    (SELECT count(*) FROM pg_policy p WHERE p.polrelid = c.oid)
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = %(schema)s AND c.relkind IN ('r', 'p', 'f', 'v', 'm')
    AND EXISTS (SELECT 1 FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attname = 'tenant' AND NOT a.attisdropped)
"""


def exposed(connection):
    """Return the tables with a tenant's rows that the application role reaches past a policy."""
    rows = connection.execute(TENANTS_TABLES, {"role": APP_ROLE, "schema": SCHEMA}).fetchall()
    return {
        name
        for name, secured, reached, right, policies in rows
        if reached and not (secured and right == policies == 1)
    }


def test_every_table_with_rows_of_tenants_has_a_policy_or_is_out_of_reach(owner):
    assert exposed(owner) == set()
    known = {name for name, *_ in owner.execute(TENANTS_TABLES, {"role": APP_ROLE, "schema": SCHEMA})}
    assert known >= {*TABLES, "tenants"}


def test_a_table_without_a_policy_would_be_seen(owner):
    with owner.transaction(force_rollback=True):
        owner.execute(f"CREATE TABLE bare (tenant text); GRANT SELECT ON bare TO {APP_ROLE}")
        owner.execute(f"CREATE TABLE open (tenant text); GRANT SELECT ON open TO {APP_ROLE}")
        owner.execute("ALTER TABLE open ENABLE ROW LEVEL SECURITY; CREATE POLICY all_of_it ON open USING (true)")
        owner.execute("ALTER TABLE waiting DISABLE ROW LEVEL SECURITY")
        assert exposed(owner) == {"bare", "open", "waiting"}


def test_the_application_role_cannot_log_in_or_pass_security(owner):
    [found] = owner.execute(
        "SELECT rolcanlogin, rolsuper, rolbypassrls, rolcreaterole, rolcreatedb, rolreplication FROM pg_roles "
        "WHERE rolname = %s", (APP_ROLE,)
    ).fetchall()  # fmt: skip
    assert found == (False,) * 6
    assert owner.execute(
        "SELECT count(*) FROM pg_auth_members m JOIN pg_roles r ON r.oid = m.member WHERE r.rolname = %s", (APP_ROLE,)
    ).fetchone() == (0,)


INDEXES = """
SELECT i.relname, a.attname, pg_get_expr(x.indpred, x.indrelid) FROM pg_index x
JOIN pg_class i ON i.oid = x.indexrelid JOIN pg_class t ON t.oid = x.indrelid
JOIN pg_namespace n ON n.oid = t.relnamespace JOIN pg_am m ON m.oid = i.relam
LEFT JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum = x.indkey[0] AND x.indkey[0] > 0
WHERE n.nspname = %s AND t.relname = ANY (%s)
"""


def across_tenants(connection):
    """Return the indexes of tenants' tables that neither begin with the tenant nor are of one tenant."""
    rows = connection.execute(INDEXES, (SCHEMA, [*TABLES])).fetchall()
    return {index for index, first, only in rows if first != "tenant" and "tenant =" not in (only or "")}


def test_every_index_of_a_tenants_table_begins_with_the_tenant(owner):
    assert across_tenants(owner) == set()
    with owner.transaction(force_rollback=True):
        owner.execute('CREATE INDEX wrong ON units ("user", tenant)')
        assert across_tenants(owner) == {"wrong"}


# -------------------------------------------------------------------------------------------- the statements

# A table that is read, changed or emptied; what is inserted into has its columns named instead.
READ = re.compile(r"\b(?:FROM|JOIN|UPDATE|USING)\s+(?:ONLY\s+)?(?:holdfast\.)?(\w+)", re.IGNORECASE)
WRITTEN = re.compile(r"\bINSERT\s+INTO\s+(?:holdfast\.)?(\w+)\s*\(\s*(\w+)\b", re.IGNORECASE)
# A compiled view names the tenant; see below.
VIEW = r"\{(?:where|own|everyones)\}"
TENANT = re.compile(rf"\btenant\s*=\s*(?:%\(tenant\)s|\w+\.tenant\b)|{VIEW}")
# A comma in FROM would hide a table from the rule above.
COMMA_JOIN = re.compile(r"\bFROM\s+(\w+)(?:\s+(?:AS\s+)?\w+)?\s*,\s*(\w+)\b(?!\s*\()", re.IGNORECASE)
# Statements about all tenants, which no tenant's transaction runs: upkeep, bulk loads, and what waits for a vector.
OF_ALL = {
    "all_bodies", "all_units", "all_vectors", "all_versions", "all_wait_for", "drop_vectors", "drop_version_vectors",
    "fill_counts", "largest_owner", "listed_units", "odd_fates", "space_vectors", "space_version_vectors",
    "stale_entries", "waiting_units", "whole_store", "wrong_counts", "wrong_postings",
}  # fmt: skip


def unbound(statement, tables):
    """Return what is wrong with a statement: a table of tenants that is read without its tenant."""
    text = re.sub(r"--[^\n]*", "", statement)
    reads = [table for table in READ.findall(text) if table.lower() in tables]
    wrong = [f"{table}: no tenant first" for table, first in WRITTEN.findall(text)
             if table.lower() in tables and first != "tenant"]  # fmt: skip
    wrong += [f"{one}, {two}: write JOIN" for one, two in COMMA_JOIN.findall(text) if {one, two} & {*tables}]
    if len(TENANT.findall(text)) < len(reads):
        wrong.append(f"{len(reads)} tables {reads} and {len(TENANT.findall(text))} times the tenant")
    return wrong


def test_every_statement_names_the_tenant_for_each_table_it_touches():
    wrong = {name: found for name, body in queries().items() if (found := unbound(body, TABLES))}
    assert {name: found for name, found in wrong.items() if name not in OF_ALL} == {}
    assert wrong.keys() >= OF_ALL & queries().keys(), "this one is about one tenant: take it off the list"
    assert sum(bool(READ.findall(body)) for body in queries().values()) > 40


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT id FROM units WHERE key = %(key)s",
        "SELECT 1 FROM units AS u JOIN vectors AS v ON true WHERE u.tenant = %(tenant)s",
        "INSERT INTO units (id, tenant) VALUES (1, 2)",
        "DELETE FROM postings WHERE unit_key = 1",
        "SELECT 1 FROM units u, vectors v WHERE tenant = %(tenant)s",
    ],
)
def test_a_statement_without_it_would_be_seen(statement):
    assert unbound(statement, TABLES)


@pytest.mark.parametrize(
    "fields",
    [
        {}, {"current_only": False}, {"as_of": NOW}, {"session": "s", "only_session": True}, {"agent": "cook"},
        {"hide_covered": True}, {"filters": parse_filter({"or": [{"n": 1}, {"session": "s"}]})}, {"user": ""},
    ],
)  # fmt: skip
def test_every_view_names_the_tenant(fields):
    view = make_view(**fields)
    for searching in (True, False):
        for where in texts_of(compile_view(view, searching=searching)):
            assert unbound(f"SELECT 1 FROM units WHERE {where}", TABLES) == []
            assert "units.tenant = %(tenant)s" in where


def texts_of(compiled):
    """Return the conditions of a compiled view."""
    found = [getattr(compiled, field.name) for field in dataclasses.fields(compiled)]
    return [text for text in found if isinstance(text, str) and "tenant" in text]


def test_every_named_statement_is_used():
    folders = [
        resources.files(name) for name in ("holdfast.store", "holdfast.store.sqlite", "holdfast.store.postgres")
    ]
    files = [path for folder in folders for path in folder.iterdir() if path.name.endswith(".py")]
    code = "".join([path.read_text(encoding="utf-8") for path in files])
    unused = {name for name in queries() if f'"{name}"' not in code and f'f"{name.rsplit("_", 1)[0]}_' not in code}
    assert unused == set()


def test_no_statement_hides_outside_of_the_named_ones():
    """Whoever composes a statement names the tenant too: what Python writes about their tables is looked at."""
    folder = resources.files("holdfast.store.postgres")
    composed = re.compile(r"\"((?:SELECT|DELETE|UPDATE|INSERT|WITH)\b[^\"]*)\"")
    # About all tenants.
    everyones = {"table_rewrite.py", "bulk.py", "schema.py", "postgres_store.py", "maintenance.py"}
    for file in folder.iterdir():
        if file.name.endswith(".py") and file.name not in everyones:
            for statement in composed.findall(file.read_text(encoding="utf-8")):
                assert unbound(statement, TABLES) == [], f"{file.name}: {statement}"
