"""The frozen values that travel between the stages. Sections `C1`, `C4` … refer to the contract."""

from __future__ import annotations

from holdfast.types.outcomes import *
from holdfast.types.results import *
from holdfast.types.sources import *
from holdfast.types.units import *

__all__ = [
    "ACTS", "AUTHORS", "CONTROLS", "FACTS", "FIELDS", "INSTRUCTIONS", "JSON", "KINDS", "MEDIA_TYPES", "ORIGINS",
    "PIECE_KINDS", "ROLES", "SCOPES", "Absence", "Account", "Act", "Adjustment", "Analysis", "Asked", "Author",
    "AuthoredText", "AuthoredUnit", "Candidate", "Claims", "Cluster", "Compacted", "Compaction", "Condition",
    "Contribution", "Cut", "CutRows", "Deadline", "Declined", "Document", "Draft", "Dropped", "Erasure", "Exported",
    "Fact", "FactTable", "Fallen", "Field", "Filter", "Gate", "Hit", "Imported", "Indicator", "Junction", "Kept",
    "Kind", "KnownFact", "Lineage", "Listed", "MediaType", "Mention", "Method", "Op", "Origin", "Piece", "PieceKind",
    "Projected", "Projection", "Prospect", "QueryProfile", "Record", "RetrievalResult", "Role", "Rung", "Scope",
    "SearchResult", "Section", "Skipped", "Source", "SourceLimits", "SourceUnit", "Span", "Stance", "Stats",
    "Status", "Step", "StoredVector", "StrategyCandidate", "StrategyStanding", "Summarised", "Trace", "Trivial",
    "Unit", "View", "Why", "Widened", "Written", "combine", "digest", "from_iso", "iso",
]  # fmt: skip
