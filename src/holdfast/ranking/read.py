"""The last stage: the first turns are read together with the question, and stand in the order read (C9)."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from holdfast.kernels import Bools, Floats, Rows
from holdfast.models.reader import Judgement, Turn
from holdfast.ranking.pool import TIME_STAGES, Pool, ReadingInputs, StageEffect, StageInputs
from holdfast.text.questions import is_request
from holdfast.types import Readings, TurnReading
from holdfast.values import dataclass

# Of ten, less is found among the first ten hits; of fourteen each is cut shorter, and first hits fall on two of four
# sets.
TOGETHER = 12
# Turns that are longer on average, in characters, would be read through a window of each: chats of such turns lose.
_LONGEST = 250


class Recipe(NamedTuple):
    """How the first hits are read: those from place `alone` on alone as well, and the best of all together.

    Which are the best is told by score + `choice`·(the logit of a hit alone); those before `alone` always are. The
    order read is that of score + `answer`·(that logit) + `rank`·rank - `other_time`·P(of another time).
    """

    hits: int
    alone: int
    choice: float
    answer: float
    rank: float
    other_time: float


# Found on development chats, with the score as it is (docs/evaluation.md).
RECIPES: Mapping[str, Recipe] = {
    "once": Recipe(hits=20, alone=8, choice=0.03, answer=0.0, rank=0.06, other_time=0.4),
    "wide": Recipe(hits=20, alone=0, choice=0.04, answer=0.06, rank=0.06, other_time=0.6),
}


@dataclass(frozen=True, slots=True, eq=False)
class _Read:
    """What was read: the hits' ids and scores, best first, the logits of those read alone, and what is said of them.

    `together` are the places of those that were read together, in the order of `judged`.
    """

    ids: Sequence[str]
    scores: Floats
    alone: Mapping[int, float]
    together: Sequence[int]
    judged: Judgement

    def values(self, recipe: Recipe, *, timed: bool) -> Floats:
        """Return what orders the hits; without a time that is asked for, what is of another time loses."""
        alone, places = _spread(self.alone, len(self.ids)), [*self.together]
        found = self.scores + recipe.choice * alone
        found[places] = (self.scores + recipe.answer * alone)[places] + recipe.rank * self.judged.rank
        found[places] -= 0.0 if timed else recipe.other_time * self.judged.other_time
        return found

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
            said += [f"rank {self.judged.rank[row]:+.2f}", f"of another time {self.judged.other_time[row]:.2f}"]
        return ", ".join(said)


def _spread(logits: Mapping[int, float], size: int) -> Floats:
    return np.array([logits.get(place, 0.0) for place in range(size)])


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
    recipe = RECIPES[reading.recipe]
    places = np.flatnonzero(told)[: recipe.hits]
    if not len(places) or hits.columns["length"][places[:TOGETHER]].mean() > _LONGEST:
        return pool
    read = _read([hits.ids[place] for place in places], scores[places], recipe, staging, reading)
    row_of = {unit_id: row for row, unit_id in enumerate(pool.ids)}
    rows = np.array([row_of[one] for one in read.ids], dtype=np.intp)
    return dataclasses.replace(pool, readings=read.readings()).apply(_share_out(pool, rows, read, recipe, reading))


def _read(ids: Sequence[str], scores: Floats, recipe: Recipe, staging: StageInputs, reading: ReadingInputs) -> _Read:
    """Read the hits, best first: those of further down alone, the best together in the order of time."""
    units = [staging.units(ids)[one] for one in ids]
    turns = [Turn(unit.speaker or unit.author, unit.text) for unit in units]
    question, alone = staging.query.text, dict[int, float]()
    if not recipe.alone or len(ids) > TOGETHER:
        alone = {place: reading.pair(question, turns[place]) for place in range(recipe.alone, len(ids))}
    wanted = scores + recipe.choice * _spread(alone, len(ids))
    wanted[: recipe.alone] = np.inf
    best = np.argsort(-wanted, kind="stable")[:TOGETHER].tolist()
    together = sorted(sorted(best), key=lambda place: units[place].moment)
    return _Read(ids, scores, alone, together, reading.judge(question, [turns[place] for place in together]))


def _share_out(pool: Pool, rows: Rows, read: _Read, recipe: Recipe, reading: ReadingInputs) -> StageEffect:
    """Return what gives each of the rows, best first, the relevance that it needs for the score of its new place."""
    of_time = next((effect.signal[rows] for effect in pool.effects if effect.stage in TIME_STAGES), None)
    values = read.values(recipe, timed=of_time is not None)
    weights, signals, because = np.zeros(len(pool)), np.zeros(len(pool)), ["signal"] * len(pool)
    apart = np.zeros(len(rows)) if of_time is None else of_time
    behind = ~np.isin(np.arange(len(rows)), read.together)
    for alike in (apart == share for share in np.unique(apart)):
        places = np.flatnonzero(alike)
        for place, hit in zip(places, _in_order(places, values, behind), strict=True):
            row = rows[hit]
            weights[row] = 1.0
            signals[row] = max(float(pool.rel[row] + (read.scores[place] - read.scores[hit]) / reading.alpha), 0.0)
            because[row] = f"rel for place {place + 1} of the {len(rows)} read: {read.reason(int(hit))}"
    return StageEffect("read", weights, signals, tuple(because))


def _in_order(places: Rows, values: Floats, behind: Bools) -> Rows:
    """Return the places in the order read: those that were read together, then the others."""
    return places[np.lexsort((-values[places], behind[places]))]
