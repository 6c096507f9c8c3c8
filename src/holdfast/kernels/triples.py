"""Facts as triples over symbols (C8): an index of them, and the search for those around what a question names.

A symbol may have ten thousand facts: the search widens the smallest side first, and a busy symbol gives its first few
facts, and beyond them only those whose other end is known. So what joins two things is found from the quieter end.
"""

from __future__ import annotations

import heapq
import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import cache, cached_property, partial
from itertools import combinations, zip_longest
from typing import Literal, Protocol, TypeVar

from holdfast.values import dataclass

Expired = Callable[[], bool]
TripleKey = tuple[str, str, str]
Side = Literal["subject", "object"]
T = TypeVar("T")
Thing = TypeVar("Thing")

# Symbols per call to the store: enough to save calls, few enough to look at the clock between them.
_CHUNK = 16
# `+` and `#` belong to a name: "C" is not named by "C++".
_NAME = r"(?<![\w+#]){}(?![\w+#])"


@dataclass(frozen=True, slots=True)
class StatedFact:
    """What some sources state: two symbols and a relation, at the confidence of the surest source."""

    subject: str
    relation: str
    object: str
    confidence: float
    sources: tuple[str, ...] = ()

    @property
    def key(self) -> TripleKey:
        """Return the triple: two facts with the same one are one fact."""
        return (self.subject, self.relation, self.object)


class Facts(Protocol):
    """The facts that one call may see. Equal contents give equal answers in equal order (law 11)."""

    def symbols_with(self, tokens: Collection[str], limit: int) -> Sequence[str]:
        """Return at most `limit` symbols that have one of `tokens`.

        First those all of whose tokens are among them, then by how many are, then by symbol.
        """
        ...

    def about(self, symbols: Collection[str], limit: int) -> Sequence[StatedFact]:
        """Return the facts that touch one of `symbols`: of each symbol, relation and side at most `limit`.

        Within each, first those whose other end has further facts (no other can be joined), then the surer ones,
        then by key.
        """
        ...

    def between(self, left: Collection[str], right: Collection[str]) -> Sequence[StatedFact]:
        """Return every fact with one end in `left` and the other in `right`, in either direction, by key."""
        ...


@dataclass(slots=True)
class _Tables:
    """The facts of an index, by everything that they are looked up by."""

    tokens_of: Callable[[str], Iterable[str]]
    stated: dict[TripleKey, dict[str, float]] = field(default_factory=dict)  # fact → source → confidence
    facts: dict[TripleKey, StatedFact] = field(default_factory=dict)
    of_source: dict[str, list[TripleKey]] = field(default_factory=dict)
    at: dict[str, dict[tuple[str, Side], dict[TripleKey, None]]] = field(default_factory=dict)
    pairs: dict[tuple[str, str], dict[TripleKey, None]] = field(default_factory=dict)
    with_token: dict[str, dict[str, None]] = field(default_factory=dict)

    def link(self, key: TripleKey) -> None:
        subject, relation, other = key
        self.pairs.setdefault((subject, other), {})[key] = None
        for symbol, side in _ends(key):
            if symbol not in self.at:
                for token in self.tokens_of(symbol):
                    self.with_token.setdefault(token, {})[symbol] = None
            self.at.setdefault(symbol, {}).setdefault((relation, side), {})[key] = None

    def unlink(self, key: TripleKey) -> None:
        subject, relation, other = key
        _drop(self.pairs, (subject, other), key)
        for symbol, side in _ends(key):
            _drop(self.at[symbol], (relation, side), key)
            if not self.at[symbol]:
                del self.at[symbol]
                for token in set(self.tokens_of(symbol)):
                    _drop(self.with_token, token, symbol)


class VisibleFacts:
    """What one view sees of an index, for as long as one question; it answers as `Facts` does."""

    def __init__(self, tables: _Tables, visible: Callable[[str], bool] | None = None) -> None:
        self._tables = tables
        self._visible = visible
        self._known: dict[TripleKey, StatedFact | None] = {}
        # Whether somebody else's facts touch a symbol; for who answers together with others.
        self.elsewhere: Callable[[str], bool] = lambda _: False

    def symbols_with(self, tokens: Collection[str], limit: int) -> Sequence[str]:
        """See `Facts.symbols_with`."""
        found = {symbol for token in set(tokens) for symbol in self._tables.with_token.get(token, ())}
        return _first_named((one for one in found if self.touched(one)), self._tables.tokens_of, tokens, limit)

    def about(self, symbols: Collection[str], limit: int) -> Sequence[StatedFact]:
        """See `Facts.about`."""
        found: dict[TripleKey, StatedFact] = {}
        for symbol in sorted(set(symbols)):
            for (_, side), keys in sorted(self._tables.at.get(symbol, {}).items()):
                facts = [fact for key in keys if (fact := self._fact(key)) is not None]
                # One that is alone needs no order, and most are.
                first = facts[:limit] if len(facts) <= 1 else heapq.nsmallest(limit, facts, key=self._order(side))
                for fact in first:
                    found.setdefault(fact.key, fact)
        return list(found.values())

    def between(self, left: Collection[str], right: Collection[str]) -> Sequence[StatedFact]:
        """See `Facts.between`."""
        pairs, ends = self._tables.pairs, set(right)
        keys: set[TripleKey] = set()
        for one in set(left):
            # A quiet symbol's own facts are fewer than the pairs it could be in.
            places = self._tables.at.get(one, {})
            if sum(map(len, places.values())) <= len(ends):
                keys.update(
                    key for own in places.values() for key in own if (key[2] if key[0] == one else key[0]) in ends
                )
            else:
                for other in ends:
                    keys.update(pairs.get((one, other), ()))
                    keys.update(pairs.get((other, one), ()))
        return [fact for key in sorted(keys) if (fact := self._fact(key)) is not None]

    def _order(self, side: Side) -> Callable[[StatedFact], tuple[bool, float, TripleKey]]:
        def order(fact: StatedFact) -> tuple[bool, float, TripleKey]:
            far = fact.object if side == "subject" else fact.subject
            return (not (self.touched(far, fact.key) or self.elsewhere(far)), -fact.confidence, fact.key)

        return order

    def touched(self, symbol: str, but: TripleKey | None = None) -> bool:
        """Return whether a visible fact other than `but` touches `symbol`."""
        places = self._tables.at.get(symbol, {}).values()
        return any(key != but and self._fact(key) is not None for keys in places for key in keys)

    def _fact(self, key: TripleKey) -> StatedFact | None:
        if self._visible is None:
            return self._tables.facts[key]
        if key not in self._known:
            stated = self._tables.stated[key]
            seen = {source: confidence for source, confidence in stated.items() if self._visible(source)}
            self._known[key] = _fact(key, seen) if seen else None
        return self._known[key]


class FactIndex(VisibleFacts):
    """Facts in memory, added and removed source by source. A question costs what it touches, not what is kept."""

    def __init__(self, tokens: Callable[[str], Iterable[str]]) -> None:
        super().__init__(_Tables(tokens))

    def add(self, source: str, key: TripleKey, confidence: float) -> None:
        """Let `source` state a fact; said twice by one source, the surer statement counts."""
        tables = self._tables
        if key not in tables.stated:
            tables.link(key)
        stated = tables.stated.setdefault(key, {})
        if source not in stated:
            tables.of_source.setdefault(source, []).append(key)
        stated[source] = max(confidence, stated.get(source, confidence))
        tables.facts[key] = _fact(key, stated)

    def remove(self, source: str) -> None:
        """Forget what `source` stated; a fact that nobody else states is gone."""
        tables = self._tables
        for key in tables.of_source.pop(source, ()):
            stated = tables.stated[key]
            del stated[source]
            if stated:
                tables.facts[key] = _fact(key, stated)
            else:
                del tables.stated[key], tables.facts[key]
                tables.unlink(key)

    def rows(self) -> list[tuple[str, str, str, str, float]]:
        """Return every statement: who states it, the triple, and the confidence; in the order of the triples."""
        stated = sorted(self._tables.stated.items())
        return [(source, *key, sure) for key, by in stated for source, sure in sorted(by.items())]

    def seen_by(self, visible: Callable[[str], bool] | None) -> VisibleFacts:
        """Return the same facts as far as a visible source states them."""
        return VisibleFacts(self._tables, visible)


def _first_named(
    symbols: Iterable[str], tokens_of: Callable[[str], Iterable[str]], tokens: Collection[str], limit: int
) -> list[str]:
    """Return the first of some symbols, in the order of `Facts.symbols_with`."""
    wanted = set(tokens)

    def order(symbol: str) -> tuple[bool, int, str]:
        own = set(tokens_of(symbol))
        return (not own <= wanted, -len(own & wanted), symbol)

    return heapq.nsmallest(limit, symbols, key=order)


def _fact(key: TripleKey, stated: dict[str, float]) -> StatedFact:
    return StatedFact(*key, max(stated.values()), tuple(sorted(stated)))


def _ends(key: TripleKey) -> tuple[tuple[str, Side], tuple[str, Side]]:
    return ((key[0], "subject"), (key[2], "object"))


def _drop(table: dict[T, dict[Thing, None]], place: T, thing: Thing) -> None:
    table[place].pop(thing, None)
    if not table[place]:
        del table[place]


class JoinedFacts:
    """Several collections of facts that answer together; see `Facts`."""

    def __init__(self, parts: Sequence[VisibleFacts], tokens: Callable[[str], Collection[str]]) -> None:
        self._parts = parts
        self._tokens = tokens
        for part in parts:
            others = [other for other in parts if other is not part]
            part.elsewhere = partial(_touched_by, others)

    def symbols_with(self, tokens: Collection[str], limit: int) -> Sequence[str]:
        """See `Facts.symbols_with`."""
        found = {symbol for part in self._parts for symbol in part.symbols_with(tokens, limit)}
        return _first_named(found, self._tokens, tokens, limit)

    def about(self, symbols: Collection[str], limit: int) -> Sequence[StatedFact]:
        """See `Facts.about`."""
        wanted = set(symbols)
        places: dict[tuple[str, str, str], list[StatedFact]] = {}
        for fact in _merged([part.about(symbols, limit) for part in self._parts]):
            for end, side in ((fact.subject, "subject"), (fact.object, "object")):
                if end in wanted:
                    places.setdefault((end, fact.relation, side), []).append(fact)
        found: dict[TripleKey, StatedFact] = {}
        for (_, _, side), facts in sorted(places.items()):
            kept = facts if len(facts) <= limit else sorted(facts, key=partial(self._order, side))[:limit]
            found |= {fact.key: fact for fact in kept}
        return [*found.values()]

    def _order(self, side: str, fact: StatedFact) -> tuple[bool, float, TripleKey]:
        far = fact.object if side == "subject" else fact.subject
        touched = any(part.touched(far, fact.key) for part in self._parts)
        return (not touched, -fact.confidence, fact.key)

    def between(self, left: Collection[str], right: Collection[str]) -> Sequence[StatedFact]:
        """See `Facts.between`."""
        return sorted(_merged([part.between(left, right) for part in self._parts]), key=lambda fact: fact.key)


def _touched_by(parts: Sequence[VisibleFacts], symbol: str) -> bool:
    return any(part.touched(symbol) for part in parts)


def _merged(parts: Sequence[Sequence[StatedFact]]) -> list[StatedFact]:
    """Return the facts of all parts; one that several state has all their sources."""
    found: dict[TripleKey, StatedFact] = {}
    for part in parts:
        for fact in part:
            known = found.get(fact.key)
            if known is None:
                found[fact.key] = fact
            else:
                sources = tuple(sorted({*known.sources, *fact.sources}))
                found[fact.key] = StatedFact(*fact.key, max(known.confidence, fact.confidence), sources)
    return [*found.values()]


# --------------------------------------------------------------------------------- around a question


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

    def focus(self, key: TripleKey) -> int:
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

    facts: Mapping[TripleKey, StatedFact]
    seeds: tuple[StatedFact, ...]
    distances: tuple[Mapping[str, int], ...] = ()
    apart: tuple[tuple[int, int], ...] = ()
    bounded: bool = False
    exhausted: bool = False

    @cached_property
    def seed_keys(self) -> frozenset[TripleKey]:
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

    def detour(self, key: TripleKey, between: Collection[str] = ()) -> float:
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

    def joins(self, key: TripleKey) -> bool:
        """Return whether the fact's ends are two different things that the question names."""
        return any(
            here.get(start) == 0 and there.get(end) == 0
            for here, there, _ in self._ways
            for start, end in ((key[0], key[2]), (key[2], key[0]))
        )


def _leads_on(distances: Mapping[str, int], end: str, others: Iterable[str]) -> bool:
    return end in distances and all(distances[end] <= distances.get(other, math.inf) for other in others)


@dataclass(frozen=True, slots=True)
class SearchLimits:
    """How far to look: `hops` from a seed fact, `fan_out` facts of a symbol, relation and side, `facts` in all."""

    seeds: int = 8
    hops: int = 3
    fan_out: int = 256
    facts: int = 4096


def explore(store: Facts, query: QueryTerms, reach: SearchLimits, expired: Expired) -> Neighbourhood:
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

    def __init__(self, store: Facts, reach: SearchLimits, expired: Expired) -> None:
        self._store, self._reach, self._expired = store, reach, expired
        # A quarter is kept for facts between known symbols: they are what a bridge is made of.
        self._most = reach.facts - reach.facts // 4
        self._fetched: set[str] = set()
        self._busy: set[str] = set()
        self.known: dict[TripleKey, StatedFact] = {}
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
    chosen: dict[TripleKey, StatedFact] = {}
    for row in zip_longest(*piles):
        for fact in row:
            if fact is not None and len(chosen) < most:
                chosen.setdefault(fact.key, fact)
    return tuple(sorted(chosen.values(), key=lambda fact: (-query.seed_score(fact), fact.key)))
