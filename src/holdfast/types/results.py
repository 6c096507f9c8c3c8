"""Results: scores as trees (law 12), what strategies claim, what fusion and projection make of it, what returns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, tzinfo
from typing import Literal, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from holdfast.kernels import Bools, Floats
from holdfast.types.ranked import Candidate, RankedCandidate, Readings
from holdfast.types.units import JSON, QueryProfile, Unit, shorten
from holdfast.values import dataclass

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
        if self.op != "given":
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
class Indicator:
    """How temporal a question is: ξ ∈ [0, 1], and the groups of patterns that say so."""

    value: float
    groups: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ContextCandidate:
    """A unit of V_rest as projection sees it.

    `sim` is its relevance, `terms` what keywords are looked up in, `slots` says of each event slot whether the unit
    covers it (φ). A set of prospects holds a unit once.
    """

    unit: Unit
    sim: float
    terms: frozenset[str]
    anchor_density: float
    slots: tuple[bool, ...] = ()


@dataclass(frozen=True, slots=True)
class ProjectedCandidate:
    """A prospect that a step took in: how it came in, and the tree of the score it has there."""

    prospect: ContextCandidate
    via: str
    contributions: Contribution

    @property
    def unit(self) -> Unit:
        """Return the unit."""
        return self.prospect.unit

    @property
    def score(self) -> float:
        """Return σ ∈ [0, 1]."""
        return self.contributions.value


# In the order of the pipeline. k1, θ1, k2: passes 1 and 2. θ_hop: hops. The others: temporal selection.
ProjectionStep = Literal["k1", "θ1", "k2", "θ_hop", "θ_rec", "anchors", "k_rec", "k_cov", "θ_stop"]


@dataclass(frozen=True, slots=True)
class StepDrop:
    """A unit that a step left out: what it needed there, and what it had, in that step's own measure.

    A unit that had exactly enough lost a tie by its id. One that fell may still have come in by another way.
    """

    unit_id: str
    step: ProjectionStep
    needed: float
    had: float


@dataclass(frozen=True, slots=True)
class ProjectionQuery:
    """What projection needs to know of the question: K, t_ref, ξ, E, and max_acc over V_rest."""

    keywords: frozenset[str]
    at: datetime
    indicator: Indicator
    slots: tuple[str, ...] = ()
    max_access: int = 0


@dataclass(frozen=True, slots=True)
class Projection:
    """What is projected, in injection order, and what every step kept and left out."""

    items: tuple[ProjectedCandidate, ...]
    asked: ProjectionQuery
    active: bool
    first: tuple[str, ...]
    second: tuple[ProjectedCandidate, ...]
    hops: tuple[ProjectedCandidate, ...]
    recovered: tuple[ProjectedCandidate, ...]
    chosen: tuple[ProjectedCandidate, ...]
    fallen: tuple[StepDrop, ...]

    def falls(self, unit_id: str) -> tuple[StepDrop, ...]:
        """Return where one unit fell out, in the order of the steps."""
        return tuple(fall for fall in self.fallen if fall.unit_id == unit_id)


_COLUMNS = ("raw", "coverage", "matched", "identified", "proven", "waits")


@dataclass(frozen=True, slots=True, eq=False)
class StrategyScores:
    """What one strategy says of some units, as columns: one row for each of `ids`.

    `raw` is its score, ≥ 0, higher is better; `relative` when it means something only beside the question's best.
    `coverage` is the share of the question's idf mass that a unit's words match (C4), `matched` which terms they are,
    `identified` how far it holds the question's identifiers (NaN when there are none), `proven` whether it carries a
    proof of something that it does not state itself, `waits` whether it has not yet what the strategy compares.
    """

    ids: tuple[str, ...]
    raw: Floats
    coverage: Floats
    matched: Bools
    identified: Floats
    proven: Bools
    waits: Bools
    relative: bool = False

    @classmethod
    def of(cls, ids: Sequence[str], *, relative: bool = False, terms: int = 0) -> StrategyScores:
        """Return columns in which nothing is claimed yet; `terms` is how many the question has."""
        rows = len(ids)
        return cls(
            tuple(ids), np.zeros(rows), np.zeros(rows), np.zeros((rows, terms), dtype=np.bool_),
            np.full(rows, np.nan), np.zeros(rows, dtype=np.bool_), np.zeros(rows, dtype=np.bool_), relative,
        )  # fmt: skip

    def rows_of(self, ids: Sequence[str]) -> NDArray[np.intp]:
        """Return the rows of some of the ids."""
        if tuple(ids) == self.ids:
            return np.arange(len(self.ids))
        row_of = {unit_id: row for row, unit_id in enumerate(self.ids)}
        return np.array([row_of[unit_id] for unit_id in ids], dtype=np.intp)

    def take(self, rows: Sequence[int] | NDArray[np.intp]) -> StrategyScores:
        """Return some of the rows, in that order."""
        rows = np.asarray(rows, dtype=np.intp)
        ids = tuple(map(self.ids.__getitem__, rows.tolist()))
        columns = {name: getattr(self, name)[rows] for name in _COLUMNS}
        return StrategyScores(ids, relative=self.relative, **columns)

    def joined(self, other: StrategyScores) -> StrategyScores:
        """Return the rows of both."""
        columns = {name: np.concatenate([getattr(self, name), getattr(other, name)]) for name in _COLUMNS}
        return StrategyScores((*self.ids, *other.ids), relative=self.relative, **columns)


@dataclass(frozen=True, slots=True)
class StrategyExplanation:
    """How one strategy came to its raw score of one unit: the tree, and notes that begin with the strategy's id."""

    tree: Contribution
    notes: tuple[str, ...]
    proven: bool = False


class StrategyCandidate(NamedTuple):
    """One strategy's claim about one unit (C7); the normalised score lies in [0, 1]."""

    unit_id: str
    raw_score: float
    normalized_score: float


@dataclass(frozen=True, slots=True, eq=False)
class RetrievalResult:
    """What one strategy returned, best first.

    `scale` is what its raw scores are divided by: normalised = min(raw / scale, 1). The lexical strategy divides by
    its best score; one whose scores mean something by themselves (a cosine) leaves it at 1. `escalated` when it ran
    only because others found too little: it adds to what they found, so that a late one leaves nothing out.
    """

    strategy_id: str
    claims: StrategyScores
    duration_ms: float
    exhausted_budget: bool = False
    scale: float = 1.0
    escalated: bool = False

    def __eq__(self, other: object) -> bool:
        """Return whether both say the same; law 11 leaves durations out of determinism."""
        return isinstance(other, RetrievalResult) and self._said() == other._said()

    __hash__ = None  # type: ignore[assignment]  # a value with arrays in it is no key

    def _said(self) -> tuple[object, ...]:
        return (self.strategy_id, self.candidates, self.exhausted_budget, self.scale)

    @property
    def candidates(self) -> tuple[StrategyCandidate, ...]:
        """Return the claims one by one."""
        rows = zip(self.claims.ids, self.claims.raw.tolist(), strict=True)
        return tuple(StrategyCandidate(unit_id, raw, min(raw / self.scale, 1.0)) for unit_id, raw in rows)


Cut = Literal["min_score", "gap", "max", "turns", "summary", "session"]


@dataclass(frozen=True, slots=True)
class DroppedCandidate:
    """A candidate that a cut removed: the bar it had to reach, and what it had."""

    unit_id: str
    merged_ids: tuple[str, ...]
    cut: Cut
    needed: float
    had: float


@dataclass(frozen=True, slots=True, eq=False)
class CutRows:
    """The rows that one cut removed, as columns; `needed` is one bar for all, or one for each."""

    cut: Cut
    ids: tuple[str, ...]
    merged: Mapping[str, tuple[str, ...]]
    needed: Floats | float
    had: Floats

    def dropped(self) -> tuple[DroppedCandidate, ...]:
        """Return them one by one."""
        bars = np.broadcast_to(self.needed, self.had.shape).tolist()
        rows = zip(self.ids, bars, self.had.tolist(), strict=True)
        return tuple(DroppedCandidate(one, self.merged.get(one, ()), self.cut, bar, had) for one, bar, had in rows)


@dataclass(frozen=True, slots=True)
class Hit:
    """One unit that `search` returns. `score` ranks; `contributions` recompose it exactly.

    `score` and `rel` compare the hits of one question. `coverage` (the share of the question's words that it holds,
    rare ones counting more) and `cosine` (its nearness in meaning) are absolute, so that a caller can set a bar.
    `confidence` is how often a hit with such evidence answers, on the development data of the shipped models.
    `notes`, when explained, say what was derived by which rules. `part` is what of a long text holds most words.
    """

    unit: Unit
    score: float
    rel: float
    rank: int
    contributions: Contribution | None = None
    merged_ids: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    coverage: float = 0.0
    cosine: float | None = None  # None without an embedder, or while the unit waits for its vector
    confidence: float | None = None  # None without a cosine
    part: str | None = None

    def __repr__(self) -> str:
        return f"<Hit {self}>"

    @property
    def text(self) -> str:
        """Return the words of its unit."""
        return self.unit.text

    def line(self, zone: tzinfo = UTC) -> str:
        """Return it on one line: rank, score, day in `zone`, speaker and first words."""
        unit = self.unit
        head = f"{self.rank}. {self.score:.4f}  {unit.event_time.astimezone(zone):%Y-%m-%d}"
        return f"{head}  {unit.speaker or unit.author}: {shorten(self.part or unit.text)}"

    __str__ = line


# What an answer is worth: a hit more likely answers than not; it has only what is closest; nothing here answers.
AnswerState = Literal["found", "closest", "nothing"]
_LATE = "the search ran out of time, so that units may be missing; raise retrieval.timeout_ms"


@dataclass(frozen=True, slots=True, eq=False)
class Trace:
    """What every stage of one recall decided. `explain`, `why` and the harness only read it."""

    query: QueryProfile
    profile: str
    results: tuple[RetrievalResult, ...]
    pool: RankedCandidate | None  # None when it came over HTTP
    cuts: tuple[CutRows, ...]
    reference_time: datetime
    refused: str = ""  # why nothing here answers the question (C4); empty when something may
    projection: Projection | None = None  # what a context was filled from
    notice: str = ""  # what it lacks, as vectors of units that wait for them; of the moment, as durations are
    degraded: str = ""  # why it was not compared at all, though the profile asks for it; of the moment too
    state: AnswerState = "found"  # what the answer is worth

    def __eq__(self, other: object) -> bool:
        """Return whether both tell the same."""
        return isinstance(other, Trace) and self._told() == other._told()

    __hash__ = None  # type: ignore[assignment]  # a value with arrays in it is no key

    def _told(self) -> tuple[object, ...]:
        asked = (self.query, self.profile, self.results, self.reference_time)
        return (*asked, self.candidates, self.dropped, self.refused, self.state, self.projection)

    @property
    def candidates(self) -> tuple[Candidate, ...]:
        """Return everything that was considered, best first, before the cuts; nothing when it came over HTTP."""
        return () if self.pool is None else self.pool.candidates()

    @property
    def readings(self) -> Readings | None:
        """Return what was read together, if anything was; nothing when it came over HTTP."""
        return None if self.pool is None else self.pool.readings

    @property
    def dropped(self) -> tuple[DroppedCandidate, ...]:
        """Return what the cuts removed, cut by cut."""
        return tuple(one for rows in self.cuts for one in rows.dropped())

    @property
    def out_of_time(self) -> tuple[str, ...]:
        """Return the strategies that ran out of time: they may have missed units."""
        return tuple(result.strategy_id for result in self.results if result.exhausted_budget)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Return what makes this answer less than it could be."""
        late = any(result.exhausted_budget and not result.escalated for result in self.results)
        return tuple(filter(None, (self.degraded, self.notice, _LATE if late else "")))


@dataclass(frozen=True, slots=True)
class SearchResult(Sequence[Hit]):
    """The hits of one search, best first, with the trace that explains them."""

    hits: tuple[Hit, ...]
    trace: Trace

    def __str__(self) -> str:
        zone = self.trace.reference_time.tzinfo or UTC
        return "\n".join(hit.line(zone) for hit in self) or f"nothing found{self.refused and ': '}{self.refused}"

    def __repr__(self) -> str:
        return f"<SearchResult: {len(self)} hits, {self.state}>"

    @property
    def warnings(self) -> tuple[str, ...]:
        """Return what makes this answer less than it could be, such as a strategy that ran out of time."""
        return self.trace.warnings

    @property
    def state(self) -> AnswerState:
        """Return what the answer is worth.

        `found`: a hit more likely answers than not. `closest`: the hits are the closest, and that one answers is not
        sure. `nothing`: nothing here answers; hits, if there are any, are the closest.
        """
        return self.trace.state

    @property
    def refused(self) -> str:
        """Return why nothing here answers; empty when something may, or when nothing was found."""
        return self.trace.refused

    @property
    def degraded(self) -> str:
        """Return why the answer is by words alone, though meaning was asked for; empty when it is not."""
        return self.trace.degraded

    def with_notice(self, notice: str) -> SearchResult:
        """Return the same hits with one more thing to know about them; nothing changes when it is empty."""
        told = "; ".join(filter(None, (self.trace.notice, notice)))
        return replace(self, trace=replace(self.trace, notice=told)) if notice else self

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
class StrategyRank:
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

    `distance_to_cut` is how much score was missing at the cut that dropped it, `tokens_short` how many tokens the
    budget lacked, `degraded` why the answer is by words alone.
    """

    unit: Unit
    returned: bool
    verdict: str
    standings: tuple[StrategyRank, ...]
    rank: int | None = None
    score: float | None = None
    distance_to_cut: float | None = None
    tokens_short: int | None = None
    contributions: Contribution | None = None
    degraded: str = ""


@dataclass(frozen=True, slots=True)
class Stats:
    """How much one owner has remembered; `store_units` and `store_bytes` are of all owners, for whoever asks."""

    units: int
    versions: int
    sessions: int
    by_kind: Mapping[str, int]
    by_scope: Mapping[str, int]
    earliest: datetime | None
    latest: datetime | None
    store_units: int | None
    store_bytes: int | None
    waiting: int | None  # units without a vector of `space`; only of the whole store
    space: str | None  # the embedding space that the store has agreed on
    schema_version: int
    location: str
    staleness_seconds: float | None = None  # how old the newest of what a replica has may be; None elsewhere
    # The memory's part; a store by itself leaves it out.
    gate_threshold: float | None = None  # what promotes a turn (C17); None where `gate.policy` judges none
    abstractive_ready: bool = False  # whether a model would write summaries (C18)
    embedder: str = ""  # its name in the settings, or the class of the caller's own
