"""Reports: compactions (C18), erasures (C19), folders, and what an import or export carried or left out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from datetime import datetime
from typing import Any, Literal

from holdfast.types.units import JSON, DecisionKind, Unit
from holdfast.values import dataclass

SummaryMethod = Literal["extractive", "abstractive"]
Rung = Literal["normal", "tight", "last"]


# Called with how much is done and how much there is; and with the name of the step that begins.
Progress = Callable[[int, int], None]
StepProgress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Decision:
    """An automatic decision about a unit, and why; `overruled` when its owner said that it does not hold."""

    kind: DecisionKind
    why: str
    overruled: bool = False


@dataclass(frozen=True, slots=True)
class Summarised:
    """A summary that costs less than its turns.

    `picks` are the ids of the turns it is made of, or had to keep the essentials of. `conf_model` is the
    summariser's own confidence, None for an extractive summary. `notes` say what was tried before, and why it was
    not kept.
    """

    text: str
    method: SummaryMethod
    rung: Rung
    picks: tuple[str, ...]
    tokens_before: int
    tokens_after: int
    align: float
    cover: float
    conf_space: float
    conf_model: float | None
    confidence: float
    decay_rate: float
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Declined:
    """A cluster that no summary would make cheaper; its turns stay uncovered."""

    tokens_before: int
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Trivial:
    """A cluster of one turn: nothing to say in its place. It stays uncovered and joins the next run."""

    turn: str
    confidence: float = 1.0


Compacted = Summarised | Declined | Trivial


@dataclass(frozen=True, slots=True)
class Cluster:
    """What became of one cluster of turns: the summary's id when one stands for them.

    `changed` says that somebody else changed a turn meanwhile, so that nothing was written.
    """

    turns: tuple[str, ...]
    outcome: Compacted
    summary: str | None = None
    changed: bool = False


@dataclass(frozen=True, slots=True)
class Compaction:
    """What one run over one session did."""

    session: str
    clusters: tuple[Cluster, ...] = ()

    @property
    def made(self) -> tuple[Summarised, ...]:
        """Return the summaries that now stand for turns."""
        return tuple(
            one.outcome for one in self.clusters if one.summary is not None and isinstance(one.outcome, Summarised)
        )

    @property
    def summaries(self) -> tuple[str, ...]:
        """Return their ids."""
        return tuple(one.summary for one in self.clusters if one.summary is not None)

    @property
    def turns(self) -> int:
        """Return how many turns are covered now that were not before."""
        return sum(len(one.turns) for one in self.clusters if one.summary is not None)

    @property
    def declined(self) -> int:
        """Return how many clusters no summary would make cheaper."""
        return sum(isinstance(one.outcome, Declined) for one in self.clusters)

    @property
    def trivial(self) -> int:
        """Return how many clusters hold a single turn."""
        return sum(isinstance(one.outcome, Trivial) for one in self.clusters)

    @property
    def changed(self) -> int:
        """Return how many clusters were left because somebody changed a turn meanwhile."""
        return sum(one.changed for one in self.clusters)

    @property
    def tokens_saved(self) -> int:
        """Return how much less the summaries cost than their turns."""
        return sum(one.tokens_before - one.tokens_after for one in self.made)

    @property
    def mean_confidence(self) -> float | None:
        """Return the mean confidence of the summaries made; None when none was."""
        made = self.made
        return sum(one.confidence for one in made) / len(made) if made else None

    @property
    def method(self) -> str:
        """Return how the summaries were made: one method, `mixed`, or nothing."""
        methods = sorted({one.method for one in self.made})
        return methods[0] if len(methods) == 1 else "mixed" if methods else ""

    @property
    def notes(self) -> tuple[str, ...]:
        """Return what was tried and not kept, in plain words, each once."""
        notes = (note for one in self.clusters if not isinstance(one.outcome, Trivial) for note in one.outcome.notes)
        return tuple(dict.fromkeys(notes))


@dataclass(frozen=True, slots=True)
class Erasure:
    """What was erased, or in a dry run would be.

    `summaries` rested on one of the units and went with them; `uncovered` are turns that such a summary stood for.
    `complete` says that no file of the store (`files`) holds anything of it any more; `pending` that old bytes may be
    left, for a `reason` (readers, a full disk), and the next write or open goes on; the units are gone either way.
    `outside` names backups that are out of reach. `rewritten` says why the file was written anew, if it was.
    """

    units: Sequence[Unit]
    summaries: tuple[Unit, ...] = ()
    uncovered: tuple[str, ...] = ()
    complete: bool = False
    pending: bool = False
    reason: str = ""
    files: tuple[str, ...] = ()
    outside: tuple[str, ...] = ()
    rebuilt: tuple[str, ...] = ()
    documents: tuple[str, ...] = ()
    dry_run: bool = False
    rewritten: str = ""

    def __str__(self) -> str:
        verb = "would erase" if self.dry_run else "erased"
        left = "" if self.complete or self.dry_run else f"; old bytes may be left {self.reason}".rstrip()
        return f"{verb} {len(self.units)} units, {len(self.summaries)} summaries{left}"

    def __repr__(self) -> str:
        return f"<Erasure: {self}>"


@dataclass(frozen=True, slots=True)
class SupersededSpan:
    """A time in which a unit was superseded, ended by a reinstatement."""

    by: str
    since: datetime
    until: datetime


@dataclass(frozen=True, slots=True)
class StoredVector:
    """A vector as a store has it: of length one, as 16-bit floats, little endian."""

    space: str
    data: bytes


@dataclass(frozen=True, slots=True)
class StoredUnit:
    """A unit with all that a store holds of it.

    `versions` are all of them, oldest first; the last one is the unit as it stands, with what became of it.
    `vectors` are those of the versions, None where there is none.
    """

    versions: tuple[Unit, ...]
    vectors: tuple[StoredVector | None, ...]
    document: str | None = None
    superseded_at: datetime | None = None
    covered_at: datetime | None = None
    absences: tuple[SupersededSpan, ...] = ()

    @property
    def unit(self) -> Unit:
        """Return the unit as it stands."""
        return self.versions[-1]


@dataclass(frozen=True, slots=True)
class ClaimedUnits:
    """Units that nobody else embeds meanwhile.

    `last` is where who goes through all of them has come to, None when nothing more waits.
    """

    units: tuple[Unit, ...] = ()
    last: tuple[str, int] | None = None


@dataclass(frozen=True, slots=True)
class ExportReport:
    """What an export wrote; `digest` is the SHA-256 of its bytes, those of a last line that names it left out."""

    format: str
    units: int
    versions: int
    documents: int
    bytes: int
    digest: str


@dataclass(frozen=True, slots=True)
class SkippedEntry:
    """What an import left out for one reason: how much, and where the first ones stand in the file."""

    reason: str
    count: int
    where: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ImportReport:
    """What an import read, and what became of it: `known` was there before.

    `complete` says that the file was whole, as far as it tells. In a dry run nothing was written.
    """

    format: str
    read: int
    added: int = 0
    updated: int = 0
    known: int = 0
    documents: int = 0
    skipped: tuple[SkippedEntry, ...] = ()
    sessions: int = 0
    speakers: tuple[str, ...] = ()
    first: datetime | None = None
    last: datetime | None = None
    warnings: tuple[str, ...] = ()
    complete: bool = True
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class FolderReport:
    """What taking in a folder did, file by file; `failed` and `skipped` have the reason with each name.

    What the patterns exclude is not reported. `units` counts what its documents say now.
    """

    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    unchanged: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    failed: tuple[tuple[str, str], ...] = ()
    skipped: tuple[tuple[str, str], ...] = ()
    units: int = 0


# So many places are named for each reason, and so many reasons: a report is to be read.
_MOST_PLACES, _MOST_REASONS = 10, 50


@dataclass(frozen=True, slots=True)
class ImportedMessage:
    """One message on its way in: its fields as a host would send it, and where it stands in the file.

    `user` and `agent` where the file says whose it is. `lasting` when it was remembered for good where it was.
    """

    fields: Mapping[str, JSON]
    where: str
    session: str | None = None
    user: str | None = None
    agent: str | None = None
    lasting: bool = False


@dataclass(slots=True)
class ImportNotes:
    """Gathers what is to be told."""

    warnings: list[str] = field(default_factory=list)
    complete: bool = True
    _skipped: dict[str, tuple[int, tuple[str, ...]]] = field(default_factory=dict)

    def skip(self, reason: str, where: str) -> None:
        """Note that something was left out."""
        if reason not in self._skipped and len(self._skipped) >= _MOST_REASONS:
            reason = "other reasons"
        count, places = self._skipped.get(reason, (0, ()))
        self._skipped[reason] = (count + 1, places if len(places) >= _MOST_PLACES else (*places, where))

    def warn(self, warning: str) -> None:
        """Note what is doubtful, once."""
        if warning not in self.warnings:
            self.warnings.append(warning)

    def cut(self, warning: str) -> None:
        """Note that the file is not whole."""
        self.complete = False
        self.warn(warning)

    def skipped(self) -> tuple[SkippedEntry, ...]:
        """Return what was left out, most of it first."""
        rows = (SkippedEntry(reason, count, places) for reason, (count, places) in self._skipped.items())
        return tuple(sorted(rows, key=lambda one: -one.count))


def get_member(row: Any, name: str) -> Any:  # noqa: ANN401 - JSON
    """Return a member of an object, None when there is none."""
    return row.get(name) if isinstance(row, Mapping) else None
