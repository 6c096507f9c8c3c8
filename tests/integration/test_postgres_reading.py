"""Two stores that were told the same answer the same, method by method; the one in SQLite is the oracle."""

import functools
import operator
import random
from dataclasses import fields, is_dataclass
from datetime import timedelta
from typing import get_args

import numpy as np
import pytest

from holdfast import HoldfastError
from holdfast.kernels import bm25
from holdfast.kernels import hypervectors as hv
from holdfast.kernels.vectors import cosines
from holdfast.openers import derivation
from holdfast.settings import Settings
from holdfast.store import contract, queries
from holdfast.store.contract import CARRYING_MODELS
from holdfast.store.filters import parse_filter
from holdfast.store.postgres.postgres_database import PostgresDatabase
from holdfast.store.sqlite.sqlite_store import SqliteStore
from holdfast.testing.builders import NOON, SPACE, draft, no_deadline, sounds, view, words
from holdfast.types import ACTS, FACTS, INSTRUCTIONS, ROLES, Deadline, Unit
from postgres_server import open_store

pytest.importorskip("psycopg", reason="psycopg is not installed, so the store on PostgreSQL is not tested")

import psycopg

DIMS, UNITS = 80, 90
PEOPLE, TOWNS, THINGS = (
    ("Mara", "Tomas", "Ines"),
    ("Porto", "Lisbon", "Kestrel Quay"),
    ("boat", "ferry", "lamp", "mill"),
)
SAID = (
    "I live in {town}", "{who} works at {town}", "my {thing} is called {who}", "the {thing} depends on the {other}",
    "always answer in English, please", "To mend the {thing}, first dry the {other}, then call {who}.", "ok",
    "{who} is the sister of {thing} and {town} causes {other}", "Die Brücke über den Fluß {n} 🚢 {town}",
)  # fmt: skip
METADATA = (
    {}, {"mood": "good"}, {"mood": "ü"}, {"n": 2}, {"n": 2.5}, {"n": True}, {"n": "2"}, {"n": None}, {"n": 1e300},
    {"deep": {"list": ["x", 1, None], "0": "zero"}}, {"deep": {"list": "x"}}, {"list": [1, "a", True]},
)  # fmt: skip
FILTERS = (
    {"mood": "good"}, {"mood": {"gt": "g"}}, {"mood": {"gt": "g\0"}}, {"mood": {"lt": "good\0"}}, {"mood": "a\0"},
    {"n": {"gte": 2}}, {"n": {"in": [2.5, "2", None, True]}}, {"n": {"ne": 2}}, {"mood": {"in": []}}, {"n": True},
    {"deep.list": {"contains": "x"}}, {"deep.0": "zero"}, {"deep.list.0": "x"}, {"list": {"contains": True}},
    {"text": {"contains": "boat"}}, {"role": {"ne": "Narrative"}}, {"agent": None}, {"session": {"in": ["s0"]}},
    {"pinned": True}, {"authority": {"gt": 0}}, {"version": {"gt": 1}}, {"valid_to": None},
    {"expires_at": {"ne": None}},
    {"or": [{"mood": "ü"}, {"not": {"n": {"lt": 2}}}]}, {"position": "x"}, {"id": {"gt": "u5"}}, {"scope": "user"},
)  # fmt: skip


class Telling:
    """Draws what is told and asked."""

    def __init__(self, seed):
        self.chance, self.vectors = random.Random(seed), np.random.default_rng(seed)

    def maybe(self, share, **given):
        return given if self.chance.random() < share else {}

    def text(self):
        pick = self.chance.choice
        return pick(SAID).format(
            who=pick(PEOPLE), town=pick(TOWNS), thing=pick(THINGS), other=pick(THINGS), n=self.chance.randint(0, 9)
        )

    def draft(self, now):
        minutes, pick = self.chance.randint(0, 600), self.chance.choice
        soon = NOON + timedelta(minutes=self.chance.randint(-100, 900))
        given = (
            self.maybe(0.4, session=f"s{self.chance.randrange(2)}") | self.maybe(0.3, agent=pick(("cook", "clerk")))
            | self.maybe(0.3, author="assistant") | self.maybe(0.4, speaker=pick(PEOPLE))
            | self.maybe(0.3, role=pick(ROLES)) | self.maybe(0.2, utility_acts=(pick(ACTS),))
            | self.maybe(0.1, expires_at=soon) | self.maybe(0.1, pinned=True) | self.maybe(0.1, valid_from=soon)
            | self.maybe(0.1, valid_to=soon) | self.maybe(0.3, topic=self.text()) | self.maybe(0.1, authority=0.5)
        )  # fmt: skip
        user, name = pick(("ana", "ben", None)), f"u{self.chance.randrange(UNITS // 2)}"
        return draft(
            name, self.text(), minutes=minutes, user=user, recorded_time=now, metadata=pick(METADATA), **given
        )

    def view(self, end):
        then, pick = end - timedelta(minutes=self.chance.randint(0, 120)), self.chance.choice
        return view(
            pick(("ana", "ben", "nobody", "")), now=end, reference_time=pick((end, then)),
            **self.maybe(0.3, agent=pick(("cook", "clerk"))), **self.maybe(0.2, session="s0", only_session=True),
            **self.maybe(0.3, current_only=False), **self.maybe(0.4, as_of=then),
            **self.maybe(0.5, filters=parse_filter(pick(FILTERS))),
        )  # fmt: skip

    def row(self):
        return self.vectors.normal(size=DIMS).astype(np.float32)


def tell(telling, stores):
    """Write the same into all stores; what one refuses, the others do."""
    for step in range(UNITS):
        now = NOON + timedelta(minutes=step * 2)
        chance = telling.chance.random()
        if chance < 0.8:
            drafts = [telling.draft(now) for _ in range(telling.chance.randint(1, 3))]
            if len({(one.unit.user, one.unit.id) for one in drafts}) == len(drafts):
                do(stores, lambda store: store.put(drafts))  # noqa: B023 - called at once
        elif chance < 0.9:
            pair = [f"u{telling.chance.randrange(UNITS // 2)}" for _ in range(2)]
            mark = contract.Supersession(view(telling.chance.choice(("ana", "ben"))), *pair, now)
            do(stores, lambda store: store.apply([mark]))  # noqa: B023
        else:
            waiting = stores[0].pending(SPACE, 20)
            rows = np.array([telling.row() for _ in waiting]).reshape(-1, DIMS)
            do(stores, lambda store: store.put_vectors(SPACE, waiting, rows))  # noqa: B023


def do(stores, act):
    """Do the same in all stores; what one refuses, all refuse."""
    outcomes = []
    for store in stores:
        try:
            act(store)
            outcomes.append(None)
        except HoldfastError as error:
            outcomes.append(type(error))
    assert len({*outcomes}) == 1, outcomes


def plain(value):
    """Return an answer as something that can be compared to the bit."""
    if isinstance(value, np.ndarray):
        return [repr(one) for one in value.tolist()]
    if isinstance(value, dict):
        return {name: plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if is_dataclass(value) and not isinstance(value, Unit):
        return {one.name: plain(getattr(value, one.name)) for one in fields(value)}
    return value


def best(reading, query, depth):
    """Return what is really best of what is proposed, and how good it is."""
    evidence = reading.evidence(query, reading.propose(query, depth, no_deadline()).ids)
    if isinstance(query, queries.LexicalQuery):
        boosts = np.where([role in query.boosted_roles for role in evidence.roles], query.role_boost, 1.0)
        scores = bm25.scores(
            evidence.tf, evidence.lengths, evidence.idfs, evidence.averages, np.array(query.weights), boosts,
            query.k1, query.b,
        )  # fmt: skip
    else:
        scores = cosines(evidence.vectors, query.vector, query.tier or DIMS) if evidence.ids else np.zeros(0)
    return sorted((-score, name) for score, name in zip(scores.tolist(), evidence.ids, strict=True) if score > 0)[
        :depth
    ]


def questions(telling):
    unit = draft("x", telling.text())
    terms = tuple(dict.fromkeys(term for field in unit.analyse(unit.unit).terms for term in field))
    roles = frozenset(telling.chance.sample(ROLES, telling.chance.choice((0, 2))))
    words = queries.LexicalQuery(terms, (1.5, 1.0, 1.0, 0.8, 0.6, 0.6, 0.5), 1.2, 0.75, roles, 1.3)
    tier, density = telling.chance.choice((None, 64)), telling.chance.choice((None, None, 0.0))
    near = queries.DenseQuery(SPACE, telling.row(), tier, density)
    heard = queries.HyperQuery(hv.bag(sorted(roles)), hv.ngrams(terms, positional=False), hv.random(ACTS[0]))
    return words, near, heard


def see(reading, asked, names, rows, depth):
    """Return all that a reading has to say."""
    words, near, heard = asked
    facts, tokens = reading.facts(), ("boat", "porto", "mara", "lamp", "lisbon")
    symbols = facts.symbols_with(tokens, 50)
    similar = queries.SimilarityQuery(SPACE, rows, 5, 3)
    listed = (
        queries.StatementQuery(FACTS | INSTRUCTIONS), queries.DocumentQuery("A"),
        queries.TimeQuery(NOON, NOON + timedelta(minutes=200)),
    )  # fmt: skip
    return {
        "scan": [[*reading.scan(order=order, limit=limit)] for order in ("newest", "oldest") for limit in (None, 5)],
        "units": reading.units(names),
        "history": [reading.history(name) for name in names[:5]],
        "columns": dict(reading.columns(names, get_args(contract.ColumnName))),
        "evidence": [reading.evidence(one, names) for one in asked],
        "similar": reading.evidence(similar, names[:2]) if reading.view.as_of is None else None,
        "best": [best(reading, one, depth) for one in (words, near)],
        "heard": sorted(reading.propose(heard, depth, no_deadline()).ids),
        "listed": [reading.propose(one, depth, no_deadline()).ids for one in listed],
        "named": [reading.find_names(["mara", "porto", "boat"], most, mentioned=True) for most in (2, 90)],
        "names": [reading.names(kind) for kind in ("speaker", "user", "session", "agent")],
        "symbols": [facts.symbols_with(tokens, limit) for limit in (2, 50)],
        "about": [facts.about(symbols, limit) for limit in (1, 2, 50)],
        "between": facts.between(symbols[:3], symbols[2:]),
    }


@pytest.fixture(params=[8, 0], ids=["as most views are", "as narrow views are"])
def _walked(request, monkeypatch):
    monkeypatch.setattr("holdfast.store.postgres.search._WALKED", request.param)


@pytest.mark.usefixtures("_walked")
@pytest.mark.parametrize("seed", range(2))
def test_every_answer_is_the_same(database, seed):
    telling, settings = Telling(seed), Settings()
    lite = SqliteStore.open(":memory:", settings.store, derivation(settings))
    server = open_store(f"{database}?search=exact")
    tell(telling, (lite, server))
    end = NOON + timedelta(minutes=2 * UNITS)
    for _ in range(12):
        asked, seen = questions(telling), telling.view(end)
        names = (*(f"u{telling.chance.randrange(UNITS // 2)}" for _ in range(20)), "nobody")
        rows, depth = np.array([telling.row() for _ in range(2)]), telling.chance.choice((1, 3, 64))
        with lite.reading(seen) as left, server.reading(seen) as right:
            answers = [plain(see(reading, asked, names, rows, depth)) for reading in (left, right)]
        for part in answers[0]:
            assert answers[0][part] == answers[1][part], (part, seen)
    lite.close()
    server.close()


def test_a_reading_inside_a_reading_may_be_of_another_tenant(database):
    store, tenants = open_store(database), [f"tenant {number}" for number in range(3)]
    for tenant in tenants:
        store.put([draft("u", f"the boat of {tenant} lies in Porto", tenant=tenant)])
    with store.reading(view("ana", tenant=tenants[1])) as outer:
        for tenant in tenants:
            with store.reading(view("ana", tenant=tenant)) as inner:
                assert [unit.tenant for unit in inner.scan(order="oldest", limit=9)] == [tenant]
            assert [unit.tenant for unit in outer.scan(order="oldest", limit=9)] == [tenants[1]]
    store.close()


def test_large_owners_are_found_by_their_best_postings_and_by_a_graph(database, monkeypatch):
    from holdfast.store.postgres.search import vector_index_statements  # noqa: PLC0415

    exact, nearly = open_store(f"{database}?search=exact"), open_store(database)
    telling = Telling(7)
    tell(telling, (exact,))
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("SET search_path = holdfast, public")
        [space] = connection.execute("SELECT key FROM spaces WHERE name = %s", (SPACE,)).fetchone()
        for statement in vector_index_statements(space, DIMS):
            connection.execute(statement)
    monkeypatch.setattr("holdfast.store.postgres.search.APPROXIMATE_FROM", 0)
    read_few_postings(monkeypatch, 40)
    similar = queries.SimilarityQuery(SPACE, np.array([telling.row()]), 3, 2)
    for fields_ in (
        {},
        {"agent": "cook"},
        {"session": "s0", "only_session": True},
        {"filters": parse_filter({"n": 2})},
    ):
        seen = view("ana", current_only=False, **fields_)
        words, near, _ = questions(telling)
        near = queries.DenseQuery(SPACE, near.vector)
        with exact.reading(seen) as left, nearly.reading(seen) as right:
            assert [best(right, one, 5) for one in (words, near)] == [best(left, one, 5) for one in (words, near)]
            assert right.evidence(similar, ["nobody"]) == left.evidence(similar, ["nobody"])
    exact.close()
    nearly.close()


@pytest.mark.parametrize("space", ["made-up/192", f"{CARRYING_MODELS[0]}/192/made-up"])
def test_a_graph_is_walked_on_until_enough_is_seen(database, space, monkeypatch):
    """A view that shows one in fifty finds as many as it asks for, by an index of all dimensions or of the first."""
    store, exact = open_store(database), open_store(f"{database}?search=exact")
    told = [draft(f"u{n}", f"lamp {n}", metadata={"n": n % 50}) for n in range(1500)]
    store.put(told)
    rows = np.random.default_rng(7).normal(size=(1500, 192)).astype(np.float32) / np.arange(1, 193)
    store.put_vectors(space, [one.unit for one in told], rows)
    assert store.build_indexes(least=1000)
    monkeypatch.setattr("holdfast.store.postgres.search.APPROXIMATE_FROM", 1000)

    plans, execute = [], PostgresDatabase.execute

    def explain(self, statement, values={}):  # noqa: B006 - as it is there
        if "halfvec(" in statement:
            plans.append(str(execute(self, f"EXPLAIN {statement}", values).fetchall()))
        return execute(self, statement, values)

    monkeypatch.setattr(PostgresDatabase, "execute", explain)
    for number, shown in enumerate(({}, {"filters": parse_filter({"n": 7})}), start=1):
        found = []
        for one in (store, exact):
            with one.reading(view("ana", **shown)) as reading:
                found.append({*reading.propose(queries.DenseQuery(space, rows[7]), 15, no_deadline()).ids})
        assert len(found[0]) >= 15
        assert len(found[0] & found[1]) >= 0.9 * len(found[1])
        assert len(plans) == number  # once by the graph, and no more
        assert "Index Scan using vectors_space_" in plans[-1]
    store.close()
    exact.close()


def test_neighbours_are_the_same_however_a_reading_has_come_to_ask_for_them(database):
    store, sides = open_store(database), ("before", "after")
    store.put([draft(name, f"lamp {name}", session="s", minutes=i) for i, name in enumerate("abcdef")])
    store.put([draft("new", "c, put differently", session="t", supersedes=("c",))])

    def beside(reading, names):
        known = reading.columns(names, sides)
        return [tuple(known[side][row] for side in sides) for row in range(len(names))]

    for seen in (view("ana"), view("ana", as_of=NOON + timedelta(days=9))):
        alone = {}
        for name in "abcdef":
            with store.reading(seen) as reading:
                [alone[name]] = beside(reading, [name])
        # c is hidden, and beside nobody
        assert (alone["b"], alone["c"], alone["d"]) == (("a", "d"), ("b", "d"), ("b", "e"))
        with store.reading(seen) as reading:
            proposed = reading.propose(words("lamp"), 9, no_deadline()).ids
            for some in (("c",), ("b",), proposed, tuple("fca"), tuple("abcdef")):
                assert beside(reading, some) == [alone[name] for name in some]
    store.close()


def read_few_postings(monkeypatch, total, of_each=5):
    """Let owners of any size be searched by so many postings, those of rare terms first."""
    monkeypatch.setattr("holdfast.store.postgres.search.APPROXIMATE_FROM", 0)
    for name, number in (("_POSTINGS", total), ("_OF_RARE", total), ("_OF_EACH", of_each)):
        monkeypatch.setattr(f"holdfast.store.postgres.search.{name}", number)


@pytest.mark.parametrize("frequent", [("boat",), ("boat", "roof"), ("boat", "roof", "door", "chair")])
def test_what_a_rare_word_leads_to_is_found_by_frequent_ones_too(database, monkeypatch, frequent):
    # `both` is longer than others with its words, so that its postings come last; few units are read whole.
    store = open_store(database)
    store.put([draft(f"f{n}", " ".join(frequent)) for n in range(60)])
    store.put([draft(f"z{n}", "zebra lamp") for n in range(20)])
    both = draft("both", f"zebra lamp {' '.join(frequent)}")
    store.put([both, *(draft(f"l{n}", "lamp table window mountain") for n in range(200))])
    read_few_postings(monkeypatch, 25)
    monkeypatch.setattr("holdfast.store.postgres.search._READ", 3)
    with store.reading(view("ana")) as reading:
        assert best(reading, words("zebra", *frequent), 1)[0][1] == "both"
    store.close()


def test_an_agent_of_few_units_finds_them_behind_many_of_another_agent(database):
    store = open_store(database)
    others = [draft(f"b{n}", "red lamp", agent="clerk") for n in range(300)]
    mine = [draft(f"a{n}", "the lamp in the cellar was red, and it broke", agent="cook") for n in range(5)]
    store.put([*others, *mine])
    rows = np.tile(np.eye(1, DIMS, dtype=np.float32), (305, 1))
    rows[300:, 1] = 0.5  # farther away than the others
    store.put_vectors(SPACE, [one.unit for one in (*others, *mine)], rows)
    assert store.build_indexes(least=306) == []
    assert store.build_indexes(least=305)  # an owner is as large as all of its agents together
    with store.reading(view("ana", agent="cook")) as reading:
        for query in (words("red", "lamp"), queries.DenseQuery(SPACE, rows[0])):
            assert {*reading.propose(query, 10, no_deadline()).ids} == {one.unit.id for one in mine}
    store.close()


@pytest.mark.parametrize("fields_", [{"session": "s", "only_session": True}, {"filters": parse_filter({"n": 1})}])
def test_a_narrow_view_is_searched_by_all_terms_where_postings_are_not_all_read(database, monkeypatch, fields_):
    store = open_store(database)
    store.put([draft(f"o{n}", "project plan") for n in range(100)])
    told = [
        draft(f"s{n}", "project zebra" if n == 40 else "project", session="s", metadata={"n": 1}) for n in range(60)
    ]
    store.put(told)
    read_few_postings(monkeypatch, 20)
    monkeypatch.setattr("holdfast.store.postgres.search._READ", 5)
    with store.reading(view("ana", **fields_)) as reading:
        assert "s40" in reading.propose(words("project", "zebra"), 1, no_deadline()).ids
        assert best(reading, words("project", "zebra"), 1)[0][1] == "s40"
        assert "s40" in reading.propose(words("absent", "project", "zebra"), 1, no_deadline()).ids
    store.close()


def test_a_term_that_stands_in_two_fields_counts_in_both_where_postings_are_not_all_read(database, monkeypatch):
    store = open_store(database)
    store.put([draft(f"b{n}", "boat in the harbour", topic="Lake") for n in range(30)])
    titled = draft("titled", "The boat lies in the harbour", topic="Boat")
    store.put([titled, *(draft(f"l{n}", "lamp", topic="Lamp") for n in range(60))])
    read_few_postings(monkeypatch, 10, of_each=10)
    with store.reading(view("ana")) as reading:
        proposed = reading.propose(words("boat", "harbour"), 1, no_deadline()).ids
        assert "titled" in proposed
        assert len(proposed) < 10
    store.close()


def test_a_question_as_long_as_a_page_is_searched_by_its_rarest_terms(database, monkeypatch):
    store, many = open_store(database), [f"word{n}" for n in range(40)]
    store.put([draft(f"p{n}", " ".join(many)) for n in range(12)])
    store.put([draft("rare", f"zebra {' '.join(many)}")])
    read_few_postings(monkeypatch, 20)
    with store.reading(view("ana")) as reading:
        assert best(reading, words("zebra", *many), 1)[0][1] == "rare"
    store.close()


def test_terms_set_bits_that_a_signed_number_of_64_holds():
    from holdfast.store.postgres.index_rows import term_bits  # noqa: PLC0415 - an extra

    terms = [f"term{n}" for n in range(1000)]
    assert term_bits([]) == (0, 0)
    assert term_bits(terms) == (-1, -1)  # all of them
    single = [term_bits([term]) for term in terms]
    assert len({*single}) == 128
    assert all((low == 0) != (high == 0) and (low or high).bit_count() == 1 for low, high in single)
    assert all(-(2**63) <= number < 2**63 for pair in single for number in pair)
    assert term_bits(terms[:9]) == tuple(
        functools.reduce(operator.or_, half) for half in zip(*single[:9], strict=True)
    )


def test_hypervectors_of_a_large_owner_are_compared_newest_first_as_long_as_there_is_time(database, monkeypatch):
    store = open_store(database)
    told = [draft(f"u{n}", "the red boat lies in Porto", user=None if n % 3 == 0 else "ana") for n in range(20)]
    store.put(told)
    monkeypatch.setattr("holdfast.store.postgres.search.APPROXIMATE_FROM", 0)
    monkeypatch.setattr("holdfast.store.postgres.search._HEARD_TOGETHER", 4)
    query, looks = sounds("red", "boat", "lies", "porto"), []

    def clock():
        looks.append(None)
        return 0.0 if len(looks) < 4 else 99.0

    with store.reading(view("ana")) as reading:
        found = reading.propose(query, 64, no_deadline())
        assert ({*found.ids}, found.exhausted) == ({one.unit.id for one in told}, False)
        found = reading.propose(query, 64, Deadline.start(clock, 1.0))
        assert found.exhausted
        own = [name for name in found.ids if int(name[1:]) % 3]
        assert 0 < len(own) < 13
        assert {*own} == {
            *sorted((one.unit.id for one in told if one.unit.user), key=lambda name: -int(name[1:]))[: len(own)]
        }
    store.close()
