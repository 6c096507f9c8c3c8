"""What units state, asked of the tables `facts` and `symbols` as a question goes on; see `kernels.facts.Facts`.

The user's own facts and everyone's are two collections that answer together (`JoinedFacts`), as in every store. A
statement answers for both, and `JoinedFacts` asks both for the same, so that the second one finds it read.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

from holdfast.kernels.triples import Facts, JoinedFacts, Key, SeenFacts, StatedFact
from holdfast.store.postgres.past import PastUnits
from holdfast.store.postgres.postgres_database import PostgresDatabase
from holdfast.store.postgres.view_sql import VisibleRows
from holdfast.store.rows import GLOBAL


def find_facts(
    database: PostgresDatabase, visible: VisibleRows, tokens: Callable[[str], Collection[str]], past: PastUnits | None
) -> Facts:
    """Return what the visible units state, those of the past among them."""
    users = [*dict.fromkeys((visible.values["user"], GLOBAL))]
    tables = _FactTables(database, visible, users, [] if past is None else sorted(past.symbols))
    parts: list[SeenFacts] = [] if past is None else [past.shard.facts_among(past.eligible)]
    return JoinedFacts([*parts, *(_OwnerFacts(tables, user) for user in users)], tokens)


class _FactTables:
    """The facts of several owners that a view may see."""

    def __init__(
        self, database: PostgresDatabase, visible: VisibleRows, users: list[str], earlier: list[str]
    ) -> None:
        self._database, self._visible, self.users = database, visible, users
        self._earlier = earlier  # symbols that facts of the past touch
        self._last: tuple[object, dict[str, list[Any]]] = (None, {})
        # Whether a symbol has a fact of an owner, other than one: what is known by now.
        self.touched: dict[tuple[str, str, Key | None], bool] = {}

    def _run(self, name: str, values: dict[str, Any]) -> Any:  # noqa: ANN401 - a cursor
        given = {**self._visible.values, "users": self.users, "earlier": self._earlier, **values}
        return self._database.run(name, given, visible=self._visible.either)

    def ask(self, user: str, name: str, **values: Any) -> list[Any]:  # noqa: ANN401 - what the statement takes
        """Return the rows of one owner."""
        asked = (name, *values.values())
        if self._last[0] != asked:
            found: dict[str, list[Any]] = {}
            for owner, *row in self._run(name, values):
                found.setdefault(owner, []).append(row)
            self._last = (asked, found)
        return self._last[1].get(user, [])

    def touches(self, user: str, symbol: str, but: Key | None) -> bool:
        """Return whether a fact of an owner, other than `but`, touches a symbol."""
        place = (user, symbol, but)
        if place not in self.touched:
            key = dict(zip(("subject", "relation", "object"), but or (None, None, None), strict=True))
            [self.touched[place]] = self._run("symbol_touched", {"owner": user, "symbol": symbol, **key}).fetchone()
        return self.touched[place]


class _OwnerFacts(SeenFacts):
    """The facts of one owner; it answers as `SeenFacts` does."""

    def __init__(self, tables: _FactTables, user: str) -> None:
        self._facts, self._user = tables, user
        self.elsewhere: Callable[[str], bool] = lambda _: False  # the statement looks there

    def symbols_with(self, tokens: Collection[str], limit: int) -> Sequence[str]:
        """See `Facts.symbols_with`."""
        rows = self._facts.ask(self._user, "symbols_with", tokens=sorted({*tokens}), most=limit)
        return [symbol for (symbol,) in rows]

    def about(self, symbols: Collection[str], limit: int) -> Sequence[StatedFact]:
        """See `Facts.about`."""
        rows = self._facts.ask(self._user, "facts_about", symbols=sorted({*symbols}), most=limit)
        found: dict[Key, StatedFact] = {}
        for far, *key, confidence, sources, further, elsewhere in rows:
            fact = _stated(key, confidence, sources)
            found.setdefault(fact.key, fact)
            self._facts.touched[self._user, far, fact.key] = further
            if not elsewhere:
                for user in self._facts.users:
                    if user != self._user:
                        self._facts.touched[user, far, fact.key] = False
        return [*found.values()]

    def between(self, left: Collection[str], right: Collection[str]) -> Sequence[StatedFact]:
        """See `Facts.between`."""
        rows = self._facts.ask(self._user, "facts_between", left=sorted({*left}), right=sorted({*right}))
        return [_stated(key, confidence, sources) for *key, confidence, sources in rows]

    def touched(self, symbol: str, but: Key | None = None) -> bool:
        """See `SeenFacts.touched`."""
        return self._facts.touches(self._user, symbol, but)


def _stated(key: Sequence[str], confidence: float, sources: Sequence[str]) -> StatedFact:
    subject, relation, other = key
    return StatedFact(subject, relation, other, confidence, tuple(sources))
