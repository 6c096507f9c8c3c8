"""Derive the settings that are compared with a cosine, for each shipped embedder, and print them as a table.

    python scripts/derive_cosines.py [--data DIR [--only SET]...] [--vectors FOLDER]

The gate's two come from `gate_pairs.json`, triples written for this: a statement, the same in other words, and
another statement on the same topic. The others need DIR, which holds conversations with gold turns in a schema of
`holdfast eval`: limits are chosen on every second conversation and reported on the rest. Each rule weighs pairs that
belong together (`yes`) against pairs that do not (`no`):

- `gate.similar`, paraphrases against same-topic pairs: the best balanced accuracy; held out on `stsb/`.
- `gate.saturated`, the same pairs: the lowest cosine that lets 5 % of `no` through, because a unit taken for held
  already is never promoted.
- `projection.min_similarity` (θ1), relevance of the gold turns among all hits against that of the others: the highest
  limit that keeps 99 % of `yes`. In the default recipe it is compared with relevance, not with a cosine.
- `temporal.recovery_similarity` (θ_rec), a temporal question and its gold turns against all other turns: the highest
  that keeps 95 % of `yes`.
- `temporal.slot_similarity` (θ_e), the best slot of a temporal question and a gold turn against the twenty nearest
  other turns, among which the selector has to choose: the best balanced accuracy.
- `compaction.min_align` (τ_preserve), a written summary of a session (`locomo/` has them) and its turns against the
  turns of other people: the highest that keeps 95 % of `yes`. Extractive summaries are not judged by it.

SET leaves out other sets: the shipped values rest on `locomo` and `beam`, since `minilm` was trained on texts of the
generator of a third. FOLDER keeps vectors from run to run. Other scripts derive the rest: `dense.exit_*` and the
funnel benchmarks/cascade.py, the no-answer rule benchmarks/refusal.py, `gate.threshold` scripts/gate_agreement.py.
"""

from __future__ import annotations

import argparse
import gzip
import json
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from holdfast.eval.data import Haystack
from holdfast.eval.datasets import load_sets
from holdfast.eval.run import CachedEmbedder
from holdfast.eval.systems import Product, ProductReader
from holdfast.kernels.clustering import preservation
from holdfast.models import build_embedder
from holdfast.models.embedder import Embedder
from holdfast.settings import EmbeddingSettings, Settings
from holdfast.text.questions import without_names
from holdfast.text.temporal import event_slots, temporal_indicator

PAIRS = Path(__file__).resolve().parent / "gate_pairs.json"
EMBEDDERS = ("minilm", "potion")
# STS-B grades pairs from 0 to 5: the same but for details, and the same topic.
SAME_GRADE, TOPIC_GRADES = 4.5, (2.0, 3.5)
LET_THROUGH = 0.05
STEP = 0.01
CHOICES = 20  # turns among which the selector has to choose
MOST_HITS = 256
EVERY = 3  # every third question is asked of the product: enough for a quantile
SHIPPED = Settings()
FLOATS = NDArray[np.float64]
Written = dict[str, str]  # summaries by session
LIMITS = np.round(np.arange(0.0, 1.0 + STEP / 2, STEP), 2)


# ---------------------------------------------------------------------------------------------------- rules


def balance(yes: FLOATS, no: FLOATS, limit: float) -> float:
    """Return the mean of the pairs kept and the pairs refused."""
    return float(((yes >= limit).mean() + (no < limit).mean()) / 2)


def separate(yes: FLOATS, no: FLOATS) -> float:
    """Return the limit of the best balanced accuracy; of limits that separate alike, the middle one."""
    scores = np.array([balance(yes, no, limit) for limit in LIMITS])
    best = LIMITS[scores >= scores.max() - 1e-12]
    return float(best[len(best) // 2])


def shut(yes: FLOATS, no: FLOATS) -> float:
    """Return the lowest limit that lets few pairs through that should not pass, at least the one that separates."""
    return max(separate(yes, no), float(next(limit for limit in LIMITS if (no >= limit).mean() <= LET_THROUGH)))


def keep(share: float) -> Callable[[FLOATS, FLOATS], float]:
    """Return the rule that gives the highest limit which keeps this share of the pairs that should pass."""

    def rule(yes: FLOATS, _no: FLOATS) -> float:
        return float([limit for limit in LIMITS if (yes >= limit).mean() >= share][-1])

    return rule


RULES: dict[str, tuple[float, Callable[[FLOATS, FLOATS], float]]] = {
    "gate.similar": (SHIPPED.gate.similar, separate),
    "gate.saturated": (SHIPPED.gate.saturated, shut),
    "projection.min_similarity": (SHIPPED.projection.min_similarity, keep(0.99)),
    "temporal.recovery_similarity": (SHIPPED.temporal.recovery_similarity, keep(0.95)),
    "temporal.slot_similarity": (SHIPPED.temporal.slot_similarity, separate),
    "compaction.min_align": (SHIPPED.compaction.min_align, keep(0.95)),
}


# ---------------------------------------------------------------------------------------------------- pairs


class Observed:
    """Cosines of pairs, by setting, whether they belong together, and half."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, bool, int], list[float]] = defaultdict(list)

    def add(self, setting: str, half: int, *, yes: Sequence[float] = (), no: Sequence[float] = ()) -> None:
        """Take in some pairs."""
        self._found[setting, True, half] += yes
        self._found[setting, False, half] += no

    def halves(self, setting: str) -> list[tuple[FLOATS, FLOATS]]:
        """Return (yes, no) of the half to choose on, and of the other one."""
        found = self._found
        return [(np.array(found[setting, True, half]), np.array(found[setting, False, half])) for half in (0, 1)]


def observe_statements(observed: Observed, embedder: Embedder, data: Path | None) -> None:
    """Compare paraphrases and same-topic pairs: our own, and graded ones as held-out pairs."""
    triples = json.loads(PAIRS.read_text(encoding="utf-8"))
    stated, same, topic = (embed(embedder, [triple[place] for triple in triples]) for place in range(3))
    found = {"yes": (stated * same).sum(axis=1).tolist(), "no": (stated * topic).sum(axis=1).tolist()}
    graded: dict[str, list[float]] = {"yes": [], "no": []}
    if data is not None and (file := data / "stsb" / "sts-dev.jsonl.gz").is_file():
        rows = [json.loads(line) for line in gzip.decompress(file.read_bytes()).splitlines()]
        one, other = (embed(embedder, [row[name] for row in rows]) for name in ("s1", "s2"))
        for row, cosine in zip(rows, (one * other).sum(axis=1).tolist(), strict=True):
            if row["score"] >= SAME_GRADE:
                graded["yes"].append(cosine)
            elif TOPIC_GRADES[0] <= row["score"] <= TOPIC_GRADES[1]:
                graded["no"].append(cosine)
    for setting in ("gate.similar", "gate.saturated"):
        observed.add(setting, 0, **found)
        observed.add(setting, 1, **graded)


@dataclass(frozen=True, slots=True)
class Talk:
    """A conversation with the vectors of its turns, and the half to which it belongs."""

    haystack: Haystack
    rows: FLOATS
    half: int

    def sessions(self) -> dict[str, FLOATS]:
        """Return the vectors of each session."""
        named = [message.session for message in self.haystack.messages]
        return {name: self.rows[[one == name for one in named]] for name in dict.fromkeys(named)}


def observe_questions(observed: Observed, embedder: Embedder, talk: Talk) -> None:
    """Compare temporal questions and their event slots with gold turns and others."""
    places = {message.id: place for place, message in enumerate(talk.haystack.messages)}
    for question in talk.haystack.questions:
        if not question.gold or temporal_indicator(question.text, wide=True).value < SHIPPED.temporal.activation:
            continue
        gold = [places[one] for one in question.gold]
        rest = np.setdiff1d(np.arange(min(question.visible, len(talk.rows))), gold)
        asked = one_row(embedder.embed_query(without_names(question.text, talk.haystack.participants)))
        near = talk.rows @ asked
        observed.add("temporal.recovery_similarity", talk.half, yes=near[gold].tolist(), no=near[rest].tolist())
        if slots := [one_row(embedder.embed_query(slot)) for slot in event_slots(question.text)]:
            covered = (talk.rows @ np.stack(slots).T).max(axis=1)
            rivals = rest[np.argsort(-near[rest], kind="stable")[:CHOICES]]
            observed.add(
                "temporal.slot_similarity", talk.half, yes=covered[gold].tolist(), no=covered[rivals].tolist()
            )


def observe_hits(observed: Observed, embedder: Embedder, talk: Talk) -> None:
    """Ask the product, and see how relevant it finds gold turns and others."""
    with Product("hybrid", SHIPPED).read(talk.haystack, embedder) as reader:
        assert isinstance(reader, ProductReader)
        for question in talk.haystack.questions[::EVERY]:
            if question.gold and not reader.rank(question).declined:
                for hit in reader.memory.search(question.text, user="user", limit=MOST_HITS):
                    wanted = "yes" if reader.message_of.get(hit.unit.id) in question.gold else "no"
                    observed.add("projection.min_similarity", talk.half, **{wanted: [hit.rel]})


def observe_summaries(observed: Observed, embedder: Embedder, talk: Talk, other: Talk, written: Written) -> None:
    """Compare written summaries of sessions with the turns of the session, and of a session of other people."""
    theirs = list(other.sessions().values())
    for place, (name, rows) in enumerate(talk.sessions().items()):
        if name in written:
            vector = embedder.embed_documents([written[name]])[0]
            own, strange = (
                preservation(vector, some.astype(np.float32)).align for some in (rows, theirs[place % len(theirs)])
            )
            observed.add("compaction.min_align", talk.half, yes=[own], no=[strange])


def talks(data: Path, only: Sequence[str], embedder: Embedder) -> Iterator[tuple[str, Talk]]:
    """Read every chat whose gold names turns."""
    for read in load_sets(data, only).sets:
        for place, haystack in enumerate(read.haystacks if read.chat else ()):
            if haystack.level == "message":
                yield read.name, Talk(haystack, embed(embedder, [one.text for one in haystack.messages]), place % 2)


def written_summaries(data: Path) -> list[Written]:
    """Return the summaries of sessions that come with the conversations of `locomo/`, by session."""
    with gzip.open(data / "locomo" / "locomo10.json.gz") as packed:
        found = [conversation["session_summary"] for conversation in json.load(packed)]
    return [{name.removesuffix("_summary"): text for name, text in one.items()} for one in found]


def embed(embedder: Embedder, texts: Sequence[str]) -> FLOATS:
    return np.stack([one_row(row) for row in embedder.embed_documents(texts)])


def one_row(vector: NDArray[np.float32]) -> FLOATS:
    """Return a vector at length 1."""
    return np.asarray(vector, dtype=np.float64) / max(float(np.linalg.norm(vector)), 1e-12)


# ---------------------------------------------------------------------------------------------------- table


def observe(embedder: Embedder, data: Path | None, only: Sequence[str]) -> Observed:
    """Collect all pairs."""
    observed = Observed()
    observe_statements(observed, embedder, data)
    if data is not None:
        read = list(talks(data, only, embedder))
        for _, talk in read:
            observe_questions(observed, embedder, talk)
        summarised = [talk for name, talk in read if name == "locomo"]
        for place, talk in enumerate(summarised):
            observe_hits(observed, embedder, talk)
            observe_summaries(observed, embedder, talk, summarised[place - 1], written_summaries(data)[place])
    return observed


def rows(embedder: str, observed: Observed) -> Iterator[tuple[str, ...]]:
    """Return a line for each setting: as shipped, as derived, and what both do to the held-out half."""
    for setting, (shipped, rule) in RULES.items():
        (yes, no), (held_yes, held_no) = observed.halves(setting)
        if not len(yes):
            continue
        derived = rule(yes, no)
        spread = [
            " ".join(f"{value:.2f}" for value in np.quantile(some, at))
            for some, at in ((yes, (0.01, 0.05, 0.5)), (no, (0.5, 0.95, 0.99)))
        ]
        kept = [
            f"{(some >= limit).mean():.3f}" if len(some) else ""
            for limit in (shipped, derived)
            for some in (held_yes, held_no)
        ]
        yield (f"`{setting}`", embedder, f"{len(yes)} {len(no)}", *spread, f"{shipped:.2f}", *kept[:2],
               f"{derived:.2f}", *kept[2:])  # fmt: skip


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--vectors", type=Path)
    options = parser.parse_args()
    head = ("setting", "embedder", "pairs: yes no", "yes: 1, 5, 50 %", "no: 50, 95, 99 %", "shipped", "keeps yes",
            "keeps no", "derived", "keeps yes", "keeps no")  # fmt: skip
    print(f"| {' | '.join(head)} |\n{'|---' * len(head)}|")
    with tempfile.TemporaryDirectory() as folder:
        for name in EMBEDDERS:
            built = build_embedder(EmbeddingSettings(embedder=name, threads=1))
            assert built is not None
            with CachedEmbedder.open(built, (options.vectors or Path(folder)) / f"{name}.npz") as embedder:
                for row in rows(name, observe(embedder, options.data, options.only)):
                    print(f"| {' | '.join(row)} |")


if __name__ == "__main__":
    main()
