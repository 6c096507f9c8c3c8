"""What a caller gives to a verb of `Memory` → checked values: view, fields of a unit, question, context request."""

from __future__ import annotations

import dataclasses
import difflib
import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from functools import partial
from typing import Any, Literal, ParamSpec, Required, TypedDict, TypeVar, cast, get_args, get_type_hints
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from holdfast.context.plan import ContextRequest, check_budget, check_whole, share_of
from holdfast.documents.core import IngestContext, load_rules
from holdfast.errors import InputError, NotFoundError, quote_value
from holdfast.ingest import Redact, WriteOptions
from holdfast.messages.checks import (
    check_flag,
    check_given_text,
    check_lifetime,
    check_metadata,
    check_name,
    check_note,
    check_targets,
    check_text,
    check_time,
    choose,
)
from holdfast.messages.content import QuestionInput, question_of, visible_messages
from holdfast.messages.redaction import redact_json
from holdfast.retrieval.question import Question, build_strategies, find_profile
from holdfast.settings import AssemblySettings, IngestSettings, Settings
from holdfast.store.contract import Store, read_once
from holdfast.store.filters import parse_filter
from holdfast.text.tokens import TokenCounter
from holdfast.types import AUTHORS, SCOPES, Unit, View

Filters = Mapping[str, Any]
# Whether the first hits are read together; None: as the settings say.
Read = Literal["once", "wide", False] | None
P = ParamSpec("P")
R = TypeVar("R")
# What a caller says in seconds is kept as a moment.
_STORED_AS = {"ttl": "expires_at"}
# More than a store can hold; a larger number is a slip, and SQLite has no room for it.
_MOST_ASKED = 2**40


# --------------------------------------------------------------------------------------- keywords of many verbs


class OwnerOptions(TypedDict, total=False):
    """Whose memory is meant."""

    user: Required[str]
    agent: str | None
    tenant: str | None


class SessionOptions(OwnerOptions, total=False):
    """Whose memory is meant, and in which session."""

    session: str | None


class ClockOptions(SessionOptions, total=False):
    """Whose memory is meant, in which session, and by whose clock times are read and shown."""

    zone: str | None


class ViewOptions(ClockOptions, total=False):
    """What a question may see, and when it is asked."""

    filters: Filters | None
    only_session: bool
    current_only: bool
    reference_time: datetime | str | None
    as_of: datetime | str | None


class _FieldOptions(TypedDict, total=False):
    """Fields of a unit that are given when it is written, and can be changed later."""

    metadata: Mapping[str, Any] | None
    pinned: bool
    ttl: float | timedelta | None
    valid_from: datetime | str | None
    valid_to: datetime | str | None
    links: str | Sequence[str] | None


class UnitOptions(ClockOptions, _FieldOptions, total=False):
    """Whose the words are, and what holds for all of them."""

    scope: str | None
    at: datetime | str | None
    id: str | None
    author: str | None
    speaker: str | None
    supersedes: str | Sequence[str] | None


class ChangeOptions(OwnerOptions, _FieldOptions, total=False):
    """Whose unit is changed, and what of it; what is not given stays as it is."""

    text: str
    topic: str
    zone: str | None


def make_view(  # noqa: PLR0913 - one argument for each option
    settings: Settings,
    now: datetime,
    *,
    user: str,
    session: str | None = None,
    agent: str | None = None,
    tenant: str | None = None,
    filters: Filters | None = None,
    only_session: bool = False,
    current_only: bool = True,
    reference_time: datetime | str | None = None,
    as_of: datetime | str | None = None,
    zone: str | None = None,
) -> View:
    """Return what one call may see.

    Raises:
        InputError: an option cannot be used.
    """
    clock = find_zone(settings, zone)
    then = check_time("as_of", as_of, clock)
    if check_flag("only_session", only_session) and session is None:
        raise InputError("only_session needs a session; name one")
    return View(
        tenant=check_name("tenant", tenant or settings.store.tenant) or "",
        user=check_user(user),
        session=check_name("session", session, optional=True),
        agent=check_name("agent", agent, optional=True),
        now=now,
        reference_time=(check_time("reference_time", reference_time, clock) or then or now).astimezone(clock or UTC),
        as_of=then,
        only_session=only_session,
        current_only=check_flag("current_only", current_only),
        hide_covered=settings.compaction.covered == "hide",
        filters=parse_filter(filters, clock),
        zone=clock,
    )


_VIEW = inspect.signature(make_view).parameters


def expand_keywords(verb: Callable[P, R]) -> Callable[P, R]:
    """Give a verb with `**options: Unpack[…]` the signature that these options are, and hold its callers to it.

    `help` and `inspect.signature` show every keyword, those of a view with their defaults, and a wrong one is refused
    by name.
    """
    signature = inspect.signature(verb)
    *own, options = signature.parameters.values()
    [kind] = get_args(get_type_hints(verb)[options.name])
    given = [_VIEW.get(name) or _keyword(name, kind) for name in kind.__annotations__]
    given.sort(key=lambda one: [*_VIEW].index(one.name) if one.name in _VIEW else len(_VIEW))
    keywords = [one for one in own if one.kind is one.KEYWORD_ONLY]
    spelled = signature.replace(parameters=[*(one for one in own if one not in keywords), *given, *keywords])

    needed = [one.name for one in given if one.default is one.empty]

    @functools.wraps(verb)
    def held(*args: P.args, **kwargs: P.kwargs) -> R:
        for name in kwargs:
            if name not in spelled.parameters:
                raise TypeError(f"{verb.__qualname__}() got an unexpected keyword argument {name!r}")
        for name in needed:
            if name not in kwargs:
                raise TypeError(f"{verb.__qualname__}() missing a required keyword-only argument: {name!r}")
        return verb(*args, **kwargs)

    held.__signature__ = spelled  # type: ignore[attr-defined]  # what `inspect.signature` looks for
    return held


def _keyword(name: str, kind: type) -> inspect.Parameter:
    """Return a keyword that may be left out: of a new unit it is None then, of a change it is nothing at all."""
    default: object = ... if kind is ChangeOptions else False if name == "pinned" else None
    annotation = kind.__annotations__[name].__forward_arg__
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def owner_options(options: UnitOptions | ChangeOptions) -> ClockOptions:
    """Return whose memory is meant, and by whose clock, out of all that was given."""
    given: Mapping[str, Any] = {**options}
    return cast("ClockOptions", {name: given[name] for name in ClockOptions.__annotations__ if name in given})


# ------------------------------------------------------------------------------------------- fields of a unit


def check_unit(settings: IngestSettings, view: View, options: UnitOptions, redact: Redact | None) -> WriteOptions:
    """Return whose the words are, and the fields that hold for all of them."""
    given: Mapping[str, Any] = {name: value for name, value in options.items() if value is not None}
    checks = {name: check for name, check in _field_checks(settings, view).items() if name in given}
    fields = {name: check(given[name]) for name, check in checks.items()}
    return WriteOptions(
        tenant=view.tenant, user=view.user, session=view.session, agent=view.agent, now=view.now,
        scope=choose("scope", given["scope"], SCOPES) if "scope" in given else None,
        at=check_time("at", options.get("at"), view.zone), id=check_name("id", options.get("id"), optional=True),
        redact=redact, zone=view.zone,
        fields={_STORED_AS.get(name, name): value for name, value in fields.items() if value not in (False, ())},
    )  # fmt: skip


def check_changes(
    settings: IngestSettings, view: View, options: ChangeOptions, redact: Redact | None
) -> dict[str, Any]:
    """Return the fields of a unit that a caller wants changed, without what must not be kept.

    Raises:
        InputError: nothing is to be changed, or a value cannot be used.
    """
    given: Mapping[str, Any] = {**options}
    checks = {
        "text": lambda value: check_text(value, settings),
        "topic": lambda value: check_note("topic", check_given_text("topic", value)),
    } | {
        name: check for name, check in _field_checks(settings, view).items() if name in _FieldOptions.__annotations__
    }
    changes = {name: check(given[name]) for name, check in checks.items() if name in given}
    if not changes:
        raise InputError(f"nothing to change; give update one of {', '.join(checks)}")
    for name in {"text", "topic", "metadata"} & changes.keys():
        changes[name] = changes[name] if redact is None else redact_json(changes[name], redact)
    return {_STORED_AS.get(name, name): value for name, value in changes.items()}


def _field_checks(settings: IngestSettings, view: View) -> dict[str, Callable[[Any], Any]]:
    """Return, for every field that a caller may give, how it becomes a value of a unit."""
    return {
        "metadata": lambda value: check_metadata(value, settings),
        "pinned": partial(check_flag, "pinned"),
        "ttl": lambda value: view.now + lifetime if (lifetime := check_lifetime(value)) else None,
        "valid_from": partial(check_time, "valid_from", zone=view.zone),
        "valid_to": partial(check_time, "valid_to", zone=view.zone),
        "links": partial(check_targets, "links"),
        "author": lambda value: choose("author", value, AUTHORS),
        "speaker": partial(check_name, "speaker"),
        "supersedes": partial(check_targets, "supersedes"),
    }


def find_unit(store: Store, view: View, unit_id: str) -> Unit:
    """Return one unit.

    Raises:
        NotFoundError: the owner has no such unit.
    """
    name = check_name("id", unit_id) or ""
    unit = read_once(store, view, lambda reading: reading.units([name])).get(name)
    if unit is None:
        raise NotFoundError(
            f"there is no unit {quote_value(unit_id)} for user {quote_value(view.user)}; check id and owner"
        )
    return unit


# ---------------------------------------------------------------------------------------- question and context


def make_question(
    settings: Settings, query: QuestionInput, profile_name: str, limit: int | None, group: str | None = None, *,
    meaning: Callable[[bool], tuple[bool, str]], strict: bool = False, read: Read = None,
) -> Question:  # fmt: skip
    """Return a question with its profile; `meaning` says whether vectors can be compared now, and what to tell.

    It is told whether the caller is strict, and raises then when they cannot.

    Raises:
        InputError: the query, the limit or the group cannot be used.
        UnknownProfileError: no such profile is installed.
    """
    text, earlier = question_of(query)
    profile_name, profile = find_profile(profile_name, settings)
    question = Question(
        text=check_text(text, settings.ingest, "the question"),
        earlier=earlier,
        profile_name=profile_name,
        profile=profile,
        strategies=build_strategies(profile.strategies, settings),
        escalation=build_strategies(profile.escalation, settings),
        limit=check_limit(limit),
        by_session=group is not None and choose("group", group, ("session",)) == "session",
        strict=check_flag("strict", strict),
        read=check_read(settings, read) if profile.rank_by == "score" else "",
    )
    if "dense" not in profile.strategies:
        return question
    usable, notice = meaning(strict)
    return dataclasses.replace(question, notice=notice) if usable else question.by_words(notice, settings)


def check_read(settings: Settings, read: Read) -> str:
    """Return how the first hits are read together, if they are: as the caller says, else as the settings do.

    A memory that is to load no model for its vectors loads none to read either, unless a call asks for it.

    Raises:
        InputError: it is none of the values.
    """
    if read is None:
        way = settings.stages.read
        return way if way != "off" and settings.embedding.embedder != "none" else ""
    return "" if read is False else choose("read", read, ("once", "wide"))


def make_request(
    desk: IngestContext, query: QuestionInput, view: View, budget: int, counter: TokenCounter | None, *, strict: bool
) -> tuple[ContextRequest, tuple[str, ...]]:
    """Gather what a context is made of besides the answer: rules, and what the host shows already."""
    found, said = load_rules(desk, view), visible_messages(query)
    request = ContextRequest(
        budget=budget,
        counter=counter or desk.counter,
        settings=desk.settings.assembly,
        hard=found.hard,
        soft=found.soft,
        said=said,
        hidden_words=frozenset(said) if view.session is None else frozenset(),
        strict=check_flag("strict", strict),
        zone=view.zone or UTC,
    )
    return request, found.warnings


# ------------------------------------------------------------------------------------------------ single values


def check_user(user: object) -> str:
    """Return the user, who is never missing (C1)."""
    if user is None:
        raise InputError("the user is missing; a memory always belongs to one, so pass user=…")
    return check_name("user", user) or ""


def zone_of(settings: Settings) -> tzinfo:
    """Return the time zone of the settings, UTC where they name none."""
    return find_zone(settings, None) or UTC


def find_zone(settings: Settings, zone: str | None) -> tzinfo | None:
    """Return the time zone that a caller names, else the one of the settings; None when nobody names one.

    Raises:
        InputError: no such zone is known here.
    """
    what, name = ("store.zone", settings.store.zone) if zone is None else ("zone", zone)
    if zone is None and not name:
        return None
    if name == "UTC":  # known where no others are
        return UTC
    if not isinstance(name, str):
        raise InputError(f"{what} = {quote_value(name)} is not the name of a time zone; give one as Asia/Tokyo")
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:  # also a folder of zones, and a path
        known = available_timezones()
        near = difflib.get_close_matches(name.title(), known, n=1) or ["Asia/Tokyo"]
        remedy = f"name one as {near[0]}" if known else "this machine knows none, so install the package tzdata"
        raise InputError(f"{what} = {quote_value(name)} is not a time zone; {remedy}") from error


def check_limit(limit: int | None) -> int | None:
    """Return how many are wanted; None for the default."""
    if limit is not None and (not isinstance(limit, int) or isinstance(limit, bool) or not 1 <= limit <= _MOST_ASKED):
        raise InputError(
            f"limit = {quote_value(limit)} must be a whole number of at least 1; leave it out for the default"
        )
    return limit


# ------------------------------------------------------------------------------------------------- budgets


def choose_budget(settings: AssemblySettings, budget: int | None = None, window: int | None = None) -> int:
    """Return τ: the budget given, else a share of the host's window under the ceiling, else the settings' budget.

    Raises:
        InputError: a value is not a whole number.
        BudgetError: it leaves no room for a single token.
    """
    if budget is not None:
        return check_budget(budget)
    if window is None:
        return settings.budget
    whole = check_whole("window", window)
    return check_budget(min(share_of(whole, settings.window_fraction), settings.ceiling))
