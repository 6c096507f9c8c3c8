"""What a strategy is (C7), and how one is asked. A third party's passes `holdfast.testing.StrategyContract`."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Protocol

import numpy as np

from holdfast.errors import UnknownProfileError, shown
from holdfast.kernels.vectors import order_rows
from holdfast.settings import PROFILES, ProfileSettings, Settings
from holdfast.store.contract import Reading
from holdfast.types import Account, Claims, Deadline, QueryProfile, RetrievalResult

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

PROFILE_GROUP = "holdfast.profiles"
STRATEGY_GROUP = "holdfast.strategies"
# The built-in strategies work in a source tree or a zip file too, where there are no entry points.
_BUILT_IN = {
    "lexical": ("holdfast.retrieval.lexical", "LexicalStrategy"),
    "dense": ("holdfast.retrieval.dense", "DenseStrategy"),
    "hdc-vsa": ("holdfast.retrieval.hyperdimensional", "HyperdimensionalStrategy"),
    "thinkingdb-symbolic": ("holdfast.retrieval.symbolic", "SymbolicStrategy"),
}


@dataclasses.dataclass(frozen=True, slots=True)
class Finding:
    """What a strategy proposes: units that may be among its best, in no order.

    `claims` when it knows their scores already; `exhausted` when time ran out before it had looked everywhere.
    """

    ids: tuple[str, ...]
    exhausted: bool = False
    claims: Claims | None = None


class Strategy(Protocol):
    """One way of finding units. Built once with the settings; holds no state about any owner."""

    id: str

    def __init__(self, settings: Settings) -> None: ...

    def propose(self, query: QueryProfile, reading: Reading, depth: int, deadline: Deadline) -> Finding:
        """Return visible units among which are its `depth` best; when `deadline` expires, what there is."""
        ...

    def score(self, query: QueryProfile, reading: Reading, ids: Sequence[str]) -> Claims:
        """Return what it says of each of `ids`, proposed or not: one row for each.

        A score is the same in any company, bit for bit; a unit that it would not find, or that nobody has, scores 0.
        """
        ...

    def explain(self, query: QueryProfile, reading: Reading, ids: Sequence[str]) -> Mapping[str, Account]:
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


# ------------------------------------------------------------------------------------------------- registry


def _installed(group: str) -> dict[str, EntryPoint]:
    from importlib.metadata import entry_points  # noqa: PLC0415 - brings a parser of mail along; few have any

    return {entry.name: entry for entry in entry_points(group=group)}


def find_profile(name: str, settings: Settings) -> ProfileSettings:
    """Return the profile called `name`.

    Raises:
        UnknownProfileError: no such profile is installed.
    """
    if not isinstance(name, str):
        raise UnknownProfileError(f"profile = {shown(name)} is not a name; choose one of {', '.join(PROFILES)}")
    if name in PROFILES:
        profile: ProfileSettings = getattr(settings, name)
        return profile
    installed = _installed(PROFILE_GROUP)
    if name not in installed:
        known = ", ".join(sorted({*PROFILES, *installed}))
        raise UnknownProfileError(f"there is no profile {shown(name)}; choose one of {known}")
    profile = installed[name].load()
    if not isinstance(profile, ProfileSettings):
        raise UnknownProfileError(
            f"the entry point of profile {shown(name)} is not a ProfileSettings; tell its author"
        )
    return profile


def without_dense(profile: ProfileSettings) -> ProfileSettings:
    """Return the profile for a memory that was told to have no embedder: the other strategies, by C6's weights."""
    if "dense" not in profile.strategies:
        return profile
    others = tuple(strategy_id for strategy_id in profile.strategies if strategy_id != "dense")
    return dataclasses.replace(profile, strategies=others or ("lexical",), mix={}, normalise="own")


@cache
def _strategy_class(strategy_id: str) -> type[Strategy]:
    if strategy_id in _BUILT_IN:
        module, name = _BUILT_IN[strategy_id]
        built_in: type[Strategy] = getattr(import_module(module), name)
        return built_in
    installed = _installed(STRATEGY_GROUP)
    if strategy_id not in installed:
        known = ", ".join(sorted({*_BUILT_IN, *installed}))
        raise UnknownProfileError(f"there is no strategy {shown(strategy_id)}; installed are {known}")
    found: type[Strategy] = installed[strategy_id].load()
    return found


def build_strategies(ids: Sequence[str], settings: Settings) -> list[Strategy]:
    """Return the strategies called `ids`, in their order.

    Raises:
        UnknownProfileError: one of them is not installed.
    """
    return [_strategy_class(strategy_id)(settings) for strategy_id in ids]
