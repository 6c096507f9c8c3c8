"""What a temporal question brings back (C13): the units richest in anchors, whatever else cut them off."""

import random

import numpy as np
import pytest

from builders import later, opened
from holdfast import Settings
from holdfast.kernels.vectors import halve
from holdfast.store.queries import DenseQuery
from holdfast.store.sqlite.sqlite_reading import SqliteReading
from holdfast.testing.contracts import HashEmbedder
from holdfast.text.temporal import anchor_density

EMBEDDER = HashEmbedder(64)
QUESTION = "How many days after the kitchen renovation did I meet Rachel?"
WORDS = "kitchen renovation Rachel tiles sink oven days meet after lamp floor wall".split()
DATED = ["", "", "", "", " on 2026-03-14", " at 14:30 on 2026-03-15", " on 2026-03-14 at 14:30, a Saturday"]


@pytest.fixture(params=[0, 1])
def texts(request):
    """Three hundred turns of the question's words, some of them dated: far more than any strategy looks at."""
    chance = random.Random(request.param)
    words = [" ".join(chance.choices(WORDS, k=chance.randint(2, 9))) for _ in range(300)]
    return {f"u{place:03}": f"{said}{chance.choice(DATED)} {place}x" for place, said in enumerate(words)}


def told(settings, texts):
    memory = opened(settings.without_timeouts(), embedder=EMBEDDER)
    for minutes, (key, text) in enumerate(texts.items(), start=1):
        memory.remember(text, user="ana", id=key, at=later(minutes=-minutes))
    return memory


def by_anchors(texts, question, outside, least):
    """Return C_rec by definition: of all that is near enough and outside C2, the first ten by (A, cosine, id)."""
    keys, asked = [*texts], EMBEDDER.embed_query(question).astype(np.float64)
    rows = halve(EMBEDDER.embed_documents([*texts.values()])).astype(np.float64)
    cosines = rows @ asked / (np.linalg.norm(rows, axis=1) * np.linalg.norm(asked))
    near = [
        (-anchor_density(texts[key]), -cosine, key)
        for key, cosine in zip(keys, cosines.tolist(), strict=True)
        if cosine >= least and key not in outside
    ]
    return [key for *_, key in sorted(near)[:10]]


@pytest.mark.parametrize("budget", [200, 3000])
def test_the_reference_recipe_recovers_what_the_definition_says(texts, budget):
    with told(Settings.reference(), texts) as memory:
        projection = memory.assemble(QUESTION, user="ana", budget=budget, track_access=False).trace.projection
        assert projection.active
        second = {one.unit.id for one in projection.second}
        expected = by_anchors(texts, QUESTION, second, memory.settings.temporal.recovery_similarity)
        assert [one.unit.id for one in projection.recovered] == expected


def test_a_recovered_unit_may_lie_beyond_what_any_strategy_looks_at():
    undated = {
        f"u{place:03}": f"the kitchen renovation with Rachel, days after lamp {place}x" for place in range(200)
    }
    dated = "Rachel sat down with me on 2026-03-14 at 14:30, a Saturday, for a coffee and a long talk"
    with told(Settings(), undated | {"dated": dated}) as memory:
        context = memory.assemble(QUESTION, user="ana", budget=300, track_access=False)
        assert "dated" not in {one.unit_id for one in context.trace.candidates}
        assert "dated" in {one.unit.id for one in context.trace.projection.recovered}


def test_what_the_tail_shows_or_another_user_said_is_not_recovered(texts):
    with told(Settings(), texts) as memory:
        dated = "Rachel and I met after the kitchen renovation, on 2026-03-14 at 14:30, a Saturday"
        [mine] = memory.remember(dated, user="ana", session="now")
        memory.remember(dated, user="ben", id="other")
        context = memory.assemble(QUESTION, user="ana", session="now", budget=600, track_access=False)
        recovered = {one.unit.id for one in context.trace.projection.recovered}
        assert mine.id in {item.id for item in context.section("tail").items}
        assert not recovered & {mine.id, "other"}


def test_a_question_that_is_not_temporal_looks_for_no_anchors(texts, monkeypatch):
    with told(Settings(), texts) as memory:
        asked = []
        find = vars(SqliteReading)["propose"]

        def noting(reading, query, depth, deadline):
            asked.append(query)
            return find.__get__(reading, SqliteReading)(query, depth, deadline)

        monkeypatch.setattr(SqliteReading, "propose", noting)
        context = memory.assemble("Which tiles did Rachel like?", user="ana", budget=300, track_access=False)
        assert not context.trace.projection.active
        assert {query.density for query in asked if isinstance(query, DenseQuery)} == {None}
