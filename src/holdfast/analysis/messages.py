"""Messages of a host → the question in them, and what the host shows already."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.errors import InputError, shown


def asked_in(query: str | Sequence[Mapping[str, Any]]) -> tuple[str, str | None]:
    """Return the question and the user's message before it."""
    if isinstance(query, str):
        return query, None
    if not isinstance(query, Sequence):
        raise InputError(f"{shown(query)} is not a question; give text or a list of messages")
    texts = [
        message["content"]
        for message in query
        if isinstance(message, Mapping) and message.get("role") == "user" and isinstance(message.get("content"), str)
    ]
    if not texts:
        raise InputError("no user message with text in the list; the last one is the question")
    return texts[-1], texts[-2] if len(texts) > 1 else None


def shown_in(query: str | Sequence[Mapping[str, Any]]) -> frozenset[tuple[str, str]]:
    """Return who said what in the messages that the host shows already."""
    if isinstance(query, str):
        return frozenset()
    return frozenset((str(message.get("role", "user")), str(message.get("content"))) for message in query)
