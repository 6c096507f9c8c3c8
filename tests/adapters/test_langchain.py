"""LangChain's retriever and chat history over a memory."""

import asyncio

import pytest
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, ChatMessage, HumanMessage, RemoveMessage, SystemMessage, ToolMessage
from langchain_core.runnables import RunnableLambda

from builders import opened
from holdfast import InputError, Memory
from holdfast.integrations.langchain import HoldfastChatMessageHistory, HoldfastRetriever
from interfaces.served import served

MESSAGES = [
    SystemMessage("Be brief."),
    HumanMessage("My boat is called Petrel.", name="ana", id="h1"),
    AIMessage(
        "", id="a1", tool_calls=[{"name": "look_up", "args": {"boat": "Petrel", "n": 1.5}, "id": "c1"}],
        usage_metadata={"input_tokens": 3, "output_tokens": 2, "total_tokens": 5},
    ),
    ToolMessage("built 1998", tool_call_id="c1", artifact={"year": 1998}),
    AIMessage([{"type": "text", "text": "It was built in 1998."}, {"type": "image", "url": "https://x/y.png"}]),
    HumanMessage("yes"),
    AIMessage("ok"),
    HumanMessage("yes"),
    AIMessage("ok"),
    ChatMessage("Once upon a time", role="narrator"),
    ChatMessage("Grüße 漢字 🍜\n\t", role="user", additional_kwargs={"k": [1, None, {"x": True}]}),
]  # fmt: skip


@pytest.fixture(params=["embedded", "remote"])
def memory(request):
    if request.param == "embedded":
        with opened() as memory:
            yield memory
    else:
        with served(opened()) as address, Memory.open(address) as memory:
            yield memory


def test_messages_come_back_as_they_were_added_and_in_order(memory):
    history = HoldfastChatMessageHistory(memory, user="ana", session="s1")
    assert history.messages == []
    history.add_messages(MESSAGES[:4])
    for message in MESSAGES[4:]:
        history.add_message(message)
    assert history.messages == MESSAGES
    assert str(history).startswith("System: Be brief.\nHuman: My boat")


def test_a_message_longer_than_a_unit_comes_back_whole():
    with opened() as memory:
        history = HoldfastChatMessageHistory(memory, user="ana", session="s1")
        message = HumanMessage("rope " * 300_000)
        history.add_message(message)
        assert history.messages == [message]


def test_sessions_and_users_are_apart_and_clear_erases_one(memory):
    one = HoldfastChatMessageHistory(memory, user="ana", session="s1")
    others = [
        HoldfastChatMessageHistory(memory, user="ana", session="s2"),
        HoldfastChatMessageHistory(memory, user="bob", session="s1"),
    ]
    for history in (one, *others):
        history.add_user_message("hello")
        history.add_ai_message("hi")
    memory.remember("a note of somebody else", user="ana", session="s1")
    one.clear()
    one.clear()
    assert one.messages == []
    assert [len(history.messages) for history in others] == [2, 2]
    assert [unit.text for unit in memory.list(user="ana", session="s1")] == ["a note of somebody else"]


def test_what_was_said_in_a_chat_is_remembered(memory):
    HoldfastChatMessageHistory(memory, user="ana", session="s1").add_messages(MESSAGES)
    found = HoldfastRetriever(memory=memory, user="ana", session="s2").invoke("What is my boat called?")
    assert found[0].page_content == "My boat is called Petrel."
    assert found[0].metadata["holdfast"]["author"] == "user"
    assert found[0].metadata["holdfast"]["state"] in ("found", "closest")
    assert found[0].metadata["holdfast"]["session"] == "s1"


def test_a_chat_works_on_an_event_loop(memory):
    history = HoldfastChatMessageHistory(memory, user="ana", session="s1")

    async def work():
        await history.aadd_messages(MESSAGES)
        before = await history.aget_messages()
        await history.aclear()
        return before, await history.aget_messages()

    assert asyncio.run(work()) == (MESSAGES, [])


def test_a_message_that_cannot_be_kept_leaves_nothing(memory):
    history = HoldfastChatMessageHistory(memory, user="ana", session="s1")
    with pytest.raises(InputError, match="NUL"):
        history.add_messages([HumanMessage("fine"), HumanMessage("not \x00 fine")])
    assert history.messages == []
    history.add_messages([])
    history.add_message(RemoveMessage(id="h1"))
    assert history.messages == [RemoveMessage(id="h1")]


def test_a_retriever_finds_documents_with_ids_and_metadata(memory):
    memory.remember("My boat is called Petrel.", user="ana", metadata={"about": "boat", "n": 1})
    memory.remember("My dog is called Rex.", user="ana", metadata={"about": "dog"})
    retriever = HoldfastRetriever(memory=memory, user="ana", k=1)
    [found] = retriever.invoke("What is my boat called?")
    assert isinstance(found, Document)
    assert memory.get(found.id, user="ana").text == found.page_content == "My boat is called Petrel."
    assert (found.metadata["about"], found.metadata["n"]) == ("boat", 1)
    assert found.metadata["holdfast"]["score"] > 0
    assert len(retriever.invoke("called", k=2)) == 2
    assert [one.metadata["about"] for one in retriever.invoke("called", filters={"about": "dog"})] == ["dog"]
    assert HoldfastRetriever(memory=memory, user="bob").invoke("boat") == []
    assert asyncio.run(retriever.ainvoke("What is my boat called?")) == [found]


def test_a_retriever_is_part_of_a_chain_and_opens_a_path(tmp_path):
    with Memory.open(tmp_path / "boat.db") as memory:
        memory.remember("My boat is called Petrel.", user="ana")
    retriever = HoldfastRetriever(memory=str(tmp_path / "boat.db"), user="ana")
    chain = retriever | RunnableLambda(lambda found: " ".join(one.page_content for one in found))
    assert chain.invoke("boat") == "My boat is called Petrel."
    retriever.memory.close()
    with pytest.raises(ValueError, match="is no memory"):
        HoldfastRetriever(memory=17, user="ana")


@pytest.mark.parametrize(
    "messages", [5, None, "hello", [None], ["hello"], [{"role": "user", "content": "hello"}], {}]
)
def test_what_are_no_messages_is_an_input_error_and_nothing_is_kept(memory, messages):
    history = HoldfastChatMessageHistory(memory, user="ana", session="s")
    given = [HumanMessage("I like tea."), *messages] if isinstance(messages, list) else messages
    with pytest.raises(InputError, match="message"):
        history.add_messages(given)
    assert history.messages == []
