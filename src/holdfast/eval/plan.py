"""What a command asks for → which systems are measured on which part of the data."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from holdfast.errors import InputError, SettingsError, shown
from holdfast.eval.baselines import BASELINES
from holdfast.eval.data import DataSet, Haystack, Question
from holdfast.eval.switches import ablations, switched_off
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
    """The systems to measure, and which of them are variants to choose among."""

    systems: tuple[System, ...]
    variants: tuple[str, ...] = ()


def systems(
    settings: Settings,
    *,
    baselines: Sequence[str] = (),
    profiles: Sequence[str] = (),
    off: Sequence[str] = (),
    ablate: bool = False,
    tune: Mapping[str, Sequence[str]] | None = None,
    overrides: Mapping[str, str] | None = None,
) -> Asked:
    """Return what to measure: the baselines named, and the product unless only baselines were asked for.

    Raises:
        InputError: there is no baseline of that name.
        SettingsError: there is no such switch or setting.
    """
    wanted = [*BASELINES, REFERENCE] if "all" in baselines else list(dict.fromkeys(baselines))
    chosen: list[System] = [_baseline(name) for name in wanted]
    if not (profiles or off or ablate or tune) and baselines:
        return Asked(tuple(chosen))
    base = switched_off(settings, off)
    label = "".join(f" without {name}" for name in off)
    for profile in profiles or ("hybrid",):
        chosen.append(Product(profile + label, base, profile))
        if ablate:
            chosen += [Product(f"{profile} {name}", changed, profile) for name, changed in ablations(base).items()]
    variants = []
    for name, keys in grid(tune or {}).items():
        if keys:
            unread = {key: Unread(value) for key, value in keys.items()}
            tuned = Settings.load({**dict(overrides or {}), **unread})
            variants.append(Product(name, switched_off(tuned, off), (profiles or ("hybrid",))[0]))
    return Asked((*chosen, *variants), tuple(variant.name for variant in variants))


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
    needed = {item for question in questions for item in question.gold}
    messages = tuple(
        message
        for place, message in enumerate(haystack.messages)
        if place < _QUICK_MESSAGES - len(needed) or message.id in needed
    )
    kept = {message.session for message in messages}
    return dataclasses.replace(
        haystack, messages=messages, questions=tuple(_within(each, len(messages), kept) for each in questions)
    )


def _within(question: Question, visible: int, sessions: set[str]) -> Question:
    return dataclasses.replace(question, visible=visible, gold_sessions=frozenset(question.gold_sessions & sessions))
