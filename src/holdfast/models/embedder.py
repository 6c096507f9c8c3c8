"""What an embedder is (C10), and what ours share: preparing a text, one at a time, checking the result."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import EmbedderError, InputError, shown

Vectors = NDArray[np.float32]

# Tokenising a text of a megabyte takes a second, to keep its first few hundred tokens. No language needs this many
# characters for one token, so the cut is felt only by runs of spaces and the like.
_CHARACTERS_PER_TOKEN = 32

# Enough of a digest to tell two prefixes, or two model files, apart.
DIGEST_SHOWN = 12


class Embedder(Protocol):
    """Turns texts into vectors. A text's vector depends on the text alone, never on its neighbours.

    On one machine with the same libraries it is the same to the last bit; elsewhere it may differ a little, because
    a model in whole numbers turns a difference in the last bit into one that can be seen.
    """

    @property
    def space(self) -> str:
        """Name the embedding space: model, dims, pooling, version. Only vectors of one space may be compared."""

    @property
    def dims(self) -> int:
        """Return how many numbers a vector has."""

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Return one row of `dims` numbers for each text; each row has length 1, or 0 where there is no meaning."""

    def embed_query(self, text: str) -> Vectors:
        """Return the vector of a question, comparable with those of documents."""


@dataclass(frozen=True, slots=True)
class Preparation:
    """What is done to a text before the model reads it."""

    max_tokens: int
    query_prefix: str = ""
    document_prefix: str = ""

    def query(self, text: str) -> str:
        """Return a question as the model should read it; empty when there is nothing to read."""
        return self._prepared(text, self.query_prefix)

    def document(self, text: str) -> str:
        """Return a document as the model should read it; empty when there is nothing to read."""
        return self._prepared(text, self.document_prefix)

    @property
    def mark(self) -> str:
        """Return the part of the space's name that tells two preparations apart."""
        prefixes = [_prefix(self.query_prefix), _prefix(self.document_prefix)]
        if not any(prefixes):
            return str(self.max_tokens)
        return f"{self.max_tokens}-{hashlib.sha256(repr(prefixes).encode()).hexdigest()[:DIGEST_SHOWN]}"

    def _prepared(self, text: str, prefix: str) -> str:
        # A lone surrogate is no character; tokenizers and JSON refuse it.
        text = text.encode("utf-8", "replace").decode("utf-8").strip()
        return _prefix(prefix) + text[: self.max_tokens * _CHARACTERS_PER_TOKEN] if text else ""


def _prefix(prefix: str) -> str:
    # A prefix is used to the letter, its last space included; one of spaces alone says nothing.
    return prefix if prefix.strip() else ""


@dataclass(frozen=True, slots=True)
class Identity:
    """Which model it is, for the name of its space."""

    model: str
    pooling: str
    version: str

    def space(self, dims: int, preparation: Preparation) -> str:
        """Name the embedding space; what is done to a text beforehand is part of the version."""
        return f"{self.model}/{dims}/{self.pooling}/{self.version}-{preparation.mark}"


def embed_each(texts: Sequence[str], embed: Callable[[str], Vectors], dims: int, threads: int = 1) -> Vectors:
    """Return one row for each text, embedding every text alone and `threads` of them at the same time.

    The threads live only as long as the call: nothing has to be closed, and a process may fork between two calls.
    """
    if isinstance(texts, str):
        raise InputError(f"embed_documents takes a list of texts, not the one text {shown(texts)}")
    found = np.zeros((len(texts), dims), np.float32)
    if threads > 1 and len(texts) > 1:
        with ThreadPoolExecutor(min(threads, len(texts)), thread_name_prefix="holdfast-embed") as pool:
            for row, vector in enumerate(pool.map(embed, texts)):
                found[row] = vector
    else:
        for row, text in enumerate(texts):
            found[row] = embed(text)
    return found


def unit_vector(values: NDArray[np.floating], dims: int, who: str) -> Vectors:
    """Return `values` at length 1 (zero stays zero), after making sure that they are a vector.

    Raises:
        EmbedderError: `values` is not `dims` finite numbers.
    """
    if values.shape != (dims,):
        raise EmbedderError(
            f"{who} gave an array of shape {values.shape} where a vector of {dims} numbers was due; "
            "the model has changed or is not an embedding model"
        )
    # In doubles the order in which a processor adds is lost when the result is rounded to floats.
    exact = values.astype(np.float64)
    with np.errstate(over="ignore"):
        length = float(np.sqrt(np.sum(exact * exact)))
    if not np.isfinite(length):
        raise EmbedderError(f"{who} gave a vector with a value that is no finite number; it cannot be compared")
    return (exact / length if length > 0.0 else exact).astype(np.float32)


def checked(vectors: object, count: int, dims: int, who: str) -> Vectors:
    """Return what an embedder gave for `count` texts, after making sure that it can be stored and compared.

    Raises:
        EmbedderError: it is not `count` rows of `dims` finite numbers.
    """
    try:
        found = np.asarray(vectors)
    except ValueError as error:
        raise EmbedderError(f"the embedder {who} gave rows of several lengths; {count} of {dims} were due") from error
    if found.shape != (count, dims) or found.dtype.kind != "f":
        raise EmbedderError(
            f"the embedder {who} gave {found.dtype} of shape {found.shape} where {count} vectors of {dims} were due"
        )
    with np.errstate(over="ignore"):
        narrow = found.astype(np.float32)
    if not np.isfinite(narrow).all():
        raise EmbedderError(
            f"the embedder {who} gave a vector with a value that is no finite number; it cannot be compared"
        )
    return narrow
