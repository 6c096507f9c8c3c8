"""An embedder for tests, without a model."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np

from holdfast.language.lexical import terms
from holdfast.models.embedder import Vectors, embed_each, unit_vector


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
