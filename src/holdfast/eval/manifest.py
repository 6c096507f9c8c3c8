"""One JSON file that says what was measured, with what, on which data; and what differs between two of them."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import holdfast
from holdfast.errors import InputError
from holdfast.eval.data import DataSet
from holdfast.eval.run import Journal, Run
from holdfast.eval.summary import Interval, Record, paired_interval
from holdfast.settings import Settings

MANIFEST = "manifest.json"
_LIBRARIES = ("numpy", "onnxruntime", "tokenizers", "PyStemmer", "bm25s")
# So many oddities of one set are listed one by one; all of them are counted.
_LISTED = 50


def describe_run(runs: Sequence[Run], sets: Sequence[DataSet], settings: Settings, **facts: object) -> dict[str, Any]:
    """Return the manifest of a finished run; `facts` are whatever else a reader should know."""
    return {
        "holdfast": holdfast.__version__,
        "commit": commit(),
        "code": code_digest(),
        **facts,
        "machine": machine(),
        "settings": {row.key: row.value for row in settings.describe()},
        "data": [_described(data) for data in sets],
        "runs": [run.to_json() for run in runs],
    }


def _described(data: DataSet) -> dict[str, Any]:
    listed = [f"{oddity.kind}: {oddity.where} ({oddity.handling})" for oddity in data.oddities]
    return {
        "set": data.name,
        "schema": data.schema,
        "haystacks": len(data.haystacks),
        "messages": sum(len(haystack.messages) for haystack in data.haystacks),
        "questions": sum(len(haystack.questions) for haystack in data.haystacks),
        "checksums": dict(data.checksums),
        "oddities": data.counted_oddities(),
        "oddities_listed": listed[:_LISTED],
    }


def code_digest() -> str:
    """Return a hash of the package's own source: two runs with the same one ran the same code."""
    root = Path(holdfast.__file__).parent
    hashed = hashlib.sha256()
    for path in sorted(root.rglob("*.py")) + sorted(root.rglob("*.sql")):
        hashed.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return hashed.hexdigest()[:16]


def commit() -> str | None:
    """Return the commit that the package's source lies in, with `+` when it was changed since; None when unknown."""
    root, git = Path(holdfast.__file__).parent, shutil.which("git")
    if git is None or _git(git, root, "ls-files", "--error-unmatch", "__init__.py") is None:
        return None
    head, changed = _git(git, root, "rev-parse", "--short=12", "HEAD"), _git(git, root, "status", "--porcelain", ".")
    return f"{head}{'+' if changed else ''}" if head else None


def _git(git: str, root: Path, *arguments: str) -> str | None:
    done = subprocess.run([git, "-C", str(root), *arguments], capture_output=True, text=True, check=False)  # noqa: S603
    return done.stdout.strip() if done.returncode == 0 else None


def machine() -> dict[str, Any]:
    """Describe what the run ran on."""
    found = {}
    for name in _LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    return {
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "cores": os.cpu_count(),
        "libraries": found,
    }


def write_manifest(folder: Path, manifest: dict[str, Any]) -> Path:
    """Write the manifest into a run's folder."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / MANIFEST
    path.write_text(json.dumps(manifest, ensure_ascii=False, indent=1, allow_nan=False) + "\n", encoding="utf-8")
    return path


# ---------------------------------------------------------------------------------------------- comparing


@dataclass(frozen=True, slots=True)
class Difference:
    """One metric of one set and system in two runs. `interval` is of the difference, question by question."""

    set: str
    system: str
    metric: str
    before: float
    after: float
    questions: int
    interval: Interval | None

    @property
    def clear(self) -> bool:
        """Return whether the interval of the difference leaves out 0."""
        return self.interval is not None and (self.interval[0] > 0.0 or self.interval[1] < 0.0)

    def to_json(self) -> dict[str, Any]:
        """Return the difference as JSON."""
        return {
            "set": self.set, "system": self.system, "metric": self.metric, "before": self.before, "after": self.after,
            "difference": self.after - self.before, "questions": self.questions,
            "ci": list(self.interval) if self.interval else None, "clear": self.clear,
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Kept:
    """A run that was written down: its manifest and its single questions."""

    manifest: dict[str, Any]
    records: dict[tuple[str, str], list[Record]]

    @classmethod
    def read(cls, place: Path) -> Kept:
        """Read a run's folder, or its manifest.

        Raises:
            InputError: there is no manifest, or it is damaged.
        """
        path = place / MANIFEST if place.is_dir() else place
        try:
            manifest = json.loads(path.read_text(encoding="utf-8"))
        except OSError as error:
            raise InputError(
                f"{path} cannot be read: {error.strerror}; name a run's folder or its manifest"
            ) from error
        except json.JSONDecodeError as error:
            raise InputError(f"{path} is not a manifest: {error}") from error
        if not isinstance(manifest, dict) or "runs" not in manifest:
            raise InputError(f"{path} is not a manifest: it has no runs")
        records: dict[tuple[str, str], list[Record]] = {}
        for (data, system, _), found in Journal(path.parent / "journal.jsonl").read().items():
            records.setdefault((data, system), []).extend(found)
        return cls(manifest, records)


def compare(before: Kept, after: Kept) -> list[Difference]:
    """Return every metric that both runs have; where both hold the same single system, their names may differ."""
    old = {(run["set"], run["system"]): run for run in before.manifest["runs"]}
    differences = []
    for run in after.manifest["runs"]:
        key = (run["set"], run["system"])
        twin = key if key in old else _only(before, run["set"], after)
        if twin not in old:
            continue
        for metric, value in run["metrics"].items():
            if metric in old[twin]["metrics"]:
                paired = paired_interval(before.records.get(twin, []), after.records.get(key, []), metric)
                differences.append(
                    Difference(*key, metric, old[twin]["metrics"][metric], value, run["n"], paired and paired[1])
                )
    if not differences:
        raise InputError("the two runs have no set and system in common; nothing can be compared")
    return differences


def _only(before: Kept, name: str, after: Kept) -> tuple[str, str] | None:
    here = [run["system"] for run in before.manifest["runs"] if run["set"] == name]
    there = [run["system"] for run in after.manifest["runs"] if run["set"] == name]
    return (name, here[0]) if len(here) == len(there) == 1 else None
