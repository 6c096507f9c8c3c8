"""What is wrong with a store: every page, every checksum, and every column that tells of a unit's fate."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from itertools import chain
from sqlite3 import Connection, Cursor
from typing import Any

from holdfast.errors import DamagedStoreError
from holdfast.store.contract import Problem
from holdfast.store.erasure import ERASED
from holdfast.store.rows import Row, unit_of

Run = Callable[[str, Mapping[str, Any]], Cursor]


def problems_in(connection: Connection, run: Run) -> list[Problem]:
    """Return what is wrong, inside a read transaction; `run` runs a query by its name."""
    pages = [
        Problem(f"SQLite reports: {line}", "restore a backup; the file has lost bytes")
        for (line,) in connection.execute("PRAGMA integrity_check")
        if line != "ok"
    ]
    vectors = [
        Problem(f"vector of unit row {key} fails its checksum", "run `holdfast reembed`")
        for key, vector, checksum in run("all_vectors", {})
        if zlib.crc32(vector) != checksum
    ]
    rows = chain(run("all_units", {}), run("all_versions", {}))
    units = [problem for row in rows if (problem := _problem(row))]
    fates = [
        Problem(f"unit row {key} is superseded or covered by nothing that is known", "restore a backup")
        for (key,) in run("odd_fates", {"erased": ERASED})
    ]
    return [*pages, *vectors, *units, *fates]


def _problem(row: Row) -> Problem | None:
    try:
        unit_of(row)
    except DamagedStoreError as error:
        return Problem(str(error).partition("; ")[0], "restore a backup")
    return None
