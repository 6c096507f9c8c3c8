"""The grammar of the reader of facts: noun phrases, verb groups and their objects.

A noun phrase knows where it ends, whether it is a name, and what it looks like; a verb group knows what it says and
whether it denies it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Literal

from holdfast.text.calendar import MONTHS
from holdfast.text.sentences import Sentence
from holdfast.text.words import words
from holdfast.values import dataclass

# What an object has to look like for the relation to hold: "I live in hope" names no place.
ObjectShape = Literal["thing", "place", "name", "date", "belonging", "job"]

# Stands for whoever speaks until the caller puts a name in its place; no text can hold it as a name.
SPEAKER = "<speaker>"


def word_set(name: str) -> frozenset[str]:
    """Return one of the word lists for facts."""
    return frozenset(words("facts", name))


ADVERBS = word_set("adverbs")
AUXILIARIES = word_set("auxiliaries")
JOBS = word_set("jobs")
_OTHER_VERBS = word_set("other_verbs")
_FIRST = frozenset({"i", "we"})
_OURS = frozenset({"my", "our"})
_ARTICLES = frozenset({"a", "an", "the"})
_DETERMINERS = _ARTICLES | _OURS
_NO_NAMES = AUXILIARIES | word_set("pronouns") | (_OTHER_VERBS - word_set("nouns_too")) | _FIRST
# Common verbs that are no nouns.
_ONLY_VERBS = _OTHER_VERBS & _NO_NAMES
_PHRASE_ENDS = word_set("after_object") | AUXILIARIES
_LY_NOUNS = word_set("ly_nouns")
_LINKS = word_set("name_links")
_EMPTY_CLASSES, _EVALUATIVE = word_set("empty_classes"), word_set("evaluative")
_JOB_ENDINGS = words("facts", "job_endings")
_WEEKDAYS = words("calendar", "weekdays")
_BELONGINGS, _STREETS = word_set("belongings"), word_set("streets")
# May is a name, too.
_NO_PLACES = word_set("no_places").union(_WEEKDAYS, words("calendar", "months")) - {"may"}
_NUMBERS = frozenset(words("calendar", "numbers")[1:10])
_QUOTES = frozenset("\"'“”‘«»`")

# Longer stretches are clauses.
_MOST_WORDS = 6
# Bounds the search for an end; a phrase this long is no name anyway.
_LONGEST_PHRASE = 12
_LONGEST_QUOTE = 8


@dataclass(frozen=True, slots=True)
class Name:
    """A noun phrase without article and quotes; `denied` where "neither … nor" or "not" takes it out."""

    text: str
    plural: bool = False
    first: bool = False
    definite: bool = False
    denied: bool = False


def phrase_end(s: Sentence, i: int) -> int:
    """Return where the noun phrase that starts at `i` ends."""
    if s.at(i) in _QUOTES:
        closing = (k for k in range(i + 1, min(i + _LONGEST_QUOTE, len(s.words))) if s.at(k) in _QUOTES)
        return next(closing, i - 1) + 1
    while s.at(i) in _DETERMINERS:
        i += 1
    j = i
    while j < min(len(s.words), i + _LONGEST_PHRASE) and _continues(s, j, i):
        j += 1
    return j


def _continues(s: Sentence, j: int, first: int) -> bool:
    word = s.at(j)
    if word == "." or not (word[-1].isalnum() or word.endswith(("+", "#", "."))):
        return False
    if (word == "of" and j > first) or (s.at(j - 1) == "of" and word in _ARTICLES):
        return True
    if word in _PHRASE_ENDS or (j > first and word in _ONLY_VERBS):
        return False
    return not (word.endswith("ly") and s.raw(j).islower() and word not in _LY_NOUNS)


def is_verb(word: str) -> bool:
    """Return whether the word is a common verb and no noun."""
    return word in _ONLY_VERBS


def may_begin_name(word: str) -> bool:
    """Return whether a subject may begin with a word: pronouns of others, verbs and the like begin none."""
    return word not in _NO_NAMES or word in _FIRST or word == "neither"


def read_name(s: Sentence, i: int, j: int) -> Name | None:
    """Return the name that the words from `i` to before `j` are, or None when they are none."""
    while i < j and s.at(i) in _QUOTES and s.at(j - 1) in _QUOTES:
        i, j = i + 1, j - 1
    if j - i == 1 and s.at(i) in _FIRST:
        return Name(SPEAKER, plural=True, first=True, definite=True)
    if j - i == 1 and s.raw(i) == "A":
        return Name("A", definite=True)  # an article alone is a letter
    definite, ours = s.at(i) == "the", s.at(i) in _OURS
    i += s.at(i) in _DETERMINERS
    if not 0 < j - i <= _MOST_WORDS or not all(_may_name(s, k, i) for k in range(i, j)) or _holds_clause(s, i, j):
        return None
    last = s.at(j - 1)
    if last == "of":
        return None
    text = s.slice(i, j).strip()
    plural = last.endswith("s") and not last.endswith(("ss", "us", "is"))
    if ours:
        text = f"{SPEAKER}'s {text}"
    return Name(text, plural=plural, definite=definite or ours or s.raw(i)[:1].isupper())


def _may_name(s: Sentence, k: int, first: int) -> bool:
    word = s.at(k)
    if word in _OURS or (k == first and word in ADVERBS):
        return False
    if word in _ARTICLES:
        return k > first and s.at(k - 1) == "of"
    return word.lstrip(".")[:1].isalnum() and word not in _NO_NAMES


def _holds_clause(s: Sentence, i: int, j: int) -> bool:
    """Return whether a lower-case word stands between two names: "Ana insists Kestrel" is a clause."""
    return any(
        s.raw(k - 1)[:1].isupper() and s.raw(k).islower() and s.raw(k + 1)[:1].isupper() and s.at(k) not in _LINKS
        for k in range(i + 1, j - 1)
    )


def read_object(s: Sentence, p: int, shape: ObjectShape) -> tuple[Name, int] | None:
    """Return the noun phrase at `p` and where it ends, if it looks as `shape` asks."""
    end = phrase_end(s, p)
    found = read_name(s, p, end)
    return (found, end) if found and not found.first and has_shape(found.text, shape) else None


def lower_plural(found: Name) -> Name:
    """Return a plural name whose capital only began the sentence with that capital taken back."""
    text = found.text
    if " " in text or not text[1:].islower():
        return found
    return replace(found, text=text[0].lower() + text[1:])


def has_shape(text: str, shape: ObjectShape) -> bool:
    """Return whether an object looks like what its relation is about."""
    if shape == "thing":
        return True
    parts = text.removeprefix(f"{SPEAKER}'s ").split() or [""]
    head = parts[-1].lower()
    match shape:
        case "place":
            no_place = head in _STREETS or not _NO_PLACES.isdisjoint(part.lower() for part in parts)
            return _is_named(parts) and not no_place and not _has_inner_capital(parts)
        case "name":
            return _is_named(parts) and not parts[0].lower().startswith(_WEEKDAYS)
        case "date":
            return any(part[:1].isdigit() or part.lower() in MONTHS for part in parts)
        case "belonging":
            return head in _BELONGINGS
        case "job":
            return head in JOBS or (len(head) > 4 and head.endswith(_JOB_ENDINGS))


def _is_named(parts: list[str]) -> bool:
    capitals = all(any(c.isupper() for c in part) or part in _LINKS or part.isdigit() for part in parts)
    return capitals and not parts[0].isdigit()


def _has_inner_capital(parts: list[str]) -> bool:
    return any(any(c.isupper() or c.isdigit() for c in part[1:]) and not part.isupper() for part in parts)


def is_class(text: str) -> bool:
    """Return whether "X is a `text`" says what X is, rather than how somebody finds it."""
    parts = text.lower().split()
    return bool(parts) and "of" not in parts and parts[-1] not in _EMPTY_CLASSES and _EVALUATIVE.isdisjoint(parts)


def is_vague(text: str) -> bool:
    """Return whether a subject is an activity or a favourite of something unsaid: "exploring is an adventure"."""
    parts = text.lower().split() or [""]
    return parts[0].endswith("ing") or parts[-1] in _EMPTY_CLASSES or parts[0] in {"sure", "life", "love", "mental"}


def is_counted(text: str) -> bool:
    """Return whether the phrase begins with a number: "about two hundred" is no topic."""
    first = (text.lower().split(maxsplit=1) or [""])[0]
    return first[:1].isdigit() or first in _NUMBERS


# ------------------------------------------------------------------------------------------------- what verbs mean

VerbForm = Literal["base", "third", "ing", "past"]
_FORMS: tuple[VerbForm, ...] = ("base", "third", "ing", "past")


@dataclass(frozen=True, slots=True)
class VerbMeaning:
    """What a verb phrase says: its relation, whether it swaps the sides or denies, and what the object must be."""

    relation: str
    rule: str
    inverse: bool = False
    shape: ObjectShape = "thing"
    denies: bool = False


def _rows(name: str, columns: int) -> Iterator[list[str]]:
    for row in words("facts", name):
        parts = [part.strip() for part in row.split("|")]
        yield parts + [""] * (columns - len(parts))


def _verbs() -> Iterator[tuple[tuple[str, ...], tuple[VerbForm, VerbMeaning]]]:
    """Yield every form of every verb phrase, with what it means."""
    for named, verb, particle, shape in _rows("verbs", 4):
        inverse, relation = named == "has_part", named.lstrip("!")
        kind: ObjectShape = shape or "thing"  # type: ignore[assignment]
        meaning = (
            VerbMeaning("part_of", "inverse", inverse=True, shape=kind)
            if inverse
            else VerbMeaning(relation, "verb", shape=kind, denies=named.startswith("!"))
        )
        for form, word in zip(_FORMS, verb.split(), strict=True):
            if word != "-":
                yield (word, *particle.split()), (form, meaning)


def _states() -> Iterator[tuple[tuple[str, ...], VerbMeaning]]:
    """Yield what may follow am, is and are, with what it means."""
    for relation, phrases, shape in _rows("states", 3):
        swapped = relation.startswith("~")
        kind: ObjectShape = shape or "thing"  # type: ignore[assignment]
        meaning = VerbMeaning(relation.lstrip("~"), "passive" if swapped else "state", swapped, kind)
        for phrase in phrases.split(" / "):
            yield tuple(phrase.split()), meaning


VERBS, STATES = dict(_verbs()), dict(_states())
_LONGEST_VERB, _LONGEST_STATE = max(map(len, VERBS)), max(map(len, STATES))
_COPULA = VerbMeaning("instance_of", "copula")
_LIVES = VerbMeaning("lives_in", "shift", shape="place")
_USES = VerbMeaning("uses", "shift")
_WORKS = VerbMeaning("works_at", "shift", shape="name")

BE, _WAS = frozenset({"am", "is", "are"}), frozenset({"was", "were"})
_QUIT, _LASTING = word_set("quitting"), word_set("lasting")
_NEGATIONS = frozenset(words("negations", "adverbs"))
MOVING, SWITCHING = word_set("moving"), word_set("switching")
WAYS = ("back", "over", "down", "up", "across", "in", "out", "house")
PASSED_OVER = ADVERBS | _NEGATIONS
_PERFECTS = _QUIT | {"been"} | {phrase[0] for phrase, (form, _) in VERBS.items() if form == "past"}
_AUXILIARY_KINDS = {"do": "do", "does": "do"} | dict.fromkeys(BE, "be") | dict.fromkeys(_WAS, "was")
# The auxiliary before a verb decides which of its forms states something about now.
_FORMS_AFTER: dict[str, tuple[VerbForm, ...]] = {
    "": ("base", "third", "past"),
    "do": ("base",),
    "cannot": ("base",),
    "be": ("ing",),
    "have": ("past",),
    "been": ("ing",),
    "quit": ("ing",),
}
# What a predicate may begin with; every other word is passed over without a look at its surroundings.
OPENERS = (
    PASSED_OVER
    | BE
    | _WAS
    | _QUIT
    | MOVING
    | SWITCHING
    | {phrase[0] for phrase in VERBS}
    | set("no do does can has have replaced joined left , which who that".split())
)


# -------------------------------------------------------------------------------------------- verb groups and objects

_NO_VERBS = word_set("no_verbs")
_CONTRASTS = (("not",), ("but", "not"), (",", "not"), (",", "but", "not"), ("instead", "of"), ("rather", "than"))


@dataclass(frozen=True, slots=True)
class VerbGroup:
    """A verb group: its meaning, where its objects begin, whether it is denied, the form its subject must fit."""

    meaning: VerbMeaning
    end: int
    negated: bool
    form: VerbForm | None = None
    verb: str = ""


def verb_group(s: Sentence, v: int) -> VerbGroup | None:
    """Return the verb group that begins at `v` and names a relation, if there is one."""
    p, auxiliary, negated, verb = v, "", False, ""
    while p < len(s.words):
        word = s.at(p)
        if word in ADVERBS:
            p += 1
        elif word in _NEGATIONS or s.says(p, ("no", "longer")):
            p, negated = p + (2 if word == "no" else 1), True
        elif following := _auxiliary(s, p, auxiliary):
            p, auxiliary, verb = p + 1, following, verb or word
            negated = negated or following == "quit"
        else:
            break
    if auxiliary in {"be", "was"} and (state := _state(s, p, negated=negated, verb=verb, now=auxiliary == "be")):
        return state
    for size in range(min(_LONGEST_VERB, len(s.words) - p), 0, -1):
        form, meaning = VERBS.get(s.words[p : p + size], (None, _COPULA))
        if form in _FORMS_AFTER.get(auxiliary, ()):
            agrees = form if auxiliary == "" else None
            return VerbGroup(meaning, p + size, negated != meaning.denies, agrees, verb or s.at(p))
    return None


def _auxiliary(s: Sentence, p: int, before: str) -> str:
    """Return what kind of auxiliary stands at `p`, or nothing."""
    word = s.at(p)
    if before in {"", "have"} and word in _QUIT:
        return "quit"
    if before:
        return "been" if before == "have" and word == "been" else ""
    if word == "can":
        # What something can do says nothing about what it does; what it cannot, it does not.
        return "cannot" if s.at(p + 1) == "not" else ""
    if word in {"has", "have"}:
        return "have" if _is_perfect(s, p + 1) else ""
    return _AUXILIARY_KINDS.get(word, "")


def _is_perfect(s: Sentence, p: int) -> bool:
    while s.at(p) in PASSED_OVER:
        p += 1
    return s.at(p) in _PERFECTS


def _state(s: Sentence, p: int, *, negated: bool, verb: str, now: bool) -> VerbGroup | None:
    for size in range(min(_LONGEST_STATE, len(s.words) - p), 0, -1):
        meaning = STATES.get(s.words[p : p + size])
        if meaning and (now or meaning.relation in _LASTING):
            return VerbGroup(meaning, p + size, negated, None, verb)
    return VerbGroup(_COPULA, p, negated, None, verb) if now and s.at(p) in {"a", "an"} else None


def read_objects(s: Sentence, p: int, shape: ObjectShape, *, relative: bool) -> tuple[list[Name], int] | None:
    """Return the objects that begin at `p` and where they end; None where anything about them is in doubt.

    A list is read to its "and"; without one, what follows a comma is an apposition and is left out. "Or" leaves
    open which, and a first object that runs into another verb was no object.
    """
    denied = s.at(p) == "neither"
    first = read_object(s, p + denied, shape)
    if first is None or (_runs_on(s, first[1]) and not relative):
        return None
    found, last = [replace(first[0], denied=denied)], first[1]
    pending: list[Name] = []
    here = last
    while (after := _conjunction(s, here)) and verb_group(s, after) is None:
        following = read_object(s, after, shape)
        if following is None or _runs_on(s, following[1]):
            break
        pending.append(replace(following[0], denied=denied))
        here = following[1]
        if s.at(after - 1) != ",":
            found, last, pending = found + pending, here, []
    if s.at(last) == "or" or s.at(here) == "or" or s.says(here, (",", "or")):
        return None
    if len(found) == 1 and s.at(last) == "nor":
        return None
    for contrast in _CONTRASTS:
        if s.says(last, contrast) and (other := read_object(s, last + len(contrast), shape)):
            return [*found, replace(other[0], denied=True)], other[1]
    return found, last


def _conjunction(s: Sentence, p: int) -> int:
    """Return where the words after a conjunction at `p` begin, or 0."""
    if s.says(p, ("as", "well", "as")):
        return p + 3
    if s.at(p) == "," and s.at(p + 1) in {"and", "&"}:
        return p + 2
    return p + 1 if s.at(p) in {",", "and", "&", "nor"} else 0


def _runs_on(s: Sentence, p: int) -> bool:
    """Return whether a verb follows at `p`."""
    word = s.at(p)
    if word in AUXILIARIES:
        return word not in _NO_VERBS
    return is_verb(word) or (word not in ADVERBS and verb_group(s, p) is not None)


# ------------------------------------------------------------------------------------------------- verbs of change

_LONG_AGO, _COMING_BACK = word_set("long_ago"), word_set("coming_back")
_Shift = tuple[VerbGroup, list[Name], int]


def shift(s: Sentence, v: int) -> _Shift | None:
    """Read a verb of change at `v`: "moved from A to B" says where somebody lives and where no longer."""
    p = v
    while s.at(p) in ADVERBS or (s.at(p) in {"has", "have"} and p == v):
        p += 1
    verb = s.at(p)
    if verb in MOVING or verb in SWITCHING:
        return _move(s, p + 1, _LIVES if verb in MOVING else _USES)
    if verb == "replaced" and (old := read_object(s, p + 1, "thing")) and s.at(old[1]) == "with":
        return _exchange(s, _USES, old, read_object(s, old[1] + 1, "thing"))
    if verb in {"joined", "left"} and (found := read_object(s, p + 1, "name")):
        back = verb == "left" and not _COMING_BACK.isdisjoint(s.words[found[1] :])
        group = VerbGroup(_WORKS, p + 1, negated=verb == "left", verb=verb)
        return None if back or _is_long_ago(s, found[1]) else (group, [found[0]], found[1])
    return None


def _move(s: Sentence, p: int, meaning: VerbMeaning) -> _Shift | None:
    p += s.at(p) in WAYS and s.at(p + 1) in {"from", "to", "in", "into"}
    if s.at(p) == "from" and (old := read_object(s, p + 1, meaning.shape)) and s.at(old[1]) == "to":
        return _exchange(s, meaning, old, read_object(s, old[1] + 1, meaning.shape))
    if s.at(p) in {"away", "out"} and s.at(p + 1) in {"from", "of"} and (old := read_object(s, p + 2, meaning.shape)):
        return VerbGroup(meaning, p, negated=True, verb="moved"), [old[0]], old[1]
    if meaning is _LIVES and s.at(p) in {"to", "into"} and s.at(p + 1) in _DETERMINERS:  # "to a small house in Leeds"
        p = next((k for k in range(p + 2, p + _MOST_WORDS) if s.at(k) == "in"), p)
    enters = s.at(p) == "to" or (meaning is _LIVES and s.at(p) == "in")
    if enters and (new := read_object(s, p + 1, meaning.shape)) and not _is_long_ago(s, new[1]):
        return VerbGroup(meaning, p, negated=False, verb="moved"), [new[0]], new[1]
    return None


def _exchange(
    s: Sentence, meaning: VerbMeaning, old: tuple[Name, int], new: tuple[Name, int] | None
) -> _Shift | None:
    if new is None or _is_long_ago(s, new[1]):
        return None
    return VerbGroup(meaning, old[1], negated=False), [new[0], replace(old[0], denied=True)], new[1]


def _is_long_ago(s: Sentence, p: int) -> bool:
    """Return whether the words behind `p` put a move far back; it need not be the last one."""
    rest = s.words[p:]
    recent = "last" in rest or "this" in rest
    return any(word in _LONG_AGO and not (recent and word == "year") for word in rest) or any(
        len(word) == 4 and word.isdigit() for word in rest
    )
