"""What becomes of one cluster of turns (C18)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Method = Literal["extractive", "abstractive"]
Rung = Literal["normal", "tight", "last"]


@dataclass(frozen=True, slots=True)
class Summarised:
    """A summary that costs less than its turns.

    `picks` are the ids of the turns it is made of, or had to keep the essentials of. `conf_model` is the
    summariser's own confidence, None for an extractive summary. `notes` say what was tried before, and why it was
    not kept.
    """

    text: str
    method: Method
    rung: Rung
    picks: tuple[str, ...]
    tokens_before: int
    tokens_after: int
    align: float
    cover: float
    conf_space: float
    conf_model: float | None
    confidence: float
    decay_rate: float
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Declined:
    """A cluster that no summary would make cheaper; its turns stay uncovered."""

    tokens_before: int
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Trivial:
    """A cluster of one turn: nothing to say in its place. It stays uncovered and joins the next run."""

    turn: str
    confidence: float = 1.0


Compacted = Summarised | Declined | Trivial
