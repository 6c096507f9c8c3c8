"""What a unit states as facts (C8): its authored triple, or what rules read in its words."""

from __future__ import annotations

from functools import lru_cache

from holdfast.errors import SettingsError, shown
from holdfast.language.facts import extract, spoken_by
from holdfast.language.symbols import Aliases
from holdfast.types import Fact, Unit

# An assistant's general knowledge is not what its user knows, and a summary only repeats.
_STATING = ("user", "document")


@lru_cache(maxsize=16)
def aliases_of(pairs: tuple[str, ...]) -> Aliases:
    """Read aliases that were declared as `name = other name`.

    Raises:
        SettingsError: one of them is not such a pair.
    """
    read = []
    for text in pairs:
        one, sign, other = (part.strip() for part in text.partition("="))
        if not (one and sign and other):
            raise SettingsError(f"analysis.aliases holds {shown(text)}; write it as `k8s = Kubernetes`")
        read.append((one, other))
    return Aliases.of(read)


def speaker_of(unit: Unit) -> str:
    """Return whose words a unit holds: the speaker's name, or the user whose memory it is."""
    return unit.speaker or (unit.user or "" if unit.author == "user" else "")


def sentences_of(unit: Unit) -> tuple[tuple[Fact, str], ...]:
    """Return the facts that a unit states, each with the sentence that states it; symbols as without aliases."""
    found = [(unit.fact, unit.text)] if unit.fact is not None else _read(unit)
    none = Aliases()
    return tuple(
        (Fact(none.symbol(one.subject), one.relation, none.symbol(one.object), one.confidence), sentence)
        for one, sentence in found
    )


def _read(unit: Unit) -> list[tuple[Fact, str]]:
    if unit.author not in _STATING or unit.kind == "summary":
        return []
    stated = spoken_by(extract(unit.text), speaker_of(unit))
    return [(one.fact, unit.text[one.start : one.end]) for one in stated if not one.negated]


def stated_facts(unit: Unit, aliases: Aliases) -> tuple[Fact, ...]:
    """Return the facts that a unit states, with symbols at both ends; what it denies is left out."""
    found = [unit.fact] if unit.fact is not None else [fact for fact, _ in _read(unit)]
    facts = (
        Fact(aliases.symbol(one.subject), one.relation, aliases.symbol(one.object), one.confidence) for one in found
    )
    return tuple(dict.fromkeys(fact for fact in facts if fact.subject and fact.object))
