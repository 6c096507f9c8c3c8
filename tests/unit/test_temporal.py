"""Temporal-compositional selection (C13): the indicator, event slots, recovery, the greedy selector and its order."""

import dataclasses
import math

import pytest

from builders import NOW, make_unit, project
from holdfast.context.project import SlotCoverage, discover, pick_covering, select, slot_covered
from holdfast.errors import SettingsError
from holdfast.settings import Settings, TemporalSettings
from holdfast.text.temporal import event_slots, temporal_indicator
from holdfast.types import Contribution, ProjectionQuery
from holdfast.types.results import ContextCandidate, Indicator, ProjectedCandidate, StepDrop
from reference import vectors

REFERENCE = Settings.reference()


def xi(question, *, wide=False):
    return temporal_indicator(question, wide=wide).value


# -------------------------------------------------------------------------------------------------- indicator


@pytest.mark.parametrize(
    ("question", "weight", "group"),
    [
        ("How many days did the paint need?", 1.0, "how many days"),
        ("how long is the hose", 0.9, "how long"),
        ("what came before dinner", 0.8, "before/after"),
        ("the talk AFTER lunch", 0.8, "before/after"),
        ("bills since spring", 0.7, "since/between"),
        ("between the two moves", 0.7, "since/between"),
        ("the first boat I rowed", 0.8, "first/earlier"),
        ("an earlier draft", 0.8, "first/earlier"),
        ("Which came first, the cat or the dog?", 0.8, "first/earlier"),
        ("When  did\nthe roof leak", 0.7, "when did"),
    ],
)
def test_each_shipped_group_has_its_weight(question, weight, group):
    for wide in (False, True):
        assert temporal_indicator(question, wide=wide) == Indicator(weight / 1.5, (group,))


@pytest.mark.parametrize("question", ["", "beforehand", "thirst", "the hereafter", "when the dog barked", "how many"])
def test_parts_of_words_and_of_phrases_do_not_count(question):
    assert temporal_indicator(question, wide=True) == Indicator(0.0, ())


def test_a_group_counts_once_and_the_sum_saturates():
    assert xi("before or after, and before that") == 0.8 / 1.5
    assert temporal_indicator("When did it end, and how long after that?", wide=False) == Indicator(
        1.0, ("how long", "before/after", "when did")
    )
    assert xi("how many days after") == 1.0


ADDED = {
    "weeks/months/years": ["how many weeks was I ill", "in which month", "this year"],
    "ago": ["long ago"],
    "last/latest": ["the last film", "when I last swam", "my latest job", "at last Friday's market"],
    "until/during": ["open until noon", "during the storm"],
    "order": ["in which order", "the order of the talks", "put them in order", "my purchase order"],
    "dates": ["on 2026-03-29", "the talk on Monday", "in March", "early July", "what happened yesterday", "in 2019"],
    "numerals": ["3 days", "a two-day hike", "forty or 12 hours"],
}


@pytest.mark.parametrize(("group", "question"), [(group, q) for group, qs in ADDED.items() for q in qs])
def test_the_wide_lexicon_adds_groups_of_equal_weight(group, question):
    found = temporal_indicator(question, wide=True)
    assert group in found.groups
    assert found.value == pytest.approx(min(0.7 * len(found.groups) / 1.5, 1.0))
    assert temporal_indicator(question, wide=False) == Indicator(0.0, ())


@pytest.mark.parametrize(
    "question",
    [
        "At last, it works",
        "at last I could sleep",
        "what is my sister's last name",
        "how does a battery last on the road",
        "will it last?",
        "as a last resort",
        "in order to win",
        "in order that it holds",
        "Chicago",
        "the weekend",
        "a boat 30 years old",
        "a three-year-old mare",
        "it may rain, and they march on",
        "room 12 and 7 chairs",
        "the lasting peace",
        "an orderly queue",
    ],
)
def test_words_that_only_look_temporal_do_not_count(question):
    assert temporal_indicator(question, wide=True) == Indicator(0.0, ())


def test_relative_dates_are_counted_by_their_words_and_not_again_as_a_date():
    assert temporal_indicator("what did we cook last week", wide=True).groups == ("weeks/months/years", "last/latest")
    assert temporal_indicator("two weeks ago", wide=True).groups == ("weeks/months/years", "ago", "numerals")


def test_of_a_pasted_document_only_the_beginning_is_read():
    assert xi("x " * 1000 + "how long before") == 0.0
    assert event_slots("? " * 1000 + "the harbour") == ()


# ------------------------------------------------------------------------------------------------------ slots


@pytest.mark.parametrize(
    ("question", "slots"),
    [
        ("", ()),
        ("before", ()),
        ("How many days?", ()),
        ("when did I sell the boat", ("sell boat",)),
        ("Was the harbour painted before the lighthouse or after?", ("was harbour painted", "lighthouse")),
        (
            "the old grey harbour pilot met our new blue ferry",
            ("old grey harbour pilot", "our new blue ferry"),
        ),
        ("tea, coffee; milk. juice! water?", ("tea", "coffee", "milk", "juice")),
        ("the boat, the boat and a boat", ("boat",)),
        ("Did I read “War and Peace” before 'Middlemarch'?", ("War and Peace", "Middlemarch", "read")),
        ('Who sang "so  long"', ("so long", "who sang")),
        ("Did I see 'It' or “X”?", ("It", "see")),
        ("rock 'n' roll", ("rock roll",)),
        ("the sailors' boat and the pilots' boat", ("sailors boat", "pilots boat")),
        ("Bjo\u0308rn sa\u030ag Åse", ("björn såg åse",)),
        ("北京，上海", ("北京", "上海")),
        ("\"\" “ ” ''", ()),
    ],
)
def test_slots_are_quotations_and_the_content_words_of_clauses(question, slots):
    assert event_slots(question) == slots


@pytest.mark.parametrize(
    ("question", "slots"),
    [
        ("How many days before the fair did I meet Anna?", ("fair", "meet anna")),
        ("How many weeks after the move did I start my new job?", ("move", "start new job")),
        ("How long after buying the boat did we sail to Malta?", ("buying boat", "sail malta")),
        ("Which came first, the wedding or the trip to Vienna?", ("wedding", "trip vienna")),
        ("How many days passed between the conference and the launch?", ("conference", "launch")),
        ("When did I adopt the cat, before or after the renovation?", ("adopt cat", "renovation")),
        ("How long had I been working at Acme when I met Tomas?", ("working acme", "met tomas")),
        ("How many months ago did I visit the dentist?", ("visit dentist",)),
        ("What did I do the day after the concert?", ("concert",)),
        ("Did I book the hotel before I bought the train tickets?", ("book hotel", "bought train tickets")),
        ("How many days?", ()),
    ],
)
def test_a_wide_slot_is_the_phrase_before_or_after_a_word_of_time(question, slots):
    assert event_slots(question, wide=True) == slots


def test_a_name_is_a_slot_of_its_own_only_when_no_clause_holds_it():
    clause = "the storm that came over the long quiet stony coast near Cape Wrath while sheep kept grazing there"
    assert event_slots(clause) == ("storm came over quiet", "sheep kept grazing there", "Cape Wrath")
    assert event_slots("the Bay of Biscay") == ("bay biscay",)
    assert event_slots("When did Romeo and Juliet's cousin meet") == ("romeo", "juliet cousin meet")


def test_empty_words_are_cut_from_the_edges_of_a_name():
    middle = "mist rain hail snow {} gale wind storm frost"
    assert event_slots(middle.format("Did The Isle of Man's")) == (
        "mist rain hail snow", "gale wind storm frost", "Isle of Man",
    )  # fmt: skip
    assert event_slots(middle.format("I've The Of")) == ("mist rain hail snow", "gale wind storm frost")


@pytest.mark.parametrize(
    ("slot", "unit", "covered"),
    [
        ("a b", "a", True),
        ("a b c", "a", False),
        ("a b c", "a b", True),
        ("a b c d", "c d e", True),
        ("a", "b", False),
        ("a", "", False),
        ("", "a", False),
        ("", "", False),
    ],
)
def test_without_vectors_a_slot_is_covered_by_half_of_its_terms(slot, unit, covered):
    assert slot_covered(frozenset(slot.split()), frozenset(unit.split())) is covered


# --------------------------------------------------------------------------------------------- scores and picks


def prospect(unit_id, sim=0.5, anchors=0.0, slots=()):
    return ContextCandidate(make_unit(unit_id), sim, frozenset(), anchors, tuple(map(bool, slots)))


def scored(unit_id, final, anchors=0.0, slots=()):
    """Return a member of a pool with the final score `final`."""
    return ProjectedCandidate(prospect(unit_id, final, anchors, slots), "pass 2", Contribution("S_final", final))


def standing(scores):
    return [(one.unit.id, pytest.approx(one.score)) for one in scores]


TOPIC, TWIN = scored("topic", 0.6, 0, [1, 0]), scored("twin", 0.58, 0, [1, 0])
ANCHOR, NOISE = scored("anchor", 0.35, 1, [0, 1]), scored("noise", 0.05, 0, [0, 0])


@pytest.mark.parametrize(
    ("value", "final", "anchors", "gain", "cov", "proj"),
    [
        (0.0, 0.4, 1.0, 1.0, 0.64, 0.4),
        (1.0, 0.4, 1.0, 1.0, 0.64, 0.64),
        (1.0, 0.4, 0.0, 0.0, 0.24, 0.24),
        (8 / 15, 0.4, 2 / 3, 0.5, 0.4733333333, 0.4391111111),
        (0.3, 0.9, 1 / 3, 0.0, 0.6066666667, 0.812),
    ],
)
def test_the_projected_score_has_the_worked_values_in_both_forms(value, final, anchors, gain, cov, proj):
    coverage = SlotCoverage(value, 2, REFERENCE.temporal)
    tree = coverage.projected(scored("u", final, anchors, [gain > 0, gain > 0.5]), []).contributions
    assert tree.find("ΔΦ").value == gain
    assert tree.find("S_cov").value == pytest.approx(cov, abs=1e-10)
    assert tree.value == pytest.approx(proj, abs=1e-10)
    mu, nu, rho = 0.6, 0.2, 0.2
    assert tree.value == pytest.approx((1 - value * (1 - mu)) * final + value * nu * anchors + value * rho * gain)


@pytest.mark.parametrize(
    ("slots", "own", "others", "gain"),
    [
        (0, [], [], 0.0),
        (0, [1, 1], [], 0.0),
        (2, [1, 1], [], 1.0),
        (2, [1, 1], [[1, 0]], 0.5),
        (4, [1, 0, 1, 1], [[0, 0, 1, 0], [0, 0, 0, 1]], 0.25),
        (3, [1, 1, 1], [[1, 1, 0], [0, 0, 1]], 0.0),
        (2, [], [], 0.0),
        (2, [1, 1, 1], [], 1.0),
    ],
)
def test_the_gain_is_the_share_of_newly_covered_slots(slots, own, others, gain):
    coverage = SlotCoverage(1.0, slots, REFERENCE.temporal)
    company = [prospect(f"o{n}", slots=other) for n, other in enumerate(others)]
    assert coverage.gain(prospect("u", slots=own), company).value == gain


def test_the_greedy_selector_picks_what_adds_most_to_those_before_it():
    pool = (TOPIC, TWIN, ANCHOR, NOISE)
    picks, fallen = pick_covering(pool, SlotCoverage(1.0, 2, REFERENCE.temporal))
    assert standing(picks) == [("anchor", 0.51), ("topic", 0.46), ("twin", 0.348)]
    assert fallen == (StepDrop("noise", "k_cov", picks[-1].score, pytest.approx(0.03)),)
    picks, _ = pick_covering(pool, SlotCoverage(0.3, 2, REFERENCE.temporal))
    assert standing(picks) == [("topic", 0.558), ("twin", 0.5104), ("anchor", 0.398)]


def test_the_selector_stops_below_its_bar_and_says_who_fell():
    settings = REFERENCE.temporal
    assert pick_covering((scored("a", 0.05),), SlotCoverage(1.0, 1, settings)) == (
        (),
        (StepDrop("a", "θ_stop", 0.1, pytest.approx(0.03)),),
    )
    exact = scored("b", 0.1)
    assert [one.unit.id for one in pick_covering((exact,), SlotCoverage(0.0, 0, settings))[0]] == ["b"]
    assert pick_covering((), SlotCoverage(1.0, 2, settings)) == ((), ())


def test_equal_candidates_are_picked_by_id():
    pool = [scored(name, 0.5) for name in "dbca"]
    assert [one.unit.id for one in pick_covering(pool, SlotCoverage(1.0, 0, REFERENCE.temporal))[0]] == [
        "a",
        "b",
        "c",
    ]


# --------------------------------------------------------------------------------------------------- selection


def recipe(base=REFERENCE, *, second=2, **temporal):
    """Return settings under which the final score is the similarity."""
    return dataclasses.replace(
        base,
        projection=dataclasses.replace(base.projection, floor=1.0, keyword_weight=0.0, second=second),
        temporal=dataclasses.replace(base.temporal, **{"picks": 2, **temporal}),
    )


def projected(prospects, settings, value=1.0, slots=("tea", "cup"), links=None, targets=()):
    asked = ProjectionQuery(frozenset(), NOW, Indicator(value, ("how long",)), slots)
    return project(prospects, links or {}, asked, settings, targets=targets)


def chosen(prospects, settings, value=1.0, slots=2):
    return select(discover(prospects, frozenset(), settings, NOW), prospects, value, slots, settings.temporal)


# Two near units say the same; the date that is missing stands far below, outside both passes.
NEAR = [prospect("p1", 0.8, 0, [1, 0]), prospect("p2", 0.65, 0, [1, 0])]
DATED = prospect("date", 0.18, 1, [0, 1])


def test_a_dated_unit_that_both_passes_left_out_is_recovered_and_chosen():
    projection = projected([*NEAR, DATED], recipe())
    assert projection.falls("date") == (StepDrop("date", "θ1", 0.2, 0.18),)
    assert [one.unit.id for one in projection.recovered] == ["date"]
    # In the company of the other, both have a slot to themselves.
    assert standing(projection.chosen) == [("p1", 0.58), ("date", 0.108 + 0.2 + 0.1)]
    assert [one.via for one in projection.items] == ["temporal", "temporal, recovered"]
    assert projection.falls("p2") == (StepDrop("p2", "k_cov", pytest.approx(0.408), pytest.approx(0.39)),)


def test_every_choice_is_scored_in_the_company_of_all_the_others():
    twins = [prospect("a", 0.8, 0, [1]), prospect("b", 0.7, 0, [1])]
    selection = chosen(twins, recipe(), slots=1)
    assert standing(selection.chosen) == [("a", 0.48), ("b", 0.42)]
    assert [one.contributions.find("ΔΦ").value for one in selection.chosen] == [0.0, 0.0]


@pytest.mark.parametrize(("value", "active"), [(0.3, True), (math.nextafter(0.3, 0), False), (0.0, False)])
def test_the_mode_is_active_from_its_bar_on(value, active):
    projection = projected([*NEAR, DATED], recipe(), value)
    assert projection.active is active
    assert bool(projection.chosen) is active
    if not active:
        assert standing(projection.items) == [("p1", 0.8), ("p2", 0.65)]
        assert projection.recovered == ()


def test_recovery_takes_the_densest_then_the_most_similar_then_the_lowest_id():
    ones = [
        prospect("in", 0.9, 1),
        prospect("b", 0.5, 2 / 3),
        prospect("a", 0.5, 2 / 3),
        prospect("c", 0.6, 1 / 3),
        prospect("d", 0.15, 1),
        prospect("e", 0.1499, 1),
        prospect("f", 0.85, 0),
    ]
    settings = recipe(second=1, picks=1, recovered=3)
    selection = chosen(ones, settings)
    assert [one.unit.id for one in selection.recovered] == ["d", "a", "b"]
    falls = {(fall.unit_id, fall.step): (fall.needed, fall.had) for fall in selection.fallen}
    assert falls["e", "θ_rec"] == (0.15, 0.1499)
    assert falls["c", "k_rec"] == (2 / 3, 1 / 3)
    assert falls["f", "k_rec"] == (2 / 3, 0.0)
    assert "in" not in {unit_id for unit_id, step in falls if step in ("θ_rec", "k_rec", "anchors")}


def test_recovery_may_ask_for_an_anchor():
    ones = [prospect("in", 0.9), prospect("bare", 0.5), prospect("dated", 0.4, 1 / 3)]
    settings = recipe(second=1, picks=1)
    assert [one.unit.id for one in chosen(ones, settings).recovered] == ["dated", "bare"]
    selection = chosen(ones, recipe(second=1, picks=1, anchors_required=True))
    assert [one.unit.id for one in selection.recovered] == ["dated"]
    assert StepDrop("bare", "anchors", pytest.approx(1 / 3), 0.0) in selection.fallen


def test_recovery_fills_its_places_outside_pass_2():
    """The seed takes the best ten first and removes pass 2 from them; the contract decides otherwise."""
    ones = [prospect(f"in{n}", 0.9, 1) for n in range(2)] + [prospect(f"out{n}", 0.3, 1 / 3) for n in range(3)]
    assert [one.unit.id for one in chosen(ones, recipe(recovered=2)).recovered] == ["out0", "out1"]


# -------------------------------------------------------------------------------------------- injection order

HOP = prospect("hop", 0.0)


def test_the_reference_recipe_lets_the_choice_take_the_place_of_pass_2():
    projection = projected([*NEAR, DATED], recipe(), links={"p1": ["hop"]}, targets=[HOP])
    assert standing(projection.items) == [("p1", 0.58), ("date", 0.408), ("hop", 0.4)]
    assert "p2" in {one.unit.id for one in projection.second}


def test_with_keep_rest_the_choice_comes_first_and_the_rest_follows_by_its_own_score():
    settings = recipe(keep_rest=True)
    projection = projected([*NEAR, DATED], settings, links={"p1": ["hop"]}, targets=[HOP])
    assert standing(projection.items) == [("p1", 0.58), ("date", 0.408), ("p2", 0.65), ("hop", 0.4)]
    assert [one.via for one in projection.items] == ["temporal", "temporal, recovered", "pass 2", "hop from p1"]


@pytest.mark.parametrize("keep_rest", [False, True])
def test_a_hop_target_that_was_chosen_keeps_its_projected_score_and_comes_once(keep_rest):
    projection = projected([*NEAR, DATED], recipe(keep_rest=keep_rest), links={"p1": ["date"]})
    assert [one.unit.id for one in projection.hops] == ["date"]
    assert standing(projection.items)[:2] == [("p1", 0.58), ("date", 0.408)]
    assert [one.unit.id for one in projection.items].count("date") == 1


@pytest.mark.parametrize("keep_rest", [False, True])
def test_parents_of_hops_are_pass_2_even_when_they_were_not_chosen(keep_rest):
    projection = projected([*NEAR, DATED], recipe(keep_rest=keep_rest), links={"p2": ["hop"]}, targets=[HOP])
    assert ("hop", pytest.approx(0.325)) in standing(projection.items)
    assert projection.items[-1].via == "hop from p2"


def test_an_empty_choice_leaves_the_hops():
    ones = [prospect("p", 0.9)]
    projection = projected(ones, recipe(stop=0.99), links={"p": ["hop"]}, targets=[HOP])
    assert projection.chosen == ()
    assert standing(projection.items) == [("hop", 0.45)]
    assert projected([], recipe()).items == ()


def test_a_question_without_slots_is_scored_by_relevance_and_anchors():
    projection = projected([*NEAR, DATED], recipe(), slots=())
    assert standing(projection.items) == [("p1", 0.48), ("p2", 0.39)]


# ---------------------------------------------------------------------------------------------------- settings

CONTRACT = {
    "enabled": True, "activation": 0.3, "wide": False, "slot_similarity": 0.5, "share_relevance": 0.6,
    "share_anchors": 0.2, "share_coverage": 0.2, "recovered": 10, "recovery_similarity": 0.15,
    "anchors_required": False, "picks": 3, "stop": 0.1, "keep_rest": False,
}  # fmt: skip


def test_the_reference_recipe_has_the_constants_of_the_contract():
    assert dataclasses.asdict(REFERENCE.temporal) == CONTRACT


def test_the_default_recipe_differs_by_three_switches_and_what_is_derived_for_its_scores():
    assert dataclasses.asdict(Settings().temporal) == {
        **CONTRACT, "wide": True, "anchors_required": True, "keep_rest": True, "recovery_similarity": 0.12,
        "share_relevance": 0.4, "share_anchors": 0.4,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("activation", 0.0), ("activation", 1.0), ("slot_similarity", 1.5), ("slot_similarity", -1.5),
        ("recovered", 0), ("recovery_similarity", -1.1), ("recovery_similarity", 1.1), ("picks", 0),
        ("stop", -0.1), ("stop", 1.1),
    ],
)  # fmt: skip
def test_a_value_outside_its_domain_is_refused_with_its_key_and_value(key, value):
    with pytest.raises(SettingsError) as refusal:
        Settings.load({f"temporal.{key}": value}, environ={})
    assert f"temporal.{key} = {value}" in str(refusal.value)


@pytest.mark.parametrize("key", [key for key, value in CONTRACT.items() if isinstance(value, float)])
def test_not_a_number_is_refused(key):
    with pytest.raises(SettingsError, match=rf"temporal\.{key}"):
        TemporalSettings(**{key: math.nan})


@pytest.mark.parametrize(
    ("weights", "shares"),
    [((0.6, 0.2, 0.2), (0.6, 0.2, 0.2)), ((2.0, 0.0, 1.0), (0.5, 0.0, 0.5)), ((0.0, -1.0, 0.0), (0.6, 0.2, 0.2))],
)
def test_the_shares_are_clamped_and_divided_by_their_sum_and_all_zero_gives_the_defaults(weights, shares):
    relevance, anchors, coverage = weights
    settings = TemporalSettings(share_relevance=relevance, share_anchors=anchors, share_coverage=coverage)
    assert settings.shares == pytest.approx(shares, rel=1e-15)


# ------------------------------------------------------------------------------------------------------ oracle


def test_the_indicator_and_the_slots_agree_with_the_oracle():
    """No question of it is quoted, and its names all stand in a clause, so that the two agree in full."""
    compared = 0
    for entry in vectors(section="9.2-xi"):
        found = temporal_indicator(entry["inputs"]["query"], wide=False)
        assert found.value == pytest.approx(entry["expected"]["indicator"], abs=1e-12)
        assert [group.replace("/", " or ") for group in found.groups] == entry["expected"]["matched"]
        assert (found.value >= REFERENCE.temporal.activation) is entry["expected"]["active"]
        compared += 1
    for entry in vectors(section="9.4-slots"):
        assert list(event_slots(entry["inputs"]["query"])) == entry["expected"]["slots"]
        compared += 1
    assert compared >= 10


def test_gains_scores_and_picks_agree_with_the_oracle():
    compared = 0
    for entry in vectors(section="9.4-coverage"):
        given = entry["inputs"]
        coverage = SlotCoverage(1.0, given["slots"], REFERENCE.temporal)
        gain = coverage.gain(prospect("u", slots=given["phi_d"]), [prospect("o", slots=given["covered"])])
        assert gain.value == entry["expected"]
        compared += 1
    for entry in vectors(section="9.5-Sproj"):
        given = entry["inputs"]
        slots = [place < 2 * given["delta_phi"] for place in range(2)]
        member = scored("u", given["S_final"], given["A"], slots)
        tree = SlotCoverage(given["xi"], 2, REFERENCE.temporal).projected(member, []).contributions
        assert tree.find("S_cov").value == pytest.approx(entry["expected"]["S_cov"], abs=1e-12)
        assert tree.value == pytest.approx(entry["expected"]["S_proj"], abs=1e-12)
        compared += 1
    for entry in vectors(section="9.7-greedy"):
        given = entry["inputs"]
        pool = [scored(one["id"], one["S"], one["A"], one["phi"]) for one in given["pool"]]
        slots = len(given["pool"][0]["phi"]) if given["pool"] else 0
        picks, _ = pick_covering(pool, SlotCoverage(given["xi"], slots, REFERENCE.temporal))
        assert [one.unit.id for one in picks] == entry["expected"]["selected"]
        assert [one.score for one in picks] == pytest.approx(entry["expected"]["scores"], abs=1e-12)
        compared += 1
    assert compared == 14
