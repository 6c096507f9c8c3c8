"""Which turns become durable (C17): text and cosines → a decision with every signal behind it.

Gconv = .35H + .40R + .25D_nl      Gtech = .40P + .35A + .25D_tech      G = (1 - T)·Gconv + T·Gtech
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.errors import InputError, shown
from holdfast.kernels.gating import frequency, mixed, novelty, repetition, saturation, weighted
from holdfast.language.lexical import STOP_WORDS
from holdfast.language.lexical import words as words_of
from holdfast.language.statements import COURTESIES, only_asks, statement
from holdfast.language.technical import technical
from holdfast.settings import GateSettings
from holdfast.types import Gate

# C17: how many neighbours the signals are made for; further ones would dilute the mean.
NEAREST_TURNS = 10
NEAREST_DURABLE = 5
# C17: the shares of H, R and D_nl in conversation, and of P, A and D_tech in technical talk.
_CONVERSATIONAL = (0.35, 0.40, 0.25)
_TECHNICAL = (0.40, 0.35, 0.25)
# Sum of technical patterns at which a turn counts as wholly technical.
_TECHNICAL_NORM = 1.5
# C17, content floor: "ok" and "thanks!" are one term each.
_FEWEST_TERMS = 2

# Scripts without spaces: C2 gives every character as a term, so that "好的" would be three. Hangul has spaces.
_HAN = re.compile("[\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]+")
_KATAKANA = re.compile("[\u30a0-\u30ff\u31f0-\u31ff\uff66-\uff9f]+")
_HIRAGANA = re.compile("[\u3041-\u309f]+")
_HANGUL = re.compile("[\u1100-\u11ff\u3130-\u318f\ua960-\ua97f\uac00-\ud7ff]+")
_SOUTH_EAST_ASIA = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff]+")
# A Chinese word has about two characters; a Thai or Khmer one, vowel signs counted, about six.
_HAN_PER_WORD, _SIGNS_PER_WORD = 2, 6


@dataclass(frozen=True, slots=True)
class Signals:
    """What the text alone says, each in [0, 1]: T, D_nl, P, A, D_tech."""

    technical: float = 0.0
    statement: float = 0.0
    specificity: float = 0.0
    action: float = 0.0
    structure: float = 0.0
    about_someone: bool = False  # names a person, a liking, an identity or a resolve; no part of the formula


def signals(text: str, settings: GateSettings) -> Signals:
    """Return the signals of `text`, edge white space apart; blank text has none."""
    text = text.strip()
    if not text:
        return Signals()
    work, stated = technical(text), statement(text, wide=settings.wide)
    return Signals(
        technical=min(work.marks / _TECHNICAL_NORM, 1.0),
        statement=stated.value,
        specificity=work.specificity,
        action=work.action,
        structure=work.structure,
        about_someone=stated.about_someone,
    )


def has_content(text: str, found: Signals, *, wide: bool = False) -> bool:
    """Return whether the text passes the content floor: a D, P or A signal, or two different terms.

    `wide` does not count the words of greetings, thanks and the like.
    """
    if found.statement or found.specificity or found.action:
        return True
    if wide:
        text = " ".join(word for word in words_of(text) if word not in COURTESIES)
    return _distinct_terms(text) >= _FEWEST_TERMS


def judge(text: str, turn_cosines: Sequence[float], durable_cosines: Sequence[float], settings: GateSettings) -> Gate:
    """Decide about one turn, before it is indexed itself.

    `turn_cosines` are those of the nearest earlier turns, `durable_cosines` of the nearest durable units; of more
    than ten and five the nearest count. Policies `all` and `off` decide alone, but the signals are still shown.

    Raises:
        InputError: a cosine is not a number.
    """
    turns, durable = _nearest(turn_cosines, NEAREST_TURNS), _nearest(durable_cosines, NEAREST_DURABLE)
    found = signals(text, settings)
    new, often = novelty(durable), frequency(turns, settings.similar)
    held = saturation(durable, settings.saturated)
    again = repetition(often, held)
    conversational = weighted(_CONVERSATIONAL, (new, again, found.statement))
    technical_value = weighted(_TECHNICAL, (found.specificity, found.action, found.structure))
    score = mixed(found.technical, conversational, technical_value)
    promoted, reason = _decision(text, found, score, settings)
    return Gate(
        promoted=promoted,
        reason=reason,
        score=score,
        conversational=conversational,
        technical=technical_value,
        novelty=new,
        repetition=again,
        frequency=often,
        saturation=held,
        technical_density=found.technical,
        statement=found.statement,
        specificity=found.specificity,
        action=found.action,
        structure=found.structure,
    )


def _decision(text: str, found: Signals, score: float, settings: GateSettings) -> tuple[bool, str]:
    if settings.policy != "gate":
        return settings.policy == "all", f"policy {settings.policy}"
    if not has_content(text, found, wide=settings.wide):
        return False, "too little content"
    if settings.wide and not found.about_someone and only_asks(text):
        return False, "only asks"
    promoted = score >= settings.threshold
    return promoted, f"gate {_figure(score)} {'>=' if promoted else '<'} {_figure(settings.threshold)}"


def _figure(value: float) -> str:
    return f"{value:.3f}".removeprefix("0")


def _nearest(cosines: Sequence[float], most: int) -> list[float]:
    for cosine in cosines:
        if math.isnan(cosine):
            raise InputError(f"{shown(cosine)} is not a cosine; give numbers from -1 to 1")
    return sorted(cosines, reverse=True)[:most]


def _distinct_terms(text: str) -> int:
    """Return about how many different words of content there are, in any script."""
    spaced, words = text, 0
    for script, per_word in ((_HAN, _HAN_PER_WORD), (_SOUTH_EAST_ASIA, _SIGNS_PER_WORD)):
        runs = set(script.findall(spaced))
        words += sum(max(len(run) // per_word, 1) for run in runs)
        spaced = script.sub(" ", spaced)
    words += len(set(_KATAKANA.findall(spaced)))
    # Hiragana between words is grammar; alone, it is a word.
    if not words and _HIRAGANA.search(spaced):
        words = 1
    for script in (_KATAKANA, _HIRAGANA):
        spaced = script.sub(" ", spaced)
    words += len({word for word in spaced.split() if _HANGUL.search(word)})
    return words + len(set(words_of(_HANGUL.sub(" ", spaced))) - STOP_WORDS)
