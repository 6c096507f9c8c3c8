"""Checks of what a caller gives: each returns the usable value, or says what is wrong with it and what to do.

Rules that a user writes: `x located_in y, y part_of z -> x located_in z : 0.9`. Every word that is not a relation is
a variable. A rule can only put together symbols that its body has found, so no rule makes up new ones, and applying
rules again and again comes to an end.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path
from typing import TypeVar

from holdfast.errors import InputError, MissingExtraError, SettingsError, quote_value, say_install
from holdfast.kernels.closure import Pattern, Rule
from holdfast.settings import IngestSettings
from holdfast.text.calendar import read_time
from holdfast.text.words import regex
from holdfast.types import ACTS, JSON, SCOPES, Act, Scope

# Owner keys, ids and speakers are names, not texts.
MAX_NAME = 256
# Topics, conditions, notes and the ends of a fact are a line or a paragraph; a text has its own field.
MAX_NOTE = 4_096
# A unit that points at more others than this is a list, and no list is that long by hand.
MAX_IDS = 1_000
# SQLite refuses JSON that is nested deeper than 1,000; people do not nest metadata deeper than this.
MAX_METADATA_DEPTH = 32
# Longer than 300 years is for ever; say it by leaving the ttl out.
_LONGEST_LIFETIME = 1e10
_INT64 = 2**63
# What other programs write: bytes of these are no text, however they begin.
_NO_TEXT = frozenset(
    "7z avi bin bmp bz2 class db dll doc docm dylib exe flac gif gz heic ico jar jpeg jpg key mov mp3 mp4 "
    "numbers odp ods odt ogg otf pages parquet png ppt pptm pptx psd pyc rar rtf so sqlite tar tif tiff ttf wav webm "
    "webp woff woff2 xls xlsm xlsx xz zip zst".split()
)

Choice = TypeVar("Choice", bound=str)


def check_text(text: object, settings: IngestSettings, what: str = "the text") -> str:
    """Return `text` unless it is empty, too long, or holds what no text may hold."""
    if not isinstance(text, str):
        raise InputError(f"{what} {quote_value(text)} is not text; give a str")
    if not text.strip():
        raise InputError(f"{what} is blank ({quote_value(text)}); write some words")
    _check_characters(what, text)
    size = len(text.encode("utf-8"))
    if size > settings.max_text_bytes:
        raise InputError(
            f"{what} has {size:,} bytes, more than ingest.max_text_bytes = {settings.max_text_bytes:,}; "
            "split it, or raise the limit"
        )
    return text


def _check_characters(what: str, text: str) -> None:
    # Some databases cannot hold NUL in a text, and some tools cut the text there.
    if "\x00" in text:
        raise InputError(f"{what} holds a NUL character at {text.index(chr(0))}; remove it")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        bad = text[error.start]
        raise InputError(
            f"{what} holds a lone surrogate U+{ord(bad):04X} at {error.start}; decode the source as UTF-8"
        ) from error


def decode_bytes(name: str, body: bytes, start: int = 0, encoding: str = "utf-8") -> str:
    """Return the text of a file's bytes behind its byte order mark."""
    try:
        return body[start:].decode(encoding)
    except UnicodeDecodeError as error:
        at = error.start + start
        raise InputError(
            f"{quote_value(name)} is not {encoding.upper()}: byte 0x{body[at]:02x} at {at}; save the file as UTF-8"
        ) from error


def refuse_binary(name: str) -> None:
    """Refuse a file that is another program's by its name. A text may be called so: whoever gives it has read it.

    Raises:
        InputError: its suffix is that of a format that is no text.
    """
    _, dot, suffix = name.rpartition(".")
    if dot and suffix.lower() in _NO_TEXT:
        raise InputError(
            f"{quote_value(name)} is no text by its name; export it as text, Markdown, HTML, PDF or .docx"
        )


def parse_stated_time(given: object) -> datetime | None:
    """Return when a file says that it was written; what cannot be read as a time is as good as missing."""
    try:
        return read_time("date", given, UTC)
    except InputError:
        return None


def missing_extra(name: str, what: str, library: str) -> MissingExtraError:
    """Return the error of a file that is read by a library which is not installed."""
    return MissingExtraError(f"{quote_value(name)} is {what}, which needs {library}; {say_install('documents')}")


def check_name(what: str, name: object, *, optional: bool = False) -> str | None:
    """Return an owner key or id unless it is empty, blank or far too long."""
    if name is None and optional:
        return None
    if name is not None and not isinstance(name, str):
        raise InputError(f"the {what} {quote_value(name)} is not text; give a str")
    if name is None or not name.strip():
        raise InputError(f"the {what} is missing or blank ({quote_value(name)}); name it")
    return _check_length(f"the {what}", name, MAX_NAME)


def _check_length(what: str, text: str, most: int) -> str:
    _check_characters(what, text)
    if len(text) > most:
        raise InputError(f"{what} {quote_value(text)} has {len(text):,} characters; the most is {most:,}")
    return text


def check_names(what: str, names: object) -> tuple[str, ...]:
    """Return a tuple of ids from one id, several, or None."""
    if names is None:
        return ()
    if isinstance(names, str):
        names = (names,)
    if not isinstance(names, list | tuple):
        raise InputError(f"{what} takes an id or a list of ids, not {quote_value(names)}")
    return tuple(check_name(what, name) or "" for name in names)


def check_targets(what: str, names: object) -> tuple[str, ...]:
    """Return the ids that a unit points at, as `check_names` does, unless there are too many."""
    targets = check_names(what, names)
    if len(targets) > MAX_IDS:
        raise InputError(f"{what} has {len(targets):,} ids; the most is {MAX_IDS:,}")
    return targets


def check_list(what: str, value: object) -> Sequence[object]:
    """Return a list."""
    if not isinstance(value, list | tuple):
        raise InputError(f"{what} takes a list, not {quote_value(value)}")
    return value


def check_acts(what: str, value: object, each: str) -> tuple[Act, ...]:
    """Return a list of acts without repetitions; `each` is what an error calls one of them."""
    return tuple(dict.fromkeys(choose(each, act, ACTS) for act in check_list(what, value)))


def check_time(what: str, moment: object, zone: tzinfo | None = None) -> datetime | None:
    """Return an aware UTC time as `read_time` does; None stays None."""
    return None if moment is None else read_time(what, moment, zone)


def check_lifetime(ttl: object) -> timedelta | None:
    """Return a positive time to live from seconds or a timedelta."""
    if ttl is None:
        return None
    if isinstance(ttl, int | float) and not isinstance(ttl, bool) and 0 < ttl < _LONGEST_LIFETIME:
        ttl = timedelta(seconds=ttl)
    if not isinstance(ttl, timedelta) or not 0 < ttl.total_seconds() < _LONGEST_LIFETIME:
        raise InputError(f"ttl = {quote_value(ttl)} is not a positive time; give seconds or a timedelta")
    return ttl


def check_metadata(metadata: object, settings: IngestSettings) -> dict[str, JSON]:
    """Return `metadata` unless it is not a JSON object that every store can hold."""
    if not isinstance(metadata, Mapping):
        raise InputError(f"metadata = {quote_value(metadata)} is not a JSON object; give a dict")
    checked: dict[str, JSON] = check_json("metadata", metadata)
    _check_size("metadata", checked, "ingest.max_metadata_bytes", settings.max_metadata_bytes)
    return checked


def check_parts(parts: Sequence[object], settings: IngestSettings) -> tuple[JSON, ...]:
    """Return the parts of a message unless they are not JSON, or too large together."""
    checked = tuple(check_json("a part of the content", part) for part in parts)
    _check_size("the content", checked, "ingest.max_parts_bytes", settings.max_parts_bytes)
    return checked


def _check_size(what: str, value: JSON, setting: str, most: int) -> None:
    size = len(json.dumps(value).encode()) if value else 0
    if size > most:
        raise InputError(f"{what} has {size:,} bytes, more than {setting} = {most:,}; shorten it, or raise the limit")


def check_json(what: str, value: object, depth: int = 0) -> JSON:
    """Return a deep copy of a JSON value: plain types, finite numbers of 64 bits, text keys."""
    if depth > MAX_METADATA_DEPTH:
        raise InputError(f"{what} is nested more than {MAX_METADATA_DEPTH} deep; flatten it")
    if isinstance(value, str):
        _check_characters(what, value)
        return value
    whole = isinstance(value, int) and -_INT64 <= value < _INT64
    if value is None or isinstance(value, bool) or whole or (isinstance(value, float) and math.isfinite(value)):
        return value
    if isinstance(value, list | tuple):
        return [check_json(what, item, depth + 1) for item in value]
    if isinstance(value, Mapping):
        for name in value:
            if not isinstance(name, str):
                raise InputError(f"{what} has the key {quote_value(name)}; JSON keys are text")
            _check_characters(f"a key of {what}", name)
        return {name: check_json(what, item, depth + 1) for name, item in value.items()}
    raise InputError(f"{what} holds {quote_value(value)}, which is not JSON; use text, numbers, lists and dicts")


def choose(what: str, value: object, choices: tuple[Choice, ...]) -> Choice:
    """Return `value` when it is one of `choices`."""
    for choice in choices:
        if choice == value:
            return choice
    raise InputError(f"there is no {what} {quote_value(value)}; choose one of {', '.join(choices)}")


def choose_scope(scope: object, session: str | None) -> Scope:
    """Return the scope asked for, or the one that the owner keys imply."""
    if scope is None:
        return "session" if session is not None else "user"
    chosen = choose("scope", scope, SCOPES)
    if chosen == "session" and session is None:
        raise InputError("scope 'session' needs a session; name one, or use scope 'user'")
    return chosen


def check_flag(what: str, value: object) -> bool:
    """Return a true or false."""
    if not isinstance(value, bool):
        raise InputError(f"{what} = {quote_value(value)} is neither True nor False")
    return value


def check_given_text(what: str, value: object) -> str:
    """Return text that may be empty, and not missing."""
    if value is None:
        raise InputError(f"{what} = None is not text; give '' to empty it")
    return check_optional_text(what, value) or ""


def check_optional_text(what: str, value: object) -> str | None:
    """Return text that may be missing or empty."""
    if value is None:
        return None
    if not isinstance(value, str):
        raise InputError(f"{what} = {quote_value(value)} is not text; give a str")
    _check_characters(what, value)
    return value


def check_note(what: str, value: object, most: int = MAX_NOTE) -> str:
    """Return a short text, empty when it is missing."""
    return _check_length(what, check_optional_text(what, value) or "", most)


def check_fraction(what: str, value: object) -> float:
    """Return a number inside [0, 1]."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0.0 <= value <= 1.0:
        raise InputError(f"{what} = {quote_value(value)} is outside [0, 1]")
    return float(value)


# -------------------------------------------------------------------------------------------------- rules for facts

_MOST_PREMISES = 3
# The reference system's weight of a rule that names none.
_DEFAULT_WEIGHT = 0.9
_PREMISE = regex(r"\??(\w+)\s+([\w-]+)\s+\??(\w+)")
_RULE_EXAMPLE = "x located_in y, y part_of z -> x located_in z : 0.9"


def read_rules(texts: Sequence[str]) -> tuple[Rule, ...]:
    """Return the rules that `texts` write; they are named user_1, user_2 and so on.

    A list that came as one text is split at its commas; parts of a body find together again.

    Raises:
        SettingsError: a rule is not understood or not safe.
    """
    return tuple(read_rule(text, f"user_{number}") for number, text in enumerate(_whole(texts), start=1))


def _whole(texts: Sequence[str]) -> list[str]:
    """Join what stands before an arrow with the part that has it."""
    whole: list[str] = []
    waiting: list[str] = []
    for text in texts:
        waiting.append(text)
        if "->" in text:
            whole.append(",".join(waiting))
            waiting = []
    if waiting:
        raise _refused(",".join(waiting), "it has no `->`", "write premises, `->` and what follows")
    return whole


def read_rule(text: str, name: str) -> Rule:
    """Return the rule that `text` writes.

    Raises:
        SettingsError: the rule is not understood or not safe.
    """
    body_text, _, rest = text.partition("->")
    head_text, _, weight_text = rest.partition(":")
    body = tuple(_pattern(part, text) for part in re.split(r",|\band\b|&", body_text))
    head = _pattern(head_text, text)
    if len(body) > _MOST_PREMISES:
        raise _refused(text, f"it has {len(body)} premises", f"use one to {_MOST_PREMISES}")
    _check_variables(body, head, text)
    return Rule(name, body, head, _weight(weight_text, text))


def _pattern(part: str, text: str) -> Pattern:
    match = _PREMISE.fullmatch(part.strip())
    if match is None:
        raise _refused(text, f"{quote_value(part.strip())} is not `x relation y`", "use three words for each part")
    subject, relation, other = match.groups()
    return Pattern(subject, relation.casefold(), other)


def _check_variables(body: tuple[Pattern, ...], head: Pattern, text: str) -> None:
    known = {body[0].subject, body[0].object}
    waiting = list(body[1:])
    while waiting:
        joined = next((part for part in waiting if known & {part.subject, part.object}), None)
        if joined is None:
            raise _refused(text, "its premises share no variable", "let each one name a variable of another")
        waiting.remove(joined)
        known |= {joined.subject, joined.object}
    for variable in (head.subject, head.object):
        if variable not in known:
            raise _refused(text, f"{variable} follows from nothing", "let the body name every variable of the head")
    if head in body:
        raise _refused(text, "it says what its body says", "let another relation or other variables follow")


def _weight(text: str, rule: str) -> float:
    if not text.strip():
        return _DEFAULT_WEIGHT
    try:
        weight = float(text)
    except ValueError as error:
        raise _refused(
            rule, f"{quote_value(text.strip())} is not a weight", "give a number above 0, at most 1"
        ) from error
    if not 0.0 < weight <= 1.0:
        raise _refused(rule, f"its weight {weight} is outside (0, 1]", "give a number above 0, at most 1")
    return weight


def _refused(rule: str, why: str, remedy: str) -> SettingsError:
    return SettingsError(f"symbolic.rules has {rule.strip()[:200]!r}: {why}; {remedy}, as in {_RULE_EXAMPLE!r}")


# What Linux, macOS and Windows take.
_MAX_FILE_NAME, _MAX_PATH = 255, 4_096


def check_location(what: str, path: object) -> Path:
    """Return a file's or folder's path that a file system can have."""
    if not isinstance(path, str | Path):
        raise InputError(f"{what} = {quote_value(path)} is not a path; give a str or a Path")
    name = str(path)
    try:
        longest = max(len(part.encode("utf-8", "surrogateescape")) for part in (Path(name).parts or ("",)))
    except UnicodeEncodeError as error:
        raise InputError(
            f"{what} = {quote_value(name)} holds a lone surrogate; decode the source as UTF-8"
        ) from error
    if not name.strip() or "\x00" in name:
        raise InputError(f"{what} = {quote_value(name)} cannot be a path; name a file or a folder")
    if longest > _MAX_FILE_NAME or len(name) > _MAX_PATH:
        raise InputError(
            f"{what} = {quote_value(name)} is too long; a name has at most {_MAX_FILE_NAME} bytes, a path "
            f"{_MAX_PATH:,}"
        )
    return Path(name)
