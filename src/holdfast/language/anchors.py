"""Temporal anchors of a text (C13): how much it says about when.

A(d) = min(distinct anchors / 3, 1). The eight pattern groups are the reference's; here the longest reading of a
stretch of text wins and is counted once, so that an ISO date is one anchor and not a date and a year.
"""

from __future__ import annotations

import re

# Three anchors say as much about time as a unit can: the reference's normaliser.
_SATURATION = 3

_MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sep(?:t(?:ember)?)?"
    r"|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)"
)
_WEEKDAY = r"(?:mon|tues|wednes|thurs|fri|satur|sun)day"
_DAY = r"(?:0?[1-9]|[12]\d|3[01])(?:st|nd|rd|th)?"
_YEAR = r"(?:19|20)\d\d"

# Earlier alternatives win at the same place, so the longer readings come first.
_ANCHOR = re.compile(
    rf"""
    (?<![\w./])(?:
        \d{{4}}-\d\d-\d\d(?:[t\ ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:z|[+-]\d\d:?\d\d)?)?   # 2026-03-29T09:30Z
      | (?:0?[1-9]|[12]\d|3[01])/(?:0?[1-9]|[12]\d|3[01])/(?:\d{{4}}|\d\d)              # 3/29/26
      | (?:0?[1-9]|1[0-2])/(?:0?[1-9]|[12]\d|3[01])                        # 3/29
      | {_MONTH}\.?\s+{_DAY}(?:,?\s+{_YEAR})?                              # March 29th, 2026
      | {_DAY}\s+(?:of\s+)?{_MONTH}\.?(?:,?\s+{_YEAR})?                    # 29 March 2026
      | (?:last|next)\s+(?:week|month|year|night|weekend|{_WEEKDAY})       # last night
      | {_WEEKDAY}s?
      | today | yesterday | tomorrow | tonight
      | mid-(?:{_MONTH}|week|month|year|{_YEAR})                           # mid-June
      | (?:[01]?\d|2[0-3]):[0-5]\d(?:\s?[ap]\.?m\b\.?)?                    # 9:30 pm
      | {_YEAR}
      | \d{{10}} | \d{{13}}                                                # epoch seconds or milliseconds
    )(?!\w|[./]\d)
    """,
    re.IGNORECASE | re.VERBOSE,
)


def anchors(text: str) -> frozenset[str]:
    """Return the distinct temporal anchors of `text`, lower-cased, white space folded."""
    return frozenset(" ".join(match.group().lower().split()) for match in _ANCHOR.finditer(text))


def anchor_density(text: str) -> float:
    """Return A(d) ∈ [0, 1]."""
    return min(len(anchors(text)) / _SATURATION, 1.0)


# Every value that A can have, the richest first.
DENSITIES = tuple(count / _SATURATION for count in range(_SATURATION, -1, -1))
