"""An open memory: what every verb works with, and the checks of what a caller gives."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from holdfast.assembly.plan import ContextRequest
from holdfast.documents import core as documents
from holdfast.embedding import Embedding
from holdfast.errors import InputError, NotFoundError, shown
from holdfast.ingest import Indexing, Redact
from holdfast.inputs.checks import check_flag, check_name, check_text, check_time
from holdfast.inputs.messages import asked_in, said_in, shown_among
from holdfast.inputs.redaction import redact_json, redact_text
from holdfast.language import analyse
from holdfast.language.tokens import RATIOS, Estimator, TokenCounter
from holdfast.models.embedder import Embedder
from holdfast.models.summariser import Summariser
from holdfast.query import Engine, Question
from holdfast.retrieval.strategy import build_strategies, find_profile, without_dense
from holdfast.settings import Settings
from holdfast.store.contract import Store, look
from holdfast.store.filters import parse_filter
from holdfast.types import Unit, View

Filters = Mapping[str, Any]
Moment = datetime | str
Clock = Callable[[], datetime]
# More than a store can hold; a larger number is a slip, and SQLite has no room for it.
MOST_ASKED = 2**40
# What Linux, macOS and Windows take.
MAX_FILE_NAME, MAX_PATH = 255, 4_096
# A tail is a quarter of a budget of at most 32,000 tokens, and a turn costs several.
_MOST_TURNS = 1024


class Opened:
    """The store, the settings, the clock and the embedder of one memory. Verbs are added by those who inherit."""

    def __init__(
        self,
        store: Store,
        settings: Settings,
        now: Clock,
        seconds: Callable[[], float],
        embedder: Embedder | None = None,
        counter: TokenCounter | None = None,
        redactor: Redact | None = None,
        summariser: Summariser | None = None,
    ) -> None:
        self._store = store
        self._settings = settings
        self._now = now
        self._analyse = partial(analyse, settings=settings.analysis)
        self._vectors = Embedding(store, settings.embedding, settings.gate, embedder)
        self._counter = counter or Estimator(RATIOS[settings.tokens.ratios])
        self._redact = redactor or (redact_text if settings.ingest.redact else None)
        self._summariser = summariser
        self._engine = Engine(store, settings, seconds, self._vectors.embedder)

    def close(self) -> None:
        """Release the store."""
        self._vectors.close()
        self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def settings(self) -> Settings:
        """Return the settings in force."""
        return self._settings

    @property
    def store(self) -> Store:
        """Return the store, for tools that check or inspect it."""
        return self._store

    # ----------------------------------------------------------------------------------------- assembling

    def _desk(self, *, writing: bool = False) -> documents.Desk:
        indexing = self._vectors.indexing() if writing else Indexing(self._vectors.embedder(), self._settings.gate)
        return documents.Desk(
            self._store, self._settings, self._analyse, indexing, self._counter, self._now(), self._redact
        )

    def _context_request(
        self,
        query: str | Sequence[Mapping[str, Any]],
        view: View,
        budget: int,
        counter: TokenCounter | None,
        *,
        strict: bool,
    ) -> tuple[ContextRequest, tuple[str, ...]]:
        """Gather what a context is made of besides the answer: rules, the session's turns, what is shown already."""
        found = documents.rules(self._desk(), view)
        turns = self._session_turns(view)
        said = said_in(query)
        hidden = shown_among(turns, said)
        request = ContextRequest(
            budget=budget,
            counter=counter or self._counter,
            settings=self._settings.assembly,
            hard=found.hard,
            soft=found.soft,
            session_turns=[turn for turn in turns if turn.id not in hidden],
            hidden=hidden,
            hidden_words=frozenset(said) if view.session is None else frozenset(),
            strict=check_flag("strict", strict),
        )
        return request, found.warnings

    def _session_turns(self, view: View) -> list[Unit]:
        """Return the last turns of the active session, oldest first; more than any tail can hold."""
        if view.session is None:
            return []
        whole = dataclasses.replace(view, only_session=True, filters=None)
        found = look(self._store, whole, lambda reading: reading.scan(order="newest", limit=_MOST_TURNS))
        return [unit for unit in found if unit.kind == "turn"][::-1]

    # ------------------------------------------------------------------------------------------- checking

    def _clean(self, value: Any) -> Any:  # noqa: ANN401 - a text, or JSON with texts in it
        """Return a text, or JSON, without what must not be kept."""
        return value if self._redact is None else redact_json(value, self._redact)

    def _tenant(self, tenant: str | None) -> str:
        return check_name("tenant", tenant or self._settings.store.tenant) or ""

    def _view(
        self, *, user: str, session: str | None = None, agent: str | None = None, tenant: str | None = None,
        filters: Filters | None = None, only_session: bool = False, current_only: bool = True,
        reference_time: Moment | None = None, as_of: Moment | None = None,
    ) -> View:  # fmt: skip
        now, then = self._now(), check_time("as_of", as_of)
        if check_flag("only_session", only_session) and session is None:
            raise InputError("only_session needs a session; name one")
        return View(
            tenant=self._tenant(tenant),
            user=checked_user(user),
            session=check_name("session", session, optional=True),
            agent=check_name("agent", agent, optional=True),
            now=now,
            reference_time=check_time("reference_time", reference_time) or then or now,
            as_of=then,
            only_session=only_session,
            current_only=check_flag("current_only", current_only),
            hide_covered=self._settings.compaction.covered == "hide",
            filters=parse_filter(filters),
        )

    def _question(self, query: str | Sequence[Mapping[str, Any]], profile_name: str, limit: int | None) -> Question:
        text, previous = asked_in(query)
        profile = find_profile(profile_name, self._settings)
        if not self._vectors.wanted:
            profile = without_dense(profile)
        return Question(
            text=check_text(text, self._settings.ingest, "the question"),
            previous=previous,
            profile_name=profile_name,
            profile=profile,
            strategies=build_strategies(profile.strategies, self._settings),
            escalation=build_strategies(profile.escalation, self._settings),
            limit=checked_limit(limit),
        )

    def _found(self, view: View, unit_id: str) -> Unit:
        name = check_name("id", unit_id) or ""
        unit = look(self._store, view, lambda reading: reading.units([name])).get(name)
        if unit is None:
            raise NotFoundError(f"there is no unit {shown(unit_id)} for user {shown(view.user)}; check id and owner")
        return unit


def checked_user(user: object) -> str:
    """Return the user, who is never missing (C1)."""
    if user is None:
        raise InputError("the user is missing; a memory always belongs to one, so pass user=…")
    return check_name("user", user) or ""


def checked_limit(limit: int | None) -> int | None:
    """Return how many are wanted; None for the default."""
    if limit is not None and (not isinstance(limit, int) or isinstance(limit, bool) or not 1 <= limit <= MOST_ASKED):
        raise InputError(
            f"limit = {shown(limit)} is not a whole number from 1 to {MOST_ASKED:,}; leave it out for the default"
        )
    return limit


def checked_path(what: str, path: object) -> Path:
    """Return a file's or folder's path that a file system can have."""
    if not isinstance(path, str | Path):
        raise InputError(f"{what} = {shown(path)} is not a path; give a str or a Path")
    name = str(path)
    try:
        longest = max(len(os.fsencode(part)) for part in (Path(name).parts or ("",)))
    except UnicodeEncodeError as error:
        raise InputError(f"{what} = {shown(name)} holds a lone surrogate; decode the source as UTF-8") from error
    if not name.strip() or "\x00" in name:
        raise InputError(f"{what} = {shown(name)} cannot be a path; name a file or a folder")
    if longest > MAX_FILE_NAME or len(name) > MAX_PATH:
        raise InputError(
            f"{what} = {shown(name)} is too long; a name has at most {MAX_FILE_NAME} bytes, a path {MAX_PATH:,}"
        )
    return Path(name)
