"""Deontic rules of a text (C14): which sentences oblige, forbid or permit.

A closed set of patterns, not a parser: each rule looks at one word of a sentence and its neighbours, and what the
rules find is OR-ed. A question states no rule. Where the reference lexer was measured to miss what a reader takes
for a rule (contractions, "do not" before any verb, "X must not", "before …, run …") or to see one where there is
none ("No thanks", "use-case", "Build: failed"), the rules here differ from it on purpose.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from enum import IntFlag

from holdfast.text.sentences import IRREGULAR, Splitter
from holdfast.text.words import regex, words
from holdfast.values import dataclass


class Deontic(IntFlag):
    """What a text does to its reader; no flag means that it only describes."""

    OBLIGATION = 2
    FORBIDDEN = 4
    PERMITTED = 8


_NONE, _O, _F, _P = Deontic(0), Deontic.OBLIGATION, Deontic.FORBIDDEN, Deontic.PERMITTED

# ------------------------------------------------------------------------------------------------- words and clauses

# Identifiers, paths and compounds are one word each: `use_tabs` and "use-case" tell nobody to use anything.
_WORD = regex(r"\w+(?:['./_-]\w+)*")
# Marks of any kind may stand between the end of a sentence and the next: Markdown has many.
_RULES = Splitter(regex(r"[.!?][^\w\s]*(?=\s)|\n"), frozenset(words("deontic", "abbreviations")))
_CLAUSE_END = regex(r"[:;][^\w\s]*\s")
# What a quotation says is not said to the reader.
_OPENING_QUOTES = ('"', "'", "“", "‘", "«")
_LEADS = frozenset(words("deontic", "leads"))
_CONTRACTIONS = {word: (verb, "not") for word, verb in IRREGULAR.items()} | {"you're": ("you", "are")}


@dataclass(frozen=True, slots=True)
class _RuleWord:
    """One word, in lower case and as written, with the gap before it; `starts` when a command could begin here."""

    text: str
    raw: str
    gap: str
    starts: bool


@dataclass(frozen=True, slots=True)
class _RuleSentence:
    """The words of one sentence. Places outside it are empty, so that a rule may look ahead freely."""

    words: tuple[_RuleWord, ...]

    def at(self, i: int) -> str:
        """Return the i-th word in lower case."""
        return self.words[i].text if 0 <= i < len(self.words) else ""

    def gap(self, i: int) -> str:
        """Return what stands between the i-th word and the one before it."""
        return self.words[i].gap if 0 <= i < len(self.words) else ""

    def shouts(self, i: int) -> bool:
        """Return whether the i-th word is written in capitals."""
        return 0 <= i < len(self.words) and len(self.words[i].raw) > 1 and self.words[i].raw.isupper()

    def says(self, i: int, *phrase: str) -> bool:
        """Return whether `phrase` stands at the i-th word."""
        return self.at(i) == phrase[0] and all(self.at(i + k) == word for k, word in enumerate(phrase))


def _sentences(text: str) -> Iterator[_RuleSentence]:
    """Yield the sentences of `text` that are not questions."""
    text = text.replace("’", "'")
    ends = [*_RULES.ends(text), len(text)]
    found: list[_RuleWord] = []
    last, number = 0, 0
    for match in _WORD.finditer(text):
        gap = text[last : match.start()]
        last = match.end()
        if match.start() >= ends[number]:
            number = bisect_right(ends, match.start(), number)
            if found and "?" not in gap:
                yield _RuleSentence(tuple(found))
            found = []
        found.extend(_split(match.group(), gap, starts=_starts(found, gap)))
    if found and "?" not in text[last:]:
        yield _RuleSentence(tuple(found))


def _starts(before: list[_RuleWord], gap: str) -> bool:
    if gap.endswith(_OPENING_QUOTES):
        return False
    if not before or _CLAUSE_END.search(gap):
        return True
    return before[-1].starts and before[-1].text in _LEADS


def _split(raw: str, gap: str, *, starts: bool) -> Iterator[_RuleWord]:
    """Yield one word, or the two that a contraction stands for."""
    text = raw.lower()
    parts = _CONTRACTIONS.get(text) or ((text[:-3], "not") if text.endswith("n't") else (text,))
    yield _RuleWord(parts[0], raw, gap, starts)
    for part in parts[1:]:
        yield _RuleWord(part, raw, "", starts=False)


# ----------------------------------------------------------------------------------------------------- word lists


def _listed(name: str) -> frozenset[str]:
    return frozenset(words("deontic", name))


def _phrases(name: str) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(phrase.split()) for phrase in words("deontic", name))


_VERBS, _AFTER_A_NOUN, _NO_VERB, _NO_DUTY, _NO_BAN = map(
    _listed, ("verbs", "after_a_noun", "no_verb", "no_duty", "no_ban")
)
_STORY, _IDENTITY, _QUANTIFIERS, _SUBJECTS, _PRONOUNS = map(
    _listed, ("story", "identity", "quantifiers", "subjects", "pronouns")
)
_CONDITIONS, _LABELS, _STATUS, _AIMS, _BANNED, _DETERMINERS = map(
    _listed, ("conditions", "labels", "status", "aims", "banned", "determiners")
)
_LEAD_INS, _REMINDERS = _phrases("lead_ins"), _phrases("reminders")
_MODALS = {"must": _O, "shall": _O, "required": _O, "should": _O, "may": _P}

# How far a rule looks ahead, in words (the reference's windows, but for conditions: there real ones run past 14).
_AFTER_YOU, _AFTER_QUANTIFIER, _AFTER_SUBJECT, _AFTER_CONDITION, _EVENT_WORDS = 3, 5, 4, 20, 3

# --------------------------------------------------------------------------------------------------------- commands


def _imperative(s: _RuleSentence, i: int) -> Deontic:
    """Find “Use tabs”; pass over “Use of tabs”, “The goal is: use tabs” and the label “Build:”."""
    if s.at(i) not in _VERBS or s.at(i + 1) in _AFTER_A_NOUN:
        return _NONE
    labels = s.at(i) in _LABELS and s.gap(i + 1).startswith(":")
    states_aim = s.at(i - 1) == "is" and s.at(i - 2) in _AIMS and s.gap(i).startswith(":")
    return _NONE if labels or states_aim else _O


def _reminder(s: _RuleSentence, i: int) -> Deontic:
    """Find “Make sure that tests pass” and “Remember to sign off”."""
    return _O if any(s.says(i, *phrase) for phrase in _REMINDERS) else _NONE


def _prohibition(s: _RuleSentence, i: int) -> Deontic:
    """Find “Do not push” and “Never push”; “Never forget to push” obliges."""
    verb = s.at(i + 2) if s.says(i, "do", "not") else s.at(i + 1) if s.says(i, "never") else ""
    if verb == "forget":
        return _O
    return _F if _may_command(verb) else _NONE


def _always(s: _RuleSentence, i: int) -> Deontic:
    """Find “Always greet first” and “Strictly follow it”; pass over “Always kind”."""
    verb = s.at(i + 1)
    if s.at(i) in ("always", "strictly") and verb in _VERBS:
        return _O
    return _O if s.says(i, "always") and _may_command(verb) and s.at(i + 2) else _NONE


def _request(s: _RuleSentence, i: int) -> Deontic:
    """Find “Please greet first”; in “Please do not push” the prohibition speaks for itself."""
    verb = s.at(i + 1)
    asks = s.says(i, "please") and _may_command(verb) and verb not in ("do", "never", "no")
    return _O if asks and s.at(i + 2) else _NONE


def _may_command(word: str) -> bool:
    """Return whether a word may be an unlisted imperative; "Never assumes" is told of a third person."""
    third_person = word.endswith("s") and not word.endswith(("ss", "us"))
    return bool(word) and word not in _NO_VERB and not third_person


_COMMANDS = (_imperative, _reminder, _prohibition, _always, _request)


def _command(s: _RuleSentence, i: int) -> Deontic:
    return _any(_COMMANDS, s, i)


# ----------------------------------------------------------------------------------- rules for the start of a clause


def _refusal(s: _RuleSentence, i: int) -> Deontic:
    """Find “No needless copies”; pass over “No, we left” and “No thanks”."""
    what = s.at(i + 1)
    return _F if s.says(i, "no") and what and what not in _NO_BAN and "," not in s.gap(i + 1) else _NONE


def _conditional(s: _RuleSentence, i: int) -> Deontic:
    """Find a command behind the comma of “Before a commit, run them”."""
    if s.at(i) not in _CONDITIONS:
        return _NONE
    found = _NONE
    for j in range(i + 1, i + 1 + _AFTER_CONDITION):
        if any(mark in s.gap(j) for mark in ",;:"):
            found |= _command(s, j)
    return found


def _identity(s: _RuleSentence, i: int) -> Deontic:
    """Find “You are a careful reviewer”, “You are not a judge” and “You do not lecture”."""
    if s.at(i) != "you":
        return _NONE
    if s.says(i + 1, "do", "not"):
        return _F if s.at(i + 3) and s.at(i + 3) not in _NO_DUTY else _NONE
    if s.says(i + 1, "are", "not"):
        return _NONE if s.at(i + 3) == "required" else _F
    return _O if s.at(i + 1) in _IDENTITY else _NONE


def _quantified(s: _RuleSentence, i: int) -> Deontic:
    """Find “Every change must have a test”."""
    return _modals(s, i + 1, _AFTER_QUANTIFIER) if s.at(i) in _QUANTIFIERS else _NONE


def _subject(s: _RuleSentence, i: int) -> Deontic:
    """Find “Functions must return”, “The system shall stop” and “Tests should be kept short”."""
    i += s.at(i) == "the"
    if s.at(i) not in _SUBJECTS:
        return _NONE
    found = _NONE
    for j in range(i + 1, i + 1 + _AFTER_SUBJECT):
        if s.says(j, "should", "be"):
            found |= _O if s.at(j + 2) in _VERBS or s.at(j + 2).endswith("ed") else _NONE
        elif s.at(j) in ("must", "shall", "required") or s.says(j, "should", "not"):
            found |= _modal(s, j)
    return found


def _label(s: _RuleSentence, i: int) -> Deontic:
    """Find “Build: make all”; pass over “Build: failed”."""
    if s.at(i) not in _LABELS:
        return _NONE
    value = next((s.at(j) for j in (i + 1, i + 2) if s.gap(j).startswith(":")), "")
    return _O if value and value not in _STATUS else _NONE


def _field(s: _RuleSentence, i: int) -> Deontic:
    """Find “ERROR POLICY: fail early”."""
    shouted = s.shouts(i) and s.shouts(i + 1) and not s.says(i, "on")
    return _O if shouted and s.gap(i + 2).startswith(":") else _NONE


def _event(s: _RuleSentence, i: int) -> Deontic:
    """Find “ON TEST FAILURE -> stop”."""
    if not (s.says(i, "on") and s.shouts(i)):
        return _NONE
    for j in range(i + 1, i + 1 + _EVENT_WORDS):
        if not s.shouts(j):
            break
        if "->" in s.gap(j + 1) or "→" in s.gap(j + 1):
            return _O
    return _NONE


def _default(s: _RuleSentence, i: int) -> Deontic:
    """Find “Default requirement: every page has a title”."""
    return _O if s.says(i, "default", "requirement") and s.gap(i + 2).startswith(":") else _NONE


# ---------------------------------------------------------------------------------------------- rules for any word


def _you(s: _RuleSentence, i: int) -> Deontic:
    """Find “here you must wait” and “you may not enter”."""
    return _modals(s, i + 1, _AFTER_YOU)


def _must(s: _RuleSentence, i: int) -> Deontic:
    """Find “Secrets must not leave” and “Commits must be signed”; pass over “It must be late”."""
    if s.at(i + 1) in ("not", "never"):
        return _NONE if _tells_a_story(s, i + 1) else _F
    named = i > 0 and s.at(i - 1) not in _PRONOUNS
    return _O if named and s.at(i) == "must" and s.at(i + 1) in ("be", "always") and s.at(i + 2) else _NONE


def _capitals(s: _RuleSentence, i: int) -> Deontic:
    """Find “Features MUST have a test”: the capitals of RFC 2119."""
    if not s.shouts(i):
        return _NONE
    return _O if s.at(i) == "always" else _modal(s, i)


def _banned(s: _RuleSentence, i: int) -> Deontic:
    """Find “Force pushes are prohibited” and “Tabs are not allowed”."""
    before = (s.at(i - 2), s.at(i - 1))
    if s.at(i) in _BANNED and "not" not in before:
        return _F if {"is", "are", "be"} & set(before) else _NONE
    return _F if s.at(i) not in _BANNED and before in (("is", "not"), ("are", "not")) else _NONE


def _but(s: _RuleSentence, i: int) -> Deontic:
    """Find “we met, but check it” and “but do not change it”."""
    return (_F if s.at(i + 3) in _VERBS else _NONE) if s.says(i + 1, "do", "not") else _imperative(s, i + 1)


def _procedure(s: _RuleSentence) -> Deontic:
    """Find “to get it going open the folder then run make”: a lead-in, and no comma to help."""
    starts = (i for i in range(len(s.words)) if any(s.says(i, *phrase) for phrase in _LEAD_INS))
    found = _NONE
    for i in range(next(starts, len(s.words)), len(s.words)):
        if s.at(i) in _VERBS and s.at(i - 1) != "to" and s.at(i - 1) not in _DETERMINERS:
            found |= _F if s.at(i - 1) == "not" else _O
    return found


def _modals(s: _RuleSentence, i: int, window: int) -> Deontic:
    found = _NONE
    for j in range(i, i + window):
        found |= _modal(s, j)
    return found


def _modal(s: _RuleSentence, i: int) -> Deontic:
    """Return what the modal at the i-th word says, negated or not."""
    word, negated = s.at(i), s.at(i + 1) == "not"
    if _tells_a_story(s, i) or (word == "required" and s.at(i - 1) == "not"):
        return _NONE
    if word == "never" or (negated and (word == "can" or word in _MODALS)):
        return _F
    return _MODALS.get(word, _NONE)


def _tells_a_story(s: _RuleSentence, i: int) -> bool:
    return s.at(i + 2 if s.at(i + 1) == "to" else i + 1) in _STORY


# ------------------------------------------------------------------------------------------------------- the table

_DeonticRule = Callable[[_RuleSentence, int], Deontic]
_AT_START: tuple[_DeonticRule, ...] = (
    _command, _refusal, _conditional, _identity, _quantified, _subject, _label, _field, _event, _default,
)  # fmt: skip
# Elsewhere a rule hangs on one word.
_BY_WORD: dict[str, tuple[_DeonticRule, ...]] = {
    "you": (_you,),
    "but": (_but,),
    **dict.fromkeys(("must", "shall"), (_must, _capitals)),
    **dict.fromkeys(("required", "should", "may", "never", "always"), (_capitals,)),
    **dict.fromkeys((*_BANNED, "allowed", "permitted"), (_banned,)),
}


def _any(rules: tuple[_DeonticRule, ...], s: _RuleSentence, i: int) -> Deontic:
    found = _NONE
    for rule in rules:
        found |= rule(s, i)
    return found


def deontic(text: str) -> Deontic:
    """Return what `text` obliges, forbids and permits; falsy when it only describes."""
    found = _NONE
    for sentence in _sentences(text):
        found |= _procedure(sentence)
        for i, word in enumerate(sentence.words):
            rules = _BY_WORD.get(word.text, ())
            if rules or word.starts:
                found |= _any(_AT_START + rules if word.starts else rules, sentence, i)
    return found
