"""Facts that a text states, by rules and without a model (C8).

Precision before recall: a wrong fact is worse than none. A sentence is read only when the whole clause fits: a
subject, a verb group the rules know, and objects that look like what the relation is about. What it gives:

- A denied statement (not, never, no longer, stopped using, neither … nor, "A, not B") makes no positive fact; it is
  kept as `negated`, so that a contradiction can be noticed.
- Questions, commands, suppositions (if, maybe, might, would), plans, reports (said, thinks, according to), the
  past ("used to live") and pronouns of others (he, it, they) give nothing at all.
- First person gives the subject `SPEAKER`, which `spoken_by` replaces: "I live in Lisbon" said by Ana is about Ana.
- "Y has part X" reads "X part_of Y".

The reference reads one pattern per relation, takes the first that fits and keeps what stands around it: "A never
uses B" had the subject "A never".
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from holdfast.language.facts.phrases import SPEAKER
from holdfast.language.facts.reading import readings
from holdfast.language.facts.sentences import sentences
from holdfast.language.symbols import symbol
from holdfast.types import Fact

__all__ = [
    "CONFIDENCE",
    "RELATIONS",
    "SPEAKER",
    "Stated",
    "extract",
    "spoken_by",
]

# C8's relations: the rules of closure speak about these, and others only take part in hops.
RELATIONS = (
    "uses",
    "provides",
    "has_capability",
    "depends_on",
    "part_of",
    "instance_of",
    "relevant_for",
    "supports",
    "mentions",
    "about",
    "causes",
)

# The reference gives every extracted fact .9. What takes a further step of reading is trusted a little less.
_READ_OFF, _READ_INTO = 0.9, 0.8
CONFIDENCE = {
    "verb": _READ_OFF,
    "inverse": _READ_OFF,
    "passive": _READ_OFF,
    "state": _READ_OFF,
    "identity": _READ_OFF,
    "contrast": _READ_OFF,
    "copula": _READ_INTO,
    "relative": _READ_INTO,
    "shift": _READ_INTO,
}


@dataclass(frozen=True, slots=True)
class Stated:
    """A fact as a text states it: the sentence it stands in, [start, end), whether it is denied, and the rule."""

    fact: Fact
    start: int
    end: int
    rule: str
    negated: bool = False


def extract(text: str) -> tuple[Stated, ...]:
    """Return what `text` states and denies, in reading order, each once per sentence."""
    found: dict[tuple[object, ...], Stated] = {}
    for sentence in sentences(text):
        for one in readings(sentence):
            key = (sentence.start, symbol(one.subject), one.relation, symbol(one.object), one.negated)
            if key[1] and key[3] and key[1] != key[3]:
                fact = Fact(one.subject, one.relation, one.object, CONFIDENCE[one.rule])
                found.setdefault(key, Stated(fact, sentence.start, sentence.end, one.rule, one.negated))
    return tuple(found.values())


def spoken_by(stated: Iterable[Stated], speaker: str) -> tuple[Stated, ...]:
    """Return the statements with the speaker's name in place of `SPEAKER`; without a name those are left out."""
    found = []
    for one in stated:
        if SPEAKER in one.fact.subject + one.fact.object:
            if not speaker:
                continue
            subject = one.fact.subject.replace(SPEAKER, speaker)
            value = one.fact.object.replace(SPEAKER, speaker)
            found.append(replace(one, fact=replace(one.fact, subject=subject, object=value)))
        else:
            found.append(one)
    return tuple(found)
