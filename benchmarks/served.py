"""Measure a served memory: what a question costs more than in one's own process, and how a server bears load.

    python benchmarks/served.py                   # two minutes of load
    python benchmarks/served.py --seconds 600     # ten, as docs/benchmarks.md quotes them
    python benchmarks/served.py --seconds 5 --units 500 --out FILE   # a look, not to be quoted
    python benchmarks/served.py --show            # the results as tables

A real `holdfast serve` in a process of its own holds made-up chat; callers are processes as well. The question's cost
is timed by turns, embedded and served, on one store. Under load each caller searches, and now and then remembers a
session or assembles a context, over a connection that it keeps. Past capacity, more callers ask at once than the
server lets wait: the rest have to be sent away, and quickly.
"""

from __future__ import annotations

import argparse
import http.client
import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from time import monotonic, perf_counter, sleep
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import synthetic
from measuring import MS, ONE_THREAD, RESULTS, describe_machine, percentiles, time_by_turns

from holdfast import Memory
from holdfast.eval.report import Table, commit

USER = "ana"
QUESTIONS, ROUNDS = 300, 10
# Two for each core of a small machine.
CALLERS = 4
# Of so many calls of one caller, one remembers a session and one assembles a context.
REMEMBER_EVERY, ASSEMBLE_EVERY = 20, 10
# Far more at once than the server of that part works on (1) and lets wait.
CROWD = 200
SAMPLES = 20
# The last share of the load only reads: memory that still grows then is lost.
READING = 0.4
Latencies = dict[str, list[float]]


class Caller:
    """One connection that asks a server."""

    def __init__(self, address: str) -> None:
        place = urlsplit(address)
        self._connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=60)

    def call(self, path: str, arguments: dict[str, Any] | None = None) -> tuple[int, bytes]:
        """Return status and body of an answer."""
        body = None if arguments is None else json.dumps(arguments)
        headers = {} if body is None else {"Content-Type": "application/json"}
        self._connection.request("GET" if body is None else "POST", path, body, headers)
        answer = self._connection.getresponse()
        return answer.status, answer.read()

    def search(self, question: str) -> tuple[int, bytes]:
        """Ask for ten."""
        return self.call("/v1/search", {"query": question, "user": USER, "limit": 10})


@contextmanager
def serving(store: Path, *options: str) -> Iterator[tuple[str, int]]:
    """Serve a store in a process of its own; yields the address and the process."""
    command = [sys.executable, "-m", "holdfast", "serve", "--db", str(store), "--port", "0", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ | ONE_THREAD) as process:
        assert process.stdout is not None
        address = process.stdout.readline().split()[-1]
        try:
            while Caller(address).call("/ready")[0] != 200:
                sleep(0.1)
            yield address, process.pid
        finally:
            process.terminate()


def fill(store: Path, units: int) -> list[str]:
    """Remember made-up chat, and return questions about it."""
    chat = synthetic.Generator()
    turns = chat.turns(units)
    with Memory.open(store) as memory:
        for number, begin in enumerate(range(0, units, 1_000)):
            memory.remember([turn.text for turn in turns[begin : begin + 1_000]], user=USER, session=f"s{number}")
            print(f"{min(units, begin + 1_000):,} of {units:,} units", file=sys.stderr)
    return [question for question, _ in chat.questions(turns, QUESTIONS)]


def measure_cost(store: Path, questions: Sequence[str]) -> dict[str, Any]:
    """Time the same questions embedded, over HTTP and through a remote memory, by turns."""
    with serving(store) as (address, _), Memory.open(store) as memory, Memory.open(address) as remote:
        caller = Caller(address)
        systems: dict[str, Callable[[str], object]] = {
            "embedded": lambda question: memory.search(question, user=USER, limit=10),
            "served": caller.search,
            "remote": lambda question: remote.search(question, user=USER, limit=10),
        }
        for ask in systems.values():
            for question in questions[:10]:
                ask(question)
        times = time_by_turns(systems, questions, ROUNDS)
    more_of = {name: np.median(times[name]) - np.median(times["embedded"]) for name in ("served", "remote")}
    return {name: percentiles(each) for name, each in times.items()} | {
        f"{name}: more than embedded, p50 ms": round(float(more) * MS, 2) for name, more in more_of.items()
    }


# ---------------------------------------------------------------------------------------------------------- load


def call_for(
    address: str, questions: Sequence[str], number: int, until: float, reading_from: float
) -> tuple[Latencies, Counter[int]]:
    """Call a server until a moment; returns how long each call took, and the statuses. At last nothing is written."""
    caller, chat = Caller(address), synthetic.Generator(number)
    times: Latencies = {"search": [], "remember": [], "assemble": []}
    statuses: Counter[int] = Counter()
    count = 0
    while monotonic() < until:
        question = questions[(count * 7 + number) % len(questions)]
        kind, work = "search", partial(caller.search, question)
        if count % REMEMBER_EVERY == REMEMBER_EVERY - 1 and monotonic() < reading_from:
            said = [turn.text for turn in chat.turns(synthetic.MESSAGES_PER_SESSION)]
            told = {"content": said, "user": USER, "session": f"c{number}-{count}"}
            kind, work = "remember", partial(caller.call, "/v1/units", told)
        elif count % ASSEMBLE_EVERY == 0:
            told = {"query": question, "user": USER, "budget": 2_000}
            kind, work = "assemble", partial(caller.call, "/v1/context", told)
        began = perf_counter()
        status, _ = work()
        times[kind].append(perf_counter() - began)
        statuses[status] += 1
        count += 1
    return times, statuses


def measure_load(store: Path, questions: Sequence[str], seconds: int) -> dict[str, Any]:
    """Let callers work for some time, and watch the server's memory."""
    with serving(store) as (address, process), ProcessPoolExecutor(
        CALLERS, mp_context=multiprocessing.get_context("spawn")
    ) as pool:  # fmt: skip
        units_before = _units(address)
        began = monotonic()
        reading_from = began + seconds * (1 - READING)
        ends = [pool.submit(call_for, address, questions, n, began + seconds, reading_from) for n in range(CALLERS)]
        resident = []
        for sample in range(SAMPLES):
            sleep(max(0.0, began + seconds * (sample + 1) / SAMPLES - monotonic()))
            resident.append(_resident(process))
            print(f"{sample + 1} of {SAMPLES}: {resident[-1]} MiB", file=sys.stderr)
        found = [end.result() for end in ends]
        lasted, units = monotonic() - began, _units(address)
    times: Latencies = {kind: [t for one, _ in found for t in one[kind]] for kind in found[0][0]}
    statuses = sum((counted for _, counted in found), Counter[int]())
    calls = statuses.total()
    return {
        "callers": CALLERS, "reading": READING, "seconds": round(lasted), "calls": calls,
        "calls per second": round(calls / lasted, 1),
        "errors": calls - statuses[200], "units before": units_before, "units after": units,
        "resident MiB": resident, "latency": {kind: _tail(each) for kind, each in times.items()},
    }  # fmt: skip


def _tail(seconds: Sequence[float]) -> dict[str, float]:
    if not seconds:
        return {"calls": 0}
    p99 = round(float(np.percentile(seconds, 99)) * MS, 3)
    return {"calls": len(seconds), **percentiles(seconds), "p99 ms": p99}


def _units(address: str) -> int:
    return int(json.loads(Caller(address).call(f"/v1/stats?user={USER}")[1])["units"])


def _resident(process: int) -> int:
    status = Path(f"/proc/{process}/status").read_text(encoding="ascii")
    return int(status.split("VmRSS:")[1].split()[0]) // 1024


def measure_crowd(store: Path, questions: Sequence[str]) -> dict[str, Any]:
    """Ask with far more callers at once than may wait: some are answered, the others sent away."""

    def ask(number: int) -> tuple[int, float]:
        caller = Caller(address)
        began = perf_counter()
        return caller.search(questions[number % len(questions)])[0], perf_counter() - began

    with serving(store, "--work", "1") as (address, _), ThreadPoolExecutor(CROWD) as pool:
        found = list(pool.map(ask, range(CROWD * 3)))
        after, _ = Caller(address).search(questions[0])
    by_status: dict[int, list[float]] = {}
    for status, took in found:
        by_status.setdefault(status, []).append(took)
    told = {str(status): {"calls": len(each), **percentiles(each)} for status, each in sorted(by_status.items())}
    return {"callers": CROWD, "answers": told, "the next one": after}


# --------------------------------------------------------------------------------------------------------- tables


def show(found: dict[str, Any]) -> Iterator[str]:
    """Yield the results as Markdown."""
    machine, load, crowd = found["machine"], found["load"], found["crowd"]
    place = f"{machine['cores']} cores ({machine['cpu']}), commit `{found['commit']}`"
    yield f"{found['units']:,} units, {place}: `{found['command']}`.\n"
    cost = {name: row for name, row in found["cost"].items() if isinstance(row, dict)}
    rows = [[name, row["p50 ms"], row["p95 ms"]] for name, row in cost.items()]
    yield Table("", ["one caller, `search`", "p50 ms", "p95 ms"], _cells(rows)).markdown() + "\n"
    rows = [[kind, *row.values()] for kind, row in load["latency"].items()]
    head = [f"{load['callers']} callers, {load['seconds']} s", "calls", "p50 ms", "p95 ms", "p99 ms"]
    yield Table("", head, _cells(rows)).markdown() + "\n"
    sizes, reading = load["resident MiB"], load.get("reading", 0.0)
    first, full, last = sizes[0], sizes[round((len(sizes) - 1) * (1 - reading))], sizes[-1]
    after = f", and had {last} MiB after the last {reading:.0%} of the time, which only read" if reading else ""
    yield (
        f"{load['calls per second']:g} calls per second, {load['errors']} errors."
        f" The server grew from {first} to {full} MiB while its units grew from {load['units before']:,} to"
        f" {load['units after']:,}{after}.\n"
    )
    rows = [[f"status {status}", *row.values()] for status, row in crowd["answers"].items()]
    head = [f"{crowd['callers']} callers at once, one worker", "calls", "p50 ms", "p95 ms"]
    yield Table("", head, _cells(rows)).markdown()


def _cells(rows: list[list[Any]]) -> list[list[str]]:
    return [
        [one if isinstance(one, str) else f"{one:,.3g}" if one < 100 else f"{one:,.0f}" for one in row]
        for row in rows
    ]


def main(arguments: Sequence[str]) -> None:
    """Measure, and write the results down."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--units", type=int, default=10_000)
    parser.add_argument("--seconds", type=int, default=120)
    parser.add_argument("--out", type=Path, default=RESULTS / "served.json")
    parser.add_argument("--show", action="store_true", help="print what was measured before, as tables")
    given = parser.parse_args(arguments)
    if given.show:
        print("\n".join(show(json.loads(given.out.read_text(encoding="utf-8")))))
        return
    os.environ |= ONE_THREAD
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "served.db"
        questions = fill(store, given.units)
        result = {
            "commit": commit(), "command": f"python benchmarks/served.py --seconds {given.seconds}",
            "machine": describe_machine(), "units": given.units, "cost": measure_cost(store, questions),
            "crowd": measure_crowd(store, questions), "load": measure_load(store, questions, given.seconds),
        }  # fmt: skip
    given.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print(json.dumps({part: result[part] for part in ("cost", "crowd", "load")}, indent=1))


if __name__ == "__main__":
    main(sys.argv[1:])
