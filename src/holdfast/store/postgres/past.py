"""Reads of the past: units that were rewritten since, as they were, in a small index of this process alone."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from holdfast.store.contract import Derivation
from holdfast.store.postgres.postgres_database import PostgresDatabase
from holdfast.store.postgres.row_cache import Known
from holdfast.store.rows import agent_matches, hidden_by, then_by, unit_of, vector_of
from holdfast.store.sqlite.shard import Shard
from holdfast.types import Unit, View, iso


@dataclass(slots=True)
class PastUnits:
    """Earlier versions that a view of the past may see. They hide the present ones, and are in no statistics."""

    shard: Shard
    units: dict[str, Unit] = field(default_factory=dict)
    known: dict[str, Known] = field(default_factory=dict)
    vectors: dict[str, NDArray[np.float32]] = field(default_factory=dict)
    symbols: set[str] = field(default_factory=set)  # that facts are about

    @property
    def eligible(self) -> NDArray[np.bool_]:
        """Return which places may be seen: hidden ones are not here."""
        return np.ones(len(self.shard.keys), dtype=np.bool_)


def find_past(view: View, database: PostgresDatabase, derivation: Derivation, space: int | None) -> PastUnits | None:
    """Return what a read of the past needs besides present rows; None when there is nothing."""
    if view.as_of is None:
        return None
    found = PastUnits(Shard(derivation.tokens))
    found.shard.past = found.units
    asked = {"user": view.user, "agent": view.agent, "as_of": iso(view.as_of)}
    for *row, by, covered_by, absent, is_hidden in database.run("past_versions", asked):
        unit = unit_of(tuple(row))
        if is_hidden or not agent_matches(view, unit):
            continue
        if hidden_by(view, unit, *then_by((by, covered_by, absent))) is None:
            analysis = derivation.analyse(unit)
            found.shard.add(row[0], unit, analysis, content=row[2], superseded=False)
            found.units[unit.id], found.known[unit.id] = unit, Known.of(row[0], unit, analysis)
            found.symbols |= {end for fact in analysis.facts for end in (fact.subject, fact.object)}
    if not found.units:
        return None
    if space is not None:
        _add_vectors(found, database, space)
    return found


def _add_vectors(found: PastUnits, database: PostgresDatabase, space: int) -> None:
    by_key = {known.key: known for known in found.known.values()}
    rows = database.run("past_vectors", {"space": space, "keys": [*by_key]})
    fitting = [row[:3] for row in rows if row[3] == by_key[row[0]].version]
    vectors = [(row[0], vector_of(row), row[2]) for row in fitting]
    found.shard.add_vectors(vectors)
    found.vectors |= {by_key[key].id: vector for key, vector, _ in vectors}
