"""Two-pass discovery, hops and the projection (C11, C12): worked numbers, cuts, edge cases and settings."""

import dataclasses
import math
from datetime import UTC, datetime, timedelta

import pytest

from builders import NOW, later, make_unit, project
from holdfast.context.project import CandidateWeights, Discovery, discover, grow_limits, hop
from holdfast.errors import SettingsError
from holdfast.settings import ProjectionSettings, ScoreSettings, Settings
from holdfast.text.terms import plain_words
from holdfast.types import Contribution, Lineage, ProjectionQuery
from holdfast.types.results import ContextCandidate, Indicator, ProjectedCandidate, StepDrop
from reference import vectors

DAY = 86_400
REFERENCE = Settings.reference()
TEMPORAL = Indicator(1.0, ("before/after", "how many days"))
TIMELESS = Indicator(0.0, ())


def changed(base=REFERENCE, *, score=None, temporal=None, **projection):
    """Return settings with some keys of the projection (and of its neighbours) changed."""
    return dataclasses.replace(
        base,
        projection=dataclasses.replace(base.projection, **projection),
        temporal=dataclasses.replace(base.temporal, **temporal or {}),
        score=dataclasses.replace(base.score, **score or {}),
    )


# ω = 1 and no keyword factor: S_final is the similarity itself.
BARE = changed(floor=1.0, keyword_weight=0.0)


def prospect(unit_id="u1", sim=0.5, terms=(), anchors=0.0, slots=(), **fields):
    return ContextCandidate(make_unit(unit_id, **fields), sim, frozenset(terms), anchors, slots)


def aged(seconds):
    return {"event_time": later(seconds=-seconds)}


def asked(keywords=(), indicator=TIMELESS, slots=(), max_access=0):
    return ProjectionQuery(frozenset(keywords), NOW, indicator, slots, max_access)


def found(*prospects, keywords=(), settings=REFERENCE, max_access=0):
    return discover(prospects, frozenset(keywords), settings, NOW, max_access=max_access)


def final(one, keywords=(), settings=REFERENCE, max_access=0):
    return CandidateWeights(settings, frozenset(keywords), NOW, max_access).final(one)


def standing(scores):
    """Return {id: score} in rank order."""
    return {one.unit.id: one.score for one in scores}


def ids(scores):
    return [one.unit.id for one in scores]


# --------------------------------------------------------------------------------------------- worked numbers


@pytest.mark.parametrize(
    ("one", "keywords", "settings", "expected"),
    [
        (prospect(sim=0.8, terms=["kettle", "shelf"]), ["kettle", "shelf"], REFERENCE, 0.4),
        (prospect(sim=0.8, terms=["kettle"]), ["kettle"], changed(floor=1.0), 0.8),
        (prospect(sim=0.8, terms=["kettle"]), ["kettle", "shelf"], changed(floor=1.0), 0.7076923077),
        (prospect(sim=0.7, terms=["kettle"]), [], REFERENCE, 0.2692307692),
        (prospect(sim=0.5, terms=["kettle", "tea"], authority=1.0), ["kettle", "tea"], REFERENCE, 0.4),
        (prospect(sim=0.8, terms=["tea"], authority=1.0), ["tea", "cup"], changed(keyword_weight=0.0), 0.64),
        (prospect(sim=0.8, terms=["tea"], authority=1.0), ["tea", "cup"], changed(keyword_weight=1.0), 0.48),
        (prospect(sim=-0.2, terms=["kettle"]), ["kettle"], changed(floor=1.0), 0.0),
        (prospect(sim=0.5, **aged(7 * DAY)), [], REFERENCE, 0.5 * 0.5 * math.exp(-6.048) / 1.3),
        (prospect(sim=0.5, **aged(7 * DAY)), [], changed(floor=0.85), (0.85 + 0.075 * math.exp(-6.048)) / 2.6),
    ],
    ids=[
        "all keywords, new",
        "full weight",
        "half of the keywords",
        "no keywords",
        "authority",
        "kappa 0",
        "kappa 1",
        "negative similarity",
        "a week old, no floor",
        "a week old, with a floor",
    ],
)
def test_the_final_score_has_the_worked_values(one, keywords, settings, expected):
    assert final(one, keywords, settings).value == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize(
    ("count", "most", "expected"),
    [(3, 15, 0.4893010842), (1, 1, 0.6309297536), (0, 0, 0.0), (0, 10, 0.0), (15, 15, 0.9786021685)],
)
def test_the_frequency_has_the_worked_values(count, most, expected):
    tree = final(prospect(access_count=count), max_access=most)
    assert tree.find("f").value == pytest.approx(expected, abs=1e-10)


def test_the_highest_access_count_is_that_of_the_whole_rest_or_of_a_prospect():
    pair = (prospect("u1", access_count=15), prospect("u2", access_count=3))
    assert found(*pair).weighing.max_access == 15
    assert found(*pair, max_access=99).weighing.max_access == 99
    assert found().weighing.max_access == 0


def test_frequency_authority_and_age_add_up_by_their_shares():
    ones = [
        prospect("d", authority=0.5, access_count=3, **aged(DAY)),
        prospect("e", access_count=15),
        prospect("f"),
    ]
    settings = changed(keyword_weight=0.0)
    assert standing(found(*ones, settings=settings).second) == pytest.approx(
        {"e": 0.3478602168, "f": 0.25, "d": 0.2292983121}, abs=1e-10
    )


def test_a_summarys_quality_is_part_of_the_final_score():
    def summary(rate):
        lineage = Lineage(("a",), "extractive", 1 - rate, rate, 0.9, 0.9, later(days=-9), NOW)
        return prospect(sim=0.8, kind="summary", lineage=lineage, **aged(900 * DAY))

    assert final(summary(0.4), settings=BARE).value == pytest.approx(0.8 * 0.8)
    assert final(summary(0.4), settings=changed(BARE, score={"delta": 0.25})).value == pytest.approx(0.8 * 0.9)
    assert final(summary(0.0)).find("r").value == 1.0  # as old as its last source


def test_an_authored_unit_does_not_age_and_every_other_kind_does():
    old = aged(10 * DAY)
    recency = {kind: final(prospect(kind=kind, **old)).find("r").value for kind in ("turn", "knowledge", "authored")}
    aged_by_then = math.exp(-1e-5 * 10 * DAY)
    assert recency == {"turn": aged_by_then, "knowledge": aged_by_then, "authored": 1.0}


def test_each_kind_ages_at_the_rate_that_is_set_for_it():
    rates = {"turn": 1e-6, "knowledge": 1e-9, "summary": 1e-5}
    settings, old = changed(rates=rates), aged(10 * DAY)
    for kind in ("turn", "knowledge"):
        r = final(prospect(kind=kind, **old), settings=settings).find("r").value
        assert r == math.exp(-rates[kind] * 10 * DAY)


def test_age_is_counted_from_the_given_moment_and_the_future_is_new():
    [one] = discover([prospect()], frozenset(), REFERENCE, later(days=1)).second
    assert one.contributions.find("r").value == math.exp(-1e-5 * DAY)
    assert final(prospect(**aged(-DAY))).find("r").value == 1.0


def test_the_floor_is_a_mix_of_one_and_the_weight():
    weights = [final(prospect(**aged(1e9)), settings=changed(floor=floor)).find("ω").value for floor in (0, 0.4, 1)]
    assert weights == [0.0, 0.4, 1.0]
    assert final(prospect(authority=1.0), settings=changed(floor=0.5)).find("ω").value == pytest.approx(0.9)


# --------------------------------------------------------------------------------------------- the two passes


def test_pass_1_keeps_the_most_similar_and_pass_2_the_best_of_those():
    ones = [prospect(f"u{n}", sim=n / 10, authority=1.0 if n == 5 else 0.0) for n in range(3, 10)]
    discovery = found(*ones, settings=changed(first=5, second=3, keyword_weight=0.0))
    assert [one.unit.id for one in discovery.first] == ["u9", "u8", "u7", "u6", "u5"]
    assert standing(discovery.second) == pytest.approx({"u9": 0.45, "u5": 0.4, "u8": 0.4})
    assert set(discovery.fallen) == {
        StepDrop("u4", "k1", 0.5, 0.4),
        StepDrop("u3", "k1", 0.5, 0.3),
        StepDrop("u7", "k2", discovery.second[-1].score, 0.35),
        StepDrop("u6", "k2", discovery.second[-1].score, 0.3),
    }
    assert {one.via for one in discovery.second} == {"pass 2"}


def test_the_similarity_bar_is_inclusive():
    discovery = found(prospect("x", sim=0.2), prospect("y", sim=0.1999))
    assert ids(discovery.second) == ["x"]
    assert discovery.fallen == (StepDrop("y", "θ1", 0.2, 0.1999),)


def test_ties_go_by_id_in_both_passes():
    ones = [prospect(unit_id) for unit_id in ("c", "a", "d", "b")]
    discovery = found(*ones, settings=changed(first=3, second=3))
    assert ids(discovery.second) == ["a", "b", "c"]
    assert discovery.fallen == (StepDrop("d", "k1", 0.5, 0.5),)


@pytest.mark.parametrize("sims", [[], [0.0, 0.0], [-0.4, -1.0], [0.1999]], ids=["none", "zero", "negative", "below"])
def test_nothing_similar_projects_nothing(sims):
    ones = [prospect(f"u{n}", sim=sim, anchors=1.0, slots=(True,)) for n, sim in enumerate(sims)]
    for indicator in (TIMELESS, TEMPORAL):
        settings = changed(temporal={"recovery_similarity": 0.19995}, min_similarity=0.2)
        projection = project(ones, {"u0": ["u1"]}, asked(indicator=indicator, slots=("tea",)), settings)
        assert projection.items == ()
        assert projection.second == projection.hops == projection.recovered == projection.chosen == ()


def test_what_is_let_through_with_a_negative_similarity_scores_zero():
    settings = changed(min_similarity=-0.9, temporal={"recovery_similarity": -1.0})
    assert standing(found(prospect("neg", sim=-0.4), prospect("pos", sim=0.4), settings=settings).second) == {
        "pos": pytest.approx(0.2 / 1.3),
        "neg": 0.0,
    }


# -------------------------------------------------------------------------------------------------- widening


def test_k1_and_k2_grow_with_the_variant_budget_when_asked_to():
    settings = ProjectionSettings(growth=100)
    grown = grow_limits(settings, 6_050)
    assert (grown.first, grown.second) == (16 + 60, 8 + 60)
    assert dataclasses.replace(grown, first=16, second=8) == settings
    assert grow_limits(settings, 99) == grow_limits(settings, 0) == grow_limits(settings, -5) == settings


def test_the_default_recipe_grows_and_the_reference_does_not():
    assert grow_limits(Settings().projection, 8_000).second == 8 + 8_000 // 32
    assert grow_limits(REFERENCE.projection, 32_000) == REFERENCE.projection


# ------------------------------------------------------------------------------------------------------ hops


def parents(**scores):
    """Return a discovery whose C2 has these final scores."""
    second = [
        ProjectedCandidate(prospect(name), "pass 2", Contribution("S_final", score)) for name, score in scores.items()
    ]
    return Discovery((), tuple(second), (), CandidateWeights(REFERENCE, frozenset(), NOW, 0))


def hopped(discovery, links, known, settings=REFERENCE):
    return hop(discovery, links, {name: prospect(name, sim=0.0) for name in known}, settings)


def test_a_linked_unit_gets_half_of_its_best_parents_score():
    hops, fallen = hopped(parents(p=0.9, q=0.7), {"p": ["h1", "h2"], "q": ["h1"]}, ["h1", "h2"])
    assert standing(hops) == {"h1": 0.45, "h2": 0.45}
    assert [one.via for one in hops] == ["hop from p", "hop from p"]
    assert fallen == ()


def test_the_hop_bar_is_inclusive_and_the_fall_is_recorded():
    hops, fallen = hopped(parents(p=0.3, q=0.2), {"p": ["a"], "q": ["b"]}, ["a", "b"])
    assert standing(hops) == {"a": 0.15}
    assert fallen == (StepDrop("b", "θ_hop", 0.15, 0.1),)


def test_of_two_equal_parents_the_one_with_the_lower_id_is_named():
    [one] = hopped(parents(p=0.8, q=0.8), {"q": ["a"], "p": ["a"]}, ["a"])[0]
    assert one.via == "hop from p"


@pytest.mark.parametrize(
    "links",
    [{"p": ["p"]}, {"p": ["q"], "q": ["p"]}, {"p": ["gone"]}, {"gone": ["a"]}, {"p": []}, {}],
    ids=["itself", "a ring in C2", "a target that is not there", "a parent outside C2", "no target", "no links"],
)
def test_links_that_lead_nowhere_new_add_nothing(links):
    assert hopped(parents(p=0.9, q=0.8), links, ["a", "p", "q"]) == ((), ())


def test_links_are_followed_once():
    links = {"p": ["a"], "a": ["b"], "b": ["p"]}
    assert ids(hopped(parents(p=0.9), links, ["a", "b", "p"])[0]) == ["a"]


def test_a_hop_lifts_a_unit_that_fell_in_a_pass():
    ones = [prospect("p", sim=0.9), prospect("low", sim=0.21), prospect("far", sim=0.1)]
    projection = project(ones, {"p": ["far", "low", "new"]}, asked(), changed(BARE, second=1, temporal={"picks": 1}),
                         targets=[prospect("new", sim=0.0)])  # fmt: skip
    assert standing(projection.items) == {"p": 0.9, "far": 0.45, "low": 0.45, "new": 0.45}
    assert projection.falls("low") == (StepDrop("low", "k2", 0.9, 0.21),)
    assert projection.falls("far") == (StepDrop("far", "θ1", 0.2, 0.1),)
    assert projection.falls("new") == ()


def test_a_target_that_no_strategy_found_comes_in_by_a_hop_only():
    loose = changed(BARE, min_similarity=-0.5, temporal={"recovery_similarity": -1.0})
    target = prospect("t", sim=0.0, anchors=1.0, slots=(True,))
    for indicator in (TIMELESS, TEMPORAL):
        question = asked(indicator=indicator, slots=("tea",))
        assert project([prospect("p", sim=0.9)], {}, question, loose, targets=[target]).items[0].unit.id == "p"
        projection = project([prospect("p", sim=0.9)], {"p": ["t"]}, question, loose, targets=[target])
        assert projection.items[-1].via == "hop from p"
        assert "t" not in projection.first
        assert projection.recovered == ()


# -------------------------------------------------------------------------------------------- injection order


def test_without_time_pass_2_and_hops_form_one_list_by_score():
    ones = [prospect("high", sim=0.9), prospect("low", sim=0.3)]
    projection = project(ones, {"high": ["h"]}, asked(), BARE, targets=[prospect("h", sim=0.0)])
    assert standing(projection.items) == {"high": 0.9, "h": 0.45, "low": 0.3}
    assert list(standing(projection.items)) == ["high", "h", "low"]
    assert [one.via for one in projection.items] == ["pass 2", "hop from high", "pass 2"]
    assert not projection.active
    assert projection.first == ("high", "low")
    assert ids(projection.second) == ["high", "low"]
    assert ids(projection.hops) == ["h"]


def test_the_question_travels_with_the_projection():
    question = asked(["tea"], TEMPORAL, ("the tea", "the cup"), 7)
    assert project([], {}, question, REFERENCE).asked == question


# ---------------------------------------------------------------------------------------- the reference's words


def test_plain_words_are_three_characters_long_distinct_and_neither_stopped_nor_stemmed():
    assert plain_words("Is THE the x9 to: a_b boxes-and-boxes?") == {"the", "a_b", "boxes", "and"}
    assert plain_words("Café ÜBER cafe\u0301") == {"café", "über"}
    assert plain_words("!! …") == frozenset()


# -------------------------------------------------------------------------------------------------- settings

CONTRACT = {
    "first": 16, "second": 8, "growth": 0, "min_similarity": 0.2, "floor": 0.0, "keyword_weight": 0.3,
    "share_recency": 0.5, "share_frequency": 0.2, "share_authority": 0.3, "hop_share": 0.5, "hop_floor": 0.15,
    "keywords": "words", "rates": {"turn": 1e-5, "knowledge": 1e-5, "summary": 1e-5},
}  # fmt: skip


def test_the_reference_recipe_has_the_constants_of_the_contract():
    assert dataclasses.asdict(REFERENCE.projection) == CONTRACT


def test_the_default_recipe_differs_in_the_floor_the_growth_and_in_what_a_keyword_is():
    assert dataclasses.asdict(Settings().projection) == {**CONTRACT, "floor": 0.85, "keywords": "terms", "growth": 32}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("first", 0), ("second", 0), ("second", 17), ("growth", -1), ("min_similarity", 1.1),
        ("min_similarity", -1.1), ("floor", -0.1), ("floor", 1.1), ("keyword_weight", -3.0),
        ("keyword_weight", math.inf), ("hop_share", 0.0), ("hop_share", 1.0), ("hop_floor", 1.5),
        ("hop_floor", -0.1), ("keywords", "letters"),
    ],
)  # fmt: skip
def test_a_value_outside_its_domain_is_refused_with_its_key_and_value(key, value):
    with pytest.raises(SettingsError) as refusal:
        Settings.load({f"projection.{key}": value}, environ={})
    assert f"projection.{key} = " in str(refusal.value)
    assert str(value) in str(refusal.value)


@pytest.mark.parametrize("key", [key for key, value in CONTRACT.items() if isinstance(value, float)])
def test_not_a_number_is_refused(key):
    with pytest.raises(SettingsError, match=rf"projection\.{key}"):
        ProjectionSettings(**{key: math.nan})


@pytest.mark.parametrize(
    ("weights", "shares"),
    [
        ((0.5, 0.2, 0.3), (0.5, 0.2, 0.3)),
        ((7.0, -3.0, 1.0), (0.5, 0.0, 0.5)),
        ((0.2, 0.0, 0.2), (0.5, 0.0, 0.5)),
        ((0.0, -1.0, 0.0), (0.5, 0.2, 0.3)),
    ],
)
def test_the_shares_are_clamped_and_divided_by_their_sum_and_all_zero_gives_the_defaults(weights, shares):
    recency, frequency, authority = weights
    settings = ProjectionSettings(share_recency=recency, share_frequency=frequency, share_authority=authority)
    assert settings.shares == pytest.approx(shares, rel=1e-15)


def test_bounds_between_the_groups_are_checked_whichever_side_moves():
    for overrides in (
        {"temporal.recovery_similarity": 0.2},
        {"projection.min_similarity": 0.12},
        {"temporal.picks": 9},
        {"projection.second": 2},
    ):
        with pytest.raises(SettingsError) as refusal:
            Settings.load(overrides, environ={})
        [key] = overrides
        assert key in str(refusal.value)
    moved = {"temporal.recovery_similarity": 0.25, "projection.min_similarity": 0.3}
    assert Settings.load(moved, environ={}).temporal.recovery_similarity == 0.25


# ---------------------------------------------------------------------------------------------------- oracle


def oracle_settings(options):
    """Translate the oracle's options; it has no lower bound for θ1, and the contract keeps θ_rec below it."""
    bar = max(options.get("theta1", 0.2), -0.99)
    return changed(
        first=options.get("k1", 16), second=options.get("k2", 8), min_similarity=bar,
        keyword_weight=options.get("kappa", 0.3),
        share_recency=options.get("authorityRecencyWeight", 0.5),
        share_frequency=options.get("authorityFrequencyWeight", 0.2),
        share_authority=options.get("authorityAuthoredWeight", 0.3),
        temporal={"recovery_similarity": -1.0, "picks": 1},
    )  # fmt: skip


def oracle_prospect(item, now):
    data = item["metadata"]
    unit = make_unit(
        item["id"], item["text"], access_count=data.get("access_count", 0),
        authority=float(data.get("authority", data.get("authored", False))),
        event_time=now - timedelta(milliseconds=1_750_000_000_000 - data["ts"]),
    )  # fmt: skip
    return ContextCandidate(unit, item["score"], plain_words(item["text"]), 0.0)


def test_the_two_passes_rank_as_the_oracle_where_the_contract_does_not_overrule_it():
    now = datetime(2025, 6, 15, tzinfo=UTC)
    compared = 0
    for entry in vectors("rankSection7VariantCandidates"):
        given = entry["inputs"]
        if given["options"].get("kappa", 0.3) < 0:  # the oracle clamps it; the contract refuses it
            with pytest.raises(SettingsError):
                oracle_settings(given["options"])
            continue
        if len({item["id"] for item in given["items"]}) < len(given["items"]):
            continue  # copies are merged before (C6)
        prospects = [oracle_prospect(item, now) for item in given["items"]]
        keywords = plain_words(given["options"]["queryText"])
        ranked = discover(prospects, keywords, oracle_settings(given["options"]), now).second
        assert standing(ranked) == pytest.approx({row["id"]: row["score"] for row in entry["expected"]}, abs=1e-9)
        assert ids(ranked) == [row["id"] for row in entry["expected"]]
        compared += 1
    assert compared >= 13


def test_frequency_and_final_score_agree_with_the_oracle():
    for entry in vectors("f(d)"):
        tree = final(prospect(access_count=entry["inputs"]["acc"]), max_access=entry["inputs"]["max_acc"])
        assert tree.find("f").value == pytest.approx(entry["expected"], abs=1e-12)
    for entry in vectors("S_final"):
        given = entry["inputs"]
        settings = changed(floor=given["omega"], keyword_weight=given["kappa"], share_recency=0.0,
                           share_frequency=0.0, share_authority=1.0)  # fmt: skip
        keywords = ["a", "b"]
        terms = keywords[: round(2 * given["M_norm"])]
        tree = final(prospect(sim=given["sim"], terms=terms), keywords, settings)
        assert tree.value == pytest.approx(entry["expected"], abs=1e-12)


def test_hops_agree_with_the_oracle():
    compared = 0
    for entry in vectors("expandSection7HopCandidates"):
        given = entry["inputs"]
        share, bar = given["options"].get("etaHop", 0.5), given["options"].get("thetaHop", 0.15)
        if share == 1:  # the oracle clamps it; the contract refuses it
            with pytest.raises(SettingsError):
                changed(hop_share=1.0)
            continue
        links = {}
        for parent in given["parents"]:
            targets = parent["metadata"]["hop_targets"]
            split = [name.strip() for name in targets.split(",")] if isinstance(targets, str) else targets
            links[parent["id"]] = split
        discovery = parents(**{parent["id"]: parent["finalScore"] for parent in given["parents"]})
        hops, _ = hopped(discovery, links, given["authored_ids"], changed(hop_share=share, hop_floor=bar))
        assert standing(hops) == pytest.approx({row["id"]: row["score"] for row in entry["expected"]}, abs=1e-12)
        compared += 1
    assert compared == 4


def test_scores_do_not_depend_on_the_hybrid_scores_weights():
    one = prospect(sim=0.8)
    assert final(one).value == final(one, settings=changed(score={"alpha": 0.1, "gamma": 0.9})).value
    assert ScoreSettings().delta == 0.5
