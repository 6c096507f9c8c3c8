"""Symbols: the keys under which facts meet (C8). One name, however it is written, has one key.

The key is the same for every case and stays itself when taken again. A plural becomes singular only where its
ending is safe, so that names that end in s (Redis, Kubernetes, Jenkins, James) are left alone.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from types import MappingProxyType

from holdfast.errors import SettingsError, shown
from holdfast.text.patterns import regex
from holdfast.text.terms import STOP_WORDS
from holdfast.text.words import entries, words

_APOSTROPHES = str.maketrans({"’": "'", "‘": "'", "ʼ": "'"})
_POSSESSIVE = regex(r"(?<=\w)'s?(?!\w)")
# C++, C#, .NET, node.js, 3.11 and AT&T keep the marks that tell them from C, NET and AT T.
_PART = regex(r"(?:(?<!\S)\.)?[^\W_]+(?:[.&'][^\W_]+)*(?:\+\+|#)?")
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
_KNOWN_AS = regex(
    r"(?<![\w.+#&-])(?P<name>[A-Z][\w.+#&-]*+(?: [A-Z][\w.+#&-]*+){0,4}),? \(?"
    r"(?:also known as|also called|a\.?k\.?a\.?|better known as) "
    r"(?P<alias>[A-Z][\w+#&-]*+(?: [A-Z][\w+#&-]*+){0,4})"
)
_BRACKETED = regex(r" \((?P<short>[A-Z][A-Za-z]?[A-Z0-9]{1,6})s?\)")
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
