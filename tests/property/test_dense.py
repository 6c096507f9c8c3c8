"""Dense proposals (C10, laws 11 and 18): tiers by the formula, and a block that changed equals one rebuilt."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from builders import make_unit, patient, read_shards
from holdfast.kernels import vectors
from holdfast.settings import AnalysisSettings
from holdfast.store.queries import DenseQuery
from holdfast.store.sqlite import blocks as dense
from holdfast.store.sqlite import postings
from holdfast.store.sqlite import shard as index
from holdfast.store.sqlite.blocks import DenseBlock, Funnel
from holdfast.text import analyse

floats = st.floats(-4.0, 4.0, width=32) | st.sampled_from([0.0, 1e-8, -1e-8, 1e-20, 3e-9])
dims = st.sampled_from([8, 64, 100, 256, 300])


@st.composite
def matrices(draw, least=1, most=6):
    width = draw(dims)
    rows = draw(st.integers(least, most))
    return draw(arrays.arrays(np.float32, (rows, width), elements=floats, fill=st.just(0.0)))


def slow_tier(row, tier):
    cut = [float(value) for value in row[:tier]]
    length = math.sqrt(math.fsum(value * value for value in cut) + 1e-8**2)
    return [value / length for value in cut]


@given(matrices(), st.sampled_from([1, 2, 8, 64, 256, 5000]))
def test_a_tier_is_the_prefix_over_its_length_with_epsilon(matrix, tier):
    found = vectors.tier(matrix, tier)
    assert found.shape == (len(matrix), min(tier, matrix.shape[1]))
    assert found.dtype == np.float64
    for row, cut in zip(matrix, found, strict=True):
        assert cut.tolist() == pytest.approx(slow_tier(row, tier), rel=1e-12, abs=1e-300)
        assert math.sqrt(math.fsum(value * value for value in cut.tolist())) < 1.0 + 1e-12


@given(matrices(least=2), st.sampled_from([8, 64, 256, 5000]))
def test_cosines_are_the_products_of_tiers_and_never_leave_their_range(matrix, tier):
    found = vectors.cosines(matrix[1:], matrix[0], tier)
    for row, near in zip(matrix[1:], found.tolist(), strict=True):
        slow = math.fsum(a * b for a, b in zip(slow_tier(row, tier), slow_tier(matrix[0], tier), strict=True))
        assert near == pytest.approx(slow, abs=1e-12)
        assert -1.0 <= near <= 1.0


@given(matrices(least=2))
def test_whole_numbers_keep_the_direction_within_half_a_step(matrix):
    whole = vectors.quantise(matrix)
    for row, found in zip(matrix, whole.astype(int), strict=True):
        peak = float(np.abs(row).max())
        if peak > 1e-6:  # above it, epsilon does not bend the direction
            assert np.abs(found - row.astype(float) * 127 / peak).max() <= 0.5 + 1e-6
        assert np.abs(found).max() <= 127


@given(matrices(least=2))
def test_approximate_cosines_are_exact_for_whole_numbers(matrix):
    rows = vectors.quantise(matrix)
    for tier in {min(64, rows.shape[1]), rows.shape[1]}:
        lengths = vectors.inverse_lengths(rows, tier)
        products = vectors.multiply(rows[:, :tier], rows[0, :tier])
        found = vectors.approximate(products, lengths, np.float32(1.0))
        for row, length, value in zip(rows.tolist(), lengths.tolist(), found.tolist(), strict=True):
            squares = sum(number * number for number in row[:tier])
            product = sum(a * b for a, b in zip(row[:tier], rows[0].tolist()[:tier], strict=True))
            assert length == (float(np.float32(1.0 / math.sqrt(squares))) if squares else 0.0)
            assert value == float(np.float32(product) * np.float32(length))


# ------------------------------------------------------------------------------------------------ the block

WIDTH = 100
PLACES = 12
# How far the cosine of two rows of whole numbers may lie from that of the rows themselves.
ROUNDING = 0.01


def vector(seed):
    return np.random.default_rng(seed).normal(size=WIDTH).astype(np.float32)


# Add or replace the vectors of some places, or let some places die.
steps = st.lists(
    st.tuples(st.just("add"), st.dictionaries(st.integers(0, PLACES - 1), st.integers(0, 99), min_size=1, max_size=5))
    | st.tuples(st.just("die"), st.sets(st.integers(0, PLACES - 1), max_size=4)),
    max_size=12,
)


def played(changes):
    """Return the block, and {place: seed} of what is left after each fold renumbered the living places."""
    block, left, size = DenseBlock(WIDTH), {}, PLACES
    for verb, argument in changes:
        if verb == "add":
            given_now = {place: seed for place, seed in argument.items() if place < size}
            if given_now:
                block.add(
                    np.array([*given_now], dtype=np.int32), np.array([vector(seed) for seed in given_now.values()])
                )
                left |= given_now
        else:
            alive = np.array([place not in argument for place in range(size)], dtype=np.bool_)
            block.renumber(alive)
            moved = np.cumsum(alive) - 1
            left = {int(moved[place]): seed for place, seed in left.items() if alive[place]}
            size = int(alive.sum())
    return block, left, size


def rebuilt(left, order=sorted):
    block = DenseBlock(WIDTH)
    keys = [*order(left)]
    if keys:
        block.add(np.array(keys, dtype=np.int32), np.array([vector(left[key]) for key in keys]))
    return block


def canonical(block):
    """Return the rows of a block up to its last vector: places behind it have none, whether or not there is room."""
    arrays_now = block.to_arrays()
    size = int(np.max(np.flatnonzero(arrays_now["checksums"] >= 0), initial=-1)) + 1
    return {name: array[:size].tolist() for name, array in arrays_now.items()}


def proposed(block, size, depth, tier, seed=1000, hidden=(), funnel=None):
    eligible = np.array([place not in hidden for place in range(size)], dtype=np.bool_)
    places, scores = block.propose(vector(seed), eligible, depth, tier, funnel)
    return sorted(zip(places.tolist(), scores.tolist(), strict=True))


@given(steps, st.integers(1, 15), st.sampled_from([None, 64, 256]), st.sets(st.integers(0, 11)))
def test_a_block_that_changed_proposes_like_one_rebuilt_in_any_order(changes, depth, tier, hidden):
    block, left, size = played(changes)
    for order in (sorted, lambda keys: sorted(keys, reverse=True)):
        fresh = rebuilt(left, order)
        assert canonical(block) == canonical(fresh)
        assert proposed(block, size, depth, tier, hidden=hidden) == proposed(fresh, size, depth, tier, hidden=hidden)
    again = DenseBlock.from_arrays(block.to_arrays())
    assert proposed(again, size, depth, tier, hidden=hidden) == proposed(block, size, depth, tier, hidden=hidden)


@given(steps, st.integers(1, 6), st.integers(1, 3))
def test_a_narrow_funnel_proposes_the_same_after_changes_too(changes, depth, width):
    narrow = Funnel(PLACES, width)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dense, "_LEAST_FOR_EACH", 0)
        patch.setattr(dense, "_SWEEP_GAIN", 1)
        block, left, size = played(changes)
        found = [proposed(one, size, depth, None, funnel=narrow) for one in (block, rebuilt(left))]
    assert found[0] == found[1]


@given(st.lists(st.integers(-9, 9), max_size=300), st.integers(0, 40), st.sampled_from([0.0, 1e-5, 0.5, 3.0]))
def test_the_best_are_chosen_without_sorting_as_if_all_were_sorted(values, k, margin):
    # Whole numbers and floats with many ties, below and above the size where the maxima of groups decide.
    for scores in (np.array(values, dtype=np.int32), np.array(values, dtype=np.float32) / 10, np.array(values) * 0.3):
        ranked = sorted(scores.tolist(), reverse=True)
        bar = ranked[min(k, len(ranked)) - 1] - margin if k and ranked else math.inf
        slow = [place for place, score in enumerate(scores.tolist()) if score >= bar]
        for many in (10, 1000):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(vectors, "_MANY_SCORES", many)
                assert vectors.at_least_top(scores, k, margin).tolist() == slow


@given(steps, steps, st.integers(1, 6))
def test_a_restored_block_goes_on_like_the_one_that_was_saved(before, after, depth):
    _, left, size = played(before)
    block = rebuilt(left)
    restored = DenseBlock.from_arrays(block.to_arrays())
    for verb, argument in after:
        if verb == "add":
            places = [place for place in argument if place < size]
            for one in (block, restored):
                if places:
                    one.add(np.array(places, dtype=np.int32), np.array([vector(argument[p]) for p in places]))
        else:
            alive = np.array([place not in argument for place in range(size)], dtype=np.bool_)
            size = int(alive.sum())
            for one in (block, restored):
                one.renumber(alive)
    assert canonical(block) == canonical(restored)
    assert proposed(block, size, depth, None) == proposed(restored, size, depth, None)


@given(st.lists(st.integers(0, 10_000), min_size=1, max_size=60, unique=True), st.integers(1, 70))
def test_with_few_rows_no_member_of_the_exact_best_is_lost_beyond_rounding(seeds, depth):
    left = dict(enumerate(seeds))
    places = {place for place, _ in proposed(rebuilt(left), len(left), depth, None)}
    rows = np.array([vector(seed) for seed in seeds])
    exact = vectors.cosines(rows, vector(1000), WIDTH)
    bar = np.sort(exact)[::-1][min(depth, len(exact)) - 1]
    assert set(np.flatnonzero(exact > bar + ROUNDING).tolist()) <= places
    assert len(places) >= min(depth, len(exact))


# ------------------------------------------------------------------------------------- the block in its shard

texts = st.sampled_from(["oak", "elm fig", "oak yew ash", "gum"])
changes_of_units = st.lists(
    st.tuples(st.integers(0, 6), st.none() | texts, st.none() | st.integers(0, 50)), max_size=20
)


def applied(changes, tail):
    """Return the shard that the changes made, and what is left: {key: (text, seed of its vector)}."""
    shard, left = index.Shard(), {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(postings, "_SMALL_TAIL", tail)
        patch.setattr(postings, "_TAIL_SHARE", 0.0)
        for key, text, seed in changes:
            if text is None:
                shard.remove(key)
                left.pop(key, None)
                continue
            unit = make_unit(f"u{key}", text)
            shard.add(key, unit, analyse(unit, AnalysisSettings()), content=0, superseded=False)
            left[key] = (text, seed)
            if seed is not None:
                shard.add_vectors([(key, vector(seed), 0), (99, vector(0), 0)])  # nobody has key 99
    return shard, left


@given(changes_of_units, st.sampled_from([0, 7, 10_000]), st.integers(1, 8), st.booleans())
def test_a_shard_that_changed_proposes_by_meaning_like_one_rebuilt(changes, tail, depth, saved):
    shard, left = applied(changes, tail)
    if saved:
        shard = index.Shard.from_arrays(shard.to_arrays())
    fresh, _ = applied([(key, *left[key]) for key in sorted(left, reverse=True)], 10_000)
    query = DenseQuery("s", vector(1000))
    for tier in (None, 64):
        asked = DenseQuery(query.space, query.vector, tier)
        found = [sorted(read_shards([one]).propose(asked, depth, patient()).ids) for one in (shard, fresh)]
        assert found[0] == found[1]
    embedded = {f"u{key}" for key, (_, seed) in left.items() if seed is not None}
    everything = read_shards([shard]).propose(query, 99, patient())
    assert set(everything.ids) == embedded
    assert len(everything.ids) == len(embedded)


@given(changes_of_units, changes_of_units, st.integers(1, 5))
def test_two_shards_are_proposed_from_as_one_and_a_users_own_unit_hides_a_global_one(mine, shared, depth):
    (own, left), (common, others) = applied(mine, 7), applied(shared, 7)
    found = read_shards([own, common]).propose(DenseQuery("s", vector(1000)), depth, patient()).ids
    seeds = {f"u{k}": s for k, (_, s) in others.items()} | {f"u{k}": s for k, (_, s) in left.items()}
    rows = {unit_id: vector(seed) for unit_id, seed in seeds.items() if seed is not None}
    exact = {k: float(vectors.cosines(row[None, :], vector(1000), WIDTH)[0]) for k, row in rows.items()}
    bar = sorted(exact.values(), reverse=True)[:depth][-1] if exact else 0.0
    assert {key for key, near in exact.items() if near > bar + ROUNDING} <= set(found) <= set(exact)
    assert len(found) >= min(depth, len(exact))
    assert len(found) == len(set(found))


def test_vectors_of_another_length_start_a_new_block():
    shard, _ = applied([(1, "oak", 1), (2, "elm", 2)], 7)
    shard.add_vectors([(2, np.ones(8, dtype=np.float32), 0)])
    found = read_shards([shard]).propose(DenseQuery("s", np.ones(8, dtype=np.float32)), 9, patient())
    assert found.ids == ("u2",)
    assert read_shards([shard]).propose(DenseQuery("s", vector(1)), 9, patient()).ids == ()


@given(st.integers(0, 999), st.sampled_from([8, 64, 100, 300, 1100]), st.integers(0, 90), st.integers(1, 5))
def test_many_queries_at_once_find_what_each_finds_alone(seed, width, rows, asked):
    random = np.random.default_rng(seed)
    block = DenseBlock(width)
    block.add(np.arange(rows, dtype=np.int32), random.normal(size=(rows, width)).astype(np.float32))
    queries = random.normal(size=(asked, width)).astype(np.float32)
    masks, depths = [random.random(rows) < share for share in (0.9, 0.4)], (4, 2)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dense, "_LEAST_FOR_EACH", 1)
        patch.setattr(dense, "_SWEEP_GAIN", 1)
        funnel = Funnel(30, width=9) if seed % 3 else None
        found = block.propose_all(queries, masks, depths, (0.1, -1.0), funnel)
        for mask, depth, least, near in zip(masks, depths, (0.1, -1.0), found, strict=True):
            for query, places in zip(queries, near, strict=True):
                alone, scores = block.propose(query, mask, depth, None, funnel)
                assert places.tolist() == alone[scores >= least].tolist()
