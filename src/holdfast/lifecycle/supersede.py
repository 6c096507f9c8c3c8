"""Changed facts (C19): a turn that plainly replaces an earlier one marks it as superseded, and says why.

Careful by design: the same speaker, the same slot, words of change (or a relation declared to have one value), and an
earlier turn that says nothing else. Nothing is deleted, and `reinstate` undoes it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np

from holdfast.language.changes import Change, Statement, changes, speaks_of_change, statements
from holdfast.language.facts.sentences import spans
from holdfast.language.knowledge import speaker_of
from holdfast.language.lexical import TOKENIZERS, terms
from holdfast.language.symbols import symbol
from holdfast.settings import Settings
from holdfast.store.contract import NO_HURRY, DenseQuery, LexicalQuery, Reading, Store, look
from holdfast.types import FIELDS, Unit, View

# A statement of the same thing shares words or meaning with its change: it is among the nearest.
_NEAREST = 32
# "I live in …" has one word besides its value, "I work as an engineer at …" two; with more, it tells of more.
_OTHER_WORDS = 2
# Words that somebody else says, or that are written for somebody: a colon, a quote, code, a text to work on.
_QUOTING = re.compile(
    r"""[:"“”„«»`>]|\b(?:stor(?:y|ies)|letter|essay|poem|novel|script|lyrics|quote|proofread|translate|rewrite|draft)\b""",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Superseded:
    """An earlier unit that a new one replaces, and how that was seen."""

    old: Unit
    new: Unit
    change: Change

    @property
    def owner(self) -> View:
        """Return whose units they are."""
        return _owner(self.new)

    @property
    def why(self) -> str:
        """Say it in words, for `show` and `explain`."""
        seen = f" (said: {self.change.words})" if self.change.words else ""
        return f"{self.change.slot}: {self.change.old} → {self.change.new or 'ended'}{seen}"


def superseded(store: Store, units: Sequence[Unit], settings: Settings) -> list[Superseded]:
    """Return what some turns, just indexed, replace, and which of them is replaced by one that was known before.

    What was said later decides, in whatever order turns arrive. Each unit is replaced once.
    """
    found: dict[str, Superseded] = {}
    told = [unit for unit in units if unit.kind == "turn" and unit.author == "user"]
    for unit in _as_kept(store, [unit for unit in told if _concerned(unit, settings)]):
        for other in _nearest(store, unit, settings):
            old, new = (other, unit) if _moment(other) < _moment(unit) else (unit, other)
            if old.id not in found and (made := _change(new, old, settings)) is not None:
                found[old.id] = Superseded(old, new, made)
    return [*found.values()]


def _concerned(unit: Unit, settings: Settings) -> bool:
    """Return whether a turn may replace another, or be replaced: only a turn whose time was given has later ones."""
    told_later = unit.event_time != unit.recorded_time
    if not (told_later or settings.symbolic.functional or speaks_of_change(unit.text)):
        return False
    said = statements(unit.text, speaker_of(unit))
    return any(_may_change(one, settings) for one in said) or (told_later and bool(said))


def _moment(unit: Unit) -> tuple[datetime, int, str]:
    return (unit.event_time, unit.position, unit.id)


def _as_kept(store: Store, units: Sequence[Unit]) -> list[Unit]:
    """Return the units as the store has them: it gave them their positions."""
    kept = (look(store, _owner(unit), lambda reading: reading.units([unit.id])).get(unit.id) for unit in units)
    return [unit for unit in kept if unit is not None]


def _owner(unit: Unit) -> View:
    at = unit.recorded_time
    return View(tenant=unit.tenant, user=unit.user or "", agent=unit.agent, now=at, reference_time=at)


def _may_change(one: Statement, settings: Settings) -> bool:
    return bool(one.marker or one.replaces or one.ended) or one.slot in settings.symbolic.functional


def _change(new: Unit, old: Unit, settings: Settings) -> Change | None:
    said = statements(new.text, speaker_of(new))
    if old.pinned or not any(_may_change(one, settings) for one in said):
        return None
    # A turn that says more than what changed stays: hiding it would lose the rest.
    if len(spans(old.text)) != 1 or _QUOTING.search(new.text):
        return None
    before = statements(old.text, speaker_of(old))
    made = changes(said, before, frozenset(settings.symbolic.functional))
    gone = {one.old for one in made}
    if not made or not all(one.value in gone for one in before):
        return None
    other = set(terms(old.text)).difference(*(terms(value) for value in gone))
    return made[0] if len(other) <= _OTHER_WORDS else None


def _nearest(store: Store, unit: Unit, settings: Settings) -> list[Unit]:
    """Return the turns of the same speaker that are nearest in words, meaning or what they state, oldest first."""
    view = _owner(unit)
    lexical = settings.lexical
    words = tuple(dict.fromkeys(TOKENIZERS[settings.analysis.tokenizer](unit.text)))
    weights = tuple(lexical.weights[name] for name in FIELDS)
    query = LexicalQuery(words, weights, lexical.k1, lexical.b, frozenset(), 1.0)
    space = store.space()
    with store.reading(view) as reading:
        ids = [*reading.propose(query, _NEAREST, NO_HURRY).ids]
        itself = DenseQuery(space or "", np.zeros(0, dtype=np.float32))
        evidence = reading.evidence(itself, [unit.id]) if space is not None else None
        if space is not None and evidence is not None and len(evidence.ids):
            ids += reading.propose(DenseQuery(space, evidence.vectors[0]), _NEAREST, NO_HURRY).ids
        ids += _stating(reading, unit)
        units = reading.units([*dict.fromkeys(ids)]).values()
    others = [
        one
        for one in units
        if one.id != unit.id
        and one.kind == "turn"
        and one.author == unit.author
        and (one.user, one.agent) == (unit.user, unit.agent)
        and speaker_of(one) == speaker_of(unit)
        and one.superseded_by is None
    ]
    return sorted(others, key=_moment)


def _stating(reading: Reading, unit: Unit) -> list[str]:
    """Return the units that state a fact of a subject that this one speaks of, however far they are in words."""
    said = statements(unit.text, speaker_of(unit))
    slots, subjects = {one.slot for one in said}, {symbol(one.subject) for one in said}
    facts = reading.facts().about(subjects, _NEAREST)
    return [source for fact in facts if fact.relation in slots for source in fact.sources]
