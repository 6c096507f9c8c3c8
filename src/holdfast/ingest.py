"""The write path: every stage is one line."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import field, replace
from datetime import datetime, tzinfo
from functools import partial
from typing import Any

from holdfast.errors import InputError, NotFoundError, StoreError, quote_value
from holdfast.lifecycle.embedding import EmbeddingPlan, EmbeddingReport, embed_all
from holdfast.lifecycle.supersede import find_superseded
from holdfast.messages.checks import choose_scope
from holdfast.messages.content import Message, identity, occurrence_id, read_content
from holdfast.messages.redaction import redact_json
from holdfast.settings import Settings
from holdfast.store.contract import Analyse, Store, Supersession
from holdfast.types import Draft, Scope, Unit, WriteResult
from holdfast.types.outcomes import Progress
from holdfast.values import dataclass

log = logging.getLogger("holdfast")

Redact = Callable[[str], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOptions:
    """Whose the words are, and what holds for all of them: the caller's checked arguments."""

    tenant: str
    user: str
    session: str | None
    agent: str | None
    now: datetime
    scope: Scope | None = None
    at: datetime | None = None
    id: str | None = None
    fields: Mapping[str, Any] = field(default_factory=dict)
    redact: Redact | None = None
    zone: tzinfo | None = None

    def redacted(self) -> WriteOptions:
        """Return the same without secrets in what holds for all of the words, such as metadata."""
        return self if self.redact is None else replace(self, fields=redact_json(self.fields, self.redact))


def remember(
    content: object,
    owned: WriteOptions,
    *,
    store: Store,
    settings: Settings,
    analyse: Analyse,
    indexing: EmbeddingPlan,
    progress: Progress,
) -> list[WriteResult]:
    """Keep every word of `content`; report what was done with each message."""
    if owned.id is not None and not isinstance(content, str | Unit | Mapping):
        raise InputError(f"id = {quote_value(owned.id)} cannot name every message of a list; give each its own id")
    said = read_content(content, settings.ingest, owned.zone)
    said = redact_messages(said, owned.redact)
    drafts = _drafts(said, owned.redacted(), analyse)
    written = store.put(drafts, retry_seconds=settings.ingest.retry_seconds)
    embedded = embed_all(written_units(drafts, written), store, indexing, progress)
    # A message that is repeated with a new pin says nothing new: it replaces what it replaced when it was said.
    said_now = [pair for pair in zip(drafts, written, strict=True) if pair[0].id_given or pair[1].status == "added"]
    replaced = supersede_changed(written_units(*zip(*said_now, strict=True)), store, settings) if said_now else {}
    return [_reported(done, embedded, replaced) for done in written]


def supersede_changed(units: Sequence[Unit], store: Store, settings: Settings) -> dict[str, tuple[str, ...]]:
    """Let turns that plainly replace earlier ones take their place; return which replaced which (C19)."""
    if not settings.changes.detect:
        return {}
    replaced: dict[str, tuple[str, ...]] = {}
    try:
        for one in find_superseded(store, units, settings):
            with suppress(NotFoundError):  # erased by somebody meanwhile: there is nothing left to replace
                store.apply([Supersession(one.owner, one.old.id, one.new.id, one.new.recorded_time, one.why)])
                replaced[one.new.id] = (*replaced.get(one.new.id, ()), one.old.id)
    except StoreError as error:
        log.warning("%d units are stored; what they replace may still count, check: %s", len(units), error)
    return replaced


def _reported(
    done: WriteResult, embedded: EmbeddingReport, replaced: Mapping[str, tuple[str, ...]]
) -> WriteResult:  # fmt: skip
    gate = embedded.gates.get(done.id)
    promoted, waits = gate is not None and gate.promoted, done.id in embedded.waiting
    if not promoted and not waits and done.id not in replaced:
        return done
    return replace(done, promoted=promoted, superseded=replaced.get(done.id, ()), waits=waits)


def written_units(drafts: Sequence[Draft], written: Sequence[WriteResult]) -> list[Unit]:
    """Return what was really written, under its id and in its version."""
    pairs = [(draft.unit, done) for draft, done in zip(drafts, written, strict=True) if done.status != "duplicate"]
    return [
        unit if (unit.id, unit.version) == (done.id, done.version) else unit.evolve(id=done.id, version=done.version)
        for unit, done in pairs
    ]


def redact_messages(said: Sequence[Message], redact: Redact | None) -> list[Message]:
    """Take out what must not be kept, before anything is: of the words, and of whatever else comes with them."""
    if redact is None:
        return [*said]
    return [_without_secrets(one, redact) for one in said]


def _without_secrets(said: Message, redact: Redact) -> Message:
    fields: dict[str, Any] = redact_json(said.fields, redact)
    if (fact := fields.get("fact")) is not None:
        fields["fact"] = replace(fact, subject=redact(fact.subject), object=redact(fact.object))
    return replace(said, text=redact(said.text), fields=fields)


def _drafts(said: Sequence[Message], owned: WriteOptions, analyse: Analyse) -> list[Draft]:
    seen: dict[tuple[object, ...], int] = {}
    return [_draft(words, owned, seen, analyse, alone=len(said) == 1) for words in said]


def _draft(
    said: Message, owned: WriteOptions, seen: dict[tuple[object, ...], int], analyse: Analyse, *, alone: bool
) -> Draft:
    session = said.session or owned.session
    scope = choose_scope(owned.scope, session)
    user = None if scope == "global" else owned.user
    owner = (owned.tenant, user, session, owned.agent)
    fields = {"claim": said.text, **said.fields, **owned.fields}
    fields["metadata"] = {**said.fields.get("metadata", {}), **owned.fields.get("metadata", {})}
    if said.fields.get("role") == "Procedure":
        fields["claim"] = ""
    # A time that a whole list is given tells its messages apart no more than none does.
    dated = said.at is not None or (alone and owned.at is not None)
    given = (fields.pop("author", said.author), said.at or owned.at, said.id or owned.id)
    if given != (said.author, said.at, said.id):
        said = replace(said, author=given[0], at=given[1], id=given[2])
    unit = Unit(
        id=said.id or identity(said, owner, seen),
        text=said.text,
        tenant=owned.tenant,
        user=user,
        session=session,
        agent=owned.agent,
        scope=scope,
        author=said.author,
        event_time=said.at or owned.now,
        recorded_time=owned.now,
        **fields,
    )
    naming = partial(occurrence_id, said, owner) if _told_by_order(unit, said, alone=alone, dated=dated) else None
    return Draft(unit, analyse, id_given=said.id is not None, time_given=said.at is not None, naming=naming)


def _told_by_order(unit: Unit, said: Message, *, alone: bool, dated: bool) -> bool:
    """Return whether only its place in the conversation says if a message is new: it has neither id nor time.

    The system's instructions lead every list of a host that keeps a window of the last turns; in a list they are
    known by their words.
    """
    if unit.kind != "turn" or said.id is not None or dated or unit.message_id is not None:
        return False
    return alone or unit.author != "system"


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
