"""What symbolic closure (C8) costs as facts pile up: on one symbol, and elsewhere in the store.

    python benchmarks/closure.py      # writes benchmarks/results/closure.json and docs/img/bench-closure.svg

A bridge of three facts joins the two things that the question names. Either one of them has n further facts, half of
which lead on (the hub), or n facts lie elsewhere. The peer does what the reference system does, in the same language
and process: it collects the facts around the seeds afresh for every question, tries every pair of facts for every
rule, and keeps the 32 proofs with the highest raw scores, stated facts included. The two
take turns; what counts is processor time, so that other work on the machine does not.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

import numpy as np
import report

from holdfast.kernels.closure import RULES, Limits, derive_closure
from holdfast.kernels.triples import FactIndex, QueryTerms, TripleKey

Found = TypeVar("Found")
ROOT = Path(__file__).resolve().parents[1]
BRIDGE = (("harbour", "uses", "crane"), ("crane", "provides", "lift"), ("lift", "relevant_for", "trade"))
GOAL = ("harbour", "relevant_for", "trade")
ASKED = ("harbour", "trade")
CONFIDENCE = 0.9
OUR_ROUNDS = 20
# Around so many facts the peer takes seconds for one question and is asked once, else a few times.
PEER_ROUNDS, PEER_SLOW = 3, 2_000


def hub(count: int) -> list[TripleKey]:
    """Return the bridge and `count` facts on its first symbol; half of them lead on, one fact further."""
    busy = [("harbour", "uses", f"tool {i}") for i in range(count)]
    return [*busy, *((f"tool {i}", "provides", f"gain {i}") for i in range(0, count, 2)), *BRIDGE]


def elsewhere(count: int) -> list[TripleKey]:
    """Return the bridge, a hundred facts around it, and `count` facts that have nothing to do with it."""
    near = [("harbour", "depends_on", f"pier {i}") for i in range(100)]
    far = [(f"thing {i}", ("uses", "provides", "causes")[i % 3], f"thing {i + 1}") for i in range(count)]
    return [*near, *far, *BRIDGE]


def indexed(facts: Iterable[TripleKey]) -> FactIndex:
    index = FactIndex(str.split)
    for number, key in enumerate(facts):
        index.add(f"u{number}", key, CONFIDENCE)
    return index


def ours(index: FactIndex) -> tuple[bool, int]:
    wanted = QueryTerms(frozenset(ASKED), " ".join(ASKED), str.split)
    closure = derive_closure(index, wanted, RULES, Limits(), lambda: False)
    return GOAL in {standing.proof.key for standing in closure.standings}, closure.facts


def naive(facts: list[TripleKey]) -> bool:
    """Return whether the bridge is among the 32 best proofs of joins that try every pair."""
    near = _around(facts, hops=3)
    known = dict.fromkeys(near, CONFIDENCE)
    for _ in range(3):
        found = dict(known)
        for rule in RULES:
            first, second = rule.body
            for a in known:
                if a[1] == first.relation:
                    for b in known:
                        if b[1] == second.relation and a[2] == b[0] and a != b:
                            head = (a[0], rule.head.relation, b[2])
                            if head not in near:
                                found[head] = max(found.get(head, 0.0), known[a] * known[b] * rule.weight)
        if len(found) == len(known) or len(found) - len(near) >= 64:
            known = found
            break
        known = found
    return GOAL in sorted(known, key=lambda key: (-known[key], key))[:32]


def _around(facts: list[TripleKey], hops: int) -> set[TripleKey]:
    beside: dict[str, list[TripleKey]] = {}
    for key in facts:
        beside.setdefault(key[0], []).append(key)
        beside.setdefault(key[2], []).append(key)
    near: set[TripleKey] = {key for symbol in ASKED for key in beside[symbol]}
    for _ in range(hops):
        near |= {key for symbol in {end for key in near for end in (key[0], key[2])} for key in beside[symbol]}
    return near


def measured(facts: list[TripleKey]) -> dict[str, object]:
    """Return times and what was found, ours and the peer's by turns."""
    index = indexed(facts)
    peer_rounds = PEER_ROUNDS if len(_around(facts, 3)) <= PEER_SLOW else 1
    spent: dict[str, list[float]] = {"ours": [], "peer": []}
    found, read = ours(index)
    seen = False
    for number in range(OUR_ROUNDS):
        spent["ours"].append(timed(lambda: ours(index))[0])
        if number < peer_rounds:
            took, seen = timed(lambda: naive(facts))
            spent["peer"].append(took)
    return {
        "facts": len(facts), "facts_read": read, "ours_ms": percentiles(spent["ours"]), "bridge_found": found,
        "peer_ms": percentiles(spent["peer"]), "peer_bridge_found": seen,
    }  # fmt: skip


def timed(call: Callable[[], Found]) -> tuple[float, Found]:
    began = time.process_time()
    found = call()
    return (time.process_time() - began) * 1000.0, found


def percentiles(values: list[float]) -> dict[str, float]:
    return {"p50": round(float(np.percentile(values, 50)), 2), "p95": round(float(np.percentile(values, 95)), 2)}


def plot(result: dict, file: Path) -> None:
    lines = (
        ("hub", "ours_ms", "closure, facts on one symbol", "ours", "-"),
        ("elsewhere", "ours_ms", "closure, facts elsewhere", "ours_light", "-"),
        ("hub", "peer_ms", "every pair, facts on one symbol", "peer", "--"),
        ("elsewhere", "peer_ms", "every pair, facts elsewhere", "rest", "--"),
    )

    def draw_on(axes) -> None:
        for part, name, label, colour, style in lines:
            points = zip(*((int(n), row[name]["p50"]) for n, row in result[part].items()), strict=True)
            axes.plot(*points, style, color=report.COLOURS[colour], marker="o", linewidth=2, label=label)
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel("further facts")
        axes.set_ylabel("milliseconds of one core, p50")
        axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2, frameon=False)

    report.draw(6, file, draw_on)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks" / "results" / "closure.json")
    parser.add_argument("--plot", type=Path, default=ROOT / "docs" / "img" / "bench-closure.svg")
    parser.add_argument("--hubs", default="10,100,1000,10000", help="facts on one symbol")
    parser.add_argument("--elsewhere", default="10,100,1000,10000,100000", help="facts elsewhere")
    given = parser.parse_args()
    result: dict[str, object] = {"python": platform.python_version(), "cores": os.cpu_count()}
    result["hub"] = {size: measured(hub(int(size))) for size in given.hubs.split(",")}
    result["elsewhere"] = {size: measured(elsewhere(int(size))) for size in given.elsewhere.split(",")}
    given.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    plot(result, given.plot)
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
