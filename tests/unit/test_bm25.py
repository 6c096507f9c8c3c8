"""The BM25 kernel (C4), one property of the formula at a time."""

import math

import numpy as np
import pytest

from holdfast.kernels import bm25
from holdfast.kernels.vectors import at_least_top


def kernel(tf, lengths, idfs, averages, *, weights=None, boosts=None, k1=1.2, b=0.75):
    """Score one unit per row of `tf` (units × fields × terms)."""
    tf = np.array(tf, dtype=np.int64)
    weights = [1.0] * tf.shape[1] if weights is None else weights
    boosts = [1.0] * tf.shape[0] if boosts is None else boosts
    floats = [np.array(values, dtype=np.float64) for values in (idfs, averages, weights, boosts)]
    return bm25.scores(tf, np.array(lengths, dtype=np.int64), *floats, k1, b)


def test_idf_follows_the_formula():
    assert bm25.idf(10, 3) == math.log(1 + 7.5 / 3.5)
    assert bm25.idf(1, 1) == math.log(1 + 0.5 / 1.5)
    assert bm25.idf(0, 0) == math.log(2)


def test_idf_is_positive_even_for_a_term_that_every_unit_holds_and_falls_with_df():
    values = [bm25.idf(50, df) for df in range(51)]
    assert values == sorted(values, reverse=True)
    assert values[-1] > 0.0


def test_one_term_in_one_field_follows_the_formula():
    expected = 0.7 * 3 * 2.2 / (3 + 1.2 * (0.25 + 0.75 * 8 / 4))
    assert kernel([[[3]]], [[8]], [0.7], [4.0])[0] == pytest.approx(expected, rel=1e-15)


def test_a_unit_without_the_term_scores_nothing():
    assert kernel([[[0]], [[1]]], [[5], [5]], [0.7], [5.0])[0] == 0.0


def test_more_occurrences_score_more_but_never_reach_the_ceiling():
    scores = kernel([[[n]] for n in (1, 2, 5, 1000)], [[10]] * 4, [0.7], [10.0])
    assert list(scores) == sorted(scores)
    assert scores[-1] < bm25.ceiling(0.7, 1.0, 1.2)


def test_a_longer_field_is_held_back_and_b_zero_lifts_that():
    long, short = kernel([[[1]], [[1]]], [[20], [5]], [1.0], [10.0])
    assert long < short
    assert len(set(kernel([[[1]], [[1]]], [[20], [5]], [1.0], [10.0], b=0.0))) == 1


def test_with_k1_zero_only_presence_counts_and_absence_is_no_division_by_zero():
    assert list(kernel([[[0]], [[1]], [[9]]], [[4]] * 3, [0.7], [4.0], k1=0.0)) == [0.0, 0.7, 0.7]


def test_a_field_that_is_empty_everywhere_adds_nothing():
    scores = kernel([[[0], [2]]], [[0, 3]], [0.7], [0.0, 3.0])
    assert scores[0] == kernel([[[2]]], [[3]], [0.7], [3.0])[0]
    assert kernel([[[0]]], [[0]], [0.7], [0.0])[0] == 0.0


def test_fields_are_summed_by_weight_and_idf_is_shared():
    both = kernel([[[1], [1]]], [[4, 6]], [0.9], [4.0, 6.0], weights=[1.5, 0.5])[0]
    alone = kernel([[[1]]], [[4]], [0.9], [4.0])[0]
    assert both == pytest.approx(1.5 * alone + 0.5 * alone, rel=1e-15)


def test_terms_are_summed():
    both = kernel([[[2, 1]]], [[5]], [0.9, 0.4], [5.0])[0]
    apart = kernel([[[2]]], [[5]], [0.9], [5.0])[0] + kernel([[[1]]], [[5]], [0.4], [5.0])[0]
    assert both == pytest.approx(apart, rel=1e-15)


def test_the_role_boost_multiplies_the_whole_score_once():
    plain, boosted = kernel([[[1], [2]]] * 2, [[4, 6]] * 2, [0.9], [4.0, 6.0], boosts=[1.0, 1.3])
    assert boosted == plain * 1.3


def test_no_units_and_no_terms_give_no_scores():
    assert kernel(np.zeros((0, 7, 2)), np.zeros((0, 7)), [1.0, 1.0], [1.0] * 7).shape == (0,)
    assert list(kernel(np.zeros((3, 7, 0)), np.ones((3, 7)), [], [1.0] * 7)) == [0.0] * 3


# ------------------------------------------------------------------------------------------------ the best k


def test_the_best_k_keeps_every_tie_of_the_last_place():
    scores = np.array([0.5, 0.9, 0.5, 0.1, 0.5])
    assert at_least_top(scores, 2).tolist() == [0, 1, 2, 4]


def test_the_best_k_keeps_what_lies_within_the_margin_of_the_cut():
    assert at_least_top(np.array([1.0, 1.0 - 5e-6, 1.0 - 5e-5]), 1).tolist() == [0, 1]


@pytest.mark.parametrize(("k", "expected"), [(-1, []), (0, []), (1, [1]), (2, [0, 1]), (9, [0, 1])])
def test_the_best_k_of_fewer_than_k_are_all_of_them(k, expected):
    assert at_least_top(np.array([0.1, 0.2]), k).tolist() == expected
    assert at_least_top(np.zeros(0), k).tolist() == []
