"""The facts of several shards as one (C8): a user's own and everyone's, as far as one call may see them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from holdfast.kernels.facts import Fact, Facts, Key, SeenFacts
from holdfast.store.index import Shard
from holdfast.types import View


def facts(shards: Sequence[Shard], view: View, allowed: frozenset[int] | None) -> Facts:
    """Return what the units that a view may see state."""
    return JoinedFacts([_seen(shards, i, view, allowed) for i in range(len(shards))], shards[0].tokens)


def _seen(shards: Sequence[Shard], i: int, view: View, allowed: frozenset[int] | None) -> SeenFacts:
    shard, before = shards[i], shards[:i]
    eligible = shard.eligible(view, allowed)

    def visible(unit_id: str) -> bool:
        hidden = any(own.shows(unit_id, view) for own in before)  # by a unit of the user's own with the same id
        return not hidden and bool(eligible[shard.place_of_id[unit_id]])

    return shard.facts.seen_by(visible)


class JoinedFacts:
    """Several collections of facts that answer together; see `Facts`."""

    def __init__(self, parts: Sequence[SeenFacts], tokens: Callable[[str], Collection[str]]) -> None:
        self._parts = parts
        self._tokens = tokens

    def symbols_with(self, tokens: Collection[str], limit: int) -> Sequence[str]:
        """See `Facts.symbols_with`."""
        wanted = set(tokens)
        found = {symbol for part in self._parts for symbol in part.symbols_with(tokens, limit)}

        def order(symbol: str) -> tuple[bool, int, str]:
            own = set(self._tokens(symbol))
            return (not own <= wanted, -len(own & wanted), symbol)

        return sorted(found, key=order)[:limit]

    def about(self, symbols: Collection[str], limit: int) -> Sequence[Fact]:
        """See `Facts.about`."""
        return _merged([part.about(symbols, limit) for part in self._parts])

    def between(self, left: Collection[str], right: Collection[str]) -> Sequence[Fact]:
        """See `Facts.between`."""
        return sorted(_merged([part.between(left, right) for part in self._parts]), key=lambda fact: fact.key)


def _merged(parts: Sequence[Sequence[Fact]]) -> list[Fact]:
    """Return the facts of all parts; one that several state has all their sources."""
    found: dict[Key, Fact] = {}
    for part in parts:
        for fact in part:
            known = found.get(fact.key)
            if known is None:
                found[fact.key] = fact
            else:
                sources = tuple(sorted({*known.sources, *fact.sources}))
                found[fact.key] = Fact(*fact.key, max(known.confidence, fact.confidence), sources)
    return [*found.values()]
