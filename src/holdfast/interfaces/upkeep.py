"""`holdfast compact`, `expand`, `supersede`, `reinstate`, `forget`, `backup`: keeping a memory true over time."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Group, RenderableType
from rich.progress import Progress
from rich.table import Table
from rich.text import Text

from holdfast.errors import InputError
from holdfast.interfaces import draw, wire
from holdfast.interfaces.options import (
    Agent,
    AsJson,
    Database,
    Filters,
    Session,
    Tenant,
    UnitId,
    User,
    err,
    json_argument,
    open_memory,
    owner_of,
    show,
)
from holdfast.types import Compaction, Erasure


def compact(
    user: User = None,
    session: Session = None,
    agent: Agent = None,
    tenant: Tenant = None,
    db: Database = None,
    as_json: AsJson = False,
) -> None:
    """Let summaries stand for old turns of one session, or of all; nothing is lost."""
    memory, settings = open_memory(db)
    with memory, Progress(console=err, transient=True) as progress:
        task = progress.add_task("compacting", total=None)
        done = memory.compact(
            user=owner_of(user, settings),
            session=session,
            agent=agent,
            tenant=tenant,
            progress=lambda number, of: progress.update(task, completed=number, total=max(of, 1)),
        )
    show([wire.compaction_json(one) for one in done], lambda: _compacted(done), as_json=as_json)


def _compacted(done: list[Compaction]) -> RenderableType:
    if not any(one.clusters for one in done):
        return Text("nothing to compact: every turn is in the tail, or covered already")
    table = Table("session", "turns", "summaries", "saved", "confidence", "method", box=None, pad_edge=False)
    for one in done:
        if one.clusters:
            sure = "" if one.mean_confidence is None else f"{one.mean_confidence:.3f}"
            saved = f"{one.tokens_saved} tokens"
            table.add_row(one.session, str(one.turns), str(len(one.summaries)), saved, sure, one.method)
    notes = [Text(f"{one.session}: {note}", "yellow") for one in done for note in one.notes]
    left = [
        Text(f"{one.session}: {count} {what}", "dim")
        for one in done
        for count, what in (
            (one.declined, "clusters no summary would make cheaper"),
            (one.trivial, "single turns, for the next run"),
            (one.changed, "clusters changed meanwhile, for the next run"),
        )
        if count
    ]
    return Group(table, *notes, *left)


def expand(
    unit_id: UnitId,
    user: User = None,
    agent: Agent = None,
    tenant: Tenant = None,
    db: Database = None,
    as_json: AsJson = False,
) -> None:
    """Show the raw turns that a summary stands for."""
    memory, settings = open_memory(db)
    with memory:
        found = memory.expand(unit_id, user=owner_of(user, settings), agent=agent, tenant=tenant)
    show([wire.unit_json(unit) for unit in found], lambda: draw.units(found), as_json=as_json)


def supersede(
    unit_id: UnitId,
    by: Annotated[str, typer.Option("--by", help="Id of the unit that takes its place.", show_default=False)],
    user: User = None,
    agent: Agent = None,
    tenant: Tenant = None,
    db: Database = None,
    as_json: AsJson = False,
) -> None:
    """Let another unit take the place of one; it stays in history."""
    memory, settings = open_memory(db)
    with memory:
        unit = memory.supersede(unit_id, by=by, user=owner_of(user, settings), agent=agent, tenant=tenant)
    show(wire.unit_json(unit), lambda: draw.unit(unit), as_json=as_json)


def reinstate(
    unit_id: UnitId,
    user: User = None,
    agent: Agent = None,
    tenant: Tenant = None,
    db: Database = None,
    as_json: AsJson = False,
) -> None:
    """Let a superseded unit count again."""
    memory, settings = open_memory(db)
    with memory:
        unit = memory.reinstate(unit_id, user=owner_of(user, settings), agent=agent, tenant=tenant)
    show(wire.unit_json(unit), lambda: draw.unit(unit), as_json=as_json)


def forget(
    ids: Annotated[list[str] | None, typer.Argument(help="Ids of units.", show_default=False)] = None,
    session: Session = None,
    filters: Filters = None,
    document: Annotated[str | None, typer.Option(help="A document and its units.", show_default=False)] = None,
    everything: Annotated[bool, typer.Option("--all", help="Everything the user has.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only list what would go.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    user: User = None,
    agent: Agent = None,
    tenant: Tenant = None,
    db: Database = None,
    as_json: AsJson = False,
) -> None:
    """Erase units for good, in every file, with every summary made of them."""
    memory, settings = open_memory(db)
    with memory:
        named = {
            "user": owner_of(user, settings), "ids": ids, "session": session, "document": document,
            "filters": json_argument("filter", filters), "all": everything, "agent": agent, "tenant": tenant,
        }  # fmt: skip
        if not (dry_run or yes) and sys.stdin.isatty():
            planned = memory.forget(**named, dry_run=True)
            count = len(planned.units) + len(planned.summaries)
            if not typer.confirm(f"Erase {count} units for good?"):
                raise InputError("nothing was erased; add --yes to erase without being asked")
        erasure = memory.forget(**named, dry_run=dry_run)
    show(wire.erasure_json(erasure), lambda: _erased(erasure), as_json=as_json)


def _erased(erasure: Erasure) -> RenderableType:
    verb = "would be erased" if erasure.dry_run else "erased"
    parts: list[RenderableType] = []
    if erasure.dry_run and erasure.units:
        parts.append(draw.units((*erasure.units, *erasure.summaries)))
    parts.append(Text(f"{_count(erasure.units, 'unit')}, {_count(erasure.summaries, 'summary of them')} {verb}"))
    parts += [Text(f"document {name} {verb}") for name in erasure.documents]
    if erasure.dry_run:
        return Group(*parts)
    parts += [Text(f"made again from what is left: {unit_id}") for unit_id in erasure.rebuilt]
    parts += [Text(f"out of reach: {name}", "yellow") for name in erasure.outside]
    if erasure.complete:
        parts.append(Text(f"complete: nothing of it is left in {', '.join(erasure.files) or 'memory'}", "green"))
    elif erasure.pending:
        parts.append(Text("pending: a reader still holds old bytes; the next write or open goes on", "yellow"))
    else:
        parts.append(Text("not complete: see what is out of reach", "red"))
    return Group(*parts)


def _count(found: Sequence[object], what: str) -> str:
    head, _, rest = what.partition(" ")
    plural = f"{head[:-1]}ies" if head.endswith("y") else f"{head}s"
    return f"{len(found)} {' '.join(filter(None, (head if len(found) == 1 else plural, rest)))}"


def backup(
    path: Annotated[Path, typer.Argument(help="A new file.", show_default=False)],
    db: Database = None,
    as_json: AsJson = False,
) -> None:
    """Copy the store while it is in use, and read the copy back."""
    memory, _ = open_memory(db)
    with memory:
        units = memory.backup(path)
    show({"path": str(path), "units": units}, lambda: Text(f"{units} units copied to {path}"), as_json=as_json)
