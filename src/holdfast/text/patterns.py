"""Regular expressions that are compiled when they are first used: there are hundreds, and a program needs few."""

from __future__ import annotations

import re
from typing import cast


class _Late:
    """Stands for a compiled expression, and keeps what was asked of it: the second call of a method is as fast."""

    def __init__(self, pattern: str, flags: int) -> None:
        self.pattern, self._flags = pattern, flags

    def __getattr__(self, name: str) -> object:
        found: object = getattr(re.compile(self.pattern, self._flags), name)
        setattr(self, name, found)
        return found


def regex(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """Return what `re.compile` returns, without its work until the first use."""
    return cast("re.Pattern[str]", _Late(pattern, flags))
