"""Files of units in JSON or YAML (C1): a strict schema, every error with its line and field."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from holdfast.errors import InputError, shown
from holdfast.inputs.checks import (
    MAX_IDS,
    MAX_NAME,
    MAX_NOTE,
    check_fraction,
    check_metadata,
    check_name,
    check_note,
    check_targets,
    check_text,
    check_time,
    choose,
)
from holdfast.inputs.located import Located, read_json, read_yaml
from holdfast.inputs.roles import role_of
from holdfast.language.query import ACTS_FOR_ROLE
from holdfast.settings import IngestSettings
from holdfast.types import ACTS, JSON, ROLES, AuthoredUnit, Fact, Role, digest

Format = Literal["json", "yaml"]

# The relations of C8's rules. A file that uses another declares it, so that a slip of the pen is not a new relation.
RELATIONS: tuple[str, ...] = tuple(
    "uses provides has_capability depends_on part_of instance_of relevant_for supports mentions about causes".split()
)
_RELATION = re.compile(r"^[A-Za-z_][A-Za-z0-9_-]*$")
_DEFAULTS = IngestSettings()


@dataclass(frozen=True, slots=True)
class _Field:
    """One field of a unit: how it is checked, and how the JSON Schema says the same."""

    check: Callable[[str, JSON, IngestSettings], Any]
    schema: Mapping[str, JSON]


def _statement(name: str, value: JSON, settings: IngestSettings) -> str:
    return check_text(value, settings, name)


def _end_of_fact(name: str, value: JSON, settings: IngestSettings) -> str:
    return check_note(name, check_text(value, settings, name))


def _note(name: str, value: JSON, _: IngestSettings) -> str:
    return check_note(name, value)


def _id(name: str, value: JSON, _: IngestSettings) -> str:
    return check_name(name, value) or ""


def _ids(name: str, value: JSON, _: IngestSettings) -> tuple[str, ...]:
    return check_targets(name, _list(name, value))


def _acts(name: str, value: JSON, _: IngestSettings) -> tuple[str, ...]:
    return tuple(dict.fromkeys(choose(name, item, ACTS) for item in _list(name, value)))


def _list(name: str, value: JSON) -> list[JSON]:
    if not isinstance(value, list):
        raise InputError(f"{name} takes a list, not {shown(value)}")
    return value


_TEXT = {"type": "string", "minLength": 1, "pattern": r"\S"}
_NAME = _TEXT | {"maxLength": MAX_NAME}
_NOTE = {"type": "string", "maxLength": MAX_NOTE}
_SHORT_TEXT = _TEXT | {"maxLength": MAX_NOTE}
_TIME = {
    "anyOf": [{"type": "string", "format": "date-time"}, {"type": "string", "format": "date"}, {"type": "number"}]
}
_FIELDS: dict[str, _Field] = {
    "id": _Field(_id, _NAME),
    "role": _Field(lambda name, value, _: choose(name, value, ROLES), {"enum": list(ROLES)}),
    "topic": _Field(_note, _NOTE),
    "text": _Field(_statement, _TEXT),
    "claim": _Field(_statement, _TEXT),
    "procedure": _Field(_statement, _TEXT),
    "condition": _Field(_note, _NOTE),
    "utility_acts": _Field(_acts, {"type": "array", "items": {"enum": list(ACTS)}}),
    "utility_note": _Field(_note, _NOTE),
    "subject": _Field(_end_of_fact, _SHORT_TEXT),
    "relation": _Field(_end_of_fact, {"type": "string", "pattern": _RELATION.pattern}),
    "object": _Field(_end_of_fact, _SHORT_TEXT),
    "confidence": _Field(
        lambda name, value, _: check_fraction(name, value), {"type": "number", "minimum": 0, "maximum": 1}
    ),
    "links": _Field(_ids, {"type": "array", "items": _NAME, "maxItems": MAX_IDS}),
    "valid_from": _Field(lambda name, value, _: check_time(name, value), _TIME),
    "valid_to": _Field(lambda name, value, _: check_time(name, value), _TIME),
    "metadata": _Field(lambda _, value, settings: check_metadata(value, settings), {"type": "object"}),
}
_TRIPLE = ("subject", "relation", "object")


@dataclass(slots=True)
class UnitReader:
    """Reads the units of one file, one by one: their ids must differ, and equal ones are counted."""

    name: str
    settings: IngestSettings = _DEFAULTS
    relations: Collection[str] = ()
    _lines: dict[str, int] = field(default_factory=dict)
    _seen: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        for relation in self.relations:
            if not isinstance(relation, str) or not _RELATION.fullmatch(relation):
                raise InputError(f"{shown(relation)} is no relation; a relation is one word, as in mentored_by")

    def read(self, given: Located) -> AuthoredUnit:
        """Return one unit.

        Raises:
            InputError: a field is unknown, missing, or not what it should be; the message names line and field.
        """
        if not isinstance(given.value, dict):
            raise self._refused(given.line, None, f"{shown(given.plain())} is not a unit; give its fields by name")
        values = {name: self._checked(name, value) for name, value in given.value.items()}
        lines = {name: value.line for name, value in given.value.items()}
        role = self._role(values, lines, given.line)
        statement = values.get("procedure") or values.get("claim") or values["text"]
        name = values.get("id") or self._derived(role, values.get("topic", ""), statement)
        if name in self._lines:
            raise self._refused(
                lines.get("id", given.line), "id", f"{shown(name)} is taken by line {self._lines[name]}"
            )
        self._lines[name] = given.line
        self._check_validity(values, lines)
        return AuthoredUnit(
            id=name,
            text=values.get("text", statement),
            role=role,
            topic=values.get("topic", ""),
            claim="" if role == "Procedure" else statement,
            procedure=statement if role == "Procedure" else "",
            condition=values.get("condition", ""),
            utility_acts=values.get("utility_acts", ACTS_FOR_ROLE[role]),
            utility_note=values.get("utility_note", ""),
            fact=self._fact(values, lines, given.line),
            links=values.get("links", ()),
            valid_from=values.get("valid_from"),
            valid_to=values.get("valid_to"),
            metadata=values.get("metadata", {}),
            id_given="id" in values,
            line=given.line,
        )

    def _refused(self, line: int, name: str | None, reason: str) -> InputError:
        return refused(self.name, line, name, reason)

    def _checked(self, name: str, given: Located) -> Any:  # noqa: ANN401 - each field has its type
        found = _FIELDS.get(name)
        if found is None:
            raise self._refused(given.line, name, f"no such field; a unit has {', '.join(_FIELDS)}")
        if given.value is None:
            raise self._refused(given.line, name, "empty; write a value, or leave the field out")
        return checked(self.name, given.line, name, lambda: found.check(name, given.plain(), self.settings))

    def _role(self, values: Mapping[str, Any], lines: Mapping[str, int], line: int) -> Role:
        """Return the role given, or the one that the words show; a claim is never a Procedure (C1)."""
        if "claim" in values and "procedure" in values:
            raise self._refused(
                lines["procedure"], "procedure", "a unit has a claim or a procedure, not both; drop one"
            )
        if not values.keys() & {"claim", "procedure", "text"}:
            raise self._refused(line, "text", "missing; give a claim, a procedure or a text")
        role: Role | None = values.get("role")
        if role is None:
            if "procedure" in values:
                return "Procedure"
            derived = role_of(values.get("claim") or values["text"], heading=values.get("topic", ""))
            return "Description" if derived == "Procedure" and "claim" in values else derived
        wrong = "claim" if role == "Procedure" else "procedure"
        if wrong in values:
            right = "procedure" if role == "Procedure" else "claim"
            raise self._refused(lines[wrong], wrong, f"role {role} takes a {right}; change one of them")
        return role

    def _fact(self, values: Mapping[str, Any], lines: Mapping[str, int], line: int) -> Fact | None:
        given = [name for name in _TRIPLE if name in values]
        if not given:
            if "confidence" in values:
                raise self._refused(lines["confidence"], "confidence", "stands without subject, relation and object")
            return None
        missing = [name for name in _TRIPLE if name not in values]
        if missing:
            reason = f"missing beside {' and '.join(given)}; a fact has all three"
            raise self._refused(lines.get(given[0], line), missing[0], reason)
        relation = values["relation"]
        if not _RELATION.fullmatch(relation):
            raise self._refused(lines["relation"], "relation", f"{shown(relation)} is not one plain word")
        if relation.casefold() not in {known.casefold() for known in (*RELATIONS, *self.relations)}:
            reason = (
                f"unknown relation {shown(relation)}; use one of {', '.join(RELATIONS)}, or declare it in relations"
            )
            raise self._refused(lines["relation"], "relation", reason)
        return Fact(values["subject"], relation, values["object"], values.get("confidence", 1.0))

    def _check_validity(self, values: Mapping[str, Any], lines: Mapping[str, int]) -> None:
        begins, ends = values.get("valid_from"), values.get("valid_to")
        if begins is not None and ends is not None and ends <= begins:
            raise self._refused(lines["valid_to"], "valid_to", "not after valid_from; exchange or correct them")

    def _derived(self, role: Role, topic: str, statement: str) -> str:
        """Return an id that a change elsewhere leaves alone: of what it says, and which of the equal ones it is."""
        said = digest("unit", role, topic, statement)
        self._seen[said] += 1
        return f"{self.name}#{digest(said, self._seen[said])}"


def refused(name: str, line: int, field_name: str | None, reason: str) -> InputError:
    """Return the error for a line and a field of a file."""
    where = f"{shown(name)} line {line}" + (f", field {field_name}" if field_name else "")
    return InputError(f"{where}: {reason}")


def checked(name: str, line: int, field_name: str | None, check: Callable[[], Any]) -> Any:  # noqa: ANN401 - the check's own
    """Return what a check returns; its error gets the line and the field."""
    try:
        return check()
    except InputError as error:
        raise refused(name, line, field_name, str(error)) from error


# -------------------------------------------------------------------------------------------------------------- files


def read_units(
    text: str,
    format: Format,  # noqa: A002 - the word a caller would use
    name: str,
    *,
    relations: Iterable[str] = (),
    settings: IngestSettings = _DEFAULTS,
) -> tuple[AuthoredUnit, ...]:
    """Return the units of a file: a list of them, or an object with `units` and the `relations` it declares.

    Raises:
        InputError: anything in it cannot be used; the message names line and field.
    """
    return tuple(unit for _, unit in located_units(text, format, name, relations=relations, settings=settings))


def located_units(
    text: str,
    format: Format,  # noqa: A002 - the word a caller would use
    name: str,
    *,
    relations: Iterable[str] = (),
    settings: IngestSettings = _DEFAULTS,
) -> list[tuple[Located, AuthoredUnit]]:
    """Return the units of a file, each with its place; see `read_units`."""
    root = read_json(name, text) if choose("format", format, ("json", "yaml")) == "json" else read_yaml(name, text)
    units, declared = _entries(name, root)
    reader = UnitReader(name, settings, (*relations, *declared))
    return [(unit, reader.read(unit)) for unit in units]


def _entries(name: str, root: Located) -> tuple[Sequence[Located], tuple[str, ...]]:
    found = root
    declared: tuple[str, ...] = ()
    if isinstance(root.value, dict):
        for key, value in root.value.items():
            if key not in ("units", "relations"):
                raise refused(name, value.line, key, "no such field; a file has units and relations")
        if "relations" in root.value:
            listed = root.value["relations"]
            declared = checked(name, listed.line, "relations", lambda: _relations(listed.plain()))
        found = root.value.get("units", Located(None, root.line, root.start, root.end))
    if not isinstance(found.value, list) or not found.value:
        raise refused(name, found.line, "units", "missing or empty; give a list of units")
    return found.value, declared


def _relations(given: JSON) -> tuple[str, ...]:
    for relation in (listed := _list("relations", given)):
        if not isinstance(relation, str) or not _RELATION.fullmatch(relation):
            raise InputError(f"{shown(relation)} is no relation; a relation is one word, as in mentored_by")
    return tuple(listed)


def units_schema() -> dict[str, JSON]:
    """Return the JSON Schema of a file of units; `units.schema.json` beside this module holds it."""
    unit = {
        "type": "object",
        "additionalProperties": False,
        "properties": {name: dict(one.schema) for name, one in _FIELDS.items()},
        "anyOf": [{"required": [name]} for name in ("claim", "procedure", "text")],
        "not": {"required": ["claim", "procedure"]},
        "if": {"required": ["role"], "properties": {"role": {"const": "Procedure"}}},
        "then": {"properties": {"claim": False}},
        "else": {"if": {"required": ["role"]}, "then": {"properties": {"procedure": False}}},
        "dependentRequired": {
            **{name: [other for other in _TRIPLE if other != name] for name in _TRIPLE},
            "confidence": list(_TRIPLE),
        },
    }
    units = {"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/unit"}}
    relations = {"type": "array", "items": dict(_FIELDS["relation"].schema)}
    whole = {
        "type": "object",
        "additionalProperties": False,
        "required": ["units"],
        "properties": {"relations": relations, "units": units},
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Holdfast units",
        "oneOf": [units, whole],
        "$defs": {"unit": unit},
    }
