"""Piece → what it is for: role, condition and the acts it serves (C1). English rules, first match wins.

A word counts only as a whole word, and a role is given on what the text says: without any sign of another, a piece of
a document is a Description.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from importlib.resources import files
from itertools import chain

from holdfast.language.deontic import Deontic, deontic
from holdfast.types import ROLES, PieceKind, Role


def _words(patterns: Iterable[str]) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{'|'.join(patterns)})\b", re.IGNORECASE)


_DATA = tomllib.loads(files("holdfast.inputs").joinpath("roles.toml").read_text("utf-8"))
_BINDING, _BINDS = _words(_DATA["binding"]), _words(_DATA["binds"])
_PATTERNS: tuple[tuple[re.Pattern[str], Role], ...] = tuple((_words(p), role) for role, p in _DATA["said"].items())
_HEADINGS: tuple[tuple[re.Pattern[str], Role], ...] = tuple(
    (_words(p), role) for role, p in _DATA["headings"].items()
)
# "A fender is a cushion": an indefinite thing is told what it is.
_IS_A = re.compile(r"an?\s+[\w-]+(?:\s+[\w-]+){0,3}\s+is\s+(?:an?|any|the)\s", re.IGNORECASE)
# "To start the pump, open the valve"; not "To me, it is ugly".
_INSTRUCTS = re.compile(
    r"to\s+\w+[^.?!]{0,120}?,\s+(?!(?:an?|the|this|that|there|i|you|he|she|it|we|they)\b)\w"
    r"|first,\s|step\s+\d+\b|how\s+to\s",
    re.IGNORECASE,
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
