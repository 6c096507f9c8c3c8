"""`holdfast eval`: measure on a folder of data, draw the table, write the manifest and the report."""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console, Group, RenderableType
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from holdfast.errors import InputError
from holdfast.eval import plan
from holdfast.eval.data import DataSet
from holdfast.eval.datasets import Found, load_sets
from holdfast.eval.journal import MANIFEST, REPORT, begin, finish
from holdfast.eval.manifest import Difference, Kept, code_digest, compare, describe_run, remarks, write_manifest
from holdfast.eval.report import HEADLINES, OVER, figure, render_report, signed
from holdfast.eval.run import Run, evaluate, space_of
from holdfast.eval.summary import Interval, paired_interval
from holdfast.eval.systems import System
from holdfast.eval.tuning import cross_validate
from holdfast.interfaces import wire
from holdfast.settings import Settings
from holdfast.types import digest

HOME = Path("holdfast-eval")
_SECRET = re.compile(r"(api_key\s*=).*", re.DOTALL)
_PAGE = 160
_LABELS, _COLUMN = 42, 12  # characters that set, system and n take, and one metric with its interval
# A terminal is narrow: these tell most, the report has the rest.
_COLUMNS = (
    "recall@10", "recall_all@10", "survival@2k", "ndcg@10", "recall_all@5", "hit@1", "session_hit@1", "recall@5",
    "refused_strangers", "kept",
)  # fmt: skip


DataFolder = Annotated[Path | None, typer.Option("--data", help="Folder of evaluation data.", show_default=False)]
Only = Annotated[
    list[str] | None, typer.Option("--only", help="Sets whose name contains this; repeatable.", show_default=False)
]
Baselines = Annotated[
    list[str] | None,
    typer.Option(
        "--baseline", help="Baseline to measure, or `all`; alone, the product is left out.", show_default=False
    ),
]
Profiles = Annotated[
    list[str] | None, typer.Option("--profile", help="Profile to measure; repeatable.", show_default=False)
]
Assigned = Annotated[
    list[str] | None, typer.Option("--set", help="Setting, as lexical.b=0.35; repeatable.", show_default=False)
]
Off = Annotated[list[str] | None, typer.Option("--off", help="Part to switch off; repeatable.", show_default=False)]
Parts = Annotated[
    list[str] | None, typer.Option("--part", help="Part to switch off in turn; repeatable.", show_default=False)
]
Compacted = Annotated[bool, typer.Option("--compacted", help="Measure again after compacting every session.")]
Ablate = Annotated[bool, typer.Option("--ablate", help="Switch off every part in turn.")]
Tune = Annotated[
    list[str] | None,
    typer.Option("--tune", help="Values to choose from, as lexical.b=0.35,0.75; repeatable.", show_default=False),
]
Metric = Annotated[str, typer.Option(help="What --tune chooses by.")]
Quick = Annotated[bool, typer.Option("--quick", help="A small part of every set.")]
AsCited = Annotated[bool, typer.Option("--as-cited", help="Gold as published, without known errata.")]
Survival = Annotated[
    bool, typer.Option("--survival/--no-survival", help="Assemble contexts too, and look what reaches them.")
]
Out = Annotated[Path | None, typer.Option("--out", help="Folder for this run's files.", show_default=False)]
Workers = Annotated[int, typer.Option(help="Processes; 0 means one for each core.")]
Against = Annotated[Path | None, typer.Option("--against", help="Earlier run to compare with.", show_default=False)]
Compared = Annotated[
    tuple[Path, Path] | None,
    typer.Option("--compare", help="Two earlier runs to compare; nothing is measured.", show_default=False),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]


def measure(
    data: DataFolder = None,
    only: Only = None,
    baseline: Baselines = None,
    profile: Profiles = None,
    setting: Assigned = None,
    off: Off = None,
    ablate: Ablate = False,
    part: Parts = None,
    compacted: Compacted = False,
    tune: Tune = None,
    metric: Metric = "recall@10",
    quick: Quick = False,
    as_cited: AsCited = False,
    survival: Survival = True,
    out: Out = None,
    workers: Workers = 0,
    against: Against = None,
    compared: Compared = None,
    as_json: AsJson = False,
) -> None:
    """Measure retrieval on a folder of data; nothing here calls an LLM."""
    # A file or a pipe has no width; one that is too narrow would fold the table into columns of two letters.
    console = Console() if sys.stdout.isatty() else Console(width=_PAGE)
    if compared is not None:
        _show_differences(console, _Compared.of(*map(Kept.read, compared)), as_json=as_json)
        return
    if data is None:
        raise InputError("there is nothing to measure on; give --data FOLDER, or --compare two runs")
    if workers < 0:
        raise InputError(f"--workers {workers} is below 0; give the number of processes, or 0 for one each core")
    earlier = Kept.read(against) if against is not None else None
    overrides = plan.assignments(setting or ())
    settings = Settings.load(overrides)
    asked = plan.systems(
        settings, baselines=baseline or (), profiles=profile or (), off=off or (), ablate=part or ablate,
        compacted=compacted,
        tune={key: values.split(",") for key, values in plan.assignments(tune or ()).items()}, overrides=overrides,
    )  # fmt: skip
    found = load_sets(data, only or (), corrected=not as_cited)
    sets = [plan.quick(each) for each in found.sets] if quick else found.sets
    _say_left_out(found, as_json=as_json)
    name = _run_name(sets, asked.systems, settings, quick, as_cited, survival)
    place = out or HOME / name
    started, began = datetime.now(UTC), time.monotonic()
    if begin(place, name):
        _say("going on with a run that was stopped", as_json=as_json)
    runs = _measured(
        sets, asked.systems, settings, place, workers or os.cpu_count() or 1, survival=survival, as_json=as_json
    )
    manifest = describe_run(
        runs, sets, settings, command=_command(sys.argv[1:]), quick=quick, as_cited=as_cited,
        started=started.isoformat(timespec="seconds"), seconds=round(time.monotonic() - began, 1),
        space=space_of(settings.embedding), tuned=_tuned(runs, sets, asked.variants, metric),
        left_out=[*found.empty, *(path.name for path in found.unknown)],
    )  # fmt: skip
    write_manifest(place, manifest)
    pair = _Compared.of(earlier, Kept.read(place)) if earlier is not None else _Compared([], [])
    (place / REPORT).write_text(render_report(manifest, pair.differences, pair.remarks), encoding="utf-8")
    finish(place)
    if as_json:
        wire.print_json({**manifest, **pair.to_json()})
        return
    console.print(_drawn(manifest, runs, asked.ablated, columns=max(1, (console.width - _LABELS) // _COLUMN)))
    if pair.differences:
        _show_differences(console, pair, as_json=False)
    written = f"\nmanifest {place / MANIFEST}   report {place / REPORT}"
    console.print(written, highlight=False, soft_wrap=True, markup=False)


@dataclass(frozen=True, slots=True)
class _Compared:
    """What two runs differ in, and what to know about it."""

    differences: list[Difference]
    remarks: list[str]

    @classmethod
    def of(cls, before: Kept, after: Kept) -> _Compared:
        return cls(compare(before, after), remarks(before, after))

    def to_json(self) -> dict[str, Any]:
        return {"compared": [each.to_json() for each in self.differences], "remarks": self.remarks}


def _run_name(sets: Sequence[DataSet], systems: Sequence[System], settings: Settings, *options: bool) -> str:
    """Name a run by what it measures: the same code, data and systems find their unfinished run again."""
    return digest(
        code_digest(), [(each.name, dict(each.checksums)) for each in sets], repr(systems), repr(settings.embedding),
        options,
    )  # fmt: skip


def _command(arguments: Sequence[str]) -> str:
    """Return the command as it was given, without the keys in it."""
    return " ".join(["holdfast", *(_SECRET.sub(r"\1(hidden)", argument) for argument in arguments)])


def _say_left_out(found: Found, *, as_json: bool) -> None:
    for path in found.unknown:
        _say(f"{path.name}: no known schema, left out", as_json=as_json)
    for name in found.empty:
        _say(f"{name}: nothing was said in it, left out", as_json=as_json)


def _say(text: str, *, as_json: bool) -> None:
    if not as_json:
        Console(stderr=True).print(text, style="dim", highlight=False, markup=False)


def _measured(
    sets: Sequence[DataSet],
    systems: Sequence[System],
    settings: Settings,
    folder: Path,
    workers: int,
    *,
    survival: bool,
    as_json: bool,
) -> list[Run]:
    """Measure with a bar for each set."""
    bars = Progress(
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
        TimeRemainingColumn(), console=Console(stderr=True), transient=True, disable=as_json,
    )  # fmt: skip
    with bars:
        bar = {each.name: bars.add_task(escape(each.name), total=len(each.haystacks)) for each in sets}
        return evaluate(
            sets, systems, settings.embedding, folder, workers=workers, survival=survival,
            progress=lambda name, done: bars.advance(bar[name], done),
        )  # fmt: skip


def _tuned(
    runs: Sequence[Run], sets: Sequence[DataSet], variants: Sequence[str], metric: str
) -> list[dict[str, Any]]:
    tuned = []
    for data in sets:
        records = {run.system: run.records for run in runs if run.set == data.name and run.system in variants}
        if records and len(data.haystacks) > 1:
            tuned.append({"set": data.name, **cross_validate(records, metric).to_json()})
    return tuned


# ------------------------------------------------------------------------------------------------ drawing


def _drawn(
    manifest: Mapping[str, Any], runs: Sequence[Run], ablated: Mapping[str, str], *, columns: int
) -> RenderableType:
    parts: list[RenderableType] = [_table(manifest["runs"], quick=manifest["quick"], columns=columns)]
    if ablated:
        parts.append(_ablation(runs, ablated))
    if manifest["tuned"]:
        parts.append(_tuning(manifest["tuned"]))
    odd = [
        f"{row['set']}: " + ", ".join(f"{kind} × {count}" for kind, count in row["oddities"].items())
        for row in manifest["data"]
        if row["oddities"]
    ]
    if odd:
        parts.append(
            Text("\nOddities of the data, each handled as the manifest says:\n" + "\n".join(odd), style="dim")
        )
    return Group(*parts)


def _table(rows: Sequence[Mapping[str, Any]], *, quick: bool, columns: int) -> Table:
    metrics = [name for name in _COLUMNS if any(name in row["metrics"] for row in rows)][:columns]
    title = "A part of every set, for a look" if quick else "All questions with gold"
    table = Table(title=f"{title}; 95 % intervals by bootstrap {OVER}", box=None, title_justify="left")
    table.add_column("set", overflow="fold")
    table.add_column("system", overflow="fold")
    table.add_column("n", justify="right")
    for name in metrics:
        table.add_column(name.replace("session_", "session\n").replace("refused_", "refused\n"), justify="right")
    for row in rows:
        cells = []
        for name in metrics:
            ends = row["ci"].get(name)
            shown = figure(row["metrics"][name]) if name in row["metrics"] else ""
            cells.append(shown + (f"\n[dim]{figure(ends[0])}–{figure(ends[1])}[/]" if ends and shown else ""))
        table.add_row(escape(row["set"]), escape(row["system"]), str(row["n"]), *cells)
    return table


def _ablation(runs: Sequence[Run], ablated: Mapping[str, str]) -> Table:
    """Draw what each part adds: the difference that switching it off makes, question by question.

    `ablated` names, for each system that lacks a part, the same system with that part.
    """
    metrics = [name for name in ("recall@10", "recall_all@10", "ndcg@10", "survival@2k", "refused_strangers")
               if any(name in run.summary.metrics for run in runs)]  # fmt: skip
    table = Table(title="\nWhat switching each part off does", box=None, title_justify="left")
    table.add_column("set", overflow="fold")
    table.add_column("system", overflow="fold")
    for name in metrics:
        table.add_column(name, justify="right")
    by_name = {(run.set, run.system): run for run in runs}
    for run in runs:
        if run.system in ablated:
            whole = by_name[(run.set, ablated[run.system])]
            pairs = [paired_interval(whole.records, run.records, name) for name in metrics]
            cells = [_change(*pair) if pair else "" for pair in pairs]
            table.add_row(escape(run.set), escape(run.system), *cells)
    return table


def _change(mean: float, ends: Interval) -> str:
    return f"{signed(mean)}\n[dim]{signed(ends[0])} {signed(ends[1])}[/]"


def _tuning(rows: Sequence[Mapping[str, Any]]) -> Table:
    table = Table(title="\nTuned, leaving one conversation out", box=None, title_justify="left")
    for name in ("set", "metric", "held out", "95 %", "in sample", "best on all"):
        table.add_column(name, overflow="fold")
    for row in rows:
        ends = f"{figure(row['ci'][0])}–{figure(row['ci'][1])}"
        table.add_row(
            escape(row["set"]), row["metric"], figure(row["cross_validated"]), ends, figure(row["in_sample"]),
            escape(row["best"]),
        )  # fmt: skip
    return table


def _show_differences(console: Console, compared: _Compared, *, as_json: bool) -> None:
    if as_json:
        wire.print_json(compared.to_json())
        return
    table = Table(title="Two runs, question by question", box=None, title_justify="left")
    for name in ("set", "system", "metric", "before", "after", "difference", "95 %", ""):
        table.add_column(name, overflow="fold", justify="left" if name in ("set", "system", "metric") else "right")
    for each in compared.differences:
        if each.metric in HEADLINES:
            ends = f"{signed(each.interval[0])} to {signed(each.interval[1])}" if each.interval else ""
            table.add_row(
                escape(each.set), escape(each.system), each.metric, figure(each.before), figure(each.after),
                signed(each.after - each.before), ends, "clear" if each.clear else "",
            )  # fmt: skip
    console.print(table, highlight=False)
    for remark in compared.remarks:
        console.print(remark, style="dim", highlight=False, markup=False, soft_wrap=True)
