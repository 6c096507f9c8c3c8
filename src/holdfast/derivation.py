"""How an index is derived from units: analysis and hypervectors under the settings, in one value for the store."""

from __future__ import annotations

import json
from dataclasses import asdict
from functools import partial

from holdfast.kernels import hypervectors as hv
from holdfast.settings import HyperSettings, Settings
from holdfast.store.contract import Derivation, UnitHypervectors
from holdfast.text import analyse
from holdfast.text.symbols import symbol_tokens
from holdfast.types import FIELDS, Analysis, Unit

# Counted up whenever analysis, or what an index keeps of it, changes: indexes saved before no longer fit.
_ANALYSIS_VERSION = 7


def derivation(settings: Settings) -> Derivation:
    """Return the derivation the settings describe."""
    return Derivation(  # of nothing but what another process can be given
        analyse=partial(analyse, settings=settings.analysis),
        hypervectors=partial(encode_unit, settings=settings.hyper),
        fingerprint=json.dumps([_ANALYSIS_VERSION, asdict(settings.analysis)]),
        tokens=symbol_tokens,
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
