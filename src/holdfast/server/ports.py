"""Ports that servers listen at."""

from __future__ import annotations

import errno
import ipaddress
import socket

from holdfast.errors import InputError, ServerError, shown

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
        listening.listen(BACKLOG)
    except OSError as error:
        listening.close()
        reason = "something else has it" if error.errno == errno.EADDRINUSE else error.strerror
        raise ServerError(f"cannot listen at {host}, port {port}: {reason}; choose another with --port") from error
    return listening
