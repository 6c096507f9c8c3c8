"""Documents that are kept, and core ones among them (C14): read again when their file changes.

The rules of a core document are not units: hard and soft nodes go into contexts as they stand, and only variant nodes
are remembered, searched and recalled.
"""

from __future__ import annotations

import dataclasses
import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from holdfast.context.plan import check_hard
from holdfast.documents.markdown import Node, Partition, Tier
from holdfast.errors import InputError, shown
from holdfast.ingest import Indexing, Redact, embed_all, fresh_units
from holdfast.lifecycle.forget import has_ended
from holdfast.messages.checks import check_name, refuse_foreign
from holdfast.settings import Settings
from holdfast.store.contract import ALL, NO_HURRY, Analyse, DocumentChange, DocumentQuery, Store, look
from holdfast.text.tokens import TokenCounter
from holdfast.types import AuthoredText, Document, Draft, Unit, View, Written

if TYPE_CHECKING:
    from holdfast.documents.markdown import Node, Partition, Tier

# A file may be saved while it is read; a second look finds it whole.
_READINGS = 2
# Nobody waits for the other end of a pipe that has taken the place of a file.
_READING = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
_GONE = (FileNotFoundError, NotADirectoryError)


@dataclass(frozen=True, slots=True)
class Rules:
    """What the core documents of one owner bring into a context."""

    hard: tuple[AuthoredText, ...] = ()
    soft: tuple[AuthoredText, ...] = ()
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Desk:
    """What reading documents needs and does not own."""

    store: Store
    settings: Settings
    analyse: Analyse
    indexing: Indexing
    counter: TokenCounter
    now: datetime
    redact: Redact | None = None

    def clean(self, body: bytes) -> bytes:
        """Return a text's bytes without what must not be kept; bytes that are no text are left to their reader."""
        if self.redact is None:
            return body
        try:
            return self.redact(body.decode()).encode()
        except UnicodeDecodeError:
            return body

    def find(self, view: View, name: str, user: str | None) -> Document | None:
        """Return the document of a name that is kept for one user, or for everyone."""
        return next(
            (one for one in look(self.store, view, lambda reading: reading.documents(name=name)) if one.user == user),
            None,
        )


# ----------------------------------------------------------------------------------------------------------- files


def read_file(path: Path, most: int) -> bytes:
    """Return what a regular file of at most so many bytes holds, all of one writing.

    Raises:
        InputError: it cannot be read, is no such file, is no text by its name, or does not hold still.
    """
    refuse_foreign(path.name)
    for _ in range(_READINGS):
        try:
            _refuse_unreadable(path, path.stat(), most)  # a device may act when it is opened
            with os.fdopen(os.open(path, _READING), "rb") as file:
                before = os.fstat(file.fileno())
                _refuse_unreadable(path, before, most)
                raw = read_all(file, most)
            after = path.stat()
        except OSError as error:
            raise InputError(f"{shown(str(path))} cannot be read: {error.strerror}; check its name") from error
        if (before.st_mtime_ns, before.st_size) == (after.st_mtime_ns, after.st_size) and len(raw) == after.st_size:
            return raw
    raise InputError(f"{shown(str(path))} changes while it is read; try again when its writer has finished")


def read_all(file: BinaryIO, most: int) -> bytes:
    """Return all bytes of an open file; of one that grows meanwhile, one byte more than may be."""
    return file.read(most + 1)


def _refuse_unreadable(path: Path, found: os.stat_result, most: int) -> None:
    """Refuse a pipe or device, which may never end, and a file that is larger than may be."""
    if not stat.S_ISREG(found.st_mode):
        raise InputError(f"{shown(str(path))} is no regular file; name a file that holds text")
    if found.st_size > most:
        raise InputError(f"{shown(str(path))} has {found.st_size:,} bytes, more than {most:,}; split it")


def check_path(path: Path) -> Path:
    """Return a path unless its name cannot be kept.

    Raises:
        InputError: it is not UTF-8, or a link that leads to itself.
    """
    try:
        whole = str(path.resolve())
    except RuntimeError as error:  # what Python 3.11 and 3.12 raise for a link that leads to itself
        raise InputError(f"{shown(printable(str(path)))} is a link that leads to itself; name a file") from error
    if printable(whole) != whole:
        raise InputError(f"the name {shown(printable(str(path)))} is not UTF-8; rename the file")
    return path


def is_folder(path: Path) -> bool:
    """Return whether a path is a folder; one that is too long, or holds a NUL, is none."""
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False


def printable(name: str) -> str:
    """Return a file's name with the bytes of it that are no UTF-8 written out."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def document_name(desk: Desk, view: View, user: str | None, name: str | None, path: Path | None) -> str:
    """Return how a document is called: by the name given, by the name its file has had, else by its file's.

    Two files of one name are told apart by as much of their paths as it takes.
    """
    if name is not None:
        return check_name("name", name) or ""
    if path is None:
        raise InputError("a text needs a name; pass name=…, so that ingesting it again replaces it")
    kept = look(desk.store, view, lambda reading: reading.documents(bodies=False))
    known = {one.name: one.path for one in kept if one.user == user}
    whole = Path.cwd() / path
    for called, where in known.items():
        if where in (str(whole), str(path.resolve())):
            return called
    names = ["/".join(whole.parts[-length:]) for length in range(1, len(whole.parts))]
    free = (one for one in names if one not in known or _is_left_behind(desk.find(view, one, user)))
    return check_name("name", next(free, whole.as_posix())) or ""


def _is_left_behind(kept: Document | None) -> bool:
    """Return whether a document's file was given where its store no longer lies: the file of that name takes over."""
    return kept is not None and bool(kept.path) and not kept.here


# ----------------------------------------------------------------------------------------------------------- units


def unit_of(desk: Desk, document: Document, **fields: Any) -> Unit:  # noqa: ANN401 - the fields of a unit
    """Return a unit that a document says: its owner's, and of now unless `fields` say otherwise."""
    base = {
        "tenant": document.tenant,
        "user": document.user,
        "scope": "global" if document.user is None else "user",
        "author": "document",
        "event_time": desk.now,
        "recorded_time": desk.now,
    }
    return Unit(**{**base, **fields})


def keep_units(desk: Desk, document: Document, units: Sequence[Unit]) -> list[Written]:
    """Remember what a document says; what an earlier reading had and this one has not expires."""
    gone = _gone(desk, document, {unit.id for unit in units})
    # Nobody gave a time: a part that says what it said before is the same unit, not a new version.
    drafts = [Draft(unit, desk.analyse, id_given=True, document=document.name) for unit in (*units, *gone)]
    written = desk.store.put(drafts) if drafts else []
    embed_all(fresh_units(drafts, written), desk.store, desk.indexing)
    return written[: len(units)]


def _gone(desk: Desk, document: Document, present: set[str]) -> list[Unit]:
    view = View(tenant=document.tenant, user=document.user or "", now=desk.now, reference_time=desk.now)
    with desk.store.reading(view) as reading:
        parts = reading.propose(DocumentQuery(document.name), ALL, NO_HURRY).ids
        known = reading.units([name for name in parts if name not in present])
    return [
        unit.evolve(expires_at=desk.now, recorded_time=desk.now)
        for _, unit in sorted(known.items())
        if unit.user == document.user and not has_ended(unit)
    ]


# -------------------------------------------------------------------------------------------------- core documents


# Ψ: the partition is a function of the bytes alone. What rules cost is kept by `assembly.budget`, by counter too.
@lru_cache(maxsize=256)
def _partitioned(name: str, body: bytes, max_bytes: int) -> Partition:
    # A parser of Markdown takes longer to import than the memory takes to open, and few have core documents.
    from holdfast.documents.markdown import partition  # noqa: PLC0415 - see above

    return partition(name, body, max_bytes=max_bytes)


def drop_readings() -> None:
    """Let go of the partitions that are kept in memory: what was forgotten is not to be among them."""
    _partitioned.cache_clear()


def ingest(desk: Desk, document: Document, view: View) -> list[Written]:
    """Keep a core document: its rules for every context, and what else it says as units.

    Raises:
        InputError: it cannot be read as a document.
        BudgetError: with it, the hard rules that its owner sees would pass their share of `assembly.budget`.
    """
    if not _read(desk, document).nodes:
        raise InputError(
            f"{shown(document.name)} has {len(document.body)} bytes and no content; write some text, or leave it out"
        )
    core = look(desk.store, view, lambda reading: reading.documents(core=True))
    others = [kept for kept in core if (kept.name, kept.user) != (document.name, document.user)]
    present = [*(_present(desk, other)[0] for other in others), document]
    hard = [text for one in present for text in _texts(_read(desk, one), "hard", one.name)]
    check_hard(hard, desk.counter, desk.settings.assembly)
    return _keep(desk, document)


def rules(desk: Desk, view: View) -> Rules:
    """Return the rules in force: each document as it now stands, in the order in which they were declared."""
    hard: list[AuthoredText] = []
    soft: list[AuthoredText] = []
    warnings: list[str] = []
    core = look(desk.store, view, lambda reading: reading.documents(core=True))
    own = {kept.name for kept in core if kept.user is not None}
    for kept in core:
        document, warning = _follow(desk, kept)
        read = _read(desk, document)
        # Two documents of one name are told apart: one is the user's, one is everyone's.
        label = f"{document.name} of everyone" if document.user is None and document.name in own else document.name
        hard += _texts(read, "hard", label)
        soft += _texts(read, "soft", label)
        warnings += [warning] if warning else []
    return Rules(tuple(hard), tuple(soft), tuple(warnings))


def unit_id(document: Partition, node: Node) -> str:
    """Return the id of a document's node as a unit."""
    return f"{document.name}#{node.ordinal:06d}"


def _read(desk: Desk, document: Document) -> Partition:
    return _partitioned(document.name, document.body, desk.settings.authored.max_bytes)


def _keep(desk: Desk, document: Document) -> list[Written]:
    """Keep a document and those of its nodes that are no rules, nor blank, as units."""
    read = _read(desk, document)
    said = [one for one in read.nodes if one.tier == "variant" and one.kind != "heading" and one.text.strip()]
    # Units first: whoever is interrupted in between reads the document again, and finds it changed.
    written = keep_units(desk, document, [_unit(desk, document, read, node) for node in said])
    desk.store.mark([DocumentChange(document)])
    return written


def _follow(desk: Desk, kept: Document) -> tuple[Document, str]:
    """Take in what a document's file now says, and return it; one whose units cannot be kept stays as it was."""
    document, warning = _present(desk, kept)
    if document.body == kept.body:
        return document, warning
    try:
        _keep(desk, document)
    except InputError as error:  # somebody's unit has the id of a new part: that must not end everyone's contexts
        return kept, _as_last_read(kept, error)
    return document, warning


def _present(desk: Desk, kept: Document) -> tuple[Document, str]:
    """Return a document as its file now has it, and a word when that is not what somebody might expect.

    One whose file is empty or gone says nothing any more; one that cannot be read stays as it was.
    """
    if not kept.path:
        return kept, ""
    if not kept.here:
        return kept, f"{kept.name} is used as it was last read: its store lies elsewhere now; ingest the file again"
    try:
        body = desk.clean(read_file(Path(kept.path), desk.settings.authored.max_bytes))
        fresh = dataclasses.replace(kept, body=body)
        said = _read(desk, fresh).nodes
    except InputError as error:
        if not isinstance(error.__cause__, _GONE):
            return kept, _as_last_read(kept, error)
        return dataclasses.replace(kept, body=b""), _ended(kept, "gone")
    return fresh, "" if said else _ended(kept, "empty")


def _as_last_read(kept: Document, why: InputError) -> str:
    return f"{kept.name} is used as it was last read: {why}"


def _ended(kept: Document, how: str) -> str:
    return f"{kept.name} has no rules any more: its file is {how}; write it again, or forget the document"


def _texts(document: Partition, tier: Tier, label: str) -> list[AuthoredText]:
    lines = [node.markdown for node in document.nodes]
    return [
        AuthoredText(label, node.position, node.markdown, tuple((one, lines[one]) for one in node.headings))
        for node in document.nodes
        if node.tier == tier
    ]


def _unit(desk: Desk, document: Document, read: Partition, node: Node) -> Unit:
    return unit_of(
        desk,
        document,
        id=unit_id(read, node),
        text=node.markdown.strip() if node.kind in ("code", "table") else node.text,
        claim=node.text,
        topic=" › ".join(read.nodes[ordinal].text for ordinal in node.headings),
        kind="authored",
        origin="authored",
        authority=1.0,
        links=read.hop_targets,
    )
