"""Measure the Matryoshka cascade (C10) on real texts: the funnel's recall, and thresholds for the early exit.

    python benchmarks/cascade.py --data DIR [--embedder minilm|potion] [--vectors FILE] [--out FILE]

DIR holds evaluation data in any schema of `holdfast eval`. All its texts form one pool, and some questions of every
set are asked of it, each with the names left out as the product does. The funnel is the one that a store of that size
uses; its recall@10 is against exact search at full length. Larger pools are filled up with rows that lie between a
real row and one near it. An early exit is allowed when the best score at a tier reaches its threshold: the smallest
one whose exits keep 90 % of the exact ten best, chosen on half of the questions and reported on the other half.
FILE keeps vectors from run to run.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from rich.progress import track

from holdfast.eval.datasets import load_sets
from holdfast.eval.run import CachedEmbedder
from holdfast.kernels import vectors
from holdfast.kernels.vectors import TIERS
from holdfast.models import build_embedder
from holdfast.models.embedder import Embedder
from holdfast.settings import EmbeddingSettings, RetrievalSettings
from holdfast.store.contract import CARRYING_MODELS
from holdfast.store.sqlite.blocks import CARRIED, DenseBlock, Funnel
from holdfast.text.questions import without_names

TOP = 10
DEPTH = RetrievalSettings().max_candidates
LARGER = (100_000, 1_000_000)
# So many questions of each set: a large one must not speak for all.
ASKED, ASKED_OF_LARGER = 120, 100
# An early exit is a trade: less work for a lossy order. Below this overlap the order is another one.
LEAST_OVERLAP = 0.90
NEVER = 1.0
# A threshold that fewer questions reach says nothing.
FEWEST = 20
# A store measures the funnel of a foreign model at these sizes, doubled from the first to the last.
FIRST_MEASURED, LAST_MEASURED = 8192, 65_536
NEAR, AMONG, MADE_TOGETHER = 5, 1_000, 20_000
FLOATS = NDArray[np.float32]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--embedder", default="minilm", choices=("minilm", "potion"))
    parser.add_argument("--vectors", type=Path)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    built = build_embedder(EmbeddingSettings(embedder=options.embedder))
    with tempfile.TemporaryDirectory() as folder:
        with CachedEmbedder.open(built, options.vectors or Path(folder) / "vectors.npz") as embedder:
            real, queries = embed(options.data, embedder)
        pools = [(real, queries), *((grown(real, rows), thinned(queries)) for rows in LARGER)]
        carried = built.space.startswith(CARRYING_MODELS)
        result = {
            "space": built.space,
            "real texts": len(real),
            "pools": [measured(*pool, carried=carried) for pool in pools],
            "early exit": early_exits(real, queries),
        }
    out = options.out or Path(__file__).parent / "results" / f"cascade-{options.embedder}.json"
    out.write_text(json.dumps(result, indent=2) + "\n")
    print(json.dumps(result, indent=2))


def embed(data: Path, embedder: Embedder) -> tuple[FLOATS, FLOATS]:
    """Return the vectors of all different texts, in an order of chance, and of some questions of every set."""
    texts: dict[str, None] = {}
    asked: list[str] = []
    for read in load_sets(data).sets:
        questions = []
        for haystack in read.haystacks:
            texts |= dict.fromkeys(
                f"{one.title}\n{one.text}" if one.title and one.author == "document" else one.text
                for one in haystack.messages
            )
            questions += [without_names(one.text, haystack.participants) for one in haystack.questions]
        asked += questions[:: max(1, len(questions) // ASKED)][:ASKED]
    asked = [question for question in asked if question not in texts]  # a turn may be a question: it finds itself
    chosen = list(texts)
    chunks = [chosen[i : i + 200] for i in range(0, len(chosen), 200)]
    rows = np.concatenate([embedder.embed_documents(chunk) for chunk in track(chunks, "embedding")])
    order = np.random.default_rng(0).permutation(len(rows))
    return unit(rows[order]), unit(np.stack([embedder.embed_query(text) for text in asked]))


def unit(rows: FLOATS) -> FLOATS:
    return (rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)).astype(np.float32)


def grown(real: FLOATS, size: int) -> FLOATS:
    """Return the rows and, up to `size`, others between one of them and one of the nearest of a sample."""
    random = np.random.default_rng(1)
    pool = np.empty((max(size, len(real)), real.shape[1]), dtype=np.float32)
    pool[: len(real)] = real
    for start in track(range(len(real), size, MADE_TOGETHER), f"growing to {size:,}"):
        ones = real[random.integers(len(real), size=min(MADE_TOGETHER, size - start))]
        others = real[random.integers(len(real), size=AMONG)]
        near = np.argpartition(-(ones @ others.T), NEAR, axis=1)[:, :NEAR]
        beside = others[near[np.arange(len(ones)), random.integers(NEAR, size=len(ones))]]
        share = random.uniform(0.3, 0.7, size=(len(ones), 1)).astype(np.float32)
        pool[start : start + len(ones)] = unit(share * ones + (1 - share) * beside)
    return pool


def thinned(queries: FLOATS) -> FLOATS:
    return queries[:: max(1, len(queries) // ASKED_OF_LARGER)]


def measured(pool: FLOATS, queries: FLOATS, *, carried: bool) -> dict[str, object]:
    """Return what the funnel of a store with these rows keeps of the exact ten best."""
    block = DenseBlock(pool.shape[1])
    for start in range(0, len(pool), MADE_TOGETHER):
        rows = pool[start : start + MADE_TOGETHER]
        block.add(np.arange(start, start + len(rows), dtype=np.int32), rows)
    funnel = CARRIED if carried else stored_funnel(block, len(pool))
    everything, recalls = np.ones(len(pool), dtype=np.bool_), []
    for query in track(queries, f"asking {len(pool):,}"):
        exact = nearest(pool @ query)
        places, _ = block.propose(query, everything, DEPTH, None, funnel)
        recalls.append(len(exact & {int(places[i]) for i in nearest(pool[places] @ query)}) / TOP)
    return {
        "rows": len(pool),
        "questions": len(queries),
        "handed on": funnel.width_for(len(pool), DEPTH) if funnel else len(pool),
        "recall@10": float(np.mean(recalls)),
    }


def stored_funnel(block: DenseBlock, rows: int) -> Funnel | None:
    size = FIRST_MEASURED
    while 2 * size <= min(rows, LAST_MEASURED):
        size *= 2
    return block.measure(np.arange(rows), size)


def nearest(scores: FLOATS) -> set[int]:
    return set(np.argsort(-scores, kind="stable")[:TOP].tolist())


def early_exits(pool: FLOATS, queries: FLOATS) -> dict[str, dict[str, float]]:
    """Return, for each tier, from which best score on it is sure enough."""
    exact, result = [nearest(pool @ query) for query in queries], {}
    for tier in (tier for tier in TIERS if tier < pool.shape[1]):
        rows, asked = (np.asarray(vectors.tier(some, tier), dtype=np.float32) for some in (pool, queries))
        found = [
            (float(s.max()), len(e & nearest(s)) / TOP) for e, s in zip(exact, map(rows.dot, asked), strict=True)
        ]
        result[str(tier)] = threshold(np.array(found))
    return result


def threshold(found: NDArray[np.float64]) -> dict[str, float]:
    """Return the smallest threshold whose exits keep enough of the exact ten best, and what it does elsewhere."""
    chosen, other = found[::2], found[1::2]
    exits = {float(t): chosen[chosen[:, 0] >= t, 1] for t in np.arange(0.0, 0.96, 0.01)}
    good = [t for t, kept in exits.items() if len(kept) >= FEWEST and kept.mean() >= LEAST_OVERLAP]
    best = good[0] if good else NEVER
    left = other[other[:, 0] >= best] if good else other[:0]
    return {
        "threshold": round(best, 2),
        "share of questions that exit": float(len(left) / len(other)),
        "overlap@10 of those": float(left[:, 1].mean()) if len(left) else 0.0,
        "overlap@10 of all questions": float(other[:, 1].mean()),
    }


if __name__ == "__main__":
    main()
