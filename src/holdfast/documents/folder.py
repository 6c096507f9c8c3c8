"""Files and folders on disk: read whole or refused, listed by patterns, and watched for changes."""

from __future__ import annotations

import errno
import fnmatch
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import BinaryIO

from holdfast.errors import InputError, quote_value
from holdfast.messages.checks import check_location, check_names, choose, refuse_binary
from holdfast.types import View
from holdfast.types.outcomes import FolderReport, Progress
from holdfast.values import dataclass

# Of each file by its name: when it was written, how long it is, and which file it is.
Stamps = Mapping[str, tuple[int, int, int]]


@dataclass(frozen=True, slots=True)
class FileChange:
    """What became of one file; a failed one has the reason."""

    what: str
    name: str
    reason: str = ""


def changes(report: FolderReport, failed: frozenset[tuple[str, str]]) -> Iterator[FileChange]:
    """Yield what a report says that is new; what `failed` for the same reason before is not."""
    for what in ("added", "changed", "removed"):
        yield from (FileChange(what, name) for name in getattr(report, what))
    yield from (FileChange("failed", name, reason) for name, reason in report.failed if (name, reason) not in failed)


def stamps(folder: Folder) -> Stamps:
    """Return how the files of a folder are now.

    Raises:
        InputError: it is not a folder, or no longer one.
    """
    found: dict[str, tuple[int, int, int]] = {}
    for name, path in listing(folder).files.items():
        try:
            status = path.stat()
        except OSError:  # it went away meanwhile
            continue
        found[name] = (status.st_mtime_ns, status.st_size, status.st_ino)
    return found


# A file may be saved while it is read; a second look finds it whole.
_READINGS = 2
# Nobody waits for the other end of a pipe that has taken the place of a file.
_READING = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


# ----------------------------------------------------------------------------------------------------------- files


def read_file(path: Path, most: int) -> bytes:
    """Return what a regular file of at most so many bytes holds, all of one writing.

    Raises:
        InputError: it cannot be read, is no such file, is no text by its name, or does not hold still.
    """
    refuse_binary(path.name)
    for _ in range(_READINGS):
        try:
            _refuse_unreadable(path, path.stat(), most)  # a device may act when it is opened
            with os.fdopen(os.open(path, _READING), "rb") as file:
                before = os.fstat(file.fileno())
                _refuse_unreadable(path, before, most)
                raw = read_all(file, most)
            after = path.stat()
        except OSError as error:
            raise InputError(f"{quote_value(str(path))} cannot be read: {error.strerror}; check its name") from error
        if (before.st_mtime_ns, before.st_size) == (after.st_mtime_ns, after.st_size) and len(raw) == after.st_size:
            return raw
    raise InputError(f"{quote_value(str(path))} changes while it is read; try again when its writer has finished")


def read_all(file: BinaryIO, most: int) -> bytes:
    """Return all bytes of an open file; of one that grows meanwhile, one byte more than may be."""
    raw: bytes | None = file.read(most + 1)
    if raw is None:  # it is regular by its kind, as /proc/kmsg is, and would let a reader wait
        raise BlockingIOError(errno.EAGAIN, "it has nothing to read now")
    return raw


def _refuse_unreadable(path: Path, found: os.stat_result, most: int) -> None:
    """Refuse a pipe or device, which may never end, and a file that is larger than may be."""
    if not stat.S_ISREG(found.st_mode):
        raise InputError(f"{quote_value(str(path))} is no regular file; name a file that holds text")
    if found.st_size > most:
        raise InputError(f"{quote_value(str(path))} has {found.st_size:,} bytes, more than {most:,}; split it")


def check_path(path: Path) -> Path:
    """Return a path unless its name cannot be kept.

    Raises:
        InputError: it is not UTF-8, or a link that leads to itself.
    """
    try:
        whole = str(path.resolve())
    except RuntimeError as error:  # what Python 3.11 and 3.12 raise for a link that leads to itself
        raise InputError(
            f"{quote_value(printable(str(path)))} is a link that leads to itself; name a file"
        ) from error
    if printable(whole) != whole:
        raise InputError(f"the name {quote_value(printable(str(path)))} is not UTF-8; rename the file")
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


# What people keep text in. Units, records and source code are taken in when they are named: any JSON could be meant,
# and a folder of programs holds more of them than of notes.
INCLUDED = (
    "*.md", "*.markdown", "*.txt", "*.html", "*.htm", "*.pdf", "*.rst", "*.docx", "*.epub", "*.csv", "*.tsv", "*.eml",
    "*.mbox",
)  # fmt: skip
# Hidden files, and folders that tools fill.
EXCLUDED = (".*", "*/.*", "node_modules/*", "*/node_modules/*", "__pycache__/*", "*/__pycache__/*")
_LEADS_OUT = "it is a link to outside of the folder"


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


def make_folder(
    view: View, root: str | Path, scope: str, include: Sequence[str], exclude: Sequence[str], progress: Progress
) -> Folder:
    """Return the folder that a caller names, checked; what is global belongs to no user."""
    user = None if choose("scope", scope, ("user", "global")) == "global" else view.user
    place = check_location("folder", root)
    return Folder(
        place, view.tenant, user, check_names("include", include) or (), check_names("exclude", exclude) or (),
        progress,
    )  # fmt: skip


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
        raise InputError(f"{quote_value(str(folder.root))} is not a folder; name one, or a single file")
    check_path(folder.root)
    found = Listing()
    for relative, path in _walk(folder, found.skipped):
        if _matches(relative, folder.exclude):
            continue
        if printable(relative) != relative:
            found.failed.append((printable(relative), "its name is not UTF-8; rename the file"))
        elif reason := _why_skipped(path, relative, folder):
            found.skipped.append((relative, reason))
        else:
            found.files[relative] = path
    return found


def _walk(folder: Folder, skipped: list[tuple[str, str]]) -> Iterator[tuple[str, Path]]:
    """Yield the files of a folder; one that contains itself through a link is entered once, and no link out of it."""
    entered: set[tuple[int, int]] = set()
    for place, folders, names in os.walk(folder.root, followlinks=True):
        here = Path(place)
        try:
            status = here.stat()
        except FileNotFoundError:  # it went away meanwhile
            continue
        if (status.st_dev, status.st_ino) in entered:
            folders.clear()
            continue
        entered.add((status.st_dev, status.st_ino))
        inner = {name: (here / name).relative_to(folder.root).as_posix() for name in sorted(folders)}
        wanted = {name: relative for name, relative in inner.items() if not _matches(f"{relative}/", folder.exclude)}
        leading_out = [name for name in wanted if _leads_out(here / name, folder)]
        skipped += [(printable(wanted[name]), _LEADS_OUT) for name in leading_out]
        folders[:] = [name for name in wanted if name not in leading_out]
        for name in sorted(names):
            yield (here / name).relative_to(folder.root).as_posix(), here / name


def _why_skipped(path: Path, relative: str, folder: Folder) -> str:
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
