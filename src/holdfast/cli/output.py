"""Values ⇄ JSON, the same in every interface; and the last step before a terminal or a pipe.

Remembered text is shown there and never obeyed, and lines fit.
"""

from __future__ import annotations

import dataclasses
import json
import re
import shutil
import sys
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Self

from rich.console import Console, ConsoleDimensions, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from holdfast.settings import Settings
from holdfast.text.facts import sentences_of
from holdfast.types import (
    CONTROLS,
    Compaction,
    Erasure,
    Hit,
    SearchResult,
    Stats,
    Surroundings,
    Unit,
    Why,
    WriteResult,
    iso,
)
from holdfast.types.contexts import Context
from holdfast.types.outcomes import FolderReport

if TYPE_CHECKING:
    from rich.progress import Progress

# On a terminal a carriage return overwrites its line, and lone surrogates cannot be written.
_OBEYED = re.compile(rf"[{CONTROLS}\r\ud800-\udfff]")
# A pipe has no width. Wider than any line that is drawn, so that none is broken.
_UNBROKEN = 1_000_000
_LINES = 25


def visible(text: str) -> str:
    """Return `text` with every character that a terminal would obey written out: a backslash and its code."""
    return _OBEYED.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), text.replace("\r\n", "\n"))


def visible_json(text: str) -> str:
    """Return JSON that means the same, with those characters escaped as JSON does it."""
    return _OBEYED.sub(lambda found: json.dumps(found[0])[1:-1], text)


class Screen(Console):
    """A console that shows control characters instead of sending them on, and breaks no line of a pipe."""

    @property  # type: ignore[misc]  # nobody sets the size of ours
    def size(self) -> ConsoleDimensions:
        """Return the size of the terminal; of a pipe, what COLUMNS says, else a width that breaks nothing."""
        if self.is_terminal:
            return super().size
        return ConsoleDimensions(shutil.get_terminal_size((_UNBROKEN, _LINES)).columns, _LINES)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """See `Console.render`; it sees every text before its lines are broken."""
        if isinstance(renderable, str):
            renderable = visible(renderable)
        elif isinstance(renderable, Text) and _OBEYED.search(renderable.plain):
            renderable = Text(visible(renderable.plain), renderable.style)
        return super().render(renderable, options)


# Who waits for a log looks again about this often; more lines would drown what else it says.
_SECONDS_BETWEEN_LINES = 10.0
# From here on an estimate in seconds is more exact than it can be.
_LONGEST_IN_SECONDS = 120.0


class ProgressReport:
    """How far a long command has come, and how long it may take: a bar on a terminal, else a line now and then."""

    def __init__(self, screen: Console, doing: str, *, quiet: bool = False) -> None:
        self._screen, self._doing, self._quiet = screen, doing, quiet
        self._began = self._told = screen.get_time()
        self._bar: Progress | None = None

    def __enter__(self) -> Self:
        if self._screen.is_terminal and not self._quiet:
            from rich.progress import Progress  # noqa: PLC0415 - of no use to most commands

            self._bar = Progress(console=self._screen, transient=True)
            self._bar.add_task(self._doing, total=None)
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, done: float, of: float) -> None:
        """Say that so much of the work is done."""
        now, share = self._screen.get_time(), done / max(of, 1)
        if self._bar is not None:
            self._bar.update(self._bar.task_ids[0], completed=share, total=1)
        elif not self._quiet and now - self._told >= _SECONDS_BETWEEN_LINES:
            self._told = now
            left = f", about {_duration((now - self._began) * (1 / share - 1))} left" if share else ""
            self._screen.print(f"{self._doing}: {share:.0%}{left}", highlight=False)


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < _LONGEST_IN_SECONDS else f"{seconds / 60:.0f} min"


def _pick(value: object, *names: str) -> dict[str, Any]:
    """Return some attributes of a value by name; JSON has lists, and no tuples."""
    found = {name: getattr(value, name) for name in names}
    return {name: list(one) if isinstance(one, tuple) else one for name, one in found.items()}


def unit_json(unit: Unit) -> dict[str, Any]:
    """Return a unit with every field it has, the repeated statement included."""
    row = unit.to_json()
    row.setdefault(unit.statement_field, getattr(unit, unit.statement_field))
    became = {
        "superseded_by": unit.superseded_by,
        "superseded_why": unit.superseded_why or None,
        "covered_by": unit.covered_by,
        "gate": None if unit.gate is None else unit.gate.to_json(),
    }
    row = _pick(unit, "id", "kind", "author", "role") | row | _pick(unit, "version", "access_count")
    return row | {name: value for name, value in became.items() if value is not None}


def shown_json(unit: Unit) -> dict[str, Any]:
    """Return a unit with the facts it states, each with its sentence."""
    facts = [{**dataclasses.asdict(fact), "sentence": sentence} for fact, sentence in sentences_of(unit)]
    return unit_json(unit) | ({"facts": facts} if facts else {})


def written_json(written: list[WriteResult]) -> list[dict[str, Any]]:
    """Return what `remember` did."""
    return [dataclasses.asdict(item) for item in written]


def hit_json(hit: Hit) -> dict[str, Any]:
    """Return one hit; contributions only when they were asked for."""
    row = _pick(hit, "rank", "score", "rel", "coverage")
    row |= {"cosine": hit.cosine, "confidence": hit.confidence} if hit.cosine is not None else {}
    row["unit"] = unit_json(hit.unit)
    row |= {"part": hit.part} if hit.part is not None else {}
    if hit.merged_ids:
        row["merged_ids"] = list(hit.merged_ids)
    if hit.contributions is not None:
        row["contributions"] = hit.contributions.to_json()
    if hit.notes:
        row["notes"] = list(hit.notes)
    return row


def search_json(result: SearchResult) -> dict[str, Any]:
    """Return the hits and a short account of the stages."""
    trace = result.trace
    return {
        "state": result.state,
        "hits": [hit_json(hit) for hit in result],
        "profile": trace.profile,
        "query": _pick(trace.query, "text", "terms", "act", "participants", "perspective"),
        "reference_time": iso(trace.reference_time),
        "refused": trace.refused,
        "degraded": trace.degraded,
        "warnings": list(result.warnings),
        "strategies": [
            {"id": one.strategy_id, "found": len(one.candidates), **_pick(one, "duration_ms", "exhausted_budget")}
            for one in trace.results
        ],
        "dropped": [{"id": one.unit_id, **_pick(one, "cut", "needed", "had")} for one in trace.dropped],
    }


def context_json(context: Context, *, explain: bool = False) -> dict[str, Any]:
    """Return a context; with `explain`, every projected unit with the tree of its score."""
    row = context.to_json()
    projection = context.trace.projection if context.trace is not None else None
    if explain and projection is not None:
        row["projection"] = [
            {"id": one.unit.id, "via": one.via, "contributions": one.contributions.to_json()}
            for one in projection.items
        ]
    return row


def why_json(why: Why) -> dict[str, Any]:
    """Return a verdict with its reasons."""
    row = {
        "id": why.unit.id,
        **_pick(why, "returned", "verdict", "rank", "score", "distance_to_cut", "tokens_short", "degraded"),
        "standings": [dataclasses.asdict(standing) for standing in why.standings],
    }
    if why.contributions is not None:
        row["contributions"] = why.contributions.to_json()
    return row


def compaction_json(done: Compaction) -> dict[str, Any]:
    """Return what one run of compaction did, cluster by cluster."""
    row = _pick(done, "session", "turns", "summaries", "tokens_saved", "mean_confidence", "method", "declined")
    clusters = [
        _pick(one, "turns", "summary")
        | {"outcome": type(one.outcome).__name__.lower(), **dataclasses.asdict(one.outcome)}
        for one in done.clusters
    ]
    return row | _pick(done, "trivial", "changed") | {"clusters": clusters}


def erasure_json(erasure: Erasure) -> dict[str, Any]:
    """Return what was erased, or would be; ids only, never the words."""
    row = dataclasses.asdict(dataclasses.replace(erasure, units=(), summaries=()))
    return row | {name: [unit.id for unit in getattr(erasure, name)] for name in ("units", "summaries")}


def folder_json(report: FolderReport) -> dict[str, Any]:
    """Return what taking in a folder did."""
    left = {"failed": report.failed, "skipped": report.skipped}
    named = {field: [{"name": name, "reason": why} for name, why in files] for field, files in left.items()}
    return {**dataclasses.asdict(report), **named}


def widened_json(found: Surroundings) -> dict[str, Any]:
    """Return a section with the unit it was asked for."""
    return {**{f.name: getattr(found, f.name) for f in dataclasses.fields(found)}, "unit": unit_json(found.unit)}


def stats_json(stats: Stats) -> dict[str, Any]:
    """Return the counts of one owner and of the store."""
    row = dataclasses.asdict(stats)
    for name in ("earliest", "latest"):
        row[name] = iso(row[name]) if row[name] else None
    return row


def settings_json(settings: Settings) -> list[dict[str, Any]]:
    """Return every key with its value and origin."""
    return [dataclasses.asdict(row) for row in settings.describe()]


def failure_json(kind: str, message: str, exit_code: int) -> Mapping[str, Any]:
    """Return whatever ended a command without success."""
    return {"error": {"type": kind, "message": message, "exit_code": exit_code}}


def print_json(value: object, indent: int | None = 2) -> None:
    """Write JSON to standard output, for programs."""
    sys.stdout.write(visible_json(json.dumps(value, ensure_ascii=False, indent=indent, allow_nan=False)) + "\n")
    sys.stdout.flush()
