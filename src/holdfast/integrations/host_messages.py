"""What every integration begins with: the memory, and the messages of a host as turns and back."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from holdfast.arguments import OwnerOptions
from holdfast.client.asynchronous import AsyncMemory
from holdfast.errors import InputError, MissingExtraError, quote_value, say_install
from holdfast.memory import Memory
from holdfast.types import JSON, Author, Unit


class HostMessage(NamedTuple):
    """A message of a framework: its words, who wrote it, and the message itself as JSON."""

    words: str
    author: Author
    original: JSON
    speaker: str = ""


def as_turn(message: HostMessage, form: str, name: str | None = None) -> dict[str, Any]:
    """Return what `remember` takes: a turn with the message beside its words; `form` says whose message it is.

    Each has an id of its own unless it is named, so that "yes" can be said twice.
    """
    words = message.words if message.words.strip() else f"[{form} message without words]"
    return {
        "id": name or f"m-{uuid.uuid4().hex}",
        "kind": "turn",
        "text": words[:MOST_WORDS],
        "author": message.author,
        "speaker": message.speaker,
        "origin": "tool" if message.author == "tool" else "conversation",
        "parts": [message.original],
        "metadata": {"message_form": form},
    }


class Transcript:
    """The messages of one session in the form of one framework, oldest first."""

    def __init__(self, memory: Memory, form: str, session: str, owner: OwnerOptions) -> None:
        self._memory, self._form, self._session, self._owner = memory, form, session, owner

    def append(self, messages: Sequence[HostMessage]) -> None:
        """Add messages at the end, all of them or none."""
        if messages:
            turns = [as_turn(one, self._form) for one in messages]
            self._memory.remember(turns, session=self._session, **self._owner)

    def read(self, limit: int | None = None) -> list[JSON]:
        """Return the messages, or the last `limit` of them, as they were given."""
        return [unit.parts[0] for unit in self._last(limit)]

    def pop(self) -> JSON | None:
        """Erase the last message and return it; None when there is none."""
        units = self._last(1)
        self._erase(units)
        return units[0].parts[0] if units else None

    def clear(self) -> None:
        """Erase all of the messages; what others keep in the session stays."""
        self._erase(self._last(None))

    def _last(self, limit: int | None) -> list[Unit]:
        if limit is not None and limit < 1:
            return []
        own = {"metadata.message_form": self._form}
        found = self._memory.list(
            session=self._session, filters=own, limit=limit, order="newest", current_only=False, **self._owner
        )
        return found[::-1]

    def _erase(self, units: Sequence[Unit]) -> None:
        if units:
            self._memory.forget(ids=[unit.id for unit in units], **self._owner)


# A text of so many characters never passes a mebibyte, which is as much as a unit may hold. What is longer is kept
# whole beside its words.
MOST_WORDS = 250_000
MemorySource = Memory | AsyncMemory | str | Path


def open_memory(source: object) -> Memory:
    """Return the memory that an adapter uses: one that is open, or the one at a path or an address.

    Raises:
        InputError: it is none of these.
        StoreError: the file cannot be used.
    """
    if isinstance(source, AsyncMemory):
        return source.memory
    if isinstance(source, Memory):
        return source
    if not isinstance(source, str | Path):
        raise InputError(f"memory = {quote_value(source)} is no memory; give an open Memory, a path or an address")
    return Memory.open(source)


def missing_package(extra: str, error: ImportError) -> MissingExtraError:
    """Return the error of an adapter whose framework is not installed."""
    return MissingExtraError(f"this adapter needs a library that is not installed ({error}); {say_install(extra)}")
