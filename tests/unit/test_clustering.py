"""Clusters, centroid picks and preservation (C18)."""

import math

import numpy as np
import pytest

from holdfast.kernels.clustering import (
    accepted_confidence,
    clusters,
    decay_rate,
    pick_count,
    preservation,
    rank_central,
)
from reference import vectors


@pytest.mark.parametrize(
    ("n", "k", "sizes"),
    [
        (5, 2, (2, 2, 1)),
        (7, 3, (3, 2, 2)),
        (10, 3, (3, 2, 3, 2)),
        (21, 20, (11, 10)),
        (41, 20, (14, 14, 13)),
        (5, 0, (5,)),
        (21, -3, (11, 10)),
        (1, 20, (1,)),
        (0, 20, ()),
        (3, 1, (1, 1, 1)),
    ],
)
def test_cluster_sizes_are_the_worked_numbers(n, k, sizes):
    assert tuple(map(len, clusters(n, k))) == sizes
    assert [place for places in clusters(n, k) for place in places] == list(range(n))


def rows(*values):
    return np.array(values, dtype=np.float32)


def picks(vectors, density):
    """Return the places of the most central rows in their own order, as an extractive summary takes them."""
    return tuple(sorted(rank_central(vectors)[: pick_count(len(vectors), density)]))


def test_picks_are_the_closest_to_the_mean_in_time_order():
    assert picks(rows((1, 0), (1, 0), (0, 1)), 2 / 3) == (0, 1)
    assert picks(rows((0, 1), (1, 0), (1, 0)), 0.4) == (1, 2)
    assert rank_central(rows((1, 0), (0.9, 0.1), (0, 1))) == (1, 0, 2)


def test_equal_cosines_are_told_apart_by_time():
    assert picks(rows((1, 0), (0, 1), (1, 0), (0, 1)), 0.25) == (0,)
    assert picks(np.zeros((5, 3), np.float32), 0.4) == (0, 1)


def test_a_turn_without_direction_stands_between_near_and_opposite_ones():
    assert rank_central(rows((-1, 0), (0, 0), (1, 0), (1, 0))) == (2, 3, 1, 0)


@pytest.mark.parametrize(
    ("m", "density", "count"),
    [
        (5, 0.4, 2),
        (5, 0.25, 2),
        (20, 0.4, 8),
        (1, 0.01, 1),
        (100, 0.07, 7),
        (100, 0.29, 29),
        (3, 1.0, 3),
        (0, 0.4, 0),
    ],
)
def test_the_number_of_picks_is_exact_in_decimals(m, density, count):
    assert pick_count(m, density) == count
    assert len(picks(np.ones((m, 2), np.float32), density)) == count


def test_preservation_is_the_worked_numbers():
    kept = preservation(rows((1, 0))[0], rows((1, 0), (0, 1)))
    assert kept.align == pytest.approx(math.sqrt(0.5), abs=1e-12)
    assert kept.cover == 0.5
    assert kept.confidence == pytest.approx((math.sqrt(0.5) + 0.5) / 2, abs=1e-12)


def test_an_opposite_summary_covers_nothing_and_is_not_trusted():
    kept = preservation(rows((-1, 0))[0], rows((1, 0), (0, 1)))
    assert kept.align == pytest.approx(-math.sqrt(0.5), abs=1e-12)
    assert (kept.cover, kept.confidence) == (0.0, 0.0)


def test_turns_that_cancel_out_have_no_mean_to_align_with():
    assert preservation(rows((1, 0))[0], rows((1, 0), (-1, 0))) == (0.0, 0.5)


def test_confidence_of_an_accepted_summary_is_the_worked_number():
    assert accepted_confidence(1.0, 0.9, 0.2) == pytest.approx(0.98, abs=1e-12)
    assert decay_rate(0.98) == pytest.approx(0.02, abs=1e-12)


@pytest.mark.parametrize("odd", [0.0, np.inf, -np.inf, np.nan, 3e38, 1e-45])
def test_no_vector_leads_to_nan(odd):
    strange = rows((odd, odd), (odd, -odd), (1, 0))
    assert sorted(rank_central(strange)) == [0, 1, 2]
    for summary in strange:
        align, cover = preservation(summary, strange)
        assert -1.0 <= align <= 1.0
        assert 0.0 <= cover <= 1.0


def test_the_sizes_of_doubles_do_not_matter_for_a_direction():
    assert preservation(np.array([1e200, 0.0]), np.array([[1e-200, 0.0], [1e-200, 0.0]])) == (1.0, 1.0)


def test_the_oracle_agrees():
    seen = 0
    for entry in vectors("partitionChronological", "cluster_index"):
        given, expected = entry["inputs"], entry["expected"]
        found = clusters(given["n"], given.get("target_size", given.get("k")))
        if "index" in expected:
            assert [i for i, places in enumerate(found) for _ in places] == expected["index"]
        else:
            assert [len(places) for places in found] == expected["cluster_sizes"]
        seen += 1
    for entry in vectors("ExtractiveSummarizer.Summarize"):
        given, expected = entry["inputs"], entry["expected"]
        if "error" in expected:  # fewer turns than its minimum; here a cluster of one is trivial
            continue
        ids = given["turn_ids_and_texts"]
        chosen = picks(rows(*(given["vectors"][name] for name in ids)), given["target_density"] or 0.4)
        assert [ids[place] for place in chosen] == expected["source_ids"]
        seen += 1
    for entry in vectors("EvaluatePreservation"):
        given, expected = entry["inputs"], entry["expected"]
        kept = preservation(
            rows(given["vectors"][given["summary"]])[0], rows(*(given["vectors"][turn] for turn in given["turns"]))
        )
        # It computes in float32.
        assert (*kept, kept.confidence) == pytest.approx(
            [expected[name] for name in ("align", "cover", "conf_nomic")], abs=1e-7
        )
        assert (kept.align >= 0.65) is expected["gate_pass"]
        seen += 1
    for entry in vectors("hybrid_confidence"):
        given, expected = entry["inputs"], entry["expected"]
        confidence = accepted_confidence((given["align"] + given["cover"]) / 2, given["conf_t5"], 0.2)
        assert confidence == pytest.approx(expected["confidence"], abs=1e-9)
        assert decay_rate(confidence) == pytest.approx(expected["decay_rate"], abs=1e-9)
        seen += 1
    assert seen == 33
