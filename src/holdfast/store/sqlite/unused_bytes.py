"""Bytes of a SQLite file that no row needs: found page by page, and overwritten in place (law 16).

Secure deletion overwrites pages and cells that are freed. What it leaves is in one place: a page that was split or
merged keeps old cells between its pointers and its cells, because SQLite compacts it without writing zeros. No
statement reaches these bytes, and no reader looks at them. So they are overwritten in the file itself, while the
write lock is held and the log is empty: nobody else writes to the file then, and an interruption at any point leaves
a whole database, because no byte that means anything is written.

Pages of the list of free ones are overwritten too. What is left unread: ends of overflow pages, and freed cells, both
of which secure deletion has overwritten. A file that was written without it is written anew instead.
The format: https://www.sqlite.org/fileformat2.html
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from holdfast.store.sqlite import raw_files
from holdfast.store.sqlite.migrate import OVERWRITTEN, queries

# Where a byte begins that is zero from there on, and where that ends.
ByteRange = tuple[int, int]
_HEADER = 100
_INTERIOR_INDEX, _INTERIOR_TABLE, _LEAF_INDEX, _LEAF_TABLE = 2, 5, 10, 13
_IS_TREE = np.isin(np.arange(256), (_INTERIOR_INDEX, _INTERIOR_TABLE, _LEAF_INDEX, _LEAF_TABLE))
_HEADER_OF_INTERIOR, _HEADER_OF_LEAF, _POINTER = 12, 8, 2
_LEAVES_OF_TRUNK = 8  # where a page of the list of free pages names the first of its leaves
_NUMBER = 4  # bytes of the number of a page
# An overflow page begins with a number of a page, a page of a tree with its kind: larger files could mix them up.
_MOST_PAGES = _INTERIOR_INDEX << 24
_LOCKS_AT = 1 << 30  # the page that lies there is never used
_PAGES_TOGETHER = 64
_ZEROS = bytes(raw_files.PAGE_SIZES[-1])
# Whoever writes between emptying the log and locking the file makes us begin again.
_TRIES = 100


def truncate_log(connection: sqlite3.Connection, *, wait: bool) -> bool:
    """Empty the write-ahead log; return whether no reader still needs it."""
    [patience] = connection.execute("PRAGMA busy_timeout").fetchone()
    connection.execute(f"PRAGMA busy_timeout = {patience if wait else 0}")
    try:
        busy, _, _ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    finally:
        connection.execute(f"PRAGMA busy_timeout = {patience}")
    return not busy


def is_overwritten(connection: sqlite3.Connection) -> bool:
    """Return whether all of a file was written under secure deletion, or was written anew since."""
    return connection.execute(queries()["agreed"], {"name": OVERWRITTEN}).fetchone() is not None


def renew_mark(connection: sqlite3.Connection) -> None:
    """Let the mark of a file that has one be another than any copy has: `overwrite` knows the file by it."""
    connection.execute(queries()["renew_agreement"], _new_mark())


def _new_mark() -> dict[str, str]:
    return {"name": OVERWRITTEN, "value": os.urandom(16).hex()}


def rewrite(connection: sqlite3.Connection, *, wait: bool) -> bool:
    """Write the file anew, and empty its log; return whether no reader prevents it."""
    if not truncate_log(connection, wait=wait):
        return False
    connection.execute("VACUUM")
    connection.execute(queries()["agree"], _new_mark())
    return truncate_log(connection, wait=wait)


def overwrite(connection: sqlite3.Connection, location: str, *, wait: bool) -> bool | None:
    """Overwrite what no row needs, and empty the log; return whether nobody prevents it.

    None when the file is laid out in a way that is not read here, or lies elsewhere by now: only SQLite can write to
    it. The caller has renewed its mark.
    """
    for _ in range(_TRIES):
        if not truncate_log(connection, wait=wait):
            return False
        connection.execute("BEGIN IMMEDIATE")
        try:
            if _is_empty(Path(f"{location}-wal")):
                if not _write_zeros(connection, location):
                    return None
                # Whoever has pages of before in memory sees that the file has changed, and reads them again.
                renew_mark(connection)
                connection.execute("COMMIT")
                connection.execute("PRAGMA shrink_memory")  # lets go of the pages that we have in memory ourselves
                return True
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
    return False


def _is_empty(log: Path) -> bool:
    try:
        return log.stat().st_size == 0
    except FileNotFoundError:
        return True


def _write_zeros(connection: sqlite3.Connection, location: str) -> bool:
    """Overwrite the unused bytes of a file, whose log is empty; return whether it is there and can be read."""
    try:
        descriptor = raw_files.existing(location)
    except FileNotFoundError:  # somebody has moved it
        return False
    spans = find_unused(descriptor) if _is_open_in(connection, descriptor) else None
    for start, end in spans or ():
        raw_files.write_at(descriptor, _ZEROS[: end - start], start)
    if spans:
        os.fsync(descriptor)
    return spans is not None


def _is_open_in(connection: sqlite3.Connection, descriptor: int) -> bool:
    """Return whether a file is the one that a connection writes to, not another that was put in its place."""
    [mark] = connection.execute(queries()["agreed"], {"name": OVERWRITTEN}).fetchone()
    [page] = connection.execute(queries()["page_of_agreements"]).fetchone()
    size = raw_files.read_page_size(raw_files.read_at(descriptor, _HEADER, 0))
    return mark.encode() in raw_files.read_at(descriptor, size, (page - 1) * size)


def find_unused(descriptor: int) -> list[ByteRange] | None:
    """Return where a database file holds bytes that no row needs and that are not zero; None if that is not known."""
    try:
        return [*_unused(descriptor)]
    except ValueError:  # of a layout that is not read here
        return None


def _unused(descriptor: int) -> Iterator[ByteRange]:
    size, count, free = _layout(descriptor)
    for first in range(0, count, _PAGES_TOGETHER):
        pages = min(_PAGES_TOGETHER, count - first)
        data = raw_files.read_at(descriptor, pages * size, first * size)
        if len(data) < pages * size:
            raise ValueError("the file is shorter than it says")
        for start, end in _gaps(data, size, first, free):
            if data[start:end] != _ZEROS[: end - start]:
                yield first * size + start, first * size + end


def _gaps(data: bytes, size: int, first: int, free: dict[int, int]) -> Iterator[ByteRange]:
    """Yield the unused part of each page of some, from the page at `first` on; `free` is as `_layout` gives it."""
    pages = np.frombuffer(data, dtype=np.uint8).reshape(-1, size)
    begin = np.zeros(len(pages), dtype=np.int64)
    heads = pages[:, :_HEADER_OF_LEAF].astype(np.int64)
    if not first:  # the first page begins with the header of the file
        heads[0], begin[0] = pages[0, _HEADER : _HEADER + _HEADER_OF_LEAF], _HEADER
    kinds = heads[:, 0]
    is_tree, is_interior = _IS_TREE[kinds], kinds <= _INTERIOR_TABLE
    begin += np.where(is_interior, _HEADER_OF_INTERIOR, _HEADER_OF_LEAF)
    begin += _POINTER * (heads[:, 3] * 256 + heads[:, 4])
    end = heads[:, 5] * 256 + heads[:, 6]
    end[end == 0] = raw_files.PAGE_SIZES[-1]
    for place in [number - first for number in range(first, first + len(pages)) if number in free]:
        is_tree[place], begin[place], end[place] = True, free[first + place], size
    if np.any(is_tree & ((begin > end) | (end > size))) or np.any(~is_tree & (kinds >= _INTERIOR_INDEX)):
        raise ValueError("a page is none that is known")
    at = np.arange(len(pages)) * size
    yield from zip((at + begin)[is_tree].tolist(), (at + end)[is_tree].tolist(), strict=True)


def _layout(descriptor: int) -> tuple[int, int, dict[int, int]]:
    """Return the size of a page, how many there are, and for each free one, counted from 0, where it is unused."""
    head = raw_files.read_at(descriptor, _HEADER, 0)
    [changed, count, trunk, free_count, vacuums, of_change] = (_number(head, at) for at in (24, 28, 32, 36, 52, 92))
    size = raw_files.read_page_size(head)
    is_known = size in raw_files.PAGE_SIZES and changed == of_change and not vacuums and count < _MOST_PAGES
    if not is_known or os.fstat(descriptor).st_size != count * size:
        raise ValueError("the header is none that is known")
    free: dict[int, int] = {}
    while trunk:
        page = raw_files.read_at(descriptor, size, (trunk - 1) * size)
        following, leaves = _number(page, 0), _number(page, _NUMBER)
        unused = _LEAVES_OF_TRUNK + _NUMBER * leaves
        if trunk > count or trunk - 1 in free or unused > size:
            raise ValueError("the list of free pages is damaged")
        free[trunk - 1] = unused
        free |= dict.fromkeys((_number(page, at) - 1 for at in range(_LEAVES_OF_TRUNK, unused, _NUMBER)), 0)
        trunk = following
    if len(free) != free_count or _LOCKS_AT // size in free:
        raise ValueError("the list of free pages is damaged")
    return size, count, free


def _number(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + _NUMBER], "big")
