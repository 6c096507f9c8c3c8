"""What assembling a context costs, stage by stage: one user with 10,000 units, 2,000 tokens, the shipped embedder.

    python benchmarks/assembly.py        # writes benchmarks/results/assembly.json; about two minutes

Every stage of `recall.assemble` is timed as the pipeline names it; the rest of the call (rules, the session's last
turns, access counts) is what is left of the whole.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
from synthetic import Generator, sessions

from holdfast import Memory, recall
from holdfast.settings import Settings

RESULT = Path(__file__).parent / "results" / "assembly.json"
UNITS, QUESTIONS, BUDGET = 10_000, 200, 2_000
STAGES = {
    "plan_tail": "rules and tail",
    "profiled": "question (embedded)",
    "retrieved": "strategies",
    "_found": "pool, fusion and stages",
    "prospects_of": "prospects",
    "project": "projection",
    "fill": "packing and rendering",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=RESULT)
    out = parser.parse_args().out
    start = datetime(2026, 1, 1, tzinfo=UTC)
    generator = Generator()
    turns = generator.turns(UNITS)
    questions = [question for question, _ in generator.questions(turns, QUESTIONS)]
    with Memory.open(":memory:", settings=Settings(), now=lambda: start + timedelta(days=400)) as memory:
        told = sessions(turns)
        for number, (session, messages) in enumerate(told, start=1):
            memory.remember(messages, user="ana", session=session)
            print(f"\r{number:,} of {len(told):,} sessions", end="", flush=True)
        print()
        last = told[-1][0]
        for question in questions[:10]:
            memory.assemble(question, user="ana", session=last, budget=BUDGET)
        whole = [
            timed(lambda q=question: memory.assemble(q, user="ana", session=last, budget=BUDGET))
            for question in questions
        ]
        spent = by_stage(memory, questions, last)
    result = {
        "units": UNITS, "questions": QUESTIONS, "budget": BUDGET, "python": platform.python_version(),
        "cores": os.cpu_count(), "whole_ms": percentiles(whole),
        "stages_ms": {label: percentiles(spent[name]) for name, label in STAGES.items()},
    }  # fmt: skip
    out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(result, indent=1))


def by_stage(memory: Memory, questions: list[str], last: str) -> dict[str, list[float]]:
    """Return the milliseconds of each stage, question by question."""
    spent: dict[str, list[float]] = {name: [] for name in STAGES}
    plain = {name: getattr(recall, name) for name in STAGES}

    def watched(name: str) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            began = time.perf_counter()
            try:
                return plain[name](*arguments, **named)
            finally:
                spent[name].append((time.perf_counter() - began) * 1000.0)

        return call

    for name in STAGES:
        setattr(recall, name, watched(name))
    try:
        for question in questions:
            memory.assemble(question, user="ana", session=last, budget=BUDGET)
    finally:
        for name, stage in plain.items():
            setattr(recall, name, stage)
    return spent


def timed(call: Callable[[], object]) -> float:
    began = time.perf_counter()
    call()
    return (time.perf_counter() - began) * 1000.0


def percentiles(values: list[float]) -> dict[str, float]:
    return {"p50": round(float(np.percentile(values, 50)), 2), "p95": round(float(np.percentile(values, 95)), 2)}


if __name__ == "__main__":
    main()
