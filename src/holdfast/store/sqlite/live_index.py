"""The index of one store in this process: loaded owner by owner, in step with the feed, saved beside the file."""

from __future__ import annotations

import json
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.store.contract import CARRYING_MODELS, Derivation
from holdfast.store.rows import EPOCH, GLOBAL, SPACE, Fresh, copy_json, read_fitting, unit_of
from holdfast.store.sqlite import index_file
from holdfast.store.sqlite.analyses import AnalysisRows
from holdfast.store.sqlite.blocks import CARRIED, Funnel, VectorCache
from holdfast.store.sqlite.migrate import IN_MEMORY
from holdfast.store.sqlite.shard import Shard
from holdfast.store.sqlite.sqlite_database import Database
from holdfast.store.visibility import agent_matches, hidden_reason, state_as_of
from holdfast.types import Deadline, Unit, View, iso
from holdfast.values import dataclass

# Smaller owners are built again faster than a file is read.
_WORTH_SAVING = 1000
# A snapshot that is this many changes behind, and this share of its units, is written again: a unit is two changes.
# Who opens the store after a kill reads so much unit by unit, 60 µs each; writing it costs 8 % of what ingest costs.
_FAR_BEHIND = 10_000
_BEHIND_SHARE = 0.1
# An owner's vectors are measured when there are so many, and each time that there are twice as many, up to the last;
# beyond it the width grows with the owner. Below the first a sweep over all dimensions is as fast as a funnel.
_FIRST_MEASURED, _LAST_MEASURED = 8192, 65_536
# Large enough that a batch costs more than its call, small enough to stop soon when time runs out.
_ENCODED_TOGETHER = 64
_VECTORS_TOGETHER = 4096
# As many keys as one statement takes at once.
_READ_TOGETHER = 1024
# The same units are recalled again and again: a few megabytes spare reading and parsing a busy owner's each time.
_UNITS_KEPT = 32_768
# An index of a small owner takes some 30 kB: names that never come back must not fill the memory of a long process.
_OWNERS_KEPT = 256


@dataclass(frozen=True, slots=True)
class ErasedOwner:
    """An owner that was erased, and the epochs before and after it."""

    tenant: str
    user: str
    before: str | None
    after: str


_NOTHING_FRESH = Fresh()
# Key, checksum, superseded by, covered by, and the checksum of the vector, of a unit as the file has it.
RowState = tuple[int, int, str | None, str | None, int | None]


class LiveIndex:
    """Shards by owner. The caller holds the store's lock and has checked that it is open."""

    def __init__(self, database: Database, derivation: Derivation) -> None:
        self._database = database
        self._run = database.run
        self._derivation = derivation
        self.analyses = AnalysisRows(database, derivation)
        self._path = None if database.location == IN_MEMORY else Path(f"{database.location}.index")
        self._shards: dict[tuple[str, str], Shard] = {}
        self._followed = 0
        self._data_version = -1
        self._space: str | None = None
        self._dims: int | None = None  # of the vectors of that space, once the embedder has said so
        self._epoch: tuple[str] | None = None
        self._read: dict[int, tuple[int, Unit]] = {}
        self.vectors = VectorCache()
        self._past_read: tuple[object, list[Shard]] | None = None
        self._saved: dict[tuple[str, str], int] = {}

    def shards(self, view: View) -> list[Shard]:
        """Return the shards a view may see, up to date: the user's own, then the global one."""
        self.follow()
        # Who asks for everyone's units has no others: nothing is there, or counted, twice.
        present = [self._shard(view.tenant, user) for user in dict.fromkeys((view.user, GLOBAL))]
        return present if view.as_of is None else [*self._past(view), *present]

    def past_units(self, view: View) -> list[Unit]:
        """Return, as they were at the moment of a read of the past, the visible units that were rewritten since."""
        return [unit for shard in self.shards(view) if shard.past is not None for unit in shard.past.values()]

    def _past(self, view: View) -> list[Shard]:
        """Return the earlier versions that a read of the past needs, as shards that hide the present ones."""
        key = (view, self._followed)
        if self._past_read is None or self._past_read[0] != key:
            self._past_read = (key, self._past_shards(view))
        return self._past_read[1]

    def _past_shards(self, view: View) -> list[Shard]:
        moment = {"as_of": iso(view.as_of or view.now)}
        owner = {"tenant": view.tenant, "user": view.user}
        keys = [key for key, _ in self._run("rewritten_since", {**owner, **moment})]
        then = {row[0]: row for row in self._run("versions_by", {"keys": json.dumps(keys), **moment})}
        shard, own = Shard(self._derivation.tokens), self._shard(view.tenant, view.user)
        shard.past = {}
        for row in then.values():
            unit = unit_of(row)
            # A user's own unit hides everyone's of the same id.
            if unit.user is None and view.user != GLOBAL and own.shows(unit.id, view):
                continue
            lifetimes = self._run("lifetimes", {"key": row[0], **moment}).fetchone()
            if agent_matches(view, unit) and hidden_reason(view, unit, *state_as_of(lifetimes)) is None:
                shard.add(row[0], unit, self._derivation.analyse(unit), content=row[2], superseded=False)
                shard.past[unit.id] = unit
        self._add_past_vectors(shard)
        return [shard] if shard.past else []

    def _add_past_vectors(self, shard: Shard) -> None:
        versions = {
            key: (shard.past or {})[unit_id].version for key, unit_id in zip(shard.keys, shard.ids, strict=True)
        }
        rows = self._run("vectors_of_versions", {"space": self._space, "keys": json.dumps(shard.keys)})
        self._add_vectors(shard, [row[:3] for row in rows if row[3] == versions[row[0]]])

    def fit_vectors(self, dims: int) -> None:
        """Search vectors of so many numbers, as the embedder makes them, and no others."""
        if dims in (0, self._dims):  # who only reads vectors asks with none
            return
        self._dims, self._past_read = dims, None
        for owner, shard in self._shards.items():
            if shard.dense is not None and shard.dense.dims != dims:
                self._exchange_vectors(shard, *owner)

    def _add_vectors(self, shard: Shard, rows: Sequence[tuple[int, bytes, int]]) -> None:
        """Add stored vectors that fit: before the embedder is known, those that are as long as most."""
        known = self._dims if shard.dense is None else self._dims or shard.dense.dims
        fitting, matrix = read_fitting(rows, known)
        shard.add_vectors([(row[0], vector, row[2]) for row, vector in zip(fitting, matrix, strict=True)])

    def has_loaded(self, view: View) -> bool:
        """Return whether the index of an owner is in memory, or is needed for a read of the past."""
        return (view.tenant, view.user) in self._shards or view.as_of is not None

    def units(self, shard: Shard, places: NDArray[np.intp]) -> dict[str, Unit]:
        """Return units by id; those that were read before and have not changed since are not read again."""
        ids = [shard.ids[place] for place in places.tolist()]
        if shard.past is not None:
            return {unit_id: copy_json(shard.past[unit_id]) for unit_id in ids}
        keys = [shard.keys[place] for place in places.tolist()]
        contents, kept, nothing = shard.column("content")[places].tolist(), self._read, (None, None)
        missing = [key for key, content in zip(keys, contents, strict=True) if kept.get(key, nothing)[0] != content]
        if missing and len(kept) + len(missing) > _UNITS_KEPT:
            kept.clear()
            missing = keys
        for row in self._run("units_by_key", {"keys": json.dumps(missing)}) if missing else ():
            kept[row[0]] = (row[2], unit_of(row))
        rows = zip(ids, contents, (kept.get(key, nothing) for key in keys), strict=True)
        found = {unit_id: unit for unit_id, content, (of, unit) in rows if unit is not None and of == content}
        return {unit_id: copy_json(unit) for unit_id, unit in found.items()}

    def promoted(self, tenant: str, user: str, key: int, before: int, content: int) -> None:
        """Say that a unit of this process became durable: only its mark changes."""
        shard = self._shards.get((tenant, user))
        if shard is not None:
            shard.promote(key, before, content)

    def drop_erased(self, owners: AbstractSet[tuple[str, str]], owner: ErasedOwner | None = None) -> None:
        """Let nothing that was derived hold words of what this process has erased, on disk neither (law 16).

        `owners` are those who had something of it. With `owner`, all of that owner's is gone, and its rows of the
        feed with it. When somebody else began an epoch meanwhile, nobody knows what else is gone: `follow` sees that,
        and forgets everything.
        """
        if owner is not None:
            self._shards.pop((owner.tenant, owner.user), None)
            if self._epoch == (None if owner.before is None else (owner.before,)):
                self._epoch = (owner.after,)
        self.follow()
        for one in owners & self._shards.keys():
            self._shards[one].fold()
        self._read.clear()
        self.analyses.clear()
        self.vectors.clear()
        self._past_read = None
        # What is everyone's stands in what others say; in a new epoch no segment is read any more.
        if owner is not None or any(user == GLOBAL for _, user in owners):
            self._drop_saved()
        elif self._path is not None:
            for one in owners:
                self._saved.pop(one, None)
            index_file.erase(self._path, owners)

    def drop_all(self) -> None:
        """Forget everything that was derived, on disk too: another process may have erased anything."""
        self.clear()
        self._drop_saved()

    def _drop_saved(self) -> None:
        self._saved.clear()
        if self._path is not None:
            index_file.remove(self._path)

    def clear(self) -> None:
        """Forget everything; what is asked for next is loaded again."""
        self._shards.clear()
        self._read.clear()
        self.analyses.clear()
        self.vectors.clear()
        self._past_read = None

    # -------------------------------------------------------------------------------------------- following

    def follow(self, fresh: Fresh = _NOTHING_FRESH) -> None:
        """Bring the loaded shards up to date with the feed; `fresh` spares analysing what was just written."""
        version = self._run("data_version", {}).fetchone()[0]
        if version == self._data_version and not self._database.written:
            return
        before, self._space = self._space, self.space()
        if before not in (self._space, None):  # changed here or elsewhere: no vector of the old space may be searched
            self._dims = None
            shards, self._shards, self._past_read = self._shards, {}, None  # after a read that fails: built anew
            for owner, shard in shards.items():
                self._exchange_vectors(shard, *owner)
                self._shards[owner] = shard
        epoch = self._run("agreed", {"name": EPOCH}).fetchone()
        if epoch != self._epoch:
            self.clear()
        self._epoch = epoch
        if not self._shards:
            self._followed = self._last_change()
        changed: dict[tuple[str, str], dict[int, None]] = {}
        last = self._followed
        for last, tenant, user, key in self._run("changes_since", {"seq": self._followed}):  # noqa: B007 - kept
            if (tenant, user) in self._shards:
                changed.setdefault((tenant, user), {})[key] = None
        for owner, keys in changed.items():
            self._refresh(self._shards[owner], [*keys], fresh)
            self._shards[owner].funnel = self._funnel(*owner)
        # Only now, so that a read that fails is done again.
        self._followed = last
        self._data_version, self._database.written = version, False

    def space(self) -> str | None:
        """Return the embedding space the store agreed on."""
        return self._database.agreed(SPACE)

    def _last_change(self) -> int:
        return int(self._run("last_change", {}).fetchone()[0])

    def _refresh(self, shard: Shard, keys: Sequence[int], fresh: Fresh = _NOTHING_FRESH) -> None:
        """Bring some units of a shard up to date; only what is neither held nor fresh is read whole."""
        for start in range(0, len(keys), _READ_TOGETHER):
            some = keys[start : start + _READ_TOGETHER]
            states = self._run("unit_states", {"keys": json.dumps(some), "space": self._space}).fetchall()
            for key in {*some}.difference(state[0] for state in states):
                self._read.pop(key, None)
                shard.remove(key)
            unread = [state[0] for state in states if not self._refresh_unit(shard, state, fresh)]
            known = {"keys": json.dumps(unread), **self.analyses.keys}
            for row in self._run("analysed_units", known) if unread else ():
                self._add(shard, row)
            for state in states:
                if state[4] is None:
                    shard.drop_vector(state[0])
            self._refresh_vectors(shard, [(state[0], state[4]) for state in states if state[4] is not None], fresh)

    def _refresh_unit(self, shard: Shard, state: RowState, fresh: Fresh) -> bool:
        """Bring one unit up to date without reading it; return whether that was possible."""
        key, content, superseded_by, covered_by, _ = state
        self._read.pop(key, None)
        if shard.holds(key, content):
            shard.mark(key, superseded=superseded_by is not None, covered_by=covered_by)
            return True
        checksum, unit, analysis = fresh.units.get(key, (None, None, None))
        if checksum != content or unit is None or analysis is None:
            return False
        superseded = superseded_by is not None
        shard.add(key, unit, analysis, content=content, superseded=superseded, covered_by=covered_by)
        return True

    def _refresh_vectors(self, shard: Shard, vectors: Sequence[tuple[int, int]], fresh: Fresh) -> None:
        """Add the vectors, by key and checksum, that a shard does not have yet."""
        wanted = [one for one in vectors if not shard.has_vector(*one)]
        known = [(key, fresh.vectors[key][1], sum_) for key, sum_ in wanted if _is_fresh(fresh, key, sum_)]
        unread = [key for key, checksum in wanted if not _is_fresh(fresh, key, checksum)]
        if unread:
            rows = self._run("vectors_of_units", {"space": self._space, "keys": json.dumps(unread)})
            self._add_vectors(shard, rows.fetchall())
        shard.add_vectors(known)

    def _add(self, shard: Shard, found: Sequence[Any]) -> None:
        row, unit, analysis = self.analyses.read(found)
        shard.add(row[0], unit, analysis, content=row[2], superseded=row[3] is not None, covered_by=row[5])

    # ---------------------------------------------------------------------------------------------- loading

    def _shard(self, tenant: str, user: str) -> Shard:
        shard = self._shards.pop((tenant, user), None)
        if shard is None:
            shard = self._restored(tenant, user) or self._built(tenant, user)
            shard.funnel = self._funnel(tenant, user)
        self._shards[tenant, user] = shard  # the last one asked for is the last to go
        if len(self._shards) > _OWNERS_KEPT:
            longest_unasked = next(iter(self._shards))
            del self._shards[longest_unasked]
            self._saved.pop(longest_unasked, None)
            self._read.clear()  # nobody hears of changes to units of an owner that is not followed
        return shard

    def _funnel(self, tenant: str, user: str) -> Funnel | None:
        """Return what is known of an owner's vectors: the same in every process, because it is of the store."""
        if (self._space or "").startswith(CARRYING_MODELS):
            return CARRIED
        row = self._run("funnel", {"tenant": tenant, "user": user, "space": self._space}).fetchone()
        return None if row is None else Funnel(*row)

    def measure_funnel(self, tenant: str, user: str) -> Funnel | None:
        """Measure the vectors of an owner that is loaded, when there are many more than when that was last done."""
        shard = self._shards.get((tenant, user))
        if shard is None or shard.unit_count < _FIRST_MEASURED or shard.funnel is CARRIED:
            return None
        rows = _FIRST_MEASURED << ((min(shard.unit_count, _LAST_MEASURED) // _FIRST_MEASURED).bit_length() - 1)
        return shard.measure_funnel(rows) if shard.funnel is None or shard.funnel.rows < rows else None

    def _restored(self, tenant: str, user: str) -> Shard | None:
        """Return the owner's shard from the snapshot, brought up to date, or None."""
        for segment in self._segments((tenant, user)):
            try:
                arrays = index_file.unpack(segment.data)
                *origin, space = index_file.unpack_words(arrays["origin"])
                *expected, present = self._origin(tenant, user, segment.seq)
                if origin != expected:
                    return None
                shard = Shard.from_arrays(arrays, self._derivation.tokens)
            except index_file.UNREADABLE:
                return None
            if space != present:
                self._exchange_vectors(shard, tenant, user)
            owner = {"tenant": tenant, "user": user}
            changed = self._run("owner_changes_since", {**owner, "seq": segment.seq})
            with shard.bulk():
                self._refresh(shard, [*dict.fromkeys(key for _, key in changed)])
            self._saved[tenant, user] = segment.seq
            return shard
        return None

    def _origin(self, tenant: str, user: str, seq: int) -> list[str]:
        """Return what a segment was derived from. The mark of a change tells two histories of one file apart."""
        row = self._run("change_mark", {"seq": seq}).fetchone()
        return [tenant, user, str(seq), str(row[0]) if row else "", self._space or ""]

    def _segments(self, owner: tuple[str, str] | None = None) -> list[index_file.IndexSegment]:
        """Return the segments that are not from the future of this file, as after a restored backup."""
        if self._path is None:
            return []
        last = self._last_change()
        return [one for one in index_file.read(self._path, self._derived_from(), owner) if one.seq <= last]

    def _derived_from(self) -> str:
        """Return what a snapshot must agree with; in a new epoch an old one may hold what was erased."""
        epoch = self._epoch[0] if self._epoch else ""
        return f"{self._database.identity} {self._derivation.fingerprint} {epoch}"

    def _built(self, tenant: str, user: str) -> Shard:
        shard, owner = Shard(self._derivation.tokens), {"tenant": tenant, "user": user}
        with shard.bulk():
            for row in self._run("owner_units", {**owner, **self.analyses.keys}):
                self._add(shard, row)
        self._exchange_vectors(shard, tenant, user)
        return shard

    def _exchange_vectors(self, shard: Shard, tenant: str, user: str) -> None:
        """Let a shard have the stored vectors of the present space, and no others; its words stay as they are."""
        shard.dense = None
        cursor = self._run("owner_vectors", {"tenant": tenant, "user": user, "space": self._space})
        while rows := cursor.fetchmany(_VECTORS_TOGETHER):
            self._add_vectors(shard, rows)
        shard.funnel = self._funnel(tenant, user)

    # ----------------------------------------------------------------------------------------------- saving

    def save_when_behind(self) -> None:
        """Write the snapshot when it has fallen far behind: whoever opens the store after a kill reads little."""
        behind = (
            self._followed - self._saved.get(owner, 0) > max(_FAR_BEHIND, _BEHIND_SHARE * shard.unit_count)
            for owner, shard in self._shards.items()
            if shard.unit_count >= _WORTH_SAVING
        )
        if self._path is not None and any(behind):
            self.save()

    def save(self) -> None:
        """Write the snapshot when a large owner has changed since; owners that are not loaded keep their segment.

        It is written while nobody else writes to the store, so that an interruption leaves nothing in it that was
        erased before.

        Raises:
            OSError: the file cannot be written.
        """
        if self._path is None:
            return
        self.follow()
        large = {owner: shard for owner, shard in self._shards.items() if shard.unit_count >= _WORTH_SAVING}
        if all(self._saved.get(owner) == self._followed for owner in large):
            return
        # A segment that the feed has gone past may hold words that were erased since: its owner loads anew.
        kept = [
            one
            for one in self._segments()
            if (one.tenant, one.user) not in large
            and self._run("owner_changes_since", {"tenant": one.tenant, "user": one.user, "seq": one.seq}).fetchone()
            is None
        ]
        fresh = [
            index_file.IndexSegment(*owner, self._followed, self._packed(owner, shard))
            for owner, shard in large.items()
        ]
        with self._database.transaction():
            # Nobody erases meanwhile. Who has done so since the feed was followed has looked for this file already.
            epoch = self._run("agreed", {"name": EPOCH}).fetchone()
            if (self._last_change(), epoch) != (self._followed, self._epoch):
                return
            self.analyses.write_waiting()
            index_file.write(self._path, self._derived_from(), [*kept, *fresh])
        self._saved |= dict.fromkeys(large, self._followed)

    def _packed(self, owner: tuple[str, str], shard: Shard) -> bytes:
        origin = index_file.pack_words(self._origin(*owner, self._followed))
        return index_file.pack({**shard.to_arrays(), "origin": origin})

    # --------------------------------------------------------------------------------------------- encoding

    def encode(self, shard: Shard, ids: Sequence[str], deadline: Deadline | None) -> None:
        """Fill the shard's cache of hypervectors for `ids`, as far as time allows."""
        if shard.past is not None:
            return
        contents = shard.column("content")
        living = [unit_id for unit_id in dict.fromkeys(ids) if unit_id in shard.place_of_id]
        missing = shard.hyper.missing([(i, int(contents[shard.place_of_id[i]])) for i in living])
        for start in range(0, len(missing), _ENCODED_TOGETHER):
            if deadline is not None and deadline.expired():
                return
            batch = missing[start : start + _ENCODED_TOGETHER]
            keys = [shard.keys[shard.place_of_id[unit_id]] for unit_id in batch]
            for row in self._run("units_by_key", {"keys": json.dumps(keys)}).fetchall():
                unit = unit_of(row)
                vectors = self._derivation.hypervectors(unit, self._derivation.analyse(unit))
                shard.hyper.add(unit.id, row[2], vectors)


def _is_fresh(fresh: Fresh, key: int, checksum: int) -> bool:
    return key in fresh.vectors and fresh.vectors[key][0] == checksum
