"""A manifest → one HTML page that can be mailed: tables, and pictures of what lies between which bounds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from holdfast.eval.manifest import Difference

# What people look for first, in this order; a set shows those that it has.
HEADLINES = (
    "recall@10", "recall_all@10", "recall_all@5", "hit@1", "ndcg@10", "mrr", "session_hit@1", "session_recall_all@5",
    "survival@1k", "survival@2k", "survival@4k", "survival@8k", "lost_by_growing", "ever_lost_by_growing",
    "refused_strangers", "kept",
)  # fmt: skip
# What is drawn in the bootstrap.
OVER = "over conversations, or over questions where there is one"
# Pictures: the wider ones would only repeat these.
_DRAWN = ("recall@10", "recall_all@10", "ndcg@10", "session_hit@1", "survival@2k")
_WIDTH, _ROW, _LABEL, _RIGHT = 760, 26, 220, 60

_STYLE = """
:root { color-scheme: light dark; --ink: #1b1f24; --soft: #5d6873; --line: #d5dae0; --dot: #0b6b5c; --page: #fff; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e8eaed; --soft: #9aa4af; --line: #3a424b; --dot: #4cc3ac; --page: #14181c; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--page); max-width: 62rem;
  margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { margin-top: 2.5rem; font-size: 1.2rem; border-bottom: 1px solid var(--line); }
h3 { font-size: 1rem; margin-bottom: .2rem; } p, dd { color: var(--soft); } .wide { overflow-x: auto; }
table { border-collapse: collapse; margin: .8rem 0; font-variant-numeric: tabular-nums; }
th, td { text-align: right; padding: .2rem .7rem; border-bottom: 1px solid var(--line); white-space: nowrap; }
th:first-child, td:first-child, td.text, th.text { text-align: left; } small { color: var(--soft); }
svg { width: 100%; height: auto; display: block; } svg text { fill: var(--ink); font: 12px system-ui, sans-serif; }
svg .soft { fill: var(--soft); } svg line { stroke: var(--line); } svg .bar { stroke: var(--dot); stroke-width: 2.5; }
svg circle { fill: var(--dot); } dl { display: grid; grid-template-columns: max-content 1fr; gap: .1rem 1rem; }
dd { margin: 0; overflow-wrap: anywhere; }
"""


def render_report(
    manifest: Mapping[str, Any], differences: Sequence[Difference] = (), remarks: Sequence[str] = ()
) -> str:
    """Return the page."""
    runs = manifest["runs"]
    sets = list(dict.fromkeys(run["set"] for run in runs))
    body = [
        "<h1>Holdfast evaluation</h1>",
        f"<p>{escape(_subtitle(manifest))}</p>",
        "<h2>All sets</h2>",
        _overview(runs),
        *(_set_section(name, [run for run in runs if run["set"] == name], manifest) for name in sets),
        *([_differences(differences, remarks)] if differences else []),
        *([_tuned(manifest["tuned"])] if manifest.get("tuned") else []),
        "<h2>How it was made</h2>",
        _provenance(manifest),
    ]
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>Holdfast evaluation</title><style>{_STYLE}</style></head><body>\n"
        + "\n".join(body)
        + "\n</body></html>\n"
    )


def _subtitle(manifest: Mapping[str, Any]) -> str:
    quick = "A quick run over a part of the data: for a look, not for a claim. " if manifest.get("quick") else ""
    return f"{quick}Means over questions; 95 % intervals by bootstrap {OVER}. No LLM takes part."


def headline_metrics(runs: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return which headline metrics any of the runs has."""
    runs = list(runs)
    return [name for name in HEADLINES if any(name in run["metrics"] for run in runs)]


def figure(value: float) -> str:
    """Write a share as tables do: three digits, no leading zero."""
    return f"{value:.3f}".removeprefix("0") if 0.0 <= value < 1.0 else f"{value:.3f}"


def signed(value: float) -> str:
    """Write a difference."""
    return f"{'+' if value >= 0 else '−'}{figure(abs(value))}"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]], texts: int = 1) -> str:
    def line(cells: Sequence[str], tag: str) -> str:
        made = (f"<{tag}{' class=text' if place < texts else ''}>{cell}</{tag}>" for place, cell in enumerate(cells))
        return f"<tr>{''.join(made)}</tr>"

    heading = line([escape(cell) for cell in head], "th")
    return f'<div class="wide"><table>{heading}{"".join(line(row, "td") for row in rows)}</table></div>'


def _cell(run: Mapping[str, Any], name: str) -> str:
    if name not in run["metrics"]:
        return ""
    ends = run.get("ci", {}).get(name)
    return figure(run["metrics"][name]) + (f" <small>{figure(ends[0])}–{figure(ends[1])}</small>" if ends else "")


def _overview(runs: Sequence[Mapping[str, Any]]) -> str:
    metrics = headline_metrics(runs)
    rows = (
        [escape(run["set"]), escape(run["system"]), str(run["n"]), *(_cell(run, name) for name in metrics)]
        for run in runs
    )
    return _table(["set", "system", "questions", *metrics], rows, texts=2)


def _set_section(name: str, runs: Sequence[Mapping[str, Any]], manifest: Mapping[str, Any]) -> str:
    parts = [f"<h2>{escape(name)}</h2>"]
    for metric in _DRAWN:
        marks = [
            (run["system"], run["metrics"][metric], run.get("ci", {}).get(metric))
            for run in runs
            if metric in run["metrics"]
        ]
        if marks:
            parts += [f"<h3>{escape(metric)}</h3>", dot_plot(marks)]
    for run in runs:
        if len(run["by_category"]) > 1:
            metrics = headline_metrics(run["by_category"].values())
            parts.append(f"<h3>{escape(run['system'])}, by category</h3>")
            parts.append(
                _table(
                    ["category", "questions", *metrics],
                    (
                        [escape(category), str(row["n"]), *(_cell(row, metric) for metric in metrics)]
                        for category, row in run["by_category"].items()
                    ),
                )
            )
            marks = [
                (category, row["metrics"][metrics[0]], row["ci"].get(metrics[0]))
                for category, row in run["by_category"].items()
                if metrics[0] in row["metrics"]
            ]
            parts += [f"<h3>{escape(metrics[0])} by category</h3>", dot_plot(marks)]
        if run["halves"]:
            metrics = [metric for metric in headline_metrics([run]) if metric in run["halves"]["odd"]]
            parts.append(
                _table(
                    [f"{run['system']}: conversations", *metrics],
                    (
                        [half, *(figure(values[metric]) if metric in values else "" for metric in metrics)]
                        for half, values in run["halves"].items()
                    ),
                )
            )
    data = next((row for row in manifest["data"] if row["set"] == name), None)
    if data is not None:
        odd = "; ".join(f"{kind} × {count}" for kind, count in data["oddities"].items()) or "none"
        parts.append(
            f"<p>{data['haystacks']} haystacks, {data['messages']} messages, {data['questions']} questions. "
            f"Oddities: {escape(odd)}.{escape(_skipped(runs))}</p>"
        )
    return "\n".join(parts)


def _skipped(runs: Sequence[Mapping[str, Any]]) -> str:
    """Say which questions were asked, but have no gold to be judged by; they are the same for every system."""
    skipped = runs[0].get("skipped", {}) if runs else {}
    counted = "; ".join(f"{category} × {count}" for category, count in skipped.items())
    return f" Asked without counting in recall: {counted}." if counted else ""


def dot_plot(marks: Sequence[tuple[str, float, Sequence[float] | None]]) -> str:
    """Draw a dot for each value and a line for its interval, on a scale from 0 to 1."""
    inner = _WIDTH - _LABEL - _RIGHT
    height = _ROW * len(marks) + 24

    def x(value: float) -> str:
        return f"{_LABEL + inner * min(max(value, 0.0), 1.0):.1f}"

    lines = []
    for tick in range(0, 11, 2):
        at = x(tick / 10)
        lines.append(f'<line x1="{at}" x2="{at}" y1="0" y2="{height - 20}"/>')
        lines.append(f'<text class="soft" x="{at}" y="{height - 5}" text-anchor="middle">{tick / 10:g}</text>')
    for place, (label, value, ends) in enumerate(marks):
        y = _ROW * place + _ROW / 2
        shown = f"{label}: {figure(value)}" + (f" ({figure(ends[0])}–{figure(ends[1])})" if ends else "")
        bar = f'<line class="bar" x1="{x(ends[0])}" x2="{x(ends[1])}" y1="{y}" y2="{y}"/>' if ends else ""
        lines.append(
            f'<g><title>{escape(shown)}</title><text x="{_LABEL - 10}" y="{y + 4}" text-anchor="end">'
            f'{escape(_short(label))}</text>{bar}<circle cx="{x(value)}" cy="{y}" r="4.5"/>'
            f'<text x="{_WIDTH - _RIGHT + 8}" y="{y + 4}">{figure(value)}</text></g>'
        )
    return f'<svg viewBox="0 0 {_WIDTH} {height}" role="img">{"".join(lines)}</svg>'


def _short(label: str) -> str:
    return label if len(label) <= 32 else label[:31] + "…"


def _differences(differences: Sequence[Difference], remarks: Sequence[str]) -> str:
    rows = (
        [
            escape(row.set), escape(row.system), escape(row.metric), figure(row.before), figure(row.after),
            signed(row.after - row.before)
            + (f" <small>{signed(row.interval[0])} to {signed(row.interval[1])}</small>" if row.interval else ""),
            "clear" if row.clear else "",
        ]
        for row in differences
        if row.metric in HEADLINES
    )  # fmt: skip
    head = ["set", "system", "metric", "before", "after", "difference", ""]
    said = "".join(f"<p>{escape(remark)}</p>" for remark in remarks)
    return "<h2>Compared with</h2>" + _table(head, rows, texts=3) + said


def _tuned(rows: Sequence[Mapping[str, Any]]) -> str:
    made = (
        [
            escape(row["set"]), escape(row["metric"]), figure(row["cross_validated"]),
            f"{figure(row['ci'][0])}–{figure(row['ci'][1])}", figure(row["in_sample"]), escape(row["best"]),
        ]
        for row in rows
    )  # fmt: skip
    head = ["set", "metric", "held out", "95 %", "in sample", "best on all"]
    return "<h2>Tuned, leaving one conversation out</h2>" + _table(head, made, texts=2)


def _provenance(manifest: Mapping[str, Any]) -> str:
    facts = {
        "holdfast": manifest["holdfast"],
        "commit": manifest["commit"] or "unknown",
        "code": manifest["code"],
        "command": manifest.get("command", ""),
        "started": manifest.get("started", ""),
        "seconds": manifest.get("seconds", ""),
        "embedding space": manifest.get("space", ""),
        "machine": f"{manifest['machine']['system']}, Python {manifest['machine']['python']}, "
        f"{manifest['machine']['cores']} cores",
        "data": "; ".join(
            f"{row['set']}: {' '.join(v[:12] for v in row['checksums'].values())}" for row in manifest["data"]
        ),
    }
    rows = "".join(f"<dt>{escape(name)}</dt><dd>{escape(str(value))}</dd>" for name, value in facts.items())
    return f"<dl>{rows}</dl>"
