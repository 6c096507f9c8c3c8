"""What a summariser is (C18): it writes, and the preservation gate decides whether that is kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from holdfast.errors import InputError, quote_value
from holdfast.models.embedder import clean_text
from holdfast.values import dataclass


@dataclass(frozen=True, slots=True)
class Writing:
    """What a summariser wrote, and how sure it was: exp(mean log p) of its tokens, in [0, 1]."""

    text: str
    confidence: float


class Summariser(Protocol):
    """Writes a short text in the place of some turns."""

    @property
    def name(self) -> str:
        """Name the summariser, as lineage and messages show it."""
        ...

    def summarise(self, turns: Sequence[str], *, max_tokens: int, keep: Sequence[str] = ()) -> Writing:
        """Write at most `max_tokens` tokens about `turns`; `keep` are words that must stand in it.

        Raises:
            SummariserError: it cannot be loaded, reached or trusted.
        """
        ...


def clean_turns(turns: Sequence[str], max_tokens: int) -> list[str]:
    """Return the turns that say something, as a model may read them.

    Raises:
        InputError: there is nothing to read, or no room for an answer.
    """
    if isinstance(turns, str):
        raise InputError(f"summarise takes a list of turns, not the one text {quote_value(turns)}")
    if max_tokens < 1:
        raise InputError(f"max_tokens = {max_tokens} leaves no room for a summary; ask for at least one token")
    whole = [clean_text(turn) for turn in turns]
    if not any(whole):
        raise InputError(f"none of the {len(whole)} turns has any words; there is nothing to summarise")
    return [turn for turn in whole if turn]
