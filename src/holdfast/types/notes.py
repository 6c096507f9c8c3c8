"""What a reader of a file tells besides its messages: what it left out, why and where, and what is doubtful."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from holdfast.types import JSON, Skipped

# So many places are named for each reason, and so many reasons: a report is to be read.
_MOST_PLACES, _MOST_REASONS = 10, 50


@dataclass(frozen=True, slots=True)
class Message:
    """One message on its way in: its fields as a host would send it, and where it stands in the file.

    `user` and `agent` where the file says whose it is. `lasting` when it was remembered for good where it was.
    """

    fields: Mapping[str, JSON]
    where: str
    session: str | None = None
    user: str | None = None
    agent: str | None = None
    lasting: bool = False


@dataclass(slots=True)
class Notes:
    """Gathers what is to be told."""

    warnings: list[str] = field(default_factory=list)
    complete: bool = True
    _skipped: dict[str, tuple[int, tuple[str, ...]]] = field(default_factory=dict)

    def skip(self, reason: str, where: str) -> None:
        """Note that something was left out."""
        if reason not in self._skipped and len(self._skipped) >= _MOST_REASONS:
            reason = "other reasons"
        count, places = self._skipped.get(reason, (0, ()))
        self._skipped[reason] = (count + 1, places if len(places) >= _MOST_PLACES else (*places, where))

    def warn(self, warning: str) -> None:
        """Note what is doubtful, once."""
        if warning not in self.warnings:
            self.warnings.append(warning)

    def cut(self, warning: str) -> None:
        """Note that the file is not whole."""
        self.complete = False
        self.warn(warning)

    def skipped(self) -> tuple[Skipped, ...]:
        """Return what was left out, most of it first."""
        rows = (Skipped(reason, count, places) for reason, (count, places) in self._skipped.items())
        return tuple(sorted(rows, key=lambda one: -one.count))


def stated(row: Any, name: str) -> Any:  # noqa: ANN401 - JSON
    """Return a member of an object, None when there is none."""
    return row.get(name) if isinstance(row, Mapping) else None
