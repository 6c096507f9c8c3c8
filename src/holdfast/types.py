"""The frozen values that travel between the stages. Sections `C1`, `C4` … refer to the contract."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal, NamedTuple, Self, get_args, overload

import numpy as np
from numpy.typing import NDArray

JSON = Any  # a JSON value; Python's type system cannot say so recursively without pain at every use

Kind = Literal["turn", "knowledge", "summary", "authored"]
Scope = Literal["session", "user", "global"]
Author = Literal["user", "assistant", "tool", "system", "document"]
Origin = Literal["conversation", "tool", "document", "authored"]
Role = Literal[
    "Comparison",
    "Explanation",
    "Procedure",
    "Definition",
    "Evaluation",
    "Diagnostic",
    "Constraint",
    "Narrative",
    "Description",
]
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
Field = Literal["topic", "claim", "procedure", "utility_acts", "utility_note", "condition", "role"]

KINDS: tuple[Kind, ...] = get_args(Kind)
SCOPES: tuple[Scope, ...] = get_args(Scope)
AUTHORS: tuple[Author, ...] = get_args(Author)
ORIGINS: tuple[Origin, ...] = get_args(Origin)
ROLES: tuple[Role, ...] = get_args(Role)
ACTS: tuple[Act, ...] = get_args(Act)
# Scores are summed field by field in this order, always: float addition does not commute in its last bit.
FIELDS: tuple[Field, ...] = get_args(Field)


def iso(moment: datetime) -> str:
    """Write an aware time as UTC ISO 8601 with a fixed width, so that text order is time order."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def from_iso(text: str) -> datetime:
    """Read what `iso` wrote."""
    return datetime.fromisoformat(text)


# ---------------------------------------------------------------------------------------------- units


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


@dataclass(frozen=True, slots=True, kw_only=True)
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
    version: int = 1
    # Kept outside versions and hashes (C11): reading a memory does not change it.
    access_count: int = field(default=0, compare=False)

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
        row: dict[str, JSON] = {}
        for name, default in _UNIT_DEFAULTS.items():
            value = getattr(self, name)
            if value != default and not (name == self.statement_field and value == self.text):
                row[name] = _plain(value)
        return row

    @classmethod
    def from_json(cls, row: Mapping[str, JSON]) -> Self:
        """Read what `to_json` wrote."""
        values = dict(row)
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
    def statement_field(self) -> Literal["claim", "procedure"]:
        """Return which of the two statement fields this role uses (C1: never both)."""
        return "procedure" if self.role == "Procedure" else "claim"

    def said(self) -> tuple[object, ...]:
        """Return what was said, by whom and when: two units that agree in it are copies (C6)."""
        return (self.text, self.event_time, self.author, self.speaker, self.kind)


_TIMES = frozenset({"event_time", "recorded_time", "valid_from", "valid_to", "expires_at"})
_TUPLES = frozenset({"utility_acts", "parts", "supersedes", "links"})
_MISSING = object()
_UNIT_DEFAULTS: dict[str, object] = {
    f.name: f.default
    if f.default is not dataclasses.MISSING
    else ({} if f.default_factory is not dataclasses.MISSING else _MISSING)
    for f in dataclasses.fields(Unit)
}
_UNIT_DEFAULTS["user"] = None
del _UNIT_DEFAULTS["access_count"]


def _plain(value: object) -> JSON:
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


@dataclass(frozen=True, slots=True)
class AuthoredText:
    """One node of a core document (C14), with the headings above it as (ordinal, Markdown line)."""

    document: str
    position: int
    markdown: str
    headings: tuple[tuple[int, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Analysis:
    """What analysis derived from one unit: C2 terms per field (in `FIELDS` order) and anchor density (C13)."""

    terms: tuple[tuple[str, ...], ...]
    anchor_density: float


@dataclass(frozen=True, slots=True)
class Draft:
    """A unit on its way into the store, with what the store needs to decide whether it is new."""

    unit: Unit
    analysis: Analysis
    id_given: bool = False
    time_given: bool = False


Status = Literal["added", "duplicate", "updated"]


@dataclass(frozen=True, slots=True)
class Written:
    """What `remember` did with one message."""

    id: str
    status: Status
    version: int


# ------------------------------------------------------------------------------------------ questions


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
    decides what was valid. An owner key left empty on a unit means shared; one named here hides other values.
    """

    tenant: str
    user: str
    now: datetime
    reference_time: datetime
    session: str | None = None
    agent: str | None = None
    only_session: bool = False
    current_only: bool = True
    filters: Filter | None = None


@dataclass(frozen=True, slots=True)
class QueryProfile:
    """What the question asks for (C7), by tables and small rules."""

    text: str
    terms: tuple[str, ...]
    act: Act | None = None
    needed_roles: frozenset[Role] = frozenset()
    participants: tuple[str, ...] = ()
    perspective: Literal["user", "assistant"] | str | None = None  # noqa: PYI051 - a speaker's name otherwise
    borrowed: str | None = None
    # The question's vector and its embedding space, when the profile asks for meaning and there is an embedder.
    vector: NDArray[np.float32] | None = field(default=None, compare=False, repr=False)
    space: str | None = None


@dataclass(frozen=True, slots=True)
class Budget:
    """What one strategy may spend."""

    timeout_ms: float
    max_candidates: int


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


# --------------------------------------------------------------------------------------- explanations

Op = Literal["given", "sum", "product", "ratio", "minimum"]


def combine(op: Op, values: Sequence[float]) -> float:
    """Return `values` combined in their order: the one float64 function behind every score (law 12).

    Plain left-to-right arithmetic, the same that the vectorised kernels do. Python 3.12 made `sum` compensated,
    so it would differ from them in the last bit.
    """
    if op == "minimum":
        return min(values)
    if op == "ratio":
        top, bottom = values
        return top / bottom
    result = 0.0 if op == "sum" else 1.0
    for value in values:
        result = result + value if op == "sum" else result * value
    return result


class Contribution(NamedTuple):
    """One node of a score's explanation: a leaf is `given`, an inner node is combined from its parts."""

    name: str
    value: float
    op: Op = "given"
    parts: tuple[Contribution, ...] = ()

    @classmethod
    def of(cls, name: str, op: Op, *parts: Contribution) -> Contribution:
        """Return an inner node whose value is combined from its parts."""
        return cls(name, combine(op, [part.value for part in parts]), op, parts)

    def to_json(self) -> dict[str, JSON]:
        """Return the tree as JSON; Python writes floats so that they read back bit for bit."""
        node: dict[str, JSON] = {"name": self.name, "value": self.value}
        if self.parts:
            node |= {"op": self.op, "parts": [part.to_json() for part in self.parts]}
        return node

    @classmethod
    def from_json(cls, node: Mapping[str, JSON]) -> Contribution:
        """Read what `to_json` wrote."""
        parts = tuple(cls.from_json(part) for part in node.get("parts", ()))
        return cls(node["name"], node["value"], node.get("op", "given"), parts)

    def compose(self) -> float:
        """Recompute the value from the leaves; equals `value` bit for bit."""
        return self.value if self.op == "given" else combine(self.op, [part.compose() for part in self.parts])

    def find(self, name: str) -> Contribution | None:
        """Return the first node called `name`, depth first."""
        if self.name == name:
            return self
        return next((found for part in self.parts if (found := part.find(name))), None)


@dataclass(frozen=True, slots=True)
class StrategyCandidate:
    """One strategy's claim about one unit (C7). Scores ≥ 0, higher is better; normalised lies in [0, 1]."""

    unit_id: str
    store: Literal["session", "kb"]
    raw_score: float
    normalized_score: float
    unit: Unit
    notes: tuple[str, ...] = ()
    explanation: Contribution | None = None
    coverage: float = 0.0  # the share of the question's idf mass that the unit's words match (C4)


@dataclass(frozen=True, slots=True)
class RetrievalResult:
    """What one strategy returned, best first.

    `scale` is what its raw scores are divided by: normalised = min(raw / scale, 1). The lexical strategy divides by
    its best score; one whose scores mean something by themselves (a cosine) leaves it at 1.
    """

    strategy_id: str
    candidates: tuple[StrategyCandidate, ...]
    duration_ms: float = field(compare=False)  # law 11 leaves durations out of determinism
    exhausted_budget: bool = False
    scale: float = 1.0


@dataclass(frozen=True, slots=True)
class Candidate:
    """The fused claim about one unit (C6); `merged_ids` are copies that were folded into it."""

    unit: Unit
    fused: float
    rel: float
    claims: Mapping[str, StrategyCandidate]
    merged_ids: tuple[str, ...] = ()


Cut = Literal["min_score", "gap", "max"]


@dataclass(frozen=True, slots=True)
class Dropped:
    """A candidate that a cut removed: the bar it had to reach, and what it had."""

    candidate: Candidate
    cut: Cut
    needed: float
    had: float


@dataclass(frozen=True, slots=True)
class Hit:
    """One unit that `search` returns. `score` ranks; `contributions` recompose it exactly."""

    unit: Unit
    score: float
    rel: float
    rank: int
    contributions: Contribution | None = None
    merged_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Trace:
    """What every stage of one recall decided. `explain`, `why` and the harness only read it."""

    query: QueryProfile
    profile: str
    results: tuple[RetrievalResult, ...]
    candidates: tuple[Candidate, ...]
    dropped: tuple[Dropped, ...]
    reference_time: datetime
    refused: str = ""  # why the question was answered with nothing at all (C4), empty when it was not


@dataclass(frozen=True, slots=True)
class SearchResult(Sequence[Hit]):
    """The hits of one search, best first, with the trace that explains them."""

    hits: tuple[Hit, ...]
    trace: Trace

    @overload
    def __getitem__(self, index: int) -> Hit: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Hit]: ...
    def __getitem__(self, index: int | slice) -> Hit | Sequence[Hit]:
        return self.hits[index]

    def __len__(self) -> int:
        return len(self.hits)

    def __iter__(self) -> Iterator[Hit]:
        return iter(self.hits)


@dataclass(frozen=True, slots=True)
class StrategyStanding:
    """Where one strategy sees a unit: its rank (1 is best) and score, or None when it did not find it."""

    strategy_id: str
    rank: int | None
    found: int
    score: float
    matched: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Why:
    """Why a unit is, or is not, among the hits of a query.

    `distance_to_cut` is how much score was missing at the cut that dropped it.
    """

    unit: Unit
    returned: bool
    verdict: str
    standings: tuple[StrategyStanding, ...]
    rank: int | None = None
    score: float | None = None
    distance_to_cut: float | None = None
    contributions: Contribution | None = None


@dataclass(frozen=True, slots=True)
class Stats:
    """How much one owner has remembered."""

    units: int
    versions: int
    sessions: int
    by_kind: Mapping[str, int]
    by_scope: Mapping[str, int]
    earliest: datetime | None
    latest: datetime | None
    store_units: int
    store_bytes: int
    schema_version: int
    location: str
