"""Names in a text → keys under which units and facts meet that speak of the same thing (C8, C12).

A name is recognised by its capitals, so this says nothing about scripts that have none. Its key is its words, folded:
lower case, no accents, no possessive, no leading article, one space between them. The symbol of a fact is such a key,
too; a plural becomes singular only where its ending is safe, so that names that end in s (Redis, James) stay.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import lru_cache
from types import MappingProxyType

from holdfast.errors import SettingsError, quote_value
from holdfast.text.terms import STOP_WORDS
from holdfast.text.words import any_of, entries, regex, words
from holdfast.text.words import words as listed
from holdfast.values import dataclass

# Capital letters of the alphabets that have them: Latin, Greek, Cyrillic, Armenian.
_CAPITALS = "".join(filter(str.isupper, map(chr, range(0x560))))
# "O'Neill", "AT&T", "J.R.R", "Saint-Malo" are one word each.
_REST = r"[^\W_]*(?:['\u2019.&-][^\W_]+)*"
_WORD = regex(rf"(?=[^\W_]){_REST}")
_NAME = regex(
    # The look back comes after the letter: a pattern that starts with a letter is searched for several times faster.
    rf"[{_CAPITALS}](?<!\w.)(?<!\w['\u2019.&-].){_REST}"
    rf"(?:[^\S\n]+(?:{any_of('mentions', 'joining')}[^\S\n]+){{0,2}}(?:[{_CAPITALS}]{_REST}|\d+(?!\w)))*"
)
# The point of an initial does not end a name.
_RUN = regex(rf"[{_CAPITALS}]{_REST}(?:(?:(?<![\w-].)\.)?[^\S\n]+[{_CAPITALS}]{_REST})*")
# A possessive ends a name: "Lindow's Lower Mill" are two.
_POSSESSIVE = regex(r"['\u2019]s?(?!\w)")
# "J. R. Hale", "J.R. Hale"; and the "John" that may stand before them.
_INITIALS = regex(rf"[{_CAPITALS}]\.(?<!\w..)(?:[^\S\n]*[{_CAPITALS}]\.)*[^\S\n]*([{_CAPITALS}][^\W_]{_REST})")
_FIRST_NAME = regex(rf"(?<!\w)([{_CAPITALS}][^\W_]+)[^\S\n]+$")
_LONGEST_FIRST_NAME = 20
_QUALIFIER = regex(r"\s*\([^()]*\)\s*$")
# What may stand before the first word of a sentence, a line, a quotation or a bracket.
_OPENING = regex(r"(?:^|[.!?:;\n\"\u201c\u201d\u2018(*#>|-])\s*$")
_OPENING_LENGTH = 3
_ARTICLES = frozenset({"the", "a", "an"})
_NO_NAMES = STOP_WORDS.union(
    listed("mentions", "no_names"), listed("calendar", "months"), listed("calendar", "weekdays")
)
_LEGAL_FORMS = listed("mentions", "legal_forms")
# Shorter single words are initials and abbreviations of too many things.
_SHORTEST = 4
# A longer title is a sentence, and nobody names it whole.
_MOST_WORDS = 8
_MOST_TITLE = 200
# Nobody who is called by initials and a last name has a longer one.
_MOST_PERSON = 4
# A pasted book is read up to here: what it is about stands at its beginning.
_MOST_CHARACTERS = 4_000


def titles(topic: str) -> tuple[str, ...]:
    """Return the keys of what a unit is called: its topic, and that without what is in brackets or after a comma.

    The form of a company or a club may be left out too, but one word that is left of more is the name of too many: of
    all Annas, "Anna, Countess of Tours" is one. Only a place is called so, and the larger one after its comma is a
    name and nothing else: "Lindow, Dorset".
    """
    if len(topic) > _MOST_TITLE:
        return ()
    bare = _QUALIFIER.sub("", topic)
    head, _, rest = bare.partition(",")
    cut = _words(head)
    short = [*cut]
    while short and short[-1].replace(".", "") in _LEGAL_FORMS:
        short.pop()
    named = len(cut) > 1 or all(word[0].isupper() for word in _WORD.findall(rest))
    found = (_words(topic), _words(bare), cut if named else [], short if len(short) > 1 else [])
    return tuple(dict.fromkeys(key for words in found if len(words) <= _MOST_WORDS and (key := _key(words))))


def initials(topic: str) -> tuple[str, ...]:
    """Return the key under which a text finds somebody whose first names it gives as initials."""
    words = _words(_QUALIFIER.sub("", topic[:_MOST_TITLE]).partition(",")[0])
    return (f"{words[0][0]}. {words[-1]}",) if 1 < len(words) <= _MOST_PERSON else ()


def entities(text: str) -> tuple[str, ...]:
    """Return the keys of the names in a text, in reading order: runs of capitalised words.

    A single word at the start of a sentence is none: its capital says nothing.
    """
    text = text[:_MOST_CHARACTERS]
    found = (_name(text, match) for match in _NAME.finditer(text))
    return tuple(dict.fromkeys(key for key in found if key))


def phrases(text: str) -> tuple[str, ...]:
    """Return every run of words that could be a title, in reading order.

    It starts and ends with a capital or a digit, and may be a part of a longer name.
    """
    text = text[:_MOST_CHARACTERS]
    written: list[str] = _WORD.findall(text)
    words = [_fold(word) for word in written]
    strong = [at for at, word in enumerate(written) if word[0].isupper() or word[0].isdigit()]
    return tuple(dict.fromkeys([*_phrases(words, strong, {*_lone_words(text)}), *_without_initials(text)]))


def _phrases(words: Sequence[str], strong: Sequence[int], alone: Collection[str]) -> Iterator[str]:
    for number, first in enumerate(strong):
        if words[first] in _ARTICLES:
            continue
        if (words[first] in alone or words[first].isdigit()) and _key([words[first]]):
            yield words[first]
        for last in strong[number + 1 : number + _MOST_WORDS]:
            if last - first >= _MOST_WORDS:
                break
            yield " ".join(words[first : last + 1])


def _lone_words(text: str) -> Iterator[str]:
    """Yield the capitalised words that are a name by themselves: not the Anna of "Anna Karina"."""
    for run in {*_RUN.findall(text)}:
        for name in _POSSESSIVE.split(run):
            words = [word for word in map(_fold, name.split()) if word not in _NO_NAMES]
            if len(words) == 1:
                yield words[0].rstrip(".")


def _without_initials(text: str) -> Iterator[str]:
    for found in _INITIALS.finditer(text):
        start = found.start()
        first = _FIRST_NAME.search(text[max(0, start - _LONGEST_FIRST_NAME) : start])
        yield f"{_fold(first[1]) if first else f'{_fold(text[start])}.'} {_fold(found[1])}"


def folded_words(text: str) -> str:
    """Return the words of a text, folded: a key that stands in the text stands in it too, between blanks."""
    return f" {' '.join(_words(text))} "


def _name(text: str, run: re.Match[str]) -> str:
    """Return the key of a capitalised run, or nothing when it is not the name of something."""
    words = _words(run.group())
    first = next((i for i, word in enumerate(words) if word not in STOP_WORDS), len(words))
    opening = first == 0 and _OPENING.search(text, max(0, run.start() - _OPENING_LENGTH), run.start())
    return "" if len(words) == 1 and opening else _key(words[first:])


def _key(words: Sequence[str]) -> str:
    """Return words as a key; nothing when they are too little to tell one thing from another."""
    if len(words) > 1 and words[0] in _ARTICLES:
        words = words[1:]
    if not words or (len(words) == 1 and (len(words[0]) < _SHORTEST or words[0] in _NO_NAMES)):
        return ""
    return " ".join(words)


def _words(text: str) -> list[str]:
    return [_fold(word) for word in _WORD.findall(text)]


# Names repeat: a bounded memo makes folding cheap and cannot grow without limit.
@lru_cache(maxsize=65_536)
def _fold(word: str) -> str:
    bare = word.lower().replace("\u2019", "'").removesuffix("'s")
    if bare.isascii():
        return bare
    return "".join(mark for mark in unicodedata.normalize("NFKD", bare) if not unicodedata.combining(mark)) or bare


_APOSTROPHES = str.maketrans({"’": "'", "‘": "'", "ʼ": "'"})
_SYMBOL_POSSESSIVE = regex(r"(?<=\w)'s?(?!\w)")
# C++, C#, .NET, node.js, 3.11 and AT&T keep the marks that tell them from C, NET and AT T.
_PART = regex(r"(?:(?<!\S)\.)?[^\W_]+(?:[.&'][^\W_]+)*(?:\+\+|#)?")

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
    parts = _PART.findall(_SYMBOL_POSSESSIVE.sub(" ", folded))
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
            raise SettingsError(f"analysis.aliases holds {quote_value(text)}; write it as `k8s = Kubernetes`")
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


def learned_aliases(text: str) -> tuple[tuple[str, str], ...]:
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
