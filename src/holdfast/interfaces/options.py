"""What the commands share: options, opening the store, printing."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import RenderableType

from holdfast.errors import InputError, StoreError, shown
from holdfast.interfaces import wire
from holdfast.interfaces.terminal import Screen
from holdfast.memory import Memory
from holdfast.settings import Settings

out, err = Screen(), Screen(stderr=True)
# What a person reads of one answer; a program names its own limit, or has the profile's.
FIRST_LOOK = 5

Database = Annotated[
    str | None, typer.Option("--db", help="Database file \\[default: holdfast.db].", show_default=False)
]
User = Annotated[str | None, typer.Option("--user", "-u", help="Whose memory \\[default: me].", show_default=False)]
Tenant = Annotated[str | None, typer.Option(help="Tenant, when there is more than one.", show_default=False)]
Session = Annotated[str | None, typer.Option("--session", "-s", help="Session name.", show_default=False)]
Agent = Annotated[str | None, typer.Option(help="Agent name.", show_default=False)]
Limit = Annotated[int, typer.Option("--limit", "-n", help="Most hits.")]
Filters = Annotated[
    str | None, typer.Option("--filter", "-f", help='JSON filter, as {"city": "Lisbon"}.', show_default=False)
]
Reference = Annotated[
    str | None, typer.Option(help="Moment the question is asked at, as 2026-04-02T09:00:00Z.", show_default=False)
]
AsOf = Annotated[
    str | None, typer.Option("--as-of", help="Answer from what was recorded by this moment.", show_default=False)
]
ValidFrom = Annotated[str | None, typer.Option(help="True from this moment on.", show_default=False)]
ValidTo = Annotated[str | None, typer.Option(help="True until this moment.", show_default=False)]
Links = Annotated[list[str] | None, typer.Option("--link", help="Id it points to; repeatable.", show_default=False)]
AsTree = Annotated[bool, typer.Option("--tree", help="Explain with every step of the arithmetic.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
OnlySession = Annotated[bool, typer.Option("--only-session", help="The named session alone.")]
Everything = Annotated[bool, typer.Option("--all", help="Superseded and no longer valid units too.")]
UnitId = Annotated[str, typer.Argument(help="Id of a unit.", show_default=False)]


def show(value: object, drawing: Callable[[], RenderableType], *, as_json: bool) -> None:
    """Print a value as JSON for programs, or drawn for people."""
    if as_json:
        wire.print_json(value)
    else:
        out.print(drawing(), highlight=False)


def open_memory(database: str | None, *, create: bool = False) -> tuple[Memory, Settings]:
    """Open the store; only `remember` makes a new one, so that a mistyped name is not an empty memory."""
    settings = Settings.load()
    path = database or settings.store.path
    if not create and path != ":memory:" and not Path(path).exists():
        raise StoreError(f"{path} does not exist; check --db, or remember something first")
    return Memory.open(path, settings=settings), settings


def owner_of(user: str | None, settings: Settings) -> str:
    """Return whose memory is meant: the settings' user when none is named; an empty name is refused further on."""
    return settings.store.user if user is None else user


def read_text(path: Path) -> str:
    """Return the text of a file that the command line names; `-` is standard input."""
    try:
        return sys.stdin.read() if str(path) == "-" else path.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}; check its name") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 text: {error}; convert it") from error


def json_argument(what: str, text: str | None) -> Any:  # noqa: ANN401 - whatever the caller wrote
    """Read an argument that is JSON; a missing one is None."""
    if text is None:
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:  # also a number of thousands of digits, and nesting without end
        raise InputError(f"{what} {shown(text)} is not JSON: {error}") from error
