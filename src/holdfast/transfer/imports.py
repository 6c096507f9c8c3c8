"""Imports: messages of other programs go the way of `remember`, in batches; our own files are written as they are."""

from __future__ import annotations

import dataclasses
import logging
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from itertools import groupby, islice
from typing import Any

import numpy as np

from holdfast.errors import EmbedderError, InputError, quote_value
from holdfast.ingest import Redact
from holdfast.kernels.vectors import halve
from holdfast.lifecycle.embedding import EmbeddingPlan, text_to_embed
from holdfast.messages.checks import MAX_NAME, check_name
from holdfast.messages.content import read_message
from holdfast.messages.redaction import redact_json
from holdfast.settings import IngestSettings
from holdfast.store.contract import DocumentChange, Restoration, Store, read_once
from holdfast.store.erasure import ERASED
from holdfast.store.rows import is_vector
from holdfast.transfer import jsonl
from holdfast.transfer.file_formats import SourceFile, find_format, read_messages
from holdfast.types import Document, ImportReport, StoredUnit, StoredVector, View, WriteResult, digest
from holdfast.types.outcomes import ImportedMessage, ImportNotes, Progress
from holdfast.values import dataclass

log = logging.getLogger("holdfast")
# What one call of `remember` gets: enough that a transaction costs little of it, and a break loses little work.
_TOGETHER = 1_000
# What one transaction writes of our own files; each unit may bring several versions to embed.
_RESTORED_TOGETHER = 256
_MOST_SPEAKERS = 20
# A reason is a line of a report.
_LONGEST_REASON = 200
_SECRETIVE = ("text", "claim", "procedure", "topic", "condition", "utility_note", "metadata", "parts")


@dataclass(frozen=True, slots=True)
class Importer:
    """What an import needs and does not own.

    `remember` keeps messages of one owner, with `common` options, and says what it did.
    """

    store: Store
    view: View
    settings: IngestSettings
    indexing: Callable[[], EmbeddingPlan]
    remember: Callable[[object, Progress, Any], list[WriteResult]]
    common: Mapping[str, str | None]
    redact: Redact | None
    clean: Callable[[bytes], bytes]
    check_document: Callable[[Document, View], None]
    user: str | None
    default_user: str
    dry_run: bool
    progress: Progress


def import_file(kit: Importer, opened: SourceFile, kind: str | None) -> ImportReport:
    """Read a file and keep what it holds.

    Raises:
        InputError: it is of no format that is known, or holds nothing that can be read; nothing was written.
    """
    kind = find_format(opened, kind)
    notes = ImportNotes()
    report = _restore(kit, opened, notes) if kind == "holdfast" else _remember(kit, opened, kind, notes)
    told = (*notes.warnings,)
    return dataclasses.replace(
        report,
        skipped=notes.skipped(),
        warnings=told,
        complete=report.complete and notes.complete,
        dry_run=kit.dry_run,
    )


# --------------------------------------------------------------------------------------------- other programs


def _remember(kit: Importer, opened: SourceFile, kind: str, notes: ImportNotes) -> ImportReport:
    messages = [*_usable(kit, read_messages(opened, kind, kit.view, notes), notes)]
    if not messages:
        reasons = "; ".join(f"{one.count}: {one.reason}" for one in notes.skipped()[:3])
        raise InputError(
            f"{quote_value(opened.name)} holds no message of {kind} that can be read ({reasons or 'it is empty'})"
        )
    _refuse_several_users(kit, messages)
    times = [time for one in messages if isinstance(time := one.fields.get("at"), datetime)]
    report = ImportReport(
        kind,
        len(messages),
        sessions=len({one.session for one in messages} - {None}),
        speakers=_speakers(messages),
        first=min(times, default=None),
        last=max(times, default=None),
    )
    if kit.dry_run:
        return report
    statuses: Counter[str] = Counter()
    done = 0
    for (user, agent, lasting), some in groupby(sorted(messages, key=_owner_of), key=_owner_of):
        while batch := [*islice(some, _TOGETHER)]:
            kit.progress(done, len(messages))
            content = [{**one.fields, **({"session": one.session} if one.session else {})} for one in batch]
            whose = {"user": kit.user or user or kit.default_user, "agent": agent or None}
            written = kit.remember(
                content,
                partial(_report_part, kit.progress, done, len(messages)),
                {**kit.common, **whose, "scope": "user" if lasting else None},
            )
            statuses.update(one.status for one in written)
            done += len(batch)
    kit.progress(done, len(messages))
    return dataclasses.replace(
        report, added=statuses["added"], updated=statuses["updated"], known=statuses["duplicate"]
    )


def _report_part(progress: Progress, before: int, messages: int, done: int, _: int) -> None:
    """Say how far all is when a batch is so far."""
    progress(before + done, messages)


def _owner_of(message: ImportedMessage) -> tuple[str, str, bool]:
    return message.user or "", message.agent or "", message.lasting


def _usable(kit: Importer, messages: Iterator[ImportedMessage], notes: ImportNotes) -> Iterator[ImportedMessage]:
    """Yield what `remember` will take: one message that it refuses must not keep the others out."""
    for given in messages:
        one = _shortened(given)
        try:
            for name in ("session", "user", "agent"):
                check_name(name, getattr(one, name), optional=True)
            read_message(one.fields, kit.settings, kit.view.zone)
        except InputError as error:
            notes.skip(str(error)[:_LONGEST_REASON], one.where)
        else:
            yield one


def _shortened(message: ImportedMessage) -> ImportedMessage:
    """Let names of chats and ids of messages be as long as names are here; ids stay different."""
    name, session = message.fields.get("message_id"), message.session
    if isinstance(name, str) and len(name) > MAX_NAME:
        message = dataclasses.replace(message, fields={**message.fields, "message_id": digest("message", name)})
    if session is not None and len(session) > MAX_NAME:
        message = dataclasses.replace(message, session=session[:MAX_NAME])
    return message


def _refuse_several_users(kit: Importer, messages: Sequence[ImportedMessage]) -> None:
    users = sorted({one.user for one in messages if one.user is not None})
    if kit.user is not None and len(users) > 1:
        raise InputError(
            f"the file is of {', '.join(users[:5])}, not of one user; leave user out, and they keep their names"
        )


def _speakers(messages: Sequence[ImportedMessage]) -> tuple[str, ...]:
    names = Counter(str(one.fields["speaker"]) for one in messages if one.fields.get("speaker"))
    return tuple(name for name, _ in names.most_common(_MOST_SPEAKERS))


# ---------------------------------------------------------------------------------------------------- our own


def _restore(kit: Importer, opened: SourceFile, notes: ImportNotes) -> ImportReport:
    taking = jsonl.ImportTarget(kit.view.tenant, kit.user, kit.settings)
    with opened.stream() as source:
        found = jsonl.survey(source, taking, notes)
        if not found.units and not found.documents and not found.complete:
            raise InputError(f"{quote_value(opened.name)} holds no unit that can be read; export it again")
        report = ImportReport("holdfast", found.units + found.documents, complete=found.complete)
        if kit.dry_run:
            return dataclasses.replace(report, documents=found.documents)
        statuses: Counter[str] = Counter()
        entries, done = jsonl.entries(source, taking, found), 0
        indexing = kit.indexing()
        while batch := [*islice(entries, _RESTORED_TOGETHER)]:
            kit.progress(done, report.read)
            statuses.update(_write_batch(kit, batch, found, indexing, notes))
            done += len(batch)
        kit.progress(done, report.read)
    return dataclasses.replace(
        report, added=statuses["added"], updated=statuses["updated"], known=statuses["duplicate"],
        documents=statuses["document"],
    )  # fmt: skip


def _write_batch(
    kit: Importer,
    batch: Sequence[jsonl.ImportedEntry],
    found: jsonl.FileSummary,
    indexing: EmbeddingPlan,
    notes: ImportNotes,
) -> list[str]:
    """Write some entries, the units in one transaction; return what became of those that were not left out."""
    statuses: list[str] = []
    for one in batch:
        if not isinstance(one.found, Document):
            continue
        document = dataclasses.replace(one.found, body=kit.clean(one.found.body))
        known = _document(kit, document)
        if known is None:
            statuses += _write_document(kit, document, notes, f"line {one.line}")
        elif known.body == document.body:
            statuses.append("duplicate")
        else:
            notes.skip("another document has this name here", f"line {one.line}")
    units = [
        dataclasses.replace(one, found=_redacted(_settled(kit, one.found, found), kit.redact))
        for one in batch
        if isinstance(one.found, StoredUnit)
    ]
    units = _with_fitting_vectors(units, found, indexing, notes)
    marks = [Restoration(kept) for kept in _embedded(units, indexing)]
    for one, done in zip(units, kit.store.apply(marks), strict=True):
        if done is None:
            notes.skip("another unit has this id here, or this one was changed in both places", f"line {one.line}")
        else:
            statuses.append(done.status)
    return statuses


def _write_document(kit: Importer, document: Document, notes: ImportNotes, where: str) -> list[str]:
    """Keep a document that `ingest` would keep; the next one is checked together with it."""
    try:
        kit.check_document(document, dataclasses.replace(kit.view, user=document.user or ""))
    except InputError as error:
        notes.skip(str(error)[:_LONGEST_REASON], where)
        return []
    kit.store.apply([DocumentChange(document)])
    return ["document"]


def _document(kit: Importer, document: Document) -> Document | None:
    view = dataclasses.replace(kit.view, user=document.user or "")
    kept = read_once(kit.store, view, lambda reading: reading.documents(name=document.name))
    return next((one for one in kept if one.user == document.user), None)


def _settled(kit: Importer, kept: StoredUnit, found: jsonl.FileSummary) -> StoredUnit:
    """Let no unit point at one that is neither in the file nor here: an export may be of one session, or be cut."""
    unit = kept.unit
    named = [name for name in (unit.superseded_by, unit.covered_by) if name is not None and name != ERASED]
    missing = {name for name in named if (unit.user, name) not in found.ids}
    if missing:
        view = dataclasses.replace(kit.view, user=unit.user or "")
        missing -= read_once(kit.store, view, lambda reading: reading.units([*missing])).keys()
    if not missing:
        return kept
    if unit.superseded_by in missing:
        unit = unit.evolve(superseded_by=ERASED, superseded_why="")
    if unit.covered_by in missing:
        unit, kept = unit.evolve(covered_by=None), dataclasses.replace(kept, covered_at=None)
    return dataclasses.replace(kept, versions=(*kept.versions[:-1], unit))


def _redacted(kept: StoredUnit, redact: Redact | None) -> StoredUnit:
    """Take out what must not be kept, of every version; a vector of other words goes, too."""
    if redact is None:
        return kept
    versions, vectors = [], []
    for unit, vector in zip(kept.versions, kept.vectors, strict=True):
        clean = unit.evolve(**redact_json({name: getattr(unit, name) for name in _SECRETIVE}, redact))
        versions.append(clean)
        vectors.append(vector if clean.text == unit.text else None)
    return dataclasses.replace(kept, versions=tuple(versions), vectors=tuple(vectors))


def _with_fitting_vectors(
    entries: Sequence[jsonl.ImportedEntry], found: jsonl.FileSummary, indexing: EmbeddingPlan, notes: ImportNotes
) -> list[jsonl.ImportedEntry]:
    """Leave out vectors that nothing could be compared with: a file may be anybody's work.

    They have as many numbers as those of the embedder; where that is of another space, as most of the file's.
    """
    embedder = indexing.embedder
    dims = embedder.dims if embedder is not None and embedder.space == found.heading.space else found.dims
    checked = []
    for one in entries:
        kept = one.found
        assert isinstance(kept, StoredUnit)  # noqa: S101 - documents have none
        fitting = tuple(vector if vector is None or is_vector(vector.data, dims) else None for vector in kept.vectors)
        if fitting != kept.vectors:
            notes.warn(f"vectors that are not {dims} finite numbers are left out, and made again")
        checked.append(dataclasses.replace(one, found=dataclasses.replace(kept, vectors=fitting)))
    return checked


def _embedded(entries: Sequence[jsonl.ImportedEntry], indexing: EmbeddingPlan) -> list[StoredUnit]:
    """Return units with the vectors that they had and the file does not hold; without an embedder they wait."""
    kept: list[StoredUnit] = [one.found for one in entries if isinstance(one.found, StoredUnit)]
    embedder = indexing.embedder
    if embedder is None:
        return kept
    wanted = [
        (number, place)
        for number, one in enumerate(kept)
        for place, vector in enumerate(one.vectors)
        if (vector is None or vector.space != embedder.space)
        and (place == len(one.vectors) - 1 or entries[number].embedded[place])
    ]
    texts = [text_to_embed(kept[number].versions[place]) for number, place in wanted]
    try:
        rows = embedder.embed_documents(texts)
    except EmbedderError as error:
        log.warning("%d units are stored; vectors are pending: %s", len(kept), error)
        indexing.failed(error, 0.0)
        return kept
    made = {pair: row.tobytes() for pair, row in zip(wanted, halve(np.asarray(rows)), strict=True)} if wanted else {}
    return [
        dataclasses.replace(
            one,
            vectors=tuple(
                StoredVector(embedder.space, made[number, place]) if (number, place) in made else vector
                for place, vector in enumerate(one.vectors)
            ),
        )
        for number, one in enumerate(kept)
    ]
