"""A question → what it asks for (C7): words, participants, the time it names, and its vector."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

from holdfast.language.dates import TimeMention, TimeRange, time_mention
from holdfast.language.lexical import TOKENIZERS
from holdfast.language.query import asks_for_nothing, profile_query, without_names
from holdfast.models.embedder import Embedder, check_vectors
from holdfast.retrieval.strategy import Strategy
from holdfast.settings import ProfileSettings, Settings
from holdfast.store.contract import Store
from holdfast.types import Budget, Deadline, QueryProfile, Unit, View

# A unit that tells of an event says most of the event's words; "the trip" alone is told by many.
_EVENT_COVERAGE = 0.6


@dataclass(frozen=True, slots=True)
class Engine:
    """What a recall needs and does not own. `clock` counts seconds for time budgets."""

    store: Store
    settings: Settings
    clock: Callable[[], float]
    embedder: Callable[[], Embedder | None]

    def for_one_question(self) -> Engine:
        """Return an engine that reads each unit once: every stage of a question sees the same version of it."""
        return dataclasses.replace(self, store=cast("Store", OneReading(self.store)))


class OneReading:
    """A store that remembers the units it was asked for; everything else is the store's own."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._view: View | None = None
        self._units: dict[str, Unit] = {}

    def units(self, view: View, ids: Sequence[str]) -> dict[str, Unit]:
        """See `Store.units`."""
        if self._view is not view:  # a question has one; whoever asks with another is answered afresh
            self._view, self._units = view, {}
        missing = [unit_id for unit_id in dict.fromkeys(ids) if unit_id not in self._units]
        if missing:
            self._units |= self._store.units(view, missing)
        return {unit_id: self._units[unit_id] for unit_id in dict.fromkeys(ids) if unit_id in self._units}

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the store has
        return getattr(self._store, name)


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


def profiled(engine: Engine, question: Question, view: View) -> QueryProfile:
    """Read the question by tables and small rules, and embed it when the profile asks for meaning."""
    query = profile_query(
        question.text,
        previous=question.previous,
        speakers=engine.store.speakers(view),
        tokenise=TOKENIZERS[engine.settings.analysis.tokenizer],
    )
    query = dataclasses.replace(query, **_time_asked(engine, question, query, view))
    embedder = engine.embedder() if "dense" in question.profile.strategies else None
    if embedder is None:
        return query
    text = f"{query.borrowed}\n{query.text}" if query.borrowed else query.text
    if engine.settings.stages.names_leave:
        text = without_names(text, query.participants)
    [vector] = check_vectors([embedder.embed_query(text)], 1, embedder.dims, embedder.space)
    return dataclasses.replace(query, vector=vector, space=embedder.space)


def _time_asked(engine: Engine, question: Question, query: QueryProfile, view: View) -> dict[str, Any]:
    """Find the time that the question names; one that is told by an event is looked up by the event's words."""
    if not engine.settings.stages.time_range or question.profile.rank_by != "score":
        return {}
    mention = time_mention(query.text, view.reference_time)
    if mention is None:
        return {}
    span = mention.range or _event_range(engine, question, mention, view)
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


def _event_range(engine: Engine, question: Question, mention: TimeMention, view: View) -> TimeRange | None:
    """Return the range around an event that a unit tells of in nearly all of the event's own words."""
    event = profile_query(mention.event or "", tokenise=TOKENIZERS[engine.settings.analysis.tokenizer])
    lexical = next((strategy for strategy in question.strategies if strategy.id == "lexical"), None)
    if lexical is None or not event.terms:
        return None
    deadline = Deadline.start(engine.clock, engine.settings.retrieval.timeout_ms)
    budget = Budget(engine.settings.retrieval.timeout_ms, 1)
    found = lexical.retrieve(event, view, engine.store, budget, deadline).candidates
    if not found or found[0].coverage < _EVENT_COVERAGE:
        return None
    return mention.around(found[0].unit.event_time)
