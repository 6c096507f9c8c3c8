"""Derive the cosines at which two texts say the same (`gate.similar`, `gate.saturated`), per shipped embedder.

    python scripts/derive_gate.py

`gate_pairs.json` holds triples written for this: a statement, the same in other words, and another statement on the
same topic. Unrelated pairs are statements of different triples. Two limits are printed for each embedder:
`similar` separates paraphrases from same-topic pairs best (balanced accuracy), `saturated` is the lowest cosine that
lets at most 5 % of the same-topic pairs through, because a unit taken for held already is never promoted.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from holdfast.models import build_embedder
from holdfast.settings import EmbeddingSettings

PAIRS = Path(__file__).resolve().parent / "gate_pairs.json"
# Far enough that neighbours in the list, which may share a subject, do not meet.
APART = 7
LET_THROUGH = 0.05
STEP = 0.01
FLOATS = NDArray[np.float64]


def cosines(embedder: str, triples: Sequence[tuple[str, str, str]]) -> dict[str, FLOATS]:
    """Return the cosines of every kind of pair."""
    built = build_embedder(EmbeddingSettings(embedder=embedder, threads=1))
    assert built is not None
    stated, same, topic = (
        built.embed_documents([triple[place] for triple in triples]).astype(np.float64) for place in range(3)
    )
    return {
        "same": (stated * same).sum(axis=1),
        "topic": (stated * topic).sum(axis=1),
        "unrelated": (stated * np.roll(stated, APART, axis=0)).sum(axis=1),
    }


def balanced(found: dict[str, FLOATS], limit: float) -> float:
    """Return the mean of the paraphrases kept and the same-topic pairs refused."""
    return float(((found["same"] >= limit).mean() + (found["topic"] < limit).mean()) / 2)


def derive(found: dict[str, FLOATS]) -> tuple[float, float]:
    """Return `similar` and `saturated`; of limits that separate alike, the middle one."""
    limits = np.round(np.arange(0.0, 1.0 + STEP / 2, STEP), 2)
    scores = np.array([balanced(found, limit) for limit in limits])
    best = limits[scores >= scores.max() - 1e-12]
    similar = float(best[len(best) // 2])
    strict = [float(limit) for limit in limits if (found["topic"] >= limit).mean() <= LET_THROUGH]
    return similar, max(similar, strict[0])


def main() -> None:
    """Print two tables: the cosines by kind of pair, and the limits with what they do."""
    triples = [(a, b, c) for a, b, c in json.loads(PAIRS.read_text(encoding="utf-8"))]
    measured = {name: cosines(name, triples) for name in ("minilm", "potion")}
    print("| embedder | pairs | n | 5 % | median | 95 % |\n|---|---|---|---|---|---|")
    for name, found in measured.items():
        for kind, values in found.items():
            low, middle, high = (f"{value:.2f}" for value in np.quantile(values, (0.05, 0.5, 0.95)))
            print(f"| {name} | {kind} | {len(values)} | {low} | {middle} | {high} |")
    print("\n| embedder | setting | cosine | balanced accuracy | same kept | topic kept | unrelated kept |")
    print("|---|---|---|---|---|---|---|")
    for name, found in measured.items():
        derived = derive(found)
        rows = (("similar", derived[0]), ("saturated", derived[1]), ("reference", 0.80), ("reference", 0.85))
        for setting, limit in rows:
            kept = [f"{(found[kind] >= limit).mean():.2f}" for kind in ("same", "topic", "unrelated")]
            print(f"| {name} | {setting} | {limit:.2f} | {balanced(found, limit):.3f} | {' | '.join(kept)} |")


if __name__ == "__main__":
    main()
