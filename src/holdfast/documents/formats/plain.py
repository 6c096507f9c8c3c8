"""Plain text, CSV and TSV → blocks: paragraphs, marked items, headings; rows with the names of their columns."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain, islice

from holdfast.documents.pieces import Block, Extract, LineSpan, Paragraph, TextBuilder, lines_of, strip_span
from holdfast.errors import InputError, quote_value
from holdfast.text.words import regex
from holdfast.types import SourceLimits

_ITEM = regex(r"\s*(?:(?P<number>\d{1,3})[.)]|(?P<bullet>[-*•‣–]))\s+(?=\S)")
_RULE = regex(r"\s*(?:={3,}|-{3,}|~{3,})\s*$")
# A heading in capitals is a line of its own that ends in no stop; shorter is a sign or an abbreviation.
_SHORTEST_CAPITALS, _LONGEST_HEADING = 4, 80
_STOPS = (".", ",", ";", "!", "?")

LineSpans = Sequence[LineSpan]


def read_plain(text: str, *, start: int = 0, end: int | None = None, headings: bool = True) -> Iterator[Block]:
    """Yield the blocks of a plain text, or of the part of it between two places."""
    lines = [(start + a, start + b) for a, b in lines_of(text[start:end])]
    for number, paragraph in enumerate(_paragraphs(text, lines)):
        yield from _plain_blocks(text, paragraph, number, headings=headings)


def _paragraphs(text: str, lines: LineSpans) -> Iterator[list[LineSpan]]:
    """Yield the runs of lines between blank ones, each line without the blanks around it."""
    run: list[LineSpan] = []
    for line in lines:
        start, end = strip_span(text, *line)
        if start < end:
            run.append((start, end))
        elif run:
            yield run
            run = []
    if run:
        yield run


def _plain_blocks(text: str, lines: LineSpans, number: int, *, headings: bool) -> Iterator[Block]:
    level = _heading_level(text, lines) if headings else 0
    if level:
        start, end = lines[0]
        yield Block("heading", (Paragraph((lines[0],)),), level=level, title=" ".join(text[start:end].split()))
        lines = lines[1:] if len(lines) == 1 or not _is(_RULE, text, lines[1]) else lines[2:]
        if lines:
            yield from _plain_blocks(text, lines, number, headings=headings)
        return
    words = [line for line in lines if not _is(_RULE, text, line)]
    if words:
        yield from _listed(text, words, number)


def _heading_level(text: str, lines: LineSpans) -> int:
    """Return the rank of the heading that a paragraph begins with; 0 without any."""
    first = text[slice(*lines[0])]
    if len(first) > _LONGEST_HEADING or _RULE.match(first):
        return 0
    if len(lines) > 1 and _is(_RULE, text, lines[1]):
        return 1 if text[lines[1][0]] == "=" else 2
    letters = sum(character.isalpha() for character in first)
    alone = len(lines) == 1 and letters >= _SHORTEST_CAPITALS and first.isupper()
    return 1 if alone and not first.endswith(_STOPS) and not _ITEM.match(first) else 0


def _is(pattern: re.Pattern[str], text: str, line: LineSpan) -> bool:
    return pattern.match(text[slice(*line)]) is not None


def _listed(text: str, lines: LineSpans, number: int) -> Iterator[Block]:
    """Yield a paragraph, then the items of the list in it; two marks make a list, one may be a dash or a year."""
    marks = [bool(_is(_ITEM, text, line)) for line in lines]
    first = marks.index(True) if sum(marks) > 1 or (marks and marks[0]) else len(lines)
    if first:
        yield Block("paragraph", (Paragraph(tuple(lines[:first])),))
    item: list[LineSpan] = []
    ordered = False
    for line, marked in zip(lines[first:], marks[first:], strict=True):
        if marked and item:
            yield Block("item", (Paragraph(tuple(item)),), group=number, ordered=ordered)
            item = []
        found = _ITEM.match(text[slice(*line)])
        if marked and found:
            ordered = found["number"] is not None
            line = (line[0] + found.end(), line[1])  # noqa: PLW2901 - the mark is no word of the item
        item.append(line)
    if item:
        yield Block("item", (Paragraph(tuple(item)),), group=number, ordered=ordered)


# What spreadsheets write between cells, the most usual first.
_DELIMITERS = (",", ";", "\t", "|")
# So many rows show what stands between the cells.
_SAMPLE_ROWS = 50
# A cell like this is a value: 12, 3.5 %, 2026-04-02, 10:30.
_VALUE = regex(r"[^\w]*\d[\d\s.,:/%-]*[^\w]*$")
_GLUE = " | "

Cells = Sequence[str]


def read_table(name: str, text: str, limits: SourceLimits) -> Extract:
    """Return the rows of a table. The first one names the columns, unless it holds values or nothing.

    Raises:
        InputError: a quote is never closed, or a cell is longer than a table may have.
    """
    delimiter = "\t" if name.lower().endswith((".tsv", ".tab")) else _delimiter(text)
    rows = _rows(name, text, delimiter)
    first = next(rows, [])
    names = [" ".join(cell.split()) for cell in first] if _are_names(first) else []
    sheet = TextBuilder()
    for number, row in enumerate(rows if names else chain([first] if first else [], rows)):
        _put_row(sheet, _labelled(row, names), number, limits)
    if names and not sheet.blocks:  # the names alone are what it says
        sheet.blocks.append(Block("table", (Paragraph((sheet.write(_GLUE.join(names)),), literal=True),)))
    return sheet.extract()


def _rows(name: str, text: str, delimiter: str) -> Iterator[Cells]:
    reader = csv.reader(_lines(text), delimiter=delimiter, strict=True)
    try:
        yield from (row for row in reader if any(cell.strip() for cell in row))
    except csv.Error as error:
        raise InputError(
            f"{quote_value(name)} line {reader.line_num}: {error}; save it as CSV anew, or name it .txt"
        ) from error


def _lines(text: str) -> Iterator[str]:
    """Yield lines with their ends: a cell may hold some."""
    return iter(text.splitlines(keepends=True))


def _delimiter(text: str) -> str:
    """Return what divides the first rows into the same number of cells, most often; else a comma."""
    best, most = _DELIMITERS[0], 0.0
    for delimiter in _DELIMITERS:
        try:
            sample = list(islice(csv.reader(_lines(text), delimiter=delimiter), _SAMPLE_ROWS))
        except csv.Error:
            continue
        [(cells, rows)] = Counter(len(row) for row in sample if row).most_common(1) or [(0, 0)]
        # A third of the rows alike with two cells is less than all alike with two, and than all with five.
        agreed = (cells - 1) * (rows / len(sample)) ** 2 if sample else 0.0
        if agreed > most:
            best, most = delimiter, agreed
    return best


def _are_names(row: Cells) -> bool:
    """Return whether a row can name columns: each cell a word, none twice, none a value."""
    cells = [cell.strip() for cell in row]
    return len(cells) > 1 and all(cells) and len(set(cells)) == len(cells) and not any(map(_VALUE.match, cells))


def _labelled(row: Cells, names: Cells) -> list[str]:
    """Return the cells that say something, each behind the name of its column."""
    labelled = []
    for number, cell in enumerate(row):
        words = " ".join(cell.split())
        if words and names:
            column = names[number] if number < len(names) else f"column {number + 1}"
            labelled.append(f"{column}: {words}")
        elif words:
            labelled.append(words)
    return labelled


def _put_row(sheet: TextBuilder, cells: list[str], number: int, limits: SourceLimits) -> None:
    """Write a row as a line; of one that is too long, the short cells stand before every part of the long ones."""
    line = _GLUE.join(cells)
    if len(line) <= limits.piece_chars:
        sheet.blocks.append(Block("table", (Paragraph((sheet.write(line),), literal=True),)))
        return
    short: list[str] = []
    for cell in sorted(cells, key=len):
        if len(_GLUE.join([*short, cell])) <= limits.lead_chars:
            short.append(cell)
    if short:
        lead = _GLUE.join(cell for cell in cells if cell in short)
        sheet.blocks.append(Block("caption", (Paragraph((sheet.write(lead),)),)))
    long = tuple(Paragraph((sheet.write(cell),)) for cell in cells if cell not in short)
    sheet.blocks.append(Block("item", long, group=number + 1))
