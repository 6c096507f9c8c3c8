"""Dense vectors (C10): tiers, whole numbers that only propose, the early exit as written, and recall on real text."""

import dataclasses
import math
import re
from pydoc_data.topics import topics

import numpy as np
import pytest

from builders import ask, opened, patient, program, retrieve
from holdfast import Settings
from holdfast.kernels import vectors
from holdfast.kernels.vectors import at_least_top
from holdfast.models import build_embedder
from holdfast.retrieval.dense import DenseStrategy
from holdfast.settings import DenseSettings, EmbeddingSettings
from holdfast.store.queries import DenseEvidence, Proposal
from holdfast.store.sqlite.blocks import CARRIED, DenseBlock, Funnel
from holdfast.types import QueryProfile

DIMS = (8, 64, 100, 256, 300, 384, 2000)


def drawn(rows, dims, seed=0):
    return np.random.default_rng(seed).normal(size=(rows, dims)).astype(np.float32)


# --------------------------------------------------------------------------------------------------- tiers


def test_a_near_zero_prefix_gives_nearly_nothing_and_never_a_nan():
    rows = np.array([[0, 0, 1], [1e-20, 0, 1], [1e-12, 0, 1], [0, 0, 0]], dtype=np.float32)
    cut = vectors.tier(rows, 2)
    assert np.isfinite(cut).all()
    assert np.abs(cut).max() <= 1.0001e-4
    near = vectors.cosines(rows, np.array([1, 0, 0], dtype=np.float32), 2)
    assert np.isfinite(near).all()
    assert np.abs(near).max() <= 1.0001e-4
    assert vectors.cosines(rows, np.zeros(3, dtype=np.float32), 3).tolist() == [0.0] * 4


def test_epsilon_is_added_under_the_root_and_squared():
    row = np.array([[1e-8, 0.0]], dtype=np.float32)
    assert vectors.tier(row, 2)[0, 0] == pytest.approx(1.0 / math.sqrt(2.0), rel=1e-6)


def test_a_vectors_cosine_with_itself_is_one_and_with_its_opposite_minus_one():
    rows = drawn(5, 64)
    for i, row in enumerate(rows):
        near = vectors.cosines(np.array([row, -row, row * 7]), rows[i], 64)
        assert near.tolist() == pytest.approx([1.0, -1.0, 1.0], abs=1e-12)
        assert np.abs(near).max() <= 1.0


@pytest.mark.parametrize("dims", DIMS)
def test_a_cosine_is_the_same_to_the_last_bit_whatever_rows_stand_around_it(dims):
    rows, query = drawn(33, dims), drawn(1, dims, seed=1)[0]
    for tier in {min(64, dims), min(256, dims), dims}:
        together = vectors.cosines(rows, query, tier)
        alone = [float(vectors.cosines(row[None, :], query, tier)[0]) for row in rows]
        strided = vectors.cosines(np.asfortranarray(rows), query, tier)
        assert together.tolist() == alone == strided.tolist()
        assert vectors.cosines(rows[::-1], query, tier)[::-1].tolist() == alone


# ------------------------------------------------------------------------------------------ whole numbers


def test_only_the_direction_is_kept_and_the_longest_axis_becomes_127():
    rows = drawn(20, 64)
    whole = vectors.quantise(rows)
    assert whole.dtype == np.int8
    assert np.abs(whole.astype(int)).max(axis=1).tolist() == [127] * 20
    assert np.array_equal(vectors.quantise(rows * np.float32(8.0)), whole)
    assert np.array_equal(vectors.quantise(rows[3]), whole[3])


def test_a_zero_vector_stays_zero_and_matches_nothing():
    whole = vectors.quantise(np.zeros((2, 64), dtype=np.float32))
    assert not whole.any()
    assert not vectors.quantise_prefix(whole, 8).any()
    lengths = vectors.inverse_lengths(whole, 64)
    assert lengths.tolist() == [0.0, 0.0]
    products = vectors.multiply(whole, vectors.quantise(drawn(1, 64)[0]))
    assert vectors.approximate(products, lengths, np.float32(1.0)).tolist() == [0.0, 0.0]


@pytest.mark.parametrize("dims", [64, 256, 384, 1040])
def test_products_of_whole_numbers_are_exact_in_float32(dims):
    chance = np.random.default_rng(dims)
    rows = chance.integers(-127, 128, size=(200, dims)).astype(np.int8)
    rows[0], rows[1] = 127, -127
    query = np.full(dims, 127, dtype=np.int8) if dims == 1040 else rows[2]
    exact = [sum(int(a) * int(b) for a, b in zip(row, query, strict=True)) for row in rows]
    assert vectors.multiply(rows, query).tolist() == exact
    assert vectors.multiply_all(rows, np.array([query, -query])).tolist() == [exact, [-one for one in exact]]
    for places in ([], [0, 1, 7], [*range(3, 199)]):
        chosen = np.array(places, dtype=np.intp)
        assert vectors.multiply(rows, query, chosen).tolist() == [exact[place] for place in places]


def test_more_dimensions_than_float32_can_add_exactly_are_added_in_float64():
    assert vectors.EXACT_DIMS * 127 * 127 <= 1 << 24 < (vectors.EXACT_DIMS + 1) * 127 * 127
    # Sums beyond 2²⁴: added in float32 they would lose their last bits on the way.
    rows = np.random.default_rng(3).integers(60, 128, size=(100, 20_000)).astype(np.int8)
    query = np.full(20_000, 127, dtype=np.int8)
    exact = [127 * sum(row.tolist()) for row in rows]
    assert min(exact) > 1 << 24
    assert vectors.multiply(rows, query).tolist() == exact


@pytest.mark.parametrize("dims", [1, 3, 64, 65, 384, 1100])
@pytest.mark.parametrize("count", [1, 50, 5000])
def test_either_library_multiplies_to_the_same_bits(dims, count, monkeypatch):
    pytest.importorskip("simsimd")
    rows, places = vectors.quantise(drawn(count, dims)), np.arange(0, count, 3)
    query = vectors.quantise(drawn(1, dims, seed=1)[0])
    fast = [vectors.multiply(rows, query, some) for some in (None, places)]
    monkeypatch.setattr(vectors, "_fast", None)
    slow = [vectors.multiply(rows, query, some) for some in (None, places)]
    for one, other in zip(fast, slow, strict=True):
        assert one.dtype == other.dtype == np.int32
        assert one.tolist() == other.tolist()


def test_prefixes_of_one_length_order_rows_as_their_cosines_do():
    rows, query = drawn(300, 384), drawn(1, 384, seed=1)[0]
    first = vectors.quantise_prefix(vectors.quantise(rows), 64)
    assert np.abs(np.linalg.norm(first, axis=1) - 127).max() < 2.5
    products = vectors.multiply(first, vectors.quantise_prefix(vectors.quantise(query), 64))
    assert np.abs(products / 127**2 - vectors.cosines(rows, query, 64)).max() < 0.03


def test_a_stored_vector_keeps_its_direction_whatever_its_length():
    rows = drawn(20, 384)
    for scale in (1e-30, 1.0, 1e30):
        kept = vectors.halve((rows * np.float32(scale)).astype(np.float32))
        assert kept.dtype == np.dtype("<f2")
        for row, half in zip(rows, kept.astype(np.float32), strict=True):
            assert scale < 1.0 or vectors.cosines(half[None, :], row, 384)[0] > 1.0 - 1e-6
            assert np.isfinite(half).all()


# ----------------------------------------------------------------------------------------------- early exit


class OneShelf:
    """A reading of vectors alone: proposes what is best at the tier that is asked for, and notes the tiers."""

    def __init__(self, rows):
        self.rows = rows
        self.asked = []

    def _order(self, query):
        tier = query.tier or len(query.vector)
        self.asked.append(query.tier)
        near = vectors.cosines(self.rows, query.vector, tier) if len(self.rows) else []
        return [f"u{i}" for i in np.argsort(-np.asarray(near), kind="stable")]

    def propose(self, query, depth, deadline):
        return Proposal(tuple(self._order(query)[:depth]))

    def evidence(self, query, ids):
        rows = [self.rows[int(unit_id[1:])] for unit_id in ids]
        return DenseEvidence(tuple(ids), np.array(rows, dtype=np.float32))


def tier_by_hand(rows, query, first=0.65, second=0.75):
    """The early exit as the contract writes it."""
    for tier, threshold in ((64, first), (256, second)):
        if tier >= len(query):
            break
        best = max((float(vectors.cosines(row[None, :], query, tier)[0]) for row in rows), default=0.0)
        if best >= threshold:
            return tier
    return len(query)


def chosen_tier(rows, query, settings=None):
    strategy = DenseStrategy(settings or Settings.reference())
    profile = QueryProfile("?", (), vector=query, space="s")
    shelf = OneShelf(rows)
    strategy.propose(profile, shelf, 5, patient())
    return shelf.asked[-1] or len(query), [*dict.fromkeys(shelf.asked)]


@pytest.mark.parametrize("dims", DIMS)
@pytest.mark.parametrize("noise", [0.1, 1.0, 1.1, 1.2, 1.4, 3.0])
def test_the_first_tier_that_is_sure_enough_answers(dims, noise):
    for seed in range(5):
        query = drawn(1, dims, seed)[0]
        rows = query + np.float32(noise) * drawn(20, dims, seed + 100)
        assert chosen_tier(rows, query)[0] == tier_by_hand(rows, query)


def at_angle(cosine_64, cosine_256, dims=384):
    """Return a query and a row with these cosines at the first two tiers, and opposite in the rest."""
    query, row = np.zeros(dims), np.zeros(dims)
    query[0] = 1.0
    row[0], row[1] = cosine_64, math.sqrt(1.0 - cosine_64**2)
    # Dimensions 64 to 256 agree so far that the cosine over all 256 is as wished: solved by bisection.
    low, high = 0.0, 1e6
    for _ in range(200):
        weight = (low + high) / 2
        got = (cosine_64 + weight**2) / (1.0 + weight**2)
        low, high = (weight, high) if got < cosine_256 else (low, weight)
    query[64] = row[64] = low
    return query.astype(np.float32), row[None, :].astype(np.float32)


@pytest.mark.parametrize(
    ("cosine_64", "cosine_256", "tier", "asked"),
    [
        (0.66, 0.70, 64, [64]),
        (0.64, 0.76, 256, [64, 256]),
        (0.64, 0.74, 384, [64, 256, 384]),
        (0.40, 0.40, 384, [64, 256, 384]),
    ],
)
def test_tier_64_is_sure_at_065_and_tier_256_at_075(cosine_64, cosine_256, tier, asked):
    query, rows = at_angle(cosine_64, cosine_256)
    assert chosen_tier(rows, query) == (tier, asked)


@pytest.mark.parametrize(("alike", "tier"), [(1.0, 64), (0.7, 256), (0.6, 384)])
def test_an_explanation_names_the_tier_by_which_units_were_chosen(alike, tier):
    class Turned:
        """A question and its units agree so far in the first dimensions, and wholly in the next."""

        dims, space = 384, "turned/384"

        def embed_query(self, text):
            vector = np.zeros(384, dtype=np.float32)
            vector[[0, 1]] = (1.0, 0.0) if text.endswith("?") else (alike, math.sqrt(1.0 - alike**2))
            vector[[64, 300]] = {1.0: (0.0, 1.0), 0.7: (0.8, 0.0), 0.6: (0.0, 1.0)}[alike]
            return vector / np.linalg.norm(vector)

        def embed_documents(self, texts):
            return np.array([self.embed_query(text) for text in texts])

    settings = dataclasses.replace(
        Settings.reference(), dense=DenseSettings(early_exit=True, exit_64=0.9, exit_256=0.8)
    )
    with opened(settings, embedder=Turned()) as memory:
        memory.remember([f"turn {place}" for place in range(5)], user="ana")
        [note] = {
            one for hit in memory.search("turn?", user="ana", explain=True) for one in hit.notes if "tier" in one
        }
        assert note == f"tier: {tier}"


def test_a_tier_at_its_threshold_is_sure_enough():
    query, rows = np.zeros(384, dtype=np.float32), np.zeros((1, 384), dtype=np.float32)
    query[0] = rows[0, 0] = 1.0
    exact = float(vectors.cosines(rows, query, 64)[0])
    assert chosen_tier(rows, query, Settings.load({"dense.early_exit": True, "dense.exit_64": exact}, environ={}))[
        0
    ] == (64)


def test_an_empty_tiers_best_is_zero_and_the_full_tier_answers():
    query = drawn(1, 384)[0]
    assert chosen_tier(np.zeros((0, 384), dtype=np.float32), query) == (384, [64, 256, 384])


@pytest.mark.parametrize(("dims", "asked"), [(8, [8]), (64, [64]), (65, [64, 65]), (256, [64, 256])])
def test_a_tier_that_is_not_smaller_than_the_vector_is_the_full_tier(dims, asked):
    query = drawn(1, dims)[0]
    assert chosen_tier(-query[None, :], query) == (dims, asked)


def test_the_funnel_is_one_question_and_scores_by_the_full_vector():
    query = drawn(1, 384)[0]
    assert chosen_tier(query[None, :], query, Settings()) == (384, [None])


@pytest.mark.parametrize("recipe", [Settings(), Settings.reference()], ids=["default", "reference"])
def test_scoring_agrees_with_retrieving_bit_for_bit_whichever_tier_answered(recipe):
    class Fixed:
        dims, space = 384, "fixed/384"

        def embed_query(self, text):
            seed = sum(text.encode())
            # Alike in the first 64 dimensions, so that the reference recipe exits there.
            return np.concatenate([drawn(1, 64)[0] + 0.2 * drawn(1, 64, seed)[0], drawn(1, 320, seed)[0]]).astype(
                "f4"
            )

        def embed_documents(self, texts):
            return np.array([self.embed_query(text) for text in texts])

    with opened(recipe, embedder=Fixed()) as memory:
        for i, text in enumerate(("one lamp", "two oars", "three nets", "four sails")):
            memory.remember(text, id=f"u{i}", user="ana")
        question = QueryProfile("?", (), vector=Fixed().embed_query("where is it?"), space=Fixed.space)
        strategy = DenseStrategy(memory.settings)
        found = retrieve(memory, strategy, question, 9).claims
        scored = ask(memory, lambda reading: strategy.score(question, reading, found.ids))
        assert found.ids
        assert found.raw.tolist() == scored.raw.tolist()


# ------------------------------------------------------------------------------------------------ the funnel


@pytest.mark.parametrize("dims", DIMS)
def test_vectors_of_any_length_can_be_proposed_from(dims):
    rows, query = drawn(50, dims), drawn(1, dims, seed=1)[0]
    block = DenseBlock(dims)
    block.add(np.arange(50, dtype=np.int32), rows, [0] * 50)
    places, scores = block.propose(query, np.ones(50, dtype=np.bool_), 50, None)
    assert sorted(places.tolist()) == list(range(50))
    assert np.isfinite(scores).all()
    for tier in (64, 256, dims):
        places, _ = block.propose(query, np.ones(50, dtype=np.bool_), 5, tier)
        exact = vectors.cosines(rows, query, min(tier, dims))
        assert int(np.argmax(exact)) in places.tolist()


def test_an_empty_block_and_a_block_of_zeros_propose_without_complaint():
    query = drawn(1, 384)[0]
    assert DenseBlock(384).propose(query, np.zeros(0, dtype=np.bool_), 5, None)[0].tolist() == []
    block = DenseBlock(384)
    block.add(np.arange(3, dtype=np.int32), np.zeros((3, 384), dtype=np.float32), [0] * 3)
    places, scores = block.propose(query, np.ones(3, dtype=np.bool_), 5, None)
    assert (places.tolist(), scores.tolist()) == ([0, 1, 2], [0.0] * 3)
    places, scores = block.propose(np.zeros(384, dtype=np.float32), np.ones(3, dtype=np.bool_), 5, None)
    assert (len(places), scores.tolist()) == (3, [0.0] * 3)


def test_neighbours_that_whole_numbers_cannot_tell_apart_are_all_proposed():
    # The nearest differs from the others by less than a whole number resolves: the cut must not fall between them.
    chance = np.random.default_rng(5)
    lost = 0
    for _ in range(40):
        query = chance.normal(size=384).astype(np.float32)
        centre = query + chance.normal(size=384)
        rows = (centre + 0.01 * chance.normal(size=(30, 384))).astype(np.float32)
        block = DenseBlock(384)
        block.add(np.arange(30, dtype=np.int32), rows, [0] * 30)
        exact = vectors.cosines(rows, query, 384)
        places, _ = block.propose(query, np.ones(30, dtype=np.bool_), 1, None)
        lost += int(np.argmax(exact)) not in places.tolist()
    assert lost == 0


def test_what_the_first_tier_hands_on_counts_living_vectors_only():
    narrow = Funnel(100, 25)
    rows, query = drawn(100, 384), drawn(1, 384, seed=1)[0]
    replaced, fresh = DenseBlock(384), DenseBlock(384)
    for _ in range(4):
        replaced.add(np.arange(100, dtype=np.int32), rows, [0] * 100)
    fresh.add(np.arange(100, dtype=np.int32), rows, [0] * 100)
    everything = np.ones(100, dtype=np.bool_)
    found = [sorted(block.propose(query, everything, 2, None, narrow)[0].tolist()) for block in (replaced, fresh)]
    assert found[0] == found[1]


def test_a_funnel_widens_with_the_rows_and_never_narrows():
    measured, carried = Funnel(8192, 900), CARRIED
    assert [measured.width_for(rows, 10) for rows in (5, 8192, 16_384, 81_920)] == [900, 900, 1800, 9000]
    assert measured.width_for(8192, 500) == 5000
    assert [carried.width_for(rows, 10) for rows in (28_000, 112_000, 2_800_000)] == [1000, 2000, 10_000]


def meaningless_prefixes(rows, seed=0):
    """Return vectors whose first 64 dimensions say nothing of the rest, and near neighbours in the rest."""
    centres = drawn(rows // 20, 320, seed)
    rest = centres[np.random.default_rng(seed).integers(0, len(centres), rows)] + 0.5 * drawn(rows, 320, seed + 1)
    return np.concatenate([drawn(rows, 64, seed + 2), rest], axis=1).astype(np.float32)


def telling_prefixes(rows, seed=0):
    """Return vectors whose first dimensions carry most, as those of a rotated or trained embedder do."""
    weights = np.float32(1.0) / np.sqrt(np.arange(1, 385, dtype=np.float32))
    return meaningless_prefixes(rows, seed)[:, ::-1] * weights


def kept_of_the_best(rows, funnel):
    block, everything = DenseBlock(rows.shape[1]), np.ones(len(rows), dtype=np.bool_)
    block.add(np.arange(len(rows), dtype=np.int32), rows)
    found = []
    for query in rows[::60]:
        best = np.argsort(-vectors.cosines(rows, query, rows.shape[1]), kind="stable")[:10]
        places, _ = block.propose(query, everything, 20, None, funnel(block, len(rows)))
        found.append(len({*best.tolist()} & {*places.tolist()}) / 10)
    return float(np.mean(found))


def measure(block, size):
    return block.measure(np.arange(size), size)


@pytest.mark.parametrize("make", [meaningless_prefixes, telling_prefixes])
def test_no_embedder_loses_its_hits_whatever_its_first_dimensions_carry(make):
    rows = make(3000)
    assert kept_of_the_best(rows, measure) >= 0.99
    assert kept_of_the_best(rows, lambda _block, _size: None) == 1.0
    assumed = kept_of_the_best(rows, lambda _block, _size: Funnel(3000, 200))
    assert (assumed < 0.8) == (make is meaningless_prefixes)


def test_a_funnel_is_measured_alike_whatever_the_places_and_only_where_it_pays():
    rows = telling_prefixes(1000)
    shuffled = np.random.default_rng(1).permutation(1000)
    block, other = DenseBlock(384), DenseBlock(384)
    block.add(np.arange(1000, dtype=np.int32), rows)
    other.add(shuffled.astype(np.int32), rows)
    found = block.measure(np.arange(1000), 800)
    assert found == other.measure(shuffled, 800)
    assert found is not None
    assert found.rows == 800
    assert found.width == 500 < measure_of(meaningless_prefixes(1000)).width
    assert block.measure(np.arange(1000), 1001) is None


def measure_of(rows):
    block = DenseBlock(rows.shape[1])
    block.add(np.arange(len(rows), dtype=np.int32), rows)
    return measure(block, len(rows))


# --------------------------------------------------------------------------------------- recall on real text


def sentences():
    """Return several thousand sentences and clauses of the Python manual."""
    found = {}
    for text in topics.values():
        for sentence in re.split(r"(?<=[.;:,])\s+", " ".join(text.split())):
            if 25 < len(sentence) < 400 and len(sentence.split()) > 3:
                found[sentence] = None
    return list(found)


@pytest.mark.parametrize("measured", [True, False])
def test_thousands_of_real_sentences_are_found_as_by_exact_search(measured):
    texts = sentences()
    assert len(texts) >= 3000
    embedder = build_embedder(EmbeddingSettings(embedder="potion"))
    rows = embedder.embed_documents(texts)
    block = DenseBlock(embedder.dims)
    block.add(np.arange(len(texts), dtype=np.int32), rows, [0] * len(texts))
    funnel = measure(block, len(texts)) if measured else None
    chance = np.random.default_rng(11)
    found = wanted = 0
    for i in chance.choice(len(texts), size=100, replace=False):
        words = texts[i].split()
        kept = chance.random(len(words)) < 0.6
        query = embedder.embed_query(
            " ".join(word for word, keep in zip(words, kept, strict=True) if keep) or words[0]
        )
        exact = vectors.cosines(rows, query, embedder.dims)
        best = set(np.argsort(-exact, kind="stable")[:10].tolist())
        places, _ = block.propose(query, np.ones(len(texts), dtype=np.bool_), 64, None, funnel)
        # What is proposed is scored exactly; the ten best of that are the answer.
        order = sorted(places.tolist(), key=lambda place: (-exact[place], place))[:10]
        found += len(best & set(order))
        wanted += len(best)
    assert found / wanted >= 0.99


# ---------------------------------------------------------------------------------------------------- top k


def test_the_best_k_come_with_every_tie_and_everything_within_the_margin():
    scores = np.array([0.5, 0.9, 0.9 - 0.5e-5, 0.9 - 2e-5, 0.1])
    assert at_least_top(scores, 1).tolist() == [1, 2]
    assert at_least_top(scores, 3).tolist() == [1, 2, 3]
    assert at_least_top(scores, 9).tolist() == [0, 1, 2, 3, 4]
    assert at_least_top(scores, 0).tolist() == []
    assert at_least_top(np.zeros(0), 3).tolist() == []
    assert at_least_top(np.zeros(5), 2).tolist() == [0, 1, 2, 3, 4]


def test_an_exit_is_derived_from_the_scores_at_which_a_tier_keeps_the_best():
    derivation = program("benchmarks/cascade.py")
    far, near = (0.3, 0.2), (0.8, 1.0)
    sure = derivation.threshold(np.array([far, far, near, near] * 25))
    assert sure["threshold"] == pytest.approx(0.31)
    assert (sure["share of questions that exit"], sure["overlap@10 of those"]) == (0.5, 1.0)
    never = derivation.threshold(np.array([far] * 100))
    assert (never["threshold"], never["share of questions that exit"]) == (1.0, 0.0)
