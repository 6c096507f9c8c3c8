"""A memory served over HTTP and MCP, and its pages. Each module translates and calls `Memory`; none holds logic."""
