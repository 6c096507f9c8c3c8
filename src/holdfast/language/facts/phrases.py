"""Noun phrases: where a name ends, whether it is one, and what it has to look like."""

from __future__ import annotations

from dataclasses import dataclass, replace

from holdfast.language.facts.sentences import Sentence
from holdfast.language.facts.vocabulary import (
    ADVERBS,
    AFTER_OBJECT,
    AUXILIARIES,
    BELONGINGS,
    DETERMINERS,
    EMPTY_CLASSES,
    EVALUATIVE,
    FIRST,
    JOBS,
    LY_NOUNS,
    MONTHS,
    NEVER_IN_NAMES,
    NOT_PLACES,
    NUMBERS,
    OTHER_VERBS,
    OURS,
    Shape,
)

# Stands for whoever speaks until the caller puts a name in its place; no text can hold it as a name.
SPEAKER = "<speaker>"

# Longer stretches are clauses.
_MOST_WORDS = 6
# Bounds the search for an end; a phrase this long is no name anyway.
_LONGEST_PHRASE = 12
_QUOTES = frozenset("\"'“”‘«»`")
_LINKS = frozenset("of de da do dos van von der del la le upon".split())
_JOB_ENDINGS = ("er", "or", "ist", "ian", "ant", "man", "woman")
# An address within a place.
_STREETS = frozenset("street road lane avenue square drive court close row house floor room".split())
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")


@dataclass(frozen=True, slots=True)
class Name:
    """A noun phrase without article and quotes; `denied` where "neither … nor" takes it out."""

    text: str
    plural: bool = False
    first: bool = False
    definite: bool = False
    denied: bool = False


def phrase_end(s: Sentence, i: int) -> int:
    """Return where the noun phrase that starts at `i` ends."""
    j = i
    if s.at(j) in _QUOTES:
        closing = (k for k in range(j + 1, min(j + 8, len(s.tokens))) if s.at(k) in _QUOTES)
        return next(closing, j - 1) + 1
    while s.at(j) in DETERMINERS | OURS:
        j += 1
    first = j
    while j < min(len(s.tokens), first + _LONGEST_PHRASE) and _continues(s, j, first):
        j += 1
    return j


def _continues(s: Sentence, j: int, first: int) -> bool:
    word = s.at(j)
    if word == "." or not (word[-1].isalnum() or word.endswith(("+", "#", "."))):
        return False
    if word == "of" and j > first:
        return True
    if s.at(j - 1) == "of" and word in DETERMINERS:
        return True
    if word in AFTER_OBJECT or word in AUXILIARIES:
        return False
    if j > first and is_verb(word):
        return False
    return not (word.endswith("ly") and s.raw(j).islower() and word not in LY_NOUNS)


def is_verb(word: str) -> bool:
    """Return whether the word is a common verb and no noun."""
    return word in OTHER_VERBS and word in NEVER_IN_NAMES


def name(s: Sentence, i: int, j: int) -> Name | None:
    """Return the name that the words from `i` to before `j` are, or None when they are none."""
    while i < j and s.at(i) in _QUOTES and s.at(j - 1) in _QUOTES:
        i, j = i + 1, j - 1
    if j - i == 1 and s.at(i) in FIRST:
        return Name(SPEAKER, plural=True, first=True, definite=True)
    if j - i == 1 and s.raw(i) == "A":
        return Name("A", definite=True)  # an article alone is a letter
    definite, ours = s.at(i) == "the", s.at(i) in OURS
    if s.at(i) in DETERMINERS or ours:
        i += 1
    if not 0 < j - i <= _MOST_WORDS or not all(_nameable(s, k, i) for k in range(i, j)) or _holds_clause(s, i, j):
        return None
    if s.at(j - 1) == "of":
        return None
    words = s.words(i, j).strip()
    plural = s.at(j - 1).endswith("s") and not s.at(j - 1).endswith(("ss", "us", "is"))
    if ours:
        words = f"{SPEAKER}'s {words}"
    return Name(words, plural=plural, definite=definite or ours or s.raw(i)[:1].isupper())


def _nameable(s: Sentence, k: int, first: int) -> bool:
    word = s.at(k)
    if word in OURS or (k == first and word in ADVERBS):
        return False
    if word in DETERMINERS:
        return k > first and s.at(k - 1) == "of"
    return word.lstrip(".")[:1].isalnum() and word not in NEVER_IN_NAMES


def _holds_clause(s: Sentence, i: int, j: int) -> bool:
    """Return whether a lower-case word stands between two names: "Ana insists Kestrel" is a clause."""
    return any(
        s.raw(k - 1)[:1].isupper() and s.raw(k).islower() and s.raw(k + 1)[:1].isupper() and s.at(k) not in _LINKS
        for k in range(i + 1, j - 1)
    )


def lowered(found: Name) -> Name:
    """Return a plural name whose capital only began the sentence with that capital taken back."""
    text = found.text
    if " " in text or not text[1:].islower():
        return found
    return replace(found, text=text[0].lower() + text[1:])


def has_shape(text: str, shape: Shape) -> bool:
    """Return whether an object looks like what its relation is about."""
    words = text.removeprefix(f"{SPEAKER}'s ").split() or [""]
    head = words[-1].lower()
    match shape:
        case "place":
            return (
                _named(words)
                and head not in _STREETS
                and not NOT_PLACES & {word.lower() for word in words}
                and not _inner_capital(words)
            )
        case "name":
            return _named(words) and not words[0].lower().startswith(_WEEKDAYS)
        case "date":
            return any(word[:1].isdigit() or word.lower() in MONTHS for word in words)
        case "belonging":
            return head in BELONGINGS
        case "job":
            return head in JOBS or (len(head) > 4 and head.endswith(_JOB_ENDINGS))
        case _:
            return True


def _named(words: list[str]) -> bool:
    return all(any(c.isupper() for c in word) or word in _LINKS or word.isdigit() for word in words) and (
        not words[0].isdigit()
    )


def _inner_capital(words: list[str]) -> bool:
    return any(any(c.isupper() or c.isdigit() for c in word[1:]) and not word.isupper() for word in words)


def is_class(text: str) -> bool:
    """Return whether "X is a `text`" says what X is, rather than how somebody finds it."""
    words = text.lower().split()
    return bool(words) and "of" not in words and words[-1] not in EMPTY_CLASSES and not EVALUATIVE & set(words)


def is_vague(text: str) -> bool:
    """Return whether a subject is an activity or a favourite of something unsaid: "exploring is an adventure"."""
    words = text.lower().split() or [""]
    return words[0].endswith("ing") or words[-1] in EMPTY_CLASSES or words[0] in {"sure", "life", "love", "mental"}


def counts(text: str) -> bool:
    """Return whether the phrase begins with a number: "about two hundred" is no topic."""
    first = (text.lower().split(maxsplit=1) or [""])[0]
    return first[:1].isdigit() or first in NUMBERS
