"""Words about time (C13): how much a text says about when, how temporal a question is, which events it names.

A(d) = min(distinct anchors / 3, 1). The eight pattern groups are the reference's; here the longest reading of a
stretch of text wins and is counted once, so that an ISO date is one anchor and not a date and a year.
ξ(q) = min(Σ s_i·1[pattern_i(q)] / 1.5, 1); every group of patterns counts once.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from datetime import MINYEAR, UTC, date, datetime, timedelta, tzinfo

from holdfast.text.calendar import LATEST, MONTH_NAMES, Tense
from holdfast.text.dates import AS_TYPED, TimeRange, find_named, to_range
from holdfast.text.sentences import PROSE
from holdfast.text.terms import STOP_WORDS
from holdfast.text.time_expressions import AHEAD, QuestionTime
from holdfast.text.words import any_of, entries, regex, words
from holdfast.types import Indicator

# ------------------------------------------------------------------------------------------------ anchors

# Three anchors say as much about time as a unit can: the reference's normaliser.
_MOST_ANCHORS = 3

_MONTH = rf"(?:{'|'.join(f'{name[:3]}(?:{name[3:]})?' for name in words('calendar', 'months'))}|sept)"
_WEEKDAY = any_of("calendar", "weekdays")
_DAY = r"(?:0?[1-9]|[12]\d|3[01])(?:st|nd|rd|th)?"
_YEAR = r"(?:19|20)\d\d"

# Earlier alternatives win at the same place, so the longer readings come first.
_ANCHOR = regex(
    rf"""
    (?<![\w./])(?:
        \d{{4}}-\d\d-\d\d(?:[t\ ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:z|[+-]\d\d:?\d\d)?)?   # 2026-03-29T09:30Z
      | (?:0?[1-9]|[12]\d|3[01])/(?:0?[1-9]|[12]\d|3[01])/(?:\d{{4}}|\d\d)              # 3/29/26
      | (?:0?[1-9]|1[0-2])/(?:0?[1-9]|[12]\d|3[01])                        # 3/29
      | {_MONTH}\.?\s+{_DAY}(?:,?\s+{_YEAR})?                              # March 29th, 2026
      | {_DAY}\s+(?:of\s+)?{_MONTH}\.?(?:,?\s+{_YEAR})?                    # 29 March 2026
      | (?:last|next)\s+(?:week|month|year|night|weekend|{_WEEKDAY})       # last night
      | {_WEEKDAY}s?
      | today | yesterday | tomorrow | tonight
      | mid-(?:{_MONTH}|week|month|year|{_YEAR})                           # mid-June
      | (?:[01]?\d|2[0-3]):[0-5]\d(?:\s?[ap]\.?m\b\.?)?                    # 9:30 pm
      | {_YEAR}
      | \d{{10}} | \d{{13}}                                                # epoch seconds or milliseconds
    )(?!\w|[./]\d)
    """,
    re.IGNORECASE | re.VERBOSE,
)


# What the reference does not count: "two days ago", "in three weeks", "3pm", "noon". Each ends like an anchor.
_COUNT = r"(?:an?|\d{1,3}|few|couple\s+of|several|" + any_of("calendar", "numbers") + ")"
_SPAN = rf"{_COUNT}[\s-]+{any_of('temporal', 'units')}s?"
_RELATIVE = regex(
    rf"(?<![\w.:])(?:{_SPAN}\s+(?:ago|earlier|later|before|from\s+now)|in\s+{_SPAN}"
    rf"|(?:0?[1-9]|1[0-2])\s?[ap]\.?m\b\.?|{any_of('temporal', 'relative')})(?!\w)",
    re.IGNORECASE,
)


def anchors(text: str, *, wide: bool = False) -> frozenset[str]:
    """Return the distinct temporal anchors of `text`, lower-cased, white space folded.

    `wide` adds relative days and hours of the clock to the reference's (C13).
    """
    found = [match.group() for match in _ANCHOR.finditer(text)]
    found += _RELATIVE.findall(_ANCHOR.sub("|", text)) if wide else []
    return frozenset(" ".join(one.lower().split()) for one in found)


def anchor_density(text: str, *, wide: bool = False) -> float:
    """Return A(d) ∈ [0, 1]."""
    return min(len(anchors(text, wide=wide)) / _MOST_ANCHORS, 1.0)


# Every value that A can have, the richest first.
DENSITIES = tuple(count / _MOST_ANCHORS for count in range(_MOST_ANCHORS, -1, -1))


# -------------------------------------------------------------------------------------------- years that are told

# A year that nobody has ended yet: "since 2003", "2003-present".
OPEN_END = 9999
_TOLD_YEAR = r"(?:1\d{3}|20\d\d)"
_TOLD_DAY = rf"(?:(?:\d{{1,2}}\s+)?{_MONTH}\.?\s+(?:\d{{1,2}}\s*,\s*)?)?"
# A year that is no part of a number or a price, the decade it names, or the end of a range that it begins.
_TOLD = regex(
    rf"({_TOLD_YEAR})(?<![\w.,/$€£]\d{{4}})(?!\d|[.,]\d)(?:(?P<decade>s)\b"
    rf"|\s*(?:[-–—]|(?:to|until|till|through)\b|(?P<and>and)\b)\s*"
    rf"(?:(?P<open>present|now|today|\))|{_TOLD_DAY}(?P<end>{_TOLD_YEAR}|(?<=[-–—])\d\d)\b(?!-)))?",
    re.IGNORECASE,
)
_TOLD_BEFORE = regex(rf"\b(?:(since)|(between))\s+{_TOLD_DAY}$", re.IGNORECASE)
# "Between the 15th of September " and no more stands before a year.
_TOLD_PREFIX = 32


def mentioned_years(text: str) -> tuple[tuple[int, int], ...]:
    """Return the years that a text tells of, each as its first and its last: "1931-35", "since 2003", "the 1990s"."""
    found: list[tuple[int, int]] = []
    for told in _TOLD.finditer(text):
        first, end = int(told[1]), told["end"]
        before = _TOLD_BEFORE.search(text, max(0, told.start() - _TOLD_PREFIX), told.start())
        last = int(told[1][: -len(end)] + end) if end else first  # "35" ends the century of its beginning
        if end and told["and"] and not (before and before[2]):
            found += [(first, first), (last, last)]
        elif end and last >= first:
            found.append((first, last))
        elif told["open"] or (before and before[1]):
            found.append((first, OPEN_END))
        else:
            found.append((first, first + 9 if told["decade"] else first))
    return tuple(found)


# -------------------------------------------------------------------------------------------- times that are told

# Of a long text the beginning is read.
_MOST_TOLD = 2000
# Of one word, as "Valentine's" or "Valentines": the others are days, eves and years.
_FEASTS = "|".join(re.sub("s$", "'?s", name) for name in entries("calendar", "holidays") if " " not in name)
# Most sentences name no time, and have none of these. In small letters it is twice as fast.
_HINT = regex(
    rf"\b(?:{_MONTH}|{_WEEKDAY}|mon|tues?|wed|thu(?:rs?)?|fri|sat|sun|{any_of('calendar', 'seasons')}|{_YEAR}"
    rf"|{any_of('calendar', 'day_parts')}|\d\d?/\d\d?|\d\d?(?:st|nd|rd|th)|yesterday|today|tomorrow|tonight|ago"
    rf"|{_FEASTS}"
    rf"|(?:{any_of('temporal', 'units')}|fortnight|quarter)s?)\b"
)
_TOLD_AHEAD = regex(rf"\b{any_of('temporal', 'ahead')}\b", re.IGNORECASE)
_TOLD_PAST = regex(
    rf"\b(?:{any_of('calendar', 'past')}|{any_of('calendar', 'happened')}|{any_of('temporal', 'happened')}"
    rf"|(?<!\bget )(?<!\bgetting )(?<!\bbe )(?!{any_of('temporal', 'ahead')}\b)\w{{2,}}ed)\b",
    re.IGNORECASE,
)


def told_times(text: str, said: datetime) -> tuple[TimeRange, ...]:
    """Return the times that a text tells of, as they are meant at `said`: "on 31 May", "yesterday", "next week".

    Where a year, a month or a week is left out, the nearest is meant, on the side of the verb before it: "we met on
    Friday, and I'll go there again on Monday".
    """
    text = text[:_MOST_TOLD].translate(AS_TYPED)
    if not _HINT.search(text.lower()):
        return ()
    local, zone = said.replace(tzinfo=None), said.tzinfo or UTC
    found: list[TimeRange] = []
    for sentence in (text[start:end] for start, end in PROSE.spans(text)):
        if _HINT.search(sentence.lower()):
            verbs = _find_verbs(sentence)
            for tense in dict.fromkeys(verbs.values() or ("open",)):
                asked = QuestionTime(local, tense, zone=zone, told=True)
                named = find_named(sentence, asked)
                found += [to_range(one.span, said) for one in named if _tense_at(verbs, one.start) == tense]
    return tuple(found)


def _find_verbs(sentence: str) -> dict[int, Tense]:
    """Return where a sentence speaks of what was and of what will be."""
    tenses: tuple[tuple[Tense, re.Pattern[str]], ...] = (
        ("past", _TOLD_PAST), ("ahead", AHEAD), ("ahead", _TOLD_AHEAD),
    )  # fmt: skip
    return {verb.start(): tense for tense, pattern in tenses for verb in pattern.finditer(sentence)}


def _tense_at(verbs: Mapping[int, Tense], place: int) -> Tense:
    """Return the tense of the last verb up to a place, else of the first one behind it."""
    before = [verb for verb in verbs if verb <= place]
    return verbs[max(before) if before else min(verbs)] if verbs else "open"


# Of more days only the months are looked for, and of more months nothing.
_MOST_DAYS, _MOST_MONTHS = 14, 3


def date_words(time: TimeRange, zone: tzinfo) -> str:
    """Return words by which texts name a time: "may 31 31st 2026-05-31"."""
    first, last = _days_of(time, zone)
    days = [first + timedelta(days=step) for step in range(min((last - first).days + 1, 31 * _MOST_MONTHS))]
    months = dict.fromkeys(MONTH_NAMES[day.month - 1] for day in days)
    if days[-1] < last or len(months) > _MOST_MONTHS:
        return ""
    figures = (f"{day.day} {_ordinal(day.day)} {day}" for day in days) if len(days) <= _MOST_DAYS else ()
    return " ".join((*months, *(month[:3] for month in months), *figures))


def name_time(time: TimeRange, zone: tzinfo) -> str:
    """Return a time in words: "on 31 May 2026", "between 22 and 31 May 2026", "before 1 June 2026"."""
    first, last = _days_of(time, zone)
    if first.year == MINYEAR:
        return f"before {name_day(last + timedelta(days=1))}"
    if last.year >= LATEST.year - 1:
        return f"since {name_day(first)}"
    if first == last:
        return f"on {name_day(first)}"
    begin = str(first.day) if (first.year, first.month) == (last.year, last.month) else name_day(first)
    return f"between {begin} and {name_day(last)}"


def name_day(day: date) -> str:
    """Return a day as "31 May 2026"."""
    return f"{day.day} {MONTH_NAMES[day.month - 1].title()} {day.year}"


def _days_of(time: TimeRange, zone: tzinfo) -> tuple[date, date]:
    return time.start.astimezone(zone).date(), (time.end - timedelta.resolution).astimezone(zone).date()


def _ordinal(number: int) -> str:
    return f"{number}{'th' if 10 < number < 14 else _ENDINGS.get(number % 10, 'th')}"


_ENDINGS = {1: "st", 2: "nd", 3: "rd"}


# ------------------------------------------------------------------------------------------------ indicator

# Two strong groups say as much as a question can: the reference's normaliser.
_SATURATION = 1.5
# A question is short; of a pasted document only the beginning is read.
_MOST_CHARACTERS = 2000

_PARTS = {
    "number": rf"(?:\d+|{'|'.join(words('calendar', 'numbers')[1:12])})",
    "unit": any_of("temporal", "units"),
    "period": rf"(?:{any_of('temporal', 'periods')}|{any_of('calendar', 'seasons')}|{_WEEKDAY})",
    "after_no_last": any_of("temporal", "after_no_last"),
}


def _pattern(text: str) -> re.Pattern[str]:
    for name, part in _PARTS.items():
        text = text.replace(f"{{{name}}}", part)
    return regex(text, re.IGNORECASE)


_SHIPPED = tuple(
    (name, float(group["weight"]), _pattern(group["pattern"]))
    for name, group in entries("temporal", "shipped").items()
)
_ADDED_WEIGHT = 0.7
_ADDED = tuple((name, _pattern(text)) for name, text in entries("temporal", "added").items())
_NAMED_MONTH = _pattern(rf"\b(?:in|of|since|by|until|during|from|early|late)\s+{any_of('calendar', 'months')}\b")


def temporal_indicator(question: str, *, wide: bool) -> Indicator:
    """Return ξ of `question`; `wide` adds the contract's groups to the reference's."""
    text = question[:_MOST_CHARACTERS]
    found = [(name, weight) for name, weight, pattern in _SHIPPED if pattern.search(text)]
    if wide:
        found += [(name, _ADDED_WEIGHT) for name, pattern in _ADDED if pattern.search(text)]
        found += [("dates", _ADDED_WEIGHT)] if _names_a_date(text) else []
    total = 0.0
    for _, weight in found:
        total = total + weight
    return Indicator(min(total / _SATURATION, 1.0), tuple(name for name, _ in found))


def _names_a_date(text: str) -> bool:
    """Return whether a date is named; "last week" and its like belong to other groups."""
    dated = any(not anchor.startswith(("last ", "next ")) for anchor in anchors(text))
    return dated or _NAMED_MONTH.search(text) is not None


# ------------------------------------------------------------------------------------------------ event slots

# C13: more slots would cost more comparisons and dilute each one's share.
_MOST_SLOTS = 4
# A longer clause gives its beginning and its end.
_SHORT_CLAUSE, _EDGE = 3, 4
_SHORTEST_TERM = 3
# Longer quotations are sentences, not names.
_LONGEST_QUOTATION = 80

_EMPTY_WORDS = frozenset(words("temporal", "empty"))
_NO_EVENT = _EMPTY_WORDS.union(words("temporal", "measures"))
_PARTS_OF_TIME = r"after|before|between|or|and|then"
_STOPS = r"[?.!,;\n？。！，；、]"
_SEPARATOR = regex(rf"\b(?:{_PARTS_OF_TIME})\b|{_STOPS}", re.IGNORECASE)
_PARTING = regex(rf"\b(?:{_PARTS_OF_TIME}|{any_of('temporal', 'parting')})\b|{_STOPS}", re.IGNORECASE)
# A phrase that tells of an event has no more words that say something; of a longer one its beginning counts.
_LONGEST_PHRASE = 8
_WORD = regex(r"\w+")
_QUOTED = regex(
    rf'"([^"]{{1,{_LONGEST_QUOTATION}}})"|“([^”]{{1,{_LONGEST_QUOTATION}}})”|«([^»]{{1,{_LONGEST_QUOTATION}}})»'
    rf"|「([^」]{{1,{_LONGEST_QUOTATION}}})」|(?<!\w)['‘]([^'’]{{1,{_LONGEST_QUOTATION}}})['’](?!\w)"
)
_PUNCTUATION = regex(r"[^\w\s'’&-]+")
_JOINING = frozenset(words("temporal", "joining"))
# Phones type the curly apostrophe. "I'm" and "I've" are as empty as "I".
_ENDING = regex(r"['’](?:s|m|ve|d|ll|re)?$", re.IGNORECASE)


def event_slots(question: str, *, wide: bool = False) -> tuple[str, ...]:
    """Return E(q), at most four spans: quotations, the content words of each clause, and names.

    A name is a slot of its own only when no other slot holds all of its words. `wide` takes the whole phrases before
    and after the words that speak of time, or ask, and leaves out what only measures it.
    """
    text = unicodedata.normalize("NFC", question[:_MOST_CHARACTERS])
    quotations = [" ".join(next(filter(None, match.groups())).split()) for match in _QUOTED.finditer(text)]
    slots = [quotation for quotation in quotations if len(quotation) > 1 and _WORD.search(quotation)]
    for clause in (_PARTING if wide else _SEPARATOR).split(_QUOTED.sub(" ", text)):
        slots += _phrase_slot(_content(clause, _NO_EVENT)) if wide else _clause_slots(_content(clause))
    for name in _names(text):
        if not any(set(_content(name)) <= set(_content(slot)) for slot in slots):
            slots.append(name)
    return tuple(dict.fromkeys(slots))[:_MOST_SLOTS]


def _phrase_slot(content: list[str]) -> list[str]:
    return [" ".join(content[:_LONGEST_PHRASE])] if content else []


def _content(text: str, empty: frozenset[str] = _EMPTY_WORDS) -> list[str]:
    """Return the words that say something, in lower case; outside ASCII a word may be short."""
    found = [word.lower() for word in _WORD.findall(text)]
    return [w for w in found if (len(w) >= _SHORTEST_TERM or not w.isascii()) and w not in empty]


def _clause_slots(content: list[str]) -> list[str]:
    if len(content) <= _SHORT_CLAUSE:
        return [" ".join(content)] if content else []
    return [" ".join(content[:_EDGE]), " ".join(content[-_EDGE:])]


def _names(text: str) -> list[str]:
    """Return the runs of capitalised words that say something."""
    found = []
    for phrase in _PUNCTUATION.split(text):
        run: list[str] = []
        for word in (*phrase.split(), ""):
            if word[:1].isupper() or (run and word in _JOINING):
                run.append(word)
            elif run:
                found.append(_trim(run))
                run = []
    return [name for name in found if _content(name)]


def _trim(run: list[str]) -> str:
    """Return the run without the empty words at its edges, which began a sentence or joined nothing."""
    telling = [place for place, word in enumerate(run) if not _is_empty(word)]
    return _ENDING.sub("", " ".join(run[telling[0] : telling[-1] + 1])) if telling else ""


def _is_empty(word: str) -> bool:
    bare = _ENDING.sub("", word).lower()
    return bare in _EMPTY_WORDS or bare in STOP_WORDS or bare in _JOINING
