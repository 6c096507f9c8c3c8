"""The gate (C17): which turns of a session become durable, judged before they are indexed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from holdfast.kernels.vectors import cosines
from holdfast.language.gate import judge
from holdfast.settings import GateSettings
from holdfast.store.contract import SimilarityQuery, Store, look
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
    places = [i for i, unit in enumerate(units) if id(unit) in chosen]
    known = _known(store, space, units, vectors, places)
    decided: list[tuple[Unit, Gate]] = []
    durable = [unit.scope == "user" for unit in units]
    for i in places:
        unit, (turns, lasting) = units[i], known[i]
        near = [j for j in range(i) if _same_owner(units[j], unit)]
        turns = turns + _near(vectors, i, [j for j in near if units[j].kind == "turn"])
        lasting = lasting + _near(vectors, i, [j for j in near if durable[j]])
        gate = judge(unit.text, _best(turns, _TURNS), _best(lasting, _DURABLE), settings)
        durable[i] = gate.promoted
        decided.append((unit, gate))
    return decided


def _known(
    store: Store, space: str, units: Sequence[Unit], vectors: Vectors, places: Sequence[int]
) -> dict[int, tuple[list[float], list[float]]]:
    """Look up what is near to each unit among what is indexed: earlier turns, and durable units; owner by owner."""
    found: dict[int, tuple[list[float], list[float]]] = {}
    owners: dict[tuple[str, str | None, str | None], list[int]] = {}
    for i in places:
        owners.setdefault((units[i].tenant, units[i].user, units[i].agent), []).append(i)
    for theirs in owners.values():
        view, rows = _owner(units[theirs[0]]), vectors[theirs]
        itself = [units[i].id for i in theirs]  # another process may have indexed it meanwhile
        asked = SimilarityQuery(space, rows, _TURNS, _DURABLE)
        near = look(store, view, lambda reading: reading.evidence(asked, itself))
        found |= dict(zip(theirs, zip(map(list, near.turns), map(list, near.durable), strict=True), strict=True))
    return found


def judged_by_words(units: Sequence[Unit], settings: GateSettings) -> list[tuple[Unit, Gate]]:
    """Judge units of a memory that has no embedder: nothing is ever similar, so every turn is new."""
    return [(unit, judge(unit.text, (), (), settings)) for unit in awaiting(units, settings)]


def _owner(unit: Unit) -> View:
    at = unit.recorded_time
    return View(tenant=unit.tenant, user=unit.user or "", agent=unit.agent, now=at, reference_time=at)


def _same_owner(one: Unit, other: Unit) -> bool:
    shared = other.agent is None or one.agent in (other.agent, None)
    return (one.tenant, one.user) == (other.tenant, other.user) and shared


def _near(vectors: Vectors, i: int, rows: Sequence[int]) -> list[float]:
    if not rows:
        return []
    found: list[float] = cosines(vectors[list(rows)], vectors[i], vectors.shape[1]).tolist()
    return found


def _best(found: list[float], most: int) -> list[float]:
    return sorted(found, reverse=True)[:most]
