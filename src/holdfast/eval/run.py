"""Every question of every set, asked of every system: in parallel, with a journal, so that a stopped run goes on.

A system ranks, and some assemble too: the product through its own verbs, beside plain baselines. Embeddings are
computed once and kept in a cache file for each haystack, keyed by the text itself.
"""

from __future__ import annotations

import hashlib
import os
import struct
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cache
from itertools import groupby
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Protocol, Self
from zipfile import BadZipFile, ZipFile

import numpy as np

from holdfast.errors import InputError
from holdfast.eval.data import DataSet, GoldQuestion, Haystack, Message
from holdfast.eval.journal import JOURNAL, Journal, Key
from holdfast.eval.metrics import (
    REFUSED,
    STRANGER,
    Measurement,
    Metrics,
    gold_ranks,
    growth_metrics,
    packed_metrics,
    ranking_metrics,
    session_ranking,
    summarise,
    survival_metrics,
)
from holdfast.language.tokens import REFERENCE_RATIOS, estimate
from holdfast.memory import Memory
from holdfast.models import build_embedder
from holdfast.models.embedder import Embedder, Vectors
from holdfast.settings import EmbeddingSettings, Settings
from holdfast.types import Compaction, Unit, digest


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


_KEY_BYTES = 16
# What reading a packed file raises when a byte of it, or of its table of contents, is not what was written.
_DAMAGE = (
    OSError, EOFError, BadZipFile, KeyError, ValueError, NotImplementedError, RuntimeError, struct.error, zlib.error,
)  # fmt: skip


@dataclass(slots=True)
class CachedEmbedder:
    """An embedder that remembers. It asks the real one only for texts that its file does not hold, and adds them.

    Losing the file costs time only: a damaged one is taken for an empty one.
    """

    real: Embedder
    file: Path
    known: dict[bytes, Vectors] = field(init=False)

    def __post_init__(self) -> None:
        self.known = _read(self.file, self.real.dims)

    @classmethod
    @contextmanager
    def open(cls, real: Embedder, file: Path) -> Iterator[Self]:
        """Read the file, and write it again, whole or not at all, when texts were added."""
        cached = cls(real, file)
        before = len(cached.known)
        try:
            yield cached
        finally:
            if len(cached.known) > before:
                file.parent.mkdir(parents=True, exist_ok=True)
                beside = file.with_suffix(f".{os.getpid()}.tmp")
                with beside.open("wb") as out:
                    np.savez(out, keys=np.array(list(cached.known)), rows=np.stack(list(cached.known.values())))
                beside.replace(file)

    @property
    def space(self) -> str:
        """Name the embedding space: the real embedder's."""
        return self.real.space

    @property
    def dims(self) -> int:
        """Return how many numbers a vector has."""
        return self.real.dims

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Return one row for each text."""
        keys = [_key("document", text) for text in texts]
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in self.known}
        if missing:
            rows = self.real.embed_documents(list(missing.values()))
            self.known.update(zip(missing, np.asarray(rows, np.float32), strict=True))
        return np.stack([self.known[key] for key in keys]) if keys else np.zeros((0, self.dims), np.float32)

    def embed_query(self, text: str) -> Vectors:
        """Return the vector of a question."""
        key = _key("query", text)
        if key not in self.known:
            self.known[key] = np.asarray(self.real.embed_query(text), np.float32)
        return self.known[key]


def _key(kind: str, text: str) -> bytes:
    return hashlib.sha256(f"{kind}\0{text}".encode("utf-8", "surrogatepass")).digest()[:_KEY_BYTES]


def _read(file: Path, dims: int) -> dict[bytes, Vectors]:
    try:
        with file.open("rb") as source:
            with ZipFile(source) as packed:
                if packed.testzip() is not None:
                    return {}
            source.seek(0)
            with np.load(source) as stored:
                keys, rows = stored["keys"], stored["rows"]
    except _DAMAGE:
        return {}
    if rows.ndim != 2 or rows.shape != (len(keys), dims):
        return {}
    # numpy drops trailing zero bytes of a key when it gives it back.
    return {bytes(key).ljust(_KEY_BYTES, b"\0"): row for key, row in zip(keys, rows, strict=True)}


BUDGETS = {1_000: "1k", 2_000: "2k", 4_000: "4k", 8_000: "8k"}

Progress = Callable[[str, int], None]


@dataclass(frozen=True, slots=True)
class SystemRun:
    """One set and one system, measured: every question, and what is reported of them."""

    set: str
    system: str
    records: tuple[Measurement, ...]
    summary: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Task:
    """One haystack and the systems that have not been asked about it yet. Strangers' questions belong elsewhere."""

    set: str
    haystack: Haystack
    strangers: tuple[GoldQuestion, ...]
    systems: tuple[System, ...]
    embedding: EmbeddingSettings
    vectors: Path
    budgets: tuple[int, ...] = tuple(BUDGETS)

    @property
    def cost(self) -> int:
        """Return about how long it takes, to start the longest first."""
        return sum(len(message.text) for message in self.haystack.messages)


def evaluate(
    sets: Sequence[DataSet],
    systems: Sequence[System],
    embedding: EmbeddingSettings,
    folder: Path,
    *,
    workers: int = 1,
    survival: bool = True,
    progress: Progress = lambda _set, _done: None,
) -> list[SystemRun]:
    """Measure every system on every set; what `folder/journal.jsonl` has already is not measured again."""
    journal = Journal(folder / JOURNAL)
    done = journal.read(mend=True)
    tasks = [task for data in sets for task in _plan_tasks(data, systems, embedding, folder.parent / "vectors", done)]
    if not survival:
        tasks = [replace(task, budgets=()) for task in tasks]
    waiting = sorted(tasks, key=lambda task: -task.cost)
    for task, found in _perform_all(waiting, workers):
        for system, records in found.items():
            done[(task.set, system, task.haystack.id)] = records
            journal.write((task.set, system, task.haystack.id), records)
        progress(task.set, 1)
    return [_gather(data, system.name, done) for data in sets for system in systems]


def _plan_tasks(
    data: DataSet,
    systems: Sequence[System],
    embedding: EmbeddingSettings,
    vectors: Path,
    done: dict[Key, list[Measurement]],
) -> Iterator[Task]:
    for place, haystack in enumerate(data.haystacks):
        left = tuple(system for system in systems if (data.name, system.name, haystack.id) not in done)
        if left:
            strangers = data.haystacks[place - 1].questions if data.chat and len(data.haystacks) > 1 else ()
            file = vectors / f"{digest(data.name, haystack.id, haystack.messages[0].text)}.npz"
            budgets = tuple(BUDGETS) if data.chat else ()
            yield Task(data.name, haystack, strangers, left, embedding, file, budgets)


def _perform_all(tasks: Sequence[Task], workers: int) -> Iterator[tuple[Task, dict[str, list[Measurement]]]]:
    if workers == 1 or len(tasks) < 2:
        yield from ((task, perform(task)) for task in tasks)
        return
    # A fresh interpreter each: a forked one would share the parent's model and its threads.
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        running = {pool.submit(perform, task): task for task in tasks}
        for finished in as_completed(running):
            yield running[finished], finished.result()


def _gather(data: DataSet, system: str, done: dict[Key, list[Measurement]]) -> SystemRun:
    order = [haystack.id for haystack in data.haystacks]
    records = [record for haystack in order for record in done[(data.name, system, haystack)]]
    return SystemRun(data.name, system, tuple(records), summarise(records, order))


# ------------------------------------------------------------------------------------------- one haystack


@cache
def _build_embedder(embedding: EmbeddingSettings) -> Embedder:
    """Return this process's embedder; a worker keeps to one thread, because there is a worker for each core."""
    built = build_embedder(replace(embedding, threads=1))
    if built is None:
        raise InputError("embedding.embedder is none; name one, the baselines compare meaning with it")
    return built


def space_of(embedding: EmbeddingSettings) -> str:
    """Name the space in which a run's embedder places texts."""
    return _build_embedder(embedding).space


def perform(task: Task) -> dict[str, list[Measurement]]:
    """Ask every question of one haystack of every system that is left."""
    real = _build_embedder(task.embedding)
    folder = task.vectors.parent / digest(real.space)
    with CachedEmbedder.open(real, folder / task.vectors.name) as embedder:
        return {system.name: _ask(task, system, embedder) for system in task.systems}


def _ask(task: Task, system: System, embedder: Embedder) -> list[Measurement]:
    haystack = task.haystack
    session_of = {message.id: message.session for message in haystack.messages}
    with system.read(haystack, embedder) as reader:
        # Time moves forward: a question that may see less is asked before one that may see more.
        records = {
            question.id: _measure_question(reader, task, question, session_of)
            for question in sorted(haystack.questions, key=lambda question: question.visible)
        }
        strangers = [_measure_stranger(reader, haystack, question) for question in task.strangers]
        refused = [Measurement(haystack.id, name, REFUSED, {}, {"why": why}) for name, why in reader.refused.items()]
    return [*(records[question.id] for question in haystack.questions), *strangers, *refused]


def _measure_question(reader: Reader, task: Task, question: GoldQuestion, session_of: dict[str, str]) -> Measurement:
    ranking = reader.rank(question)
    metrics: Metrics = {}
    if not question.has_gold:
        # A question that has an answer, but no gold that could be used, says nothing about refusing.
        if not question.answerable:
            metrics["refused_unanswerable"] = float(ranking.declined)
        return Measurement(task.haystack.id, question.id, question.category, metrics, {"refused": ranking.declined})
    if question.gold:
        metrics |= ranking_metrics(ranking.ids, question.gold)
        metrics |= packed_metrics(_estimate_costs(ranking.ids, task.haystack), question.gold, BUDGETS)
        prompts = _build_prompts(reader, task, question)
        for budget, prompt in prompts:
            metrics |= survival_metrics(prompt.whole, prompt.text, question.gold, question.answers, BUDGETS[budget])
        metrics |= growth_metrics([prompt.whole for _, prompt in prompts], question.gold)
    if question.gold_sessions:
        sessions = ranking.sessions or session_ranking(ranking.ids, session_of)
        gold = dict.fromkeys(question.gold_sessions, 1)
        metrics |= ranking_metrics(sessions, gold, "session_")
        if task.haystack.level == "session":
            metrics |= ranking_metrics(sessions, gold)
    metrics["kept"] = float(not ranking.declined)
    ranks = gold_ranks(ranking.ids, question.gold)
    return Measurement(task.haystack.id, question.id, question.category, metrics, {"ranks": ranks})


def _build_prompts(reader: Reader, task: Task, question: GoldQuestion) -> list[tuple[int, Prompt]]:
    """Return the prompts whose survival is measured, the smallest first: in chats, not in corpora of passages."""
    return sorted(reader.prompts(question, task.budgets).items()) if task.budgets else []


def _estimate_costs(ranked: Sequence[str], haystack: Haystack) -> list[tuple[str, int]]:
    """Return the bare cost of each ranked message: a quarter of its characters, whatever a renderer would add."""
    texts = {message.id: message.text for message in haystack.messages}
    return [(item, estimate(texts[item], REFERENCE_RATIOS)) for item in ranked if item in texts]


def _measure_stranger(reader: Reader, haystack: Haystack, question: GoldQuestion) -> Measurement:
    """Ask a question that this memory cannot answer."""
    seen = replace(question, visible=len(haystack.messages))
    refused = reader.rank(seen).declined
    return Measurement(haystack.id, f"stranger {question.id}", STRANGER, {"refused_strangers": float(refused)}, {})
