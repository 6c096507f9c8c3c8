"""Symbols: the keys under which facts meet (C8). One name, however it is written, has one key.

The key is the same for every case and stays itself when taken again. A plural becomes singular only where its
ending is safe, so that names that end in s (Redis, Kubernetes, Jenkins, James) are left alone.

Rules that a user writes: `x located_in y, y part_of z -> x located_in z : 0.9`. Every word that is not a relation is
a variable. A rule can only put together symbols that its body has found, so no rule makes up new ones, and applying
rules again and again comes to an end.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from types import MappingProxyType

from holdfast.errors import SettingsError, shown
from holdfast.kernels.closure import Pattern, Rule
from holdfast.language.lexical import STOP_WORDS
from holdfast.language.words import entries, words

_MOST_PREMISES = 3
# The reference system's weight of a rule that names none.
_DEFAULT_WEIGHT = 0.9
_PATTERN = re.compile(r"\??(\w+)\s+([\w-]+)\s+\??(\w+)")
_EXAMPLE = "x located_in y, y part_of z -> x located_in z : 0.9"


def read_rules(texts: Sequence[str]) -> tuple[Rule, ...]:
    """Return the rules that `texts` write; they are named user_1, user_2 and so on.

    A list that came as one text is split at its commas; parts of a body find together again.

    Raises:
        SettingsError: a rule is not understood or not safe.
    """
    return tuple(read_rule(text, f"user_{number}") for number, text in enumerate(_whole(texts), start=1))


def _whole(texts: Sequence[str]) -> list[str]:
    """Join what stands before an arrow with the part that has it."""
    whole: list[str] = []
    waiting: list[str] = []
    for text in texts:
        waiting.append(text)
        if "->" in text:
            whole.append(",".join(waiting))
            waiting = []
    if waiting:
        raise _refused(",".join(waiting), "it has no `->`", "write premises, `->` and what follows")
    return whole


def read_rule(text: str, name: str) -> Rule:
    """Return the rule that `text` writes.

    Raises:
        SettingsError: the rule is not understood or not safe.
    """
    body_text, _, rest = text.partition("->")
    head_text, _, weight_text = rest.partition(":")
    body = tuple(_pattern(part, text) for part in re.split(r",|\band\b|&", body_text))
    head = _pattern(head_text, text)
    if len(body) > _MOST_PREMISES:
        raise _refused(text, f"it has {len(body)} premises", f"use one to {_MOST_PREMISES}")
    _check_variables(body, head, text)
    return Rule(name, body, head, _weight(weight_text, text))


def _pattern(part: str, text: str) -> Pattern:
    match = _PATTERN.fullmatch(part.strip())
    if match is None:
        raise _refused(text, f"{shown(part.strip())} is not `x relation y`", "use three words for each part")
    subject, relation, other = match.groups()
    return Pattern(subject, relation.casefold(), other)


def _check_variables(body: tuple[Pattern, ...], head: Pattern, text: str) -> None:
    known = {body[0].subject, body[0].object}
    waiting = list(body[1:])
    while waiting:
        joined = next((part for part in waiting if known & {part.subject, part.object}), None)
        if joined is None:
            raise _refused(text, "its premises share no variable", "let each one name a variable of another")
        waiting.remove(joined)
        known |= {joined.subject, joined.object}
    for variable in (head.subject, head.object):
        if variable not in known:
            raise _refused(text, f"{variable} follows from nothing", "let the body name every variable of the head")
    if head in body:
        raise _refused(text, "it says what its body says", "let another relation or other variables follow")


def _weight(text: str, rule: str) -> float:
    if not text.strip():
        return _DEFAULT_WEIGHT
    try:
        weight = float(text)
    except ValueError as error:
        raise _refused(rule, f"{shown(text.strip())} is not a weight", "give a number above 0, at most 1") from error
    if not 0.0 < weight <= 1.0:
        raise _refused(rule, f"its weight {weight} is outside (0, 1]", "give a number above 0, at most 1")
    return weight


def _refused(rule: str, why: str, remedy: str) -> SettingsError:
    return SettingsError(f"symbolic.rules has {rule.strip()[:200]!r}: {why}; {remedy}, as in {_EXAMPLE!r}")


_APOSTROPHES = str.maketrans({"’": "'", "‘": "'", "ʼ": "'"})
_POSSESSIVE = re.compile(r"(?<=\w)'s?(?!\w)")
# C++, C#, .NET, node.js, 3.11 and AT&T keep the marks that tell them from C, NET and AT T.
_PART = re.compile(r"(?:(?<!\S)\.)?[^\W_]+(?:[.&'][^\W_]+)*(?:\+\+|#)?")
_ARTICLES = frozenset({"a", "an", "the"})

# Endings of common nouns: how long a word with one must be, how much is cut off, and what is put there.
_PLURALS = (
    ("ies", 6, 3, "y"),
    ("sses", 6, 2, ""),
    ("ches", 6, 2, ""),
    ("shes", 6, 2, ""),
    ("xes", 5, 2, ""),
    *((ending, 7, 1, "") for ending in words("symbols", "plural_endings")),
)
_IRREGULAR: Mapping[str, str] = entries("symbols", "irregular")
_COMMON = frozenset(words("symbols", "common"))
_KEPT = frozenset(words("symbols", "kept"))


def symbol(text: str) -> str:
    """Return the canonical key of a name: NFC, case-folded, no quotes, articles or possessives, singular head.

    "The Capabilities" → "capability"; "Ana's phone" → "ana phone"; "C++", ".NET" and "node.js" survive.
    """
    folded = unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold()).translate(_APOSTROPHES)
    parts = _PART.findall(_POSSESSIVE.sub(" ", folded))
    while len(parts) > 1 and parts[0] in _ARTICLES:
        del parts[0]
    if parts:
        head = parts.index("of") - 1 if "of" in parts[1:] else len(parts) - 1
        parts[head] = singular(parts[head])
    return " ".join(parts)


def symbol_tokens(key: str) -> tuple[str, ...]:
    """Return the words of a symbol that can be looked for in a text: singular, without function words.

    Taken whole ("c++" is one token), so that the letter c never finds it. A symbol that is nothing but function
    words keeps them.
    """
    parts = tuple(singular(word) for word in key.split())
    return tuple(word for word in parts if word not in STOP_WORDS) or parts


def singular(word: str) -> str:
    """Return the singular of a lower-case common noun, or the word itself where the ending is not safe."""
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    if word in _KEPT:
        return word
    if word[-1:] == "s" and word[:-1] in _COMMON:
        return word[:-1]
    for ending, shortest, cut, put in _PLURALS:
        if len(word) >= shortest and word.endswith(ending):
            return word[:-cut] + put
    return word


@dataclass(frozen=True, slots=True)
class Aliases:
    """Names that mean the same: each leads to one symbol, the smallest of its group."""

    canonical: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))

    @classmethod
    def of(cls, pairs: Iterable[tuple[str, str]]) -> Aliases:
        """Return the aliases that declared or found `pairs` make; their order and rings make no difference."""
        leads: dict[str, str] = {}
        for one, other in pairs:
            first, second = _root(leads, symbol(one)), _root(leads, symbol(other))
            if first and second:
                leads[max(first, second)] = min(first, second)
        found = {key: _root(leads, key) for key in sorted(leads)}
        return cls(MappingProxyType({key: root for key, root in found.items() if key != root}))

    def symbol(self, text: str) -> str:
        """Return the symbol that `text` stands for."""
        key = symbol(text)
        return self.canonical.get(key, key)


def _root(leads: Mapping[str, str], key: str) -> str:
    while leads.get(key, key) != key:
        key = leads[key]
    return key


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


# Possessive, and begun only where a word begins: a long run of letters and marks is scanned once.
_KNOWN_AS = re.compile(
    r"(?<![\w.+#&-])(?P<name>[A-Z][\w.+#&-]*+(?: [A-Z][\w.+#&-]*+){0,4}),? \(?"
    r"(?:also known as|also called|a\.?k\.?a\.?|better known as) "
    r"(?P<alias>[A-Z][\w+#&-]*+(?: [A-Z][\w+#&-]*+){0,4})"
)
_BRACKETED = re.compile(r" \((?P<short>[A-Z][A-Za-z]?[A-Z0-9]{1,6})s?\)")
# No spelled-out name is longer.
_LONGEST_NAME = 120
_PASSED = frozenset(words("symbols", "passed"))


def found_aliases(text: str) -> tuple[tuple[str, str], ...]:
    """Return the pairs (name, other name) that `text` declares.

    Two forms are read: "X, also known as Y" and "Long Name (LN)" where the letters are the words' initials.
    """
    found = {(match["name"], match["alias"]) for match in _KNOWN_AS.finditer(text)}
    for match in _BRACKETED.finditer(text):
        before = text[max(0, match.start() - _LONGEST_NAME) : match.start()]
        if long := _spelled_out(re.split(r"[^\w-]*[,.;:()!?][^\w-]*", before)[-1].split(), match["short"].lower()):
            found.add((long, match["short"]))
    return tuple(sorted(found))


def _spelled_out(parts: list[str], letters: str) -> str:
    """Return the end of `parts` whose initials are `letters`, or nothing."""
    left, at = list(letters), len(parts)
    while left and at:
        at -= 1
        initial = parts[at][0].lower()
        if initial == left[-1]:
            left.pop()
        elif parts[at].lower() not in _PASSED:
            return ""
    return "" if left else " ".join(parts[at:])
