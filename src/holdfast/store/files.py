"""Raw reads of files that SQLite has open.

Closing any descriptor of a file drops every POSIX lock that the process has on it, those of SQLite too: another
process would then delete the write-ahead log under a store that still writes to it. So a descriptor that was opened
here is kept until the last store of this process on that database has closed.
"""

from __future__ import annotations

import fcntl
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

# Small enough to stay in a cache, large enough that the calls cost nothing.
_CHUNK = 1 << 18
# Where connections hold their shared locks: https://www.sqlite.org/fileformat2.html#the_lock_byte_page
_SHARED_FIRST = 0x40000002
_SHARED_SIZE = 510


@dataclass(slots=True)
class _Held:
    stores: int = 0
    descriptors: dict[tuple[int, int, bool], int] = field(default_factory=dict)


_held: dict[str, _Held] = {}
_guard = threading.Lock()


def hold(location: str) -> None:
    """Say that this process is about to open the database at `location`."""
    with _guard:
        _held.setdefault(location, _Held()).stores += 1


def release(location: str) -> None:
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
        descriptor = os.open(path, flags | os.O_CLOEXEC, mode)
        found = os.fstat(descriptor)
        known[found.st_dev, found.st_ino, writing] = descriptor
        return descriptor


def chunks(location: str, path: str, *, overlap: int = 0) -> Iterator[bytes]:
    """Yield the bytes of a file of a database that is held; each chunk repeats `overlap` bytes of the one before.

    Raises:
        OSError: the file cannot be read.
    """
    locked = path in (location, f"{location}-shm")
    descriptor = _opened(location, path, os.O_RDONLY) if locked else os.open(path, os.O_RDONLY)
    try:
        at = 0
        while data := os.pread(descriptor, _CHUNK + overlap, at):
            yield data
            at += _CHUNK
    finally:
        if not locked:
            os.close(descriptor)


@contextmanager
def alone(location: str) -> Iterator[bool]:
    """Keep others from opening the database for the time of a block; give False when somebody has it open."""
    with _guard:
        only = _held[location].stores == 1
    descriptor = writable(location, 0) if only else -1
    try:
        if only:
            fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, _SHARED_SIZE, _SHARED_FIRST)
    except OSError:  # another process holds its shared lock: it is reading or writing
        only = False
    try:
        yield only
    finally:
        if only:
            fcntl.lockf(descriptor, fcntl.LOCK_UN, _SHARED_SIZE, _SHARED_FIRST)
