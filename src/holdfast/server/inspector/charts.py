"""Numbers → where things stand in a drawing: shares of a bar in percent, dots and curves in pixels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from holdfast.values import dataclass
from holdfast.why import ScorePart

# Parts that have a colour of their own; every other part of a score is what a stage made of these.
_COLOURS = {
    "lexical": "words",
    "dense": "meaning",
    "hdc-vsa": "wording",
    "thinkingdb-symbolic": "facts",
    "recency": "recency",
    "scope": "scope",
}
# What is smaller would be a bar that nobody sees, and be told as .00.
SMALLEST_PART = 0.005
_MOST_BINS = 60
# Marks of a time axis: how many have room, how far right one may begin, and what is too short for months.
_MOST_TICKS, _LAST_TICK, _SHORT = 7, 92, timedelta(days=60)
# Distance of two turns in a row, the width that few turns may take, and the heights of summaries and turns.
_LEAST_STEP, _MOST_STEP, _WIDTH = 20, 56, 760
_UPPER, _LOWER, _MARGIN = 18, 78, 20


@dataclass(frozen=True, slots=True)
class BarSegment:
    """A piece of a bar, in percent of its width; `taken` when it shows what was taken away."""

    start: float
    width: float
    colour: str
    label: str
    taken: bool = False


def colour_of(part: str) -> str:
    """Return the colour of a part of a score, by name."""
    return _COLOURS.get(part, "stage")


def stack(parts: Sequence[tuple[ScorePart, str]]) -> tuple[BarSegment, ...]:
    """Return the bar of a score, a full width being 1: what counts, and dashed behind it what was taken away.

    A part that takes away takes from those that came in before it, the last ones first.
    """
    kept: list[list[Any]] = []
    lost: list[tuple[float, str]] = []
    for part, label in parts:
        if part.value > 0:
            kept.append([part.value, colour_of(part.name), label])
            continue
        lost.append((-part.value, label))
        missing = -part.value
        while missing > 0 and kept:
            cut = min(missing, kept[-1][0])
            kept[-1][0] -= cut
            missing -= cut
            if kept[-1][0] <= 0:
                kept.pop()
    pieces = [(size, colour, label, False) for size, colour, label in kept]
    pieces += [(size, "taken", label, True) for size, label in lost]
    segments, at = [], 0.0
    for size, colour, label, taken in pieces:
        if size >= SMALLEST_PART:
            segments.append(BarSegment(_percent(at), _percent(size), colour, label, taken))
        at += size
    return tuple(segments)


def share(parts: Iterable[tuple[str, float, str]], whole: float) -> tuple[BarSegment, ...]:
    """Return a bar of (colour, size, label), a full width being the whole."""
    segments, at = [], 0.0
    for colour, size, label in parts:
        if size > 0:
            segments.append(BarSegment(_percent(at / whole), _percent(size / whole), colour, label))
            at += size
    return tuple(segments)


def _percent(part: float) -> float:
    return round(min(part, 1.0) * 100, 3)


# ------------------------------------------------------------------------------------------------------------ time


@dataclass(frozen=True, slots=True)
class Bin:
    """A span of time and how much was said in it; places in percent."""

    x: float
    width: float
    height: float
    label: str


@dataclass(frozen=True, slots=True)
class Tick:
    """A mark below a time axis."""

    x: float
    label: str


@dataclass(frozen=True, slots=True)
class TimeChart:
    """How much was said when."""

    bins: tuple[Bin, ...] = ()
    ticks: tuple[Tick, ...] = ()


def chart_time(spans: Iterable[tuple[datetime, datetime, int]]) -> TimeChart:
    """Return how much was said when, of spans of time with how much was said in each."""
    known = sorted(spans)
    if not known:
        return TimeChart()
    first, last = known[0][0], max(end for _, end, _ in known)
    whole = max(last - first, timedelta(days=1))
    sizes = [0] * _MOST_BINS
    for start, end, size in known:
        middle = start + (end - start) / 2
        sizes[min(int((middle - first) / whole * _MOST_BINS), _MOST_BINS - 1)] += size
    width, most = 100 / _MOST_BINS, max(sizes)
    bins = tuple(
        Bin(
            round(place * width, 3), round(width * 0.82, 3), round(100 * size / most, 2),
            f"{first + whole * place / _MOST_BINS:%d %B %Y}: {size:,}",
        )
        for place, size in enumerate(sizes)
        if size
    )  # fmt: skip
    return TimeChart(bins, _ticks(first, whole))


def _ticks(first: datetime, whole: timedelta) -> tuple[Tick, ...]:
    """Return marks at the beginnings of months; of a short time, at even distances."""
    if whole < _SHORT:
        return tuple(Tick(25.0 * place, f"{first + whole * place / 4:%d %b}") for place in range(4))
    months = [first.year * 12 + first.month - 1 + number for number in range(int(whole / timedelta(days=30)) + 2)]
    step = -(-len(months) // _MOST_TICKS)
    starts = [first.replace(year=one // 12, month=one % 12 + 1, day=1, hour=0) for one in months if one % step == 0]
    places = [(round(100 * ((start - first) / whole), 2), start) for start in starts]
    shown = [(place, start) for place, start in places if 0 <= place <= _LAST_TICK]
    named = {shown[0][1], *(start for _, start in shown if start.month == 1)} if shown else set()
    return tuple(Tick(place, f"{start:%b %Y}" if start in named else f"{start:%b}") for place, start in shown)


# --------------------------------------------------------------------------------------------------------- lineage


@dataclass(frozen=True, slots=True)
class Dot:
    """One unit in a drawing of a session."""

    id: str
    x: float
    y: float
    label: str
    kind: str


@dataclass(frozen=True, slots=True)
class LineageChart:
    """Turns in a row, summaries above them, and a curve from each summary to every turn that it stands for."""

    width: int = 0
    height: int = 0
    dots: tuple[Dot, ...] = ()
    curves: tuple[str, ...] = ()


def chart_lineage(
    turns: Sequence[tuple[str, str, str]], summaries: Mapping[str, tuple[str, Sequence[str]]]
) -> LineageChart:
    """Return the drawing of (id, label, kind) in their order; `summaries` have a label and what they stand for."""
    if not turns:
        return LineageChart()
    step = max(_LEAST_STEP, min(_MOST_STEP, _WIDTH // len(turns)))
    place = {unit_id: _MARGIN + number * step for number, (unit_id, _, _) in enumerate(turns)}
    dots = [Dot(unit_id, place[unit_id], _LOWER, label, kind) for unit_id, label, kind in turns]
    curves = []
    for unit_id, (label, sources) in summaries.items():
        below = [place[one] for one in sources if one in place]
        if not below:
            continue
        x = sum(below) / len(below)
        dots.append(Dot(unit_id, round(x, 1), _UPPER, label, "summary"))
        middle = (_UPPER + _LOWER) / 2
        curves += [f"M{x:.1f} {_UPPER + 8} C{x:.1f} {middle} {end} {middle} {end} {_LOWER - 7}" for end in below]
    return LineageChart(2 * _MARGIN + (len(turns) - 1) * step, _LOWER + _MARGIN, tuple(dots), tuple(curves))
