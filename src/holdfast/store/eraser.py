"""Erasing from a SQLite store and from its copies, and finishing what a reader held up (C19, law 16)."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Sequence
from pathlib import Path

from holdfast.errors import StoreError
from holdfast.store.backups import erase_copies, files_of, note_copies
from holdfast.store.database import Database
from holdfast.store.erasure import erase, erase_owner, residue, resting_on, surviving, windows
from holdfast.store.migrate import IN_MEMORY
from holdfast.store.rows import GLOBAL, unit_of
from holdfast.store.sync import LiveIndex
from holdfast.types import Document, Erasure, Unit, View

log = logging.getLogger("holdfast")
# An erasure whose old bytes a reader still holds on to is finished by whoever writes or opens next.
_ERASING = "erasing"
# A copy is nobody's working file; who holds it anyway is waited for by whoever forgets, and by no other write.
_COPY_PATIENCE_MS = 1000

Progress = Callable[[str], None]


class Eraser:
    """Erases units and documents, and every byte of them in the files of the store."""

    def __init__(self, database: Database, index: LiveIndex) -> None:
        self._database = database
        self._run = database.run
        self._index = index

    def forget(
        self, view: View, ids: Sequence[str], documents: Sequence[Document], *, owner: bool, progress: Progress
    ) -> Erasure:
        """Erase in one transaction, then write the files anew and prove that nothing is left; see `Store.forget`."""
        progress("erasing")
        with self._database.transaction():
            units = self._doomed(view, ids)
            summaries = tuple(resting_on(self._run, units))
            gone = (*units, *summaries)
            pieces = self._pieces(gone, documents)
            uncovered = erase(self._run, gone, self._database.record_change)
            for one in documents:
                keys = {"tenant": one.tenant, "user": one.user or GLOBAL, "name": one.name}
                self._run("erase_document", keys)
            self._run("agree", {"name": _ERASING, "value": "1"})
            note_copies(self._database, gone, documents, view if owner else None)
            if owner:
                self._database.forget_changes(view.tenant, view.user)
                erase_owner(self._run, view.tenant, view.user)
        progress("reaching copies")
        unreached, missing = self._reach_copies(pieces)
        held_up = self._scrub(pieces, (view.tenant, view.user) if owner else None, progress)
        named = {unit.id for unit in units}
        return Erasure(
            units=units,
            summaries=summaries,
            uncovered=tuple(unit_id for unit_id in uncovered if unit_id not in named),
            complete=not held_up and not unreached,
            pending=bool(held_up),
            reason=held_up,
            files=tuple(self._called(path) for path in self._files()),
            outside=(*unreached, *missing),
        )

    def preview(self, view: View, ids: Sequence[str]) -> Erasure:
        """Return what would be erased."""
        with self._database.snapshot():
            units = self._doomed(view, ids)
            return Erasure(units=units, summaries=tuple(resting_on(self._run, units)), complete=False)

    def _doomed(self, view: View, ids: Sequence[str]) -> tuple[Unit, ...]:
        return tuple(unit_of(self._database.find_seen(view, unit_id)) for unit_id in dict.fromkeys(ids))

    def _pieces(self, units: Sequence[Unit], documents: Sequence[Document]) -> list[bytes]:
        """Return what the proof will look for: words of every version, vectors, and documents."""
        texts: list[str] = []
        keys = []
        for unit in units:
            row = self._database.find(unit.tenant, unit.user, unit.id)
            assert row is not None  # noqa: S101 - the caller found it in this transaction
            keys.append(row[0])
            versions = [unit_of(old) for old in self._run("unit_versions", {"key": row[0]})]
            texts += [word for one in (unit, *versions) for word in _words(one)]
        vectors = [data for (data,) in self._run("vectors_of_keys", {"keys": json.dumps(keys)})]
        return windows([*texts, *(one.body.decode("utf-8", "replace") for one in documents)], vectors)

    def _reach_copies(self, pieces: Sequence[bytes]) -> tuple[list[str], list[str]]:
        """Erase from the copies; an error leaves them to the next write or open."""
        try:
            with self._database.in_use():
                return erase_copies(self._database, pieces, patience_ms=_COPY_PATIENCE_MS)
        except StoreError as error:
            return [f"backups ({error}; the next write or open tries again)"], []

    # ------------------------------------------------------------------------------------------- the files

    def _scrub(self, pieces: Sequence[bytes], owner: tuple[str, str] | None, progress: Progress) -> str:
        """Let no file of this store hold anything of what was erased; return why that is not proven, or nothing.

        The units are gone by now: an error here holds the rest up, and undoes nothing.
        """
        try:
            with self._database.in_use():
                self._index.drop_erased(owner)
                return self._scrub_files(pieces, progress)
        except (StoreError, OSError) as error:
            return str(error)

    def _scrub_files(self, pieces: Sequence[bytes], progress: Progress) -> str:
        # Deleted cells are overwritten, but pages that SQLite has moved keep old bytes in their gaps: only a file
        # that is written anew has none.
        if self._database.location == IN_MEMORY:
            return ""
        progress("writing the file anew")
        if not self._rewrite(wait=True):
            return "a reader still holds old bytes"
        if not self._files():
            return f"{self._database.location} is no longer there, so that nothing could be searched"
        progress("searching the files for what is left")
        location = self._database.location
        left = {piece for path in self._files() for piece in residue(location, path, pieces)}
        if left - surviving(self._run, left):
            return "bytes of it are left in the file"
        self._finish()
        return ""

    def _rewrite(self, *, wait: bool) -> bool:
        """Write the file anew, and empty its log; return whether no reader prevents it."""
        if not self._truncate_log(wait=wait):
            return False
        self._database.connection.execute("VACUUM")
        return self._truncate_log(wait=wait)

    def _truncate_log(self, *, wait: bool) -> bool:
        """Empty the write-ahead log; a reader that still needs it prevents that."""
        connection = self._database.connection
        [patience] = connection.execute("PRAGMA busy_timeout").fetchone()
        connection.execute(f"PRAGMA busy_timeout = {patience if wait else 0}")
        try:
            busy, _, _ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        finally:
            connection.execute(f"PRAGMA busy_timeout = {patience}")
        return not busy

    def _finish(self) -> None:
        """Say that an erasure has nothing left to do, unless copies are still to be reached."""
        if not self._run("noted_copies", {}).fetchall():
            with self._database.transaction():
                self._run("disagree", {"name": _ERASING})

    def _files(self) -> list[str]:
        """Return the files of this store that exist."""
        return [] if self._database.location == IN_MEMORY else files_of(self._database.location)

    def _called(self, path: str) -> str:
        """Return what the opener calls a file, as long as that name leads there."""
        location, name = self._database.location, self._database.name
        leads_there = str(Path(name).absolute()) == location
        return path.replace(location, name, 1) if leads_there else path

    # ------------------------------------------------------------------------------------------- finishing

    def finish(self) -> bool:
        """Go on with an erasure that was held up; return whether nothing is left to do."""
        with self._database.in_use():
            if self._database.agreed(_ERASING) is None:
                return True
            unreached, _ = erase_copies(self._database, (), patience_ms=0)
            if unreached or not self._truncate_log(wait=False):
                return False
            self._index.drop_all()
            if not self._rewrite(wait=False):
                return False
            self._finish()
            return True

    def finish_if_possible(self) -> None:
        """Go on with a pending erasure; one that cannot go on keeps nobody from reading or writing."""
        try:
            self.finish()
        except (StoreError, OSError) as error:
            log.warning("an erasure is not finished yet, and stays pending: %s", error)


def _words(unit: Unit) -> list[str]:
    """Return whatever of a unit its row holds as text."""
    other = (unit.topic, unit.condition, unit.utility_note, unit.claim, unit.procedure)
    given = [json.dumps(unit.metadata, ensure_ascii=False)] if unit.metadata else []
    return [unit.text, *(text for text in other if text and text != unit.text), *given]
