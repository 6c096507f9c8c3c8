"""The last stage: the first turns are read together with the question, and stand in the order read (C9)."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from holdfast.kernels import Floats, Rows
from holdfast.models.reader import Judgement, Turn
from holdfast.ranking.current import asks_for_past
from holdfast.ranking.pool import TIME_STAGES, Pool, ReadingInputs, StageEffect, StageInputs
from holdfast.text.questions import is_request
from holdfast.types import QueryProfile, Readings, TurnReading, Unit
from holdfast.values import dataclass

# Of ten, less is found among the first ten hits; of fourteen each is cut shorter, and first hits fall on two of four
# sets.
TOGETHER = 12
# Turns that are longer on average, in characters, would be read through a window of each: chats of such turns lose.
_LONGEST = 250
# A turn is called earlier from this chance that a later one put it out of date, and this logit that it answers when
# it is read alone. Of what the chance alone marks on two development sets, .64 and .78 are earlier turns; of both,
# .73 and .91.
_OUTDATED, _ANSWERS_ALONE = 0.9, 4.0


class Recipe(NamedTuple):
    """How the first hits are read, so many of them.

    Those from place `alone` on are read alone, and tell by score + c·(their logit) which are read together with the
    ones before them. The order read is that of score + r·rank - v·P(of another time). The first `finalists` of it are
    read alone too, and stand among themselves in that order with a·(their logit).
    """

    hits: int
    alone: int
    finalists: int


RECIPES: Mapping[str, Recipe] = {
    # Of 16 hits, less is found among the first ten; more than three finalists bring little.
    "once": Recipe(hits=20, alone=8, finalists=3),
    "wide": Recipe(hits=24, alone=0, finalists=TOGETHER),
}
# c, a, r and v: found on two sets of development chats, with the score as it is. From .06 and .5 to .1 and .6 little
# changes; with a logit that counts .06, older turns rise above current ones.
_CHOICE, _ANSWER, _RANK, _OTHER_TIME = 0.03, 0.04, 0.06, 0.5


@dataclass(frozen=True, slots=True, eq=False)
class _Read:
    """What was read: the hits' ids and scores, best first, the logits of those read alone, and what is said of them.

    `together` are the places of those that were read together, in the order of `judged`; `order` are all places, in
    the order read.
    """

    ids: Sequence[str]
    scores: Floats
    alone: Mapping[int, float]
    together: Sequence[int]
    judged: Judgement
    order: Rows

    def readings(self) -> Readings:
        """Return what the trace keeps."""
        said = self.judged
        turns = {
            self.ids[place]: TurnReading(
                float(said.rank[row]), float(said.answers[row]), float(said.earlier[row]),
                float(said.other_time[row]), self.alone.get(place),
            )
            for row, place in enumerate(self.together)
        }  # fmt: skip
        return Readings(turns, said.nothing)

    def reason(self, place: int) -> str:
        """Say what the reader says of one of the hits."""
        said = [f"alone {self.alone[place]:+.2f}"] if place in self.alone else []
        if place in self.together:
            row = [*self.together].index(place)
            said += [
                f"rank {self.judged.rank[row]:+.2f}", f"of another time {self.judged.other_time[row]:.2f}",
                f"out of date {self.judged.earlier[row]:.2f}",
            ]  # fmt: skip
        return ", ".join(said)


def read_together(pool: Pool, staging: StageInputs) -> Pool:
    """Let the first turns share out the scores that they have among them anew, by what the reader says of them.

    A turn takes the score of its new place: rel' = rel + (that score - its own) / α. Nothing else moves. What is not
    among the best stands behind those that are. Where the question names a time, those share out that are as much of
    it, and no turn is of another time: the reader sees no dates. Requests are left alone, and so are documents,
    summaries and long messages: it knows questions about what people say in a few sentences. So are questions that an
    identifier decides, or the latest session of a thread. What only asks keeps its place, as it answers nothing.
    An only turn keeps its place; whether it answers is judged all the same.
    """
    reading, query = staging.reading, staging.query
    if reading is None or not reading.alpha or is_request(query.text) or query.identifiers or query.continues:
        return pool
    hits, scores = reading.rank(pool)
    told = (hits.columns["kind"] == "turn") & (hits.columns["author"] != "document") & ~hits.columns["asks"]
    places = np.flatnonzero(told)[: RECIPES[reading.recipe].hits]
    if not len(places) or hits.columns["length"][places[:TOGETHER]].mean() > _LONGEST:
        return pool
    of_time = next((effect for effect in pool.effects if effect.stage in TIME_STAGES), None)
    ids = [hits.ids[place] for place in places]
    read = _read(ids, scores[places], staging, reading, timed=of_time is not None)
    row_of = {unit_id: row for row, unit_id in enumerate(pool.ids)}
    rows = np.array([row_of[one] for one in ids], dtype=np.intp)
    apart = np.zeros(len(rows)) if of_time is None else of_time.signal[rows]
    pool = dataclasses.replace(pool, readings=read.readings())
    return pool.apply(_share_out(pool, rows, read, apart, reading.alpha))


def _read(ids: Sequence[str], scores: Floats, staging: StageInputs, reading: ReadingInputs, *, timed: bool) -> _Read:
    """Read the hits: those further down alone, the best together in the order of time, the first of these alone."""
    recipe, question = RECIPES[reading.recipe], staging.query.text
    known = staging.units(ids)
    units = [known[one] for one in ids]
    turns = [turn_of(unit) for unit in units]
    further = range(recipe.alone, len(ids)) if not recipe.alone or len(ids) > TOGETHER else ()
    alone = dict(zip(further, reading.read_alone(question, [turns[place] for place in further]), strict=True))
    values = scores + _CHOICE * np.array([alone.get(place, 0.0) for place in range(len(ids))])
    wanted = np.where(np.arange(len(ids)) < recipe.alone, np.inf, values)
    best = np.sort(np.argsort(-wanted, kind="stable")[:TOGETHER])
    together = np.array(sorted(best.tolist(), key=lambda place: units[place].moment), dtype=np.intp)
    judged = reading.judge(question, [turns[place] for place in together])
    other_time = np.zeros(len(together)) if timed else judged.other_time
    values[together] = scores[together] + _RANK * judged.rank - _OTHER_TIME * other_time
    first = np.lexsort((together, -values[together]))[: recipe.finalists]
    final = together[first]
    left = [place for place in final.tolist() if place not in alone]
    alone |= zip(left, reading.read_alone(question, [turns[place] for place in left]), strict=True)
    logits = np.array([alone[place] for place in final.tolist()])
    # What a later turn put out of date, or is of another time, answers the question too, by its own words.
    holds = np.where(logits > 0.0, (1.0 - judged.earlier[first]) * (1.0 - other_time[first]), 1.0)
    values[final] += _ANSWER * logits * holds
    places = np.arange(len(ids))
    order = np.lexsort((-values, ~np.isin(places, final), ~np.isin(places, together)))
    return _Read(ids, scores, alone, together.tolist(), judged, order)


def _share_out(pool: Pool, rows: Rows, read: _Read, apart: Floats, alpha: float) -> StageEffect:
    """Return what gives each of the rows, best first, the relevance that it needs for the score of its new place.

    Rows change places with those that are as much of the time asked for: `apart`.
    """
    weights, signals, because = np.zeros(len(pool)), np.zeros(len(pool)), ["signal"] * len(pool)
    for share in np.unique(apart):
        places, hits = np.flatnonzero(apart == share), read.order[apart[read.order] == share]
        for place, hit in zip(places.tolist(), hits.tolist(), strict=True):
            row = rows[hit]
            weights[row] = 1.0
            signals[row] = max(float(pool.rel[row] + (read.scores[place] - read.scores[hit]) / alpha), 0.0)
            because[row] = f"rel for place {place + 1} of the {len(rows)} read: {read.reason(hit)}"
    return StageEffect("read", weights, signals, tuple(because))


def find_outdated(
    pool: Pool, query: QueryProfile, units: Mapping[str, Unit], pair: Callable[[str, Turn], float]
) -> Pool:
    """Return the pool with the turns that a later one surely put out of date, where the question is about now.

    A turn that does not answer when it is read alone is about something else, however old it looks beside the others.
    Which later one it was is not known: that of the best rank is the current turn in four of five only. One that
    this turn repeats word for word still holds ("You said: …").
    """
    if pool.readings is None or not len(pool) or query.stance != "now" or asks_for_past(pool, query):
        return pool
    said = pool.readings.turns
    current = units[max(said, key=lambda one: said[one].rank)].text if said else ""
    likely = [
        one
        for one, turn in said.items()
        if turn.earlier >= _OUTDATED and "earlier" not in units[one].overruled and units[one].text not in current
    ]
    alone = {one: pair(query.text, turn_of(units[one])) for one in likely}
    turns = {one: dataclasses.replace(turn, alone=alone.get(one, turn.alone)) for one, turn in said.items()}
    outdated = frozenset(one for one in likely if alone[one] >= _ANSWERS_ALONE)
    return dataclasses.replace(pool, readings=dataclasses.replace(pool.readings, turns=turns), outdated=outdated)


def turn_of(unit: Unit) -> Turn:
    """Return what the reader sees of a unit."""
    return Turn(unit.speaker or unit.author, unit.text)
