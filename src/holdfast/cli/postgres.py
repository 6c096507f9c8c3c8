"""Commands for who runs a store on PostgreSQL: `worker`, and the group `postgres`."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from functools import partial
from typing import Any

import typer
from rich.progress import Progress
from rich.text import Text

from holdfast.cli import draw
from holdfast.cli.options import Answer, Call, command, err
from holdfast.derivation import derivation
from holdfast.errors import BusyStoreError, InputError, ServerError, StoreError
from holdfast.lifecycle.embedding import Embedding
from holdfast.openers import is_missing, open_store
from holdfast.store.contract import Store
from holdfast.store.copying import view_of
from holdfast.store.postgres.address import is_postgres

# More often is work for nothing: what was written a moment ago is embedded by who wrote it.
_MOST_OFTEN = 0.1


def register(app: typer.Typer) -> None:
    """Add these commands to the command line."""
    command(app, "worker")(_worker)
    group = typer.Typer(help="Upkeep of a store on PostgreSQL.", no_args_is_help=True)
    for name, run in {"index": _index, "reindex": _reindex, "vacuum": _vacuum, "quota": _quota}.items():
        command(group, name)(run)
    app.add_typer(group, name="postgres")


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


# ------------------------------------------------------------------------------------------------------- upkeep


def _index(call: Call, offline: bool = False) -> Answer:
    """Finish a load that was interrupted, and build what the vectors of large owners are found by."""
    with _opened(call, mending=True) as store:
        built = store.build_indexes(concurrently=not offline)
    told = ", ".join(built) or "no owner has so many vectors that an index is worth it"
    return Answer({"indexes": built}, lambda: Text(told))


def _reindex(call: Call) -> Answer:
    """Derive all that is searched again, for another version or other settings; nobody opens the store meanwhile."""
    with _opened(call, mending=True) as store, Progress(console=err, disable=call.as_json) as progress:
        task = progress.add_task("deriving", total=None)
        done = store.derive_again(lambda at, of: progress.update(task, completed=at, total=max(of, 1)))
    return Answer({"units": done}, lambda: Text(f"{draw.count(done, 'unit')} derived again"))


def _vacuum(call: Call) -> Answer:
    """Take the bytes of what was erased out of the tables, and of backups on this machine; others wait meanwhile."""
    with _opened(call) as store:
        done = store.finish_erasing()
    told = "nothing is left of what was erased" if done else "something is held up; run it again when nobody reads"
    return Answer({"complete": done}, lambda: Text(told), code=0 if done else BusyStoreError.exit_code)


def _quota(call: Call, tenant: str, most: int | None = None) -> Answer:
    """Let a tenant keep at most so many units; without a number, as many as it likes."""
    with _opened(call) as store:
        store.set_quota(tenant, most)
    told = "any number of units" if most is None else f"at most {draw.count(most, 'unit')}"
    return Answer({"tenant": tenant, "most": most}, lambda: Text(f"{tenant} may keep {told}"))


@contextlib.contextmanager
def _opened(call: Call, *, mending: bool = False) -> Iterator[Any]:
    """Open a store on PostgreSQL."""
    place = str(call.database or call.settings.store.path)
    if not is_postgres(place):
        raise InputError(f"{place} is no PostgreSQL database; --db postgresql://…")
    with contextlib.closing(_open(call, mending=mending)) as store:
        yield store


def _open(call: Call, *, mending: bool = False) -> Store:
    place = call.database or call.settings.store.path
    if call.is_remote:
        raise InputError(f"{place} is a server, which cares for its store itself; name the store's file or database")
    if is_missing(place):
        raise StoreError(f"{place} does not exist; check --db")
    return open_store(place, call.settings.store, derivation(call.settings), mending=mending)
