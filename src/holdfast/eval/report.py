"""The files of a run, and its tables as a terminal, a page of Markdown and the documentation show them.

A run writes one line for each haystack and system that is measured, and in the end a manifest: one JSON file that
says what was measured, with what, on which data. Two manifests can be compared.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import platform
import shutil
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from holdfast.errors import InputError
from holdfast.eval.data import DataSet
from holdfast.eval.metrics import (
    Comparison,
    Difference,
    Interval,
    Measurement,
    SystemRun,
    find_common,
    means,
    paired_interval,
)
from holdfast.settings import Settings
from holdfast.values import dataclass

# What people look for first, in this order; a set shows those that it has.
HEADLINES = (
    "recall@10", "recall_all@10", "survival@2k", "ndcg@10", "recall_all@5", "hit@1", "session_hit@1", "recall@5",
    "refused_strangers", "kept", "mrr", "session_recall_all@5", "survival@1k", "survival@4k", "survival@8k",
    "lost_by_growing", "ever_lost_by_growing", "currency", "current_first", "lookalike_current_first",
    "current_in@500", "currency@500", "current_in@2k", "current_in@8k", "tokens@500", "tokens@2k", "tokens@8k",
)  # fmt: skip
_ABLATED = (
    "recall@10", "recall_all@10", "ndcg@10", "survival@2k", "refused_strangers", "currency", "current_first",
)  # fmt: skip
_OVER = "95 % intervals by bootstrap over conversations, or over questions where there is one"
# What Markdown or a page would obey inside a cell.
_OBEYED = str.maketrans({"|": "\\|", "<": "&lt;", "&": "&amp;"})

# A share is at most 1; tokens are more than this, and have no need of digits.
_COUNTED = 10.0

ReportRow = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under a head; the first `texts` columns are words, the others figures.

    A second line of a cell says more about the first, as an interval does.
    """

    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    texts: int = 1

    def markdown(self) -> str:
        """Return the table without its title; nothing without rows."""
        rule = ["---"] * self.texts + ["---:"] * (len(self.head) - self.texts)
        rows = (self.head, rule, *(map(_escape, row) for row in self.rows))
        return "\n".join(f"| {' | '.join(cells)} |" for cells in rows) if self.rows else ""


def _escape(cell: str) -> str:
    first, _, second = cell.translate(_OBEYED).partition("\n")
    return f"{first} ({second})" if second else first


def figure(value: float) -> str:
    """Write a share as tables do: three digits, no leading zero."""
    if value >= _COUNTED:
        return f"{value:,.0f}"
    return f"{value:.3f}".removeprefix("0") if 0.0 <= value < 1.0 else f"{value:.3f}"


def signed(value: float) -> str:
    """Write a difference."""
    return f"{'+' if value >= 0 else '−'}{figure(abs(value))}"


def metric_cell(row: ReportRow, name: str) -> str:
    """Return a metric, and below it its interval; nothing where it was not measured."""
    ends = row.get("ci", {}).get(name)
    if name not in row["metrics"]:
        return ""
    return figure(row["metrics"][name]) + (f"\n{figure(ends[0])}–{figure(ends[1])}" if ends else "")


def paired_cell(before: Sequence[Measurement], after: Sequence[Measurement], name: str) -> str:
    """Return the mean difference of one metric, question by question, and below it its interval."""
    paired = paired_interval(before, after, name)
    return "" if paired is None else f"{signed(paired[0])}\n{_spread(paired[1])}"


def _spread(ends: Interval) -> str:
    return f"{signed(ends[0])} to {signed(ends[1])}"


def headline_metrics(rows: Iterable[ReportRow]) -> list[str]:
    """Return which headline metrics any of the rows has."""
    rows = list(rows)
    return [name for name in HEADLINES if any(name in row["metrics"] for row in rows)]


# --------------------------------------------------------------------------------------- tables of a manifest


def overview(manifest: ReportRow) -> Table:
    """Return every set and system."""
    runs = manifest["runs"]
    metrics = headline_metrics(runs)
    rows = [[run["set"], run["system"], str(run["n"]), *(metric_cell(run, name) for name in metrics)] for run in runs]
    title = "A part of every set, for a look" if manifest.get("quick") else "All questions with gold"
    return Table(f"{title}; {_OVER}", ["set", "system", "n", *metrics], rows, texts=2)


def ablation(records: Mapping[tuple[str, str], Sequence[Measurement]], ablated: Mapping[str, str]) -> Table:
    """Return what each part adds: the difference that switching it off makes, question by question.

    `ablated` names, for each system that lacks a part, the same system with that part.
    """
    measured = {name for own in records.values() for record in own for name in record.metrics}
    metrics = [name for name in _ABLATED if name in measured]
    rows = [
        [data, system, *(paired_cell(records[data, ablated[system]], own, name) for name in metrics)]
        for (data, system), own in records.items()
        if system in ablated
    ]
    return Table("What switching each part off does", ["set", "system", *metrics], rows, texts=2)


def tuning(rows: Sequence[ReportRow]) -> Table:
    """Return what tuning chose."""
    made = [
        [row["set"], row["best"], row["metric"], figure(row["cross_validated"]),
         f"{figure(row['ci'][0])}–{figure(row['ci'][1])}", figure(row["in_sample"])]
        for row in rows
    ]  # fmt: skip
    head = ["set", "best on all", "metric", "held out", "95 %", "in sample"]
    return Table("Tuned, leaving one conversation out", head, made, texts=3)


def comparison(compared: Comparison) -> Table:
    """Return what differs between two runs."""
    rows = [
        [each.set, each.system, each.metric, figure(each.before), figure(each.after),
         signed(each.after - each.before), _spread(each.ci) if each.ci else "", "clear" if each.clear else ""]
        for each in compared.differences
        if each.metric in HEADLINES
    ]  # fmt: skip
    head = ["set", "system", "metric", "before", "after", "difference", "95 %", ""]
    return Table("Two runs, question by question", head, rows, texts=3)


def _categories(run: ReportRow) -> Table:
    parts = {**run["by_category"], **{f"({half} conversations)": {"n": "", "metrics": values}
                                      for half, values in run["halves"].items()}}  # fmt: skip
    metrics = headline_metrics(parts.values())
    rows = [[name, str(part["n"]), *(metric_cell(part, each) for each in metrics)] for name, part in parts.items()]
    return Table(f"{run['set']}, {run['system']}: by category", ["category", "questions", *metrics], rows)


def describe_oddities(data: ReportRow) -> str:
    """Return what is odd about a set, in one line; nothing where nothing is."""
    return ", ".join(f"{kind} × {count}" for kind, count in data["oddities"].items())


def render_page(manifest: ReportRow, compared: Comparison) -> str:
    """Return everything that a manifest says about its runs as a page of Markdown."""
    tables = [overview(manifest), *(_categories(run) for run in manifest["runs"])]
    tables += [tuning(manifest["tuned"])] if manifest.get("tuned") else []
    tables += [comparison(compared)] if compared.differences else []
    parts = ["# Holdfast evaluation", "Means over questions. No LLM takes part."]
    for table in tables:
        parts += [f"## {table.title.translate(_OBEYED)}", table.markdown()] if table.rows else []
    parts += compared.remarks
    parts.append("## Data")
    for data in manifest["data"]:
        skipped = [run["skipped"] for run in manifest["runs"] if run["set"] == data["set"]]
        uncounted = ", ".join(f"{category} × {count}" for category, count in skipped[0].items())
        parts.append(
            f"{data['set']}: {data['haystacks']} haystacks, {data['messages']} messages,"
            f" {data['questions']} questions."
            f" Oddities: {describe_oddities(data) or 'none'}."
            f"{f' Asked without counting in recall: {uncounted}.' if uncounted else ''}".translate(_OBEYED)
        )
    facts = ("holdfast", "commit", "code", "command", "started", "seconds", "space")
    parts += ["## How it was made", "\n".join(f"- {name}: `{manifest.get(name)}`" for name in facts)]
    return "\n\n".join(parts) + "\n"


MANIFEST, JOURNAL, REPORT = "manifest.json", "journal.jsonl", "report.md"
# While a run is not finished, this says what its journal's lines are of; lines of anything else are not gone on with.
_FINGERPRINT = "fingerprint.txt"

RunKey = tuple[str, str, str]  # set, system, haystack
RunPair = tuple[str, str]  # set and system
_PACKAGE = Path(__file__).parents[1]
_LIBRARIES = ("numpy", "onnxruntime", "tokenizers", "PyStemmer", "bm25s")
# So many oddities of one set are listed one by one; all of them are counted.
_LISTED = 50


# ------------------------------------------------------------------------------------------ while it runs


@dataclass(frozen=True, slots=True)
class Journal:
    """The lines of one run; one cut short by a crash is done again."""

    path: Path

    def write(self, key: RunKey, records: Sequence[Measurement]) -> None:
        """Add one line."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        line = {"key": key, "records": [dataclasses.asdict(record) for record in records]}
        with self.path.open("ab") as out:
            out.write(json.dumps(line, ensure_ascii=False).encode("utf-8", "surrogatepass") + b"\n")

    def read(self, *, mend: bool = False) -> dict[RunKey, list[Measurement]]:
        """Return every whole line; `mend` removes a last one that was cut short from the file.

        Raises:
            InputError: a line is not what was written.
        """
        written = self.path.read_bytes() if self.path.exists() else b""
        whole = written[: written.rfind(b"\n") + 1]
        if mend and whole != written:
            self.path.write_bytes(whole)
        done: dict[RunKey, list[Measurement]] = {}
        for number, line in enumerate(whole.split(b"\n")[:-1], start=1):
            try:
                row = json.loads(line.decode("utf-8", "surrogatepass"))
                done[tuple(row["key"])] = [Measurement(**record) for record in row["records"]]
            except (ValueError, KeyError, TypeError) as error:
                raise InputError(f"{self.path} is damaged at line {number}; remove it and measure again") from error
        return done


def begin(folder: Path, fingerprint: str) -> bool:
    """Make a folder ready for a run; return whether one of the same fingerprint was stopped in it and goes on.

    A run that was finished, or that measured something else, makes way. Only files that a run writes are removed.

    Raises:
        InputError: it is no folder, or holds files of such names that no run of ours wrote.
    """
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file; give --out a folder")
    mark = folder / _FINGERPRINT
    present = [name for name in (MANIFEST, JOURNAL, REPORT) if (folder / name).exists()]
    if present and not mark.exists() and not _is_ours(folder / MANIFEST):
        raise InputError(f"{folder / present[0]} was not written by a run; give --out a folder of its own")
    same = mark.exists() and mark.read_text(encoding="utf-8", errors="replace").strip() == fingerprint
    if same and JOURNAL in present and MANIFEST not in present:
        return True
    for name in present:
        (folder / name).unlink()
    folder.mkdir(parents=True, exist_ok=True)
    mark.write_text(fingerprint + "\n", encoding="utf-8")
    return False


def finish(folder: Path) -> None:
    """Say that a run is over: from here on its manifest says what it was."""
    (folder / _FINGERPRINT).unlink(missing_ok=True)


def _is_ours(path: Path) -> bool:
    try:
        manifest = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return False
    return _lists_runs(manifest) and "holdfast" in manifest


def _lists_runs(manifest: Any) -> bool:  # noqa: ANN401 - any JSON
    """Return whether a JSON value lists runs, as the manifest of an evaluation does."""
    runs = manifest.get("runs") if isinstance(manifest, dict) else None
    return isinstance(runs, list) and all(
        isinstance(row, dict)
        and isinstance(row.get("set"), str)
        and isinstance(row.get("system"), str)
        and isinstance(row.get("n"), int)
        and isinstance(row.get("metrics"), dict)
        and all(isinstance(value, int | float) for value in row["metrics"].values())
        for row in runs
    )


@dataclass(frozen=True, slots=True)
class StoredRun:
    """A run that was written down: its manifest and its single questions."""

    manifest: dict[str, Any]
    records: dict[RunPair, list[Measurement]]

    @classmethod
    def read(cls, place: Path) -> StoredRun:
        """Read a run's folder, or its manifest.

        Raises:
            InputError: there is no manifest, or it is damaged.
        """
        path = place / MANIFEST if place.is_dir() else place
        try:
            manifest = json.loads(path.read_bytes())
        except OSError as error:
            raise InputError(
                f"{path} cannot be read: {error.strerror}; name a run's folder or its manifest"
            ) from error
        except ValueError as error:
            raise InputError(f"{path} is not a manifest: {error}") from error
        if not isinstance(manifest, dict) or "runs" not in manifest:
            raise InputError(f"{path} is not a manifest: it has no runs")
        if not _lists_runs(manifest):
            raise InputError(f"{path} is not a manifest: its runs are not those of an evaluation")
        records: dict[RunPair, list[Measurement]] = {}
        for (data, system, _), measured in Journal(path.parent / JOURNAL).read().items():
            records.setdefault((data, system), []).extend(measured)
        return cls(manifest, records)

    def runs(self) -> dict[RunPair, dict[str, Any]]:
        """Return what was measured, by set and system."""
        return {(run["set"], run["system"]): run for run in self.manifest["runs"]}

    def checksums(self) -> dict[str, object]:
        """Return the checksums of each set's files, as far as the manifest has them."""
        rows = self.manifest.get("data")
        known = [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
        return {str(row.get("set")): row.get("checksums") for row in known}


# -------------------------------------------------------------------------------------- when it is finished


def describe_run(
    runs: Sequence[SystemRun], sets: Sequence[DataSet], settings: Settings, **facts: object
) -> dict[str, Any]:
    """Return the manifest of a finished run; `facts` say first what made it."""
    return {
        **facts,
        "machine": machine(),
        "settings": {row.key: row.value for row in settings.describe()},
        "data": [_describe_set(data) for data in sets],
        "runs": [{"set": run.set, "system": run.system, **run.summary} for run in runs],
    }


def _describe_set(data: DataSet) -> dict[str, Any]:
    listed = [f"{oddity.kind}: {oddity.where} ({oddity.handling})" for oddity in data.oddities]
    return {
        "set": data.name,
        "schema": data.schema,
        "haystacks": len(data.haystacks),
        "messages": sum(len(haystack.messages) for haystack in data.haystacks),
        "questions": sum(len(haystack.questions) for haystack in data.haystacks),
        "checksums": dict(data.checksums),
        "oddities": data.count_oddities(),
        "oddities_listed": listed[:_LISTED],
    }


def code_digest() -> str:
    """Return a hash of the package's own source: two runs with the same one ran the same code."""
    hashed = hashlib.sha256()
    for path in sorted(_PACKAGE.rglob("*.py")) + sorted(_PACKAGE.rglob("*.sql")):
        hashed.update(path.relative_to(_PACKAGE).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return hashed.hexdigest()[:16]


def commit() -> str | None:
    """Return the commit that the package's source lies in, with `+` when it was changed since; None when unknown."""
    git = shutil.which("git")
    if git is None or _git(git, "ls-files", "--error-unmatch", "__init__.py") is None:
        return None
    head, changed = _git(git, "rev-parse", "--short=12", "HEAD"), _git(git, "status", "--porcelain", ".")
    return f"{head}{'+' if changed else ''}" if head else None


def _git(git: str, *arguments: str) -> str | None:
    command = [git, "-C", str(_PACKAGE), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    return done.stdout.strip() if done.returncode == 0 else None


def machine() -> dict[str, Any]:
    """Describe what the run ran on."""
    found = {}
    for name in _LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    return {
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "cores": os.cpu_count(),
        "libraries": found,
    }


def write_manifest(folder: Path, manifest: dict[str, Any]) -> Path:
    """Write the manifest into a run's folder."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / MANIFEST
    path.write_text(json.dumps(manifest, ensure_ascii=False, indent=1, allow_nan=False) + "\n", encoding="utf-8")
    return path


# ---------------------------------------------------------------------------------------------- comparing


def compare(before: StoredRun, after: StoredRun) -> Comparison:
    """Compare every metric that both runs have; where both hold the same single system, their names may differ.

    Raises:
        InputError: they have nothing in common.
    """
    old, new = before.runs(), after.runs()
    twins = _find_twins(old, new)
    differences = [
        _compare_metric(metric, (before, twin), (after, key))
        for key, twin in twins.items()
        for metric in new[key]["metrics"]
        if metric in old[twin]["metrics"]
    ]
    if not differences:
        raise InputError("the two runs have no set and system in common; nothing can be compared")
    return Comparison(differences, _find_remarks(before, after, twins))


def _compare_metric(metric: str, before: tuple[StoredRun, RunPair], after: tuple[StoredRun, RunPair]) -> Difference:
    (kept, twin), (there, key) = before, after
    records, later = kept.records.get(twin, []), there.records.get(key, [])
    run = there.runs()[key]
    old, new = find_common(records, later, metric)
    if not new:
        return Difference(*key, metric, kept.runs()[twin]["metrics"][metric], run["metrics"][metric], run["n"], None)
    paired = paired_interval(old, new, metric)
    return Difference(*key, metric, means(old)[metric], means(new)[metric], len(new), paired and paired[1])


def _find_remarks(before: StoredRun, after: StoredRun, twins: dict[RunPair, RunPair]) -> list[str]:
    """Return what a reader of the comparison should know: what was not compared, and where the data differ."""
    old, new = before.runs(), after.runs()
    found = [f"{_name(key)}: only in the earlier run, not compared" for key in old if key not in twins.values()]
    found += [f"{_name(key)}: only in the later run, not compared" for key in new if key not in twins]
    for key, twin in twins.items():
        once = sorted(old[twin]["metrics"].keys() ^ new[key]["metrics"].keys())
        if once:
            found.append(f"{_name(key)}: in one of the runs only, not compared: {', '.join(once)}")
    first, second = before.checksums(), after.checksums()
    for name in dict.fromkeys(name for name, _ in twins):
        if name in first and name in second and first[name] != second[name]:
            found.append(f"{name}: the files differ between the runs; a difference may be one of the data")
    for option, meaning in {"quick": "a part of each set", "as_cited": "the gold as published"}.items():
        if bool(before.manifest.get(option)) != bool(after.manifest.get(option)):
            found.append(f"one of the runs is over {meaning}, the other is not")
    return found


def _name(key: RunPair) -> str:
    return f"{key[0]}, {key[1]}"


def _find_twins(old: dict[RunPair, Any], new: dict[RunPair, Any]) -> dict[RunPair, RunPair]:
    """Return which run of the earlier ones each later one is compared with."""
    twins = {}
    for key in new:
        earlier = [pair for pair in old if pair[0] == key[0]]
        later = [pair for pair in new if pair[0] == key[0]]
        if key in old:
            twins[key] = key
        elif len(earlier) == len(later) == 1:
            twins[key] = earlier[0]
    return twins
