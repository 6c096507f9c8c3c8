"""Derive the thresholds of the no-answer rule (C4) from questions asked of the right and of the wrong conversation.

    python benchmarks/refusal.py --data DIR [--out FILE]

DIR holds two-person conversations with evidence in the schema of `locomo/` (see `--help`). A question asked of its
own conversation has an answer; asked of the next one, it has none. Thresholds are chosen on the even conversations
(as many refused as possible while hardly any answerable one is) and reported on the odd ones; the result lists what
other choices would have cost.
"""

from __future__ import annotations

import argparse
import dataclasses
import gzip
import json
import re
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from rich.progress import track

from holdfast import Memory, Settings
from holdfast.ranking.fuse import nearness
from holdfast.settings import RefusalSettings

# Refusing an answerable question is the worse mistake: a caller can ignore a hit, not find one that is not there.
# Here every turn and most questions name a speaker; other memories have less in common with their questions.
KEPT = 0.998
OTHERS = (0.98, 0.99, 0.995, 1.0)
# Two strategies hand over at most 64 candidates each.
MOST = 128
SESSION = re.compile(r"session_\d+")
OPEN = dataclasses.replace(Settings(), refusal=RefusalSettings(enabled=False)).unhurried()


def remembered(conversation: dict) -> Memory:
    memory = Memory.open(":memory:", settings=OPEN)
    for name, turns in conversation.items():
        if SESSION.fullmatch(name):
            at = datetime.strptime(conversation[f"{name}_date_time"], "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)
            messages = [
                {"role": "user", "name": t["speaker"], "id": t["dia_id"], "content": f"{t['speaker']}: {t['text']}"}
                for t in turns
            ]
            memory.remember(messages, user="u", session=name, at=at)
    return memory


def evidence(memory: Memory, question: str) -> np.ndarray:
    """Return (coverage, cosine) of every candidate, which is what the rule looks at, padded to one length."""
    found = nearness(memory.search(question, user="u").trace.candidates)[:MOST]
    return np.array(found + [(0.0, 0.0)] * (MOST - len(found)))


def shares(points: np.ndarray, coverage: float, cosine: float) -> float:
    """Return the share of questions that would be answered."""
    return float(np.mean((points[:, :, 0] / coverage + points[:, :, 1] / cosine).max(axis=1) >= 1.0))


def chosen(sets: dict[tuple[int, bool], np.ndarray], least: float) -> dict[str, object]:
    """Return the thresholds that refuse most while `least` of the answerable even questions are kept."""
    # Up to 1: a unit that holds every word of the question is never too far from it. Up to .375: a paraphrase without
    # a word in common has a cosine of about .35 to .5, and these conversations hold too few to learn that from them.
    grid = [(c, s) for c in np.arange(0.3, 1.01, 0.05) for s in np.arange(0.15, 0.376, 0.025)]
    fitting = [(c, s) for c, s in grid if shares(sets[0, True], c, s) >= least]
    coverage, cosine = min(fitting, key=lambda pair: shares(sets[0, False], *pair))
    measured = {
        name: {
            "kept": shares(sets[half, True], coverage, cosine),
            "refused": 1 - shares(sets[half, False], coverage, cosine),
        }
        for half, name in enumerate(("even", "odd"))
    }
    return {"coverage": round(float(coverage), 3), "cosine": round(float(cosine), 3), **measured}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "refusal.json")
    options = parser.parse_args()
    with gzip.open(options.data / "locomo" / "locomo10.json.gz") as file:
        conversations = json.load(file)
    memories = [remembered(c["conversation"]) for c in track(conversations, "remembering")]
    points: dict[tuple[int, bool], list[np.ndarray]] = {}
    for i, conversation in enumerate(track(conversations, "asking")):
        asked = [qa["question"] for qa in conversation["qa"] if qa["category"] != 5 and qa["evidence"]]
        for answerable, memory in ((True, memories[i]), (False, memories[(i + 1) % len(memories)])):
            points.setdefault((i % 2, answerable), []).extend(evidence(memory, question) for question in asked)
    sets = {key: np.array(found) for key, found in points.items()}
    result = chosen(sets, KEPT) | {
        "questions": {
            f"{'even' if k[0] == 0 else 'odd'} {'own' if k[1] else 'other'}": len(v) for k, v in sets.items()
        },
        "other choices": {str(kept): chosen(sets, kept) for kept in OTHERS},
    }
    options.out.write_text(json.dumps(result, indent=2) + "\n")
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
