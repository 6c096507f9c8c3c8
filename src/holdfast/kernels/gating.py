"""The maths of the gate (C17), by which `lifecycle/gate` decides: what is new, what is said again, and their mix.

H = 1 - mean max(0, cos)      R = F·(1 - S)      G = (1 - T)·Gconv + T·Gtech
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

# The reference's normalisers: said five times before is often, held three times is enough.
_OFTEN = 5
_ENOUGH = 3


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
