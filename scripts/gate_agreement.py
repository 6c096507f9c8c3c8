"""Print how often the gate (C17) decides as a person would, on examples written for this: as Markdown tables.

    python scripts/gate_agreement.py            cold and warm, by category
    python scripts/gate_agreement.py --stream   with real vectors, memory growing as turns are promoted

Cold: nothing is durable yet. Warm: the five nearest durable units are unrelated, at the cosines below. Examples at
even places were looked at while the rules were written; those at odd places were not.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from holdfast.lifecycle.gate import judge
from holdfast.models import build_embedder
from holdfast.settings import EmbeddingSettings, GateSettings, Settings

EXAMPLES = Path(__file__).resolve().parent.parent / "tests" / "data" / "gate_examples.json"
WARM = (0.30, 0.25, 0.20, 0.15, 0.10)
THRESHOLDS = (0.20, 0.25, 0.30, 0.35)
ORDERS = 5


@dataclass(frozen=True, slots=True)
class Example:
    """A turn and what a person would want to happen to it; `tuned`: rules were written with it in view."""

    category: str
    language: str
    promote: bool
    text: str
    tuned: bool


@dataclass(frozen=True, slots=True)
class Agreement:
    """How the gate did on some examples."""

    n: int
    kept: int
    dropped: int

    @property
    def share(self) -> float:
        """Return how many decisions agree."""
        return (self.n - self.kept - self.dropped) / self.n

    def row(self) -> tuple[str, ...]:
        """Return the cells of a table."""
        return f"{self.n}", f"{self.share:.3f}", f"{self.kept}", f"{self.dropped}"


def examples() -> list[Example]:
    """Return the committed examples."""
    rows = json.loads(EXAMPLES.read_text(encoding="utf-8"))
    return [Example(**row, tuned=place % 2 == 0) for place, row in enumerate(rows)]


def agreement(decided: Iterable[tuple[Example, bool]]) -> Agreement:
    """Count the decisions that a person would not have made."""
    pairs = list(decided)
    kept = sum(promoted and not example.promote for example, promoted in pairs)
    return Agreement(len(pairs), kept, sum(example.promote and not promoted for example, promoted in pairs))


def decide(
    chosen: Sequence[Example], settings: GateSettings, durable: Sequence[float] = ()
) -> list[tuple[Example, bool]]:
    """Judge every example against the same memory."""
    return [(example, judge(example.text, (), durable, settings).promoted) for example in chosen]


def by_category(settings: GateSettings, durable: Sequence[float]) -> None:
    """Print one table."""
    decided = decide(examples(), settings, durable)
    header("category", "n", "agreement", "wrongly kept", "wrongly dropped")
    for category in dict.fromkeys(example.category for example, _ in decided):
        print(line(category, *agreement(d for d in decided if d[0].category == category).row()))
    parts: dict[str, Callable[[Example], bool]] = {
        "other languages than English": lambda example: example.language != "en",
        "looked at": lambda example: example.tuned,
        "held out": lambda example: not example.tuned,
        "**all**": lambda _: True,
    }
    for name, wanted in parts.items():
        print(line(name, *agreement(d for d in decided if wanted(d[0])).row()))


def stream(embedder: str) -> None:
    """Print agreement when the examples arrive one by one, in several orders, and what is promoted stays."""
    chosen = examples()
    built = build_embedder(EmbeddingSettings(embedder=embedder, threads=1))
    assert built is not None
    vectors = built.embed_documents([example.text for example in chosen]).astype(float)
    cosines = vectors @ vectors.T
    header("embedder", "wide", "threshold", "looked at", "held out", "wrongly kept", "wrongly dropped")
    for wide in (False, True):
        for threshold in THRESHOLDS:
            settings = GateSettings(wide=wide, threshold=threshold)
            decided: list[tuple[Example, bool]] = []
            for order in range(ORDERS):
                seen: list[int] = []
                durable: list[int] = []
                for i in sorted(range(len(chosen)), key=lambda i: shuffled(order, chosen[i].text)):
                    promoted = judge(
                        chosen[i].text, cosines[i, seen].tolist(), cosines[i, durable].tolist(), settings
                    ).promoted
                    decided.append((chosen[i], promoted))
                    seen.append(i)
                    durable += [i] if promoted else []
            whole = agreement(decided)
            halves = [agreement(d for d in decided if d[0].tuned is tuned).share for tuned in (True, False)]
            shares = [f"{share:.3f}" for share in halves]
            wrong = [f"{whole.kept / whole.n:.3f}", f"{whole.dropped / whole.n:.3f}"]
            print(line(embedder, str(wide).lower(), f"{threshold:.2f}", *shares, *wrong))


def shuffled(order: int, text: str) -> str:
    """Return a sorting key that differs from order to order and never from run to run."""
    return hashlib.sha256(f"{order} {text}".encode()).hexdigest()


def header(*cells: str) -> None:
    print("\n" + line(*cells) + "\n" + "|---" * len(cells) + "|")


def line(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


RECIPES = {"reference": Settings.reference().gate, "default": Settings().gate}


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stream", action="store_true")
    if parser.parse_args().stream:
        for embedder in ("minilm", "potion"):
            stream(embedder)
        return
    for recipe, settings in RECIPES.items():
        for name, durable in (("cold", ()), ("warm", WARM)):
            print(f"\n{recipe} recipe, {name}")
            by_category(settings, durable)


if __name__ == "__main__":
    main()
