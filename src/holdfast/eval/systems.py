"""What is measured: the product through its own verbs, beside plain baselines. A system ranks; some assemble too."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import groupby
from typing import Protocol

from holdfast.errors import InputError
from holdfast.eval.data import GoldQuestion, Haystack, Message
from holdfast.memory import Memory
from holdfast.models.embedder import Embedder
from holdfast.settings import Settings
from holdfast.types import Compaction, Unit


@dataclass(frozen=True, slots=True)
class Ranking:
    """What a system answered: message ids, best first; `refused` says that it chose to answer nothing.

    `sessions` is for a system that ranks sessions by themselves; else a session stands where its best message does.
    """

    ids: tuple[str, ...]
    refused: bool = False
    sessions: tuple[str, ...] = ()

    @property
    def declined(self) -> bool:
        """Return whether nothing was answered, by a rule or because nothing was found."""
        return self.refused or not (self.ids or self.sessions)


@dataclass(frozen=True, slots=True)
class Prompt:
    """What a system would put into a prompt: the text, and the messages that stand in it whole."""

    text: str
    whole: frozenset[str]


class Reader(Protocol):
    """A system that has read one haystack. `refused` says of each message that it would not take why."""

    refused: dict[str, str]

    def rank(self, question: GoldQuestion) -> Ranking:
        """Return the messages that answer a question, best first, from those that it may see."""

    def prompts(self, question: GoldQuestion, budgets: Sequence[int]) -> Mapping[int, Prompt]:
        """Return the prompt for each token budget; empty when the system cannot assemble one."""


class System(Protocol):
    """Something to measure."""

    @property
    def name(self) -> str:
        """Name the system, as reports show it."""

    def read(self, haystack: Haystack, embedder: Embedder) -> AbstractContextManager[Reader]:
        """Take in a haystack."""


@dataclass(frozen=True, slots=True)
class Product:
    """Holdfast itself: `remember` every message, `search` for every question, as a program would.

    `compacted` lets summaries stand for all turns but the last four of every session before anything is asked.
    """

    name: str
    settings: Settings
    profile: str = "hybrid"
    compacted: bool = False

    @contextmanager
    def read(self, haystack: Haystack, embedder: Embedder) -> Iterator[Reader]:
        """Open an empty memory; messages are remembered when a question may see them."""
        moment = [haystack.messages[0].at]
        wanted = None if self.settings.embedding.embedder == "none" else embedder
        settings = self.settings.unhurried()
        if self.compacted:  # asked from a new session: no tail is shown, so none beyond T_base is kept back
            settings = replace(settings, assembly=replace(settings.assembly, tail_share=0.0))
        with Memory.open(":memory:", settings=settings, now=lambda: moment[0], embedder=wanted) as memory:
            yield ProductReader(memory, haystack, self.profile, moment, self.compacted)


_OWNER = "user"


@dataclass(slots=True)
class ProductReader:
    """A memory that has read one haystack."""

    memory: Memory
    haystack: Haystack
    profile: str
    moment: list[datetime]
    compacted: bool = False
    remembered: int = 0
    compactions: list[Compaction] = field(default_factory=list)
    message_of: dict[str, str] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)

    def rank(self, question: GoldQuestion) -> Ranking:
        """Search for one question, at its own moment."""
        self._catch_up(question)
        result = self.memory.search(question.text, user=_OWNER, profile=self.profile, reference_time=question.at)
        # A summary is no message: it takes its place and is nobody's gold; its session is found all the same.
        ids = [unit_id for hit in result for unit_id in (hit.unit.id, *hit.merged_ids)]
        found = [self.message_of.get(unit_id, unit_id) for unit_id in ids]
        summarised = self.compacted or any(unit_id not in self.message_of for unit_id in ids)
        sessions = dict.fromkeys(hit.unit.session or "" for hit in result) if summarised else ()
        return Ranking(tuple(found), bool(result.trace.refused), tuple(sessions))

    def prompts(self, question: GoldQuestion, budgets: Sequence[int]) -> Mapping[int, Prompt]:
        """Assemble a context for each budget, from a new session, leaving no trace of having asked."""
        self._catch_up(question)
        found = {}
        for budget in budgets:
            context = self.memory.assemble(
                question.text, user=_OWNER, profile=self.profile, budget=budget, reference_time=question.at,
                track_access=False,
            )  # fmt: skip
            whole = frozenset(
                self.message_of[item.id]
                for item in context.items
                if item.kind == "whole" and item.id in self.message_of
            )
            found[budget] = Prompt(context.text, whole)
        return found

    def _catch_up(self, question: GoldQuestion) -> None:
        """Remember what had been said by then, session by session; time only moves forward."""
        fresh = self.haystack.messages[self.remembered : question.visible]
        for session, turns in groupby(fresh, key=lambda message: message.session):
            said = list(turns)
            try:
                self._remember(said, session)
            except InputError:  # all or nothing: whatever can be kept is kept by itself
                for message in said:
                    self._remember_alone(message, session)
        self.remembered = max(self.remembered, question.visible)
        self.moment[0] = max(self.moment[0], question.at)
        if self.compacted and fresh:
            self.compactions += self.memory.compact(user=_OWNER)

    def _remember(self, said: Sequence[Message], session: str) -> None:
        written = self.memory.remember([_as_given(each) for each in said], user=_OWNER, session=session)
        self.message_of.update((kept.id, message.id) for kept, message in zip(written, said, strict=True))

    def _remember_alone(self, message: Message, session: str) -> None:
        try:
            self._remember([message], session)
        except InputError as error:
            self.refused[message.id] = str(error)


def as_unit(message: Message) -> Unit:
    """Return a message as the unit that the product would make of it, for baselines that render like the product."""
    return Unit(
        id=message.id, text=message.text, tenant=_OWNER, user=_OWNER, scope="session", session=message.session,
        event_time=message.at, recorded_time=message.at, author=message.author, speaker=message.speaker,
        kind="knowledge" if message.author == "document" else "turn",
        origin="document" if message.author == "document" else "conversation",
    )  # fmt: skip


def _as_given(message: Message) -> dict[str, object]:
    given: dict[str, object] = {"message_id": message.id, "at": message.at}
    if message.author == "document":
        text = f"{message.title}\n{message.text}" if message.title else message.text
        return {**given, "text": text, "kind": "knowledge", "author": "document", "topic": message.title}
    given |= {"role": message.author, "content": message.text}
    return given | ({"speaker": message.speaker} if message.speaker else {})
