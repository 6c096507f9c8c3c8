"""Writing units inside a transaction: what is new, what repeats, what becomes a new version (C1)."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from itertools import count

from holdfast.errors import InputError, shown
from holdfast.store.conversation import given_again, told_apart
from holdfast.store.rows import GLOBAL, Row, UnitRows, unit_of
from holdfast.store.updates import Marker
from holdfast.types import Analysis, Draft, Unit, View, Written


class Writer:
    """Writes the units of one call; what it learns of their conversations holds as long as the transaction."""

    def __init__(self, database: UnitRows, marker: Marker) -> None:
        self._database = database
        self._run = database.run
        self._marker = marker
        # The next position of each conversation that the call writes to.
        self._positions: dict[tuple[str | None, ...], int] = {}
        # Which of the ids that the call asks for somebody has: tenant, user and id.
        self._taken: set[tuple[str, str, str]] = set()

    def put(self, drafts: Sequence[Draft], retry_seconds: float) -> list[Written]:
        """See `Store.put`."""
        told = told_apart(drafts, self._last_turns, retry_seconds)
        self._taken = self._find_taken(told)
        return [self._put_one(draft) for draft in told]

    def _find_taken(self, drafts: Sequence[Draft]) -> set[tuple[str, str, str]]:
        """Return which of the ids that drafts ask for first are known already: one look for all of them."""
        asked: dict[tuple[str, str], list[str]] = {}
        for draft in drafts:
            name = draft.unit.id if draft.naming is None else draft.naming(0)
            asked.setdefault((draft.unit.tenant, draft.unit.user or GLOBAL), []).append(name)
        return {
            (tenant, user, name)
            for (tenant, user), ids in asked.items()
            for (name,) in self._run("taken_ids", {"tenant": tenant, "user": user, "ids": json.dumps(ids)})
        }

    def _last_turns(self, unit: Unit, limit: int) -> list[Unit]:
        """Return the last turns of a unit's conversation in the order in which they came, as they were first said."""
        keys = {
            "tenant": unit.tenant,
            "user": unit.user or GLOBAL,
            "session": unit.session,
            "agent": unit.agent or "",
        }
        rows = self._run("last_turns", {**keys, "limit": limit}).fetchall()
        return [self._as_first_said(row) for row in reversed(rows)]

    def _as_first_said(self, row: Row) -> Unit:
        unit = unit_of(row)
        first = self._run("first_version", {"key": row[0]}).fetchone() if unit.version > 1 else None
        return unit if first is None else unit_of(first)

    def _put_one(self, draft: Draft) -> Written:
        unit = draft.unit
        known_as = None if draft.naming else (unit.tenant, unit.user or GLOBAL, unit.id)
        row = self._database.find(unit.tenant, unit.user, unit.id) if known_as in self._taken else None
        if row is None:
            unit = self._placed(draft)
            key, checksum = self._database.insert(unit, draft.document)
            self._taken.add((unit.tenant, unit.user or GLOBAL, unit.id))
        else:
            key, known, unit = row[0], unit_of(row), self._restated(row, draft)
            if unit == known:
                return Written(known.id, "duplicate", known.version)
            unit = unit.evolve(version=known.version + 1, recorded_time=draft.unit.recorded_time)
            checksum = self._restate(row, unit)
        for target in unit.supersedes if row is None or draft.id_given else ():
            self._marker.supersede(unit, target, draft.unit.recorded_time)
        self._marker.fresh.units[key] = (checksum, unit, draft.analyse(unit))
        return Written(unit.id, "added" if row is None else "updated", unit.version)

    def _restated(self, row: Row, draft: Draft) -> Unit:
        """Return what a known unit becomes: an id that the caller gave takes new content, a message stays."""
        known = unit_of(row)
        if not draft.id_given:
            return known.evolve(**given_again(known, draft.unit))
        if known.agent not in (draft.unit.agent, None):
            raise InputError(f"the id {shown(known.id)} is taken by another agent's unit; choose another")
        unit = draft.unit.evolve(
            # Where a unit belongs is fixed at its first version, as its id is: nobody who saw it loses it.
            agent=known.agent,
            session=known.session,
            scope=known.scope,
            position=known.position,
            version=known.version,
            recorded_time=known.recorded_time,
            event_time=draft.unit.event_time if draft.time_given else known.event_time,
        )
        if unit != known:
            self._refuse_taken(row, draft)
        return unit

    def _refuse_taken(self, row: Row, draft: Draft) -> None:
        """Let no document write over what is no part of it, and nobody but a document over its parts."""
        [document] = self._run("document_of_unit", {"key": row[0]}).fetchone()
        if document == draft.document:
            return
        taken = "a unit that is no part of a document" if document is None else f"the document {shown(document)}"
        remedy = "choose another id" if draft.document is None else f"give {shown(draft.document)} another name"
        raise InputError(f"the id {shown(draft.unit.id)} is taken by {taken}; {remedy}")

    def revise(self, view: View, unit_id: str, revise: Callable[[Unit], tuple[Unit, Analysis]]) -> Unit:
        """See `Store.revise`."""
        row = self._database.find_seen(view, unit_id)
        known = unit_of(row)
        unit, analysis = revise(known)
        unit = unit.evolve(version=known.version + 1)
        self._marker.fresh.units[row[0]] = (self._restate(row, unit), unit, analysis)
        kept = self._database.find(unit.tenant, unit.user, unit.id)
        return unit if kept is None else unit_of(kept)

    def _restate(self, row: Row, unit: Unit) -> int:
        """Write a new version; a summary of what the unit no longer says, or says for a time only, is withdrawn."""
        known = unit_of(row)
        checksum = self._database.replace(row[0], unit)
        ends = unit.expires_at is not None or unit.valid_to is not None
        if unit.text != known.text or ends:
            self._marker.uncover(row, unit.recorded_time)
        if ends:
            self._marker.release(row)
        return checksum

    def _placed(self, draft: Draft) -> Unit:
        """Return a new unit with its place in its conversation, and the id that its place gives it."""
        unit = draft.unit
        if unit.kind != "turn" or draft.document is not None:
            return unit
        position = self._next_position(unit)
        if draft.naming is None:
            return unit if unit.position == position else unit.evolve(position=position)
        return unit.evolve(position=position, id=self._free_id(unit, position, draft.naming))

    def _next_position(self, unit: Unit) -> int:
        """Return the next place of a session, or of an agent's turns without one."""
        keys = {"tenant": unit.tenant, "user": unit.user or GLOBAL, "session": unit.session}
        conversation = (*keys.values(), unit.agent if unit.session is None else None)
        if conversation not in self._positions and unit.session is None:
            self._positions[conversation] = max((turn.position + 1 for turn in self._last_turns(unit, 1)), default=0)
        elif conversation not in self._positions:
            self._positions[conversation] = self._run("next_position", keys).fetchone()[0]
        self._positions[conversation] += 1
        return self._positions[conversation] - 1

    def _free_id(self, unit: Unit, position: int, naming: Callable[[int], str]) -> str:
        """Return the first id of these words that nobody has; what said them before stands at an earlier place."""
        first = naming(0)
        if (unit.tenant, unit.user or GLOBAL, first) not in self._taken:
            return first
        tried = map(naming, count(max(position, 1)))
        return next(name for name in tried if self._database.find(unit.tenant, unit.user, name) is None)
