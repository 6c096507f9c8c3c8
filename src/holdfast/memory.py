"""The facade: wires the stages together and reads the clock. Every verb checks its arguments first."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Self

from holdfast import ingest, recall
from holdfast import why as absence
from holdfast.assembly.context import Context
from holdfast.assembly.plan import choose_budget
from holdfast.derivation import derivation
from holdfast.documents import core as documents
from holdfast.documents import knowledge as library
from holdfast.errors import InputError, shown
from holdfast.inputs.checks import (
    check_flag,
    check_given_text,
    check_lifetime,
    check_metadata,
    check_name,
    check_names,
    check_note,
    check_targets,
    check_text,
    check_time,
    choose,
)
from holdfast.inputs.messages import sessions_in
from holdfast.language.rules import read_rules
from holdfast.language.symbols import aliases_of
from holdfast.language.tokens import TokenCounter
from holdfast.models.embedder import Embedder
from holdfast.models.summariser import Summariser
from holdfast.opened import Filters, Moment, checked_limit, checked_path, checked_user
from holdfast.settings import Settings
from holdfast.store.contract import Access, Order, Store, look
from holdfast.store.sqlite import SqliteStore
from holdfast.types import (
    AUTHORS,
    SCOPES,
    Document,
    SearchResult,
    SourceLimits,
    Stats,
    Unit,
    Why,
    Widened,
    Written,
)
from holdfast.upkeep import Upkeep

Units = list[Unit]  # inside the class, `list` is a verb
_KEEP: Any = object()  # "leave this as it is", which None cannot say


class Memory(Upkeep):
    """A long-term memory. Open it with `Memory.open`; share it between threads, not across a fork."""

    def __init__(
        self,
        store: Store,
        settings: Settings,
        now: Callable[[], datetime],
        embedder: Embedder | None = None,
        counter: TokenCounter | None = None,
        *,
        redactor: Callable[[str], str] | None = None,
        summariser: Summariser | None = None,
    ) -> None:
        super().__init__(store, settings, now, time.perf_counter, embedder, counter, redactor, summariser)

    @classmethod
    def open(
        cls,
        path: str | Path | None = None,
        *,
        settings: Settings | None = None,
        now: Callable[[], datetime] | None = None,
        embedder: Embedder | None = None,
        counter: TokenCounter | None = None,
        redactor: Callable[[str], str] | None = None,
        summariser: Summariser | None = None,
    ) -> Self:
        """Open or create the memory at `path` (`./holdfast.db` by default; `:memory:` keeps nothing).

        `settings` defaults to `Settings.load()`; `now` replaces the clock, for tests and replays; `embedder` is one
        of your own, in the place of the one that the settings name; `counter` counts tokens exactly, in the place
        of the estimate; `redactor` takes out what must not be kept, before anything is; `summariser` writes
        summaries, which have to pass the preservation gate.

        Raises:
            StoreError: the file cannot be used; the message says why and what to do.
        """
        settings = Settings.load() if settings is None else settings
        location = checked_path("path", settings.store.path if path is None else path)
        # Refused before a file is made, not at the first question or word.
        read_rules(settings.symbolic.rules)
        aliases_of(settings.analysis.aliases)
        store = SqliteStore.open(location, settings.store, derivation(settings))
        clock = now or (lambda: datetime.now(UTC))
        return cls(store, settings, clock, embedder, counter, redactor=redactor, summariser=summariser)

    # -------------------------------------------------------------------------------------------- writing

    def remember(
        self,
        content: str | Unit | Mapping[str, Any] | Sequence[str | Unit | Mapping[str, Any]],
        *,
        user: str,
        session: str | None = None,
        agent: str | None = None,
        tenant: str | None = None,
        scope: str | None = None,
        at: Moment | None = None,
        id: str | None = None,
        author: str | None = None,
        speaker: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        ttl: float | timedelta | None = None,
        pinned: bool = False,
        valid_from: Moment | None = None,
        valid_to: Moment | None = None,
        supersedes: str | Sequence[str] | None = None,
        links: str | Sequence[str] | None = None,
    ) -> list[Written]:
        """Keep `content` word for word; return what was done with each message.

        A text, a message (`{"role": …, "content": …}`), a unit, or a list of these. The same message is kept
        once: it is known by its id or time, the messages of a list by their order, and one alone when it repeats the
        last turn of its session soon (`ingest.retry_seconds`). All of it is written, or nothing: when this returns,
        it survives a crash.

        Raises:
            InputError: something given cannot be used; nothing was written.
        """
        now = self._now()
        session = check_name("session", session, optional=True)
        lifetime = check_lifetime(ttl)
        fields: dict[str, Any] = {
            "author": None if author is None else choose("author", author, AUTHORS),
            "speaker": check_name("speaker", speaker, optional=True),
            "metadata": None if metadata is None else check_metadata(metadata, self._settings.ingest),
            "expires_at": None if lifetime is None else now + lifetime,
            "pinned": check_flag("pinned", pinned) or None,
            "valid_from": check_time("valid_from", valid_from),
            "valid_to": check_time("valid_to", valid_to),
            "supersedes": check_targets("supersedes", supersedes) or None,
            "links": check_targets("links", links) or None,
        }
        given_id = check_name("id", id, optional=True)
        if given_id is not None and not isinstance(content, str | Unit | Mapping):
            raise InputError(f"id = {shown(given_id)} cannot name every message of a list; give each its own id")
        owned = ingest.Owned(
            tenant=self._tenant(tenant),
            user=checked_user(user),
            session=session,
            agent=check_name("agent", agent, optional=True),
            scope=None if scope is None else choose("scope", scope, SCOPES),
            now=now,
            at=check_time("at", at),
            id=given_id,
            fields={name: value for name, value in fields.items() if value is not None},
            redact=self._redact,
        )
        written = ingest.remember(
            content, owned, store=self._store, settings=self._settings, analyse=self._analyse,
            indexing=self._vectors.indexing(),
        )  # fmt: skip
        for name in {session, *sessions_in(content)}:
            self._compact_when_due(owned.tenant, owned.user, name, agent)
        return written

    def update(
        self,
        id: str,
        *,
        user: str,
        agent: str | None = None,
        tenant: str | None = None,
        text: str = _KEEP,
        topic: str = _KEEP,
        metadata: Mapping[str, Any] = _KEEP,
        pinned: bool = _KEEP,
        ttl: float | timedelta | None = _KEEP,
        valid_from: Moment | None = _KEEP,
        valid_to: Moment | None = _KEEP,
        links: str | Sequence[str] = _KEEP,
    ) -> Unit:
        """Make a new version of one unit and return it; `history` keeps the old ones.

        `ttl=None` lets the unit live for ever again; `metadata` replaces the whole object.

        Raises:
            NotFoundError: the owner has no such unit.
        """
        now = self._now()
        checks: dict[str, tuple[object, Callable[[Any], object]]] = {
            "text": (text, lambda value: self._clean(check_text(value, self._settings.ingest))),
            "topic": (topic, lambda value: self._clean(check_note("topic", check_given_text("topic", value)))),
            "metadata": (metadata, lambda value: self._clean(check_metadata(value, self._settings.ingest))),
            "pinned": (pinned, lambda value: check_flag("pinned", value)),
            "expires_at": (ttl, lambda value: now + life if (life := check_lifetime(value)) else None),
            "valid_from": (valid_from, lambda value: check_time("valid_from", value)),
            "valid_to": (valid_to, lambda value: check_time("valid_to", value)),
            "links": (links, lambda value: check_targets("links", value)),
        }
        changes = {name: check(value) for name, (value, check) in checks.items() if value is not _KEEP}
        if not changes:
            raise InputError(f"nothing to change; give update one of {', '.join(checks)}")
        view = self._view(user=user, agent=agent, tenant=tenant)
        indexing = self._vectors.indexing()
        unit = self._store.revise(view, check_name("id", id) or "", ingest.revise(changes, now, self._analyse))
        ingest.embed([unit], self._store, indexing)
        return unit

    def ingest(
        self,
        source: str | Path,
        *,
        user: str,
        tenant: str | None = None,
        name: str | None = None,
        scope: str = "user",
        core: bool = False,
    ) -> list[Written]:
        """Take in a document: a file by its path, or a text under a `name`; again, when it has changed.

        Markdown, plain text, HTML, PDF (an extra), JSON Lines, and units in JSON or YAML, by the name's suffix; any
        other name is plain text. A core document is Markdown: its list items and front matter come along in
        every context, its quotes and commands as far as they fit, and an edit is seen at the next context.

        Raises:
            InputError: it cannot be read as a document; nothing was written.
            BudgetError: with it, the hard rules would pass their share of `assembly.budget`.
        """
        path = documents.check_path(checked_path("source", source)) if isinstance(source, Path) else None
        if path is not None and documents.is_folder(path):
            raise InputError(f"{shown(str(path))} is a folder; take it in with ingest_folder")
        owner = None if choose("scope", scope, ("user", "global")) == "global" else checked_user(user)
        view = self._view(user=user, tenant=tenant)
        desk = self._desk(writing=True)
        most = self._settings.authored.max_bytes if check_flag("core", core) else SourceLimits().max_bytes
        body = check_given_text("source", source).encode() if path is None else documents.read_file(path, most)
        document = Document(
            tenant=view.tenant,
            user=owner,
            name=documents.document_name(desk, view, owner, name, path),
            body=body,
            path=str(path.resolve()) if path is not None else "",
            core=core,
        )
        if not document.core:
            return library.take_in(desk, document)
        return documents.ingest(desk, replace(document, body=desk.clean(body)), view)

    def ingest_folder(
        self,
        folder: str | Path,
        *,
        user: str,
        tenant: str | None = None,
        scope: str = "user",
        include: Sequence[str] = library.INCLUDED,
        exclude: Sequence[str] = library.EXCLUDED,
        progress: Callable[[int, int], None] = lambda _done, _of: None,
    ) -> library.FolderReport:
        """Take in the documents of a folder: what is new or changed; what is gone ends. Patterns are as in a shell.

        A file that cannot be read is reported, and the others go on; what is skipped is reported too. Links that lead
        out of the folder are not followed.

        Raises:
            InputError: it is not a folder.
        """
        owner = choose("scope", scope, ("user", "global"))
        view = self._view(user=user, tenant=tenant)
        wanted = library.Folder(
            checked_path("folder", folder), view.tenant, None if owner == "global" else view.user,
            check_names("include", include) or (), check_names("exclude", exclude) or (), progress,
        )  # fmt: skip
        return library.take_in_folder(self._desk(writing=True), wanted, view)

    def widen(self, id: str, *, user: str, agent: str | None = None, tenant: str | None = None) -> Widened:
        """Return the section of its document that a unit stands in.

        Raises:
            NotFoundError: the owner has no such unit, or it is of no document.
        """
        view = self._view(user=user, agent=agent, tenant=tenant)
        return library.widen(self._desk(), view, self._found(view, id))

    def reembed(self, *, progress: Callable[[int], None] = lambda _: None) -> int:
        """Give every unit a vector of the embedder in force, in its space; return how many still wait.

        The other strategies keep serving meanwhile. Interrupted, it goes on where it stopped when called again.

        Raises:
            EmbedderError: the settings name no embedder, or it cannot be used.
        """
        return self._vectors.replace_all(progress)

    # -------------------------------------------------------------------------------------------- reading

    def search(
        self,
        query: str | Sequence[Mapping[str, Any]],
        *,
        user: str,
        session: str | None = None,
        agent: str | None = None,
        tenant: str | None = None,
        profile: str = "hybrid",
        limit: int | None = None,
        filters: Filters | None = None,
        only_session: bool = False,
        current_only: bool = True,
        reference_time: Moment | None = None,
        as_of: Moment | None = None,
        explain: bool = False,
    ) -> SearchResult:
        """Return ranked hits; with `explain`, each carries the tree its score is composed of.

        `query` is a question, or a message list whose last user message is the question. `as_of` answers from what
        had been recorded by then and was not yet superseded.
        """
        view = self._view(
            user=user, session=session, agent=agent, tenant=tenant, filters=filters, only_session=only_session,
            current_only=current_only, reference_time=reference_time, as_of=as_of,
        )  # fmt: skip
        return recall.search(self._engine, self._question(query, profile, limit), view, explain=explain)

    def assemble(
        self,
        query: str | Sequence[Mapping[str, Any]],
        *,
        user: str,
        session: str | None = None,
        agent: str | None = None,
        tenant: str | None = None,
        profile: str = "hybrid",
        budget: int | None = None,
        window: int | None = None,
        filters: Filters | None = None,
        only_session: bool = False,
        current_only: bool = True,
        reference_time: Moment | None = None,
        as_of: Moment | None = None,
        strict: bool = False,
        track_access: bool = True,
        counter: TokenCounter | None = None,
    ) -> Context:
        """Return a context for a prompt: rules, the session's last turns, and what the question brings up.

        Its text never counts more than `budget` tokens; without one, a share of `window`, else `assembly.budget`.
        `query` is a question, or the messages that the host shows already: the last user message is the question,
        and none of them is repeated. `strict` refuses a context that lacks one of the last turns.

        Raises:
            BudgetError: the hard rules alone pass the budget.
            InputError: an argument or the counter cannot be used.
        """
        view = self._view(
            user=user, session=session, agent=agent, tenant=tenant, filters=filters, only_session=only_session,
            current_only=current_only, reference_time=reference_time, as_of=as_of,
        )  # fmt: skip
        tokens = choose_budget(self._settings.assembly, budget, window)
        question = self._question(query, profile, None)
        request, warnings = self._context_request(query, view, tokens, counter, strict=strict)
        context = recall.assemble(self._engine, question, view, request)
        if check_flag("track_access", track_access):
            self._store.mark([Access(view, tuple([item.id for item in context.section("projection").items]))])
        return context.with_warnings(warnings)

    def why(
        self,
        query: str | Sequence[Mapping[str, Any]],
        id: str,
        *,
        user: str,
        session: str | None = None,
        agent: str | None = None,
        tenant: str | None = None,
        profile: str = "hybrid",
        limit: int | None = None,
        filters: Filters | None = None,
        only_session: bool = False,
        current_only: bool = True,
        reference_time: Moment | None = None,
        as_of: Moment | None = None,
        budget: int | None = None,
    ) -> Why:
        """Say why one unit is, or is not, among the hits that `search` gives for the same arguments.

        With a `budget`, say why it is, or is not, in the context that `assemble` makes of them.
        """
        view = self._view(
            user=user, session=session, agent=agent, tenant=tenant, filters=filters, only_session=only_session,
            current_only=current_only, reference_time=reference_time, as_of=as_of,
        )  # fmt: skip
        question, unit = self._question(query, profile, limit), self._found(view, id)
        if budget is None:
            return absence.why(self._engine, question, unit, view)
        tokens = choose_budget(self._settings.assembly, budget)
        request, _ = self._context_request(query, view, tokens, None, strict=False)
        return absence.why_in_context(self._engine, question, unit, view, request)

    def get(self, id: str, *, user: str, agent: str | None = None, tenant: str | None = None) -> Unit:
        """Return one unit.

        Raises:
            NotFoundError: the owner has no such unit.
        """
        view = self._view(user=user, agent=agent, tenant=tenant)
        unit = self._found(view, id)
        counted = look(self._store, view, lambda reading: reading.columns([unit.id], ("access_count",)))
        return unit.evolve(access_count=int(counted["access_count"][0]))

    def list(
        self,
        *,
        user: str,
        session: str | None = None,
        agent: str | None = None,
        tenant: str | None = None,
        limit: int | None = 50,
        filters: Filters | None = None,
        current_only: bool = True,
        order: Order = "newest",
    ) -> Units:
        """Return units by time, newest first; with `session`, those of that session."""
        view = self._view(
            user=user, session=session, agent=agent, tenant=tenant, filters=filters,
            only_session=session is not None, current_only=current_only,
        )  # fmt: skip
        return [
            *look(
                self._store,
                view,
                lambda reading: reading.scan(
                    order=choose("order", order, ("newest", "oldest")), limit=checked_limit(limit)
                ),
            )
        ]

    def history(self, id: str, *, user: str, agent: str | None = None, tenant: str | None = None) -> Units:
        """Return every version of one unit, oldest first.

        Raises:
            NotFoundError: the owner has no such unit.
        """
        view = self._view(user=user, agent=agent, tenant=tenant)
        return look(self._store, view, lambda reading: reading.history(self._found(view, id).id))

    def stats(self, *, user: str, tenant: str | None = None, whole: bool = False) -> Stats:
        """Return how much one user has remembered; with `whole`, also how large the store of all users is."""
        return self._store.stats(self._view(user=user, tenant=tenant), whole=check_flag("whole", whole))
