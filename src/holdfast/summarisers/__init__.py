"""Summarisers that write in their own words: a local T5 folder, an OpenAI-compatible endpoint."""
