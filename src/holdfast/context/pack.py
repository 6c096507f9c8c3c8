"""What of a ranked list goes into the room that a plan leaves (C16).

`prefix` stops at the first item that does not fit, `skip` goes on behind it, `excerpt` shows its best sentences.
A counter may be anything that turns a text into a whole number, so that no sum of parts says what a text costs.
Costs of single items only tell where to look: an item is in when the whole text with it was counted and fits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from holdfast.context.plan import Plan, longest_prefix
from holdfast.errors import InputError, quote_value
from holdfast.text.quotes import GAP, Cursor, Quote, quote, recalled_heading, section_text
from holdfast.text.sentences import EXCERPT
from holdfast.text.terms import Tokenizer, terms
from holdfast.types.contexts import Context, ContextSection, Item, LeftOutBy, OmittedItem, RecalledUnit

SentenceScore = Callable[[str], float]

# How far an item's own count may lie above its growth of the text: estimators round up, and some price the digits
# of a frame by the letter before them. An item farther above the room is not tried.
_LOCAL_ERROR = 8


def fill(plan: Plan, projection: Sequence[RecalledUnit], sentence_score: SentenceScore | None = None) -> Context:
    """Put what was recalled into the room that the plan leaves, in its order.

    A degraded plan takes nothing more, and a unit that is in the context already is not shown twice.
    `sentence_score` rates sentences for the packing `excerpt`; `term_overlap` makes one from a question.

    Raises:
        InputError: the counter or the scorer misbehaves, or `excerpt` has no scorer.
    """
    packer = _Packer(plan, sentence_score)
    known, fresh = set(plan.shown_ids), []
    for recalled in projection:
        entry = _PackedItem(Quote.whole(recalled.unit, plan.zone, recalled.replaced), recalled.score)
        if recalled.unit.id in known:
            packer.leave(entry, "shown")
        elif plan.degraded:
            packer.leave(entry, "degraded")
        else:
            fresh.append(entry)
        known.add(recalled.unit.id)
    section = packer.pack(fresh)
    left_out = (*plan.left_out, *packer.left_out)
    return Context((*plan.sections, section), packer.used, plan.budget, plan.degraded, plan.warnings, left_out)


class _PackedItem(NamedTuple):
    quoted: Quote
    score: float


class _Packer:
    """The projection while it is filled: `before` is the text in front of it, `used` the count of both so far."""

    def __init__(self, plan: Plan, score: SentenceScore | None) -> None:
        self.before, self.used = plan.text, plan.tokens
        self.zone, self.heading = plan.zone, recalled_heading(plan.zone)
        self.budget, self.count, self.settings, self.score = plan.budget, plan.counter, plan.settings, score
        self.cursor = Cursor(numbered=True)
        self.pieces: list[str] = []
        self.items: list[Item] = []
        self.left_out: list[OmittedItem] = []

    def pack(self, ranked: Sequence[_PackedItem]) -> ContextSection:
        """Put in what fits, in the order given."""
        packing, free = self.settings.packing, self.used
        if packing == "excerpt" and self.score is None:
            raise InputError("packing 'excerpt' needs a scorer of sentences; give sentence_score, or choose 'skip'")
        ranked = ranked if packing == "prefix" else self._light_first(ranked)
        taken = self._take_prefix(ranked)
        if packing == "prefix":
            self._leave_rest(ranked[taken:])
        else:
            for entry in ranked[taken:]:
                self._squeeze(entry)
        return ContextSection(
            "projection", section_text(self.heading, self.pieces), self.used - free, tuple(self.items)
        )

    def leave(self, entry: _PackedItem, cut: LeftOutBy, ahead: int = 0) -> int:
        """Leave one item out, with so many tokens of others still ahead of it; return what it needs."""
        # The first item brings the section's heading along.
        heading = "" if self.pieces or ahead else self.heading
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

    def _light_first(self, ranked: Sequence[_PackedItem]) -> list[_PackedItem]:
        """Let long items wait for the others: one long answer must not cost ten short ones. The first never waits.

        What is long does not depend on the room, so that a larger budget takes the same items in the same order.
        """
        most = self.settings.item_tokens
        if most == 0:
            return list(ranked)
        waits = [False, *(self.count(quote(entry.quoted, self.cursor)[0]) > most for entry in ranked[1:])]
        return [ranked[place] for place in sorted(range(len(ranked)), key=waits.__getitem__)]

    def _take_prefix(self, ranked: Sequence[_PackedItem]) -> int:
        """Take the longest prefix that fits whole; every packing starts with it."""
        pieces, cursors = [], [self.cursor]
        for entry in ranked:
            piece, cursor = quote(entry.quoted, cursors[-1])
            pieces.append(piece)
            cursors.append(cursor)
        taken, self.used = longest_prefix(
            len(pieces),
            lambda index: self.count(pieces[index]),
            lambda size: self._total(pieces[:size]),
            self.used,
            self.budget,
        )
        for entry, piece in zip(ranked[:taken], pieces, strict=False):
            self._put(entry, piece)
        self.cursor = cursors[taken]
        return taken

    def _squeeze(self, entry: _PackedItem) -> None:
        """Take one item whole, or as an excerpt, or leave it out."""
        if self._take(entry):
            return
        for words in self._excerpts(entry):
            quoted = Quote.part(entry.quoted.unit, words, self.zone, entry.quoted.replaced)
            if self._take(_PackedItem(quoted, entry.score)):
                return
        self.leave(entry, "budget")

    def _excerpts(self, entry: _PackedItem) -> list[str]:
        if self.settings.packing != "excerpt" or self.score is None:
            return []
        frame, _ = quote(Quote.part(entry.quoted.unit, "", self.zone, entry.quoted.replaced), self.cursor)
        if not self._is_near(self.count(frame)):
            return []
        return excerpts(entry.quoted.text, self.score, self.settings.excerpt_sentences)

    def _take(self, entry: _PackedItem) -> bool:
        piece, cursor = quote(entry.quoted, self.cursor)
        if not self._is_near(self.count(piece)):
            return False
        total = self._total([*self.pieces, piece])
        if total > self.budget:
            return False
        self.used, self.cursor = total, cursor
        self._put(entry, piece)
        return True

    def _put(self, entry: _PackedItem, piece: str) -> None:
        quoted = entry.quoted
        self.pieces.append(piece)
        earlier = quoted.replaced is not None
        self.items.append(Item(quoted.unit.id, quoted.kind, quoted.text, self.count(piece), entry.score, earlier))

    def _total(self, pieces: Sequence[str]) -> int:
        return self.count(self.before + section_text(self.heading, pieces))

    def _is_near(self, cost: int) -> bool:
        return cost <= self.budget - self.used + _LOCAL_ERROR


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
