"""What anyone could build in an afternoon, measured the same way: BM25, cosine, and the two together."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from Stemmer import Stemmer

from holdfast.assembly.context import Recalled
from holdfast.assembly.pack import fill
from holdfast.assembly.plan import ContextRequest, plan_tail
from holdfast.errors import InputError, MissingExtraError, shown
from holdfast.eval.data import GoldQuestion, Haystack, Message
from holdfast.eval.run import Prompt, Ranking, Reader, as_unit
from holdfast.language.query import without_names
from holdfast.language.tokens import estimate
from holdfast.models.embedder import Embedder
from holdfast.settings import AssemblySettings

Scores = NDArray[np.float64]
Words = Callable[[str], list[str]]

_WORD = re.compile(r"[a-z0-9]+")
# Function words that plain BM25 set-ups leave out; published figures of this kind name no list, this one fits them.
_FUNCTION_WORDS = frozenset(
    """
    a about am an and are as at be been being but by can could did do does for from had has have he her him his how i
    if in into is it its me my not of on or our she should so than that the their them then there these they this
    those to us was we were what when where which who whom why will with would you your
    """.split()
)
# More than the largest budget holds of the shortest messages.
_MOST_RENDERED = 400
# The constant of the paper that proposed reciprocal rank fusion (Cormack and others, 2009).
_RRF = 60


def plain_words(text: str) -> list[str]:
    """Return lower-case words without function words, not stemmed."""
    return [word for word in _WORD.findall(text.lower()) if word not in _FUNCTION_WORDS]


def plain_text(message: Message) -> str:
    """Return what a plain index is given: the date and the speaker, or the title, before the text."""
    if message.speaker:
        return f"{message.at:%I:%M %p} {message.at.day} {message.at:%B %Y} {message.spoken}"
    return message.spoken


@dataclass(frozen=True, slots=True)
class Baseline:
    """A recipe: words by BM25, meaning by cosine, one of them or both.

    `plain` words are lower-cased and nothing more; `stemmed` ones are the library's own defaults with Porter's stems.
    `fusion` joins the two; `share` is the dense part of a min-max mix. Without `names`, the participants' names leave
    the question first.
    """

    name: str
    words: Literal["plain", "stemmed"] | None = None
    dense: bool = False
    fusion: Literal["rrf", "mix"] | None = None
    share: float = 0.6
    names: bool = True
    k1: float = 1.2
    b: float = 0.75

    @contextmanager
    def read(self, haystack: Haystack, embedder: Embedder) -> Iterator[Reader]:
        """Index the haystack: its messages, or its sessions whole where the gold names sessions."""
        yield _BaselineReader(self, haystack, embedder)


@dataclass(slots=True)
class _BaselineReader:
    recipe: Baseline
    haystack: Haystack
    embedder: Embedder
    messages: _Documents = field(init=False)
    sessions: _Documents = field(init=False)
    refused: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        by_session: dict[str, list[Message]] = {}
        for message in self.haystack.messages:
            by_session.setdefault(message.session, []).append(message)
        whole = self.recipe.words == "plain" or self.haystack.level == "session"
        self.sessions = _Documents(self.recipe, list(by_session.values()) if whole else [], self.embedder)
        single = [[message] for message in self.haystack.messages] if self.haystack.level == "message" else []
        self.messages = _Documents(self.recipe, single, self.embedder)

    def rank(self, question: GoldQuestion) -> Ranking:
        """Order all that the question may see by score; equal ones keep their order."""
        text = question.text if self.recipe.names else without_names(question.text, self.haystack.participants)
        seen = self.haystack.messages[: question.visible]
        sessions = self.sessions.ranked(text, len({message.session for message in seen}))
        messages = self.messages.ranked(text, len(seen))
        return Ranking(
            tuple(group[0].id for group in messages), sessions=tuple(group[0].session for group in sessions)
        )

    def prompts(self, question: GoldQuestion, budgets: Sequence[int]) -> Mapping[int, Prompt]:
        """Render the ranking as the product renders what it recalls, skipping what does not fit."""
        by_id = {message.id: message for message in self.haystack.messages}
        ranked = [Recalled(as_unit(by_id[item]), 0.0) for item in self.rank(question).ids[:_MOST_RENDERED]]
        found = {}
        for budget in budgets:
            plan = plan_tail(ContextRequest(budget, estimate, AssemblySettings(packing="skip")))
            context = fill(plan, ranked)
            found[budget] = Prompt(context.text, frozenset(item.id for item in context.items))
        return found


@dataclass(slots=True)
class _Documents:
    """Messages, or whole sessions, as one index sees them."""

    recipe: Baseline
    groups: list[list[Message]]
    embedder: Embedder
    index: Any = field(init=False, default=None)
    vectors: NDArray[np.float32] | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        if not self.groups:
            return
        if self.recipe.words is not None:
            text = plain_text if self.recipe.words == "plain" else _spoken
            words = self._words([" ".join(map(text, group)) for group in self.groups])
            if any(words):  # the library cannot index nothing; without a word every document scores 0
                self.index = _bm25s().BM25(method="lucene", k1=self.recipe.k1, b=self.recipe.b)
                self.index.index(words, show_progress=False)
        if self.recipe.dense:
            self.vectors = self.embedder.embed_documents(["\n".join(map(_spoken, group)) for group in self.groups])

    def ranked(self, text: str, visible: int) -> list[list[Message]]:
        """Return the first `visible` documents, best first."""
        if not self.groups:
            return []
        best = np.argsort(-self._scores(text, visible), kind="stable")
        return [self.groups[place] for place in best]

    def _scores(self, text: str, visible: int | None = None) -> Scores:
        """Score what may be seen. What is said later takes no part in a spread or a rank."""
        lexical, dense = self._lexical(text, visible), self._dense(text, visible)
        if lexical is None or dense is None:
            only = dense if lexical is None else lexical
            if only is None:
                raise InputError(f"baseline {shown(self.recipe.name)} has neither words nor vectors; give it one")
            return only
        if self.recipe.fusion == "rrf":
            return 1.0 / (_RRF + _ranks(lexical)) + 1.0 / (_RRF + _ranks(dense))
        return self.recipe.share * _spread(dense) + (1.0 - self.recipe.share) * _spread(lexical)

    def _lexical(self, text: str, visible: int | None) -> Scores | None:
        if self.recipe.words is None:
            return None
        [words] = self._words([text])
        distinct = list(dict.fromkeys(words))
        if self.index is None or not distinct:
            return np.zeros(len(self.groups))[:visible]
        return np.asarray(self.index.get_scores(distinct), np.float64)[:visible]

    def _dense(self, text: str, visible: int | None) -> Scores | None:
        if self.vectors is None:
            return None
        return self.vectors[:visible].astype(np.float64) @ self.embedder.embed_query(text).astype(np.float64)

    def _words(self, texts: list[str]) -> list[list[str]]:
        if self.recipe.words == "plain":
            return [plain_words(text) for text in texts]
        found: list[list[str]] = _bm25s().tokenize(
            texts, stemmer=Stemmer("porter"), return_ids=False, show_progress=False
        )
        return found


def _spoken(message: Message) -> str:
    return message.spoken


def _spread(scores: Scores) -> Scores:
    low, high = scores.min(initial=np.inf), scores.max(initial=-np.inf)
    return (scores - low) / (high - low) if high > low else np.zeros_like(scores)


def _ranks(scores: Scores) -> Scores:
    ranks = np.empty(len(scores))
    ranks[np.argsort(-scores, kind="stable")] = np.arange(1, len(scores) + 1)
    return ranks


def _bm25s() -> Any:  # noqa: ANN401 - the library has no types
    try:
        return import_module("bm25s")
    except ImportError as error:
        raise MissingExtraError("the baselines need bm25s; pip install 'holdfast[eval]'") from error


BASELINES: Mapping[str, Baseline] = {
    baseline.name: baseline
    for baseline in (
        Baseline("bm25", words="plain"),
        Baseline("bm25-stemmed", words="stemmed"),
        Baseline("bm25-short", words="stemmed", b=0.35),
        Baseline("dense", dense=True),
        Baseline("dense-nameless", dense=True, names=False),
        Baseline("rrf", words="stemmed", dense=True, fusion="rrf"),
        Baseline("mix", words="stemmed", dense=True, fusion="mix"),
        Baseline("mix-nameless", words="stemmed", dense=True, fusion="mix", names=False),
    )
}
