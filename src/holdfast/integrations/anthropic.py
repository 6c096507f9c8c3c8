"""Anthropic's memory tool: its file verbs over units. A file is one unit, and every change a version of it.

Nothing is read from or written to a file system: a path is a name, and stays below `/memories` all the same.
"""

from __future__ import annotations

import asyncio
import inspect
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import unquote

from holdfast.arguments import OwnerOptions
from holdfast.errors import HoldfastError, InputError, NotFoundError, quote_value
from holdfast.integrations.host_messages import MOST_WORDS, MemorySource, missing_package, open_memory
from holdfast.types import JSON, Unit

if TYPE_CHECKING:
    from anthropic.lib.tools import BetaAbstractMemoryTool, BetaAsyncAbstractMemoryTool

ROOT = "/memories"
# As the tool's documentation has it: line numbers are so wide, and a longer file is refused.
_NUMBER_WIDTH, _MOST_LINES = 6, 999_999
_LEVELS_SHOWN = 2
# Lines shown before and after a change.
_SHOWN_AROUND = 2


class MemoryFiles:
    """The files of one user; `memory` is an open one, a path or an address.

    Each verb takes what the model sends and returns what the model is to read; what cannot be done raises
    `InputError` or `NotFoundError` with the words that the tool's documentation has for it.
    """

    def __init__(
        self, memory: MemorySource, *, user: str, agent: str | None = None, tenant: str | None = None
    ) -> None:
        self.memory = open_memory(memory)
        self._owner: OwnerOptions = {"user": user, "agent": agent, "tenant": tenant}

    def run(self, command: Mapping[str, Any]) -> str:
        """Do what the `input` of a tool call says: one of the verbs, and what it takes.

        Raises:
            InputError: there is no such command, it lacks something, or it cannot be done.
            NotFoundError: there is no such path.
        """
        verbs: dict[str, Callable[..., str]] = {
            "view": self.view, "create": self.create, "str_replace": self.str_replace, "insert": self.insert,
            "delete": self.delete, "rename": self.rename,
        }  # fmt: skip
        if not isinstance(command, Mapping):
            raise InputError(f"{quote_value(command)} is no command; give the `input` of a tool call")
        given = {name: value for name, value in command.items() if value is not None}
        name = given.pop("command", None)
        if not isinstance(name, str) or name not in verbs:
            raise InputError(f"there is no command {quote_value(name)}; use one of {', '.join(verbs)}")
        try:
            called = inspect.signature(verbs[name]).bind(**given)
        except TypeError as error:
            raise InputError(f"{name} cannot be called so: {error}") from error
        return verbs[name](*called.args, **called.kwargs)

    def view(self, path: str, view_range: Sequence[int] | None = None) -> str:
        """Return what is in a directory, two levels deep, or the lines of a file with their numbers."""
        place = _check_path(path)
        files = self._below(place)
        if place in files:
            return _numbered_file(path, _content(files[place]), view_range)
        if not files and place != ROOT:
            raise NotFoundError(f"The path {path} does not exist. Please provide a valid path.")
        sizes = _sizes(place, {name: len(_content(unit).encode()) for name, unit in files.items()})
        listed = [f"{_human(size)}\t{name}" for name, size in sizes.items()]
        heading = (
            f"Here're the files and directories up to {_LEVELS_SHOWN} levels deep in {path}, excluding hidden items:"
        )
        return "\n".join((heading, *listed))

    def create(self, path: str, file_text: str) -> str:
        """Make a new file."""
        place = _check_file(path)
        self._refuse_taken(place, f"File {path} already exists")
        self._write([(f"file-{uuid.uuid4().hex}", place, _check_text("file_text", file_text))])
        return f"File created successfully at: {path}"

    def str_replace(self, path: str, old_str: str, new_str: str = "") -> str:
        """Replace a text that is in a file exactly once."""
        unit, content = self._file(path)
        places = [*_occurrences(content, _check_text("old_str", old_str))]
        if not places:
            raise InputError(f"No replacement was performed, old_str `{old_str}` did not appear verbatim in {path}.")
        if len(places) > 1:
            lines = ", ".join(str(content.count("\n", 0, place) + 1) for place in places)
            raise InputError(
                f"No replacement was performed. Multiple occurrences of old_str `{old_str}` in lines: {lines}. "
                "Please ensure it is unique"
            )
        [place] = places
        changed = content[:place] + _check_text("new_str", new_str) + content[place + len(old_str) :]
        self._write([(unit.id, _check_path(path), changed)])
        line, lines_now = content.count("\n", 0, place), changed.split("\n")
        first = max(0, line - _SHOWN_AROUND)
        snippet = _numbered(lines_now[first : line + _SHOWN_AROUND + 1], first + 1)
        return (
            f"The memory file has been edited. Here is the snippet showing the change (with line numbers):\n{snippet}"
        )

    def insert(self, path: str, insert_line: int, insert_text: str) -> str:
        """Put lines behind the line of that number; 0 is the beginning."""
        unit, content = self._file(path)
        lines = content.removesuffix("\n").split("\n") if content else []
        if not isinstance(insert_line, int) or not 0 <= insert_line <= len(lines):
            raise InputError(
                f"Invalid `insert_line` parameter: {insert_line}. It should be within the range [0, {len(lines)}]."
            )
        lines.insert(insert_line, _check_text("insert_text", insert_text).rstrip("\n"))
        self._write([(unit.id, _check_path(path), "\n".join((*lines, "")))])
        return f"The file {path} has been edited."

    def delete(self, path: str) -> str:
        """Erase a file, or a directory with all that is in it."""
        place = _check_path(path)
        if place == ROOT:
            raise InputError(f"Cannot delete the {ROOT} directory itself")
        self._erase(self._known(place, path))
        return f"Successfully deleted {path}"

    def rename(self, old_path: str, new_path: str) -> str:
        """Give a file or a directory another path; its versions go with it."""
        old, new = _check_path(old_path), _check_file(new_path)
        if old == ROOT:
            raise InputError(f"Cannot rename the {ROOT} directory itself")
        moved = self._known(old, old_path)
        if new.startswith(f"{old}/"):
            raise InputError(f"The directory {old_path} cannot be moved into itself, to {new_path}")
        self._refuse_taken(new, f"The destination {new_path} already exists")
        self._write([(unit.id, new + name.removeprefix(old), _content(unit)) for name, unit in moved.items()])
        return f"Successfully renamed {old_path} to {new_path}"

    def clear(self) -> str:
        """Erase every file."""
        self._erase(self._below(ROOT))
        return "All memory cleared"

    # --------------------------------------------------------------------------------------------------- units

    def _below(self, place: str) -> dict[str, Unit]:
        """Return the file at a path, or those below it, by their paths in order."""
        path = "metadata.memory_file.path"
        # A slash ends the name of a directory; the character that comes next is a zero.
        wanted = {"or": [{path: place}, {path: {"gte": f"{place}/", "lt": f"{place}0"}}]}
        units = self.memory.list(filters=wanted, limit=None, current_only=False, **self._owner)
        return {_path(unit): unit for unit in sorted(units, key=lambda unit: _path(unit).split("/"))}

    def _known(self, place: str, path: str) -> dict[str, Unit]:
        found = self._below(place)
        if not found:
            raise NotFoundError(f"The path {path} does not exist")
        return found

    def _file(self, path: str) -> tuple[Unit, str]:
        place = _check_path(path)
        found = self._below(place)
        if place in found:
            return found[place], _content(found[place])
        if found or place == ROOT:
            raise InputError(f"The path {path} is not a file.")
        raise NotFoundError(f"The path {path} does not exist. Please provide a valid path.")

    def _refuse_taken(self, place: str, message: str) -> None:
        if self._below(place):
            raise InputError(message)
        parents = place.split("/")[2:-1]
        for depth in range(1, len(parents) + 1):
            above = "/".join((ROOT, *parents[:depth]))
            if above in self._below(above):
                raise InputError(f"{above} is a file, so that nothing can be in it; choose another path")

    def _write(self, files: Sequence[tuple[str, str, str]]) -> None:
        """Write files, all of them or none: id, path and content."""
        self.memory.remember([_as_unit(*one) for one in files], scope="user", **self._owner)

    def _erase(self, files: Mapping[str, Unit]) -> None:
        if files:
            self.memory.forget(ids=[unit.id for unit in files.values()], **self._owner)


def _as_unit(name: str, path: str, content: str) -> JSON:
    words = content[:MOST_WORDS]
    whole = bool(words.strip()) and words == content
    return {
        "id": name,
        "kind": "knowledge",
        "text": words if words.strip() else f"[empty file {path}]",
        "topic": path.removeprefix(f"{ROOT}/"),
        "author": "assistant",
        "origin": "conversation",
        "utility_acts": [],
        "parts": [] if whole else [content],
        "metadata": {"memory_file": {"path": path}},
    }


def _path(unit: Unit) -> str:
    return str(unit.metadata["memory_file"]["path"])


def _content(unit: Unit) -> str:
    return str(unit.parts[0]) if unit.parts else unit.text


# --------------------------------------------------------------------------------------------------- paths and texts


def _check_path(path: object) -> str:
    """Return a path below `/memories`, without a slash at its end.

    Raises:
        InputError: it is none, or leads out of there, also when it is written with `%2e` or a backslash.
    """
    if not isinstance(path, str):
        raise InputError(f"a path is text, not {quote_value(path)}")
    if path != ROOT and not path.startswith(f"{ROOT}/"):
        raise InputError(f"Path must start with {ROOT}, got: {path}")
    steps = unquote(path).replace("\\", "/").split("/")
    if ".." in steps or any(character < " " or character == "\x7f" for character in unquote(path)):
        raise InputError(f"Path {path} would escape {ROOT} directory")
    return "/".join(("", *(step for step in path.split("/") if step not in ("", "."))))


def _check_file(path: object) -> str:
    place = _check_path(path)
    if place == ROOT:
        raise InputError(f"{ROOT} is a directory; name a file in it")
    return place


def _check_text(what: str, text: object) -> str:
    if not isinstance(text, str):
        raise InputError(f"{what} is text, not {quote_value(text)}")
    return text


def _occurrences(content: str, wanted: str) -> Iterator[int]:
    place = content.find(wanted) if wanted else -1
    while place >= 0:
        yield place
        place = content.find(wanted, place + 1)


def _sizes(place: str, files: Mapping[str, int]) -> dict[str, int]:
    """Return the sizes of what is shown of a directory: itself, and two levels of what is in it, by name."""
    sizes: dict[str, int] = {place: 0}
    for name, size in files.items():
        inside = name.removeprefix(f"{place}/").split("/")
        if any(step.startswith(".") for step in inside):
            continue
        sizes[place] += size
        for depth in range(1, min(len(inside), _LEVELS_SHOWN) + 1):
            shown_as = "/".join((place, *inside[:depth])) + ("/" if depth < len(inside) else "")
            sizes[shown_as] = sizes.get(shown_as, 0) + size
    return sizes


def _human(size: int) -> str:
    """Return a size as `ls -h` writes it."""
    units = "BKMG"
    power = min(max(size.bit_length() - 1, 0) // 10, len(units) - 1)
    scaled = size / 1024**power
    return f"{int(scaled)}{units[power]}" if scaled == int(scaled) else f"{scaled:.1f}{units[power]}"


def _numbered(lines: Sequence[str], first: int) -> str:
    return "\n".join(f"{number:>{_NUMBER_WIDTH}}\t{line}" for number, line in enumerate(lines, first))


def _numbered_file(path: str, content: str, wanted: Sequence[int] | None) -> str:
    lines = content.split("\n")
    if len(lines) > _MOST_LINES:
        raise InputError(f"File {path} exceeds maximum line limit of {_MOST_LINES:,} lines.")
    first, last = _check_range(wanted)
    first = max(1, first)
    shown_lines = lines[first - 1 : None if last == -1 else last]
    return f"Here's the content of {path} with line numbers:\n{_numbered(shown_lines, first)}"


def _check_range(wanted: object) -> tuple[int, int]:
    if not wanted:
        return 1, -1
    if isinstance(wanted, list | tuple) and [*map(type, wanted)] == [int, int]:
        return wanted[0], wanted[1]
    raise InputError(f"view_range = {quote_value(wanted)} is no range; give the first and the last line, as [1, 20]")


# --------------------------------------------------------------------------------------------------------------- SDK

_VERBS = ("view", "create", "str_replace", "insert", "delete", "rename")


def memory_tool(
    memory: MemorySource, *, user: str, agent: str | None = None, tenant: str | None = None
) -> BetaAbstractMemoryTool:
    """Return the tool that Anthropic's Python SDK runs: give it to `client.beta.messages.tool_runner`.

    Raises:
        MissingExtraError: the SDK is not installed, or knows no memory tool.
    """
    try:
        from anthropic.lib.tools import BetaAbstractMemoryTool, ToolError  # noqa: PLC0415 - the rest needs no SDK
    except ImportError as error:
        raise missing_package("anthropic", error) from error
    files = MemoryFiles(memory, user=user, agent=agent, tenant=tenant)

    def run(_tool: object, command: Any) -> str:  # noqa: ANN401 - a model of the SDK's
        try:
            return files.run(command.model_dump())
        except HoldfastError as error:
            raise ToolError(str(error)) from error

    members = dict.fromkeys(_VERBS, run) | {"clear_all_memory": lambda _tool: files.clear()}
    return cast("BetaAbstractMemoryTool", type("HoldfastMemoryTool", (BetaAbstractMemoryTool,), members)())


def async_memory_tool(
    memory: MemorySource, *, user: str, agent: str | None = None, tenant: str | None = None
) -> BetaAsyncAbstractMemoryTool:
    """Return the same tool for the SDK's asynchronous client.

    Raises:
        MissingExtraError: the SDK is not installed, or knows no memory tool.
    """
    tool = memory_tool(memory, user=user, agent=agent, tenant=tenant)
    from anthropic.lib.tools import BetaAsyncAbstractMemoryTool  # noqa: PLC0415 - it is installed by now

    async def run(_tool: object, command: Any) -> object:  # noqa: ANN401 - a model of the SDK's
        return await asyncio.to_thread(tool.execute, command)

    async def clear(_tool: object) -> object:
        return await asyncio.to_thread(tool.clear_all_memory)

    members = dict.fromkeys(_VERBS, run) | {"clear_all_memory": clear}
    kind = type("HoldfastAsyncMemoryTool", (BetaAsyncAbstractMemoryTool,), members)
    return cast("BetaAsyncAbstractMemoryTool", kind())
