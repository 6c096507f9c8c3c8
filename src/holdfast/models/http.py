"""Asking a server in JSON, with the standard library alone: what embedders and summarisers behind an address share.

What is asked goes to the address in the settings and nowhere else: no redirect is followed and no proxy is used.
"""

from __future__ import annotations

import http.client
import json
import re
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import SplitResult, urlsplit

from holdfast.errors import HoldfastError, SettingsError, shown

# How much of an unexpected answer an error shows, and how much of it is looked at for that.
_SHOWN_ANSWER, _READ_ANSWER = 200, 65_536


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One address that takes a question and gives an answer; `group` names its settings, for the remedies."""

    group: str
    address: SplitResult
    failure: type[HoldfastError]
    timeout_s: float
    # An endless answer must not fill the memory.
    longest_answer: int
    api_key: str = field(default="", repr=False)

    def ask(self, question: dict[str, object]) -> Any:  # noqa: ANN401 - whatever JSON the server sends
        """Return the answer to one question.

        Raises:
            HoldfastError: `failure`, whenever there is no answer in JSON.
        """
        status, content = self._exchange(json.dumps(question).encode())
        if not 200 <= status < 300:
            # No cause: its text is the server's, and everything of use in it is copied here.
            raise self.failure(f"{self.who} answered HTTP {status}: {self.excerpt(content)}; {self._remedy(status)}")
        if len(content) > self.longest_answer:
            raise self.failure(
                f"{self.who} answered with more than {self.longest_answer:,} bytes; check {self.group}.url"
            )
        try:
            return json.loads(content)
        except (ValueError, RecursionError):
            raise self.failure(
                f"{self.who} did not answer with JSON but with {self.excerpt(content)}; check {self.group}.url"
            ) from None

    @property
    def who(self) -> str:
        """Name the endpoint in a message, without the query of its address: a key may be hidden in it."""
        return f"the {self.group} endpoint {self.address._replace(query='').geturl()}"

    def excerpt(self, answer: object) -> str:
        """Return the beginning of what came back, printable, on one line and without the key."""
        text = answer[:_READ_ANSWER].decode("utf-8", "replace") if isinstance(answer, bytes) else str(answer)
        text = text[:_READ_ANSWER]
        if self.api_key:
            text = _spellings(self.api_key).sub("(hidden)", text)
        line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
        return (line if len(line) <= _SHOWN_ANSWER else f"{line[:_SHOWN_ANSWER]}…") or "nothing"

    def _exchange(self, body: bytes) -> tuple[int, bytes]:
        """Return status and content of the answer, of which at most one byte too many is read."""
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if self.api_key:
            headers["Authorization"] = f"Bearer {self.api_key}"
        secure = self.address.scheme == "https"
        connect = http.client.HTTPSConnection if secure else http.client.HTTPConnection
        connection = connect(self.address.hostname or "", self.address.port, timeout=self.timeout_s)
        target = self.address._replace(scheme="", netloc="").geturl()
        late = threading.Event()
        try:
            connection.connect()
            with _hanging_up(connection.sock, self.timeout_s, late):
                connection.request("POST", target, body, headers)
                response = connection.getresponse()
                content = response.read(self.longest_answer + 1)
        except (OSError, http.client.HTTPException) as error:
            # An HTTPException quotes the server, who may quote the key.
            cause = error if isinstance(error, OSError) else None
            raise self._unreachable(TimeoutError() if late.is_set() else error) from cause
        finally:
            connection.close()
        if late.is_set():
            raise self._unreachable(TimeoutError())
        return response.status, content

    def _unreachable(self, error: Exception) -> HoldfastError:
        if isinstance(error, TimeoutError):
            return self.failure(
                f"{self.who} gave no answer within {self.timeout_s:g} s; "
                f"raise {self.group}.timeout_s or look at the server"
            )
        return self.failure(
            f"{self.who} cannot be reached: {self.excerpt(str(error) or type(error).__name__)}; "
            f"start the server or check {self.group}.url"
        )

    def _remedy(self, status: int) -> str:
        if 300 <= status < 400:
            # It would carry texts and the key to an address nobody chose.
            return f"redirects are not followed; put the final address into {self.group}.url"
        return f"check {self.group}.model and {self.group}.api_key"


def server_address(group: str, url: str) -> SplitResult:
    """Return the parts of an address, without a slash at its end.

    Raises:
        SettingsError: it is no address of a server, or holds a password.
    """
    if "@" in url:
        raise SettingsError(f"{group}.url holds a name or password (not shown); put a key into {group}.api_key")
    url = url.strip()
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable or not url.isascii() or not url.isprintable() or " " in url:
        raise SettingsError(
            f"{group}.url = {shown(url)} is no address of a server; write it as http://host:port or https://host"
        )
    return parts._replace(path=parts.path.rstrip("/"), fragment="")


def header_value(group: str, api_key: str) -> str:
    """Return the key if it can be sent in a header; the error does not show it.

    Raises:
        SettingsError: it has characters that no header may carry.
    """
    key = api_key.strip()
    if not (key.isascii() and key.isprintable()):
        raise SettingsError(f"{group}.api_key has characters that no key has (its value is not shown); copy it again")
    return key


def _spellings(key: str) -> re.Pattern[str]:
    """Match a key as it is and as servers escape it inside JSON."""
    return re.compile("".join(rf"(?:\\?{re.escape(c)}|\\u{ord(c):04x})" for c in key), re.IGNORECASE)


@contextmanager
def _hanging_up(sock: socket.socket, seconds: float, late: threading.Event) -> Iterator[None]:
    """End the conversation after so many seconds, and tell `late`.

    The socket's own limit is for each piece of an answer: one that trickles in would never be late.
    """

    def hang_up() -> None:
        late.set()
        with suppress(OSError):
            # Not the method of an encrypted socket, which would take it apart under the reader's hands.
            socket.socket.shutdown(sock, socket.SHUT_RDWR)

    timer = threading.Timer(seconds, hang_up)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
