"""The expressions of time that a question may hold: dates, months, holidays, "yesterday", "two weeks ago".

What every year has is read by the year beside it, else by "last", "this" or "next", else by the tense of the
question: the most recent one that has begun, or the coming one when the question looks ahead. A question for a habit
("what do I usually do in summer?") means none of them. A count of units back or ahead is as exact as its unit: "two
weeks ago" is the seven days around that day. "Last" with a unit is the calendar one, "the last" and "the past" reach
from that long ago to the end of today.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, tzinfo
from typing import NamedTuple

from holdfast.text.calendar import (
    FIRST,
    HOLIDAYS,
    LATEST,
    MONTH_NAMES,
    MONTHS,
    SEASONS,
    WEEKDAYS,
    LocalSpan,
    OfYear,
    Pick,
    Tense,
    choose,
    days,
    each_year,
    midnight,
    part_of,
    period,
    shift,
    window,
)
from holdfast.text.words import any_of, regex, words


class QuestionTime(NamedTuple):
    """The local time a question is asked at, its tense, whether it asks for a habit, and the zone it is asked in.

    Or the time at which something is `told`: a day of the week is the coming one then, unless the tense is past.
    """

    now: datetime
    tense: Tense = "open"
    habit: bool = False
    zone: tzinfo = UTC
    told: bool = False

    @property
    def today(self) -> date:
        """Return the local day of the question."""
        return self.now.date()

    @property
    def pick(self) -> Pick:
        """Return which one is meant of what comes round again, when nothing says so."""
        if self.tense == "open" and self.told:
            return "nearest"
        return "coming" if self.tense == "ahead" else "recent"


FREE: frozenset[str] = frozenset()


class TimeMeaning(NamedTuple):
    """What an expression means to a question.

    `needs` are the prepositions that make it a time, empty when it is one by itself. `dated` names its year and so
    means the same whenever it is asked. `bare` comes round again and nothing says which one is meant.
    """

    span: LocalSpan | None
    needs: frozenset[str] = FREE
    dated: bool = False
    bare: bool = False


# ------------------------------------------------------------------------------------------------- vocabulary


def phrase(pattern: str) -> re.Pattern[str]:
    """Compile a pattern in which a blank stands for white space and the case of letters does not matter."""
    return regex(pattern.replace(" ", r"\s+"), re.IGNORECASE)


def plain(text: str | None) -> str:
    """Return what a group matched, lower-cased with single blanks; nothing for a group left out."""
    return " ".join((text or "").lower().split())


_PAST = phrase(rf"\b{any_of('calendar', 'past')}\b")
AHEAD = phrase(
    r"\b(?:will|won't|shall|gonna|going to|upcoming|coming up|plans? (?:for|to|on)|planned for|planning"
    rf"|should (?:i|we)|(?:am i|are we|are you|i'm|we're) (?!{any_of('calendar', 'talking')})(?:\w+ )?\w+ing"
    r"|do (?:i|we) have|have (?:i|we) got|what(?:'s| is) (?:on|coming|happening|planned)|appointments?"
    r"|due|scheduled|looking forward|(?:when|what time) (?:is|are)"
    r"|(?:is|are) (?:the|my|our|there) (?:\w+ ){1,3}(?:on|at))\b|'ll\b"
)
HABIT = phrase(
    rf"\b(?:{any_of('calendar', 'habit')}|tend to)\b|\bdo(?:es)? .{{0,80}}\b(?:enjoy|love|like|prefer|celebrate)\b"
)


def find_tense(text: str) -> Tense:
    """Return the tense of a question."""
    if _PAST.search(text):
        return "past"
    return "ahead" if AHEAD.search(text) else "open"


ORDINALS = {name: number for number, name in enumerate(words("calendar", "ordinals"), 1)}
WEEKDAY = any_of("calendar", "weekdays")
DAY_PART = any_of("calendar", "day_parts")
UNIT = r"(?:day|week|fortnight|month|quarter|year|decade)"
_POSSESSIVES = frozenset(words("calendar", "possessives"))
_WHICH = r"this past|this coming|the coming|last|this|next"
_PERHAPS_WHICH = rf"(?:(?P<which>{_WHICH}) )?"
_STEPS = {"last": -1, "this past": -1, "the previous": -1, "this": 0, "next": 1, "this coming": 1, "the coming": 1}
_PICKS: dict[str, Pick] = {"last": "last", "this past": "last", "this": "this", "next": "next"}
_YEAR = r"(?:1[5-9]|20|21)\d\d"
_NOT_COUNTED = rf"(?!\s?[%$€£]| {any_of('calendar', 'counted')}\b)"
_OF_YEAR = rf"(?:(?:,\s?| )(?:of |in )?(?:(?P<year>{_YEAR}){_NOT_COUNTED}|(?P<near>last|this|next) year))?"
# What may stand before the first and after the last letter of an expression.
_EDGE = r"(?<![\w$€£#/'])(?<!\d[.,])"
_END = r"(?!\w|[/.,:]\d)"

# The prepositions after which a doubtful word is a time.
_SINCE = frozenset({"since", "until", "till", "through", "before", "after", "prior to", "as of", "up to", "around"})
_ON = _SINCE | {"on", "by", "for", "from"}
_IN = _SINCE | {"in", "during", "throughout"}
_IN_MONTH = _IN | {"by", "for", "from"}
_IN_YEAR = _IN - {"around"} | {"by", "from"}
_IN_SEASON = frozenset(f"{word}{the}" for word in _IN_MONTH | {"over"} for the in ("", " the"))
_AT_HOLIDAY = _ON | _IN | {"at", "over"}
_AT_WEEKEND = frozenset({"over", "at", "on", "during", "for", "since", "before", "after", "by", "until"})
_IN_ROLLING = frozenset({"in", "over", "during", "for", "within", "from"})
# "The year" alone is no time; its start, its middle and its end are.
_PART_ONLY = frozenset({"part"})

_SMALL, _TENS = words("calendar", "numbers"), words("calendar", "tens")
_NUMBERS = {"a": 1, "an": 1} | {name: number for number, name in enumerate(_SMALL, 1)}
_NUMBERS |= {ten: 10 * number for number, ten in enumerate(_TENS, 2)}
_NUMBERS |= {f"{ten} {one}": _NUMBERS[ten] + _NUMBERS[one] for ten in _TENS for one in _SMALL[:9]}
# A vague amount covers all it may mean.
_VAGUE = {"couple": (2, 3), "few": (2, 5), "several": (3, 7)}
_COUNT = rf"(?:\d{{1,5}}|(?:{'|'.join(_TENS)})(?:[\s-](?:{'|'.join(_SMALL[:9])}))?|{'|'.join(reversed(_SMALL))})"
AMOUNT = rf"(?:\d{{1,5}}[-–]\d{{1,5}}|{_COUNT}(?:(?: or | to ){_COUNT})?|(?:a )?(?:couple(?: of)?|few)|several|an?)"


def measure(amount: str, unit: str) -> tuple[int, int, str]:
    """Read the least and the most an `AMOUNT` may mean ("10", "two or three", "a couple of"), and its unit."""
    said, unit = plain(amount), unit.lower().removesuffix("s")
    counts = [count for word, bounds in _VAGUE.items() if word in said for count in bounds]
    if not counts:
        parts = re.split(r" (?:or|to) |(?<=\d)[-–]", said)
        counts = [int(part) if part.isdecimal() else _NUMBERS[part.replace("-", " ")] for part in parts]
    if unit == "fortnight":
        return 2 * min(counts), 2 * max(counts), "week"
    return min(counts), max(counts), unit


def _in_a_story(match: re.Match[str], which: str, *, the: bool) -> bool:
    """Return whether "last" or "next" counts within a story: "my last week there", and with `the`: "the next day"."""
    before = match.string[max(0, match.start() - 20) : match.start()].lower().split()[-1:]
    return which in {"last", "next"} and (not _POSSESSIVES.isdisjoint(before) or (the and before == ["the"]))


# ------------------------------------------------------------------------- what every year has: dates to quarters

# Reads what its pattern matched: nothing when that is no time, a meaning without a span when it is an unclear one.
ExpressionReader = Callable[[re.Match[str], QuestionTime], TimeMeaning | None]
READERS: list[tuple[re.Pattern[str], ExpressionReader]] = []


def _reads(pattern: str) -> Callable[[ExpressionReader], ExpressionReader]:
    """Register a reader for what `pattern` matches."""

    def register(reader: ExpressionReader) -> ExpressionReader:
        READERS.append((phrase(pattern), reader))
        return reader

    return register


def _yearly(
    match: re.Match[str], asked: QuestionTime, of_year: OfYear, needs: frozenset[str], *, noun: bool = False
) -> TimeMeaning | None:
    """Read something every year has; a `noun` is also a thing: "the last march", "the next fall"."""
    groups = match.groupdict()
    year, near, which = groups.get("year"), groups.get("near"), plain(groups.get("which"))
    if _in_a_story(match, which, the=noun):
        return None
    here, bare = asked.today.year, not (year or near or which)
    if year:
        span = of_year(int(year) + (2000 if len(year) == 2 else 0))
    elif near:
        span = of_year(here + _STEPS[near.lower()])
    elif bare and asked.habit:
        span = None
    else:
        pick = _PICKS.get(which, "coming") if which else asked.pick
        span = choose(of_year, here, asked.today, pick, asked.tense)
    return TimeMeaning(span, needs if bare else FREE, bool(year), bare)


_NO_CODE = r"(?<![\w$€£#/.'+-])"


@_reads(
    rf"{_NO_CODE}(?P<year>{_YEAR})(?P<sep>[-/])(?P<m>\d\d?)(?P=sep)(?P<d>\d\d?)"
    r"(?:[t\s]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:z|[+-]\d\d:?\d\d)?)?(?![\w/-])"
)
def _iso(match: re.Match[str], asked: QuestionTime) -> TimeMeaning | None:
    month, day = int(match["m"]), int(match["d"])
    return _yearly(match, asked, each_year(month, day), FREE) if 1 <= month <= 12 and day else None


@_reads(rf"{_NO_CODE}(?P<a>\d\d?)/(?P<b>\d\d?)(?:/(?P<year>{_YEAR}|\d\d))?(?![\w/-]|[.,]\d)")
def _slashes(match: re.Match[str], asked: QuestionTime) -> TimeMeaning | None:
    """Read 12/25/2023 and 25/12/2023; 03/04/2023 is two days to two readers and so it is none."""
    low, high = sorted((int(match["a"]), int(match["b"])))
    if not 1 <= low <= 12 or not (high > 12 or (high == low and match["year"])) or match.group() == "24/7":
        return None
    # Nobody writes a habit in figures.
    needs = FREE if asked.told else _ON - {"for"}
    return _yearly(match, asked._replace(habit=False), each_year(low, high), needs)


_ABBREVIATIONS = [name for name in MONTHS if name not in MONTH_NAMES]
_NAMES_OF_PEOPLE = frozenset(words("calendar", "month_names_of_people"))
_VERBS = frozenset(words("calendar", "month_verbs"))
_MONTH_WORD = rf"(?:{'|'.join(MONTH_NAMES)}|(?:{'|'.join(_ABBREVIATIONS)})\b\.?)"
# Nobody leaves out the year of a day that is three quarters of a year off: the one on the other side is meant.
_TOLD_WITHOUT_YEAR = timedelta(days=274)
_NUMBER = r"(?:3[01]|[12]\d|0?[1-9])(?:st|nd|rd|th)?(?!\w)"
_TO_DAY = r"\s?(?:-|–|to|through|until|and)\s?(?:the )?"


@_reads(
    rf"{_EDGE}(?:{WEEKDAY},? )?{_PERHAPS_WHICH}"
    rf"(?:(?P<m1>{_MONTH_WORD}) (?:the )?(?P<d1>{_NUMBER})(?:{_TO_DAY}(?P<e1>{_NUMBER}))?{_NOT_COUNTED}"
    rf"|(?:the )?(?:(?P<d2>{_NUMBER})(?:{_TO_DAY}(?P<e2>{_NUMBER}))?(?P<of> of)?|(?P<word>{'|'.join(ORDINALS)}) of)"
    rf" (?P<m2>{_MONTH_WORD})){_OF_YEAR}(?:'s)?{_END}"
)
def _date(match: re.Match[str], asked: QuestionTime) -> TimeMeaning | None:
    name, number = match["m1"] or match["m2"], match["d1"] or match["d2"]
    first = int(re.sub(r"\D", "", number)) if number else ORDINALS[match["word"].lower()]
    final = int(re.sub(r"\D", "", match["e1"] or match["e2"] or str(first)))
    if final < first:
        return None
    # "3 may", "march 10" in small letters: a verb, unless a preposition or the year says otherwise.
    doubtful = name in _VERBS and number and not (match["of"] or (match["m1"] and not number.isdecimal()))
    of_year = each_year(MONTHS[plain(name).rstrip(".")], first, final - first + 1)
    if asked.told and (span := choose(of_year, asked.today.year, asked.today, asked.pick, asked.tense)):
        # "They moved my test to 23 March", told on the 1st: that is past of the move only.
        far = abs(span.start.date() - asked.today) > _TOLD_WITHOUT_YEAR
        asked = asked._replace(tense="open") if far else asked
    return _yearly(match, asked, of_year, _ON if doubtful else FREE)


_NOT_A_MONTH = phrase(rf"'s| (?:{any_of('calendar', 'after_no_month')}|\w+ed)\b| (?:on|for|of|against) (?-i:[A-Z])")


# An abbreviation without its capital is another word.
@_reads(
    rf"{_EDGE}{_PERHAPS_WHICH}"
    rf"(?P<month>{'|'.join(MONTH_NAMES)}|(?-i:{'|'.join(name.title() for name in _ABBREVIATIONS)})\b\.?)"
    rf"{_OF_YEAR}{_END}"
)
def _month(match: re.Match[str], asked: QuestionTime) -> TimeMeaning | None:
    written, month = match["month"], plain(match["month"]).rstrip(".")
    if written in _VERBS and (match["near"] or plain(match["which"]) == "this"):
        return None
    doubtful = month in _NAMES_OF_PEOPLE | _VERBS
    if doubtful and not match["year"] and _NOT_A_MONTH.match(match.string, match.end()):
        return None
    needs = _IN if (month in _NAMES_OF_PEOPLE and asked.tense != "ahead") or written in _VERBS else _IN_MONTH
    return _yearly(match, asked, each_year(MONTHS[month], unit="month"), needs, noun=month in _VERBS)


@_reads(
    rf"{_EDGE}{_PERHAPS_WHICH}(?P<season>{'|'.join(SEASONS)}){_OF_YEAR}(?:'s)?{_END}"
    rf"(?! {any_of('calendar', 'after_no_season')}\b)"
)
def _season(match: re.Match[str], asked: QuestionTime) -> TimeMeaning | None:
    season = match["season"].lower()
    # The winter of 2022 may have begun in 2021 or in 2022: even odds, so nothing is said.
    if season == "winter" and (match["year"] or match["near"]):
        return None
    # "In the fall" may be the one that broke an arm.
    needs = frozenset({"in"}) if season == "fall" else _IN_SEASON
    noun = season in {"fall", "spring"}
    return _yearly(match, asked, each_year(SEASONS[season], count=3, unit="month"), needs, noun=noun)


_HOLIDAY_WORD = "|".join(re.sub(r"s\b", "'?s'?", name) for name in sorted(HOLIDAYS, key=len, reverse=True))


@_reads(
    rf"{_EDGE}{_PERHAPS_WHICH}(?P<holiday>{_HOLIDAY_WORD.replace('st ', 'st[.]? ')}){_OF_YEAR}{_END}"
    rf"(?! {any_of('calendar', 'after_no_holiday')}\b)"
)
def _holiday(match: re.Match[str], asked: QuestionTime) -> TimeMeaning | None:
    name = re.sub(r"[.']", "", plain(match["holiday"]))
    # "Halloween: nobody came" is told of that day; who asks for "Halloween costumes" asks for no time.
    sure = asked.told or name.endswith(("day", "eve"))
    return _yearly(match, asked, HOLIDAYS[name], FREE if sure else _AT_HOLIDAY)


@_reads(rf"{_EDGE}{_PERHAPS_WHICH}(?:q(?P<q>[1-4])|the (?P<nth>first|second|third|fourth) quarter){_OF_YEAR}{_END}")
def _quarter(match: re.Match[str], asked: QuestionTime) -> TimeMeaning | None:
    number = int(match["q"]) if match["q"] else ORDINALS[match["nth"].lower()]
    return _yearly(match, asked, each_year(3 * number - 2, count=3, unit="month"), _IN_MONTH)


# ------------------------------------------------------------------------------------------ numbers with a year

_DECADES = words("calendar", "decades")


@_reads(rf"{_EDGE}(?P<named>(?:the )?year (?:of )?)?(?P<year>{_YEAR}){_NOT_COUNTED}(?!\w|[/.,:]\d|-\d\d?(?!\d)|'s)")
def _year_alone(match: re.Match[str], asked: QuestionTime) -> TimeMeaning | None:
    year = period(date(int(match["year"]), 1, 1), "year")
    return TimeMeaning(year, FREE if match["named"] or asked.told else _IN_YEAR, dated=True)


@_reads(
    r"(?<!\w)the (?:(?P<part>early|mid|late)[\s-])?'?"
    rf"(?:(?P<century>1[5-9]|20)?(?P<tens>\d0)'?s|(?P<word>{'|'.join(_DECADES)}))(?!\w)"
)
def _decade(match: re.Match[str], asked: QuestionTime) -> TimeMeaning | None:
    tens = 20 + 10 * _DECADES.index(match["word"].lower()) if match["word"] else int(match["tens"])
    century = match["century"]
    # "The 10s" are more often tens, "the 1900s" as often a hundred years as ten.
    if (tens < 20 and not century) or (tens == 0 and century and int(century) < 20):
        return None
    year = int(century or asked.today.year // 100) * 100 + tens
    if not century and year > asked.today.year:
        year -= 100
    decade = period(date(max(year, 1), 1, 1), "decade")
    return TimeMeaning(part_of(decade, match["part"].lower()) if match["part"] else decade, dated=True)


# ------------------------------------------------------------------------------------ days from the question's own

_DAY_STEPS = {
    "the day before yesterday": -2, "yesterday": -1, "today": 0, "tomorrow": 1, "the day after tomorrow": 2, "": 0,
    "the night before last": -2, "last night": -1, "tonight": 0,
}  # fmt: skip


@_reads(
    rf"{_EDGE}(?:(?P<name>the day before yesterday|the day after tomorrow|yesterday|today|tomorrow)"
    rf"(?: (?P<part>{DAY_PART}))?|(?P<night>tonight|last night|the night before last)|this (?P<this>{DAY_PART}))"
    rf"(?:'s)?{_END}"
)
def _day(match: re.Match[str], asked: QuestionTime) -> TimeMeaning | None:
    night = plain(match["night"])
    if night and _in_a_story(match, night.removesuffix(" night"), the=True):
        return None
    day = shift(asked.today, _DAY_STEPS[night or plain(match["name"])], "day")
    return TimeMeaning(period(day, "night" if night else plain(match["part"] or match["this"]) or "day"))


@_reads(
    rf"{_EDGE}(?:(?P<which>{_WHICH}) |(?P<first>last|this|next) week(?:'s)?,?(?: on)? )?"
    rf"(?P<day>{WEEKDAY}|(?-i:Mon|Tues?|Wed|Thurs?|Fri|Sat|Sun)\b\.?)"
    rf"(?:,? (?:of )?(?P<week>last|this|next) week)?(?: (?P<part>(?-i:{DAY_PART})))?(?P<own>'s)?{_END}"
    rf"(?![\s-](?:school|roast|papers?|league|service|mass|{DAY_PART}s?|the \d+\w\w|live|football)\b)"
)
def _weekday(match: re.Match[str], asked: QuestionTime) -> TimeMeaning | None:
    number = WEEKDAYS[match["day"].lower()[:3]]
    which, week, part = plain(match["which"]), plain(match["first"] or match["week"]), plain(match["part"])
    bare = not (which or week)
    if _in_a_story(match, which, the=which == "next"):
        return None

    def of_week(step: int) -> LocalSpan:
        return period(shift(asked.today, 7 * step + number - asked.today.weekday(), "day"), "day")

    if bare and asked.habit:
        span = None
    elif week or which == "next":
        span = of_week(_STEPS[week or which])
    else:
        # Asked on a Monday, "on Monday" is another one: this one is today.
        ahead = which.endswith("coming") or (bare and (asked.tense == "ahead" or asked.pick == "nearest"))
        pick: Pick = "this" if which == "this" else "next" if ahead else "last"
        # "Dinner is this Friday", told on a Sunday.
        tense: Tense = "ahead" if asked.told and asked.tense == "open" else asked.tense
        span = choose(of_week, 0, asked.today, pick, tense)
    if span and part:
        span = period(span.start.date(), part)
    return TimeMeaning(span, _ON if bare and not (part or match["own"] or asked.told) else FREE, bare=bare)


@_reads(
    rf"{_EDGE}(?:(?!friday the 13th)(?P<weekday>{WEEKDAY}),? )?the (?P<day>3[01]|[12]\d|[1-9])(?:st|nd|rd|th)"
    rf"(?: of (?P<which>this|last|next) month{_END}|(?=\s*(?:[?.,;!)]|$)| {any_of('calendar', 'after_day')}\b))"
)
def _day_of_month(match: re.Match[str], asked: QuestionTime) -> TimeMeaning | None:
    def of_month(step: int) -> LocalSpan | None:
        month = period(shift(asked.today.replace(day=1), step, "month"), "month")
        day = period(shift(month.start.date(), int(match["day"]) - 1, "day"), "day")
        return day if day.meets(month) else None

    which = plain(match["which"])
    span = of_month(_STEPS[which]) if which else choose(of_month, 0, asked.today, asked.pick, asked.tense)
    return TimeMeaning(span, FREE if match["weekday"] else _ON, bare=not which)


# -------------------------------------------------------------------------------------- weeks and longer


@_reads(
    rf"{_EDGE}(?:(?P<which>the previous|{_WHICH}) (?P<unit>week|weekend|month|quarter|year|decade)"
    r"|the (?P<back>week|weekend|month|quarter|year) before last|the (?P<own>week|weekend|month|quarter|year))"
    rf"(?:'s)?{_END}(?! of\b|-end| \d)"
)
def _calendar_unit(match: re.Match[str], asked: QuestionTime) -> TimeMeaning | None:
    unit, which = plain(match["unit"] or match["back"] or match["own"]), plain(match["which"])
    # "This past week" reaches up to now: see the rolling ones.
    if _in_a_story(match, which, the=which == "next") or (which == "this past" and unit != "weekend"):
        return None
    step = -2 if match["back"] else _weekend_step(which, asked) if unit == "weekend" else _STEPS.get(which, 0)
    needs = FREE if not match["own"] else _AT_WEEKEND if unit == "weekend" else _PART_ONLY
    return TimeMeaning(period(shift(asked.today, step, unit), unit), needs)


def _weekend_step(which: str, asked: QuestionTime) -> int:
    """Return how many weeks off the meant weekend lies; on a Saturday or Sunday "this weekend" is running."""
    running = asked.today.weekday() >= 5
    if which in {"this", ""}:
        gone_by = asked.tense == "past" if which else asked.tense != "ahead"
        return -1 if gone_by and not running else 0
    if which.endswith("coming"):
        return 1 if running else 0
    return _STEPS[which]


# More or less than that long ago is another time.
_BEYOND = phrase(r"\b(?:(?:more|less|longer|earlier|later) than|over|under|at least|at most) $")


@_reads(
    rf"{_EDGE}(?:(?P<about>about|around|roughly|approximately|almost|nearly|maybe) )?"
    rf"(?:(?P<amount>{AMOUNT})|(?P<half>half an?)) (?P<unit>hour|night|weekend|{UNIT})s?"
    rf" (?:(?P<ago>ago|back(?! (?:to|in|home|and|from)\b))|from (?:now|today))(?P<exact> today)?{_END}"
)
def _counted_off(match: re.Match[str], asked: QuestionTime) -> TimeMeaning | None:
    least, most, unit = (6, 6, "month") if match["half"] else measure(match["amount"], match["unit"])
    if (match["half"] and plain(match["unit"]) != "year") or _BEYOND.search(match.string[: match.start()]):
        return None
    if match["ago"]:
        least, most = -least, -most
    if unit == "hour":
        first, last = sorted((least, most))
        return TimeMeaning(LocalSpan(_minutes_on(asked, 60 * first - 30), _minutes_on(asked, 60 * last + 30)))
    if unit in {"night", "weekend"}:
        step = "day" if unit == "night" else "week"
        near, far = (period(shift(asked.today, count, step), unit) for count in (least, most))
        return TimeMeaning(near.to_hull(far))
    if match["exact"]:
        return TimeMeaning(period(shift(asked.today, least, unit), "day"))
    # "About ten days" is not ten days to the day; longer units are loose enough as they are.
    slack = max(1, abs(most) // 5) if match["about"] and unit == "day" else 0
    return TimeMeaning(window(asked.today, least, most, unit, slack))


@_reads(rf"{_EDGE}in (?P<amount>{AMOUNT}) (?P<unit>{UNIT})s?(?:'s?)?(?: time)?{_END}(?! of\b)")
def _hence(match: re.Match[str], asked: QuestionTime) -> TimeMeaning | None:
    """Read "in two weeks" where something is told: in a question, and of what was, it is how long it took."""
    told = asked.told and asked.tense != "past"
    return TimeMeaning(window(asked.today, *measure(match["amount"], match["unit"]))) if told else None


def _minutes_on(asked: QuestionTime, minutes: int) -> datetime:
    """Return the local time so many minutes from now, as they pass: clocks may be set forward or back meanwhile."""
    # Never nearer than two days to the ends of the calendar, where no zone can be left.
    first, last = midnight(shift(FIRST, 2, "day")), midnight(shift(LATEST, -2, "day"))
    now = min(max(asked.now, first), last).replace(tzinfo=asked.zone).astimezone(UTC)
    then = min(max(timedelta(minutes=minutes), first.replace(tzinfo=UTC) - now), last.replace(tzinfo=UTC) - now)
    return (now + then).astimezone(asked.zone).replace(tzinfo=None)


@_reads(
    rf"{_EDGE}(?P<the>(?:the|these|this) )?(?P<which>last|past|previous|next) (?:(?P<amount>{AMOUNT}) )?"
    rf"(?P<unit>hour|{UNIT})(?P<many>s)?{_END}(?! of\b)"
)
def _rolling(match: re.Match[str], asked: QuestionTime) -> TimeMeaning | None:
    which, counted = plain(match["which"]), match["amount"]
    _, most, unit = measure(counted or "a", match["unit"])
    # "The last day" and "the next week" are days and weeks of a story; "the past months" are nobody knows how many.
    if not counted and (not match["the"] or match["many"] or which not in {"last", "past"} or unit == "day"):
        return None
    needs, tomorrow = FREE if match["the"] else _IN_ROLLING, shift(asked.today, 1, "day")
    if unit == "hour":
        span = None if which == "next" else LocalSpan(_minutes_on(asked, -60 * most), midnight(tomorrow))
        return TimeMeaning(span, needs)
    if which == "next":
        return TimeMeaning(days(asked.today, shift(tomorrow, most, unit)), needs)
    return TimeMeaning(days(shift(asked.today, -most, unit), tomorrow), needs)
