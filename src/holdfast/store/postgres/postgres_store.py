"""The store on PostgreSQL: the database is the truth and the index, and this process remembers nothing of either.

Every write is one transaction, with all that is derived from it. A question is one snapshot. Whoever writes for an
owner has that owner's lock, so that conversations grow turn by turn, as in a store of one process.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import (
    BusyStoreError,
    EmbeddingSpaceError,
    QuotaError,
    ReadOnlyStoreError,
    StoreError,
    quote_value,
)
from holdfast.kernels.vectors import halve
from holdfast.settings import StoreSettings
from holdfast.store.contract import (
    Access,
    Coverage,
    Derivation,
    DocumentChange,
    DocumentRemoval,
    Problem,
    Promotion,
    Reading,
    Reinstatement,
    Restoration,
    SpaceChange,
    Supersession,
    Update,
)
from holdfast.store.copying import WriteBatch
from holdfast.store.postgres import bulk
from holdfast.store.postgres.address import read_address
from holdfast.store.postgres.connections import Half
from holdfast.store.postgres.index_rows import update_index_rows
from holdfast.store.postgres.maintenance import (
    DERIVATION,
    QueuePosition,
    build_vector_indexes,
    claim_pending,
    fingerprint_of,
    problems_in,
    rebuild_index,
    set_quota,
)
from holdfast.store.postgres.postgres_database import EVERYONE, PostgresDatabase, lock_number
from holdfast.store.postgres.postgres_reading import PostgresReading
from holdfast.store.postgres.schema import TABLES, migrate_schema, migrations, temporary_database
from holdfast.store.postgres.search import APPROXIMATE_FROM
from holdfast.store.postgres.table_rewrite import Backups, PostgresEraser
from holdfast.store.rows import GLOBAL, SPACE, unfit_of_space, unit_of
from holdfast.store.updates import UpdateWriter
from holdfast.store.writing import Writer
from holdfast.types import Analysis, Document, Draft, Erasure, Stats, Unit, View, WriteResult, from_iso
from holdfast.types.outcomes import ClaimedUnits

Owners = Mapping[str, set[str]]  # tenant → users


class PostgresStore:
    """Units in one PostgreSQL database. Shared between threads, processes and machines; not across a fork."""

    def __init__(self, database: PostgresDatabase, derivation: Derivation, *, replica: bool) -> None:
        self.database = self._database = database
        self._derivation = derivation
        self._replica = replica
        self._has_space = False
        self._eraser = PostgresEraser(database, self._write)

    def __str__(self) -> str:
        return self._database.address.shown

    @classmethod
    def open(
        cls, location: str, settings: StoreSettings, derivation: Derivation, *, mending: bool = False
    ) -> PostgresStore:
        """Open or create the store at an address; see `read_address`.

        `mending` opens also one that was loaded or derived in part, or derived in another way, to put that right.

        Raises:
            StoreError: the database cannot be used; the message says what to do.
            ServerError: it cannot be reached.
        """
        address = read_address(location)
        replica = migrate_schema(address)
        store = cls(PostgresDatabase(address, settings), derivation, replica=replica)
        try:
            store._agree_on_derivation(mending=mending)
        except BaseException:
            store.close()
            raise
        return store

    @staticmethod
    def temporary(location: str) -> AbstractContextManager[str]:
        """Return a database beside the one of an address, empty and gone afterwards: its own address."""
        return temporary_database(location)

    def _agree_on_derivation(self, *, mending: bool) -> None:
        """Refuse a store whose index was derived in another way: half of it would be found by other words."""
        mine, place = fingerprint_of(self._derivation), self._database.address.shown
        with self._database.everywhere() as connection:
            row = connection.execute(self._database.statement("agreed"), {"name": DERIVATION}).fetchone()
            unfinished = bulk.is_unfinished(connection)
        if row is None and not self._replica:
            with self._database.everywhere(writing=True) as connection:
                connection.execute(self._database.statement("agree_first"), {"name": DERIVATION, "value": mine})
                row = connection.execute(self._database.statement("agreed"), {"name": DERIVATION}).fetchone()
        if mending:
            return
        if row is not None and row[0] != mine:
            raise StoreError(
                f"{place} was indexed by another version or with other `analysis` settings, or not to its end; use "
                "those, or derive the index again: `holdfast postgres reindex`"
            )
        if unfinished:
            raise BusyStoreError(
                f"{place} is being loaded; wait for it, or, if that was interrupted, load again or run `holdfast "
                "postgres index`"
            )

    def close(self) -> None:
        """See `Store.close`."""
        self._database.close()

    # ------------------------------------------------------------------------------------------- reading

    @contextmanager
    def reading(self, view: View) -> Iterator[Reading]:
        """See `Store.reading`. Nobody waits for it."""
        with self._database.snapshot(view.tenant):
            yield PostgresReading(view, self._database, self._derivation)

    def space(self) -> str | None:
        """See `Store.space`."""
        row = self._database.ask("agreed", {"name": SPACE})
        return None if row is None else str(row[0])

    # ------------------------------------------------------------------------------------------- writing

    @contextmanager
    def _write(self, owners: Owners) -> Iterator[UpdateWriter]:
        """Run a block as one transaction, and derive what is searched from all that it changed."""
        if self._replica:
            raise ReadOnlyStoreError(
                f"{self._database.address.shown} is a replica, which is only read; write to the primary server"
            )
        tenants = sorted(owners) or [EVERYONE]
        with self._database.transaction(tenants[0], sorted(owners.get(tenants[0], ()))):
            for tenant in tenants[1:]:
                self._database.lock(tenant, sorted(owners[tenant]))
            self._database.bind(tenants[0])
            marker = UpdateWriter(self._database, lambda: self._database.address.shown)
            yield marker
            for tenant, _, key, before, after in marker.promoted:
                self._database.bind(tenant)
                self._database.run("promote_entry", {"key": key, "before": before, "after": after})
            for tenant, keys in self._database.take_changes().items():
                self._database.bind(tenant)
                update_index_rows(self._database, self._derivation, keys, marker.fresh)
                self._refuse_beyond_quota(tenant)

    def _refuse_beyond_quota(self, tenant: str) -> None:
        # Who has too many may still change and forget them.
        if not self._database.has_added(tenant) or self._database.run("tenant_room").fetchone() is None:
            return
        # What others of the tenant write at this moment counts, too.
        self._database.run("lock_quota", {"number": lock_number("quota", tenant)})
        row = self._database.run("tenant_room").fetchone()
        if row is not None and row[1] > row[0]:
            raise QuotaError(
                f"the tenant {quote_value(tenant)} may keep {row[0]:,} units, and would have {row[1]:,}; nothing was "
                "written: forget some, or raise its quota"
            )

    def put(self, drafts: Sequence[Draft], *, retry_seconds: float = 0.0) -> list[WriteResult]:
        """See `Store.put`."""
        owners: dict[str, set[str]] = {}
        for draft in drafts:
            owners.setdefault(draft.unit.tenant, set()).add(draft.unit.user or GLOBAL)
        return list(self._database.retry(partial(self._put, drafts, owners, retry_seconds)))

    def _put(self, drafts: Sequence[Draft], owners: Owners, retry_seconds: float) -> list[WriteResult]:
        places = {tenant: [i for i, one in enumerate(drafts) if one.unit.tenant == tenant] for tenant in owners}
        written: dict[int, WriteResult] = {}
        with self._write(owners) as marker:
            for tenant, mine in places.items():
                self._database.bind(tenant)
                done = Writer(self._database, marker).put([drafts[i] for i in mine], retry_seconds)
                written |= dict(zip(mine, done, strict=True))
        return [written[i] for i in range(len(drafts))]

    def revise(self, view: View, unit_id: str, revise: Callable[[Unit], tuple[Unit, Analysis]]) -> Unit:
        """See `Store.revise`."""

        def work() -> Unit:
            with self._write({view.tenant: {view.user, GLOBAL}}) as marker:
                return Writer(self._database, marker).revise(view, unit_id, revise)

        done: Unit = self._database.retry(work)
        return done

    def apply(self, marks: Sequence[Update]) -> list[WriteResult | None]:
        """See `Store.apply`."""
        if self._replica:  # a context that is read there is not counted
            marks = [one for one in marks if not isinstance(one, Access)]
            if not marks:
                return []
        owners: dict[str, set[str]] = {}
        for one in marks:
            if (owner := _owner_of(one)) is not None:
                owners.setdefault(owner[0], set()).update(owner[1])

        kept = (one.kept for one in marks if isinstance(one, Restoration))
        spaces = ({one.space for one in unit.vectors if one is not None} for unit in kept)
        if first := next((some for some in spaces if len(some) == 1), None):
            self._settle_space(first.pop())

        def work() -> list[WriteResult | None]:
            with self._write(owners) as marker:
                return [self._mark(marker, one) for one in marks]

        return list(self._database.retry(work))

    def _mark(self, marker: UpdateWriter, mark: Update) -> WriteResult | None:
        if isinstance(mark, SpaceChange):
            self._change_space(mark)
            return None
        owner = _owner_of(mark)
        if owner is not None:
            self._database.bind(owner[0])
        return marker.write(mark)

    def _change_space(self, mark: SpaceChange) -> None:
        """Agree on another space: whatever has no vector of it waits again."""
        with self._database.as_owner():
            is_new = self._database.run("name_space", {"space": mark.space}).rowcount > 0
            if mark.if_new and not is_new:
                return
            before = self._database.agreed(SPACE)
            self._database.run("agree", {"name": SPACE, "value": mark.space})
            if mark.dims is not None:
                self._drop_unfit(mark.space, mark.dims)
            if before != mark.space or mark.dims is not None:
                self._database.run("all_wait_for", {"space": mark.space})

    def _drop_unfit(self, space: str, dims: int) -> None:
        """Drop vectors that cannot be compared."""
        for read, drop in (("space_vectors", "drop_vectors"), ("space_version_vectors", "drop_version_vectors")):
            unfit = unfit_of_space(self._database.stream(read, {"space": space}), dims)
            tenants, keys, versions = (list(one) for one in zip(*unfit, strict=True)) if unfit else ([], [], [])
            self._database.run(drop, {"tenants": tenants, "keys": keys, "versions": versions})

    def _settle_space(self, space: str) -> None:
        """Agree on the first space; of two who come at once, the second hears of the first's.

        It is committed by itself, so that whoever comes meanwhile waits for no vectors.
        """
        if not self._has_space and self._database.ask("agreed", {"name": SPACE}) is None:
            with self._write({}), self._database.as_owner():
                self._database.run("name_space", {"space": space})
                self._database.run("agree_first", {"name": SPACE, "value": space})
        self._has_space = True

    # ------------------------------------------------------------------------------------------- vectors

    def put_vectors(
        self, space: str, units: Sequence[Unit], vectors: NDArray[np.float32], marks: Sequence[Promotion] = ()
    ) -> int:
        """See `Store.put_vectors`."""
        owners: dict[str, set[str]] = {}
        for unit in (*units, *(one.unit for one in marks)):
            owners.setdefault(unit.tenant, set()).add(unit.user or GLOBAL)
        self._settle_space(space)
        return int(self._database.retry(partial(self._put_vectors, space, units, vectors, marks, owners)))

    def _put_vectors(
        self, space: str, units: Sequence[Unit], vectors: NDArray[np.float32], marks: Sequence[Promotion],
        owners: Owners,
    ) -> int:  # fmt: skip
        written = 0
        with self._write(owners) as marker:
            agreed = self._database.agreed(SPACE)
            if agreed != space:
                raise EmbeddingSpaceError(
                    f"the store holds vectors of {agreed}, not of {space}; run `holdfast reembed`"
                )
            pairs = [*zip(units, halve(vectors), strict=True)]
            for tenant in dict.fromkeys(unit.tenant for unit in units):
                self._database.bind(tenant)
                mine = [(unit, vector.tobytes()) for unit, vector in pairs if unit.tenant == tenant]
                written += self._write_vectors(space, mine)
            for one in marks:
                self._mark(marker, one)
        return written

    def _write_vectors(self, space: str, pairs: Sequence[tuple[Unit, bytes]]) -> int:
        """Write the vectors of units of the bound tenant that are still as they were read; return how many."""
        data = {(unit.user or GLOBAL, unit.id, unit.version): vector for unit, vector in pairs}
        users, ids, versions = (list(one) for one in zip(*data, strict=True))
        known = self._database.run("fitting_units", {"users": users, "ids": ids, "versions": versions}).fetchall()
        rows = [
            {
                "key": key, "user": user, "version": version, "space": space,
                "vector": Half(vector := data[user, name, version]), "checksum": zlib.crc32(vector),
            }
            for key, user, name, version in known
        ]  # fmt: skip
        keys = {"keys": json.dumps([row["key"] for row in rows])}
        self._database.run("erase_vectors", keys)
        self._database.run_many("insert_vector", rows)
        self._database.run("no_longer_waiting", keys)
        return len(rows)

    def pending(self, space: str, limit: int, after: Unit | None = None) -> list[Unit]:
        """See `Store.pending`."""
        start = 0
        with self._database.snapshot(EVERYONE if after is None else after.tenant):
            name = "listed_units" if self._database.agreed(SPACE) in (None, space) else "waiting_units"
            if after is not None:
                row = self._database.find(after.tenant, after.user, after.id)
                start = 0 if row is None else row[0]
        with self._database.everywhere() as connection:
            asked = {"space": space, "after": start, "limit": limit}
            return [unit_of(row) for row in connection.execute(self._database.statement(name), asked)]

    def claim(
        self, space: str, most: int, after: QueuePosition | None = None
    ) -> AbstractContextManager[ClaimedUnits]:
        """Claim some of the units that wait for vectors, so that no other process embeds them meanwhile."""
        if self._replica:  # the processes of its primary embed them
            return nullcontext(ClaimedUnits())
        return claim_pending(self._database, space, most, after)

    # ------------------------------------------------------------------------------- documents and erasure

    def forget(
        self, view: View, ids: Sequence[str], documents: Sequence[Document] = (), *, dry_run: bool = False,
        owner: bool = False, compact: bool = False, progress: Callable[[str], None] = lambda _step: None,  # noqa: ARG002
    ) -> Erasure:  # fmt: skip
        """See `Store.forget`; tables are written anew whether `compact` is asked for or not."""
        if dry_run:
            return self._eraser.preview(view, ids, owner=owner)
        return self._eraser.forget(view, ids, documents, owner=owner, progress=progress)

    def finish_erasing(self) -> bool:
        """See `Store.finish_erasing`."""
        return self._eraser.finish()

    # ------------------------------------------------------------------------------------------ operating

    def backup(self, path: Path, at: datetime) -> int:
        """See `Store.backup`: a SQLite store with everything in it, on the machine of this process.

        Whoever forgets there reaches it; see `Backups`. `holdfast migrate` brings it back.
        """
        return Backups(self._database).make(self, self._derivation, path, at)

    def stats(self, view: View, *, whole: bool = False) -> Stats:
        """See `Store.stats`."""
        with self._database.snapshot(view.tenant):
            keys = {"user": view.user}
            [(units, sessions, earliest, latest, versions)] = self._database.run("owner_stats", keys)
            kinds = dict(self._database.run("owner_kinds", keys).fetchall())
            scopes = dict(self._database.run("owner_scopes", keys).fetchall())
            space = self._database.agreed(SPACE)
        store: dict[str, Any] = self._whole(space) if whole else {}
        return Stats(
            units=units,
            versions=versions,
            sessions=sessions,
            by_kind=kinds,
            by_scope=scopes,
            earliest=from_iso(earliest) if earliest else None,
            latest=from_iso(latest) if latest else None,
            store_units=store.get("units"),
            store_bytes=store.get("bytes"),
            waiting=store.get("waiting"),
            space=space,
            schema_version=migrations()[-1][0],
            location=self._database.address.shown,
            staleness_seconds=self._staleness(),
        )

    def _whole(self, space: str | None) -> dict[str, Any]:
        asked = {"space": space, "tables": [*TABLES]}
        with self._database.everywhere() as connection:
            [(units, size, waiting)] = connection.execute(self._database.statement("whole_store"), asked)
        return {"units": units, "bytes": size, "waiting": waiting}

    def _staleness(self) -> float | None:
        """Return how old the newest of what a replica has may be; of any other server there is nothing to tell."""
        row = self._database.ask("staleness", {}) if self._replica else None
        return None if row is None or row[0] is None else float(row[0])

    def tenants(self) -> list[str]:
        """See `Copyable.tenants`."""
        with self._database.everywhere() as connection:
            rows = connection.execute(self._database.statement("tenants")).fetchall()
        return [name for (name,) in rows]

    def loading(self, units: int, processes: int | None = None) -> AbstractContextManager[WriteBatch]:
        """See `Copyable.loading`: many units, into a store that holds nothing yet, go by COPY; see `bulk`.

        Then `processes` derive what is searched, as many as there are processors unless it is said how many.
        """
        if self._replica or units < bulk.WORTH_IT:
            return nullcontext(self.apply)
        return bulk.bulk_load(self._database, self._derivation, self.apply, processes)

    # --------------------------------------------------------------------------------------------- upkeep

    def build_indexes(self, *, least: int = APPROXIMATE_FROM, concurrently: bool = False) -> list[str]:
        """Finish a load that was interrupted, and build what large owners' vectors are found by; return its names."""
        bulk.finish_load(self._database)
        return build_vector_indexes(self._database, least=least, concurrently=concurrently)

    def derive_again(self, progress: Callable[[int, int], None] = lambda _done, _of: None) -> int:
        """Derive what is searched from every unit anew; see `maintenance.rebuild_index`."""
        return rebuild_index(self._database, self._derivation, progress)

    def set_quota(self, tenant: str, most: int | None) -> None:
        """Let a tenant keep at most so many units; see `maintenance.set_quota`."""
        set_quota(self._database, tenant, most)

    def verify(self) -> list[Problem]:
        """See `Store.verify`."""
        with self._database.everywhere() as connection:
            return problems_in(connection)


def _owner_of(mark: Update) -> tuple[str, set[str]] | None:
    """Return whose units a mark changes: a tenant, and users of it."""
    if isinstance(mark, Supersession | Reinstatement):
        return mark.view.tenant, {mark.view.user, GLOBAL}
    if isinstance(mark, Access):
        return mark.view.tenant, {mark.view.user}
    if isinstance(mark, SpaceChange):
        return None
    if isinstance(mark, DocumentChange | DocumentRemoval):
        changed: Unit | Document = mark.document
    elif isinstance(mark, Coverage):
        changed = mark.summary.unit
    else:
        changed = mark.kept.unit if isinstance(mark, Restoration) else mark.unit
    return changed.tenant, {changed.user or GLOBAL}
