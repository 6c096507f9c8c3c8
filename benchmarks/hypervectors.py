"""Measure what binding words to their places does to hypervectors (C5): recall of evidence turns in the top ten.

    python benchmarks/hypervectors.py --data DIR [--out FILE]

DIR holds conversations in the schema of `locomo/`; questions of categories 1 to 4 with evidence are asked of their
own conversation.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
from pathlib import Path

import numpy as np
from rich.progress import track

from holdfast import Memory, Settings

SESSION = re.compile(r"session_\d+")
ADVERSARIAL = 5
# Nothing but hypervectors, nothing cut, and as much time as they want.
ALONE = {
    "embedding.embedder": "none",
    "fast.strategies": ["hdc-vsa"],
    "fast.min_score": 0,
    "fast.gap": 0,
    "fast.max_results": 10,
    "retrieval.timeout_ms": 60_000,
}


def recall(conversation: dict, settings: Settings) -> list[float]:
    talk, found = conversation["conversation"], []
    with Memory.open(":memory:", settings=settings) as memory:
        for name, turns in talk.items():
            if SESSION.fullmatch(name):
                messages = [{"content": f"{t['speaker']}: {t['text']}", "id": t["dia_id"]} for t in turns]
                memory.remember(messages, user="u", session=name)
        for qa in conversation["qa"]:
            gold = set(qa["evidence"])
            if gold and qa["category"] != ADVERSARIAL:
                hits = memory.search(qa["question"], user="u", profile="fast")
                found.append(len(gold & {hit.unit.message_id for hit in hits}) / len(gold))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "hypervectors.json")
    given = parser.parse_args()
    with gzip.open(given.data / "locomo" / "locomo10.json.gz") as file:
        conversations = json.load(file)
    result = {}
    for name, positional in (("with places", True), ("without places", False)):
        settings = Settings.load({**ALONE, "hyper.positional": positional}, environ={})
        recalls = [recall(one, settings) for one in track(conversations, name)]
        result[f"recall@10 {name}, even conversations"] = float(np.mean(np.concatenate(recalls[::2])))
        result[f"recall@10 {name}, odd conversations"] = float(np.mean(np.concatenate(recalls[1::2])))
    given.out.write_text(json.dumps(result, indent=2) + "\n")
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
