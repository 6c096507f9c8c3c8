"""Write the figures of evaluation runs into docs/evaluation.md.

A place for a table:

    <!-- figures: baselines -->
    (replaced)
    <!-- end -->

`python scripts/figures.py RUN…` reads the manifest and the journal of each run's folder, and puts their figures into
the tables; rows that these runs did not measure stay as they are. Where two runs measured the same, the later counts.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from holdfast import Settings
from holdfast.eval.report import StoredRun, Table, figure, metric_cell, paired_cell, signed

PAGE = Path(__file__).resolve().parent.parent / "docs" / "evaluation.md"
PLACE = re.compile(r"<!-- figures: (?P<name>[\w-]+) -->\n(?P<body>.*?)<!-- end -->", re.DOTALL)

Row = Mapping[str, Any]

# Public sets by the words that their schema, name and files hold together: a folder may be called anything.
SETS = {
    "LoCoMo": ("locomo",),
    "LongMemEval": ("longmemeval",),
    "BEAM 100K": ("beam", "100k"),
    "BEAM 500K": ("beam", "500k"),
    "RealMem": ("realmem",),
    "HotpotQA": ("qrels", "hotpot"),
    "MuSiQue": ("qrels", "musique"),
    "Cranfield": ("qrels", "cranfield"),
    "TSQA": ("tsqa",),
}
_ANSWERED = ("multi-hop", "open-domain", "temporal", "single-hop")


@dataclass(frozen=True, slots=True)
class Target:
    """A published figure of plain BM25: of a whole set, or of the questions of some categories."""

    set: str
    metric: str
    value: float
    categories: tuple[str, ...] = ()
    group: str = "all"


TARGETS = (
    Target("LoCoMo", "recall@10", 0.593, _ANSWERED, "without adversarial"),
    Target("LoCoMo", "ndcg@10", 0.468, _ANSWERED, "without adversarial"),
    Target("LoCoMo", "recall@10", 0.283, ("multi-hop",), "multi-hop"),
    Target("LongMemEval", "session_recall_all@5", 0.821),
    Target("LongMemEval", "recall@10", 0.746),
    Target("LongMemEval", "packed@2k", 0.679),
    Target("BEAM 100K", "recall@10", 0.42),
    Target("BEAM 500K", "recall@10", 0.26),
    Target("RealMem", "recall@10", 0.697),
    Target("HotpotQA", "recall_all@10", 0.833),
    Target("MuSiQue", "recall_all@10", 0.250),
    Target("Cranfield", "ndcg@10", 0.526),
    Target("TSQA", "hit@1", 0.312),
)

BASELINE, PRODUCT, REFERENCE, WITHOUT = "bm25", "hybrid", "reference", "hybrid without "
# What the table of sets compares, and what each is called there.
SYSTEMS = {BASELINE: "plain BM25", PRODUCT: "Holdfast", REFERENCE: "reference recipe"}
OVERVIEW = ("hit@1", "recall@10", "recall_all@10", "ndcg@10", "session_hit@1", "survival@2k")
ABLATED = ("recall@10",)
ABLATED_SETS = ("LoCoMo", "LongMemEval", "BEAM 100K")
PACKED = ("survival@1k", "survival@2k", "survival@4k", "survival@8k")
PACKED_SETS = ("LoCoMo", "LongMemEval")
PACKINGS = ("prefix", "skip", "excerpt")
# A part says nothing in a table when every interval holds 0.
CLEAR = re.compile(r"\n−.* to −(?!\.000)|\n\+(?!\.000)")
GROWTH = ("lost_by_growing", "ever_lost_by_growing")
POOLED = "all"
CURRENT = ("currency", "current_first")
COMPACTED = "hybrid compacted"
COMPARED = ("recall@10", "survival@2k")
EMBEDDED = ("recall@10",)
COUNTED = PAGE.parent.parent / "benchmarks" / "results" / "compaction.json"
HOP_SETS = ("HotpotQA", "MuSiQue")
HOP_METRICS = ("recall@5", "recall_all@5", "recall@10", "recall_all@10")
HOP_SYSTEMS = {
    "bm25": "plain BM25",
    "thinking": "`thinking`",
    "hybrid without mentions without shared_names": "`hybrid` without mention links",
    "hybrid": "`hybrid`",
}


# ------------------------------------------------------------------------------------------------ reading runs


@dataclass(frozen=True, slots=True)
class Measured:
    """One set and system of one run. `changed` are settings that differ from the default recipe."""

    set: str
    system: str
    row: Row
    changed: Mapping[str, object]
    kept: StoredRun

    def shown(self, metric: str) -> str:
        """Return a metric with its interval, or nothing."""
        return metric_cell(self.row, metric)


def read_runs(places: Iterable[Path]) -> list[Measured]:
    """Return everything that the runs measured; a set that is not public goes by its own name.

    Raises:
        SystemExit: a run is a quick one, whose figures are not for a page.
    """
    found = []
    for place in places:
        kept = StoredRun.read(place)
        if kept.manifest.get("quick"):
            raise SystemExit(f"{place} is a quick run, over a part of the data; measure the whole of it")
        changed = changed_settings(kept.manifest["settings"])
        names = {row["set"]: public_name(row) for row in kept.manifest["data"]}
        found += [Measured(names[row["set"]], row["system"], row, changed, kept) for row in kept.manifest["runs"]]
    return found


def public_name(data: Row) -> str:
    """Return the public name of a set, told by schema, name and files."""
    words = " ".join((data["schema"], data["set"], *data["checksums"])).lower()
    return next((name for name, needed in SETS.items() if all(word in words for word in needed)), data["set"])


def changed_settings(settings: Row) -> dict[str, object]:
    """Return the settings of a run that are not the default recipe's, apart from where its store is."""
    default = {row.key: _plain(row.value) for row in Settings().describe()}
    return {
        key: value
        for key, value in settings.items()
        # A run of an earlier version may have keys that are constants now.
        if key in default and not key.startswith("store.") and _plain(value) != default[key]
    }


def _plain(value: object) -> object:
    return list(value) if isinstance(value, tuple) else value  # JSON has no tuples


def latest(found: Iterable[Measured]) -> dict[tuple[str, str], Measured]:
    """Return the last measurement of each set and system, in the order of the public sets."""
    places = {name: place for place, name in enumerate(SETS)}
    last = {(each.set, each.system): each for each in found}
    return dict(sorted(last.items(), key=lambda item: (places.get(item[0][0], len(places)), item[0])))


# ------------------------------------------------------------------------------------------------------ tables

Tables = list[Table]


def table(head: Sequence[str], rows: Sequence[Sequence[str]], texts: int) -> Tables:
    """Return one table; none without rows."""
    return [Table("", head, rows, texts)] if rows else []


def group_mean(row: Row, metric: str, categories: Sequence[str]) -> float | None:
    """Return the mean over the questions of some categories: their means, weighted by how many questions each has."""
    if not categories:
        mean: float | None = row["metrics"].get(metric)
        return mean
    found = [
        (own["n"], own["metrics"][metric])
        for name, own in row["by_category"].items()
        if name in categories and metric in own["metrics"]
    ]
    questions = sum(n for n, _ in found)
    return sum(n * value for n, value in found) / questions if questions else None


def baselines(found: Sequence[Measured]) -> Tables:
    """Return published figures of plain BM25 beside ours."""
    measured = latest(each for each in found if each.system == BASELINE)
    rows = []
    for target in TARGETS:
        own = measured.get((target.set, BASELINE))
        value = group_mean(own.row, target.metric, target.categories) if own is not None else None
        if value is not None:
            cells = (figure(target.value), figure(value), signed(value - target.value))
            rows.append((target.set, target.group, target.metric, *cells))
    return table(("set", "questions", "metric", "published", "ours", "difference"), rows, texts=3)


def embedders(found: Sequence[Measured]) -> Tables:
    """Return the default recipe with another embedder beside the shipped one, question by question."""
    of_product = [each for each in found if each.system == PRODUCT]
    ours = latest(each for each in of_product if not each.changed)
    others = latest(
        each for each in of_product if each.changed and all(key.startswith("embedding.") for key in each.changed)
    )
    rows = []
    for name, _ in others:
        other, own = others[name, PRODUCT], ours.get((name, PRODUCT))
        if own is None:
            continue
        before, after = (each.kept.records.get((each.row["set"], PRODUCT), []) for each in (other, own))
        rows += [
            (name, metric, figure(other.row["metrics"][metric]), figure(own.row["metrics"][metric]),
             paired_cell(before, after, metric))
            for metric in EMBEDDED
            if metric in own.row["metrics"]
        ]  # fmt: skip
    return table(("set", "metric", "all-MiniLM-L6-v2", "`minilm`", "difference"), rows, texts=2)


def sets(found: Sequence[Measured]) -> Tables:
    """Return the default recipe on every public set, between plain BM25 and the reference recipe."""
    measured = latest(each for each in found if each.system in SYSTEMS and not each.changed and each.set in SETS)
    metrics = [name for name in OVERVIEW if any(name in each.row["metrics"] for each in measured.values())]
    rows = [
        (name, str(own.row["n"]), label, *(own.shown(metric) for metric in metrics))
        for name in dict.fromkeys(name for name, _ in measured)
        for system, label in SYSTEMS.items()
        if (own := measured.get((name, system))) is not None
    ]
    return table(("set", "questions", "system", *metrics), rows, texts=1)


def ablation(found: Sequence[Measured]) -> Tables:
    """Return what switching each part off does, question by question, on three chat sets."""
    made: Tables = []
    plain = [each for each in found if not each.changed]
    whole = {(each.set, id(each.kept)): each for each in plain if each.system == PRODUCT}
    off = latest(
        each
        for each in plain
        if (each.system.startswith(WITHOUT) or each.system == BASELINE) and (each.set, id(each.kept)) in whole
    )
    systems = sorted({system for _, system in off}, key=lambda system: (system != BASELINE, system))
    names = [name for name in ABLATED_SETS if any(name == own for own, _ in off)]
    for metric in ABLATED:
        rows = []
        for system in systems:
            cells = [_paired(off.get((name, system)), whole, metric) for name in names]
            if any(CLEAR.search(cell) for cell in cells):
                label = SYSTEMS.get(system) or f"`{system.removeprefix(WITHOUT)}`"
                rows.append((label, *cells))
        made += table((f"off: {metric}", *names), rows, texts=1)
    return made


def _paired(own: Measured | None, whole: Mapping[tuple[str, int], Measured], metric: str) -> str:
    if own is None:
        return ""
    base = whole[(own.set, id(own.kept))]
    before, after = (own.kept.records.get((each.row["set"], each.system), []) for each in (base, own))
    return paired_cell(before, after, metric)


def packing(found: Sequence[Measured]) -> Tables:
    """Return what of the evidence survives each way of packing, on two chat sets."""
    rows = []
    plain = latest(each for each in found if each.system == BASELINE and PACKED[0] in each.row["metrics"])
    for name in PACKED_SETS:
        if (name, BASELINE) in plain:
            shown = (plain[name, BASELINE].shown(metric) for metric in PACKED)
            rows.append((name, "plain BM25, `skip`", *shown))
        for way in PACKINGS:
            own = [
                each
                for each in found
                if (each.set, each.system) == (name, PRODUCT)
                and set(each.changed) <= {"assembly.packing"}
                and each.kept.manifest["settings"]["assembly.packing"] == way
                and PACKED[0] in each.row["metrics"]
            ]
            if own:
                rows.append((name, f"`{way}`", *(own[-1].shown(metric) for metric in PACKED)))
    return table(("set", "packing", *PACKED), rows, texts=2)


def growth(found: Sequence[Measured]) -> Tables:
    """Return how much evidence larger contexts lose, by set and over all sets."""
    rows = []
    for system in (BASELINE, PRODUCT):
        own = [each for (_, name), each in latest(found).items() if name == system and not each.changed]
        own = [each for each in own if GROWTH[0] in each.row["metrics"] and each.set in SETS]
        rows += [(each.set, SYSTEMS[system], *(each.shown(metric) for metric in GROWTH)) for each in own]
        if own:
            rows.append((POOLED, SYSTEMS[system], *(figure(_pooled(own, metric)) for metric in GROWTH)))
    return table(("set", "system", *GROWTH), rows, texts=2)


def currency(found: Sequence[Measured]) -> Tables:
    """Return how often what holds now stands above what held before, and the same without the stage."""
    measured = {key: each for key, each in latest(found).items() if not each.changed}
    told = [each for (_, system), each in measured.items() if system == PRODUCT and CURRENT[0] in each.row["metrics"]]
    off = {each.set: measured.get((each.set, WITHOUT + "current")) for each in told}
    rows = [
        (each.set, str(each.row["counts"][CURRENT[0]]), *chain.from_iterable(
            (one.shown(metric) if (one := off[each.set]) else "", each.shown(metric)) for metric in CURRENT
        ))
        for each in told
    ]  # fmt: skip
    public = [(off[each.set], each) for each in told if each.set in SETS]
    if len(public) > 1 and all(without for without, _ in public):
        both = [[each for each in side if each] for side in zip(*public, strict=True)]
        counted = str(sum(each.row["counts"][CURRENT[0]] for _, each in public))
        rows.append((POOLED, counted, *(figure(_pooled(side, metric)) for metric in CURRENT for side in both)))
    head = chain.from_iterable((f"{metric} without", metric) for metric in CURRENT)
    return table(("set", "questions", *head), rows, texts=1)


def _pooled(found: Sequence[Measured], metric: str) -> float:
    """Return the mean over the questions of several sets."""
    counts = [each.row["counts"][metric] for each in found]
    pairs = zip(counts, found, strict=True)
    return float(sum(count * each.row["metrics"][metric] for count, each in pairs) / sum(counts))


def compacted(found: Sequence[Measured]) -> Tables:
    """Return every chat set before and after its sessions were compacted, and the difference question by question."""
    after = latest(each for each in found if each.system == COMPACTED and not each.changed)
    whole = {(each.set, id(each.kept)): each for each in found if each.system == PRODUCT}
    rows = []
    for own in after.values():
        base = whole[(own.set, id(own.kept))]
        rows += [
            (own.set, metric, base.shown(metric), own.shown(metric), _paired(own, whole, metric))
            for metric in COMPARED
            if metric in own.row["metrics"]
        ]
    return table(("set", "metric", "before", "after", "difference"), rows, texts=2)


def compaction(_: Sequence[Measured]) -> Tables:
    """Return how many summaries stand for how many turns, from `benchmarks/compaction.py`."""
    if not COUNTED.exists():
        return []
    rows = []
    for name, one in json.loads(COUNTED.read_text(encoding="utf-8")).items():
        saved = one["tokens_before"] - one["tokens_after"]
        ratio = one["turns"] / max(one["summaries"], 1)
        share = saved / max(one["tokens_before"], 1)
        cells = (one["messages"], one["turns"], one["summaries"], f"{ratio:.1f}", figure(one["confidence"]))
        rows.append((name, *map(str, cells), f"{saved:,} ({share:.0%})"))
    head = ("set", "messages", "covered", "summaries", "turns each", "confidence", "tokens saved")
    return table(head, rows, texts=1)


def hops(found: Sequence[Measured]) -> Tables:
    """Return the profiles on questions that need two or more passages."""
    measured = latest(each for each in found if each.set in HOP_SETS and not each.changed)
    rows = [
        (name, label, *(measured[name, system].shown(metric) for metric in HOP_METRICS))
        for name in HOP_SETS
        for system, label in HOP_SYSTEMS.items()
        if (name, system) in measured
    ]
    return table(("set", "profile", *HOP_METRICS), rows, texts=2)


# Each table, and which of its columns say what a row is of.
TABLES: Mapping[str, tuple[Callable[[Sequence[Measured]], Tables], tuple[int, ...]]] = {
    "baselines": (baselines, (0, 1, 2)),
    "sets": (sets, (0, 2)),
    "embedders": (embedders, (0, 1)),
    "ablation": (ablation, (0,)),
    "packing": (packing, (0, 1)),
    "growth": (growth, (0, 1)),
    "currency": (currency, (0,)),
    "compacted": (compacted, (0, 1)),
    "compaction": (compaction, (0,)),
    "hops": (hops, (0, 1)),
}


# ------------------------------------------------------------------------------------------------------ the page

Cells = dict[str, str]  # a row, by the head of its column


@dataclass(frozen=True, slots=True)
class PageTable:
    """A table as it stands on a page: its head, the rule under it, and its rows by what they are of."""

    head: list[str]
    rule: list[str]
    rows: dict[tuple[str, ...], Cells]

    @classmethod
    def read(cls, text: str, keys: Sequence[int]) -> PageTable:
        """Read the lines of a Markdown table."""
        head, rule, *rows = ([cell.strip() for cell in line.strip("|").split(" | ")] for line in text.split("\n"))
        return cls(head, rule, {tuple(row[k] for k in keys): dict(zip(head, row, strict=True)) for row in rows})

    def update(self, new: PageTable) -> PageTable:
        """Return the table with what was measured anew; rows and columns that were not stay as they are.

        A figure over all sets would no longer be one of the rows beside it, and goes.
        """
        head, rule = list(self.head), list(self.rule)
        for place, name in enumerate(new.head):
            if name not in head:
                head.insert(place, name)
                rule.insert(place, new.rule[place])
        order = list(self.rows)
        for place, key in enumerate(new.rows):
            if key not in order:
                order.insert(order.index(list(new.rows)[place - 1]) + 1 if place else 0, key)
        if not self.rows.keys() <= new.rows.keys():
            order = [key for key in order if POOLED not in key]
        return PageTable(head, rule, {key: self.rows.get(key, {}) | new.rows.get(key, {}) for key in order})

    def markdown(self) -> str:
        """Write the table down again."""
        rows = ([row.get(name, "") for name in self.head] for row in self.rows.values())
        return "\n".join(f"| {' | '.join(cells)} |" for cells in (self.head, self.rule, *rows))


def merge_tables(old: str, made: Tables, keys: Sequence[int]) -> str:
    """Return the new tables, each with what the page's table of the same first heading has beyond it."""
    places = [PageTable.read(text, keys) for text in old.strip().split("\n\n") if text.startswith("|")]
    known = {place.head[0]: place for place in places}
    fresh = [PageTable.read(table.markdown(), keys) for table in made]
    known |= {new.head[0]: known[new.head[0]].update(new) if new.head[0] in known else new for new in fresh}
    return "\n\n".join(place.markdown() for place in known.values())


def rewrite(text: str, found: Sequence[Measured]) -> tuple[str, list[str]]:
    """Return the page with its tables, and the names of those that these runs have no figures for."""
    without = []

    def place(match: re.Match[str]) -> str:
        name = match["name"]
        if name not in TABLES:
            raise SystemExit(f"there is no table {name!r}; choose from {', '.join(TABLES)}")
        build, keys = TABLES[name]
        made = build(found)
        if not made:
            without.append(name)
            return match.group()
        return f"<!-- figures: {name} -->\n{merge_tables(match['body'], made, keys)}\n<!-- end -->"

    return PLACE.sub(place, text), without


def main() -> None:
    """Rewrite the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("runs", nargs="+", type=Path, help="folders of runs, or their manifests")
    parser.add_argument("--page", type=Path, default=PAGE, help="the page with the places")
    options = parser.parse_args()
    found = read_runs(options.runs)
    text, without = rewrite(options.page.read_text(encoding="utf-8"), found)
    options.page.write_text(text, encoding="utf-8")
    for changed in dict.fromkeys(", ".join(each.changed) for each in found if each.changed):
        print(f"a run with other settings than the default recipe is in no table but its own: {changed}")
    if without:
        print(f"no figures for {', '.join(without)}: left as they were")


if __name__ == "__main__":
    main()
