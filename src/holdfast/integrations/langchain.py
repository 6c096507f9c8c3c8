"""LangChain: a retriever over a memory, and the history of a chat kept in one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from holdfast.errors import InputError, quote_value
from holdfast.integrations.host_messages import HostMessage, MemorySource, Transcript, missing_package, open_memory
from holdfast.memory import Memory
from holdfast.messages.checks import check_list
from holdfast.messages.content import message_words
from holdfast.types import AnswerState, Hit, iso

try:
    from langchain_core.callbacks import CallbackManagerForRetrieverRun
    from langchain_core.chat_history import BaseChatMessageHistory
    from langchain_core.documents import Document
    from langchain_core.messages import BaseMessage, message_to_dict, messages_from_dict
    from langchain_core.retrievers import BaseRetriever
    from pydantic import ConfigDict, field_validator
except ImportError as error:
    raise missing_package("langchain", error) from error

_ROLES = {"ai": "assistant", "assistant": "assistant", "tool": "tool", "function": "tool", "system": "system"}


class HoldfastRetriever(BaseRetriever):
    """Finds memories as documents; `memory` is an open one, a path or an address, `user` whose it is.

    `k` is the most documents; fewer come back when fewer fit the question. A document has the unit's words, its id
    and metadata, and under `holdfast` who said it, when, and the score. `k`, `filters` and the other fields may be
    given to `invoke` too.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    memory: Memory
    user: str
    k: int = 4
    session: str | None = None
    only_session: bool = False
    agent: str | None = None
    tenant: str | None = None
    filters: dict[str, Any] | None = None
    profile: str = "hybrid"

    @field_validator("memory", mode="before")
    @classmethod
    def _open(cls, value: object) -> object:
        return open_memory(value)

    def _get_relevant_documents(
        self,
        query: str,
        *,
        run_manager: CallbackManagerForRetrieverRun | None = None,  # noqa: ARG002 - theirs
        **kwargs: Any,  # noqa: ANN401 - options of a search
    ) -> list[Document]:
        names = ("user", "session", "only_session", "agent", "tenant", "filters", "profile")
        given = {"limit": self.k, **{name: getattr(self, name) for name in names}}
        if "k" in kwargs:
            kwargs["limit"] = kwargs.pop("k")
        found = self.memory.search(query, **given | kwargs)
        return [_as_document(hit, found.state) for hit in found]


def _as_document(hit: Hit, state: AnswerState) -> Document:
    unit = hit.unit
    said = {
        "score": hit.score, "confidence": hit.confidence, "state": state, "author": unit.author,
        "speaker": unit.speaker, "session": unit.session, "event_time": iso(unit.event_time), "kind": unit.kind,
    }  # fmt: skip
    return Document(id=unit.id, page_content=unit.text, metadata={**unit.metadata, "holdfast": said})


class HoldfastChatMessageHistory(BaseChatMessageHistory):
    """The messages of one session, each as it was added; their words are remembered beyond the session.

    `clear` erases the messages from the memory, too.
    """

    def __init__(
        self, memory: MemorySource, *, user: str, session: str, agent: str | None = None, tenant: str | None = None
    ) -> None:
        self.memory = open_memory(memory)
        self._transcript = Transcript(
            self.memory, "langchain", session, {"user": user, "agent": agent, "tenant": tenant}
        )

    @property
    def messages(self) -> list[BaseMessage]:  # type: ignore[override]  # theirs may be a property, too
        """Return the messages, oldest first."""
        return messages_from_dict(self._transcript.read())

    def add_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Add messages at the end, all of them or none."""
        self._transcript.append([_read(message) for message in check_list("messages", messages)])

    def clear(self) -> None:
        """Erase the messages."""
        self._transcript.clear()


def _read(message: object) -> HostMessage:
    if not isinstance(message, BaseMessage):
        raise InputError(f"{quote_value(message)} is no message of LangChain; give a HumanMessage, an AIMessage …")
    named = getattr(message, "role", "")  # of a chat message, which may name anybody
    role = _ROLES.get(named or message.type, "user")
    calls = [{"name": call["name"], "input": call["args"]} for call in getattr(message, "tool_calls", ())]
    author, words = message_words({"role": role, "content": [str(message.text), *calls]})
    return HostMessage(words, author, message_to_dict(message), message.name or named)
