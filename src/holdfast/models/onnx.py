"""Models and tokenizers in files: what embedders and summarisers from a folder share."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import onnxruntime as ort
from onnxruntime.capi import onnxruntime_pybind11_state as ort_state
from tokenizers import Tokenizer

from holdfast.errors import HoldfastError

TOKENIZER = "tokenizer.json"

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


def open_session(path: Path, failure: type[HoldfastError]) -> ort.InferenceSession:
    """Read a model.

    Raises:
        HoldfastError: `failure`, when it cannot be read.
    """
    ort.disable_telemetry_events()
    ort.set_default_logger_severity(_SILENT)
    options = ort.SessionOptions()
    options.log_severity_level = _SILENT
    # One thread and one order of operations in every run: texts are read in parallel, a text is not, so that what
    # comes out cannot depend on how the work was shared out.
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.execution_mode = ort.ExecutionMode.ORT_SEQUENTIAL
    options.use_deterministic_compute = True
    # The level above this one rearranges convolutions for the processor at hand.
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    try:
        return ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
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
        raise failure(f"{setting} = {max_tokens} leaves no room beside the {marks} marks of the model; raise it")
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
