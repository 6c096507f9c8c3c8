"""JSON Lines → records: on each line a message, as a host would send it, or a unit."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from holdfast.analysis.checks import (
    check_json,
    check_list,
    check_metadata,
    check_name,
    check_optional_text,
    check_text,
    check_time,
)
from holdfast.analysis.sources.authoring import UnitReader, checked, refused
from holdfast.analysis.sources.blocks import lines_of
from holdfast.analysis.sources.located import Located, read_json
from holdfast.analysis.units import message_words
from holdfast.errors import shown
from holdfast.settings import IngestSettings
from holdfast.types import JSON, Record

_DEFAULTS = IngestSettings()
_MESSAGE_FIELDS: dict[str, Callable[[JSON, IngestSettings], object]] = {
    "role": lambda value, _: message_words({"role": value, "content": ""}),
    "tool_calls": lambda value, _: check_list("tool_calls", {"tool_calls": value}),
    "speaker": lambda value, _: check_optional_text("speaker", value),
    "name": lambda value, _: check_optional_text("name", value),
    "id": lambda value, _: check_name("id", value),
    "message_id": lambda value, _: check_name("message_id", value),
    "bundle_id": lambda value, _: check_name("bundle_id", value),
    "at": lambda value, _: check_time("at", value),
    "metadata": check_metadata,
}


def read_records(
    text: str, name: str, *, relations: Iterable[str] = (), settings: IngestSettings = _DEFAULTS
) -> tuple[Record, ...]:
    """Return the records of a JSON Lines text; blank lines are passed over.

    Raises:
        InputError: a line is not a message or a unit; the message names line and field.
    """
    reader = UnitReader(name, settings, tuple(relations))
    records = []
    for number, (start, end) in enumerate(lines_of(text), start=1):
        if text[start:end].strip():
            given = read_json(name, text, start=start, end=end, line=number)
            records.append(_record(given, reader))
    if not records:
        raise refused(name, 1, None, "no record in the file; write one JSON object on each line")
    return tuple(records)


def _record(given: Located, reader: UnitReader) -> Record:
    place = (given.line, given.start, given.end)
    if not isinstance(given.value, dict):
        reason = f'{shown(given.plain())} is not a record; write an object, as in {{"role": "user", "content": …}}'
        raise refused(reader.name, given.line, None, reason)
    if not given.value.keys() & {"content", "tool_calls"}:
        return Record(*place, unit=reader.read(given))
    message: dict[str, Any] = given.plain()
    for field, value in message.items():
        if value is not None:
            checked(reader.name, given.line, field, partial(_check, field, value, reader.settings))
    checked(
        reader.name, given.line, "content", lambda: check_text(message_words(message)[1], reader.settings, "content")
    )
    return Record(*place, message=message)


def _check(field: str, value: JSON, settings: IngestSettings) -> object:
    check = _MESSAGE_FIELDS.get(field)
    return check_json(field, value) if check is None else check(value, settings)
