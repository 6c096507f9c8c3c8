"""Means, categories, halves and intervals: what a report says follows from its questions, and is the same twice."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.eval.metrics import Measurement, intervals, means, paired_interval, summarise


def record(haystack, question, category="all", detail=None, **metrics):
    return Measurement(haystack, question, category, metrics, detail or {})


def clusters(*groups):
    """Build records of one metric: a haystack for each group of values."""
    return [
        record(f"h{number}", f"q{number}-{place}", x=value)
        for number, values in enumerate(groups)
        for place, value in enumerate(values)
    ]


def enumerated(*groups):
    """Return the exact 95 % ends: every way of drawing as many clusters as there are, each equally likely."""
    values = [
        math.fsum(sum(groups[place]) for place in drawn) / sum(len(groups[place]) for place in drawn)
        for drawn in itertools.product(range(len(groups)), repeat=len(groups))
    ]
    return tuple(np.quantile(values, [0.025, 0.975], method="inverted_cdf"))


# --------------------------------------------------------------------------------------------------- means


def test_a_mean_is_over_the_questions_that_have_the_metric():
    records = [record("h", "1", a=1.0, b=0.5), record("h", "2", a=0.0), record("h", "3")]
    assert means(records) == {"a": 0.5, "b": 0.5}
    assert means([]) == {}


# ------------------------------------------------------------------------------------------------- summary


RECORDS = [
    record("h0", "a", "easy", mrr=1.0, **{"recall@10": 1.0}),
    record("h0", "b", "easy", mrr=0.5, **{"recall@10": 1.0}),
    record("h1", "c", "easy", mrr=0.0, **{"recall@10": 0.0}),
    record("h1", "d", "hard", mrr=0.0, **{"recall@10": 0.0}),
    record("h2", "e", "hard", mrr=1.0, **{"recall@10": 0.5}),
    record("h2", "f", "none", refused_unanswerable=1.0),
    record("h1", "stranger a", "asked of the wrong memory", refused_strangers=1.0),
    record("h2", "stranger c", "asked of the wrong memory", refused_strangers=0.0),
]


def test_n_counts_the_questions_on_which_recall_was_measured():
    summary = summarise(RECORDS, ["h0", "h1", "h2"])
    assert summary["n"] == 5
    assert summary["counts"] == {"mrr": 5, "recall@10": 5, "refused_unanswerable": 1, "refused_strangers": 2}
    assert summary["metrics"] == {"mrr": 0.5, "recall@10": 0.5, "refused_unanswerable": 1.0, "refused_strangers": 0.5}


def test_strangers_are_in_no_category_and_in_no_recall():
    with_them = summarise(RECORDS, ["h0", "h1", "h2"])
    without = summarise([each for each in RECORDS if "mrr" in each.metrics], ["h0", "h1", "h2"])
    assert set(with_them["by_category"]) == {"easy", "hard"}
    assert with_them["by_category"] == without["by_category"]
    assert with_them["macro"] == without["macro"]
    assert with_them["metrics"]["recall@10"] == without["metrics"]["recall@10"]


def test_categories_add_up_to_the_whole():
    summary = summarise(RECORDS, ["h0", "h1", "h2"])
    assert {name: row["n"] for name, row in summary["by_category"].items()} == {"easy": 3, "hard": 2}
    assert summary["by_category"]["easy"]["metrics"] == {"mrr": 0.5, "recall@10": pytest.approx(2 / 3)}
    assert summary["by_category"]["hard"]["metrics"] == {"mrr": 0.5, "recall@10": 0.25}
    assert sum(row["n"] for row in summary["by_category"].values()) == summary["n"]


def test_the_macro_mean_weighs_categories_alike():
    summary = summarise(RECORDS, ["h0", "h1", "h2"])
    assert summary["macro"]["recall@10"] == pytest.approx((2 / 3 + 0.25) / 2)
    assert summary["macro"]["recall@10"] != summary["metrics"]["recall@10"]
    assert "refused_strangers" not in summary["macro"]


def test_a_metric_that_a_category_lacks_has_no_macro_mean():
    records = [record("h", "1", "a", mrr=1.0, extra=1.0), record("h", "2", "b", mrr=0.0)]
    assert set(summarise(records, ["h"])["macro"]) == {"mrr"}


def test_halves_are_by_the_place_of_the_conversation_in_the_data():
    order = ["h0", "h1", "h2"]
    halves = summarise(RECORDS, order)["halves"]
    assert halves["even"]["recall@10"] == pytest.approx((1 + 1 + 0.5) / 3)
    assert halves["odd"]["recall@10"] == 0.0
    turned = summarise(RECORDS, ["h1", "h0", "h2"])["halves"]
    assert turned["odd"]["recall@10"] == 1.0
    assert turned["even"]["recall@10"] == pytest.approx(0.5 / 3)


def test_halves_do_not_depend_on_the_order_of_the_records():
    assert summarise(RECORDS[::-1], ["h0", "h1", "h2"])["halves"] == {
        half: {name: pytest.approx(value) for name, value in row.items()}
        for half, row in summarise(RECORDS, ["h0", "h1", "h2"])["halves"].items()
    }


def test_one_conversation_has_no_halves():
    assert summarise([record("h0", "a", mrr=1.0)], ["h0"])["halves"] == {}


def test_a_summary_of_nothing_is_empty():
    summary = summarise([], ["h0"])
    assert (summary["n"], summary["metrics"], summary["ci"], summary["by_category"], summary["macro"]) == (
        0,
        {},
        {},
        {},
        {},
    )


def test_a_summary_as_json_has_the_promised_keys():
    row = summarise(RECORDS, ["h0", "h1", "h2"])
    assert {"n", "metrics", "ci", "by_category", "macro", "halves", "counts", "skipped"} == set(row)
    assert all(isinstance(ends, list) and len(ends) == 2 for ends in row["ci"].values())


# ----------------------------------------------------------------------------------------------- intervals


@pytest.mark.parametrize(
    "groups",
    [
        ([0.0], [1.0]),
        ([0.0, 1.0], [1.0]),
        ([0.0], [0.5], [1.0]),
        ([0.0], [0.0], [0.0], [1.0]),
        ([0.0, 0.0, 0.0], [1.0], [1.0, 0.0]),
        ([0.2], [0.4], [0.4], [0.9]),
    ],
)
def test_ends_are_those_of_drawing_in_every_possible_way(groups):
    assert intervals(clusters(*groups))["x"] == pytest.approx(enumerated(*groups))


def test_conversations_are_drawn_whole():
    # Inside each conversation the questions differ; between them there is no difference at all.
    assert intervals(clusters([0.0, 1.0], [1.0, 0.0], [0.0, 1.0]))["x"] == (0.5, 0.5)


def test_with_one_conversation_questions_are_drawn():
    [low, high] = intervals(clusters([0.0, 1.0] * 20))["x"]
    assert 0.3 < low < 0.4
    assert 0.6 < high < 0.7


def test_one_question_has_no_interval():
    assert intervals(clusters([1.0])) == {}
    assert summarise([record("h", "q", mrr=1.0)], ["h"])["ci"] == {}


def test_intervals_are_the_same_every_time_and_for_every_metric_alike():
    records = [
        record(f"h{number}", f"q{number}", x=value, y=value) for number, value in enumerate((0.1, 0.7, 0.3, 0.9, 0.2))
    ]
    ends = intervals(records)
    assert ends == intervals(records)
    assert ends["x"] == ends["y"]


@given(st.lists(st.lists(st.sampled_from((0.0, 0.5, 1.0)), min_size=1, max_size=4), min_size=2, max_size=6))
def test_ends_lie_within_what_was_measured_and_in_order(groups):
    [low, high] = intervals(clusters(*groups))["x"]
    cluster_means = [sum(values) / len(values) for values in groups]
    assert min(cluster_means) - 1e-12 <= low <= high <= max(cluster_means) + 1e-12


@pytest.mark.parametrize("size", [5, 10, 30])
def test_an_interval_holds_the_mean_and_narrows_with_more_conversations(size):
    records = clusters(*([float(number % 2)] for number in range(size)))
    [low, high] = intervals(records)["x"]
    mean = means(records)["x"]
    assert low < mean < high
    [wider_low, wider_high] = intervals(clusters([0.0], [1.0], [0.0]))["x"]
    assert high - low < wider_high - wider_low


def test_a_metric_of_some_conversations_is_drawn_where_it_was_measured():
    records = [*clusters([0.0], [1.0]), record("h2", "z", y=1.0)]
    [low, high] = intervals(records)["x"]
    assert (low, high) == (0.0, 1.0)


# -------------------------------------------------------------------------------------------------- paired


def test_a_difference_is_question_by_question():
    before = clusters([0.0, 1.0], [0.0], [1.0])
    after = clusters([1.0, 1.0], [0.0], [1.0])
    mean, ends = paired_interval(before, after, "x")
    assert mean == 0.25
    assert ends == pytest.approx(enumerated([1.0, 0.0], [0.0], [0.0]))


def test_a_constant_gain_is_certain_though_the_questions_differ():
    before = clusters([0.1], [0.9], [0.4])
    after = clusters([0.2], [1.0], [0.5])
    mean, (low, high) = paired_interval(before, after, "x")
    assert (mean, low, high) == pytest.approx((0.1, 0.1, 0.1))


def test_only_questions_that_both_runs_have_are_compared():
    before = [record("h0", "a", x=0.0), record("h1", "b", x=0.0), record("h2", "gone", x=1.0)]
    after = [record("h0", "a", x=1.0), record("h1", "b", x=1.0), record("h3", "new", x=0.0)]
    assert paired_interval(before, after, "x") == (1.0, (1.0, 1.0))
    assert paired_interval(before, after, "y") is None
    assert paired_interval([], after, "x") is None


def test_questions_of_one_name_in_two_conversations_are_not_mixed_up():
    before = [record("h0", "q", x=0.0), record("h1", "q", x=1.0)]
    after = [record("h0", "q", x=1.0), record("h1", "q", x=0.0)]
    mean, ends = paired_interval(before, after, "x")
    assert (mean, ends) == (0.0, (-1.0, 1.0))


def test_the_order_of_the_sides_gives_the_sign():
    low, high = clusters([0.0], [0.0]), clusters([1.0], [0.5])
    assert paired_interval(low, high, "x")[0] == -paired_interval(high, low, "x")[0] == 0.75


def test_one_question_is_no_clear_difference():
    before, after = Measurement("h", "q", "all", {"x": 0.0}), Measurement("h", "q", "all", {"x": 1.0})
    assert paired_interval([before], [after], "x") is None
    assert paired_interval([before, before], [after, after], "x") is None


def test_a_metric_of_one_conversation_among_several_has_the_spread_of_its_questions():
    records = [Measurement("h0", f"q{n}", "all", {"x": float(n % 2), "y": 1.0}) for n in range(10)]
    records.append(Measurement("h1", "r", "all", {"y": 0.0}))
    low, high = intervals(records)["x"]
    assert low < 0.5 < high


def test_sessions_alone_are_judged_too_and_the_rest_is_counted_by_category():
    records = [
        record("h", "1", "a", mrr=1.0),
        record("h", "2", "sessions", session_mrr=1.0),
        record("h", "3", "never", refused_unanswerable=1.0),
        record("h", "4", "a"),
        record("h", "stranger 1", "asked of the wrong memory", refused_strangers=1.0),
    ]
    summary = summarise(records, ["h"])
    assert summary["n"] == 2
    assert {name: row["n"] for name, row in summary["by_category"].items()} == {"a": 1, "sessions": 1}
    assert summary["skipped"] == {"a": 1, "never": 1}
