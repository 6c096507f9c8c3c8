"""Find by association: 4096-bit hypervectors (C5). Role and acts only count once the words rise above the noise."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from holdfast.kernels import hypervectors as hv
from holdfast.language.hypervector import encode_query
from holdfast.retrieval.strategy import kind_of_store
from holdfast.settings import Settings
from holdfast.store.contract import HYPER_FIELDS, MISSING_FIELD, HyperEvidence, HyperQuery, Store
from holdfast.types import (
    Budget,
    Contribution,
    Deadline,
    QueryProfile,
    RetrievalResult,
    StrategyCandidate,
    Unit,
    View,
)

# Weight of each field's similarity (C5): topic, claim, role, acts.
_WEIGHTS = (0.35, 0.35, 0.2, 0.1)
_WEIGHT_OF = dict(zip(HYPER_FIELDS, _WEIGHTS, strict=True))


class HyperdimensionalStrategy:
    """Similarity of hypervectors of words, role and acts."""

    id = "hdc-vsa"

    def __init__(self, settings: Settings) -> None:
        self._settings = settings.hyper

    def retrieve(
        self, query: QueryProfile, view: View, store: Store, budget: Budget, deadline: Deadline
    ) -> RetrievalResult:
        """See `Strategy.retrieve`."""
        question = self._question(query)
        proposal = store.hyper_candidates(view, question, budget.max_candidates, deadline)
        found = self._claims(view, store, question, proposal.ids)
        order = sorted((claim for claim in found if claim.raw_score > 0.0), key=lambda c: (-c.raw_score, c.unit_id))
        best = tuple(dataclasses.replace(claim, explanation=None) for claim in order[: budget.max_candidates])
        return RetrievalResult(self.id, best, deadline.elapsed_ms(), proposal.exhausted)

    def score(
        self,
        query: QueryProfile,
        view: View,
        store: Store,
        ids: Sequence[str],
        *,
        explain: bool = True,  # noqa: ARG002 - its tree costs nothing
    ) -> dict[str, StrategyCandidate]:
        """See `Strategy.score`."""
        question = self._question(query)
        return {claim.unit_id: claim for claim in self._claims(view, store, question, ids)}

    def _question(self, query: QueryProfile) -> HyperQuery:
        return HyperQuery(*encode_query(query, self._settings), _WEIGHTS)

    def _claims(self, view: View, store: Store, question: HyperQuery, ids: Sequence[str]) -> list[StrategyCandidate]:
        evidence = store.hyper_evidence(view, question, ids)
        units = store.units(view, evidence.ids)
        return [
            self._claim(evidence, row, units[unit_id]) for row, unit_id in enumerate(evidence.ids) if unit_id in units
        ]

    def _claim(self, evidence: HyperEvidence, row: int, unit: Unit) -> StrategyCandidate:
        """Return score = Σ weight·shifted similarity, or 0 when the words do not rise above the noise floor."""
        distances = dict(zip(HYPER_FIELDS, evidence.distances[row].tolist(), strict=True))
        shifted = {name: _shifted(distance) for name, distance in distances.items() if distance != MISSING_FIELD}
        heard = max(shifted.get("topic", 0.0), shifted.get("claim", 0.0)) >= hv.noise_floor(evidence.unit_count)
        heard_fields = [(name, value) for name, value in shifted.items() if heard]
        parts = [self._part(name, value) for name, value in heard_fields]
        tree = Contribution.of("hypervectors", "sum", *parts)
        return StrategyCandidate(
            unit.id, kind_of_store(unit), tree.value, min(tree.value, 1.0), unit, (self.id, *shifted), tree
        )

    def _part(self, name: str, value: float) -> Contribution:
        weight = Contribution("field weight", _WEIGHT_OF[name])
        return Contribution.of(f"field {name}", "product", weight, Contribution("above chance", value))


def _shifted(distance: int) -> float:
    """Return max(0, (similarity - ½)·2) of one distance: whole numbers in, so the same on every machine."""
    return max(0.0, ((1.0 - distance / float(hv.BITS)) - 0.5) * 2.0)
