"""Find by meaning: cosines of stored vectors, proposed through the Matryoshka cascade (C10)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from holdfast.kernels import vectors
from holdfast.retrieval.strategy import kind_of_store
from holdfast.settings import Settings
from holdfast.store.contract import DenseQuery, Store
from holdfast.types import Budget, Contribution, Deadline, QueryProfile, RetrievalResult, StrategyCandidate, View

Vector = NDArray[np.float32]


class DenseStrategy:
    """Cosine of the question's vector with the units' stored ones; needs the question to have been embedded."""

    id = "dense"

    def __init__(self, settings: Settings) -> None:
        self._settings = settings.dense

    def retrieve(
        self, query: QueryProfile, view: View, store: Store, budget: Budget, deadline: Deadline
    ) -> RetrievalResult:
        """See `Strategy.retrieve`. Without a vector for the question nothing is found."""
        if query.vector is None:
            return RetrievalResult(self.id, (), deadline.elapsed_ms())
        tier, ids, exhausted = self._proposed(query, query.vector, view, store, budget, deadline)
        claims = self._claims(query.vector, tier, query, view, store, ids).values()
        order = sorted((claim for claim in claims if claim.raw_score > 0.0), key=lambda c: (-c.raw_score, c.unit_id))
        return RetrievalResult(self.id, tuple(order[: budget.max_candidates]), deadline.elapsed_ms(), exhausted)

    def score(
        self,
        query: QueryProfile,
        view: View,
        store: Store,
        ids: Sequence[str],
        *,
        explain: bool = True,  # noqa: ARG002 - its tree costs nothing
    ) -> dict[str, StrategyCandidate]:
        """See `Strategy.score`: the full vectors' cosines; a unit that waits for its vector scores 0."""
        if query.vector is None:
            return {}
        return self._claims(query.vector, len(query.vector), query, view, store, ids)

    def _proposed(
        self, query: QueryProfile, vector: Vector, view: View, store: Store, budget: Budget, deadline: Deadline
    ) -> tuple[int, tuple[str, ...], bool]:  # fmt: skip
        """Return the tier that proposed, and the candidates: the funnel's, or the first sure enough tier's."""
        full, space = len(vector), query.space or ""
        if not self._settings.early_exit:
            found = store.dense_candidates(view, DenseQuery(space, vector), budget.max_candidates, deadline)
            return full, found.ids, found.exhausted
        for tier, threshold in ((64, self._settings.exit_64), (256, self._settings.exit_256)):
            if tier < full:
                found = store.dense_candidates(view, DenseQuery(space, vector, tier), budget.max_candidates, deadline)
                evidence = store.dense_evidence(view, space, found.ids)
                best = vectors.cosines(evidence.vectors, vector, tier).max() if evidence.ids else 0.0
                if best >= threshold:
                    return tier, found.ids, found.exhausted
        found = store.dense_candidates(view, DenseQuery(space, vector, full), budget.max_candidates, deadline)
        return full, found.ids, found.exhausted

    def _claims(
        self, vector: Vector, tier: int, query: QueryProfile, view: View, store: Store, ids: Sequence[str]
    ) -> dict[str, StrategyCandidate]:  # fmt: skip
        evidence = store.dense_evidence(view, query.space or "", ids)
        # Whichever tier proposed, the full vectors score (law 11).
        near = vectors.cosines(evidence.vectors, vector, len(vector)) if evidence.ids else np.zeros(0)
        cosines = dict(zip(evidence.ids, near.tolist(), strict=True))
        units = store.units(view, ids)
        notes = (self.id, f"tier: {tier}")
        return {
            unit_id: StrategyCandidate(
                unit_id, kind_of_store(unit), raw, min(raw, 1.0), unit, notes, Contribution("cosine", raw)
            )
            for unit_id, unit in units.items()
            if (raw := max(0.0, cosines.get(unit_id, 0.0))) >= 0.0
        }
