"""Text → lexical terms (C2). One function serves units and queries, so that they always meet."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Mapping
from functools import lru_cache

import Stemmer

from holdfast.text.words import regex
from holdfast.text.words import words as listed

STOP_WORDS = frozenset(listed("lexical", "stop"))

# Scripts written without spaces between words: Thai, Lao, Myanmar, Khmer, kana, Han, Hangul. Korean has spaces,
# but its particles stick to the words, so that only its syllable pairs meet.
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u1100-\u11ff\u3005-\u3007\u3041-\u30ff\u3130-\u318f\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff"
)
_UNSPACED_RUN = regex(f"([{_UNSPACED}]+)")
_POSSESSIVE = "'s"

# What divides words as a space does: dashes, dots in a row, brackets, quotes, and the marks of code and Markdown.
_BREAKS = regex(r"""[\s\u2012-\u2015=()\[\]{}<>"\u201c\u201d\u201e\u00ab\u00bb;|!?*`\u2026,]+|\.{2,}|-{2,}""")
# A comma or an apostrophe between groups of three digits: 1,640 is the number 1640.
_THOUSANDS = regex(r"(?<=\d)[,'](?=\d{3}(?!\d))")
# The same with dots, which may also be a fraction: it is kept as it is, too.
_DOTTED = regex(r"\d{1,3}(?:\.\d{3})+")
# What joins the steps of a path, an address or a place in a file, and what joins the parts of one name.
_STEPS = regex(r"[/\\:@#&+]+")
_JOINTS = regex(r"[/\\:@#&+\-._~%$^\u00b7\u2010\u2011]+")
# Where a new word starts inside a name without joints: getUser, HTTPServer.
_HUMPS = regex(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_NUMERIC = regex(r"[\d\W_]+")
# A short number inside a compound (the 30 of 9:30) is everywhere; in a name (B-52) two digits tell something.
_SHORTEST_NUMBER, _SHORTEST_PART = 3, 2
_SIGNED_NAMES = frozenset(listed("lexical", "signed_names"))
# Joined letters as PDFs have them (\ufb01), and letters and digits as wide as a Chinese character.
_PRESENTED = regex("[\ufb00-\ufb06\uff01-\uff5e]+")
# The reference recipe drops shorter words, and no others.
_KEYWORD = regex(r"\w{3,}")
_ACCENTS = regex("[\u0300-\u036f]")
# Letters of the Latin script that no normal form takes apart.
_LIGATURES = str.maketrans(
    {"ß": "ss", "æ": "ae", "Æ": "Ae", "œ": "oe", "Œ": "Oe", "ø": "o", "Ø": "O", "ł": "l", "Ł": "L", "đ": "d",
     "Đ": "D", "ð": "d", "Ð": "D", "þ": "th", "Þ": "Th", "ı": "i"}
)  # fmt: skip

Tokenizer = Callable[[str], list[str]]


def pieces(text: str) -> list[str]:
    """Return what stands between the breaks of a text, as it was typed: words, codes, paths and addresses."""
    return [piece for piece in _BREAKS.split(text) if piece]


# It lacks two later rules ("logi" to "log", "bli" to "ble"); texts and questions meet all the same.
_porter = Stemmer.Stemmer("porter")


def terms(text: str) -> list[str]:
    """Return the terms of `text` in reading order, repeated as often as they occur: the default tokenizer.

    Words are found inside code, paths, addresses, JSON, Markdown, ranges and dashes. A compound is given whole, by
    its steps and by its parts (src/plan.rs:212 → itself, plan.rs, src, plan, rs, 212); accents fold; 1,640 is 1640.
    Stop words leave, the rest is stemmed. Text in a script without spaces is given as characters and pairs of them.
    """
    found: list[str] = []
    for word in _BREAKS.split(_THOUSANDS.sub("", _unaccent(text))):
        found.extend(_compound_terms(word))
    return found


def reference_terms(text: str) -> list[str]:
    """Return the terms of `text` as the reference tokenizer has them.

    NFC → lower case → white space → edge punctuation off → possessive off → stop words off → Porter stem. A
    hyphenated word is given whole and by its parts, unless it starts with a digit. Text in a script without spaces
    is given as single characters and overlapping pairs.
    """
    found: list[str] = []
    for word in _fold(text).split():
        found.extend(_reference_terms(word))
    return found


TOKENIZERS: Mapping[str, Tokenizer] = {"default": terms, "reference": reference_terms}


def _fold(text: str) -> str:
    """Return the text in one normal form and case; phones type the curly apostrophe, keyboards the straight one."""
    return unicodedata.normalize("NFC", text).lower().replace("\u2019", "'")


def _unaccent(text: str) -> str:
    """Return the text without accents on Latin, Greek and Cyrillic letters, in one normal form; case stays."""
    if text.isascii():
        return text
    plain = _PRESENTED.sub(lambda form: unicodedata.normalize("NFKC", form.group()), text.replace("\u2019", "'"))
    bare = _ACCENTS.sub("", unicodedata.normalize("NFD", plain))
    return unicodedata.normalize("NFC", bare).translate(_LIGATURES)


def words(text: str) -> list[str]:
    """Return the bare words of `text`: lower case, no edge punctuation, no possessive; nothing dropped or stemmed."""
    return [bare for word in _fold(text).split() if (bare := _bare(word))]


def plain_words(text: str) -> frozenset[str]:
    """Return the reference recipe's keywords (C11): the distinct words of three or more characters, in lower case.

    No stop words leave and nothing is stemmed. The original splits at every letter outside ASCII; here, as in C2,
    they are letters.
    """
    return frozenset(_KEYWORD.findall(unicodedata.normalize("NFC", text).lower()))


# Words repeat: a bounded memo makes analysis several times faster and cannot grow without limit.
@lru_cache(maxsize=65_536)
def _compound_terms(word: str) -> tuple[str, ...]:
    return tuple(_by_script(word, _named_terms))


@lru_cache(maxsize=65_536)
def _reference_terms(word: str) -> tuple[str, ...]:
    return tuple(_by_script(word, _hyphenated_terms))


def _by_script(word: str, spaced_terms: Tokenizer) -> list[str]:
    """Return the terms of a word, runs of scripts without spaces by characters and pairs."""
    if word.isascii():
        return spaced_terms(word)
    found: list[str] = []
    for piece in _UNSPACED_RUN.split(word):
        if _UNSPACED_RUN.fullmatch(piece):
            for run in "".join(c if _is_word_character(c) else " " for c in piece).split():
                found.extend(run)
                found.extend(run[i : i + 2] for i in range(len(run) - 1))
        else:
            found.extend(spaced_terms(piece))
    return found


def _named_terms(word: str) -> list[str]:
    """Return a word whole, then the steps of a path, then their parts; what says nothing by itself is left out."""
    if word.isalpha() and (word.islower() or word[1:].islower()):  # an ordinary word, as nearly all are
        return [] if word.lower() in STOP_WORDS else [_stem(word.lower())]
    if word.lower().rstrip(".:") in _SIGNED_NAMES:
        return [word.lower().rstrip(".:")]
    bare = _bare(word).strip("_")
    if _DOTTED.fullmatch(bare):
        return [bare, bare.replace(".", "")]
    steps = [step for step in map(_bare, _STEPS.split(bare)) if step]
    parts = [part for step in steps for joint in map(_bare, _JOINTS.split(step)) for part in _humps(joint)]
    if len(parts) < 2:
        return [] if bare.lower() in STOP_WORDS or not bare else [_stem(bare.lower())]
    shortest = _SHORTEST_NUMBER if _NUMERIC.fullmatch(bare) else _SHORTEST_PART
    told = [part for part in parts if len(part) >= (shortest if part.isdigit() else _SHORTEST_PART)]
    found = dict.fromkeys(name.lower() for name in (bare, *(step for step in steps if _JOINTS.search(step)), *told))
    return [_stem(name) for name in found if name not in STOP_WORDS]


def _humps(name: str) -> list[str]:
    """Return a name and, where capitals divide it, its words."""
    divided = _HUMPS.split(name)
    return [part for part in ([name, *divided] if len(divided) > 1 else [name]) if part]


def _hyphenated_terms(word: str) -> list[str]:
    bare = _bare(word)
    if not bare or bare in STOP_WORDS:
        return []
    found = [bare]
    if not bare[0].isdigit() and "-" in bare:
        found.extend(part for part in map(_strip, bare.split("-")) if part and part not in STOP_WORDS)
    return [_stem(term) for term in found]


def _stem(term: str) -> str:
    # Porter leaves words of one or two letters alone; the library would turn "s" into nothing.
    return str(_porter.stemWord(term)) if len(term) > 2 else term


def _bare(word: str) -> str:
    bare = _strip(word)
    return _strip(bare[:-2]) if bare.endswith(_POSSESSIVE) else bare


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
