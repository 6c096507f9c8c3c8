"""Calendar arithmetic as a person counts: periods, seasons, holidays, parts of the day. Times as callers give them.

The arithmetic is on local wall-clock time without a zone; the caller puts the zone back. Weeks begin on Monday,
seasons are the northern ones in whole months. Holidays that countries keep on different dates are left out;
Thanksgiving and the days around it are the American ones.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import Any, Literal, NamedTuple

from holdfast.errors import InputError, quote_value
from holdfast.text.words import entries, words

Pick = Literal["recent", "coming", "last", "this", "next", "nearest"]
Tense = Literal["past", "ahead", "open"]

# One day inside what `date` can hold, so that no time zone pushes an open end over the edge.
FIRST = date(1, 1, 2)
LATEST = date(9999, 12, 31)

MONTH_NAMES = words("calendar", "months")
# By name and by abbreviation.
MONTHS = {name: number for number, name in enumerate(MONTH_NAMES, 1)}
MONTHS |= {name[:3]: number for name, number in MONTHS.items()} | {"sept": 9}
WEEKDAYS = {name[:3]: number for number, name in enumerate(words("calendar", "weekdays"))}
_DAYS = {"day": 1, "week": 7, "weekend": 7}
_MONTHS = {"month": 1, "quarter": 3, "year": 12, "decade": 120}
# Local hours. A night belongs to the day on which it begins.
DAY_PARTS = dict(zip(words("calendar", "day_parts"), ((5, 12), (12, 18), (18, 24), (18, 30)), strict=True))
# The month in which each begins; fall is autumn.
SEASONS = dict(zip(words("calendar", "seasons"), (3, 6, 9, 9, 12), strict=True))
# How many years to either side something yearly is looked for: 29 February may be eight years away.
_YEARS_AROUND = 8
# Half a unit to either side; of an odd number of days the later side has one more. Within decades years are counted.
_HALF_DAYS = {"day": 0, "week": 3, "month": 15, "quarter": 45}
_HALF_MONTHS = {"year": 6, "decade": 24}


class LocalSpan(NamedTuple):
    """A stretch of local time, half open."""

    start: datetime
    end: datetime

    def meets(self, other: LocalSpan) -> bool:
        """Return whether the two share a moment."""
        return _is_before(self.start, other.end) and _is_before(other.start, self.end)

    def to_hull(self, other: LocalSpan) -> LocalSpan:
        """Return the smallest span that holds both."""
        return LocalSpan(min(self.start, other.start), max(self.end, other.end))


def _is_before(one: datetime, other: datetime) -> bool:
    # An hour that clocks repeat begins and ends at the same local time.
    return (one, one.fold) < (other, other.fold)


def midnight(day: date) -> datetime:
    """Return the beginning of `day`."""
    return datetime.combine(day, time.min)


def days(first: date, after: date) -> LocalSpan:
    """Return the whole days from `first` up to and without `after`."""
    return LocalSpan(midnight(first), midnight(after))


def stretch(first: date, count: int, unit: str) -> LocalSpan:
    """Return the `count` units that begin with the day `first`."""
    return days(first, shift(first, count, unit))


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


def period(day: date, unit: str) -> LocalSpan:
    """Return the day, week, weekend, month … or the part of a day that holds `day`; a weekend is that of its week."""
    if unit in DAY_PARTS:
        begin = midnight(min(day, shift(LATEST, -2, "day")))
        start, end = (begin + timedelta(hours=hours) for hours in DAY_PARTS[unit])
        return LocalSpan(start, end)
    if unit == "weekend":
        return stretch(shift(day, 5 - day.weekday(), "day"), 2, "day")
    first = {
        "day": lambda: day,
        "week": lambda: shift(day, -day.weekday(), "day"),
        "month": lambda: day.replace(day=1),
        "quarter": lambda: day.replace(day=1, month=day.month - (day.month - 1) % 3),
        "year": lambda: day.replace(day=1, month=1),
        "decade": lambda: date(max(day.year - day.year % 10, FIRST.year), 1, 1),
    }[unit]()
    return days(max(first, FIRST), shift(first, 1, unit))


def window(day: date, least: int, most: int, unit: str, slack: int = 0) -> LocalSpan:
    """Return what lies `least` to `most` units from `day` (negative: before it), at least one unit wide."""
    first, last = sorted((shift(day, least, unit), shift(day, most, unit)))
    if unit in _HALF_MONTHS:
        return days(shift(first, -_HALF_MONTHS[unit], "month"), shift(last, _HALF_MONTHS[unit], "month"))
    half = _HALF_DAYS[unit] + slack
    return days(shift(first, -half, "day"), shift(last, half + 1, "day"))


def part_of(span: LocalSpan, name: str) -> LocalSpan:
    """Return the "early", "mid" or "late" third or the "first" or "second" half of a span.

    In whole years, months or days, as fits its size. What is left over goes to the middle third or to the second
    half; what is too short for parts stays whole.
    """
    start, end = span.start.date(), span.end.date()
    length = (end - start).days
    unit = "day" if length < 80 else "month" if length < 1100 else "year"
    count = {"day": length, "month": round(length / 30.4), "year": round(length / 365.25)}[unit]
    parts = 2 if name in {"first", "second", "last"} else 3
    if count < parts:
        return span
    head, tail = shift(start, count // parts, unit), shift(end, -(count // parts), unit)
    if name in {"early", "start", "beginning", "first"}:
        return days(start, head)
    return days(head, tail) if name in {"mid", "middle"} else days(head if parts == 2 else tail, end)


def nth_of(span: LocalSpan, unit: str, nth: int) -> LocalSpan:
    """Return the nth day, week, month, weekend or weekday of a span; the nth -1 is the last."""
    step = unit if unit in {"day", "month"} else "week"
    first = shift(span.end.date(), -1, step) if nth < 0 else shift(span.start.date(), nth - 1, step)
    return next_such(first, unit) or stretch(first, 1, unit)


def next_such(day: date, unit: str) -> LocalSpan | None:
    """Return the first weekend or weekday that begins on `day` or later; none for any other unit."""
    if unit != "weekend" and unit not in words("calendar", "weekdays"):
        return None
    weekday, length = (WEEKDAYS["sat"], 2) if unit == "weekend" else (WEEKDAYS[unit[:3]], 1)
    return stretch(shift(day, (weekday - day.weekday()) % 7, "day"), length, "day")


# ----------------------------------------------------------------------------------- things of every year

OfYear = Callable[[int], LocalSpan | None]


def each_year(month: int, day: int = 1, count: int = 1, unit: str = "day") -> OfYear:
    """Return what begins on a date, for a year; none when that year has no such date."""

    def of(year: int) -> LocalSpan | None:
        if not FIRST.year < year < LATEST.year or day > _month_length(year, month):
            return None
        return stretch(date(year, month, day), count, unit)

    return of


def _holiday(rule: dict[str, Any]) -> OfYear:
    if "day" in rule:
        return each_year(rule["month"], rule["day"], rule.get("days", 1))

    def of(year: int) -> LocalSpan | None:
        if not FIRST.year < year < LATEST.year:
            return None
        if "nth" in rule:
            first = nth_of(
                stretch(date(year, rule["month"], 1), 1, "month"), rule["weekday"], rule["nth"]
            ).start.date()
        else:
            first = _easter_sunday(year)
        return stretch(shift(first, rule.get("later", 0), "day"), rule.get("days", 1), "day")

    return of


def _easter_sunday(year: int) -> date:
    # The Gregorian computus in its anonymous form (Nature, 1876).
    a, b, c = year % 19, year // 100, year % 100
    h = (19 * a + b - b // 4 - (b - (b + 8) // 25 + 1) // 3 + 15) % 30
    k = (32 + 2 * (b % 4) + 2 * (c // 4) - h - c % 4) % 7
    month, day = divmod(h + k - 7 * ((a + 11 * h + 22 * k) // 451) + 114, 31)
    return date(year, month, day + 1)


HOLIDAYS = {name: _holiday(rule) for name, rule in entries("calendar", "holidays").items()}


def choose(of: OfYear, here: int, today: date, pick: Pick, tense: Tense) -> LocalSpan | None:
    """Choose among the spans `of(here - 8)` … `of(here + 8)` the one a person means on `today`.

    recent: the last that has begun; coming: the first not yet over; last: the last that is over; next: the first
    still to begin; this: the one running, else that of `here`, unless the tense says it must be the other way;
    nearest: the one with the fewest days to it.
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
        "nearest": sorted(spans, key=lambda span: max(span.start - now.end, now.start - span.end))[:1],
    }[pick]
    return chosen[0] if chosen else None


# ------------------------------------------------------------------------------- times that callers and files give

# Outside these years a time is a mix-up of units or a typing error, not a memory.
_EARLIEST, _TOO_LATE = datetime(1900, 1, 1, tzinfo=UTC), datetime(2200, 1, 1, tzinfo=UTC)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# A smaller number is a year, a day written as 20260403 or a counter: as seconds it would lie before March 1973.
_LEAST_SECONDS = 1e8
# From here on a number is milliseconds: as seconds it would lie beyond the year 5000.
_LEAST_MILLISECONDS = 1e11
# As milliseconds this is beyond the year 2200; larger are microseconds or no time at all.
_TOO_LARGE = 1e13
_EXAMPLE = "write it as 2026-04-02T09:00:00Z"


def read_time(what: str, given: object, zone: tzinfo | None = None) -> datetime:
    """Return an aware UTC time from a datetime, ISO text, or seconds or milliseconds since 1970.

    A day is its first moment in `zone`, else in UTC. A time of day that names no zone is one of `zone`, and refused
    without: `datetime.now()` is of the machine's clock, so that UTC would be wrong by hours, unseen, and for good,
    since a message is known by its time. Clocks that are set forward skip local times: these are read as if they had
    not been. Of a local time that comes twice the first is meant.

    Raises:
        InputError: nothing says which zone it is in, it is not a time, or outside the years a memory can have.
    """
    moment = _moment(what, given, zone or UTC)
    if moment.tzinfo is None and zone is not None:
        moment = moment.replace(tzinfo=zone)
    if moment.utcoffset() is None:
        remedy = _EXAMPLE if isinstance(given, str) else "append .astimezone() when it is of this machine's clock"
        raise InputError(
            f"{what} = {quote_value(str(given))} has no time zone; {remedy}, or name a zone (zone=…, store.zone)"
        )
    if not _EARLIEST <= moment < _TOO_LATE:
        raise InputError(
            f"{what} = {moment.isoformat()} is outside {_EARLIEST.year}–{_TOO_LATE.year}; check its unit"
        )
    return moment.astimezone(UTC)


def _moment(what: str, given: object, zone: tzinfo) -> datetime:
    if isinstance(given, datetime):
        return given
    if isinstance(given, date):
        return midnight(given).replace(tzinfo=zone)
    if isinstance(given, str):
        return _written(what, given, zone)
    if isinstance(given, int | float) and not isinstance(given, bool):
        return _since_epoch(what, given)
    raise InputError(f"{what} = {quote_value(given)} is not a time; give a datetime, or {_EXAMPLE}")


def _written(what: str, given: str, zone: tzinfo) -> datetime:
    for read in (lambda text: midnight(date.fromisoformat(text)).replace(tzinfo=zone), datetime.fromisoformat):
        try:
            return read(given)
        except ValueError:
            continue
    raise InputError(f"{what} = {quote_value(given)} is not a time; {_EXAMPLE}")


def _since_epoch(what: str, given: float) -> datetime:
    if not _LEAST_SECONDS <= given < _TOO_LARGE:
        raise InputError(
            f"{what} = {quote_value(given)} is neither seconds nor milliseconds since 1970; check its unit, or "
            f"{_EXAMPLE}"
        )
    seconds = given if given < _LEAST_MILLISECONDS else given / 1000
    return EPOCH + timedelta(seconds=seconds)
