"""The gate (C17): which turns of a session become durable, judged before they are indexed.

Gconv = .35H + .40R + .25D_nl      Gtech = .40P + .35A + .25D_tech      G = (1 - T)·Gconv + T·Gtech
H = 1 - mean max(0, cos)           R = F·(1 - S)
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from holdfast.errors import InputError, quote_value
from holdfast.kernels.vectors import Matrix, halve, row_cosines, tier
from holdfast.settings import GateSettings
from holdfast.store.contract import Store
from holdfast.store.queries import SimilarityQuery
from holdfast.text.questions import only_asks
from holdfast.text.signals import Signals, has_content, signals
from holdfast.types import Gate, Unit, View

# C17: how many earlier turns and durable units are looked at; further ones would dilute the mean.
NEAREST_TURNS = 10
NEAREST_DURABLE = 5
# C17: the shares of H, R and D_nl in conversation, and of P, A and D_tech in technical talk.
_CONVERSATIONAL = (0.35, 0.40, 0.25)
_TECHNICAL = (0.40, 0.35, 0.25)
# The reference's normalisers: said five times before is often, held three times is enough.
_OFTEN = 5
_ENOUGH = 3


def judge(text: str, turn_cosines: Sequence[float], durable_cosines: Sequence[float], settings: GateSettings) -> Gate:
    """Decide about one turn, before it is indexed itself.

    `turn_cosines` are those of the nearest earlier turns, `durable_cosines` of the nearest durable units; of more
    than ten and five the nearest count. Policies `all` and `off` decide alone, but the signals are still shown.

    Raises:
        InputError: a cosine is not a number.
    """
    turns, durable = _nearest(turn_cosines, NEAREST_TURNS), _nearest(durable_cosines, NEAREST_DURABLE)
    found = signals(text, settings)
    new, often = novelty(durable), frequency(turns, settings.similar)
    held = saturation(durable, settings.saturated)
    again = repetition(often, held)
    conversational = weighted(_CONVERSATIONAL, (new, again, found.statement))
    technical = weighted(_TECHNICAL, (found.specificity, found.action, found.structure))
    score = mixed(found.technical, conversational, technical)
    promoted, reason = _decision(text, found, score, settings)
    return Gate(
        promoted=promoted,
        reason=reason,
        score=score,
        conversational=conversational,
        technical=technical,
        novelty=new,
        repetition=again,
        frequency=often,
        saturation=held,
        technical_density=found.technical,
        statement=found.statement,
        specificity=found.specificity,
        action=found.action,
        structure=found.structure,
    )


def _nearest(found: Sequence[float], most: int) -> list[float]:
    for cosine in found:
        if math.isnan(cosine):
            raise InputError(f"{quote_value(cosine)} is not a cosine; give numbers from -1 to 1")
    return sorted(found, reverse=True)[:most]


def _decision(text: str, found: Signals, score: float, settings: GateSettings) -> tuple[bool, str]:
    if settings.policy != "gate":
        return settings.policy == "all", f"policy {settings.policy}"
    if not has_content(text, found, wide=settings.wide):
        return False, "too little content"
    if settings.wide and not found.about_someone and only_asks(text):
        return False, "only asks"
    promoted = score >= settings.threshold
    return promoted, f"gate {_figure(score)} {'>=' if promoted else '<'} {_figure(settings.threshold)}"


def _figure(value: float) -> str:
    return f"{value:.3f}".removeprefix("0")


# ------------------------------------------------------------------------------------------------- turns of a store


def awaiting(units: Sequence[Unit], settings: GateSettings) -> list[Unit]:
    """Return the units that the gate judges and has not judged."""
    if settings.policy == "off":
        return []
    return [
        unit
        for unit in units
        if unit.kind == "turn" and unit.scope == "session" and unit.gate is None and unit.author in settings.authors
    ]


def judge_by_words(units: Sequence[Unit], settings: GateSettings) -> list[tuple[Unit, Gate]]:
    """Judge units of a memory that has no embedder: nothing is ever similar, so every turn is new."""
    return [(unit, judge(unit.text, (), (), settings)) for unit in awaiting(units, settings)]


def judge_units(
    store: Store, space: str, units: Sequence[Unit], vectors: Matrix, settings: GateSettings
) -> list[tuple[Unit, Gate]]:
    """Judge units that have vectors and are not indexed yet, each against all that came before it.

    A turn of the same batch counts as earlier, so that decisions do not depend on how turns arrive together.
    """
    chosen = {id(unit) for unit in awaiting(units, settings)}
    places = [i for i, unit in enumerate(units) if id(unit) in chosen]
    known = _known(store, space, units, vectors, places, settings.similar)
    decided: list[tuple[Unit, Gate]] = []
    owners = [(unit.tenant, unit.user, unit.agent) for unit in units]
    durable, dims = [unit.scope == "user" for unit in units], vectors.shape[1]
    rows, stored = tier(vectors, dims), tier(halve(vectors), dims)  # earlier ones are compared as a store has them
    for i in places:
        unit, (turns, lasting) = units[i], known[i]
        near = [j for j in range(i) if owners[j] == owners[i] or _is_shared(units[j], unit)]
        likeness = row_cosines(stored[near], rows[i]).tolist() if near else []
        turns = turns + [cosine for j, cosine in zip(near, likeness, strict=True) if units[j].kind == "turn"]
        lasting = lasting + [cosine for j, cosine in zip(near, likeness, strict=True) if durable[j]]
        gate = judge(unit.text, turns, lasting, settings)
        durable[i] = gate.promoted
        decided.append((unit, gate))
    return decided


def _known(
    store: Store, space: str, units: Sequence[Unit], vectors: Matrix, places: Sequence[int], similar: float
) -> dict[int, tuple[list[float], list[float]]]:
    """Look up what is near to each unit among what is indexed: earlier turns, and durable units; owner by owner."""
    found: dict[int, tuple[list[float], list[float]]] = {}
    owners: dict[tuple[str, str | None, str | None], list[int]] = {}
    for i in places:
        owners.setdefault((units[i].tenant, units[i].user, units[i].agent), []).append(i)
    for theirs in owners.values():
        view, rows = View.of_owner(units[theirs[0]]), vectors[theirs]
        itself = [units[i].id for i in theirs]  # another process may have indexed it meanwhile
        with store.reading(view) as reading:
            near = reading.evidence(SimilarityQuery(space, rows, NEAREST_TURNS, NEAREST_DURABLE, similar), itself)
        pairs = zip(map(list, near.turns), map(list, near.durable), strict=True)
        found |= dict(zip(theirs, pairs, strict=True))
    return found


def _is_shared(one: Unit, other: Unit) -> bool:
    """Return whether the owner of `other` sees `one`."""
    shared = other.agent is None or one.agent in (other.agent, None)
    return (one.tenant, one.user) == (other.tenant, other.user) and shared


# ------------------------------------------------------------------------------------------------- the maths


def clamp01(value: float) -> float:
    """Return `value` cut to [0, 1]."""
    return min(1.0, max(0.0, value))


def novelty(cosines: Sequence[float]) -> float:
    """Return H ∈ [0, 1]: one minus the mean cosine to the nearest durable units; 1 where there are none."""
    if not cosines:
        return 1.0
    return clamp01(1.0 - _total(map(clamp01, cosines)) / len(cosines))


def frequency(cosines: Sequence[float], similar: float) -> float:
    """Return F ∈ [0, 1]: how often earlier turns said the same, those at `similar` included."""
    return min(_reaching(cosines, similar) / _OFTEN, 1.0)


def saturation(cosines: Sequence[float], saturated: float) -> float:
    """Return S ∈ [0, 1]: how much durable memory says the same already, units at `saturated` included."""
    return min(_reaching(cosines, saturated) / _ENOUGH, 1.0)


def repetition(frequency: float, saturation: float) -> float:
    """Return R ∈ [0, 1]: said often and not yet held; a product, so that full saturation vetoes."""
    return frequency * (1.0 - saturation)


def weighted(shares: Sequence[float], values: Sequence[float]) -> float:
    """Return Σ share·value in [0, 1], for shares that sum to 1."""
    return clamp01(_total(share * value for share, value in zip(shares, values, strict=True)))


def mixed(technical: float, conversational: float, technical_value: float) -> float:
    """Return G, which lies between its two ends to the last bit; `technical` is T ∈ [0, 1]."""
    value = (1.0 - technical) * conversational + technical * technical_value
    low, high = min(conversational, technical_value), max(conversational, technical_value)
    return min(max(value, low), high)


def _reaching(cosines: Sequence[float], least: float) -> int:
    return len([cosine for cosine in cosines if cosine >= least])


def _total(values: Iterable[float]) -> float:
    # `sum` is compensated from Python 3.12 on: a gate must not depend on the interpreter.
    total = 0.0
    for value in values:
        total = total + value
    return total
