"""Write a result of `run.py` as a page with plots: docs/benchmarks.md and docs/img/bench-*.svg.

    python benchmarks/report.py                  # the newest result
    python benchmarks/report.py FILE --out-dir DIR

The same result always gives the same bytes: nothing here reads the clock.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results"
INSTALL = "pip install --group bench"

LABELS = {
    "hybrid": "Holdfast `search`, profile hybrid",
    "fast": "Holdfast `search`, profile fast",
    "lexical_retrieve": "Holdfast lexical stage, units read and scored",
    "lexical_propose": "Holdfast lexical stage, candidates only",
    "dense_retrieve": "Holdfast dense stage, units read and scored",
    "dense_propose": "Holdfast dense stage, candidates only",
    "bm25s": "bm25s `retrieve`",
    "bm25s_select": "bm25s+ (its scores, another selection)",
    "fts5": "SQLite FTS5",
    "bare_commit": "one bare SQLite commit",
    "remember": "one `remember`",
    "remember_and_search": "one `remember`, then found by `search`, profile fast",
    "open": "`Memory.open`",
    "first_search": "first `search`",
    "open_and_first_search": "both",
    "close": "`close`",
}
KINDS = {"snapshot": "from a snapshot", "built": "without one"}
PEERS = {"bm25s": "bm25s", "bm25s_select": "bm25s+", "fts5": "FTS5"}
GIB = 2**30

# Plots lie on white and on near-black pages, so the background stays clear and nothing is dark or light: this grey
# has a contrast of 4.5 on white and 4.2 on the darkest common page colour.
INK = "#767676"
FAINT = "#76767640"
COLOURS = {"ours": "#2b8cbe", "ours_light": "#7fb8d6", "peer": "#d98032", "rest": "#9a86c4"}
FONT_SIZE = 11
WIDTH_INCHES = 8.0
# One bar, in inches: the plot grows with what it shows.
ROW_INCHES = 0.34
FRAME_INCHES = 1.1
# A full stop ends a sentence when a capital follows; version numbers and abbreviations do not look like that.
SENTENCE_END = re.compile(r"(?<=[.:]) (?=[A-Z])")
# Matplotlib names SVG elements at random unless it is given something to hash.
HASH_SALT = "holdfast"


ASSEMBLY = Path(__file__).parent / "results" / "assembly.json"
MILLION = Path(__file__).parent / "results" / "million.json"
CLOSURE = Path(__file__).parent / "results" / "closure.json"

# ------------------------------------------------------------------------------------------------ input


def newest(folder: Path) -> Path:
    """Return the result of the latest run by its own date: file times do not survive a checkout."""
    dated = {}
    for file in sorted(folder.glob("*.json")):
        content = json.loads(file.read_text(encoding="utf-8"))
        if isinstance(content, dict) and {"date", "commit", "results"} <= content.keys():
            dated[file] = content["date"]
    if not dated:
        raise SystemExit("there is no result yet; run: python benchmarks/run.py")
    return max(dated, key=lambda file: dated[file])


# ------------------------------------------------------------------------------------------------- page


def page(result: dict[str, Any], source: str) -> Iterator[str]:
    """Yield the page, block by block."""
    machine, versions = result["machine"], result["versions"]
    changed = ", with uncommitted changes" if result["dirty"] else ""
    yield "# Speed and size"
    yield f"<!-- Written by `python benchmarks/report.py` from {source}; run that again instead of editing. -->"
    faiss = f", faiss {versions['faiss']}" if versions["faiss"] else ""
    yield (
        f"Measured at commit `{result['commit']}`{changed} on {result['date'][:10]} by `{result['command']}`, on"
        f" {machine['cores']} cores ({machine['cpu']}, {machine['memory_bytes'] / GIB:.0f} GiB,"
        f" {machine['system']}) with Python {versions['python']}, numpy {versions['numpy']}, SQLite"
        f" {versions['sqlite']}, onnxruntime {versions['onnxruntime']}{faiss} and bm25s {versions['bm25s']}."
        f" The machine's load was {machine['load_before']} before and {machine['load_after']} after."
    )
    yield (
        "Milliseconds belong to this machine and this hour. The ratios were taken in one run, the systems by turns,"
        " and travel better: 0.5 means that Holdfast took half the peer's time."
    )
    yield from _goals(result)
    yield from _search(result)
    yield from _vectors(result)
    yield from _hyper(result)
    yield from _writing(result)
    yield from _embedding(result)
    yield from _room(result)
    yield from _assembly(ASSEMBLY)
    yield from _closure(CLOSURE)
    yield from _million(MILLION)
    yield from _method(result)


def _search(result: dict[str, Any]) -> Iterator[str]:
    yield "## Finding"
    yield "![Time of one search by system and number of units](img/bench-search.svg)"
    for found in result["results"]:
        search = found["search"]
        yield f"### {found['units']:,} units of one user"
        rows = [
            [
                LABELS[name],
                *_times(times),
                *(_ratio(search["ratios"].get(f"{name}/{peer}")) for peer in PEERS),
            ]
            for name, times in search["times"].items()
        ]
        yield _table(["", "p50 ms", "p95 ms", "min ms", *(f"p50 ÷ {peer}" for peer in PEERS.values())], rows)
    agreed = ", ".join(f"{found['search']['bm25s_agreement']:.1%}" for found in result["results"])
    late = sum(found["search"]["out_of_time"] for found in result["results"])
    refused = sum(found["search"]["refused"] for found in result["results"])
    yield (
        "Profile hybrid searches by words and by meaning; the question's vector is given, and embedding it comes on"
        " top. The three peers index words and nothing else; `search` also reads the question, fetches the units from"
        f" the file, checks them, and ranks by relevance, age and scope. {agreed} of bm25s's hits score no worse in"
        f" Holdfast's lexical stage than its own, so both did the same work. {late or 'No'} question ran out of its"
        f" time budget, and {refused or 'none'} was refused."
    )
    rare = "; ".join(
        f"{', '.join(f'{value:,.0f}' for value in found['rare_word_ms'])} ms at {found['units']:,} units"
        for found in result["results"]
    )
    yield (
        "A question of one rare word is slower, as long as hypervectors are missing: words find fewer than four"
        " units, so hybrid asks the hypervectors too, and whoever asks first has to wait until they are made or the"
        f" time budget ends. The first questions of this kind in a new process, one after the other: {rare}."
    )
    yield (
        "bm25s is given Holdfast's stems and a finished index. Its `retrieve` leaves the choice of the best to"
        " numpy's `argpartition`, which is slow when most scores are zero; bm25s+ chooses among the others only."
        " Nobody ships it, but it is the harder opponent. FTS5 uses the porter tokenizer and an OR of the"
        " question's words without function words."
    )


def _goals(result: dict[str, Any]) -> Iterator[str]:
    rows = [row for found in result["results"] for row in _goals_of(found)]
    rows += [row for found in result["vectors"] for row in _vector_goals(found)]
    rows += [row for name, found in result["embedders"].items() for row in _embedder_goals(name, found)]
    if rows:
        yield "## Goals"
        yield _table(["goal", "measured", "met"], rows)
        yield ("Not measured: chromadb and lancedb beside `search`; sessions remembered from several threads.")


def _goals_of(found: dict[str, Any]) -> Iterator[list[str]]:
    """Yield the project's goals for one size. What is set for a size nobody measured here is left out."""
    units, times = found["units"], found["search"]["times"]
    slow_search = {10_000: 5.0, 100_000: 12.0}.get(units)
    if slow_search is not None:
        p95 = times["hybrid"]["p95_ms"]
        goal = f"`search` at {units:,} units without embedding the question, p95 ≤ {slow_search:g} ms"
        yield [goal, f"{p95:.1f} ms", _met(p95 <= slow_search)]
    if units < 10_000:
        return
    beside = found["search"]["ratios"]["lexical_propose/bm25s"]["p50"]
    yield [f"lexical stage at {units:,} units ≤ 1 × bm25s", f"{beside:.2f} ×", _met(beside <= 1.0)]
    findable, commit = (found["findable"][name]["p50_ms"] for name in ("remember_and_search", "bare_commit"))
    above = findable - commit
    yield [
        f"remembered to findable (profile fast) at {units:,} units ≤ 5 ms + one commit",
        f"{above:.1f} ms + one",
        _met(above <= 5.0),
    ]
    if units == 100_000:
        for kind, measured in found["open"].items():
            ready = measured["open_and_first_search"]["p50_ms"]
            goal = f"open 100,000 units and search, {KINDS[kind]} ≤ 1 s"
            yield [goal, f"{ready / 1000:.2f} s", _met(ready <= 1000.0)]
        room = found["size"]["resident_bytes_per_unit"]
        yield ["memory per unit, vectors included ≤ 2.5 kB", f"{room / 1000:.1f} kB", _met(room <= 2500.0)]


def _vector_goals(found: dict[str, Any]) -> Iterator[list[str]]:
    units = found["units"]
    if units < 100_000 or "ratio" not in found:
        return
    ratio, recall = found["ratio"]["p50"], found["recall_at_10"]["funnel"]
    goal = f"vector candidates of {units:,} ≤ 0.3 × faiss flat fp16 at recall@10 ≥ .99"
    yield [goal, f"{ratio:.2f} × at {recall:.3f}", _met(ratio <= 0.3 and recall >= 0.99)]


def _embedder_goals(name: str, found: dict[str, Any]) -> Iterator[list[str]]:
    ratio = found["ratio"]
    yield [f"`remember` ≥ 0.85 × the bare embedder ({name})", f"{ratio:.2f} ×", _met(ratio >= 0.85)]


def _vectors(result: dict[str, Any]) -> Iterator[str]:
    yield "## Vector candidates"
    yield "![Time of proposing by meaning, beside faiss](img/bench-vectors.svg)"
    labels = {"funnel": "Holdfast's funnel", "faiss": "faiss flat fp16"}
    rows = [
        [
            f"{found['units']:,}",
            labels[name],
            *_times(times),
            f"{found['recall_at_10'][name]:.3f}",
            f"{found['ratio']['p50']:.2f}" if name == "funnel" and "ratio" in found else "",
        ]
        for found in result["vectors"]
        for name, times in found["times"].items()
    ]
    yield _table(["vectors", "", "p50 ms", "p95 ms", "min ms", "recall@10", "p50 ÷ faiss"], rows)
    used = result["parameters"]
    near = result["vectors"][-1]["best_cosines"]
    yield (
        f"Vectors of 384 numbers, made up: topics of about {used['turns_per_topic']} turns, and questions near one"
        f" turn (cosine {near['first']:.2f} with the best, {near['last']:.2f} with the tenth). Both are asked for"
        f" {used['candidates']} candidates, on one thread, and recall is against exact search. Made-up vectors time"
        " the work; they say little about recall on real ones, which [Concepts](concepts.md#meaning) reports. Their"
        " topics were made large enough to fill the ten best: in a trial with five turns to a topic, where half of"
        " the ten are noise, the funnel's recall at 10,000 was .83."
    )
    small, large = (next((f for f in result["vectors"] if f["units"] == n), None) for n in (100_000, 1_000_000))
    if small and large:
        growth = large["times"]["funnel"]["p50_ms"] / small["times"]["funnel"]["p50_ms"]
        yield f"From 100,000 to a million vectors the funnel takes {growth:.1f} times as long."


def _hyper(result: dict[str, Any]) -> Iterator[str]:
    rows = [
        [
            f"{found['units']:,}",
            f"{found['hyper']['encode_us_per_unit']:,.0f}",
            f"{found['hyper']['fill_s']:.1f}",
            f"{found['hyper']['fill_questions']}",
            *_times(found["hyper"]["query"])[:2],
        ]
        for found in result["results"]
        if "hyper" in found
    ]
    if rows:
        yield "## Hypervectors"
        head = [
            "units",
            "encode µs per unit",
            "fill the cache s",
            "in questions",
            "question p50 ms",
            "question p95 ms",
        ]
        yield _table(head, rows)
        yield (
            "Hypervectors are made when they are first asked for, within the time budget of a question, and kept by"
            " the process. Filling also reads and analyses the units. A question is timed when the cache is full."
        )


def _writing(result: dict[str, Any]) -> Iterator[str]:
    yield "## Remembering"
    yield "![Where the time of one remembered unit goes](img/bench-ingest.svg)"
    session = result["parameters"]["messages_per_session"]
    rows = [
        [
            f"{found['units']:,}",
            f"{found['ingest']['units_per_s']:,.0f}",
            *_times(found["ingest"]["call"])[:2],
            f"{found['ingest']['late_over_early']:.2f}",
        ]
        for found in result["results"]
    ]
    yield _table(["units", "units/s", "call p50 ms", "call p95 ms", "last tenth ÷ first tenth"], rows)
    yield (
        f"Each call remembers a session of {session} messages and returns when they survive a power cut. Their"
        " vectors are given, and are written in a second transaction. The index is loaded and follows every call. The"
        " last column compares the median call at the end with the one at the beginning: 1 means that a growing"
        " memory does not slow down."
    )
    rows = [
        [f"{found['units']:,}", LABELS[name], *_times(times)]
        for found in result["results"]
        for name, times in found["findable"].items()
    ]
    yield _table(["units", "", "p50 ms", "p95 ms", "min ms"], rows)


def _embedding(result: dict[str, Any]) -> Iterator[str]:
    yield "## Embedding"
    rows = [
        [
            name,
            f"{found['one_text_per_call_per_s']:,.0f}",
            f"{found['bare_per_s']:,.0f}",
            f"{found['remember_per_s']:,.0f}",
            f"{found['ratio']:.2f}",
            f"{found['query_ms']:.1f}",
        ]
        for name, found in result["embedders"].items()
    ]
    head = ["model", "one text per call", "a session per call", "`remember`", "`remember` ÷ session", "question ms"]
    yield _table(head, rows)
    found = next(iter(result["embedders"].values()))
    session = result["parameters"]["messages_per_session"]
    yield (
        f"Texts per second, {found['texts']} of them, the bare model and `remember` by turns on the same sessions of"
        f" {session} texts. A model embeds every text by itself, {found['threads']} of them at the same time."
    )


def _room(result: dict[str, Any]) -> Iterator[str]:
    yield "## Opening, memory and disk"
    yield "![Time of opening a store and asking the first question, with a snapshot and without](img/bench-open.svg)"
    rows = [
        [f"{found['units']:,}", f"{LABELS[name]}, {KINDS[kind]}", *_times(times)]
        for found in result["results"]
        for kind, measured in found["open"].items()
        for name, times in measured.items()
    ]
    yield _table(["units", "", "p50 ms", "p95 ms", "min ms"], rows)
    yield (
        "The snapshot is the file `<database>.index` beside the database. `close` writes it when the index is newer"
        " than the file, so the time of `close` without one is the time of writing it."
    )
    names = ("resident", "restored", "disk", "snapshot", "text")
    rows = [
        [f"{found['units']:,}", *(f"{found['size'][f'{name}_bytes_per_unit']:,.0f}" for name in names)]
        for found in result["results"]
    ]
    head = ["units", "resident, index built", "resident, from a snapshot", "database", "snapshot", "text"]
    yield "Bytes per unit, vectors of 384 numbers included:"
    yield _table(head, rows)
    yield (
        "Measured in fresh processes, with the file in the system's cache. Resident memory is what the process grew"
        " by between an empty memory that had been used and this one after its first search."
    )


def _assembly(file: Path) -> Iterator[str]:
    """Yield what each stage of a context takes, as `assembly.py` measured it."""
    if not file.exists():
        return
    found = json.loads(file.read_text(encoding="utf-8"))
    yield f"## A context of {found['budget']:,} tokens for a user with {found['units']:,} units"
    yield (
        f"Measured by `python benchmarks/assembly.py` over {found['questions']} questions, their embedding included,"
        f" on {found['cores']} cores. Milliseconds."
    )
    rows = [[stage, f"{times['p50']:.1f}", f"{times['p95']:.1f}"] for stage, times in found["stages_ms"].items()]
    whole = found["whole_ms"]
    yield _table(
        ["stage", "p50", "p95"], [*rows, ["`assemble`, all of it", f"{whole['p50']:.1f}", f"{whole['p95']:.1f}"]]
    )


def _closure(file: Path) -> Iterator[str]:
    """Yield what conclusions from facts take, as `closure.py` measured it; it draws its own picture."""
    if not file.exists():
        return
    found = json.loads(file.read_text(encoding="utf-8"))
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
    yield _table(["further facts", "facts read", "p50 ms", "joined", "every pair, p50 ms", "joined by it"], rows)


def _million(file: Path) -> Iterator[str]:
    """Yield the figures of `million.py`, whose run takes too long to be part of every one."""
    if not file.exists():
        return
    found = json.loads(file.read_text(encoding="utf-8"))
    yield f"## One user with {found.pop('units'):,} units"
    yield "Measured by `python benchmarks/million.py`: made-up turns, random vectors, everything through `Memory`."
    rows = [
        [name, " · ".join(f"{value:,.4g}" for value in (values if isinstance(values, list) else [values]))]
        for name, values in found.items()
    ]
    yield _table(["", "measured"], rows)


def _method(result: dict[str, Any]) -> Iterator[str]:
    used = result["parameters"]
    (low, high), (few, many) = used["words_per_turn"], used["words_per_question"]
    yield "## How"
    yield (
        f"The texts are made up from seed {used['seed']}: turns of {low} to {high} words, nearly half function"
        " words, the rest with the frequencies of real chat, and one id that no other turn has. A question is"
        f" {few} to {many} words of one turn, without its id. {used['questions']} questions are timed after"
        f" {used['warm_up']} others that are not, in {used['rounds']} rounds; {used['singles']} single turns are"
        f" remembered and searched; the store is opened {used['opens']} times with a snapshot and as often without."
    )
    yield (
        "Products of matrices are held to one thread. With the default of one for each core, a question waits for"
        " some milliseconds whenever other work holds a core."
    )
    yield (
        "A stand-in takes the place of the model everywhere but under Embedding: it looks up vectors that were made"
        " up beforehand. So all other numbers leave out what a model takes for a text or a question."
    )
    yield "Run it with `pip install --group bench`, `python benchmarks/run.py` and `python benchmarks/report.py`."


def sentence_by_line(paragraph: str) -> str:
    """Return a paragraph with every sentence on a line of its own, as in the other pages; tables stay."""
    return paragraph if paragraph.startswith(("|", "<", "!")) else SENTENCE_END.sub("\n", paragraph)


def _times(times: dict[str, float]) -> list[str]:
    return [f"{times[f'{point}_ms']:,.2f}" for point in ("p50", "p95", "min")]


def _ratio(ratio: dict[str, float] | None) -> str:
    return "" if ratio is None else f"{ratio['p50']:.2f}"


def _met(reached: bool) -> str:  # noqa: FBT001 - one word in, one word out
    return "yes" if reached else "**no**"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table; what begins with a digit or is a head over it stands right."""
    numeric = [all(not row[i] or row[i][0].isdigit() for row in rows) and i > 0 for i in range(len(head))]
    rule = ["---:" if right else "---" for right in numeric]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, rule, *rows))


# ------------------------------------------------------------------------------------------------ plots


def prepare_plots() -> Any:
    """Return pyplot, set up so that equal results give equal bytes."""
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams.update(
        {
            "svg.hashsalt": HASH_SALT,
            "svg.fonttype": "none",  # text stays text: smaller, searchable, and read aloud
            "font.size": FONT_SIZE,
            "text.color": INK,
            "axes.labelcolor": INK,
            "axes.edgecolor": FAINT,
            "xtick.color": INK,
            "ytick.color": INK,
        }
    )
    from matplotlib import pyplot as plt

    return plt


def plot_search(result: dict[str, Any], plt: Any, file: Path) -> None:
    """Draw p50 as a dot and p95 as the end of a line, by system and size. Dots, because a logarithm has no zero."""
    from matplotlib.ticker import FuncFormatter

    rows = [
        (f"{LABELS[name].replace('`', '')} · {found['units']:,}", name, times)
        for name in LABELS
        for found in result["results"]
        if (times := found["search"]["times"].get(name))
    ]
    figure, axes = plt.subplots(figsize=(WIDTH_INCHES, FRAME_INCHES + ROW_INCHES * len(rows)))
    for y, (_, name, times) in enumerate(rows):
        p50, p95 = times["p50_ms"], times["p95_ms"]
        colour = COLOURS["peer" if name in PEERS else "ours"]
        axes.plot([p50, p95], [y, y], color=colour, linewidth=2, marker="|", markevery=[1])
        axes.plot([p50], [y], color=colour, marker="o", markersize=8)
        axes.annotate(f"{p50:.2g}", (p95, y), xytext=(7, 0), textcoords="offset points", va="center")
    axes.set_yticks(range(len(rows)), [label for label, _, _ in rows])
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.margins(x=0.15)
    axes.set_xlabel("milliseconds per question (dot: p50, end of line: p95) · number of units behind each name")
    _save(figure, axes, plt, file)


def plot_ingest(result: dict[str, Any], plt: Any, file: Path) -> None:
    """Draw where the microseconds of one remembered unit go."""
    found = result["results"]
    figure, axes = plt.subplots(figsize=(WIDTH_INCHES, FRAME_INCHES + 2 * ROW_INCHES * len(found)))
    left = [0.0] * len(found)
    stages = {"analysis": "ours_light", "store": "ours", "vectors": "peer", "rest": "rest"}
    names = {
        "analysis": "analysis",
        "store": "words: commit, index",
        "vectors": "vectors: commit, index",
        "rest": "rest",
    }
    for stage, colour in stages.items():
        widths = [entry["ingest"]["stages_us_per_unit"][stage] for entry in found]
        axes.barh(range(len(found)), widths, left=left, color=COLOURS[colour], height=0.6, label=names[stage])
        left = [before + width for before, width in zip(left, widths, strict=True)]
    axes.set_yticks(range(len(found)), [f"{entry['units']:,} units" for entry in found])
    axes.invert_yaxis()
    axes.set_xlabel("microseconds per remembered unit")
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=len(stages), frameon=False)
    _save(figure, axes, plt, file)


def plot_vectors(result: dict[str, Any], plt: Any, file: Path) -> None:
    """Draw p50 by the number of vectors, both on logarithms: equal steps are equal factors."""
    from matplotlib.ticker import FuncFormatter

    figure, axes = plt.subplots(figsize=(WIDTH_INCHES, FRAME_INCHES + ROW_INCHES * 6))
    for name, label, colour in (("funnel", "Holdfast's funnel", "ours"), ("faiss", "faiss flat fp16", "peer")):
        points = [(f["units"], f["times"][name]["p50_ms"]) for f in result["vectors"] if name in f["times"]]
        if points:
            axes.plot(*zip(*points, strict=True), color=COLOURS[colour], marker="o", linewidth=2, label=label)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.set_xlabel("vectors")
    axes.set_ylabel("milliseconds, p50")
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2, frameon=False)
    _save(figure, axes, plt, file)


def plot_open(result: dict[str, Any], plt: Any, file: Path) -> None:
    """Draw how long it takes until the first question is answered, with a snapshot and without."""
    rows = [
        (f"{found['units']:,} units, {KINDS[kind]}", kind, measured["open_and_first_search"]["p50_ms"])
        for found in result["results"]
        for kind, measured in found["open"].items()
    ]
    figure, axes = plt.subplots(figsize=(WIDTH_INCHES, FRAME_INCHES + 1.3 * ROW_INCHES * len(rows)))
    colours = {"snapshot": "ours", "built": "ours_light"}
    for y, (_, kind, ready) in enumerate(rows):
        axes.barh(y, ready / 1000, color=COLOURS[colours[kind]], height=0.6)
        axes.annotate(
            f"{ready / 1000:.2f}", (ready / 1000, y), xytext=(5, 0), textcoords="offset points", va="center"
        )
    axes.set_yticks(range(len(rows)), [label for label, _, _ in rows])
    axes.invert_yaxis()
    axes.margins(x=0.1)
    axes.set_xlabel("seconds from opening the file to the first answer, in a new process")
    _save(figure, axes, plt, file)


def _save(figure: Any, axes: Any, plt: Any, file: Path) -> None:
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.tick_params(length=0)
    axes.grid(axis="x", color=FAINT)
    axes.set_axisbelow(True)
    figure.savefig(
        file, format="svg", transparent=True, bbox_inches="tight", metadata={"Date": None, "Creator": None}
    )
    plt.close(figure)


# ------------------------------------------------------------------------------------------------- main


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("result", type=Path, nargs="?", help="result of run.py (default: the newest)")
    parser.add_argument("--out-dir", type=Path, default=ROOT / "docs", help="folder of the page (default: docs)")
    given = parser.parse_args(arguments)
    if importlib.util.find_spec("matplotlib") is None:
        raise SystemExit(f"matplotlib is not installed; run: {INSTALL}")
    source = given.result or newest(RESULTS)
    result = json.loads(source.read_text(encoding="utf-8"))
    images = given.out_dir / "img"
    images.mkdir(parents=True, exist_ok=True)
    plt = prepare_plots()
    plot_search(result, plt, images / "bench-search.svg")
    plot_ingest(result, plt, images / "bench-ingest.svg")
    plot_vectors(result, plt, images / "bench-vectors.svg")
    plot_open(result, plt, images / "bench-open.svg")
    text = "\n\n".join(map(sentence_by_line, page(result, f"benchmarks/results/{source.name}")))
    (given.out_dir / "benchmarks.md").write_text(text + "\n", encoding="utf-8")
    print("written: benchmarks.md, img/bench-{search,ingest,vectors,open}.svg")


if __name__ == "__main__":
    main(sys.argv[1:])
