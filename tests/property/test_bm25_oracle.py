"""BM25 (C4) against two slow and obvious versions: one written from the contract, one from another library."""

import math
from collections import Counter

import bm25s
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import costly, opened
from holdfast.kernels import bm25
from holdfast.text.questions import ROLES_FOR_ACT, profile_query
from holdfast.text.terms import terms
from holdfast.types import FIELDS, ROLES

WEIGHTS = {
    "topic": 1.5,
    "claim": 1.0,
    "procedure": 1.0,
    "utility_acts": 0.8,
    "utility_note": 0.6,
    "condition": 0.6,
    "role": 0.5,
}
# Words of uneven frequency that the stemmer leaves alone; "narr" and "explain" also occur in role and acts.
WORDS = "oak oak oak oak elm elm elm fig fig ash narrative explain kelp-bed 3.0 苔".split()
# Questions whose acts prefer different roles, and one without an act.
HEADS = {"Explain": "explain", "Compare": "compare", "Implement": "implement", "Describe": "describe", "zzz": None}

phrases = st.lists(st.sampled_from(WORDS), max_size=6).map(" ".join)
questions = st.tuples(st.sampled_from(sorted(HEADS)), st.lists(st.sampled_from(WORDS), min_size=1, max_size=5))


def oracle(corpus, query, roles, k1=1.2, b=0.75, boost=1.3):
    """Score every unit of `corpus` ({id: {field: text}}), straight from C4 and with dictionaries only."""
    counted = {key: {f: Counter(terms(fields.get(f, ""))) for f in WEIGHTS} for key, fields in corpus.items()}
    average = {f: sum(unit[f].total() for unit in counted.values()) / len(counted) for f in WEIGHTS}
    scores = {}
    for key, unit in counted.items():
        total = 0.0
        for term in set(query):
            df = sum(any(other[f][term] for f in WEIGHTS) for other in counted.values())
            idf = math.log(1 + (len(counted) - df + 0.5) / (df + 0.5))
            for f, weight in WEIGHTS.items():
                if average[f] > 0 and unit[f][term]:
                    norm = k1 * (1 - b + b * unit[f].total() / average[f])
                    total += weight * idf * unit[f][term] * (k1 + 1) / (unit[f][term] + norm)
        scores[key] = total * (boost if corpus[key]["role"] in roles else 1.0)
    return scores


@st.composite
def corpora(draw):
    """Draw units with several fields, as a caller gives them."""
    units = []
    for i in range(draw(st.integers(1, 8))):
        role = draw(st.sampled_from(ROLES))
        statement = "procedure" if role == "Procedure" else "claim"
        unit = {"id": f"u{i}", "role": role, statement: draw(phrases.filter(bool))}
        for name in ("topic", "condition", "utility_note"):
            unit[name] = draw(st.just("") | phrases)
        unit["utility_acts"] = draw(st.lists(st.sampled_from(["explain", "describe"]), max_size=2, unique=True))
        units.append(unit)
    return units


def fields_of(unit):
    return {**unit, "utility_acts": " ".join(unit["utility_acts"])}


@costly
@given(corpora(), questions)
def test_search_scores_every_unit_as_the_formula_says(units, question):
    head, words = question
    text = f"{head} {' '.join(words)}"
    with opened() as memory:
        memory.remember(units, user="ana")
        result = memory.search(text, user="ana").trace.results[0]
    roles = ROLES_FOR_ACT[HEADS[head]] if HEADS[head] else ()
    expected = oracle({unit["id"]: fields_of(unit) for unit in units}, profile_query(text).terms, roles)
    found = {claim.unit_id: claim.raw_score for claim in result.candidates}
    assert found == pytest.approx({key: score for key, score in expected.items() if score > 0}, rel=1e-12)
    best = max(expected.values())
    for claim in result.candidates:
        assert claim.normalized_score == pytest.approx(claim.raw_score / best, rel=1e-12)


counts = st.integers(0, 4)


@given(
    st.data(),
    st.integers(1, 6),
    st.integers(1, 4),
    st.sampled_from([0.0, 0.5, 1.2]),
    st.sampled_from([0.0, 0.75, 1.0]),
)
def test_the_kernel_equals_the_formula_for_any_counts_and_constants(data, units, n_terms, k1, b):
    shape = (units, len(FIELDS), n_terms)
    tf = np.array(data.draw(st.lists(counts, min_size=math.prod(shape), max_size=math.prod(shape)))).reshape(shape)
    lengths = tf.sum(axis=2) + np.array(data.draw(st.lists(counts, min_size=units, max_size=units)))[:, None]
    df = [int((tf[:, :, t].sum(axis=1) > 0).sum()) for t in range(n_terms)]
    averages = lengths.sum(axis=0) / units
    boosts = np.array(data.draw(st.lists(st.sampled_from([1.0, 1.3]), min_size=units, max_size=units)))
    idfs = np.array([bm25.idf(units, d) for d in df])
    scores = bm25.scores(tf, lengths, idfs, averages, np.array([WEIGHTS[f] for f in FIELDS]), boosts, k1, b)
    for u in range(units):
        total = 0.0
        for f, name in enumerate(FIELDS):
            for t in range(n_terms):
                if tf[u, f, t]:
                    norm = k1 * (1 - b + b * lengths[u, f] / averages[f])
                    idf = math.log(1 + (units - df[t] + 0.5) / (df[t] + 0.5))
                    total += WEIGHTS[name] * idf * tf[u, f, t] * (k1 + 1) / (tf[u, f, t] + norm)
        assert scores[u] == pytest.approx(total * boosts[u], rel=1e-12, abs=0)
        assert 0.0 <= scores[u] < math.inf


@given(
    st.lists(
        st.lists(st.sampled_from("oak elm fig ash yew".split()), min_size=1, max_size=12), min_size=2, max_size=9
    ),
    st.sets(st.sampled_from("oak elm fig ash yew gum".split()), min_size=1),
)
def test_on_one_field_the_kernel_equals_the_bm25s_library(texts, query):
    query = sorted(query)
    library = bm25s.BM25(method="lucene", k1=1.2, b=0.75, dtype="float64")
    library.index(texts, show_progress=False)
    # Lucene's variant leaves out the constant factor k1 + 1, which C4 keeps.
    expected = library.get_scores(query) * (1.2 + 1)
    tf = np.array([[[text.count(term) for term in query]] for text in texts])
    lengths = np.array([[len(text)] for text in texts])
    idfs = np.array([bm25.idf(len(texts), sum(term in text for text in texts)) for term in query])
    scores = bm25.scores(tf, lengths, idfs, lengths.mean(axis=0), np.ones(1), np.ones(len(texts)), 1.2, 0.75)
    assert scores == pytest.approx(expected, rel=1e-5, abs=1e-9)
