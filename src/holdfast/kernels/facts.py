"""Facts as triples over symbols (C8), and the few questions that a closure asks of whoever keeps them."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Literal, Protocol, TypeVar

Key = tuple[str, str, str]
Side = Literal["subject", "object"]
Place = TypeVar("Place")
Thing = TypeVar("Thing")


@dataclass(frozen=True, slots=True)
class StatedFact:
    """What some sources state: two symbols and a relation, at the confidence of the surest source."""

    subject: str
    relation: str
    object: str
    confidence: float
    sources: tuple[str, ...] = ()

    @property
    def key(self) -> Key:
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
    stated: dict[Key, dict[str, float]] = field(default_factory=dict)  # fact → source → confidence
    facts: dict[Key, StatedFact] = field(default_factory=dict)
    of_source: dict[str, list[Key]] = field(default_factory=dict)
    at: dict[str, dict[tuple[str, Side], dict[Key, None]]] = field(default_factory=dict)
    pairs: dict[tuple[str, str], dict[Key, None]] = field(default_factory=dict)
    with_token: dict[str, dict[str, None]] = field(default_factory=dict)

    def link(self, key: Key) -> None:
        subject, relation, other = key
        self.pairs.setdefault((subject, other), {})[key] = None
        for symbol, side in _ends(key):
            if symbol not in self.at:
                for token in self.tokens_of(symbol):
                    self.with_token.setdefault(token, {})[symbol] = None
            self.at.setdefault(symbol, {}).setdefault((relation, side), {})[key] = None

    def unlink(self, key: Key) -> None:
        subject, relation, other = key
        _drop(self.pairs, (subject, other), key)
        for symbol, side in _ends(key):
            _drop(self.at[symbol], (relation, side), key)
            if not self.at[symbol]:
                del self.at[symbol]
                for token in set(self.tokens_of(symbol)):
                    _drop(self.with_token, token, symbol)


class SeenFacts:
    """What one view sees of an index, for as long as one question; it answers as `Facts` does."""

    def __init__(self, tables: _Tables, visible: Callable[[str], bool] | None = None) -> None:
        self._tables = tables
        self._visible = visible
        self._known: dict[Key, StatedFact | None] = {}
        # Whether somebody else's facts touch a symbol; for who answers together with others.
        self.elsewhere: Callable[[str], bool] = lambda _: False

    def symbols_with(self, tokens: Collection[str], limit: int) -> Sequence[str]:
        """See `Facts.symbols_with`."""
        wanted = set(tokens)
        found = {symbol for token in wanted for symbol in self._tables.with_token.get(token, ())}

        def order(symbol: str) -> tuple[bool, int, str]:
            own = set(self._tables.tokens_of(symbol))
            return (not own <= wanted, -len(own & wanted), symbol)

        return heapq.nsmallest(limit, (symbol for symbol in found if self.touched(symbol)), key=order)

    def about(self, symbols: Collection[str], limit: int) -> Sequence[StatedFact]:
        """See `Facts.about`."""
        found: dict[Key, StatedFact] = {}
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
        keys: set[Key] = set()
        for one in set(left):
            # A quiet symbol's own facts are fewer than the pairs it could be in.
            places = self._tables.at.get(one, {})
            if sum(map(len, places.values())) <= len(ends):
                keys.update(key for own in places.values() for key in own if _far(key, one) in ends)
            else:
                for other in ends:
                    keys.update(pairs.get((one, other), ()))
                    keys.update(pairs.get((other, one), ()))
        return [fact for key in sorted(keys) if (fact := self._fact(key)) is not None]

    def _order(self, side: Side) -> Callable[[StatedFact], tuple[bool, float, Key]]:
        def order(fact: StatedFact) -> tuple[bool, float, Key]:
            far = fact.object if side == "subject" else fact.subject
            return (not (self.touched(far, fact.key) or self.elsewhere(far)), -fact.confidence, fact.key)

        return order

    def touched(self, symbol: str, but: Key | None = None) -> bool:
        """Return whether a visible fact other than `but` touches `symbol`."""
        places = self._tables.at.get(symbol, {}).values()
        if sum(map(len, places)) <= (but is not None):
            return False
        return any(key != but and self._fact(key) is not None for keys in places for key in keys)

    def _fact(self, key: Key) -> StatedFact | None:
        if self._visible is None:
            return self._tables.facts[key]
        if key not in self._known:
            stated = self._tables.stated[key]
            seen = {source: confidence for source, confidence in stated.items() if self._visible(source)}
            self._known[key] = _fact(key, seen) if seen else None
        return self._known[key]


class FactIndex(SeenFacts):
    """Facts in memory, added and removed source by source. A question costs what it touches, not what is kept."""

    def __init__(self, tokens: Callable[[str], Iterable[str]]) -> None:
        super().__init__(_Tables(tokens))

    def add(self, source: str, key: Key, confidence: float) -> None:
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

    def seen_by(self, visible: Callable[[str], bool] | None) -> SeenFacts:
        """Return the same facts as far as a visible source states them."""
        return SeenFacts(self._tables, visible)


def _fact(key: Key, stated: dict[str, float]) -> StatedFact:
    return StatedFact(*key, max(stated.values()), tuple(sorted(stated)))


def _far(key: Key, symbol: str) -> str:
    return key[2] if key[0] == symbol else key[0]


def _ends(key: Key) -> tuple[tuple[str, Side], tuple[str, Side]]:
    return ((key[0], "subject"), (key[2], "object"))


def _drop(table: dict[Place, dict[Thing, None]], place: Place, thing: Thing) -> None:
    table[place].pop(thing, None)
    if not table[place]:
        del table[place]


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
