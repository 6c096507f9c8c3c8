"""Lists that pages need and that are no question: sessions, and documents with the text that they were read from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

from holdfast.documents.markdown import partition
from holdfast.documents.parser import read_source, source_units
from holdfast.errors import NotFoundError, shown
from holdfast.memory import Memory
from holdfast.settings import Settings
from holdfast.store.contract import look
from holdfast.types import Document, Listed, View

Owner = Mapping[str, Any]
# More than anybody looks through in one list.
MOST_LISTED = 1_000
# Users that are named where one has nothing.
MOST_USERS = 20
# No moment is asked for: documents are kept, and not said at some time.
_ANY_TIME = datetime(1970, 1, 1, tzinfo=UTC)


def list_sessions(memory: Memory, owner: Owner) -> tuple[Listed, ...]:
    """Return the newest sessions of an owner."""
    return memory.sessions(**owner, limit=MOST_LISTED)


def list_users(memory: Memory, tenant: str | None) -> tuple[Listed, ...]:
    """Return who has something here."""
    return memory.users(tenant=tenant, limit=MOST_USERS)


def space_of(memory: Memory) -> str | None:
    """Return the embedding space of the store; its statistics would count every unit first."""
    return memory.store.space()


# ---------------------------------------------------------------------------------------------------------- documents


Tier = Literal["hard", "soft", "variant", "heading", "between"]


@dataclass(frozen=True, slots=True)
class Block:
    """A piece of a document's text: how binding it is, and the unit that it became."""

    tier: Tier
    text: str
    unit_id: str = ""


def list_documents(memory: Memory, owner: Owner) -> tuple[Listed, ...]:
    """Return the newest documents of an owner and of everyone."""
    return memory.documents(**owner, limit=MOST_LISTED)


def read_blocks(memory: Memory, owner: Owner, name: str, *, shared: bool) -> tuple[Document, Sequence[Block]]:
    """Return a document and its text in blocks, as it was last read.

    Raises:
        NotFoundError: the owner has no such document.
    """
    kept = look(memory.store, _view(memory, owner), lambda reading: reading.documents(name=name))
    found = next((one for one in kept if (one.user is None) == shared), None)
    if found is None:
        raise NotFoundError(f"there is no document {shown(name)}; /documents names them")
    blocks = _core_blocks(found, memory.settings) if found.core else _knowledge_blocks(found, memory.settings)
    return found, [*blocks]


def _view(memory: Memory, owner: Owner) -> View:
    tenant = owner["tenant"] or memory.settings.store.tenant
    return View(tenant=tenant, user=owner["user"], now=_ANY_TIME, reference_time=_ANY_TIME)


def _core_blocks(document: Document, settings: Settings) -> Iterator[Block]:
    read = partition(document.name, document.body, max_bytes=settings.authored.max_bytes)
    for node in read.nodes:
        if node.kind == "heading":
            yield Block("heading", node.markdown)
        else:
            unit_id = f"{document.name}#{node.ordinal:06d}" if node.tier == "variant" and node.text.strip() else ""
            yield Block(node.tier, node.markdown, unit_id)


def _knowledge_blocks(document: Document, settings: Settings) -> Iterator[Block]:
    source = read_source(document.name, document.body, relations=settings.symbolic.relations)
    ids = [unit.id for unit in source_units(source)] or [""] * len(source.pieces)
    at = 0
    for piece, unit_id in zip(source.pieces, ids, strict=True):
        if source.text[at : piece.start].strip():
            yield Block("between", source.text[at : piece.start])
        yield Block("variant", source.text[max(at, piece.start) : piece.end], unit_id)
        at = max(at, piece.end)
    if source.text[at:].strip():
        yield Block("between", source.text[at:])
