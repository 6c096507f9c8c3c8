"""The static embedder: a text's vector is the mean of its tokens' vectors, read from a table."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from holdfast.errors import EmbedderError
from holdfast.models.embedder import Identity, Preparation, Vectors, embed_each, unit_vector

_TABLE, _TOKENIZER = "embeddings.npy", "tokenizer.json"
_UNKNOWN = "[UNK]"


class PotionEmbedder:
    """Looks up potion-base-8M. Tokenising is most of the work and holds the interpreter: threads would not help."""

    def __init__(
        self, table: NDArray[np.float16], tokenizer: Tokenizer, space: str, preparation: Preparation
    ) -> None:
        self.dims = int(table.shape[1])
        self.space = space
        self._table = table
        self._tokenizer = tokenizer
        self._unknown = tokenizer.token_to_id(_UNKNOWN)
        self._preparation = preparation

    @classmethod
    def load(cls, folder: Path, preparation: Preparation, identity: Identity) -> Self:
        """Read the table and the tokenizer.

        Raises:
            EmbedderError: a file is missing or broken, or the two do not belong together.
        """
        try:
            table = np.load(folder / _TABLE, allow_pickle=False)
            tokenizer = Tokenizer.from_buffer((folder / _TOKENIZER).read_bytes())
            tokenizer.enable_truncation(preparation.max_tokens)
        except (OSError, ValueError, EOFError) as error:
            raise EmbedderError(
                f"the static model in {folder} cannot be read: {error}; install Holdfast again"
            ) from error
        highest = max(tokenizer.get_vocab(with_added_tokens=True).values())
        if table.ndim != 2 or highest >= len(table):
            raise EmbedderError(
                f"{folder / _TABLE} of shape {table.shape} has no row for token {highest} of {_TOKENIZER}; "
                "the two belong to different models"
            )
        return cls(table, tokenizer, identity.space(table.shape[1], preparation), preparation)

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Return one row for each text."""
        return embed_each(texts, lambda text: self._embed(self._preparation.document(text)), self.dims)

    def embed_query(self, text: str) -> Vectors:
        """Return the vector of a question."""
        return self._embed(self._preparation.query(text))

    def _embed(self, prepared: str) -> Vectors:
        ids = [
            token
            for token in self._tokenizer.encode(prepared, add_special_tokens=False).ids
            if token != self._unknown
        ]
        # The sum points where the mean points; of no tokens at all it is the zero vector.
        return unit_vector(self._table[ids].sum(axis=0, dtype=np.float64), self.dims, "the static model")
