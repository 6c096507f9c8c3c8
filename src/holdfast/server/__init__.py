"""Doors for programs: HTTP, MCP, async and remote. Each translates and calls `Memory`; none holds logic."""
