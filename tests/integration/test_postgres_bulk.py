"""What is loaded at once is what would have been written bit by bit; an interrupted load is noticed and finished."""

from dataclasses import replace

import psycopg
import pytest

from commands import command_line
from holdfast import BusyStoreError, NotFoundError, QuotaError, Settings, StoreError
from holdfast.openers import derivation
from holdfast.store.copying import copy_store
from holdfast.store.postgres import bulk
from holdfast.store.postgres.postgres_store import PostgresStore
from holdfast.store.postgres.schema import TABLES
from holdfast.store.sqlite.sqlite_store import SqliteStore
from holdfast.testing.builders import Asker, draft
from postgres_server import name_of
from whole_stores import all_of, fill

UNITS = 120


@pytest.fixture
def source(tmp_path):
    settings = Settings()
    store = SqliteStore.open(tmp_path / "one.db", settings.store, derivation(settings))
    ana = fill(store, UNITS)
    ana.put(draft("fact", "Ana lives in Porto. Ana's sister is Maria.", minutes=7), draft("waits", "no vector yet"))
    yield store
    store.close()


@pytest.fixture
def opened():
    """Return a function that opens databases, which are closed at the end."""
    stores, settings = [], Settings()

    def opening(address, **how):
        stores.append(PostgresStore.open(address, settings.store, derivation(settings), **how))
        return stores[-1]

    yield opening
    for store in stores:
        store.close()


@pytest.fixture
def at_once(monkeypatch):
    """Let few units be worth a load."""
    monkeypatch.setattr(bulk, "WORTH_IT", 1)
    monkeypatch.setattr(bulk.os, "cpu_count", lambda: 1)


def tables(postgres, address):
    """Return the rows of all tables, with the names of units in the place of their keys."""
    found = {}
    with postgres.connect(name_of(address)) as connection:
        connection.execute("SET search_path = holdfast, public")
        names = {
            key: name for key, *name in connection.execute('SELECT key, tenant, "user", id FROM units').fetchall()
        }
        for table in TABLES:
            cursor = connection.execute(f"SELECT * FROM {table}")
            columns = [one.name for one in cursor.description]
            rows = [dict(zip(columns, row, strict=True)) for row in cursor.fetchall()]
            for row in rows:
                for column in ("unit_key", "key"):
                    if column in row:
                        row[column] = names.get(row[column], "a document")
            found[table] = sorted(map(repr, rows))
    return found


def indexes(postgres, address):
    with postgres.connect(name_of(address)) as connection:
        rows = connection.execute("SELECT indexdef FROM pg_indexes WHERE schemaname = 'holdfast'").fetchall()
    return sorted(text for (text,) in rows)


def test_every_row_is_the_one_that_would_have_been_written_bit_by_bit(source, database, postgres, opened, at_once):
    with postgres.database() as other:
        before = indexes(postgres, other)
        by_bit, loaded = opened(database), opened(other)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(bulk, "WORTH_IT", 10**9)
            assert copy_store(source, by_bit).whole
        assert copy_store(source, loaded).whole
        one, two = tables(postgres, database), tables(postgres, other)
        assert all(one[table] for table in TABLES)  # nothing is equal because it is empty
        for table in TABLES:
            assert one[table] == two[table], table
        assert indexes(postgres, other) == before
        assert loaded.verify() == []
        assert all_of(loaded) == all_of(source)
        same = [Asker(store) for store in (loaded, by_bit)]
        assert same[0].find("boat") == same[1].find("boat")
        waiting = [[unit.id for unit in store.pending(loaded.space(), UNITS)] for store in (loaded, by_bit)]
        assert waiting[0] == waiting[1] != []
        loaded.close()


def test_several_processes_load_the_same(source, database, postgres, opened, monkeypatch):
    monkeypatch.setattr(bulk, "WORTH_IT", 1)
    monkeypatch.setattr(bulk.os, "cpu_count", lambda: 2)
    loaded = opened(database)
    done = copy_store(source, loaded)
    assert (done.whole, done.added, loaded.verify()) == (True, UNITS + 6, [])


def test_an_interrupted_load_keeps_others_out_and_goes_on(source, database, postgres, opened, at_once, monkeypatch):
    before = indexes(postgres, database)
    loaded = opened(database)
    monkeypatch.setattr("holdfast.store.copying._TOGETHER", 50)
    told = []

    def interrupt(*step):
        told.append(step)
        if len(told) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        copy_store(source, loaded, interrupt)
    with pytest.raises(BusyStoreError, match="postgres index"):
        opened(database)
    again = opened(database, mending=True)
    Asker(source).revise("u003", text="meanwhile the boat was sold")
    done = copy_store(source, again)
    assert (done.whole, done.updated, done.known) == (True, 1, 98)  # and a document
    assert (indexes(postgres, database), again.verify()) == (before, [])
    assert all_of(opened(database)) == all_of(source)


def test_an_interrupted_load_can_be_finished_with_what_is_there(source, database, postgres, opened, at_once):
    before, loaded = indexes(postgres, database), opened(database)
    with pytest.raises(KeyboardInterrupt):
        copy_store(source, loaded, lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    mended = opened(database, mending=True)
    mended.build_indexes()
    assert (indexes(postgres, database), opened(database).verify()) == (before, [])


def test_a_store_that_holds_something_is_loaded_bit_by_bit(source, database, opened, at_once):
    loaded = opened(database)
    Asker(loaded).put(draft("mine", "mine alone", tenant="third"))
    assert copy_store(source, loaded).whole
    assert loaded.verify() == []


def test_a_load_keeps_the_quota_of_a_tenant(source, database, opened, at_once):
    loaded = opened(database)
    with pytest.raises(NotFoundError, match="first write"):
        loaded.set_quota("local", 30)
    loaded.forget(Asker(loaded).view, [], owner=True)  # its first write
    loaded.set_quota("local", 30)
    with pytest.raises(QuotaError, match="30 units more"):
        copy_store(source, loaded)
    loaded.set_quota("local", None)
    assert copy_store(source, loaded).whole


def test_an_index_over_vectors_is_built_where_many_lie(source, database, postgres, opened):
    store = opened(database)
    copy_store(source, store)
    assert store.build_indexes() == []
    [name] = store.build_indexes(least=10, concurrently=True)
    assert any(f"INDEX {name} " in text and "hnsw" in text for text in indexes(postgres, database))
    assert store.build_indexes(least=10) == [name]
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("ANALYZE holdfast.vectors")
        sampled = "SELECT count(*) FROM pg_statistic WHERE starelid = %s::regclass"
        assert connection.execute(sampled, (f"holdfast.{name}",)).fetchone() == (0,)  # law 16
        assert connection.execute(sampled, ("holdfast.vectors",)).fetchone() > (0,)


def test_everything_is_derived_again_in_another_way(source, database, postgres, opened):
    store = opened(database)
    copy_store(source, store)
    settings = Settings()
    other = replace(
        settings, analysis=replace(settings.analysis, aliases=(*settings.analysis.aliases, "boat = ship"))
    )
    with pytest.raises(StoreError, match="postgres reindex"):
        PostgresStore.open(database, other.store, derivation(other))
    mending = PostgresStore.open(database, other.store, derivation(other), mending=True)
    told = []
    assert mending.derive_again(lambda *step: told.append(step)) == UNITS + 6
    assert told[-1] == (UNITS + 6, UNITS + 6)
    mending.close()
    PostgresStore.open(database, other.store, derivation(other)).close()
    with pytest.raises(StoreError, match="postgres reindex"):
        opened(database)
    back = opened(database, mending=True)
    before = tables(postgres, database)
    back.derive_again()
    assert (back.verify(), tables(postgres, database)) == ([], before)


def test_the_commands_of_upkeep_say_what_they_did(source, database, opened, tmp_path, monkeypatch):
    store = opened(database)
    copy_store(source, store)

    command = command_line(tmp_path, monkeypatch)

    def run(*arguments, code=0):
        return command("postgres", *arguments, "--db", database, code=code)

    assert "no owner has so many vectors" in run("index")
    assert f"{UNITS + 6} units derived again" in run("reindex")
    store.forget(Asker(store).view, ["u050"])
    assert "nothing is left" in run("vacuum")
    assert "at most 3 units" in run("quota", "local", "3")
    with pytest.raises(QuotaError):
        Asker(store).put(draft("more", "one more"))
    assert "any number" in run("quota", "local")
    Asker(store).put(draft("more", "one more"))
    assert "no tenant" in run("quota", "nobody", "3", code=3)
    assert store.verify() == []
