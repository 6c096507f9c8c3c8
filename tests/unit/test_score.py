"""The hybrid score (C9): its worked numbers, its scopes and its ages."""

import math
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import NOW, later, make_pool, make_unit
from holdfast.kernels.vectors import decay
from holdfast.ranking.score import Scoring, quality
from holdfast.settings import ScoreSettings, Settings
from holdfast.types import Contribution, Lineage

DAY = 86_400
CONTRACT = Settings.reference().score


def unit_in(scope, age=0.0, **fields):
    """Build a unit of one scope, `age` seconds old; session units belong to the active session "s1"."""
    owner = {"user": None} if scope == "global" else {"session": "s1"} if scope == "session" else {}
    return make_unit(scope=scope, event_time=later(seconds=-age), **owner, **fields)


def summary(decay_rate, *, age=0.0, event_age=0.0):
    """Build a summary of the active session whose sources ended `age` seconds ago."""
    ends = later(seconds=-age)
    lineage = Lineage(("u1", "u2"), "extractive", 1.0 - decay_rate, decay_rate, 0.9, 0.9, later(days=-9), ends)
    return unit_in("session", event_age, kind="summary", lineage=lineage)


def scored(rel, unit, settings=None, session="s1", at=NOW):
    """Return the tree of a score; the number that ranks is the same, bit for bit."""
    scoring = Scoring(settings or CONTRACT, session, at)
    pool = make_pool([(unit, rel)])
    tree = scoring.explain(pool, 0, Contribution("rel", rel))
    assert [tree.value] == scoring.score(pool).tolist()
    return tree


@pytest.mark.parametrize(
    ("rel", "unit", "expected"),
    [
        (0.6, unit_in("session"), 0.72),
        (0.95, unit_in("global", 10), 0.8949960000),
        (0.5, unit_in("user"), 0.61),
        (0.5, unit_in("global", DAY), 0.5482611718),
        (0.9, summary(0.1), 0.8835),
        (0.9, summary(0.9), 0.5115),
    ],
    ids=["session", "global 10 s", "user", "global 1 day", "summary decay .1", "summary decay .9"],
)
def test_the_worked_numbers_of_the_contract(rel, unit, expected):
    assert scored(rel, unit).value == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize(
    ("scope", "rate", "half_life"),
    [("session", 1e-4, 6_931), ("user", 1e-5, 69_315), ("global", 2e-6, 346_574)],
)
def test_each_scope_has_its_own_half_life(scope, rate, half_life):
    fresh, old = (scored(0.0, unit_in(scope, age)).find("R").value for age in (0, half_life))
    assert fresh == 1.0
    assert old == pytest.approx(0.5, abs=1e-4)
    assert scored(0.0, unit_in(scope, 1234)).find("R").value == math.exp(-rate * 1234)


@pytest.mark.parametrize(
    ("unit", "session", "weight", "rate"),
    [
        (unit_in("session", 100), "s1", 1.0, 1e-4),
        (make_unit(scope="user", session="s1", event_time=later(seconds=-100)), "s1", 1.0, 1e-4),
        (unit_in("session", 100), "s2", 0.3, 1e-5),
        (unit_in("session", 100), None, 0.3, 1e-5),
        (unit_in("user", 100), "s1", 0.6, 1e-5),
        (unit_in("user", 100), None, 0.6, 1e-5),
        (unit_in("global", 100), "s1", 0.3, 2e-6),
        (unit_in("global", 100), None, 0.3, 2e-6),
    ],
    ids=[
        "the active session",
        "a promoted unit of the active session",
        "another session",
        "no session named",
        "durable",
        "durable, no session named",
        "global",
        "global, no session named",
    ],
)
def test_scope_weight_and_decay_follow_the_visibility_rule(unit, session, weight, rate):
    tree = scored(0.5, unit, session=session)
    assert tree.find("S").value == weight
    assert tree.find("R").value == math.exp(-rate * 100)


def test_a_unit_from_the_future_counts_as_new():
    assert scored(0.5, unit_in("user", -DAY)).find("R").value == 1.0


def test_age_is_counted_from_the_reference_time():
    assert scored(0.5, unit_in("user"), at=later(days=1)).find("R").value == math.exp(-1e-5 * DAY)


def test_a_summary_ages_from_the_end_of_its_range():
    assert scored(0.5, summary(0.0, age=50, event_age=9999)).find("R").value == math.exp(-1e-4 * 50)


def test_an_authored_unit_does_not_age():
    assert scored(0.5, unit_in("user", 900 * DAY, kind="authored")).find("R").value == 1.0


def test_quality_is_one_for_a_turn_and_falls_with_a_summarys_decay_rate():
    assert quality(unit_in("user"), CONTRACT) == 1.0
    assert [quality(summary(rate), CONTRACT) for rate in (0.0, 0.5, 1.0)] == [1.0, 0.75, 0.5]
    assert quality(summary(1.0), ScoreSettings(delta=0.0)) == 1.0


def test_at_equal_base_higher_confidence_never_ranks_lower():
    values = [scored(0.7, summary(rate / 20)).value for rate in range(21)]
    assert values == sorted(values, reverse=True)


def test_decay_of_a_negative_age_is_one_and_of_a_huge_age_is_zero():
    assert decay(1e-4, -5.0) == 1.0
    assert decay(1e-4, 1e12) == 0.0


# --------------------------------------------------------------------------------------------- the three shares


def test_the_shares_are_those_of_the_contract():
    assert CONTRACT.shares == pytest.approx((0.7, 0.2, 0.1), rel=1e-15)


@pytest.mark.parametrize(
    ("given_weights", "shares"),
    [
        ((7.0, -3.0, 1.0), (0.5, 0.0, 0.5)),
        ((1.0, 1.0, 2.0), (1 / 3, 1 / 3, 1 / 3)),
        ((0.2, 0.0, 0.2), (0.5, 0.0, 0.5)),
        ((0.0, 0.0, 0.0), (0.7, 0.2, 0.1)),
        ((-1.0, -1.0, -1.0), (0.7, 0.2, 0.1)),
        ((math.inf, 0.0, 0.0), (1.0, 0.0, 0.0)),
    ],
)
def test_shares_are_clamped_and_divided_by_their_sum_and_all_zero_gives_the_defaults(given_weights, shares):
    alpha, beta, gamma = given_weights
    assert ScoreSettings(alpha=alpha, beta=beta, gamma=gamma).shares == pytest.approx(shares, rel=1e-15)


def test_a_perfect_unit_scores_at_most_one_although_shares_do_not_add_up_exactly():
    tenths = [n / 10 for n in range(1, 11)]
    for alpha, beta, gamma in product(tenths, repeat=3):
        settings = ScoreSettings(alpha=alpha, beta=beta, gamma=gamma)
        assert scored(1.0, unit_in("session"), settings).value <= 1.0


fractions = st.floats(0.0, 1.0)
wild = st.floats(-5.0, 5.0)


@given(
    fractions,
    st.sampled_from(["session", "user", "global"]),
    st.floats(-1e9, 1e9),
    st.none() | fractions,
    st.tuples(wild, wild, wild),
    fractions,
)
def test_every_part_of_the_score_lies_in_zero_to_one_for_any_weights(rel, scope, age, decay_rate, weights, delta):
    alpha, beta, gamma = weights
    settings = ScoreSettings(alpha=alpha, beta=beta, gamma=gamma, delta=delta)
    unit = unit_in(scope, age) if decay_rate is None else summary(decay_rate, age=age)
    tree = scored(rel, unit, settings)
    assert 0.0 <= tree.value <= 1.0
    assert 0.0 <= tree.find("R").value <= 1.0
    assert 0.0 <= tree.find("S").value <= 1.0
    assert 1.0 - delta <= tree.find("Q").value <= 1.0
    assert sum(settings.shares) == pytest.approx(1.0)
    assert tree.compose() == tree.value


@given(fractions, fractions, st.floats(0, 1e7), st.floats(0, 1e7))
def test_the_score_never_falls_with_relevance_and_never_rises_with_age(rel, more, age, older):
    rel, more = sorted((rel, more))
    age, older = sorted((age, older))
    assert scored(rel, unit_in("user", age)).value <= scored(more, unit_in("user", age)).value
    assert scored(rel, unit_in("user", older)).value <= scored(rel, unit_in("user", age)).value
