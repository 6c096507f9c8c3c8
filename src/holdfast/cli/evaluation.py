"""`holdfast eval`: measure on a folder of data, draw the tables, write the manifest and the report."""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from holdfast import __version__
from holdfast.cli import output
from holdfast.cli.output import Screen
from holdfast.errors import InputError
from holdfast.eval import report
from holdfast.eval.data import DataSet, System
from holdfast.eval.datasets import LoadedData, load_sets, take_quick_part
from holdfast.eval.metrics import Comparison, SystemRun, cross_validate
from holdfast.eval.report import (
    MANIFEST,
    REPORT,
    StoredRun,
    begin,
    code_digest,
    commit,
    compare,
    describe_run,
    finish,
    write_manifest,
)
from holdfast.eval.run import evaluate, space_of
from holdfast.eval.systems import SystemSelection, read_assignments, select_systems
from holdfast.settings import Settings
from holdfast.types import digest

HOME = Path("holdfast-eval")
_SECRET = re.compile(r"(api_key\s*=).*", re.DOTALL)
_PAGE = 160  # characters of a table in a file or a pipe, which have no width of their own
_LABELS, _COLUMN = 42, 12  # characters that set, system and n take, and one metric with its interval

Words = list[str] | None
OptionalPath = Path | None


def _option(name: str, help: str) -> Any:  # noqa: A002, ANN401 - as typer has it
    return typer.Option(name, help=help, show_default=False)


def measure(
    data: Annotated[OptionalPath, _option("--data", "Folder of evaluation data.")] = None,
    only: Annotated[Words, _option("--only", "Sets whose name contains this; repeatable.")] = None,
    baseline: Annotated[
        Words, _option("--baseline", "Baseline to measure, or `all`; alone, the product is left out.")
    ] = None,
    profile: Annotated[Words, _option("--profile", "Profile to measure; repeatable.")] = None,
    setting: Annotated[Words, _option("--set", "Setting, as lexical.b=0.35; repeatable.")] = None,
    off: Annotated[Words, _option("--off", "Part to switch off; repeatable.")] = None,
    ablate: Annotated[bool, typer.Option("--ablate", help="Switch off every part in turn.")] = False,
    part: Annotated[Words, _option("--part", "Part to switch off in turn; repeatable.")] = None,
    compacted: Annotated[
        bool, typer.Option("--compacted", help="Measure again after compacting every session.")
    ] = False,
    tune: Annotated[Words, _option("--tune", "Values to choose from, as lexical.b=0.35,0.75; repeatable.")] = None,
    metric: Annotated[str, typer.Option(help="What --tune chooses by.")] = "recall@10",
    quick: Annotated[bool, typer.Option("--quick", help="A small part of every set.")] = False,
    as_cited: Annotated[bool, typer.Option("--as-cited", help="Gold as published, without known errata.")] = False,
    survival: Annotated[
        bool, typer.Option("--survival/--no-survival", help="Assemble contexts too, and look what reaches them.")
    ] = True,
    out: Annotated[OptionalPath, _option("--out", "Folder for this run's files.")] = None,
    workers: Annotated[int, typer.Option(help="Processes; 0 means one for each core.")] = 0,
    against: Annotated[OptionalPath, _option("--against", "Earlier run to compare with.")] = None,
    compared: Annotated[
        tuple[Path, Path] | None, _option("--compare", "Two earlier runs to compare; nothing is measured.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
) -> None:
    """Measure retrieval on a folder of data; nothing here calls an LLM."""
    screen = Screen()
    if compared is not None:
        _show_comparison(screen, compare(*map(StoredRun.read, compared)), as_json=as_json)
        return
    if data is None:
        raise InputError("there is nothing to measure on; give --data FOLDER, or --compare two runs")
    if workers < 0:
        raise InputError(f"--workers {workers} is below 0; give the number of processes, or 0 for one each core")
    earlier = StoredRun.read(against) if against is not None else None
    overrides = read_assignments(setting or ())
    settings = Settings.load(overrides)
    selection = select_systems(
        settings, baselines=baseline or (), profiles=profile or (), off=off or (), ablate=part or ablate,
        compacted=compacted, overrides=overrides,
        tune={key: values.split(",") for key, values in read_assignments(tune or ()).items()},
    )  # fmt: skip
    loaded = load_sets(data, only or (), corrected=not as_cited)
    sets = [take_quick_part(each) for each in loaded.sets] if quick else loaded.sets
    name = _name_run(sets, selection.systems, settings, quick, as_cited, survival)
    place, started, began = out or HOME / name, datetime.now(UTC), time.monotonic()
    resumed = begin(place, name)
    if not as_json:
        _say_first(loaded, resumed=resumed)
    runs = _evaluate(sets, selection.systems, settings, place, workers, survival=survival, quiet=as_json)
    manifest = describe_run(
        runs, sets, settings, holdfast=__version__, commit=commit(), code=code_digest(),
        command=_hide_secrets(sys.argv[1:]), quick=quick, as_cited=as_cited,
        started=started.isoformat(timespec="seconds"), seconds=round(time.monotonic() - began, 1),
        space=space_of(settings.embedding), tuned=_tune(runs, sets, selection.variants, metric),
        left_out=[*loaded.empty, *(path.name for path in loaded.unknown)],
    )  # fmt: skip
    write_manifest(place, manifest)
    comparison = compare(earlier, StoredRun.read(place)) if earlier is not None else Comparison()
    (place / REPORT).write_text(report.render_page(manifest, comparison), encoding="utf-8")
    finish(place)
    if as_json:
        output.print_json({**manifest, **comparison.to_json()})
        return
    _show_run(screen, manifest, runs, selection)
    if comparison.differences:
        _show_comparison(screen, comparison, as_json=False)
    written = f"\nmanifest {place / MANIFEST}   report {place / REPORT}"
    screen.print(written, highlight=False, soft_wrap=True, markup=False)


def _evaluate(
    sets: Sequence[DataSet], systems: Sequence[System], settings: Settings, place: Path, workers: int, *,
    survival: bool, quiet: bool,
) -> list[SystemRun]:  # fmt: skip
    """Measure, and show how far it has come."""
    bars = Progress(
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
        TimeRemainingColumn(), console=Screen(stderr=True), transient=True, disable=quiet,
    )  # fmt: skip
    with bars:
        bar = {each.name: bars.add_task(escape(each.name), total=len(each.haystacks)) for each in sets}
        return evaluate(
            sets, systems, settings.embedding, place, workers=workers or os.cpu_count() or 1,
            survival=survival, progress=lambda name, done: bars.advance(bar[name], done),
        )  # fmt: skip


def _name_run(sets: Sequence[DataSet], systems: Sequence[System], settings: Settings, *options: bool) -> str:
    """Name a run by what it measures: the same code, data and systems find their unfinished run again."""
    return digest(
        code_digest(), [(each.name, dict(each.checksums)) for each in sets], repr(systems), repr(settings.embedding),
        options,
    )  # fmt: skip


def _hide_secrets(arguments: Sequence[str]) -> str:
    """Return the command as it was given, without the keys in it."""
    return " ".join(["holdfast", *(_SECRET.sub(r"\1(hidden)", argument) for argument in arguments)])


def _say_first(loaded: LoadedData, *, resumed: bool) -> None:
    said = [f"{path.name}: no known schema, left out" for path in loaded.unknown]
    said += [f"{name}: nothing was said in it, left out" for name in loaded.empty]
    said += ["going on with a run that was stopped"] if resumed else []
    for line in said:
        Screen(stderr=True).print(line, style="dim", highlight=False, markup=False)


def _tune(
    runs: Sequence[SystemRun], sets: Sequence[DataSet], variants: Sequence[str], metric: str
) -> list[dict[str, Any]]:
    tuned = []
    for data in sets:
        records = {run.system: run.records for run in runs if run.set == data.name and run.system in variants}
        if records and len(data.haystacks) > 1:
            tuned.append({"set": data.name, **cross_validate(records, metric)})
    return tuned


# ------------------------------------------------------------------------------------------------ drawing


def _show_run(
    screen: Screen, manifest: dict[str, Any], runs: Sequence[SystemRun], selection: SystemSelection
) -> None:
    overview = report.overview(manifest)
    width = screen.width if screen.is_terminal else _PAGE
    columns = 3 + max(1, (width - _LABELS) // _COLUMN)  # a terminal is narrow: the report has the rest
    rows = [row[:columns] for row in overview.rows]
    _draw(screen, replace(overview, head=overview.head[:columns], rows=rows))
    if selection.ablated:
        _draw(screen, report.ablation({(run.set, run.system): run.records for run in runs}, selection.ablated))
    if manifest["tuned"]:
        _draw(screen, report.tuning(manifest["tuned"]))
    odd = [f"{row['set']}: {report.describe_oddities(row)}" for row in manifest["data"] if row["oddities"]]
    if odd:
        said = "\nOddities of the data, each handled as the manifest says:\n" + "\n".join(odd)
        screen.print(Text(said, style="dim"))


def _show_comparison(screen: Screen, comparison: Comparison, *, as_json: bool) -> None:
    if as_json:
        output.print_json(comparison.to_json())
        return
    _draw(screen, report.comparison(comparison))
    for remark in comparison.remarks:
        screen.print(remark, style="dim", highlight=False, markup=False, soft_wrap=True)


def _draw(screen: Screen, table: report.Table) -> None:
    """Draw a table; what stands on the second line of a cell explains the first."""
    drawn = Table(title=Text(f"\n{table.title}"), box=None, title_justify="left")
    for place, name in enumerate(table.head):
        words = name.replace("session_", "session\n").replace("refused_", "refused\n")
        drawn.add_column(words, justify="left" if place < table.texts else "right", overflow="fold")
    for row in table.rows:
        cells = (cell.partition("\n") for cell in row)
        drawn.add_row(*(Text.assemble(first, (sign + second, "dim")) for first, sign, second in cells))
    screen.print(drawn, highlight=False)
