"""Scores: the best k of many without losing a tie, and how one fades with age (C9)."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Scores = NDArray[np.float64] | NDArray[np.float32]

# Two ways of adding the same floats differ far below this; a proposer keeps all within it of its cut (law 11).
TIE_MARGIN = 1e-5


def at_least_top(scores: Scores, k: int, margin: float = TIE_MARGIN) -> NDArray[np.intp]:
    """Return the places of the k highest scores and of all that lie within `margin` of the k-th, in place order."""
    if k <= 0 or scores.size == 0:
        return np.zeros(0, dtype=np.intp)
    if scores.size <= k:
        return np.arange(scores.size)
    bar = np.partition(scores, scores.size - k)[scores.size - k]
    return np.flatnonzero(scores >= bar - margin)


def decay(rate: float, age: float) -> float:
    """Return exp(-rate·age) ∈ [0, 1]; `age` in seconds, negative ages count as 0."""
    return math.exp(-rate * max(0.0, age))
