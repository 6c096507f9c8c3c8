"""Where a server listens: a port, a socket file, and no second server on one store."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import fcntl
import ipaddress
import os
import signal
import socket
import stat
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, cast

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from holdfast.errors import AccessError, InputError, ServerError, StoreError, quote_value
from holdfast.memory import Memory
from holdfast.openers import is_address, is_database
from holdfast.server.access import Tokens, open_lock, token_file
from holdfast.server.http import HttpServer
from holdfast.server.limits import WELCOME, ServerSettings
from holdfast.settings import Settings

# After this many seconds of waiting for answers to be read, a stopping server closes connections; work goes on.
_PATIENCE = 30
# Agents ask once in a while; a new connection for each question costs more than one that is kept.
_IDLE = 60
# How often an ending server looks for callers who were let in just before, and tells them that it ends.
_TICK = 0.1
# What comes before a body is short; whoever says nothing for longer, or does not come to its end, keeps a place.
_HEAD_BYTES, _HEAD_SECONDS = 65_536, 30.0
Announce = Callable[[str], None]


class _Connection(HttpToolsProtocol):
    """A caller who has to say what is wanted, briefly and soon."""

    _late: asyncio.TimerHandle | None = None
    _said = _headed = 0

    def __init__(self, *args: Any, strangers: dict[_Connection, None], most: int, **more: Any) -> None:  # noqa: ANN401
        super().__init__(*args, **more)
        self._strangers, self._most = strangers, most

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as there
        super().connection_made(transport)
        self._expect_head()
        self._strangers[self] = None
        if len(self._strangers) > self._most:  # whoever came first had the most time to show a token
            oldest = next(iter(self._strangers))
            oldest.welcome()
            oldest.transport.abort()

    def welcome(self) -> None:
        """Count this caller no longer among those who have shown nothing."""
        self._strangers.pop(self, None)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        cast("dict[str, Any]", self.scope)[WELCOME] = self.welcome
        self._expect_head()

    def on_url(self, url: bytes) -> None:
        super().on_url(url)
        self._count_head(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        super().on_header(name, value)
        self._count_head(name + value)

    def _count_head(self, part: bytes) -> None:
        """Count what comes before a body; the parser answers an error with a refusal, and hangs up."""
        self._headed += len(part)
        if self._headed > _HEAD_BYTES:
            raise InputError(f"what comes before the body has more than {_HEAD_BYTES:,} bytes; send less")

    def on_headers_complete(self) -> None:
        self._forget_head()
        super().on_headers_complete()

    def data_received(self, data: bytes) -> None:
        before = self._late
        super().data_received(data)
        if self._late is not None and self._late is before:  # all of it belongs to one head
            self._said += len(data)
            if self._said > _HEAD_BYTES:
                self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget_head()
        self.welcome()
        super().connection_lost(exc)

    def _expect_head(self) -> None:
        self._forget_head()
        self._said = self._headed = 0
        self._late = self.loop.call_later(_HEAD_SECONDS, self.transport.close)

    def _forget_head(self) -> None:
        if self._late is not None:
            self._late.cancel()
        self._late = None


class Listener(uvicorn.Server):
    """Runs a server on one socket, and says so as soon as it listens."""

    def __init__(self, http_server: HttpServer, listening: socket.socket, announce: Announce) -> None:
        config = uvicorn.Config(
            http_server.app, log_config=None, access_log=False, server_header=False, ws="none", lifespan="on",
            http=partial(_Connection, strangers={}, most=http_server.settings.strangers),  # type: ignore[arg-type]  # is called
            timeout_graceful_shutdown=_PATIENCE, timeout_keep_alive=_IDLE,
        )  # fmt: skip
        super().__init__(config)
        self._listening, self._announce = listening, announce

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """See `uvicorn.Server`."""
        await super().startup(sockets)
        if self.started:
            self._announce(_address(self._listening))

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """See `uvicorn.Server`, which goes on serving a caller who was let in at this moment."""
        ending = asyncio.ensure_future(super().shutdown(sockets))
        while not ending.done():
            await asyncio.wait({ending}, timeout=_TICK)
            for connection in [*self.server_state.connections]:
                connection.shutdown()
        ending.result()

    def listen(self) -> None:
        """Answer until a signal, or `should_exit`, ends it."""
        self.run([self._listening])


def serve(path: str, settings: Settings, how: ServerSettings, announce: Announce = lambda _: None) -> None:
    """Serve the store at `path` until a signal ends it; requests that were accepted are answered first.

    Raises:
        InputError: it is the address of another server.
        AccessError: it would listen beyond this machine, and has no tokens.
        StoreError: its tokens cannot be read, or others may write them: every caller would be refused.
        ServerError: another server has the port, the socket file or the store.
    """
    if is_address(path):
        raise InputError(f"{path} is served already; serve a file, or use that server")
    tokens = Tokens(token_file(path))
    tokens.all()
    if not (how.unix or tokens.path.exists() or is_loopback(how.host)):
        raise AccessError(
            f"host {quote_value(how.host)} is open to others; make a token first with holdfast token add"
        )
    with ending_cleanly(), contextlib.ExitStack() as stack:
        if how.pages != "alone":  # looking is for as many as want to, also beside a server
            stack.enter_context(_alone(path))
        listening = stack.enter_context(listen_on(how))
        memory = stack.enter_context(Memory.open(path, settings=settings))
        Listener(HttpServer(memory, how, tokens), listening, announce).listen()


@contextlib.contextmanager
def ending_cleanly() -> Iterator[None]:
    """Let SIGTERM, with which systems end a server, end it as Ctrl-C does: everything is closed, and the status is 0.

    uvicorn answers what it has accepted, and then raises the signal again.
    """
    if threading.current_thread() is not threading.main_thread():  # no signal comes to another thread
        yield
        return

    def leave(number: int, _: object) -> None:
        signal.signal(number, signal.SIG_IGN)  # once is enough
        raise SystemExit(0)

    before = signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextlib.contextmanager
def _alone(path: str) -> Iterator[None]:
    """Hold a store for one server; the system lets go when the process ends, however it does."""
    if path == ":memory:" or is_database(path):  # a database has many servers
        yield
        return
    try:
        lock = open_lock(f"{os.path.realpath(path)}.serving")
    except OSError as error:
        raise StoreError(f"{quote_value(path)} cannot be served: {error}; check --db") from error
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            process = os.read(lock, 20).decode("ascii", "replace")
            raise ServerError(f"{path} is served by process {process}; use that server, or stop it") from error
        os.truncate(lock, 0)
        os.write(lock, str(os.getpid()).encode())
        yield
    finally:
        os.close(lock)


@contextlib.contextmanager
def listen_on(how: ServerSettings) -> Iterator[socket.socket]:
    """Hold the place that the settings name.

    Raises:
        ServerError: another server has it.
        InputError: nobody can listen there.
    """
    listening = _open_file(Path(how.unix)) if how.unix else open_port(how.host, how.port)
    try:
        yield listening
    finally:
        listening.close()
        if how.unix:
            Path(how.unix).unlink(missing_ok=True)


def _open_file(path: Path) -> socket.socket:
    """Listen at a socket file that only its owner opens; one that a server left behind is replaced."""
    if path.exists() and not stat.S_ISSOCK(path.stat().st_mode):
        raise InputError(f"{path} exists and is no socket; name another file with --unix")
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        if path.exists():
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asking:
                if asking.connect_ex(str(path)) == 0:
                    raise ServerError(f"a server listens at {path}; use that one, or name another with --unix")
            path.unlink()
        before = os.umask(0o177)
        try:
            listening.bind(str(path))
        finally:
            os.umask(before)
        listening.listen(BACKLOG)
    except OSError as error:
        listening.close()
        raise InputError(
            f"cannot listen at {quote_value(str(path))}: {error}; name another file with --unix"
        ) from error
    except ServerError:
        listening.close()
        raise
    return listening


def _address(listening: socket.socket) -> str:
    if listening.family == socket.AF_UNIX:
        return f"unix:{listening.getsockname()}"
    host, port = listening.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


# Connections that the system holds while the server is busy accepting others.
BACKLOG = 128
_LAST_PORT = 65_535


def is_loopback(host: str) -> bool:
    """Return whether only programs of this machine reach a host."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.casefold() == "localhost"


def open_port(host: str, port: int) -> socket.socket:
    """Listen at a port, 0 for a free one.

    Raises:
        InputError: there is no such host or port.
        ServerError: something else listens there.
    """
    if not 0 <= port <= _LAST_PORT:  # the system would take it modulo that
        raise InputError(f"invalid port {port}; choose one up to {_LAST_PORT}, or 0 for a free one")
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        # Named as TCP, asyncio sends small answers at once; otherwise each waits 40 ms for more.
        listening = socket.socket(family, kind, protocol)
    except OSError as error:
        raise InputError(f"cannot listen at {quote_value(host)}, port {port}: {error}; choose others") from error
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(BACKLOG)
    except OSError as error:
        listening.close()
        reason = "something else has it" if error.errno == errno.EADDRINUSE else error.strerror
        raise ServerError(f"cannot listen at {host}, port {port}: {reason}; choose another with --port") from error
    return listening
