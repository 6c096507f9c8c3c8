"""Text → lexical terms (C2). One function serves units and queries, so that they always meet."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

import Stemmer

# The 115 function words of the reference tokenizer: kept as they are, because df and length depend on them.
STOP_WORDS = frozenset(
    """
    a about above after again all also am an and any are at be because been before being below between both but
    by can could did do does down during each few for from further get got had has have he her here him his how
    i if in into is it its just may me might more most must my no nor not now of on only or other our out over
    own same shall she should so some such than that the their them then there these they this those through to
    too under until up very was we were what when where which while who whom why will with would you your
    """.split()
)

# Scripts written without spaces between words: Thai, Lao, Myanmar, Khmer, kana, Han, Hangul. Korean has spaces,
# but its particles stick to the words, so that only its syllable pairs meet.
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u1100-\u11ff\u3005-\u3007\u3041-\u30ff\u3130-\u318f\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff"
)
_UNSPACED_RUN = re.compile(f"([{_UNSPACED}]+)")
_POSSESSIVE = "'s"
_DEFAULT_SEPARATORS = "-"

_porter = Stemmer.Stemmer("porter")


def terms(text: str, separators: str = _DEFAULT_SEPARATORS) -> list[str]:
    """Return the terms of `text` in reading order, repeated as often as they occur.

    NFC → lower case → white space → edge punctuation off → possessive off → stop words off → Porter stem. A
    compound is given whole and by its parts, unless it starts with a digit. Text in a script without spaces
    is given as single characters and overlapping pairs.
    """
    found: list[str] = []
    for word in _folded(text).split():
        found.extend(_word_terms(word, separators))
    return found


def _folded(text: str) -> str:
    """Return the text in one normal form and case; phones type the curly apostrophe, keyboards the straight one."""
    return unicodedata.normalize("NFC", text).lower().replace("\u2019", "'")


def words(text: str) -> list[str]:
    """Return the bare words of `text`: lower case, no edge punctuation, no possessive; nothing dropped or stemmed."""
    return [bare for word in _folded(text).split() if (bare := _bare(word))]


# Words repeat: a bounded memo makes analysis several times faster and cannot grow without limit.
@lru_cache(maxsize=65_536)
def _word_terms(word: str, separators: str) -> tuple[str, ...]:
    if word.isascii():
        return tuple(_spaced_terms(word, separators))
    found: list[str] = []
    for piece in _UNSPACED_RUN.split(word):
        if _UNSPACED_RUN.fullmatch(piece):
            for run in "".join(c if _is_word_character(c) else " " for c in piece).split():
                found.extend(run)
                found.extend(run[i : i + 2] for i in range(len(run) - 1))
        else:
            found.extend(_spaced_terms(piece, separators))
    return tuple(found)


def _spaced_terms(word: str, separators: str) -> list[str]:
    bare = _bare(word)
    if not bare or bare in STOP_WORDS:
        return []
    found = [bare]
    if not bare[0].isdigit():
        parts = _split(bare, separators)
        if len(parts) > 1:
            found.extend(part for part in map(_strip, parts) if part and part not in STOP_WORDS)
    return [_stem(term) for term in found]


def _stem(term: str) -> str:
    # Porter leaves words of one or two letters alone; the library would turn "s" into nothing.
    return str(_porter.stemWord(term)) if len(term) > 2 else term


def _bare(word: str) -> str:
    bare = _strip(word)
    return _strip(bare[:-2]) if bare.endswith(_POSSESSIVE) else bare


def _split(word: str, separators: str) -> list[str]:
    for separator in separators[1:]:
        word = word.replace(separator, separators[0])
    return word.split(separators[0]) if separators else [word]


def _strip(word: str) -> str:
    """Cut what is not a letter, digit, mark or underscore from both ends, in any script."""
    start, end = 0, len(word)
    while start < end and not _is_word_character(word[start]):
        start += 1
    while end > start and not _is_word_character(word[end - 1]):
        end -= 1
    return word[start:end]


def _is_word_character(character: str) -> bool:
    # Vowel signs of Indic scripts are marks, which Python's isalnum leaves out.
    return character.isalnum() or character == "_" or unicodedata.category(character)[0] == "M"
