"""Law 16 on PostgreSQL: when `forget` says complete, no dump and no page of a table holds what was erased."""

import contextlib

import pytest

from builders import make_view
from histories import Tale, needles, residue, small_memory
from postgres_server import OWNER, OwnServer, name_of

pytest.importorskip("psycopg", reason="psycopg is not installed, so the store on PostgreSQL is not tested")

# Each is looked for in every page of a database; all of them would take minutes.
MOST_NEEDLES = 80
LENGTHS = (3, 9, 9, 30, 30, 400, 900)


@pytest.fixture(scope="module")
def own():
    server = OwnServer(autovacuum="off")
    yield server
    server.close()


@pytest.fixture
def own_database(own):
    with own.database() as address:
        yield address


def pages(server, address):
    """Return the folder with every page of a database, as they are on disk."""
    [(oid,)] = server.run(f"SELECT oid FROM pg_database WHERE datname = '{name_of(address)}'")
    server.run("CHECKPOINT")
    return server.data / "base" / str(oid)


def left_of(server, address, tale, gone, tmp_path):
    """Return what is left of units that are gone, in pages and in a dump."""
    kept = [said for key, said in tale.said.items() if key not in gone]
    found = sorted(needles([tale.said[key] for key in gone], kept).items())
    assert found
    wanted = dict(found[:: 1 + len(found) // MOST_NEEDLES])
    plain = tmp_path / "dump.sql"
    _, said = server.call("pg_dump", "-h", "127.0.0.1", "-p", str(server.port), "-U", OWNER, name_of(address))
    plain.write_text(said)
    return residue(pages(server, address), wanted), residue(plain.parent, wanted)


@contextlib.contextmanager
def told(address):
    with small_memory(address) as memory:
        tale = Tale(memory, "erasure")
        keys = tale.turns("s", LENGTHS) + tale.turns("t", LENGTHS)
        tale.update(keys[0], 30)
        tale.update(keys[1], 300)
        memory.compact(user="ana")
        memory.search("boat", user="ana")
        yield memory, tale, keys


def test_what_is_there_is_found_in_the_pages(own, own_database, tmp_path):
    """Else the tests below would say nothing."""
    with told(own_database) as (memory, tale, keys):
        assert all(left_of(own, own_database, tale, keys[:1], tmp_path))  # in both
        assert memory.store.verify() == []


@pytest.mark.parametrize("analysed", [False, True])
def test_nothing_is_left_in_pages_and_dumps(own, own_database, tmp_path, analysed):
    with told(own_database) as (memory, tale, keys):
        if analysed:  # as autovacuum does by itself: the statistics of the planner hold values of rows
            own.run("ANALYZE", name_of(own_database))
        gone = [keys[0], keys[2], keys[5], keys[8]]
        done = memory.forget(ids=gone, user="ana")
        assert (done.complete, done.pending) == (True, False), done.reason
        assert left_of(own, own_database, tale, gone, tmp_path) == (set(), set())
        assert memory.store.verify() == []
        done = memory.forget(all=True, user="ana")
        assert done.complete
        assert left_of(own, own_database, tale, keys, tmp_path) == (set(), set())


def test_a_reader_of_an_earlier_state_keeps_it_from_being_complete(own, own_database, tmp_path):
    """Pages keep what an older snapshot may still see, also of a table that its reader has not touched yet."""
    with told(own_database) as (memory, tale, keys), small_memory(own_database) as other:
        gone = keys[:3]
        with other.store.reading(make_view(tenant="elsewhere")):
            done = memory.forget(ids=gone, user="ana")
            left = left_of(own, own_database, tale, gone, tmp_path)
            assert not done.complete or not any(left), "it says complete, and bytes are left"
            assert done.complete is not done.pending
        assert memory.store.finish_erasing()
        assert left_of(own, own_database, tale, gone, tmp_path) == (set(), set())


def test_others_do_not_stand_still_while_an_erasure_waits_for_a_reader(own, own_database):
    """Whoever waits to write a table anew stops all who come after it: it must not wait long."""
    with told(own_database) as (memory, _, keys), small_memory(own_database) as other:
        with other.store.reading(make_view()) as reading:
            reading.units(keys)
            done = memory.forget(ids=keys[0], user="ana")
            assert (done.complete, done.pending) == (False, True)
            assert done.reason
            assert keys[0] in reading.units(keys)
        assert memory.store.finish_erasing()


def test_nothing_names_a_user_who_is_gone(own, own_database, tmp_path):
    with small_memory(own_database) as memory:
        memory.remember("a blue boat", user="zacharias", session="morningtalk", agent="cookingbot", id="firstunit")
        memory.ingest("# A\n\nThe mill burns.\n", user="zacharias", name="privatenotes.md")
        memory.remember("a red boat", user="ana")
        assert memory.forget(all=True, user="zacharias").complete
        wanted = {
            name.encode(): name for name in ("zacharias", "morningtalk", "cookingbot", "firstunit", "privatenotes")
        }
        assert residue(pages(own, own_database), wanted) == set()
        assert memory.store.verify() == []
