"""A manifest → tables, as a terminal, a page of Markdown and the documentation show them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from holdfast.eval.metrics import Comparison, Interval, Measurement, paired_interval

# What people look for first, in this order; a set shows those that it has.
HEADLINES = (
    "recall@10", "recall_all@10", "survival@2k", "ndcg@10", "recall_all@5", "hit@1", "session_hit@1", "recall@5",
    "refused_strangers", "kept", "mrr", "session_recall_all@5", "survival@1k", "survival@4k", "survival@8k",
    "lost_by_growing", "ever_lost_by_growing", "currency", "current_first", "lookalike_current_first", "currency@2k",
)  # fmt: skip
_ABLATED = (
    "recall@10", "recall_all@10", "ndcg@10", "survival@2k", "refused_strangers", "currency", "current_first",
)  # fmt: skip
_OVER = "95 % intervals by bootstrap over conversations, or over questions where there is one"
# What Markdown or a page would obey inside a cell.
_OBEYED = str.maketrans({"|": "\\|", "<": "&lt;", "&": "&amp;"})

Row = Mapping[str, Any]


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
    return f"{value:.3f}".removeprefix("0") if 0.0 <= value < 1.0 else f"{value:.3f}"


def signed(value: float) -> str:
    """Write a difference."""
    return f"{'+' if value >= 0 else '−'}{figure(abs(value))}"


def metric_cell(row: Row, name: str) -> str:
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


def headline_metrics(rows: Iterable[Row]) -> list[str]:
    """Return which headline metrics any of the rows has."""
    rows = list(rows)
    return [name for name in HEADLINES if any(name in row["metrics"] for row in rows)]


# --------------------------------------------------------------------------------------- tables of a manifest


def overview(manifest: Row) -> Table:
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


def tuning(rows: Sequence[Row]) -> Table:
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


def _categories(run: Row) -> Table:
    parts = {**run["by_category"], **{f"({half} conversations)": {"n": "", "metrics": values}
                                      for half, values in run["halves"].items()}}  # fmt: skip
    metrics = headline_metrics(parts.values())
    rows = [[name, str(part["n"]), *(metric_cell(part, each) for each in metrics)] for name, part in parts.items()]
    return Table(f"{run['set']}, {run['system']}: by category", ["category", "questions", *metrics], rows)


def describe_oddities(data: Row) -> str:
    """Return what is odd about a set, in one line; nothing where nothing is."""
    return ", ".join(f"{kind} × {count}" for kind, count in data["oddities"].items())


def render_page(manifest: Row, compared: Comparison) -> str:
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
