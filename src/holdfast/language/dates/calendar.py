"""Calendar arithmetic as a person counts: periods, seasons, holidays, parts of the day.

All of it on local wall-clock time without a zone; the caller puts the zone back. Weeks begin on Monday, seasons are
the northern ones in whole months. Holidays that countries keep on different dates are left out; Thanksgiving and
the days around it are the American ones.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from typing import Literal, NamedTuple

Unit = Literal["day", "week", "weekend", "month", "quarter", "year", "decade"]
Pick = Literal["recent", "coming", "last", "this", "next"]
Tense = Literal["past", "ahead", "open"]

# One day inside what `date` can hold, so that no time zone pushes an open end over the edge.
FIRST = date(1, 1, 2)
LATEST = date(9999, 12, 31)

_DAYS = {"day": 1, "week": 7, "weekend": 7}
_MONTHS = {"month": 1, "quarter": 3, "year": 12, "decade": 120}
# Local hours. A night belongs to the day on which it begins.
_DAY_PARTS = {"morning": (5, 12), "afternoon": (12, 18), "evening": (18, 24), "night": (18, 30)}
_SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}
# How many years to either side something yearly is looked for: 29 February may be eight years away.
_YEARS_AROUND = 8


class Span(NamedTuple):
    """A stretch of local time, half open."""

    start: datetime
    end: datetime

    def meets(self, other: Span) -> bool:
        """Return whether the two share a moment."""
        return self.start < other.end and other.start < self.end

    def later(self, by: timedelta) -> Span:
        """Return the span moved on."""
        return Span(self.start + by, self.end + by)

    def to_hull(self, other: Span) -> Span:
        """Return the smallest span that holds both."""
        return Span(min(self.start, other.start), max(self.end, other.end))


def midnight(day: date) -> datetime:
    """Return the beginning of `day`."""
    return datetime.combine(day, time.min)


def days(first: date, after: date) -> Span:
    """Return the whole days from `first` up to and without `after`."""
    return Span(midnight(first), midnight(after))


def shift(day: date, count: int, unit: str) -> date:
    """Move `day` by `count` units: 31 March less a month is the last of February. Stops at the calendar's ends."""
    if unit in _DAYS:
        ordinal = day.toordinal() + count * _DAYS[unit]
        return date.fromordinal(min(max(ordinal, FIRST.toordinal()), LATEST.toordinal()))
    index = day.year * 12 + day.month - 1 + count * _MONTHS[unit]
    year, month = divmod(index, 12)
    if not FIRST.year <= year <= LATEST.year:
        return FIRST if year < FIRST.year else LATEST
    return max(FIRST, date(year, month + 1, min(day.day, _month_length(year, month + 1))))


def _month_length(year: int, month: int) -> int:
    return 31 if month == 12 else (date(year, month + 1, 1) - date(year, month, 1)).days


def period(day: date, unit: Unit) -> Span:
    """Return the calendar day, week, weekend, month … that holds `day`; a weekend is that of the day's week."""
    if unit == "weekend":
        saturday = shift(day, 5 - day.weekday(), "day")
        return days(saturday, shift(saturday, 2, "day"))
    first = {
        "day": lambda: day,
        "week": lambda: shift(day, -day.weekday(), "day"),
        "month": lambda: day.replace(day=1),
        "quarter": lambda: day.replace(day=1, month=day.month - (day.month - 1) % 3),
        "year": lambda: day.replace(day=1, month=1),
        "decade": lambda: date(max(day.year - day.year % 10, FIRST.year), 1, 1),
    }[unit]()
    return days(max(first, FIRST), shift(first, 1, unit))


def day_part(day: date, name: str) -> Span:
    """Return the morning, afternoon, evening or night of `day`."""
    start, end = _DAY_PARTS[name]
    first = min(day, shift(LATEST, -2, "day"))
    return Span(midnight(first) + timedelta(hours=start), midnight(first) + timedelta(hours=end))


def third(span: Span, part: str) -> Span:
    """Return the "early", "mid" or "late" third of a span, in whole years, months or days, as fits its size.

    The remainder goes to the middle; what is shorter than three days has no thirds.
    """
    start, end = span.start.date(), span.end.date()
    length = (end - start).days
    unit = "day" if length < 80 else "month" if length < 1100 else "year"
    count = {"day": length, "month": round(length / 30.4), "year": round(length / 365.25)}[unit]
    if count < 3:
        return span
    head, tail = shift(start, count // 3, unit), shift(end, -(count // 3), unit)
    return {"early": days(start, head), "mid": days(head, tail), "late": days(tail, end)}[part]


# ----------------------------------------------------------------------------------- things of every year

OfYear = Callable[[int], Span | None]


def date_of(month: int, day: int, length: int = 1) -> OfYear:
    """Return the days from a date on, for a year; none when that year has no such date."""

    def of(year: int) -> Span | None:
        if not FIRST.year < year < LATEST.year or day > _month_length(year, month):
            return None
        first = date(year, month, day)
        return days(first, shift(first, length, "day"))

    return of


def months_of(month: int, count: int = 1) -> OfYear:
    """Return `count` whole months from `month` on, for a year."""

    def of(year: int) -> Span | None:
        if not FIRST.year < year < LATEST.year:
            return None
        return days(date(year, month, 1), shift(date(year, month, 1), count, "month"))

    return of


def season_of(name: str) -> OfYear:
    """Return a season, for the year in which it begins."""
    return months_of(_SEASONS[name], 3)


def _nth_weekday(month: int, weekday: int, nth: int, later: int = 0) -> OfYear:
    def of(year: int) -> Span | None:
        month_span = months_of(month)(year)
        if month_span is None:
            return None
        first = month_span.start.date() if nth > 0 else shift(month_span.end.date(), -7, "day")
        found = shift(first, (weekday - first.weekday()) % 7 + 7 * (max(nth, 1) - 1) + later, "day")
        return days(found, shift(found, 1, "day"))

    return of


def _easter(offset: int, length: int) -> OfYear:
    def of(year: int) -> Span | None:
        if not FIRST.year < year < LATEST.year:
            return None
        # The Gregorian computus in its anonymous form (Nature, 1876).
        a, b, c = year % 19, year // 100, year % 100
        h = (19 * a + b - b // 4 - (b - (b + 8) // 25 + 1) // 3 + 15) % 30
        k = (32 + 2 * (b % 4) + 2 * (c // 4) - h - c % 4) % 7
        month, day = divmod(h + k - 7 * ((a + 11 * h + 22 * k) // 451) + 114, 31)
        first = shift(date(year, month, day + 1), offset, "day")
        return days(first, shift(first, length, "day"))

    return of


# Without their apostrophes. A name without "day" or "eve" is the feast with the days that belong to it.
HOLIDAYS: dict[str, OfYear] = {
    "christmas": date_of(12, 24, 3),
    "christmas eve": date_of(12, 24),
    "christmas day": date_of(12, 25),
    "xmas": date_of(12, 24, 3),
    "boxing day": date_of(12, 26),
    "new year": date_of(12, 31, 2),
    "new years": date_of(12, 31, 2),
    "new years eve": date_of(12, 31),
    "new years day": date_of(1, 1),
    "valentines": date_of(2, 14),
    "valentines day": date_of(2, 14),
    "st patricks day": date_of(3, 17),
    "april fools day": date_of(4, 1),
    "easter": _easter(-2, 4),
    "good friday": _easter(-2, 1),
    "easter sunday": _easter(0, 1),
    "easter monday": _easter(1, 1),
    "memorial day": _nth_weekday(5, 0, -1),
    "labor day": _nth_weekday(9, 0, 1),
    "halloween": date_of(10, 31),
    "thanksgiving": _nth_weekday(11, 3, 4),
    "thanksgiving day": _nth_weekday(11, 3, 4),
    "black friday": _nth_weekday(11, 3, 4, later=1),
    "cyber monday": _nth_weekday(11, 3, 4, later=4),
}


def choose(of: OfYear, here: int, today: date, pick: Pick, tense: Tense) -> Span | None:
    """Choose among the spans `of(here - 8)` … `of(here + 8)` the one a person means on `today`.

    recent: the last that has begun; coming: the first not yet over; last: the last that is over; next: the first
    still to begin; this: the one running, else that of `here`, unless the tense says it must be the other way.
    """
    now = period(today, "day")
    spans = [span for index in range(here - _YEARS_AROUND, here + _YEARS_AROUND + 1) if (span := of(index))]
    begun = [span for span in spans if span.start < now.end]
    unfinished = [span for span in spans if span.end > now.start]
    if pick == "this":
        running = [span for span in begun if span in unfinished]
        own = of(here)
        if running or own is None:
            return running[-1] if running else None
        if tense == "open" or (tense == "past") == (own in begun):
            return own
        pick = "recent" if tense == "past" else "coming"
    chosen = {
        "recent": begun[-1:],
        "coming": unfinished[:1],
        "last": [span for span in spans if span.end <= now.start][-1:],
        "next": [span for span in spans if span.start >= now.end][:1],
    }[pick]
    return chosen[0] if chosen else None
