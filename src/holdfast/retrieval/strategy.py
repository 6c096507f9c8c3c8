"""What a strategy is (C7). A third party's passes `holdfast.testing.StrategyContract` and installs by entry point."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, Protocol

from holdfast.settings import Settings
from holdfast.store.contract import Store
from holdfast.types import Budget, Deadline, QueryProfile, RetrievalResult, StrategyCandidate, Unit, View


class Strategy(Protocol):
    """One way of finding units. Built once with the settings; holds no state about any owner."""

    id: str

    def __init__(self, settings: Settings) -> None: ...

    def retrieve(
        self, query: QueryProfile, view: View, store: Store, budget: Budget, deadline: Deadline
    ) -> RetrievalResult:
        """Return the best visible units, best first, ties by id, at most `budget.max_candidates`.

        When `deadline` expires, return what there is with `exhausted_budget=True`.
        """
        ...

    def score(
        self, query: QueryProfile, view: View, store: Store, ids: Sequence[str], *, explain: bool = True
    ) -> Mapping[str, StrategyCandidate]:
        """Return this strategy's claim about each of `ids` that the owner may see, found or not.

        With `explain`, each carries the tree of its raw score. A unit it would not find has raw score 0.
        Scores equal those of `retrieve`, bit for bit.
        """
        ...


def kind_of_store(unit: Unit) -> Literal["session", "kb"]:
    """Return which of C7's two stores a unit counts to: what was said, or what is known."""
    return "session" if unit.kind in ("turn", "summary") else "kb"
