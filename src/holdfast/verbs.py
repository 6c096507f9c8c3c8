"""The one table of what an interface offers: each verb of `Memory` with its command, its route and its tool.

Routes, the OpenAPI document, the methods of a remote client and the table of the reference are made of it.
"""

from __future__ import annotations

import inspect
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from datetime import datetime, timedelta
from functools import cached_property
from pathlib import Path
from types import NoneType
from typing import Any, Literal, NamedTuple, get_args, get_origin, get_type_hints
from urllib.parse import quote

from holdfast.errors import InputError, quote_value
from holdfast.memory import Memory
from holdfast.messages.checks import check_name
from holdfast.messages.content import plain_message, unit_fields
from holdfast.types import JSON, Unit
from holdfast.values import dataclass
from holdfast.wire import AnnotationForm

HttpMethod = Literal["GET", "POST", "PATCH"]
TEXT, BYTES, JSON_BODY = "text/plain; charset=utf-8", "application/octet-stream", "application/json"
MEDIA_TYPES_OF_EXPORTS = {"jsonl": "application/x-ndjson", "markdown": "text/markdown; charset=utf-8"}
# The header that tells what an export holds: what the verb returns.
EXPORTED = "Holdfast-Exported"
# Work that streams its progress: what the numbers or words of one report are called.
Reports = tuple[str, ...]


class Argument(NamedTuple):
    """One argument of a verb that travels: its type, its default (`inspect.Parameter.empty` when it is needed)."""

    name: str
    kind: AnnotationForm
    default: object
    place: Literal["path", "query", "body", "raw"]

    @property
    def needed(self) -> bool:
        """Return whether a call without it is refused."""
        return self.default is inspect.Parameter.empty


@dataclass(frozen=True)
class Verb:
    """How one verb of `Memory` is reached.

    `raw` names the argument that is the body itself, as bytes. `kept` are arguments that do not travel: functions.
    `reports` when it may take long: what its progress tells. `brief` when the answer leaves something out unless the
    caller asks for `detail=full`. `binary` when `raw` is never text: a str would be a path. `streams` when the
    answer is what the verb writes to its `target`. `everyones` names the argument that looks at all tenants' units,
    "*" when the verb always does: no token reaches that far. `function` is what is called with a memory when it is
    no verb of its own.
    """

    name: str
    method: HttpMethod
    path: str
    command: str
    tool: str = ""
    writes: bool = False
    raw: str = ""
    kept: tuple[str, ...] = ()
    reports: Reports | None = None
    brief: bool = False
    binary: bool = False
    streams: bool = False
    everyones: str = ""
    function: Callable[..., Any] | None = None

    @property
    def called(self) -> Callable[..., Any]:
        """Return what answers, given a memory and the arguments."""
        return self.function or getattr(Memory, self.name)

    @cached_property
    def arguments(self) -> dict[str, Argument]:
        """Return the arguments that travel, in the order of the signature."""
        _, *parameters = inspect.signature(self.called).parameters.values()
        kinds = _kinds_of(self.called)
        others: Literal["query", "body"] = "query" if self.method == "GET" or self.raw else "body"
        places = {self.raw: "raw", **dict.fromkeys(self._in_path, "path")}
        return {
            one.name: Argument(one.name, kinds[one.name], one.default, places.get(one.name, others))  # type: ignore[arg-type]
            for one in parameters
            if one.name not in self.kept
        }

    @cached_property
    def positional(self) -> tuple[str, ...]:
        """Return the arguments that may be given without their names."""
        _, *parameters = inspect.signature(self.called).parameters.values()
        return tuple(one.name for one in parameters if one.kind is one.POSITIONAL_OR_KEYWORD)

    @cached_property
    def result(self) -> AnnotationForm:
        """Return the type of what the verb returns."""
        return get_type_hints(self.called)["return"]

    @property
    def summary(self) -> str:
        """Return the first sentence of the verb's documentation."""
        return (inspect.getdoc(self.called) or "").split("\n")[0]

    @property
    def _in_path(self) -> list[str]:
        return [part[1:-1] for part in self.path.split("/") if part.startswith("{")]


def _kinds_of(called: Callable[..., Any]) -> dict[str, AnnotationForm]:
    """Return the type of every argument, those of `**options: Unpack[…]` included."""
    kinds: dict[str, AnnotationForm] = {}
    for argument, kind in get_type_hints(called).items():
        inner = get_args(kind)
        spelled = inner and isinstance(inner[0], type) and hasattr(inner[0], "__required_keys__")
        kinds |= get_type_hints(inner[0]) if spelled else {argument: kind}
    return kinds


VERBS: dict[str, Verb] = {
    verb.name: verb
    for verb in (
        Verb("remember", "POST", "/v1/units", "remember", "remember", writes=True),
        Verb("update", "PATCH", "/v1/units/{id}", "update", "update_memory", writes=True),
        Verb(
            "ingest", "POST", "/v1/documents", "ingest", writes=True, raw="source", kept=("progress",),
            reports=("done", "of"),
        ),
        Verb("widen", "GET", "/v1/units/{id}/section", "widen"),
        Verb(
            "reembed", "POST", "/v1/reembed", "reembed", writes=True, kept=("progress",), reports=("written",),
            everyones="*",
        ),
        Verb("search", "POST", "/v1/search", "search", "search_memory", brief=True),
        Verb("assemble", "POST", "/v1/context", "assemble", "get_context", kept=("counter",), brief=True),
        Verb("why", "POST", "/v1/why", "why", "why_recalled"),
        Verb("get", "GET", "/v1/units/{id}", "show"),
        Verb("list", "GET", "/v1/units", "list", "list_memories"),
        Verb("facts", "GET", "/v1/facts", "facts", "known_facts"),
        Verb(
            "about", "GET", "/v1/about", "about", "about_user", kept=("progress",), reports=("done", "of"),
        ),
        Verb("history", "GET", "/v1/units/{id}/history", "history"),
        Verb("stats", "GET", "/v1/stats", "stats", "memory_status", everyones="whole"),
        Verb("users", "GET", "/v1/users", "users"),
        Verb("sessions", "GET", "/v1/sessions", "sessions"),
        Verb("documents", "GET", "/v1/documents", "documents"),
        Verb("agents", "GET", "/v1/agents", "agents"),
        Verb("compact", "POST", "/v1/compact", "compact", writes=True, kept=("progress",), reports=("done", "of")),
        Verb("expand", "GET", "/v1/summaries/{id}/expand", "expand"),
        Verb("supersede", "POST", "/v1/units/{id}/supersede", "supersede", writes=True),
        Verb("reinstate", "POST", "/v1/units/{id}/reinstate", "reinstate", writes=True),
        Verb("decisions", "GET", "/v1/units/{id}/decisions", "decisions"),
        Verb("overrule", "POST", "/v1/units/{id}/overrule", "overrule", writes=True),
        Verb(
            "forget", "POST", "/v1/forget", "forget", "forget_memory", writes=True, kept=("progress",),
            reports=("step",), brief=True,
        ),
        Verb("export", "GET", "/v1/export", "export", kept=("target",), streams=True),
        Verb(
            "import_", "POST", "/v1/import", "import", writes=True, raw="source", binary=True, kept=("progress",),
            reports=("done", "of"),
        ),
    )
}  # fmt: skip

# A session's own address for what `compact` does with its `session`.
COMPACT_SESSION = replace(
    VERBS["compact"], name="compact_session", path="/v1/sessions/{session}/compact", function=Memory.compact
)

# File paths are never sent: what a server could be asked to read or write is not for its callers to name.
LOCAL = {
    "open": "takes the path of the store; a client opens the address of a server instead",
    "close": "ends the server's own memory; a client closes its connections",
    "settings": "are the server's; they say where files are stored",
    "store": "is the server's own",
    "load": "loads the server's embedder when it starts; `/ready` says whether it could",
    "ingest_folder": "reads a folder by its path; a client sends its documents one by one",
    "backup": "writes a file by its path; run it next to the server, on the store in use",
}


# -------------------------------------------------------------------------------------------- calls as requests


@dataclass(frozen=True, slots=True)
class HttpCall:
    """One call of a verb on its way to a server."""

    method: HttpMethod
    path: str
    query: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    media_type: str = ""


def write_call(verb: Verb, arguments: Mapping[str, object]) -> HttpCall:
    """Return the request that calls `verb`; arguments at their default may be left out.

    Raises:
        InputError: an argument cannot travel.
    """
    path, query, fields = verb.path, {}, {}
    body, media_type = b"", ""
    for name, value in arguments.items():
        if name in verb.kept:
            raise InputError(f"{name} cannot be sent to a server; leave it out")
        place = verb.arguments[name].place
        if place == "raw":
            body, media_type = _write_raw(name, value)
        elif place == "path":
            path = path.replace(f"{{{name}}}", _write_segment(name, value))
        elif place == "body":
            fields[name] = encode_argument(value)
        elif value is not None or not _takes_text(verb.arguments[name].kind):  # a text that is None is left out
            sent = encode_argument(value)
            query[name] = sent if isinstance(sent, str) else json.dumps(sent)
    if verb.method != "GET" and not verb.raw:
        body, media_type = json.dumps(fields).encode("ascii"), JSON_BODY
    return HttpCall(verb.method, path, query, body, media_type)


def _write_raw(name: str, value: object) -> tuple[bytes, str]:
    if isinstance(value, bytes):
        return value, BYTES
    if isinstance(value, Path):
        raise InputError(f"{name} = {quote_value(str(value))} is a path, which a server cannot read; send its bytes")
    if not isinstance(value, str):
        raise InputError(f"{name} = {quote_value(value)} is not text; give a str, or bytes")
    return value.encode("utf-8", "surrogatepass"), TEXT


def _write_segment(name: str, value: object) -> str:
    text = check_name(name, value) or ""
    # A segment of dots alone would be taken for a step up.
    return quote(text, safe="") if text.strip(".") else text.replace(".", "%2E")


def read_query(verb: Verb, given: Mapping[str, str]) -> dict[str, JSON]:
    """Return the arguments that a query string has: texts as they are, everything else as JSON.

    Raises:
        InputError: an argument is not known, or not what it should be.
    """
    found: dict[str, JSON] = {}
    for name, text in given.items():
        argument = known_argument(verb, name, "query")
        if _takes_text(argument.kind):
            found[name] = text
        else:
            try:
                found[name] = json.loads(text)
            except (ValueError, RecursionError) as error:
                raise InputError(
                    f"{name} = {quote_value(text)} is not JSON, as {_example(argument.kind)} is"
                ) from error
    return found


def known_argument(verb: Verb, name: str, place: str) -> Argument:
    """Return an argument by its name.

    Raises:
        InputError: the verb takes none of that name, or not there.
    """
    argument = verb.arguments.get(name)
    if argument is None or argument.place != place:
        names = ", ".join(one.name for one in verb.arguments.values() if one.place == place) or "nothing"
        raise InputError(f"{verb.name} takes no {quote_value(name)} in its {place}; it takes {names}")
    return argument


def check_argument(argument: Argument, value: JSON) -> None:
    """Refuse a value of a JSON type that the argument never has; what it means is for the verb to judge.

    Raises:
        InputError: it is of another type.
    """
    kinds = json_types(argument.kind)
    if kinds and not any(_is_of(value, kind) for kind in kinds):
        raise InputError(f"{argument.name} = {quote_value(value)} is not {' or '.join(kinds)}; give one")


def _is_of(value: JSON, kind: str) -> bool:
    if isinstance(value, bool) or kind == "boolean":
        return kind == "boolean" and isinstance(value, bool)
    python: dict[str, Any] = {
        "string": str, "integer": int, "number": int | float, "null": NoneType, "object": dict, "array": list
    }  # fmt: skip
    return isinstance(value, python[kind])


def json_types(kind: AnnotationForm) -> tuple[str, ...]:
    """Return the JSON types that an argument of this type may have; nothing when it may have any."""
    origin: AnnotationForm = get_origin(kind)
    inner = get_args(kind)
    if kind is Any:
        return ()
    if origin is Literal:
        return tuple(dict.fromkeys(one for value in inner for one in json_types(type(value))))
    if inner and origin not in (Mapping, Sequence):
        return tuple(dict.fromkeys(one for part in inner for one in json_types(part)))
    plain: dict[AnnotationForm, str] = {
        str: "string", bool: "boolean", int: "integer", float: "number", NoneType: "null", datetime: "string",
        timedelta: "number",
    }  # fmt: skip
    return (plain.get(kind) or ("array" if origin is Sequence else "object"),)


def _takes_text(kind: AnnotationForm) -> bool:
    return "string" in json_types(kind)


def _example(kind: AnnotationForm) -> str:
    return {"boolean": "true", "integer": "10", "number": "1.5", "object": '{"city": "Lisbon"}'}[json_types(kind)[0]]


# ------------------------------------------------------------------------------------------------ arguments


def encode_argument(value: object) -> JSON:
    """Return what a caller gives to a verb as JSON that the verb takes for the same.

    Raises:
        InputError: it cannot travel, such as a function, or a number that is none.
    """
    value = unit_fields(value) if isinstance(value, Unit) else plain_message(value)
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, Mapping):
        return {name: encode_argument(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [encode_argument(one) for one in value]
    if value is None or isinstance(value, str | int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    raise InputError(f"{quote_value(value)} cannot be sent to a server; give text, numbers, lists and dicts")
