"""Derive the no-answer rule (C4), and the confidence of hits, from questions with and without an answer.

    python benchmarks/refusal.py --data DIR... [--only WORD...] [--embedder minilm|potion] [--read once]
        [--vectors FOLDER] [--out FILE]

DIR holds evaluation data in any schema of `holdfast eval`. A question asked of its own conversation or passages has
an answer, unless the set says that it has none though its topic is there; asked of another conversation of its set,
or of another set's passages, it has none.

- The curve of what nearness alone keeps and refuses, for several shares of answerable questions kept in every set:
  chosen on half of the conversations (of a set with only one: of its questions), reported on the other half.
- The limits where turns are read: of those that refuse other people's questions of every set as often as nearness
  alone, and `NEAR_TOPIC` of the near-topic ones, those that lose the fewest answerable questions, and of these the
  highest. Reported for each conversation as they are chosen without it.
- The logistic fits of which hits answer, of those read and of others, and the expected calibration error in ten bins,
  each conversation as it is fitted without it.

FOLDER keeps vectors from run to run: that of `holdfast eval` serves.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from rich.progress import track

from holdfast.eval.data import DataSet, GoldQuestion, Haystack
from holdfast.eval.datasets import load_sets
from holdfast.eval.run import CachedEmbedder
from holdfast.eval.systems import Product, ProductReader
from holdfast.models import build_embedder
from holdfast.models.embedder import Embedder
from holdfast.ranking.pool import Pool
from holdfast.ranking.score import ReadingLimits, evidence_of, nearness, reading_of
from holdfast.settings import EmbeddingSettings, RefusalSettings, Settings
from holdfast.types import digest

# A wrong refusal is the worse mistake: a caller can ignore a hit, not find one that is not there.
KEPT = 0.99
CURVE = (0.999, 0.998, 0.995, 0.99, 0.98, 0.95)
OPEN = dataclasses.replace(Settings(), refusal=RefusalSettings(enabled=False))
HALVES = ("chosen on", "held out")
# Of each other set, so many questions are asked of passages that do not answer them.
MOST_STRANGERS = 100
# One question in five has no answer.
STRANGERS_WEIGHT = 0.25
# Newton's method is at its end before.
STEPS = 20
BINS = 10
# Of a set with more conversations, several are left out together.
FOLDS = 10
# Of near-topic questions without an answer at least so many are told apart; the wrong ones cost answers.
NEAR_TOPIC = 0.7
# How much is known of a hit that was not read, and of one that was.
UNREAD, READ = 4, 6
Floats = NDArray[np.float64]


class Asked(NamedTuple):
    """One question: where, whether it has an answer, how near the pool is, and (evidence, answers) of every hit.

    The evidence of hits that were read has two numbers more. `nothing` is the reader's, NaN where it read nothing;
    `near_topic` tells a question without an answer whose topic is there.
    """

    set: str
    kind: str
    half: int
    answerable: bool
    near: float
    hits: list[tuple[tuple[float, ...], bool]]
    who: str = ""
    nothing: float = math.nan
    near_topic: bool = False


def asked(data: DataSet, others: Sequence[DataSet], embedder: CachedFolder, settings: Settings) -> Iterator[Asked]:
    """Ask all questions of a set where the answer is, and others where it is not."""
    several = len(data.haystacks) > 1
    kind = "turns" if data.chat else "documents"
    for place, haystack in enumerate(data.haystacks):
        with (
            embedder.open(data.name, haystack) as vectors,
            Product("hybrid", settings).read(haystack, vectors) as reader,
        ):
            own = sorted((one for one in haystack.questions if usable(one)), key=lambda one: one.visible)
            for number, question in enumerate(own):
                if question.visible > reader.remembered:
                    reader.rank(question)
                half = (place if several else number) % 2
                yield found(reader, question, (data.name, kind, half), haystack.id)
            strangers = list(data.haystacks[place - 1].questions) if several else []
            if not data.chat and not several:
                strangers = [one for other in others for one in other.haystacks[0].questions[:MOST_STRANGERS]]
            for number, question in enumerate(strangers):
                half = (place if several else number) % 2
                seen = dataclasses.replace(question, at=haystack.questions[-1].at)
                yield found(reader, seen, (data.name, kind, half), haystack.id, stranger=True)


def usable(question: GoldQuestion) -> bool:
    """Return whether it is known to have an answer that can be found, or known to have none."""
    return question.has_gold or not question.answerable


def found(
    reader: ProductReader, question: GoldQuestion, where: tuple[str, str, int], who: str, *, stranger: bool = False
) -> Asked:
    """Ask one question: how near is the pool to it, and which evidence has each hit that answers, or does not?"""
    result = reader.memory.search(question.as_given, user="user", reference_time=question.at)
    sessions = () if question.gold else question.gold_sessions
    answerable = not stranger and question.has_gold
    pool, query = result.trace.pool, result.trace.query
    hits = []
    for hit in result:
        answers = reader.message_of.get(hit.unit.id) in question.gold or (hit.unit.session or "") in sessions
        if hit.cosine is not None:
            reading = reading_of(result.trace.readings, hit.unit.id)
            evidence = tuple(evidence_of(hit.cosine, hit.rel, hit.rank, reading))
            hits.append((evidence[: UNREAD if reading is None else READ], answerable and answers))
    judged = isinstance(pool, Pool) and not query.only_time
    near = pool_nearness(pool, len(query.terms)) if judged else math.inf
    nothing = result.trace.readings.nothing if result.trace.readings is not None else math.nan
    return Asked(*where, answerable, near, hits, who, nothing, not stranger and not question.answerable)


def pool_nearness(pool: Pool, terms: int) -> float:
    """Return what the rule looks at; a pool that holds every word of the question is always near enough."""
    best = max((pool.cosine(row) or 0.0 for row in range(len(pool))), default=0.0)
    coverage = float(pool.coverage.max()) if len(pool) else 0.0
    return math.inf if coverage >= 1.0 - 1e-9 else nearness(coverage, best, terms)


# ---------------------------------------------------------------------------------------------------- refusal


def choose(questions: Sequence[Asked], kind: str, least: float) -> float:
    """Return the largest threshold at which `least` of the answerable questions of every set are kept."""
    own: dict[str, list[float]] = {}
    for one in questions:
        if one.half == 0 and one.answerable and one.kind == kind:
            own.setdefault(one.set, []).append(one.near)
    lowest = min(sorted(near)[math.floor(len(near) * (1.0 - least) + 1e-9)] for near in own.values())
    return math.floor(lowest * 100) / 100


def measured(questions: Sequence[Asked], thresholds: dict[str, float]) -> dict[str, dict[str, dict[str, float]]]:
    """Return, by half and set, which share of answerable questions is kept, and of others refused."""
    result: dict[str, dict[str, dict[str, float]]] = {name: {} for name in HALVES}
    for (name, half), group in grouped(questions).items():
        entry = result[HALVES[half]].setdefault(name, {})
        for answerable, what in ((True, "kept"), (False, "refused")):
            near = [one.near >= thresholds[one.kind] for one in group if one.answerable == answerable]
            if near:
                entry[what] = round(float(np.mean(near)) if answerable else 1.0 - float(np.mean(near)), 4)
    return result


def grouped(questions: Sequence[Asked]) -> dict[tuple[str, int], list[Asked]]:
    groups: dict[tuple[str, int], list[Asked]] = {}
    for one in questions:
        groups.setdefault((one.set, one.half), []).append(one)
    return groups


def point(questions: Sequence[Asked], least: float) -> dict[str, Any]:
    """Return the thresholds for a share of kept questions, and what they keep and refuse."""
    thresholds = {kind: choose(questions, kind, least) for kind in sorted({one.kind for one in questions})}
    return {**thresholds, **measured(questions, thresholds)}


# ------------------------------------------------------------------------------------------------- confidence


def rows_of(questions: Sequence[Asked], size: int) -> tuple[Floats, Floats, Floats]:
    """Return evidence, answers and weights of the hits of which so much is known; every set counts the same."""
    groups: dict[str, list[Asked]] = {}
    for one in questions:
        groups.setdefault(one.set, []).append(one)
    evidence, answers, weights = [], [], []
    for group in groups.values():
        worth = [(1.0 if one.answerable or one.near_topic else STRANGERS_WEIGHT, one.hits) for one in group]
        total = sum(weight * len(hits) for weight, hits in worth)
        for weight, hits in worth:
            known = [hit for hit in hits if len(hit[0]) == size]
            evidence += [one for one, _ in known]
            answers += [answer for _, answer in known]
            weights += [weight / total] * len(known)
    return np.array(evidence), np.array(answers, dtype=np.float64), np.array(weights)


def fit(evidence: Floats, answers: Floats, weights: Floats) -> Floats:
    """Return the weights of a logistic regression."""
    found = np.zeros(evidence.shape[1])
    for _ in range(STEPS):
        p = 1.0 / (1.0 + np.exp(-evidence @ found))
        slope = (evidence * (weights * p * (1.0 - p))[:, None]).T @ evidence
        found -= np.linalg.solve(slope + 1e-9 * np.eye(len(found)), evidence.T @ (weights * (p - answers)))
    return found


def people(questions: Sequence[Asked]) -> list[tuple[str, str]]:
    """Return whose conversations these are, each with its set."""
    return sorted({(one.set, one.who) for one in questions})


def folds(questions: Sequence[Asked]) -> dict[tuple[str, str], tuple[str, int]]:
    """Return what of a set is left out together: one conversation, or several where there are many."""
    places: dict[str, int] = {}
    found = {}
    for name, who in people(questions):
        places[name] = places.get(name, -1) + 1
        found[name, who] = (name, places[name] % FOLDS)
    return found


def reliability(questions: Sequence[Asked]) -> dict[str, Any]:
    """Return, by set, the calibration error of all hits and of the first ones, each person fitted without them."""
    said: dict[str, list[tuple[float, bool, bool]]] = {}
    fold_of = folds(questions)
    for fold in sorted({*fold_of.values()}):
        rest = [one for one in questions if fold_of[one.set, one.who] != fold]
        weights = {size: fit(*rows_of(rest, size)) for size in (UNREAD, READ)}
        for one in questions:
            if fold_of[one.set, one.who] == fold and (one.answerable or one.near_topic):
                chances = [
                    1.0 / (1.0 + math.exp(-float(np.dot(given, weights[len(given)])))) for given, _ in one.hits
                ]
                rows = zip(chances, (answers for _, answers in one.hits), range(len(one.hits)), strict=True)
                said.setdefault(one.set, []).extend((chance, answers, not place) for chance, answers, place in rows)
    return {name: described(np.array(rows, dtype=np.float64)) for name, rows in said.items()}


def described(rows: Floats) -> dict[str, Any]:
    """Return the errors of (said, true, first) rows, and what was said of first hits beside what is true of them."""
    first = rows[rows[:, 2] > 0.0]
    both = [round(float(first[:, column].mean()), 3) for column in (0, 1)]
    return {"hits": len(rows), "error": error(rows), "error of first hits": error(first), "first hits": both}


def error(rows: Floats) -> float:
    """Return the expected calibration error in bins of one width."""
    bins = np.minimum((rows[:, 0] * BINS).astype(np.intp), BINS - 1)
    parts = (rows[bins == number] for number in np.unique(bins))
    return round(float(sum(len(part) * abs(part[:, 0].mean() - part[:, 1].mean()) for part in parts)) / len(rows), 3)


# ------------------------------------------------------------------------------------------ where turns are read


GRID = [ReadingLimits(*one) for one in product(
    (3.5, 3.75, 4.0, 4.25, 4.5, 4.75, 5.0), (1.0, 1.5, 2.0, 2.5, 3.0), (0.66, 0.7, 0.74, 0.78),
    (0.48, 0.5, 0.52, 0.54, 0.56, 0.58, 0.6),
)]  # fmt: skip


class Answers:
    """What each of the limits of the grid says of every question of a chat: that nothing answers, or not."""

    def __init__(self, questions: Sequence[Asked], alone: float) -> None:
        self.asked = [one for one in questions if one.kind == "turns"]
        near, nothing = (np.array([getattr(one, name) for one in self.asked]) for name in ("near", "nothing"))
        self.alone = near < alone
        read = np.nan_to_num(nothing, nan=-math.inf)
        said = [
            (near < one.far) | ((near < one.near) & (read > one.nothing_far)) | (read > one.nothing) for one in GRID
        ]
        self.said = np.where(np.isnan(nothing), self.alone, np.array(said))

    def rows(self, **wanted: object) -> NDArray[np.bool_]:
        """Return which questions are such."""
        pairs = ([getattr(one, name) == value for name, value in wanted.items()] for one in self.asked)
        return np.array([all(one) for one in pairs], dtype=np.bool_)

    def choose(self, among: NDArray[np.bool_]) -> int | None:
        """Return the place in the grid of the limits that these questions choose; None if there are none."""
        near_topic, stranger = self.rows(near_topic=True), self.rows(near_topic=False, answerable=False)
        fitting = self.said[:, among & near_topic].mean(axis=1) >= NEAR_TOPIC
        for name in {one.set for one in self.asked}:
            here = among & stranger & self.rows(set=name)
            fitting &= not here.any() or self.said[:, here].mean(axis=1) >= self.alone[here].mean()
        lost = self.said[:, among & self.rows(answerable=True)].sum(axis=1)
        fewest = np.flatnonzero(fitting & (lost == lost[fitting].min(initial=len(self.asked))))
        order = [
            (GRID[place].nothing, GRID[place].far, GRID[place].near, GRID[place].nothing_far, place)
            for place in fewest
        ]
        return int(max(order)[-1]) if order else None

    def shares(self, said: NDArray[np.bool_]) -> dict[str, dict[str, float]]:
        """Return, by set, of which share of each sort of questions it is said that nothing answers."""
        sorts = {"answerable": {"answerable": True}, "near topic": {"near_topic": True}}
        sorts["strangers"] = {"answerable": False, "near_topic": False}
        result: dict[str, dict[str, float]] = {}
        for name in sorted({one.set for one in self.asked}):
            rows = {sort: self.rows(set=name, **wanted) for sort, wanted in sorts.items()}
            result[name] = {sort: round(float(said[each].mean()), 4) for sort, each in rows.items() if each.any()}
        return result


def derive_limits(questions: Sequence[Asked], alone: float) -> dict[str, Any]:
    """Return the limits, and what is said of each person with the limits that the others choose."""
    answers = Answers(questions, alone)
    everybody = np.ones(len(answers.asked), dtype=np.bool_)
    left_out = np.zeros(len(answers.asked), dtype=np.bool_)
    for name, who in people(answers.asked):
        here = answers.rows(set=name, who=who)
        place = answers.choose(~here)
        left_out[here] = answers.alone[here] if place is None else answers.said[place][here]
    place = answers.choose(everybody)
    return {
        "limits": None if place is None else GRID[place]._asdict(),
        "by nearness alone": answers.shares(answers.alone),
        "with the limits": {} if place is None else answers.shares(answers.said[place]),
        "each person left out": answers.shares(left_out),
    }


class CachedFolder(NamedTuple):
    """An embedder and where its vectors are kept, a file for each conversation as `holdfast eval` has them."""

    real: Embedder
    folder: Path

    def open(self, name: str, haystack: Haystack) -> AbstractContextManager[CachedEmbedder]:
        """Return the embedder with what is kept of one conversation."""
        file = f"{digest(name, haystack.id, haystack.messages[0].text)}.npz"
        return CachedEmbedder.open(self.real, self.folder / digest(self.real.space) / file)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, nargs="+")
    parser.add_argument("--only", nargs="*", default=())
    parser.add_argument("--embedder", default="minilm", choices=("minilm", "potion"))
    parser.add_argument("--read", default="once")
    parser.add_argument("--vectors", type=Path)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    built = build_embedder(EmbeddingSettings(embedder=options.embedder, threads=1))
    sets = [data for folder in options.data for data in load_sets(folder, options.only).sets]
    alone = [data for data in sets if not data.chat and len(data.haystacks) == 1]
    settings = dataclasses.replace(OPEN, stages=dataclasses.replace(OPEN.stages, read=options.read))
    questions: list[Asked] = []
    with tempfile.TemporaryDirectory() as folder:
        embedder = CachedFolder(built, options.vectors or Path(folder))
        for data in track(sets, "asking"):
            questions += asked(data, [one for one in alone if one is not data], embedder, settings)
    shipped = Settings().refusal
    result = {
        "space": built.space,
        "derived": point(questions, KEPT),
        "shipped": measured(questions, {"turns": shipped.turns, "documents": shipped.documents}),
        "curve": {str(kept): point(questions, kept) for kept in CURVE},
        "read": derive_limits(questions, shipped.turns),
        "confidence": {
            str(size): [round(float(one), 3) for one in fit(*rows_of(questions, size))] for size in (UNREAD, READ)
        },
        "reliability": reliability(questions),
        "questions": {
            f"{name}, {HALVES[half]}, {'own' if answerable else 'other'}": sum(
                one.answerable == answerable for one in group
            )
            for (name, half), group in grouped(questions).items()
            for answerable in (True, False)
        },
    }
    out = options.out or Path(__file__).parent / "results" / f"refusal-{options.embedder}.json"
    out.write_text(json.dumps(result, indent=2) + "\n")
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
