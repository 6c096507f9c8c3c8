"""Messages of a host → the question in them, and what the host shows already."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.errors import InputError, shown
from holdfast.inputs.units import message_words
from holdfast.types import Author, Unit

Query = str | Sequence[Mapping[str, Any]]


def asked_in(query: Query) -> tuple[str, str | None]:
    """Return the question and the user's message before it.

    Raises:
        InputError: it is neither a question nor messages with one in them.
    """
    if isinstance(query, str):
        return query, None
    texts = [text for author, text in said_in(query) if author == "user" and text.strip()]
    if not texts:
        raise InputError("no user message with text in the list; the last one is the question")
    return texts[-1], texts[-2] if len(texts) > 1 else None


def said_in(query: Query) -> list[tuple[Author, str]]:
    """Return who said what in the messages that a host shows; a bare question shows none."""
    if isinstance(query, str):
        return []
    if not isinstance(query, Sequence) or not all(isinstance(message, Mapping) for message in query):
        raise InputError(f"{shown(query)} is not a question; give text or a list of messages")
    for number, message in enumerate(query):
        if isinstance(message, Mapping) and "role" not in message:
            raise InputError(f"message {number} has no role; say who wrote it, as in {{'role': 'user', …}}")
    return [message_words(message) for message in query if isinstance(message, Mapping)]


def shown_among(turns: Sequence[Unit], said: Sequence[tuple[Author, str]]) -> frozenset[str]:
    """Return which turns the host shows: of equal ones the latest, as many as it shows."""
    left = Counter(said)
    found = []
    for turn in reversed(turns):
        if left[turn.author, turn.text] > 0:
            left[turn.author, turn.text] -= 1
            found.append(turn.id)
    return frozenset(found)
