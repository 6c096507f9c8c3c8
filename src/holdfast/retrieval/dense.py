"""Find by meaning: exact cosines, and the early exit (C10); `store/sqlite/blocks` narrows by the first tier."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from holdfast.kernels import vectors
from holdfast.retrieval.strategy import Proposals
from holdfast.settings import Settings
from holdfast.store.contract import NO_DEADLINE, Reading
from holdfast.store.queries import DenseQuery
from holdfast.types import Contribution, Deadline, QueryProfile, StrategyExplanation, StrategyScores


class DenseStrategy:
    """Cosine of the question's vector with the units' stored ones; needs the question to have been embedded."""

    id = "dense"

    def __init__(self, settings: Settings) -> None:
        self._settings, self._depth = settings.dense, settings.retrieval.max_candidates

    def propose(self, query: QueryProfile, reading: Reading, depth: int, deadline: Deadline) -> Proposals:
        """See `Strategy.propose`: the funnel's candidates, those of all rows, or the first sure enough tier's."""
        if query.vector is None:
            return Proposals(())
        tier = len(query.vector) if self._settings.exact else None
        if self._settings.early_exit:
            tier = self._sure_tier(query, query.vector, reading, depth, deadline)
        found = reading.propose(DenseQuery(query.space or "", query.vector, tier), depth, deadline)
        return Proposals(found.ids, found.exhausted)

    def _tier(self, query: QueryProfile, vector: NDArray[np.float32], reading: Reading) -> int:
        """Return by which tier units were chosen; scores are the full vectors' all the same."""
        if not self._settings.early_exit:
            return len(vector)
        return self._sure_tier(query, vector, reading, self._depth, NO_DEADLINE)

    def _sure_tier(
        self, query: QueryProfile, vector: NDArray[np.float32], reading: Reading, depth: int, deadline: Deadline
    ) -> int:
        """Return the first tier whose best cosine is high enough, else the full one."""
        for tier, threshold in zip(vectors.TIERS, (self._settings.exit_64, self._settings.exit_256), strict=True):
            if tier < len(vector):
                at_tier = DenseQuery(query.space or "", vector, tier)
                found = reading.propose(at_tier, depth, deadline)
                evidence = reading.evidence(at_tier, found.ids)
                if evidence.ids and vectors.cosines(evidence.vectors, vector, tier).max() >= threshold:
                    return tier
        return len(vector)

    def score(self, query: QueryProfile, reading: Reading, ids: Sequence[str]) -> StrategyScores:
        """See `Strategy.score`: the full vectors' cosines (law 11); a unit without a vector scores 0, and waits."""
        claims = StrategyScores.of(ids)
        if query.vector is not None and ids:
            evidence = reading.evidence(DenseQuery(query.space or "", query.vector), ids)
            claims.waits[:] = True
            if evidence.ids:
                near, rows = (
                    vectors.cosines(evidence.vectors, query.vector, len(query.vector)),
                    claims.rows_of(evidence.ids),
                )
                claims.raw[rows], claims.waits[rows] = np.maximum(near, 0.0), False
        return claims

    def explain(self, query: QueryProfile, reading: Reading, ids: Sequence[str]) -> dict[str, StrategyExplanation]:
        """See `Strategy.explain`."""
        claims = self.score(query, reading, ids)
        notes = (self.id,) if query.vector is None else (self.id, f"tier: {self._tier(query, query.vector, reading)}")
        return {
            unit_id: StrategyExplanation(Contribution("cosine", raw), notes)
            for unit_id, raw in zip(claims.ids, claims.raw.tolist(), strict=True)
        }
