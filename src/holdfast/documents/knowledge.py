"""Documents that are knowledge (C1): files, texts and folders → units, again whenever they change."""

from __future__ import annotations

import dataclasses
import fnmatch
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from holdfast.documents import core as documents
from holdfast.documents.core import Desk, check_path, is_folder, keep_units, printable, read_file
from holdfast.errors import BudgetError, InputError, MissingExtraError, NotFoundError, shown
from holdfast.inputs.sources import read_source, source_units
from holdfast.inputs.units import read_content
from holdfast.language.facts import stated_facts
from holdfast.language.symbols import Aliases, found_aliases
from holdfast.types import (
    AuthoredUnit,
    CoreDocument,
    Fact,
    Piece,
    Record,
    Source,
    SourceLimits,
    SourceUnit,
    Unit,
    View,
    Widened,
    Written,
    digest,
)

# What people keep text in; units and records are taken in when they are named, because any JSON could be meant.
INCLUDED = ("*.md", "*.markdown", "*.txt", "*.html", "*.htm", "*.pdf")
_LEADS_OUT = "it is a link to outside of the folder"
# Hidden files, and folders that tools fill.
EXCLUDED = (".*", "*/.*", "node_modules/*", "*/node_modules/*", "__pycache__/*", "*/__pycache__/*")

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class FolderReport:
    """What taking in a folder did, file by file; `failed` and `skipped` have the reason with each name.

    What the patterns exclude is not reported. `units` counts what its documents say now.
    """

    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    unchanged: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    failed: tuple[tuple[str, str], ...] = ()
    skipped: tuple[tuple[str, str], ...] = ()
    units: int = 0


def take_in(desk: Desk, document: CoreDocument) -> list[Written]:
    """Keep a document, and what it says as units.

    Raises:
        InputError: it cannot be read; nothing is written.
    """
    document = dataclasses.replace(document, body=desk.clean(document.body))
    source = read_source(document.name, document.body, relations=desk.settings.symbolic.relations)
    if desk.redact is not None and desk.redact(source.text) != source.text:
        raise InputError(
            f"{shown(document.name)} holds what must not be kept, in a format that it cannot be taken out of; "
            "give it as text"
        )
    # Units first: whoever is interrupted in between reads the document again, and finds it changed.
    written = keep_units(desk, document, units_of(desk, document, source))
    desk.store.put_document(document)
    return written


def units_of(desk: Desk, document: CoreDocument, source: Source) -> list[Unit]:
    """Return what a source says as units of its owner."""
    if source.records:
        units = [_of_record(desk, document, record) for record in source.records]
    else:
        aliases = Aliases.of(found_aliases(source.text))
        units = [_of_source(desk, document, unit, aliases) for unit in source_units(source)]
    return [unit.evolve(position=place) for place, unit in enumerate(units)]


def _base(desk: Desk, document: CoreDocument) -> dict[str, Any]:
    return {
        "tenant": document.tenant,
        "user": document.user,
        "scope": "global" if document.user is None else "user",
        "kind": "knowledge",
        "author": "document",
        "origin": "document",
        "event_time": desk.now,
        "recorded_time": desk.now,
    }


def _of_source(desk: Desk, document: CoreDocument, read: SourceUnit, aliases: Aliases) -> Unit:
    fields = ("id", "text", "role", "topic", "claim", "procedure", "condition", "utility_acts", "links")
    unit = Unit(**{**_base(desk, document), **{name: getattr(read, name) for name in fields}})
    return unit.evolve(fact=_renamed(unit, aliases))


def _renamed(unit: Unit, aliases: Aliases) -> Fact | None:
    """Return the one fact that a unit states of something that its document also calls by another name.

    What it states otherwise is read when it is indexed; a name that only this document explains is not known then.
    """
    plain, known = stated_facts(unit, Aliases()), stated_facts(unit, aliases)
    return known[0] if len(known) == 1 and known != plain else None


def _of_record(desk: Desk, document: CoreDocument, record: Record) -> Unit:
    if record.unit is not None:
        return _of_authored(desk, document, record.unit)
    [said] = read_content(record.message, desk.settings.ingest)
    fields = {**_base(desk, document), "kind": "turn", "origin": "conversation", "claim": said.text, **said.fields}
    fields |= {"text": said.text, "author": said.author, "event_time": said.at or desk.now, "session": said.session}
    if said.session is not None and document.user is not None:
        fields["scope"] = "session"
    return Unit(**{**fields, "id": f"{document.name}#{digest('message', record.line, said.text)}"})


def _of_authored(desk: Desk, document: CoreDocument, given: AuthoredUnit) -> Unit:
    fields = (
        "text", "role", "topic", "claim", "procedure", "condition", "utility_acts", "utility_note", "fact", "links",
        "valid_from", "valid_to", "metadata",
    )  # fmt: skip
    # The document's name leads: an id of somebody else's unit cannot be taken over by a file.
    name = given.id if given.id.startswith(f"{document.name}#") else f"{document.name}#{given.id}"
    return Unit(**{**_base(desk, document), **{field: getattr(given, field) for field in fields}, "id": name})


# ------------------------------------------------------------------------------------------------- folders


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder to take in: which files of it, and whose they are."""

    root: Path
    tenant: str
    user: str | None
    include: tuple[str, ...] = INCLUDED
    exclude: tuple[str, ...] = EXCLUDED
    progress: Progress = field(default=lambda _done, _of: None)


def take_in_folder(desk: Desk, folder: Folder, view: View) -> FolderReport:
    """Take in what has changed since last time, file by file; a file that is gone takes its units with it.

    A file that cannot be read is reported, and the others go on. Interrupted, it goes on where it stopped.
    """
    found = listing(folder)
    names = _names(desk, folder, view)
    done: dict[str, list[str]] = {"added": [], "changed": [], "unchanged": []}
    failed = [*found.failed]
    units = 0
    for number, (name, path) in enumerate(found.files.items()):
        folder.progress(number, len(found.files))
        try:
            body = read_file(path, SourceLimits().max_bytes)
            place = _place(folder, name)
            document = CoreDocument(folder.tenant, folder.user, names(name), body, place, core=False)
            status, count = _taken_in(desk, document, view)
        except (InputError, MissingExtraError, BudgetError) as error:
            failed.append((name, str(error)))
            continue
        done[status].append(name)
        units += count
    folder.progress(len(found.files), len(found.files))
    removed = _remove_missing(desk, folder, found.files, view)
    return FolderReport(
        **{k: tuple(v) for k, v in done.items()},
        removed=removed,
        failed=tuple(failed),
        skipped=tuple(found.skipped),
        units=units,
    )


def _names(desk: Desk, folder: Folder, view: View) -> Callable[[str], str]:
    """Return how the documents of a folder are called: as they were, else by the folder's name and their own."""
    label = _labelled(desk, folder, view)
    known = {path: name for name, user, path in desk.store.document_names(view) if path and user == folder.user}
    return lambda relative: known.get(_place(folder, relative), f"{label}/{relative}")


def _labelled(desk: Desk, folder: Folder, view: View) -> str:
    """Return the name that leads those of a folder's documents: as much of its path as tells it from others."""
    root = folder.root.resolve()
    known = [(name, path) for name, user, path in desk.store.document_names(view) if user == folder.user]
    parts = [part for part in root.parts if part != root.anchor]
    for length in range(1, len(parts) + 1):
        label = "/".join(parts[-length:])
        inside = f"{root}{os.sep}"
        if all(path.startswith(inside) for name, path in known if name.startswith(f"{label}/")):
            return label
    return "/".join(parts)


def _taken_in(desk: Desk, document: CoreDocument, view: View) -> tuple[str, int]:
    """Take in one document of a folder; one that was declared core stays core."""
    kept = next((one for one in desk.store.documents(view, name=document.name) if one.user == document.user), None)
    body = desk.clean(document.body)
    if kept is not None and kept.body == body:
        if not kept.here:
            desk.store.put_document(dataclasses.replace(kept, path=document.path, here=True))
        owner = dataclasses.replace(view, user=document.user or "")
        return "unchanged", len(desk.store.parts(owner, document.name, ended=False))
    if kept is not None and not kept.core and not body.strip():  # emptied: it says nothing any more
        keep_units(desk, kept, [])
        desk.store.put_document(dataclasses.replace(document, body=body))
        return "changed", 0
    if kept is not None and kept.core:
        return "changed", len(documents.ingest(desk, dataclasses.replace(document, body=body, core=True), view))
    return ("changed" if kept else "added"), len(take_in(desk, document))


def _place(folder: Folder, relative: str) -> str:
    """Return where a file of a folder lies, by the folder's own place; a link inside it may lead elsewhere."""
    return str(folder.root.resolve() / relative)


def _remove_missing(desk: Desk, folder: Folder, files: dict[str, Path], view: View) -> tuple[str, ...]:
    """End the units of files that were taken in from this folder and are there no longer."""
    root = f"{folder.root.resolve()}{os.sep}"
    present = {_place(folder, name) for name in files}
    gone = [
        (name, path)
        for name, user, path in desk.store.document_names(view)
        if user == folder.user and path.startswith(root) and path not in present and not Path(path).exists()
    ]
    for name, _ in gone:
        for document in desk.store.documents(view, name=name):
            if document.user == folder.user:
                keep_units(desk, document, [])
                desk.store.remove_document(document)
    return tuple(Path(path.removeprefix(root)).as_posix() for _, path in gone)


@dataclass(frozen=True, slots=True)
class Listing:
    """The files of a folder that are to be read, by their names in it; and those that are not, with the reason."""

    files: dict[str, Path] = field(default_factory=dict)
    skipped: list[tuple[str, str]] = field(default_factory=list)
    failed: list[tuple[str, str]] = field(default_factory=list)


def listing(folder: Folder) -> Listing:
    """Return what is to be taken in, in order.

    Raises:
        InputError: it is not a folder.
    """
    if not is_folder(folder.root):
        raise InputError(f"{shown(str(folder.root))} is not a folder; name one, or a single file")
    check_path(folder.root)
    found = Listing()
    for relative, path in _walk(folder, found.skipped):
        if _matches(relative, folder.exclude):
            continue
        if printable(relative) != relative:
            found.failed.append((printable(relative), "its name is not UTF-8; rename the file"))
        elif reason := _skipped(path, relative, folder):
            found.skipped.append((relative, reason))
        else:
            found.files[relative] = path
    return found


def _walk(folder: Folder, skipped: list[tuple[str, str]]) -> Iterator[tuple[str, Path]]:
    """Yield the files of a folder; one that contains itself through a link is entered once, and no link out of it."""
    entered: set[tuple[int, int]] = set()
    for place, folders, names in os.walk(folder.root, followlinks=True):
        here = Path(place)
        status = here.stat()
        if (status.st_dev, status.st_ino) in entered:
            folders.clear()
            continue
        entered.add((status.st_dev, status.st_ino))
        inner = {name: (here / name).relative_to(folder.root).as_posix() for name in sorted(folders)}
        wanted = {name: relative for name, relative in inner.items() if not _matches(f"{relative}/", folder.exclude)}
        skipped += [(printable(wanted[name]), _LEADS_OUT) for name in wanted if _leads_out(here / name, folder)]
        folders[:] = [name for name in wanted if not _leads_out(here / name, folder)]
        for name in sorted(names):
            yield (here / name).relative_to(folder.root).as_posix(), here / name


def _skipped(path: Path, relative: str, folder: Folder) -> str:
    """Return why a file is not read, or nothing."""
    if _leads_out(path, folder):
        return _LEADS_OUT
    if not _matches(relative, folder.include):
        return "of a kind that is not read; ask for it with include"
    return "" if path.is_file() else "it is no regular file"


def _leads_out(path: Path, folder: Folder) -> bool:
    """Return whether something is a link to outside of its folder."""
    root = os.path.realpath(folder.root)
    return path.is_symlink() and not f"{os.path.realpath(path)}{os.sep}".startswith(f"{root.rstrip(os.sep)}{os.sep}")


def _matches(relative: str, patterns: Sequence[str]) -> bool:
    """Return whether a file is one of those that patterns name; capitals make no difference."""
    path, name = relative.lower(), relative.lower().rpartition("/")[2]
    return any(fnmatch.fnmatchcase(path, one.lower()) or fnmatch.fnmatchcase(name, one.lower()) for one in patterns)


# ------------------------------------------------------------------------------------------------ widening


def widen(desk: Desk, view: View, unit: Unit) -> Widened:
    """Return the section that a unit of a document stands in, from the document as it was last read.

    Raises:
        NotFoundError: the unit is of no document, or the document no longer has it.
    """
    name = desk.store.documents_of(view, [unit.id]).get(unit.id)
    kept = [one for one in desk.store.documents(view, name=name) if one.user == unit.user] if name else []
    if not kept:
        raise NotFoundError(f"{shown(unit.id)} is of no document that is kept; only a document's unit can be widened")
    source = read_source(kept[0].name, kept[0].body, relations=desk.settings.symbolic.relations)
    read = _places(desk, kept[0], source)
    if unit.id not in read:
        raise NotFoundError(f"{shown(name)} no longer says {shown(unit.id)}; ingest it again, or read its history")
    piece = read[unit.id]
    section = next(one for one in source.sections if one.id == piece.section)
    return Widened(
        unit=unit,
        document=source.name,
        path=section.path,
        text=source.text[section.start : section.end],
        start=section.start,
        end=section.end,
        unit_start=piece.start,
        unit_end=piece.end,
        page=section.page,
        units=tuple(unit_id for unit_id, one in read.items() if one.section == section.id),
    )


def _places(desk: Desk, document: CoreDocument, source: Source) -> dict[str, Piece]:
    """Return where each unit of a document stands in it."""
    units = units_of(desk, document, source)
    return {unit.id: piece for unit, piece in zip(units, source.pieces, strict=True)}
