"""Draw docs/img/reading.svg: how often the first hit answers, with reading off and on, by kind of question.

`python scripts/plot_reading.py BEFORE AFTER` takes the folders of two evaluation runs over the same sets, as of
`holdfast eval --data DATA --only histories --set stages.read=off --out BEFORE`. Kinds of few
questions are joined. It needs matplotlib.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib import pyplot as plt

from holdfast.eval.metrics import Measurement
from holdfast.eval.report import StoredRun

PICTURE = Path(__file__).resolve().parent.parent / "docs" / "img" / "reading.svg"
METRIC, SYSTEM = "hit@1", "hybrid"
# A share of fewer questions than this says nothing.
FEWEST, OTHERS = 8, "others"
Shares = dict[str, tuple[int, float, float]]


def main() -> None:
    parser = argparse.ArgumentParser(description="Draw first hits before and after reading, by kind of question.")
    parser.add_argument("before", type=Path, help="folder of a run with reading off")
    parser.add_argument("after", type=Path, help="folder of a run with reading on")
    parser.add_argument("--out", type=Path, default=PICTURE)
    given = parser.parse_args()
    before, after = (measured(StoredRun.read(place)) for place in (given.before, given.after))
    plot(shares(before, after), given.out)


def measured(run: StoredRun) -> dict[tuple[str, str], Measurement]:
    """Return what was measured of the product, by set and question."""
    return {
        (name, f"{record.haystack} {record.question}"): record
        for (name, system), records in run.records.items()
        if system == SYSTEM
        for record in records
        if METRIC in record.metrics
    }


def shares(before: dict[tuple[str, str], Measurement], after: dict[tuple[str, str], Measurement]) -> Shares:
    """Return of each kind: how many questions both runs have, and the share of right first hits in either."""
    both = [key for key in before if key in after]
    if not both:
        raise SystemExit("the runs have no question in common; measure the same sets in both")
    kinds: dict[str, list[tuple[str, str]]] = {}
    for key in both:
        kinds.setdefault(before[key].category, []).append(key)
    few = [kind for kind, keys in kinds.items() if len(keys) < FEWEST]
    joined = [key for kind in few for key in kinds.pop(kind)]
    rows = sorted(kinds.items(), key=lambda row: -len(row[1])) + ([(OTHERS, joined)] if joined else [])
    return {kind: (len(keys), _mean(before, keys), _mean(after, keys)) for kind, keys in rows}


def _mean(run: dict[tuple[str, str], Measurement], keys: Sequence[tuple[str, str]]) -> float:
    return float(np.mean([run[key].metrics[METRIC] for key in keys]))


def plot(rows: Shares, file: Path) -> None:
    """Draw one pair of bars for each kind of question."""
    mpl.use("svg")
    grey = dict.fromkeys(("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"), "#7d8590")
    style: dict[Any, Any] = {"svg.hashsalt": "holdfast", "svg.fonttype": "none", "font.size": 11, **grey}
    mpl.rcParams.update(style)
    figure, axes = plt.subplots(figsize=(7.5, 0.45 * len(rows) + 1.2))
    places = np.arange(len(rows))
    for column, (label, colour) in enumerate((("reading off", "#9aa4af"), ("reading on", "#2f81f7"))):
        axes.barh(places + 0.4 * column, [row[1 + column] for row in rows.values()], 0.38, label=label, color=colour)
    axes.set_yticks(places + 0.2, [f"{kind} ({count})" for kind, (count, *_) in rows.items()])
    axes.invert_yaxis()
    axes.set_xlim(0.0, 1.0)
    axes.set_xlabel("share of questions whose first hit answers")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, loc="lower right")
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(
        file, format="svg", transparent=True, bbox_inches="tight", metadata={"Date": None, "Creator": None}
    )


if __name__ == "__main__":
    main()
