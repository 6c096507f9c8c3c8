"""A question → what it asks for (C7): words, participants, the time it names, and its vector."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from holdfast.language.dates import TimeMention, TimeRange, time_mention
from holdfast.language.lexical import TOKENIZERS
from holdfast.language.query import asks_for_nothing, profile_query, without_names
from holdfast.models.embedder import Embedder, check_vectors
from holdfast.retrieval.strategy import Strategy, retrieve
from holdfast.settings import ProfileSettings, Settings
from holdfast.store.contract import Reading, Store
from holdfast.types import Deadline, QueryProfile

# A unit that tells of an event says most of the event's words; "the trip" alone is told by many.
_EVENT_COVERAGE = 0.6


@dataclass(frozen=True, slots=True)
class Engine:
    """What a recall needs and does not own. `clock` counts seconds for time budgets."""

    store: Store
    settings: Settings
    clock: Callable[[], float]
    embedder: Callable[[], Embedder | None]

    def deadline(self, timeout_ms: float) -> Deadline:
        """Begin to count a time budget now."""
        return Deadline.start(self.clock, timeout_ms)

    def prepare(self, question: Question) -> Engine:
        """Ask for the embedder before a reading begins: it may have vectors to write, and inside nothing is written."""
        loaded = self.embedder() if "dense" in question.profile.strategies else None
        return dataclasses.replace(self, embedder=lambda: loaded)


@dataclass(frozen=True, slots=True)
class Question:
    """One search: the words, the user's message before them, the profile, and how many hits are wanted."""

    text: str
    previous: str | None
    profile_name: str
    profile: ProfileSettings
    strategies: Sequence[Strategy]
    escalation: Sequence[Strategy] = ()
    limit: int | None = None

    @property
    def is_staged(self) -> bool:
        """Return whether stages are mixed in: a fused rank is the contract's own, and gets none of ours."""
        return self.profile.rank_by == "score"


def profile(engine: Engine, question: Question, reading: Reading) -> QueryProfile:
    """Read the question by tables and small rules, and embed it when the profile asks for meaning."""
    query = profile_query(
        question.text,
        previous=question.previous,
        speakers=reading.names("speaker"),
        tokenise=TOKENIZERS[engine.settings.analysis.tokenizer],
    )
    query = dataclasses.replace(query, **_find_time(engine, question, query, reading))
    embedder = engine.embedder() if "dense" in question.profile.strategies else None
    if embedder is None:
        return query
    text = f"{query.borrowed}\n{query.text}" if query.borrowed else query.text
    if engine.settings.stages.names_leave:
        text = without_names(text, query.participants)
    [vector] = check_vectors([embedder.embed_query(text)], 1, embedder.dims, embedder.space)
    return dataclasses.replace(query, vector=vector, space=embedder.space)


def _find_time(engine: Engine, question: Question, query: QueryProfile, reading: Reading) -> dict[str, Any]:
    """Find the time that the question names; one that is told by an event is looked up by the event's words."""
    if not engine.settings.stages.time_range or not question.is_staged:
        return {}
    mention = time_mention(query.text, reading.view.reference_time)
    if mention is None:
        return {}
    span = mention.range or _find_event(engine, question, mention, reading)
    if span is None:
        return {}
    only = asks_for_nothing(mention.rest)
    rest = set(TOKENIZERS[engine.settings.analysis.tokenizer](mention.rest))
    dated = only and any(term[:4].isdigit() for term in query.terms)
    return {
        "time_range": (span.start, span.end),
        "only_time": only,
        "date_terms": tuple(term for term in query.terms if term not in rest) if dated else (),
    }


def _find_event(engine: Engine, question: Question, mention: TimeMention, reading: Reading) -> TimeRange | None:
    """Return the range around an event that a unit tells of in nearly all of the event's own words."""
    event = profile_query(mention.event or "", tokenise=TOKENIZERS[engine.settings.analysis.tokenizer])
    lexical = next((strategy for strategy in question.strategies if strategy.id == "lexical"), None)
    if lexical is None or not event.terms:
        return None
    found = retrieve(lexical, event, reading, 1, engine.deadline(engine.settings.retrieval.timeout_ms)).claims
    if not found.ids or found.coverage[0] < _EVENT_COVERAGE:
        return None
    return mention.around(reading.units(found.ids)[found.ids[0]].event_time)
