"""Copying everything of one store into another, whichever back ends they are, and comparing the two unit by unit.

What is derived is not copied: the other store derives it again. What is there already is known, so that a copy that
was interrupted goes on where it was. One state is copied and compared, whatever is written meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import UTC, datetime
from itertools import islice, zip_longest
from typing import Protocol

from holdfast.errors import EmbeddingSpaceError, InputError
from holdfast.store.contract import DocumentChange, Reading, Restoration, SpaceChange, Store, Update
from holdfast.types import Document, StoredUnit, View, WriteResult
from holdfast.values import dataclass

# Enough that a transaction costs little of it, little enough that an interruption loses little.
_TOGETHER = 500
# A report of a copy that went wrong all over needs no list of all units.
_MOST_NAMED = 20
# What is kept is the same at any time; a view has to name one.
_ANY_TIME = datetime(1970, 1, 1, tzinfo=UTC)
# Is told which step is under way, how many units are done in it, and how many there are.
CopyProgress = Callable[[str, int, int], None]
# Writes marks, and says what became of each; see `Store.apply`.
WriteBatch = Callable[[Sequence[Update]], list[WriteResult | None]]
# What tells one thing that is kept from the others of its tenant.
_Place = tuple[str, str | None, str]


class Copyable(Store, Protocol):
    """A store that can be copied whole: it knows its tenants, and how it takes in much at once."""

    def tenants(self) -> list[str]:
        """Return the names of all that have something here, or had."""
        ...

    def loading(self, units: int) -> AbstractContextManager[WriteBatch]:
        """Return how about so many units are written at once.

        At the end of the block it is as if they had been written bit by bit; not before.
        """
        ...


@dataclass(frozen=True, slots=True)
class CopyReport:
    """What a copy did. `differing` names the first units and documents that are not there as they are here.

    `known` were there already. `left` are vectors of embedding spaces that are no longer searched.
    """

    tenants: int = 0
    units: int = 0
    versions: int = 0
    vectors: int = 0
    documents: int = 0
    added: int = 0
    updated: int = 0
    known: int = 0
    left: int = 0
    different: int = 0
    differing: tuple[str, ...] = ()

    @property
    def whole(self) -> bool:
        """Return whether everything is there as it is here."""
        return self.different == 0


def copy_store(
    source: Copyable, target: Copyable, progress: CopyProgress = lambda _step, _done, _of: None
) -> CopyReport:
    """Copy all tenants, then compare both stores; done again, it goes on.

    Raises:
        InputError: the two are one store.
        EmbeddingSpaceError: the other store has vectors that these cannot be compared with.
    """
    here, there = (store.stats(view_of("")).location for store in (source, target))
    if here == there:
        raise InputError(f"{here} would be copied into itself; name another target")
    space = _agree_on_space(source, target)
    units = source.stats(view_of(""), whole=True).store_units or 0
    copying = _Copying(target, space, units, progress)
    report, tenants = CopyReport(), source.tenants()
    with source.reading(view_of("")):  # what is read inside is of one state
        with target.loading(units) as write:
            for tenant in tenants:
                with source.reading(view_of(tenant)) as reading:
                    report = copying.copy(report, reading, write)
        for tenant in tenants:
            with source.reading(view_of(tenant)) as reading:
                report = copying.compare(report, reading)
    return report


def _agree_on_space(source: Store, target: Store) -> str | None:
    """Let both stores have vectors of the same space, so that none has to be made again."""
    mine, theirs = source.space(), target.space()
    if mine is not None and theirs is None:
        target.apply([SpaceChange(mine)])
    elif mine is not None and theirs != mine:
        raise EmbeddingSpaceError(
            f"the vectors here are of {mine}, and those there of {theirs}; run `holdfast reembed` on one of the two "
            "first, so that both have the same"
        )
    return mine


def view_of(tenant: str) -> View:
    """Return a view for whatever does not depend on who asks and when: all that a tenant keeps, or its numbers."""
    return View(tenant=tenant, user="", now=_ANY_TIME, reference_time=_ANY_TIME)


class _Copying:
    """Copies into one store, and counts."""

    def __init__(self, target: Copyable, space: str | None, units: int, progress: CopyProgress) -> None:
        self._target = target
        self._space = space
        self._units = units
        self._progress = progress
        self._written, self._compared = 0, 0

    def copy(self, report: CopyReport, reading: Reading, write: WriteBatch) -> CopyReport:
        """Write what a tenant has, in the order in which it was first written."""
        found = iter(reading.stored(whole=True))
        while batch := [*islice(found, _TOGETHER)]:
            report = self._count(report, batch, write([self._mark_of(one) for one in batch]))
            self._written += sum(isinstance(one, StoredUnit) for one in batch)
            self._progress("copying", self._written, max(self._units, self._written))
        return report

    def _mark_of(self, one: Document | StoredUnit) -> Update:
        return DocumentChange(one) if isinstance(one, Document) else Restoration(self._searched(one))

    def _searched(self, kept: StoredUnit) -> StoredUnit:
        """Return a unit without vectors that nothing is searched by: another store would not take them."""
        vectors = tuple(None if one is None or one.space != self._space else one for one in kept.vectors)
        return kept if vectors == kept.vectors else replace(kept, vectors=vectors)

    def _count(
        self, report: CopyReport, batch: Sequence[Document | StoredUnit], written: Sequence[WriteResult | None]
    ) -> CopyReport:
        kept = [one for one in batch if isinstance(one, StoredUnit)]
        statuses = [one.status for one in written if one is not None]
        held = [[one is not None for one in unit.vectors] for unit in kept]
        searched = [[one is not None for one in self._searched(unit).vectors] for unit in kept]
        vectors = sum(map(sum, searched))
        return replace(
            report,
            units=report.units + len(kept),
            versions=report.versions + sum(len(one.versions) for one in kept),
            vectors=report.vectors + vectors,
            left=report.left + sum(map(sum, held)) - vectors,
            documents=report.documents + len(batch) - len(kept),
            added=report.added + statuses.count("added"),
            updated=report.updated + statuses.count("updated"),
            known=report.known + statuses.count("duplicate"),
        )

    def compare(self, report: CopyReport, reading: Reading) -> CopyReport:
        """Read a tenant back, and name what is not there as it is here."""
        wrong: list[str] = []
        differing = 0
        with self._target.reading(reading.view) as there:
            for one in differences(
                map(self._counted, reading.stored(whole=True)), there.stored(whole=True), self._searched
            ):
                differing += 1
                if len(report.differing) + len(wrong) < _MOST_NAMED:
                    wrong.append(_name_of(one))
        return replace(
            report,
            tenants=report.tenants + 1,
            different=report.different + differing,
            differing=(*report.differing, *wrong),
        )

    def _counted(self, one: Document | StoredUnit) -> Document | StoredUnit:
        if isinstance(one, StoredUnit):
            self._compared += 1
            if self._compared % _TOGETHER == 0 or self._compared == self._units:
                self._progress("comparing", self._compared, max(self._units, self._compared))
        return one


def differences(
    here: Iterable[Document | StoredUnit],
    there: Iterable[Document | StoredUnit],
    searched: Callable[[StoredUnit], StoredUnit],
) -> Iterator[Document | StoredUnit]:
    """Yield what is here and not the same there; what is there alone is nobody's loss.

    Both are read in the order in which they were written, which is nearly the same: little is held.
    """
    waiting: tuple[dict[_Place, Document | StoredUnit], ...] = ({}, {})
    for pair in zip_longest(here, there):
        for side, one in enumerate(pair):
            if one is None:
                continue
            other = waiting[1 - side].pop(_place_of(one), None)
            if other is None:
                waiting[side][_place_of(one)] = one
            elif not _is_same(one, other, searched):
                yield one
    yield from waiting[0].values()


def _place_of(one: Document | StoredUnit) -> _Place:
    return ("document", one.user, one.name) if isinstance(one, Document) else ("unit", one.unit.user, one.unit.id)


def _is_same(
    one: Document | StoredUnit, other: Document | StoredUnit, searched: Callable[[StoredUnit], StoredUnit]
) -> bool:
    if isinstance(one, Document) or isinstance(other, Document):
        return one == other
    return searched(one) == searched(other) and _fate(one) == _fate(other)


def _fate(kept: StoredUnit) -> tuple[object, ...]:
    """Return what became of a unit, which no comparison of units looks at."""
    unit = kept.unit
    return unit.superseded_by, unit.superseded_why, unit.covered_by, unit.gate, unit.access_count


def _name_of(one: Document | StoredUnit) -> str:
    if isinstance(one, Document):
        return f"the document {one.name} of {one.user or 'everyone'} of tenant {one.tenant}"
    return f"the unit {one.unit.id} of {one.unit.user or 'everyone'} of tenant {one.unit.tenant}"
