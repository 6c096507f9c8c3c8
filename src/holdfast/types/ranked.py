"""Candidates of one question (C6): what fusion, stages and the reader make of a unit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from holdfast.values import dataclass


class Adjustment(NamedTuple):
    """What one stage of the default recipe did to a relevance: rel' = (1 - weight)·rel + weight·signal.

    `because` says in an explanation what the signal is.
    """

    stage: str
    weight: float
    signal: float
    because: str = "signal"


class Mention(NamedTuple):
    """A link that was found (C12): the parent names what the target is called, or both name the same thing."""

    parent: str
    target: str
    name: str
    called: bool


@dataclass(frozen=True, slots=True)
class Candidate:
    """One row of a pool (C6): what fusion and stages made of a unit; `merged_ids` are copies folded into it."""

    unit_id: str
    fused: float
    rel: float
    claims: Mapping[str, float]
    merged_ids: tuple[str, ...] = ()
    adjustments: tuple[Adjustment, ...] = ()


@dataclass(frozen=True, slots=True)
class TurnReading:
    """What the reader says of one turn that it read: see `Judgement`; `alone` is the logit of it as a pair."""

    rank: float
    answers: float
    earlier: float
    other_time: float
    alone: float | None = None  # None where it was not read alone


@dataclass(frozen=True, slots=True)
class Readings:
    """What was read together for one question: turns by id, in the order of time; `nothing`: that none answers."""

    turns: Mapping[str, TurnReading]
    nothing: float


class RankedCandidate(Protocol):
    """A pool after all stages: its rows one by one, best first."""

    @property
    def readings(self) -> Readings | None:
        """Return what was read together, if anything was."""
        ...

    def candidates(self) -> tuple[Candidate, ...]:
        """Return every row."""
        ...
