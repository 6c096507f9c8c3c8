"""The store contract. The store is the truth; whatever it searches with is derived and can be thrown away.

A store answers two kinds of lexical question. `lexical_candidates` may use any machinery (an index in this
process, postings in a database) and only proposes; `lexical_evidence` gives the exact integers behind a score.
The score itself is computed by one kernel above the store, so that every back end ranks alike (law 11).
`holdfast.testing.StoreContract` checks an implementation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from holdfast.kernels import bm25
from holdfast.kernels.facts import Facts
from holdfast.kernels.hypervectors import Hypervector
from holdfast.types import (
    Act,
    Analysis,
    Deadline,
    Document,
    Draft,
    Erasure,
    Gate,
    Role,
    Stats,
    Unit,
    View,
    Written,
)

Analyse = Callable[[Unit], Analysis]
Order = Literal["newest", "oldest"]


@dataclass(frozen=True, slots=True)
class LexicalQuery:
    """What a store needs to propose lexical candidates (C4). `weights` are in `FIELDS` order."""

    terms: tuple[str, ...]
    weights: tuple[float, ...]
    k1: float
    b: float
    boosted_roles: frozenset[Role]
    role_boost: float


@dataclass(frozen=True, slots=True)
class Proposal:
    """Units that may be among the best, unordered; `exhausted` when time ran out before all terms were seen."""

    ids: tuple[str, ...]
    exhausted: bool = False


@dataclass(frozen=True)
class LexicalEvidence:
    """The exact integers of C4 for some units and terms.

    `tf` is units × fields × terms, `lengths` is units × fields. `unit_count`, `df` and `field_totals` cover the
    owner this call may see, whatever its filters.
    """

    ids: tuple[str, ...]
    roles: tuple[Role, ...]
    tf: NDArray[np.int64]
    lengths: NDArray[np.int64]
    unit_count: int
    df: tuple[int, ...]
    field_totals: tuple[int, ...]

    @cached_property
    def idfs(self) -> NDArray[np.float64]:
        """Return the weight of each term; one that nobody holds counts with df 0."""
        return np.array([bm25.idf(self.unit_count, df) for df in self.df], dtype=np.float64)

    @cached_property
    def coverage(self) -> list[float]:
        """Return, unit by unit, the share of the terms' idf mass that it matches in any field (C4)."""
        total = float(self.idfs.sum())
        shares = np.any(self.tf, axis=1) @ self.idfs / total if total > 0.0 else np.zeros(len(self.ids))
        return [float(share) for share in shares]

    @cached_property
    def rarities(self) -> NDArray[np.float64]:
        """Return how rare each term is: 1 where a single unit holds it, 0 where every unit does or none."""
        most = bm25.idf(self.unit_count, 1)
        return np.where(np.array(self.df) > 0, np.minimum(self.idfs / most, 1.0), 0.0)

    @cached_property
    def matched(self) -> list[list[bool]]:
        """Return, unit by unit, which terms it holds in any field."""
        found: NDArray[np.bool_] = np.any(self.tf, axis=1)
        return [[bool(yes) for yes in row] for row in found.tolist()]

    @property
    def averages(self) -> NDArray[np.float64]:
        """Return avgdl per field, over units with an empty field too; 0 for an empty store."""
        count = max(self.unit_count, 1)
        return np.array([total / count for total in self.field_totals], dtype=np.float64)


@dataclass(frozen=True, slots=True)
class DenseQuery:
    """What a store needs to propose by meaning (C10). `tier` asks for one tier's order; None for the funnel.

    `density` asks for units of one anchor density alone (C13).
    """

    space: str
    vector: NDArray[np.float32]
    tier: int | None = None
    density: float | None = None


@dataclass(frozen=True, slots=True)
class DenseEvidence:
    """The stored vectors of some units, row by row, in one embedding space."""

    ids: tuple[str, ...]
    vectors: NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class HyperQuery:
    """The hypervectors of a question (C5): its needed roles, its words, its act; None where there is none.

    `weights` are those of `HYPER_FIELDS`, so that a store proposes by the score that will be computed.
    """

    role: Hypervector | None
    text: Hypervector | None
    act: Hypervector | None
    weights: tuple[float, float, float, float] = (0.35, 0.35, 0.2, 0.1)


# The order of the columns of `HyperEvidence.distances`.
HYPER_FIELDS = ("topic", "claim", "role", "acts")
MISSING_FIELD = -1


@dataclass(frozen=True, slots=True)
class HyperEvidence:
    """In how many bits each unit differs from the question, field by field.

    `MISSING_FIELD` stands where one side is empty.
    """

    ids: tuple[str, ...]
    distances: NDArray[np.int64]
    unit_count: int


@dataclass(frozen=True, slots=True)
class UnitHypervectors:
    """The hypervectors of one unit; those of role and acts are shared by all units that have the same."""

    topic: Hypervector | None
    claim: Hypervector | None
    role: Role
    acts: tuple[Act, ...]


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


class Store(Protocol):
    """Units and everything that is searched. Every method is atomic and safe to call from several threads."""

    def put(self, drafts: Sequence[Draft], *, retry_seconds: float = 0.0) -> list[Written]:
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

    def units(self, view: View, ids: Sequence[str]) -> dict[str, Unit]:
        """Return the current versions of those `ids` the owner keys may see, whether or not they are current."""
        ...

    def scan(self, view: View, *, order: Order, limit: int | None) -> Iterator[Unit]:
        """Yield what the view may see by (event time, position, id)."""
        ...

    def history(self, view: View, unit_id: str) -> list[Unit]:
        """Return every version of one unit, oldest first; empty when the owner has no such unit."""
        ...

    def neighbours(self, view: View, ids: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """Return, for each of `ids` that is a turn of a session, the visible units right before and after it."""
        ...

    def called(self, view: View, keys: Sequence[str], most: int) -> dict[str, tuple[str, ...]]:
        """Return the visible units that each name is a title of (C12), by id; keys are those of the analysis.

        A name that leads to more than `most` of the owner's units, seen or not, leads to none of them.
        """
        ...

    def naming(self, view: View, keys: Sequence[str], most: int) -> dict[str, tuple[str, ...]]:
        """Return, likewise, the visible units that are called by each name or mention it."""
        ...

    def anchor_densities(self, view: View, ids: Sequence[str]) -> dict[str, float]:
        """Return A(d) of each of `ids` that the owner may see (C13)."""
        ...

    def visible(self, view: View, unit_id: str) -> str | None:
        """Return why the view hides a unit its owner has (superseded, expired, filtered …), or None."""
        ...

    def speakers(self, view: View) -> tuple[str, ...]:
        """Return the names that speak in what the owner may see."""
        ...

    def sessions(self, view: View) -> list[str]:
        """Return the names of the user's own sessions, in the order of the alphabet."""
        ...

    def lexical_candidates(self, view: View, query: LexicalQuery, depth: int, deadline: Deadline) -> Proposal:
        """Return at least the `depth` best visible units that hold a term, ties included."""
        ...

    def lexical_evidence(self, view: View, terms: Sequence[str], ids: Sequence[str]) -> LexicalEvidence:
        """Return the exact counts behind the score of `ids`; ids the owner cannot see are left out."""
        ...

    def space(self) -> str | None:
        """Return the embedding space the store agreed on, or None before the first vector."""
        ...

    def agree_on_space(self, space: str) -> None:
        """Let `space` be the one that is searched from now on; vectors of any other wait to be replaced."""
        ...

    def waiting(self, space: str, limit: int) -> list[Unit]:
        """Return some units, of any owner, that have no vector of their present words in `space`."""
        ...

    def waiting_count(self, space: str) -> int:
        """Return how many units wait for a vector in `space`."""
        ...

    def put_vectors(
        self,
        space: str,
        units: Sequence[Unit],
        vectors: NDArray[np.float32],
        gates: Sequence[tuple[Unit, Gate]] = (),
    ) -> int:
        """Write one vector for each unit in one transaction; return how many were still wanted.

        A unit that has changed since it was read is left waiting. `gates` are written with them: see `put_gates`.

        Raises:
            EmbeddingSpaceError: the store has agreed on another space.
        """
        ...

    def dense_candidates(self, view: View, query: DenseQuery, depth: int, deadline: Deadline) -> Proposal:
        """Return visible units that may be among the `depth` nearest."""
        ...

    def dense_evidence(self, view: View, space: str, ids: Sequence[str]) -> DenseEvidence:
        """Return the stored vectors of `ids`; units that wait for one are left out."""
        ...

    def similar(
        self, view: View, space: str, vectors: NDArray[np.float32], depth: int, kind: Literal["turn", "durable"],
        itself: Sequence[str],
    ) -> list[list[float]]:  # fmt: skip
        """Return, for each vector, the cosines of the user's own nearest turns, or durable units; best first (C17).

        Row by row the unit of `itself` is left out: nothing is compared with itself.
        """
        ...

    def facts(self, view: View) -> Facts:
        """Return what the units that the view may see state (C8)."""
        ...

    def reset_hypervectors(self) -> None:
        """Forget every hypervector that is cached (C5); what is asked for next is encoded again."""
        ...

    def hyper_candidates(self, view: View, query: HyperQuery, depth: int, deadline: Deadline) -> Proposal:
        """Return at least the `depth` visible units whose words are nearest to the question's, above the noise."""
        ...

    def hyper_evidence(self, view: View, query: HyperQuery, ids: Sequence[str]) -> HyperEvidence:
        """Return the exact distances behind the hyperdimensional score of `ids`."""
        ...

    def access_counts(self, view: View, ids: Sequence[str]) -> tuple[dict[str, int], int]:
        """Return how often contexts held each of `ids`, where they did, and the highest count of the owner (C11).

        Only the user's own units are counted: what others read of everyone's is not one user's to see.
        """
        ...

    def count_access(self, view: View, ids: Sequence[str]) -> None:
        """Count one more context that held those of `ids` that are the user's own.

        No version, no change: reading a memory does not alter it.
        """
        ...

    def put_document(self, document: Document) -> None:
        """Keep a document, or its new text; it keeps its place among the others."""
        ...

    def documents(self, view: View, *, core: bool = False, name: str | None = None) -> list[Document]:
        """Return the documents that the owner may see, in the order in which they were taken in.

        With `core`, those whose rules go into contexts; with `name`, those of that name.
        """
        ...

    def document_names(self, view: View) -> list[tuple[str, str | None, str]]:
        """Return name, user (None when it is everyone's) and path of the documents that the owner may see."""
        ...

    def remove_document(self, document: Document) -> None:
        """Keep a document no longer; its units are the caller's to end."""
        ...

    def parts(self, view: View, name: str, *, ended: bool = True) -> list[str]:
        """Return the ids of the units of a document: the user's own, else everyone's; with `ended`, past ones too."""
        ...

    def documents_of(self, view: View, ids: Sequence[str]) -> dict[str, str]:
        """Return, for each of `ids` that is part of a document, the name of that document."""
        ...

    def put_gates(self, gates: Sequence[tuple[Unit, Gate]]) -> None:
        """Keep decisions about promotion in one transaction; a promoted unit becomes durable, in its version (C17).

        A unit that has changed since it was read keeps waiting for a decision.
        """
        ...

    def cover(self, summary: Draft, sources: Sequence[Unit]) -> Written | None:
        """Write a summary and let it stand for its sources, in one transaction (C18).

        Return None, and write nothing, when one of the sources has changed since it was read, is superseded, or is
        covered already.
        """
        ...

    def supersede(self, view: View, unit_id: str, by: str, at: datetime, why: str = "") -> None:
        """Let one unit take the place of another (C19), and keep `why` where a rule saw it.

        A summary that stands for the other is withdrawn.

        Raises:
            NotFoundError: the owner does not have one of them.
            InputError: it would supersede itself in a circle.
        """
        ...

    def reinstate(self, view: View, unit_id: str, at: datetime) -> Unit:
        """Let a superseded unit be current again.

        Raises:
            NotFoundError: the owner has no such unit.
            InputError: it is a summary, whose turns have changed.
        """
        ...

    def forget(
        self, view: View, ids: Sequence[str], documents: Sequence[Document] = (), *, dry_run: bool = False,
        owner: bool = False,
    ) -> Erasure:  # fmt: skip
        """Erase units, every version and vector of them, and every summary that rests on one (C19, law 16).

        One transaction; afterwards every file of the store is searched for what is left, recorded backups too. With
        `owner`, nothing is to be left that names the user either.

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
        """Return how much the owner has; with `whole`, also how large the store of all owners is."""
        ...

    def verify(self) -> list[Problem]:
        """Check every byte and every derived structure; an empty list means that all is well."""
        ...

    def close(self) -> None:
        """Release everything; further calls raise `ClosedStoreError`."""
        ...
