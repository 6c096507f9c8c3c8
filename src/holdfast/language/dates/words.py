"""What the readers of time expressions share: the question they read, the moments they find, the words they know."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import date, datetime

from holdfast.language.dates.calendar import Span, Tense

FREE: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Asked:
    """A question as readers see it: the local time it is asked at, its tense, whether it asks for a habit."""

    now: datetime
    tense: Tense = "open"
    habit: bool = False

    @property
    def today(self) -> date:
        """Return the local day of the question."""
        return self.now.date()

    def at(self, moment: datetime, tense: Tense) -> Asked:
        """Return the same question, asked at another time."""
        return replace(self, now=moment, tense=tense)


Rule = tuple[re.Pattern[str], Callable[[re.Match[str]], "Moment | None"]]


@dataclass(frozen=True, slots=True)
class Moment:
    """One expression: where it stands and what it means.

    `needs` are the prepositions that make it a time, empty when it is one by itself. `dated` names its year and so
    means the same whenever it is asked. `bare` comes round again and nothing says which one is meant.
    """

    start: int
    end: int
    read: Callable[[Asked], Span | None]
    needs: frozenset[str] = FREE
    dated: bool = False
    bare: bool = False


def phrase(pattern: str) -> re.Pattern[str]:
    """Compile a pattern in which a blank stands for white space and the case of letters does not matter."""
    return re.compile(pattern.replace(" ", r"\s+"), re.IGNORECASE)


def words(text: str | None) -> str:
    """Return what a group matched, lower-cased with single blanks; nothing for a group left out."""
    return " ".join((text or "").lower().split())


def word_before(match: re.Match[str]) -> str:
    """Return the word before a match, lower-cased."""
    found = match.string[max(0, match.start() - 20) : match.start()].split()
    return found[-1].lower() if found else ""


# -------------------------------------------------------------------------------------------- vocabulary

MONTH_NAMES = "january february march april may june july august september october november december".split()
MONTHS = {name: number for number, name in enumerate(MONTH_NAMES, 1)}
MONTHS |= {name[:3]: number for name, number in MONTHS.items()} | {"sept": 9}
WEEKDAYS = {name: number for number, name in enumerate("mon tue wed thu fri sat sun".split())}
ORDINALS = {
    name: number
    for number, name in enumerate(
        "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth".split(), 1
    )
}
POSSESSIVES = frozenset({"my", "his", "her", "our", "their", "your", "its"})

WEEKDAY = r"(?:mon|tues|wednes|thurs|fri|satur|sun)day"
DAY_PART = r"(?:morning|afternoon|evening|night)"
UNIT = r"(?:day|week|fortnight|month|quarter|year|decade)"
# What may stand before the first and after the last letter of an expression.
EDGE = r"(?<![\w$€£#/'])(?<!\d[.,])"
END = r"(?!\w|[/.,:]\d)"

# The prepositions after which a doubtful word is a time; the tables of the readers build on these.
SINCE = frozenset({"since", "until", "till", "through", "before", "after", "prior to", "as of", "up to", "around"})
ON = SINCE | {"on", "by", "for", "from"}
IN = SINCE | {"in", "during", "throughout"}

# ----------------------------------------------------------------------------------------------- numbers

_TENS = dict(zip("twenty thirty forty fifty sixty seventy eighty ninety".split(), range(20, 100, 10), strict=True))
_SMALL = (
    "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen"
).split()
# A vague amount covers all it may mean.
_VAGUE = {"couple": (2, 3), "few": (2, 5), "several": (3, 7)}

_COUNT = rf"(?:\d{{1,5}}|(?:{'|'.join(_TENS)})(?:[\s-](?:{'|'.join(_SMALL[:9])}))?|{'|'.join(reversed(_SMALL))})"
AMOUNT = rf"(?:\d{{1,5}}[-–]\d{{1,5}}|{_COUNT}(?:(?: or | to ){_COUNT})?|(?:a )?(?:couple(?: of)?|few)|several|an?)"


def measure(amount: str, unit: str) -> tuple[int, int, str]:
    """Read the least and the most an `AMOUNT` may mean ("10", "two or three", "a couple of"), and its unit."""
    least, most = _bounds(words(amount))
    unit = unit.lower().removesuffix("s")
    return (2 * least, 2 * most, "week") if unit == "fortnight" else (least, most, unit)


def _bounds(amount: str) -> tuple[int, int]:
    for word, bounds in _VAGUE.items():
        if word in amount:
            return bounds
    counts = [_count(part) for part in re.split(r" (?:or|to) |(?<=\d)[-–]", amount)]
    return min(counts), max(counts)


def _count(text: str) -> int:
    if text.isdecimal():
        return int(text)
    parts = re.split(r"[ -]", text)
    return sum(_TENS.get(part) or _SMALL.index(part) + 1 for part in parts if part not in {"a", "an"}) or 1
