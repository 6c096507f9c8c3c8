"""Messages and units that a caller gives → checked values, and the question in the messages of a host.

Bad input is refused whole, with the value and the remedy.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from datetime import datetime, tzinfo
from enum import Enum
from functools import partial
from typing import Any, Protocol

from holdfast.errors import InputError, quote_value
from holdfast.messages.checks import (
    MAX_METADATA_DEPTH,
    MAX_NAME,
    check_acts,
    check_flag,
    check_fraction,
    check_list,
    check_metadata,
    check_name,
    check_note,
    check_parts,
    check_targets,
    check_text,
    check_time,
    choose,
)
from holdfast.settings import IngestSettings
from holdfast.text.questions import ACTS_FOR_ROLE
from holdfast.types import AUTHORS, JSON, KINDS, ORIGINS, ROLES, Author, Fact, Unit, digest
from holdfast.values import dataclass


class MessageObject(Protocol):
    """A message of a library, such as what a client of a chat model returns."""

    @property
    def role(self) -> str:
        """Return who wrote it."""
        ...

    @property
    def content(self) -> Any:  # noqa: ANN401 - text, parts, or nothing
        """Return its words."""
        ...


QuestionInput = str | Sequence[Mapping[str, Any] | MessageObject]

_ROLES_OF_AUTHOR: dict[Author, str] = {
    "user": "user human",
    "assistant": "assistant ai",
    "tool": "tool function",
    "system": "system developer",
    "document": "document",
}
_AUTHOR_OF_ROLE = {role: author for author, roles in _ROLES_OF_AUTHOR.items() for role in roles.split()}
# What hosts and exports call one and the same thing. The first that a message has counts; a further one is kept as
# an unknown field is.
_NAMES: dict[str, tuple[str, ...]] = {
    "role": ("role", "type", "sender"),
    "speaker": ("speaker", "name"),
    "message_id": ("message_id", "id"),
    "bundle_id": ("bundle_id",),
    "at": ("at", "created_at", "createdAt", "create_time", "timestamp", "time", "date"),
    "session": ("session", "session_id", "conversation_id", "thread_id"),
}
_CONTENT = frozenset({"content", "tool_calls", "metadata"})
# The fields of a unit that are checked alone, each with what it is when it is not given.
_UNIT_CHECKS: dict[str, tuple[Callable[[str, Any], Any], object]] = {
    "supersedes": (check_targets, None),
    "links": (check_targets, None),
    "pinned": (check_flag, False),
    "authority": (check_fraction, 0.0),
    "origin": (lambda what, value: choose(what, value, ORIGINS), "document"),
    "topic": (check_note, None),
    "condition": (check_note, None),
    "utility_note": (check_note, None),
    "speaker": (partial(check_note, most=MAX_NAME), None),
    "message_id": (partial(check_name, optional=True), None),
    "bundle_id": (partial(check_name, optional=True), None),
}
_UNIT_TIMES = ("valid_from", "valid_to", "expires_at")
_UNIT_FIELDS = frozenset((*_UNIT_CHECKS, *_UNIT_TIMES)) | {
    "id", "kind", "text", "role", "claim", "procedure", "utility_acts", "author", "at", "subject", "relation",
    "object", "confidence", "metadata", "parts", "session",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Message:
    """One message or unit as the caller gave it, checked. `fields` are unit fields; the rest names it."""

    text: str
    author: Author = "user"
    id: str | None = None
    at: datetime | None = None
    session: str | None = None
    fields: Mapping[str, Any] = field(default_factory=dict)


# ---------------------------------------------------------------------------------------------- contents


def plain_message(item: Any) -> Any:  # noqa: ANN401 - whatever the caller gave
    """Return an object with `role` and `content` (or `tool_calls`) as a dict, and all else as it is."""
    is_one = hasattr(item, "role") and (hasattr(item, "content") or hasattr(item, "tool_calls"))
    return item if isinstance(item, Unit | type) or not is_one else _plain(item, ())


def _plain(value: Any, around: tuple[object, ...]) -> Any:  # noqa: ANN401 - whatever the caller gave
    """Return the values that an object is made of; what has none, or holds itself, is refused further on."""
    if len(around) > MAX_METADATA_DEPTH or any(value is one for one in around):
        return value
    deeper = partial(_plain, around=(*around, value))
    if isinstance(value, list | tuple):
        return [deeper(one) for one in value]
    if isinstance(value, Mapping):
        return {name: deeper(one) for name, one in value.items()}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, type) or callable(value) or not hasattr(value, "__dict__"):
        return value
    # `model_extra` has what a server sent and its client's class does not name.
    fields = {**vars(value), **(getattr(value, "model_extra", None) or {})}
    fields |= {name: getattr(value, name) for name in ("role", "content", "tool_calls") if hasattr(value, name)}
    return {name: deeper(one) for name, one in fields.items() if not name.startswith("_")}


def read_content(content: object, settings: IngestSettings, zone: tzinfo | None = None) -> list[Message]:
    """Return what `content` says: a text, a unit, a message, or a list of these; `zone` is that of times with none.

    Raises:
        InputError: anything in it cannot be used; the message says which item.
    """
    content = plain_message(content)
    if isinstance(content, str | Mapping | Unit):
        return [_read_one(content, settings, zone)]
    if not isinstance(content, Sequence) or isinstance(content, bytes):
        raise InputError(f"{quote_value(content)} cannot be remembered; give a text, a message or a list of messages")
    if not content:
        raise InputError("the list of messages is empty; there is nothing to remember")
    said = []
    for number, item in enumerate(content):
        try:
            said.append(_read_one(item, settings, zone))
        except InputError as error:
            raise type(error)(f"message {number}: {error}") from error
    return said


def _read_one(item: object, settings: IngestSettings, zone: tzinfo | None) -> Message:
    if isinstance(item, str):
        return Message(check_text(item, settings))
    item = unit_fields(item) if isinstance(item, Unit) else plain_message(item)
    if not isinstance(item, Mapping):
        raise InputError(f"{quote_value(item)} is not a message; give text, or a dict with role and content")
    if "content" in item or "tool_calls" in item:
        return read_message(item, settings, zone)
    if isinstance(item.get("role"), str) and item["role"] in _AUTHOR_OF_ROLE:
        raise InputError(f"a message of {item['role']} has no content; give it one, as in {{'content': 'hello'}}")
    return _read_unit(item, settings, zone)


def unit_fields(unit: Unit) -> dict[str, JSON]:
    """Return an existing unit as a mapping that can be remembered again, under another owner if need be."""
    names = (_UNIT_FIELDS & set(Unit.__dataclass_fields__)) - {"session"}  # an owner key: the caller's to give
    given = {name: getattr(unit, name) for name in names} | {"at": unit.event_time}
    if unit.fact is not None:
        given |= {name: getattr(unit.fact, name) for name in ("subject", "relation", "object", "confidence")}
    return given


def message_words(message: Mapping[str, Any]) -> tuple[Author, str]:
    """Return who wrote a message, and its words, whatever form its content has.

    Raises:
        InputError: its role or its content is none of those that a message has.
    """
    return _author(message), _read_parts(message, IngestSettings())[0]


def sessions_in(content: object) -> set[str]:
    """Return the sessions that messages of a checked content name themselves."""
    items = map(plain_message, content if isinstance(content, list | tuple) else [content])
    found = (_given(item, "session")[1] for item in items if isinstance(item, Mapping))
    return {session for session in found if session is not None}


def _given(message: Mapping[str, Any], what: str) -> tuple[str, Any]:
    """Return under which name a message has something, and its value."""
    return next(((name, message[name]) for name in _NAMES[what] if message.get(name) is not None), (what, None))


def _role(message: Mapping[str, Any]) -> tuple[str, Any]:
    """Return the role and its name; a "type" or a "sender" is one only where it says one."""
    name, role = _given(message, "role")
    if name == "role" or (isinstance(role, str) and role in _AUTHOR_OF_ROLE):
        return name, role
    return "role", None


def _author(message: Mapping[str, Any]) -> Author:
    role = _role(message)[1]
    author = "user" if role is None else _AUTHOR_OF_ROLE.get(role) if isinstance(role, str) else None
    if author is None:
        raise InputError(f"{quote_value(role)} is not a message role; use one of {', '.join(_AUTHOR_OF_ROLE)}")
    return author


def read_message(message: Mapping[str, Any], settings: IngestSettings, zone: tzinfo | None = None) -> Message:
    """Return one message, checked; whatever it has that is not known here is kept in its metadata.

    Raises:
        InputError: something in it cannot be used; the message names the field.
    """
    author = _author(message)
    text, parts = _read_parts(message, settings)
    if not text.strip() and (parts or author == "tool"):
        text = _without_words(parts)
    given = {what: _given(message, what) for what in _NAMES} | {"role": _role(message)}
    speaker, session = given["speaker"], given["session"]
    fields: dict[str, Any] = {
        "speaker": check_note(*speaker, MAX_NAME),
        "message_id": check_name(*given["message_id"], optional=True),
        "bundle_id": check_name(*given["bundle_id"], optional=True),
        "origin": "tool" if author == "tool" else "document" if author == "document" else "conversation",
        "parts": parts,
    }
    metadata = _metadata(message, {name for name, _ in given.values()})
    if metadata != {}:
        fields["metadata"] = check_metadata(metadata, settings)
    return Message(
        check_text(text, settings, "content"),
        author,
        at=check_time(*given["at"], zone),
        session=check_name(*session, optional=True),
        fields=fields,
    )


def _metadata(message: Mapping[str, Any], known: set[str]) -> object:
    """Return a message's metadata, with every field of it that has no meaning here."""
    further = {k: v for k, v in message.items() if k not in known | _CONTENT and v is not None}
    metadata = message.get("metadata")
    if not isinstance(metadata, Mapping):
        return metadata if metadata is not None else further
    if twice := [name for name in further if name in metadata and metadata[name] != further[name]]:
        raise InputError(f"{quote_value(twice[0])} is both a field and a key of metadata, with two values; keep one")
    return {**further, **metadata}


def _read_parts(message: Mapping[str, Any], settings: IngestSettings) -> tuple[str, tuple[JSON, ...]]:
    """Return a message's words, and its structure when it is more than words (C1)."""
    content, calls = message.get("content"), check_list("tool_calls", message.get("tool_calls") or ())
    if isinstance(content, str) and not calls:
        return content, ()
    if not isinstance(content, str | list | tuple | None):
        raise InputError(f"a message's content is text or a list of parts, not {quote_value(content)}")
    parts: list[object] = [content] if isinstance(content, str) and content else list(content or ())
    parts.extend({"type": "tool_call", **call} if isinstance(call, Mapping) else call for call in calls)
    checked = check_parts(parts, settings)
    return "\n".join(text for part in checked if (text := _part_text(part))), checked


_WORDS_OF_PARTS = ("text", "thinking", "caption", "alt", "input_text", "output_text", "content")


def _part_text(part: object) -> str:
    """Return the words of one part: text, captions, tool names and arguments; never image bytes."""
    if isinstance(part, str):
        return part
    if not isinstance(part, Mapping):
        raise InputError(f"{quote_value(part)} is not a content part; use text or a dict with a type")
    function = part.get("function")
    if isinstance(function, Mapping):
        return f"{function.get('name', '')} {function.get('arguments', '')}".strip()
    if "input" in part:  # a call of a tool: its name, and what it was given
        return f"{part.get('name', '')} {json.dumps(part['input'], ensure_ascii=False, default=str)}".strip()
    words = [part[name] for name in _WORDS_OF_PARTS if isinstance(part.get(name), str)]
    if isinstance(inner := part.get("content"), list | tuple):  # the result of a tool has parts of its own
        words += [_part_text(one) for one in inner]
    return "\n".join(word for word in words if word)


def _without_words(parts: Sequence[object]) -> str:
    """Return what stands for a message that has no words: a picture, or a tool that answered nothing."""
    kinds = [str(part.get("type", "part")) for part in parts if isinstance(part, Mapping)]
    return f"[{', '.join(dict.fromkeys(kinds)) or 'empty'}]"


def _read_unit(given: Mapping[str, Any], settings: IngestSettings, zone: tzinfo | None) -> Message:
    if unknown := sorted(set(given) - _UNIT_FIELDS, key=repr):
        raise InputError(
            f"a unit has no field {quote_value(unknown[0])}; its fields are {', '.join(sorted(_UNIT_FIELDS))}"
        )
    role = choose("role", given.get("role", "Narrative"), ROLES)
    claim, procedure = given.get("claim") or "", given.get("procedure") or ""
    if claim and procedure:
        raise InputError("a unit has a claim or a procedure, not both; keep the one that fits its role")
    if (role == "Procedure" and claim) or (role != "Procedure" and procedure):
        raise InputError(f"role {role} takes a {'procedure' if role == 'Procedure' else 'claim'}; change one of them")
    statement = claim or procedure or given.get("text") or ""
    text = check_text(given.get("text") or statement, settings)
    check_text(statement, settings)
    kind = choose("kind", given.get("kind", "knowledge"), KINDS)
    # Acts are searched words: on every turn, a question with "explain" would match all of them a little.
    default_acts = ACTS_FOR_ROLE[role] if kind == "knowledge" else ()
    fields: dict[str, Any] = {
        "kind": kind,
        "role": role,
        "procedure" if role == "Procedure" else "claim": statement,
        "utility_acts": check_acts("utility_acts", given.get("utility_acts", default_acts), "act"),
        "fact": _read_fact(given),
        **{name: check(name, given.get(name, default)) for name, (check, default) in _UNIT_CHECKS.items()},
        **{name: check_time(name, given.get(name), zone) for name in _UNIT_TIMES},
    }
    if given.get("metadata") is not None:
        fields["metadata"] = check_metadata(given["metadata"], settings)
    fields["parts"] = check_parts(check_list("parts", given.get("parts", ())), settings)
    author = choose("author", given.get("author", "document" if kind == "knowledge" else "user"), AUTHORS)
    return Message(
        text,
        author,
        check_name("id", given.get("id"), optional=True),
        check_time("at", given.get("at"), zone),
        check_name("session", given.get("session"), optional=True),
        fields,
    )


def _read_fact(given: Mapping[str, Any]) -> Fact | None:
    names = [name for name in ("subject", "relation", "object") if given.get(name)]
    if not names and given.get("confidence") is None:
        return None
    if len(names) < 3:
        raise InputError(f"a fact needs subject, relation and object; only {names or 'a confidence'} given")
    subject, relation, thing = (check_note(name, given[name]) for name in names)
    return Fact(subject, relation, thing, check_fraction("confidence", given.get("confidence", 1.0)))


# ---------------------------------------------------------------------------------------------- identity


def identity(said: Message, owner: tuple[str | None, ...], seen: dict[tuple[object, ...], int]) -> str:
    """Return the id that makes the same message the same unit (C1), without asking the store.

    `seen` counts equal messages of one call: without a message id, the k-th of them is the k-th occurrence.
    """
    message_id = said.fields.get("message_id")
    if message_id is not None:
        return f"u-{digest('message', owner, said.author, said.text, message_id)}"
    at = said.at.isoformat() if said.at else None
    equal = (said.author, said.text, at)
    seen[equal] = occurrence = seen.get(equal, -1) + 1
    return occurrence_id(said, owner, occurrence)


def occurrence_id(said: Message, owner: tuple[str | None, ...], occurrence: int) -> str:
    """Return the id of the k-th message of these words."""
    at = said.at.isoformat() if said.at else None
    return f"u-{digest('said', owner, said.author, said.text, at, occurrence)}"


# ------------------------------------------------------------------------------------------------- what a host shows


def question_of(query: QuestionInput) -> tuple[str, tuple[str, ...]]:
    """Return the question and the user's messages before it, oldest first.

    Raises:
        InputError: it is neither a question nor messages with one in them.
    """
    if isinstance(query, str):
        return query, ()
    texts = [text for author, text in visible_messages(query) if author == "user" and text.strip()]
    if not texts:
        raise InputError("no user message with text in the list; the last one is the question")
    return texts[-1], tuple(texts[:-1])


def visible_messages(query: QuestionInput) -> list[tuple[Author, str]]:
    """Return who said what in the messages that a host shows; a bare question shows none."""
    if isinstance(query, str):
        return []
    said = [plain_message(message) for message in query] if isinstance(query, Sequence) else [query]
    if not isinstance(query, Sequence) or not all(isinstance(message, Mapping) for message in said):
        raise InputError(f"{quote_value(query)} is not a question; give text or a list of messages")
    for number, message in enumerate(said):
        if "role" not in message:
            raise InputError(f"message {number} has no role; say who wrote it, as in {{'role': 'user', …}}")
    return [message_words(message) for message in said]


def match_visible(turns: Sequence[Unit], said: Sequence[tuple[Author, str]]) -> frozenset[str]:
    """Return which turns the host shows: of equal ones the latest, as many as it shows."""
    left = Counter(said)
    found = []
    for turn in reversed(turns):
        if left[turn.author, turn.text] > 0:
            left[turn.author, turn.text] -= 1
            found.append(turn.id)
    return frozenset(found)
