"""`holdfast doctor`: test a write, a read and a crash-safe reopen on this machine, and name what is wrong."""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from holdfast import sample
from holdfast.cli import draw
from holdfast.errors import HoldfastError
from holdfast.memory import Memory
from holdfast.models import build_embedder
from holdfast.models.embedder import verify_shipped
from holdfast.openers import is_missing
from holdfast.settings import Settings
from holdfast.store.sqlite.migrate import SQLITE_VERSION
from holdfast.types import Stats
from holdfast.values import dataclass

# What ends a process at once; Windows has no other word for it.
_KILL = getattr(signal, "SIGKILL", signal.SIGTERM)
# The child acknowledges its write and then kills itself without any goodbye.
_CRASH = f"""
import os, sys
from holdfast import Memory
memory = Memory.open(sys.argv[1])
memory.remember("the lighthouse keeper counts every wave", user="doctor")
print("acknowledged", flush=True)
os.kill(os.getpid(), {int(_KILL)})
"""
# Far longer than a busy machine takes; only a child that hangs takes longer.
_CRASH_TIMEOUT = 600.0


@dataclass(frozen=True, slots=True)
class Check:
    """One thing the doctor looked at."""

    name: str
    passed: bool
    detail: str


def examine(database: str | None, settings: Settings) -> Iterator[Check]:
    """Yield every check as it is done; `database` is looked at, never changed."""
    settings = settings.without_timeouts()  # a busy machine is not a sick one
    yield Check("Python and SQLite", True, f"Python {sys.version.split()[0]}, SQLite {SQLITE_VERSION}")
    with tempfile.TemporaryDirectory(prefix="holdfast-doctor-") as folder:
        yield _check("a live write and read", lambda: _write_and_read(Path(folder) / "live.db", settings))
        yield _check("the shipped models", _models)
        yield _check(f"the embedder {settings.embedding.embedder}", lambda: _embedder(settings))
        yield _check("words found again", lambda: _questions(Path(folder) / "sample.db", settings))
        yield _check("a killed writer loses nothing", lambda: _crash(Path(folder) / "crash.db", settings))
    if database is not None and not is_missing(database):
        yield _check(f"the store {database}", lambda: _verify(database, settings))


def _check(name: str, look: Callable[[], str]) -> Check:
    try:
        return Check(name, True, look())
    except (HoldfastError, AssertionError, OSError, subprocess.SubprocessError) as error:
        return Check(name, False, str(error) or type(error).__name__)


def _expect(condition: bool, otherwise: str) -> None:
    if not condition:
        raise AssertionError(otherwise)


def _write_and_read(path: Path, settings: Settings) -> str:
    with Memory.open(path, settings=settings) as memory:
        [written] = memory.remember("the doctor was here", user="doctor")
    with Memory.open(path, settings=settings) as memory:
        unit = memory.get(written.id, user="doctor")
    _expect(unit.text == "the doctor was here", "what was read is not what was written; check the disk")
    return "written, closed, reopened, read back word for word"


def _models() -> str:
    problems = verify_shipped()
    _expect(not problems, "; ".join(problems) + "; install holdfast again")
    return "every byte is the one that was built"


def _embedder(settings: Settings) -> str:
    embedder = build_embedder(settings.embedding)
    return "lexical results only" if embedder is None else f"makes vectors of {embedder.space}"


def _questions(path: Path, settings: Settings) -> str:
    with Memory.open(path, settings=settings) as memory:
        for session, messages in sample.sessions():
            memory.remember(messages, user=sample.USER, session=session)
        asked = [question for question in sample.questions() if question["kind"] == "words"]
        found = 0
        for question in asked:
            hits = memory.search(question["question"], user=sample.USER, limit=5)
            found += any(hit.unit.message_id in question["gold"] for hit in hits)
    share = f"{found} of {len(asked)} sample questions answered in the first five hits"
    _expect(found >= 0.8 * len(asked), f"only {share}; check the settings of analysis and lexical")
    return share


def _crash(path: Path, settings: Settings) -> str:
    child = subprocess.run(  # noqa: S603 - our own interpreter, our own program
        [sys.executable, "-c", _CRASH, str(path)], capture_output=True, text=True, timeout=_CRASH_TIMEOUT, check=False
    )
    killed = abs(child.returncode) == _KILL and child.stdout.strip() == "acknowledged"
    _expect(killed, f"the writing child did not get as far as its kill: {child.stderr.strip()[-200:]}")
    with Memory.open(path, settings=settings) as memory:
        hits = memory.search("lighthouse keeper", user="doctor")
        _expect(len(hits) == 1, "an acknowledged write was lost; the disk does not keep its promise of fsync")
        problems = memory.store.verify()
    _expect(not problems, "; ".join(problem.what for problem in problems))
    return f"killed with {_KILL.name} after its acknowledgement; reopened whole"


def _verify(path: str, settings: Settings) -> str:
    with Memory.open(path, settings=settings) as memory:
        problems = memory.store.verify()
        _expect(not problems, "; ".join(f"{problem.what}: {problem.remedy}" for problem in problems))
        stats = memory.stats(user=sample.USER, whole=True)
    waiting = f"; {draw.count(stats.waiting, 'unit')} without a vector of {stats.space}" if stats.waiting else ""
    return f"{draw.count(stats.store_units or 0, 'unit')}, every checksum holds{waiting}{_mismatch(stats, settings)}"


def _mismatch(stats: Stats, settings: Settings) -> str:
    """Say that the vectors of a store are another embedder's than the settings name."""
    try:
        embedder = build_embedder(settings.embedding) if stats.space else None
        if embedder is None or embedder.space == stats.space:
            return ""
    except HoldfastError:  # a line of its own says so
        return ""
    return f"; its vectors are of {stats.space}, and not of the embedder in force; run `holdfast reembed`"
