"""What proposes by meaning, beside faiss's flat index of half floats, on made-up vectors."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import synthetic
from measuring import percentiles, time_by_turns
from numpy.typing import NDArray

from holdfast.settings import RetrievalSettings
from holdfast.store.sqlite.blocks import CARRIED, DenseBlock

# As many as `search` asks a strategy for; both are asked for the same.
DEPTH = RetrievalSettings().max_candidates
RECALL_AT = 10
# Rows compared exactly at a time: a block of scores stays far below a gigabyte.
EXACT_PIECE = 100_000

Matrix = NDArray[np.float32]
Propose = Callable[[Matrix], NDArray[np.integer[Any]]]


def measure(units: int, questions: int, rounds: int) -> Iterator[dict[str, Any]]:
    """Yield times of both on the same questions, by turns, and how many of the exact best each finds."""
    generator = synthetic.VectorGenerator()
    turns = np.concatenate([*generator.turns(units)])
    asked = generator.questions(turns[np.random.default_rng(synthetic.SEED).integers(units, size=questions)])
    systems = build_proposals(turns)
    if importlib.util.find_spec("faiss") is not None:
        systems["faiss flat fp16"] = build_faiss(turns)
    time_by_turns(systems, asked[:rounds], 1)
    times = {name: percentiles(taken) for name, taken in time_by_turns(systems, asked, rounds).items()}
    best = find_exact(turns, asked)
    for name, propose in systems.items():
        values = {**times[name], "recall@10": measure_recall(turns, asked, propose, best)}
        if name != "faiss flat fp16" and "faiss flat fp16" in systems:
            values["p50 ÷ faiss"] = round(values["p50 ms"] / times["faiss flat fp16"]["p50 ms"], 3)
        yield {"label": name, "units": units, "values": values}


def build_proposals(turns: Matrix) -> dict[str, Propose]:
    """Return a search through the funnel of an embedder whose prefixes carry, and one over all dimensions."""
    block = DenseBlock(turns.shape[1])
    for start in range(0, len(turns), synthetic.PIECE):
        piece = turns[start : start + synthetic.PIECE]
        block.add(np.arange(start, start + len(piece), dtype=np.int32), piece)
    eligible = np.ones(len(turns), dtype=np.bool_)
    return {
        "Holdfast's funnel": lambda query: block.propose(query, eligible, DEPTH, None, CARRIED)[0],
        "Holdfast, exact": lambda query: block.propose(query, eligible, DEPTH)[0],
    }


def build_faiss(turns: Matrix) -> Propose:
    """Return a search of faiss's exhaustive index with 16-bit floats, as its documentation sets it up."""
    import faiss

    faiss.omp_set_num_threads(1)
    kind = faiss.ScalarQuantizer.QT_fp16
    index = faiss.IndexScalarQuantizer(turns.shape[1], kind, faiss.METRIC_INNER_PRODUCT)
    index.add(turns)
    return lambda query: index.search(query[None, :], DEPTH)[1][0]


def find_exact(turns: Matrix, asked: Matrix) -> NDArray[np.intp]:
    """Return the places of the true best of each question."""
    pieces = (asked @ turns[start : start + EXACT_PIECE].T for start in range(0, len(turns), EXACT_PIECE))
    scores = np.concatenate([*pieces], axis=1)
    return np.argpartition(-scores, RECALL_AT - 1, axis=1)[:, :RECALL_AT]


def measure_recall(turns: Matrix, asked: Matrix, propose: Propose, best: NDArray[np.intp]) -> float:
    """Return the share of the true best among the best of what was proposed, scored exactly as `search` does."""
    shares = []
    for query, wanted in zip(asked, best, strict=True):
        places = propose(query)
        kept = places[np.argsort(-(turns[places] @ query), kind="stable")[:RECALL_AT]]
        shares.append(len(set(kept.tolist()) & set(wanted.tolist())) / RECALL_AT)
    return round(float(np.mean(shares)), 4)
