"""Standing instructions: what a user tells the assistant to do from now on, and what is taken back again.

Precision before recall: what becomes one is shown with every question. A sentence has to address the assistant (a
command, "can you", "I prefer that you") and to say that it lasts (always, from now on, when I ask). Habits ("I always
…"), reports, general wisdom and quoted or pasted text become none.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from holdfast.text.sentences import PROSE, is_question, memoize_short, parts_in
from holdfast.text.terms import terms
from holdfast.text.words import any_of, entries, regex, words
from holdfast.types import Unit

# In characters. What is longer was pasted, or tells a story.
_LONGEST_TURN, _LONGEST_SAID = 1_500, 320
# In a turn that asks for something, "please don't" is about that; one of so few sentences asks for nothing else.
_FEW = 2
# How much of its topic an instruction shares with what takes it back.
_SHARED = 0.6
# "Short and concise" against "long and detailed": rivals differ in few words.
_RIVAL_WORDS = 4
# Where words begin that are not the author's own: code, a block quote, a list, whatever a line announces.
_PASTED = regex(r"```|^\s*>|:[ \t]*$|^\s*(?:[-*•]|\d+[.)])\s", re.MULTILINE)
_QUOTED = regex(r"[\"“«][^\"“”«»]*[\"”»]|(?<!\w)['‘][^'’]*['’](?!\w)")
_LISTED = regex(r"\{([a-z_]+)\}")


def _compiled() -> dict[str, re.Pattern[str]]:
    """Return the patterns of the data file by name, with the lists and earlier patterns that they name filled in."""
    found: dict[str, re.Pattern[str]] = {}
    for name, alternatives in entries("instructions", "patterns").items():
        text = _LISTED.sub(
            lambda match: f"(?:{found[match[1]].pattern})" if match[1] in found else any_of("instructions", match[1]),
            "|".join(alternatives),
        )
        found[name] = regex(text)
    return found


_PATTERNS = _compiled()
_CUES = frozenset(words("instructions", "cues"))
_TALKING, _GENERIC = (frozenset(terms(" ".join(words("instructions", name)))) for name in ("verbs", "generic"))
_ALTERNATIVES = tuple(frozenset(terms(line)) for line in words("instructions", "alternatives"))


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction, or what takes one back: its sentence, and the stems of what it is about.

    Without a topic, what `revokes` takes back everything. Of those with one `slot` only the last one holds. What
    holds `at_times` is for some questions only ("when I ask about …").
    """

    text: str
    topic: frozenset[str]
    slot: str = ""
    forbids: bool = False
    revokes: bool = False
    at_times: bool = False

    def ends(self, earlier: Instruction) -> bool:
        """Return whether this one, said later, takes the place of an earlier one or takes it back."""
        if self.revokes:
            return len(self.topic & earlier.topic) >= _SHARED * len(self.topic)
        if self.slot or earlier.slot:
            return self.slot == earlier.slot
        if self.forbids != earlier.forbids:
            return len(self.topic & earlier.topic) >= _SHARED * min(len(self.topic), len(earlier.topic)) > 0
        differing = self.topic ^ earlier.topic
        rivals = 1 < len(differing) <= _RIVAL_WORDS and not differing <= self.topic and not differing <= earlier.topic
        return not differing or (rivals and any(differing <= group for group in _ALTERNATIVES))


def instructions_of(unit: Unit) -> tuple[Instruction, ...]:
    """Return what a user's own turn tells the assistant; any other unit tells it nothing."""
    return read_instructions(unit.text) if unit.kind == "turn" and unit.author == "user" else ()


@memoize_short
def read_instructions(text: str) -> tuple[Instruction, ...]:
    """Return the standing instructions of a text, and what it takes back, in reading order."""
    if len(text) > _LONGEST_TURN or _CUES.isdisjoint(parts_in(text)):
        return ()
    own = _QUOTED.sub(lambda match: f'"{" " * (len(match[0]) - 2)}"', text.replace("’", "'"))
    if pasted := _PASTED.search(own):
        own = own[: pasted.start()]
    spans = [span for span in PROSE.spans(own) if span[1] - span[0] <= _LONGEST_SAID]
    found = (_Sentence(text, own, *span, alone=len(spans) <= _FEW).read() for span in spans)
    return tuple(one for one in found if one is not None)


class _Sentence:
    """One sentence while it is read: where its core starts, and whether it has said by then that it lasts."""

    def __init__(self, text: str, own: str, start: int, end: int, *, alone: bool) -> None:
        self.text, self.asked, self.alone = text[start:end], is_question(own, start, end), alone
        self.said = " ".join(own[start:end].lower().split())
        self.at, self.lasts, self.never = 0, False, False
        self._skip()

    def _skip(self) -> None:
        """Pass over what comes before the instruction."""
        while match := self._match("lead"):
            self.at = match.end()
            self.lasts |= match["lasts"] is not None
            self.never |= match[0].startswith("never")

    def _match(self, name: str) -> re.Match[str] | None:
        return _PATTERNS[name].match(self.said, self.at)

    def read(self) -> Instruction | None:
        """Return the instruction that it is, or what it takes back."""
        if not self.asked and (revoked := self._match("revoked")):
            topic = _topic(about := self.said[revoked.end() :])
            known = topic or (revoked["all"] and len(about) <= 1)
            return Instruction(self.text, topic, revokes=True) if known else None
        wish = self._match("wish") or (self._match("complaint") if self.lasts or self.alone else None)
        found = (None if self.asked else wish) or self._command()
        if found is None or _PATTERNS["idiom"].search(self.said):
            return None
        forbids = self.never or bool(_PATTERNS["negated"].search(found[0]))
        slot = "name" if found.re.pattern == _PATTERNS["named"].pattern and not forbids else ""
        at_times = bool(_PATTERNS["when"].search(self.said))
        return Instruction(self.text, _topic(self.said), slot, forbids, at_times=at_times)

    def _command(self) -> re.Match[str] | None:
        """Return what the assistant is told to do, as a command or as a question."""
        if put := self._match("put"):
            self.at = put.end()
            self._skip()
        if self.asked and not (put and put["asks"]):
            return None
        stop = self._match("stop") if self.alone else None
        if stop and stop["gerund"] and _TALKING.isdisjoint(terms(stop["gerund"])):
            stop = None
        command = self._match("command")
        standing = command if command and self._stands(command, general=bool(put and put["you"])) else None
        return self._match("named") or stop or standing

    def _stands(self, command: re.Match[str], *, general: bool) -> bool:
        """Return whether a command is for more than this once, and for an assistant."""
        said, behind = self.said, command.end()
        marked = _PATTERNS["marked"].search(said)
        told = marked is not None and not _PATTERNS["clause"].search(said, behind, max(behind, marked.start()))
        if self.lasts or told or command["ever"]:
            return bool((command["verb"] and not general) or _PATTERNS["to_us"].search(said))
        # "Please don't" is for good, unless it names a moment.
        kindly = self.alone and command["verb"] and "please" in said[: self.at]
        return bool(
            kindly and _PATTERNS["negated"].search(command[0]) and not _PATTERNS["moment"].search(said, behind)
        )


def _topic(said: str) -> frozenset[str]:
    """Return the stems that tell one instruction from another."""
    return frozenset(term for term in terms(said) if term not in _GENERIC and not term.isdigit())
