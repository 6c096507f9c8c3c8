"""What is derived from a unit's words, kept with the unit in the same transaction: opening analyses nothing twice.

A row holds for the content that it was made of, and for one way of deriving. Any other, and one whose checksum fails,
is passed over: the unit is analysed again, and the row is written again with the next save of the index.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

from holdfast.store.contract import Derivation
from holdfast.store.rows import UnitRow, unit_of
from holdfast.store.sqlite.migrate import queries
from holdfast.store.sqlite.sqlite_database import Database
from holdfast.types import Analysis, Fact, Unit

# Lone halves of pairs may be in any text: they are written as they are.
_write_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode


def pack_analysis(analysis: Analysis) -> bytes:
    """Return an analysis as bytes; `unpack_analysis` gives the same one again."""
    facts = [[one.subject, one.relation, one.object, one.confidence] for one in analysis.facts]
    values = [
        analysis.terms, analysis.anchor_density, analysis.titles, analysis.mentions, facts, analysis.stating,
    ]  # fmt: skip
    return _write_json(values).encode("utf-8", "surrogatepass")


def unpack_analysis(data: bytes) -> Analysis:
    """Read what `pack_analysis` wrote."""
    terms, density, titles, mentions, facts, stating = json.loads(data.decode("utf-8", "surrogatepass"))
    return Analysis(
        tuple(map(tuple, terms)),
        density,
        tuple(titles),
        tuple(mentions),
        tuple(Fact(*fact) for fact in facts),
        stating,
    )


class AnalysisRows:
    """The analyses in one database. What had to be derived again waits here until it is written."""

    def __init__(self, database: Database, derivation: Derivation) -> None:
        self._database = database
        self._derivation = derivation
        self._number = zlib.crc32(derivation.fingerprint.encode())
        self._waiting: dict[int, tuple[int, Analysis]] = {}

    @property
    def keys(self) -> dict[str, int]:
        """Return what a statement needs that reads units with their analyses."""
        return {"derivation": self._number}

    def read(self, row: Sequence[Any]) -> tuple[UnitRow, Unit, Analysis]:
        """Return the unit of a row and what is derived from it: kept behind the columns of the unit, or made now."""
        *columns, data, checksum = row
        unit = unit_of(tuple(columns))
        if data is not None and zlib.crc32(data) == checksum:
            return tuple(columns), unit, unpack_analysis(data)
        analysis = self._derivation.analyse(unit)
        self._waiting[columns[0]] = (columns[2], analysis)
        return tuple(columns), unit, analysis

    def write(self, made: Mapping[int, tuple[int, Analysis]]) -> None:
        """Write analyses by the key of their unit, each with the checksum of its content; in a transaction."""
        rows = []
        for key, (content, analysis) in made.items():
            data = pack_analysis(analysis)
            rows.append({"key": key, "content": content, "analysis": data, "crc": zlib.crc32(data), **self.keys})
        self._database.connection.executemany(queries()["put_analysis"], rows)

    def write_waiting(self, most: int | None = None) -> None:
        """Write what had to be derived again, or as many of it; in a transaction."""
        some = dict(islice(self._waiting.items(), most))
        self.write(some)
        self._waiting = {key: one for key, one in self._waiting.items() if key not in some}

    def clear(self) -> None:
        """Forget what waits: it may be of units that were erased."""
        self._waiting.clear()
