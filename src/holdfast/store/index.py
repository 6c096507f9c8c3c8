"""The in-process search index: one shard per owner, postings in numpy arrays, exact after every change.

A shard holds the current version of every unit of one owner, and nothing of any other: isolation is a matter of
which shards a call may open. Postings sit in one packed block; new units collect in a small tail that is folded
into the block when it has grown by a quarter, so that adding stays linear. A removed unit is masked at once and
its postings leave at the next fold. Document frequencies are counted from the postings when they are asked for:
there is no second copy that could drift.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.kernels import bm25, topk
from holdfast.store.base import LexicalEvidence, LexicalQuery, Proposal
from holdfast.types import FIELDS, ROLES, Analysis, Deadline, Role, Unit, View

# Below this the tail is not worth folding; above it, folding at a quarter keeps the total work linear.
_SMALL_TAIL = 4096
_TAIL_SHARE = 0.25
_NEVER = np.inf
_LONG_AGO = -np.inf

Ints = NDArray[np.int32]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Postings:
    """The units that hold one term in one field, ascending, and how often."""

    units: Ints
    counts: Ints


_EMPTY = Postings(np.zeros(0, dtype=np.int32), np.zeros(0, dtype=np.int32))


class Column:
    """A numpy array that can be appended to."""

    def __init__(self, dtype: object, width: int = 0) -> None:
        self._shape = (width,) if width else ()
        self._data = np.zeros((16, *self._shape), dtype=dtype)  # type: ignore[call-overload]
        self._size = 0

    def append(self, value: object) -> None:
        """Add one row."""
        if self._size == len(self._data):
            grown = np.zeros((2 * self._size, *self._shape), dtype=self._data.dtype)
            grown[: self._size] = self._data
            self._data = grown
        self._data[self._size] = value
        self._size += 1

    @property
    def values(self) -> NDArray[Any]:
        """Return the rows written so far, as a view."""
        written: NDArray[Any] = self._data[: self._size]
        return written

    def keep(self, mask: Bools) -> None:
        """Drop the rows that `mask` does not name."""
        kept = self._data[: self._size][mask]
        self._data, self._size = kept if len(kept) else self._data[:16], len(kept)


class Shard:
    """Everything that is searched for one owner."""

    def __init__(self) -> None:
        self.keys: list[int] = []
        self.ids: list[str] = []
        self.place_of_key: dict[int, int] = {}
        self.place_of_id: dict[str, int] = {}
        self.speakers: Counter[str] = Counter()
        self.unit_count = 0
        self.field_totals = [0] * len(FIELDS)
        self._columns = {
            "alive": Column(np.bool_),
            "superseded": Column(np.bool_),
            "role": Column(np.uint8),
            "session": Column(np.int32),
            "agent": Column(np.int32),
            "speaker": Column(np.int32),
            "anchor_density": Column(np.float32),
            "expires": Column(np.float64),
            "valid_from": Column(np.float64),
            "valid_to": Column(np.float64),
            "lengths": Column(np.int32, len(FIELDS)),
        }
        self._names: dict[str | None, int] = {None: 0}
        # Whether any unit expires or is valid for a time only: most shards can skip looking.
        self._bounded = False
        self._folding = True
        self._vocabulary: list[dict[str, int]] = [{} for _ in FIELDS]
        self._lists = 0
        self._starts = np.zeros(1, dtype=np.int64)
        self._block = _EMPTY
        self._tail: dict[int, tuple[array[int], array[int]]] = {}
        self._tail_size = 0

    def column(self, name: str) -> NDArray[Any]:
        """Return one value per place, dead places included."""
        return self._columns[name].values

    # ------------------------------------------------------------------------------------------ changing

    def add(self, key: int, unit: Unit, analysis: Analysis, *, superseded: bool) -> None:
        """Add a unit, or replace the version of it that is here."""
        self.remove(key)
        place = len(self.keys)
        self.keys.append(key)
        self.ids.append(unit.id)
        self.place_of_key[key] = place
        self.place_of_id[unit.id] = place
        self.speakers[unit.speaker] += 1
        self._bounded |= not unit.pinned and unit.expires_at is not None
        self._bounded |= unit.valid_from is not None or unit.valid_to is not None
        lengths = [len(field) for field in analysis.terms]
        row: dict[str, object] = {
            "alive": True,
            "superseded": superseded,
            "role": ROLES.index(unit.role),
            "session": self._code(unit.session),
            "agent": self._code(unit.agent),
            "speaker": self._code(unit.speaker),
            "anchor_density": analysis.anchor_density,
            "expires": _NEVER if unit.pinned else _seconds(unit.expires_at, _NEVER),
            "valid_from": _seconds(unit.valid_from, _LONG_AGO),
            "valid_to": _seconds(unit.valid_to, _NEVER),
            "lengths": lengths,
        }
        for name, value in row.items():
            self._columns[name].append(value)
        self.unit_count += 1
        for f, field in enumerate(analysis.terms):
            self.field_totals[f] += lengths[f]
            self._append_postings(f, field, place)
        if self._folding and self._tail_size > max(_SMALL_TAIL, _TAIL_SHARE * len(self._block.units)):
            self._fold()

    @contextmanager
    def bulk(self) -> Iterator[None]:
        """Add many units and fold once, at the end."""
        self._folding = False
        try:
            yield
        finally:
            self._folding = True
        self._fold()

    def remove(self, key: int) -> None:
        """Forget a unit; unknown keys are fine."""
        place = self.place_of_key.pop(key, None)
        if place is None:
            return
        self.column("alive")[place] = False
        speaker = self._name(int(self.column("speaker")[place]))
        self.speakers[speaker] -= 1
        if not self.speakers[speaker]:
            del self.speakers[speaker]
        if self.place_of_id.get(self.ids[place]) == place:
            del self.place_of_id[self.ids[place]]
        self.unit_count -= 1
        for f, length in enumerate(self.column("lengths")[place].tolist()):
            self.field_totals[f] -= length

    def _append_postings(self, field: int, terms: Sequence[str], place: int) -> None:
        counts: dict[str, int] = {}
        for term in terms:
            counts[term] = counts.get(term, 0) + 1
        for term, count in counts.items():
            number = self._vocabulary[field].get(term)
            if number is None:
                number = self._vocabulary[field][term] = self._lists
                self._lists += 1
            entry = self._tail.get(number)
            if entry is None:
                entry = self._tail[number] = (array("i"), array("i"))
            entry[0].append(place)
            entry[1].append(count)
        self._tail_size += len(counts)

    def _fold(self) -> None:
        """Fold the tail into the block, drop dead postings and renumber the places that are left."""
        alive = self.column("alive").astype(np.bool_)
        block_terms = np.repeat(np.arange(len(self._starts) - 1), np.diff(self._starts))
        tail = [(number, *entry) for number, entry in self._tail.items()]
        terms = np.concatenate([block_terms, *(np.full(len(units), number) for number, units, _ in tail)])
        units = np.concatenate([self._block.units, *(np.asarray(units, dtype=np.int32) for _, units, _ in tail)])
        counts = np.concatenate([self._block.counts, *(np.asarray(c, dtype=np.int32) for _, _, c in tail)])
        if not alive.all():
            live = alive[units]
            terms, units, counts = terms[live], units[live], counts[live]
            units = (np.cumsum(alive) - 1).astype(np.int32)[units]
            self._renumber(alive)
        # Stable: inside a term, block before tail, and both ascend.
        order = np.argsort(terms, kind="stable")
        self._starts = np.zeros(self._lists + 1, dtype=np.int64)
        np.cumsum(np.bincount(terms, minlength=self._lists), out=self._starts[1:])
        self._block = Postings(units[order], counts[order])
        self._tail, self._tail_size = {}, 0

    def _renumber(self, alive: Bools) -> None:
        places = np.flatnonzero(alive).tolist()
        self.keys = [self.keys[place] for place in places]
        self.ids = [self.ids[place] for place in places]
        self.place_of_key = {key: place for place, key in enumerate(self.keys)}
        self.place_of_id = {unit_id: place for place, unit_id in enumerate(self.ids)}
        for column in self._columns.values():
            column.keep(alive)

    def _code(self, name: str | None) -> int:
        return self._names.setdefault(name, len(self._names))

    def _name(self, code: int) -> str:
        return next(name or "" for name, known in self._names.items() if known == code)

    # ------------------------------------------------------------------------------------------- reading

    def postings(self, term: str) -> list[tuple[int, Postings]]:
        """Return, field by field, the places that hold `term`, ascending; dead places may be among them."""
        numbers = ((f, words[term]) for f, words in enumerate(self._vocabulary) if term in words)
        return [(f, self._posting_list(number)) for f, number in numbers]

    def _posting_list(self, number: int) -> Postings:
        found = _EMPTY
        if number < len(self._starts) - 1:
            span = slice(self._starts[number], self._starts[number + 1])
            found = Postings(self._block.units[span], self._block.counts[span])
        if number in self._tail:
            units, counts = self._tail[number]
            found = Postings(
                np.concatenate([found.units, np.array(units, dtype=np.int32)]),
                np.concatenate([found.counts, np.array(counts, dtype=np.int32)]),
            )
        return found

    def df(self, term: str) -> int:
        """Return how many living units hold `term` in any field."""
        lists = [found.units for _, found in self.postings(term)]
        if not lists:
            return 0
        units = lists[0] if len(lists) == 1 else np.unique(np.concatenate(lists))
        return int(np.count_nonzero(self.column("alive")[units]))

    def shows(self, unit_id: str, view: View) -> bool:
        """Return whether the unit is here and the named agent may see it."""
        place = self.place_of_id.get(unit_id)
        if place is None or view.agent is None:
            return place is not None
        return int(self.column("agent")[place]) in (self._names.get(view.agent), 0)

    def eligible(self, view: View, allowed: frozenset[int] | None) -> Bools:
        """Return which places the view may see; `allowed` are the keys that pass its filters."""
        mask = self.column("alive").astype(np.bool_)
        if view.agent is not None:
            agents = self.column("agent")
            mask &= (agents == self._names.get(view.agent, -1)) | (agents == 0)
        if view.only_session:
            mask &= self.column("session") == self._names.get(view.session, -1)
        if self._bounded:
            mask &= self.column("expires") > view.now.timestamp()
        if view.current_only:
            mask &= ~self.column("superseded").astype(np.bool_)
        if view.current_only and self._bounded:
            moment = view.reference_time.timestamp()
            mask &= (self.column("valid_from") <= moment) & (self.column("valid_to") > moment)
        if allowed is not None:
            places = [self.place_of_key[key] for key in allowed if key in self.place_of_key]
            passing = np.zeros(len(mask), dtype=np.bool_)
            passing[places] = True
            mask &= passing
        return mask

    def role_mask(self, roles: frozenset[Role]) -> Bools:
        """Return which places have one of `roles`."""
        wanted = np.array([role in roles for role in ROLES], dtype=np.bool_)
        return wanted[self.column("role").astype(np.intp)]

    def propose(
        self, query: LexicalQuery, idfs: Mapping[str, float], averages: Sequence[float], eligible: Bools, depth: int,
        deadline: Deadline,
    ) -> tuple[NDArray[np.intp], NDArray[np.float64], bool]:  # fmt: skip
        """Return the places that may be among the `depth` best, their approximate scores, and if time ran out.

        Terms are taken by weight, the rarest first. As soon as all that is left to come cannot lift an unseen
        unit over the present `depth`-th best, only units already seen are scored further.
        """
        scores = np.zeros(len(eligible), dtype=np.float64)
        boosts = np.where(self.role_mask(query.boosted_roles), query.role_boost, 1.0)
        most = query.role_boost if query.boosted_roles else 1.0
        terms = sorted(query.terms, key=lambda term: (-idfs[term], term))
        lists = [self.postings(term) for term in terms]
        ceilings = [
            bm25.ceiling(idfs[term], most * sum(query.weights[f] for f, _ in found), query.k1)
            for term, found in zip(terms, lists, strict=True)
        ]
        to_come = np.append(np.cumsum(ceilings[::-1])[::-1], 0.0)
        seen: NDArray[np.intp] | None = None
        for i, term in enumerate(terms):
            if i and deadline.expired():
                return (*_best(scores, seen, eligible, depth), True)
            for f, found in lists[i]:
                if len(found.units):
                    weight = idfs[term] * query.weights[f]
                    self._accumulate(scores, found, f, weight, averages[f], query, boosts, seen)
            if seen is None and i + 1 < len(terms):
                seen = _closed(scores, eligible, depth, float(to_come[i + 1]))
        return (*_best(scores, seen, eligible, depth), False)

    def _accumulate(
        self, scores: NDArray[np.float64], found: Postings, field: int, weight: float, average: float,
        query: LexicalQuery, boosts: NDArray[np.float64], seen: NDArray[np.intp] | None,
    ) -> None:  # fmt: skip
        units, counts = found.units, found.counts
        if seen is not None:
            at = np.searchsorted(units, seen)
            at[at == len(units)] = 0
            at = at[units[at] == seen]
            units, counts = units[at], counts[at]
        lengths = self.column("lengths")[units, field].astype(np.float64)
        parts = bm25.saturation(counts.astype(np.float64), lengths, average, query.k1, query.b)
        scores[units] += weight * parts * boosts[units]

    def counts(self, terms: Sequence[str], places: NDArray[np.intp]) -> NDArray[np.int64]:
        """Return how often each place holds each term, per field: places × fields × terms."""
        tf = np.zeros((len(places), len(FIELDS), len(terms)), dtype=np.int64)
        for t, term in enumerate(terms):
            for f, found in self.postings(term):
                if len(found.units):
                    at = np.searchsorted(found.units, places)
                    at[at == len(found.units)] = 0
                    tf[:, f, t] = np.where(found.units[at] == places, found.counts[at], 0)
        return tf


def _seconds(moment: datetime | None, otherwise: float) -> float:
    return otherwise if moment is None else moment.timestamp()


def _closed(scores: NDArray[np.float64], eligible: Bools, depth: int, to_come: float) -> NDArray[np.intp] | None:
    """Return the places that can still win, when no unseen one can; else None."""
    touched = np.flatnonzero((scores > 0.0) & eligible)
    if len(touched) <= depth:
        return None
    reached = scores[touched]
    bar = np.partition(reached, len(reached) - depth)[len(reached) - depth]
    if bar - topk.TIE_MARGIN <= to_come:
        return None
    winners: NDArray[np.intp] = touched[reached + to_come >= bar - topk.TIE_MARGIN]
    return winners


def _best(
    scores: NDArray[np.float64], seen: NDArray[np.intp] | None, eligible: Bools, depth: int
) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    places = np.flatnonzero((scores > 0.0) & eligible) if seen is None else seen
    best = places[topk.at_least_top(scores[places], depth)]
    return best, scores[best]


# ------------------------------------------------------------------------------------- several shards as one


def term_weights(shards: Sequence[Shard], terms: Sequence[str]) -> dict[str, float]:
    """Return idf over all `shards` together."""
    units = sum(shard.unit_count for shard in shards)
    return {term: bm25.idf(units, sum(shard.df(term) for shard in shards)) for term in terms}


def propose(
    shards: Sequence[Shard], view: View, query: LexicalQuery, depth: int, deadline: Deadline,
    allowed: frozenset[int] | None,
) -> Proposal:  # fmt: skip
    """Return the best of several shards, scored with their common statistics."""
    idfs = term_weights(shards, query.terms)
    units = max(1, sum(shard.unit_count for shard in shards))
    averages = [sum(shard.field_totals[f] for shard in shards) / units for f in range(len(FIELDS))]
    ids: list[str] = []
    parts: list[NDArray[np.float64]] = []
    exhausted = False
    for i, shard in enumerate(shards):
        eligible = shard.eligible(view, allowed)
        while True:
            places, scores, ran_out = shard.propose(query, idfs, averages, eligible, depth, deadline)
            # A user's own unit hides a global one of the same id; look again, so that the next best takes its place.
            hidden = [p for p in places.tolist() if any(own.shows(shard.ids[p], view) for own in shards[:i])]
            if not hidden:
                break
            eligible[hidden] = False
        exhausted |= ran_out
        ids += [shard.ids[p] for p in places.tolist()]
        parts.append(scores)
    best = topk.at_least_top(np.concatenate(parts), depth)
    return Proposal(tuple(ids[i] for i in best), exhausted)


def evidence(shards: Sequence[Shard], view: View, terms: Sequence[str], ids: Sequence[str]) -> LexicalEvidence:
    """Return the exact counts of `ids`, wherever they are, and the statistics of all shards together."""
    found: list[str] = []
    roles: list[Role] = []
    tf: list[NDArray[np.int64]] = [np.zeros((0, len(FIELDS), len(terms)), dtype=np.int64)]
    lengths: list[NDArray[np.int64]] = [np.zeros((0, len(FIELDS)), dtype=np.int64)]
    left = list(dict.fromkeys(ids))
    for shard in shards:
        here = [unit_id for unit_id in left if shard.shows(unit_id, view)]
        left = [unit_id for unit_id in left if not shard.shows(unit_id, view)]
        places = np.array([shard.place_of_id[unit_id] for unit_id in here], dtype=np.intp)
        found += here
        roles += [ROLES[code] for code in shard.column("role")[places].tolist()]
        tf.append(shard.counts(terms, places))
        lengths.append(shard.column("lengths")[places].astype(np.int64))
    return LexicalEvidence(
        ids=tuple(found),
        roles=tuple(roles),
        tf=np.concatenate(tf),
        lengths=np.concatenate(lengths),
        unit_count=sum(shard.unit_count for shard in shards),
        df=tuple(sum(shard.df(term) for shard in shards) for term in terms),
        field_totals=tuple(sum(shard.field_totals[f] for shard in shards) for f in range(len(FIELDS))),
    )
