"""What has been measured so far, on disk: a line for each haystack and system, and what they are lines of."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from holdfast.errors import InputError
from holdfast.eval.summary import Record

MANIFEST, JOURNAL, REPORT = "manifest.json", "journal.jsonl", "report.html"
# While a run is not finished, this says what its journal's lines are of; lines of anything else are not gone on with.
FINGERPRINT = "fingerprint.txt"

Key = tuple[str, str, str]  # set, system, haystack


@dataclass(frozen=True, slots=True)
class Journal:
    """The lines of one run; one cut short by a crash is done again."""

    path: Path

    def write(self, key: Key, records: Sequence[Record]) -> None:
        """Add one line."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        line = json.dumps({"key": key, "records": [record.to_json() for record in records]}, ensure_ascii=False)
        with self.path.open("ab") as out:
            out.write(line.encode("utf-8", "surrogatepass") + b"\n")

    def read(self) -> dict[Key, list[Record]]:
        """Return every whole line.

        Raises:
            InputError: a line is not what was written.
        """
        done: dict[Key, list[Record]] = {}
        for number, line in enumerate(self._whole().split(b"\n")[:-1], start=1):
            try:
                row = json.loads(line.decode("utf-8", "surrogatepass"))
                done[tuple(row["key"])] = [Record.from_json(record) for record in row["records"]]
            except (ValueError, KeyError, TypeError) as error:
                raise InputError(f"{self.path} is damaged at line {number}; remove it and measure again") from error
        return done

    def mend(self) -> None:
        """Remove a last line that was cut short."""
        whole = self._whole()
        if self.path.exists() and self.path.stat().st_size != len(whole):
            self.path.write_bytes(whole)

    def _whole(self) -> bytes:
        written = self.path.read_bytes() if self.path.exists() else b""
        return written[: written.rfind(b"\n") + 1]


def begin(folder: Path, fingerprint: str) -> bool:
    """Make a folder ready for a run; return whether one of the same fingerprint was stopped in it and goes on.

    A run that was finished, or that measured something else, makes way. Only files that a run writes are removed.

    Raises:
        InputError: it is no folder, or holds files of such names that no run of ours wrote.
    """
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file; give --out a folder")
    mark = folder / FINGERPRINT
    there = [name for name in (MANIFEST, JOURNAL, REPORT) if (folder / name).exists()]
    if there and not mark.exists() and not _is_ours(_parsed(folder / MANIFEST)):
        raise InputError(f"{folder / there[0]} was not written by a run; give --out a folder of its own")
    same = mark.exists() and mark.read_text(encoding="utf-8", errors="replace").strip() == fingerprint
    if same and JOURNAL in there and MANIFEST not in there:
        return True
    for name in there:
        (folder / name).unlink()
    folder.mkdir(parents=True, exist_ok=True)
    mark.write_text(fingerprint + "\n", encoding="utf-8")
    return False


def finish(folder: Path) -> None:
    """Say that a run is over: from here on its manifest says what it was."""
    (folder / FINGERPRINT).unlink(missing_ok=True)


def has_runs(value: Any) -> bool:  # noqa: ANN401 - any JSON
    """Return whether a JSON value lists runs, as the manifest of an evaluation does."""
    return (
        isinstance(value, dict) and isinstance(value.get("runs"), list) and all(_is_run(row) for row in value["runs"])
    )


def _is_run(row: Any) -> bool:  # noqa: ANN401 - any JSON
    return (
        isinstance(row, dict)
        and all(isinstance(row.get(name), str) for name in ("set", "system"))
        and isinstance(row.get("metrics"), dict)
        and all(isinstance(value, int | float) for value in row["metrics"].values())
        and isinstance(row.get("n"), int)
    )


def _is_ours(manifest: object) -> bool:
    return has_runs(manifest) and isinstance(manifest, dict) and "holdfast" in manifest


def _parsed(path: Path) -> object:
    try:
        return json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
