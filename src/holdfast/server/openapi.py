"""The OpenAPI document of the server, made of the table of verbs and of the types they return; and a page of it."""

from __future__ import annotations

import inspect
import json
import re
import tomllib
from collections.abc import Iterable, Mapping
from functools import cache, partial
from importlib import resources
from typing import Any, Literal, get_args, get_origin
from urllib.parse import urlencode

from markupsafe import Markup, escape

from holdfast import errors
from holdfast.server.inspector.pages import draw
from holdfast.types import JSON
from holdfast.verbs import (
    BYTES,
    JSON_BODY,
    MEDIA_TYPES_OF_EXPORTS,
    Argument,
    HttpCall,
    Verb,
    encode_argument,
    json_types,
    write_call,
)
from holdfast.wire import NOT_FINITE, schema

_PROBLEM = "application/problem+json"
_EVENTS = "text/event-stream"
# For whoever looks after the server; nothing of anybody's memory.
PLAIN_ROUTES = {
    "/health": ("Whether the server is alive", JSON_BODY),
    "/ready": ("Whether the store is open and the embedder could be loaded", JSON_BODY),
    "/metrics": ("Counts and durations, as Prometheus reads them", "text/plain"),
}


@cache
def _told() -> dict[str, Any]:
    """Return what `api.toml` says of arguments, and its examples."""
    found = tomllib.loads((resources.files("holdfast.server") / "api.toml").read_text(encoding="utf-8"))
    found["answers"] = {name: json.loads(text) for name, text in found["answers"].items()}
    return found


def example(verb: Verb) -> dict[str, JSON]:
    """Return the arguments of a call that shows what a verb does."""
    found: dict[str, JSON] = _told()["examples"][verb.name]
    return found


def _meaning(verb: Verb, name: str) -> str:
    called = verb.name.removesuffix("_session") if verb.name == "compact_session" else verb.name
    of_host = _told()["host"] if called.startswith("host_") else {}
    found = of_host.get(name) or _told()["arguments"][name]
    return str(found if isinstance(found, str) else found.get(called) or found["other"])


def describe(version: str, verbs: Iterable[Verb]) -> dict[str, JSON]:
    """Return the whole document, of these verbs."""
    components: dict[str, JSON] = {
        "Problem": {
            "type": "object",
            "description": "What went wrong (RFC 9457); `error` is the class of the error",
            "properties": {name: {"type": "string"} for name in ("type", "title", "detail", "error", "instance")}
            | {"status": {"type": "integer"}},
            "required": ["type", "title", "status", "detail", "error"],
        }
    }
    paths: dict[str, JSON] = {}
    for path, (summary, media_type) in PLAIN_ROUTES.items():
        answer = {"description": summary, "content": {media_type: {"schema": {}}}}
        paths[path] = {"get": {"summary": summary, "responses": {"200": answer, **_problems()}}}
    for verb in verbs:
        paths.setdefault(verb.path, {})[verb.method.lower()] = _operation(verb, components)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Holdfast", "version": version, "description": "A long-term memory for AI agents."},
        "paths": paths,
        "components": {"schemas": components, "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}}},
        "security": [{}, {"bearer": []}],
    }


def _operation(verb: Verb, components: dict[str, JSON]) -> JSON:
    about, raised = _documentation(verb)
    answer: dict[str, JSON] = {JSON_BODY: {"schema": schema(verb.result, components)}}
    if verb.name in _told()["answers"]:
        answer[JSON_BODY]["example"] = _told()["answers"][verb.name]
    if verb.streams:
        kinds = (one.partition(";")[0] for one in MEDIA_TYPES_OF_EXPORTS.values())
        answer = {kind: {"schema": {"type": "string"}} for kind in kinds}
    if verb.reports is not None:
        answer[_EVENTS] = {"schema": {"type": "string"}}
    made: dict[str, JSON] = {
        "operationId": verb.name,
        "summary": verb.summary,
        "description": about,
        "x-codeSamples": [{"lang": "Shell", "source": _curl(write_call(verb, example(verb)))}],
        "parameters": [_parameter(verb, one) for one in verb.arguments.values() if one.place in ("path", "query")],
        "responses": {"200": {"description": "What the verb returns", "content": answer}, **_problems(raised)},
    }
    if verb.brief:
        choice = {"enum": ["brief", "full"], "default": "brief"}
        made["parameters"].append({"name": "detail", "in": "query", "schema": choice})
    if verb.writes:
        key = {"type": "string", "minLength": 1, "maxLength": 256, "pattern": "^[!-~]+$"}
        made["parameters"].append({"name": "Idempotency-Key", "in": "header", "schema": key})
    for one in made["parameters"]:
        one["description"] = _told()["further"].get(one["name"]) or _meaning(verb, one["name"])
    if verb.raw:
        bodies: dict[str, JSON] = {BYTES: {"type": "string", "format": "binary"}}
        if not verb.binary:
            bodies["text/plain"] = {"type": "string"}
        content = {media_type: {"schema": kind} for media_type, kind in bodies.items()}
        made["requestBody"] = {"required": True, "description": _meaning(verb, verb.raw), "content": content}
    elif verb.method != "GET":
        fields = [one for one in verb.arguments.values() if one.place == "body"]
        body = {
            "type": "object",
            "properties": {one.name: _argument(one) | {"description": _meaning(verb, one.name)} for one in fields},
            "required": [one.name for one in fields if one.needed],
            "additionalProperties": False,
        }
        given = {one.name: encode_argument(example(verb)[one.name]) for one in fields if one.name in example(verb)}
        content = {JSON_BODY: {"schema": body, "example": given}}
        made["requestBody"] = {"required": bool(body["required"]), "content": content}
    return made


def _documentation(verb: Verb) -> tuple[str, dict[str, str]]:
    """Return what a docstring says behind its first sentence, and what is raised, by the name of the error."""
    about, _, raised = (inspect.getdoc(verb.called) or "").partition("Raises:")
    paragraphs = [" ".join(one.split()) for one in about.split("\n\n")[1:] if one.strip()]
    lines = re.findall(r"^ {4}(\w+): (.+(?:\n {5,}.+)*)", raised, re.MULTILINE)
    return "\n\n".join(paragraphs), {name: " ".join(why.split()) for name, why in lines}


def _curl(call: HttpCall) -> str:
    """Return a call as a command line that says it."""
    query = f"?{urlencode(call.query)}" if call.query else ""
    method = "" if call.method == ("POST" if call.body else "GET") else f"-X {call.method} "
    kind = f" -H 'Content-Type: {call.media_type.partition(';')[0]}'" if call.media_type else ""
    body = call.body.decode()
    readable = json.dumps(json.loads(body), ensure_ascii=False) if call.media_type == JSON_BODY else body
    data = f" --data-binary '{readable}'" if body else ""
    return f'curl {method}"$HOLDFAST{call.path}{query}"{kind}{data}'


def _problems(raised: Mapping[str, str] = {}) -> dict[str, JSON]:
    content = {_PROBLEM: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    found = sorted((getattr(errors, name).status, name, told) for name, told in raised.items())
    why = [f"{status} `{name}`: {told}" for status, name, told in found]
    about = {"4XX": "A problem of the call.", "5XX": "A problem of the server."}
    return {
        code: {"description": "\n\n".join((told, *(one for one in why if one[0] == code[0]))), "content": content}
        for code, told in about.items()
    }


def _parameter(verb: Verb, argument: Argument) -> JSON:
    described = _argument(argument)
    kinds = [kind for kind in described["type"] if kind != "null" or "string" not in described["type"]]
    described["type"] = kinds[0] if len(kinds) == 1 else kinds
    made = {"name": argument.name, "in": argument.place, "required": argument.needed or argument.place == "path"}
    if "object" in kinds:
        return made | {"content": {JSON_BODY: {"schema": described}}}
    shown = {"example": example(verb)[argument.name]} if argument.name in example(verb) else {}
    return made | {"schema": described} | shown


def _argument(argument: Argument) -> dict[str, JSON]:
    described: dict[str, JSON] = {"type": [*json_types(argument.kind)]}
    if isinstance(argument.default, str | bool | int):
        described["default"] = argument.default
    kinds = (argument.kind, *get_args(argument.kind))
    choices = [one for kind in kinds if get_origin(kind) is Literal for one in get_args(kind)]
    if choices:
        described["enum"] = choices + [None] * ("null" in described["type"])
    return described


# -------------------------------------------------------------------------------------------------------- the page


def draw_page(document: dict[str, JSON]) -> str:
    """Return a page of every operation and every schema, for people."""
    paths = ((path, methods.items()) for path, methods in document["paths"].items())
    operations = [_shown(path, method, made) for path, methods in paths for method, made in methods]
    schemas = [(name, made, _rows(made)) for name, made in sorted(document["components"]["schemas"].items())]
    values = {"operations": operations, "schemas": schemas, "version": document["info"]["version"]}
    return draw("docs", {**values, "marked": _marked})


def _shown(path: str, method: str, made: dict[str, JSON]) -> dict[str, Any]:
    """Return what the page tells of one operation."""
    rows = [
        {"name": one["name"], "place": one["in"], "type": _type_text(_schema_of(one)), "needed": one.get("required"),
         "about": one.get("description", "")}
        for one in made.get("parameters", ())
    ]  # fmt: skip
    body = made.get("requestBody", {})
    kinds = body.get("content", {})
    fields = kinds.get(JSON_BODY, {}).get("schema", {})
    rows += [{"place": "body", **one} for one in _rows(fields)]
    if kinds and not fields:
        types = Markup(" or ").join(dict.fromkeys(_type_text(one["schema"]) for one in kinds.values()))
        told = {"name": "body", "place": "body", "type": types, "needed": True}
        rows.append({**told, "about": body.get("description", "")})
    answer = made["responses"]["200"]
    failing = (made["responses"][code]["description"] for code in ("4XX", "5XX"))
    problems = [told for one in failing for told in one.split("\n\n")[1:]]
    content = answer["content"].get(JSON_BODY, {})
    return {
        "method": method.upper(), "path": path, "name": made.get("operationId", path.strip("/")), "made": made,
        "rows": sorted(rows, key=lambda one: not one["needed"]), "answer": answer, "kinds": [*answer["content"]],
        "type": _type_text(content["schema"]) if content.get("schema") else "", "problems": problems,
        "example": json.dumps(content["example"], indent=2, ensure_ascii=False) if "example" in content else "",
        "call": [one["source"] for one in made.get("x-codeSamples", ())],
    }  # fmt: skip


def _schema_of(parameter: dict[str, JSON]) -> dict[str, JSON]:
    found: dict[str, JSON] = parameter.get("schema") or parameter["content"][JSON_BODY]["schema"]
    return found


def _rows(made: dict[str, JSON]) -> list[dict[str, Any]]:
    """Return the members of an object, each with its type in words."""
    needed = made.get("required", ())
    return [
        {"name": name, "type": _type_text(one), "needed": name in needed, "about": one.get("description", "")}
        for name, one in made.get("properties", {}).items()
    ]


def _type_text(made: dict[str, JSON]) -> Markup:
    """Return a type in words: "string or null", "list of Hit"."""
    if "$ref" in made:
        name = made["$ref"].rsplit("/", 1)[1]
        return Markup('<a href="#{0}">{0}</a>').format(name)
    if "enum" in made:
        return Markup(" or ").join(Markup("<code>{}</code>").format(json.dumps(one)) for one in made["enum"])
    if "anyOf" in made:
        return Markup(" or ").join(_type_text(one) for one in made["anyOf"] if one != {"enum": NOT_FINITE})
    kinds = made.get("type", "anything")
    return Markup(" or ").join(map(partial(_kind_text, made), [kinds] if isinstance(kinds, str) else kinds))


def _kind_text(made: dict[str, JSON], kind: str) -> Markup:
    if kind == "array" and "prefixItems" in made:
        return Markup("list of ") + Markup(", ").join(map(_type_text, made["prefixItems"]))
    if kind == "array":
        return Markup("list of ") + _type_text(made["items"]) if made.get("items") else Markup("list")
    if kind == "object" and isinstance(made.get("additionalProperties"), dict):
        return Markup("object of ") + _type_text(made["additionalProperties"])
    return escape({"date-time": "time", "binary": "bytes"}.get(made.get("format", ""), kind))


def _marked(text: str) -> Markup:
    """Return words of ours with what stands in backticks as code."""
    return Markup(re.sub("`([^`]*)`", r"<code>\1</code>", str(escape(text))))  # noqa: S704 - escaped before
