"""LlamaIndex: a memory block. What falls out of the short-term memory is remembered, and what fits comes back."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from holdfast.arguments import OwnerOptions
from holdfast.errors import BudgetError
from holdfast.integrations.host_messages import HostMessage, as_turn, missing_package, open_memory
from holdfast.memory import Memory
from holdfast.messages.content import message_words

try:
    from llama_index.core.base.llms.types import ChatMessage
    from llama_index.core.bridge.pydantic import Field, PrivateAttr, field_validator
    from llama_index.core.memory import BaseMemoryBlock
except ImportError as error:
    raise missing_package("llamaindex", error) from error

ChatMessages = list[dict[str, Any]]


class HoldfastMemoryBlock(BaseMemoryBlock[str]):
    """A block over a memory; `memory` is an open one, a path or an address, `user` whose it is.

    Its text never counts more than `budget` tokens by Holdfast's estimate. With a `priority` above 0, a block that
    has to shrink is assembled again with less; below what its rules need, it is left out.
    """

    name: str = Field(default="Memories", description="The name of the memory block.")
    memory: Memory = Field(exclude=True, description="The memory: an open one, a path or an address.")
    user: str = Field(description="Whose memory it is.")
    agent: str | None = None
    tenant: str | None = None
    budget: int = Field(default=1_000, description="The most tokens of the text.")
    _asked: dict[str, tuple[ChatMessages, str | None, int]] = PrivateAttr(default_factory=dict)

    @field_validator("memory", mode="before")
    @classmethod
    def _open(cls, value: object) -> object:
        return open_memory(value)

    @property
    def _owner(self) -> OwnerOptions:
        return {"user": self.user, "agent": self.agent, "tenant": self.tenant}

    async def _aget(
        self,
        messages: list[ChatMessage] | None = None,
        session_id: str | None = None,
        **_: Any,  # noqa: ANN401
    ) -> str:
        asked = [_message(one) for one in messages or ()]
        if not any(one["role"] == "user" and one["content"].strip() for one in asked):
            return ""
        return await asyncio.to_thread(self._assemble, asked, session_id, self.budget)

    async def _aput(self, messages: list[ChatMessage]) -> None:
        by_session: dict[str | None, list[ChatMessage]] = {}
        for one in messages:
            by_session.setdefault(one.additional_kwargs.get("session_id"), []).append(one)
        for session, said in by_session.items():
            await asyncio.to_thread(self._remember, said, session)

    async def atruncate(self, content: str, tokens_to_truncate: int) -> str | None:
        """Return a context of as many tokens less for the same question; None when that cannot be."""
        messages, session, tokens = self._asked.get(content, ([], None, 0))
        if tokens <= tokens_to_truncate:
            return None
        try:
            return await asyncio.to_thread(self._assemble, messages, session, tokens - tokens_to_truncate)
        except BudgetError:
            return None

    def _assemble(self, messages: ChatMessages, session: str | None, budget: int) -> str:
        context = self.memory.assemble(messages, session=session, budget=budget, **self._owner)
        self._asked = {context.text: (messages, session, context.tokens)}  # the last one, which may have to shrink
        return context.text

    def _remember(self, messages: Sequence[ChatMessage], session: str | None) -> None:
        turns = [as_turn(_read(one), "llama-index") for one in messages]
        self.memory.remember(turns, session=session, **self._owner)


def _message(message: ChatMessage) -> dict[str, Any]:
    role = {"model": "assistant", "chatbot": "assistant"}.get(message.role.value, message.role.value)
    return {"role": role, "content": message.content or ""}


def _read(message: ChatMessage) -> HostMessage:
    author, words = message_words(_message(message))
    return HostMessage(words, author, message.model_dump(mode="json"))
