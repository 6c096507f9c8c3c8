"""Rules that a user writes (C8): `x located_in y, y part_of z -> x located_in z : 0.9`.

Every word that is not a relation is a variable. A rule can only put together symbols that its body has found, so no
rule makes up new ones, and applying rules again and again comes to an end.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from holdfast.errors import SettingsError, shown
from holdfast.kernels.closure import Pattern, Rule

_MOST_PREMISES = 3
# The reference system's weight of a rule that names none.
_DEFAULT_WEIGHT = 0.9
_PATTERN = re.compile(r"\??(\w+)\s+([\w-]+)\s+\??(\w+)")
_EXAMPLE = "x located_in y, y part_of z -> x located_in z : 0.9"


def read_rules(texts: Sequence[str]) -> tuple[Rule, ...]:
    """Return the rules that `texts` write; they are named user_1, user_2 and so on.

    A list that came as one text is split at its commas; parts of a body find together again.

    Raises:
        SettingsError: a rule is not understood or not safe.
    """
    return tuple(read_rule(text, f"user_{number}") for number, text in enumerate(_whole(texts), start=1))


def _whole(texts: Sequence[str]) -> list[str]:
    """Join what stands before an arrow with the part that has it."""
    whole: list[str] = []
    waiting: list[str] = []
    for text in texts:
        waiting.append(text)
        if "->" in text:
            whole.append(",".join(waiting))
            waiting = []
    if waiting:
        raise _refused(",".join(waiting), "it has no `->`", "write premises, `->` and what follows")
    return whole


def read_rule(text: str, name: str) -> Rule:
    """Return the rule that `text` writes.

    Raises:
        SettingsError: the rule is not understood or not safe.
    """
    body_text, _, rest = text.partition("->")
    head_text, _, weight_text = rest.partition(":")
    body = tuple(_pattern(part, text) for part in re.split(r",|\band\b|&", body_text))
    head = _pattern(head_text, text)
    if len(body) > _MOST_PREMISES:
        raise _refused(text, f"it has {len(body)} premises", f"use one to {_MOST_PREMISES}")
    _check_variables(body, head, text)
    return Rule(name, body, head, _weight(weight_text, text))


def _pattern(part: str, text: str) -> Pattern:
    match = _PATTERN.fullmatch(part.strip())
    if match is None:
        raise _refused(text, f"{shown(part.strip())} is not `x relation y`", "use three words for each part")
    subject, relation, other = match.groups()
    return Pattern(subject, relation.casefold(), other)


def _check_variables(body: tuple[Pattern, ...], head: Pattern, text: str) -> None:
    known = {body[0].subject, body[0].object}
    waiting = list(body[1:])
    while waiting:
        joined = next((part for part in waiting if known & {part.subject, part.object}), None)
        if joined is None:
            raise _refused(text, "its premises share no variable", "let each one name a variable of another")
        waiting.remove(joined)
        known |= {joined.subject, joined.object}
    for variable in (head.subject, head.object):
        if variable not in known:
            raise _refused(text, f"{variable} follows from nothing", "let the body name every variable of the head")
    if head in body:
        raise _refused(text, "it says what its body says", "let another relation or other variables follow")


def _weight(text: str, rule: str) -> float:
    if not text.strip():
        return _DEFAULT_WEIGHT
    try:
        weight = float(text)
    except ValueError as error:
        raise _refused(rule, f"{shown(text.strip())} is not a weight", "give a number above 0, at most 1") from error
    if not 0.0 < weight <= 1.0:
        raise _refused(rule, f"its weight {weight} is outside (0, 1]", "give a number above 0, at most 1")
    return weight


def _refused(rule: str, why: str, remedy: str) -> SettingsError:
    return SettingsError(f"symbolic.rules has {rule.strip()[:200]!r}: {why}; {remedy}, as in {_EXAMPLE!r}")
