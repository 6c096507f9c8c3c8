"""Commands that list, export and import, show a memory in a browser, and maintain a store on PostgreSQL.

`users`, `sessions`, `documents`, `agents`; `export`, `import`, `migrate`; `inspect`; `worker`, `postgres`;
`about`; `decisions`, `overrule`.
"""

from __future__ import annotations

import contextlib
import dataclasses
import sys
import time
from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import partial
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import typer
from rich.cells import cell_len
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from holdfast.cli import draw
from holdfast.cli.options import CommandContext, CommandResult, Options, command, declare_options, err, extra, out
from holdfast.cli.output import ProgressReport
from holdfast.errors import BusyStoreError, InputError, ServerError, StoreError, quote_value
from holdfast.lifecycle.embedding import StoreEmbedder
from holdfast.openers import check_store, derivation, is_address, is_database, is_missing, open_store
from holdfast.settings import Settings
from holdfast.store.contract import Store
from holdfast.store.copying import Copyable, CopyReport, copy_store, view_of
from holdfast.types import JSON, DecisionKind, ImportReport, NameCount, iso

# Fewer columns tell nothing.
_LEAST_ROOM = 12


if TYPE_CHECKING:
    from holdfast.server.access import Tokens


def register(app: typer.Typer) -> None:
    """Add these commands to the command line."""
    for name, run in {"users": _users, "sessions": _sessions, "documents": _documents, "agents": _agents}.items():
        command(app, name)(run)
    command(app, "about")(_about)
    command(app, "decisions")(_decisions)
    command(app, "overrule")(_overrule)
    command(app, "export")(_export)
    command(app, "import", create=True)(_import)
    parameters = signature(_migrate, eval_str=True).parameters.values()
    app.command("migrate")(declare_options(_migrate, "migrate", parameters))


def _about(
    call: CommandContext, topic: str | None = None, limit: int = 0, *, owner: Options
) -> CommandResult:  # fmt: skip
    """Show what is known about a user: turns that answer fifty questions, with dates and what they replaced."""
    with ProgressReport(err, "asking", quiet=call.as_json) as report:
        found = call.memory.about(topic=topic, limit=limit or None, progress=report, **owner)
    value = {"asked": found.asked, "lines": [one.to_json() for one in found], "warnings": [*found.warnings]}
    return CommandResult(value, lambda: draw.about(found), "; ".join(found.warnings))


# ------------------------------------------------------------------------------------------------------- lists


def _users(call: CommandContext, limit: int = 50, tenant: str | None = None) -> CommandResult:
    """List who has units here, newest first."""
    return _list(call.memory.users(tenant=tenant, limit=limit or None), "no users: nothing is remembered here")


def _sessions(call: CommandContext, limit: int = 50, *, tenant_user: Options) -> CommandResult:
    """List the sessions of a user, newest first, each with its title or first words."""
    return _list(call.memory.sessions(limit=limit or None, **tenant_user), "no sessions", call, tenant_user)


def _documents(call: CommandContext, limit: int = 50, *, tenant_user: Options) -> CommandResult:
    """List the documents that a user sees, newest first."""
    return _list(call.memory.documents(limit=limit or None, **tenant_user), "no documents", call, tenant_user)


def _agents(call: CommandContext, limit: int = 50, *, tenant_user: Options) -> CommandResult:
    """List the agents that have units of their own, newest first."""
    return _list(call.memory.agents(limit=limit or None, **tenant_user), "no agents", call, tenant_user)


def _list(
    found: Sequence[NameCount], nothing: str, call: CommandContext | None = None, owner: Options | None = None
) -> CommandResult:
    note = "" if found or call is None or owner is None else name_others(call, owner)
    rows = [_row(one) for one in found]
    return CommandResult(rows, lambda: _table(found) if found else Text(nothing), Text(note, "yellow"))


def name_others(call: CommandContext, owner: Options) -> str:
    """Say who has units here when a user has none."""
    tenant, user = owner["tenant"], owner["user"]
    if call.memory.users(user=user, tenant=tenant):
        return ""
    others = ", ".join(one.name for one in call.memory.users(tenant=tenant, limit=5))
    return f"user {user!r} has nothing here; there are: {others}" if others else ""


def _row(one: NameCount) -> dict[str, JSON]:
    times = {
        name: None if moment is None else iso(moment) for name, moment in (("first", one.first), ("last", one.last))
    }
    told = {"title": one.title, "core": one.core, "everyones": one.everyones}
    return {"name": one.name, "units": one.units, **times, **{name: value for name, value in told.items() if value}}


def _table(found: Sequence[NameCount]) -> RenderableType:
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True, style="cyan")
    table.add_column(no_wrap=True, justify="right")
    table.add_column(no_wrap=True, style="dim")
    table.add_column(no_wrap=True)
    rows = [(one.name, draw.count(one.units, "unit"), _span(one.first, one.last)) for one in found]
    # Names, counts and dates are whole; what was said first has the room that they leave.
    room = out.width - sum(max(map(cell_len, column)) + 2 for column in zip(*rows, strict=True))
    for one, (name, units, span) in zip(found, rows, strict=True):
        marks = [word for word, holds in (("core", one.core), ("shared", one.everyones)) if holds]
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
    call: CommandContext, file: Path, user: str | None = None, session: str | None = None, tenant: str | None = None,
    everything: bool = False, kind: str = "jsonl", vectors: bool = False,
) -> CommandResult:  # fmt: skip
    """Export a user, a session or a tenant to a new file: complete, or as Markdown to read."""
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
    return CommandResult({"file": str(file), **dataclasses.asdict(done)}, lambda: told)


def _import(
    call: CommandContext, file: Path, kind: str | None = None, user: str | None = None, session: str | None = None,
    tenant: str | None = None, zone: str | None = None, dry_run: bool = False,
) -> CommandResult:  # fmt: skip
    """Import a Holdfast or third-party export; re-run to add new entries."""
    source: Path | bytes = sys.stdin.buffer.read() if str(file) == "-" else file
    with ProgressReport(err, "importing", quiet=call.as_json) as report:
        done = call.memory.import_(
            source,
            user=user,
            session=session,
            tenant=tenant,
            zone=zone,
            format=kind,
            dry_run=dry_run,
            progress=report,
        )
    code = 0 if done.complete else InputError.exit_code
    return CommandResult(_report_row(done), lambda: _report(done), code=code)


def _report_row(done: ImportReport) -> dict[str, JSON]:
    times = {name: iso(moment) if (moment := getattr(done, name)) else None for name in ("first", "last")}
    return {**dataclasses.asdict(done), **times}


def _report(done: ImportReport) -> RenderableType:
    """Draw what an import did: what was read, what became of it, what was skipped and why."""
    span = _span(done.first, done.last)
    where = [draw.count(done.sessions, "session")] if done.sessions else []
    where += [f"by {', '.join(done.speakers)}"] if done.speakers else []
    where += [f"from {span}"] if span else []
    read = f"{done.format}: {draw.count(done.read, 'entry')} read"
    became = [(done.added, "added"), (done.updated, "changed"), (done.known, "already stored")]
    became += [(done.documents, "documents")]
    told = ", ".join(f"{count:,} {what}" for count, what in became if count) or "nothing new"
    lines: list[RenderableType] = [
        Text("; ".join((read, *where))),
        Text("nothing was written: this was a dry run" if done.dry_run else told, "green"),
    ]
    for one in done.skipped:
        more = f" and {one.count - len(one.where)} more" if one.count > len(one.where) else ""
        lines.append(Text(f"skipped {one.count:,}: {one.reason}", "yellow"))
        lines.append(draw.indent(Text(f"{', '.join(one.where)}{more}", "dim")))
    lines += draw.warnings(done.warnings)
    if not done.complete:
        lines.append(Text("incomplete file: what could be read is imported", "bold red"))
    return Group(*lines)


# ----------------------------------------------------------------------------------------------------- migrate


def _migrate(source: str, target: str, as_json: bool = False) -> None:
    """Copy a store into another, a file or a database, and compare the two; re-run to resume."""
    for place in (source, target):
        if is_address(place):
            raise InputError(
                f"{quote_value(place)} is a server; a store is copied where it is stored: name its file or database"
            )
    if is_missing(source):
        raise StoreError(f"{source} does not exist; check --from")
    settings = Settings.load()
    how = (settings.store, derivation(settings))
    with contextlib.ExitStack() as opened:
        one, other = (
            cast("Copyable", open_store(check_store("path", place), *how, mending=place is target))
            for place in (source, target)
        )
        for store in (one, other):
            opened.callback(store.close)
        steps = {
            step: opened.enter_context(ProgressReport(err, step, quiet=as_json)) for step in ("copying", "comparing")
        }
        done = copy_store(one, other, lambda step, at, of: steps[step](at, of))
    row = {"from": source, "to": target, **dataclasses.asdict(done), "whole": done.whole}
    CommandResult(row, lambda: _copied(done), code=0 if done.whole else StoreError.exit_code).show(as_json=as_json)


def _copied(done: CopyReport) -> RenderableType:
    """Draw what a copy did, and whether the two stores are the same."""
    held = (done.tenants, "tenant"), (done.units, "unit"), (done.versions, "version"), (done.vectors, "vector")
    parts = [draw.count(number, what) for number, what in (*held, (done.documents, "document"))]
    became = [(done.added, "added"), (done.updated, "changed"), (done.known, "already stored")]
    told = ", ".join(f"{count:,} {what}" for count, what in became if count) or "nothing new"
    lines: list[RenderableType] = [Text(", ".join(parts)), Text(f"units: {told}", "green")]
    if done.left:
        lines.append(Text(f"{draw.count(done.left, 'vector')} of other embedders left behind: not searched", "dim"))
    if done.whole:
        return Group(*lines, Text("compared unit by unit: all is there as it is here", "green"))
    lines.append(Text(f"{done.different:,} differ: they were changed there, or went different ways", "bold red"))
    return Group(*lines, *(draw.indent(Text(name, "dim")) for name in done.differing))


def inspect(db: str | None = None, user: str | None = None, port: int = 8378, write: bool = False) -> None:
    """Browse a memory: recall, contexts, sessions, facts, documents and health."""
    with extra("server"):
        from holdfast.server import limits, listening  # noqa: PLC0415 - needs an extra

    found = Settings.load()
    path = db or found.store.path
    if is_address(path):
        raise InputError(f"{path} is a server, which has the pages itself; open {path}/ in a browser")
    if is_missing(path):
        raise StoreError(f"{path} does not exist; check --db, or remember something first")
    how = limits.ServerSettings(port=port, pages="alone", user=user or "", write=write)
    listening.serve(path, found, how, lambda address: out.print(f"open {address}/ in a browser; Ctrl+C ends it"))


# --------------------------------------------------------------------------------------------------- decisions


def _decisions(call: CommandContext, unit_id: str, *, owner: Options) -> CommandResult:
    """List the automatic decisions about a unit, why, and which were overruled."""
    found = call.memory.decisions(unit_id, **owner)
    return CommandResult([dataclasses.asdict(one) for one in found], lambda: draw.decisions(found))


def _overrule(
    call: CommandContext, unit_id: str, decision: str, undo: bool = False, *, owner: Options
) -> CommandResult:  # fmt: skip
    """Overrule an automatic decision about a unit, or undo that."""
    found = call.memory.overrule(unit_id, decision=cast("DecisionKind", decision), undo=undo, **owner)
    return CommandResult([dataclasses.asdict(one) for one in found], lambda: draw.decisions(found))


# More often is work for nothing: what was written a moment ago is embedded by who wrote it.
_LEAST_WORKER_PAUSE = 0.1


def register_postgres(app: typer.Typer) -> None:
    """Add these commands to the command line."""
    command(app, "worker")(_worker)
    group = typer.Typer(help="Maintain a store on PostgreSQL.", no_args_is_help=True)
    for name, run in {"index": _index, "reindex": _reindex, "vacuum": _vacuum, "quota": _quota}.items():
        command(group, name)(run)
    app.add_typer(group, name="postgres")


# ------------------------------------------------------------------------------------------------------ workers


def _worker(call: CommandContext, watch: bool = False, every: float = 2.0) -> CommandResult:
    """Embed pending units; run as many workers as you like; safe to kill."""
    if not every >= _LEAST_WORKER_PAUSE:
        raise InputError(f"--every {every} is too often; the least is {_LEAST_WORKER_PAUSE} seconds")
    done = 0
    with contextlib.closing(_open(call)) as store, ProgressReport(err, "embedding", quiet=call.as_json) as report:
        count = partial(store.stats, view_of(call.settings.store.tenant), whole=True)
        embedding = StoreEmbedder(store, call.settings.embedding, call.settings.gate, None, count, lambda: 0.0)
        waiting = count().waiting or 0

        def advance(written: int) -> None:
            nonlocal done
            done += written
            report(done, max(waiting, done))

        try:
            embedding.embed_shared(advance)
            while watch:
                time.sleep(every)
                with contextlib.suppress(BusyStoreError, ServerError):  # a server that is away comes back
                    embedding.embed_shared(advance)
        except KeyboardInterrupt:  # the way it ends
            if not watch:
                raise
        left = count().waiting or 0
    told = f"{draw.count(done, 'unit')} embedded, {draw.count(left, 'unit')} {'waits' if left == 1 else 'wait'}"
    return CommandResult({"embedded": done, "waiting": left}, lambda: Text(told), code=1 if left and not watch else 0)


# ------------------------------------------------------------------------------------------------------- upkeep


def _index(call: CommandContext, offline: bool = False) -> CommandResult:
    """Finish an interrupted load, and build the HNSW indexes of large owners."""
    with _opened(call, mending=True) as store:
        built = store.build_indexes(concurrently=not offline)
    told = ", ".join(built) or "no owner has so many vectors that an index is worth it"
    return CommandResult({"indexes": built}, lambda: Text(told))


def _reindex(call: CommandContext) -> CommandResult:
    """Rebuild all indexes, for another version or other settings; the store is locked meanwhile."""
    with _opened(call, mending=True) as store, ProgressReport(err, "deriving", quiet=call.as_json) as report:
        done = store.derive_again(report)
    return CommandResult({"units": done}, lambda: Text(f"{draw.count(done, 'unit')} derived again"))


def _vacuum(call: CommandContext) -> CommandResult:
    """Rewrite tables, and backups on this machine, to purge erased rows (blocks readers and writers)."""
    with _opened(call) as store:
        done = store.finish_erasing()
    told = "nothing is left of what was erased" if done else "rows are still in use; re-run when nobody reads"
    return CommandResult({"complete": done}, lambda: Text(told), code=0 if done else BusyStoreError.exit_code)


def _quota(call: CommandContext, tenant: str, most: int | None = None) -> CommandResult:
    """Limit the units of a tenant; without a number, remove the limit."""
    with _opened(call) as store:
        store.set_quota(tenant, most)
    told = "any number of units" if most is None else f"at most {draw.count(most, 'unit')}"
    return CommandResult({"tenant": tenant, "most": most}, lambda: Text(f"{tenant} may keep {told}"))


@contextlib.contextmanager
def _opened(call: CommandContext, *, mending: bool = False) -> Iterator[Any]:
    """Open a store on PostgreSQL."""
    place = str(call.database or call.settings.store.path)
    if not is_database(place):
        raise InputError(f"{place} is no PostgreSQL database; --db postgresql://…")
    with contextlib.closing(_open(call, mending=mending)) as store:
        yield store


def _open(call: CommandContext, *, mending: bool = False) -> Store:
    place = call.database or call.settings.store.path
    if call.is_remote:
        raise InputError(f"{place} is a server, which cares for its store itself; name the store's file or database")
    if is_missing(place):
        raise StoreError(f"{place} does not exist; check --db")
    return open_store(place, call.settings.store, derivation(call.settings), mending=mending)


# ------------------------------------------------------------------------------------------------------ tokens


def register_tokens(app: typer.Typer) -> None:
    """Add the group `token`."""
    group = typer.Typer(help="Manage API tokens.", no_args_is_help=True)
    for name, run in {"add": _add_token, "list": _list_tokens, "revoke": _revoke_token}.items():
        command(group, name)(run)
    app.add_typer(group, name="token")


def _tokens_of(call: CommandContext) -> Tokens:
    with extra("server"):
        from holdfast.server.access import open_tokens  # noqa: PLC0415 - locks a file as only POSIX can

    return open_tokens(call.database or call.settings.store.path)


def _add_token(call: CommandContext, name: str, tenant: str | None = None, user: str | None = None) -> CommandResult:
    """Create a token for one tenant, or for one user of it; it is shown once."""
    tenant = tenant or call.settings.store.tenant
    secret = _tokens_of(call).add(name, tenant, user)
    return CommandResult({"name": name, "tenant": tenant, "user": user, "token": secret}, lambda: Text(secret))


def _list_tokens(call: CommandContext) -> CommandResult:
    """List the tokens of a store by name."""
    found = [{"name": one.name, "tenant": one.tenant, "user": one.user} for one in _tokens_of(call).all()]
    rows = [f"{one['name']}: tenant {one['tenant']}, {one['user'] or 'every user'}" for one in found]
    return CommandResult(found, lambda: Text("\n".join(rows) or "no tokens"))


def _revoke_token(call: CommandContext, name: str) -> CommandResult:
    """Revoke a token; a running server refuses it at once."""
    gone = _tokens_of(call).revoke(name)
    return CommandResult({"name": gone.name}, lambda: Text(f"{gone.name} is revoked"))
