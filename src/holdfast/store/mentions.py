"""Names → the units of several shards that they lead to (C12). Derived from the same posting lists as terms."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from holdfast.store.base import Named
from holdfast.store.index import CALLED, NAMING, Shard
from holdfast.store.shards import today
from holdfast.types import View

Bools = NDArray[np.bool_]


def named(
    shards: Sequence[Shard], view: View, keys: Sequence[str], most: int, allowed: frozenset[int] | None
) -> dict[str, Named]:
    """Return where names lead; how rare one is does not depend on the view's filters, as with terms."""
    eligible: list[Bools] = [shard.eligible(view, allowed) for shard in shards]
    found = {}
    for key in dict.fromkeys(keys):
        if not any(shard.knows(key) for shard in shards):  # most of what is asked for is nobody's name
            continue
        called = _places(shards, key, (CALLED,))
        sharing = _places(shards, key, (CALLED, NAMING))
        leads = Named(
            *(
                _visible(shards, view, places, eligible) if _count(shards, places) <= most else ()
                for places in (called, sharing)
            )
        )
        if leads.called or leads.sharing:
            found[key] = leads
    return found


def _places(shards: Sequence[Shard], key: str, kinds: Sequence[int]) -> list[list[int]]:
    """Return the living places of each shard."""
    return [sorted({place for kind in kinds for place in shard.named(kind, key).tolist()}) for shard in shards]


def _count(shards: Sequence[Shard], places: Sequence[Sequence[int]]) -> int:
    present = {id(shard) for shard in today(shards)}
    return sum(len(here) for shard, here in zip(shards, places, strict=True) if id(shard) in present)


def _visible(
    shards: Sequence[Shard], view: View, places: Sequence[Sequence[int]], eligible: Sequence[Bools]
) -> tuple[str, ...]:
    """Return the ids that the view may see, in their order; a user's own unit hides a global one of the same id."""
    ids = {
        shard.ids[place]
        for i, shard in enumerate(shards)
        for place in places[i]
        if eligible[i][place] and not any(own.shows(shard.ids[place], view) for own in shards[:i])
    }
    return tuple(sorted(ids))
