"""Whether a PostgreSQL store is whole: every checksum, and every number that is derived."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from itertools import islice
from typing import Any

import psycopg

from holdfast.errors import DamagedStoreError, shown
from holdfast.store.contract import Problem
from holdfast.store.postgres.schema import queries
from holdfast.store.rows import unit_of
from holdfast.store.sqlite.purge import ERASED

# A store that is damaged all over needs no list of all its units.
_MOST_SHOWN = 100
_READ_TOGETHER = 2000
_REBUILD = "derive the index again: `holdfast postgres reindex`"


def problems_in(connection: psycopg.Connection[Any]) -> list[Problem]:
    """Return what is wrong with a store, inside a read transaction."""
    return [*islice(_problems(connection), _MOST_SHOWN)]


def _problems(connection: psycopg.Connection[Any]) -> Iterator[Problem]:
    for name in ("all_bodies", "all_versions"):
        for row in _stream(connection, name):
            try:
                unit_of(row)
            except DamagedStoreError as error:
                yield Problem(str(error).partition("; ")[0], "restore a backup")
    for key, vector, checksum in _stream(connection, "all_vectors"):
        if zlib.crc32(vector) != checksum:
            yield Problem(f"vector of unit row {key} fails its checksum", "run `holdfast reembed`")
    for (key,) in connection.execute(queries()["odd_fates"], {"erased": ERASED}):
        yield Problem(f"unit row {key} is superseded or covered by nothing that is known", "restore a backup")
    for name, what in (("stale_entries", "entry"), ("wrong_postings", "postings")):
        for (key,) in connection.execute(queries()[name]):
            yield Problem(f"the {what} of unit row {key} is not what the unit says", _REBUILD)
    for tenant, user, places in connection.execute(queries()["wrong_counts"]):
        yield Problem(f"{places} counts of user {shown(user)} of tenant {shown(tenant)} are wrong", _REBUILD)


def _stream(connection: psycopg.Connection[Any], name: str) -> Iterator[Any]:
    with connection.cursor(name=name, binary=True) as cursor:
        cursor.itersize = _READ_TOGETHER
        cursor.execute(queries()[name])
        yield from cursor
