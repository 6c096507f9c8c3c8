"""A store that an older version made is brought up to date when it is opened, or refused with what to do."""

from pathlib import Path

import pytest
from test_postgres_bulk import indexes

from builders import opened
from holdfast.errors import StoreError
from holdfast.store.postgres import bulk, schema
from holdfast.store.postgres.connections import SCHEMA
from holdfast.store.postgres.schema import TABLES
from holdfast.testing.builders import Asker
from holdfast.testing.contracts import HashEmbedder
from postgres_server import name_of, open_store
from whole_stores import all_of, fill

pytest.importorskip("psycopg", reason="psycopg is not installed, so the store on PostgreSQL is not tested")


PARTITIONED = Path(__file__).parents[1] / "data" / "partitioned_store.sql"
SPREAD = {
    "a tenant on another server": "INSERT INTO tenants (tenant, shard) VALUES ('acme', 1)",
    "rows that a tenant left there": "INSERT INTO moves (shard, tenant) VALUES (1, 'acme')",
    "bytes of what was erased there": "INSERT INTO agreements (name, value) VALUES ('erasing 1', 'x')",
    "the other server itself": "INSERT INTO agreements (name, value) VALUES ('shard', '1')",
}


@pytest.fixture
def older(postgres):
    """Return the address of an empty store with partitions."""
    with postgres.database(empty=True) as address:
        with postgres.connect(name_of(address)) as connection:
            connection.execute("CREATE EXTENSION vector")
            connection.execute(PARTITIONED.read_text(encoding="utf-8"))
        yield address


def copy(postgres, source, target):
    """Copy all rows of a store into one with partitions."""
    with postgres.connect(name_of(source)) as reads, postgres.connect(name_of(target)) as writes:
        for one in (reads, writes):
            one.execute(f"SET search_path = {SCHEMA}, public")
        writes.execute("ALTER TABLE tenants ALTER COLUMN shard SET DEFAULT 0")
        for table in ("agreements", "spaces", "tenants", *TABLES):
            names = reads.execute(f"SELECT * FROM {table} LIMIT 0").description
            columns = ", ".join(f'"{one.name}"' for one in names)
            if table in TABLES:
                writes.execute(f"ALTER TABLE {table} ALTER COLUMN shard SET DEFAULT 0")
            with (
                reads.cursor().copy(f"COPY {table} ({columns}) TO STDOUT") as out,
                writes.cursor().copy(f"COPY {table} ({columns}) FROM STDIN") as into,
            ):
                for piece in out:
                    into.write(piece)
        for sequence in ("unit_keys", "document_keys", "spaces_key_seq"):
            [last] = reads.execute(f"SELECT last_value FROM {sequence}").fetchone()
            writes.execute("SELECT setval(%s, %s)", (sequence, last))


def test_a_store_with_partitions_is_the_same_without_them(older, database, postgres):
    store = open_store(database)
    fill(store)
    copy(postgres, database, older)
    with postgres.connect(name_of(older)) as connection:
        connection.execute("CREATE INDEX vectors_0_space_1 ON holdfast.vectors_0 (space)")
        connection.execute("INSERT INTO holdfast.agreements (name, value) VALUES ('erasing 0', 'x')")
    again = open_store(older)
    assert again.verify() == []
    assert all_of(again) == all_of(store)
    assert Asker(again).find("boat") == Asker(store).find("boat")
    assert {*indexes(postgres, older)} - {*indexes(postgres, database)} == {
        "CREATE INDEX vectors_space_1 ON holdfast.vectors USING btree (space)"
    }
    left = (
        "SELECT relname FROM pg_class WHERE relnamespace = 'holdfast'::regnamespace AND relname ~ '_0|shards|moves'"
    )
    assert postgres.run(left, name_of(older)) == []
    assert again.finish_erasing()
    marks = "SELECT name FROM holdfast.agreements WHERE name LIKE 'erasing%'"
    assert postgres.run(marks, name_of(older)) == []
    again.close()
    store.close()
    with opened(path=older, embedder=HashEmbedder(64)) as memory:  # and it goes on
        memory.remember("a green boat", user="ana", tenant="third")
        assert [hit.unit.text for hit in memory.search("boat", user="ana", tenant="third")] == ["a green boat"]


def test_rows_of_other_tenants_stay_out_of_sight_after_that(older, postgres):
    open_store(older).close()
    secured = "SELECT relname FROM pg_class WHERE relnamespace = 'holdfast'::regnamespace AND relrowsecurity"
    assert {name for (name,) in postgres.run(secured, name_of(older))} == {*TABLES, "tenants"}


def test_a_load_that_was_interrupted_before_is_finished_after(older, database, postgres):
    with postgres.connect(name_of(older)) as connection:  # as the older version left it
        connection.execute(f"SET search_path = {SCHEMA}, public")
        found = connection.execute(
            "SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = 'holdfast' AND tablename ~ '_0$' "
            "AND tablename <> 'documents_0' AND NOT starts_with(reverse(indexdef), reverse(%s))",
            (bulk._KEPT_INDEX,),
        ).fetchall()
        for name, _ in found:
            connection.execute(f"DROP INDEX {name}")
        connection.execute(
            "INSERT INTO agreements (name, value) SELECT 'loading 0', to_json(%s::text[])::text",
            ([text for _, text in found],),
        )
    open_store(database).close()
    with pytest.raises(StoreError, match="is being loaded"):
        open_store(older)
    mended = open_store(older, mending=True)
    mended.build_indexes()
    mended.close()
    open_store(older).close()

    assert indexes(postgres, older) == indexes(postgres, database)


@pytest.mark.parametrize("case", SPREAD)
def test_a_store_that_is_spread_over_servers_is_refused_as_it_is(older, postgres, case):
    with postgres.connect(name_of(older)) as connection:
        connection.execute(f"SET search_path = {SCHEMA}, public")
        connection.execute("INSERT INTO shards (shard, server) VALUES (1, 'east')")
        connection.execute("ALTER TABLE agreements DISABLE TRIGGER tell_shards")
        connection.execute(SPREAD[case])
    with pytest.raises(StoreError, match=r"spread over several servers.*move every tenant home.*cluster move"):
        open_store(older)
    assert postgres.run("SELECT number FROM holdfast.migrations", name_of(older)) == [(1,)]


def test_servers_that_all_tenants_have_left_are_let_go(older, postgres):
    with postgres.connect(name_of(older)) as connection:
        connection.execute(f"SET search_path = {SCHEMA}, public")
        connection.execute("CREATE EXTENSION postgres_fdw; CREATE SERVER east FOREIGN DATA WRAPPER postgres_fdw")
        connection.execute("CREATE USER MAPPING FOR PUBLIC SERVER east OPTIONS (user 'app', password 'secret')")
        connection.execute("INSERT INTO shards (shard, server) VALUES (1, 'east')")
        for table in TABLES:
            connection.execute(f"CREATE FOREIGN TABLE {table}_1 PARTITION OF {table} FOR VALUES IN (1) SERVER east")
        connection.execute("CREATE FOREIGN TABLE spaces_1 (key integer, name text) SERVER east")
        connection.execute("INSERT INTO tenants (tenant, shard) VALUES ('acme', 0)")
    store = open_store(older)
    assert (store.tenants(), store.verify()) == (["acme"], [])
    store.close()
    for kind in ("pg_foreign_server", "pg_foreign_table", "pg_user_mapping"):
        assert postgres.run(f"SELECT count(*) FROM {kind}", name_of(older)) == [(0,)]


def test_a_newer_schema_comes_with_the_next_who_opens_the_store(database, postgres, monkeypatch):
    newer = (*schema.migrations(), (9999, "ALTER TABLE units ADD COLUMN mood text"))
    open_store(database).close()
    monkeypatch.setattr(schema, "migrations", lambda: newer)
    open_store(database).close()
    assert postgres.run("SELECT mood FROM holdfast.units", name_of(database)) == []
