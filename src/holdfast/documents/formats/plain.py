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
# The rank of a heading by what underlines it; a line above it, too, is a title's.
_RANKS, _TITLE_RANK = {"=": 2, "-": 3, "~": 4}, 1
# A heading in capitals is a line of its own that ends in no stop; shorter is a sign or an abbreviation.
_SHORTEST_CAPITALS, _LONGEST_HEADING = 4, 80
_STOPS = (".", ",", ";", "!", "?")
# Plain text is often reStructuredText: what is indented below these is code, line by line …
_BEFORE_CODE = regex(r"(?!\.\.\s).*::$|\.\.\s[\w:-]*(?:code|literal|console)[\w:-]*::")
# … and these only name the place, or what follows.
_DIRECTIVE = regex(r"\.\.\s")
# How a line of a log begins; a web server writes who asked first.
_STAMP = regex(
    r"\W{0,2}(?:\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d|\d\d:\d\d:\d\d\b|[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d)"
    r"|.{0,80}?\[\d\d/[A-Z][a-z]{2}/\d{4}:\d\d:\d\d"
)
# So many lines show whether a text is a log, and such a share of them; others go on with what stands above them.
_SAMPLE_LINES, _STAMPED = 50, 0.4
# A few lines, as much as is embedded of a piece: each says something else, and a question is mostly about one.
_LOG_CHARS = 240

LineSpans = Sequence[LineSpan]


def read_log(name: str, text: str) -> list[Block]:
    """Return a log as blocks of a few whole lines; nothing when it is none, by its name or by how its lines begin."""
    lines = [line for line in lines_of(text) if text[slice(*line)].strip()]
    first = lines[:_SAMPLE_LINES]
    stamped = sum(_is(_STAMP, text, line) for line in first)
    if not name.lower().endswith(".log") and (stamped < 2 or _STAMPED * len(first) > stamped):
        return []
    runs: list[list[LineSpan]] = []
    for line in lines:
        if not runs or line[1] - runs[-1][0][0] > _LOG_CHARS:
            runs.append([])
        runs[-1].append(line)
    return [Block("code", (Paragraph(tuple(run), literal=True),)) for run in runs]


def read_plain(text: str, *, start: int = 0, end: int | None = None, headings: bool = True) -> Iterator[Block]:
    """Yield the blocks of a plain text, or of the part of it between two places."""
    lines = [(start + a, start + b) for a, b in lines_of(text[start:end])]
    waiting: list[LineSpan] = []  # directives that may belong to a heading below them
    margin: int | None = None  # of the words that code stands below
    code: list[LineSpan] = []
    for number, run in enumerate(_paragraphs(text, lines)):
        paragraph = [strip_span(text, *line) for line in run]
        indents = [said - begin for (said, _), (begin, _) in zip(paragraph, run, strict=True)]
        if margin is not None and min(indents) > margin:
            code += run
            continue
        yield from _code(text, code)
        code, margin = [], _margin(text, paragraph, indents[-1])
        if headings and all(_is(_DIRECTIVE, text, line) for line in paragraph):
            waiting += paragraph
            continue
        if waiting and not _heading(text, paragraph):
            yield Block("paragraph", (Paragraph(tuple(waiting)),))
            waiting = []
        yield from _plain_blocks(text, paragraph, number, waiting, headings=headings)
        waiting = []
    yield from _code(text, code)
    if waiting:
        yield Block("paragraph", (Paragraph(tuple(waiting)),))


def _code(text: str, lines: LineSpans) -> Iterator[Block]:
    """Yield lines as code, the blank ones between them included, without what all of them are indented by."""
    if lines:
        indent = min(strip_span(text, *line)[0] - line[0] for line in lines)
        first = lines[0][0]
        spans = ((first + begin, first + end) for begin, end in lines_of(text[first : lines[-1][1]]))
        code = tuple((min(begin + indent, end), end) for begin, end in spans)
        yield Block("code", (Paragraph(code, literal=True),))


def _margin(text: str, paragraph: LineSpans, indent: int) -> int | None:
    """Return how far a paragraph is indented that code may follow; nothing when none may."""
    first, last = text[slice(*paragraph[0])], text[slice(*paragraph[-1])]
    if not _BEFORE_CODE.match(last) and not (_DIRECTIVE.match(first) and _BEFORE_CODE.match(first)):
        return None
    marked = _ITEM.match(last)
    return indent + (marked.end() if marked else 0)


def _paragraphs(text: str, lines: LineSpans) -> Iterator[list[LineSpan]]:
    """Yield the runs of lines between blank ones."""
    run: list[LineSpan] = []
    for line in lines:
        if text[slice(*line)].strip():
            run.append(line)
        elif run:
            yield run
            run = []
    if run:
        yield run


def _plain_blocks(
    text: str, lines: LineSpans, number: int, above: LineSpans = (), *, headings: bool
) -> Iterator[Block]:
    """Yield a heading, with the directives `above` it, and what stands below; or a paragraph with its list."""
    found = _heading(text, lines) if headings else None
    if found:
        level, at, length = found
        title = " ".join(text[slice(*lines[at])].split())
        yield Block("heading", (Paragraph((*above, lines[at])),), level=level, title=title)
        if lines[length:]:
            yield from _plain_blocks(text, lines[length:], number, headings=headings)
        return
    words = [line for line in lines if not _is(_RULE, text, line)]
    if words:
        yield from _listed(text, words, number)


def _heading(text: str, lines: LineSpans) -> tuple[int, int, int] | None:
    """Return the rank of the heading that a paragraph begins with, its line, and how many lines are the heading."""
    at = int(len(lines) > 2 and _is(_RULE, text, lines[0]) and _is(_RULE, text, lines[2]))
    first = text[slice(*lines[at])]
    if len(first) > _LONGEST_HEADING or _RULE.match(first):
        return None
    if len(lines) > at + 1 and _is(_RULE, text, lines[at + 1]):
        return (_TITLE_RANK if at else _RANKS[text[lines[1][0]]]), at, at + 2
    letters = sum(character.isalpha() for character in first)
    alone = len(lines) == 1 and letters >= _SHORTEST_CAPITALS and first.isupper()
    return (_RANKS["="], 0, 1) if alone and not first.endswith(_STOPS) and not _ITEM.match(first) else None


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
