"""Law 16: when `forget` says complete, no file holds what was erased, or anything that was derived from it."""

import contextlib
import sqlite3
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import NOW, costly, later
from histories import Said, Tale, bytes_of, inside, made_up, needles, residue, small_memory, tail_of, talk
from holdfast import BusyStoreError, EmbedderError, InputError, NotFoundError
from holdfast.store.erasure import find_fragments
from holdfast.store.sqlite import index_file, live_index
from holdfast.store.sqlite import purge as eraser
from holdfast.testing.contracts import HashEmbedder


@pytest.fixture(autouse=True)
def _every_owner_is_worth_a_snapshot(monkeypatch):
    monkeypatch.setattr(live_index, "_WORTH_SAVING", 1)


@contextlib.contextmanager
def folder():
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


@given(st.binary(max_size=60), st.lists(st.binary(min_size=6, max_size=12), max_size=6), st.randoms())
def test_what_these_tests_look_for_is_found_as_one_by_one(noise, pieces, chance):
    put = [piece for piece in pieces if chance.random() < 0.5]
    data = noise[:9].join([noise, *put, b""])
    assert inside(data, pieces) == [piece for piece in pieces if piece in data]


# ------------------------------------------------------------------------------------------------ histories

# Words: a line, a paragraph, several pages.
LENGTHS = (3, 9, 9, 30, 30, 30, 400, 900)
shapes = st.fixed_dictionaries({
    "seed": st.integers(0, 2**32),
    "turns": st.lists(st.tuples(st.sampled_from(["s", "t"]), st.sampled_from(LENGTHS)), min_size=8,
                      max_size=12),
    "updates": st.lists(st.tuples(st.integers(0, 99), st.sampled_from([3, 30, 600])), max_size=5),
    "backups": st.lists(st.sampled_from(["start", "compacted", "end"]), max_size=3, unique=True),
    "compacted": st.booleans(),
    "reopened": st.booleans(),
    "document": st.booleans(),
})  # fmt: skip
ways = st.one_of(
    st.tuples(st.just("ids"), st.sets(st.integers(0, 99), min_size=1, max_size=6)),
    st.tuples(st.just("session"), st.sampled_from(["s", "t"])),
    st.tuples(st.just("filters"), st.sampled_from([0, 1])),
    st.just(("all", None)),
    st.just(("document", None)),
)


class World:
    """One generated history on disk."""

    def __init__(self, place, shape):
        self.place, self.shape = place, shape
        self.store = place / "store"
        self.store.mkdir()
        self.path = self.store / "memory.db"
        self.memory = self.opened()
        self.tale = Tale(self.memory, shape["seed"])
        self.sessions = {}
        self.documents = {}

    def opened(self):
        memory = small_memory(self.path)
        memory.store._database.connection.execute("PRAGMA synchronous = OFF")  # no power cut here, and many examples
        return memory

    def backup(self, moment):
        if moment in self.shape["backups"]:
            self.memory.backup(self.place / f"{moment}.db")

    def tell(self):
        for session in ("s", "t"):
            lengths = [words for name, words in self.shape["turns"] if name == session]
            if lengths:
                self.sessions |= dict.fromkeys(self.tale.turns(session, lengths), session)
        if self.shape["document"]:
            self.add_document()
        self.backup("start")
        for place, words in self.shape["updates"]:
            self.tale.update(self.keys[place % len(self.keys)], words)
        if self.shape["compacted"]:
            self.memory.compact(user="ana")
            self.backup("compacted")
        if self.shape["reopened"]:
            self.memory.close()
            self.memory = self.tale.memory = self.opened()
            self.memory.search("boat", user="ana")
        self.backup("end")

    def add_document(self):
        chance = self.tale.chance
        words = [[made_up(chance) for _ in range(9)] for _ in range(4)]
        body = "\n\n".join(f"You must {made_up(chance)}." if not i else " ".join(row) for i, row in enumerate(words))
        written = self.memory.ingest(body, name="notes.md", user="ana")
        self.documents = {one.id for one in written}
        told = Said(texts=[], others=body.replace("\n\n", " ").split())
        self.tale.said["notes.md"] = told

    @property
    def keys(self):
        return [key for key in self.tale.said if key != "notes.md"]

    def chosen(self, way):
        """Return the arguments of `forget` and the keys that go with it."""
        kind, what = way
        if kind == "ids":
            gone = {self.keys[place % len(self.keys)] for place in what}
            return {"ids": sorted(gone)}, gone
        if kind == "session":
            return {"session": what}, {key for key in self.keys if self.sessions[key] == what}
        if kind == "filters":
            notes = [self.tale.said[key].others[0] for key in self.keys]
            gone = set(self.keys[what::3])
            picked = [note for key, note in zip(self.keys, notes, strict=True) if key in gone]
            return {"filters": {"note": {"in": picked}}}, gone
        if kind == "document" and self.documents:
            return {"document": "notes.md"}, {"notes.md"}
        return {"all": True}, set(self.tale.said)

    def check_survivors(self, gone):
        for key in self.keys:
            if key not in gone:
                unit = self.memory.get(key, user="ana")
                assert unit.text == self.tale.said[key].texts[-1]
                assert len(self.memory.history(key, user="ana")) == len(self.tale.said[key].texts)
                last = unit.text.split()[-1]
                found = self.memory.search(last, user="ana", profile="fast", limit=1)
                reachable = {unit.covered_by, *(one.unit.id for one in found)}
                assert key in reachable or unit.covered_by is not None, last
        assert self.memory.store.verify() == []


def erase(world, way):
    """Tell a story, forget a part of it, and return what was forgotten and what no file may hold any more."""
    world.tell()
    arguments, gone = world.chosen(way)
    said = world.tale.said
    wanted = needles([said[key] for key in gone], [said[key] for key in said if key not in gone])
    if not gone:
        return None, gone, wanted
    erasure = world.memory.forget(user="ana", **arguments)
    return erasure, gone, wanted


@costly
@given(shapes, ways)
def test_nothing_of_what_is_forgotten_is_left(shape, way):
    with folder() as place:
        world = World(place, shape)
        erasure, gone, wanted = erase(world, way)
        if erasure is None:
            return
        assert erasure.complete
        assert residue(place, wanted) == set()
        world.check_survivors(gone)
        world.memory.close()  # saves the index
        assert residue(place, wanted) == set()
        world.memory = world.opened()
        world.check_survivors(gone)
        world.memory.close()
        assert residue(place, wanted) == set()


def leave_in_a_gap(path, fragment):
    """Put bytes where SQLite keeps none, as it does itself when it moves what a page holds."""
    data = bytearray(path.read_bytes())
    size = int.from_bytes(data[16:18], "big")
    for page in range(size, len(data), size):
        cells, content = (int.from_bytes(data[page + at : page + at + 2], "big") for at in (3, 5))
        gap = page + 8 + 2 * cells
        if data[page] == 13 and page + content - gap > len(fragment) + 64:  # 13: a leaf of a table
            data[gap + 32 : gap + 32 + len(fragment)] = fragment
            path.write_bytes(data)
            return
    raise AssertionError("no page has a gap")


@pytest.mark.parametrize(
    "start",
    [
        0,
        30,
    ],
)
def test_bytes_that_sqlite_left_in_a_gap_go_too(tmp_path, start):
    path = tmp_path / "memory.db"
    with small_memory(path) as memory:
        tale = Tale(memory, 8)
        keys = tale.turns("s", [30] * 6)
    said = tale.said[keys[0]]
    fragment = said.texts[0][start : start + 50].encode()
    leave_in_a_gap(path, fragment)
    with small_memory(path) as memory:
        assert memory.store.verify() == []
        assert memory.forget(user="ana", ids=keys[0]).complete
        assert fragment not in path.read_bytes()


# ------------------------------------------------------------------------------------------------- readers


def held_open(path):
    """Return a connection that reads an old state of the file until it is closed."""
    reader = sqlite3.connect(path, isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM units").fetchone()
    return reader


def pending(tmp_path, **settings):
    """Return a memory whose erasure a reader holds up, the reader, and what must go."""
    memory = small_memory(tmp_path / "memory.db", store__busy_timeout_ms=50)
    tale = Tale(memory, 11)
    keys = tale.turns("s", [9] * 8)
    reader = held_open(tmp_path / "memory.db")
    erasure = memory.forget(user="ana", ids=keys[:3])
    assert (erasure.pending, erasure.complete) == (True, False)
    assert keys[0] not in {unit.id for unit in memory.list(user="ana")}
    wanted = needles([tale.said[key] for key in keys[:3]], [tale.said[key] for key in keys[3:]])
    assert residue(tmp_path, wanted), "the reader held nothing back, so this shows nothing"
    return memory, reader, wanted, keys[3:]


def test_a_reader_holds_an_erasure_up_until_the_next_write(tmp_path):
    memory, reader, wanted, _ = pending(tmp_path)
    memory.remember("still reading", user="ana")
    assert residue(tmp_path, wanted)
    reader.close()
    memory.remember("free again", user="ana")
    assert residue(tmp_path, wanted) == set()
    assert memory.store.finish_erasing()
    memory.close()


def test_a_reader_holds_an_erasure_up_until_the_next_open(tmp_path):
    memory, reader, wanted, kept = pending(tmp_path)
    memory.close()
    reader.close()
    with small_memory(tmp_path / "memory.db") as memory:
        assert residue(tmp_path, wanted) == set()
        assert [unit.id for unit in memory.list(user="ana", order="oldest")] == kept


def test_a_process_that_dies_with_an_erasure_pending_leaves_it_to_the_next(tmp_path):
    memory, reader, wanted, _ = pending(tmp_path)
    memory._vectors.close()
    memory.store._database.connection.close()  # nothing is saved or finished, as when the process is killed
    reader.close()
    with small_memory(tmp_path / "memory.db"):
        assert residue(tmp_path, wanted) == set()


WRITES = {
    "update": lambda memory, keys: memory.update(keys[0], user="ana", text="new words"),
    "supersede": lambda memory, keys: memory.supersede(keys[0], by=keys[1], user="ana"),
    "forget": lambda memory, keys: memory.forget(user="ana", ids=keys[0]),
    "assemble": lambda memory, _: memory.assemble("words", user="ana"),
}


@pytest.mark.parametrize(
    "verb",
    [
        "forget",
        "update",
        "supersede",
        "assemble",
    ],
)
def test_any_write_goes_on_with_a_pending_erasure(tmp_path, verb):
    memory, reader, wanted, keys = pending(tmp_path)
    reader.close()
    WRITES[verb](memory, keys)
    left = residue(tmp_path, wanted)
    memory.close()
    assert left == set()


def test_another_memory_that_writes_goes_on_with_a_pending_erasure(tmp_path):
    with small_memory(tmp_path / "memory.db") as other:
        other.remember("open before", user="ben")
        memory, reader, wanted, _ = pending(tmp_path)
        memory._vectors.close()
        memory.store._database.connection.close()
        reader.close()
        other.remember("the next write", user="ben")
        left = residue(tmp_path, wanted)
    assert left == set()


def test_a_second_memory_saves_no_erased_word(tmp_path):
    memory = small_memory(tmp_path / "memory.db")
    tale = Tale(memory, 3)
    keys = tale.turns("s", [9] * 12)
    memory.compact(user="ana")
    other = small_memory(tmp_path / "memory.db")
    other.search("anything", user="ana")
    small_memory(tmp_path / "memory.db").close()
    other.search("anything", user="ana")
    assert memory.forget(user="ana", ids=keys[:5]).complete
    wanted = needles([tale.said[key] for key in keys[:5]], [tale.said[key] for key in keys[5:]])
    assert residue(tmp_path, wanted) == set()
    other.close()
    assert (tmp_path / "memory.db.index").exists()
    assert residue(tmp_path, wanted) == set()
    memory.close()
    assert residue(tmp_path, wanted) == set()


def test_a_snapshot_that_is_written_while_another_erases_does_not_stay(tmp_path, monkeypatch):
    memory = small_memory(tmp_path / "memory.db")
    tale = Tale(memory, 4)
    keys = tale.turns("s", [9] * 8)
    other = small_memory(tmp_path / "memory.db")
    other.search("anything", user="ana")
    pack = index_file.pack

    def erasing(arrays):
        monkeypatch.setattr(index_file, "pack", pack)
        memory.forget(user="ana", ids=keys[:4])
        return pack(arrays)

    monkeypatch.setattr(index_file, "pack", erasing)
    other.close()
    wanted = needles([tale.said[key] for key in keys[:4]], [tale.said[key] for key in keys[4:]])
    assert residue(tmp_path, wanted) == set()
    memory.close()


def test_a_snapshot_that_is_packed_while_its_owner_is_forgotten_does_not_stay(tmp_path, monkeypatch):
    memory = small_memory(tmp_path / "memory.db")
    tale = Tale(memory, 4)
    keys = tale.turns("s", [9] * 8)
    memory.remember("ben has the last word of the feed", user="ben")
    other = small_memory(tmp_path / "memory.db")
    other.search("anything", user="ana")
    pack = index_file.pack

    def forgetting(arrays):
        monkeypatch.setattr(index_file, "pack", pack)
        assert memory.forget(user="ana", all=True).complete
        return pack(arrays)

    monkeypatch.setattr(index_file, "pack", forgetting)
    other.close()
    assert residue(tmp_path, needles([tale.said[key] for key in keys], [])) == set()
    memory.close()
    assert residue(tmp_path, needles([tale.said[key] for key in keys], [])) == set()


def test_a_segment_of_an_owner_who_was_forgotten_is_not_kept(tmp_path):
    with small_memory(tmp_path / "memory.db") as memory:
        tale = Tale(memory, 6)
        keys = tale.turns("s", [9] * 8)
        memory.remember("ben has the last word of the feed", user="ben")
        memory.search("anything", user="ana")
    old = (tmp_path / "memory.db.index").read_bytes()
    with small_memory(tmp_path / "memory.db") as memory:
        assert memory.forget(user="ana", all=True).complete
    # As if somebody had read it just before it was removed, and were about to write it again.
    (tmp_path / "memory.db.index").write_bytes(old)
    with small_memory(tmp_path / "memory.db") as memory:
        assert len(memory.search("anything", user="ana")) == 0
        memory.search("the last word", user="ben")
        memory.remember("and one more", user="ben")
    assert residue(tmp_path, needles([tale.said[key] for key in keys], [])) == set()


def test_nothing_is_erased_while_a_snapshot_is_written(tmp_path, monkeypatch):
    """So a kill at that moment leaves no word in it that was erased before."""
    memory = small_memory(tmp_path / "memory.db", store__busy_timeout_ms=1)
    keys = talk(memory, 4)
    other = small_memory(tmp_path / "memory.db")
    other.search("anything", user="ana")
    write, refused = index_file.write, []

    def erasing(*given):
        with pytest.raises(BusyStoreError) as caught:
            memory.forget(user="ana", ids=keys[0])
        refused.append(str(caught.value))
        write(*given)

    monkeypatch.setattr(index_file, "write", erasing)
    other.close()
    monkeypatch.setattr(index_file, "write", write)
    assert len(refused) == 1
    assert "this write was undone" in refused[0]
    assert memory.forget(user="ana", ids=keys[0]).complete
    memory.close()


# ------------------------------------------------------------------------------------------------- backups


def test_another_store_in_the_place_of_a_backup_is_left_alone(tmp_path):
    memory = small_memory(tmp_path / "memory.db")
    keys = talk(memory, 3)
    memory.backup(tmp_path / "copy.db")
    (tmp_path / "copy.db").unlink()
    with small_memory(tmp_path / "copy.db") as stranger:
        assert talk(stranger, 3) == keys
    before = (tmp_path / "copy.db").read_bytes()
    erasure = memory.forget(user="ana", ids=keys[0])
    assert [one for one in erasure.outside if "copy.db (another store is there now" in one]
    assert (tmp_path / "copy.db").read_bytes() == before
    memory.close()


def other_database(path):
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE mine (word TEXT)")
    connection.close()


FOREIGN = {
    "text": lambda path: path.write_text("a shopping list of mine\n" * 20, encoding="utf-8"),
    "database": other_database,
    "folder": lambda path: path.mkdir(),
}


@pytest.mark.parametrize("put", FOREIGN.values(), ids=FOREIGN)
def test_what_is_no_store_in_the_place_of_a_backup_holds_no_erasure_up(tmp_path, put):
    memory = small_memory(tmp_path / "memory.db")
    keys = talk(memory, 3)
    memory.backup(tmp_path / "copy.db")
    (tmp_path / "copy.db").unlink()
    put(tmp_path / "copy.db")
    before = bytes_of(tmp_path).get("copy.db")
    erasure = memory.forget(user="ana", ids=keys[0])
    assert (erasure.complete, erasure.pending) == (True, False)
    assert "copy.db (" in erasure.outside[0]
    assert bytes_of(tmp_path).get("copy.db") == before
    memory.close()


def test_only_who_forgets_waits_for_a_backup_that_somebody_holds(tmp_path, monkeypatch):
    monkeypatch.setattr(eraser, "COPY_PATIENCE_MS", 1)
    waits, connected = [], eraser.open_connection

    def watching(path, settings):
        waits.append(settings.busy_timeout_ms)
        return connected(path, settings)

    memory = small_memory(tmp_path / "memory.db")
    keys = talk(memory, 3)
    memory.backup(tmp_path / "copy.db")
    holder = sqlite3.connect(tmp_path / "copy.db", isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    monkeypatch.setattr(eraser, "open_connection", watching)
    assert not memory.forget(user="ana", ids=keys[0]).complete
    memory.remember("a write while it is held", user="ana")
    assert waits[0] == 1
    assert set(waits[1:]) == {0}
    holder.close()
    memory.remember("a write afterwards", user="ana")
    assert memory.store.finish_erasing()
    memory.close()


def test_nothing_names_a_forgotten_user_in_the_store_or_in_its_backups(tmp_path):
    names = {"user": "Userquibble", "tenant": "Tenantquibble"}
    with small_memory(tmp_path / "memory.db") as memory:
        memory.remember("the boat is mauve", session="Sessionquibble", agent="Agentquibble", **names)
        memory.backup(tmp_path / "copy.db")
        with small_memory(tmp_path / "copy.db") as copy:
            copy.search("boat", **names)
            assert memory.forget(all=True, **names).complete
            assert len(copy.search("boat", **names)) == 0
        found = {name for name, data in bytes_of(tmp_path).items() if b"quibble" in data or b"mauve" in data}
    assert found == set()


def test_a_copy_that_still_holds_bytes_of_it_is_not_called_complete(tmp_path, monkeypatch):
    memory = small_memory(tmp_path / "memory.db")
    keys = talk(memory, 3)
    memory.backup(tmp_path / "copy.db")
    monkeypatch.setattr(eraser, "_erase_noted", lambda *_: None)
    monkeypatch.setattr(eraser, "still_used", lambda *_: set())  # no unit that is kept accounts for what is found
    erasure = memory.forget(user="ana", ids=keys[0])
    assert not erasure.complete
    assert "copy.db (bytes of it are left" in erasure.outside[0]
    monkeypatch.undo()
    memory.remember("the next write goes on", user="ana")
    assert b"harbour number0" not in (tmp_path / "copy.db").read_bytes()
    memory.close()


def test_forgetting_in_a_copy_does_not_look_for_the_copy(tmp_path):
    with small_memory(tmp_path / "memory.db") as memory:
        keys = talk(memory, 3)
        memory.backup(tmp_path / "copy.db")
    with small_memory(tmp_path / "copy.db") as copy:
        erasure = copy.forget(user="ana", ids=keys[0])
    assert (erasure.complete, erasure.outside) == (True, ())


def test_a_backup_that_somebody_reads_is_not_called_complete(tmp_path, monkeypatch):
    monkeypatch.setattr(eraser, "COPY_PATIENCE_MS", 50)
    memory = small_memory(tmp_path / "memory.db")
    tale = Tale(memory, 5)
    keys = tale.turns("s", [9] * 8)
    memory.backup(tmp_path / "copy.db")
    wanted = needles([tale.said[key] for key in keys[:3]], [tale.said[key] for key in keys[3:]])
    reader = held_open(tmp_path / "copy.db")
    erasure = memory.forget(user="ana", ids=keys[:3])
    left = residue(tmp_path, wanted)
    reader.close()
    memory.close()
    assert left == set() or not erasure.complete


def test_copies_that_cannot_be_reached_are_named(tmp_path):
    memory = small_memory(tmp_path / "memory.db")
    keys = talk(memory, 4)
    for name in ("moved.db", "broken.db", "fine.db"):
        memory.backup(tmp_path / name)
    (tmp_path / "moved.db").rename(tmp_path / "elsewhere.db")
    (tmp_path / "broken.db").write_bytes((tmp_path / "broken.db").read_bytes()[:100] + b"no database" * 2000)
    erasure = memory.forget(user="ana", ids=keys[0])
    assert not erasure.complete
    assert {name for name in ("moved.db", "broken.db", "fine.db") if any(name in one for one in erasure.outside)} == {
        "moved.db",
        "broken.db",
    }
    assert b"number0" not in (tmp_path / "fine.db").read_bytes()
    memory.close()


def test_a_restored_backup_is_a_memory_without_what_was_erased(tmp_path):
    memory = small_memory(tmp_path / "memory.db")
    keys = talk(memory, 16)
    memory.compact(user="ana")
    assert memory.backup(tmp_path / "copy.db") == len(memory.list(user="ana", limit=None))
    memory.forget(user="ana", ids=keys[0])
    memory.close()
    with small_memory(tmp_path / "copy.db") as copy:
        assert copy.store.verify() == []
        assert {unit.id for unit in copy.list(user="ana", limit=None) if unit.kind == "turn"} == set(keys[1:])
        assert [hit.unit.id for hit in copy.search("number7", user="ana", profile="fast", limit=1)]
        for unit in copy.list(user="ana", limit=None):
            if unit.kind == "summary":
                assert copy.expand(unit.id, user="ana")


# ----------------------------------------------------------------------------------------- what is refused


@costly
@given(st.integers(0, 2**32), ways)
def test_a_dry_run_changes_not_one_byte_and_lists_what_then_goes(seed, way):
    with folder() as place:
        shape = {"seed": seed, "turns": [("s", 9)] * 10 + [("t", 9)] * 4, "updates": [(1, 9)], "backups": ["end"],
                 "compacted": True, "reopened": False, "document": True}  # fmt: skip
        world = World(place, shape)
        world.tell()
        arguments, gone = world.chosen(way)
        before = bytes_of(place)
        listed = world.memory.forget(user="ana", dry_run=True, **arguments)
        assert listed.dry_run
        assert bytes_of(place) == before
        there = {unit.id for unit in world.memory.list(user="ana", limit=None, current_only=False)}
        done = world.memory.forget(user="ana", **arguments)
        left = {unit.id for unit in world.memory.list(user="ana", limit=None, current_only=False)}
        assert (listed.units, listed.summaries, listed.documents) == (done.units, done.summaries, done.documents)
        assert {unit.id for unit in (*listed.units, *listed.summaries)} == there - left
        assert gone - {"notes.md"} <= there - left
        world.memory.close()


@pytest.fixture
def memory(tmp_path):
    with small_memory(tmp_path / "memory.db") as memory:
        yield memory


def everything(memory):
    return {
        (unit.id, unit.version, unit.covered_by) for unit in memory.list(user="ana", limit=None, current_only=False)
    }


def test_a_filter_that_matches_everything_needs_all(memory):
    talk(memory, 4, metadata={"label": "note"})
    before = everything(memory)
    with pytest.raises(InputError, match=r"all 4 units .*all=True"):
        memory.forget(user="ana", filters={"label": "note"})
    with pytest.raises(InputError, match="all=True"):
        memory.forget(user="ana", filters={"label": "note"}, dry_run=True)
    assert everything(memory) == before
    assert len(memory.forget(user="ana", all=True).units) == 4


def test_unknown_ids_refuse_the_whole(memory):
    keys = talk(memory, 4)
    before = everything(memory)
    for wrong in (["unknown"], [keys[0], "unknown"], ["unknown", keys[0]]):
        for dry_run in (True, False):
            with pytest.raises(NotFoundError, match="unknown"):
                memory.forget(user="ana", ids=wrong, dry_run=dry_run)
    with pytest.raises(NotFoundError):
        memory.forget(user="ben", ids=keys[0])
    with pytest.raises(NotFoundError, match="no document"):
        memory.forget(user="ana", document="none.md")
    assert everything(memory) == before


@pytest.mark.parametrize("named", [{}, {"ids": "x", "all": True}, {"session": "s", "document": "d"}, {"ids": []}])
def test_what_to_forget_is_named_in_one_way(memory, named):
    talk(memory, 2)
    before = everything(memory)
    with pytest.raises(InputError):
        memory.forget(user="ana", **named)
    assert everything(memory) == before


def test_part_of_a_document_is_refused(memory):
    written = memory.ingest(
        "# A\n\nOne boat.\n\n# B\n\nTwo harbours.\n\n# C\n\nThree kilns.", name="notes.md", user="ana"
    )
    with pytest.raises(InputError, match=r"notes\.md.*2 more units"):
        memory.forget(user="ana", ids=written[0].id)
    assert len(memory.list(user="ana")) == 3
    erasure = memory.forget(user="ana", ids=[one.id for one in written])
    assert (erasure.documents, erasure.complete) == (("notes.md",), True)
    with pytest.raises(NotFoundError):
        memory.forget(user="ana", document="notes.md")


@pytest.mark.parametrize(("passed", "changed"), [(0, False), (2, False), (2, True)])
def test_a_lifetime_takes_no_part_out_of_its_document(tmp_path, passed, changed):
    moment = [NOW]
    with small_memory(tmp_path / "other.db", now=lambda: moment[0]) as memory:
        first, _ = memory.ingest("# A\n\nOne quagga.\n\n# B\n\nTwo harbours.\n", name="notes.md", user="ana")
        memory.update(first.id, user="ana", ttl=3600)
        moment[0] = later(hours=passed)
        if changed:
            memory.update(first.id, user="ana", topic="zoo")
        with pytest.raises(InputError, match=r"notes\.md.*1 more units"):
            memory.forget(user="ana", ids=first.id)
        memory.ingest("# B\n\nTwo harbours.\n", name="notes.md", user="ana")
        assert memory.forget(user="ana", ids=first.id).complete
        assert b"quagga" not in b"".join(bytes_of(tmp_path).values())


def test_expired_and_superseded_units_are_forgotten_too(memory, tmp_path):
    moment = [NOW]
    with small_memory(tmp_path / "other.db", now=lambda: moment[0]) as memory:
        memory.remember("the quagga leaves soon", user="ana", session="s", ttl=60.0)
        [old] = memory.remember("the okapi was here", user="ana", session="s")
        memory.remember("the bonobo is here", user="ana", session="s", supersedes=old.id)
        moment[0] = later(hours=1)
        assert len(memory.forget(user="ana", session="s").units) == 3
        data = b"".join(bytes_of(tmp_path).values())
        assert not [word for word in (b"quagga", b"okapi", b"bonobo") if word in data]


# --------------------------------------------------------------------------------------- what is made again


def test_a_summary_is_made_again_from_what_is_left(memory):
    keys = talk(memory, 12)
    [done] = memory.compact(user="ana", session="s")
    erasure = memory.forget(user="ana", ids=done.clusters[0].turns[1])
    assert [unit.id for unit in erasure.summaries] == [done.clusters[0].summary]
    [made] = erasure.rebuilt
    left = [key for key in done.clusters[0].turns if key != done.clusters[0].turns[1]]
    assert [unit.id for unit in memory.expand(made, user="ana")] == left
    assert sorted(erasure.uncovered) == sorted(left)
    assert len(keys) == 12


def test_what_is_made_again_leaves_the_tail_alone(memory):
    keys = talk(memory, 20)
    [done] = memory.compact(user="ana", session="s")
    cluster = done.clusters[-1].turns
    erasure = memory.forget(user="ana", ids=[cluster[0], *keys[keys.index(cluster[-1]) + 1 :]])
    covered = {unit.id for summary in erasure.rebuilt for unit in memory.expand(summary, user="ana")}
    assert not covered & set(tail_of(memory))


@pytest.mark.parametrize("how", ["none", "broken"])
def test_an_erasure_is_reported_without_an_embedder(tmp_path, how):
    with small_memory(tmp_path / "memory.db") as memory:
        keys = talk(memory, 12)
        memory.compact(user="ana")
    with small_memory(tmp_path / "memory.db", embedder=None if how == "none" else Broken(64)) as memory:
        erasure = memory.forget(user="ana", ids=keys[0])
    assert erasure.complete


class Broken(HashEmbedder):
    """Fails whenever it is asked."""

    def embed_query(self, text):
        raise EmbedderError("the embedder is away; try again later")


def test_a_link_to_an_erased_unit_of_everyone_goes(memory):
    [shared] = memory.remember("the harbour opens at nine", user="ana", scope="global")
    [mine] = memory.remember("see the harbour", user="ana", links=shared.id)
    memory.forget(user="ana", ids=shared.id)
    assert memory.get(mine.id, user="ana").links == ()


def test_a_private_summary_of_an_erased_turn_of_everyone_goes_too(memory, tmp_path):
    keys = talk(memory, 16, scope="global")
    memory.compact(user="ana", session="s")
    words = [b"harbour number%d and" % number for number in range(4)]
    assert memory.forget(user="ana", ids=keys[:4]).complete
    data = b"".join(bytes_of(tmp_path).values())
    assert not [word for word in words if word in data]


# ----------------------------------------------------------------------------------------------- the search


@given(st.data())
def test_many_pieces_are_found_as_one_by_one(data):
    """Pieces of all lengths, at every place of the data, more of them than are looked for one by one."""
    letters = st.binary(min_size=6, max_size=24).map(lambda some: bytes(one % 3 + 97 for one in some))
    text = bytes(one % 3 + 97 for one in data.draw(st.binary(min_size=0, max_size=400)))
    cuts = [(at, at + 6 + at % 19) for at in range(0, max(0, len(text) - 5), data.draw(st.integers(1, 5)))]
    pieces = {text[start:end] for start, end in cuts} | {*data.draw(st.lists(letters, min_size=1, max_size=60))}
    pieces = {piece for piece in pieces if len(piece) >= 6}
    halves = [text[: len(text) // 2 + 24], text[len(text) // 2 :]]
    assert find_fragments(halves, pieces) == {piece for piece in pieces if any(piece in half for half in halves)}
    assert find_fragments([], pieces) == find_fragments(halves, ()) == set()


def test_words_that_the_file_format_says_too_do_not_hold_an_erasure_up(tmp_path):
    memory = small_memory(tmp_path / "memory.db")
    memory.remember([f"a line{' ' * 40}and the other", "checksum"], user="ana", session="s")
    assert memory.forget(user="ana", all=True).complete


def test_what_is_erased_is_listed_oldest_first_and_read_when_asked_for(tmp_path):
    memory = small_memory(tmp_path / "memory.db")
    talk(memory, 3)
    before = [unit for unit in memory.list(user="ana", order="oldest", limit=9) if unit.user == "ana"]
    units = memory.forget(user="ana", all=True).units
    assert (len(units), [*units], units[1:]) == (3, before, (*before[1:],))


def test_a_unit_is_forgotten_without_an_index(tmp_path, monkeypatch):
    with small_memory(tmp_path / "memory.db") as memory:
        [first, *_] = talk(memory, 3)
    memory = small_memory(tmp_path / "memory.db")
    monkeypatch.setattr(live_index.LiveIndex, "shards", lambda *_: pytest.fail("an index was loaded"))
    assert memory.forget(user="ana", ids=first).complete
