"""An export for people: what was said, session by session, then what else is kept, as Markdown."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, tzinfo
from typing import IO

from holdfast.store.contract import Reading, Store
from holdfast.types import CONTROLS, Document, Exported, Listed, Unit, View

# What a viewer may obey instead of showing it.
_OBEYED = re.compile(rf"[{CONTROLS}\r]")
_BEFORE_EXPIRY = datetime(1, 1, 1, tzinfo=UTC)


class _Page:
    """Counts what is written."""

    def __init__(self, out: IO[bytes], zone: tzinfo) -> None:
        self._out, self._digest = out, hashlib.sha256()
        self.zone = zone
        self.size = self.units = self.versions = self.documents = 0

    def line(self, text: str = "") -> None:
        written = f"{text}\n".encode("utf-8", "replace")
        self._out.write(written)
        self._digest.update(written)
        self.size += len(written)

    def exported(self) -> Exported:
        return Exported("markdown", self.units, self.versions, self.documents, self.size, self._digest.hexdigest())


def write(store: Store, reading: Reading, out: IO[bytes], zone: tzinfo, *, whole: bool) -> Exported:
    """Write what a user has, or with `whole` what all users have, and what is everyone's."""
    page, view = _Page(out, zone), reading.view
    users = [one.name for one in reading.names("user")] if whole else [view.user]
    for user in users:
        _write_user(page, store, replace(view, user=user))
    if whole:
        _write_user(page, store, replace(view, user=""))
    return page.exported()


def _write_user(page: _Page, store: Store, view: View) -> None:
    everything = replace(view, now=_BEFORE_EXPIRY, current_only=False, hide_covered=False)
    with store.reading(everything) as reading:
        page.line(f"# Memory of {_one_line(view.user) or 'everyone'}")
        page.line()
        page.line(f"Exported on {view.now.astimezone(page.zone):%Y-%m-%d}.")
        sessions = [one for one in reading.names("session") if view.session in (one.name, None)]
        for one in sorted(sessions, key=lambda one: (str(one.first), one.name)):
            _write_session(page, store, replace(everything, session=one.name, only_session=True), one)
        if view.session is not None:
            return
        loose = [unit for unit in reading.scan(order="oldest", limit=None) if unit.session is None]
        loose = [unit for unit in loose if (unit.user or "") == view.user]
        documents = [one for one in reading.documents() if (one.user or "") == view.user]
        _write_units(page, "Without a session", (unit for unit in loose if unit.origin != "document"))
        for document in documents:
            _write_document(page, document)


def _write_session(page: _Page, store: Store, view: View, session: Listed) -> None:
    with store.reading(view) as reading:
        own = (unit for unit in reading.scan(order="oldest", limit=None) if (unit.user or "") == view.user)
        _write_units(page, f"Session {_one_line(session.name)}", own)


def _write_units(page: _Page, title: str, units: Iterable[Unit]) -> None:
    for number, unit in enumerate(units):
        if not number:
            page.line()
            page.line(f"## {title}")
        page.units += 1
        page.versions += unit.version
        page.line()
        page.line(" · ".join(_told(unit, page.zone)))
        page.line()
        # Quoted, so that headings and lists of what was said are not those of this page.
        for line in unit.text.split("\n"):
            page.line(f"> {_shown(line)}".rstrip())


def _told(unit: Unit, zone: tzinfo) -> Iterator[str]:
    yield f"**{_one_line(unit.speaker or unit.author)}**"
    yield f"{unit.event_time.astimezone(zone):%Y-%m-%d %H:%M}"
    if unit.lineage is not None:
        yield f"summary of {len(unit.lineage.sources)} turns"
    if unit.pinned:
        yield "pinned"
    if unit.expires_at is not None:
        yield f"until {unit.expires_at.astimezone(zone):%Y-%m-%d %H:%M}"
    if unit.superseded_by is not None:
        yield f"replaced by `{_one_line(unit.superseded_by)}`"
    if unit.version > 1:
        yield f"version {unit.version}"
    yield f"`{_one_line(unit.id)}`"


def _write_document(page: _Page, document: Document) -> None:
    page.documents += 1
    page.line()
    page.line(f"## Document {_one_line(document.name)}{' (core)' if document.core else ''}")
    page.line()
    try:
        text = document.body.decode("utf-8-sig")
    except UnicodeDecodeError:
        page.line(f"{len(document.body):,} bytes that are no text.")
        return
    fence = "`" * max(3, *(len(run) + 1 for run in re.findall("`+", text)), 3)
    page.line(f"{fence}text")
    for line in text.rstrip("\n").split("\n"):
        page.line(_shown(line))
    page.line(fence)


def _shown(line: str) -> str:
    return _OBEYED.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), line)


def _one_line(text: str) -> str:
    return " ".join(_shown(text).split())
