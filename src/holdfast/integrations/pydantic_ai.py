"""Pydantic AI: a history processor that brings up what a question needs, and a toolset for the model."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, ParamSpec

from holdfast.arguments import OwnerOptions, zone_of
from holdfast.errors import InputError, NotFoundError
from holdfast.integrations.host_messages import MemorySource, missing_package, open_memory
from holdfast.text.quotes import BoundedText, named

try:
    from pydantic_ai import FunctionToolset, ModelRetry
    from pydantic_ai.messages import (
        ModelMessage,
        ModelRequest,
        ModelRequestPart,
        ModelResponse,
        TextContent,
        TextPart,
        ToolCallPart,
        ToolReturnPart,
        UserContent,
        UserPromptPart,
    )
except ImportError as error:
    raise missing_package("pydantic-ai", error) from error

# Marks the part that holds a context: it is replaced at the next request, and is nothing that somebody said.
_MARK = {"holdfast": "context"}
# What a model looks up: enough for some memories, little beside a prompt.
_ANSWER_TOKENS = 2_000
P = ParamSpec("P")


class HoldfastHistory:
    """The history of one session with a memory behind it; `memory` is an open one, a path or an address.

    Give `process` to `ProcessHistory`. Before each request to the model it remembers what was said so far, and puts a
    context of at most `budget` tokens before the last prompt. The answer that ends a run is remembered with the next
    one, or at once by `remember(result.new_messages())`.
    """

    def __init__(
        self,
        memory: MemorySource,
        *,
        user: str,
        session: str,
        agent: str | None = None,
        tenant: str | None = None,
        budget: int | None = None,
    ) -> None:
        self.memory = open_memory(memory)
        self._session, self._budget = session, budget
        self._owner: OwnerOptions = {"user": user, "agent": agent, "tenant": tenant}

    async def process(self, messages: list[ModelMessage]) -> list[ModelMessage]:
        """Return the messages with a context before the last prompt."""
        return await asyncio.to_thread(self._process, messages)

    def remember(self, messages: Sequence[ModelMessage]) -> None:
        """Keep what was said, each message once, however often it is given."""
        if said := list(_said([_without_context(message) for message in messages])):
            self.memory.remember(said, session=self._session, **self._owner)

    def _process(self, messages: list[ModelMessage]) -> list[ModelMessage]:
        plain = [_without_context(message) for message in messages]
        self.remember(plain)
        asked = [(place, one) for place, one in enumerate(plain) if isinstance(one, ModelRequest) and _prompts(one)]
        if not asked:
            return plain
        shown = [{"role": one["role"], "content": one["content"]} for one in _said(plain)]
        context = self.memory.assemble(shown, session=self._session, budget=self._budget, **self._owner).text
        if context.strip():
            place, last = asked[-1]
            part = UserPromptPart([TextContent(context, metadata=_MARK)], timestamp=_prompts(last)[0].timestamp)
            plain[place] = replace(last, parts=[part, *last.parts])
        return plain


def _prompts(message: ModelRequest) -> list[UserPromptPart]:
    """Return the prompts of a message that have words."""
    return [part for part in message.parts if isinstance(part, UserPromptPart) and _words(part.content).strip()]


def _without_context(message: ModelMessage) -> ModelMessage:
    if not isinstance(message, ModelRequest) or not any(map(_is_context, message.parts)):
        return message
    return replace(message, parts=[part for part in message.parts if not _is_context(part)])


def _is_context(part: ModelRequestPart) -> bool:
    content = part.content if isinstance(part, UserPromptPart) else ""
    return not isinstance(content, str) and any(
        isinstance(one, TextContent) and one.metadata == _MARK for one in content
    )


def _said(messages: Sequence[ModelMessage]) -> Iterator[dict[str, Any]]:
    """Return what was said as messages, with the times that tell equal ones apart."""
    for message in messages:
        said = _requested(message) if isinstance(message, ModelRequest) else _answered(message)
        for role, words, at in said:
            if words.strip():
                yield {"role": role, "content": words, "at": at}


def _requested(message: ModelRequest) -> Iterator[tuple[str, str, datetime]]:
    for part in message.parts:
        if isinstance(part, UserPromptPart):
            yield "user", _words(part.content), part.timestamp
        elif isinstance(part, ToolReturnPart):
            yield "tool", part.model_response_str(), part.timestamp


def _answered(message: ModelResponse) -> Iterator[tuple[str, str, datetime]]:
    for part in message.parts:
        if isinstance(part, TextPart):
            yield "assistant", part.content, message.timestamp
        elif isinstance(part, ToolCallPart):
            yield "assistant", f"{part.tool_name} {part.args_as_json_str()}", message.timestamp


def _words(content: str | Sequence[UserContent]) -> str:
    if isinstance(content, str):
        return content
    texts = (one.content if isinstance(one, TextContent) else one for one in content)
    return "\n".join(text for text in texts if isinstance(text, str))


def memory_toolset(
    memory: MemorySource,
    *,
    user: str,
    session: str | None = None,
    agent: str | None = None,
    tenant: str | None = None,
) -> FunctionToolset[Any]:
    """Return tools for a model: `remember` a statement, `search_memory`, `read_memory` and `forget_memory` by id.

    Answers are quoted history of at most a few thousand tokens, as those of `holdfast mcp` are. A call that cannot be
    answered as it is comes back to the model with the reason.
    """
    opened = open_memory(memory)
    owner: OwnerOptions = {"user": user, "agent": agent, "tenant": tenant}

    def remember(statement: str, from_user: bool) -> str:  # noqa: FBT001 - a model names its arguments
        """Keep a statement word for word, beyond this conversation.

        Call it once for each preference, plan, fact or correction that will matter later.

        Args:
            statement: One statement, complete by itself, with names and dates.
            from_user: True for the user's own words in the first person; False for a conclusion of yours.
        """
        author = "user" if from_user else "assistant"
        [done] = opened.remember(statement, author=author, scope="user", session=session, **owner)
        replaced = f", replacing {', '.join(map(named, done.superseded))}" if done.superseded else ""
        return f"[{done.status}: id {named(done.id)}{replaced}]"

    def search_memory(query: str, limit: int = 10) -> str:
        """Find memories of earlier conversations by words and meaning, best first, each with its id.

        Args:
            query: The question, in full and with names, as the user would put it.
            limit: The most memories.
        """
        page = BoundedText(opened.settings, zone_of(opened.settings), _ANSWER_TOKENS, reader="read_memory")
        hits = opened.search(query, limit=limit, **owner)
        items = [page.memory(hit.rank, hit.unit, f"score {hit.score:.2f}", of=len(hits)) for hit in hits]
        return page.write(
            page.heading_of(hits), items, lambda _: "ask more narrowly", "" if items else "no memories fit"
        )

    def read_memory(id: str, offset: int = 0) -> str:  # noqa: A002 - the caller's word
        """Read one memory in full, or from a character on when an answer says where it goes on.

        Args:
            id: The id, exactly as search_memory gives it.
            offset: How many characters to skip.
        """
        page = BoundedText(opened.settings, zone_of(opened.settings), _ANSWER_TOKENS, reader="read_memory")
        return page.heading() + page.memory(1, opened.get(id, **owner), start=offset)

    def forget_memory(id: str) -> str:  # noqa: A002 - the caller's word
        """Erase one memory for good. Call it only when the user asks that it be forgotten.

        Args:
            id: The id, exactly as search_memory gives it.
        """
        return f"[erased {len(opened.forget(ids=id, **owner).units)} memories]"

    tools = (remember, search_memory, read_memory, forget_memory)
    return FunctionToolset([_explaining(tool) for tool in tools], id="holdfast")


def _explaining(tool: Callable[P, str]) -> Callable[P, str]:
    """Return a tool that tells the model what was wrong with a call, instead of ending the run."""

    @functools.wraps(tool)
    def run(*args: P.args, **kwargs: P.kwargs) -> str:
        try:
            return tool(*args, **kwargs)
        except (InputError, NotFoundError) as error:
            raise ModelRetry(str(error)) from error

    return run
