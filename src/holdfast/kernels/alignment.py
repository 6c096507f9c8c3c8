"""Which messages of a list a conversation holds already (C1). Messages are compared by any hashable value."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence
from difflib import SequenceMatcher

Found = dict[int, int]  # place in the list → place in the conversation


def align(held: Sequence[Hashable], calls: Sequence[Hashable], said: Sequence[Hashable]) -> Found:
    """Return where the conversation holds each message of a list; what is missing in the answer is new.

    The list continues the conversation where it fits: its longest beginning that is the end of what is held is
    known, and the rest is new. A list that does not fit so, because something was regenerated, edited, erased or put
    in front, is compared as `diff` does, and taken for a repetition when it says more of what is held than it
    adds or leaves out. `calls` says which call brought each held message: words that came in one call and come
    again are an exchange that was repeated, not a repetition of the conversation.
    """
    known = _overlap(held, said)
    if known:
        return {place: len(held) - known + place for place in range(known)}
    return _resumed(held, calls, said)


def _overlap(held: Sequence[Hashable], said: Sequence[Hashable]) -> int:
    """Return the length of the longest beginning of `said` that is the end of `held`."""
    lengths = range(min(len(held), len(said)), 0, -1)
    return next((length for length in lengths if held[-length:] == said[:length]), 0)


def _resumed(held: Sequence[Hashable], calls: Sequence[Hashable], said: Sequence[Hashable]) -> Found:
    best: Found = {}
    most = 0
    for found in _alignments(held, said):
        strays = _strays(found, held, said)
        surplus = _surplus(found, strays, held)
        if surplus > most and len({calls[place] for place in found.values()}) > 1:
            best, most = found | strays, surplus
    return best


def _alignments(held: Sequence[Hashable], said: Sequence[Hashable]) -> Iterator[Found]:
    """Yield the common runs in their order, and again without the first of them, whose match may be by chance."""
    blocks = SequenceMatcher(None, held, said, autojunk=False).get_matching_blocks()[:-1]
    for start in range(len(blocks)):
        yield {run.b + step: run.a + step for run in blocks[start:] for step in range(run.size)}


def _strays(found: Found, held: Sequence[Hashable], said: Sequence[Hashable]) -> Found:
    """Return what the list says before its last known message and the conversation holds in another order."""
    left = defaultdict(list)
    for place in sorted(set(range(len(held))) - set(found.values())):
        left[held[place]].append(place)
    strays = (place for place in range(max(found)) if place not in found and left[said[place]])
    return {place: left[said[place]].pop() for place in strays}


def _surplus(found: Found, strays: Found, held: Sequence[Hashable]) -> int:
    """Return how many different messages are known in their order, less those that only one side has.

    Words that are said over and over are no sign of a repetition.
    """
    known = {*found.values(), *strays.values()}
    left_out = sum(place not in known for place in range(min(found.values()), len(held)))
    added = max(found) + 1 - len(found) - len(strays)
    return len({held[place] for place in found.values()}) - left_out - added
