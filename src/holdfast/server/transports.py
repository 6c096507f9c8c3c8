"""How the MCP server is reached: by stdio, or by streamable HTTP on the loopback interface."""

from __future__ import annotations

import functools
import logging
import signal
import sys
from collections.abc import Callable
from dataclasses import replace
from hmac import compare_digest
from typing import Any

import anyio
import anyio.to_thread
import uvicorn
from mcp.server.transport_security import TransportSecuritySettings
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from holdfast.errors import InputError, quote_value
from holdfast.memory import Memory
from holdfast.server.listening import ending_cleanly, is_loopback, open_port
from holdfast.server.mcp import ServerScope, build_server
from holdfast.values import dataclass

# Calls that work at a time. Answering is bound by the processor, and a host rarely sends more at once.
_WORKERS = 8
# How long a stopping server waits for the calls that it has accepted.
_STOP_SECONDS = 30
# Shorter ones are guessed, and an empty file is a slip.
_SHORTEST_TOKEN = 16
_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")


@dataclass(frozen=True, slots=True)
class Address:
    """Where streamable HTTP is served; `hosts` and `origins` are headers accepted besides those of the address."""

    host: str = "127.0.0.1"
    port: int = 8766
    token: str | None = None
    hosts: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()


def serve(memory: Memory, scope: ServerScope, address: Address | None, tell: Callable[[str], None]) -> None:
    """Serve at an address, or without one over stdio; `tell` hears where, and what to do instead."""
    if address is not None:
        serve_http(memory, scope, address, lambda url: tell(f"holdfast mcp at {url}"))
        return
    if sys.stdin.isatty():
        tell("an MCP host starts this and speaks through stdin and stdout; --http serves HTTP instead")
    serve_stdio(memory, scope)


def serve_stdio(memory: Memory, scope: ServerScope) -> None:
    """Serve one client over standard input and output until it closes them; whatever is logged goes to stderr."""
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING)
    # Standard input is read in a thread that nothing can interrupt: Ctrl-C ends the process, and the store is safe.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    anyio.run(_run, build_server(memory, scope).run_stdio_async)


def serve_http(memory: Memory, scope: ServerScope, address: Address, ready: Callable[[str], None]) -> None:
    """Serve any number of clients over streamable HTTP until the process is told to stop.

    `ready` hears the address. Each request stands alone, so that clients go on when the server was started again.

    Raises:
        InputError: the address cannot be used, or others could reach it and there is no token.
    """
    if not is_loopback(address.host) and address.token is None:
        raise InputError(
            f"host {quote_value(address.host)} is open to other machines; give --token-file, or use 127.0.0.1"
        )
    if address.token is not None and len(address.token) < _SHORTEST_TOKEN:
        raise InputError(f"the token has {len(address.token)} characters; make one of at least {_SHORTEST_TOKEN}")
    if address.token is not None and not (address.token.isascii() and address.token.isprintable()):
        raise InputError("the token has characters that no header carries, or several lines; make it of letters")
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING)
    with open_port(address.host, address.port) as listening:
        port = listening.getsockname()[1]
        own = f"[{address.host}]" if ":" in address.host else address.host
        hosts = [f"{name}:{port}" for name in dict.fromkeys((own, *_LOOPBACK))]
        allowed = TransportSecuritySettings(
            allowed_hosts=[*hosts, *address.hosts],
            allowed_origins=[*(f"http://{name}" for name in hosts), *address.origins],
        )
        app: ASGIApp = build_server(memory, replace(scope, discreet=not scope.allow_scope)).streamable_http_app(
            stateless_http=True, json_response=True, transport_security=allowed
        )
        app = app if address.token is None else _RequireToken(app, address.token)
        # This parser bounds what comes before a body, and is there with every uvicorn.
        config = uvicorn.Config(
            app, http="h11", log_config=None, access_log=False, timeout_graceful_shutdown=_STOP_SECONDS
        )
        ready(f"http://{hosts[0]}/mcp")
        with ending_cleanly():
            anyio.run(_run, functools.partial(uvicorn.Server(config).serve, sockets=[listening]))


async def _run(serve: Callable[[], Any]) -> None:
    anyio.to_thread.current_default_thread_limiter().total_tokens = _WORKERS
    await serve()


class _RequireToken:
    """Let only requests through that carry the token."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._expected = f"Bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        given = dict(scope.get("headers", ())).get(b"authorization", b"")
        if scope["type"] == "http" and not compare_digest(given, self._expected):
            refusal = Response("a bearer token is needed", status_code=401, headers={"WWW-Authenticate": "Bearer"})
            await refusal(scope, receive, send)
            return
        await self._app(scope, receive, send)
