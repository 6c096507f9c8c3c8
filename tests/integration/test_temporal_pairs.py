"""Two dated turns that belong together reach the context among many turns that only name both events (C13)."""

from datetime import timedelta

import pytest

from builders import NOW, opened, program
from holdfast import Settings
from holdfast.models import build_embedder
from holdfast.settings import EmbeddingSettings

ADJECTIVES = "new old big small red blue cheap nice slow bright dark warm loud quiet".split()
OCCASIONS = "chat call evening walk".split()
# Written by somebody else than who derived the weights: event, its turn, the other event, its turn, its word.
PAIRS = [
    ("the fair", "The fair took place on {} in the old harbour.",
     "I meet Anna", "I met Anna for the first time on {} at the bakery.", "Anna"),
    ("the move", "We moved house on {}, boxes everywhere.",
     "I start my new job", "My new job at the mill began on {}.", "job"),
    ("the wedding", "Their wedding was on {} by the lake.",
     "we buy the boat", "We bought the boat on {} from a retired captain.", "boat"),
    ("the renovation", "The kitchen renovation was finished on {}.",
     "I adopt the cat", "I adopted the cat on {} from the shelter.", "cat"),
    ("the conference", "The conference opened on {} in Malta.",
     "I book the hotel", "I booked the hotel on {} by phone.", "hotel"),
    ("the exam", "My exam was on {}, three hours long.",
     "I buy the piano", "The piano was delivered on {}.", "piano"),
    ("the surgery", "My knee surgery was on {}.",
     "I run the marathon", "I ran the marathon on {} in the rain.", "marathon"),
    ("the concert", "The concert was on {} at the arena.",
     "I lose my keys", "I lost my keys on {} somewhere downtown.", "keys"),
    ("the launch", "We launched the app on {}.",
     "I hire Tomas", "Tomas was hired on {} as a designer.", "Tomas"),
    ("the storm", "The storm hit the coast on {}.",
     "I repair the roof", "I repaired the roof on {} with my brother.", "roof"),
]  # fmt: skip


@pytest.fixture(scope="module")
def embedder():
    return program("scripts/derive_temporal.py").Remembered(build_embedder(EmbeddingSettings()))


def holds_both(embedder, settings, event, told, other, other_told, word):
    name = event.removeprefix("the ")
    said = [
        f"We talked about the {name} and the {word} again, it was a {ADJECTIVES[k % 14]} and "
        f"{ADJECTIVES[(5 * k + 3) % 14]} {OCCASIONS[k % 4]} number {k}."
        for k in range(30)
    ]
    dated = (told.format("2026-03-20"), other_told.format("2026-03-06"))
    said[10:10], said[21:21] = dated[:1], dated[1:]
    with opened(settings, embedder=embedder) as memory:
        memory.remember(said, user="ana", session="old", at=NOW - timedelta(hours=2))
        question = f"How many days before {event} did {other}?"
        context = memory.assemble(question, user="ana", session="new", budget=300, track_access=False)
        return {item.text for item in context.items}.issuperset(dated)


@pytest.mark.parametrize("pair", PAIRS[:3], ids=lambda pair: pair[-1])
def test_both_dated_turns_of_a_question_between_two_events_are_in_the_context(embedder, pair):
    assert holds_both(embedder, Settings().without_timeouts(), *pair)


@pytest.mark.slow
def test_they_are_in_nine_of_ten(embedder):
    found = [holds_both(embedder, Settings().without_timeouts(), *pair) for pair in PAIRS]
    assert sum(found) >= 9, found
