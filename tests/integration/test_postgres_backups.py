"""Backups of a store on PostgreSQL are files of one machine: what an erasure reaches, and what it names."""

import pytest

from holdfast import InputError, Settings
from holdfast.openers import derivation
from holdfast.store.postgres import table_rewrite
from holdfast.store.sqlite.sqlite_store import SqliteStore
from holdfast.testing.builders import LATER, NOON, Asker, draft
from postgres_server import name_of, open_store

SECRET = "the safe opens with a blue pencil"


@pytest.fixture
def ana(database):
    store = open_store(database)
    found = Asker(store)
    found.put(draft("a", SECRET), draft("b", "the boat is red"), draft("a", "nobody's pencil", tenant="other"))
    found.embed_all()
    yield found
    store.close()


def test_a_backup_is_a_store_that_can_be_opened(ana, tmp_path):
    assert ana.store.backup(tmp_path / "one.db", NOON) == 3
    settings = Settings()
    copy = SqliteStore.open(tmp_path / "one.db", settings.store, derivation(settings))
    assert Asker(copy).find("pencil") == {"a"}
    assert (copy.tenants(), copy.verify()) == (["local", "other"], [])
    copy.close()
    assert [one.name for one in tmp_path.iterdir()] == ["one.db"]


def test_a_backup_that_fails_leaves_nothing(ana, tmp_path, monkeypatch):
    def fail(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(table_rewrite, "copy_store", fail)
    with pytest.raises(KeyboardInterrupt):
        ana.store.backup(tmp_path / "one.db", NOON)
    assert [*tmp_path.iterdir()] == []
    with pytest.raises(InputError, match="does not exist"):
        ana.store.backup(tmp_path / "none" / "one.db", NOON)
    assert ana.store.forget(ana.view, ["a"]).complete


def test_a_backup_of_another_machine_is_named_and_reached_from_there_later(ana, tmp_path, monkeypatch):
    path = tmp_path / "one.db"
    ana.store.backup(path, NOON)
    monkeypatch.setattr(table_rewrite, "is_local_path", lambda: "elsewhere")
    done = ana.store.forget(ana.view, ["a"])
    assert not done.complete
    assert [one for one in done.outside if str(path) in one and "run `holdfast postgres vacuum` there" in one]
    assert SECRET.encode() in path.read_bytes()
    assert not ana.store.finish_erasing()
    monkeypatch.undo()
    assert ana.store.finish_erasing()
    assert SECRET.encode() not in path.read_bytes()
    assert b"the boat is red" in path.read_bytes()
    assert b"nobody's pencil" in path.read_bytes()


def test_a_backup_that_was_moved_or_replaced_is_named_and_left_alone(ana, tmp_path):
    moved, replaced = tmp_path / "moved.db", tmp_path / "replaced.db"
    ana.store.backup(moved, NOON)
    ana.store.backup(replaced, LATER)
    moved.rename(tmp_path / "away.db")
    replaced.write_text("another program's")
    done = ana.store.forget(ana.view, ["a"])
    assert done.complete
    assert any("moved.db (not found" in one for one in done.outside)
    assert any("replaced.db (no Holdfast store" in one for one in done.outside)
    assert replaced.read_text() == "another program's"


def test_nobody_of_a_tenant_sees_where_backups_lie(ana, tmp_path, postgres, database):
    ana.store.backup(tmp_path / "one.db", NOON)
    with postgres.connect(name_of(database)) as connection:
        allowed = connection.execute(
            "SELECT table_name FROM information_schema.role_table_grants WHERE grantee = 'holdfast_app' "
            "AND table_name IN ('backups', 'copies')"
        ).fetchall()
    assert allowed == []
