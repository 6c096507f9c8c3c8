"""Transcripts: lines that say who speaks (`Ana: …`, `**User:** …`), or headings that do (`## Assistant`)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, tzinfo
from typing import NamedTuple

from holdfast.types import JSON, digest
from holdfast.types.notes import Message, Notes

_ROLES = {
    "user": "user", "human": "user", "you": "user", "me": "user", "assistant": "assistant", "ai": "assistant",
    "bot": "assistant", "chatgpt": "assistant", "gpt": "assistant", "claude": "assistant", "gemini": "assistant",
    "copilot": "assistant", "model": "assistant", "system": "system", "tool": "tool",
}  # fmt: skip
_TIME = r"(?:[\[(]?(?P<at>\d{4}-\d{2}-\d{2}[T ]\d{1,2}:\d{2}(?::\d{2})?(?:Z|[+-]\d{2}:?\d{2})?)[\])]?[\s,:–-]*)?"
# A name: a few words, none of which is a scheme, a time or a sentence.
_NAME = r"(?P<who>[^\W\d_][\w.'’-]*(?: [\w.'’&()-]+){0,3})"
_SPOKEN = re.compile(rf"^{_TIME}{_NAME}(?:\s*[\[(](?P<after>[^\])]+)[\])])?\s*:(?!//)(?:\s+(?P<words>.*))?$")
_BOLD = re.compile(rf"^{_TIME}(?P<mark>\*\*|__){_NAME}(?::(?P=mark)|(?P=mark)\s*:)\s*(?P<words>.*)$")
_HEADING = re.compile(rf"^#{{1,6}}\s+{_TIME}(?:[^\w\s]+\s*)?{_NAME}\s*:?\s*$")
# What looks like a speaker at the beginning of many lines and is a label of a form or a letter.
_LABELS = frozenset("date subject to from cc bcc re note warning error example todo http https ps nb title".split())
# A file in which less than this share of the lines that look like it come from somebody who speaks again is a text.
_REPEATED = 0.5
_LEAST_TURNS = 2


class _Turn(NamedTuple):
    line: int
    who: str
    at: str | None
    words: str


def is_transcript(text: str) -> bool:
    """Return whether somebody speaks, from the first line on, and others or the same ones do so again."""
    style = _style(text)
    if style is None:
        return False
    turns, _ = _turns(text, style)
    if len(turns) < _LEAST_TURNS:
        return False
    counts = Counter(turn.who.casefold() for turn in turns)
    known = sum(count for who, count in counts.items() if count > 1 or who in _ROLES)
    return known >= _REPEATED * len(turns)


def read_transcript(text: str, session: str, zone: tzinfo | None, notes: Notes) -> Iterator[Message]:
    """Yield what each speaker said; a turn goes on until the next speaker."""
    style = _style(text)
    if style is None:
        return
    turns, before = _turns(text, style)
    for number in before:
        notes.skip("it stands before the first speaker", f"line {number}")
    seen: Counter[str] = Counter()
    for turn in turns:
        where, words = f"line {turn.line}", turn.words.strip()
        if not words:
            notes.skip("it has no words", where)
            continue
        role = _ROLES.get(turn.who.casefold())
        key = digest("transcript", turn.who, turn.at, words)
        fields: dict[str, JSON] = {"role": role or "user", "content": words, "message_id": f"said-{key}-{seen[key]}"}
        seen[key] += 1
        if role is None:
            fields["speaker"] = turn.who
        if turn.at is not None:
            try:
                at = datetime.fromisoformat(turn.at.replace(" ", "T", 1))
            except ValueError:
                notes.warn(f"line {turn.line}: {turn.at} is no time; what was said is kept without it")
            else:
                fields["at"] = at if at.tzinfo is not None else at.replace(tzinfo=zone or UTC)
        yield Message(fields, where, session)


def _style(text: str) -> re.Pattern[str] | None:
    """Return how speakers are marked: the way of the first line that marks one, if it stands near the beginning."""
    lines = [line.strip() for line in text.split("\n", 60)[:60] if line.strip()]
    for pattern in (_BOLD, _HEADING, _SPOKEN):
        found = [_speaker(pattern, line) for line in lines]
        if any(found) and (pattern is not _HEADING or any(who and who.casefold() in _ROLES for who in found)):
            first = next(place for place, who in enumerate(found) if who)
            if pattern is not _SPOKEN or first == 0:
                return pattern
    return None


def _speaker(pattern: re.Pattern[str], line: str) -> str | None:
    found = pattern.match(line)
    if found is None or found["who"].casefold() in _LABELS:
        return None
    return found["who"].strip()


def _turns(text: str, style: re.Pattern[str]) -> tuple[list[_Turn], list[int]]:
    """Return the turns, and the lines that stand before the first one. Code is nobody's turn."""
    turns: list[_Turn] = []
    before: list[int] = []
    fenced = False
    for number, raw in enumerate(text.split("\n"), start=1):
        line = raw.rstrip("\r")
        found = None if fenced else style.match(line.strip())
        if line.lstrip().startswith("```"):
            fenced = not fenced
        if found is not None and _is_speaker(style, found):
            groups = found.groupdict()
            turns.append(_Turn(number, found["who"].strip(), groups.get("at"), groups.get("words") or ""))
        elif turns:
            turns[-1] = turns[-1]._replace(words=f"{turns[-1].words}\n{line}")
        elif line.strip():
            before.append(number)
    return turns, before


def _is_speaker(style: re.Pattern[str], found: re.Match[str]) -> bool:
    who = found["who"].casefold()
    # A heading may be one of what was said: only roles speak under headings.
    return who not in _LABELS and (style is not _HEADING or who in _ROLES)
