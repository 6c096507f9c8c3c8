"""Standing instructions: what a user tells the assistant to do from now on, and what is taken back again.

Precision before recall: what becomes one is shown with every question, outside of what is marked as untrusted. First
all that is not the author's own is taken away: what is quoted, pasted, or handed over to be read. Then a sentence has
to address the assistant (a command, "can you", "I prefer that you"), to say that it lasts (always, from now on, when
I ask), and to be about the user or the answers. Habits ("I always …"), reports and general wisdom become none.
"""

from __future__ import annotations

import re

from holdfast.text.sentences import PROSE, is_question, memoize_short, parts_in
from holdfast.text.terms import terms
from holdfast.text.words import any_of, entries, regex, words
from holdfast.types import Unit
from holdfast.values import dataclass

# In characters. What is longer was pasted, or tells a story.
_LONGEST_TURN, _LONGEST_SAID = 1_500, 320
# In a turn that asks for something, "please don't" is about that; one of so few sentences asks for nothing else.
_FEW = 2
# How much of its topic an instruction shares with what takes it back.
_SHARED = 0.6
# "Short and concise" against "long and detailed": rivals differ in few words.
_RIVAL_WORDS = 4
# So many words behind "summarise this" are what it is about; fewer are thanks.
_SOMETHING = 4
# Where words begin that are not the author's own: code, a block quote, what a line of dashes sets apart.
_PASTED = regex(r"```|~~~|^\s*>|^\s*[-=_*]{3,}", re.MULTILINE)
_QUOTED = regex(r"[\"“«„][^\"“”«»„]*[\"”“»]|(?<!\w)['‘‚][^'’]*['’](?!\w)")
# Behind a blank line so many sentences are no afterthought.
_BLANK, _PARAGRAPH = regex(r"\n[^\S\n]*\n"), 3
# Where another clause of a sentence begins.
_CLAUSE = regex(
    r"(?:[,;—–-] |\bso |\b(?:and|but) (?=please|don't|never|always|from now on|stop))(?:(?:so|and|but|also|then) )*"
)
_COLON, _BULLET = regex(r":(?=\s|$)"), regex(r"[-*•]\s|\d+[.)](?:\s|$)")
# Signs of a text that was not written to an assistant: the heads, the greeting and the close of a mail; markup of
# pages; a line that was wrapped.
_FOREIGN = regex(
    rf"^\W*{any_of('instructions', 'mail_heads')}:\s"
    rf"|\A\W*{any_of('instructions', 'mail_formal')} (?!{any_of('instructions', 'not_greeted')}\b)[^\n,.!?:]{{1,40}},"
    rf"|^[^\S\n]*{any_of('instructions', 'mail_greetings')} (?!{any_of('instructions', 'not_greeted')}\b)"
    r"[^\n,.!?:]{1,40}[,!:]?[^\S\n]*\n\s*\S"
    rf"|(?:\n[^\S\n]*|[.!?] +){any_of('instructions', 'mail_closes')}(?:,[^\S\n]|[,!.]?\s*\n)\s*\S[^\n]{{0,60}}"
    r"(?:\n[^\n]{0,60}){0,6}\s*\Z"
    r"|\b(?:previous|prior|above) instructions\b|``|:[a-z:]+:`|</?[a-z][a-z0-9]*[ >/]|^\s*\.\. "
    r"|^[^\n]{50,}[^\s.!?:…]\n[^\S\n]*\S",
    re.MULTILINE | re.IGNORECASE,
)
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
    """Return what a user's own turn tells the assistant; any other unit, or one taken back, tells it nothing."""
    own = unit.kind == "turn" and unit.author == "user" and "standing" not in unit.overruled
    return read_instructions(unit.text) if own else ()


@memoize_short
def read_instructions(text: str) -> tuple[Instruction, ...]:
    """Return the standing instructions of a text, and what it takes back, in reading order."""
    if len(text) > _LONGEST_TURN or _CUES.isdisjoint(parts_in(text)):
        return ()
    own = own_words(text.replace("’", "'"))
    spans = [span for span in _with_afterthoughts(own) if span[1] - span[0] <= _LONGEST_SAID]
    said = [_Sentence(text, own, *span, alone=len(spans) <= _FEW) for span in spans]
    found = [one.read() or one.read_clauses() for one in said]
    of_me = any(one.is_of_me for one in said)
    plain = [one.read_plain(of_me=of_me) for one in said]
    # "Don't use emojis." is for good where the turn asks for nothing else; what somebody tells of themselves asks for
    # nothing.
    if all(
        one or other or sentence.is_polite or sentence.is_of_me
        for one, other, sentence in zip(found, plain, said, strict=True)
    ):
        found = [one or other for one, other in zip(found, plain, strict=True)]
    return tuple(one for one in found if one is not None)


def _with_afterthoughts(own: str) -> list[tuple[int, int]]:
    """Return where sentences start and end; "Every time." belongs to the one before it."""
    spans: list[tuple[int, int]] = []
    for start, end in PROSE.spans(own):
        joined = bool(spans) and _PATTERNS["afterthought"].fullmatch(own[start:end].lower()) is not None
        spans.append((spans.pop()[0] if joined else start, end))
    return spans


def own_words(text: str) -> str:
    """Return what of a turn its author says in their own name, with blanks for what they quote.

    What is handed over to be read ("summarise this", "he wrote"), what a colon announces, code, block quotes and
    lists are somebody else's, with all that follows; so is a whole mail, a page, and text whose lines were wrapped.
    """
    if _FOREIGN.search(text):
        return ""
    parts = _BLANK.split(text)
    if len(parts) > 1 and any(len(PROSE.spans(part)) >= _PARAGRAPH for part in parts[1:]):
        text = parts[0]
    own, listed = _QUOTED.sub(lambda match: f'"{" " * (len(match[0]) - 2)}"', text), False
    if pasted := _PASTED.search(own):
        own = own[: pasted.start()]
    for start, end in PROSE.spans(own):
        said = " ".join(own[start:end].lower().split())
        if _is_handed_over(said):
            # With nothing behind it, it is about what stands before it.
            return own[:start] if pasted or len(text[end:].split()) >= _SOMETHING else ""
        if _PATTERNS["own_list"].match(said):
            listed = True
        elif colon := _COLON.search(own, start, end):
            return own[: colon.start()]
        elif not listed and _BULLET.match(said):
            return own[:start]
    return own


def _is_handed_over(said: str) -> bool:
    """Return whether a sentence gives the assistant a text to work on, for this once."""
    at = 0
    while match := _PATTERNS["lead"].match(said, at):
        if match["lasts"] or match["about"] or match["topical"]:
            return _PATTERNS["received"].search(said) is not None
        at = match.end()
    if put := _PATTERNS["put"].match(said, at):
        at = put.end()
    # "Correct my mistakes whenever I write to you": no text is given with what is for more than this once.
    handed = _PATTERNS["handed"].match(said, at) and not _PATTERNS["kept_up"].match(said)
    return bool(handed or _PATTERNS["received"].search(said))


class _Sentence:
    """One sentence while it is read: where its core starts, and whether it has said by then that it lasts."""

    def __init__(self, text: str, own: str, start: int, end: int, *, alone: bool) -> None:
        self.asked, self.alone = is_question(own, start, end), alone
        self.announces = text[end : end + 1] == ":"
        # What it announces goes with it as it was written: "always use this format: day, month".
        self.text = text[start:end] + (text[end:].split("\n", 1)[0] if self.announces else "")
        self.said = " ".join(own[start:end].lower().split())
        self.start, self.at, self.lasts, self.never, self.at_times = 0, 0, False, False, False
        self._skip()
        self.core = self.at

    def _skip(self) -> None:
        """Pass over what comes before the instruction."""
        while match := self._match("lead"):
            self.at = match.end()
            self.at_times |= _PATTERNS["when"].match(match[0]) is not None
            self.lasts |= (
                bool(match["lasts"] or match["about"] or match["topical"])
                or _PATTERNS["from_now"].search(match[0]) is not None
            )
            self.never |= match[0].startswith("never")

    def _match(self, name: str) -> re.Match[str] | None:
        return _PATTERNS[name].match(self.said, self.at)

    @property
    def is_polite(self) -> bool:
        """Return whether it says nothing beside what leads to another one."""
        return _PATTERNS["polite"].fullmatch(self.said) is not None

    @property
    def is_of_me(self) -> bool:
        """Return whether it only tells something of the user."""
        return not self.asked and _PATTERNS["of_me"].match(self.said) is not None

    def read(self) -> Instruction | None:
        """Return the instruction that it is, or what it takes back."""
        if not self.asked and (revoked := self._match("revoked")):
            topic = _topic(about := self.said[revoked.end() :])
            known = topic or (revoked["all"] and len(about) <= 1)
            return Instruction(self.text, topic, revokes=True) if known else None
        found = self._found()
        if found is None or _PATTERNS["idiom"].search(self.said):
            return None
        return self._told(found)

    def read_clauses(self) -> Instruction | None:
        """Return an instruction that stands behind something else: "I use grams, so please stop giving me cups."."""
        for clause in _CLAUSE.finditer(self.said):
            if self.asked or _PATTERNS["reported"].search(self.said, 0, clause.start()):
                return None
            # "They cheer me up and always make me smile": what somebody does, told on.
            if clause[0].endswith("and ") and _PATTERNS["habit"].match(self.said, clause.end()):
                continue
            self.at = clause.end()
            # "I'm colour-blind, so never use red": whose sentence it is says for whom that is.
            mine = self.is_of_me and "so " in clause[0]
            if mine and _PATTERNS["of_others"].search(self.said, self.at):
                return None
            self.start = 0 if mine else self.at
            self.lasts = self.never = self.at_times = self.alone = False
            self._skip()
            if found := self._found():
                return self._told(found)
        return None

    def read_plain(self, *, of_me: bool) -> Instruction | None:
        """Return the instruction that it is where nothing else is asked for: "Keep answers short."."""
        if self.asked or self.announces or _PATTERNS["told_on"].search(self.said):
            return None
        mine = self.is_of_me and not _PATTERNS["of_others"].search(self.said)
        clauses = _CLAUSE.finditer(self.said) if mine else ()
        places = [self.core, 0, *(one.end() for one in clauses)]
        names = ("plain", "plain_mine") if of_me or _PATTERNS["please"].search(self.said) else ("plain",)
        found = next((hit for at in places for name in names if (hit := _PATTERNS[name].match(self.said, at))), None)
        if found is None or _PATTERNS["moment"].search(self.said) or _PATTERNS["idiom"].search(self.said):
            return None
        return self._told(found)

    def _found(self) -> re.Match[str] | None:
        """Return what asks for something to last; a question only asks for it by "can you"."""
        if self.asked:
            return self._command()
        if _PATTERNS["told_on"].search(self.said):
            return None
        foreign = self._match("foreign_named") or self._match("foreign")
        return self._wished() or self._command() or foreign or self._shaped() or self._match("formed")

    def _wished(self) -> re.Match[str] | None:
        """Return what the user wishes of the answers."""
        wish = self._match("wish") or (self._match("complaint") if self.lasts or self.alone else None)
        hoped, limited = self._match("hoped"), self._match("limited")
        if hoped and (self.lasts or self._is_marked(hoped.end(), "ever")):
            return hoped
        if limited and (self.lasts or self._is_marked(limited.end())):
            return limited
        return wish or (self._match("kindly") if _PATTERNS["from_now"].search(self.said) else None)

    def _shaped(self) -> re.Match[str] | None:
        """Return a command or wish in any words, where the sentence says that it lasts and that it is about us."""
        if _PATTERNS["shaped_once"].search(self.said):
            return None
        wished, shaped = self._match("hoped_you"), self._match("shaped")
        found = wished or (shaped if _PATTERNS["shaped_to"].search(self.said, self.start) else None)
        if found is None or self.lasts:
            return found
        marked = _PATTERNS["shaped_for"].search(self.said)
        inner = marked and _PATTERNS["shaped_clause"].search(self.said, found.end(), max(found.end(), marked.start()))
        return found if marked and not inner else None

    def _is_marked(self, behind: int, by: str = "marked") -> bool:
        """Return whether the sentence says that it is for more than once, not in a clause of its own."""
        marked = _PATTERNS[by].search(self.said)
        return marked is not None and not _PATTERNS["clause"].search(self.said, behind, max(behind, marked.start()))

    def _told(self, found: re.Match[str]) -> Instruction:
        forbids = self.never or bool(_PATTERNS["negated"].search(found[0]))
        names = found.re.pattern in (_PATTERNS["named"].pattern, _PATTERNS["foreign_named"].pattern)
        at_times = bool(_PATTERNS["when"].search(self.said))
        return Instruction(
            self.text, _topic(self.said), "name" if names and not forbids else "", forbids, at_times=at_times
        )

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
        return self._match("named") or self._match("stop_us") or stop or standing

    def _stands(self, command: re.Match[str], *, general: bool) -> bool:
        """Return whether a command is for more than this once, and for an assistant."""
        said, behind = self.said, command.end()
        if _PATTERNS["when_you"].match(said, self.start):
            return True
        if _PATTERNS["told_when"].search(said, behind):
            return True
        if self.at_times or _PATTERNS["reminded"].match(said, command.start()):
            return True
        if self.lasts or command["ever"] or self._is_marked(behind):
            if (
                command["verb"]
                and not general
                and (_PATTERNS["spoken"].match(said, command.start("verb")) or _PATTERNS["from_now"].search(said))
            ):
                return True
            return bool(_PATTERNS["to_us"].search(said, self.start))
        # "Please don't" is for good, unless it names a moment.
        kindly = self.alone and command["verb"] and "please" in said[: self.at]
        return bool(
            kindly and _PATTERNS["negated"].search(command[0]) and not _PATTERNS["moment"].search(said, behind)
        )


def _topic(said: str) -> frozenset[str]:
    """Return the stems that tell one instruction from another."""
    return frozenset(term for term in terms(said) if term not in _GENERIC and not term.isdigit())
