"""Dense vectors (C10): tiers, whole numbers that only propose, the early exit as written, and recall on real text."""

import math
import re
from pydoc_data.topics import topics

import numpy as np
import pytest

from builders import ask, opened, patient, retrieve
from holdfast import Settings
from holdfast.kernels import vectors
from holdfast.kernels.vectors import at_least_top
from holdfast.models import build_embedder
from holdfast.retrieval.dense import DenseStrategy
from holdfast.settings import EmbeddingSettings
from holdfast.store import blocks as dense
from holdfast.store.blocks import DenseBlock
from holdfast.store.contract import DenseEvidence, Proposal
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
    lengths = vectors.inverse_lengths(whole, 64)
    assert lengths.tolist() == [0.0, 0.0]
    assert vectors.approximate(whole, lengths, vectors.quantise(drawn(1, 64)[0]), 64).tolist() == [0.0, 0.0]


@pytest.mark.parametrize("dims", [64, 256, 384, 1040])
def test_products_of_whole_numbers_are_exact_in_float32(dims):
    chance = np.random.default_rng(dims)
    rows = chance.integers(-127, 128, size=(200, dims)).astype(np.int8)
    rows[0], rows[1] = 127, -127
    query = np.full(dims, 127, dtype=np.int8) if dims == 1040 else rows[2]
    ones = np.ones(len(rows), dtype=np.float32)
    exact = [sum(int(a) * int(b) for a, b in zip(row, query, strict=True)) for row in rows]
    assert [int(value) for value in vectors.approximate(rows, ones, query, dims)] == exact
    assert [int(v) for v in vectors.approximate(rows.astype(np.float32), ones, query, dims)] == exact


def test_more_dimensions_than_float32_can_add_exactly_are_added_in_float64():
    assert vectors.EXACT_DIMS * 127 * 127 <= 1 << 24 < (vectors.EXACT_DIMS + 1) * 127 * 127
    # Sums beyond 2²⁴: added in float32 they would lose their last bits on the way.
    rows = np.random.default_rng(3).integers(60, 128, size=(100, 20_000)).astype(np.int8)
    query = np.full(20_000, 127, dtype=np.int8)
    exact = [float(np.float32(127 * sum(row.tolist()))) for row in rows]
    assert min(exact) > 1 << 24
    assert vectors.approximate(rows, np.ones(100, dtype=np.float32), query, 20_000).tolist() == exact


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
    assert block.tiers == tuple(sorted({tier for tier in (64, 256) if tier < dims} | {dims}))
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


def test_what_a_tier_hands_on_counts_living_vectors_only(monkeypatch):
    monkeypatch.setattr(dense, "_FUNNEL_LEAST", 1)
    monkeypatch.setattr(dense, "_SECOND_LEAST", 1)
    monkeypatch.setattr(dense, "_FUNNEL_SHARE", 0.2)
    rows, query = drawn(100, 384), drawn(1, 384, seed=1)[0]
    replaced, fresh = DenseBlock(384), DenseBlock(384)
    for _ in range(4):
        replaced.add(np.arange(100, dtype=np.int32), rows, [0] * 100)
    fresh.add(np.arange(100, dtype=np.int32), rows, [0] * 100)
    everything = np.ones(100, dtype=np.bool_)
    found = [sorted(block.propose(query, everything, 2, None)[0].tolist()) for block in (replaced, fresh)]
    assert found[0] == found[1]


# --------------------------------------------------------------------------------------- recall on real text


def sentences():
    """Return several thousand sentences and clauses of the Python manual."""
    found = {}
    for text in topics.values():
        for sentence in re.split(r"(?<=[.;:,])\s+", " ".join(text.split())):
            if 25 < len(sentence) < 400 and len(sentence.split()) > 3:
                found[sentence] = None
    return list(found)


def test_the_funnel_finds_what_exact_search_finds_in_thousands_of_real_sentences():
    texts = sentences()
    assert len(texts) >= 3000
    embedder = build_embedder(EmbeddingSettings(embedder="potion"))
    rows = embedder.embed_documents(texts)
    block = DenseBlock(embedder.dims)
    block.add(np.arange(len(texts), dtype=np.int32), rows, [0] * len(texts))
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
        places, _ = block.propose(query, np.ones(len(texts), dtype=np.bool_), 64, None)
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
