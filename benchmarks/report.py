"""Write the results of `run.py` and `closure.py` as a page: docs/benchmarks.md and docs/img/bench-*.svg.

    python benchmarks/report.py                  # benchmarks/results/speed.json
    python benchmarks/report.py FILE --out-dir DIR

The same results always give the same bytes: nothing here reads the clock.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from holdfast.eval.report import Table

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results"
INSTALL = "pip install --group bench"
# A full stop ends a sentence when a capital follows; version numbers and abbreviations do not look like that.
SENTENCE_END = re.compile(r"(?<=[.:]) (?=[A-Z])")

# Each part of a run: its heading, and what a reader has to know about its figures.
SECTIONS = {
    "search": (
        "Finding",
        (
            "The question's vector is given to every system; embedding it comes on top. Each is asked for ten."
            " Hybrid searches by words and by meaning, reads the question, checks and ranks the units, and"
            " explains its scores; lancedb joins an exact vector search and a full-text search, chromadb looks"
            " up one vector approximately, and bm25s and fast look for words alone. A ratio below 1 means that"
            " Holdfast took less time."
        ),
    ),
    "vectors": (
        "Vector candidates",
        (
            "Vectors of 384 numbers, made up: topics of about 50 turns, and questions near one turn. Both are"
            " asked for 64 candidates on one thread, and recall is against exact search. Made-up vectors time"
            " the work; they say little about recall on real ones."
        ),
    ),
    "remember": (
        "Remembering",
        (
            "Each call remembers a session of 20 messages, whose vectors are given, and returns when they"
            " survive a power cut. All take turns, call by call. The full-text index of lancedb is built once at"
            " the end, and counts; SQLite is a plain table of texts and vectors with a full-text index. A ratio"
            " above 1 means that Holdfast took in more."
        ),
    ),
    "embed": (
        "Embedding",
        ("The bare model and `remember` by turns on the same sessions of 20 texts."),
    ),
    "assemble": (
        "Contexts",
        (
            "The question is embedded by the shipped model, which is part of the time; the session's last"
            " turns, rules and access counts are too."
        ),
    ),
    "open": (
        "Opening, memory and disk",
        (
            "Seconds from opening the file to the first answer, each in a new process, the file in the system's"
            " cache. The snapshot is the file `<database>.index` beside the database. Resident memory is what"
            " the process grew by between an empty memory that had been used and this one after its first"
            " search."
        ),
    ),
    "forget": (
        "Forgetting",
        ("`forget` returns when no file holds the words any more. A plain rewrite is a `VACUUM` of the same file."),
    ),
    "hypervectors": (
        "Hypervectors",
        ("Hypervectors are made when they are first asked for, and kept by the process."),
    ),
}
PLOTTED = {
    "search": ("p50 ms", "p95 ms", "milliseconds per question (dot: p50, end of line: p95)"),
    "open": ("s", "s", "seconds from opening the file to the first answer, in a new process"),
}


# What is to be reached: part, row, units, figure, limit.
GOALS = (
    ("search 10000", "Holdfast `search`, hybrid", 10_000, "p95 ms", "≤", 3.0),
    ("search 100000", "Holdfast `search`, hybrid", 100_000, "p95 ms", "≤", 8.0),
    ("search 10000", "Holdfast `search`, hybrid", 10_000, "p50 ÷ lancedb hybrid", "≤", 0.35),
    ("search 100000", "Holdfast `search`, hybrid", 100_000, "p50 ÷ lancedb hybrid", "≤", 0.1),
    ("search 10000", "Holdfast `search`, hybrid", 10_000, "p50 ÷ chromadb dense", "≤", 3.0),
    ("search 100000", "Holdfast `search`, hybrid", 100_000, "p50 ÷ chromadb dense", "≤", 4.0),
    ("vectors", "Holdfast's funnel", 100_000, "p50 ÷ faiss", "≤", 0.2),
    ("assemble 10000", "`assemble`, 2,000 tokens", 10_000, "p50 ms", "≤", 15.0),
    ("assemble 10000", "`assemble`, 2,000 tokens", 10_000, "p95 ms", "≤", 25.0),
    ("remember 10000", "Holdfast `remember`", 10_000, "units/s ÷ chromadb", "≥", 4.0),
    ("remember 10000", "Holdfast `remember`", 10_000, "units/s ÷ lancedb", "≥", 0.5),
    ("embed", "minilm", 400, "`remember` ÷ bare", "≥", 0.85),
    ("embed", "potion", 400, "`remember` ÷ bare", "≥", 0.5),
    ("open 100000", "open and search, with a snapshot", 100_000, "s", "≤", 0.5),
    ("open 100000", "open and search, with one half behind", 100_000, "s", "≤", 2.0),
    ("open 100000", "open and search, without one", 100_000, "s", "≤", 4.0),
    ("open 100000", "open and search, with a snapshot", 100_000, "resident bytes per unit", "≤", 2000),
    ("open 100000", "bytes on disk, database", 100_000, "bytes per unit", "≤", 3000),
)


# ------------------------------------------------------------------------------------------------- page


def page(result: dict[str, Any], closure: dict[str, Any] | None) -> Iterator[str]:
    """Yield the page, block by block."""
    machine, parts = result["machine"], result["parts"]
    commits = ", ".join(f"`{each}`" for each in dict.fromkeys(part["commit"] for part in parts.values()))
    dates = sorted({part["date"] for part in parts.values()})
    libraries = ", ".join(f"{name} {version}" for name, version in machine["libraries"].items())
    loads = [load for part in parts.values() for load in part["load"]]
    yield "# Speed and size"
    yield "<!-- Written by `python benchmarks/report.py` from benchmarks/results; run it instead of editing. -->"
    yield (
        f"Measured at commit {commits} on {' to '.join(dict.fromkeys((dates[0], dates[-1])))}, on"
        f" {machine['cores']} cores ({machine['cpu']}, {machine['memory_gib']} GiB, {machine['system']}) with Python"
        f" {machine['python']}, SQLite {machine['sqlite']}, {libraries}. The machine's load was {min(loads)} to"
        f" {max(loads)}. Below each table stands the command that measured it; all of them together are `make bench`."
    )
    yield (
        "Milliseconds belong to this machine and this hour. The ratios were taken in one run, the systems by turns,"
        " and travel better."
    )
    yield from _goals(parts)
    for name, (title, prose) in SECTIONS.items():
        yield from _section(name, title, prose, parts)
    if closure is not None:
        yield from _closure(closure)
    yield "## How"
    yield (
        "The texts are made up from one seed: turns of one to three English sentences with people, dates, numbers and"
        " changes of mind, about made-up things whose frequencies are those of real chat, and one id that no other"
        " turn has. A question is 5 to 10 words of one turn. `remember` takes somewhat longer with real chat, whose"
        " sentences are less regular. Products of matrices are held to one thread. A stand-in takes the place of the"
        " model except under Embedding and Contexts: it looks up vectors that were made up beforehand."
    )


def _goals(parts: dict[str, Any]) -> Iterator[str]:
    rows = []
    for part, label, units, value, sign, limit in GOALS:
        for row in parts.get(part, {}).get("rows", ()):
            if (row["label"], row["units"]) == (label, units) and value in row["values"]:
                reached = row["values"][value]
                met = reached <= limit if sign == "≤" else reached >= limit
                goal = f"{label}, {units:,} units: {value} {sign} {limit:g}"
                rows.append([goal, number(reached), "yes" if met else "**no**"])
    if rows:
        yield "## Goals"
        yield Table("", ["goal", "measured", "met"], rows).markdown()


def _section(name: str, title: str, prose: str, parts: dict[str, Any]) -> Iterator[str]:
    own = {key: part for key, part in parts.items() if key.partition(" ")[0] == name}
    rows = [row for part in own.values() for row in part["rows"]]
    if not rows:
        return
    yield f"## {title}"
    if name in PLOTTED:
        yield f"![{title}: {PLOTTED[name][2]}](img/bench-{name}.svg)"
    # A table has the rows that share a figure; where a part measured two kinds of things, it has two.
    for columns in dict.fromkeys(_kind(row, rows) for row in rows):
        same = [row for row in rows if _kind(row, rows) == columns]
        cells = [
            [row["label"], f"{row['units']:,}", *(number(row["values"].get(c)) for c in columns)] for row in same
        ]
        yield Table("", ["", "units", *columns], cells).markdown()
    yield prose
    yield "Measured by " + ", ".join(f"`{part['command']}`" for part in own.values()) + "."


def _kind(row: dict[str, Any], rows: Sequence[dict[str, Any]]) -> tuple[str, ...]:
    """Return all figures of the rows that share this row's first one."""
    first = next(iter(row["values"]))
    return tuple(dict.fromkeys(name for other in rows if first in other["values"] for name in other["values"]))


def number(value: float | None) -> str:
    """Write a figure with as many digits as it can bear."""
    if value is None:
        return ""
    return f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:.3g}"


def _closure(found: dict[str, Any]) -> Iterator[str]:
    """Yield what conclusions from facts take, as `closure.py` measured it; it draws its own picture."""
    yield "## Conclusions from facts"
    yield "![Time of one closure by number of further facts, beside trying every pair](img/bench-closure.svg)"
    yield (
        "Measured by `python benchmarks/closure.py` in milliseconds of one core. Three facts join the two things that"
        " a question names. Either one of the two has so many further facts, half of which lead on, or they lie"
        " elsewhere. The peer tries every pair of facts around the question for every rule, as the reference system"
        " does, and keeps the 32 surest of stated and derived facts."
    )
    rows = [
        [
            f"{int(count):,} {place}", f"{row['facts_read']:,}", f"{row['ours_ms']['p50']:,.1f}",
            "yes" if row["bridge_found"] else "**no**", f"{row['peer_ms']['p50']:,.1f}",
            "yes" if row["peer_bridge_found"] else "**no**",
        ]
        for part, place in (("hub", "on one symbol"), ("elsewhere", "elsewhere"))
        for count, row in found[part].items()
    ]  # fmt: skip
    head = ["further facts", "facts read", "p50 ms", "joined", "every pair, p50 ms", "joined by it"]
    yield Table("", head, rows).markdown()


def sentence_by_line(paragraph: str) -> str:
    """Return a paragraph with every sentence on a line of its own, as in the other pages; tables stay."""
    return paragraph if paragraph.startswith(("|", "<", "!")) else SENTENCE_END.sub("\n", paragraph)


# ------------------------------------------------------------------------------------------------ plots

# Plots lie on white and on near-black pages, so the background stays clear and nothing is dark or light: this grey
# has a contrast of 4.5 on white and 4.2 on the darkest common page colour.
INK = "#767676"
FAINT = "#76767640"
COLOURS = {"ours": "#2b8cbe", "ours_light": "#7fb8d6", "peer": "#d98032", "rest": "#9a86c4"}
WIDTH_INCHES = 8.0
# One bar, in inches: the plot grows with what it shows.
ROW_INCHES = 0.34
FRAME_INCHES = 1.1


def draw(rows: int, file: Path, draw_on: Callable[[Any], None]) -> None:
    """Let `draw_on` fill the axes of a plot with room for so many rows, and save it: equal figures, equal bytes."""
    import matplotlib as mpl

    mpl.use("svg")
    colours = dict.fromkeys(("text.color", "axes.labelcolor", "xtick.color", "ytick.color"), INK)
    # Matplotlib names SVG elements at random unless it is given something to hash; text stays text, to be searched.
    mpl.rcParams.update({"svg.hashsalt": "holdfast", "svg.fonttype": "none", "font.size": 11, **colours})
    from matplotlib import pyplot as plt
    from matplotlib.ticker import FuncFormatter

    figure, axes = plt.subplots(figsize=(WIDTH_INCHES, FRAME_INCHES + ROW_INCHES * rows))
    draw_on(axes)
    for axis in (axes.xaxis, axes.yaxis):
        if axis.get_scale() == "log":
            axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.tick_params(length=0)
    axes.grid(axis="x", color=FAINT)
    axes.set_axisbelow(True)
    about = {"Date": None, "Creator": None}
    figure.savefig(file, format="svg", transparent=True, bbox_inches="tight", metadata=about)
    plt.close(figure)


def plot_part(name: str, result: dict[str, Any], file: Path) -> None:
    """Draw the figures of one part by row and size. Dots, because a logarithm has no zero."""
    middle, end, label = PLOTTED[name]
    parts = [part for key, part in result["parts"].items() if key.partition(" ")[0] == name]
    rows = sorted(
        (row for part in parts for row in part["rows"] if middle in row["values"]), key=lambda r: r["label"]
    )
    if not rows:
        return

    def draw_on(axes: Any) -> None:
        for y, row in enumerate(rows):
            first, last = row["values"][middle], row["values"][end]
            colour = COLOURS["ours" if name == "open" or row["label"].startswith("Holdfast") else "peer"]
            axes.plot([first, last], [y, y], color=colour, linewidth=2, marker="|", markevery=[1])
            axes.plot([first], [y], color=colour, marker="o", markersize=8)
            axes.annotate(number(first), (last, y), xytext=(7, 0), textcoords="offset points", va="center")
        axes.set_yticks(range(len(rows)), [f"{row['label'].replace('`', '')} · {row['units']:,}" for row in rows])
        axes.invert_yaxis()
        axes.set_xscale("log")
        axes.margins(x=0.15)
        axes.set_xlabel(f"{label} · number of units behind each name")

    draw(len(rows), file, draw_on)


# ------------------------------------------------------------------------------------------------- main


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("result", type=Path, nargs="?", default=RESULTS / "speed.json", help="result of run.py")
    parser.add_argument("--out-dir", type=Path, default=ROOT / "docs", help="folder of the page (default: docs)")
    given = parser.parse_args(arguments)
    if importlib.util.find_spec("matplotlib") is None:
        raise SystemExit(f"matplotlib is not installed; run: {INSTALL}")
    if not given.result.exists():
        raise SystemExit(f"there is no {given.result.name} yet; run: python benchmarks/run.py")
    result = json.loads(given.result.read_text(encoding="utf-8"))
    facts = RESULTS / "closure.json"
    closure = json.loads(facts.read_text(encoding="utf-8")) if facts.exists() else None
    (given.out_dir / "img").mkdir(parents=True, exist_ok=True)
    for name in PLOTTED:
        plot_part(name, result, given.out_dir / "img" / f"bench-{name}.svg")
    text = "\n\n".join(map(sentence_by_line, page(result, closure)))
    (given.out_dir / "benchmarks.md").write_text(text + "\n", encoding="utf-8")
    print("written: benchmarks.md and its plots")


if __name__ == "__main__":
    main(sys.argv[1:])
