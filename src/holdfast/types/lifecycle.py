"""What happens to units over time, as values: the gate's decision about one turn (C17)."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self


@dataclass(frozen=True, slots=True)
class Gate:
    """Whether a turn becomes durable, and every signal behind it; all numbers lie in [0, 1]."""

    promoted: bool
    reason: str
    score: float  # G
    conversational: float  # Gconv
    technical: float  # Gtech
    novelty: float  # H
    repetition: float  # R
    frequency: float  # F
    saturation: float  # S
    technical_density: float  # T
    statement: float  # D_nl
    specificity: float  # P
    action: float  # A
    structure: float  # D_tech

    def to_json(self) -> dict[str, Any]:
        """Return the decision as JSON; Python writes floats so that they read back bit for bit."""
        return dataclasses.asdict(self)

    @classmethod
    def from_json(cls, node: Mapping[str, Any]) -> Self:
        """Read what `to_json` wrote."""
        return cls(**node)
