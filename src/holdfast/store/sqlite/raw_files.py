"""Raw reads of files that SQLite has open, and the write-ahead log before SQLite recovers it.

Closing any descriptor of a file drops every POSIX lock that the process has on it, those of SQLite too: another
process would then delete the write-ahead log under a store that still writes to it. So a descriptor that was opened
here is kept until the last store of this process on that database has closed.

SQLite recovers a log up to the first frame whose checksum fails, and says nothing of what follows. Remains may lie
there rightly: of an older log (other salts), of a transaction that a crash cut off, of a commit whose sync failed. A
transaction, though, begins only after the one before it was synced, and its checksums go on from there. So a whole
one that follows the commit of another, both behind the first bad frame, proves that acknowledged writes are damaged.
The format: https://www.sqlite.org/fileformat2.html#the_write_ahead_log
"""

from __future__ import annotations

import os
import struct
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import field
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from holdfast.values import dataclass

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

# Small enough to stay in a cache, large enough that the calls cost nothing.
_CHUNK = 1 << 18
# Where connections hold their shared locks: https://www.sqlite.org/fileformat2.html#the_lock_byte_page
_SHARED_FIRST = 0x40000002
_SHARED_SIZE = 510
# Windows would turn some bytes into line ends.
_BYTES = getattr(os, "O_BINARY", 0)


@dataclass(slots=True)
class _Held:
    stores: int = 0
    descriptors: dict[tuple[int, int, bool], int] = field(default_factory=dict)


_held: dict[str, _Held] = {}
_guard = threading.Lock()


def register_open(location: str) -> None:
    """Say that this process is about to open the database at `location`."""
    with _guard:
        _held.setdefault(location, _Held()).stores += 1


def unregister_open(location: str) -> None:
    """Say that a connection to the database was closed; with the last one its descriptors are."""
    with _guard:
        held = _held[location]
        held.stores -= 1
        if not held.stores:
            for descriptor in _held.pop(location).descriptors.values():
                os.close(descriptor)


def writable(location: str, mode: int) -> int:
    """Return a descriptor of the database file, which is created with `mode` when it is missing.

    Raises:
        OSError: the file cannot be opened for writing.
    """
    return _opened(location, location, os.O_RDWR | os.O_CREAT, mode)


def existing(location: str) -> int:
    """Return a descriptor of the database file for writing.

    Raises:
        OSError: there is none, or it cannot be opened.
    """
    return _opened(location, location, os.O_RDWR)


def _opened(location: str, path: str, flags: int, mode: int = 0) -> int:
    writing = bool(flags & os.O_RDWR)
    with _guard:
        known = _held[location].descriptors
        try:
            found = Path(path).stat()
        except FileNotFoundError:
            found = None
        if found is not None and (found.st_dev, found.st_ino, writing) in known:
            return known[found.st_dev, found.st_ino, writing]
        descriptor = os.open(path, flags | _BYTES, mode)
        found = os.fstat(descriptor)
        known[found.st_dev, found.st_ino, writing] = descriptor
        return descriptor


def chunks(location: str, path: str, *, overlap: int = 0) -> Iterator[bytes]:
    """Yield the bytes of a file of a database that is held; each chunk repeats `overlap` bytes of the one before.

    Raises:
        OSError: the file cannot be read.
    """
    locked = path in (location, f"{location}-shm")
    descriptor = _opened(location, path, os.O_RDONLY) if locked else os.open(path, os.O_RDONLY | _BYTES)
    try:
        at = 0
        while data := read_at(descriptor, _CHUNK + overlap, at):
            yield data
            at += _CHUNK
    finally:
        if not locked:
            os.close(descriptor)


def read_at(descriptor: int, size: int, at: int) -> bytes:
    """Return bytes of an open file from a place on."""
    if sys.platform != "win32":
        return os.pread(descriptor, size, at)
    with _guard:  # others may read at the same descriptor meanwhile
        os.lseek(descriptor, at, os.SEEK_SET)
        return os.read(descriptor, size)


def write_at(descriptor: int, data: bytes, at: int) -> None:
    """Write bytes to a place of an open file."""
    while data:
        if sys.platform != "win32":
            written = os.pwrite(descriptor, data, at)
        else:
            with _guard:
                os.lseek(descriptor, at, os.SEEK_SET)
                written = os.write(descriptor, data)
        data, at = data[written:], at + written


@contextmanager
def exclusive_access(location: str) -> Iterator[bool]:
    """Keep others from opening the database for the time of a block; give False when somebody has it open."""
    with _guard:
        only = _held[location].stores == 1
    descriptor = writable(location, 0) if only else -1
    try:
        if only:
            _lock(descriptor)
    except OSError:  # another process holds its shared lock: it is reading or writing
        only = False
    try:
        yield only
    finally:
        if only:
            _unlock(descriptor)


def _lock(descriptor: int) -> None:
    """Take the bytes that every connection to a database shares, without waiting.

    Raises:
        OSError: somebody else has them.
    """
    if sys.platform == "win32":
        os.lseek(descriptor, _SHARED_FIRST, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, _SHARED_SIZE)
    else:
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, _SHARED_SIZE, _SHARED_FIRST)


def _unlock(descriptor: int) -> None:
    if sys.platform == "win32":
        os.lseek(descriptor, _SHARED_FIRST, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_UNLCK, _SHARED_SIZE)
    else:
        fcntl.lockf(descriptor, fcntl.LOCK_UN, _SHARED_SIZE, _SHARED_FIRST)


_HEADER = struct.Struct(">8I")  # magic, version, page size, sequence, two salts, two checksums
_FRAME = struct.Struct(">6I")  # page, pages of the database after a commit, two salts, two checksums
_CHECKED_OF_HEADER = 24
_CHECKED_OF_FRAME = 8
_MAGIC = 0x377F0682  # one more when checksums are over big-endian words
# Powers of two: https://www.sqlite.org/fileformat2.html#page_size
PAGE_SIZES = tuple(1 << bits for bits in range(9, 17))
_PAGE_SIZE_AT = slice(16, 18)
_LARGEST_PAGE = 1  # how two bytes say 65,536
_WORD = 0xFFFFFFFF
ChecksumPair = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Loss:
    """What a recovery leaves out: acknowledged transactions, or a last one that may just as well be a crash's."""

    acknowledged: int = 0
    last: bool = False


@dataclass(frozen=True, slots=True)
class _Frame:
    commits: bool
    salts: ChecksumPair
    # Whether its checksum goes on from the one that the frame before it holds.
    follows: bool


def read_page_size(header: bytes) -> int:
    """Return the size of a page that the header of a database file tells: one of `PAGE_SIZES` when it is whole."""
    given = int.from_bytes(header[_PAGE_SIZE_AT], "big")
    return PAGE_SIZES[-1] if given == _LARGEST_PAGE else given


def examine_wal(data: bytes, page_size: int) -> Loss:
    """Return what is lost when SQLite recovers this log; `page_size` is one of `PAGE_SIZES`."""
    if len(data) < _HEADER.size:
        return Loss()
    magic, _, page, _, *pairs = _HEADER.unpack_from(data)
    big = bool(magic & 1)
    stored = (pairs[2], pairs[3])
    known = magic & ~1 == _MAGIC and page in PAGE_SIZES
    sound = known and _checksum(data[:_CHECKED_OF_HEADER], (0, 0), big=big) == stored
    if not sound:  # SQLite takes the log for empty; what it was written with is known all the same
        page, big = page_size, sys.byteorder == "big"
    frames = [*_frames(data, page, stored, big=big)]
    salts = (pairs[0], pairs[1]) if sound or not frames else frames[0].salts
    bad = _first_bad(frames, salts) if sound else -1
    acknowledged = _acknowledged([frame for frame in frames[max(bad, 0) :] if frame.salts == salts])
    # A kill may leave half of a commit's own frame; one that is whole, behind a bad frame, takes a power cut.
    behind = any(frame.commits and frame.salts == salts for frame in frames[bad + 1 :])
    return Loss(acknowledged, behind and not acknowledged)


def _frames(data: bytes, page: int, before: ChecksumPair, *, big: bool) -> Iterator[_Frame]:
    size = _FRAME.size + page
    for at in range(_HEADER.size, len(data) - size + 1, size):
        _, commit, salt, other, *stored = _FRAME.unpack_from(data, at)
        checked = data[at : at + _CHECKED_OF_FRAME] + data[at + _FRAME.size : at + size]
        follows = _checksum(checked, before, big=big) == tuple(stored)
        yield _Frame(bool(commit), (salt, other), follows)
        before = (stored[0], stored[1])


def _first_bad(frames: Sequence[_Frame], salts: ChecksumPair) -> int:
    """Return how many frames SQLite accepts, which is the place of the first one that it does not."""
    return next((i for i, one in enumerate(frames) if one.salts != salts or not one.follows), len(frames))


def _acknowledged(frames: Sequence[_Frame]) -> int:
    """Count the whole transactions that follow the commit of another."""
    count, whole = 0, False
    for frame in frames:
        whole = whole and frame.follows
        if frame.commits:
            count += whole
            whole = True
    return count


def _checksum(data: bytes, before: ChecksumPair, *, big: bool) -> ChecksumPair:
    """Return SQLite's checksum: two sums that feed each other, so that words weigh as much as Fibonacci numbers."""
    words = np.frombuffer(data, dtype=">u4" if big else "<u4").astype(np.uint32)
    # F(n+1), F(n), … F(1), F(0) for n words; unsigned numbers wrap around, as the sums do.
    weights = _fibonacci(len(words) + 2)[::-1]
    start = [int(one) for one in weights[:3]]
    one = int(words @ weights[2:]) + start[2] * before[0] + start[1] * before[1]
    other = int(words @ weights[1:-1]) + start[1] * before[0] + start[0] * before[1]
    return one & _WORD, other & _WORD


@cache
def _fibonacci(count: int) -> NDArray[np.uint32]:
    numbers = [0, 1]
    while len(numbers) < count:
        numbers.append((numbers[-1] + numbers[-2]) & _WORD)
    return np.array(numbers, dtype=np.uint32)
