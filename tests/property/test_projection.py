"""The projection on generated pools (C11, C12, C13; laws 5, 8, 9, 10, 11 and 12)."""

import dataclasses
import json
import math

from hypothesis import assume, given
from hypothesis import strategies as st

from builders import NOW, costly, later, make_unit, project
from holdfast.context.project import (
    CandidateWeights,
    SlotCoverage,
    discover,
    grow_limits,
    hop,
    pick_covering,
    select,
    slot_covered,
)
from holdfast.settings import ProjectionSettings, ScoreSettings, Settings, TemporalSettings
from holdfast.text.temporal import event_slots, temporal_indicator
from holdfast.types import Contribution, Lineage, ProjectionQuery
from holdfast.types.results import ContextCandidate, Indicator, ProjectedCandidate

WORDS = ["kettle", "shelf", "harbour", "tea", "boat"]
NAMES = [f"u{n}" for n in range(12)]
DENSITIES = (0.0, 1 / 3, 2 / 3, 1.0)
SLOTS = 4
# Every name of a tree that a law bounds by [0, 1].
BOUNDED = {"ω", "r", "f", "a", "M", "S_final", "S_hop", "S_cov", "S_proj", "ΔΦ", "A"}

fractions = st.floats(0.0, 1.0)
# A few values that collide, so that ties and bars are met, and any others.
similarities = st.sampled_from([-1.0, -0.0, 0.0, 0.15, 0.2, 0.5, 0.9, 1.0]) | st.floats(-1.0, 1.0)
weights = st.floats(-1.0, 2.0)
flags = st.lists(st.booleans(), max_size=SLOTS).map(tuple)
term_sets = st.frozensets(st.sampled_from(WORDS))


@st.composite
def units(draw, name):
    kind = draw(st.sampled_from(["turn", "knowledge", "authored", "summary"]))
    moment = later(seconds=-draw(st.floats(-1e6, 1e9)))
    lineage = None
    if kind == "summary":
        rate = draw(fractions)
        lineage = Lineage(("s",), "extractive", 1.0 - rate, rate, 0.9, 0.9, moment, moment)
    return make_unit(
        name, kind=kind, lineage=lineage, event_time=moment, authority=draw(fractions | st.sampled_from([0.0, 1.0])),
        access_count=draw(st.integers(0, 40)),
    )  # fmt: skip


@st.composite
def prospects_called(draw, name):
    return ContextCandidate(
        draw(units(name)), draw(similarities), draw(term_sets), draw(st.sampled_from(DENSITIES)), draw(flags)
    )


@st.composite
def pools(draw, most=12):
    names = draw(st.lists(st.sampled_from(NAMES), unique=True, max_size=most))
    return [draw(prospects_called(name)) for name in names]


@st.composite
def recipes(draw):
    """Draw any settings that the domains allow."""
    picks = draw(st.integers(1, 4))
    second = draw(st.integers(picks, 6))
    bar = draw(st.sampled_from([0.2, -0.5, 0.0]) | st.floats(-0.99, 1.0))
    projection = ProjectionSettings(
        first=draw(st.integers(second, 9)), second=second, min_similarity=bar, floor=draw(fractions),
        share_recency=draw(weights), share_frequency=draw(weights), share_authority=draw(weights),
        keyword_weight=draw(st.floats(0.0, 50.0)), hop_share=draw(st.floats(0.01, 0.99)), hop_floor=draw(fractions),
    )  # fmt: skip
    temporal = TemporalSettings(
        activation=draw(st.floats(0.01, 0.99)), picks=picks, recovered=draw(st.integers(1, 4)),
        recovery_similarity=draw(st.floats(-1.0, bar, exclude_max=True)), stop=draw(fractions),
        share_relevance=draw(weights), share_anchors=draw(weights), share_coverage=draw(weights),
        anchors_required=draw(st.booleans()), keep_rest=draw(st.booleans()),
    )  # fmt: skip
    return Settings(projection=projection, temporal=temporal, score=ScoreSettings(delta=draw(fractions)))


either_recipe = st.sampled_from([Settings(), Settings.reference()])
settings_drawn = recipes() | either_recipe
# Any graph: rings, links to itself and to units that are not there.
graphs = st.dictionaries(
    st.sampled_from([*NAMES, "gone"]), st.lists(st.sampled_from([*NAMES, "gone"]), max_size=4), max_size=8
)


@st.composite
def questions(draw):
    value = draw(st.sampled_from([0.0, 0.3, 8 / 15, 1.0]) | fractions)
    slots = tuple(WORDS[: draw(st.integers(0, SLOTS))])
    return ProjectionQuery(draw(term_sets), NOW, Indicator(value, ()), slots, draw(st.integers(0, 50)))


@st.composite
def cases(draw):
    """Draw everything that a projection takes; some linked units were found by no strategy."""
    pool = draw(pools())
    known = {one.unit.id for one in pool}
    unseen = draw(st.lists(st.sampled_from(NAMES), unique=True, max_size=3))
    targets = [draw(prospects_called(name)) for name in unseen if name not in known]
    return pool, draw(graphs), draw(questions()), draw(settings_drawn), targets


def run(case):
    pool, links, asked, settings, targets = case
    return project(pool, links, asked, settings, targets=targets)


def ids(scores):
    return [one.unit.id for one in scores]


def rank_key(one):
    return (-one.score, one.unit.id)


def nodes(tree):
    yield tree
    for part in tree.parts:
        yield from nodes(part)


def everything(projection):
    return (*projection.items, *projection.second, *projection.hops, *projection.recovered, *projection.chosen)


# ------------------------------------------------------------------------------------------- laws 5, 9 and 12


@given(cases())
def test_every_part_of_every_score_lies_in_its_bounds(case):
    projection = run(case)
    delta = case[3].score.delta
    for one in everything(projection):
        for node in nodes(one.contributions):
            assert math.isfinite(node.value), node
            assert node.value >= 0.0, node
            if node.name in BOUNDED:
                assert node.value <= 1.0, node
            if node.name == "Q":
                assert 1.0 - delta <= node.value <= 1.0


@given(cases())
def test_every_score_is_recomposed_from_its_tree_also_through_json(case):
    for one in everything(run(case)):
        read = Contribution.from_json(json.loads(json.dumps(one.contributions.to_json())))
        assert one.contributions.compose() == one.score == read.compose()


@given(cases())
def test_the_final_score_is_the_formula_of_the_contract(case):
    _, _, asked, settings, _ = case
    limits = settings.projection
    projection = run(case)
    most = max((one.unit.access_count for one in case[0]), default=0)
    for one in projection.second:
        tree, unit = one.contributions, one.unit
        share_r, share_f, share_a = limits.shares
        frequency = math.log(1 + unit.access_count) / math.log(2 + max(most, asked.max_access))
        mix = share_r * tree.find("r").value + share_f * frequency + share_a * unit.authority
        omega = limits.floor + (1 - limits.floor) * mix
        matched = len(asked.keywords & one.prospect.terms) / max(len(asked.keywords), 1)
        keyword = (1 + limits.keyword_weight * matched) / (1 + limits.keyword_weight)
        decay = unit.lineage.decay_rate if unit.lineage else 0.0
        expected = omega * max(one.prospect.sim, 0.0) * keyword * (1 - settings.score.delta * decay)
        assert math.isclose(one.score, expected, rel_tol=1e-12, abs_tol=1e-15)


@given(cases())
def test_the_projected_score_is_the_collected_form_of_the_contract(case):
    _, _, asked, settings, _ = case
    mu, nu, rho = settings.temporal.shares
    value = asked.indicator.value
    for one in run(case).chosen:
        tree = one.contributions
        parts = [tree.find(name).value for name in ("S_final", "A", "ΔΦ")]
        expected = (1 - value * (1 - mu)) * parts[0] + value * nu * parts[1] + value * rho * parts[2]
        assert math.isclose(one.score, expected, rel_tol=1e-12, abs_tol=1e-15)


# ----------------------------------------------------------------------------------------------------- law 11


@given(cases(), st.randoms())
def test_the_order_of_the_input_is_irrelevant(case, random):
    pool, links, asked, settings, targets = case
    shuffled, others, pairs = list(pool), list(targets), list(links.items())
    for each in (shuffled, others, pairs):
        random.shuffle(each)
    turned = {parent: random.sample(names, len(names)) for parent, names in pairs}
    assert run((shuffled, turned, asked, settings, others)) == run(case)


# ------------------------------------------------------------------------------------------------ the passes


@given(cases())
def test_the_passes_are_nested_bounded_and_ordered(case):
    pool, _, _, settings, _ = case
    limits = settings.projection
    projection = run(case)
    by_sim = sorted(pool, key=lambda one: (-one.sim, one.unit.id))
    assert list(projection.first) == [
        one.unit.id for one in by_sim[: limits.first] if one.sim >= limits.min_similarity
    ]
    assert set(ids(projection.second)) <= set(projection.first)
    assert len(projection.second) == min(limits.second, len(projection.first))
    assert list(projection.second) == sorted(projection.second, key=rank_key)


@given(cases())
def test_whoever_is_not_projected_has_a_fall_and_missed_its_bar(case):
    projection = run(case)
    projected = set(ids(projection.items))
    for one in case[0]:
        assert one.unit.id in projected or projection.falls(one.unit.id)
    assert all(fall.had <= fall.needed for fall in projection.fallen)


@given(cases())
def test_a_unit_is_projected_once(case):
    names = ids(run(case).items)
    assert len(names) == len(set(names))


@given(pools(), term_sets, recipes(), st.integers(0, 20_000), st.integers(1, 500))
def test_widening_only_adds_and_keeps_the_settings_valid(pool, keywords, settings, budget, growth):
    grown = grow_limits(dataclasses.replace(settings.projection, growth=growth), budget)
    wide = discover(pool, keywords, dataclasses.replace(settings, projection=grown), NOW)
    narrow = discover(pool, keywords, settings, NOW)
    assert grown.second - settings.projection.second == grown.first - settings.projection.first == budget // growth
    assert {one.unit.id for one in narrow.first} <= {one.unit.id for one in wide.first}


# --------------------------------------------------------------------------------------------- monotonicity


@given(pools(), questions(), recipes(), prospects_called("twin-a"), similarities)
def test_of_twins_the_more_similar_one_never_ranks_lower(pool, asked, settings, one, other_sim):
    # With no share of relevance, similarity would not matter to the selector at all.
    temporal = dataclasses.replace(settings.temporal, share_relevance=1.0)
    settings = dataclasses.replace(settings, temporal=temporal)
    twin = dataclasses.replace(one, unit=one.unit.evolve(id="twin-b"), sim=other_sim)
    low, high = sorted((one, twin), key=lambda each: each.sim)
    weighing = CandidateWeights(settings, asked.keywords, NOW, 99)
    # Scores that round to the same are ranked by id.
    assume(weighing.final(high).value - weighing.final(low).value > 1e-9)
    names = ids(project([*pool, one, twin], {}, asked, settings).items)
    if low.unit.id in names:
        assert high.unit.id in names[: names.index(low.unit.id)]


@given(fractions, fractions, similarities, recipes())
def test_at_equal_base_higher_confidence_never_ranks_lower(one_rate, other_rate, sim, settings):
    def summary(name, rate):
        lineage = Lineage(("s",), "extractive", 1.0 - rate, rate, 0.9, 0.9, NOW, NOW)
        return ContextCandidate(make_unit(name, kind="summary", lineage=lineage), sim, frozenset(), 0.0)

    sure, unsure = sorted((one_rate, other_rate))
    weighing = CandidateWeights(settings, frozenset(), NOW, 0)
    assert weighing.final(summary("a", sure)).value >= weighing.final(summary("b", unsure)).value
    second = discover([summary("b", unsure), summary("a", sure)], frozenset(), settings, NOW).second
    assert ids(second)[:1] in (["a"], [])


@given(prospects_called("u1"), term_sets, recipes(), st.integers(0, 40), st.floats(0.0, 1e6))
def test_keywords_use_and_authority_never_lower_a_score_and_age_never_raises_it(one, keywords, settings, more, age):
    weighing = CandidateWeights(settings, keywords, NOW, 99)
    score = weighing.final(one).value

    def changed(**fields):
        return weighing.final(dataclasses.replace(one, unit=one.unit.evolve(**fields))).value

    assert weighing.final(dataclasses.replace(one, terms=one.terms | keywords)).value >= score
    assert changed(access_count=one.unit.access_count + more) >= score
    assert changed(authority=1.0) >= score
    if one.unit.kind != "summary":
        assert changed(event_time=one.unit.event_time - (later(seconds=age) - NOW)) <= score


# ------------------------------------------------------------------------------------------------ law 8, hops


@given(cases())
def test_hops_end_after_one_step_whatever_the_graph(case):
    pool, links, _, settings, targets = case
    limits = settings.projection
    projection = run(case)
    finals = {one.unit.id: one.score for one in projection.second}
    known = {one.unit.id for one in (*pool, *targets)}
    expected = {}
    for parent, score in finals.items():
        for target in links.get(parent, ()):
            if target in known and target not in finals:
                expected[target] = max(expected.get(target, 0.0), limits.hop_share * score)
    expected = {target: score for target, score in expected.items() if score >= limits.hop_floor}
    assert {one.unit.id: one.score for one in projection.hops} == expected
    assert list(projection.hops) == sorted(projection.hops, key=rank_key)
    for one in projection.hops:
        parent = one.via.removeprefix("hop from ")
        assert one.unit.id in links[parent]
        assert limits.hop_share * finals[parent] == one.score


@given(cases())
def test_a_hop_does_not_depend_on_the_targets_own_score(case):
    pool, links, asked, settings, targets = case
    discovery = discover(pool, asked.keywords, settings, NOW)
    known = {one.unit.id: one for one in (*targets, *pool)}
    plain = {name: dataclasses.replace(one, sim=0.0, anchor_density=0.0) for name, one in known.items()}
    first, second = (hop(discovery, links, mapping, settings)[0] for mapping in (known, plain))
    assert [(one.unit.id, one.score, one.via) for one in first] == [
        (one.unit.id, one.score, one.via) for one in second
    ]


# --------------------------------------------------------------------------------------- temporal selection


@costly
@given(prospects_called("u1"), pools(), st.integers(0, SLOTS), st.data())
def test_the_gain_never_rises_as_the_choice_grows(one, company, slots, data):
    coverage = SlotCoverage(1.0, slots, TemporalSettings())
    smaller = company[: data.draw(st.integers(0, len(company)))]
    more, less = coverage.gain(one, smaller).value, coverage.gain(one, company).value
    assert 0.0 <= less <= more <= 1.0
    assert coverage.gain(one, [*company, one]).value == 0.0


@st.composite
def scored_pools(draw):
    return [
        ProjectedCandidate(one, "pass 2", Contribution("S_final", draw(fractions | st.sampled_from([0.1, 0.5]))))
        for one in draw(pools(most=7))
    ]


def picked_slowly(pool, value, slots, settings):
    """Return [(id, score)] by going through the formulas of C13 one after the other."""
    mu, nu, rho = settings.shares
    chosen, result = [], []
    while len(result) < settings.picks:
        best = None
        for one in pool:
            if one.unit.id in [name for name, _ in result]:
                continue
            new = 0
            for slot in range(slots):
                covers = slot < len(one.prospect.slots) and one.prospect.slots[slot]
                seen = any(slot < len(other.slots) and other.slots[slot] for other in chosen)
                new += covers and not seen
            cov = min(mu * one.score + nu * one.prospect.anchor_density + rho * (new / max(slots, 1)), 1.0)
            score = min((1 - value) * one.score + value * cov, 1.0)
            if best is None or score > best[1] or (score == best[1] and one.unit.id < best[0].unit.id):
                best = (one, score)
        if best is None or best[1] < settings.stop:
            break
        chosen.append(best[0].prospect)
        result.append((best[0].unit.id, best[1]))
    return result


@given(scored_pools(), fractions, st.integers(0, SLOTS), recipes())
def test_the_selector_equals_a_slow_obvious_one(pool, value, slots, settings):
    picks, fallen = pick_covering(pool, SlotCoverage(value, slots, settings.temporal))
    assert [(one.unit.id, one.score) for one in picks] == picked_slowly(pool, value, slots, settings.temporal)
    assert sorted([*ids(picks), *(fall.unit_id for fall in fallen)]) == sorted(ids(pool))


@given(cases())
def test_the_choice_is_small_comes_from_the_pool_and_stops_at_its_bar(case):
    _, _, asked, settings, _ = case
    projection = run(case)
    assert projection.active == (asked.indicator.value >= settings.temporal.activation)
    assert len(projection.chosen) <= settings.temporal.picks
    assert set(ids(projection.chosen)) <= set(ids(projection.second)) | set(ids(projection.recovered))
    assert list(projection.chosen) == sorted(projection.chosen, key=rank_key)
    coverage = SlotCoverage(asked.indicator.value, len(asked.slots), settings.temporal)
    picks, _ = pick_covering([*projection.second, *projection.recovered], coverage)
    if projection.active:
        assert set(ids(picks)) == set(ids(projection.chosen))
        assert all(one.score >= settings.temporal.stop for one in picks)
    else:
        assert projection.chosen == projection.recovered == ()


@given(cases())
def test_recovery_lies_outside_pass_2_and_takes_the_densest(case):
    pool, _, _, settings, _ = case
    limits = settings.temporal
    projection = run(case)
    if not projection.active:
        return
    outside = [
        one
        for one in pool
        if one.unit.id not in ids(projection.second)
        and one.sim >= limits.recovery_similarity
        and (one.anchor_density > 0 or not limits.anchors_required)
    ]
    outside.sort(key=lambda one: (-one.anchor_density, -one.sim, one.unit.id))
    assert ids(projection.recovered) == [one.unit.id for one in outside[: limits.recovered]]


@given(cases())
def test_the_injection_order_is_that_of_the_recipe(case):
    settings = case[3]
    projection = run(case)
    chosen = set(ids(projection.chosen))
    hops = [one for one in projection.hops if one.unit.id not in chosen]
    rest = [one for one in projection.second if one.unit.id not in chosen]
    if not projection.active:
        expected = sorted([*projection.second, *projection.hops], key=rank_key)
    elif settings.temporal.keep_rest:
        expected = [*sorted(projection.chosen, key=rank_key), *sorted([*rest, *hops], key=rank_key)]
    else:
        expected = sorted([*projection.chosen, *hops], key=rank_key)
    assert list(projection.items) == expected


@given(pools(), term_sets, recipes())
def test_a_question_that_is_not_temporal_at_all_is_never_selected_for(pool, keywords, settings):
    selection = select(discover(pool, keywords, settings, NOW), pool, 0.0, 2, settings.temporal)
    assert (selection.active, selection.chosen, selection.fallen) == (False, (), ())


@given(term_sets, term_sets, term_sets)
def test_more_words_never_uncover_a_slot(slot, unit, more):
    assert slot_covered(slot, unit | more) >= slot_covered(slot, unit)
    assert slot_covered(slot, slot) is bool(slot)


# -------------------------------------------------------------------------------------------- question texts

PIECES = [
    "how many days", "before", "after", "the last", "order", "2026-03-29", "two weeks", "ago", "Ana", "Cape Wrath",
    "“", "”", '"', "'", ",", "?", "and", "北京", "\n", "I've", "of", "",
]  # fmt: skip
texts = st.lists(st.sampled_from(PIECES), max_size=14).map(" ".join) | st.text(max_size=60)


@given(texts)
def test_the_indicator_of_any_text_lies_in_zero_to_one_and_more_patterns_never_lower_it(text):
    narrow, wide = temporal_indicator(text, wide=False), temporal_indicator(text, wide=True)
    assert 0.0 <= narrow.value <= wide.value <= 1.0
    assert wide.groups[: len(narrow.groups)] == narrow.groups
    assert (narrow.value == 0.0) == (narrow.groups == ())
    assert temporal_indicator(f"{text}\nhow long", wide=True).value >= wide.value


@given(texts)
def test_any_text_has_at_most_four_distinct_slots_and_none_is_empty(text):
    slots = event_slots(text)
    assert len(slots) == len(set(slots)) <= 4
    assert all(slot == " ".join(slot.split()) != "" for slot in slots)
