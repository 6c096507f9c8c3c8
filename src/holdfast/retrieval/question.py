"""A question → what it asks for (C7): words, participants, times, its vector; and the strategies to ask."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import EmbedderError, ReaderError, UnknownProfileError, quote_value
from holdfast.models import open_reader
from holdfast.models.embedder import Embedder
from holdfast.models.reader import Reader
from holdfast.retrieval.dense import DenseStrategy
from holdfast.retrieval.hyperdimensional import HyperdimensionalStrategy
from holdfast.retrieval.lexical import LexicalStrategy
from holdfast.retrieval.strategy import Strategy, retrieve
from holdfast.retrieval.symbolic import SymbolicStrategy
from holdfast.settings import PROFILES, ProfileSettings, Settings
from holdfast.settings.loading import REAL_NAMES
from holdfast.store.contract import Reading, Store, read_once
from holdfast.text.dates import TimeMention, TimeRange, time_mention
from holdfast.text.questions import MOST_BORROWED, asks_for_nothing, is_follow_up, profile_query, without_names
from holdfast.text.terms import TOKENIZERS
from holdfast.types import Deadline, QueryProfile, StrategyScores, View
from holdfast.values import dataclass

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

PROFILE_GROUP = "holdfast.profiles"
STRATEGY_GROUP = "holdfast.strategies"
# The built-in strategies work in a source tree or a zip file too, where there are no entry points.
_BUILT_IN: Mapping[str, type[Strategy]] = {
    one.id: one for one in (LexicalStrategy, DenseStrategy, HyperdimensionalStrategy, SymbolicStrategy)
}
# A unit that tells of an event says most of the event's words; "the trip" alone is told by many.
_EVENT_COVERAGE = 0.6
# Three turns of the user's, with as many answers between them and a few tool calls.
_TURNS_BEFORE = 12
QuestionKey = tuple[str, tuple[str, ...], tuple[str, ...]]  # a question, the user's messages before it, who speaks


@dataclass(frozen=True, slots=True)
class Engine:
    """What a recall needs and does not own. `clock` counts seconds for time budgets.

    `failed` hears that the embedder failed, and after how many seconds.
    """

    store: Store
    settings: Settings
    clock: Callable[[], float]
    embedder: Callable[[], Embedder | None]
    failed: Callable[[EmbedderError, float], None] = lambda _error, _seconds: None
    heard: tuple[QuestionKey, QueryProfile] | None = None  # a question as it was read, and what from
    reader: Reader | None = None  # that of a question whose first hits are read together

    def deadline(self, timeout_ms: float) -> Deadline:
        """Begin to count a time budget now."""
        return Deadline.start(self.clock, timeout_ms)

    def prepare(self, question: Question, view: View, slots: Sequence[str] = ()) -> tuple[Engine, Question]:
        """Embed the question, and events of it, and load the reader, before the store is read.

        The embedder may have vectors to write, and may be slow: nobody else is to wait for it.

        Raises:
            EmbedderError: the embedder fails, and the question is strict; else words answer alone.
            ReaderError: the reader cannot be loaded, and the question is strict; else hits stand as they were found.
        """
        engine, question = self._prepare_meaning(question, view, slots)
        try:
            reader = open_reader() if question.read else None
        except ReaderError as error:
            if question.strict:
                raise
            said = "; ".join(filter(None, (question.degraded, f"hits were not read together: {error}")))
            return engine, dataclasses.replace(question, read="", degraded=said)
        return dataclasses.replace(engine, reader=reader), question

    def _prepare_meaning(self, question: Question, view: View, slots: Sequence[str]) -> tuple[Engine, Question]:
        if "dense" not in question.profile.strategies:
            return dataclasses.replace(self, embedder=lambda: None), question
        began = self.clock()
        try:
            return self._embed(question, view, slots), question
        except EmbedderError as error:
            if question.strict:
                raise
            self.failed(error, self.clock() - began)
            plain = question.by_words(f"embedder unavailable; lexical results only: {error}", self.settings)
            return dataclasses.replace(self, embedder=lambda: None), plain

    def _embed(self, question: Question, view: View, slots: Sequence[str]) -> Engine:
        loaded = self.embedder()
        if loaded is None:
            return dataclasses.replace(self, embedder=lambda: None)
        with self.store.reading(view) as reading:
            given = self._given(question, reading)
        query = self._profile(*given)
        texts = tuple(dict.fromkeys((_text_of(self, query), *slots)))
        known = KnownVectors(loaded, {text: loaded.embed_query(text) for text in texts})
        return dataclasses.replace(self, embedder=lambda: known, heard=(given, query))

    def read(self, question: Question, reading: Reading) -> QueryProfile:
        """Read a question by tables and small rules, once for the same speakers."""
        if self.heard is None or self.heard[0][0] != question.text:
            return self._profile(*self._given(question, reading))
        (text, earlier, speakers), query = self.heard
        now = reading.names("speaker")
        return query if now == speakers else self._profile(text, earlier, now)

    def _profile(self, text: str, earlier: Sequence[str], speakers: Sequence[str]) -> QueryProfile:
        tokenise = TOKENIZERS[self.settings.analysis.tokenizer]
        plain = not self.settings.stages.thread  # the contract's rule
        return profile_query(text, earlier=earlier, speakers=speakers, tokenise=tokenise, any_short=plain)

    def _given(self, question: Question, reading: Reading) -> QuestionKey:
        """Return what a question is read from; a short one in a session follows the user's last turns there."""
        earlier, view, tokenise = question.earlier, reading.view, TOKENIZERS[self.settings.analysis.tokenizer]
        leans = self.settings.stages.thread and view.session is not None and is_follow_up(question.text, tokenise)
        if leans and not earlier:
            session = dataclasses.replace(view, only_session=True, filters=None)
            turns = read_once(self.store, session, lambda there: [*there.scan(order="newest", limit=_TURNS_BEFORE)])
            said = [turn.text for turn in turns if turn.kind == "turn" and turn.author == "user"]
            # A host may remember the question before it asks it.
            earlier = tuple(said[said[:1] == [question.text] :][:MOST_BORROWED][::-1])
        return question.text, earlier, reading.names("speaker")


@dataclass(frozen=True, slots=True)
class KnownVectors:
    """An embedder that has embedded some questions already; see `Embedder`."""

    embedder: Embedder
    vectors: Mapping[str, NDArray[np.float32]]

    @property
    def space(self) -> str:
        """Name the embedding space."""
        return self.embedder.space

    @property
    def dims(self) -> int:
        """Return how many numbers a vector has."""
        return self.embedder.dims

    def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one row for each text."""
        return self.embedder.embed_documents(texts)

    def embed_query(self, text: str) -> NDArray[np.float32]:
        """Return the vector of a question."""
        return self.vectors[text] if text in self.vectors else self.embedder.embed_query(text)


@dataclass(frozen=True, slots=True)
class Question:
    """One search: the words, the user's messages before them, the profile, and how many hits are wanted.

    With `by_session` each session is there once, at its best hit. `notice` says that some units cannot be compared by
    meaning, `degraded` that none can; `strict` refuses an answer without. `read`
    says how the first hits are read together, if they are (`RECIPES`).
    """

    text: str
    earlier: tuple[str, ...]
    profile_name: str
    profile: ProfileSettings
    strategies: Sequence[Strategy]
    escalation: Sequence[Strategy] = ()
    limit: int | None = None
    notice: str = ""
    by_session: bool = False
    degraded: str = ""
    strict: bool = False
    read: str = ""

    def by_words(self, degraded: str, settings: Settings) -> Question:
        """Return the same question, answered without meaning, and why."""
        profile = without_dense(self.profile)
        strategies = build_strategies(profile.strategies, settings)
        return dataclasses.replace(self, profile=profile, strategies=strategies, degraded=degraded)

    @property
    def is_staged(self) -> bool:
        """Return whether stages are mixed in: a fused rank is the contract's own, and gets none of ours."""
        return self.profile.rank_by == "score"


class ScoredOnce:
    """A strategy that scores a unit once for one question, however often it is asked; see `Strategy`."""

    def __init__(self, strategy: Strategy, query: QueryProfile) -> None:
        self.id = strategy.id
        self.propose, self.explain = strategy.propose, strategy.explain
        self._strategy, self._query = strategy, query
        self._claims: StrategyScores | None = None
        self._row_of: dict[str, int] = {}

    def score(self, query: QueryProfile, reading: Reading, ids: Sequence[str]) -> StrategyScores:
        """See `Strategy.score`: a score is the same in any company, so that it can be kept."""
        if query is not self._query:
            return self._strategy.score(query, reading, ids)
        missing = tuple(unit_id for unit_id in dict.fromkeys(ids) if unit_id not in self._row_of)
        if missing or self._claims is None:
            fresh = self._strategy.score(query, reading, missing)
            self._row_of |= {unit_id: row for row, unit_id in enumerate(missing, start=len(self._row_of))}
            self._claims = fresh if self._claims is None else self._claims.joined(fresh)
        return self._claims.take([self._row_of[unit_id] for unit_id in ids])


def score_once(question: Question, query: QueryProfile) -> Question:
    """Return a question that is looked up several times, with strategies that keep their scores."""
    return dataclasses.replace(question, strategies=[ScoredOnce(one, query) for one in question.strategies])


def read_question(engine: Engine, question: Question, reading: Reading) -> QueryProfile:
    """Read the question, find the time that it names, and embed it when the profile asks for meaning."""
    query = engine.read(question, reading)
    query = dataclasses.replace(query, **_find_time(engine, question, query, reading))
    embedder = engine.embedder() if "dense" in question.profile.strategies else None
    if embedder is None:
        return query
    return dataclasses.replace(query, vector=embedder.embed_query(_text_of(engine, query)), space=embedder.space)


def _text_of(engine: Engine, query: QueryProfile) -> str:
    text = f"{query.borrowed}\n{query.text}" if query.borrowed else query.text
    return without_names(text, query.participants) if engine.settings.stages.names_leave else text


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
    rest = set(TOKENIZERS[engine.settings.analysis.tokenizer](mention.rest))
    return {
        "time_range": (span.start, span.end),
        "only_time": asks_for_nothing(mention.rest),
        "time_terms": tuple(term for term in query.terms if term not in rest),
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


# ------------------------------------------------------------------------------------------------- registry


def _installed(group: str) -> dict[str, EntryPoint]:
    from importlib.metadata import entry_points  # noqa: PLC0415 - brings a parser of mail along; few have any

    return {entry.name: entry for entry in entry_points(group=group)}


def find_profile(name: str, settings: Settings) -> tuple[str, ProfileSettings]:
    """Return the profile called `name`, and its real name if that is another.

    Raises:
        UnknownProfileError: no such profile is installed.
    """
    if not isinstance(name, str):
        raise UnknownProfileError(f"profile = {quote_value(name)} is not a name; choose one of {', '.join(PROFILES)}")
    if (real := REAL_NAMES.get(name, name)) in PROFILES:
        return real, getattr(settings, real)
    installed = _installed(PROFILE_GROUP)
    if name not in installed:
        known = ", ".join(sorted({*PROFILES, *installed}))
        raise UnknownProfileError(f"there is no profile {quote_value(name)}; choose one of {known}")
    profile = installed[name].load()
    if not isinstance(profile, ProfileSettings):
        raise UnknownProfileError(
            f"the entry point of profile {quote_value(name)} is not a ProfileSettings; tell its author"
        )
    return name, profile


def without_dense(profile: ProfileSettings) -> ProfileSettings:
    """Return the profile for a memory that was told to have no embedder: the other strategies, by C6's weights."""
    if "dense" not in profile.strategies:
        return profile
    others = tuple(strategy_id for strategy_id in profile.strategies if strategy_id != "dense")
    return dataclasses.replace(profile, strategies=others or ("lexical",), mix={}, normalise="own")


@cache
def _strategy_class(strategy_id: str) -> type[Strategy]:
    if strategy_id in _BUILT_IN:
        return _BUILT_IN[strategy_id]
    installed = _installed(STRATEGY_GROUP)
    if strategy_id not in installed:
        known = ", ".join(sorted({*_BUILT_IN, *installed}))
        raise UnknownProfileError(f"there is no strategy {quote_value(strategy_id)}; installed are {known}")
    found: type[Strategy] = installed[strategy_id].load()
    return found


def build_strategies(ids: Sequence[str], settings: Settings) -> list[Strategy]:
    """Return the strategies called `ids`, in their order.

    Raises:
        UnknownProfileError: one of them is not installed.
    """
    return [_strategy_class(strategy_id)(settings) for strategy_id in ids]
