"""The HTTP server: a request → a verb of `Memory` → its answer, for callers that a token or this machine lets in."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import re
import tempfile
import time
import uuid
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from functools import partial
from typing import Any
from urllib.parse import unquote, urlsplit

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from holdfast import __version__
from holdfast.errors import AccessError, EmbedderError, HoldfastError, InputError, ServerError, quote_value
from holdfast.memory import Memory
from holdfast.server.access import Caller, Tokens, answer_for, authorise, without_folders, without_place
from holdfast.server.host import HOST_VERBS
from holdfast.server.inspector.site import Site
from holdfast.server.limits import (
    IdempotencyKeys,
    Job,
    Rate,
    Refused,
    ServerMetrics,
    ServerSettings,
    T,
    Work,
    read_body,
    read_json,
    welcome,
)
from holdfast.server.openapi import describe, draw_page
from holdfast.verbs import (
    COMPACT_SESSION,
    EXPORTED,
    MEDIA_TYPES_OF_EXPORTS,
    VERBS,
    Verb,
    check_argument,
    known_argument,
    read_query,
)
from holdfast.wire import encode, problem_of

log = logging.getLogger("holdfast.server")
_PROBLEM, _EVENTS = "application/problem+json", "text/event-stream"
_REQUEST_ID = re.compile(r"[A-Za-z0-9_.:-]{1,128}")
_LOOPBACK_NAMES = ("localhost", "127.0.0.1", "::1")
# What is served: a memory's verbs, and what hosts call around their turns.
ROUTED = (*VERBS.values(), COMPACT_SESSION, *HOST_VERBS)
# A proxy drops a stream that is silent for longer.
_SILENCE = 15.0
# An export of this size is sent without a file in between, in pieces of that size.
_SPOOLED, _CHUNK = 8 * 1_048_576, 65_536
# Nobody is called so: a question of theirs finds nothing, and has everything loaded.
_NOBODY = "holdfast:ready"
# A slash inside of an id, while paths are matched: what no path can say.
_SLASH = "\ud800"
# To read more than this as JSON takes so long that others would wait for it.
_SOON_READ = 65_536
# Threads for long work: one for each caller needs two.
_LEAST_LONG = 2


class HttpServer:
    """One memory behind HTTP. `app` is what a server runs; `close` waits for the work that was accepted."""

    def __init__(self, memory: Memory, settings: ServerSettings, tokens: Tokens | None = None) -> None:
        self.memory, self.settings, self.tokens = memory, settings, tokens
        self._guarded = False
        self._quick = Work(settings.work, settings.waiting, "work")
        self._long = Work(max(_LEAST_LONG, settings.work // 2), settings.waiting, "long", spare=True)
        self._erasing = Work(1, settings.waiting, "forget")  # what is to go waits for no document
        self._rate, self._keys, self._metrics = Rate(settings.rate), IdempotencyKeys(settings), ServerMetrics()
        self._wrong = Rate(settings.guesses)
        self._loaded: asyncio.Future[object] | None = None
        document = describe(__version__, ROUTED)
        self._document, self._page = json.dumps(document), draw_page(document)
        self._site = Site(self)
        self.app: ASGIApp = RequestGuard(self, self._routes())

    def _routes(self) -> Starlette:
        verbs: dict[str, dict[str, Verb]] = {}
        for verb in ROUTED:
            verbs.setdefault(verb.path, {})[verb.method] = verb
        routes = [Route("/health", self._say_alive), Route("/ready", self._say_ready), *self._site.routes]
        if self.settings.pages != "alone":
            routes += [
                Route("/metrics", self._say_metrics), Route("/openapi.json", self._show_document),
                Route("/docs", self._show_page),
                *(Route(path, partial(self._answer, known), methods=[*known]) for path, known in verbs.items()),
            ]  # fmt: skip
        handlers: Mapping[Any, Any] = {
            Refused: _tell, HoldfastError: _tell, HTTPException: _tell_of_route, Exception: _tell_of_defect,
        }  # fmt: skip
        app = Starlette(routes=routes, exception_handlers=handlers, lifespan=self._live)
        app.router.redirect_slashes = False  # what is redirected is read twice, and names another id then
        return app

    @contextlib.asynccontextmanager
    async def _live(self, _: Starlette) -> AsyncIterator[None]:
        self._loaded = self._long.run("", self._load)
        yield
        for kind in (self._quick, self._long, self._erasing):
            await kind.finish()

    def _load(self) -> None:
        self.memory.load()
        self.memory.search("ready", user=_NOBODY)  # reads the index, and the reader

    # ------------------------------------------------------------------------------------------- who may enter

    def refuse_strangers(self, scope: Scope, headers: Mapping[str, str]) -> None:
        """Refuse a page in a browser that posts to this machine, or that was given our address under its own name.

        A token is nothing that a browser sends by itself, and a socket file nothing that it reaches.
        """
        if self.asks_for_tokens() or (scope.get("server") or ("", None))[1] is None:
            return
        origin = headers.get("origin")
        try:
            host, page = urlsplit(f"//{headers.get('host', '')}"), urlsplit(origin or "")
        except ValueError as error:
            raise Refused(AccessError(f"Host or Origin is no address ({error}); ask for localhost"), 421) from error
        if host.hostname not in (*_LOOPBACK_NAMES, self.settings.host.casefold()):
            raise Refused(
                AccessError(f"this server is not called {quote_value(host.hostname)}; ask for localhost"), 421
            )
        if origin is not None and page.netloc != host.netloc:
            raise Refused(AccessError(f"pages of {quote_value(origin)} may not ask this server; it has no tokens"))
        if headers.get("sec-fetch-site") in ("cross-site", "same-site"):
            raise Refused(AccessError("pages of other sites may not ask this server; it has no tokens"))

    def asks_for_tokens(self) -> bool:
        """Return whether a caller has to show a token."""
        # Once guarded, always guarded: when the last token is revoked, nobody is let in.
        self._guarded = self._guarded or (self.tokens is not None and self.tokens.path.exists())
        return self._guarded

    def _admit(self, request: Request) -> Caller:
        if not self.asks_for_tokens():
            welcome(request.scope)
            return Caller()
        kind, _, secret = request.headers.get("authorization", "").partition(" ")
        if kind.casefold() != "bearer" or not secret.strip():
            lacking = AccessError("a token is needed: send Authorization: Bearer …, made with holdfast token add")
            raise Refused(lacking, 401, {"WWW-Authenticate": "Bearer"})
        try:
            caller = self.identify(secret.strip())
        except AccessError as error:
            raise Refused(error, 401, {"WWW-Authenticate": 'Bearer error="invalid_token"'}) from error
        welcome(request.scope)
        return caller

    def identify(self, secret: str) -> Caller:
        """Return who shows a token.

        Raises:
            AccessError: it is none of this store's, or was revoked.
            Refused: that, and too many of those were shown lately.
        """
        if self.tokens is None:
            return Caller()
        try:
            token = self.tokens.find(secret)
        except AccessError:
            self._wrong.take("")  # all who guess together
            raise
        return Caller(token.name, token.tenant, token.user)

    # -------------------------------------------------------------------------------------------- for the pages

    def work(self, caller: str, call: Callable[[], T]) -> asyncio.Future[T]:
        """Begin a piece of quick work."""
        return self._quick.run(caller, call)

    def take(self, caller: str) -> None:
        """Count one request of a caller, or send it away."""
        self._rate.take(caller)

    def histograms(self) -> Mapping[str, tuple[int, ...]]:
        """Return how long answers took."""
        return self._metrics.histograms()

    # ------------------------------------------------------------------------------------------------- verbs

    async def _answer(self, known: Mapping[str, Verb], request: Request) -> Response:
        verb = known["GET" if request.method == "HEAD" else request.method]
        request.scope["holdfast.route"] = verb.name
        caller = self._admit(request)
        self._rate.take(caller.name)
        try:
            said, how = request.headers.get("content-length"), self.settings
            body = await read_body(request.stream(), said, how.body_bytes, how.body_seconds)
        except ClientDisconnect as error:
            raise Refused(InputError("the caller went away before the body was there"), 400) from error
        query = dict(request.query_params)
        full = not verb.brief or _choose_detail(query.pop("detail", "brief")) == "full"
        read = partial(_read_arguments, verb, request, query, body)
        arguments = read() if verb.raw or len(body) <= _SOON_READ else await self._quick.run(caller.name, read)
        _bind(verb, arguments, caller)
        for said in (arguments.get("content"), arguments.get("messages")):
            if isinstance(said, list) and len(said) > self.settings.batch:
                many = f"{len(said):,} messages at once; the most is {self.settings.batch:,}: send them in parts"
                raise Refused(InputError(many), 413)
        if caller.user is not None and verb.writes:
            await self._quick.run(caller.name, partial(authorise, self.memory, verb.name, arguments))
        if verb.streams:
            return await self._send_file(verb, arguments, caller)
        begin = partial(self._begin, verb, arguments, caller, full=full)
        key = request.headers.get("idempotency-key")
        if key is None or not verb.writes:
            job = begin()
        else:
            asked = json.dumps([verb.name, full, {name: repr(value) for name, value in arguments.items()}]).encode()
            owner = json.dumps([caller.name, arguments.get("tenant"), arguments.get("user")])
            job = self._keys.once(owner, key, asked, begin)
        if verb.reports is None:
            return Response(await asyncio.shield(job.answer), media_type="application/json")
        if _EVENTS in request.headers.get("accept", ""):
            return StreamingResponse(self._stream(job, request.scope["holdfast.id"]), media_type=_EVENTS)
        return Response(await _hear(job, request), media_type="application/json")

    def _begin(self, verb: Verb, arguments: dict[str, Any], caller: Caller, *, full: bool) -> Job[bytes]:
        """Begin to call a verb. Long work ends when its caller goes away; what is to be erased is erased whole."""
        erases = verb.name == "forget"
        job = Job[bytes](caller.name, may_end="progress" in verb.kept and not erases)

        def report(*values: object) -> None:
            told = dict(zip(verb.reports or (), values, strict=True))
            if verb.raw and int(str(told["of"])) > self.settings.units:
                many = f"{told['of']:,} units at once; the most is {self.settings.units:,}: send them in parts"
                raise InputError(many)
            job.report(json.dumps(told))

        listening = {"progress": report} if "progress" in verb.kept else {}
        kind = self._erasing if erases else self._quick if verb.reports is None else self._long
        return kind.start(job, partial(_call, self.memory, verb, arguments | listening, caller, full))

    async def _stream(self, job: Job[bytes], request_id: str) -> AsyncIterator[bytes]:
        """Tell how far long work is, then its answer. A reader who is slow misses reports, never the answer."""
        with job.wanted():
            told = ""
            while not job.answer.done():
                if job.said == told:
                    await asyncio.wait({job.answer, job.news}, timeout=_SILENCE, return_when=asyncio.FIRST_COMPLETED)
                yield _event("progress", job.said) if job.said != told else b": working\n\n"
                told = job.said
            error = job.answer.exception()
            if error is None:
                yield _event("result", job.answer.result().decode())
            elif isinstance(error, HoldfastError):
                found = _as_told(error, request_id, guarded=self.asks_for_tokens())
                yield _event("problem", json.dumps(problem_of(found)))
            elif isinstance(error, Refused):
                yield _event("problem", json.dumps(problem_of(error.error, error.status)))
            else:
                log.error("%s failed", request_id, exc_info=error)
                yield _event("problem", json.dumps(problem_of(_DEFECT)))

    async def _send_file(self, verb: Verb, arguments: dict[str, Any], caller: Caller) -> Response:
        """Send what a verb writes; all of it is written before it is sent, so that no reader holds a store up."""
        spool = tempfile.SpooledTemporaryFile(_SPOOLED)  # noqa: SIM115 - closed by whoever has read it
        try:
            call = partial(_call, self.memory, verb, arguments | {"target": spool}, caller, full=True)
            report = await asyncio.shield(self._long.run(caller.name, call))
        except BaseException:
            spool.close()
            raise
        kind = json.loads(report)["format"]
        headers = {EXPORTED: report.decode(), "Content-Length": str(spool.tell())}
        spool.seek(0)
        return StreamingResponse(_read_spool(spool), media_type=MEDIA_TYPES_OF_EXPORTS[kind], headers=headers)

    # ---------------------------------------------------------------------------------------------- operations

    async def _say_alive(self, _: Request) -> Response:
        return JSONResponse({"status": "alive", "version": __version__})

    async def _say_ready(self, _: Request) -> Response:
        if self._loaded is None or not self._loaded.done():
            raise Refused(ServerError("the store and the embedder are being loaded"), headers={"Retry-After": "1"})
        if isinstance(failure := self._loaded.exception(), EmbedderError):
            self._loaded = self._long.run("", self._load)  # the next who asks hears whether it could be loaded now
            raise failure
        self._loaded.result()
        await self._quick.run("", partial(self.memory.stats, user=_NOBODY))
        return JSONResponse({"status": "ready", "version": __version__})

    async def _say_metrics(self, request: Request) -> Response:
        self._admit(request)
        gauges = {"working": self._quick, "working_long": self._long, "working_forget": self._erasing}
        return PlainTextResponse(
            self._metrics.write({name: kind.taken for name, kind in gauges.items()}),
            media_type="text/plain; version=0.0.4",
        )

    async def _show_document(self, _: Request) -> Response:
        return Response(self._document, media_type="application/json")

    async def _show_page(self, _: Request) -> Response:
        return HTMLResponse(self._page)

    def count(self, route: str, status: int, seconds: float) -> None:
        """Count one answer."""
        self._metrics.count(route, status, seconds)


class RequestGuard:
    """Around everything: an id for each request, in the log and in the answer; and nobody from elsewhere."""

    def __init__(self, server: HttpServer, app: ASGIApp) -> None:
        self._server, self._app = server, app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or refuse it before its body is read."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        given = headers.get("x-request-id", "")
        request_id = given if _REQUEST_ID.fullmatch(given) else uuid.uuid4().hex
        # An id may hold a slash, which a path has as %2F: its segments are read before they are matched.
        segments = scope.get("raw_path", b"").split(b"?")[0].decode("latin-1").split("/")
        path = "/".join(unquote(one).replace("/", _SLASH) for one in segments)
        scope = {**scope, "path": path, "holdfast.route": "other", "holdfast.id": request_id}
        scope["holdfast.guarded"] = self._server.asks_for_tokens()
        started, status = time.monotonic(), 0

        async def send_on(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", ()), (b"x-request-id", request_id.encode("latin-1"))]
            await send(message)

        try:
            self._server.refuse_strangers(scope, headers)
        except Refused as refused:
            await _problem(request_id, refused.error, refused.status, refused.headers)(scope, receive, send_on)
        else:
            await self._app(scope, receive, send_on)
        finally:
            seconds = time.monotonic() - started
            route = scope["holdfast.route"]
            self._server.count(route, status, seconds)
            log.info("%s %s %s %d %.1f ms", request_id, scope["method"], route, status, seconds * 1000)


# --------------------------------------------------------------------------------------------------- arguments


def _read_arguments(verb: Verb, request: Request, query: dict[str, str], body: bytes) -> dict[str, Any]:
    """Return the arguments of a call, from wherever they stand; what nobody knows is refused."""
    arguments: dict[str, Any] = {name: one.replace(_SLASH, "/") for name, one in request.path_params.items()}
    kind = request.headers.get("content-type", "").partition(";")[0].strip().casefold()
    if verb.raw:
        arguments[verb.raw] = _read_text(body) if kind == "text/plain" and not verb.binary else body
    elif verb.method != "GET":
        if body and kind != "application/json":
            raise Refused(InputError(f"the body is {quote_value(kind)}; send application/json"), 415)
        fields = read_json(body)
        for name in fields:
            known_argument(verb, name, "body")
        arguments |= fields
    arguments |= read_query(verb, query)
    for name, value in arguments.items():
        if name != verb.raw:
            check_argument(verb.arguments[name], value)
    return arguments


async def _hear(job: Job[bytes], request: Request) -> bytes:
    """Return the answer of long work, unless the caller goes away before it is there."""
    with job.wanted():
        left = asyncio.ensure_future(request.receive())  # behind the body comes nothing else
        either: set[asyncio.Future[Any]] = {job.answer, left}
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        left.cancel()
        if not job.answer.done():
            raise Refused(InputError("the caller went away before the answer was there"), 400)
        return job.answer.result()


def _read_text(body: bytes) -> str:
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Refused(InputError(f"the body is not UTF-8: {error}; send application/octet-stream"), 400) from error


def _choose_detail(detail: str) -> str:
    if detail not in ("brief", "full"):
        raise InputError(f"there is no detail {quote_value(detail)}; choose one of brief, full")
    return detail


def _bind(verb: Verb, arguments: dict[str, Any], caller: Caller) -> None:
    """Hold a caller to what the token opens, and name the owner that it stands for."""
    for name, own in (("tenant", caller.tenant), ("user", caller.user)):
        if own is not None and name in verb.arguments and arguments.setdefault(name, own) != own:
            if arguments[name] is not None:
                raise AccessError(f"token not valid for {name} {quote_value(arguments[name])}; leave {name} out")
            arguments[name] = own
    if caller.tenant is not None and verb.everyones and (verb.everyones == "*" or arguments.get(verb.everyones)):
        raise AccessError(f"{verb.name} covers every tenant here, and no token does; run it next to the server")
    if caller.user is not None and arguments.get("scope") == "global":
        raise AccessError("this token is for one user, and global units are shared; leave scope out")
    missing = [one.name for one in verb.arguments.values() if one.needed and one.name not in arguments]
    if missing:
        raise InputError(f"{verb.name} needs {missing[0]}; add it")


def _call(memory: Memory, verb: Verb, arguments: dict[str, Any], caller: Caller, full: bool) -> bytes:
    """Call the verb and write its answer: all of it in a thread of the pool."""
    call = getattr(memory, verb.name) if verb.function is None else partial(verb.function, memory)
    answer_for(caller)
    found = call(**arguments) if caller.tenant is None else without_place(call(**arguments))
    return json.dumps(encode(verb.result, found, full=full), allow_nan=False).encode("ascii")


# ----------------------------------------------------------------------------------------------------- answers


def _read_spool(spool: tempfile.SpooledTemporaryFile[bytes]) -> Iterator[bytes]:
    with spool:
        while chunk := spool.read(_CHUNK):
            yield chunk


_DEFECT = HoldfastError("something went wrong in the server; its log has the request id of this answer")


def _event(name: str, data: str) -> bytes:
    return f"event: {name}\ndata: {data}\n\n".encode()


def _problem(
    request_id: str, error: HoldfastError, status: int | None = None, headers: Mapping[str, str] | None = None
) -> Response:
    problem = problem_of(error, status) | {"instance": request_id}
    again = {"Retry-After": "1"} if problem["status"] == ServerError.status else {}
    return Response(
        json.dumps(problem), status_code=problem["status"], media_type=_PROBLEM, headers={**again, **(headers or {})}
    )


async def _tell(request: Request, error: Refused | HoldfastError) -> Response:
    if isinstance(error, Refused):
        return _problem(request.scope["holdfast.id"], error.error, error.status, error.headers)
    told = _as_told(error, request.scope["holdfast.id"], guarded=request.scope["holdfast.guarded"])
    return _problem(request.scope["holdfast.id"], told)


def _as_told(error: HoldfastError, request_id: str, *, guarded: bool) -> HoldfastError:
    """Return what a caller hears of an error; where files lie stands in the log alone."""
    if not guarded or error.status < _DEFECT.status:
        return error
    log.error("%s failed: %s", request_id, error)
    return without_folders(error)


async def _tell_of_route(request: Request, error: HTTPException) -> Response:
    path = request.scope["path"].replace(_SLASH, "/")
    told = InputError(f"{request.method} {quote_value(path)}: {error.detail}; /docs names the routes")
    return _problem(request.scope["holdfast.id"], told, error.status_code, error.headers)


async def _tell_of_defect(request: Request, error: Exception) -> Response:
    log.error("%s failed: %r", request.scope["holdfast.id"], error)
    return _problem(request.scope["holdfast.id"], _DEFECT)
