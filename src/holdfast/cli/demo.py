"""`holdfast demo`: the product in one go, on the sample history. Its clock is fixed, so it always shows the same."""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console
from rich.markup import escape
from rich.progress import track

from holdfast import sample
from holdfast.cli import draw
from holdfast.errors import say_install
from holdfast.memory import Memory
from holdfast.settings import Settings
from holdfast.types import Unit

TODAY = datetime(2026, 6, 30, 9, 0, tzinfo=UTC)
_DIRECT = "To which date was the opening of the bakery postponed?"
_MEANING = "Do they have a pet?"
_UNRELATED = "What is the average complexity of quicksort?"
_PORTUGUESE = "Quantos gramas de manteiga leva o folar?"
_JAPANESE = "いつ京都へ行きますか。"
_TEMPORAL = "What did Tomas say about opening hours in June?"
_BY_MARA = {"and": [{"speaker": "Mara"}, {"event_time": {"gte": "2026-04-01T00:00:00Z"}}]}
_FLIGHT = "Which flight are they rebooked on in November?"
_OVEN = "How do I reset the oven when it shows error E-37?"
_PRESENT = "2026-02-14-birthday"
_CONTEXT_BUDGET = 300
# The sample's sessions are short: with the usual budget every turn would be in the tail, and none could be covered.
_SMALL_BUDGET = 200
_READER = "reader"
_ON_DISPLAY = "What do I do when the oven shows E-37?"
_ADDED = "If it comes back, call the service on 555-0137."


class _Ask(NamedTuple):
    """A question of the demo: what is said before it, and how many hits are shown."""

    question: str
    limit: int
    before: str = ""
    tree: bool = False
    filters: Mapping[str, Any] | None = None


# What the demo asks, under a heading each.
_ASKED = {
    f"2 · Search: {_DIRECT}": (
        _Ask(_DIRECT, 3),
        _Ask(
            _DIRECT, 1, "\nWhy is the first one first? What its score is made of, and the whole arithmetic:\n", True
        ),
    ),
    f"3 · By meaning, without a word in common: {_MEANING}": (
        _Ask(_MEANING, 2),
        _Ask(_UNRELATED, 2, f"\nAnd a question that this memory cannot answer: [bold]{_UNRELATED}"),
    ),
    "4 · Other languages, without spaces too": (
        _Ask(_PORTUGUESE, 1, f"[bold]{_PORTUGUESE}"),
        _Ask(_JAPANESE, 1, f"[bold]{_JAPANESE}"),
    ),
    f"5 · Times and filters: {_TEMPORAL}": (
        _Ask(_TEMPORAL, 1),
        _Ask("database", 2, "\nThe word database, said by Mara, since April:", filters=_BY_MARA),
    ),
}


def run(console: Console, database: Path, settings: Settings) -> None:
    """Remember, search, explain, correct, ask why not, assemble, read documents, compact, forget, reopen."""
    settings = settings.without_timeouts()
    with Memory.open(database, settings=settings, now=lambda: TODAY) as memory:
        _remember(console, memory)
        _search(console, memory)
        _correct(console, memory)
        _why_not(console, memory)
        _context(console, memory)
    _documents(console, settings)
    small = dataclasses.replace(settings, assembly=dataclasses.replace(settings.assembly, budget=_SMALL_BUDGET))
    with Memory.open(database, settings=small, now=lambda: TODAY) as memory:
        _compact(console, memory)
        _forget(console, memory)
        before = _answers(memory)
    _reopen(console, database, settings, before)


def _remember(console: Console, memory: Memory) -> None:
    draw.rule(console, "1 · Remember: six months of two people's conversations")
    sessions = list(sample.sessions())
    for session, messages in track(sessions, "remembering", console=console, transient=True):
        memory.remember(messages, user=sample.USER, session=session)
    again = [
        item
        for session, messages in sessions
        for item in memory.remember(messages, user=sample.USER, session=session)
    ]
    stats = memory.stats(user=sample.USER)
    console.print(
        f"{stats.units} turns of {stats.sessions} sessions, {stats.earliest:%d %B} to {stats.latest:%d %B %Y}."
    )
    added = sum(item.status == "added" for item in again)
    console.print(f"Sent a second time: {added} added, {len(again) - added} recognised. Nothing is stored twice.")


def _search(console: Console, memory: Memory) -> None:
    for heading, asked in _ASKED.items():
        draw.rule(console, heading)
        for one in asked:
            if one.before:
                console.print(one.before)
            found = memory.search(
                one.question, user=sample.USER, limit=one.limit, explain=one.tree, filters=one.filters
            )
            console.print(draw.hits(found, tree=one.tree))


def _correct(console: Console, memory: Memory) -> None:
    draw.rule(console, "6 · Change a memory, keep its history")
    unit = _find_turn(memory, "s08-05")
    memory.update(
        unit.id, user=sample.USER, text="The opening is postponed to Saturday 23 May, one week later still."
    )
    console.print(draw.versions(memory.history(unit.id, user=sample.USER)))
    console.print(f"\nAsked again: [bold]{_DIRECT}")
    console.print(draw.hits(memory.search(_DIRECT, user=sample.USER, limit=1)))


def _why_not(console: Console, memory: Memory) -> None:
    draw.rule(console, f"7 · Why not? {_FLIGHT}")
    console.print(draw.hits(memory.search(_FLIGHT, user=sample.USER, limit=2)))
    for message_id in ("s11-06", "s12-01"):
        console.print("\n[bold]Why is this one not there?")
        verdict = memory.why(_FLIGHT, _find_turn(memory, message_id).id, user=sample.USER, limit=2)
        console.print(draw.why(verdict, _FLIGHT))


def _context(console: Console, memory: Memory) -> None:
    draw.rule(console, f"8 · A context of {_CONTEXT_BUDGET} tokens for a prompt: {_OVEN}")
    context = memory.assemble(_OVEN, user=sample.USER, budget=_CONTEXT_BUDGET, track_access=False)
    console.print(draw.budget_bar(context))
    console.print(context.text, markup=False, highlight=False)


def _documents(console: Console, settings: Settings) -> None:
    draw.rule(console, f"9 · Documents: {_ON_DISPLAY}")
    with (
        tempfile.TemporaryDirectory() as place,
        Memory.open(":memory:", settings=settings, now=lambda: TODAY) as memory,
    ):
        folder = Path(place) / "handbook"
        folder.mkdir()
        for name, text in sample.handbook().items():
            (folder / name).write_text(text, encoding="utf-8")
        report = memory.ingest_folder(folder, user=_READER)
        console.print(f"Taken in from {folder.name}: {', '.join(report.added)}; units {report.units}.\n")
        found = memory.search(_ON_DISPLAY, user=_READER, limit=2)
        console.print(draw.hits(found))
        section = memory.widen(found[0].unit.id, user=_READER)
        console.print(f"\nThe first one stands in: {' › '.join((section.document, *section.path))}", markup=False)
        _edit(console, memory, folder / "oven.md")


def _edit(console: Console, memory: Memory, file: Path) -> None:
    """Add a sentence to a file, take its folder in again, and show that only what was touched is new."""
    file.write_text(f"{file.read_text(encoding='utf-8').rstrip()} {_ADDED}\n", encoding="utf-8")
    before = _unit_ids(memory)
    report = memory.ingest_folder(file.parent, user=_READER)
    after = _unit_ids(memory)
    console.print(f"\nA sentence is added to {file.name}, and the folder is taken in again:")
    console.print(f"changed {', '.join(report.changed)}; unchanged {', '.join(report.unchanged)}.")
    console.print(
        f"Units that stay {len(before & after)}, new {len(after - before)}, ended {len(before - after)}. The new one:"
    )
    for unit_id in sorted(after - before):
        console.print(draw.one_line(memory.get(unit_id, user=_READER).text), markup=False)


def _unit_ids(memory: Memory) -> frozenset[str]:
    return frozenset(unit.id for unit in memory.list(user=_READER, limit=None))


def _compact(console: Console, memory: Memory) -> None:
    draw.rule(console, "10 · Compact a session: a summary replaces its old turns, and `expand` gives them back")
    if memory.settings.embedding.embedder == "none":
        console.print("Left out: compaction compares turns by their vectors, and the settings name no embedder.")
        return
    [done] = memory.compact(user=sample.USER, session=_PRESENT)
    console.print(
        f"Summaries {len(done.summaries)}, turns they cover {done.turns}, saved {done.tokens_saved} tokens."
    )
    for summary in done.summaries:
        console.print(f"\n{memory.get(summary, user=sample.USER).text}", markup=False)
        turns = memory.expand(summary, user=sample.USER)
        console.print(f"\nExpanded, it is {len(turns)} turns again, word for word. The first three:")
        console.print(draw.units(turns[:3]))


def _forget(console: Console, memory: Memory) -> None:
    draw.rule(console, "11 · Forget for good: the order of a present. First a dry run")
    unit = _find_turn(memory, "s05-05")
    planned = memory.forget(user=sample.USER, ids=unit.id, dry_run=True)
    console.print(draw.units((*planned.units, *planned.summaries)))
    done = memory.forget(user=sample.USER, ids=unit.id)
    console.print(
        f"\nErased: turns {len(done.units)}, summaries that rest on them {len(done.summaries)}. "
        f"Made again from what is left: {len(done.rebuilt)}."
    )
    console.print(f"Every file of the store was searched for what is gone; nothing of it is left: {done.complete}.")


def _answers(memory: Memory) -> list[list[tuple[str, float]]]:
    asked = (memory.search(question["question"], user=sample.USER) for question in sample.questions())
    return [[(hit.unit.id, hit.score) for hit in result] for result in asked]


def _reopen(console: Console, database: Path, settings: Settings, before: list[list[tuple[str, float]]]) -> None:
    draw.rule(console, "12 · Close and reopen")
    with Memory.open(database, settings=settings, now=lambda: TODAY) as memory:
        same = _answers(memory) == before
    hits = sum(len(answer) for answer in before)
    console.print(f"{len(before)} questions, {hits} hits: the same ids and the same scores, bit for bit: {same}.")
    console.print("\nNext: [bold]holdfast remember[/] something of yours, then [bold]holdfast search[/] for it.")
    console.print(
        "To look at it in a browser: [bold]holdfast inspect[/]. "
        'For other programs: [bold]holdfast serve[/], then Memory.open("http://127.0.0.1:8377") or any client; '
        f"[bold]holdfast mcp[/] for agents. They need extras: {escape(say_install('server,remote,mcp'))}"
    )


def _find_turn(memory: Memory, message_id: str) -> Unit:
    [unit] = memory.list(user=sample.USER, filters={"message_id": message_id}, limit=1)
    return unit
