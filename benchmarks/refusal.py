"""Derive the no-answer rule (C4), and the confidence of hits, from questions with and without an answer.

    python benchmarks/refusal.py --data DIR [--embedder minilm|potion] [--vectors FILE] [--out FILE]

DIR holds evaluation data in any schema of `holdfast eval`. A question asked of its own conversation or passages has
an answer; asked of another conversation of its set, or of another set's passages, it has none. Everything is chosen
on half of the conversations (of a set with only one: of its questions) and reported on the other half:

- the curve of what the rule keeps and refuses, for several shares of answerable questions kept in every set;
- the logistic fit of which hits answer, and how often they do, by the confidence that it gives them.

FILE keeps vectors from run to run.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
import tempfile
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from rich.progress import track

from holdfast.eval.data import DataSet, GoldQuestion
from holdfast.eval.datasets import load_sets
from holdfast.eval.run import CachedEmbedder
from holdfast.eval.systems import Product, ProductReader
from holdfast.models import build_embedder
from holdfast.models.embedder import Embedder
from holdfast.ranking.pool import Pool
from holdfast.ranking.score import nearness
from holdfast.settings import EmbeddingSettings, RefusalSettings, Settings

# A wrong refusal is the worse mistake: a caller can ignore a hit, not find one that is not there.
KEPT = 0.99
CURVE = (0.999, 0.998, 0.995, 0.99, 0.98, 0.95)
OPEN = dataclasses.replace(Settings(), refusal=RefusalSettings(enabled=False))
HALVES = ("chosen on", "held out")
# Of each other set, so many questions are asked of passages that do not answer them.
MOST_STRANGERS = 100
# One question in five has no answer.
STRANGERS_WEIGHT = 0.25
# Newton's method is at its end long before.
STEPS = 50
BINS = (0.0, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0)
# A share of fewer hits says little.
LEAST_HITS = 15
Floats = NDArray[np.float64]


class Asked(NamedTuple):
    """One question: where, whether it has an answer, how near the pool is, and (evidence, answers) of every hit."""

    set: str
    kind: str
    half: int
    answerable: bool
    near: float
    hits: list[tuple[tuple[float, ...], bool]]


def asked(data: DataSet, others: Sequence[DataSet], embedder: Embedder) -> Iterator[Asked]:
    """Ask all questions of a set where the answer is, and others where it is not."""
    several = len(data.haystacks) > 1
    kind = "turns" if data.chat else "documents"
    for place, haystack in enumerate(data.haystacks):
        with Product("hybrid", OPEN).read(haystack, embedder) as reader:
            own = sorted((one for one in haystack.questions if one.has_gold), key=lambda one: one.visible)
            for number, question in enumerate(own):
                if question.visible > reader.remembered:
                    reader.rank(question)
                half = (place if several else number) % 2
                yield found(reader, question, (data.name, kind, half), answerable=True)
            strangers = list(data.haystacks[place - 1].questions) if several else []
            if not data.chat and not several:
                strangers = [one for other in others for one in other.haystacks[0].questions[:MOST_STRANGERS]]
            for number, question in enumerate(strangers):
                half = (place if several else number) % 2
                seen = dataclasses.replace(question, at=haystack.questions[-1].at)
                yield found(reader, seen, (data.name, kind, half), answerable=False)


def found(reader: ProductReader, question: GoldQuestion, where: tuple[str, str, int], *, answerable: bool) -> Asked:
    """Ask one question: how near is the pool to it, and which evidence has each hit that answers, or does not?"""
    result = reader.memory.search(question.text, user="user", reference_time=question.at)
    sessions = () if question.gold else question.gold_sessions
    hits = []
    for hit in result:
        answers = reader.message_of.get(hit.unit.id) in question.gold or (hit.unit.session or "") in sessions
        if hit.cosine is not None:
            evidence = (1.0, hit.coverage, hit.cosine, hit.rel, math.log(hit.rank))
            hits.append((evidence, answerable and answers))
    pool, query = result.trace.pool, result.trace.query
    judged = isinstance(pool, Pool) and not query.only_time
    near = pool_nearness(pool, len(query.terms)) if judged else math.inf
    return Asked(*where, answerable, near, hits)


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


def rows_of(questions: Sequence[Asked]) -> tuple[Floats, Floats, Floats]:
    """Return evidence, answers and weights of all hits; every set counts the same."""
    groups: dict[str, list[Asked]] = {}
    for one in questions:
        groups.setdefault(one.set, []).append(one)
    evidence, answers, weights = [], [], []
    for group in groups.values():
        worth = [(1.0 if one.answerable else STRANGERS_WEIGHT, one.hits) for one in group]
        total = sum(weight * len(hits) for weight, hits in worth)
        for weight, hits in worth:
            evidence += [one for one, _ in hits]
            answers += [answer for _, answer in hits]
            weights += [weight / total] * len(hits)
    return np.array(evidence), np.array(answers, dtype=np.float64), np.array(weights)


def fit(evidence: Floats, answers: Floats, weights: Floats) -> Floats:
    """Return the weights of a logistic regression."""
    found = np.zeros(evidence.shape[1])
    for _ in range(STEPS):
        p = 1.0 / (1.0 + np.exp(-evidence @ found))
        slope = (evidence * (weights * p * (1.0 - p))[:, None]).T @ evidence
        found -= np.linalg.solve(slope + 1e-9 * np.eye(len(found)), evidence.T @ (weights * (p - answers)))
    return found


def reliability(questions: Sequence[Asked], weights: Floats) -> dict[str, Any]:
    """Return, by set, how often hits of a confidence answer; of the answerable questions held out."""
    result = {}
    for (name, half), group in grouped(questions).items():
        rows = [hit for one in group if one.answerable for hit in one.hits]
        if half == 0 or not rows:
            continue
        said = 1.0 / (1.0 + np.exp(-np.array([evidence for evidence, _ in rows]) @ weights))
        true = np.array([answers for _, answers in rows], dtype=np.float64)
        first = np.array([evidence[-1] == 0.0 for evidence, _ in rows])
        bins = [(said >= low) & (said < high) for low, high in pairwise(BINS)]
        filled = [one for one in bins if one.sum() >= LEAST_HITS]
        error = sum(one.sum() * abs(said[one].mean() - true[one].mean()) for one in bins if one.any()) / len(rows)
        result[name] = {
            "error": round(float(error), 3),
            "first hits": [round(float(said[first].mean()), 3), round(float(true[first].mean()), 3)],
            "by confidence": [
                [round(float(said[one].mean()), 3), round(float(true[one].mean()), 3), int(one.sum())]
                for one in filled
            ],
        }
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--embedder", default="minilm", choices=("minilm", "potion"))
    parser.add_argument("--vectors", type=Path)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    built = build_embedder(EmbeddingSettings(embedder=options.embedder, threads=1))
    sets = load_sets(options.data).sets
    alone = [data for data in sets if not data.chat and len(data.haystacks) == 1]
    questions: list[Asked] = []
    with (
        tempfile.TemporaryDirectory() as folder,
        CachedEmbedder.open(built, options.vectors or Path(folder) / "vectors.npz") as embedder,
    ):
        for data in track(sets, "asking"):
            questions += asked(data, [one for one in alone if one is not data], embedder)
    weights = fit(*rows_of([one for one in questions if one.half == 0]))
    shipped = Settings().refusal
    result = {
        "space": built.space,
        "derived": point(questions, KEPT),
        "shipped": measured(questions, {"turns": shipped.turns, "documents": shipped.documents}),
        "curve": {str(kept): point(questions, kept) for kept in CURVE},
        "confidence": [round(float(one), 3) for one in weights],
        "reliability": reliability(questions, weights),
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
