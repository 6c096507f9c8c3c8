"""What a command asks for → which systems are measured on which part of the data, and which variant is chosen.

A part is switched off by name, so that a table shows what it adds. A value is tuned by leaving one haystack out: for
every haystack the variant is chosen that is best on all the others, and the figure reported is the mean over what
those choices did on the haystacks they had not seen.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from holdfast.errors import InputError, SettingsError, shown
from holdfast.eval.baselines import BASELINES
from holdfast.eval.data import DataSet, GoldQuestion, Haystack, Message
from holdfast.eval.metrics import Measurement, intervals, means
from holdfast.eval.run import Product, System
from holdfast.settings import PROFILES, Settings, Unread

REFERENCE = "reference"
_SYMBOLIC = "thinkingdb-symbolic"
# A quick run keeps so much of every set: enough to see that something broke, in a minute or two of embedding.
_QUICK_HAYSTACKS = 2
_QUICK_QUESTIONS = 40
_QUICK_MESSAGES = 500

# What can be switched off, in the order of the pipeline: strategies leave every profile, of the other parts these
# settings change (`profile` is each of them). A new stage adds its line here.
SWITCHES: Mapping[str, Mapping[str, object]] = {
    "lexical": {},
    "dense": {},
    "hdc-vsa": {},
    _SYMBOLIC: {},
    "proof_bonus": {"symbolic.seed_bonus": 1.0, "symbolic.goal_bonus": 1.0},
    "role_boost": {"lexical.role_boost": 1.0},
    "agreement_bonus": {"fusion.agreement_bonus": 0.0},
    "refusal": {"refusal.enabled": False},
    "names_leave": {"stages.names_leave": False},
    "smoothing": {"stages.smoothing": 0.0},
    "perspective": {"stages.perspective": 0.0},
    "time_range": {"stages.time_range": 0.0},
    "identifiers": {"stages.identifiers": 0.0},
    "mentions": {"stages.mentions": 0.0},
    "shared_names": {"stages.shared_names": 0.0},
    "diversity": {"stages.diversity": 0.0},
    "min_score": {"profile.min_score": 0.0},
    "gap": {"profile.gap": 0.0},
    "recency": {"score.beta": 0.0},
    "scope": {"score.gamma": 0.0},
    "keywords": {"projection.keyword_weight": 0.0},
    "growth": {"projection.growth": 0},
    "hops": {"projection.hop_floor": 1.0},
    "temporal": {"temporal.enabled": False},
    "first_hit": {"assembly.first_hit": False},
    "item_tokens": {"assembly.item_tokens": 0},
    "quality": {"score.delta": 0.0},
    "gate": {"gate.policy": "off"},
    "changes": {"changes.detect": False},
}


# ------------------------------------------------------------------------------------------------- switches


def switch_off(settings: Settings, names: Sequence[str]) -> Settings:
    """Return the settings with some parts off.

    Raises:
        SettingsError: there is no switch of that name.
    """
    for name in names:
        if name not in SWITCHES:
            raise SettingsError(f"there is no switch {shown(name)}; choose from {', '.join(SWITCHES)}")
        if not SWITCHES[name]:
            settings = _drop_strategy(settings, name)
        for key, value in SWITCHES[name].items():
            group, _, setting = key.partition(".")
            for each in PROFILES if group == "profile" else (group,):
                settings = replace(settings, **{each: replace(getattr(settings, each), **{setting: value})})
    return settings


def _drop_strategy(settings: Settings, strategy: str) -> Settings:
    """Take one strategy out of every profile that has others; one that has no other keeps it."""
    changed = {}
    for name in PROFILES:
        profile = getattr(settings, name)
        others = tuple(each for each in profile.strategies if each != strategy)
        escalation = tuple(each for each in profile.escalation if each != strategy)
        changed[name] = replace(profile, strategies=others or profile.strategies, escalation=escalation)
    return replace(settings, **changed)


def find_ablations(settings: Settings, profile: str, parts: Sequence[str] = ()) -> dict[str, Settings]:
    """Return the settings with each part, or each of `parts`, off in turn: those that change something in a profile.

    Raises:
        SettingsError: there is no switch of that name.
    """
    return {
        f"without {name}": changed
        for name in parts or SWITCHES
        if differ(settings, changed := switch_off(settings, [name]), profile)
    }


def differ(before: Settings, after: Settings, profile: str) -> bool:
    """Return whether two settings differ in anything that a search with this profile looks at."""
    others = [name for name in PROFILES if name != profile]
    if _SYMBOLIC not in getattr(before, profile).strategies:
        others.append("symbolic")
    return after != replace(before, **{name: getattr(after, name) for name in others})


# -------------------------------------------------------------------------------------------------- systems


@dataclass(frozen=True, slots=True)
class Selection:
    """The systems to measure, which are variants to choose among, and which lack a part of which other one."""

    systems: tuple[System, ...]
    variants: tuple[str, ...] = ()
    ablated: Mapping[str, str] = field(default_factory=dict)


def select_systems(
    settings: Settings,
    *,
    baselines: Sequence[str] = (),
    profiles: Sequence[str] = (),
    off: Sequence[str] = (),
    ablate: bool | Sequence[str] = False,
    compacted: bool = False,
    tune: Mapping[str, Sequence[str]] | None = None,
    overrides: Mapping[str, str] | None = None,
) -> Selection:
    """Return what to measure: the baselines named, and the product unless only baselines were asked for.

    `ablate` switches every part off in turn, or the parts named.

    Raises:
        InputError: there is no baseline of that name.
        SettingsError: there is no such switch or setting, or it would change nothing that is measured.
    """
    wanted = [*BASELINES, REFERENCE] if "all" in baselines else list(dict.fromkeys(baselines))
    chosen: list[System] = [_find_baseline(name) for name in wanted]
    if not (profiles or off or ablate or compacted or tune) and baselines:
        return Selection(tuple(chosen))
    ablated: dict[str, str] = {}
    names = list(dict.fromkeys(profiles)) or ["hybrid"]
    for profile in names:
        base = _switch_off_each(settings, off, profile)
        whole = " without ".join([profile, *dict.fromkeys(off)])
        chosen.append(Product(whole, base, profile))
        if compacted:
            chosen.append(Product(f"{whole} compacted", base, profile, compacted=True))
        if ablate:
            parts = () if ablate is True else ablate
            lacking = {f"{whole} {name}": changed for name, changed in find_ablations(base, profile, parts).items()}
            chosen += [Product(name, changed, profile) for name, changed in lacking.items()]
            ablated |= dict.fromkeys(lacking, whole)
    variants = _build_variants(tune or {}, overrides or {}, off, names[0])
    return Selection((*chosen, *variants), tuple(variant.name for variant in variants), ablated)


def _switch_off_each(settings: Settings, off: Sequence[str], profile: str) -> Settings:
    for name in dict.fromkeys(off):
        changed = switch_off(settings, [name])
        if not differ(settings, changed, profile):
            raise SettingsError(
                f"switching off {shown(name)} changes nothing in profile {profile}; leave it out, or choose another"
            )
        settings = changed
    return settings


def _build_variants(
    tune: Mapping[str, Sequence[str]], overrides: Mapping[str, str], off: Sequence[str], profile: str
) -> list[Product]:
    """Return a product for each combination of the values to choose from."""
    if fixed := [key for key in tune if key.startswith("embedding.")]:
        raise SettingsError(
            f"{fixed[0]} cannot be tuned: all systems of a run share one embedder; measure it in runs of its own"
        )
    variants = []
    for values in itertools.product(*tune.values()) if tune else ():
        keys = dict(zip(tune, values, strict=True))
        name = " ".join(f"{key}={value}" for key, value in keys.items())
        changed = Settings.load({**overrides, **{key: Unread(value) for key, value in keys.items()}})
        variants.append(Product(name, switch_off(changed, off), profile))
    return list({variant.name: variant for variant in variants}.values())


def _find_baseline(name: str) -> System:
    if name == REFERENCE:
        return Product(REFERENCE, Settings.reference())
    if name not in BASELINES:
        raise InputError(f"there is no baseline {shown(name)}; choose from {', '.join([*BASELINES, REFERENCE])}, all")
    return BASELINES[name]


def read_assignments(given: Sequence[str]) -> dict[str, Unread]:
    """Read KEY=VALUE pairs.

    Raises:
        SettingsError: one of them is not a pair.
    """
    pairs: dict[str, Unread] = {}
    for text in given:
        key, sign, value = text.partition("=")
        if not sign or not key:
            raise SettingsError(f"{shown(text)} is not KEY=VALUE; write it as lexical.b=0.35")
        pairs[key.strip()] = Unread(value.strip())
    return pairs


# --------------------------------------------------------------------------------------------------- tuning


def cross_validate(variants: Mapping[str, Sequence[Measurement]], metric: str) -> dict[str, Any]:
    """Choose among variants measured on the same questions; ties go to the variant named first.

    Returns the mean on held-out haystacks and its interval, the variants chosen and how often, and the best variant
    on everything with its (flattering) mean.

    Raises:
        InputError: there is no second haystack, or no question has the metric.
    """
    values = {name: _group_by_haystack(records, metric) for name, records in variants.items()}
    haystacks = list(next(iter(values.values()), {}))
    if len(haystacks) < 2:
        raise InputError(f"{metric} was measured on {len(haystacks)} haystacks; leaving one out needs two or more")

    def mean(name: str, without: str | None = None) -> float:
        own = [value for haystack in haystacks if haystack != without for value in values[name][haystack]]
        return math.fsum(own) / len(own)

    held_out: list[Measurement] = []
    chosen: Counter[str] = Counter()
    for haystack in haystacks:
        best = max(variants, key=lambda name: mean(name, without=haystack))
        chosen[best] += 1
        held_out += [record for record in variants[best] if record.haystack == haystack and metric in record.metrics]
    overall = max(variants, key=mean)
    return {
        "metric": metric,
        "cross_validated": means(held_out)[metric],
        "ci": list(intervals(held_out)[metric]),
        "chosen": dict(chosen.most_common()),
        "best": overall,
        "in_sample": mean(overall),
    }


def _group_by_haystack(records: Sequence[Measurement], metric: str) -> dict[str, list[float]]:
    values: dict[str, list[float]] = {}
    for record in records:
        if metric in record.metrics:
            values.setdefault(record.haystack, []).append(record.metrics[metric])
    return values


# ---------------------------------------------------------------------------------------------------- quick


def take_quick_part(data: DataSet) -> DataSet:
    """Return a small part of a set, always the same one."""
    return replace(data, haystacks=tuple(_shrink(each) for each in data.haystacks[:_QUICK_HAYSTACKS]))


def _shrink(haystack: Haystack) -> Haystack:
    """Keep the first questions; of a large corpus, the messages that they need and the first of the others."""
    questions = haystack.questions[:_QUICK_QUESTIONS]
    if len(haystack.messages) <= _QUICK_MESSAGES:
        return replace(haystack, questions=questions)
    if any(question.visible < len(haystack.messages) for question in questions):
        # Where questions are asked in between, the beginning of the chat is a smaller chat.
        begun = tuple(question for question in haystack.questions if question.visible <= _QUICK_MESSAGES)
        return replace(haystack, messages=haystack.messages[:_QUICK_MESSAGES], questions=begun[:_QUICK_QUESTIONS])
    needed = _find_needed(haystack.messages, questions)
    messages = tuple(
        message
        for place, message in enumerate(haystack.messages)
        if place < _QUICK_MESSAGES - len(needed) or message.id in needed
    )
    sessions = {message.session for message in messages}
    kept = tuple(
        replace(each, visible=len(messages), gold_sessions=frozenset(each.gold_sessions & sessions))
        for each in questions
    )
    return replace(haystack, messages=messages, questions=kept)


def _find_needed(messages: Sequence[Message], questions: Sequence[GoldQuestion]) -> set[str]:
    """Return the gold messages, and the whole of a gold session in which none is marked."""
    gold = {item for question in questions for item in question.gold}
    named = {session for question in questions for session in question.gold_sessions}
    unmarked = named - {message.session for message in messages if message.id in gold}
    return gold | {message.id for message in messages if message.session in unmarked}
