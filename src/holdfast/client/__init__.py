"""Clients of a served memory."""
