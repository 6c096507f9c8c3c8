"""`holdfast compact`, `expand`, `supersede`, `reinstate`, `forget`, `backup`: keeping a memory true over time."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Group, RenderableType
from rich.progress import Progress
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
    made = [Text(_run(one)) for one in done if one.clusters]
    notes = [Text(f"{one.session}: {note}", "yellow") for one in done for note in one.notes]
    left = [
        Text(f"{one.session}: {draw.count(number, what)} {why}", "dim")
        for one in done
        for number, what, why in (
            (one.declined, "cluster", "that no summary would make cheaper"),
            (one.trivial, "single turn", "for the next run"),
            (one.changed, "cluster", "changed meanwhile, for the next run"),
        )
        if number
    ]
    return Group(*made, *notes, *left)


def _run(one: Compaction) -> str:
    """Say what one run did to one session."""
    sure = "" if one.mean_confidence is None else f", confidence {one.mean_confidence:.3f}"
    summaries, turns = draw.count(len(one.summaries), "summary"), draw.count(one.turns, "turn")
    return f"session {one.session}: {summaries} for {turns}, {one.tokens_saved:,} tokens saved{sure}, {one.method}"


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
        if not (dry_run or yes):
            _ask(memory.forget(**named, dry_run=True))
        erasure = memory.forget(**named, dry_run=dry_run)
    show(wire.erasure_json(erasure), lambda: _erased(erasure), as_json=as_json)


def _ask(planned: Erasure) -> None:
    """Let a person say yes; where nobody can be asked, nothing is erased."""
    units = draw.count(len(planned.units) + len(planned.summaries), "unit")
    if not sys.stdin.isatty():
        raise InputError(f"{units} would be erased, and there is no terminal to ask at; add --yes to erase")
    if not typer.confirm(f"Erase {units} for good?", err=True):
        raise InputError("nothing was erased; add --yes to erase without being asked")


def _erased(erasure: Erasure) -> RenderableType:
    verb = "would be erased" if erasure.dry_run else "erased"
    parts: list[RenderableType] = []
    if erasure.dry_run and erasure.units:
        parts.append(draw.units((*erasure.units, *erasure.summaries)))
    units, summaries = draw.count(len(erasure.units), "unit"), draw.count(len(erasure.summaries), "summary")
    parts.append(Text(f"{units}, {summaries} of them {verb}"))
    parts += [Text(f"document {name} {verb}") for name in erasure.documents]
    if erasure.dry_run:
        return Group(*parts)
    parts += [Text(f"made again from what is left: {unit_id}") for unit_id in erasure.rebuilt]
    parts += [Text(f"out of reach: {name}", "yellow") for name in erasure.outside]
    if erasure.complete:
        parts.append(Text(f"complete: nothing of it is left in {', '.join(erasure.files) or 'memory'}", "green"))
    elif erasure.pending:
        parts.append(Text(f"pending: {erasure.reason}; the next write or open goes on", "yellow"))
    else:
        parts.append(Text("not complete: see what is out of reach", "red"))
    return Group(*parts)


def backup(
    path: Annotated[Path, typer.Argument(help="A new file.", show_default=False)],
    db: Database = None,
    as_json: AsJson = False,
) -> None:
    """Copy the store while it is in use, and read the copy back."""
    memory, _ = open_memory(db)
    with memory:
        units = memory.backup(path)
    copied = draw.count(units, "unit")
    show({"path": str(path), "units": units}, lambda: Text(f"{copied} copied to {path}"), as_json=as_json)
