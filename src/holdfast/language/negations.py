"""What a text denies (C18): its negations, and whether another text denies the same.

A table of words, and for scripts without spaces of characters; no parser. What is negated by a prefix or an ending
is not seen.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from holdfast.language.lexical import terms, words

_NEGATIONS = frozenset(
    """
    no not never none nobody nothing nowhere neither nor without cannot nope
    dont doesnt didnt cant wont isnt wasnt arent havent hasnt shouldnt wouldnt couldnt
    nicht kein keine keinen keinem keiner keines nie niemals ohne nichts
    ne pas jamais sans aucun aucune ni nunca jamás sin tampoco não nem sem non senza né nessun nessuno nessuna
    niet geen nooit zonder inte aldrig utan ingen inget ikke aldri
    не нет ни никогда без ні ніколи немає nie nigdy bez δεν μη μην χωρίς değil yok
    لا ليس لم لن بدون לא אין בלי नहीं मत बिना không chưa
    """.split()
)
_NEGATED_INSIDE = re.compile(r"[不没沒無无未別别勿]|ない|なかっ|ません|않|없|못")
_CLAUSE_MARKS = tuple(".,;:!?…。、")
_CLOSING_MARKS = "\"'”’)]»*"
_EDGE_MARKS = _CLOSING_MARKS + "".join(_CLAUSE_MARKS)
_CLAUSE_WORDS = frozenset("but however although though because while aber mais pero mas но ma".split())
# What is negated stands in the next few words; the first three that say something tell which it is.
_TELLING = 3
_WINDOW = 8
# Verbs that many negations share: "do not like" and "do not want" tell nothing before their object.
_LIGHT = frozenset(terms("like want think know need make use go going feel really any anything yet even much"))


def negations(line: str) -> Iterator[tuple[str, frozenset[str]]]:
    """Yield each negation of a line as a phrase, with the terms of the clause it stands in."""
    for clause in _clauses(line):
        places = [place for place, token in enumerate(clause) if _negates(token)]
        keys = _telling_terms(clause) if places else frozenset[str]()
        for place in places:
            yield " ".join(_phrase(clause, place)).rstrip(_EDGE_MARKS), keys


def is_denied(phrase: str, denied: Sequence[frozenset[str]]) -> bool:
    """Return whether a negated clause shares half of what `phrase` is about; a bare "no" asks for any."""
    keys = _telling_terms(phrase.split())
    keys = keys - _LIGHT or keys
    return any(2 * len(keys & clause) >= len(keys) for clause in denied)


def _clauses(line: str) -> Iterator[list[str]]:
    clause: list[str] = []
    for token in line.split():
        if clause and token.casefold() in _CLAUSE_WORDS:
            yield clause
            clause = []
        clause.append(token)
        if token.rstrip(_CLOSING_MARKS).endswith(_CLAUSE_MARKS):
            yield clause
            clause = []
    if clause:
        yield clause


def _phrase(clause: Sequence[str], place: int) -> Sequence[str]:
    """Return the negation and what it negates: the words behind it, or those before it if it ends the clause."""
    window = range(place + 1, min(place + 1 + _WINDOW, len(clause)))
    behind = [i for i in window if _telling_terms([clause[i]])][:_TELLING]
    if behind:
        return clause[place : behind[-1] + 1]
    before = [i for i in range(max(0, place - _WINDOW), place) if _telling_terms([clause[i]])][-_TELLING:]
    return clause[before[0] if before else place : place + 1]


def _telling_terms(tokens: Iterable[str]) -> frozenset[str]:
    """Return the terms of the tokens that are no negations themselves."""
    return frozenset(term for token in tokens if not _is_negation(_bare(token)) for term in terms(token))


def _negates(token: str) -> bool:
    bare = _bare(token)
    return _is_negation(bare) or bool(_NEGATED_INSIDE.search(bare))


def _is_negation(bare: str) -> bool:
    return bare in _NEGATIONS or bare.endswith("n't")


def _bare(token: str) -> str:
    return "".join(words(token))
