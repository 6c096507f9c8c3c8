"""What a recovery of the write-ahead log would lose, and what may rightly lie behind its last good frame."""

import random
import sqlite3

import pytest

from holdfast.store.sqlite import raw_files as wal

PAGE = 4096
FRAME = 24 + PAGE


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    """Return the log of a database with thirty transactions, and where each of their commits ends."""
    path = tmp_path_factory.mktemp("log") / "some.db"
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("CREATE TABLE words (word TEXT)")
    ends = []
    for number in range(30):
        connection.execute("BEGIN")
        connection.executemany("INSERT INTO words VALUES (?)", [(f"word {number} " * 300,)] * (1 + number % 4))
        connection.execute("COMMIT")
        ends.append(path.with_name("some.db-wal").stat().st_size)
    data = path.with_name("some.db-wal").read_bytes()
    connection.close()
    return data, ends


def flipped(data, place, bit=0):
    damaged = bytearray(data)
    damaged[place] ^= 1 << bit
    return bytes(damaged)


def test_a_whole_log_loses_nothing(log):
    assert wal.examine_wal(log[0], PAGE) == wal.Loss()
    assert wal.examine_wal(b"", PAGE) == wal.Loss()


def test_a_flipped_bit_before_acknowledged_writes_is_seen(log):
    data, ends = log
    chance = random.Random(3)
    for _ in range(120):
        place = chance.randrange(ends[-3])
        assert wal.examine_wal(flipped(data, place, chance.randrange(8)), PAGE).acknowledged, place


def test_a_log_whose_pages_are_of_no_size_is_read_by_the_databases(log):
    damaged = bytearray(log[0])
    damaged[8:12] = (4099).to_bytes(4, "big")
    first, second = wal._checksum(bytes(damaged[:24]), (0, 0), big=bool(damaged[3] & 1))
    damaged[24:32] = first.to_bytes(4, "big") + second.to_bytes(4, "big")
    assert wal.examine_wal(bytes(damaged), PAGE).acknowledged


def test_how_many_writes_are_lost_is_counted(log):
    data, ends = log
    assert wal.examine_wal(flipped(data, ends[9] - 100), PAGE).acknowledged == 20


def test_a_log_that_a_crash_cut_off_loses_nothing(log):
    data, _ = log
    for length in range(0, len(data), 1009):
        assert wal.examine_wal(data[:length], PAGE) == wal.Loss()
        torn = data[:length] + bytes(len(data[length : length + FRAME]))
        assert wal.examine_wal(torn, PAGE) == wal.Loss()


def test_a_last_write_that_is_not_whole_is_told_apart(log):
    data, ends = log
    first_of_last = ends[-2] + 24 + 50
    assert wal.examine_wal(flipped(data, first_of_last), PAGE) == wal.Loss(last=True)


def test_remains_of_an_older_log_are_none_of_its_business(log, tmp_path):
    path = tmp_path / "again.db"
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("CREATE TABLE words (word TEXT)")
    for number in range(40):
        connection.execute("INSERT INTO words VALUES (?)", (f"old {number} " * 300,))
    connection.execute("PRAGMA wal_checkpoint(RESTART)")  # the next write begins the log anew, over the old one
    connection.execute("INSERT INTO words VALUES ('new')")
    data = path.with_name("again.db-wal").read_bytes()
    connection.close()
    assert len(data) > 20 * FRAME
    assert wal.examine_wal(data, PAGE) == wal.Loss()


def test_commits_that_failed_to_sync_are_no_damage(log):
    """The next write goes over such a commit from its start, and what it leaves of it stays, checksums and all."""
    data, ends = log
    longest, longer = data[ends[2] : ends[3]], data[ends[6] : ends[7]]
    assert len(longest) == len(longer) == 6 * FRAME
    # The last good write, then what is left of one that failed, then what is left of another.
    remains = data[: ends[9]] + longer[2 * FRAME :] + longest[4 * FRAME :]
    assert wal.examine_wal(remains, PAGE) == wal.Loss(last=True)
