"""Law 17: an acknowledged write survives kill -9; what was not acknowledged is there whole or not at all."""

import json
import os
import random
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from holdfast import Memory

FEW, MANY = 5, int(os.environ.get("HOLDFAST_KILLS", "25"))
WRITER = Path(__file__).with_name("writer.py")


def kill_while_writing(path: Path, seed: int) -> dict[str, list[str]]:
    """Let a child write until a random point, kill it, and return what it had acknowledged."""
    chance = random.Random(seed)
    child = subprocess.Popen([sys.executable, str(WRITER), str(path), str(seed)], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    acknowledged = {}
    for _ in range(chance.randrange(1, 12)):
        line = json.loads(child.stdout.readline())
        acknowledged[line["batch"]] = line["ids"]
    # Somewhere inside the next few writes: a write takes about a millisecond or two.
    until = time.perf_counter() + chance.random() * 0.006
    while time.perf_counter() < until:
        pass
    child.kill()
    rest, _ = child.communicate()
    for line in rest.splitlines(keepends=True):
        if line.endswith("\n"):
            acknowledged[json.loads(line)["batch"]] = json.loads(line)["ids"]
    return acknowledged


@pytest.mark.parametrize("kills", [FEW, pytest.param(MANY, marks=pytest.mark.slow)])
def test_nothing_acknowledged_is_lost_and_nothing_is_half_written(tmp_path, kills):
    path = tmp_path / "crash.db"
    acknowledged = {}
    for seed in range(kills):
        acknowledged |= kill_while_writing(path, seed)
        with Memory.open(path) as memory:
            units = {unit.id: unit for unit in memory.list(user="ana", limit=None)}
            for batch, ids in acknowledged.items():
                assert [units[unit_id].metadata["batch"] for unit_id in ids] == [batch] * len(ids)
            sizes = Counter(unit.metadata["batch"] for unit in units.values())
            assert sizes == {unit.metadata["batch"]: unit.metadata["size"] for unit in units.values()}
            assert memory.store.verify() == []
            last = list(acknowledged)[-1]
            found = memory.search(f"marble batch {last}", user="ana", profile="fast", filters={"batch": last})
            assert {hit.unit.metadata["batch"] for hit in found} == {last}
    assert len(acknowledged) >= kills
