"""What a strategy is (C7), and how one is asked. A third party's passes `holdfast.testing.StrategyContract`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np

from holdfast.kernels.vectors import order_rows
from holdfast.settings import Settings
from holdfast.store.contract import Reading
from holdfast.types import Deadline, QueryProfile, RetrievalResult, StrategyExplanation, StrategyScores
from holdfast.values import dataclass


@dataclass(frozen=True, slots=True)
class Proposals:
    """What a strategy proposes: units that may be among its best, in no order.

    `claims` when it knows their scores already; `exhausted` when time ran out before it had looked everywhere.
    """

    ids: tuple[str, ...]
    exhausted: bool = False
    claims: StrategyScores | None = None


class Strategy(Protocol):
    """One way of finding units. Built once with the settings; holds no state about any owner."""

    id: str

    def __init__(self, settings: Settings) -> None: ...

    def propose(self, query: QueryProfile, reading: Reading, depth: int, deadline: Deadline) -> Proposals:
        """Return visible units among which are its `depth` best; when `deadline` expires, what there is."""
        ...

    def score(self, query: QueryProfile, reading: Reading, ids: Sequence[str]) -> StrategyScores:
        """Return what it says of each of `ids`, proposed or not: one row for each.

        A score is the same in any company, bit for bit; a unit that it would not find, or that nobody has, scores 0.
        """
        ...

    def explain(self, query: QueryProfile, reading: Reading, ids: Sequence[str]) -> Mapping[str, StrategyExplanation]:
        """Return, for each of `ids`, the tree of its raw score, and notes that begin with the strategy's id."""
        ...


def retrieve(
    strategy: Strategy, query: QueryProfile, reading: Reading, depth: int, deadline: Deadline
) -> RetrievalResult:
    """Let a strategy propose, score what it proposes, and keep its `depth` best, ties by id; 0 is no find."""
    found = strategy.propose(query, reading, depth, deadline)
    claims = found.claims if found.claims is not None else strategy.score(query, reading, found.ids)
    best = claims.take(order_rows(claims.raw, claims.ids)[: min(depth, np.count_nonzero(claims.raw > 0.0))])
    known = reading.columns(best.ids, ("kind",))["kind"].tolist()
    if None in known:  # a third party's strategy may name what nobody has
        best = best.take([row for row, kind in enumerate(known) if kind is not None])
    scale = float(best.raw[0]) if claims.relative and best.ids else 1.0
    return RetrievalResult(strategy.id, best, deadline.elapsed_ms(), found.exhausted, scale)
