"""The write path: every stage is one line."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, tzinfo
from functools import partial
from typing import Any, Protocol, runtime_checkable

from holdfast.errors import EmbedderError, NotFoundError, StoreError
from holdfast.lifecycle.gate import judge_by_words, judge_units
from holdfast.lifecycle.supersede import find_superseded
from holdfast.messages.checks import choose_scope
from holdfast.messages.content import Said, identity, occurrence_id, read_content
from holdfast.messages.redaction import redact_json
from holdfast.models.embedder import Embedder, check_vectors
from holdfast.settings import GateSettings, Settings
from holdfast.store.contract import Analyse, Promotion, Store, Supersession
from holdfast.types import Draft, Gate, Scope, Unit, Written
from holdfast.types.outcomes import Claimed

log = logging.getLogger("holdfast")
# Enough to keep every core busy; little enough that a crash costs less than a second of work.
_EMBEDDED_TOGETHER = 64
# So many refusals in a row are an embedder that is down, and each may cost a timeout.
_TRIED_ALONE = 3

Redact = Callable[[str], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Owned:
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

    def redacted(self) -> Owned:
        """Return the same without secrets in what holds for all of the words, such as metadata."""
        return self if self.redact is None else replace(self, fields=redact_json(self.fields, self.redact))


def remember(
    content: object, owned: Owned, *, store: Store, settings: Settings, analyse: Analyse, indexing: Indexing
) -> list[Written]:
    """Keep every word of `content`; report what was done with each message."""
    said = read_content(content, settings.ingest, owned.zone)
    said = redacted(said, owned.redact)
    drafts = _drafts(said, owned.redacted(), analyse)
    written = store.put(drafts, retry_seconds=settings.ingest.retry_seconds)
    gates = embed_all(fresh_units(drafts, written), store, indexing)
    # A message that is repeated with a new pin says nothing new: it replaces what it replaced when it was said.
    said_now = [pair for pair in zip(drafts, written, strict=True) if pair[0].id_given or pair[1].status == "added"]
    replaced = supersede_changed(fresh_units(*zip(*said_now, strict=True)), store, settings) if said_now else {}
    return [_reported(done, gates, replaced) for done in written]


@dataclass(frozen=True, slots=True)
class Indexing:
    """How kept units are embedded and judged. `awaited` says that an embedder is wanted and cannot be used yet."""

    embedder: Embedder | None
    gate: GateSettings
    awaited: bool = False
    failed: Callable[[], None] = lambda: None


@dataclass(frozen=True, slots=True)
class Indexed:
    """How many vectors were written, and what the gate decided, by unit."""

    written: int = 0
    gates: Mapping[str, Gate] = field(default_factory=dict)


def embed_all(units: Sequence[Unit], store: Store, indexing: Indexing) -> dict[str, Gate]:
    """Embed and judge units batch by batch: a crash in a long list costs little, and a long list stays linear."""
    gates: dict[str, Gate] = {}
    for start in range(0, len(units), _EMBEDDED_TOGETHER):
        gates |= embed(units[start : start + _EMBEDDED_TOGETHER], store, indexing).gates
    return gates


def embed(units: Sequence[Unit], store: Store, indexing: Indexing) -> Indexed:
    """Judge units that are kept already, and write their vectors.

    The gate comes before the index, so that no turn matches itself (C17). An embedder that fails loses nothing, nor
    does a disk that is full by now: the words are safe, and the units wait for their vectors and for the gate.
    """
    embedder = indexing.embedder
    if not units or (embedder is None and indexing.awaited):
        return Indexed()
    try:
        if embedder is None:
            gates = judge_by_words(units, indexing.gate)
            if gates:
                store.mark([Promotion(*gate) for gate in gates])
            return Indexed(0, {unit.id: gate for unit, gate in gates})
        given = embedder.embed_documents([unit.text for unit in units])
        vectors = check_vectors(given, len(units), embedder.dims, embedder.space)
        gates = judge_units(store, embedder.space, units, vectors, indexing.gate)
        written = store.put_vectors(embedder.space, units, vectors, [Promotion(*gate) for gate in gates])
    except (EmbedderError, StoreError) as error:
        log.warning("%d units are kept and wait for their vectors or the gate: %s", len(units), error)
        indexing.failed()
        return Indexed()
    return Indexed(written, {unit.id: gate for unit, gate in gates})


def supersede_changed(units: Sequence[Unit], store: Store, settings: Settings) -> dict[str, tuple[str, ...]]:
    """Let turns that plainly replace earlier ones take their place; return which replaced which (C19)."""
    if not settings.changes.detect:
        return {}
    replaced: dict[str, tuple[str, ...]] = {}
    try:
        for one in find_superseded(store, units, settings):
            with suppress(NotFoundError):  # erased by somebody meanwhile: there is nothing left to replace
                store.mark([Supersession(one.owner, one.old.id, one.new.id, one.new.recorded_time, one.why)])
                replaced[one.new.id] = (*replaced.get(one.new.id, ()), one.old.id)
    except StoreError as error:
        log.warning("%d units are kept; what they replace may still count, so look: %s", len(units), error)
    return replaced


def _reported(done: Written, gates: Mapping[str, Gate], replaced: Mapping[str, tuple[str, ...]]) -> Written:
    gate = gates.get(done.id)
    promoted = gate is not None and gate.promoted
    if not promoted and done.id not in replaced:
        return done
    return replace(done, promoted=promoted, superseded=replaced.get(done.id, ()))


def embed_waiting(
    store: Store,
    indexing: Indexing,
    space: str,
    *,
    stop: Callable[[], bool] = lambda: False,
    done: Callable[[int], None] = lambda _: None,
) -> None:
    """Embed every unit that waits, batch by batch; `done` hears of each batch.

    A batch of which nothing could be written (the embedder failed) ends the work; its units wait on. Processes that
    share a store share the work, too.
    """
    if isinstance(store, Shared):
        _embed_claimed(store, indexing, space, stop, done)
        return
    last: Unit | None = None
    while not stop() and (units := store.waiting(space, _EMBEDDED_TOGETHER, last)):
        written = embed(units, store, indexing).written
        if not written and len(units) > 1:
            written = _one_by_one(units, store, indexing)
        done(written)
        if not written:
            break
        last = units[-1]


@runtime_checkable
class Shared(Store, Protocol):
    """A store whose waiting units are claimed, so that many processes embed them together."""

    def claim(self, space: str, most: int, after: tuple[str, int] | None = None) -> AbstractContextManager[Claimed]:
        """Claim the first units behind a place that nobody has claimed."""
        ...


def _embed_claimed(
    store: Shared, indexing: Indexing, space: str, stop: Callable[[], bool], done: Callable[[int], None]
) -> None:  # fmt: skip
    """Embed what waits and nobody else embeds; what others have claimed by now is theirs."""
    last = None
    while not stop():
        with store.claim(space, _EMBEDDED_TOGETHER, last) as claimed:
            if claimed.last is None:
                return
            last, units = claimed.last, claimed.units
            written = embed(units, store, indexing).written
            if not written and len(units) > 1:
                written = _one_by_one(units, store, indexing)
        done(written)
        if units and not written:
            return


def _one_by_one(units: Sequence[Unit], store: Store, indexing: Indexing) -> int:
    """Embed a batch that failed text by text: one that is refused must not hold up the others."""
    written = 0
    for tried, unit in enumerate(units, start=1):
        written += embed([unit], store, indexing).written
        if not written and tried == _TRIED_ALONE:
            break
    return written


def fresh_units(drafts: Sequence[Draft], written: Sequence[Written]) -> list[Unit]:
    """Return what was really written, under its id and in its version."""
    pairs = [(draft.unit, done) for draft, done in zip(drafts, written, strict=True) if done.status != "duplicate"]
    return [
        unit if (unit.id, unit.version) == (done.id, done.version) else unit.evolve(id=done.id, version=done.version)
        for unit, done in pairs
    ]


def redacted(said: Sequence[Said], redact: Redact | None) -> list[Said]:
    """Take out what must not be kept, before anything is: of the words, and of whatever else comes with them."""
    if redact is None:
        return [*said]
    return [_without_secrets(one, redact) for one in said]


def _without_secrets(said: Said, redact: Redact) -> Said:
    fields: dict[str, Any] = redact_json(said.fields, redact)
    if (fact := fields.get("fact")) is not None:
        fields["fact"] = replace(fact, subject=redact(fact.subject), object=redact(fact.object))
    return replace(said, text=redact(said.text), fields=fields)


def _drafts(said: Sequence[Said], owned: Owned, analyse: Analyse) -> list[Draft]:
    seen: dict[tuple[object, ...], int] = {}
    return [_draft(words, owned, seen, analyse, alone=len(said) == 1) for words in said]


def _draft(said: Said, owned: Owned, seen: dict[tuple[object, ...], int], analyse: Analyse, *, alone: bool) -> Draft:
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


def _told_by_order(unit: Unit, said: Said, *, alone: bool, dated: bool) -> bool:
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
