"""What compacting every session of every chat does: turns → summaries, tokens saved, confidence.

    python benchmarks/compaction.py DATA [--only NAME] [--vectors FOLDER]

Everything but the last four turns of a session is compacted. Writes benchmarks/results/compaction.json, from which
`scripts/figures.py` takes its table; what compaction does to recall and survival is measured by
`holdfast eval --data DATA --compacted`.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from holdfast import Settings
from holdfast.eval.datasets import load_sets
from holdfast.eval.run import CachedEmbedder
from holdfast.eval.systems import Product, ProductReader
from holdfast.models import build_embedder
from holdfast.types import digest

RESULTS = Path(__file__).resolve().parent / "results" / "compaction.json"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--vectors", type=Path, default=Path("holdfast-eval/vectors"))
    given = parser.parse_args()
    settings = Settings()
    real = build_embedder(settings.embedding)
    rows = {}
    for data in load_sets(given.data, given.only).sets:
        if not data.chat:
            continue
        total = dict.fromkeys(("messages", "turns", "summaries", "tokens_before", "tokens_after", "declined"), 0)
        confidences: list[float] = []
        for haystack in data.haystacks:
            last = max(haystack.questions, key=lambda question: question.visible)
            file = given.vectors / f"{digest(data.name, haystack.id, haystack.messages[0].text)}.npz"
            cache = given.vectors / digest(real.space) / file.name
            with (
                CachedEmbedder.open(real, cache) as embedder,
                Product("compacted", settings, compacted=True).read(haystack, embedder) as reader,
            ):
                assert isinstance(reader, ProductReader)
                reader.rank(last)
            for done in reader.compactions:
                total["turns"] += done.turns
                total["summaries"] += len(done.summaries)
                total["declined"] += done.declined
                total["tokens_before"] += sum(one.tokens_before for one in done.made)
                total["tokens_after"] += sum(one.tokens_after for one in done.made)
                confidences += [one.confidence for one in done.made]
            total["messages"] += last.visible
        rows[data.name] = {**total, "confidence": round(sum(confidences) / max(len(confidences), 1), 4)}
        print(data.name, rows[data.name], flush=True)
    RESULTS.write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
