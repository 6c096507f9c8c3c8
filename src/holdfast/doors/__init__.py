"""Doors: how other programs reach a memory. Each translates and calls `Memory`; none holds logic."""
