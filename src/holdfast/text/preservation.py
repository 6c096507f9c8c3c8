"""What a summary must keep of what it stands for (C18): names, numbers, dates, negations.

No parser and no model: capital letters, digits, the temporal anchors of C13 and a table of negations. Where they
cannot tell, more is asked of a summary rather than less, and the extractive one, which quotes, is used instead.
A script without capitals shows no names; in German every noun looks like one.

Everything is read line by line, so that what stands in one turn never joins what stands in the next.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from holdfast.text.calendar import MONTH_NAMES, MONTHS
from holdfast.text.temporal import anchors
from holdfast.text.terms import STOP_WORDS, terms
from holdfast.text.terms import words as words_of
from holdfast.text.words import regex, words
from holdfast.values import dataclass


@dataclass(frozen=True, slots=True)
class Essentials:
    """What a text says that a summary may not lose, as it stands there; each once, in order."""

    names: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ()
    dates: tuple[str, ...] = ()
    negated: tuple[str, ...] = ()

    def phrases(self) -> tuple[str, ...]:
        """Return all of it: names, numbers, dates, negations."""
        return (*self.names, *self.numbers, *self.dates, *self.negated)


def essentials(text: str) -> Essentials:
    """Return the names, numbers, dates and negations of `text`."""
    names: list[str] = []
    numbers: list[str] = []
    dates: list[str] = []
    negated: list[str] = []
    for line in _lines(text):
        named, months = _names(line)
        anchored = sorted(anchor.rstrip(".") for anchor in anchors(line))
        names += named
        numbers += _numbers_outside(line, anchored)
        dated = frozenset[str]().union(*map(_date_parts, anchored))
        dates += anchored
        dates += (month for month in months if not _date_parts(month) <= dated)
        negated += (phrase for phrase, _ in find_negations(line))
    return Essentials(*(tuple(dict.fromkeys(found)) for found in (names, numbers, dates, negated)))


def missing(source: Essentials, summary_text: str) -> tuple[str, ...]:
    """Return what of `source` the summary does not say, as it stands in the source."""
    denied = [keys for line in _lines(summary_text) for _, keys in find_negations(line)]
    unsaid = (phrase for phrase in source.negated if not _is_denied(phrase, denied))
    return (*_Wording.of([summary_text]).lacking(source), *unsaid)


def invented(source_texts: Iterable[str], summary_text: str) -> tuple[str, ...]:
    """Return the names, numbers and dates of the summary that no source says."""
    return tuple(_Wording.of(source_texts).lacking(essentials(summary_text)))


@dataclass(frozen=True, slots=True)
class _Wording:
    """What a text may answer for: all its words, numbers and dates, read generously."""

    runs: frozenset[str]
    numbers: frozenset[str]
    dates: tuple[frozenset[str], ...]

    @classmethod
    def of(cls, texts: Iterable[str]) -> _Wording:
        lines = [line for text in texts for line in _lines(text)]
        runs = frozenset(run for line in lines for run in _runs(line))
        dates = {_date_parts(anchor) for line in lines for anchor in anchors(line)}
        dates |= {_date_parts(month) for month in MONTH_NAMES if month in runs}
        numbers = {key for line in lines for _, key in _numbers(line)} | {_NUMBER_WORDS[w] for w in runs & _COUNTED}
        return cls(runs, frozenset(numbers), tuple(dates))

    def lacking(self, asked: Essentials) -> Iterator[str]:
        """Yield the names, numbers and dates that are not said; a bare year may as well be a plain number."""
        yield from (name for name in asked.names if not self.runs.issuperset(_runs(name)))
        yield from (number for number in asked.numbers if _number_key(number) not in self.numbers)
        for date in asked.dates:
            parts = _date_parts(date)
            if not (parts <= self.numbers or any(parts <= said for said in self.dates)):
                yield date


# ------------------------------------------------------------------------------------------------- text

# Kana, Han and Hangul are written without spaces between words, also beside Latin letters.
_UNSPACED = "\u3005-\u3007\u3041-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff\U00020000-\U0003ffff"
_SCRIPT_CHANGE = regex(rf"(?<=[{_UNSPACED}])(?=[^\W{_UNSPACED}])|(?<=[^\W{_UNSPACED}])(?=[{_UNSPACED}])")
_WIDE_MARK = regex("[。，；：！？、]")
_APOSTROPHES = str.maketrans("’ʼ＇−", "'''-")
_POSSESSIVE = regex(r"'s(?!\w)")
_RUN = regex(r"[^\W\d_]+|\d+")


def _lines(text: str) -> list[str]:
    """Return the lines of `text` in one normal form, with spaces where a script does without."""
    spaced = _WIDE_MARK.sub(r"\g<0> ", text.translate(_APOSTROPHES))
    return _SCRIPT_CHANGE.sub(" ", unicodedata.normalize("NFKC", spaced)).splitlines()


def _runs(line: str) -> list[str]:
    """Return the runs of letters and the runs of digits, in one case, without the possessive."""
    return _RUN.findall(_POSSESSIVE.sub("", line.casefold()))


# ------------------------------------------------------------------------------------------------- names

_WORD = regex(r"(?<!\w)[^\W\d_][^\W_]*(?:['.&-][^\W_]+)*")
# What stands before the first word of a sentence, a quotation, a list item or an aside.
_OPENING = regex(r"[.!?…:;\"“”„«»(\[*•>|#–—-]")
_TITLES, _OPENERS, _AFTER_NAME = (
    frozenset(words("preservation", name)) for name in ("titles", "openers", "after_name")
)
# Endings of words that open a sentence without being a name: "Going", "Talked", "Recently", "Information".
_NO_NAME_ENDINGS = ("ing", "ed", "ly", "tion", "tions", "ment", "ments", "ness")
# Dates, not names; but Jan is a person more often than a month.
_CALENDAR = (frozenset(MONTHS) - {"jan"}) | {f"{day}{s}" for day in words("calendar", "weekdays") for s in ("", "s")}
# As first words these are verbs: "May I", "March on".
_MONTHS_THAT_ARE_VERBS = frozenset(("may", "march"))


@dataclass(frozen=True, slots=True)
class _NameWord:
    """One word of a line, the gap before it, and whether a sentence may begin with it."""

    raw: str
    gap: str
    opens: bool

    @property
    def folded(self) -> str:
        return self.raw.casefold().removesuffix("'s")

    @property
    def capital(self) -> bool:
        return any(character.isupper() for character in self.raw)

    @property
    def coined(self) -> bool:
        """Return whether a capital stands inside: no common word is written so."""
        return any(character.isupper() for character in self.raw[1:]) and not self.raw.isupper()


def _read_words(line: str) -> list[_NameWord]:
    found: list[_NameWord] = []
    last = 0
    for match in _WORD.finditer(line):
        gap = line[last : match.start()]
        titled = bool(found) and found[-1].folded in _TITLES and gap.strip() == "."
        found.append(_NameWord(match.group(), gap, not found or (bool(_OPENING.search(gap)) and not titled)))
        last = match.end()
    return found


def _names(line: str) -> tuple[list[str], list[str]]:
    """Return the names of a line, and the months named without a day."""
    found = _read_words(line)
    # Where everything is in capitals, they say nothing.
    if len(found) > 2 and all(word.raw.isupper() for word in found):
        return [], []
    lower = {word.folded for word in found if not word.capital}
    elsewhere = {word.folded for word in found if word.capital and not word.opens}
    names: list[str] = []
    months: list[str] = []
    run: list[str] = []
    for place, word in enumerate(found):
        after = found[place + 1] if place + 1 < len(found) else None
        named = not _is_common(word, lower) and (
            not word.opens or word.coined or word.folded in elsewhere or _opens_with_name(word, after)
        )
        if run and (not named or not word.gap.isspace()):
            names.append(" ".join(run))
            run = []
        if named:
            run.append(word.raw.removesuffix("'s"))
        elif word.capital and word.folded in MONTH_NAMES:
            months += [] if word.opens and word.folded in _MONTHS_THAT_ARE_VERBS else [word.folded]
    return [*names, " ".join(run)] if run else names, months


def _is_common(word: _NameWord, lower: set[str]) -> bool:
    if not word.capital or word.coined:
        return not word.capital
    start = word.folded.partition("'")[0]
    if start in STOP_WORDS or word.folded in _CALENDAR or word.folded in _TITLES or word.folded in lower:
        return True
    return word.opens and word.folded in _OPENERS


def _opens_with_name(word: _NameWord, after: _NameWord | None) -> bool:
    """Return whether the first word of a sentence is a name, by its ending and by the word behind it."""
    if word.folded.endswith(_NO_NAME_ENDINGS):
        return False
    if after is None or not after.gap.isspace() or word.raw.endswith("'s"):
        return True
    follower = after.raw.casefold()
    return after.capital or follower in _AFTER_NAME or follower.endswith(("s", "ed"))


# --------------------------------------------------------------------------------------------- negations

# A table of words, and for scripts without spaces of characters. A prefix or an ending that negates is not seen.
_NEGATIONS = frozenset(words("negations", "words"))
_NEGATED_INSIDE = regex(r"[不没沒無无未別别勿]|ない|なかっ|ません|않|없|못")
_CLAUSE_MARKS = tuple(".,;:!?…。、")
_CLOSING_MARKS = "\"'”’)]»*"
_EDGE_MARKS = _CLOSING_MARKS + "".join(_CLAUSE_MARKS)
_CLAUSE_WORDS = frozenset(words("negations", "clause_words"))
# What is negated stands in the next few words; the first three that say something tell which it is.
_TELLING = 3
_WINDOW = 8
_LIGHT = frozenset(terms(" ".join(words("negations", "light"))))


def find_negations(line: str) -> Iterator[tuple[str, frozenset[str]]]:
    """Yield each negation of a line as a phrase, with the terms of the clause it stands in."""
    for clause in _clauses(line):
        places = [place for place, token in enumerate(clause) if _negates(token)]
        keys = _telling_terms(clause) if places else frozenset[str]()
        for place in places:
            yield " ".join(_negated_phrase(clause, place)).rstrip(_EDGE_MARKS), keys


def _is_denied(phrase: str, denied: Sequence[frozenset[str]]) -> bool:
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


def _negated_phrase(clause: Sequence[str], place: int) -> Sequence[str]:
    """Return the negation and what it negates: the words behind it, or those before it if it ends the clause."""
    window = range(place + 1, min(place + 1 + _WINDOW, len(clause)))
    behind = [i for i in window if _telling_terms([clause[i]])][:_TELLING]
    if behind:
        return clause[place : behind[-1] + 1]
    before = [i for i in range(max(0, place - _WINDOW), place) if _telling_terms([clause[i]])][-_TELLING:]
    return clause[before[0] if before else place : place + 1]


def _telling_terms(tokens: Iterable[str]) -> frozenset[str]:
    """Return the terms of the tokens that are no negations themselves."""
    return frozenset(term for token in tokens if not _is_negation(_bare_word(token)) for term in terms(token))


def _negates(token: str) -> bool:
    bare = _bare_word(token)
    return _is_negation(bare) or bool(_NEGATED_INSIDE.search(bare))


def _is_negation(bare: str) -> bool:
    return bare in _NEGATIONS or bare.endswith("n't")


def _bare_word(token: str) -> str:
    return "".join(words_of(token))


# ------------------------------------------------------------------------------------------------- numbers

# A sign counts where nothing stands before it: "-5" is one, the hyphen of "2-3" is none.
_NUMBER = regex(r"(?:(?<![^\s(])-)?\d+(?:[.,]\d+)*")
_GROUPED = regex(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?")
_GROUPED_BY_POINTS = regex(r"\d{1,3}(?:\.\d{3}){2,}|\d{1,3}(?:\.\d{3})+,\d+")
_DECIMAL_COMMA = regex(r"\d+,\d{1,2}")
_NUMBER_WORDS = {word: str(value) for value, word in enumerate(words("calendar", "numbers")[:12], 1)}
_COUNTED = frozenset(_NUMBER_WORDS)


def _numbers(line: str) -> list[tuple[str, str]]:
    """Return the numbers of a line as they stand there, each with its key."""
    return [(match.group(), _number_key(match.group())) for match in _NUMBER.finditer(line)]


def _number_key(text: str) -> str:
    """Return one form for all ways to write a number: 1,000 and 1000, 3.50 and 3.5, seven and 7."""
    if word := _NUMBER_WORDS.get(text.casefold()):
        return word
    sign, digits = ("-", text[1:]) if text.startswith("-") else ("", text)
    digits = "".join(str(unicodedata.decimal(c, c)) for c in digits)
    if _GROUPED.fullmatch(digits):
        digits = digits.replace(",", "")
    elif _GROUPED_BY_POINTS.fullmatch(digits) or _DECIMAL_COMMA.fullmatch(digits):
        digits = digits.replace(".", "").replace(",", ".")
    if digits.count(".") + digits.count(",") > 1:  # a version, or a list without spaces
        return sign + digits
    whole, point, fraction = digits.partition(".")
    fraction = fraction.rstrip("0")
    return sign + (whole.lstrip("0") or "0") + (point + fraction if fraction else "")


def _numbers_outside(line: str, dates: Sequence[str]) -> list[str]:
    """Return the numbers of a line that are no part of a date, words for small ones too.

    "One" is left out: it is a pronoun more often than a number.
    """
    in_dates = Counter(key for date in dates for _, key in _numbers(date))
    found = []
    for written, key in _numbers(line):
        if in_dates[key] > 0:
            in_dates[key] -= 1
        else:
            found.append(written)
    return found + [run for run in _runs(line) if run in _COUNTED and run != "one"]


# ------------------------------------------------------------------------------------------------- dates

_ISO_DATE = regex(r"(\d{4})-(\d\d)-(\d\d)(?:[t ](.+))?")
_SLASHED = regex(r"(\d\d?)/(\d\d?)(?:/(\d{2,4}))?")
_CLOCK = regex(r"(\d\d?):(\d\d)\s?([ap])?.*")
_DATE_WORD = regex(r"\d+|[^\W\d_]+")
_ORDINAL_ENDINGS = frozenset(("st", "nd", "rd", "th", "of"))
# A year of two digits is one of this century in a conversation.
_CENTURY = 2000


def _date_parts(date: str) -> frozenset[str]:
    """Return what a date says, whatever the way it is written: year, `m` and month, day, weekday, clock time."""
    if iso := _ISO_DATE.fullmatch(date):
        return frozenset((iso[1], f"m{int(iso[2])}", str(int(iso[3])))) | _date_parts(iso[4] or "")
    if clock := _CLOCK.fullmatch(date):
        hour = int(clock[1]) % 12 + (12 if clock[3] == "p" else 0) if clock[3] else int(clock[1])
        return frozenset((f"{hour}:{clock[2]}",))
    if slashed := _SLASHED.fullmatch(date):
        return _slashed_parts(int(slashed[1]), int(slashed[2]), slashed[3])
    parts = set()
    for part in _DATE_WORD.findall(date):
        if part in MONTHS:
            parts.add(f"m{MONTHS[part]}")
        elif part not in _ORDINAL_ENDINGS:
            parts.add(_number_key(part) if part.isdecimal() else part.removesuffix("s"))
    return frozenset(parts)


def _slashed_parts(first: int, second: int, year: str | None) -> frozenset[str]:
    """Return month and day where only one reading is possible; 3/4 stays what it is."""
    years = [str(int(year) + (_CENTURY if len(year) == 2 else 0))] if year else []
    if first > 12 or second > 12:
        day, month = max(first, second), min(first, second)
        return frozenset((f"m{month}", str(day), *years))
    return frozenset((f"{first}/{second}", *years))
