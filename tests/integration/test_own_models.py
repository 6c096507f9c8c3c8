"""A model of 768 dimensions in a folder, end to end: its prefixes, its tiers, and what its own vectors need (C10)."""

import contextlib
import dataclasses
import sqlite3

import numpy as np
import pytest

from builders import NOW, opened, program, retrieve
from holdfast import EmbedderError, Memory, Settings, SettingsError
from holdfast.models import build_embedder
from holdfast.models.embedder import shipped_folder
from holdfast.retrieval.dense import DenseStrategy
from holdfast.settings import DenseSettings, EmbeddingSettings
from holdfast.store.sqlite import blocks, live_index
from holdfast.types import QueryProfile

# What is compared here are vectors: nothing is read again after them.
EAGER = Settings.load({"refusal.enabled": False, "stages.read": "off"}, environ={}).without_timeouts()
# Each answer shares no word with its question.
ASKED = {
    "Where is the hound?": "My puppy likes every kennel.",
    "What does the physician want?": "She told me about the bandage and the fever.",
    "Whose ferry is it?": "They found an anchor in the harbour.",
    "When do we depart?": "Our ticket is for the new platform.",
    "Did the loaf rise?": "His dough needs flour and yeast.",
}
TALK = ("the snow and my scarf", "a bug in the code", "a song for choir")
OTHERS = [f"{words} {i}" for i in range(30) for words in TALK]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return program("scripts/build_tiny_bert.py").build(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def nomic(folder):
    return EmbeddingSettings(embedder="nomic-768", folder=str(folder))


def open_with(path, embedding, **settings):
    return Memory.open(path, settings=dataclasses.replace(EAGER, embedding=embedding, **settings), now=lambda: NOW)


def vectors_in(path):
    with contextlib.closing(sqlite3.connect(path)) as connection:
        rows = connection.execute("SELECT unit_key, vector FROM vectors ORDER BY unit_key").fetchall()
        return {key: np.frombuffer(data, "<f2") for key, data in rows}


def funnel_of(path):
    """Return the space that was measured, on how many vectors, and how many have to be handed on."""
    with contextlib.closing(sqlite3.connect(path)) as connection:
        return connection.execute("SELECT name, rows, width FROM funnels JOIN spaces ON key = space").fetchone()


# ------------------------------------------------------------------------------------------ what a profile sets


def test_the_model_is_the_same_to_the_last_byte_whenever_it_is_built(folder, tmp_path):
    again = program("scripts/build_tiny_bert.py").build(tmp_path)
    for file in ("model.onnx", "tokenizer.json"):
        assert (again / file).read_bytes() == (folder / file).read_bytes()


def as_nomic(vector):
    """Return a vector behind the layer norm, at length 1."""
    centred = vector.astype(np.float64) - vector.astype(np.float64).mean()
    return centred / np.linalg.norm(centred)


def test_questions_and_documents_get_the_prefixes_and_the_layer_norm_that_the_model_was_trained_with(folder, nomic):
    own, plain = build_embedder(nomic), build_embedder(EmbeddingSettings(embedder="onnx", folder=str(folder)))
    question = as_nomic(plain.embed_query("search_query: my dog"))
    document = as_nomic(plain.embed_query("search_document: my dog"))
    assert own.embed_query("my dog") == pytest.approx(question, abs=1e-6)
    assert own.embed_documents(["my dog"])[0] == pytest.approx(document, abs=1e-6)
    assert np.abs(question - document).max() > 0.005
    assert np.abs(document - plain.embed_query("search_document: my dog")).max() > 0.0005
    assert (own.dims, own.space.split("/")[:3]) == (768, ["nomic-768", "768", "mean+norm"])
    assert "-512-" in own.space


def test_what_somebody_has_set_stays(folder, nomic):
    own, plain = build_embedder(nomic), build_embedder(EmbeddingSettings(embedder="onnx", folder=str(folder)))
    bare = build_embedder(dataclasses.replace(nomic, query_prefix=" ", document_prefix="note: "))
    assert bare.embed_query("my dog") == pytest.approx(as_nomic(plain.embed_query("my dog")), abs=1e-6)
    assert bare.embed_documents(["my dog"])[0] == pytest.approx(as_nomic(plain.embed_query("note: my dog")), abs=1e-6)
    short, first = (
        build_embedder(dataclasses.replace(nomic, **change)) for change in ({"max_tokens": 64}, {"pooling": "cls"})
    )
    assert "-64-" in short.space
    assert "/cls+norm/" in first.space
    assert len({one.space for one in (own, plain, bare, short, first)}) == 5


def test_a_model_that_is_missing_or_another_one_is_one_clear_message(tmp_path, nomic):
    with pytest.raises(SettingsError, match=r"needs embedding\.folder.*copy onnx/model\.onnx and tokenizer\.json of"):
        build_embedder(dataclasses.replace(nomic, folder=""))
    with pytest.raises(EmbedderError, match=r"there is no .*nowhere/model\.onnx; an embedder's folder holds"):
        build_embedder(dataclasses.replace(nomic, folder=str(tmp_path / "nowhere")))
    other = dataclasses.replace(nomic, folder=str(shipped_folder("minilm")), pooling="none")
    with pytest.raises(EmbedderError, match="gives 384 dimensions, nomic-768 has 768; set embedding"):
        build_embedder(other)


def test_the_settings_list_every_embedder_by_name():
    rows = {row.key: row.doc for row in Settings().describe()}
    assert all(f"`{name}`" in rows["embedding.embedder"] for name in ("minilm", "potion", "onnx", "nomic-768"))


# ------------------------------------------------------------------------------------------ end to end


def test_a_memory_of_768_dimensions_finds_by_meaning_after_reopening_and_after_another_embedder(
    tmp_path, nomic, monkeypatch
):
    monkeypatch.setattr(live_index, "_FIRST_MEASURED", 64)
    path, potion = tmp_path / "store.db", EmbeddingSettings(embedder="potion")
    with open_with(path, nomic) as memory:
        memory.remember([*ASKED.values(), *OTHERS], user="ana")
        memory.search("anything", user="ana")  # the index is loaded, so that what is written can be measured
        memory.remember("one song more", user="ana")
        space = memory.store.space()
        assert funnel_of(path)[:2] == (space, 64)

    def check(memory):
        for question, answer in ASKED.items():
            found = memory.search(question, user="ana")
            assert (found[0].unit.text, found.warnings) == (answer, ())
            assert found[0].cosine > 0.3
            assert answer in memory.assemble(question, user="ana", budget=300).text

    before = vectors_in(path)
    assert {vector.shape for vector in before.values()} == {(768,)}
    with open_with(path, nomic) as memory:
        check(memory)
    heard = []
    with open_with(path, potion) as memory:
        assert memory.reembed(progress=heard.append) == 0
    assert sum(heard) == len(before)
    assert {vector.shape for vector in vectors_in(path).values()} == {(256,)}
    with open_with(path, nomic) as memory:
        assert memory.search("Where is the hound?", user="ana").warnings  # another space, and words alone
        assert memory.reembed() == 0
        assert memory.store.space() == space
        check(memory)
        assert funnel_of(path) is None or funnel_of(path)[0] == space
        assert memory.store.verify() == []
    after = vectors_in(path)
    assert {key: vector.tobytes() for key, vector in after.items()} == {
        key: vector.tobytes() for key, vector in before.items()
    }


@pytest.mark.parametrize(
    ("dense", "tiers"),
    [
        (DenseSettings(), [None]),
        (DenseSettings(exact=True), [768]),
        (DenseSettings(early_exit=True, exit_64=-1.0), [64, 64]),
        (DenseSettings(early_exit=True, exit_64=1.0, exit_256=-1.0), [64, 256, 256]),
        (DenseSettings(early_exit=True, exit_64=1.0, exit_256=1.0), [64, 256, 768]),
    ],
    ids=["funnel", "exact", "sure at 64", "sure at 256", "never sure"],
)
def test_the_tiers_of_768_dimensions_are_64_256_and_all(tmp_path, nomic, monkeypatch, dense, tiers):
    looked, propose = [], blocks.DenseBlock.propose

    def listening(self, query, eligible, depth, tier=None, *more):
        looked.append(tier)
        return propose(self, query, eligible, depth, tier, *more)

    with open_with(tmp_path / "store.db", nomic, dense=dense) as memory:
        memory.remember([*ASKED.values(), *OTHERS], user="ana")
        monkeypatch.setattr(blocks.DenseBlock, "propose", listening)
        for question, answer in ASKED.items():
            looked.clear()
            assert memory.search(question, user="ana")[0].unit.text == answer
            assert looked == tiers


# ------------------------------------------------------------------------------------------ what prefixes are worth


class Drawn:
    """Made-up vectors of families that lie together, or `apart`; the first dimensions carry most, unless `turned`.

    A text is `family member`.
    """

    dims = 768

    def __init__(self, *, turned, apart):
        self.space = f"drawn-{turned}-{apart}/768/none/1"
        self._apart = apart
        self._carried = np.arange(1, 769) ** -0.5
        self._signs = np.random.default_rng(7).choice([-1.0, 1.0], size=768) if turned else None

    def embed_query(self, text):
        return self.embed_documents([text])[0]

    def embed_documents(self, texts):
        seeds = [(words.split()[0], words) for words in texts]
        middle, own = (
            np.array([np.random.default_rng([*words.encode()]).normal(size=768) for words in some])
            for some in zip(*seeds, strict=True)
        )
        found = (middle + self._apart * own) * self._carried
        if self._signs is not None:  # a rotation: every dimension becomes a mixture of all
            waves = np.fft.fft(found * self._signs, axis=1)
            found = waves.real - waves.imag
        return (found / np.linalg.norm(found, axis=1, keepdims=True)).astype(np.float32)


ROWS, FAMILIES = 1_500, 75
UNJUDGED = Settings.load({"refusal.enabled": False, "gate.policy": "off"}, environ={}).without_timeouts()


def furnish(memory):
    memory.search("f0 anything", user="ana")  # the index is loaded, so that what is written can be measured
    memory.remember([f"f{i % FAMILIES} m{i}" for i in range(ROWS)], user="ana", session="s")


def nearest(memory, embedder, question, dense):
    query = QueryProfile("?", (), vector=embedder.embed_query(question), space=embedder.space)
    strategy = DenseStrategy(dataclasses.replace(UNJUDGED, dense=dense))
    return set(retrieve(memory, strategy, query, 10).claims.ids[:10])


@pytest.mark.parametrize(
    ("turned", "apart", "widths"),
    [(False, 0.7, (1, 400)), (True, 0.2, (1, 400)), (True, 3.0, (ROWS, 9 * ROWS))],
    ids=["prefixes that carry", "turned at random", "turned at random and far apart"],
)
def test_the_funnel_is_measured_on_the_stored_vectors_and_keeps_the_ten_best(
    tmp_path, monkeypatch, turned, apart, widths
):
    monkeypatch.setattr(live_index, "_FIRST_MEASURED", 1024)
    monkeypatch.setattr(blocks, "_LEAST_WIDTH", 1)  # as narrow as measured, however few rows there are
    monkeypatch.setattr(blocks, "_SWEEP_GAIN", 1)
    path, embedder = tmp_path / "store.db", Drawn(turned=turned, apart=apart)
    with opened(UNJUDGED, path=path, embedder=embedder) as memory:
        furnish(memory)
        space, rows, width = funnel_of(path)
        assert (space, rows) == (embedder.space, 1024)
        assert widths[0] <= width <= widths[1]
        kept = 0
        for number in range(FAMILIES):
            question = f"f{number} question{number}"
            exact, found = (
                nearest(memory, embedder, question, dense) for dense in (DenseSettings(exact=True), DenseSettings())
            )
            assert len(exact) == 10
            kept += len(exact & found)
    assert kept >= 0.99 * 10 * FAMILIES
