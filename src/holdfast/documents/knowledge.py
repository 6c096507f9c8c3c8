"""Documents that are knowledge (C1): files, texts and folders → units, again whenever they change."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from holdfast.documents import core as documents
from holdfast.documents.core import IngestContext, unit_of, write_units
from holdfast.documents.folder import Folder, listing, read_file
from holdfast.errors import BudgetError, InputError, MissingExtraError, NotFoundError, quote_value
from holdfast.messages.content import read_content
from holdfast.store.contract import NO_DEADLINE, NO_LIMIT, DocumentChange, DocumentRemoval, read_once
from holdfast.store.queries import DocumentQuery
from holdfast.text.facts import stated_facts
from holdfast.text.names import Aliases, learned_aliases
from holdfast.types import (
    Document,
    Fact,
    Record,
    Source,
    SourceLimits,
    SourceUnit,
    Surroundings,
    Unit,
    View,
    WriteResult,
    digest,
    is_piece,
)
from holdfast.types.outcomes import FolderReport

Sources = str | bytes | Path | Sequence[Path]
_FROM_SOURCE = ("id", "text", "role", "topic", "claim", "procedure", "condition", "utility_acts", "links")
_FROM_FILE_OF_UNITS = (*_FROM_SOURCE[1:], "utility_note", "fact", "valid_from", "valid_to", "metadata")


def ingest_sources(
    desk: IngestContext, view: View, source: Sources, name: str | None, *, scope: str, core: bool
) -> list[WriteResult]:
    """Keep a document, or several; what cannot be opened keeps all of them out.

    Raises:
        InputError: one cannot be read; those before it stay.
    """
    sources = source if isinstance(source, list | tuple) else (source,)
    if sources is source and (not sources or name is not None or not all(isinstance(one, Path) for one in sources)):
        raise InputError("a list of documents is one of Paths, without a name; give a text alone")
    make = partial(documents.make_document, desk, view, name=name, scope=scope, core=core)
    if sources is source:
        for one in sources:
            make(one)
    keep = partial(documents.ingest, view=view) if core else ingest_document
    # Made again: what a document is called depends on those that are kept by then.
    return [done for one in sources for done in keep(desk, make(one))]


def ingest_document(desk: IngestContext, document: Document) -> list[WriteResult]:
    """Keep a document, and what it says as units.

    Raises:
        InputError: it cannot be read; nothing is written.
    """
    document = dataclasses.replace(document, body=desk.clean(document.body))
    source = _read(desk, document)
    if desk.redact is not None and desk.redact(source.text) != source.text:
        raise InputError(
            f"{quote_value(document.name)} holds what must not be kept, in a format that it cannot be taken out of; "
            "give it as text"
        )
    # Units first: whoever is interrupted in between reads the document again, and finds it changed.
    written = write_units(desk, document, units_of(desk, document, source))
    desk.store.apply([DocumentChange(document)])
    return written


def _read(desk: IngestContext, document: Document) -> Source:
    # The readers of all formats take as long to import as half of the engine, and few programs read documents.
    from holdfast.documents.parser import read_source  # noqa: PLC0415 - see above

    return read_source(document.name, document.body, relations=desk.settings.symbolic.relations)


def units_of(desk: IngestContext, document: Document, source: Source) -> list[Unit]:
    """Return what a source says as units of its owner."""
    from holdfast.documents.parser import source_units  # noqa: PLC0415 - see `_read`

    if source.records:
        units = [_unit_of_record(desk, document, record) for record in source.records]
    else:
        aliases = Aliases.of(learned_aliases(source.text))
        units = [_unit_of_piece(desk, document, unit, aliases) for unit in source_units(source)]
    return [unit.evolve(position=place) for place, unit in enumerate(units)]


def _unit_of_piece(desk: IngestContext, document: Document, read: SourceUnit, aliases: Aliases) -> Unit:
    fields = {name: getattr(read, name) for name in _FROM_SOURCE}
    if read.at is not None:  # whoever has a wrong clock still did not write it later than now
        fields["event_time"] = min(read.at, desk.now)
    fields["speaker"] = read.by
    unit = unit_of(desk, document, kind="knowledge", origin="document", **fields)
    return unit.evolve(fact=_fact_of_alias(unit, aliases)) if aliases.canonical else unit


def _fact_of_alias(unit: Unit, aliases: Aliases) -> Fact | None:
    """Return the one fact that a unit states of something that its document also calls by another name.

    What it states otherwise is read when it is indexed; a name that only this document explains is not known then.
    """
    plain, known = stated_facts(unit, Aliases()), stated_facts(unit, aliases)
    return known[0] if len(known) == 1 and known != plain else None


def _unit_of_record(desk: IngestContext, document: Document, record: Record) -> Unit:
    if record.unit is not None:
        given = record.unit
        # The document's name leads: an id of somebody else's unit cannot be taken over by a file.
        name = given.id if given.id.startswith(f"{document.name}#") else f"{document.name}#{given.id}"
        fields = {field: getattr(given, field) for field in _FROM_FILE_OF_UNITS}
        return unit_of(desk, document, kind="knowledge", origin="document", **fields, id=name)
    [said] = read_content(record.message, desk.settings.ingest)
    fields = {"kind": "turn", "origin": "conversation", "claim": said.text, **said.fields}
    fields |= {"text": said.text, "author": said.author, "event_time": said.at or desk.now, "session": said.session}
    if said.session is not None and document.user is not None:
        fields["scope"] = "session"
    return unit_of(desk, document, **{**fields, "id": f"{document.name}#{digest('message', record.line, said.text)}"})


def ingest_folder(desk: IngestContext, folder: Folder, view: View) -> FolderReport:
    """Take in what has changed since last time, file by file; a file that is gone takes its units with it.

    A file that cannot be read is reported, and the others go on. Interrupted, it goes on where it stopped.
    """
    found = listing(folder)
    # A file is known by the folder's own place; a link inside it may lead elsewhere.
    root = folder.root.resolve()
    kept = _own_documents(desk, folder, view)
    label, known = _label(root, kept), {path: name for name, path in kept if path}
    done: dict[str, list[str]] = {"added": [], "changed": [], "unchanged": []}
    units = 0
    for number, (relative, path) in enumerate(found.files.items()):
        folder.progress(number, len(found.files))
        place = str(root / relative)
        name = known.get(place, f"{label}/{relative}")
        try:
            body = read_file(path, SourceLimits().max_bytes)
            status, count = _take_in_file(
                desk, Document(folder.tenant, folder.user, name, body, place, core=False), view
            )
        except (InputError, MissingExtraError, BudgetError) as error:
            found.failed.append((relative, str(error)))
            continue
        done[status].append(relative)
        units += count
    folder.progress(len(found.files), len(found.files))
    present = {str(root / relative) for relative in found.files}
    return FolderReport(
        **{k: tuple(v) for k, v in done.items()},
        removed=tuple(_remove_missing(desk, folder, view, root, present)),
        failed=tuple(found.failed),
        skipped=tuple(found.skipped),
        units=units,
    )


def _own_documents(desk: IngestContext, folder: Folder, view: View) -> list[tuple[str, str]]:
    """Return name and path of the documents that are kept for the owner of a folder."""
    kept = read_once(desk.store, view, lambda reading: reading.documents(bodies=False))
    return [(one.name, one.path) for one in kept if one.user == folder.user]


def _label(root: Path, kept: Sequence[tuple[str, str]]) -> str:
    """Return the name that leads those of a folder's documents: as much of its path as tells it from others."""
    parts = [part for part in root.parts if part != root.anchor]
    for length in range(1, len(parts) + 1):
        label = "/".join(parts[-length:])
        if all(path.startswith(f"{root}{os.sep}") for name, path in kept if name.startswith(f"{label}/")):
            return label
    return "/".join(parts)


def _take_in_file(desk: IngestContext, document: Document, view: View) -> tuple[str, int]:
    """Take in one document of a folder; one that was declared core stays core."""
    kept = desk.find(view, document.name, document.user)
    body = desk.clean(document.body)
    if kept is not None and kept.body == body:
        if not kept.here:
            desk.store.apply([DocumentChange(dataclasses.replace(kept, path=document.path, here=True))])
        owner = dataclasses.replace(view, user=document.user or "")
        lasting = DocumentQuery(document.name, ended=False)
        ids = read_once(desk.store, owner, lambda reading: reading.propose(lasting, NO_LIMIT, NO_DEADLINE).ids)
        if kept.core or not _is_cut_anew(document.name, body, ids):
            return "unchanged", len(ids)
    if kept is not None and kept.core:
        return "changed", len(documents.ingest(desk, dataclasses.replace(document, body=body, core=True), view))
    if kept is not None and not body.strip():  # emptied: it says nothing any more
        write_units(desk, kept, [])
        desk.store.apply([DocumentChange(dataclasses.replace(document, body=body))])
        return "changed", 0
    return ("changed" if kept else "added"), len(ingest_document(desk, document))


def _is_cut_anew(name: str, body: bytes, ids: Sequence[str]) -> bool:
    """Return whether a document's pieces were made by a version that cut it otherwise."""
    if all(map(is_piece, ids)):
        return False
    from holdfast.documents.parser import RECORDS, kind_of  # noqa: PLC0415 - see `_read`

    return kind_of(name, body) not in RECORDS


def _remove_missing(desk: IngestContext, folder: Folder, view: View, root: Path, present: set[str]) -> Iterator[str]:
    """End the units of files that were taken in from this folder and are there no longer; yield their names in it."""
    for name, path in _own_documents(desk, folder, view):
        if not path.startswith(f"{root}{os.sep}") or path in present or Path(path).exists():
            continue
        if (document := desk.find(view, name, folder.user)) is not None:
            write_units(desk, document, [])
            desk.store.apply([DocumentRemoval(document)])
        yield Path(path).relative_to(root).as_posix()


# ------------------------------------------------------------------------------------------------ widening


def load_surroundings(desk: IngestContext, view: View, unit: Unit) -> Surroundings:
    """Return the section that a unit of a document stands in, from the document as it was last read.

    Raises:
        NotFoundError: the unit is of no document, or the document no longer has it.
    """
    name = read_once(desk.store, view, lambda reading: reading.columns([unit.id], ("document",)))["document"][0]
    kept = desk.find(view, name, unit.user) if name else None
    if kept is None:
        raise NotFoundError(f"{quote_value(unit.id)} is of no stored document; only a document's unit can be widened")
    source = _read(desk, kept)
    places = {one.id: piece for one, piece in zip(units_of(desk, kept, source), source.pieces, strict=True)}
    if unit.id not in places:
        raise NotFoundError(
            f"{quote_value(name)} no longer says {quote_value(unit.id)}; ingest it again, or read its history"
        )
    piece = places[unit.id]
    section = next(one for one in source.sections if one.id == piece.section)
    return Surroundings(
        unit=unit,
        document=source.name,
        path=section.path,
        text=source.text[section.start : section.end],
        start=section.start,
        end=section.end,
        unit_start=piece.start,
        unit_end=piece.end,
        page=section.page,
        units=tuple(unit_id for unit_id, one in places.items() if one.section == section.id),
    )
