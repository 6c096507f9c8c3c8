"""Law 17: an acknowledged write survives kill -9; what was not acknowledged is there whole or not at all.

Law 16 too: nothing of what was forgotten is left in any file, whatever was killed, full or set back meanwhile.
"""

import contextlib
import json
import os
import random
import re
import subprocess
import sys
import threading
import time
from collections import Counter
from datetime import timedelta
from pathlib import Path

import pytest

from builders import NOW, opened
from histories import bytes_of
from holdfast import Memory, ServerError, Settings
from holdfast.testing.contracts import HashEmbedder

EMBEDDER = HashEmbedder(64)
# However slow the machine is: waiting for each other is no failure here.
PATIENT = Settings.load({"store.busy_timeout_ms": 600_000}, environ={})
FEW, MANY = 5, int(os.environ.get("HOLDFAST_KILLS", "25"))
# Minutes long: with HOLDFAST_KILLS, as `make test-long` has it, alone.
LONG_ALONE = (
    pytest.mark.slow,
    pytest.mark.skipif("HOLDFAST_KILLS" not in os.environ, reason="`make test-long` runs it"),
)
JUMPS, DECADE = (1, 60, -1, -3600, 86_400, -86_400 * 400, 86_400 * 400), timedelta(days=3650)
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


def secrets_in(folder):
    """Return which secrets are in which file below a folder."""
    return {
        (name, key.decode())
        for name, data in bytes_of(folder).items()
        for key in re.findall(rb"SECRET([\w.-]+)z", data)
    }


class Life:
    """What callers of one server were told, over all of its lives."""

    def __init__(self, path):
        self.path = path
        self.kept, self.gone, self.unsure = set(), set(), set()
        self.copies = 0

    def write(self, address, seed, stop):
        """Keep units and forget some of them through HTTP until the server is gone."""
        number = 0
        with contextlib.suppress(ServerError), Memory.open(address) as memory:
            while not stop.is_set():
                key = f"{seed}-{number}"
                memory.remember(f"the door of {key} has the code SECRET{key}z", user="ana", id=key)
                self.kept.add(key)
                if number % 3 == 2:
                    old = f"{seed}-{number - 1}"
                    self.kept.discard(old)
                    self.unsure.add(old)  # until there is an answer, it may be gone or not
                    if memory.forget(ids=old, user="ana").complete:
                        self.gone.add(old)
                number += 1

    def copy(self, stop):
        """Make backups beside the server, and throw old ones away."""
        with opened(PATIENT, path=self.path, embedder=EMBEDDER) as memory:
            while not stop.is_set():
                memory.backup(self.path.with_name(f"copy-{self.copies}.db"))
                self.path.with_name(f"copy-{self.copies - 3}.db").unlink(missing_ok=True)
                self.copies += 1

    def kill_while_serving(self, seed):
        """Serve, be busy, and be killed at some moment."""
        chance, stop = random.Random(seed), threading.Event()
        child = subprocess.Popen(
            [sys.executable, str(SERVER), str(self.path)],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        address, before = child.stdout.readline().strip(), len(self.kept) + len(self.unsure)
        busy = [threading.Thread(target=self.write, args=(address, f"{seed}.{n}", stop)) for n in range(2)]
        busy.append(threading.Thread(target=self.copy, args=(stop,)))
        for one in busy:
            one.start()
        until = before + chance.randrange(4, 16)
        while len(self.kept) + len(self.unsure) < until and any(one.is_alive() for one in busy[:2]):
            stop.wait(chance.random() * 0.01)
        child.kill()
        stop.set()
        for one in busy:
            one.join()
        child.communicate()


SERVER, FULL = Path(__file__).with_name("served_store.py"), Path(__file__).with_name("full_disk.py")


@pytest.mark.parametrize("kills", [pytest.param(FEW, marks=pytest.mark.slow), pytest.param(MANY, marks=LONG_ALONE)])
def test_a_server_killed_while_it_forgets_and_is_copied_loses_nothing_and_keeps_nothing_forgotten(tmp_path, kills):
    life = Life(tmp_path / "served.db")
    opened(path=life.path, embedder=EMBEDDER).close()
    for seed in range(kills):
        life.kill_while_serving(seed)
        assert {key for _, key in secrets_in(tmp_path)} & life.gone == set(), seed
        with opened(path=life.path, embedder=EMBEDDER) as memory:
            found = {unit.id for unit in memory.list(user="ana", limit=None)}
            assert life.kept <= found, seed
            assert not life.gone & found, seed
            assert memory.store.verify() == []
            life.gone |= life.unsure - found
            life.unsure &= found
            memory.remember(f"the next write of {seed} goes on with what was interrupted", user="somebody")
        assert {key for _, key in secrets_in(tmp_path)} & life.gone == set(), seed
    assert life.gone
    assert life.copies
    assert {key for _, key in secrets_in(tmp_path)} >= life.kept, "the search finds nothing at all"


@pytest.mark.skipif(sys.platform == "win32", reason="there is no limit of a file's size to set")
@pytest.mark.parametrize("sizes", [range(40, 210, 40), pytest.param(range(20, 220), marks=LONG_ALONE)])
def test_a_disk_that_is_full_at_some_write_loses_nothing_and_keeps_nothing_forgotten(tmp_path, sizes):
    for size in sizes:
        folder = tmp_path / str(size)
        folder.mkdir()
        path = folder / "full.db"
        opened(path=path, embedder=EMBEDDER).close()
        given = [str(path), str(size << 10), str(folder / "copy.db")]
        child = subprocess.run([sys.executable, str(FULL), *given], capture_output=True, text=True, check=False)
        told = [json.loads(line) for line in child.stdout.splitlines()]
        assert len(told) >= 12, child.stderr
        done = {verb: {key for said, key in told if said == verb} for verb in ("kept", "forgotten", "refused")}
        assert {f"p{key}" for _, key in secrets_in(folder)} & done["forgotten"] == set(), size
        with opened(path=path, embedder=EMBEDDER) as memory:
            found = {unit.id for unit in memory.list(user="ana", limit=None)}
            assert done["kept"] - done["forgotten"] - done["refused"] <= found | {f"p{n}" for n in (1, 4, 7, 10)}, (
                size
            )
            assert not done["forgotten"] & found
            assert memory.store.verify() == []
            memory.remember("there is room again", user="ana")
        gone = {f"p{n}" for n in range(12)} - found
        assert {f"p{key}" for _, key in secrets_in(folder)} & gone == set(), size


@pytest.mark.parametrize("steps", [60, pytest.param(4 * MANY, marks=LONG_ALONE)])
def test_a_clock_that_jumps_loses_nothing_and_orders_turns_as_they_came(tmp_path, steps):
    """Clocks are set, and machines wake up: what came later may carry an earlier time."""
    chance, clock = random.Random(steps), [NOW]

    def now():
        clock[0] = min(max(clock[0] + timedelta(seconds=chance.choice(JUMPS)), NOW - DECADE), NOW + DECADE)
        return clock[0]

    kept, gone = [], set()
    with opened(now=now, path=tmp_path / "clock.db", embedder=EMBEDDER) as memory:
        for number in range(steps):
            key = f"t{number}"
            memory.remember(f"turn SECRET{number}z of the clock", user="ana", session="s", id=key)
            kept.append(key)
            if number % 7 == 3:
                old = kept.pop(chance.randrange(len(kept)))
                assert memory.forget(ids=old, user="ana").complete
                gone.add(old.removeprefix("t"))
            if number % 5 == 2:
                memory.update(kept[-1], user="ana", text=f"turn SECRET{number}z of the clock again")
                memory.search("turn of the clock", user="ana", session="s", as_of=clock[0])
                assert memory.assemble("turn of the clock", user="ana", session="s", budget=400).text
        units = {unit.id: unit for unit in memory.list(user="ana", limit=None)}
        assert {*kept} <= {*units}
        assert [units[key].position for key in kept] == sorted(units[key].position for key in kept)
        assert memory.store.verify() == []
    assert {key for _, key in secrets_in(tmp_path)} & gone == set()
