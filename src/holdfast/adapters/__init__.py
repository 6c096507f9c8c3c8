"""Adapters: the interfaces that agent frameworks ask of a memory, each over a `Memory`."""
