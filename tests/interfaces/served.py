"""A memory behind a real server on loopback, in a thread of this process; and a client that asks it."""

import contextlib
import queue
import threading

import httpx

from builders import opened
from holdfast.server.http import HttpServer
from holdfast.server.limits import ServerSettings
from holdfast.server.listening import Listener, listen_on
from holdfast.testing.contracts import HashEmbedder

# No test waits for anything that long; it ends one that would wait for ever.
PATIENCE = 60.0


@contextlib.contextmanager
def served(memory=None, tokens=None, **settings):
    """Serve a memory (an empty one by default) at a free port, or at `unix`; yields its address."""
    how = ServerSettings(**{"port": 0, "rate": 1e9, "guesses": 1e9, **settings})
    with contextlib.ExitStack() as stack:
        memory = memory or stack.enter_context(opened(embedder=HashEmbedder()))
        listening = stack.enter_context(listen_on(how))
        addresses = queue.Queue()
        listener = Listener(HttpServer(memory, how, tokens), listening, addresses.put)
        thread = threading.Thread(target=listener.listen)
        thread.start()
        try:
            yield addresses.get(timeout=PATIENCE)
        finally:
            listener.should_exit = True
            thread.join(PATIENCE)
            assert not thread.is_alive()


def client(address, token=None, **headers):
    """Return a client for an address that `served` gave."""
    transport = None
    if address.startswith("unix:"):
        transport, address = httpx.HTTPTransport(uds=address.removeprefix("unix:")), "http://localhost"
    headers |= {"Authorization": f"Bearer {token}"} if token else {}
    return httpx.Client(base_url=address, transport=transport, headers=headers, timeout=PATIENCE)


def place_of(address):
    """Return host and port of an address, for a caller that speaks less than HTTP."""
    url = httpx.URL(address)
    return url.host, url.port
