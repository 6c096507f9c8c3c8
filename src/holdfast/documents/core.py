"""Documents that are kept, and core ones among them (C14): read again when their file changes.

The rules of a core document are not units: hard and soft nodes go into contexts as they stand, and only variant nodes
are remembered, searched and recalled.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import lru_cache, partial
from operator import methodcaller
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.context.plan import check_hard
from holdfast.documents.folder import check_path, is_folder, read_file
from holdfast.errors import BudgetError, InputError, quote_value
from holdfast.ingest import Redact, written_units
from holdfast.lifecycle.embedding import EmbeddingPlan, embed_all
from holdfast.lifecycle.forget import has_ended
from holdfast.messages.checks import check_flag, check_given_text, check_location, check_name, choose, refuse_binary
from holdfast.settings import Settings
from holdfast.store.contract import NO_DEADLINE, NO_LIMIT, Analyse, DocumentChange, Store, read_once
from holdfast.store.queries import DocumentQuery
from holdfast.text.calendar import EPOCH
from holdfast.text.tokens import RATIOS, Estimator, TokenCounter
from holdfast.types import AuthoredText, Document, Draft, SourceLimits, Unit, View, WriteResult
from holdfast.types.contexts import Rules
from holdfast.types.outcomes import Progress
from holdfast.values import dataclass

if TYPE_CHECKING:
    from holdfast.documents.markdown import Node, Partition, Tier
log = logging.getLogger("holdfast")
_GONE = (FileNotFoundError, NotADirectoryError)
_CORE = methodcaller("documents", core=True)


@dataclass(frozen=True, slots=True)
class IngestContext:
    """What reading documents needs and does not own."""

    store: Store
    settings: Settings
    analyse: Analyse
    indexing: EmbeddingPlan
    counter: TokenCounter
    now: datetime
    redact: Redact | None = None
    progress: Progress = lambda _done, _of: None

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
            (
                one
                for one in read_once(self.store, view, lambda reading: reading.documents(name=name))
                if one.user == user
            ),
            None,
        )


def document_name(desk: IngestContext, view: View, user: str | None, name: str | None, path: Path | None) -> str:
    """Return how a document is called: by the name given, by the name its file has had, else by its file's.

    Two files of one name are told apart by as much of their paths as it takes.
    """
    if name is not None:
        return check_name("name", name) or ""
    if path is None:
        raise InputError(
            "a text needs a name; pass name=…, so that ingesting it again replaces it (a file is named by a Path: "
            "ingest(Path('notes.md'), …))"
        )
    kept = read_once(desk.store, view, lambda reading: reading.documents(bodies=False))
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


def unit_of(desk: IngestContext, document: Document, **fields: Any) -> Unit:  # noqa: ANN401 - the fields of a unit
    """Return a unit that a document says: its owner's, and of now unless `fields` say otherwise."""
    base = {
        "tenant": document.tenant,
        "user": document.user,
        "agent": document.agent,
        "scope": "global" if document.user is None else "user",
        "author": "document",
        "event_time": desk.now,
        "recorded_time": desk.now,
    }
    return Unit(**{**base, **fields})


def write_units(desk: IngestContext, document: Document, units: Sequence[Unit]) -> list[WriteResult]:
    """Remember what a document says; what an earlier reading had and this one has not expires."""
    gone = _gone(desk, document, {unit.id for unit in units})
    # Nobody gave a time: a part that says what it said before is the same unit, not a new version.
    drafts = [Draft(unit, desk.analyse, id_given=True, document=document.name) for unit in (*units, *gone)]
    desk.progress(0, len(drafts))
    written = desk.store.put(drafts) if drafts else []
    embed_all(written_units(drafts, written), desk.store, desk.indexing, desk.progress)
    return written[: len(units)]


def _gone(desk: IngestContext, document: Document, present: set[str]) -> list[Unit]:
    view = View(tenant=document.tenant, user=document.user or "", now=desk.now, reference_time=desk.now)
    with desk.store.reading(view) as reading:
        parts = reading.propose(DocumentQuery(document.name), NO_LIMIT, NO_DEADLINE).ids
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


def clear_parse_cache() -> None:
    """Let go of the partitions that are kept in memory: what was forgotten is not to be among them."""
    _partitioned.cache_clear()


def ingest(desk: IngestContext, document: Document, view: View) -> list[WriteResult]:
    """Keep a core document: its rules for every context, and what else it says as units.

    Raises:
        InputError: it cannot be read as a document.
        BudgetError: with it, the hard rules that its owner sees would pass their share of `assembly.budget`.
    """
    if not _read(desk, document).nodes:
        raise InputError(
            f"{quote_value(document.name)} has {len(document.body)} bytes and no content; write some text, or "
            "leave it out"
        )
    check_document(desk, document, view)
    return _keep(desk, document)


def check_document(desk: IngestContext, document: Document, view: View) -> None:
    """Refuse a document that no context could hold, or that is too large to be read.

    Raises:
        InputError: it cannot be read as a document.
        BudgetError: with it, the hard rules that its owner sees would pass their share of `assembly.budget`.
    """
    if not document.core:
        if len(document.body) > (most := SourceLimits().max_bytes):
            raise InputError(f"{quote_value(document.name)} has {len(document.body):,} bytes, more than {most:,}")
        return
    core = read_once(desk.store, view, _CORE)
    own = (document.name, document.user)
    others = [kept for kept in core if (kept.name, kept.user) != own and kept.is_for(document.agent)]
    present = [*(_present(desk, other)[0] for other in others), document]
    _check_each_agents([(one, _read(desk, one)) for one in present], desk.counter, desk.settings)


def _check_each_agents(core: Sequence[tuple[Document, Partition]], counter: TokenCounter, settings: Settings) -> None:
    """Refuse hard rules that together pass their share for one agent: it sees its own and those of all."""
    for agent in sorted({one.agent or "" for one, _ in core}):
        seen = [(one.name, partition) for one, partition in core if one.agent in (agent, None)]
        hard = [text for name, partition in seen for text in _texts(partition, "hard", name)]
        check_hard(hard, counter, settings.assembly)


def import_checks(desk: IngestContext) -> tuple[Callable[[bytes], bytes], Callable[[Document, View], None]]:
    """Return what a document of an export goes through: `IngestContext.clean`, then `check_document`."""
    return desk.clean, partial(check_document, desk)


def check_rules(store: Store, settings: Settings, counter: TokenCounter | None) -> None:
    """Refuse or report, when a store is opened, hard rules of its user that pass their share of `assembly.budget`.

    Those of other users are checked when they are ingested, and in each context.

    Raises:
        BudgetError: they do, and `assembly.lenient_hard` is off. The store is closed.
    """
    own = settings.store
    view = View(tenant=own.tenant, user=own.user, now=EPOCH, reference_time=EPOCH)  # rules are of no time
    core = read_once(store, view, _CORE)
    read = [(one, _partitioned(one.name, one.body, settings.authored.max_bytes)) for one in core]
    try:
        _check_each_agents(read, counter or Estimator(RATIOS[settings.tokens.ratios]), settings)
    except BudgetError as error:
        if not settings.assembly.lenient_hard:
            store.close()
            raise
        log.warning("contexts will have little room for anything else: %s", error)


def load_rules(desk: IngestContext, view: View) -> Rules:
    """Return the rules in force: each document as it now stands, in the order in which they were declared."""
    hard: list[AuthoredText] = []
    soft: list[AuthoredText] = []
    warnings: list[str] = []
    core = [one for one in read_once(desk.store, view, _CORE) if one.is_for(view.agent)]
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


def _read(desk: IngestContext, document: Document) -> Partition:
    return _partitioned(document.name, document.body, desk.settings.authored.max_bytes)


def _keep(desk: IngestContext, document: Document) -> list[WriteResult]:
    """Keep a document and those of its nodes that are no rules, nor blank, as units."""
    read = _read(desk, document)
    said = [one for one in read.nodes if one.tier == "variant" and one.kind != "heading" and one.text.strip()]
    # Units first: whoever is interrupted in between reads the document again, and finds it changed.
    written = write_units(desk, document, [_unit(desk, document, read, node) for node in said])
    desk.store.apply([DocumentChange(document)])
    return written


def _follow(desk: IngestContext, kept: Document) -> tuple[Document, str]:
    """Take in what a document's file now says, and return it; one whose units cannot be kept stays as it was."""
    document, warning = _present(desk, kept)
    if document.body == kept.body:
        return document, warning
    try:
        _keep(desk, document)
    except InputError as error:  # somebody's unit has the id of a new part: that must not end everyone's contexts
        return kept, _as_last_read(kept, error)
    return document, warning


def _present(desk: IngestContext, kept: Document) -> tuple[Document, str]:
    """Return a document as its file now has it, and a word when that is not what somebody might expect.

    One whose file is empty or gone says nothing any more; one that cannot be read stays as it was.
    """
    if not kept.path:
        return kept, ""
    if not kept.here:
        return kept, f"{kept.name} is used as it was last read: its store has moved; ingest the file again"
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
    told = str(why).replace(quote_value(kept.path), quote_value(kept.name))  # who asks may not know of our folders
    return f"{kept.name} is used as it was last read: {told}"


def _ended(kept: Document, how: str) -> str:
    return f"{kept.name} has no rules any more: its file is {how}; write it again, or forget the document"


def _texts(document: Partition, tier: Tier, label: str) -> list[AuthoredText]:
    lines = [node.markdown for node in document.nodes]
    return [
        AuthoredText(label, node.position, node.markdown, tuple((one, lines[one]) for one in node.headings))
        for node in document.nodes
        if node.tier == tier
    ]


def _unit(desk: IngestContext, document: Document, read: Partition, node: Node) -> Unit:
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


def make_document(
    desk: IngestContext, view: View, source: object, name: str | None, *, scope: str, core: bool
) -> Document:
    """Return what is to be taken in: a file by its path, or a text or a file's bytes under a name."""
    path = check_path(check_location("source", source)) if isinstance(source, Path) else None
    if path is not None and is_folder(path):
        raise InputError(f"{quote_value(str(path))} is a folder; take it in with ingest_folder")
    owner = None if choose("scope", scope, ("user", "global")) == "global" else view.user
    most = desk.settings.authored.max_bytes if check_flag("core", core) else SourceLimits().max_bytes
    if isinstance(source, bytes):
        refuse_binary(name or "")
    body = source if isinstance(source, bytes) else _read_given(source, path, most)
    called, place = document_name(desk, view, owner, name, path), str(path.resolve()) if path else ""
    body = desk.clean(body) if core else body
    return Document(tenant=view.tenant, user=owner, name=called, body=body, path=place, core=core)


def _read_given(source: object, path: Path | None, most: int) -> bytes:
    return check_given_text("source", source).encode() if path is None else read_file(path, most)
