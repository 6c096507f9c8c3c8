"""A summariser of the T5 family, from a folder as Hugging Face Optimum exports it (C18).

Decoding is greedy and remembers keys and values.
"""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort
from numpy.typing import NDArray
from tokenizers import Tokenizer

from holdfast.errors import SummariserError, quote_value
from holdfast.models.embedder import CHARACTERS_PER_TOKEN, DIGEST_SHOWN, clean_prefix
from holdfast.models.onnx import INTEGERS, RUNTIME_ERRORS, TOKENIZER, digest_of, open_session, open_tokenizer, reason
from holdfast.models.summariser import Writing, clean_turns
from holdfast.types import combine
from holdfast.values import dataclass

Array = NDArray[Any]

ENCODER, CONFIG = "encoder_model.onnx", "config.json"
# One decoder with a switch inside, or one for the first token and one for all later ones.
MERGED, FIRST, LATER = "decoder_model_merged.onnx", "decoder_model.onnx", "decoder_with_past_model.onnx"
# Says, to a merged decoder, whether the keys and values it is given count.
SWITCH = "use_cache_branch"
HOLDS = f"a T5 folder holds {ENCODER}, {MERGED} (or {FIRST} and {LATER}), {TOKENIZER} and {CONFIG}"
EXPORT = "export it with: optimum-cli export onnx --task text2text-generation-with-past"

# What a decoder may want to know about the text, whether it needs it or not.
_CONTEXT = ("encoder_attention_mask", "encoder_hidden_states")
# Number types of what a decoder remembers.
_FLOATS: dict[str, type[np.float32 | np.float16]] = {"tensor(float)": np.float32, "tensor(float16)": np.float16}


class T5Summariser:
    """Runs encoder and decoder with onnxruntime, when first needed. It may be used by many threads.

    A T5 cannot be told which words to keep: whether they stand in the summary is for the caller to look up.
    """

    def __init__(self, folder: Path, *, prefix: str, max_input_tokens: int) -> None:
        self._folder = folder
        self._prefix = clean_prefix(prefix)
        self._max_input_tokens = max_input_tokens
        self._lock = threading.Lock()
        self._loaded: T5Model | None = None

    @cached_property
    def name(self) -> str:
        """Name the folder and its model: the same files elsewhere are the same model.

        Raises:
            SummariserError: a file is missing.
        """
        # Large models keep their weights in files beside the model whose names start the same.
        files = {path for name in (*file_names(self._folder), TOKENIZER) for path in self._folder.glob(f"{name}*")}
        return f"{self._folder.resolve().name}-{digest_of(files)[:DIGEST_SHOWN]}"

    def summarise(self, turns: Sequence[str], *, max_tokens: int, keep: Sequence[str] = ()) -> Writing:  # noqa: ARG002
        """Write at most `max_tokens` tokens about `turns`.

        Raises:
            InputError: there is nothing to read, or no room for an answer.
            SummariserError: the folder is incomplete or broken, or the model writes nothing of sense.
        """
        text = self._prefix + "\n".join(clean_turns(turns, max_tokens))
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

    def _model(self) -> T5Model:
        with self._lock:
            if self._loaded is None:
                self._loaded = T5Model.load(self._folder, self._max_input_tokens)
            return self._loaded


@dataclass(frozen=True, slots=True)
class T5Model:
    """Encoder, decoder and tokenizer; `first` and `later` are one and the same where the decoder is merged."""

    encoder: T5File
    first: T5File
    later: T5File
    shape: T5Shape
    tokenizer: Tokenizer

    @classmethod
    def load(cls, folder: Path, max_tokens: int) -> T5Model:
        """Read the model.

        Raises:
            SummariserError: a file is missing, broken or of a model of another kind.
        """
        names, shape = file_names(folder), _read_shape(folder / CONFIG)
        encoder, first, *others = (T5File.load(folder / name) for name in names)
        later = others[0] if others else first
        encoder.require(asks=["input_ids"], may_ask=["attention_mask"], gives=["last_hidden_state"])
        past = chain(["input_ids"], [] if others else [SWITCH], shape.names("past_key_values", "decoder", "encoder"))
        later.require(asks=past, may_ask=_CONTEXT, gives=chain(["logits"], shape.names("present", "decoder")))
        first.require(
            asks=["input_ids", "encoder_hidden_states"],
            may_ask=_CONTEXT if others else first.asks,
            gives=chain(["logits"], shape.names("present", "decoder", "encoder")),
        )
        tokenizer = open_tokenizer(folder / TOKENIZER, max_tokens, "summariser.max_input_tokens", SummariserError)
        return cls(encoder, first, later, shape, tokenizer)

    def write(self, read: list[int], max_tokens: int) -> Iterator[tuple[int, float]]:
        """Yield token after token with its log-probability, up to the end mark, which is not counted."""
        ids = np.array([read], np.int64)
        mask = np.ones_like(ids)
        hidden = self.encoder.run({"input_ids": ids, "attention_mask": mask})["last_hidden_state"]
        shape, part = self.shape, self.first
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
                part = self.later
                results = part.run({"input_ids": _one(token), SWITCH: np.array([True]), **given, **past})
                past |= {name: results[present[name]] for name in grows}


def _one(token: int) -> Array:
    return np.array([[token]], np.int64)


def _likeliest(logits: Array, part: T5File) -> tuple[int, float]:
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


# ------------------------------------------------------------------------------------------------ the folder


@dataclass(frozen=True, slots=True)
class T5Shape:
    """What the configuration says about the decoder."""

    start: int
    end: int
    layers: int
    heads: int
    head_width: int

    def names(self, kind: str, *sides: str) -> Iterator[str]:
        """Yield the names of keys and values: `past_key_values` or `present`, of the decoder or the encoder."""
        return (
            f"{kind}.{layer}.{side}.{half}"
            for layer in range(self.layers)
            for side in sides
            for half in ("key", "value")
        )


@dataclass(frozen=True, slots=True)
class T5File:
    """One file of the model. A session may be used by many threads."""

    path: Path
    session: ort.InferenceSession
    asks: Mapping[str, str]
    gives: tuple[str, ...]

    @classmethod
    def load(cls, path: Path) -> T5File:
        """Read one file."""
        session = open_session(path, SummariserError)
        asks = {wish.name: str(wish.type) for wish in session.get_inputs()}
        return cls(path, session, asks, tuple(output.name for output in session.get_outputs()))

    def require(self, *, asks: Iterable[str], may_ask: Iterable[str] = (), gives: Iterable[str]) -> None:
        """Make sure that the file has these inputs and no others but `may_ask`, and these outputs."""
        wanted = set()
        for name in asks:
            wanted.add(name)
            if name not in self.asks:
                raise self._foreign(f"has no input {quote_value(name)}")
        for name in gives:
            if name not in self.gives:
                raise self._foreign(f"has no output {quote_value(name)}")
        if strange := sorted(set(self.asks) - wanted - set(may_ask)):
            raise self._foreign(f"asks for the input {quote_value(strange[0])}")

    def run(self, given: Mapping[str, Array]) -> dict[str, Array]:
        """Return the outputs by name; of what is given, the model gets what it asks for."""
        feeds = {name: given[name] for name in self.asks}
        for name, kind in self.asks.items():
            if kind in INTEGERS:
                feeds[name] = feeds[name].astype(INTEGERS[kind])
        try:
            results = self.session.run(None, feeds)
        except RUNTIME_ERRORS as error:
            raise SummariserError(
                f"{self.path} fails: {reason(error)}; see that all files of {self.path.parent} are of one model, "
                "or lower summariser.max_input_tokens"
            ) from error
        return dict(zip(self.gives, results, strict=True))

    def nothing_yet(self, shape: T5Shape) -> dict[str, Array]:
        """Return keys and values that a merged decoder wants to see, and does not read, before there are any."""
        size = (1, shape.heads, 1, shape.head_width)
        names = [name for name in self.asks if name.startswith("past_key_values.")]
        return {name: np.zeros(size, _FLOATS.get(self.asks[name], np.float32)) for name in names}

    def _foreign(self, what: str) -> SummariserError:
        return SummariserError(
            f"{self.path} is not shaped like this part of a T5 with the layers of {CONFIG}: it {what}; {EXPORT}"
        )


def file_names(folder: Path) -> tuple[str, ...]:
    """Return the names of the files that make up the model, without reading them.

    Raises:
        SummariserError: one of them is missing.
    """
    if not folder.is_dir():
        raise SummariserError(f"there is no folder {folder}; set summariser.folder to one: {HOLDS}")
    for name in (ENCODER, TOKENIZER, CONFIG):
        if not (folder / name).is_file():
            raise SummariserError(f"there is no {folder / name}; {HOLDS}")
    if (folder / MERGED).is_file():
        return ENCODER, MERGED
    missing = [name for name in (FIRST, LATER) if not (folder / name).is_file()]
    if len(missing) == 2:
        raise SummariserError(f"there is no decoder in {folder}; {HOLDS}; {EXPORT}")
    if missing:
        raise SummariserError(f"there is no {folder / missing[0]} beside the other half of the decoder; {EXPORT}")
    return ENCODER, FIRST, LATER


def _read_shape(path: Path) -> T5Shape:
    try:
        config = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise SummariserError(f"{path} cannot be read: {reason(error)}; copy it again") from error
    if not isinstance(config, dict):
        raise SummariserError(f"{path} holds {quote_value(config)}, not a model's configuration; copy it again")
    if config.get("num_decoder_layers") is None:
        # T5 says so when encoder and decoder are equally deep.
        config["num_decoder_layers"] = config.get("num_layers")
    return T5Shape(
        start=_whole_number(path, config, "decoder_start_token_id", 0),
        end=_whole_number(path, config, "eos_token_id", 0),
        layers=_whole_number(path, config, "num_decoder_layers", 1),
        heads=_whole_number(path, config, "num_heads", 1),
        head_width=_whole_number(path, config, "d_kv", 1),
    )


def _whole_number(path: Path, config: dict[str, object], name: str, least: int) -> int:
    value = config.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise SummariserError(
            f"{path} says {name} = {quote_value(value)} where a whole number from {least} was due; "
            "use a model of the T5 family, with its own configuration"
        )
    return value
