"""Pydantic AI: an agent whose history brings up what it was told, and whose model calls the memory's tools."""

import json

from pydantic_ai import Agent
from pydantic_ai.capabilities import ProcessHistory
from pydantic_ai.messages import (
    ModelMessagesTypeAdapter,
    ModelResponse,
    RetryPromptPart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import FunctionModel

from holdfast.integrations.pydantic_ai import HoldfastHistory, memory_toolset


def seen_by(messages):
    """Return the texts that a model gets, one for each prompt part."""
    parts = [part for message in messages for part in message.parts if isinstance(part, UserPromptPart)]
    return [
        part.content
        if isinstance(part.content, str)
        else "".join(str(getattr(one, "content", one)) for one in part.content)
        for part in parts
    ]


class Listener:
    """A model that says "ok", keeps what it was shown, and calls the tools it is told to call."""

    def __init__(self, *calls):
        self.seen, self.results, self.tools, self._calls = [], [], [], list(calls)

    def answer(self, messages, info):
        self.seen.append(seen_by(messages))
        self.tools = info.function_tools
        self.results += [part for part in messages[-1].parts if isinstance(part, ToolReturnPart | RetryPromptPart)]
        if self._calls:
            name, arguments = self._calls.pop(0)
            return ModelResponse([ToolCallPart(name, json.dumps(arguments))])
        return ModelResponse([TextPart("ok")])


def build(listener, history=None, **given):
    capabilities = [ProcessHistory(history.process)] if history else []
    return Agent(FunctionModel(listener.answer), capabilities=capabilities, **given)


def test_a_run_finds_what_another_session_was_told(memory):
    told, asked = Listener(), Listener()
    first = HoldfastHistory(memory, user="ana", session="s1")
    build(told, first).run_sync("My boat is called Petrel.")
    build(asked, HoldfastHistory(memory, user="ana", session="s2")).run_sync("What is my boat called?")
    context, question = asked.seen[0]
    assert "user: My boat is called Petrel." in context
    assert question == "What is my boat called?"


def test_a_context_is_replaced_and_never_remembered(memory):
    memory.remember("My boat is called Petrel.", user="ana")
    history = HoldfastHistory(memory, user="ana", session="s1")
    listener = Listener(("look", {}), ("look", {}))
    agent = build(listener, history)

    @agent.tool_plain
    def look() -> str:
        """Look around."""
        return "the sea is calm"

    result = agent.run_sync("What is my boat called?")
    # Three requests to the model, and one context in each.
    assert [len([text for text in seen if "user: My boat is called Petrel." in text]) for seen in listener.seen] == [
        1,
        1,
        1,
    ]
    again = ModelMessagesTypeAdapter.validate_json(result.all_messages_json())
    agent.run_sync("And what is the sea like?", message_history=again)
    assert len(listener.seen[-1]) == 3  # a context and two questions
    history.remember(result.new_messages())
    kept = [(unit.author, unit.text) for unit in memory.list(user="ana", session="s1", order="oldest", limit=None)]
    assert [one for one in kept if one[0] == "user"] == [
        ("user", "What is my boat called?"), ("user", "And what is the sea like?"),
    ]  # fmt: skip
    assert kept.count(("tool", "the sea is calm")) == 2
    assert ("assistant", "ok") in kept


def test_a_run_with_nothing_to_recall_is_left_as_it_is(memory):
    listener = Listener()
    build(listener, HoldfastHistory(memory, user="ana", session="s1", budget=200)).run_sync(["Hello", "there"])
    assert listener.seen == [["Hellothere"]]


def test_a_model_uses_the_tools(memory):
    memory.remember("My boat is called Petrel.", user="ana", id="boat")
    listener = Listener(
        ("remember", {"statement": "I live in Porto.", "from_user": True}),
        ("remember", {"statement": "Ana is a sailor.", "from_user": False}),
        ("search_memory", {"query": "What is my boat called?"}),
        ("read_memory", {"id": "boat"}),
        ("forget_memory", {"id": "boat"}),
        ("read_memory", {"id": "boat"}),
        ("search_memory", {"query": "What is my boat called?"}),
    )
    build(listener, toolsets=[memory_toolset(memory, user="ana")], retries=3).run_sync("Please.")
    added, concluded, found, read, erased, gone, nothing = (str(part.content) for part in listener.results)
    assert added.startswith("[added: id ")
    assert concluded.startswith("[added: id ")
    assert "user: My boat is called Petrel." in found
    assert "user: My boat is called Petrel." in read
    assert erased == "[erased 1 memories]"
    assert "there is no unit 'boat'" in gone
    assert "Petrel" not in nothing
    assert {unit.text: unit.author for unit in memory.list(user="ana")} == {
        "I live in Porto.": "user", "Ana is a sailor.": "assistant",
    }  # fmt: skip
    described = {tool.name: tool for tool in listener.tools}
    assert set(described) == {"remember", "search_memory", "read_memory", "forget_memory"}
    assert "word for word" in described["remember"].description
    assert described["remember"].parameters_json_schema["required"] == ["statement", "from_user"]
