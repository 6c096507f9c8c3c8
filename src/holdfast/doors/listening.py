"""Where a server listens: a port, a socket file, and no second server on one store."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import ipaddress
import os
import socket
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import uvicorn

from holdfast.arguments import is_address
from holdfast.doors.limits import ServerSettings
from holdfast.doors.server import Door
from holdfast.doors.tokens import Tokens, token_file
from holdfast.errors import AccessError, InputError, ServerError, shown
from holdfast.memory import Memory
from holdfast.settings import Settings

# After this many seconds of waiting for answers to be read, a stopping server closes connections; work goes on.
_PATIENCE = 30
# Agents ask once in a while; a new connection for each question costs more than one that is kept.
_IDLE = 60
# Connections that the system holds while the server is busy accepting others.
_BACKLOG = 128
_LAST_PORT = 65_535
Announce = Callable[[str], None]


class Listener(uvicorn.Server):
    """Runs a door on one socket, and says so as soon as it listens."""

    def __init__(self, door: Door, listening: socket.socket, announce: Announce) -> None:
        config = uvicorn.Config(
            door.app, log_config=None, access_log=False, server_header=False, ws="none", lifespan="on",
            timeout_graceful_shutdown=_PATIENCE, timeout_keep_alive=_IDLE,
        )  # fmt: skip
        super().__init__(config)
        self._listening, self._announce = listening, announce

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """See `uvicorn.Server`."""
        await super().startup(sockets)
        if self.started:
            self._announce(_address(self._listening))

    def listen(self) -> None:
        """Answer until a signal, or `should_exit`, ends it."""
        self.run([self._listening])


def serve(path: str, settings: Settings, how: ServerSettings, announce: Announce = lambda _: None) -> None:
    """Serve the store at `path` until a signal ends it; requests that were accepted are answered first.

    Raises:
        InputError: it is the address of another server.
        AccessError: it would listen beyond this machine, and has no tokens.
        ServerError: another server has the port, the socket file or the store.
    """
    if is_address(path):
        raise InputError(f"{path} is served already; serve a file, or use that server")
    tokens = Tokens(token_file(path))
    if not (how.unix or tokens.path.exists() or _is_loopback(how.host)):
        raise AccessError(f"host {shown(how.host)} is open to others; make a token first with holdfast token add")
    with contextlib.ExitStack() as stack:
        stack.enter_context(_alone(path))
        listening = stack.enter_context(listen_on(how))
        memory = stack.enter_context(Memory.open(path, settings=settings))
        Listener(Door(memory, how, tokens), listening, announce).listen()


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.casefold() == "localhost"


@contextlib.contextmanager
def _alone(path: str) -> Iterator[None]:
    """Hold a store for one server; the system lets go when the process ends, however it does."""
    if path == ":memory:":
        yield
        return
    lock = os.open(f"{path}.serving", os.O_CREAT | os.O_RDWR, 0o600)
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
    listening = _open_file(Path(how.unix)) if how.unix else _open_port(how.host, how.port)
    try:
        yield listening
    finally:
        listening.close()
        if how.unix:
            Path(how.unix).unlink(missing_ok=True)


def _open_port(host: str, port: int) -> socket.socket:
    if not 0 <= port <= _LAST_PORT:  # the system would take it modulo that
        raise InputError(f"port {port} is none; choose one up to {_LAST_PORT}, or 0 for a free one")
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        # Named as TCP, asyncio sends small answers at once; otherwise each waits 40 ms for more.
        listening = socket.socket(family, kind, protocol)
    except OSError as error:
        raise InputError(f"cannot listen at {shown(host)}, port {port}: {error}; choose others") from error
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(_BACKLOG)
    except OSError as error:
        listening.close()
        reason = "something else has it" if error.errno == errno.EADDRINUSE else error.strerror
        raise ServerError(f"cannot listen at {host}, port {port}: {reason}; choose another with --port") from error
    return listening


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
        listening.listen(_BACKLOG)
    except OSError as error:
        listening.close()
        raise InputError(f"cannot listen at {shown(str(path))}: {error}; name another file with --unix") from error
    except ServerError:
        listening.close()
        raise
    return listening


def _address(listening: socket.socket) -> str:
    if listening.family == socket.AF_UNIX:
        return f"unix:{listening.getsockname()}"
    host, port = listening.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"
