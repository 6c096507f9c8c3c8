"""What units state, read together: the facts that hold now, and what the user has told the assistant for good (C19).

Nothing of this is stored. The index knows which units state something; their words are read again in the order in
which they were said, so that the table always fits the units that are left. A unit may state several facts of which
one has changed: here that fact ends, while the unit is still recalled.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from holdfast.assembly.context import Standing
from holdfast.inputs.checks import check_name
from holdfast.language.changes import QUOTING, Assertion, find_change, read_told
from holdfast.language.facts import facts_of, speaker_of
from holdfast.language.instructions import Instruction, instructions_of
from holdfast.language.symbols import Aliases, aliases_of
from holdfast.settings import Settings
from holdfast.store.contract import ALL, NO_HURRY, Reading, StatementQuery, Store
from holdfast.types import FACTS, INSTRUCTIONS, FactTable, KnownFact, Unit, View

# Slots of changes that only say what became of a slot: its name is that of the statement which they change.
_NAMELESS = ("", "is reset")
# What a pattern reads outright is as sure as what a verb says.
_PATTERN_CONFIDENCE = 0.9
# Nobody keeps hundreds of instructions in mind; a turn of one line is shown as it is.
_MOST_READ, _SHORT = 256, 160


def list_facts(
    store: Store, view: View, settings: Settings, subject: str | None = None, relation: str | None = None
) -> FactTable:
    """Return what is known now, or as of the view's moment; without `current_only`, what was known before too."""
    subject, relation = check_name("subject", subject, optional=True), check_name("relation", relation, optional=True)
    aliases = aliases_of(settings.analysis.aliases)
    every = dataclasses.replace(view, current_only=False, hide_covered=False)
    with store.reading(every) as reading, store.reading(dataclasses.replace(every, current_only=True)) as present:
        units = _stating(reading, FACTS | INSTRUCTIONS)
        current = frozenset(unit.id for unit in _stating(present, FACTS | INSTRUCTIONS))
        ids = [unit.id for unit in units if unit.author == "document"]
        names = dict(zip(ids, reading.columns(ids, ("document",))["document"].tolist(), strict=True)) if ids else {}
        successors = reading.units([*{unit.superseded_by for unit in units if unit.superseded_by}])
    ledger = _Ledger(aliases, frozenset(settings.symbolic.functional), successors)
    for unit in units:
        ledger.enter(unit, names.get(unit.id) or "")
    known = (entry.known(current, successors) for entry in (*ledger.ended, *ledger.holding.values()))
    wanted = aliases.symbol(subject) if subject is not None else None
    kept = (one for one in known if one.current or not view.current_only)
    kept = (one for one in kept if relation in (None, one.relation) and wanted in (None, aliases.symbol(one.subject)))
    return FactTable(sorted(kept, key=lambda one: (one.document, one.subject.casefold(), one.relation, one.line)))


def standing_instructions(store: Store, view: View) -> list[Standing]:
    """Return what the user has told the assistant and not taken back, the newest first, whatever the filters."""
    wanted = dataclasses.replace(view, current_only=True, hide_covered=False, filters=None)
    ledger, told = _Ledger(Aliases()), dict[str, list[_Entry]]()
    with store.reading(wanted) as reading:
        for unit in _stating(reading, INSTRUCTIONS, _MOST_READ):
            ledger.instruct(unit)
    for entry in ledger.holding.values():
        told.setdefault(entry.units[-1].id, []).append(entry)
    found = []
    for own in sorted(told.values(), key=lambda own: own[0].units[-1].moment, reverse=True):
        unit, text = own[0].units[-1], " ".join(entry.said.value for entry in own)
        at_times = all(entry.told is not None and entry.told.at_times for entry in own)
        found.append(Standing(unit, unit.text if len(unit.text) <= _SHORT else text, at_times))
    return found


def _stating(reading: Reading, kinds: int, most: int = ALL) -> list[Unit]:
    """Return the visible units that state something of these kinds, oldest first."""
    ids = reading.propose(StatementQuery(kinds), most, NO_HURRY).ids
    return sorted(reading.units(ids).values(), key=lambda unit: unit.moment)


# --------------------------------------------------------------------------------------------- the ledger


@dataclass(slots=True)
class _Entry:
    """A fact or an instruction while statements are entered: what a later one may change, and who said it."""

    said: Assertion
    units: list[Unit]
    confidence: float
    document: str
    replaced: _Entry | None
    told: Instruction | None
    ended_by: Unit | None = None

    def known(self, current: frozenset[str], successors: Mapping[str, Unit]) -> KnownFact:
        """Return the fact as it stands at the end; it holds while a unit that states it does."""
        first, last, said, replaced = self.units[0], self.units[-1], self.said, self.replaced
        holds = self.ended_by is None and any(unit.id in current for unit in self.units)
        ended_by = None if holds else self.ended_by or successors.get(last.superseded_by or "")
        relation = said.slot.removeprefix("has ").strip() if said.end else said.slot  # of a pattern: "has phone"
        return KnownFact(
            subject=said.subject.removesuffix(f" {relation}") if said.end else said.subject,
            relation=relation.replace(" ", "_") if said.end else relation, value=said.value,
            since=first.valid_from or first.event_time, sources=tuple(dict.fromkeys(unit.id for unit in self.units)),
            confidence=self.confidence, document=self.document, current=holds,
            replaced=replaced.said.value if replaced else "", replaced_in=replaced.units[-1].id if replaced else "",
            until=ended_by.event_time if ended_by else None if holds else last.valid_to,
            ended_by=ended_by.id if ended_by else "",
        )  # fmt: skip


@dataclass(slots=True)
class _Ledger:
    """Statements by what they say, entered in the order in which they were said."""

    aliases: Aliases
    functional: frozenset[str] = frozenset()
    successors: Mapping[str, Unit] = field(default_factory=dict)
    holding: dict[tuple[str, ...], _Entry] = field(default_factory=dict)
    ended: list[_Entry] = field(default_factory=list)

    def enter(self, unit: Unit, document: str) -> None:
        """Enter what a unit states; what it changes ends first."""
        said = read_told(unit)
        changing = [one for one in said if one.marker or one.replaces or one.ended or one.slot in self.functional]
        changing = [] if changing and QUOTING.search(unit.text) else changing
        replaced = []
        if changing or unit.id in self.successors:
            own = [entry for entry in self.holding.values() if not entry.document]
            replaced = [entry for entry in own if all(one.superseded_by == unit.id for one in entry.units)]
            for new in changing:
                replaced += [one for one in own if not one.told and find_change(new, one.said, self.functional)]
        self._end(replaced, unit)
        for statement, confidence in _statements(unit, said, replaced):
            self._add(statement, unit, replaced, confidence, document)
        self.instruct(unit)

    def instruct(self, unit: Unit) -> None:
        """Enter what a user tells the assistant, in their own words; what it takes back ends first."""
        speaker = speaker_of(unit)
        for told in instructions_of(unit) if unit.user is not None else ():
            own = [entry for entry in self.holding.values() if entry.told and entry.said.speaker == speaker]
            gone = [entry for entry in own if entry.told and told.ends(entry.told)]
            self._end(gone, unit)
            if not told.revokes:
                self._add(Assertion(speaker, speaker, "instruction", told.text, 0, 0), unit, gone, told=told)

    def _end(self, entries: Sequence[_Entry], unit: Unit) -> None:
        for entry in {id(entry): entry for entry in entries}.values():
            entry.ended_by = unit
            self.ended.append(entry)
            del self.holding[self._key(entry.said, entry.document)]

    def _add(
        self, said: Assertion, unit: Unit, replaced: Sequence[_Entry], confidence: float = 1.0, document: str = "",
        told: Instruction | None = None,
    ) -> None:  # fmt: skip
        key = self._key(said, document)
        if (known := self.holding.get(key)) is not None:
            known.units.append(unit)
            known.confidence = max(known.confidence, confidence)
            return
        same = [one for one in replaced if self._key(one.said, "")[:2] == key[:2]]
        self.holding[key] = _Entry(said, [unit], confidence, document, same[-1] if same else None, told)

    def _key(self, said: Assertion, document: str) -> tuple[str, ...]:
        return (self.aliases.symbol(said.subject), said.slot, self.aliases.symbol(said.value), document)


def _statements(
    unit: Unit, said: Sequence[Assertion], replaced: Sequence[_Entry]
) -> Iterator[tuple[Assertion, float]]:
    """Yield what a unit states: its facts, which stand at no place of their own, and what patterns read besides."""
    named = {one.value for one in said if " " in one.slot}  # "my phone is a Pixel" is no class of phones
    for fact in dict.fromkeys(fact for fact, _ in facts_of(unit)):
        if fact.relation != "instance_of" or fact.object not in named:
            yield Assertion(speaker_of(unit), fact.subject, fact.relation, fact.object, 0, 0), fact.confidence
    for one in said:
        if not one.ended and one.slot in _NAMELESS:
            if old := next((entry.said for entry in replaced if find_change(one, entry.said)), None):
                yield dataclasses.replace(one, subject=old.subject, slot=old.slot), _PATTERN_CONFIDENCE
        elif not one.ended and " " in one.slot:
            yield one, _PATTERN_CONFIDENCE
