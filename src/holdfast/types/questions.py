"""Questions: what one call may see, what it asks for, and what it may spend."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from holdfast.types.units import (
    JSON,
    Act,
    Role,
)


@dataclass(frozen=True, slots=True)
class Condition:
    """One comparison of a filter: a dotted path on metadata, or the name of a unit field."""

    on: Literal["metadata", "field"]
    path: tuple[str, ...]
    op: Literal["eq", "ne", "in", "gt", "gte", "lt", "lte", "contains"]
    value: JSON


@dataclass(frozen=True, slots=True)
class Junction:
    """A boolean combination of filters."""

    op: Literal["and", "or", "not"]
    parts: tuple[Filter, ...]


Filter = Condition | Junction


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What one call may see (C1): its owner keys, its filters, and the moments it looks from.

    `now` decides what has expired; `reference_time` is the moment the question is asked about (C9's t_ref) and
    decides what was valid; `as_of` shows what had been recorded by then (C19). An owner key left empty on a unit
    means shared; one named here hides other values. `hide_covered` leaves a turn to the summary that covers it.
    """

    tenant: str
    user: str
    now: datetime
    reference_time: datetime
    session: str | None = None
    agent: str | None = None
    only_session: bool = False
    current_only: bool = True
    as_of: datetime | None = None
    hide_covered: bool = False
    filters: Filter | None = None


@dataclass(frozen=True, slots=True)
class QueryProfile:
    """What the question asks for (C7), by tables and small rules."""

    text: str
    terms: tuple[str, ...]
    act: Act | None = None
    needed_roles: frozenset[Role] = frozenset()
    participants: tuple[str, ...] = ()
    perspective: Literal["user", "assistant"] | str | None = None  # noqa: PYI051 - a speaker's name otherwise
    borrowed: str | None = None
    identifiers: tuple[str, ...] = ()  # those of `terms` that name one thing exactly: codes, paths, quoted words
    years: tuple[str, ...] = ()  # those of `terms` that are years
    # The time that the question names, start and end, and whether there is nothing else that it asks for.
    time_range: tuple[datetime, datetime] | None = None
    only_time: bool = False
    date_terms: tuple[str, ...] = ()  # the words of that time, when it is all that is asked for and names a year
    # The question's vector and its embedding space, when the profile asks for meaning and there is an embedder.
    vector: NDArray[np.float32] | None = field(default=None, compare=False, repr=False)
    space: str | None = None


@dataclass(frozen=True, slots=True)
class Deadline:
    """A time limit that is asked, so that no stage reads a clock. `clock` counts seconds."""

    clock: Callable[[], float]
    started: float
    timeout_ms: float

    @classmethod
    def start(cls, clock: Callable[[], float], timeout_ms: float) -> Deadline:
        """Begin to count now."""
        return cls(clock, clock(), timeout_ms)

    def elapsed_ms(self) -> float:
        """Return the milliseconds since the start."""
        return (self.clock() - self.started) * 1000.0

    def expired(self) -> bool:
        """Return whether the time has run out."""
        return self.elapsed_ms() >= self.timeout_ms
