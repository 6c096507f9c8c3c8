"""Values → what a person looks at in a terminal: tables, score bars, explanation trees."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from holdfast.analysis.knowledge import sentences_of
from holdfast.assembly.context import Context
from holdfast.settings import Settings
from holdfast.types import Contribution, Hit, SearchResult, Stats, Unit, Why, Written

_BUDGET_WIDTH = 40
_BAR_WIDTH = 40
_BEGINNING = 110
# The ids that we make are 22 letters; a document's part has a longer one, which must not take the text's room.
_ID_WIDTH = 22
_SESSION_WIDTH = 12
_TEXT_WIDTH = 24
# What is smaller changes no rank that anybody looks at; JSON has every digit.
_SMALLEST_DRAWN = 1e-6
_JOINTS = {"sum": " + ", "product": " × ", "ratio": " ÷ ", "minimum": ", "}
_PART_STYLES = ("green", "blue", "magenta", "cyan")
_STATUS_STYLES = {"added": "green", "updated": "yellow", "duplicate": "dim"}


def who(unit: Unit) -> str:
    """Return who said it: the name where there is one, else the author."""
    return "summary" if unit.kind == "summary" else unit.speaker or unit.author


def when(unit: Unit) -> str:
    """Return the event time, to the minute, in UTC."""
    return unit.event_time.strftime("%Y-%m-%d %H:%M")


def day(unit: Unit) -> str:
    """Return the day of the event, for tables: their room belongs to the text."""
    return unit.event_time.strftime("%Y-%m-%d")


def one_line(text: str) -> str:
    """Return a text without its line breaks."""
    return " ".join(text.split())


def beginning(text: str) -> str:
    """Return as much of a text as tells it from others, for a cell of a table that wraps on a narrow terminal."""
    line = one_line(text)
    return line if len(line) <= _BEGINNING else f"{line[: _BEGINNING - 1]}…"


def remembered(written: Sequence[Written]) -> RenderableType:
    """Draw what `remember` did, message by message."""
    table = Table("status", "id", "version", box=None, pad_edge=False)
    for item in written:
        status = f"{item.status}, durable" if item.promoted else item.status
        table.add_row(Text(status, _STATUS_STYLES[item.status]), item.id, str(item.version))
        for replaced in item.superseded:
            table.add_row(Text("replaces", "yellow"), replaced, "")
    return table


def hits(result: SearchResult) -> RenderableType:
    """Draw hits as a table, or with their explanations when they carry them."""
    if not result.hits:
        terms = ", ".join(result.trace.query.terms) or "none"
        reason = f" Refused: {result.trace.refused}." if result.trace.refused else ""
        return Text(f"Nothing found.{reason} Words searched for: {terms}", "yellow")
    if result.hits[0].contributions is not None:
        return Group(*(explained(hit) for hit in result))
    table = Table(box=None, pad_edge=False, expand=True)
    for name, style in (("#", "dim"), ("score", "bold"), ("when", "dim"), ("who", "cyan")):
        table.add_column(name, style=style, no_wrap=True)
    table.add_column("text", ratio=1, min_width=_TEXT_WIDTH)
    table.add_column("id", style="dim", overflow="fold", max_width=_ID_WIDTH)
    for hit in result:
        table.add_row(
            str(hit.rank),
            f"{hit.score:.4f}",
            day(hit.unit),
            who(hit.unit),
            Text(beginning(hit.unit.text)),
            hit.unit.id,
        )
    return table


def explained(hit: Hit) -> RenderableType:
    """Draw one hit with the bar and the tree of its score."""
    head = Text.assemble(
        (f"{hit.rank}. ", "dim"), (f"{hit.score:.4f} ", "bold"), (f"{who(hit.unit)} ", "cyan"),
        (f"{when(hit.unit)}  {hit.unit.id}", "dim"),
    )  # fmt: skip
    body: list[RenderableType] = [head, Text(f"   {one_line(hit.unit.text)}", overflow="ellipsis", no_wrap=True)]
    body += [Text(f"   {line}", "dim") for line in (*standing(hit.unit), *hit.notes)]
    if hit.contributions is not None:
        body += [Padding(bar(hit.contributions), (0, 0, 0, 3)), Padding(tree(hit.contributions), (0, 0, 1, 3))]
    return Group(*body)


def bar(score: Contribution) -> Text:
    """Draw the shares of a score as one bar of fixed width: a full bar is a score of 1."""
    base = score.find("base")
    parts = base.parts if base is not None else (score,)
    drawn, legend = Text(), Text()
    for part, style in zip(parts, _PART_STYLES, strict=False):
        drawn.append("█" * min(round(part.value * _BAR_WIDTH), _BAR_WIDTH - len(drawn)), style)
        legend.append(f"  {part.name} {part.value:.4f}", style)
    drawn.append("·" * max(0, _BAR_WIDTH - len(drawn)), "dim")
    return drawn + legend


def budget_bar(context: Context) -> Text:
    """Draw how the sections share the budget: a full bar is the whole of it."""
    drawn, legend = Text(), Text()
    for section, style in zip(context.sections, _PART_STYLES, strict=False):
        drawn.append("█" * round(_BUDGET_WIDTH * section.tokens / context.budget), style)
        legend.append(f"  {section.name} {section.tokens}", style)
    drawn.append("·" * max(0, _BUDGET_WIDTH - len(drawn)), "dim")
    return drawn + legend + Text(f"  of {context.budget} tokens", "dim")


def tree(node: Contribution) -> Tree:
    """Draw a contribution and its parts; steps that change nothing are passed over (JSON has them all)."""
    node = _essence(node)
    root = Tree(_label(node))
    _grow(root, node)
    return root


def _grow(branch: Tree, node: Contribution) -> None:
    if all(part.op == "given" for part in node.parts):
        return
    for part in node.parts:
        _grow(branch.add(_label(part)), part)


def _essence(node: Contribution) -> Contribution:
    """Return the node without neutral steps: a ceiling that does not bind, a factor or divisor of 1, a sum of one."""
    parts = tuple(_essence(part) for part in node.parts)
    if node.op == "minimum":
        telling = tuple(part for part in parts if part.value == node.value)[:1]
    elif node.op in ("product", "ratio"):
        telling = tuple(part for part in parts if part.op != "given" or part.value != 1.0)
    else:
        telling = parts
    if len(telling) == 1 and telling[0].parts and not telling[0].name.startswith("term "):
        return telling[0]._replace(name=node.name)
    return node._replace(parts=parts)


def _label(node: Contribution) -> Text:
    label = Text.assemble((node.name, "bold" if node.parts else ""), f" {_number(node.value)}")
    if node.parts:
        leaves = all(part.op == "given" for part in node.parts)
        shown = (f"{part.name} {_number(part.value)}" if leaves else part.name for part in node.parts)
        formula = _JOINTS[node.op].join(shown)
        label.append(f" = {'min' if node.op == 'minimum' else ''}({formula})", "dim")
    return label


def _number(value: float) -> str:
    return f"{value:.6g}" if value == 0.0 or abs(value) >= _SMALLEST_DRAWN else "≈0"


def why(verdict: Why) -> RenderableType:
    """Draw why a unit is, or is not, among the hits."""
    style = "green" if verdict.returned else "yellow"
    lines: list[RenderableType] = [
        Text(
            f"{who(verdict.unit)} {when(verdict.unit)}: {one_line(verdict.unit.text)}",
            no_wrap=True,
            overflow="ellipsis",
        ),
        Text(verdict.verdict, style),
    ]
    if verdict.distance_to_cut is not None and verdict.score is not None:
        lines.append(Text(f"score {verdict.score:.4f}, short of the cut by {verdict.distance_to_cut:.4f}"))
    for standing in verdict.standings:
        rank = f"rank {standing.rank} of {standing.found}" if standing.rank else f"not among its {standing.found}"
        terms = (("matched", standing.matched), ("missing", standing.missing))
        words = "".join(f"; {name} {', '.join(found)}" for name, found in terms if found)
        lines.append(Text(f"{standing.strategy_id}: {rank}, score {standing.score:.4f}{words}"))
    if verdict.contributions is not None:
        lines.append(tree(verdict.contributions))
    return Group(*lines)


def units(found: Iterable[Unit]) -> RenderableType:
    """Draw units as a table."""
    table = Table(box=None, pad_edge=False, expand=True)
    for name, style in (("when", "dim"), ("who", "cyan")):
        table.add_column(name, style=style, no_wrap=True)
    table.add_column("session", style="dim", overflow="fold", max_width=_SESSION_WIDTH)
    table.add_column("text", ratio=1, min_width=_TEXT_WIDTH)
    table.add_column("id", style="dim", overflow="fold", max_width=_ID_WIDTH)
    for unit in found:
        table.add_row(when(unit), who(unit), unit.session or "", Text(beginning(unit.text)), unit.id)
    return table


def unit(found: Unit) -> RenderableType:
    """Draw one unit: its words, then every field it has."""
    table = Table("field", "value", box=None, pad_edge=False)
    for name, value in found.to_json().items():
        if name != "text":
            table.add_row(Text(name, "dim"), Text(str(value)))
    if found.version == 1:  # a later one is among the fields
        table.add_row(Text("version", "dim"), "1")
    return Group(Text(found.text), Text(), table, *(Text(line, "dim") for line in standing(found)))


def standing(unit: Unit) -> list[str]:
    """Say what has become of a unit: the gate's decision, what superseded it, what stands for it."""
    lines = []
    if unit.gate is not None:
        gate = unit.gate
        verdict = "durable" if gate.promoted else "not promoted"
        shown = {
            "H": gate.novelty, "R": gate.repetition, "D": gate.statement, "T": gate.technical_density,
            "P": gate.specificity, "A": gate.action, "D tech": gate.structure,
        }  # fmt: skip
        signals = ", ".join(f"{name} {value:.2f}" for name, value in shown.items() if value)
        lines.append(f"{verdict}: {gate.reason}" + (f" ({signals})" if signals else ""))
    if unit.superseded_by is not None:
        why = f": {unit.superseded_why}" if unit.superseded_why else ""
        lines.append(f"superseded by {unit.superseded_by}{why}")
    if unit.covered_by is not None:
        lines.append(f"summary {unit.covered_by} stands for it")
    for fact, sentence in sentences_of(unit):
        where = f", in: {one_line(sentence)}" if sentence != unit.text else ""
        lines.append(f"states: {fact.subject} {fact.relation} {fact.object} ({fact.confidence:.2f}){where}")
    if unit.lineage is not None:
        lines.append(f"stands for {len(unit.lineage.sources)} turns, confidence {unit.lineage.confidence:.3f}")
    return lines


def versions(found: Sequence[Unit]) -> RenderableType:
    """Draw the versions of one unit, oldest first."""
    table = Table("version", "recorded", "text", box=None, pad_edge=False)
    for version in found:
        table.add_row(
            str(version.version), version.recorded_time.strftime("%Y-%m-%d %H:%M"), Text(one_line(version.text))
        )
    return table


def stats(found: Stats) -> RenderableType:
    """Draw how much is remembered."""
    table = Table(show_header=False, box=None, pad_edge=False)
    rows = {
        "units": f"{found.units:,}",
        "versions": f"{found.versions:,}",
        "sessions": f"{found.sessions:,}",
        "kinds": ", ".join(f"{name} {count:,}" for name, count in found.by_kind.items()),
        "scopes": ", ".join(f"{name} {count:,}" for name, count in found.by_scope.items()),
        "from": f"{found.earliest:%Y-%m-%d}" if found.earliest else "",
        "to": f"{found.latest:%Y-%m-%d}" if found.latest else "",
        "whole store": f"{found.store_units:,} units, {found.store_bytes:,} bytes, schema {found.schema_version}",
        "place": found.location,
    }
    for name, value in rows.items():
        table.add_row(Text(name, "dim"), Text(value))
    return table


def settings(found: Settings) -> RenderableType:
    """Draw every setting with its origin."""
    table = Table("key", "value", "from", "what it does", box=None, pad_edge=False)
    for row in found.describe():
        origin_style = "dim" if row.origin.endswith("recipe") else "green"
        table.add_row(
            row.key, Text(_setting(row.value), "bold"), Text(row.origin, origin_style), Text(row.doc, "dim")
        )
    return table


def _setting(value: object) -> str:
    return ", ".join(value) if isinstance(value, tuple) else str(value)


def rule(console: Console, title: str) -> None:
    """Draw a heading across the terminal."""
    console.print()
    console.rule(f"[bold]{title}", align="left", style="dim")
