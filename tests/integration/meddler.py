"""A process that changes a few units again and again and says so, line by line, until it is killed."""

import contextlib
import sys

from holdfast import Memory, Settings, StoreError
from holdfast.testing.contracts import HashEmbedder

QUESTION = "the shared lighthouse keeper"


def meddle(memory, who, number):
    """Change what everybody shares, add to one's own, and let one of them replace another for a while."""
    own = [f"{who}-{i}" for i in range(10)]
    with contextlib.suppress(StoreError):  # somebody else was writing for too long
        if number % 3 == 0:
            memory.update("shared", user="ana", text=f"{QUESTION} is number {number} of {who}")
        elif number < len(own) * 3:
            memory.remember(f"the keeper of lighthouse {number} shared a boat", user="ana", id=own[number // 3])
        elif number % 3 == 1:
            memory.supersede(own[0], by=own[1 + number % 9], user="ana")
        else:
            memory.reinstate(own[0], user="ana")


if __name__ == "__main__":
    settings = Settings.load({"embedding.embedder": "none"}).without_timeouts()
    with Memory.open(sys.argv[1], settings=settings, embedder=HashEmbedder(64)) as opened:
        for turn in range(10**9):
            meddle(opened, sys.argv[2], turn)
            sys.stdout.write(f"{turn}\n")
            sys.stdout.flush()
