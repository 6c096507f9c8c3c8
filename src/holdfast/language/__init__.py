"""Text → what the engine knows about it. Deterministic; no clock, no file, no model of its own."""

from __future__ import annotations

from holdfast.language.changes import read_told
from holdfast.language.facts import stated_facts
from holdfast.language.instructions import instructions_of
from holdfast.language.lexical import TOKENIZERS
from holdfast.language.mentions import entities, initials, titles
from holdfast.language.symbols import aliases_of
from holdfast.language.temporal import anchor_density
from holdfast.settings import AnalysisSettings
from holdfast.types import FACTS, FIELDS, INSTRUCTIONS, Analysis, Unit


def analyse(unit: Unit, settings: AnalysisSettings) -> Analysis:
    """Return everything that is derived from one unit's words."""
    tokenise = TOKENIZERS[settings.tokenizer]
    facts = stated_facts(unit, aliases_of(settings.aliases))
    return Analysis(
        terms=tuple(tuple(tokenise(text)) if (text := unit.field_text(name)) else () for name in FIELDS),
        anchor_density=anchor_density(unit.text),
        titles=(*titles(unit.topic), *initials(unit.topic)),
        mentions=entities(unit.text),
        facts=facts,
        stating=(FACTS if facts or any(one.told or one.marker or one.planned for one in read_told(unit)) else 0)
        | (INSTRUCTIONS if instructions_of(unit) else 0),
    )
