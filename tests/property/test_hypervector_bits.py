"""Every operation on packed words equals an obvious loop over bits (C5)."""

import hashlib
import random

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from builders import make_unit
from holdfast.kernels import hypervectors as hv
from holdfast.retrieval.hyperdimensional import encode_query, encode_unit
from holdfast.settings import Settings
from holdfast.text import analyse
from holdfast.text.questions import profile_query

BITS = 4096

words = st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1, max_size=8)
tokens = st.lists(words, min_size=1, max_size=9)
seeds = st.integers(0, 2**32)


def bits_of(vector):
    """Return the bits as a list of 0 and 1, in the order of the packed bytes."""
    return [int(bit) for bit in np.unpackbits(np.ascontiguousarray(vector, dtype=np.uint64).view(np.uint8))]


def drawn(seed):
    return np.frombuffer(random.Random(seed).randbytes(512), dtype=np.uint64)


def slow_random(key):
    return bits_of(np.frombuffer(hashlib.shake_256(key.encode()).digest(512), dtype="<u8").astype(np.uint64))


def slow_bind(a, b):
    return [x ^ y for x, y in zip(a, b, strict=True)]


def slow_turn(a):
    """Turn by one word of 64 bits: the last word comes first."""
    return a[-64:] + a[:-64]


def slow_bundle(vectors, keys):
    breaker = slow_random("tie:" + "\x1f".join(sorted(keys)))
    result = []
    for i in range(BITS):
        ones = sum(vector[i] for vector in vectors)
        zeros = len(vectors) - ones
        result.append(int(ones > zeros) if ones != zeros else breaker[i])
    return result


def slow_ngrams(said, positional):
    singles = [slow_random(token) for token in said]
    keys, parts = list(said), list(singles)
    if positional:
        keys = [f"{i % 16}@{token}" for i, token in enumerate(said)]
        parts = [slow_bind(slow_random(f"position:{i % 16}"), single) for i, single in enumerate(singles)]
    for i in range(len(said) - 1):
        keys.append(f"{said[i]}\x1e{said[i + 1]}")
        parts.append(slow_bind(slow_turn(singles[i]), singles[i + 1]))
    return parts[0] if len(parts) == 1 else slow_bundle(parts, keys)


@given(words)
def test_a_keys_vector_depends_on_the_key_alone(key):
    hv.random.cache_clear()
    assert bits_of(hv.random(key)) == slow_random(key)


@given(seeds, seeds)
def test_binding_is_exclusive_or_and_is_undone_by_itself(one, two):
    a, b = drawn(one), drawn(two)
    assert bits_of(hv.bind(a, b)) == slow_bind(bits_of(a), bits_of(b))
    assert np.array_equal(hv.bind(hv.bind(a, b), b), a)
    assert np.array_equal(hv.bind(a, b), hv.bind(b, a))


@given(seeds, st.integers(-70, 70))
def test_turning_is_undone_by_the_opposite_turn(seed, by):
    a = drawn(seed)
    assert bits_of(hv.turn(a, 1)) == slow_turn(bits_of(a))
    assert np.array_equal(hv.turn(hv.turn(a, by), -by), a)
    assert np.array_equal(hv.turn(a, 64), a)


@given(st.lists(words, min_size=1, max_size=8))
def test_a_bundle_is_the_majority_of_each_bit_and_the_bag_breaks_its_own_ties(keys):
    expected = slow_random(keys[0]) if len(keys) == 1 else slow_bundle([slow_random(key) for key in keys], keys)
    assert bits_of(hv.bag(keys)) == expected


@given(st.lists(words, min_size=1, max_size=8), st.randoms(use_true_random=False))
def test_equal_bags_are_equal_in_any_order(keys, chance):
    shuffled = list(keys)
    chance.shuffle(shuffled)
    assert np.array_equal(hv.bag(keys), hv.bag(shuffled))


@given(tokens, st.booleans())
def test_ngrams_are_the_bundle_of_words_and_turned_pairs(said, positional):
    assert bits_of(hv.ngrams(said, positional=positional)) == slow_ngrams(said, positional)


def test_positions_repeat_after_sixteen_words():
    said = [f"word {i}" for i in range(20)]
    assert bits_of(hv.ngrams(said, positional=True)) == slow_ngrams(said, positional=True)


@given(st.lists(seeds, min_size=1, max_size=6), seeds)
def test_distances_count_differing_bits_row_by_row(rows, seed):
    matrix, query = np.array([drawn(row) for row in rows]), drawn(seed)
    expected = [sum(x != y for x, y in zip(bits_of(row), bits_of(query), strict=True)) for row in matrix]
    assert hv.hamming(matrix, query).tolist() == expected
    assert hv.hamming(matrix[:0], query).tolist() == []


@given(st.lists(st.integers(0, BITS), max_size=20))
def test_similarity_and_its_rise_above_chance_stay_within_zero_and_one(distances):
    near = hv.similarity(np.array(distances, dtype=np.int64))
    above = hv.shifted(near)
    assert near.tolist() == [1.0 - d / BITS for d in distances]
    assert above.tolist() == [max(0.0, (1.0 - d / BITS - 0.5) * 2.0) for d in distances]
    assert all(0.0 <= value <= 1.0 for value in (*near.tolist(), *above.tolist()))


@given(st.integers(0, 10**9), st.integers(0, 10**9))
def test_the_noise_floor_never_falls_as_a_store_grows(one, two):
    low, high = sorted((one, two))
    assert 4.0 / 64.0 <= hv.noise_floor(low) <= hv.noise_floor(high) < 0.2


@given(st.sampled_from(["topic", "claim", "role", "acts"]), st.lists(seeds, min_size=1, max_size=5), seeds)
def test_binding_both_sides_to_the_name_of_a_field_changes_no_distance(field, units, question):
    """Each field is compared with the same field only, so that its name tells nothing apart."""
    name, rows, query = hv.random(field), np.stack([drawn(seed) for seed in units]), drawn(question)
    bound = np.stack([hv.bind(name, row) for row in rows])
    assert np.array_equal(hv.hamming(bound, hv.bind(name, query)), hv.hamming(rows, query))


@given(tokens, tokens)
def test_units_and_questions_bound_to_the_names_of_their_fields_are_as_far_apart(said, asked):
    settings = Settings.reference()
    unit = make_unit(text=" ".join(said), topic=" ".join(asked))
    found = encode_unit(unit, analyse(unit, settings.analysis), settings.hyper)
    _, question, _ = encode_query(profile_query(" ".join(asked)), settings.hyper)
    for field, vector in (("topic", found.topic), ("claim", found.claim)):
        if vector is not None and question is not None:
            name = hv.random(field)
            apart = hv.hamming(vector[None, :], question)
            assert np.array_equal(hv.hamming(hv.bind(name, vector)[None, :], hv.bind(name, question)), apart)
