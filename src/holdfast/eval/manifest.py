"""One JSON file that says what was measured, with what, on which data."""

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
from holdfast.eval.data import DataSet
from holdfast.eval.journal import MANIFEST
from holdfast.eval.run import Run
from holdfast.settings import Settings

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
