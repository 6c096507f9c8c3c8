"""The tree of a score → a short list that adds up to it, for a first look."""

from __future__ import annotations

from typing import NamedTuple

from holdfast.types import Contribution


class Part(NamedTuple):
    """What one strategy, stage or trait brings to a score; a `change` is what a stage made of the parts before it."""

    name: str
    value: float
    change: bool = False


def parts_of(node: Contribution) -> tuple[Part, ...]:
    """Return the parts of a score, in the order in which they come in; their values add up to it, up to rounding.

    Weights, ceilings and divisors are no parts: they scale those they act on.
    """
    if node.name == "fused":
        return tuple(Part(part.name, part.value) for part in node.parts)
    if (stage := _stage(node)) is not None:
        name, before = stage
        change = node.value - before.value
        return (*parts_of(before), *([Part(name, change, change=True)] if change else []))
    inner = [part for part in node.parts if part.parts]
    if node.op == "sum":
        return tuple(found for part in node.parts for found in parts_of(part))
    if len(inner) == 1:
        scale = node.value / inner[0].value if inner[0].value else 0.0
        return tuple(part._replace(value=part.value * scale) for part in parts_of(inner[0]))
    return (Part(node.name, node.value),)


def _stage(node: Contribution) -> tuple[str, Contribution] | None:
    """Return the name of a stage and the score before it, if the node is one."""
    if node.name.startswith("rel with "):
        mixed = node.parts[0]
        return mixed.name, mixed.parts[0].parts[1]
    return ("summary", node.parts[0]) if node.name == "base × quality" else None
