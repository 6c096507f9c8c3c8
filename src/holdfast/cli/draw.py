"""Values → what a person looks at in a terminal: lines that fit any width, score bars, explanation trees.

Nothing is put side by side that could be long: on a narrow terminal a table would cut words and ids.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, tzinfo
from itertools import groupby
from pathlib import Path

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from holdfast.settings import Settings
from holdfast.text.facts import sentences_of
from holdfast.text.quotes import WORTH
from holdfast.text.sentences import SHOWN
from holdfast.types import (
    AnswerState,
    Compaction,
    Contribution,
    Decision,
    Erasure,
    FactTable,
    Gate,
    Hit,
    ProjectedCandidate,
    SearchResult,
    Stats,
    StrategyRank,
    Surroundings,
    Unit,
    Why,
    WriteResult,
)
from holdfast.types.contexts import Context
from holdfast.types.known import About
from holdfast.types.outcomes import FolderReport
from holdfast.why import (
    PLAIN_NAMES,
    TELLING,
    ScorePart,
    branches,
    formula,
    number,
    parts_of,
    plain_name,
    simplify,
    speaker_name,
    terms_of,
    typed_forms,
    typed_words,
    unranked,
)

_BAR_WIDTH = 40
# As much of a text as tells it from others: three lines of a usual terminal for a hit, one or two in a list.
_BEGINNING, _LISTED = 240, 110
# Columns that a branch of a tree stands further right than its stem, up to a depth that leaves room to read.
_STEP, _DEEPEST = 2, 24
# What is smaller would be shown as .00.
_SMALLEST_PART = 0.005
# What people read instead of the names that programs get.
_LABELS = {"hard": "rules", "soft": "guidance", "tail": "turns", "standing": "requests", "projection": "recalled"}
_PART_STYLES = ("green", "blue", "magenta", "cyan", "yellow")
_STATUS_STYLES = {"added": "green", "updated": "yellow", "duplicate": "dim"}
# The factors of a score in a context (C11), by the names of its tree.
_FACTORS = {"ω": "standing", "max(sim, 0)": "relevance", "keywords": "words of the question", "Q": "summary"}
_SIGNALS = ("novelty", "repetition", "statement", "technical_density", "specificity", "action", "structure")
# A line of a terminal; `--json` has all of them.
_MOST_NAMED = 8


def when(unit: Unit, zone: tzinfo = UTC) -> str:
    """Return the event time, to the minute."""
    return unit.event_time.astimezone(zone).strftime("%Y-%m-%d %H:%M")


def one_line(text: str) -> str:
    """Return a text without its line breaks."""
    return " ".join(text.split())


def beginning(text: str, most: int = _BEGINNING) -> str:
    """Return as much of a text as tells it from others; `show` has all of it."""
    line = one_line(text)
    return line if len(line) <= most else f"{line[: most - 1]}…"


def count(number: int, what: str) -> str:
    """Return `1 unit`, `2 units`, `3 summaries`."""
    plural = f"{what[:-1]}ies" if what.endswith("y") else f"{what}s"
    return f"{number:,} {what if number == 1 else plural}"


def indent(text: Text | str, by: int = 3) -> Padding:
    """Return a text that keeps its distance from the left, in every line that it is broken into."""
    return Padding.indent(Text(text) if isinstance(text, str) else text, by)


def pairs(rows: Mapping[str, object]) -> Table:
    """Draw names and values in two columns; a long value goes on below itself."""
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in rows.items():
        table.add_row(Text(name), Text(str(value)))
    return table


def written(items: Sequence[WriteResult]) -> RenderableType:
    """Draw what `remember` did, message by message."""
    lines = []
    for item in items:
        status = f"{item.status}, durable" if item.promoted else item.status
        status += ", vector pending" if item.waits else ""
        version = f"  version {item.version}" if item.version > 1 else ""
        lines.append(Text.assemble((status, _STATUS_STYLES[item.status]), f"  {item.id}", (version, "dim")))
        lines += [Text.assemble(("replaces", "yellow"), f"  {replaced}") for replaced in item.superseded]
    return Group(*lines)


def hits(result: SearchResult, *, tree: bool = False) -> RenderableType:
    """Draw hits with what their scores are made of, the whole of it with `tree`, and then the warnings."""
    query = result.trace.query
    typed = typed_words(f"{query.text} {query.borrowed or ''}")
    if not result.hits:
        words = ", ".join(typed_forms(query.terms, typed)) or "none"
        reason = f" Refused: {result.trace.refused}." if result.trace.refused else ""
        nothing = Text(f"Nothing found.{reason} Words searched for: {words}", "yellow")
        return Group(nothing, *warnings(result.warnings))
    zone = result.trace.reference_time.tzinfo or UTC
    drawn = (_hit(hit, typed, zone, tree=tree) for hit in result)
    return Group(*_worth(result.state, result.refused), *drawn, *warnings(result.warnings))


def _worth(state: AnswerState, refused: str) -> list[RenderableType]:
    """Draw what an answer is worth, where it is not sure."""
    why = f": {refused}" if refused else ""
    return [] if state == "found" else [Text(f"{state}: {WORTH[state]}{why}", "yellow")]


def warnings(found: Sequence[str]) -> list[RenderableType]:
    """Draw warnings, one on a line."""
    return [Text(f"warning: {warning}", "yellow") for warning in found]


def _hit(hit: Hit, typed: Mapping[str, str], zone: tzinfo, *, tree: bool) -> RenderableType:
    head = Text.assemble(
        (f"{hit.rank}. ", "dim"), (f"{hit.score:.4f}  ", "bold"), (f"{speaker_name(hit.unit)}  ", "cyan"),
        (f"{when(hit.unit, zone).split()[0]}  {hit.unit.id}", "dim"),
    )  # fmt: skip
    body: list[RenderableType] = [head, indent(_part_shown(hit))]
    if hit.contributions is not None:
        body.append(indent(made_of(hit.contributions, hit.unit, typed)))
        sure = (f"confidence {hit.confidence:.2f}",) if tree and hit.confidence is not None else ()
        notes = (*sure, *(note for note in hit.notes if tree or note.startswith(TELLING)))
        body += [indent(Text(line, "dim")) for line in (*standing(hit.unit, gate=tree), *notes)]
        body += [indent(bar(hit.contributions)), Padding.indent(score_tree(hit.contributions), 3)] if tree else []
    return Group(*body)


def _part_shown(hit: Hit) -> str:
    """Return what of a hit's text matched, with a mark where something is left out."""
    if hit.part is None:
        return one_line(hit.unit.text)
    before, _, after = hit.unit.text.partition(hit.part)
    return f"{'… ' if before.strip() else ''}{beginning(hit.part, SHOWN)}{' …' if after.strip() else ''}"


def made_of(score: Contribution, unit: Unit, typed: Mapping[str, str]) -> Text:
    """Draw the parts of a score in one line; what a stage changed has a sign."""
    words = typed_forms(dict.fromkeys(terms_of(score)), typed)
    shown = [part for part in parts_of(score) if abs(part.value) >= _SMALLEST_PART]
    return Text(" · ".join(_part(part, unit, words) for part in shown), "green")


def _part(part: ScorePart, unit: Unit, words: Sequence[str]) -> str:
    number = f"{abs(part.value):.2f}".removeprefix("0")
    sign = ("+" if part.value > 0 else "−") if part.change else ""
    matched = f" ({', '.join(words)})" if part.name == "lexical" and words else ""
    return f"{plain_name(part, unit)} {sign}{number}{matched}"


def bar(score: Contribution) -> Text:
    """Draw the shares of a score as one bar of fixed width: a full bar is a score of 1."""
    base = score.find("base")
    parts = base.parts if base is not None else (score,)
    return _bar((f"{part.name} {part.value:.4f}", part.value * _BAR_WIDTH) for part in parts)


def budget_bar(context: Context) -> Text:
    """Draw how the sections share the budget: a full bar is the whole of it; empty ones are passed over."""
    filled = [one for one in context.sections if one.tokens] or context.sections[-1:]
    shares = ((f"{_LABELS[one.name]} {one.tokens}", _BAR_WIDTH * one.tokens / context.budget) for one in filled)
    return _bar(shares) + Text(f"  of {context.budget} tokens", "dim")


def _bar(parts: Iterable[tuple[str, float]]) -> Text:
    """Draw parts of a whole, each with its name and how many columns it takes."""
    drawn, legend = Text(), Text()
    for (name, width), style in zip(parts, _PART_STYLES, strict=False):
        drawn.append("█" * min(round(width), _BAR_WIDTH - len(drawn)), style)
        legend.append(f"  {name}", style)
    drawn.append("·" * (_BAR_WIDTH - len(drawn)), "dim")
    return drawn + legend


def score_tree(node: Contribution) -> RenderableType:
    """Draw a contribution and its parts; steps that change nothing are passed over (JSON has them all)."""
    return Group(*(indent(_label(one), min(_STEP * depth, _DEEPEST)) for depth, one in branches(simplify(node))))


def _label(node: Contribution) -> Text:
    label = Text.assemble((node.name, "bold" if node.parts else ""), f" {number(node.value)}")
    return label.append(f" = {formula(node)}", "dim") if node.parts else label


def why(verdict: Why, question: str = "", *, tree: bool = False, zone: tzinfo = UTC) -> RenderableType:
    """Draw why a unit is, or is not, among the hits; the whole of its score with `tree`."""
    unit, typed = verdict.unit, typed_words(question)
    lines: list[RenderableType] = [
        Text(f"{speaker_name(unit)} {when(unit, zone)}: {beginning(unit.text)}"),
        Text(verdict.verdict, "green" if verdict.returned else "yellow"),
    ]
    lines += warnings([verdict.degraded] if verdict.degraded else [])
    if verdict.distance_to_cut is not None and verdict.score is not None:
        lines.append(Text(f"score {verdict.score:.4f}, {verdict.distance_to_cut:.4f} below the threshold"))
    for standing in verdict.standings:
        rank = f"rank {standing.rank} of {standing.found}" if standing.rank else unranked(standing)
        name = PLAIN_NAMES.get(standing.strategy_id, standing.strategy_id)
        lines.append(Text(f"{name}: {rank}, score {standing.score:.4f}{_words(standing, typed)}"))
    if verdict.contributions is not None:
        lines.append(made_of(verdict.contributions, unit, typed))
        lines += [score_tree(verdict.contributions)] if tree else []
    return Group(*lines)


def _words(standing: StrategyRank, typed: Mapping[str, str]) -> str:
    """Say which words of the question a unit has and lacks; of a compound, any part will do."""
    matched = typed_forms(standing.matched, typed)
    missing = [word for word in typed_forms(standing.missing, typed) if word not in matched]
    told = (("matched", matched), ("missing", missing))
    return "".join(f"; {name} {', '.join(found)}" for name, found in told if found)


def units(found: Iterable[Unit], zone: tzinfo = UTC) -> RenderableType:
    """Draw units one below the other."""
    lines: list[RenderableType] = []
    for unit in found:
        session = (f"  {unit.session}", "dim") if unit.session else ""
        head = Text.assemble(
            (when(unit, zone), "dim"), (f"  {speaker_name(unit)}", "cyan"), session, (f"  {unit.id}", "dim")
        )
        lines += [head, indent(beginning(unit.text, _LISTED))]
    return Group(*lines)


def facts(found: FactTable) -> RenderableType:
    """Draw facts, each with the document and the unit that it comes from."""
    ends = (f"  {one.document} {one.sources[0]}" for one in found)
    return Group(*(Text.assemble(one.line, (end, "dim")) for one, end in zip(found, ends, strict=True)))


def about(found: About) -> RenderableType:
    """Draw what is known of a user, by topic: what was said, when, how sure it is, and what it replaced."""
    lines: list[RenderableType] = []
    for topic, told in groupby(found, key=lambda one: one.topic):
        lines.append(Text(topic, "cyan"))
        for one in told:
            sure = f"said {one.at:%Y-%m-%d}, confidence {one.confidence:.2f}"
            lines += [Text(f"  {sure}  {one.id}", "dim"), indent(beginning(one.text, _LISTED))]
            lines += [
                Group(Text(f"  instead of, said {old.at:%Y-%m-%d}", "dim"), indent(beginning(old.text, _LISTED)))
                for old in one.replaced
            ]
    return Group(*lines) if lines else Text(f"nothing that is sure; {found.asked} questions were asked")


def decisions(found: Iterable[Decision]) -> RenderableType:
    """Draw decisions, one a line."""
    return Group(*(Text(f"{one.kind}{' (overruled)' if one.overruled else ''}: {one.why}") for one in found))


def unit(found: Unit) -> RenderableType:
    """Draw one unit: its words, then every field it has."""
    rows = {name: value for name, value in found.to_json().items() if name != "text"}
    rows |= {"version": found.version}
    became = (Text(line, "dim") for line in standing(found))
    return Group(Text(found.text), Text(), pairs(rows), *became)


def standing(unit: Unit, *, gate: bool = True) -> list[str]:
    """Say what has become of a unit: the gate's decision, what superseded it, what covers it."""
    lines = []
    if gate and unit.gate is not None:
        verdict = "durable" if unit.gate.promoted else "kept in its session"
        lines.append(f"{verdict}: {unit.gate.reason}{_signals(unit.gate)}")
    if unit.superseded_by is not None:
        why = f": {unit.superseded_why}" if unit.superseded_why else ""
        lines.append(f"superseded by {unit.superseded_by}{why}")
    if unit.covered_by is not None:
        lines.append(f"summary {unit.covered_by} covers it")
    for fact, sentence in sentences_of(unit):
        where = f", in: {one_line(sentence)}" if sentence != unit.text else ""
        lines.append(f"states: {fact.subject} {fact.relation} {fact.object} ({fact.confidence:.2f}){where}")
    if unit.lineage is not None:
        turns = count(len(unit.lineage.sources), "turn")
        lines.append(f"covers {turns}, confidence {unit.lineage.confidence:.3f}")
    return lines


def _signals(gate: Gate) -> str:
    shown = ((name, getattr(gate, name)) for name in _SIGNALS)
    signals = ", ".join(f"{name.replace('_', ' ')} {value:.2f}" for name, value in shown if value)
    return f" ({signals})" if signals else ""


def versions(found: Sequence[Unit]) -> RenderableType:
    """Draw the versions of one unit, oldest first."""
    lines: list[RenderableType] = []
    for version in found:
        head = f"version {version.version}  recorded {version.recorded_time:%Y-%m-%d %H:%M}"
        lines += [Text(head, "dim"), indent(one_line(version.text))]
    return Group(*lines)


def stats(found: Stats) -> RenderableType:
    """Draw how much is remembered."""
    units, size = count(found.store_units or 0, "unit"), f"{found.store_bytes or 0:,} bytes"
    rows = {
        "units": f"{found.units:,}",
        "versions": f"{found.versions:,}",
        "sessions": f"{found.sessions:,}",
        "kinds": ", ".join(f"{name} {count:,}" for name, count in found.by_kind.items()),
        "scopes": ", ".join(f"{name} {count:,}" for name, count in found.by_scope.items()),
        "from": f"{found.earliest:%Y-%m-%d}" if found.earliest else "",
        "to": f"{found.latest:%Y-%m-%d}" if found.latest else "",
        "whole store": f"{units}, {size}, schema {found.schema_version}",
        "embedder": found.embedder,
        "vectors": f"{found.space}; {count(found.waiting or 0, 'unit')} without" if found.space else "",
        "gate": "" if found.gate_threshold is None else f"promotes from {found.gate_threshold:g}",
        "summaries": "abstractive" if found.abstractive_ready else "extractive",
        "place": found.location,
        "replica": "" if found.staleness_seconds is None else f"at most {found.staleness_seconds:.1f} seconds behind",
    }  # fmt: skip
    return pairs({name: value for name, value in rows.items() if value})


def context(made: Context, *, explain: bool, tree: bool) -> RenderableType:
    """Draw a context and what it costs; with `explain`, why each unit is in it, and what is not."""
    parts: list[RenderableType] = [budget_bar(made), *_worth(made.state, made.refused), Text(made.text)]
    parts += warnings([one for one in made.warnings if one not in made.degraded])
    parts += [Text(f"degraded: {made.degraded}", "red")] if made.degraded else []
    if explain:
        projection = made.trace.projection if made.trace is not None else None
        for one in projection.items if projection is not None else ():
            way = "found" if one.via == "pass 2" else one.via.replace("hop from", "linked from")
            parts += [Text(f"{one.score:.4f}  {one.unit.id}  {way}"), *_scores(one, tree=tree)]
        parts += [
            Text(f"cut by {left.cut}: {left.id}, needs {left.needed} tokens, {left.short} short", "dim")
            for left in made.left_out
        ]
    return Group(*parts)


def _scores(one: ProjectedCandidate, *, tree: bool) -> list[RenderableType]:
    """Draw the factors of a projected unit's score, in plain words, or the whole tree."""
    if tree:
        return [Padding.indent(score_tree(one.contributions), 3)]
    product = one.contributions.find("ω × sim × keywords × Q")
    if product is None:
        return []
    factors = (f"{_FACTORS[part.name]} {part.value:.2f}" for part in product.parts if part.value != 1.0)
    return [indent(Text(" × ".join(factors), "green"))]


def document(units: Sequence[WriteResult], path: Path) -> RenderableType:
    """Draw what became of a document's units; one of rules alone has none."""
    if units:
        return written(units)
    return Text(f"{count(0, 'unit')}: {path.name} holds rules alone, and they are in every context now")


def folder(report: FolderReport) -> RenderableType:
    """Draw what taking in a folder did."""
    counts = ", ".join(
        f"{len(getattr(report, what))} {what}"
        for what in ("added", "changed", "unchanged", "removed")
        if getattr(report, what)
    )
    units = "1 unit" if report.units == 1 else f"{report.units} units"
    parts: list[RenderableType] = [Text(f"{counts or 'no documents'}; {units}")]
    parts += [Text(f"failed: {name}: {reason}", "yellow") for name, reason in report.failed]
    return Group(*parts, *_skipped(report))


def _skipped(report: FolderReport) -> list[RenderableType]:
    """Return a line for each reason, with how many files it skipped and what they are called."""
    reasons: dict[str, list[str]] = {}
    for name, reason in report.skipped:
        reasons.setdefault(reason, []).append(name)
    return [Text(f"skipped {len(names)}: {_some(names)}: {reason}", "dim") for reason, names in reasons.items()]


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return f"{', '.join(names[:_MOST_NAMED])}{more}"


def section(found: Surroundings) -> RenderableType:
    """Draw a section, with the unit that was asked for in bold."""
    at, end = found.unit_start - found.start, found.unit_end - found.start
    text = Text.assemble(found.text[:at], (found.text[at:end], "bold"), found.text[end:])
    where = " › ".join((found.document, *found.path)) + (f", page {found.page}" if found.page else "")
    return Group(Text(where, "dim"), text)


def compactions(done: Sequence[Compaction]) -> RenderableType:
    """Draw what compaction did, session by session."""
    if not any(one.clusters for one in done):
        return Text("nothing to compact: every turn is in the tail, or covered already")
    made = [Text(_run(one)) for one in done if one.clusters]
    notes = [Text(f"{one.session}: {note}", "yellow") for one in done for note in one.notes]
    left = [
        Text(f"{one.session}: {count(number, what)} {why}", "dim")
        for one in done
        for number, what, why in (
            (one.declined, "cluster", "that no summary would make cheaper"),
            (one.trivial, "single turn", "for the next run"),
            (one.changed, "cluster", "changed meanwhile, for the next run"),
        )
        if number
    ]
    return Group(*made, *notes, *left)


def _run(one: Compaction) -> str:
    """Say what one run did to one session."""
    sure = "" if one.mean_confidence is None else f", confidence {one.mean_confidence:.3f}"
    summaries, turns = count(len(one.summaries), "summary"), count(one.turns, "turn")
    return f"session {one.session}: {summaries} for {turns}, {one.tokens_saved:,} tokens saved{sure}, {one.method}"


def erasure(done: Erasure) -> RenderableType:
    """Draw what was erased, or would be, and whether anything of it is left."""
    verb = "would be erased" if done.dry_run else "erased"
    parts: list[RenderableType] = []
    if done.dry_run and done.units:
        parts.append(units((*done.units, *done.summaries)))
    turns, summaries = count(len(done.units), "unit"), count(len(done.summaries), "summary")
    parts.append(Text(f"{verb}: {turns}, {summaries}"))
    parts += [Text(f"document {name} {verb}") for name in done.documents]
    if done.dry_run:
        return Group(*parts)
    parts += [Text(f"made again from what is left: {unit_id}") for unit_id in done.rebuilt]
    parts += [Text(f"out of reach: {name}", "yellow") for name in done.outside]
    parts += [Text(f"the file was written anew: {done.rewritten}")] if done.rewritten else []
    if done.complete:
        parts.append(Text(f"complete: nothing of it is left in {', '.join(done.files) or 'memory'}", "green"))
    elif done.pending:
        parts.append(Text(f"pending: {done.reason}; the next write or open goes on", "yellow"))
    else:
        parts.append(Text("not complete: see what is out of reach", "red"))
    return Group(*parts)


def settings(found: Settings) -> RenderableType:
    """Draw every setting with its value, its origin and what it does."""
    lines: list[RenderableType] = []
    for row in found.describe():
        style = "dim" if row.origin.endswith("recipe") else "green"
        value = ", ".join(row.value) if isinstance(row.value, tuple) else str(row.value)
        lines += [
            Text.assemble(row.key, " = ", (value, "bold"), ("  from ", "dim"), (row.origin, style)),
            indent(Text(row.doc, "dim")),
        ]
    return Group(*lines)


def rule(console: Console, title: str) -> None:
    """Draw a heading."""
    console.print()
    console.print(Text.assemble(("── ", "dim"), (title, "bold")))
