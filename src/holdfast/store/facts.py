"""The facts of several shards as one (C8): a user's own and everyone's, as far as one call may see them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from holdfast.kernels.facts import Facts, Key, SeenFacts, StatedFact
from holdfast.store.index import Shard


def join_facts(shards: Sequence[Shard], eligible: Sequence[NDArray[np.bool_]]) -> Facts:
    """Return what the eligible units of some shards state."""
    return JoinedFacts([_seen(*pair) for pair in zip(shards, eligible, strict=True)], shards[0].tokens)


def _seen(shard: Shard, eligible: NDArray[np.bool_]) -> SeenFacts:
    if eligible[shard.column("alive")].all():  # most views see everything: no need to look at each source
        return shard.facts.seen_by(None)
    places, seen = shard.place_of_id, eligible.tolist()
    return shard.facts.seen_by(lambda unit_id: seen[places[unit_id]])


class JoinedFacts:
    """Several collections of facts that answer together; see `Facts`."""

    def __init__(self, parts: Sequence[SeenFacts], tokens: Callable[[str], Collection[str]]) -> None:
        self._parts = parts
        self._tokens = tokens
        for part in parts:
            others = [other for other in parts if other is not part]
            part.elsewhere = partial(_touched_by, others)

    def symbols_with(self, tokens: Collection[str], limit: int) -> Sequence[str]:
        """See `Facts.symbols_with`."""
        wanted = set(tokens)
        found = {symbol for part in self._parts for symbol in part.symbols_with(tokens, limit)}

        def order(symbol: str) -> tuple[bool, int, str]:
            own = set(self._tokens(symbol))
            return (not own <= wanted, -len(own & wanted), symbol)

        return sorted(found, key=order)[:limit]

    def about(self, symbols: Collection[str], limit: int) -> Sequence[StatedFact]:
        """See `Facts.about`."""
        wanted = set(symbols)
        places: dict[tuple[str, str, str], list[StatedFact]] = {}
        for fact in _merged([part.about(symbols, limit) for part in self._parts]):
            for end, side in ((fact.subject, "subject"), (fact.object, "object")):
                if end in wanted:
                    places.setdefault((end, fact.relation, side), []).append(fact)
        found: dict[Key, StatedFact] = {}
        for (_, _, side), facts in sorted(places.items()):
            kept = facts if len(facts) <= limit else sorted(facts, key=partial(self._order, side))[:limit]
            found |= {fact.key: fact for fact in kept}
        return [*found.values()]

    def _order(self, side: str, fact: StatedFact) -> tuple[bool, float, Key]:
        far = fact.object if side == "subject" else fact.subject
        touched = any(part.touched(far, fact.key) for part in self._parts)
        return (not touched, -fact.confidence, fact.key)

    def between(self, left: Collection[str], right: Collection[str]) -> Sequence[StatedFact]:
        """See `Facts.between`."""
        return sorted(_merged([part.between(left, right) for part in self._parts]), key=lambda fact: fact.key)


def _touched_by(parts: Sequence[SeenFacts], symbol: str) -> bool:
    return any(part.touched(symbol) for part in parts)


def _merged(parts: Sequence[Sequence[StatedFact]]) -> list[StatedFact]:
    """Return the facts of all parts; one that several state has all their sources."""
    found: dict[Key, StatedFact] = {}
    for part in parts:
        for fact in part:
            known = found.get(fact.key)
            if known is None:
                found[fact.key] = fact
            else:
                sources = tuple(sorted({*known.sources, *fact.sources}))
                found[fact.key] = StatedFact(*fact.key, max(known.confidence, fact.confidence), sources)
    return [*found.values()]
