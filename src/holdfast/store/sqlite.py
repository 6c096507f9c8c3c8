"""The embedded store: one SQLite file, and an index of it in this process.

Every write is one transaction in WAL mode with `synchronous=FULL`: when a call returns, its words survive a kill
and a power cut. The index is loaded owner by owner when first asked, and follows the file's feed of changes, so
that two processes on one file read each other's writes.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, count
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import DamagedStoreError, EmbeddingSpaceError, InputError, NotFoundError, shown
from holdfast.kernels.facts import Facts
from holdfast.kernels.vectors import cosines
from holdfast.settings import StoreSettings
from holdfast.store import shards as searching
from holdfast.store import snapshot
from holdfast.store.contract import (
    HYPER_FIELDS,
    DenseEvidence,
    DenseQuery,
    Derivation,
    HyperEvidence,
    HyperQuery,
    LexicalEvidence,
    LexicalQuery,
    Order,
    Problem,
    Proposal,
)
from holdfast.store.conversation import given_again, told_apart
from holdfast.store.facts import facts
from holdfast.store.index import CALLED, NAMING
from holdfast.store.mentions import leads
from holdfast.store.migrate import IN_MEMORY, close_connection, open_connection, schema_version
from holdfast.store.rows import (
    GLOBAL,
    Row,
    agent_matches,
    columns,
    hidden_by,
    then_by,
    unit_of,
    vector_of,
    where,
)
from holdfast.store.sync import Fresh
from holdfast.store.upkeep import Upkeep
from holdfast.store.verification import problems_in
from holdfast.types import Analysis, CoreDocument, Deadline, Draft, Gate, Stats, Unit, View, Written, from_iso, iso

_EVERYTHING = -1  # SQLite's "no limit"
_SPACE = "space"


class SqliteStore(Upkeep):
    """Units in one SQLite file. Shared between threads by a lock; refuses to be used across a fork."""

    @classmethod
    def open(cls, location: str | Path, settings: StoreSettings, derivation: Derivation) -> SqliteStore:
        """Open or create the store at `location` (`:memory:` keeps nothing).

        Raises:
            StoreError: the file is foreign, newer, damaged, read-only or busy; the message says what to do.
        """
        name = str(location)
        place = name if name == IN_MEMORY else os.path.realpath(name)
        connection = open_connection(place, settings)
        try:
            store = cls(connection, place, name, derivation)
        except BaseException:
            close_connection(connection, place)
            raise
        if name != IN_MEMORY:
            snapshot.remove_misplaced(name, place)
        store.finish_erasing_if_possible()
        return store

    # ------------------------------------------------------------------------------------------- writing

    def put(self, drafts: Sequence[Draft], *, retry_seconds: float = 0.0) -> list[Written]:
        """See `Store.put`."""
        fresh: Fresh = {}
        with self._write():
            told = told_apart(drafts, self._last_turns, retry_seconds)
            written = [self._put_one(draft, fresh) for draft in told]
        self._follow(fresh)
        return written

    def _last_turns(self, unit: Unit, limit: int) -> list[Unit]:
        """Return the last turns of a unit's conversation in the order in which they came, as they were first said."""
        keys = {
            "tenant": unit.tenant,
            "user": unit.user or GLOBAL,
            "session": unit.session,
            "agent": unit.agent or "",
        }
        rows = self._run("last_turns", {**keys, "limit": limit}).fetchall()
        return [self._as_first_said(row) for row in reversed(rows)]

    def _as_first_said(self, row: Row) -> Unit:
        unit = unit_of(row)
        first = self._run("first_version", {"key": row[0]}).fetchone() if unit.version > 1 else None
        return unit if first is None else unit_of(first)

    def _put_one(self, draft: Draft, fresh: Fresh) -> Written:
        row = None if draft.naming else self._find(draft.unit.tenant, draft.unit.user, draft.unit.id)
        if row is None:
            unit = self._placed(draft)
            key = self._run("insert_unit", columns(unit, draft.document)).lastrowid
            assert key is not None  # noqa: S101 - an INSERT that did not raise has a row id
        else:
            key, known, unit = row[0], unit_of(row), self._restated(row, draft)
            if unit == known:
                return Written(known.id, "duplicate", known.version)
            unit = unit.evolve(version=known.version + 1, recorded_time=draft.unit.recorded_time)
            self._restate(row, unit)
        self._record(key, unit)
        for target in unit.supersedes if row is None or draft.id_given else ():
            self._supersede(unit, target, draft.unit.recorded_time)
        fresh[key] = (columns(unit)["checksum"], draft.analyse(unit))
        return Written(unit.id, "added" if row is None else "updated", unit.version)

    def _restated(self, row: Row, draft: Draft) -> Unit:
        """Return what a known unit becomes: an id that the caller gave takes new content, a message stays."""
        known = unit_of(row)
        if not draft.id_given:
            return known.evolve(**given_again(known, draft.unit))
        if known.agent not in (draft.unit.agent, None):
            raise InputError(f"the id {shown(known.id)} is taken by another agent's unit; choose another")
        unit = draft.unit.evolve(
            # Where a unit belongs is fixed at its first version, as its id is: nobody who saw it loses it.
            agent=known.agent,
            session=known.session,
            scope=known.scope,
            position=known.position,
            version=known.version,
            recorded_time=known.recorded_time,
            event_time=draft.unit.event_time if draft.time_given else known.event_time,
        )
        if unit != known:
            self._refuse_taken(row, draft)
        return unit

    def _refuse_taken(self, row: Row, draft: Draft) -> None:
        """Let no document write over what is no part of it, and nobody but a document over its parts."""
        [document] = self._run("document_of_unit", {"key": row[0]}).fetchone()
        if document == draft.document:
            return
        taken = "a unit that is no part of a document" if document is None else f"the document {shown(document)}"
        remedy = "choose another id" if draft.document is None else f"give {shown(draft.document)} another name"
        raise InputError(f"the id {shown(draft.unit.id)} is taken by {taken}; {remedy}")

    def revise(self, view: View, unit_id: str, revise: Callable[[Unit], tuple[Unit, Analysis]]) -> Unit:
        """See `Store.revise`."""
        with self._write():
            row = self._visible_row(view, unit_id)
            if row is None:
                raise NotFoundError(
                    f"there is no unit {shown(unit_id)} for user {shown(view.user)}; check id and owner"
                )
            known = unit_of(row)
            unit, analysis = revise(known)
            unit = unit.evolve(version=known.version + 1)
            self._restate(row, unit)
            self._record(row[0], unit)
            kept = self._find(unit.tenant, unit.user, unit.id)
        self._follow({row[0]: (columns(unit)["checksum"], analysis)})
        return unit if kept is None else unit_of(kept)

    def _restate(self, row: Row, unit: Unit) -> None:
        """Write a new version; a summary of what the unit no longer says, or says for a time only, is withdrawn."""
        known = unit_of(row)
        self._replace(row[0], unit)
        ends = unit.expires_at is not None or unit.valid_to is not None
        if unit.text != known.text or ends:
            self._uncover(row, unit.recorded_time)
        if ends:
            self._release(row)

    def _placed(self, draft: Draft) -> Unit:
        """Return a new unit with its place in its conversation, and the id that its place gives it."""
        unit = draft.unit
        if unit.kind != "turn" or draft.document is not None:
            return unit
        unit = unit.evolve(position=self._next_position(unit))
        return unit if draft.naming is None else unit.evolve(id=self._free_id(unit, draft.naming))

    def _next_position(self, unit: Unit) -> int:
        if unit.session is None:
            return max((turn.position + 1 for turn in self._last_turns(unit, 1)), default=0)
        keys = {"tenant": unit.tenant, "user": unit.user or GLOBAL, "session": unit.session}
        position: int = self._run("next_position", keys).fetchone()[0]
        return position

    def _free_id(self, unit: Unit, naming: Callable[[int], str]) -> str:
        """Return the first id of these words that nobody has; what said them before stands at an earlier place."""
        tried = (naming(number) for number in chain([0], count(max(unit.position, 1))))
        return next(name for name in tried if self._find(unit.tenant, unit.user, name) is None)

    # ------------------------------------------------------------------------------------------- reading

    def units(self, view: View, ids: Sequence[str]) -> dict[str, Unit]:
        """See `Store.units`."""
        with self._read():
            if (view.tenant, view.user) in self._index:
                return self._index.units(view, ids)
            keys = {"tenant": view.tenant, "user": view.user, "ids": json.dumps([*ids])}
            rows = self._run("find_units", keys).fetchall()
        # Global units come first, so that a user's own of the same id takes their place.
        return {unit.id: unit for unit in map(unit_of, rows) if agent_matches(view, unit)}

    def scan(self, view: View, *, order: Order, limit: int | None) -> Iterator[Unit]:
        """See `Store.scan`."""
        with self._read():
            visible, values = where(view)
            values["limit"] = _EVERYTHING if limit is None else limit
            rows = self._run(f"scan_{order}", values, visible=visible).fetchall()
            past = self._index.past_units(view) if view.as_of is not None else []
        if not past:
            return map(unit_of, rows)
        found = sorted((*map(unit_of, rows), *past), key=lambda u: (u.event_time, u.position, u.id))
        return iter((found[::-1] if order == "newest" else found)[:limit])

    def history(self, view: View, unit_id: str) -> list[Unit]:
        """See `Store.history`."""
        with self._read():
            row = self._visible_row(view, unit_id)
            if row is None:
                return []
            return [unit_of(old) for old in self._run("unit_versions", {"key": row[0]})] + [unit_of(row)]

    def neighbours(self, view: View, ids: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """See `Store.neighbours`."""
        with self._read():
            return searching.neighbours(self._index.shards(view), view, ids, self._allowed(view))

    def called(self, view: View, keys: Sequence[str], most: int) -> dict[str, tuple[str, ...]]:
        """See `Store.called`."""
        with self._read():
            return leads((CALLED,), self._index.shards(view), view, keys, most, self._allowed(view))

    def naming(self, view: View, keys: Sequence[str], most: int) -> dict[str, tuple[str, ...]]:
        """See `Store.naming`."""
        with self._read():
            return leads((CALLED, NAMING), self._index.shards(view), view, keys, most, self._allowed(view))

    def anchor_densities(self, view: View, ids: Sequence[str]) -> dict[str, float]:
        """See `Store.anchor_densities`."""
        with self._read():
            places = searching.located(self._index.shards(view), view, ids)
            return {
                unit_id: float(shard.column("anchor_density")[shard.place_of_id[unit_id]])
                for shard, unit_id in places
            }

    def visible(self, view: View, unit_id: str) -> str | None:
        """See `Store.visible`."""
        with self._read():
            row = self._visible_row(view, unit_id)
            if row is None:
                return "not found"
            if view.as_of is not None:
                then = {unit.id: unit for unit in self._index.past_units(view)}
                return None if unit_id in then else hidden_by(view, unit_of(row), *self._then(row, view))
            return hidden_by(view, unit_of(row), row[3], row[5])

    def _then(self, row: Row, view: View) -> tuple[str | None, str | None]:
        """Return what superseded and what covered a unit at the moment of a read of the past."""
        return then_by(self._run("lifetimes", {"key": row[0], "as_of": iso(view.as_of or view.now)}).fetchone())

    def speakers(self, view: View) -> tuple[str, ...]:
        """See `Store.speakers`."""
        with self._read():
            names = {name for shard in self._index.shards(view) for name in shard.speakers if name}
        return tuple(sorted(names))

    def sessions(self, view: View) -> list[str]:
        """See `Store.sessions`."""
        with self._read():
            rows = self._run("owner_sessions", {"tenant": view.tenant, "user": view.user}).fetchall()
        return [name for (name,) in rows]

    # ----------------------------------------------------------------------------------------- searching

    def lexical_candidates(self, view: View, query: LexicalQuery, depth: int, deadline: Deadline) -> Proposal:
        """See `Store.lexical_candidates`."""
        with self._read():
            return searching.propose(self._index.shards(view), view, query, depth, deadline, self._allowed(view))

    def lexical_evidence(self, view: View, terms: Sequence[str], ids: Sequence[str]) -> LexicalEvidence:
        """See `Store.lexical_evidence`."""
        with self._read():
            return searching.evidence(self._index.shards(view), view, terms, ids)

    def dense_candidates(self, view: View, query: DenseQuery, depth: int, deadline: Deadline) -> Proposal:
        """See `Store.dense_candidates`. The funnel is one sweep of a few milliseconds: it is not cut short."""
        with self._read():
            if self.space() != query.space:
                return Proposal(())
            found = searching.propose_dense(self._index.shards(view), view, query, depth, self._allowed(view))
            return Proposal(found.ids, exhausted=deadline.expired())

    def dense_evidence(self, view: View, space: str, ids: Sequence[str]) -> DenseEvidence:
        """See `Store.dense_evidence`."""
        with self._read():
            # An earlier version has no vector: the one that is kept is of the present words.
            now = {
                unit_id
                for shard, unit_id in searching.located(self._index.shards(view), view, ids)
                if shard.past is None
            }
            keys = self._keys(view, [unit_id for unit_id in ids if unit_id in now])
            rows = self._run("vectors_of_units", {"space": space, "keys": json.dumps([*keys])}).fetchall()
        matrix = [vector_of(row) for row in rows]
        return DenseEvidence(tuple(keys[row[0]] for row in rows), np.array(matrix, dtype=np.float32))

    def similar(
        self, view: View, space: str, vectors: NDArray[np.float32], depth: int, kind: Literal["turn", "durable"],
        itself: Sequence[str],
    ) -> list[list[float]]:  # fmt: skip
        """See `Store.similar`."""
        with self._read():
            if self.space() != space:
                return [[] for _ in itself]
            near = searching.alike(self._index.shards(view)[0], view, vectors, depth + 1, kind)
            kept = self.dense_evidence(view, space, [*dict.fromkeys(name for names in near for name in names)])
        row_of = {name: row for row, name in enumerate(kept.ids)}
        found = []
        for vector, names, own in zip(vectors, near, itself, strict=True):
            rows = [row_of[name] for name in names if name in row_of and name != own]
            exact = cosines(kept.vectors[rows], vector, len(vector)).tolist() if rows else []
            found.append(sorted(exact, reverse=True)[:depth])
        return found

    def facts(self, view: View) -> Facts:
        """See `Store.facts`."""
        with self._read():
            return facts(self._index.shards(view), view, self._allowed(view))

    def reset_hypervectors(self) -> None:
        """See `Store.reset_hypervectors`."""
        with self._read():
            self._index.reset_hypervectors()

    def hyper_candidates(self, view: View, query: HyperQuery, depth: int, deadline: Deadline) -> Proposal:
        """See `Store.hyper_candidates`."""
        with self._read():
            shards = self._index.shards(view)
            for shard in shards:
                self._index.encode(shard, shard.ids, deadline)
            return searching.propose_hyper(shards, view, query, depth, self._allowed(view))

    def hyper_evidence(self, view: View, query: HyperQuery, ids: Sequence[str]) -> HyperEvidence:
        """See `Store.hyper_evidence`."""
        with self._read():
            shards = self._index.shards(view)
            places = searching.located(shards, view, ids)
            parts = [np.zeros((0, len(HYPER_FIELDS)), dtype=np.int64)]
            for shard in shards:
                here = [unit_id for owner, unit_id in places if owner is shard]
                self._index.encode(shard, here, None)
                parts.append(shard.hyper.distances(query, here))
            found = tuple(unit_id for shard in shards for owner, unit_id in places if owner is shard)
            return HyperEvidence(found, np.concatenate(parts), searching.statistics(shards, view, ()).units)

    def _allowed(self, view: View) -> frozenset[int] | None:
        """Return the keys that pass the view's filters, or None when it has none."""
        if view.filters is None and view.as_of is None:
            return None
        visible, values = where(view, searching=True)
        return frozenset(key for (key,) in self._run("matching_keys", values, visible=visible))

    # ------------------------------------------------------------------------------------------- vectors

    def space(self) -> str | None:
        """See `Store.space`."""
        with self._read():
            return self._index.space()

    def agree_on_space(self, space: str) -> None:
        """See `Store.agree_on_space`."""
        with self._write():
            self._run("agree", {"name": _SPACE, "value": space})
            self._index.changed()

    def waiting(self, space: str, limit: int) -> list[Unit]:
        """See `Store.waiting`."""
        with self._read():
            rows = self._run("waiting_units", {"space": space, "limit": limit}).fetchall()
        return [unit_of(row) for row in rows]

    def waiting_count(self, space: str) -> int:
        """See `Store.waiting_count`."""
        with self._read():
            return int(self._run("waiting_count", {"space": space}).fetchone()[0])

    def put_vectors(
        self,
        space: str,
        units: Sequence[Unit],
        vectors: NDArray[np.float32],
        gates: Sequence[tuple[Unit, Gate]] = (),
    ) -> int:
        """See `Store.put_vectors`."""
        written = 0
        with self._write():
            agreed = self.space()
            if agreed is None:
                self._run("agree", {"name": _SPACE, "value": space})
            elif agreed != space:
                raise EmbeddingSpaceError(
                    f"the store holds vectors of {agreed}, not of {space}; run `holdfast reembed`"
                )
            for unit, vector in zip(units, vectors, strict=True):
                data = np.ascontiguousarray(vector, dtype="<f4").tobytes()
                row = {**columns(unit), "space": space, "vector": data, "checksum": zlib.crc32(data)}
                found = self._run("put_vector", row).fetchall()
                for (key,) in found:
                    self._record(key, unit)
                written += len(found)
            promoted = self._decide(gates)
        self._promoted(promoted)
        self._follow()
        return written

    # ------------------------------------------------------------------------------------------ contexts

    def access_counts(self, view: View, ids: Sequence[str]) -> tuple[dict[str, int], int]:
        """See `Store.access_counts`."""
        with self._read():
            keys, owner = self._keys(view, ids), {"tenant": view.tenant, "user": view.user}
            rows = self._run("access_counts", {**owner, "keys": json.dumps([*keys])}).fetchall()
            [most] = self._run("most_accessed", owner).fetchone()
        return {keys[key]: count for key, count in rows}, most

    def count_access(self, view: View, ids: Sequence[str]) -> None:
        """See `Store.count_access`."""
        # Own units only: a shared count would tell one user what another reads.
        with self._write():
            keys = self._keys(view, ids)
            self._run("count_access", {"tenant": view.tenant, "user": view.user, "keys": json.dumps([*keys])})

    def put_document(self, document: CoreDocument) -> None:
        """See `Store.put_document`."""
        row = {
            "tenant": document.tenant, "user": document.user or GLOBAL, "name": document.name, "path": document.path,
            "core": int(document.core), "body": document.body, "checksum": zlib.crc32(document.body),
            "given_to": self._place() if document.here else "",
        }  # fmt: skip
        with self._write():
            self._run("put_document", row)

    def _place(self) -> str:
        """Return what tells this store from a copy: where it lies, and the number of its file."""
        if self._location == ":memory:":
            return self._location
        try:
            return f"{os.path.realpath(self._location)} {Path(self._location).stat().st_ino}"
        except OSError:
            return ""

    def documents(self, view: View, *, core: bool = False, name: str | None = None) -> list[CoreDocument]:
        """See `Store.documents`."""
        wanted = {"tenant": view.tenant, "user": view.user, "least_core": int(core), "name": name}
        with self._read():
            rows = self._run("owner_documents", wanted).fetchall()
            here = self._place() if rows else ""
        found = []
        for _, user, called, path, is_core, body, checksum, given_to in rows:
            if zlib.crc32(body) != checksum:
                raise DamagedStoreError(f"the document {shown(called)} fails its checksum; ingest it again")
            found.append(
                CoreDocument(
                    view.tenant, user or None, called, body, path, bool(is_core), bool(here) and given_to == here
                )
            )
        return found

    def document_names(self, view: View) -> list[tuple[str, str | None, str]]:
        """See `Store.document_names`."""
        with self._read():
            rows = self._run("owner_document_names", {"tenant": view.tenant, "user": view.user}).fetchall()
        return [(name, user or None, path) for name, user, path in rows]

    def remove_document(self, document: CoreDocument) -> None:
        """See `Store.remove_document`."""
        with self._write():
            self._erase_documents([document])

    def parts(self, view: View, name: str, *, ended: bool = True) -> list[str]:
        """See `Store.parts`."""
        with self._read():
            found = [
                self._run("document_parts", {"tenant": view.tenant, "user": user, "name": name}).fetchall()
                for user in (view.user, GLOBAL)
            ]
        return [unit_id for unit_id, lasting in (found[0] or found[1]) if ended or lasting]

    def documents_of(self, view: View, ids: Sequence[str]) -> dict[str, str]:
        """See `Store.documents_of`."""
        keys = {"tenant": view.tenant, "user": view.user, "ids": json.dumps([*ids])}
        with self._read():
            return dict(self._run("documents_of_units", keys).fetchall())

    def _keys(self, view: View, ids: Sequence[str]) -> dict[int, str]:
        places = searching.located(self._index.shards(view), view, ids)
        return {shard.keys[shard.place_of_id[unit_id]]: unit_id for shard, unit_id in places}

    # ------------------------------------------------------------------------------------------ operating

    def stats(self, view: View, *, whole: bool = False) -> Stats:
        """See `Store.stats`."""
        keys = {"tenant": view.tenant, "user": view.user}
        with self._read():
            count, sessions, earliest, latest, versions = self._run("owner_stats", keys).fetchone()
            kinds = dict(self._run("owner_kinds", keys).fetchall())
            scopes = dict(self._run("owner_scopes", keys).fetchall())
            return Stats(
                units=count,
                versions=versions,
                sessions=sessions,
                by_kind=kinds,
                by_scope=scopes,
                earliest=from_iso(earliest) if earliest else None,
                latest=from_iso(latest) if latest else None,
                store_units=self._run("store_units", {}).fetchone()[0] if whole else None,
                store_bytes=self._run("store_bytes", {}).fetchone()[0] if whole else None,
                schema_version=schema_version(self._connection),
                location=self._name,
            )

    def verify(self) -> list[Problem]:
        """See `Store.verify`."""
        with self._read():
            return problems_in(self._connection, self._run)
