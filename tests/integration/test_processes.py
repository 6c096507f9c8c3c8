"""Two processes on one file read each other's writes, and lose or double none."""

import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from crowd import QUESTION
from test_crash import EMBEDDER, LONG_ALONE, secrets_in
from test_erasing_at_once import told_by

from builders import opened
from holdfast import ClosedStoreError, Memory

# How long eight processes work on one file in `make test-long`.
MINUTES = float(os.environ.get("HOLDFAST_MINUTES", "1"))
PEER = Path(__file__).with_name("peer.py")


class Peer:
    def __init__(self, path):
        self.process = subprocess.Popen(
            [sys.executable, str(PEER), str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def __call__(self, verb, argument):
        self.process.stdin.write(json.dumps([verb, argument]) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


def test_two_processes_read_each_others_writes(tmp_path):
    path = tmp_path / "shared.db"
    with Memory.open(path) as memory, Peer(path) as peer:
        assert peer("search", "walnut") == []
        memory.remember("the walnut table came on Monday", user="ana")
        assert peer("search", "walnut") == ["the walnut table came on Monday"]
        assert peer("remember", ["the walnut table wobbles"]) == ["added"]
        hits = memory.search("wobbles", user="ana")
        assert [hit.unit.text for hit in hits] == ["the walnut table wobbles"]
        assert peer("update", [hits[0].unit.id, "the walnut table stands firm"]) == 2
        assert [hit.unit.text for hit in memory.search("firm", user="ana")] == ["the walnut table stands firm"]
        assert len(memory.search("wobbles", user="ana")) == 0
        memory.update(hits[0].unit.id, user="ana", text="the walnut table was sold")
        assert peer("search", "firm") == []


def test_concurrent_writers_lose_nothing_and_double_nothing(tmp_path):
    path = tmp_path / "shared.db"
    Memory.open(path).close()
    lists = [
        [{"role": "user", "content": f"pebble {n} of round {r}", "id": f"{r}-{n}"} for n in range(5)]
        for r in range(30)
    ]
    with Peer(path) as one, Peer(path) as two, ThreadPoolExecutor(2) as pool:
        # Both send every list: each message must be added by exactly one of them.
        answers = list(pool.map(lambda peer: [peer("remember", messages) for messages in lists], (one, two)))
    added = sum(status == "added" for answer in answers for statuses in answer for status in statuses)
    with Memory.open(path) as memory:
        units = memory.list(user="ana", limit=None)
        assert added == len(units) == 150
        assert sorted(unit.position for unit in units) == list(range(150))
        assert len(memory.search("pebble", user="ana", limit=20)) == 20


def test_concurrent_updates_are_all_kept(tmp_path):
    path = tmp_path / "shared.db"
    with Memory.open(path) as memory:
        [written] = memory.remember("count 0", user="ana")
    with Peer(path) as one, Peer(path) as two, ThreadPoolExecutor(2) as pool:
        tasks = [(one, "one"), (two, "two")]
        list(pool.map(lambda t: [t[0]("update", [written.id, f"count {t[1]} {n}"]) for n in range(20)], tasks))
    with Memory.open(path) as memory:
        versions = memory.history(written.id, user="ana")
    assert [version.version for version in versions] == list(range(1, 42))
    assert len({version.text for version in versions}) == 41


def test_threads_share_one_memory(tmp_path):
    with Memory.open(tmp_path / "threads.db") as memory, ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda n: memory.remember(f"pebble number {n}", user="ana"), range(60)))
        found = list(pool.map(lambda n: memory.search(f"number {n}", user="ana")[0].unit.text, range(60)))
    assert found == [f"pebble number {n}" for n in range(60)]


@pytest.mark.filterwarnings(
    "ignore::DeprecationWarning"
)  # Python warns about forking with threads: that is the point
def test_a_memory_refuses_to_be_used_across_a_fork(tmp_path):
    with Memory.open(tmp_path / "fork.db") as memory:
        memory.remember("before the fork", user="ana")
        child = os.fork()
        if child == 0:
            try:
                memory.search("fork", user="ana")
            except ClosedStoreError as error:
                os._exit(0 if "fork" in str(error) else 3)
            os._exit(2)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert len(memory.search("fork", user="ana")) == 1


@pytest.mark.parametrize(
    ("processes", "rounds", "minutes"),
    [pytest.param(4, 2, 0, marks=pytest.mark.slow), pytest.param(8, 10, MINUTES, marks=LONG_ALONE)],
)
def test_many_processes_on_one_file_lose_nothing_and_keep_nothing_forgotten(tmp_path, processes, rounds, minutes):
    """Some write and look at every answer, some forget, one makes backups, turn after turn."""
    path, until, turn, told = tmp_path / "many.db", time.monotonic() + 60 * minutes, 0, []
    with opened(path=path, embedder=EMBEDDER) as memory:
        memory.remember(f"{QUESTION} is number 0", user="ana", id="shared")
    while not turn or time.monotonic() < until:
        half = processes // 2
        tasks = [("crowd", rounds, f"w{turn}.{n}") for n in range(half)]
        tasks += [("come_and_go", rounds, f"f{turn}.{n}") for n in range(processes - half - 1)]
        told += told_by(str(path), [*tasks, ("back_up", 2, tmp_path, f"c{turn}")])[:-1]
        gone = {key for one in told for key in one.get("gone", ())}
        assert {key for _, key in secrets_in(tmp_path)} & gone == set(), turn
        for copy in tmp_path.glob("c*.db"):
            copy.unlink()
        turn += 1
    with opened(path=path, embedder=EMBEDDER) as memory:
        # A unit that somebody else has just changed waits for its vector for a moment, and may be cut meanwhile.
        wrong = [one for report in told for one in report.get("wrong", ()) if not one.startswith("not found")]
        assert wrong == []
        assert sum(one.get("added", 0) for one in told) == 3 * rounds
        kept = {key for one in told for key in one.get("kept", ())}
        assert kept <= {unit.id for unit in memory.list(user="bob", limit=None)}
        assert len(memory.history("shared", user="ana")) == turn * half * rounds + 1
        assert memory.store.verify() == []
        assert gone
