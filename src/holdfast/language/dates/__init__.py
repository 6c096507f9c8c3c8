"""Question → the time range it names (C13, beyond the seeds): rules for English, no model.

No date library is used: they return one moment, not the range that a phrase covers. Where readers disagree, nothing
is said: 03/04/2023, "recently", two times that exclude each other. Calendar arithmetic happens in the reference's
own zone; a month or a weekday without more is the last one, or the coming one when the question looks ahead.
"""

from __future__ import annotations

import dataclasses
import functools
import re
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from holdfast.errors import InputError, shown
from holdfast.language.dates.calendar import Span, Tense
from holdfast.language.dates.events import ASKS_HOW_MUCH, VERB_AFTER, tied_to_event
from holdfast.language.dates.named import NAMED_TIMES
from holdfast.language.dates.relations import MEASURED, PARTS, SIDES, Part, Relation, measured
from holdfast.language.dates.relative import RELATIVE_TIMES
from holdfast.language.dates.words import AMOUNT, FREE, UNIT, Asked, Moment, phrase, words

# A question is short; of a pasted document only the beginning is read.
_MOST_CHARACTERS = 2000
# Phones type the curly apostrophe. To a pattern the others are letters of ours, to a table they are not.
_PLAIN = str.maketrans({"\u2019": "'", "\u017f": "s", "\u0130": "I", "\u0131": "i", "\u212a": "K"})
# No preposition with all its adverbs is longer.
_PREFIX_CHARACTERS = 60


@dataclass(frozen=True, slots=True)
class TimeRange:
    """The moments from `start` up to and without `end`; both aware. An open end is the calendar's own."""

    start: datetime
    end: datetime

    def __post_init__(self) -> None:
        for moment in (self.start, self.end):
            _aware(moment)
        if not self.start < self.end:
            raise InputError(
                f"A time range must end after it starts, not {self.start} to {self.end}: swap or widen it."
            )

    def holds(self, moment: datetime) -> bool:
        """Return whether `moment` lies in the range."""
        return self.start <= _aware(moment) < self.end


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
            raise InputError(f"{shown(self.phrase)} is not tied to an event: use its range.")
        local = _aware(moment).astimezone(self.reference.tzinfo).replace(tzinfo=None)
        return _range(self.relation.to_event(local, self.reference.date()), self.reference)


def time_mention(question: str, reference: datetime) -> TimeMention | None:
    """Return the most specific time that `question` names when asked at `reference`, or None.

    Raises:
        InputError: `reference` has no time zone.
    """
    text = question[:_MOST_CHARACTERS].translate(_PLAIN)
    tense = _tense(text)
    habit = _BORN.search(text) or (tense != "past" and _HABIT.search(text))
    asked = Asked(_aware(reference).replace(tzinfo=None), tense, bool(habit))
    if named := list(_named(text, asked)):
        best = _most_specific(named)
        if best is None:
            return None
        rest = _without(question, best.start, best.end)
        return TimeMention(question[best.start : best.end], rest, reference, range=_range(best.span, reference))
    if tied := tied_to_event(text):
        event, relation = question[tied.event_start : tied.end], tied.relation
        rest = _without(question, tied.start, tied.end)
        return TimeMention(question[tied.start : tied.end], rest, reference, event=event, relation=relation)
    return None


def _aware(moment: datetime) -> datetime:
    if moment.utcoffset() is None:
        raise InputError(f"{moment} has no time zone: give an aware time, for instance with tzinfo=UTC.")
    return moment


def _range(span: Span, reference: datetime) -> TimeRange:
    return TimeRange(span.start.replace(tzinfo=reference.tzinfo), span.end.replace(tzinfo=reference.tzinfo))


def _without(question: str, start: int, end: int) -> str:
    rest = f"{question[:start].rstrip()} {question[end:].lstrip()}".strip(" ,;:")
    return re.sub(r"\s+(?=[?.,;:!])", "", rest)


# ----------------------------------------------------------------------------------------------- tense

_PAST = phrase(r"\b(?:did|didn't|was|wasn't|were|weren't|had)\b")
_AHEAD = phrase(
    r"\b(?:will|won't|shall|gonna|going to|upcoming|coming up|plans? (?:for|to|on)|planned for|planning"
    r"|should (?:i|we)|(?:am i|are we|are you|i'm|we're) (?!asking|talking|thinking|wondering|trying)(?:\w+ )?\w+ing"
    r"|do (?:i|we|you) have|due|scheduled|looking forward|(?:when|what time) (?:is|are)"
    r"|(?:is|are) (?:the|my|our|there) (?:\w+ ){1,3}(?:on|at))\b|'ll\b"
)
_HABIT = phrase(
    r"\b(?:usually|always|typically|normally|generally|often|every|each|traditionally|traditions?|annual(?:ly)?|yearly"
    r"|tend to|birthdays?|anniversar(?:y|ies))\b|\bdo(?:es)? .{0,80}\b(?:enjoy|love|like|prefer|celebrate)\b"
)
# One is born once, and asked for the month for ever.
_BORN = phrase(r"\bborn\b")


def _tense(text: str) -> Tense:
    if _PAST.search(text):
        return "past"
    return "ahead" if _AHEAD.search(text) else "open"


# ------------------------------------------------------------------------------------------ named times


class _Named(NamedTuple):
    """A stretch of the text and the span it names."""

    start: int
    end: int
    span: Span
    dated: bool


_PREFIX = phrase(
    r"(?<!\w)(?:(?:back|sometime|ever|just|right|towards?|near) )*(?:(?P<word>in|on|at|over|during|throughout|for"
    r"|from|within|between|by|since|until|till|through|before|after|prior to|as of|up to|around)(?: about)?"
    r"(?P<the> the)?|the|towards?|near) $"
)
_MEASURED = phrase(rf"(?<!\w){MEASURED} (?:the )?$")
# "A week from Monday" is not Monday.
_FROM_LATER = phrase(rf"(?<!\w){AMOUNT} {UNIT}s? from $")
_LINK = phrase(
    r"\s*(?:(?P<chain>to|until|till|through|thru|-|–)|(?P<comma>,)|(?:, )?(?:and|or|&))\s*(?:(?:in|on|from|the) )?"
)
_ONWARDS = phrase(r" on(?:wards?)?(?=\s*(?:[?.,;!]|$))| onwards?\b")
# "Who stopped by yesterday?": what needs no preposition leaves these to the verb before.
_OF_VERB = frozenset({"by", "through", "around", "in", "at"})
_GONE_BY = phrase(r"(?:last|yesterday)\b|.* ago$")


def _named(text: str, asked: Asked) -> Iterator[_Named]:
    moments = deque(_moments(text))
    while moments:
        run, links = [moments.popleft()], list[re.Match[str]]()
        while moments and (link := _linked(text, run[-1], moments[0])):
            run.append(moments.popleft())
            links.append(link)
        if named := _resolved(text, run, links, asked):
            yield named


def _moments(text: str) -> list[Moment]:
    """Return what the rules find, in text order."""
    found = [
        _with_parts(text, moment)
        for pattern, build in (*NAMED_TIMES, *RELATIVE_TIMES)
        for match in pattern.finditer(text)
        if (moment := build(match))
    ]
    return _apart(found)


def _apart(found: Iterable[Moment]) -> list[Moment]:
    """Return moments in text order; of two that overlap the longer one stays."""
    kept: list[Moment] = []  # in text order, so that only the one before a place can overlap what is put there
    for moment in sorted(found, key=lambda moment: moment.start - moment.end):
        place = bisect_left(kept, moment.end, key=lambda other: other.start)
        if place == 0 or kept[place - 1].end <= moment.start:
            kept.insert(place, moment)
    return kept


def _with_parts(text: str, moment: Moment) -> Moment:
    """Take in what stands before a moment and narrows it: "early in", "the second week of"."""
    for _ in range(2):
        left = text[max(0, moment.start - _PREFIX_CHARACTERS) : moment.start]
        for pattern, part in PARTS:
            if match := pattern.search(left):
                start = moment.start - len(left) + match.start()
                moment = dataclasses.replace(moment, start=start, read=_narrowed(moment, part, match), needs=FREE)
                break
    return moment


def _narrowed(moment: Moment, part: Part, match: re.Match[str]) -> Callable[[Asked], Span | None]:
    def read(asked: Asked) -> Span | None:
        span = moment.read(asked)
        return span and part(match, span, asked)

    return read


def _linked(text: str, first: Moment, second: Moment) -> re.Match[str] | None:
    link = _LINK.fullmatch(text, first.end, second.start)
    return link if link and (not link["comma"] or (first.bare and second.bare)) else None


def _resolved(text: str, run: Sequence[Moment], links: Sequence[re.Match[str]], asked: Asked) -> _Named | None:
    start, end = run[0].start, run[-1].end
    left = text[max(0, start - _PREFIX_CHARACTERS) : start]
    free = not run[0].needs and _GONE_BY.match(text, start, end)
    prefix, length = _preposition(left, free=bool(free)), _MEASURED.search(left)
    word = words(prefix["word"]) if prefix else ""
    if not _is_time(run, f"{word} the" if prefix and prefix["the"] else word) or _FROM_LATER.search(left):
        return None
    span = _hull(run, asked, chain=word == "between" or any(link["chain"] for link in links))
    relation = measured(length) if length else Relation(SIDES[word]) if word in SIDES else None
    if word == "from" and (onwards := _ONWARDS.match(text, end)):
        relation, end = Relation("since"), onwards.end()
    if opening := length or prefix:
        start -= len(left) - opening.start()
    if span and relation:
        span = None if ASKS_HOW_MUCH.search(text[:start]) else relation.to(span, asked.today)
    return _Named(start, end, span, all(moment.dated for moment in run)) if span and span.start < span.end else None


def _preposition(left: str, *, free: bool) -> re.Match[str] | None:
    prefix = _PREFIX.search(left)
    word = words(prefix["word"]) if prefix else ""
    if prefix and ((free and word in _OF_VERB) or (word == "after" and VERB_AFTER.search(left[: prefix.start()]))):
        return None
    return prefix


def _is_time(run: Sequence[Moment], preposition: str) -> bool:
    """Return whether the run is a time: by itself, after its preposition, or as one end of a range."""
    if len(run) > 1 and (preposition in {"from", "between"} or not all(moment.needs for moment in run)):
        return True
    return not run[0].needs or preposition in run[0].needs


def _hull(run: Sequence[Moment], asked: Asked, *, chain: bool) -> Span | None:
    """Return the span that holds a run.

    In a chain ("from … to …") the end whose year is known fixes the other. In a list ("January and March") each may
    also stand for itself; the closer pair is meant.
    """
    spans = [moment.read(asked) for moment in run]
    first, last = spans[0], spans[-1]
    if len(run) == 1 or first is None or last is None:
        return first and last
    if run[0].bare:
        first = run[0].read(asked.at(last.start, "open"))
    elif run[-1].bare:
        last = run[-1].read(asked.at(first.start, "ahead"))
    ordered = first.to_hull(last) if first and last and first.start <= last.start else None
    if chain:
        return ordered
    apart = functools.reduce(Span.to_hull, filter(None, spans))
    return min(ordered or apart, apart, key=lambda span: span.end - span.start)


def _most_specific(named: Sequence[_Named]) -> _Named | None:
    """Return the shortest span if all others meet it, else the shortest dated one; else the times disagree.

    A time counted from the question cannot be trusted beside a date: "what she did last week, as told on May 3".
    """
    for pool in (named, [one for one in named if one.dated]):
        if pool:
            best = min(pool, key=lambda one: one.span.end - one.span.start)
            if all(best.span.meets(one.span) for one in pool):
                return best
    return None
