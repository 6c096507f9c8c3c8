"""Compare the token estimates of C3 with real tokenizers, class of text by class of text.

    python benchmarks/token_texts.py --out DIR
    python benchmarks/token_ratios.py --texts DIR --out benchmarks/results/token_ratios.json
    python benchmarks/token_ratios.py --out benchmarks/results/token_ratios.json --markdown

Every file of DIR, or of a folder in it, is one class. It is cut into pieces; each piece is counted by both
tokenizers and estimated by both recipes. Without `--texts` the committed result is printed again.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.metadata
import json
import statistics
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict
from itertools import cycle
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import track
from rich.table import Table

from holdfast.text.tokens import DEFAULT_RATIOS, REFERENCE_RATIOS, TokenRatios, estimate

# From a short message to a long one: what a memory holds. All are far below the tokenizer's limit of 20,000.
PIECE_CHARS = (200, 500, 1000, 2000)
# The versions of these encodings are those of the package that carries them.
TOKENIZER_PACKAGE = "bpe-openai"
ENCODINGS = {"o200k": "o200k_base", "cl100k": "cl100k_base"}
RECIPES: dict[str, TokenRatios] = {"reference": REFERENCE_RATIOS, "default": DEFAULT_RATIOS}
# The low end of the pieces: what a budget should still survive.
LOW_SHARE = 0.05
# Eight columns side by side.
TABLE_WIDTH = 170


def pieces(text: str) -> Iterator[str]:
    """Cut `text` into pieces of the sizes in turn, dropping a last one that is shorter than any size."""
    start = 0
    for size in cycle(PIECE_CHARS):
        piece = text[start : start + size]
        if len(piece) < min(PIECE_CHARS):
            return
        yield piece
        start += size


def load_tokenizers() -> dict[str, Callable[[str], int]]:
    """Return a counter for each real tokenizer."""
    import bpe_openai

    def counter(encoding: Any) -> Callable[[str], int]:
        return lambda text: len(encoding.encode_ordinary(text))

    return {name: counter(bpe_openai.get_encoding(full)) for name, full in ENCODINGS.items()}


def compare(estimates: list[int], real: list[int]) -> dict[str, float]:
    """Return the mean and the low end of estimate/real over pieces, and the share of pieces under-counted."""
    ratios = sorted(guess / count for guess, count in zip(estimates, real, strict=True))
    return {
        "mean": round(statistics.fmean(ratios), 3),
        "p5": round(ratios[int(LOW_SHARE * len(ratios))], 3),
        "under": round(sum(ratio < 1 for ratio in ratios) / len(ratios), 3),
    }


def measure(path: Path, root: Path, tokenizers: dict[str, Callable[[str], int]]) -> dict[str, Any]:
    """Return everything measured on one text."""
    data = path.read_bytes()
    parts = list(pieces(data.decode("utf-8")))
    real = {name: [count(part) for part in parts] for name, count in tokenizers.items()}
    guesses = {name: [estimate(part, ratios) for part in parts] for name, ratios in RECIPES.items()}
    characters = sum(map(len, parts))
    return {
        "class": path.stem,
        "split": path.parent.relative_to(root).as_posix(),
        "bytes": len(data),
        "sha256": hashlib.sha256(data).hexdigest(),
        "characters": characters,
        "pieces": len(parts),
        "characters_per_token": {name: round(characters / sum(counts), 3) for name, counts in real.items()},
        "estimate_over_real": {
            recipe: {name: compare(guesses[recipe], counts) for name, counts in real.items()} for recipe in RECIPES
        },
    }


def run(texts: Path) -> dict[str, Any]:
    """Measure every text under `texts`."""
    tokenizers = load_tokenizers()
    sources = texts / "sources.json"
    files = sorted(path for path in texts.rglob("*") if path.is_file() and path != sources)
    visible = track(files, "texts", disable=not sys.stdout.isatty())
    version = importlib.metadata.version(TOKENIZER_PACKAGE)
    return {
        "tokenizers": {"package": TOKENIZER_PACKAGE, "version": version},
        "piece_characters": PIECE_CHARS,
        "price_per_character_in_thousandths": {name: asdict(ratios) for name, ratios in RECIPES.items()},
        "sources": json.loads(sources.read_text("utf-8")) if sources.exists() else {},
        "classes": [measure(path, texts, tokenizers) for path in visible],
    }


def columns() -> list[str]:
    """Return the headings of the table."""
    heads = [f"{recipe} / {name}" for recipe in RECIPES for name in ENCODINGS]
    return ["class", "characters", *(f"chars/token {name}" for name in ENCODINGS), *heads]


def cells(row: dict[str, Any]) -> list[str]:
    """Return one class as the cells of the table; a comparison reads mean, p5, share under-counted."""
    shown = [row["class"], f"{row['characters']:,}"]
    shown += [f"{row['characters_per_token'][name]:.2f}" for name in ENCODINGS]
    for recipe in RECIPES:
        for name in ENCODINGS:
            found = row["estimate_over_real"][recipe][name]
            shown.append(f"{found['mean']:.2f} {found['p5']:.2f} {found['under']:.0%}")
    return shown


def markdown(result: dict[str, Any], split: str) -> str:
    """Return the table of one split in Markdown, of the default recipe: mean, and share under-counted."""
    lines = [["class", *ENCODINGS], ["---", *["---:"] * len(ENCODINGS)]]
    for row in result["classes"]:
        found = row["estimate_over_real"]["default"]
        told = [f"{found[name]['mean']:.2f} {found[name]['under']:.0%}" for name in ENCODINGS]
        lines += [[row["class"], *told]] if row["split"] == split else []
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def show(result: dict[str, Any], split: str) -> None:
    """Print the table of one split on the terminal."""
    table = Table(*columns(), title=f"{split}: mean, p5 and under-counted share of estimate/real")
    for row in result["classes"]:
        if row["split"] == split:
            table.add_row(*cells(row))
    # A piped table must not be folded to 80 columns.
    console = Console()
    console.width = max(console.width, TABLE_WIDTH)
    console.print(table)


def main() -> int:
    """Measure if texts are given, then print the result."""
    layout = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=layout)
    parser.add_argument("--texts", type=Path, help="folder of texts; without it --out is printed")
    parser.add_argument("--out", type=Path, required=True, help="the result, as JSON")
    parser.add_argument("--markdown", action="store_true", help="print the tables for the documentation")
    options = parser.parse_args()
    if options.texts:
        options.out.write_text(json.dumps(run(options.texts), indent=1) + "\n", "utf-8")
    result = json.loads(options.out.read_text("utf-8"))
    for split in sorted({row["split"] for row in result["classes"]}):
        if options.markdown:
            print(f"### {split}\n\n{markdown(result, split)}\n")
        else:
            show(result, split)
    return 0


if __name__ == "__main__":
    sys.exit(main())
