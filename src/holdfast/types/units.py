"""Units: what is remembered (C1), and what happened to it since; and questions: what one call may see and ask."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import string
from collections.abc import Callable, Mapping
from dataclasses import field
from datetime import UTC, datetime, tzinfo
from operator import attrgetter
from typing import Any, Literal, Self, get_args

import numpy as np
from numpy.typing import NDArray

from holdfast.values import dataclass

JSON = Any  # a JSON value; Python's type system cannot say so recursively without pain at every use
# What a terminal, a viewer or a model may obey instead of showing it: control characters but tab and line ends,
# separators of lines and paragraphs, what turns the direction of text around, annotation marks and invisible tags.
# Joiners and direction marks stay: scripts and emoji are written with them. The inside of a character class.
CONTROLS = r"\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u206f\ufff9-\ufffb\U000e0000-\U000e007f"
Kind = Literal["turn", "knowledge", "summary", "authored"]
Scope = Literal["session", "user", "global"]
Author = Literal["user", "assistant", "tool", "system", "document"]
Origin = Literal["conversation", "tool", "document", "authored"]
Role = Literal[
    "Comparison", "Explanation", "Procedure", "Definition", "Evaluation", "Diagnostic", "Constraint", "Narrative",
    "Description",
]  # fmt: skip
Act = Literal[
    "compare",
    "explain",
    "recommend",
    "diagnose",
    "implement",
    "verify",
    "define",
    "evaluate",
    "identify",
    "describe",
]
Stance = Literal["now", "then"]  # fmt: skip
# What is decided about a unit without anybody asking: a later turn replaces it, what it asks of the assistant stands
# for good, a later turn says something else of the same.
DecisionKind = Literal["superseded", "standing", "question", "earlier"]
Field = Literal["topic", "claim", "procedure", "utility_acts", "utility_note", "condition", "role"]
_OF_AGENT = "agent:"
KINDS: tuple[Kind, ...] = get_args(Kind)
DECISIONS: tuple[DecisionKind, ...] = get_args(DecisionKind)
SCOPES: tuple[Scope, ...] = get_args(Scope)
AUTHORS: tuple[Author, ...] = get_args(Author)
ORIGINS: tuple[Origin, ...] = get_args(Origin)
ROLES: tuple[Role, ...] = get_args(Role)
ACTS: tuple[Act, ...] = get_args(Act)
# Scores are summed field by field in this order, always: float addition does not commute in its last bit.
FIELDS: tuple[Field, ...] = get_args(Field)


def iso(moment: datetime) -> str:
    """Write an aware time as UTC ISO 8601 with a fixed width, so that text order is time order."""
    return f"{moment.astimezone(UTC).isoformat(timespec='microseconds')[:-6]}Z"


def from_iso(text: str) -> datetime:
    """Read what `iso` wrote."""
    return datetime.fromisoformat(text)


def shorten(text: str, most: int = 80) -> str:
    """Return the first words of a text on one line of at most so many characters."""
    said = " ".join(text.split())
    return said if len(said) <= most else f"{said[: most - 1].rstrip()}…"


@dataclass(frozen=True, slots=True)
class Fact:
    """A statement as a triple (C8); all of it or none of it."""

    subject: str
    relation: str
    object: str
    confidence: float = 1.0


@dataclass(frozen=True, slots=True)
class Lineage:
    """What a summary carries about where it came from (C18)."""

    sources: tuple[str, ...]
    method: Literal["extractive", "abstractive"]
    confidence: float
    decay_rate: float
    align: float
    cover: float
    starts: datetime
    ends: datetime


@dataclass(frozen=True, slots=True)
class Gate:
    """Whether a turn becomes durable, and every signal behind it; all numbers lie in [0, 1]."""

    promoted: bool
    reason: str
    score: float  # G
    conversational: float  # Gconv
    technical: float  # Gtech
    novelty: float  # H
    repetition: float  # R
    frequency: float  # F
    saturation: float  # S
    technical_density: float  # T
    statement: float  # D_nl
    specificity: float  # P
    action: float  # A
    structure: float  # D_tech

    def to_json(self) -> dict[str, Any]:
        """Return the decision as JSON; Python writes floats so that they read back bit for bit."""
        return {name: getattr(self, name) for name in self.__slots__}

    @classmethod
    def from_json(cls, node: Mapping[str, Any]) -> Self:
        """Read what `to_json` wrote."""
        return cls(**node)


@dataclass(frozen=True, slots=True, kw_only=True, weakref_slot=True)
class Unit:
    """One remembered thing (C1). Never changed in place: a change is a new version of the same id."""

    id: str
    text: str
    tenant: str
    user: str | None
    scope: Scope
    event_time: datetime
    recorded_time: datetime
    kind: Kind = "turn"
    session: str | None = None
    agent: str | None = None
    role: Role = "Narrative"
    topic: str = ""
    claim: str = ""
    procedure: str = ""
    condition: str = ""
    utility_acts: tuple[Act, ...] = ()
    utility_note: str = ""
    parts: tuple[JSON, ...] = field(default=(), hash=False)
    author: Author = "user"
    speaker: str = ""
    message_id: str | None = None
    bundle_id: str | None = None
    position: int = 0
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    supersedes: tuple[str, ...] = ()
    expires_at: datetime | None = None
    pinned: bool = False
    links: tuple[str, ...] = ()
    fact: Fact | None = None
    authority: float = 0.0
    origin: Origin = "conversation"
    metadata: Mapping[str, JSON] = field(default_factory=dict, hash=False)
    lineage: Lineage | None = None
    # Automatic decisions about it that its owner says do not hold.
    overruled: tuple[DecisionKind, ...] = ()
    version: int = 1
    # Kept outside versions and hashes: what happened to the unit since, not what it says (C11, C17–C19).
    access_count: int = field(default=0, compare=False)
    superseded_by: str | None = field(default=None, compare=False)
    superseded_why: str = field(default="", compare=False)
    covered_by: str | None = field(default=None, compare=False)
    gate: Gate | None = field(default=None, compare=False)

    def evolve(self, **changes: Any) -> Self:  # noqa: ANN401 - the field types are checked by the caller's stage
        """Return a copy with `changes`."""
        return dataclasses.replace(self, **changes)

    def field_text(self, name: Field) -> str:
        """Return the words of one indexed field."""
        value = getattr(self, name)
        return " ".join(value) if isinstance(value, tuple) else str(value)

    def to_json(self) -> dict[str, JSON]:
        """Return the unit as a JSON object.

        What can be read back without being written is left out: fields at their default, and the one of
        claim and procedure that repeats the text.
        """
        given = zip(_UNIT_DEFAULTS.items(), _values_of(self), strict=True)
        row = {name: _plain(value) for (name, default), value in given if value != default}
        if row.get(self.statement_field) == self.text:
            del row[self.statement_field]
        return row

    @classmethod
    def from_json(cls, row: Mapping[str, JSON], **marks: Any) -> Self:  # noqa: ANN401 - fields outside versions
        """Read what `to_json` wrote; `marks` are what happened to the unit since."""
        values = {**row, **marks}
        for name in _TIMES & values.keys():
            values[name] = from_iso(values[name])
        for name in _TUPLES & values.keys():
            values[name] = tuple(values[name])
        if "fact" in values:
            values["fact"] = Fact(**values["fact"])
        if "lineage" in values:
            lineage = dict(values["lineage"])
            for name in ("starts", "ends"):
                lineage[name] = from_iso(lineage[name])
            values["lineage"] = Lineage(**{**lineage, "sources": tuple(lineage["sources"])})
        if "claim" not in values and "procedure" not in values:
            values["procedure" if values.get("role") == "Procedure" else "claim"] = values["text"]
        return cls(**{"user": None, **values})

    @property
    def moment(self) -> tuple[datetime, int, str]:
        """Return its place in the order of what was said."""
        return (self.event_time, self.position, self.id)

    @property
    def statement_field(self) -> Literal["claim", "procedure"]:
        """Return which of the two statement fields this role uses (C1: never both)."""
        return "procedure" if self.role == "Procedure" else "claim"

    def said(self) -> tuple[object, ...]:
        """Return what was said, by whom and when: two units that agree in it are copies (C6)."""
        return (self.text, self.event_time, self.author, self.speaker, self.kind)


_TIMES = frozenset({"event_time", "recorded_time", "valid_from", "valid_to", "expires_at"})
_TUPLES = frozenset({"utility_acts", "parts", "supersedes", "links", "overruled"})
_MISSING = object()
_UNIT_DEFAULTS: dict[str, object] = {
    f.name: f.default
    if f.default is not dataclasses.MISSING
    else ({} if f.default_factory is not dataclasses.MISSING else _MISSING)
    for f in dataclasses.fields(Unit)
    if f.compare
}
_UNIT_DEFAULTS["user"] = None
_values_of = attrgetter(*_UNIT_DEFAULTS)


@dataclass(frozen=True, slots=True)
class Condition:
    """One comparison of a filter: a dotted path on metadata, or the name of a unit field."""

    on: Literal["metadata", "field"]
    path: tuple[str, ...]
    op: Literal["eq", "ne", "in", "gt", "gte", "lt", "lte", "contains"]
    value: JSON


@dataclass(frozen=True, slots=True)
class Junction:
    """A boolean combination of filters."""

    op: Literal["and", "or", "not"]
    parts: tuple[Filter, ...]


Filter = Condition | Junction


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What one call may see (C1): its owner keys, its filters, and the moments it looks from.

    `now` decides what has expired; `reference_time` is the moment the question is asked about (C9's t_ref) and
    decides what was valid; `as_of` shows what had been recorded by then (C19). An owner key left empty on a unit
    means shared; one named here hides other values. `hide_covered` leaves a turn to the summary that covers it.
    `zone` is the caller's clock, which `reference_time` is told by; None when nobody named one, and UTC is meant.
    """

    tenant: str
    user: str
    now: datetime
    reference_time: datetime
    session: str | None = None
    agent: str | None = None
    only_session: bool = False
    current_only: bool = True
    as_of: datetime | None = None
    hide_covered: bool = False
    filters: Filter | None = None
    zone: tzinfo | None = None

    @classmethod
    def of_owner(cls, unit: Unit) -> View:
        """Return what the owner of a unit may see, at the moment it was recorded."""
        at = unit.recorded_time
        return cls(tenant=unit.tenant, user=unit.user or "", agent=unit.agent, now=at, reference_time=at)


@dataclass(frozen=True, slots=True)
class QueryProfile:
    """What the question asks for (C7), by tables and small rules."""

    text: str
    terms: tuple[str, ...]
    act: Act | None = None
    needed_roles: frozenset[Role] = frozenset()
    participants: tuple[str, ...] = ()
    perspective: Literal["user", "assistant"] | str | None = None  # noqa: PYI051 - a speaker's name otherwise
    stance: Stance | None = None  # whether it asks for what holds now, or for what held before and how it went
    borrowed: str | None = None  # of a short follow-up: the user's message before it
    continues: bool = False  # whether it goes on with something: "what's next?" at the beginning of a session
    summary: bool = False  # whether it asks for all that was said on a topic, by whomever
    identifiers: tuple[str, ...] = ()  # those of `terms` that name one thing exactly: codes, paths, quoted words
    years: tuple[str, ...] = ()  # those of `terms` that are years
    # The time that the question names, start and end, and whether there is nothing else that it asks for.
    time_range: tuple[datetime, datetime] | None = None
    only_time: bool = False
    time_terms: tuple[str, ...] = ()  # those of `terms` that only name that time
    # The question's vector and its embedding space, when the profile asks for meaning and there is an embedder.
    vector: NDArray[np.float32] | None = field(default=None, compare=False, repr=False)
    space: str | None = None


@dataclass(frozen=True, slots=True)
class Deadline:
    """A time limit that is asked, so that no stage reads a clock. `clock` counts seconds."""

    clock: Callable[[], float]
    started: float
    timeout_ms: float

    @classmethod
    def start(cls, clock: Callable[[], float], timeout_ms: float) -> Deadline:
        """Begin to count now."""
        return cls(clock, clock(), timeout_ms)

    def elapsed_ms(self) -> float:
        """Return the milliseconds since the start."""
        return (self.clock() - self.started) * 1000.0

    def expired(self) -> bool:
        """Return whether the time has run out."""
        return self.elapsed_ms() >= self.timeout_ms


def _plain(value: object) -> JSON:
    if isinstance(value, str):  # most are
        return value
    if isinstance(value, datetime):
        return iso(value)
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if isinstance(value, (Fact, Lineage)):
        return {f.name: _plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    return value


def digest(*parts: object) -> str:
    """Return a short stable hash of `parts`: 80 bits, so that a billion units collide with p < 1e-6."""
    text = json.dumps(parts, ensure_ascii=True, separators=(",", ":"))
    return hashlib.blake2b(text.encode("ascii"), digest_size=10).hexdigest()


# Stands between a document's name and the digest of a piece of it. Other knowledge has no `p`, nor have the pieces
# that were cut by versions before pieces were joined: these are made anew when the document is ingested again.
_PIECE_MARK = "#p"
_DIGEST_CHARS = 20


def piece_id(document: str, said: str) -> str:
    """Return the id of what a document says as a piece, by a digest of it."""
    return f"{document}{_PIECE_MARK}{said}"


def is_piece(unit_id: str) -> bool:
    """Return whether an id is that of a document's piece, as they are cut now."""
    said = unit_id.rpartition(_PIECE_MARK)[2]
    return _PIECE_MARK in unit_id and len(said) == _DIGEST_CHARS and set(said) <= set(string.hexdigits)


def name_for_agent(agent: str | None, name: str) -> str:
    """Return the name of a document that one agent alone sees: other agents of its user have rules of their own."""
    return name if agent is None else f"{_OF_AGENT}{agent}/{name}"


@dataclass(frozen=True, slots=True)
class Document:
    """A document as it was last read; the rules of a `core` one go into every context (C14).

    `user` is None when it is shared. `here` when its path was given to this store in this place: a store that
    was moved or came from elsewhere names files of another machine.
    """

    tenant: str
    user: str | None
    name: str
    body: bytes
    path: str = ""
    core: bool = True
    here: bool = True

    @property
    def agent(self) -> str | None:
        """Return whose it is when it is of one agent alone; see `name_for_agent`."""
        head, slash, _ = self.name.partition("/")
        return head.removeprefix(_OF_AGENT) if slash and head.startswith(_OF_AGENT) else None

    def is_for(self, agent: str | None) -> bool:
        """Return whether an agent may see it; without an agent, all are seen."""
        return agent is None or self.agent in (agent, None)


@dataclass(frozen=True, slots=True)
class AuthoredText:
    """One node of a core document (C14), with the headings above it as (ordinal, Markdown line)."""

    document: str
    position: int
    markdown: str
    headings: tuple[tuple[int, str], ...] = ()


# What a unit states that can be listed, and that it states nothing, as bits.
FACTS, INSTRUCTIONS, QUESTION = 1, 2, 4


@dataclass(frozen=True, slots=True)
class Analysis:
    """What analysis derived from one unit: C2 terms per field (in `FIELDS` order) and anchor density (C13).

    `titles` are the keys of what the unit is called, `mentions` those of the names in its text (C12).
    """

    terms: tuple[tuple[str, ...], ...]
    anchor_density: float
    titles: tuple[str, ...] = ()
    mentions: tuple[str, ...] = ()
    facts: tuple[Fact, ...] = ()  # what it states (C8), with symbols at both ends
    stating: int = 0  # `FACTS` and `INSTRUCTIONS`, or `QUESTION`, or nothing that is known


@dataclass(frozen=True, slots=True)
class Draft:
    """A unit on its way into the store, with what the store needs to decide whether it is new.

    `naming` is that of a message with neither id nor time: the id of the k-th message of these words. Its place in
    its conversation says whether it is new. `document` names the document that the unit is part of. Only what is
    new is analysed, so that a host that sends its whole history each time pays for its last message alone.
    """

    unit: Unit
    analyse: Callable[[Unit], Analysis]
    id_given: bool = False
    time_given: bool = False
    naming: Callable[[int], str] | None = None
    document: str | None = None


Status = Literal["added", "duplicate", "updated"]


@dataclass(frozen=True, slots=True)
class WriteResult:
    """What `remember` did with one message.

    `promoted` when the gate made it durable; `superseded` are earlier units that it plainly replaces. `waits` when
    the embedder fails: the unit is found by its words until it has a vector, and the gate has not decided yet.
    """

    id: str
    status: Status
    version: int
    promoted: bool = False
    superseded: tuple[str, ...] = ()
    waits: bool = False


@dataclass(frozen=True, slots=True)
class NameCount:
    """A user, a session, a document or an agent: how many units it has, and from when to when.

    `title` is what the conversation of a session is called (`conversation` in the metadata of its first turn), or its
    first words. A document is `core` when its rules go into every context, and `everyones` when all users of the
    tenant see it.
    """

    name: str
    units: int
    first: datetime | None
    last: datetime | None
    title: str = ""
    core: bool = False
    everyones: bool = False
