"""Small builders that the tests share: a fixed moment, a memory that keeps nothing, units, views and deadlines."""

import contextlib
import dataclasses
import importlib.util
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest

import holdfast.memory
from holdfast import Memory, Settings
from holdfast.assembly.pack import fill
from holdfast.assembly.plan import plan_tail
from holdfast.settings import EmbeddingSettings
from holdfast.types import Deadline, Unit, View

NOW = datetime(2026, 5, 4, 12, 0, tzinfo=UTC)


# For a process of its own: its answers are complete however busy the machine is.
PATIENT = {"HOLDFAST_RETRIEVAL__TIMEOUT_MS": "600000", "HOLDFAST_RETRIEVAL__ESCALATION_TIMEOUT_MS": "600000"}
WORDS_ONLY = EmbeddingSettings(embedder="none")


def opened(settings=None, now=NOW, embedder=None, path=":memory:"):
    """Open an empty memory whose clock stands at `now` (a moment, or a function that returns one).

    It finds by words alone unless an embedder is given: most laws do not need a model to be loaded.
    """
    settings = dataclasses.replace(settings or Settings(), embedding=WORDS_ONLY)
    clock = now if callable(now) else lambda: now
    return Memory.open(path, settings=settings, now=clock, embedder=embedder)


@contextlib.contextmanager
def watched(seconds):
    """Let memories that are opened meanwhile measure time budgets with `seconds`, a function like a stopwatch."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(holdfast.memory, "time", SimpleNamespace(perf_counter=seconds))
        yield


def program(path):
    """Return a program of this repository as a module, by its path: scripts and benchmarks are no packages."""
    file = Path(__file__).parents[1] / path
    spec = importlib.util.spec_from_file_location(file.stem, file)
    module = importlib.util.module_from_spec(spec)
    sys.modules[file.stem] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def later(**spans):
    """Return a moment after `NOW`; negative spans lie before it."""
    return NOW + timedelta(**spans)


def make_unit(unit_id="u1", text="the kettle is on the left shelf", **fields):
    """Build a user's turn; its claim is its text unless a statement is given."""
    given = {"tenant": "local", "user": "ana", "scope": "user", "event_time": NOW, "recorded_time": NOW}
    if not fields.keys() & {"claim", "procedure"}:
        given["procedure" if fields.get("role") == "Procedure" else "claim"] = text
    return Unit(id=unit_id, text=text, **{**given, **fields})


def make_view(**fields):
    """Build what one call may see."""
    return View(**{"tenant": "local", "user": "ana", "now": NOW, "reference_time": NOW, **fields})


def patient():
    """Return a deadline that never expires."""
    return Deadline(lambda: 0.0, 0.0, 1.0)


def expired_after(checks):
    """Return a deadline that has time for so many checks and then none."""
    ticks = iter(range(checks + 1))
    return Deadline(lambda: 0.0 if next(ticks, checks) < checks else 1.0, 0.0, 1.0)


def assemble(request, projection, sentence_score=None):
    """Plan and fill in one step, for a projection that was made without knowing the tail."""
    return fill(plan_tail(request), projection, sentence_score)
