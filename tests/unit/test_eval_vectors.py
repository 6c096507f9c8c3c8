"""The cache of embeddings: never a wrong vector, and no text embedded twice."""

import numpy as np
import pytest

from holdfast.eval import run as vectors
from holdfast.eval.run import CachedEmbedder
from holdfast.testing.contracts import HashEmbedder


class Counting(HashEmbedder):
    """Remembers what it was asked for; a question is embedded unlike a document of the same words."""

    def __init__(self, dims=16):
        super().__init__(dims)
        self.asked = []

    def embed_documents(self, texts):
        self.asked += [("document", text) for text in texts]
        return np.stack([HashEmbedder.embed_query(self, text) for text in texts])

    def embed_query(self, text):
        self.asked.append(("query", text))
        return -super().embed_query(text)


def cached(file, real):
    return CachedEmbedder(real, file)


def open_cache(file, real):
    return CachedEmbedder.open(real, file)


@pytest.fixture
def file(tmp_path):
    return tmp_path / "deep" / "cache.npz"


def test_what_was_embedded_once_is_not_embedded_again(file):
    first, second = Counting(), Counting()
    with open_cache(file, first) as embedder:
        rows = embedder.embed_documents(["a boat", "a kite", "a boat"])
        asked = embedder.embed_query("a boat")
        assert embedder.embed_query("a boat") is asked
    assert first.asked == [("document", "a boat"), ("document", "a kite"), ("query", "a boat")]
    with open_cache(file, second) as embedder:
        assert np.array_equal(embedder.embed_documents(["a kite", "a boat"]), rows[[1, 0]])
        assert np.array_equal(embedder.embed_query("a boat"), asked)
    assert second.asked == []


def test_only_what_is_missing_is_asked_for(file):
    with open_cache(file, Counting()) as embedder:
        embedder.embed_documents(["one"])
    real = Counting()
    with open_cache(file, real) as embedder:
        rows = embedder.embed_documents(["two", "one", "three"])
    assert real.asked == [("document", "two"), ("document", "three")]
    assert np.array_equal(rows, np.stack([HashEmbedder(16).embed_query(text) for text in ("two", "one", "three")]))
    again = Counting()
    cached(file, again).embed_documents(["one", "two", "three"])
    assert again.asked == []


def test_a_question_and_a_document_of_the_same_words_are_kept_apart(file):
    with open_cache(file, Counting()) as embedder:
        document, question = embedder.embed_documents(["the harbour"])[0], embedder.embed_query("the harbour")
    assert np.array_equal(document, -question)
    with open_cache(file, Counting()) as embedder:
        assert np.array_equal(embedder.embed_query("the harbour"), question)
        assert np.array_equal(embedder.embed_documents(["the harbour"])[0], document)


def test_texts_that_differ_in_a_character_only_are_kept_apart(file):
    texts = ["boat", "Boat", "boat ", "bo\u0301at", "", "\0", "\ud800"]
    embedder = cached(file, Counting())
    embedder.embed_documents(texts)
    assert len(embedder.known) == len(texts)


def test_keys_that_end_in_zero_bytes_survive(file, monkeypatch):
    # numpy gives such keys back shortened; one text in 256 has one.
    keys = {"a": b"a" * 15 + b"\0", "b": b"b" * 14 + b"\0\0", "c": bytes(16)}
    monkeypatch.setattr(vectors, "_key", lambda kind, text: keys[text])
    with open_cache(file, Counting()) as embedder:
        rows = embedder.embed_documents(["a", "b", "c"])
    real = Counting()
    assert np.array_equal(cached(file, real).embed_documents(["a", "b", "c"]), rows)
    assert real.asked == []


def test_many_texts_come_back_each_with_its_own_vector(file):
    texts = [f"word{number} other{number * 7}" for number in range(700)]
    with open_cache(file, Counting()) as embedder:
        rows = embedder.embed_documents(texts)
    real = Counting()
    assert np.array_equal(cached(file, real).embed_documents(texts), rows)
    assert real.asked == []


@pytest.mark.parametrize("data", [b"", b"no archive at all", b"\x80\x04K\x01."], ids=["empty", "words", "pickle"])
def test_a_file_that_is_no_cache_is_taken_for_an_empty_one(file, data):
    file.parent.mkdir()
    file.write_bytes(data)
    with open_cache(file, Counting()) as embedder:
        embedder.embed_documents(["a boat"])
    real = Counting()
    cached(file, real).embed_documents(["a boat"])
    assert real.asked == []


def test_a_cache_of_another_size_is_not_used(file):
    with open_cache(file, Counting(16)) as embedder:
        embedder.embed_documents(["a boat"])
    real = Counting(8)
    assert cached(file, real).embed_documents(["a boat"]).shape == (1, 8)
    assert real.asked == [("document", "a boat")]


def test_a_cache_whose_parts_do_not_match_is_not_used(file):
    file.parent.mkdir()
    with file.open("wb") as out:
        np.savez(out, keys=np.array([b"x" * 16]), rows=np.zeros((2, 16), np.float32))
    assert cached(file, Counting()).known == {}
    with file.open("wb") as out:
        np.savez(out, other=np.zeros(3))
    assert cached(file, Counting()).known == {}


def test_the_file_is_written_whole_or_not_at_all(file, monkeypatch):
    with open_cache(file, Counting()) as embedder:
        embedder.embed_documents(["kept"])
    before = file.read_bytes()

    def fail(out, **arrays):
        out.write(b"half")
        raise OSError("no space left")

    monkeypatch.setattr(vectors.np, "savez", fail)
    with pytest.raises(OSError, match="no space left"), open_cache(file, Counting()) as embedder:
        embedder.embed_documents(["new"])
    assert file.read_bytes() == before


def test_nothing_new_writes_nothing(file):
    with open_cache(file, Counting()):
        pass
    assert not file.exists()
    with open_cache(file, Counting()) as embedder:
        embedder.embed_documents([])
    assert not file.exists()


def test_an_error_half_way_keeps_what_was_embedded(file):
    def stopped():
        with open_cache(file, Counting()) as embedder:
            embedder.embed_documents(["a boat"])
            raise RuntimeError("stopped")

    with pytest.raises(RuntimeError, match="stopped"):
        stopped()
    real = Counting()
    cached(file, real).embed_documents(["a boat"])
    assert real.asked == []


def test_it_speaks_for_the_embedder_behind_it(file):
    embedder = cached(file, Counting())
    assert embedder.embed_documents([]).shape == (0, 16)
    assert (embedder.space, embedder.dims) == (Counting().space, 16)


def test_a_cache_with_any_damaged_byte_is_an_empty_one_or_the_same(tmp_path):
    file = tmp_path / "cache.npz"
    with CachedEmbedder.open(HashEmbedder(4), file) as embedder:
        rows = embedder.embed_documents(["a boat", "a kite"])
    whole = file.read_bytes()
    for place in range(len(whole)):
        damaged = bytearray(whole)
        damaged[place] ^= 0xFF
        file.write_bytes(damaged)
        again = CachedEmbedder(HashEmbedder(4), file)
        assert np.array_equal(again.embed_documents(["a boat", "a kite"]), rows), place
