"""Derive μ, ν, ρ and θ_stop of the temporal selector (C13) for the scores of a recipe, on constructed chats.

    python scripts/derive_temporal.py

Each chat tells when two events happened, one turn each, and thirty turns that name both events and no date, which is
where words and meaning rank first. The question asks how far apart the two are; a case is won when both dated turns
are in the context. Half of the chats are looked at to choose, the other half to see whether the choice holds.
"""

from __future__ import annotations

import argparse
import dataclasses
import random
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

from holdfast import Memory, Settings
from holdfast.models import build_embedder
from holdfast.models.embedder import Embedder, Vectors
from holdfast.values import dataclass

NOW = datetime(2026, 5, 4, 12, tzinfo=UTC)
BUDGETS = (150, 300, 600)
SPREAD = 30


@dataclass(frozen=True, slots=True)
class Case:
    """Two events, the turns that date them, the words by which other turns name them, and the question."""

    turns: tuple[str, str]
    names: tuple[str, str]
    question: str


CASES = (
    Case(
        ("We signed the lease on 2026-02-11 at the agency.", "The piano teacher first came on 2026-03-02."),
        ("lease", "piano teacher"), "How many days passed between the lease and the first piano lesson?",
    ),
    Case(
        ("My passport arrived on 5 March 2026.", "I flew to Lisbon on 21 March 2026."),
        ("passport", "flight to Lisbon"), "How many days after my passport arrived did I fly to Lisbon?",
    ),
    Case(
        ("The vet saw Biscuit on 2026-01-19.", "Biscuit ran away on 2026-02-01 during the fireworks."),
        ("vet", "Biscuit"), "How many days after the vet visit did Biscuit run away?",
    ),
    Case(
        ("The garden shed was painted on 14 April 2026.", "We planted the apple tree on 2 April 2026."),
        ("garden shed", "apple tree"), "How many days before painting the garden shed did we plant the apple tree?",
    ),
    Case(
        ("Grandma turned ninety on 2026-03-08.", "The family photo was taken on 2026-03-29."),
        ("grandma", "family photo"), "How many weeks after grandma's birthday was the family photo taken?",
    ),
    Case(
        ("I handed in my thesis on 30 January 2026.", "The defence was held on 27 February 2026."),
        ("thesis", "defence"), "How much time passed between handing in the thesis and the defence?",
    ),
    Case(
        ("The boiler broke on 2026-02-20.", "The plumber replaced the valve on 2026-02-24."),
        ("boiler", "plumber"), "How many days did it take from the boiler breaking until the plumber came?",
    ),
    Case(
        ("Our choir sang in the cathedral on 12 April 2026.", "I caught the flu on 3 April 2026."),
        ("choir", "flu"), "How many days before the choir concert did I catch the flu?",
    ),
    Case(
        ("The bakery opened on 2026-03-03 with free rolls.", "The health inspector came on 2026-03-17."),
        ("bakery", "inspector"), "How many days after the bakery opened did the inspector come?",
    ),
    Case(
        ("I sold the motorbike on 9 February 2026.", "The cargo bike was delivered on 25 February 2026."),
        ("motorbike", "cargo bike"), "How many days between selling the motorbike and getting the cargo bike?",
    ),
    Case(
        ("The servers moved to the new rack on 2026-04-06.", "The outage was on 2026-04-10."),
        ("server move", "outage"), "How many days after the server move was the outage?",
    ),
    Case(
        ("Ilse gave notice on 1 April 2026.", "Her farewell party was on 24 April 2026."),
        ("Ilse's notice", "farewell party"), "How many days before her farewell party did Ilse give notice?",
    ),
)  # fmt: skip
SAID = (
    "We talked about the {0} and the {1} again, it was a {2} {3}.",
    "Once more the {0} came up, and the {1} too; a {2} {3} for everyone.",
    "Somebody asked me about the {1}, and then about the {0}: what a {2} {3}.",
)
# The sources' own first; then less and less relevance, what is left going to anchors, to slots or to both.
SHARES = (
    (0.6, 0.2, 0.2), (0.5, 0.3, 0.2), (0.5, 0.25, 0.25), (0.5, 0.2, 0.3), (0.4, 0.4, 0.2), (0.4, 0.3, 0.3),
    (0.4, 0.2, 0.4), (0.3, 0.5, 0.2), (0.3, 0.3, 0.4), (0.2, 0.6, 0.2),
)  # fmt: skip
CHOICES = [(*shares, 0.1) for shares in SHARES] + [(0.4, 0.3, 0.3, stop) for stop in (0.0, 0.2, 0.3, 0.4, 0.5, 0.6)]
TONES, OCCASIONS = "long short funny heated quiet odd".split(), "chat call evening walk lunch meeting".split()


class Remembered:
    """An embedder that embeds every text once."""

    def __init__(self, embedder: Embedder) -> None:
        self.embedder, self.space, self.dims = embedder, embedder.space, embedder.dims
        self.known: dict[str, Vectors] = {}

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """See `Embedder`."""
        return np.array([self._once(f"d{text}", text) for text in texts]).reshape(len(texts), self.dims)

    def embed_query(self, text: str) -> Vectors:
        """See `Embedder`."""
        if f"q{text}" not in self.known:
            self.known[f"q{text}"] = self.embedder.embed_query(text)
        return self.known[f"q{text}"]

    def _once(self, key: str, text: str) -> Vectors:
        if key not in self.known:
            self.known[key] = self.embedder.embed_documents([text])[0]
        return self.known[key]


def chat(case: Case, seed: int, spread: int) -> list[str]:
    """Return the turns of a case among others that name both events."""
    chance = random.Random(seed)
    said = [
        chance.choice(SAID).format(*case.names, chance.choice(TONES), chance.choice(OCCASIONS)) + f" Number {number}."
        for number in range(spread)
    ]
    said.insert(spread // 3, case.turns[0])
    said.insert(2 * spread // 3, case.turns[1])
    return said


def won(case: Case, seed: int, embedder: Embedder, settings: Settings, spread: int = SPREAD) -> int:
    """Return of how many budgets both dated turns are in the context."""
    with Memory.open(":memory:", settings=settings, now=lambda: NOW, embedder=embedder) as memory:
        said = [{"role": "user", "content": text} for text in chat(case, seed, spread)]
        memory.remember(said, user="ana", session="old", at=NOW - timedelta(hours=2))
        found = 0
        for budget in BUDGETS:
            context = memory.assemble(case.question, user="ana", session="new", budget=budget, track_access=False)
            held = {item.text for item in context.items}
            found += held.issuperset(case.turns)
        return found


def settings_with(recipe: Settings, values: Mapping[str, Any]) -> Settings:
    """Return a recipe whose selector has these values."""
    quiet = dataclasses.replace(recipe.compaction, session_tokens=0)
    changed = dataclasses.replace(recipe.temporal, **values)
    return dataclasses.replace(recipe, temporal=changed, compaction=quiet).without_timeouts()


def main() -> None:
    """Print, for each choice, how many contexts of each half hold both turns."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--spread", type=int, default=SPREAD, help="turns that name both events")
    asked = parser.parse_args()
    loaded = build_embedder(Settings().embedding)
    assert loaded is not None
    embedder, halves = Remembered(loaded), (CASES[::2], CASES[1::2])
    print(f"{len(CASES)} chats at {len(BUDGETS)} budgets: contexts with both dated turns, of each half, in percent")
    for relevance, anchors, coverage, stop in CHOICES:
        values = {
            "share_relevance": relevance, "share_anchors": anchors, "share_coverage": coverage, "stop": stop,
        }  # fmt: skip
        settings = settings_with(Settings(), values)
        parts = [
            sum(won(case, seed, embedder, settings, asked.spread) for seed, case in enumerate(half))
            for half in halves
        ]
        shares = (100 * part / (len(half) * len(BUDGETS)) for part, half in zip(parts, halves, strict=True))
        told = "  ".join(f"{share:3.0f}" for share in shares)
        print(f"μ {relevance:.2f}  ν {anchors:.2f}  ρ {coverage:.2f}  θ_stop {stop:.2f}   {told}", flush=True)


if __name__ == "__main__":
    main()
