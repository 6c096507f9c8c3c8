"""What a caller hands over → checked values. Bad input is refused whole, with the value and the remedy."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from holdfast.analysis.query import ACTS_FOR_ROLE
from holdfast.errors import InputError, shown
from holdfast.settings import IngestSettings
from holdfast.types import (
    ACTS,
    AUTHORS,
    JSON,
    KINDS,
    ORIGINS,
    ROLES,
    SCOPES,
    Author,
    Fact,
    Origin,
    Scope,
    Unit,
    digest,
)

# Outside these years a time is a mix-up of units or a typing error, not a memory.
EARLIEST, LATEST = datetime(1900, 1, 1, tzinfo=UTC), datetime(2200, 1, 1, tzinfo=UTC)
# Owner keys and ids are names, not texts.
MAX_NAME = 256
# SQLite refuses JSON that is nested deeper than 1,000; people do not nest metadata deeper than this.
MAX_METADATA_DEPTH = 32
_INT64 = 2**63
_AUTHOR_OF_ROLE: dict[str, Author] = {
    "user": "user",
    "human": "user",
    "assistant": "assistant",
    "ai": "assistant",
    "tool": "tool",
    "function": "tool",
    "system": "system",
    "developer": "system",
    "document": "document",
}
_MESSAGE_KEYS = frozenset(
    {"role", "content", "name", "speaker", "id", "message_id", "bundle_id", "at", "metadata", "tool_calls"}
)
_UNIT_FIELDS = frozenset(
    {
        "id", "kind", "text", "role", "topic", "claim", "procedure", "condition", "utility_acts", "utility_note",
        "author", "speaker", "message_id", "bundle_id", "at", "valid_from", "valid_to", "supersedes", "expires_at",
        "pinned", "links", "subject", "relation", "object", "confidence", "authority", "origin", "metadata", "parts",
    }
)  # fmt: skip

Choice = TypeVar("Choice", bound=str)


@dataclass(frozen=True, slots=True)
class Said:
    """One message or unit as the caller gave it, checked. `fields` are unit fields; the rest names it."""

    text: str
    author: Author = "user"
    id: str | None = None
    at: datetime | None = None
    fields: Mapping[str, Any] = field(default_factory=dict)


# ---------------------------------------------------------------------------------------------- contents


def read_content(content: object, settings: IngestSettings) -> list[Said]:
    """Return what `content` says: a text, a unit, a message, or a list of these.

    Raises:
        InputError: anything in it cannot be used; the message says which item.
    """
    if isinstance(content, str | Mapping | Unit):
        return [_read_one(content, settings)]
    if not isinstance(content, Sequence) or isinstance(content, bytes):
        raise InputError(
            f"{shown(content)} cannot be remembered; give a text, a message or a list of messages"
        )
    if not content:
        raise InputError("the list of messages is empty; there is nothing to remember")
    said = []
    for number, item in enumerate(content):
        try:
            said.append(_read_one(item, settings))
        except InputError as error:
            raise type(error)(f"message {number}: {error}") from error
    return said


def _read_one(item: object, settings: IngestSettings) -> Said:
    if isinstance(item, str):
        return Said(check_text(item, settings))
    if isinstance(item, Unit):
        item = unit_fields(item)
    if not isinstance(item, Mapping):
        raise InputError(f"{shown(item)} is not a message; give text, or a dict with role and content")
    return (
        _read_message(item, settings)
        if "content" in item or "tool_calls" in item
        else _read_unit(item, settings)
    )


def unit_fields(unit: Unit) -> dict[str, JSON]:
    """Return an existing unit as a mapping that can be remembered again, under another owner if need be."""
    given = {name: value for name, value in unit.to_json().items() if name in _UNIT_FIELDS and name != "fact"}
    given |= {"id": unit.id, "text": unit.text, "at": unit.event_time, "role": unit.role}
    if unit.fact is not None:
        given |= {name: getattr(unit.fact, name) for name in ("subject", "relation", "object", "confidence")}
    return given


def _read_message(message: Mapping[str, Any], settings: IngestSettings) -> Said:
    role = message.get("role", "user")
    author = _AUTHOR_OF_ROLE.get(role) if isinstance(role, str) else None
    if author is None:
        raise InputError(f"{shown(role)} is not a message role; use one of {', '.join(_AUTHOR_OF_ROLE)}")
    text, parts = _read_parts(message)
    fields = {
        "speaker": _optional_text("speaker", message.get("speaker", message.get("name"))) or "",
        "message_id": check_name("message id", message.get("message_id", message.get("id")), optional=True),
        "bundle_id": check_name("bundle id", message.get("bundle_id"), optional=True),
        "origin": "tool" if author == "tool" else "document" if author == "document" else "conversation",
        "parts": parts,
    }
    if message.get("metadata") is not None:
        fields["metadata"] = check_metadata(message["metadata"], settings)
    return Said(check_text(text, settings), author, None, check_time("at", message.get("at")), fields)


def _read_parts(message: Mapping[str, Any]) -> tuple[str, tuple[JSON, ...]]:
    """Return a message's words, and its structure when it is more than words (C1)."""
    content, calls = message.get("content"), message.get("tool_calls") or ()
    extras = {
        name: value for name, value in message.items() if name not in _MESSAGE_KEYS and value is not None
    }
    if isinstance(content, str) and not calls and not extras:
        return content, ()
    if not isinstance(content, str | list | tuple | None):
        raise InputError(f"a message's content is text or a list of parts, not {shown(content)}")
    parts: list[JSON] = [content] if isinstance(content, str) and content else list(content or ())
    parts += [{"type": "tool_call", **call} if isinstance(call, Mapping) else call for call in calls]
    parts += [{"type": "extra", **extras}] if extras else []
    words = [text for part in parts if (text := _part_text(part))]
    return "\n".join(words), tuple(_check_json("content", part) for part in parts)


def _part_text(part: JSON) -> str:
    """Return the words of one part: text, captions, tool names and arguments; never image bytes."""
    if isinstance(part, str):
        return part
    if not isinstance(part, Mapping):
        raise InputError(f"{shown(part)} is not a content part; use text or a dict with a type")
    function = part.get("function")
    if isinstance(function, Mapping):
        return f"{function.get('name', '')} {function.get('arguments', '')}".strip()
    named = [part.get(name) for name in ("text", "caption", "alt", "input_text", "output_text", "content")]
    return "\n".join(value for value in named if isinstance(value, str))


def _read_unit(given: Mapping[str, Any], settings: IngestSettings) -> Said:
    if unknown := sorted(set(given) - _UNIT_FIELDS):
        raise InputError(
            f"a unit has no field {shown(unknown[0])}; its fields are {', '.join(sorted(_UNIT_FIELDS))}"
        )
    role = choose("role", given.get("role", "Narrative"), ROLES)
    claim, procedure = given.get("claim") or "", given.get("procedure") or ""
    if claim and procedure:
        raise InputError("a unit has a claim or a procedure, not both; keep the one that fits its role")
    if (role == "Procedure" and claim) or (role != "Procedure" and procedure):
        raise InputError(
            f"role {role} takes a {'procedure' if role == 'Procedure' else 'claim'}; change one of them"
        )
    statement = claim or procedure or given.get("text") or ""
    text = check_text(given.get("text") or statement, settings)
    check_text(statement, settings)
    kind = choose("kind", given.get("kind", "knowledge"), KINDS)
    default_acts = ACTS_FOR_ROLE[role] if kind == "knowledge" else ()
    fields: dict[str, Any] = {
        "kind": kind,
        "role": role,
        "procedure" if role == "Procedure" else "claim": statement,
        "utility_acts": tuple(choose("act", act, ACTS) for act in given.get("utility_acts", default_acts)),
        "fact": _read_fact(given),
        "supersedes": check_names("supersedes", given.get("supersedes")),
        "links": check_names("links", given.get("links")),
        "pinned": given.get("pinned") is True,
        "authority": _fraction("authority", given.get("authority", 0.0)),
        "origin": _origin(given),
    }
    for name in ("topic", "condition", "utility_note", "speaker"):
        fields[name] = _optional_text(name, given.get(name)) or ""
    for name in ("message_id", "bundle_id"):
        fields[name] = check_name(name, given.get(name), optional=True)
    for name in ("valid_from", "valid_to", "expires_at"):
        fields[name] = check_time(name, given.get(name))
    if given.get("metadata") is not None:
        fields["metadata"] = check_metadata(given["metadata"], settings)
    fields["parts"] = tuple(_check_json("parts", part) for part in given.get("parts", ()))
    author = choose("author", given.get("author", "document" if kind == "knowledge" else "user"), AUTHORS)
    return Said(
        text,
        author,
        check_name("id", given.get("id"), optional=True),
        check_time("at", given.get("at")),
        fields,
    )


def _origin(given: Mapping[str, Any]) -> Origin:
    return choose("origin", given.get("origin", "document"), ORIGINS)


def _read_fact(given: Mapping[str, Any]) -> Fact | None:
    names = [name for name in ("subject", "relation", "object") if given.get(name)]
    if not names and given.get("confidence") is None:
        return None
    if len(names) < 3:
        raise InputError(f"a fact needs subject, relation and object; only {names or 'a confidence'} given")
    triple = [_optional_text(name, given[name]) or "" for name in ("subject", "relation", "object")]
    return Fact(*triple, confidence=_fraction("confidence", given.get("confidence", 1.0)))


# ------------------------------------------------------------------------------------------------ checks


def check_text(text: object, settings: IngestSettings) -> str:
    """Return `text` unless it is empty, too long, or holds what no text may hold."""
    if not isinstance(text, str):
        raise InputError(f"{shown(text)} is not text; give a str")
    if not text.strip():
        raise InputError(f"the text is blank ({shown(text)}); there is nothing to remember")
    _check_characters("the text", text)
    size = len(text.encode("utf-8"))
    if size > settings.max_text_bytes:
        raise InputError(
            f"the text has {size:,} bytes, more than ingest.max_text_bytes = {settings.max_text_bytes:,}; "
            "split it, or raise the limit"
        )
    return text


def _check_characters(what: str, text: str) -> None:
    if "\x00" in text:
        raise InputError(f"{what} holds a NUL character at {text.index(chr(0))}; remove it")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        bad = text[error.start]
        raise InputError(
            f"{what} holds a lone surrogate U+{ord(bad):04X} at {error.start}; decode the source as UTF-8"
        ) from error


def check_name(what: str, name: object, *, optional: bool = False) -> str | None:
    """Return an owner key or id unless it is empty, blank or far too long."""
    if name is None and optional:
        return None
    if not isinstance(name, str) or not name.strip():
        raise InputError(f"the {what} is missing or blank ({shown(name)}); name it")
    _check_characters(f"the {what}", name)
    if len(name) > MAX_NAME:
        raise InputError(f"the {what} {shown(name)} has {len(name)} characters; the most is {MAX_NAME}")
    return name


def check_names(what: str, names: object) -> tuple[str, ...]:
    """Return a tuple of ids from one id, several, or None."""
    if names is None:
        return ()
    if isinstance(names, str):
        names = (names,)
    if not isinstance(names, list | tuple):
        raise InputError(f"{what} takes an id or a list of ids, not {shown(names)}")
    return tuple(check_name(what, name) or "" for name in names)


def check_time(what: str, moment: object) -> datetime | None:
    """Return an aware UTC time from a datetime or ISO text.

    Raises:
        InputError: it is naive, not a time, or outside the years a memory can have.
    """
    if moment is None:
        return None
    example = "write it as 2026-04-02T09:00:00Z"
    if isinstance(moment, str):
        try:
            moment = datetime.fromisoformat(moment)
        except ValueError as error:
            raise InputError(f"{what} = {shown(moment)} is not a time; {example}") from error
    if not isinstance(moment, datetime):
        raise InputError(f"{what} = {shown(moment)} is not a time; give a datetime, or {example}")
    if moment.tzinfo is None or moment.utcoffset() is None:
        raise InputError(f"{what} = {moment.isoformat()} has no time zone; {example}")
    if not EARLIEST <= moment < LATEST:
        raise InputError(
            f"{what} = {moment.isoformat()} is outside {EARLIEST.year}–{LATEST.year}; check its unit"
        )
    return moment.astimezone(UTC)


def check_lifetime(ttl: object) -> timedelta | None:
    """Return a positive time to live from seconds or a timedelta."""
    if ttl is None:
        return None
    if isinstance(ttl, int | float) and not isinstance(ttl, bool) and math.isfinite(ttl) and 0 < ttl < 1e10:
        ttl = timedelta(seconds=ttl)
    if not isinstance(ttl, timedelta) or ttl <= timedelta(0):
        raise InputError(f"ttl = {shown(ttl)} is not a positive time; give seconds or a timedelta")
    return ttl


def check_metadata(metadata: object, settings: IngestSettings) -> dict[str, JSON]:
    """Return `metadata` unless it is not a JSON object that every store can hold."""
    if not isinstance(metadata, Mapping):
        raise InputError(f"metadata = {shown(metadata)} is not a JSON object; give a dict")
    checked: dict[str, JSON] = _check_json("metadata", metadata)
    size = len(json.dumps(checked).encode())
    if size > settings.max_metadata_bytes:
        raise InputError(
            f"metadata has {size:,} bytes, more than ingest.max_metadata_bytes = {settings.max_metadata_bytes:,}"
        )
    return checked


def _check_json(what: str, value: object, depth: int = 0) -> JSON:
    """Return a deep copy of a JSON value: plain types, finite numbers of 64 bits, text keys."""
    if depth > MAX_METADATA_DEPTH:
        raise InputError(f"{what} is nested more than {MAX_METADATA_DEPTH} deep; flatten it")
    if isinstance(value, str):
        _check_characters(what, value)
        return value
    whole = isinstance(value, int) and -_INT64 <= value < _INT64
    if (
        value is None
        or isinstance(value, bool)
        or whole
        or (isinstance(value, float) and math.isfinite(value))
    ):
        return value
    if isinstance(value, list | tuple):
        return [_check_json(what, item, depth + 1) for item in value]
    if isinstance(value, Mapping):
        for name in value:
            if not isinstance(name, str):
                raise InputError(f"{what} has the key {shown(name)}; JSON keys are text")
            _check_characters(f"a key of {what}", name)
        return {name: _check_json(what, item, depth + 1) for name, item in value.items()}
    raise InputError(f"{what} holds {shown(value)}, which is not JSON; use text, numbers, lists and dicts")


def choose(what: str, value: object, choices: tuple[Choice, ...]) -> Choice:
    """Return `value` when it is one of `choices`."""
    for choice in choices:
        if choice == value:
            return choice
    raise InputError(f"there is no {what} {shown(value)}; choose one of {', '.join(choices)}")


def choose_scope(scope: object, session: str | None) -> Scope:
    """Return the scope asked for, or the one that the owner keys imply."""
    if scope is None:
        return "session" if session is not None else "user"
    chosen = choose("scope", scope, SCOPES)
    if chosen == "session" and session is None:
        raise InputError("scope 'session' needs a session; name one, or use scope 'user'")
    return chosen


def _optional_text(what: str, value: object) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str):
        raise InputError(f"{what} = {shown(value)} is not text")
    _check_characters(what, value)
    return value


def _fraction(what: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0.0 <= value <= 1.0:
        raise InputError(f"{what} = {shown(value)} is outside [0, 1]")
    return float(value)


# ---------------------------------------------------------------------------------------------- identity


def identity(said: Said, owner: tuple[str | None, ...], seen: dict[tuple[object, ...], int]) -> str:
    """Return the id that makes the same message the same unit (C1), without asking the store.

    `seen` counts equal messages of one call: without a message id, the k-th of them is the k-th occurrence.
    """
    message_id = said.fields.get("message_id")
    if message_id is not None:
        return f"u-{digest('message', owner, said.author, said.text, message_id)}"
    at = said.at.isoformat() if said.at else None
    equal = (said.author, said.text, at)
    seen[equal] = occurrence = seen.get(equal, -1) + 1
    return f"u-{digest('said', owner, *equal, occurrence)}"
