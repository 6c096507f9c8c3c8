"""What SQLite leaves of deleted rows when it overwrites what it frees, and that nothing of it stays (law 16)."""

import os
import random
import re
import sqlite3
from contextlib import closing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import costly
from holdfast.store.sqlite import raw_files, unused_bytes
from holdfast.store.sqlite.migrate import OVERWRITTEN

# Every text has a number of its own, over and over: a few bytes of it tell which it was.
NUMBERED = re.compile(rb"<(\d{7})>")
LENGTHS = (2, 6, 20, 60, 200, 700)


def connected(path, *, mode="ON", page=4096, vacuums="NONE"):
    connection = sqlite3.connect(path, isolation_level=None)
    for pragma in (
        f"page_size = {page}",
        f"auto_vacuum = {vacuums}",
        "journal_mode = WAL",
        f"secure_delete = {mode}",
    ):
        connection.execute(f"PRAGMA {pragma}")
    connection.execute("PRAGMA synchronous = OFF")  # no power cut here, and many examples
    return connection


class Rows:
    """Rows with an index, in a file like a store's, and rows that come, change and go at random."""

    def __init__(self, path, chance, **how):
        self.path, self.chance, self.count, self.live = path, chance, 0, []
        self.connection = connected(path, **how)
        self.connection.execute("CREATE TABLE agreements (name TEXT PRIMARY KEY, value TEXT) STRICT, WITHOUT ROWID")
        self.connection.execute("INSERT INTO agreements VALUES (?, 'new')", (OVERWRITTEN,))
        self.connection.execute("CREATE TABLE rows (key INTEGER PRIMARY KEY, name TEXT UNIQUE, words TEXT)")
        self.connection.execute("CREATE TABLE older (name TEXT, words TEXT, PRIMARY KEY (name, words)) WITHOUT ROWID")

    def text(self):
        self.count += 1
        return f"<{self.count:07}>" * self.chance.choice(LENGTHS)

    def name(self):
        self.count += 1
        return f"{self.chance.randrange(1 << 30):09}<{self.count:07}>"

    def live_through(self, steps):
        run, choose = self.connection.execute, self.chance.choice
        for _ in range(steps):
            run("BEGIN IMMEDIATE")
            before = [*self.live]
            for _ in range(self.chance.randrange(1, 12)):
                what = self.chance.random()
                if what < 0.5 or not self.live:
                    values = (self.name(), self.text())
                    self.live.append(run("INSERT INTO rows (name, words) VALUES (?, ?)", values).lastrowid)
                elif what < 0.75:
                    key = choose(self.live)
                    run(
                        "INSERT OR IGNORE INTO older SELECT name, substr(words, 1, 300) FROM rows WHERE key = ?",
                        (key,),
                    )
                    run("UPDATE rows SET words = ? WHERE key = ?", (self.text(), key))
                else:
                    self.delete([choose(self.live)])
            if self.chance.random() < 0.1:
                run("ROLLBACK")
                self.live = before
            else:
                run("COMMIT")

    def delete(self, keys):
        for key in keys:
            self.connection.execute("DELETE FROM older WHERE name = (SELECT name FROM rows WHERE key = ?)", (key,))
            self.connection.execute("DELETE FROM rows WHERE key = ?", (key,))
            self.live.remove(key)

    def delete_half(self):
        self.delete(self.chance.sample(self.live, len(self.live) // 2))

    def all(self):
        found = self.connection.execute(
            "SELECT coalesce(name, '') || words FROM rows UNION ALL SELECT name || words FROM older"
        )
        return sorted(row for (row,) in found)

    def numbers(self):
        return {number for row in self.all() for number in NUMBERED.findall(row.encode())}

    def left(self):
        """Return where in the file numbers stand that no row has."""
        data, live = self.path.read_bytes(), self.numbers()
        return [found.start() for found in NUMBERED.finditer(data) if found[1] not in live]

    def overwrite(self):
        unused_bytes.renew_mark(self.connection)
        location = str(self.path)
        raw_files.register_open(location)
        try:
            return unused_bytes.overwrite(self.connection, location, wait=True)
        finally:
            raw_files.unregister_open(location)

    def is_whole(self):
        return self.connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)

    def unused(self):
        descriptor = os.open(self.path, os.O_RDONLY)
        try:
            return unused_bytes.find_unused(descriptor)
        finally:
            os.close(descriptor)


@pytest.fixture
def rows(tmp_path):
    made = Rows(tmp_path / "rows.db", random.Random(7), page=1024)
    with closing(made.connection):
        made.live_through(150)
        made.delete_half()
        unused_bytes.truncate_log(made.connection, wait=True)
        assert made.left(), "nothing was left, so this shows nothing"
        yield made


@costly
@given(st.integers(0, 2**32), st.sampled_from([512, 4096, 65536]), st.booleans())
def test_all_that_sqlite_leaves_of_deleted_rows_is_found_by_the_page(tmp_path_factory, seed, page, is_rewritten):
    made = Rows(tmp_path_factory.mktemp("rows") / "rows.db", random.Random(seed), page=page)
    with closing(made.connection):
        made.live_through(60)
        if is_rewritten:
            made.connection.execute("VACUUM")
        made.delete_half()
        unused_bytes.truncate_log(made.connection, wait=True)
        spans = made.unused()
        assert [at for at in made.left() if not any(start <= at < end for start, end in spans)] == []
        before = made.all()
        assert made.overwrite()
        assert (made.left(), made.unused()) == ([], [])
        assert made.is_whole()
        assert made.all() == before
        made.live_through(20)  # what was in memory before does not come back
        assert made.overwrite()
        assert (made.left(), made.is_whole()) == ([], True)


def test_pages_that_were_freed_with_their_bytes_are_overwritten(tmp_path):
    made = Rows(tmp_path / "rows.db", random.Random(3), mode="FAST")
    with closing(made.connection):
        made.connection.execute("BEGIN")
        for _ in range(3000):
            made.live.append(made.connection.execute("INSERT INTO rows (words) VALUES (?)", (made.text(),)).lastrowid)
        made.connection.execute("COMMIT")
        made.connection.execute("DELETE FROM rows WHERE key % 50 != 0")
        assert made.connection.execute("PRAGMA freelist_count").fetchone()[0] > 1100, "one page names all free ones"
        assert made.overwrite()
        assert (made.left(), made.is_whole()) == ([], True)


def test_an_interruption_at_any_span_leaves_a_whole_file(rows):
    before, spans = rows.all(), rows.unused()
    with rows.path.open("r+b") as file:
        for start, end in rows.chance.sample(spans, len(spans) // 2):
            file.seek(start)
            file.write(bytes(rows.chance.randrange(end - start)))
    with closing(sqlite3.connect(rows.path)) as other:
        assert other.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert other.execute("SELECT count(*) FROM rows").fetchone() == (len(rows.live),)
    assert rows.all() == before


@pytest.mark.parametrize("whose", ["its own", "another's"])
def test_pages_that_a_connection_has_in_memory_do_not_bring_bytes_back(rows, monkeypatch, whose):
    write_zeros = unused_bytes._write_zeros
    with closing(connected(rows.path)) as other:
        reader = other if whose == "another's" else rows.connection

        def read_before(*given):
            assert reader.execute("SELECT sum(length(words)) FROM rows").fetchone()
            assert reader.execute("SELECT count(name) FROM rows INDEXED BY sqlite_autoindex_rows_1").fetchone()
            assert reader.execute("SELECT count(name) FROM older").fetchone()
            return write_zeros(*given)

        monkeypatch.setattr(unused_bytes, "_write_zeros", read_before)
        assert rows.overwrite()
        reader.execute("UPDATE rows SET words = upper(words)")
        reader.execute("UPDATE older SET name = name WHERE length(words) % 5 = 0")
        rows.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        assert rows.left() == []


def test_a_reader_that_needs_the_log_prevents_it(rows):
    rows.connection.execute("PRAGMA busy_timeout = 1")
    with closing(connected(rows.path)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM rows").fetchone()
        rows.delete_half()
        assert rows.overwrite() is False
    assert rows.overwrite()
    assert rows.left() == []


def test_a_write_that_comes_before_the_lock_makes_it_begin_again(rows, monkeypatch):
    truncate, times = unused_bytes.truncate_log, []

    def truncated(connection, *, wait):
        is_empty = truncate(connection, wait=wait)
        times.append(is_empty)
        if len(times) < 3:
            with closing(connected(rows.path)) as other:
                other.execute("UPDATE rows SET words = words || '.' WHERE key = (SELECT max(key) FROM rows)")
        return is_empty

    monkeypatch.setattr(unused_bytes, "truncate_log", truncated)
    assert rows.overwrite()
    assert len(times) == 3
    assert (rows.left(), rows.is_whole()) == ([], True)


def test_another_file_in_the_place_of_the_store_is_left_alone(rows, tmp_path):
    data = rows.path.read_bytes()
    rows.path.rename(tmp_path / "moved.db")
    rows.path.write_bytes(data)
    assert rows.overwrite() is None
    assert rows.path.read_bytes() == data
    rows.path.unlink()
    assert rows.overwrite() is None
    assert not rows.path.exists()


@pytest.mark.parametrize("vacuums", ["FULL", "INCREMENTAL"])
def test_a_file_that_moves_its_pages_is_not_read_page_by_page(tmp_path, vacuums):
    made = Rows(tmp_path / "rows.db", random.Random(1), vacuums=vacuums)
    with closing(made.connection):
        made.live_through(20)
        assert made.overwrite() is None


def changed(data, at, value):
    return data[:at] + value.to_bytes(4, "big") + data[at + 4 :]


DAMAGE = {
    "cut short": lambda data: data[:-100],
    "a page too many": lambda data: data + bytes(1024),
    "free pages that are not there": lambda data: changed(data, 32, 1 << 20),
    "more free pages than it names": lambda data: changed(data, 36, 1 << 20),
    "a page of no kind": lambda data: data[:1024] + b"\x07" + data[1025:],
    "cells beyond the page": lambda data: data[:1029] + b"\xff\xff" + data[1031:],
    "empty": lambda _: b"",
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_nothing_is_written_to_a_damaged_file(rows, damage):
    data = rows.path.read_bytes()
    rows.connection.close()
    rows.path.write_bytes(damage(data))
    assert rows.unused() is None
