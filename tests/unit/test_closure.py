"""Symbolic closure (C8): the worked numbers, the hub, the bounds, and what a proof looks like."""

import itertools
import math

import pytest

from holdfast.kernels.closure import (
    FURTHER_RULES,
    RULES,
    Limits,
    Pattern,
    Rule,
    derive_closure,
    fact_text,
    source_text,
)
from holdfast.kernels.triples import FactIndex, QueryTerms, SearchLimits, explore

STOP_WORDS = {"why", "is", "for", "the", "of", "what", "a", "from"}
MANY = 10_000


def tokens(text):
    return [word for word in text.lower().replace("_", " ").split() if word not in STOP_WORDS]


def index(*facts, confidence=0.9):
    found = FactIndex(tokens)
    for number, (subject, relation, other, *sure) in enumerate(facts):
        found.add(f"u{number}", (subject, relation, other), *(sure or [confidence]))
    return found


def ask(facts, question, rules=RULES, expired=lambda: False, **limits):
    wanted = QueryTerms(frozenset(tokens(question)), question.lower(), tokens)
    return derive_closure(facts, wanted, rules, Limits(**limits), expired)


def scores(closure):
    """Return each source's best score, as a strategy would."""
    best = {}
    for standing in closure.standings:
        for fact in standing.proof.base():
            for source in fact.sources:
                best[source] = max(best.get(source, 0.0), standing.score)
    return best


def raws(closure):
    return {" ".join(proof.key): proof.raw for proof in closure.derived}


# The shape of the reference system's own example, in other words: two ways from a tool to a goal.
WORKSHOP = (
    ("bakery", "uses", "oven"),
    ("oven", "provides", "heat"),
    ("heat", "relevant_for", "safe bread"),
    ("bakery", "depends_on", "oven"),
    ("oven", "depends_on", "gas"),
    ("gas", "provides", "flame"),
    ("flame", "relevant_for", "safe bread"),
)


def test_the_worked_example_gives_the_reference_systems_numbers():
    closure = ask(index(*WORKSHOP), "why bakery is relevant for safe bread")
    assert [" ".join(seed.key) for seed in closure.seeds] == [
        "flame relevant_for safe bread",
        "heat relevant_for safe bread",
        "bakery depends_on oven",
        "bakery uses oven",
    ]
    assert raws(closure) == pytest.approx(
        {
            "bakery has_capability heat": 0.7695,
            "gas relevant_for safe bread": 0.7128,
            "oven relevant_for safe bread": 0.7128,
            "bakery depends_on gas": 0.7452,
            "bakery relevant_for safe bread": 0.623295,
        }
    )
    bridge = next(p for p in closure.derived if p.key == ("bakery", "relevant_for", "safe bread"))
    assert bridge.rules() == ("tool_to_capability", "capability_to_relevance")
    assert bridge.steps == 5
    assert [fact.sources for fact in bridge.base()] == [("u0",), ("u1",), ("u2",)]
    tool, chain, goal = 0.55623857, 0.53867314, 0.51525257
    assert scores(closure) == pytest.approx(
        {"u0": tool, "u1": tool, "u3": chain, "u4": chain, "u2": goal, "u5": goal, "u6": goal}, abs=1e-8
    )
    assert not closure.bounded
    assert not closure.exhausted


def test_a_question_that_names_one_thing_gets_all_that_follows_around_it():
    closure = ask(index(*WORKSHOP), "gas")
    assert [" ".join(seed.key) for seed in closure.seeds] == ["gas provides flame", "oven depends_on gas"]
    expected = {"u3": 0.53867314, "u4": 0.53867314, "u5": 0.51525257, "u6": 0.51525257}
    expected |= {"u0": 0.43971429, "u1": 0.43971429, "u2": 0.40731429}
    assert scores(closure) == pytest.approx(expected, abs=1e-8)


def test_an_unrelated_question_finds_nothing():
    closure = ask(index(*WORKSHOP), "unrelated")
    assert (closure.seeds, closure.derived, closure.standings) == ((), (), ())
    assert ask(FactIndex(tokens), "bakery").standings == ()


def test_seeds_stand_for_themselves_when_nothing_follows_from_them():
    closure = ask(index(("mira", "likes", "jazz"), ("jazz", "played_in", "club")), "mira")
    [standing] = closure.standings
    assert standing.proof.rule is None
    # one step, a word of the question, a seed
    assert standing.score == pytest.approx(0.9 / 1.25 * 1.15 * 1.10)
    assert standing.score == 0.9 * (1 / 1.25) * 1.15 * 1.10


def test_a_proof_below_the_least_score_is_not_shown():
    weak = index(("a1", "uses", "b1", 0.4), ("b1", "provides", "c1", 0.4))
    assert [s.proof.key[1] for s in ask(weak, "a1").standings] == ["uses"]
    assert [s.proof.key[1] for s in ask(weak, "a1", min_score=0.05).standings] == ["has_capability"]


# --------------------------------------------------------------------------------------------------- hub

BRIDGE = (
    ("harbour", "uses", "crane", 0.8),
    ("crane", "provides", "lift", 0.8),
    ("lift", "relevant_for", "trade", 0.8),
)
HUBS = {
    "the start as subject": lambda i: ("harbour", "uses", f"x{i}", 0.95),
    "the start, another relation": lambda i: ("harbour", "mentions", f"x{i}", 0.95),
    "the start as object": lambda i: (f"x{i}", "depends_on", "harbour", 0.95),
    "the first stop as subject": lambda i: ("crane", "provides", f"x{i}", 0.95),
    "the first stop as object": lambda i: (f"x{i}", "uses", "crane", 0.95),
    "the second stop as subject": lambda i: ("lift", "relevant_for", f"x{i}", 0.95),
    "the second stop as object": lambda i: (f"x{i}", "provides", "lift", 0.95),
    "the goal as object": lambda i: (f"x{i}", "relevant_for", "trade", 0.95),
    "the goal as subject": lambda i: ("trade", "causes", f"x{i}", 0.95),
}


class Counting:
    """Facts that count what they hand out."""

    def __init__(self, facts):
        self.facts = facts
        self.handed_out = 0

    def symbols_with(self, wanted, limit):
        return self.facts.symbols_with(wanted, limit)

    def about(self, symbols, limit):
        return self._count(self.facts.about(symbols, limit))

    def between(self, left, right):
        return self._count(self.facts.between(left, right))

    def _count(self, found):
        self.handed_out += len(found)
        return found


FURTHER = ("leaves", "dead ends", "chains of their own")


@pytest.mark.parametrize(
    ("hub", "further"),
    [
        pytest.param(hub, further, marks=() if (place + other) % len(FURTHER) == 0 else pytest.mark.slow)
        for place, hub in enumerate(HUBS)
        for other, further in enumerate(FURTHER)
    ],
)
def test_the_bridge_is_found_past_ten_thousand_facts_on_one_symbol(hub, further):
    busy = [HUBS[hub](i) for i in range(MANY)]
    if further == "dead ends":
        busy += [(f"x{i}", "mentions", f"y{i}", 0.95) for i in range(MANY)]
    if further == "chains of their own":
        busy += [(f"x{i}", "provides", f"y{i}", 0.95) for i in range(MANY)]
    facts = Counting(index(*busy, *BRIDGE))
    checks = itertools.count()
    closure = ask(facts, "is harbour relevant for trade", expired=lambda: next(checks) < 0)
    shown = {standing.proof.key: standing for standing in closure.standings}
    assert ("harbour", "relevant_for", "trade") in shown
    stated = {fact.key for fact in shown["harbour", "relevant_for", "trade"].proof.base()}
    assert stated == {fact[:3] for fact in BRIDGE}
    # Work follows the bounds, not the hub.
    assert closure.bounded
    assert closure.facts <= SearchLimits().facts
    assert facts.handed_out <= 2 * SearchLimits().facts
    assert next(checks) <= 4 * SearchLimits().facts
    # Whoever leads off the way between the two does not crowd the result.
    assert all(stated & {fact.key for fact in standing.proof.base()} for standing in closure.standings)
    assert len(scores(closure)) <= 8


def test_two_busy_ends_still_meet_when_others_lead_nowhere():
    busy = [("harbour", "uses", f"x{i}", 0.95) for i in range(1000)]
    busy += [(f"y{i}", "relevant_for", "trade", 0.95) for i in range(1000)]
    closure = ask(index(*busy, *BRIDGE), "is harbour relevant for trade")
    assert ("harbour", "relevant_for", "trade") in {s.proof.key for s in closure.standings}


@pytest.mark.parametrize("reach", [SearchLimits(), SearchLimits(fan_out=100_000, facts=1600)])
def test_a_fact_between_two_busy_symbols_is_found_once_both_are_known(reach):
    relations = ["provides", *(f"relation_{i}" for i in range(9))]
    busy = [("crane", relations[i % 10], f"x{i}", 0.95) for i in range(5000)]
    busy += [(f"y{i}", relations[i % 10], "lift", 0.95) for i in range(500)]
    busy += [(f"{end}{i}", "uses", f"z{i}", 0.95) for i in range(5000) for end in "xy"]
    closure = ask(index(*busy, *BRIDGE), "is harbour relevant for trade", reach=reach)
    assert ("harbour", "relevant_for", "trade") in {s.proof.key for s in closure.standings}


def test_the_quieter_end_is_searched_first():
    busy = [("harbour", "uses", f"x{i}", 0.95) for i in range(1000)]
    busy += [(f"x{i}", "provides", f"y{i}", 0.95) for i in range(1000)]
    checks = itertools.count()
    wanted = QueryTerms(frozenset({"harbour", "trade"}), "harbour trade", tokens)
    # Looking around a few symbols is all there is time for.
    around = explore(index(*busy, *BRIDGE), wanted, SearchLimits(), lambda: next(checks) >= 8)
    assert around.exhausted
    assert {fact[:3] for fact in BRIDGE} <= around.facts.keys()


def test_a_busy_symbol_does_not_take_all_seeds():
    busy = [(f"x{i:02}", "relevant_for", "trade") for i in range(50)]
    closure = ask(index(*busy, ("harbour", "uses", "crane")), "is harbour relevant for trade")
    assert len(closure.seeds) == 8
    assert ("harbour", "uses", "crane") in {seed.key for seed in closure.seeds}


# ------------------------------------------------------------------------------------------------ seeds


def test_a_name_is_found_at_word_boundaries_only():
    facts = index(("c++", "uses", "llvm"), ("c", "uses", "make"), ("rust", "uses", "cargo"))
    assert ask(facts, "describe the architecture").seeds == ()
    wanted = QueryTerms(frozenset({"c"}), "is c++ fast, or vitamin c?", tokens)
    assert wanted.names("c++")
    assert wanted.names("c")
    assert not QueryTerms(frozenset(), "is c++ fast", tokens).names("c")
    assert not QueryTerms(frozenset(), "the architecture", tokens).names("c")
    assert not wanted.names("")


def test_a_whole_name_comes_before_those_that_share_a_word():
    crowd = [(f"safe {i:04}", "uses", "steel") for i in range(500)]
    closure = ask(index(*crowd, *WORKSHOP), "why bakery is relevant for safe bread")
    assert {"bakery", "safe bread"} <= {end for seed in closure.seeds for end in (seed.subject, seed.object)}
    assert ("bakery", "relevant_for", "safe bread") in {s.proof.key for s in closure.standings}


# ------------------------------------------------------------------------------------------------ rules


def test_rules_of_ours_are_not_among_the_reference_systems_eight():
    facts = index(("rex", "instance_of", "dog"), ("dog", "has_capability", "barking"))
    assert raws(ask(facts, "rex")) == {}
    assert raws(ask(facts, "rex", (*RULES, *FURTHER_RULES))) == {"rex has_capability barking": 0.9 * 0.9 * 0.90}


def test_a_part_is_told_from_either_end():
    facts = index(("car", "has_part", "wheel"), ("car", "relevant_for", "travel"))
    found = raws(ask(facts, "wheel", (*RULES, *FURTHER_RULES)))
    assert found == {"wheel part_of car": 0.9 * 1.0, "wheel relevant_for travel": (0.9 * 1.0) * 0.9 * 0.85}


def test_three_premises_join():
    triangle = Rule(
        "triangle", (Pattern("x", "knows", "y"), Pattern("y", "knows", "z"), Pattern("x", "knows", "z")),
        Pattern("x", "closes", "z"), 0.5,
    )  # fmt: skip
    facts = index(("ann", "knows", "bo"), ("bo", "knows", "cy"), ("ann", "knows", "cy"), ("cy", "knows", "dan"))
    assert raws(ask(facts, "ann", [triangle])) == {"ann closes cy": ((0.9 * 0.9) * 0.9) * 0.5}


def test_premises_are_different_facts():
    twice = Rule("twice", (Pattern("x", "likes", "y"), Pattern("z", "likes", "y")), Pattern("x", "meets", "z"), 1.0)
    assert raws(ask(index(("ann", "likes", "tea")), "ann", [twice])) == {}
    both = raws(ask(index(("ann", "likes", "tea"), ("bo", "likes", "tea")), "ann", [twice]))
    assert both == {"ann meets bo": 0.9 * 0.9, "bo meets ann": 0.9 * 0.9}
    shared = Rule("shared", twice.body, Pattern("x", "shares", "y"), 1.0)
    assert raws(ask(index(("ann", "likes", "tea")), "ann", [shared])) == {}


def test_of_two_proofs_as_sure_as_each_other_the_shorter_is_kept():
    longer = Rule(
        "longer", (Pattern("x", "meets", "y"), Pattern("y", "knows", "z")), Pattern("x", "trusts", "z"), 1.0
    )
    shorter = Rule("shorter", (Pattern("x", "hires", "y"),), Pattern("x", "trusts", "y"), 1.0)
    facts = index(("ann", "meets", "bo"), ("bo", "knows", "cy"), ("ann", "hires", "cy"), confidence=1.0)
    for rules in ([longer, shorter], [shorter, longer]):
        [proof] = ask(facts, "ann", rules).derived
        assert (proof.raw, proof.steps, proof.rules()) == (1.0, 2, ("shorter",))


@pytest.mark.parametrize("depth", [1, 2, 3, 50])
def test_rules_that_feed_themselves_come_to_an_end(depth):
    back = Rule("back", (Pattern("x", "causes", "y"),), Pattern("y", "causes", "x"), 1.0)
    ring = [(f"n{i}", "causes", f"n{(i + 1) % 7}", 1.0) for i in range(7)]
    closure = ask(index(*ring), "n0 n3", (*RULES, back), depth=depth, derived=1000, reach=SearchLimits(hops=7))
    heads = {proof.key for proof in closure.derived}
    assert len(heads) <= 7 * 6
    assert all(subject != other for subject, _, other in heads)
    assert (len(heads) == 7 * 6 - 7) == (depth > 1)


def test_a_stated_fact_is_not_derived_again():
    facts = index(("a1", "causes", "b1"), ("b1", "causes", "c1"), ("a1", "causes", "c1", 0.2))
    assert raws(ask(facts, "a1")) == {}


def test_the_surer_of_two_proofs_is_kept_and_reaches_what_rests_on_it():
    weak_way = [("a1", "uses", "t1", 0.3), ("t1", "provides", "c1", 0.9)]
    strong_way = [("a1", "depends_on", "d1", 0.9), ("d1", "uses", "t1", 0.9), ("c1", "relevant_for", "g1", 0.9)]
    closure = ask(index(*weak_way, *strong_way), "a1")
    # the way through d1 takes a round longer and wins
    assert raws(closure)["a1 has_capability c1"] == 0.9 * (0.9 * 0.9 * 0.95) * 0.90
    assert raws(closure)["a1 relevant_for g1"] > 0.9 * 0.3


# ------------------------------------------------------------------------------------- time and bounds


def test_time_that_has_run_out_leaves_what_there_is():
    late = ask(index(*WORKSHOP), "why bakery is relevant for safe bread", expired=lambda: True)
    assert late.exhausted
    assert late.standings == ()


def test_time_that_runs_out_midway_is_reported():
    whole = ask(index(*WORKSHOP), "why bakery is relevant for safe bread")
    seen = set()
    for most in range(60):
        checks = itertools.count()
        cut = ask(index(*WORKSHOP), "why bakery is relevant for safe bread", expired=lambda: next(checks) >= most)  # noqa: B023
        assert cut.exhausted == (next(checks) > most)
        assert {proof.key for proof in cut.derived} <= {proof.key for proof in whole.derived}
        seen.add(len(cut.derived))
    assert {0, len(whole.derived)} < seen


def test_what_lies_between_the_named_things_stays_when_too_much_follows():
    crowd = [fact for i in range(40) for fact in (("bakery", "uses", f"t{i}"), (f"t{i}", "provides", f"c{i}"))]
    closure = ask(index(*crowd, *WORKSHOP, confidence=0.9), "why bakery is relevant for safe bread", derived=5)
    assert closure.bounded
    assert ("bakery", "relevant_for", "safe bread") in {proof.key for proof in closure.derived}
    assert not any(fact.object.startswith("t") for s in closure.standings for fact in s.proof.base())


# -------------------------------------------------------------------------------------- contradictions


def test_facts_that_contradict_are_both_returned_and_flagged():
    facts = index(("mira", "lives_in", "lisbon"), ("mira", "lives_in", "porto", 0.4), ("mira", "likes", "jazz"))
    silent = ask(facts, "mira lisbon")
    assert (silent.rivals, silent.contradicting) == ({}, ())
    told = ask(facts, "lisbon", functional=("lives_in",))
    lisbon, porto = ("mira", "lives_in", "lisbon"), ("mira", "lives_in", "porto")
    assert told.rivals == {lisbon: (porto,), porto: (lisbon,)}
    assert [s.proof.key for s in told.standings] == [lisbon]
    assert [s.proof.key for s in told.contradicting] == [porto]


def test_a_derived_fact_can_contradict_a_stated_one():
    facts = index(("lamp", "part_of", "desk"), ("shelf", "has_part", "lamp"))
    closure = ask(facts, "shelf lamp", FURTHER_RULES, functional=("part_of",))
    assert [s.proof.key for s in closure.contradicting] == [("lamp", "part_of", "desk")]
    assert closure.rivals["lamp", "part_of", "shelf"] == (("lamp", "part_of", "desk"),)


# ------------------------------------------------------------------------------------------ proofs in words


def test_a_proof_is_a_tree_of_rules_over_stated_facts():
    closure = ask(index(*WORKSHOP), "why bakery is relevant for safe bread")
    bridge = next(p for p in closure.derived if p.key == ("bakery", "relevant_for", "safe bread"))
    told = [(fact_text(step.key), step.rule and step.rule.name) for step in bridge.tree()]
    assert told == [
        ("bakery uses oven", None),
        ("oven provides heat", None),
        ("bakery has_capability heat", "tool_to_capability"),
        ("heat relevant_for safe bread", None),
        ("bakery relevant_for safe bread", "capability_to_relevance"),
    ]


def test_a_fact_that_many_state_shows_a_few_of_them():
    facts = FactIndex(tokens)
    for number in range(5):
        facts.add(f"s{number}", ("mira", "likes", "jazz"), 0.5 + number / 10)
    [standing] = ask(facts, "mira").standings
    assert standing.proof.raw == 0.9
    assert source_text(standing.proof.fact) == "s0, s1, s2 and 2 more"


# ------------------------------------------------------------------------------------------- fact index


def test_an_index_forgets_what_a_source_stated():
    facts = FactIndex(tokens)
    facts.add("one", ("mira", "likes", "jazz"), 0.4)
    facts.add("two", ("mira", "likes", "jazz"), 0.8)
    facts.add("two", ("jazz", "played_in", "club"), 0.8)
    facts.add("two", ("jazz", "likes", "jazz"), 0.8)
    assert [fact.confidence for fact in facts.about(["mira"], 9)] == [0.8]
    facts.remove("two")
    assert [(fact.confidence, fact.sources) for fact in facts.about(["mira", "jazz"], 9)] == [(0.4, ("one",))]
    assert facts.symbols_with(["club"], 9) == []
    facts.remove("one")
    facts.remove("nobody")
    assert facts.about(["mira"], 9) == facts.between(["mira"], ["jazz"]) == facts.symbols_with(["mira"], 9) == []


def test_a_view_sees_what_visible_sources_state():
    facts = FactIndex(tokens)
    facts.add("mine", ("mira", "likes", "jazz"), 0.4)
    facts.add("hidden", ("mira", "likes", "jazz"), 0.9)
    facts.add("hidden", ("mira", "likes", "rock"), 0.9)
    seen = facts.seen_by(lambda source: source == "mine")
    assert [(fact.object, fact.confidence, fact.sources) for fact in seen.about(["mira"], 9)] == [
        ("jazz", 0.4, ("mine",))
    ]
    assert list(seen.between(["rock"], ["mira"])) == []
    assert seen.symbols_with(["rock", "jazz"], 9) == ["jazz"]


def test_the_facts_of_a_busy_symbol_come_with_those_that_lead_on_first():
    facts = index(
        ("hub", "uses", "sure", 0.9), ("hub", "uses", "unsure", 0.2), ("unsure", "uses", "more"), ("z", "uses", "hub")
    )
    assert {fact.key for fact in facts.about(["hub"], 1)} == {("hub", "uses", "unsure"), ("z", "uses", "hub")}
    assert [fact.key for fact in facts.between(["hub"], ["more", "sure", "z"])] == [
        ("hub", "uses", "sure"),
        ("z", "uses", "hub"),
    ]


def test_a_detour_is_counted_in_facts():
    wanted = QueryTerms(frozenset(tokens("bakery safe bread")), "bakery safe bread", tokens)
    around = explore(index(*WORKSHOP, ("oven", "provides", "smell")), wanted, SearchLimits(), lambda: False)
    assert around.detour(("oven", "provides", "heat")) == 0
    assert around.detour(("oven", "depends_on", "gas")) == 1
    assert around.detour(("oven", "provides", "smell")) == math.inf
    assert around.detour(("bakery", "has_capability", "smell"), {"oven"}) == math.inf
    assert around.detour(("bakery", "has_capability", "heat"), {"oven"}) == 0
    assert around.joins(("safe bread", "any", "bakery"))
    assert not around.joins(("oven", "any", "bakery"))
