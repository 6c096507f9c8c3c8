"""Clauses: from the words of one sentence to what its subjects are said to do, be or have."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from holdfast.language.facts.grammar import Group, Object, objects, verb_group
from holdfast.language.facts.phrases import (
    SPEAKER,
    Name,
    counts,
    has_shape,
    is_class,
    is_vague,
    lowered,
    name,
    phrase_end,
)
from holdfast.language.facts.sentences import Sentence
from holdfast.language.facts.shifts import shift
from holdfast.language.facts.vocabulary import (
    ASKING,
    BE,
    BOUNDARIES,
    EMPTY_WHOLES,
    FICTIONAL,
    JOBS,
    LEAD_PREPOSITIONS,
    LEADS,
    OPEN_GERUNDS,
    OPENERS,
    SUBORDINATORS,
    UNCERTAIN,
)

# No subject is longer; it bounds the search.
_MOST_SUBJECT_WORDS = 12
_MOST_LEAD_WORDS = 6
_RELATIVES = frozenset({"which", "who"})
_SPOUSES = frozenset({"husband", "wife"})
_FAVOURITES = frozenset({"favourite", "favorite"})


@dataclass(frozen=True, slots=True)
class Reading:
    """One triple as it stands in a clause, before it becomes a fact."""

    subject: str
    relation: str
    object: str
    rule: str
    negated: bool


@dataclass(frozen=True, slots=True)
class _Clause:
    """What one clause gave: its readings, its subjects for the next verb, and where it ends."""

    readings: tuple[Reading, ...]
    subjects: tuple[Name, ...]
    end: int


def readings(s: Sentence) -> Iterator[Reading]:
    """Yield what the sentence states or denies; nothing for questions, wishes, reports and suppositions."""
    if s.asks or any(token.text in UNCERTAIN for token in s.tokens):
        return
    i = _skip_leads(s, 0)
    if s.at(i) in ASKING or _fictional(s, i):
        return
    subjects: tuple[Name, ...] = ()
    comma_splits = s.at(0) in SUBORDINATORS
    while i < len(s.tokens):
        clause = _clause(s, i, subjects)
        if clause:
            yield from clause.readings
            subjects, i = clause.subjects, clause.end
        else:
            subjects = ()
        i = _next_clause(s, i, comma_splits=comma_splits)


def _skip_leads(s: Sentence, i: int) -> int:
    """Return where the first clause begins, after greetings, adverbs and a phrase of place or time."""
    while s.at(i) in LEADS and (s.at(i + 1) == "," or s.at(i) not in {"right", "sure", "no", "news"}):
        i += 1 + (s.at(i + 1) == ",")
    if s.at(i) in LEAD_PREPOSITIONS:
        for k in range(i + 1, i + _MOST_LEAD_WORDS):
            if s.at(k) == "," and not {s.at(j) for j in range(i, k)} & FICTIONAL:
                return k + 1
    return i


def _fictional(s: Sentence, i: int) -> bool:
    return s.at(i) in LEAD_PREPOSITIONS and any(s.at(k) in FICTIONAL for k in range(i, i + _MOST_LEAD_WORDS))


def _next_clause(s: Sentence, i: int, *, comma_splits: bool) -> int:
    while i < len(s.tokens):
        word = s.at(i)
        if word in BOUNDARIES or (word == "," and comma_splits):
            while s.at(i) in BOUNDARIES or s.at(i) == ",":
                i += 1
            return i
        i += 1
    return i


def _clause(s: Sentence, i: int, inherited: tuple[Name, ...]) -> _Clause | None:
    if inherited and (found := _predicate(s, i, inherited)):
        return found
    for v in range(i + 1, min(i + _MOST_SUBJECT_WORDS, len(s.tokens))):
        if s.at(v) in {";", ":", "because"}:
            return None
        subjects = _subjects(s, i, v) if s.at(v) in OPENERS else ()
        if not subjects:
            continue
        found = _relative_subject(s, v, subjects) or _predicate(s, v, subjects)
        if found:
            return found
    return None


def _subjects(s: Sentence, i: int, v: int) -> tuple[Name, ...]:
    """Return the names that the words from `i` to before `v` list, or nothing."""
    denied = s.at(i) == "neither"
    i += denied or s.at(i) == "both"
    cuts = [k for k in range(i, v) if s.at(k) in ({"nor"} if denied else {"and", "&", ","})]
    if cuts and s.at(cuts[-1]) == ",":
        return ()
    found, start = [], i
    for cut in (*cuts, v):
        if cut == start and s.at(cut) != ",":  # ", and"
            start = cut + 1
            continue
        one = name(s, start, cut)
        if one is None or phrase_end(s, start) < cut:
            return ()
        found.append(one)
        start = cut + 1
    if denied:
        return tuple(replace(one, denied=True) for one in found)
    return tuple(replace(one, plural=True) for one in found) if len(found) > 1 else tuple(found)


def _relative_subject(s: Sentence, v: int, subjects: tuple[Name, ...]) -> _Clause | None:
    """Read "X, which does A, does B" and "the X that does A does B"."""
    comma = s.at(v) == "," and s.at(v + 1) in _RELATIVES
    plain = s.at(v) in _RELATIVES | {"that"}
    if not (comma or plain) or not all(one.definite for one in subjects):
        return None
    inner = _predicate(s, v + 1 + comma, subjects, relative=True)
    if inner is None:
        return None
    outer = _predicate(s, inner.end + (s.at(inner.end) == ","), subjects)
    if outer is None:
        return inner if comma else None
    return _Clause(inner.readings + outer.readings, subjects, outer.end)


def _predicate(s: Sentence, v: int, subjects: tuple[Name, ...], *, relative: bool = False) -> _Clause | None:
    """Read the verb at `v` and its objects for the given subjects."""
    moved = shift(s, v)
    if moved:
        return _stated(s, moved[0], subjects, moved[1], moved[2])
    group = verb_group(s, v)
    if group is None:
        return _identity(s, v, subjects[0]) or _plural_class(s, v, subjects[0])
    if not all(_agrees(group, one) for one in subjects):
        return None
    found = objects(s, group.end, group.meaning.shape, relative=relative)
    if found is None or not _sensible(s, group, subjects, found):
        return None
    return _stated(s, group, subjects, *found, rule="relative" if relative else "")


def _agrees(group: Group, subject: Name) -> bool:
    """Return whether the verb's form fits: "Redis use" is a noun, "engineers use" is a clause."""
    if group.form == "base":
        # "Sounds like", "themes like": only people are believed to like.
        return subject.plural and (group.verb != "like" or subject.text.startswith(SPEAKER))
    return group.form != "third" or not subject.first


def _sensible(s: Sentence, group: Group, subjects: tuple[Name, ...], found: tuple[list[Object], int]) -> bool:
    """Return whether the objects say what the relation needs; each test is a way to say nothing in its words."""
    texts = [one.name.text for one in found[0]]
    relation = group.meaning.relation
    if group.meaning.rule == "copula":
        return all(is_class(text) for text in texts) and not any(is_vague(one.text) for one in subjects)
    if relation == "about":
        return not any(counts(text) for text in texts) and not any(one.first for one in subjects)
    if relation == "part_of":
        return not any(text.lower() in EMPTY_WHOLES for text in texts)
    if relation in {"likes", "dislikes"}:
        return s.at(group.end) != "the" and not (texts[-1].endswith("ing") and s.at(found[1]) in OPEN_GERUNDS)
    return True


def _stated(
    s: Sentence, group: Group, subjects: tuple[Name, ...], found: list[Object], end: int, rule: str = ""
) -> _Clause:
    subjects = tuple(lowered(one) if _plural_verb(group, one) else one for one in subjects)
    negated = group.negated != s.says(end, ("no", "longer"))
    triples = [
        _reading(group, one, other, rule or group.meaning.rule, negated=negated)
        for one in subjects
        for other in found
    ]
    clause = _Clause(tuple(triples), subjects, end)
    if s.at(end) == "," and s.at(end + 1) in _RELATIVES and not negated:
        tail = _predicate(s, end + 2, (found[-1].name,), relative=True)
        if tail:
            return _Clause(clause.readings + tail.readings, subjects, tail.end)
    return clause


def _plural_verb(group: Group, subject: Name) -> bool:
    return subject.plural and not subject.first and (group.form == "base" or group.verb in {"are", "do", "have"})


def _reading(group: Group, one: Name, other: Object, rule: str, *, negated: bool) -> Reading:
    subject, relation, value = one.text, group.meaning.relation, other.name.text
    if group.meaning.inverse:
        subject, value = value, subject
    if rule == "copula" and subject.startswith(SPEAKER) and value.split()[-1].lower() in JOBS:
        relation = "works_as"
    rule = "contrast" if other.denied and rule == "verb" else rule
    return Reading(subject, relation, value, rule, negated or other.denied or one.denied)


def _identity(s: Sentence, v: int, subject: Name) -> _Clause | None:
    """Read "my husband is Paulo", "my name is Ana", "my birthday is 3 May", "my favourite colour is green"."""
    owner, _, what = subject.text.partition("'s ")
    words = what.lower().split()
    p = v + 1 + (s.at(v + 1) == "now")
    negated = s.at(p) == "not"
    if owner != SPEAKER or not words or s.at(v) not in BE:
        return None
    end = phrase_end(s, p + negated)
    value = name(s, p + negated, end)
    relation = _identity_relation(words, value) if value and not value.first else ""
    if not value or not relation:
        return None
    return _Clause((Reading(owner, relation, value.text, "identity", negated),), (subject,), end)


def _identity_relation(words: list[str], value: Name) -> str:
    words = words[1:] if words[0] in {"new", "current"} else words
    if len(words) > 1 and words[0] in _FAVOURITES and is_class(value.text):
        return "favourite_" + "_".join(words[1:])
    proper = has_shape(value.text, "name")
    if words == ["birthday"] and has_shape(value.text, "date"):
        return "born_on"
    if len(words) != 1 or not proper:
        return ""
    if words[0] in _SPOUSES:
        return "married_to"
    return {"partner": "partner_of", "name": "named"}.get(words[0], "")


def _plural_class(s: Sentence, v: int, subject: Name) -> _Clause | None:
    """Read "whales are mammals": a bare plural on both sides, one word each."""
    value = name(s, v + 1, phrase_end(s, v + 1)) if s.at(v) == "are" else None
    if value is None or not (subject.plural and value.plural) or " " in subject.text + value.text:
        return None
    if not value.text.islower() or not is_class(value.text):
        return None
    subject = lowered(subject)
    return _Clause((Reading(subject.text, "instance_of", value.text, "copula", negated=False),), (subject,), v + 2)
