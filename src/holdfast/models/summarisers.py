"""Summarisers that write in their own words (C18): a local T5 folder, an OpenAI-compatible endpoint."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import cast

from holdfast.errors import SettingsError, SummariserError
from holdfast.models.summariser import Summariser, Writing
from holdfast.settings import SummariserSettings

__all__ = ["Summariser", "Writing", "open_summariser"]


@lru_cache(maxsize=4)
def open_summariser(settings: SummariserSettings) -> Summariser | None:
    """Return the summariser the settings name; nothing for `extractive`, which needs none.

    Libraries are imported here and not before; a model is read, and a server asked, when the first summary is due.
    Memories of one process share a loaded model: it holds no state.

    Raises:
        SettingsError: the summariser needs a setting that is empty or cannot be used.
        SummariserError: a library is not installed.
    """
    if settings.summariser == "extractive":
        return None
    if settings.summariser == "openai":
        from holdfast.models.endpoint_summariser import EndpointSummariser  # noqa: PLC0415 - see open_summariser

        return EndpointSummariser(
            _needed(settings, "url"),
            _needed(settings, "model"),
            api_key=settings.api_key,
            timeout_s=settings.timeout_s,
        )
    folder = Path(_needed(settings, "folder")).expanduser()
    try:
        from holdfast.models.t5 import T5Summariser  # noqa: PLC0415 - see open_summariser
    except ImportError as error:
        raise SummariserError(
            f"the summariser {settings.summariser} needs a library that is not installed ({error}); "
            "install it with: pip install onnxruntime tokenizers"
        ) from error
    local = T5Summariser(folder, prefix=settings.prefix, max_input_tokens=settings.max_input_tokens)
    # Its name is computed from its files and cannot be set, as the protocol would allow; nobody sets it.
    return cast("Summariser", local)


def _needed(settings: SummariserSettings, name: str) -> str:
    value = str(getattr(settings, name)).strip()
    if not value:
        raise SettingsError(f"the summariser {settings.summariser} needs summariser.{name}, which is empty; set it")
    return value
