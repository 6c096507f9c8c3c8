"""Exports: everything of a user, a session or a tenant, as our own file or as Markdown for people."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, tzinfo
from pathlib import Path
from typing import IO, BinaryIO, Literal

from holdfast.errors import InputError, NotFoundError, StoreError, shown
from holdfast.messages.checks import check_flag, choose
from holdfast.store.contract import Reading, Store
from holdfast.transfer import jsonl, markdown
from holdfast.types import Exported, View

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


def export(store: Store, request: ExportRequest, target: Target) -> Exported:
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
        raise InputError(f"target = {shown(target)} is neither a path nor a file that is open for writing bytes")
    return contextlib.nullcontext(target)


def _write(store: Store, request: ExportRequest, out: IO[bytes]) -> Exported:
    view = request.view
    with store.reading(view) as reading:
        _check_known(reading, request)
        space = store.space()
        if request.format == "markdown":
            return markdown.write(store, reading, out, request.zone, whole=request.all)
        user = None if request.all else view.user
        heading = jsonl.Heading(view.now, user, view.session, request.all, request.vectors, space)
        return jsonl.write(reading.kept(whole=request.all), out, heading)


def _check_known(reading: Reading, request: ExportRequest) -> None:
    """Refuse to write an empty file under a mistyped name."""
    if request.all:
        return
    view = request.view
    if view.session is not None and view.session not in {one.name for one in reading.names("session")}:
        raise NotFoundError(f"user {shown(view.user)} has no session {shown(view.session)}; `sessions` lists them")
    known = [one.name for one in reading.names("user", 1)]
    if known != [view.user] and not any(one.user for one in reading.documents(bodies=False)):
        raise NotFoundError(f"user {shown(view.user)} has nothing here; check the name")


@contextlib.contextmanager
def _new_file(path: Path) -> Iterator[BinaryIO]:
    """Make a file that only its owner reads; it is there when all of it is."""
    if path.exists():
        raise InputError(f"{shown(str(path))} exists; name a file that does not, so that nothing is overwritten")
    if not path.parent.is_dir():
        raise InputError(f"the folder {shown(str(path.parent))} does not exist; create it first")
    part = path.with_name(f"{path.name}.part")
    try:
        handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), _PRIVATE)
        with open(handle, "wb") as file:  # noqa: PTH123 - of a handle
            yield file
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except FileExistsError as error:
        raise InputError(f"{shown(str(part))} is left from an export that broke off; remove it") from error
    except OSError as error:
        part.unlink(missing_ok=True)
        raise StoreError(f"{path}: {error.strerror}; nothing was exported; name another file") from error
    except BaseException:
        part.unlink(missing_ok=True)
        raise
