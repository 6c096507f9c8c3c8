"""What becomes of units in a store, inside a transaction: promotion, coverage, supersession, access."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable
from datetime import datetime
from functools import singledispatchmethod
from typing import Any

from holdfast.errors import InputError, NotFoundError, shown
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
from holdfast.store.records import restore
from holdfast.store.rows import GLOBAL, SPACE, Fresh, Row, UnitRows, durable_body, gate_text, unit_keys, unit_of
from holdfast.types import Unit, Written, iso


class Marker:
    """Writes marks; `fresh` collects the analyses of summaries, `promoted` what the index has to hear of."""

    def __init__(self, database: UnitRows, place: Callable[[], str]) -> None:
        self._database = database
        self._place = place  # what tells this store from a copy
        self._run = database.run
        self.fresh = Fresh()
        # Of units that became durable: tenant, user, key, and the checksum before and after.
        self.promoted: list[tuple[str, str, int, int, int]] = []

    @singledispatchmethod
    def write(self, mark: Any) -> Written | None:  # noqa: ANN401 - one of `Mark`
        """Write one mark; see `Store.mark`."""
        raise TypeError(mark)

    @write.register
    def _(self, mark: SpaceChange) -> None:
        is_new = self._run("name_space", {"space": mark.space}).rowcount > 0
        if mark.if_new and not is_new:
            return
        self._database.agree(SPACE, mark.space)

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
    def _(self, mark: Restoration) -> Written | None:
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
    def _(self, mark: Coverage) -> Written | None:
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
        return Written(unit.id, "added" if before is None else "updated", unit.version)

    def _as_read(self, unit: Unit) -> Row | None:
        """Return the row of a turn that is still as it was read, and still to be covered."""
        row = self._database.find(unit.tenant, unit.user, unit.id)
        if row is None or row[3] is not None or row[5] is not None:
            return None
        return row if unit_of(row).version == unit.version else None

    def uncover(self, row: Row, at: datetime) -> None:
        """Withdraw the summary that stands for a turn: it no longer says what its turns say."""
        turn = unit_of(row)
        if turn.covered_by is None:
            return
        summary = self._database.find(turn.tenant, turn.user, turn.covered_by)
        if summary is not None:
            self._run("supersede_unit", {"by": turn.id, "at": iso(at), "why": "its turn changed", "key": summary[0]})
            self._database.record_change(summary[0], turn.tenant, turn.user or GLOBAL)
        self._uncover_all(turn, turn.covered_by)

    def release(self, row: Row) -> None:
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
                f"{shown(mark.unit_id)} is a summary of turns that have changed since; compact the session instead"
            )
        self._run("record_absence", {"key": row[0], "until": iso(mark.at)})
        self._run("supersede_unit", {"by": None, "at": None, "why": None, "key": row[0]})
        self._database.record_change(row[0], unit.tenant, unit.user or GLOBAL)

    def supersede(self, newer: Unit, target: str, at: datetime, why: str = "") -> None:
        """Let one unit take the place of another of the same owner."""
        row = self._database.find(newer.tenant, newer.user, target)
        hidden = row is not None and newer.agent is not None and unit_of(row).agent not in (newer.agent, None)
        if row is None or hidden or target == newer.id:
            raise NotFoundError(f"{shown(target)} cannot be superseded: the owner has no other unit of that id")
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
                    f"{shown(target)} cannot be superseded by {shown(newer.id)}, which it supersedes itself "
                    f"({steps}); reinstate one of them first"
                )
            if found[0] in chain:
                return
            chain.append(found[0])
