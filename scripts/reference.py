"""Print one generated reference table: `settings`, `errors`, `commands` or `verbs`, as Markdown."""

from __future__ import annotations

import inspect
import sys

import typer

from holdfast import HoldfastError, Memory, Settings, errors
from holdfast.interfaces.cli import app

Table = list[tuple[str, ...]]


def settings() -> Table:
    """Both recipes side by side: a value in bold differs from the contract's."""
    reference = {row.key: row.value for row in Settings.reference().describe()}
    rows: Table = [("key", "default", "reference", "what it does")]
    for row in Settings().describe():
        ours, theirs = f"`{row.value}`", f"`{reference[row.key]}`"
        rows.append((f"`{row.key}`", ours if ours == theirs else f"**{ours}**", theirs, row.doc))
    return rows


def error_tree() -> Table:
    """Every error with its exit code."""
    rows: Table = [("error", "exit code", "meaning")]
    for name in errors.__all__:
        kind = getattr(errors, name)
        assert issubclass(kind, HoldfastError)
        rows.append((f"`{name}`", str(kind.exit_code), str(inspect.getdoc(kind))))
    return rows


def commands() -> Table:
    """Every command with its options."""
    group = typer.main.get_command(app)
    rows: Table = [("command", "does", "options")]
    for name, command in sorted(getattr(group, "commands").items()):  # noqa: B009 - typed as a plain command
        options = ", ".join(
            f"`{option}`"
            for param in command.params
            for option in (*param.opts, *param.secondary_opts)
            if option.startswith("--")
        )
        rows.append((f"`holdfast {name}`", str(command.help).split("\n", 1)[0], options))
    return rows


def verbs() -> Table:
    """Every public verb of Memory with its signature."""
    rows: Table = [("verb", "does")]
    for name, member in inspect.getmembers(Memory, callable):
        if not name.startswith("_"):
            names = [n for n in inspect.signature(member).parameters if n not in ("self", "cls")]
            rows.append((f"`{name}({', '.join(names)})`", str(inspect.getdoc(member)).split("\n", 1)[0]))
    return rows


TABLES = {"settings": settings, "errors": error_tree, "commands": commands, "verbs": verbs}

if __name__ == "__main__":
    head, *body = TABLES[sys.argv[1]]()
    for row in (head, tuple("---" for _ in head), *body):
        print("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |")
