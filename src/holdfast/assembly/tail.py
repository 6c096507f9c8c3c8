"""The recent tail (C15): which turns of the active session come along word for word.

T_base is the shortest suffix with at least m turns. T_recent is the longest suffix that contains it, splits no
bundle and fits its bound. A bundle is a user turn with the assistant and tool turns that answer it, or the turns
that share a bundle id; a turn belongs to one bundle, so that coupling ends where its bundle ends.
"""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.types import Unit

_ANSWERING = ("assistant", "tool")


def base_start(turns: int, minimum: int) -> int:
    """Return where T_base starts in a session of so many turns; a minimum of 0 or less means no tail."""
    return turns - min(turns, max(0, minimum))


def safe_starts(turns: Sequence[Unit], base: int) -> list[int]:
    """Return where a suffix that contains T_base can start without splitting a bundle, the shortest suffix first."""
    bundles = _bundles(turns)
    last = {bundle: index for index, bundle in enumerate(bundles)}
    starts, reach = [], 0
    for index, bundle in enumerate(bundles[: base + 1]):
        if index >= reach:
            starts.append(index)
        reach = max(reach, last[bundle] + 1)
    return starts[::-1]


def _bundles(turns: Sequence[Unit]) -> list[object]:
    """Return the bundle of each turn: its id, or the index of the turn that opens it."""
    bundles: list[object] = []
    asked = False  # whether the bundle of the turn before holds a user turn, which can be answered
    for index, turn in enumerate(turns):
        if turn.bundle_id:
            asked = turn.author == "user" or (asked and bundles[-1] == turn.bundle_id)
            bundles.append(turn.bundle_id)
        elif asked and turn.author in _ANSWERING:
            bundles.append(bundles[-1])
        else:
            asked = turn.author == "user"
            bundles.append(index)
    return bundles
