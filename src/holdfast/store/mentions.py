"""Names → the units of several shards that they lead to (C12). Derived from the same posting lists as terms."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from holdfast.store.index import Shard
from holdfast.store.shards import today
from holdfast.types import View

Bools = NDArray[np.bool_]


def leads(
    kinds: Sequence[int], shards: Sequence[Shard], view: View, keys: Sequence[str], most: int,
    allowed: frozenset[int] | None,
) -> dict[str, tuple[str, ...]]:  # fmt: skip
    """Return where names lead, by posting lists of some kinds. Filters do not make a name rarer."""
    # Most of what is asked for is nobody's name, so that is found out first.
    asked = dict.fromkeys(keys).keys()
    known = sorted({key for shard in shards for kind in kinds for key in asked & shard.names(kind)})
    eligible: list[Bools] = [shard.eligible(view, allowed) for shard in shards] if known else []
    found = {}
    for key in known:
        places = [{place for kind in kinds for place in shard.named(kind, key).tolist()} for shard in shards]
        if _count(shards, places) <= most and (ids := _visible(shards, view, places, eligible)):
            found[key] = ids
    return found


def _count(shards: Sequence[Shard], places: Sequence[set[int]]) -> int:
    present = {id(shard) for shard in today(shards)}
    return sum(len(here) for shard, here in zip(shards, places, strict=True) if id(shard) in present)


def _visible(
    shards: Sequence[Shard], view: View, places: Sequence[set[int]], eligible: Sequence[Bools]
) -> tuple[str, ...]:
    """Return the ids that the view may see, in their order; a user's own unit hides a global one of the same id."""
    ids = {
        shard.ids[place]
        for i, shard in enumerate(shards)
        for place in places[i]
        if eligible[i][place] and not any(own.shows(shard.ids[place], view) for own in shards[:i])
    }
    return tuple(sorted(ids))
