"""The figures themselves: by hand on small cases, and against an independent library on many."""

import itertools
import math
import random
from importlib import import_module

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.eval.data import UNDATED, GoldQuestion, Prompt
from holdfast.eval.metrics import (
    CUTS,
    context_metrics,
    currency_metrics,
    gold_ranks,
    growth_metrics,
    ndcg,
    packed_metrics,
    ranking_metrics,
    session_ranking,
    survival_metrics,
)

TEN = [f"d{number}" for number in range(1, 11)]


# ------------------------------------------------------------------------------------------------- by hand


def test_one_gold_at_rank_three():
    values = ranking_metrics(TEN, {"d3": 1})
    assert values["recall@1"] == values["hit@1"] == values["recall_all@1"] == 0.0
    assert values["recall@5"] == values["hit@5"] == values["recall_all@5"] == 1.0
    assert values["mrr"] == 1 / 3
    assert values["ndcg@5"] == values["ndcg@10"] == pytest.approx(1 / math.log2(4))


def test_two_of_three_gold_found():
    values = ranking_metrics(["x", "a", "y", "b", "z", "w"], {"a": 1, "b": 1, "c": 1})
    assert values["recall@1"] == 0.0
    assert values["recall@5"] == values["recall@10"] == values["recall@20"] == pytest.approx(2 / 3)
    assert values["hit@5"] == 1.0
    assert values["recall_all@5"] == values["recall_all@20"] == 0.0
    assert values["mrr"] == 0.5
    best = 1 + 1 / math.log2(3) + 1 / math.log2(4)
    assert values["ndcg@10"] == pytest.approx((1 / math.log2(3) + 1 / math.log2(5)) / best)


def changed(**fields):
    return GoldQuestion(
        "q", "Where do I live now?", "plain", UNDATED, 9, {"new": 1}, current=frozenset({"new"}), **fields
    )


@pytest.mark.parametrize(
    ("ranked", "currency", "first"),
    [
        (["new", "old"], 1.0, 1.0),
        (["x", "new", "older", "old"], 1.0, 0.0),
        (["older", "new", "old"], 0.0, 0.0),
        (["x", "new"], 1.0, 0.0),
        (["x", "old"], 0.0, 0.0),
        ([], 0.0, 0.0),
    ],
)
def test_what_is_current_stands_above_every_older_one(ranked, currency, first):
    question = changed(earlier=frozenset({"old", "older"}))
    assert currency_metrics(ranked, question) == {"currency": currency, "current_first": first}


def test_what_only_looks_like_a_change_is_measured_apart():
    question = changed(decoys=frozenset({"joke"}))
    assert currency_metrics(["new", "joke"], question) == {"lookalike_current_first": 1.0}
    assert currency_metrics(["joke", "new"], question) == {"lookalike_current_first": 0.0}
    assert currency_metrics(["new"], GoldQuestion("q", "Who?", "all", UNDATED, 1, {"new": 1})) == {}


@pytest.mark.parametrize(("whole", "kept"), [(["old", "new"], 1.0), (["new"], 1.0), (["old"], 0.0), ([], 0.0)])
def test_a_prompt_costs_tokens_and_holds_the_newest_turn_of_what_changed(whole, kept):
    prompt = Prompt("", frozenset(whole), 7, ("new", "old"))
    changed_fact = context_metrics(prompt, changed(earlier=frozenset({"old"})), "500")
    assert changed_fact == {"tokens@500": 7.0, "current_in@500": kept, "currency@500": kept}
    assert context_metrics(prompt, changed(decoys=frozenset({"joke"})), "2k") == {"tokens@2k": 7.0}


@pytest.mark.parametrize(
    ("order", "called_earlier", "clear"),
    [
        (["new"], [], 1.0),
        (["new", "old"], [], 1.0),
        (["old", "new"], [], 0.0),
        (["old", "new"], ["old"], 1.0),
        (["older", "old", "new"], ["old"], 0.0),
        (["old"], ["old"], 0.0),
    ],
)
def test_a_prompt_is_clear_where_every_older_turn_is_absent_behind_or_called_earlier(order, called_earlier, clear):
    prompt = Prompt("", frozenset(order), 7, tuple(order), frozenset(called_earlier))
    question = changed(earlier=frozenset({"old", "older"}))
    assert context_metrics(prompt, question, "500")["currency@500"] == clear


def test_grades_gain_exponentially():
    # Grades 1, 3, 2 in this order: 1/1 + 7/log2 3 + 3/log2 4; the best order gives 7 + 3/log2 3 + 1/log2 4.
    values = ranking_metrics(["low", "high", "mid"], {"high": 3, "mid": 2, "low": 1})
    expected = (1 + 7 / math.log2(3) + 3 / 2) / (7 + 3 / math.log2(3) + 1 / 2)
    assert values["ndcg@5"] == pytest.approx(expected)
    assert values["recall@1"] == pytest.approx(1 / 3)


def test_more_gold_than_the_cut_can_hold():
    gold = dict.fromkeys(TEN, 1)
    values = ranking_metrics(TEN, gold)
    assert values["recall@5"] == 0.5
    assert values["recall_all@5"] == 0.0
    assert values["ndcg@5"] == values["ndcg@10"] == pytest.approx(1.0)  # no order could hold more


@pytest.mark.parametrize(("rank", "cut"), [(cut, cut) for cut in CUTS])
def test_a_cut_includes_its_own_rank_and_no_further(rank, cut):
    padded = [f"x{number}" for number in range(30)]
    at, beyond = list(padded), list(padded)
    at[rank - 1] = beyond[rank] = "gold"
    assert ranking_metrics(at, {"gold": 1})[f"hit@{cut}"] == 1.0
    assert ranking_metrics(beyond, {"gold": 1})[f"hit@{cut}"] == 0.0


def test_nothing_found_is_zero_and_not_missing():
    found, missed = ranking_metrics(["a"], {"a": 1}), ranking_metrics([], {"a": 1})
    assert found.keys() == missed.keys() == ranking_metrics(["x"], {"a": 2}).keys()
    assert set(missed.values()) == {0.0}


def test_a_duplicate_in_a_ranking_is_not_found_twice():
    values = ranking_metrics(["a", "a", "a", "x"], {"a": 1, "b": 1})
    assert values["recall@5"] == 0.5
    assert values["recall_all@5"] == 0.0
    assert values["ndcg@5"] == pytest.approx(1 / (1 + 1 / math.log2(3)))
    assert gold_ranks(["x", "a", "a"], {"a": 1}) == {"a": 2}


def test_a_prefix_tells_levels_apart():
    assert "session_recall@5" in ranking_metrics(TEN, {"d1": 1}, "session_")
    assert "recall@5" not in ranking_metrics(TEN, {"d1": 1}, "session_")


def test_a_session_stands_where_its_best_message_stands():
    sessions = {"a1": "a", "a2": "a", "b1": "b", "c1": "c"}
    assert session_ranking(["b1", "a2", "a1", "c1"], sessions) == ["b", "a", "c"]
    assert session_ranking([], sessions) == []


def test_a_budget_is_filled_in_order_and_what_does_not_fit_is_skipped():
    ranked = [("a", 60), ("b", 50), ("c", 40)]
    budgets = {100: "s", 149: "m", 39: "xs"}
    assert packed_metrics(ranked, {"a": 1, "c": 1}, budgets) == {"packed@s": 1.0, "packed@m": 0.0, "packed@xs": 0.0}
    assert packed_metrics(ranked, {"b": 1}, budgets) == {"packed@s": 0.0, "packed@m": 1.0, "packed@xs": 0.0}
    assert packed_metrics(ranked, {"d": 1}, {1_000: "all"}) == {"packed@all": 0.0}


def test_what_survived_in_a_prompt():
    gold = {"a": 1, "b": 1}
    values = survival_metrics(frozenset({"a", "x"}), "… GREEN paint …", gold, ["green", "teal"], "2k")
    assert values == {"survival@2k": 0.0, "survived_share@2k": 0.5, "answer_shown@2k": 1.0}
    values = survival_metrics(frozenset({"a", "b"}), "nothing literal", gold, ["green"], "2k")
    assert values == {"survival@2k": 1.0, "survived_share@2k": 1.0, "answer_shown@2k": 0.0}


def test_what_a_larger_prompt_no_longer_has():
    gold = {"a": 1, "b": 1}
    small, both, other = frozenset({"a"}), frozenset({"a", "b", "x"}), frozenset({"b", "y"})
    assert growth_metrics([small, both, both, both], gold) == {"lost_by_growing": 0.0, "ever_lost_by_growing": 0.0}
    # Another message in its place does not make up for one that is gone; what is no gold may go.
    assert growth_metrics([small, other, other], gold) == {"lost_by_growing": 0.5, "ever_lost_by_growing": 1.0}
    assert growth_metrics([frozenset({"x"}), small], gold)["lost_by_growing"] == 0.0
    assert growth_metrics([small], gold) == growth_metrics([], gold) == {}


def test_an_answer_is_looked_for_only_where_the_data_promises_one():
    assert "answer_shown@1k" not in survival_metrics(frozenset(), "", {"a": 1}, (), "1k")


# ------------------------------------------------------------------------------------------------- laws


gold_sets = st.dictionaries(st.sampled_from("abcdefghij"), st.integers(1, 4), min_size=1)
rankings = st.lists(st.sampled_from("abcdefghijklmnopqrstuvwxyz"), max_size=30)


@given(rankings, gold_sets)
def test_every_figure_is_a_share_and_grows_with_its_cut(ranked, gold):
    values = ranking_metrics(ranked, gold)
    assert all(0.0 <= value <= 1.0 + 1e-12 for value in values.values())
    for name in ("recall", "hit", "recall_all"):
        shares = [values[f"{name}@{cut}"] for cut in CUTS]
        assert shares == sorted(shares)
    for cut in CUTS:
        assert values[f"recall_all@{cut}"] <= values[f"recall@{cut}"] <= values[f"hit@{cut}"]


@given(gold_sets)
def test_no_order_is_better_than_by_grade(gold):
    few = dict(itertools.islice(gold.items(), 4))
    best = sorted(few, key=lambda item: -few[item])
    assert ranking_metrics(best, few)["ndcg@10"] == pytest.approx(1.0)
    for order in itertools.permutations(few):
        assert ndcg(gold_ranks(order, few), few, 10) <= 1.0 + 1e-12


# ----------------------------------------------------------------------------------------- against a library


@pytest.mark.filterwarnings("ignore")  # the library's compiler warns
def test_the_figures_are_those_of_ranx(monkeypatch):
    # Compiling takes half a minute and changes no figure.
    monkeypatch.setattr(import_module("numba").config, "DISABLE_JIT", 1)
    ranx = import_module("ranx")
    drawn = random.Random(7)
    items = [f"d{number}" for number in range(40)]
    qrels, runs, rankings = {}, {}, {}
    for number in range(60):
        query = f"q{number}"
        qrels[query] = {item: drawn.randint(1, 4) for item in drawn.sample(items, drawn.randint(1, 15))}
        rankings[query] = drawn.sample(items, drawn.randint(1, 30))
        runs[query] = {item: float(100 - rank) for rank, item in enumerate(rankings[query])}
    theirs = {
        "recall@1": "recall@1", "recall@5": "recall@5", "recall@10": "recall@10", "recall@20": "recall@20",
        "hit@1": "hit_rate@1", "hit@5": "hit_rate@5", "mrr": "mrr",
        "ndcg@5": "ndcg_burges@5", "ndcg@10": "ndcg_burges@10",  # ours is the exponential gain
    }  # fmt: skip
    run = ranx.Run(runs)
    ranx.evaluate(ranx.Qrels(qrels), run, list(theirs.values()))
    for query, ranked in rankings.items():
        ours = ranking_metrics(ranked, qrels[query])
        for mine, name in theirs.items():
            assert ours[mine] == pytest.approx(run.scores[name][query], abs=1e-12), (mine, query)
