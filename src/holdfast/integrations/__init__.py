"""One module for each agent framework, and mem0's interface: programs written for them run over a `Memory`."""
