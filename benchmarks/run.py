"""Measure how fast Holdfast remembers, finds, opens and forgets, beside chromadb, lancedb, bm25s, SQLite and faiss.

    python benchmarks/run.py                                # 10,000 and 100,000 units: an hour or less
    python benchmarks/run.py --only search --only open      # some parts; what was measured of the others stays
    python benchmarks/run.py --sizes 1000000 --only forget
    python benchmarks/run.py --quick --sizes 500 --out FILE # a look, not to be quoted
    python benchmarks/report.py                             # the results as a page

A run that was stopped goes on: a part is not measured again while the code is the same (`--again` does). Everything
is timed through `Memory`, as a program would call it. The systems take turns, so that whatever else the machine does
falls on all of them alike: read the ratios before the milliseconds. A stand-in looks up vectors that were made up
beforehand, except where embedding itself is measured.
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib.util
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import peers
import synthetic
import vectors
from measuring import (
    MS,
    ONE_THREAD,
    RESULTS,
    describe_machine,
    digest_hot_path,
    has_one_thread,
    percentiles,
    resident_bytes,
    settle,
    time_by_turns,
    timed,
)
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from holdfast import Memory, Settings
from holdfast.eval.report import commit
from holdfast.models import build_embedder
from holdfast.settings import EmbeddingSettings

SPEED = RESULTS / "speed.json"
INSTALL = "pip install --group bench"
# A heavy personal user, and far more than one person says in years.
SIZES = "10000,100000"
USER, OTHER = "ada", "bo"
# The settings measured are the defaults, never the environment's or a local file's. The time of a complete answer is
# what is measured: a busy machine must not make answers short and quick.
SETTINGS = Settings().without_timeouts()
# After the last of the turns; a fixed clock gives every run the same ages.
NOW = synthetic.BEGIN + timedelta(days=36500)
# Beyond this the gate, which compares each turn with all before it, would take hours to fill a store; what is
# measured at such sizes does not depend on it.
MOST_JUDGED = 100_000
UNJUDGED = dataclasses.replace(
    SETTINGS,
    gate=dataclasses.replace(SETTINGS.gate, policy="off"),
    changes=dataclasses.replace(SETTINGS.changes, detect=False),
)
# Beyond this a peer that is written to 20 texts at a time takes longer than everything else.
MOST_BY_TURNS = 10_000
# Beyond this, contexts and hypervectors say nothing new, and filling takes long.
MOST_CONTEXTS = 10_000
BATCH = 1000
BUDGET = 2_000
SHIPPED = ("minilm", "potion")
RARE_SETTINGS = {"fast.strategies": ["hdc-vsa"], "fast.min_score": 0, "fast.gap": 0, "retrieval.timeout_ms": 600_000}

# What `search` is compared with: at their quickest, and when they too look for one user's units alone.
PEERS_OF_HYBRID = ("lancedb hybrid", "lancedb hybrid, by user", "chromadb dense", "chromadb dense, by user")
# Opponents that are packages. A look does without those that are not installed; a result to quote does not.
PACKAGES = ("chromadb", "lancedb", "bm25s", "faiss")

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Effort:
    """How often each thing is done. 200 questions put ten of them beyond p95."""

    questions: int = 200
    rounds: int = 5
    opens: int = 3
    sessions: int = 20
    vector_sizes: tuple[int, ...] = (10_000, 100_000, 1_000_000)


# Enough to see that everything runs; too little to quote.
QUICK = Effort(questions=20, rounds=2, opens=1, sessions=1, vector_sizes=(2_000,))


def open_memory(path: Path | str, embedder: Any, settings: Settings = SETTINGS) -> Memory:
    return Memory.open(path, settings=settings, now=lambda: NOW, embedder=embedder)


def row(label: str, units: int, **values: float) -> Row:
    return {"label": label, "units": units, "values": values}


def is_there(peer: str) -> bool:
    return peer not in PACKAGES or importlib.util.find_spec(peer) is not None


def ratio(ours: float, theirs: float) -> float:
    return round(ours / theirs, 3)


# ------------------------------------------------------------------------------------------------- one size


@dataclass
class Bench:
    """Everything that the parts of one size share: texts, vectors, and stores, each built when first asked for."""

    size: int
    effort: Effort
    folder: Path
    progress: Progress
    built: dict[str, Any] = field(default_factory=dict)

    @cached_property
    def turns(self) -> list[synthetic.Turn]:
        return synthetic.Generator().turns(self.size)

    @cached_property
    def questions(self) -> list[tuple[str, synthetic.Turn]]:
        return synthetic.Generator(synthetic.SEED + 1).questions(self.turns, 2 * self.effort.questions)

    @cached_property
    def embedder(self) -> synthetic.StandIn:
        return synthetic.stand_in(self.turns, self.questions)

    @cached_property
    def asked(self) -> list[tuple[str, Any]]:
        """Return questions with their vectors: those that are timed, and before them as many that warm up."""
        return [(text, self.embedder.embed_query(text)) for text, _ in self.questions]

    @contextmanager
    def steps(self, name: str, total: int) -> Iterator[Callable[[], None]]:
        """Show how far a part is."""
        task = self.progress.add_task(f"{self.size:,} units: {name}", total=total)
        yield lambda: self.progress.advance(task)
        self.progress.remove_task(task)

    @property
    def path(self) -> Path:
        """Return a store with every turn, its snapshot beside it."""
        path = self.folder / "memory.db"
        if not path.exists():
            fill(self, [])
        return path

    def copy(self, name: str, *, snapshot: str = "memory.db.index") -> Path:
        """Return a copy of the store, with a snapshot of its own; none where `snapshot` does not exist."""
        target = self.folder / name
        for old in self.folder.glob(f"{name}*"):
            old.unlink()
        shutil.copy(self.path, target)
        if (self.folder / snapshot).exists():
            shutil.copy(self.folder / snapshot, f"{target}.index")
        return target

    def peer(self, name: str) -> peers.Peer:
        """Return a peer that holds every turn."""
        if name not in self.built:
            made = self.built[name] = new_peer(name, self.folder)
            with self.steps(f"filling {name}", -(-self.size // BATCH)) as advance:
                for start in range(0, self.size, BATCH):
                    texts = [turn.text for turn in self.turns[start : start + BATCH]]
                    made.add(start, texts, self.embedder.embed_documents(texts))
                    advance()
            made.finish()
        return self.built[name]


def new_peer(name: str, folder: Path) -> peers.Peer:
    if name == "bm25s":
        return peers.Bm25s()
    kind = {"chromadb": peers.Chroma, "lancedb": peers.Lance, "SQLite": peers.Sqlite}[name]
    return kind(folder / name)


def fill(bench: Bench, beside: Sequence[str]) -> dict[str, list[float]]:
    """Remember every turn, a session of 20 a call, beside some peers by turns; return the seconds of each call.

    Half-way the store is closed and opened once more, and what its snapshot was then is kept.
    """
    path, talks = bench.folder / "memory.db", synthetic.sessions(bench.turns)
    others = {name: new_peer(name, bench.folder) for name in beside}
    calls: dict[str, list[float]] = {name: [] for name in ("holdfast", *beside)}
    with bench.steps("remember", len(talks)) as advance:
        for half in (talks[: len(talks) // 2], talks[len(talks) // 2 :]):
            with open_memory(path, bench.embedder, UNJUDGED if bench.size > MOST_JUDGED else SETTINGS) as memory:
                memory.search("warm up", user=USER)  # loads the owner's index, which each call then brings up to date
                settle()
                for session, messages in half:
                    texts = [str(message["content"]) for message in messages]
                    rows, start = bench.embedder.embed_documents(texts), len(calls["holdfast"]) * len(talks[0][1])
                    keep = partial(memory.remember, messages, user=USER, session=session)
                    calls["holdfast"].append(timed(keep))
                    for name, peer in others.items():
                        calls[name].append(timed(partial(peer.add, start, texts, rows)))
                    advance()
                memory.remember("A word of somebody else.", user=OTHER)
            snapshot = Path(f"{path}.index")
            if snapshot.exists() and not (bench.folder / "half.index").exists():
                shutil.copy(snapshot, bench.folder / "half.index")
    for name, peer in others.items():
        calls[name].append(timed(peer.finish))
        bench.built[name] = peer
    return calls


# ---------------------------------------------------------------------------------------------------- parts


def measure_remember(bench: Bench) -> Iterator[Row]:
    """Remember sessions of 20 messages, vectors given, each call durable."""
    beside = [name for name in ("chromadb", "lancedb", "SQLite") if bench.size <= MOST_BY_TURNS and is_there(name)]
    for old in bench.folder.glob("*"):
        shutil.rmtree(old) if old.is_dir() else old.unlink()
    bench.built.clear()
    calls = fill(bench, beside)
    speeds = {name: bench.size / sum(seconds) for name, seconds in calls.items()}
    tenth = max(1, len(calls["holdfast"]) // 10)
    first, last = (tenth / sum(part) * synthetic.MESSAGES_PER_SESSION for part in
                   (calls["holdfast"][:tenth], calls["holdfast"][-tenth:]))  # fmt: skip
    ours = {f"units/s ÷ {name}": ratio(speeds["holdfast"], speeds[name]) for name in beside}
    yield row(
        "Holdfast `remember`", bench.size, **{"units/s": round(speeds["holdfast"])}, **percentiles(calls["holdfast"]),
        **{"first tenth units/s": round(first), "last tenth units/s": round(last)}, **ours,
    )  # fmt: skip
    for name in beside:
        yield row(name, bench.size, **{"units/s": round(speeds[name])}, **percentiles(calls[name]))
    singles = synthetic.Generator(synthetic.SEED + 2).turns(bench.effort.questions)
    with open_memory(bench.copy("single.db"), bench.embedder) as memory:
        memory.search("warm up", user=USER)
        times = [timed(partial(remember_and_find, memory, turn)) for turn in singles]
    yield row("one message remembered, and found again (fast)", bench.size, **percentiles(times))


def remember_and_find(memory: Memory, turn: synthetic.Turn) -> None:
    memory.remember(turn.text, user=USER, session="singles")
    found = memory.search(turn.rare_id, user=USER, profile="fast")
    if not found or found[0].unit.text != turn.text:
        raise SystemExit(f"a turn was remembered and not found: {turn.text!r}")


def measure_search(bench: Bench) -> Iterator[Row]:
    """Ask Holdfast and its peers the same questions, the vector given."""
    names = {"lancedb": "lancedb hybrid", "chromadb": "chromadb dense", "bm25s": "bm25s", "SQLite": "numpy + FTS5"}
    with open_memory(bench.path, bench.embedder) as memory:
        systems: dict[str, Callable[[tuple[str, Any]], object]] = {
            "Holdfast `search`, hybrid": lambda asked: memory.search(asked[0], user=USER, limit=peers.TOP),
            "Holdfast `search`, fast": lambda asked: memory.search(asked[0], user=USER, profile="fast"),
        }
        for name in filter(is_there, names):
            peer = bench.peer(name)
            systems[names[name]] = partial(_ask_peer, peer.search)
            if isinstance(peer, peers.Chroma | peers.Lance):
                systems[f"{names[name]}, by user"] = partial(_ask_peer, peer.search_own)
        warm_up, timed_ones = bench.asked[bench.effort.questions :], bench.asked[: bench.effort.questions]
        with bench.steps("search", len(systems) * (len(warm_up) + len(timed_ones))) as advance:
            time_by_turns(systems, warm_up, 1, advance)
            times = time_by_turns(systems, timed_ones, bench.effort.rounds, advance)
    found = {name: percentiles(seconds) for name, seconds in times.items()}
    for name, values in found.items():
        own = {
            f"{point} ÷ {label}": ratio(values[f"{point} ms"], found[label][f"{point} ms"])
            for label in (PEERS_OF_HYBRID if "hybrid" in name else ("bm25s",))
            for point in ("p50", "p95")
            if name.startswith("Holdfast") and label in found
        }
        yield row(name, bench.size, **values, **own)


def _ask_peer(search: Callable[[str, Any], list[int]], asked: tuple[str, Any]) -> list[int]:
    return search(*asked)


class Embedding(synthetic.StandIn):
    """Embeds a question with the shipped model for the time it takes, and answers with the vector made up for it."""

    def __init__(self, table: dict[str, Any]) -> None:
        super().__init__(table)
        self._real = build_embedder(EmbeddingSettings())

    def embed_query(self, text: str) -> Any:
        self._real.embed_query(text)
        return super().embed_query(text)


def measure_assemble(bench: Bench) -> Iterator[Row]:
    """Assemble contexts of 2,000 tokens in the last session, the question embedded by the shipped model."""
    if bench.size > MOST_CONTEXTS:
        return
    texts, session = [text for text, _ in bench.asked], synthetic.sessions(bench.turns)[-1][0]
    with open_memory(bench.copy("assemble.db"), Embedding(bench.embedder.table)) as memory:
        systems: dict[str, Callable[[Any], object]] = {
            f"`assemble`, {BUDGET:,} tokens": lambda text: memory.assemble(
                text, user=USER, session=session, budget=BUDGET
            ),
            "`search`, hybrid": lambda text: memory.search(text, user=USER),
        }
        with bench.steps("assemble", len(systems) * len(texts)) as advance:
            time_by_turns(systems, texts[bench.effort.questions :], 1, advance)
            times = time_by_turns(systems, texts[: bench.effort.questions], bench.effort.rounds, advance)
    for name, seconds in times.items():
        yield row(name, bench.size, **percentiles(seconds))


def measure_hypervectors(bench: Bench) -> Iterator[Row]:
    """Ask hypervectors alone: the first question makes them, the others find them made."""
    if bench.size > MOST_CONTEXTS:
        return
    settings = Settings.load(RARE_SETTINGS, environ={})
    with open_memory(bench.path, bench.embedder, settings) as memory:
        texts = [text for text, _ in bench.asked[: bench.effort.questions]]
        first = timed(partial(memory.search, texts[0], user=USER, profile="fast"))
        times = [timed(partial(memory.search, text, user=USER, profile="fast")) for text in texts[1:]]
    yield row("first question of a process, which makes them", bench.size, **percentiles([first]))
    yield row("further questions", bench.size, **percentiles(times))


def measure_open(bench: Bench) -> Iterator[Row]:
    """Open the store and search it in fresh processes, by turns: with a snapshot, with an old one, without."""
    kinds = {
        "with a snapshot": "memory.db.index",
        "with one half behind": "half.index",
        "without one": "none",
    }
    probes: dict[str, list[dict[str, float]]] = {kind: [] for kind in kinds}
    question = bench.folder / "question.json"
    question.write_text(json.dumps([bench.asked[0][0], bench.asked[0][1].tolist()]))
    text = sum(len(turn.text.encode()) for turn in bench.turns)
    sizes = {"database": bench.path.stat().st_size, "text": text}
    with bench.steps("open", bench.effort.opens * len(kinds)) as advance:
        for _ in range(bench.effort.opens):
            for kind, snapshot in kinds.items():
                path = bench.copy("open.db", snapshot=snapshot)
                command = [sys.executable, __file__, "--probe", str(path), str(question)]
                done = subprocess.run(command, check=True, capture_output=True, text=True)
                probes[kind].append(json.loads(done.stdout))
                advance()
                sizes["snapshot"] = sum(file.stat().st_size for file in bench.folder.glob("open.db.index*"))
    for kind, found in probes.items():
        seconds = {name: float(np.median([each[name] for each in found])) for name in ("open", "close", "resident")}
        yield row(
            f"open and search, {kind}", bench.size,
            **{"s": round(seconds["open"], 3), "close s": round(seconds["close"], 3),
               "resident bytes per unit": round(seconds["resident"] / bench.size)},
        )  # fmt: skip
    for name, size in sizes.items():
        yield row(f"bytes on disk, {name}", bench.size, **{"bytes per unit": round(size / bench.size)})


def probe(path: Path, question: Path) -> dict[str, float]:
    """Open a store, search it once, and say what that took. Runs in a process of its own."""
    text, vector = json.loads(question.read_text())
    embedder = synthetic.StandIn({name: np.array(vector, np.float32) for name in ("warm up", text)})
    with open_memory(":memory:", embedder) as empty:  # imports and caches that no store is to blame for
        empty.remember("warm up", user=USER)
        empty.search("warm up", user=USER)
    settle()
    before, opened = resident_bytes(), []
    spent = timed(lambda: opened.append(open_memory(path, embedder)) or opened[0].search(text, user=USER))
    settle()
    return {"open": spent, "resident": resident_bytes() - before, "close": timed(opened[0].close)}


def measure_forget(bench: Bench) -> Iterator[Row]:
    """Forget one unit, then a whole user, beside one plain rewrite of the same file."""
    with bench.steps("forget", 3) as advance:
        plain = sqlite3.connect(bench.copy("plain.db", snapshot="none"))
        vacuum = timed(partial(plain.execute, "VACUUM"))
        plain.close()
        advance()
        found = {}
        with open_memory(bench.copy("forget.db"), bench.embedder) as memory:
            [hit] = memory.search(bench.turns[0].rare_id, user=USER, profile="fast", limit=1)
            settle()
            found["`forget` of one unit"] = timed(partial(memory.forget, user=USER, ids=hit.unit.id))
            advance()
            found[f"`forget` of a user with {bench.size:,} units"] = timed(
                partial(memory.forget, user=USER, all=True)
            )
            advance()
    yield row("plain rewrite (`VACUUM`)", bench.size, s=round(vacuum, 3))
    for name, seconds in found.items():
        yield row(name, bench.size, **{"s": round(seconds, 3), "÷ rewrite": ratio(seconds, vacuum)})


def measure_embed(bench: Bench) -> Iterator[Row]:
    """Compare `remember` with the bare shipped models, a session at a time, by turns."""
    turns = bench.turns[: bench.effort.sessions * synthetic.MESSAGES_PER_SESSION]
    for name in SHIPPED:
        settings = dataclasses.replace(Settings(), embedding=EmbeddingSettings(embedder=name))
        embedder = build_embedder(settings.embedding)
        assert embedder is not None
        spent: dict[str, list[float]] = {"bare": [], "remember": [], "question": []}
        with Memory.open(bench.folder / f"{name}.db", settings=settings, now=lambda: NOW) as memory:
            memory.remember("warm up", user=USER)
            embedder.embed_documents([turn.text for turn in turns[:4]])
            for session, messages in synthetic.sessions(turns):
                texts = [str(message["content"]) for message in messages]
                spent["bare"].append(timed(partial(embedder.embed_documents, texts)))
                spent["remember"].append(timed(partial(memory.remember, messages, user=USER, session=session)))
                spent["question"].append(timed(partial(embedder.embed_query, texts[0])))
        total = {key: sum(values) for key, values in spent.items()}
        yield row(
            name, len(turns), **{
                "bare texts/s": round(len(turns) / total["bare"]),
                "`remember` texts/s": round(len(turns) / total["remember"]),
                "`remember` ÷ bare": ratio(total["bare"], total["remember"]),
                "question ms": round(float(np.median(spent["question"])) * MS, 2),
            },
        )  # fmt: skip


def measure_vectors(bench: Bench) -> Iterator[Row]:
    """Propose by meaning, beside faiss."""
    for units in bench.effort.vector_sizes:
        yield from vectors.measure(units, bench.effort.questions, bench.effort.rounds)


PARTS = {
    "remember": measure_remember,
    "search": measure_search,
    "assemble": measure_assemble,
    "open": measure_open,
    "forget": measure_forget,
    "hypervectors": measure_hypervectors,
}
# These have sizes of their own.
ONCE = {"embed": measure_embed, "vectors": measure_vectors}


# ----------------------------------------------------------------------------------------------------- main


def measure(name: str, build: Callable[[Bench], Iterator[Row]], bench: Bench, command: str) -> dict[str, Any]:
    """Measure one part, and say what a reader needs to judge it."""
    code, load = digest_hot_path(), os.getloadavg()[0]
    rows = list(build(bench))
    # A process of its own would have measured a newer source than the one this process began with.
    if digest_hot_path() != code:
        raise SystemExit(f"the code changed while {name} was measured; run it again")
    return {
        "commit": commit() or "unknown",
        "code": code,
        "date": datetime.now(UTC).date().isoformat(),
        "command": command,
        "load": [round(load, 1), round(os.getloadavg()[0], 1)],
        "rows": rows,
    }


def read_results(file: Path) -> dict[str, Any]:
    return json.loads(file.read_text(encoding="utf-8")) if file.exists() else {"parts": {}}


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", action="append", choices=[*PARTS, *ONCE], help="part to measure; repeatable")
    parser.add_argument("--sizes", default=SIZES, help=f"units of the user, separated by commas (default {SIZES})")
    parser.add_argument("--quick", action="store_true", help="few repetitions: to see that it runs, not to quote")
    parser.add_argument("--again", action="store_true", help="measure what is there already once more")
    parser.add_argument("--out", type=Path, default=SPEED, help="result file (default benchmarks/results/speed.json)")
    parser.add_argument("--dir", type=Path, help="folder for the databases (default: the system's temporary one)")
    parser.add_argument("--probe", nargs=2, type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.probe:
        print(json.dumps(probe(*given.probe)))
        return
    for package in PACKAGES:
        if not given.quick and not is_there(package):
            raise SystemExit(f"{package} is not installed; run: {INSTALL}")
    if not has_one_thread():  # numpy reads this once, so it takes a process of its own
        # lancedb would write a line about its own future for every question.
        os.execve(
            sys.executable, [sys.executable, __file__, *arguments], os.environ | ONE_THREAD | {"RUST_LOG": "error"}
        )
    console, result = Console(stderr=True), read_results(given.out)
    effort, wanted = QUICK if given.quick else Effort(), given.only or [*PARTS, *ONCE]
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    sizes = [int(size) for size in given.sizes.split(",")]
    with Progress(*columns, console=console) as progress:
        for size in sizes:
            with tempfile.TemporaryDirectory(dir=given.dir, prefix="holdfast-bench-") as folder:
                bench = Bench(size, effort, Path(folder), progress)
                for name, build in {**PARTS, **(ONCE if size == sizes[0] else {})}.items():
                    key = name if name in ONCE else f"{name} {size}"
                    same = result["parts"].get(key, {}).get("code") == digest_hot_path()
                    if name in wanted and (given.again or not same):
                        options = " --quick" if given.quick else ""
                        options += f" --sizes {size}" if name in PARTS else ""
                        command = f"python benchmarks/run.py --only {name}{options}"
                        result["parts"][key] = measure(key, build, bench, command)
                        result["machine"] = describe_machine()
                        # After each part, so that a run that is stopped goes on behind it.
                        given.out.write_text(
                            json.dumps(result, indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
                        )
                        console.print(f"{key}: done")
    console.print(f"written to {given.out.name}")


if __name__ == "__main__":
    main(sys.argv[1:])
