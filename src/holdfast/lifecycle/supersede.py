"""Changed facts (C19): a turn that plainly replaces an earlier one marks it as superseded, and says why.

Careful by design: the same speaker, the same slot, words of change (or a relation declared to have one value), and an
earlier turn that says nothing else. Nothing is deleted, and `reinstate` undoes it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from holdfast.analysis.changes import Change, Statement, changes, statements
from holdfast.analysis.facts.sentences import spans
from holdfast.analysis.knowledge import speaker_of
from holdfast.analysis.lexical import terms
from holdfast.settings import Settings
from holdfast.store.base import DenseQuery, LexicalQuery, Store
from holdfast.types import FIELDS, Deadline, Unit, View

# A statement of the same thing shares words or meaning with its change: it is among the nearest.
_NEAREST = 32
_NO_LIMIT_MS = 60_000.0


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


def superseded(
    store: Store, units: Sequence[Unit], settings: Settings, clock: Callable[[], float]
) -> list[Superseded]:
    """Return the earlier units that some turns, just indexed, replace; each once, by the first that does."""
    found: dict[str, Superseded] = {}
    told = [unit for unit in units if unit.kind == "turn" and unit.author == "user"]
    changing = [
        unit for unit in told if any(_may_change(one, settings) for one in statements(unit.text, speaker_of(unit)))
    ]
    for unit in _as_kept(store, changing):
        said = statements(unit.text, speaker_of(unit))
        for old in _nearest(store, unit, settings, clock):
            if old.id not in found and (made := _change(said, old, settings)) is not None:
                found[old.id] = Superseded(old, unit, made)
    return [*found.values()]


def _as_kept(store: Store, units: Sequence[Unit]) -> list[Unit]:
    """Return the units as the store has them: it gave them their positions."""
    kept = (store.units(_owner(unit), [unit.id]).get(unit.id) for unit in units)
    return [unit for unit in kept if unit is not None]


def _owner(unit: Unit) -> View:
    at = unit.recorded_time
    return View(tenant=unit.tenant, user=unit.user or "", agent=unit.agent, now=at, reference_time=at)


def _may_change(one: Statement, settings: Settings) -> bool:
    return bool(one.marker or one.replaces or one.ended) or one.slot in settings.symbolic.functional


def _change(said: Sequence[Statement], old: Unit, settings: Settings) -> Change | None:
    # A turn of several sentences says more than what changed: hiding it would lose the rest.
    if len(spans(old.text)) != 1:
        return None
    before = statements(old.text, speaker_of(old))
    made = changes(said, before, frozenset(settings.symbolic.functional))
    gone = {one.old for one in made}
    return made[0] if made and all(one.value in gone for one in before) else None


def _nearest(store: Store, unit: Unit, settings: Settings, clock: Callable[[], float]) -> list[Unit]:
    """Return the earlier turns of the same speaker that are nearest in words or meaning, oldest first."""
    view = _owner(unit)
    deadline = Deadline.start(clock, _NO_LIMIT_MS)
    lexical = settings.lexical
    words = tuple(dict.fromkeys(terms(unit.text, settings.analysis.compound_separators)))
    weights = tuple(lexical.weights[name] for name in FIELDS)
    query = LexicalQuery(words, weights, lexical.k1, lexical.b, frozenset(), 1.0)
    ids = [*store.lexical_candidates(view, query, _NEAREST, deadline).ids]
    space = store.space()
    evidence = store.dense_evidence(view, space, [unit.id]) if space is not None else None
    if space is not None and evidence is not None and len(evidence.ids):
        near = DenseQuery(space, evidence.vectors[0])
        ids += store.dense_candidates(view, near, _NEAREST, deadline).ids
    units = store.units(view, [*dict.fromkeys(ids)]).values()
    earlier = [
        one
        for one in units
        if one.id != unit.id
        and one.kind == "turn"
        and one.author == unit.author
        and one.user == unit.user
        and speaker_of(one) == speaker_of(unit)
        and (one.event_time, one.position) < (unit.event_time, unit.position)
        and one.superseded_by is None
        and not one.pinned
    ]
    return sorted(earlier, key=lambda one: (one.event_time, one.position, one.id))
