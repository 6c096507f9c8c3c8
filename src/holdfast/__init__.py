"""Holdfast: a long-term memory and context engine for AI agents.

It keeps every word it is given, finds the right ones again without an LLM, and can say why.
Importing does nothing; `Memory.open()` does.
"""

from typing import TYPE_CHECKING

from holdfast.errors import (
    AccessError,
    BudgetError,
    BusyStoreError,
    ClosedStoreError,
    DamagedStoreError,
    EmbedderError,
    EmbeddingSpaceError,
    FilterError,
    ForeignStoreError,
    HoldfastError,
    InputError,
    MissingExtraError,
    NewerStoreError,
    NotFoundError,
    QuotaError,
    ReaderError,
    ReadOnlyStoreError,
    ServerError,
    SettingsError,
    StoreError,
    SummariserError,
    UnknownProfileError,
)
from holdfast.memory import Memory
from holdfast.settings import ProfileSettings, Settings
from holdfast.types import (
    Compaction,
    Contribution,
    Erasure,
    Fact,
    FactTable,
    Gate,
    Hit,
    KnownFact,
    NameCount,
    SearchResult,
    Stats,
    Surroundings,
    Unit,
    Why,
    WriteResult,
)
from holdfast.types.contexts import Context
from holdfast.types.known import About, AboutLine
from holdfast.types.outcomes import FolderReport

if TYPE_CHECKING:
    from holdfast.client.asynchronous import AsyncMemory

__version__ = "0.1.0"

__all__ = [
    "About", "AboutLine", "AccessError", "AsyncMemory", "BudgetError", "BusyStoreError", "ClosedStoreError",
    "Compaction", "Context", "Contribution", "DamagedStoreError", "EmbedderError", "EmbeddingSpaceError",
    "Erasure", "Fact", "FactTable",
    "FilterError", "FolderReport", "ForeignStoreError", "Gate", "Hit", "HoldfastError", "InputError", "KnownFact",
    "Memory", "MissingExtraError", "NameCount", "NewerStoreError", "NotFoundError", "ProfileSettings",
    "QuotaError", "ReadOnlyStoreError", "ReaderError", "SearchResult", "ServerError", "Settings", "SettingsError",
    "Stats", "StoreError", "SummariserError", "Surroundings", "Unit", "UnknownProfileError", "Why", "WriteResult",
    "__version__",
]  # fmt: skip


def __getattr__(name: str) -> object:
    """Import what few programs need when it is asked for: an event loop takes longer to import than a memory."""
    if name == "AsyncMemory":
        from holdfast.client.asynchronous import AsyncMemory  # noqa: PLC0415 - see above

        return AsyncMemory
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
