"""One of many processes on one store: does its part when it is told to, and reports in one line of JSON."""

import json
import sys
from pathlib import Path

from holdfast import Memory, Settings
from holdfast.testing.contracts import HashEmbedder

QUESTION = "the shared lighthouse keeper"


def crowd(memory, who, rounds):
    """Write into one memory together with others, and look at every answer meanwhile."""
    added, wrong = 0, []
    for number in range(rounds):
        batch = [{"role": "user", "content": f"pebble {number} {i}", "id": f"p{number}-{i}"} for i in range(3)]
        added += sum(one.status == "added" for one in memory.remember(batch, user="ana", session="same"))
        memory.remember(f"a pebble {number} of {who} alone", user="ana", session="mixed")
        memory.update("shared", user="ana", text=f"{QUESTION} is number {number} of {who}")
        found = memory.search(QUESTION, user="ana", explain=True, limit=100, profile=PROFILES[number % 4])
        wrong += [hit.unit.id for hit in found if hit.contributions.compose() != hit.score]
        wrong += [] if "shared" in [hit.unit.id for hit in found] else [f"not found in round {number}"]
        if number % 5 == 0:
            memory.assemble(QUESTION, user="ana", session="mixed", budget=300)
    return {"added": added, "wrong": wrong}


def tenants(memory, who, rounds, count):
    """Write for many tenants, and look whether an answer holds anything of another one."""
    wrong = []
    for number in range(rounds):
        for place in range(count):
            tenant = f"tenant{(place * 7 + number) % count}"
            owner = {"user": "ana", "tenant": tenant}
            memory.remember(f"the boat of {tenant} seen by {who} {number}", **owner, session="s")
            found = memory.search("boat", **owner, limit=100)
            listed = memory.list(**owner, limit=None)
            wrong += [unit.text for unit in (*(hit.unit for hit in found), *listed) if f" {tenant} " not in unit.text]
            wrong += [] if found and listed else [f"nothing of {tenant}"]
    return {"wrong": wrong}


def embed(memory, who, rounds):
    """Keep one unit after the other, each embedded at once; acknowledge each. The tests kill it."""
    for number in range(rounds):
        [written] = memory.remember(f"marble {number} of {who}", user="ana", id=f"{who}-{number}")
        sys.stdout.write(f"{written.id}\n")
        sys.stdout.flush()
    return {}


def come_and_go(memory, who, rounds):
    """Keep units and forget every second one; say which are gone for good, and which stay."""
    gone, kept = [], []
    for number in range(rounds):
        keys = [f"{who}-{number}{one}" for one in "ab"]
        memory.remember([{"id": key, "text": f"the code of {key} is SECRET{key}z"} for key in keys], user="bob")
        kept.append(keys[0])
        if memory.forget(ids=keys[1], user="bob").complete:
            gone.append(keys[1])
    return {"gone": gone, "kept": kept}


def forget(memory, who, rounds):
    """Forget one unit after the other; say of which it was told that nothing is left."""
    return {f"{who}-{n}": memory.forget(ids=[f"{who}-{n}"], user="ana").complete for n in range(rounds)}


def back_up(memory, who, rounds, folder):
    """Make one backup after the other."""
    return [memory.backup(Path(folder) / f"{who}-{n}.db") for n in range(rounds)]


PROFILES = ("fast", "balanced", "thinking", "hybrid")
VERBS = {
    "crowd": crowd,
    "tenants": tenants,
    "embed": embed,
    "forget": forget,
    "come_and_go": come_and_go,
    "back_up": back_up,
}

if __name__ == "__main__":
    address, verb, *numbers, name = sys.argv[1:]
    # However many wait for each other on however slow a machine: waiting is no failure here.
    given = {"embedding.embedder": "none", "store.busy_timeout_ms": 600_000}
    settings = Settings.load(given).without_timeouts()
    with Memory.open(address, settings=settings, embedder=HashEmbedder(64)) as opened:
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        sys.stdin.readline()
        report = VERBS[verb](opened, name, *(int(one) if one.isdecimal() else one for one in numbers))
        sys.stdout.write(json.dumps(report) + "\n")
