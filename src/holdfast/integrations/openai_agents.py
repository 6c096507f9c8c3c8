"""OpenAI Agents SDK: a `Session` that keeps the items of a conversation in a memory."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, cast

from holdfast.integrations.host_messages import HostMessage, MemorySource, Transcript, missing_package, open_memory
from holdfast.messages.content import message_words

try:
    from agents.items import TResponseInputItem
    from agents.memory import SessionSettings
except ImportError as error:
    raise missing_package("openai-agents", error) from error


class HoldfastSession:
    """A `Session` over a memory: the runner reads and writes its items, and their words are remembered beyond it.

    `memory` is an open one, a path or an address, `user` whose it is. `pop_item` and `clear_session` erase what they
    remove from the memory, too.
    """

    def __init__(
        self,
        session_id: str,
        memory: MemorySource,
        *,
        user: str,
        agent: str | None = None,
        tenant: str | None = None,
        session_settings: SessionSettings | None = None,
    ) -> None:
        self.session_id = session_id
        self.session_settings: SessionSettings | None = session_settings or SessionSettings()
        self.memory = open_memory(memory)
        self._transcript = Transcript(
            self.memory, "openai-agents", session_id, {"user": user, "agent": agent, "tenant": tenant}
        )

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """Return the items, or the latest `limit` of them, oldest first."""
        most = limit if limit is not None else self.session_settings.limit if self.session_settings else None
        return await asyncio.to_thread(self._transcript.read, most)

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Add items at the end, all of them or none."""
        messages = [_read(cast("dict[str, Any]", item)) for item in items]
        # A write that has begun is done whole: the runner must not think that it is not.
        await asyncio.shield(asyncio.to_thread(self._transcript.append, messages))

    async def pop_item(self) -> TResponseInputItem | None:
        """Erase the latest item and return it; None when there is none."""
        return cast("TResponseInputItem | None", await asyncio.to_thread(self._transcript.pop))

    async def clear_session(self) -> None:
        """Erase all of the items."""
        await asyncio.to_thread(self._transcript.clear)


def _read(item: Mapping[str, Any]) -> HostMessage:
    """Return an item with its words: a message's, a call's name and arguments, or what a tool answered."""
    original = dict(item)
    if "role" in item:
        author, words = message_words({"role": item["role"], "content": item.get("content")})
        return HostMessage(words, author, original)
    said = [item.get(name) for name in ("name", "arguments", "output", "summary", "content")]
    words = "\n".join(text for one in said for text in _texts(one))
    return HostMessage(words, "tool" if str(item.get("type", "")).endswith("_output") else "assistant", original)


def _texts(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, Mapping):
        return _texts(value.get("text"))
    return [text for one in value for text in _texts(one)] if isinstance(value, list | tuple) else []
