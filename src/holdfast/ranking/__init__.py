"""Candidates → one pool, ranked. Pure: values in, new values out."""
