"""A store on more than one server: where a question goes, tenants that move, servers that are away, and replicas."""

import contextlib
import dataclasses
import json
import re
import sys
import threading

import pytest

from builders import opened
from holdfast.errors import InputError, NotFoundError, ReadOnlyStoreError, ServerError, StoreError
from holdfast.interfaces import cli
from holdfast.settings import Settings
from holdfast.testing.builders import Asker, draft, view
from holdfast.testing.embedders import HashEmbedder
from postgres_server import Cluster, Replica, name_of, open_store

pytest.importorskip("psycopg", reason="psycopg is not installed, so the store on PostgreSQL is not tested")
import psycopg

from holdfast.store.postgres import cluster as servers
from holdfast.store.postgres import schema
from holdfast.store.postgres.database import PostgresDatabase
from holdfast.store.postgres.pool import Connections
from holdfast.store.postgres.schema import APP_ROLE, partitioned
from holdfast.store.postgres.values import Half

FRONT = 0
NOTHING = {}
TENANTS = {f"tenant {number}": number for number in range(4)}


@pytest.fixture
def address(cluster):
    """Return the address of a store on four servers, with a tenant on each."""
    name = cluster.create()
    with cluster.front.connect(name) as connection:
        for tenant, shard in TENANTS.items():
            connection.execute("INSERT INTO holdfast.tenants VALUES (%s, %s)", (tenant, shard))
    yield cluster.at(name)
    cluster.drop(name)


@pytest.fixture
def memory(address):
    with opened(path=address, embedder=HashEmbedder(64)) as memory:
        yield memory


@pytest.fixture
def store(address):
    store = open_store(address)
    yield store
    store.close()


def tell(memory, tenant):
    owner = {"user": "ana", "tenant": tenant}
    memory.remember([f"the boat {n} of {tenant} lies in Porto" for n in range(4)], session="s", **owner)
    memory.remember(f"a first word of {tenant}", id="a", **owner)
    memory.update("a", text=f"another word of {tenant}", **owner)
    memory.remember(f"a last word of {tenant}", id="b", supersedes="a", **owner)
    memory.reinstate("a", **owner)
    memory.ingest(f"# {tenant}\n\nThe mill depends on water.\n", name="m.md", **owner)


def found(memory, tenant):
    return [(hit.unit.id, hit.score) for hit in memory.search("the boat in Porto", user="ana", tenant=tenant)]


def put(store, tenant, *numbers):
    store.put([draft(f"u{n}", f"the boat {n} lies in Porto", tenant=tenant) for n in numbers])


def scan(store, tenant):
    return Asker(store, view("ana", tenant=tenant)).scan()


def rows_of(cluster, address, tenant):
    """Return in which shards there are rows of a tenant, whoever knows of them."""
    found = set()
    places = zip((cluster.front, *cluster.others), cluster.parts(name_of(address)), strict=True)
    for shard, (server, name) in enumerate(places):
        for table in partitioned():
            if server.run(f"SELECT 1 FROM holdfast.{table}_{shard} WHERE tenant = '{tenant}' LIMIT 1", name):
                found.add(shard)
    return found


# ------------------------------------------------------------------------------------------------- adding servers


@contextlib.contextmanager
def spare(server):
    name = server.create(empty=True)
    yield server.at(name)
    server.drop(name)


def test_a_server_of_the_cluster_is_not_a_store_of_its_own(cluster, store):
    with spare(cluster.others[0]) as far:
        servers.add_server(store.database, "west", far)
        with pytest.raises(
            StoreError, match="one shard of a store, number 4; open the store by the address of its front"
        ):
            open_store(far)


def test_a_server_that_is_added_twice_is_one(cluster, store):
    with spare(cluster.others[0]) as far:
        assert servers.add_server(store.database, "west", far) == servers.add_server(store.database, "west", far) == 4
        assert [one.server for one in servers.list_shards(store.database)] == [
            None,
            "far_1",
            "far_2",
            "far_3",
            "west",
        ]


def test_what_was_begun_on_another_server_is_used_when_it_is_added_again(cluster, store, monkeypatch):
    with spare(cluster.others[0]) as far:
        with monkeypatch.context() as patched:
            patched.setattr(servers, "_introduce", lambda *_: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                servers.add_server(store.database, "west", far)
        assert len(servers.list_shards(store.database)) == 4
        assert servers.add_server(store.database, "west", far) == 4
        servers.move_tenant(store.database, "tenant 1", 4)
        put(store, "tenant 1", 1)
        assert scan(store, "tenant 1") == ["u1"]


def test_servers_that_cannot_be_added_are_refused(cluster, address, store):
    add = servers.add_server
    with spare(cluster.others[0]) as far, spare(cluster.others[0]) as other:
        for name in ("", "Käse", "a b", "x" * 60):
            with pytest.raises(InputError, match="no name of a server"):
                add(store.database, name, far)
        with pytest.raises(InputError, match="far_1 already"):
            add(store.database, "far_1", far)
        with pytest.raises(StoreError, match="is the store itself"):
            add(store.database, "west", address)
        with pytest.raises(ServerError, match="cannot be reached"):
            add(store.database, "west", "postgresql://postgres@127.0.0.1:1/x")
        open_store(other).close()
        used = open_store(other)
        put(used, "local", 1)
        used.close()
        with pytest.raises(StoreError, match="holds a store already"):
            add(store.database, "west", other)
        assert len(servers.list_shards(store.database)) == 4


def test_new_tenants_are_spread_over_those_that_take_them(store):
    for number in range(40):
        put(store, f"new {number}", 1)
    counts = [one.tenants for one in servers.list_shards(store.database)]
    assert counts[FRONT] == 1
    assert all(count > 4 for count in counts[1:])
    for shard in (1, 2):
        servers.take_tenants(store.database, shard, takes=False)
    with pytest.raises(InputError, match="nowhere to go"):
        servers.take_tenants(store.database, 3, takes=False)
    with pytest.raises(NotFoundError, match="no shard 9"):
        servers.take_tenants(store.database, 9, takes=True)


def test_a_server_that_wants_a_password_is_asked_with_it(cluster, address, store):
    far = cluster.others[0]
    far.run("CREATE ROLE guarded_far SUPERUSER LOGIN PASSWORD 'p w''%1'")
    name = far.create(empty=True)
    try:
        with pytest.raises(StoreError, match="refuses the password"):
            servers.add_server(store.database, "west", far.at(name, "guarded_far", "wrong"))
        shard = servers.add_server(store.database, "west", far.at(name, "guarded_far", "p w'%1"))
        servers.move_tenant(store.database, "tenant 1", shard)
        put(store, "tenant 1", 1)
        assert scan(store, "tenant 1") == ["u1"]
        assert servers.list_shards(store.database)[shard].units == 1
        told = cluster.front.run("SELECT address FROM holdfast.shards", name_of(address))
        assert not any("p w" in (one or "") for (one,) in told)
    finally:
        far.drop(name)
        far.run("DROP ROLE guarded_far")


def test_a_newer_schema_reaches_the_other_servers_first(cluster, address, store, monkeypatch):
    newer = (*schema.migrations(), (9999, "ALTER TABLE units ADD COLUMN mood text"))
    monkeypatch.setattr(schema, "migrations", lambda: newer)
    put(store, "tenant 1", 1)
    with cluster.front.connect(name_of(address)) as connection:
        connection.execute("SET search_path = holdfast, public")
        with pytest.raises(psycopg.errors.UndefinedColumn):
            connection.execute("SELECT mood FROM units")
        open_store(address).close()
        connection.execute("UPDATE units SET mood = 'calm' WHERE shard = 1")
        assert connection.execute("SELECT mood FROM units").fetchall() == [("calm",)]


# --------------------------------------------------------------------------------------- where a question goes


def test_a_tenant_reaches_one_server_alone(cluster, address, memory, monkeypatch):
    asked = []
    run = PostgresDatabase.execute

    def record(self, statement, values=NOTHING):
        vector = {"vector": Half(values["vector"])} if "vector" in values else {}
        asked.append((statement, {**values, **vector, "shard": self.shard(), "tenant": "tenant 2"}))
        return run(self, statement, values)

    monkeypatch.setattr(PostgresDatabase, "execute", record)
    tell(memory, "tenant 0")  # the space of vectors is agreed on with all servers
    parts = cluster.parts(name_of(address))
    for server, name in zip(cluster.others, parts[1:], strict=True):
        server.run(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'")
    asked.clear()
    tell(memory, "tenant 2")
    assert found(memory, "tenant 2")
    memory.assemble("where is the boat?", user="ana", tenant="tenant 2")
    memory.forget(ids=["b"], user="ana", tenant="tenant 2")
    reached = [
        server.run(f"SELECT count(*) FROM pg_stat_activity WHERE datname = '{name}'")[0][0] > 0
        for server, name in zip(cluster.others, parts[1:], strict=True)
    ]
    assert reached == [False, True, False]
    plans = set(explained(cluster.front, parts[0], asked))
    assert len(plans) > 20
    for plan in plans:  # every statement, if it ran at the front
        assert {*re.findall(r"holdfast\.[a-z_]+_(\d)", plan)} <= {"2"}, plan


def explained(server, name, asked):
    lender = Connections(server.at(name), "front", 1, 5000)
    connection, _ = lender.begin("BEGIN")
    connection.execute("SELECT set_config('holdfast.tenant', 'tenant 2', true)")
    connection.execute(f"SET LOCAL ROLE {APP_ROLE}")
    for statement, values in asked:
        if not re.match(r"\W*(SELECT|WITH|INSERT|UPDATE|DELETE)", re.sub("--.*", "", statement)):
            continue
        if re.search("agreements|spaces|nextval|backups|copies", statement) and "units" not in statement:
            continue
        rows = connection.execute("EXPLAIN (VERBOSE, COSTS OFF) " + statement, values).fetchall()
        yield "\n".join(line for (line,) in rows)
    lender.give_back(connection)
    lender.close()


def test_a_question_is_answered_where_the_rows_are(memory):
    tell(memory, "tenant 1")
    plans, run = {}, memory.store.database.execute

    def explain(statement, values=NOTHING):
        if re.match(r"\W*(SELECT|WITH)", re.sub("--.*", "", statement)):
            plans[statement] = "\n".join(line for (line,) in run("EXPLAIN " + statement, values))
        return run(statement, values)

    memory.store.database.execute = explain
    assert found(memory, "tenant 1")
    for word in ("postings", "<=>"):  # by words, by vectors
        assert any(word in statement for statement in plans), word
    assert not any("Foreign" in plan for plan in plans.values())


def test_a_reading_inside_a_reading_may_be_of_another_server(store):
    for number, tenant in enumerate(TENANTS):
        put(store, tenant, number)
    with store.reading(view("ana", tenant="tenant 1")) as outer:
        for number, tenant in enumerate(TENANTS):
            with store.reading(view("ana", tenant=tenant)) as inner:
                assert [unit.id for unit in inner.scan(order="oldest", limit=9)] == [f"u{number}"]
            assert [unit.id for unit in outer.scan(order="oldest", limit=9)] == ["u1"]


# ------------------------------------------------------------------------------------------------ moving tenants


def test_a_moved_tenant_is_the_same_elsewhere_and_gone_where_it_was(cluster, address, memory, store):
    tell(memory, "tenant 1")
    before, history = found(memory, "tenant 1"), memory.history("a", user="ana", tenant="tenant 1")
    for left, shard in ((1, 3), (3, FRONT), (FRONT, 2)):
        moved = servers.move_tenant(store.database, "tenant 1", shard)
        assert (moved.left, moved.shard, moved.remains) == (left, shard, "")
        assert moved.rows > 50
        assert found(memory, "tenant 1") == before
        assert memory.history("a", user="ana", tenant="tenant 1") == history
        assert rows_of(cluster, address, "tenant 1") == {shard}
        assert store.verify() == []
    assert servers.move_tenant(store.database, "tenant 1", 2).rows == 0
    for tenant, shard in (("nobody", 1), ("tenant 1", 9)):
        with pytest.raises(NotFoundError):
            servers.move_tenant(store.database, tenant, shard)


STEPS = ("everywhere", *range(1, 12)), ("_fingerprint", 1, 2 * len(partitioned()))


@pytest.mark.parametrize(("place", "step"), [(place, step) for place, *steps in STEPS for step in steps])
def test_a_move_that_is_killed_at_any_step_can_be_done_again(cluster, address, store, monkeypatch, place, step):
    put(store, "tenant 1", 1, 2)
    owner, calls = PostgresDatabase if place == "everywhere" else servers, []
    work = getattr(owner, place)

    def kill(*given, **options):
        calls.append(place)
        if len(calls) == step:
            raise KeyboardInterrupt
        return work(*given, **options)

    with monkeypatch.context() as patched:
        patched.setattr(owner, place, kill)
        with contextlib.suppress(KeyboardInterrupt):
            servers.move_tenant(store.database, "tenant 1", 3)
    assert scan(store, "tenant 1") == ["u1", "u2"]
    assert store.stats(view("ana", tenant="tenant 1"), whole=True).store_units == 2
    servers.move_tenant(store.database, "tenant 1", 3)
    assert rows_of(cluster, address, "tenant 1") == {3}
    servers.move_tenant(store.database, "tenant 1", 1)
    assert (rows_of(cluster, address, "tenant 1"), store.verify()) == ({1}, [])


def test_rows_that_arrived_before_this_server_failed_are_not_counted_twice(cluster, address, store):
    put(store, "tenant 1", 1, 2)
    with cluster.front.connect(name_of(address)) as connection:  # as a crash between the two commits leaves it
        connection.execute("SET search_path = holdfast, public")
        connection.execute("INSERT INTO moves (shard, tenant) VALUES (2, 'tenant 1')")
        for table in partitioned():
            columns = servers._columns(connection, table).as_string(connection)
            connection.execute(f"INSERT INTO {table} (shard, {columns}) SELECT 2, {columns} FROM {table}")
    assert scan(store, "tenant 1") == ["u1", "u2"]
    assert store.stats(view("ana", tenant="tenant 1"), whole=True).store_units == 2
    assert len(store.waiting("a/4/none/1", 9)) == 2
    servers.move_tenant(store.database, "tenant 1", 2)
    assert (rows_of(cluster, address, "tenant 1"), scan(store, "tenant 1")) == ({2}, ["u1", "u2"])


def test_what_arrives_damaged_leaves_the_tenant_where_it_was(cluster, address, store):
    put(store, "tenant 1", 1)
    [_, _, part, _] = cluster.parts(name_of(address))
    cluster.others[1].run(
        "CREATE FUNCTION spoil() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN NEW.body := 'x'; RETURN NEW; END $$; "
        "CREATE TRIGGER spoil BEFORE INSERT ON holdfast.units_2 FOR EACH ROW EXECUTE FUNCTION spoil()",
        part,
    )
    with pytest.raises(StoreError, match="not as they were; the tenant stays"):
        servers.move_tenant(store.database, "tenant 1", 2)
    assert (rows_of(cluster, address, "tenant 1"), scan(store, "tenant 1")) == ({1}, ["u1"])


def test_moving_under_writers_and_readers_loses_nothing(cluster, address, store):
    put(store, "tenant 1", 0)
    seen, failed, done = [], [], threading.Event()

    def write(number):
        try:
            for n in range(number, number + 20):
                put(store, "tenant 1", n)
        except StoreError as error:
            failed.append(error)

    def read():
        while not done.is_set():
            seen.append(len(scan(store, "tenant 1")))

    writers = [threading.Thread(target=write, args=(number,)) for number in (100, 200)]
    reader = threading.Thread(target=read)
    for thread in (*writers, reader):
        thread.start()
    moves = 0
    while any(thread.is_alive() for thread in writers) or moves < 4:
        moves += 1
        servers.move_tenant(store.database, "tenant 1", (2, 3, FRONT, 1)[moves % 4])
    done.set()
    reader.join()
    assert failed == []
    assert len(scan(store, "tenant 1")) == 41
    assert seen == sorted(seen)
    assert seen[0] >= 1
    assert len(rows_of(cluster, address, "tenant 1")) == 1
    assert store.verify() == []


def test_a_unit_that_is_forgotten_is_gone_from_where_its_tenant_was(cluster, address, memory, store):
    owner = {"user": "ana", "tenant": "tenant 1"}
    memory.remember("the word is Xylophonkiste", id="x", **owner)
    memory.remember("it stays", id="y", **owner)
    servers.move_tenant(store.database, "tenant 1", 2)
    erased = memory.forget(ids=["x"], **owner)
    assert erased.complete
    for server, name in zip(cluster.others, cluster.parts(name_of(address))[1:], strict=True):
        server.run("CHECKPOINT")
        [(oid,)] = server.run(f"SELECT oid FROM pg_database WHERE datname = '{name}'")
        for path in (server.data / "base" / str(oid)).iterdir():
            assert b"Xylophonkiste" not in path.read_bytes(), (server.port, path.name)


def test_tables_of_another_server_are_marked_before_anything_is_erased_there(cluster, address, memory, monkeypatch):
    owner = {"user": "ana", "tenant": "tenant 1"}
    memory.remember("the word is Xylophonkiste", id="x", **owner)

    def fail(*_given):
        raise StoreError("this server fails before it commits, and the other one has")

    with monkeypatch.context() as patched:
        patched.setattr(PostgresDatabase, "agree", fail)
        with pytest.raises(StoreError, match="before it commits"):
            memory.forget(ids=["x"], **owner)
    marks = "SELECT name FROM holdfast.agreements WHERE name LIKE 'erasing%'"
    assert cluster.front.run(marks, name_of(address)) == [("erasing 1",)]
    assert memory.store.finish_erasing()
    assert cluster.front.run(marks, name_of(address)) == []
    [place] = memory.forget(ids=["x"], **owner).files
    assert place.startswith("postgresql://")
    assert place.endswith(", far_1")


# --------------------------------------------------------------------------------------------- a server is away


def test_a_server_that_is_away_keeps_its_own_tenants_waiting_and_nobody_else(cluster, address, memory):
    for tenant in TENANTS:
        tell(memory, tenant)
    before = {tenant: found(memory, tenant) for tenant in TENANTS}
    away = cluster.others[1]
    away.stop("fast")
    try:
        for again in (memory, opened(path=address, embedder=HashEmbedder(64))):
            for tenant, shard in TENANTS.items():
                if shard == 2:
                    with pytest.raises(ServerError, match="server far_2"):
                        again.search("boat", user="ana", tenant=tenant)
                    with pytest.raises(ServerError, match="server far_2"):
                        again.remember("more", user="ana", tenant=tenant)
                else:
                    assert found(again, tenant) == before[tenant]
            again.remember("news", user="ana", tenant="tenant 3", session="news")
            before["tenant 3"] = found(again, "tenant 3")
        again.close()
        told = memory.stats(user="ana", tenant="tenant 1", whole=True)
        assert len(told.away) == 1
        assert "far_2" in told.away[0]
    finally:
        assert away.start()
    assert found(memory, "tenant 2") == before["tenant 2"]
    memory.remember("more", user="ana", tenant="tenant 2", id="more")
    assert memory.get("more", user="ana", tenant="tenant 2").text == "more"


def test_a_connection_that_is_lost_in_the_middle_names_its_server(cluster, address, store):
    put(store, "tenant 2", 1)
    part, far = cluster.parts(name_of(address))[2], cluster.others[1]

    def cut():
        far.run(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{part}'")

    def write():
        with store.database.transaction("tenant 2", ["ana"]):
            store.database.find("tenant 2", "ana", "u1")
            cut()
            store.database.find("tenant 2", "ana", "u1")

    def read():
        with store.reading(view("ana", tenant="tenant 2")) as reading:
            cut()
            reading.scan(order="oldest", limit=9)

    for work in (write, read):
        with pytest.raises(ServerError, match="server far_2 of the cluster"):
            work()
    put(store, "tenant 2", 2)
    assert scan(store, "tenant 2") == ["u1", "u2"]


def test_shards_are_listed_whoever_is_away(cluster, address, store):
    put(store, "tenant 2", 1, 2)
    away = cluster.others[1]
    away.stop("fast")
    try:
        listed = servers.list_shards(store.database)
    finally:
        assert away.start()
    assert [bool(one.problem) for one in listed] == [False, False, True, False]
    assert (listed[2].tenants, listed[2].units) == (1, None)
    assert servers.list_shards(store.database)[2].units == 2


# ------------------------------------------------------------------------------------------------------ replicas


@pytest.fixture(scope="module")
def followed(cluster):
    """Return a server, and one that follows it."""
    primary = cluster.others[2]
    replica = Replica(primary)
    yield primary, replica
    replica.close()


def flush(server):
    """Let everything that was written so far be sent."""
    server.run("SET synchronous_commit = on; SELECT pg_current_xact_id()")


def catch_up(primary, replica):
    [(written,)] = primary.run("SELECT pg_current_wal_insert_lsn()::text")
    flush(primary)
    for _ in range(600):
        if replica.run(f"SELECT pg_last_wal_replay_lsn() >= '{written}'")[0][0]:
            return
        replica.run("SELECT pg_sleep(0.05)")
    pytest.fail("the replica does not follow")


def test_a_replica_answers_and_says_how_stale_it_is(followed):
    primary, replica = followed
    name = primary.create()
    owner = {"user": "ana"}
    with opened(path=primary.at(name), embedder=HashEmbedder(64)) as memory:
        memory.remember(["the boat lies in Porto", "the lamp is green"], session="s", **owner)
        catch_up(primary, replica)
        assert memory.stats(**owner).staleness_seconds is None
        with opened(path=replica.at(name), embedder=HashEmbedder(64)) as copy:
            ask = [(hit.unit.id, hit.score) for hit in memory.search("the boat", **owner)]
            assert [(hit.unit.id, hit.score) for hit in copy.search("the boat", **owner)] == ask
            assert "Porto" in copy.assemble("where is the boat?", **owner).text
            for write in (lambda: copy.remember("more", **owner), lambda: copy.forget(ids=[ask[0][0]], **owner)):
                with pytest.raises(ReadOnlyStoreError, match="primary"):
                    write()
            assert copy.stats(**owner).staleness_seconds == 0.0
            replica.run("SELECT pg_wal_replay_pause()")
            memory.remember("the second boat", id="second", **owner)
            [(written,)] = primary.run("SELECT pg_current_wal_insert_lsn()::text")
            while not replica.run(f"SELECT pg_last_wal_receive_lsn() >= '{written}'")[0][0]:
                flush(primary)
            assert copy.stats(**owner).staleness_seconds > 0.0
            replica.run("SELECT pg_wal_replay_resume()")
            catch_up(primary, replica)
            assert copy.get("second", **owner).text == "the second boat"
    primary.drop(name)


def test_a_replica_of_the_front_never_misses_a_tenant_that_moves(cluster, followed):
    primary, replica = followed
    group = Cluster(primary, cluster.others[:2])
    name = group.create()
    settings = Settings()
    settings = dataclasses.replace(settings, store=dataclasses.replace(settings.store, busy_timeout_ms=200))
    store = open_store(group.at(name), settings)
    put(store, "acme", 1)
    here = store.database.shards()
    [shard] = [one.number for one in servers.list_shards(store.database) if one.tenants]
    catch_up(primary, replica)
    copy = open_store(replica.at(name), settings)
    replica.run("SELECT pg_wal_replay_pause()")
    moved = servers.move_tenant(store.database, "acme", 3 - shard)
    assert "replica" in moved.remains
    assert scan(store, "acme") == scan(copy, "acme") == ["u1"]
    replica.run("SELECT pg_wal_replay_resume()")
    catch_up(primary, replica)
    assert scan(copy, "acme") == ["u1"]
    with pytest.raises(ReadOnlyStoreError):
        put(copy, "acme", 2)
    while servers.move_tenant(store.database, "acme", 3 - shard).remains:
        catch_up(primary, replica)
    assert (scan(copy, "acme"), len(here)) == (["u1"], 3)
    copy.close()
    store.close()
    group.drop(name)
    group.close()


# ---------------------------------------------------------------------------------------------- the command line


@pytest.fixture
def command(address, monkeypatch, capsys):
    """Return a function that runs `holdfast cluster`; it gives the code and what it printed."""

    def run(*arguments, db=address):
        monkeypatch.setattr(sys, "argv", ["holdfast", "cluster", *arguments, "--db", db, "--json"])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        return ended.value.code or 0, json.loads(capsys.readouterr().out)

    return run


def test_servers_are_added_listed_and_given_tenants_on_the_command_line(cluster, store, command, tmp_path):
    put(store, "tenant 1", 1, 2)
    with spare(cluster.others[0]) as far:
        assert command("add", "west", far) == (0, {"shard": 4, "server": "west"})
        code, moved = command("move", "tenant 1", "west")
        assert (code, moved["left"], moved["shard"], moved["remains"]) == (0, 1, 4, "")
        code, listed = command("list")
        assert [(one["server"], one["tenants"], one["units"]) for one in listed if one["units"]] == [("west", 1, 2)]
        assert command("move", "tenant 1", "front")[1]["shard"] == FRONT
    assert command("move", "tenant 1", "nowhere")[0] == InputError.exit_code
    assert command("list", db=str(tmp_path / "a.db"))[0] == InputError.exit_code
