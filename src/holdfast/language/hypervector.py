"""Units and questions → hypervectors (C5). Query terms are analysed exactly like unit terms, by the same function."""

from __future__ import annotations

from holdfast.kernels import hypervectors as hv
from holdfast.kernels.hypervectors import Hypervector
from holdfast.settings import HyperSettings
from holdfast.types import FIELDS, Act, Analysis, QueryProfile, Role, Unit

_TOPIC = FIELDS.index("topic")

# topic, claim, role, acts of a unit; the names are those of the contract.
UnitVectors = tuple[Hypervector | None, Hypervector | None, Role, tuple[Act, ...]]


def encode_unit(unit: Unit, analysis: Analysis, settings: HyperSettings) -> UnitVectors:
    """Return the field vectors of a unit; a missing field has none."""
    # Not bound to the names of their fields: an XOR with the same key on both sides changes no distance.
    statement = FIELDS.index(unit.statement_field)
    return (
        hv.ngrams(analysis.terms[_TOPIC], positional=settings.positional),
        hv.ngrams(analysis.terms[statement], positional=settings.positional),
        unit.role,
        unit.utility_acts,
    )


def encode_query(
    query: QueryProfile, settings: HyperSettings
) -> tuple[Hypervector | None, Hypervector | None, Hypervector | None]:
    """Return the vectors of a question: its needed roles, its words, its act."""
    return (
        hv.bag(sorted(query.needed_roles)),
        hv.ngrams(query.terms, positional=settings.positional),
        hv.random(query.act) if query.act else None,
    )
