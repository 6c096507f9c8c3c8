"""The reference recipe's keywords (C11): plain words instead of C2's terms."""

from __future__ import annotations

import re
import unicodedata

# Shorter words say little, and the reference drops no others.
_KEYWORD = re.compile(r"\w{3,}")


def plain_words(text: str) -> frozenset[str]:
    """Return the distinct words of three or more characters, in lower case: no stop words, no stemming.

    The original splits at every letter outside ASCII; here, as in C2, they are letters.
    """
    return frozenset(_KEYWORD.findall(unicodedata.normalize("NFC", text).lower()))
