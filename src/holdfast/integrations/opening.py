"""What every adapter begins with: a memory of the caller's, or one that it opens itself."""

from __future__ import annotations

from pathlib import Path

from holdfast.client.asynchronous import AsyncMemory
from holdfast.errors import InputError, MissingExtraError, shown
from holdfast.memory import Memory

# A text of so many characters never passes a mebibyte, which is as much as a unit may hold. What is longer is kept
# whole beside its words.
MOST_WORDS = 250_000
Source = Memory | AsyncMemory | str | Path


def open_memory(source: object) -> Memory:
    """Return the memory that an adapter uses: one that is open, or the one at a path or an address.

    Raises:
        InputError: it is none of these.
        StoreError: the file cannot be used.
    """
    if isinstance(source, AsyncMemory):
        return source.memory
    if isinstance(source, Memory):
        return source
    if not isinstance(source, str | Path):
        raise InputError(f"memory = {shown(source)} is no memory; give an open Memory, a path or an address")
    return Memory.open(source)


def missing(extra: str, error: ImportError) -> MissingExtraError:
    """Return the error of an adapter whose framework is not installed."""
    return MissingExtraError(
        f"this adapter needs a library that is not installed ({error}); "
        f"install it with: pip install 'holdfast[{extra}]'"
    )
