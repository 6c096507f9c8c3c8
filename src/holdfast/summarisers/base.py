"""What a summariser is (C18): it writes, and the preservation gate decides whether that is kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Writing:
    """What a summariser wrote, and how sure it was: exp(mean log p) of its tokens, in [0, 1]."""

    text: str
    confidence: float


class Summariser(Protocol):
    """Writes a short text in the place of some turns."""

    name: str

    def summarise(self, turns: Sequence[str], *, max_tokens: int, keep: Sequence[str] = ()) -> Writing:
        """Write at most `max_tokens` tokens about `turns`; `keep` are words that must stand in it.

        Raises:
            SummariserError: it cannot be loaded, reached or trusted.
        """
        ...
