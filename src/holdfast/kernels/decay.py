"""Exponential decay (C9)."""

from __future__ import annotations

import math


def decay(rate: float, age: float) -> float:
    """Return exp(-rate·age) ∈ [0, 1]; `age` in seconds, negative ages count as 0."""
    return math.exp(-rate * max(0.0, age))
