"""The static embedder: a text's vector is the mean of its tokens' vectors, read from a table."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from tokenizers import Tokenizer

from holdfast.errors import EmbedderError
from holdfast.models.embedder import Identity, LocalEmbedder, Preparation, Vectors, unit_vector

_TABLE, _TOKENIZER = "embeddings.npy", "tokenizer.json"
_UNKNOWN = "[UNK]"


def load_potion(folder: Path, preparation: Preparation, identity: Identity) -> LocalEmbedder:
    """Read the table and the tokenizer of potion-base-8M.

    Tokenising is most of the work and holds the interpreter: threads would not help.

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
    dims, unknown = int(table.shape[1]), tokenizer.token_to_id(_UNKNOWN)

    def embed(prepared: str) -> Vectors:
        ids = [token for token in tokenizer.encode(prepared, add_special_tokens=False).ids if token != unknown]
        # The sum points where the mean points; of no tokens at all it is the zero vector.
        return unit_vector(table[ids].sum(axis=0, dtype=np.float64), dims, "the static model")

    return LocalEmbedder(embed, dims, identity, preparation, threads=1)
