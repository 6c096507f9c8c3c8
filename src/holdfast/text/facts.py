"""Facts that a text states, by rules and without a model (C8).

Precision before recall: a wrong fact is worse than none. A sentence is read only when the whole clause fits: a
subject, a verb group the rules know, and objects that look like what the relation is about. What it gives:

- A denied statement (not, never, no longer, stopped using, neither … nor, "A, not B") makes no positive fact; it is
  kept as `negated`, so that a contradiction can be noticed.
- Questions, commands, suppositions (if, maybe, might, would), plans, reports (said, thinks, according to), the
  past ("used to live") and pronouns of others (he, it, they) give nothing at all.
- First person gives the subject `SPEAKER`, which `resolve_speaker` replaces: "I live in Lisbon" of Ana is about Ana.
- "Y has part X" reads "X part_of Y".

The reference reads one pattern per relation, takes the first that fits and keeps what stands around it: "A never
uses B" had the subject "A never".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cache

from holdfast.text import grammar
from holdfast.text.grammar import SPEAKER, Name, VerbGroup
from holdfast.text.names import Aliases, symbol
from holdfast.text.sentences import PROSE, Sentence, is_question, memoize_short, parts_in, read_sentence
from holdfast.text.words import any_of, words
from holdfast.types import Fact, Unit
from holdfast.values import dataclass

# C8's relations: the rules of closure speak about these, and others only take part in hops.
RELATIONS = words("facts", "relations")

# The reference gives every extracted fact .9. What takes a further step of reading is trusted a little less.
CONFIDENCE = dict.fromkeys(("verb", "inverse", "passive", "state", "identity", "contrast"), 0.9)
CONFIDENCE |= dict.fromkeys(("copula", "relative", "shift"), 0.8)

# An assistant's general knowledge is not what its user knows, and a summary only repeats.
_STATING = ("user", "document")

# ---------------------------------------------------------------------------------------------- what is worth reading

# In characters. Nobody names a belonging at such length.
_LONGEST_OBJECT = 200


def _cues() -> Iterator[tuple[str, str]]:
    """Yield what every stated fact says somewhere, in lower case, by a word that it begins with: most turns say none.

    It may say more than facts do; never less.
    """
    passed = "|".join((*sorted(grammar.PASSED_OVER), r"no\s+longer", "n't"))
    states = "|".join(r"\s+".join(phrase) for phrase in grammar.STATES)
    state = rf"(?:\b(?:am|is|are|was|were)(?:n't)?|'(?:m|re|s))(?:\s+(?:{passed}))*+\s+(?:an?|{states})\b"
    for word in "am is are was were isn aren wasn weren m re s".split():
        yield word, state
    for word in ("are", "re"):
        yield word, r"(?:\bare|'re)\W+(?:(?:an?|the)\W+)?\w\S*s\b"
    for word in ("my", "our"):
        named = "favou?rite|birthday|husband|wife|partner|name"
        yield word, rf"\b{word}\s+(?:(?:new|current)\s+)?(?:{named})\b"
    for word in (*grammar.MOVING, *grammar.SWITCHING):
        yield word, rf"\b{word}\s+(?:(?:{'|'.join(grammar.WAYS)})\s+)?(?:from|to|into|in|away|out)\b"
    for word in ("replaced", "joined", "left"):
        yield word, word
    kept = rf"(?=.{{0,{_LONGEST_OBJECT}}}\b{any_of('facts', 'belongings')}\b)"
    yield "ve", rf"'ve\b{kept}"
    for phrase, (_, meaning) in grammar.VERBS.items():
        said = r"\s+".join(phrase)
        yield phrase[0], rf"\b{said}\b{kept if meaning.shape == 'belonging' else ''}"


def _cues_by_word() -> dict[str, str]:
    found: dict[str, list[str]] = {}
    for word, pattern in _cues():
        found.setdefault(word, []).append(pattern)
    return {word: "|".join(patterns) for word, patterns in found.items()}


_CUES = _cues_by_word()


@cache
def _cue(word: str) -> re.Pattern[str]:
    """Return the pattern of what begins with a word, compiled when a text first has that word."""
    return re.compile(_CUES[word], re.DOTALL)


def _may_state(text: str) -> bool:
    """Return whether a text is worth reading: it has a verb that states something."""
    said = parts_in(text) & _CUES.keys()
    lowered = text.lower().replace("’", "'")
    return any(_cue(word).search(lowered) for word in said)


@dataclass(frozen=True, slots=True)
class StatedTriple:
    """A fact as a text states it: the sentence it stands in, [start, end), whether it is denied, and the rule."""

    fact: Fact
    start: int
    end: int
    rule: str
    negated: bool = False


@memoize_short
def extract(text: str) -> tuple[StatedTriple, ...]:
    """Return what `text` states and denies, in reading order, each once per sentence."""
    if not _may_state(text):
        return ()
    found: dict[tuple[object, ...], StatedTriple] = {}
    for start, end in PROSE.spans(text):
        if is_question(text, start, end) or not _may_state(text[start:end]):
            continue
        for one in _readings(read_sentence(text, start, end)):
            subject, value = symbol(one.fact.subject), symbol(one.fact.object)
            if subject and value and subject != value:
                found.setdefault((start, subject, one.fact.relation, value, one.negated), one)
    return tuple(found.values())


def resolve_speaker(stated: Iterable[StatedTriple], speaker: str) -> tuple[StatedTriple, ...]:
    """Return the statements with the speaker's name in place of `SPEAKER`; without a name those are left out."""
    found = []
    for one in stated:
        if SPEAKER in one.fact.subject + one.fact.object:
            if not speaker:
                continue
            subject = one.fact.subject.replace(SPEAKER, speaker)
            value = one.fact.object.replace(SPEAKER, speaker)
            found.append(replace(one, fact=replace(one.fact, subject=subject, object=value)))
        else:
            found.append(one)
    return tuple(found)


def speaker_of(unit: Unit) -> str:
    """Return whose words a unit holds: the speaker's name, or the user whose memory it is."""
    return unit.speaker or (unit.user or "" if unit.author == "user" else "")


def sentences_of(unit: Unit) -> tuple[tuple[Fact, str], ...]:
    """Return the facts that a unit states, each with the sentence that states it; symbols as without aliases."""
    return tuple((_with_symbols(fact, Aliases()), sentence) for fact, sentence in facts_of(unit))


def stated_facts(unit: Unit, aliases: Aliases) -> tuple[Fact, ...]:
    """Return the facts that a unit states, with symbols at both ends; what it denies is left out."""
    facts = (_with_symbols(fact, aliases) for fact, _ in facts_of(unit))
    return tuple(dict.fromkeys(fact for fact in facts if fact.subject and fact.object))


def facts_of(unit: Unit) -> list[tuple[Fact, str]]:
    """Return a unit's authored triple, or what rules read in its words, as written; each with its sentence."""
    if unit.fact is not None:
        return [(unit.fact, unit.text)]
    if unit.author not in _STATING or unit.kind == "summary":
        return []
    stated = resolve_speaker(extract(unit.text), speaker_of(unit))
    return [(one.fact, unit.text[one.start : one.end]) for one in stated if not one.negated]


def _with_symbols(fact: Fact, aliases: Aliases) -> Fact:
    return Fact(aliases.symbol(fact.subject), fact.relation, aliases.symbol(fact.object), fact.confidence)


# ------------------------------------------------------------------------------------------------------------ clauses

# No subject is longer; it bounds the search.
_MOST_SUBJECT_WORDS = 12
_MOST_LEAD_WORDS = 6
_ASKING = frozenset((*words("questions", "openers"), *words("questions", "wishes")))
_UNCERTAIN, _FICTIONAL = grammar.word_set("uncertain"), grammar.word_set("fictional")
_LEADS = grammar.word_set("leads") | (grammar.ADVERBS - grammar.word_set("no_leads"))
_LEAD_PREPOSITIONS, _SUBORDINATORS, _BOUNDARIES = map(
    grammar.word_set, ("lead_prepositions", "subordinators", "boundaries")
)
_EMPTY_WHOLES, _OPEN_GERUNDS = grammar.word_set("empty_wholes"), grammar.word_set("open_gerunds")
_RELATIVES = frozenset({"which", "who"})
_SPEAKING = frozenset({"i", "we"})
_PARTNERS = {"husband": "married_to", "wife": "married_to", "partner": "partner_of", "name": "named"}


@dataclass(frozen=True, slots=True)
class _Clause:
    """What one clause gave: its readings, its subjects for the next verb, and where it ends."""

    readings: tuple[StatedTriple, ...]
    subjects: tuple[Name, ...]
    end: int


def _is_uncertain(s: Sentence) -> bool:
    """Return whether a sentence asks, supposes, reports, doubts or invents, by its first words or any other."""
    return s.at(0) in _ASKING or not _UNCERTAIN.isdisjoint(s.words) or _is_fictional(s, 0)


def _readings(s: Sentence) -> Iterator[StatedTriple]:
    """Yield what the sentence states or denies; nothing for questions, wishes, reports and suppositions."""
    if not _UNCERTAIN.isdisjoint(s.words):
        return
    i = _skip_leads(s)
    if s.at(i) in _ASKING or _is_fictional(s, i):
        return
    subjects: tuple[Name, ...] = ()
    while i < len(s.words):
        clause = _clause(s, i, subjects)
        if clause:
            yield from clause.readings
            i = clause.end
        subjects = clause.subjects if clause else ()
        i = _next_clause(s, i)


def _skip_leads(s: Sentence) -> int:
    """Return where the first clause begins, after greetings, adverbs and a phrase of place or time."""
    i = 0
    while s.at(i) in _LEADS and (s.at(i + 1) == "," or s.at(i) not in {"right", "sure", "no", "news"}):
        i += 1 + (s.at(i + 1) == ",")
    if s.at(i) in _LEAD_PREPOSITIONS:
        for k in range(i + 1, i + _MOST_LEAD_WORDS):
            if s.at(k) == "," and _FICTIONAL.isdisjoint(s.words[i:k]):
                return k + 1
    return i


def _is_fictional(s: Sentence, i: int) -> bool:
    return s.at(i) in _LEAD_PREPOSITIONS and not _FICTIONAL.isdisjoint(s.words[i : i + _MOST_LEAD_WORDS])


def _next_clause(s: Sentence, i: int) -> int:
    """Return where the clause behind the next boundary begins; behind "although …" a comma is one."""
    ends = _BOUNDARIES | {","} if s.at(0) in _SUBORDINATORS else _BOUNDARIES
    while i < len(s.words) and s.at(i) not in ends and not (s.at(i) == "," and s.at(i + 1) in _SPEAKING):
        i += 1
    while s.at(i) in _BOUNDARIES or s.at(i) == ",":
        i += 1
    return i


def _clause(s: Sentence, i: int, inherited: tuple[Name, ...]) -> _Clause | None:
    if inherited and (found := _predicate(s, i, inherited)):
        return found
    if not grammar.may_begin_name(s.at(i)):
        return None
    for v in range(i + 1, min(i + _MOST_SUBJECT_WORDS, len(s.words))):
        if s.at(v) in {";", ":", "because"}:
            return None
        subjects = _subjects(s, i, v) if s.at(v) in grammar.OPENERS else ()
        if subjects and (found := _relative_subject(s, v, subjects) or _predicate(s, v, subjects)):
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
        one = grammar.read_name(s, start, cut)
        if one is None or grammar.phrase_end(s, start) < cut:
            return ()
        found.append(one)
        start = cut + 1
    if denied:
        return tuple(replace(one, denied=True) for one in found)
    return tuple(replace(one, plural=True) for one in found) if len(found) > 1 else tuple(found)


def _relative_subject(s: Sentence, v: int, subjects: tuple[Name, ...]) -> _Clause | None:
    """Read "X, which does A, does B" and "the X that does A does B"."""
    comma = s.at(v) == "," and s.at(v + 1) in _RELATIVES
    plain = s.at(v) in _RELATIVES or s.at(v) == "that"
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
    if shifted := grammar.shift(s, v):
        return _stated(s, *shifted, subjects)
    group = grammar.verb_group(s, v)
    if group is None:
        return _identity(s, v, subjects[0]) or _plural_class(s, v, subjects[0])
    if not all(_agrees(group, one) for one in subjects):
        return None
    found = grammar.read_objects(s, group.end, group.meaning.shape, relative=relative)
    if found is None or not _is_sensible(s, group, subjects, *found):
        return None
    return _stated(s, group, *found, subjects, rule="relative" if relative else "")


def _stated(
    s: Sentence, group: VerbGroup, objects: list[Name], end: int, subjects: tuple[Name, ...], rule: str = ""
) -> _Clause:
    subjects = tuple(grammar.lower_plural(one) if _has_plural_verb(group, one) else one for one in subjects)
    negated = group.negated != s.says(end, ("no", "longer"))
    rule = rule or group.meaning.rule
    readings = tuple(_reading(s, group, one, other, rule, negated=negated) for one in subjects for other in objects)
    if s.at(end) == "," and s.at(end + 1) in _RELATIVES and not negated:
        tail = _predicate(s, end + 2, (replace(objects[-1], denied=False),), relative=True)
        if tail:
            return _Clause(readings + tail.readings, subjects, tail.end)
    return _Clause(readings, subjects, end)


def _reading(s: Sentence, group: VerbGroup, one: Name, other: Name, rule: str, *, negated: bool) -> StatedTriple:
    subject, relation, value = one.text, group.meaning.relation, other.text
    if group.meaning.inverse:
        subject, value = value, subject
    if rule == "copula" and subject.startswith(SPEAKER) and value.split()[-1].lower() in grammar.JOBS:
        relation = "works_as"
    rule = "contrast" if other.denied and rule == "verb" else rule
    return _state(s, subject, relation, value, rule, negated=negated or other.denied or one.denied)


def _state(s: Sentence, subject: str, relation: str, value: str, rule: str, *, negated: bool) -> StatedTriple:
    return StatedTriple(Fact(subject, relation, value, CONFIDENCE[rule]), s.start, s.end, rule, negated)


def _agrees(group: VerbGroup, subject: Name) -> bool:
    """Return whether the verb's form fits: "Redis use" is a noun, "engineers use" is a clause."""
    if group.form == "base":
        # "Sounds like", "themes like": only people are believed to like.
        return subject.plural and (group.verb != "like" or subject.text.startswith(SPEAKER))
    return group.form != "third" or not subject.first


def _has_plural_verb(group: VerbGroup, subject: Name) -> bool:
    return subject.plural and not subject.first and (group.form == "base" or group.verb in {"are", "do", "have"})


def _is_sensible(s: Sentence, group: VerbGroup, subjects: tuple[Name, ...], objects: list[Name], end: int) -> bool:
    """Return whether the objects say what the relation needs; each test is a way to say nothing in its words."""
    texts = [one.text for one in objects]
    relation = group.meaning.relation
    if group.meaning.rule == "copula":
        return all(grammar.is_class(text) for text in texts) and not any(
            grammar.is_vague(one.text) for one in subjects
        )
    if relation == "about":
        return not any(grammar.is_counted(text) for text in texts) and not any(one.first for one in subjects)
    if relation == "part_of":
        return not any(text.lower() in _EMPTY_WHOLES for text in texts)
    if relation in {"likes", "dislikes"}:
        return s.at(group.end) != "the" and not (texts[-1].endswith("ing") and s.at(end) in _OPEN_GERUNDS)
    return True


def _identity(s: Sentence, v: int, subject: Name) -> _Clause | None:
    """Read "my husband is Paulo", "my name is Ana", "my birthday is 3 May", "my favourite colour is green"."""
    owner, _, what = subject.text.partition("'s ")
    kind = what.lower().split()
    if owner != SPEAKER or not kind or s.at(v) not in grammar.BE:
        return None
    p = v + 1 + (s.at(v + 1) == "now")
    negated = s.at(p) == "not"
    end = grammar.phrase_end(s, p + negated)
    value = grammar.read_name(s, p + negated, end)
    relation = _identity_relation(kind, value) if value and not value.first else ""
    if not value or not relation:
        return None
    return _Clause((_state(s, owner, relation, value.text, "identity", negated=negated),), (subject,), end)


def _identity_relation(kind: list[str], value: Name) -> str:
    kind = kind[1:] if kind[0] in {"new", "current"} else kind
    named = grammar.is_class(value.text) and not value.text.endswith("ing")  # "my favourite team is losing"
    if len(kind) > 1 and kind[0] in {"favourite", "favorite"} and named:
        return "favourite_" + "_".join(kind[1:])
    if kind == ["birthday"] and grammar.has_shape(value.text, "date"):
        return "born_on"
    return _PARTNERS.get(kind[0], "") if len(kind) == 1 and grammar.has_shape(value.text, "name") else ""


def _plural_class(s: Sentence, v: int, subject: Name) -> _Clause | None:
    """Read "whales are mammals": a bare plural on both sides, one word each."""
    value = grammar.read_name(s, v + 1, grammar.phrase_end(s, v + 1)) if s.at(v) == "are" else None
    if value is None or not (subject.plural and value.plural) or " " in subject.text + value.text:
        return None
    if not value.text.islower() or not grammar.is_class(value.text):
        return None
    subject = grammar.lower_plural(subject)
    return _Clause((_state(s, subject.text, "instance_of", value.text, "copula", negated=False),), (subject,), v + 2)
