"""JSON Lines → records: on each line a message, as a host would send it, or a unit."""

from __future__ import annotations

from collections.abc import Iterable

from holdfast.errors import shown
from holdfast.inputs.authoring import UnitReader, checked, refused
from holdfast.inputs.located import Located, read_json
from holdfast.inputs.pieces import lines_of
from holdfast.inputs.units import read_message
from holdfast.settings import IngestSettings
from holdfast.types import JSON, Record

_DEFAULTS = IngestSettings()


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
    message: dict[str, JSON] = given.plain()
    checked(reader.name, given.line, None, lambda: read_message(message, reader.settings))
    return Record(*place, message=message)
