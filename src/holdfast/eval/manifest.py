"""One JSON file that says what was measured, with what, on which data; and what differs between two of them."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shutil
import subprocess
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import holdfast
from holdfast.errors import InputError
from holdfast.eval.data import DataSet
from holdfast.eval.journal import MANIFEST, Pair, StoredRun
from holdfast.eval.metrics import Comparison, Difference, find_common, means, paired_interval
from holdfast.eval.run import SystemRun
from holdfast.settings import Settings

_LIBRARIES = ("numpy", "onnxruntime", "tokenizers", "PyStemmer", "bm25s")
# So many oddities of one set are listed one by one; all of them are counted.
_LISTED = 50


def describe_run(
    runs: Sequence[SystemRun], sets: Sequence[DataSet], settings: Settings, **facts: object
) -> dict[str, Any]:
    """Return the manifest of a finished run; `facts` are whatever else a reader should know."""
    return {
        "holdfast": holdfast.__version__,
        "commit": commit(),
        "code": code_digest(),
        **facts,
        "machine": machine(),
        "settings": {row.key: row.value for row in settings.describe(internal=True)},
        "data": [_describe_set(data) for data in sets],
        "runs": [{"set": run.set, "system": run.system, **run.summary} for run in runs],
    }


def _describe_set(data: DataSet) -> dict[str, Any]:
    listed = [f"{oddity.kind}: {oddity.where} ({oddity.handling})" for oddity in data.oddities]
    return {
        "set": data.name,
        "schema": data.schema,
        "haystacks": len(data.haystacks),
        "messages": sum(len(haystack.messages) for haystack in data.haystacks),
        "questions": sum(len(haystack.questions) for haystack in data.haystacks),
        "checksums": dict(data.checksums),
        "oddities": data.count_oddities(),
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


def compare(before: StoredRun, after: StoredRun) -> Comparison:
    """Compare every metric that both runs have; where both hold the same single system, their names may differ.

    Raises:
        InputError: they have nothing in common.
    """
    old, new = before.runs(), after.runs()
    twins = _find_twins(old, new)
    differences = [
        _compare_metric(metric, (before, twin), (after, key))
        for key, twin in twins.items()
        for metric in new[key]["metrics"]
        if metric in old[twin]["metrics"]
    ]
    if not differences:
        raise InputError("the two runs have no set and system in common; nothing can be compared")
    return Comparison(differences, _find_remarks(before, after, twins))


def _compare_metric(metric: str, before: tuple[StoredRun, Pair], after: tuple[StoredRun, Pair]) -> Difference:
    (kept, twin), (there, key) = before, after
    records, later = kept.records.get(twin, []), there.records.get(key, [])
    run = there.runs()[key]
    old, new = find_common(records, later, metric)
    if not new:
        return Difference(*key, metric, kept.runs()[twin]["metrics"][metric], run["metrics"][metric], run["n"], None)
    paired = paired_interval(old, new, metric)
    return Difference(*key, metric, means(old)[metric], means(new)[metric], len(new), paired and paired[1])


def _find_remarks(before: StoredRun, after: StoredRun, twins: dict[Pair, Pair]) -> list[str]:
    """Return what a reader of the comparison should know: what was not compared, and where the data differ."""
    old, new = before.runs(), after.runs()
    found = [f"{_name(key)}: only in the earlier run, not compared" for key in old if key not in twins.values()]
    found += [f"{_name(key)}: only in the later run, not compared" for key in new if key not in twins]
    for key, twin in twins.items():
        once = sorted(old[twin]["metrics"].keys() ^ new[key]["metrics"].keys())
        if once:
            found.append(f"{_name(key)}: in one of the runs only, not compared: {', '.join(once)}")
    first, second = before.checksums(), after.checksums()
    for name in dict.fromkeys(name for name, _ in twins):
        if name in first and name in second and first[name] != second[name]:
            found.append(f"{name}: the files differ between the runs; a difference may be one of the data")
    for option, meaning in {"quick": "a part of each set", "as_cited": "the gold as published"}.items():
        if bool(before.manifest.get(option)) != bool(after.manifest.get(option)):
            found.append(f"one of the runs is over {meaning}, the other is not")
    return found


def _name(key: Pair) -> str:
    return f"{key[0]}, {key[1]}"


def _find_twins(old: dict[Pair, Any], new: dict[Pair, Any]) -> dict[Pair, Pair]:
    """Return which run of the earlier ones each later one is compared with."""
    twins = {}
    for key in new:
        earlier = [pair for pair in old if pair[0] == key[0]]
        later = [pair for pair in new if pair[0] == key[0]]
        if key in old:
            twins[key] = key
        elif len(earlier) == len(later) == 1:
            twins[key] = earlier[0]
    return twins
