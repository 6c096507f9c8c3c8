"""Text → what the engine knows about it. Deterministic; no clock, no file, no model of its own."""

from __future__ import annotations

from holdfast.settings import AnalysisSettings
from holdfast.text.changes import read_assertions_of
from holdfast.text.facts import stated_facts
from holdfast.text.instructions import instructions_of
from holdfast.text.names import aliases_of, entities, initials, titles
from holdfast.text.questions import asks_only
from holdfast.text.temporal import anchor_density
from holdfast.text.terms import TOKENIZERS
from holdfast.types import FACTS, FIELDS, INSTRUCTIONS, QUESTION, Analysis, Unit


def analyse(unit: Unit, settings: AnalysisSettings) -> Analysis:
    """Return everything that is derived from one unit's words."""
    tokenise = TOKENIZERS[settings.tokenizer]
    facts = stated_facts(unit, aliases_of(settings.aliases))
    return Analysis(
        terms=tuple(tuple(tokenise(text)) if (text := unit.field_text(name)) else () for name in FIELDS),
        anchor_density=anchor_density(unit.text, wide=settings.tokenizer == "default"),
        titles=(*titles(unit.topic), *initials(unit.topic)),
        mentions=entities(unit.text),
        facts=facts,
        stating=(FACTS if facts or any(one.marker for one in read_assertions_of(unit)) else 0)
        | (INSTRUCTIONS if instructions_of(unit) else 0)
        | (QUESTION if asks_only(unit) else 0),
    )
