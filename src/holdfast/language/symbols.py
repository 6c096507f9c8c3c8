"""Symbols: the keys under which facts meet (C8). One name, however it is written, has one key.

The key is the same for every case and stays itself when taken again. A plural becomes singular only where its
ending is safe, so that names that end in s (Redis, Kubernetes, Jenkins, James) are left alone.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from holdfast.language.lexical import STOP_WORDS

_APOSTROPHES = str.maketrans({"’": "'", "‘": "'", "ʼ": "'"})
_POSSESSIVE = re.compile(r"(?<=\w)'s?(?!\w)")
# C++, C#, .NET, node.js, 3.11 and AT&T keep the marks that tell them from C, NET and AT T.
_PART = re.compile(r"(?:(?<!\S)\.)?[^\W_]+(?:[.&'][^\W_]+)*(?:\+\+|#)?")
_ARTICLES = frozenset({"a", "an", "the"})

# Endings of common nouns; hardly a name has one. The number is how much of the ending is replaced by what.
_PLURALS = (
    ("ies", 6, 3, "y"),
    ("sses", 6, 2, ""),
    ("ches", 6, 2, ""),
    ("shes", 6, 2, ""),
    ("xes", 5, 2, ""),
    *((ending, 7, 1, "") for ending in "ers ors ings ages ures ices ases ules oles ides ades utes ates".split()),
    *((ending, 7, 1, "") for ending in "tions sions ments ships isms ists ables".split()),
)
_IRREGULAR = {
    "buses": "bus", "statuses": "status", "viruses": "virus", "analyses": "analysis", "indices": "index",
    "vertices": "vertex", "matrices": "matrix", "movies": "movie", "cookies": "cookie", "children": "child",
    "people": "person", "men": "man", "women": "woman", "mice": "mouse", "feet": "foot", "teeth": "tooth",
    "wolves": "wolf", "knives": "knife", "wives": "wife", "lives": "life", "boxes": "box", "taxes": "tax",
}  # fmt: skip
# Whole words only: "Jenkins" has no entry and stays.
_COMMON = frozenset(
    """
    alert animal answer api app apple arm backup banana bean bike bird boat book bot branch bridge bug car card cat
    chair chart clock cloud coin cow cucumber daughter day delay disk dog door drug egg email event eye file film fish
    flower form friend game garden gate goat group hand hat hill hook horse hour house idea image island job key kid
    language lamp leaf letter library lookup machine mammal map mark meal meeting metric model month mushroom name
    network note number onion packet page parent park path pattern peanut pen phone plan planet plant plot plugin
    pond port prawn problem process product project queue query rabbit report result right road role room row
    rule script secret shell ship shoe shop shrimp signal site skill snake snapshot son song spider stack step stone
    store stream string student system table task team term test text thing thread ticket tide token tomato town
    tool fact line node train tree trip truck trunk type unit vector view village wall week whale wheel window
    word year zone
    """.split()
) - {"window"}  # Windows is an operating system
_KEPT = frozenset("series species davies mercedes hermes charles".split())


def symbol(text: str) -> str:
    """Return the canonical key of a name: NFC, case-folded, no quotes, articles or possessives, singular head.

    "The Capabilities" → "capability"; "Ana's phone" → "ana phone"; "C++", ".NET" and "node.js" survive.
    """
    folded = unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold()).translate(_APOSTROPHES)
    words = _PART.findall(_POSSESSIVE.sub(" ", folded))
    while len(words) > 1 and words[0] in _ARTICLES:
        del words[0]
    if words:
        head = words.index("of") - 1 if "of" in words[1:] else len(words) - 1
        words[head] = singular(words[head])
    return " ".join(words)


def symbol_tokens(key: str) -> tuple[str, ...]:
    """Return the words of a symbol that can be looked for in a text: singular, without function words.

    Taken whole ("c++" is one token), so that the letter c never finds it. A symbol that is nothing but function
    words keeps them.
    """
    words = tuple(singular(word) for word in key.split())
    return tuple(word for word in words if word not in STOP_WORDS) or words


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


# Possessive, and begun only where a word begins: a long run of letters and marks is scanned once.
_KNOWN_AS = re.compile(
    r"(?<![\w.+#&-])(?P<name>[A-Z][\w.+#&-]*+(?: [A-Z][\w.+#&-]*+){0,4}),? \(?"
    r"(?:also known as|also called|a\.?k\.?a\.?|better known as) "
    r"(?P<alias>[A-Z][\w+#&-]*+(?: [A-Z][\w+#&-]*+){0,4})"
)
_BRACKETED = re.compile(r" \((?P<short>[A-Z][A-Za-z]?[A-Z0-9]{1,6})s?\)")
# No spelled-out name is longer.
_LONGEST_NAME = 120
# Words that an acronym may pass over.
_PASSED = frozenset("of and the for in on to a an".split())


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


def _spelled_out(words: list[str], letters: str) -> str:
    """Return the end of `words` whose initials are `letters`, or nothing."""
    left, at = list(letters), len(words)
    while left and at:
        at -= 1
        initial = words[at][0].lower()
        if initial == left[-1]:
            left.pop()
        elif words[at].lower() not in _PASSED:
            return ""
    return "" if left else " ".join(words[at:])
