"""Sources: a file as a small tree of sections and pieces, and the knowledge units that come of it (C1, C14)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from datetime import datetime
from typing import Literal, get_args

from holdfast.types.units import JSON, Act, Fact, Role, Unit
from holdfast.values import dataclass

MediaType = Literal[
    "text/markdown", "text/plain", "text/html", "application/pdf", "application/jsonl", "application/json",
    "application/yaml", "text/x-rst", "text/csv", "text/tab-separated-values", "text/x-source", "message/rfc822",
    "application/mbox", "application/epub+zip",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
]  # fmt: skip
PieceKind = Literal["paragraph", "list", "item", "table", "code", "quote", "record"]

MEDIA_TYPES: tuple[MediaType, ...] = get_args(MediaType)
PIECE_KINDS: tuple[PieceKind, ...] = get_args(PieceKind)


@dataclass(frozen=True, slots=True)
class SourceLimits:
    """How much of a source is taken in, and how it is cut into pieces.

    `piece_chars` is about 250 tokens: long enough for an argument, short enough that a budget holds several.
    """

    max_bytes: int = 16 * 1_048_576
    max_pages: int = 5_000
    max_units: int = 50_000  # twice what so many bytes of prose make; to embed them takes a minute or two
    piece_chars: int = 1_000
    # Neighbours of a section share a piece up to so many characters: the fewer pieces, the less there is to embed,
    # and what a short one leaves open mostly stands beside it. 0 leaves each alone.
    joined_chars: int = 1_000
    # A lead-in is repeated with every item, so it must be short.
    lead_chars: int = 300
    # A paragraph or item below this that is no sentence says too little alone.
    fragment_chars: int = 40


@dataclass(frozen=True, slots=True)
class Span:
    """Words and the place [start, end) of the source's text that holds them."""

    text: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and all below it, up to the next heading of its rank; the root has level 0.

    `path` holds the titles from the outermost down to this one. A page of a PDF is a section with a `page`, whose
    title is no topic. `at` is when it was written and `by` whose words it holds, where the format says so.
    """

    id: str
    title: str
    level: int
    path: tuple[str, ...]
    start: int
    end: int
    parent: str | None
    page: int | None = None
    at: datetime | None = None
    by: str = ""


@dataclass(frozen=True, slots=True)
class Piece:
    """What one unit is made of.

    `text` is the piece as a reader sees it, without markup and line wrapping; the source's text from `start` to `end`
    holds its words. `lead` is what introduces it and stands elsewhere: a list's lead-in, a code block's caption, or
    the header of the table whose rows these are.
    """

    kind: PieceKind
    text: str
    start: int
    end: int
    section: str
    ordinal: int
    lead: Span | None = None
    ordered: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthoredUnit:
    """A unit as a file of units gives it, checked (C1). `line` counts from 1."""

    id: str
    text: str
    role: Role
    topic: str = ""
    claim: str = ""
    procedure: str = ""
    condition: str = ""
    utility_acts: tuple[Act, ...] = ()
    utility_note: str = ""
    fact: Fact | None = None
    links: tuple[str, ...] = ()
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    metadata: Mapping[str, JSON] = field(default_factory=dict, hash=False)
    id_given: bool = False
    line: int = 0


@dataclass(frozen=True, slots=True)
class Record:
    """One entry of a file of records: a message (as a host would send it) or a unit, and where it stands."""

    line: int
    start: int
    end: int
    message: Mapping[str, JSON] | None = field(default=None, hash=False)
    unit: AuthoredUnit | None = None


@dataclass(frozen=True, slots=True)
class Source:
    """A source as it was read.

    `text` is what offsets count in: the decoded file, or the text that was extracted from it.
    `links` are the hop targets of its front matter (C12). A file of records has `records`, one for each piece.
    """

    name: str
    media_type: MediaType
    sha256: str
    text: str = field(repr=False)
    sections: tuple[Section, ...] = ()
    pieces: tuple[Piece, ...] = ()
    links: tuple[str, ...] = ()
    records: tuple[Record, ...] = ()


@dataclass(frozen=True, slots=True)
class SourceUnit:
    """A piece as a knowledge unit: what rules derive from its words and its place.

    `start` and `end` count in the source's text; `page` from 1, where there are pages.
    """

    id: str
    source: str
    text: str
    start: int
    end: int
    section: str
    path: tuple[str, ...]
    page: int | None
    kind: PieceKind
    role: Role
    topic: str
    claim: str
    procedure: str
    condition: str
    utility_acts: tuple[Act, ...]
    links: tuple[str, ...] = ()
    at: datetime | None = None
    by: str = ""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """A unit in its place: the section of the document it stands in.

    `text` is the source's text from `start` to `end`; the unit stands at `unit_start` to `unit_end`, counted in the
    whole source. `units` are all units of the section, in order.
    """

    unit: Unit
    document: str
    path: tuple[str, ...]
    text: str
    start: int
    end: int
    unit_start: int
    unit_end: int
    page: int | None
    units: tuple[str, ...]
