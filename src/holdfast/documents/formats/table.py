"""CSV and TSV → a row at a time, each with the names of its columns, so that it is understood by itself."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain, islice

from holdfast.documents.pieces import Block, Extract, Leaf, Sheet
from holdfast.errors import InputError, shown
from holdfast.text.patterns import regex
from holdfast.types import SourceLimits

# What spreadsheets write between cells, the most usual first.
_DELIMITERS = (",", ";", "\t", "|")
# So many rows show what stands between the cells.
_SAMPLE_ROWS = 50
# A cell like this is a value: 12, 3.5 %, 2026-04-02, 10:30.
_VALUE = regex(r"[^\w]*\d[\d\s.,:/%-]*[^\w]*$")
_GLUE = " | "

Row = Sequence[str]


def read_table(name: str, text: str, limits: SourceLimits) -> Extract:
    """Return the rows of a table. The first one names the columns, unless it holds values or nothing.

    Raises:
        InputError: a quote is never closed, or a cell is longer than a table may have.
    """
    delimiter = "\t" if name.lower().endswith((".tsv", ".tab")) else _delimiter(text)
    rows = _rows(name, text, delimiter)
    first = next(rows, [])
    names = [" ".join(cell.split()) for cell in first] if _are_names(first) else []
    sheet = Sheet()
    for number, row in enumerate(rows if names else chain([first] if first else [], rows)):
        _put_row(sheet, _labelled(row, names), number, limits)
    if names and not sheet.blocks:  # the names alone are what it says
        sheet.blocks.append(Block("table", (Leaf((sheet.write(_GLUE.join(names)),), literal=True),)))
    return sheet.extract()


def _rows(name: str, text: str, delimiter: str) -> Iterator[Row]:
    reader = csv.reader(_lines(text), delimiter=delimiter, strict=True)
    try:
        yield from (row for row in reader if any(cell.strip() for cell in row))
    except csv.Error as error:
        raise InputError(
            f"{shown(name)} line {reader.line_num}: {error}; save it as CSV anew, or name it .txt"
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


def _are_names(row: Row) -> bool:
    """Return whether a row can name columns: each cell a word, none twice, none a value."""
    cells = [cell.strip() for cell in row]
    return len(cells) > 1 and all(cells) and len(set(cells)) == len(cells) and not any(map(_VALUE.match, cells))


def _labelled(row: Row, names: Row) -> list[str]:
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


def _put_row(sheet: Sheet, cells: list[str], number: int, limits: SourceLimits) -> None:
    """Write a row as a line; of one that is too long, the short cells stand before every part of the long ones."""
    line = _GLUE.join(cells)
    if len(line) <= limits.piece_chars:
        sheet.blocks.append(Block("table", (Leaf((sheet.write(line),), literal=True),)))
        return
    short: list[str] = []
    for cell in sorted(cells, key=len):
        if len(_GLUE.join([*short, cell])) <= limits.lead_chars:
            short.append(cell)
    if short:
        lead = _GLUE.join(cell for cell in cells if cell in short)
        sheet.blocks.append(Block("caption", (Leaf((sheet.write(lead),)),)))
    long = tuple(Leaf((sheet.write(cell),)) for cell in cells if cell not in short)
    sheet.blocks.append(Block("item", long, group=number + 1))
