"""The store contract: what a back end implements. The store is the truth; whatever it searches with is derived.

Two protocols. A `Reading` is one consistent state of what one view may see, and lives for one question: in SQLite a
read transaction with the index that belongs to it, in PostgreSQL a snapshot transaction. A `Store` makes readings and
has the writing verbs. `propose` may use any machinery and only proposes; `evidence` gives the exact numbers behind a
score, which one kernel above the store computes, so that every back end ranks alike (law 11).
`StoreContract` and `StoreLifecycleContract` of `holdfast.testing` check an implementation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, Protocol, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from holdfast.kernels.triples import Facts
from holdfast.store.queries import (
    DenseEvidence,
    DenseQuery,
    HyperEvidence,
    HyperQuery,
    LexicalEvidence,
    LexicalQuery,
    Order,
    Proposal,
    SimilarityEvidence,
    SimilarityQuery,
    StoreQuery,
    UnitHypervectors,
)
from holdfast.types import (
    Analysis,
    Deadline,
    Document,
    Draft,
    Erasure,
    Gate,
    NameCount,
    Stats,
    StoredUnit,
    Unit,
    View,
    WriteResult,
)  # fmt: skip
from holdfast.values import dataclass

Analyse = Callable[[Unit], Analysis]
# What is known of a unit without reading it. Times are microseconds since 1970; only a summary, which spans its
# sources, has a `decay_rate` (else NaN). `said` is equal for copies, `length` counts characters, `stating` has the
# bits of `Analysis`. `before` and `after` are the visible turns beside a turn, `hidden` says why a view hides it;
# `most_accessed` is the highest count of the owner's units besides all those that are asked for.
ColumnName = Literal[
    "author", "speaker", "session", "scope", "kind", "event_time", "starts", "ends", "decay_rate", "covered_by",
    "length", "said", "stating", "anchor_density", "document", "access_count", "most_accessed", "before", "after",
    "hidden",
]  # fmt: skip
Columns = Mapping[str, NDArray[Any]]
ListedKind = Literal["user", "session", "document", "agent"]


@dataclass(frozen=True, slots=True)
class Derivation:
    """How a store that searches in this process derives its index from units: injected, so that it stays pure.

    `fingerprint` names the way: an index derived in another way does not fit.
    """

    analyse: Analyse
    hypervectors: Callable[[Unit, Analysis], UnitHypervectors]
    fingerprint: str
    tokens: Callable[[str], Sequence[str]] = str.split  # the words of a symbol (C8)


@dataclass(frozen=True, slots=True)
class Problem:
    """Something `verify` found wrong, and what to do about it."""

    what: str
    remedy: str


class Reading(Protocol):
    """One consistent state, as one view may see it. Every method answers from that state."""

    view: View

    def propose(self, query: StoreQuery, depth: int, deadline: Deadline) -> Proposal:
        """Return visible units that may be among the `depth` best, in no order, ties included.

        Words: at least the best that hold a term. Vectors: what may be nearest. Hypervectors: those above the noise.
        Times, documents, statements, kinds: exactly the units asked for, but for kinds in their order; those of a
        document seen or not.
        """
        ...

    @overload
    def evidence(self, query: LexicalQuery, ids: Sequence[str]) -> LexicalEvidence: ...
    @overload
    def evidence(self, query: DenseQuery, ids: Sequence[str]) -> DenseEvidence: ...
    @overload
    def evidence(self, query: HyperQuery, ids: Sequence[str]) -> HyperEvidence: ...
    @overload
    def evidence(self, query: SimilarityQuery, ids: Sequence[str]) -> SimilarityEvidence: ...
    def evidence(
        self, query: LexicalQuery | DenseQuery | HyperQuery | SimilarityQuery, ids: Sequence[str]
    ) -> LexicalEvidence | DenseEvidence | HyperEvidence | SimilarityEvidence:
        """Return the exact numbers behind the score of `ids`; ids that the owner cannot see are left out.

        A unit that waits for its vector has no dense evidence, nor has one whose vector is not as many finite
        numbers as that of the query; who asks with an empty one gets any. Of a `SimilarityQuery` each of `ids` is the
        unit that a vector belongs to: nothing is compared with itself.
        """
        ...

    def columns(self, ids: Sequence[str], names: Sequence[ColumnName]) -> Columns:
        """Return what is known of `ids`, one row for each; a unit that the owner does not have gives empty values."""
        ...

    def units(self, ids: Sequence[str]) -> dict[str, Unit]:
        """Return those of `ids` that the owner keys may see, whether or not they are current."""
        ...

    def scan(self, *, order: Order, limit: int | None) -> Iterator[Unit]:
        """Yield what the view may see by (event time, position, id)."""
        ...

    def history(self, unit_id: str) -> list[Unit]:
        """Return every version of one unit, oldest first; empty when the owner has no such unit."""
        ...

    def find_names(self, keys: Sequence[str], most: int, *, mentioned: bool) -> dict[str, tuple[str, ...]]:
        """Return the visible units that each name is a title of (C12), by id; keys are those of the analysis.

        With `mentioned`, also those that mention it. A name that leads to more than `most` of the owner's units, seen
        or not, leads to none of them.
        """
        ...

    def facts(self) -> Facts:
        """Return what the visible units state (C8)."""
        ...

    @overload
    def names(self, kind: Literal["speaker"]) -> tuple[str, ...]: ...
    @overload
    def names(self, kind: ListedKind, limit: int | None = None) -> tuple[NameCount, ...]: ...
    def names(
        self, kind: Literal["speaker"] | ListedKind, limit: int | None = None
    ) -> tuple[str, ...] | tuple[NameCount, ...]:
        """Return who speaks in what the owner may see, by the alphabet; or what there is, newest first, then by name.

        Sessions and agents of the user's own units, the user's and everyone's documents, users of the tenant (the
        view's own first). Whatever is kept counts, also what a view hides; of a document what it says now.
        """
        ...

    def mark(self) -> str:
        """Name the state of the units that the owner may see, with their vectors: a change gives it another name."""
        ...

    def stored(self, *, whole: bool = False) -> Iterator[Document | StoredUnit]:
        """Yield all that the store holds of the user, hidden or not: documents, then units, as they were written.

        With a session in the view, its units alone; with `whole`, all that the tenant has. Paths of documents stay
        behind: they mean something on one machine only.
        """
        ...

    def documents(self, *, core: bool = False, name: str | None = None, bodies: bool = True) -> list[Document]:
        """Return the documents that the owner may see, in the order in which they were ingested.

        With `core`, those whose rules go into contexts; with `name`, those of that name; without `bodies`, their
        names alone.
        """
        ...


@dataclass(frozen=True, slots=True)
class Promotion:
    """A decision of the gate (C17): a promoted unit becomes durable, in its version.

    A unit that has changed since it was read keeps waiting for a decision.
    """

    unit: Unit
    gate: Gate


@dataclass(frozen=True, slots=True)
class Coverage:
    """A summary that is written and stands for its sources from now on (C18).

    Nothing is written when one of the sources has changed since it was read, is superseded, or is covered already.
    """

    summary: Draft
    sources: tuple[Unit, ...]


@dataclass(frozen=True, slots=True)
class Supersession:
    """One unit takes the place of another (C19); `why` where a rule saw it. A summary of the other is withdrawn."""

    view: View
    unit_id: str
    by: str
    at: datetime
    why: str = ""


@dataclass(frozen=True, slots=True)
class Reinstatement:
    """A superseded unit is current again."""

    view: View
    unit_id: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Access:
    """One more context held those of `ids` that are the user's own (C11): no version, no change."""

    view: View
    ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SpaceChange:
    """The embedding space that is searched from now on; vectors of any other wait to be replaced.

    With `if_new`, nothing changes when the store has agreed on that space before. With `dims`, stored vectors of it
    that are not so many finite numbers, or are damaged, go: their units wait again.
    """

    space: str
    if_new: bool = False
    dims: int | None = None


@dataclass(frozen=True, slots=True)
class DocumentChange:
    """A document that is kept from now on, or its new text; it keeps its place among the others."""

    document: Document


@dataclass(frozen=True, slots=True)
class DocumentRemoval:
    """A document that is kept no longer; its units are the caller's to end."""

    document: Document


@dataclass(frozen=True, slots=True)
class Restoration:
    """A unit as a store held it, with its versions and all that became of it, written as it is.

    A known unit stays, unless the given one goes on from it. Where the two have gone different ways, nothing is
    written. Vectors count when they are of the store's space.
    """

    kept: StoredUnit


Update = (
    Promotion | Coverage | Supersession | Reinstatement | Access | SpaceChange | DocumentChange | DocumentRemoval
    | Restoration
)  # fmt: skip


class Store(Protocol):
    """Units and everything that is searched. Every method is atomic and safe to call from several threads."""

    def reading(self, view: View) -> AbstractContextManager[Reading]:
        """Return one consistent state for one question; nothing may be written inside it by the same thread.

        A reading inside a reading, of whichever view, answers from the same state.
        """
        ...

    def space(self) -> str | None:
        """Return the embedding space the store agreed on, or None before the first vector."""
        ...

    def put(self, drafts: Sequence[Draft], *, retry_seconds: float = 0.0) -> list[WriteResult]:
        """Write all drafts in one durable transaction, or none of them.

        A known unit is a duplicate; a caller-given id with new content becomes a new version. A message that only
        its order tells apart is looked for among the last turns of its conversation, inside the transaction; alone,
        it repeats the last of them when that is at most `retry_seconds` old. The store gives each new turn its
        position in its conversation.

        Raises:
            NotFoundError: a draft supersedes a unit that its owner does not have.
            InputError: an id is taken by another agent's unit, or by a unit of another document.
        """
        ...

    def revise(self, view: View, unit_id: str, revise: Callable[[Unit], tuple[Unit, Analysis]]) -> Unit:
        """Replace the current version by what `revise` makes of it, in one transaction; return the new version."""
        ...

    def apply(self, marks: Sequence[Update]) -> list[WriteResult | None]:
        """Write what became of units, in one transaction; None for what says nothing, or was not written.

        Of a coverage return its summary, of a restoration the unit.

        Raises:
            NotFoundError: the owner does not have a unit that is superseded, supersedes, or is reinstated.
            InputError: a unit would supersede itself in a circle, or a withdrawn summary be reinstated.
        """
        ...

    def put_vectors(
        self, space: str, units: Sequence[Unit], vectors: NDArray[np.float32], marks: Sequence[Promotion] = ()
    ) -> int:
        """Write one vector for each unit, and marks with them, in one transaction; return how many were still wanted.

        A unit that has changed since it was read is left waiting. The vector of an earlier version is kept with it.

        Raises:
            EmbeddingSpaceError: the store has agreed on another space.
        """
        ...

    def pending(self, space: str, limit: int, after: Unit | None = None) -> list[Unit]:
        """Return the first units, of any owner, that have no vector of their present words in `space`.

        With `after`, those that were first written after it: whoever goes through all of them finds each one soon.
        """
        ...

    def forget(
        self, view: View, ids: Sequence[str], documents: Sequence[Document] = (), *, dry_run: bool = False,
        owner: bool = False, compact: bool = False, progress: Callable[[str], None] = lambda _step: None,
    ) -> Erasure:  # fmt: skip
        """Erase units, every version and vector of them, and every summary that rests on one (C19, law 16).

        One transaction; afterwards every file of the store is searched for what is left, recorded backups too. With
        `owner`, all that the user has goes, named or not, and nothing is left that names the user. With `compact` the
        store's own file is written anew as a whole and gives back its free pages. `progress` hears which step begins.

        Raises:
            NotFoundError: the owner does not have one of them; nothing is erased.
        """
        ...

    def finish_erasing(self) -> bool:
        """Go on with an erasure that a reader held up; return whether nothing is left to do."""
        ...

    def backup(self, path: Path, at: datetime) -> int:
        """Copy the store while it is in use, read the copy back, and remember where it lies; return its units.

        Raises:
            InputError: the path cannot be used.
        """
        ...

    def stats(self, view: View, *, whole: bool = False) -> Stats:
        """Return how much the owner has; with `whole`, also how large the store of all owners is, and what waits."""
        ...

    def verify(self) -> list[Problem]:
        """Check every byte and every derived structure; an empty list means that all is well."""
        ...

    def close(self) -> None:
        """Release everything; further calls raise `ClosedStoreError`."""
        ...


T = TypeVar("T")
# For what is asked outside of a question: all there is, and no time limit.
NO_LIMIT = 2**31
# Their first dimensions carry: .993 of the exact ten best of up to a million texts, or more (benchmarks/cascade.py).
CARRYING_MODELS = ("holdfast-minilm-memory",)
NO_DEADLINE = Deadline.start(lambda: 0.0, 1.0)


def read_once(store: Store, view: View, ask: Callable[[Reading], T]) -> T:
    """Ask one thing of the present state."""
    with store.reading(view) as reading:
        return ask(reading)
