"""Plain text → blocks: paragraphs between blank lines, marked items, and lines that are underlined or in capitals."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from holdfast.documents.pieces import Block, Leaf, Place, lines_of, strip_place
from holdfast.text.patterns import regex

_ITEM = regex(r"\s*(?:(?P<number>\d{1,3})[.)]|(?P<bullet>[-*•‣–]))\s+(?=\S)")
_RULE = regex(r"\s*(?:={3,}|-{3,}|~{3,})\s*$")
# A heading in capitals is a line of its own that ends in no stop; shorter is a sign or an abbreviation.
_SHORTEST_CAPITALS, _LONGEST_HEADING = 4, 80
_STOPS = (".", ",", ";", "!", "?")

Lines = Sequence[Place]


def read_plain(text: str, *, start: int = 0, end: int | None = None, headings: bool = True) -> Iterator[Block]:
    """Yield the blocks of a plain text, or of the part of it between two places."""
    lines = [(start + a, start + b) for a, b in lines_of(text[start:end])]
    for number, paragraph in enumerate(_paragraphs(text, lines)):
        yield from _plain_blocks(text, paragraph, number, headings=headings)


def _paragraphs(text: str, lines: Lines) -> Iterator[list[Place]]:
    """Yield the runs of lines between blank ones, each line without the blanks around it."""
    run: list[Place] = []
    for line in lines:
        start, end = strip_place(text, *line)
        if start < end:
            run.append((start, end))
        elif run:
            yield run
            run = []
    if run:
        yield run


def _plain_blocks(text: str, lines: Lines, number: int, *, headings: bool) -> Iterator[Block]:
    level = _heading_level(text, lines) if headings else 0
    if level:
        start, end = lines[0]
        yield Block("heading", (Leaf((lines[0],)),), level=level, title=" ".join(text[start:end].split()))
        lines = lines[1:] if len(lines) == 1 or not _is(_RULE, text, lines[1]) else lines[2:]
        if lines:
            yield from _plain_blocks(text, lines, number, headings=headings)
        return
    words = [line for line in lines if not _is(_RULE, text, line)]
    if words:
        yield from _listed(text, words, number)


def _heading_level(text: str, lines: Lines) -> int:
    """Return the rank of the heading that a paragraph begins with; 0 without any."""
    first = text[slice(*lines[0])]
    if len(first) > _LONGEST_HEADING or _RULE.match(first):
        return 0
    if len(lines) > 1 and _is(_RULE, text, lines[1]):
        return 1 if text[lines[1][0]] == "=" else 2
    letters = sum(character.isalpha() for character in first)
    alone = len(lines) == 1 and letters >= _SHORTEST_CAPITALS and first.isupper()
    return 1 if alone and not first.endswith(_STOPS) and not _ITEM.match(first) else 0


def _is(pattern: re.Pattern[str], text: str, line: Place) -> bool:
    return pattern.match(text[slice(*line)]) is not None


def _listed(text: str, lines: Lines, number: int) -> Iterator[Block]:
    """Yield a paragraph, then the items of the list in it; two marks make a list, one may be a dash or a year."""
    marks = [bool(_is(_ITEM, text, line)) for line in lines]
    first = marks.index(True) if sum(marks) > 1 or (marks and marks[0]) else len(lines)
    if first:
        yield Block("paragraph", (Leaf(tuple(lines[:first])),))
    item: list[Place] = []
    ordered = False
    for line, marked in zip(lines[first:], marks[first:], strict=True):
        if marked and item:
            yield Block("item", (Leaf(tuple(item)),), group=number, ordered=ordered)
            item = []
        found = _ITEM.match(text[slice(*line)])
        if marked and found:
            ordered = found["number"] is not None
            line = (line[0] + found.end(), line[1])  # noqa: PLW2901 - the mark is no word of the item
        item.append(line)
    if item:
        yield Block("item", (Leaf(tuple(item)),), group=number, ordered=ordered)
