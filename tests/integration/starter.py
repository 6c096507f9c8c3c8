"""A process that opens a memory when it is told to, together with others, and writes one thing."""

import sys

from holdfast import Memory, Settings

settings = Settings.load({"embedding.embedder": "none"}).without_timeouts()
sys.stdout.write("ready\n")
sys.stdout.flush()
sys.stdin.readline()
with Memory.open(sys.argv[1], settings=settings) as memory:
    [written] = memory.remember(f"starter {sys.argv[2]} was here", user="ana")
    sys.stdout.write(f"{written.status}\n")
