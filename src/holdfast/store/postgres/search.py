"""Searching in SQL: by words, by vectors and by hypervectors; the stored numbers behind those scores; HNSW indexes.

Owners of up to `APPROXIMATE_FROM` units are always searched exactly. Of larger ones, unless the address asks for
exact search, the best postings of each term are looked at, and the vectors that a graph leads to (HNSW). Graphs are
made by whoever loads or maintains a store; a reading uses those that exist.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from psycopg.types.numeric import Int8

from holdfast.kernels import bm25
from holdfast.kernels import hypervectors as hv
from holdfast.kernels.vectors import ROUNDING, TIE_MARGIN, at_least_top, halve, row_cosines, tier
from holdfast.store.contract import CARRYING_MODELS, NO_LIMIT
from holdfast.store.postgres.connections import Bits, Half, KeyArray
from holdfast.store.postgres.index_rows import term_bits
from holdfast.store.postgres.postgres_database import PostgresDatabase
from holdfast.store.postgres.row_cache import (
    KNOWN_COLUMNS,
    AsOfUnits,
    CachedRow,
    EmbeddingSpace,
    RowCache,
    Statistics,
)
from holdfast.store.postgres.view_sql import VisibleRows
from holdfast.store.queries import (
    HYPER_FIELDS,
    MISSING_FIELD,
    DenseQuery,
    HyperQuery,
    LexicalQuery,
    Proposal,
    SimilarityEvidence,
    SimilarityQuery,
)
from holdfast.store.rows import GLOBAL, check_vectors, read_fitting, read_vectors
from holdfast.types import ROLES, Deadline, View

# Below this many units exact search takes a few milliseconds.
APPROXIMATE_FROM = 20_000
# So many postings are looked at, those of the rarest terms first, but some of each term.
_POSTINGS, _OF_RARE, _OF_EACH = 10_000, 8000, 500
# Terms that are looked for: of a question that is a page long, the rarest.
_MOST_TERMS = 16
# Of what those bring up, so many are read whole.
_READ = 400
# SQL compares 16-bit floats: the question, too, is rounded to 11 bits, which turns it by at most 2^-11; twice that
# for the two units compared, and a bit for sums of 32-bit floats.
_HALF_MARGIN = 0.001
# Rows that are asked for beyond `depth`, so that a tie at the end is mostly seen whole at the first try.
_TIES = 16
# What is found is looked up best first, up to so many times what is asked for: a view that shows fewer is narrow.
_WALKED = 8
# Vectors that are read at once to be compared here: some 15 MB.
_COMPARED_TOGETHER = 20_000
# How much of a graph is looked at: candidates held, and rows at most when a filter throws most of them away.
_HELD, _MOST_HELD, _SCANNED = 100, 1000, 10_000
# What a graph of the first dimensions hands on to be compared by all: at least so many, and so many for each one that
# is asked for; more for units like a new one, of which few are asked for. Of the ten hits of an exact search of a
# million units all these numbers together find .982 (200 questions); .979 with 200 handed on, .985 with 1,000 units
# read whole, .989 with 16,000 postings.
_HANDED_ON, _FOR_EACH, _FOR_SIMILAR = 300, 2, 4
# Hypervectors that are compared before the clock is looked at: some 20 ms. No key is as large as the other number.
_HEARD_TOGETHER, _BEYOND = 10_000, 2**63 - 1
_OF_DENSITY = """AND EXISTS (SELECT 1 FROM entries WHERE entries.tenant = %(tenant)s
    AND entries.unit_key = units.key AND entries.anchor_density = %(density)s::real)"""
_Scored = list[tuple[str, float]]
_Found = tuple[Sequence[str], NDArray[np.float64]]  # ids, and their scores
_NOTHING: _Found = ((), np.zeros(0))


class Searcher:
    """Searches what one view may see."""

    def __init__(
        self, database: PostgresDatabase, view: View, visible: VisibleRows, statistics: Statistics, known: RowCache
    ) -> None:
        self._database, self._visible, self._statistics, self._known = database, visible, statistics, known
        self._is_narrow = view.only_session  # one session has few of an owner's units
        self._is_filtered = view.filters is not None or view.as_of is not None
        self._vectors: dict[str, NDArray[np.float32]] = {}  # that came with what was found, by id

    @property
    def _space(self) -> EmbeddingSpace:
        return self._statistics.space

    @cached_property
    def _approximate(self) -> bool:
        return self._database.address.search != "exact" and self._statistics.units_of_all_agents > APPROXIMATE_FROM

    def _run(self, statement: str, values: Mapping[str, Any], seen: VisibleRows | None = None) -> list[Any]:
        visible = seen or self._visible
        statement = statement.replace("{where}", visible.either if seen is None else visible.own)
        rows: list[Any] = self._database.execute(statement, {**visible.values, **values}).fetchall()
        return rows

    def _best(
        self, ask: Callable[[int], _Scored], depth: int, deadline: Deadline, margin: float, past: _Found = _NOTHING
    ) -> Proposal:
        """Return the best of what `ask` finds, best first, when it is asked for so many; and of the past."""
        if depth <= 0 or deadline.expired():
            return Proposal((), exhausted=deadline.expired())
        found: _Scored = []
        with self._database.within(deadline) as is_cancelled:
            most = depth + depth // 4 + _TIES
            found = ask(most)
            while len(found) >= most and found[-1][1] >= found[depth - 1][1] - margin:
                most *= 4
                found = ask(most)
        ids = [*past[0], *(unit_id for unit_id, _ in found)]
        scores = np.concatenate([past[1], np.array([score for _, score in found], dtype=np.float64)])
        best = at_least_top(np.where(np.isnan(scores), 0.0, scores), depth, margin)
        return Proposal(tuple(ids[row] for row in best.tolist()), is_cancelled() or deadline.expired())

    def _walk(
        self, first: str, otherwise: str, asked: Mapping[str, Any], most: int, candidates: int, enough: int
    ) -> _Scored:
        """Look up what is found, best first, so far as is enough for most views; where it is not, ask `otherwise`."""
        walked = _WALKED * most
        if not self._is_narrow:
            found = self._find(first, {**asked, "most": most, "walked": walked})
            if len(found) >= enough or candidates <= walked:
                return found
        return self._find(otherwise, {**asked, "most": most, "walked": None})

    def _find(self, statement: str, values: Mapping[str, Any]) -> _Scored:
        """Return the ids and scores of what a statement finds; whatever else it tells is not asked for again."""
        rows = self._run(statement, values)
        self._known.learn(rows)
        if rows and len(rows[0]) > KNOWN_COLUMNS + 1:
            self._keep_vectors([(row[0], row[1], *row[KNOWN_COLUMNS:-1]) for row in rows])
        return [(row[0], row[-1]) for row in rows]

    def _keep_vectors(self, rows: Sequence[tuple[str, int, bytes, int]]) -> None:
        """Keep vectors that were read, with their ids, keys and checksums."""
        check_vectors([row[1:] for row in rows])
        matrix = read_vectors([data for _, _, data, _ in rows], -1 if rows else 0)
        self._vectors |= {row[0]: vector for row, vector in zip(rows, matrix, strict=True)}

    # ------------------------------------------------------------------------------------------------ words

    def by_words(self, query: LexicalQuery, depth: int, deadline: Deadline, past: AsOfUnits | None) -> Proposal:
        """Propose by BM25, with the exact statistics of the owner."""
        units, dfs = self._statistics.unit_count, self._statistics.df(query.terms)
        terms = {term: bm25.idf(units, df) for term, df in zip(query.terms, dfs, strict=True)}
        averages = [total / max(1, units) for total in self._statistics.field_totals]
        earlier = _NOTHING
        if past is not None:
            places, scores, _ = past.shard.propose(query, terms, averages, past.eligible, depth, deadline)
            earlier = ([past.shard.ids[place] for place in places.tolist()], scores)
        asked: dict[str, Any] = {
            "terms": [*terms],
            "users": [*dict.fromkeys((self._visible.values["user"], GLOBAL))],
            "idfs": [idf * (query.k1 + 1.0) for idf in terms.values()],
            "weights": [*query.weights],
            "boosts": [query.role_boost if role in query.boosted_roles else 1.0 for role in ROLES],
            "base": query.k1 * (1.0 - query.b),
            "slopes": [query.k1 * query.b / average if average > 0.0 else 0.0 for average in averages],
        }
        exactly = self._database.statement("words_exactly")
        first, otherwise = (exactly.replace("{among}", one) for one in ("", self._database.statement("among_seen")))
        nearly: dict[str, Any] = {}
        held = self._statistics.df_of_all_agents(query.terms)
        if self._approximate and sum(held) > _POSTINGS:
            nearly = _allot([*terms], asked["idfs"], held)
            first = self._database.statement("words_nearly").replace("{guess}", _guess(sum(nearly["cut"])))

        def ask(most: int) -> _Scored:
            if not any(dfs):
                return []
            if nearly:  # what is read in part has no end where ties could be seen
                return self._walk(first, otherwise, {**asked, **nearly}, most, NO_LIMIT, depth)
            return self._walk(first, otherwise, asked, most, sum(held), most)

        return self._best(ask, depth, deadline, TIE_MARGIN, earlier)

    # ---------------------------------------------------------------------------------------------- vectors

    def by_vector(self, query: DenseQuery, depth: int, deadline: Deadline, past: AsOfUnits | None) -> Proposal:
        """Propose by cosines of the vectors as they are stored, or of one tier of them."""
        if self._space.name != query.space or not len(query.vector):
            return Proposal(())
        dims = len(query.vector)
        first = min(query.tier or dims, dims)
        also = ""
        asked: dict[str, Any] = {
            "space": self._space.key,
            "terms": [*self._known.terms],
            "dims": dims,
            "query": Half(halve(query.vector[:first]).tobytes()),
        }
        earlier = _NOTHING
        if query.density is not None:
            asked["density"] = query.density
            also = _OF_DENSITY
        if past is not None and past.shard.dense is not None and past.shard.dense.dims == dims:
            eligible = past.eligible
            if query.density is not None:
                eligible &= past.shard.column("anchor_density") == np.float32(query.density)
            places, scores = past.shard.dense.propose(query.vector, eligible, depth, query.tier)
            earlier = ([past.shard.ids[place] for place in places.tolist()], scores)
        cut = "vector" if first == dims else f"subvector(vector, 1, {first})"
        exactly, seen, nearly = (
            self._database.statement(name).replace("{distance}", f"{cut} <=> %(query)s").replace("{also}", also)
            for name in ("nearest_exactly", "nearest_seen", "nearest_nearly")
        )
        by_graph = self._by_graph and not self._is_narrow and query.tier is None and query.density is None
        tier = indexed_tier(query.space, dims)
        led: list[str] = []
        if by_graph:
            asked["first"] = Half(halve(query.vector[: tier or dims]).tobytes())
            nearly = self._indexed(nearly, f"{indexed_vector(dims, tier)} <=> %(first)s")
            # Where a view hides little, what it hides is left out afterwards.
            through = self._database.statement("through_seen")
            led = [nearly.replace("{through}", one) for one in (("", through)[self._is_filtered :])]

        def ask(most: int) -> _Scored:
            width = most if tier is None else max(_HANDED_ON, _FOR_EACH * most)
            for statement in led:
                # A graph holds twice what is asked of it; of what is handed on, that is enough by itself.
                self._set_out(depth if tier is None else width // 2)
                found = self._find(statement, {**asked, "most": most, "width": width, "walked": _WALKED * most})
                if len(found) >= depth:
                    return found
            if led:
                self._database.run("sort_again")
            return self._walk(exactly, seen, asked, most, self._statistics.units_of_all_agents, most)

        # What is of the past is compared by fewer bits.
        return self._best(ask, depth, deadline, max(_HALF_MARGIN, ROUNDING if earlier[0] else 0.0), earlier)

    @property
    def _by_graph(self) -> bool:
        return self._approximate and self._space.is_indexed

    def _indexed(self, statement: str, order: str) -> str:
        """Return a statement with what the index was made with: numbers of ours, which cannot be bound."""
        return statement.replace("{space}", str(self._space.key)).replace("{indexed}", order)

    def _run_graph(
        self, statement: str, values: Mapping[str, Any], depth: int, seen: VisibleRows | None = None
    ) -> list[Any]:
        """Run a statement that goes by the index of vectors, far enough for so many; others are to sort again."""
        self._set_out(depth)
        return self._run(statement, values, seen)

    def _set_out(self, depth: int) -> None:
        """Let the statement that follows go by the index of vectors, far enough for so many."""
        held = min(_MOST_HELD, max(_HELD, 2 * depth))
        self._database.run("walk_graphs", {"held": held, "scanned": _SCANNED})

    def read_vectors(self, units: Iterable[CachedRow], dims: int) -> dict[str, NDArray[np.float32]]:
        """Return the stored vectors of some units' present words, by id; those that have so many numbers."""
        wanted = [*units]
        by_key = {one.key: one for one in wanted if one.id not in self._vectors}
        if by_key and self._space.key is not None:
            asked = {"space": self._space.key, "keys": KeyArray(by_key)}
            rows = self._database.run("vectors_by_key", asked).fetchall()
            present = [row[:3] for row in rows if row[3] == by_key[row[0]].version]
            self._keep_vectors([(by_key[row[0]].id, *row) for row in read_fitting(present, dims or None)[0]])
        return {one.id: self._vectors[one.id] for one in wanted if one.id in self._vectors}

    def by_similarity(
        self, query: SimilarityQuery, present: VisibleRows, itself: Sequence[int | None]
    ) -> SimilarityEvidence:
        """Compare vectors with the user's own present units; none is compared with itself, as its key says."""
        depths = (query.turns, query.durable)
        find = self._similar_by_graph if self._by_graph else self._similar
        near: list[list[list[float]]] = [[[] for _ in query.vectors] for _ in depths]
        rows = find(query, present)
        check_vectors([row[2:] for row in rows])
        if rows:
            dims, numbers = query.vectors.shape[1], np.array([row[0] for row in rows], dtype=np.intp)
            stored = tier(read_vectors([row[3] for row in rows], dims), dims)
            exact = row_cosines(stored, tier(query.vectors, dims)[numbers]).tolist()
            for (number, is_durable, key, *_), cosine in zip(rows, exact, strict=True):
                if key != itself[number]:
                    near[is_durable][number].append(cosine)
        kept = (
            tuple(tuple(sorted(cosines, reverse=True)[:depth]) for cosines in some)
            for some, depth in zip(near, depths, strict=True)
        )
        return SimilarityEvidence(*kept)

    def _similar_by_graph(self, query: SimilarityQuery, present: VisibleRows) -> list[Any]:
        """Return turns and durable units near to each vector: its number, which of both, key, vector, checksum."""
        # One more for the unit itself, and a few: the last ones by 16 bits may not be the last.
        dims = query.vectors.shape[1]
        first = indexed_tier(query.space, dims)
        each = 1 if first is None else _FOR_SIMILAR
        wanted = {"turns": each * (query.turns + 1 + _TIES), "durable": each * (query.durable + 1 + _TIES)}
        statement = self._indexed(self._database.statement("similar_nearly"), indexed_vector(dims, first))
        given = [str(row) for row in halve(query.vectors[:, : first or dims]).tolist()]
        found = self._run_graph(statement, {**wanted, "vectors": given}, max(wanted.values()), present)
        self._database.run("sort_again")
        return found

    def _similar(self, query: SimilarityQuery, present: VisibleRows) -> list[Any]:
        """Return the same of all that there is, which is compared here: SQL would go through it for each vector."""
        statement = self._database.statement("compared_units")
        units = {row[0]: row[1:] for row in self._run(statement, {}, present)}
        keys, given = sorted(units), tier(query.vectors, query.vectors.shape[1]).astype(np.float32)
        depths, found = (query.turns + 1, query.durable + 1), list[Any]()
        for start in range(0, len(keys), _COMPARED_TOGETHER):
            asked = {"space": self._space.key, "keys": KeyArray(keys[start : start + _COMPARED_TOGETHER])}
            rows = [
                row
                for row in self._database.run("vectors_by_key", asked)
                if row[3] == units[row[0]][0] and len(row[1]) == 2 * given.shape[1]
            ]
            stored = read_vectors([row[1] for row in rows], given.shape[1])
            cosines = stored @ given.T
            for is_durable, depth in enumerate(depths):
                mine = np.array([units[row[0]][1 + is_durable] for row in rows], dtype=np.bool_).nonzero()[0]
                for number in range(len(given)):
                    best = mine[at_least_top(cosines[mine, number], depth)]
                    found += [(number, is_durable, *rows[row][:3]) for row in best.tolist()]
        return found

    # ----------------------------------------------------------------------------------------- hypervectors

    def by_hypervectors(self, query: HyperQuery, depth: int, deadline: Deadline) -> Proposal:
        """Propose what rises above the noise by its words; role and acts only count there."""
        if query.text is None or deadline.expired():
            return Proposal((), deadline.expired())
        floor = hv.noise_floor(self._statistics.unit_count)
        heard = np.flatnonzero(hv.shifted(hv.similarity(np.arange(hv.BITS + 1))) >= floor)
        asked = {"text": Bits.of(query.text), "farthest": int(heard.max(initial=-1))}
        rows: list[Any] = []
        with self._database.within(deadline) as is_cancelled:
            for owner in dict.fromkeys((self._visible.values["user"], GLOBAL)):
                rows += self._hear({**asked, "owner": owner}, deadline)
        distances = np.full((len(rows), len(HYPER_FIELDS)), MISSING_FIELD, dtype=np.int64)
        _fill(query, distances, [(row, *found[1:]) for row, found in enumerate(rows)])
        near = np.where(distances == MISSING_FIELD, 0.0, hv.shifted(hv.similarity(distances)))
        scores = near @ np.array(query.weights)
        best = np.flatnonzero(scores > 0.0)
        best = best[at_least_top(scores[best], depth)]
        is_late = is_cancelled() or (self._approximate and deadline.expired())
        return Proposal(tuple(rows[row][0] for row in best.tolist()), is_late)

    def _hear(self, asked: Mapping[str, Any], deadline: Deadline) -> list[Any]:
        """Return what is near of one owner's units, the newest of a large owner as far as there is time."""
        together = _HEARD_TOGETHER if self._approximate else None
        found, before, looked = list[Any](), _BEYOND, together
        while looked == together:
            given = {**asked, "before": before, "together": together}
            (_, before, looked, *_), *rows = self._run(self._database.statement("heard_units"), given)
            found += rows
            if deadline.expired():
                break
        return found

    def fill_distances(self, query: HyperQuery, rows: Mapping[int, int], distances: NDArray[np.int64]) -> None:
        """Write the distances of units, by key, into their rows."""
        text = Bits.of(query.text)
        found = self._database.run("hyper_distances", {"text": text, "keys": [*rows]}).fetchall() if rows else []
        _fill(query, distances, [(rows[key], *rest) for key, *rest in found])


def _allot(terms: Sequence[str], idfs: Sequence[float], dfs: Sequence[int]) -> dict[str, Any]:
    """Return how `words_nearly` is asked: the rarest terms, how many postings of each, and what the others set."""
    rarest = sorted((df, place) for place, df in enumerate(dfs) if df)[:_MOST_TERMS]
    limits, left = list[int](), _POSTINGS
    for df, _ in rarest:
        limits.append(min(_OF_RARE, max(_OF_EACH, left)))
        left -= min(df, limits[-1])
    places = [place for _, place in rarest]
    asked: dict[str, Any] = {
        "rarest": [terms[place] for place in places],
        "rare_idfs": [idfs[place] for place in places],
        "limits": limits,
        "cut": [df > most for (df, _), most in zip(rarest, limits, strict=True)],
        "roles": [*ROLES],
        "read": _READ,
    }
    for number, place in enumerate(place for place, cut in zip(places, asked["cut"], strict=True) if cut):
        low, high = term_bits([terms[place]])
        # Of one type, however large: a statement is prepared for the types that it is given.
        asked |= {f"low_{number}": Int8(low), f"high_{number}": Int8(high), f"idf_{number}": idfs[place]}
    return asked


def _guess(cut: int) -> str:
    """Return what the terms weigh that a unit seems to hold, of those whose postings are not all read, so many."""
    held = "((min(low) & %(low_{0})s::bigint) | (min(high) & %(high_{0})s::bigint) <> 0)"
    parts = (f"CASE WHEN {held} THEN %(idf_{{0}})s::float8 ELSE 0 END".format(number) for number in range(cut))
    return " + ".join(parts) or "0"


def _fill(query: HyperQuery, distances: NDArray[np.int64], found: Sequence[tuple[Any, ...]]) -> None:
    """Write distances by row: of topic and claim as SQL has them, of role and acts by what those are."""
    roles, near = {role for *_, role, _ in found}, {tuple(acts) for *_, acts in found}
    of_role, of_acts = {}, {}
    if query.role is not None:
        of_role = {role: int(hv.hamming(hv.random(role)[None, :], query.role)[0]) for role in roles}
    if query.act is not None:
        bags = {acts: hv.bag(acts) for acts in near}
        of_acts = {acts: int(hv.hamming(bag[None, :], query.act)[0]) for acts, bag in bags.items() if bag is not None}
    for row, topic, claim, role, acts in found:
        distances[row] = (
            MISSING_FIELD if topic is None else topic,
            MISSING_FIELD if claim is None else claim,
            of_role.get(role, MISSING_FIELD),
            of_acts.get(tuple(acts), MISSING_FIELD),
        )


# Of how many neighbours a graph is made, and how carefully: pgvector's usual numbers.
_NEIGHBOURS, _CARE = 16, 64
# Of 150,000 vectors of 384 dimensions, the 384 that a graph of so many leads to hold .99 of the ten nearest and .81
# of the 64 nearest; a graph of 64 dimensions .94 and .65, one of all of them, in the same time, .96 and .70.
_INDEXED = 128
# pgvector's HNSW takes a halfvec of at most so many dimensions.
MOST_DIMS = 4000


def indexed_tier(space: str, dims: int) -> int | None:
    """Return how many of its first dimensions a space is indexed by; None for all of them.

    Those of a model that was trained so carry most (C10): a graph of them is half as large, and made in half the
    time. What it leads to is compared by all.
    """
    return _INDEXED if space.startswith(CARRYING_MODELS) and dims > _INDEXED else None


def index_name(space: int) -> str:
    """Return what the index over the vectors of a space is called."""
    return f"vectors_space_{space}"


def indexed_vector(dims: int, tier: int | None = None) -> str:
    """Return the expression that is indexed: it must stand in a statement as it stands in the index."""
    if tier is None:
        return f"vector::halfvec({dims})"
    return f"subvector(vector, 1, {tier})::halfvec({tier})"


def vector_index_statements(space: int, dims: int, space_name: str = "") -> list[str]:
    """Return the statements that make the index of one space; each may run again."""
    if dims > MOST_DIMS:
        return []
    what = indexed_vector(dims, indexed_tier(space_name, dims))
    how = f"WITH (m = {_NEIGHBOURS}, ef_construction = {_CARE}) WHERE space = {space}"
    where = f"{index_name(space)} ON vectors USING hnsw"
    return [f"CREATE INDEX IF NOT EXISTS {where} (({what}) halfvec_cosine_ops) {how}"]
