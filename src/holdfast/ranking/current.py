"""What is current: whether a later turn seems to replace an earlier one, for questions about now."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import numpy as np

from holdfast.ranking.pool import Pool, StageEffect, StageInputs, UnitCache
from holdfast.text.instructions import instructions_of
from holdfast.text.statements import (
    QuestionCues,
    TurnCues,
    find_rare,
    has_other_value,
    is_correction,
    read_cues,
    read_question_cues,
    read_values,
    share_rare_words,
    tells_change,
)
from holdfast.types import QueryProfile, Unit
from holdfast.values import dataclass

_EPOCH, _MICROSECOND = datetime(1970, 1, 1, tzinfo=UTC), timedelta(microseconds=1)

# A change stands near the statement that it replaces: among the first fifteen rows the current turn is found in 93 %
# of the questions about what changed, and what it replaces among the first five.
_HEAD, _LEADERS = 15, 5
# What takes the place of a row stands just above it; of several, the one that answers better stands first. What was
# promoted is harder to stand above, as its wider scope counts in the score.
_ABOVE, _KEPT_ORDER, _ABOVE_PROMOTED = 0.005, 0.02, 0.04
# Counted as so many signs: to be as near to the question as the nearest turn, rare words in common, a slip put right,
# another value of the kind that is asked for in the same session, none where the earlier turn has one, ten rows
# further down, a thousand characters. Words of change are one. Found by hand on development chats, in halves;
# docs/evaluation.md has what they reach on chats laid aside.
_NEAR, _SHARED, _SLIP, _OTHER_VALUE, _NO_VALUE = 2.0, 1.5, 3.0, 1.5, -2.0
_PER_TEN_ROWS, _PER_THOUSAND = -1.0, -1.5
# So many signs it takes. With fewer, more changes are seen, and more turns stand first that only look like one.
_SIGNS = 1.85
# A context calls a turn earlier only when there are so many signs more: an order may err, a remark misleads.
_SURE = 0.95


def prefer_current(pool: Pool, staging: StageInputs) -> Pool:
    """Let a turn that seems to replace an earlier one stand above it, where the question asks for what holds.

    rel' = (1 - w)·rel + w·(rel of the earlier one, and a little more); nothing is lowered or hidden. Signs of a
    change are that the later turn is near to the question, that it has words of change, that both share rare words,
    and that it has another value of the kind that is asked for. A turn that is long, or stands far down the list,
    needs more of them. What the assistant replies to the user is no news.
    """
    settings, query = staging.settings, staging.query
    if not settings.current or query.stance != "now" or not len(pool) or asks_for_past(pool, query):
        return pool
    pool = pool.sorted()
    telling = np.flatnonzero(~pool.columns["asks"])
    ids = [pool.ids[row] for row in telling.tolist()]
    weights, signals, because = np.zeros(len(pool)), np.zeros(len(pool)), ["signal"] * len(pool)
    replaced: dict[str, str] = {}
    for newer, (older, signal, sure) in _find_replaced(pool.take(telling), staging).items():
        weights[telling[newer]], signals[telling[newer]] = settings.current, signal
        because[telling[newer]] = f"rel of {ids[older]}, which it seems to replace"
        if sure:
            replaced.setdefault(ids[older], ids[newer])
    moved = pool.apply(StageEffect("current", weights, signals, tuple(because)))
    return dataclasses.replace(moved, replaced=replaced)


def asks_for_past(pool: Pool, query: QueryProfile) -> bool:
    """Return whether a question names a time that was over when the last of the rows was said."""
    return (
        query.time_range is not None and (query.time_range[1] - _EPOCH) // _MICROSECOND <= pool.columns["ends"].max()
    )


_told_in = UnitCache(lambda unit: read_cues(unit.text))
_values_in = UnitCache(lambda unit: read_values(unit.text))


@dataclass(frozen=True, slots=True)
class _Signs:
    """What says of two rows that the later replaces the earlier one; `alone` are the signs of each row by itself."""

    asked: QuestionCues
    units: Mapping[int, Unit]
    told: Mapping[int, TurnCues]
    rare: frozenset[str]
    alone: Mapping[int, float]

    def count(self, older: int, newer: int) -> float:
        """Return how many signs there are."""
        earlier, later = self.units[older], self.units[newer]
        if (self.asked.values & _values_in(earlier)) - _values_in(later):
            return 0.0  # "what is in box 2?" is answered by what names that number
        old, new = self.told[older], self.told[newer]
        signs = self.alone[newer] + tells_change(self.asked, old, new)
        signs += _SHARED * share_rare_words(self.asked, old, new, self.rare)
        together = earlier.session is not None and earlier.session == later.session
        if self.asked.kinds:
            other = has_other_value(self.asked, _values_in(earlier), _values_in(later))
            signs += 0.0 if other is None else _NO_VALUE if not other else _OTHER_VALUE if together else 0.0
        if together and earlier.author == later.author and is_correction(later.text):
            signs += _SLIP
        return signs

    def is_later(self, older: int, newer: int) -> bool:
        """Return whether a row was said after another one, which may be earlier, and not by somebody else."""
        earlier, later = self.units[older], self.units[newer]
        if "earlier" in earlier.overruled:
            return False
        if earlier.author == later.author and earlier.speaker != later.speaker:
            return False
        return later.event_time > earlier.event_time


def _find_replaced(pool: Pool, staging: StageInputs) -> dict[int, tuple[int, float, bool]]:
    """Return rows that seem to replace an earlier one, each with that one, what it takes over, and if it is sure."""
    rels = pool.rel[:_HEAD].tolist()
    head = [row for row, kind in enumerate(pool.columns["kind"][:_HEAD].tolist()) if kind == "turn"]
    read = staging.units([pool.ids[row] for row in head])
    units = {row: read[pool.ids[row]] for row in head if pool.ids[row] in read}
    told = {row: _told_in(unit) for row, unit in units.items()}
    near = {row: _nearness(pool, row) for row in units}
    if not any(near.values()):
        return {}
    nearest = max(near.values())
    alone = {
        row: _NEAR * near[row] / nearest + _PER_TEN_ROWS * row / 10 + _PER_THOUSAND * min(len(unit.text) / 1000, 1.0)
        for row, unit in units.items()
    }
    asked = read_question_cues(staging.query.text)
    signs = _Signs(asked, units, told, find_rare([*told.values()]), alone)
    leaders = [row for row in head[:_LEADERS] if row in told]
    found: dict[int, tuple[int, float, bool]] = {}
    # What the user wishes from now on tells nothing of what holds.
    for newer in [row for row in told if _is_news(pool, row) and not instructions_of(units[row])]:
        for older in leaders:
            if older >= newer or not signs.is_later(older, newer):
                continue
            if (count := signs.count(older, newer)) >= _SIGNS:
                signal = rels[older] + margin_above(pool, older, newer) + _KEPT_ORDER * rels[newer]
                found[newer] = (older, min(signal, 1.0), count >= _SIGNS + _SURE)
                break
    return found


def margin_above(pool: Pool, older: int, newer: int) -> float:
    """Return how far a row has to stand above an earlier one: a wider scope counts in the score."""
    scopes = pool.columns["scope"]
    return _ABOVE_PROMOTED if scopes[older] == "user" != scopes[newer] else _ABOVE


def _is_news(pool: Pool, row: int) -> bool:
    """Return whether a row tells something by itself: the user's words, or the assistant's that answer nothing."""
    return (
        pool.columns["author"][row] == "user" or "before" not in pool.columns or pool.columns["before"][row] is None
    )


def _nearness(pool: Pool, row: int) -> float:
    """Return how near a row is to the question: in meaning, or where nobody looked for that, by all there is."""
    cosine = pool.cosine(row)
    return float(pool.rel[row]) if cosine is None else max(cosine, 0.0)
