"""`holdfast inspect`: the pages for people, served to this machine."""

from __future__ import annotations

from holdfast.arguments import is_address
from holdfast.cli.options import open_door, out
from holdfast.errors import InputError, StoreError
from holdfast.openers import is_missing
from holdfast.settings import Settings


def inspect(db: str | None = None, user: str | None = None, port: int = 8378, write: bool = False) -> None:
    """Look at a memory in a browser: recall, contexts, sessions, facts, documents and health."""
    listening, found = open_door("listening"), Settings.load()
    path = db or found.store.path
    if is_address(path):
        raise InputError(f"{path} is a server, which has the pages itself; open {path}/ in a browser")
    if is_missing(path):
        raise StoreError(f"{path} does not exist; check --db, or remember something first")
    how = listening.ServerSettings(port=port, pages="alone", user=user or "", write=write)
    listening.serve(path, found, how, lambda address: out.print(f"open {address}/ in a browser; Ctrl+C ends it"))
