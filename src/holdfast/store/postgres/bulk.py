"""Loading much at once into a store that holds nothing yet: rows by COPY, indexes and statistics after them.

Processes beside this one derive what is searched and write it, a batch a transaction, each whole. What indexes there
are to be at the end is noted while there are none: a load that was interrupted goes on when it is run again, or is
finished with what is there, and nobody else opens the store before. Loaded units are the same as if they had been
written one by one, up to their keys.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import zlib
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from typing import Any, Self

import psycopg
from psycopg import sql

from holdfast.errors import QuotaError, quote_value
from holdfast.store.contract import Derivation, Restoration, Update
from holdfast.store.copying import WriteBatch
from holdfast.store.postgres.connections import SCHEMA, Half, connect, register, translate_driver_errors
from holdfast.store.postgres.index_rows import facts_of, index_row, names_of, postings_of, symbols_of
from holdfast.store.postgres.maintenance import build_vector_indexes
from holdfast.store.postgres.postgres_database import PostgresDatabase, repeated
from holdfast.store.postgres.schema import TABLES
from holdfast.store.rows import GLOBAL, columns, gate_text
from holdfast.types import StoredUnit, WriteResult, iso
from holdfast.values import dataclass

# Making the indexes anew costs about as much as writing so many units into them.
WORTH_IT = 5_000
# Indexes of a store that is being loaded are agreed on under this name.
LOADING = "loading"
# One index stays: whether a unit is there already is asked all the time.
_KEPT_INDEX = '(tenant, "user", id)'
_NOT_EMPTIED = ("documents",)
# Sorting needs memory; more than this gains little.
_SORTING = "512MB"
_MOST_PROCESSES = 8
# PostgreSQL's numbers of the types "char" and text: a letter is the same bytes in both.
_CHAR, _TEXT = 18, 25
# Batches on their way for each process: enough that none waits, few enough for any memory.
_AHEAD = 2
# Columns that COPY fills, in the order of the functions that give them; the tenant comes first in each.
_COLUMNS: dict[str, tuple[str, ...]] = {
    "units": (
        "key", "user", "id", "version", "session", "position", "event_time", "body", "checksum", "document", "agent",
        "kind", "scope", "recorded_time", "expires_at", "valid_from", "valid_to", "metadata", "superseded_by",
        "superseded_at", "superseded_why", "covered_by", "covered_at", "gate", "access_count",
    ),
    "versions": ("unit_key", "version", "body", "checksum"),
    "vectors": ("unit_key", "user", "space", "version", "vector", "checksum"),
    "version_vectors": ("unit_key", "version", "space", "vector", "checksum"),
    "absences": ("unit_key", "by", "since", "until"),
    "entries": (
        "unit_key", "user", "content", "author", "speaker", "role", "agent", "event_us", "starts_us", "ends_us",
        "decay_rate", "length", "said", "stating", "anchor_density", "lengths", "terms", "fields", "tfs", "impacts",
        "topic", "claim", "acts",
    ),
    "postings": ("user", "term", "impact", "unit_key", "field", "tf", "length", "role", "low", "high"),
    "names": ("user", "name", "kind", "unit_key"),
    "facts": ("user", "unit_key", "subject", "relation", "object", "confidence"),
    "symbols": ("user", "token", "symbol", "unit_key", "tokens"),
    "waiting": ("unit_key",),
}  # fmt: skip
CopyRows = dict[str, list[Sequence[Any]]]


@dataclass(frozen=True, slots=True)
class Batch:
    """Units of one tenant that are new, with their keys; `space` is the one that is searched."""

    tenant: str
    space: tuple[str, int] | None
    units: tuple[tuple[int, StoredUnit], ...]


@contextmanager
def bulk_load(
    database: PostgresDatabase, derivation: Derivation, mark: WriteBatch, processes: int | None
) -> Iterator[WriteBatch]:
    """Yield how much is written at once. What cannot be loaded so is written by `mark`, bit by bit."""
    if not _begin(database):
        yield mark
        return
    count = min(os.cpu_count() or 1, _MOST_PROCESSES) if processes is None else processes
    with _Crew(database.address.conninfo, derivation, count) as crew:
        yield _Loading(database, mark, crew).write
        crew.finish()
    finish_load(database)


class _Loading:
    """Hands units that are new to a crew."""

    def __init__(self, database: PostgresDatabase, mark: WriteBatch, crew: _Crew) -> None:
        self._database = database
        self._mark = mark
        self._crew = crew
        self._room: dict[str, int | None] = {}  # how many units a tenant may still get; None for any number

    def write(self, marks: Sequence[Update]) -> list[WriteResult | None]:
        """Write marks; see `Store.apply`. What is written is there when the loading ends."""
        places: dict[str, list[int]] = {}
        for place, one in enumerate(marks):
            places.setdefault(one.kept.unit.tenant if isinstance(one, Restoration) else "", []).append(place)
        written: list[WriteResult | None] = [None] * len(marks)
        for tenant, mine in places.items():
            some = [marks[place] for place in mine]
            for place, done in zip(mine, self._write_tenant(tenant, some), strict=True):
                written[place] = done
        return written

    def _write_tenant(self, tenant: str, marks: Sequence[Update]) -> list[WriteResult | None]:
        kept = [one.kept for one in marks if isinstance(one, Restoration)]
        if not kept:
            return self._mark(marks)
        with self._database.transaction(tenant):
            known = self._known(kept)
            space = self._database.run("space_key").fetchone()
            unknown = [one for one in kept if (one.unit.user, one.unit.id) not in known]
            keys = [key for (key,) in self._database.run("next_keys", {"count": len(unknown)})]
        self._refuse_beyond_quota(tenant, len(unknown))
        self._crew.send(Batch(tenant, space, tuple(zip(keys, unknown, strict=True))))
        old = [one for one in kept if (one.unit.user, one.unit.id) in known]
        changed = [one for one in old if known[one.unit.user, one.unit.id] != _state(one)]
        done: dict[int, WriteResult | None] = {
            id(one): WriteResult(one.unit.id, "added", one.unit.version) for one in unknown
        }
        done |= {id(one): WriteResult(one.unit.id, "duplicate", one.unit.version) for one in old}
        if changed:
            done |= zip(map(id, changed), self._mark([Restoration(one) for one in changed]), strict=True)
        return [done[id(one)] for one in kept]

    def _known(self, kept: Sequence[StoredUnit]) -> dict[tuple[str | None, str], tuple[Any, ...]]:
        """Return the units that are there already, with what tells whether they are the same."""
        users: dict[str, list[str]] = {}
        for one in kept:
            users.setdefault(one.unit.user or GLOBAL, []).append(one.unit.id)
        return {
            (user or None, unit_id): tuple(state)
            for user, ids in users.items()
            for unit_id, *state in self._database.run("stored_states", {"user": user, "ids": json.dumps(ids)})
        }

    def _refuse_beyond_quota(self, tenant: str, count: int) -> None:
        if tenant not in self._room:
            with self._database.everywhere() as connection:
                row = connection.execute(self._database.statement("loaded_room"), {"tenant": tenant}).fetchone()
            self._room[tenant] = None if row is None else row[0]
        room = self._room[tenant]
        if room is None:
            return
        if count > room:
            raise QuotaError(
                f"the tenant {quote_value(tenant)} may keep {room:,} units more, and {count:,} are to be loaded; "
                "raise its "
                "quota and load again"
            )
        self._room[tenant] = room - count


def _state(kept: StoredUnit) -> tuple[Any, ...]:
    unit = kept.unit
    gate = None if unit.gate is None else gate_text(unit.gate)
    return columns(unit)["checksum"], unit.superseded_by, unit.covered_by, gate, unit.access_count


# ------------------------------------------------------------------------------------------------------ the crew


class _Crew:
    """Processes that derive and write batches; with one, this process does it."""

    def __init__(self, conninfo: str, derivation: Derivation, processes: int) -> None:
        self._hands = _Hands(conninfo, derivation)
        self._most = _AHEAD * processes
        self._futures: set[Future[None]] = set()
        self._pool: ProcessPoolExecutor | None = None
        if processes > 1:
            context = multiprocessing.get_context("spawn")  # connections and threads do not survive a fork
            self._pool = ProcessPoolExecutor(processes, context, initializer=_take_up, initargs=(self._hands,))

    def __enter__(self) -> Self:
        return self

    def send(self, batch: Batch) -> None:
        """Have a batch written, soon."""
        if self._pool is None:
            self._hands.write(batch)
            return
        while len(self._futures) >= self._most:
            self._collect(FIRST_COMPLETED)
        self._futures.add(self._pool.submit(_write_batch, batch))

    def finish(self) -> None:
        """Wait until all is written."""
        while self._futures:
            self._collect(FIRST_COMPLETED)

    def _collect(self, when: str) -> None:
        done, self._futures = wait(self._futures, return_when=when)
        for one in done:
            one.result()  # what went wrong there is raised here

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
        self._hands.close()


class _Hands:
    """Derives and writes batches over a connection of its own."""

    def __init__(self, conninfo: str, derivation: Derivation) -> None:
        self._conninfo = conninfo
        self._derivation = derivation
        self._connection: psycopg.Connection[Any] | None = None
        self._types: dict[str, dict[str, int]] = {}

    def write(self, batch: Batch) -> None:
        """Write a batch, whole."""
        rows = self._rows(batch)
        connection = self._connection or self._connect()
        with translate_driver_errors(SCHEMA, writing=True), connection.transaction():
            for table, some in rows.items():
                self._copy(connection, table, batch, some)

    def _copy(
        self, connection: psycopg.Connection[Any], table: str, batch: Batch, rows: Iterable[Sequence[Any]]
    ) -> None:
        """Write rows of one table."""
        named = ("tenant", *_COLUMNS[table])
        statement = sql.SQL("COPY {} ({}) FROM STDIN (FORMAT BINARY)").format(
            sql.Identifier(SCHEMA, table), sql.SQL(", ").join(map(sql.Identifier, named))
        )
        types = self._types[table]
        with connection.cursor() as cursor, cursor.copy(statement) as copy:
            copy.set_types([types[name] for name in named])
            for row in rows:
                copy.write_row((batch.tenant, *row))

    def _connect(self) -> psycopg.Connection[Any]:
        self._connection = connection = connect(self._conninfo)
        register(connection)
        connection.execute("SET synchronous_commit = off")  # a batch that is lost is noticed when it is loaded again
        for table in _COLUMNS:
            found = connection.execute(
                "SELECT attname, atttypid FROM pg_attribute WHERE attrelid = %s::regclass AND attnum > 0",
                (f"{SCHEMA}.{table}",),
            ).fetchall()
            self._types[table] = {name: _TEXT if number == _CHAR else number for name, number in found}
        return connection

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.close()

    def _rows(self, batch: Batch) -> CopyRows:
        rows: CopyRows = {table: [] for table in _COLUMNS}
        for key, kept in batch.units:
            _add_truth(rows, key, kept, batch.space)
            unit, derivation = kept.unit, self._derivation
            analysis, user = derivation.analyse(unit), unit.user or GLOBAL
            entry = index_row(derivation, (key, rows["units"][-1][8], unit, analysis))
            rows["entries"].append([entry["key" if name == "unit_key" else name] for name in _COLUMNS["entries"]])
            rows["postings"] += postings_of(entry)
            rows["names"] += names_of(key, user, analysis)
            rows["facts"] += facts_of(key, user, analysis)
            rows["symbols"] += symbols_of(derivation, key, user, analysis)
        return rows


_hands: list[_Hands] = []


def _take_up(hands: _Hands) -> None:
    _hands.append(hands)


def _write_batch(batch: Batch) -> None:
    _hands[0].write(batch)


def _add_truth(rows: CopyRows, key: int, kept: StoredUnit, space: tuple[str, int] | None) -> None:
    """Add what is not derived, as `restore` writes it."""
    unit = kept.unit
    row = columns(unit, kept.document) | repeated(unit) | {
        "key": key, "metadata": unit.metadata, "superseded_by": unit.superseded_by,
        "superseded_why": unit.superseded_why or None, "covered_by": unit.covered_by,
        "superseded_at": None if kept.superseded_at is None else iso(kept.superseded_at),
        "covered_at": None if kept.covered_at is None else iso(kept.covered_at),
        "gate": None if unit.gate is None else gate_text(unit.gate), "access_count": unit.access_count,
    }  # fmt: skip
    rows["units"].append([row[name] for name in _COLUMNS["units"]])
    for version in kept.versions[:-1]:
        written = columns(version)
        rows["versions"].append((key, version.version, written["body"], written["checksum"]))
    rows["absences"] += [(key, one.by, iso(one.since), iso(one.until)) for one in kept.absences]
    is_waiting = True
    for version, vector in zip(kept.versions, kept.vectors, strict=True):
        if vector is None or space is None or vector.space != space[0]:
            continue
        data, checksum = Half(vector.data), zlib.crc32(vector.data)
        if version is unit:
            is_waiting = False
            rows["vectors"].append((key, unit.user or GLOBAL, space[1], unit.version, data, checksum))
        else:
            rows["version_vectors"].append((key, version.version, space[1], data, checksum))
    if is_waiting:
        rows["waiting"].append((key,))


# ---------------------------------------------------------------------------------------- beginning and the end


def _begin(database: PostgresDatabase) -> bool:
    """Take the indexes off a store that holds nothing; return whether they are off, also by an interrupted load."""
    tables = [table for table in TABLES if table not in _NOT_EMPTIED]
    with database.everywhere(writing=True) as connection:
        connection.execute("SELECT pg_advisory_xact_lock(hashtext(%s))", (LOADING,))
        if is_unfinished(connection):
            return True
        if not _is_empty(connection, tables):
            return False
        found = connection.execute(database.statement("indexes"), {"tables": tables}).fetchall()
        dropped = [(name, text) for name, text in found if not text.endswith(_KEPT_INDEX)]
        note = {"name": LOADING, "value": json.dumps([text for _, text in dropped])}
        connection.execute(database.statement("agree"), note)
        for name, _ in dropped:
            connection.execute(sql.SQL("DROP INDEX {}").format(sql.Identifier(SCHEMA, name)))
    return True


def _is_empty(connection: psycopg.Connection[Any], tables: Sequence[str]) -> bool:
    return not any(
        connection.execute(sql.SQL("SELECT 1 FROM {} LIMIT 1").format(sql.Identifier(SCHEMA, table))).fetchone()
        for table in tables
    )


def is_unfinished(connection: psycopg.Connection[Any]) -> bool:
    """Return whether a load is going on, or was not finished."""
    return connection.execute("SELECT 1 FROM agreements WHERE name = %s", (LOADING,)).fetchone() is not None


def finish_load(database: PostgresDatabase) -> None:
    """Count what was loaded, and make the indexes again; without a load there is nothing to do."""
    with database.everywhere(writing=True) as connection:
        connection.execute(sql.SQL("SET LOCAL maintenance_work_mem = {}").format(_SORTING))
        row = connection.execute("SELECT value FROM agreements WHERE name = %s FOR UPDATE", (LOADING,)).fetchone()
        if row is None:
            return
        connection.execute("TRUNCATE counts")
        connection.execute(database.statement("fill_counts"))
        for text in json.loads(row[0]):
            connection.execute(text)
        connection.execute("DELETE FROM agreements WHERE name = %s", (LOADING,))
    build_vector_indexes(database)
    with database.alone() as connection:
        for table in TABLES:
            connection.execute(sql.SQL("VACUUM (ANALYZE) {}").format(sql.Identifier(SCHEMA, table)))
