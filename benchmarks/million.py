"""One user with a million units: how remembering, finding, memory and opening grow.

    python benchmarks/million.py [--units 1000000] [--out FILE]

Turns are the made-up ones of `synthetic.py`, their vectors random (a model would take an hour and a half), written
through `Memory.remember` like any other. Takes about ten minutes and four gigabytes. BLAS is held to one thread.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy is loaded: a second thread stalls on busy cores

import argparse
import json
import resource
import tempfile
import time
from pathlib import Path

import numpy as np
import synthetic
from rich.progress import Progress

from holdfast import Memory, Settings

PER_CALL = 500
QUESTIONS = 100
KILOBYTE = 1024


class RandomVectors:
    """An embedder whose vectors mean nothing: only their number and size matter here."""

    space, dims = "random/384/none/1", 384

    def __init__(self) -> None:
        self._chance = np.random.default_rng(synthetic.SEED)

    def embed_documents(self, texts):
        rows = self._chance.standard_normal((len(texts), self.dims), dtype=np.float32)
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)

    def embed_query(self, text):
        return self.embed_documents([text])[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--units", type=int, default=1_000_000)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "million.json")
    given = parser.parse_args()
    turns = synthetic.Generator().turns(given.units)
    asked = [" ".join(turn.text.split()[:7]) for turn in turns[:: max(1, given.units // QUESTIONS)]][:QUESTIONS]
    settings, result = Settings(), {"units": given.units}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "million.db"
        with Memory.open(path, settings=settings, embedder=RandomVectors()) as memory:
            memory.search("anything", user="u", profile="fast")  # from here on the index follows every call
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            tenths = remember(memory, turns)
            result["units per second, first tenth and last"] = [tenths[0], tenths[-1]]
            grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
            result["resident bytes per unit"] = grown * KILOBYTE / given.units
            for profile in ("fast", "hybrid"):
                result[f"search {profile} ms, p50 and p95"] = searched(memory, asked, profile)
            started = time.perf_counter()
        result["seconds to close, snapshot written"] = time.perf_counter() - started
        result["bytes on disk per unit, store and snapshot"] = [
            path.stat().st_size / given.units,
            Path(f"{path}.index").stat().st_size / given.units,
        ]
        started = time.perf_counter()
        with Memory.open(path, settings=settings, embedder=RandomVectors()) as memory:
            memory.search(asked[0], user="u")
            result["seconds to open and search, from the snapshot"] = time.perf_counter() - started
    given.out.write_text(json.dumps(result, indent=2) + "\n")
    print(json.dumps(result, indent=2))


def remember(memory: Memory, turns: list[synthetic.Turn]) -> list[float]:
    """Return units per second, tenth by tenth."""
    speeds, tenth = [], max(PER_CALL, len(turns) // 10)
    with Progress() as progress:
        task = progress.add_task("remembering", total=len(turns))
        for begin in range(0, len(turns), tenth):
            started = time.perf_counter()
            piece = turns[begin : begin + tenth]
            for start in range(0, len(piece), PER_CALL):
                batch = piece[start : start + PER_CALL]
                messages = [
                    {"role": "user", "content": turn.text, "id": f"{begin + start + i}"}
                    for i, turn in enumerate(batch)
                ]
                memory.remember(messages, user="u", session=f"s{(begin + start) // PER_CALL}")
                progress.advance(task, len(batch))
            speeds.append(len(piece) / (time.perf_counter() - started))
    return speeds


def searched(memory: Memory, asked: list[str], profile: str) -> list[float]:
    """Return p50 and p95 of one search, in milliseconds."""
    taken = []
    for question in asked:
        started = time.perf_counter()
        memory.search(question, user="u", profile=profile)
        taken.append((time.perf_counter() - started) * 1000)
    return [float(np.percentile(taken, share)) for share in (50, 95)]


if __name__ == "__main__":
    main()
