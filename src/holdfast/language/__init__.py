"""Text → what the engine knows about it. Deterministic; no clock, no file, no model of its own."""

from __future__ import annotations

from holdfast.language.facts import stated_facts
from holdfast.language.lexical import TOKENIZERS
from holdfast.language.mentions import entities, titles
from holdfast.language.symbols import aliases_of
from holdfast.language.temporal import anchor_density
from holdfast.settings import AnalysisSettings
from holdfast.types import FIELDS, Analysis, Unit


def analyse(unit: Unit, settings: AnalysisSettings) -> Analysis:
    """Return everything that is derived from one unit's words."""
    tokenise = TOKENIZERS[settings.tokenizer]
    return Analysis(
        terms=tuple(tuple(tokenise(text)) if (text := unit.field_text(name)) else () for name in FIELDS),
        anchor_density=anchor_density(unit.text),
        titles=titles(unit.topic),
        mentions=entities(unit.text),
        facts=stated_facts(unit, aliases_of(settings.aliases)),
    )
