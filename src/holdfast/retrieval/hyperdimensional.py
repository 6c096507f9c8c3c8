"""Find by association: 4096-bit hypervectors (C5). Role and acts only count once the words rise above the noise."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.kernels import hypervectors as hv
from holdfast.retrieval.strategy import Proposals
from holdfast.settings import HyperSettings, Settings
from holdfast.store.contract import Reading
from holdfast.store.queries import HYPER_FIELDS, MISSING_FIELD, HyperEvidence, HyperQuery, UnitHypervectors
from holdfast.types import (
    FIELDS,
    Analysis,
    Contribution,
    Deadline,
    QueryProfile,
    StrategyExplanation,
    StrategyScores,
    Unit,
)

# Weight of each field's similarity (C5): topic, claim, role, acts.
_WEIGHTS = (0.35, 0.35, 0.2, 0.1)
_WEIGHT_OF = dict(zip(HYPER_FIELDS, _WEIGHTS, strict=True))


class HyperdimensionalStrategy:
    """Similarity of hypervectors of words, role and acts."""

    id = "hdc-vsa"

    def __init__(self, settings: Settings) -> None:
        self._settings = settings.hyper

    def propose(self, query: QueryProfile, reading: Reading, depth: int, deadline: Deadline) -> Proposals:
        """See `Strategy.propose`."""
        found = reading.propose(self._query(query), depth, deadline)
        return Proposals(found.ids, found.exhausted)

    def score(self, query: QueryProfile, reading: Reading, ids: Sequence[str]) -> StrategyScores:
        """See `Strategy.score`."""
        claims = StrategyScores.of(ids)
        accounts = self.explain(query, reading, ids)
        claims.raw[:] = [accounts[unit_id].tree.value for unit_id in claims.ids]
        return claims

    def explain(self, query: QueryProfile, reading: Reading, ids: Sequence[str]) -> dict[str, StrategyExplanation]:
        """See `Strategy.explain`."""
        evidence = reading.evidence(self._query(query), ids)
        found = {unit_id: StrategyExplanation(Contribution("hypervectors", 0.0), (self.id,)) for unit_id in ids}
        return found | {unit_id: self._account(evidence, row) for row, unit_id in enumerate(evidence.ids)}

    def _query(self, query: QueryProfile) -> HyperQuery:
        return HyperQuery(*encode_query(query, self._settings), _WEIGHTS)

    def _account(self, evidence: HyperEvidence, row: int) -> StrategyExplanation:
        """Return score = Σ weight·shifted similarity, or 0 when the words do not rise above the noise floor."""
        distances = dict(zip(HYPER_FIELDS, evidence.distances[row].tolist(), strict=True))
        shifted = {name: _shifted(distance) for name, distance in distances.items() if distance != MISSING_FIELD}
        heard = max(shifted.get("topic", 0.0), shifted.get("claim", 0.0)) >= hv.noise_floor(evidence.unit_count)
        heard_fields = [(name, value) for name, value in shifted.items() if heard]
        parts = [self._part(name, value) for name, value in heard_fields]
        return StrategyExplanation(Contribution.of("hypervectors", "sum", *parts), (self.id, *shifted))

    def _part(self, name: str, value: float) -> Contribution:
        weight = Contribution("field weight", _WEIGHT_OF[name])
        return Contribution.of(f"field {name}", "product", weight, Contribution("above chance", value))


def _shifted(distance: int) -> float:
    """Return max(0, (similarity - ½)·2) of one distance: whole numbers in, so the same on every machine."""
    return max(0.0, ((1.0 - distance / float(hv.BITS)) - 0.5) * 2.0)


def encode_query(
    query: QueryProfile, settings: HyperSettings
) -> tuple[hv.Hypervector | None, hv.Hypervector | None, hv.Hypervector | None]:
    """Return the vectors of a question: its needed roles, its words (analysed as those of a unit are), its act."""
    return (
        hv.bag(sorted(query.needed_roles)),
        hv.ngrams(query.terms, positional=settings.positional),
        hv.random(query.act) if query.act else None,
    )


def encode_unit(unit: Unit, analysis: Analysis, settings: HyperSettings) -> UnitHypervectors:
    """Return the field vectors of a unit (C5); a missing field has none."""
    topic, statement = (analysis.terms[FIELDS.index(name)] for name in ("topic", unit.statement_field))
    # Not bound to the names of their fields: an XOR with the same key on both sides changes no distance.
    return UnitHypervectors(
        hv.ngrams(topic, positional=settings.positional),
        hv.ngrams(statement, positional=settings.positional),
        unit.role,
        unit.utility_acts,
    )
