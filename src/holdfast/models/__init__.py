"""The models that read and write (C9, C10, C18): two embedders and a reader ship, others are an address away.

Libraries are imported when a model needs them and not before: a memory without vectors does not pay for them. The
memories of one process share a loaded model, which holds no state.
"""

from __future__ import annotations

import os
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

from holdfast.errors import EmbedderError, MissingExtraError, ReaderError, SettingsError, SummariserError
from holdfast.models.embedder import (
    READER,
    Embedder,
    Preparation,
    check_shipped,
    load_potion,
    shipped_folder,
    shipped_identity,
)
from holdfast.models.reader import Reader, load_reader
from holdfast.models.summariser import Summariser
from holdfast.settings import EmbeddingSettings, SummariserSettings

# onnxruntime tells its maker about the machine as soon as it is imported, unless this was said before.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")  # noqa: TID251 - set, not read

_INSTALL = "install it with: pip install onnxruntime tokenizers"
# What embedders set where the settings leave it open, and what nomic-embed-text-v1.5 sets otherwise: prefixes that
# it was trained with, and the window of the contract's sources; reading the 8,192 tokens that it can takes gigabytes.
_USUAL: dict[str, Any] = {"pooling": "mean", "max_tokens": 256}
_NOMIC = "nomic-768"
_NOMIC_DIMS = 768
_NOMIC_SETS = {"query_prefix": "search_query: ", "document_prefix": "search_document: ", "max_tokens": 512}
_NOMIC_FILES = "copy onnx/model.onnx and tokenizer.json of nomic-ai/nomic-embed-text-v1.5 into a folder, and name it"
_OPEN = ("", "auto", 0)
# What is read waits for nothing else, and two threads say what one says, bit for bit; more were not compared.
_READER_THREADS = 2


@lru_cache(maxsize=4)
def build_embedder(settings: EmbeddingSettings) -> Embedder | None:
    """Return the embedder the settings name, ready for use; nothing for `none`.

    Raises:
        EmbedderError: the model cannot be loaded. An endpoint is first asked when a vector is needed.
        SettingsError: the embedder needs a setting that is empty.
    """
    if settings.embedder == "none":
        return None
    settings = _complete(settings)
    preparation = Preparation(settings.max_tokens, settings.query_prefix, settings.document_prefix)
    threads = settings.threads or os.cpu_count() or 1
    if settings.embedder in ("openai", "ollama"):
        return _endpoint_embedder(settings, preparation, threads)
    try:
        return _local_embedder(settings, preparation, threads)
    except ImportError as error:
        raise MissingExtraError(
            f"the embedder {settings.embedder} needs a library that is not installed ({error}); {_INSTALL}"
        ) from error


def _complete(settings: EmbeddingSettings) -> EmbeddingSettings:
    """Return the settings with what they leave open filled in; whatever somebody has set stays."""
    own = {**_USUAL, **(_NOMIC_SETS if settings.embedder == _NOMIC else {})}
    return replace(settings, **{key: value for key, value in own.items() if getattr(settings, key) in _OPEN})


def _local_embedder(settings: EmbeddingSettings, preparation: Preparation, threads: int) -> Embedder:
    name = settings.embedder
    if name == "potion":
        check_shipped(name)
        return load_potion(shipped_folder(name), preparation, shipped_identity(name))
    from holdfast.models.onnx import load_embedder  # noqa: PLC0415 - see the module

    if name in ("onnx", _NOMIC):
        remedy = _NOMIC_FILES if name == _NOMIC else "set it"
        folder = Path(_needed("embedder", name, "embedding.folder", settings.folder, remedy)).expanduser()
        # The authors truncate behind a layer norm: without it the first dimensions are not those that were trained.
        loaded = load_embedder(
            folder, preparation, pooling=settings.pooling, threads=threads, name=name, layer_norm=name == _NOMIC
        )
        if name == _NOMIC and loaded.dims != _NOMIC_DIMS:
            raise EmbedderError(
                f"the model in {folder} gives {loaded.dims} dimensions, {_NOMIC} has {_NOMIC_DIMS}; "
                "set embedding.embedder to `onnx`, or embedding.folder to another folder"
            )
        return loaded
    check_shipped(name)
    # The shipped graph pools by itself.
    return load_embedder(
        shipped_folder(name), preparation, pooling="none", threads=threads, identity=shipped_identity(name)
    )


def _endpoint_embedder(settings: EmbeddingSettings, preparation: Preparation, threads: int) -> Embedder:
    from holdfast.models.endpoint import EndpointEmbedder  # noqa: PLC0415 - see the module

    return EndpointEmbedder(
        settings.embedder,
        _needed("embedder", settings.embedder, "embedding.url", settings.url),
        _needed("embedder", settings.embedder, "embedding.model", settings.model),
        preparation,
        api_key=settings.api_key if settings.embedder == "openai" else "",
        timeout_s=settings.timeout_s,
        threads=threads,
    )


@lru_cache(maxsize=4)
def open_reader(threads: int = _READER_THREADS) -> Reader:
    """Return the shipped reader, which has the tokenizer of `minilm`.

    Raises:
        ReaderError: a file or a library is missing, or is not the one that was shipped.
    """
    try:
        check_shipped(READER)
        check_shipped("minilm", only="tokenizer.json")
        return load_reader(shipped_folder(READER), shipped_folder("minilm"), threads)
    except EmbedderError as error:
        raise ReaderError(str(error)) from error
    except ImportError as error:
        raise ReaderError(f"the reader needs a library that is not installed ({error}); {_INSTALL}") from error


@lru_cache(maxsize=4)
def open_summariser(settings: SummariserSettings) -> Summariser | None:
    """Return the summariser the settings name; nothing for `extractive`, which needs none.

    A model is read, and a server asked, when the first summary is due.

    Raises:
        SettingsError: the summariser needs a setting that is empty or cannot be used.
        SummariserError: a library is not installed.
    """
    name = settings.summariser
    if name == "extractive":
        return None
    if name == "openai":
        from holdfast.models.endpoint import EndpointSummariser  # noqa: PLC0415 - see the module

        return EndpointSummariser(
            _needed("summariser", name, "summariser.url", settings.url),
            _needed("summariser", name, "summariser.model", settings.model),
            api_key=settings.api_key,
            timeout_s=settings.timeout_s,
        )
    folder = Path(_needed("summariser", name, "summariser.folder", settings.folder)).expanduser()
    try:
        from holdfast.models.t5 import T5Summariser  # noqa: PLC0415 - see the module
    except ImportError as error:
        raise SummariserError(
            f"the summariser {name} needs a library that is not installed ({error}); {_INSTALL}"
        ) from error
    local = T5Summariser(folder, prefix=settings.prefix, max_input_tokens=settings.max_input_tokens)
    # Its name is computed from its files and cannot be set, as the protocol would allow; nobody sets it.
    return cast("Summariser", local)


def can_summarise(settings: SummariserSettings) -> bool:
    """Return whether a model would write summaries: its files are there, or its server is named; neither is asked."""
    try:
        found = open_summariser(settings)
        if settings.summariser == "onnx":
            from holdfast.models.t5 import file_names  # noqa: PLC0415 - see `open_summariser`

            file_names(Path(settings.folder.strip()).expanduser())
    except (SettingsError, SummariserError):  # `compact` tells which
        return False
    return found is not None


def _needed(kind: str, name: str, setting: str, value: str, remedy: str = "set it") -> str:
    if not value.strip():
        raise SettingsError(f"the {kind} {name} needs {setting}, which is empty; {remedy}")
    return value.strip()
