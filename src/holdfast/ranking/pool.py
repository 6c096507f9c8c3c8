"""The pool: candidates as columns, one row for each unit, best first.

A stage is rel' = (1 - w)·rel + w·signal on whole columns; the pool keeps every w and signal, so that an explanation
reads the numbers that ranked.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Generic, TypeVar
from weakref import ReferenceType, ref

import numpy as np
from numpy.typing import NDArray

from holdfast.kernels import Bools, Floats, Rows
from holdfast.kernels.vectors import order_rows
from holdfast.models.reader import Judgement, Turn
from holdfast.settings import StageSettings
from holdfast.types import Adjustment, Candidate, Cut, CutRows, QueryProfile, Readings, StrategyScores, Unit
from holdfast.values import dataclass

# What prefers units of the time asked for, or those nearest to it.
TIME_STAGES = ("time range", "nearest time")
C = TypeVar("C")
T = TypeVar("T")


@dataclass(frozen=True, slots=True, eq=False)
class StageEffect:
    """What one stage does: a weight and a signal for each row; a weight of 0 leaves a row as it is.

    `because` says in an explanation what a signal is, row by row where rows differ.
    """

    stage: str
    weight: Floats
    signal: Floats
    because: tuple[str, ...] | str = "signal"

    def take(self, rows: Rows) -> StageEffect:
        """Return the effect on some rows."""
        because = self.because if isinstance(self.because, str) else _pick(self.because, rows)
        return StageEffect(self.stage, self.weight[rows], self.signal[rows], because)

    def at(self, row: int) -> Adjustment:
        """Return what it does to one row."""
        because = self.because if isinstance(self.because, str) else self.because[row]
        return Adjustment(self.stage, float(self.weight[row]), float(self.signal[row]), because)


class RowSlice(Mapping[str, C]):
    """Some rows of columns, made when one is asked for: a question takes rows often and looks at few columns."""

    def __init__(self, columns: Mapping[str, C], rows: Rows, take: Callable[[C, Rows], C]) -> None:
        # Rows of rows are rows of the same columns.
        origin: tuple[Mapping[str, C], Rows] = columns.of(rows) if isinstance(columns, RowSlice) else (columns, rows)
        self._columns, self._rows = origin
        self._take = take
        self._made: dict[str, C] = {}

    def of(self, rows: Rows) -> tuple[Mapping[str, C], Rows]:
        """Return the columns that these are taken from, and which of their rows some rows of these are."""
        return self._columns, self._rows[rows]

    def __getitem__(self, name: str) -> C:
        if name not in self._made:
            self._made[name] = self._take(self._columns[name], self._rows)
        return self._made[name]

    def __contains__(self, name: object) -> bool:
        return name in self._columns

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)


def _at(column: NDArray[Any], rows: Rows) -> NDArray[Any]:
    return column[rows]


def _pick(values: tuple[str, ...], rows: Rows) -> tuple[str, ...]:
    return tuple(map(values.__getitem__, rows.tolist()))


@dataclass(frozen=True, slots=True, eq=False)
class Pool:
    """Candidates of one question.

    `scores` has the columns of each strategy, and `scored` the rows of which it said anything at all; `columns` is
    what the store knows of each unit (`ColumnName`), and `asks`: whether it only asks, and so answers nothing.
    `first` is the fused score before any stage. `merged` are the ids of copies that were folded into a row, best
    first, and `folded` what each of them scored. `replaced` has the turns that a later one seems to take the place
    of, each with that one, and `outdated` those that some later one put out of date. `readings` is what the reader
    says of those that it read together.
    """

    ids: tuple[str, ...]
    scores: Mapping[str, StrategyScores]
    scored: Mapping[str, Bools]
    columns: Mapping[str, NDArray[Any]]
    first: Floats
    fused: Floats
    rel: Floats
    full_marks: float
    merged: Mapping[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)
    folded: Mapping[str, float] = dataclasses.field(default_factory=dict)
    effects: tuple[StageEffect, ...] = ()
    replaced: Mapping[str, str] = dataclasses.field(default_factory=dict)
    readings: Readings | None = None
    outdated: frozenset[str] = frozenset()

    def __len__(self) -> int:
        return len(self.ids)

    def take(self, rows: Rows | Sequence[int]) -> Pool:
        """Return some rows, in that order."""
        rows = np.asarray(rows, dtype=np.intp)
        return dataclasses.replace(
            self,
            ids=_pick(self.ids, rows),
            scores=RowSlice(self.scores, rows, StrategyScores.take),
            scored=RowSlice(self.scored, rows, _at),
            columns=RowSlice(self.columns, rows, _at),
            first=self.first[rows],
            fused=self.fused[rows],
            rel=self.rel[rows],
            effects=tuple(effect.take(rows) for effect in self.effects),
        )

    def keep(self, mask: Bools) -> Pool:
        """Return the rows that `mask` names."""
        return self if mask.all() else self.take(np.flatnonzero(mask))

    def sorted(self) -> Pool:
        """Return the rows by fused score, best first, ties by id."""
        order = order_rows(self.fused, self.ids)
        return self if (order[1:] > order[:-1]).all() else self.take(order)

    def apply(self, effect: StageEffect) -> Pool:
        """Mix a stage's signal into the relevance: a convex mix, clamped last because floats round."""
        touched = effect.weight > 0.0
        if not touched.any():
            return self
        mixed = np.minimum((1.0 - effect.weight) * self.rel + effect.weight * effect.signal, 1.0)
        rel = np.where(touched, mixed, self.rel)
        fused = np.where(touched, rel * self.full_marks, self.fused)
        return dataclasses.replace(self, rel=rel, fused=fused, effects=(*self.effects, effect))

    def joined(self, other: Pool) -> Pool:
        """Return the rows of both; an effect of one of them leaves the rows of the other as they are."""
        return dataclasses.replace(
            self,
            ids=(*self.ids, *other.ids),
            scores={name: claims.joined(other.scores[name]) for name, claims in self.scores.items()},
            scored={name: np.concatenate([mask, other.scored[name]]) for name, mask in self.scored.items()},
            columns={name: np.concatenate([column, other.columns[name]]) for name, column in self.columns.items()},
            first=np.concatenate([self.first, other.first]),
            fused=np.concatenate([self.fused, other.fused]),
            rel=np.concatenate([self.rel, other.rel]),
            merged={**self.merged, **other.merged},
            folded={**self.folded, **other.folded},
            effects=_joined_effects(self, other),
        )

    def merge_copies(self) -> Pool:
        """Fold copies of the same words, said by the same one at the same time, into the best of them (C6)."""
        said = self.columns["said"].tolist()
        if len({*said}) == len(said):
            return self
        groups: dict[int, list[int]] = {}
        for row in order_rows(self.first, self.ids).tolist():
            groups.setdefault(said[row], []).append(row)
        copies = [row for _, *others in groups.values() for row in others]
        folded = {**self.folded, **{self.ids[row]: float(self.first[row]) for row in copies}}
        merged = {
            self.ids[best]: tuple(
                sorted(
                    (one for row in (best, *others) for one in self.ids_of(row) if one != self.ids[best]),
                    key=lambda one: (-folded[one], one),
                )
            )
            for best, *others in groups.values()
        }
        kept = np.zeros(len(self.ids), dtype=np.bool_)
        kept[[best for best, *_ in groups.values()]] = True
        return dataclasses.replace(
            self.keep(kept), merged={name: ids for name, ids in merged.items() if ids}, folded=folded
        )

    def ids_of(self, row: int) -> tuple[str, ...]:
        """Return the id of a row, and those of the copies in it."""
        return (self.ids[row], *self.merged.get(self.ids[row], ()))

    def rows_by_id(self) -> dict[str, int]:
        """Return the row of every id, copies included."""
        row_of = {unit_id: row for row, unit_id in enumerate(self.ids)}
        return row_of | {
            one: row_of[best] for best, others in self.merged.items() if best in row_of for one in others
        }

    # ------------------------------------------------------------------------------------------- one row

    @property
    def waits(self) -> Bools:
        """Return which units wait for their vectors."""
        found = np.zeros(len(self.ids), dtype=np.bool_)
        for claims in self.scores.values():
            found |= claims.waits
        return found

    @property
    def coverage(self) -> Floats:
        """Return the share of the question's idf mass that each unit matches."""
        found = np.zeros(len(self.ids))
        for claims in self.scores.values():
            found = np.maximum(found, claims.coverage)
        return found

    @property
    def proven(self) -> Bools:
        """Return which units carry a proof."""
        found = np.zeros(len(self.ids), dtype=np.bool_)
        for claims in self.scores.values():
            found |= claims.proven
        return found

    def cosine(self, row: int) -> float | None:
        """Return how near a unit is in meaning; None when nobody looked."""
        return float(self.scores["dense"].raw[row]) if "dense" in self.scores and self.scored["dense"][row] else None

    def cut_rows(self, rows: Rows, cut: Cut, needed: Floats | float, had: Floats | None = None) -> CutRows:
        """Return some rows as what a cut removes; they had their fused score, unless another measure is given."""
        ids = tuple(self.ids[row] for row in rows.tolist())
        return CutRows(cut, ids, self.merged, needed, self.fused[rows] if had is None else had)

    def candidate(self, row: int) -> Candidate:
        """Return one row as a value."""
        raws = {name: float(c.raw[row]) for name, c in self.scores.items() if self.scored[name][row]}
        made = tuple(effect.at(row) for effect in self.effects if effect.weight[row] > 0.0)
        return Candidate(
            self.ids[row],
            float(self.fused[row]),
            float(self.rel[row]),
            raws,
            self.merged.get(self.ids[row], ()),
            made,
        )

    def candidates(self) -> tuple[Candidate, ...]:
        """Return every row as a value, best first."""
        return tuple(self.candidate(row) for row in range(len(self.ids)))


def _joined_effects(one: Pool, other: Pool) -> tuple[StageEffect, ...]:
    """Return the effects of both pools, each over the rows of both, in the order of the stages."""
    found = []
    for effect in one.effects:
        twin = next((each for each in other.effects if each.stage == effect.stage), None)
        found.append(_padded(effect, twin, len(one), len(other)))
    known = {effect.stage for effect in one.effects}
    found += [_padded(None, effect, len(one), len(other)) for effect in other.effects if effect.stage not in known]
    return tuple(found)


def _padded(one: StageEffect | None, other: StageEffect | None, rows: int, others: int) -> StageEffect:
    first = one or StageEffect(other.stage if other else "", np.zeros(rows), np.zeros(rows))
    second = other or StageEffect(first.stage, np.zeros(others), np.zeros(others))
    return StageEffect(
        first.stage,
        np.concatenate([first.weight, second.weight]),
        np.concatenate([first.signal, second.signal]),
        _joined_reasons(first, second),
    )


def _joined_reasons(one: StageEffect, other: StageEffect) -> tuple[str, ...] | str:
    if isinstance(one.because, str) and one.because == other.because:
        return one.because
    both = [(effect, row) for effect in (one, other) for row in range(len(effect.weight))]
    return tuple(effect.at(row).because for effect, row in both)


# ---------------------------------------------------------------------------------- what stages work with


@dataclass(frozen=True, slots=True)
class ReadingInputs:
    """What reading together works with: the reader, and the hits as they would be ranked with their scores.

    `judge` reads turns together, `read_alone` one by one; `recipe` says what is read.
    `alpha` is the share of relevance in such a score.
    """

    judge: Callable[[str, Sequence[Turn]], Judgement]
    read_alone: Callable[[str, Sequence[Turn]], list[float]]
    rank: Callable[[Pool], tuple[Pool, Floats]]
    alpha: float
    recipe: str = "once"


@dataclass(frozen=True, slots=True)
class StageInputs:
    """What the stages of one question work with.

    `most` is how many hits the profile gives, `least` a relevance that passes every cut. `units` reads whole units,
    `find_names` says where names lead, and `join` gives a pool of further units with their fused scores. Without
    `reading` nothing is read together.
    """

    query: QueryProfile
    settings: StageSettings
    most: int
    units: Callable[[Sequence[str]], Mapping[str, Unit]]
    find_names: Callable[[Sequence[str], int, bool], Mapping[str, tuple[str, ...]]]
    join: Callable[[Sequence[str]], Pool]
    least: float = 0.0
    reading: ReadingInputs | None = None


Stage = Callable[[Pool, StageInputs], Pool]

# Units that are found again are read again; the words of so many take a few megabytes.
_UNITS_READ = 2048


class UnitCache(Generic[T]):
    """What is made of a unit's words, kept as long as the unit itself: what is erased must not live on (law 16)."""

    def __init__(self, derive: Callable[[Unit], T]) -> None:
        self._derive = derive
        self._known: dict[int, tuple[ReferenceType[Unit], T]] = {}

    def __call__(self, unit: Unit) -> T:
        """Return it."""
        number = id(unit)
        if (known := self._known.get(number)) is not None:
            return known[1]
        made = self._derive(unit)
        if len(self._known) >= _UNITS_READ:
            self._known.clear()
        self._known[number] = (ref(unit, lambda _: self._known.pop(number, None)), made)
        return made
