"""Updates of units inside a transaction: promotion, coverage, supersession, access; and restored units."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from functools import singledispatchmethod
from typing import Any

from holdfast.errors import DamagedStoreError, InputError, NotFoundError, quote_value
from holdfast.store.contract import (
    Access,
    Coverage,
    DocumentChange,
    DocumentRemoval,
    Promotion,
    Reinstatement,
    Restoration,
    SpaceChange,
    Supersession,
)
from holdfast.store.rows import (
    GLOBAL,
    SPACE,
    Fresh,
    RunStatement,
    UnitRow,
    UnitRows,
    check_vectors,
    columns,
    durable_body,
    gate_text,
    is_vector,
    unfit_of_space,
    unit_keys,
    unit_of,
)
from holdfast.types import (
    Document,
    Status,
    StoredUnit,
    StoredVector,
    SupersededSpan,
    Unit,
    View,
    WriteResult,
    from_iso,
    iso,
)


class UpdateWriter:
    """Writes marks; `fresh` collects the analyses of summaries, `promoted` what the index has to hear of."""

    def __init__(self, database: UnitRows, place: Callable[[], str]) -> None:
        self._database = database
        self._place = place  # what tells this store from a copy
        self._run = database.run
        self.fresh = Fresh()
        # Of units that became durable: tenant, user, key, and the checksum before and after.
        self.promoted: list[tuple[str, str, int, int, int]] = []

    @singledispatchmethod
    def write(self, mark: Any) -> WriteResult | None:  # noqa: ANN401 - one of `Update`
        """Write one mark; see `Store.apply`."""
        raise TypeError(mark)

    @write.register
    def _(self, mark: SpaceChange) -> None:
        is_new = self._run("name_space", {"space": mark.space}).rowcount > 0
        if mark.if_new and not is_new:
            return
        self._database.agree(SPACE, mark.space)
        if mark.dims is not None:
            self._drop_unfit(mark.space, mark.dims)

    def _drop_unfit(self, space: str, dims: int) -> None:
        """Drop vectors that cannot be compared: their units wait again."""
        keys = json.dumps([key for (key,) in unfit_of_space(self._run("space_vectors", {"space": space}), dims)])
        self._run("erase_vectors", {"keys": keys})
        for row in self._run("units_by_key", {"keys": keys}).fetchall():
            self._database.record_change(row[0], row[8], row[9])
        for key, version in unfit_of_space(self._run("space_version_vectors", {"space": space}), dims):
            self._run("erase_version_vector", {"key": key, "version": version})

    @write.register
    def _(self, mark: DocumentChange) -> None:
        document = mark.document
        row = {
            "tenant": document.tenant, "user": document.user or GLOBAL, "name": document.name, "path": document.path,
            "core": int(document.core), "body": document.body, "checksum": zlib.crc32(document.body),
            "given_to": self._place() if document.here else "",
        }  # fmt: skip
        self._run("put_document", row)

    @write.register
    def _(self, mark: Restoration) -> WriteResult | None:
        spaces = {one.space for one in mark.kept.vectors if one is not None}
        if len(spaces) == 1 and self._database.agreed(SPACE) is None:
            self.write(SpaceChange(spaces.pop()))
        return restore(self._database, mark.kept)

    @write.register
    def _(self, mark: DocumentRemoval) -> None:
        document = mark.document
        keys = {"tenant": document.tenant, "user": document.user or GLOBAL, "name": document.name}
        self._run("erase_document", keys)

    @write.register
    def _(self, mark: Access) -> None:
        view = mark.view
        keys = {"tenant": view.tenant, "user": view.user, "agent": view.agent, "ids": json.dumps([*mark.ids])}
        self._run("count_access", keys)

    # ------------------------------------------------------------------------------------------- promotion

    @write.register
    def _(self, mark: Promotion) -> None:
        """Keep a decision; a unit that has changed since it was read waits for another."""
        unit, decision = mark.unit, {"gate": gate_text(mark.gate)}
        for key, body, before in self._run("put_gate", {**unit_keys(unit), **decision}).fetchall():
            if mark.gate.promoted and unit.scope == "session":
                durable, checksum = durable_body(key, body, before)
                self._run("rewrite_unit", {"body": durable, "checksum": checksum, "key": key})
                self.promoted.append((unit.tenant, unit.user or GLOBAL, key, before, checksum))
            self._database.record_change(key, unit.tenant, unit.user or GLOBAL)

    # -------------------------------------------------------------------------------------------- coverage

    @write.register
    def _(self, mark: Coverage) -> WriteResult | None:
        unit = mark.summary.unit
        rows = [row for one in mark.sources if (row := self._as_read(one)) is not None]
        if len(rows) < len(mark.sources):
            return None
        before = self._database.find(unit.tenant, unit.user, unit.id)
        if before is None:
            key, checksum = self._database.insert(unit)
        else:  # the same turns were covered before and uncovered since: the summary is in force again
            key = before[0]
            unit = unit.evolve(version=unit_of(before).version + 1)
            checksum = self._database.replace(key, unit)
            self._run("supersede_unit", {"by": None, "at": None, "why": None, "key": key})
        for row in rows:
            self._run("cover_unit", {"by": unit.id, "at": iso(unit.recorded_time), "key": row[0]})
            self._database.record_change(row[0], unit.tenant, unit.user or GLOBAL)
        self.fresh.units[key] = (checksum, unit, mark.summary.analyse(unit))
        return WriteResult(unit.id, "added" if before is None else "updated", unit.version)

    def _as_read(self, unit: Unit) -> UnitRow | None:
        """Return the row of a turn that is still as it was read, and still to be covered."""
        row = self._database.find(unit.tenant, unit.user, unit.id)
        if row is None or row[3] is not None or row[5] is not None:
            return None
        return row if unit_of(row).version == unit.version else None

    def uncover(self, row: UnitRow, at: datetime) -> None:
        """Withdraw the summary that stands for a turn: it no longer says what its turns say."""
        turn = unit_of(row)
        if turn.covered_by is None:
            return
        summary = self._database.find(turn.tenant, turn.user, turn.covered_by)
        if summary is not None:
            self._run("supersede_unit", {"by": turn.id, "at": iso(at), "why": "its turn changed", "key": summary[0]})
            self._database.record_change(summary[0], turn.tenant, turn.user or GLOBAL)
        self._uncover_all(turn, turn.covered_by)

    def release(self, row: UnitRow) -> None:
        """Let the turns speak again that a summary stood for; it no longer counts, or not for ever."""
        summary = unit_of(row)
        if summary.lineage is not None:
            self._uncover_all(summary, summary.id)

    def _uncover_all(self, of: Unit, by: str) -> None:
        owner = {"tenant": of.tenant, "user": of.user or GLOBAL}
        for key, _ in self._run("uncover_units", {**owner, "ids": json.dumps([by])}).fetchall():
            self._database.record_change(key, of.tenant, of.user or GLOBAL)

    # ---------------------------------------------------------------------------------------- supersession

    @write.register
    def _(self, mark: Supersession) -> None:
        newer = unit_of(self._database.find_seen(mark.view, mark.by))
        self._database.find_seen(mark.view, mark.unit_id)
        self.supersede(newer, mark.unit_id, mark.at, mark.why)

    @write.register
    def _(self, mark: Reinstatement) -> None:
        row = self._database.find_seen(mark.view, mark.unit_id)
        unit = unit_of(row)
        if unit.kind == "summary":
            raise InputError(
                f"{quote_value(mark.unit_id)} is a summary of turns that have changed since; compact the session "
                "instead"
            )
        self._run("record_absence", {"key": row[0], "until": iso(mark.at)})
        self._run("supersede_unit", {"by": None, "at": None, "why": None, "key": row[0]})
        self._database.record_change(row[0], unit.tenant, unit.user or GLOBAL)

    def supersede(self, newer: Unit, target: str, at: datetime, why: str = "") -> None:
        """Let one unit take the place of another of the same owner."""
        row = self._database.find(newer.tenant, newer.user, target)
        hidden = row is not None and newer.agent is not None and unit_of(row).agent not in (newer.agent, None)
        if row is None or hidden or target == newer.id:
            if target == newer.id:
                raise NotFoundError(f"{quote_value(target)} cannot replace itself; name another unit")
            raise NotFoundError(f"{quote_value(target)} cannot be superseded: the owner has no unit of that id")
        self._refuse_circle(newer, target)
        self._run("supersede_unit", {"by": newer.id, "at": iso(at), "why": why or None, "key": row[0]})
        self._database.record_change(row[0], newer.tenant, newer.user or GLOBAL)
        self.uncover(row, at)
        self.release(row)

    def _refuse_circle(self, newer: Unit, target: str) -> None:
        chain, owner = [newer.id], {"tenant": newer.tenant, "user": newer.user or GLOBAL}
        while (found := self._run("superseded_by", {**owner, "id": chain[-1]}).fetchone()) and found[0]:
            if found[0] == target:
                steps = " → ".join([*chain, target])
                raise InputError(
                    f"{quote_value(target)} cannot be superseded by {quote_value(newer.id)}, which it supersedes "
                    "itself "
                    f"({steps}); reinstate one of them first"
                )
            if found[0] in chain:
                return
            chain.append(found[0])


# As many as are read at once: enough that a statement costs little of it, few enough for any memory.
_READ_TOGETHER = 500


# ---------------------------------------------------------------------------------------------------- reading


def read_stored_all(run: RunStatement, view: View, *, whole: bool) -> Iterator[Document | StoredUnit]:
    """Yield all that an owner has; see `Reading.stored`."""
    keys = {"tenant": view.tenant, "user": view.user, "whole": int(whole)}
    if view.session is None:
        yield from _documents(run, view, keys)
    found = [key for (key,) in run("kept_keys", {**keys, "session": view.session})]
    for start in range(0, len(found), _READ_TOGETHER):
        yield from read_stored(run, found[start : start + _READ_TOGETHER])


def _documents(run: RunStatement, view: View, keys: dict[str, Any]) -> Iterator[Document]:
    for (key,) in run("kept_document_keys", keys).fetchall():
        user, name, core, body, checksum = run("kept_document", {"key": key}).fetchone()
        if zlib.crc32(body) != checksum:
            raise DamagedStoreError(f"the document {quote_value(name)} fails its checksum; ingest it again")
        yield Document(view.tenant, user or None, name, body, core=bool(core), here=False)


def read_stored(run: RunStatement, keys: Sequence[int]) -> Iterator[StoredUnit]:
    """Yield units by their keys, in the order in which they were written."""
    asked = {"keys": json.dumps([*keys])}
    versions: dict[int, list[Unit]] = {}
    for row in run("versions_of_keys", asked):
        versions.setdefault(row[0], []).append(unit_of(row))
    absences: dict[int, list[SupersededSpan]] = {}
    for key, by, since, until in run("kept_absences", asked):
        absences.setdefault(key, []).append(SupersededSpan(by, from_iso(since), from_iso(until)))
    vectors: dict[tuple[int, int], StoredVector] = {}
    for key, data, checksum, version, space in run("kept_vectors", asked):
        check_vectors([(key, data, checksum)])
        if is_vector(data):  # what is none stays behind, and is embedded again
            vectors[key, version] = StoredVector(space, data)
    for *row, superseded_at, covered_at, document in run("kept_units", asked).fetchall():
        key, unit = row[0], unit_of(tuple(row))
        unit = unit.evolve(access_count=row[4])  # also of everyone's: whoever copies a store copies its counts
        told = (*versions.get(key, ()), unit)
        yield StoredUnit(
            told,
            tuple(vectors.get((key, one.version)) for one in told),
            document,
            None if superseded_at is None else from_iso(superseded_at),
            None if covered_at is None else from_iso(covered_at),
            tuple(absences.get(key, ())),
        )


# ---------------------------------------------------------------------------------------------------- writing


def restore(database: UnitRows, kept: StoredUnit) -> WriteResult | None:
    """Write a unit as it is, inside a transaction; see `Restoration`."""
    unit = kept.unit
    status: Status = "added"
    row = database.find(unit.tenant, unit.user, unit.id)
    if row is None:
        key, _ = database.insert(unit, kept.document)
    else:
        [known] = read_stored(database.run, [row[0]])
        found = _compare(known, kept)
        if found != "updated":
            return None if found is None else WriteResult(unit.id, found, known.unit.version)
        key, status = row[0], found
        counted = max(known.unit.access_count, unit.access_count)
        kept = _with_marks(kept, access_count=counted)
        for part in ("versions", "version_vectors", "vectors", "absences"):
            database.run(f"erase_{part}", {"keys": json.dumps([key])})
        database.rewrite(key, unit)
    _write_fate(database.run, key, kept)
    _write_vectors(database, key, kept)
    return WriteResult(unit.id, status, unit.version)


def _with_marks(kept: StoredUnit, **marks: Any) -> StoredUnit:  # noqa: ANN401 - fields outside versions
    versions = (*kept.versions[:-1], kept.unit.evolve(**marks))
    return StoredUnit(versions, kept.vectors, kept.document, kept.superseded_at, kept.covered_at, kept.absences)


def _compare(known: StoredUnit, given: StoredUnit) -> Status | None:
    """Return what a given unit is to a known one: its continuation, nothing new, or (None) another unit."""
    held, told = ([_lasting(one) for one in kept.versions] for kept in (known, given))
    short = min(len(held), len(told))
    if held[:short] != told[:short] or known.document != given.document:
        return None
    return "updated" if len(told) > len(held) or (len(told) == len(held) and _goes_on(known, given)) else "duplicate"


def _lasting(unit: Unit) -> Unit:
    """Return a unit as it is compared: that it was made durable since is not another content."""
    return unit.evolve(scope="user") if unit.scope == "session" else unit


def _goes_on(known: StoredUnit, given: StoredUnit) -> bool:
    """Return whether the same words have come further in what is given, and nothing of what is known is undone."""
    if len(given.absences) > len(known.absences):
        return True
    before, after = known.unit, given.unit
    pairs = [(getattr(before, name), getattr(after, name)) for name in ("superseded_by", "covered_by", "gate")]
    pairs.append((before.scope == "user" or None, after.scope == "user" or None))
    if any(held is not None and held != told for held, told in pairs):
        return False
    return any(held is None and told is not None for held, told in pairs)


def _write_fate(run: RunStatement, key: int, kept: StoredUnit) -> None:
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


def _write_vectors(database: UnitRows, key: int, kept: StoredUnit) -> None:
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
