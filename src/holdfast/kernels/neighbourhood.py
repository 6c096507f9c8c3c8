"""Where a question's facts are (C8): its seeds, the facts around them, and which of those lie between two seeds.

A symbol may have ten thousand facts. So the search starts from all things that the question names at once and always
widens the smallest side; a busy symbol gives its first few facts, and beyond them only those whose other end is
known already. What joins two named things is found from the quieter end, however busy the other one is.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import combinations, zip_longest

from holdfast.kernels.facts import Facts, Key, StatedFact

Expired = Callable[[], bool]

# Symbols per call to the store: enough to save calls, few enough to look at the clock between them.
_CHUNK = 16
# `+` and `#` belong to a name: "C" is not named by "C++".
_NAME = r"(?<![\w+#]){}(?![\w+#])"


class QueryTerms:
    """What a question names. `text` is written as symbols are; `tokens` reads a symbol as `terms` were read."""

    def __init__(self, terms: frozenset[str], text: str, tokens: Callable[[str], Iterable[str]]) -> None:
        self.terms = terms
        # A symbol is looked at many times: the question's terms that are tokens of it, and whether it is named whole.
        self.matches = cache(lambda symbol: terms.intersection(tokens(symbol)))
        self.names = cache(lambda symbol: _stands_in(text, symbol))

    def weight(self, symbol: str) -> int:
        """Return 2 for each matched term and 4 for being named whole."""
        return 2 * len(self.matches(symbol)) + 4 * self.names(symbol)

    def seed_score(self, fact: StatedFact) -> int:
        """Return how much of the question one fact holds; 0 when it touches nothing of it."""
        left, right = self.weight(fact.subject), self.weight(fact.object)
        goal = 2 if fact.relation == "relevant_for" and self.matches(fact.object) else 0
        return left + right + goal + (2 if left and right else 0)

    def focus(self, key: Key) -> int:
        """Return how much of the question the two ends of a fact hold, both together more than each alone."""
        left, right = self.weight(key[0]), self.weight(key[2])
        both = bool(self.matches(key[0])) and bool(self.matches(key[2]))
        return left + right + (3 if both else 0)


def _stands_in(text: str, symbol: str) -> bool:
    """Return whether a whole symbol stands in a text, at word boundaries."""
    # Most symbols are no part of the text; compiling a pattern for each would cost more than all else.
    return symbol != "" and symbol in text and re.search(_NAME.format(re.escape(symbol)), text) is not None


@dataclass(frozen=True)
class Neighbourhood:
    """The facts around the seeds. `distances` count facts from each named thing, symbol by symbol.

    `bounded` tells that a bound held something back, `exhausted` that the time ran out.
    """

    facts: Mapping[Key, StatedFact]
    seeds: tuple[StatedFact, ...]
    distances: tuple[Mapping[str, int], ...] = ()
    apart: tuple[tuple[int, int], ...] = ()
    bounded: bool = False
    exhausted: bool = False

    @cached_property
    def seed_keys(self) -> frozenset[Key]:
        """Return the triples of the seeds."""
        return frozenset(seed.key for seed in self.seeds)

    @cached_property
    def _ways(self) -> tuple[tuple[Mapping[str, int], Mapping[str, int], int], ...]:
        """Return, for each two named things that are joined, their distances and the length of the way."""
        ways = []
        for g, h in self.apart:
            here, there = self.distances[g], self.distances[h]
            ends = [here[symbol] for symbol, distance in there.items() if distance == 0 and symbol in here]
            if ends:
                ways.append((here, there, min(ends)))
        return tuple(ways)

    def detour(self, key: Key, between: Collection[str] = ()) -> float:
        """Return how many facts longer the way between two named things gets through this fact.

        `between` are the symbols inside its proof. 0 on a shortest way; infinite when it lies on none, or when a
        symbol inside is nearer to one of the things than the fact's own end: then the way would turn back on itself.
        """
        found = math.inf
        for here, there, length in self._ways:
            for start, end in ((key[0], key[2]), (key[2], key[0])):
                if _leads_on(here, start, (*between, end)) and _leads_on(there, end, (*between, start)):
                    found = min(found, here[start] + len(between) + 1 + there[end] - length)
        return found

    def joins(self, key: Key) -> bool:
        """Return whether the fact's ends are two different things that the question names."""
        return any(
            here.get(start) == 0 and there.get(end) == 0
            for here, there, _ in self._ways
            for start, end in ((key[0], key[2]), (key[2], key[0]))
        )


def _leads_on(distances: Mapping[str, int], end: str, others: Iterable[str]) -> bool:
    return end in distances and all(distances[end] <= distances.get(other, math.inf) for other in others)


@dataclass(frozen=True, slots=True)
class Reach:
    """How far to look: `hops` from a seed fact, `fan_out` facts of a symbol, relation and side, `facts` in all."""

    seeds: int = 8
    hops: int = 3
    fan_out: int = 256
    facts: int = 4096


def explore(store: Facts, query: QueryTerms, reach: Reach, expired: Expired) -> Neighbourhood:
    """Return the facts around what the question names; all of them within `reach.hops` when no bound is met."""
    if expired():
        return Neighbourhood({}, (), exhausted=True)
    groups = _groups(store, query, reach.seeds)
    apart = tuple(
        (g, h)
        for g, h in combinations(range(len(groups)), 2)
        if not query.matches(groups[g][0]) & query.matches(groups[h][0])
    )
    search = _Search(store, reach, expired)
    search.widen(groups)
    distances = tuple(_distances(search.beside, group) for group in groups)
    seeds = _seeds([symbol for group in groups for symbol in group], search, query, reach.seeds)
    return Neighbourhood(search.known, seeds, distances, apart, search.bounded, search.exhausted)


def _groups(store: Facts, query: QueryTerms, most: int) -> list[list[str]]:
    """Return the symbols to start from, those that hold the same words of the question together."""
    # Whole names come first from the store; a few times as many leave room for what only shares a word.
    found = store.symbols_with(query.terms, most * 8)
    best = sorted(found, key=lambda symbol: (-query.weight(symbol), symbol))[:most]
    groups: dict[frozenset[str], list[str]] = {}
    for symbol in best:
        groups.setdefault(query.matches(symbol), []).append(symbol)
    return list(groups.values())


class _Search:
    """The state of one search: the facts found so far, and who is beside whom."""

    def __init__(self, store: Facts, reach: Reach, expired: Expired) -> None:
        self._store, self._reach, self._expired = store, reach, expired
        # A quarter is kept for facts between known symbols: they are what a bridge is made of.
        self._most = reach.facts - reach.facts // 4
        self._fetched: set[str] = set()
        self._busy: set[str] = set()
        self.known: dict[Key, StatedFact] = {}
        self.beside: dict[str, dict[str, float]] = {}
        self.bounded = False
        self.exhausted = False

    def widen(self, groups: Sequence[Sequence[str]]) -> None:
        """Fetch around all groups, one step at a time, always where the frontier is smallest."""
        frontiers: list[list[str]] = [list(group) for group in groups]
        passed: list[set[str]] = [set(group) for group in groups]
        hops = [0] * len(groups)
        while True:
            waiting = [g for g, front in enumerate(frontiers) if front and hops[g] <= self._reach.hops]
            if not waiting or self.exhausted:
                return
            g = min(waiting, key=lambda g: (len(frontiers[g]), hops[g], g))
            self._fetch(frontiers[g])
            frontiers[g] = self._next(frontiers[g], passed[g])
            passed[g].update(frontiers[g])
            hops[g] += 1

    def _next(self, front: Iterable[str], passed: Collection[str]) -> list[str]:
        """Return the symbols beyond a frontier, the surest first."""
        beyond: dict[str, float] = {}
        for symbol in front:
            for other, confidence in self.beside.get(symbol, {}).items():
                if other not in passed:
                    beyond[other] = max(confidence, beyond.get(other, 0.0))
        return sorted(beyond, key=lambda symbol: (-beyond[symbol], symbol))

    def _fetch(self, front: Iterable[str]) -> None:
        """Add the facts of a frontier; one step takes at most half of the room that is left."""
        new = [symbol for symbol in front if symbol not in self._fetched]
        room = (self._most - len(self.known) + 1) // 2
        for start in range(0, len(new), _CHUNK):
            if self._expired():
                self.exhausted = True
                return
            if room <= 0:
                self.bounded = True
                return
            symbols = new[start : start + _CHUNK]
            room -= self._add(self._ranked(symbols, room), room)
            self._fetched.update(symbols)

    def _ranked(self, symbols: Sequence[str], room: int) -> Iterator[StatedFact]:
        """Yield facts of some symbols in turn: first one of each symbol, relation and side, then the second ones."""
        limit = min(self._reach.fan_out, room)
        asked = set(symbols)
        piles: dict[tuple[str, str, bool], list[StatedFact]] = {}
        for fact in self._store.about(symbols, limit):
            for symbol, side in ((fact.subject, True), (fact.object, False)):
                if symbol in asked:
                    piles.setdefault((symbol, fact.relation, side), []).append(fact)
        # A full pile has been cut, perhaps.
        full = {place[0] for place, pile in piles.items() if len(pile) >= limit}
        self.bounded |= bool(full)
        self._busy |= full
        for row in zip_longest(*(piles[place] for place in sorted(piles))):
            yield from (fact for fact in row if fact is not None)

    def _add(self, facts: Iterable[StatedFact], room: int) -> int:
        """Keep facts while there is room, and then those between busy symbols and the ones that are new."""
        before, seen = len(self.known), set(self.beside)
        busy_before = set(self._busy)
        for fact in facts:
            if fact.key not in self.known:
                if len(self.known) - before >= room:
                    self.bounded = True
                    self._busy |= {fact.subject, fact.object} & self.beside.keys()
                    continue
                self._keep(fact)
        added = len(self.known) - before
        self._bridge(busy_before, self.beside.keys() - seen)
        self._bridge(self._busy - busy_before, self.beside.keys())
        return added

    def _bridge(self, busy: Collection[str], others: Collection[str]) -> None:
        if not busy or not others:
            return
        for fact in self._store.between(busy, others):
            if len(self.known) >= self._reach.facts:
                self.bounded = True
                return
            self._keep(fact)

    def _keep(self, fact: StatedFact) -> None:
        self.known[fact.key] = fact
        for here, there in ((fact.subject, fact.object), (fact.object, fact.subject)):
            near = self.beside.setdefault(here, {})
            near[there] = max(fact.confidence, near.get(there, 0.0))


def _distances(beside: Mapping[str, Mapping[str, float]], group: Iterable[str]) -> dict[str, int]:
    """Return how many facts each symbol is away from the nearest of a group."""
    found = dict.fromkeys((symbol for symbol in group if symbol in beside), 0)
    front = list(found)
    while front:
        beyond = []
        for symbol in front:
            for other in beside[symbol]:
                if other not in found:
                    found[other] = found[symbol] + 1
                    beyond.append(other)
        front = beyond
    return found


def _seeds(symbols: Sequence[str], search: _Search, query: QueryTerms, most: int) -> tuple[StatedFact, ...]:
    """Return the facts that hold most of the question; named things take turns, so that a busy one leaves room."""
    piles = []
    for symbol in symbols:
        touching = [fact for fact in search.known.values() if symbol in (fact.subject, fact.object)]
        piles.append(sorted(touching, key=lambda fact: (-query.seed_score(fact), fact.key))[:most])
    chosen: dict[Key, StatedFact] = {}
    for row in zip_longest(*piles):
        for fact in row:
            if fact is not None and len(chosen) < most:
                chosen.setdefault(fact.key, fact)
    return tuple(sorted(chosen.values(), key=lambda fact: (-query.seed_score(fact), fact.key)))
