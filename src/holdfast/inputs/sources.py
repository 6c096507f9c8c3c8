"""Sources → knowledge units: Markdown, plain text, HTML, PDF, JSON Lines, and files of units in JSON or YAML.

`read_source` gives the tree of a source, `source_units` what it says as units. Nothing here reads a file or a clock.
A PDF is the plain text of its pages, each a section; it needs the extra `documents`.
"""

from __future__ import annotations

import codecs
import hashlib
import io
import logging
import re
import struct
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from holdfast.errors import InputError, MissingExtraError, shown
from holdfast.inputs.checks import MAX_NAME, check_name, decode_bytes
from holdfast.inputs.html import read_html
from holdfast.inputs.markdown import read_markdown
from holdfast.inputs.messages import message_words
from holdfast.inputs.pieces import (
    SILENT,
    Block,
    Leaf,
    Place,
    SourceText,
    condition_of,
    divide,
    lines_of,
    role_of,
    strip_place,
)
from holdfast.inputs.records import Format, read_records, read_unit_records, read_units
from holdfast.language.query import ACTS_FOR_ROLE
from holdfast.types import MediaType, Piece, Record, Section, Source, SourceLimits, SourceUnit, digest

__all__ = [
    "condition_of",
    "decode",
    "kind_of",
    "read_records",
    "read_source",
    "read_units",
    "role_of",
    "source_units",
]

_DEFAULTS = SourceLimits()
# A unit's id is the source's name, "#" and a digest of 20 characters.
_MAX_SOURCE_NAME = MAX_NAME - 21
_TOPIC_GLUE = " › "
# Between a lead-in and what it introduces; what stands in lines goes on the next one.
_LEAD_GLUE = {"paragraph": " ", "quote": " ", "item": " "}


def read_source(name: str, body: bytes, *, limits: SourceLimits = _DEFAULTS, relations: Iterable[str] = ()) -> Source:
    """Return a source as sections and pieces; `relations` are those that files of units may use besides C8's.

    Raises:
        InputError: it is too large, of no kind that can be read, damaged, or says nothing.
        MissingExtraError: it is a PDF, and the extra that reads PDFs is not installed.
    """
    check_name("source name", name)
    if len(name) > _MAX_SOURCE_NAME:
        raise InputError(f"the source name {shown(name)} has {len(name)} characters; the most is {_MAX_SOURCE_NAME}")
    if len(body) > limits.max_bytes:
        raise InputError(f"{shown(name)} has {len(body):,} bytes, more than {limits.max_bytes:,}; split it")
    media_type = kind_of(name, body)
    sha256 = hashlib.sha256(body).hexdigest()
    if media_type in ("application/jsonl", "application/json", "application/yaml"):
        return _read_records(name, media_type, sha256, decode(name, body), tuple(relations))
    source, blocks, links = _read_blocks(name, body, media_type, limits)
    if not blocks:
        raise InputError(f"{shown(name)} has {len(body)} bytes and no content; write some text, or leave it out")
    sections, pieces = divide(source, blocks)
    return Source(name, media_type, sha256, source.text, sections, pieces, links)


def _read_blocks(
    name: str, body: bytes, media_type: MediaType, limits: SourceLimits
) -> tuple[SourceText, list[Block], tuple[str, ...]]:
    """Return the text of a document with its rendering, its blocks, and its hop targets."""
    if media_type == "application/pdf":
        text, blocks = read_pdf(name, body, limits)
        return SourceText(text, limits=limits), blocks, ()
    text = decode(name, body)
    if media_type == "text/markdown":
        blocks, links, render = read_markdown(name, text)
        return SourceText(text, render, limits), blocks, links
    text, blocks = read_html(text) if media_type == "text/html" else (text, list(read_plain(text)))
    return SourceText(text, limits=limits), blocks, ()


def _read_records(name: str, media_type: MediaType, sha256: str, text: str, relations: tuple[str, ...]) -> Source:
    if media_type == "application/jsonl":
        records = read_records(text, name, relations=relations)
    else:
        form: Format = "json" if media_type == "application/json" else "yaml"
        records = read_unit_records(text, form, name, relations=relations)
    sections, _ = divide(SourceText(text), ())
    pieces = tuple(
        Piece("record", _words(record), record.start, record.end, sections[0].id, ordinal)
        for ordinal, record in enumerate(records)
    )
    return Source(name, media_type, sha256, text, sections, pieces, (), records)


def _words(record: Record) -> str:
    return record.unit.text if record.unit is not None else message_words(record.message or {})[1]


# -------------------------------------------------------------------------------------------------------------- units


def source_units(source: Source) -> tuple[SourceUnit, ...]:
    """Return what a source says as knowledge units, in order; a file of records has its own in `records`.

    An id is made of the titles above a piece, its words, and which of the equal pieces it is. So it stays when
    something is added, moved or removed elsewhere, and changes with what the unit says.
    """
    if source.records:
        return ()
    sections = {section.id: section for section in source.sections}
    seen: Counter[str] = Counter()
    units = []
    for piece in source.pieces:
        section = sections[piece.section]
        # That a paragraph stands on page 7 is no topic, and need not be so tomorrow.
        titles = section.path if section.page is None else section.path[:-1]
        text = _LEAD_GLUE.get(piece.kind, "\n").join(
            filter(None, (piece.lead.text if piece.lead else "", piece.text))
        )
        said = digest("piece", titles, text)
        seen[said] += 1
        name = f"{source.name}#{digest(said, seen[said])}"
        units.append(_unit(source, piece, section, name, _TOPIC_GLUE.join(titles), text))
    return tuple(units)


def _unit(source: Source, piece: Piece, section: Section, name: str, topic: str, text: str) -> SourceUnit:
    lead = piece.lead.text if piece.lead else ""
    heading = section.title if section.page is None else ""
    role = role_of(piece.text, kind=piece.kind, lead=lead, heading=heading, ordered=piece.ordered)
    return SourceUnit(
        id=name,
        source=source.name,
        text=text,
        start=piece.start,
        end=piece.end,
        section=section.id,
        path=section.path,
        page=section.page,
        kind=piece.kind,
        role=role,
        topic=topic,
        claim="" if role == "Procedure" else text,
        procedure=text if role == "Procedure" else "",
        condition=(condition_of(piece.text) if piece.kind not in SILENT else "") or condition_of(lead),
        utility_acts=ACTS_FOR_ROLE[role],
        links=source.links,
    )


# -------------------------------------------------------------------------------------------------------------- kinds

_SUFFIXES: dict[MediaType, str] = {
    "text/markdown": "md markdown mdown",
    "text/plain": "txt text",
    "text/html": "html htm xhtml",
    "application/pdf": "pdf",
    "application/jsonl": "jsonl ndjson",
    "application/json": "json",
    "application/yaml": "yaml yml",
}
_BY_SUFFIX = {suffix: media_type for media_type, listed in _SUFFIXES.items() for suffix in listed.split()}
# A PDF's mark may follow a few bytes of something else.
_PDF_MARK, _PDF_MARK_WITHIN = b"%PDF-", 1024
_HTML_START = re.compile(rb"\s*(?:<!--.{0,400}?-->\s*)?<(?:!doctype\s+html|html)\b", re.IGNORECASE | re.DOTALL)
# The longer mark first: UTF-32's little-endian one begins with UTF-16's.
_MARKS: tuple[tuple[bytes, str], ...] = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_REMEDY = "save the file as UTF-8"


def kind_of(name: str, first_bytes: bytes) -> MediaType:
    """Return the media type of a source by its name's suffix and by how it begins.

    A name whose suffix is none of ours is told by its content: PDF, HTML, or plain text.

    Raises:
        InputError: the content is not what the suffix says, or is no text at all.
    """
    _, dot, suffix = name.rpartition("/")[2].rpartition(".")
    named = _BY_SUFFIX.get(suffix.lower()) if dot else None
    is_pdf = _PDF_MARK in first_bytes[:_PDF_MARK_WITHIN]
    if named == "application/pdf" or (named is None and is_pdf):
        if not is_pdf:
            raise InputError(f"{shown(name)} is not a PDF: it has no %PDF- mark; check the file, or rename it")
        return "application/pdf"
    encoding, mark = _encoding(name, first_bytes)
    if first_bytes.startswith(_PDF_MARK):
        raise InputError(f"{shown(name)} is a PDF by its content and {named} by its name; rename it to .pdf")
    if encoding == "utf-8" and b"\x00" in first_bytes:
        at = first_bytes.index(0)
        raise InputError(f"{shown(name)} holds a NUL byte at {at}, so it is no text; {_REMEDY}, or leave it out")
    if named is not None:
        return named
    return "text/html" if _HTML_START.match(first_bytes[mark:]) else "text/plain"


def decode(name: str, body: bytes) -> str:
    """Return the text of UTF-8, or of UTF-16 with a byte order mark; the mark is no part of it.

    Raises:
        InputError: it is another encoding, damaged, or holds a NUL.
    """
    encoding, mark = _encoding(name, body)
    text = decode_bytes(name, body, mark, encoding)
    if "\x00" in text:
        raise InputError(f"{shown(name)} holds a NUL character at {text.index(chr(0))}; remove it, or {_REMEDY}")
    return text


def _encoding(name: str, body: bytes) -> tuple[str, int]:
    """Return the encoding that the first bytes tell, and the length of the mark."""
    for mark, encoding in _MARKS:
        if body.startswith(mark):
            if encoding == "utf-32":
                raise InputError(f"{shown(name)} is UTF-32 by its byte order mark; {_REMEDY}")
            return encoding, len(mark)
    return "utf-8", 0


# --------------------------------------------------------------------------------------------------------- plain text

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
