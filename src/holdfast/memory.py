"""The facade: wires the stages together and reads the clock. Every verb checks its arguments first."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, Literal, Self, Unpack, cast

from holdfast import about as portrait
from holdfast import arguments, ingest, openers, recall
from holdfast import why as absence
from holdfast.arguments import ChangeOptions, OwnerOptions, SessionOptions, UnitOptions, ViewOptions, expand_keywords
from holdfast.documents import core as authored
from holdfast.documents import knowledge
from holdfast.documents.folder import EXCLUDED, INCLUDED, make_folder
from holdfast.ingest import Redact
from holdfast.lifecycle import compact as compaction
from holdfast.lifecycle import supersede as changed
from holdfast.lifecycle.embedding import StoreEmbedder, embed
from holdfast.lifecycle.forget import erase, make_request
from holdfast.messages.checks import check_flag, check_location, check_name, choose
from holdfast.messages.content import MessageObject, QuestionInput, sessions_in
from holdfast.messages.redaction import redact_text
from holdfast.models import can_summarise, open_summariser
from holdfast.models.embedder import Embedder
from holdfast.models.summariser import Summariser
from holdfast.retrieval.question import Engine
from holdfast.settings import Settings
from holdfast.store.contract import ListedKind, Store, Supersession, read_once
from holdfast.store.queries import Order
from holdfast.text import analyse
from holdfast.text.tokens import RATIOS, Estimator, TokenCounter
from holdfast.types import (
    DECISIONS,
    DecisionKind,
    FactTable,
    NameCount,
    SearchResult,
    Stats,
    Surroundings,
    Unit,
    View,
    Why,
    WriteResult,
)
from holdfast.types.contexts import Context
from holdfast.types.known import About
from holdfast.types.outcomes import Compaction, Decision, Erasure, ExportReport, FolderReport, ImportReport, Progress

Units = list[Unit]  # inside the class, `list` is a verb
Compactions = list[Compaction]
Content = str | Unit | Mapping[str, Any] | MessageObject
Clock = Callable[[], datetime]


class Memory:
    """A long-term memory. Open it with `Memory.open`; share it between threads, not across a fork."""

    def __init__(
        self, store: Store, settings: Settings, now: Clock, embedder: Embedder | None = None,
        counter: TokenCounter | None = None, *, redactor: Redact | None = None,
        summariser: Summariser | None = None,
    ) -> None:  # fmt: skip
        self._store = store
        self._settings = settings
        self._now = now
        self._analyse = partial(analyse, settings=settings.analysis)
        count = partial(self.stats, user=settings.store.user, whole=True)
        self._vectors = StoreEmbedder(store, settings.embedding, settings.gate, embedder, count, time.perf_counter)
        self._question = partial(arguments.make_question, settings, meaning=self._vectors.check_ready)
        self._counter = counter or Estimator(RATIOS[settings.tokens.ratios])
        self._redact = redactor or (redact_text if settings.ingest.redact else None)
        self._summariser = summariser
        self._known = portrait.AboutCache()
        self._engine = Engine(store, settings, time.perf_counter, self._vectors.embedder, self._vectors.pause)

    @classmethod
    def open(
        cls, path: str | Path | None = None, *, settings: Settings | None = None, now: Clock | None = None,
        embedder: Embedder | None = None, counter: TokenCounter | None = None, redactor: Redact | None = None,
        summariser: Summariser | None = None, token: str | None = None,
    ) -> Self:  # fmt: skip
        """Open or create the memory at `path` (`./holdfast.db` by default; `:memory:` keeps nothing).

        `path` may be the address of a database, `postgresql://…`, or that of a server, `http://…`, `https://…` or
        `unix:…`, with the `token` that it asks for.
        `settings` defaults to `Settings.load()`; `now` replaces the clock, for tests and replays; `embedder` is one
        of your own, in the place of the one that the settings name; `counter` counts tokens exactly, in the place
        of the estimate; `redactor` takes out what must not be kept, before anything is; `summariser` writes
        summaries, which have to pass the preservation gate.

        Raises:
            StoreError: the file cannot be used; the message says why and what to do.
            BudgetError: hard rules pass their share, and `assembly.lenient_hard` is off.
        """
        if token is not None or openers.is_address(path):
            own = {"settings": settings, "now": now, "embedder": embedder, "counter": counter, "redactor": redactor}
            return cast("Self", openers.open_remote(path, token, {**own, "summariser": summariser}))
        settings = Settings.load() if settings is None else settings
        arguments.find_zone(settings, None)
        store = openers.open_configured(path, settings)
        clock = now or (lambda: datetime.now(UTC))
        authored.check_rules(store, settings, counter)
        return cls(store, settings, clock, embedder, counter, redactor=redactor, summariser=summariser)

    def close(self) -> None:
        """Release the store."""
        self._vectors.close()
        self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __str__(self) -> str:
        return f"Memory at {self._store}"

    @property
    def settings(self) -> Settings:
        """Return the settings in force."""
        return self._settings

    @property
    def store(self) -> Store:
        """Return the store, for tools that check or inspect it."""
        return self._store

    # -------------------------------------------------------------------------------------------- writing

    @expand_keywords
    def remember(self, content: Content | Sequence[Content], **options: Unpack[UnitOptions]) -> list[WriteResult]:
        """Keep `content` word for word; return what was done with each message.

        A text, a message (a dict, or an object with `role` and `content`), a unit, or a list of these. The same
        message is kept once: it is known by its id or time, the messages of a list by their order, and one alone when
        it repeats the last turn of its session soon (`ingest.retry_seconds`). All is written, or nothing, for good.

        Raises:
            InputError: something given cannot be used; nothing was written.
        """
        return self._keep(content, lambda _done, _of: None, options)

    def _keep(self, content: object, progress: Progress, options: UnitOptions) -> list[WriteResult]:
        owner = arguments.owner_options(options)
        owned = arguments.check_unit(self._settings.ingest, self._view(**owner), options, self._redact)
        written = ingest.remember(
            content, owned, store=self._store, settings=self._settings, analyse=self._analyse,
            indexing=self._vectors.indexing(), progress=progress,
        )  # fmt: skip
        due = self._settings.compaction.session_tokens
        for name in {owned.session, *sessions_in(content)} - {None} if due else ():
            seen = dataclasses.replace(self._view(**owner), session=name)
            compaction.compact_when_due(self._store, self._counter, seen, due, self._compactor, self._protected)
        return written

    @expand_keywords
    def update(self, id: str, **options: Unpack[ChangeOptions]) -> Unit:
        """Make a new version of one unit and return it; `history` keeps the old ones.

        `ttl=None` lets the unit live for ever again; `metadata` replaces the whole object.

        Raises:
            NotFoundError: the owner has no such unit.
        """
        view = self._view(**arguments.owner_options(options))
        return self._revise(view, id, arguments.check_changes(self._settings.ingest, view, options, self._redact))

    def ingest(
        self, source: knowledge.Sources, *, user: str, tenant: str | None = None, name: str | None = None,
        scope: str = "user", core: bool = False, progress: Progress = lambda _done, _of: None,
    ) -> list[WriteResult]:  # fmt: skip
        """Ingest a document: files by `Path`, a text or bytes under a `name`; re-run to pick up changes.

        Markdown, plain text, HTML, PDF (an extra), JSON Lines, and units in JSON or YAML, by the name's suffix; any
        other name is plain text. A core document is Markdown: its list items and front matter come along in
        every context, its quotes and commands as far as they fit, and an edit is seen at the next context.

        Raises:
            InputError: it cannot be read as a document; nothing was written.
            BudgetError: with it, the hard rules would pass their share of `assembly.budget`.
        """
        desk, view = dataclasses.replace(self._desk(), progress=progress), self._view(user=user, tenant=tenant)
        return knowledge.ingest_sources(desk, view, source, name, scope=scope, core=core)

    def ingest_folder(
        self, folder: str | Path, *, user: str, tenant: str | None = None, scope: str = "user",
        include: Sequence[str] = INCLUDED, exclude: Sequence[str] = EXCLUDED,
        progress: Progress = lambda _done, _of: None,
    ) -> FolderReport:  # fmt: skip
        """Ingest a folder: add new and changed files, expire deleted ones. Patterns are as in a shell.

        A file that cannot be read is reported, and the others go on; what is skipped is reported too. Links that lead
        out of the folder are not followed.

        Raises:
            InputError: it is not a folder.
        """
        wanted = make_folder(view := self._view(user=user, tenant=tenant), folder, scope, include, exclude, progress)
        return knowledge.ingest_folder(self._desk(), wanted, view)

    @expand_keywords
    def widen(self, id: str, **owner: Unpack[OwnerOptions]) -> Surroundings:
        """Return the section of the document that a unit is in.

        Raises:
            NotFoundError: the owner has no such unit, or it is of no document.
        """
        view = self._view(**owner)
        return knowledge.load_surroundings(self._desk(), view, self._unit(view, id))

    def reembed(self, *, progress: Callable[[int], None] = lambda _: None) -> int:
        """Embed every unit with the embedder in force; return how many are still pending.

        The other strategies keep serving meanwhile. Interrupted, it goes on where it stopped when called again.

        Raises:
            EmbedderError: the settings name no embedder, or it cannot be used.
        """
        return self._vectors.reembed(progress)

    # -------------------------------------------------------------------------------------------- reading

    def load(self) -> None:
        """Load the embedder now, not at the first question; raise `EmbedderError` when that cannot be done."""
        self._vectors.load()

    @expand_keywords
    def search(
        self, query: QuestionInput, *, profile: str = "hybrid", limit: int | None = None,
        group: Literal["session"] | None = None, explain: bool = False, strict: bool = False,
        read: arguments.Read = None, **view: Unpack[ViewOptions],
    ) -> SearchResult:  # fmt: skip
        """Return ranked hits; with `explain`, each carries the tree its score is composed of.

        `query` is a question, or a message list whose last user message is the question. `as_of` answers from what
        had been recorded by then and not yet superseded. Days are those of `zone`. By `group`, a session comes once.
        `read=False` leaves hits as found. `degraded` says that a model fails; `strict` raises its error instead.
        """
        question, seen = self._question(query, profile, limit, group, strict=strict, read=read), self._view(**view)
        found = recall.search(self._engine, question, seen, explain=explain)
        return found if found else found.with_notice(absence.suggest_users(self._store, seen))

    @expand_keywords
    def assemble(
        self, query: QuestionInput, *, profile: str = "hybrid", budget: int | None = None, window: int | None = None,
        strict: bool = False, track_access: bool = True, counter: TokenCounter | None = None,
        read: arguments.Read = None, **view: Unpack[ViewOptions],
    ) -> Context:  # fmt: skip
        """Return a context for a prompt: rules, the session's last turns, and what the question recalls.

        Its text never counts more than `budget` tokens; without one, a share of `window`, else `assembly.budget`.
        `query` is a question, or the messages that the host shows already: the last user message is the question,
        and none of them is repeated. `strict` refuses missing turns and a failing embedder; else `degraded` says so.

        Raises:
            BudgetError: the hard rules alone pass the budget.
            EmbedderError: `strict`, and the embedder cannot be used.
            InputError: an argument or the counter cannot be used.
        """
        seen = self._view(**view)
        tokens = arguments.choose_budget(self._settings.assembly, budget, window)
        question = self._question(query, profile, None, strict=strict, read=read)
        request, warnings = arguments.make_request(self._desk(), query, seen, tokens, counter, strict=strict)
        context = recall.assemble(self._engine, question, seen, request)
        if check_flag("track_access", track_access):
            warnings = (*warnings, *recall.count_access(self._store, seen, context.found))
        others = "" if context.items else absence.suggest_users(self._store, seen)
        return context.with_warnings((*warnings, others) if others else warnings)

    @expand_keywords
    def why(
        self, query: QuestionInput, id: str, *, profile: str = "hybrid", limit: int | None = None,
        budget: int | None = None, read: arguments.Read = None, **view: Unpack[ViewOptions],
    ) -> Why:  # fmt: skip
        """Say why one unit is, or is not, among the hits that `search` gives for the same arguments.

        With a `budget`, say why it is, or is not, in the context that `assemble` makes of them.
        """
        seen = self._view(**view)
        question, unit = self._question(query, profile, limit, read=read), self._unit(seen, id)
        if budget is None:
            return absence.why(self._engine, question, unit, seen)
        tokens = arguments.choose_budget(self._settings.assembly, budget)
        request, _ = arguments.make_request(self._desk(), query, seen, tokens, None, strict=False)
        return absence.why_in_context(self._engine, question, unit, seen, request)

    @expand_keywords
    def get(self, id: str, **owner: Unpack[OwnerOptions]) -> Unit:
        """Return one unit.

        Raises:
            NotFoundError: the owner has no such unit.
        """
        view = self._view(**owner)
        return recall.read_access(self._store, view, self._unit(view, id))

    @expand_keywords
    def list(
        self, *, limit: int | None = 50, filters: arguments.Filters | None = None, current_only: bool = True,
        order: Order = "newest", **owner: Unpack[arguments.ClockOptions],
    ) -> Units:  # fmt: skip
        """Return units by time, newest first; with `session`, those of that session."""
        only_session = owner.get("session") is not None
        view = self._view(**owner, filters=filters, only_session=only_session, current_only=current_only)
        order, limit = choose("order", order, ("newest", "oldest")), arguments.check_limit(limit)
        return read_once(self._store, view, lambda reading: [*reading.scan(order=order, limit=limit)])

    @expand_keywords
    def facts(
        self, *, subject: str | None = None, relation: str | None = None, **view: Unpack[ViewOptions]
    ) -> FactTable:
        """Return the statements that rules recognised, with their dates, and what replaced what.

        The user's own, shared ones, and those of documents; `current_only=False` adds what was replaced or ended.
        One is marked as earlier where a later turn states something else of the same subject and relation.
        """
        return changed.list_facts(self._store, self._view(**view), self._settings, subject, relation)

    @expand_keywords
    def about(
        self, *, topic: str | None = None, limit: int | None = None,
        progress: Progress = lambda _done, _of: None, **owner: Unpack[OwnerOptions],
    ) -> About:  # fmt: skip
        """Return what is known about a user: turns that answer fifty questions, with dates and what they replaced.

        A line is shown when it is likely right. The first call searches fifty times, which takes seconds; the next
        ones take none until something changes. `topic` asks the questions of one; with `limit`, the surest lines.
        """
        most = arguments.check_limit(limit)
        return portrait.about(self._engine, self._question, self._known, self._view(**owner), topic, most, progress)

    @expand_keywords
    def history(self, id: str, **owner: Unpack[OwnerOptions]) -> Units:
        """Return every version of one unit, oldest first.

        Raises:
            NotFoundError: the owner has no such unit.
        """
        view = self._view(**owner)
        return read_once(self._store, view, lambda reading: reading.history(self._unit(view, id).id))

    def stats(self, *, user: str, tenant: str | None = None, whole: bool = False) -> Stats:
        """Return how much one user has remembered; with `whole`, also how large the store of all users is."""
        found = self._store.stats(self._view(user=user, tenant=tenant), whole=check_flag("whole", whole))
        able = self._summariser is not None or can_summarise(self._settings.summariser)
        return self._vectors.complete(found, abstractive_ready=able)

    def users(
        self, *, user: str | None = None, tenant: str | None = None, limit: int | None = 50
    ) -> tuple[NameCount, ...]:
        """Return who has units here, newest first; with `user`, that one alone."""
        view = self._view(user=self._whose(user), tenant=tenant)
        if user is None:
            return self._listed("user", limit, dataclasses.replace(view, user=""))
        return tuple(one for one in self._listed("user", limit, view) if one.name == user)

    def sessions(self, *, user: str, tenant: str | None = None, limit: int | None = 50) -> tuple[NameCount, ...]:
        """Return the sessions of a user, newest first, each with its title or first words."""
        return self._listed("session", limit, self._view(user=user, tenant=tenant))

    def documents(self, *, user: str, tenant: str | None = None, limit: int | None = 50) -> tuple[NameCount, ...]:
        """Return the documents that a user sees, newest first."""
        return self._listed("document", limit, self._view(user=user, tenant=tenant))

    def agents(self, *, user: str, tenant: str | None = None, limit: int | None = 50) -> tuple[NameCount, ...]:
        """Return the agents that have units of their own in a user's memory, newest first."""
        return self._listed("agent", limit, self._view(user=user, tenant=tenant))

    # ------------------------------------------------------------------------------------------- upkeep

    @expand_keywords
    def compact(
        self, *, progress: Progress = lambda _done, _of: None, **owner: Unpack[SessionOptions]
    ) -> Compactions:
        """Summarise old turns of one session, or of all; originals are kept, and `expand` gives them back.

        The turns that a context would show as its tail are left alone. What is covered already is not done again.

        Raises:
            EmbedderError: there is no embedder, or it cannot be used.
        """
        view = self._view(**owner)
        return compaction.compact_sessions(self._compactor(), view, self._protected, progress)

    @expand_keywords
    def expand(self, id: str, **owner: Unpack[OwnerOptions]) -> Units:
        """Return the turns that a summary covers, in their order.

        Raises:
            NotFoundError: the owner has no such summary.
            InputError: it is not a summary.
        """
        return compaction.expand(self._store, self._view(**owner), check_name("id", id) or "")

    @expand_keywords
    def supersede(self, id: str, *, by: str, **owner: Unpack[OwnerOptions]) -> Unit:
        """Replace the unit `id` with `by`; the old one stays in history. Return the one that no longer counts.

        Raises:
            NotFoundError: the owner does not have one of them.
            InputError: it would supersede itself in a circle.
        """
        view = self._view(**owner)
        self._store.apply([Supersession(view, check_name("id", id) or "", check_name("by", by) or "", self._now())])
        return self._unit(view, id)

    @expand_keywords
    def reinstate(self, id: str, **owner: Unpack[OwnerOptions]) -> Unit:
        """Restore a superseded unit, for good where that was decided automatically.

        Raises:
            NotFoundError: the owner has no such unit.
        """
        view = self._view(**owner)
        changed.reinstate(self._store, view, self._unit(view, id), self._settings, partial(self._revise, view, id))
        return self._unit(view, id)

    @expand_keywords
    def decisions(self, id: str, **owner: Unpack[OwnerOptions]) -> tuple[Decision, ...]:
        """Return the automatic decisions about a unit, why, and which were overruled."""
        return changed.list_decisions(self._store, view := self._view(**owner), self._unit(view, id), self._settings)

    @expand_keywords
    def overrule(
        self, id: str, *, decision: DecisionKind, undo: bool = False, **owner: Unpack[OwnerOptions]
    ) -> tuple[Decision, ...]:  # fmt: skip
        """Overrule an automatic decision about a unit, now and later; `undo` takes that back."""
        view, kind = self._view(**owner), choose("decision", decision, DECISIONS)
        unit, revise = self._unit(view, id), partial(self._revise, view, id)
        changed.overrule(self._store, view, unit, self._settings, kind, revise, undo=check_flag("undo", undo))
        return self.decisions(id, **owner)

    @expand_keywords
    def forget(
        self, *, ids: str | Sequence[str] | None = None, filters: arguments.Filters | None = None,
        document: str | None = None, all: bool = False, dry_run: bool = False, compact: bool = False,
        progress: Callable[[str], None] = lambda _step: None, **owner: Unpack[arguments.ClockOptions],
    ) -> Erasure:  # fmt: skip
        """Erase units for good: their words, versions, vectors, and every summary made of them, in every file.

        Summaries are made again from what is left. `dry_run` changes nothing; `compact` makes the file smaller.

        Raises:
            InputError: nothing is named, or the filter matches everything and `all` is not given.
            NotFoundError: the owner does not have what is named; nothing is erased.
        """
        view = self._view(**owner, filters=filters)
        self._known.clear()
        erasure = erase(
            self._store, view, make_request(view, ids, document, all), progress,
            dry_run=check_flag("dry_run", dry_run), compact=check_flag("compact", compact),
            rebuild=lambda seen, gone: compaction.rebuild(self._compactor(), seen, gone, self._protected),
        )  # fmt: skip
        if erasure.documents:
            authored.clear_parse_cache()
        return erasure

    def backup(self, path: str | Path) -> int:
        """Copy the store to a new file while it is in use, and read the copy back; return how many units it holds.

        The engine remembers where its copies lie, so that `forget` reaches them.

        Raises:
            InputError: the file exists, or its folder does not.
        """
        return self._store.backup(check_location("path", path), self._now())

    def export(
        self, target: str | Path | BinaryIO, *, user: str | None = None, session: str | None = None,
        tenant: str | None = None, all: bool = False, format: str = "jsonl", vectors: bool = False,
    ) -> ExportReport:  # fmt: skip
        """Export a user, a session or (`all`) a tenant to a new file, or to one open for bytes.

        `jsonl` is complete: `import_` makes the same memory of it, bit for bit; without `vectors` by embedding again.
        `markdown` is for reading. Shared units are in an export of all.

        Raises:
            InputError: nobody is named, or the file exists.
            NotFoundError: there is no such user or session.
        """
        from holdfast.transfer import exports  # noqa: PLC0415 - few programs need it

        view = self._view(user=self._whose(user), session=session, tenant=tenant)
        return exports.export(self._store, exports.make_request(view, user, all, format, vectors), target)

    def import_(
        self, source: str | Path | bytes, *, user: str | None = None, session: str | None = None,
        tenant: str | None = None, zone: str | None = None, name: str | None = None, format: str | None = None,
        dry_run: bool = False, progress: Progress = lambda _done, _of: None,
    ) -> ImportReport:  # fmt: skip
        """Import a Holdfast or third-party export, by path or as bytes; existing entries are not added again.

        The format is found out unless it is named. Without a `user`, names in the file count, else `store.user`.
        `session` names that of a file which has none of its own, `zone` the clock of times without one.

        Raises:
            InputError: the file is of no known format, or nothing in it can be read; nothing was written.
        """
        from holdfast.transfer import file_formats, imports  # noqa: PLC0415 - few programs need it

        view = self._view(user=self._whose(user), session=session, tenant=tenant, zone=zone)
        opened = file_formats.open_source(source, check_name("name", name, optional=True))
        common = {"tenant": tenant, "zone": zone}
        kit = imports.Importer(
            self._store, view, self._settings.ingest, self._vectors.indexing, self._keep, common, self._redact,
            *authored.import_checks(self._desk()), user, self._whose(None), check_flag("dry_run", dry_run), progress,
        )  # fmt: skip
        return imports.import_file(kit, opened, check_name("format", format, optional=True))

    # --------------------------------------------------------------------------------------------- wiring

    def _revise(self, view: View, id: str, changes: Mapping[str, Any]) -> Unit:
        indexing = self._vectors.indexing()
        unit = self._store.revise(view, check_name("id", id) or "", ingest.revise(changes, view.now, self._analyse))
        embed([unit], self._store, indexing)
        return unit

    def _listed(self, kind: ListedKind, limit: int | None, view: View) -> tuple[NameCount, ...]:
        most = arguments.check_limit(limit)
        return read_once(self._store, view, lambda reading: reading.names(kind, most))

    def _whose(self, user: str | None) -> str:
        return self._settings.store.user if user is None else user

    def _view(self, **options: Unpack[ViewOptions]) -> View:
        return arguments.make_view(self._settings, self._now(), **options)

    def _unit(self, view: View, unit_id: str) -> Unit:
        return arguments.find_unit(self._store, view, unit_id)

    def _desk(self) -> authored.IngestContext:
        own = self._counter, self._now(), self._redact
        return authored.IngestContext(self._store, self._settings, self._analyse, self._vectors.indexing(), *own)

    def _compactor(self) -> compaction.Compactor:
        embedder = self._vectors.required("compaction needs an embedder")
        summariser = open_summariser(self._settings.summariser) if self._summariser is None else self._summariser
        own = self._counter, summariser, self._now()
        return compaction.Compactor(self._store, self._settings.compaction, self._analyse, embedder, *own)

    def _protected(self, view: View) -> frozenset[str]:
        rules, limits = partial(authored.load_rules, self._desk()), self._settings.assembly
        return compaction.find_protected(self._store, self._counter, limits, rules, view)
