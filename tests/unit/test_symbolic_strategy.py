"""The symbolic strategy (C7, C8): units by their proofs, notes, explanations; and rules that a user writes."""

import dataclasses

import numpy as np
import pytest

from builders import expired_after, make_unit, patient
from holdfast import Settings
from holdfast.errors import SettingsError
from holdfast.kernels.closure import Pattern, Rule
from holdfast.kernels.triples import FactIndex
from holdfast.messages.checks import read_rule, read_rules
from holdfast.retrieval.strategy import retrieve
from holdfast.retrieval.symbolic import SymbolicStrategy, question_symbols
from holdfast.settings import SymbolicSettings
from holdfast.text.names import symbol, symbol_tokens
from holdfast.text.questions import profile_query
from holdfast.types import Fact

WIDE = 1_000
HISTORY = {
    "u0": ("the bakery uses the oven", "bakery", "uses", "oven"),
    "u1": ("the oven provides heat", "oven", "provides", "heat"),
    "u2": ("heat matters for safe bread", "heat", "relevant_for", "safe bread"),
    "u3": ("the bakery needs the oven", "bakery", "depends_on", "oven"),
    "u4": ("the oven runs on gas", "oven", "depends_on", "gas"),
    "u5": ("gas gives a flame", "gas", "provides", "flame"),
    "u6": ("a flame matters for safe bread", "flame", "relevant_for", "safe bread"),
}


class FactsInMemory:
    """The part of a reading that the strategy asks."""

    def __init__(self, history, confidence=0.9, user="ana"):
        self._user = user
        self._units = {
            unit_id: make_unit(unit_id, text, fact=Fact(*triple, confidence), kind="knowledge")
            for unit_id, (text, *triple) in history.items()
        }
        self._index = FactIndex(symbol_tokens)
        for unit_id, unit in self._units.items():
            key = (symbol(unit.fact.subject), unit.fact.relation, symbol(unit.fact.object))
            self._index.add(unit_id, key, unit.fact.confidence)

    def facts(self):
        return self._index.seen_by(lambda source: self._units[source].user == self._user)

    def columns(self, ids, names):
        known = [self._units.get(unit_id) for unit_id in ids]
        return {name: np.array([getattr(unit, name, None) for unit in known], dtype=object) for name in names}


def settings(**changes):
    reference = Settings.reference()
    return dataclasses.replace(reference, symbolic=dataclasses.replace(reference.symbolic, **changes))


def ask(question, reading=None, depth=WIDE, deadline=None, **changes):
    strategy = SymbolicStrategy(settings(**changes))
    query = question if not isinstance(question, str) else profile_query(question)
    return retrieve(strategy, query, reading or FactsInMemory(HISTORY), depth, deadline or patient())


def account(question, reading=None, **changes):
    """Return how the strategy explains what it finds."""
    found = ask(question, reading, **changes)
    strategy = SymbolicStrategy(settings(**changes))
    query = question if not isinstance(question, str) else profile_query(question)
    return strategy.explain(query, reading or FactsInMemory(HISTORY), found.claims.ids)


def test_units_take_the_score_of_their_best_proof():
    result = ask("Explain why the bakery is relevant for safe bread.")
    assert result.strategy_id == "thinkingdb-symbolic"
    assert [claim.unit_id for claim in result.candidates] == ["u0", "u1", "u3", "u4", "u2", "u5", "u6"]
    tool, chain, goal = 0.55623857, 0.53867314, 0.51525257
    found = [claim.raw_score for claim in result.candidates]
    assert found == pytest.approx([tool, tool, chain, chain, goal, goal, goal], abs=1e-8)
    assert all(claim.normalized_score == min(claim.raw_score / result.scale, 1.0) for claim in result.candidates)


def test_notes_start_with_the_id_and_tell_the_proof():
    assert account("why is the bakery relevant for safe bread")["u0"].notes == (
        "thinkingdb-symbolic",
        "derived: bakery has_capability heat",
        "via: tool_to_capability",
    )
    lone = FactsInMemory({"a": ("Mira likes jazz", "mira", "likes", "jazz")})
    [only] = account("what about Mira's music", lone).values()
    assert only.notes == ("thinkingdb-symbolic", "base: mira likes jazz")


def test_a_sure_fact_that_the_question_names_is_normalised_to_one():
    [claim] = ask("Mira", FactsInMemory({"a": ("Mira likes jazz", "mira", "likes", "jazz")}, 1.0)).candidates
    assert claim.raw_score > 1.0
    assert claim.normalized_score == 1.0


def test_the_explanation_is_the_proof_and_recomposes_the_score():
    question = "why is the bakery relevant for safe bread"
    result, accounts = ask(question, seed_bonus=1.3), account(question, seed_bonus=1.3)
    for claim in result.candidates:
        tree = accounts[claim.unit_id].tree
        assert tree.compose() == tree.value == claim.raw_score
    first = accounts[result.claims.ids[0]].tree
    assert [part.name for part in first.parts] == [
        "derived: bakery has_capability heat",
        "step penalty",
        "goal bonus",
        "seed bonus",
    ]
    assert [part.name for part in first.parts[0].parts] == [
        "base: bakery uses oven (u0)",
        "base: oven provides heat (u1)",
        "rule tool_to_capability",
    ]


def test_score_says_the_same_of_any_unit():
    reading = FactsInMemory(HISTORY | {"u9": ("ducks swim", "duck", "likes", "pond")})
    strategy, query = SymbolicStrategy(settings()), profile_query("why is the bakery relevant for safe bread")
    found, everyone = retrieve(strategy, query, reading, WIDE, patient()), [*HISTORY, "u9", "nobody"]
    scored = dict(zip(everyone, strategy.score(query, reading, everyone).raw.tolist(), strict=True))
    assert dict(zip(found.claims.ids, found.claims.raw.tolist(), strict=True)) == {
        key: scored[key] for key in HISTORY
    }
    accounts = strategy.explain(query, reading, ["u9", "nobody"])
    assert scored["u9"] == scored["nobody"] == accounts["u9"].tree.compose() == 0.0
    assert retrieve(strategy, query, reading, 3, patient()).candidates == found.candidates[:3]


def test_nobody_elses_facts_are_joined():
    reading = FactsInMemory(HISTORY, user="ben")
    assert ask("why is the bakery relevant for safe bread", reading).candidates == ()


def test_time_that_runs_out_is_reported():
    late = ask("why is the bakery relevant for safe bread", deadline=expired_after(0))
    assert late.exhausted_budget
    assert late.candidates == ()
    assert not ask("why is the bakery relevant for safe bread").exhausted_budget


def test_a_follow_up_asks_about_what_came_before():
    query = profile_query("and why?", earlier=["Tell me about the bakery and safe bread"])
    assert account(query)["u0"].notes[1] == "derived: bakery has_capability heat"


def test_names_are_read_as_symbols_are():
    reading = FactsInMemory(
        {
            "a": ("C++ needs a compiler", "C++", "depends_on", "the compilers"),
            "b": ("vitamin C helps", "vitamin C", "supports", "the Rules Engine"),
        }
    )
    strategy = SymbolicStrategy(settings())

    def seeds(question):
        return [seed.subject for seed in strategy.prove(profile_query(question), reading).seeds]

    assert seeds("Is C++ hard?") == ["c++"]
    assert seeds("the architecture") == []
    assert seeds("Which COMPILERS, then?") == ["c++"]
    assert seeds("what of the rules engine's speed") == ["vitamin c"]
    named = question_symbols(profile_query("Which compilers does the rules engine use?"))
    assert named.names("compiler")
    assert named.names("rules engine")
    assert not named.names("rule engine compiler")


def test_contradicting_units_are_both_found_and_flagged():
    reading = FactsInMemory(
        {
            "old": ("Mira lives in Porto", "mira", "lives_in", "porto"),
            "new": ("Mira lives in Lisbon", "mira", "lives_in", "lisbon"),
        }
    )
    assert [claim.unit_id for claim in ask("who is in Lisbon", reading).candidates] == ["new"]
    both = account("who is in Lisbon", reading, functional=("lives_in",))
    assert both["new"].notes[-1] == "contradicts: mira lives_in porto"
    assert both["old"].notes[-1] == "contradicts: mira lives_in lisbon"
    assert 0.0 < both["old"].tree.value < both["new"].tree.value


def test_rules_of_ours_are_off_in_the_reference_recipe():
    reading = FactsInMemory(
        {"a": ("Rex is a dog", "rex", "instance_of", "dog"), "b": ("", "dog", "has_capability", "nose")}
    )
    [told, *_] = account("Rex", reading).values()
    assert told.notes[1] == "base: rex instance_of dog"
    [told, *_] = account("Rex", reading, further_rules=True).values()
    assert told.notes[1] == "derived: rex has_capability nose"
    assert Settings().symbolic.further_rules
    assert not Settings.reference().symbolic.further_rules


def test_a_rule_of_the_users_is_applied_and_named():
    reading = FactsInMemory(
        {"a": ("Mira is in Alfama", "mira", "located_in", "alfama"), "b": ("Alfama", "alfama", "part_of", "lisbon")}
    )
    rule = "x located_in y, y part_of z -> x located_in z : 0.8"
    found = ask("where is Mira", reading, rules=(rule,)).candidates
    assert {claim.unit_id for claim in found} == {"a", "b"}
    told = account("where is Mira", reading, rules=(rule,))
    assert told[found[0].unit_id].notes[1:] == ("derived: mira located_in lisbon", "via: user_1")


def test_the_thinking_profile_is_the_contracts():
    profile = Settings.reference().thinking
    assert profile == Settings().thinking
    assert (profile.strategies, profile.max_results) == (("lexical", "thinkingdb-symbolic"), 8)
    assert (profile.min_score, profile.gap, profile.rank_by, profile.escalation) == (0.12, 0.25, "fused", ())


# ------------------------------------------------------------------------------------------ reading rules

LOCATED = Rule(
    "r", (Pattern("x", "located_in", "y"), Pattern("y", "part_of", "z")), Pattern("x", "located_in", "z"), 0.9
)


@pytest.mark.parametrize(
    "text",
    [
        "x located_in y, y part_of z -> x located_in z : 0.9",
        "?x located_in ?y, ?y part_of ?z -> ?x located_in ?z",
        "  x   Located_In y and y part_of z->x located_in z:.9 ",
        "x located_in y & y part_of z -> x located_in z : 9e-1",
    ],
)
def test_a_rule_may_be_written_in_several_ways(text):
    assert read_rule(text, "r") == LOCATED


def test_a_list_of_rules_that_was_split_at_its_commas_is_put_together_again():
    one = "x located_in y, y part_of z -> x located_in z : 0.9"
    assert read_rules((one, "a likes b -> b liked_by a")) == read_rules(
        (*one.split(","), "a likes b -> b liked_by a")
    )
    loaded = Settings.load({}, environ={"HOLDFAST_SYMBOLIC__RULES": one})
    assert read_rules(loaded.symbolic.rules) == read_rules((one,))
    assert [rule.name for rule in read_rules((one, one))] == ["user_1", "user_2"]
    assert read_rules(()) == ()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("x likes y", "no `->`"),
        ("x likes -> y likes x", "is not `x relation y`"),
        ("-> x likes y", "is not `x relation y`"),
        ("x likes y -> ", "is not `x relation y`"),
        ("x likes y -> x likes y z : 1", "is not `x relation y`"),
        ("x likes y -> x meets z", "z follows from nothing"),
        ("x likes y -> paul meets y", "paul follows from nothing"),
        ("x likes y, z likes w -> x meets w", "share no variable"),
        ("a r b, b r c, c r d, d r e -> a r e", "4 premises"),
        ("x likes y -> x likes y", "what its body says"),
        ("x likes y -> y likes x : 0", r"outside \(0, 1\]"),
        ("x likes y -> y likes x : 1.1", r"outside \(0, 1\]"),
        ("x likes y -> y likes x : nan", r"outside \(0, 1\]"),
        ("x likes y -> y likes x : often", "is not a weight"),
        ("x likes y -> y likes x -> x likes x", "is not `x relation y`"),
    ],
)
def test_a_rule_that_is_not_safe_is_refused_with_the_remedy(text, why):
    with pytest.raises(SettingsError, match=why) as caught:
        SymbolicStrategy(settings(rules=(text,)))
    assert text.strip() in str(caught.value)
    assert "as in 'x located_in y, y part_of z -> x located_in z : 0.9'" in str(caught.value)


@pytest.mark.parametrize(
    "wrong",
    [
        {"goal_bonus": 0.9},
        {"seed_bonus": float("inf")},
        {"functional": ("born in",)},
        {"relations": ("",)},
    ],
)
def test_settings_outside_their_domain_are_refused(wrong):
    [name] = wrong
    with pytest.raises(SettingsError, match=rf"symbolic\.{name}"):
        SymbolicSettings(**wrong)
