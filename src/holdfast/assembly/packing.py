"""What of a ranked list goes into the room that is left (C16).

`prefix` stops at the first item that does not fit, `skip` goes on behind it, `excerpt` shows its best sentences.
A counter may be anything that turns a text into a whole number, so that no sum of parts says what a text costs.
Costs of single items only tell where to look: an item is in when the whole text with it was counted and fits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from holdfast.assembly.context import Item, LeftOut, LeftOutBy, Recalled, Section
from holdfast.assembly.excerpt import SentenceScore, excerpts
from holdfast.assembly.render import RECALLED, Cursor, Quote, quote, section_text
from holdfast.errors import InputError
from holdfast.language.tokens import TokenCounter
from holdfast.settings import AssemblySettings

# How far an item's own count may lie above its growth of the text: estimators round up, and some price the digits
# of a frame by the letter before them. An item farther above the room is not tried.
_LOCAL_ERROR = 8
# So many probes follow the items' own costs; then the interval is halved, which ends soon for any counter.
_GUIDED_PROBES = 4


def longest_prefix(
    size: int, cost: Callable[[int], int], total: Callable[[int], int], spent: int, limit: int
) -> tuple[int, int]:
    """Return how many of `size` items fit when they are taken in their order, and what the text then counts.

    `total(n)` counts the text with n items, `spent` is the count without any, which fits; `cost(i)` says about what
    item i adds. With the next item the total passes the limit.
    """
    low, high, probe, room = 0, size + 1, 0, limit - spent
    probes = 0
    while high - low > 1:
        probe = _reach(probe, room, size, cost) if probes < _GUIDED_PROBES else (low + high) // 2
        probe = min(max(probe, low + 1), high - 1)
        counted = total(probe)
        room, probes = limit - counted, probes + 1
        if room >= 0:
            low, spent = probe, counted
        else:
            high = probe
    return low, spent


def _reach(start: int, room: int, size: int, cost: Callable[[int], int]) -> int:
    """Return how many items there are after adding as many as there is room for, or taking away as many as needed."""
    while start < size and (added := cost(start)) <= room:
        room -= added
        start += 1
    while start > 0 > room:
        start -= 1
        room += cost(start)
    return start


@dataclass(slots=True)
class Packer:
    """The projection while it is filled: `before` is the text in front of it, `used` the count of both so far."""

    before: str
    used: int
    budget: int
    count: TokenCounter
    settings: AssemblySettings
    score: SentenceScore | None = None
    cursor: Cursor = field(default_factory=lambda: Cursor(numbered=True))
    pieces: list[str] = field(default_factory=list)
    items: list[Item] = field(default_factory=list)
    left_out: list[LeftOut] = field(default_factory=list)

    def pack(self, ranked: Sequence[Recalled]) -> Section:
        """Put in what fits, in the order given."""
        packing, free = self.settings.packing, self.used
        if packing == "excerpt" and self.score is None:
            raise InputError("packing 'excerpt' needs a scorer of sentences; give sentence_score, or choose 'skip'")
        ranked = ranked if packing == "prefix" else self._light_first(ranked)
        taken = self._take_prefix(ranked)
        if packing == "prefix":
            self._leave_rest(ranked[taken:])
        else:
            for recalled in ranked[taken:]:
                self._squeeze(recalled)
        return Section("projection", section_text(RECALLED, self.pieces), self.used - free, tuple(self.items))

    def _light_first(self, ranked: Sequence[Recalled]) -> list[Recalled]:
        """Let long items wait for the others: one long answer must not cost ten short ones. The first never waits.

        What is long does not depend on the room, so that a larger budget takes the same items in the same order.
        """
        most = self.settings.item_tokens
        if most == 0:
            return list(ranked)
        long = [self.count(quote(Quote.whole(recalled.unit), self.cursor)[0]) > most for recalled in ranked[1:]]
        light = [recalled for recalled, waits in zip(ranked[1:], long, strict=True) if not waits]
        return [*ranked[:1], *light, *(recalled for recalled, waits in zip(ranked[1:], long, strict=True) if waits)]

    def leave(self, recalled: Recalled, cut: LeftOutBy, ahead: int = 0) -> int:
        """Leave one item out, with so many tokens of others still ahead of it; return what it needs."""
        # The first item brings the section's heading along.
        heading = "" if self.pieces or ahead else RECALLED
        needed = self.count(heading + quote(Quote.whole(recalled.unit), self.cursor)[0])
        # A counter for which parts cost less than they add may say that nothing was missing; something was.
        least = 1 if cut in ("budget", "prefix") else 0
        short = max(least, ahead + needed - (self.budget - self.used))
        self.left_out.append(LeftOut(recalled.unit.id, needed, short, cut))
        return needed

    def _leave_rest(self, rest: Sequence[Recalled]) -> None:
        ahead = 0
        for index, recalled in enumerate(rest):
            ahead += self.leave(recalled, "prefix" if index else "budget", ahead)

    def _take_prefix(self, ranked: Sequence[Recalled]) -> int:
        """Take the longest prefix that fits whole; every packing starts with it."""
        pieces, cursors = [], [self.cursor]
        for recalled in ranked:
            piece, cursor = quote(Quote.whole(recalled.unit), cursors[-1])
            pieces.append(piece)
            cursors.append(cursor)
        taken, self.used = longest_prefix(
            len(pieces),
            lambda index: self.count(pieces[index]),
            lambda size: self.count(self.before + section_text(RECALLED, pieces[:size])),
            self.used,
            self.budget,
        )
        self.pieces, self.cursor = pieces[:taken], cursors[taken]
        self.items = [
            Item(recalled.unit.id, "whole", recalled.unit.text, self.count(piece), recalled.score)
            for recalled, piece in zip(ranked, self.pieces, strict=False)
        ]
        return taken

    def _squeeze(self, recalled: Recalled) -> None:
        """Take one item whole, or as an excerpt, or leave it out."""
        if self._take(Quote.whole(recalled.unit), recalled.score):
            return
        for words in self._excerpts(recalled):
            if self._take(Quote(recalled.unit, words, excerpt=True), recalled.score):
                return
        self.leave(recalled, "budget")

    def _excerpts(self, recalled: Recalled) -> list[str]:
        if self.settings.packing != "excerpt" or self.score is None:
            return []
        frame, _ = quote(Quote(recalled.unit, "", excerpt=True), self.cursor)
        if not self._is_near(self.count(frame)):
            return []
        return excerpts(recalled.unit.text, self.score, self.settings.excerpt_sentences)

    def _take(self, quoted: Quote, score: float) -> bool:
        piece, cursor = quote(quoted, self.cursor)
        cost = self.count(piece)
        if not self._is_near(cost):
            return False
        total = self.count(self.before + section_text(RECALLED, [*self.pieces, piece]))
        if total > self.budget:
            return False
        self.used, self.cursor = total, cursor
        self.pieces.append(piece)
        self.items.append(Item(quoted.unit.id, "excerpt" if quoted.excerpt else "whole", quoted.text, cost, score))
        return True

    def _is_near(self, cost: int) -> bool:
        return cost <= self.budget - self.used + _LOCAL_ERROR
