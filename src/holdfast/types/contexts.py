"""What assembly returns: the context, its sections and items, and what was left out."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from datetime import datetime
from typing import Literal, NamedTuple

from holdfast.types.results import AnswerState, Trace
from holdfast.types.units import JSON, AuthoredText, Unit
from holdfast.values import dataclass

SectionName = Literal["hard", "soft", "tail", "standing", "projection"]
# Why something is not in the context: its own bound is full (soft, standing), the last turns do not fit (tail), it
# does not fit what is left (budget), it stands behind one that does not fit (prefix), nothing is recalled in a
# degraded context (degraded), or it is in the context already (shown).
LeftOutBy = Literal["soft", "tail", "standing", "budget", "prefix", "degraded", "shown"]

# Why something is recalled that the question did not find.
MEMORY_FITS = "as all of the memory fits"

# When something later seems to have replaced a unit: the day, or that it was at some time.
ReplacedAt = datetime | Literal["later"] | None


@dataclass(frozen=True, slots=True)
class RecalledUnit:
    """One unit of the projection, with the score that ranked it, and when a later one seems to have replaced it.

    Units of one `group` stand together; an empty one is a group of its own. What is `late` takes no room from others:
    a search would cut it. Groups of what was `read` stand newest first. What comes along because all of the memory
    fits has no score.
    """

    unit: Unit
    score: float | None
    replaced: ReplacedAt = None
    group: str = ""
    late: bool = False
    read: bool = False


class StandingInstruction(NamedTuple):
    """A standing instruction: the unit that holds it, its words there, and whether it is for some questions only."""

    unit: Unit
    text: str
    at_times: bool = False


@dataclass(frozen=True, slots=True)
class Item:
    """One thing in a context: a unit, or a node of a core document under `document#position`.

    `text` holds the raw words without frame and escapes. `tokens` is what its own lines cost when they are counted
    alone; sections and contexts are counted as they stand. `earlier` says that the text calls it earlier, because a
    later item seems to have replaced it.
    """

    id: str
    kind: Literal["whole", "excerpt"]
    text: str
    tokens: int
    score: float | None = None
    earlier: bool = False


@dataclass(frozen=True, slots=True)
class ContextSection:
    """One part of a context. `tokens` is the growth of the whole text's count when it was added."""

    name: SectionName
    text: str = ""
    tokens: int = 0
    items: tuple[Item, ...] = ()


@dataclass(frozen=True, slots=True)
class OmittedItem:
    """Something that is not in the context: what it needs, and how many tokens were missing at its turn."""

    id: str
    needed: int
    short: int
    cut: LeftOutBy


@dataclass(frozen=True, slots=True)
class Context:
    """The assembled context (C16). `tokens` is the count of `text`, and the sum of the sections' tokens.

    `degraded` says what it goes without: some of the last turns, or meaning; `strict` refuses both. `state` is what a
    search says of the question: a context may hold all of the memory, and nothing that answers.
    """

    sections: tuple[ContextSection, ...]
    tokens: int
    budget: int
    degraded: str = ""
    warnings: tuple[str, ...] = ()
    left_out: tuple[OmittedItem, ...] = ()
    trace: Trace | None = None
    state: AnswerState = "nothing"

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"<Context: {self.tokens} of {self.budget} tokens, {len(self.items)} items, {self.state}>"

    @property
    def refused(self) -> str:
        """Return why nothing here answers; empty when something may, or when the trace was not asked for."""
        return "" if self.trace is None else self.trace.refused

    @property
    def text(self) -> str:
        """Return the one text that is injected."""
        return "".join(section.text for section in self.sections)

    @property
    def items(self) -> tuple[Item, ...]:
        """Return everything that is injected, in the order of the text."""
        return tuple(item for section in self.sections for item in section.items)

    @property
    def found(self) -> tuple[str, ...]:
        """Return the ids of what the question found, without what comes along because all of the memory fits."""
        return tuple(item.id for item in self.section("projection").items if item.score is not None)

    def section(self, name: SectionName) -> ContextSection:
        """Return one section; it is there also when it is empty."""
        return next(section for section in self.sections if section.name == name)

    def with_warnings(self, warnings: Iterable[str]) -> Context:
        """Return the same context with more warnings."""
        return dataclasses.replace(self, warnings=(*self.warnings, *warnings))

    def explain(self) -> str:
        """Return in words what is here, what it costs and why, and what was left out."""
        lines = [f"{self.tokens} of {self.budget} tokens, {self.state}{f': {self.refused}' if self.refused else ''}"]
        lines += [f"degraded: {self.degraded}"] if self.degraded else []
        lines += [f"warning: {warning}" for warning in self.warnings if warning not in self.degraded]
        projection = self.trace.projection if self.trace is not None else None
        ways = {one.unit.id: one.via for one in projection.items} if projection is not None else {}
        for section in self.sections:
            lines.append(f"{section.name}: {section.tokens} tokens, {len(section.items)} items")
            lines += [
                f"  {item.id} {item.kind}, {item.tokens} tokens"
                + (f", score {item.score:.4f} by {ways.get(item.id, 'rank')}" if item.score is not None else "")
                + (f", {MEMORY_FITS}" if item.score is None and section.name == "projection" else "")
                for item in section.items
            ]
        lines += [
            f"left out by {left.cut}: {left.id}, needs {left.needed} tokens, {left.short} short"
            for left in self.left_out
        ]
        return "\n".join(lines)

    def as_messages(self) -> list[dict[str, str]]:
        """Return the same text as chat messages: one of `user` for each section that is not empty.

        The turns in it stay quoted lines; they are no chat turns. Never as system: recalled words must not get that
        authority, and how much of it the rules of a document deserve is for the host to say. They are not merged, so
        that a host can place the rules elsewhere; `text` is all of them in one.
        """
        return [{"role": "user", "content": section.text} for section in self.sections if section.text]

    def to_json(self) -> dict[str, JSON]:
        """Return the context as a JSON object, without its trace."""
        return {
            "text": self.text,
            "tokens": self.tokens,
            "budget": self.budget,
            "state": self.state,
            "refused": self.refused,
            "degraded": self.degraded,
            "warnings": list(self.warnings),
            "sections": [
                {"name": s.name, "tokens": s.tokens, "items": [dataclasses.asdict(item) for item in s.items]}
                for s in self.sections
            ],
            "left_out": [dataclasses.asdict(left) for left in self.left_out],
        }


def node_id(node: AuthoredText) -> str:
    """Return how a node is named among units."""
    return f"{node.document}#{node.position}"


@dataclass(frozen=True, slots=True)
class Rules:
    """What the core documents of one owner bring into a context."""

    hard: tuple[AuthoredText, ...] = ()
    soft: tuple[AuthoredText, ...] = ()
    warnings: tuple[str, ...] = ()
