"""LangChain's own tests of retrievers, and a chat whose history a memory keeps."""

import pytest
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from langchain_core.runnables.history import RunnableWithMessageHistory
from langchain_tests.integration_tests import RetrieversIntegrationTests

from builders import opened
from holdfast.integrations.langchain import HoldfastChatMessageHistory, HoldfastRetriever


class TestRetriever(RetrieversIntegrationTests):
    """The suite of `langchain-tests`."""

    @pytest.fixture(autouse=True)
    def _filled(self):
        with opened() as memory:
            for name in ("Petrel", "Albatross", "Gannet", "Puffin"):
                memory.remember(f"A boat called {name}, with a mast.", user="ana")
                memory.remember(f"{name} is also a bird.", user="ana")
            self.memory = memory
            yield

    @property
    def retriever_constructor(self):
        return HoldfastRetriever

    @property
    def retriever_constructor_params(self):
        return {"memory": self.memory, "user": "ana"}

    @property
    def retriever_query_example(self):
        return "a boat with a mast"


def test_a_chain_talks_on_where_its_history_ended(memory):
    model = GenericFakeChatModel(messages=iter([AIMessage("Ahoy!"), AIMessage("It is called Petrel.")]))
    prompt = ChatPromptTemplate.from_messages([MessagesPlaceholder("history"), ("human", "{input}")])
    chain = RunnableWithMessageHistory(
        prompt | model,
        lambda session_id: HoldfastChatMessageHistory(memory, user="ana", session=session_id),
        input_messages_key="input",
        history_messages_key="history",
    )
    config = {"configurable": {"session_id": "s1"}}
    chain.invoke({"input": "My boat is called Petrel."}, config)
    chain.invoke({"input": "What is it called?"}, config)
    history = HoldfastChatMessageHistory(memory, user="ana", session="s1").messages
    assert [(one.type, one.content) for one in history] == [
        ("human", "My boat is called Petrel."), ("ai", "Ahoy!"), ("human", "What is it called?"),
        ("ai", "It is called Petrel."),
    ]  # fmt: skip
    [found, *_] = memory.search("boat", user="ana", session="s2")
    assert found.unit.text == "My boat is called Petrel."
