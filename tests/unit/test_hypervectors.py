"""Hypervectors (C5): operations, chance that stays at one half, and how a unit's score is made of its fields."""

import math

import numpy as np
import pytest

from builders import ask, make_unit, make_view, opened, patient, retrieve
from holdfast import Settings
from holdfast.kernels import hypervectors as hv
from holdfast.openers import derivation
from holdfast.retrieval.hyperdimensional import HyperdimensionalStrategy, encode_query, encode_unit
from holdfast.settings import AnalysisSettings, HyperSettings
from holdfast.store.queries import HYPER_FIELDS, MISSING_FIELD, HyperQuery, UnitHypervectors
from holdfast.store.sqlite.blocks import HyperCache
from holdfast.text import analyse
from holdfast.text.questions import profile_query
from holdfast.types import QueryProfile

# The deviation of a similarity between two unrelated vectors: half of 1/√4096.
SIGMA = 0.5 / math.sqrt(hv.BITS)
SHARES = (0.35, 0.35, 0.2, 0.1)


def bits(vector):
    return [int(word) >> i & 1 for word in vector for i in range(64)]


def similar(a, b):
    return float(hv.similarity(hv.hamming(a[None, :], b))[0])


# ---------------------------------------------------------------------------------------------- operations


def test_the_vector_of_a_key_is_4096_bits_that_no_machine_and_no_release_changes():
    vector = hv.random("lantern")
    assert (vector.dtype, vector.shape) == (np.uint64, (64,))
    # A saved hypervector must stay comparable: these are the first bytes of SHAKE-256 of the key.
    assert vector.astype("<u8").tobytes()[:8].hex() == "4865057fda38185d"
    assert np.array_equal(hv.random("lantern"), vector)


def test_the_vector_of_a_key_cannot_be_written_to():
    with pytest.raises(ValueError, match="read-only"):
        hv.random("lantern")[0] = 0


def test_vectors_of_different_keys_are_unrelated_and_half_full():
    vectors = [hv.random(f"key {i}") for i in range(100)]
    near = [similar(vectors[i], vectors[j]) for i in range(100) for j in range(i)]
    assert abs(sum(near) / len(near) - 0.5) < 0.004
    assert max(abs(value - 0.5) for value in near) < 5.5 * SIGMA
    assert all(abs(sum(bits(vector)) - 2048) < 5.5 * 32 for vector in vectors)


def test_a_turned_vector_is_unlike_the_original():
    vector = hv.random("lantern")
    assert abs(similar(vector, hv.turn(vector, 1)) - 0.5) < 5.5 * SIGMA


def test_the_order_of_a_bigram_matters():
    one, two = (hv.ngrams(words, positional=False) for words in (["oak", "elm"], ["elm", "oak"]))
    assert similar(one, two) < 1.0
    # The two words agree, the bigrams do not: the majority of three keeps three quarters of the bits.
    assert abs(similar(one, two) - 0.75) < 5.5 * SIGMA


def test_a_word_elsewhere_matches_only_without_positions():
    here, there = ["oak", "elm", "fig", "ash"], ["yew", "gum", "bay", "oak"]
    free, bound = (
        similar(*(hv.ngrams(words, positional=positional) for words in (here, there))) for positional in (False, True)
    )
    assert free > 0.5 + 4 * SIGMA
    assert abs(bound - 0.5) < 5.5 * SIGMA


def test_an_even_majority_is_broken_by_the_bag_itself_and_not_by_a_fixed_vector():
    # Ties are half of all bits here. A fixed tie vector would lift unrelated pairs to .62.
    near = [similar(hv.bag([f"a{i}", f"b{i}"]), hv.bag([f"c{i}", f"d{i}"])) for i in range(200)]
    assert abs(sum(near) / len(near) - 0.5) < 0.004
    assert abs(similar(hv.bag(["a", "b"]), hv.random("a")) - 0.75) < 5.5 * SIGMA


def test_nothing_has_no_vector_and_one_key_is_its_own_bag():
    assert hv.bag([]) is None
    assert hv.ngrams([], positional=True) is None
    assert hv.ngrams([], positional=False) is None
    assert np.array_equal(hv.bag(["oak"]), hv.random("oak"))
    assert np.array_equal(hv.ngrams(["oak"], positional=False), hv.random("oak"))


@pytest.mark.parametrize("positional", [False, True])
@pytest.mark.parametrize("size", range(1, 11))
def test_unrelated_texts_stay_at_one_half_whatever_their_size(size, positional):
    def texts(name, count):
        return [hv.ngrams([f"{name} {i} {j}" for j in range(count)], positional=positional) for i in range(100)]

    for other in (size, size % 10 + 1, 1):
        near = [similar(a, b) for a, b in zip(texts("one", size), texts("two", other), strict=True)]
        assert abs(sum(near) / len(near) - 0.5) < 0.004
        assert max(abs(value - 0.5) for value in near) < 5.5 * SIGMA


@pytest.mark.parametrize("size", range(1, 11))
def test_unrelated_bags_stay_at_one_half_whatever_their_size(size):
    def bags(name, count):
        return [hv.bag([f"{name} {i} {j}" for j in range(count)]) for i in range(100)]

    for other in (size, size % 10 + 1, 1):
        near = [similar(a, b) for a, b in zip(bags("one", size), bags("two", other), strict=True)]
        assert abs(sum(near) / len(near) - 0.5) < 0.004
        assert max(abs(value - 0.5) for value in near) < 5.5 * SIGMA


# --------------------------------------------------------------------------------------------------- scales


def test_similarity_and_its_rise_above_chance():
    distances = np.array([0, 1, 1024, 2048, 2049, 4096])
    assert hv.similarity(distances).tolist() == [1.0, 4095 / 4096, 0.75, 0.5, 2047 / 4096, 0.0]
    assert hv.shifted(hv.similarity(distances)).tolist() == [1.0, 4094 / 4096, 0.5, 0.0, 0.0, 0.0]


@pytest.mark.parametrize("units", [0, 1, 2, 459, 460, 500, 10_000, 1_000_000])
def test_the_noise_floor_is_the_expected_largest_of_so_many_draws_and_at_least_four_sigma(units):
    z = max(4.0, math.sqrt(2.0 * math.log(units)) + 0.5) if units else 4.0
    assert hv.noise_floor(units) == pytest.approx(z / 64.0, rel=1e-15)


def test_the_noise_floor_is_four_sigma_up_to_457_units_and_rises_from_there():
    assert hv.noise_floor(457) == 4.0 / 64.0 < hv.noise_floor(458) < hv.noise_floor(100_000)


# ----------------------------------------------------------------------------------------------- the fields


def test_a_unit_has_a_vector_for_each_field_it_fills():
    unit = make_unit(text="the oven is cold", topic="kitchen oven", role="Definition", utility_acts=("define",))
    found = encode_unit(unit, analyse(unit, AnalysisSettings()), HyperSettings())
    assert np.array_equal(found.topic, hv.ngrams(["kitchen", "oven"], positional=False))
    assert np.array_equal(found.claim, hv.ngrams(["oven", "cold"], positional=False))
    assert (found.role, found.acts) == ("Definition", ("define",))


def test_a_procedure_is_read_where_a_claim_would_be():
    unit = make_unit(text="heat the oven", role="Procedure")
    found = encode_unit(unit, analyse(unit, AnalysisSettings()), HyperSettings(positional=True))
    assert found.topic is None
    assert np.array_equal(found.claim, hv.ngrams(["heat", "oven"], positional=True))


def test_a_question_is_analysed_like_a_unit():
    query = profile_query("Why are the ovens baking?")
    role, text, act = encode_query(query, HyperSettings())
    unit = make_unit(text="the oven bakes")
    assert np.array_equal(text, encode_unit(unit, analyse(unit, AnalysisSettings()), HyperSettings()).claim)
    assert np.array_equal(role, hv.bag(sorted(query.needed_roles)))
    assert np.array_equal(act, hv.random("explain"))


def test_a_question_without_an_act_has_no_role_and_no_act():
    assert encode_query(QueryProfile("oven", ("oven",)), HyperSettings())[::2] == (None, None)


# ------------------------------------------------------------------------------------------------ the score

EVERY_FIELD = {"topic": "copper kettle", "role": "Definition", "utility_acts": ("define", "describe")}


def asked(memory, question, ids, strategy=None, view=None):
    """Return what the strategy says of units and how it explains it: {id: (raw score, tree)}."""
    strategy = strategy or HyperdimensionalStrategy(memory.settings)

    def say(reading):
        accounts = strategy.explain(question, reading, ids)
        raws = strategy.score(question, reading, ids).raw.tolist()
        return {key: (raw, accounts[key].tree) for key, raw in zip(ids, raws, strict=True)}

    return ask(memory, say, view)


def above_chance(a, b):
    return max(0.0, (similar(a, b) - 0.5) * 2.0)


@pytest.mark.parametrize("positional", [False, True])
def test_the_score_is_the_weighted_sum_of_the_fields_rise_above_chance(positional):
    settings = Settings.load({"hyper.positional": positional}, environ={})
    question = QueryProfile("", ("copper", "kettl"), "define", frozenset({"Definition", "Explanation"}))
    text = hv.ngrams(question.terms, positional=positional)
    with opened(settings) as memory:
        unit = {"id": "u", "claim": "the copper kettle whistles", **EVERY_FIELD}
        memory.remember(unit, user="ana")
        raw, tree = asked(memory, question, ["u"])["u"]
    claim = hv.ngrams(["copper", "kettl", "whistl"], positional=positional)
    roles, acts = hv.bag(["Definition", "Explanation"]), hv.bag(["define", "describe"])
    expected = (
        0.35 * above_chance(hv.ngrams(["copper", "kettl"], positional=positional), text)
        + 0.35 * above_chance(claim, text)
        + 0.20 * above_chance(hv.random("Definition"), roles)
        + 0.10 * above_chance(acts, hv.random("define"))
    )
    assert raw == pytest.approx(expected, rel=1e-12)
    assert tree.compose() == raw
    assert [part.name for part in tree.parts] == [f"field {name}" for name in HYPER_FIELDS]


@pytest.mark.parametrize("missing", ["topic", "role", "acts"])
def test_a_field_missing_on_either_side_adds_nothing(missing):
    question = QueryProfile("", ("copper", "kettl"), "define", frozenset({"Definition"}))
    fields = {"id": "u", "claim": "copper kettle", **EVERY_FIELD}
    if missing == "role":  # every unit has a role: it is the question that may ask for none
        question = QueryProfile("", question.terms, "define", frozenset())
    elif missing == "acts":
        fields["utility_acts"] = ()
    else:
        fields["topic"] = ""
    with opened() as memory:
        memory.remember(fields, user="ana")
        raw, tree = asked(memory, question, ["u"])["u"]
    parts = {part.name: part.value for part in tree.parts}
    assert f"field {missing}" not in parts
    assert raw == sum(parts.values())
    assert parts["field claim"] == pytest.approx(0.35)


def test_role_and_acts_alone_never_make_a_hit():
    question = QueryProfile("", ("zeppelin",), "define", frozenset({"Definition"}))
    with opened() as memory:
        memory.remember({"id": "u", "claim": "the copper kettle whistles", **EVERY_FIELD}, user="ana")
        strategy = HyperdimensionalStrategy(memory.settings)
        assert retrieve(memory, strategy, question).candidates == ()
        assert asked(memory, question, ["u"])["u"][0] == 0.0
        assert asked(memory, QueryProfile("", (), "define", frozenset({"Definition"})), ["u"])["u"][0] == 0.0


def test_whatever_scores_is_found_and_whatever_is_found_rises_above_the_noise():
    with opened() as memory:
        for i in range(40):
            memory.remember(f"brick {i % 7} of wall {i % 5} is {'loose ' * (i % 3)}{i}", id=f"u{i}", user="ana")
        question = profile_query("the loose brick 3")
        found = retrieve(memory, HyperdimensionalStrategy(memory.settings), question)
        scored = asked(memory, question, [f"u{i}" for i in range(40)])
        assert {claim.unit_id for claim in found.candidates} == {k for k, (raw, _) in scored.items() if raw > 0.0}
        for claim in found.candidates:
            parts = {part.name: part.parts[1].value for part in scored[claim.unit_id][1].parts}
            assert max(parts.get("field topic", 0.0), parts["field claim"]) >= hv.noise_floor(40)
            assert scored[claim.unit_id][0] == claim.raw_score


def test_a_smaller_budget_keeps_the_best_by_score_and_not_the_best_by_one_field():
    # The first matches in two fields, the second better in one: .35·½ + .35·½ is more than .35·¾.
    with opened() as memory:
        memory.remember({"id": "both", "topic": "oak elm fig ash", "claim": "oak elm fig ash bay"}, user="ana")
        memory.remember({"id": "one", "topic": "", "claim": "oak elm fig"}, user="ana")
        question = QueryProfile("", ("oak", "elm", "fig"))
        strategy = HyperdimensionalStrategy(memory.settings)
        whole = retrieve(memory, strategy, question).candidates
        assert [claim.unit_id for claim in whole] == ["both", "one"]
        first = retrieve(memory, strategy, question, 1).candidates
        assert [claim.unit_id for claim in first] == ["both"]


# ------------------------------------------------------------------------------------------------ the cache


def vectors_of(*words, acts=()):
    return UnitHypervectors(None, hv.ngrams(words, positional=False), "Narrative", acts)


def distance(cache, unit_id, *words):
    query = HyperQuery(None, hv.ngrams(words, positional=False), None, SHARES)
    return cache.distances(query, [unit_id])[0, HYPER_FIELDS.index("claim")]


def test_the_cache_gives_a_units_own_vectors_and_misses_other_content():
    cache = HyperCache()
    cache.add("a", 1, vectors_of("oak"))
    cache.add("b", 1, vectors_of("elm"))
    assert (distance(cache, "a", "oak"), distance(cache, "b", "elm")) == (0, 0)
    assert cache.missing([("a", 1), ("b", 2), ("c", 1)]) == ["b", "c"]


def test_a_missing_field_is_marked_on_either_side():
    cache = HyperCache()
    cache.add("a", 1, UnitHypervectors(None, None, "Narrative", ()))
    everything = HyperQuery(hv.random("Narrative"), hv.random("oak"), hv.random("define"), SHARES)
    assert cache.distances(everything, ["a"]).tolist() == [[MISSING_FIELD, MISSING_FIELD, 0, MISSING_FIELD]]
    cache.add("b", 1, vectors_of("oak", acts=("define",)))
    assert cache.distances(everything, ["b", "a"])[:, 1:].tolist() == [[0, 0, 0], [MISSING_FIELD, 0, MISSING_FIELD]]
    assert cache.distances(HyperQuery(None, None, None, SHARES), ["b"]).tolist() == [[MISSING_FIELD] * 4]


def test_one_unit_or_all_of_them_can_be_forgotten():
    cache = HyperCache()
    for name in ("oak", "elm", "fig"):
        cache.add(name, 1, vectors_of(name))
    cache.invalidate("elm")
    cache.invalidate("nobody")
    assert ("elm" in cache, len(cache)) == (False, 2)
    assert distance(cache, "fig", "fig") == 0
    assert cache.missing([("oak", 1), ("elm", 1), ("fig", 1)]) == ["elm"]
    cache.invalidate_all()
    assert len(cache) == 0
    assert cache.missing([("oak", 1)]) == ["oak"]


def test_an_update_changes_the_vectors_that_answer():
    with opened() as memory:
        memory.remember("the oak fell", id="u", user="ana")
        before = asked(memory, profile_query("the oak fell"), ["u"])["u"][0]
        memory.update("u", user="ana", text="a lamp burns")
        assert before == pytest.approx(0.35)
        assert asked(memory, profile_query("the oak fell"), ["u"])["u"][0] == 0.0
        assert asked(memory, profile_query("a lamp burns"), ["u"])["u"][0] == pytest.approx(0.35)


@pytest.mark.parametrize("rounds", [3, 60])
def test_a_unit_that_changes_often_takes_no_other_unit_out_of_the_cache(rounds):
    with opened() as memory:
        for i, text in enumerate(("oak tree", "elm tree", "fig tree")):
            memory.remember(text, id=f"u{i}", user="ana")
        query = HyperQuery(None, hv.ngrams(["tree"], positional=False), None, SHARES)
        for number in range(rounds):
            memory.update("u0", user="ana", text=f"oak tree {number}")
            found = ask(memory, lambda reading: reading.propose(query, 9, patient()))
            assert sorted(found.ids) == ["u0", "u1", "u2"]
            assert not found.exhausted


@pytest.mark.parametrize("rounds", [3, 60])
def test_the_evidence_of_cached_units_survives_a_neighbour_that_changes_often(rounds):
    with opened() as memory:
        for i, text in enumerate(("oak tree", "elm tree", "fig tree")):
            memory.remember(text, id=f"u{i}", user="ana")
        query = HyperQuery(None, hv.ngrams(["elm", "tree"], positional=False), None, SHARES)
        for number in range(rounds):
            memory.update("u0", user="ana", text=f"oak tree {number}")
            found = ask(memory, lambda reading: reading.evidence(query, ["u0", "u1", "u2"]))
            assert dict(zip(found.ids, found.distances[:, 1].tolist(), strict=True))["u1"] == 0


@pytest.mark.parametrize("other", [{"user": "ben"}, {"user": "ana", "tenant": "elsewhere"}])
def test_no_owner_is_answered_from_another_owners_vectors(other):
    # The same id on purpose: a cache keyed by id alone would give one owner the other's words.
    with opened() as memory:
        memory.remember("the oak fell", id="u", user="ana")
        memory.remember("a lamp burns", id="u", **other)
        question, strategy = profile_query("the oak fell"), HyperdimensionalStrategy(memory.settings)
        for view, expected in ((make_view(), 0.35), (make_view(**other), 0.0), (make_view(), 0.35)):
            raw, _ = asked(memory, question, ["u"], strategy, view)["u"]
            assert raw == pytest.approx(expected)


def test_an_index_of_other_hypervectors_or_words_is_another_index():
    theirs, alias = {"recipe": "reference"}, {"analysis.aliases": ["k8s = Kubernetes"]}
    ways = ({}, theirs, {"hyper.positional": True}, theirs | {"hyper.positional": False}, alias)
    found = [derivation(Settings.load(way, environ={})).fingerprint for way in ways]
    assert len({*found}) == len(ways)
    # A store that was made by a recipe asks for no reindex.
    for name, told in zip(("default", "reference"), found, strict=False):
        assert told.partition(", ")[2] == f'{{"tokenizer": "{name}", "aliases": []}}]'
