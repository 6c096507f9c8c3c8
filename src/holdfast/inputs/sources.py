"""Sources → knowledge units: Markdown, plain text, HTML, PDF, JSON Lines, and files of units in JSON or YAML.

`read_source` gives the tree of a source, `source_units` what it says as units. Nothing here reads a file or a clock.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable

from holdfast.errors import InputError, shown
from holdfast.inputs.authoring import RELATIONS, located_units, read_units, units_schema
from holdfast.inputs.blocks import Block, Writing
from holdfast.inputs.checks import MAX_NAME, check_name
from holdfast.inputs.html import read_html
from holdfast.inputs.markdown import read_markdown
from holdfast.inputs.pdf import read_pdf
from holdfast.inputs.plain import read_plain
from holdfast.inputs.recognise import decode, kind_of, refuse_foreign
from holdfast.inputs.records import read_records
from holdfast.inputs.roles import SILENT, condition_of, role_of
from holdfast.inputs.tree import grow
from holdfast.inputs.units import message_words
from holdfast.language.query import ACTS_FOR_ROLE
from holdfast.types import MediaType, Piece, Record, Section, Source, SourceLimits, SourceUnit, digest

__all__ = [
    "RELATIONS",
    "condition_of",
    "decode",
    "kind_of",
    "read_records",
    "read_source",
    "read_units",
    "refuse_foreign",
    "role_of",
    "source_units",
    "units_schema",
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
        return _of_records(name, media_type, sha256, decode(name, body), tuple(relations))
    writing, blocks, links = _read(name, body, media_type, limits)
    if not blocks:
        raise InputError(f"{shown(name)} has {len(body)} bytes and no content; write some text, or leave it out")
    sections, pieces = grow(writing, blocks, limits)
    return Source(name, media_type, sha256, writing.text, sections, pieces, links)


def _read(
    name: str, body: bytes, media_type: MediaType, limits: SourceLimits
) -> tuple[Writing, list[Block], tuple[str, ...]]:
    """Return the text of a document with its rendering, its blocks, and its hop targets."""
    if media_type == "application/pdf":
        text, blocks = read_pdf(name, body, limits)
        return Writing(text), blocks, ()
    text = decode(name, body)
    if media_type == "text/markdown":
        blocks, links, render = read_markdown(name, text)
        return Writing(text, render), blocks, links
    if media_type == "text/html":
        text, blocks = read_html(text)
        return Writing(text), blocks, ()
    return Writing(text), list(read_plain(text)), ()


def _of_records(name: str, media_type: MediaType, sha256: str, text: str, relations: tuple[str, ...]) -> Source:
    if media_type == "application/jsonl":
        records = read_records(text, name, relations=relations)
    else:
        units = located_units(text, "json" if media_type == "application/json" else "yaml", name, relations=relations)
        # YAML ends a block where the next one begins.
        ends = [place.start + len(text[place.start : place.end].rstrip()) for place, _ in units]
        records = tuple(
            Record(place.line, place.start, end, unit=unit) for (place, unit), end in zip(units, ends, strict=True)
        )
    sections, _ = grow(Writing(text), (), _DEFAULTS)
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
