"""JSON and YAML → values that know their line, so that an error can name it.

Both readers give the same tree. A value in a mapping has the line of its key. What no file of units needs is refused:
repeated keys, NaN, and in YAML anchors, tags and several documents.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from dataclasses import dataclass
from typing import Union, cast

import yaml

from holdfast.errors import InputError, shown
from holdfast.inputs.checks import MAX_METADATA_DEPTH
from holdfast.inputs.pieces import lines_of
from holdfast.types import JSON

Scalar = str | int | float | bool | None
Content = Union[Scalar, list["Located"], dict[str, "Located"]]  # noqa: UP007 - the names are not there yet

# Metadata inside a unit inside a list inside a file.
_MAX_DEPTH = MAX_METADATA_DEPTH + 4
_SPACE = re.compile(r"[ \t\r\n]*")
_SCALAR = re.compile(r'["0-9tfn]|-\d')
_DECODER = json.JSONDecoder()


@dataclass(frozen=True, slots=True)
class Located:
    """A value with its line, counted from 1, and its place in the text."""

    value: Content
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


def _refused(name: str, line: int, reason: str) -> InputError:
    return InputError(f"{shown(name)} line {line}: {reason}")


# -------------------------------------------------------------------------------------------------------------- JSON


def read_json(name: str, text: str, *, start: int = 0, end: int | None = None, line: int = 1) -> Located:
    """Return the JSON value in `text`, or in the part of it between two places, whose first line is `line`.

    Raises:
        InputError: it is not JSON; the message names the line.
    """
    reader = _Json(name, text[start:end], start, line)
    value, at = reader.value(reader.skip(0), 0, None)
    if reader.skip(at) < len(reader.text):
        raise reader.refused(reader.skip(at), "more text behind the value; one value is expected here")
    return value


class _Json:
    def __init__(self, name: str, text: str, offset: int, line: int) -> None:
        self.name, self.text, self._offset, self._first = name, text, offset, line
        self._starts = [start for start, _ in lines_of(text)] or [0]

    def line(self, at: int) -> int:
        return self._first + bisect_right(self._starts, at) - 1

    def refused(self, at: int, reason: str) -> InputError:
        return _refused(self.name, self.line(min(at, len(self.text))), f"not JSON: {reason}")

    def skip(self, at: int) -> int:
        found = _SPACE.match(self.text, at)
        return found.end() if found else at

    def value(self, at: int, depth: int, line: int | None) -> tuple[Located, int]:
        """Return the value at a place and where it ends; `line` is its key's."""
        if depth > _MAX_DEPTH:
            raise self.refused(at, f"nested more than {_MAX_DEPTH} deep; flatten it")
        first = self.text[at : at + 1]
        content: Content
        if first == "{":
            content, end = self._mapping(at, depth)
        elif first == "[":
            content, end = self._sequence(at, depth)
        elif _SCALAR.match(self.text, at):
            content, end = self._scalar(at)
        else:
            found = shown(self.text[at : at + 10]) if first else "the end"
            raise self.refused(at, f"{found} where a value should be; write text in double quotes")
        return Located(content, line or self.line(at), self._offset + at, self._offset + end), end

    def _scalar(self, at: int) -> tuple[Scalar, int]:
        try:
            found, end = _DECODER.raw_decode(self.text, at)
        except json.JSONDecodeError as error:
            raise self.refused(error.pos, error.msg) from error
        except ValueError as error:  # a number of thousands of digits
            raise self.refused(at, str(error)) from error
        if not isinstance(found, Scalar):
            raise self.refused(at, "no value")
        return found, end

    def _sequence(self, at: int, depth: int) -> tuple[list[Located], int]:
        items: list[Located] = []
        at = self.skip(at + 1)
        while self.text[at : at + 1] != "]":
            item, at = self.value(at, depth + 1, None)
            items.append(item)
            at = self._next(at, "]")
        return items, at + 1

    def _mapping(self, at: int, depth: int) -> tuple[dict[str, Located], int]:
        found: dict[str, Located] = {}
        at = self.skip(at + 1)
        while self.text[at : at + 1] != "}":
            begin = at
            if self.text[at : at + 1] != '"':
                raise self.refused(at, "a name in double quotes should stand here")
            key, at = self._scalar(at)
            at = self.skip(at)
            if self.text[at : at + 1] != ":":
                raise self.refused(at, f"a colon should follow {shown(key)}")
            value, at = self.value(self.skip(at + 1), depth + 1, self.line(begin))
            if str(key) in found:
                raise _refused(self.name, self.line(begin), f"field {key}: given twice; keep one")
            found[str(key)] = value
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
            raise self.refused(at, f"a comma or {closing} should stand here" if mark != "," else "a comma too many")
        return at


# -------------------------------------------------------------------------------------------------------------- YAML


def read_yaml(name: str, text: str) -> Located:
    """Return the YAML value in `text`.

    Raises:
        InputError: it is not YAML, or uses what is refused here; the message names the line.
    """
    if not text.strip():
        return Located(None, 1, 0, 0)
    try:
        return _Yaml(name, text).document()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        reason = error.problem or error.context or "no reason known"
        raise _refused(
            name, mark.line + 1 if mark else 1, f"not YAML: {reason}; check the indent and quotes"
        ) from error
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise _refused(name, line, f"not YAML: the character U+{ord(text[error.position]):04X}; remove it") from error


class _Yaml:
    """Reads events, not nodes: nothing is built, tagged or shared before it is known to be plain."""

    def __init__(self, name: str, text: str) -> None:
        self._name = name
        self._loader = yaml.SafeLoader(text)

    def document(self) -> Located:
        """Return the one document of a stream."""
        self._next()  # the stream
        event = self._next()
        if isinstance(event, yaml.StreamEndEvent):
            return Located(None, 1, 0, 0)
        found = self._value(self._next(), 0, None)
        self._next()
        event = self._next()
        if not isinstance(event, yaml.StreamEndEvent):
            raise _refused(self._name, _mark(event).line + 1, "a second document begins; keep one in a file")
        return found

    def _next(self) -> yaml.Event:
        try:
            return cast("yaml.Event", self._loader.get_event())  # type: ignore[no-untyped-call]
        except (ValueError, OverflowError) as error:  # the scanner does not check what \\U… stands for
            line = self._loader.line + 1
            raise _refused(self._name, line, f"not YAML: an escape for no character ({error}); correct it") from error

    def _value(self, event: yaml.Event, depth: int, line: int | None) -> Located:
        line = line or _mark(event).line + 1
        if depth > _MAX_DEPTH:
            raise _refused(self._name, line, f"nested more than {_MAX_DEPTH} deep; flatten it")
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise _refused(self._name, line, "anchors and aliases are not taken; write the value out")
        if tag := getattr(event, "tag", None):
            raise _refused(self._name, line, f"the tag {shown(tag)} is not taken; leave it out")
        content: Content
        last = event
        if isinstance(event, yaml.ScalarEvent):
            content = self._scalar(event, line)
        elif isinstance(event, yaml.SequenceStartEvent):
            content, last = self._sequence(depth)
        else:
            content, last = self._mapping(depth)
        return Located(content, line, _mark(event).index, _mark(last, end=True).index)

    def _sequence(self, depth: int) -> tuple[list[Located], yaml.Event]:
        items: list[Located] = []
        while not isinstance(event := self._next(), yaml.SequenceEndEvent):
            items.append(self._value(event, depth + 1, None))
        return items, event

    def _mapping(self, depth: int) -> tuple[dict[str, Located], yaml.Event]:
        found: dict[str, Located] = {}
        while not isinstance(event := self._next(), yaml.MappingEndEvent):
            key = self._value(event, depth + 1, None)
            if not isinstance(key.value, str):
                raise _refused(self._name, key.line, f"the name {shown(key.plain())} is not text; put it in quotes")
            if key.value in found:
                raise _refused(self._name, key.line, f"field {key.value}: given twice; keep one")
            found[key.value] = self._value(self._next(), depth + 1, key.line)
        return found, event

    def _scalar(self, event: yaml.ScalarEvent, line: int) -> Scalar:
        """Return what a scalar means; a time stays text, to be read by the field that wants one."""
        tag = self._loader.resolve(yaml.ScalarNode, event.value, event.implicit)  # type: ignore[no-untyped-call]
        node = yaml.ScalarNode(tag, event.value)
        try:
            if tag == "tag:yaml.org,2002:null":
                return None
            if tag == "tag:yaml.org,2002:bool":
                return bool(self._loader.construct_yaml_bool(node))
            if tag == "tag:yaml.org,2002:int":
                return int(self._loader.construct_yaml_int(node))
            if tag == "tag:yaml.org,2002:float":
                return float(self._loader.construct_yaml_float(node))
        except ValueError as error:  # "0x_", or a number of thousands of digits
            raise _refused(self._name, line, f"{shown(event.value)} is no number; put it in quotes") from error
        return str(event.value)


def _mark(event: yaml.Event, *, end: bool = False) -> yaml.Mark:
    return cast("yaml.Mark", event.end_mark if end else event.start_mark)
