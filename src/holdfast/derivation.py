"""How an index is derived from units: analysis and hypervectors under the settings, in one value for the store."""

from __future__ import annotations

import json
from dataclasses import asdict
from functools import partial

from holdfast.language import analyse
from holdfast.language.hypervector import encode_unit
from holdfast.language.symbols import symbol_tokens
from holdfast.settings import Settings
from holdfast.store.contract import Derivation, UnitHypervectors
from holdfast.types import Analysis, Unit

# Counted up whenever analysis, or what an index keeps of it, changes: indexes saved before no longer fit.
_ANALYSIS_VERSION = 5


def derivation(settings: Settings) -> Derivation:
    """Return the derivation the settings describe."""

    def hypervectors(unit: Unit, analysis: Analysis) -> UnitHypervectors:
        return UnitHypervectors(*encode_unit(unit, analysis, settings.hyper))

    return Derivation(
        analyse=partial(analyse, settings=settings.analysis),
        hypervectors=hypervectors,
        fingerprint=json.dumps([_ANALYSIS_VERSION, asdict(settings.analysis)]),
        tokens=symbol_tokens,
    )
