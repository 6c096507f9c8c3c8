"""Core documents (C14): kept with the store, read again when their file changes, partitioned once for each content.

The rules of a document are not units: hard and soft nodes go into contexts as they stand, and only variant nodes are
remembered, searched and recalled.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from pathlib import Path

from holdfast.analysis.authored import Document, Node, partition
from holdfast.analysis.checks import check_name
from holdfast.analysis.tokens import TokenCounter
from holdfast.assembly.budget import check_hard
from holdfast.embedders.base import Embedder
from holdfast.errors import InputError, shown
from holdfast.ingest import embed
from holdfast.settings import Settings
from holdfast.store.base import Analyse, Store
from holdfast.types import AuthoredText, CoreDocument, Draft, Unit, View, Written

log = logging.getLogger("holdfast")
# A file may be saved while it is read; a second look finds it whole.
_READINGS = 2


@dataclass(frozen=True, slots=True)
class Rules:
    """What the core documents of one owner bring into a context, and which units belong to which document."""

    hard: tuple[AuthoredText, ...] = ()
    soft: tuple[AuthoredText, ...] = ()
    units: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Desk:
    """What reading documents needs and does not own."""

    store: Store
    settings: Settings
    analyse: Analyse
    embedder: Embedder | None
    counter: TokenCounter
    now: datetime


# Ψ: the partition is a function of the bytes alone.
_partitioned = lru_cache(maxsize=256)(partition)


def ingest(desk: Desk, document: CoreDocument, view: View, *, core: bool) -> list[Written]:
    """Keep a document: its rules for every context when it is core, and what else it says as units.

    Raises:
        InputError: it cannot be read as a document.
        BudgetError: with it, the hard rules would pass their share of `assembly.budget`.
    """
    read = _partitioned(document.name, document.body, max_bytes=desk.settings.authored.max_bytes)
    known = desk.store.documents(view)
    before = next((kept for kept in known if (kept.name, kept.user) == (document.name, document.user)), None)
    if core:
        others = [kept for kept in known if kept is not before]
        check_rules(desk, [*others, document])
        desk.store.put_document(document)
    return _remember(desk, document, read, before, core=core)


def check_rules(desk: Desk, documents: Sequence[CoreDocument]) -> None:
    """Refuse hard rules that together pass their share of `assembly.budget` (C16's start-up check)."""
    hard = [text for document in documents for text in _texts(_read(document, desk.settings), "hard")]
    check_hard(hard, desk.counter, desk.settings.assembly)


def rules(desk: Desk, view: View) -> Rules:
    """Return the rules in force: each document as it now stands, in the order in which they were declared."""
    hard: list[AuthoredText] = []
    soft: list[AuthoredText] = []
    units: dict[str, tuple[str, ...]] = {}
    warnings: list[str] = []
    for kept in desk.store.documents(view):
        document, warning = _current(desk, kept)
        read = _read(document, desk.settings)
        hard += _texts(read, "hard")
        soft += _texts(read, "soft")
        units[document.name] = tuple(unit_id(read, node) for node in read.nodes if _recalled(node, core=True))
        warnings += [warning] if warning else []
    return Rules(tuple(hard), tuple(soft), units, tuple(warnings))


def read_file(path: Path) -> bytes:
    """Return what a file holds, all of one writing.

    Raises:
        InputError: it cannot be read, or does not hold still.
    """
    for _ in range(_READINGS):
        try:
            before = path.stat()
            raw = path.read_bytes()
            after = path.stat()
        except OSError as error:
            raise InputError(f"{shown(str(path))} cannot be read: {error.strerror}; check its name") from error
        if (before.st_mtime_ns, before.st_size) == (after.st_mtime_ns, after.st_size) and len(raw) == after.st_size:
            return raw
    raise InputError(f"{shown(str(path))} changes while it is read; try again when its writer has finished")


def unit_id(document: Document, node: Node) -> str:
    """Return the id of a document's node as a unit."""
    return f"{document.name}#{node.ordinal:06d}"


# ---------------------------------------------------------------------------------------------- one document


def _read(document: CoreDocument, settings: Settings) -> Document:
    return _partitioned(document.name, document.body, max_bytes=settings.authored.max_bytes)


def _current(desk: Desk, kept: CoreDocument) -> tuple[CoreDocument, str]:
    """Return a document as its file now has it; one whose file is gone or unreadable stays as it was, with a word."""
    if not kept.path:
        return kept, ""
    try:
        body = read_file(Path(kept.path))
        if body == kept.body:
            return kept, ""
        fresh = CoreDocument(kept.tenant, kept.user, kept.name, body, kept.path)
        read = _read(fresh, desk.settings)
    except InputError as error:
        return kept, f"the rules of {kept.name} are those of its last reading: {error}"
    desk.store.put_document(fresh)
    _remember(desk, fresh, read, kept, core=True)
    return fresh, ""


def _texts(document: Document, tier: str) -> list[AuthoredText]:
    by_ordinal = {node.ordinal: node for node in document.nodes}
    return [
        AuthoredText(
            document.name,
            node.position,
            node.markdown,
            tuple((ordinal, by_ordinal[ordinal].markdown) for ordinal in node.headings),
        )
        for node in document.nodes
        if node.tier == tier
    ]


def _recalled(node: Node, *, core: bool) -> bool:
    """Return whether a node is remembered: of a core document what is no rule, of another everything; never blank."""
    return bool(node.text.strip()) and node.kind != "heading" and (not core or node.tier == "variant")


def _remember(
    desk: Desk, document: CoreDocument, read: Document, before: CoreDocument | None, *, core: bool
) -> list[Written]:
    """Remember the nodes that are recalled; what the reading before had and this one has not expires."""
    units = [_unit(desk, document, read, node, core=core) for node in read.nodes if _recalled(node, core=core)]
    gone = _gone(desk, before, {unit.id for unit in units}) if before is not None else []
    # Nobody gave a time: a node that says what it said before is the same unit, not a new version.
    drafts = [Draft(unit, desk.analyse(unit), id_given=True) for unit in (*units, *gone)]
    written = desk.store.put(drafts) if drafts else []
    fresh = [
        unit.evolve(version=done.version)
        for unit, done in zip((*units, *gone), written, strict=True)
        if done.status != "duplicate"
    ]
    embed(fresh, desk.store, desk.embedder)
    return written[: len(units)]


def _gone(desk: Desk, before: CoreDocument, present: set[str]) -> list[Unit]:
    read = _read(before, desk.settings)
    absent = [name for node in read.nodes if (name := unit_id(read, node)) not in present]
    view = View(tenant=before.tenant, user=before.user or "", now=desk.now, reference_time=desk.now)
    known = desk.store.units(view, absent)
    return [
        unit.evolve(expires_at=desk.now, recorded_time=desk.now)
        for _, unit in sorted(known.items())
        if unit.user == before.user and unit.expires_at is None
    ]


def _unit(desk: Desk, document: CoreDocument, read: Document, node: Node, *, core: bool) -> Unit:
    by_ordinal = {other.ordinal: other for other in read.nodes}
    return Unit(
        id=unit_id(read, node),
        text=node.markdown.strip() if node.kind in ("code", "table") else node.text,
        claim=node.text,
        topic=" › ".join(by_ordinal[ordinal].text for ordinal in node.headings),
        tenant=document.tenant,
        user=document.user,
        scope="global" if document.user is None else "user",
        kind="authored" if core else "knowledge",
        author="document",
        origin="authored" if core else "document",
        authority=1.0 if core else 0.0,
        links=read.hop_targets,
        event_time=desk.now,
        recorded_time=desk.now,
    )


def document_name(name: str | None, path: Path | None) -> str:
    """Return how a document is called: by the name given, else by its file's."""
    if name is not None:
        return check_name("name", name) or ""
    if path is None:
        raise InputError("a text needs a name; pass name=…, so that ingesting it again replaces it")
    return path.name
