"""Times counted from the moment of asking: "yesterday", "last week", "on Monday", "two weeks ago", "the past year".

A count of units back or ahead is as exact as its unit: "two weeks ago" is the seven days around that day. "Last" with
a unit is the calendar one, "the last" and "the past" reach from that long ago to the end of today.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date, datetime, timedelta
from typing import cast

from holdfast.language.dates.calendar import (
    FIRST,
    LATEST,
    Span,
    Unit,
    choose,
    day_part,
    days,
    midnight,
    period,
    shift,
)
from holdfast.language.dates.words import (
    AMOUNT,
    DAY_PART,
    EDGE,
    END,
    FREE,
    ON,
    POSSESSIVES,
    UNIT,
    WEEKDAY,
    WEEKDAYS,
    Asked,
    Moment,
    Rule,
    measure,
    phrase,
    word_before,
    words,
)

_STEPS = {"last": -1, "this past": -1, "the previous": -1, "this": 0, "next": 1, "this coming": 1, "the coming": 1}
_WHICH = r"this past|this coming|the coming|last|this|next"
_AT_WEEKEND = frozenset({"over", "at", "on", "during", "for", "since", "before", "after", "by", "until"})
_IN_ROLLING = frozenset({"in", "over", "during", "for", "within", "from"})
# "The year" alone is no time; its start, its middle and its end are.
_PART_ONLY = frozenset({"part"})
# Half a unit to either side; of an odd number of days the later side has one more. Within decades years are counted.
_HALF_DAYS = {"day": 0, "week": 3, "month": 15, "quarter": 45}
_HALF_MONTHS = {"year": 6, "decade": 24}


def window(day: date, least: int, most: int, unit: str, slack: int = 0) -> Span:
    """Return what lies `least` to `most` units from `day` (negative: before it), at least one unit wide."""
    first, last = sorted((shift(day, least, unit), shift(day, most, unit)))
    if unit in _HALF_MONTHS:
        return days(shift(first, -_HALF_MONTHS[unit], "month"), shift(last, _HALF_MONTHS[unit], "month"))
    half = _HALF_DAYS[unit] + slack
    return days(shift(first, -half, "day"), shift(last, half + 1, "day"))


def _another(match: re.Match[str], which: str) -> bool:
    """Return whether "last" or "next" counts within a story: "my last week there", "the next day"."""
    before = word_before(match)
    return which in {"last", "next"} and (before in POSSESSIVES or (which == "next" and before == "the"))


# ------------------------------------------------------------------------------------------------- days

_DAY = phrase(
    rf"{EDGE}(?:(?P<name>the day before yesterday|the day after tomorrow|yesterday|today|tomorrow)"
    rf"(?: (?P<part>{DAY_PART}))?|(?P<night>tonight|last night|the night before last)|this (?P<this>{DAY_PART}))"
    rf"(?:'s)?{END}"
)
_DAY_STEPS = {"the day before yesterday": -2, "yesterday": -1, "today": 0, "tomorrow": 1, "the day after tomorrow": 2}
_NIGHT_STEPS = {"the night before last": -2, "last night": -1, "tonight": 0}


def _day(match: re.Match[str]) -> Moment | None:
    night, part, this = words(match["night"]), words(match["part"]), words(match["this"])
    if night == "last night" and word_before(match) in POSSESSIVES | {"the"}:
        return None
    step = _NIGHT_STEPS[night] if night else 0 if this else _DAY_STEPS[words(match["name"])]
    part = "night" if night else this or part

    def read(asked: Asked) -> Span | None:
        day = shift(asked.today, step, "day")
        return day_part(day, part) if part else period(day, "day")

    return Moment(match.start(), match.end(), read)


_WEEKDAY_END = rf"(?: (?P<part>(?-i:{DAY_PART})))?(?P<own>'s)?{END}"
_WEEKDAY = phrase(
    rf"{EDGE}(?:(?P<which>{_WHICH}) )?(?P<day>{WEEKDAY}|(?-i:Mon|Tues?|Wed|Thurs?|Fri|Sat|Sun)\b\.?)"
    rf"(?:,? (?:of )?(?P<week>last|this|next) week)?{_WEEKDAY_END}"
    rf"(?![\s-](?:school|roast|papers?|league|service|mass|{DAY_PART}s?|the \d+\w\w|live|football)\b)"
)
_WEEK_THEN_DAY = phrase(rf"{EDGE}(?P<week>last|this|next) week(?:'s)?,?(?: on)? (?P<day>{WEEKDAY}){_WEEKDAY_END}")


def _weekday(match: re.Match[str]) -> Moment | None:
    number = WEEKDAYS[match["day"].lower()[:3]]
    which, week, part = words(match.groupdict().get("which")), words(match["week"]), words(match["part"])
    bare = not (which or week)
    if _another(match, which):
        return None

    def read(asked: Asked) -> Span | None:
        def of_week(step: int) -> Span:
            return period(shift(asked.today, 7 * step + number - asked.today.weekday(), "day"), "day")

        if bare and asked.habit:
            return None
        if week or which == "next":
            span: Span | None = of_week(_STEPS[week or which])
        elif which == "this":
            span = choose(of_week, 0, asked.today, "this", asked.tense)
        else:
            # Asked on a Monday, "on Monday" is another one: this one is today.
            ahead = which.endswith("coming") or (bare and asked.tense == "ahead")
            span = choose(of_week, 0, asked.today, "next" if ahead else "last", asked.tense)
        return day_part(span.start.date(), part) if span and part else span

    return Moment(match.start(), match.end(), read, ON if bare and not (part or match["own"]) else FREE, bare=bare)


_DAY_OF_MONTH = phrase(
    rf"{EDGE}the (?P<day>3[01]|[12]\d|[1-9])(?:st|nd|rd|th)"
    rf"(?: of (?P<which>this|last|next) month{END}|(?=\s*(?:[?.,;!)]|$)))"
)


def _day_of_month(match: re.Match[str]) -> Moment | None:
    number, which = int(match["day"]), words(match["which"])

    def read(asked: Asked) -> Span | None:
        def of_month(step: int) -> Span | None:
            month = period(shift(asked.today.replace(day=1), step, "month"), "month")
            day = period(shift(month.start.date(), number - 1, "day"), "day")
            return day if day.meets(month) else None

        if which:
            return of_month(_STEPS[which])
        return choose(of_month, 0, asked.today, "coming" if asked.tense == "ahead" else "recent", asked.tense)

    return Moment(match.start(), match.end(), read, ON, bare=not which)


# -------------------------------------------------------------------------------------- weeks and longer

_CALENDAR_UNIT = phrase(
    rf"{EDGE}(?:(?P<which>the previous|{_WHICH}) (?P<unit>week|weekend|month|quarter|year|decade)"
    r"|the (?P<back>week|weekend|month|quarter|year) before last|the (?P<own>week|weekend|month|quarter|year))"
    rf"(?:'s)?{END}(?! of\b|-end| \d)"
)


def _calendar_unit(match: re.Match[str]) -> Moment | None:
    unit = cast("Unit", words(match["unit"] or match["back"] or match["own"]))
    which = words(match["which"])
    # "This past week" reaches up to now: see the rolling ones.
    if _another(match, which) or (which == "this past" and unit != "weekend"):
        return None

    def read(asked: Asked) -> Span | None:
        step = -2 if match["back"] else _STEPS.get(which, 0)
        if unit == "weekend" and not match["back"]:
            step = _weekend_step(which, asked)
        return period(shift(asked.today, step, unit), unit)

    needs = FREE if not match["own"] else _AT_WEEKEND if unit == "weekend" else _PART_ONLY
    return Moment(match.start(), match.end(), read, needs)


def _weekend_step(which: str, asked: Asked) -> int:
    """Return how many weeks off the meant weekend lies; on a Saturday or Sunday "this weekend" is running."""
    running = asked.today.weekday() >= 5
    if which in {"this", ""}:
        gone_by = asked.tense == "past" if which else asked.tense != "ahead"
        return -1 if gone_by and not running else 0
    if which.endswith("coming"):
        return 1 if running else 0
    return _STEPS[which]


_COUNTED_OFF = phrase(
    rf"{EDGE}(?:(?P<about>about|around|roughly|approximately|almost|nearly|maybe) )?"
    rf"(?:(?P<amount>{AMOUNT})|(?P<half>half an?)) (?P<unit>hour|night|weekend|{UNIT})s?"
    rf" (?:(?P<ago>ago|back(?! (?:to|in|home|and|from)\b))|from (?:now|today))(?P<exact> today)?{END}"
)

# More or less than that long ago is another time.
_BEYOND = phrase(r"\b(?:(?:more|less|longer|earlier|later) than|over|under|at least|at most) $")


def _counted_off(match: re.Match[str]) -> Moment | None:
    least, most, unit = (6, 6, "month") if match["half"] else measure(match["amount"], match["unit"])
    if (match["half"] and words(match["unit"]) != "year") or _BEYOND.search(match.string[: match.start()]):
        return None
    sign = -1 if match["ago"] else 1

    def read(asked: Asked) -> Span | None:
        if unit in _NOT_IN_DAYS:
            return _NOT_IN_DAYS[unit](asked, sign * least).to_hull(_NOT_IN_DAYS[unit](asked, sign * most))
        if match["exact"]:
            return period(shift(asked.today, sign * least, unit), "day")
        # "About ten days" is not ten days to the day; longer units are loose enough as they are.
        slack = max(1, most // 5) if match["about"] and unit == "day" else 0
        return window(asked.today, sign * least, sign * most, unit, slack)

    return Moment(match.start(), match.end(), read)


_NOT_IN_DAYS: dict[str, Callable[[Asked, int], Span]] = {
    "hour": lambda asked, step: Span(_hours(asked.now, step - 1), _hours(asked.now, step)).later(
        timedelta(minutes=30)
    ),
    "night": lambda asked, step: day_part(shift(asked.today, step, "day"), "night"),
    "weekend": lambda asked, step: period(shift(asked.today, step, "week"), "weekend"),
}


def _hours(now: datetime, step: int) -> datetime:
    # By the wall clock, and never nearer than two days to the ends of the calendar.
    day = shift(now.date(), step // 24, "day")
    inside = min(max(day, shift(FIRST, 2, "day")), shift(LATEST, -2, "day"))
    return datetime.combine(inside, now.time()) + timedelta(hours=step % 24)


_ROLLING = phrase(
    rf"{EDGE}(?P<the>(?:the|these|this) )?(?P<which>last|past|previous|next) (?:(?P<amount>{AMOUNT}) )?"
    rf"(?P<unit>hour|{UNIT})(?P<many>s)?{END}(?! of\b)"
)


def _rolling(match: re.Match[str]) -> Moment | None:
    which, counted = words(match["which"]), match["amount"]
    _, most, unit = measure(counted or "a", match["unit"])
    # "The last day" and "the next week" are days and weeks of a story; "the past months" are nobody knows how many.
    if not counted and (not match["the"] or match["many"] or which not in {"last", "past"} or unit == "day"):
        return None

    def read(asked: Asked) -> Span | None:
        tomorrow = shift(asked.today, 1, "day")
        if unit == "hour":
            return None if which == "next" else Span(_hours(asked.now, -most), midnight(tomorrow))
        if which == "next":
            return days(asked.today, shift(tomorrow, most, unit))
        return days(shift(asked.today, -most, unit), tomorrow)

    return Moment(match.start(), match.end(), read, FREE if match["the"] else _IN_ROLLING)


RELATIVE_TIMES: tuple[Rule, ...] = (
    (_DAY, _day),
    (_WEEKDAY, _weekday),
    (_WEEK_THEN_DAY, _weekday),
    (_DAY_OF_MONTH, _day_of_month),
    (_CALENDAR_UNIT, _calendar_unit),
    (_COUNTED_OFF, _counted_off),
    (_ROLLING, _rolling),
)
