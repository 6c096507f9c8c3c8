"""SQL is data: statements live in `sql/`, under names."""

from __future__ import annotations

import re
from functools import cache
from importlib import resources

_NAME = re.compile(r"^-- name: (\w+)\n", re.MULTILINE)


@cache
def queries() -> dict[str, str]:
    """Return every named statement of `sql/queries.sql`."""
    text = (resources.files("holdfast.store") / "sql" / "queries.sql").read_text(encoding="utf-8")
    parts = _NAME.split(text)[1:]
    found = {name: body.strip().rstrip(";") for name, body in zip(parts[::2], parts[1::2], strict=True)}
    row, version = found.pop("row"), found.pop("version")
    return {name: body.replace("{row}", row).replace("{version}", version) for name, body in found.items()}


@cache
def migrations() -> tuple[tuple[int, str], ...]:
    """Return the numbered migrations, in order."""
    folder = resources.files("holdfast.store") / "sql" / "migrations"
    scripts = sorted((f for f in folder.iterdir() if f.name.endswith(".sql")), key=lambda f: f.name)
    return tuple((int(script.name[:4]), script.read_text(encoding="utf-8")) for script in scripts)
