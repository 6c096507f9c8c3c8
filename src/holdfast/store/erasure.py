"""Erasing units from a SQLite file for good, and the proof that nothing of them is left in any file (law 16)."""

from __future__ import annotations

import json
import os
import re
import sqlite3
from collections.abc import Callable, Iterable, Sequence

from holdfast.store.files import chunks
from holdfast.store.rows import EPOCH, GLOBAL, Row, columns, unit_of
from holdfast.types import JSON, Unit

# Stands where the id of an erased unit stood: ids are derived from words, and a unit that was superseded stays so.
ERASED = "(erased)"
# A window is long enough to be no accident, and there are enough of them that page borders cannot hide a text.
_WINDOW = 24
_SHORTEST = 6
_STRIDE = 64
_MOST_WINDOWS = 512
# A search for each of so many pieces is faster than one for all of them.
_FEW = 24

Run = Callable[..., sqlite3.Cursor]
Record = Callable[[int, Unit], None]


def resting_on(run: Run, units: Sequence[Unit]) -> list[Unit]:
    """Return every summary that has one of `units` in its lineage, directly or through another summary."""
    found: dict[str, Unit] = {}
    for tenant, user in sorted({(unit.tenant, unit.user or GLOBAL) for unit in units}):
        gone = {unit.id for unit in units if (unit.tenant, unit.user or GLOBAL) == (tenant, user)}
        summaries = [unit_of(row) for row in run("owner_summaries", {"tenant": tenant, "user": user})]
        left = [one for one in summaries if one.id not in gone]
        while resting := [one for one in left if one.lineage is not None and gone & set(one.lineage.sources)]:
            found |= {one.id: one for one in resting}
            gone |= {one.id for one in resting}
            left = [one for one in left if one.id not in gone]
    return [*found.values()]


def erase(run: Run, units: Sequence[Unit], record: Record) -> list[str]:
    """Delete `units` with their versions and vectors, and every trace of their ids; return what was uncovered.

    A unit that one of them superseded stays superseded. `record` is told of every unit that changed.
    """
    uncovered: list[str] = []
    for unit in units:
        owner = {"tenant": unit.tenant, "user": unit.user or GLOBAL}
        row: Row | None = run("find_unit", {**owner, "id": unit.id}).fetchone()
        if row is None:
            continue
        keys = {"keys": json.dumps([row[0]])}
        for statement in (
            "erase_units",
            "erase_versions",
            "erase_vectors",
            "erase_version_vectors",
            "erase_absences",
        ):
            run(statement, keys)
        record(row[0], unit)
        covering = run("uncover_units", {**owner, "by": unit.id}).fetchall() if unit.lineage is not None else ()
        for (key,) in covering:
            found = unit_of(run("unit_by_key", {"key": key}).fetchone())
            uncovered.append(found.id)
            record(key, found)
    _erase_ids(run, units, record)
    return uncovered


def _erase_ids(run: Run, units: Sequence[Unit], record: Record) -> None:
    """Take the ids of erased units out of what other units say of them."""
    for tenant, user in sorted({(unit.tenant, unit.user or GLOBAL) for unit in units}):
        gone = {unit.id for unit in units if (unit.tenant, unit.user or GLOBAL) == (tenant, user)}
        owner: dict[str, JSON] = {"tenant": tenant, "user": user, "ids": json.dumps(sorted(gone))}
        for (key,) in run("forget_superseders", {**owner, "erased": ERASED}).fetchall():
            record(key, unit_of(run("unit_by_key", {"key": key}).fetchone()))
        run("forget_absences", {**owner, "erased": ERASED})
        for row in run("mentioning_units", owner).fetchall():
            unit = _without(unit_of(row), _unknown(run, unit_of(row), gone))
            run("rewrite_unit", {**_body(unit), "key": row[0]})
            record(row[0], unit)
        for key, version, body in run("mentioning_versions", owner).fetchall():
            unit = Unit.from_json(json.loads(body))
            unit = _without(unit, _unknown(run, unit, gone))
            run("rewrite_version", {**_body(unit), "key": key, "version": version})


def _unknown(run: Run, unit: Unit, gone: set[str]) -> set[str]:
    """Return those of the ids that name nothing any more for a unit: its owner's own is gone, and everyone's."""
    owners = (unit.user or GLOBAL, GLOBAL)
    known = {
        name
        for name in gone
        for user in owners
        if run("find_unit", {"tenant": unit.tenant, "user": user, "id": name}).fetchone() is not None
    }
    return gone - known


def _without(unit: Unit, gone: set[str]) -> Unit:
    return unit.evolve(
        supersedes=tuple(one for one in unit.supersedes if one not in gone),
        links=tuple(one for one in unit.links if one not in gone),
    )


def _body(unit: Unit) -> dict[str, JSON]:
    row = columns(unit)
    return {"body": row["body"], "checksum": row["checksum"]}


def erase_owner(run: Run, tenant: str, user: str) -> None:
    """Take an owner out of the feed; whoever follows it hears of a new epoch instead."""
    run("erase_changes", {"tenant": tenant, "user": user})
    run("agree", {"name": EPOCH, "value": os.urandom(8).hex()})


# --------------------------------------------------------------------------------------------------- proof


def windows(texts: Iterable[str], vectors: Iterable[bytes] = ()) -> list[bytes]:
    """Return pieces of what is to be erased, as bytes that a file would hold."""
    found: dict[bytes, None] = {}
    for text in texts:
        # As SQLite holds it: JSON escapes break a text into pieces.
        for piece in re.split(r"\\.", json.dumps(text, ensure_ascii=False)[1:-1]):
            data = piece.encode("utf-8", "surrogatepass")
            if len(data) >= _SHORTEST:
                found |= dict.fromkeys(
                    data[at : at + _WINDOW] for at in range(0, max(1, len(data) - _WINDOW + 1), _STRIDE)
                )
    found |= dict.fromkeys(data[:_WINDOW] for data in vectors if any(data[:_WINDOW]))
    pieces = [*found]
    return pieces[:: max(1, len(pieces) // _MOST_WINDOWS)]


def residue(location: str, path: str, pieces: Sequence[bytes]) -> set[bytes]:
    """Return the pieces that the raw bytes of a file still hold; `location` names its store."""
    left, found = set(pieces), set[bytes]()
    for data in chunks(location, path, overlap=_WINDOW) if left else ():
        found |= _pieces_in(data, left)
        left -= found
    return found


def _pieces_in(data: bytes, pieces: set[bytes]) -> set[bytes]:
    """Return the pieces that are in `data`; many are looked for by their beginnings, in one pass."""
    if len(pieces) > _FEW:
        begun = re.compile(b"|".join(sorted({re.escape(piece[:_SHORTEST]) for piece in pieces}))).findall(data)
        pieces = {piece for piece in pieces if piece[:_SHORTEST] in {*begun}} if begun else set()
    return {piece for piece in pieces if piece in data}


def surviving(run: Run, pieces: Iterable[bytes]) -> set[bytes]:
    """Return the pieces that units which are kept say too: finding those proves nothing."""
    return {piece for piece in pieces if run("says", {"piece": piece}).fetchone()[0]}
