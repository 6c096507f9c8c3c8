"""Commands for who runs a store on PostgreSQL: `worker`, and the group `cluster`."""

from __future__ import annotations

import contextlib
import dataclasses
import sys
import time
from collections.abc import Iterator, Sequence
from functools import partial
from importlib import import_module
from typing import Any

import typer
from rich.console import Group, RenderableType
from rich.progress import Progress
from rich.table import Table
from rich.text import Text

from holdfast.derivation import derivation
from holdfast.embedding import Embedding
from holdfast.errors import BusyStoreError, InputError, ServerError, StoreError, shown
from holdfast.interfaces import draw
from holdfast.interfaces.options import Answer, Call, command, err
from holdfast.store.contract import Store
from holdfast.store.copying import view_of
from holdfast.store.opening import is_missing, open_store
from holdfast.store.postgres.address import is_postgres

# More often is work for nothing: what was written a moment ago is embedded by who wrote it.
_MOST_OFTEN = 0.1


def register(app: typer.Typer) -> None:
    """Add these commands to the command line."""
    command(app, "worker")(_worker)
    group = typer.Typer(help="Servers of a store on PostgreSQL, and which tenants lie where.", no_args_is_help=True)
    servers = {"add": _add, "list": _list, "move": _move}
    for name, run in (servers | {"index": _index, "reindex": _reindex, "vacuum": _vacuum, "quota": _quota}).items():
        command(group, name)(run)
    app.add_typer(group, name="cluster")


# ------------------------------------------------------------------------------------------------------ workers


def _worker(call: Call, watch: bool = False, every: float = 2.0) -> Answer:
    """Embed what waits for vectors, together with any number of other workers; stopped or killed, nothing is lost."""
    if not every >= _MOST_OFTEN:
        raise InputError(f"--every {every} is too often; the least is {_MOST_OFTEN} seconds")
    done = 0
    with contextlib.closing(_open(call)) as store, Progress(console=err, disable=call.as_json) as progress:
        count = partial(store.stats, view_of(call.settings.store.tenant), whole=True)
        embedding = Embedding(store, call.settings.embedding, call.settings.gate, None, count, lambda: 0.0)
        task = progress.add_task("embedding", total=count().waiting or None)

        def advance(written: int) -> None:
            nonlocal done
            done += written
            progress.update(task, advance=written)

        try:
            embedding.share(advance)
            while watch:
                time.sleep(every)
                with contextlib.suppress(BusyStoreError, ServerError):  # a server that is away comes back
                    embedding.share(advance)
        except KeyboardInterrupt:  # the way it ends
            if not watch:
                raise
        left = count().waiting or 0
    waiting = f"{draw.count(left, 'unit')} {'waits' if left == 1 else 'wait'}"
    told = f"{draw.count(done, 'unit')} embedded, {waiting}"
    return Answer({"embedded": done, "waiting": left}, lambda: Text(told), code=1 if left and not watch else 0)


# ------------------------------------------------------------------------------------------------------ servers


def _add(call: Call, name: str, address: str, front_only: bool = False) -> Answer:
    """Let tenants lie on another PostgreSQL server, too; what is there already stays where it is."""
    if address == "-":
        address = sys.stdin.readline().strip()
    with _opened(call) as (store, servers):
        shard = servers.add_server(store.database, name, address)
        if front_only:
            servers.take_tenants(store.database, 0, takes=False)
    return Answer(
        {"shard": shard, "server": name}, lambda: Text(f"{name} has shard {shard}; new tenants go there too")
    )


def _list(call: Call) -> Answer:
    """List the servers of a store: how many tenants, units and bytes each has, and whether it can be reached."""
    with _opened(call) as (store, servers):
        found = servers.list_shards(store.database)
    code = ServerError.exit_code if any(one.problem for one in found) else 0
    return Answer([dataclasses.asdict(one) for one in found], lambda: _table(found), code=code)


def _table(found: Sequence[Any]) -> RenderableType:
    table = Table.grid(padding=(0, 2, 0, 0))
    for one in found:
        size = "" if one.units is None else f"{draw.count(one.units, 'unit')}, {one.bytes:,} bytes"
        note = one.problem or ("" if one.takes_tenants else "takes no new tenants")
        name = one.server or "front"
        table.add_row(str(one.number), Text(name, "cyan"), draw.count(one.tenants, "tenant"), size, Text(note))
    return Group(table)


def _move(call: Call, tenant: str, server: str) -> Answer:
    """Bring all of a tenant to another server; its writers wait meanwhile. Stopped, it goes on when run again."""
    with _opened(call) as (store, servers):
        numbers = {one.server or "front": one.shard for one in store.database.shards()}
        if server not in numbers:
            raise InputError(f"there is no server {shown(server)}; there are {', '.join(numbers)}")
        done = servers.move_tenant(store.database, tenant, numbers[server])
    told = f"{draw.count(done.rows, 'row')} of {tenant} brought to {server}"
    code = BusyStoreError.exit_code if done.remains else 0
    return Answer(dataclasses.asdict(done), lambda: Text(told), Text(done.remains, "yellow"), code=code)


# ------------------------------------------------------------------------------------------------------- upkeep


def _index(call: Call, offline: bool = False) -> Answer:
    """Finish a load that was interrupted, and build what the vectors of large owners are found by."""
    with _opened(call, mending=True) as (store, _):
        built = store.build_indexes(concurrently=not offline)
    told = ", ".join(built) or "no owner has so many vectors that an index is worth it"
    return Answer({"indexes": built}, lambda: Text(told))


def _reindex(call: Call) -> Answer:
    """Derive all that is searched again, for another version or other settings; nobody opens the store meanwhile."""
    with _opened(call, mending=True) as (store, _), Progress(console=err, disable=call.as_json) as progress:
        task = progress.add_task("deriving", total=None)
        done = store.derive_again(lambda at, of: progress.update(task, completed=at, total=max(of, 1)))
    return Answer({"units": done}, lambda: Text(f"{draw.count(done, 'unit')} derived again"))


def _vacuum(call: Call) -> Answer:
    """Take the bytes of what was erased out of the tables, and of backups on this machine; others wait meanwhile."""
    with _opened(call) as (store, _):
        done = store.finish_erasing()
    told = "nothing is left of what was erased" if done else "something is held up; run it again when nobody reads"
    return Answer({"complete": done}, lambda: Text(told), code=0 if done else BusyStoreError.exit_code)


def _quota(call: Call, tenant: str, most: int | None = None) -> Answer:
    """Let a tenant keep at most so many units; without a number, as many as it likes."""
    with _opened(call) as (store, _):
        store.set_quota(tenant, most)
    told = "any number of units" if most is None else f"at most {draw.count(most, 'unit')}"
    return Answer({"tenant": tenant, "most": most}, lambda: Text(f"{tenant} may keep {told}"))


@contextlib.contextmanager
def _opened(call: Call, *, mending: bool = False) -> Iterator[tuple[Any, Any]]:
    """Open a store on PostgreSQL; yield it with what can be done to its servers."""
    place = str(call.database or call.settings.store.path)
    if not is_postgres(place):
        raise InputError(f"{place} is no PostgreSQL database, and lies in one place; --db postgresql://…")
    with contextlib.closing(_open(call, mending=mending)) as store:
        yield store, import_module("holdfast.store.postgres.cluster")  # needs an extra, as the store does


def _open(call: Call, *, mending: bool = False) -> Store:
    place = call.database or call.settings.store.path
    if call.is_remote:
        raise InputError(f"{place} is a server, which cares for its store itself; name the store's file or database")
    if is_missing(place):
        raise StoreError(f"{place} does not exist; check --db")
    return open_store(place, call.settings.store, derivation(call.settings), mending=mending)
