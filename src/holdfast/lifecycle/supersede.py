"""What is decided about turns (C19): which turn replaces which, what was stated, and how a decision is overruled.

A turn that plainly replaces an earlier one marks it as superseded, and says why. Careful by design: the same speaker,
the same slot, words of change (or a relation declared to have one value), and an earlier turn that says nothing else.
Nothing is deleted, and `reinstate` undoes it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from holdfast.context.candidates import units_stating
from holdfast.messages.checks import check_name
from holdfast.settings import Settings
from holdfast.store.contract import NO_DEADLINE, NO_LIMIT, Reinstatement, Store, Supersession
from holdfast.store.queries import StatementQuery
from holdfast.text.changes import (
    StatementChange,
    find_changes,
    is_quoting,
    read_assertions_of,
    speaks_of_change,
)
from holdfast.text.facts import facts_of, speaker_of
from holdfast.text.instructions import instructions_of
from holdfast.text.names import Aliases, aliases_of
from holdfast.text.questions import asks_only
from holdfast.text.sentences import PROSE
from holdfast.text.statements import LedgerEntry, StatementLedger
from holdfast.text.terms import terms
from holdfast.text.words import words
from holdfast.types import (
    FACTS,
    INSTRUCTIONS,
    Decision,
    DecisionKind,
    FactTable,
    KnownFact,
    Unit,
    View,
)
from holdfast.values import dataclass

# Of one subject and relation so many facts are looked at: a person has few homes, and may use many things.
_MOST_STATED = 32
# "I live in …" has one word besides its value; with others that its change does not repeat, it says more.
_PLAIN = frozenset(term for word in words("changes", "plain") for term in terms(word))


@dataclass(frozen=True, slots=True)
class Superseded:
    """An earlier unit that a new one replaces, and how that was seen."""

    old: Unit
    new: Unit
    change: StatementChange

    @property
    def owner(self) -> View:
        """Return whose units they are."""
        return View.of_owner(self.new)

    @property
    def why(self) -> str:
        """Say it in words, for `show` and `explain`."""
        seen = f" (said: {self.change.words})" if self.change.words else ""
        return f"{self.change.slot}: {self.change.old} → {self.change.new or 'ended'}{seen}"


def find_superseded(store: Store, units: Sequence[Unit], settings: Settings) -> list[Superseded]:
    """Return what some turns, just indexed, replace. Each unit is replaced once.

    Only what was known before is replaced: a turn that arrives after its change stays.
    """
    found: dict[str, Superseded] = {}
    functional = frozenset(settings.symbolic.functional)
    for one in units:
        unit, earlier = _read_earlier(store, one, settings) if _is_concerned(one, functional) else (one, [])
        for old in earlier:
            if old.id not in found and (change := _change(unit, old, functional)) is not None:
                found[old.id] = Superseded(old, unit, change)
    return [*found.values()]


def _is_concerned(unit: Unit, functional: frozenset[str]) -> bool:
    """Return whether a turn may replace another: most have no word of change, and are not read for it."""
    if not functional and not speaks_of_change(unit.text):
        return False
    return any(one.may_change(functional) for one in read_assertions_of(unit))


def _change(new: Unit, old: Unit, functional: frozenset[str]) -> StatementChange | None:
    # A turn that says more than what changed stays: hiding it would lose the rest.
    if old.pinned or "superseded" in old.overruled or is_quoting(new.text) or len(PROSE.spans(old.text)) != 1:
        return None
    before = read_assertions_of(old)
    made = find_changes(read_assertions_of(new), before, functional)
    gone = {one.old for one in made}
    if not made or not all(one.value in gone for one in before):
        return None
    said_again = (new.text, *(one.old for one in made if one.new), *(f"{one.subject} {one.slot}" for one in before))
    return made[0] if set(terms(old.text)) <= _PLAIN.union(*map(terms, said_again)) else None


def _read_earlier(store: Store, unit: Unit, settings: Settings) -> tuple[Unit, list[Unit]]:
    """Return a unit as the store has it, which gave it its position, and what it may replace, oldest first.

    Those are earlier turns of the same speaker that state a fact of the same subject and relation.
    """
    said, aliases = read_assertions_of(unit), aliases_of(settings.analysis.aliases)
    slots, subjects = {one.slot for one in said}, {aliases.symbol(one.subject) for one in said}
    gone = {aliases.symbol(one.replaces or one.value) for one in said if one.replaces or one.ended}
    with store.reading(View.of_owner(unit)) as reading:
        kept = reading.units([unit.id]).get(unit.id)
        if kept is None:
            return unit, []
        known = reading.facts()
        facts = [*known.about(subjects, _MOST_STATED), *known.between(subjects, gone)]
        ids = [source for fact in facts if fact.relation in slots for source in fact.sources]
        units = reading.units([*dict.fromkeys(ids)]).values()
    earlier = (one for one in units if one.moment < kept.moment and _is_comparable(one, kept))
    return kept, sorted(earlier, key=lambda one: one.moment)


def _is_comparable(one: Unit, unit: Unit) -> bool:
    """Return whether another turn of the same speaker could be replaced by this one, or replace it."""
    return (
        one.kind == "turn"
        and one.author == unit.author
        and (one.user, one.agent) == (unit.user, unit.agent)
        and speaker_of(one) == speaker_of(unit)
        and one.superseded_by is None
    )


def list_facts(
    store: Store, view: View, settings: Settings, subject: str | None = None, relation: str | None = None
) -> FactTable:
    """Return the statements that hold as far as is known; without `current_only`, those that ended too."""
    subject, relation = check_name("subject", subject, optional=True), check_name("relation", relation, optional=True)
    aliases = aliases_of(settings.analysis.aliases)
    every = dataclasses.replace(view, current_only=False, hide_covered=False)
    kinds = FACTS | INSTRUCTIONS if settings.assembly.standing_share else FACTS
    with store.reading(every) as reading, store.reading(dataclasses.replace(every, current_only=True)) as present:
        units = units_stating(reading, kinds)
        current = frozenset(present.propose(StatementQuery(kinds), NO_LIMIT, NO_DEADLINE).ids)
        ids = [unit.id for unit in units if unit.author == "document"]
        names = dict(zip(ids, reading.columns(ids, ("document",))["document"].tolist(), strict=True)) if ids else {}
        successors = reading.units([*{unit.superseded_by for unit in units if unit.superseded_by}])
    ledger = StatementLedger(aliases, frozenset(settings.symbolic.functional), successors)
    for unit in units:
        ledger.enter(unit, names.get(unit.id) or "")
        if kinds & INSTRUCTIONS:
            ledger.instruct(unit)
    entries = [*ledger.ended, *ledger.holding.values()]
    known = _mark_earlier(entries, [entry.known(current, successors) for entry in entries], aliases)
    wanted = aliases.symbol(subject) if subject is not None else None
    kept = [one for one in sorted(known, key=lambda one: one.line) if one.current or not view.current_only]
    kept = [one for one in kept if relation in (None, one.relation) and wanted in (None, aliases.symbol(one.subject))]
    return FactTable(sorted(kept, key=lambda one: (one.document, one.subject.casefold(), one.relation, one.since)))


def _mark_earlier(entries: Sequence[LedgerEntry], known: Sequence[KnownFact], aliases: Aliases) -> list[KnownFact]:
    """Mark what was said before a later turn that states something else of the same subject and relation."""

    def about(fact: KnownFact) -> tuple[str, str] | None:
        told = fact.current and not fact.document and fact.relation != "instruction"
        return (aliases.symbol(fact.subject), fact.relation) if told else None

    last = [entry.units[-1] for entry in entries]
    latest = {
        about(fact): unit for unit, fact in sorted(zip(last, known, strict=True), key=lambda pair: pair[0].moment)
    }
    return [
        dataclasses.replace(fact, later_in=later.id, later_at=later.event_time)
        if about(fact) and (later := latest[about(fact)]).moment > unit.moment and "earlier" not in unit.overruled
        else fact
        for unit, fact in zip(last, known, strict=True)
    ]


# --------------------------------------------------------------------------------- what was decided, and its reversal


def find_successor(store: Store, unit: Unit, settings: Settings) -> Superseded | None:
    """Return the turn that plainly replaces another one, whether or not that was overruled."""
    old, functional = unit.evolve(overruled=()), frozenset(settings.symbolic.functional)
    with store.reading(View.of_owner(unit)) as reading:
        later = [one for one in units_stating(reading, FACTS) if one.moment > old.moment and _is_comparable(one, old)]
    for new in later:
        if (change := _change(new, old, functional)) is not None:
            return Superseded(old, new, change)
    return None


def _why_superseded(store: Store, _: View, unit: Unit, settings: Settings) -> str:
    if unit.superseded_by is not None:
        return unit.superseded_why if unit.kind != "summary" else ""
    found = find_successor(store, unit, settings) if "superseded" in unit.overruled else None
    return found.why if found else ""


def _why_standing(_store: Store, _: View, unit: Unit, settings: Settings) -> str:
    told = instructions_of(unit.evolve(overruled=())) if settings.assembly.standing_share else ()
    return " ".join(f"{'takes back: ' if one.revokes else ''}{one.text}" for one in told)


def _why_question(_store: Store, _: View, unit: Unit, settings: Settings) -> str:
    asks = settings.stages.questions and asks_only(unit.evolve(overruled=()))
    return "it only asks, and ranks below what states something" if asks else ""


def _why_earlier(store: Store, view: View, unit: Unit, settings: Settings) -> str:
    # The whole table is read for it, so that only what states something is looked for.
    table = list_facts(store, view, settings) if facts_of(unit) or read_assertions_of(unit) else ()
    return " ".join(f"{one.line}" for one in table if one.later_in and unit.id in one.sources)


_DECIDED: dict[DecisionKind, Callable[[Store, View, Unit, Settings], str]] = {
    "superseded": _why_superseded, "standing": _why_standing, "question": _why_question, "earlier": _why_earlier,
}  # fmt: skip


def list_decisions(store: Store, view: View, unit: Unit, settings: Settings) -> tuple[Decision, ...]:
    """Return what was decided about a unit automatically, and what of it its owner overruled."""
    found = ((kind, why(store, view, unit, settings)) for kind, why in _DECIDED.items())
    return tuple(Decision(kind, why, kind in unit.overruled) for kind, why in found if why or kind in unit.overruled)


Revise = Callable[[Mapping[str, Any]], Unit]


def reinstate(store: Store, view: View, unit: Unit, settings: Settings, revise: Revise) -> None:
    """Restore a superseded unit, for good where that was decided automatically."""
    if _why_superseded(store, view, unit, settings):
        overrule(store, view, unit, settings, "superseded", revise, undo=False)
    else:
        store.apply([Reinstatement(view, unit.id, view.now)])


def overrule(
    store: Store, view: View, unit: Unit, settings: Settings, kind: DecisionKind, revise: Revise, *, undo: bool
) -> None:  # fmt: skip
    """Keep with a unit that a decision about it does not hold, or that it holds again, and let that take effect."""
    if undo == (kind in unit.overruled):
        told = {*unit.overruled} ^ {kind}
        revise({"overruled": tuple(one for one in _DECIDED if one in told)})
    if kind != "superseded":
        return
    if not undo and unit.superseded_why:
        store.apply([Reinstatement(view, unit.id, view.now)])
    elif undo and unit.superseded_by is None and (found := find_successor(store, unit, settings)):
        store.apply([Supersession(view, unit.id, found.new.id, view.now, found.why)])
