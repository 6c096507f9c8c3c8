"""The write path: every stage is one line."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from holdfast.analysis.units import Said, identity, read_content
from holdfast.embedders.base import Embedder, checked
from holdfast.errors import EmbedderError
from holdfast.settings import Settings
from holdfast.store.base import Analyse, Store
from holdfast.types import Draft, Scope, Unit, Written

log = logging.getLogger("holdfast")
# Enough to keep every core busy; little enough that a crash costs less than a second of work.
_EMBEDDED_TOGETHER = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Owned:
    """Whose the words are, and what holds for all of them: the caller's checked arguments."""

    tenant: str
    user: str
    session: str | None
    agent: str | None
    scope: Scope
    now: datetime
    at: datetime | None = None
    id: str | None = None
    fields: Mapping[str, Any] = field(default_factory=dict)


def remember(
    content: object, owned: Owned, *, store: Store, settings: Settings, analyse: Analyse, embedder: Embedder | None
) -> list[Written]:
    """Keep every word of `content`; report what was done with each message."""
    said = read_content(content, settings.ingest)
    units = _units(said, owned)
    drafts = [_draft(unit, words, owned, analyse) for unit, words in zip(units, said, strict=True)]
    written = store.put(drafts)
    embed(_fresh(units, written), store, embedder)
    return written


def embed(units: Sequence[Unit], store: Store, embedder: Embedder | None) -> int:
    """Write the vectors of units that are kept already; return how many.

    An embedder that fails loses nothing: the words are safe, and the units wait for their vectors.
    """
    if embedder is None or not units:
        return 0
    try:
        given = embedder.embed_documents([unit.text for unit in units])
        vectors = checked(given, len(units), embedder.dims, embedder.space)
        return store.put_vectors(embedder.space, units, vectors)
    except EmbedderError as error:
        log.warning("%d units are kept and wait for their vectors: %s", len(units), error)
        return 0


def embed_waiting(
    store: Store,
    embedder: Embedder,
    *,
    stop: Callable[[], bool] = lambda: False,
    done: Callable[[int], None] = lambda _: None,
) -> int:
    """Embed every unit that waits, batch by batch; `done` hears of each batch. Return how many are left.

    A batch of which nothing could be written (the embedder failed) ends the work; its units wait on.
    """
    while not stop() and (units := store.waiting(embedder.space, _EMBEDDED_TOGETHER)):
        written = embed(units, store, embedder)
        done(written)
        if not written:
            break
    return store.waiting_count(embedder.space)


def _fresh(units: Sequence[Unit], written: Sequence[Written]) -> list[Unit]:
    """Return what was really written, in its version."""
    pairs = zip(units, written, strict=True)
    return [unit.evolve(version=done.version) for unit, done in pairs if done.status != "duplicate"]


def _units(said: list[Said], owned: Owned) -> list[Unit]:
    seen: dict[tuple[object, ...], int] = {}
    return [_unit(words, owned, seen) for words in said]


def _unit(said: Said, owned: Owned, seen: dict[tuple[object, ...], int]) -> Unit:
    user = None if owned.scope == "global" else owned.user
    owner = (owned.tenant, user, owned.session, owned.agent)
    fields = {"claim": said.text, **said.fields, **owned.fields}
    if said.fields.get("role") == "Procedure":
        fields["claim"] = ""
    said = replace(said, author=fields.pop("author", said.author), at=said.at or owned.at)
    return Unit(
        id=said.id or owned.id or identity(said, owner, seen),
        text=said.text,
        tenant=owned.tenant,
        user=user,
        session=owned.session,
        agent=owned.agent,
        scope=owned.scope,
        author=said.author,
        event_time=said.at or owned.now,
        recorded_time=owned.now,
        **fields,
    )


def _draft(unit: Unit, said: Said, owned: Owned, analyse: Analyse) -> Draft:
    return Draft(
        unit,
        analyse(unit),
        id_given=(said.id or owned.id) is not None,
        time_given=(said.at or owned.at) is not None,
    )


Revision = Callable[[Unit], tuple[Unit, Any]]


def revise(changes: Mapping[str, Any], now: datetime, analyse: Analyse) -> Revision:
    """Return a function that makes a unit's next version."""

    def next_version(unit: Unit) -> tuple[Unit, Any]:
        changed = dict(changes)
        if "text" in changed:
            changed[unit.statement_field] = changed["text"]
        revised = unit.evolve(**changed, recorded_time=now)
        return revised, analyse(revised)

    return next_version
