"""Every question of every set, asked of every system: in parallel, with a journal, so that a stopped run goes on.

Embeddings are computed once and kept in a cache file for each haystack, keyed by the text itself.
"""

from __future__ import annotations

import hashlib
import os
import struct
import zlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import field, replace
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from typing import Self
from zipfile import BadZipFile, ZipFile

import numpy as np

from holdfast.errors import InputError
from holdfast.eval.data import DataSet, GoldQuestion, Haystack, System, SystemReader
from holdfast.eval.metrics import (
    REFUSED,
    STRANGER,
    Measurement,
    MetricValues,
    SystemRun,
    context_metrics,
    currency_metrics,
    gold_ranks,
    growth_metrics,
    packed_metrics,
    ranking_metrics,
    session_ranking,
    summarise,
    survival_metrics,
)
from holdfast.eval.report import JOURNAL, Journal, RunKey
from holdfast.models import build_embedder
from holdfast.models.embedder import Embedder, Vectors
from holdfast.settings import EmbeddingSettings
from holdfast.text.tokens import REFERENCE_RATIOS, estimate
from holdfast.types import digest
from holdfast.values import dataclass

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


BUDGETS = {500: "500", 1_000: "1k", 2_000: "2k", 4_000: "4k", 8_000: "8k"}

RunProgress = Callable[[str, int], None]


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
    progress: RunProgress = lambda _set, _done: None,
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
    done: dict[RunKey, list[Measurement]],
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


def _gather(data: DataSet, system: str, done: dict[RunKey, list[Measurement]]) -> SystemRun:
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


def _measure_question(
    reader: SystemReader, task: Task, question: GoldQuestion, session_of: dict[str, str]
) -> Measurement:
    ranking = reader.rank(question)
    metrics: MetricValues = {}
    if not question.has_gold:
        # A question that has an answer, but no gold that could be used, says nothing about refusing.
        if not question.answerable:
            metrics["refused_unanswerable"] = float(ranking.declined)
        return Measurement(task.haystack.id, question.id, question.category, metrics, {"refused": ranking.declined})
    if question.gold:
        metrics |= ranking_metrics(ranking.ids, question.gold) | currency_metrics(ranking.ids, question)
        metrics |= packed_metrics(_estimate_costs(ranking.ids, task.haystack), question.gold, BUDGETS)
        # Survival is measured in chats, not in corpora of passages: those have no budgets.
        prompts = sorted(reader.prompts(question, task.budgets).items()) if task.budgets else []
        for budget, prompt in prompts:
            metrics |= survival_metrics(prompt.whole, prompt.text, question.gold, question.answers, BUDGETS[budget])
            metrics |= context_metrics(prompt, question, BUDGETS[budget])
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


def _estimate_costs(ranked: Sequence[str], haystack: Haystack) -> list[tuple[str, int]]:
    """Return the bare cost of each ranked message: a quarter of its characters, whatever a renderer would add."""
    texts = {message.id: message.text for message in haystack.messages}
    return [(item, estimate(texts[item], REFERENCE_RATIOS)) for item in ranked if item in texts]


def _measure_stranger(reader: SystemReader, haystack: Haystack, question: GoldQuestion) -> Measurement:
    """Ask a question that this memory cannot answer."""
    seen = replace(question, visible=len(haystack.messages))
    refused = reader.rank(seen).declined
    return Measurement(haystack.id, f"stranger {question.id}", STRANGER, {"refused_strangers": float(refused)}, {})
