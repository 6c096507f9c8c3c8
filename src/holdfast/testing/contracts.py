"""What every embedder (C10) and every strategy (C7) promises, and an embedder for tests, without a model.

Subclass `EmbedderContract` or `StrategyContract`, say how to make yours, and run it with pytest.
"""

from __future__ import annotations

import hashlib
import unittest
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

import numpy as np

from holdfast import sample
from holdfast.memory import Memory
from holdfast.models.embedder import Embedder, Vectors, embed_each, unit_vector
from holdfast.openers import derivation
from holdfast.retrieval.strategy import Strategy, retrieve
from holdfast.settings import Settings
from holdfast.store.sqlite.sqlite_store import SqliteStore
from holdfast.testing.builders import Asker, draft, expired_deadline, no_deadline, view
from holdfast.text.questions import profile_query
from holdfast.text.terms import terms
from holdfast.types import RetrievalResult

_TEXTS = (
    "The ferry to the island leaves at nine.",
    "Ana is allergic to walnuts.",
    "ok",
    "The spare key hangs behind the blue door, next to the meter.",
    "We moved the meeting from Tuesday to Thursday because the room was taken, and nobody told Tomas about it.",
)
_STRANGE_TEXTS = (
    "", "   \t\n  ", "\u200b", "Grüße aus Zürich, çok güzel", "漢字とかな交じり文", "مرحبا بالعالم", "👩‍👩‍👧 🎉🎉🎉",
    "e\u0301\u0301\u0301", "null\x00byte \x1b[31mred", "[CLS] [SEP] [PAD] [UNK] <s> </s>", "word " * 20_000,
    "x" * 100_000,
)  # fmt: skip
# (a question, what answers it, what does not), with no content word in common.
_MEANINGS = (
    ("What does the dog eat?", "We feed our puppy rice and chicken.", "The parliament passed the budget."),
    ("How is the weather?", "It rained all day and a storm is coming.", "He repaired the engine of his car."),
    ("my physician's advice", "The doctor told me to rest my knee.", "The train to Porto was cancelled."),
    ("purchasing a home", "They bought a small house by the sea.", "Add two eggs and stir the sugar in."),
)
# The same words as question and as document, without prefixes, must not end up far apart.
_SAME_TEXT = 0.5
# Vectors have length 1, or 0 where there is nothing to embed.
_LENGTH_TOLERANCE = 1e-5


def cosine(left: Vectors, right: Vectors) -> float:
    """Return the cosine of two vectors of length 1."""
    return float(np.dot(left.astype(np.float64), right.astype(np.float64)))


def check_vectors(found: Vectors, rows: int, embedder: Embedder) -> None:
    """Assert that `found` is a matrix of finite single-precision vectors of length 1 or 0."""
    assert found.shape == (rows, embedder.dims)
    assert found.dtype == np.float32
    assert np.isfinite(found).all()
    lengths = np.linalg.norm(found.astype(np.float64), axis=1)
    assert (np.minimum(np.abs(lengths - 1.0), lengths) < _LENGTH_TOLERANCE).all()


class EmbedderContract(ABC):
    """Each test makes its own embedder."""

    # Set to False for an embedder that sees words only, such as a hash: the tests of meaning are then skipped.
    understands_meaning: ClassVar[bool] = True
    # Set to True for one that reads questions and documents with different prefixes.
    uses_prefixes: ClassVar[bool] = False

    @abstractmethod
    def make_embedder(self) -> Embedder:
        """Return the embedder under test; every call gives an equal one."""

    def test_its_space_and_size_are_always_the_same(self) -> None:
        first, second = self.make_embedder(), self.make_embedder()
        before = (first.space.strip(), first.dims)
        assert all(before)
        first.embed_documents(_TEXTS)
        first.embed_query(_TEXTS[0])
        assert (first.space, first.dims) == (second.space, second.dims) == before

    def test_one_row_for_each_text_and_one_vector_for_a_question(self) -> None:
        embedder = self.make_embedder()
        for texts in (_TEXTS, (), _STRANGE_TEXTS):
            check_vectors(embedder.embed_documents(texts), len(texts), embedder)
            for text in texts:
                check_vectors(np.array([embedder.embed_query(text)]), 1, embedder)
        assert len({row.tobytes() for row in embedder.embed_documents(_TEXTS)}) == len(_TEXTS)

    def test_the_same_text_gives_the_same_bytes(self) -> None:
        first, second = self.make_embedder(), self.make_embedder()
        kept = first.embed_documents(_TEXTS)
        found = kept.tobytes()
        kept[:] = 0.0  # it belongs to the caller
        assert found == first.embed_documents(_TEXTS).tobytes() == second.embed_documents(_TEXTS).tobytes()
        assert first.embed_query(_TEXTS[1]).tobytes() == second.embed_query(_TEXTS[1]).tobytes()

    def test_neighbours_and_order_do_not_change_a_vector(self) -> None:
        embedder = self.make_embedder()
        together = embedder.embed_documents(_TEXTS)
        backwards = embedder.embed_documents(_TEXTS[::-1])[::-1]
        crowded = embedder.embed_documents([*_STRANGE_TEXTS, *_TEXTS])[len(_STRANGE_TEXTS) :]
        alone = np.concatenate([embedder.embed_documents([text]) for text in _TEXTS])
        assert together.tobytes() == backwards.tobytes() == crowded.tobytes() == alone.tobytes()

    def test_questions_and_documents_share_a_space(self) -> None:
        if self.uses_prefixes:
            raise unittest.SkipTest("with prefixes a text reads differently as question and as document")
        embedder = self.make_embedder()
        for text, row in zip(_TEXTS, embedder.embed_documents(_TEXTS), strict=True):
            assert cosine(embedder.embed_query(text), row) > _SAME_TEXT

    def test_related_texts_are_nearer_than_unrelated_ones(self) -> None:
        if not self.understands_meaning:
            raise unittest.SkipTest("this embedder sees words only")
        embedder = self.make_embedder()
        for question, related, unrelated in _MEANINGS:
            near, far = embedder.embed_documents([related, unrelated])
            asked = embedder.embed_query(question)
            assert cosine(asked, near) > cosine(asked, far), question


class HashEmbedder:
    """A bag of hashed words (C2 terms). For tests only: it understands nothing, equal words are all it sees."""

    def __init__(self, dims: int = 64) -> None:
        self.dims = dims
        self.space = f"hash/{dims}/bag/1"

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Return one row for each text."""
        return embed_each(texts, self.embed_query, self.dims)

    def embed_query(self, text: str) -> Vectors:
        """Return the sum of one signed axis for each word, at length 1."""
        total = np.zeros(self.dims)
        for term in terms(text):
            number = int.from_bytes(hashlib.blake2b(term.encode("utf-8", "replace"), digest_size=8).digest(), "big")
            # The sign lets words that share an axis cancel out instead of looking alike.
            total[(number >> 1) % self.dims] += 1.0 if number & 1 else -1.0
        return unit_vector(total, self.dims, "the hash embedder")


_QUESTION = "Which flight are they rebooked on in November?"
_EVERYTHING = 1_000


class StrategyContract(ABC):
    """Each test asks the strategy about the sample history, or about a small store of its own."""

    @abstractmethod
    def make_strategy(self, settings: Settings) -> Strategy:
        """Return the strategy under test."""

    def open_sample(self, place: Path) -> Asker:
        """Return a store that holds the sample history, and who asks it."""
        memory = Memory.open(place / "sample.db", settings=Settings())
        for session, messages in sample.sessions():
            memory.remember(messages, user=sample.USER, session=session)
        return Asker(memory.store, view(sample.USER))

    def ask(self, question: str, asker: Asker, depth: int = _EVERYTHING, *, late: bool = False) -> RetrievalResult:
        """Return what the strategy finds, with all the time there is or with none."""
        strategy, deadline = self.make_strategy(Settings()), expired_deadline() if late else no_deadline()
        return asker.look(lambda reading: retrieve(strategy, profile_query(question), reading, depth, deadline))

    def test_scores_are_finite_ordered_and_normalised(self, tmp_path: Path) -> None:
        asker = self.open_sample(tmp_path)
        for question in sample.questions():
            result = self.ask(question["question"], asker)
            claims = result.candidates
            assert all(claim.normalized_score == min(claim.raw_score / result.scale, 1.0) for claim in claims)
            assert all(0.0 < claim.normalized_score <= 1.0 for claim in claims)
            keys = [(-claim.raw_score, claim.unit_id) for claim in claims]
            assert keys == sorted({*keys})
            assert np.isfinite(result.claims.raw).all()
            assert (result.claims.raw > 0.0).all()

    def test_a_smaller_depth_returns_the_head_of_a_larger_one_every_time(self, tmp_path: Path) -> None:
        asker = self.open_sample(tmp_path)
        wide = self.ask("the bakery and the oven", asker).candidates
        for depth in (1, 3, 10, _EVERYTHING):
            assert self.ask("the bakery and the oven", asker, depth).candidates == wide[:depth]

    def test_a_score_is_the_same_in_any_company_and_0_without_a_find(self, tmp_path: Path) -> None:
        asker, strategy = self.open_sample(tmp_path), self.make_strategy(Settings())
        found = self.ask(_QUESTION, asker).claims
        strangers = [name for name in asker.scan() if name not in found.ids]
        company = ["nobody", *found.ids[::-1], *strangers]
        with asker.store.reading(asker.view) as reading:
            scored = strategy.score(profile_query(_QUESTION), reading, company)
            alone = [strategy.score(profile_query(_QUESTION), reading, [name]) for name in company]
            unheard = strategy.score(profile_query("zyzzyva"), reading, company)
        assert scored.ids == tuple(company)
        assert scored.raw.tolist() == [float(one.raw[0]) for one in alone]
        assert scored.coverage.tolist() == [float(one.coverage[0]) for one in alone]
        rows = scored.rows_of(found.ids)
        assert (scored.raw[rows] == found.raw).all()
        assert (scored.matched[rows] == found.matched).all()
        assert scored.raw[0] == scored.raw[scored.rows_of(strangers)].sum() == unheard.raw.sum() == 0.0

    def test_it_says_who_it_is_and_accounts_for_its_scores(self, tmp_path: Path) -> None:
        asker, strategy = self.open_sample(tmp_path), self.make_strategy(Settings())
        result = self.ask(_QUESTION, asker)
        found = result.claims
        assert (bool(strategy.id), result.strategy_id, bool(found.ids)) == (True, strategy.id, True)
        with asker.store.reading(asker.view) as reading:
            accounts = strategy.explain(profile_query(_QUESTION), reading, [*found.ids, "nobody"])
        assert {*accounts} >= {*found.ids}
        for name, raw in zip(found.ids, found.raw.tolist(), strict=True):
            assert accounts[name].tree.compose() == accounts[name].tree.value == raw
            assert accounts[name].notes[0] == strategy.id

    def test_nobody_elses_units_are_found(self, tmp_path: Path) -> None:
        asker = Asker(SqliteStore.open(tmp_path / "two.db", Settings().store, derivation(Settings())))
        assert self.ask("anything at all", asker).candidates == ()
        asker.put(draft("a", "a lamp in the hall"), draft("b", "a lamp in the attic", user="ben"))
        assert self.ask("lamp in the hall", asker).claims.ids == ("a",)

    def test_time_that_has_run_out_is_reported_and_not_an_error(self, tmp_path: Path) -> None:
        asker = self.open_sample(tmp_path)
        late, whole = (self.ask("the new oven of the bakery in Lisbon", asker, late=yes) for yes in (True, False))
        assert (late.exhausted_budget, whole.exhausted_budget) == (True, False)
        assert {*late.claims.ids} <= {*whole.claims.ids}
