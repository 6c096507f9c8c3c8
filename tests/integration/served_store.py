"""A process that serves a store over HTTP, and says where; the tests kill it."""

import os
import sys

from holdfast import Memory, Settings
from holdfast.server.http import HttpServer
from holdfast.server.limits import ServerSettings
from holdfast.server.listening import Listener, listen_on
from holdfast.testing.contracts import HashEmbedder

if __name__ == "__main__":
    settings = Settings.load({"embedding.embedder": "none", "store.busy_timeout_ms": 600_000}).without_timeouts()
    how = ServerSettings(port=0, rate=1e9)
    with (
        Memory.open(sys.argv[1], settings=settings, embedder=HashEmbedder(64)) as memory,
        listen_on(how) as listening,
    ):
        Listener(HttpServer(memory, how), listening, lambda address: os.write(1, f"{address}\n".encode())).listen()
