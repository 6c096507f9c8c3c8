"""Embedders behind an address: OpenAI-compatible servers and Ollama, with the standard library alone.

Texts go to the address in the settings and nowhere else: no redirect is followed and no proxy is used.
"""

from __future__ import annotations

import http.client
import json
import urllib.error
import urllib.request
from collections.abc import Sequence
from functools import cached_property
from typing import Any
from urllib.parse import SplitResult, urlsplit

import numpy as np

from holdfast.embedders.base import Identity, Preparation, Vectors, embed_each, unit_vector
from holdfast.errors import EmbedderError, SettingsError, shown

# Where each dialect listens, under the base address.
_PATHS = {"openai": "/v1/embeddings", "ollama": "/api/embed"}
# Without the server's tokenizer a text is cut by characters: about four of them make a token of English.
_CHARACTERS_PER_TOKEN = 4
# A vector of 4,096 numbers is about 100 kB of JSON; an endless answer must not fill the memory.
_LONGEST_ANSWER = 16 * 1024 * 1024
# How much of an unexpected answer an error shows.
_SHOWN_ANSWER = 200
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
        self._address = _address(dialect, url)
        self._model = model
        self._preparation = preparation
        self._api_key = _header_value(api_key)
        self._timeout_s = timeout_s
        self._threads = threads
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), _NoRedirect())

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
        return unit_vector(self._numbers(cut), self.dims, self._who)

    def _numbers(self, text: str) -> np.ndarray[Any, np.dtype[np.float64]]:
        answer = self._ask({"model": self._model, "input": [text]})
        try:
            [found] = (
                answer["embeddings"] if self._dialect == "ollama" else [row["embedding"] for row in answer["data"]]
            )
            numbers = np.array(found, np.float64)
        except (KeyError, TypeError, ValueError, OverflowError):
            raise EmbedderError(
                f"{self._who} did not answer with one vector for one text, but with {self._excerpt(answer)}; "
                "check embedding.url and embedding.model"
            ) from None
        if numbers.ndim != 1 or numbers.size == 0:
            raise EmbedderError(f"{self._who} answered with an array of shape {numbers.shape}, not with a vector")
        return numbers

    def _ask(self, question: dict[str, object]) -> Any:  # noqa: ANN401 - whatever JSON the server sends
        content = self._content(json.dumps(question).encode())
        try:
            return json.loads(content)
        except (ValueError, RecursionError):
            raise EmbedderError(
                f"{self._who} did not answer with JSON but with {self._excerpt(content)}; check embedding.url"
            ) from None

    def _content(self, body: bytes) -> bytes:
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if self._api_key:
            headers["Authorization"] = f"Bearer {self._api_key}"
        request = urllib.request.Request(self._address.geturl(), body, headers)  # noqa: S310 - http or https, see _address
        try:
            with self._opener.open(request, timeout=self._timeout_s) as response:
                content = bytes(response.read(_LONGEST_ANSWER))
        except urllib.error.HTTPError as error:
            with error:
                excerpt = self._excerpt(error.read(_SHOWN_ANSWER * 4))
            # No cause: its text is the server's, and everything of use in it has just been copied.
            raise EmbedderError(
                f"{self._who} answered HTTP {error.code}: {excerpt}; check embedding.model and embedding.api_key"
            ) from None
        except (OSError, http.client.HTTPException) as error:
            raise self._unreachable(error) from error
        return content

    def _unreachable(self, error: Exception) -> EmbedderError:
        reason = getattr(error, "reason", error)
        if isinstance(reason, TimeoutError):
            return EmbedderError(
                f"{self._who} gave no answer within {self._timeout_s:g} s; "
                "raise embedding.timeout_s or look at the server"
            )
        return EmbedderError(
            f"{self._who} cannot be reached: {self._excerpt(str(reason) or type(reason).__name__)}; "
            "start the server or check embedding.url"
        )

    @property
    def _who(self) -> str:
        # Without the query: a key may be hidden in it.
        return f"the embedding endpoint {self._address._replace(query='').geturl()}"

    def _excerpt(self, answer: object) -> str:
        """Return the beginning of what came back, printable, on one line and without the key."""
        text = answer.decode("utf-8", "replace") if isinstance(answer, bytes) else str(answer)
        if self._api_key:
            text = text.replace(self._api_key, "(hidden)")
        line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
        return (line if len(line) <= _SHOWN_ANSWER else f"{line[:_SHOWN_ANSWER]}…") or "nothing"


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Lets a redirect be an error: it would carry texts and the key to an address nobody chose."""

    def redirect_request(self, *_: object) -> None:
        return None


def _address(dialect: str, url: str) -> SplitResult:
    """Return where to send requests, whether `url` is the server, its API or the very path."""
    if "@" in url:
        raise SettingsError("embedding.url holds a name or password (not shown); put a key into embedding.api_key")
    try:
        parts = urlsplit(url.strip())
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0 and url.isascii()
    except ValueError:
        usable = False
    if not usable:
        raise SettingsError(
            f"embedding.url = {shown(url)} is no address of a server; write it as http://host:port or https://host"
        )
    path, wanted = parts.path.rstrip("/"), _PATHS[dialect]
    api = wanted[: wanted.rindex("/")]
    if path.endswith(api):
        path += wanted.removeprefix(api)
    elif not path.endswith(wanted):
        path += wanted
    return parts._replace(path=path, fragment="")


def _header_value(api_key: str) -> str:
    """Return the key if it can be sent in a header; the error does not show it."""
    key = api_key.strip()
    if not (key.isascii() and key.isprintable()):
        raise SettingsError(
            "embedding.api_key has characters that no key has (its value is not shown); copy it again"
        )
    return key
