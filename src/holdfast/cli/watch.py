"""`holdfast watch`: takes in a folder, then follows what changes in it until it is stopped.

It looks at the folder again and again instead of asking the system for news: that works the same everywhere, also for
folders of other machines, and misses nothing that was saved under another name and moved into place.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from rich.text import Text

from holdfast.cli import draw, output
from holdfast.cli.options import Answer, Call, Options, err, out
from holdfast.documents.knowledge import EXCLUDED, INCLUDED, Folder, FolderReport, listing
from holdfast.errors import BusyStoreError, InputError

_STYLES = {"added": "green", "changed": "cyan", "removed": "dim", "failed": "yellow"}
# More often is work for nothing, and a file that is being written would hardly ever be found finished.
_MOST_OFTEN = 0.1

# Of each file by its name: when it was written, how long it is, and which file it is.
Stamps = Mapping[str, tuple[int, int, int]]


@dataclass(frozen=True, slots=True)
class Change:
    """What became of one file; a failed one has the reason."""

    what: str
    name: str
    reason: str = ""


def watch(
    call: Call,
    path: Path,
    every: float = 1.0,
    include: list[str] | None = None,
    exclude: list[str] | None = None,
    scope: str = "user",
    *,
    tenant_user: Options,
) -> Answer:
    """Take in a folder, then follow what changes in it until it is stopped."""
    if not every >= _MOST_OFTEN:
        raise InputError(f"--every {every} is too often; the least is {_MOST_OFTEN} seconds")
    memory, included, excluded = call.memory, tuple(include or INCLUDED), (*EXCLUDED, *(exclude or ()))
    folder = Folder(path, "", None, included, excluded)

    def take_in() -> FolderReport:
        return memory.ingest_folder(path, scope=scope, include=included, exclude=excluded, **tenant_user)

    def show(change: Change) -> None:
        if call.as_json:
            row = {"event": change.what, "name": change.name} | ({"reason": change.reason} if change.reason else {})
            output.print_json(row, indent=None)
        else:
            reason = f": {draw.one_line(change.reason)}" if change.reason else ""
            out.print(Text(f"{change.what:<8} {change.name}{reason}", _STYLES[change.what]), soft_wrap=True)

    try:
        err.print(f"watching {path}; Ctrl-C ends it", highlight=False)
        for change in follow(lambda: stamps(folder), take_in, lambda: time.sleep(every)):
            show(change)
    except KeyboardInterrupt:  # the way it ends
        pass
    return Answer({"event": "stopped"}, lambda: Text("stopped"))


def follow(
    look: Callable[[], Stamps], take_in: Callable[[], FolderReport], wait: Callable[[], None]
) -> Iterator[Change]:
    """Yield what changes, for ever. It is read when two looks in a row find the same: its writer has finished."""
    taken: Stamps | None = None
    failed: frozenset[tuple[str, str]] = frozenset()
    last = look()
    while True:
        now = look()
        if now == last and now != taken:
            try:
                report = take_in()
            except BusyStoreError as error:  # another program is writing; the next look tries again
                err.print(Text(f"waiting: {draw.one_line(str(error))}", "yellow"), soft_wrap=True)
            else:
                yield from changes(report, failed)
                taken, failed = now, frozenset(report.failed)
        last = now
        wait()


def changes(report: FolderReport, failed: frozenset[tuple[str, str]]) -> Iterator[Change]:
    """Yield what a report says that is new; what `failed` for the same reason before is not."""
    for what in ("added", "changed", "removed"):
        yield from (Change(what, name) for name in getattr(report, what))
    yield from (Change("failed", name, reason) for name, reason in report.failed if (name, reason) not in failed)


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
