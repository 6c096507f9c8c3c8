"""A process whose files cannot grow beyond a size: it writes, forgets and copies, and says what was acknowledged."""

import json
import resource
import sys

from holdfast import Memory, Settings, StoreError
from holdfast.testing.contracts import HashEmbedder


def work(memory, copy):
    """Yield what was done: a verb and an id."""
    for number in range(12):
        try:
            [kept] = memory.remember(f"SECRET{number}z " + f"pebble{number} " * 40, user="ana", id=f"p{number}")
            yield "kept", kept.id
            if number % 3 == 2 and memory.forget(ids=f"p{number - 1}", user="ana").complete:
                yield "forgotten", f"p{number - 1}"
            if number == 5:
                memory.backup(copy)
        except StoreError:
            yield "refused", f"p{number}"
        memory.search("pebble", user="ana")


if __name__ == "__main__":
    path, size, copy = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    settings = Settings.load({"embedding.embedder": "none"}).without_timeouts()
    with Memory.open(path, settings=settings, embedder=HashEmbedder(64)) as opened:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
        for done in work(opened, copy):
            sys.stdout.write(json.dumps(done) + "\n")
            sys.stdout.flush()
