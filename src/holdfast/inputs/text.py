"""Plain text and PDF → blocks: paragraphs, lists, and headings that are underlined or written in capitals.

A PDF is the plain text of its pages, each a section. It needs the extra `documents`.
"""

from __future__ import annotations

import io
import logging
import re
import struct
import zlib
from collections.abc import Iterator, Sequence

from holdfast.errors import InputError, MissingExtraError, shown
from holdfast.inputs.pieces import Block, Leaf, Place, lines_of, strip_place
from holdfast.types import SourceLimits

_ITEM = re.compile(r"\s*(?:(?P<number>\d{1,3})[.)]|(?P<bullet>[-*•‣–]))\s+(?=\S)")
_RULE = re.compile(r"\s*(?:={3,}|-{3,}|~{3,})\s*$")
# A heading in capitals is a line of its own that ends in no stop; shorter is a sign or an abbreviation.
_SHORTEST_CAPITALS, _LONGEST_HEADING = 4, 80
_STOPS = (".", ",", ";", "!", "?")

Lines = Sequence[Place]


def read_plain(text: str, *, start: int = 0, end: int | None = None, headings: bool = True) -> Iterator[Block]:
    """Yield the blocks of a plain text, or of the part of it between two places."""
    lines = [(start + a, start + b) for a, b in lines_of(text[start:end])]
    for number, paragraph in enumerate(_paragraphs(text, lines)):
        yield from _blocks(text, paragraph, number, headings=headings)


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


def _blocks(text: str, lines: Lines, number: int, *, headings: bool) -> Iterator[Block]:
    level = _heading_level(text, lines) if headings else 0
    if level:
        start, end = lines[0]
        yield Block("heading", (Leaf((lines[0],)),), level=level, title=" ".join(text[start:end].split()))
        lines = lines[1:] if len(lines) == 1 or not _is(_RULE, text, lines[1]) else lines[2:]
        if lines:
            yield from _blocks(text, lines, number, headings=headings)
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


# --------------------------------------------------------------------------------------------------------------- PDF

# pypdf documents that a damaged file may raise more than its own errors. These are the ones that damaged data raises;
# found by changing bytes of good files.
_BROKEN = (
    ValueError, LookupError, TypeError, AttributeError, AssertionError, ArithmeticError, EOFError, RecursionError,
    NotImplementedError, struct.error, zlib.error,
)  # fmt: skip
_PAGE_BREAK = "\n\n"
# A damaged file is our error to report, once; the library would also write to standard error.
logging.getLogger("pypdf").addHandler(logging.NullHandler())


def read_pdf(name: str, body: bytes, limits: SourceLimits) -> tuple[str, list[Block]]:
    """Return the words of a PDF, page after page, and the blocks of them.

    Raises:
        MissingExtraError: pypdf is not installed.
        InputError: it is encrypted, damaged, too long, or holds pictures of words only.
    """
    try:
        from pypdf.errors import DependencyError, DeprecationError, PyPdfError  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise MissingExtraError(
            f"{shown(name)} is a PDF, which needs pypdf; install it with: pip install 'holdfast[documents]'"
        ) from error
    try:
        pages = list(_pages(name, body, limits))
    except InputError:
        raise
    except (PyPdfError, DependencyError, DeprecationError, *_BROKEN) as error:
        raise InputError(f"{shown(name)} cannot be read as a PDF ({shown(str(error))}); save it anew") from error
    if not any(page.strip() for page in pages):
        raise InputError(
            f"{shown(name)} has {len(pages)} pages and no text; if they are scans, run OCR over them first"
        )
    text = _PAGE_BREAK.join(pages)
    if len(text) > limits.max_bytes:
        raise InputError(f"{shown(name)} holds {len(text):,} characters, more than {limits.max_bytes:,}; split it")
    return text, list(_page_blocks(text, pages))


def _pages(name: str, body: bytes, limits: SourceLimits) -> Iterator[str]:
    from pypdf import PdfReader  # noqa: PLC0415 - an extra

    reader = PdfReader(io.BytesIO(body))
    if reader.is_encrypted:
        raise InputError(f"{shown(name)} is encrypted; save it without a password")
    if len(reader.pages) > limits.max_pages:
        raise InputError(f"{shown(name)} has {len(reader.pages):,} pages, more than {limits.max_pages:,}; split it")
    for page in reader.pages:
        # A damaged font table yields characters that no text may hold.
        yield page.extract_text().replace("\x00", "�").encode("utf-8", "replace").decode("utf-8")


def _page_blocks(text: str, pages: list[str]) -> Iterator[Block]:
    start = 0
    for number, page in enumerate(pages, start=1):
        yield Block("heading", (Leaf(((start, start),)),), level=1, title=f"Page {number}", page=number)
        # Running heads are often in capitals, so capitals make no heading here.
        yield from read_plain(text, start=start, end=start + len(page), headings=False)
        start += len(page) + len(_PAGE_BREAK)
