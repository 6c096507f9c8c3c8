"""A unit ⇄ a row of the SQLite store, and a view ⇄ the rows it may see."""

from __future__ import annotations

import copy
import json
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import DamagedStoreError
from holdfast.store.filters import SqliteFilter, matches
from holdfast.types import JSON, Analysis, Gate, Unit, View, iso

# Names of what a store agrees on: the embedding space; and a mark that is made anew when rows of the feed are erased,
# because what was followed so far no longer counts.
SPACE, EPOCH = "space", "epoch"
GLOBAL = ""  # how a global unit's missing user is written: a unique key cannot hold NULL

# What SQL searches by, and the body repeats: tenant, user, id, version, session, position, event time. Of an earlier
# version only its number.
Repeated = tuple[str | None, str | None, str | None, int, str | None, int | None, str | None]
# key, body, checksum, superseded by, access count, covered by, gate, why superseded, and what is repeated
Row = tuple[int, str, int, str | None, int, str | None, str | None, str | None, *Repeated]


@dataclass(frozen=True, slots=True)
class Fresh:
    """What this process has just written, so that it need not be read again: by key, each with its checksum."""

    units: dict[int, tuple[int, Unit, Analysis]] = field(default_factory=dict)
    vectors: dict[int, tuple[int, NDArray[np.float32]]] = field(default_factory=dict)


class Found(Protocol):
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


class UnitRows(Protocol):
    """The rows of a store in SQL, as its writing verbs need them: statements by name, inside a transaction."""

    def run(self, name: str, values: Mapping[str, Any]) -> Found:
        """Run the statement called `name`."""
        ...

    def agreed(self, name: str) -> str | None:
        """Return what the whole store agrees on under a name."""
        ...

    def agree(self, name: str, value: str) -> None:
        """Let the whole store agree on something."""
        ...

    def find(self, tenant: str, user: str | None, unit_id: str) -> Row | None:
        """Return the row of one owner's unit."""
        ...

    def find_seen(self, view: View, unit_id: str) -> Row:
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


def unit_of(row: Row) -> Unit:
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

    def __init__(self, rows: Sequence[Row]) -> None:
        self._rows = rows

    def __len__(self) -> int:
        return len(self._rows)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and (*self,) == (*other,)

    def __hash__(self) -> int:
        return hash((*self,))

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


def own_json(unit: Unit) -> Unit:
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


def vector_of(row: tuple[int, bytes, int]) -> NDArray[np.float32]:
    """Return the vector of a row whose checksum holds."""
    check_vectors([row])
    vector: NDArray[np.float32] = read_vectors([row[1]], -1)[0]
    return vector


def agent_matches(view: View, unit: Unit) -> bool:
    """Return whether the named agent may see the unit; a unit without an agent is shared."""
    return view.agent is None or unit.agent in (view.agent, None)


# At a moment of the past: not superseded since before, and not within a time that a reinstatement has ended.
_NOT_SUPERSEDED_THEN = """(superseded_by IS NULL OR superseded_at > :as_of)
    AND NOT EXISTS (SELECT 1 FROM absences WHERE unit_key = key AND since <= :as_of AND until > :as_of)"""


def where(view: View, *, searching: bool = False) -> tuple[str, dict[str, JSON]]:
    """Compile a view: the same rules as the index's mask and as `hidden_by`.

    A covered turn is hidden from searches alone, and only where the view says so: it is still listed.
    """
    values: dict[str, JSON] = {"tenant": view.tenant, "user": view.user, "now": iso(view.as_of or view.now)}
    agent = ""
    if view.agent is not None:
        values["agent"] = view.agent
        agent = " AND coalesce(json_extract({}.body, '$.agent'), :agent) = :agent"
    # A user's own unit hides a global one of the same id.
    same = f"own.tenant = :tenant AND own.user = :user AND own.id = units.id{agent.format('own')}"
    own = f"SELECT 1 FROM units AS own WHERE {same}"  # noqa: S608 - bound names only
    clauses = [
        f"tenant = :tenant AND (user = :user OR (user = '' AND NOT EXISTS ({own}))){agent.format('units')}",
        "(json_extract(body, '$.pinned') OR coalesce(json_extract(body, '$.expires_at'), '~') > :now)",
    ]
    if view.only_session:
        values["session"] = view.session
        clauses.append("session = :session")
    if view.as_of is not None:
        # What was rewritten since is answered from its earlier version, not from here.
        values["as_of"] = iso(view.as_of)
        clauses.append("json_extract(body, '$.recorded_time') <= :as_of")
    if view.current_only:
        values["reference"] = iso(view.reference_time)
        clauses.append("superseded_by IS NULL" if view.as_of is None else _NOT_SUPERSEDED_THEN)
        clauses.append("coalesce(json_extract(body, '$.valid_from'), '') <= :reference")
        clauses.append("coalesce(json_extract(body, '$.valid_to'), '~') > :reference")
    if searching and view.hide_covered:
        clauses.append("covered_by IS NULL" if view.as_of is None else "(covered_by IS NULL OR covered_at > :as_of)")
    if view.filters is not None:
        compiled = SqliteFilter()
        clauses.append(compiled.compile(view.filters))
        values |= compiled.values
    return " AND ".join(clauses), values


def then_by(lifetimes: tuple[str | None, str | None, str | None]) -> tuple[str | None, str | None]:
    """Return what superseded and what covered a unit at some moment: what does now, unless that came later."""
    by, covered_by, absent = lifetimes
    return by if by is not None else absent, covered_by


def hidden_by(view: View, unit: Unit, superseded_by: str | None, covered_by: str | None = None) -> str | None:
    """Return why the view hides a unit of its owner, or None: `where`, one unit at a time and in words."""
    expired = not unit.pinned and unit.expires_at is not None and unit.expires_at <= (view.as_of or view.now)
    elsewhere = view.only_session and unit.session != view.session
    early = view.current_only and unit.valid_from is not None and unit.valid_from > view.reference_time
    late = view.current_only and unit.valid_to is not None and unit.valid_to <= view.reference_time
    reasons = {
        f"it was recorded at {unit.recorded_time}": view.as_of is not None and unit.recorded_time > view.as_of,
        f"it expired at {unit.expires_at}": expired,
        f"it belongs to session {unit.session}, and only_session asks for {view.session}": elsewhere,
        f"it was superseded by {superseded_by}": view.current_only and superseded_by is not None,
        f"it is valid only from {unit.valid_from}": early,
        f"it was valid until {unit.valid_to}": late,
        f"the summary {covered_by} stands for it": view.hide_covered and covered_by is not None,
        "the filters leave it out": view.filters is not None and not matches(view.filters, unit),
    }
    return next((reason for reason, holds in reasons.items() if holds), None)
