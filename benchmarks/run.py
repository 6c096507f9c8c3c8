"""Measure how fast Holdfast remembers and finds, and how much room it takes, beside bm25s, SQLite FTS5 and faiss.

    python benchmarks/run.py                                       # 10,000 and 100,000 units, some minutes
    python benchmarks/run.py --quick --sizes 1000 --vectors 1000   # a look
    python benchmarks/report.py                     # the newest result as a page with plots

Everything is timed in one process by a monotonic clock, after a warm-up. The systems take turns, block by block,
so that whatever else the machine does falls on all of them alike: read the ratios before the milliseconds. Only
opening a store, its memory, and the vectors beside faiss are measured in fresh processes, where no word has been
analysed before.

Products of matrices are held to one thread. With the libraries' default of one for each core, a question waits for
milliseconds whenever other work holds a core, and the numbers would tell about that work.

The shipped models embed a few hundred texts and are timed by themselves. Everywhere else a stand-in looks up vectors
that were made up beforehand, so that what is measured is Holdfast and not the model.
"""

from __future__ import annotations

import argparse
import gc
import hashlib
import importlib.util
import json
import os
import platform
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from importlib.metadata import version
from pathlib import Path
from time import perf_counter
from typing import Any
from unittest import mock

import meaning
import numpy as np
import synthetic
import vectors
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

import holdfast
import holdfast.memory
from holdfast import Memory, Settings
from holdfast.derivation import derivation
from holdfast.language import analyse
from holdfast.language.query import profile_query
from holdfast.models.embedder import Embedder
from holdfast.retrieval.dense import DenseStrategy
from holdfast.retrieval.lexical import LexicalStrategy
from holdfast.store.contract import DenseQuery, LexicalQuery, Proposal, Store
from holdfast.store.sqlite import SqliteStore
from holdfast.types import (
    FIELDS,
    Analysis,
    Budget,
    Deadline,
    Draft,
    QueryProfile,
    RetrievalResult,
    Unit,
    View,
    Written,
)

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results"
INSTALL = "pip install --group bench"
# The spec's two sizes: a heavy personal user, and far more than one person says in years.
SIZES = "10000,100000"
# Vectors alone are made up in seconds, so that they can go on to a million.
VECTOR_SIZES = "10000,100000,1000000"
USER = meaning.USER
SHORT_COMMIT = 12
# The settings measured are the defaults, never the environment's or a local file's.
# The time of a complete answer is what is measured: a busy machine must not make answers short and quick.
SETTINGS = Settings().unhurried()
# What a ratio may be taken over, with its name in tables.
PEERS = {"bm25s": "bm25s", "bm25s_select": "bm25s+", "fts5": "FTS5"}
OURS = {
    "hybrid": "search, profile hybrid",
    "fast": "search, profile fast",
    "lexical_retrieve": "lexical stage: retrieve",
    "lexical_propose": "lexical stage: propose",
}
# What no lexical peer can be compared with.
MEANING = {"dense_retrieve": "dense stage: retrieve", "dense_propose": "dense stage: propose"}
SYSTEMS = len(OURS) + len(MEANING) + len(PEERS)
# At larger sizes filling the cache of hypervectors alone takes longer than everything else.
HYPER_UNITS = 10_000
# One word that few units have lets hybrid call for hypervectors, until they are there: a few such questions show it.
RARE_QUESTIONS = 3
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
    sessions: int = 20


# Enough to see that everything runs; too little to quote.
QUICK = Effort(questions=20, rounds=2, warm_up=3, singles=10, opens=1, sessions=1)


@dataclass(frozen=True, slots=True)
class Question:
    """One question, as each system takes it."""

    text: str
    profile: QueryProfile
    match: str
    vector: Any


Ask = Callable[[Question], Any]


def question_of(text: str, embedder: Embedder) -> Question:
    """Prepare a question."""
    from peers import match_any

    vector = embedder.embed_query(text)
    profile = replace(profile_query(text), vector=vector, space=embedder.space)
    return Question(text, profile, match_any(text), vector)


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
    systems: dict[str, Ask], asked: Sequence[Question], warm_up: Sequence[Question], rounds: int,
    advance: Callable[[], None],
) -> dict[str, dict[str, float]]:  # fmt: skip
    """Time every system on the same questions, a block of them at a time.

    Each begins at another question: what one system has just read would otherwise lie ready for the next.
    """
    for ask in systems.values():
        for question in warm_up:
            ask(question)
    settle()
    times: dict[str, list[float]] = {name: [] for name in systems}
    for block in range(rounds):
        for place, (name, ask) in enumerate(systems.items()):
            begin = place * len(asked) // len(systems)
            for question in (*asked[begin:], *asked[:begin])[block::rounds]:
                times[name].append(timed(partial(ask, question)))
                advance()
    return {name: summary(found) for name, found in times.items()}


def settle() -> None:
    """Keep the garbage collector from walking the set-up again and again while a system is timed."""
    gc.collect()
    gc.freeze()


# ---------------------------------------------------------------------------------------------- ingest


class Stages:
    """Seconds spent in three stages of `remember`, taken at their own doors."""

    def __init__(self) -> None:
        self.analysis = 0.0
        self.store = 0.0
        self.vectors = 0.0

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

    def put(self, drafts: Sequence[Draft], **rules: Any) -> list[Written]:
        """Write, and count the seconds: SQL, the durable commit, and the index that follows it."""
        began = perf_counter()
        written = self._store.put(drafts, **rules)
        self._stages.store += perf_counter() - began
        return written

    def put_vectors(self, *args: Any) -> int:
        """Write vectors, and count the seconds: a second commit, and the index again."""
        began = perf_counter()
        written = self._store.put_vectors(*args)
        self._stages.vectors += perf_counter() - began
        return written


def open_memory(path: Path, embedder: Embedder) -> Memory:
    """Open a memory with the benchmark's settings, clock and embedder."""
    return Memory.open(path, settings=SETTINGS, now=lambda: NOW, embedder=embedder)


def open_watched(path: Path, embedder: Embedder, stages: Stages) -> Memory:
    """Open a memory that tells its stages apart."""
    store = SqliteStore.open(path, SETTINGS.store, derivation(SETTINGS))
    with mock.patch.object(holdfast.memory, "analyse", stages.analyse):
        return Memory(WatchedStore(store, stages), SETTINGS, lambda: NOW, embedder)


def measure_ingest(
    path: Path, turns: list[synthetic.Turn], embedder: Embedder, advance: Callable[[], None]
) -> dict[str, Any]:
    """Remember every turn, a session per call, into a file, with the index loaded as in a running program."""
    stages = Stages()
    calls: list[float] = []
    talks = synthetic.sessions(turns)
    with open_watched(path, embedder, stages) as memory:
        memory.search("warm up", user=USER)  # loads the owner's index, which each call then brings up to date
        settle()
        for session, messages in talks:
            calls.append(timed(partial(memory.remember, messages, user=USER, session=session)))
            advance()
    total = sum(calls)
    ends = max(1, int(END_SHARE * len(calls)))
    per_unit = {"analysis": stages.analysis, "store": stages.store, "vectors": stages.vectors}
    per_unit["rest"] = total - sum(per_unit.values())
    return {
        "units_per_s": round(len(turns) / total, 1),
        "call": summary(calls),
        "stages_us_per_unit": {name: round(seconds * US / len(turns), 2) for name, seconds in per_unit.items()},
        "late_over_early": round(float(np.median(calls[-ends:]) / np.median(calls[:ends])), 3),
    }


def measure_findable(
    memory: Memory, turns: list[synthetic.Turn], folder: Path, effort: Effort, advance: Callable[[], None]
) -> dict[str, Any]:
    """Remember one turn and find it by its id, beside one bare durable commit of the same text.

    The profile is `fast`: hybrid answers a question of one rare word with hypervectors, which is measured apart.
    """
    commit = bare_commit(folder / "commit.db")
    times: dict[str, list[float]] = {"bare_commit": [], "remember": [], "remember_and_search": []}
    settle()
    for i, turn in enumerate(turns):
        message = synthetic.message(turn, i, NOW - timedelta(minutes=len(turns) - i))
        bare = timed(partial(commit, turn.text))
        wrote = timed(partial(memory.remember, [message], user=USER, session="singles"))
        began = perf_counter()
        found = memory.search(turn.rare_id, user=USER, profile="fast")
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


def systems_of(memory: Memory, view: View, bm25s: Any, fts5: Any) -> dict[str, Ask]:
    """Return everything that is asked, Holdfast's doors first; the peers get their questions ready-made."""
    strategy, dense = LexicalStrategy(SETTINGS), DenseStrategy(SETTINGS)
    space = memory.store.space() or ""
    limits = SETTINGS.retrieval
    budget = Budget(limits.timeout_ms, limits.max_candidates)

    def retrieve(question: Question) -> RetrievalResult:
        deadline = Deadline.start(perf_counter, limits.timeout_ms)
        return strategy.retrieve(question.profile, view, memory.store, budget, deadline)

    def propose(question: Question) -> Proposal:
        deadline = Deadline.start(perf_counter, limits.timeout_ms)
        return memory.store.lexical_candidates(view, lexical_query(question.profile), TOP, deadline)

    def retrieve_dense(question: Question) -> RetrievalResult:
        deadline = Deadline.start(perf_counter, limits.timeout_ms)
        return dense.retrieve(question.profile, view, memory.store, budget, deadline)

    def propose_dense(question: Question) -> Proposal:
        deadline = Deadline.start(perf_counter, limits.timeout_ms)
        query = DenseQuery(space, question.vector)
        return memory.store.dense_candidates(view, query, limits.max_candidates, deadline)

    return {
        "hybrid": lambda question: memory.search(question.text, user=USER),
        "fast": lambda question: memory.search(question.text, user=USER, profile="fast"),
        "lexical_retrieve": retrieve,
        "lexical_propose": propose,
        "dense_retrieve": retrieve_dense,
        "dense_propose": propose_dense,
        "bm25s": lambda question: bm25s.search(question.profile.terms),
        "bm25s_select": lambda question: bm25s.search_selecting(question.profile.terms),
        "fts5": lambda question: fts5.search(question.match),
    }


def measure_search(
    memory: Memory, turns: list[synthetic.Turn], asked: list[Question], folder: Path, effort: Effort,
    advance: Callable[[], None],
) -> dict[str, Any]:  # fmt: skip
    """Ask Holdfast and its peers the same questions."""
    from peers import Bm25s, Fts5

    view = everything()
    units = {unit.text: unit for unit in memory.store.scan(view, order="oldest", limit=None)}
    terms = [_claim_terms(units[turn.text]) for turn in turns]
    began = perf_counter()
    bm25s = Bm25s(terms, SETTINGS.lexical.k1, SETTINGS.lexical.b)
    built_bm25s = perf_counter()
    fts5 = Fts5([turn.text for turn in turns], folder / "fts5.db")
    built_fts5 = perf_counter()
    systems = systems_of(memory, view, bm25s, fts5)
    questions, warm_up = asked[: effort.questions], asked[effort.questions :]
    times = in_turns(systems, questions, warm_up, effort.rounds, advance)
    found = [systems["lexical_retrieve"](question) for question in questions]
    refused = sum(bool(memory.search(question.text, user=USER).trace.refused) for question in questions)
    result = {
        "times": times,
        "ratios": ratios(times),
        "refused": refused,
        "bm25s_agreement": agreement(found, [systems["bm25s"](question) for question in questions], turns),
        "out_of_time": sum(result.exhausted_budget for result in found),
        "build_s": {"bm25s": round(built_bm25s - began, 3), "fts5": round(built_fts5 - built_bm25s, 3)},
    }
    fts5.close()
    return result


def everything() -> View:
    """Return a view of all that the user has."""
    return View(tenant=SETTINGS.store.tenant, user=USER, now=NOW, reference_time=NOW)


def measure_rare(memory: Memory, turns: Sequence[synthetic.Turn]) -> list[float]:
    """Return the milliseconds of questions that are one rare word, in their order, in profile hybrid."""
    return [round(timed(partial(memory.search, turn.rare_id, user=USER)) * MS, 1) for turn in turns[:RARE_QUESTIONS]]


def ratios(times: dict[str, dict[str, float]]) -> dict[str, dict[str, float]]:
    """Return Holdfast's time over each peer's: below 1 is faster than the peer."""
    return {
        f"{name}/{peer}": {
            point: round(times[name][f"{point}_ms"] / times[peer][f"{point}_ms"], 3) for point in ("p50", "p95")
        }
        for name in OURS
        for peer in PEERS
    }


def agreement(
    ours: Sequence[RetrievalResult], theirs: Sequence[Sequence[int]], turns: Sequence[synthetic.Turn]
) -> float:
    """Return the mean share of bm25s's hits that score no worse here than as many of the lexical stage's own.

    It must be 1, or nearly: otherwise the two did different work, and their times must not be compared. Scores are
    compared and not ids, because each breaks ties in its own way.
    """
    shares = []
    for result, places in zip(ours, theirs, strict=True):
        scores = {claim.unit.text: claim.raw_score for claim in result.candidates}
        best = sorted(scores.values(), reverse=True)[:TOP]
        good = [scores.get(turns[place].text, 0.0) >= best[-1] - SAME_SCORE for place in places[: len(best)]]
        shares.append(sum(good) / max(1, len(good)))
    return round(float(np.mean(shares)), 4)


def lexical_query(profile: QueryProfile) -> LexicalQuery:
    """Return what the lexical strategy asks a store for."""
    lexical = SETTINGS.lexical
    weights = tuple(lexical.weights[name] for name in FIELDS)
    return LexicalQuery(profile.terms, weights, lexical.k1, lexical.b, profile.needed_roles, lexical.role_boost)


def _claim_terms(unit: Unit) -> list[str]:
    """Return the stems of a turn's words; a turn has no other indexed field than its claim and its role."""
    return list(analyse(unit, SETTINGS.analysis).terms[FIELDS.index("claim")])


# ------------------------------------------------------------------------------------- fresh processes


def measure_open(path: Path, asked: Question, effort: Effort, advance: Callable[[], None]) -> dict[str, Any]:
    """Open the file and search it in fresh processes, with the snapshot beside it and without, by turns."""
    found: dict[str, list[dict[str, float]]] = {"snapshot": [], "built": []}
    vector, snapshot = path.with_name("question.npy"), path.with_name(f"{path.name}.index")
    np.save(vector, asked.vector)
    for _ in range(effort.opens):
        for kind, probes in found.items():
            if kind == "built":
                snapshot.unlink(missing_ok=True)
            command = [sys.executable, str(Path(__file__).resolve()), "--probe", str(path), asked.text, str(vector)]
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            probes.append(json.loads(done.stdout))
            advance()
    times = {
        kind: {
            "open": summary([probe["open"] for probe in probes]),
            "first_search": summary([probe["first_search"] for probe in probes]),
            "open_and_first_search": summary([probe["open"] + probe["first_search"] for probe in probes]),
            "close": summary([probe["close"] for probe in probes]),
        }
        for kind, probes in found.items()
    }
    resident = {kind: float(np.median([probe["resident"] for probe in probes])) for kind, probes in found.items()}
    # A small owner is not worth a snapshot.
    return {"times": times, "resident": resident, "bytes": snapshot.stat().st_size if snapshot.exists() else 0}


def probe(path: Path, question: str, vector: Path) -> dict[str, float]:
    """Open a store, search it once, and say what that took. Runs in a process of its own."""
    embedder = synthetic.StandIn({"warm up": np.load(vector), question: np.load(vector)})
    with open_memory(Path(":memory:"), embedder) as empty:  # imports and caches that no store is to blame for
        empty.remember("warm up", user=USER)
        empty.search("warm up", user=USER)
    gc.collect()
    before = resident_bytes()
    began = perf_counter()
    memory = open_memory(path, embedder)
    opened = perf_counter()
    memory.search(question, user=USER)
    searched = perf_counter()
    gc.collect()
    found = {"open": opened - began, "first_search": searched - opened, "resident": resident_bytes() - before}
    closing = perf_counter()
    memory.close()
    return found | {"close": perf_counter() - closing}


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
    questions = generator.questions(turns, effort.questions + effort.warm_up)
    embedder = synthetic.stand_in(turns, questions, [*singles, *turns[:RARE_QUESTIONS]])
    asked = [question_of(text, embedder) for text, _ in questions]
    path = folder / "memory.db"
    parts = ("ingest", "open", "search", "findable")
    totals = (-(-size // synthetic.MESSAGES_PER_SESSION), 2 * effort.opens, SYSTEMS * effort.questions, len(singles))
    tasks = {
        part: progress.add_task(f"{size:,} units: {part}", total=total)
        for part, total in zip(parts, totals, strict=True)
    }

    def step(part: str) -> Callable[[], None]:
        return lambda: progress.advance(tasks[part])

    result: dict[str, Any] = {"units": size}
    result["ingest"] = measure_ingest(path, turns, embedder, step("ingest"))
    disk = sum(file.stat().st_size for file in folder.glob("memory.db*") if file.suffix != ".index")
    opened = measure_open(path, asked[0], effort, step("open"))
    result["open"] = opened["times"]
    result["size"] = {
        "resident_bytes_per_unit": round(opened["resident"]["built"] / size, 1),
        "restored_bytes_per_unit": round(opened["resident"]["snapshot"] / size, 1),
        "disk_bytes_per_unit": round(disk / size, 1),
        "snapshot_bytes_per_unit": round(opened["bytes"] / size, 1),
        "text_bytes_per_unit": round(sum(len(turn.text) for turn in turns) / size, 1),
    }
    with open_memory(path, embedder) as memory:
        result["search"] = measure_search(memory, turns, asked, folder, effort, step("search"))
        result["findable"] = measure_findable(memory, singles, folder, effort, step("findable"))
    with open_memory(path, embedder) as memory:
        result["rare_word_ms"] = measure_rare(memory, turns)
    if size <= HYPER_UNITS:
        texts = [question.text for question in asked[: effort.questions]]
        with open_memory(path, embedder) as memory:  # again, so that no hypervector is there yet
            found = meaning.measure_hyper(memory, everything(), turns, texts)
        result["hyper"] = found | {"query": summary(found["query"])}
    gc.unfreeze()
    return result


# --------------------------------------------------------------------------------------------- results


def describe(sizes: list[int], effort: Effort, command: str) -> dict[str, Any]:
    """Return what a reader needs to judge the numbers: the commit, the versions, the machine, the parameters."""
    return {
        "commit": (_git("rev-parse", "HEAD") or "unknown")[:SHORT_COMMIT],
        "dirty": is_changed(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": command,
        "versions": {
            "python": platform.python_version(),
            "numpy": np.__version__,
            "sqlite": sqlite3.sqlite_version,
            "bm25s": version("bm25s"),
            "faiss": version("faiss-cpu") if importlib.util.find_spec("faiss") else None,
            "onnxruntime": version("onnxruntime"),
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
            "turns_per_topic": synthetic.TURNS_PER_TOPIC,
            "candidates": vectors.DEPTH,
            **asdict(effort),
        },
    }


def is_changed() -> bool:
    """Return whether the measured code is anything but the commit's.

    Only what is measured counts: a page being written elsewhere in the folder changes no number. The package may
    be an installed copy, so its files are compared with the folder's.
    """
    changes = _git("status", "--porcelain", "--", "src", ":(glob)benchmarks/*.py")
    return bool(changes) or fingerprint(Path(holdfast.__file__).parent) != fingerprint(ROOT / "src" / "holdfast")


def fingerprint(package: Path) -> str:
    """Return a hash of a package's files, without what Python and tools leave in it."""
    files = [file for suffix in ("*.py", "*.sql") for file in sorted(package.rglob(suffix))]
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


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
    **OURS,
    **MEANING,
    "bm25s": "bm25s retrieve",
    "bm25s_select": "bm25s+ scores, our selection",
    "fts5": "FTS5 match",
    "bare_commit": "one bare commit",
    "remember": "one remember",
    "remember_and_search": "one remember, then found",
    "open": "open",
    "first_search": "first search",
    "open_and_first_search": "open and first search",
    "close": "close",
}
KINDS = {"snapshot": "from a snapshot", "built": "without one"}


def show(result: dict[str, Any], console: Console) -> None:
    """Print one table per size."""
    for found in result["results"]:
        table = Table(title=f"{found['units']:,} units, commit {result['commit']}{' + changes' * result['dirty']}")
        for name in ("measure", "p50 ms", "p95 ms", "min ms", *(f"÷ {peer}" for peer in PEERS.values())):
            table.add_column(name, justify="left" if name == "measure" else "right", no_wrap=True)
        search = found["search"]
        for name, times in search["times"].items():
            beside = [search["ratios"].get(f"{name}/{peer}", {}).get("p50", "") for peer in PEERS]
            _row(table, LABELS[name], times, *beside)
        for name, times in found["findable"].items():
            _row(table, LABELS[name], times)
        for kind, measured in found["open"].items():
            for name, times in measured.items():
                _row(table, f"{LABELS[name]}, {KINDS[kind]}", times)
        if "hyper" in found:
            _row(table, "hypervectors: retrieve", found["hyper"]["query"])
        _row(table, f"remember a session of {synthetic.MESSAGES_PER_SESSION}", found["ingest"]["call"])
        console.print(table)
        ingest = found["ingest"]
        stages = ", ".join(f"{name} {value}" for name, value in ingest["stages_us_per_unit"].items())
        room = ", ".join(f"{name.partition('_')[0]} {value}" for name, value in found["size"].items())
        console.print(f"ingest {ingest['units_per_s']:,} units/s; µs per unit: {stages}")
        console.print(f"bytes per unit: {room}; agreement with bm25s {search['bm25s_agreement']}")
        console.print(f"questions of one rare word, one after the other: {found['rare_word_ms']} ms")
        if "hyper" in found:
            console.print({name: value for name, value in found["hyper"].items() if name != "query"})
        console.print()
    console.print(result["embedders"], result["vectors"])


def _row(table: Table, name: str, times: dict[str, float], *beside: object) -> None:
    table.add_row(name, *(f"{times[f'{point}_ms']:,.2f}" for point in ("p50", "p95", "min")), *map(str, beside))


# ------------------------------------------------------------------------------------------------ main


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="few repetitions: to see that it runs, not to quote")
    parser.add_argument("--sizes", default=SIZES, help=f"units of the user, separated by commas (default {SIZES})")
    parser.add_argument("--vectors", default=VECTOR_SIZES, help=f"vectors beside faiss (default {VECTOR_SIZES})")
    parser.add_argument("--out", type=Path, help="result file (default benchmarks/results/<commit>.json)")
    parser.add_argument("--dir", type=Path, help="folder for the databases (default: the system's temporary one)")
    parser.add_argument("--probe", nargs=3, help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.probe:
        print(json.dumps(probe(Path(given.probe[0]), given.probe[1], Path(given.probe[2]))))
        return
    # A look does without faiss; a result to quote does not.
    for package in ("bm25s", *(["faiss"] if not given.quick else [])):
        if importlib.util.find_spec(package) is None:
            raise SystemExit(f"{package} is not installed; run: {INSTALL}")
    if not vectors.held_to_one_thread():  # numpy reads this once, so it takes a process of its own
        os.execve(sys.executable, [sys.executable, __file__, *arguments], {**os.environ, **vectors.ONE_THREAD})
    sizes, vector_sizes = ([int(size) for size in text.split(",")] for text in (given.sizes, given.vectors))
    effort = QUICK if given.quick else Effort()
    console = Console(stderr=True)
    # Where the databases and the result lie is this machine's affair.
    options = [" --quick"] * given.quick + [f" --sizes {given.sizes}"] * (given.sizes != SIZES)
    options += [f" --vectors {given.vectors}"] * (given.vectors != VECTOR_SIZES)
    result = describe(sizes, effort, f"python benchmarks/run.py{''.join(options)}")
    before, measured = os.getloadavg()[0], fingerprint(Path(holdfast.__file__).parent)
    bar = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    result["results"] = []
    with Progress(SpinnerColumn(), TextColumn("{task.description}"), *bar, console=console) as progress:
        for size in sizes:
            with tempfile.TemporaryDirectory(dir=given.dir, prefix="holdfast-bench-") as folder:
                result["results"].append(measure(size, Path(folder), effort, progress))
        with tempfile.TemporaryDirectory(dir=given.dir, prefix="holdfast-bench-") as folder:
            task = progress.add_task("the shipped models", total=1)
            result["embedders"] = meaning.measure_embedders(Path(folder), effort.sessions, lambda: NOW)
            progress.advance(task)
        task = progress.add_task("vectors beside faiss", total=len(vector_sizes))
        result["vectors"] = []
        for size in vector_sizes:
            result["vectors"].append(vectors.measure(size, effort.questions, effort.rounds))
            progress.advance(task)
    result["machine"] |= {"load_before": round(before, 2), "load_after": round(os.getloadavg()[0], 2)}
    # Fresh processes would have measured a newer source than the one this process began with.
    result["dirty"] = result["dirty"] or is_changed() or fingerprint(Path(holdfast.__file__).parent) != measured
    out = given.out or RESULTS / f"{result['commit']}.json"
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    show(result, Console())
    console.print(f"written to {out.name}")


if __name__ == "__main__":
    main(sys.argv[1:])
