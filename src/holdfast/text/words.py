"""The English words that rules look for (data in `english.toml`, read once), and patterns compiled at first use."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any, cast


@cache
def _tables() -> dict[str, Any]:
    text = (resources.files("holdfast.text") / "english.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def words(table: str, name: str) -> tuple[str, ...]:
    """Return one list of words; in the file a list may be one string, with the words apart by blanks."""
    listed = _tables()[table][name]
    return tuple(listed.split() if isinstance(listed, str) else listed)


def any_of(table: str, name: str) -> str:
    """Return a pattern for one word of a list, in the list's order."""
    return f"(?:{'|'.join(words(table, name))})"


def entries(table: str, name: str) -> Mapping[str, Any]:
    """Return a table of a table: what each word stands for."""
    found: dict[str, Any] = _tables()[table][name]
    return found


# ---------------------------------------------------------------------------------------------------- patterns


class _LazyPattern:
    """A pattern that keeps each bound method of the compiled one, so that the second call is as fast."""

    def __init__(self, pattern: str, flags: int) -> None:
        self.pattern, self._flags = pattern, flags

    def __getattr__(self, name: str) -> object:
        found: object = getattr(re.compile(self.pattern, self._flags), name)
        setattr(self, name, found)
        return found


def regex(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """Return what `re.compile` returns, compiled at first use: there are hundreds, and a program needs few."""
    return cast("re.Pattern[str]", _LazyPattern(pattern, flags))
