"""A summariser of the T5 family, from a folder: greedy decoding that remembers keys and values."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer

from holdfast.errors import SummariserError
from holdfast.models.onnx import TOKENIZER, digest_of, open_tokenizer
from holdfast.models.summariser import CHARACTERS_PER_TOKEN, Writing, turns_to_read
from holdfast.models.t5_folder import EXPORT, SWITCH, Array, Part, Parts, part_names
from holdfast.types import combine

# Enough of a digest to tell two models apart.
_DIGEST_SHOWN = 12


class T5Summariser:
    """Runs encoder and decoder with onnxruntime, when first needed. It may be used by many threads.

    A T5 cannot be told which words to keep: whether they stand in the summary is for the caller to look up.
    """

    def __init__(self, folder: Path, *, prefix: str, max_input_tokens: int) -> None:
        self._folder = folder
        # A prefix is used to the letter, its last space included; one of spaces alone says nothing.
        self._prefix = prefix if prefix.strip() else ""
        self._max_input_tokens = max_input_tokens
        self._lock = threading.Lock()
        self._loaded: _Model | None = None

    @cached_property
    def name(self) -> str:
        """Name the folder and its model: the same files elsewhere are the same model.

        Raises:
            SummariserError: a file is missing.
        """
        # Large models keep their weights in files beside the model whose names start the same.
        files = {path for name in (*part_names(self._folder), TOKENIZER) for path in self._folder.glob(f"{name}*")}
        return f"{self._folder.resolve().name}-{digest_of(files)[:_DIGEST_SHOWN]}"

    def summarise(self, turns: Sequence[str], *, max_tokens: int, keep: Sequence[str] = ()) -> Writing:  # noqa: ARG002
        """Write at most `max_tokens` tokens about `turns`.

        Raises:
            InputError: there is nothing to read, or no room for an answer.
            SummariserError: the folder is incomplete or broken, or the model writes nothing of sense.
        """
        text = self._prefix + "\n".join(turns_to_read(turns, max_tokens))
        model = self._model()
        # Tokenising a text of a megabyte takes a second, to keep its first few hundred tokens.
        read = model.tokenizer.encode(text[: self._max_input_tokens * CHARACTERS_PER_TOKEN]).ids
        written = list(model.write(read, max_tokens))
        summary = model.tokenizer.decode([token for token, _ in written]).strip()
        if not summary:
            raise SummariserError(
                f"the model in {self._folder} wrote nothing about a text of {len(read)} tokens; "
                "check summariser.prefix, or use a model trained to summarise"
            )
        mean = combine("sum", [log for _, log in written]) / len(written)
        return Writing(summary, math.exp(mean))

    def _model(self) -> _Model:
        with self._lock:
            if self._loaded is None:
                parts = Parts.load(self._folder)
                limit, setting = self._max_input_tokens, "summariser.max_input_tokens"
                tokenizer = open_tokenizer(self._folder / TOKENIZER, limit, setting, SummariserError)
                self._loaded = _Model(parts, tokenizer)
            return self._loaded


@dataclass(frozen=True, slots=True)
class _Model:
    parts: Parts
    tokenizer: Tokenizer

    def write(self, read: list[int], max_tokens: int) -> Iterator[tuple[int, float]]:
        """Yield token after token with its log-probability, up to the end mark, which is not counted."""
        ids = np.array([read], np.int64)
        mask = np.ones_like(ids)
        hidden = self.parts.encoder.run({"input_ids": ids, "attention_mask": mask})["last_hidden_state"]
        shape, part = self.parts.shape, self.parts.first
        given = {"encoder_attention_mask": mask, "encoder_hidden_states": hidden}
        results = part.run(
            {"input_ids": _one(shape.start), SWITCH: np.array([False]), **given, **part.nothing_yet(shape)}
        )
        present = {
            name: name.replace("past_key_values", "present")
            for name in shape.names("past_key_values", "decoder", "encoder")
        }
        # What the decoder knows of the text is computed once; only what it knows of its own words grows.
        past = {name: results[result] for name, result in present.items()}
        grows = [name for name in present if ".decoder." in name]
        for count in range(1, max_tokens + 1):
            token, log = _likeliest(results["logits"], part)
            if token == shape.end:
                return
            yield token, log
            if count < max_tokens:
                part = self.parts.later
                results = part.run({"input_ids": _one(token), SWITCH: np.array([True]), **given, **past})
                past |= {name: results[present[name]] for name in grows}


def _one(token: int) -> Array:
    return np.array([[token]], np.int64)


def _likeliest(logits: Array, part: Part) -> tuple[int, float]:
    """Return the likeliest token, of equals the lowest, and its log-probability: a log-softmax in float64."""
    if logits.ndim != 3 or logits.shape[:2] != (1, 1) or logits.shape[2] == 0:
        raise SummariserError(
            f"{part.path} gave logits of shape {logits.shape} for one token, where (1, 1, pieces) was due; {EXPORT}"
        )
    scores = logits[0, 0].astype(np.float64)
    best = int(scores.argmax())
    peak = scores[best]
    # Of NaN and others, argmax takes NaN.
    if not np.isfinite(peak):
        raise SummariserError(
            f"{part.path} gave the logit {peak} for token {best}, which is no finite number; export or copy it again"
        )
    others = np.exp(scores - peak)
    others[best] = 0.0
    return best, -math.log1p(float(others.sum()))
