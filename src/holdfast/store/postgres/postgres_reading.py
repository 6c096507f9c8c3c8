"""One consistent state of a PostgreSQL store, as one view may see it: a snapshot transaction, and statements in it.

The database proposes and this process scores: what is proposed is ordered by SQL, whose floats differ from those of
the kernels in their last digits, so that whatever lies within a margin of the last one is proposed too.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, singledispatchmethod
from operator import attrgetter
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import DamagedStoreError, quote_value
from holdfast.kernels.triples import Facts, JoinedFacts, StatedFact, TripleKey, VisibleFacts
from holdfast.store.contract import ColumnName, Columns, Derivation, ListedKind
from holdfast.store.postgres.connections import KeyArray
from holdfast.store.postgres.postgres_database import PostgresDatabase
from holdfast.store.postgres.row_cache import (
    NOBODY,
    AsOfUnits,
    CachedRow,
    EmbeddingSpace,
    MissingRow,
    RowCache,
    Statistics,
    load_as_of,
)
from holdfast.store.postgres.search import Searcher
from holdfast.store.postgres.view_sql import VisibleRows, compile_view
from holdfast.store.queries import (
    HYPER_FIELDS,
    MISSING_FIELD,
    DenseEvidence,
    DenseQuery,
    DocumentQuery,
    HyperEvidence,
    HyperQuery,
    KindQuery,
    LexicalEvidence,
    LexicalQuery,
    Order,
    Proposal,
    SimilarityEvidence,
    SimilarityQuery,
    StatementQuery,
    TimeQuery,
)
from holdfast.store.rows import CALLED, GLOBAL, NAMING, TITLE_CHARS, UnitRow, copy_json, listed, unit_of
from holdfast.store.updates import read_stored_all
from holdfast.store.visibility import hidden_reason, state_as_of
from holdfast.types import Condition, Deadline, Document, Junction, NameCount, StoredUnit, Unit, View, iso

_CALLED, _MENTIONED = "c", "m"  # of the table `names`
_BESIDE = 3  # columns of `units_beside` before those of the turn that it found


class PostgresReading:
    """See `Reading`. The store holds a snapshot transaction of the view's tenant as long as this is used."""

    def __init__(self, view: View, database: PostgresDatabase, derivation: Derivation) -> None:
        self.view = view
        self._database = database
        self._run = database.run
        self._derivation = derivation
        self._owner: dict[str, Any] = {"user": view.user, "agent": view.agent}
        self._known = RowCache(view, database)
        self._statistics = Statistics(view, database)
        self._units: dict[str, Unit] = {}
        # The turns before and after a turn, as far as they were asked for; and units that are known to be visible.
        self._beside: tuple[dict[str, str | None], dict[str, str | None]] = ({}, {})
        self._visible_ids: set[str] = set()

    @cached_property
    def _visible(self) -> VisibleRows:
        return compile_view(self.view)

    @property
    def _space(self) -> EmbeddingSpace:
        return self._statistics.space

    @cached_property
    def _past(self) -> AsOfUnits | None:
        if self.view.as_of is None:
            return None
        return load_as_of(self.view, self._database, self._derivation, self._space.key)

    @cached_property
    def _searcher(self) -> Searcher:
        return Searcher(self._database, self.view, self._visible, self._statistics, self._known)

    # ------------------------------------------------------------------------------------------- proposing

    @singledispatchmethod
    def propose(self, query: Any, depth: int, deadline: Deadline) -> Proposal:  # noqa: ANN401 - one of `StoreQuery`
        """See `Reading.propose`."""
        raise TypeError(query, depth, deadline)

    @propose.register
    def _(self, query: LexicalQuery, depth: int, deadline: Deadline) -> Proposal:
        self._known.expect(query.terms)
        return self._note(self._searcher.by_words(query, depth, deadline, self._past))

    @propose.register
    def _(self, query: DenseQuery, depth: int, deadline: Deadline) -> Proposal:
        return self._note(self._searcher.by_vector(query, depth, deadline, self._past))

    def _note(self, proposal: Proposal) -> Proposal:
        """Remember that what is proposed is visible: as it is, or as it was."""
        if self._past is None:
            self._visible_ids.update(proposal.ids)
        return proposal

    @propose.register
    def _(self, query: HyperQuery, depth: int, deadline: Deadline) -> Proposal:
        return self._searcher.by_hypervectors(query, depth, deadline)

    @propose.register
    def _(self, query: TimeQuery, depth: int, deadline: Deadline) -> Proposal:
        start = Condition("field", ("event_time",), "gte", iso(query.start))
        end = Condition("field", ("event_time",), "lt", iso(query.end))
        parts = (start, end) if self.view.filters is None else (self.view.filters, start, end)
        then = replace(self.view, filters=Junction("and", parts))
        return Proposal(tuple(unit.id for unit in self._scan(then, query.order, depth)), deadline.expired())

    @propose.register
    def _(self, query: DocumentQuery, depth: int, deadline: Deadline) -> Proposal:
        rows = self._run("parts_of_document", {"user": self.view.user, "name": query.name}).fetchall()
        owner = self.view.user if any(user == self.view.user for user, _, _ in rows) else GLOBAL
        parts = [unit_id for user, unit_id, lasting in rows if user == owner and (query.ended or lasting)]
        return Proposal(tuple(parts[:depth]), deadline.expired())

    @propose.register
    def _(self, query: StatementQuery, depth: int, deadline: Deadline) -> Proposal:
        asked = {**self._visible.values, "stating": query.stating, "most": depth}
        found = self._run("stating_units", asked, visible=self._visible.either).fetchall()
        if self._past is not None:
            places = np.flatnonzero(self._past.shard.column("stating") & np.uint8(query.stating) > 0)
            units = [self._past.units[self._past.shard.ids[place]] for place in places.tolist()]
            found += [(iso(unit.event_time), unit.position, unit.id) for unit in units]
            found = sorted(map(tuple, found), reverse=True)
        return Proposal(tuple(unit_id for *_, unit_id in found[:depth]), deadline.expired())

    @propose.register
    def _(self, query: KindQuery, depth: int, deadline: Deadline) -> Proposal:
        asked = {**self._visible.values, "kinds": [*query.kinds], "most": depth + 1}
        ids = [unit_id for (unit_id,) in self._run("units_of_kinds", asked, visible=self._visible.either)]
        if self._past is not None:
            ids += [unit.id for unit in self._past.units.values() if unit.kind in query.kinds]
        return Proposal(tuple(ids) if len(ids) <= depth else (), deadline.expired())

    # -------------------------------------------------------------------------------------------- evidence

    def _find_known(self, ids: Sequence[str]) -> dict[str, CachedRow]:
        """Return those of `ids` that are somewhere, each once: as they were, when the view looks back."""
        present = self._known.find(ids)
        if self._past is not None:
            present = {**present, **self._past.known}
        return {unit_id: known for unit_id in ids if (known := present[unit_id]) is not None}

    @singledispatchmethod
    def evidence(self, query: Any, ids: Sequence[str]) -> Any:  # noqa: ANN401 - see the overloads of `Reading`
        """See `Reading.evidence`."""
        raise TypeError(query, ids)

    @evidence.register
    def _(self, query: LexicalQuery, ids: Sequence[str]) -> LexicalEvidence:
        asked = tuple(dict.fromkeys(ids))
        tf, known = self._known.count(asked, query.terms), self._find_known(asked)
        if self._past is not None:
            shard = self._past.shard
            rows = [row for row, unit_id in enumerate(asked) if unit_id in self._past.known]
            places = np.array([shard.place_of_id[asked[row]] for row in rows], dtype=np.intp)
            tf[rows] = shard.counts(query.terms, places)
        if len(known) < len(asked):
            tf = tf[[row for row, unit_id in enumerate(asked) if unit_id in known]]
        lengths = np.array([one.lengths for one in known.values()], dtype=np.int64).reshape(len(known), tf.shape[1])
        return LexicalEvidence(
            ids=tuple(known),
            roles=tuple(one.role for one in known.values()),  # type: ignore[misc]
            tf=tf,
            lengths=lengths,
            unit_count=self._statistics.unit_count,
            df=self._statistics.df(query.terms),
            field_totals=self._statistics.field_totals,
        )

    @evidence.register
    def _(self, query: DenseQuery, ids: Sequence[str]) -> DenseEvidence:
        nothing = DenseEvidence((), np.zeros((0, 0), dtype=np.float32))
        if self._space.name != query.space or not ids:
            return nothing
        past, known = {} if self._past is None else self._past.vectors, self._find_known(ids)
        if self._past is not None:
            known = {unit_id: one for unit_id, one in known.items() if unit_id not in self._past.known}
        found = {**self._searcher.read_vectors(known.values(), len(query.vector)), **past}
        dims = len(query.vector) or max(map(len, found.values()), default=0)
        held = [unit_id for unit_id in dict.fromkeys(ids) if unit_id in found and len(found[unit_id]) == dims]
        return DenseEvidence(tuple(held), np.stack([found[one] for one in held])) if held else nothing

    @evidence.register
    def _(self, query: HyperQuery, ids: Sequence[str]) -> HyperEvidence:
        known = self._find_known(ids)
        distances = np.full((len(known), len(HYPER_FIELDS)), MISSING_FIELD, dtype=np.int64)
        present = {} if self._past is None else self._past.known  # hypervectors are of present words
        rows = {one.key: row for row, one in enumerate(known.values()) if one.id not in present}
        self._searcher.fill_distances(query, rows, distances)
        return HyperEvidence(tuple(known), distances, self._statistics.unit_count)

    @evidence.register
    def _(self, query: SimilarityQuery, ids: Sequence[str]) -> SimilarityEvidence:
        if self._space.name != query.space:
            nothing = tuple(() for _ in ids)
            return SimilarityEvidence(nothing, nothing)
        # Filters and the past are for questions: what is new is compared with all that is there now.
        present, own = compile_view(replace(self.view, filters=None, as_of=None)), self._find_own(ids)
        return self._searcher.by_similarity(query, present, [own.get(unit_id) for unit_id in ids])

    def _find_own(self, ids: Sequence[str]) -> dict[str, int]:
        return {
            one.id: one.key
            for one in self._known.find(ids).values()
            if one is not None and one.user == self.view.user
        }

    # -------------------------------------------------------------------------------------------- columns

    def columns(self, ids: Sequence[str], names: Sequence[ColumnName]) -> Columns:
        """See `Reading.columns`."""
        found: dict[str, NDArray[Any]] = {}
        if not {*names} <= _READ_APART:
            known = self._find_known(ids)
            rows = [known.get(unit_id, NOBODY) for unit_id in ids]
            found |= {name: _column(rows, name) for name in names if name not in _READ_APART}
        for name in names:
            if name in _READ_APART and name not in found:
                found |= _READ_BY[name](self, ids)
        return {name: found[name] for name in names}

    def neighbour_columns(self, ids: Sequence[str]) -> Columns:
        """Return the visible turns around each turn, of the present."""
        present = self._known.find(ids)
        turns = {one.id: one.key for unit_id in ids if (one := present[unit_id]) and one.is_turn_of_session}
        if asked := [unit_id for unit_id in turns if any(unit_id not in side for side in self._beside)]:
            self._read_beside({unit_id: turns[unit_id] for unit_id in asked})
        before, after = self._beside
        return {"before": _objects(map(before.get, ids)), "after": _objects(map(after.get, ids))}

    def _read_beside(self, turns: Mapping[str, int]) -> None:
        """Read the visible turns around some turns; one that is visible stands on the other side of those."""
        # Where a view hides much, one more turn may be far away.
        is_near = self.view.filters is None and not self.view.hide_covered
        given = {
            **self._visible.values, "keys": KeyArray(turns.values()), "terms": [*self._known.terms],
            "turns": 1 + is_near,
        }  # fmt: skip
        rows = self._run("units_beside", given, visible=self._visible.either).fetchall()
        for known in self._beside:
            known.update(dict.fromkeys(turns))
        for unit_id, side, beyond, beside, *_ in rows:
            self._beside[side][unit_id] = beside
            if is_near:
                self._beside[side].setdefault(beside, beyond)
            if unit_id in self._visible_ids:
                self._beside[1 - side][beside] = unit_id
            self._visible_ids.add(beside)
        self._known.learn(row[_BESIDE:] for row in rows)

    def document_column(self, ids: Sequence[str]) -> Columns:
        """Return the document that each unit is part of."""
        name_of = dict(self._run("documents_by_id", {**self._owner, "ids": [*ids]}).fetchall())
        return {"document": np.array([name_of.get(unit_id) for unit_id in ids], dtype=object)}

    def access_columns(self, ids: Sequence[str]) -> Columns:
        """Count the user's own units only: what others read of everyone's is not one user's to see."""
        known = self._find_known(ids)
        keys = [known.get(unit_id, NOBODY).key for unit_id in ids]
        counts = dict(self._run("access_by_key", {"user": self.view.user, "keys": keys}).fetchall())
        return {
            "access_count": np.array([counts.get(key, 0) for key in keys], dtype=np.int64),
            "most_accessed": np.full(len(ids), counts[None] or 0, dtype=np.int64),
        }

    def hidden_column(self, ids: Sequence[str]) -> Columns:
        """Return why the view hides each unit."""
        rows = self._rows(ids)
        then: dict[int, Any] = {}
        if self.view.as_of is not None and rows:
            asked = {"as_of": iso(self.view.as_of), "keys": [row[0] for row in rows.values()]}
            then = {key: lifetimes for key, *lifetimes in self._run("lifetimes_by_key", asked)}
        why = [self._why_hidden(rows.get(unit_id), then) for unit_id in ids]
        return {"hidden": np.array(why, dtype=object)}

    def _why_hidden(self, row: UnitRow | None, then: Mapping[int, Any]) -> str | None:
        if row is None:
            return "not found"
        unit = unit_of(row)
        if self.view.as_of is None:
            return hidden_reason(self.view, unit, row[3], row[5])
        if self._past is not None and unit.id in self._past.units:
            return None
        return hidden_reason(self.view, unit, *state_as_of(then[row[0]]))

    # ---------------------------------------------------------------------------------------------- units

    def _rows(self, ids: Sequence[str]) -> dict[str, UnitRow]:
        """Return the owner's units of some ids, else the global ones, that the named agent may see."""
        asked = [unit_id for unit_id in dict.fromkeys(ids) if "\0" not in unit_id]  # no id holds NUL
        return {row[10]: row for row in self._run("units_by_id", {**self._owner, "ids": asked})} if asked else {}

    def units(self, ids: Sequence[str]) -> dict[str, Unit]:
        """See `Reading.units`."""
        past = {} if self._past is None else self._past.units
        missing = [unit_id for unit_id in dict.fromkeys(ids) if unit_id not in self._units and unit_id not in past]
        self._units |= {unit_id: unit_of(row) for unit_id, row in self._rows(missing).items()} if missing else {}
        found = ((unit_id, past.get(unit_id) or self._units.get(unit_id)) for unit_id in ids)
        return {unit_id: copy_json(unit) for unit_id, unit in found if unit is not None}

    def scan(self, *, order: Order, limit: int | None) -> Iterator[Unit]:
        """See `Reading.scan`."""
        return self._scan(self.view, order, limit)

    def _scan(self, view: View, order: Order, limit: int | None) -> Iterator[Unit]:
        visible = compile_view(view, searching=False)
        statement = self._database.statement(f"scan_owner_{order}")
        statement = statement.replace("{own}", visible.own).replace("{everyones}", visible.everyones)
        rows = self._database.execute(statement, {**visible.values, "most": limit}).fetchall()
        past = None
        if view.as_of is not None:
            past = self._past if view is self.view else load_as_of(view, self._database, self._derivation, None)
        if past is None:
            return map(unit_of, rows)
        found = sorted((*map(unit_of, rows), *past.units.values()), key=lambda unit: unit.moment)
        return iter((found[::-1] if order == "newest" else found)[:limit])

    def history(self, unit_id: str) -> list[Unit]:
        """See `Reading.history`."""
        row = self._rows([unit_id]).get(unit_id)
        if row is None:
            return []
        return [unit_of(old) for old in self._run("versions_of_unit", {"key": row[0]})] + [unit_of(row)]

    # ------------------------------------------------------------------------------- names, facts, documents

    def find_names(self, keys: Sequence[str], most: int, *, mentioned: bool) -> dict[str, tuple[str, ...]]:
        """See `Reading.find_names`. Filters do not make a name rarer."""
        found: dict[str, set[str]] = {}
        kinds = [_CALLED, _MENTIONED] if mentioned else [_CALLED]
        asked = {**self._visible.values, "names": [*keys], "kinds": kinds, "most": most}
        rows = self._run("named_units", asked, visible=self._visible.either).fetchall() if keys else []
        for name, unit_id in rows:
            if unit_id is not None:  # else the name is common
                found.setdefault(name, set()).add(unit_id)
        if self._past is not None:
            common = {name for name, unit_id in rows if unit_id is None}
            self._add_past_names(found, {*keys} - common, mentioned=mentioned)
        return {name: tuple(sorted(found[name])) for name in sorted(found)}

    def _add_past_names(self, found: dict[str, set[str]], rare: set[str], *, mentioned: bool) -> None:
        """Add earlier versions that rare names lead to; they do not make them less rare."""
        assert self._past is not None  # noqa: S101 - who calls this has looked
        shard = self._past.shard
        for key in rare:
            for kind in (CALLED, NAMING) if mentioned else (CALLED,):
                found.setdefault(key, set()).update(shard.ids[place] for place in shard.named(kind, key).tolist())
            if not found[key]:
                del found[key]

    def facts(self) -> Facts:
        """See `Reading.facts`."""
        return find_facts(self._database, self._visible, self._derivation.tokens, self._past)

    @overload
    def names(self, kind: Literal["speaker"]) -> tuple[str, ...]: ...
    @overload
    def names(self, kind: ListedKind, limit: int | None = None) -> tuple[NameCount, ...]: ...
    def names(
        self, kind: Literal["speaker"] | ListedKind, limit: int | None = None
    ) -> tuple[str, ...] | tuple[NameCount, ...]:
        """See `Reading.names`."""
        if kind == "speaker":
            past = () if self._past is None else self._past.shard.speakers
            return tuple(sorted({*self._statistics.speakers, *(name for name in past if name)}))
        asked = {"user": self.view.user, "most": limit, "words": TITLE_CHARS}
        return tuple(map(listed, self._run(f"list_owned_{kind}s", asked)))

    def mark(self) -> str:
        """See `Reading.mark`. There is no feed of changes: it is a checksum of what rows say."""
        state = self._run("owner_mark", {"user": self.view.user}).fetchone() or ()
        return " ".join(map(str, (self._space.key, *state)))

    def stored(self, *, whole: bool = False) -> Iterator[Document | StoredUnit]:
        """See `Reading.stored`."""
        return read_stored_all(self._run, self.view, whole=whole)

    def documents(self, *, core: bool = False, name: str | None = None, bodies: bool = True) -> list[Document]:
        """See `Reading.documents`."""
        asked = {"user": self.view.user, "least_core": int(core), "name": name, "bodies": bodies}
        here, found = self._database.address.shown, []
        for user, called, path, is_core, body, checksum, given_to in self._run("documents_of_owner", asked):
            if bodies and zlib.crc32(body) != checksum:
                raise DamagedStoreError(f"the document {quote_value(called)} fails its checksum; ingest it again")
            found.append(
                Document(self.view.tenant, user or None, called, body, path, bool(is_core), given_to == here)
            )
        return found


_Read = Callable[[PostgresReading, Sequence[str]], Columns]
# Columns that take a statement of their own.
_READ_BY: dict[str, _Read] = {
    **dict.fromkeys(("before", "after"), PostgresReading.neighbour_columns),
    **dict.fromkeys(("access_count", "most_accessed"), PostgresReading.access_columns),
    "document": PostgresReading.document_column,
    "hidden": PostgresReading.hidden_column,
}
_READ_APART = frozenset(_READ_BY)
_NUMBERS: dict[str, type] = {
    "event_time": np.int64, "starts": np.int64, "ends": np.int64, "length": np.int64, "said": np.int64,
    "stating": np.int64,
    "anchor_density": np.float64, "decay_rate": np.float64,
}  # fmt: skip


def _objects(values: Iterable[object]) -> NDArray[Any]:
    return np.array([*values], dtype=object)


def _column(rows: Sequence[CachedRow | MissingRow], name: str) -> NDArray[Any]:
    """Return one thing that is known of some units; None as a number is NaN."""
    return np.array([*map(attrgetter(name), rows)], dtype=_NUMBERS.get(name, object))


def find_facts(
    database: PostgresDatabase, visible: VisibleRows, tokens: Callable[[str], Collection[str]], past: AsOfUnits | None
) -> Facts:
    """Return what the visible units state, those of the past among them."""
    users = [*dict.fromkeys((visible.values["user"], GLOBAL))]
    tables = _FactTables(database, visible, users, [] if past is None else sorted(past.symbols))
    parts: list[VisibleFacts] = [] if past is None else [past.shard.facts_among(past.eligible)]
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
        self.touched: dict[tuple[str, str, TripleKey | None], bool] = {}

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

    def touches(self, user: str, symbol: str, but: TripleKey | None) -> bool:
        """Return whether a fact of an owner, other than `but`, touches a symbol."""
        place = (user, symbol, but)
        if place not in self.touched:
            key = dict(zip(("subject", "relation", "object"), but or (None, None, None), strict=True))
            [self.touched[place]] = self._run("symbol_touched", {"owner": user, "symbol": symbol, **key}).fetchone()
        return self.touched[place]


class _OwnerFacts(VisibleFacts):
    """The facts of one owner; it answers as `VisibleFacts` does."""

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
        found: dict[TripleKey, StatedFact] = {}
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

    def touched(self, symbol: str, but: TripleKey | None = None) -> bool:
        """See `VisibleFacts.touched`."""
        return self._facts.touches(self._user, symbol, but)


def _stated(key: Sequence[str], confidence: float, sources: Sequence[str]) -> StatedFact:
    subject, relation, other = key
    return StatedFact(subject, relation, other, confidence, tuple(sources))
