"""Many processes on one store in PostgreSQL: nothing lost, doubled or leaked, and every answer of one state."""

import contextlib
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings
from meddler import QUESTION
from test_one_state import both, meddling_processes, meddling_threads

from builders import make_view, opened, waiting
from holdfast.store.contract import read_once
from holdfast.store.queries import DenseQuery
from holdfast.testing.contracts import HashEmbedder

WORKER = Path(__file__).with_name("embedding_worker.py")
CROWD = Path(__file__).with_name("crowd.py")
PROFILES = ("fast", "balanced", "thinking", "hybrid")
LONG = settings.default.max_examples >= 1_000
# Processes, rounds of each, tenants, searches beside writers, kills: a few seconds, or as many as are promised.
PROCESSES, ROUNDS, TENANTS, SEARCHES, KILLS = (8, 60, 50, 300, 40) if LONG else (3, 5, 6, 20, 2)
EMBEDDER, UNITS = HashEmbedder(64), 60
# More than a question has statements for.
MOST_WRITES = 200


@contextlib.contextmanager
def started(program, *numbers, count):
    """Start a program of this folder several times; whatever happens, none is left."""
    running = [
        subprocess.Popen(
            [sys.executable, str(program), *map(str, numbers), *([f"one{number}"] if program == CROWD else [])],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for number in range(count)
    ]  # fmt: skip
    try:
        yield running
    finally:
        for one in running:
            one.kill()
            one.wait()
            for pipe in (one.stdin, one.stdout, one.stderr):
                pipe.close()


@contextlib.contextmanager
def crowd(address, verb, *numbers, count=PROCESSES):
    """Start processes on one store, and let them begin together."""
    with started(CROWD, address, verb, *numbers, count=count) as running:
        assert [one.stdout.readline() for one in running] == ["ready\n"] * count
        for one in running:
            one.stdin.write("go\n")
            one.stdin.flush()
        yield running


def reports(running):
    """Wait for processes that come to an end; return what each has to say."""
    told = [one.communicate() for one in running]
    assert [error for _, error in told] == [""] * len(running)
    assert [one.returncode for one in running] == [0] * len(running)
    return [json.loads(said) for said, _ in told]


def begin(memory):
    memory.remember(f"{QUESTION} is number 0", user="ana", id="shared")
    memory.remember([f"a keeper tells of boat {n} and of the shared harbour" for n in range(20)], user="ana")


def test_many_processes_in_one_memory_lose_and_double_nothing(database):
    with opened(path=database, embedder=EMBEDDER) as memory:
        begin(memory)
        with crowd(database, "crowd", ROUNDS) as running:
            told = reports(running)
        assert [one["wrong"] for one in told] == [[]] * PROCESSES
        assert sum(one["added"] for one in told) == 3 * ROUNDS
        units = memory.list(user="ana", limit=None, current_only=False)
        same = [unit.position for unit in units if unit.session == "same"]
        assert sorted(same) == list(range(3 * ROUNDS))
        mixed = [unit for unit in units if unit.session == "mixed" and unit.kind == "turn"]
        assert sorted(unit.position for unit in mixed) == list(range(PROCESSES * ROUNDS))
        expected = {f"a pebble {number} of one{who} alone" for number in range(ROUNDS) for who in range(PROCESSES)}
        assert {unit.text for unit in mixed} == expected
        versions = memory.history("shared", user="ana")
        assert [unit.version for unit in versions] == list(range(1, PROCESSES * ROUNDS + 2))
        assert len({unit.text for unit in versions}) == PROCESSES * ROUNDS + 1
        assert waiting(memory, EMBEDDER.space) == 0
        assert memory.store.verify() == []


def test_many_processes_for_many_tenants_see_nothing_of_each_other(database):
    rounds = max(2, ROUNDS // 10)
    with crowd(database, "tenants", rounds, TENANTS) as running:
        assert [one["wrong"] for one in reports(running)] == [[]] * PROCESSES
    with opened(path=database, embedder=EMBEDDER) as memory:
        for place in range(TENANTS):
            owner = {"user": "ana", "tenant": f"tenant{place}"}
            texts = [unit.text for unit in memory.list(**owner, limit=None)]
            expected = {
                f"the boat of tenant{place} seen by one{who} {number}"
                for who in range(PROCESSES)
                for number in range(rounds)
            }
            assert len(texts) == len(expected)
            assert {*texts} == expected
        assert memory.store.verify() == []


def test_every_answer_is_of_one_state_while_threads_and_processes_write(database):
    with opened(path=database, embedder=EMBEDDER) as reader:
        begin(reader)
        with meddling_processes(database, ("p1", "p2")), meddling_threads(database, ("t1", "t2")):
            for number in range(SEARCHES):
                profile = PROFILES[number % len(PROFILES)]
                found = reader.search(QUESTION, user="ana", profile=profile, explain=True, limit=100)
                assert [hit.contributions.compose() for hit in found] == [hit.score for hit in found]
                assert "shared" in [hit.unit.id for hit in found]
                assert reader.get("shared", user="ana").id == "shared"
        assert reader.get("shared", user="ana").version > 2
        assert reader.store.verify() == []


@pytest.mark.parametrize("profile", PROFILES)
def test_explanations_compose_whatever_is_written_between_two_statements(database, profile, monkeypatch):
    """Another process, in effect, writes before each statement of a question."""
    with opened(path=database, embedder=EMBEDDER) as writer, opened(path=database, embedder=EMBEDDER) as reader:
        begin(writer)
        run, writes = reader.store._database.execute, []

        def disturbed(*given, **more):
            if len(writes) < MOST_WRITES:
                writes.append(None)
                both(writer, len(writes))
            return run(*given, **more)

        monkeypatch.setattr(reader.store._database, "execute", disturbed)
        found = reader.search(QUESTION, user="ana", profile=profile, explain=True)
        context = reader.assemble(QUESTION, user="ana", budget=300, track_access=False)
        assert writes, "nothing was written meanwhile: the reader has no statement that could be seen"
        assert [hit.contributions.compose() for hit in found] == [hit.score for hit in found]
        assert "shared" in [hit.unit.id for hit in found]
        assert QUESTION in context.text


def test_processes_killed_while_they_write_and_embed_lose_nothing(database):
    kept = set()
    with opened(path=database, embedder=EMBEDDER) as memory:
        for kill in range(KILLS):
            with crowd(database, "embed", 100_000, count=2) as running:
                for one in running:
                    for _ in range(1 + kill % 4):
                        kept.add(one.stdout.readline().strip())
                for one in running:
                    one.kill()
            # What was acknowledged is there, and no more than one unit each that nobody was told of.
            found = {unit.id for unit in memory.list(user="ana", limit=None)}
            assert kept <= found
        memory.reembed()
        assert waiting(memory, EMBEDDER.space) == 0
        for unit in memory.list(user="ana", limit=20):
            assert memory.search(unit.text, user="ana", limit=50)
        assert memory.store.verify() == []


def test_workers_killed_at_any_moment_while_others_write_leave_no_unit_without_its_vector(database):
    with opened(path=database) as memory, opened(path=database, embedder=EMBEDDER) as reader:
        memory.remember([{"text": f"marble {n}", "id": f"m{n}"} for n in range(UNITS)], user="ana")
        for kill in range(KILLS):
            with started(WORKER, database, count=2) as workers:
                for number, worker in enumerate(workers):
                    for _ in range(1 + (kill * 37 + number * 11) % UNITS):  # each time elsewhere
                        worker.stdout.readline()
                    memory.update(f"m{kill % UNITS}", user="ana", text=f"marble {kill} of kill {kill} and {number}")
                    worker.kill()
            for n in range(0, UNITS, 2):  # something to do for the next ones
                memory.update(f"m{n}", user="ana", text=f"marble {n} after {kill}")
        last = subprocess.run([sys.executable, str(WORKER), database], capture_output=True, check=True)
        assert last.stderr == b""
        assert waiting(reader, EMBEDDER.space) == 0
        units = reader.list(user="ana", limit=None)
        assert len(units) == UNITS
        query = DenseQuery(EMBEDDER.space, EMBEDDER.embed_query("marble"))
        ids = [unit.id for unit in units]
        found = read_once(reader.store, make_view(), lambda reading: reading.evidence(query, ids))
        told = dict(zip(found.ids, found.vectors, strict=True))
        for unit in units:  # of its present words
            assert np.allclose(told[unit.id], EMBEDDER.embed_query(unit.text), atol=1e-3), unit.text
        assert reader.store.verify() == []
