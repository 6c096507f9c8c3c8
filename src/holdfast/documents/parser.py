"""Sources → knowledge units: documents of every format, JSON Lines, and files of units in JSON or YAML.

`read_source` gives the tree of a source, `source_units` what it says as units. Nothing here reads a file or a clock.
"""

from __future__ import annotations

import codecs
import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterable

from holdfast.documents.formats.code import CODE_SUFFIXES, read_code
from holdfast.documents.formats.html import read_html
from holdfast.documents.formats.mail import read_mail, read_mailbox
from holdfast.documents.formats.pdf import read_pdf
from holdfast.documents.formats.plain import read_log, read_plain, read_table
from holdfast.documents.formats.rst import read_rst
from holdfast.documents.formats.zipped import read_docx, read_epub
from holdfast.documents.markdown import read_markdown
from holdfast.documents.pieces import SILENT, Extract, SourceText, condition_of, divide, role_of
from holdfast.documents.records import Format, read_records, read_unit_records, read_units
from holdfast.errors import InputError, quote_value
from holdfast.messages.checks import MAX_NAME, check_name, decode_bytes
from holdfast.messages.content import message_words
from holdfast.text.questions import ACTS_FOR_ROLE
from holdfast.types import MediaType, Piece, Record, Section, Source, SourceLimits, SourceUnit, digest, piece_id

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
# The id of a piece's unit is the source's name, "#p" and a digest of 20 characters.
_MAX_SOURCE_NAME = MAX_NAME - 22
_TOPIC_GLUE = " › "
# Between a lead-in and what it introduces; what stands in lines goes on the next one.
_LEAD_GLUE = {"paragraph": " ", "quote": " ", "item": " "}


def read_source(name: str, body: bytes, *, limits: SourceLimits = _DEFAULTS, relations: Iterable[str] = ()) -> Source:
    """Return a source as sections and pieces; `relations` are those that files of units may use besides C8's.

    Raises:
        InputError: it is too large, of no kind that can be read, damaged, or says nothing.
        MissingExtraError: its format needs an extra that is not installed.
    """
    check_name("source name", name)
    if len(name) > _MAX_SOURCE_NAME:
        raise InputError(
            f"the source name {quote_value(name)} has {len(name)} characters; the most is {_MAX_SOURCE_NAME}"
        )
    if len(body) > limits.max_bytes:
        raise InputError(f"{quote_value(name)} has {len(body):,} bytes, more than {limits.max_bytes:,}; split it")
    media_type = kind_of(name, body)
    sha256 = hashlib.sha256(body).hexdigest()
    if media_type in RECORDS:
        return _checked(
            _read_records(name, media_type, sha256, decode(name, body), tuple(relations)), limits.max_units
        )
    source, extract, links = _read_extract(name, body, media_type, limits)
    if not extract.blocks:
        raise InputError(
            f"{quote_value(name)} has {len(body)} bytes and no content; write some text, or leave it out"
        )
    if len(extract.text) > limits.max_bytes:
        raise InputError(
            f"{quote_value(name)} holds {len(extract.text):,} characters, more than {limits.max_bytes:,}; split it"
        )
    sections, pieces = divide(source, extract.blocks, extract.at)
    return _checked(Source(name, media_type, sha256, source.text, sections, pieces, links), limits.max_units)


def _checked(source: Source, most: int) -> Source:
    """Return a source unless it makes more units than one may."""
    if len(source.pieces) > most:
        raise InputError(
            f"{quote_value(source.name)} makes {len(source.pieces):,} units, more than {most:,}; split it"
        )
    return source


# Files of records: what they hold is not cut.
RECORDS: tuple[MediaType, ...] = ("application/jsonl", "application/json", "application/yaml")
# What is not UTF-8 text by itself comes as bytes, the others as text.
_OF_BYTES: dict[MediaType, Callable[[str, bytes, SourceLimits], Extract]] = {
    "application/pdf": read_pdf,
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": read_docx,
    "application/epub+zip": read_epub,
    "message/rfc822": read_mail,
    "application/mbox": read_mailbox,
}
_OF_TEXT: dict[MediaType, Callable[[str, str, SourceLimits], Extract]] = {
    "text/html": lambda _name, text, _limits: Extract(*read_html(text)),
    "text/plain": lambda name, text, _limits: Extract(text, read_log(name, text) or list(read_plain(text))),
    "text/x-rst": read_rst,
    "text/csv": read_table,
    "text/tab-separated-values": read_table,
    "text/x-source": read_code,
}


def _read_extract(
    name: str, body: bytes, media_type: MediaType, limits: SourceLimits
) -> tuple[SourceText, Extract, tuple[str, ...]]:
    """Return the text of a document with its rendering, what was read of it, and its hop targets."""
    if media_type in _OF_BYTES:
        extract = _OF_BYTES[media_type](name, body, limits)
        return SourceText(extract.text, limits=limits), extract, ()
    text = decode(name, body)
    if media_type == "text/markdown":
        blocks, links, render = read_markdown(name, text)
        return SourceText(text, render, limits), Extract(text, blocks), links
    extract = _OF_TEXT[media_type](name, text, limits)
    return SourceText(extract.text, limits=limits), extract, ()


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
        glue = "\n" if "\n" in piece.text else _LEAD_GLUE.get(piece.kind, "\n")
        text = glue.join(filter(None, (piece.lead.text if piece.lead else "", piece.text)))
        said = digest("piece", titles, text)
        seen[said] += 1
        name = piece_id(source.name, digest(said, seen[said]))
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
        at=section.at,
        # A quote is somebody else's words, and a header nobody's.
        by="" if piece.kind in ("quote", "record") else section.by,
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
    "text/x-rst": "rst",
    "text/csv": "csv",
    "text/tab-separated-values": "tsv tab",
    "text/x-source": CODE_SUFFIXES,
    "message/rfc822": "eml",
    "application/mbox": "mbox",
    "application/epub+zip": "epub",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": "docx",
}
_BY_SUFFIX = {suffix: media_type for media_type, listed in _SUFFIXES.items() for suffix in listed.split()}
# Their readers say what is wrong with them; a letter may be in any encoding.
_OWN_CHECKS: tuple[MediaType, ...] = (
    "message/rfc822", "application/mbox", "application/epub+zip",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
)  # fmt: skip
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
    if named in _OWN_CHECKS:
        return named
    is_pdf = _PDF_MARK in first_bytes[:_PDF_MARK_WITHIN]
    if named == "application/pdf" or (named is None and is_pdf):
        if not is_pdf:
            raise InputError(f"{quote_value(name)} is not a PDF: it has no %PDF- mark; check the file, or rename it")
        return "application/pdf"
    encoding, mark = _encoding(name, first_bytes)
    if first_bytes.startswith(_PDF_MARK):
        raise InputError(f"{quote_value(name)} is a PDF by its content and {named} by its name; rename it to .pdf")
    if encoding == "utf-8" and b"\x00" in first_bytes:
        at = first_bytes.index(0)
        raise InputError(
            f"{quote_value(name)} holds a NUL byte at {at}, so it is no text; {_REMEDY}, or leave it out"
        )
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
        raise InputError(
            f"{quote_value(name)} holds a NUL character at {text.index(chr(0))}; remove it, or {_REMEDY}"
        )
    return text


def _encoding(name: str, body: bytes) -> tuple[str, int]:
    """Return the encoding that the first bytes tell, and the length of the mark."""
    for mark, encoding in _MARKS:
        if body.startswith(mark):
            if encoding == "utf-32":
                raise InputError(f"{quote_value(name)} is UTF-32 by its byte order mark; {_REMEDY}")
            return encoding, len(mark)
    return "utf-8", 0
