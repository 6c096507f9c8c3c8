"""A T5 in a folder, as Hugging Face Optimum exports it: which files there are, and whether they fit together."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort
from numpy.typing import NDArray

from holdfast.errors import SummariserError, shown
from holdfast.models.onnx import INTEGERS, RUNTIME_ERRORS, TOKENIZER, open_session, reason

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


@dataclass(frozen=True, slots=True)
class Shape:
    """What the configuration says about the decoder."""

    start: int
    end: int
    layers: int
    heads: int
    head_width: int

    def names(self, kind: str, *sides: str) -> Iterator[str]:
        """Yield the names of keys and values: `past_key_values` or `present`, of the decoder or the encoder."""
        return (
            f"{kind}.{layer}.{side}.{part}"
            for layer in range(self.layers)
            for side in sides
            for part in ("key", "value")
        )


@dataclass(frozen=True, slots=True)
class Part:
    """One file of the model. A session may be used by many threads."""

    path: Path
    session: ort.InferenceSession
    asks: Mapping[str, str]
    gives: tuple[str, ...]

    @classmethod
    def load(cls, path: Path) -> Part:
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
                raise self._foreign(f"has no input {shown(name)}")
        for name in gives:
            if name not in self.gives:
                raise self._foreign(f"has no output {shown(name)}")
        if strange := sorted(set(self.asks) - wanted - set(may_ask)):
            raise self._foreign(f"asks for the input {shown(strange[0])}")

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

    def nothing_yet(self, shape: Shape) -> dict[str, Array]:
        """Return keys and values that a merged decoder wants to see, and does not read, before there are any."""
        size = (1, shape.heads, 1, shape.head_width)
        names = [name for name in self.asks if name.startswith("past_key_values.")]
        return {name: np.zeros(size, _FLOATS.get(self.asks[name], np.float32)) for name in names}

    def _foreign(self, what: str) -> SummariserError:
        return SummariserError(
            f"{self.path} is not shaped like this part of a T5 with the layers of {CONFIG}: it {what}; {EXPORT}"
        )


@dataclass(frozen=True, slots=True)
class Parts:
    """Encoder and decoder; `first` and `later` are one and the same where the decoder is merged."""

    encoder: Part
    first: Part
    later: Part
    shape: Shape

    @classmethod
    def load(cls, folder: Path) -> Parts:
        """Read the model.

        Raises:
            SummariserError: a file is missing, broken or of a model of another kind.
        """
        names, shape = part_names(folder), _read_shape(folder / CONFIG)
        encoder, first, *others = (Part.load(folder / name) for name in names)
        later = others[0] if others else first
        encoder.require(asks=["input_ids"], may_ask=["attention_mask"], gives=["last_hidden_state"])
        past = chain(["input_ids"], [] if others else [SWITCH], shape.names("past_key_values", "decoder", "encoder"))
        later.require(asks=past, may_ask=_CONTEXT, gives=chain(["logits"], shape.names("present", "decoder")))
        first.require(
            asks=["input_ids", "encoder_hidden_states"],
            may_ask=_CONTEXT if others else first.asks,
            gives=chain(["logits"], shape.names("present", "decoder", "encoder")),
        )
        return cls(encoder, first, later, shape)


def part_names(folder: Path) -> tuple[str, ...]:
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


def _read_shape(path: Path) -> Shape:
    try:
        config = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise SummariserError(f"{path} cannot be read: {reason(error)}; copy it again") from error
    if not isinstance(config, dict):
        raise SummariserError(f"{path} holds {shown(config)}, not a model's configuration; copy it again")
    if config.get("num_decoder_layers") is None:
        # T5 says so when encoder and decoder are equally deep.
        config["num_decoder_layers"] = config.get("num_layers")
    return Shape(
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
            f"{path} says {name} = {shown(value)} where a whole number from {least} was due; "
            "use a model of the T5 family, with its own configuration"
        )
    return value
