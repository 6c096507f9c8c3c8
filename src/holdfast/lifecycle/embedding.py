"""The embedder of one memory: loaded when first needed, agreed on with the store, and catching up.

Units are committed before they are embedded. Those that have no vector yet (after a crash, while an endpoint fails,
under a new embedder) are found by the other strategies, and completed here: a few at once, many in the background.
"""

from __future__ import annotations

import contextlib
import logging
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import field, replace
from typing import Protocol, runtime_checkable

from holdfast.errors import EmbedderError, EmbeddingSpaceError, HoldfastError, StoreError
from holdfast.lifecycle.gate import judge_by_words, judge_units
from holdfast.models import build_embedder
from holdfast.models.embedder import CheckedEmbedder, Embedder, check_vectors
from holdfast.settings import EmbeddingSettings, GateSettings
from holdfast.store.contract import Promotion, SpaceChange, Store
from holdfast.text.words import regex
from holdfast.types import Gate, Stats, Unit, is_piece
from holdfast.types.outcomes import ClaimedUnits, Progress
from holdfast.values import dataclass

log = logging.getLogger("holdfast")
# As many as are embedded within about a second: nobody minds that at the first question after a crash.
_AT_ONCE = 200
# While more of the units wait, those that have a vector crowd out the others: recall@10 of questions over chats:
# .83 when none waits, .75 when a tenth does, .70 when a quarter does, and .71 by words alone.
# Fewer than are embedded at once do not count: each process knows how many waited when it last looked, and answers
# from one store must not differ by that (law 11).
_TOO_MANY_WAIT = 0.15
# An embedder that takes seconds to fail would make every question wait; one that fails at once is asked each time.
_SLOW_FAILURE_S = 1.0
# How long an embedder that was slow to fail is left alone, and what waits for vectors is not tried again: at first,
# and at most. Each further failure doubles it.
_REST_S, _RETRY_S, _LONGEST_REST_S = 60.0, 1.0, 600.0


class BackOff:
    """When what failed may be tried again: the longer it goes on failing, the more seldom."""

    def __init__(self, clock: Callable[[], float], first: float) -> None:
        self._clock, self._first = clock, first
        self._pause, self._until = 0.0, 0.0

    def fail(self) -> float:
        """Note a failure, and return for how many seconds nothing is tried; long after the last it is the first."""
        again = self._pause > 0.0 and self._clock() <= self._until + self._pause
        self._pause = min(2.0 * self._pause, _LONGEST_REST_S) if again else self._first
        self._until = self._clock() + self._pause
        return self._pause

    def succeed(self) -> None:
        """Note that it works again."""
        self._pause, self._until = 0.0, 0.0

    def is_due(self) -> bool:
        """Return whether it may be tried now."""
        return not self._pause or self._clock() >= self._until


class StoreEmbedder:
    """One memory's embedder. Safe to share between threads.

    A store holds vectors of one space. An embedder of a space that it never had takes over by itself, once; one whose
    space it had before does not (somebody changed it), so that two processes cannot undo each other's work for ever.
    """

    def __init__(
        self, store: Store, settings: EmbeddingSettings, gate: GateSettings, given: Embedder | None,
        count: Callable[[], Stats], clock: Callable[[], float],
    ) -> None:  # fmt: skip
        self._store = store
        self._gate = gate
        self._settings = settings
        self._given = given
        self._count = count
        self._clock = clock
        self._failure, self._rest = "", BackOff(clock, _REST_S)  # how it failed last, and when it is asked again
        self._retry = BackOff(clock, _RETRY_S)
        self._lock = threading.Lock()
        self._ready: Embedder | None = None
        self._agreed: str | None = None  # the store's space when we last looked
        self._left, self._units = 0, 0  # how many waited when many were found to, less those done since; of how many
        self._stop = threading.Event()
        self._behind = threading.Event()  # something that was kept here waits for its vector
        self._counted = True  # whether `_left` knows of it
        self._worker: threading.Thread | None = None

    def embedder(self) -> Embedder | None:
        """Return the embedder, or None when none is wanted. The store compares its vectors with those of its space.

        Raises:
            EmbedderError: it cannot be loaded or reached.
        """
        if self._given is None and self._settings.embedder == "none":
            return None
        with self._lock:
            loaded = self._ready or self._load()
            agreed = self._store.space() or loaded.space
            if agreed != self._agreed:  # at first, and when another process has changed it
                if agreed != loaded.space:
                    self._store.apply([SpaceChange(loaded.space, if_new=True)])
                    agreed = self._store.space() or loaded.space
                if agreed == loaded.space:
                    self._catch_up(loaded, self._stop.is_set)
                self._ready, self._agreed = loaded, agreed
            return loaded

    def matching(self) -> Embedder | None:
        """Return the embedder whose vectors the store takes, or None when none is wanted.

        Raises:
            EmbedderError: it cannot be loaded or reached.
            EmbeddingSpaceError: the store's vectors are of another space.
        """
        loaded = self.embedder()
        if loaded is not None:
            self._refuse_other(loaded)
        return loaded

    def required(self, why: str) -> Embedder:
        """Return the embedder for what cannot be done without one; see `matching`."""
        loaded = self.matching()
        if loaded is None:
            raise EmbedderError(f"{why}; set embedding.embedder")
        return loaded

    def _refuse_other(self, loaded: Embedder) -> None:
        if self._agreed != loaded.space:
            raise EmbeddingSpaceError(
                f"the store's vectors are of {self._agreed}, the settings name {loaded.space}, and the two cannot be "
                "compared; run `holdfast reembed`, or set embedding.embedder back"
            )

    def complete(self, stats: Stats, *, abstractive_ready: bool) -> Stats:
        """Return the store's counts with what decides about turns, summaries and vectors here."""
        name = self._settings.embedder if self._given is None else type(self._given).__qualname__
        least = self._gate.threshold if self._gate.policy == "gate" else None
        return replace(stats, gate_threshold=least, abstractive_ready=abstractive_ready, embedder=name)

    def check_ready(self, strict: bool) -> tuple[bool, str]:  # noqa: FBT001 - see `make_question`
        """Return whether questions can be answered by meaning now, and what a caller has to know about that.

        Raises:
            EmbedderError: they cannot, and the caller is strict.
        """
        try:
            loaded = self.matching() if strict else self._rested()
            if loaded is not None:
                self._mend(loaded)
        except EmbedderError as error:
            if strict:
                raise
            return False, f"embedder unavailable; lexical results only: {error}"
        if loaded is None or self._left <= 0:
            return loaded is not None, ""
        usable = self._left <= max(_AT_ONCE, _TOO_MANY_WAIT * self._units)
        who = "they are found lexically only" if usable else "results are lexical only until fewer are"
        waiting = f"vectors of {loaded.space} are pending for {self._left:,} of {self._units:,} units"
        why = f" ({self._failure})" if self._behind.is_set() and self._failure else ""
        told = f"{waiting}{why}; {who}; `holdfast reembed` makes all of them now"
        if strict and not usable:
            raise EmbedderError(told)
        return usable, told

    def pause(self, error: EmbedderError, seconds: float) -> None:
        """Let the embedder rest for a while, if others waited long for it to fail."""
        self._failure = str(error)
        if seconds > _SLOW_FAILURE_S:
            log.warning("there is nothing but words for %d seconds: %s", self._rest.fail(), error)

    def _rested(self) -> Embedder | None:
        """See `matching`; while the embedder rests, it is not asked."""
        if not self._rest.is_due():
            raise EmbedderError(self._failure)
        began = self._clock()
        try:
            return self.matching()
        except EmbedderError as error:
            self.pause(error, self._clock() - began)
            raise

    def load(self) -> None:
        """Load the embedder that is wanted; see `embedder`, and `_rested`."""
        with contextlib.suppress(EmbeddingSpaceError):  # it is loaded
            self._rested()

    def indexing(self) -> EmbeddingPlan:
        """Return how units that are written now are embedded and judged.

        Words are kept, and wait for vectors, while the embedder cannot be loaded or reached or the store has another
        embedder's vectors. What was left behind is done first, now that it may work again.
        """
        try:
            embedder = self._rested()
            if embedder is not None:
                self._mend(embedder)
            return self._plan(embedder)
        except EmbedderError as error:
            log.warning("the text is stored; vectors are pending: %s", error)
            self._fall_behind(error, 0.0)
            return self._plan(None, awaited=True)

    def _plan(self, embedder: Embedder | None, *, awaited: bool = False) -> EmbeddingPlan:
        return EmbeddingPlan(embedder, self._gate, awaited, self._fall_behind, self._rest.is_due, self._clock)

    def _fall_behind(self, error: HoldfastError, seconds: float) -> None:
        """Note that units were kept and wait for their vectors or the gate."""
        self._counted = False
        self._behind.set()
        if isinstance(error, EmbedderError):
            self.pause(error, seconds)

    def _mend(self, loaded: Embedder) -> None:
        """Embed what was left behind, if it is time to try again, for about a second; else know how much it is."""
        if not self._behind.is_set() or self._agreed != loaded.space:
            return
        if self._retry.is_due():
            self._behind.clear()
            until = self._clock() + _SLOW_FAILURE_S
            self._catch_up(loaded, lambda: self._stop.is_set() or self._clock() > until)
            if self._behind.is_set():
                self._retry.fail()
            else:
                self._retry.succeed()
                self._rest.succeed()
        if not self._counted:
            self._counted = True
            self._recount()

    def reembed(self, progress: Callable[[int], None]) -> int:
        """Let the store agree on this embedder's space, embed what has no vector in it, and return how many wait.

        A vector that is damaged, or that no embedder of that space can have made, is made again.
        """
        loaded = self._load()
        self.close()  # what is done in the background is done here
        self._stop.clear()
        self._store.apply([SpaceChange(loaded.space, dims=loaded.dims)])
        self._recount()
        self._fill(loaded, progress)
        return self._left

    def embed_shared(self, progress: Callable[[int], None]) -> None:
        """Embed what waits and no other process embeds, until nothing does, or the embedder fails.

        Raises:
            EmbedderError: it cannot be loaded or reached.
            EmbeddingSpaceError: the store's vectors are of another space.
        """
        loaded, written = self._load(), 1
        if self._store.space() not in (None, loaded.space):
            self._store.apply([SpaceChange(loaded.space, if_new=True)])
        self._agreed = self._store.space() or loaded.space
        self._refuse_other(loaded)

        def advance(count: int) -> None:
            nonlocal written
            written += count
            progress(count)

        while written and not self._stop.is_set():  # what others gave up meanwhile waits behind
            written = 0
            embed_pending(self._store, self._plan(loaded), loaded.space, stop=self._stop.is_set, done=advance)

    def close(self) -> None:
        """Stop catching up."""
        self._stop.set()
        if self._worker is not None:
            self._worker.join()

    def _load(self) -> Embedder:
        loaded = self._given if self._given is not None else build_embedder(self._settings)
        if loaded is None:
            raise EmbedderError("embedding.embedder is `none`; name an embedder to embed with")
        return CheckedEmbedder(loaded)

    def _catch_up(self, loaded: Embedder, stop: Callable[[], bool]) -> None:
        if self._worker is not None and self._worker.is_alive():
            return
        if len(self._store.pending(loaded.space, _AT_ONCE + 1)) <= _AT_ONCE:
            self._left = 0
            embed_pending(self._store, self._plan(loaded), loaded.space, stop=stop)
            if self._behind.is_set() or not stop():
                return
        self._recount()  # before the first question is answered
        self._worker = threading.Thread(target=self._work, args=(loaded,), name="holdfast-catching-up", daemon=True)
        self._worker.start()

    def _work(self, loaded: Embedder) -> None:
        try:
            self._fill(loaded, lambda _: None)
        except HoldfastError as error:
            log.warning("vectors are pending: %s", error)

    def _fill(self, loaded: Embedder, progress: Callable[[int], None]) -> None:
        """Embed all that waits, and keep count of what is left; every batch is kept, whatever ends the work."""

        def advance(written: int) -> None:
            self._left -= written
            progress(written)

        embed_pending(self._store, self._plan(loaded), loaded.space, stop=self._stop.is_set, done=advance)
        if not self._stop.is_set():
            self._recount()
            if self._left > 0:  # refused, or written behind it
                self._behind.set()

    def _recount(self) -> None:
        counted = self._count()
        self._left, self._units = counted.waiting or 0, counted.store_units or 0


# Enough to keep every core busy; little enough that a crash costs less than a second of work.
_EMBEDDED_TOGETHER = 64
# So many refusals in a row are an embedder that is down, and each may cost a timeout.
_TRIED_ALONE = 3


@dataclass(frozen=True, slots=True)
class EmbeddingPlan:
    """How kept units are embedded and judged. `awaited` says that an embedder is wanted and cannot be used yet.

    `failed` hears of an error and after how many seconds of `clock` it came; `is_due` says whether to go on.
    """

    embedder: Embedder | None
    gate: GateSettings
    awaited: bool = False
    failed: Callable[[HoldfastError, float], None] = lambda _error, _seconds: None
    is_due: Callable[[], bool] = lambda: True
    clock: Callable[[], float] = lambda: 0.0


@dataclass(frozen=True, slots=True)
class EmbeddingReport:
    """How many vectors were written, what the gate decided, by unit, and which units wait for a vector."""

    written: int = 0
    gates: Mapping[str, Gate] = field(default_factory=dict)
    waiting: frozenset[str] = frozenset()


# Lines of code and directives, and what else is no word of a text.
_NO_PROSE = regex(r"^(?:[ \t]|\.\.\s|>>>|\$\s).*$", re.MULTILINE)
_MARKUP = regex(r":[\w+.:-]+:(?=`)|<[^<>`]*>(?=`)")
_WORD = regex(r"[\w'.-]*\w")
# Characters of a piece that the embedder reads behind its heading: the time it takes grows with them, and 240 find
# as much as the whole piece without its heading. With less prose than half of that, code is read, too.
_OPENING = 240


def text_to_embed(unit: Unit) -> str:
    """Return what the embedder reads of a unit: its text; of a piece of a document, heading and opening (C10)."""
    if unit.author != "document" or not is_piece(unit.id):
        return unit.text
    text = _MARKUP.sub("", unit.text)
    prose, whole = (" ".join(_WORD.findall(one)) for one in (_NO_PROSE.sub("", text), text))
    opening = (prose if 2 * len(prose) >= _OPENING else whole)[:_OPENING]
    return f"{unit.topic.rpartition(' › ')[2]} {opening}".strip()


def embed_all(
    units: Sequence[Unit], store: Store, indexing: EmbeddingPlan, progress: Progress = lambda _done, _of: None
) -> EmbeddingReport:
    """Embed and judge units batch by batch: a crash in a long list costs little, and a long list stays linear.

    An embedder that was slow to fail is not asked for the rest of them.
    """
    done = []
    for start in range(0, len(units), _EMBEDDED_TOGETHER):
        progress(start, len(units))
        batch = units[start : start + _EMBEDDED_TOGETHER]
        done.append(embed(batch, store, indexing) if indexing.is_due() else _left_waiting(batch))
    return EmbeddingReport(
        sum(one.written for one in done), {key: gate for one in done for key, gate in one.gates.items()},
        frozenset().union(*(one.waiting for one in done)),
    )  # fmt: skip


def _left_waiting(units: Sequence[Unit]) -> EmbeddingReport:
    return EmbeddingReport(waiting=frozenset(unit.id for unit in units))


def embed(units: Sequence[Unit], store: Store, indexing: EmbeddingPlan) -> EmbeddingReport:
    """Judge units that are kept already, and write their vectors.

    The gate comes before the index, so that no turn matches itself (C17). An embedder that fails loses nothing, nor
    does a disk that is full by now: the words are safe, and the units wait for their vectors and for the gate.
    """
    embedder = indexing.embedder
    if not units or (embedder is None and indexing.awaited):
        return _left_waiting(units)
    began = indexing.clock()
    try:
        if embedder is None:
            gates = judge_by_words(units, indexing.gate)
            if gates:
                store.apply([Promotion(*gate) for gate in gates])
            return EmbeddingReport(0, {unit.id: gate for unit, gate in gates})
        given = embedder.embed_documents([text_to_embed(unit) for unit in units])
        vectors = check_vectors(given, len(units), embedder.dims, embedder.space)
        gates = judge_units(store, embedder.space, units, vectors, indexing.gate)
        written = store.put_vectors(embedder.space, units, vectors, [Promotion(*gate) for gate in gates])
    except (EmbedderError, StoreError) as error:
        log.warning("%d units are stored; gate or vectors are pending: %s", len(units), error)
        indexing.failed(error, indexing.clock() - began)
        return _left_waiting(units)
    return EmbeddingReport(written, {unit.id: gate for unit, gate in gates})


def embed_pending(
    store: Store,
    indexing: EmbeddingPlan,
    space: str,
    *,
    stop: Callable[[], bool] = lambda: False,
    done: Callable[[int], None] = lambda _: None,
) -> None:
    """Embed every unit that waits, batch by batch; `done` hears of each batch.

    A batch of which nothing could be written (the embedder failed) ends the work; its units wait on. Processes that
    share a store share the work, too.
    """
    if isinstance(store, ClaimingStore):
        _embed_claimed(store, indexing, space, stop, done)
        return
    last: Unit | None = None
    while not stop() and (units := store.pending(space, _EMBEDDED_TOGETHER, last)):
        written = embed(units, store, indexing).written
        if not written and len(units) > 1:
            written = _one_by_one(units, store, indexing, stop)
        done(written)
        if not written:
            break
        last = units[-1]


@runtime_checkable
class ClaimingStore(Store, Protocol):
    """A store whose waiting units are claimed, so that many processes embed them together."""

    def claim(
        self, space: str, most: int, after: tuple[str, int] | None = None
    ) -> AbstractContextManager[ClaimedUnits]:
        """Claim the first units behind a place that nobody has claimed."""
        ...


def _embed_claimed(
    store: ClaimingStore, indexing: EmbeddingPlan, space: str, stop: Callable[[], bool], done: Callable[[int], None]
) -> None:  # fmt: skip
    """Embed what waits and nobody else embeds; what others have claimed by now is theirs."""
    last = None
    while not stop():
        with store.claim(space, _EMBEDDED_TOGETHER, last) as claimed:
            if claimed.last is None:
                return
            last, units = claimed.last, claimed.units
            written = embed(units, store, indexing).written
            if not written and len(units) > 1:
                written = _one_by_one(units, store, indexing, stop)
        done(written)
        if units and not written:
            return


def _one_by_one(units: Sequence[Unit], store: Store, indexing: EmbeddingPlan, stop: Callable[[], bool]) -> int:
    """Embed a batch that failed text by text: one that is refused must not hold up the others."""
    written = 0
    for tried, unit in enumerate(units):
        if stop() or (not written and tried == _TRIED_ALONE):
            break
        written += embed([unit], store, indexing).written
    return written
