"""Vectors outlive crashes, damage and a change of embedder; what is lost is only time (C10, laws 11 and 17)."""

import contextlib
import dataclasses
import hashlib
import json
import logging
import math
import random
import signal
import sqlite3
import stat
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from test_processes import Peer

from builders import ask, make_view, opened, patient, propose, waiting
from endpoint import EmbeddingServer, well_behaved
from holdfast import EmbedderError, HoldfastError, Memory, Settings
from holdfast.kernels.vectors import halve
from holdfast.models import build_embedder
from holdfast.retrieval.dense import DenseStrategy
from holdfast.settings import EmbeddingSettings
from holdfast.store.queries import DenseQuery, LexicalQuery, Proposal
from holdfast.store.sqlite import index_file, live_index
from holdfast.testing.contracts import HashEmbedder
from holdfast.types import FIELDS, QueryProfile

SAVER = Path(__file__).with_name("saver.py")
# Nothing is refused: these tests are about what is kept.
EAGER = Settings.load({"refusal.enabled": False}, environ={}).without_timeouts()
QUESTIONS = ("the copper kettle", "a lamp in the hall", "who mends nets?")


def standing(found):
    return [(hit.unit.id, hit.unit.text, hit.score.hex(), hit.rel.hex(), hit.rank) for hit in found]


def answers(memory, users=("ana",), profiles=("fast", "balanced", "hybrid")):
    return [
        standing(memory.search(question, user=user, profile=profile))
        for user in users
        for question in QUESTIONS
        for profile in profiles
    ]


def open_with(path, embedder, settings=EAGER):
    return opened(settings, path=path, embedder=embedder)


def embedded(memory, embedder, user="ana", depth=10_000):
    """Return the ids that are proposed by meaning."""
    query = DenseQuery(embedder.space, embedder.embed_query("anything"))
    return set(propose(memory, query, depth, make_view(user=user)))


def vectors_of(memory, space, ids, user="ana"):
    """Return the stored vectors of units by id."""
    query = DenseQuery(space, np.zeros(1, dtype=np.float32))
    found = ask(memory, lambda reading: reading.evidence(query, ids), make_view(user=user))
    return dict(zip(found.ids, found.vectors, strict=True))


def stored(embedder, text):
    """Return the bytes of what a store gives back of a text's vector."""
    return halve(embedder.embed_query(text)).astype(np.float32).tobytes()


# ------------------------------------------------------------------- committed before they are embedded

# Keeps its words, acknowledges, and is killed before the vectors are written.
DYING = """
import os, signal, sys
from holdfast import Memory, Settings
from holdfast.models import build_embedder
from holdfast.retrieval.dense import DenseStrategy
from holdfast.settings import EmbeddingSettings
from holdfast.testing.contracts import HashEmbedder

class Dying:
    def __init__(self, model):
        self.model, self.space, self.dims = model, model.space, model.dims

    def embed_query(self, text):
        return self.model.embed_query(text)

    def embed_documents(self, texts):
        print("committed", flush=True)
        if sys.argv[3] == "itself":
            os.kill(os.getpid(), signal.SIGKILL)
        sys.stdin.readline()

name = sys.argv[2]
model = HashEmbedder(64) if name == "hash" else build_embedder(EmbeddingSettings(embedder=name))
memory = Memory.open(sys.argv[1], settings=Settings(), embedder=Dying(model))
memory.remember(["The puppy threw up all night.", "A lamp hangs in the hall."], user="ana")
"""


def killed_before_embedding(path, model, who):
    child = subprocess.Popen(
        [sys.executable, "-c", DYING, str(path), model, who], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with child:
        assert child.stdout.readline() == "committed\n"
        if who == "parent":
            child.kill()
    assert child.returncode == -signal.SIGKILL


@pytest.mark.parametrize("who", ["itself", "parent"])
def test_units_whose_writer_was_killed_before_embedding_are_found_by_words_and_then_completed(tmp_path, who):
    path, embedder = tmp_path / "crash.db", HashEmbedder(64)
    killed_before_embedding(path, "hash", who)
    with open_with(path, embedder) as memory:
        assert waiting(memory, embedder.space) == 2
        assert [hit.unit.text for hit in memory.search("lamp", user="ana", profile="fast")] == [
            "A lamp hangs in the hall."
        ]
        assert waiting(memory, embedder.space) == 2  # `fast` asks for no meaning
        memory.search("lamp", user="ana")
        assert waiting(memory, embedder.space) == 0
        units = memory.list(user="ana", limit=None)
        rows = vectors_of(memory, embedder.space, [unit.id for unit in units])
        assert {unit.id: rows[unit.id].tobytes() for unit in units} == {
            unit.id: stored(embedder, unit.text) for unit in units
        }
        assert memory.store.verify() == []


def test_units_that_a_crash_left_behind_are_found_by_meaning_after_the_next_open(tmp_path):
    path = tmp_path / "crash.db"
    killed_before_embedding(path, "minilm", "itself")
    with Memory.open(path, settings=EAGER) as memory:
        question = "Is the dog ill?"
        assert len(memory.search(question, user="ana", profile="fast")) == 0
        assert memory.search(question, user="ana")[0].unit.text == "The puppy threw up all night."


def test_many_units_left_behind_are_completed_in_the_background(tmp_path):
    path, embedder = tmp_path / "many.db", HashEmbedder(64)
    with opened(path=path) as memory:
        memory.remember([f"pebble {i}" for i in range(500)], user="ana")
    with open_with(path, embedder) as memory:  # closes in the middle of the work, and loses none
        assert len(memory.search("pebble 7", user="ana")) > 0
    with open_with(path, embedder) as memory:
        assert memory.search("pebble 499", user="ana", profile="fast")[0].unit.text == "pebble 499"
        memory.search("pebble 499", user="ana")
        if memory._vectors._worker is not None:
            memory._vectors._worker.join()
        assert waiting(memory, embedder.space) == 0
        assert len(embedded(memory, embedder)) == 500


# ------------------------------------------------------------------------------------- the snapshot


@pytest.fixture
def _saved(monkeypatch):
    """Let the smallest index be saved beside its store."""
    monkeypatch.setattr(live_index, "_WORTH_SAVING", 1)


def killed_while_saving(path, moment, seed):
    """Let a child save until it kills itself at a moment, or is killed at random."""
    chance = random.Random(seed)
    child = subprocess.Popen(
        [sys.executable, str(SAVER), str(path), moment, str(seed)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    said = ""
    with child:
        if moment == "never":
            for _ in range(chance.randrange(1, 6)):
                assert child.stdout.readline() == "saved\n"
            # Somewhere inside the next round: opening, writing and saving take some ten milliseconds.
            until = time.perf_counter() + chance.random() * 0.03
            while time.perf_counter() < until:
                pass
            child.kill()
        said = child.stderr.read()
    assert (child.returncode, said) == (-signal.SIGKILL, "")


def left_over(path):
    return [one.name for one in path.parent.iterdir() if one.name.startswith(f".{path.name}.index-")]


KILLS = [("written", 0), ("replaced", 1), *(("never", seed) for seed in range(2, 10))]


@pytest.mark.usefixtures("_saved")
@pytest.mark.parametrize("kills", [KILLS[:5], pytest.param(KILLS, marks=pytest.mark.slow)], ids=["few", "many"])
def test_a_kill_while_saving_costs_time_and_nothing_else(tmp_path, kills):
    path, beside = tmp_path / "store.db", tmp_path / "store.db.index"
    for moment, seed in kills:
        killed_while_saving(path, moment, seed)
        kept = beside.read_bytes() if beside.exists() else None
        with open_with(path, HashEmbedder(64)) as memory:
            found = standing(memory.search("pebble 3 of basket 1", user="ana"))
            assert embedded(memory, HashEmbedder(64)) == {u.id for u in memory.list(user="ana", limit=None)}
            assert memory.store.verify() == []
        if kept is None:
            continue
        beside.unlink()
        with open_with(path, HashEmbedder(64)) as memory:
            assert standing(memory.search("pebble 3 of basket 1", user="ana")) == found
        beside.write_bytes(kept)


@pytest.mark.usefixtures("_saved")
def test_files_that_a_killed_saver_left_behind_do_not_pile_up(tmp_path):
    path = tmp_path / "store.db"
    for seed in range(3):
        killed_while_saving(path, "written", seed)
    with open_with(path, HashEmbedder(64)) as memory:
        memory.search("pebble", user="ana")
        memory.remember("one pebble more", user="ana")
    assert left_over(path) == []


def furnished(path, users=("ana",), embedder=None, settings=EAGER):
    """Fill a store with sentences of several users, and save its index."""
    things = ["copper kettle", "lamp in the hall", "net to mend", "loose brick", "wet coat"]
    with opened(settings, path=path, embedder=embedder or HashEmbedder(64)) as memory:
        for user in users:
            memory.search("anything", user=user)
            for i in range(12):
                memory.remember(f"{user} has a {things[i % 5]}, number {i}", id=f"{user}-{i}", user=user)
        return answers(memory, users)


@pytest.mark.usefixtures("_saved")
def test_a_snapshot_can_be_read_by_its_owner_alone(tmp_path):
    furnished(tmp_path / "store.db")
    assert stat.S_IMODE((tmp_path / "store.db.index").stat().st_mode) == 0o600


@pytest.mark.usefixtures("_saved")
def test_a_snapshot_is_really_read(tmp_path, monkeypatch):
    expected = furnished(tmp_path / "store.db")

    def built(_, tenant, user):
        assert user == "", "built anew"
        return live_index.Shard()  # nothing is global

    monkeypatch.setattr(live_index.LiveIndex, "_built", built)
    with open_with(tmp_path / "store.db", HashEmbedder(64)) as memory:
        assert answers(memory) == expected


# Two names that differ in one bit.
USERS = ("u1", "u3")


def asked_once(memory):
    return [standing(memory.search(QUESTIONS[0], user=user)) for user in USERS]


@pytest.mark.usefixtures("_saved")
@pytest.mark.parametrize("step", [4, pytest.param(1, marks=pytest.mark.slow)])
def test_a_flipped_bit_anywhere_in_a_snapshot_never_changes_an_answer(tmp_path, monkeypatch, step):
    path, beside = tmp_path / "store.db", tmp_path / "store.db.index"
    furnished(path, USERS)
    monkeypatch.setattr(live_index.LiveIndex, "save", lambda _: None)  # let the snapshot stay as it is
    with open_with(path, HashEmbedder(64)) as memory:  # a change that the snapshot does not know yet
        memory.update("u1-0", user="u1", text="u1 sold the copper kettle")
        expected = asked_once(memory)
    whole = beside.read_bytes()
    chance = random.Random(17)
    header = whole.index(b"]]}") + 3
    names = [i for i in range(header) if whole[i - 2 : i] == b'"u' and whole[i : i + 1] in b"13"]
    places = [*{*range(0, header, step), *names}, *(chance.randrange(header, len(whole)) for _ in range(30))]
    wrong = []
    for place in places:
        damaged = bytearray(whole)
        damaged[place] ^= 2 if place in names else 1 << chance.randrange(8)
        beside.write_bytes(damaged)
        try:
            with open_with(path, HashEmbedder(64)) as memory:
                if asked_once(memory) != expected:
                    wrong.append((place, "another answer"))
        except (HoldfastError, ArithmeticError, MemoryError, ValueError, OSError, TypeError) as error:
            wrong.append((place, repr(error)))
    assert len(names) == 2
    assert wrong == []


def header_changed(data, change, *, sealed=False):
    """Return a snapshot whose header was changed by `change`, with a checksum that holds if it is `sealed`."""
    start = len(index_file._MAGIC) + 8
    length, digest = int.from_bytes(data[start - 8 : start], "big"), data[start : start + 16]
    rest = data[start + 16 :]
    header = json.dumps(change(json.loads(rest[:length]))).encode()
    digest = hashlib.blake2b(header, digest_size=16).digest() if sealed else digest
    return data[: start - 8] + len(header).to_bytes(8, "big") + digest + header + rest[length:]


def swapped_users(header):
    names = {"u1": "u3", "u3": "u1"}
    header["segments"] = [[t, names.get(u, u), *rest] for t, u, *rest in header["segments"]]
    return header


def claims_to_be_newer(header):
    header["segments"] = [[t, u, seq + 2, *rest] for t, u, seq, *rest in header["segments"]]
    return header


def far_away(header):
    header["segments"] = [[t, u, seq, 10**30, 10**30, d] for t, u, seq, _, _, d in header["segments"]]
    return header


def of_words(header):
    header["segments"] = [[t, u, "seven", *rest] for t, u, _, *rest in header["segments"]]
    return header


DAMAGE = {
    "another user's segment": lambda data: header_changed(data, swapped_users, sealed=True),
    "a later change than it knows": lambda data: header_changed(data, claims_to_be_newer, sealed=True),
    "places beyond the end": lambda data: header_changed(data, far_away),
    "words for numbers": lambda data: header_changed(data, of_words),
    "a list for a header": lambda data: header_changed(data, lambda header: [header]),
    "no segments": lambda data: header_changed(data, lambda header: header | {"segments": None}),
    "half": lambda data: data[: len(data) // 2],
    "all but the last byte": lambda data: data[:-1],
    "the header alone": lambda data: data[: data.index(b"]]}") + 3],
    "the magic alone": lambda data: data[: len(index_file._MAGIC)],
    "nothing": lambda _: b"",
    "zeros": lambda data: bytes(len(data)),
    "foreign": lambda _: b"SQLite format 3\x00" + b"\xff" * 500,
    "an endless header": lambda data: (
        data[: len(index_file._MAGIC)] + b"\xff" * 8 + data[len(index_file._MAGIC) + 8 :]
    ),
}


@pytest.mark.usefixtures("_saved")
@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_snapshot_is_passed_over(tmp_path, damage):
    path, beside = tmp_path / "store.db", tmp_path / "store.db.index"
    furnished(path, USERS)
    before = beside.read_bytes()
    with open_with(path, HashEmbedder(64)) as memory:
        memory.update("u1-0", user="u1", text="u1 sold the copper kettle")
        expected = answers(memory, USERS)
    beside.write_bytes(DAMAGE[damage](before))
    with open_with(path, HashEmbedder(64)) as memory:
        assert answers(memory, USERS) == expected
    with open_with(path, HashEmbedder(64)) as memory:  # saved anew, and whole again
        assert answers(memory, USERS) == expected


@pytest.mark.usefixtures("_saved")
def test_another_stores_snapshot_is_passed_over(tmp_path):
    one, two = tmp_path / "one.db", tmp_path / "two.db"
    furnished(one)
    with open_with(two, HashEmbedder(64)) as memory:
        memory.remember([f"the copper lamp {i}" for i in range(30)], user="ana")
        expected = answers(memory)
    (tmp_path / "two.db.index").write_bytes((tmp_path / "one.db.index").read_bytes())
    with open_with(two, HashEmbedder(64)) as memory:
        assert answers(memory) == expected


@pytest.mark.usefixtures("_saved")
def test_a_snapshot_made_with_other_settings_of_analysis_is_passed_over(tmp_path):
    path = tmp_path / "store.db"
    with opened(EAGER, path=path, embedder=HashEmbedder(64)) as memory:
        memory.remember("the part is a/b-c and d_e", id="x", user="ana")
        memory.search("part", user="ana")
    other = Settings.load({"analysis.tokenizer": "reference", "refusal.enabled": False}, environ={})
    with opened(other, path=path, embedder=HashEmbedder(64)) as memory:
        found = memory.search("a/b-c", user="ana", profile="fast", explain=True)
        fresh = memory.store._index._built("local", "ana")
        query = LexicalQuery(("e", "c", "part"), (1.0,) * len(FIELDS), 1.2, 0.75, frozenset(), 1.3)
        evidence = ask(memory, lambda reading: reading.evidence(query, ["x"]))
        assert evidence.df == tuple(fresh.df(term, fresh.column("alive")) for term in query.terms)
        assert [hit.unit.id for hit in found] == ["x"]


def restored(path, old):
    for suffix in ("-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
    path.write_bytes(old)


@pytest.mark.usefixtures("_saved")
def test_a_snapshot_from_the_future_of_a_restored_store_is_passed_over(tmp_path):
    path = tmp_path / "store.db"
    expected = furnished(path)
    old = path.read_bytes()
    with open_with(path, HashEmbedder(64)) as memory:
        memory.remember("ana has a copper kettle of silver", user="ana")
        memory.update("ana-1", user="ana", text="ana lost the lamp in the hall")
        answers(memory)
    restored(path, old)
    with open_with(path, HashEmbedder(64)) as memory:
        assert answers(memory) == expected


@pytest.mark.usefixtures("_saved")
def test_a_restored_store_that_has_grown_past_its_snapshot_forgets_the_lost_future(tmp_path):
    path, beside = tmp_path / "store.db", tmp_path / "store.db.index"
    furnished(path)
    old = path.read_bytes()
    with open_with(path, HashEmbedder(64)) as memory:
        memory.remember("ana has a copper kettle of silver", id="lost", user="ana")
        answers(memory)
    restored(path, old)
    with open_with(path, HashEmbedder(64)) as memory:  # another life, longer than the lost one, never searched
        for i in range(9):
            memory.remember(f"ana mends net {i}", id=f"other-{i}", user="ana")
    with open_with(path, HashEmbedder(64)) as memory:
        found = answers(memory)
        memory.store._index._path = None
    beside.unlink()
    with open_with(path, HashEmbedder(64)) as memory:
        assert answers(memory) == found


@pytest.mark.usefixtures("_saved")
def test_a_snapshot_that_cannot_be_written_does_not_keep_a_memory_from_closing(tmp_path):
    path = tmp_path / "store.db"
    memory = open_with(path, HashEmbedder(64))
    memory.remember("the copper kettle", user="ana")
    memory.search("kettle", user="ana")
    (tmp_path / "store.db.index").mkdir()
    memory.close()
    memory.close()
    with open_with(path, HashEmbedder(64)) as memory:
        assert len(memory.search("kettle", user="ana")) == 1
        memory.store._index._path = None


# ------------------------------------------------------------------------------------ changed words


def test_an_update_replaces_the_vector(tmp_path):
    embedder = HashEmbedder(64)
    with open_with(tmp_path / "store.db", embedder) as memory:
        memory.remember("the copper kettle", id="x", user="ana")
        memory.update("x", user="ana", text="a lamp in the hall")
        assert vectors_of(memory, embedder.space, ["x"])["x"].tobytes() == stored(embedder, "a lamp in the hall")
        # A change of anything else makes a new version too, and the unit must not be left waiting.
        memory.update("x", user="ana", pinned=True)
        memory.remember("a lamp in the cellar", id="x", user="ana")
        assert vectors_of(memory, embedder.space, ["x"])["x"].tobytes() == stored(embedder, "a lamp in the cellar")
        assert waiting(memory, embedder.space) == 0


# --------------------------------------------------------------------------------- an embedder that fails


class Switch:
    """A server that can be taken down and brought back."""

    def __init__(self):
        self.up = True

    def __call__(self, path, question):
        return well_behaved(path, question) if self.up else (503, b'{"error": "down for repairs"}')


@pytest.fixture
def remote():
    """Return (switch, settings) of a server that speaks Ollama's dialect."""
    switch = Switch()
    with EmbeddingServer(switch) as server:
        embedding = EmbeddingSettings(embedder="ollama", url=server.url, model="small", threads=2)
        yield switch, dataclasses.replace(EAGER, embedding=embedding)


@pytest.mark.parametrize("known", [True, False], ids=["after it was reached once", "before it was ever reached"])
def test_words_are_kept_while_an_endpoint_is_down_and_completed_when_it_is_back(tmp_path, remote, caplog, known):
    switch, settings = remote
    path = tmp_path / "store.db"
    space = build_embedder(dataclasses.replace(settings.embedding, threads=1)).space
    with Memory.open(path, settings=settings) as memory:
        if known:
            memory.remember("a wet coat", user="ana")
        switch.up = False
        with caplog.at_level(logging.WARNING, logger="holdfast"):
            written = memory.remember(["the copper kettle", "a lamp in the hall"], user="ana")
            memory.update(written[0].id, user="ana", text="the copper kettle sings")
        assert [item.status for item in written] == ["added", "added"]
        assert any("vectors are pending" in record.message for record in caplog.records)
        assert "503" in caplog.text
        assert waiting(memory, space) == 2
        assert len(memory.search("copper kettle", user="ana", profile="fast")) == 1
        assert "503" in memory.search("copper kettle", user="ana").degraded
        switch.up = True
        assert memory.search("copper kettle", user="ana")[0].unit.text == "the copper kettle sings"
    with Memory.open(path, settings=settings) as memory:
        memory.search("copper kettle", user="ana")
        assert waiting(memory, space) == 0


def test_an_address_where_nobody_listens_is_treated_like_a_server_that_is_down(tmp_path, caplog):
    with EmbeddingServer() as server:
        url = server.url
    embedding = EmbeddingSettings(embedder="openai", url=url, model="small")
    with Memory.open(tmp_path / "store.db", settings=dataclasses.replace(EAGER, embedding=embedding)) as memory:
        assert memory.remember("the copper kettle", user="ana")[0].status == "added"
        assert "cannot be reached" in caplog.text
        assert "cannot be reached" in memory.search("kettle", user="ana").degraded
        assert len(memory.search("kettle", user="ana", profile="fast")) == 1


class Wrong(HashEmbedder):
    """Gives documents whatever `spoil` makes of their vectors."""

    def __init__(self, spoil):
        super().__init__(64)
        self._spoil = spoil

    def embed_documents(self, texts):
        return self._spoil(super().embed_documents(texts))


SPOILED = {
    "not a number": lambda rows: rows * np.float32("nan"),
    "infinite": lambda rows: rows + np.float32("inf"),
    "one nan among numbers": lambda rows: np.where(np.arange(64) == 3, np.float32("nan"), rows),
    "too short": lambda rows: rows[:, :10],
    "too long": lambda rows: np.hstack([rows, rows]),
    "a row too few": lambda rows: rows[:-1],
    "a row too many": lambda rows: np.vstack([rows, rows]),
    "ragged": lambda rows: [rows[0].tolist(), rows[-1].tolist()[:5]],
    "words": lambda rows: [["seven"] * 64 for _ in rows],
    "flat": lambda rows: rows.ravel(),
    "nothing": lambda rows: rows[:0],
}


@pytest.mark.parametrize("spoil", SPOILED)
def test_vectors_that_cannot_be_right_are_not_kept_and_their_words_are(tmp_path, spoil):
    path, right = tmp_path / "store.db", HashEmbedder(64)
    with open_with(path, right) as memory:
        memory.remember("a wet coat", user="ana")
    with open_with(path, Wrong(SPOILED[spoil])) as memory:
        with contextlib.suppress(EmbedderError):
            memory.remember(["the copper kettle", "a lamp in the hall"], user="ana")
        assert waiting(memory, right.space) == 2
        assert len(memory.search("kettle", user="ana", profile="fast")) == 1
        found = memory.search("the wet copper kettle", user="ana")
        assert all(math.isfinite(hit.score) for hit in found)
    with open_with(path, right) as memory:
        assert memory.search("the copper kettle", user="ana")[0].unit.text == "the copper kettle"
        assert waiting(memory, right.space) == 0
        assert memory.store.verify() == []


@pytest.mark.parametrize("spoil", ["not a number", "too short", "too long"])
def test_a_questions_vector_that_cannot_be_right_is_not_used(spoil):
    class Confused(HashEmbedder):
        def embed_query(self, text):
            vector = super().embed_query(text)
            return SPOILED[spoil](vector[None, :])[0] if text.endswith("?") else vector

    with opened(EAGER, embedder=Confused(64)) as memory:
        memory.remember("the copper kettle", user="ana")
        with pytest.raises(EmbedderError):
            memory.search("the kettle?", user="ana", strict=True)
        assert memory.search("the kettle?", user="ana").degraded


# ------------------------------------------------------------------------------------- several processes


def test_two_processes_see_each_others_vectors(tmp_path, monkeypatch):
    monkeypatch.setenv("HOLDFAST_REFUSAL__ENABLED", "false")  # for the peer, which reads its own settings
    path = tmp_path / "shared.db"
    space = build_embedder(EmbeddingSettings()).space
    with Memory.open(path, settings=EAGER) as memory, Peer(path) as peer:
        memory.search("anything", user="ana")  # loads the index, which then has to follow
        assert peer("remember", ["My knee hurts when I climb stairs."]) == ["added"]
        [unit] = memory.list(user="ana")
        assert waiting(memory, space) == 0
        assert [hit.unit.id for hit in memory.search("Which joint gives them pain?", user="ana")] == [unit.id]
        memory.remember("We flew to Oslo for the wedding.", user="ana")
        assert "We flew to Oslo for the wedding." in peer("search", "Where did they travel by plane?")
        memory.update(unit.id, user="ana", text="The cat sleeps on the warm roof.")
        assert "The cat sleeps on the warm roof." in peer("search", "Where is the pet napping?")


def test_a_unit_that_another_handle_changed_before_we_followed_is_indexed_by_its_new_words(tmp_path, monkeypatch):
    path = tmp_path / "shared.db"
    with opened(path=path) as one, opened(path=path) as two:
        one.remember("the copper kettle", id="x", user="ana")
        one.search("kettle", user="ana")
        follow = one.store._index.follow

        def after_the_other(fresh=None):
            if fresh:
                monkeypatch.setattr(one.store._index, "follow", follow)
                two.update("x", user="ana", text="a lamp in the hall")
            follow(fresh)

        monkeypatch.setattr(one.store._index, "follow", after_the_other)
        one.update("x", user="ana", text="the silver spoon")
        assert [hit.unit.id for hit in one.search("lamp", user="ana", profile="fast")] == ["x"]
        assert len(one.search("spoon", user="ana", profile="fast")) == 0


# Remembers some turns of the sample and prints ids, scores and the space.
ASKING = """
import json, sys
from datetime import datetime, UTC
from holdfast import Memory, Settings, sample
settings = Settings.load({"embedding.threads": int(sys.argv[2]), "refusal.enabled": False}, environ={})
texts = [message for _, messages in sample.sessions() for message in messages][:30]
with Memory.open(sys.argv[1], settings=settings, now=lambda: datetime(2026, 6, 1, tzinfo=UTC)) as memory:
    memory.remember(texts, user="ana", session="s")
    found = [
        [(hit.unit.id, hit.score.hex(), hit.rel.hex()) for hit in memory.search(question, user="ana", session="s")]
        for question in ("Where do they want to live?", "What does she not eat?", "the van and the boxes")
    ]
    print(json.dumps([memory.store.space(), found]))
"""


def test_processes_and_threads_change_no_id_and_no_score(tmp_path):
    said = []
    for number, threads in enumerate((1, 2, 2)):
        # A process of its own each time, and the store of the second is asked again by the third.
        path = tmp_path / f"store {min(number, 1)}.db"
        done = subprocess.run(
            [sys.executable, "-c", ASKING, str(path), str(threads)], capture_output=True, text=True, check=True
        )
        said.append(json.loads(done.stdout))
    assert said[0] == said[1] == said[2]
    assert all(said[0][1])


# ---------------------------------------------------------------------------- what the first tier hands on


class Drawn:
    """Vectors drawn by chance: their first dimensions say nothing of the rest."""

    dims, space = 128, "drawn/128/none/1"

    def embed_query(self, text):
        return np.random.default_rng([*text.encode()]).normal(size=128).astype(np.float32)

    def embed_documents(self, texts):
        return np.array([self.embed_query(text) for text in texts])


def funnels(path):
    with contextlib.closing(sqlite3.connect(path)) as connection:
        return connection.execute("SELECT user, rows, width FROM funnels ORDER BY user").fetchall()


def test_a_funnel_is_measured_as_an_owner_grows_and_is_the_same_for_everyone_who_opens_the_store(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(live_index, "_FIRST_MEASURED", 64)
    monkeypatch.setattr(live_index, "_LAST_MEASURED", 128)
    path = tmp_path / "store.db"
    with open_with(path, Drawn()) as memory, open_with(path, Drawn()) as other:
        sizes = []
        for start in range(0, 320, 40):
            memory.remember([f"line {i}" for i in range(start, start + 40)], user="ana", session=f"s{start}")
            memory.search("line 3", user="ana")
            sizes.append([rows for _, rows, _ in funnels(path)])
        assert sizes == [[], [64], [64], [128], [128], [128], [128], [128]]
        [(_, rows, width)] = funnels(path)
        assert width > rows  # every row has to be handed on: the search stays exact
        assert answers(memory) == answers(other)
        assert [shard.funnel.rows for shard in other.store._index._shards.values() if shard.funnel] == [128]
    with open_with(path, Drawn()) as memory:
        memory.remember("one of another", user="ben")
        memory.forget(user="ana", all=True)
        assert funnels(path) == []


def test_exact_search_is_a_setting(tmp_path):
    asked = []

    class Listening:
        def propose(self, query, depth, deadline):
            asked.append(query.tier)
            return Proposal(())

    for settings in (Settings(), Settings.load({"dense.exact": True}, environ={})):
        profile = QueryProfile("?", (), vector=np.ones(128, dtype=np.float32), space="s")
        DenseStrategy(settings).propose(profile, Listening(), 5, patient())
    assert asked == [None, 128]
