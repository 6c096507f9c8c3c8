"""Piece → what it is for: role, condition and the acts it serves (C1). English rules, first match wins.

A word counts only as a whole word, and a role is given on what the text says: without any sign of another, a piece of
a document is a Description.
"""

from __future__ import annotations

import re
from itertools import chain

from holdfast.language.deontic import Deontic, deontic
from holdfast.types import ROLES, PieceKind, Role


def _words(*patterns: str) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{'|'.join(patterns)})\b", re.IGNORECASE)


# With one of these a rule binds; a rule without is an instruction.
_BINDING = _words(
    "must", "shall", "should", "never", "always", "may", "not", r"\w+n't", "only", "required", "forbidden"
)
# These bind whoever they are said of; "must have been" only guesses.
_BINDS = _words("must(?! have)", "shall", "(?:is|are) (?:not allowed|forbidden|prohibited|required|mandatory)")
_COMPARES = _words(
    "versus", "vs", "compared (?:to|with)", "in contrast", "unlike", "whereas", "differences? between",
    r"(?:more|less|fewer) \w+ than", r"(?!rather|other)\w{3,}er than",
)  # fmt: skip
_DIAGNOSES = _words(
    "symptoms?", "troubleshoot(?:ing)?", "root cause", "stack ?trace", "error message", "crash(?:es|ed)?",
    "(?:fails?|failed) (?:to|with)", "does(?: not|n't) (?:work|start|respond)", "went wrong",
)  # fmt: skip
_DEFINES = _words("(?<!by )means(?! of| that)", "refers? to", "(?:is|are) defined as", "stands for", "is called")
# "A fender is a cushion": an indefinite thing is told what it is.
_IS_A = re.compile(r"an?\s+[\w-]+(?:\s+[\w-]+){0,3}\s+is\s+(?:an?|any|the)\s", re.IGNORECASE)
_EVALUATES = _words(
    "advantages?", "disadvantages?", "drawbacks?", "pros and cons", "trade-?offs?", "recommend(?:ed|s)?",
    "prefer(?:s|red)?", "the best", "the worst", "better", "worse", "worth",
)  # fmt: skip
# "To start the pump, open the valve"; not "To me, it is ugly".
_INSTRUCTS = re.compile(
    r"to\s+\w+[^.?!]{0,120}?,\s+(?!(?:an?|the|this|that|there|i|you|he|she|it|we|they)\b)\w"
    r"|first,\s|step\s+\d+\b|how\s+to\s",
    re.IGNORECASE,
)
_EXPLAINS = _words("because", "therefore", "the reason", "as a result", "due to", "(?:that|which) is why", "thus")
_TELLS = _words(
    r"(?:in|since|until) (?:1[5-9]|20)\d\d", "yesterday", "(?:last|that) (?:night|week|month|year|summer|winter)",
    "happened", "began", r"(?:i|we|he|she|they) (?:was|were|went|had|met|found|saw|came|left|took|\w{2,}ed)",
)  # fmt: skip
_PATTERNS: tuple[tuple[re.Pattern[str], Role], ...] = (
    (_COMPARES, "Comparison"),
    (_DIAGNOSES, "Diagnostic"),
    (_DEFINES, "Definition"),
    (_EVALUATES, "Evaluation"),
    (_EXPLAINS, "Explanation"),
    (_TELLS, "Narrative"),
)
# What a heading says of the pieces below it that say nothing themselves.
_HEADINGS: tuple[tuple[re.Pattern[str], Role], ...] = (
    (_words("troubleshooting", "known issues", "problems", "diagnosis"), "Diagnostic"),
    (_words("how to", "steps?", "install(?:ation|ing)?", "set-?up", "getting started", "instructions?"), "Procedure"),
    (_words("glossary", "definitions?", "terminology", "terms"), "Definition"),
    (_words("rules?", "requirements?", "constraints?", "limits?", "policy", "policies"), "Constraint"),
    (_words("comparison", r"vs\.?", "versus", "alternatives?"), "Comparison"),
    (_words("history", "story", "timeline"), "Narrative"),
    (_words("why", "rationale", "background"), "Explanation"),
    (_words("evaluation", "review", "assessment", "verdict"), "Evaluation"),
)
_PROSE: frozenset[PieceKind] = frozenset({"paragraph", "list", "item"})
# A paragraph below "Installation" may say anything; its lists and its code are what is done.
_UNDER = dict.fromkeys(ROLES, _PROSE) | {"Procedure": frozenset({"list", "item", "code"})}
_CONDITION = re.compile(
    r"(?:if|when|whenever|unless|once|while|until|in case|provided(?: that)?|as long as|before|after)\s"
    r"[^.!?;:\n]*?(?=,|\sthen\s)",
    re.IGNORECASE,
)
# Code and tables are not read as sentences: their lead-in is, if they have one.
SILENT: frozenset[PieceKind] = frozenset({"code", "table", "record"})
# A role shows in how a text begins; a pattern need not search a megabyte.
_READ = 2_000


def role_of(
    text: str, *, kind: PieceKind = "paragraph", lead: str = "", heading: str = "", ordered: bool = False
) -> Role:
    """Return the rhetorical role of a text, by its words, then by the heading it stands under."""
    said = lead[:_READ] if kind in SILENT else f"{lead}\n{text}".lstrip()[:_READ]
    by_shape = _by_shape(said, text[:_READ], ordered=ordered)
    if by_shape is not None:
        return by_shape
    by_words = (role for pattern, role in _PATTERNS if pattern.search(said))
    by_heading = (role for pattern, role in _HEADINGS if kind in _UNDER[role] and pattern.search(heading))
    return next(chain(by_words, by_heading), "Description")


def _by_shape(said: str, text: str, *, ordered: bool) -> Role | None:
    """Return the role that rules and instructions show: numbered commands, what binds, what is done first."""
    if ordered and (_INSTRUCTS.match(said) or _commands(text)):
        return "Procedure"
    if said and _IS_A.match(text):
        return "Definition"
    rule = deontic(said)
    if _BINDS.search(said) or (rule and _BINDING.search(said)):
        return "Constraint"
    return "Procedure" if rule & Deontic.OBLIGATION or _INSTRUCTS.match(said) else None


def _commands(text: str) -> bool:
    """Return whether at least half of the lines tell somebody to do something; a line need not end in a stop."""
    told = [bool(deontic(line) & Deontic.OBLIGATION) for line in text.split("\n") if line.strip()]
    return bool(told) and 2 * sum(told) >= len(told)


def condition_of(text: str) -> str:
    """Return the clause that a text begins with and that limits it: "if …", "when …", "unless …"; else nothing."""
    found = _CONDITION.match(text[:_READ].lstrip())
    return found[0].strip() if found else ""
