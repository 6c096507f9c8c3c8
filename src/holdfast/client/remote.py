"""A memory that a server holds: the same verbs, the same values and the same errors, over HTTP."""

from __future__ import annotations

import contextlib
import functools
import inspect
import json
import logging
import os
import random
import shutil
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from operator import index
from typing import IO, Any, Literal, NoReturn
from urllib.parse import urlsplit

from holdfast.arguments import check_user
from holdfast.errors import (
    ClosedStoreError,
    HoldfastError,
    InputError,
    MissingExtraError,
    ServerError,
    quote_value,
    say_install,
)
from holdfast.memory import Memory
from holdfast.messages.checks import check_name
from holdfast.openers import is_address
from holdfast.transfer.exports import writing
from holdfast.transfer.file_formats import pack
from holdfast.types import ExportReport
from holdfast.verbs import EXPORTED, LOCAL, VERBS, Reports, Verb, json_types, write_call
from holdfast.wire import AnnotationForm, decode, error_of

try:
    import httpx
except ImportError as error:
    raise MissingExtraError(
        f"a memory at an address needs a library that is not installed ({error}); {say_install('remote')}"
    ) from error

log = logging.getLogger("holdfast")
ConnectionState = Literal["new", "up", "down"]
# How long one call goes on trying: a server that is started again is back by then.
_PATIENCE_S = 10.0
# Waits between tries double from the first to the longest.
_FIRST_WAIT_S, _LONGEST_WAIT_S = 0.05, 2.0
# A server that lives says so at once; questions take less than a second, work like compaction may take minutes.
_HEALTH_S, _ANSWER_S, _LONG_ANSWER_S = 2.0, 60.0, 900.0
# What a server or a proxy in front of it answers when it takes no work for now.
_COME_AGAIN = (429, 502, 503, 504)
_EVENTS = "text/event-stream"
# No answer is longer: so many bytes are a list of a hundred thousand units. Memory is for more than one answer.
_MOST_BYTES = 256 * 1_048_576
# Once its time is over, an answer goes on only while it comes this fast: networks do, and an evil server may not.
_BYTES_A_SECOND = 10_000
# No work takes a day.
_WORK_S = 86_400.0
_LOOK = "the work may be done, check before you retry"


class _Unanswered(Exception):  # noqa: N818 - never leaves this module
    """One try got no answer; `again` says that another may, `after` how many seconds from now at the earliest.

    `busy` is what a server said that lives, and takes no more work.
    """

    def __init__(self, reason: str, *, again: bool, after: float = 0.0, busy: HoldfastError | None = None) -> None:
        super().__init__(reason)
        self.again, self.after, self.busy = again, after, busy


class RemoteMemory(Memory):
    """The memory of a server at `address`; open it with `Memory.open("http://…")`, share it between threads.

    Nothing is sent before the first call. A call that gets no answer is tried again for some seconds, a write under
    the same key, so that it happens once. When that does not help, `ServerError` is raised and `state` is "down":
    from then on a call asks first whether the server lives, and fails at once if it does not. The first call that
    finds it alive again is answered as ever, and `state` is "up".
    """

    def __init__(
        self, address: str, token: str | None = None, *, patience: float = _PATIENCE_S,
        clock: Callable[[], float] = time.monotonic, wait: Callable[[float], None] = time.sleep,
        transport: httpx.BaseTransport | None = None,
    ) -> None:  # fmt: skip
        base, file = _read_address(address)
        self.address = address
        self.state: ConnectionState = "new"
        self._patience, self._clock, self._wait = patience, clock, wait
        self._process, self._closed = os.getpid(), False
        self._client = httpx.Client(
            base_url=base,
            # What is compressed may be a thousand times as long as what was sent.
            headers={"Accept": "application/json", "Accept-Encoding": "identity"}
            | ({"Authorization": f"Bearer {_check(token)}"} if token else {}),
            transport=transport or (httpx.HTTPTransport(uds=file) if file else None),
            trust_env=False,  # words go to the address and nowhere else: through no proxy, with nobody's netrc
        )

    def __str__(self) -> str:
        return f"Memory at {self.address}"

    def close(self) -> None:
        """Close the connections; the server goes on."""
        self._closed = True
        if self._process == os.getpid():
            self._client.close()

    def _call(self, verb: Verb, arguments: dict[str, Any]) -> Any:  # noqa: ANN401 - what the verb returns
        """Call one verb at the server.

        Raises:
            HoldfastError: as the memory raises it there.
            ServerError: the server cannot be reached, or takes no more work.
        """
        if self._process != os.getpid():
            raise ClosedStoreError("this memory was opened by the parent process; open it again after a fork")
        if self._closed:
            raise ClosedStoreError("this memory is closed; open it again")
        _check_texts(verb, arguments)
        if verb.streams:
            return self._fetch(verb, arguments)
        if verb.binary:  # a path means something on this machine alone
            arguments[verb.raw], arguments["name"] = pack(arguments[verb.raw], arguments.get("name"))
        kept = {name: arguments.pop(name) for name in verb.kept if name in arguments}
        progress = kept.pop("progress", None)
        sent = write_call(verb, arguments | {name: value for name, value in kept.items() if value is not None})
        headers = {"Content-Type": sent.media_type} if sent.media_type else {}
        headers |= {"Idempotency-Key": uuid.uuid4().hex} if verb.writes else {}
        headers |= {"Accept": _EVENTS} if progress is not None else {}
        request = self._client.build_request(
            sent.method,
            sent.path,
            # What a person would not read is part of what an embedded memory returns.
            params=sent.query | ({"detail": "full"} if verb.brief else {}),
            content=sent.body,
            headers=headers,
            timeout=httpx.Timeout(_LONG_ANSWER_S if verb.reports is not None else _ANSWER_S, connect=_HEALTH_S),
        )
        reports = verb.reports or ()
        found = self._persist(
            lambda: self._ask(request) if progress is None else self._listen(request, reports, progress)
        )
        return self._decode(verb.result, lambda: found)

    def _decode(self, kind: AnnotationForm, read: Callable[[], Any]) -> Any:  # noqa: ANN401 - what the verb returns
        try:
            return decode(kind, read())
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError) as error:
            raise ServerError(
                f"the server at {self.address} answers as another version of Holdfast does ({quote_value(error)}); "
                "install the same version on both sides"
            ) from error

    def _fetch(self, verb: Verb, arguments: dict[str, Any]) -> ExportReport:
        """Fetch what a verb writes, and write it here once all of it has come."""
        target = arguments.pop("target")
        sent = write_call(verb, arguments)
        request = self._client.build_request(
            sent.method, sent.path, params=sent.query, headers={"Accept": "*/*"},
            timeout=httpx.Timeout(_LONG_ANSWER_S, connect=_HEALTH_S),
        )  # fmt: skip
        with writing(target) as out, tempfile.TemporaryFile() as spool:
            done: ExportReport = self._persist(lambda: self._download(request, spool))
            spool.seek(0)
            shutil.copyfileobj(spool, out)
        return done

    def _download(self, request: httpx.Request, spool: IO[bytes]) -> ExportReport:
        spool.seek(0)
        spool.truncate()
        try:
            with contextlib.closing(self._client.send(request, stream=True)) as answer:
                if not answer.is_success or EXPORTED not in answer.headers:
                    raise _problem(answer, self._content(answer))
                done: ExportReport = self._decode(ExportReport, lambda: _read_report(answer.headers[EXPORTED]))
                for piece in self._pieces(answer, _LONG_ANSWER_S, done.bytes):
                    spool.write(piece)
        except httpx.RequestError as error:
            self._doubt()
            raise _Unanswered(_reason(error), again=True) from error
        if spool.tell() != done.bytes:
            raise _Unanswered("broke off before its answer was whole; check its log", again=True)
        return done

    # --------------------------------------------------------------------------------------------------- trying

    def _persist(self, ask: Callable[[], Any]) -> Any:  # noqa: ANN401 - JSON
        """Ask until there is an answer, with growing waits; once and at once while the server is down."""
        until = self._clock() + (0.0 if self.state == "down" else self._patience)
        longest = _FIRST_WAIT_S
        while True:
            try:
                self._make_sure()
                found = ask()
            except _Unanswered as lost:
                # Chance keeps callers who lost the server together from coming back together.
                pause = max(lost.after, longest * (0.5 + random.random() / 2))  # noqa: S311
                if not lost.again or self._clock() + pause > until:
                    self._give_up(lost)
                longest = min(2 * longest, _LONGEST_WAIT_S)
                self._wait(pause)
            except HoldfastError:
                self.state = "up"
                raise
            else:
                self.state = "up"
                return found

    def _give_up(self, lost: _Unanswered) -> NoReturn:
        if lost.busy is not None:
            raise lost.busy from None
        if self.state != "down":
            log.warning("the server at %s %s", self.address, lost)
        self.state = "down"
        raise ServerError(f"the server at {self.address} {lost}") from lost

    def _make_sure(self) -> None:
        """Ask a server that was not heard of lately whether it lives, and is one of ours."""
        if self.state == "up":
            return
        told = self._ask(self._client.build_request("GET", "/health", timeout=_HEALTH_S))
        if not isinstance(told, Mapping) or told.get("status") != "alive":
            raise _Unanswered("is not a Holdfast server; check the address", again=False)

    def _ask(self, request: httpx.Request) -> Any:  # noqa: ANN401 - JSON
        try:
            with contextlib.closing(self._client.send(request, stream=True)) as answer:
                return _read(answer, self._content(answer))
        except httpx.RequestError as error:
            self._doubt()
            raise _Unanswered(_reason(error), again=True) from error

    def _content(self, answer: httpx.Response) -> bytes:
        """Return the body of an answer, which comes within the time that one waits for its beginning."""
        return b"".join(self._pieces(answer, answer.request.extensions["timeout"]["read"], _MOST_BYTES))

    def _pieces(self, answer: httpx.Response, seconds: float, most: int) -> Iterator[bytes]:
        """Yield a body as it comes: no more than `most` bytes of it, and not for ever."""
        coding = answer.headers.get("content-encoding", "identity")
        if coding != "identity":
            raise _Unanswered(
                f"sends {quote_value(coding)}, which was not asked for; let no proxy do so", again=False
            )
        began, size = self._clock(), 0
        for piece in answer.iter_bytes():
            size += len(piece)
            if size > most:
                raise _Unanswered(f"sends more than {most:,} bytes; check the address", again=False)
            if self._clock() - began > seconds + size / _BYTES_A_SECOND:
                raise _Unanswered("sends its answer too slowly to wait for; check its log", again=False)
            yield piece

    def _listen(self, request: httpx.Request, reports: Reports, progress: Callable[..., None]) -> Any:  # noqa: ANN401
        """Follow long work to its answer; it is begun once, so that a stream that breaks is not tried again."""
        event, sent = dict[str, str](), False
        try:
            with contextlib.closing(self._client.send(request, stream=True)) as answer:
                sent = answer.is_success
                if not sent:
                    return _read(answer, self._content(answer))
                for line in _lines(self._pieces(answer, _WORK_S, _MOST_BYTES)):
                    name, _, value = line.partition(": ")
                    if line:
                        event[name] = value
                    elif "data" in event:  # an event is whole when an empty line ends it
                        told, event = _read_event(event, reports), {}
                        if told[0] != "progress":
                            return _result(*told)
                        progress(*told[1].values())
        except httpx.RequestError as error:
            self._doubt()
            sent = sent or not isinstance(error, httpx.ConnectError | httpx.ConnectTimeout)
            raise _Unanswered(_reason(error) + (f"; {_LOOK}" if sent else ""), again=not sent) from error
        raise _Unanswered(f"broke off before its answer; {_LOOK}", again=False)

    def _doubt(self) -> None:
        self.state = "new" if self.state == "up" else self.state


def _reason(error: httpx.RequestError) -> str:
    if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout):
        told = str(error) or "no answer"
        return f"cannot be reached: {told}; start it with `holdfast serve`, or check the address"
    if isinstance(error, httpx.TimeoutException):
        return "gave no answer in time; check its log"
    return f"broke off: {str(error) or type(error).__name__}; check its log"


# ----------------------------------------------------------------------------------------------------- answers


def _read(answer: httpx.Response, content: bytes) -> Any:  # noqa: ANN401 - JSON
    """Return what the server answered, or raise what it tells of."""
    if not answer.is_success:
        raise _problem(answer, content)
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as error:
        raise _Unanswered(
            f"{_describe(answer, content)}, which is not JSON; check the address", again=False
        ) from error


def _problem(answer: httpx.Response, content: bytes) -> Exception:
    """Return what went wrong: the error of the memory there, or that the server has no answer for now."""
    try:
        told = json.loads(content)
    except (ValueError, RecursionError):
        told = None
    again = answer.status_code in _COME_AGAIN
    if not isinstance(told, Mapping) or "error" not in told:
        return _Unanswered(f"{_describe(answer, content)}; check its log", again=again)
    error, after = error_of(told), answer.headers.get("retry-after", "")
    if not again or not isinstance(error, ServerError):
        return error
    return _Unanswered(str(error), again=True, after=float(after) if after.isdecimal() else 0.0, busy=error)


def _read_report(header: str) -> dict[str, Any]:
    """Return what an export holds; its length is read to the byte, so that it has to be a number."""
    told = json.loads(header)
    return {**told, "bytes": index(told["bytes"])}


def _describe(answer: httpx.Response, content: bytes) -> str:
    return f"answers with HTTP {answer.status_code} and {quote_value(content.decode('utf-8', 'replace'))}"


def _lines(pieces: Iterator[bytes]) -> Iterator[str]:
    """Yield the lines of a stream, each as soon as it has ended."""
    held = bytearray()
    for piece in pieces:
        first, *others = piece.split(b"\n")
        held += first
        for other in others:
            yield held.decode("utf-8", "replace").removesuffix("\r")
            held = bytearray(other)


def _read_event(event: Mapping[str, str], reports: Reports) -> tuple[str | None, Any]:
    name = event.get("event")
    with contextlib.suppress(ValueError, RecursionError):
        told = json.loads(event["data"])
        if name == "result" or (isinstance(told, Mapping) and (name != "progress" or (*told,) == reports)):
            return name, told
    raise _Unanswered(f"sends {quote_value(event['data'])}, which is no event of Holdfast's; {_LOOK}", again=False)


def _result(event: str | None, told: Any) -> Any:  # noqa: ANN401 - JSON
    if event == "problem":
        raise error_of(told)
    return told


# ----------------------------------------------------------------------------------------------------- opening


def connect(address: object, token: str | None, local: Mapping[str, object]) -> RemoteMemory:
    """Return the memory of the server at `address`; `local` are values that only a memory of one's own can use.

    Raises:
        InputError: it is no address, or one of these values was given.
    """
    if not isinstance(address, str) or not is_address(address):
        raise InputError(f"token is for the address of a server, not for {quote_value(address)}; leave it out")
    given = [name for name, value in local.items() if value is not None]
    if given:
        raise InputError(f"{given[0]} cannot be given with {address}: it belongs to the server; leave it out")
    return RemoteMemory(address, token)


def _read_address(address: str) -> tuple[str, str | None]:
    """Return the base of every request, and the socket file if it is one."""
    if address.startswith("unix:"):
        file = address.removeprefix("unix:")
        if not file.strip() or "\0" in file:
            raise InputError(f"{quote_value(address)} names no socket file; write it as unix:/run/holdfast.sock")
        return "http://localhost", file
    try:
        parts = urlsplit(address)
        usable = bool(parts.hostname) and parts.port != 0 and not (parts.query or parts.fragment)
    except ValueError:
        usable = False
    if not usable or not address.isascii() or not address.isprintable() or " " in address:
        raise InputError(
            f"{quote_value(address)} is no address of a server; write it as http://host:port or https://host"
        )
    if "@" in parts.netloc:
        raise InputError("the address holds a name or a password (not shown); give a token")
    return address.rstrip("/"), None


def _check(token: object) -> str:
    """Return a token if it can be sent in a header; the error does not show it."""
    if not isinstance(token, str) or not (token.isascii() and token.isprintable() and token.strip() == token):
        raise InputError("the token has characters that no token has (it is not shown); copy it again")
    return token


# ------------------------------------------------------------------------------------------------------- verbs


_NAMES = ("user", "session", "agent", "tenant", "subject", "relation", "name")


def _check_texts(verb: Verb, arguments: dict[str, Any]) -> None:
    """Refuse, as a memory does, what a query would turn into text and what no request can carry.

    Raises:
        InputError: a name is not text, or holds what is no character.
    """
    for name, value in [*arguments.items()]:
        if name == "tenant" and not value:
            del arguments[name]  # whoever names none means the default one
        elif name in _NAMES:
            needed = name == "user" and verb.arguments[name].needed
            check_user(value) if needed else check_name(name, value, optional=True)
        elif name not in verb.kept and verb.arguments[name].place == "query":
            if "string" in json_types(verb.arguments[name].kind) and not isinstance(value, str | datetime | None):
                raise InputError(f"{name} = {quote_value(value)} is not text; give a str")
            if isinstance(value, str) and not value.isascii():
                check_name(name, value)


def _travel(verb: Verb) -> Callable[..., Any]:
    """Return a verb of `Memory` that is called at the server."""
    local = getattr(Memory, verb.name)
    signature = inspect.signature(local)

    @functools.wraps(local)
    def call(self: RemoteMemory, *args: object, **kwargs: object) -> Any:  # noqa: ANN401 - what the verb returns
        try:
            given = signature.bind(self, *args, **kwargs).arguments
        except TypeError as error:
            raise TypeError(f"{local.__qualname__}() {error}") from None
        del given["self"]
        return self._call(verb, given)

    return call


def _stay(name: str, why: str) -> Callable[..., NoReturn]:
    """Return a verb that refuses: only a memory of one's own has it."""

    def refuse(*_args: object, **_kwargs: object) -> NoReturn:
        raise InputError(f"{name} {why}")

    return refuse


for _name, _verb in VERBS.items():
    setattr(RemoteMemory, _name, _travel(_verb))
for _name, _why in LOCAL.items():
    if _name not in vars(RemoteMemory) and _name != "open":
        _refuse = _stay(_name, _why)
        setattr(RemoteMemory, _name, property(_refuse) if isinstance(getattr(Memory, _name), property) else _refuse)
