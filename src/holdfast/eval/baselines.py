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

from holdfast.analysis.lexical import terms
from holdfast.analysis.tokens import estimate
from holdfast.embedders.base import Embedder
from holdfast.errors import InputError, MissingExtraError, shown
from holdfast.eval.data import Haystack, Message, Question
from holdfast.eval.systems import Prompt, Ranking, Reader

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
# The constant of the paper that proposed reciprocal rank fusion (Cormack and others, 2009).
_RRF = 60


def plain_words(text: str) -> list[str]:
    """Return lower-case words without function words, not stemmed."""
    return [word for word in _WORD.findall(text.lower()) if word not in _FUNCTION_WORDS]


def plain_text(message: Message) -> str:
    """Return what a plain index is given: title, or date and speaker, before the text."""
    if message.speaker:
        return f"{message.at:%B} {message.at.day} {message.at.year} {message.speaker}: {message.text}"
    return f"{message.title} {message.text}".strip()


@dataclass(frozen=True, slots=True)
class Baseline:
    """A recipe: words by BM25, meaning by cosine, one of them or both.

    `fusion` joins the two; `share` is the dense part of a min-max mix. Without `names`, the participants' names leave
    the question before it is embedded.
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
    groups: list[list[Message]] = field(init=False)
    index: Any = field(init=False, default=None)
    vectors: NDArray[np.float32] | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        messages = self.haystack.messages
        if self.haystack.level == "session":
            by_session: dict[str, list[Message]] = {}
            for message in messages:
                by_session.setdefault(message.session, []).append(message)
            self.groups = list(by_session.values())
        else:
            self.groups = [[message] for message in messages]
        if self.recipe.words is not None:
            self.index = _bm25s().BM25(method="lucene", k1=self.recipe.k1, b=self.recipe.b)
            tokens = [self._words(" ".join(plain_text(message) for message in group)) for group in self.groups]
            self.index.index(tokens, show_progress=False)
        if self.recipe.dense:
            texts = ["\n".join(_embedded(message) for message in group) for group in self.groups]
            self.vectors = self.embedder.embed_documents(texts)

    def rank(self, question: Question) -> Ranking:
        """Order all that the question may see by score; equal ones keep their order."""
        shown = self._shown(question)
        scores = self._scores(question)[:shown]
        best = np.argsort(-scores, kind="stable")
        return Ranking(tuple(message.id for place in best for message in self.groups[place]))

    def prompts(self, question: Question, budgets: Sequence[int]) -> Mapping[int, Prompt]:
        """Fill each budget in the order of the ranking, up to the first message that does not fit."""
        by_id = {message.id: message for message in self.haystack.messages}
        ranked = [by_id[item] for item in self.rank(question).ids]
        return {budget: pack(ranked, budget) for budget in budgets}

    def _shown(self, question: Question) -> int:
        if self.haystack.level != "session":
            return question.visible
        seen = {message.session for message in self.haystack.messages[: question.visible]}
        return len(seen)

    def _scores(self, question: Question) -> Scores:
        lexical, dense = self._lexical(question), self._dense(question)
        if lexical is None or dense is None:
            only = dense if lexical is None else lexical
            if only is None:
                raise InputError(f"baseline {shown(self.recipe.name)} has neither words nor vectors; give it one")
            return only
        if self.recipe.fusion == "rrf":
            return 1.0 / (_RRF + _ranks(lexical)) + 1.0 / (_RRF + _ranks(dense))
        return self.recipe.share * _spread(dense) + (1.0 - self.recipe.share) * _spread(lexical)

    def _lexical(self, question: Question) -> Scores | None:
        if self.index is None:
            return None
        words = list(dict.fromkeys(self._words(question.text)))
        if not words:
            return np.zeros(len(self.groups))
        return np.asarray(self.index.get_scores(words), np.float64)

    def _dense(self, question: Question) -> Scores | None:
        if self.vectors is None:
            return None
        text = question.text if self.recipe.names else without_names(question.text, self.haystack.participants)
        return self.vectors.astype(np.float64) @ self.embedder.embed_query(text).astype(np.float64)

    def _words(self, text: str) -> list[str]:
        return plain_words(text) if self.recipe.words == "plain" else terms(text)


def _embedded(message: Message) -> str:
    return f"{message.title}\n{message.text}" if message.title else message.text


def without_names(question: str, participants: Sequence[str]) -> str:
    """Return the question without the participants' names, and their possessive endings."""
    for name in participants:
        question = re.sub(rf"\b{re.escape(name)}(?:['’]s)?\b", " ", question, flags=re.IGNORECASE)
    return " ".join(question.split())


def _spread(scores: Scores) -> Scores:
    low, high = scores.min(), scores.max()
    return (scores - low) / (high - low) if high > low else np.zeros_like(scores)


def _ranks(scores: Scores) -> Scores:
    ranks = np.empty(len(scores))
    ranks[np.argsort(-scores, kind="stable")] = np.arange(1, len(scores) + 1)
    return ranks


def pack(ranked: Sequence[Message], budget: int) -> Prompt:
    """Take messages in their order until one does not fit."""
    taken: list[Message] = []
    spent = 0
    for message in ranked:
        spent += estimate(message.text)
        if spent > budget:
            break
        taken.append(message)
    return Prompt("\n".join(message.text for message in taken), frozenset(message.id for message in taken))


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
        Baseline("dense", dense=True),
        Baseline("dense-nameless", dense=True, names=False),
        Baseline("rrf", words="stemmed", dense=True, fusion="rrf"),
        Baseline("mix", words="stemmed", dense=True, fusion="mix"),
        Baseline("mix-nameless", words="stemmed", dense=True, fusion="mix", names=False),
    )
}
