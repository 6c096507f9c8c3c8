"""Filters on metadata and fields: read, evaluated (the oracle), and compiled to SQLite's SQL.

    {"city": "Lisbon"}                              the same as {"city": {"eq": "Lisbon"}}
    {"stars": {"gte": 4, "lt": 6}}                  all of them
    {"and": […]}  {"or": […]}  {"not": {…}}
    {"author": "user", "metadata.author": "Ana"}    a unit field by its name; `metadata.` for what it hides

A missing value equals null and nothing else. Order compares numbers with numbers and text with text; anything
else is false. `contains` looks for a piece of a text, or for a member of a list.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from datetime import date, datetime, tzinfo
from typing import Any, Literal, get_args

from holdfast.errors import FilterError, InputError, quote_value
from holdfast.text.calendar import read_time
from holdfast.types import JSON, Condition, Filter, Junction, Unit, iso

Ops = Literal["eq", "ne", "in", "gt", "gte", "lt", "lte", "contains"]
OPERATORS: tuple[Ops, ...] = get_args(Ops)
JUNCTIONS = ("and", "or", "not")
_TIMES = frozenset({"event_time", "recorded_time", "valid_from", "valid_to", "expires_at"})
# Field → what a unit has when its JSON body leaves the field out.
FIELD_DEFAULTS: dict[str, JSON] = {
    "id": None,
    "text": None,
    "kind": "turn",
    "scope": None,
    "session": None,
    "agent": None,
    "role": "Narrative",
    "topic": "",
    "author": "user",
    "speaker": "",
    "origin": "conversation",
    "message_id": None,
    "bundle_id": None,
    "position": 0,
    "event_time": None,
    "recorded_time": None,
    "valid_from": None,
    "valid_to": None,
    "expires_at": None,
    "pinned": False,
    "authority": 0.0,
    "version": 1,
}
# SQLite limits expressions to a depth of 1,000, and a chain of conditions is as deep as it is long.
_MAX_DEPTH = 16
_MAX_CONDITIONS = 256
_INT64 = 2**63


# ----------------------------------------------------------------------------------------------- reading


def parse_filter(given: object, zone: tzinfo | None = None) -> Filter | None:
    """Return a checked filter, or None when nothing was given; `zone` is that of dates and of times with none.

    Raises:
        FilterError: the filter is not understood; the message names the part.
    """
    if given is None:
        return None
    parsed = _parse(given, 0, zone)
    if (size := _size(parsed)) > _MAX_CONDITIONS:
        raise FilterError(f"the filter has {size} conditions, more than {_MAX_CONDITIONS}; use `in` for many values")
    return parsed


def _size(condition: Filter) -> int:
    return 1 if isinstance(condition, Condition) else sum(map(_size, condition.parts))


def _parse(given: object, depth: int, zone: tzinfo | None) -> Filter:
    if depth > _MAX_DEPTH:
        raise FilterError(f"the filter is nested more than {_MAX_DEPTH} deep; flatten it")
    if not isinstance(given, Mapping) or not given:
        raise FilterError(f'{quote_value(given)} is not a filter; write one as {{"city": "Lisbon"}}')
    parts = [part for name, value in given.items() for part in _parse_entry(name, value, depth, zone)]
    return parts[0] if len(parts) == 1 else Junction("and", tuple(parts))


def _parse_entry(name: object, value: object, depth: int, zone: tzinfo | None) -> list[Filter]:
    if not isinstance(name, str) or not name:
        raise FilterError(f"{quote_value(name)} cannot name a field; use text")
    if name in JUNCTIONS:
        return [_parse_junction(name, value, depth, zone)]
    on, path = _target(name)
    tests = value if isinstance(value, Mapping) else {"eq": value}
    if not tests:
        raise FilterError(f"the filter on {quote_value(name)} is empty; give it a value")
    return [Condition(on, path, *_test(name, op, operand, zone)) for op, operand in tests.items()]


def _parse_junction(op: str, value: object, depth: int, zone: tzinfo | None) -> Junction:
    if op == "not":
        return Junction("not", (_parse(value, depth + 1, zone),))
    if not isinstance(value, list | tuple) or not value:
        raise FilterError(f'"{op}" takes a list of filters, not {quote_value(value)}')
    return Junction("and" if op == "and" else "or", tuple(_parse(part, depth + 1, zone) for part in value))


def _target(name: str) -> tuple[Literal["metadata", "field"], tuple[str, ...]]:
    if name in FIELD_DEFAULTS:
        return "field", (name,)
    path = tuple(name.removeprefix("metadata.").split("."))
    # SQLite compares the key as JSON writes it, and JSON escapes these.
    if not all(path) or any(character in '"\\' or character < " " for character in name) or not _encodable(name):
        raise FilterError(
            f"{quote_value(name)} is not a path; join metadata keys with dots, without quotes or control characters"
        )
    return "metadata", path


def _test(name: str, op: object, operand: object, zone: tzinfo | None) -> tuple[Ops, JSON]:
    known = next((known for known in OPERATORS if known == op), None)
    if known is None:
        raise FilterError(
            f"{quote_value(op)} on {quote_value(name)} is not an operator; use one of {', '.join(OPERATORS)}"
        )
    if known == "in":
        if not isinstance(operand, list | tuple):
            raise FilterError(f'"in" on {quote_value(name)} takes a list, not {quote_value(operand)}')
        return known, [_scalar(name, item, zone) for item in operand]
    value = _scalar(name, operand, zone)
    if known in ("gt", "gte", "lt", "lte") and (value is None or isinstance(value, bool)):
        raise FilterError(f'"{known}" on {quote_value(name)} compares numbers or text, not {quote_value(operand)}')
    return known, value


def _encodable(text: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in text)


def _scalar(name: str, value: object, zone: tzinfo | None) -> JSON:
    if isinstance(value, str) and not _encodable(value):
        raise FilterError(
            f"{quote_value(value)} on {quote_value(name)} holds a lone surrogate; decode the source as UTF-8"
        )
    if isinstance(value, date) or (isinstance(value, str) and name in _TIMES):
        return _time_text(name, value, zone)
    whole = isinstance(value, int) and -_INT64 <= value < _INT64
    real = isinstance(value, float) and math.isfinite(value)
    if value is None or isinstance(value, str | bool) or whole or real:
        return value
    raise FilterError(
        f"{quote_value(value)} on {quote_value(name)} cannot be compared; use text, a number, true, false or null"
    )


def _time_text(name: str, value: object, zone: tzinfo | None) -> str:
    try:
        return iso(read_time(name, value, zone))
    except InputError as error:
        raise FilterError(str(error)) from error


# -------------------------------------------------------------------------------------------- evaluating

_MISSING = object()


def matches(condition: Filter, unit: Unit) -> bool:
    """Return whether `unit` passes: the slow obvious version that every back end must equal."""
    if isinstance(condition, Junction):
        results = [matches(part, unit) for part in condition.parts]
        return {"and": all(results), "or": any(results), "not": not results[0]}[condition.op]
    value = _value(condition, unit)
    if condition.op == "ne":
        return not _equal(value, condition.value)
    if condition.op == "in":
        return any(_equal(value, item) for item in condition.value)
    if condition.op == "contains":
        return _contains(value, condition.value)
    return _equal(value, condition.value) if condition.op == "eq" else _ordered(condition.op, value, condition.value)


def _value(condition: Condition, unit: Unit) -> object:
    if condition.on == "field":
        value = getattr(unit, condition.path[0])
        return iso(value) if isinstance(value, datetime) else value
    found: object = unit.metadata
    for name in condition.path:
        found = found.get(name, _MISSING) if isinstance(found, Mapping) else _MISSING
    return found


def _kind(value: object) -> str:
    if value is None or value is _MISSING:
        return "null"
    if isinstance(value, bool):
        return "bool"
    return "number" if isinstance(value, int | float) else type(value).__name__


def _equal(value: object, wanted: object) -> bool:
    same = _kind(value) == _kind(wanted)
    return same and (_kind(value) == "null" or value == wanted)


def _ordered(op: str, value: Any, wanted: Any) -> bool:  # noqa: ANN401 - kinds are compared first
    if _kind(value) != _kind(wanted) or _kind(value) not in ("number", "str"):
        return False
    return bool({"gt": value > wanted, "gte": value >= wanted, "lt": value < wanted, "lte": value <= wanted}[op])


def _contains(value: object, wanted: object) -> bool:
    if isinstance(value, str):
        return isinstance(wanted, str) and wanted in value
    return isinstance(value, list) and any(_equal(item, wanted) for item in value)


# --------------------------------------------------------------------------------------------- compiling

_SQL_ORDER = {"gt": ">", "gte": ">=", "lt": "<", "lte": "<="}


class SqliteFilter:
    """Compiles filters to SQL over `units.body`. Values are bound, never written into the text."""

    def __init__(self) -> None:
        self.values: dict[str, JSON] = {}

    def compile(self, condition: Filter) -> str:
        """Return an SQL expression that is true, false, and never null."""
        if isinstance(condition, Junction):
            parts = [self.compile(part) for part in condition.parts]
            return f"NOT {parts[0]}" if condition.op == "not" else f"({f' {condition.op.upper()} '.join(parts)})"
        path, value, kind = self._target(condition)
        wanted = condition.value
        if condition.op == "ne":
            return f"NOT {self._equal(value, kind, wanted)}"
        if condition.op == "in":
            return self._among(value, kind, wanted)
        if condition.op == "contains":
            return self._contains(path, value, kind, wanted)
        if condition.op == "eq":
            return self._equal(value, kind, wanted)
        return f"({kind} IN {_sql_kinds(wanted)} AND {value} {_SQL_ORDER[condition.op]} {self._bind(wanted)})"

    def _bind(self, value: JSON) -> str:
        name = f"filter_{len(self.values)}"
        self.values[name] = value
        return f":{name}"

    def _target(self, condition: Condition) -> tuple[str, str, str]:
        """Return expressions for the path, the value and its JSON type."""
        if condition.on == "metadata":
            path = self._bind("$.metadata" + "".join(f'."{name}"' for name in condition.path))
            return path, f"json_extract(body, {path})", f"coalesce(json_type(body, {path}), 'null')"
        default = FIELD_DEFAULTS[condition.path[0]]
        path = self._bind(f"$.{condition.path[0]}")
        kind = {bool: "false", int: "integer", float: "real", str: "text", type(None): "null"}[type(default)]
        value = f"coalesce(json_extract(body, {path}), {self._bind(default)})"
        return path, value, f"coalesce(json_type(body, {path}), '{kind}')"

    def _equal(self, value: str, kind: str, wanted: JSON) -> str:
        test = f"{kind} IN {_sql_kinds(wanted)}"
        if wanted is not None and not isinstance(wanted, bool):
            test += f" AND {value} = {self._bind(wanted)}"
        return f"({test})"

    def _among(self, value: str, kind: str, wanted: list[JSON]) -> str:
        """Compare with a list of any length in one lookup per kind."""
        tests = [self._equal(value, kind, item) for item in (None, True, False) if any(item is one for one in wanted)]
        for name in ("number", "str"):
            if same := [item for item in wanted if _kind(item) == name]:
                listed = f"SELECT value FROM json_each({self._bind(json.dumps(same))})"  # noqa: S608 - bound
                tests.append(f"({kind} IN {_sql_kinds(same[0])} AND {value} IN ({listed}))")
        return f"({' OR '.join(tests) or '0'})"

    def _contains(self, path: str, value: str, kind: str, wanted: JSON) -> str:
        member = self._equal("item.value", "item.type", wanted)
        found = f"EXISTS (SELECT 1 FROM json_each(body, {path}) AS item WHERE {member})"  # noqa: S608 - bound names only
        listed = f"{kind} = 'array' AND {found}"
        if not isinstance(wanted, str):
            return f"({listed})"
        return f"(({kind} = 'text' AND instr({value}, {self._bind(wanted)}) > 0) OR ({listed}))"


def _sql_kinds(value: JSON) -> str:
    if isinstance(value, bool):
        return "('true')" if value else "('false')"
    return {"null": "('null')", "number": "('integer', 'real')", "str": "('text')"}[_kind(value)]
