"""Forgetting (C19): what a request to forget names, and what is made again of what is left."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from holdfast.errors import HoldfastError, InputError, NotFoundError, quote_value
from holdfast.messages.checks import check_flag, check_name, check_names
from holdfast.store.contract import NO_DEADLINE, NO_LIMIT, Store, read_once
from holdfast.store.queries import DocumentQuery
from holdfast.types import Document, Erasure, Unit, View
from holdfast.types.outcomes import StepProgress
from holdfast.values import dataclass

log = logging.getLogger("holdfast")

# Documents that an error names: enough to see which was meant.
_MOST_NAMED = 20
# Before anything expires: whoever forgets means what has expired too.
_BEFORE_EXPIRY = datetime(1, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class ForgetRequest:
    """What a caller wants to be forgotten: exactly one of these, or `everything` the user has."""

    ids: tuple[str, ...] = ()
    session: str | None = None
    document: str | None = None
    filtered: bool = False
    everything: bool = False


def make_request(
    view: View, ids: str | Sequence[str] | None, document: str | None, everything: object
) -> ForgetRequest:
    """Return what a caller names, checked; a session and filters are the view's."""
    return ForgetRequest(
        ids=check_names("ids", ids) or (), session=view.session, filtered=view.filters is not None,
        document=check_name("document", document, optional=True), everything=check_flag("all", everything),
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class ErasureTargets:
    """The units and documents that are to go; `everyones` when they are not the user's own."""

    ids: tuple[str, ...]
    documents: tuple[Document, ...]
    everyones: bool = False


def erase(
    store: Store, view: View, wanted: ForgetRequest, progress: StepProgress, *, dry_run: bool, compact: bool,
    rebuild: Callable[[View, Sequence[Unit]], Sequence[str]],
) -> Erasure:  # fmt: skip
    """Erase what is wanted, in every file, and make summaries again of what is left."""
    chosen = select(store, view, wanted)
    view = dataclasses.replace(view, user="") if chosen.everyones else view
    erasure = store.forget(
        view, chosen.ids, chosen.documents, dry_run=dry_run, owner=wanted.everything and view.agent is None,
        compact=compact, progress=progress,
    )  # fmt: skip
    erasure = dataclasses.replace(erasure, documents=tuple(one.name for one in chosen.documents), dry_run=dry_run)
    if dry_run or not erasure.uncovered:
        return erasure
    try:
        return dataclasses.replace(erasure, rebuilt=tuple(rebuild(view, erasure.summaries)))
    except HoldfastError as error:
        # What was to go is gone; the turns that are left are found by themselves until the next compaction.
        log.warning("summaries of what is left are not made now: %s", error)
        return erasure


def select(store: Store, view: View, request: ForgetRequest) -> ErasureTargets:
    """Return what is to be erased.

    Raises:
        InputError: nothing or too much is named; or a unit is part of a document of which more is kept.
        NotFoundError: there is no such document.
    """
    _refuse_unclear(request)
    with store.reading(view):  # what is read inside is one state
        return _select(store, view, request)


def _select(store: Store, view: View, request: ForgetRequest) -> ErasureTargets:
    if request.ids:
        known = read_once(store, view, lambda reading: reading.units(request.ids))
        return _with_documents(store, view, [known[name] for name in request.ids if name in known], request.ids)
    if request.document is not None:
        return _document(store, view, request.document)
    if request.everything:
        documents = read_once(store, view, lambda reading: reading.documents())
        # All that a user has is erased without being named; of one agent, only what is its own.
        ids = () if view.agent is None else tuple(unit.id for unit in _own(store, view))
        return ErasureTargets(ids, tuple(one for one in documents if one.user == view.user))
    found = _own(store, view)
    if not found and request.session is not None:
        raise NotFoundError(
            f"user {quote_value(view.user)} has nothing in session {quote_value(request.session)}; check its name"
        )
    everything = dataclasses.replace(view, filters=None, session=None, only_session=False)
    if request.filtered and found and len(found) == len(_own(store, everything)):
        raise InputError(
            f"the filter matches all {len(found)} units of user {quote_value(view.user)}; "
            "narrow it, or say all=True (--all) to forget everything"
        )
    return _with_documents(store, view, found, tuple(unit.id for unit in found))


def has_ended(unit: Unit) -> bool:
    """Return whether a document no longer says a part of it; one that was given a time to live is still in its text.

    A document ends a part at the moment it is read; of a part that was changed since, only the next reading tells.
    """
    return unit.expires_at == unit.recorded_time


def _refuse_unclear(request: ForgetRequest) -> None:
    named = {
        "ids": bool(request.ids),
        "document": request.document is not None,
        "all": request.everything,
        "session or filters": request.session is not None or request.filtered,
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
    found = read_once(store, everything, lambda reading: [*reading.scan(order="oldest", limit=None)])
    return [unit for unit in found if unit.user == view.user and view.agent in (unit.agent, None)]


def _document(store: Store, view: View, name: str) -> ErasureTargets:
    with store.reading(view) as reading:
        kept = reading.documents(name=name)
        past = reading.propose(DocumentQuery(name), NO_LIMIT, NO_DEADLINE).ids
        known = sorted({one.name for one in reading.documents(bodies=False)})
    if not kept and past:  # its file was deleted: its units have ended, and are kept
        return ErasureTargets(past, ())
    if not kept:
        names = ", ".join(map(quote_value, known[:_MOST_NAMED])) or "none"
        more = f" and {len(known) - _MOST_NAMED:,} others" if len(known) > _MOST_NAMED else ""
        raise NotFoundError(f"there is no document {quote_value(name)}; there is {names}{more}")
    document = next((one for one in kept if one.user is not None), kept[0])
    return ErasureTargets(_parts(store, view, document), (document,), everyones=document.user is None)


def _parts(store: Store, view: View, document: Document) -> tuple[str, ...]:
    """Return the units of one document, past ones too."""
    owner = dataclasses.replace(view, user=document.user or "")
    return read_once(
        store, owner, lambda reading: reading.propose(DocumentQuery(document.name), NO_LIMIT, NO_DEADLINE).ids
    )


def _with_documents(store: Store, view: View, units: Sequence[Unit], ids: tuple[str, ...]) -> ErasureTargets:
    """Let a document go with all of its units; a part of one cannot be erased, because its text is kept whole."""
    chosen = {unit.id for unit in units}
    documents = []
    unit_ids = [unit.id for unit in units]
    columns = read_once(store, view, lambda reading: reading.columns(unit_ids, ("document",)))
    documents_of = dict(zip(unit_ids, columns["document"].tolist(), strict=True))
    names = {(documents_of[unit.id], unit.user) for unit in units if not has_ended(unit)}
    for name, user in sorted((name, user or "") for name, user in names if name is not None):
        called = read_once(store, view, lambda reading: reading.documents(name=name))  # noqa: B023 - asked at once
        for kept in (one for one in called if (one.user or "") == user):
            if left := [unit_id for unit_id in _parts(store, view, kept) if unit_id not in chosen]:
                part = next(unit.id for unit in units if documents_of[unit.id] == name)
                raise InputError(
                    f"{quote_value(part)} is part of the document {quote_value(name)}, of which {len(left)} more "
                    "units are stored; "
                    "forget the whole document, or ingest it again without that part and then forget this"
                )
            documents.append(kept)
    return ErasureTargets(ids, tuple(documents))
