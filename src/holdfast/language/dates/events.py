"""Times that hang on an event somebody has to look up: "the week before the trip", "since I moved", "on my birthday".

An event is a noun with its article or owner, or a clause in the past. Stretches of a life, the talk itself and
what is asked for by its length ("how long after the trip …") are none.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from holdfast.language.dates.relations import MEASURED, SIDES, UNIT_OF, Relation, measured
from holdfast.language.dates.words import phrase, words

# "How many days before May 7" asks for a number, not about the time before.
ASKS_HOW_MUCH = phrase(r"\bhow (?:many \w+|much \w+|long|soon|far|much)(?: \w+)? $")
# "Looked after", "named after": the preposition belongs to the verb.
VERB_AFTER = phrase(r"\b(?:look|take|ask|name|call|run|go)(?:s|d|ed|ing)? $|\b(?:took|ran|went) $")
_BETWEEN = phrase(r"\b(?:between|and) $")

_DET = r"(?:the|my|our|your|his|her|their|this|that|(?-i:[A-Z])\w*'s)"
_STOP = (
    r"(?:and|or|but|did|do|does|was|were|is|are|am|have|has|had|will|would|can|could|should|what|which|who|whom|whose"
    r"|where|when|how|why|that|if|so|as|than|then|i|we|you|he|she|they|it|in|to|at|of|with|from|for|on|by|about|into"
    r"|against|over|under|out|around|before|after|since|until|during|while|because|the|an?|my|our|your|his|her|their)"
)
_NOUN = rf"(?!{_STOP}\b)[\w'-]+"
_THING = (
    rf"{_DET} {_NOUN}(?: {_NOUN}){{0,3}}(?: (?:in|to|at|of|with|from|for|on) "
    rf"(?:{_DET} {_NOUN}(?: {_NOUN})?|(?-i:[A-Z])[\w'-]*(?: (?-i:[A-Z])[\w'-]*){{0,3}})){{0,2}}"
)
_DID = (
    r"(?:was|were|had|got|went|came|left|began|bought|sold|met|took|made|saw|broke|quit|lost|won|found|told|gave|felt"
    r"|fell|flew|drove|ran|became|lived|spent|wrote|read|taught|caught|heard|said|grew|built|\w+ed)"
)
_CLAUSE_STOP = "did|do|does|what|which|who|where|when|how|why|would|will|should|can|could|before|after|since"
_HAPPENING = (
    rf"(?:i|we|you|he|she|they|{_DET} {_NOUN}|(?-i:[A-Z])[a-z]+) (?:(?:first|finally|last|just|\w+ly) )?{_DID}"
    rf"(?: (?!(?:{_CLAUSE_STOP})\b)[\w'-]+){{0,8}}"
)
_OWN_DAY = r"(?:my|our|your|his|her|their|(?-i:[A-Z])\w*'s)(?: \w+)? (?:birthday|anniversary)\b"
_YOUTH = r"\w+ (?:was|were) (?:younger|young|little|a kid|a child)\b"
# A measured distance says most, an open side least.
_EVENTS: tuple[re.Pattern[str], ...] = tuple(
    phrase(rf"(?<!\w){pattern}")
    for pattern in (
        rf"(?:{MEASURED}|{UNIT_OF}) (?P<event>{_HAPPENING}|{_THING})",
        rf"(?P<on>on) (?P<event>{_OWN_DAY})",
        rf"(?P<during>during) (?P<event>{_THING})",
        rf"(?P<during>when|while) (?!{_YOUTH})(?P<event>{_HAPPENING})",
        rf"(?P<open>before|after|prior to|since|until|till) (?P<event>{_HAPPENING}|{_THING})",
    )
)
# No event to look up: stretches of time or of a life, and the talk itself.
_NO_EVENT = frozenset(
    "time times day days night nights morning evening afternoon week weeks weekend month months year years period "
    "moment career life childhood youth era reign journey course process beginning start middle end rest way past "
    "future fact one ones conversation conversations chat chats session sessions discussion discussions".split()
)
_TAIL = phrase(r" (?:in|to|at|of|with|from|for|on) ")


class Tied(NamedTuple):
    """Where a text ties its time to an event; the event's words end with the phrase."""

    start: int
    event_start: int
    end: int
    relation: Relation


def tied_to_event(text: str) -> Tied | None:
    """Return the event that the time of a question hangs on."""
    for pattern in _EVENTS:
        for match in pattern.finditer(text):
            head = _TAIL.split(match["event"])[0].split()[-1].lower()
            left = text[: match.start()]
            relation = _relation(match)
            of_verb = relation.side == "after" and VERB_AFTER.search(left)
            if not (head in _NO_EVENT or of_verb or ASKS_HOW_MUCH.search(left) or _BETWEEN.search(left)):
                return Tied(match.start(), match.start("event"), match.end(), relation)
    return None


def _relation(match: re.Match[str]) -> Relation:
    found = match.groupdict()
    if found.get("open"):
        return Relation(SIDES[words(found["open"])])
    if found.get("during"):
        return Relation("during")
    if found.get("on"):
        return Relation("of", "day")
    return Relation("of", found["of"].lower()) if found.get("of") else measured(match)
