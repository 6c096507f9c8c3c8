"""A view as SQL over the columns of `units`, and filters with it.

`visibility.visible_sql` and `filters.matches` are the model.

Text compares by bytes, as in Python and SQLite, and numbers as decimals of any size. No stored text holds NUL: what
is taken in is checked for it (`messages/checks`).
"""

from __future__ import annotations

import json
from typing import Any

from holdfast.store.filters import FIELD_DEFAULTS
from holdfast.store.rows import GLOBAL
from holdfast.types import JSON, Condition, Filter, Junction, View, iso
from holdfast.values import dataclass

_OWNED = "units.tenant = %(tenant)s"
_NOT_SUPERSEDED_THEN = """(units.superseded_by IS NULL OR units.superseded_at > %(as_of)s)
    AND NOT EXISTS (SELECT 1 FROM absences WHERE absences.tenant = %(tenant)s
        AND absences.unit_key = units.key AND absences.since <= %(as_of)s AND absences.until > %(as_of)s)"""


@dataclass(frozen=True, slots=True)
class VisibleRows:
    """Which rows of `units` a view may see: the user's own, everyone's, or `either`."""

    own: str
    everyones: str
    either: str
    values: dict[str, Any]


def compile_view(view: View, *, searching: bool = True) -> VisibleRows:
    """Compile a view; a covered turn is hidden from searches alone, and only where the view says so."""
    values: dict[str, Any] = {"user": view.user, "now": iso(view.as_of or view.now)}
    clauses = [_OWNED, "units.expires_at > %(now)s"]
    agent = ""
    if view.agent is not None:
        values["agent"] = view.agent
        agent = " AND {}.agent IN (%(agent)s, '')"
        clauses.append(agent.format("units").removeprefix(" AND "))
    if view.only_session:
        values["session"] = view.session
        clauses.append("units.session = %(session)s")
    if view.as_of is not None:
        # What was rewritten since is answered from its earlier version, not from here.
        values["as_of"] = iso(view.as_of)
        clauses.append("units.recorded_time <= %(as_of)s")
    if view.current_only:
        values["reference"] = iso(view.reference_time)
        clauses.append("units.superseded_by IS NULL" if view.as_of is None else _NOT_SUPERSEDED_THEN)
        clauses.append("units.valid_from <= %(reference)s AND units.valid_to > %(reference)s")
    if searching and view.hide_covered:
        covered = "units.covered_by IS NULL"
        clauses.append(covered if view.as_of is None else f"({covered} OR units.covered_at > %(as_of)s)")
    if view.filters is not None:
        compiled = PostgresFilter()
        clauses.append(compiled.compile(view.filters))
        values |= compiled.values
    shared = " AND ".join(clauses)
    own = f'units."user" = %(user)s AND {shared}'
    if view.user == GLOBAL:
        return VisibleRows(own, "false", own, values)
    # A user's own unit hides a global one of the same id.
    hidden = f"""EXISTS (SELECT 1 FROM units AS own WHERE own.tenant = %(tenant)s
        AND own."user" = %(user)s AND own.id = units.id{agent.format("own")})"""  # noqa: S608 - bound names only
    return VisibleRows(
        own,
        f"""units."user" = '' AND NOT {hidden} AND {shared}""",
        f"""units."user" IN (%(user)s, '') AND (units."user" <> '' OR NOT {hidden}) AND {shared}""",
        values,
    )


# ------------------------------------------------------------------------------------------------- filters

_ORDER = {"gt": ">", "gte": ">=", "lt": "<", "lte": "<="}
# Fields that a column has; where it says that there is none with a text of its own, what that is.
_COLUMNS: dict[str, str] = {
    "id": "units.id",
    "kind": "units.kind",
    "scope": "units.scope",
    "session": "units.session",
    "agent": "nullif(units.agent, '')",
    "position": "units.position",
    "event_time": "units.event_time",
    "recorded_time": "units.recorded_time",
    "valid_from": "nullif(units.valid_from, '')",
    "valid_to": "nullif(units.valid_to, '~')",
    "version": "units.version",
}


@dataclass(frozen=True, slots=True)
class _SqlValue:
    """Expressions for what a condition is about: its JSON type, as text, as a number, and the list that it may be."""

    kind: str
    text: str
    number: str
    listed: str = "NULL::jsonb"


class PostgresFilter:
    """Compiles filters to SQL over `units`. Values are bound, never written into the text."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}

    def compile(self, condition: Filter) -> str:
        """Return an SQL expression that is true, false, and never null."""
        if isinstance(condition, Junction):
            parts = [self.compile(part) for part in condition.parts]
            return f"NOT {parts[0]}" if condition.op == "not" else f"({f' {condition.op.upper()} '.join(parts)})"
        value, wanted = self._value(condition), condition.value
        if condition.op == "ne":
            return f"NOT {self._equal(value, wanted)}"
        if condition.op == "in":
            return self._among(value, wanted)
        if condition.op == "contains":
            return self._contains(value, wanted)
        return self._equal(value, wanted) if condition.op == "eq" else self._ordered(condition.op, value, wanted)

    def _bind(self, value: JSON, kind: str = "text") -> str:
        name = f"filter_{len(self.values)}"
        self.values[name] = value
        return f"%({name})s::{kind}"

    def _number(self, value: float) -> str:
        """Bind a number as the decimal that JSON has for it: the type of what is bound is always the same."""
        return f"({self._bind(repr(value))})::numeric"

    def _value(self, condition: Condition) -> _SqlValue:
        if condition.on == "metadata":
            # A step names a key of an object, never a place of a list, which `#>` would take a number for.
            steps = "".join(f" -> {self._bind(name)}" for name in condition.path)
            return _json_value(f"(units.metadata{steps})")
        name = condition.path[0]
        if name in _COLUMNS:
            column = _COLUMNS[name]
            if isinstance(FIELD_DEFAULTS[name], int):
                return _SqlValue("'number'", "NULL::text", f"{column}::numeric")
            return _SqlValue(f"CASE WHEN {column} IS NULL THEN 'null' ELSE 'string' END", column, "NULL::numeric")
        default = self._bind(json.dumps(FIELD_DEFAULTS[name]), "jsonb")
        return _json_value(f"coalesce((units.body::json -> {self._bind(name)})::jsonb, {default})")

    def _equal(self, value: _SqlValue, wanted: JSON) -> str:
        if wanted is None:
            return f"({value.kind} = 'null')"
        if isinstance(wanted, bool):
            return f"({value.kind} = 'boolean' AND {value.text} = '{str(wanted).lower()}')"
        if isinstance(wanted, str):
            if "\0" in wanted:  # nothing holds one
                return "false"
            return f"""({value.kind} = 'string' AND {value.text} = {self._bind(wanted)} COLLATE "C")"""
        return f"({value.kind} = 'number' AND {value.number} = {self._number(wanted)})"

    def _ordered(self, op: str, value: _SqlValue, wanted: JSON) -> str:
        if not isinstance(wanted, str):
            return f"({value.kind} = 'number' AND {value.number} {_ORDER[op]} {self._number(wanted)})"
        start, nul, _ = wanted.partition("\0")
        # A text without NUL lies behind one with it just when it lies behind what stands before that.
        sign = {"g": ">", "l": "<="}[op[0]] if nul else _ORDER[op]
        return f"""({value.kind} = 'string' AND {value.text} {sign} {self._bind(start)} COLLATE "C")"""

    def _among(self, value: _SqlValue, wanted: list[JSON]) -> str:
        """Compare with a list of any length in one lookup per kind."""
        tests = [self._equal(value, item) for item in (None, True, False) if any(item is one for one in wanted)]
        numbers = [repr(item) for item in wanted if isinstance(item, int | float) and not isinstance(item, bool)]
        texts = [item for item in wanted if isinstance(item, str) and "\0" not in item]
        if numbers:
            listed = f"({self._bind(numbers, 'text[]')})::numeric[]"
            tests.append(f"({value.kind} = 'number' AND {value.number} = ANY({listed}))")
        if texts:
            listed = self._bind(texts, "text[]")
            tests.append(f"""({value.kind} = 'string' AND {value.text} COLLATE "C" = ANY({listed}))""")
        return f"({' OR '.join(tests) or 'false'})"

    def _contains(self, value: _SqlValue, wanted: JSON) -> str:
        member = self._equal(_json_value("item"), wanted)
        found = f"EXISTS (SELECT 1 FROM jsonb_array_elements({value.listed}) AS item WHERE {member})"  # noqa: S608
        if not isinstance(wanted, str) or "\0" in wanted:
            return found
        piece = self._bind(wanted)
        return f"""(({value.kind} = 'string' AND strpos({value.text} COLLATE "C", {piece}) > 0) OR {found})"""


def _json_value(value: str) -> _SqlValue:
    """Return what is asked of an expression of type jsonb; a missing one is null."""
    kind = f"jsonb_typeof({value})"
    return _SqlValue(
        f"coalesce({kind}, 'null')",
        f"({value} #>> '{{}}')",
        f"CASE WHEN {kind} = 'number' THEN ({value})::numeric END",
        f"CASE WHEN {kind} = 'array' THEN {value} END",
    )
