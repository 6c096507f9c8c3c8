"""What every benchmark shares: timing by turns, the process it runs in, a digest of the code that was measured."""

from __future__ import annotations

import ast
import gc
import hashlib
import os
import platform
import sqlite3
import subprocess
from collections.abc import Callable, Sequence
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

import holdfast

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results"
MS = 1000.0
# What one thread means to the libraries that numpy and faiss compute with. With their default of one for each core, a
# question waits for milliseconds whenever other work holds a core, and the numbers would tell about that work.
ONE_THREAD = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
# No part of these runs when something is remembered, found or assembled.
OFF_THE_HOT_PATH = frozenset(
    [
        *"cli client documents eval integrations sample server testing transfer".split(),
        "errors.py",
        "verbs.py",
        "wire.py",
        "__main__.py",
    ]
)
LIBRARIES = ("holdfast", "numpy", "onnxruntime", "bm25s", "chromadb", "lancedb", "faiss-cpu")


def has_one_thread() -> bool:
    """Return whether this process was started with one thread for products of matrices."""
    return all(os.environ.get(name) == value for name, value in ONE_THREAD.items())


def timed(call: Callable[[], object], clock: Callable[[], float] = perf_counter) -> float:
    """Return the seconds of one call."""
    began = clock()
    call()
    return clock() - began


def percentiles(seconds: Sequence[float]) -> dict[str, float]:
    """Return the middle and the slow end of some times, in milliseconds."""
    p50, p95 = np.percentile(seconds, [50, 95])
    return {"p50 ms": round(float(p50) * MS, 3), "p95 ms": round(float(p95) * MS, 3)}


def time_by_turns(
    systems: dict[str, Callable[[Any], object]],
    asked: Sequence[Any],
    rounds: int,
    advance: Callable[[], None] = lambda: None,
    clock: Callable[[], float] = perf_counter,
) -> dict[str, list[float]]:
    """Time every system on the same questions, a block of them at a time.

    Whatever else the machine does falls on all of them alike. Each begins at another question: what one system has
    just read would otherwise lie ready for the next.
    """
    settle()
    times: dict[str, list[float]] = {name: [] for name in systems}
    for block in range(rounds):
        for place, (name, ask) in enumerate(systems.items()):
            begin = place * len(asked) // len(systems)
            for question in (*asked[begin:], *asked[:begin])[block::rounds]:
                times[name].append(timed(partial(ask, question), clock))
                advance()
    return times


def settle() -> None:
    """Keep the garbage collector from walking the set-up again and again while a system is timed."""
    gc.collect()
    gc.freeze()


def resident_bytes() -> int:
    """Return the memory this process holds now; the kernel's own peak counter would count what was given back."""
    statm = Path("/proc/self/statm")
    if statm.exists():
        return int(statm.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    listed = subprocess.run(["ps", "-o", "rss=", "-p", str(os.getpid())], check=True, capture_output=True, text=True)
    return int(listed.stdout) * 1024


def describe_machine() -> dict[str, Any]:
    """Return what a reader needs to judge milliseconds; no name and no path of the machine."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    found = {}
    for name in LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return {
        "cpu": next(named, platform.processor() or platform.machine()),
        "cores": os.cpu_count(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "libraries": found,
    }


def digest_hot_path(package: Path = Path(holdfast.__file__).parent) -> str:
    """Return a hash of the code that remembers, finds and assembles: comments, docstrings and layout left out."""
    hashed = hashlib.sha256()
    for file in sorted([*package.rglob("*.py"), *package.rglob("*.sql")]):
        path = file.relative_to(package)
        if path.parts[0] not in OFF_THE_HOT_PATH:
            text = file.read_text(encoding="utf-8")
            hashed.update(
                f"{path.as_posix()}\n{_outline(ast.parse(text)) if file.suffix == '.py' else text}".encode()
            )
    return hashed.hexdigest()[:16]


def _outline(node: object) -> object:
    """Return a syntax tree as plain values that are the same in every version of Python."""
    if isinstance(node, list):
        return [_outline(each) for each in node]
    if not isinstance(node, ast.AST):
        return repr(node)
    fields = {name: value for name, value in ast.iter_fields(node) if value not in (None, []) and name != "kind"}
    body = fields.get("body")
    if isinstance(body, list) and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
        fields["body"] = body[1:]
    return [type(node).__name__, [[name, _outline(value)] for name, value in fields.items()]]
