"""Commands that say what there is, and carry it in and out.

`users`, `sessions`, `documents`, `agents`; `export`, `import`, `migrate`.
"""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
import sys
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import cast

import typer
from rich.cells import cell_len
from rich.console import Group, RenderableType
from rich.progress import Progress
from rich.table import Table
from rich.text import Text

from holdfast.arguments import check_store, is_address
from holdfast.cli import draw
from holdfast.cli.options import Answer, Call, Options, command, declare, err, out
from holdfast.derivation import derivation
from holdfast.errors import InputError, StoreError, shown
from holdfast.openers import is_missing, open_store
from holdfast.settings import Settings
from holdfast.store.copying import Copied, Copyable, copy_store
from holdfast.types import JSON, Imported, Listed, iso

# Fewer columns tell nothing.
_LEAST_ROOM = 12


def register(app: typer.Typer) -> None:
    """Add these commands to the command line."""
    for name, run in {"users": _users, "sessions": _sessions, "documents": _documents, "agents": _agents}.items():
        command(app, name)(run)
    command(app, "export")(_export)
    command(app, "import", create=True)(_import)
    parameters = inspect.signature(_migrate, eval_str=True).parameters.values()
    app.command("migrate")(declare(_migrate, "migrate", parameters))


# ------------------------------------------------------------------------------------------------------- lists


def _users(call: Call, limit: int = 50, tenant: str | None = None) -> Answer:
    """List who has units here, newest first."""
    return _list(call.memory.users(tenant=tenant, limit=limit or None), "no users: nothing is remembered here")


def _sessions(call: Call, limit: int = 50, *, tenant_user: Options) -> Answer:
    """List the sessions of a user, newest first, each with its first words."""
    return _list(call.memory.sessions(limit=limit or None, **tenant_user), "no sessions", call, tenant_user)


def _documents(call: Call, limit: int = 50, *, tenant_user: Options) -> Answer:
    """List the documents that a user sees, newest first."""
    return _list(call.memory.documents(limit=limit or None, **tenant_user), "no documents", call, tenant_user)


def _agents(call: Call, limit: int = 50, *, tenant_user: Options) -> Answer:
    """List the agents that have units of their own, newest first."""
    return _list(call.memory.agents(limit=limit or None, **tenant_user), "no agents", call, tenant_user)


def _list(found: Sequence[Listed], nothing: str, call: Call | None = None, owner: Options | None = None) -> Answer:
    note = "" if found or call is None or owner is None else name_others(call, owner)
    rows = [_row(one) for one in found]
    return Answer(rows, lambda: _table(found) if found else Text(nothing), Text(note, "yellow"))


def name_others(call: Call, owner: Options) -> str:
    """Say who has units here when a user has none."""
    tenant, user = owner["tenant"], owner["user"]
    if call.memory.users(user=user, tenant=tenant):
        return ""
    others = ", ".join(one.name for one in call.memory.users(tenant=tenant, limit=5))
    return f"user {user!r} has nothing here; there are: {others}" if others else ""


def _row(one: Listed) -> dict[str, JSON]:
    times = {
        name: None if moment is None else iso(moment) for name, moment in (("first", one.first), ("last", one.last))
    }
    told = {"title": one.title, "core": one.core, "everyones": one.everyones}
    return {"name": one.name, "units": one.units, **times, **{name: value for name, value in told.items() if value}}


def _table(found: Sequence[Listed]) -> RenderableType:
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True, style="cyan")
    table.add_column(no_wrap=True, justify="right")
    table.add_column(no_wrap=True, style="dim")
    table.add_column(no_wrap=True)
    rows = [(one.name, draw.count(one.units, "unit"), _span(one.first, one.last)) for one in found]
    # Names, counts and dates are whole; what was said first has the room that they leave.
    room = out.width - sum(max(map(cell_len, column)) + 2 for column in zip(*rows, strict=True))
    for one, (name, units, span) in zip(found, rows, strict=True):
        marks = [word for word, holds in (("core", one.core), ("everyone's", one.everyones)) if holds]
        told = Text(draw.one_line(one.title) or ", ".join(marks))
        told.truncate(max(room, _LEAST_ROOM), overflow="ellipsis")
        table.add_row(Text(name), units, span, told)
    return Group(table)


def _span(first: datetime | None, last: datetime | None) -> str:
    if first is None or last is None:
        return ""
    days = list(dict.fromkeys(f"{moment:%Y-%m-%d}" for moment in (first, last)))
    return " to ".join(days)


# ---------------------------------------------------------------------------------------------- export, import


def _export(
    call: Call, file: Path, user: str | None = None, session: str | None = None, tenant: str | None = None,
    everything: bool = False, kind: str = "jsonl", vectors: bool = False,
) -> Answer:  # fmt: skip
    """Write all of a user, a session or a tenant to a new file: to carry it elsewhere, or as Markdown to read."""
    whose = None if everything and user is None else user or call.settings.store.user
    wanted: Options = {"user": whose, "session": session, "tenant": tenant, "all": everything, "format": kind}
    to_pipe = str(file) == "-"
    done = call.memory.export(sys.stdout.buffer if to_pipe else file, vectors=vectors, **wanted)
    parts = [
        draw.count(done.units, "unit"),
        draw.count(done.versions, "version"),
        draw.count(done.documents, "document"),
    ]
    told = Text(f"{', '.join(parts)} in {done.bytes:,} bytes: {file}")
    if to_pipe:  # what is written there is the export alone
        sys.stdout.buffer.flush()
        err.print(told)
        raise typer.Exit
    return Answer({"file": str(file), **dataclasses.asdict(done)}, lambda: told)


def _import(
    call: Call, file: Path, kind: str | None = None, user: str | None = None, session: str | None = None,
    tenant: str | None = None, zone: str | None = None, dry_run: bool = False,
) -> Answer:  # fmt: skip
    """Bring in an export of ours, or of another program; again, when it has grown."""
    source: Path | bytes = sys.stdin.buffer.read() if str(file) == "-" else file
    with Progress(console=err, disable=call.as_json, transient=True) as progress:
        task = progress.add_task("reading", total=None)
        done = call.memory.import_(
            source, user=user, session=session, tenant=tenant, zone=zone, format=kind, dry_run=dry_run,
            progress=lambda number, of: progress.update(task, completed=number, total=max(of, 1)),
        )  # fmt: skip
    code = 0 if done.complete else InputError.exit_code
    return Answer(_report_row(done), lambda: _report(done), code=code)


def _report_row(done: Imported) -> dict[str, JSON]:
    times = {name: iso(moment) if (moment := getattr(done, name)) else None for name in ("first", "last")}
    return {**dataclasses.asdict(done), **times}


def _report(done: Imported) -> RenderableType:
    """Draw what an import did: what was read, what became of it, what was left out and why."""
    span = _span(done.first, done.last)
    where = [draw.count(done.sessions, "session")] if done.sessions else []
    where += [f"by {', '.join(done.speakers)}"] if done.speakers else []
    where += [f"from {span}"] if span else []
    read = f"{done.format}: {draw.count(done.read, 'entry')} read"
    became = [(done.added, "added"), (done.updated, "changed"), (done.known, "known already")]
    became += [(done.documents, "documents")]
    told = ", ".join(f"{count:,} {what}" for count, what in became if count) or "nothing new"
    lines: list[RenderableType] = [
        Text("; ".join((read, *where))),
        Text("nothing was written: this was a dry run" if done.dry_run else told, "green"),
    ]
    for one in done.skipped:
        more = f" and {one.count - len(one.where)} more" if one.count > len(one.where) else ""
        lines.append(Text(f"left out {one.count:,}: {one.reason}", "yellow"))
        lines.append(draw.indent(Text(f"{', '.join(one.where)}{more}", "dim")))
    lines += draw.warnings(done.warnings)
    if not done.complete:
        lines.append(Text("the file is not whole: what could be read is kept", "bold red"))
    return Group(*lines)


# ----------------------------------------------------------------------------------------------------- migrate


def _migrate(source: str, target: str, as_json: bool = False) -> None:
    """Copy a whole store into another, a file or a database, and compare the two; again, to go on."""
    for place in (source, target):
        if is_address(place):
            raise InputError(
                f"{shown(place)} is a server; a store is copied where it lies: name its file or database"
            )
    if is_missing(source):
        raise StoreError(f"{source} does not exist; check --from")
    settings = Settings.load()
    how = (settings.store, derivation(settings))
    with contextlib.ExitStack() as opened, Progress(console=err, disable=as_json, transient=True) as progress:
        one, other = (
            cast("Copyable", open_store(check_store("path", place), *how, mending=place is target))
            for place in (source, target)
        )
        for store in (one, other):
            opened.callback(store.close)
        tasks = {step: progress.add_task(step, total=None) for step in ("copying", "comparing")}
        done = copy_store(
            one, other, lambda step, at, of: progress.update(tasks[step], completed=at, total=max(of, 1))
        )
    row = {"from": source, "to": target, **dataclasses.asdict(done), "whole": done.whole}
    Answer(row, lambda: _copied(done), code=0 if done.whole else StoreError.exit_code).show(as_json=as_json)


def _copied(done: Copied) -> RenderableType:
    """Draw what a copy did, and whether the two stores are the same."""
    held = (done.tenants, "tenant"), (done.units, "unit"), (done.versions, "version"), (done.vectors, "vector")
    parts = [draw.count(number, what) for number, what in (*held, (done.documents, "document"))]
    became = [(done.added, "added"), (done.updated, "changed"), (done.known, "known already")]
    told = ", ".join(f"{count:,} {what}" for count, what in became if count) or "nothing new"
    lines: list[RenderableType] = [Text(", ".join(parts)), Text(f"units: {told}", "green")]
    if done.left:
        lines.append(Text(f"{draw.count(done.left, 'vector')} of other embedders left behind: not searched", "dim"))
    if done.whole:
        return Group(*lines, Text("compared unit by unit: all is there as it is here", "green"))
    lines.append(Text(f"{done.different:,} differ: they were changed there, or went different ways", "bold red"))
    return Group(*lines, *(draw.indent(Text(name, "dim")) for name in done.differing))
