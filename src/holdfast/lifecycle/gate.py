"""The gate (C17): which turns of a session become durable, judged before they are indexed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from holdfast.analysis.gate import judge
from holdfast.kernels.vectors import cosines
from holdfast.settings import GateSettings
from holdfast.store.base import DenseQuery, Store
from holdfast.types import Gate, Unit, View

# How many earlier turns and durable units are looked at (the seeds' k of their two searches).
_TURNS = 10
_DURABLE = 5

Vectors = NDArray[np.float32]


def awaiting(units: Sequence[Unit], settings: GateSettings) -> list[Unit]:
    """Return the units that the gate judges and has not judged."""
    if settings.policy == "off":
        return []
    return [
        unit
        for unit in units
        if unit.kind == "turn" and unit.scope == "session" and unit.gate is None and unit.author in settings.authors
    ]


def judged(
    store: Store, space: str, units: Sequence[Unit], vectors: Vectors, settings: GateSettings
) -> list[tuple[Unit, Gate]]:
    """Judge units that have vectors and are not indexed yet, each against all that came before it.

    A turn of the same batch counts as earlier, so that decisions do not depend on how turns arrive together.
    """
    chosen = {id(unit) for unit in awaiting(units, settings)}
    decided: list[tuple[Unit, Gate]] = []
    durable = [unit.scope == "user" for unit in units]
    for i, unit in enumerate(units):
        if id(unit) not in chosen:
            continue
        query = DenseQuery(space, vectors[i])
        view = _owner(unit)
        near = [j for j in range(i) if _same_owner(units[j], unit)]
        itself = frozenset({unit.id})  # another process may have indexed it meanwhile
        turns = store.similar(view, query, _TURNS, "turn", itself)
        turns += _near(vectors, query, [j for j in near if units[j].kind == "turn"])
        lasting = store.similar(view, query, _DURABLE, "durable", itself)
        lasting += _near(vectors, query, [j for j in near if durable[j]])
        gate = judge(unit.text, _best(turns, _TURNS), _best(lasting, _DURABLE), settings)
        durable[i] = gate.promoted
        decided.append((unit, gate))
    return decided


def judged_by_words(units: Sequence[Unit], settings: GateSettings) -> list[tuple[Unit, Gate]]:
    """Judge units of a memory that has no embedder: nothing is ever similar, so every turn is new."""
    return [(unit, judge(unit.text, (), (), settings)) for unit in awaiting(units, settings)]


def _owner(unit: Unit) -> View:
    at = unit.recorded_time
    return View(tenant=unit.tenant, user=unit.user or "", agent=unit.agent, now=at, reference_time=at)


def _same_owner(one: Unit, other: Unit) -> bool:
    shared = other.agent is None or one.agent in (other.agent, None)
    return (one.tenant, one.user) == (other.tenant, other.user) and shared


def _near(vectors: Vectors, query: DenseQuery, rows: Sequence[int]) -> list[float]:
    if not rows:
        return []
    found: list[float] = cosines(vectors[list(rows)], query.vector, len(query.vector)).tolist()
    return found


def _best(found: list[float], most: int) -> list[float]:
    return sorted(found, reverse=True)[:most]
