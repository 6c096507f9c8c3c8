"""What happens to units over time: the decision about a promotion (C17)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self


@dataclass(frozen=True, slots=True)
class Gate:
    """Whether a turn became durable, and why."""

    promoted: bool
    score: float
    conversational: float
    technical: float
    signals: Mapping[str, float]
    reason: str

    def to_json(self) -> dict[str, Any]:
        """Return the decision as a JSON object."""
        return {
            "promoted": self.promoted,
            "score": self.score,
            "conversational": self.conversational,
            "technical": self.technical,
            "signals": dict(self.signals),
            "reason": self.reason,
        }

    @classmethod
    def from_json(cls, row: Mapping[str, Any]) -> Self:
        """Read what `to_json` gave."""
        return cls(**row)
