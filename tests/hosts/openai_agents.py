"""A program with openai-agents: an agent with the memory's tools, one turn. Arguments: model, server, words."""

import asyncio
import json
import sys

from agents import Agent, OpenAIChatCompletionsModel, Runner, set_tracing_disabled
from agents.mcp import MCPServerStdio, MCPServerStreamableHttp
from openai import AsyncOpenAI


async def main(model_url, server, words):
    """Print what the agent answers; `server` is an address, or a command as a list of JSON."""
    set_tracing_disabled(disabled=True)
    model = OpenAIChatCompletionsModel("fake-1", AsyncOpenAI(base_url=model_url, api_key="none"))
    if server.startswith("http"):
        tools = MCPServerStreamableHttp({"url": server}, client_session_timeout_seconds=120)
    else:
        program, *arguments = json.loads(server)
        tools = MCPServerStdio({"command": program, "args": arguments}, client_session_timeout_seconds=120)
    async with tools:
        agent = Agent("helper", instructions="Help the user.", model=model, mcp_servers=[tools])
        sys.stdout.write((await Runner.run(agent, words)).final_output)


asyncio.run(main(*sys.argv[1:]))
