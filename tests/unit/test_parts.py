"""A score as a short list: the parts add up to it, whatever stages, weights and ceilings lie between."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import NOW, costly, make_claims, make_pool, make_unit
from holdfast import Contribution, Memory, sample
from holdfast.cli.demo import TODAY
from holdfast.cli.draw import made_of
from holdfast.ranking.pool import StageEffect
from holdfast.ranking.score import Fusion, Scoring, explain_rel
from holdfast.settings import ScoreSettings
from holdfast.types import StrategyExplanation
from holdfast.why import ScorePart, parts_of, typed_words

shares = st.floats(0.0, 1.0)
STAGES = ("neighbours", "perspective", "time range", "identifiers", "mentions", "diversity", "a stage of tomorrow")


@st.composite
def scores(draw):
    """Build the tree of a hybrid score from random strategies and stages."""
    raws = draw(st.dictionaries(st.sampled_from(["lexical", "dense", "colour"]), shares, min_size=1))
    weights = {name: draw(st.floats(0.1, 1.0)) for name in raws}
    fusion = Fusion(weights, dict.fromkeys(raws, draw(st.floats(0.2, 2.0))), draw(shares), draw(st.floats(0.5, 2.0)))
    changes = draw(st.lists(st.tuples(st.sampled_from(STAGES), shares, shares), max_size=4))
    effects = tuple(StageEffect(stage, np.array([weight]), np.array([signal])) for stage, weight, signal in changes)
    claims = {name: make_claims(["u1"], {"u1": raw}) for name, raw in raws.items()}
    pool = dataclasses.replace(make_pool([(make_unit(), 0.0)], claims=claims), effects=effects)
    accounts = {name: StrategyExplanation(Contribution("raw score", raw), (name,)) for name, raw in raws.items()}
    return Scoring(ScoreSettings(), None, NOW).explain(pool, 0, explain_rel(pool, 0, accounts, fusion))


@costly
@given(scores())
def test_the_parts_add_up_to_the_score(score):
    found = parts_of(score)
    assert sum(part.value for part in found) == pytest.approx(score.value, abs=1e-9)
    assert {part.name for part in found} <= {"lexical", "dense", "colour", "agreement", "recency", "scope", *STAGES}
    assert all(part.value >= 0.0 for part in found if not part.change)


def test_a_stage_is_shown_by_what_it_changed():
    before = Contribution.of("fused", "sum", Contribution("lexical", 0.4), Contribution("dense", 0.2))
    mixed = Contribution.of(
        "neighbours",
        "sum",
        Contribution.of("before", "product", Contribution("what is left", 0.5), before),
        Contribution.of("added", "product", Contribution("weight", 0.5), Contribution("signal", 0.8)),
    )
    after = Contribution.of("rel with neighbours", "minimum", mixed, Contribution("ceiling", 1.0))
    assert parts_of(after) == (
        ScorePart("lexical", 0.4),
        ScorePart("dense", 0.2),
        ScorePart("neighbours", pytest.approx(0.1), change=True),
    )


def test_every_profile_has_parts_that_add_up_and_plain_names():
    asked = (
        ("What did Mara say in April about the bakery?", "hybrid"),
        ("Why did Mara drop PostgreSQL for Tidepool?", "hybrid"),
        ("bakery opening", "fast"),
        ("bakery opening postponed", "balanced"),
        ("Who is Mara?", "thinking"),
    )
    with Memory.open(":memory:", now=lambda: TODAY) as memory:
        for session, messages in sample.sessions():
            memory.remember(messages, user=sample.USER, session=session)
        for question, profile in asked:
            found = memory.search(question, user=sample.USER, profile=profile, explain=True)
            assert found
            for hit in found:
                parts = parts_of(hit.contributions)
                assert sum(part.value for part in parts) == pytest.approx(hit.score, abs=1e-9)
                assert 1 <= len(parts) <= 10
                line = made_of(hit.contributions, hit.unit, typed_words(question)).plain
                assert line.isprintable()
                assert not {"α", "β", "γ", "λ", "ω", "hdc-vsa", "lexical", "dense", "perspective"} & {*line.split()}


def test_words_are_shown_as_they_were_typed():
    typed = typed_words("What is the average complexity of Quicksort's follow-up, naïvely?")
    assert {typed[term] for term in ("averag", "complex", "quicksort")} == {"average", "complexity", "Quicksort's"}
    assert typed["follow-up"] == "follow-up"
    assert typed_words("京都")["京都"] == "京都"
