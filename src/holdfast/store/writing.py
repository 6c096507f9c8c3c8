"""Writing units inside a transaction: what is new, what repeats, what becomes a new version (C1).

A conversation is what one user and agent said in one session, or without any, in the order in which it came.
"""

from __future__ import annotations

import dataclasses
import json
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from difflib import Match, SequenceMatcher
from itertools import count
from typing import Any

from holdfast.errors import InputError, quote_value
from holdfast.store.rows import GLOBAL, UnitRow, UnitRows, unit_of
from holdfast.store.updates import UpdateWriter
from holdfast.types import FIELDS, Analysis, Draft, Unit, View, WriteResult


class Writer:
    """Writes the units of one call; what it learns of their conversations holds as long as the transaction."""

    def __init__(self, database: UnitRows, marker: UpdateWriter) -> None:
        self._database = database
        self._run = database.run
        self._marker = marker
        # The next position of each conversation that the call writes to.
        self._positions: dict[tuple[str | None, ...], int] = {}
        # Which of the ids that the call asks for somebody has: tenant, user and id.
        self._taken: set[tuple[str, str, str]] = set()

    def put(self, drafts: Sequence[Draft], retry_seconds: float) -> list[WriteResult]:
        """See `Store.put`."""
        told = assign_known_ids(drafts, self._last_turns, retry_seconds)
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

    def _as_first_said(self, row: UnitRow) -> Unit:
        unit = unit_of(row)
        first = self._run("first_version", {"key": row[0]}).fetchone() if unit.version > 1 else None
        return unit if first is None else unit_of(first)

    def _put_one(self, draft: Draft) -> WriteResult:
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
                return WriteResult(known.id, "duplicate", known.version)
            unit = unit.evolve(version=known.version + 1, recorded_time=draft.unit.recorded_time)
            checksum = self._restate(row, unit)
        for target in unit.supersedes if row is None or draft.id_given else ():
            self._marker.supersede(unit, target, draft.unit.recorded_time)
        self._marker.fresh.units[key] = (checksum, unit, draft.analyse(unit))
        return WriteResult(unit.id, "added" if row is None else "updated", unit.version)

    def _restated(self, row: UnitRow, draft: Draft) -> Unit:
        """Return what a known unit becomes: an id that the caller gave takes new content, a message stays."""
        known = unit_of(row)
        if not draft.id_given:
            return known.evolve(**repeated_changes(known, draft.unit))
        if known.agent not in (draft.unit.agent, None):
            raise InputError(f"the id {quote_value(known.id)} is taken by another agent's unit; choose another")
        unit = draft.unit.evolve(
            # Where a unit belongs is fixed at its first version, as its id is: nobody who saw it loses it.
            agent=known.agent,
            session=known.session,
            scope=known.scope,
            position=known.position,
            overruled=known.overruled,
            version=known.version,
            recorded_time=known.recorded_time,
            event_time=draft.unit.event_time if draft.time_given else known.event_time,
        )
        if unit != known:
            self._refuse_taken(row, draft)
        return unit

    def _refuse_taken(self, row: UnitRow, draft: Draft) -> None:
        """Let no document write over what is no part of it, and nobody but a document over its parts."""
        [document] = self._run("document_of_unit", {"key": row[0]}).fetchone()
        if document == draft.document:
            return
        taken = (
            "a unit that is no part of a document" if document is None else f"the document {quote_value(document)}"
        )
        remedy = "choose another id" if draft.document is None else f"give {quote_value(draft.document)} another name"
        raise InputError(f"the id {quote_value(draft.unit.id)} is taken by {taken}; {remedy}")

    def revise(self, view: View, unit_id: str, revise: Callable[[Unit], tuple[Unit, Analysis]]) -> Unit:
        """See `Store.revise`."""
        row = self._database.find_seen(view, unit_id)
        known = unit_of(row)
        unit, analysis = revise(known)
        unit = unit.evolve(version=known.version + 1)
        self._marker.fresh.units[row[0]] = (self._restate(row, unit), unit, analysis)
        kept = self._database.find(unit.tenant, unit.user, unit.id)
        return unit if kept is None else unit_of(kept)

    def _restate(self, row: UnitRow, unit: Unit) -> int:
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


Alignment = dict[int, int]  # place in the list → place in the conversation


def align(held: Sequence[Hashable], calls: Sequence[Hashable], said: Sequence[Hashable]) -> Alignment:
    """Return where the conversation holds each message of a list; what is missing in the answer is new.

    The list continues the conversation where it fits: its longest beginning that is the end of what is held is
    known, and the rest is new. A list that does not fit so, because something was regenerated, edited, erased or put
    in front, is compared as `diff` does, and taken for a repetition when it says more of what is held, in the same
    order, than it adds or leaves out. `calls` says which call brought each held message: words that came in one call
    and come again are an exchange that was repeated, not a repetition of the conversation.
    """
    known = _overlap(held, said)
    if known:
        return {place: len(held) - known + place for place in range(known)}
    found = {run.b + step: run.a + step for run in _repeated_runs(held, calls, said) for step in range(run.size)}
    return found | _kept_late(found, held, said)


def _overlap(held: Sequence[Hashable], said: Sequence[Hashable]) -> int:
    """Return the length of the longest beginning of `said` that is the end of `held`."""
    lengths = range(min(len(held), len(said)), 0, -1)
    return next((length for length in lengths if held[-length:] == said[:length]), 0)


def _kept_late(found: Alignment, held: Sequence[Hashable], said: Sequence[Hashable]) -> Alignment:
    """Return what a repetition has between known messages and the conversation after them, each side just once.

    An edited message, or one that was erased, is kept at the end when it comes again; the next list has it in its
    place.
    """
    times_held, times_said = Counter(held), Counter(said)
    once = {one: at for at, one in enumerate(held) if times_held[one] == times_said[one] == 1}
    late: Alignment = {}
    following = len(held)
    for place in range(max(found, default=-1), -1, -1):
        following = found.get(place, following)
        at = once.get(said[place], -1)
        if at > following:
            late[place] = at
    return late


def _repeated_runs(held: Sequence[Hashable], calls: Sequence[Hashable], said: Sequence[Hashable]) -> list[Match]:
    """Return the common runs, without those at the front that match by chance, or none.

    The runs are counted from the last to the first, so that each choice of the first costs one step. Words that are
    said over and over are no sign of a repetition: only different ones count.
    """
    runs = SequenceMatcher(None, held, said, autojunk=False).get_matching_blocks()[:-1]
    start, most, known, continues = len(runs), 0, 0, False
    different: set[Hashable] = set()
    for place, run in reversed([*enumerate(runs)]):
        known += run.size
        different.update(held[run.a : run.a + run.size])
        continues = continues or calls[run.a] != calls[run.a + run.size - 1]
        left_out, added = len(held) - run.a - known, len(said) - known
        surplus = len(different) - left_out - added
        if continues and surplus > most:
            start, most = place, surplus
    return runs[start:]


# A list is known by what it says, unless it leaves out as much of the conversation as it says: twice its length.
_LOOKED_AT = 2


LastTurns = Callable[[Unit, int], list[Unit]]


def assign_known_ids(drafts: Sequence[Draft], last_turns: LastTurns, retry_seconds: float) -> list[Draft]:
    """Return the drafts; a message that is known has the id of the turn that it repeats."""
    turns = [(place, draft) for place, draft in enumerate(drafts) if _is_turn(draft)]
    told = [*drafts]
    for said in _conversations(turns):
        known = _known([draft for _, draft in said], last_turns)
        if sum(draft.naming is not None for _, draft in said) == 1:
            known = {number: turn for number, turn in known.items() if _is_soon(said[number][1], turn, retry_seconds)}
        for number, turn in known.items():
            place, draft = said[number]
            told[place] = _as_known(draft, turn.id)
    return told


def _conversations(turns: Sequence[tuple[int, Draft]]) -> list[list[tuple[int, Draft]]]:
    """Return the turns of each conversation in which order matters; a call may bring messages of several sessions."""
    found: dict[str | None, list[tuple[int, Draft]]] = {}
    for place, draft in turns:
        found.setdefault(draft.unit.session, []).append((place, draft))
    return [said for said in found.values() if any(draft.naming for _, draft in said)]


def repeated_changes(known: Unit, said: Unit) -> dict[str, Any]:
    """Return what a repeated message changes: its pin, its lifetime and its metadata, where they are given anew.

    One whose words were corrected since stays as it is: it no longer says what is repeated.
    """
    if any(known.field_text(name) != said.field_text(name) for name in FIELDS):
        return {}
    given: dict[str, Any] = {"pinned": True} if said.pinned else {}
    if said.metadata:
        given["metadata"] = said.metadata
    if said.expires_at is not None and _lifetime(said) != _lifetime(known):
        given["expires_at"] = said.expires_at
    return given


def _lifetime(unit: Unit) -> object:
    return None if unit.expires_at is None else unit.expires_at - unit.recorded_time


def _is_turn(draft: Draft) -> bool:
    """Return whether a draft has a place in its conversation; instructions lead every list that a host sends."""
    return draft.unit.kind == "turn" and (draft.naming is not None or draft.unit.author != "system")


def _as_known(draft: Draft, name: str) -> Draft:
    if draft.naming is None:
        return draft
    return dataclasses.replace(draft, unit=draft.unit.evolve(id=name), naming=None)


def _is_soon(draft: Draft, turn: Unit, retry_seconds: float) -> bool:
    """Return whether a message without others that order tells apart is a call tried again, not said anew."""
    age = (draft.unit.recorded_time - turn.recorded_time).total_seconds()
    return 0 <= age < retry_seconds


def _known(drafts: Sequence[Draft], last_turns: LastTurns) -> dict[int, Unit]:
    held = _held(drafts, last_turns)
    by_id = {unit.id: unit for unit in held}
    found: Alignment = align(
        [_words(unit) for unit in held],
        [unit.recorded_time for unit in held],
        [_compared(draft, by_id) for draft in drafts],
    )
    return {place: held[at] for place, at in found.items()}


def _held(drafts: Sequence[Draft], last_turns: LastTurns) -> list[Unit]:
    """Return what a list is compared with; one message alone, which may be an instruction, with the last turn."""
    if len(drafts) == 1:
        return last_turns(drafts[0].unit, 1)
    turns = last_turns(drafts[0].unit, _LOOKED_AT * len(drafts))
    return [turn for turn in turns if turn.author != "system"]


def _compared(draft: Draft, held: dict[str, Unit]) -> Hashable:
    """Return what a message is compared by; one with an id or a time is itself, and equals nothing else."""
    if draft.naming is not None:
        return _words(draft.unit)
    return _words(held[draft.unit.id]) if draft.unit.id in held else draft.unit.id


def _words(unit: Unit) -> Hashable:
    # Two tools may answer the same; which call an answer is to tells them apart.
    call = unit.metadata.get("tool_call_id")
    return unit.author, unit.speaker, unit.text, json.dumps([unit.parts, call], sort_keys=True)
