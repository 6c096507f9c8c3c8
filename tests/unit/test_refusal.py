"""The no-answer rule (C4): decided once from the pool, by words and meaning together; and how sure a hit is."""

import dataclasses
from functools import cache

import numpy as np
import pytest

from builders import ask, constants, make_claims, make_pool, make_unit, opened, program
from holdfast import Memory, Settings, sample
from holdfast.cli import output
from holdfast.kernels import bm25
from holdfast.ranking import score as ranking
from holdfast.ranking.read import RECIPES
from holdfast.ranking.score import LEAST_NEARNESS_TURNS, LIMITS, Evidence, confidence, missing, nearness, refusal
from holdfast.retrieval.lexical import LexicalStrategy
from holdfast.settings import RefusalSettings
from holdfast.testing.contracts import HashEmbedder
from holdfast.text.questions import profile_query
from holdfast.types import Readings, TurnReading

derivation = program("benchmarks/refusal.py")

UNRELATED = "What is the average complexity of quicksort?"
ON = RefusalSettings()


@pytest.fixture
def plain_bars():
    """Ask for powers of two, so that every sum is exact; the length of a question asks for nothing."""
    with constants(ranking, LEAST_NEARNESS_TURNS=1.0, LEAST_NEARNESS_DOCUMENTS=1.5):
        yield


def pool_of(*near, author="user"):
    """Return a pool of candidates of which words and meaning say so much: (coverage, cosine), None for nothing."""
    ids = [f"u{row}" for row in range(len(near))]
    words = {unit_id: coverage for unit_id, (coverage, _) in zip(ids, near, strict=True) if coverage is not None}
    cosines = {unit_id: cosine for unit_id, (_, cosine) in zip(ids, near, strict=True) if cosine is not None}
    claims = {
        "lexical": make_claims(ids, dict.fromkeys(words, 3.0), coverage=words),
        "dense": make_claims(ids, cosines),
    }
    said = {name: made for name, made in claims.items() if made[1].any()}
    return make_pool([(make_unit(unit_id, author=author), 1.0) for unit_id in ids], claims=said)


@pytest.mark.usefixtures("plain_bars")
@pytest.mark.parametrize(
    ("coverage", "cosine", "refused"),
    [
        (1.0, 0.0, False),
        (0.0, 0.25, False),
        (0.5, 0.125, False),
        (0.999, 0.0, True),
        (0.0, 0.249, True),
        (0.5, 0.124, True),
        (0.0, 0.0, True),
        (0.999, None, True),
        (None, 0.25, False),
        (None, 0.249, True),
        (None, None, True),
    ],
)
def test_coverage_and_cosine_are_weighed_together(coverage, cosine, refused):
    assert bool(refusal(pool_of((coverage, cosine)), 0, ON)) == refused


@pytest.mark.usefixtures("plain_bars")
def test_more_is_asked_of_documents_and_either_kind_may_answer():
    near = (0.5, 0.125)
    assert refusal(pool_of(near), 0, ON) == ""
    assert refusal(pool_of(near, author="document"), 0, ON) != ""
    assert refusal(pool_of((0.5, 0.25), author="document"), 0, ON) == ""


@pytest.mark.usefixtures("plain_bars")
def test_less_is_asked_of_a_short_question():
    pool = pool_of((0.5, 0.2))
    assert [bool(refusal(pool, terms, ON)) for terms in (1, 2, 3, 9)] == [False, False, True, True]
    assert nearness(0.5, 0.2, 4) == nearness(0.5, 0.2, 400)


def test_the_reason_names_both_numbers():
    reason = refusal(pool_of((0.125, 0.0), (0.0, 0.0625)), 3, ON)
    assert "0.12 of its words" in reason or "0.13 of its words" in reason
    assert "cosine above 0.06" in reason


@pytest.mark.usefixtures("plain_bars")
def test_the_best_words_and_the_best_meaning_may_be_of_different_candidates_wherever_they_rank():
    words, meaning, far = (0.5, 0.0), (0.0, 0.125), (0.0, 0.0)
    assert refusal(pool_of(words, meaning), 0, ON) == refusal(pool_of(far, meaning, words), 0, ON) == ""
    assert refusal(pool_of(words, far), 0, ON) != ""


def test_a_unit_that_holds_every_word_of_the_question_is_never_refused():
    assert refusal(pool_of((0.0, 0.2), (1.0, 0.0)), 9, ON) == ""
    assert refusal(pool_of((1.0, 0.0), author="document"), 9, ON) == ""


def test_nothing_found_is_not_refused_and_a_switched_off_rule_refuses_nothing():
    assert refusal(pool_of(), 3, ON) == ""
    assert refusal(pool_of((0.0, 0.0)), 3, RefusalSettings(enabled=False)) == ""


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


# ------------------------------------------------------------------------------------------------- confidence


@pytest.mark.parametrize("read", [False, True])
def test_confidence_grows_with_the_evidence_and_is_a_share(read):
    given = Evidence(1.0, cosine=0.3, rel=0.5, rank=0.7, share=-1.0 * read, answers=0.5 * read)
    better = [given._replace(cosine=0.4), given._replace(rel=0.6), given._replace(rank=0.0)]
    better += [given._replace(share=-0.5), given._replace(answers=1.0)] if read else []
    for stronger in better:
        assert 0.0 < confidence(given, read=read) < confidence(stronger, read=read) < 1.0


def test_every_hit_with_a_vector_says_how_sure_it_is():
    hits = sample_memory().search("Who has the key to our flat?", user=sample.USER)
    assert all(0.0 < hit.confidence < 1.0 for hit in hits)
    assert hits[0].confidence > hits[-1].confidence
    [first, *_] = output.search_json(hits)["hits"]
    assert first["confidence"] == hits[0].confidence
    with opened() as memory:
        memory.remember("the blue boat leaks", user="ana")
        [hit] = memory.search("blue boat", user="ana")
        assert hit.confidence is None
        assert "confidence" not in output.hit_json(hit)


def test_what_the_reader_says_of_a_hit_changes_how_sure_it_is():
    asked = {"query": "Who has the key to our flat?", "user": sample.USER}
    read, unread = sample_memory().search(**asked), sample_memory().search(**asked, read=False)
    assert read.trace.readings is not None
    assert unread.trace.readings is None
    alike = {hit.unit.id: hit.confidence for hit in unread if hit.cosine is not None}
    assert any(hit.confidence != alike.get(hit.unit.id) for hit in read)


# ------------------------------------------------------------------------------------------------- derivation


def asked(near, *, answerable, half=0, hits=()):
    return derivation.Asked("chat", "turns", half, answerable, near, list(hits))


def test_the_derived_threshold_refuses_most_of_what_may_be_refused():
    own = [asked(1.0 + number / 100, answerable=True) for number in range(100)]
    strange = [asked(0.995, answerable=False), asked(0.995, answerable=False, half=1), asked(3.0, answerable=False)]
    assert derivation.choose(own, "turns", 1.0) == 1.0
    assert derivation.choose(own, "turns", 0.98) == 1.02
    found = derivation.point([*own, *strange], 1.0)
    assert found["chosen on"]["chat"] == {"kept": 1.0, "refused": 0.5}
    assert found["held out"]["chat"] == {"refused": 1.0}


def test_the_fit_finds_how_often_hits_answer():
    often = [((1.0, 1.0), number < 80) for number in range(100)]
    seldom = [((1.0, 0.0), number < 20) for number in range(100)]
    questions = [asked(1.0, answerable=True, hits=often + seldom)]
    weights = derivation.fit(*derivation.rows_of(questions, 2))
    said = 1.0 / (1.0 + np.exp(-np.array([[1.0, 1.0], [1.0, 0.0]]) @ weights))
    assert said.tolist() == pytest.approx([0.8, 0.2], abs=1e-6)


def chat(who, nothing, near=1.0, **kind):
    """Return one question of a chat: by default one of its own that has an answer."""
    said = {"answerable": True, **kind}
    return derivation.Asked("chat", "turns", 0, near=near, hits=[], who=who, nothing=nothing, **said)


def test_the_derived_limits_keep_answers_and_tell_near_misses_and_others():
    questions = [chat(who, -3.0 + number / 10) for who in "ab" for number in range(40)]
    questions += [chat(who, 7.0, answerable=False, near_topic=True) for who in "ab" for _ in range(4)]
    questions += [chat(who, 3.5, 0.5, answerable=False) for who in "ab" for _ in range(4)]
    found = derivation.derive_limits(questions, 0.66)
    for part in ("with the limits", "each person left out"):
        assert found[part]["chat"] == {"answerable": 0.0, "near topic": 1.0, "strangers": 1.0}
    assert found["by nearness alone"]["chat"] == {"answerable": 0.0, "near topic": 0.0, "strangers": 1.0}
    assert found["limits"]["nothing"] == 5.0


def test_the_calibration_error_is_how_far_confidence_is_from_the_truth():
    rows = [(0.85, number < 6, True) for number in range(10)] + [(0.05, False, False)] * 10
    found = derivation.described(np.array(rows, dtype=np.float64))
    assert found["error"] == pytest.approx(0.15, abs=1e-9)
    assert (found["error of first hits"], found["first hits"]) == (0.25, [0.85, 0.6])


def test_conversations_of_a_large_set_are_left_out_together():
    folds = derivation.folds([chat(f"{number:02}", 0.0) for number in range(25)])
    assert len({*folds.values()}) == derivation.FOLDS
    assert len({*derivation.folds([chat(who, 0.0) for who in "abc"]).values()}) == 3


@pytest.mark.usefixtures("plain_bars")
def test_less_nearness_may_be_asked_of_turns_and_never_of_documents():
    near = (0.5, 0.05)
    assert refusal(pool_of(near), 0, ON) != ""
    assert refusal(pool_of(near), 0, ON, turns=0.7) == ""
    assert refusal(pool_of(near, author="document"), 0, ON, turns=0.7) != ""


def test_the_reader_refuses_above_its_limit_unless_a_document_is_near_or_refusal_is_off():
    pool = dataclasses.replace(pool_of((0.5, 0.3)), readings=Readings({"u0": TurnReading(0.0, 0.1, 0.0, 0.0)}, 4.5))
    assert missing(pool, 2, ON, least=4.25) == "the one turn read does not answer it (4.50 > 4.25)"
    assert missing(pool, 2, ON, least=4.75) == ""
    assert missing(pool, 2, RefusalSettings(enabled=False), least=4.25) == ""
    assert missing(dataclasses.replace(pool, readings=None), 2, ON, least=4.25) == ""
    near = dataclasses.replace(pool_of((0.5, 0.4), author="document"), readings=pool.readings)
    assert missing(near, 2, ON, least=4.25) == ""


def test_every_way_of_reading_has_its_limits():
    assert LIMITS.keys() == RECIPES.keys()
    for limits in LIMITS.values():
        assert limits.far <= LEAST_NEARNESS_TURNS <= limits.near
        assert limits.nothing_far <= limits.nothing
