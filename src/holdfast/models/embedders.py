"""Text → vector (C10). Two models ship with the package; others are a folder or an address away."""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path

from holdfast.errors import MissingExtraError, SettingsError
from holdfast.models.embedder import Embedder, Preparation
from holdfast.models.shipped import check_shipped, shipped_folder, shipped_identity, verify_shipped
from holdfast.settings import EmbeddingSettings

__all__ = ["Embedder", "build_embedder", "verify_shipped"]


@lru_cache(maxsize=4)
def build_embedder(settings: EmbeddingSettings) -> Embedder | None:
    """Return the embedder the settings name, ready for use; nothing for `none`.

    Libraries are imported here and not before, so that a memory without vectors does not pay for them.
    Memories of one process share a loaded model: it holds no state.

    Raises:
        EmbedderError: the model cannot be loaded. An endpoint is first asked when a vector is needed.
        SettingsError: the embedder needs a setting that is empty.
    """
    if settings.embedder == "none":
        return None
    if settings.embedder in ("openai", "ollama"):
        return _endpoint(settings)
    try:
        return _local(settings)
    except ImportError as error:
        raise MissingExtraError(
            f"the embedder {settings.embedder} needs a library that is not installed ({error}); "
            "install it with: pip install onnxruntime tokenizers"
        ) from error


def _local(settings: EmbeddingSettings) -> Embedder:
    preparation, threads = _preparation(settings), settings.threads or os.cpu_count() or 1
    if settings.embedder == "onnx":
        from holdfast.models.onnx_embedder import OnnxEmbedder  # noqa: PLC0415 - see build_embedder

        folder = Path(_needed(settings, "folder")).expanduser()
        return OnnxEmbedder.load(folder, preparation, pooling=settings.pooling, threads=threads)
    check_shipped(settings.embedder)
    folder, identity = shipped_folder(settings.embedder), shipped_identity(settings.embedder)
    if settings.embedder == "potion":
        from holdfast.models.potion import PotionEmbedder  # noqa: PLC0415 - see build_embedder

        return PotionEmbedder.load(folder, preparation, identity)
    from holdfast.models.onnx_embedder import OnnxEmbedder  # noqa: PLC0415 - see build_embedder

    # The shipped graph pools by itself.
    return OnnxEmbedder.load(folder, preparation, pooling="none", threads=threads, identity=identity)


def _endpoint(settings: EmbeddingSettings) -> Embedder:
    from holdfast.models.endpoint_embedder import EndpointEmbedder  # noqa: PLC0415 - see build_embedder

    return EndpointEmbedder(
        settings.embedder,
        _needed(settings, "url"),
        _needed(settings, "model"),
        _preparation(settings),
        api_key=settings.api_key if settings.embedder == "openai" else "",
        timeout_s=settings.timeout_s,
        threads=settings.threads or os.cpu_count() or 1,
    )


def _preparation(settings: EmbeddingSettings) -> Preparation:
    return Preparation(settings.max_tokens, settings.query_prefix, settings.document_prefix)


def _needed(settings: EmbeddingSettings, name: str) -> str:
    value = str(getattr(settings, name)).strip()
    if not value:
        raise SettingsError(f"the embedder {settings.embedder} needs embedding.{name}, which is empty; set it")
    return value
