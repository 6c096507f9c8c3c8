"""A store whose vectors another embedder made: found by words, re-embedded once, and never compared across (C10)."""

import contextlib
import logging
import signal
import sqlite3
import subprocess
import sys
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders import ask, make_view, opened, propose, waiting
from holdfast import EmbedderError, EmbeddingSpaceError, Settings
from holdfast.kernels.vectors import halve
from holdfast.lifecycle import embedding
from holdfast.store.queries import DenseQuery
from holdfast.store.sqlite import live_index
from holdfast.testing.contracts import HashEmbedder

# Nothing is refused: these tests are about what is found, and how.
EAGER = Settings.load({"refusal.enabled": False}, environ={}).without_timeouts()
THINGS = ("copper kettle", "lamp in the hall", "net to mend", "loose brick", "wet coat")
MANY = 500  # more than are embedded at once


class Turned(HashEmbedder):
    """As long as the hash embedder's vectors, in another order: only the space's name tells them apart."""

    def __init__(self, dims=64, name="turned"):
        super().__init__(dims)
        self.space = f"{name}/{dims}/bag/1"
        self._places = np.random.default_rng([*name.encode()]).permutation(dims)

    def embed_query(self, text):
        return super().embed_query(text)[self._places]


class Held(Turned):
    """An embedder that makes nothing in the background before it is told to."""

    def __init__(self):
        super().__init__()
        self.go = threading.Event()

    def embed_documents(self, texts):
        if threading.current_thread() is not threading.main_thread():
            self.go.wait()
        return super().embed_documents(texts)


class Counted(Turned):
    """An embedder that counts the texts it is given."""

    count = 0

    def embed_documents(self, texts):
        self.count += len(texts)
        return super().embed_documents(texts)


def open_with(path, embedder):
    return opened(EAGER, path=path, embedder=embedder)


def fill(path, embedder, count=MANY, user="ana"):
    with open_with(path, embedder) as memory:
        memory.remember([f"{THINGS[i % 5]} number {i}" for i in range(count)], user=user)


def catch_up(memory):
    """Wait until the background has done its work."""
    memory._vectors._worker.join()


def embedded(memory, embedder):
    """Return the ids that are proposed by meaning."""
    query = DenseQuery(embedder.space, embedder.embed_query("anything"))
    return set(propose(memory, query, 10_000, make_view(user="ana")))


def vectors_of(memory, space, ids):
    query = DenseQuery(space, np.zeros(1, dtype=np.float32))
    found = ask(memory, lambda reading: reading.evidence(query, ids), make_view(user="ana"))
    return dict(zip(found.ids, found.vectors, strict=True))


def stored(embedder, text):
    """Return what a store gives back of a text's vector."""
    return halve(embedder.embed_query(text)).astype(np.float32)


def assert_all_of(memory, embedder):
    """Every unit has the vector that this embedder gives it."""
    units = memory.list(user="ana", limit=None)
    rows = vectors_of(memory, embedder.space, [unit.id for unit in units])
    assert {one.id: rows[one.id].tobytes() for one in units} == {
        one.id: stored(embedder, one.text).tobytes() for one in units
    }
    assert memory.store.verify() == []


def standing(found):
    return [(hit.unit.id, hit.score.hex(), hit.rank) for hit in found]


# ------------------------------------------------------------------------------------ an embedder it never had


def test_a_small_store_is_embedded_anew_at_the_first_question(tmp_path):
    path, other = tmp_path / "store.db", Turned()
    fill(path, HashEmbedder(64), 12)
    with open_with(path, other) as memory:
        found = memory.search("the copper kettle", user="ana")
        assert (found.warnings, memory.store.space(), waiting(memory, other.space)) == ((), other.space, 0)
        assert found[0].cosine > 0
        assert_all_of(memory, other)


@pytest.mark.parametrize("loaded", [False, True], ids=["not yet read", "read before"])
def test_a_large_store_is_found_by_words_and_says_so_until_its_vectors_are_made_in_the_background(tmp_path, loaded):
    path, other = tmp_path / "store.db", Held()
    fill(path, HashEmbedder(64))
    with open_with(path, other) as memory:
        if loaded:
            assert memory.search("kettle number 35", user="ana", profile="fast")
        found = memory.search("the copper kettle, number 35", user="ana", explain=True)
        assert (found[0].unit.text, found[0].cosine) == ("copper kettle number 35", None)
        assert {result.strategy_id for result in found.trace.results} <= {"lexical", "hdc-vsa"}
        [said] = found.warnings
        assert said == found.degraded
        assert f"vectors of {other.space} are pending for 500 of 500 units" in said
        assert "results are lexical only" in said
        assert "holdfast reembed" in said
        assert said == memory.assemble("the copper kettle, number 35", user="ana").degraded
        assert memory.search("kettle", user="ana", profile="fast").warnings == ()  # asks for no meaning
        stats = memory.stats(user="ana", whole=True)
        assert (stats.space, stats.waiting) == (other.space, 500)
        memory.remember("a parrot on the roof", id="new", user="ana")
        assert embedded(memory, other) == {"new"}  # what is written meanwhile does not wait
        assert embedded(memory, HashEmbedder(64)) == set()
        other.go.set()
        catch_up(memory)
        found = memory.search("the copper kettle, number 35", user="ana")
        assert (found.warnings, found[0].unit.text) == ((), "copper kettle number 35")
        assert found[0].cosine > 0
        assert len(embedded(memory, other)) == MANY + 1
        assert_all_of(memory, other)
    with open_with(path, other) as memory, open_with(tmp_path / "new.db", Turned()) as fresh:
        fresh.remember([f"{THINGS[i % 5]} number {i}" for i in range(MANY)], user="ana")
        fresh.remember("a parrot on the roof", id="new", user="ana")
        for question in ("copper kettle 35", "a wet coat", "who mends nets?"):
            theirs, ours = ([hit.unit.text for hit in one.search(question, user="ana")] for one in (fresh, memory))
            assert theirs == ours


def test_vectors_are_compared_again_when_few_units_are_left_waiting(tmp_path, monkeypatch):
    monkeypatch.setattr(embedding, "_AT_ONCE", 20)
    path, held = tmp_path / "store.db", Held()
    fill(path, Turned(), 400)
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DELETE FROM vectors WHERE unit_key > 340")
    with open_with(path, held) as memory:
        found = memory.search("copper kettle", user="ana")
        assert any(hit.cosine for hit in found)
        assert "pending for 60 of 400 units" in found.warnings[0]
        assert "they are found lexically only" in found.warnings[0]
        held.go.set()


# Takes a store over, and is killed when the third batch is due.
DYING = """
import os, signal, sys
sys.path.insert(0, sys.argv[2])
from test_another_embedder import Turned, open_with

class Dying(Turned):
    batches = 0

    def embed_documents(self, texts):
        self.batches += 1
        if self.batches == 3:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().embed_documents(texts)

with open_with(sys.argv[1], Dying()) as memory:
    memory.search("kettle", user="ana")
    memory._vectors._worker.join()
"""


def test_a_kill_in_the_middle_costs_a_batch_and_the_next_one_to_open_goes_on(tmp_path):
    path, other = tmp_path / "store.db", Counted()
    fill(path, HashEmbedder(64))
    here = str(tmp_path.__class__(__file__).parent)
    found = [sys.executable, "-c", DYING, str(path), here]
    child = subprocess.run(found, capture_output=True, text=True, check=False, env={"PYTHONPATH": ":".join(sys.path)})
    assert child.returncode == -signal.SIGKILL, child.stderr
    with open_with(path, other) as memory:
        assert waiting(memory, other.space) == MANY - 128
        memory.search("kettle", user="ana")
        catch_up(memory)
        assert other.count == MANY - 128
        assert_all_of(memory, other)


def test_closing_in_the_middle_waits_for_one_batch_alone(tmp_path):
    path, other = tmp_path / "store.db", Held()
    fill(path, HashEmbedder(64))
    memory = open_with(path, other)
    memory.search("kettle", user="ana")
    memory._vectors._stop.set()  # what `close` does first; a batch is under way
    other.go.set()
    memory.close()
    with open_with(path, Turned()) as memory:
        assert waiting(memory, other.space) == MANY - 64


def test_the_words_that_were_read_are_not_read_again_when_the_space_changes(tmp_path, monkeypatch):
    monkeypatch.setattr(live_index, "_WORTH_SAVING", 1)
    path = tmp_path / "store.db"
    fill(path, HashEmbedder(64), 30)
    with open_with(path, HashEmbedder(64)) as memory:
        memory.search("kettle", user="ana")  # loads the index, which is saved when the memory closes
        memory.remember("one more", user="ana")

    def built(_, tenant, user):
        assert user == "", "built anew"
        return live_index.Shard()  # nothing is global

    monkeypatch.setattr(live_index.LiveIndex, "_built", built)
    other = Turned()
    with open_with(path, other) as memory:
        assert memory.search("copper kettle", user="ana")[0].cosine > 0
        assert_all_of(memory, other)
        with open_with(path, HashEmbedder(64)) as back:  # and from another process
            back.reembed()
        assert embedded(memory, other) == set()
        assert memory.search("copper kettle", user="ana")[0].cosine is None


# ------------------------------------------------------------------------------------ an embedder it had before


def test_an_embedder_that_the_store_had_before_does_not_take_it_back(tmp_path, caplog):
    path, old, new = tmp_path / "store.db", HashEmbedder(64), Turned()
    fill(path, old, 12)
    with open_with(path, old) as one, open_with(path, new) as two:
        assert one.search("copper kettle", user="ana")[0].cosine > 0
        assert two.search("copper kettle", user="ana")[0].cosine > 0  # takes over
        found = one.search("copper kettle", user="ana")
        assert (found[0].unit.text[:13], found[0].cosine) == ("copper kettle", None)
        [said] = found.warnings
        assert said.startswith(f"embedder unavailable; lexical results only: the store's vectors are of {new.space}")
        assert old.space in said
        assert "run `holdfast reembed`, or set embedding.embedder back" in said
        with caplog.at_level(logging.WARNING, logger="holdfast"):
            one.remember("a parrot on the roof", id="p", user="ana")
            one.update("p", user="ana", text="a green parrot on the roof")
        assert "the text is stored; vectors are pending" in caplog.text
        assert one.search("green parrot", user="ana")[0].unit.id == "p"
        assert one.assemble("green parrot", user="ana").warnings[0] == said
        with pytest.raises(EmbeddingSpaceError, match="reembed") as error:
            one.compact(user="ana")
        assert isinstance(error.value, EmbedderError)
        assert (two.store.space(), waiting(two, new.space)) == (new.space, 1)
    with open_with(path, new) as two:
        assert two.search("green parrot", user="ana")[0].unit.id == "p"
        assert waiting(two, new.space) == 0
        assert_all_of(two, new)


def test_two_processes_with_two_embedders_do_not_undo_each_others_work_for_ever(tmp_path):
    path, old, new = tmp_path / "store.db", Counted(name="old"), Counted(name="new")
    fill(path, old, 50)
    for _ in range(5):
        for embedder in (new, old):
            with open_with(path, embedder) as memory:
                assert memory.search("copper kettle", user="ana")
                assert memory.store.space() == new.space
    assert (old.count, new.count) == (50, 50)
    with open_with(path, old) as one, open_with(path, new) as two:
        assert one.reembed() == 0  # whoever wants it back says so
        assert two.search("copper kettle", user="ana")[0].cosine is None
        assert one.search("copper kettle", user="ana")[0].cosine > 0
        assert two.search("copper kettle", user="ana").warnings
    assert (old.count, new.count) == (100, 50)


def test_going_back_costs_only_what_was_replaced(tmp_path):
    path, old, held = tmp_path / "store.db", Counted(name="old"), Held()
    fill(path, old)
    memory = open_with(path, held)
    memory.search("kettle", user="ana")
    memory._vectors._stop.set()
    held.go.set()
    memory.close()
    old.count = 0
    with open_with(path, old) as memory:
        assert memory.reembed() == 0
        assert old.count == 64
        assert memory.search("copper kettle", user="ana").warnings == ()
        assert_all_of(memory, old)


# ------------------------------------------------------------------------------------ `reembed`


@pytest.mark.parametrize("other", [Turned(64), HashEmbedder(100)], ids=["same length", "another length"])
def test_reembedding_gives_every_unit_a_vector_of_the_new_space(tmp_path, other):
    path = tmp_path / "store.db"
    fill(path, HashEmbedder(64), 24)
    heard = []
    with open_with(path, other) as memory:
        assert memory.reembed(progress=heard.append) == 0
        assert (sum(heard), memory.store.space()) == (24, other.space)
        found = standing(memory.search("copper kettle", user="ana"))
        assert_all_of(memory, other)
        assert memory.reembed() == 0
    with open_with(path, other) as memory:
        assert standing(memory.search("copper kettle", user="ana")) == found


class StopHere(Exception):
    """What a progress callback raises when its user has had enough."""


@pytest.mark.parametrize("other", [Turned(64), HashEmbedder(100)], ids=["same length", "another length"])
def test_an_interrupted_reembedding_goes_on_where_it_stopped_and_never_mixes_spaces(tmp_path, monkeypatch, other):
    monkeypatch.setattr(live_index, "_WORTH_SAVING", 1)
    path, old = tmp_path / "store.db", HashEmbedder(64)
    fill(path, old, 150)
    with open_with(path, old) as memory:
        assert len(embedded(memory, old)) == 150  # loads the index, which is saved when the memory closes

    def stop(_):
        raise StopHere

    with open_with(path, other) as memory:
        with pytest.raises(StopHere):
            memory.reembed(progress=stop)
        left = waiting(memory, other.space)
        assert 0 < left < 150
        done = {unit.id for unit in memory.list(user="ana", limit=None)} - {
            unit.id for unit in memory.store.pending(other.space, 1000)
        }
        assert embedded(memory, other) == done
        assert embedded(memory, old) == set()
        assert memory.search("wet coat number 149", user="ana", profile="fast")[0].unit.text == "wet coat number 149"
    with open_with(path, other) as memory:
        assert embedded(memory, other) == done
        assert {row.shape for row in vectors_of(memory, other.space, [*done]).values()} == {(other.dims,)}
    heard = []
    with open_with(path, other) as memory:
        assert memory.reembed(progress=heard.append) == 0
        assert sum(heard) == left
        assert len(embedded(memory, other)) == 150


def test_reembedding_goes_on_with_what_the_background_has_begun(tmp_path):
    path, other = tmp_path / "store.db", Counted()
    fill(path, HashEmbedder(64))
    with open_with(path, other) as memory:
        memory.search("kettle", user="ana")
        assert memory.reembed() == 0
        assert other.count == MANY
        assert memory.search("copper kettle", user="ana").warnings == ()


def test_reembedding_without_an_embedder_is_an_error_and_changes_nothing(tmp_path):
    path = tmp_path / "store.db"
    fill(path, HashEmbedder(64), 12)
    with contextlib.closing(sqlite3.connect(path)) as connection:
        before = [*connection.iterdump()]
    with opened(path=path) as memory, pytest.raises(EmbedderError, match="none"):
        memory.reembed()
    with contextlib.closing(sqlite3.connect(path)) as connection:
        assert [*connection.iterdump()] == before


# ------------------------------------------------------------------------------------ never across

STEPS = st.lists(
    st.tuples(st.sampled_from(["old", "new", "third"]), st.sampled_from(["remember", "search", "reembed", "open"])),
    max_size=14,
)


@settings(max_examples=40, deadline=None)
@given(STEPS)
def test_no_two_vectors_of_different_spaces_are_ever_compared(tmp_path_factory, steps):
    path = tmp_path_factory.mktemp("spaces") / "store.db"
    question = "copper kettle lamp"
    with contextlib.ExitStack() as stack:
        models = {name: Turned(name=name) for name in ("old", "new", "third")}
        memories = {name: stack.enter_context(open_with(path, model)) for name, model in models.items()}
        memories["old"].remember([f"{thing} {i}" for i, thing in enumerate(THINGS)], user="ana")
        for number, (who, step) in enumerate(steps):
            memory, model = memories[who], models[who]
            if step == "remember":
                memory.remember(f"{THINGS[number % 5]} again {number}", user="ana")
            elif step == "reembed":
                memory.reembed()
            elif step == "open":
                memory.close()
                memories[who] = stack.enter_context(open_with(path, model))
            found = memories[who].search(question, user="ana")
            assert found.hits
            ours = memories[who].store.space() == model.space
            assert ours == (not found.warnings)
            for hit in found:
                if ours and hit.cosine is not None:
                    exact = float(stored(model, hit.unit.text) @ model.embed_query(question))
                    assert hit.cosine == pytest.approx(max(exact, 0.0), abs=1e-3)
                else:
                    assert hit.cosine is None
