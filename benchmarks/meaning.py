"""The parts of the speed benchmark that are about meaning: what embedding costs, and what hypervectors cost."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import synthetic

from holdfast import Memory, Settings
from holdfast.derivation import encode_unit
from holdfast.language import analyse
from holdfast.language.query import profile_query
from holdfast.models import build_embedder
from holdfast.retrieval.hyperdimensional import HyperdimensionalStrategy
from holdfast.settings import EmbeddingSettings, RetrievalSettings
from holdfast.types import Budget, Deadline, RetrievalResult, View

USER = "ada"
MS = 1000.0
US = 1_000_000.0
# The two models inside the package.
SHIPPED = ("minilm", "potion")
# A cache that a question fills for half a second at a time must be full one day; beyond this something is wrong.
MOST_FILLING_QUESTIONS = 1000
# Units whose encoding is timed by itself.
ENCODED = 1000


def measure_embedders(folder: Path, sessions: int, now: Callable[[], Any]) -> dict[str, Any]:
    """Return texts per second of each shipped model alone, and of `remember` with the same texts.

    A session at a time, the bare model and the memory by turns, so that both meet the same weather.
    """
    turns = synthetic.Generator().turns(sessions * synthetic.MESSAGES_PER_SESSION)
    return {name: _measure_embedder(name, turns, folder / f"{name}.db", now) for name in SHIPPED}


def _measure_embedder(name: str, turns: list[synthetic.Turn], path: Path, now: Callable[[], Any]) -> dict[str, Any]:
    settings = dataclasses.replace(Settings(), embedding=EmbeddingSettings(embedder=name))
    embedder = build_embedder(settings.embedding)
    assert embedder is not None
    embedder.embed_documents([turn.text for turn in turns[:4]])
    alone, bare, kept, queries = 0.0, 0.0, 0.0, []
    with Memory.open(path, settings=settings, now=now) as memory:
        memory.remember("warm up", user=USER)
        for session, messages in synthetic.sessions(turns):
            texts = [str(message["content"]) for message in messages]
            began = perf_counter()
            embedder.embed_documents(texts)
            embedded = perf_counter()
            memory.remember(messages, user=USER, session=session)
            remembered = perf_counter()
            embedder.embed_documents(texts[:1])  # one text in a call: no other thread can help
            single = perf_counter()
            embedder.embed_query(texts[1])
            queries.append(perf_counter() - single)
            bare += embedded - began
            kept += remembered - embedded
            alone += single - remembered
    return {
        "texts": len(turns),
        "threads": os.cpu_count(),
        "one_text_per_call_per_s": round(len(queries) / alone, 1),
        "bare_per_s": round(len(turns) / bare, 1),
        "remember_per_s": round(len(turns) / kept, 1),
        "ratio": round(bare / kept, 3),
        "query_ms": round(float(np.median(queries)) * MS, 3),
    }


def measure_hyper(
    memory: Memory, view: View, turns: Sequence[synthetic.Turn], asked: Sequence[str]
) -> dict[str, Any]:
    """Return what it costs to encode a unit, to fill the cache of one owner, and to ask it when it is full."""
    settings = memory.settings
    units = list(memory.store.scan(view, order="oldest", limit=ENCODED))
    analyses = [analyse(unit, settings.analysis) for unit in units]
    began = perf_counter()
    for unit, analysis in zip(units, analyses, strict=True):
        encode_unit(unit, analysis, settings.hyper)
    encoding = (perf_counter() - began) / len(units)
    strategy = HyperdimensionalStrategy(settings)
    # A cache is filled in the time that a question has by default.
    limits = RetrievalSettings()
    budget = Budget(limits.timeout_ms, limits.max_candidates)

    def ask(text: str) -> tuple[RetrievalResult, float]:
        began = perf_counter()
        deadline = Deadline.start(perf_counter, budget.timeout_ms)
        found = strategy.retrieve(profile_query(text), view, memory.store, budget, deadline)
        return found, perf_counter() - began

    filling = [ask(turns[0].text)]
    while filling[-1][0].exhausted_budget and len(filling) < MOST_FILLING_QUESTIONS:
        filling.append(ask(turns[0].text))
    times = [ask(text)[1] for text in asked]
    return {
        "encode_us_per_unit": round(encoding * US, 1),
        "fill_s": round(sum(seconds for _, seconds in filling), 3),
        "fill_questions": len(filling),
        "query": times,
    }
