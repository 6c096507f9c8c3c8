"""What was kept while a model failed: found by its words at its rank, mended by a question, and never in silence."""

import dataclasses

import numpy as np
import pytest

from builders import NOW, later, opened, watched
from holdfast import EmbedderError, Memory, Settings
from holdfast.server import host
from holdfast.testing.contracts import HashEmbedder

EAGER = Settings.load({"refusal.enabled": False}, environ={}).without_timeouts()
OTHERS = [f"We went to the {place} with the dog." for place in ("lake", "hills", "market", "harbour", "fair")]
CODE, QUESTION = "My locker code is 4711.", "What is my locker code?"
CHAT = [f"The {one} is in the cellar." for one in ("bike", "sledge", "ladder", "tent", "paint")]


class Watch:
    """A stopwatch that only moves when told."""

    seconds = 0.0

    def __call__(self):
        return self.seconds


class Fickle(HashEmbedder):
    """Fails while `fails` says how, after `takes` seconds of a watch; counts what it was asked to embed."""

    def __init__(self, watch=None):
        super().__init__(64)
        self.watch, self.takes, self.fails, self.refused, self.asked = watch, 0.0, None, "", 0

    def embed_documents(self, texts):
        self.asked += 1
        if self.fails or (self.refused and any(self.refused in text for text in texts)):
            if self.watch is not None:
                self.watch.seconds += self.takes
            raise self.fails or EmbedderError("this text is refused")
        return super().embed_documents(texts)


def fallen_behind(memory, embedder, error=None):
    memory.remember([*OTHERS, *CHAT, *(f"{one} Twice." for one in OTHERS)], user="ana", session="s")
    embedder.fails = error or EmbedderError("timeout")
    [written] = memory.remember(CODE, user="ana", session="s")
    assert written.waits
    return written


@pytest.mark.parametrize("settings", [EAGER, Settings.reference().without_timeouts()], ids=["default", "reference"])
def test_a_unit_that_waits_for_its_vector_is_found_by_its_words_at_their_rank(settings):
    embedder = Fickle()
    with opened(settings, embedder=embedder) as memory:
        written = fallen_behind(memory, embedder)
        found = memory.search(QUESTION, user="ana", explain=True)
        assert (found[0].unit.id, found[0].cosine) == (written.id, None)
        assert all(hit.cosine is not None for hit in found[1:])  # compared by meaning as before
        for hit in found:
            assert hit.contributions.compose() == hit.score
        assert "4711" in memory.assemble(QUESTION, user="ana", session="new", budget=300, track_access=False).text
        assert [one for one in found.warnings if "pending for 1 of 16 units" in one and "timeout" in one]


def test_the_next_question_embeds_what_waits():
    embedder = Fickle()
    with opened(EAGER, embedder=embedder) as memory:
        written = fallen_behind(memory, embedder)
        embedder.fails = None
        found = memory.search(QUESTION, user="ana")
        assert (found[0].unit.id, found.warnings) == (written.id, ())
        assert found[0].cosine is not None
        assert memory.stats(user="ana", whole=True).waiting == 0


def test_what_waits_is_judged_by_the_gate_when_it_is_embedded():
    embedder = Fickle()
    with opened(EAGER, embedder=embedder) as memory, opened(EAGER, embedder=HashEmbedder(64)) as well:
        embedder.fails = EmbedderError("timeout")
        told = {"role": "user", "content": "I prefer tea in the morning."}
        [written], [at_once] = (one.remember(told, user="ana", session="s") for one in (memory, well))
        assert memory.get(written.id, user="ana").scope == "session"
        embedder.fails = None
        memory.search("tea", user="ana")
        assert memory.get(written.id, user="ana").scope == well.get(at_once.id, user="ana").scope == "user"


def test_an_embedder_that_is_down_is_tried_ever_more_seldom_and_then_mended():
    watch = Watch()
    embedder = Fickle(watch)
    with watched(watch), opened(EAGER, embedder=embedder) as memory:
        fallen_behind(memory, embedder)
        tries = []
        for _ in range(200):
            before = embedder.asked
            memory.search(QUESTION, user="ana")
            if embedder.asked > before:
                tries.append(watch.seconds)
            watch.seconds += 1.0
        assert tries == [0, 1, 3, 7, 15, 31, 63, 127]
        embedder.fails = None
        watch.seconds += 600.0
        assert memory.search(QUESTION, user="ana").warnings == ()


def test_questions_do_not_wait_for_an_embedder_that_hangs():
    watch = Watch()
    embedder = Fickle(watch)
    embedder.takes = 30.0
    with watched(watch), opened(EAGER, embedder=embedder) as memory:
        fallen_behind(memory, embedder)
        assert embedder.asked == 2
        for _ in range(50):  # half a minute of questions
            assert "timeout" in memory.search(QUESTION, user="ana").degraded
            memory.remember(f"It is {watch.seconds} now.", user="ana", session="s")
            watch.seconds += 0.6
        assert embedder.asked == 2
        watch.seconds += 31.0
        memory.search(QUESTION, user="ana")
        assert embedder.asked == 3  # one time limit, not one for each text
        began = watch.seconds
        memory.remember(["a word"] * 300, user="ana")
        assert watch.seconds == began


def test_a_text_that_the_embedder_refuses_holds_up_no_other():
    embedder = Fickle()
    with opened(EAGER, embedder=embedder) as memory:
        embedder.refused = "4711"
        written = memory.remember([*OTHERS, *CHAT, CODE], user="ana", session="s")
        assert all(one.waits for one in written)  # one batch
        found = memory.search(QUESTION, user="ana")
        assert memory.stats(user="ana", whole=True).waiting == 1
        assert (found[0].unit.text, found[0].cosine) == (CODE, None)
        assert ["pending for 1 of 11 units" in one for one in found.warnings] == [True]


ANY = [RuntimeError("CUDA out of memory"), TimeoutError("too slow"), KeyError("model")]


@pytest.mark.parametrize("error", ANY, ids=lambda one: type(one).__name__)
def test_whatever_an_embedder_raises_is_its_failure_and_no_message_is_lost(error):
    embedder = Fickle()
    with opened(EAGER, embedder=embedder) as memory:
        written = fallen_behind(memory, embedder, error)
        again = memory.remember({"role": "user", "content": CODE, "id": "m1"}, user="ana", session="s")
        assert [one.waits for one in again] == [True]
        assert memory.get(written.id, user="ana").text == CODE
        assert type(error).__name__ in memory.search(QUESTION, user="ana").warnings[0]
        messages = [{"role": "user", "content": QUESTION}]
        shown = host.assemble(memory, messages, user="ana", session="z", budget=4_000)
        assert (shown.messages, "4711" in shown.addition) == (tuple(messages), True)


def test_a_host_gets_its_messages_back_whatever_happens():
    class Broken(Memory):
        def assemble(self, *_, **__):
            raise ZeroDivisionError("a bug")

    with Broken(opened(EAGER).store, EAGER, lambda: NOW) as memory:
        messages = [
            {"role": "user", "content": [{"type": "x", "value": object()}]},
            {"role": "user", "content": "Where?"},
        ]
        shown = host.assemble(memory, messages, user="ana", session="z", budget=4_000)
        assert (shown.messages, shown.addition) == (tuple(messages), "")
        assert "ZeroDivisionError: a bug" in shown.reason


class Broken:
    name = "broken"

    def __init__(self, gives):
        self.gives = gives

    def summarise(self, turns, *, max_tokens, keep=()):
        if isinstance(self.gives, Exception):
            raise self.gives
        return self.gives


@pytest.mark.parametrize("gives", [RuntimeError("gone"), None, "a text"], ids=["an error", "nothing", "no writing"])
def test_whatever_a_summariser_does_summaries_are_extractive_then(gives):
    settings = dataclasses.replace(EAGER, embedding=dataclasses.replace(EAGER.embedding, embedder="none"))
    summariser = Broken(gives)
    with Memory.open(
        ":memory:", settings=settings, now=lambda: NOW, embedder=HashEmbedder(64), summariser=summariser
    ) as memory:
        words = np.random.default_rng(1).permuted(np.array(" ".join(OTHERS).split() * 140).reshape(140, -1), axis=1)
        said = [{"role": "user", "content": f"{' '.join(row)} {place}"} for place, row in enumerate(words)]
        memory.remember(said, user="ana", session="s", at=later(days=-1))
        [made] = memory.compact(user="ana", session="s")
        assert made.summaries
        assert {memory.get(one, user="ana").lineage.method for one in made.summaries} == {"extractive"}
        assert any("extractive instead" in note for cluster in made.clusters for note in cluster.outcome.notes)


def test_compaction_leaves_nothing_half_done_when_the_embedder_fails():
    embedder = Fickle()
    with opened(EAGER, embedder=embedder) as memory:
        said = [f"{one} {place} {' '.join(CHAT)}" for place in range(30) for one in OTHERS]
        memory.remember(said, user="ana", session="s")
        embedder.fails = RuntimeError("gone")
        with pytest.raises(EmbedderError, match="RuntimeError: gone"):
            memory.compact(user="ana", session="s")
        assert not [one for one in memory.list(user="ana", limit=None) if one.kind == "summary" or one.covered_by]
