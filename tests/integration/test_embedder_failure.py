"""An embedder that fails at question time: words answer, the result says so, and meaning is back when it is."""

import numpy as np
import pytest

from builders import NOW, opened, watched
from holdfast import BudgetError, EmbedderError, InputError, Memory, MissingExtraError, Settings
from holdfast.testing.contracts import HashEmbedder

EAGER = Settings.load({"refusal.enabled": False}, environ={}).without_timeouts()
AWAY = "the model server is away; start it again"
QUESTION = "When did the ferry leave, before or after the sale of the boat?"


class Fickle(HashEmbedder):
    """Fails while `fails` says how: with an error, or with a vector that cannot be right."""

    def __init__(self):
        super().__init__(64)
        self.fails = None
        self.asked = 0

    def embed_query(self, text):
        self.asked += 1
        vector = super().embed_query(text)
        if isinstance(self.fails, Exception):
            raise self.fails
        return vector if self.fails is None else self.fails(vector)


@pytest.fixture
def embedder():
    return Fickle()


@pytest.fixture
def memory(embedder):
    with opened(EAGER, embedder=embedder) as memory:
        memory.remember(["the ferry leaves at ten", "we sold the boat"], user="ana", session="s")
        memory.remember("the kettle is copper", user="ana", id="kettle")
        yield memory


def standing(found):
    return [(hit.unit.id, hit.score, hit.cosine) for hit in found]


FAILURES = {
    "an error": EmbedderError(AWAY),
    "any error": RuntimeError("CUDA out of memory"),
    "a timeout": TimeoutError("too slow"),
    "an input error": InputError("that is no text"),
    "nothing": lambda _: None,
    "a missing library": MissingExtraError("install it"),
    "not a number": lambda vector: vector * np.float32("nan"),
    "too short": lambda vector: vector[:7],
}


@pytest.mark.parametrize("failure", FAILURES)
def test_search_answers_by_words_says_so_and_recovers(memory, embedder, failure):
    before = memory.search("the copper kettle", user="ana")
    assert before.degraded == ""
    assert before[0].cosine is not None
    embedder.fails = FAILURES[failure]
    found = memory.search("the copper kettle", user="ana", explain=True)
    assert found[0].unit.id == "kettle"
    assert {hit.cosine for hit in found} == {None}
    assert found.degraded.startswith("embedder unavailable; lexical results only: ")
    assert found.warnings == (found.degraded,) == (found.trace.degraded,)
    with pytest.raises(EmbedderError) as refused:
        memory.search("the copper kettle", user="ana", strict=True)
    assert str(refused.value) in found.degraded
    embedder.fails = None
    after = memory.search("the copper kettle", user="ana")
    assert (standing(after), after.degraded) == (standing(before), "")


def test_words_answer_as_they_do_in_a_memory_without_an_embedder(memory, embedder):
    embedder.fails = EmbedderError(AWAY)
    with opened(EAGER) as plain:
        plain.remember("the kettle is copper", user="ana", id="kettle")
        plain.remember("the ferry leaves at ten", user="ana", id="ferry")
        with opened(EAGER, embedder=embedder) as failing:
            failing.remember("the kettle is copper", user="ana", id="kettle")
            failing.remember("the ferry leaves at ten", user="ana", id="ferry")
            assert standing(failing.search("copper kettle", user="ana")) == standing(
                plain.search("copper kettle", user="ana")
            )


@pytest.mark.parametrize("question", [QUESTION, "the copper kettle"])
def test_a_context_is_made_by_words_says_so_and_recovers(memory, embedder, question):
    before = memory.assemble(question, user="ana", budget=400, track_access=False)
    assert before.degraded == ""
    embedder.fails = EmbedderError(AWAY)
    context = memory.assemble(question, user="ana", budget=400, track_access=False)
    assert context.items
    assert context.degraded == f"embedder unavailable; lexical results only: {AWAY}" == context.trace.degraded
    assert context.degraded in context.warnings
    assert context.explain().count(AWAY) == 1
    assert context.to_json()["degraded"] == context.degraded
    with pytest.raises(EmbedderError, match="away"):
        memory.assemble(question, user="ana", budget=400, strict=True)
    embedder.fails = None
    assert memory.assemble(question, user="ana", budget=400, track_access=False) == before


def test_a_context_names_both_what_it_goes_without(memory, embedder):
    embedder.fails = EmbedderError(AWAY)
    small = memory.assemble("the copper kettle", user="ana", session="s", budget=8)
    assert "left out" in small.degraded
    assert AWAY in small.degraded
    embedder.fails = None
    with pytest.raises(BudgetError):
        memory.assemble("the copper kettle", user="ana", session="s", budget=8, strict=True)


@pytest.mark.parametrize("budget", [None, 400])
def test_why_answers_by_words_and_says_so(memory, embedder, budget):
    embedder.fails = EmbedderError(AWAY)
    told = memory.why("the copper kettle", "kettle", user="ana", budget=budget)
    assert (told.returned, told.degraded) == (True, f"embedder unavailable; lexical results only: {AWAY}")
    assert "dense" not in {one.strategy_id for one in told.standings}
    embedder.fails = None
    assert memory.why("the copper kettle", "kettle", user="ana", budget=budget).degraded == ""


def test_a_profile_without_meaning_is_never_degraded(memory, embedder):
    embedder.fails = EmbedderError(AWAY)
    assert memory.search("kettle", user="ana", profile="fast", strict=True).degraded == ""
    with opened(EAGER) as plain:  # told to have no embedder
        plain.remember("the kettle is copper", user="ana")
        assert plain.search("kettle", user="ana", strict=True).degraded == ""


def test_strict_is_a_flag(memory):
    with pytest.raises(InputError, match="strict"):
        memory.search("kettle", user="ana", strict="yes")


def test_a_model_that_cannot_be_loaded_leaves_the_words_and_is_no_silent_fallback(tmp_path):
    path = tmp_path / "m.db"
    with opened(EAGER, path=path) as memory:
        memory.remember("the kettle is copper", user="ana", id="kettle")
    broken = Settings.load(
        {"embedding.embedder": "onnx", "embedding.folder": str(tmp_path / "nowhere"), "refusal.enabled": False},
        environ={},
    )
    with Memory.open(path, settings=broken.without_timeouts(), now=lambda: NOW) as memory:
        assert "nowhere" in memory.search("kettle", user="ana").degraded
        assert "nowhere" in memory.assemble("kettle", user="ana", budget=400).degraded
        assert "nowhere" in memory.why("kettle", "kettle", user="ana", budget=400).degraded
        for ask in (memory.search, memory.assemble):
            with pytest.raises(EmbedderError, match="nowhere"):
                ask("kettle", user="ana", strict=True)
        [written] = memory.remember("the lamp is blue", user="ana")
        assert (written.status, written.waits) == ("added", True)
        memory.update("kettle", user="ana", text="the kettle is tin")
        found = memory.search("blue lamp", user="ana")
        assert (found[0].unit.id, "nowhere" in found.degraded) == (written.id, True)
    with opened(EAGER, path=path, embedder=HashEmbedder(64)) as memory:  # mended when one loads
        found = memory.search("blue lamp", user="ana")
        assert (found[0].unit.id, found.warnings) == (written.id, ())
        assert found[0].cosine is not None


class Watch:
    """A stopwatch that only moves when told."""

    def __init__(self):
        self.seconds = 0.0

    def __call__(self):
        return self.seconds


@pytest.mark.parametrize("place", ["embed_query", "space"])
def test_an_embedder_that_is_slow_to_fail_is_left_alone_for_a_minute(place):
    watch, attempts = Watch(), []

    class Hanging(HashEmbedder):
        up = True

        def wait(self):
            if not self.up:
                attempts.append(watch.seconds)
                watch.seconds += 30.0
                raise EmbedderError("no answer within 30 s")

        def embed_query(self, text):
            self.wait()
            return super().embed_query(text)

    hanging = Hanging(64)
    name = hanging.space
    if place == "space":  # as of an endpoint that was never reached
        Hanging.space = property(lambda one: one.wait() or name)
        hanging.__dict__.pop("space", None)
    with watched(watch), opened(EAGER, embedder=hanging) as memory:
        hanging.up = place == "embed_query"
        if hanging.up:
            memory.remember("the kettle is copper", user="ana")
        hanging.up = False
        for _ in range(3):
            assert "30 s" in memory.search("kettle", user="ana").degraded
            assert "30 s" in memory.assemble("kettle", user="ana", budget=300).degraded
        assert len(attempts) == 1
        with pytest.raises(EmbedderError, match="30 s"):  # whoever insists waits
            memory.search("kettle", user="ana", strict=True)
        hanging.up = True
        assert memory.search("kettle", user="ana", strict=True).degraded == ""
        watch.seconds += 61.0
        assert memory.search("kettle", user="ana").degraded == ""
