"""A program with pydantic-ai: an agent with the memory's tools, one turn. Arguments: model, server, words."""

import asyncio
import json
import sys

from fastmcp.client.transports import StdioTransport
from pydantic_ai import Agent
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider


async def main(model_url, server, words):
    """Print what the agent answers; `server` is an address, or a command as a list of JSON."""
    if not server.startswith("http"):
        program, *arguments = json.loads(server)
        server = StdioTransport(program, arguments)
    model = OpenAIChatModel("fake-1", provider=OpenAIProvider(base_url=model_url, api_key="none"))
    agent = Agent(model, instructions="Help the user.", toolsets=[MCPToolset(server, init_timeout=120)])
    async with agent:
        sys.stdout.write((await agent.run(words)).output)


asyncio.run(main(*sys.argv[1:]))
