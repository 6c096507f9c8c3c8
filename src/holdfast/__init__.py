"""Holdfast: a long-term memory and context engine for AI agents.

It keeps every word it is given, finds the right ones again without an LLM, and can say why.
Importing does nothing; `Memory.open()` does.
"""

from holdfast.assembly.context import Context
from holdfast.documents.knowledge import FolderReport
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
    SearchResult,
    Stats,
    Unit,
    Why,
    Widened,
    Written,
)

__version__ = "0.1.0"

__all__ = [
    "AccessError", "BudgetError", "BusyStoreError", "ClosedStoreError", "Compaction", "Context", "Contribution",
    "DamagedStoreError", "EmbedderError", "EmbeddingSpaceError", "Erasure", "Fact", "FactTable", "FilterError",
    "FolderReport", "ForeignStoreError", "Gate", "Hit", "HoldfastError", "InputError", "KnownFact", "Memory",
    "MissingExtraError", "NewerStoreError", "NotFoundError", "ProfileSettings", "ReadOnlyStoreError",
    "SearchResult", "ServerError", "Settings", "SettingsError", "Stats", "StoreError", "SummariserError",
    "Unit", "UnknownProfileError", "Why", "Widened", "Written", "__version__",
]  # fmt: skip
