"""Scores in plain words, for people at any door: their parts, what these are called, and which words matched."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from holdfast.text.terms import terms
from holdfast.types import Contribution, Unit

PLAIN_NAMES = {
    "lexical": "words",
    "dense": "meaning",
    "hdc-vsa": "wording",
    "thinkingdb-symbolic": "facts",
    "agreement": "found in several ways",
    "identifiers": "exact names",
    "mentions": "named by a better hit",
    "diversity": "repeats a better hit",
    "summary": "is a summary",
}
# What is smaller changes no rank that anybody looks at; JSON has every digit.
_SMALLEST_SHOWN = 1e-6
_JOINTS = {"sum": " + ", "product": " × ", "ratio": " ÷ ", "minimum": ", "}
# How notes begin that tell something of the unit; others only help to follow the arithmetic.
TELLING = ("derived: ", "via: ", "contradicts: ")
# A stage that lowers a score says why in other words than one that raises it.
_TIME_RANGE = ("in the time asked for", "not in the time asked for")


class ScorePart(NamedTuple):
    """What one strategy, stage or trait brings to a score; a `change` is what a stage made of the parts before it."""

    name: str
    value: float
    change: bool = False


def parts_of(node: Contribution) -> tuple[ScorePart, ...]:
    """Return the parts of a score, in the order in which they come in; their values add up to it, up to rounding.

    Weights, ceilings and divisors are no parts: they scale those they act on.
    """
    if node.name == "fused":
        return tuple(ScorePart(part.name, part.value) for part in node.parts)
    if (stage := _stage(node)) is not None:
        name, before = stage
        change = node.value - before.value
        return (*parts_of(before), *([ScorePart(name, change, change=True)] if change else []))
    inner = [part for part in node.parts if part.parts]
    if node.op == "sum":
        return tuple(found for part in node.parts for found in parts_of(part))
    if len(inner) == 1:
        scale = node.value / inner[0].value if inner[0].value else 0.0
        return tuple(part._replace(value=part.value * scale) for part in parts_of(inner[0]))
    return (ScorePart(node.name, node.value),)


def _stage(node: Contribution) -> tuple[str, Contribution] | None:
    """Return the name of a stage and the score before it, if the node is one."""
    if node.name.startswith("rel with "):
        mixed = node.parts[0]
        return mixed.name, mixed.parts[0].parts[1]
    return ("summary", node.parts[0]) if node.name == "base × quality" else None


def who(unit: Unit) -> str:
    """Return who said it: the name where there is one, else the author."""
    return "summary" if unit.kind == "summary" else unit.speaker or unit.author


def plain_name(part: ScorePart, unit: Unit) -> str:
    """Return what a part is called in plain words."""
    if part.name == "perspective":
        return f"said by {who(unit)}"
    if part.name == "time range":
        return _TIME_RANGE[part.value < 0]
    return PLAIN_NAMES.get(part.name, part.name)


def terms_of(node: Contribution) -> Iterable[str]:
    """Yield the terms that a score rests on."""
    if node.name.startswith("term "):
        yield node.name.removeprefix("term ")
    for part in node.parts:
        yield from terms_of(part)


def typed_words(text: str) -> dict[str, str]:
    """Return, for every term of a question, the word as it was typed.

    Text without spaces is searched for by its characters and pairs of them: these are shown as they are.
    """
    typed: dict[str, str] = {}
    for word in text.split():
        whole = re.sub(r"^\W+|\W+$", "", word)
        for piece in (whole, *re.split(r"[\W_]+", whole)):
            for term in terms(piece):
                literal = not piece.isascii() and term in piece.lower()
                typed.setdefault(term, term if literal else piece)
    return typed


def as_typed(found: Iterable[str], typed: Mapping[str, str]) -> tuple[str, ...]:
    """Return terms as the words that were typed, each once."""
    return tuple(dict.fromkeys(typed.get(term, term) for term in found))


def essence(node: Contribution) -> Contribution:
    """Return the node without neutral steps: a ceiling that does not bind, a factor or divisor of 1, a sum of one."""
    parts = tuple(essence(part) for part in node.parts)
    if node.op == "minimum":
        telling = tuple(part for part in parts if part.value == node.value)[:1]
    elif node.op in ("product", "ratio"):
        telling = tuple(part for part in parts if part.op != "given" or part.value != 1.0)
    else:
        telling = parts
    if len(telling) == 1 and telling[0].parts and not telling[0].name.startswith("term "):
        return telling[0]._replace(name=node.name)
    return node._replace(parts=parts)


def branches(node: Contribution, depth: int = 0) -> Iterable[tuple[int, Contribution]]:
    """Yield a node and those below it, each with its depth; leaves stand in the formula of the node above them."""
    yield depth, node
    if any(part.op != "given" for part in node.parts):
        for part in node.parts:
            yield from branches(part, depth + 1)


def formula(node: Contribution) -> str:
    """Return how a node is combined from its parts; leaves with their values."""
    leaves = all(part.op == "given" for part in node.parts)
    shown = (f"{part.name} {number(part.value)}" if leaves else part.name for part in node.parts)
    return f"{'min' if node.op == 'minimum' else ''}({_JOINTS[node.op].join(shown)})"


def number(value: float) -> str:
    """Return a number of a tree with six digits."""
    return f"{value:.6g}" if value == 0.0 or abs(value) >= _SMALLEST_SHOWN else "≈0"
