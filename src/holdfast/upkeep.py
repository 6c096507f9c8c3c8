"""The verbs that keep a memory true over time: compact and expand, supersede, forget, back up (C18, C19)."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable, Sequence
from pathlib import Path

from holdfast.assembly.plan import ContextRequest, plan_tail
from holdfast.assembly.tail import base_start
from holdfast.documents import core as documents
from holdfast.errors import EmbedderError, HoldfastError
from holdfast.inputs.checks import check_flag, check_name, check_names
from holdfast.lifecycle import compact as compaction
from holdfast.lifecycle.forget import ForgetRequest, select
from holdfast.models import open_summariser
from holdfast.opened import Filters, Opened, checked_path
from holdfast.store.contract import Reinstatement, Supersession, look
from holdfast.types import Compaction, Erasure, Unit, View

log = logging.getLogger("holdfast")
Progress = Callable[[int, int], None]


class Upkeep(Opened):
    """Verbs for what is kept already."""

    # ----------------------------------------------------------------------------------------- compaction

    def compact(
        self,
        *,
        user: str,
        session: str | None = None,
        agent: str | None = None,
        tenant: str | None = None,
        progress: Progress = lambda _done, _of: None,
    ) -> list[Compaction]:
        """Let summaries stand for old turns of one session, or of all; `expand` gives the turns back.

        The turns that a context would show as its tail are left alone. What is covered already is not done again.

        Raises:
            EmbedderError: there is no embedder, or it cannot be used.
        """
        view = self._view(user=user, session=session, agent=agent, tenant=tenant)
        kit = self._compactor()
        names = (
            [view.session]
            if view.session is not None
            else look(self._store, view, lambda reading: reading.names("session"))
        )
        views = [dataclasses.replace(view, session=name) for name in names]
        done = []
        for number, one in enumerate(views):
            progress(number, len(views))
            done.append(compaction.compact(kit, one, self._protected(one), progress=_part(progress, number, views)))
        progress(len(views), len(views))
        return done

    def expand(self, id: str, *, user: str, agent: str | None = None, tenant: str | None = None) -> list[Unit]:
        """Return the raw turns that a summary stands for, in their order.

        Raises:
            NotFoundError: the owner has no such summary.
            InputError: it is not a summary.
        """
        view = self._view(user=user, agent=agent, tenant=tenant)
        return compaction.expand(self._store, view, check_name("id", id) or "")

    def _compactor(self) -> compaction.Compactor:
        embedder = self._vectors.embedder()
        if embedder is None:
            raise EmbedderError("compaction compares turns by their vectors; set embedding.embedder to something")
        if self._summariser is None:
            self._summariser = open_summariser(self._settings.summariser)
        return compaction.Compactor(
            self._store, self._settings.compaction, self._analyse, embedder, self._counter, self._summariser,
            self._now(),
        )  # fmt: skip

    def _protected(self, view: View) -> frozenset[str]:
        """Return T_recent and T_base of a context of the full budget: they are never compacted (law 7).

        Each agent has a tail of its own.
        """
        agents = compaction.agents(self._store, view) | {view.agent, None}
        views = [dataclasses.replace(view, agent=agent) for agent in agents]
        return frozenset().union(*(self._tail(one) for one in views))

    def _tail(self, view: View) -> frozenset[str]:
        settings = self._settings.assembly
        rules = documents.rules(self._desk(), view)
        turns = self._session_turns(view)
        request = ContextRequest(settings.budget, self._counter, settings, rules.hard, rules.soft, turns)
        plan = plan_tail(request)
        base = turns[base_start(len(turns), settings.min_turns) :]
        return plan.tail_ids | {turn.id for turn in base}

    def _compact_when_due(self, tenant: str, user: str, session: str | None, agent: str | None) -> None:
        """Compact the session when enough tokens wait outside its tail; what was remembered is safe either way."""
        due = self._settings.compaction.session_tokens
        if not due or session is None:
            return
        view = self._view(user=user, session=session, agent=agent, tenant=tenant)
        try:
            waiting = compaction.eligible(self._store, view, frozenset())
            if sum(self._counter(turn.text) for turn in waiting) < due:  # the tail included: cheap, never too early
                return
            protected = self._protected(view)
            if sum(self._counter(turn.text) for turn in waiting if turn.id not in protected) >= due:
                compaction.compact(self._compactor(), view, protected)
        except HoldfastError as error:  # the words that were to be remembered are: whatever this is can wait
            log.warning("session %s is not compacted now: %s", session, error)

    # --------------------------------------------------------------------------------------- supersession

    def supersede(self, id: str, *, by: str, user: str, agent: str | None = None, tenant: str | None = None) -> Unit:
        """Let the unit `by` take the place of `id`, which stays in history; return the one that no longer counts.

        Raises:
            NotFoundError: the owner does not have one of them.
            InputError: it would supersede itself in a circle.
        """
        view = self._view(user=user, agent=agent, tenant=tenant)
        old, new = check_name("id", id) or "", check_name("by", by) or ""
        self._store.mark([Supersession(view, old, new, self._now())])
        return self._found(view, old)

    def reinstate(self, id: str, *, user: str, agent: str | None = None, tenant: str | None = None) -> Unit:
        """Let a superseded unit count again.

        Raises:
            NotFoundError: the owner has no such unit.
        """
        view = self._view(user=user, agent=agent, tenant=tenant)
        self._store.mark([Reinstatement(view, check_name("id", id) or "", self._now())])
        return self._found(view, id)

    # ----------------------------------------------------------------------------------------- forgetting

    def forget(
        self,
        *,
        user: str,
        ids: str | Sequence[str] | None = None,
        session: str | None = None,
        filters: Filters | None = None,
        document: str | None = None,
        all: bool = False,
        agent: str | None = None,
        tenant: str | None = None,
        dry_run: bool = False,
    ) -> Erasure:
        """Erase units for good: their words, versions, vectors, and every summary made of them, in every file.

        Summaries are made again from what is left. `dry_run` lists what would go and changes nothing.

        Raises:
            InputError: nothing is named, or the filter matches everything and `all` is not given.
            NotFoundError: the owner does not have what is named; nothing is erased.
        """
        view = self._view(user=user, session=session, agent=agent, tenant=tenant, filters=filters)
        request = ForgetRequest(
            ids=check_names("ids", ids) or (),
            session=view.session,
            document=check_name("document", document, optional=True),
            filtered=view.filters is not None,
            everything=check_flag("all", all),
        )
        chosen = select(self._store, view, request)
        view = dataclasses.replace(view, user="") if chosen.everyones else view
        erasure = self._store.forget(
            view, chosen.ids, chosen.documents, dry_run=check_flag("dry_run", dry_run),
            owner=request.everything and view.agent is None,
        )  # fmt: skip
        if chosen.documents:
            documents.drop_readings()
        erasure = dataclasses.replace(erasure, documents=tuple(one.name for one in chosen.documents), dry_run=dry_run)
        if dry_run or not erasure.uncovered:
            return erasure
        try:
            rebuilt = compaction.rebuild(self._compactor(), view, erasure.summaries, self._protected)
        except HoldfastError as error:
            # What was to go is gone; the turns that are left are found by themselves until the next compaction.
            log.warning("summaries of what is left are not made now: %s", error)
            return erasure
        return dataclasses.replace(erasure, rebuilt=tuple(rebuilt))

    # -------------------------------------------------------------------------------------------- backups

    def backup(self, path: str | Path) -> int:
        """Copy the store to a new file while it is in use, and read the copy back; return how many units it holds.

        The engine remembers where its copies lie, so that `forget` reaches them.

        Raises:
            InputError: the file exists, or its folder does not.
        """
        return self._store.backup(checked_path("path", path), self._now())


def _part(progress: Progress, number: int, views: Sequence[View]) -> Progress:
    """Return a progress that counts clusters when there is one session, and sessions when there are several."""
    return progress if len(views) == 1 else lambda _done, _of: progress(number, len(views))
