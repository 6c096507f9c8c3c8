"""The state of an answer in every interface: HTTP, the client, pages, MCP, the command line and adapters."""

import anyio
import pytest
from mcp import Client
from served import client, served

from builders import NOW, later
from holdfast import Memory
from holdfast.client.remote import RemoteMemory
from holdfast.server.mcp import ServerScope, build_server

SAID = (
    "The flat in Utrecht is lovely, we moved in last week.",
    "My rent is nine hundred euros.",
    "We unpacked the last boxes in Rotterdam, the new flat is bright.",
    "I had pasta with Ines.",
    "My sister Ines teaches at a school in Leiden.",
    "Karen is our dentist's receptionist, she is very kind.",
)
STATES = {
    "Who teaches at a school?": "found",
    "Where do I live?": "closest",
    "Which bank is Ines at?": "nothing",
    "Explain quicksort complexity": "nothing",
}
WORTH = {
    "found": "recalled, best first",
    "closest": "it is not sure that one of these answers",
    "nothing": "nothing that was found seems to answer",
}


@pytest.fixture(scope="module")
def memory():
    with Memory.open(":memory:", now=lambda: NOW) as kept:
        for number, text in enumerate(SAID):
            message = {"role": "user", "content": text, "at": later(days=number - 30)}
            kept.remember(message, user="me", session=f"s{number}")
        yield kept


@pytest.fixture(scope="module")
def address(memory):
    with served(memory) as place:
        yield place


@pytest.mark.parametrize("question", STATES)
def test_http_says_it_with_the_hits_and_with_the_context(address, question):
    with client(address) as http:
        found = http.post("/v1/search", json={"query": question, "user": "me"}).json()
        context = http.post("/v1/context", json={"query": question, "user": "me"}).json()
    assert (found["state"], context["state"]) == (STATES[question],) * 2
    assert bool(found["refused"]) == (found["state"] == "nothing")


@pytest.mark.parametrize("question", STATES)
def test_the_client_says_what_the_memory_says(memory, address, question):
    with RemoteMemory(address) as remote:
        for ask in ("search", "assemble"):
            near, far = (getattr(one, ask)(question, user="me") for one in (memory, remote))
            assert (far.state, far.refused) == (near.state, near.refused)


@pytest.mark.parametrize("question", STATES)
def test_the_pages_show_it_above_what_is_closest(address, question):
    with client(address) as http:
        pages = [http.get(path, params={"q": question, "user": "me"}).text for path in ("/", "/context")]
    hits, context = pages
    if STATES[question] == "found":
        assert 'class="notice"' not in hits
    elif question.startswith("Explain"):
        assert "The question was refused: no candidate covers" in hits
    else:
        assert f"{STATES[question].capitalize()}: closest first; {WORTH[STATES[question]]}" in hits
        assert WORTH[STATES[question]] in context


@pytest.mark.parametrize("question", STATES)
def test_an_agent_reads_it_in_the_first_line(memory, question):
    async def ask():
        async with Client(build_server(memory, ServerScope(user="me"))) as mcp:
            return (await mcp.call_tool("search_memory", {"query": question})).content[0].text

    lines = anyio.run(ask).splitlines()
    first, last = lines[0], lines[-1]
    if question.startswith("Explain"):
        assert "no memories fit" in first
    else:
        assert WORTH[STATES[question]] in first
    assert (STATES[question] == "nothing") == ("answers it" in last or "no candidate" in last)
