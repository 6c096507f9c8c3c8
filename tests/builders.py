"""Small builders that the tests share: a fixed moment, a memory that keeps nothing, units, views and deadlines."""

import contextlib
import dataclasses
import importlib.util
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import settings

import holdfast.memory
from holdfast import Memory, Settings
from holdfast.context.pack import fill
from holdfast.context.plan import plan_tail
from holdfast.context.project import CandidateSets
from holdfast.context.project import project as make_projection
from holdfast.ranking.pool import Pool
from holdfast.retrieval.strategy import retrieve as look_for
from holdfast.settings import EmbeddingSettings
from holdfast.store.contract import NO_LIMIT, read_once
from holdfast.store.rows import microseconds
from holdfast.store.sqlite.sqlite_reading import SqliteReading
from holdfast.text.questions import asks_only
from holdfast.types import QUESTION, Deadline, StrategyScores, Unit, View

NOW = datetime(2026, 5, 4, 12, 0, tzinfo=UTC)


# For a process of its own: its answers are complete however busy the machine is.
PATIENT = {"HOLDFAST_RETRIEVAL__TIMEOUT_MS": "600000", "HOLDFAST_RETRIEVAL__ESCALATION_TIMEOUT_MS": "600000"}
WORDS_ONLY = EmbeddingSettings(embedder="none")


# Of laws whose every example fills a memory; sixteen of them take longer than fifty of the others.
_SHARE = 3


def costly(law):
    """Mark a law with costly examples: `make test` draws a third as many, `make test-all` all."""
    return pytest.mark.costly(settings(max_examples=max(1, settings.default.max_examples // _SHARE))(law))


def opened(settings=None, now=NOW, embedder=None, path=":memory:"):
    """Open an empty memory whose clock stands at `now` (a moment, or a function that returns one).

    It finds by words alone unless an embedder is given: most laws do not need a model to be loaded.
    """
    settings = dataclasses.replace(settings or Settings(), embedding=WORDS_ONLY)
    clock = now if callable(now) else lambda: now
    return Memory.open(path, settings=settings, now=clock, embedder=embedder)


def without_pool(value):
    """Return an answer as it travels: the candidates behind its trace stay where they are."""
    if getattr(value, "trace", None) is None:
        return value
    return dataclasses.replace(value, trace=dataclasses.replace(value.trace, pool=None))


@contextlib.contextmanager
def watched(seconds):
    """Let memories that are opened meanwhile measure time budgets with `seconds`, a function like a stopwatch."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(holdfast.memory, "time", SimpleNamespace(perf_counter=seconds))
        yield


@contextlib.contextmanager
def constants(module, **values):
    """Give constants of a module other values for a while."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in values.items():
            patch.setattr(module, name, value)
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


def known_of(units, beside=None):
    """Return what a store knows of units, as columns; `beside` leads from an id to those before and after it."""
    said = {}
    spans = [unit.lineage or SimpleNamespace(starts=unit.event_time, ends=unit.event_time) for unit in units]
    words = ("author", "speaker", "session", "scope", "kind", "covered_by")
    known = {name: np.array([getattr(unit, name) for unit in units], dtype=object) for name in words}
    numbers = {
        "length": [len(unit.text) for unit in units],
        "event_time": [microseconds(unit.event_time) for unit in units],
        "starts": [microseconds(span.starts) for span in spans],
        "ends": [microseconds(span.ends) for span in spans],
        "said": [said.setdefault(unit.said(), len(said)) for unit in units],
        "stating": [QUESTION if asks_only(unit) else 0 for unit in units],
    }
    known |= {name: np.array(values, dtype=np.int64) for name, values in numbers.items()}
    known["asks"] = known["stating"] > 0
    rates = [unit.lineage.decay_rate if unit.lineage else np.nan for unit in units]
    known["decay_rate"] = np.array(rates, dtype=np.float64)
    if beside is not None:
        for place, name in enumerate(("before", "after")):
            near = [(*beside.get(unit.id, ()), None, None)[place] for unit in units]
            known[name] = np.array(near, dtype=object)
    return known


def make_claims(ids, raws, *, relative=False, **columns):
    """Return what a strategy says of `ids`: {id: raw score}, and columns by name; and of which it said anything."""
    claims = StrategyScores.of(ids, relative=relative)
    claims.raw[:] = [raws.get(unit_id, 0.0) for unit_id in ids]
    for name, values in columns.items():
        getattr(claims, name)[:] = [values.get(unit_id, 0.0) for unit_id in ids]
    return claims, np.array([unit_id in raws for unit_id in ids], dtype=bool)


def make_pool(rows, *, full_marks=1.0, beside=None, merged=None, claims=None):
    """Return a pool of (unit, relevance), best first; `claims` are those of `make_claims`, by strategy."""
    units = [unit for unit, _ in rows]
    rel = np.array([rel for _, rel in rows], dtype=np.float64)
    ids = tuple(unit.id for unit in units)
    said = {name: made[0] for name, made in (claims or {}).items()}
    claimed = {name: made[1] for name, made in (claims or {}).items()}
    fused = rel * full_marks
    return Pool(ids, said, claimed, known_of(units, beside), fused, fused, rel, full_marks, merged or {})


def project(entering, links, asked, settings, targets=(), spare=(), lead=None):
    """Return the projection of prospects; `targets` can come in by a hop alone, `spare` by the temporal selector."""
    prospects = CandidateSets(tuple(entering), tuple(targets), tuple(spare), links)
    return make_projection(asked, prospects, settings, lead=lead)


def patient():
    """Return a deadline that never expires."""
    return Deadline(lambda: 0.0, 0.0, 1.0)


def expired_after(checks):
    """Return a deadline that has time for so many checks and then none."""
    ticks = iter(range(checks + 1))
    return Deadline(lambda: 0.0 if next(ticks, checks) < checks else 1.0, 0.0, 1.0)


def ask(memory, question, view=None):
    """Ask the store of a memory one thing: a function of a reading."""
    return read_once(memory.store, view or make_view(), question)


def retrieve(memory, strategy, question, depth=100, deadline=None):
    """Let a strategy look in the store of a memory."""
    return ask(memory, lambda reading: look_for(strategy, question, reading, depth, deadline or patient()))


def known_facts(memory, view=None):
    """Return the facts that a view may see."""
    return ask(memory, lambda reading: reading.facts(), view)


def propose(memory, query, depth=99, view=None):
    """Return the ids that a store proposes, without a time limit."""
    return ask(memory, lambda reading: reading.propose(query, depth, patient()).ids, view)


def column(memory, name, ids, view=None):
    """Return what a store knows of some units under a name."""
    return ask(memory, lambda reading: reading.columns(ids, (name,))[name].tolist(), view)


def read_shards(shards, view=None, allowed=None, space="s"):
    """Return a reading of an index that is made of these shards, without a file; `allowed` are keys."""
    index = SimpleNamespace(shards=lambda _view: [*shards], space=lambda: space, fit_vectors=lambda _dims: None)
    reading = SqliteReading(view or make_view(), None, index, str)
    reading._visible._allowed = allowed
    return reading


def waiting(memory, space):
    """Return how many units, of any owner, wait for their vectors."""
    return len(memory.store.pending(space, NO_LIMIT))


def assemble(request, projection, sentence_score=None):
    """Plan and fill in one step, for a projection that was made without knowing the tail."""
    return fill(plan_tail(request), projection, sentence_score)
