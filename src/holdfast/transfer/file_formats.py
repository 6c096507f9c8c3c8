"""Files that are brought in: opened as they are (a file, bytes, a folder, a zip archive), and told apart."""

from __future__ import annotations

import io
import json
import re
import zipfile
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from holdfast.errors import InputError, quote_value
from holdfast.transfer import assistants, jsonl, messengers
from holdfast.transfer.messengers import Files
from holdfast.types import JSON, View
from holdfast.types.outcomes import ImportedMessage, ImportNotes
from holdfast.values import dataclass

# An export of many years has some hundred megabytes; what is larger is held in memory by no reader here.
_MOST_BYTES = 512 * 1_048_576
# Text is packed to a tenth or a thirtieth; what says it grows more than this is made to fill a memory.
_MOST_GROWTH = 100
# Far more files than any workspace has channels and days; an archive that says more wants to fill a disk.
_MOST_FILES = 200_000
# As much as tells what a file is.
_BEGINNING = 65_536
_ZIP = b"PK\x03\x04"


@dataclass(frozen=True)
class SourceFile:
    """A file that is to be read; or a folder or an archive, with its `files` by name."""

    name: str
    body: bytes | Path
    files: Mapping[str, Callable[[], bytes]] | None = None

    def stream(self) -> BinaryIO:
        """Return the bytes as a file that can be read twice."""
        if isinstance(self.body, bytes):
            return io.BytesIO(self.body)
        return self.body.open("rb")

    @cached_property
    def content(self) -> bytes:
        """Return all bytes of a single file."""
        return self.body if isinstance(self.body, bytes) else read_file(self.body)

    @cached_property
    def text(self) -> str:
        """Return the text of a single file.

        Raises:
            InputError: it is no text.
        """
        return _decode(self.name, self.content)

    @cached_property
    def beginning(self) -> bytes:
        """Return the first bytes."""
        with self.stream() as file:
            return file.read(_BEGINNING)

    @cached_property
    def elements(self) -> JsonElements:
        """Return the text as JSON, as far as it can be read."""
        return read_elements(self.text)


def open_source(source: object, name: str | None) -> SourceFile:
    """Return what a caller names: the path of a file or a folder, or the bytes of a file.

    Raises:
        InputError: there is no such file, or it is too large.
    """
    if isinstance(source, bytes):
        return _open_bytes(name or "the file", source)
    if not isinstance(source, str | Path):
        raise InputError(f"source = {quote_value(source)} is neither a path nor bytes; give one of them")
    path = Path(source)
    called = name or path.name
    if path.is_dir():
        return SourceFile(called, b"", _folder(path))
    if not path.is_file():
        raise InputError(f"there is no file {quote_value(str(path))}; check the path")
    with path.open("rb") as file:
        is_archive = file.read(len(_ZIP)) == _ZIP
    return _open_bytes(called, read_file(path)) if is_archive else SourceFile(called, path)


def read_file(path: Path) -> bytes:
    """Return the bytes of a file that is not too large."""
    try:
        size = path.stat().st_size
        if size > _MOST_BYTES:
            raise InputError(f"{quote_value(str(path))} has {size:,} bytes; the most is {_MOST_BYTES:,}: split it")
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"cannot read {quote_value(str(path))}: {error.strerror}; check it") from error


def _open_bytes(name: str, body: bytes) -> SourceFile:
    return SourceFile(name, b"", _archive(name, body)) if body.startswith(_ZIP) else SourceFile(name, body)


def _folder(path: Path) -> dict[str, Callable[[], bytes]]:
    found: dict[str, Callable[[], bytes]] = {}
    for file in sorted(path.rglob("*")):
        if file.is_file() and not file.is_symlink():
            found[file.relative_to(path).as_posix()] = lambda file=file: read_file(file)  # type: ignore[misc]
        if len(found) > _MOST_FILES:
            raise InputError(
                f"{quote_value(str(path))} has more than {_MOST_FILES:,} files; name the export's own folder"
            )
    return found


def _archive(name: str, body: bytes) -> dict[str, Callable[[], bytes]]:
    try:
        archive = zipfile.ZipFile(io.BytesIO(body))
        members = [one for one in archive.infolist() if not one.is_dir()]
    except (zipfile.BadZipFile, ValueError) as error:
        raise InputError(f"{quote_value(name)} is no whole zip archive ({error}); download it again") from error
    if len(members) > _MOST_FILES:
        raise InputError(f"{quote_value(name)} has {len(members):,} files; the most is {_MOST_FILES:,}")

    def read(member: zipfile.ZipInfo) -> bytes:
        most = min(_MOST_BYTES, _MOST_GROWTH * len(body))
        try:
            with archive.open(member) as file:
                content = file.read(most + 1)
        except (zipfile.BadZipFile, RuntimeError, NotImplementedError, EOFError, OSError) as error:
            raise InputError(
                f"{quote_value(member.filename)} of {quote_value(name)} cannot be read: {error}"
            ) from error
        if len(content) > most:
            raise InputError(f"{quote_value(member.filename)} of {quote_value(name)} is too large to be read")
        return content

    return {one.filename: (lambda one=one: read(one)) for one in members}  # type: ignore[misc]


def pack(source: object, name: str | None) -> tuple[bytes, str | None]:
    """Return what is sent to a server in the place of a path: the bytes of a file, or of a folder as an archive."""
    if isinstance(source, bytes):
        return source, name
    opened = open_source(source, name)
    if not isinstance(source, str | Path) or not Path(source).is_dir():
        return read_file(Path(str(source))), opened.name
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for called, read in (opened.files or {}).items():
            if called.endswith((".json", ".txt")):
                archive.writestr(called, read())
    return packed.getvalue(), opened.name


def _decode(name: str, content: bytes) -> str:
    for mark, encoding in ((b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"), (b"", "utf-8-sig")):
        if content.startswith(mark):
            try:
                return content.decode(encoding)
            except UnicodeDecodeError as error:
                raise InputError(
                    f"{quote_value(name)} is no UTF-8 text: byte 0x{content[error.start]:02x} at {error.start}; "
                    "save it as UTF-8, or take it in as a document"
                ) from error
    raise AssertionError  # pragma: no cover - every content starts with nothing


# ------------------------------------------------------------------------------------------------- JSON, cut or not


@dataclass(frozen=True, slots=True)
class JsonElements:
    """A JSON text: its one value, or as much of a list as could be read, and at which line it broke off."""

    value: JSON = None
    is_json: bool = False
    broken_at: int | None = None


# The lists that hold what an export is about, when it is no list itself.
_LISTS = re.compile(r'"(messages|results|memories|conversations)"\s*:\s*\[')


def read_elements(text: str) -> JsonElements:
    """Return a text as JSON: a list that was cut as far as it goes, and lines of JSON as a list."""
    stripped = text.lstrip()
    if not stripped.startswith(("[", "{")):
        return JsonElements()
    try:
        return JsonElements(json.loads(stripped), is_json=True)
    except (ValueError, RecursionError):
        pass
    if stripped.startswith("{") and (lines := _json_lines(text)) is not None:
        return lines
    start = 1 if stripped.startswith("[") else 0
    found = None if start else _LISTS.search(stripped)
    if not start and found is None:
        return JsonElements()
    values, at = _salvage(stripped, start if found is None else found.end())
    if not values:
        return JsonElements()
    line = text[: len(text) - len(stripped) + at].count("\n") + 1
    whole = values if found is None else {**_heading(stripped[: found.start()]), found[1]: values}
    return JsonElements(whole, is_json=True, broken_at=line)


def _heading(text: str) -> dict[str, JSON]:
    """Return the members of an object before the list that was cut, as a name and an id."""
    try:
        found = json.loads(f"{text.rstrip().rstrip(',')}}}")
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _json_lines(text: str) -> JsonElements | None:
    """Return lines of JSON; those that are none stand in the list as text."""
    rows: list[JSON] = []
    good = 0
    for line in text.split("\n"):
        if not line.strip():
            rows.append(None)
            continue
        try:
            rows.append(json.loads(line))
            good += isinstance(rows[-1], dict)
        except (ValueError, RecursionError):
            rows.append(line)
    return JsonElements(assistants.JsonLines(rows), is_json=True) if good > 1 or (good and len(rows) <= 2) else None


def _salvage(text: str, start: int) -> tuple[list[JSON], int]:
    """Return the elements of a list up to the one that cannot be read, and where that stands."""
    decoder, values, at = json.JSONDecoder(), list[JSON](), start
    while True:
        while at < len(text) and text[at] in " \t\r\n,":
            at += 1
        if at >= len(text) or text[at] == "]":
            return values, at
        try:
            value, at = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            return values, at
        values.append(value)


# ----------------------------------------------------------------------------------------------------- formats


def _has_value(look: Callable[[JSON], bool]) -> Callable[[SourceFile], bool]:
    return lambda opened: opened.elements.is_json and look(opened.elements.value)


# How each format is known, in the order in which it is asked.
_KNOWN: dict[str, Callable[[SourceFile], bool]] = {
    "holdfast": lambda opened: jsonl.is_holdfast_export(opened.beginning.split(b"\n", 1)[0]),
    "chatgpt": _has_value(assistants.is_chatgpt),
    "claude": _has_value(assistants.is_claude),
    "telegram": _has_value(messengers.is_telegram),
    "mem0": _has_value(assistants.is_mem0),
    "messages": _has_value(assistants.is_messages),
    "whatsapp": lambda opened: messengers.is_whatsapp(opened.text),
    "transcript": lambda opened: assistants.is_transcript(opened.text),
}
FORMATS = (*_KNOWN, "slack")
# The file of a folder or an archive that holds the conversations.
_MEMBERS = ("conversations.json", "result.json", "_chat.txt")


def find_format(opened: SourceFile, kind: str | None) -> str:
    """Return the format of a file: the one that is named, else the first that fits.

    Raises:
        InputError: there is no such format, or none fits.
    """
    if kind is not None and kind not in FORMATS:
        raise InputError(f"there is no format {quote_value(kind)}; choose one of {', '.join(FORMATS)}")
    if opened.files is not None:
        return _format_of_folder(opened, opened.files, kind)
    if kind == "slack":
        raise InputError(f"{quote_value(opened.name)} is one file; an export of slack is a folder or a zip archive")
    found = next((name for name, fits in _KNOWN.items() if kind in (name, None) and fits(opened)), None)
    if found is None and kind is None:
        raise InputError(
            f"{quote_value(opened.name)} is of no known format ({', '.join(FORMATS)}); name one with format "
            "(--format), or ingest it as a document"
        )
    if found is None:
        raise InputError(f"{quote_value(opened.name)} is no file of {kind}; leave format out, or choose another")
    return found


def _format_of_folder(opened: SourceFile, files: Files, kind: str | None) -> str:
    if kind in (None, "slack") and messengers.is_slack(files):
        return "slack"
    member = _member(opened.name, files)
    if member is not None:
        return find_format(member, kind)
    raise InputError(
        f"{quote_value(opened.name)} holds no known export: neither conversations.json, result.json nor a "
        "WhatsApp chat, nor the folders of Slack"
    )


def _member(name: str, files: Files) -> SourceFile | None:
    """Return the one file of a folder or an archive that is to be read."""
    by_name = {PurePosixPath(one).name: one for one in reversed([*files])}
    texts = [one for one in files if one.endswith(".txt") and "/" not in one]
    chosen = next((by_name[one] for one in _MEMBERS if one in by_name), None)
    if chosen is None and len(texts) == 1:
        chosen = texts[0]  # a chat of WhatsApp with its pictures
    if chosen is None:
        return None
    # A chat that is called like all others is called as its archive is.
    called = name if PurePosixPath(chosen).name in _MEMBERS else chosen
    return SourceFile(called, files[chosen]())


def read_messages(opened: SourceFile, kind: str, view: View, notes: ImportNotes) -> Iterator[ImportedMessage]:
    """Yield the messages of a file of another program, as they were said."""
    if kind == "slack" and opened.files is not None:
        return messengers.read_slack(opened.files, notes)
    file = opened if opened.files is None else _member(opened.name, opened.files)
    assert file is not None  # noqa: S101 - its format was found
    called = re.sub(r"\.(txt|md|json|jsonl|zip)$", "", file.name, flags=re.IGNORECASE)
    if kind in ("whatsapp", "transcript"):
        read = messengers.read_whatsapp if kind == "whatsapp" else assistants.read_transcript
        return read(file.text, view.session or called, view.zone, notes)
    if file.elements.broken_at is not None:
        notes.cut(f"the file is cut or broken at line {file.elements.broken_at}; what comes before it is read")
    value = file.elements.value
    if kind == "telegram":
        return messengers.read_telegram(value, view.zone, notes)
    if kind == "messages":
        return assistants.read_message_lists(value, view.session or called, notes)
    readers = {"chatgpt": assistants.read_chatgpt, "claude": assistants.read_claude, "mem0": assistants.read_mem0}
    return readers[kind](value, notes)
