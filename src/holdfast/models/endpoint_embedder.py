"""Embedders behind an address: OpenAI-compatible servers and Ollama."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any
from urllib.parse import SplitResult

import numpy as np

from holdfast.errors import EmbedderError
from holdfast.models.embedder import Identity, Preparation, Vectors, embed_each, unit_vector
from holdfast.models.http import Endpoint, header_value, server_address

# Where each dialect listens, under the base address.
_PATHS = {"openai": "/v1/embeddings", "ollama": "/api/embed"}
# Without the server's tokenizer a text is cut by characters: about four of them make a token of English.
_CHARACTERS_PER_TOKEN = 4
# A vector of 4,096 numbers is about 100 kB of JSON.
_LONGEST_ANSWER = 16 * 1024 * 1024
# Any word would do to learn how long the vectors are.
_PROBE = "memory"


class EndpointEmbedder:
    """Asks a server, one text in each request. The server is first asked when `dims` or a vector is needed."""

    def __init__(
        self,
        dialect: str,
        url: str,
        model: str,
        preparation: Preparation,
        *,
        api_key: str = "",
        timeout_s: float = 30.0,
        threads: int = 1,
    ) -> None:
        self._dialect = dialect
        self._model = model
        self._preparation = preparation
        self._threads = threads
        self._endpoint = Endpoint(
            "embedding",
            _address(dialect, url),
            EmbedderError,
            timeout_s,
            _LONGEST_ANSWER,
            header_value("embedding", api_key),
        )

    @cached_property
    def dims(self) -> int:
        """Return how many numbers the server's vectors have."""
        return len(self._numbers(_PROBE))

    @property
    def space(self) -> str:
        """Name the embedding space; what the server does behind the model's name, only the server knows."""
        return Identity(self._model, "remote", self._dialect).space(self.dims, self._preparation)

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Return one row for each text."""
        return embed_each(texts, lambda text: self._embed(self._preparation.document(text)), self.dims, self._threads)

    def embed_query(self, text: str) -> Vectors:
        """Return the vector of a question."""
        return self._embed(self._preparation.query(text))

    def _embed(self, prepared: str) -> Vectors:
        if not prepared:
            # Servers refuse an empty text, and it means nothing.
            return np.zeros(self.dims, np.float32)
        cut = prepared[: self._preparation.max_tokens * _CHARACTERS_PER_TOKEN]
        return unit_vector(self._numbers(cut), self.dims, self._endpoint.who)

    def _numbers(self, text: str) -> np.ndarray[Any, np.dtype[np.float64]]:
        answer, who = self._endpoint.ask({"model": self._model, "input": [text]}), self._endpoint.who
        try:
            [found] = (
                answer["embeddings"] if self._dialect == "ollama" else [row["embedding"] for row in answer["data"]]
            )
            numbers = np.array(found, np.float64)
        except (KeyError, TypeError, ValueError, OverflowError):
            raise EmbedderError(
                f"{who} did not answer with one vector for one text, but with {self._endpoint.excerpt(answer)}; "
                "check embedding.url and embedding.model"
            ) from None
        if numbers.ndim != 1 or numbers.size == 0:
            raise EmbedderError(f"{who} answered with an array of shape {numbers.shape}, not with a vector")
        return numbers


def _address(dialect: str, url: str) -> SplitResult:
    """Return where to send requests, whether `url` is the server, its API or the very path."""
    parts, wanted = server_address("embedding", url), _PATHS[dialect]
    path, api = parts.path, wanted[: wanted.rindex("/")]
    if path.endswith(api):
        path += wanted.removeprefix(api)
    elif not path.endswith(wanted):
        path += wanted
    return parts._replace(path=path)
