"""Everything that can be switched off by name, so that a table shows what each part adds."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from holdfast.errors import SettingsError, shown
from holdfast.settings import PROFILES, Settings

Switch = Callable[[Settings], Settings]


def _set(**groups: Mapping[str, Any]) -> Switch:
    def change(settings: Settings) -> Settings:
        return dataclasses.replace(
            settings,
            **{group: dataclasses.replace(getattr(settings, group), **keys) for group, keys in groups.items()},
        )

    return change


def _profiles(**keys: Any) -> Switch:  # noqa: ANN401 - any setting of a profile
    return _set(**dict.fromkeys(PROFILES, keys))


def _without(strategy: str) -> Switch:
    """Take one strategy out of every profile that has others; one that has no other keeps it."""

    def change(settings: Settings) -> Settings:
        changed = {}
        for name in PROFILES:
            profile = getattr(settings, name)
            others = tuple(each for each in profile.strategies if each != strategy)
            escalation = tuple(each for each in profile.escalation if each != strategy)
            changed[name] = dataclasses.replace(
                profile, strategies=others or profile.strategies, escalation=escalation
            )
        return dataclasses.replace(settings, **changed)

    return change


_SYMBOLIC = "thinkingdb-symbolic"

# What can be switched off, in the order of the pipeline. A new stage adds its line here.
SWITCHES: Mapping[str, Switch] = {
    "lexical": _without("lexical"),
    "dense": _without("dense"),
    "hdc-vsa": _without("hdc-vsa"),
    _SYMBOLIC: _without(_SYMBOLIC),
    "proof_bonus": _set(symbolic={"seed_bonus": 1.0, "goal_bonus": 1.0}),
    "role_boost": _set(lexical={"role_boost": 1.0}),
    "agreement_bonus": _set(fusion={"agreement_bonus": 0.0}),
    "refusal": _set(refusal={"enabled": False}),
    "names_leave": _set(stages={"names_leave": False}),
    "smoothing": _set(stages={"smoothing": 0.0}),
    "perspective": _set(stages={"perspective": 0.0}),
    "time_range": _set(stages={"time_range": 0.0}),
    "identifiers": _set(stages={"identifiers": 0.0}),
    "mentions": _set(stages={"mentions": 0.0}),
    "shared_names": _set(stages={"shared_names": 0.0}),
    "diversity": _set(stages={"diversity": 0.0}),
    "min_score": _profiles(min_score=0.0),
    "gap": _profiles(gap=0.0),
    "recency": _set(score={"beta": 0.0}),
    "scope": _set(score={"gamma": 0.0}),
    "keywords": _set(projection={"keyword_weight": 0.0}),
    "growth": _set(projection={"growth": 0}),
    "hops": _set(projection={"hop_floor": 1.0}),
    "temporal": _set(temporal={"enabled": False}),
    "first_hit": _set(assembly={"first_hit": False}),
    "item_tokens": _set(assembly={"item_tokens": 0}),
    "quality": _set(score={"delta": 0.0}),
    "gate": _set(gate={"policy": "off"}),
    "changes": _set(changes={"detect": False}),
}


def switched_off(settings: Settings, names: Sequence[str]) -> Settings:
    """Return the settings with some parts off.

    Raises:
        SettingsError: there is no switch of that name.
    """
    for name in names:
        if name not in SWITCHES:
            raise SettingsError(f"there is no switch {shown(name)}; choose from {', '.join(SWITCHES)}")
        settings = SWITCHES[name](settings)
    return settings


def ablations(settings: Settings, profile: str, parts: Sequence[str] = ()) -> dict[str, Settings]:
    """Return the settings with each part off in turn, leaving out those that change nothing in a profile.

    With `parts`, only these.

    Raises:
        SettingsError: there is no switch of that name.
    """
    return {
        f"without {name}": changed
        for name in parts or SWITCHES
        if differ(settings, changed := switched_off(settings, [name]), profile)
    }


def differ(before: Settings, after: Settings, profile: str) -> bool:
    """Return whether two settings differ in anything that a search with this profile looks at."""
    others = [name for name in PROFILES if name != profile]
    if _SYMBOLIC not in getattr(before, profile).strategies:
        others.append("symbolic")
    return after != dataclasses.replace(before, **{name: getattr(after, name) for name in others})
