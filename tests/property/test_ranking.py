"""Fusion, cuts, explanation and order (C6, C7, C9; laws 5, 9, 11 and 12)."""

import dataclasses
import json
import math
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import NOW, costly, known_of, later, make_claims, make_unit, opened
from holdfast import Settings
from holdfast.errors import InputError
from holdfast.ranking import score as fusing
from holdfast.ranking.score import Fusion, cut, explain_fused, explain_rel
from holdfast.settings import FusionSettings, GateSettings, ProfileSettings
from holdfast.types import Contribution, RetrievalResult, StrategyExplanation, combine

WEIGHTS = {"lexical": 1.0, "hdc-vsa": 0.7, "thinkingdb-symbolic": 0.85, "dense": 1.0}
BONUS = 0.15
fractions = st.floats(0.0, 1.0)


def result(strategy_id, claims):
    """Build what a strategy returns, best first; `claims` is {id: raw score}.

    Only the lexical strategy is measured against the best of the query; the others have a scale of their own (C6).
    """
    scale = max(claims.values(), default=1.0) if strategy_id == "lexical" else 1.0
    order = sorted(claims, key=lambda key: (-claims[key], key))
    return RetrievalResult(strategy_id, make_claims(order, claims)[0], 0.0, scale=scale)


def ranked_by(primary):
    """A profile whose primary strategies these are."""
    return ProfileSettings(strategies=tuple(primary))


def pool_of(results, fusion, units=None):
    """Return the pool of what strategies returned, copies merged, best first."""
    ids = tuple(dict.fromkeys(key for one in results for key in one.claims.ids))
    raws = {one.strategy_id: dict(zip(one.claims.ids, one.claims.raw.tolist(), strict=True)) for one in results}
    made = {name: make_claims(ids, raw) for name, raw in raws.items()}
    known = known_of([(units or {}).get(key) or unit_called(key) for key in ids])
    claims, claimed = ({name: pair[part] for name, pair in made.items()} for part in (0, 1))
    return fusing.fuse(ids, claims, claimed, known, fusion).merge_copies().sorted()


def fused_pool(results, primary, units=None):
    return pool_of(results, Fusion.of(results, ranked_by(primary), FusionSettings()), units)


def fuse(results, primary, units=None):
    return fused_pool(results, primary, units).candidates()


def unit_called(key):
    return make_unit(key, f"what {key} says")


def fused_by_hand(results):
    """Return {id: fused}, straight from C6."""
    found = {}
    for one in results:
        for claim in one.candidates:
            found.setdefault(claim.unit_id, []).append(WEIGHTS.get(one.strategy_id, 1.0) * claim.normalized_score)
    return {key: sum(parts) + BONUS * (len(parts) - 1) for key, parts in found.items()}


# ------------------------------------------------------------------------------------------------- full marks


@pytest.mark.parametrize(
    ("primary", "full"),
    [
        (["lexical"], 1.0),
        (["lexical", "hdc-vsa"], 1.85),
        (["lexical", "dense"], 2.15),
        (["lexical", "thinkingdb-symbolic"], 2.0),
        (["lexical", "hdc-vsa", "thinkingdb-symbolic", "dense"], 4.0),
        (["lexical", "a-third-partys"], 2.15),
    ],
)
def test_full_marks_are_the_primary_weights_and_a_bonus_for_each_further_strategy(primary, full):
    assert Fusion.of([], ranked_by(primary), FusionSettings()).full_marks == pytest.approx(full, rel=1e-15)


def test_a_unit_that_every_primary_strategy_puts_first_has_relevance_one():
    results = [result("lexical", {"a": 9.0, "b": 3.0}), result("dense", {"a": 1.0})]
    best = fuse(results, ["lexical", "dense"])[0]
    assert best.unit_id == "a"
    assert best.fused == pytest.approx(2.15)
    assert best.rel == pytest.approx(1.0)


def test_lexical_scores_are_measured_against_the_best_of_the_query():
    by_id = {c.unit_id: c.fused for c in fuse([result("lexical", {"a": 8.0, "b": 2.0})], ["lexical"])}
    assert by_id == {"a": 1.0, "b": 0.25}


@pytest.mark.parametrize(
    ("strategy_id", "raw", "fused"),
    [
        ("hdc-vsa", 0.4, 0.28),
        ("thinkingdb-symbolic", 0.6, 0.51),
        ("thinkingdb-symbolic", 1.7, 0.85),
        ("dense", 0.5, 0.5),
        ("a-third-partys", 0.5, 0.5),
    ],
)
def test_other_strategies_keep_their_own_scale_and_are_not_stretched_to_their_best(strategy_id, raw, fused):
    assert fuse([result(strategy_id, {"a": raw})], [strategy_id])[0].fused == pytest.approx(fused)


def test_a_strategy_whose_best_score_is_zero_divides_nothing_by_zero():
    found = fuse([result("dense", {"a": 0.0})], ["lexical", "dense"])
    assert [(c.unit_id, c.fused, c.rel) for c in found] == [("a", 0.0, 0.0)]


def test_an_escalated_strategy_can_only_add_and_relevance_stops_at_one():
    lexical = result("lexical", {"a": 4.0, "b": 2.0})
    alone = {c.unit_id: c for c in fuse([lexical], ["lexical"])}
    escalated = {c.unit_id: c for c in fuse([lexical, result("hdc-vsa", {"a": 0.3})], ["lexical"])}
    assert escalated["a"].fused > alone["a"].fused
    assert escalated["a"].rel == 1.0
    assert escalated["b"].rel == alone["b"].rel == 0.5


def test_nothing_found_fuses_to_nothing():
    assert fuse([], ["lexical"]) == ()
    assert fuse([result("lexical", {}), result("dense", {})], ["lexical", "dense"]) == ()


ids = st.sampled_from([f"u{i}" for i in range(6)])
lexical_results = st.dictionaries(ids, st.floats(0.01, 50.0), max_size=6).map(lambda c: result("lexical", c))


@st.composite
def several_results(draw):
    names = draw(st.lists(st.sampled_from([*WEIGHTS, "a-third-partys"]), min_size=1, max_size=4, unique=True))
    scales = {"lexical": st.floats(0.01, 50.0), "thinkingdb-symbolic": st.floats(0.01, 3.0)}
    return [result(n, draw(st.dictionaries(ids, scales.get(n, st.floats(0.01, 1.0)), max_size=6))) for n in names]


def assert_fused_by_the_formula(results, primary):
    candidates = fuse(results, primary)
    expected = fused_by_hand(results)
    full = sum(WEIGHTS.get(name, 1.0) for name in primary) + BONUS * (len(primary) - 1)
    assert {c.unit_id: c.fused for c in candidates} == pytest.approx(expected, rel=1e-12)
    for c in candidates:
        assert c.rel == pytest.approx(min(1.0, expected[c.unit_id] / full), rel=1e-12)
        assert 0.0 <= c.rel <= 1.0
    assert [c.unit_id for c in candidates] == [
        c.unit_id for c in sorted(candidates, key=lambda c: (-c.fused, c.unit_id))
    ]


@given(lexical_results)
def test_one_strategy_is_fused_by_the_formula(found):
    assert_fused_by_the_formula([found], ["lexical"])


@given(several_results(), st.integers(1, 4))
def test_several_strategies_are_fused_by_the_formula(results, primaries):
    assert_fused_by_the_formula(results, [one.strategy_id for one in results[:primaries]])


@given(several_results())
def test_fused_scores_stay_within_zero_and_full_marks_when_all_are_primary(results):
    primary = [one.strategy_id for one in results]
    full = Fusion.of([], ranked_by(primary), FusionSettings()).full_marks
    assert all(0.0 <= c.fused <= full + 1e-12 for c in fuse(results, primary))


@given(several_results())
def test_fused_trees_recompose_bit_for_bit(results):
    fusion = Fusion.of(results, ranked_by(["lexical", "dense"]), FusionSettings())
    pool = pool_of(results, fusion)
    for row, c in enumerate(pool.candidates()):
        accounts = {name: StrategyExplanation(Contribution("raw", raw), (name,)) for name, raw in c.claims.items()}
        for explain, value in ((explain_fused, c.fused), (explain_rel, c.rel)):
            tree = explain(pool, row, accounts, fusion)
            assert_exact(tree)
            assert tree.value.hex() == value.hex()


# ------------------------------------------------------------------------------------------------- the copies


def test_copies_of_the_same_words_merge_into_the_best_and_keep_their_ids():
    units = {key: make_unit(key, "the boat is blue") for key in "abc"} | {"d": make_unit("d", "the boat is red")}
    found = fuse([result("lexical", {"a": 1.0, "b": 4.0, "c": 4.0, "d": 2.0})], ["lexical"], units)
    assert [(c.unit_id, c.merged_ids) for c in found] == [("b", ("c", "a")), ("d", ())]


@pytest.mark.parametrize(
    "difference",
    [{"event_time": later(seconds=1)}, {"author": "assistant"}, {"speaker": "Rosa"}, {"kind": "knowledge"}],
)
def test_the_same_words_at_another_time_or_by_another_one_are_no_copy(difference):
    units = {"a": make_unit("a", "yes"), "b": make_unit("b", "yes", **difference)}
    assert len(fuse([result("lexical", {"a": 1.0, "b": 1.0})], ["lexical"], units)) == 2


def test_a_copy_takes_no_place_among_the_hits():
    with opened() as memory:
        for session in ("s1", "s2", "s3"):
            memory.remember("the boat is blue", user="ana", session=session, at=NOW)
        memory.remember("the boat has a sail", user="ana", session="s1", at=NOW)
        hits = memory.search("boat", user="ana", limit=2)
        assert [len(hit.merged_ids) for hit in hits] in ([2, 0], [0, 2])
        assert len({hit.unit.id for hit in hits} | {key for hit in hits for key in hit.merged_ids}) == 4


# ---------------------------------------------------------------------------------------------------- the cuts


def kept_and_dropped(pool, profile):
    kept, cuts = cut(pool, profile)
    return kept.candidates(), [one for rows in cuts for one in rows.dropped()]


def pool_with(*fused):
    return fused_pool([result("lexical", {f"u{i}": value for i, value in enumerate(fused)})], ["lexical"])


def test_candidates_below_the_minimum_or_too_far_below_the_best_are_dropped_and_say_why():
    profile = ProfileSettings(min_score=0.3, gap=0.5)
    kept, dropped = kept_and_dropped(pool_with(1.0, 0.5, 0.49, 0.3, 0.29), profile)
    assert [c.unit_id for c in kept] == ["u0", "u1"]
    assert sorted((d.unit_id, d.cut, d.needed, d.had) for d in dropped) == [
        ("u2", "gap", 0.5, 0.49),
        ("u3", "gap", 0.5, 0.3),
        ("u4", "min_score", 0.3, 0.29),
    ]


def test_a_candidate_exactly_at_a_bar_is_kept():
    kept, dropped = kept_and_dropped(pool_with(1.0, 0.25), ProfileSettings(min_score=0.25, gap=0.25))
    assert (len(kept), len(dropped)) == (2, 0)


def test_nothing_is_cut_from_nothing():
    assert kept_and_dropped(pool_with(), ProfileSettings(min_score=0.3, gap=0.5)) == ((), [])


@given(lexical_results, fractions, fractions)
def test_every_candidate_is_kept_or_dropped_and_the_order_stays(found, min_score, gap):
    pool = fused_pool([found], ["lexical"])
    candidates = pool.candidates()
    kept, dropped = kept_and_dropped(pool, ProfileSettings(min_score=min_score, gap=gap))
    assert sorted(c.unit_id for c in candidates) == sorted([c.unit_id for c in kept] + [d.unit_id for d in dropped])
    assert list(kept) == [c for c in candidates if c in kept]
    assert all(c.fused >= max(min_score, candidates[0].fused * gap) for c in kept)
    assert all(d.had < d.needed for d in dropped)


# ------------------------------------------------------------------------------------------ whole searches

SUBJECTS = "boat kiln hedge violin rent".split()
THINGS = "blue broken cheap old sold boat kiln".split()
QUESTIONS = [
    "boat",
    "Why is the kiln broken?",
    "Describe the old violin",
    "which hedge is cheap, and the rent?",
    "the of and",
    "zeppelin",
    "!!!",
]
PROFILES = ["fast", "hybrid"]

messages = st.lists(
    st.builds(
        lambda role, subject, things, hours: {
            "role": role,
            "content": f"the {subject} is {' '.join(things)}",
            "at": later(hours=-hours).isoformat(),
        },
        st.sampled_from(["user", "assistant"]),
        st.sampled_from(SUBJECTS),
        st.lists(st.sampled_from(THINGS), min_size=1, max_size=4),
        st.integers(0, 400),
    ),
    max_size=14,
).map(lambda said: [{**message, "id": f"m{i}"} for i, message in enumerate(said)])

knowledge = st.lists(
    st.builds(
        dict,
        role=st.sampled_from(["Description", "Explanation", "Definition"]),
        topic=st.sampled_from(["", *SUBJECTS]),
        claim=st.sampled_from(SUBJECTS).map(lambda subject: f"a {subject} needs care"),
        condition=st.sampled_from(["", "when it is old"]),
    ),
    max_size=4,
).map(lambda units: [{**unit, "id": f"k{i}"} for i, unit in enumerate(units)])


def standing(hits):
    """Return what law 11 keeps equal: ids, scores and order."""
    return [(hit.unit.id, hit.score.hex(), hit.rel.hex(), hit.rank, hit.merged_ids) for hit in hits]


def filled(memory, said, units, sessions=("s1",)):
    for i, message in enumerate(said):
        memory.remember(message, user="ana", session=sessions[i % len(sessions)])
    if units:
        memory.remember(units, user="ana", scope="global")


def assert_exact(tree):
    """Every inner node is the combination of its parts, and survives JSON, bit for bit."""
    assert math.isfinite(tree.value)
    assert tree.compose() == tree.value
    again = Contribution.from_json(json.loads(json.dumps(tree.to_json())))
    assert again.compose().hex() == tree.value.hex()

    def walk(node):
        if node.op == "given":
            assert node.parts == ()
        else:
            assert node.value.hex() == combine(node.op, [part.value for part in node.parts]).hex()
        for part in node.parts:
            walk(part)

    walk(tree)


@given(
    messages, knowledge, st.sampled_from(QUESTIONS), st.sampled_from(PROFILES), st.sampled_from([None, "s1", "s9"])
)
def test_every_score_recomposes_from_its_explanation_bit_for_bit(said, units, question, profile, session):
    with opened() as memory:
        filled(memory, said, units, ("s1", "s2"))
        hits = memory.search(question, user="ana", profile=profile, session=session, explain=True)
        plain = memory.search(question, user="ana", profile=profile, session=session)
        assert standing(hits) == standing(plain)
        assert all(hit.contributions is None for hit in plain)
        for hit in hits:
            assert_exact(hit.contributions)
            assert hit.contributions.value.hex() == hit.score.hex()


@given(messages, knowledge, st.sampled_from(QUESTIONS), st.sampled_from(PROFILES), st.sampled_from([None, "s1"]))
def test_scores_lie_in_their_ranges_and_the_order_is_total(said, units, question, profile, session):
    with opened() as memory:
        filled(memory, said, units)
        found = memory.search(question, user="ana", profile=profile, session=session, reference_time=later(days=3))
    assert [hit.rank for hit in found] == [*range(1, len(found) + 1)]
    assert list(found) == sorted(found, key=lambda hit: (-hit.score, hit.unit.id))
    assert all(0.0 <= hit.rel <= 1.0 and 0.0 <= hit.score <= 1.0 for hit in found)
    for claim in found.trace.results[0].candidates:
        assert 0.0 < claim.raw_score < math.inf
        assert 0.0 < claim.normalized_score <= 1.0
    # Full marks of the primary strategy, and what an escalated one may add to them (C6).
    assert all(0.0 <= c.fused <= 1.0 + 0.7 + 0.15 for c in found.trace.candidates)


@costly
@given(messages, st.sampled_from(QUESTIONS), st.sampled_from(PROFILES), st.data())
def test_order_of_arrival_and_size_of_batches_change_no_id_score_or_rank(said, question, profile, data):
    # Of turns that share a moment, the one that came first is the earlier turn (C1): no two share one here. And what
    # came first was new to the gate (C17), so that it does not judge here.
    said = [{**one, "at": later(minutes=-place).isoformat()} for place, one in enumerate(said)]
    settings = dataclasses.replace(Settings(), gate=GateSettings(policy="off"))
    shuffled = data.draw(st.permutations(said))
    edges = sorted(data.draw(st.sets(st.integers(1, max(1, len(said) - 1)), max_size=3)))
    batches = [shuffled[i:j] for i, j in zip([0, *edges], [*edges, None], strict=True)]
    answers = []
    for calls in ([said] if said else [], [[message] for message in said], [batch for batch in batches if batch]):
        with opened(settings) as memory:
            for call in calls:
                memory.remember(call, user="ana", session="s1")
                memory.search(question, user="ana")  # a warm index answers like a cold one
            answers.append(standing(memory.search(question, user="ana", session="s1", profile=profile)))
    assert answers[0] == answers[1] == answers[2]


@given(messages, st.sampled_from(QUESTIONS), st.sampled_from(PROFILES), st.integers(1, 25))
def test_a_limit_only_cuts_the_list(said, question, profile, limit):
    with opened() as memory:
        filled(memory, said, [])
        everything = memory.search(question, user="ana", profile=profile)
        some = memory.search(question, user="ana", profile=profile, limit=limit)
        shared = min(limit, len(everything))
        assert standing(some)[:shared] == standing(everything)[:shared]
        assert len(some) <= limit
        assert len(everything) <= {"fast": 3, "hybrid": 20}[profile]


@pytest.mark.parametrize(("profile", "most"), [("fast", 3), ("hybrid", 20)])
def test_a_named_limit_wins_over_the_profiles_maximum_both_ways(profile, most):
    with opened() as memory:
        memory.remember([f"boat number {i}" for i in range(30)], user="ana")
        found = [memory.search("boat", user="ana", profile=profile, limit=n) for n in (None, 1, most, 10, 25)]
        assert [len(result) for result in found] == [most, 1, most, 10, 25]
        assert all(drop.cut == "max" for result in found for drop in result.trace.dropped)


@costly
@given(messages, st.sampled_from(QUESTIONS))
def test_the_same_question_twice_has_the_same_answer_in_a_fresh_store_too(said, question):
    answers = []
    for _ in range(2):
        with opened() as memory:
            filled(memory, said, [])
            answers += [standing(memory.search(question, user="ana")) for _ in range(2)]
    assert all(answer == answers[0] for answer in answers)


def test_ties_are_broken_by_id():
    with opened() as memory:
        for key in ("c", "a", "b"):
            memory.remember("an old boat", id=key, user="ana", author={"a": "user", "b": "tool", "c": "system"}[key])
        for profile in PROFILES:
            hits = memory.search("boat", user="ana", profile=profile)
            assert [hit.unit.id for hit in hits] == ["a", "b", "c"]
            assert len({hit.score for hit in hits}) == 1


def test_ties_are_broken_by_id_when_relevance_differs_and_counts_for_nothing():
    settings = Settings.load(
        {"score.alpha": 0.0, "hybrid.min_score": 0.0, "hybrid.gap": 0.0, "hybrid.escalate_below": 0}, environ={}
    )
    with opened(settings) as memory:
        for key, text in (("c", "boat"), ("a", "a boat of oak and elm"), ("b", "boat, boat")):
            memory.remember(text, id=key, user="ana")
        hits = memory.search("boat", user="ana")
        assert len({hit.score for hit in hits}) == 1
        assert len({hit.rel for hit in hits}) == 3
        assert [hit.unit.id for hit in hits] == ["a", "b", "c"]


def test_ties_between_strategies_are_broken_by_id():
    results = [result("lexical", {"c": 2.0, "b": 2.0}), result("dense", {"a": 1.0})]
    assert [c.unit_id for c in fuse(results, ["lexical", "dense"])] == ["a", "b", "c"]


# ------------------------------------------------------------------------------------ nothing to find (law 9)


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("question", ["boat", "the of and", "?!", "🎉", "Describe", "京都"])
def test_an_empty_store_answers_every_question_with_nothing(question, profile):
    with opened() as memory:
        assert list(memory.search(question, user="ana", profile=profile, explain=True)) == []


@pytest.mark.parametrize("question", ["the of and", "?!", "🎉"])
def test_a_question_without_content_words_finds_nothing_and_why_can_still_be_asked(question):
    with opened() as memory:
        [written] = memory.remember("an old boat", user="ana")
        assert list(memory.search(question, user="ana", explain=True)) == []
        why = memory.why(question, written.id, user="ana")
        assert not why.returned
        assert why.standings[0].score == 0.0


@pytest.mark.parametrize("question", ["", "  ", "\n"])
def test_a_blank_question_is_refused(question):
    with opened() as memory, pytest.raises(InputError, match="blank"):
        memory.search(question, user="ana")


def test_units_without_a_single_term_are_kept_and_break_nothing():
    with opened() as memory:
        memory.remember(["the of and", "…", "!!"], user="ana", session="s1")
        assert len(memory.list(user="ana")) == 3
        assert list(memory.search("boat", user="ana")) == []
        memory.remember("a boat", user="ana", session="s1")
        hit, *beside = memory.search("boat", user="ana", explain=True)
        assert hit.unit.text == "a boat"
        for each in (hit, *beside):  # a turn without a word may stand beside one that has them
            assert_exact(each.contributions)


def test_weights_of_zero_find_nothing_and_divide_nothing_by_zero():
    names = "topic claim procedure utility_acts utility_note condition role".split()
    zeros = {f"lexical.weights.{name}": 0.0 for name in names}
    settings = Settings.load({**zeros, "hybrid.escalate_below": 0}, environ={})
    with opened(settings) as memory:
        memory.remember("a boat", user="ana")
        assert list(memory.search("boat", user="ana", explain=True)) == []


@given(st.sampled_from([0.0, 1.2, 50.0]), st.sampled_from([0.0, 1.0]), st.sampled_from(QUESTIONS), messages)
def test_extreme_constants_give_finite_scores(k1, b, question, said):
    settings = Settings.load(
        {"lexical.k1": k1, "lexical.b": b, "hybrid.min_score": 0.0, "hybrid.gap": 0.0}, environ={}
    )
    with opened(settings) as memory:
        filled(memory, said, [])
        for hit in memory.search(question, user="ana", explain=True):
            assert_exact(hit.contributions)
            assert 0.0 <= hit.score <= 1.0


# --------------------------------------------------------------------------------------------------------- why


@costly
@given(messages, st.sampled_from(QUESTIONS[:4]), st.sampled_from(PROFILES), st.integers(1, 5))
def test_why_agrees_with_search_and_whatever_it_explains_recomposes(said, question, profile, limit):
    with opened() as memory:
        filled(memory, said, [])
        hits = memory.search(question, user="ana", session="s1", profile=profile, limit=limit)
        returned = {key: hit for hit in hits for key in (hit.unit.id, *hit.merged_ids)}
        for unit in memory.list(user="ana", limit=None):
            why = memory.why(question, unit.id, user="ana", session="s1", profile=profile, limit=limit)
            assert why.unit == unit
            assert why.returned == (unit.id in returned)
            if why.returned:
                assert (why.rank, why.score) == (returned[unit.id].rank, returned[unit.id].score)
                assert why.contributions is not None
            if why.distance_to_cut is not None:
                assert why.distance_to_cut >= 0.0
            if why.contributions is not None:
                assert_exact(why.contributions)
                assert why.contributions.value.hex() == why.score.hex()


def test_result_values_are_frozen():
    with opened() as memory:
        memory.remember("a boat", user="ana")
        [hit] = memory.search("boat", user="ana")
        for value, name in ((hit, "score"), (hit.unit, "text")):
            with pytest.raises(dataclasses.FrozenInstanceError):
                setattr(value, name, "x")


@pytest.mark.parametrize(
    ("question", "first"),
    [
        ("2019-06-22", "wedding"),
        ("What happened in March 2021?", "moved"),
        ("what did we do in 2021?", "moved"),
        ("What did I say yesterday?", "boat"),
    ],
)
def test_a_question_about_a_date_alone_finds_what_names_it_and_what_was_said_then(question, first):
    with opened() as memory:
        memory.remember("Our wedding was on 2019-06-22 in Porto.", user="ana")
        memory.remember("In March 2021 we moved to Faro.", user="ana")
        memory.remember("I said yesterday that it rains.", user="ana", at=NOW - timedelta(days=300))
        memory.remember("The boat leaks.", user="ana", at=NOW - timedelta(days=1))
        found = [hit.unit.text for hit in memory.search(question, user="ana", reference_time=NOW)]
        assert first in found[0]
        assert "rains" not in " ".join(found)
