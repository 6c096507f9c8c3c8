"""Embeddings that were computed once: a cache file for each haystack, keyed by the text itself."""

from __future__ import annotations

import hashlib
import os
import struct
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self
from zipfile import BadZipFile, ZipFile

import numpy as np

from holdfast.models.embedder import Embedder, Vectors

_KEY_BYTES = 16
# What reading a packed file raises when a byte of it, or of its table of contents, is not what was written.
_DAMAGE = (
    OSError, EOFError, BadZipFile, KeyError, ValueError, NotImplementedError, RuntimeError, struct.error, zlib.error,
)  # fmt: skip


@dataclass(slots=True)
class CachedEmbedder:
    """An embedder that remembers. It asks the real one only for texts that its file does not hold, and adds them.

    Losing the file costs time only: a damaged one is taken for an empty one.
    """

    real: Embedder
    file: Path
    known: dict[bytes, Vectors] = field(init=False)

    def __post_init__(self) -> None:
        self.known = _read(self.file, self.real.dims)

    @classmethod
    @contextmanager
    def open(cls, real: Embedder, file: Path) -> Iterator[Self]:
        """Read the file, and write it again, whole or not at all, when texts were added."""
        cached = cls(real, file)
        before = len(cached.known)
        try:
            yield cached
        finally:
            if len(cached.known) > before:
                file.parent.mkdir(parents=True, exist_ok=True)
                beside = file.with_suffix(f".{os.getpid()}.tmp")
                with beside.open("wb") as out:
                    np.savez(out, keys=np.array(list(cached.known)), rows=np.stack(list(cached.known.values())))
                beside.replace(file)

    @property
    def space(self) -> str:
        """Name the embedding space: the real embedder's."""
        return self.real.space

    @property
    def dims(self) -> int:
        """Return how many numbers a vector has."""
        return self.real.dims

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Return one row for each text."""
        keys = [_key("document", text) for text in texts]
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in self.known}
        if missing:
            rows = self.real.embed_documents(list(missing.values()))
            self.known.update(zip(missing, np.asarray(rows, np.float32), strict=True))
        return np.stack([self.known[key] for key in keys]) if keys else np.zeros((0, self.dims), np.float32)

    def embed_query(self, text: str) -> Vectors:
        """Return the vector of a question."""
        key = _key("query", text)
        if key not in self.known:
            self.known[key] = np.asarray(self.real.embed_query(text), np.float32)
        return self.known[key]


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
