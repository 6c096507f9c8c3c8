"""Print what 1 to 1,000 PostgreSQL servers hold, answer and cost, from what one was measured to do.

    python scripts/scale.py                      # the table of docs/scale.md
    python scripts/scale.py --disk-gib 2000 --cores 32 --price 900

The figures are those of benchmarks/results/postgres.json, which `python benchmarks/postgres.py` writes: of its part
with most units `bytes/unit`, and the most `questions/s` of any number of processes. A file of the shape
{"bytes_per_unit": …, "questions_per_second": {"1": …, "2": …, "4": …}} is read too. The rest is arithmetic.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FIGURES = Path(__file__).resolve().parent.parent / "benchmarks" / "results" / "postgres.json"
SERVERS = (1, 3, 10, 30, 100, 300, 1000)
# A usual server for a database, and what one is rented for a month, in euros: both are the reader's to change.
DISK_GIB, CORES, PRICE = 1000.0, 16, 400.0
# Of the machine that was measured.
MEASURED_CORES = 2
# Writing the tables anew after an erasure needs as much again.
FULL = 0.5
# Cores share memory and disk: of a server with many, each does less than of one with two.
SHARED = 0.7
GIB = 2**30


@dataclass(frozen=True)
class Measured:
    """What one server was measured to do."""

    bytes_per_unit: float
    questions_per_second: float  # the most, whatever the number of processes


def read(path: Path) -> Measured:
    """Return the figures of a file; whoever has none hears how to make them."""
    if not path.exists():
        sys.exit(f"{path} does not exist; run `python benchmarks/postgres.py` first")
    try:
        return _figures(json.loads(path.read_text(encoding="utf-8")))
    except (KeyError, ValueError) as error:
        sys.exit(f"{path} lacks a figure ({error}); run `python benchmarks/postgres.py` again")


def _figures(found: Mapping[str, Any]) -> Measured:
    if "parts" not in found:
        return Measured(found["bytes_per_unit"], max(found["questions_per_second"].values()))
    parts = [one for name, one in found["parts"].items() if name.startswith("PostgreSQL")]
    largest = max(parts, key=lambda one: one["units"])
    return Measured(largest["bytes/unit"], max(largest["questions/s"].values()))


def table(measured: Measured, disk_gib: float, cores: int, price: float) -> str:
    """Return the table, as Markdown."""
    units = disk_gib * GIB * FULL / measured.bytes_per_unit
    rate = measured.questions_per_second * cores / MEASURED_CORES * SHARED
    told = (
        f"Measured: {measured.bytes_per_unit:,.0f} bytes a unit, {measured.questions_per_second:,.0f} questions a "
        f"second on {MEASURED_CORES} cores. Assumed: a server of {cores} cores, each {SHARED:.0%} as quick as those, "
        f"with {disk_gib:,.0f} GiB of disk, {FULL:.0%} of it used, for {price:,.0f} € a month."
    )
    heads = ("servers", "units", "bytes", "questions/s", "€ a month", "€ a month for a million units")
    lines = [told, "", f"| {' | '.join(heads)} |", f"|{'---:|' * len(heads)}"]
    for count in SERVERS:
        held = units * count
        cells = [
            f"{count:,}", _short(held), _short(held * measured.bytes_per_unit), _short(rate * count),
            f"{price * count:,.0f}", f"{price / units * 1e6:.2f}",
        ]  # fmt: skip
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _short(number: float) -> str:
    """Return a number with three digits that count and a letter for its size."""
    for size, letter in ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= size:
            return f"{number / size:.3g} {letter}"
    return f"{number:.3g}"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--figures", type=Path, default=FIGURES)
    parser.add_argument("--disk-gib", type=float, default=DISK_GIB)
    parser.add_argument("--cores", type=int, default=CORES)
    parser.add_argument("--price", type=float, default=PRICE)
    given = parser.parse_args()
    print(table(read(given.figures), given.disk_gib, given.cores, given.price))


if __name__ == "__main__":
    main()
