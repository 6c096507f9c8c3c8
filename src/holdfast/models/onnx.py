"""Models and tokenizers in files: sessions for embedders and summarisers, and the embedder from a folder.

The embedder is the shipped MiniLM, or any model that a user brings as model.onnx and tokenizer.json.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort
from numpy.typing import NDArray
from onnxruntime.capi import onnxruntime_pybind11_state as ort_state
from tokenizers import Tokenizer

from holdfast.errors import EmbedderError, HoldfastError, quote_value
from holdfast.models.embedder import DIGEST_SHOWN, Identity, LocalEmbedder, Preparation, Vectors, unit_vector

MODEL, TOKENIZER = "model.onnx", "tokenizer.json"

Wishes = tuple[tuple[str, type[np.int64 | np.int32]], ...]

# onnxruntime gives its errors no common parent, and each version has others.
RUNTIME_ERRORS: tuple[type[Exception], ...] = (
    ValueError,
    RuntimeError,
    *(kind for kind in vars(ort_state).values() if isinstance(kind, type) and issubclass(kind, Exception)),
)
# Integer types a model may want for its inputs.
INTEGERS: dict[str, type[np.int64 | np.int32]] = {"tensor(int64)": np.int64, "tensor(int32)": np.int32}
# Level 4 is "fatal": what goes wrong is raised, and is not also written to the terminal.
_SILENT = 4
# Of a foreign error only the beginning is of use.
_SHOWN_REASON = 300

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


def open_session(
    path: Path, failure: type[HoldfastError], threads: int = 1, *, without: Sequence[str] = ()
) -> ort.InferenceSession:
    """Read a model, whose graph the runtime rewrites `without` some of its optimisations.

    Raises:
        HoldfastError: `failure`, when it cannot be read.
    """
    ort.disable_telemetry_events()  # where the caller has imported onnxruntime before us
    ort.set_default_logger_severity(_SILENT)
    options = ort.SessionOptions()
    options.log_severity_level = _SILENT
    # One thread and one order of operations in every run: texts are read in parallel, a text is not, so that what
    # comes out cannot depend on how the work was shared out. More threads are for models that were compared.
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    # Threads that wait busily take the processor from each other: beside other work they cost more than they save.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.execution_mode = ort.ExecutionMode.ORT_SEQUENTIAL
    options.use_deterministic_compute = True
    # The level above this one rearranges convolutions for the processor at hand.
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    try:
        return ort.InferenceSession(
            str(path), options, providers=["CPUExecutionProvider"], disabled_optimizers=[*without]
        )
    except RUNTIME_ERRORS as error:
        raise failure(
            f"{path} is not a model that onnxruntime {ort.__version__} can read: {reason(error)}; "
            "export or copy it again"
        ) from error


def open_tokenizer(path: Path, max_tokens: int, setting: str, failure: type[HoldfastError]) -> Tokenizer:
    """Read a tokenizer that cuts at `max_tokens`, the value of `setting`, and never pads.

    Raises:
        HoldfastError: `failure`, when it cannot be read or the limit leaves no room for words.
    """
    try:
        tokenizer = Tokenizer.from_buffer(path.read_bytes())
    except (ValueError, OSError) as error:
        raise failure(f"{path} is not a usable tokenizer: {reason(error)}; copy it again") from error
    marks = tokenizer.num_special_tokens_to_add(is_pair=False)
    # The tokenizer would then not cut at all.
    if max_tokens <= marks:
        raise failure(f"{setting} = {max_tokens} leaves no room next to the {marks} marks of the model; raise it")
    tokenizer.no_padding()
    tokenizer.enable_truncation(max_tokens)
    return tokenizer


def digest_of(paths: Iterable[Path]) -> str:
    """Name a model by its bytes: the same files elsewhere are the same model, other files are another one."""
    whole = hashlib.sha256()
    for path in sorted(paths):
        with path.open("rb") as file:
            whole.update(path.name.encode() + hashlib.file_digest(file, "sha256").digest())
    return whole.hexdigest()


def reason(error: Exception) -> str:
    """Return the beginning of a foreign error, on one line."""
    return " ".join(str(error).split())[:_SHOWN_REASON]


# --------------------------------------------------------------------------------------------- the embedder


def load_embedder(
    folder: Path, preparation: Preparation, *, pooling: str, threads: int = 1, identity: Identity | None = None,
    name: str = "onnx", layer_norm: bool = False,
) -> LocalEmbedder:  # fmt: skip
    """Read a folder with model.onnx and tokenizer.json, and try the model once.

    Each text is its own batch; a session may be used by many threads. Whoever gives an `identity` has compared the
    files with what ships; without one the model is called `name`, with the checksum of its files. `layer_norm`
    follows pooling.

    Raises:
        EmbedderError: a file is missing or broken, or tokenizer, model and settings do not fit together.
    """
    _require(folder / MODEL)
    before = _states(folder)
    session = open_session(folder / MODEL, EmbedderError)
    _require(folder / TOKENIZER)
    limit = preparation.max_tokens
    tokenizer = open_tokenizer(folder / TOKENIZER, limit, "embedding.max_tokens", EmbedderError)
    # What ships was tried when it was made, and its bytes are the same; a long text takes as long as ten questions.
    tried = identity is not None and limit < _PROBE_TOKENS
    results = _outputs(session, 0, "") if tried else _probe(folder, session, tokenizer, limit)
    output, dims = _choose_output(folder, results, pooling)
    identity = identity or Identity(name, f"{pooling}+norm" if layer_norm else pooling, _digest(folder))
    wishes = _wishes(session)
    if _states(folder) != before:  # its vectors would go by the name of another model
        raise EmbedderError(f"the files in {folder} were replaced while they were read; try again")

    def embed(prepared: str) -> Vectors:
        ids = tokenizer.encode(prepared).ids if prepared else []
        if not ids:
            return np.zeros(dims, np.float32)
        try:
            [result] = session.run([output], _inputs(wishes, np.array([ids])))
        except RUNTIME_ERRORS as error:
            raise EmbedderError(
                f"the model fails on a text of {len(ids)} tokens: {reason(error)}; lower embedding.max_tokens"
            ) from error
        pooled = _pool(result, pooling)
        # A layer norm before the length is made 1: what is left of it is that the mean is 0.
        return unit_vector(pooled - pooled.mean() if layer_norm else pooled, dims, "the ONNX model")

    return LocalEmbedder(embed, dims, identity, preparation, threads)


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
            f"the model asks for the input {quote_value(strange[0])}, which is none of {', '.join(_INPUTS)}; "
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
    too_long = f"the model in {folder} cannot read {length} tokens; lower embedding.max_tokens"
    results = _outputs(session, highest, foreign)
    _try(session, np.full((1, length), highest), too_long)
    return results


def _outputs(session: ort.InferenceSession, token: int, otherwise: str) -> dict[str, Any]:
    results = _try(session, np.full((1, 1), token), otherwise)
    return {output.name: result for output, result in zip(session.get_outputs(), results, strict=True)}


def _choose_output(folder: Path, results: dict[str, Any], pooling: str) -> tuple[str, int]:
    """Return the first output that `pooling` can use, and its width."""
    for name, result in results.items():
        if np.ndim(result) == _AXES[pooling] and np.shape(result)[0] == 1:
            return name, int(np.shape(result)[-1])
    shapes = ", ".join(f"{name} {np.shape(result)}" for name, result in results.items())
    raise EmbedderError(
        f"the model in {folder} has no output that embedding.pooling = {quote_value(pooling)} can use; for one "
        "token it "
        f"gives {shapes}. Choose `none` for (1, dims), `mean` or `cls` for (1, tokens, dims)"
    )


def _try(session: ort.InferenceSession, ids: NDArray[np.int64], otherwise: str) -> list[Any]:
    try:
        return list(session.run(None, _inputs(_wishes(session), ids)))
    except RUNTIME_ERRORS as error:
        raise EmbedderError(f"{otherwise} ({reason(error)})") from error


def _files(folder: Path) -> list[Path]:
    # Large models keep their weights in files beside model.onnx whose names start the same.
    return [*folder.glob(f"{MODEL}*"), folder / TOKENIZER]


def _digest(folder: Path) -> str:
    return digest_of(_files(folder))[:DIGEST_SHOWN]


def _states(folder: Path) -> list[tuple[Path, int, int, int]]:
    """Return what changes when one of the files is replaced or written."""
    found = [(path, path.stat()) for path in sorted(_files(folder)) if path.is_file()]
    return [(path, one.st_ino, one.st_size, one.st_mtime_ns) for path, one in found]
