"""Who speaks, as a context may show it: no name can end its line, and none can look like a role."""

from __future__ import annotations

import re
import unicodedata

from holdfast.inputs.checks import CONTROLS
from holdfast.types import AUTHORS

# What a reader may take for the one who has the say: our authors, and the other words that hosts have for them.
_ROLE_WORDS = (*AUTHORS, "summary", "human", "ai", "developer", "function")

# What a name may not hold: white space and what looks like it, what is not drawn at all, and what would end the name
# or begin a line of ours. Other scripts have colons that look like ours.
_NOT_IN_NAMES = re.compile(
    rf"[\s\u115f\u1160\u2800\u3164\uffa0{CONTROLS}\xad\u061c\u180e\u200b\u200e\u200f\u2060-\u2065\ufeff"
    r":>\[\]⟦⟧\u02d0\u0589\u05c3\u2236\ua789\ufe13\ufe55\uff1a]+"
)
# Letters that are drawn like those of the role words and are none to Unicode's decompositions. Capitals stand apart:
# some are drawn like another letter than their small form is.
_DRAWN_LIKE = {
    "A": "АΑ", "C": "С", "D": "ᎠⅮ", "E": "ЕΕ", "F": "Ϝ", "H": "НΗ", "I": "ІΙӀ", "L": "Ꮮ", "M": "МΜ", "N": "Ν",
    "O": "ОΟՕ", "P": "РΡ", "R": "Ꭱ", "S": "Ѕ", "T": "ТΤ", "U": "Ս", "V": "Ѵ", "Y": "УΥҮ",
    "a": "аɑαᴀ", "c": "сᴄ", "d": "ԁᴅđ", "e": "еᴇєҽ", "f": "ꜰƒ", "h": "һհʜħ", "i": "іıɪι", "l": "ӏʟł", "m": "мᴍ",
    "n": "ոɴŋ", "o": "оοօᴏø", "p": "рρᴘ", "r": "гʀᴦ", "s": "ѕꜱ", "t": "тτᴛŧ", "u": "υսᴜ", "v": "νѵᴠ", "y": "уγүʏ",
}  # fmt: skip
_SKELETON = str.maketrans({twin: letter for letter, twins in _DRAWN_LIKE.items() for twin in twins})


def plain_name(name: str) -> str:
    """Return a name, or an id, without whatever could end it or be taken for a line of ours."""
    return _NOT_IN_NAMES.sub(" ", name).strip()


def looks_like_a_role(name: str) -> bool:
    """Return whether a reader could take a name for a role: with other letters, accents or hidden marks."""
    return _drawn(name) in _ROLES


def _drawn(name: str) -> str:
    """Return the letters of a name as they are seen: one case, one script, no accents and nothing between them."""
    letters = unicodedata.normalize("NFKD", name).translate(_SKELETON).casefold()
    return "".join(letter for letter in letters if letter.isalnum())


_ROLES = frozenset(map(_drawn, _ROLE_WORDS))
