"""What every embedder promises (C10), and one for tests, without a model.

Subclass `EmbedderContract`, say how to make yours, and run it with pytest.
"""

from __future__ import annotations

import hashlib
import unittest
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from holdfast.models.embedder import Embedder, Vectors, embed_each, unit_vector
from holdfast.text.terms import terms

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
