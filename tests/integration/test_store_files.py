"""The files of a store: where they lie, who may read them, what a full disk or a damaged byte makes of them."""

import logging
import os
import shutil
import sqlite3
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from builders import opened, waiting, watched
from histories import bytes_of, small_memory, talk
from holdfast import DamagedStoreError, StoreError
from holdfast.store.sqlite import live_index, migrate
from holdfast.store.sqlite.purge import Eraser
from holdfast.testing.contracts import HashEmbedder

SECRET = b"harbour number0"


@pytest.fixture
def _every_owner_is_worth_a_snapshot(monkeypatch):
    monkeypatch.setattr(live_index, "_WORTH_SAVING", 1)


def holding(folder, words):
    return {name for name, data in bytes_of(folder).items() if words in data}


def test_a_memory_that_is_closed_leaves_no_connection_open(tmp_path, monkeypatch):
    made, connect = [], sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda *given, **named: made.append(connect(*given, **named)) or made[-1])
    with small_memory(tmp_path / "memory.db") as memory:
        keys = talk(memory, 4)
        memory.search("boat", user="ana")
        memory.backup(tmp_path / "copy.db")
        memory.forget(user="ana", ids=keys[0])
    assert len(made) > 1
    for connection in made:
        with pytest.raises(sqlite3.ProgrammingError, match="closed"):
            connection.execute("SELECT 1")


# --------------------------------------------------------------------------------------------------- places


@pytest.mark.usefixtures("_every_owner_is_worth_a_snapshot")
@pytest.mark.parametrize("told", ["real", "link"])
def test_a_store_that_is_opened_by_a_link_is_erased_in_every_file(tmp_path, told):
    (tmp_path / "data").mkdir()
    (tmp_path / "home").mkdir()
    names = {"real": tmp_path / "data" / "m.db", "link": tmp_path / "home" / "m.db"}
    names["link"].symlink_to(names["real"])
    for name in names.values():
        with small_memory(name) as memory:
            keys = talk(memory, 4)
            memory.search("boat", user="ana")
    assert (tmp_path / "data" / "m.db.index").exists()
    assert not (tmp_path / "home" / "m.db.index").exists()
    with small_memory(names[told]) as memory:
        erasure = memory.forget(user="ana", ids=keys[0])
        assert erasure.complete
        assert str(tmp_path / "data" / "m.db-wal") in erasure.files
    assert holding(tmp_path, SECRET) == set()


def test_a_store_of_two_names_is_opened_by_neither_until_one_is_gone(tmp_path):
    """SQLite calls its log after the path: what is written under two names is lost, and nothing tells."""
    one, other = tmp_path / "one.db", tmp_path / "other.db"
    with small_memory(one) as memory:
        memory.remember("the boat is red", user="ana")
        os.link(one, other)
        with pytest.raises(StoreError, match=r"other\.db is one of 2 names of one file .*backup` makes copies"):
            small_memory(other)
        memory.remember("the boat is blue", user="ana")
    for path in (one, other):
        with pytest.raises(StoreError, match="hard links"):
            small_memory(path)
    assert [path.name for path in tmp_path.glob("other.db-*")] == []
    other.unlink()
    with small_memory(one) as memory:
        assert len(memory.list(user="ana")) == 2


def test_copies_that_share_their_files_with_others_are_erased_all_the_same(tmp_path):
    """As `cp -al` makes them of a folder of backups."""
    with small_memory(tmp_path / "m.db") as memory:
        memory.remember(SECRET.decode(), user="ana", id="secret")
        memory.backup(tmp_path / "copy.db")
        os.link(tmp_path / "copy.db", tmp_path / "linked.db")
        assert memory.forget(ids="secret", user="ana").complete
    assert SECRET not in (tmp_path / "linked.db").read_bytes()


def test_a_single_file_that_is_mounted_is_refused(tmp_path, monkeypatch):
    place = tmp_path / "a store" / "m.db"
    place.parent.mkdir()
    small_memory(place).close()
    line = f"36 35 98:0 /x {str(place.resolve()).replace(' ', chr(92) + '040')} rw,noatime - ext3 /dev/root rw\n"
    (tmp_path / "mounts").write_text(f"25 30 0:23 / /sys rw - sysfs sysfs rw\n{line}")
    monkeypatch.setattr(migrate, "_MOUNTS", tmp_path / "mounts")
    with pytest.raises(StoreError, match=r"mounted as a single file, .* mount the folder"):
        small_memory(place)
    small_memory(tmp_path / "other.db").close()
    monkeypatch.setattr(migrate, "_MOUNTS", tmp_path / "missing")  # as on other systems
    small_memory(place).close()


def test_an_index_that_lies_beside_a_link_goes(tmp_path):
    small_memory(tmp_path / "real.db").close()
    (tmp_path / "link.db").symlink_to(tmp_path / "real.db")
    (tmp_path / "link.db.index").write_bytes(b"holdfast index 1\n" + SECRET)
    small_memory(tmp_path / "link.db").close()
    assert not (tmp_path / "link.db.index").exists()


def test_a_file_that_is_no_index_stays_beside_a_link(tmp_path):
    small_memory(tmp_path / "real.db").close()
    (tmp_path / "link.db").symlink_to(tmp_path / "real.db")
    (tmp_path / "link.db.index").write_text("an index of my own\n", encoding="utf-8")
    small_memory(tmp_path / "link.db").close()
    assert (tmp_path / "link.db.index").read_text(encoding="utf-8") == "an index of my own\n"


@pytest.mark.usefixtures("_every_owner_is_worth_a_snapshot")
def test_a_store_stays_where_it_was_opened_when_the_process_moves(tmp_path, monkeypatch):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path / "a")
    with small_memory("m.db") as memory:
        keys = talk(memory, 4)
    with small_memory("m.db") as memory:
        monkeypatch.chdir(tmp_path / "b")
        erasure = memory.forget(user="ana", ids=keys[0])
        memory.search("boat", user="ana")
    assert erasure.complete
    assert str(tmp_path / "a" / "m.db") in erasure.files
    assert [*(tmp_path / "b").iterdir()] == []
    assert holding(tmp_path, SECRET) == set()


def test_files_are_called_what_their_opener_calls_them(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with small_memory("m.db") as memory:
        keys = talk(memory, 2)
        assert memory.forget(user="ana", ids=keys[0]).files == ("m.db", "m.db-wal", "m.db-shm")
        assert memory.stats(user="ana").location == "m.db"


def test_an_erasure_that_could_search_no_file_is_not_complete(tmp_path):
    memory = small_memory(tmp_path / "m.db")
    keys = talk(memory, 2)
    for path in tmp_path.glob("m.db*"):
        path.rename(tmp_path / f"moved-{path.name}")
    erasure = memory.forget(user="ana", ids=keys[0])
    memory.close()
    assert (erasure.complete, erasure.pending) == (False, True)
    assert "no longer there" in erasure.reason


# ---------------------------------------------------------------------------------------------------- locks

OTHER = """
import sys
from holdfast import Memory, Settings
with Memory.open(sys.argv[1], settings=Settings.load({"embedding.embedder": "none"}, environ={})) as memory:
    print(sorted(unit.text for unit in memory.list(user="ana")))
    memory.remember(sys.argv[2], user="ana")
"""


def asked_elsewhere(path, words):
    """Let another process open the store, read, write, and close it."""
    done = subprocess.run([sys.executable, "-c", OTHER, str(path), words], capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.mark.parametrize("touch", ["forget", "open again", "copy"])
def test_a_raw_look_at_a_file_leaves_the_locks_of_its_store_alone(tmp_path, touch):
    """Closing a descriptor would drop them, and the next process to close would delete the log in use."""
    path = tmp_path / "m.db"
    with opened(path=path) as memory:
        [first] = memory.remember("first of all words", user="ana")
        if touch == "forget":
            memory.forget(user="ana", ids=first.id)
        elif touch == "open again":
            opened(path=path).close()
        else:
            memory.backup(tmp_path / "copy.db")
            with opened(path=tmp_path / "copy.db") as copy:
                memory.forget(user="ana", ids=first.id)
                asked_elsewhere(tmp_path / "copy.db", "there")
                copy.remember("here", user="ana")
                assert "'here'" in asked_elsewhere(tmp_path / "copy.db", "again")
        asked_elsewhere(path, "second")
        assert (tmp_path / "m.db-wal").exists()
        memory.remember("third", user="ana")
        assert "'second', 'third'" in asked_elsewhere(path, "fourth")
        assert {"second", "third", "fourth"} <= {unit.text for unit in memory.list(user="ana")}


# ---------------------------------------------------------------------------------------------------- modes


def test_a_file_that_others_could_read_is_narrowed(tmp_path):
    path = tmp_path / "m.db"
    path.touch()
    path.chmod(0o666)
    with small_memory(path) as memory:
        talk(memory, 2)
        assert {stat.S_IMODE(one.stat().st_mode) for one in tmp_path.iterdir()} == {0o600}
        (tmp_path / "m.db-wal").chmod(0o644)
        small_memory(path).close()
        assert stat.S_IMODE((tmp_path / "m.db-wal").stat().st_mode) == 0o600


@pytest.mark.usefixtures("_every_owner_is_worth_a_snapshot")
def test_a_link_in_the_place_of_a_temporary_file_is_not_followed(tmp_path):
    victim = tmp_path / "victim.txt"
    victim.write_text("precious")
    with small_memory(tmp_path / "m.db") as memory:
        talk(memory, 2)
        memory.search("boat", user="ana")
        (tmp_path / f".m.db.index-{os.getpid()}").symlink_to(victim)
    assert victim.read_text() == "precious"
    assert not (tmp_path / "m.db.index").is_symlink()


# --------------------------------------------------------------------------------------------------- memory


def test_owners_who_do_not_come_back_are_let_go(monkeypatch):
    monkeypatch.setattr(live_index, "_OWNERS_KEPT", 5)
    with opened() as memory:
        for number in range(20):
            memory.remember("a tiny boat", user=f"user{number}")
            assert len(memory.search("boat", user=f"user{number}")) == 1
            assert len(memory.search("boat", user="user0")) == 1
        assert len(memory.store._index._shards) == 5
        assert ("local", "user0") in memory.store._index._shards
        assert len(memory.search("boat", user="user7")) == 1


# --------------------------------------------------------------------------------------------------- damage


def crashed(tmp_path, count=20):
    """Return a copy of a store with a log, as a killed process leaves it."""
    with opened(path=tmp_path / "m.db") as memory:
        for number in range(count):
            memory.remember(f"acknowledged words {number}", user="ana")
        (tmp_path / "left").mkdir()
        for name in ("m.db", "m.db-wal"):
            shutil.copy(tmp_path / name, tmp_path / "left" / name)
    return tmp_path / "left" / "m.db"


@pytest.mark.parametrize("share", [0.0, 0.3, 0.6])
def test_a_log_that_is_damaged_before_acknowledged_writes_is_refused(tmp_path, share):
    path = crashed(tmp_path)
    log = path.with_name("m.db-wal")
    data = bytearray(log.read_bytes())
    data[int(share * len(data)) + 20] ^= 1
    log.write_bytes(data)
    for _ in range(2):  # and refusing it leaves it as it is
        with pytest.raises(DamagedStoreError, match=r"m\.db-wal is damaged .*restore a backup"):
            opened(path=path)
    assert log.read_bytes() == data


@pytest.mark.parametrize("size", [0, 3, 515, 4095, 65535])
def test_pages_of_a_size_that_there_is_not_are_damage(tmp_path, size):
    path = crashed(tmp_path)
    for file, place, wrong in ((path, 16, size.to_bytes(2, "big")), (path.with_name("m.db-wal"), 3, b"\xff")):
        data = bytearray(file.read_bytes())
        data[place : place + len(wrong)] = wrong
        file.write_bytes(data)
    with pytest.raises(DamagedStoreError, match="restore a backup"):
        opened(path=path)


def test_a_log_that_a_kill_cut_off_is_recovered_without_a_word(tmp_path, caplog):
    path = crashed(tmp_path)
    os.truncate(path.with_name("m.db-wal"), path.with_name("m.db-wal").stat().st_size - 6000)
    with opened(path=path) as memory:
        assert len(memory.list(user="ana")) == 19
    assert caplog.messages == []


def test_a_last_write_that_a_power_cut_may_have_torn_is_left_out_aloud(tmp_path, caplog):
    path = crashed(tmp_path)
    log = path.with_name("m.db-wal")
    data = bytearray(log.read_bytes())
    data[-2 * 4120 + 60] ^= 1
    log.write_bytes(data)
    with opened(path=path) as memory:
        assert len(memory.list(user="ana")) == 19
    assert "last write" in caplog.text


CHANGES = {
    "user": "UPDATE units SET user = 'ben' WHERE id = 'k1'",
    "event_time": "UPDATE units SET event_time = '1999-01-01T00:00:00.000000Z' WHERE id = 'k1'",
    "session": "UPDATE units SET session = 'z' WHERE id = 'k1'",
    "version": "UPDATE units SET version = 7 WHERE id = 'k1'",
    "position": "UPDATE units SET position = 70000 WHERE id = 'k1'",
}
FATES = {
    "superseded": "UPDATE units SET superseded_by = 'nobody', superseded_at = '2026' WHERE id = 'k1'",
    "superseded since never": "UPDATE units SET superseded_by = 'k0' WHERE id = 'k1'",
    "covered": "UPDATE units SET covered_by = 'k0', covered_at = '2026' WHERE id = 'k1'",
}


def changed(path, statement):
    with opened(path=path) as memory:
        for number in range(3):
            memory.remember(f"the boat of harbour {number}", user="ana", id=f"k{number}", session="s")
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute(statement)
    connection.close()


@pytest.mark.parametrize("column", CHANGES)
def test_a_column_that_says_other_than_its_words_is_damage(tmp_path, column):
    changed(tmp_path / "m.db", CHANGES[column])
    with opened(path=tmp_path / "m.db") as memory:
        [problem] = memory.store.verify()
        assert "filed under other keys" in problem.what
        with pytest.raises(DamagedStoreError, match="filed under other keys"):
            memory.list(user="ben" if column == "user" else "ana")


@pytest.mark.parametrize("fate", FATES)
def test_a_fate_that_nothing_explains_is_found(tmp_path, fate):
    changed(tmp_path / "m.db", FATES[fate])
    with opened(path=tmp_path / "m.db") as memory:
        [problem] = memory.store.verify()
    assert "superseded or covered by nothing" in problem.what


def test_what_a_damaged_index_says_of_a_unit_is_not_believed(tmp_path):
    path = tmp_path / "m.db"
    with opened(path=path) as memory:
        for number in range(6):
            memory.remember(f"boat {number}", user="ana", id=f"k{number}", at=f"2026-01-0{number + 1}T00:00:00Z")
    data = path.read_bytes()
    entry = b"localana2026-01-02T"
    assert data.count(entry)
    path.write_bytes(data.replace(entry, b"localana2026-01-05T"))
    with opened(path=path) as memory:
        assert memory.store.verify()
        with pytest.raises(DamagedStoreError, match="filed under other keys"):
            memory.list(user="ana", order="oldest")


# --------------------------------------------------------------------------------------------------- faults


class Failing:
    """A connection on which the device refuses some statements."""

    def __init__(self, connection, *statements, code=sqlite3.SQLITE_FULL):
        self.connection, self.statements, self.code = connection, statements, code

    def __getattr__(self, name):
        return getattr(self.connection, name)

    def execute(self, statement, *values):
        if statement.startswith(self.statements):
            raise self.error()
        return self.connection.execute(statement, *values)

    def backup(self, target):
        if "backup" in self.statements:
            target.execute("CREATE TABLE half (word TEXT)")
            raise self.error()
        self.connection.backup(target)

    def error(self):
        error = sqlite3.OperationalError("database or disk is full")
        error.sqlite_errorcode = self.code
        return error


def fail(memory, *statements, **how):
    memory.store._database.connection = Failing(memory.store._database.connection, *statements, **how)


def mend(memory):
    memory.store._database.connection = memory.store._database.connection.connection


def test_an_erasure_that_a_full_disk_holds_up_is_pending_and_finished_later(tmp_path, caplog):
    with small_memory(tmp_path / "m.db") as memory:
        keys = talk(memory, 4)
        fail(memory, "PRAGMA wal_checkpoint")
        erasure = memory.forget(user="ana", ids=keys[0])
        assert (erasure.complete, erasure.pending) == (False, True)
        assert "the disk is full" in erasure.reason
        assert "undone" not in erasure.reason
        assert keys[0] not in {unit.id for unit in memory.list(user="ana")}
        memory.remember("still possible", user="ana")
        mend(memory)
        assert memory.store.finish_erasing()
    assert holding(tmp_path, SECRET) == set()
    assert "stays pending" in caplog.text


def test_a_store_with_an_erasure_that_cannot_go_on_opens(tmp_path, monkeypatch):
    with small_memory(tmp_path / "m.db") as memory:
        keys = talk(memory, 4)
        fail(memory, "PRAGMA wal_checkpoint")
        memory.forget(user="ana", ids=keys[0])
        mend(memory)

    def full(*_, **__):
        raise StoreError("the disk is full; make room and try again")

    monkeypatch.setattr(Eraser, "_clean", full)
    with small_memory(tmp_path / "m.db") as memory:
        assert len(memory.list(user="ana")) == 3
        memory.remember("and can be written to", user="ana")


@pytest.mark.parametrize("code", [sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR])
def test_words_are_kept_when_their_vectors_cannot_be(tmp_path, caplog, code):
    seconds = [0.0]
    with watched(lambda: seconds[0]), small_memory(tmp_path / "m.db") as memory:
        fail(memory, "INSERT INTO vectors", code=code)
        [written] = memory.remember("the boat is blue", user="ana")
        assert written.status == "added"
        memory.update(written.id, user="ana", text="the boat is red")
        assert memory.get(written.id, user="ana").text == "the boat is red"
        assert waiting(memory, HashEmbedder(64).space) == 1
        mend(memory)
        seconds[0] += 1.0  # what failed just now is not tried again before
        memory.remember("another one", user="ana")
        assert waiting(memory, HashEmbedder(64).space) == 0
    assert "gate or vectors are pending" in caplog.text


@pytest.mark.parametrize(
    ("statement", "code", "said"),
    [
        ("COMMIT", sqlite3.SQLITE_FULL, "this write was undone; the disk is full"),
        ("INSERT INTO units", sqlite3.SQLITE_FULL, "this write was undone; the disk is full"),
        ("COMMIT", sqlite3.SQLITE_IOERR, "this write is not acknowledged; the disk reported an error"),
    ],
)
def test_a_write_that_fails_says_what_became_of_it(tmp_path, statement, code, said):
    with small_memory(tmp_path / "m.db") as memory:
        fail(memory, statement, code=code)
        with pytest.raises(StoreError, match=said):
            memory.remember("the boat is blue", user="ana")
        mend(memory)
        assert memory.list(user="ana") == []


def test_a_read_that_fails_does_not_speak_of_writing(tmp_path):
    with small_memory(tmp_path / "m.db") as memory:
        talk(memory, 2)
        fail(memory, "SELECT", code=sqlite3.SQLITE_IOERR)
        with pytest.raises(StoreError, match="the disk reported an error; check the device") as caught:
            memory.list(user="ana")
        mend(memory)
    assert "write" not in str(caught.value)


def test_what_is_written_is_acknowledged_when_the_index_cannot_follow(tmp_path, caplog):
    with small_memory(tmp_path / "m.db", embedder=None) as memory:
        talk(memory, 2)
        memory.search("boat", user="ana")
        fail(memory, "SELECT seq, tenant")
        memory.remember("the kettle is blue", user="ana")
        mend(memory)
        assert "what was written is stored" in caplog.text
        assert [hit.unit.text for hit in memory.search("kettle", user="ana", limit=1)] == ["the kettle is blue"]


def test_a_device_that_refuses_a_read_is_not_called_damage(tmp_path):
    with small_memory(tmp_path / "m.db") as memory:
        talk(memory, 2)
        fail(memory, "SELECT", code=sqlite3.SQLITE_CORRUPT)  # so does SQLite call a read that failed
        with pytest.raises(StoreError, match="check the device") as caught:
            memory.list(user="ana")
        mend(memory)
    assert not isinstance(caught.value, DamagedStoreError)


def test_a_backup_is_one_file(tmp_path):
    (tmp_path / "copies").mkdir()
    with small_memory(tmp_path / "m.db") as memory:
        talk(memory, 8)
        assert memory.backup(tmp_path / "copies" / "copy.db") == 8
        assert [one.name for one in (tmp_path / "copies").iterdir()] == ["copy.db"]


def test_a_copy_that_fails_leaves_nothing_behind(tmp_path):
    with small_memory(tmp_path / "m.db") as memory:
        talk(memory, 2)
        fail(memory, "backup")
        with pytest.raises(StoreError, match="the disk is full"):
            memory.backup(tmp_path / "copy.db")
        mend(memory)
        assert not [*tmp_path.glob("copy.db*")]
        assert memory.store._run("backups", {}).fetchall() == []
        assert memory.backup(tmp_path / "copy.db") == 2


def test_a_file_that_appears_while_a_backup_begins_is_left_alone(tmp_path, monkeypatch):
    target, exists = tmp_path / "copy.db", Path.exists

    def appearing(path):
        known = exists(path)
        if path == target and not known:
            target.write_text("somebody else's", encoding="utf-8")
        return known

    with small_memory(tmp_path / "m.db") as memory:
        talk(memory, 2)
        with monkeypatch.context() as patch:
            patch.setattr(Path, "exists", appearing)
            with pytest.raises(StoreError, match="no copy was made"):
                memory.backup(target)
        assert target.read_text(encoding="utf-8") == "somebody else's"
        assert memory.store._run("backups", {}).fetchall() == []


def test_a_busy_store_closes_without_its_index(tmp_path, caplog, monkeypatch):
    monkeypatch.setattr(live_index, "_WORTH_SAVING", 1)
    caplog.set_level(logging.WARNING)
    memory = small_memory(tmp_path / "m.db", store__busy_timeout_ms=1)
    talk(memory, 2)
    memory.search("boat", user="ana")
    other = sqlite3.connect(tmp_path / "m.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    memory.close()
    other.close()
    assert "not saved" in caplog.text


@pytest.mark.usefixtures("_every_owner_is_worth_a_snapshot")
def test_nobody_reads_the_index_while_it_is_saved(tmp_path, monkeypatch):
    monkeypatch.setattr(live_index, "_FAR_BEHIND", 0)
    monkeypatch.setattr(live_index, "_BEHIND_SHARE", 0.0)
    packed, let_in = live_index.LiveIndex._packed, []
    with small_memory(tmp_path / "m.db") as memory, ThreadPoolExecutor(1) as other:
        lock = memory.store._database.lock

        def enter():
            if entered := lock.acquire(blocking=False):
                lock.release()
            return entered

        def pack(index, owner, shard):
            let_in.append(other.submit(enter).result())
            return packed(index, owner, shard)

        monkeypatch.setattr(live_index.LiveIndex, "_packed", pack)
        memory.remember("the boat is in the harbour", user="ana")
        memory.search("boat", user="ana")
        memory.remember("the kiln is in the shed", user="ana")
        assert let_in
        assert not any(let_in)


def test_a_file_may_be_called_like_a_database(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with opened(path="postgres") as memory:
        memory.remember("The kettle is on the left shelf.", user="ana")
    assert (tmp_path / "postgres").is_file()
