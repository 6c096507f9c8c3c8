"""A sample history written for Holdfast: the demo, the doctor and the tests use it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib import resources
from itertools import groupby
from typing import Any

# Two people share one account, as a household does.
USER = "household"


def sessions() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Yield (session, messages) in time order."""
    lines = (resources.files("holdfast.sample") / "history.jsonl").read_text(encoding="utf-8").splitlines()
    for session, messages in groupby(map(json.loads, lines), key=lambda message: message["session"]):
        yield session, [{k: v for k, v in message.items() if k != "session"} for message in messages]


def questions() -> list[dict[str, Any]]:
    """Return questions with the message ids of the turns that answer them."""
    found: list[dict[str, Any]] = json.loads(
        (resources.files("holdfast.sample") / "questions.json").read_text(encoding="utf-8")
    )
    return found


def handbook() -> dict[str, str]:
    """Return the text of each file of a small handbook, by name."""
    files = (resources.files("holdfast.sample") / "handbook").iterdir()
    return {file.name: file.read_text(encoding="utf-8") for file in sorted(files, key=lambda file: file.name)}
