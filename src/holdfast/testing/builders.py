"""Small values for tests, and a short way to ask a store what a view finds in it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import HoldfastError
from holdfast.kernels import hypervectors as hv
from holdfast.kernels import vectors
from holdfast.settings import AnalysisSettings
from holdfast.store import contract, queries
from holdfast.store.filters import parse_filter
from holdfast.text import analyse
from holdfast.types import Analysis, Deadline, Draft, Unit, View, WriteResult
from holdfast.values import dataclass

T = TypeVar("T")
Vector = NDArray[np.float32]
NOON = datetime(2026, 5, 1, 12, 0, tzinfo=UTC)
LATER = NOON + timedelta(minutes=30)
SPACE, OTHER_SPACE = "contract/4/none/1", "contract/4/none/2"
# A question, and vectors that are nearer to it from the first to the last.
EAST = np.array([1.0, 0.0, 0.0, 0.0], dtype=np.float32)
_ROWS = {"a": [0.1, 0.0, 0.0, 0.7], "b": [0.5, 0.3, 0.0, 0.4], "c": [0.9, 0.1, 0.0, 0.1]}
NEARER = {name: np.array(row, dtype=np.float32) for name, row in _ROWS.items()}
EVERYTHING = 99
analyse_default = partial(analyse, settings=AnalysisSettings())


def unit(unit_id: str, text: str, *, minutes: int = 0, **fields: Any) -> Unit:  # noqa: ANN401 - any field of a unit
    """Return a turn of user ana, said `minutes` after noon."""
    moment = NOON + timedelta(minutes=minutes)
    fields.setdefault("procedure" if fields.get("role") == "Procedure" else "claim", text)
    owner: dict[str, Any] = {"tenant": "local", "user": "ana", "scope": "user"}
    given = owner | dict.fromkeys(("event_time", "recorded_time"), moment)
    return Unit(id=unit_id, text=text, **(given | fields))


def draft(unit_id: str, text: str, **fields: Any) -> Draft:  # noqa: ANN401 - any field of a unit
    """Return a unit ready for `Store.put`, under a caller-given id."""
    return Draft(unit(unit_id, text, **fields), analyse_default, id_given=True, time_given=True)


def view(user: str = "ana", **fields: Any) -> View:  # noqa: ANN401 - any field of a view
    """Return what `user` may see an hour after noon."""
    now = NOON + timedelta(hours=1)
    given: dict[str, Any] = {"tenant": "local", "user": user, "now": now, "reference_time": now}
    return View(**(given | fields))


def no_deadline() -> Deadline:
    """Return a deadline that never expires."""
    return Deadline.start(lambda: 0.0, 1.0)


def expired_deadline() -> Deadline:
    """Return a deadline that has expired already."""
    return Deadline(lambda: 1.0, 0.0, 1.0)


def words(*terms: str) -> queries.LexicalQuery:
    """Return a question of words, with the contract's weights."""
    return queries.LexicalQuery(terms, (1.5, 1.0, 1.0, 0.8, 0.6, 0.6, 0.5), 1.2, 0.75, frozenset(), 1.3)


def sounds(*terms: str) -> queries.HyperQuery:
    """Return a question of words alone for the hypervectors."""
    return queries.HyperQuery(None, hv.ngrams(terms, positional=False), None)


def ids(found: Iterable[Unit]) -> list[str]:
    """Return the ids of units, in order."""
    return [one.id for one in found]


def raises(kind: type[HoldfastError], action: Callable[..., object], *given: object, **more: object) -> bool:
    """Return whether calling `action` raises `kind`."""
    try:
        action(*given, **more)
    except kind:
        return True
    return False


@dataclass(frozen=True, slots=True)
class Asker:
    """Somebody who asks a store, one question at a time: ana, unless it is said who and what for.

    What has the name of a verb of `Store` or `Reading` does the same in fewer words.
    """

    store: contract.Store
    view: View = field(default_factory=view)

    def by(self, user: str = "ana", **fields: Any) -> Asker:  # noqa: ANN401 - any field of a view
        """Return another who asks the same store; filters are given as a caller gives them."""
        fields |= {name: parse_filter(given) for name, given in fields.items() if name == "filters"}
        return Asker(self.store, view(user, **fields))

    def put(self, *drafts: Draft) -> list[WriteResult]:
        return self.store.put(drafts)

    def apply(self, *marks: contract.Update) -> list[WriteResult | None]:
        return self.store.apply(marks)

    def revise(self, unit_id: str, **fields: Any) -> Unit:  # noqa: ANN401 - any field of a unit
        """Give a unit other fields; new words are its claim too."""

        def change(old: Unit) -> tuple[Unit, Analysis]:
            new = old.evolve(**({"claim": fields["text"]} if "text" in fields else {}), **fields)
            return new, analyse_default(new)

        return self.store.revise(self.view, unit_id, change)

    def embed(self, vectors: Mapping[str, Vector], space: str = SPACE) -> int:
        """Write vectors for the present versions of units; return how many were wanted."""
        return self.store.put_vectors(space, [*self.units(*vectors).values()], np.array([*vectors.values()]))

    def embed_all(self, vector_of: Callable[[Unit], Vector] = lambda _: EAST) -> None:
        """Give every unit that waits, of any owner, a vector."""
        waiting = self.store.pending(SPACE, EVERYTHING)
        self.store.put_vectors(SPACE, waiting, np.array([vector_of(one) for one in waiting]))

    def look(self, ask: Callable[[contract.Reading], T]) -> T:
        return contract.read_once(self.store, self.view, ask)

    def units(self, *names: str) -> dict[str, Unit]:
        """Return units by id, in the order asked for."""
        found = self.look(lambda reading: reading.units(names))
        return {name: found[name] for name in names if name in found}

    def scan(self, order: queries.Order = "oldest", limit: int | None = None) -> list[str]:
        return self.look(lambda reading: ids(reading.scan(order=order, limit=limit)))

    def history(self, unit_id: str) -> list[Unit]:
        return self.look(lambda reading: reading.history(unit_id))

    def column(self, name: contract.ColumnName, *names: str) -> list[Any]:
        """Return one thing that is known of some units."""
        return self.look(lambda reading: reading.columns(names, (name,))[name].tolist())

    def shown(self, *names: str) -> set[str]:
        """Return which of some units are not hidden."""
        return {name for name, why in zip(names, self.column("hidden", *names), strict=True) if why is None}

    def count(self, terms: Sequence[str], *names: str) -> queries.LexicalEvidence:
        """Return the exact numbers behind a score by words."""
        return self.look(lambda reading: reading.evidence(words(*terms), names))

    def vectors(self, *names: str, space: str = SPACE) -> dict[str, Vector]:
        """Return the vectors of units by id."""
        asked = queries.DenseQuery(space, np.zeros(0, dtype=np.float32))
        found = self.look(lambda reading: reading.evidence(asked, names))
        return dict(zip(found.ids, found.vectors, strict=True))

    def propose(self, query: queries.StoreQuery, depth: int = EVERYTHING, *, late: bool = False) -> queries.Proposal:
        deadline = expired_deadline() if late else no_deadline()
        return self.look(lambda reading: reading.propose(query, depth, deadline))

    def find(self, *terms: str, depth: int = EVERYTHING) -> set[str]:
        """Return what is proposed by words."""
        return {*self.propose(words(*terms), depth).ids}

    def near(self, depth: int = EVERYTHING, space: str = SPACE) -> set[str]:
        """Return what is proposed near to the east."""
        return {*self.propose(queries.DenseQuery(space, EAST), depth).ids}

    def hear(self, *terms: str, depth: int = EVERYTHING) -> set[str]:
        """Return what is proposed by association."""
        return {*self.propose(sounds(*terms), depth).ids}


class StoreSuite(ABC):
    """Each test opens its own store in an empty folder."""

    @abstractmethod
    def open_store(self, place: Path) -> contract.Store:
        """Open or create the store that lives at `place`; twice on one place gives two handles on one store."""

    def open(self, place: Path) -> Asker:
        """Open a store and let ana ask it."""
        return Asker(self.open_store(place))


def is_along(kept: Vector, given: Vector) -> bool:
    """Return whether a stored vector has the direction of the one that was given, as half floats keep it."""
    return bool(vectors.cosines(kept[None, :], given, len(given))[0] > 1.0 - 1e-6)
