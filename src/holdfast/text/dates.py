"""Question → the time range it names (C13, beyond the sources): rules for English, no model.

No date library is used: they return one moment, not the range that a phrase covers. Where readers disagree, nothing
is said: 03/04/2023, "recently", two times that exclude each other. Calendar arithmetic happens in the reference's
own zone, and hours are counted as they pass. A month or a weekday without more is the last one, or the coming one
when the question looks ahead.
"""

from __future__ import annotations

import functools
import re
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import NamedTuple

from holdfast.errors import InputError, quote_value
from holdfast.text.calendar import (
    DAY_PARTS,
    FIRST,
    LATEST,
    LocalSpan,
    days,
    midnight,
    next_such,
    nth_of,
    part_of,
    period,
    shift,
    stretch,
    window,
)
from holdfast.text.time_expressions import (
    AMOUNT,
    DAY_PART,
    FREE,
    HABIT,
    ORDINALS,
    READERS,
    UNIT,
    WEEKDAY,
    ExpressionReader,
    QuestionTime,
    TimeMeaning,
    find_tense,
    measure,
    phrase,
    plain,
)
from holdfast.text.words import any_of, words
from holdfast.values import dataclass

# A question is short; of a pasted document only the beginning is read.
_MOST_CHARACTERS = 2000
# Phones type the curly apostrophe. To a pattern the others are letters of ours, to a table they are not.
AS_TYPED = str.maketrans({"\u2019": "'", "\u017f": "s", "\u0130": "I", "\u0131": "i", "\u212a": "K"})
# No preposition with all its adverbs is longer.
_PREFIX_CHARACTERS = 60
# "The end of the first week of May".
_MOST_PARTS = 2


@dataclass(frozen=True, slots=True)
class TimeRange:
    """The moments from `start` up to and without `end`, in UTC: clocks that are set back repeat local times.

    An open end is the calendar's own.
    """

    start: datetime
    end: datetime

    def __post_init__(self) -> None:
        for moment in (self.start, self.end):
            _require_zone(moment)
        if not self.start < self.end:
            raise InputError(
                f"A time range must end after it starts, not {self.start} to {self.end}: swap or widen it."
            )

    def holds(self, moment: datetime) -> bool:
        """Return whether `moment` lies in the range."""
        return self.start <= _require_zone(moment) < self.end

    def share_in(self, other: TimeRange) -> float:
        """Return which share of this range lies in another one."""
        common = min(self.end, other.end) - max(self.start, other.start)
        return max(common / (self.end - self.start), 0.0)


@dataclass(frozen=True, slots=True)
class TimeMention:
    """A time named in a question: a range, or an event and how the meant time lies to it.

    `phrase` is the words as they stand there, `rest` the question without them: no topic in it means that the time
    is all that was asked for.
    """

    phrase: str
    rest: str
    reference: datetime
    range: TimeRange | None = None
    event: str | None = None
    relation: Relation | None = None

    def around(self, moment: datetime) -> TimeRange:
        """Return the range meant, now that the event is known to have happened at `moment`.

        Raises:
            InputError: the mention is not tied to an event, or `moment` has no time zone.
        """
        if self.relation is None:
            raise InputError(f"{quote_value(self.phrase)} is not tied to an event: use its range.")
        local = _require_zone(moment).astimezone(self.reference.tzinfo).replace(tzinfo=None)
        return to_range(self.relation.to_event(local, self.reference.date()), self.reference)


# One is born once, and asked for the month for ever.
_BORN = phrase(r"\bborn\b")


def time_mention(question: str, reference: datetime) -> TimeMention | None:
    """Return the most specific time that `question` names when asked at `reference`, or None.

    Raises:
        InputError: `reference` has no time zone.
    """
    text = question[:_MOST_CHARACTERS].translate(AS_TYPED)
    tense = find_tense(text)
    habit = _BORN.search(text) or (tense != "past" and HABIT.search(text))
    local, zone = _require_zone(reference).replace(tzinfo=None), reference.tzinfo or UTC
    asked = QuestionTime(local, tense, bool(habit), zone)
    if named := list(find_named(text, asked)):
        best = _most_specific(named) or _read_within(text, asked, named)
        if best is None:
            return None
        rest = question
        for one in reversed(named):
            _, rest = _cut_out(rest, one.start, one.end)
        return TimeMention(question[best.start : best.end], rest, reference, range=to_range(best.span, reference))
    if tied := _find_event(text):
        match, relation = tied
        event = question[slice(*match.span("event"))]
        return TimeMention(*_cut_out(question, *match.span()), reference, event=event, relation=relation)
    return None


def _require_zone(moment: datetime) -> datetime:
    if moment.utcoffset() is None:
        raise InputError(f"{moment} has no time zone: give an aware time, for instance with tzinfo=UTC.")
    return moment


def to_range(span: LocalSpan, reference: datetime) -> TimeRange:
    """Return a span in the zone of `reference` as moments."""
    start, end = (moment.replace(tzinfo=reference.tzinfo).astimezone(UTC) for moment in span)
    return TimeRange(start, end)


def _cut_out(question: str, start: int, end: int) -> tuple[str, str]:
    """Return a phrase of the question, and the question without it."""
    rest = f"{question[:start].rstrip()} {question[end:].lstrip()}".strip(" ,;:")
    return question[start:end], re.sub(r"\s+(?=[?.,;:!])", "", rest)


# ------------------------------------------------------------------ from a known time to the meant one

# What a preposition says about where the meant time lies.
_SIDES = {
    "before": "before", "prior to": "before", "after": "after", "following": "after", "since": "since",
    "until": "until", "till": "until", "through": "until", "by": "until", "as of": "until", "up to": "until",
    "around": "near",
}  # fmt: skip
# Nearness reaches a third of the length to either side, and at least this many days.
_NEAR_DAYS = 3
# What one attends or travels to seldom lasts longer than a week, and its known moment is somewhere inside.
_DURING_DAYS = 3


@dataclass(frozen=True, slots=True)
class Relation:
    """Where the meant time lies from a known one: "before June", "the week after the trip".

    Measured when there is a unit: that far off, or the `whole` way. It works on a span, so that the same words serve
    a date, whose span is known, and an event, whose span is known once somebody has looked it up.
    """

    side: str
    unit: str = ""
    least: int = 1
    most: int = 1
    whole: bool = False

    def to(self, known: LocalSpan, today: date) -> LocalSpan:
        """Return the meant span; what is open to the future ends with `today`, if it begins by then."""
        if self.unit:
            return self._measure_off(known)
        if self.side in {"after", "since"}:
            start = known.end if self.side == "after" else known.start
            tomorrow = midnight(shift(today, 1, "day"))
            return LocalSpan(start, tomorrow if start < tomorrow else midnight(LATEST))
        if self.side in {"before", "until"}:
            return LocalSpan(midnight(FIRST), known.start if self.side == "before" else known.end)
        return _widen(known, max(_NEAR_DAYS, (known.end - known.start).days // 3))

    def to_event(self, moment: datetime, today: date) -> LocalSpan:
        """Return the meant span for something that happened at `moment`."""
        day = period(moment.date(), "day")
        if self.side == "during":
            return _widen(day, _DURING_DAYS)
        if self.unit or self.side in {"since", "until"}:
            return self.to(day, today)
        return self.to(LocalSpan(moment, moment), today)

    def _measure_off(self, known: LocalSpan) -> LocalSpan:
        if self.side == "of":
            return _unit_of(known, self.unit) or known
        sign = 1 if self.side == "after" else -1
        first, last = known.start.date(), (known.end - timedelta.resolution).date()
        edge, after = last if sign > 0 else first, shift(last, 1, "day")
        if not self.whole:
            return window(edge, sign * self.least, sign * self.most, self.unit)
        # Of weekends and weekdays the nearest one that does not touch the known days.
        week_before = shift(first, -8 if self.unit == "weekend" else -7, "day")
        if found := next_such(after if sign > 0 else week_before, self.unit):
            return found
        if self.unit in DAY_PARTS:
            return period(shift(edge, sign, "day"), self.unit)
        return stretch(after, self.most, self.unit) if sign > 0 else days(shift(first, -self.most, self.unit), first)


def _widen(span: LocalSpan, reach: int) -> LocalSpan:
    return days(shift(span.start.date(), -reach, "day"), shift(span.end.date(), reach, "day"))


def _unit_of(span: LocalSpan, unit: str) -> LocalSpan | None:
    """Return the week, month, evening … that holds the span; none when the span does not fit into one."""
    first = span.start.date()
    fits = span.end == period(first, "day").end if unit in DAY_PARTS else span.end <= period(first, unit).end
    return period(first, unit) if fits or unit == "weekend" else None


_ONE = rf"(?:day|week|weekend|month|year|{DAY_PART})"
_MEASURED = (
    r"(?:(?:about|around|exactly|roughly) )?"
    rf"(?:(?P<whole>(?:in |during |over )?the (?:last )?)?(?P<amount>{AMOUNT}) (?P<unit>{UNIT})s?"
    rf"|(?:in |during |on |over )?(?:the |last |the last )(?P<one>{_ONE}|{WEEKDAY})(?: or so)?)"
    r" (?P<side>before|after|prior to|following)"
)
_UNIT_OF = rf"(?:in |during |on |over )?the (?P<of>{_ONE}) of"


def _read_distance(match: re.Match[str]) -> Relation:
    side = _SIDES[plain(match["side"])]
    if match["one"]:
        return Relation(side, match["one"].lower(), whole=True)
    least, most, unit = measure(match["amount"], match["unit"])
    return Relation(side, unit, least, most, whole=bool(match["whole"]))


# ------------------------------------------------------------ parts: what stands before an expression and narrows it

_NTH = {"1st": 1, "2nd": 2, "3rd": 3, "4th": 4, "last": -1} | ORDINALS
Narrowing = Callable[[re.Match[str], LocalSpan, QuestionTime], LocalSpan | None]


def _take_part(match: re.Match[str], span: LocalSpan, _: QuestionTime) -> LocalSpan:
    return part_of(span, match["part"].lower())


def _take_side_of_today(match: re.Match[str], span: LocalSpan, asked: QuestionTime) -> LocalSpan:
    today = period(asked.today, "day")
    if not span.meets(today):
        return span
    earlier = match["part"].lower() == "earlier"
    return LocalSpan(span.start, today.end) if earlier else LocalSpan(today.start, span.end)


def _take_nth(match: re.Match[str], span: LocalSpan, _: QuestionTime) -> LocalSpan | None:
    found = nth_of(span, match["unit"].lower(), _NTH[match["nth"].lower()])
    return found if found.meets(span) else None


def _take_edge(match: re.Match[str], span: LocalSpan, _: QuestionTime) -> LocalSpan:
    """Read "the first ten days of May"; uncounted, they are a third of it."""
    end = "early" if match["end"].lower() == "first" else "late"
    if not match["amount"]:
        return part_of(span, end)
    count, unit = measure(match["amount"], match["unit"])[1:]
    first, after = span.start.date(), span.end.date()
    return stretch(first, count, unit) if end == "early" else days(shift(after, -count, unit), after)


_PARTS: tuple[tuple[re.Pattern[str], Narrowing], ...] = tuple(
    (phrase(rf"(?<!\w)(?:the )?{pattern}(?:the )?$"), part)
    for pattern, part in (
        (r"(?P<part>early|mid|late)(?:-| (?:in |on )?)", _take_part),
        (r"(?:very )?(?P<part>start|beginning|middle|end) of ", _take_part),
        (r"(?P<part>earlier|later) (?:in |on )?", _take_side_of_today),
        (rf"(?P<nth>{'|'.join(_NTH)}) (?P<unit>day|week|weekend|month|{WEEKDAY}) (?:of|in) ", _take_nth),
        (r"(?P<part>first|second|last) half of ", _take_part),
        (rf"(?P<end>first|last) (?:(?P<third>third)|(?P<amount>{AMOUNT} )?(?P<unit>{UNIT})s) (?:of|in) ", _take_edge),
        (rf"(?P<of>{_ONE}) of ", lambda match, span, _: _unit_of(span, match["of"].lower())),
    )
)


# ------------------------------------------------------------------------------------------ named times


class TimePoint(NamedTuple):
    """One expression: where it stands, what it means, and what it would mean at another time."""

    start: int
    end: int
    meaning: TimeMeaning
    span_at: Callable[[QuestionTime], LocalSpan | None]


class NamedTime(NamedTuple):
    """A stretch of the text and the span it names."""

    start: int
    end: int
    span: LocalSpan
    dated: bool
    bare: bool


_PREFIX = phrase(
    r"(?<!\w)(?:(?:back|sometime|ever|just|right|towards?|near) )*(?:(?P<word>in|on|at|over|during|throughout|for"
    r"|from|within|between|by|since|until|till|through|before|after|prior to|as of|up to|around)(?: about)?"
    r"(?P<the> the)?|the|towards?|near) $"
)
_MEASURED_PREFIX = phrase(rf"(?<!\w){_MEASURED} (?:the )?$")
# "A week from Monday" is not Monday.
_FROM_LATER = phrase(rf"(?<!\w){AMOUNT} {UNIT}s? from $")
_LINK = phrase(
    r"\s*(?:(?P<chain>to|until|till|through|thru|-|–)|(?P<comma>,)|(?:, )?(?:and|or|&))\s*(?:(?:in|on|from|the) )?"
)
_ONWARDS = phrase(r" on(?:wards?)?(?=\s*(?:[?.,;!]|$))| onwards?\b")
# "Who stopped by yesterday?": what needs no preposition leaves these to the verb before.
_OF_VERB = frozenset({"by", "through", "around", "in", "at"})
_GONE_BY = phrase(r"(?:last|yesterday)\b|.* ago$")
# "How many days before May 7" asks for a number, not about the time before.
_ASKS_HOW_MUCH = phrase(r"\bhow (?:many \w+|much \w+|long|soon|far|much)(?: \w+)? $")
# "Looked after", "named after": the preposition belongs to the verb.
_VERB_AFTER = phrase(r"\b(?:look|take|ask|name|call|run|go)(?:s|d|ed|ing)? $|\b(?:took|ran|went) $")


def find_named(text: str, asked: QuestionTime) -> Iterator[NamedTime]:
    """Yield the times that a text names, in text order."""
    moments = deque(_find_moments(text, asked))
    while moments:
        run, links = [moments.popleft()], list[re.Match[str]]()
        while moments and (link := _find_link(text, run[-1], moments[0])):
            run.append(moments.popleft())
            links.append(link)
        if named := _resolve(text, run, links, asked):
            yield named


def _find_moments(text: str, asked: QuestionTime) -> list[TimePoint]:
    """Return what the readers find, in text order."""
    return _drop_overlapping(
        moment
        for pattern, reader in READERS
        for match in pattern.finditer(text)
        if (moment := _read_moment(match, reader, asked))
    )


def _drop_overlapping(found: Iterable[TimePoint]) -> list[TimePoint]:
    """Return moments in text order; of two that overlap the longer one stays."""
    kept: list[TimePoint] = []  # in text order, so that only the one before a place can overlap what is put there
    for moment in sorted(found, key=lambda moment: moment.start - moment.end):
        place = bisect_left(kept, moment.end, key=lambda other: other.start)
        if place == 0 or kept[place - 1].end <= moment.start:
            kept.insert(place, moment)
    return kept


def _read_moment(match: re.Match[str], reader: ExpressionReader, asked: QuestionTime) -> TimePoint | None:
    """Read a match with what stands before it and narrows it: "early in", "the second week of"."""
    meaning = reader(match, asked)
    if meaning is None:
        return None
    start, parts = match.start(), list[tuple[re.Match[str], Narrowing]]()
    for _ in range(_MOST_PARTS):
        left = match.string[max(0, start - _PREFIX_CHARACTERS) : start]
        if part := next(((found, narrow) for pattern, narrow in _PARTS if (found := pattern.search(left))), None):
            start -= len(left) - part[0].start()
            parts.append(part)

    def span_at(asked: QuestionTime) -> LocalSpan | None:
        read = reader(match, asked)
        span = read and read.span
        for found, narrow in parts:
            span = span and narrow(found, span, asked)
        return span

    if parts:
        meaning = meaning._replace(span=span_at(asked), needs=FREE)
    return TimePoint(start, match.end(), meaning, span_at)


def _find_link(text: str, first: TimePoint, second: TimePoint) -> re.Match[str] | None:
    link = _LINK.fullmatch(text, first.end, second.start)
    return link if link and (not link["comma"] or (first.meaning.bare and second.meaning.bare)) else None


def _resolve(
    text: str, run: Sequence[TimePoint], links: Sequence[re.Match[str]], asked: QuestionTime
) -> NamedTime | None:
    start, end = run[0].start, run[-1].end
    left = text[max(0, start - _PREFIX_CHARACTERS) : start]
    free = not run[0].meaning.needs and _GONE_BY.match(text, start, end)
    prefix, length = _find_preposition(left, free=bool(free)), _MEASURED_PREFIX.search(left)
    word = plain(prefix["word"]) if prefix else ""
    if not _is_time(run, f"{word} the" if prefix and prefix["the"] else word) or _FROM_LATER.search(left):
        return None
    span = _hull(run, asked, chain=word == "between" or any(link["chain"] for link in links))
    relation = (
        _read_distance(length) if length else Relation(_SIDES[word]) if word in _SIDES and not asked.told else None
    )
    if word == "from" and (onwards := _ONWARDS.match(text, end)):
        relation, end = Relation("since"), onwards.end()
    if opening := length or prefix:
        start -= len(left) - opening.start()
    if span and relation:
        span = None if _ASKS_HOW_MUCH.search(text[:start]) else relation.to(span, asked.today)
    dated = all(moment.meaning.dated for moment in run)
    bare = all(moment.meaning.bare for moment in run)
    return NamedTime(start, end, span, dated, bare) if span and span.meets(span) else None


def _find_preposition(left: str, *, free: bool) -> re.Match[str] | None:
    prefix = _PREFIX.search(left)
    word = plain(prefix["word"]) if prefix else ""
    if prefix and ((free and word in _OF_VERB) or (word == "after" and _VERB_AFTER.search(left[: prefix.start()]))):
        return None
    return prefix


def _is_time(run: Sequence[TimePoint], preposition: str) -> bool:
    """Return whether the run is a time: by itself, after its preposition, or as one end of a range."""
    needs = [moment.meaning.needs for moment in run]
    if len(run) > 1 and (preposition in {"from", "between"} or not all(needs)):
        return True
    return not needs[0] or preposition in needs[0]


def _hull(run: Sequence[TimePoint], asked: QuestionTime, *, chain: bool) -> LocalSpan | None:
    """Return the span that holds a run.

    In a chain ("from … to …") the end whose year is known fixes the other. In a list ("January and March") each may
    also stand for itself; the closer pair is meant.
    """
    spans = [moment.meaning.span for moment in run]
    first, last = spans[0], spans[-1]
    if len(run) == 1 or first is None or last is None:
        return first and last
    if run[0].meaning.bare:
        first = run[0].span_at(asked._replace(now=last.start, tense="past"))
    elif run[-1].meaning.bare:
        last = run[-1].span_at(asked._replace(now=first.start, tense="ahead"))
    ordered = first.to_hull(last) if first and last and first.start <= last.start else None
    if chain:
        return ordered
    apart = functools.reduce(LocalSpan.to_hull, filter(None, spans))
    return min(ordered or apart, apart, key=lambda span: span.end - span.start)


def _most_specific(named: Sequence[NamedTime]) -> NamedTime | None:
    """Return the shortest span if all others meet it, else the shortest dated one; else the times disagree.

    A time counted from the question cannot be trusted beside a date: "what she did last week, as told on May 3".
    """
    for pool in (named, [one for one in named if one.dated]):
        if pool:
            best = min(pool, key=lambda one: one.span.end - one.span.start)
            if all(best.span.meets(one.span) for one in pool):
                return best
    return None


def _read_within(text: str, asked: QuestionTime, named: Sequence[NamedTime]) -> NamedTime | None:
    """Read what comes round again as of the longest time named: "two weeks ago, on Monday"."""
    longest = max(named, key=lambda one: one.span.end - one.span.start)
    inside = asked._replace(now=longest.span.start - timedelta(days=1), tense="open", told=True)
    again = [one for one in find_named(text, inside) if one.bare and one.start != longest.start]
    return _most_specific([longest, *again]) if len(again) == len(named) - 1 else None


# ---------------------------------------------------------------------------- times that hang on an event

_BETWEEN = phrase(r"\b(?:between|and) $")
_DET = r"(?:the|my|our|your|his|her|their|this|that|(?-i:[A-Z])\w*'s)"
_NOUN = rf"(?!{any_of('calendar', 'after_noun')}\b)[\w'-]+"
_THING = (
    rf"{_DET} {_NOUN}(?: {_NOUN}){{0,3}}(?: (?:in|to|at|of|with|from|for|on) "
    rf"(?:{_DET} {_NOUN}(?: {_NOUN})?|(?-i:[A-Z])[\w'-]*(?: (?-i:[A-Z])[\w'-]*){{0,3}})){{0,2}}"
)
_HAPPENING = (
    rf"(?:i|we|you|he|she|they|{_DET} {_NOUN}|(?-i:[A-Z])[a-z]+) (?:(?:first|finally|last|just|\w+ly) )?"
    rf"(?:{any_of('calendar', 'happened')}|\w+ed)(?: (?!{any_of('calendar', 'after_clause')}\b)[\w'-]+){{0,8}}"
)
_OWN_DAY = r"(?:my|our|your|his|her|their|(?-i:[A-Z])\w*'s)(?: \w+)? (?:birthday|anniversary)\b"
_YOUTH = r"\w+ (?:was|were) (?:younger|young|little|a kid|a child)\b"
# A measured distance says most, an open side least.
_EVENTS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], Relation]], ...] = tuple(
    (phrase(rf"(?<!\w){pattern}"), relation)
    for pattern, relation in (
        (
            rf"(?:{_MEASURED}|{_UNIT_OF}) (?P<event>{_HAPPENING}|{_THING})",
            lambda match: Relation("of", match["of"].lower()) if match["of"] else _read_distance(match),
        ),
        (rf"on (?P<event>{_OWN_DAY})", lambda _: Relation("of", "day")),
        (rf"during (?P<event>{_THING})", lambda _: Relation("during")),
        (rf"(?:when|while) (?!{_YOUTH})(?P<event>{_HAPPENING})", lambda _: Relation("during")),
        (
            rf"(?P<side>before|after|prior to|since|until|till) (?P<event>{_HAPPENING}|{_THING})",
            lambda match: Relation(_SIDES[plain(match["side"])]),
        ),
    )
)
_NO_EVENT = frozenset(words("calendar", "no_event"))
_TAIL = phrase(r" (?:in|to|at|of|with|from|for|on) ")


def _find_event(text: str) -> tuple[re.Match[str], Relation] | None:
    """Return the event that the time of a question hangs on: "the week before the trip", "since I moved".

    An event is a noun with its article or owner, or a clause in the past. Stretches of a life, the talk itself and
    what is asked for by its length ("how long after the trip …") are none.
    """
    for pattern, relation_of in _EVENTS:
        for match in pattern.finditer(text):
            head = _TAIL.split(match["event"])[0].split()[-1].lower()
            left, relation = text[: match.start()], relation_of(match)
            of_verb = relation.side == "after" and _VERB_AFTER.search(left)
            if not (head in _NO_EVENT or of_verb or _ASKS_HOW_MUCH.search(left) or _BETWEEN.search(left)):
                return match, relation
    return None
