"""What the gate reads in a turn (C17): what it states about its speaker (D_nl), and what technical talk it is.

The technical side: what a turn points at (P), what was done (A), what it defines (D_tech), and how much of it there
is (T). Groups and weights are the reference's. Its rules took every word in "e" for an error code, "go" and "make"
for commands, every slash for a path and every parenthesis for a call; the rules here ask for what only code has.

The reference knows English only and is blind to everyone else. Here a language is a few patterns of `english.toml`:
the plainest ways to say what one likes and who one is, and, for the wide reading, what one is resolved to do, how a
question opens and what is mere courtesy. They read text in lower case with single spaces and straight apostrophes.

No pattern repeats inside a repetition, so that every text is read in linear time.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

from holdfast.settings import GateSettings
from holdfast.text.questions import COURTESIES, LANGUAGES
from holdfast.text.sentences import parts_in
from holdfast.text.terms import STOP_WORDS
from holdfast.text.terms import words as words_of
from holdfast.text.words import any_of, entries, regex, words
from holdfast.values import dataclass

# Sum of technical patterns at which a turn counts as wholly technical (C17).
_TECHNICAL_NORM = 1.5


@dataclass(frozen=True, slots=True)
class Signals:
    """What the text alone says, each in [0, 1]: T, D_nl, P, A, D_tech."""

    technical: float = 0.0
    statement: float = 0.0
    specificity: float = 0.0
    action: float = 0.0
    structure: float = 0.0
    about_someone: bool = False  # names a person, a liking, an identity or a resolve; no part of the formula


def signals(text: str, settings: GateSettings) -> Signals:
    """Return the signals of `text`, edge white space apart; blank text has none."""
    text = text.strip()
    if not text:
        return Signals()
    marks, specificity, action, structure = _read_technical(text)
    statement, about_someone = read_statement(text, wide=settings.wide)
    return Signals(min(marks / _TECHNICAL_NORM, 1.0), statement, specificity, action, structure, about_someone)


# C17, content floor: "ok" and "thanks!" are one term each.
_FEWEST_TERMS = 2

# Scripts without spaces: C2 gives every character as a term, so that "好的" would be three. Hangul has spaces.
_HAN = regex("[\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]+")
_KATAKANA = regex("[\u30a0-\u30ff\u31f0-\u31ff\uff66-\uff9f]+")
_HIRAGANA = regex("[\u3041-\u309f]+")
_HANGUL = regex("[\u1100-\u11ff\u3130-\u318f\ua960-\ua97f\uac00-\ud7ff]+")
_SOUTH_EAST_ASIA = regex("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff]+")
# A Chinese word has about two characters; a Thai or Khmer one, vowel signs counted, about six.
_HAN_PER_WORD, _SIGNS_PER_WORD = 2, 6


def has_content(text: str, found: Signals, *, wide: bool = False) -> bool:
    """Return whether the text passes the content floor: a D, P or A signal, or two different terms.

    `wide` does not count the words of greetings, thanks and the like.
    """
    if found.statement or found.specificity or found.action:
        return True
    if not text.isascii():
        return _distinct_terms(_without_courtesies(text) if wide else text) >= _FEWEST_TERMS
    told: set[str] = set()
    for piece in text.split():  # nearly every text has two terms among its first words
        told.update(words_of(_without_courtesies(piece) if wide else piece))
        told -= STOP_WORDS
        if len(told) >= _FEWEST_TERMS:
            return True
    return False


def _without_courtesies(text: str) -> str:
    return " ".join(word for word in words_of(text) if word not in COURTESIES)


def _distinct_terms(text: str) -> int:
    """Return about how many different words of content there are, in any script."""
    spaced, count = text, 0
    for script, per_word in ((_HAN, _HAN_PER_WORD), (_SOUTH_EAST_ASIA, _SIGNS_PER_WORD)):
        runs = set(script.findall(spaced))
        count += sum(max(len(run) // per_word, 1) for run in runs)
        spaced = script.sub(" ", spaced)
    count += len(set(_KATAKANA.findall(spaced)))
    # Hiragana between words is grammar; alone, it is a word.
    if not count and _HIRAGANA.search(spaced):
        count = 1
    for script in (_KATAKANA, _HIRAGANA):
        spaced = script.sub(" ", spaced)
    count += len({word for word in spaced.split() if _HANGUL.search(word)})
    return count + len(set(words_of(_HANGUL.sub(" ", spaced))) - STOP_WORDS)


# --------------------------------------------------------------------------------------------------- statements

# \b knows no border between a Chinese word and a digit, so borders of numbers are named.
_DATE = regex(
    r"(?<![\w/.])(?:\d{4}-\d\d-\d\d|\d{1,2}/\d{1,2}/(?:\d{4}|\d\d)|\d{1,2}\.\s?\d{1,2}\.\s?(?:19|20)\d\d)(?![\d/])"
    r"|\d{4}年\d{1,2}月"
)
_DIGIT = regex(r"\d")
_NUMBER = regex(r"(?<![A-Za-z\d_])\d++(?![A-Za-z_])")
_TITLED = regex(r"\b(?:mr|mrs|ms|dr|prof)\b\.? (\w+)", re.IGNORECASE)
_RELATIVE = regex(rf"\b(?:my|our) {any_of('statements', 'relatives')} (\w+)", re.IGNORECASE)
# One of these stands in every text in which either of the two finds something.
_NAMING = ("mr", "ms", "dr", "prof", "my ", "our ")

_UNSPACED = words("statements", "unspaced")
_Patterns = tuple[re.Pattern[str], re.Pattern[str]]


def _patterns(part: str) -> _Patterns:
    """Return one pattern for languages with spaces, tried at the start of words only, and one for the others."""
    spaced = "|".join("|".join(entries("statements", name)[part]) for name in LANGUAGES if name not in _UNSPACED)
    unspaced = "|".join("|".join(entries("statements", name)[part]) for name in _UNSPACED)
    return regex(rf"(?<!\w)(?=\w)(?:{spaced})"), regex(unspaced)


def _says(patterns: _Patterns, lowered: str) -> bool:
    spaced, unspaced = patterns
    if spaced.search(lowered) is not None:
        return True
    return not lowered.isascii() and unspaced.search(lowered) is not None


_PREFERENCE, _IDENTITY, _RESOLVE = _patterns("preference"), _patterns("identity"), _patterns("resolve")
_RESOLVE_WEIGHT = 0.3


def read_statement(text: str, *, wide: bool = False) -> tuple[float, bool]:
    """Return D_nl ∈ [0, 1], and whether the text says anything about someone; a date or a number alone does not.

    `wide` also counts plans, decisions, corrections and standing instructions.
    """
    spaced = _fold(text)
    lowered = spaced.lower()
    named = _names_someone(spaced, lowered)
    counted = _DIGIT.search(spaced) is not None
    preferring, identifying = _says(_PREFERENCE, lowered), _says(_IDENTITY, lowered)
    resolved = wide and _says(_RESOLVE, lowered)
    total = _sum(
        (
            (0.3, counted and _DATE.search(spaced) is not None),
            (0.2, counted and _NUMBER.search(spaced) is not None),
            (0.3, named),
            (0.4, preferring),
            (0.3, identifying),
            (_RESOLVE_WEIGHT, resolved),
        )
    )
    return min(total, 1.0), named or preferring or identifying or resolved


def _fold(text: str) -> str:
    return " ".join(unicodedata.normalize("NFC", text).replace("\u2019", "'").split())


def _names_someone(spaced: str, lowered: str) -> bool:
    """Return whether a person is named; a name has a capital, where its script has capitals."""
    if spaced.isascii() and not any(mark in lowered for mark in _NAMING):
        return False
    names = [match[1] for pattern in (_TITLED, _RELATIVE) for match in pattern.finditer(spaced)]
    return any(len(name) > 1 and name[0].isalpha() and not name[0].islower() for name in names)


# ------------------------------------------------------------------------------------------------ technical talk

# C17: characters per estimated token, and how many tokens of text one set of references may be spread over.
_CHARACTERS_PER_TOKEN = 4
_TOKENS_PER_MEASURE = 100

_URL = regex(r"https?://[^\s<>\"'`]++", re.IGNORECASE)
# A rooted name, or names joined by slashes; it starts where no name is going on already.
_SLASHED = regex(r"(?<![\w.\-~/])(?:(?P<root>~/|\.{1,2}/|/)[\w.\-]++(?:/[\w.\-]++)*+|[\w.\-]++(?:/[\w.\-]++)++)")
_FOLDERS = frozenset(words("technical", "folders"))
_LONGEST_EXTENSION = 5
_VERSION = regex(r"v\d+", re.ASCII)


def _count_addresses(text: str) -> tuple[int, int]:
    """Return how many paths there are, and how many addresses: URLs and whatever starts or continues at a slash."""
    paths = addresses = 0
    if "/" not in text:
        return 0, 0
    for url in _URL.finditer(text):
        host_and_more = url.group().split("://", 1)[1].rstrip("/")
        paths += "/" in host_and_more
        addresses += 1
    for found in _SLASHED.finditer(_URL.sub(" ", text)):
        root = found["root"]
        segments = found.group().removeprefix(root or "").split("/")
        path = _is_path(root, segments)
        paths += path
        # "/tmp" is an address and no path; "/s" is a remark.
        addresses += path or (root is not None and len(segments[0]) > 1 and segments[0][0].isalpha())
    return paths, addresses


def _is_path(root: str | None, segments: list[str]) -> bool:
    """Return whether names joined by slashes are a path: rooted, in a known folder, or with a file in it."""
    if len(segments) < 2 or all(segment.replace(".", "").isdigit() for segment in segments):  # 24/7, 3/4/2026, 4.5/5
        return False
    return root is not None or segments[0].lower() in _FOLDERS or any(map(_is_file, segments))


def _is_file(segment: str) -> bool:
    stem, _, extension = segment.rstrip(".").rpartition(".")
    if len(stem) > 1 and extension.islower() and extension[0].isalpha() and len(extension) <= _LONGEST_EXTENSION:
        return True
    hidden = segment.startswith(".") and segment[1:2].isalpha() and "." not in segment[1:]
    return hidden or "_" in segment or _VERSION.fullmatch(segment) is not None


@dataclass(frozen=True, slots=True)
class _Sign:
    """A pattern with its weight, and words and marks of which all that it matches has one: few turns are searched."""

    weight: float
    needs: frozenset[str]
    pattern: re.Pattern[str]

    def is_in(self, text: str, parts: frozenset[str]) -> bool:
        """Return whether the sign stands in a text with these parts."""
        return not self.needs.isdisjoint(parts) and self.pattern.search(text) is not None

    def count(self, text: str, parts: frozenset[str]) -> int:
        """Return how often the sign stands in a text with these parts."""
        return 0 if self.needs.isdisjoint(parts) else sum(1 for _ in self.pattern.finditer(text))


_ERRNO = words("technical", "errno")
_PARTS = {"errno": "|".join(_ERRNO), **entries("technical", "parts")}


def _sign(name: str) -> _Sign:
    given = entries("technical", "signs")[name]
    needs, pattern = given["needs"].split(), given["pattern"]
    if "{errno}" in pattern:
        needs += map(str.lower, _ERRNO)
    for part, text in _PARTS.items():
        pattern = pattern.replace(f"{{{part}}}", text)
    return _Sign(given["weight"], frozenset(needs), regex(pattern, re.ASCII))


_CALL, _CLASS, _ERROR_CODE, _HASH, _REVISION, _COMMAND, _TRACE = map(
    _sign, ("call", "class", "error_code", "hash", "revision", "command", "trace")
)
_ACTIONS = tuple(map(_sign, ("decided", "fixed", "shipped", "configured")))
# Definitions and calls weigh .4 and are counted elsewhere.
_STRUCTURES = tuple(map(_sign, ("type", "dependency", "test", "comment")))
_FENCE = "```"


def _read_technical(text: str) -> tuple[float, float, float, float]:
    """Return the technical side of `text`: Σ s_i of T, before its normaliser, then P, A and D_tech."""
    parts = parts_in(text)
    paths, addresses = _count_addresses(text)
    calls = _CALL.count(text, parts)
    defines = calls > 0 or _CLASS.is_in(text, parts)
    marks = (
        (0.5, text.count(_FENCE) > 1),
        (0.4, paths > 0),
        (0.4, defines),
        (_COMMAND.weight, _COMMAND.is_in(text, parts)),
        (0.3, addresses > 0),
        (_TRACE.weight, _TRACE.is_in(text, parts)),
        (_HASH.weight, _HASH.is_in(text, parts)),
    )
    references = (
        (0.4, paths),
        (_CALL.weight, calls),
        (_ERROR_CODE.weight, _ERROR_CODE.count(text, parts)),
        (_REVISION.weight, _REVISION.count(text, parts)),
        (0.3, addresses),
    )
    measures = max(estimate_tokens(text) / _TOKENS_PER_MEASURE, 1.0)
    actions = ((sign.weight, sign.is_in(text, parts)) for sign in _ACTIONS)
    structures = ((0.4, defines), *((sign.weight, sign.is_in(text, parts)) for sign in _STRUCTURES))
    specificity = min(_sum(references) / measures, 1.0)
    return _sum(marks), specificity, min(_sum(actions), 1.0), min(_sum(structures), 1.0)


def estimate_tokens(text: str) -> int:
    """Return L, the gate's own estimate of tokens (C3): never to be used for a budget."""
    return max(len(text) // _CHARACTERS_PER_TOKEN, 1)


def _sum(weighted: Iterable[tuple[float, int]]) -> float:
    # `sum` is compensated from Python 3.12 on: a gate must not depend on the interpreter.
    total = 0.0
    for weight, times in weighted:
        total = total + weight * times
    return total
