"""The store in one SQLite file, and the index beside it."""
