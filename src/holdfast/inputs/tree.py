"""Blocks → sections and pieces: what belongs together is joined, what is too long is cut."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, zip_longest
from typing import cast

from holdfast.inputs.blocks import Block, Leaf, Writing, merged
from holdfast.types import Piece, PieceKind, Section, SourceLimits, Span, digest

# What a sentence that ends in a colon may introduce.
_INTRODUCED = frozenset({"item", "table", "code"})


@dataclass(frozen=True, slots=True)
class _Part:
    kind: PieceKind
    span: Span
    lead: Span | None = None
    ordered: bool = False


def grow(
    writing: Writing, blocks: Sequence[Block], limits: SourceLimits
) -> tuple[tuple[Section, ...], tuple[Piece, ...]]:
    """Return the sections of a source, the root first, and its pieces in order."""
    bodies: list[tuple[Block | None, list[Block]]] = [(None, [])]
    for block in blocks:
        if block.kind == "heading":
            bodies.append((block, []))
        else:
            bodies[-1][1].append(block)
    sections = _sections(writing, [heading for heading, _ in bodies if heading is not None])
    parents = {section.parent for section in sections}
    pieces: list[Piece] = []
    for section, (heading, body) in zip(sections, bodies, strict=True):
        # The words of a heading with nothing below it would be lost.
        bare = heading is not None and not body and section.id not in parents
        for part in _parts(writing, [replace(heading, kind="paragraph")] if heading and bare else body, limits):
            place = (part.span.start, part.span.end, section.id, len(pieces))
            pieces.append(Piece(part.kind, part.span.text, *place, part.lead, part.ordered))
    return tuple(sections), tuple(pieces)


# ---------------------------------------------------------------------------------------------------------- sections


def _sections(writing: Writing, headings: Sequence[Block]) -> list[Section]:
    seen: Counter[tuple[str, ...]] = Counter()
    sections = [Section(_section_id((), seen), "", 0, (), 0, len(writing.text), None)]
    above = [0]  # the sections that are open, outermost first
    for heading in headings:
        start = writing.line_start(writing.place(heading)[0])
        while sections[above[-1]].level >= heading.level:
            closed = above.pop()
            sections[closed] = replace(sections[closed], end=start)
        parent = sections[above[-1]]
        path = (*parent.path, heading.title)
        name, end = _section_id(path, seen), len(writing.text)
        above.append(len(sections))
        sections.append(Section(name, heading.title, heading.level, path, start, end, parent.id, heading.page))
    return sections


def _section_id(path: tuple[str, ...], seen: Counter[tuple[str, ...]]) -> str:
    """Return an id that a change elsewhere leaves alone: the titles, and which of the sections of these titles."""
    seen[path] += 1
    return f"s-{digest('section', path, seen[path])}"


# ------------------------------------------------------------------------------------------------------------ pieces


def _parts(writing: Writing, body: Sequence[Block], limits: SourceLimits) -> Iterator[_Part]:
    lead: Span | None = None
    runs = list(_runs(_joined(writing, body, limits)))
    for run, after in zip_longest(runs, runs[1:]):
        if run[0].kind in ("paragraph", "caption"):
            introduces = after is not None and after[0].kind in _INTRODUCED
            lead, taken = _lead(writing, run[0], limits) if introduces else (None, False)
            if not taken:
                yield from _plain_parts(writing, merged("paragraph", run), limits)
        else:
            yield from _shaped(writing, run, lead, limits)
            lead = None


def _runs(body: Sequence[Block]) -> Iterator[list[Block]]:
    """Yield each list as the run of its items, and every other block alone."""
    for group, found in groupby(body, key=lambda block: block.group if block.kind == "item" else None):
        blocks = list(found)
        yield from [blocks] if group is not None else ([block] for block in blocks)


def _joined(writing: Writing, body: Sequence[Block], limits: SourceLimits) -> list[Block]:
    """Return the blocks with each fragment joined to the paragraph after it, or else to the one before."""
    joined: list[Block] = []
    waiting = False
    for block in body:
        fragment = block.kind == "paragraph" and writing.is_fragment(block, limits.fragment_chars)
        if block.kind == "paragraph" and waiting:
            joined[-1] = merged("paragraph", [joined[-1], block])
            waiting = writing.is_fragment(joined[-1], limits.fragment_chars)
        else:
            joined.append(block)
            waiting = fragment
    last_two = joined[-2:]
    if waiting and len(last_two) == 2 and last_two[0].kind == "paragraph":
        joined[-2:] = [merged("paragraph", last_two)]
    return joined


def _lead(writing: Writing, block: Block, limits: SourceLimits) -> tuple[Span | None, bool]:
    """Return the sentence that introduces what follows, and whether it is all that the block says."""
    sentences = writing.sentences(block)
    if not sentences:
        return None, False
    last = sentences[-1]
    if block.kind == "caption":
        last = writing.whole(block)
        sentences = [last]
    elif not last.text.endswith((":", "：")):
        return None, False
    return (last, len(sentences) == 1) if len(last.text) <= limits.lead_chars else (None, False)


def _shaped(writing: Writing, run: Sequence[Block], lead: Span | None, limits: SourceLimits) -> Iterator[_Part]:
    if run[0].kind == "item":
        yield from _list_parts(writing, run, lead, limits)
    elif run[0].kind == "table":
        yield from _table_parts(writing, run[0], lead, limits)
    else:
        yield from (replace(part, lead=lead) for part in _plain_parts(writing, run[0], limits))


def _plain_parts(writing: Writing, block: Block, limits: SourceLimits) -> Iterator[_Part]:
    for span in writing.cut(block, limits.piece_chars):
        yield _Part(cast("PieceKind", block.kind), span, ordered=block.ordered)


def _list_parts(writing: Writing, items: Sequence[Block], lead: Span | None, limits: SourceLimits) -> Iterator[_Part]:
    """Yield a list item by item; steps that fit, and items that are mere fragments, stay together."""
    together = merged("list", items)
    steps = items[0].ordered and len(writing.whole(together).text) <= limits.piece_chars
    fragments = all(writing.is_fragment(item, limits.fragment_chars) for item in items)
    for block in [together] if len(items) > 1 and (steps or fragments) else items:
        yield from (replace(part, lead=lead) for part in _plain_parts(writing, block, limits))


def _table_parts(writing: Writing, table: Block, lead: Span | None, limits: SourceLimits) -> Iterator[_Part]:
    """Yield a table whole, or in groups of rows that all carry the header."""
    whole = writing.whole(table)
    rows = table.leaves[0].lines
    if len(whole.text) <= limits.piece_chars or len(rows) <= table.header:
        yield from (replace(part, lead=lead) for part in _plain_parts(writing, table, limits))
        return
    header = replace(table, leaves=(Leaf(rows[: table.header], literal=True),))
    body = replace(table, leaves=(Leaf(rows[table.header :], literal=True),))
    names = writing.whole(header) if table.header else None
    for part in _plain_parts(writing, body, limits):
        yield replace(part, lead=_behind(lead, names))


def _behind(lead: Span | None, names: Span | None) -> Span | None:
    if lead is None or names is None:
        return lead or names
    return Span(f"{lead.text}\n{names.text}", lead.start, names.end)
