"""The last stage: the first turns are read together with the question, and stand in the order read (C9)."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from holdfast.kernels import Floats, Rows
from holdfast.models.reader import Judgement, Turn
from holdfast.ranking.current import asks_for_past
from holdfast.ranking.pool import TIME_STAGES, Pool, ReadingInputs, StageEffect, StageInputs
from holdfast.text.questions import is_request
from holdfast.types import QueryProfile, Readings, TurnReading, Unit

# Ten find less among the first ten hits; of fourteen each is cut shorter, and first hits fall on two of four sets.
HITS = 12
# Found on development chats, with the score as it is. From .06 and .4 to .1 and .6 little changes.
_RANK, _OTHER_TIME = 0.06, 0.4
# Turns that are longer on average, in characters, would be read through a window of each: chats of such turns lose.
_LONGEST = 250
# A turn is called earlier from this chance that a later one put it out of date, and this logit that it answers when
# it is read alone. Of what the chance alone marks on two development sets, .64 and .78 are earlier turns; of both,
# .73 and .91.
_OUTDATED, _ANSWERS_ALONE = 0.9, 4.0


def read_together(pool: Pool, staging: StageInputs) -> Pool:
    """Let the first turns share out the scores that they have among them anew, by what the reader says of them.

    The order read is that of score + w·rank - v·P(of another time). A turn takes the score of its new place:
    rel' = rel + (that score - its own) / α. Nothing else moves. Where the question names a time, those share out that
    are as much of it, and no turn is of another time: the reader sees no dates. Requests are left alone, and so are
    documents, summaries and long messages: it knows questions about what people say in a few sentences. So are
    questions that an identifier decides, or the latest session of a thread. What only asks keeps its place, as it
    answers nothing.
    """
    reading, query = staging.reading, staging.query
    if reading is None or not reading.alpha or is_request(query.text) or query.identifiers or query.continues:
        return pool
    hits, scores = reading.rank(pool)
    told = (hits.columns["kind"] == "turn") & (hits.columns["author"] != "document") & ~hits.columns["asks"]
    places = np.flatnonzero(told)[:HITS]
    if len(places) < 2 or hits.columns["length"][places].mean() > _LONGEST:
        return pool
    units = staging.units([hits.ids[place] for place in places])
    said = {place: units[hits.ids[place]] for place in places.tolist()}
    by_time = sorted(said, key=lambda place: said[place].moment)
    in_time = reading.judge(query.text, [turn_of(said[place]) for place in by_time])
    pool = dataclasses.replace(pool, readings=_keep([hits.ids[place] for place in by_time], in_time))
    judged = in_time.take(np.argsort(by_time))
    row_of = {unit_id: row for row, unit_id in enumerate(pool.ids)}
    rows = np.array([row_of[hits.ids[place]] for place in said], dtype=np.intp)
    return pool.apply(_share_out(pool, rows, scores[places], judged, reading))


def find_outdated(
    pool: Pool, query: QueryProfile, units: Mapping[str, Unit], pair: Callable[[str, Turn], float]
) -> Pool:
    """Return the pool with the turns that a later one surely put out of date, where the question is about now.

    A turn that does not answer when it is read alone is about something else, however old it looks beside the others.
    Which later one it was is not known: that of the best rank is the current turn in four of five only.
    """
    if pool.readings is None or not len(pool) or query.stance != "now" or asks_for_past(pool, query):
        return pool
    said = pool.readings.turns
    likely = [
        one for one, turn in said.items() if turn.earlier >= _OUTDATED and "earlier" not in units[one].overruled
    ]
    alone = {one: pair(query.text, turn_of(units[one])) for one in likely}
    turns = {one: dataclasses.replace(turn, alone=alone.get(one, turn.alone)) for one, turn in said.items()}
    outdated = frozenset(one for one in likely if alone[one] >= _ANSWERS_ALONE)
    return dataclasses.replace(pool, readings=dataclasses.replace(pool.readings, turns=turns), outdated=outdated)


def turn_of(unit: Unit) -> Turn:
    """Return what the reader sees of a unit."""
    return Turn(unit.speaker or unit.author, unit.text)


def _keep(ids: Sequence[str], judged: Judgement) -> Readings:
    columns = (judged.rank, judged.answers, judged.earlier, judged.other_time)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return Readings({one: TurnReading(*row) for one, row in zip(ids, rows, strict=True)}, judged.nothing)


def _share_out(pool: Pool, rows: Rows, scores: Floats, judged: Judgement, reading: ReadingInputs) -> StageEffect:
    """Return what gives each of the rows, best first, the relevance that it needs for the score of its new place."""
    of_time = next((effect.signal[rows] for effect in pool.effects if effect.stage in TIME_STAGES), None)
    values = scores + _RANK * judged.rank - (_OTHER_TIME * judged.other_time if of_time is None else 0.0)
    weights, signals, because = np.zeros(len(pool)), np.zeros(len(pool)), ["signal"] * len(pool)
    apart = np.zeros(len(rows)) if of_time is None else of_time
    for alike in (apart == share for share in np.unique(apart)):
        places = np.flatnonzero(alike)
        for place, hit in zip(places, places[np.argsort(-values[places], kind="stable")], strict=True):
            row = rows[hit]
            weights[row] = 1.0
            signals[row] = max(float(pool.rel[row] + (scores[place] - scores[hit]) / reading.alpha), 0.0)
            said = f"rank {judged.rank[hit]:+.2f}, of another time {judged.other_time[hit]:.2f}"
            because[row] = f"rel for place {place + 1} of the {len(rows)} read together: {said}"
    return StageEffect("read", weights, signals, tuple(because))
