"""Files of evaluation data → JSON values, and a place to note what is odd about them."""

from __future__ import annotations

import gzip
import hashlib
import json
import lzma
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from holdfast.errors import InputError
from holdfast.eval.data import Oddity

Row = dict[str, Any]

_PACKED: dict[str, Callable[[bytes], bytes]] = {".gz": gzip.decompress, ".xz": lzma.decompress}
SUFFIXES = (".json", ".jsonl", ".tsv")


@dataclass(frozen=True, slots=True)
class DataFile:
    """One file of a data folder."""

    path: Path
    kind: str  # one of SUFFIXES

    @property
    def stem(self) -> str:
        """Return the name without what says how it is written."""
        packed = self.path.suffix if self.path.suffix in _PACKED else ""
        return self.path.name.removesuffix(packed).removesuffix(self.kind)

    def text(self) -> str:
        """Return the whole file, unpacked.

        Raises:
            InputError: it cannot be read, is damaged or cut short, or is not UTF-8.
        """
        unpack = _PACKED.get(self.path.suffix, bytes)
        try:
            # Some editors write a byte order mark first; it is no part of the text.
            return unpack(self.path.read_bytes()).decode("utf-8-sig")
        except (OSError, EOFError, zlib.error, lzma.LZMAError, UnicodeDecodeError) as error:
            raise InputError(f"{self.path} cannot be read: {error}; fetch the file again") from error

    def value(self) -> object:
        """Return the JSON value, or the list of rows, that the file holds.

        Raises:
            InputError: as `text`, or it is not JSON.
        """
        text = self.text()
        if self.kind != ".jsonl":
            return self._parsed(text)
        # A line ends at a line feed only: inside a JSON string other separators are characters like any other.
        lines = enumerate(text.split("\n"), start=1)
        return [self._parsed(line, number) for number, line in lines if line.strip()]

    def _parsed(self, text: str, line: int = 1) -> object:
        try:
            return json.loads(text)
        except json.JSONDecodeError as error:
            place = line + error.lineno - 1
            raise InputError(
                f"{self.path} is damaged or cut short: {error.msg} at line {place}; fetch the file again"
            ) from error

    def checksum(self) -> str:
        """Return the SHA-256 of the file as it lies there."""
        return hashlib.sha256(self.path.read_bytes()).hexdigest()


def files_in(folder: Path) -> list[DataFile]:
    """Return the data files of one folder, by name."""
    return [
        DataFile(path, kind)
        for path in sorted(folder.iterdir())
        if path.is_file()
        for kind in SUFFIXES
        if path.name.removesuffix(path.suffix if path.suffix in _PACKED else "").endswith(kind)
    ]


def folders_in(root: Path) -> Iterator[Path]:
    """Yield `root` and every folder below it that is not hidden, by name."""
    yield root
    for path in sorted(root.iterdir()):
        if path.is_dir() and not path.name.startswith("."):
            yield from folders_in(path)


@dataclass(slots=True)
class Notes:
    """What a loader met on its way. Nothing is dropped without a note."""

    oddities: list[Oddity] = field(default_factory=list)

    def add(self, kind: str, where: object, handling: str) -> None:
        """Write down one oddity."""
        self.oddities.append(Oddity(kind, str(where), handling))


def text_of(value: object) -> str:
    """Return a value as text; JSON's null is nothing."""
    return "" if value is None else str(value)


def id_of(row: Row) -> str:
    """Return the id of a row, in either of its usual spellings."""
    return text_of(row.get("id", row.get("_id")))


def rows(value: object, where: Path) -> list[Row]:
    """Return `value` as a list of objects.

    Raises:
        InputError: it is something else.
    """
    if not isinstance(value, list) or not all(isinstance(row, dict) for row in value):
        raise InputError(f"{where} is not a list of JSON objects; check which file it is")
    return value
