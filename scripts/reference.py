"""Print one generated reference table as Markdown: settings, errors, commands, verbs, models, refusal or cascade."""

from __future__ import annotations

import inspect
import json
import sys
from pathlib import Path
from typing import Any

import typer

from holdfast import HoldfastError, Memory, Settings, errors
from holdfast.interfaces.cli import app
from holdfast.models.embedder import SHIPPED, read_provenance, shipped_folder

RESULTS = Path(__file__).resolve().parent.parent / "benchmarks" / "results"
Table = list[tuple[str, ...]]


def settings() -> Table:
    """Both recipes side by side: a value in bold differs from the contract's."""
    reference = {row.key: row.value for row in Settings.reference().describe()}
    rows: Table = [("key", "default", "reference", "what it does")]
    for row in Settings().describe():
        ours, theirs = f"`{row.value}`", f"`{reference[row.key]}`"
        rows.append((f"`{row.key}`", ours if ours == theirs else f"**{ours}**", theirs, row.doc))
    return rows


def error_tree() -> Table:
    """Every error with its exit code."""
    rows: Table = [("error", "exit code", "meaning")]
    for name in errors.__all__:
        kind = getattr(errors, name)
        assert issubclass(kind, HoldfastError)
        rows.append((f"`{name}`", str(kind.exit_code), str(inspect.getdoc(kind))))
    return rows


def commands() -> Table:
    """Every command with its options."""
    group = typer.main.get_command(app)
    rows: Table = [("command", "does", "options")]
    for name, command in sorted(getattr(group, "commands").items()):  # noqa: B009 - typed as a plain command
        options = ", ".join(
            f"`{option}`"
            for param in command.params
            for option in (*param.opts, *param.secondary_opts)
            if option.startswith("--")
        )
        rows.append((f"`holdfast {name}`", str(command.help).split("\n", 1)[0], options))
    return rows


def verbs() -> Table:
    """Every public verb of Memory with its signature."""
    rows: Table = [("verb", "does")]
    for name, member in inspect.getmembers(Memory, callable):
        if not name.startswith("_"):
            names = [n for n in inspect.signature(member).parameters if n not in ("self", "cls")]
            rows.append((f"`{name}({', '.join(names)})`", str(inspect.getdoc(member)).split("\n", 1)[0]))
    return rows


def models() -> Table:
    """Every shipped model, as its own record describes it."""
    rows: Table = [("name", "model", "dims", "format", "size", "licence", "what was changed")]
    for name in SHIPPED:
        record = read_provenance(shipped_folder(name))
        size = sum(file["bytes"] for file in record["files"].values()) / 1e6
        made = (str(record["dims"]), record["format"], f"{size:.0f} MB", record["licence"], record["changes"])
        rows.append((f"`{name}`", record["upstream"], *made))
    return rows


def refusal() -> Table:
    """What the no-answer rule keeps and refuses, as measured; the first row is in force."""
    measured = _result("refusal.json")
    others = [
        choice for choice in measured.get("other choices", {}).values() if _in_force(choice) != _in_force(measured)
    ]
    rows: Table = [("`coverage`", "`cosine`", "answerable questions kept", "unanswerable ones refused", "in force")]
    for number, choice in enumerate((measured, *others)):
        shares = (f"{choice['odd'][name]:.1%}" for name in ("kept", "refused"))
        rows.append((str(choice["coverage"]), str(choice["cosine"]), *shares, "" if number else "yes"))
    return rows


def _in_force(choice: dict[str, Any]) -> tuple[float, float]:
    return choice["coverage"], choice["cosine"]


def cascade() -> Table:
    """How much of the exact top ten the funnel finds, and the first tiers by themselves."""
    rows: Table = [("model", "the funnel", "64 dimensions alone", "256 dimensions alone")]
    for name in SHIPPED:
        measured = _result(f"cascade-{name}.json")
        tiers = measured["early exit"]
        alone = (f"{tiers[t]['overlap@10 of all questions']:.3f}" if t in tiers else "all" for t in ("64", "256"))
        rows.append((f"`{name}`", f"{measured['funnel recall@10']:.3f}", *alone))
    return rows


def _result(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((RESULTS / name).read_text(encoding="utf-8"))
    return found


TABLES = {
    "settings": settings,
    "errors": error_tree,
    "commands": commands,
    "verbs": verbs,
    "models": models,
    "refusal": refusal,
    "cascade": cascade,
}

if __name__ == "__main__":
    head, *body = TABLES[sys.argv[1]]()
    for row in (head, tuple("---" for _ in head), *body):
        print("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |")
