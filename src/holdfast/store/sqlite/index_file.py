"""The index on disk beside the database (architecture): checksummed, disposable. Losing it costs time, never data.

    magic · length of the header · checksum of the header · header (JSON) · segment · segment …

One segment for each owner worth keeping. A segment names the change it is true up to; the feed brings it up to date.
Whatever does not fit (another store, other settings, a damaged byte) is passed over, and the index is built again.
"""

from __future__ import annotations

import glob
import hashlib
import io
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from holdfast.values import dataclass

_KIND = b"holdfast index "
_MAGIC = _KIND + b"1\n"
_LENGTH = 8
_DIGEST = 16
# Words of the memories are in it: only their owner reads them.
_PRIVATE = 0o600
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)  # where there is none, O_EXCL refuses a link all the same
Arrays = Mapping[str, NDArray[Any]]


@dataclass(frozen=True, slots=True)
class IndexSegment:
    """The index of one owner: what it was derived from, and its arrays."""

    tenant: str
    user: str
    seq: int
    data: bytes

    @property
    def digest(self) -> str:
        """Return the checksum of the arrays."""
        return hashlib.blake2b(self.data, digest_size=16).hexdigest()


def pack(arrays: Arrays) -> bytes:
    """Return arrays as bytes, without pickles."""
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **arrays)
    return buffer.getvalue()


def unpack(data: bytes) -> dict[str, NDArray[Any]]:
    """Read what `pack` wrote."""
    with np.load(io.BytesIO(data), allow_pickle=False) as archive:
        return {name: archive[name] for name in archive.files}


def pack_words(words: Sequence[Any]) -> NDArray[np.uint8]:
    """Return texts, or rows of them, as one array of bytes; JSON keeps any character."""
    return np.frombuffer(json.dumps([*words]).encode(), dtype=np.uint8)


def unpack_words(data: NDArray[Any]) -> list[Any]:
    """Read what `pack_words` wrote."""
    words: list[Any] = json.loads(data.tobytes())
    return words


def write(path: Path, fingerprint: str, segments: list[IndexSegment]) -> None:
    """Replace the snapshot in one step: a reader finds the old one or the new one, whatever happens in between."""
    offset, entries = 0, []
    for one in segments:
        entries.append([one.tenant, one.user, one.seq, offset, len(one.data), one.digest])
        offset += len(one.data)
    header = json.dumps({"fingerprint": fingerprint, "segments": entries}).encode()
    _tidy(path)
    temporary = path.with_name(f".{path.name}-{os.getpid()}")
    temporary.unlink(missing_ok=True)
    try:
        # Made here and now: a link that somebody has put there would lead elsewhere.
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NO_LINK, _PRIVATE)
        with os.fdopen(descriptor, "wb") as file:
            file.write(_MAGIC + len(header).to_bytes(_LENGTH, "big") + _digest(header) + header)
            for one in segments:
                file.write(one.data)
        # Not synced: others wait meanwhile, and what a power cut makes of it fails its checksum.
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def is_index_file(path: Path) -> bool:
    """Return whether a file is a snapshot, of whichever store and release."""
    try:
        with path.open("rb") as file:
            return file.read(len(_KIND)) == _KIND
    except OSError:  # nobody knows what it is
        return False


def remove(path: Path) -> None:
    """Remove the snapshot and whatever was left half-written beside it."""
    path.unlink(missing_ok=True)
    for left in _half_written(path):
        left.unlink(missing_ok=True)


def erase(path: Path, owners: AbstractSet[tuple[str, str]]) -> None:
    """Overwrite the segments of some owners; a snapshot that holds nobody else's, or is damaged, is removed.

    A segment that was overwritten fails its checksum. What was left half-written beside it is removed too.
    """
    if not path.exists() or not _overwrite(path, owners):
        remove(path)
    for left in _half_written(path):
        left.unlink(missing_ok=True)


def _overwrite(path: Path, owners: AbstractSet[tuple[str, str]]) -> bool:
    try:
        with path.open("r+b") as file:
            start, header = _read_header(file)
            gone = [entry for entry in header["segments"] if (entry[0], entry[1]) in owners]
            if len(gone) == len(header["segments"]):
                return False
            for _, _, _, offset, length, _ in gone:
                file.seek(start + offset)
                file.write(bytes(length))
            return True
    except _DAMAGED:
        return False


def _half_written(path: Path) -> Iterator[Path]:
    return path.parent.glob(f".{glob.escape(path.name)}-*")


def _tidy(path: Path) -> None:
    """Remove what processes that no longer live have left half-written."""
    for left in _half_written(path):
        number = left.name.rpartition("-")[2]
        if number.isdigit() and not _lives(int(number)):
            left.unlink(missing_ok=True)


def _lives(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:  # it lives and is not ours
        return True
    return True


def _digest(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=_DIGEST).digest()


# What a header that is damaged raises.
_DAMAGED = (OSError, ValueError, KeyError, TypeError)


def read(path: Path, fingerprint: str, owner: tuple[str, str] | None = None) -> list[IndexSegment]:
    """Return the segments that fit and whose checksums hold, of one owner or of all; none without a snapshot."""
    try:
        with path.open("rb") as file:
            start, header = _read_header(file)
            if header["fingerprint"] != fingerprint:
                return []
            return [one for entry in header["segments"] if (one := _read_segment(file, start, entry, owner))]
    except _DAMAGED:  # the index is built again instead
        return []


def _read_header(file: io.BufferedIOBase) -> tuple[int, dict[str, Any]]:
    """Return where the segments begin, and the header.

    Raises:
        ValueError: the file is none of this release, or damaged.
    """
    if file.read(len(_MAGIC)) != _MAGIC:
        raise ValueError("a snapshot of another release")
    length = int.from_bytes(file.read(_LENGTH), "big")
    digest, data = file.read(_DIGEST), file.read(min(length, os.fstat(file.fileno()).st_size))
    if _digest(data) != digest:
        raise ValueError("a damaged header")
    header: dict[str, Any] = json.loads(data)
    return len(_MAGIC) + _LENGTH + _DIGEST + length, header


def _read_segment(
    file: io.BufferedIOBase, start: int, entry: list[Any], owner: tuple[str, str] | None
) -> IndexSegment | None:
    """Return one segment: the only place that reads any, so that they can be encrypted."""
    tenant, user, seq, offset, length, digest = entry
    if owner is not None and owner != (tenant, user):
        return None
    file.seek(start + offset)
    segment = IndexSegment(tenant, user, seq, file.read(length))
    return segment if segment.digest == digest else None


UNREADABLE = (ValueError, KeyError, IndexError, BadZipFile, EOFError)


def remove_misplaced(name: str, place: str) -> None:
    """Remove an index that was saved beside a link to a store: no erasure in the store would reach it."""
    beside = Path(f"{name}.index").absolute()
    if beside.is_file() and os.path.realpath(beside) != f"{place}.index" and is_index_file(beside):
        remove(beside)
