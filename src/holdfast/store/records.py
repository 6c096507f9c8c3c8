"""Whole units of a store, with their versions, vectors and fates: read out and written back as they are."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from holdfast.errors import DamagedStoreError, shown
from holdfast.store.rows import SPACE, Found, UnitRows, check_vectors, columns, gate_text, unit_keys, unit_of
from holdfast.types import Absence, Document, Kept, Status, StoredVector, Unit, View, Written, from_iso, iso

Run = Callable[..., Found]
# As many as are read at once: enough that a statement costs little of it, few enough for any memory.
_READ_TOGETHER = 500


# ---------------------------------------------------------------------------------------------------- reading


def read_all(run: Run, view: View, *, whole: bool) -> Iterator[Document | Kept]:
    """Yield all that an owner has; see `Reading.kept`."""
    keys = {"tenant": view.tenant, "user": view.user, "whole": int(whole)}
    if view.session is None:
        yield from _documents(run, view, keys)
    found = [key for (key,) in run("kept_keys", {**keys, "session": view.session})]
    for start in range(0, len(found), _READ_TOGETHER):
        yield from read_kept(run, found[start : start + _READ_TOGETHER])


def _documents(run: Run, view: View, keys: dict[str, Any]) -> Iterator[Document]:
    for (key,) in run("kept_document_keys", keys).fetchall():
        user, name, core, body, checksum = run("kept_document", {"key": key}).fetchone()
        if zlib.crc32(body) != checksum:
            raise DamagedStoreError(f"the document {shown(name)} fails its checksum; ingest it again")
        yield Document(view.tenant, user or None, name, body, core=bool(core), here=False)


def read_kept(run: Run, keys: Sequence[int]) -> Iterator[Kept]:
    """Yield units by their keys, in the order in which they were written."""
    asked = {"keys": json.dumps([*keys])}
    versions: dict[int, list[Unit]] = {}
    for row in run("versions_of_keys", asked):
        versions.setdefault(row[0], []).append(unit_of(row))
    absences: dict[int, list[Absence]] = {}
    for key, by, since, until in run("kept_absences", asked):
        absences.setdefault(key, []).append(Absence(by, from_iso(since), from_iso(until)))
    vectors: dict[tuple[int, int], StoredVector] = {}
    for key, data, checksum, version, space in run("kept_vectors", asked):
        check_vectors([(key, data, checksum)])
        vectors[key, version] = StoredVector(space, data)
    for *row, superseded_at, covered_at, document in run("kept_units", asked).fetchall():
        key, unit = row[0], unit_of(tuple(row))
        unit = unit.evolve(access_count=row[4])  # also of everyone's: whoever copies a store copies its counts
        told = (*versions.get(key, ()), unit)
        yield Kept(
            told,
            tuple(vectors.get((key, one.version)) for one in told),
            document,
            None if superseded_at is None else from_iso(superseded_at),
            None if covered_at is None else from_iso(covered_at),
            tuple(absences.get(key, ())),
        )


# ---------------------------------------------------------------------------------------------------- writing


def restore(database: UnitRows, kept: Kept) -> Written | None:
    """Write a unit as it is, inside a transaction; see `Restoration`."""
    unit = kept.unit
    status: Status = "added"
    row = database.find(unit.tenant, unit.user, unit.id)
    if row is None:
        key, _ = database.insert(unit, kept.document)
    else:
        [known] = read_kept(database.run, [row[0]])
        found = _compare(known, kept)
        if found != "updated":
            return None if found is None else Written(unit.id, found, known.unit.version)
        key, status = row[0], found
        counted = max(known.unit.access_count, unit.access_count)
        kept = _with_marks(kept, access_count=counted)
        for part in ("versions", "version_vectors", "vectors", "absences"):
            database.run(f"erase_{part}", {"keys": json.dumps([key])})
        database.rewrite(key, unit)
    _write_fate(database.run, key, kept)
    _write_vectors(database, key, kept)
    return Written(unit.id, status, unit.version)


def _with_marks(kept: Kept, **marks: Any) -> Kept:  # noqa: ANN401 - fields outside versions
    versions = (*kept.versions[:-1], kept.unit.evolve(**marks))
    return Kept(versions, kept.vectors, kept.document, kept.superseded_at, kept.covered_at, kept.absences)


def _compare(known: Kept, given: Kept) -> Status | None:
    """Return what a given unit is to a known one: its continuation, nothing new, or (None) another unit."""
    held, told = ([_lasting(one) for one in kept.versions] for kept in (known, given))
    short = min(len(held), len(told))
    if held[:short] != told[:short] or known.document != given.document:
        return None
    return "updated" if len(told) > len(held) or (len(told) == len(held) and _goes_on(known, given)) else "duplicate"


def _lasting(unit: Unit) -> Unit:
    """Return a unit as it is compared: that it was made durable since is not another content."""
    return unit.evolve(scope="user") if unit.scope == "session" else unit


def _goes_on(known: Kept, given: Kept) -> bool:
    """Return whether the same words have come further in what is given, and nothing of what is known is undone."""
    if len(given.absences) > len(known.absences):
        return True
    before, after = known.unit, given.unit
    pairs = [(getattr(before, name), getattr(after, name)) for name in ("superseded_by", "covered_by", "gate")]
    pairs.append((before.scope == "user" or None, after.scope == "user" or None))
    if any(held is not None and held != told for held, told in pairs):
        return False
    return any(held is None and told is not None for held, told in pairs)


def _write_fate(run: Run, key: int, kept: Kept) -> None:
    unit = kept.unit
    run("write_fate", {
        "key": key,
        "superseded_by": unit.superseded_by,
        "superseded_at": None if kept.superseded_at is None else iso(kept.superseded_at),
        "superseded_why": unit.superseded_why or None,
        "covered_by": unit.covered_by,
        "covered_at": None if kept.covered_at is None else iso(kept.covered_at),
        "gate": None if unit.gate is None else gate_text(unit.gate),
        "access_count": unit.access_count,
    })  # fmt: skip
    for version in kept.versions[:-1]:
        written = columns(version)
        row = {name: written[name] for name in ("version", "body", "checksum")}
        run("insert_version", {**row, "key": key})
    for one in kept.absences:
        run("insert_absence", {"key": key, "by": one.by, "since": iso(one.since), "until": iso(one.until)})


def _write_vectors(database: UnitRows, key: int, kept: Kept) -> None:
    agreed = database.agreed(SPACE)
    for unit, vector in zip(kept.versions, kept.vectors, strict=True):
        if vector is None or vector.space != agreed:
            continue
        row = {**unit_keys(unit), "space": vector.space, "vector": vector.data, "checksum": zlib.crc32(vector.data)}
        if unit is kept.unit:
            database.run("put_vector", row).fetchall()
        else:
            fields = {name: row[name] for name in ("version", "space", "vector", "checksum")}
            database.run("insert_version_vector", {**fields, "key": key})
