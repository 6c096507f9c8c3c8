"""Scores as trees: the one arithmetic behind ranking and explaining (law 12)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from holdfast.types.units import JSON

Op = Literal["given", "sum", "product", "ratio", "minimum"]


def combine(op: Op, values: Sequence[float]) -> float:
    """Return `values` combined in their order: the one float64 function behind every score (law 12).

    Plain left-to-right arithmetic, the same that the vectorised kernels do. Python 3.12 made `sum` compensated,
    so it would differ from them in the last bit.
    """
    if op == "minimum":
        return min(values)
    if op == "ratio":
        top, bottom = values
        return top / bottom
    result = 0.0 if op == "sum" else 1.0
    for value in values:
        result = result + value if op == "sum" else result * value
    return result


class Contribution(NamedTuple):
    """One node of a score's explanation: a leaf is `given`, an inner node is combined from its parts."""

    name: str
    value: float
    op: Op = "given"
    parts: tuple[Contribution, ...] = ()

    @classmethod
    def of(cls, name: str, op: Op, *parts: Contribution) -> Contribution:
        """Return an inner node whose value is combined from its parts."""
        return cls(name, combine(op, [part.value for part in parts]), op, parts)

    def to_json(self) -> dict[str, JSON]:
        """Return the tree as JSON; Python writes floats so that they read back bit for bit."""
        node: dict[str, JSON] = {"name": self.name, "value": self.value}
        if self.parts:
            node |= {"op": self.op, "parts": [part.to_json() for part in self.parts]}
        return node

    @classmethod
    def from_json(cls, node: Mapping[str, JSON]) -> Contribution:
        """Read what `to_json` wrote."""
        parts = tuple(cls.from_json(part) for part in node.get("parts", ()))
        return cls(node["name"], node["value"], node.get("op", "given"), parts)

    def compose(self) -> float:
        """Recompute the value from the leaves; equals `value` bit for bit."""
        return self.value if self.op == "given" else combine(self.op, [part.compose() for part in self.parts])

    def find(self, name: str) -> Contribution | None:
        """Return the first node called `name`, depth first."""
        if self.name == name:
            return self
        return next((found for part in self.parts if (found := part.find(name))), None)
