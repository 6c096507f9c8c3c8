"""Times with a name of their own: dates, months, seasons, holidays, quarters, years, decades.

What every year has is read by the year beside it, else by "last", "this" or "next", else by the tense of the
question: the most recent one that has begun, or the coming one when the question looks ahead. A question for a habit
("what do I usually do in summer?") means none of them.
"""

from __future__ import annotations

import re
from datetime import date

from holdfast.language.dates.calendar import (
    HOLIDAYS,
    OfYear,
    Pick,
    Span,
    choose,
    date_of,
    months_of,
    period,
    season_of,
    third,
)
from holdfast.language.dates.words import (
    EDGE,
    END,
    FREE,
    IN,
    MONTH_NAMES,
    MONTHS,
    ON,
    ORDINALS,
    POSSESSIVES,
    WEEKDAY,
    Asked,
    Moment,
    Rule,
    phrase,
    word_before,
    words,
)

_PICKS: dict[str, Pick] = {
    "last": "last",
    "this past": "last",
    "this": "this",
    "next": "next",
    "this coming": "coming",
    "the coming": "coming",
}
_NEAR_YEARS = {"last": -1, "this": 0, "next": 1}
_YEAR = r"(?:1[5-9]|20|21)\d\d"
_WHICH = r"(?:(?P<which>this past|this coming|the coming|last|this|next) )?"
# A number before one of these counts something: it is no day and no year.
_COUNTED = (
    r"(?!\s?[%$€£]| (?:people|persons|times|words|pages|steps|miles|k?m|met(?:er|re)s|feet|kg|dollars|euros|pounds"
    r"|yen|bucks|calories|points|items|books|hours|minutes|days|weeks|months|years|others|more|million|thousand)\b)"
)
_OF_YEAR = rf"(?:(?:,\s?| )(?:of |in )?(?:(?P<year>{_YEAR}){_COUNTED}|(?P<near>last|this|next) year))?"

_IN_MONTH = IN | {"by", "for", "from"}
_IN_YEAR = IN - {"around"} | {"by", "from"}
_IN_SEASON = frozenset(f"{word}{the}" for word in _IN_MONTH | {"over"} for the in ("", " the"))
_AT_HOLIDAY = ON | IN | {"at", "over"}

# Months that are first names ("by April", "for June" may be a person), and those that are verbs.
_NAMES = frozenset({"april", "may", "june", "august", "jan"})
_VERBS = frozenset({"may", "march", "mar"})


def _yearly(match: re.Match[str], of_year: OfYear, needs: frozenset[str], *, noun: bool = False) -> Moment | None:
    """Return the moment of something every year has; a `noun` is also a thing: "the last march", "the next fall"."""
    year, near, which = match["year"], match["near"], words(match["which"])
    if which in {"last", "next"} and word_before(match) in POSSESSIVES | ({"the"} if noun else FREE):
        return None

    def read(asked: Asked) -> Span | None:
        here = asked.today.year
        if year or near:
            return of_year(int(year) if year else here + _NEAR_YEARS[near.lower()])
        if not which and asked.habit:
            return None
        pick = _PICKS[which] if which else "coming" if asked.tense == "ahead" else "recent"
        return choose(of_year, here, asked.today, pick, asked.tense)

    bare = not (year or near or which)
    return Moment(match.start(), match.end(), read, needs if bare else FREE, bool(year), bare)


# ------------------------------------------------------------------------------- a day and its month

_MONTH_WORD = rf"(?:{'|'.join(MONTH_NAMES)}|(?:jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec)\b\.?)"
_NUMBER = r"(?:3[01]|[12]\d|0?[1-9])(?:st|nd|rd|th)?(?!\w)"
_TO_DAY = r"\s?(?:-|–|to|through|until|and)\s?(?:the )?"
_DATE = phrase(
    rf"{EDGE}(?:{WEEKDAY},? )?{_WHICH}"
    rf"(?:(?P<m1>{_MONTH_WORD}) (?:the )?(?P<d1>{_NUMBER})(?:{_TO_DAY}(?P<e1>{_NUMBER}))?{_COUNTED}"
    rf"|(?:the )?(?:(?P<d2>{_NUMBER})(?:{_TO_DAY}(?P<e2>{_NUMBER}))?(?P<of> of)?|(?P<word>{'|'.join(ORDINALS)}) of)"
    rf" (?P<m2>{_MONTH_WORD})){_OF_YEAR}(?:'s)?{END}"
)


def _date(match: re.Match[str]) -> Moment | None:
    name, number = match["m1"] or match["m2"], match["d1"] or match["d2"]
    first = int(re.sub(r"\D", "", number)) if number else ORDINALS[match["word"].lower()]
    final = int(re.sub(r"\D", "", match["e1"] or match["e2"] or str(first)))
    if final < first:
        return None
    # "3 may", "march 10" in small letters: a verb, unless a preposition or the year says otherwise.
    doubtful = name in _VERBS and number and not (match["of"] or (match["m1"] and not number.isdecimal()))
    of_year = date_of(MONTHS[words(name).rstrip(".")], first, final - first + 1)
    return _yearly(match, of_year, ON if doubtful else FREE)


# ------------------------------------------------------------- months, seasons, holidays, quarters

_MONTH = phrase(
    rf"{EDGE}{_WHICH}(?P<month>{'|'.join(MONTH_NAMES)}|(?-i:Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec)\b\.?)"
    rf"{_OF_YEAR}{END}"
)
# Behind a month these make it a person, a verb or a demonstration.
_NOT_A_MONTH = phrase(
    r"'s| (?:be|have|not|need|well|also|said|says|told|left|came|went|got|is|has|had|\w+ed)\b"
    r"| (?:on|for|of|against) (?-i:[A-Z])"
)


def _month(match: re.Match[str]) -> Moment | None:
    written, month = match["month"], words(match["month"]).rstrip(".")
    if written in _VERBS and (match["near"] or words(match["which"]) == "this"):
        return None
    if month in _NAMES | _VERBS and not match["year"] and _NOT_A_MONTH.match(match.string, match.end()):
        return None
    needs = IN if month in _NAMES or written in _VERBS else _IN_MONTH
    return _yearly(match, months_of(MONTHS[month]), needs, noun=month in _VERBS)


_SEASON = phrase(
    rf"{EDGE}{_WHICH}(?P<season>spring|summer|autumn|fall|winter){_OF_YEAR}(?:'s)?{END}"
    r"(?! (?:camps?|jobs?|school|house|internship|program(?:me)?|olympics|games|sale|rolls?|onions?|cleaning|solstice"
    r"|semester|term|training|sports|coat|clothes|wedding|from|off|into|through|down|apart)\b)"
)


def _season(match: re.Match[str]) -> Moment | None:
    season = match["season"].lower()
    # The winter of 2022 may have begun in 2021 or in 2022: even odds, so nothing is said.
    if season == "winter" and (match["year"] or match["near"]):
        return None
    # "In the fall" may be the one that broke an arm.
    needs = frozenset({"in"}) if season == "fall" else _IN_SEASON
    return _yearly(match, season_of(season), needs, noun=season in {"fall", "spring"})


_HOLIDAY_WORD = "|".join(re.sub(r"s\b", "'?s'?", name) for name in sorted(HOLIDAYS, key=len, reverse=True))
_HOLIDAY = phrase(
    rf"{EDGE}{_WHICH}(?P<holiday>{_HOLIDAY_WORD.replace('st ', 'st[.]? ')}){_OF_YEAR}{END}"
    r"(?! (?:trees?|cards?|songs?|movies?|films?|carols?|music|markets?|sweaters?|jumpers?|lights|decorations?"
    r"|presents?|gifts?|lists?|shopping|part(?:y|ies)|cookies|costumes?|candy|eggs?|bunny|resolutions?|deals?|sales?"
    r"|island|dinner|lunch|breakfast|break|holidays?|vacation)\b)"
)


def _holiday(match: re.Match[str]) -> Moment | None:
    name = re.sub(r"[.']", "", words(match["holiday"]))
    return _yearly(match, HOLIDAYS[name], FREE if name.endswith(("day", "eve")) else _AT_HOLIDAY)


_QUARTER = phrase(rf"{EDGE}{_WHICH}(?:q(?P<q>[1-4])|the (?P<nth>first|second|third|fourth) quarter){_OF_YEAR}{END}")


def _quarter(match: re.Match[str]) -> Moment | None:
    number = int(match["q"]) if match["q"] else ORDINALS[match["nth"].lower()]
    return _yearly(match, months_of(3 * number - 2, 3), _IN_MONTH)


# -------------------------------------------------------------------------------- numbers with a year

_NO_CODE = r"(?<![\w$€£#/.'+-])"
_ISO = phrase(
    rf"{_NO_CODE}(?P<y>{_YEAR})(?P<sep>[-/])(?P<m>\d\d?)(?P=sep)(?P<d>\d\d?)"
    r"(?:[t\s]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:z|[+-]\d\d:?\d\d)?)?(?![\w/-])"
)
_SLASHES = phrase(rf"{_NO_CODE}(?P<a>\d\d?)/(?P<b>\d\d?)(?:/(?P<y>{_YEAR}|\d\d))?(?![\w/-]|[.,]\d)")
_YEAR_ALONE = phrase(
    rf"{EDGE}(?P<named>(?:the )?year (?:of )?)?(?P<year>{_YEAR}){_COUNTED}(?!\w|[/.,:]\d|-\d\d?(?!\d)|'s)"
)
_DECADES = "twenties thirties forties fifties sixties seventies eighties nineties".split()
_DECADE = phrase(
    r"(?<!\w)the (?:(?P<part>early|mid|late)[\s-])?'?"
    rf"(?:(?P<century>1[5-9]|20)?(?P<tens>\d0)'?s|(?P<word>{'|'.join(_DECADES)}))(?!\w)"
)


def _iso(match: re.Match[str]) -> Moment | None:
    year, month, day = int(match["y"]), int(match["m"]), int(match["d"])
    if not 1 <= month <= 12 or day < 1:
        return None
    return Moment(match.start(), match.end(), lambda _: date_of(month, day)(year), dated=True)


def _slashes(match: re.Match[str]) -> Moment | None:
    """Read 12/25/2023 and 25/12/2023; 03/04/2023 is two days to two readers and so it is none."""
    low, high = sorted((int(match["a"]), int(match["b"])))
    if not 1 <= low <= 12 or not (high > 12 or (high == low and match["y"])) or match.group() == "24/7":
        return None
    of_year = date_of(low, high)
    if match["y"]:
        year = int(match["y"]) + (2000 if len(match["y"]) == 2 else 0)
        return Moment(match.start(), match.end(), lambda _: of_year(year), dated=True)

    def read(asked: Asked) -> Span | None:
        return choose(
            of_year, asked.today.year, asked.today, "coming" if asked.tense == "ahead" else "recent", "open"
        )

    return Moment(match.start(), match.end(), read, ON - {"for"}, bare=True)


def _year_alone(match: re.Match[str]) -> Moment | None:
    year = period(date(int(match["year"]), 1, 1), "year")
    return Moment(match.start(), match.end(), lambda _: year, FREE if match["named"] else _IN_YEAR, dated=True)


def _decade(match: re.Match[str]) -> Moment | None:
    tens = 20 + 10 * _DECADES.index(match["word"].lower()) if match["word"] else int(match["tens"])
    century = match["century"]
    # "The 10s" are more often tens, "the 1900s" as often a hundred years as ten.
    if (tens < 20 and not century) or (tens == 0 and century and int(century) < 20):
        return None

    def read(asked: Asked) -> Span | None:
        year = int(century or asked.today.year // 100) * 100 + tens
        if not century and year > asked.today.year:
            year -= 100
        decade = period(date(max(year, 1), 1, 1), "decade")
        return third(decade, match["part"].lower()) if match["part"] else decade

    return Moment(match.start(), match.end(), read, dated=True)


NAMED_TIMES: tuple[Rule, ...] = (
    (_ISO, _iso),
    (_SLASHES, _slashes),
    (_DATE, _date),
    (_MONTH, _month),
    (_SEASON, _season),
    (_HOLIDAY, _holiday),
    (_QUARTER, _quarter),
    (_YEAR_ALONE, _year_alone),
    (_DECADE, _decade),
)
