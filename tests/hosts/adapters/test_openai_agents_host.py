"""The OpenAI Agents SDK: a runner with a real client and a fake model, its own session beside ours."""

import asyncio
import copy

import pytest
from agents import Agent, OpenAIChatCompletionsModel, Runner, SQLiteSession, function_tool, set_tracing_disabled
from agents.memory import Session, SessionSettings
from fake_model import FakeModel
from openai import AsyncOpenAI

from holdfast import AsyncMemory
from holdfast.integrations.openai_agents import HoldfastSession

set_tracing_disabled(disabled=True)
ITEMS = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "My boat is called Petrel."},
    {"role": "user", "content": [{"type": "input_text", "text": "See"}, {"type": "input_image", "image_url": "x"}]},
    {"type": "reasoning", "id": "r1", "summary": [{"type": "summary_text", "text": "thinking"}], "content": None},
    {"type": "function_call", "call_id": "c1", "name": "look_up", "arguments": '{"boat": "Petrel"}', "id": "f1"},
    {"type": "function_call_output", "call_id": "c1", "output": "built 1998"},
    {"type": "function_call_output", "call_id": "c2", "output": [{"type": "input_text", "text": "Grüße 漢字"}]},
    {
        "type": "message", "id": "m1", "role": "assistant", "status": "completed",
        "content": [{"type": "output_text", "text": "It was built in 1998.", "annotations": [], "logprobs": []}],
    },
    {"type": "web_search_call", "id": "w1", "status": "completed", "action": {"type": "search", "query": "q"}},
    {"role": "user", "content": "yes"},
    {"role": "assistant", "content": "ok"},
    {"role": "user", "content": "yes"},
    {"role": "assistant", "content": "ok"},
]  # fmt: skip


@pytest.fixture(params=["sdk", "holdfast"])
def session(request, memory):
    if request.param == "sdk":
        return SQLiteSession("s1", session_settings=SessionSettings())
    return HoldfastSession("s1", AsyncMemory(memory), user="ana")


def run(coroutine):
    return asyncio.run(coroutine)


def test_it_is_a_session(session):
    assert isinstance(session, Session)
    assert session.session_id == "s1"


def test_items_come_back_as_they_were_added_and_in_order(session):
    async def work():
        given = copy.deepcopy(ITEMS)
        await session.add_items(given[:5])
        await session.add_items([])
        await session.add_items(given[5:])
        return await session.get_items(), await session.get_items(3), await session.get_items(100), given

    everything, last, more, given = run(work())
    assert everything == more == given == ITEMS
    assert last == ITEMS[-3:]


def test_the_last_item_is_taken_back_and_all_are_cleared(session):
    async def work():
        await session.add_items(ITEMS)
        popped = [await session.pop_item(), await session.pop_item()]
        left = await session.get_items()
        await session.clear_session()
        await session.clear_session()
        return popped, left, await session.get_items(), await session.pop_item()

    assert run(work()) == (ITEMS[:-3:-1], ITEMS[:-2], [], None)


def test_settings_limit_what_is_read(memory):
    session = HoldfastSession("s1", memory, user="ana", session_settings=SessionSettings(limit=2))

    async def work():
        await session.add_items(ITEMS)
        return await session.get_items(), await session.get_items(1)

    assert run(work()) == (ITEMS[-2:], ITEMS[-1:])


@function_tool
def look_up(boat: str) -> str:
    """Look a boat up."""
    return f"{boat} was built in 1998"


async def talk(url, session, *sayings):
    model = OpenAIChatCompletionsModel("fake-1", AsyncOpenAI(base_url=url, api_key="none"))
    agent = Agent("helper", instructions="Help the user.", model=model, tools=[look_up])
    return [(await Runner.run(agent, words, session=session)).final_output for words in sayings]


SAYINGS = ("My boat is called Petrel.", 'Please. USE_TOOL:look_up {"boat": "Petrel"}', "What is my boat called?")


def test_a_runner_sends_the_model_the_same_history_with_either_session(memory):
    sent = []
    for session in (SQLiteSession("s1"), HoldfastSession("s1", memory, user="ana")):
        with FakeModel() as model:
            answers = run(talk(model.url, session, *SAYINGS))
        assert "built in 1998" in answers[1]
        sent.append([request["messages"] for request in model.requests])
    assert sent[0] == sent[1]
    assert any("Petrel" in str(message) for message in sent[1][-1][:-1])


def test_what_was_said_in_one_session_is_found_from_another(memory):
    with FakeModel() as model:
        run(talk(model.url, HoldfastSession("s1", memory, user="ana"), *SAYINGS))
    found = memory.search("What is my boat called?", user="ana", session="s2")
    assert "My boat is called Petrel." in [hit.unit.text for hit in found]
