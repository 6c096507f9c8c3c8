"""What assistants export: ChatGPT, Claude, mem0, message lists of OpenAI, Anthropic, LangChain; and transcripts."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, tzinfo
from typing import Any, NamedTuple

from holdfast.types import JSON, digest
from holdfast.types.outcomes import ImportedMessage, ImportNotes, get_member

# Bookkeeping of a conversation that nobody said.
_SYSTEM = ("system",)
_UNSAID = ("model_editable_context", "user_editable_context")
_THOUGHT = ("thoughts", "reasoning_recap")
_LANGCHAIN_ROLES = {"human": "user", "ai": "assistant", "system": "system", "tool": "tool", "function": "tool"}
_CLASS_ROLES = {f"{name}{kind}": role for name, role in (
    ("Human", "user"), ("AI", "assistant"), ("System", "system"), ("Tool", "tool"), ("Function", "tool"),
) for kind in ("Message", "MessageChunk")}  # fmt: skip


class JsonLines(list[JSON]):
    """A JSON value for each line of a file, in order; a line that is no JSON is its text, an empty one None."""


def _rows(value: JSON, *names: str) -> Sequence[JSON]:
    """Return the list that a value is, or holds under one of some names."""
    if isinstance(value, list):
        return value
    found = next((value[name] for name in names if isinstance(get_member(value, name), list)), ())
    return found if isinstance(found, list) else ()


def _first(rows: Sequence[JSON]) -> Mapping[str, JSON]:
    return next((one for one in rows if isinstance(one, Mapping)), {})


def parse_time(value: object) -> datetime | str | None:
    """Return a time as a message has it: seconds since 1970, or a text; None for what is none."""
    if isinstance(value, str) and value.replace(".", "", 1).isdigit():
        value = float(value)
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < 1e11:
        return datetime.fromtimestamp(value, UTC)
    if not isinstance(value, str) or not value.strip():
        return None
    try:
        read = datetime.fromisoformat(value)
    except ValueError:
        return value  # `remember` reads more forms, and says what is wrong
    return read if read.tzinfo is not None else read.replace(tzinfo=UTC)


# ------------------------------------------------------------------------------------------------------ ChatGPT


def is_chatgpt(value: JSON) -> bool:
    """Return whether conversations are trees of messages."""
    return isinstance(get_member(_first(_rows(value, "conversations")) or value, "mapping"), Mapping)


def read_chatgpt(value: JSON, notes: ImportNotes) -> Iterator[ImportedMessage]:
    """Yield what was said on the way to each conversation's current message; other branches are noted."""
    rows = _rows(value, "conversations") or [value]
    for number, conversation in enumerate(rows):
        where = (
            f"conversation {get_member(conversation, 'id') or get_member(conversation, 'conversation_id') or number}"
        )
        mapping = get_member(conversation, "mapping")
        if not isinstance(mapping, Mapping):
            notes.skip("it is no conversation: it has no mapping", where)
            continue
        session = str(
            get_member(conversation, "conversation_id") or get_member(conversation, "id") or f"chatgpt-{number}"
        )
        path = _branch(conversation, mapping)
        for name in mapping:
            if name not in path and _said_by_chatgpt(get_member(mapping[name], "message"))[0]:
                notes.skip("it is in another branch of its conversation", f"message {name}")
        for name in path:
            yield from _chatgpt_message(conversation, mapping[name], name, session, notes)


def _branch(conversation: JSON, mapping: Mapping[str, JSON]) -> dict[str, None]:
    """Return the messages from the first to the current one; without one, to the one that was written last."""
    leaf = get_member(conversation, "current_node")
    if leaf not in mapping:
        parents = {get_member(node, "parent") for node in mapping.values()}
        leaves = [name for name in mapping if name not in parents]
        leaf = max(
            leaves,
            key=lambda name: _number(get_member(get_member(mapping[name], "message"), "create_time")),
            default=None,
        )
    path: list[str] = []
    while isinstance(leaf, str) and leaf in mapping and leaf not in path:
        path.append(leaf)
        leaf = get_member(mapping[leaf], "parent")
    return dict.fromkeys(reversed(path))


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else 0.0


def _chatgpt_message(
    conversation: JSON, node: JSON, name: str, session: str, notes: ImportNotes
) -> Iterator[ImportedMessage]:
    message = get_member(node, "message")
    if message is None:
        return  # the root of a tree has none
    text, why = _said_by_chatgpt(message)
    if not text:
        notes.skip(why, f"message {name}")
        return
    author = get_member(message, "author")
    fields: dict[str, JSON] = {
        "role": get_member(author, "role"),
        "content": text,
        "message_id": str(get_member(message, "id") or name),
        "metadata": _without_none(
            conversation=get_member(conversation, "title"),
            model=get_member(get_member(message, "metadata"), "model_slug"),
        ),
    }
    if fields["role"] == "tool" and isinstance(get_member(author, "name"), str):
        fields["speaker"] = get_member(author, "name")
    at = parse_time(get_member(message, "create_time")) or parse_time(get_member(conversation, "create_time"))
    yield ImportedMessage(fields | ({"at": at} if at else {}), f"message {name}", session)


def _said_by_chatgpt(message: JSON) -> tuple[str, str]:
    """Return the words of a message, or why there are none to keep."""
    metadata, content = get_member(message, "metadata"), get_member(message, "content")
    kind = get_member(content, "content_type")
    if get_member(get_member(message, "author"), "role") in _SYSTEM or kind in _UNSAID:
        return "", "it is the system's"
    if get_member(metadata, "is_visually_hidden_from_conversation"):
        return "", "it is hidden in its conversation"
    if kind in _THOUGHT:
        return "", "it was thought and not said"
    if not isinstance(content, Mapping):
        return "", "it has no content"
    parts = content.get("parts")
    texts = [content[name] for name in ("text", "result", "content") if isinstance(content.get(name), str)]
    texts += map(_part_of_chatgpt, parts if isinstance(parts, list) else ())
    text = "\n".join(one for one in texts if one.strip())
    return text, "" if text else "it has no words"


def _part_of_chatgpt(part: JSON) -> str:
    """Return a part that is text; of another the words of its recording, or what it is."""
    if isinstance(part, str):
        return part
    if isinstance(text := get_member(part, "text"), str):
        return text
    kind = get_member(part, "content_type")
    return f"[{kind.removesuffix('_asset_pointer').replace('_', ' ')}]" if isinstance(kind, str) else ""


def _without_none(**given: JSON) -> dict[str, JSON]:
    return {name: value for name, value in given.items() if isinstance(value, str) and value}


# ------------------------------------------------------------------------------------------------------- Claude


def is_claude(value: JSON) -> bool:
    """Return whether conversations have `chat_messages`."""
    return isinstance(get_member(_first(_rows(value, "conversations")) or value, "chat_messages"), list)


def read_claude(value: JSON, notes: ImportNotes) -> Iterator[ImportedMessage]:
    """Yield what was said; the text of attachments follows the message that they came with."""
    for number, conversation in enumerate(_rows(value, "conversations") or [value]):
        messages = get_member(conversation, "chat_messages")
        session = str(get_member(conversation, "uuid") or f"claude-{number}")
        if not isinstance(messages, list):
            notes.skip("it is no conversation: it has no chat_messages", f"conversation {session}")
            continue
        for place, message in enumerate(messages):
            name = get_member(message, "uuid") or f"{session}:{place}"
            where = f"message {name}"
            text, parts = _said_by_claude(message)
            if not text and not parts:
                notes.skip("it has no words", where)
                continue
            fields: dict[str, JSON] = {
                "role": {"human": "user"}.get(str(get_member(message, "sender")), get_member(message, "sender")),
                "content": parts or text,
                "message_id": str(name),
                "metadata": _without_none(conversation=get_member(conversation, "name")),
            }
            at = parse_time(get_member(message, "created_at")) or parse_time(get_member(conversation, "created_at"))
            yield ImportedMessage(fields | ({"at": at} if at else {}), where, session)


def _said_by_claude(message: JSON) -> tuple[str, list[JSON]]:
    """Return the words of a message; as parts when it has more than words."""
    blocks = [one for one in get_member(message, "content") or () if isinstance(one, Mapping)]
    blocks = [one for one in blocks if one.get("type") != "thinking"]  # it was not said
    text = get_member(message, "text")
    words = text if isinstance(text, str) else ""
    words = words or "\n".join(one["text"] for one in blocks if isinstance(one.get("text"), str))
    attached = [
        f"{get_member(one, 'file_name') or 'attachment'}:\n{get_member(one, 'extracted_content')}"
        for one in get_member(message, "attachments") or ()
        if get_member(one, "extracted_content")
    ]
    names = [str(name) for one in get_member(message, "files") or () if (name := get_member(one, "file_name"))]
    attached += [f"[file {name}]" for name in names]
    if any(one.get("type") not in ("text", None) for one in blocks):
        kept = [{name: one[name] for name in one if name in _BLOCK_FIELDS} for one in blocks]
        return words, [*kept, *({"type": "text", "text": one} for one in attached)]
    return "\n\n".join(filter(str.strip, (words, *attached))), []


_BLOCK_FIELDS = ("type", "text", "name", "input", "content", "id", "tool_use_id")


# --------------------------------------------------------------------------------------------------------- mem0


def is_mem0(value: JSON) -> bool:
    """Return whether there are memories: texts under `memory`, each with an id."""
    first = _first(_rows(value, "results", "memories"))
    return isinstance(first.get("memory"), str) and "id" in first


def read_mem0(value: JSON, notes: ImportNotes) -> Iterator[ImportedMessage]:
    """Yield memories, each as one message that is kept for good."""
    for number, one in enumerate(_rows(value, "results", "memories")):
        where = f"memory {get_member(one, 'id') or number}"
        text = get_member(one, "memory")
        if one is None and isinstance(value, JsonLines):
            continue
        if not isinstance(text, str) or not text.strip():
            notes.skip("it has no memory: no text", where)
            continue
        metadata = get_member(one, "metadata")
        fields: dict[str, JSON] = {
            "role": "user",
            "content": text,
            "message_id": str(get_member(one, "id") or digest("mem0", text)),
            "metadata": metadata if isinstance(metadata, Mapping) else {},
        }
        if isinstance(categories := get_member(one, "categories"), list) and categories:
            fields["metadata"] = {"categories": categories, **fields["metadata"]}
        at = parse_time(get_member(one, "created_at"))
        who = {name: _name(get_member(one, f"{name}_id")) for name in ("user", "agent", "run")}
        yield ImportedMessage(
            fields | ({"at": at} if at else {}), where, who["run"], who["user"], who["agent"], lasting=True
        )


def _name(value: object) -> str | None:
    return str(value) if isinstance(value, str | int) and str(value).strip() else None


# ------------------------------------------------------------------------------------------------ message lists


def is_messages(value: JSON) -> bool:
    """Return whether there are messages with a role, or lists of them."""
    rows = _rows(value, "messages") or ([value] if isinstance(value, Mapping) else [])
    first = _first(rows)
    return bool(first) and (_read_any(first) is not None or isinstance(first.get("messages"), list))


def read_message_lists(value: JSON, session: str, notes: ImportNotes) -> Iterator[ImportedMessage]:
    """Yield the messages of one list, or of several: a line or an element with `messages` is a session of its own."""
    rows = _rows(value, "messages") or [value]
    what = "line" if isinstance(value, JsonLines) else "message"
    start = 1 if isinstance(value, JsonLines) else 0
    seen: dict[str, Counter[str]] = {}
    for number, row in enumerate(rows, start=start):
        if row is None and isinstance(value, JsonLines):
            continue
        inner = get_member(row, "messages")
        if isinstance(inner, list):
            name = _name(get_member(row, "session") or get_member(row, "id") or get_member(row, "thread_id"))
            each = [(one, f"{what} {number}, message {place}") for place, one in enumerate(inner)]
            called = name or f"{session} {number}"
        else:
            each, called = [(row, f"{what} {number}")], session
        for one, where in each:
            yield from _listed_message(one, where, called, seen.setdefault(called, Counter()), notes)


def _listed_message(
    row: JSON, where: str, session: str, seen: Counter[str], notes: ImportNotes
) -> Iterator[ImportedMessage]:
    fields = _read_any(row) if isinstance(row, Mapping) else None
    if fields is None:
        notes.skip("it is no message: it has no role and content", where)
        return
    content, calls = fields.get("content"), fields.get("tool_calls")
    if not (content.strip() if isinstance(content, str) else content) and not calls:
        notes.skip("it has no words", where)
        return
    own = next((fields.pop(name) for name in ("message_id", "id") if isinstance(fields.get(name), str)), None)
    if own is None:
        # Known by its words and how often they came before: a longer file of the same chat begins the same.
        key = digest(fields.get("role"), content, calls, str(fields.get("at")))
        own = f"said-{key}-{seen[key]}"
        seen[key] += 1
    named = _name(fields.pop("session", None) or fields.pop("session_id", None))
    yield ImportedMessage({**fields, "message_id": own}, where, named or session)


def _read_any(row: Mapping[str, Any]) -> dict[str, JSON] | None:
    """Return a message of any of these kinds with role and content; None for what is no message."""
    inner, kind = row.get("data"), row.get("type")
    if isinstance(inner, Mapping) and kind in _LANGCHAIN_ROLES:
        return _of_langchain(inner, _LANGCHAIN_ROLES[str(kind)])
    if isinstance(row.get("kwargs"), Mapping) and isinstance(path := row.get("id"), list) and path:
        role = _CLASS_ROLES.get(str(path[-1]))
        return None if role is None else _of_langchain(row["kwargs"], role)
    if kind in _LANGCHAIN_ROLES and "content" in row and "role" not in row:
        return _of_langchain(row, _LANGCHAIN_ROLES[str(kind)])
    if kind in ("function_call", "function_call_output"):
        return _of_responses(row)
    if not isinstance(row.get("role"), str) or not ("content" in row or "tool_calls" in row):
        return None
    fields = {name: value for name, value in row.items() if value is not None and name != "type"}
    parts = fields.get("content")
    results = isinstance(parts, list) and all(get_member(part, "type") == "tool_result" for part in parts)
    if fields["role"] == "user" and parts and results:
        fields["role"] = "tool"  # Anthropic gives the answer of a tool to the user
    return _timed(fields)


def _of_responses(row: Mapping[str, Any]) -> dict[str, JSON]:
    """Return a call of a function, or its answer, as OpenAI lists them beside messages."""
    if row["type"] == "function_call_output":
        return {"role": "tool", "content": row.get("output") or "", "tool_call_id": row.get("call_id")}
    call = {"id": row.get("call_id"), "function": {"name": row.get("name"), "arguments": row.get("arguments")}}
    return {"role": "assistant", "content": "", "tool_calls": [call]}


def _of_langchain(data: Mapping[str, Any], role: str) -> dict[str, JSON]:
    fields = {name: data[name] for name in ("content", "tool_calls", "name", "id", "tool_call_id") if data.get(name)}
    calls = get_member(data.get("additional_kwargs"), "tool_calls")
    if calls and "tool_calls" not in fields:
        fields["tool_calls"] = calls
    if isinstance(fields.get("tool_calls"), list):
        fields["tool_calls"] = [
            {
                "id": get_member(one, "id"),
                "function": {"name": one["name"], "arguments": _written(get_member(one, "args"))},
            }
            if isinstance(get_member(one, "name"), str)
            else one
            for one in fields["tool_calls"]
        ]
    return _timed({"role": role, "content": "", **fields})


def _written(arguments: JSON) -> str:
    return arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)


def _timed(fields: dict[str, JSON]) -> dict[str, JSON]:
    for name in ("at", "created_at", "createdAt", "create_time", "timestamp", "time", "date"):
        if name in fields:
            at = parse_time(fields.pop(name))
            return fields | ({"at": at} if at else {})
    return fields


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


def read_transcript(text: str, session: str, zone: tzinfo | None, notes: ImportNotes) -> Iterator[ImportedMessage]:
    """Yield what each speaker said; a turn goes on until the next speaker."""
    style = _style(text)
    if style is None:
        return
    turns, before = _turns(text, style)
    for number in before:
        notes.skip("it comes before the first speaker", f"line {number}")
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
        yield ImportedMessage(fields, where, session)


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
