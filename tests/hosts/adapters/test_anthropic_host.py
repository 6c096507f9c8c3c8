"""Anthropic's SDK: its own memory tool on files beside ours, call by call, and its runner with a fake server."""

import asyncio
import json

import httpx2
import pytest
from anthropic import Anthropic, AsyncAnthropic
from anthropic.lib.tools import BetaAbstractMemoryTool, BetaAsyncAbstractMemoryTool, ToolError
from anthropic.tools import BetaLocalFilesystemMemoryTool

from holdfast.integrations.anthropic import async_memory_tool, memory_tool

CALLS = [
    ("view", {"path": "/memories"}),
    ("create", {"path": "/memories/notes.txt", "file_text": "one\ntwo\nthree\n"}),
    ("create", {"path": "/memories/notes.txt", "file_text": "again"}),
    ("create", {"path": "/memories/deep/er/empty.txt", "file_text": ""}),
    ("create", {"path": "/memories/.hidden", "file_text": "x"}),
    ("view", {"path": "/memories/notes.txt"}),
    ("view", {"path": "/memories/notes.txt", "view_range": [2, 3]}),
    ("view", {"path": "/memories/notes.txt", "view_range": [2, -1]}),
    ("view", {"path": "/memories/deep/er/empty.txt"}),
    ("view", {"path": "/memories/nothing"}),
    ("str_replace", {"path": "/memories/notes.txt", "old_str": "two", "new_str": "2\n2a"}),
    ("str_replace", {"path": "/memories/notes.txt", "old_str": "nine", "new_str": "9"}),
    ("str_replace", {"path": "/memories/notes.txt", "old_str": "2", "new_str": "9"}),
    ("str_replace", {"path": "/memories/deep", "old_str": "2", "new_str": "9"}),
    ("str_replace", {"path": "/memories/nothing", "old_str": "2", "new_str": "9"}),
    ("insert", {"path": "/memories/notes.txt", "insert_line": 0, "insert_text": "zero\n"}),
    ("insert", {"path": "/memories/notes.txt", "insert_line": 5, "insert_text": "end"}),
    ("insert", {"path": "/memories/notes.txt", "insert_line": 99, "insert_text": "no"}),
    ("insert", {"path": "/memories/deep/er/empty.txt", "insert_line": 0, "insert_text": "first"}),
    ("view", {"path": "/memories/notes.txt"}),
    ("view", {"path": "/memories/deep/er/empty.txt"}),
    ("rename", {"old_path": "/memories/notes.txt", "new_path": "/memories/deep/notes.txt"}),
    ("rename", {"old_path": "/memories/nothing", "new_path": "/memories/x"}),
    ("rename", {"old_path": "/memories/deep/notes.txt", "new_path": "/memories/deep/er/empty.txt"}),
    ("rename", {"old_path": "/memories/deep", "new_path": "/memories/moved"}),
    ("view", {"path": "/memories/moved/notes.txt"}),
    ("view", {"path": "/memories/deep"}),
    ("delete", {"path": "/memories/moved/er"}),
    ("delete", {"path": "/memories/moved/er"}),
    ("delete", {"path": "/memories"}),
    ("rename", {"old_path": "/memories", "new_path": "/memories/x"}),
    ("view", {"path": "/etc/passwd"}),
    ("view", {"path": "/memories/../../etc/passwd"}),
    ("create", {"path": "/memories/../escaped", "file_text": "x"}),
    ("view", {"path": "/memories"}),
]


def answer(tool, command, arguments):
    """Return what a model reads, and whether it is an error."""
    try:
        text = tool.call({"command": command, **arguments})
    except ToolError as error:
        return str(error), True
    return text, False


def without_sizes(text):
    """A directory has the size of what is in it here, and that of a block of the disk there."""
    heading, *lines = text.split("\n")
    return [
        heading,
        *(line.partition("\t")[2] if line.endswith(("/", "/memories")) else line for line in lines),
    ]


def test_the_tool_says_what_the_sdks_own_says(memory, tmp_path):
    theirs, ours = BetaLocalFilesystemMemoryTool(str(tmp_path)), memory_tool(memory, user="ana")
    assert isinstance(ours, BetaAbstractMemoryTool)
    assert ours.to_dict() == theirs.to_dict() == {"type": "memory_20250818", "name": "memory"}
    for command, arguments in CALLS:
        expected, found = answer(theirs, command, arguments), answer(ours, command, arguments)
        assert found[1] == expected[1], (command, arguments, expected, found)
        if arguments == {"path": "/memories"} and command == "view":
            expected, found = (without_sizes(expected[0]), expected[1]), (without_sizes(found[0]), found[1])
        assert found == expected, (command, arguments)
    assert ours.clear_all_memory() == theirs.clear_all_memory()


class Server:
    """Anthropic's address: asks for one tool call after another, then says goodbye; keeps what it was sent."""

    def __init__(self, *calls):
        self.requests, self._calls = [], list(calls)

    def __call__(self, request):
        self.requests.append(json.loads(request.content))
        if self._calls:
            use = {"type": "tool_use", "id": f"t{len(self.requests)}", "name": "memory", "input": self._calls.pop(0)}
            content, reason = [use], "tool_use"
        else:
            content, reason = [{"type": "text", "text": "Goodbye."}], "end_turn"
        usage = {"input_tokens": 1, "output_tokens": 1}
        message = {
            "id": "m1", "type": "message", "role": "assistant", "model": "claude", "content": content,
            "stop_reason": reason, "stop_sequence": None, "usage": usage,
        }  # fmt: skip
        return httpx2.Response(200, json=message)

    def results(self):
        """Return what the tool answered, call by call; the SDK may send each once, or again with every request."""
        sent = [one for request in self.requests for one in request["messages"] if isinstance(one["content"], list)]
        parts = [part for one in sent for part in one["content"] if part["type"] == "tool_result"]
        return [*{part["tool_use_id"]: part for part in parts}.values()]


COMMANDS = (
    {"command": "create", "path": "/memories/boat.md", "file_text": "The boat is called Petrel.\n"},
    {"command": "view", "path": "/memories/boat.md"},
    {"command": "view", "path": "/memories/../secret"},
)
ASKED = {"model": "claude", "max_tokens": 100, "messages": [{"role": "user", "content": "Please remember."}]}


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_a_runner_of_the_sdk_runs_it(memory, kind):
    server = Server(*COMMANDS)
    if kind == "sync":
        client = Anthropic(api_key="none", http_client=httpx2.Client(transport=httpx2.MockTransport(server)))
        last = client.beta.messages.tool_runner(tools=[memory_tool(memory, user="ana")], **ASKED).until_done()
    else:
        tool = async_memory_tool(memory, user="ana")
        assert isinstance(tool, BetaAsyncAbstractMemoryTool)

        async def work():
            transport = httpx2.MockTransport(server)
            async with AsyncAnthropic(api_key="none", http_client=httpx2.AsyncClient(transport=transport)) as client:
                return await client.beta.messages.tool_runner(tools=[tool], **ASKED).until_done()

        last = asyncio.run(work())
    assert last.content[0].text == "Goodbye."
    created, viewed, refused = server.results()
    assert "created successfully" in str(created["content"])
    assert "The boat is called Petrel." in str(viewed["content"])
    assert refused["is_error"]
    assert "escape" in str(refused["content"])
    assert memory.search("What is the boat called?", user="ana")[0].unit.text == "The boat is called Petrel.\n"
