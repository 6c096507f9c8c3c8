"""What a reading knows without asking again: statistics of its owner, a row for each unit, and units as they were."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from holdfast.store.contract import Derivation
from holdfast.store.postgres.postgres_database import PostgresDatabase
from holdfast.store.rows import author_code, microseconds, read_fitting, unit_of
from holdfast.store.sqlite.shard import Shard
from holdfast.store.visibility import agent_matches, hidden_reason, state_as_of
from holdfast.types import FIELDS, Analysis, Unit, View, iso
from holdfast.values import dataclass

# How statements pack what a unit holds: the place of a term and a field above, how often below.
_BELOW = 32
_FIELD_BITS = 4


class CachedRow(NamedTuple):
    """One unit in the order of the columns that statements call `known`."""

    id: str
    key: int
    user: str
    version: int
    session: str | None
    scope: str
    kind: str
    covered_by: str | None
    author: str
    speaker: str
    role: str
    event_time: int
    starts: int
    ends: int
    decay_rate: float | None
    length: int
    said: int
    stating: int
    anchor_density: float
    lengths: Sequence[int]

    @property
    def is_turn_of_session(self) -> bool:
        """Return whether turns may stand beside it."""
        return self.kind == "turn" and self.session is not None

    @classmethod
    def of(cls, key: int, unit: Unit, analysis: Analysis) -> CachedRow:
        """Return the same of a unit that no table has: an earlier version."""
        moment, lineage = microseconds(unit.event_time), unit.lineage
        return cls(
            id=unit.id,
            key=key,
            user=unit.user or "",
            version=unit.version,
            session=unit.session,
            scope=unit.scope,
            kind=unit.kind,
            covered_by=None,
            author=unit.author,
            speaker=unit.speaker,
            role=unit.role,
            event_time=moment,
            starts=moment if lineage is None else microseconds(lineage.starts),
            ends=moment if lineage is None else microseconds(lineage.ends),
            decay_rate=None if lineage is None else lineage.decay_rate,
            length=len(unit.text),
            said=author_code(unit),
            stating=analysis.stating,
            anchor_density=float(np.float32(analysis.anchor_density)),
            lengths=[len(terms) for terms in analysis.terms],
        )


class MissingRow(NamedTuple):
    """A unit that the owner does not have, as the columns of a reading show it."""

    key: int = -1
    session: None = None
    scope: None = None
    kind: None = None
    covered_by: None = None
    author: None = None
    speaker: None = None
    event_time: int = 0
    starts: int = 0
    ends: int = 0
    decay_rate: None = None
    length: int = 0
    said: int = 0
    stating: int = 0
    anchor_density: float = 0.0


NOBODY = MissingRow()
_COLUMNS = len(CachedRow._fields)
# What follows those in every statement: what a unit holds of some terms.
KNOWN_COLUMNS = _COLUMNS + 1


class RowCache:
    """Present units of one view's owner, each read once; of an id that two have, the user's own."""

    def __init__(self, view: View, database: PostgresDatabase) -> None:
        self._database = database
        self._owner = {"user": view.user, "agent": view.agent}
        self._rows: dict[str, CachedRow | None] = {}
        # What units hold of the terms that were last asked for: whoever is read is read with it.
        self.terms: tuple[str, ...] = ()
        self._held: dict[str, Sequence[int]] = {}

    def expect(self, terms: Sequence[str]) -> None:
        """Say which terms will be counted, so that whatever is read from now on is not read again for them."""
        if self.terms != (*terms,):
            self.terms, self._held = (*terms,), {}

    def find(self, ids: Sequence[str]) -> Mapping[str, CachedRow | None]:
        """Return what is known, with a row or None for each of `ids` at least."""
        missing = [unit_id for unit_id in dict.fromkeys(ids) if unit_id not in self._rows]
        if missing:
            self._read(missing)
        return self._rows

    def _read(self, ids: Sequence[str]) -> None:
        # No id holds NUL, and PostgreSQL refuses to be asked for one that does.
        asked = {**self._owner, "ids": [one for one in ids if "\0" not in one], "terms": [*self.terms]}
        self._rows |= dict.fromkeys(ids)
        self._held |= dict.fromkeys(ids, ())
        self.learn(self._database.run("known_units", asked).fetchall())

    def learn(self, rows: Iterable[Sequence[Any]]) -> None:
        """Take note of units, visible ones or all: the columns that statements call `known`, and maybe more."""
        for row in rows:
            known = CachedRow._make(row[:_COLUMNS])
            self._rows[known.id], self._held[known.id] = known, row[_COLUMNS] or ()

    def count(self, ids: Sequence[str], terms: Sequence[str]) -> NDArray[np.int64]:
        """Return how often each of `ids` holds each term, per field: ids × fields × terms."""
        tf = np.zeros((len(FIELDS), len(terms), len(ids)), dtype=np.int64).transpose(2, 0, 1)
        if not ids or not terms:
            self.find(ids)
            return tf
        self.expect(terms)
        if missing := [unit_id for unit_id in ids if unit_id not in self._held]:
            self._read(missing)
        held = [self._held[unit_id] for unit_id in ids]
        packed = np.array([one for some in held for one in some], dtype=np.int64)
        rows = np.repeat(np.arange(len(ids)), [len(some) for some in held])
        places = packed >> _BELOW
        tf[rows, places & ((1 << _FIELD_BITS) - 1), places >> _FIELD_BITS] = packed & ((1 << _BELOW) - 1)
        return tf


@dataclass(frozen=True, slots=True)
class EmbeddingSpace:
    """The embedding space that a store has agreed on, its number, and whether there is an index of it."""

    name: str | None = None
    key: int | None = None
    is_indexed: bool = False


class Statistics:
    """The exact statistics of the owner, or of one agent of it; whatever a view hides counts."""

    def __init__(self, view: View, database: PostgresDatabase) -> None:
        self._view, self._database = view, database
        self._df: dict[str, tuple[int, int]] = {}  # of the agent, and of all

    @cached_property
    def space(self) -> EmbeddingSpace:
        """Return the embedding space that is searched."""
        rows = [row for row in self._counts if row[0] == "space"]
        return EmbeddingSpace(rows[0][1], rows[0][3], rows[0][2] == "true") if rows else EmbeddingSpace()

    @cached_property
    def _counts(self) -> list[tuple[str, str, str, int]]:
        """Return kind, name, agent and number."""
        rows: list[Any] = self._database.run("owner_counts", {"user": self._view.user}).fetchall()
        return rows

    def _seen(self, kind: str) -> list[tuple[str, int]]:
        agents = (self._view.agent, "")
        return [
            (name, n) for of, name, agent, n in self._counts if of == kind and (agents[0] is None or agent in agents)
        ]

    @cached_property
    def unit_count(self) -> int:
        """Return how many units there are."""
        return sum(n for _, n in self._seen("u"))

    @cached_property
    def units_of_all_agents(self) -> int:
        """Return how many units a search goes through, whichever agent asks."""
        return sum(n for kind, _, _, n in self._counts if kind == "u")

    @cached_property
    def field_totals(self) -> tuple[int, ...]:
        """Return how many terms each field has."""
        totals = [0] * len(FIELDS)
        for number, n in self._seen("f"):
            totals[int(number)] += n
        return tuple(totals)

    @cached_property
    def speakers(self) -> frozenset[str]:
        """Return who speaks to any agent."""
        return frozenset(name for kind, name, _, _ in self._counts if kind == "s" and name)

    def df(self, terms: Sequence[str]) -> tuple[int, ...]:
        """Return how many units hold each term."""
        return tuple(seen for seen, _ in self._find_df(terms))

    def df_of_all_agents(self, terms: Sequence[str]) -> tuple[int, ...]:
        """Return the same of what a search goes through, whichever agent asks."""
        return tuple(every for _, every in self._find_df(terms))

    def _find_df(self, terms: Sequence[str]) -> list[tuple[int, int]]:
        if missing := [term for term in dict.fromkeys(terms) if term not in self._df]:
            asked = {"user": self._view.user, "agent": self._view.agent, "terms": missing}
            rows = self._database.run("term_counts", asked).fetchall()
            self._df |= dict.fromkeys(missing, (0, 0)) | {name: (seen, every) for name, seen, every in rows}
        return [self._df[term] for term in terms]


@dataclass(slots=True)
class AsOfUnits:
    """Earlier versions that a view of the past may see. They hide the present ones, and are in no statistics."""

    shard: Shard
    units: dict[str, Unit] = field(default_factory=dict)
    known: dict[str, CachedRow] = field(default_factory=dict)
    vectors: dict[str, NDArray[np.float32]] = field(default_factory=dict)
    symbols: set[str] = field(default_factory=set)  # that facts are about

    @property
    def eligible(self) -> NDArray[np.bool_]:
        """Return which places may be seen: hidden ones are not here."""
        return np.ones(len(self.shard.keys), dtype=np.bool_)


def load_as_of(view: View, database: PostgresDatabase, derivation: Derivation, space: int | None) -> AsOfUnits | None:
    """Return what a read of the past needs besides present rows; None when there is nothing."""
    if view.as_of is None:
        return None
    found = AsOfUnits(Shard(derivation.tokens))
    found.shard.past = found.units
    asked = {"user": view.user, "agent": view.agent, "as_of": iso(view.as_of)}
    for *row, by, covered_by, absent, is_hidden in database.run("past_versions", asked):
        unit = unit_of(tuple(row))
        if is_hidden or not agent_matches(view, unit):
            continue
        if hidden_reason(view, unit, *state_as_of((by, covered_by, absent))) is None:
            analysis = derivation.analyse(unit)
            found.shard.add(row[0], unit, analysis, content=row[2], superseded=False)
            found.units[unit.id], found.known[unit.id] = unit, CachedRow.of(row[0], unit, analysis)
            found.symbols |= {end for fact in analysis.facts for end in (fact.subject, fact.object)}
    if not found.units:
        return None
    if space is not None:
        _add_vectors(found, database, space)
    return found


def _add_vectors(found: AsOfUnits, database: PostgresDatabase, space: int) -> None:
    by_key = {known.key: known for known in found.known.values()}
    rows = database.run("past_vectors", {"space": space, "keys": [*by_key]})
    fitting, matrix = read_fitting([row[:3] for row in rows if row[3] == by_key[row[0]].version])
    vectors = [(row[0], vector, row[2]) for row, vector in zip(fitting, matrix, strict=True)]
    found.shard.add_vectors(vectors)
    found.vectors |= {by_key[key].id: vector for key, vector, _ in vectors}
