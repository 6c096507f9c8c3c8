"""Embeddings that were computed once: a cache file for each haystack, keyed by the text itself."""

from __future__ import annotations

import hashlib
import os
import struct
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self
from zipfile import BadZipFile, ZipFile

import numpy as np

from holdfast.models.embedder import Embedder, Vectors

_KEY_BYTES = 16
# What reading a packed file raises when a byte of it, or of its table of contents, is not what was written.
_DAMAGE = (
    OSError, EOFError, BadZipFile, KeyError, ValueError, NotImplementedError, RuntimeError, struct.error, zlib.error,
)  # fmt: skip


class CachedEmbedder:
    """An embedder that remembers. It asks the real one only for texts that its file does not hold, and adds them.

    Losing the file costs time only: a damaged one is taken for an empty one.
    """

    def __init__(self, build: Callable[[], Embedder], space: str, dims: int, file: Path) -> None:
        self._build = build
        self._built: Embedder | None = None
        self._space, self._dims, self._file = space, dims, file
        self._known = _read(file, dims)
        self._grown = False

    @property
    def space(self) -> str:
        """Name the embedding space: the real embedder's."""
        return self._space

    @property
    def dims(self) -> int:
        """Return how many numbers a vector has."""
        return self._dims

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Return one row for each text."""
        keys = [_key("document", text) for text in texts]
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in self._known}
        if missing:
            self._keep(list(missing), self._real().embed_documents(list(missing.values())))
        return np.stack([self._known[key] for key in keys]) if keys else np.zeros((0, self._dims), np.float32)

    def embed_query(self, text: str) -> Vectors:
        """Return the vector of a question."""
        key = _key("query", text)
        if key not in self._known:
            self._keep([key], np.asarray([self._real().embed_query(text)], np.float32))
        return self._known[key]

    def save(self) -> None:
        """Write the cache file, whole or not at all."""
        if not self._grown:
            return
        self._file.parent.mkdir(parents=True, exist_ok=True)
        beside = self._file.with_suffix(f".{os.getpid()}.tmp")
        with beside.open("wb") as out:
            np.savez(out, keys=np.array(list(self._known)), rows=np.stack(list(self._known.values())))
        beside.replace(self._file)
        self._grown = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.save()

    def _real(self) -> Embedder:
        if self._built is None:
            self._built = self._build()
        return self._built

    def _keep(self, keys: Sequence[bytes], rows: Vectors) -> None:
        self._known.update(zip(keys, np.asarray(rows, np.float32), strict=True))
        self._grown = True


def _key(kind: str, text: str) -> bytes:
    return hashlib.sha256(f"{kind}\0{text}".encode("utf-8", "surrogatepass")).digest()[:_KEY_BYTES]


def _read(file: Path, dims: int) -> dict[bytes, Vectors]:
    try:
        with file.open("rb") as source:
            with ZipFile(source) as packed:
                if packed.testzip() is not None:
                    return {}
            source.seek(0)
            with np.load(source) as stored:
                keys, rows = stored["keys"], stored["rows"]
    except _DAMAGE:
        return {}
    if rows.ndim != 2 or rows.shape != (len(keys), dims):
        return {}
    # numpy drops trailing zero bytes of a key when it gives it back.
    return {bytes(key).ljust(_KEY_BYTES, b"\0"): row for key, row in zip(keys, rows, strict=True)}
