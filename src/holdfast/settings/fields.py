"""What a settings group is made of: documented keys and checked domains."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import field
from typing import Any

from holdfast.errors import SettingsError, shown

Triple = tuple[float, float, float]


# What stands where a key would be shown.
HIDDEN = "(hidden)"


def setting(default: object, doc: str, *, secret: bool = False) -> Any:  # noqa: ANN401 - stands in for any type
    """Return a dataclass field with its documentation; a table is copied for every group, a secret never shown."""
    metadata = {"doc": doc, "secret": secret}
    if isinstance(default, dict):
        return field(default_factory=lambda: dict(default), metadata=metadata)
    return field(default=default, metadata=metadata, repr=not secret)


def within(
    name: str, value: float, low: float, high: float = math.inf, *, open_low: bool = False, open_high: bool = False
) -> None:
    """Refuse NaN and whatever lies outside the domain."""
    above = low < value if open_low else low <= value
    below = value < high if open_high else value <= high
    if not (above and below) or value == math.inf:
        domain = f"{'(' if open_low else '['}{low}, {high}{')' if open_high else ']'}"
        raise SettingsError(f"{name} = {shown(value)} is outside {domain}; choose a value inside")


def shares_of(group: str, weights: Mapping[str, float], defaults: Triple) -> Triple:
    """Return three weights clamped to [0, 1] and divided by their sum; all zero gives the defaults."""
    for name, weight in weights.items():
        if math.isnan(weight):
            raise SettingsError(f"{group}.{name} is not a number; choose a value inside [0, 1]")
    first, second, third = (min(1.0, max(0.0, weight)) for weight in weights.values())
    total = first + second + third
    if total == 0.0:
        return defaults
    if math.isclose(total, 1.0, rel_tol=1e-12):  # .7 + .2 + .1 is not 1 in floats; dividing would only add noise
        return (first, second, third)
    return (first / total, second / total, third / total)
