"""The in-process search index: one shard per owner, exact after every change.

A shard holds the current version of every unit of one owner, and nothing of any other: isolation is a matter of
which shards a call may open. A removed unit is masked at once, and its postings leave at the next fold. Document
frequencies are counted from the postings when they are asked for: there is no second copy that could drift.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Iterator, KeysView, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.kernels import Bools, bm25
from holdfast.kernels.triples import FactIndex, VisibleFacts
from holdfast.kernels.vectors import TIE_MARGIN, at_least_top
from holdfast.store.queries import LexicalQuery
from holdfast.store.rows import CALLED, NAMING, author_code, microseconds
from holdfast.store.sqlite.blocks import NO_VECTOR, Column, DenseBlock, Funnel, HyperCache, TurnOrder
from holdfast.store.sqlite.index_file import pack_words, unpack_words
from holdfast.store.sqlite.postings import Int32s, PostingLists, Postings
from holdfast.types import (
    AUTHORS,
    FIELDS,
    KINDS,
    ROLES,
    SCOPES,
    Analysis,
    Deadline,
    Lineage,
    Unit,
    View,
    from_iso,
    iso,
)

_KINDS = len(FIELDS) + 2
TURN, DURABLE = KINDS.index("turn"), SCOPES.index("user")
_NEVER = np.inf
_LONG_AGO = -np.inf


class Shard:
    """Everything that is searched for one owner."""

    def __init__(self, tokens: Callable[[str], Sequence[str]] = str.split) -> None:
        self.tokens = tokens
        self.facts = FactIndex(tokens)
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
            "covered": Column(np.bool_),
            "content": Column(np.int64),
            "role": Column(np.uint8),
            "kind": Column(np.uint8),
            "scope": Column(np.uint8),
            "author": Column(np.uint8),
            "length": Column(np.int32),
            "said": Column(np.int64),
            "stating": Column(np.uint8),
            "session": Column(np.int32),
            "agent": Column(np.int32),
            "speaker": Column(np.int32),
            "position": Column(np.int32),
            "event_time": Column(np.int64),
            "anchor_density": Column(np.float32),
            "expires": Column(np.float64),
            "valid_from": Column(np.float64),
            "valid_to": Column(np.float64),
            "lengths": Column(np.int32, len(FIELDS)),
        }
        # Few units are summaries or covered by one: by key, their lineage and the id of that summary (C18).
        self.lineages: dict[int, Lineage] = {}
        self.covered_by: dict[int, str] = {}
        # A shard of earlier versions, for a read of the past: its units, and no part of the statistics.
        self.past: dict[str, Unit] | None = None
        self.dense: DenseBlock | None = None
        self.funnel: Funnel | None = None  # what is known of the vectors; without, every one is compared
        self.hyper = HyperCache()
        self._names: dict[str | None, int] = {None: 0}
        self.name_of_code: list[str | None] = [None]
        # Whether any unit expires or is valid for a time only: most shards can skip looking.
        self._bounded = False
        self._folding = True
        self._postings = PostingLists(_KINDS)
        self._turns: TurnOrder | None = None  # made when first asked for, None while nobody asks

    def column(self, name: str) -> NDArray[Any]:
        """Return one value per place, dead places included."""
        return self._columns[name].values

    # ------------------------------------------------------------------------------------------ changing

    def holds(self, key: int, content: int) -> bool:
        """Return whether the unit is here and says just that."""
        place = self.place_of_key.get(key)
        return place is not None and int(self.column("content")[place]) == content

    def mark(self, key: int, *, superseded: bool, covered_by: str | None) -> None:
        """Say what has become of a unit that is here; its words stay as they are."""
        place = self.place_of_key[key]
        self.column("superseded")[place] = superseded
        self.column("covered")[place] = covered_by is not None
        self._cover(key, covered_by)

    def _cover(self, key: int, covered_by: str | None) -> None:
        if covered_by is None:
            self.covered_by.pop(key, None)
        else:
            self.covered_by[key] = covered_by

    def promote(self, key: int, before: int, content: int) -> None:
        """Let a unit that is here be durable: nothing else in it changed, so nothing is analysed again."""
        if self.holds(key, before):
            place = self.place_of_key[key]
            self.column("content")[place] = content
            self.column("scope")[place] = DURABLE

    def add(
        self, key: int, unit: Unit, analysis: Analysis, *, content: int, superseded: bool,
        covered_by: str | None = None,
    ) -> None:  # fmt: skip
        """Add a unit, or replace the version of it that is here; `content` is the checksum of all it says."""
        self.remove(key)
        place = len(self.keys)
        self.keys.append(key)
        self.ids.append(unit.id)
        self.place_of_key[key] = place
        self.place_of_id[unit.id] = place
        self.speakers[unit.speaker] += 1
        self._bounded |= bool(unit.valid_from or unit.valid_to or (not unit.pinned and unit.expires_at))
        lengths = [len(field) for field in analysis.terms]
        row: dict[str, object] = {
            "alive": True,
            "superseded": superseded,
            "covered": covered_by is not None,
            "content": content,
            "role": ROLES.index(unit.role),
            "kind": KINDS.index(unit.kind),
            "scope": SCOPES.index(unit.scope),
            "author": AUTHORS.index(unit.author),
            "length": len(unit.text),
            "said": author_code(unit),
            "stating": analysis.stating,
            "session": self._code(unit.session),
            "agent": self._code(unit.agent),
            "speaker": self._code(unit.speaker),
            "position": unit.position,
            "event_time": microseconds(unit.event_time),
            "anchor_density": analysis.anchor_density,
            "expires": _NEVER if unit.pinned else _seconds(unit.expires_at, _NEVER),
            "valid_from": _seconds(unit.valid_from, _LONG_AGO),
            "valid_to": _seconds(unit.valid_to, _NEVER),
            "lengths": lengths,
        }
        for name, value in row.items():
            self._columns[name].append(value)
        self._cover(key, covered_by)
        if unit.lineage is not None:
            self.lineages[key] = unit.lineage
        if self._turns is not None and unit.session is not None and unit.kind == "turn":
            self._turns.add(self._code(unit.session), (microseconds(unit.event_time), unit.position, place))
        for fact in analysis.facts:
            self.facts.add(unit.id, (fact.subject, fact.relation, fact.object), fact.confidence)
        self.unit_count += 1
        for f, field in enumerate(analysis.terms):
            self.field_totals[f] += lengths[f]
            self._postings.append(f, field, place)
        self._postings.append(CALLED, analysis.titles, place)
        self._postings.append(NAMING, analysis.mentions, place)
        if self._folding and self._postings.is_ready_to_fold:
            self.fold()

    def add_vectors(self, vectors: Sequence[tuple[int, NDArray[np.float32], int]]) -> None:
        """Add the vectors of units that are here, by key, with their checksums; another space starts a new block."""
        known = [one for one in vectors if one[0] in self.place_of_key]
        if not known:
            return
        matrix = np.array([vector for _, vector, _ in known], dtype=np.float32)
        if self.dense is None or self.dense.dims != matrix.shape[1]:
            self.dense = DenseBlock(matrix.shape[1])
        places = np.array([self.place_of_key[key] for key, _, _ in known], dtype=np.int32)
        self.dense.add(places, matrix, [checksum for _, _, checksum in known])

    def drop_vector(self, key: int) -> None:
        """Say that a unit has no vector, or none of the space that is searched."""
        if self.dense is not None:
            self.dense.drop(self.place_of_key[key])

    def has_vector(self, key: int, checksum: int) -> bool:
        """Return whether a unit that is here has just that vector."""
        return self.dense is not None and self.dense.holds(self.place_of_key[key], checksum)

    def vector_checksums(self, places: NDArray[np.intp]) -> NDArray[np.int64]:
        """Return the checksum of the vector of each place; `NO_VECTOR` where there is none."""
        return np.full(len(places), NO_VECTOR) if self.dense is None else self.dense.checksums(places)

    def measure_funnel(self, rows: int) -> Funnel | None:
        """Measure the first tier on so many vectors of the oldest units; None when there are fewer."""
        if self.dense is None or self.dense.vector_count < rows:
            return None
        return self.dense.measure(np.array([self.place_of_key[key] for key in sorted(self.place_of_key)]), rows)

    @contextmanager
    def bulk(self) -> Iterator[None]:
        """Add many units and fold once, at the end."""
        self._folding = False
        try:
            yield
        finally:
            self._folding = True
        self.fold()

    def remove(self, key: int) -> None:
        """Forget a unit; unknown keys are fine."""
        place = self.place_of_key.pop(key, None)
        if place is None:
            return
        self.lineages.pop(key, None)
        self.covered_by.pop(key, None)
        self.column("alive")[place] = False
        speaker = self._name(int(self.column("speaker")[place]))
        self.speakers[speaker] -= 1
        if not self.speakers[speaker]:
            del self.speakers[speaker]
        if self.place_of_id.get(self.ids[place]) == place:
            del self.place_of_id[self.ids[place]]
        self.hyper.invalidate(self.ids[place])
        self.facts.remove(self.ids[place])
        self.unit_count -= 1
        for f, length in enumerate(self.column("lengths")[place].tolist()):
            self.field_totals[f] -= length

    def fold(self) -> None:
        """Fold the tail of the posting lists, drop dead postings and renumber the places that are left."""
        alive = self.column("alive").astype(np.bool_)
        self._postings.fold(alive)
        if not alive.all():
            self._renumber(alive)

    def _renumber(self, alive: Bools) -> None:
        self._turns = None
        places = np.flatnonzero(alive).tolist()
        self.keys = [self.keys[place] for place in places]
        self.ids = [self.ids[place] for place in places]
        self.place_of_key = {key: place for place, key in enumerate(self.keys)}
        self.place_of_id = {unit_id: place for place, unit_id in enumerate(self.ids)}
        for column in self._columns.values():
            column.keep(alive)
        if self.dense is not None:
            self.dense.renumber(alive)

    def _code(self, name: str | None) -> int:
        code = self._names.get(name)
        if code is None:
            code = self._names[name] = len(self.name_of_code)
            self.name_of_code.append(name)
        return code

    def _name(self, code: int) -> str:
        return self.name_of_code[code] or ""

    # -------------------------------------------------------------------------------------------- saving

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return everything that is searched as arrays; `from_arrays` gives the same shard again.

        A word or a name that no living unit has is left out: what was erased must not live on here (law 16).
        """
        self.fold()
        codes = {int(code) for name in ("session", "agent", "speaker") for code in np.unique(self.column(name))}
        arrays: dict[str, NDArray[Any]] = {f"column {name}": self.column(name) for name in self._columns}
        arrays |= {"keys": np.array(self.keys, dtype=np.int64), "ids": pack_words(self.ids)}
        arrays |= self._postings.to_arrays()
        arrays["facts"] = pack_words(self.facts.rows())
        arrays["lineages"] = pack_words([[key, _packed(one)] for key, one in self.lineages.items()])
        arrays["covered_by"] = pack_words([*self.covered_by.items()])
        arrays["names"] = pack_words([name if i in codes else None for i, name in enumerate(self.name_of_code)][1:])
        if self.dense is not None:
            arrays |= {f"dense {name}": array for name, array in self.dense.to_arrays().items()}
        return arrays

    @classmethod
    def from_arrays(
        cls, arrays: Mapping[str, NDArray[Any]], tokens: Callable[[str], Sequence[str]] = str.split
    ) -> Shard:
        """Read what `to_arrays` gave; a fold leaves no dead places, so every row is a living unit."""
        shard = cls(tokens)
        for source, subject, relation, other, confidence in unpack_words(arrays["facts"]):
            shard.facts.add(source, (subject, relation, other), confidence)
        for name, column in shard._columns.items():
            column.replace(arrays[f"column {name}"])
        shard.lineages = {key: _unpacked(one) for key, one in unpack_words(arrays["lineages"])}
        shard.covered_by = dict(unpack_words(arrays["covered_by"]))
        shard.keys, shard.ids = arrays["keys"].tolist(), unpack_words(arrays["ids"])
        shard.place_of_key = {key: place for place, key in enumerate(shard.keys)}
        shard.place_of_id = {unit_id: place for place, unit_id in enumerate(shard.ids)}
        for name in unpack_words(arrays["names"]):
            if name is None:  # nobody has it any more: only its number is kept
                shard.name_of_code.append(None)
            else:
                shard._code(name)
        shard._postings = PostingLists.from_arrays(arrays, _KINDS)
        shard.unit_count = len(shard.keys)
        shard.field_totals = shard.column("lengths").sum(axis=0, dtype=np.int64).tolist()
        codes, counts = np.unique(shard.column("speaker"), return_counts=True)
        shard.speakers = Counter({shard._name(int(c)): int(n) for c, n in zip(codes, counts, strict=True)})
        limits = (
            shard.column("expires") < _NEVER,
            shard.column("valid_from") > _LONG_AGO,
            shard.column("valid_to") < _NEVER,
        )
        shard._bounded = bool(np.any(limits))
        dense = {name.removeprefix("dense "): array for name, array in arrays.items() if name.startswith("dense ")}
        shard.dense = DenseBlock.from_arrays(dense) if dense else None
        return shard

    # ------------------------------------------------------------------------------------------- reading

    def postings(self, term: str) -> list[tuple[int, Postings]]:
        """Return, field by field, the places that hold `term`, ascending; dead places may be among them."""
        return self._postings.find_all(len(FIELDS), term)

    def names(self, kind: int) -> KeysView[str]:
        """Return the names that units here were ever called by, or have ever named."""
        return self._postings.terms(kind)

    def named(self, kind: int, key: str) -> Int32s:
        """Return the living places that are called by a name, or name it, ascending."""
        found = self._postings.find(kind, key)
        places = np.zeros(0, dtype=np.int32) if found is None else found.places
        living: Int32s = places[self.column("alive")[places]]
        return living

    def df(self, term: str, seen: Bools) -> int:
        """Return how many of the units that are `seen` hold `term` in any field."""
        lists = [found.places for _, found in self.postings(term)]
        if not lists:
            return 0
        units = lists[0] if len(lists) == 1 else np.unique(np.concatenate(lists))
        return int(np.count_nonzero(seen[units]))

    def seen_by(self, agent: str) -> Bools:
        """Return which places an agent may see: its own and those that all agents share."""
        agents = self.column("agent")
        seen: Bools = self.column("alive") & ((agents == self._names.get(agent, -1)) | (agents == 0))
        return seen

    def shows(self, unit_id: str, view: View) -> bool:
        """Return whether the unit is here and the named agent may see it."""
        place = self.place_of_id.get(unit_id)
        if place is None or view.agent is None:
            return place is not None
        return int(self.column("agent")[place]) in (self._names.get(view.agent), 0)

    def eligible(self, view: View, allowed: frozenset[int] | None) -> Bools:
        """Return which places the view may see; `allowed` are the keys that pass its filters."""
        mask = self.column("alive").astype(np.bool_) if view.agent is None else self.seen_by(view.agent)
        if view.only_session:
            mask &= self.column("session") == self._names.get(view.session, -1)
        if self._bounded:  # a read of the past sees what lived then
            mask &= self.column("expires") > (view.as_of or view.now).timestamp()
        if view.current_only and view.as_of is None:
            mask &= ~self.column("superseded").astype(np.bool_)
        if view.hide_covered and view.as_of is None:
            mask &= ~self.column("covered").astype(np.bool_)
        if view.current_only and self._bounded:
            moment = view.reference_time.timestamp()
            mask &= (self.column("valid_from") <= moment) & (self.column("valid_to") > moment)
        if allowed is not None and self.past is None:
            places = [self.place_of_key[key] for key in allowed if key in self.place_of_key]
            passing = np.zeros(len(mask), dtype=np.bool_)
            passing[places] = True
            mask &= passing
        return mask

    def beside(self, places: NDArray[np.intp], eligible: Bools) -> tuple[Int32s, Int32s]:
        """Return the eligible places right before and right after each turn in its session; none for another unit."""
        if self._turns is None:
            turns = self.column("alive") & (self.column("kind") == TURN) & (self.column("session") != 0)
            living = np.flatnonzero(turns)
            sessions, events, positions = (
                self.column(name)[living] for name in ("session", "event_time", "position")
            )
            self._turns = TurnOrder.of(sessions, events, positions, living)
        return self._turns.beside(places, eligible)

    def facts_among(self, eligible: Bools) -> VisibleFacts:
        """Return what the eligible units state."""
        if eligible[self.column("alive")].all():  # most views see everything: no need to look at each source
            return self.facts.seen_by(None)
        places, seen = self.place_of_id, eligible.tolist()
        return self.facts.seen_by(lambda unit_id: seen[places[unit_id]])

    def propose(
        self, query: LexicalQuery, idfs: Mapping[str, float], averages: Sequence[float], eligible: Bools, depth: int,
        deadline: Deadline,
    ) -> tuple[NDArray[np.intp], NDArray[np.float64], bool]:  # fmt: skip
        """Return the places that may be among the `depth` best, their approximate scores, and if time ran out.

        Terms are taken by weight, the rarest first. As soon as all that is left to come cannot lift an unseen
        unit over the present `depth`-th best, only units already seen are scored further.
        """
        scores = np.zeros(len(eligible), dtype=np.float64)
        boosts = np.array([query.role_boost if role in query.boosted_roles else 1.0 for role in ROLES])
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
                if len(found.places):
                    weight = idfs[term] * query.weights[f]
                    self._accumulate(scores, found, f, weight, averages[f], query, boosts, seen)
            if seen is None and i + 1 < len(terms):
                seen = _closed(scores, eligible, depth, float(to_come[i + 1]))
        return (*_best(scores, seen, eligible, depth), False)

    def _accumulate(
        self, scores: NDArray[np.float64], found: Postings, field: int, weight: float, average: float,
        query: LexicalQuery, boosts: NDArray[np.float64], seen: NDArray[np.intp] | None,
    ) -> None:  # fmt: skip
        units, counts = found.places, found.counts
        if seen is not None:
            at = np.searchsorted(units, wanted := seen.astype(np.int32))
            at = at[units.take(at, mode="clip") == wanted]
            units, counts = units[at], counts[at]
        lengths = self.column("lengths")[units, field].astype(np.float64)
        parts = weight * bm25.saturation(counts.astype(np.float64), lengths, average, query.k1, query.b)
        scores[units] += parts * boosts[self.column("role")[units]] if query.boosted_roles else parts

    def counts(self, terms: Sequence[str], places: NDArray[np.intp]) -> NDArray[np.int64]:
        """Return how often each place holds each term, per field: places × fields × terms."""
        tf = np.zeros((len(FIELDS), len(terms), len(places)), dtype=np.int64)
        wanted = places.astype(np.int32)  # as postings are: whatever is searched in another type is copied first
        for t, term in enumerate(terms):
            for f, found in self.postings(term):
                if len(found.places):
                    at = np.searchsorted(found.places, wanted)
                    here = found.places.take(at, mode="clip") == wanted
                    np.multiply(found.counts.take(at, mode="clip"), here, out=tf[f, t])
        return tf.transpose(2, 0, 1)


def _packed(lineage: Lineage) -> list[Any]:
    return [*dataclasses.astuple(lineage)[:-2], iso(lineage.starts), iso(lineage.ends)]


def _unpacked(values: Sequence[Any]) -> Lineage:
    sources, method, confidence, decay_rate, align, cover, starts, ends = values
    return Lineage(tuple(sources), method, confidence, decay_rate, align, cover, from_iso(starts), from_iso(ends))


def _seconds(moment: datetime | None, otherwise: float) -> float:
    return otherwise if moment is None else moment.timestamp()


def _closed(scores: NDArray[np.float64], eligible: Bools, depth: int, to_come: float) -> NDArray[np.intp] | None:
    """Return the places that can still win, when no unseen one can; else None."""
    touched = np.flatnonzero((scores > 0.0) & eligible)
    if len(touched) <= depth:
        return None
    reached = scores[touched]
    bar = np.partition(reached, len(reached) - depth)[len(reached) - depth]
    if bar - TIE_MARGIN <= to_come:
        return None
    winners: NDArray[np.intp] = touched[reached + to_come >= bar - TIE_MARGIN]
    return winners


def _best(
    scores: NDArray[np.float64], seen: NDArray[np.intp] | None, eligible: Bools, depth: int
) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    places = np.flatnonzero((scores > 0.0) & eligible) if seen is None else seen
    best = places[at_least_top(scores[places], depth)]
    return best, scores[best]
