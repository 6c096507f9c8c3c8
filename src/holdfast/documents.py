"""Core documents (C14): kept with the store, read again when their file changes, partitioned once for each content.

The rules of a document are not units: hard and soft nodes go into contexts as they stand, and only variant nodes are
remembered, searched and recalled.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from pathlib import Path

from holdfast.analysis.authored import Document, Node, partition
from holdfast.analysis.checks import check_name
from holdfast.analysis.tokens import TokenCounter
from holdfast.assembly.budget import check_hard
from holdfast.errors import InputError, shown
from holdfast.ingest import Indexing, Redact, embed_all, fresh_units
from holdfast.settings import Settings
from holdfast.store.base import Analyse, Store
from holdfast.types import AuthoredText, CoreDocument, Draft, Unit, View, Written

# A file may be saved while it is read; a second look finds it whole.
_READINGS = 2


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


# Ψ: the partition is a function of the bytes alone.
_partitioned = lru_cache(maxsize=256)(partition)


def ingest(desk: Desk, document: CoreDocument, view: View) -> list[Written]:
    """Keep a core document: its rules for every context, and what else it says as units.

    Raises:
        InputError: it cannot be read as a document.
        BudgetError: with it, somebody's hard rules would pass their share of `assembly.budget`.
    """
    read = _read(document, desk.settings)
    for reader in _readers(desk, document, view):
        others = [kept for kept in desk.store.documents(reader, core=True) if not _same(kept, document)]
        check_rules(desk, [*others, document])
    # Units first: whoever is interrupted in between reads the document again, and finds it changed.
    written = _remember(desk, document, read)
    desk.store.put_document(document)
    return written


def check_rules(desk: Desk, documents: Sequence[CoreDocument]) -> None:
    """Refuse hard rules that together pass their share of `assembly.budget` (C16's start-up check).

    A file is judged as it now stands: whoever has shortened it can open the store again.
    """
    present = [_present(desk, document)[0] for document in documents]
    hard = [text for document in present for text in _texts(_read(document, desk.settings), "hard")]
    check_hard(hard, desk.counter, desk.settings.assembly)


def rules(desk: Desk, view: View) -> Rules:
    """Return the rules in force: each document as it now stands, in the order in which they were declared."""
    hard: list[AuthoredText] = []
    soft: list[AuthoredText] = []
    warnings: list[str] = []
    core = desk.store.documents(view, core=True)
    own = {kept.name for kept in core if kept.user is not None}
    for kept in core:
        document, warning = _present(desk, kept)
        read = _read(document, desk.settings)
        if document is not kept:
            _remember(desk, document, read)
            desk.store.put_document(document)
        # Two documents of one name are told apart: one is the user's, one is everyone's.
        label = f"{document.name} of everyone" if document.user is None and document.name in own else document.name
        hard += _texts(read, "hard", label)
        soft += _texts(read, "soft", label)
        warnings += [warning] if warning else []
    return Rules(tuple(hard), tuple(soft), tuple(warnings))


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


def _same(one: CoreDocument, other: CoreDocument) -> bool:
    return (one.name, one.user) == (other.name, other.user)


def _readers(desk: Desk, document: CoreDocument, view: View) -> list[View]:
    """Return the owners whose rules a document joins: everyone's, when it is everyone's."""
    users = {view.user}
    if document.user is None:
        users |= {user for tenant, user in desk.store.document_owners() if tenant == view.tenant and user}
    return [dataclasses.replace(view, user=user) for user in sorted(users)]


def _read(document: CoreDocument, settings: Settings) -> Document:
    return _partitioned(document.name, document.body, max_bytes=settings.authored.max_bytes)


def _present(desk: Desk, kept: CoreDocument) -> tuple[CoreDocument, str]:
    """Return a document as its file now has it; one whose file is gone or unreadable stays as it was, with a word."""
    if not kept.path:
        return kept, ""
    try:
        body = desk.clean(read_file(Path(kept.path)))
        if body == kept.body:
            return kept, ""
        fresh = dataclasses.replace(kept, body=body)
        _read(fresh, desk.settings)
    except InputError as error:
        return kept, f"{kept.name} is used as it was last read: {error}"
    return fresh, ""


def _texts(document: Document, tier: str, label: str | None = None) -> list[AuthoredText]:
    by_ordinal = {node.ordinal: node for node in document.nodes}
    return [
        AuthoredText(
            label or document.name,
            node.position,
            node.markdown,
            tuple((ordinal, by_ordinal[ordinal].markdown) for ordinal in node.headings),
        )
        for node in document.nodes
        if node.tier == tier
    ]


def _recalled(node: Node) -> bool:
    """Return whether a node is remembered: what is no rule, and never what is blank."""
    return bool(node.text.strip()) and node.kind != "heading" and node.tier == "variant"


def _remember(desk: Desk, document: CoreDocument, read: Document) -> list[Written]:
    """Remember the nodes that are no rules."""
    return keep_units(desk, document, [_unit(desk, document, read, node) for node in read.nodes if _recalled(node)])


def keep_units(desk: Desk, document: CoreDocument, units: Sequence[Unit]) -> list[Written]:
    """Remember what a document says; what an earlier reading had and this one has not expires."""
    gone = _gone(desk, document, {unit.id for unit in units})
    # Nobody gave a time: a part that says what it said before is the same unit, not a new version.
    drafts = [
        Draft(unit, desk.analyse(unit), id_given=True, document=document.name) for unit in (*units, *gone)
    ]
    written = desk.store.put(drafts) if drafts else []
    embed_all(fresh_units(drafts, written), desk.store, desk.indexing)
    return written[: len(units)]


def _gone(desk: Desk, document: CoreDocument, present: set[str]) -> list[Unit]:
    view = View(tenant=document.tenant, user=document.user or "", now=desk.now, reference_time=desk.now)
    absent = [name for name in desk.store.parts(view, document.name) if name not in present]
    known = desk.store.units(view, absent)
    return [
        unit.evolve(expires_at=desk.now, recorded_time=desk.now)
        for _, unit in sorted(known.items())
        if unit.user == document.user and unit.expires_at is None
    ]


def _unit(desk: Desk, document: CoreDocument, read: Document, node: Node) -> Unit:
    by_ordinal = {other.ordinal: other for other in read.nodes}
    return Unit(
        id=unit_id(read, node),
        text=node.markdown.strip() if node.kind in ("code", "table") else node.text,
        claim=node.text,
        topic=" › ".join(by_ordinal[ordinal].text for ordinal in node.headings),
        tenant=document.tenant,
        user=document.user,
        scope="global" if document.user is None else "user",
        kind="authored",
        author="document",
        origin="authored",
        authority=1.0,
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
