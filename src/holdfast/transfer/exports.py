"""Exports: everything of a user, a session or a tenant, as our own file or as Markdown for people."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from typing import IO, BinaryIO, Literal

from holdfast.errors import InputError, NotFoundError, StoreError, quote_value
from holdfast.messages.checks import check_flag, choose
from holdfast.store.contract import Reading, Store
from holdfast.transfer import jsonl
from holdfast.types import CONTROLS, Document, ExportReport, NameCount, Unit, View
from holdfast.values import dataclass

ExportFormat = Literal["jsonl", "markdown"]
Target = str | Path | BinaryIO
# Memories are private: only their owner reads the file.
_PRIVATE = 0o600
# An export of this size is written without a file in between.
_SPOOLED = 8 * 1_048_576


@dataclass(frozen=True, slots=True)
class ExportRequest:
    """What is to be written, and how."""

    view: View
    all: bool
    format: ExportFormat
    vectors: bool
    zone: tzinfo = UTC


def make_request(view: View, user: str | None, all_of_it: object, kind: object, vectors: object) -> ExportRequest:
    """Return what a caller wants, checked.

    Raises:
        InputError: it names nobody, or both a user and everybody.
    """
    whole = check_flag("all", all_of_it)
    if whole == (user is not None):
        raise InputError("an export is of a user, or with all=True (--all) of the whole tenant; name one of the two")
    if whole and view.session is not None:
        raise InputError("a session is of one user; name the user, or leave the session out")
    wanted: ExportFormat = "markdown" if choose("format", kind, ("jsonl", "markdown")) == "markdown" else "jsonl"
    return ExportRequest(view, whole, wanted, check_flag("vectors", vectors), view.zone or UTC)


def export(store: Store, request: ExportRequest, target: Target) -> ExportReport:
    """Write an export to a new file, or to one that is open for writing bytes; a failure leaves no file behind.

    Raises:
        InputError: the file exists, or cannot be made.
        NotFoundError: there is no such user or session.
    """
    # Nobody else reads or writes while one state is read: that must not last as long as the slowest reader takes.
    with writing(target) as out, tempfile.SpooledTemporaryFile(_SPOOLED) as spool:
        done = _write(store, request, spool)
        spool.seek(0)
        shutil.copyfileobj(spool, out)
    return done


def writing(target: Target) -> contextlib.AbstractContextManager[BinaryIO]:
    """Return a file to write to: a new one by its path, or one that is open already, which stays open.

    Raises:
        InputError: the file exists, or cannot be made.
    """
    if isinstance(target, str | Path):
        return _new_file(Path(target))
    if not callable(getattr(target, "write", None)):
        raise InputError(
            f"target = {quote_value(target)} is neither a path nor a file that is open for writing bytes"
        )
    return contextlib.nullcontext(target)


def _write(store: Store, request: ExportRequest, out: IO[bytes]) -> ExportReport:
    view = request.view
    with store.reading(view) as reading:
        _check_known(reading, request)
        space = store.space()
        if request.format == "markdown":
            return write(store, reading, out, request.zone, whole=request.all)
        user = None if request.all else view.user
        heading = jsonl.Heading(view.now, user, view.session, request.all, request.vectors, space)
        return jsonl.write(reading.stored(whole=request.all), out, heading)


def _check_known(reading: Reading, request: ExportRequest) -> None:
    """Refuse to write an empty file under a mistyped name."""
    if request.all:
        return
    view = request.view
    if view.session is not None and view.session not in {one.name for one in reading.names("session")}:
        raise NotFoundError(
            f"user {quote_value(view.user)} has no session {quote_value(view.session)}; `sessions` lists them"
        )
    known = [one.name for one in reading.names("user", 1)]
    if known != [view.user] and not any(one.user for one in reading.documents(bodies=False)):
        raise NotFoundError(f"user {quote_value(view.user)} has nothing here; check the name")


@contextlib.contextmanager
def _new_file(path: Path) -> Iterator[BinaryIO]:
    """Make a file that only its owner reads; it is there when all of it is."""
    if path.exists():
        raise InputError(
            f"{quote_value(str(path))} exists; name a file that does not, so that nothing is overwritten"
        )
    if not path.parent.is_dir():
        raise InputError(f"the folder {quote_value(str(path.parent))} does not exist; create it first")
    part = path.with_name(f"{path.name}.part")
    try:
        handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), _PRIVATE)
        with open(handle, "wb") as file:  # noqa: PTH123 - of a handle
            yield file
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except FileExistsError as error:
        raise InputError(f"{quote_value(str(part))} is left from an export that broke off; remove it") from error
    except OSError as error:
        part.unlink(missing_ok=True)
        raise StoreError(f"{path}: {error.strerror}; nothing was exported; name another file") from error
    except BaseException:
        part.unlink(missing_ok=True)
        raise


# What a viewer may obey instead of showing it.
_OBEYED = re.compile(rf"[{CONTROLS}\r]")
_BEFORE_EXPIRY = datetime(1, 1, 1, tzinfo=UTC)


class _MarkdownWriter:
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

    def exported(self) -> ExportReport:
        return ExportReport(
            "markdown", self.units, self.versions, self.documents, self.size, self._digest.hexdigest()
        )


def write(store: Store, reading: Reading, out: IO[bytes], zone: tzinfo, *, whole: bool) -> ExportReport:
    """Write what a user has, or with `whole` what all users have, and what is everyone's."""
    page, view = _MarkdownWriter(out, zone), reading.view
    users = [one.name for one in reading.names("user")] if whole else [view.user]
    for user in users:
        _write_user(page, store, replace(view, user=user))
    if whole:
        _write_user(page, store, replace(view, user=""))
    return page.exported()


def _write_user(page: _MarkdownWriter, store: Store, view: View) -> None:
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


def _write_session(page: _MarkdownWriter, store: Store, view: View, session: NameCount) -> None:
    with store.reading(view) as reading:
        own = (unit for unit in reading.scan(order="oldest", limit=None) if (unit.user or "") == view.user)
        _write_units(page, f"Session {_one_line(session.name)}", own)


def _write_units(page: _MarkdownWriter, title: str, units: Iterable[Unit]) -> None:
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


def _write_document(page: _MarkdownWriter, document: Document) -> None:
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
