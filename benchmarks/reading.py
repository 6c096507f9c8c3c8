"""What reading the first hits costs: searches of one large memory, not read, read once and wide.

    python benchmarks/reading.py --data DIR [--only NAME …] [--units 10000] [--questions 240]

DIR holds chats in any schema of `holdfast eval`. Their messages go into one memory, until it holds so many; questions
are those of its first set, and embedding them by the shipped model is part of the time. Every question is asked once,
in one way: what the reader has said is kept.
"""

from __future__ import annotations

import argparse
from functools import partial
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, process_time

from measuring import describe_machine, percentiles, time_by_turns

from holdfast import Memory
from holdfast.eval.data import DataSet
from holdfast.eval.datasets import load_sets
from holdfast.eval.run import CachedEmbedder
from holdfast.models import build_embedder
from holdfast.models.embedder import Vectors
from holdfast.settings import Settings

USER = "user"
WAYS = {"not read": False, "once": "once", "wide": "wide"}


class Embedder(CachedEmbedder):
    """Knows what is stored from an earlier run; a question it embeds each time."""

    def embed_query(self, text: str) -> Vectors:
        return self.real.embed_query(text)


def fill(memory: Memory, sets: list[DataSet], units: int) -> None:
    """Remember the chats' messages, each chat's session by session."""
    said = ((one.id, message) for data in sets for one in data.haystacks for message in one.messages)
    sessions: dict[str, list[dict[str, object]]] = {}
    for chat, message in islice(said, units):
        turn = {"role": message.author, "speaker": message.speaker, "content": message.text, "at": message.at}
        sessions.setdefault(f"{chat} {message.session}", []).append(turn)
    for session, turns in sessions.items():
        memory.remember(turns, user=USER, session=session)


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--units", type=int, default=10_000)
    parser.add_argument("--questions", type=int, default=240)
    parser.add_argument("--vectors", type=Path, default=Path(".vectors"))
    args = parser.parse_args()
    settings = Settings().without_timeouts()
    real = build_embedder(settings.embedding)
    sets = load_sets(args.data, args.only).sets
    asked = [one.text for haystack in sets[0].haystacks for one in haystack.questions if one.has_gold]
    asked = asked[:: max(1, len(asked) // args.questions)][: args.questions]
    with (
        TemporaryDirectory() as folder,
        Embedder.open(real, args.vectors / "reading.npz") as embedder,
        Memory.open(Path(folder) / "memory.db", settings=settings, embedder=embedder) as memory,
    ):
        fill(memory, sets, args.units)
        for read in WAYS.values():
            memory.search("warm up", user=USER, read=read)
        print(f"{memory.stats(user=USER).units:,} units, {len(asked)} questions, {describe_machine()}")
        parts = iter(asked[start :: 2 * len(WAYS)] for start in range(2 * len(WAYS)))
        for name, clock in (("wall", perf_counter), ("CPU", process_time)):
            for way, read in WAYS.items():
                search = {way: partial(memory.search, user=USER, read=read)}
                print(f"{name:5} {way:10}", percentiles(time_by_turns(search, next(parts), 1, clock=clock)[way]))


if __name__ == "__main__":
    main()
