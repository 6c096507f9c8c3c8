"""Forgetting a little overwrites a little; when the file is written anew as a whole, the answer says why."""

import sqlite3
from contextlib import closing

import pytest

from builders import NOW
from histories import Tale, needles, residue, small_memory
from holdfast import Memory
from holdfast.store.sqlite import index_file, live_index, purge, unused_bytes
from holdfast.store.sqlite.migrate import OVERWRITTEN


@pytest.fixture
def told(tmp_path):
    """Return a memory of forty turns, and its tale."""
    with small_memory(tmp_path / "memory.db") as memory:
        tale = Tale(memory, 5)
        tale.turns("s", [30] * 40)
        yield memory, tale


def wanted(tale, gone):
    return needles([tale.said[key] for key in gone], [said for key, said in tale.said.items() if key not in gone])


def without_vacuum(memory):
    """Let SQLite refuse to write the file anew."""

    def refuse(action, *_):
        return sqlite3.SQLITE_DENY if action == sqlite3.SQLITE_ATTACH else sqlite3.SQLITE_OK  # VACUUM attaches a file

    memory.store._database.connection.set_authorizer(refuse)


def make_older(path):
    """Take back the mark of a file that was written under secure deletion, as earlier versions made none."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("DELETE FROM agreements WHERE name = ?", (OVERWRITTEN,))


def test_forgetting_a_unit_does_not_write_the_file_anew(told, tmp_path):
    memory, tale = told
    without_vacuum(memory)
    for gone in list(tale.said)[:3]:
        erasure = memory.forget(user="ana", ids=gone)
        assert (erasure.complete, erasure.rewritten) == (True, "")
    assert residue(tmp_path, wanted(tale, list(tale.said)[:3])) == set()
    assert memory.store.verify() == []


def test_what_is_written_later_brings_nothing_back(told, tmp_path):
    memory, tale = told
    with small_memory(tmp_path / "memory.db") as other:
        other.list(user="ana", limit=None)
        gone = list(tale.said)[::5]
        assert memory.forget(user="ana", ids=gone).complete
        for number in range(20):
            memory.remember(f"one more word {number} " * 20, user="ana")
            other.remember(f"and one of another {number} " * 20, user="ana")
        memory.backup(tmp_path / "copy.db")
    assert residue(tmp_path, wanted(tale, gone)) == set()


def test_compact_writes_the_file_anew_and_makes_it_smaller(told, tmp_path):
    memory, tale = told
    keys = list(tale.said)
    assert memory.forget(user="ana", ids=keys[:15]).rewritten == ""
    before = (tmp_path / "memory.db").stat().st_size
    erasure = memory.forget(user="ana", ids=keys[15], compact=True)
    assert (erasure.complete, erasure.rewritten) == (True, "that was asked for")
    assert (tmp_path / "memory.db").stat().st_size < before


def test_an_older_file_is_written_anew_once_and_says_so(told, tmp_path):
    memory, tale = told
    memory.backup(tmp_path / "copy.db")
    for name in ("memory.db", "copy.db"):
        make_older(tmp_path / name)
    first, second, *_ = tale.said
    assert "a version wrote it" in memory.forget(user="ana", ids=first).rewritten
    without_vacuum(memory)
    assert memory.forget(user="ana", ids=second).rewritten == ""
    with small_memory(tmp_path / "copy.db") as copy:
        assert unused_bytes.is_overwritten(copy.store._database.connection)
    assert residue(tmp_path, wanted(tale, [first, second])) == set()


def test_where_most_goes_the_rest_is_written_anew(told, tmp_path):
    memory, tale = told
    gone = list(tale.said)[:25]
    erasure = memory.forget(user="ana", ids=gone)
    assert (erasure.complete, erasure.rewritten) == (True, "most of the store was erased")
    assert residue(tmp_path, wanted(tale, gone)) == set()


def test_what_the_search_still_finds_lets_the_file_be_written_anew(told, tmp_path, monkeypatch):
    memory, tale = told
    first = next(iter(tale.said))
    monkeypatch.setattr(unused_bytes, "overwrite", lambda *_, **__: True)
    found = [{b"something"}, set()]
    monkeypatch.setattr(purge, "find_residue", lambda *_: found.pop(0))
    erasure = memory.forget(user="ana", ids=first)
    assert (erasure.complete, erasure.rewritten, found) == (True, "bytes of what was erased were left", [])
    monkeypatch.undo()
    assert residue(tmp_path, wanted(tale, [first])) == set()


def test_an_erasure_that_an_older_version_began_is_finished_by_writing_the_file_anew(told, tmp_path):
    memory, tale = told
    memory.store._database.agree(purge.ERASING, "0123456789abcdef")
    assert memory.forget(user="ana", ids=next(iter(tale.said))).rewritten == "most of the store was erased"


def test_forgetting_leaves_the_snapshot_of_others_as_it_is(tmp_path, monkeypatch):
    monkeypatch.setattr(live_index, "_WORTH_SAVING", 1)
    path = tmp_path / "memory.db"
    with small_memory(path) as memory:
        tale = Tale(memory, 9)
        keys = tale.turns("s", [9] * 8)
        for number in range(20):
            memory.remember(f"ben speaks of boat {number}", user="ben")
        memory.search("boat", user="ben")
        memory.search("boat", user="ana")
    with small_memory(path) as memory:
        before = {one.user: one.digest for one in index_file.read(tmp_path / "memory.db.index", fingerprint(memory))}
        assert {*before} == {"ana", "ben"}
        assert memory.forget(user="ana", ids=keys[0]).complete
        after = {one.user: one.digest for one in index_file.read(tmp_path / "memory.db.index", fingerprint(memory))}
        assert after == {"ben": before["ben"]}
        assert residue(tmp_path, wanted(tale, keys[:1])) == set()
        assert len(memory.search("boat", user="ben"))
        assert memory.forget(user="ben", all=True).complete
    assert b"ben" not in path.read_bytes()


def fingerprint(memory):
    index = memory.store._index
    index.follow()
    return index._derived_from()


def test_a_memory_in_memory_overwrites_nothing(told):
    with Memory.open(":memory:", now=lambda: NOW, embedder="none") as memory:
        [one] = memory.remember("only for now", user="ana")
        assert memory.forget(user="ana", ids=one.id, compact=True).complete


def test_a_memory_without_a_file_goes_on_after_it_forgot():
    with Memory.open(":memory:") as memory:
        [kept] = memory.remember("The key is under the mat.", user="ana")
        assert memory.forget(user="ana", ids=kept.id).complete
        memory.remember("The key is with Rui.", user="ana")
        assert [hit.text for hit in memory.search("Who has the key?", user="ana")] == ["The key is with Rui."]
