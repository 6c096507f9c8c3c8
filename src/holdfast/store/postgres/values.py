"""Values on their way to and from PostgreSQL: vectors as every store has them, and hypervectors as bits."""

from __future__ import annotations

from array import array
from typing import Any

import numpy as np
import psycopg
from psycopg.adapt import Buffer, Dumper, Loader
from psycopg.pq import Format
from psycopg.types import TypeInfo

from holdfast.kernels.hypervectors import Hypervector

# halfvec's binary form: dimensions and a reserved number, 16 bits each, then the numbers, big endian.
_HEAD = np.dtype(">i2").itemsize * 2


# PostgreSQL's numbers of types.
_BIT, _BIGINT, _BIGINTS = 1560, 20, 1016
_KEY = np.dtype([("bytes", ">i4"), ("key", ">i8")])


class Bits(bytes):
    """A hypervector that is to be written as bits."""

    @classmethod
    def of(cls, vector: Hypervector | None) -> Bits | None:
        """Return a hypervector as it is written; which bit stands where is the same for all."""
        return None if vector is None else cls(vector.astype("<u8").tobytes())


class Keys(list[int]):
    """Keys of units that are to be written as one array: a list goes number by number."""


class Half(bytes):
    """A vector of 16-bit floats, little endian, that is to be written as a halfvec."""


def register(connection: psycopg.Connection[Any]) -> None:
    """Let a connection read halfvec as bytes, and write `Half`; without pgvector there is nothing to register."""
    connection.adapters.register_dumper(Bits, _BitsDumper)
    connection.adapters.register_dumper(Keys, _KeysDumper)
    info = TypeInfo.fetch(connection, "halfvec")
    if info is None:
        return
    info.register(connection)
    connection.adapters.register_dumper(Half, type("_HalfDumper", (_HalfDumper,), {"oid": info.oid}))
    connection.adapters.register_loader(info.oid, _HalfLoader)
    connection.adapters.register_loader(info.oid, _HalfTextLoader)


class _BitsDumper(Dumper):
    format = Format.BINARY
    oid = _BIT

    def dump(self, obj: Bits) -> Buffer | None:
        return (8 * len(obj)).to_bytes(4, "big") + obj


class _KeysDumper(Dumper):
    format = Format.BINARY
    oid = _BIGINTS

    def dump(self, obj: Keys) -> Buffer | None:
        rows = np.empty(len(obj), dtype=_KEY)
        rows["bytes"], rows["key"] = _KEY["key"].itemsize, obj
        # How many dimensions, whether there is a NULL, of what; of the one dimension its length and first number.
        return np.array([1, 0, _BIGINT, len(obj), 1], dtype=">i4").tobytes() + rows.tobytes()


class _HalfDumper(Dumper):
    format = Format.BINARY

    def dump(self, obj: Half) -> Buffer | None:
        numbers = np.frombuffer(obj, dtype="<f2").astype(">f2")
        return np.array([len(numbers), 0], dtype=">i2").tobytes() + numbers.tobytes()


class _HalfLoader(Loader):
    format = Format.BINARY

    def load(self, data: Buffer) -> bytes:
        numbers = array("H", bytes(data[_HEAD:]))
        numbers.byteswap()  # a question reads hundreds of vectors: numpy takes twice as long for one
        return numbers.tobytes()


class _HalfTextLoader(Loader):
    format = Format.TEXT

    def load(self, data: Buffer) -> bytes:
        text = bytes(data).decode("ascii").strip("[]")
        return np.array(text.split(","), dtype="<f2").tobytes()
