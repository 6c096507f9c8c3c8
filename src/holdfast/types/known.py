"""What is known of a user: statements that rules recognised, and turns that answer what people are asked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import groupby
from typing import overload

from holdfast.types.units import JSON, Author, iso, shorten
from holdfast.values import dataclass

# As much of a turn as a person reads on one line; `text` has all of it.
_SHOWN = 160


@dataclass(frozen=True, slots=True)
class KnownFact:
    """A statement that rules recognised, said since `since`, in the units `sources`, the first one first.

    `later_in` is a later unit that states something else of the same subject and relation: both may hold.
    `replaced` is the value that it took the place of, and `replaced_in` the unit that stated that. What no longer
    holds ended at `until`, by the unit `ended_by`, as far as either is known.
    """

    subject: str
    relation: str
    value: str
    since: datetime
    sources: tuple[str, ...]
    confidence: float = 1.0
    document: str = ""
    replaced: str = ""
    replaced_in: str = ""
    current: bool = True
    until: datetime | None = None
    ended_by: str = ""
    later_in: str = ""
    later_at: datetime | None = None

    @property
    def line(self) -> str:
        """Return it on one line, for a prompt."""
        until = f" until {iso(self.until)[:10]}" if self.until else "" if self.current else ", no longer"
        before = f", before that {self.replaced}" if self.replaced else ""
        later = f", earlier: see {iso(self.later_at)[:10]}" if self.later_at else ""
        said = f"{self.subject} | {self.relation} | {self.value} | since {iso(self.since)[:10]}{until}{before}{later}"
        return " ".join(said.split())

    def to_json(self) -> dict[str, JSON]:
        """Return the fact as a JSON object; what is empty is left out."""
        row = {name: getattr(self, name) for name in self.__slots__} | {"sources": [*self.sources]}
        row |= {name: iso(moment) if (moment := row[name]) else None for name in ("since", "until", "later_at")}
        return {name: value for name, value in row.items() if value not in ("", None)}


class FactTable(tuple[KnownFact, ...]):
    """Facts in an order that only changes with them: the user's own, then those of documents, by subject."""

    __slots__ = ()

    @property
    def text(self) -> str:
        """Return one line for each fact, for a prompt."""
        return "".join(f"{one.line}\n" for one in self)


@dataclass(frozen=True, slots=True)
class Replaced:
    """A turn that a later one took the place of: its id, when it was said, and its words."""

    id: str
    at: datetime
    text: str


@dataclass(frozen=True, slots=True)
class AboutLine:
    """One turn that answers a question about the user: its words as they were said, when, and by whom.

    `confidence` is how often a line with such evidence was right and current, on development data. `replaced` are the
    turns that it took the place of, oldest first.
    """

    topic: str
    question: str
    id: str
    text: str
    at: datetime
    author: Author
    confidence: float
    speaker: str = ""
    replaced: tuple[Replaced, ...] = ()

    @property
    def line(self) -> str:
        """Return it on one line, with all of its words, for a prompt."""
        before = "".join(f" | replaced, said {iso(one.at)[:10]}: {one.text}" for one in self.replaced)
        said = f"{self.topic} | {self.text} | said {iso(self.at)[:10]} | confidence {self.confidence:.2f}{before}"
        return " ".join(said.split())

    def to_json(self) -> dict[str, JSON]:
        """Return the line as a JSON object; what is empty is left out."""
        row = {name: getattr(self, name) for name in self.__slots__}
        row["at"] = iso(self.at)
        row["replaced"] = [{"id": one.id, "at": iso(one.at), "text": one.text} for one in self.replaced]
        return {name: value for name, value in row.items() if value not in ("", [])}


@dataclass(frozen=True, slots=True)
class About(Sequence[AboutLine]):
    """What is known of a user, by topic; `asked` counts the questions, most of which a memory does not answer.

    Lines are what was said, with its date, and not verified. `warnings` say what makes them fewer than they could be.
    """

    lines: tuple[AboutLine, ...]
    asked: int
    warnings: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """Return one line for each, for a prompt."""
        return "".join(f"{one.line}\n" for one in self)

    def __str__(self) -> str:
        found = []
        for topic, lines in groupby(self.lines, key=lambda one: one.topic):
            found.append(f"{topic}\n")
            for one in lines:
                since = f"({iso(one.at)[:10]}, confidence {one.confidence:.2f})"
                found.append(f"  {shorten(one.text, _SHOWN)}  {since}\n")
                found += [f"    before: {shorten(old.text, _SHOWN)}  ({iso(old.at)[:10]})\n" for old in one.replaced]
        return "".join(found) or f"nothing that is sure, of {self.asked} questions\n"

    @overload
    def __getitem__(self, index: int) -> AboutLine: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[AboutLine]: ...
    def __getitem__(self, index: int | slice) -> AboutLine | Sequence[AboutLine]:
        return self.lines[index]

    def __len__(self) -> int:
        return len(self.lines)

    def __iter__(self) -> Iterator[AboutLine]:
        return iter(self.lines)
