"""The OpenAPI document of the server, made of the table of verbs and of the types they return; and a page of it."""

from __future__ import annotations

import html
import json
from collections.abc import Iterable
from typing import Literal, get_args, get_origin

from holdfast.types import JSON
from holdfast.verbs import BYTES, JSON_BODY, MEDIA_TYPES_OF_EXPORTS, Argument, Verb, json_types
from holdfast.wire import schema

_PROBLEM = "application/problem+json"
_EVENTS = "text/event-stream"
# For whoever looks after the server; nothing of anybody's memory.
PLAIN_ROUTES = {
    "/health": ("Whether the server is alive", JSON_BODY),
    "/ready": ("Whether the store is open and the embedder could be loaded", JSON_BODY),
    "/metrics": ("Counts and durations, as Prometheus reads them", "text/plain"),
}
_PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><title>Holdfast</title>
<meta name="viewport" content="width=device-width"><style>
body{font:16px/1.5 system-ui;max-width:60rem;margin:2rem auto;padding:0 1rem;color-scheme:light dark}
code{font-family:ui-monospace,monospace}td{padding:.1rem 1rem .1rem 0;vertical-align:top}h2{margin-top:2rem}
</style><h1>Holdfast</h1><p>Every route, from <a href="/openapi.json">openapi.json</a>.</p>"""


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
    answer: dict[str, JSON] = {JSON_BODY: {"schema": schema(verb.result, components)}}
    if verb.streams:
        kinds = (one.partition(";")[0] for one in MEDIA_TYPES_OF_EXPORTS.values())
        answer = {kind: {"schema": {"type": "string"}} for kind in kinds}
    if verb.reports is not None:
        answer[_EVENTS] = {"schema": {"type": "string"}}
    made: dict[str, JSON] = {
        "operationId": verb.name,
        "summary": verb.summary,
        "parameters": [_parameter(one) for one in verb.arguments.values() if one.place in ("path", "query")],
        "responses": {"200": {"description": "What the verb returns", "content": answer}, **_problems()},
    }
    if verb.brief:
        choice = {"enum": ["brief", "full"], "default": "brief"}
        made["parameters"].append({"name": "detail", "in": "query", "schema": choice})
    if verb.writes:
        key = {"type": "string", "minLength": 1, "maxLength": 256, "pattern": "^[!-~]+$"}
        made["parameters"].append({"name": "Idempotency-Key", "in": "header", "schema": key})
    if verb.raw:
        bodies: dict[str, JSON] = {BYTES: {"type": "string", "format": "binary"}}
        if not verb.binary:
            bodies["text/plain"] = {"type": "string"}
        content = {media_type: {"schema": kind} for media_type, kind in bodies.items()}
        made["requestBody"] = {"required": True, "content": content}
    elif verb.method != "GET":
        fields = [one for one in verb.arguments.values() if one.place == "body"]
        body = {
            "type": "object",
            "properties": {one.name: _argument(one) for one in fields},
            "required": [one.name for one in fields if one.needed],
            "additionalProperties": False,
        }
        made["requestBody"] = {"required": bool(body["required"]), "content": {JSON_BODY: {"schema": body}}}
    return made


def _problems() -> dict[str, JSON]:
    content = {_PROBLEM: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    return {code: {"description": "A problem", "content": content} for code in ("4XX", "5XX")}


def _parameter(argument: Argument) -> JSON:
    described = _argument(argument)
    kinds = [kind for kind in described["type"] if kind != "null" or "string" not in described["type"]]
    described["type"] = kinds[0] if len(kinds) == 1 else kinds
    made = {"name": argument.name, "in": argument.place, "required": argument.needed or argument.place == "path"}
    if "object" in kinds:
        return made | {"content": {JSON_BODY: {"schema": described}}}
    return made | {"schema": described}


def _argument(argument: Argument) -> dict[str, JSON]:
    described: dict[str, JSON] = {"type": [*json_types(argument.kind)]}
    if isinstance(argument.default, str | bool | int):
        described["default"] = argument.default
    kinds = (argument.kind, *get_args(argument.kind))
    choices = [one for kind in kinds if get_origin(kind) is Literal for one in get_args(kind)]
    if choices:
        described["enum"] = choices + [None] * ("null" in described["type"])
    return described


def draw_page(document: dict[str, JSON]) -> str:
    """Return a page that needs nothing but itself."""
    parts = [_PAGE]
    for path, methods in document["paths"].items():
        for method, made in methods.items():
            body = made.get("requestBody", {}).get("content", {}).get(JSON_BODY, {}).get("schema", {})
            given = made.get("parameters", ())
            rows = [(one["name"], one["in"], one.get("schema", {}).get("type", "object")) for one in given]
            rows += [(name, "body", one["type"]) for name, one in body.get("properties", {}).items()]
            cells = "".join(
                f"<tr><td><code>{html.escape(name)}</code><td>{where}<td>{html.escape(json.dumps(kind))}"
                for name, where, kind in rows
            )
            title = f"<h2><code>{method.upper()} {html.escape(path)}</code></h2>"
            parts.append(f"{title}<p>{html.escape(made['summary'])}<table>{cells}</table>")
    return "\n".join(parts)
