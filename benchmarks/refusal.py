"""Derive the thresholds of the no-answer rule (C4) from questions asked of the right and of the wrong conversation.

    python benchmarks/refusal.py --data DIR [--embedder minilm|potion] [--vectors FILE] [--out FILE]

DIR holds evaluation data in any schema of `holdfast eval`. A question asked of its own conversation or passages has
an answer; asked of another conversation of its set, it has none. Thresholds are chosen on half of the conversations
(of a set with only one: of its questions): as many refused as possible while hardly any answerable one is, in any
set. They are reported on the other half, with what other choices would have cost. FILE keeps vectors from run to run.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from rich.progress import track

from holdfast.eval.data import DataSet, GoldQuestion
from holdfast.eval.datasets import load_sets
from holdfast.eval.run import CachedEmbedder
from holdfast.eval.systems import Product, ProductReader
from holdfast.models import build_embedder
from holdfast.models.embedder import Embedder
from holdfast.settings import EmbeddingSettings, RefusalSettings, Settings

# Refusing an answerable question is the worse mistake: a caller can ignore a hit, not find one that is not there.
KEPT = 0.998
OTHERS = (0.98, 0.99, 0.995, 1.0)
# Two strategies hand over at most 64 candidates each.
MOST = 128
# Up to 1: a unit that holds every word of the question is never too far from it.
COVERAGES, COSINES = np.arange(0.3, 1.01, 0.05), np.arange(0.15, 0.451, 0.025)
OPEN = dataclasses.replace(Settings(), refusal=RefusalSettings(enabled=False))
HALVES = ("chosen on", "held out")
# By set, half, and whether the questions have an answer there.
POINTS = dict[tuple[str, int, bool], list[NDArray[np.float64]]]


def asked(data: DataSet, embedder: Embedder) -> Iterator[tuple[int, bool, NDArray[np.float64]]]:
    """Ask all questions of a set: where the answer is, and where it is not; half, answerable, and what was found."""
    several = len(data.haystacks) > 1
    for place, haystack in enumerate(data.haystacks):
        strangers = data.haystacks[place - 1].questions if data.chat and several else ()
        with Product("hybrid", OPEN).read(haystack, embedder) as reader:
            own = sorted((one for one in haystack.questions if one.has_gold), key=lambda one: one.visible)
            for number, question in enumerate(own):
                if question.visible > reader.remembered:
                    reader.rank(question)
                yield (place if several else number) % 2, True, evidence(reader, question)
            for question in strangers:
                yield place % 2, False, evidence(reader, dataclasses.replace(question, at=haystack.questions[-1].at))


def evidence(reader: ProductReader, question: GoldQuestion) -> NDArray[np.float64]:
    """Return (coverage, cosine) of every candidate, which is what the rule looks at, padded to one length."""
    pool = reader.memory.search(question.text, user="user", reference_time=question.at).trace.pool
    found = [(c, pool.cosine(row) or 0.0) for row, c in enumerate(pool.coverage.tolist())]
    best = sorted(found, reverse=True)[: MOST // 2] + sorted(found, key=lambda one: -one[1])[: MOST // 2]
    return np.array(best + [(0.0, 0.0)] * (MOST - len(best)))


def share(points: NDArray[np.float64], coverage: float, cosine: float) -> float:
    """Return the share of questions that would be answered."""
    return float(np.mean((points[:, :, 0] / coverage + points[:, :, 1] / cosine).max(axis=1) >= 1.0))


def chosen(sets: dict[tuple[str, int, bool], NDArray[np.float64]], least: float) -> dict[str, object]:
    """Return the thresholds that refuse most while `least` of the answerable questions of every set are kept."""
    own = [points for (_, half, answerable), points in sets.items() if half == 0 and answerable]
    others = [points for (_, half, answerable), points in sets.items() if half == 0 and not answerable]
    grid = [(c, s) for c in COVERAGES for s in COSINES]
    fitting = [pair for pair in grid if all(share(points, *pair) >= least for points in own)]
    best = min(fitting, key=lambda pair: np.mean([share(points, *pair) for points in others]))
    return {"coverage": round(float(best[0]), 3), "cosine": round(float(best[1]), 3), **measured(sets, *best)}


def measured(
    sets: dict[tuple[str, int, bool], NDArray[np.float64]], coverage: float, cosine: float
) -> dict[str, dict[str, dict[str, float]]]:
    result: dict[str, dict[str, dict[str, float]]] = {name: {} for name in HALVES}
    for (name, half, answerable), points in sets.items():
        kept = share(points, coverage, cosine)
        entry = result[HALVES[half]].setdefault(name, {})
        entry["kept" if answerable else "refused"] = round(kept if answerable else 1 - kept, 4)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--embedder", default="minilm", choices=("minilm", "potion"))
    parser.add_argument("--vectors", type=Path)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    points: POINTS = {}
    built = build_embedder(EmbeddingSettings(embedder=options.embedder, threads=1))
    with (
        tempfile.TemporaryDirectory() as folder,
        CachedEmbedder.open(built, options.vectors or Path(folder) / "vectors.npz") as embedder,
    ):
        for data in track(load_sets(options.data).sets, "asking"):
            for half, answerable, found in asked(data, embedder):
                points.setdefault((data.name, half, answerable), []).append(found)
    sets = {key: np.array(found) for key, found in points.items()}
    shipped = Settings().refusal
    result = {
        "space": built.space,
        "derived": chosen(sets, KEPT),
        "shipped": {
            "coverage": shipped.coverage, "cosine": shipped.cosine,
            **measured(sets, shipped.coverage, shipped.cosine),
        },
        "other choices": {str(kept): chosen(sets, kept) for kept in OTHERS},
        "questions": {f"{k[0]}, {HALVES[k[1]]}, {'own' if k[2] else 'other'}": len(v) for k, v in sets.items()},
    }  # fmt: skip
    out = options.out or Path(__file__).parent / "results" / f"refusal-{options.embedder}.json"
    out.write_text(json.dumps(result, indent=2) + "\n")
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
