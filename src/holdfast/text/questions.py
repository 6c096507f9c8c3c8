"""Question → query profile (C7), and which turns only ask (C19): tables and small rules, no model.

Roles only ever boost. The one word that may leave the question is an act verb at its head; an entity never does.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from typing import cast

from holdfast.text.asking import is_for
from holdfast.text.sentences import PROSE, memoize_short
from holdfast.text.terms import Tokenizer, pieces, terms, words
from holdfast.text.words import any_of, entries, regex
from holdfast.text.words import words as listed
from holdfast.types import ACTS, ROLES, Act, QueryProfile, Role, Stance, Unit

ROLES_FOR_ACT: dict[Act, tuple[Role, ...]] = {act: tuple(entries("query", "roles")[act].split()) for act in ACTS}
ACTS_FOR_ROLE: dict[Role, tuple[Act, ...]] = {role: tuple(entries("query", "acts")[role].split()) for role in ROLES}

_HEAD_VERBS: dict[str, Act] = {
    verb: act for act in ROLES_FOR_ACT for verb in entries("query", "head_verbs")[act].split()
}
_PHRASES = tuple(
    (regex(pattern, re.IGNORECASE), cast("Act", act)) for act, pattern in entries("query", "phrases").items()
)

_ASSISTANT_WORDS = regex(
    rf"\b(?:you|assistant)(?:'d|'ve|\s+had|\s+have)?\s+(?:\w+\s+)?{any_of('query', 'told')}\b"
    rf"|\bdid (?:you|the assistant) (?:\w+ )?{any_of('query', 'tell')}\b"
    rf"|\byour (?:previous |earlier |last )?{any_of('query', 'answers')}s?\b"
    r"|\bour (?:last|previous|earlier|past) (?:conversation|chat|discussion|session)s?\b"
    r"|\bremind me\b|\b(?:show|paste|post|send|give|repeat|read) .{1,80}\bagain\b",
    re.IGNORECASE,
)
_REQUEST = regex(rf"\W*{any_of('query', 'requests')}\b", re.IGNORECASE)
_TASK = regex(any_of("query", "tasks"), re.IGNORECASE)
_FIRST_PERSON = regex(rf"\b{any_of('query', 'first_person')}\b", re.IGNORECASE)
_SUMMARY = regex(rf"\b{any_of('query', 'summary')}\b|\bsum(?:med)? up\b", re.IGNORECASE)
_HEAD = regex(r"\s*(?:please\s+)?([a-z]+)(?=[\s:,]|$)", re.IGNORECASE)

_SMALL_TALK = frozenset(stem for word in listed("query", "small_talk") for stem in terms(word))
_TIME_WORDS = frozenset(
    stem
    for name in ("months", "weekdays", "seasons", "day_parts", "numbers", "ordinals")
    for word in listed("calendar", name)
    for stem in terms(word)
)
# A letter before a digit (E0308, AK-5519), a joint inside a name (plan.rs, a_name, x::y, src/a/b), a capital inside a
# word, a version, a long number that is no year. Ordinals, clock times and ordinary hyphens are none.
_IDENTIFIER = regex(
    r"[^\W\d]-?\d|\d[A-Z]|\w\w[._@\\]\w\w|\w::\w|\w/\w+/\w|[a-z][A-Z]|\d\.\d+\.\d|\b(?!(?:19|20)\d\d\b)\d{4,}\b"
)
_YEAR = regex(r"1\d{3}|20\d{2}")
# Two capitals are too often a word when they are small (US, AD), and so is a short one that ends like a plural (ATS).
_ACRONYM = regex(r"(?<![\w.])(?:[A-Z]{2,}[A-RT-Z]|[A-Z]{6,})(?![\w.])")
# Whoever shouts writes every word in capitals; a code alone is one word ("ENOSPC", "HTTP 429").
_SHOUTED = regex(r"[A-Z]+\W+[A-Z]+")
# One word: of a quoted title, a unit may hold any word by chance.
_QUOTED = regex(r"[\"“«`]([^\s\"”»`]{2,60})[\"”»`]")
# "The error E0321 means …": what stands before the first word of a turn that names what it is about.
_NAMING = frozenset(listed("query", "naming"))
_NAMING_TERMS = frozenset(stem for word in _NAMING for stem in terms(word))
# "Fix of E0321:", "E0321 -": as long as a heading is.
_HEADING = regex(r"\s*((?:\S+\s+){0,3}?\S+?)(?::(?=\s|$)|\s+[-\u2013\u2014]\s)")
_CONTINUES = regex(rf"\b{any_of('query', 'continues')}\b", re.IGNORECASE)
_NOW = regex(rf"\b{any_of('query', 'now')}\b", re.IGNORECASE)
_THEN = regex(rf"\b{any_of('query', 'then')}\b", re.IGNORECASE)
_COURSE = regex(rf"\b{any_of('query', 'course')}\b", re.IGNORECASE)
_PRESENT = regex(rf"\b{any_of('query', 'present')}\b", re.IGNORECASE)
_PAST = regex(rf"\b{any_of('calendar', 'past')}\b", re.IGNORECASE)
# "When was the demo?" asks for the date that was right in the end; "where was I living?" for what held then.
_SETTLED = regex(
    r"\b(?:was|were) (?:it|the|my|our|his|her|their)\b|\b(?:when|(?:what|which) (?:time|day|date)) (?:was|were)\b",
    re.IGNORECASE,
)
# "Have I met her?" asks whether it ever happened.
_EXPERIENCE = regex(r"\W*(?:have|has|haven't|hasn't)\b", re.IGNORECASE)
# A note of so few words, without a verb, asks in the present: "my weekend curfew".
_MOST_NOTED = 6
# A question with fewer content terms than this cannot stand alone: it continues the previous one (C7), which may be a
# follow-up itself; a topic is named at most so many messages ago.
_FOLLOW_UP_TERMS, MOST_BORROWED = 3, 3
# "And the second one?", "when is it?", "which platform?", "who could help?": it begins as a reply, points back, has
# no verb, or hardly a topic. "Where do I live?" stands alone: what was talked about before leads away from it.
_REPLIES = regex(rf"\W*{any_of('query', 'replies')}\b", re.IGNORECASE)
_POINTS_BACK = regex(rf"\b{any_of('query', 'points_back')}\b", re.IGNORECASE)
_LATER_CAPITAL = regex(r"\w\W+[A-Z]")
_VERB = regex(rf"\b{any_of('query', 'verbs')}\b|'(?:s|re|m|ve|d|ll)\b", re.IGNORECASE)
# A question has a dozen terms; a pasted document is read up to here, and patterns look at its beginning.
_MOST_TERMS = 256
_MOST_CHARACTERS = 2000
_MOST_HEADING = 200
_ASKED = ("?", "\uff1f", "\u061f")


def profile_query(
    text: str, *, earlier: Sequence[str] = (), speakers: Iterable[str] = (), tokenise: Tokenizer = terms,
    any_short: bool = False,
) -> QueryProfile:  # fmt: skip
    """Return what `text` asks for; `earlier` are the user's messages before it, `speakers` the known names.

    A short question that points back borrows from the messages before it; with `any_short`, any short one does (C7).
    """
    plain = text[:_MOST_CHARACTERS].replace("\u2019", "'")  # phones type the curly apostrophe
    head = _HEAD.match(plain)
    verb = head.group(1).lower() if head else ""
    act = _HEAD_VERBS.get(verb) or next((act for pattern, act in _PHRASES if pattern.search(plain)), None)
    topic = text[head.end() :] if head and verb in _HEAD_VERBS else text
    found = _distinct(tokenise(topic)) or _distinct(tokenise(text))
    borrowed: list[str] = []
    for message in reversed(earlier[-MOST_BORROWED:]) if any_short or _points_back(plain, len(found)) else ():
        if len(found) < _FOLLOW_UP_TERMS and message:
            borrowed.insert(0, message)
            found = _distinct((*found, *tokenise(message)))
    participants = _find_participants(text, speakers)
    return QueryProfile(
        text=text,
        terms=found[:_MOST_TERMS],
        act=act,
        needed_roles=frozenset(ROLES_FOR_ACT[act]) if act else frozenset(),
        participants=participants,
        perspective=_find_perspective(plain, participants),
        stance=find_stance(plain, named=bool(participants)),
        borrowed="\n".join(borrowed) or None,
        # In the middle of a session the next step is the session's own.
        continues=bool(borrowed or not earlier) and _CONTINUES.search(plain) is not None,
        summary=_SUMMARY.search(plain) is not None,
        identifiers=_find_identifiers(text[:_MOST_CHARACTERS], tokenise),
        years=tuple(term for term in found if _YEAR.fullmatch(term)),
    )


def is_follow_up(text: str, tokenise: Tokenizer = terms) -> bool:
    """Return whether a question is too short to stand alone, and points back; bare keywords are no question."""
    found = _distinct(tokenise(text))
    return len(found) < _FOLLOW_UP_TERMS and len(words(text)) > len(found) and _points_back(text, len(found))


def _points_back(text: str, topics: int) -> bool:
    """Return whether a question with so many terms of its own is about what was said before it."""
    if _REPLIES.match(text) or _POINTS_BACK.search(text):
        return True
    named = _FIRST_PERSON.search(text) or _LATER_CAPITAL.search(text)
    return (topics < 2 and not named) or ("?" in text and _VERB.search(text) is None)


def find_stance(text: str, *, named: bool = False) -> Stance | None:
    """Return whether a question asks for what holds now, for what held before or how it went, or for neither.

    Of a speaker who is `named`, the present tense asks for anything they ever said; only words such as "still" and
    "currently" ask for what holds.
    """
    if _COURSE.search(text) or is_request(text):
        return "then" if _COURSE.search(text) else None
    if _THEN.search(text):
        return "then"
    if _NOW.search(text):
        return "now"
    if named or _EXPERIENCE.match(text):
        return None
    if _PAST.search(text):
        return "now" if _SETTLED.search(text) else "then"
    return "now" if _PRESENT.search(text) or len(text.split()) <= _MOST_NOTED else None


def is_request(text: str) -> bool:
    """Return whether a question asks for something to be done: "summarise …", "can you …", "any ideas for …"."""
    plain = text[:_MOST_CHARACTERS].replace("\u2019", "'")
    return _REQUEST.match(plain) is not None or _TASK.search(plain) is not None


def opening(text: str) -> list[str]:
    """Return the terms that a text opens with, as under a heading: before its colon or dash, else its first name.

    A number right behind the name belongs to it ("HTTP 429 is …"). A question tells nothing of what it opens with.
    """
    if text.rstrip().endswith(_ASKED):
        return []
    if heading := _HEADING.match(text[:_MOST_HEADING]):
        return terms(heading.group(1))
    told = (word for word in pieces(text[:_MOST_HEADING]) if not _NAMING.issuperset(words(word)))
    name, behind = next(told, ""), next(told, "")
    return terms(f"{name} {behind}" if behind.isdecimal() else name)


def asks_beside(query: QueryProfile) -> list[int]:
    """Return the places of the question's terms that ask for more than for what an identifier names."""
    plain = _NAMING_TERMS.union(query.identifiers)
    return [place for place, term in enumerate(query.terms) if term not in plain]


def without_names(text: str, names: Iterable[str]) -> str:
    """Return a question without the names in it; one that is nothing but names stays as it is."""
    bare = text
    for name in sorted(names, key=len, reverse=True):
        bare = re.sub(rf"(?<!\w){re.escape(name)}(?:['\u2019]s)?(?!\w)", " ", bare, flags=re.IGNORECASE)
    return " ".join(bare.split()) if terms(bare) else text


def asks_for_nothing(rest: str) -> bool:
    """Return whether a question without its time asks for no topic: "what did we talk about"."""
    return all(term[0].isdigit() for term in set(terms(rest)) - _SMALL_TALK - _TIME_WORDS)


def _distinct(found: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(found))


def _find_participants(text: str, speakers: Iterable[str]) -> tuple[str, ...]:
    asked = set(words(text))
    return tuple(name for name in speakers if (parts := words(name)) and asked.issuperset(parts))


def _find_identifiers(text: str, tokenise: Tokenizer) -> tuple[str, ...]:
    """Return the terms of what names one thing exactly: a code, a path, a name of a program, a word in quotes."""
    named = [word for word in pieces(text) if _IDENTIFIER.search(word)]
    named += [] if text.isupper() and _SHOUTED.search(text) else _ACRONYM.findall(text)
    named += _QUOTED.findall(text)
    return _distinct(found[0] for word in named if (found := tokenise(word)))


def _find_perspective(text: str, participants: tuple[str, ...]) -> str | None:
    """Return whose words the question asks for: the assistant's, a named speaker's, or the user's own."""
    if _ASSISTANT_WORDS.search(text):
        return "assistant"
    if participants:
        return participants[0]
    return "user" if _FIRST_PERSON.search(text) else None


# ----------------------------------------------------------------------------------------- turns that only ask

# A turn is read clause by clause, and every clause has to ask: "I moved to Porto, did I tell you?" tells before it
# asks, "can you believe I got the job?" while it does. In doubt a turn states something: an answer that ranks low
# costs more than a question that ranks high. A request that something be done ("can you book …", "remind me to …") is
# an intention, and no question. English is read closely, by rules and, as these fit the text of whoever wrote them,
# by a model of its words; of other languages it is known how a question opens, and one with a comma may tell.

LANGUAGES = listed("statements", "languages")
# What is longer tells something, whatever its form: in characters of a turn, and in words of a sentence.
_LONGEST_TURN, _LONGEST_SENTENCE = 400, 30
# So many words without a verb belong to the question before them ("tea or coffee?"), or ask by their mark ("my
# car?"); and so many to the one behind them ("Nora, when …"): "severe nut allergy, what can I eat?" tells.
_LONGEST_FRAGMENT, _LONGEST_ADDRESS = 8, 2
# One number may be what is asked about ("what did we do on 31 May?"); of two or more one is told.
_MOST_NUMBERS = 1


def _of_languages(part: str) -> frozenset[str]:
    return frozenset(word for name in LANGUAGES for word in entries("statements", name).get(part, "").split())


def _filled(name: str) -> str:
    """Return a pattern for any of a list, in which the names of other lists stand for their words."""
    return _NAMED.sub(lambda match: any_of("questions", match[1]), any_of("questions", name))


_NAMED = regex(r"\{([a-z]+)\}")
COURTESIES = _of_languages("courtesy")
_ENGLISH = frozenset(listed("questions", "openers"))
_OPENERS = _of_languages("question").union(_ENGLISH, listed("questions", "marked"))
_BORDER = regex(r"[,;:()](?=\s|$)|\s[-–—]+\s|—|[，；：、]")
_WORD = regex(r"[\w'-]+")
# A price is told, and what somebody needs to do beside a question; the model of words does not know.
_TOLD = regex(r"[$£€¥%]|[,;:] (?:i|we) (?:need|want|have|plan) to (?!know|remember|find|check)")
# The year of a date is part of it.
_NUMBER = regex(r"(?<![\w.,:/-])(?!(?:19|20)\d\d\b)\d[\w.,:/-]*")
_LEAD = regex(rf"(?:[^\w¿]|{any_of('questions', 'leads')}\b)*")
_FRONT = regex(rf"{any_of('questions', 'fronts')}\b")
# What asks without a mark, too.
_ASKING = regex(_filled("asking"))
_SOUGHT = regex(_filled("naming"))
_TELLING = regex(_filled("telling"))
_DELAYING = regex(_filled("delaying"))
_ABOUT_ASKING = regex(_filled("about_asking"))
_VERBS = "|".join((any_of("questions", "subjects"), any_of("query", "verbs"), any_of("calendar", "happened")))
_FINITE = regex(rf"\b(?!be\b)(?:{_VERBS}|\w{{3,}}ed)\b")


def asks_only(unit: Unit) -> bool:
    """Return whether a unit is a turn that states nothing; passages, rules and summaries are there to tell.

    So does an assistant that only puts off: "let me check that for you".
    """
    if unit.kind != "turn" or "question" in unit.overruled:
        return False
    return only_asks(unit.text) or (unit.author == "assistant" and puts_off(unit.text))


@memoize_short
def asks_what_was_asked(text: str) -> bool:
    """Return whether a question is about questions: "what did I ask you about the car?"."""
    return _ABOUT_ASKING.search(text[:_MOST_CHARACTERS].lower()) is not None


@memoize_short
def only_asks(text: str) -> bool:
    """Return whether every sentence of a text asks; a courtesy beside it does not count."""
    told = _sentences(text)
    return bool(told) and all(map(_asks, told))


def puts_off(text: str) -> bool:
    """Return whether every sentence of a text says that its speaker will look, or asks."""
    told = _sentences(text)
    return bool(told) and all(_delays(sentence) or _asks(sentence) for sentence in told)


def _sentences(text: str) -> list[str]:
    """Return the sentences of a short text in lower case, mere courtesies left out."""
    if len(text) > _LONGEST_TURN:
        return []
    plain = unicodedata.normalize("NFC", text).replace("\u2019", "'").lower()
    said = (plain[start:end] for start, end in PROSE.spans(plain))
    return [sentence for sentence in said if not _is_courtesy(sentence)]


def _delays(sentence: str) -> bool:
    clauses = [clause for part in _BORDER.split(sentence) if not _is_courtesy(clause := _without_lead(part))]
    return not _NUMBER.search(sentence) and (is_for(sentence, "delays") or all(map(_DELAYING.match, clauses)))


def _is_courtesy(sentence: str) -> bool:
    return all(word in COURTESIES for word in _WORD.findall(sentence))


def _asks(sentence: str) -> bool:
    """Return whether a sentence asks, and tells nothing as far as that is seen."""
    clauses = [clause for part in _BORDER.split(sentence) if not _is_courtesy(clause := _without_lead(part))]
    long = len(_WORD.findall(sentence)) > _LONGEST_SENTENCE or len(_NUMBER.findall(sentence)) > _MOST_NUMBERS
    if not clauses or long or sentence.endswith("!"):
        return False
    if is_for(sentence, "asks") and not _TOLD.search(sentence):
        return True
    return not _TELLING.search(sentence) and _is_built_as_question(sentence, clauses)


def _is_built_as_question(sentence: str, clauses: list[str]) -> bool:
    """Return whether each clause asks or belongs to one that does, as far as rules see it."""
    marked = sentence.endswith(_ASKED)
    if len(clauses) == 1 and _SOUGHT.match(clauses[0]):
        return True
    asking = [_is_question(clause, marked=marked, alone=len(clauses) == 1) for clause in clauses]
    if not any(asking):
        return False
    first = asking.index(True)
    led = all(_FRONT.match(one) or (marked and _is_fragment(one, _LONGEST_ADDRESS)) for one in clauses[:first])
    rest = zip(clauses[first:], asking[first:], strict=True)
    return led and all(asks or _FRONT.match(clause) or _is_fragment(clause) for clause, asks in rest)


def _without_lead(clause: str) -> str:
    """Return a clause without what leads up to it: "ok and", "hey", "by the way"."""
    lead = _LEAD.match(clause)
    return clause[lead.end() if lead else 0 :].rstrip(" .\"'?？؟")


def _is_question(clause: str, *, marked: bool, alone: bool) -> bool:
    if _ASKING.match(clause):
        return True
    opener = clause.split(maxsplit=1)[0].removesuffix("n't")
    # Chinese and Japanese ask at the end of a sentence.
    elsewhere = not opener.isascii() or opener in _OPENERS or _is_fragment(clause)
    return marked and (opener in _ENGLISH or (alone and elsewhere and not _NUMBER.search(clause)))


def _is_fragment(clause: str, longest: int = _LONGEST_FRAGMENT) -> bool:
    """Return whether a clause has no verb, as far as that is seen, and few words."""
    return len(_WORD.findall(clause)) <= longest and _FINITE.search(clause) is None
