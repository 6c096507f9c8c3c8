"""What goes wrong with a server: one clear error each, nothing half-written, and the store works again afterwards."""

import contextlib
import dataclasses
import os
import subprocess
import sys
import threading
from pathlib import Path
from uuid import uuid4

import pytest

import postgres_server
from builders import NOW, later, make_view, opened
from holdfast import Settings
from holdfast.errors import (
    BusyStoreError,
    ClosedStoreError,
    HoldfastError,
    InputError,
    NewerStoreError,
    NotFoundError,
    QuotaError,
    ReadOnlyStoreError,
    ServerError,
    StoreError,
)
from holdfast.settings import StoreSettings
from holdfast.store.postgres import schema
from holdfast.store.postgres.postgres_database import lock_number
from holdfast.store.postgres.postgres_store import PostgresStore
from holdfast.testing.builders import analyse_default, no_deadline, words
from holdfast.testing.contracts import HashEmbedder
from holdfast.types import Deadline
from postgres_server import OwnServer, Replica, free_port, name_of

pytest.importorskip("psycopg", reason="psycopg is not installed, so the store on PostgreSQL is not tested")

import psycopg

STARTER = Path(__file__).with_name("starter.py")
# For what has to wait in vain.
IMPATIENT = dataclasses.replace(Settings(), store=StoreSettings(busy_timeout_ms=200))
SECRET = "se:cret/wörd@"


@pytest.fixture(scope="module")
def own():
    """Return a server that may be stopped, and whose files may be touched; what it commits survives its end."""
    server = OwnServer(synchronous_commit="on")
    yield server
    server.close()


@pytest.fixture
def own_database(own):
    with own.database() as address:
        yield address


@pytest.fixture
def role(postgres):
    """Return a function that makes a role for the test; what it owns goes with it."""
    names = []

    def make(options="LOGIN", database=None):
        names.append((f"guest_{uuid4().hex[:8]}", database))
        postgres.run(f"CREATE ROLE {names[-1][0]} {options}")
        return names[-1][0]

    yield make
    for name, database in names:
        for place in filter(None, (database, "postgres")):
            with contextlib.suppress(Exception):  # the database is gone already
                postgres.run(f"DROP OWNED BY {name} CASCADE", place)
        postgres.run(f"DROP ROLE {name}")


@contextlib.contextmanager
def refused(kind, *words):
    """Expect one error of the tree that says where, why and what to do, in one line, without a password."""
    with pytest.raises(HoldfastError) as caught:
        yield caught
    message = str(caught.value)
    assert type(caught.value) is kind, f"{type(caught.value).__name__}: {message}"
    for word in words:
        assert word in message, f"{word!r} is not in {message!r}"
    assert "\n" not in message
    assert "cret/w" not in message
    assert "Traceback" not in message


def ended(server, address):
    """End the connections of everybody else to a database."""
    server.run(
        "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
        f"WHERE datname = '{name_of(address)}' AND pid <> pg_backend_pid()"
    )


def has_schema(server, address):
    """Return whether anything of a store is there."""
    return bool(server.run("SELECT 1 FROM pg_namespace WHERE nspname = 'holdfast'", name_of(address)))


def whole(memory):
    """Return all that the memory of ana holds, and make sure that nothing in it is broken."""
    assert memory.store.verify() == []
    units = memory.list(user="ana", limit=None, current_only=False)
    return [(unit.id, unit.version, unit.text, len(memory.history(unit.id, user="ana"))) for unit in units]


# ---------------------------------------------------------------------------------------------------- opening


def test_nobody_listens_there():
    port = free_port()
    with refused(ServerError, f"127.0.0.1:{port}", "start it"):
        opened(path=f"postgresql://ana:{SECRET.replace('/', '%2F').replace('@', '%40')}@127.0.0.1:{port}/db")


def test_there_is_no_such_host():
    with refused(ServerError, "nowhere.invalid"):
        opened(path="postgresql://nowhere.invalid/db")


@pytest.mark.parametrize("password", [SECRET, None, ""])
def test_a_wrong_or_missing_password(own, password):
    name = f"guarded_{uuid4().hex[:8]}"
    own.run(f"CREATE ROLE {name} LOGIN PASSWORD 'right'")
    with own.database() as address, refused(StoreError, "password"):
        opened(path=own.at(name_of(address), user=name, password=password))
    own.run(f"DROP ROLE {name}")


def test_there_is_no_such_database(postgres):
    with refused(StoreError, "no_such_database", "create it"):
        opened(path=postgres.at("no_such_database"))


def test_there_is_no_such_role(postgres, database):
    with refused(StoreError, "no_such_role", "role") as caught:
        opened(path=postgres.at(name_of(database), user="no_such_role"))
    assert "no such database" not in str(caught.value)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("search=fast", ("search", "fast", "exact")),
        ("pool=0", ("pool", "0")),
        ("pool=many", ("pool", "many")),
        ("pool=-1", ("pool", "-1")),
        ("pool=100000000000000000000", ("pool",)),
        ("pool=", ("pool",)),
    ],
)
def test_an_option_of_the_address_that_is_not_understood(database, options, words):
    with refused(InputError, *words):
        opened(path=f"{database}?{options}")


@pytest.mark.parametrize(
    "address",
    ["postgresql://", "postgresql://127.0.0.1:port/db", "postgresql://127.0.0.1:99999/db", "postgresql://[::1/db",
     "postgresql://127.0.0.1/db?no_such_option=1", "postgresql://127.0.0.1/a\x00b", "postgresql://127.0.0.1:1/%zz"],
)  # fmt: skip
def test_an_address_that_is_none(address):
    with pytest.raises(HoldfastError) as caught:
        opened(path=address)
    assert isinstance(caught.value, StoreError | InputError | ServerError), type(caught.value)
    assert len(str(caught.value)) > 20


def test_pgvector_is_missing_and_the_role_may_not_add_it(postgres, role):
    with postgres.database(empty=True) as address:
        name = role(database=name_of(address))
        postgres.run(f"GRANT CREATE ON DATABASE {name_of(address)} TO {name}")
        with refused(StoreError, "pgvector", "CREATE EXTENSION vector"):
            opened(path=postgres.at(name_of(address), user=name))
        assert not has_schema(postgres, address)
        postgres.run("CREATE EXTENSION vector", name_of(address))
        postgres.run(f"GRANT holdfast_app TO {name}")
        with opened(path=postgres.at(name_of(address), user=name)) as memory:
            memory.remember("a blue boat", user="ana")
            assert len(memory.search("boat", user="ana")) == 1


def test_a_role_without_rights_cannot_make_a_store(postgres, role):
    with postgres.database(empty=True) as address:
        postgres.run("CREATE EXTENSION vector", name_of(address))
        with pytest.raises(HoldfastError) as caught:
            opened(path=postgres.at(name_of(address), user=role()))
        assert isinstance(caught.value, StoreError)
        assert "right" in str(caught.value)
        assert postgres.run("SELECT count(*) FROM pg_namespace WHERE nspname = 'holdfast'", name_of(address)) == [
            (0,)
        ]
        opened(path=address).close()


def test_a_role_without_rights_cannot_read_a_store(postgres, database, role):
    with opened(path=database) as memory:
        memory.remember("a blue boat", user="ana")
    address = postgres.at(name_of(database), user=role())
    with pytest.raises(HoldfastError) as caught, opened(path=address) as memory:
        memory.search("boat", user="ana")
    assert isinstance(caught.value, StoreError)
    assert "right" in str(caught.value)


def test_a_schema_of_somebody_else_is_left_alone(postgres):
    with postgres.database(empty=True) as address:
        postgres.run("CREATE SCHEMA holdfast", name_of(address))
        postgres.run("CREATE TABLE holdfast.migrations (app text)", name_of(address))
        with pytest.raises(StoreError) as caught:
            opened(path=address)
        assert "holdfast" in str(caught.value)
        tables = "SELECT count(*) FROM pg_tables WHERE schemaname = 'holdfast'"
        assert postgres.run(tables, name_of(address)) == [(1,)]


# ----------------------------------------------------------------------------------------------------- schema


@contextlib.contextmanager
def newer(script):
    """Be a later Holdfast, that has one more migration."""
    found = schema.migrations()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(schema, "migrations", lambda: (*found, (found[-1][0] + 1, script)))
        yield


def test_an_older_store_is_brought_up_to_date_and_a_newer_one_refused(database):
    with opened(path=database) as memory:
        memory.remember("a blue boat", user="ana", id="a")
    with newer("CREATE TABLE later (n int)"), opened(path=database) as memory:
        assert memory.get("a", user="ana").text == "a blue boat"
        assert memory.store.verify() == []
    last = schema.migrations()[-1][0]
    with refused(NewerStoreError, str(last + 1), str(last), "upgrade"):
        opened(path=database)


def test_a_migration_that_fails_changes_nothing(database):
    with opened(path=database) as memory:
        memory.remember("a blue boat", user="ana", id="a")
    with newer("CREATE TABLE later (n int); SELECT 1 / 0"), pytest.raises(StoreError):
        opened(path=database)
    with opened(path=database) as memory:
        assert memory.get("a", user="ana").text == "a blue boat"


def test_starters_that_race_make_one_store_each():
    """On a new server, so that they race for the role too, which all databases share."""
    server = OwnServer()
    try:
        one, two = (server.create(empty=True) for _ in range(2))
        running = [
            subprocess.Popen(
                [sys.executable, str(STARTER), server.at(place), f"{number}"],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            )
            for number, place in enumerate((one, one, two))
        ]  # fmt: skip
        assert [starter.stdout.readline() for starter in running] == ["ready\n"] * 3
        for starter in running:
            starter.stdin.write("go\n")
            starter.stdin.flush()
        assert [starter.communicate() for starter in running] == [("added\n", "")] * 3
        for place, numbers in ((one, (0, 1)), (two, (2,))):
            with opened(path=server.at(place)) as memory:
                assert {unit.text for unit in memory.list(user="ana")} == {f"starter {n} was here" for n in numbers}
                assert memory.store.verify() == []
    finally:
        server.close()


# ------------------------------------------------------------------------------------------------ going away


def test_a_server_that_goes_away_during_a_question_and_comes_back(own, own_database):
    with opened(IMPATIENT, path=own_database, embedder=HashEmbedder(64)) as memory:
        memory.remember("a blue boat", user="ana", id="a")
        before = whole(memory)
        try:
            with refused(ServerError, name_of(own_database)), memory.store.reading(make_view()) as reading:
                assert reading.units(["a"])["a"].text == "a blue boat"
                own.stop()
                reading.units(["a"])
            for ask in (
                lambda: memory.search("boat", user="ana"),
                lambda: memory.assemble("boat", user="ana"),
                lambda: memory.remember("a red boat", user="ana"),
                lambda: memory.list(user="ana"),
                lambda: memory.stats(user="ana", whole=True),
                lambda: memory.forget(ids="a", user="ana"),
            ):
                with refused(ServerError, name_of(own_database), "start it"):
                    ask()
        finally:
            assert own.start()
        assert whole(memory) == before
        memory.remember("a red boat", user="ana", id="b")
        assert len(memory.search("boat", user="ana")) == 2


def test_a_server_that_goes_away_during_a_write_leaves_all_as_it_was(own, own_database):
    with opened(IMPATIENT, path=own_database) as memory:
        memory.remember("a blue boat", user="ana", id="a")
        before = whole(memory)

        def interrupt(unit):
            own.stop()
            new = unit.evolve(text="a red boat", claim="a red boat")
            return new, analyse_default(new)

        try:
            with refused(ServerError, name_of(own_database), "not acknowledged"):
                memory.store.revise(make_view(), "a", interrupt)
        finally:
            assert own.start()
        assert whole(memory) == before


def test_connections_that_were_ended_between_calls_are_not_noticed(postgres, database):
    with opened(path=database, embedder=HashEmbedder(64)) as memory:
        memory.remember("a blue boat", user="ana", id="a")
        for call in (
            lambda: memory.search("boat", user="ana"),
            lambda: memory.remember("a red boat", user="ana", id="b"),
            lambda: memory.update("b", user="ana", text="a green boat"),
            lambda: memory.assemble("boat", user="ana"),
            lambda: memory.stats(user="ana", whole=True),
            lambda: memory.forget(ids="b", user="ana"),
        ):
            ended(postgres, database)
            call()
        assert whole(memory) == [("a", 1, "a blue boat", 1)]


def test_a_connection_that_is_ended_inside_a_question(postgres, database):
    with opened(path=database) as memory:
        memory.remember("a blue boat", user="ana", id="a")
        with refused(ServerError, name_of(database)), memory.store.reading(make_view()) as reading:
            ended(postgres, database)
            reading.units(["a"])
        assert len(memory.search("boat", user="ana")) == 1


def test_a_connection_that_is_ended_inside_a_write(postgres, database):
    with opened(path=database) as memory:
        memory.remember("a blue boat", user="ana", id="a")

        def interrupt(unit):
            ended(postgres, database)
            new = unit.evolve(text="a red boat", claim="a red boat")
            return new, analyse_default(new)

        with refused(ServerError, name_of(database), "not acknowledged"):
            memory.store.revise(make_view(), "a", interrupt)
        assert whole(memory) == [("a", 1, "a blue boat", 1)]
        memory.update("a", user="ana", text="a red boat")
        assert memory.get("a", user="ana").version == 2


def test_who_waits_too_long_for_a_locked_table_is_told_so(postgres, database):
    with opened(IMPATIENT, path=database) as memory:
        memory.remember("a blue boat", user="ana", id="a")
        with postgres.connect(name_of(database)) as other, other.transaction():
            other.execute("LOCK TABLE holdfast.units IN ACCESS EXCLUSIVE MODE")
            with refused(BusyStoreError, name_of(database), "try again"):
                memory.get("a", user="ana")
        assert memory.get("a", user="ana").version == 1


def test_a_statement_that_takes_longer_than_its_question_has_is_cancelled_and_the_reading_goes_on(
    database, monkeypatch
):
    with opened(path=database) as memory:
        memory.remember("a blue boat", user="ana", id="a")
        slowly = schema.queries()["words_exactly"].replace("SELECT -- ", "SELECT pg_sleep(30), -- ")
        assert "pg_sleep" in slowly
        with memory.store.reading(make_view()) as reading:
            blue, hurry = words("blue"), Deadline.start(lambda: 0.0, 50.0)
            with monkeypatch.context() as patched:
                patched.setattr("holdfast.store.postgres.postgres_database._LEAST_TIMEOUT_MS", 1)
                patched.setitem(schema.queries(), "words_exactly", slowly)
                cancelled = reading.propose(blue, 5, hurry)
            assert (cancelled.ids, cancelled.exhausted) == ((), True)
            assert reading.propose(blue, 5, no_deadline()).ids == ("a",)  # of the same state
            assert [*reading.units(["a"])] == ["a"]


@pytest.mark.parametrize("kind", ["SerializationFailure", "DeadlockDetected"])
def test_a_write_that_ran_into_another_one_is_done_again_once(database, monkeypatch, kind):
    tries = []
    with opened(path=database) as memory:
        memory.remember("a blue boat", user="ana", id="a")
        write = PostgresStore._refuse_beyond_quota

        def in_the_way(self, tenant):
            write(self, tenant)
            tries.append(tenant)
            if len(tries) == 1:
                raise getattr(psycopg.errors, kind)("others write the same")

        monkeypatch.setattr(PostgresStore, "_refuse_beyond_quota", in_the_way)
        memory.remember("a red boat", user="ana", id="b")
        memory.update("a", text="a green boat", user="ana")
        assert len(tries) == 3
        assert whole(memory) == [("b", 1, "a red boat", 1), ("a", 2, "a green boat", 2)]


def test_statements_of_questions_are_prepared(postgres, database):
    with opened(path=database) as memory:
        memory.remember("a blue boat", user="ana", id="a")
        for _ in range(7):
            memory.search("where is the boat?", user="ana")
        database_ = memory.store.database
        with database_.snapshot("local"):
            prepared = database_.execute("SELECT statement FROM pg_prepared_statements").fetchall()
    assert any("FROM postings" in statement for (statement,) in prepared)


def test_two_writers_at_one_moment_do_not_pass_the_quota_of_their_tenant(database, monkeypatch):
    both, check = threading.Barrier(2), PostgresStore._refuse_beyond_quota

    def together(self, tenant):
        both.wait(30)  # each has written, and neither has committed
        check(self, tenant)

    def write(memory, user, refused_):
        try:
            memory.remember("a blue boat", user=user)
        except QuotaError:
            refused_.append(user)

    with opened(path=database) as memory:
        memory.remember("a red boat", user="zoe")
        memory.store.set_quota("local", 2)
        monkeypatch.setattr(PostgresStore, "_refuse_beyond_quota", together)
        refused_ = []
        writers = [threading.Thread(target=write, args=(memory, user, refused_)) for user in ("ana", "ben")]
        for one in writers:
            one.start()
        for one in writers:
            one.join()
        assert len(refused_) == 1
        assert memory.store.verify() == []


def test_who_has_more_than_a_quota_changes_and_forgets_and_gets_no_more(database):
    with opened(path=database) as memory:
        memory.remember([{"text": f"boat {n} is blue", "id": f"b{n}"} for n in range(5)], user="ana")
        memory.store.set_quota("local", 2)
        with refused(QuotaError, "2 units"):
            memory.remember("boat 9 is blue", user="ana", id="b9")
        assert memory.update("b0", user="ana", text="boat 0 is red").version == 2
        memory.supersede("b1", by="b0", user="ana")
        assert memory.forget(ids=["b0", "b1", "b2", "b3"], user="ana").complete
        memory.remember("boat 9 is blue", user="ana", id="b9")
        with refused(QuotaError, "2 units"):
            memory.remember("boat 10 is blue", user="ana")
        assert memory.forget(all=True, user="ana").complete


def test_a_context_is_made_while_another_writer_holds_its_user(postgres, database):
    """That its units were used cannot be counted then, and the context says so."""
    with opened(IMPATIENT, path=database) as memory:
        memory.remember("a blue boat", user="ana", id="a")
        with postgres.connect(name_of(database)) as other:
            other.execute("BEGIN")
            other.execute("SELECT pg_advisory_xact_lock(%s)", (lock_number("local", "ana"),))
            context = memory.assemble("which boat?", user="ana")
            assert "a blue boat" in context.text
            assert ["is not counted" in warning for warning in context.warnings] == [True]
        assert memory.get("a", user="ana").access_count == 0
        assert memory.assemble("which boat?", user="ana").warnings == ()
        assert memory.get("a", user="ana").access_count == 1


def test_who_waits_too_long_for_another_writer_is_told_so(database):
    with opened(IMPATIENT, path=database) as memory, opened(path=database) as other:
        memory.remember("a blue boat", user="ana", id="a")

        def meanwhile(unit):
            with refused(BusyStoreError, name_of(database), "busy_timeout_ms"):
                memory.update("a", user="ana", text="a green boat")
            new = unit.evolve(text="a red boat", claim="a red boat")
            return new, analyse_default(new)

        other.store.revise(make_view(), "a", meanwhile)
        assert [unit.text for unit in memory.history("a", user="ana")] == ["a blue boat", "a red boat"]
        memory.update("a", user="ana", text="a green boat")
        assert memory.get("a", user="ana").version == 3


def test_all_connections_of_the_pool_in_use(database):
    with opened(IMPATIENT, path=f"{database}?pool=1") as memory:
        memory.remember("a blue boat", user="ana", id="a")
        asked = []

        def ask():
            with refused(BusyStoreError, "1 connection", "pool"):
                memory.search("boat", user="ana")
            asked.append(True)

        with memory.store.reading(make_view()):
            thread = threading.Thread(target=ask)
            thread.start()
            thread.join()
        assert asked == [True]
        assert len(memory.search("boat", user="ana")) == 1


def test_the_server_takes_no_more_connections(postgres, database, role):
    name = role("LOGIN SUPERUSER CONNECTION LIMIT 1")
    address = postgres.at(name_of(database), user=name)
    postgres.run(f"ALTER ROLE {name} NOSUPERUSER")  # superusers are not counted
    postgres.run(f"GRANT {postgres_server.OWNER} TO {name}")
    with postgres.connect(name_of(database), user=name), refused(BusyStoreError, name_of(database)):
        opened(IMPATIENT, path=address)


# --------------------------------------------------------------------------------------------- only to be read


def test_a_replica_answers_and_refuses_writes(own, own_database):
    with opened(path=own_database, embedder=HashEmbedder(64)) as memory:
        memory.remember("a blue boat", user="ana", id="a")
    replica = Replica(own)
    try:
        address = replica.at(name_of(own_database))
        with opened(path=address, embedder=HashEmbedder(64)) as memory:
            assert [hit.unit.id for hit in memory.search("boat", user="ana")] == ["a"]
            assert memory.assemble("boat", user="ana", track_access=False).items
            assert memory.store.verify() == []
            for write in (
                lambda: memory.remember("a red boat", user="ana"),
                lambda: memory.update("a", user="ana", text="a red boat"),
                lambda: memory.forget(ids="a", user="ana"),
            ):
                with refused(ReadOnlyStoreError, name_of(own_database), "primary"):
                    write()
            assert memory.get("a", user="ana").version == 1
    finally:
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


def test_a_replica_says_how_stale_it_is(own, own_database):
    replica, name, owner = Replica(own), name_of(own_database), {"user": "ana"}
    try:
        with opened(path=own_database, embedder=HashEmbedder(64)) as memory:
            memory.remember(["the boat lies in Porto", "the lamp is green"], session="s", **owner)
            catch_up(own, replica)
            assert memory.stats(**owner).staleness_seconds is None
            with opened(path=replica.at(name), embedder=HashEmbedder(64)) as copy:
                found = [(hit.unit.id, hit.score) for hit in memory.search("the boat", **owner)]
                assert [(hit.unit.id, hit.score) for hit in copy.search("the boat", **owner)] == found
                assert copy.stats(**owner).staleness_seconds == 0.0
                replica.run("SELECT pg_wal_replay_pause()")
                memory.remember("the second boat", id="second", **owner)
                [(written,)] = own.run("SELECT pg_current_wal_insert_lsn()::text")
                while not replica.run(f"SELECT pg_last_wal_receive_lsn() >= '{written}'")[0][0]:
                    flush(own)
                assert copy.stats(**owner).staleness_seconds > 0.0
                replica.run("SELECT pg_wal_replay_resume()")
                catch_up(own, replica)
                assert copy.get("second", **owner).text == "the second boat"
    finally:
        replica.close()


def test_a_role_that_only_reads(postgres, database):
    with opened(path=database) as memory:
        memory.remember("a blue boat", user="ana", id="a")
        name = f"{name_of(database)}"
        postgres.run(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    with opened(path=database) as memory:
        assert len(memory.search("boat", user="ana")) == 1
        with refused(ReadOnlyStoreError, name):
            memory.remember("a red boat", user="ana")
        assert whole(memory) == [("a", 1, "a blue boat", 1)]


# ----------------------------------------------------------------------------------------------- no more room


@contextlib.contextmanager
def full(server, address, table):
    """Let a disk be full for one empty table: its file leads to a place where nothing can be written."""
    [(path,)] = server.run(f"SELECT pg_relation_filepath('holdfast.{table}')", name_of(address))
    ended(server, address)  # who has the file open would go on writing to it
    file, kept = server.data / path, server.data / f"{path}.kept"
    file.rename(kept)
    file.symlink_to("/dev/full")
    try:
        yield
    finally:
        ended(server, address)
        file.unlink()
        kept.rename(file)


def test_a_full_disk_undoes_the_write_and_later_it_goes_through(own, own_database):
    with opened(path=own_database) as memory:
        memory.remember("a blue boat", user="ana", id="a")
        assert own.run("SELECT count(*) FROM holdfast.versions", name_of(own_database)) == [(0,)]
        with full(own, own_database, "versions"):
            with refused(StoreError, "full", "undone", name_of(own_database)):
                memory.update("a", user="ana", text="a red boat")
            assert memory.get("a", user="ana").text == "a blue boat"
            assert len(memory.search("blue", user="ana")) == 1
        assert whole(memory) == [("a", 1, "a blue boat", 1)]
        memory.update("a", user="ana", text="a red boat")
        assert whole(memory) == [("a", 2, "a red boat", 2)]


# ----------------------------------------------------------------------------------------------- odd callers

ODD_NAMES = (
    "it's", 'say "hi"', "50%", "%s", "%(tenant)s", "a\nb", "\ttab", "x" * 200, "\u202eabc\u202c", "\\", "\\'; --",
    "'; DROP TABLE units; --", "$$", "{where}", "null", " ", "é", "e\u0301", "漢字", "👩‍👧", "a/b", "holdfast_app",
    "_", "0",
)  # fmt: skip


def test_tenants_with_odd_names_are_kept_apart(database):
    with opened(path=database, embedder=HashEmbedder(64)) as memory:
        kept = []
        for number, name in enumerate(ODD_NAMES):
            try:
                memory.remember(f"boat number{number}", user="ana", tenant=name, id="a")
            except InputError:  # as every store refuses it
                with opened() as other, pytest.raises(InputError):
                    other.remember("boat", user="ana", tenant=name)
            else:
                kept.append((number, name))
        assert len(kept) >= len(ODD_NAMES) - 3
        for number, name in kept:
            owner = {"user": "ana", "tenant": name}
            assert [unit.text for unit in memory.list(**owner)] == [f"boat number{number}"]
            assert [hit.unit.text for hit in memory.search("boat", **owner)] == [f"boat number{number}"]
            memory.update("a", text=f"ship number{number}", **owner)
            assert memory.stats(**owner).versions == 2
        gone, *left = kept
        assert memory.forget(all=True, user="ana", tenant=gone[1]).units
        assert memory.list(user="ana", tenant=gone[1]) == []
        for number, name in left:
            assert memory.get("a", user="ana", tenant=name).text == f"ship number{number}"
        assert memory.store.verify() == []


@pytest.mark.parametrize("name", ["a\x00b", "\ud800", "x" * 300])
def test_a_tenant_that_no_store_can_keep_is_refused_by_name(database, name):
    with opened(path=database) as memory:
        for call in (memory.remember, memory.search):
            with pytest.raises(InputError, match="tenant"):
                call("boat", user="ana", tenant=name)


def test_odd_users_sessions_agents_and_ids_come_back(database):
    with opened(path=database) as memory, opened() as other:
        for name in ODD_NAMES:
            for place in ("user", "session", "agent", "id"):
                fields = {"user": "ana", place: name}
                answers = []
                for one in (memory, other):
                    try:
                        [written] = one.remember(f"boat of {name!r}", **fields)
                        unit = one.get(written.id, user=fields["user"], agent=fields.get("agent"))
                        answers.append((written.id, unit))
                    except (InputError, NotFoundError) as error:
                        answers.append(str(error))
                assert answers[0] == answers[1], fields


def test_processes_whose_clocks_differ_keep_one_order(database, tmp_path):
    """The same calls through a handle that is a day ahead and one that is a day behind, on either store."""

    def told(place):
        with (
            opened(path=place, now=later(days=1), embedder=HashEmbedder(64)) as ahead,
            opened(path=place, now=later(days=-1), embedder=HashEmbedder(64)) as behind,
        ):
            for number in range(6):
                one = (ahead, behind)[number % 2]
                one.remember(f"boat {number}", user="ana", session="s")
            ahead.remember("count 0", user="ana", id="n")
            for number in range(1, 5):
                (behind, ahead)[number % 2].update("n", user="ana", text=f"count {number}")
            behind.remember("the last word", user="ana", supersedes="n")
            units = ahead.list(user="ana", limit=None, current_only=False, order="oldest")
            found = [[hit.unit.id for hit in one.search("boat count", user="ana")] for one in (ahead, behind)]
            history = [(unit.version, unit.text, unit.recorded_time) for unit in ahead.history("n", user="ana")]
            past = [unit.text for unit in ahead.list(user="ana", limit=None)]
            seen = [one.search("count", user="ana", as_of=NOW) for one in (ahead, behind)]
            assert ahead.store.verify() == []
            texts = [(unit.text, unit.position, unit.version) for unit in units]
            return texts, found, history, past, [[hit.unit.text for hit in result] for result in seen]

    answer = told(database)
    assert answer == told(tmp_path / "m.db")
    assert [version for version, _, _ in answer[2]] == [1, 2, 3, 4, 5]
    assert sorted(position for text, position, _ in answer[0] if text.startswith("boat")) == [0, 1, 2, 3, 4, 5]


@pytest.mark.filterwarnings(
    "ignore::DeprecationWarning"
)  # Python warns about forking with threads: that is the point
def test_a_memory_refuses_to_be_used_across_a_fork(database):
    with opened(path=database) as memory:
        memory.remember("before the fork", user="ana")
        child = os.fork()
        if child == 0:
            try:
                memory.search("fork", user="ana")
            except ClosedStoreError as error:
                os._exit(0 if "fork" in str(error) else 3)
            os._exit(2)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert len(memory.search("fork", user="ana")) == 1
