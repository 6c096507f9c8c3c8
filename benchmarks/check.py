"""Guard the speed of every change: ratios that are taken in one short run, against a kept baseline.

    python benchmarks/check.py             # about a minute; fails where a ratio has doubled
    python benchmarks/check.py --rebase    # keeps what is measured now as the new baseline

Each ratio has its opponent in the same process and minute, and both are counted in seconds of the processor, so that
a busy machine or a slow disk changes neither. What passes is written down with a digest of the code on the hot path;
a test asks for it, so that no change of that code goes unmeasured.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import peers
import synthetic
from measuring import ONE_THREAD, ROOT, digest_hot_path, has_one_thread, time_by_turns, timed

from holdfast import Memory, Settings

BASELINE = ROOT / "benchmarks" / "baseline.json"
UNITS, QUESTIONS, ROUNDS = 1_000, 60, 3
USER, SESSION = "ada", "session-0"
# Two runs of the same code differ by a third; what doubles is slower.
FAIL_AT = 2.0
# A machine that stumbles once is asked again.
ATTEMPTS = 3
BUDGET = 2_000


def measure(folder: Path) -> dict[str, float]:
    """Return each ratio: Holdfast's median time over that of the least that could do the same."""
    generator = synthetic.Generator()
    turns = generator.turns(UNITS)
    questions = generator.questions(turns, QUESTIONS)
    embedder = synthetic.stand_in(turns, questions)
    plain, spent = peers.Sqlite(folder / "plain.db"), {"remember": [], "plain": []}
    with Memory.open(folder / "memory.db", settings=Settings().without_timeouts(), embedder=embedder) as memory:
        memory.search("warm up", user=USER)
        for number, (session, messages) in enumerate(synthetic.sessions(turns)):
            texts = [str(message["content"]) for message in messages]
            rows, start = embedder.embed_documents(texts), number * synthetic.MESSAGES_PER_SESSION
            spent["remember"].append(
                timed(partial(memory.remember, messages, user=USER, session=session), process_time)
            )
            spent["plain"].append(timed(partial(plain.add, start, texts, rows), process_time))
        plain.finish()
        asked = [(text, embedder.embed_query(text)) for text, _ in questions]
        systems: dict[str, Callable[[Any], object]] = {
            "search": lambda each: memory.search(each[0], user=USER, read=False),
            "fast": lambda each: memory.search(each[0], user=USER, profile="fast"),
            "assemble": lambda each: memory.assemble(each[0], user=USER, session=SESSION, budget=BUDGET, read=False),
            "plain search": lambda each: plain.search(*each),
        }
        time_by_turns(systems, asked[:ROUNDS], 1)
        spent |= time_by_turns(systems, asked, ROUNDS, clock=process_time)
        # Once: what the reader has said of a question is kept.
        reading = {"read": lambda each: memory.search(each[0], user=USER, read="once")}
        spent |= time_by_turns(reading, asked[ROUNDS:], 1, clock=process_time)
    file = sqlite3.connect(folder / "memory.db")
    spent["rewrite"] = [timed(partial(file.execute, "VACUUM"), process_time) for _ in range(ROUNDS)]
    file.close()
    spent["open"] = [
        timed(partial(open_and_search, folder / "memory.db", embedder), process_time) for _ in range(ROUNDS)
    ]
    spent |= time_starts(folder / "memory.db")
    middle = {name: float(np.median(seconds)) for name, seconds in spent.items()}
    return {
        "remember ÷ SQLite insert of the same texts and vectors": middle["remember"] / middle["plain"],
        "search (hybrid) ÷ numpy and FTS5 over the same units": middle["search"] / middle["plain search"],
        "search (fast) ÷ numpy and FTS5 over the same units": middle["fast"] / middle["plain search"],
        "assemble ÷ search (hybrid)": middle["assemble"] / middle["search"],
        "search that reads ÷ search (hybrid)": middle["read"] / middle["search"],
        "open and search ÷ rewrite of the file": middle["open"] / middle["rewrite"],
        "import holdfast ÷ import numpy": middle["import"] / middle["numpy"],
        "holdfast --version ÷ import numpy": middle["version"] / middle["numpy"],
        "holdfast search ÷ import numpy": middle["ask"] / middle["numpy"],
    }


def open_and_search(path: Path, embedder: synthetic.StandIn) -> None:
    with Memory.open(path, settings=Settings().without_timeouts(), embedder=embedder) as memory:
        memory.search("warm up", user=USER)


def time_starts(store: Path) -> dict[str, list[float]]:
    """Time programs from their first instruction to their end, by turns; the first turn is for the disk."""
    question = ["-m", "holdfast", "search", "--db", str(store), "--user", USER, "--profile", "fast", "warm up"]
    programs = {
        "numpy": ["-c", "import numpy"],
        "import": ["-c", "import holdfast"],
        "version": ["-m", "holdfast", "--version"],
        "ask": question,
    }
    spent: dict[str, list[float]] = {name: [] for name in programs}
    for _ in range(ROUNDS + 1):
        for name, arguments in programs.items():
            call = partial(subprocess.run, [sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
            spent[name].append(timed(call, children_time))
    return {name: seconds[1:] for name, seconds in spent.items()}


def children_time() -> float:
    """Return the seconds of the processor that the programs which have ended have taken."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def measure_best(attempts: int, passes: Callable[[dict[str, float]], bool]) -> dict[str, float]:
    """Return the lowest of each ratio over at most so many attempts, ending with the first that passes."""
    best: dict[str, float] = {}
    for _ in range(attempts):
        with tempfile.TemporaryDirectory(prefix="holdfast-check-") as folder:
            found = measure(Path(folder))
        best = {name: min(ratio, best.get(name, ratio)) for name, ratio in found.items()}
        if passes(best):
            break
    return best


def find_failures(ratios: dict[str, float], kept: dict[str, float]) -> list[str]:
    """Return what has become slower than the baseline allows."""
    return [
        f"{name}: {ratio:.2f}, and {kept[name]:.2f} before; at {FAIL_AT * kept[name]:.2f} it fails"
        for name, ratio in ratios.items()
        if name in kept and ratio >= FAIL_AT * kept[name]
    ]


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rebase", action="store_true", help="keep what is measured now as the baseline")
    parser.add_argument("--baseline", type=Path, default=BASELINE, help="default benchmarks/baseline.json")
    given = parser.parse_args(arguments)
    if not has_one_thread():
        os.execve(sys.executable, [sys.executable, __file__, *arguments], os.environ | ONE_THREAD)
    kept = json.loads(given.baseline.read_text(encoding="utf-8"))["ratios"] if given.baseline.exists() else {}
    code = digest_hot_path()
    attempts = ATTEMPTS if kept or given.rebase else 1
    ratios = measure_best(attempts, lambda found: not given.rebase and not find_failures(found, kept))
    for name, ratio in ratios.items():
        print(f"{ratio:8.2f}  {name} (baseline {kept.get(name, ratio):.2f})")
    failures = [] if given.rebase else find_failures(ratios, kept)
    if failures:
        raise SystemExit("slower than the baseline:\n" + "\n".join(failures))
    new = ratios if given.rebase else {**ratios, **kept}
    rounded = {name: round(new[name], 2) for name in ratios}
    content = {"code": code, "ratios": rounded}
    given.baseline.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print("passed; the digest of the code is written down")


if __name__ == "__main__":
    main(sys.argv[1:])
