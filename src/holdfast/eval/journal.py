"""The files of a run: a line for each haystack and system that is measured, and in the end a manifest."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from holdfast.errors import InputError
from holdfast.eval.metrics import Measurement

MANIFEST, JOURNAL, REPORT = "manifest.json", "journal.jsonl", "report.md"
# While a run is not finished, this says what its journal's lines are of; lines of anything else are not gone on with.
_FINGERPRINT = "fingerprint.txt"

Key = tuple[str, str, str]  # set, system, haystack
Pair = tuple[str, str]  # set and system


@dataclass(frozen=True, slots=True)
class Journal:
    """The lines of one run; one cut short by a crash is done again."""

    path: Path

    def write(self, key: Key, records: Sequence[Measurement]) -> None:
        """Add one line."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        line = {"key": key, "records": [dataclasses.asdict(record) for record in records]}
        with self.path.open("ab") as out:
            out.write(json.dumps(line, ensure_ascii=False).encode("utf-8", "surrogatepass") + b"\n")

    def read(self, *, mend: bool = False) -> dict[Key, list[Measurement]]:
        """Return every whole line; `mend` removes a last one that was cut short from the file.

        Raises:
            InputError: a line is not what was written.
        """
        written = self.path.read_bytes() if self.path.exists() else b""
        whole = written[: written.rfind(b"\n") + 1]
        if mend and whole != written:
            self.path.write_bytes(whole)
        done: dict[Key, list[Measurement]] = {}
        for number, line in enumerate(whole.split(b"\n")[:-1], start=1):
            try:
                row = json.loads(line.decode("utf-8", "surrogatepass"))
                done[tuple(row["key"])] = [Measurement(**record) for record in row["records"]]
            except (ValueError, KeyError, TypeError) as error:
                raise InputError(f"{self.path} is damaged at line {number}; remove it and measure again") from error
        return done


def begin(folder: Path, fingerprint: str) -> bool:
    """Make a folder ready for a run; return whether one of the same fingerprint was stopped in it and goes on.

    A run that was finished, or that measured something else, makes way. Only files that a run writes are removed.

    Raises:
        InputError: it is no folder, or holds files of such names that no run of ours wrote.
    """
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file; give --out a folder")
    mark = folder / _FINGERPRINT
    present = [name for name in (MANIFEST, JOURNAL, REPORT) if (folder / name).exists()]
    if present and not mark.exists() and not _is_ours(folder / MANIFEST):
        raise InputError(f"{folder / present[0]} was not written by a run; give --out a folder of its own")
    same = mark.exists() and mark.read_text(encoding="utf-8", errors="replace").strip() == fingerprint
    if same and JOURNAL in present and MANIFEST not in present:
        return True
    for name in present:
        (folder / name).unlink()
    folder.mkdir(parents=True, exist_ok=True)
    mark.write_text(fingerprint + "\n", encoding="utf-8")
    return False


def finish(folder: Path) -> None:
    """Say that a run is over: from here on its manifest says what it was."""
    (folder / _FINGERPRINT).unlink(missing_ok=True)


def _is_ours(path: Path) -> bool:
    try:
        manifest = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return False
    return _lists_runs(manifest) and "holdfast" in manifest


def _lists_runs(manifest: Any) -> bool:  # noqa: ANN401 - any JSON
    """Return whether a JSON value lists runs, as the manifest of an evaluation does."""
    runs = manifest.get("runs") if isinstance(manifest, dict) else None
    return isinstance(runs, list) and all(
        isinstance(row, dict)
        and isinstance(row.get("set"), str)
        and isinstance(row.get("system"), str)
        and isinstance(row.get("n"), int)
        and isinstance(row.get("metrics"), dict)
        and all(isinstance(value, int | float) for value in row["metrics"].values())
        for row in runs
    )


@dataclass(frozen=True, slots=True)
class StoredRun:
    """A run that was written down: its manifest and its single questions."""

    manifest: dict[str, Any]
    records: dict[Pair, list[Measurement]]

    @classmethod
    def read(cls, place: Path) -> StoredRun:
        """Read a run's folder, or its manifest.

        Raises:
            InputError: there is no manifest, or it is damaged.
        """
        path = place / MANIFEST if place.is_dir() else place
        try:
            manifest = json.loads(path.read_bytes())
        except OSError as error:
            raise InputError(
                f"{path} cannot be read: {error.strerror}; name a run's folder or its manifest"
            ) from error
        except ValueError as error:
            raise InputError(f"{path} is not a manifest: {error}") from error
        if not isinstance(manifest, dict) or "runs" not in manifest:
            raise InputError(f"{path} is not a manifest: it has no runs")
        if not _lists_runs(manifest):
            raise InputError(f"{path} is not a manifest: its runs are not those of an evaluation")
        records: dict[Pair, list[Measurement]] = {}
        for (data, system, _), measured in Journal(path.parent / JOURNAL).read().items():
            records.setdefault((data, system), []).extend(measured)
        return cls(manifest, records)

    def runs(self) -> dict[Pair, dict[str, Any]]:
        """Return what was measured, by set and system."""
        return {(run["set"], run["system"]): run for run in self.manifest["runs"]}

    def checksums(self) -> dict[str, object]:
        """Return the checksums of each set's files, as far as the manifest has them."""
        rows = self.manifest.get("data")
        known = [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
        return {str(row.get("set")): row.get("checksums") for row in known}
