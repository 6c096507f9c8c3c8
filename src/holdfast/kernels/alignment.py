"""Which messages of a list a conversation holds already (C1). Messages are compared by any hashable value."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from difflib import Match, SequenceMatcher

Alignment = dict[int, int]  # place in the list → place in the conversation


def align(held: Sequence[Hashable], calls: Sequence[Hashable], said: Sequence[Hashable]) -> Alignment:
    """Return where the conversation holds each message of a list; what is missing in the answer is new.

    The list continues the conversation where it fits: its longest beginning that is the end of what is held is
    known, and the rest is new. A list that does not fit so, because something was regenerated, edited, erased or put
    in front, is compared as `diff` does, and taken for a repetition when it says more of what is held, in the same
    order, than it adds or leaves out. `calls` says which call brought each held message: words that came in one call
    and come again are an exchange that was repeated, not a repetition of the conversation.
    """
    known = _overlap(held, said)
    if known:
        return {place: len(held) - known + place for place in range(known)}
    found = {run.b + step: run.a + step for run in _repeated_runs(held, calls, said) for step in range(run.size)}
    return found | _kept_late(found, held, said)


def _overlap(held: Sequence[Hashable], said: Sequence[Hashable]) -> int:
    """Return the length of the longest beginning of `said` that is the end of `held`."""
    lengths = range(min(len(held), len(said)), 0, -1)
    return next((length for length in lengths if held[-length:] == said[:length]), 0)


def _kept_late(found: Alignment, held: Sequence[Hashable], said: Sequence[Hashable]) -> Alignment:
    """Return what a repetition has between known messages and the conversation after them, each side just once.

    An edited message, or one that was erased, is kept at the end when it comes again; the next list has it in its
    place.
    """
    times_held, times_said = Counter(held), Counter(said)
    once = {one: at for at, one in enumerate(held) if times_held[one] == times_said[one] == 1}
    late: Alignment = {}
    following = len(held)
    for place in range(max(found, default=-1), -1, -1):
        following = found.get(place, following)
        at = once.get(said[place], -1)
        if at > following:
            late[place] = at
    return late


def _repeated_runs(held: Sequence[Hashable], calls: Sequence[Hashable], said: Sequence[Hashable]) -> list[Match]:
    """Return the common runs, without those at the front that match by chance, or none.

    The runs are counted from the last to the first, so that each choice of the first costs one step. Words that are
    said over and over are no sign of a repetition: only different ones count.
    """
    runs = SequenceMatcher(None, held, said, autojunk=False).get_matching_blocks()[:-1]
    start, most, known, continues = len(runs), 0, 0, False
    different: set[Hashable] = set()
    for place, run in reversed([*enumerate(runs)]):
        known += run.size
        different.update(held[run.a : run.a + run.size])
        continues = continues or calls[run.a] != calls[run.a + run.size - 1]
        left_out, added = len(held) - run.a - known, len(said) - known
        surplus = len(different) - left_out - added
        if continues and surplus > most:
            start, most = place, surplus
    return runs[start:]
