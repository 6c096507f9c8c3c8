"""Tuning is judged by what it has not seen."""

import pytest

from holdfast.errors import InputError
from holdfast.eval.metrics import Measurement, cross_validate
from holdfast.eval.systems import select_systems
from holdfast.settings import Settings


def measured(**haystacks):
    """Build a variant's records from haystack=[values]."""
    return [
        Measurement(haystack, f"{haystack}-{place}", "all", {"x": value})
        for haystack, values in haystacks.items()
        for place, value in enumerate(values)
    ]


def test_every_combination_is_tried_and_named():
    tune = {"lexical.b": ["0.35", "0.75", "0.35"], "hybrid.rank_by": ["score"]}
    selection = select_systems(Settings(), tune=tune)
    assert selection.variants == ("lexical.b=0.35 hybrid.rank_by=score", "lexical.b=0.75 hybrid.rank_by=score")
    assert [system.settings.lexical.b for system in selection.systems[-2:]] == [0.35, 0.75]
    assert select_systems(Settings()).variants == ()


def test_a_conversation_does_not_take_part_in_choosing_for_itself():
    # Left out h1: B is better on the others (.6 > 0), and does 0 on h1. Left out h2 or h3: A (.5 > .3), which does 0.
    variants = {"A": measured(h1=[1.0], h2=[0.0], h3=[0.0]), "B": measured(h1=[0.0], h2=[0.6], h3=[0.6])}
    found = cross_validate(variants, "x")
    assert found["cross_validated"] == 0.0
    assert found["chosen"] == {"A": 2, "B": 1}
    assert (found["best"], found["in_sample"]) == ("B", pytest.approx(0.4))
    assert tuple(found["ci"]) == (0.0, 0.0)


def test_every_question_is_judged_once():
    variants = {"A": measured(h1=[1.0, 0.0], h2=[1.0]), "B": measured(h1=[0.0, 0.0], h2=[0.0])}
    found = cross_validate(variants, "x")
    assert found["cross_validated"] == pytest.approx(2 / 3)
    assert found["cross_validated"] == found["in_sample"]  # A is chosen every time, so nothing flatters
    assert found["chosen"] == {"A": 2}
    assert tuple(found["ci"]) == pytest.approx((0.5, 1.0))


def test_choosing_weighs_questions_not_conversations():
    # Left out h3: A has 3 of 4 questions right on the others, B has 2; by conversation B would win (.5 < .67).
    variants = {
        "A": measured(h1=[1.0, 1.0, 1.0], h2=[0.0], h3=[0.25]),
        "B": measured(h1=[1.0, 0.0, 0.0], h2=[1.0], h3=[0.75]),
    }
    found = cross_validate(variants, "x")
    assert found["chosen"] == {"A": 2, "B": 1}
    assert found["cross_validated"] == pytest.approx((0.25 + 1.0) / 5)


def test_ties_go_to_the_variant_named_first():
    same = measured(h1=[0.5], h2=[0.5])
    assert cross_validate({"B": same, "A": same}, "x")["chosen"] == {"B": 2}
    assert cross_validate({"B": same, "A": same}, "x")["best"] == "B"


def test_questions_without_the_metric_are_left_out():
    extra = Measurement("h3", "none", "all", {"refused": 1.0})
    variants = {"A": [*measured(h1=[1.0], h2=[0.0]), extra]}
    assert cross_validate(variants, "x")["cross_validated"] == 0.5


@pytest.mark.parametrize(
    ("variants", "metric"),
    [({"A": measured(h1=[1.0, 0.0])}, "x"), ({"A": measured(h1=[1.0], h2=[0.0])}, "y"), ({}, "x")],
)
def test_leaving_one_out_needs_two(variants, metric):
    with pytest.raises(InputError, match="leaving one out needs two or more"):
        cross_validate(variants, metric)


def test_the_result_as_json_keeps_honest_and_flattering_apart():
    row = cross_validate({"A": measured(h1=[1.0], h2=[0.0])}, "x")
    assert row == {
        "metric": "x", "cross_validated": 0.5, "ci": [0.0, 1.0], "chosen": {"A": 2}, "best": "A", "in_sample": 0.5,
    }  # fmt: skip
