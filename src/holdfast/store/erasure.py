"""Erasing rows of units and of what rests on them (C19, law 16), and the fragments to search files for."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import product
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray

from holdfast.store.rows import EPOCH, GLOBAL, RunStatement, UnitRow, columns, unit_of
from holdfast.types import JSON, Document, Unit

# Is told the key, the tenant and the user of every unit that changed.
RecordChange = Callable[[int, str, str], None]
# A unit that is to go: key, tenant, user, id. Erasing it takes no more, and reading it takes longer.
ErasedUnit = tuple[int, str, str, str]
erased_unit: Callable[[UnitRow], ErasedUnit] = itemgetter(0, 8, 9, 10)


def _words(unit: Unit) -> list[str]:
    """Return whatever of a unit its row holds as text."""
    other = (unit.topic, unit.condition, unit.utility_note, unit.claim, unit.procedure)
    given = [json.dumps(unit.metadata, ensure_ascii=False)] if unit.metadata else []
    return [unit.text, *(text for text in other if text and text != unit.text), *given]


def text_fragments(run: RunStatement, rows: Sequence[UnitRow], documents: Sequence[Document]) -> list[bytes]:
    """Return what the proof will look for: words of every version, vectors, documents; of many units, of some."""
    some = rows[:: max(1, len(rows) // _MOST_WINDOWS)]
    keys = json.dumps([row[0] for row in some])
    versions = [unit_of(row) for row in (*some, *run("versions_of_keys", {"keys": keys}))]
    texts = [word for one in versions for word in _words(one)]
    vectors = [data for (data,) in run("vectors_of_keys", {"keys": keys})]
    return fragments([*texts, *(one.body.decode("utf-8", "replace") for one in documents)], vectors)


# Stands where the id of an erased unit stood: ids are derived from words, and a unit that was superseded stays so.
ERASED = "(erased)"
_ERASING_UNITS = ("erase_units", "erase_versions", "erase_vectors", "erase_version_vectors", "erase_absences")
# SQLite gives all pages of a table up much faster than row after row.
_EMPTYING = ("empty_units", "empty_versions", "empty_vectors", "empty_version_vectors", "empty_absences")
# A window is long enough to be no accident, and there are enough of them that page borders cannot hide a text.
WINDOW = 24
_SHORTEST = 6
_STRIDE = 64
_MOST_WINDOWS, _MOST_SHORT = 512, 32  # short ones are searched for one by one
# Rows that are searched together, and what stands between them: no part of any text, nor of a vector of numbers.
_KEPT_TOGETHER, _APART = 256, b"\xff\xff\xff\xff"


def dependent_summaries(run: RunStatement, units: Sequence[ErasedUnit]) -> list[UnitRow]:
    """Return the row of every summary that has one of `units` in its lineage, directly or through another summary."""
    found: dict[str, UnitRow] = {}
    for (tenant, user), gone in _ids_of_owners(units).items():
        rows = [row for row in run("owner_summaries", {"tenant": tenant, "user": user}) if row[10] not in gone]
        left = [(row, unit) for row in rows if (unit := unit_of(row)).lineage is not None]
        while resting := {one.id: row for row, one in left if one.lineage and gone & {*one.lineage.sources}}:
            found |= resting
            gone.update(resting)
            left = [(row, one) for row, one in left if one.id not in gone]
    return [*found.values()]


def _ids_of_owners(units: Iterable[ErasedUnit]) -> dict[tuple[str, str], set[str]]:
    found: dict[tuple[str, str], set[str]] = {}
    for _, tenant, user, name in units:
        found.setdefault((tenant, user), set()).add(name)
    return dict(sorted(found.items()))


def erase(run: RunStatement, units: Sequence[ErasedUnit], record: RecordChange) -> list[str]:
    """Delete `units` with their versions and vectors, and every trace of their ids; return what was uncovered.

    A unit that one of them superseded stays superseded. `record` is told of every unit that changed.
    """
    keys = {key for key, *_ in units}
    whole = len(keys) == run("store_units", {}).fetchone()[0]
    for statement in _EMPTYING if whole else _ERASING_UNITS:
        run(statement, {} if whole else {"keys": json.dumps([*keys])})
    for key, tenant, user, _ in units:
        record(key, tenant, user)
    uncovered: list[str] = []
    for (tenant, user), gone in _ids_of_owners(units).items():
        owner: dict[str, JSON] = {"tenant": tenant, "user": user, "ids": json.dumps(sorted(gone))}
        for key, name in sorted(run("uncover_units", owner).fetchall()):
            uncovered.append(name)
            record(key, tenant, user)
        _erase_ids(run, owner, gone, record)
    return uncovered


def _erase_ids(run: RunStatement, owner: Mapping[str, JSON], gone: set[str], record: RecordChange) -> None:
    """Take the ids of erased units out of what other units say of them."""
    for (key,) in run("forget_superseders", {**owner, "erased": ERASED}).fetchall():
        record(key, owner["tenant"], owner["user"])
    run("forget_absences", {**owner, "erased": ERASED})
    for row in run("mentioning_units", owner).fetchall():
        unit = _without(run, unit_of(row), gone)
        run("rewrite_unit", {**_body(unit), "key": row[0]})
        record(row[0], unit.tenant, unit.user or GLOBAL)
    for key, version, body in run("mentioning_versions", owner).fetchall():
        unit = _without(run, Unit.from_json(json.loads(body)), gone)
        run("rewrite_version", {**_body(unit), "key": key, "version": version})


def _without(run: RunStatement, unit: Unit, gone: set[str]) -> Unit:
    """Return a unit without those of the ids that name nothing for it any more: of its owner, or of everyone."""
    owners = (unit.user or GLOBAL, GLOBAL)
    unknown = {
        name
        for name in gone.intersection((*unit.supersedes, *unit.links))
        if not any(run("find_unit", {"tenant": unit.tenant, "user": user, "id": name}).fetchone() for user in owners)
    }
    return unit.evolve(
        supersedes=tuple(one for one in unit.supersedes if one not in unknown),
        links=tuple(one for one in unit.links if one not in unknown),
    )


def _body(unit: Unit) -> dict[str, JSON]:
    row = columns(unit)
    return {"body": row["body"], "checksum": row["checksum"]}


def erase_owner(run: RunStatement, tenant: str, user: str) -> tuple[str | None, str]:
    """Take an owner out of the feed, and of what was measured.

    Whoever follows the feed hears of a new epoch instead. Return the old and the new.
    """
    before, after = run("agreed", {"name": EPOCH}).fetchone(), os.urandom(8).hex()
    run("erase_changes", {"tenant": tenant, "user": user})
    run("erase_funnel", {"tenant": tenant, "user": user})
    run("agree", {"name": EPOCH, "value": after})
    return (before[0] if before else None), after


# --------------------------------------------------------------------------------------------------- proof


def fragments(texts: Iterable[str], vectors: Iterable[bytes] = ()) -> list[bytes]:
    """Return pieces of what is to be erased, as bytes that a file would hold: enough of them, from all of it."""
    # As SQLite holds it: JSON escapes break a text into pieces.
    split = (re.split(r"\\.", json.dumps(text, ensure_ascii=False)[1:-1]) for text in texts)
    runs = [one.encode("utf-8", "surrogatepass") for pieces in split for one in pieces]
    runs = [data for data in runs if len(data) >= _SHORTEST]
    starts = [(data, at) for data in runs for at in range(0, max(1, len(data) - WINDOW + 1), _STRIDE)]
    starts += [(data, 0) for data in vectors if any(data[:WINDOW])]
    found = dict.fromkeys(data[at : at + WINDOW] for data, at in starts)
    short = [piece for piece in found if len(piece) < TWO_WORDS]
    long = [piece for piece in found if len(piece) >= TWO_WORDS]
    return [*long[:: max(1, len(long) // _MOST_WINDOWS)], *short[:: max(1, len(short) // _MOST_SHORT)]]


def still_used(run: RunStatement, pieces: Iterable[bytes]) -> set[bytes]:
    """Return the pieces that units which are kept say too: finding those proves nothing."""
    kept = run("kept", {})
    batches = iter(lambda: _APART.join(data for (data,) in kept.fetchmany(_KEPT_TOGETHER)), b"")
    return find_fragments(batches, pieces)


# A piece of so many bytes holds two whole words in a row of those at every eighth byte, wherever it lies.
TWO_WORDS = 23
_SHIFTS = range(8)
# Odd numbers whose products spread over all bits; the first bits choose a place in a table.
_SPREAD, _OTHER_SPREAD, _PLACE = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F), np.uint64(64 - 18)


def _pairs(data: bytes) -> NDArray[np.uint64]:
    words = np.frombuffer(data, "<u8", len(data) // len(_SHIFTS))
    return words[:-1] * _SPREAD ^ words[1:] * _OTHER_SPREAD


def find_fragments(data: Iterable[bytes], pieces: Iterable[bytes]) -> set[bytes]:
    """Return which of some pieces are in some data; those of `TWO_WORDS` are looked for in one pass."""
    wanted, found = {*pieces}, set[bytes]()
    short = {piece for piece in wanted if len(piece) < TWO_WORDS}
    known: dict[int, set[bytes]] = {}
    for piece, at in product(wanted - short, _SHIFTS):
        known.setdefault(int(_pairs(piece[at : at + 16])[0]), set()).add(piece)
    table = np.zeros(1 << 18, dtype=bool)
    table[np.array([*known], dtype=np.uint64) >> _PLACE] = True
    for some in data if wanted else ():
        pairs = _pairs(some)
        near = pairs[table[pairs >> _PLACE]].tolist() if known else ()
        hits = short.union(*(known[pair] for pair in near if pair in known))
        found |= {piece for piece in hits - found if piece in some}
    return found
