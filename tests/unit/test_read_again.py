"""What is kept so that a question need not read it again: it is the same, and goes with what it was made of."""

import gc
import random

import numpy as np
import pytest

from builders import make_unit
from holdfast import Memory
from holdfast.ranking.pool import RowSlice, UnitCache
from holdfast.store.sqlite.blocks import TurnOrder, VectorCache
from holdfast.store.sqlite.postings import PostingLists
from holdfast.testing.contracts import HashEmbedder


def numbers(*values):
    return np.array(values, dtype=np.int64)


def vectors_of(keys):
    return np.array([[key, -key] for key in keys], dtype=np.float32)


def test_a_vector_is_kept_by_its_key_and_checksum_in_its_space():
    cache = VectorCache()
    assert not cache.holds("a", numbers(1, 2), numbers(7, 7)).any()
    cache.add("a", numbers(1, 5), numbers(7, 8), vectors_of([1, 5]))
    assert cache.holds("a", numbers(1, 2, 5, 5), numbers(7, 7, 8, 9)).tolist() == [True, False, True, False]
    assert cache.take(numbers(5, 1)).tolist() == [[5, -5], [1, -1]]
    assert not cache.holds("b", numbers(1), numbers(7)).any()
    cache.add("b", numbers(5), numbers(8), vectors_of([6]))
    assert not cache.holds("a", numbers(1, 5), numbers(7, 8)).any()


def test_of_two_vectors_that_share_a_row_the_last_one_read_is_kept(monkeypatch):
    monkeypatch.setattr("holdfast.store.sqlite.blocks._NUMBERS_KEPT", 6)  # three rows of two numbers
    cache = VectorCache()
    cache.add("a", numbers(1, 2, 4), numbers(7, 7, 7), vectors_of([1, 2, 4]))
    assert cache.holds("a", numbers(1, 2, 4), numbers(7, 7, 7)).tolist() == [False, True, True]
    assert cache.take(numbers(4, 2)).tolist() == [[4, -4], [2, -2]]


@pytest.mark.parametrize("everything", [False, True])
def test_no_vector_that_was_read_outlives_what_is_forgotten(everything):
    with Memory.open(":memory:", embedder=HashEmbedder()) as memory:
        said = [{"role": "user", "content": f"the boat is number {n}"} for n in range(3)]
        memory.remember(said, user="ana", session="s")
        first = memory.search("which boat?", user="ana")
        cache = memory.store._index.vectors
        assert np.count_nonzero(cache._keys > 0) == 3
        memory.forget(user="ana", **({"all": True} if everything else {"ids": first[0].unit.id}))
        assert np.count_nonzero(cache._keys > 0) == 0
        assert len(cache._matrix) == 1


def test_new_words_of_a_unit_are_compared_by_their_own_vector():
    with Memory.open(":memory:", embedder=HashEmbedder()) as memory:
        [written] = memory.remember("the boat is blue", user="ana", id="a")
        before = memory.search("a green lorry", user="ana")
        memory.update(written.id, text="a green lorry", user="ana")
        after = memory.search("a green lorry", user="ana")
        assert [hit.cosine < 0.5 for hit in before] in ([], [True])
        assert after[0].cosine == pytest.approx(1.0, abs=1e-3)


def test_turns_know_who_is_beside_them_in_whatever_order_they_came():
    chance = random.Random(3)
    moments = [(chance.randrange(3), chance.randrange(4), place) for place in range(30)]
    sessions = [chance.randrange(1, 4) for _ in moments]
    for known in (0, 11, 30):
        columns = (np.array([sessions[:known], [m[0] for m in moments[:known]], [m[1] for m in moments[:known]]]),)
        turns = TurnOrder.of(*columns[0].astype(np.int64), np.arange(known))
        for session, moment in zip(sessions[known:], moments[known:], strict=True):
            turns.add(session, moment)
        eligible = np.array([chance.random() < 0.6 for _ in moments])
        before, after = turns.beside(np.arange(len(moments)), eligible)
        for place, session in enumerate(sessions):
            order = sorted(m for m, other in zip(moments, sessions, strict=True) if other == session)
            at = order.index(moments[place])
            seen = [[m[2] for m in some if eligible[m[2]]] for some in (order[:at], order[at + 1 :])]
            assert before[place] == (seen[0][-1] if seen[0] else -1)
            assert after[place] == (seen[1][0] if seen[1] else -1)


def test_what_is_made_of_a_unit_is_made_once_and_goes_with_it():
    made = []
    words = UnitCache(lambda unit: made.append(unit.text) or unit.text.split())
    unit, twin = make_unit(text="two boats"), make_unit(text="two boats")
    assert words(unit) is words(unit)
    assert words(twin) == ["two", "boats"]
    assert made == ["two boats", "two boats"]
    del unit, twin
    gc.collect()
    assert not words._known


def test_rows_of_rows_are_taken_when_a_column_is_asked_for():
    asked = []

    def take(column, rows):
        asked.append(rows.tolist())
        return column[rows]

    columns = {"a": np.arange(5) * 10, "b": np.arange(5)}
    some = RowSlice(RowSlice(columns, np.array([4, 2, 0]), take), np.array([2, 1]), take)
    assert (asked, [*some], len(some), "a" in some, "c" in some) == ([], ["a", "b"], 2, True, False)
    assert some["a"].tolist() == some["a"].tolist() == [0, 20]
    assert asked == [[0, 2]]


def test_what_is_added_after_a_question_is_found_by_the_next():
    lists = PostingLists(2)
    lists.append(0, ["oak"], 0)
    assert [(kind, found.places.tolist()) for kind, found in lists.find_all(2, "oak")] == [(0, [0])]
    lists.append(1, ["oak", "oak"], 1)
    assert [(kind, found.places.tolist()) for kind, found in lists.find_all(2, "oak")] == [(0, [0]), (1, [1])]
    lists.fold(np.array([False, True]))
    assert [found.places.tolist() for _, found in lists.find_all(2, "oak")] == [[], [0]]
