"""A unit ⇄ a row of a store."""

from __future__ import annotations

import copy
import hashlib
import json
import logging
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import DamagedStoreError
from holdfast.types import FIELDS, JSON, Analysis, Gate, NameCount, Unit, View, from_iso, iso
from holdfast.values import dataclass

log = logging.getLogger("holdfast")
# Names of what a store agrees on: the embedding space; and a mark that is made anew when rows of the feed are erased,
# because what was followed so far no longer counts.
SPACE, EPOCH = "space", "epoch"
GLOBAL = ""  # how a global unit's missing user is written: a unique key cannot hold NULL

# What SQL searches by, and the body repeats: tenant, user, id, version, session, position, event time. Of an earlier
# version only its number.
Repeated = tuple[str | None, str | None, str | None, int, str | None, int | None, str | None]
# key, body, checksum, superseded by, access count, covered by, gate, why superseded, and what is repeated
UnitRow = tuple[int, str, int, str | None, int, str | None, str | None, str | None, *Repeated]


@dataclass(frozen=True, slots=True)
class Fresh:
    """What this process has just written, so that it need not be read again: by key, each with its checksum."""

    units: dict[int, tuple[int, Unit, Analysis]] = field(default_factory=dict)
    vectors: dict[int, tuple[int, NDArray[np.float32]]] = field(default_factory=dict)


class ResultRows(Protocol):
    """What a statement gives: rows, once, in order."""

    @property
    def rowcount(self) -> int:
        """Return how many rows the statement touched."""
        ...

    def fetchone(self) -> Any:  # noqa: ANN401 - a row of whatever was asked for, or None
        """Return the next row."""
        ...

    def fetchall(self) -> list[Any]:
        """Return the rows that are left."""
        ...

    def fetchmany(self, size: int) -> list[Any]:
        """Return the next rows."""
        ...

    def __iter__(self) -> Iterator[Any]: ...


RunStatement = Callable[..., ResultRows]  # runs a statement, by its name or its text, with its values


class UnitRows(Protocol):
    """The rows of a store in SQL, as its writing verbs need them: statements by name, inside a transaction."""

    def run(self, name: str, values: Mapping[str, Any]) -> ResultRows:
        """Run the statement called `name`."""
        ...

    def agreed(self, name: str) -> str | None:
        """Return what the whole store agrees on under a name."""
        ...

    def agree(self, name: str, value: str) -> None:
        """Let the whole store agree on something."""
        ...

    def find(self, tenant: str, user: str | None, unit_id: str) -> UnitRow | None:
        """Return the row of one owner's unit."""
        ...

    def find_seen(self, view: View, unit_id: str) -> UnitRow:
        """Return the owner's unit of that id, else the global one; `NotFoundError` when there is none."""
        ...

    def insert(self, unit: Unit, document: str | None = None) -> tuple[int, int]:
        """Write a new unit; return its key and its checksum."""
        ...

    def replace(self, key: int, unit: Unit) -> int:
        """Write a new version; the one before is kept, with its vector. Return its checksum."""
        ...

    def rewrite(self, key: int, unit: Unit) -> int:
        """Write a version in the place of what is there, which is not kept. Return its checksum."""
        ...

    def record_change(self, key: int, tenant: str, user: str) -> None:
        """Say that a unit of an owner is not what it was."""
        ...


_write_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode


def columns(unit: Unit, document: str | None = None) -> dict[str, JSON]:
    """Return a unit as the columns of its row; `document` is the one that it is part of."""
    body = _write_json(unit.to_json())
    return {
        "tenant": unit.tenant,
        "user": unit.user or GLOBAL,
        "id": unit.id,
        "version": unit.version,
        "session": unit.session,
        "position": unit.position,
        "event_time": iso(unit.event_time),
        "body": body,
        "checksum": zlib.crc32(body.encode()),
        "document": document,
    }


def durable_body(key: int, body: str, checksum: int) -> tuple[str, int]:
    """Return the body of a row whose unit becomes durable, and its checksum; nothing else in it changes."""
    _check_body(key, body, checksum)
    durable = _write_json({**json.loads(body), "scope": "user"})
    return durable, zlib.crc32(durable.encode())


def _check_body(key: int, body: str, checksum: int) -> None:
    if zlib.crc32(body.encode()) != checksum:
        raise DamagedStoreError(f"unit row {key} fails its checksum; run `holdfast doctor`, then restore a backup")


def unit_keys(unit: Unit) -> dict[str, JSON]:
    """Return what names one version of a unit."""
    return {"tenant": unit.tenant, "user": unit.user or GLOBAL, "id": unit.id, "version": unit.version}


def unit_of(row: UnitRow) -> Unit:
    """Return the unit of a row whose checksum holds, and whose columns say what its body says."""
    key, body, checksum, superseded_by, access_count, covered_by, gate, why, *repeated = row
    _check_body(key, body, checksum)
    read = json.loads(body)
    if read.get("user") is None:
        access_count = 0  # everyone's unit is read by many: who read it how often is nobody else's business
    unit = Unit.from_json(
        read, access_count=access_count, superseded_by=superseded_by, superseded_why=why or "",
        covered_by=covered_by, gate=_gate_of(key, gate) if gate else None,
    )  # fmt: skip
    said = (unit.tenant, unit.user or GLOBAL, unit.id, unit.version, unit.session, unit.position, read["event_time"])
    if (*repeated,) != (said if repeated[0] is not None else (None, None, None, unit.version, None, None, None)):
        raise DamagedStoreError(
            f"unit row {key} is filed under other keys than its words are checksummed with; run `holdfast doctor`, "
            "then restore a backup"
        )
    return unit


class ReadUnits(Sequence[Unit]):
    """The units of some rows, each read when it is asked for: who erases a million hardly looks at all of them."""

    def __init__(self, rows: Sequence[UnitRow]) -> None:
        self._rows = rows

    def __len__(self) -> int:
        return len(self._rows)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and (*self,) == (*other,)

    def __hash__(self) -> int:
        return hash((*self,))

    def __repr__(self) -> str:
        return f"<{len(self)} units>"

    def __getitem__(self, at: Any) -> Any:  # noqa: ANN401 - a place or a slice
        return ReadUnits(self._rows[at]) if isinstance(at, slice) else unit_of(self._rows[at])


def gate_text(gate: Gate) -> str:
    """Return a decision as its column holds it: a checksum, then JSON."""
    body = _write_json(gate.to_json())
    return f"{zlib.crc32(body.encode()):08x} {body}"


def _gate_of(key: int, text: str) -> Gate:
    checksum, _, body = text.partition(" ")
    if checksum != f"{zlib.crc32(body.encode()):08x}":
        raise DamagedStoreError(f"the gate's decision on unit row {key} fails its checksum; restore a backup")
    return Gate.from_json(json.loads(body))


def copy_json(unit: Unit) -> Unit:
    """Return the unit with JSON of its own: what a caller does to it must not reach the next caller."""
    if not unit.metadata and not unit.parts:
        return unit
    return unit.evolve(metadata=copy.deepcopy(unit.metadata), parts=copy.deepcopy(unit.parts))


def read_vectors(data: Sequence[bytes], dims: int) -> NDArray[np.float32]:
    """Return stored vectors (`halve`) as rows, number by number."""
    return np.frombuffer(b"".join(data), dtype="<f2").astype(np.float32).reshape(len(data), dims)


def check_vectors(rows: Sequence[tuple[int, bytes, int]]) -> None:
    """Refuse a vector that is not what its checksum was taken of; a row is key, vector, checksum, and more."""
    for key, data, checksum, *_ in rows:
        if zlib.crc32(data) != checksum:
            raise DamagedStoreError(f"the vector of unit row {key} fails its checksum; run `holdfast reembed`")


_HALF = np.dtype("<f2").itemsize


def is_vector(data: bytes, dims: int | None = None) -> bool:
    """Return whether bytes are finite numbers, as many as are asked for."""
    size = len(data) if dims is None else _HALF * dims
    whole = len(data) == size and size > 0 and size % _HALF == 0
    return whole and bool(np.isfinite(np.frombuffer(data, dtype="<f2")).all())


def unfit_of_space(rows: Iterable[Sequence[Any]], dims: int) -> list[tuple[Any, ...]]:
    """Return what names the vectors that are damaged or no `dims` finite numbers; a row begins with both of them."""
    unfit = (row for row in rows if zlib.crc32(row[0]) != row[1] or not is_vector(row[0], dims))
    return [tuple(row[2:]) for row in unfit]


def find_unfit(rows: Iterable[tuple[int, bytes, int, int]]) -> Iterator[tuple[int, str]]:
    """Yield the key of each vector that cannot be compared, and why; a row is key, vector, checksum and space.

    Those of one space have as many numbers as most of it.
    """
    sizes: dict[int, Counter[int]] = {}
    places: dict[tuple[int, int], list[int]] = {}
    for key, data, checksum, space in rows:
        if zlib.crc32(data) != checksum:
            yield key, "fails its checksum"
        elif not is_vector(data):
            yield key, "is not made of finite numbers"
        else:
            sizes.setdefault(space, Counter())[len(data)] += 1
            places.setdefault((space, len(data)), []).append(key)
    for (space, size), keys in places.items():
        if size != max(sizes[space], key=lambda one: (sizes[space][one], one)):
            yield from ((key, "has another length than those it is compared with") for key in keys)


def read_fitting(
    rows: Sequence[tuple[int, bytes, int]], dims: int | None = None
) -> tuple[list[tuple[int, bytes, int]], NDArray[np.float32]]:
    """Return the rows whose vector is `dims` finite numbers (None: as many as most have), and those vectors.

    What does not fit was taken from a file as it came: its unit is found by its words, and by nothing else.
    """
    check_vectors(rows)
    [(size, _)] = Counter(len(row[1]) for row in rows).most_common(1) if dims is None and rows else [(0, 0)]
    dims = size // _HALF if dims is None else dims
    fitting = [row for row in rows if dims and len(row[1]) == _HALF * dims]
    matrix = read_vectors([row[1] for row in fitting], dims)
    finite: NDArray[np.bool_] = np.logical_and.reduce(np.isfinite(matrix), axis=1)
    if not finite.all():
        fitting, matrix = [row for row, is_so in zip(fitting, finite.tolist(), strict=True) if is_so], matrix[finite]
    if len(fitting) < len(rows):
        log.warning(
            "%d of %d stored vectors cannot be compared: run `holdfast reembed`", len(rows) - len(fitting), len(rows)
        )
    return fitting, matrix


# Names (C12) have posting lists like terms, after those of the fields: what units are called, and what they name.
CALLED, NAMING = len(FIELDS), len(FIELDS) + 1
_EPOCH, _MICROSECOND = datetime(1970, 1, 1, tzinfo=UTC), timedelta(microseconds=1)


def microseconds(moment: datetime) -> int:
    """Return a moment as whole microseconds since 1970: exact, as its text is."""
    return (moment - _EPOCH) // _MICROSECOND


def author_code(unit: Unit) -> int:
    """Return a number that is equal for copies of the same words (C6), and for nothing else that will ever meet."""
    text = "\0".join(map(str, (unit.text, microseconds(unit.event_time), unit.author, unit.speaker, unit.kind)))
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)


# So much of a session's first turn tells which one it is.
TITLE_CHARS = 80


def listed(row: Sequence[Any]) -> NameCount:
    """Return one thing that there is, of a row of the statements that list them."""
    name, units, *times, title, core, everyones = row
    first, last = (None if moment is None else from_iso(moment) for moment in times)
    return NameCount(name, units, first, last, " ".join(title.split()), bool(core), bool(everyones))
