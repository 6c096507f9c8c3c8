"""Names → profiles and strategies: the built-in ones from settings, a third party's from its entry point."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from functools import cache
from importlib.metadata import entry_points

from holdfast.errors import UnknownProfileError, shown
from holdfast.retrieval.strategy import Strategy
from holdfast.settings import PROFILES, ProfileSettings, Settings

PROFILE_GROUP = "holdfast.profiles"
STRATEGY_GROUP = "holdfast.strategies"


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
    installed = {entry.name: entry for entry in entry_points(group=PROFILE_GROUP)}
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
    installed = {entry.name: entry for entry in entry_points(group=STRATEGY_GROUP)}
    if strategy_id not in installed:
        known = ", ".join(sorted(installed))
        raise UnknownProfileError(f"there is no strategy {shown(strategy_id)}; installed are {known}")
    found: type[Strategy] = installed[strategy_id].load()
    return found


def build_strategies(ids: Sequence[str], settings: Settings) -> list[Strategy]:
    """Return the strategies called `ids`, in their order.

    Raises:
        UnknownProfileError: one of them is not installed.
    """
    return [_strategy_class(strategy_id)(settings) for strategy_id in ids]
