"""Measure the funnel that proposes by meaning beside faiss's flat index of half floats, on made-up vectors.

    python benchmarks/vectors.py 100000 --questions 200     # prints JSON; `run.py` calls this

A process of its own, because only then can both be held to one thread, and a million vectors leave nothing behind.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import synthetic
from numpy.typing import NDArray

from holdfast.kernels import vectors
from holdfast.settings import RetrievalSettings
from holdfast.store.dense import DenseBlock

# What one thread means to the libraries that numpy and faiss compute with.
ONE_THREAD = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
# As many as `search` asks a strategy for; both are asked for the same.
DEPTH = RetrievalSettings().max_candidates
RECALL_AT = 10
WARM_UP = 5
# Rows compared exactly at a time: a block of scores stays far below a gigabyte.
EXACT_PIECE = 100_000
MS = 1000.0

Matrix = NDArray[np.float32]


def held_to_one_thread() -> bool:
    """Return whether this process was started with one thread for products of matrices."""
    return all(os.environ.get(name) == value for name, value in ONE_THREAD.items())


def measure(units: int, questions: int, rounds: int) -> dict[str, Any]:
    """Return times and recall at one size, in a process with one thread."""
    command = [sys.executable, str(Path(__file__).resolve()), str(units)]
    command += ["--questions", str(questions), "--rounds", str(rounds)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, env={**os.environ, **ONE_THREAD})
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def compare(units: int, questions: int, rounds: int) -> dict[str, Any]:
    """Time both in turns on the same questions and count how many of the exact best each finds."""
    generator = synthetic.VectorGenerator()
    turns = np.concatenate([*generator.turns(units)])
    picks = np.random.default_rng(synthetic.SEED).integers(units, size=questions)
    asked = generator.questions(turns[picks])
    block, seconds = built(turns)
    eligible = np.ones(units, dtype=np.bool_)
    systems: dict[str, Callable[[Matrix], NDArray[np.integer]]] = {
        "funnel": lambda query: block.propose(query, eligible, DEPTH, None)[0]
    }
    if importlib.util.find_spec("faiss") is not None:
        systems["faiss"] = flat_half_floats(turns)
    times, found = in_turns(systems, asked, rounds)
    best = exact(turns, asked)
    result: dict[str, Any] = {
        "units": units,
        "times": {name: summary(taken) for name, taken in times.items()},
        "recall_at_10": {name: recall(turns, asked, places, best) for name, places in found.items()},
        "build_s": round(seconds, 2),
        "best_cosines": cosines_of(turns, asked, best),
    }
    if "faiss" in times:
        ours, theirs = (np.percentile(times[name], [50, 95]) for name in ("funnel", "faiss"))
        result["ratio"] = {"p50": round(float(ours[0] / theirs[0]), 3), "p95": round(float(ours[1] / theirs[1]), 3)}
    return result


def built(turns: Matrix) -> tuple[DenseBlock, float]:
    began = perf_counter()
    block = DenseBlock(turns.shape[1])
    for start in range(0, len(turns), synthetic.PIECE):
        piece = turns[start : start + synthetic.PIECE]
        block.add(np.arange(start, start + len(piece), dtype=np.int32), piece)
    return block, perf_counter() - began


def flat_half_floats(turns: Matrix) -> Callable[[Matrix], NDArray[np.integer]]:
    """Return a search of faiss's exhaustive index with 16-bit floats, as its documentation sets it up."""
    import faiss

    faiss.omp_set_num_threads(1)
    kind = faiss.ScalarQuantizer.QT_fp16
    index = faiss.IndexScalarQuantizer(turns.shape[1], kind, faiss.METRIC_INNER_PRODUCT)
    index.add(turns)
    return lambda query: index.search(query[None, :], DEPTH)[1][0]


def in_turns(
    systems: dict[str, Callable[[Matrix], NDArray[np.integer]]], asked: Matrix, rounds: int
) -> tuple[dict[str, list[float]], dict[str, list[NDArray[np.integer]]]]:
    times: dict[str, list[float]] = {name: [] for name in systems}
    found: dict[str, list[NDArray[np.integer]]] = {name: [] for name in systems}
    for look in systems.values():
        for query in asked[:WARM_UP]:
            look(query)
    pieces = np.array_split(np.arange(len(asked)), min(rounds, len(asked)))
    for piece in pieces:
        for name, look in systems.items():
            for i in piece:
                began = perf_counter()
                places = look(asked[i])
                times[name].append(perf_counter() - began)
                found[name].append(places)
    return times, found


def exact(turns: Matrix, asked: Matrix) -> NDArray[np.intp]:
    """Return the places of the true best of each question."""
    scores = np.concatenate(
        [asked @ turns[start : start + EXACT_PIECE].T for start in range(0, len(turns), EXACT_PIECE)], axis=1
    )
    top = min(RECALL_AT, len(turns))
    return np.argpartition(-scores, top - 1, axis=1)[:, :top]


def recall(turns: Matrix, asked: Matrix, found: list[NDArray[np.integer]], best: NDArray[np.intp]) -> float:
    """Return the share of the true best among the best of what was found, scored exactly as `search` does."""
    shares = []
    for query, places, wanted in zip(asked, found, best, strict=True):
        scores = vectors.cosines(turns[places], query, turns.shape[1])
        kept = places[np.argsort(-scores, kind="stable")[: len(wanted)]]
        shares.append(len(set(kept.tolist()) & set(wanted.tolist())) / len(wanted))
    return round(float(np.mean(shares)), 4)


def cosines_of(turns: Matrix, asked: Matrix, best: NDArray[np.intp]) -> dict[str, float]:
    """Return how near the best and the last of the best are, so that a reader can tell how hard the task is."""
    near = -np.sort(-np.einsum("qd,qkd->qk", asked, turns[best]), axis=1)
    return {"first": round(float(near[:, 0].mean()), 3), "last": round(float(near[:, -1].mean()), 3)}


def summary(seconds: list[float]) -> dict[str, float]:
    p50, p95 = np.percentile(seconds, [50, 95])
    return {
        "p50_ms": round(float(p50) * MS, 4),
        "p95_ms": round(float(p95) * MS, 4),
        "min_ms": round(min(seconds) * MS, 4),
        "calls": len(seconds),
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("units", type=int)
    parser.add_argument("--questions", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    print(json.dumps(compare(options.units, options.questions, options.rounds)))
