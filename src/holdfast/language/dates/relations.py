"""From a known time to the time a question means by it: "before June", "the week after the trip", "late May".

A relation works on a span, so that the same words serve a date, whose span is known, and an event, whose span is
known once somebody has looked it up.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime
from typing import Literal, cast

from holdfast.language.dates.calendar import FIRST, LATEST, Span, Unit, day_part, days, midnight, period, shift, third
from holdfast.language.dates.relative import window
from holdfast.language.dates.words import AMOUNT, DAY_PART, ORDINALS, UNIT, WEEKDAY, WEEKDAYS, Asked, measure, phrase

Side = Literal["before", "after", "since", "until", "near", "during", "of"]

SIDES: dict[str, Side] = {
    "before": "before",
    "prior to": "before",
    "after": "after",
    "following": "after",
    "since": "since",
    "until": "until",
    "till": "until",
    "through": "until",
    "by": "until",
    "as of": "until",
    "up to": "until",
    "around": "near",
}
# Nearness reaches a third of the length to either side, and at least this many days.
_NEAR_DAYS = 3
# What one attends or travels to seldom lasts longer than a week, and its known moment is somewhere inside.
_DURING_DAYS = 3


@dataclass(frozen=True, slots=True)
class Relation:
    """Where the meant time lies from a known one; measured when there is a unit: that far off, or the `whole` way."""

    side: Side
    unit: str = ""
    least: int = 1
    most: int = 1
    whole: bool = False

    def to(self, known: Span, today: date) -> Span:
        """Return the meant span; what is open to the future ends with `today`, if it begins by then."""
        if self.unit:
            return self._measured(known)
        if self.side in {"after", "since"}:
            start = known.end if self.side == "after" else known.start
            tomorrow = midnight(shift(today, 1, "day"))
            return Span(start, tomorrow if start < tomorrow else midnight(LATEST))
        if self.side in {"before", "until"}:
            return Span(midnight(FIRST), known.start if self.side == "before" else known.end)
        reach = max(_NEAR_DAYS, (known.end - known.start).days // 3)
        return days(shift(known.start.date(), -reach, "day"), shift(known.end.date(), reach, "day"))

    def to_event(self, moment: datetime, today: date) -> Span:
        """Return the meant span for something that happened at `moment`."""
        day = period(moment.date(), "day")
        if self.side == "during":
            return days(shift(moment.date(), -_DURING_DAYS, "day"), shift(moment.date(), _DURING_DAYS + 1, "day"))
        if self.unit or self.side in {"since", "until"}:
            return self.to(day, today)
        return self.to(Span(moment, moment), today)

    def _measured(self, known: Span) -> Span:
        ahead = self.side == "after"
        first, last = known.start.date(), shift(_ceiling(known.end), -1, "day")
        if self.side == "of":
            return _unit_of(known, self.unit) or known
        if not self.whole:
            sign = 1 if ahead else -1
            return window(last if ahead else first, sign * self.least, sign * self.most, self.unit)
        if (weekday := _weekday(self.unit)) is not None:
            # The nearest one that does not touch the known days.
            length = 2 if self.unit == "weekend" else 1
            before = shift(first, -((first.weekday() - weekday - length) % 7) - length, "day")
            start = shift(last, (weekday - last.weekday() - 1) % 7 + 1, "day") if ahead else before
            return days(start, shift(start, length, "day"))
        if self.unit in _DAY_PARTS:
            return day_part(shift(last, 1, "day") if ahead else shift(first, -1, "day"), self.unit)
        if ahead:
            return days(shift(last, 1, "day"), shift(shift(last, 1, "day"), self.most, self.unit))
        return days(shift(first, -self.most, self.unit), first)


_DAY_PARTS = frozenset({"morning", "afternoon", "evening", "night"})


def _weekday(unit: str) -> int | None:
    """Return on which day of the week a weekend or a weekday begins."""
    if unit == "weekend":
        return WEEKDAYS["sat"]
    return WEEKDAYS[unit[:3]] if unit.endswith("day") and unit != "day" else None


def _ceiling(moment: datetime) -> date:
    return moment.date() if moment == midnight(moment.date()) else shift(moment.date(), 1, "day")


def _unit_of(span: Span, unit: str) -> Span | None:
    """Return the week, month, evening … that holds the span; none when the span does not fit into one."""
    if unit in _DAY_PARTS:
        return day_part(span.start.date(), unit) if span.end == period(span.start.date(), "day").end else None
    found = period(span.start.date(), cast("Unit", unit))
    return found if unit == "weekend" or span.end <= found.end else None


_ONE = rf"(?:day|week|weekend|month|year|{DAY_PART})"
MEASURED = (
    r"(?:(?:about|around|exactly|roughly) )?"
    rf"(?:(?P<whole>(?:in |during |over )?the (?:last )?)?(?P<amount>{AMOUNT}) (?P<unit>{UNIT})s?"
    rf"|(?:in |during |on |over )?(?:the |last |the last )(?P<one>{_ONE}|{WEEKDAY}))"
    r" (?P<side>before|after|prior to|following)"
)
UNIT_OF = rf"(?:in |during |on |over )?the (?P<of>{_ONE}) of"


def measured(match: re.Match[str]) -> Relation:
    """Read what `MEASURED` matched."""
    side = SIDES[" ".join(match["side"].lower().split())]
    if match["one"]:
        return Relation(side, match["one"].lower(), whole=True)
    least, most, unit = measure(match["amount"], match["unit"])
    return Relation(side, unit, least, most, whole=bool(match["whole"]))


# --------------------------------------------------------------------------- parts: what stands before a span

Part = Callable[[re.Match[str], Span, Asked], Span | None]

_THIRDS = {"early": "early", "start": "early", "beginning": "early", "mid": "mid", "middle": "mid"}
_NTH = {"1st": 1, "2nd": 2, "3rd": 3, "4th": 4} | ORDINALS


def _third(match: re.Match[str], span: Span, _: Asked) -> Span | None:
    return third(span, _THIRDS.get(match["part"].lower(), "late"))


def _side_of_today(match: re.Match[str], span: Span, asked: Asked) -> Span | None:
    today = period(asked.today, "day")
    if not span.meets(today):
        return span
    return Span(span.start, today.end) if match["part"].lower() == "earlier" else Span(today.start, span.end)


def _of(match: re.Match[str], span: Span, _: Asked) -> Span | None:
    return _unit_of(span, match["of"].lower())


def _nth(match: re.Match[str], span: Span, _: Asked) -> Span | None:
    """Return "the second week of", "the first Monday of", "the last month of" a span."""
    unit, name = match["unit"].lower(), match["nth"].lower()
    step = "month" if unit == "month" else "day" if unit == "day" else "week"
    last = name == "last"
    start = shift(span.end.date(), -1, step) if last else shift(span.start.date(), _NTH[name] - 1, step)
    if (weekday := _weekday(unit)) is not None:
        start = shift(start, (weekday - start.weekday()) % 7, "day")
    end = shift(start, 2, "day") if unit == "weekend" else shift(start, 1, step if unit == step else "day")
    found = days(start, end)
    return found if found.meets(span) else None


def _half(match: re.Match[str], span: Span, _: Asked) -> Span | None:
    first, after = span.start.date(), span.end.date()
    months = round((after - first).days / 30.4)
    middle = shift(first, months // 2, "month") if months > 1 else shift(first, (after - first).days // 2, "day")
    return days(first, middle) if match["half"].lower() == "first" else days(middle, after)


PARTS: tuple[tuple[re.Pattern[str], Part], ...] = tuple(
    (phrase(rf"(?<!\w)(?:the )?{pattern}(?:the )?$"), part)
    for pattern, part in (
        (r"(?P<part>early|mid|late)(?:-| (?:in |on )?)", _third),
        (r"(?:very )?(?P<part>start|beginning|middle|end) of ", _third),
        (r"(?P<part>earlier|later) (?:in |on )?", _side_of_today),
        (rf"(?P<nth>{'|'.join(_NTH)}|last) (?P<unit>day|week|weekend|month|{WEEKDAY}) (?:of|in) ", _nth),
        (r"(?P<half>first|second|last) half of ", _half),
        (rf"(?P<of>{_ONE}) of ", _of),
    )
)
