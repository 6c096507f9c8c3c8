"""Which messages of one call are new, and which repeat what their conversation holds (C1).

A conversation is what one user and agent said in one session, or without any, in the order in which it came.
"""

from __future__ import annotations

import dataclasses
import json
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from difflib import Match, SequenceMatcher
from typing import Any

from holdfast.types import FIELDS, Draft, Unit

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


def told_apart(drafts: Sequence[Draft], last_turns: LastTurns, retry_seconds: float) -> list[Draft]:
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


def given_again(known: Unit, said: Unit) -> dict[str, Any]:
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
