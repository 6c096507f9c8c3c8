"""The newest of the same: of hits that have the same words but for a value, the newest stands above (C19)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from holdfast.ranking.current import asks_for_past, margin_above
from holdfast.ranking.pool import Pool, StageEffect, StageInputs, UnitCache
from holdfast.text.terms import pieces, terms
from holdfast.types import Unit

# Both begin with so many words in common: with fewer, two that differ in whom they are about look the same.
_OPENING = 2
# So much of the longer one is in common, a value has at most so many words, and what is in common so many terms. On
# half of 3,112 items about change, .6 instead of .5 finds one change in twenty less.
_COMMON, _LONGEST_VALUE, _LEAST_TERMS = 0.5, 4, 2
# A longer text is more than one statement.
_LONGEST = 60
_EDGES = ".,:;!?\"'()"


class _Statement(NamedTuple):
    """A row whose unit is short enough to state one thing."""

    row: int
    unit: Unit
    words: tuple[str, ...]

    @property
    def key(self) -> tuple[object, ...]:
        """Return what two must have in common: who says it, of what document, and how it begins."""
        unit = self.unit
        return (unit.author, unit.speaker, unit.topic, self.words[:_OPENING])


_words_in = UnitCache(
    lambda unit: tuple(piece.strip(_EDGES).casefold() for piece in pieces(unit.text)[: _LONGEST + 1])
)


def prefer_newest(pool: Pool, staging: StageInputs) -> Pool:
    """Let the newest of several rows stand first that have the same words but for a value; not if then is asked for.

    They share out the relevance that they have among them, a little apart, as a wider scope of the older one counts
    too. A value that holds a word of the question is none: "what is in box 2?" is not about box 3. This needs no
    words of change and no reader.
    """
    query = staging.query
    if not staging.settings.newest or not len(pool) or query.stance == "then" or asks_for_past(pool, query):
        return pool
    pool = pool.sorted()
    weights, signals, because = np.zeros(len(pool)), np.zeros(len(pool)), ["signal"] * len(pool)
    for same in _find_same(pool, staging):
        above, reached = -1, float(pool.rel[same[0].row])
        for place, one in zip(same, sorted(same, key=lambda one: one.unit.event_time, reverse=True), strict=True):
            if above >= 0:
                reached = max(min(float(pool.rel[place.row]), reached - margin_above(pool, one.row, above)), 0.0)
            weights[one.row], signals[one.row], above = staging.settings.newest, reached, one.row
            because[one.row] = f"rel of {pool.ids[place.row]}, which has the same words but for a value"
    return pool.apply(StageEffect("newest", weights, signals, tuple(because)))


def _find_same(pool: Pool, staging: StageInputs) -> list[list[_Statement]]:
    """Return the rows that say the same but for a value, best first; only among those that can be hits."""
    rows = np.flatnonzero(~pool.columns["asks"] & (pool.columns["kind"] != "summary"))[: staging.most].tolist()
    units = staging.units([pool.ids[row] for row in rows])
    asked = frozenset(staging.query.terms)
    opened: dict[tuple[object, ...], list[list[_Statement]]] = {}
    for row in rows:
        unit = units.get(pool.ids[row])
        words = _words_in(unit) if unit is not None and "earlier" not in unit.overruled else ()
        if unit is None or not _OPENING < len(words) <= _LONGEST:
            continue
        one = _Statement(row, unit, words)
        groups = opened.setdefault(one.key, [])
        group = next((group for group in groups if have_same_words(group[0].words, words, asked)), None)
        if group is None:
            groups.append([one])
        else:
            group.append(one)
    return [group for groups in opened.values() for group in groups if len(group) > 1]


def have_same_words(one: Sequence[str], other: Sequence[str], asked: frozenset[str]) -> bool:
    """Return whether two statements are the same but for a value in one place, which is not what is asked about."""
    shorter, longer = min(len(one), len(other)), max(len(one), len(other))
    start = next((at for at in range(shorter) if one[at] != other[at]), shorter)
    rest = shorter - start
    end = next((at for at in range(rest) if one[-1 - at] != other[-1 - at]), rest)
    values = one[start : len(one) - end], other[start : len(other) - end]
    if start < _OPENING or start + end < _COMMON * longer or not all(0 < len(v) <= _LONGEST_VALUE for v in values):
        return False
    if not {*values[0]}.isdisjoint(values[1]):  # they differ in two places, one of which says what it is about
        return False
    common = {*terms(" ".join(one[:start])), *terms(" ".join(one[len(one) - end :]))}
    return len(common) >= _LEAST_TERMS and asked.isdisjoint(terms(" ".join((*values[0], *values[1]))))
