"""A graph of LangGraph keeps what it learns in a memory, and another thread of it finds that."""

import asyncio
from typing import TypedDict

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.runtime import Runtime

from holdfast import Memory
from holdfast.integrations.langgraph import HoldfastStore


class State(TypedDict):
    said: str
    recalled: list[str]


def talk(state: State, runtime: Runtime):
    """Answer with what is known, and keep what was said."""
    space = ("memories", "ana")
    found = runtime.store.search(space, query=state["said"], limit=3)
    runtime.store.put(space, f"note-{len(runtime.store.search(space))}", {"text": state["said"]})
    return {"recalled": [item.value["text"] for item in found]}


async def talk_later(state: State, runtime: Runtime):
    found = await runtime.store.asearch(("memories", "ana"), query=state["said"])
    return {"recalled": [item.value["text"] for item in found]}


def build(node, store):
    graph = StateGraph(State)
    graph.add_node("talk", node)
    graph.add_edge(START, "talk")
    graph.add_edge("talk", END)
    return graph.compile(store=store, checkpointer=InMemorySaver())


def test_a_graph_finds_in_one_thread_what_it_was_told_in_another(tmp_path):
    with Memory.open(tmp_path / "graph.db") as memory:
        graph = build(talk, HoldfastStore(memory, user="app"))
        graph.invoke({"said": "My boat is called Petrel."}, {"configurable": {"thread_id": "1"}})
    with Memory.open(tmp_path / "graph.db") as memory:
        graph = build(talk_later, HoldfastStore(memory, user="app"))
        asked = graph.ainvoke({"said": "What is my boat called?"}, {"configurable": {"thread_id": "2"}})
        assert asyncio.run(asked)["recalled"] == ["My boat is called Petrel."]
