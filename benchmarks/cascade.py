"""Measure the Matryoshka cascade (C10) on real turns: the funnel's recall, and thresholds for the early exit.

    python benchmarks/cascade.py --data DIR [--embedder minilm|potion] [--out FILE]

DIR holds conversations in the schema of `locomo/`. All turns form one pool; every third question is asked of it. The
funnel's recall@10 is against exact search at full length. An early exit is allowed when the best score at a tier
reaches its threshold: the smallest one whose exits keep 90 % of the exact top ten, chosen on half of the questions
and reported on the other half.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
from pathlib import Path

import numpy as np
from rich.progress import track

from holdfast.kernels import vectors
from holdfast.models import build_embedder
from holdfast.settings import EmbeddingSettings
from holdfast.store.blocks import CARRIED, CARRYING_MODELS, TIERS, DenseBlock

SESSION = re.compile(r"session_\d+")
TOP = 10
# An early exit is a trade: less work for a lossy order. Below this overlap the order is another one.
LEAST_OVERLAP = 0.90
NEVER = 1.0
# A threshold that fewer questions reach says nothing.
FEWEST = 20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--embedder", default="minilm", choices=("minilm", "potion"))
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    with gzip.open(options.data / "locomo" / "locomo10.json.gz") as file:
        conversations = json.load(file)
    turns = [
        f"{turn['speaker']}: {turn['text']}"
        for c in conversations
        for name, session in c["conversation"].items()
        if SESSION.fullmatch(name)
        for turn in session
    ]
    questions = [qa["question"] for c in conversations for qa in c["qa"]][::3]
    embedder = build_embedder(EmbeddingSettings(embedder=options.embedder))
    chunks = [turns[i : i + 200] for i in range(0, len(turns), 200)]
    matrix = np.concatenate([embedder.embed_documents(chunk) for chunk in track(chunks, "embedding turns")])
    queries = embedder.embed_documents(questions)
    block = DenseBlock(embedder.dims)
    block.add(np.arange(len(matrix), dtype=np.int32), matrix)
    everything = np.ones(len(matrix), dtype=np.bool_)
    carries = embedder.space.startswith(CARRYING_MODELS)
    funnel = CARRIED if carries else block.measure(np.arange(len(matrix)), len(matrix))
    recalls, tiers = [], {tier: [] for tier in TIERS if tier < embedder.dims}
    for query in track(queries, "asking"):
        exact = set(np.argsort(-vectors.cosines(matrix, query, embedder.dims), kind="stable")[:TOP].tolist())
        places, _ = block.propose(query, everything, 100, None, funnel)
        rescored = vectors.cosines(matrix[places], query, embedder.dims)
        recalls.append(len(exact & set(places[np.argsort(-rescored)[:TOP]].tolist())) / TOP)
        for tier, found in tiers.items():
            scores = vectors.cosines(matrix, query, tier)
            found.append((float(scores.max()), len(exact & set(np.argsort(-scores)[:TOP].tolist())) / TOP))
    result = {
        "space": embedder.space,
        "turns": len(turns),
        "questions": len(questions),
        "funnel width": funnel.width_for(len(matrix), 100),
        "funnel recall@10": float(np.mean(recalls)),
        "early exit": {str(tier): threshold(np.array(found)) for tier, found in tiers.items()},
    }
    out = options.out or Path(__file__).parent / "results" / f"cascade-{options.embedder}.json"
    out.write_text(json.dumps(result, indent=2) + "\n")
    print(json.dumps(result, indent=2))


def threshold(found: np.ndarray) -> dict[str, float]:
    """Return the smallest threshold whose exits keep enough of the exact top ten, and what it does elsewhere."""
    chosen, other = found[::2], found[1::2]
    candidates = np.arange(0.4, 0.96, 0.01)
    exits = {float(t): chosen[chosen[:, 0] >= t, 1] for t in candidates}
    good = [t for t, kept in exits.items() if len(kept) >= FEWEST and kept.mean() >= LEAST_OVERLAP]
    best = good[0] if good else NEVER
    left = other[other[:, 0] >= best]
    return {
        "threshold": round(best, 2),
        "share of questions that exit": float(len(left) / len(other)),
        "overlap@10 of those": float(left[:, 1].mean()) if len(left) else 0.0,
        "overlap@10 of all questions": float(other[:, 1].mean()),
    }


if __name__ == "__main__":
    main()
