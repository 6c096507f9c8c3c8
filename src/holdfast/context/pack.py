"""What of a ranked list goes into the room that a plan leaves (C16).

Rank decides who gets room, groups decide where it stands: what concerns the same thing stands together, in the order
of time. Groups stand in the order of their best, and those of turns that were read share out their places, the newest
first. A small memory goes in whole.

`prefix` stops at the first item that does not fit, `skip` goes on behind it, `excerpt` shows its best sentences.
A counter may be anything that turns a text into a whole number, so that no sum of parts says what a text costs.
Costs of single items only tell where to look: an item is in when the whole text with it was counted and fits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import datetime
from operator import attrgetter
from typing import NamedTuple

from holdfast.context.plan import Plan, longest_prefix, share_of
from holdfast.errors import InputError, quote_value
from holdfast.text.quotes import (
    ALL_ELSE,
    BEST_FIRST,
    CLOSEST_FIRST,
    GAP,
    NEWEST_FIRST,
    NONE_ANSWERS,
    NOTHING_CLOSE,
    Cursor,
    Quote,
    quote,
    recalled_heading,
    section_text,
)
from holdfast.text.sentences import EXCERPT
from holdfast.text.terms import Tokenizer, terms
from holdfast.types import AnswerState, Unit
from holdfast.types.contexts import Context, ContextSection, Item, LeftOutBy, OmittedItem, RecalledUnit

SentenceScore = Callable[[str], float]

# How far an item's own count may lie above its growth of the text: estimators round up, and some price the digits
# of a frame by the letter before them. An item farther above the room is not tried.
_LOCAL_ERROR = 8
# What answers a question stands in few sentences; with more, an excerpt saves little.
EXCERPT_SENTENCES = 3


def fill(
    plan: Plan,
    projection: Sequence[RecalledUnit],
    sentence_score: SentenceScore | None = None,
    state: AnswerState = "found",
) -> Context:
    """Put what was recalled into the room that the plan leaves, in its order.

    A degraded plan takes nothing more, and a unit that is in the context already is not shown twice. The heading says
    which order that is, and where nothing answers.
    `sentence_score` rates sentences for the packing `excerpt`; `term_overlap` makes one from a question.

    Raises:
        InputError: the counter or the scorer misbehaves, or `excerpt` has no scorer.
    """
    order = _order(projection)
    how = f"{order or CLOSEST_FIRST}; {NONE_ANSWERS}" if state == "nothing" else order or BEST_FIRST
    return _Packer(plan, sentence_score, how).fill(projection)


def fill_whole(
    plan: Plan,
    projection: Sequence[RecalledUnit],
    memory: Sequence[Unit],
    sentence_score: SentenceScore | None = None,
    state: AnswerState = "found",
) -> Context | None:
    """Put all of the memory into the room that the plan leaves, in the order of time behind what was recalled.

    None when it passes `fill`, its share of the budget, or does not fit beside the first of the projection.
    """
    whole, found = {unit.id for unit in memory}, {recalled.unit.id for recalled in projection}
    rest = [RecalledUnit(unit, None, group=_REST) for unit in memory if unit.id not in found]
    order = _order(projection) or BEST_FIRST
    close = order if not rest else f"{order}, {ALL_ELSE}"
    packer = _Packer(plan, sentence_score, close if found and state != "nothing" else NOTHING_CLOSE)
    alone, _ = _render([_PackedItem(Quote.whole(unit, plan.zone), None, (0, _moment(unit))) for unit in memory])
    if packer.count(section_text(packer.heading, alone)) > share_of(plan.budget, plan.settings.fill):
        return None
    context = packer.fill([*projection, *rest], whole)
    return context if whole.issubset(item.id for item in context.items if item.kind == "whole") else None


# The group of what the question did not find; no unit has an id like it.
_REST = "\0rest"


_Moment = tuple[datetime, str, int, str]


def _moment(unit: Unit) -> _Moment:
    """Return its place in time; where it is of no session, its position only says when it was written."""
    return (unit.event_time, unit.session or "", unit.position if unit.session else 0, unit.id)


class _PackedItem(NamedTuple):
    quoted: Quote
    score: float | None
    place: tuple[int, _Moment]  # of its group among the groups, and in it
    late: bool = False


class _Packer:
    """The projection while it is filled: `before` is the text in front of it, `used` the count of both so far."""

    def __init__(self, plan: Plan, score: SentenceScore | None, how: str = BEST_FIRST) -> None:
        self.plan, self.before, self.used = plan, plan.text, plan.tokens
        self.zone, self.heading = plan.zone, recalled_heading(plan.zone, how)
        self.budget, self.count, self.settings, self.score = plan.budget, plan.counter, plan.settings, score
        self.taken: list[_PackedItem] = []
        self.cursor = Cursor(numbered=True)
        self.left_out: list[OmittedItem] = []

    def fill(self, projection: Sequence[RecalledUnit], whole: Collection[str] = ()) -> Context:
        """Put in what fits; the units `whole` go before all others but the first."""
        plan, known, fresh = self.plan, set(self.plan.shown_ids), list[_PackedItem]()
        groups = _place_groups(projection)
        for rank, recalled in enumerate(projection):
            group = groups[recalled.group] if recalled.group else rank
            quoted = Quote.whole(recalled.unit, self.zone, recalled.replaced)
            entry = _PackedItem(quoted, recalled.score, (group, _moment(recalled.unit)), recalled.late)
            if recalled.unit.id in known:
                self.leave(entry, "shown")
            elif plan.degraded:
                self.leave(entry, "degraded")
            else:
                fresh.append(entry)
            known.add(recalled.unit.id)
        section = self._pack(fresh, whole)
        left_out = (*plan.left_out, *self.left_out)
        return Context((*plan.sections, section), self.used, plan.budget, plan.degraded, plan.warnings, left_out)

    def _pack(self, ranked: Sequence[_PackedItem], whole: Collection[str]) -> ContextSection:
        packing, free = self.settings.packing, self.used
        if packing == "excerpt" and self.score is None:
            raise InputError("packing 'excerpt' needs a scorer of sentences; give sentence_score, or choose 'skip'")
        ranked = ranked if packing == "prefix" and not whole else self._light_first(ranked, whole)
        taken = self._take_prefix(ranked)
        if packing == "prefix":
            self._leave_rest(ranked[taken:])
        else:
            for entry in ranked[taken:]:
                self._squeeze(entry)
        pieces, _ = _render(self.taken)
        items = (
            Item(
                one.quoted.unit.id, one.quoted.kind, one.quoted.text, self.count(piece), one.score,
                one.quoted.replaced is not None,
            )
            for one, piece in zip(_placed(self.taken), pieces, strict=True)
        )  # fmt: skip
        return ContextSection("projection", section_text(self.heading, pieces), self.used - free, tuple(items))

    def leave(self, entry: _PackedItem, cut: LeftOutBy, ahead: int = 0) -> int:
        """Leave one item out, with so many tokens of others still ahead of it; return what it needs."""
        # The first item brings the section's heading along.
        heading = "" if self.taken or ahead else self.heading
        needed = self.count(heading + quote(entry.quoted, self.cursor)[0])
        # A counter for which parts cost less than they add may say that nothing was missing; something was.
        least = 1 if cut in ("budget", "prefix") else 0
        short = max(least, ahead + needed - (self.budget - self.used))
        self.left_out.append(OmittedItem(entry.quoted.unit.id, needed, short, cut))
        return needed

    def _leave_rest(self, rest: Sequence[_PackedItem]) -> None:
        ahead = 0
        for index, entry in enumerate(rest):
            ahead += self.leave(entry, "prefix" if index else "budget", ahead)

    def _light_first(self, ranked: Sequence[_PackedItem], whole: Collection[str]) -> list[_PackedItem]:
        """Let long items wait for the others: one long answer must not cost ten short ones. The first never waits.

        What a search would cut waits for all others, and these for the whole memory.
        What is long does not depend on the room, so that a larger budget takes the same items in the same order.
        """
        most = self.settings.item_tokens

        def waits(entry: _PackedItem) -> tuple[bool, bool, bool]:
            is_long = most > 0 and self.count(quote(entry.quoted, self.cursor)[0]) > most
            return entry.quoted.unit.id not in whole, entry.late, is_long

        return [*ranked[:1], *sorted(ranked[1:], key=waits)]

    def _take_prefix(self, ranked: Sequence[_PackedItem]) -> int:
        """Take the longest prefix that fits whole; every packing starts with it."""
        taken, self.used = longest_prefix(
            len(ranked),
            lambda index: self.count(ranked[index].quoted.line),
            lambda size: self._total(ranked[:size])[0],
            self.used,
            self.budget,
        )
        self.taken = [*ranked[:taken]]
        _, self.cursor = _render(self.taken)
        return taken

    def _squeeze(self, entry: _PackedItem) -> None:
        """Take one item whole, or as an excerpt, or leave it out."""
        if self._take(entry):
            return
        for words in self._excerpts(entry):
            quoted = Quote.part(entry.quoted.unit, words, self.zone, entry.quoted.replaced)
            if self._take(entry._replace(quoted=quoted)):
                return
        self.leave(entry, "budget")

    def _excerpts(self, entry: _PackedItem) -> list[str]:
        if self.settings.packing != "excerpt" or self.score is None:
            return []
        frame, _ = quote(Quote.part(entry.quoted.unit, "", self.zone, entry.quoted.replaced), self.cursor)
        if not self._is_near(self.count(frame)):
            return []
        return excerpts(entry.quoted.text, self.score, EXCERPT_SENTENCES)

    def _take(self, entry: _PackedItem) -> bool:
        if not self._is_near(self.count(entry.quoted.line)):
            return False
        total, cursor = self._total([*self.taken, entry])
        if total > self.budget:
            return False
        self.used, self.cursor = total, cursor
        self.taken.append(entry)
        return True

    def _total(self, entries: Sequence[_PackedItem]) -> tuple[int, Cursor]:
        """Count the text with some items, and return the cursor behind the last of them."""
        pieces, cursor = _render(entries)
        return self.count(self.before + section_text(self.heading, pieces)), cursor

    def _is_near(self, cost: int) -> bool:
        return cost <= self.budget - self.used + _LOCAL_ERROR


def _place_groups(projection: Sequence[RecalledUnit]) -> dict[str, int]:
    """Return where each group stands: at the place of its best; those with turns that were read share their places.

    Of these the newest comes first: two that tell different things stand as what holds, and what held before.
    """
    places: dict[str, int] = {}
    last: dict[str, _Moment] = {}
    for rank, recalled in enumerate(projection):
        places.setdefault(recalled.group, rank)
        if recalled.read and recalled.group:
            last[recalled.group] = max(last.get(recalled.group, _moment(recalled.unit)), _moment(recalled.unit))
    newest = sorted(last, key=lambda group: last[group], reverse=True)
    return places | dict(zip(newest, sorted(places[group] for group in newest), strict=True))


def _order(projection: Sequence[RecalledUnit]) -> str:
    """Return what to call the order where reading moved a group from its rank."""
    places = [*_place_groups(projection).values()]  # by rank
    return NEWEST_FIRST if places != sorted(places) else ""


def _placed(entries: Sequence[_PackedItem]) -> list[_PackedItem]:
    """Return items where they stand in the text."""
    return sorted(entries, key=attrgetter("place"))


def _render(entries: Sequence[_PackedItem]) -> tuple[list[str], Cursor]:
    """Return the lines of each item where it stands in the text, and the cursor behind the last."""
    pieces, cursor = [], Cursor(numbered=True)
    for entry in _placed(entries):
        piece, cursor = quote(entry.quoted, cursor)
        pieces.append(piece)
    return pieces, cursor


# ------------------------------------------------------------------------------------------------ excerpts


def term_overlap(query_terms: Iterable[str], tokenise: Tokenizer = terms) -> SentenceScore:
    """Return a scorer: how many distinct terms of the question a sentence holds (C2 terms on both sides)."""
    wanted = frozenset(query_terms)
    return lambda sentence: float(len(wanted.intersection(tokenise(sentence))))


def excerpts(text: str, score: SentenceScore, most: int) -> list[str]:
    """Return excerpts of `text`, the longest first: its `most` best sentences, then one less each time.

    Sentences stand in their order, with a mark where something is left out between them. One that scores nothing
    is not worth showing; equal ones are taken from the front.
    """
    spans = EXCERPT.spans(text)
    scores = [_check_score(score(text[start:end])) for start, end in spans]
    best = sorted((index for index, value in enumerate(scores) if value > 0.0), key=lambda i: (-scores[i], i))[:most]
    found = [_join(text, [spans[index] for index in sorted(best[:size])]) for size in range(len(best), 0, -1)]
    return [excerpt for excerpt in found if excerpt != text.strip()]


def _check_score(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or math.isnan(value):
        raise InputError(f"the sentence scorer gave {quote_value(value)}; it must give a number")
    return float(value)


def _join(text: str, spans: list[tuple[int, int]]) -> str:
    """Return the spans of `text`; what lies between two neighbours is white space, and stays as it is."""
    joined, behind = "", None
    for start, end in spans:
        between = "" if behind is None else text[behind:start]
        joined += (GAP if between.strip() else between) + text[start:end]
        behind = end
    return joined
