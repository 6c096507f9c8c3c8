"""Forgetting (C19): what a request to forget names, before anything is erased."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from holdfast.errors import InputError, NotFoundError, shown
from holdfast.store.contract import Store
from holdfast.types import Document, Unit, View

# Before anything expires: whoever forgets means what has expired too.
_BEFORE_EXPIRY = datetime(1, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a caller wants to be forgotten: exactly one of these, or `everything` the user has."""

    ids: tuple[str, ...] = ()
    session: str | None = None
    document: str | None = None
    filtered: bool = False
    everything: bool = False


@dataclass(frozen=True, slots=True)
class Selection:
    """The units and documents that are to go; `everyones` when they are not the user's own."""

    ids: tuple[str, ...]
    documents: tuple[Document, ...]
    everyones: bool = False


def select(store: Store, view: View, wanted: Wanted) -> Selection:
    """Return what is to be erased.

    Raises:
        InputError: nothing or too much is named; or a unit is part of a document of which more is kept.
        NotFoundError: there is no such document.
    """
    _refuse_unclear(wanted)
    if wanted.ids:
        known = store.units(view, wanted.ids)
        return _with_documents(store, view, [known[name] for name in wanted.ids if name in known], wanted.ids)
    if wanted.document is not None:
        return _document(store, view, wanted.document)
    own = _own(store, dataclasses.replace(view, filters=None, session=None, only_session=False))
    if wanted.everything:
        documents = tuple(one for one in store.documents(view) if one.user == view.user)
        return Selection(tuple(unit.id for unit in own), documents)
    found = _own(store, view)
    if not found and wanted.session is not None:
        raise NotFoundError(f"user {shown(view.user)} has nothing in session {shown(wanted.session)}; check its name")
    if wanted.filtered and found and len(found) == len(own):
        raise InputError(
            f"the filter matches all {len(own)} units of user {shown(view.user)}; "
            "narrow it, or say all=True (--all) to forget everything"
        )
    return _with_documents(store, view, found, tuple(unit.id for unit in found))


def has_ended(unit: Unit) -> bool:
    """Return whether a document no longer says a part of it; one that was given a time to live is still in its text.

    A document ends a part at the moment it is read; of a part that was changed since, only the next reading tells.
    """
    return unit.expires_at == unit.recorded_time


def _refuse_unclear(wanted: Wanted) -> None:
    named = {
        "ids": bool(wanted.ids),
        "document": wanted.document is not None,
        "all": wanted.everything,
        "session or filters": wanted.session is not None or wanted.filtered,
    }
    chosen = [name for name, given in named.items() if given]
    if not chosen:
        raise InputError("nothing to forget is named; give ids, a session, filters, a document, or all=True (--all)")
    if len(chosen) > 1:
        raise InputError(f"{' and '.join(chosen)} cannot go together; name what to forget in one way")


def _own(store: Store, view: View) -> list[Unit]:
    """Return the user's own units that a view names, whatever became of them.

    What is everyone's is not one user's to forget so, and what all agents share is not one agent's.
    """
    everything = dataclasses.replace(
        view, now=_BEFORE_EXPIRY, current_only=False, only_session=view.session is not None, hide_covered=False
    )
    found = store.scan(everything, order="oldest", limit=None)
    return [unit for unit in found if unit.user == view.user and view.agent in (unit.agent, None)]


def _document(store: Store, view: View, name: str) -> Selection:
    kept = store.documents(view, name=name)
    if not kept and (past := store.parts(view, name)):  # its file was deleted: its units have ended, and are kept
        return Selection(tuple(past), ())
    if not kept:
        names = ", ".join(sorted({one for one, _, _ in store.document_names(view)})) or "none"
        raise NotFoundError(f"there is no document {shown(name)}; there is {names}")
    document = next((one for one in kept if one.user is not None), kept[0])
    return Selection(_parts(store, view, document), (document,), everyones=document.user is None)


def _parts(store: Store, view: View, document: Document) -> tuple[str, ...]:
    """Return the units of one document, past ones too."""
    return tuple(store.parts(dataclasses.replace(view, user=document.user or ""), document.name))


def _with_documents(store: Store, view: View, units: Sequence[Unit], ids: tuple[str, ...]) -> Selection:
    """Let a document go with all of its units; a part of one cannot be erased, because its text is kept whole."""
    chosen = {unit.id for unit in units}
    documents = []
    documents_of = store.documents_of(view, [unit.id for unit in units])
    names = {(documents_of.get(unit.id), unit.user) for unit in units if not has_ended(unit)}
    for name, user in sorted((name, user or "") for name, user in names if name is not None):
        for kept in store.documents(view, name=name):
            if (kept.user or "") != user:
                continue
            if left := [unit_id for unit_id in _parts(store, view, kept) if unit_id not in chosen]:
                part = next(unit.id for unit in units if documents_of.get(unit.id) == name)
                raise InputError(
                    f"{shown(part)} is part of the document {shown(name)}, of which {len(left)} more units are kept; "
                    "forget the whole document, or ingest it again without that part and then forget this"
                )
            documents.append(kept)
    return Selection(ids, tuple(documents))
