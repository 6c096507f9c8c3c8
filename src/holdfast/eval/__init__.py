"""The evaluation harness: real data in, numbers with intervals out. No LLM anywhere."""
