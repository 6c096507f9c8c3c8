"""Small values for tests, and a short way to ask a store what a view finds in it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import HoldfastError
from holdfast.kernels import hypervectors as hv
from holdfast.language import analyse
from holdfast.settings import AnalysisSettings
from holdfast.store.contract import (
    ColumnName,
    DenseQuery,
    HyperQuery,
    LexicalEvidence,
    LexicalQuery,
    Mark,
    Order,
    Proposal,
    Query,
    Reading,
    Store,
    look,
)  # fmt: skip
from holdfast.types import Analysis, Deadline, Draft, Unit, View, Written

Answer = TypeVar("Answer")
NOON = datetime(2026, 5, 1, 12, 0, tzinfo=UTC)
LATER = NOON + timedelta(minutes=30)
analyse_default = partial(analyse, settings=AnalysisSettings())
SPACE, OTHER_SPACE = "contract/4/none/1", "contract/4/none/2"
# A question, and vectors that are nearer to it from the first to the last.
EAST = np.array([1.0, 0.0, 0.0, 0.0], dtype=np.float32)
NEARER = {
    name: np.array(row, dtype=np.float32)
    for name, row in {"a": [0.1, 0.0, 0.0, 0.7], "b": [0.5, 0.3, 0.0, 0.4], "c": [0.9, 0.1, 0.0, 0.1]}.items()
}
EVERYTHING = 99


# ---------------------------------------------------------------------------------------------------- values


def unit(unit_id: str, text: str, *, minutes: int = 0, **fields: Any) -> Unit:  # noqa: ANN401 - any field of a unit
    """Return a turn of user ana, said `minutes` after noon."""
    moment = NOON + timedelta(minutes=minutes)
    fields.setdefault("procedure" if fields.get("role") == "Procedure" else "claim", text)
    given: dict[str, Any] = {
        "tenant": "local", "user": "ana", "scope": "user", "event_time": moment, "recorded_time": moment,
    }  # fmt: skip
    return Unit(id=unit_id, text=text, **(given | fields))


def draft_of(full: Unit) -> Draft:
    """Return a unit ready for `Store.put`, under a caller-given id."""
    return Draft(full, analyse_default, id_given=True, time_given=True)


def draft(unit_id: str, text: str, **fields: Any) -> Draft:  # noqa: ANN401 - any field of a unit
    """Return a draft of what `unit` makes of this."""
    return draft_of(unit(unit_id, text, **fields))


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


def words(*terms: str) -> LexicalQuery:
    """Return a question of words, with the contract's weights."""
    return LexicalQuery(terms, (1.5, 1.0, 1.0, 0.8, 0.6, 0.6, 0.5), 1.2, 0.75, frozenset(), 1.3)


def sounds(*terms: str) -> HyperQuery:
    """Return a question of words alone for the hypervectors."""
    return HyperQuery(None, hv.ngrams(terms, positional=False), None)


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


# ---------------------------------------------------------------------------------------------------- asking


@dataclass(frozen=True, slots=True)
class Asker:
    """Somebody who asks a store, with short words: ana, unless it is said who and what for."""

    store: Store
    view: View = field(default_factory=view)

    def by(self, user: str = "ana", **fields: Any) -> Asker:  # noqa: ANN401 - any field of a view
        """Return another who asks the same store."""
        return Asker(self.store, view(user, **fields))

    def put(self, *drafts: Draft) -> list[Written]:
        """Write units."""
        return self.store.put(drafts)

    def mark(self, *marks: Mark) -> list[Written | None]:
        """Write what became of units."""
        return self.store.mark(marks)

    def revise(self, unit_id: str, **fields: Any) -> Unit:  # noqa: ANN401 - any field of a unit
        """Give a unit other fields."""
        return self.store.revise(self.view, unit_id, partial(_change, fields=fields))

    def embed(self, vectors: Mapping[str, NDArray[np.float32]], space: str = SPACE) -> int:
        """Write vectors for the present versions of units; return how many were wanted."""
        found = self.units(*vectors)
        return self.store.put_vectors(space, [found[name] for name in vectors], np.array([*vectors.values()]))

    def embed_all(self) -> None:
        """Give every unit that waits, of any owner, the same vector."""
        waiting = self.store.waiting(SPACE, EVERYTHING)
        self.store.put_vectors(SPACE, waiting, np.array([EAST] * len(waiting)))

    def look(self, ask: Callable[[Reading], Answer]) -> Answer:
        """Ask one thing of the present state."""
        return look(self.store, self.view, ask)

    def units(self, *names: str) -> dict[str, Unit]:
        """Return units by id, in the order asked for."""
        found = self.look(lambda reading: reading.units(names))
        return {name: found[name] for name in names if name in found}

    def scan(self, order: Order = "oldest", limit: int | None = None) -> list[str]:
        """Return what there is to see, in order."""
        return self.look(lambda reading: ids(reading.scan(order=order, limit=limit)))

    def history(self, unit_id: str) -> list[Unit]:
        """Return every version of a unit."""
        return self.look(lambda reading: reading.history(unit_id))

    def column(self, name: ColumnName, *names: str) -> list[Any]:
        """Return one thing that is known of some units."""
        return self.look(lambda reading: reading.columns(names, (name,))[name].tolist())

    def count(self, terms: Sequence[str], *names: str) -> LexicalEvidence:
        """Return the exact numbers behind a score by words."""
        return self.look(lambda reading: reading.evidence(words(*terms), names))

    def vectors(self, *names: str, space: str = SPACE) -> dict[str, NDArray[np.float32]]:
        """Return the vectors of units by id."""
        found = self.look(lambda reading: reading.evidence(DenseQuery(space, EAST), names))
        return dict(zip(found.ids, found.vectors, strict=True))

    def propose(self, query: Query, depth: int = EVERYTHING, deadline: Deadline | None = None) -> Proposal:
        """Return what the store proposes, without a time limit unless one is given."""
        return self.look(lambda reading: reading.propose(query, depth, deadline or no_deadline()))

    def find(self, *terms: str, depth: int = EVERYTHING) -> set[str]:
        """Return what is proposed by words."""
        return {*self.propose(words(*terms), depth).ids}

    def near(self, depth: int = EVERYTHING, space: str = SPACE) -> set[str]:
        """Return what is proposed near to the east."""
        return {*self.propose(DenseQuery(space, EAST), depth).ids}

    def hear(self, *terms: str, depth: int = EVERYTHING) -> set[str]:
        """Return what is proposed by association."""
        return {*self.propose(sounds(*terms), depth).ids}


def _change(old: Unit, fields: dict[str, Any]) -> tuple[Unit, Analysis]:
    """Return a unit with other fields; new words are its claim too."""
    new = old.evolve(**({"claim": fields["text"]} if "text" in fields else {}), **fields)
    return new, analyse_default(new)


class StoreSuite(ABC):
    """Each test opens its own store in an empty folder."""

    @abstractmethod
    def open_store(self, place: Path) -> Store:
        """Open or create the store that lives at `place`; twice on one place gives two handles on one store."""

    def open(self, place: Path) -> Asker:
        """Open a store and let ana ask it."""
        return Asker(self.open_store(place))
