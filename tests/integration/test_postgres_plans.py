"""A tenant's statements touch the leaves of its own shard and of no other, shown from their plans."""

import contextlib
import re

import pytest

from builders import NOW
from histories import small_memory
from holdfast.testing.embedders import HashEmbedder
from operations import Clock, History, do
from postgres_server import name_of

pytest.importorskip("psycopg", reason="psycopg is not installed, so the store on PostgreSQL is not tested")

from holdfast.store.postgres import schema

SHARDS, CALLS = 3, 60
EXPLAINED = ("SELECT", "WITH", "INSERT", "UPDATE", "DELETE", "(")
LEAF = re.compile(r"(\w+)_(\d+)")


@pytest.fixture
def sharded(postgres, database):
    """Return the address of a store with three shards in one database: where leaves lie is not what is tested."""
    with postgres.connect(name_of(database)) as connection:
        connection.execute(f"SET search_path = {schema.SCHEMA}, public")
        for shard in range(1, SHARDS):
            schema.add_leaf(connection, shard)
            for table in schema.partitioned():
                connection.execute(f"ALTER TABLE {table} ATTACH PARTITION {table}_{shard} FOR VALUES IN ({shard})")
            connection.execute("INSERT INTO shards (shard) VALUES (%s)", (shard,))
    return database


class Explainer:
    """Asks for the plan of every statement that a store runs for a tenant, once for each text."""

    def __init__(self, database):
        self._database, self._execute = database, database.execute
        self.wrong, self.seen = [], set()

    def __call__(self, statement, values=None):
        opened = self._database._open
        key = (statement, opened.shard)
        if key not in self.seen and statement.strip().startswith(EXPLAINED):
            self.seen.add(key)
            for leaf, shard in self._leaves(statement, values or {}):
                if int(shard) != opened.shard:
                    self.wrong.append((leaf, shard, opened.shard, statement))
        return self._execute(statement, values or {})

    def _leaves(self, statement, values):
        opened = self._database._open
        if opened.inserts:
            self._database.flush()
        given = {**values, "shard": opened.shard, "tenant": opened.tenant}
        given = {name: value for name, value in given.items() if not isinstance(value, bytes)} | {
            name: None for name, value in given.items() if isinstance(value, bytes)
        }
        [(plan,)] = opened.connection.execute(f"EXPLAIN (FORMAT json) {statement}", given).fetchall()
        found = [LEAF.fullmatch(name) for name in relations(plan)]
        return [one.groups() for one in found if one and one[1] in schema.partitioned()]


def relations(plan):
    """Yield the names of the tables in a plan; what they are called in it says nothing."""
    if isinstance(plan, list):
        for part in plan:
            yield from relations(part)
    elif isinstance(plan, dict):
        if "Relation Name" in plan:
            yield plan["Relation Name"]
        for part in plan.values():
            yield from relations(part)


@contextlib.contextmanager
def explained(memory):
    database = memory.store._database
    explainer = Explainer(database)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(database, "execute", explainer)
        yield explainer


def test_a_tenants_statements_touch_its_own_shard_alone(sharded, postgres):
    clock = Clock()
    clock.now = NOW
    with small_memory(sharded, now=clock, embedder=HashEmbedder(64)) as memory:
        for number in range(2 * SHARDS):
            memory.remember(f"a boat {number}", user="ana", tenant=f"t{number}")
        used = postgres.run("SELECT count(DISTINCT shard) FROM holdfast.tenants", name_of(sharded))
        assert used == [(SHARDS,)]
        history = History("plans", clock)
        with explained(memory) as explainer:
            for _ in range(CALLS):
                do(memory, *history.draw(memory))
        assert explainer.wrong == []
        assert len(explainer.seen) > 60  # else hardly anything was looked at
        assert memory.store.verify() == []


def test_a_statement_that_touches_all_shards_would_be_seen(sharded):
    with small_memory(sharded, embedder=HashEmbedder(64)) as memory:
        memory.remember("a boat", user="ana")
        with explained(memory) as explainer, memory.store._database.snapshot("local"):
            memory.store._database.execute("SELECT count(*) FROM units WHERE tenant = %(tenant)s")
        assert {shard for _, shard, _, _ in explainer.wrong} != set()
