"""What a command asks for → which systems are measured on which part of the data."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from holdfast.errors import InputError, SettingsError, shown
from holdfast.eval.baselines import BASELINES
from holdfast.eval.data import DataSet, Haystack, Message, Question
from holdfast.eval.switches import ablations, differ, switched_off
from holdfast.eval.systems import Product, System
from holdfast.eval.tuning import grid
from holdfast.settings import Settings, Unread

REFERENCE = "reference"
# A quick run keeps so much of every set: enough to see that something broke, in a minute or two of embedding.
_QUICK_HAYSTACKS = 2
_QUICK_QUESTIONS = 40
_QUICK_MESSAGES = 500


@dataclass(frozen=True, slots=True)
class Asked:
    """The systems to measure, which are variants to choose among, and which lack a part of which other one."""

    systems: tuple[System, ...]
    variants: tuple[str, ...] = ()
    ablated: Mapping[str, str] = field(default_factory=dict)


def systems(
    settings: Settings,
    *,
    baselines: Sequence[str] = (),
    profiles: Sequence[str] = (),
    off: Sequence[str] = (),
    ablate: bool | Sequence[str] = False,
    compacted: bool = False,
    tune: Mapping[str, Sequence[str]] | None = None,
    overrides: Mapping[str, str] | None = None,
) -> Asked:
    """Return what to measure: the baselines named, and the product unless only baselines were asked for.

    `ablate` switches every part off in turn, or the parts named.

    Raises:
        InputError: there is no baseline of that name.
        SettingsError: there is no such switch or setting, or it would change nothing that is measured.
    """
    wanted = [*BASELINES, REFERENCE] if "all" in baselines else list(dict.fromkeys(baselines))
    chosen: list[System] = [_baseline(name) for name in wanted]
    if not (profiles or off or ablate or compacted or tune) and baselines:
        return Asked(tuple(chosen))
    ablated: dict[str, str] = {}
    names = list(dict.fromkeys(profiles)) or ["hybrid"]
    for profile in names:
        base = _without(settings, off, profile)
        whole = " without ".join([profile, *dict.fromkeys(off)])
        chosen.append(Product(whole, base, profile))
        if compacted:
            chosen.append(Product(f"{whole} compacted", base, profile, compacted=True))
        if ablate:
            parts = () if ablate is True else ablate
            lacking = {f"{whole} {name}": changed for name, changed in ablations(base, profile, parts).items()}
            chosen += [Product(name, changed, profile) for name, changed in lacking.items()]
            ablated |= dict.fromkeys(lacking, whole)
    variants = _variants(tune or {}, overrides or {}, off, names[0])
    return Asked((*chosen, *variants), tuple(variant.name for variant in variants), ablated)


def _without(settings: Settings, off: Sequence[str], profile: str) -> Settings:
    for name in dict.fromkeys(off):
        changed = switched_off(settings, [name])
        if not differ(settings, changed, profile):
            raise SettingsError(
                f"switching off {shown(name)} changes nothing in profile {profile}; leave it out, or choose another"
            )
        settings = changed
    return settings


def _variants(
    tune: Mapping[str, Sequence[str]], overrides: Mapping[str, str], off: Sequence[str], profile: str
) -> list[Product]:
    """Return a product for each combination of the values to choose from."""
    if fixed := [key for key in tune if key.startswith("embedding.")]:
        raise SettingsError(
            f"{fixed[0]} cannot be tuned: all systems of a run share one embedder; measure it in runs of its own"
        )
    variants = []
    for name, keys in grid(tune).items():
        if keys:
            unread = {key: Unread(value) for key, value in keys.items()}
            variants.append(Product(name, switched_off(Settings.load({**overrides, **unread}), off), profile))
    return variants


def _baseline(name: str) -> System:
    if name == REFERENCE:
        return Product(REFERENCE, Settings.reference())
    if name not in BASELINES:
        raise InputError(f"there is no baseline {shown(name)}; choose from {', '.join([*BASELINES, REFERENCE])}, all")
    return BASELINES[name]


def assignments(given: Sequence[str]) -> dict[str, Unread]:
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


# -------------------------------------------------------------------------------------------------- quick


def quick(data: DataSet) -> DataSet:
    """Return a small part of a set, always the same one."""
    return dataclasses.replace(data, haystacks=tuple(_smaller(each) for each in data.haystacks[:_QUICK_HAYSTACKS]))


def _smaller(haystack: Haystack) -> Haystack:
    """Keep the first questions; of a large corpus, the messages that they need and the first of the others."""
    questions = haystack.questions[:_QUICK_QUESTIONS]
    if len(haystack.messages) <= _QUICK_MESSAGES:
        return dataclasses.replace(haystack, questions=questions)
    if any(question.visible < len(haystack.messages) for question in questions):
        # Where questions are asked in between, the beginning of the chat is a smaller chat.
        begun = tuple(question for question in haystack.questions if question.visible <= _QUICK_MESSAGES)
        return dataclasses.replace(
            haystack, messages=haystack.messages[:_QUICK_MESSAGES], questions=begun[:_QUICK_QUESTIONS]
        )
    needed = _needed(haystack.messages, questions)
    messages = tuple(
        message
        for place, message in enumerate(haystack.messages)
        if place < _QUICK_MESSAGES - len(needed) or message.id in needed
    )
    kept = {message.session for message in messages}
    return dataclasses.replace(
        haystack, messages=messages, questions=tuple(_within(each, len(messages), kept) for each in questions)
    )


def _needed(messages: Sequence[Message], questions: Sequence[Question]) -> set[str]:
    """Return the gold messages, and the whole of a gold session in which none is marked."""
    gold = {item for question in questions for item in question.gold}
    named = {session for question in questions for session in question.gold_sessions}
    unmarked = named - {message.session for message in messages if message.id in gold}
    return gold | {message.id for message in messages if message.session in unmarked}


def _within(question: Question, visible: int, sessions: set[str]) -> Question:
    return dataclasses.replace(question, visible=visible, gold_sessions=frozenset(question.gold_sessions & sessions))
