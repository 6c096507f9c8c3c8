"""Our own file: JSON Lines that hold all that a store keeps, so that a store can be made again, bit for bit.

The first line says what the file is, the last one how much there is in it and what its bytes hash to: a file that
was cut is noticed. In between one document or one unit a line, in the order in which they were first written.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import IO, Any, BinaryIO

from holdfast.errors import InputError, quote_value
from holdfast.messages.checks import (
    check_flag,
    check_fraction,
    check_json,
    check_list,
    check_metadata,
    check_name,
    check_names,
    check_note,
    check_parts,
    check_targets,
    check_text,
    choose,
)
from holdfast.settings import IngestSettings
from holdfast.types import (
    ACTS,
    AUTHORS,
    DECISIONS,
    JSON,
    KINDS,
    ORIGINS,
    ROLES,
    SCOPES,
    Document,
    ExportReport,
    Fact,
    Gate,
    Lineage,
    StoredUnit,
    StoredVector,
    SupersededSpan,
    Unit,
    from_iso,
    iso,
)
from holdfast.types.outcomes import ImportNotes
from holdfast.values import dataclass

NAME, VERSION = "holdfast", 1
# A line of this many bytes is no unit of ours: a text has at most one megabyte, with its versions a few.
_MOST_IN_LINE = 256 * 1_048_576
# The index counts with 32 bits, and goes on from what it finds.
_MOST_COUNTED = 2**30
_A_DAY = timedelta(days=1)
_write_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode
_MARKS = ("superseded_by", "superseded_why", "covered_by", "access_count")


@dataclass(frozen=True, slots=True)
class Heading:
    """What a file is of: a user, a session of one, or (`all`) a whole tenant; and what is in it."""

    made: datetime
    user: str | None = None
    session: str | None = None
    all: bool = False
    vectors: bool = False
    space: str | None = None


# ---------------------------------------------------------------------------------------------------- writing


def write(found: Iterable[Document | StoredUnit], out: IO[bytes], heading: Heading) -> ExportReport:
    """Write everything in `found`, one after the other; what was written is not held."""
    digest, size, counts = hashlib.sha256(), 0, {"documents": 0, "units": 0, "versions": 0}

    def put(row: Mapping[str, JSON]) -> None:
        nonlocal size
        line = f"{_write_json(row)}\n".encode()
        out.write(line)
        digest.update(line)
        size += len(line)

    said = {"user": heading.user, "session": heading.session, "all": heading.all, "vectors": heading.vectors}
    put({"format": NAME, "version": VERSION, "made": iso(heading.made), **said, "space": heading.space})
    for one in found:
        if isinstance(one, Document):
            counts["documents"] += 1
            put({"document": _document_row(one)})
        else:
            counts["units"] += 1
            counts["versions"] += len(one.versions)
            put(_unit_row(one, heading))
    told = digest.hexdigest()
    put({"end": {**counts, "sha256": told}})
    return ExportReport("jsonl", counts["units"], counts["versions"], counts["documents"], size, told)


def _document_row(document: Document) -> dict[str, JSON]:
    try:
        body: dict[str, JSON] = {"text": document.body.decode("utf-8")}
    except UnicodeDecodeError:
        body = {"base64": base64.b64encode(document.body).decode("ascii")}
    return {"user": document.user, "name": document.name, "core": document.core, **body}


def _unit_row(kept: StoredUnit, heading: Heading) -> dict[str, JSON]:
    *earlier, unit = ({name: v for name, v in one.to_json().items() if name != "tenant"} for one in kept.versions)
    row: dict[str, JSON] = {"unit": unit}
    if earlier:
        row["versions"] = earlier
    marks: dict[str, JSON] = {name: value for name in _MARKS if (value := getattr(kept.unit, name))}
    marks |= {name: iso(at) for name in ("superseded_at", "covered_at") if (at := getattr(kept, name)) is not None}
    if kept.unit.gate is not None:
        marks["gate"] = kept.unit.gate.to_json()
    if kept.absences:
        marks["absences"] = [[one.by, iso(one.since), iso(one.until)] for one in kept.absences]
    if kept.document is not None:
        marks["document"] = kept.document
    vectors = [one if one is not None and one.space == heading.space else None for one in kept.vectors]
    if heading.vectors:
        marks["vectors"] = [one and base64.b64encode(one.data).decode("ascii") for one in vectors]
    elif None in vectors:
        marks["embedded"] = [one is not None for one in vectors]
    return row | marks


# ---------------------------------------------------------------------------------------------------- reading


@dataclass(slots=True)
class FileSummary:
    """What a file holds, without its contents: looked at before anything is written."""

    heading: Heading
    users: set[str | None] = field(default_factory=set)
    ids: set[tuple[str | None, str]] = field(default_factory=set)
    units: int = 0
    documents: int = 0
    complete: bool = False
    sizes: Counter[int] = field(default_factory=Counter)  # how many vectors have so many numbers

    @property
    def dims(self) -> int | None:
        """Return how many numbers most vectors have; None without any."""
        return self.sizes.most_common(1)[0][0] if self.sizes else None


@dataclass(frozen=True, slots=True)
class ImportedEntry:
    """One line that could be read: whose it is in the file, and what it is here.

    `embedded` says which versions of a unit had a vector that is not in the file.
    """

    line: int
    user: str | None
    found: Document | StoredUnit
    embedded: tuple[bool, ...] = ()


@dataclass(frozen=True, slots=True)
class ImportTarget:
    """Into which tenant a file is read, under whose name (None: the names in it), and what a text may be."""

    tenant: str
    user: str | None
    settings: IngestSettings


def is_holdfast_export(first_line: bytes) -> bool:
    """Return whether a file begins as ours do."""
    try:
        row = json.loads(first_line)
    except (ValueError, RecursionError):
        return False
    return isinstance(row, dict) and row.get("format") == NAME


def survey(source: BinaryIO, taking: ImportTarget, notes: ImportNotes) -> FileSummary:
    """Read a file through and say what is in it; lines that cannot be used are noted.

    Raises:
        InputError: it is of a newer version, or of several users while one is asked for.
    """
    found = FileSummary(_read_heading(source.readline(_MOST_IN_LINE)))
    digest, end = hashlib.sha256(), None
    source.seek(0)
    for number, line in enumerate(_lines(source), start=1):
        row = _read_row(line)
        if row is not None and "end" in row:
            end = (number, row["end"], digest.hexdigest())
            continue
        digest.update(line)
        if number == 1:
            continue
        try:
            entry = _read_entry(number, row, taking, found.heading)
        except InputError as error:
            notes.skip(str(error), f"line {number}")
            continue
        found.users.add(entry.user)
        if isinstance(entry.found, Document):
            found.documents += 1
        else:
            found.units += 1
            found.ids.add((entry.found.unit.user, entry.found.unit.id))
            found.sizes.update(len(one.data) // 2 for one in entry.found.vectors if one is not None)
    found.complete = _is_complete(found, end, notes)
    if taking.user is not None and (len(found.users) > 1 or None in found.users):
        names = ", ".join(sorted(one or "everyone" for one in found.users))
        raise InputError(f"the file is of {names}, not of one user; leave user out, and all of them keep their names")
    return found


def _is_complete(found: FileSummary, end: tuple[int, JSON, str] | None, notes: ImportNotes) -> bool:
    if end is None:
        notes.warn("the file has no last line: it was cut, and what is missing is not known; export it again")
        return False
    number, said, told = end
    if not isinstance(said, dict) or said.get("sha256") != told:
        left = said.get("units") if isinstance(said, dict) else None
        known = f"; {found.units} of {left} units could be read" if isinstance(left, int) else ""
        notes.warn(f"line {number}: the file is not as it was written{known}")
        return False
    return True


def entries(source: BinaryIO, taking: ImportTarget, found: FileSummary) -> Iterator[ImportedEntry]:
    """Yield what could be read, in order."""
    source.seek(0)
    for number, line in enumerate(_lines(source), start=1):
        row = _read_row(line)
        if number == 1 or row is None or "end" in row:
            continue
        try:
            entry = _read_entry(number, row, taking, found.heading)
        except InputError:  # noted by the survey
            continue
        yield entry


def _lines(source: BinaryIO) -> Iterator[bytes]:
    while line := source.readline(_MOST_IN_LINE):
        yield line


def _read_row(line: bytes) -> dict[str, JSON] | None:
    try:
        row = json.loads(line.decode("utf-8"), parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        return None
    return row if isinstance(row, dict) else None


def _refuse_constant(name: str) -> float:
    raise ValueError(name)


def _read_heading(line: bytes) -> Heading:
    row = _read_row(line) or {}
    if row.get("format") != NAME:
        raise InputError("the first line is not that of a Holdfast export; name the format if it is another")
    if row.get("version") != VERSION:
        raise InputError(
            f"the file is of version {quote_value(row.get('version'))}, and this reads {VERSION}; upgrade"
        )
    space = row.get("space")
    return Heading(_time("made", row.get("made")), vectors=bool(row.get("vectors")), space=space and str(space))


def _read_entry(number: int, row: dict[str, JSON] | None, taking: ImportTarget, heading: Heading) -> ImportedEntry:
    """Return what a line holds.

    Raises:
        InputError: it cannot be used.
    """
    if row is None:
        raise InputError("it is not JSON")
    try:
        if "document" in row and "unit" not in row:
            return ImportedEntry(number, row["document"]["user"], _read_document(row["document"], taking))
        return _read_unit(number, row, taking, heading)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"it is no unit or document of Holdfast ({type(error).__name__}: {error})"[:200]) from error


def _owner(user: JSON, taking: ImportTarget) -> str | None:
    name = check_name("user", user, optional=True)
    return taking.user if taking.user is not None and name is not None else name


def _read_document(row: Mapping[str, JSON], taking: ImportTarget) -> Document:
    body = row["text"].encode("utf-8") if "text" in row else base64.b64decode(row["base64"], validate=True)
    name = check_name("name", row["name"]) or ""
    user = _owner(row["user"], taking)
    return Document(taking.tenant, user, name, body, core=check_flag("core", row["core"]), here=False)


def _read_unit(number: int, row: Mapping[str, JSON], taking: ImportTarget, heading: Heading) -> ImportedEntry:
    marks: dict[str, Any] = {name: row[name] for name in _MARKS if name in row}
    if "gate" in row:
        marks["gate"] = _check_gate(Gate.from_json(row["gate"]))
    for name in ("superseded_by", "superseded_why", "covered_by"):
        check_note(name, marks.get(name))
    versions = [_version(one, taking) for one in row.get("versions", ())]
    versions.append(_version(row["unit"], taking).evolve(**marks))
    ids = {(one.id, one.user) for one in versions}
    if len(ids) > 1 or [one.version for one in versions] != [*range(1, len(versions) + 1)]:
        raise InputError("its versions do not follow each other")
    if _count("access_count", marks.get("access_count", 0)) < 0:
        raise InputError("its access_count is below 0")
    vectors = _read_vectors(row, heading, len(versions))
    embedded = tuple(map(bool, row.get("embedded", ()))) or (heading.space is not None,) * len(versions)
    times = {name: _time(name, row[name]) for name in ("superseded_at", "covered_at") if name in row}
    absences = tuple(SupersededSpan(check_note("by", by), _time("since", a), _time("until", b)) for by, a, b in
                     row.get("absences", ()))  # fmt: skip
    document = check_name("document", row.get("document"), optional=True)
    kept = StoredUnit(tuple(versions), vectors, document, absences=absences, **times)
    if (kept.superseded_at is None) != (kept.unit.superseded_by is None):
        raise InputError("superseded_by and superseded_at do not go together")
    if (kept.covered_at is None) != (kept.unit.covered_by is None):
        raise InputError("covered_by and covered_at do not go together")
    return ImportedEntry(number, row["unit"].get("user"), kept, embedded)


def _read_vectors(row: Mapping[str, JSON], heading: Heading, versions: int) -> tuple[StoredVector | None, ...]:
    given = row.get("vectors") or [None] * versions
    if len(given) != versions:
        raise InputError("it has not one vector for each version")
    return tuple(
        None if one is None else StoredVector(heading.space or "", base64.b64decode(one, validate=True))
        for one in given
    )


def _version(row: Mapping[str, JSON], taking: ImportTarget) -> Unit:
    """Return one version of a unit, every field of it checked: a file may be anybody's work."""
    settings = taking.settings
    for name in ("parts", "supersedes", "links", "utility_acts"):
        check_list(name, row.get(name, []))
    unit = Unit.from_json({**row, "tenant": taking.tenant, "user": _owner(row.get("user"), taking)})
    for name, check in _CHECKS.items():
        check(name, getattr(unit, name))
    for statement in {unit.text, unit.claim, unit.procedure} - {""}:
        check_text(statement, settings)
    check_text(unit.text, settings)
    if (unit.scope == "global") != (unit.user is None):
        raise InputError(f"its scope is {unit.scope}, and its user {quote_value(unit.user)}")
    if unit.position < 0 or unit.version < 1:
        raise InputError("its position or version is no count")
    return unit.evolve(
        supersedes=check_targets("supersedes", unit.supersedes), links=check_targets("links", unit.links),
        parts=check_parts(unit.parts, settings), metadata=check_metadata(unit.metadata, settings),
    )  # fmt: skip


def _check_fact(_: str, fact: Fact | None) -> None:
    if fact is not None:
        for name in ("subject", "relation", "object"):
            check_note(name, getattr(fact, name))
        check_fraction("confidence", fact.confidence)


def _check_lineage(_: str, lineage: Lineage | None) -> None:
    if lineage is not None:
        for name in ("confidence", "align", "cover"):
            check_fraction(name, getattr(lineage, name))
        check_json("decay_rate", lineage.decay_rate)
        choose("method", lineage.method, ("extractive", "abstractive"))
        check_names("sources", lineage.sources)
        _check_zone("starts", lineage.starts)
        _check_zone("ends", lineage.ends)


def _check_acts(name: str, acts: tuple[str, ...]) -> None:
    for act in acts:
        choose(name, act, ACTS)


def _check_gate(gate: Gate) -> Gate:
    check_flag("promoted", gate.promoted)
    check_note("reason", gate.reason)
    for name in gate.__slots__[2:]:
        check_fraction(name, getattr(gate, name))
    return gate


def _count(name: str, value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise InputError(f"its {name} {quote_value(value)} is no whole number")
    if value > _MOST_COUNTED:
        raise InputError(f"its {name} {quote_value(value)} is more than {_MOST_COUNTED:,}")
    return value


def _time(name: str, text: object) -> datetime:
    if not isinstance(text, str):
        raise InputError(f"its {name} {quote_value(text)} is no time")
    moment = from_iso(text)
    _check_zone(name, moment)
    return moment


def _check_zone(name: str, moment: datetime | None) -> None:
    if moment is None:
        return
    if moment.tzinfo is None:
        raise InputError(f"its {name} has no time zone")
    try:
        for away in (-_A_DAY, _A_DAY):  # whoever reads it may live in any time zone
            moment.astimezone(UTC) + away
    except OverflowError as error:
        raise InputError(f"its {name} is outside of the years that can be counted") from error


def _one_of(*choices: str) -> Callable[[str, Any], object]:
    return lambda name, value: choose(name, value, choices)


_CHECKS: dict[str, Callable[[str, Any], object]] = {
    "id": check_name,
    **dict.fromkeys(("session", "agent", "message_id", "bundle_id"), partial(check_name, optional=True)),
    **dict.fromkeys(("event_time", "recorded_time", "valid_from", "valid_to", "expires_at"), _check_zone),
    **dict.fromkeys(("topic", "condition", "utility_note", "speaker"), check_note),
    "kind": _one_of(*KINDS),
    "scope": _one_of(*SCOPES),
    "author": _one_of(*AUTHORS),
    "origin": _one_of(*ORIGINS),
    "role": _one_of(*ROLES),
    "utility_acts": _check_acts,
    "authority": check_fraction,
    "pinned": check_flag,
    "overruled": lambda name, value: tuple(choose(name, one, DECISIONS) for one in value),
    "position": _count,
    "version": _count,
    "fact": _check_fact,
    "lineage": _check_lineage,
}
