"""Forgetting (C19): what a request to forget names, before anything is erased."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from holdfast.errors import InputError, NotFoundError, shown
from holdfast.store.base import Store
from holdfast.types import CoreDocument, Unit, View

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
    """The units and documents that are to go."""

    ids: tuple[str, ...]
    documents: tuple[CoreDocument, ...]


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
    own = _own(store, dataclasses.replace(view, filters=None, session=None, only_session=False))
    if wanted.document is not None:
        return _document(store, view, own, wanted.document)
    if wanted.everything:
        documents = tuple(one for one in store.documents(view) if one.user == view.user)
        return Selection(tuple(unit.id for unit in own), documents)
    found = _own(store, view)
    if wanted.filtered and found and len(found) == len(own):
        raise InputError(
            f"the filter matches all {len(own)} units of user {shown(view.user)}; "
            "narrow it, or say all=True (--all) to forget everything"
        )
    return _with_documents(store, view, found, tuple(unit.id for unit in found))


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
    """Return the user's own units that a view names, whatever became of them; what is everyone's is not theirs."""
    everything = dataclasses.replace(
        view, now=_BEFORE_EXPIRY, current_only=False, only_session=view.session is not None
    )
    return [unit for unit in store.scan(everything, order="oldest", limit=None) if unit.user == view.user]


def _document(store: Store, view: View, own: Sequence[Unit], name: str) -> Selection:
    kept = [one for one in store.documents(view) if one.name == name]
    if not kept:
        names = ", ".join(sorted({one.name for one in store.documents(view)})) or "none"
        raise NotFoundError(f"there is no document {shown(name)}; there is {names}")
    document = kept[-1]
    shared = dataclasses.replace(view, user="") if document.user is None else view
    units = own if document.user is not None else _own_of_everyone(store, shared)
    return Selection(tuple(unit.id for unit in units if document_of(unit) == name), (document,))


def _own_of_everyone(store: Store, view: View) -> list[Unit]:
    everything = dataclasses.replace(
        view, now=_BEFORE_EXPIRY, current_only=False, filters=None, session=None, only_session=False
    )
    return [unit for unit in store.scan(everything, order="oldest", limit=None) if unit.user is None]


def document_of(unit: Unit) -> str | None:
    """Return the name of the document that a unit is part of; its id leads with it."""
    return unit.id.rpartition("#")[0] or None if unit.author == "document" and "#" in unit.id else None


def _with_documents(store: Store, view: View, units: Sequence[Unit], ids: tuple[str, ...]) -> Selection:
    """Let a document go with all of its units; a part of one cannot be erased, because its text is kept whole."""
    chosen = {unit.id for unit in units}
    documents = []
    for kept in store.documents(view):
        parts = [unit for unit in units if document_of(unit) == kept.name and unit.user == kept.user]
        if not parts:
            continue
        whole = _document(store, view, _own(store, dataclasses.replace(view, filters=None, session=None)), kept.name)
        present = [unit for unit in parts if unit.expires_at is None]
        if not present:  # what an earlier reading said: the document as it is kept no longer has it
            continue
        if left := [unit_id for unit_id in whole.ids if unit_id not in chosen]:
            raise InputError(
                f"{shown(present[0].id)} is part of the document {shown(kept.name)}, of which {len(left)} more units "
                "are kept; forget the whole document, or ingest it again without that part and then forget this"
            )
        documents.append(kept)
    return Selection(ids, tuple(documents))
