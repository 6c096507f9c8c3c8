"""The frozen values that travel between the stages. Sections `C1`, `C4` … refer to the contract."""

from __future__ import annotations

from holdfast.types.known import *
from holdfast.types.outcomes import *
from holdfast.types.ranked import *
from holdfast.types.results import *
from holdfast.types.sources import *
from holdfast.types.units import *

__all__ = [
    "ACTS", "AUTHORS", "CONTROLS", "DECISIONS", "FACTS", "FIELDS", "INSTRUCTIONS", "JSON", "KINDS", "MEDIA_TYPES",
    "ORIGINS", "PIECE_KINDS", "QUESTION", "ROLES", "SCOPES", "Act", "Adjustment", "Analysis", "AnswerState", "Author",
    "AuthoredText", "AuthoredUnit", "Candidate", "Cluster", "Compacted", "Compaction", "Condition",
    "ContextCandidate", "Contribution", "Cut", "CutRows", "Deadline", "Decision", "DecisionKind", "Declined",
    "Document", "Draft", "DroppedCandidate", "Erasure", "ExportReport", "Fact", "FactTable", "Field", "Filter",
    "Gate", "Hit", "ImportReport", "Indicator", "Junction", "Kind", "KnownFact", "Lineage", "MediaType", "Mention",
    "NameCount", "Op", "Origin", "Piece", "PieceKind", "ProjectedCandidate", "Projection", "ProjectionQuery",
    "ProjectionStep", "QueryProfile", "Readings", "Record", "RetrievalResult", "Role", "Rung", "Scope",
    "SearchResult", "Section", "SkippedEntry", "Source", "SourceLimits", "SourceUnit", "Span", "Stance", "Stats",
    "Status", "StepDrop", "StoredUnit", "StoredVector", "StrategyCandidate", "StrategyExplanation", "StrategyRank",
    "StrategyScores", "Summarised", "SummaryMethod", "SupersededSpan", "Surroundings", "Trace", "Trivial",
    "TurnReading", "Unit", "View", "Why", "WriteResult", "combine", "digest", "from_iso", "is_piece",
    "iso", "piece_id",
]  # fmt: skip
