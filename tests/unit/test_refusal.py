"""The no-answer rule (C4): decided once from the nearest candidate, by words and meaning together."""

from functools import cache

import numpy as np
import pytest

from builders import ask, make_claims, make_pool, make_unit, opened, program
from holdfast import Memory, Settings, sample
from holdfast.kernels import bm25
from holdfast.language.query import profile_query
from holdfast.ranking.fuse import refusal
from holdfast.retrieval.lexical import LexicalStrategy
from holdfast.settings import RefusalSettings
from holdfast.testing.embedders import HashEmbedder

derivation = program("benchmarks/refusal.py")

UNRELATED = "What is the average complexity of quicksort?"
# Powers of two, so that every sum below is exact.
HALVES = RefusalSettings(coverage=1.0, cosine=0.5)


def pool_of(*near):
    """Return a pool of candidates of which words and meaning say so much: (coverage, cosine), None for nothing."""
    ids = [f"u{row}" for row in range(len(near))]
    words = {unit_id: coverage for unit_id, (coverage, _) in zip(ids, near, strict=True) if coverage is not None}
    cosines = {unit_id: cosine for unit_id, (_, cosine) in zip(ids, near, strict=True) if cosine is not None}
    claims = {
        "lexical": make_claims(ids, dict.fromkeys(words, 3.0), coverage=words),
        "dense": make_claims(ids, cosines),
    }
    said = {name: made for name, made in claims.items() if made[1].any()}
    return make_pool([(make_unit(unit_id), 1.0) for unit_id in ids], claims=said)


@pytest.mark.parametrize(
    ("coverage", "cosine", "refused"),
    [
        (1.0, 0.0, False),
        (0.0, 0.5, False),
        (0.5, 0.25, False),
        (0.75, 0.125, False),
        (0.999, 0.0, True),
        (0.0, 0.499, True),
        (0.5, 0.249, True),
        (0.0, 0.0, True),
        (1.0, None, False),
        (0.999, None, True),
        (None, 0.5, False),
        (None, 0.499, True),
        (None, None, True),
    ],
)
def test_coverage_and_cosine_must_add_up_to_one(coverage, cosine, refused):
    assert bool(refusal(pool_of((coverage, cosine)), HALVES)) == refused


def test_the_reason_names_both_numbers():
    reason = refusal(pool_of((0.125, 0.0625)), HALVES)
    assert "0.12 of its words" in reason or "0.13 of its words" in reason
    assert "cosine of 0.06" in reason


def test_the_nearest_candidate_decides_wherever_it_ranks():
    near, far = (1.0, 0.5), (0.0, 0.0)
    assert refusal(pool_of(near, far), HALVES) == refusal(pool_of(far, near), HALVES) == ""
    assert refusal(pool_of(far, far), HALVES) != ""


def test_a_unit_that_holds_every_word_of_the_question_is_never_refused():
    assert refusal(pool_of((0.0, 0.2), (1.0, 0.0)), RefusalSettings()) == ""


def test_nothing_found_is_not_refused_and_a_switched_off_rule_refuses_nothing():
    assert refusal(pool_of(), HALVES) == ""
    assert refusal(pool_of((0.0, 0.0)), RefusalSettings(enabled=False)) == ""


def test_the_rule_is_off_in_the_reference_recipe_and_on_by_default():
    assert not Settings.reference().refusal.enabled
    assert Settings().refusal.enabled


def test_coverage_is_the_matched_share_of_the_questions_idf_mass_unseen_words_included():
    with opened() as memory:
        memory.remember("the blue boat leaks", id="a", user="ana")
        memory.remember("a boat for sale", id="b", user="ana")
        question = profile_query("blue boat zeppelin")
        strategy = LexicalStrategy(memory.settings)
        a, b = ask(memory, lambda reading: strategy.score(question, reading, ["a", "b"])).coverage
    blue, boat, zeppelin = (bm25.idf(2, df) for df in (1, 2, 0))
    assert a == pytest.approx((blue + boat) / (blue + boat + zeppelin), rel=1e-12)
    assert b == pytest.approx(boat / (blue + boat + zeppelin), rel=1e-12)


def test_coverage_does_not_depend_on_which_units_are_looked_at_together():
    words = "ash bay elm fig gum oak yew fir box nut".split()
    with opened() as memory:
        for i in range(40):
            memory.remember(" ".join(words[j] for j in range(10) if (i * 7 + j * j) % 3), id=f"u{i}", user="ana")
        question, strategy = profile_query(" ".join(words)), LexicalStrategy(memory.settings)
        ids = [f"u{i}" for i in range(40)]
        together, *alone = (
            ask(memory, lambda reading, some=some: strategy.score(question, reading, some)).coverage.tolist()
            for some in (ids, *([key] for key in ids))
        )
    assert [coverage.hex() for coverage in together] == [coverage.hex() for [coverage] in alone]


# --------------------------------------------------------------------------------------------- whole searches


def test_a_refused_question_has_no_hits_and_says_why():
    with opened(embedder=HashEmbedder(64)) as memory:
        memory.remember("the blue boat leaks", id="a", user="ana")
        found = memory.search("who sold the old violin and the boat to Berta in winter?", user="ana")
        assert len(found) == 0
        assert found.trace.refused
        assert found.trace.candidates
        assert found.trace.dropped == ()
        why = memory.why("who sold the old violin and the boat to Berta in winter?", "a", user="ana")
        assert not why.returned
        assert why.verdict == f"the question was refused: {found.trace.refused}"
        assert memory.search("the blue boat", user="ana").trace.refused == ""


def test_nothing_is_refused_in_the_reference_recipe():
    with opened(Settings.reference(), embedder=HashEmbedder(64)) as memory:
        memory.remember("the blue boat leaks", id="a", user="ana")
        found = memory.search("who sold the old violin and the boat to Berta in winter?", user="ana")
        assert found.trace.refused == ""


@cache
def sample_memory():
    """The sample history, remembered once for all tests of this file; nothing changes it."""
    memory = Memory.open(":memory:", settings=Settings())
    for session, messages in sample.sessions():
        memory.remember(messages, user=sample.USER, session=session)
    return memory


@pytest.mark.parametrize("profile", ["fast", "balanced", "hybrid"])
def test_a_plainly_unrelated_question_gets_an_empty_result(profile):
    assert len(sample_memory().search(UNRELATED, user=sample.USER, profile=profile)) == 0


def test_the_questions_of_the_sample_are_not_refused_and_find_their_turns():
    asked = [question for question in sample.questions() if question["kind"] == "words"]
    found = 0
    for question in asked:
        hits = sample_memory().search(question["question"], user=sample.USER, limit=5)
        found += any(hit.unit.message_id in question["gold"] for hit in hits)
    assert len(asked) == 24
    assert found >= 22


def test_the_derived_thresholds_refuse_most_of_what_may_be_refused():
    near, far = np.array([[[0.6, 0.3]]] * 20), np.array([[[0.1, 0.1]]] * 20)
    derived = derivation.chosen({("chat", 0, True): near, ("chat", 0, False): far, ("chat", 1, False): far}, 1.0)
    assert derivation.share(near, derived["coverage"], derived["cosine"]) == 1.0
    assert derived["chosen on"]["chat"] == {"kept": 1.0, "refused": 1.0}
    assert derived["held out"]["chat"] == {"refused": 1.0}
