"""What an embedder is (C10), what ours share (preparing a text, checking a vector), and the models that ship."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import resources
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import EmbedderError, InputError, failing_as, quote_value
from holdfast.values import dataclass

Vectors = NDArray[np.float32]

# Tokenising a text of a megabyte takes a second, to keep its first few hundred tokens. No language needs this many
# characters for one token, so the cut is felt only by runs of spaces and the like.
CHARACTERS_PER_TOKEN = 32
# Enough of a digest to tell two prefixes, or two model files, apart.
DIGEST_SHOWN = 12

SHIPPED = ("minilm", "potion")
READER = "reader"
PROVENANCE = "PROVENANCE.json"
# The one recorded file that no vector depends on.
_LICENCE = "LICENSE"
_TABLE, _TOKENIZER = "embeddings.npy", "tokenizer.json"
_UNKNOWN = "[UNK]"


class Embedder(Protocol):
    """Turns texts into vectors. A text's vector depends on the text alone, never on its neighbours.

    On one machine with the same libraries it is the same to the last bit; elsewhere it may differ a little, because
    a model in whole numbers turns a difference in the last bit into one that can be seen.

    One that cannot embed now raises `EmbedderError`: questions are then answered by words, and units wait. Whatever
    else it raises counts as the same (`CheckedEmbedder`).
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


class CheckedEmbedder:
    """An embedder that raises nothing but `EmbedderError`, and gives nothing but vectors; see `Embedder`."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._who = f"the embedder {type(embedder).__qualname__}"

    @property
    def space(self) -> str:
        """See `Embedder.space`."""
        with failing_as(EmbedderError, self._who):
            return self._embedder.space

    @property
    def dims(self) -> int:
        """See `Embedder.dims`."""
        with failing_as(EmbedderError, self._who):
            return self._embedder.dims

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """See `Embedder.embed_documents`."""
        with failing_as(EmbedderError, self._who):
            found = self._embedder.embed_documents(texts)
        return check_vectors(found, len(texts), self.dims, self.space)

    def embed_query(self, text: str) -> Vectors:
        """See `Embedder.embed_query`."""
        with failing_as(EmbedderError, self._who):
            found = self._embedder.embed_query(text)
        [vector] = check_vectors([found], 1, self.dims, self.space)
        return np.asarray(vector)


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
        prefixes = [clean_prefix(self.query_prefix), clean_prefix(self.document_prefix)]
        if not any(prefixes):
            return str(self.max_tokens)
        return f"{self.max_tokens}-{hashlib.sha256(repr(prefixes).encode()).hexdigest()[:DIGEST_SHOWN]}"

    def _prepared(self, text: str, prefix: str) -> str:
        text = clean_text(text)
        return clean_prefix(prefix) + text[: self.max_tokens * CHARACTERS_PER_TOKEN] if text else ""


def clean_text(text: str) -> str:
    """Return a text as models can read it: a lone surrogate is no character, and tokenizers and JSON refuse it."""
    return text.encode("utf-8", "replace").decode("utf-8").strip()


def clean_prefix(prefix: str) -> str:
    """Return a prefix to the letter, its last space included; one of spaces alone says nothing."""
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


class LocalEmbedder:
    """A loaded model: `embed` turns one prepared text into its vector, which is the zero vector for no words."""

    def __init__(
        self, embed: Callable[[str], Vectors], dims: int, identity: Identity, preparation: Preparation, threads: int
    ) -> None:
        self.dims = dims
        self.space = identity.space(dims, preparation)
        self._embed = embed
        self._preparation = preparation
        self._threads = threads

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Return one row for each text."""
        return embed_each(texts, lambda text: self._embed(self._preparation.document(text)), self.dims, self._threads)

    def embed_query(self, text: str) -> Vectors:
        """Return the vector of a question."""
        return self._embed(self._preparation.query(text))


def embed_each(texts: Sequence[str], embed: Callable[[str], Vectors], dims: int, threads: int = 1) -> Vectors:
    """Return one row for each text, embedding every text alone and `threads` of them at the same time.

    The threads live only as long as the call: nothing has to be closed, and a process may fork between two calls.
    """
    if isinstance(texts, str):
        raise InputError(f"embed_documents takes a list of texts, not the one text {quote_value(texts)}")
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


def check_vectors(vectors: object, count: int, dims: int, who: str) -> Vectors:
    """Return what an embedder gave for `count` texts, after making sure that it can be stored and compared.

    Raises:
        EmbedderError: it is not `count` rows of `dims` finite numbers.
    """
    try:
        found = np.asarray(vectors)
    except (ValueError, TypeError) as error:
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


# ------------------------------------------------------------------------------------------- shipped models


def shipped_folder(name: str) -> Path:
    """Return the folder of a shipped model."""
    return Path(str(resources.files("holdfast.models"))) / name


def read_provenance(folder: Path) -> dict[str, Any]:
    """Return what is recorded about the model in `folder`.

    Raises:
        EmbedderError: the record is missing or cannot be read.
    """
    try:
        record: dict[str, Any] = json.loads((folder / PROVENANCE).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise EmbedderError(
            f"the shipped model in {folder} has no readable {PROVENANCE}; install Holdfast again"
        ) from error
    return record


def shipped_identity(name: str) -> Identity:
    """Return which model is shipped under `name`; its version is its number format and a checksum of its files."""
    record = read_provenance(shipped_folder(name))
    sums = "".join(known["sha256"] for file, known in record["files"].items() if file != _LICENCE)
    version = f"{record['format']}-{hashlib.sha256(sums.encode()).hexdigest()[:DIGEST_SHOWN]}"
    return Identity(record["model"], record["pooling"], version)


def verify_shipped(root: Path | None = None) -> list[str]:
    """Compare every shipped file with its recorded checksum; return what is wrong, nothing when all is well."""
    problems: list[str] = []
    for name in (*SHIPPED, READER):
        folder = root / name if root else shipped_folder(name)
        try:
            problems += _problems(folder, read_provenance(folder)["files"])
        except EmbedderError as error:
            problems.append(str(error))
    return problems


def check_shipped(name: str, only: str = "") -> None:
    """Refuse a model of which a byte is not the one that was shipped: its numbers would be others, silently.

    With `only`, look at that file of it alone.

    Raises:
        EmbedderError: a file is missing or not as recorded.
    """
    folder = shipped_folder(name)
    recorded = read_provenance(folder)["files"]
    needed = {file: known for file, known in recorded.items() if file == only or not (only or file == _LICENCE)}
    for wrong in _problems(folder, needed):
        raise EmbedderError(wrong)


def _problems(folder: Path, recorded: dict[str, dict[str, str]]) -> Iterator[str]:
    for path, known in ((folder / file, known["sha256"]) for file, known in recorded.items()):
        try:
            with path.open("rb") as file:
                found = hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as error:
            yield f"{path} cannot be read: {error.strerror}; install Holdfast again"
            continue
        if found != known:
            yield f"{path} is not the file that was shipped (SHA-256 {found[:DIGEST_SHOWN]}…); install Holdfast again"


def load_potion(folder: Path, preparation: Preparation, identity: Identity) -> LocalEmbedder:
    """Read the static embedder: a text's vector is the mean of its tokens' vectors, read from a table.

    Tokenising is most of the work and holds the interpreter: threads would not help.

    Raises:
        EmbedderError: a file is missing or broken, or the two do not belong together.
    """
    from tokenizers import Tokenizer  # noqa: PLC0415 - see `holdfast.models`

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
