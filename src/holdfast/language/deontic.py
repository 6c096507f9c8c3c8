"""Deontic rules of a text (C14): which sentences oblige, forbid or permit.

A closed set of patterns, not a parser: each rule looks at one word of a sentence and its neighbours, and what the
rules find is OR-ed. A question states no rule. Where the reference lexer was measured to miss what a reader takes
for a rule (contractions, "do not" before any verb, "X must not", "before …, run …") or to see one where there is
none ("No thanks", "use-case", "Build: failed"), the rules here differ from it on purpose.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntFlag

from holdfast.language.clauses import Sentence, sentences


class Deontic(IntFlag):
    """What a text does to its reader; no flag means that it only describes."""

    OBLIGATION = 2
    FORBIDDEN = 4
    PERMITTED = 8


_NONE, _O, _F, _P = Deontic(0), Deontic.OBLIGATION, Deontic.FORBIDDEN, Deontic.PERMITTED

# ----------------------------------------------------------------------------------------------------- word lists

# The reference's closed list: at the start of a sentence these are read as imperatives.
_VERBS = frozenset(
    """act answer ask avoid be build bypass change check cite compromise consult create delete deny design eliminate
    ensure escalate follow format ground implement include inspect keep leak maintain mark modify pitch prefer
    preserve prioritize promise read rebuild reduce refactor refer reference reject republish rerun retreat return
    reveal rewrite run signal skip structure suggest treat trust update use validate verify weaken wipe
    write""".split()
    # Ours: frequent in rules, rarely nouns.
    + "add choose confirm describe explain install prioritise put remove replace respond stay tell".split()
)
# A listed verb before one of these is a noun: "Use of force", "Change is good".
_AFTER_A_NOUN = frozenset("of is are was were has had can will must should may".split())
# What may follow "never", "always" or "please" without making a command.
_NO_VERB = frozenset(
    """a an the this that these those my your our his her its their i we you he she it they there here in on at of to
    for with by from as and or but not so if because is are was were have has had did does again before since mind
    too more much many once yet""".split()
)
# "You do not have to" frees; it does not forbid.
_NO_DUTY = frozenset("need have want know".split())
# "No" before one of these is an answer or a remark.
_NO_BAN = frozenset(
    """thanks thank problem problems worries doubt one idea matter wonder way longer need such i we you he she it they
    there this that""".split()
)
_MODALS = {"must": _O, "shall": _O, "required": _O, "should": _O, "may": _P}
# "You must imagine …" tells a story.
_STORY = frozenset("imagine picture envision suppose".split())
_IDENTITY = frozenset("are speak reference ask always".split())
_QUANTIFIERS = frozenset("every each all any".split())
# What rules are written about, besides "you".
_SUBJECTS = frozenset(
    """functions code logic tests work system agent agents assistant answers replies responses commits changes files
    names comments docs documentation contributors reviewers""".split()
)
_PRONOUNS = frozenset("i we he she it they there this that these those who which what".split())
# Openers of a clause whose main clause, after a comma, may be a command.
_CONDITIONS = frozenset("if when whenever unless before after once while until for in to".split())
_LEAD_INS = (("to", "get"), ("if", "you", "need"), ("if", "you", "hit"), ("the", "tests", "are"))
_REMINDERS = (("make", "sure"), ("remember", "to"))
_LABELS = frozenset("build test lint benchmarks production development".split())
# "Build: failed" reports; "Build: make all" tells.
_STATUS = frozenset("yes no ok done failed failing passed passing pending broken green red".split())
_AIMS = frozenset("goal purpose aim idea point".split())
_BANNED = frozenset("prohibited forbidden disallowed".split())
_DETERMINERS = frozenset("a an the this that my your our its".split())

# How far a rule looks ahead, in words (the reference's windows, but for conditions: there real ones run past 14).
_AFTER_YOU, _AFTER_QUANTIFIER, _AFTER_SUBJECT, _AFTER_CONDITION, _EVENT_WORDS = 3, 5, 4, 20, 3

# --------------------------------------------------------------------------------------------------------- commands


def _imperative(s: Sentence, i: int) -> Deontic:
    """Find “Use tabs”; pass over “Use of tabs”, “The goal is: use tabs” and the label “Build:”."""
    if s.at(i) not in _VERBS or s.at(i + 1) in _AFTER_A_NOUN:
        return _NONE
    labels = s.at(i) in _LABELS and s.gap(i + 1).startswith(":")
    states_aim = s.at(i - 1) == "is" and s.at(i - 2) in _AIMS and s.gap(i).startswith(":")
    return _NONE if labels or states_aim else _O


def _reminder(s: Sentence, i: int) -> Deontic:
    """Find “Make sure that tests pass” and “Remember to sign off”."""
    return _O if any(s.says(i, *phrase) for phrase in _REMINDERS) else _NONE


def _prohibition(s: Sentence, i: int) -> Deontic:
    """Find “Do not push” and “Never push”; “Never forget to push” obliges."""
    verb = s.at(i + 2) if s.says(i, "do", "not") else s.at(i + 1) if s.says(i, "never") else ""
    if verb == "forget":
        return _O
    return _F if _may_command(verb) else _NONE


def _always(s: Sentence, i: int) -> Deontic:
    """Find “Always greet first” and “Strictly follow it”; pass over “Always kind”."""
    verb = s.at(i + 1)
    if s.at(i) in ("always", "strictly") and verb in _VERBS:
        return _O
    return _O if s.says(i, "always") and _may_command(verb) and s.at(i + 2) else _NONE


def _request(s: Sentence, i: int) -> Deontic:
    """Find “Please greet first”; in “Please do not push” the prohibition speaks for itself."""
    verb = s.at(i + 1)
    asks = s.says(i, "please") and _may_command(verb) and verb not in ("do", "never", "no")
    return _O if asks and s.at(i + 2) else _NONE


def _may_command(word: str) -> bool:
    """Return whether a word may be an unlisted imperative; "Never assumes" is told of a third person."""
    third_person = word.endswith("s") and not word.endswith(("ss", "us"))
    return bool(word) and word not in _NO_VERB and not third_person


_COMMANDS = (_imperative, _reminder, _prohibition, _always, _request)


def _command(s: Sentence, i: int) -> Deontic:
    return _any(_COMMANDS, s, i)


# ----------------------------------------------------------------------------------- rules for the start of a clause


def _refusal(s: Sentence, i: int) -> Deontic:
    """Find “No needless copies”; pass over “No, we left” and “No thanks”."""
    what = s.at(i + 1)
    return _F if s.says(i, "no") and what and what not in _NO_BAN and "," not in s.gap(i + 1) else _NONE


def _conditional(s: Sentence, i: int) -> Deontic:
    """Find a command behind the comma of “Before a commit, run them”."""
    if s.at(i) not in _CONDITIONS:
        return _NONE
    found = _NONE
    for j in range(i + 1, i + 1 + _AFTER_CONDITION):
        if any(mark in s.gap(j) for mark in ",;:"):
            found |= _command(s, j)
    return found


def _identity(s: Sentence, i: int) -> Deontic:
    """Find “You are a careful reviewer”, “You are not a judge” and “You do not lecture”."""
    if s.at(i) != "you":
        return _NONE
    if s.says(i + 1, "do", "not"):
        return _F if s.at(i + 3) and s.at(i + 3) not in _NO_DUTY else _NONE
    if s.says(i + 1, "are", "not"):
        return _NONE if s.at(i + 3) == "required" else _F
    return _O if s.at(i + 1) in _IDENTITY else _NONE


def _quantified(s: Sentence, i: int) -> Deontic:
    """Find “Every change must have a test”."""
    return _modals(s, i + 1, _AFTER_QUANTIFIER) if s.at(i) in _QUANTIFIERS else _NONE


def _subject(s: Sentence, i: int) -> Deontic:
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


def _label(s: Sentence, i: int) -> Deontic:
    """Find “Build: make all”; pass over “Build: failed”."""
    if s.at(i) not in _LABELS:
        return _NONE
    value = next((s.at(j) for j in (i + 1, i + 2) if s.gap(j).startswith(":")), "")
    return _O if value and value not in _STATUS else _NONE


def _field(s: Sentence, i: int) -> Deontic:
    """Find “ERROR POLICY: fail early”."""
    shouted = s.shouts(i) and s.shouts(i + 1) and not s.says(i, "on")
    return _O if shouted and s.gap(i + 2).startswith(":") else _NONE


def _event(s: Sentence, i: int) -> Deontic:
    """Find “ON TEST FAILURE -> stop”."""
    if not (s.says(i, "on") and s.shouts(i)):
        return _NONE
    for j in range(i + 1, i + 1 + _EVENT_WORDS):
        if not s.shouts(j):
            break
        if "->" in s.gap(j + 1) or "→" in s.gap(j + 1):
            return _O
    return _NONE


def _default(s: Sentence, i: int) -> Deontic:
    """Find “Default requirement: every page has a title”."""
    return _O if s.says(i, "default", "requirement") and s.gap(i + 2).startswith(":") else _NONE


# ---------------------------------------------------------------------------------------------- rules for any word


def _you(s: Sentence, i: int) -> Deontic:
    """Find “here you must wait” and “you may not enter”."""
    return _modals(s, i + 1, _AFTER_YOU)


def _must(s: Sentence, i: int) -> Deontic:
    """Find “Secrets must not leave” and “Commits must be signed”; pass over “It must be late”."""
    if s.at(i + 1) in ("not", "never"):
        return _NONE if _tells_a_story(s, i + 1) else _F
    named = i > 0 and s.at(i - 1) not in _PRONOUNS
    return _O if named and s.at(i) == "must" and s.at(i + 1) in ("be", "always") and s.at(i + 2) else _NONE


def _capitals(s: Sentence, i: int) -> Deontic:
    """Find “Features MUST have a test”: the capitals of RFC 2119."""
    if not s.shouts(i):
        return _NONE
    return _O if s.at(i) == "always" else _modal(s, i)


def _banned(s: Sentence, i: int) -> Deontic:
    """Find “Force pushes are prohibited” and “Tabs are not allowed”."""
    before = (s.at(i - 2), s.at(i - 1))
    if s.at(i) in _BANNED and "not" not in before:
        return _F if {"is", "are", "be"} & set(before) else _NONE
    return _F if s.at(i) not in _BANNED and before in (("is", "not"), ("are", "not")) else _NONE


def _but(s: Sentence, i: int) -> Deontic:
    """Find “we met, but check it” and “but do not change it”."""
    return (_F if s.at(i + 3) in _VERBS else _NONE) if s.says(i + 1, "do", "not") else _imperative(s, i + 1)


def _procedure(s: Sentence) -> Deontic:
    """Find “to get it going open the folder then run make”: a lead-in, and no comma to help."""
    starts = (i for i in range(len(s.words)) if any(s.says(i, *phrase) for phrase in _LEAD_INS))
    found = _NONE
    for i in range(next(starts, len(s.words)), len(s.words)):
        if s.at(i) in _VERBS and s.at(i - 1) != "to" and s.at(i - 1) not in _DETERMINERS:
            found |= _F if s.at(i - 1) == "not" else _O
    return found


def _modals(s: Sentence, i: int, window: int) -> Deontic:
    found = _NONE
    for j in range(i, i + window):
        found |= _modal(s, j)
    return found


def _modal(s: Sentence, i: int) -> Deontic:
    """Return what the modal at the i-th word says, negated or not."""
    word, negated = s.at(i), s.at(i + 1) == "not"
    if _tells_a_story(s, i) or (word == "required" and s.at(i - 1) == "not"):
        return _NONE
    if word == "never" or (negated and (word == "can" or word in _MODALS)):
        return _F
    return _MODALS.get(word, _NONE)


def _tells_a_story(s: Sentence, i: int) -> bool:
    return s.at(i + 2 if s.at(i + 1) == "to" else i + 1) in _STORY


# ------------------------------------------------------------------------------------------------------- the table

_Rule = Callable[[Sentence, int], Deontic]
_AT_START: tuple[_Rule, ...] = (
    _command, _refusal, _conditional, _identity, _quantified, _subject, _label, _field, _event, _default,
)  # fmt: skip
# Elsewhere a rule hangs on one word.
_BY_WORD: dict[str, tuple[_Rule, ...]] = {
    "you": (_you,),
    "but": (_but,),
    **dict.fromkeys(("must", "shall"), (_must, _capitals)),
    **dict.fromkeys(("required", "should", "may", "never", "always"), (_capitals,)),
    **dict.fromkeys((*_BANNED, "allowed", "permitted"), (_banned,)),
}


def _any(rules: tuple[_Rule, ...], s: Sentence, i: int) -> Deontic:
    found = _NONE
    for rule in rules:
        found |= rule(s, i)
    return found


def deontic(text: str) -> Deontic:
    """Return what `text` obliges, forbids and permits; falsy when it only describes."""
    found = _NONE
    for sentence in sentences(text):
        found |= _procedure(sentence)
        for i, word in enumerate(sentence.words):
            rules = _BY_WORD.get(word.text, ())
            if rules or word.starts:
                found |= _any(_AT_START + rules if word.starts else rules, sentence, i)
    return found
