"""The pages and their routes: a visit → verbs of `Memory` → a page. They read; only `forget` writes, when it may."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from datetime import UTC
from functools import partial
from typing import Any, Protocol, TypeVar

from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from holdfast import __version__
from holdfast.arguments import find_zone
from holdfast.errors import AccessError, BudgetError, HoldfastError, InputError, NotFoundError
from holdfast.memory import Memory
from holdfast.server.access import Caller, answer_for, authorise, without_folders
from holdfast.server.inspector import views
from holdfast.server.inspector.charts import chart_lineage, chart_time
from holdfast.server.inspector.pages import (
    COOKIE,
    LONGEST_FORM,
    SAFETY,
    PageRequest,
    SignInCookies,
    draw,
    local_path,
    read_form,
    static_files,
)
from holdfast.server.limits import BOUNDS, Refused, ServerSettings, read_body, welcome
from holdfast.settings import PROFILES
from holdfast.settings.loading import REAL_NAMES
from holdfast.types import NameCount, Unit
from holdfast.types.contexts import Context, SectionName
from holdfast.values import dataclass
from holdfast.why import speaker_name

T = TypeVar("T")
# As much as a person looks through; the next page has the next ones.
_HITS, _MOST_HITS = 10, 100
# Users that the field at the top suggests: more than a browser lists at once.
_USERS = 200
_TURNS, _SESSIONS, _FACTS, _BLOCKS, _SUMMARIES = 50, 25, 100, 200, 200
# A context smaller than this holds no sentence; a step of the slider is what a turn costs.
_LEAST_BUDGET, _BUDGET_STEP = 100, 50
_MOST_BUDGET = 1_000_000
# Shares of a budget grow with it: all that fits needs a little more room than its own tokens.
_SPARE = 1.25
_A_YEAR = 31_536_000
# Parts of a context that somebody said.
_SAID: tuple[SectionName, ...] = ("tail", "standing", "projection")
_PAGES = (
    ("recall", "/", "Recall"),
    ("context", "/context", "Context"),
    ("timeline", "/timeline", "Timeline"),
    ("facts", "/facts", "Facts"),
    ("documents", "/documents", "Documents"),
    ("status", "/status", "Health"),
)


class Host(Protocol):
    """What the pages need of the server that they are part of."""

    memory: Memory
    settings: ServerSettings

    def asks_for_tokens(self) -> bool:
        """Return whether a caller has to show a token."""
        ...

    def identify(self, secret: str) -> Caller:
        """Return who shows a token."""
        ...

    def work(self, caller: str, call: Callable[[], T]) -> asyncio.Future[T]:
        """Begin a piece of work in a thread."""
        ...

    def take(self, caller: str) -> None:
        """Count one request of a caller."""
        ...

    def histograms(self) -> Mapping[str, tuple[int, ...]]:
        """Return how long answers took."""
        ...


@dataclass(frozen=True, slots=True)
class PageContent:
    """What a page shows: a template and its values."""

    template: str
    title: str
    values: Mapping[str, Any] = field(default_factory=dict)
    status: int = 200


class Site:
    """The pages of one server."""

    def __init__(self, host: Host) -> None:
        self._host, self._memory, self._signed_in = host, host.memory, SignInCookies()
        self._zone = find_zone(host.memory.settings, None) or UTC
        self._first_user = host.settings.user or host.memory.settings.store.user

    @property
    def routes(self) -> list[Route]:
        """Return a route for each page, and for what they need."""
        pages = {
            "/": self._recall, "/context": self._context, "/timeline": self._timeline, "/expand": self._expand,
            "/unit": self._unit, "/facts": self._facts, "/documents": self._documents, "/status": self._status,
            "/forget": self._plan_forgetting,
        }  # fmt: skip
        return [
            *(Route(path, partial(self._show, make), methods=["GET"]) for path, make in pages.items()),
            Route("/forget", self._forget, methods=["POST"]),
            Route("/sign-in", self._sign_in, methods=["POST"]),
            Route("/sign-out", self._sign_out, methods=["POST"]),
            Route("/static/{name}", self._static, methods=["GET"]),
        ]

    # --------------------------------------------------------------------------------------------------- answering

    async def _show(self, make: Callable[[PageRequest], PageContent], request: Request) -> Response:
        request.scope["holdfast.route"] = f"page {request.url.path}"
        return await self._answer(request, make, dict(request.query_params))

    async def _answer(
        self,
        request: Request,
        make: Callable[[PageRequest], PageContent],
        given: Mapping[str, str],
        form: Mapping[str, str] = {},
    ) -> Response:
        """Draw a page for whoever may see it; what goes wrong is told on a page too."""
        visit = None
        try:
            caller = self._admit(request)
            self._host.take(caller.name)
            if request.method == "POST":
                self._signed_in.refuse_foreign(request, form)
            visit = PageRequest.of(request, caller, self._first_user, self._signed_in.proof(request), given)
            return await asyncio.shield(self._host.work(caller.name, partial(self._draw, make, visit)))
        except Refused as refused:
            return self._tell(request, visit, refused.error, refused.status, refused.headers)
        except HoldfastError as error:
            told = without_folders(error) if self._host.asks_for_tokens() else error
            return self._tell(request, visit, told, error.status)

    def _admit(self, request: Request) -> Caller:
        caller = Caller()
        if self._host.asks_for_tokens():
            token = self._signed_in.token(request)
            if not token:
                raise Refused(AccessError("sign in with a token"), 401)
            try:
                caller = self._host.identify(token)
            except AccessError as error:
                raise Refused(error, 401) from error
        welcome(request.scope)
        return caller

    def _draw(self, make: Callable[[PageRequest], PageContent], visit: PageRequest) -> Response:
        answer_for(visit.caller)
        others = views.list_users(self._memory, visit.tenant, _USERS) if visit.caller.user is None else ()
        return self._response(make(visit), visit, others=others)

    def _response(
        self, page: PageContent, visit: PageRequest | None, headers: Mapping[str, str] = {},
        others: Sequence[NameCount] = (),
    ) -> Response:  # fmt: skip
        values = {
            "title": page.title, "pages": _PAGES, "current": page.template, "visit": visit, "zone": self._zone,
            "version": __version__, "write": self._host.settings.write, "guarded": self._host.asks_for_tokens(),
            "day": partial(views.day, zone=self._zone), "clock": partial(views.clock, zone=self._zone),
            "who": speaker_name, "others": others, "url": visit.address if visit is not None else lambda path: path,
        }  # fmt: skip
        body = draw(page.template, {**values, **page.values})
        return HTMLResponse(body, page.status, {"Cache-Control": "no-store", **SAFETY, **headers})

    def _tell(
        self,
        request: Request,
        visit: PageRequest | None,
        error: HoldfastError,
        status: int,
        headers: Mapping[str, str] = {},
    ) -> Response:
        if status == 401:
            path = f"{request.url.path}?{request.url.query}" if request.method == "GET" else "/"
            tried = self._signed_in.token(request) != "" or request.url.path == "/sign-in"
            return self._response(self._sign_in_page(request, path, str(error) if tried else ""), None)
        title = "Not found" if isinstance(error, NotFoundError) else "This did not work"
        return self._response(PageContent("error", title, {"message": str(error)}, status), visit, headers)

    async def _static(self, request: Request) -> Response:
        request.scope["holdfast.route"] = "static"
        address = request.url.path
        found = next((one for one in static_files().values() if one.address == address), None)
        if found is None:
            return Response("there is no such file", 404, media_type="text/plain")
        kept = {"Cache-Control": f"public, max-age={_A_YEAR}, immutable"}
        return Response(found.body, headers={**SAFETY, **kept}, media_type=found.media_type)

    # --------------------------------------------------------------------------------------------------- signing in

    async def _read_form(self, request: Request) -> dict[str, str]:
        try:
            said, seconds = request.headers.get("content-length"), self._host.settings.body_seconds
            body = await read_body(request.stream(), said, LONGEST_FORM, seconds)
        except ClientDisconnect as error:
            raise Refused(InputError("the caller went away before the form was there"), 400) from error
        return read_form(body)

    async def _sign_in(self, request: Request) -> Response:
        """Take a token; it stays here, and the browser gets a key that stands for it."""
        request.scope["holdfast.route"] = "sign in"
        try:
            form = await self._read_form(request)
            self._host.take("sign in")
            self._signed_in.refuse_foreign(request, form)
        except Refused as refused:
            return self._tell(request, None, refused.error, refused.status, refused.headers)
        path = local_path(form.get("next", "/"))
        if not self._host.asks_for_tokens():
            return RedirectResponse(path, 303, SAFETY)
        token = form.get("token", "").strip()
        try:
            self._host.identify(token)
        except AccessError as error:
            return self._response(self._sign_in_page(request, path, str(error)), None)
        except Refused as refused:
            return self._tell(request, None, refused.error, refused.status, refused.headers)
        answer = RedirectResponse(path, 303, SAFETY)
        secure = request.url.scheme == "https"
        answer.set_cookie(COOKIE, self._signed_in.begin(token), httponly=True, samesite="strict", secure=secure)
        return answer

    def _sign_in_page(self, request: Request, path: str, problem: str) -> PageContent:
        values = {"next": local_path(path), "problem": problem, "proof": self._signed_in.proof(request)}
        return PageContent("sign_in", "Sign in", values, 401)

    async def _sign_out(self, request: Request) -> Response:
        request.scope["holdfast.route"] = "sign out"
        try:
            form = await self._read_form(request)
            self._signed_in.refuse_foreign(request, form)
        except Refused as refused:
            return self._tell(request, None, refused.error, refused.status)
        self._signed_in.end(request.cookies.get(COOKIE, ""))
        answer = RedirectResponse("/", 303, SAFETY)
        answer.delete_cookie(COOKIE, httponly=True, samesite="strict")
        return answer

    # ------------------------------------------------------------------------------------------------------ reading

    def _recall(self, visit: PageRequest) -> PageContent:
        question, session = visit.text("q"), visit.text("session")
        limit, profile = max(visit.number("limit", _HITS, _MOST_HITS), 1), visit.text("profile") or "hybrid"
        profile = REAL_NAMES.get(profile, profile)
        asked = {
            "q": question or "", "session": session or "", "profile": profile, "limit": limit,
            "as_of": visit.text("as_of") or "", "all": visit.flag("all"),
        }  # fmt: skip
        values: dict[str, Any] = {"asked": asked, "profiles": PROFILES, "answer": None, "texts": {}}
        if question is None:
            return PageContent("recall", "Recall", values | self._overview(visit))
        view = {
            **visit.owner, "session": session, "profile": profile, "as_of": visit.text("as_of"),
            "current_only": not asked["all"],
        }  # fmt: skip
        result = self._memory.search(question, limit=limit, explain=True, **view)
        try:
            context = self._memory.assemble(question, track_access=False, **view)
        except BudgetError:  # the hard rules alone are too long: no context, and so no passes
            context = None
        answer = views.view_recall(result, context)
        values |= {
            "answer": answer,
            "texts": {name: unit.text for name, unit in self._units(visit, answer.mentioned).items()},
        }
        return PageContent("recall", question, values | ({} if answer.hits else self._overview(visit)))

    def _overview(self, visit: PageRequest) -> dict[str, Any]:
        """Return how much there is, for a page that has nothing else to show."""
        own = self._memory.users(**visit.owner)
        others = views.list_users(self._memory, visit.tenant) if not own and visit.caller.user is None else ()
        return {"own": own[0] if own else None, "users": others}

    def _units(self, visit: PageRequest, ids: Iterable[str]) -> dict[str, Unit]:
        """Return some units, one by one: that is quicker than a filter, which looks at all."""
        found = {}
        for unit_id in dict.fromkeys(ids):
            with contextlib.suppress(NotFoundError):  # forgotten meanwhile
                found[unit_id] = self._memory.get(unit_id, **visit.owner)
        return found

    def _context(self, visit: PageRequest) -> PageContent:
        question, session = visit.text("q"), visit.text("session")
        usual = self._memory.settings.assembly.budget
        budget, compared = visit.number("budget", 0, _MOST_BUDGET), visit.number("compare", 0, _MOST_BUDGET)
        asked = {"q": question or "", "session": session or "", "budget": budget or usual}
        values: dict[str, Any] = {
            "asked": asked, "slider": {"least": _LEAST_BUDGET, "most": max(usual, budget), "step": _BUDGET_STEP},
            "made": None, "compared": compared, "problem": "", "usual": usual,
        }  # fmt: skip
        if question is None:
            return PageContent("context", "Context", values | self._overview(visit))
        assemble = partial(self._memory.assemble, question, session=session, track_access=False, **visit.owner)
        try:
            context = assemble(budget=budget or usual)
            most = min(_room_for_all(context), usual)
            if not budget and most < usual:  # the slider begins where it changes something
                context = assemble(budget=most)
            before = assemble(budget=compared) if compared and compared != budget else None
        except BudgetError as error:
            return PageContent("context", question, values | {"problem": str(error)})
        asked["budget"] = context.budget
        values["slider"] |= {"most": max(most, context.budget), "least": min(_LEAST_BUDGET, context.budget)}
        recalled = [item.id for name in _SAID for item in context.section(name).items]
        made = {"made": views.view_context(context, before), "units": self._units(visit, recalled)}
        return PageContent("context", question, values | made)

    def _timeline(self, visit: PageRequest) -> PageContent:
        name = visit.text("session")
        if name is None:
            newest = views.list_sessions(self._memory, visit.owner)
            find = visit.text("find") or ""
            found = [one for one in newest if find.casefold() in f"{one.name}\n{one.title}".casefold()]
            start = visit.number("from", 0, len(found))
            shown = found[start : start + _SESSIONS]
            spans = (
                (row.first, row.last, row.units) for row in found if row.first is not None and row.last is not None
            )
            values = {
                "sessions": shown, "start": start, "total": len(found), "listed": len(newest),
                "complete": len(newest) < views.MOST_LISTED, "find": find,
                "chart": chart_time(spans), "step": _SESSIONS, "most": max((row.units for row in shown), default=1),
            }  # fmt: skip
            return PageContent("timeline", "Timeline", values | ({} if newest else self._overview(visit)))
        start = visit.number("from", 0, 10**9)
        both = {**visit.owner, "session": name, "current_only": False}
        turns = self._memory.list(
            **both, order="oldest", limit=start + _TURNS + 1, filters={"kind": {"ne": "summary"}}
        )[start:]
        summaries = self._memory.list(**both, order="oldest", limit=_SUMMARIES, filters={"kind": "summary"})
        more, turns = len(turns) > _TURNS, turns[:_TURNS]
        if not turns and not summaries:
            raise NotFoundError(f"user {visit.user!r} has nothing in session {name!r}; /timeline names the sessions")
        standing = _standing_for(summaries, {turn.id for turn in turns})
        chart = chart_lineage(
            [
                (one.id, f"{speaker_name(one)}, {views.clock(one.event_time, self._zone)}", one.author)
                for one in turns
            ],
            {one.id: ("summary", one.lineage.sources) for one in standing if one.lineage is not None},
        )
        called = _title_of([*turns, *summaries][0])
        values = {
            "name": name, "called": called, "turns": turns, "summaries": standing, "chart": chart, "start": start,
            "more": more, "step": _TURNS,
        }  # fmt: skip
        return PageContent("session", called or name, values)

    def _expand(self, visit: PageRequest) -> PageContent:
        unit = self._memory.get(visit.needed("id"), **visit.owner)
        return PageContent(
            "expand", "Turns of a summary", {"unit": unit, "turns": self._memory.expand(unit.id, **visit.owner)}
        )

    def _unit(self, visit: PageRequest) -> PageContent:
        unit = self._memory.get(visit.needed("id"), **visit.owner)
        question = visit.text("q")
        why = None
        if question is not None:
            why = views.view_why(
                self._memory.why(question, unit.id, session=visit.text("session"), **visit.owner), question
            )
        section = None
        if unit.author == "document" and unit.kind == "knowledge":
            try:
                section = self._memory.widen(unit.id, **visit.owner)
            except NotFoundError:  # the document was edited or forgotten since: the unit stands alone
                section = None
        values = {
            "view": views.view_unit(unit, self._memory.history(unit.id, **visit.owner), self._zone), "why": why,
            "question": question or "", "section": section, "space": views.space_of(self._memory),
            "decisions": self._memory.decisions(unit.id, **visit.owner),
        }  # fmt: skip
        return PageContent("unit", f"Unit {unit.id}", values)

    def _facts(self, visit: PageRequest) -> PageContent:
        subject, relation = visit.text("subject"), visit.text("relation")
        everything = visit.flag("all")
        table = self._memory.facts(**visit.owner, subject=subject, relation=relation, current_only=not everything)
        start = visit.number("from", 0, max(len(table), 1))
        values = {
            "groups": views.group_facts(table[start : start + _FACTS]), "total": len(table), "start": start,
            "step": _FACTS, "subject": subject or "", "relation": relation or "", "all": everything,
            "known": views.group_known(self._memory.about(**visit.owner)) if visit.flag("known") else None,
        }  # fmt: skip
        return PageContent("facts", "Facts", values)

    def _documents(self, visit: PageRequest) -> PageContent:
        name = visit.text("name")
        if name is None:
            documents = views.list_documents(self._memory, visit.owner)
            return PageContent("documents", "Documents", {"documents": documents, "document": None})
        document, blocks = views.read_blocks(self._memory, visit.owner, name, shared=visit.flag("shared"))
        start = visit.number("from", 0, max(len(blocks), 1))
        values = {
            "documents": (), "document": document, "blocks": blocks[start : start + _BLOCKS], "start": start,
            "total": len(blocks), "step": _BLOCKS,
        }  # fmt: skip
        return PageContent("documents", name, values)

    def _status(self, visit: PageRequest) -> PageContent:
        stats = self._memory.stats(**visit.owner, whole=visit.caller.tenant is None)
        timings = [
            (route, _timing(counts))
            for route, counts in self._host.histograms().items()
            if sum(counts) and route != "static"
        ]
        values = {"stats": stats, "timings": timings, "bounds": BOUNDS}
        return PageContent("status", "Health", values)

    # --------------------------------------------------------------------------------------------------- forgetting

    def _plan_forgetting(self, visit: PageRequest) -> PageContent:
        """Show what would be erased: nothing is, until a form of that page says so."""
        wanted = self._wanted(visit)
        self._refuse_shared(visit, wanted)
        planned = self._memory.forget(**visit.owner, **wanted, dry_run=True)
        return PageContent("forget", "Forget", {"planned": planned, "done": None, "wanted": wanted})

    async def _forget(self, request: Request) -> Response:
        request.scope["holdfast.route"] = "page /forget"
        try:
            form = await self._read_form(request)
        except Refused as refused:
            return self._tell(request, None, refused.error, refused.status, refused.headers)
        return await self._answer(request, self._erase, form, form)

    def _erase(self, visit: PageRequest) -> PageContent:
        wanted = self._wanted(visit)
        self._refuse_shared(visit, wanted)
        done = self._memory.forget(**visit.owner, **wanted)
        return PageContent("forget", "Forgotten", {"planned": None, "done": done, "wanted": wanted})

    def _refuse_shared(self, visit: PageRequest, wanted: Mapping[str, Any]) -> None:
        if visit.caller.user is not None:
            authorise(self._memory, "forget", {**visit.owner, **wanted})

    def _wanted(self, visit: PageRequest) -> dict[str, Any]:
        """Return what is to be forgotten.

        Raises:
            AccessError: these pages only read.
        """
        if not self._host.settings.write:
            raise AccessError("these pages only read; start them with --write to forget something")
        named = {"ids": visit.text("id"), "session": visit.text("session"), "document": visit.text("document")}
        given = {name: one for name, one in named.items() if one is not None}
        if len(given) != 1:
            raise InputError("name one thing to forget: an id, a session or a document; follow a link of a page")
        return given


def _title_of(unit: Unit) -> str:
    """Return what a unit's conversation is called where it was imported from; empty when nothing says so."""
    called = unit.metadata.get("conversation")
    return " ".join(called.split()) if isinstance(called, str) else ""


def _room_for_all(context: Context) -> int:
    """Return a budget that holds all that a context has and lacks, and a little more."""
    tokens = context.tokens + sum(left.needed for left in context.left_out)
    return -(-int(tokens * _SPARE) // _BUDGET_STEP) * _BUDGET_STEP


def _standing_for(summaries: Sequence[Unit], turns: set[str]) -> list[Unit]:
    """Return the summaries that stand for one of the turns, or for turns that are hidden behind them."""
    return [one for one in summaries if not turns or (one.lineage is not None and turns & {*one.lineage.sources})]


def _timing(counts: Sequence[int]) -> dict[str, Any]:
    most = max(counts)
    return {"answers": sum(counts), "bars": [round(100 * one / most, 1) for one in counts], "counts": counts}
