"""Files of units in JSON or YAML, and records in JSON Lines (C1): a strict schema, every error with line and field.

Both formats become one tree of values that know their line. What no file of units needs is refused: repeated keys,
NaN, and in YAML anchors, tags and several documents. `units.schema.json` says the same to an editor.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any, Literal, NoReturn, Union, cast

import yaml

from holdfast.documents.pieces import lines_of, role_of
from holdfast.errors import InputError, quote_value
from holdfast.messages.checks import (
    MAX_METADATA_DEPTH,
    check_acts,
    check_fraction,
    check_list,
    check_metadata,
    check_name,
    check_note,
    check_targets,
    check_text,
    check_time,
    choose,
)
from holdfast.messages.content import read_message
from holdfast.settings import IngestSettings
from holdfast.text.facts import RELATIONS
from holdfast.text.questions import ACTS_FOR_ROLE
from holdfast.text.words import regex
from holdfast.types import JSON, ROLES, AuthoredUnit, Fact, Record, Role, digest
from holdfast.values import dataclass

Format = Literal["json", "yaml"]
Scalar = str | int | float | bool | None
ParsedValue = Union[Scalar, list["LocatedValue"], dict[str, "LocatedValue"]]  # noqa: UP007 - the names are not there yet

_RELATION = regex(r"^[A-Za-z_][A-Za-z0-9_-]*$")
_DEFAULTS = IngestSettings()
# Metadata inside a unit inside a list inside a file.
_MAX_DEPTH = MAX_METADATA_DEPTH + 4


@dataclass(frozen=True, slots=True)
class LocatedValue:
    """A value with its line, counted from 1, and its place in the text. One in a mapping has the line of its key."""

    value: ParsedValue
    line: int
    start: int
    end: int

    def plain(self) -> JSON:
        """Return the value alone."""
        if isinstance(self.value, list):
            return [item.plain() for item in self.value]
        if isinstance(self.value, dict):
            return {name: item.plain() for name, item in self.value.items()}
        return self.value


def _refuse(
    name: str, line: int, reason: str, field_name: str | None = None, cause: InputError | None = None
) -> NoReturn:
    where = f"{quote_value(name)} line {line}" + (f", field {field_name}" if field_name else "")
    raise InputError(f"{where}: {reason}") from cause


# --------------------------------------------------------------------------------------------------------- records


def read_records(
    text: str, name: str, *, relations: Iterable[str] = (), settings: IngestSettings = _DEFAULTS
) -> tuple[Record, ...]:
    """Return the records of a JSON Lines text: on each line a message, as a host would send it, or a unit.

    Raises:
        InputError: a line is not a message or a unit; the message names line and field.
    """
    reader = _UnitReader(name, settings, tuple(relations))
    records = []
    for number, (start, end) in enumerate(lines_of(text), start=1):
        if text[start:end].strip():
            records.append(_record(read_json(name, text, start=start, end=end, line=number), reader))
    if not records:
        _refuse(name, 1, "no record in the file; write one JSON object on each line")
    return tuple(records)


def _record(given: LocatedValue, reader: _UnitReader) -> Record:
    place = (given.line, given.start, given.end)
    if not isinstance(given.value, dict):
        reason = (
            f'{quote_value(given.plain())} is not a record; write an object, as in {{"role": "user", "content": …}}'
        )
        _refuse(reader.name, given.line, reason)
    if not given.value.keys() & {"content", "tool_calls"}:
        return Record(*place, unit=reader.read(given))
    message: dict[str, JSON] = given.plain()
    _locate(reader.name, given.line, None, lambda: read_message(message, reader.settings))
    return Record(*place, message=message)


def read_unit_records(text: str, form: Format, name: str, *, relations: Iterable[str] = ()) -> tuple[Record, ...]:
    """Return the units of a file, each with its place; see `read_units`."""
    root = read_json(name, text) if choose("format", form, ("json", "yaml")) == "json" else read_yaml(name, text)
    units, declared = _entries(name, root)
    reader = _UnitReader(name, _DEFAULTS, (*relations, *declared))
    # YAML ends a block where the next one begins.
    ends = [unit.start + len(text[unit.start : unit.end].rstrip()) for unit in units]
    return tuple(
        Record(unit.line, unit.start, end, unit=reader.read(unit)) for unit, end in zip(units, ends, strict=True)
    )


def read_units(
    text: str,
    format: Format,  # noqa: A002 - the word a caller would use
    name: str,
    *,
    relations: Iterable[str] = (),
) -> tuple[AuthoredUnit, ...]:
    """Return the units of a file: a list of them, or an object with `units` and the `relations` it declares.

    Raises:
        InputError: anything in it cannot be used; the message names line and field.
    """
    records = read_unit_records(text, format, name, relations=relations)
    return tuple(record.unit for record in records if record.unit is not None)


def _entries(name: str, root: LocatedValue) -> tuple[Sequence[LocatedValue], tuple[str, ...]]:
    found = root
    declared: tuple[str, ...] = ()
    if isinstance(root.value, dict):
        for key, value in root.value.items():
            if key not in ("units", "relations"):
                _refuse(name, value.line, "no such field; a file has units and relations", key)
        if "relations" in root.value:
            listed = root.value["relations"]
            declared = _locate(name, listed.line, "relations", lambda: _check_relations(listed.plain()))
        found = root.value.get("units", LocatedValue(None, root.line, root.start, root.end))
    if not isinstance(found.value, list) or not found.value:
        _refuse(name, found.line, "missing or empty; give a list of units", "units")
    return found.value, declared


# ----------------------------------------------------------------------------------------------------------- units


def _check_relations(given: JSON) -> tuple[str, ...]:
    relations = []
    for relation in check_list("relations", given):
        if not isinstance(relation, str) or not _RELATION.fullmatch(relation):
            raise InputError(f"{quote_value(relation)} is no relation; a relation is one word, as in mentored_by")
        relations.append(relation)
    return tuple(relations)


def _check_statement(name: str, value: JSON, settings: IngestSettings) -> str:
    return check_text(value, settings, name)


def _check_fact_end(name: str, value: JSON, settings: IngestSettings) -> str:
    return check_note(name, check_text(value, settings, name))


# Each field of a unit, in the order in which errors list them.
UNIT_FIELDS: dict[str, Callable[[str, JSON, IngestSettings], Any]] = {
    "id": lambda name, value, _: check_name(name, value),
    "role": lambda name, value, _: choose(name, value, ROLES),
    "topic": lambda name, value, _: check_note(name, value),
    "text": _check_statement,
    "claim": _check_statement,
    "procedure": _check_statement,
    "condition": lambda name, value, _: check_note(name, value),
    "utility_acts": lambda name, value, _: check_acts(name, value, name),
    "utility_note": lambda name, value, _: check_note(name, value),
    "subject": _check_fact_end,
    "relation": _check_fact_end,
    "object": _check_fact_end,
    "confidence": lambda name, value, _: check_fraction(name, value),
    "links": lambda name, value, _: check_targets(name, check_list(name, value)),
    "valid_from": lambda name, value, _: check_time(name, value),
    "valid_to": lambda name, value, _: check_time(name, value),
    "metadata": lambda _, value, settings: check_metadata(value, settings),
}
_TRIPLE = ("subject", "relation", "object")
# What is the same in a file and in the unit that comes of it.
_AS_GIVEN = ("topic", "condition", "utility_note", "links", "valid_from", "valid_to", "metadata")


@dataclass(slots=True)
class _UnitReader:
    """Reads the units of one file, one by one: their ids must differ, and equal ones are counted."""

    name: str
    settings: IngestSettings
    relations: Collection[str]
    _lines: dict[str, int] = field(default_factory=dict)
    _seen: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        _check_relations(list(self.relations))

    def read(self, given: LocatedValue) -> AuthoredUnit:
        """Return one unit.

        Raises:
            InputError: a field is unknown, missing, or not what it should be; the message names line and field.
        """
        if not isinstance(given.value, dict):
            _refuse(self.name, given.line, f"{quote_value(given.plain())} is not a unit; give its fields by name")
        values = {name: self._check(name, value) for name, value in given.value.items()}
        lines = {name: value.line for name, value in given.value.items()}
        self._refuse_first(_statement_problems(values), lines, given.line)
        role = values.get("role") or _find_role(values)
        statement = values.get("procedure") or values.get("claim") or values["text"]
        unit_id = values.get("id") or self._derive_id(role, values.get("topic", ""), statement)
        if unit_id in self._lines:
            reason = f"{quote_value(unit_id)} is taken by line {self._lines[unit_id]}"
            _refuse(self.name, lines.get("id", given.line), reason, "id")
        self._lines[unit_id] = given.line
        self._refuse_first(_other_problems(values, self.relations), lines, given.line)
        return AuthoredUnit(
            id=unit_id,
            text=values.get("text", statement),
            role=role,
            claim="" if role == "Procedure" else statement,
            procedure=statement if role == "Procedure" else "",
            utility_acts=values.get("utility_acts", ACTS_FOR_ROLE[role]),
            fact=_fact(values),
            id_given="id" in values,
            line=given.line,
            **{name: values[name] for name in _AS_GIVEN if name in values},
        )

    def _check(self, name: str, given: LocatedValue) -> Any:  # noqa: ANN401 - each field has its type
        check = UNIT_FIELDS.get(name)
        if check is None:
            _refuse(self.name, given.line, f"no such field; a unit has {', '.join(UNIT_FIELDS)}", name)
        if given.value is None:
            _refuse(self.name, given.line, "empty; write a value, or leave the field out", name)
        return _locate(self.name, given.line, name, lambda: check(name, given.plain(), self.settings))

    def _refuse_first(self, problems: Iterable[tuple[str, str, str]], lines: Mapping[str, int], line: int) -> None:
        for name, told_by, reason in problems:
            _refuse(self.name, lines.get(told_by, line), reason, name)

    def _derive_id(self, role: Role, topic: str, statement: str) -> str:
        """Return an id that a change elsewhere leaves alone: of what it says, and which of the equal ones it is."""
        said = digest("unit", role, topic, statement)
        self._seen[said] += 1
        return f"{self.name}#{digest(said, self._seen[said])}"


def _locate(name: str, line: int, field_name: str | None, check: Callable[[], Any]) -> Any:  # noqa: ANN401 - the check's own
    """Return what a check returns; its error gets the line and the field."""
    try:
        return check()
    except InputError as error:
        _refuse(name, line, str(error), field_name, error)


def _statement_problems(values: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Yield what is wrong with the statement of a unit: the field, the field whose line tells where, the reason."""
    if "claim" in values and "procedure" in values:
        yield "procedure", "procedure", "a unit has a claim or a procedure, not both; drop one"
    if not values.keys() & {"claim", "procedure", "text"}:
        yield "text", "text", "missing; give a claim, a procedure or a text"
    if role := values.get("role"):
        right, wrong = ("procedure", "claim") if role == "Procedure" else ("claim", "procedure")
        if wrong in values:
            yield wrong, wrong, f"role {role} takes a {right}; change one of them"


def _find_role(values: Mapping[str, Any]) -> Role:
    """Return the role that the words show; a claim is never a Procedure (C1)."""
    if "procedure" in values:
        return "Procedure"
    found = role_of(values.get("claim") or values["text"], heading=values.get("topic", ""))
    return "Description" if found == "Procedure" and "claim" in values else found


def _other_problems(values: Mapping[str, Any], relations: Collection[str]) -> Iterator[tuple[str, str, str]]:
    """Yield what is wrong with the validity and the fact of a unit, as `_statement_problems` does."""
    begins, ends = values.get("valid_from"), values.get("valid_to")
    if begins is not None and ends is not None and ends <= begins:
        yield "valid_to", "valid_to", "not after valid_from; exchange or correct them"
    given = [name for name in _TRIPLE if name in values]
    if not given and "confidence" in values:
        yield "confidence", "confidence", "needs subject, relation and object"
    for name in _TRIPLE if given else ():
        if name not in values:
            yield name, given[0], f"missing next to {' and '.join(given)}; a fact has all three"
    relation = values.get("relation", "uses")
    if not _RELATION.fullmatch(relation):
        yield "relation", "relation", f"{quote_value(relation)} is not one plain word"
    if relation.casefold() not in {known.casefold() for known in (*RELATIONS, *relations)}:
        known = (
            f"unknown relation {quote_value(relation)}; use one of {', '.join(RELATIONS)}, or declare it in relations"
        )
        yield "relation", "relation", known


def _fact(values: Mapping[str, Any]) -> Fact | None:
    if "subject" not in values:
        return None
    return Fact(values["subject"], values["relation"], values["object"], values.get("confidence", 1.0))


# -------------------------------------------------------------------------------------------------------------- JSON

_SPACE = regex(r"[ \t\r\n]*")
_SCALAR = regex(r'["0-9tfn]|-\d')
_DECODER = json.JSONDecoder()


def read_json(name: str, text: str, *, start: int = 0, end: int | None = None, line: int = 1) -> LocatedValue:
    """Return the JSON value in `text`, or in the part of it between two places, whose first line is `line`.

    Raises:
        InputError: it is not JSON; the message names the line.
    """
    reader = _JsonReader(name, text[start:end], start, line)
    value, at = reader.value(reader.skip(0), 0, None)
    if reader.skip(at) < len(reader.text):
        reader.refuse(reader.skip(at), "more text behind the value; one value is expected here")
    return value


class _JsonReader:
    """Python's decoder reads the scalars; lists and objects are read here, because it forgets where they stand."""

    def __init__(self, name: str, text: str, offset: int, line: int) -> None:
        self.name, self.text, self._offset, self._first = name, text, offset, line
        self._starts = [start for start, _ in lines_of(text)] or [0]

    def line(self, at: int) -> int:
        return self._first + bisect_right(self._starts, at) - 1

    def refuse(self, at: int, reason: str) -> NoReturn:
        _refuse(self.name, self.line(min(at, len(self.text))), f"not JSON: {reason}")

    def skip(self, at: int) -> int:
        found = _SPACE.match(self.text, at)
        return found.end() if found else at

    def value(self, at: int, depth: int, line: int | None) -> tuple[LocatedValue, int]:
        """Return the value at a place and where it ends; `line` is its key's."""
        if depth > _MAX_DEPTH:
            self.refuse(at, f"nested more than {_MAX_DEPTH} deep; flatten it")
        first = self.text[at : at + 1]
        content: ParsedValue
        if first == "{":
            content, end = self._mapping(at, depth)
        elif first == "[":
            content, end = self._sequence(at, depth)
        elif _SCALAR.match(self.text, at):
            content, end = self._scalar(at)
        else:
            found = quote_value(self.text[at : at + 10]) if first else "the end"
            self.refuse(at, f"{found} where a value should be; write text in double quotes")
        return LocatedValue(content, line or self.line(at), self._offset + at, self._offset + end), end

    def _scalar(self, at: int) -> tuple[Any, int]:
        try:
            return _DECODER.raw_decode(self.text, at)
        except json.JSONDecodeError as error:
            self.refuse(error.pos, error.msg)
        except ValueError as error:  # a number of thousands of digits
            self.refuse(at, str(error))

    def _sequence(self, at: int, depth: int) -> tuple[list[LocatedValue], int]:
        items: list[LocatedValue] = []
        at = self.skip(at + 1)
        while self.text[at : at + 1] != "]":
            item, at = self.value(at, depth + 1, None)
            items.append(item)
            at = self._next(at, "]")
        return items, at + 1

    def _mapping(self, at: int, depth: int) -> tuple[dict[str, LocatedValue], int]:
        found: dict[str, LocatedValue] = {}
        at = self.skip(at + 1)
        while self.text[at : at + 1] != "}":
            line = self.line(at)
            if self.text[at : at + 1] != '"':
                self.refuse(at, "a name in double quotes should stand here")
            key, at = self._scalar(at)
            at = self.skip(at)
            if self.text[at : at + 1] != ":":
                self.refuse(at, f"a colon should follow {quote_value(key)}")
            value, at = self.value(self.skip(at + 1), depth + 1, line)
            if key in found:
                _refuse(self.name, line, f"field {key}: given twice; keep one")
            found[key] = value
            at = self._next(at, "}")
        return found, at + 1

    def _next(self, at: int, closing: str) -> int:
        """Return where the next entry begins, or where the closing mark stands."""
        at = self.skip(at)
        mark = self.text[at : at + 1]
        after = self.skip(at + 1)
        if mark == "," and self.text[after : after + 1] != closing:
            return after
        if mark != closing:
            self.refuse(at, f"a comma or {closing} should stand here" if mark != "," else "a comma too many")
        return at


# -------------------------------------------------------------------------------------------------------------- YAML


def read_yaml(name: str, text: str) -> LocatedValue:
    """Return the YAML value in `text`.

    Raises:
        InputError: it is not YAML, or uses what is refused here; the message names the line.
    """
    if not text.strip():
        return LocatedValue(None, 1, 0, 0)
    try:
        return _YamlReader(name, text).document()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        reason = error.problem or error.context or "no reason known"
        _refuse(name, mark.line + 1 if mark else 1, f"not YAML: {reason}; check the indent and quotes")
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        _refuse(name, line, f"not YAML: the character U+{ord(text[error.position]):04X}; remove it")


class _YamlReader:
    """Reads events, not nodes: nothing is built, tagged or shared before it is known to be plain."""

    def __init__(self, name: str, text: str) -> None:
        self._name = name
        self._loader = yaml.SafeLoader(text)

    def document(self) -> LocatedValue:
        """Return the one document of a stream."""
        self._next()  # the stream
        if isinstance(self._next(), yaml.StreamEndEvent):
            return LocatedValue(None, 1, 0, 0)
        found = self._value(self._next(), 0, None)
        self._next()
        event = self._next()
        if not isinstance(event, yaml.StreamEndEvent):
            _refuse(self._name, _mark(event).line + 1, "a second document begins; keep one in a file")
        return found

    def _next(self) -> yaml.Event:
        try:
            return cast("yaml.Event", self._loader.get_event())  # type: ignore[no-untyped-call]
        except (ValueError, OverflowError) as error:  # the scanner does not check what \\U… stands for
            reason = f"not YAML: an escape for no character ({error}); correct it"
            _refuse(self._name, self._loader.line + 1, reason)

    def _value(self, event: yaml.Event, depth: int, line: int | None) -> LocatedValue:
        line = line or _mark(event).line + 1
        if depth > _MAX_DEPTH:
            _refuse(self._name, line, f"nested more than {_MAX_DEPTH} deep; flatten it")
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            _refuse(self._name, line, "anchors and aliases are not taken; write the value out")
        if tag := getattr(event, "tag", None):
            _refuse(self._name, line, f"the tag {quote_value(tag)} is not taken; leave it out")
        content: ParsedValue
        last = event
        if isinstance(event, yaml.ScalarEvent):
            content = self._scalar(event, line)
        elif isinstance(event, yaml.SequenceStartEvent):
            content = []
            while not isinstance(last := self._next(), yaml.SequenceEndEvent):
                content.append(self._value(last, depth + 1, None))
        else:
            content, last = self._mapping(depth)
        return LocatedValue(content, line, _mark(event).index, _mark(last, end=True).index)

    def _mapping(self, depth: int) -> tuple[dict[str, LocatedValue], yaml.Event]:
        found: dict[str, LocatedValue] = {}
        while not isinstance(event := self._next(), yaml.MappingEndEvent):
            key = self._value(event, depth + 1, None)
            if not isinstance(key.value, str):
                _refuse(self._name, key.line, f"the name {quote_value(key.plain())} is not text; put it in quotes")
            if key.value in found:
                _refuse(self._name, key.line, f"field {key.value}: given twice; keep one")
            found[key.value] = self._value(self._next(), depth + 1, key.line)
        return found, event

    def _scalar(self, event: yaml.ScalarEvent, line: int) -> Scalar:
        """Return what a scalar means; a time stays text, to be read by the field that wants one."""
        tag = self._loader.resolve(yaml.ScalarNode, event.value, event.implicit)  # type: ignore[no-untyped-call]
        kind = tag.removeprefix("tag:yaml.org,2002:")
        if kind not in ("null", "bool", "int", "float"):
            return str(event.value)
        try:
            construct = getattr(self._loader, f"construct_yaml_{kind}")
            return cast("Scalar", construct(yaml.ScalarNode(tag, event.value)))
        except ValueError:  # "0x_", or a number of thousands of digits
            _refuse(self._name, line, f"{quote_value(event.value)} is no number; put it in quotes")


def _mark(event: yaml.Event, *, end: bool = False) -> yaml.Mark:
    return cast("yaml.Mark", event.end_mark if end else event.start_mark)
