"""A store is copied whole into another, SQLite or PostgreSQL, and back; an interrupted copy goes on."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from builders import later
from commands import holdfast
from holdfast import EmbeddingSpaceError, InputError, Settings
from holdfast.openers import derivation, open_store
from holdfast.store import contract
from holdfast.store.copying import copy_store
from holdfast.testing.builders import LATER, NOON, OTHER_SPACE, SPACE, Asker, draft
from whole_stores import all_of, fill

COPIER = Path(__file__).with_name("copier.py")


@pytest.fixture
def opened():
    """Return a function that opens stores, which are closed at the end."""
    stores, settings = [], Settings()

    def opening(location):
        stores.append(open_store(location, settings.store, derivation(settings)))
        return stores[-1]

    yield opening
    for store in stores:
        store.close()


def test_a_store_goes_to_a_database_and_back_and_is_the_same(tmp_path, database, opened):
    first, there, back = opened(tmp_path / "one.db"), opened(database), opened(tmp_path / "two.db")
    fill(first)
    out = copy_store(first, there)
    assert (out.whole, out.units, out.versions, out.documents, out.tenants) == (True, 44, 46, 2, 2)
    assert (out.added, out.updated, out.known) == (44, 0, 0)
    assert all_of(there) == all_of(first)
    assert (there.space(), there.verify()) == (SPACE, [])
    home = copy_store(there, back)
    assert (home.whole, home.vectors) == (True, out.vectors)
    assert all_of(back) == all_of(first)
    assert (back.space(), back.verify()) == (SPACE, [])
    for asker in (Asker(there), Asker(back)):
        same = Asker(first, asker.view)
        assert [asker.scan(), asker.find("boat"), asker.near()] == [same.scan(), same.find("boat"), same.near()]
        assert asker.find("sold") == same.find("sold") == set()


def test_a_copy_that_is_made_again_changes_nothing_and_brings_what_is_new(tmp_path, database, opened):
    first, there = opened(tmp_path / "one.db"), opened(database)
    ana = fill(first)
    copy_store(first, there)
    again = copy_store(first, there)
    assert (again.whole, again.added, again.updated, again.known) == (True, 0, 0, 44)
    ana.put(draft("new", "a new boat", minutes=99))
    ana.revise("u009", text="the boat sank", recorded_time=later(minutes=9))
    more = copy_store(first, there)
    assert (more.whole, more.added, more.updated, more.known) == (True, 1, 1, 43)
    assert all_of(there) == all_of(first)


def test_what_was_changed_at_both_places_is_named_and_not_written_over(tmp_path, database, opened):
    first, there = opened(tmp_path / "one.db"), opened(database)
    ana = fill(first)
    copy_store(first, there)
    Asker(there).revise("u010", text="changed there", recorded_time=LATER)
    ana.revise("u010", text="changed here", recorded_time=LATER)
    Asker(there).put(draft("alone", "only there", minutes=3))
    done = copy_store(first, there)
    assert (done.different, done.differing) == (1, ("the unit u010 of ana of tenant local",))
    assert Asker(there).units("u010")["u010"].text == "changed there"


def test_vectors_that_cannot_be_compared_are_refused_and_old_ones_stay_behind(tmp_path, opened):
    first, there = opened(tmp_path / "one.db"), opened(tmp_path / "two.db")
    fill(first)
    Asker(there).apply(contract.SpaceChange(OTHER_SPACE))
    with pytest.raises(EmbeddingSpaceError, match="holdfast reembed"):
        copy_store(first, there)
    assert there.tenants() == []
    Asker(first).apply(contract.SpaceChange(OTHER_SPACE))
    done = copy_store(first, there)
    assert (done.whole, done.vectors) == (True, 0)
    assert done.left > 40
    with pytest.raises(InputError, match="into itself"):
        copy_store(first, first)


def test_progress_is_told_from_nothing_to_all(tmp_path, opened):
    first, there, told = opened(tmp_path / "one.db"), opened(tmp_path / "two.db"), []
    fill(first)
    copy_store(first, there, lambda *step: told.append(step))
    assert told[-1] == ("comparing", 44, 44)
    assert ("copying", 44, 44) in told


@pytest.mark.parametrize("to_database", [True, False])
def test_a_copier_that_is_killed_leaves_nothing_that_another_cannot_finish(tmp_path, database, opened, to_database):
    here, there = (str(tmp_path / "one.db"), database) if to_database else (database, str(tmp_path / "two.db"))
    first = opened(here)
    fill(first, 700)
    kept = all_of(first)
    for batches in (1, 2):
        child = subprocess.Popen(
            [sys.executable, str(COPIER), here, there], stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True
        )
        for _ in range(batches):
            assert child.stdout.readline()
            child.stdin.write("go on\n")
            child.stdin.flush()
        child.kill()
        child.communicate()
        assert child.returncode < 0
    other = opened(there)
    done = copy_store(first, other)
    assert (done.whole, done.known > 0) == (True, True)
    assert all_of(other) == kept
    assert other.verify() == []


def test_the_command_copies_says_what_it_did_and_ends_with_an_error_when_they_differ(
    tmp_path, database, opened, monkeypatch
):
    first = opened(tmp_path / "one.db")
    ana = fill(first)

    def run(*arguments):
        said = holdfast("migrate", *arguments)
        return said.code, said

    places = ("--from", str(tmp_path / "one.db"), "--to", database)
    code, said = run(*places, "--json")
    assert (code, json.loads(said.out)["added"], json.loads(said.out)["whole"]) == (0, 44, True)
    code, said = run(*places)
    assert (code, "44 already stored" in said.out, "unit by unit" in said.out) == (0, True, True)
    Asker(opened(database)).revise("u010", text="changed there", recorded_time=LATER)
    ana.revise("u010", text="changed here", recorded_time=NOON)
    code, said = run(*places)
    assert (code, "u010" in said.out) == (5, True)
    assert run("--from", str(tmp_path / "none.db"), "--to", database)[0] == 5
    assert run("--from", "http://127.0.0.1:1", "--to", database)[0] == 2
