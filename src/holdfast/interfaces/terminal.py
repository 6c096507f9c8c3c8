"""The last step before a terminal or a pipe: remembered text is shown there and never obeyed, and lines fit."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterable

from rich.console import Console, ConsoleDimensions, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from holdfast.inputs.checks import CONTROLS

# On a terminal a carriage return overwrites its line, and lone surrogates cannot be written.
_OBEYED = re.compile(rf"[{CONTROLS}\r\ud800-\udfff]")
# A pipe has no width. Wider than any line that is drawn, so that none is broken.
_UNBROKEN = 1_000_000
_LINES = 25


def visible(text: str) -> str:
    """Return `text` with every character that a terminal would obey written out: a backslash and its code."""
    return _OBEYED.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), text.replace("\r\n", "\n"))


def visible_json(text: str) -> str:
    """Return JSON that means the same, with those characters escaped as JSON does it."""
    return _OBEYED.sub(lambda found: json.dumps(found[0])[1:-1], text)


class Screen(Console):
    """A console that shows control characters instead of sending them on, and breaks no line of a pipe."""

    @property  # type: ignore[misc]  # nobody sets the size of ours
    def size(self) -> ConsoleDimensions:
        """Return the size of the terminal; of a pipe, what COLUMNS says, else a width that breaks nothing."""
        if self.is_terminal:
            return super().size
        return ConsoleDimensions(shutil.get_terminal_size((_UNBROKEN, _LINES)).columns, _LINES)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """See `Console.render`; it sees every text before its lines are broken."""
        if isinstance(renderable, str):
            renderable = visible(renderable)
        elif isinstance(renderable, Text) and _OBEYED.search(renderable.plain):
            renderable = Text(visible(renderable.plain), renderable.style)
        return super().render(renderable, options)
