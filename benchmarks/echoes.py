"""Does a question that was asked before answer itself? Asks again what was remembered once, with a short reply.

    python benchmarks/echoes.py --data DIR [--only NAME …] [--paraphrases FILE] [--settings NAME=VALUE …]
                                [--vectors DIR] [--out FILE]

DIR holds chats in any schema of `holdfast eval`. Every question is asked of a memory without echoes, then each is
remembered as a user's turn in a session of its own, with a reply that says nothing, and all are asked again. FILE has
lines of JSON {"person", "question", "paraphrase", "reply"}, `question` the id of one in DIR: then what is remembered
is the paraphrase, and only those questions count. Of all questions with gold: how often a right turn is first, and
among the first five; how often an echo is first; per budget how often all gold is whole in a context, and its tokens.
Of questions that have no answer: how often nothing is found.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import timedelta
from itertools import groupby
from pathlib import Path
from statistics import mean

from holdfast.eval.data import GoldQuestion, Haystack
from holdfast.eval.datasets import load_sets
from holdfast.eval.metrics import ranking_metrics
from holdfast.eval.run import BUDGETS, CachedEmbedder
from holdfast.eval.systems import Product, ProductReader
from holdfast.models import build_embedder
from holdfast.models.embedder import Embedder
from holdfast.settings import Settings

OWNER = "user"
REPLY = "Let me check that for you."
AGAIN = timedelta(days=1)
Figures = dict[str, list[float]]


@dataclasses.dataclass(frozen=True)
class Echo:
    """What is remembered of a question: the words in which it was asked, and what was replied."""

    text: str
    reply: str = REPLY


def ask(
    haystack: Haystack, echoes: Mapping[str, Echo], settings: Settings, embedder: Embedder, *, remembered: bool
) -> Figures:
    """Ask every question of one haystack that has an echo, a day after that."""
    found: Figures = defaultdict(list)
    asked = sorted((one for one in haystack.questions if one.id in echoes), key=lambda one: one.visible)
    with Product("echoes", settings).read(haystack, embedder) as reader:
        assert isinstance(reader, ProductReader)
        for _, together in groupby(asked, key=lambda one: one.visible):
            group = [*together]
            ids = remember(reader, group, echoes) if remembered else frozenset()
            for question in group:
                measure(reader, dataclasses.replace(question, at=question.at + AGAIN), ids, found)
    return found


def remember(reader: ProductReader, asked: Sequence[GoldQuestion], echoes: Mapping[str, Echo]) -> frozenset[str]:
    """Remember each question as the loop of the guide does; return the ids of what was asked."""
    for question in asked:
        reader.rank(question)  # what had been said by then is remembered first
        said = [("user", echoes[question.id].text), ("assistant", echoes[question.id].reply)]
        turns = [{"role": role, "content": text, "at": question.at} for role, text in said]
        kept = reader.memory.remember(turns, user=OWNER, session=f"asked {question.id}")
        reader.message_of[kept[0].id] = f"echo {question.id}"
        reader.message_of[kept[1].id] = f"reply {question.id}"
    return frozenset(name for name in reader.message_of.values() if name.startswith("echo "))


def measure(reader: ProductReader, question: GoldQuestion, echoes: frozenset[str], found: Figures) -> None:
    """Add what one question finds."""
    ranking = reader.rank(question)
    if not question.has_gold:
        found["nothing found, no answer"] += [float(ranking.declined)] * (not question.answerable)
        return
    values = ranking_metrics(ranking.ids, question.gold)
    found["right first"].append(values["hit@1"])
    found["right in 5"].append(values["hit@5"])
    found["recall@10"].append(values["recall@10"])
    found["echo first"].append(float(bool(ranking.ids) and ranking.ids[0] in echoes))
    found["reply first"].append(float(bool(ranking.ids) and ranking.ids[0].startswith("reply ")))
    for budget, prompt in reader.prompts(question, [*BUDGETS]).items():
        found[f"survival@{BUDGETS[budget]}"].append(float(question.gold.keys() <= prompt.whole))
        found[f"tokens@{BUDGETS[budget]}"].append(prompt.tokens)


def read_paraphrases(file: Path | None) -> dict[tuple[str, str], Echo]:
    """Return the echoes of a file by who asked what."""
    if file is None:
        return {}
    rows = map(json.loads, file.read_text(encoding="utf-8").splitlines())
    return {(row["person"], row["question"]): Echo(row["paraphrase"], row["reply"]) for row in rows}


def main() -> None:
    """Measure every set and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--paraphrases", type=Path)
    parser.add_argument("--settings", action="append", default=[])
    parser.add_argument("--vectors", type=Path, default=Path(".vectors"))
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    given = dict(one.split("=", 1) for one in args.settings)
    numbers = {name: float(value) for name, value in given.items() if value[:1].isdigit()}
    settings = Settings.load({**given, **numbers}, environ={})
    real = build_embedder(settings.embedding)
    paraphrases = read_paraphrases(args.paraphrases)
    report = {}
    for data in load_sets(args.data, args.only).sets:
        figures: dict[str, Figures] = {"without": defaultdict(list), "with": defaultdict(list)}
        for haystack in data.haystacks:
            echoes = {one.id: Echo(one.text) for one in haystack.questions}
            if paraphrases:
                echoes = {one: echo for (person, one), echo in paraphrases.items() if person == haystack.id}
            with CachedEmbedder.open(
                real, args.vectors / f"{data.name.replace('/', '-')}-{haystack.id}.npz"
            ) as embedder:
                for name, remembered in (("without", False), ("with", True)):
                    for figure, values in ask(haystack, echoes, settings, embedder, remembered=remembered).items():
                        figures[name][figure] += values
        report[data.name] = {
            name: {key: round(mean(v), 4) for key, v in one.items() if v} for name, one in figures.items()
        }
        print(f"{data.name}: {len(figures['without']['right first'])} questions with gold")
        for key, before in report[data.name]["without"].items():
            print(f"  {key:26} {before:9.3f} {report[data.name]['with'][key]:9.3f}")
    if args.out is not None:
        args.out.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
