"""What units state, read together: the facts that hold now, and what the user has told the assistant for good (C19).

Nothing of this is stored. The index knows which units state something; their words are read again in the order in
which they were said, so that the table always fits the units that are left. A unit may state several facts of which
one has changed: here that fact ends, while the unit is still recalled.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from holdfast.messages.checks import check_name
from holdfast.settings import Settings
from holdfast.store.contract import ALL, NO_HURRY, Reading, StatementQuery, Store
from holdfast.text.changes import Assertion, find_change, fulfil, is_quoting, read_told
from holdfast.text.facts import CONFIDENCE, facts_of, speaker_of
from holdfast.text.instructions import Instruction, instructions_of
from holdfast.text.symbols import Aliases, aliases_of
from holdfast.types import FACTS, INSTRUCTIONS, FactTable, KnownFact, Unit, View
from holdfast.types.contexts import Standing

# Slots of changes that only say what became of a slot: its name is that of the statement which they change.
_NAMELESS = ("", "is reset", "gone")
_MOST_READ = 64  # nobody keeps more instructions in mind


def list_facts(
    store: Store, view: View, settings: Settings, subject: str | None = None, relation: str | None = None
) -> FactTable:
    """Return what is known now, or as of the view's moment; without `current_only`, what was known before too."""
    subject, relation = check_name("subject", subject, optional=True), check_name("relation", relation, optional=True)
    aliases = aliases_of(settings.analysis.aliases)
    every = dataclasses.replace(view, current_only=False, hide_covered=False)
    with store.reading(every) as reading, store.reading(dataclasses.replace(every, current_only=True)) as present:
        units = _stating(reading, FACTS | INSTRUCTIONS)
        current = frozenset(present.propose(StatementQuery(FACTS | INSTRUCTIONS), ALL, NO_HURRY).ids)
        ids = [unit.id for unit in units if unit.author == "document"]
        names = dict(zip(ids, reading.columns(ids, ("document",))["document"].tolist(), strict=True)) if ids else {}
        successors = reading.units([*{unit.superseded_by for unit in units if unit.superseded_by}])
    ledger = _Ledger(aliases, frozenset(settings.symbolic.functional), successors)
    for unit in units:
        ledger.enter(unit, names.get(unit.id) or "")
    entries = (entry for entry in (*ledger.ended, *ledger.holding.values()) if entry.is_shown)
    known = (entry.known(current, successors) for entry in entries)
    wanted = aliases.symbol(subject) if subject is not None else None
    kept = [one for one in sorted(known, key=lambda one: one.line) if one.current or not view.current_only]
    kept = [one for one in kept if relation in (None, one.relation) and wanted in (None, aliases.symbol(one.subject))]
    return FactTable(sorted(kept, key=lambda one: (one.document, one.subject.casefold(), one.relation, one.since)))


def standing_instructions(store: Store, view: View) -> list[Standing]:
    """Return what the user has told the assistant and not taken back, the newest first, whatever the filters."""
    ledger = _Ledger(Aliases())
    with store.reading(dataclasses.replace(view, current_only=True, hide_covered=False, filters=None)) as reading:
        for unit in _stating(reading, INSTRUCTIONS, _MOST_READ):
            ledger.instruct(unit)
    newest = sorted(ledger.holding.values(), key=lambda entry: entry.units[-1].moment, reverse=True)
    return [Standing(one.units[-1], one.said.value, one.told is not None and one.told.at_times) for one in newest]


def _stating(reading: Reading, kinds: int, most: int = ALL) -> list[Unit]:
    """Return the visible units that state something of these kinds, oldest first."""
    ids = reading.propose(StatementQuery(kinds), most, NO_HURRY).ids
    return sorted(reading.units(ids).values(), key=lambda unit: unit.moment)


@dataclass(slots=True)
class _Entry:
    """A fact or an instruction while statements are entered: what a later one may change, and who said it."""

    said: Assertion
    units: list[Unit]
    confidence: float = 1.0
    document: str = ""
    told: Instruction | None = None
    replaced: _Entry | None = None
    ended_by: Unit | None = None

    @property
    def is_shown(self) -> bool:
        """Return whether the table has it: what is told by the way only where it has changed."""
        return not self.said.end or self.said.listed or bool(self.replaced or self.ended_by)

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
    plans: list[Assertion] = field(default_factory=list)

    def enter(self, unit: Unit, document: str) -> None:
        """Enter what a unit states; what it changes ends first."""
        said = fulfil(read_told(unit), self.plans) if unit.fact is None else ()
        self.plans += [one for one in said if one.planned]
        changing = [one for one in said if one.may_change(self.functional) and not is_quoting(unit.text)]
        replaced = []
        if changing or unit.id in self.successors:
            own = [entry for entry in self.holding.values() if not entry.document]
            replaced = [entry for entry in own if all(one.superseded_by == unit.id for one in entry.units)]
            for new in changing:
                replaced += [one for one in own if not one.told and find_change(new, one.said, self.functional)]
        self._end(replaced, unit)
        for statement, confidence in _statements(unit, said, replaced):
            self._add(_Entry(statement, [unit], confidence, document), replaced)
        self.instruct(unit)

    def instruct(self, unit: Unit) -> None:
        """Enter what a user tells the assistant, in their own words; what it takes back ends first."""
        speaker = speaker_of(unit)
        for told in instructions_of(unit) if unit.user is not None else ():
            known = [entry for entry in self.holding.values() if entry.told and told.ends(entry.told)]
            gone = [entry for entry in known if entry.said.speaker == speaker]
            self._end(gone, unit)
            if not told.revokes:
                said = Assertion(speaker, speaker, "instruction", told.text, 0, 0)
                self._add(_Entry(said, [unit], told=told), gone)

    def _end(self, entries: Sequence[_Entry], unit: Unit) -> None:
        for entry in {id(entry): entry for entry in entries}.values():
            entry.ended_by = unit
            self.ended.append(entry)
            del self.holding[self._key(entry)]

    def _add(self, new: _Entry, replaced: Sequence[_Entry]) -> None:
        known = self.holding.setdefault(self._key(new), new)
        if known is not new:
            known.units += new.units
            known.confidence = max(known.confidence, new.confidence)
        for old in replaced if known is new else ():
            new.replaced = old if self._key(old)[:2] == self._key(new)[:2] else new.replaced

    def _key(self, entry: _Entry) -> tuple[str, ...]:
        said, symbol = entry.said, self.aliases.symbol if entry.told is None else str  # a sentence is no name
        return (symbol(said.subject), said.slot, symbol(said.value), entry.document)


def _statements(
    unit: Unit, said: Sequence[Assertion], replaced: Sequence[_Entry]
) -> Iterator[tuple[Assertion, float]]:
    """Yield what a unit states: its facts, which stand at no place of their own, and what patterns read besides."""
    named = {one.value for one in said if one.listed}  # "my phone is a Pixel" is no class of phones
    for fact in dict.fromkeys(fact for fact, _ in facts_of(unit)):
        if fact.relation != "instance_of" or fact.object not in named:
            yield Assertion(speaker_of(unit), fact.subject, fact.relation, fact.object, 0, 0), fact.confidence
    for one in said:
        if not one.ended and one.slot in _NAMELESS:
            if old := next((entry.said for entry in replaced if find_change(one, entry.said)), None):
                yield dataclasses.replace(one, subject=old.subject, slot=old.slot), CONFIDENCE["identity"]
        elif one.told and one.end and not one.ended and not one.planned:
            yield one, CONFIDENCE["identity"]
