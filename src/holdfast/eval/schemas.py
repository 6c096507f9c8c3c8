"""What a parsed file is, by its keys: a set of some schema, or a companion of one. Names of files decide nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holdfast.eval.reading import Row


def companions(value: object) -> tuple[str, Any] | None:
    """Return which companion of a chat file `value` is, and its rows by key; None when it is none."""
    if not isinstance(value, list) or not value or not isinstance(value[0], dict):
        return None
    first = value[0]
    if {"qid", "sample_id", "qa_index", "evidence"} <= first.keys():
        return "index", {(str(row["sample_id"]), int(row["qa_index"])): row for row in value}
    if {"question_id", "correct_evidence"} <= first.keys():
        return "errata", {str(row["question_id"]): row for row in value}
    if {"question_id", "gold_turns"} <= first.keys():
        return "haystack index", {str(row["question_id"]): row for row in value}
    return None


def as_published(kind: str, rows: Mapping[Any, Row]) -> dict[Any, Row]:
    """Return a companion without what it says about faults in the gold."""
    if kind == "errata":
        return {}
    faults = {"errata", "corrected_evidence", "corrected_answer"}
    return {key: {name: value for name, value in row.items() if name not in faults} for key, row in rows.items()}


def schema_of(value: object) -> str | None:
    """Return which schema a parsed file has, by its keys."""
    first = value[0] if isinstance(value, list) and value else value
    if not isinstance(first, dict):
        return None
    keys = first.keys()
    known = {
        "locomo": {"conversation", "qa", "sample_id"},
        "longmemeval": {"haystack_sessions", "question_id"},
        "beam": {"chat", "probing_questions"},
        "realmem": {"dialogues"},
        "tsqa": {"paras", "questions", "page"},
    }
    return next((name for name, needed in known.items() if needed <= keys), None)
