"""An embedder from a folder with model.onnx and tokenizer.json: the shipped MiniLM, or any model a user brings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
import onnxruntime as ort
from numpy.typing import NDArray
from tokenizers import Tokenizer

from holdfast.errors import EmbedderError, shown
from holdfast.models.embedder import DIGEST_SHOWN, Identity, Preparation, Vectors, embed_each, unit_vector
from holdfast.models.onnx import INTEGERS, RUNTIME_ERRORS, TOKENIZER, digest_of, open_session, open_tokenizer, reason

MODEL = "model.onnx"

Wishes = tuple[tuple[str, type[np.int64 | np.int32]], ...]

# What can be told about one unpadded text, by the name under which models ask for it.
_INPUTS: dict[str, Callable[[NDArray[np.int64]], NDArray[np.int64]]] = {
    "input_ids": lambda ids: ids,
    "attention_mask": np.ones_like,
    "token_type_ids": np.zeros_like,
    "position_ids": lambda ids: np.arange(ids.shape[1]).reshape(1, -1),
}
# How many axes the output has that each way of pooling starts from: (batch, tokens, dims) or (batch, dims).
_AXES = {"mean": 3, "cls": 3, "none": 2}
# A probe this long finds out that a BERT with its 512 positions is asked for more; a longer one costs too much.
_PROBE_TOKENS = 513


class OnnxEmbedder:
    """Runs a transformer with onnxruntime. Each text is its own batch; a session may be used by many threads."""

    def __init__(
        self,
        session: ort.InferenceSession,
        tokenizer: Tokenizer,
        *,
        output: str,
        pooling: str,
        dims: int,
        space: str,
        preparation: Preparation,
        threads: int,
    ) -> None:
        self.dims = dims
        self.space = space
        self._session = session
        self._wishes = _wishes(session)
        self._tokenizer = tokenizer
        self._output = output
        self._pooling = pooling
        self._preparation = preparation
        self._threads = threads

    @classmethod
    def load(
        cls,
        folder: Path,
        preparation: Preparation,
        *,
        pooling: str,
        threads: int = 1,
        identity: Identity | None = None,
    ) -> Self:
        """Read the folder and try the model once.

        Without an `identity` the model is named by the checksum of its files.

        Raises:
            EmbedderError: a file is missing or broken, or tokenizer, model and settings do not fit together.
        """
        _require(folder / MODEL)
        session = open_session(folder / MODEL, EmbedderError)
        _require(folder / TOKENIZER)
        limit = preparation.max_tokens
        tokenizer = open_tokenizer(folder / TOKENIZER, limit, "embedding.max_tokens", EmbedderError)
        results = _probe(folder, session, tokenizer, limit)
        output, dims = _choose_output(folder, results, pooling)
        identity = identity or Identity("onnx", pooling, _digest(folder))
        return cls(
            session,
            tokenizer,
            output=output,
            pooling=pooling,
            dims=dims,
            space=identity.space(dims, preparation),
            preparation=preparation,
            threads=threads,
        )

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Return one row for each text."""
        return embed_each(texts, lambda text: self._embed(self._preparation.document(text)), self.dims, self._threads)

    def embed_query(self, text: str) -> Vectors:
        """Return the vector of a question."""
        return self._embed(self._preparation.query(text))

    def _embed(self, prepared: str) -> Vectors:
        ids = self._tokenizer.encode(prepared).ids if prepared else []
        if not ids:
            return np.zeros(self.dims, np.float32)
        try:
            [result] = self._session.run([self._output], _inputs(self._wishes, np.array([ids])))
        except RUNTIME_ERRORS as error:
            raise EmbedderError(
                f"the model fails on a text of {len(ids)} tokens: {reason(error)}; lower embedding.max_tokens"
            ) from error
        return unit_vector(_pool(result, self._pooling), self.dims, "the ONNX model")


def _pool(result: NDArray[np.floating], pooling: str) -> NDArray[np.floating]:
    """Turn the output for a batch of one into one vector; without padding every token counts."""
    only: NDArray[np.floating] = result[0]
    if pooling == "mean":
        only = only.mean(axis=0, dtype=np.float64)
    elif pooling == "cls":
        only = only[0]
    return only


def _require(path: Path) -> None:
    if not path.is_file():
        raise EmbedderError(f"there is no {path}; an embedder's folder holds {MODEL} and {TOKENIZER}")


def _wishes(session: ort.InferenceSession) -> Wishes:
    """Return name and number type of every input the model wants."""
    wanted = session.get_inputs()
    strange = [wish.name for wish in wanted if wish.name not in _INPUTS or wish.type not in INTEGERS]
    if strange:
        raise EmbedderError(
            f"the model asks for the input {shown(strange[0])}, which is none of {', '.join(_INPUTS)}; "
            "export it as a text embedding model"
        )
    return tuple((wish.name, INTEGERS[wish.type]) for wish in wanted)


def _inputs(wishes: Wishes, ids: NDArray[np.int64]) -> dict[str, NDArray[np.integer]]:
    return {name: _INPUTS[name](ids).astype(kind) for name, kind in wishes}


def _probe(folder: Path, session: ort.InferenceSession, tokenizer: Tokenizer, max_tokens: int) -> dict[str, Any]:
    """Run the model on the highest token and on a long text; return its outputs for the one token, by name."""
    highest = max(tokenizer.get_vocab(with_added_tokens=True).values())
    length = min(max_tokens, _PROBE_TOKENS)
    foreign = f"{folder / TOKENIZER} knows the token {highest} and {MODEL} beside it does not; they are of two models"
    results = _try(session, np.full((1, 1), highest), foreign)
    too_long = f"the model in {folder} cannot read {length} tokens; lower embedding.max_tokens"
    _try(session, np.full((1, length), highest), too_long)
    return {output.name: result for output, result in zip(session.get_outputs(), results, strict=True)}


def _choose_output(folder: Path, results: dict[str, Any], pooling: str) -> tuple[str, int]:
    """Return the first output that `pooling` can use, and its width."""
    for name, result in results.items():
        if np.ndim(result) == _AXES[pooling] and np.shape(result)[0] == 1:
            return name, int(np.shape(result)[-1])
    shapes = ", ".join(f"{name} {np.shape(result)}" for name, result in results.items())
    raise EmbedderError(
        f"the model in {folder} has no output that embedding.pooling = {shown(pooling)} can use; for one token it "
        f"gives {shapes}. Choose `none` for (1, dims), `mean` or `cls` for (1, tokens, dims)"
    )


def _try(session: ort.InferenceSession, ids: NDArray[np.int64], otherwise: str) -> list[Any]:
    try:
        return list(session.run(None, _inputs(_wishes(session), ids)))
    except RUNTIME_ERRORS as error:
        raise EmbedderError(f"{otherwise} ({reason(error)})") from error


def _digest(folder: Path) -> str:
    # Large models keep their weights in files beside model.onnx whose names start the same.
    return digest_of([*folder.glob(f"{MODEL}*"), folder / TOKENIZER])[:DIGEST_SHOWN]
