"""The embedder of one memory: loaded when first needed, checked against the store's space, and catching up.

Units are committed before they are embedded. Those that a crash or a failing endpoint left behind are found by the
other strategies meanwhile, and completed here: a few at once, many in the background.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from holdfast.errors import EmbedderError, EmbeddingSpaceError
from holdfast.ingest import Indexing, embed_waiting
from holdfast.models import build_embedder
from holdfast.models.embedder import Embedder
from holdfast.settings import EmbeddingSettings, GateSettings
from holdfast.store.contract import SpaceChange, Store

log = logging.getLogger("holdfast")
_REMOTE = ("openai", "ollama")
# As many as are embedded within about a second: nobody minds that at the first question after a crash.
_AT_ONCE = 200


class Embedding:
    """One memory's embedder. Safe to share between threads."""

    def __init__(self, store: Store, settings: EmbeddingSettings, gate: GateSettings, given: Embedder | None) -> None:
        self._store = store
        self._gate = gate
        self._settings = settings
        self._given = given
        self._lock = threading.Lock()
        self._ready: Embedder | None = None
        self._stop = threading.Event()
        self._behind = threading.Event()
        self._worker: threading.Thread | None = None

    @property
    def wanted(self) -> bool:
        """Return whether there is to be any embedder at all."""
        return self._given is not None or self._settings.embedder != "none"

    def embedder(self) -> Embedder | None:
        """Return the embedder, ready to use, or None when none is wanted.

        Raises:
            EmbedderError: it cannot be loaded or reached.
            EmbeddingSpaceError: the store's vectors are of another space.
        """
        if not self.wanted:
            return None
        with self._lock:
            loaded = self._ready or self._load()
            self._refuse_another_space(loaded)  # every time: another process may have changed the store's space
            if self._ready is None:
                self._ready = loaded
                self._catch_up(loaded)
            return loaded

    def for_writing(self) -> Embedder | None:
        """Return the embedder, or None while an endpoint cannot be reached: words are kept, and wait for vectors.

        Raises:
            EmbedderError: a local model cannot be loaded; nothing has been written yet.
            EmbeddingSpaceError: the store's vectors are of another space.
        """
        try:
            return self.embedder()
        except EmbeddingSpaceError:
            raise
        except EmbedderError as error:
            if self._settings.embedder not in _REMOTE:
                raise
            log.warning("the words are kept and wait for their vectors: %s", error)
            return None

    def indexing(self) -> Indexing:
        """Return how units that are written now are embedded and judged; see `for_writing`.

        What an embedder that failed before has left behind is done first, now that it may work again.
        """
        embedder = self.for_writing()
        if embedder is None:
            self._behind.set()
        elif self._behind.is_set():
            self._behind.clear()
            try:
                self._catch_up(embedder)
            except EmbedderError:  # it cannot even name its space; what is written now will say so
                self._behind.set()
        return Indexing(embedder, self._gate, awaited=self.wanted, failed=self._behind.set)

    def replace_all(self, progress: Callable[[int], None]) -> int:
        """Let the store agree on this embedder's space and embed whatever has no vector in it."""
        loaded = self._load()
        if self._store.space() != loaded.space:
            self._store.mark([SpaceChange(loaded.space)])
        indexing = Indexing(loaded, self._gate)
        return embed_waiting(self._store, indexing, loaded.space, stop=self._stop.is_set, done=progress)

    def _load(self) -> Embedder:
        loaded = self._given or build_embedder(self._settings)
        if loaded is None:
            raise EmbedderError("embedding.embedder is `none`; name an embedder to embed with")
        return loaded

    def close(self) -> None:
        """Stop catching up."""
        self._stop.set()
        if self._worker is not None:
            self._worker.join()

    def _refuse_another_space(self, loaded: Embedder) -> None:
        agreed = self._store.space()
        if agreed is not None and agreed != loaded.space:
            raise EmbeddingSpaceError(
                f"the store's vectors are of {agreed}, the settings name {loaded.space}, and the two cannot be "
                "compared; run `holdfast reembed`, or set embedding.embedder back"
            )

    def _catch_up(self, loaded: Embedder) -> None:
        waiting = len(self._store.waiting(loaded.space, _AT_ONCE + 1))
        if 0 < waiting <= _AT_ONCE:
            embed_waiting(self._store, Indexing(loaded, self._gate, failed=self._behind.set), loaded.space)
        elif waiting:
            self._worker = threading.Thread(
                target=embed_waiting,
                args=(self._store, Indexing(loaded, self._gate), loaded.space),
                kwargs={"stop": self._stop.is_set},
                name="holdfast-catching-up",
                daemon=True,
            )
            self._worker.start()
