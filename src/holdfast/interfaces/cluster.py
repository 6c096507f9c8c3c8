"""Commands for who runs a store on PostgreSQL: `worker`, and the group `cluster`."""

from __future__ import annotations

import contextlib
import time
from functools import partial

import typer
from rich.progress import Progress
from rich.text import Text

from holdfast.derivation import derivation
from holdfast.embedding import Embedding
from holdfast.errors import BusyStoreError, InputError, ServerError, StoreError
from holdfast.interfaces import draw
from holdfast.interfaces.options import Answer, Call, command, err
from holdfast.store.contract import Store
from holdfast.store.copying import view_of
from holdfast.store.opening import is_missing, open_store

# More often is work for nothing: what was written a moment ago is embedded by who wrote it.
_MOST_OFTEN = 0.1


def register(app: typer.Typer) -> None:
    """Add these commands to the command line."""
    command(app, "worker")(_worker)


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


def _open(call: Call) -> Store:
    place = call.database or call.settings.store.path
    if call.is_remote:
        raise InputError(f"{place} is a server, which cares for its store itself; name the store's file or database")
    if is_missing(place):
        raise StoreError(f"{place} does not exist; check --db")
    return open_store(place, call.settings.store, derivation(call.settings))
