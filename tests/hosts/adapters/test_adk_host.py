"""Google ADK: a runner whose agent looks into its memory, ADK's own service beside ours."""

import asyncio

import pytest
from google.adk.agents import Agent
from google.adk.events import Event
from google.adk.memory import BaseMemoryService, InMemoryMemoryService
from google.adk.memory.memory_entry import MemoryEntry
from google.adk.models import BaseLlm, LlmResponse
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService, Session
from google.adk.tools import load_memory
from google.genai import types

from holdfast.integrations.adk import HoldfastMemoryService

OWNER = {"app_name": "boats", "user_id": "ana"}


def said(words, author="user", name=None, at=1_770_000_000.0):
    role = "user" if author == "user" else "model"
    content = types.Content(role=role, parts=[types.Part(text=text) for text in words.split("|")]) if words else None
    return Event(id=name or words, author=author, content=content, timestamp=at, invocation_id="i")


def session(*events, name="s1", user="ana", app="boats"):
    return Session(id=name, app_name=app, user_id=user, events=list(events))


EVENTS = (
    said("My boat is called Petrel.|It has a mast."),
    said("I will remember the boat.", author="helper", at=1_770_000_001.5),
    said(None, author="helper", name="nothing"),
    said("The weather is fine.", at=1_770_000_002.0),
)


@pytest.fixture(params=["adk", "holdfast"])
def service(request, memory):
    return InMemoryMemoryService() if request.param == "adk" else HoldfastMemoryService(memory)


def run(coroutine):
    return asyncio.run(coroutine)


def text_of(entry):
    return " ".join(part.text for part in entry.content.parts)


async def find(service, query, **owner):
    return (await service.search_memory(**{**OWNER, **owner}, query=query)).memories


def test_a_session_is_found_again_with_author_and_time(service):
    async def work():
        await service.add_session_to_memory(session(*EVENTS))
        return await find(service, "What is my boat called?")

    assert isinstance(service, BaseMemoryService)
    first = run(work())[0]
    assert text_of(first) == "My boat is called Petrel. It has a mast."
    assert first.content == EVENTS[0].content
    assert (first.author, first.timestamp[:10]) == ("user", "2026-02-02")


def test_a_session_that_is_added_again_is_kept_once(service):
    async def work():
        await service.add_session_to_memory(session(*EVENTS[:2]))
        await service.add_session_to_memory(session(*EVENTS))
        await service.add_events_to_memory(**OWNER, events=EVENTS[-1:], session_id="s1")
        return await find(service, "boat"), await find(service, "weather")

    for found in run(work()):
        assert len(found) == len({text_of(entry) for entry in found}) >= 1


def test_users_and_apps_are_apart(service):
    async def work():
        await service.add_session_to_memory(session(*EVENTS))
        return await find(service, "boat", user_id="bob"), await find(service, "boat", app_name="other")

    assert run(work()) == ([], [])


def test_a_memory_is_deleted_by_its_id(service):
    async def work():
        await service.add_session_to_memory(session(*EVENTS))
        entry = (await find(service, "weather"))[0]
        assert text_of(entry) == "The weather is fine."
        for name in (entry.id, entry.id, None, ""):
            await service.delete_memory(**OWNER, memory_id=name)
        return await find(service, "weather"), await find(service, "")

    left, nothing = run(work())
    assert "The weather is fine." not in map(text_of, left)
    assert nothing == []


def test_memories_are_added_as_they_are(memory):
    service = HoldfastMemoryService(memory, limit=1)
    entry = MemoryEntry(
        id="e1", content=types.UserContent("My boat is called Petrel."), author="user",
        timestamp="2026-02-02T10:00:00Z", custom_metadata={"kind": "boat"},
    )  # fmt: skip

    async def work():
        await service.add_memory(**OWNER, memories=[entry], custom_metadata={"from": "import"})
        await service.add_events_to_memory(**OWNER, events=[said("a second boat")], custom_metadata={"n": 1})
        return await find(service, "What is my boat called?")

    [found] = run(work())
    assert (found.id, found.content.model_dump(), found.author) == ("e1", entry.content.model_dump(), "user")
    assert found.custom_metadata == {"kind": "boat", "from": "import"}
    assert found.timestamp.startswith("2026-02-02T10:00:00")


class Model(BaseLlm):
    """A model that asks its memory when it is asked, and repeats what it is given."""

    async def generate_content_async(self, llm_request, stream=False):
        part = llm_request.contents[-1].parts[-1]
        if part.function_response is not None:
            reply = types.Part(text=f"I know: {part.function_response.response}")
        elif part.text.endswith("?"):
            reply = types.Part(function_call=types.FunctionCall(name="load_memory", args={"query": part.text}))
        else:
            reply = types.Part(text="I see.")
        yield LlmResponse(content=types.Content(role="model", parts=[reply]))


def test_a_runner_finds_in_one_session_what_another_was_told(service):
    sessions = InMemorySessionService()
    agent = Agent(name="helper", model=Model(model="fake"), tools=[load_memory])
    runner = Runner(app_name="boats", agent=agent, session_service=sessions, memory_service=service)

    async def turn(session_id, words):
        message = types.UserContent(words)
        return [event async for event in runner.run_async(user_id="ana", session_id=session_id, new_message=message)]

    async def work():
        for name in ("s1", "s2"):
            await sessions.create_session(**OWNER, session_id=name)
        await turn("s1", "My boat is called Petrel.")
        await service.add_session_to_memory(await sessions.get_session(**OWNER, session_id="s1"))
        return await turn("s2", "What is my boat called?")

    last = run(work())[-1].content.parts[-1].text
    assert last.startswith("I know:")
    assert "My boat is called Petrel." in last
