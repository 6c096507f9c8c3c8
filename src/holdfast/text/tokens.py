"""Token cost (C3): what a text will cost a language model, without asking one.

A code point belongs to one class and a class has one price (`TokenRatios`). What has no class of its own takes the
class of the letter before it, or after it at the start of the text: white space and combining marks always; digits,
punctuation and signs where the recipe has no price for them. A Latin word lends as `latin`: an accent re-prices its
own word, never what follows. A text costs the sum over its classes, so that one foreign character does not re-price
the rest.

The default prices follow the older of the two tokenizers they were measured with, which needs more tokens
outside English. `benchmarks/token-ratios.md` has the measurement and what is still under-counted.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from holdfast.errors import InputError, failing_as, quote_value
from holdfast.text.words import regex
from holdfast.values import dataclass

TokenCounter = Callable[[str], int]

# Prices are whole thousandths of a token: C3's 1/1.6, 1/2.5 and 1/4 are exact and no float is involved.
_TOKEN = 1000


@dataclass(frozen=True, slots=True)
class TokenRatios:
    """The price of one code point of each class, in thousandths of a token; None is "as the letter before".

    A longer text never costs less than its beginning as long as `latin` is the lowest price and
    `latin <= accented <= coded`.
    """

    latin: int = 230  # ASCII letters
    accented: int = 600  # a whole Latin word that holds a letter outside ASCII
    coded: int | None = 750  # a whole run of Latin letters and ASCII digits that holds a digit
    punctuation: int | None = 600  # ASCII punctuation
    symbol: int | None = 1000  # marks outside ASCII: quotes, dashes, arrows, full-width forms
    emoji: int | None = 2700  # any other sign outside the basic plane
    han_kana: int = 1180  # Han, hiragana, katakana
    hangul: int = 900
    cyrillic: int = 600
    arabic: int = 760
    hebrew: int = 1060
    partly_known: int = 1060  # Greek, Devanagari, Thai
    other: int = 1850  # letters of every other script


# Chosen on the `tune` texts of benchmarks/token_texts.py: the lowest round prices that do not under-count the
# mean piece of a language that the script can tell. `latin` is held down, so that English stays within about a
# fifth of the newer tokenizer; Traditional Chinese shares a class, and its error, with Simplified.
DEFAULT_RATIOS = TokenRatios()
# C3's ratios: 1.6 characters a token for CJK, 2.5 for Cyrillic, Arabic and Hebrew, 4.0 for the rest.
REFERENCE_RATIOS = TokenRatios(
    latin=250, accented=250, coded=None, punctuation=None, symbol=None, emoji=None, han_kana=625, hangul=625,
    cyrillic=400, arabic=400, hebrew=400, partly_known=250, other=250,
)  # fmt: skip
# By the name that `tokens.ratios` gives them.
RATIOS = {"default": DEFAULT_RATIOS, "reference": REFERENCE_RATIOS}

# One letter stands for one class in the string that `estimate` counts; `n` (neutral) has no class of its own.
_CODES = {
    "latin": "l", "accented": "e", "coded": "d", "punctuation": "p", "symbol": "s", "emoji": "j", "han_kana": "k",
    "hangul": "h", "cyrillic": "c", "arabic": "a", "hebrew": "b", "partly_known": "g", "other": "o", "neutral": "n",
}  # fmt: skip

# A script's own marks and digits count with its letters: they are as dear, and stand among its letters.
_SCRIPTS = {
    # Radicals, iteration marks and zero, Suzhou numerals, kana in all widths, Han and its supplementary planes.
    "han_kana": "\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3038-\u303b\u3041-\u30ff\u31f0-\u31ff\u3400-\u4dbf"
    "\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f\U0001aff0-\U0001b16f\U00020000-\U0003ffff",
    "hangul": "\u1100-\u11ff\u3130-\u318f\ua960-\ua97f\uac00-\ud7ff\uffa0-\uffdc",
    "cyrillic": "\u0400-\u052f\u1c80-\u1c8f\u2de0-\u2dff\ua640-\ua69f",
    # Behind the presentation forms, U+FEFF is the byte order mark.
    "arabic": "\u0600-\u06ff\u0750-\u077f\u0870-\u08ff\ufb50-\ufdff\ufe70-\ufefc\U00010ec0-\U00010eff",
    "hebrew": "\u0590-\u05ff\ufb1d-\ufb4f",
    # Greek, Devanagari, Thai.
    "partly_known": "\u0370-\u03ff\u1f00-\u1fff\u0900-\u097f\ua8e0-\ua8ff\u0e00-\u0e7f",
}
_IN_SCRIPT = {name: regex(f"[{ranges}]") for name, ranges in _SCRIPTS.items()}
# Latin-1, Extended-A and -B, phonetic letters; Extended Additional (Vietnamese); Extended-C and -D.
_LATIN_LETTER = regex("[\u0080-\u02ff\u1e00-\u1eff\u2c60-\u2c7f\ua720-\ua7ff]")
# Latin-1 signs; punctuation to arrows, mathematics, boxes and dingbats; more punctuation; CJK punctuation and
# enclosed letters; variation selectors and small forms; full-width forms.
_SYMBOL = regex("[\u0080-\u00ff\u2000-\u2bff\u2e00-\u2e7f\u3000-\u303f\u3200-\u33ff\ufe00-\ufe6f\uff00-\uffef]")
_BASIC_PLANE_END = 0xFFFF

# Possessive and anchored at the start of a run, or a run of n letters would be scanned n times.
_CODED_RUN = regex(r"(?<![led])[le]*+d[led]*+")
_ACCENTED_WORD = regex(r"(?<![le])l*+e[le]*+")
_SCRIPT_RUNS = tuple(
    (name, _CODES[name], regex(f"{_CODES[name]}[{_CODES[name]}n]*+")) for name in (*_SCRIPTS, "other")
)


def class_of(character: str) -> str:
    """Return the class of one code point: a field of `TokenRatios`, or `neutral`.

    A Latin letter outside ASCII is `accented` and a digit `coded`: the word they stand in becomes so.
    """
    if character.isascii():
        if character.isalpha():
            return "latin"
        if character.isdecimal():
            return "coded"
        return "punctuation" if character.isprintable() and not character.isspace() else "neutral"
    if script := next((name for name, letters in _IN_SCRIPT.items() if letters.match(character)), None):
        return script
    if character.isalpha():
        return "accented" if _LATIN_LETTER.match(character) else "other"
    sign = "emoji" if ord(character) > _BASIC_PLANE_END else "neutral"
    return "symbol" if _SYMBOL.match(character) else sign


class _Classes(dict[int, str]):
    """Code point → class letter, worked out when first met, so that importing costs nothing."""

    def __missing__(self, code: int) -> str:
        letter = self[code] = _CODES[class_of(chr(code))]
        return letter


_CLASSES = _Classes()


def estimate(text: str, ratios: TokenRatios = DEFAULT_RATIOS) -> int:
    """Return the estimated cost of `text` in tokens: `ceil(Σ_s |t_s| / χ_s)` over code points (C3).

    It is 0 for the empty text only, and another measure than the length that the gate works with (C17).
    """
    if text.isascii() and ratios.coded is None and ratios.punctuation is None:
        return -(-len(text) * ratios.latin // _TOKEN)
    classes = text.translate(_CLASSES)
    classes, words = _price_words(classes, ratios)
    classes, marks = _price_marks(classes, ratios)
    return -(-(words + marks + _price_letters(classes, ratios)) // _TOKEN)


def _price_words(classes: str, ratios: TokenRatios) -> tuple[str, int]:
    """Price the classes that take whole words; return the classes left, and the price."""
    if ratios.coded is None:
        classes = classes.replace("d", "n")
    price = 0
    for letter, run, each in (("d", _CODED_RUN, ratios.coded), ("e", _ACCENTED_WORD, ratios.accented)):
        if each is not None and letter in classes:
            # One letter stays for each word to hold the spaces behind it; it is paid for here.
            left, words = run.subn("l", classes)
            price += each * (len(classes) - len(left) + words) - ratios.latin * words
            classes = left
    return classes, price


def _price_marks(classes: str, ratios: TokenRatios) -> tuple[str, int]:
    """Price punctuation and signs, or make them neutral; return the classes left, and the price."""
    price = 0
    for letter, each in (("p", ratios.punctuation), ("s", ratios.symbol), ("j", ratios.emoji)):
        if letter not in classes:
            continue
        if each is None:
            classes = classes.replace(letter, "n")
        else:
            price += each * classes.count(letter)
            classes = classes.replace(letter, "")
    return classes, price


def _price_letters(classes: str, ratios: TokenRatios) -> int:
    """Price letters, each with the neutral code points behind it."""
    body = classes.lstrip("n")
    # At the start of a text the letter behind decides: the same sum as if it came first.
    classes = body[:1] + "n" * (len(classes) - len(body)) + body[1:]
    price = 0
    for name, letter, run in _SCRIPT_RUNS:
        if letter in classes:
            left = run.sub("", classes)
            each: int = getattr(ratios, name)
            price += each * (len(classes) - len(left))
            classes = left
    return price + ratios.latin * len(classes)


@dataclass(frozen=True, slots=True, weakref_slot=True)
class Estimator:
    """`estimate` at one recipe's prices, as a counter."""

    ratios: TokenRatios = DEFAULT_RATIOS

    def __call__(self, text: str) -> int:
        """Return the estimated cost of `text` in tokens."""
        return estimate(text, self.ratios)

    def by_lines(self) -> TokenCounter:
        """Return a counter for many texts made of the same lines: each line is priced once, and the rest is a sum.

        It counts as `estimate` does: no word runs across the end of a line. What it has seen goes with it.
        """
        ratios, priced = self.ratios, cache(self._price_line)
        prices = {"l": ratios.latin} | {letter: getattr(ratios, name) for name, letter, _ in _SCRIPT_RUNS}

        def count(text: str) -> int:
            total, waiting, letter = 0, 0, ""
            for price, leading, first, last in map(priced, text.splitlines(keepends=True)):
                total += price
                if leading and letter:
                    total += leading * prices[letter]
                elif not letter:
                    waiting += leading
                    total += waiting * prices[first] if first else 0
                    waiting = 0 if first else waiting
                letter = last or letter
            return -(-(total + waiting * ratios.latin) // _TOKEN)

        return count

    def _price_line(self, line: str) -> tuple[int, int, str, str]:
        """Return what a line costs behind its leading neutral characters, their number, its first and last class."""
        classes, words = _price_words(line.translate(_CLASSES), self.ratios)
        classes, marks = _price_marks(classes, self.ratios)
        body = classes.lstrip("n")
        last = body.rstrip("n")[-1:]
        return words + marks + _price_letters(body, self.ratios), len(classes) - len(body), body[:1], last


def checked_counter(counter: TokenCounter) -> TokenCounter:
    """Return `counter` guarded: whatever it does wrong becomes an `InputError` that names it.

    Raises, when the result is called:
        InputError: the counter failed (its error is the cause), or gave no whole number of at least 0.
    """
    name = getattr(counter, "__qualname__", type(counter).__qualname__)

    def count(text: str) -> int:
        with failing_as(InputError, f"the token counter {name}"):
            tokens = counter(text)
        # bool is an int to Python, and a counter that answers True has answered another question.
        if not isinstance(tokens, int) or isinstance(tokens, bool) or tokens < 0:
            raise InputError(f"the token counter {name} gave {quote_value(tokens)}; it must give an int >= 0")
        return tokens

    return count
