"""Google ADK: a memory service. Sessions are taken in event by event, and found again by any session of the user."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from holdfast.arguments import OwnerOptions
from holdfast.errors import NotFoundError
from holdfast.integrations.host_messages import HostMessage, MemorySource, as_turn, missing_package, open_memory
from holdfast.types import Author, Hit, digest, iso

try:
    from google.adk.events import Event
    from google.adk.memory import BaseMemoryService
    from google.adk.memory.base_memory_service import SearchMemoryResponse
    from google.adk.memory.memory_entry import MemoryEntry
    from google.adk.sessions import Session
    from google.genai.types import Content, Part
except ImportError as error:
    raise missing_package("adk", error) from error

_USER = "user"


class HoldfastMemoryService(BaseMemoryService):
    """A memory service over a memory: an open one, a path or an address.

    An app of ADK is an agent here, so that each app sees its own and what is shared. An event is kept once, however
    often its session is added. What is deleted is erased; to add its session again brings it back.
    """

    def __init__(self, memory: MemorySource, *, tenant: str | None = None, limit: int = 10) -> None:
        self.memory = open_memory(memory)
        self._tenant, self._limit = tenant, limit

    async def add_session_to_memory(self, session: Session) -> None:
        """Keep what was said in a session."""
        await self.add_events_to_memory(
            app_name=session.app_name, user_id=session.user_id, events=session.events, session_id=session.id
        )

    async def add_events_to_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        events: Sequence[Event],
        session_id: str | None = None,
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Keep what some events say; `custom_metadata` is kept with each of them, and can be filtered by."""
        turns = [
            {**turn, "at": datetime.fromtimestamp(event.timestamp, UTC)}
            for event in events
            if (turn := _as_turn(event.content, event.author, digest(app_name, session_id, event.id)))
        ]
        await self._remember(turns, self._owner(app_name, user_id), session_id, custom_metadata)

    async def add_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        memories: Sequence[MemoryEntry],
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Keep memories as they are given, under their ids."""
        turns = [
            {**turn, "at": one.timestamp, "metadata": {**turn["metadata"], **one.custom_metadata}}
            for one in memories
            if (turn := _as_turn(one.content, one.author or _USER, one.id))
        ]
        await self._remember(turns, self._owner(app_name, user_id), None, custom_metadata)

    async def search_memory(self, *, app_name: str, user_id: str, query: str) -> SearchMemoryResponse:
        """Return what fits the question, best first, from whichever session."""
        owner = self._owner(app_name, user_id)
        if not query.strip():
            return SearchMemoryResponse()
        hits = await asyncio.to_thread(self.memory.search, query, limit=self._limit, **owner)
        return SearchMemoryResponse(memories=[_entry(hit) for hit in hits])

    async def delete_memory(self, *, app_name: str, user_id: str, memory_id: str | None = None) -> None:
        """Erase one memory by the id that `search_memory` gives; one that is not there is gone already."""
        if not memory_id:
            return
        try:
            await asyncio.to_thread(self.memory.forget, ids=memory_id, **self._owner(app_name, user_id))
        except NotFoundError:
            return

    def _owner(self, app_name: str, user_id: str) -> OwnerOptions:
        return {"user": user_id, "agent": app_name, "tenant": self._tenant}

    async def _remember(
        self,
        turns: list[dict[str, Any]],
        owner: OwnerOptions,
        session: str | None,
        metadata: Mapping[str, Any] | None,
    ) -> None:
        if turns:
            await asyncio.to_thread(
                self.memory.remember, turns, session=session, scope="user", metadata=metadata or None, **owner
            )


def _as_turn(content: Content | None, author: str, name: str | None) -> dict[str, Any] | None:
    """Return what was said as a turn, or None when there are no words: calls and pictures stay in their session."""
    words = "\n".join(part.text for part in (content and content.parts) or () if part.text and not part.thought)
    if content is None or not words.strip():
        return None
    role: Author = "user" if author == _USER else "assistant"
    original = content.model_dump(mode="json", exclude_none=True)
    return as_turn(HostMessage(words, role, original, "" if author == _USER else author), "adk", name)


def _entry(hit: Hit) -> MemoryEntry:
    unit = hit.unit
    own = unit.metadata.get("message_form") == "adk"
    content = (
        Content.model_validate(unit.parts[0]) if own else Content(role=unit.author, parts=[Part(text=unit.text)])
    )
    return MemoryEntry(
        id=unit.id, content=content, author=unit.speaker or unit.author, timestamp=iso(unit.event_time),
        custom_metadata={name: value for name, value in unit.metadata.items() if name != "message_form"},
    )  # fmt: skip
