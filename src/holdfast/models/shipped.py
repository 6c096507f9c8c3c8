"""The models inside the package: where they lie, what they are called, and whether they are still whole."""

from __future__ import annotations

import hashlib
import json
from importlib import resources
from pathlib import Path
from typing import Any

from holdfast.errors import EmbedderError
from holdfast.models.embedder import DIGEST_SHOWN, Identity

SHIPPED = ("minilm", "potion")
PROVENANCE = "PROVENANCE.json"
# The one recorded file that no vector depends on.
_LICENCE = "LICENSE"


def shipped_folder(name: str) -> Path:
    """Return the folder of a shipped model."""
    return Path(str(resources.files("holdfast.models"))) / name


def read_provenance(folder: Path) -> dict[str, Any]:
    """Return what is recorded about the model in `folder`.

    Raises:
        EmbedderError: the record is missing or cannot be read.
    """
    try:
        record: dict[str, Any] = json.loads((folder / PROVENANCE).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise EmbedderError(
            f"the shipped model in {folder} has no readable {PROVENANCE}; install Holdfast again"
        ) from error
    return record


def shipped_identity(name: str) -> Identity:
    """Return which model is shipped under `name`; its version is its number format and a checksum of its files."""
    record = read_provenance(shipped_folder(name))
    sums = "".join(known["sha256"] for file, known in record["files"].items() if file != _LICENCE)
    version = f"{record['format']}-{hashlib.sha256(sums.encode()).hexdigest()[:DIGEST_SHOWN]}"
    return Identity(record["model"], record["pooling"], version)


def verify_shipped(root: Path | None = None) -> list[str]:
    """Compare every shipped file with its recorded checksum; return what is wrong, nothing when all is well."""
    problems: list[str] = []
    for name in SHIPPED:
        folder = root / name if root else shipped_folder(name)
        try:
            files = read_provenance(folder)["files"]
        except EmbedderError as error:
            problems.append(str(error))
            continue
        problems += [wrong for file, known in files.items() if (wrong := _problem(folder / file, known["sha256"]))]
    return problems


def check_shipped(name: str) -> None:
    """Refuse a model of which a byte is not the one that was shipped: its vectors would be others, silently.

    Raises:
        EmbedderError: a file is missing or not as recorded.
    """
    folder = shipped_folder(name)
    recorded = read_provenance(folder)["files"]
    for file, known in recorded.items():
        if file != _LICENCE and (wrong := _problem(folder / file, known["sha256"])):
            raise EmbedderError(wrong)


def _problem(path: Path, wanted: str) -> str | None:
    try:
        with path.open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        return f"{path} cannot be read: {error.strerror}; install Holdfast again"
    if found != wanted:
        return f"{path} is not the file that was shipped (SHA-256 {found[:DIGEST_SHOWN]}…); install Holdfast again"
    return None
