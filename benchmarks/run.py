"""Measure how fast Holdfast remembers and finds, and how much room it takes, beside bm25s and SQLite FTS5.

    python benchmarks/run.py                        # 10,000 and 100,000 units, a few minutes
    python benchmarks/run.py --quick --sizes 1000   # a look
    python benchmarks/report.py                     # the newest result as a page with plots

Everything is timed in one process by a monotonic clock, after a warm-up. The systems take turns, block by block,
so that whatever else the machine does falls on all of them alike: read the ratios before the milliseconds. Only
opening a store, and its memory, are measured in fresh processes, where no word has been analysed before.
"""

from __future__ import annotations

import argparse
import gc
import importlib.util
import json
import os
import platform
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from importlib.metadata import version
from pathlib import Path
from time import perf_counter
from typing import Any
from unittest import mock

import numpy as np
import synthetic
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

import holdfast.memory
from holdfast import Memory, Settings
from holdfast.analysis import analyse
from holdfast.analysis.query import profile_query
from holdfast.retrieval.lexical import LexicalStrategy
from holdfast.store.base import LexicalQuery, Store
from holdfast.store.sqlite import SqliteStore
from holdfast.types import FIELDS, Analysis, Budget, Deadline, Draft, SearchResult, Unit, View, Written

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results"
INSTALL = "pip install --group bench"
# The spec's two sizes: a heavy personal user, and far more than one person says in years.
SIZES = "10000,100000"
USER = "ada"
SHORT_COMMIT = 12
# The settings measured are the defaults, never the environment's or a local file's.
SETTINGS = Settings()
# After the last of a hundred thousand turns; a fixed clock gives every run the same ages.
NOW = synthetic.BEGIN + timedelta(days=3650)
MS = 1000.0
US = 1_000_000.0
# The share of calls at each end of an ingest that are compared: equal times mean linear growth.
END_SHARE = 0.1
# What a lexical stage is compared at: as many as `search` returns.
TOP = 20
# bm25s adds in 32 bits: its scores of a few tens are right to about this.
SAME_SCORE = 1e-4


@dataclass(frozen=True, slots=True)
class Effort:
    """How often each thing is done. 200 questions put ten of them beyond p95."""

    questions: int = 200
    rounds: int = 5
    warm_up: int = 20
    singles: int = 100
    opens: int = 3


# Enough to see that everything runs; too little to quote.
QUICK = Effort(questions=20, rounds=2, warm_up=3, singles=10, opens=1)


# ---------------------------------------------------------------------------------------------- timing


def summary(seconds: Sequence[float]) -> dict[str, float]:
    """Return the middle, the slow end and the fastest of some times."""
    p50, p95 = np.percentile(seconds, [50, 95])
    return {
        "p50_ms": round(float(p50) * MS, 4),
        "p95_ms": round(float(p95) * MS, 4),
        "min_ms": round(min(seconds) * MS, 4),
        "calls": len(seconds),
    }


def timed(call: Callable[[], object]) -> float:
    """Return the seconds of one call."""
    began = perf_counter()
    call()
    return perf_counter() - began


def in_turns(
    systems: dict[str, list[Callable[[], object]]], effort: Effort, advance: Callable[[], None]
) -> dict[str, dict[str, float]]:
    """Time every system on the same questions, a block of them at a time."""
    for calls in systems.values():
        for call in calls[: effort.warm_up]:
            call()
    settle()
    times: dict[str, list[float]] = {name: [] for name in systems}
    for begin in range(effort.rounds):
        for name, calls in systems.items():
            for call in calls[begin :: effort.rounds]:
                times[name].append(timed(call))
                advance()
    return {name: summary(found) for name, found in times.items()}


def settle() -> None:
    """Keep the garbage collector from walking the set-up again and again while a system is timed."""
    gc.collect()
    gc.freeze()


# ---------------------------------------------------------------------------------------------- ingest


class Stages:
    """Seconds spent in two stages of `remember`, taken at their own doors."""

    def __init__(self) -> None:
        self.analysis = 0.0
        self.store = 0.0

    def analyse(self, *args: Any, **kwargs: Any) -> Analysis:
        """Analyse one unit."""
        began = perf_counter()
        found = analyse(*args, **kwargs)
        self.analysis += perf_counter() - began
        return found


class WatchedStore:
    """A store whose writes are timed; everything else goes straight through."""

    def __init__(self, store: Store, stages: Stages) -> None:
        self._store = store
        self._stages = stages

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def put(self, drafts: Sequence[Draft]) -> list[Written]:
        """Write, and count the seconds: SQL, the durable commit, and the index that follows it."""
        began = perf_counter()
        written = self._store.put(drafts)
        self._stages.store += perf_counter() - began
        return written


def open_memory(path: Path) -> Memory:
    """Open a memory with the benchmark's settings and clock."""
    return Memory.open(path, settings=SETTINGS, now=lambda: NOW)


def open_watched(path: Path, stages: Stages) -> Memory:
    """Open a memory that tells its stages apart."""
    store = SqliteStore.open(path, SETTINGS.store, partial(analyse, settings=SETTINGS.analysis))
    with mock.patch.object(holdfast.memory, "analyse", stages.analyse):
        return Memory(WatchedStore(store, stages), SETTINGS, lambda: NOW)


def measure_ingest(path: Path, turns: list[synthetic.Turn], advance: Callable[[], None]) -> dict[str, Any]:
    """Remember every turn, a session per call, into a file, with the index loaded as in a running program."""
    stages = Stages()
    calls: list[float] = []
    talks = synthetic.sessions(turns)
    with open_watched(path, stages) as memory:
        memory.search("warm up", user=USER)  # loads the owner's index, which each call then brings up to date
        settle()
        for session, messages in talks:
            calls.append(timed(partial(memory.remember, messages, user=USER, session=session)))
            advance()
    total = sum(calls)
    ends = max(1, int(END_SHARE * len(calls)))
    per_unit = {"analysis": stages.analysis, "store": stages.store, "rest": total - stages.analysis - stages.store}
    return {
        "units_per_s": round(len(turns) / total, 1),
        "call": summary(calls),
        "stages_us_per_unit": {name: round(seconds * US / len(turns), 2) for name, seconds in per_unit.items()},
        "late_over_early": round(float(np.median(calls[-ends:]) / np.median(calls[:ends])), 3),
    }


def measure_findable(
    memory: Memory, turns: list[synthetic.Turn], folder: Path, effort: Effort, advance: Callable[[], None]
) -> dict[str, Any]:
    """Remember one turn and find it by its id, beside one bare durable commit of the same text."""
    commit = bare_commit(folder / "commit.db")
    times: dict[str, list[float]] = {"bare_commit": [], "remember": [], "remember_and_search": []}
    settle()
    for i, turn in enumerate(turns):
        message = synthetic.message(turn, i, NOW - timedelta(minutes=len(turns) - i))
        bare = timed(partial(commit, turn.text))
        wrote = timed(partial(memory.remember, [message], user=USER, session="singles"))
        began = perf_counter()
        found = memory.search(turn.rare_id, user=USER)
        searched = perf_counter() - began
        if not found or found[0].unit.text != turn.text:
            raise SystemExit(f"a turn was remembered and not found: {turn.text!r}")
        if i >= effort.warm_up:
            for name, seconds in zip(times, (bare, wrote, wrote + searched), strict=True):
                times[name].append(seconds)
        advance()
    return {name: summary(seconds) for name, seconds in times.items()}


def bare_commit(path: Path) -> Callable[[str], object]:
    """Return a function that commits one text durably: what SQLite asks of this disk at the least."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("CREATE TABLE texts (text TEXT)")
    return partial(_insert, connection)


def _insert(connection: sqlite3.Connection, text: str) -> object:
    return connection.execute("INSERT INTO texts VALUES (?)", (text,))


# ---------------------------------------------------------------------------------------------- search


def measure_search(
    memory: Memory, turns: list[synthetic.Turn], questions: list[str], folder: Path, effort: Effort,
    advance: Callable[[], None],
) -> dict[str, Any]:  # fmt: skip
    """Ask every system the same questions; the peers get theirs ready-made, Holdfast reads the text itself."""
    from peers import Bm25s, Fts5, match_any

    view = View(tenant=SETTINGS.store.tenant, user=USER, now=NOW, reference_time=NOW)
    units = {unit.text: unit for unit in memory.store.scan(view, order="oldest", limit=None)}
    terms = [_claim_terms(units[turn.text]) for turn in turns]
    profiles = [profile_query(question) for question in questions]

    began = perf_counter()
    bm25s = Bm25s(terms, SETTINGS.lexical.k1, SETTINGS.lexical.b)
    built_bm25s = perf_counter() - began
    fts5_path = folder / "fts5.db"
    began = perf_counter()
    fts5 = Fts5([turn.text for turn in turns], fts5_path)
    built_fts5 = perf_counter() - began

    strategy = LexicalStrategy(SETTINGS)

    def retrieve(profile: Any) -> object:
        deadline = Deadline.start(perf_counter, SETTINGS.retrieval.timeout_ms)
        budget = Budget(SETTINGS.retrieval.timeout_ms, SETTINGS.retrieval.max_candidates)
        return strategy.retrieve(profile, view, memory.store, budget, deadline)

    def propose(profile: Any) -> object:
        deadline = Deadline.start(perf_counter, SETTINGS.retrieval.timeout_ms)
        return memory.store.lexical_candidates(view, lexical_query(profile), TOP, deadline)

    systems: dict[str, list[Callable[[], object]]] = {
        "hybrid": [partial(memory.search, question, user=USER) for question in questions],
        "fast": [partial(memory.search, question, user=USER, profile="fast") for question in questions],
        "lexical_retrieve": [partial(retrieve, profile) for profile in profiles],
        "lexical_propose": [partial(propose, profile) for profile in profiles],
        "bm25s": [partial(bm25s.search, profile.terms) for profile in profiles],
        "fts5": [partial(fts5.search, match_any(question)) for question in questions],
    }
    times = in_turns(systems, effort, advance)
    result = {
        "times": times,
        "ratios": ratios(times),
        "bm25s_agreement": agreement(retrieve, bm25s.search, profiles, turns),
        "out_of_time": sum(_ran_out(memory.search(question, user=USER)) for question in questions),
        "build_s": {"bm25s": round(built_bm25s, 3), "fts5": round(built_fts5, 3)},
    }
    fts5.close()
    return result


def ratios(times: dict[str, dict[str, float]]) -> dict[str, dict[str, float]]:
    """Return Holdfast's time over each peer's: below 1 is faster than the peer."""
    ours = ("hybrid", "fast", "lexical_retrieve", "lexical_propose")
    return {
        f"{name}/{peer}": {
            point: round(times[name][f"{point}_ms"] / times[peer][f"{point}_ms"], 3) for point in ("p50", "p95")
        }
        for name in ours
        for peer in ("bm25s", "fts5")
    }


def agreement(
    retrieve: Callable[[Any], Any], peer: Callable[[Sequence[str]], list[int]], profiles: Sequence[Any],
    turns: list[synthetic.Turn],
) -> float:  # fmt: skip
    """Return the mean share of bm25s's hits that score no worse here than as many of the lexical stage's own.

    It must be 1, or nearly: otherwise the two did different work, and their times must not be compared. Scores are
    compared and not ids, because each breaks ties in its own way.
    """
    shares = []
    for profile in profiles:
        scores = {claim.unit.text: claim.raw_score for claim in retrieve(profile).candidates}
        bars = sorted(scores.values(), reverse=True)[:TOP]
        theirs = [turns[place].text for place in peer(profile.terms)[: len(bars)]]
        good = sum(scores.get(text, 0.0) >= bars[-1] - SAME_SCORE for text in theirs)
        shares.append(good / max(1, len(theirs)))
    return round(float(np.mean(shares)), 4)


def lexical_query(profile: Any) -> LexicalQuery:
    """Return what the lexical strategy asks a store for."""
    lexical = SETTINGS.lexical
    weights = tuple(lexical.weights[name] for name in FIELDS)
    return LexicalQuery(profile.terms, weights, lexical.k1, lexical.b, profile.needed_roles, lexical.role_boost)


def _claim_terms(unit: Unit) -> list[str]:
    """Return the stems of a turn's words; a turn has no other indexed field than its claim and its role."""
    return list(analyse(unit, SETTINGS.analysis).terms[FIELDS.index("claim")])


def _ran_out(result: SearchResult) -> bool:
    return any(found.exhausted_budget for found in result.trace.results)


# ------------------------------------------------------------------------------------- fresh processes


def measure_open(path: Path, question: str, effort: Effort, advance: Callable[[], None]) -> list[dict[str, float]]:
    """Open the file and search it in fresh processes, one after the other."""
    found = []
    for _ in range(effort.opens):
        command = [sys.executable, str(Path(__file__).resolve()), "--probe", str(path), question]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        found.append(json.loads(done.stdout))
        advance()
    return found


def probe(path: Path, question: str) -> dict[str, float]:
    """Open a store, search it once, and say what that took. Runs in a process of its own."""
    with open_memory(Path(":memory:")) as empty:  # imports and caches that no store is to blame for
        empty.remember("warm up", user=USER)
        empty.search("warm up", user=USER)
    gc.collect()
    before = resident_bytes()
    began = perf_counter()
    memory = open_memory(path)
    opened = perf_counter()
    memory.search(question, user=USER)
    searched = perf_counter()
    gc.collect()
    found = {"open": opened - began, "first_search": searched - opened, "resident": resident_bytes() - before}
    memory.close()
    return found


def resident_bytes() -> int:
    """Return the memory this process holds now; the kernel's own peak counter would count what was given back."""
    statm = Path("/proc/self/statm")
    if statm.exists():
        return int(statm.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    listed = subprocess.run(["ps", "-o", "rss=", "-p", str(os.getpid())], check=True, capture_output=True, text=True)
    return int(listed.stdout) * 1024


# ------------------------------------------------------------------------------------------- one size


def measure(size: int, folder: Path, effort: Effort, progress: Progress) -> dict[str, Any]:
    """Return everything measured with `size` units of one user."""
    generator = synthetic.Generator()
    turns = generator.turns(size)
    singles = generator.turns(effort.singles + effort.warm_up)
    questions = generator.questions(turns, effort.questions)
    path = folder / "memory.db"
    parts = ("ingest", "open", "search", "findable")
    totals = (-(-size // synthetic.MESSAGES_PER_SESSION), effort.opens, 6 * effort.questions, len(singles))
    tasks = {
        part: progress.add_task(f"{size:,} units: {part}", total=total)
        for part, total in zip(parts, totals, strict=True)
    }

    def step(part: str) -> Callable[[], None]:
        return lambda: progress.advance(tasks[part])

    result: dict[str, Any] = {"units": size}
    result["ingest"] = measure_ingest(path, turns, step("ingest"))
    disk = sum(file.stat().st_size for file in folder.glob("memory.db*"))
    probes = measure_open(path, questions[0], effort, step("open"))
    result["open"] = {
        "open": summary([found["open"] for found in probes]),
        "first_search": summary([found["first_search"] for found in probes]),
        "open_and_first_search": summary([found["open"] + found["first_search"] for found in probes]),
    }
    result["size"] = {
        "resident_bytes_per_unit": round(float(np.median([found["resident"] for found in probes])) / size, 1),
        "disk_bytes_per_unit": round(disk / size, 1),
        "text_bytes_per_unit": round(sum(len(turn.text) for turn in turns) / size, 1),
    }
    with open_memory(path) as memory:
        result["search"] = measure_search(memory, turns, questions, folder, effort, step("search"))
        result["findable"] = measure_findable(memory, singles, folder, effort, step("findable"))
    gc.unfreeze()
    return result


# --------------------------------------------------------------------------------------------- results


def describe(sizes: list[int], effort: Effort, command: str) -> dict[str, Any]:
    """Return what a reader needs to judge the numbers: the commit, the versions, the machine, the parameters."""
    commit = _git("rev-parse", "HEAD") or "unknown"
    return {
        "commit": commit[:SHORT_COMMIT],
        # Only what is measured counts: a page being written elsewhere in the folder changes no number.
        "dirty": bool(_git("status", "--porcelain", "--", "src", ":(glob)benchmarks/*.py")),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": command,
        "versions": {
            "python": platform.python_version(),
            "numpy": np.__version__,
            "sqlite": sqlite3.sqlite_version,
            "bm25s": version("bm25s"),
            "holdfast": version("holdfast"),
        },
        "machine": {
            "cpu": _cpu_model(),
            "cores": os.cpu_count(),
            "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
            "system": f"{platform.system()} {platform.machine()}",
        },
        "parameters": {
            "sizes": sizes,
            "seed": synthetic.SEED,
            "words_per_turn": synthetic.WORDS_PER_TURN,
            "words_per_question": synthetic.WORDS_PER_QUESTION,
            "messages_per_session": synthetic.MESSAGES_PER_SESSION,
            "top": TOP,
            **asdict(effort),
        },
    }


def _git(*arguments: str) -> str:
    """Return what git says, or nothing outside a repository."""
    try:
        done = subprocess.run(["git", "-C", str(ROOT), *arguments], check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError):
        return ""
    return done.stdout.strip()


def _cpu_model() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, platform.processor() or platform.machine())


LABELS = {
    "hybrid": "search, profile hybrid",
    "fast": "search, profile fast",
    "lexical_retrieve": "lexical stage: retrieve",
    "lexical_propose": "lexical stage: propose",
    "bm25s": "bm25s retrieve",
    "fts5": "FTS5 match",
    "bare_commit": "one bare commit",
    "remember": "one remember",
    "remember_and_search": "one remember, then found",
    "open": "open",
    "first_search": "first search",
    "open_and_first_search": "open and first search",
}


def show(result: dict[str, Any], console: Console) -> None:
    """Print one table per size."""
    for found in result["results"]:
        table = Table(title=f"{found['units']:,} units, commit {result['commit']}{' + changes' * result['dirty']}")
        for name in ("measure", "p50 ms", "p95 ms", "min ms", "÷ bm25s", "÷ FTS5"):
            table.add_column(name, justify="left" if name == "measure" else "right", no_wrap=True)
        search = found["search"]
        for name, times in search["times"].items():
            beside = [search["ratios"].get(f"{name}/{peer}", {}).get("p50", "") for peer in ("bm25s", "fts5")]
            _row(table, LABELS[name], times, *beside)
        for name, times in {**found["findable"], **found["open"]}.items():
            _row(table, LABELS[name], times)
        _row(table, f"remember a session of {synthetic.MESSAGES_PER_SESSION}", found["ingest"]["call"])
        console.print(table)
        ingest = found["ingest"]
        stages = ", ".join(f"{name} {value}" for name, value in ingest["stages_us_per_unit"].items())
        room = ", ".join(f"{name.partition('_')[0]} {value}" for name, value in found["size"].items())
        console.print(f"ingest {ingest['units_per_s']:,} units/s; µs per unit: {stages}")
        console.print(f"bytes per unit: {room}; agreement with bm25s {search['bm25s_agreement']}\n")


def _row(table: Table, name: str, times: dict[str, float], *beside: object) -> None:
    table.add_row(name, *(f"{times[f'{point}_ms']:,.3f}" for point in ("p50", "p95", "min")), *map(str, beside))


# ------------------------------------------------------------------------------------------------ main


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="few repetitions: to see that it runs, not to quote")
    parser.add_argument("--sizes", default=SIZES, help=f"units of the user, separated by commas (default {SIZES})")
    parser.add_argument("--out", type=Path, help="result file (default benchmarks/results/<commit>.json)")
    parser.add_argument("--dir", type=Path, help="folder for the databases (default: the system's temporary one)")
    parser.add_argument("--probe", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.probe:
        print(json.dumps(probe(Path(given.probe[0]), given.probe[1])))
        return
    if importlib.util.find_spec("bm25s") is None:
        raise SystemExit(f"bm25s is not installed; run: {INSTALL}")
    sizes = [int(size) for size in given.sizes.split(",")]
    effort = QUICK if given.quick else Effort()
    console = Console(stderr=True)
    # Where the databases and the result lie is this machine's affair.
    command = f"python benchmarks/run.py{' --quick' * given.quick}" + f" --sizes {given.sizes}" * (given.sizes != SIZES)
    result = describe(sizes, effort, command)
    before = os.getloadavg()[0]
    bar = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    result["results"] = []
    with Progress(SpinnerColumn(), TextColumn("{task.description}"), *bar, console=console) as progress:
        for size in sizes:
            with tempfile.TemporaryDirectory(dir=given.dir, prefix="holdfast-bench-") as folder:
                result["results"].append(measure(size, Path(folder), effort, progress))
    result["machine"]["load_before"], result["machine"]["load_after"] = before, os.getloadavg()[0]
    out = given.out or RESULTS / f"{result['commit']}.json"
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    show(result, Console())
    console.print(f"written to {out.name}")


if __name__ == "__main__":
    main(sys.argv[1:])
