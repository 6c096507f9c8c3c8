"""Shares of a budget in whole tokens."""

from __future__ import annotations

from fractions import Fraction


def share_of(budget: int, share: float) -> int:
    """Return the whole tokens in a share of a budget, exact in decimals: .29 of 100 is 29, in floats it is less."""
    return int(Fraction(str(float(share))) * budget)
