"""A process that writes and saves its index again and again, and says so over its standard output; tests kill it.

The second argument names a moment of saving at which it kills itself: `written`, `replaced`, or `never`.
"""

import os
import signal
import sys
from pathlib import Path

from holdfast import Memory, Settings
from holdfast.settings import EmbeddingSettings
from holdfast.store.sqlite import live_index
from holdfast.testing.contracts import HashEmbedder

path, moment, seed = sys.argv[1], sys.argv[2], sys.argv[3]
live_index._WORTH_SAVING = 1
replace = Path.replace


def die(at):
    if moment == at:
        os.kill(os.getpid(), signal.SIGKILL)


def dying_replace(self, target):
    die("written")
    replace(self, target)
    die("replaced")
    return target


if moment != "never":
    Path.replace = dying_replace
settings = Settings(embedding=EmbeddingSettings(embedder="none")).without_timeouts()
for number in range(10_000):
    with Memory.open(path, settings=settings, embedder=HashEmbedder(64)) as memory:
        memory.search("pebble", user="ana", profile="fast")
        for i in range(5):
            memory.remember(f"pebble {i} of basket {seed} {number}", id=f"{seed}-{number}-{i}", user="ana")
    sys.stdout.write("saved\n")
    sys.stdout.flush()
