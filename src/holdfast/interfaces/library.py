"""`holdfast ingest` and `holdfast widen`: documents and folders, and the section that a unit stands in."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Group, RenderableType
from rich.progress import Progress
from rich.text import Text

from holdfast.documents.knowledge import EXCLUDED, INCLUDED, FolderReport
from holdfast.errors import InputError
from holdfast.interfaces import draw, wire
from holdfast.interfaces.options import (
    Agent,
    AsJson,
    Database,
    Tenant,
    UnitId,
    User,
    err,
    open_memory,
    owner_of,
    show,
)
from holdfast.memory import Memory
from holdfast.types import Widened, Written

# A line of a terminal; `--json` has all of them.
_MOST_NAMED = 8


def ingest(
    path: Annotated[Path, typer.Argument(help="A document, or a folder of them.", show_default=False)],
    core: Annotated[bool, typer.Option("--core", help="Its rules go into every context.")] = False,
    name: Annotated[str | None, typer.Option(help="Name, when it is not the file's.", show_default=False)] = None,
    include: Annotated[
        list[str] | None, typer.Option(help="Files of a folder, as `*.md`; repeatable.", show_default=False)
    ] = None,
    exclude: Annotated[
        list[str] | None, typer.Option(help="Files to leave out, as `drafts/*`; repeatable.", show_default=False)
    ] = None,
    scope: Annotated[str, typer.Option(help="user, or global for everyone of the tenant.")] = "user",
    user: User = None,
    tenant: Tenant = None,
    db: Database = None,
    as_json: AsJson = False,
) -> None:
    """Take in a document or a folder; again, when it has changed."""
    memory, settings = open_memory(db, create=True)
    owner = owner_of(user, settings)
    with memory:
        if path.is_dir():
            if core or name is not None:
                raise InputError("--core and --name are for one document; a folder has many")
            report = _folder(memory, path, owner, tenant, scope, include, exclude)
            show(wire.folder_json(report), lambda: _reported(report), as_json=as_json)
            if report.failed:
                raise typer.Exit(InputError.exit_code)
            return
        if include or exclude:
            raise InputError("--include and --exclude choose files of a folder; this is one document")
        written = memory.ingest(path, user=owner, tenant=tenant, name=name, scope=scope, core=core)
    show(wire.written_json(written), lambda: _ingested(written, path), as_json=as_json)


def _ingested(written: list[Written], path: Path) -> RenderableType:
    """Return what became of a document's units; one of rules alone has none."""
    if written:
        return draw.remembered(written)
    return Text(f"{draw.count(0, 'unit')}: {path.name} holds rules alone, and they are in every context now")


def _folder(
    memory: Memory,
    path: Path,
    owner: str,
    tenant: str | None,
    scope: str,
    include: list[str] | None,
    exclude: list[str] | None,
) -> FolderReport:
    with Progress(console=err, transient=True) as progress:
        task = progress.add_task("reading", total=None)
        return memory.ingest_folder(
            path,
            user=owner,
            tenant=tenant,
            scope=scope,
            include=include or INCLUDED,
            exclude=(*EXCLUDED, *(exclude or ())),
            progress=lambda done, of: progress.update(task, completed=done, total=max(of, 1)),
        )


def _reported(report: FolderReport) -> RenderableType:
    counts = ", ".join(
        f"{len(getattr(report, what))} {what}"
        for what in ("added", "changed", "unchanged", "removed")
        if getattr(report, what)
    )
    units = "1 unit" if report.units == 1 else f"{report.units} units"
    parts: list[RenderableType] = [Text(f"{counts or 'no documents'}; {units}")]
    parts += [Text(f"left out: {name}: {reason}", "yellow") for name, reason in report.failed]
    return Group(*parts, *_skipped(report))


def _skipped(report: FolderReport) -> list[RenderableType]:
    """Return a line for each reason, with how many files it skipped and what they are called."""
    reasons: dict[str, list[str]] = {}
    for name, reason in report.skipped:
        reasons.setdefault(reason, []).append(name)
    return [Text(f"skipped {len(names)}: {_some(names)}: {reason}", "dim") for reason, names in reasons.items()]


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return f"{', '.join(names[:_MOST_NAMED])}{more}"


def widen(
    unit_id: UnitId,
    user: User = None,
    agent: Agent = None,
    tenant: Tenant = None,
    db: Database = None,
    as_json: AsJson = False,
) -> None:
    """Show the section of its document that a unit stands in."""
    memory, settings = open_memory(db)
    with memory:
        found = memory.widen(unit_id, user=owner_of(user, settings), agent=agent, tenant=tenant)
    show(wire.widened_json(found), lambda: _widened(found), as_json=as_json)


def _widened(found: Widened) -> RenderableType:
    at, end = found.unit_start - found.start, found.unit_end - found.start
    text = Text.assemble(found.text[:at], (found.text[at:end], "bold"), found.text[end:])
    where = " › ".join((found.document, *found.path)) + (f", page {found.page}" if found.page else "")
    return Group(Text(where, "dim"), text)
