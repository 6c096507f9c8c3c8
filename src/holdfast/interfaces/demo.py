"""`holdfast demo`: the product in one go, on the sample history. Its clock is fixed, so it always shows the same."""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console
from rich.progress import track

from holdfast import sample
from holdfast.interfaces import draw
from holdfast.memory import Memory
from holdfast.settings import Settings
from holdfast.types import Unit

_MEANING = "When do they travel to Japan?"
_UNRELATED = "What is the average complexity of quicksort?"
TODAY = datetime(2026, 6, 30, 9, 0, tzinfo=UTC)
_PRESENT = "2026-02-14-birthday"
# The sample's sessions are short: with the usual budget every turn would be in the tail, and none could be covered.
_SMALL_BUDGET = 200
_READER = "reader"


@dataclass(frozen=True, slots=True)
class _Shelf:
    """Documents to take in, a question about them, and a sentence that the first of them gets at its end."""

    name: str
    files: Mapping[str, str]
    question: str
    added: str


_HANDBOOK = _Shelf(
    "handbook",
    {
        "oven.md": """# The oven

Heat all three decks to 240 degrees and wait for the green lamp.

## Errors

E-12 means that the steam tank is empty.

E-37 means that the door sensor sees no door. Open the middle deck and hold the reset button for eight seconds.
""",
        "shop.md": """# The shop

We open at seven and close at two; on Mondays the shop is shut.

## Orders

Orders for more than forty rolls must be placed two days ahead.
""",
    },
    "What do I do when the oven shows E-37?",
    "If it comes back, call the service on 555-0137.",
)
# Where they are found, pages of our own documentation are the better example.
_PAGES = ("why.md", "formats.md")


def run(console: Console, database: Path, settings: Settings) -> None:
    """Remember, search, explain, correct, ask why not, read documents, compact, forget, reopen."""
    settings = settings.unhurried()
    with Memory.open(database, settings=settings, now=lambda: TODAY) as memory:
        _remember(console, memory)
        _search(console, memory)
        _meaning(console, memory)
        _languages(console, memory)
        _filter(console, memory)
        _correct(console, memory)
        _why_not(console, memory)
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
    console.print(f"Sent a second time: {added} added, {len(again) - added} recognised. Nothing is kept twice.")


def _search(console: Console, memory: Memory) -> None:
    question = "To which date was the opening of the bakery postponed?"
    draw.rule(console, f"2 · Search: {question}")
    console.print(draw.hits(memory.search(question, user=sample.USER, limit=4)))
    console.print("\nWhy is the first one first? Its score, down to the last word:\n")
    console.print(draw.hits(memory.search(question, user=sample.USER, limit=1, explain=True)))


def _meaning(console: Console, memory: Memory) -> None:
    draw.rule(console, f"3 · By meaning, without a word in common: {_MEANING}")
    console.print(draw.hits(memory.search(_MEANING, user=sample.USER, limit=2)))
    console.print(f"\nAnd a question that this memory cannot answer: [bold]{_UNRELATED}")
    console.print(draw.hits(memory.search(_UNRELATED, user=sample.USER, limit=2)))


def _languages(console: Console, memory: Memory) -> None:
    draw.rule(console, "4 · Other languages, without spaces too")
    for question in ("A quantos graus vai o folar ao forno?", "いつ京都へ行きますか。"):
        console.print(f"[bold]{question}")
        console.print(draw.hits(memory.search(question, user=sample.USER, limit=1)))


def _filter(console: Console, memory: Memory) -> None:
    filters = {"and": [{"speaker": "Mara"}, {"event_time": {"gte": "2026-04-01T00:00:00Z"}}]}
    draw.rule(console, "5 · Filters: database, said by Mara, since April")
    console.print(draw.hits(memory.search("database", user=sample.USER, filters=filters, limit=3)))


def _correct(console: Console, memory: Memory) -> None:
    draw.rule(console, "6 · Change a memory, keep its history")
    unit = _turn(memory, "s08-05")
    memory.update(
        unit.id, user=sample.USER, text="The opening is postponed to Saturday 23 May, one week later still."
    )
    console.print(draw.versions(memory.history(unit.id, user=sample.USER)))


def _why_not(console: Console, memory: Memory) -> None:
    question = "How do I reset the oven when it shows error E-37?"
    draw.rule(console, f"7 · Why not? {question}")
    console.print(draw.hits(memory.search(question, user=sample.USER, limit=2)))
    for message_id in ("s13-07", "s12-01"):
        console.print("\n[bold]Why is this one not there?")
        console.print(draw.why(memory.why(question, _turn(memory, message_id).id, user=sample.USER, limit=2)))


def _documents(console: Console, settings: Settings) -> None:
    shelf = _shelf(Path("docs"))
    draw.rule(console, f"8 · Documents: {shelf.question}")
    with (
        tempfile.TemporaryDirectory() as place,
        Memory.open(":memory:", settings=settings, now=lambda: TODAY) as memory,
    ):
        folder = Path(place) / shelf.name
        folder.mkdir()
        for name, text in shelf.files.items():
            (folder / name).write_text(text, encoding="utf-8")
        report = memory.ingest_folder(folder, user=_READER)
        console.print(f"Taken in from {shelf.name}: {', '.join(report.added)}; units {report.units}.\n")
        found = memory.search(shelf.question, user=_READER, limit=2)
        console.print(draw.hits(found))
        section = memory.widen(found[0].unit.id, user=_READER)
        console.print(f"\nThe first one stands in: {' › '.join((section.document, *section.path))}", markup=False)
        _edit(console, memory, folder, shelf)


def _edit(console: Console, memory: Memory, folder: Path, shelf: _Shelf) -> None:
    """Change the first file, take the folder in again, and show that only what was touched is new."""
    first = next(iter(shelf.files))
    (folder / first).write_text(f"{shelf.files[first].rstrip()} {shelf.added}\n", encoding="utf-8")
    before = _said(memory)
    report = memory.ingest_folder(folder, user=_READER)
    after = _said(memory)
    console.print(f"\nA sentence is added to {first}, and the folder is taken in again:")
    console.print(f"changed {', '.join(report.changed)}; unchanged {', '.join(report.unchanged)}.")
    console.print(
        f"Units that stay {len(before & after)}, new {len(after - before)}, ended {len(before - after)}. The new one:"
    )
    for unit_id in sorted(after - before):
        console.print(draw.one_line(memory.get(unit_id, user=_READER).text), markup=False)


def _said(memory: Memory) -> frozenset[str]:
    return frozenset(unit.id for unit in memory.list(user=_READER, limit=None))


def _shelf(docs: Path) -> _Shelf:
    """Return pages of our own documentation where the demo runs beside them, else the handbook of a bakery."""
    pages = {name: (docs / name).read_text(encoding="utf-8") for name in _PAGES if (docs / name).is_file()}
    if len(pages) < len(_PAGES) or not pages[_PAGES[0]].startswith("# Why Holdfast"):
        return _HANDBOOK
    question = "What becomes of a PDF that holds only pictures?"
    return _Shelf("docs", pages, question, "This sentence was added by the demo.")


def _compact(console: Console, memory: Memory) -> None:
    draw.rule(console, "9 · Compact a session: a summary stands for its old turns, and gives them back")
    if memory.settings.embedding.embedder == "none":
        console.print("Left out: compaction compares turns by their vectors, and the settings name no embedder.")
        return
    [done] = memory.compact(user=sample.USER, session=_PRESENT)
    console.print(
        f"Summaries {len(done.summaries)}, turns they stand for {done.turns}, saved {done.tokens_saved} tokens."
    )
    for summary in done.summaries:
        console.print(f"\n{memory.get(summary, user=sample.USER).text}", markup=False)
        turns = memory.expand(summary, user=sample.USER)
        console.print(f"\nExpanded, it is {len(turns)} turns again, word for word. The first three:")
        console.print(draw.units(turns[:3]))


def _forget(console: Console, memory: Memory) -> None:
    draw.rule(console, "10 · Forget for good: the order of a present. First a dry run")
    unit = _turn(memory, "s05-05")
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
    draw.rule(console, "11 · Close and reopen")
    with Memory.open(database, settings=settings, now=lambda: TODAY) as memory:
        same = _answers(memory) == before
    hits = sum(len(answer) for answer in before)
    console.print(f"{len(before)} questions, {hits} hits: the same ids and the same scores, bit for bit: {same}.")
    console.print("\nNext: [bold]holdfast remember[/] something of yours, then [bold]holdfast search[/] for it.")


def _turn(memory: Memory, message_id: str) -> Unit:
    [unit] = memory.list(user=sample.USER, filters={"message_id": message_id}, limit=1)
    return unit
