"""Commands that take documents in: `ingest` once, `watch` again whenever a folder changes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from rich.console import Group, RenderableType
from rich.text import Text

from holdfast.cli import draw, output
from holdfast.cli.options import CommandContext, CommandResult, Options, err, out, read_bytes
from holdfast.cli.output import ProgressReport
from holdfast.documents.folder import EXCLUDED, INCLUDED, FileChange, Folder, Stamps, changes, stamps
from holdfast.errors import BusyStoreError, InputError, MissingExtraError
from holdfast.types.outcomes import FolderReport, Progress


def ingest(
    call: CommandContext,
    paths: list[Path],
    core: bool = False,
    name: str | None = None,
    include: list[str] | None = None,
    exclude: list[str] | None = None,
    scope: str = "user",
    *,
    tenant_user: Options,
) -> CommandResult:
    """Ingest files and folders; re-run to pick up changes."""
    memory, folders = call.memory, [path for path in paths if path.is_dir()]
    if not folders and (include or exclude):
        raise InputError("--include and --exclude choose files of a folder; this is one document")
    if folders and (core or name is not None):
        raise InputError("--core and --name are for one document; a folder has many")
    if name is not None and len(paths) > 1:
        raise InputError("--name is for one document; leave it out, and each has the name of its file")

    def take_in(path: Path, progress: Progress) -> CommandResult:
        options: Options = {"scope": scope, "progress": progress, **tenant_user}
        if path in folders:
            patterns: Options = {"include": include or INCLUDED, "exclude": (*EXCLUDED, *(exclude or ()))}
            found = memory.ingest_folder(path, **patterns, **options)
            code = InputError.exit_code if found.failed else 0
            return CommandResult(output.folder_json(found), lambda: draw.folder(found), code=code)
        source, called = (read_bytes(path), name or path.name) if call.is_remote else (path, name)
        written = memory.ingest(source, name=called, core=core, **options)
        return CommandResult(output.written_json(written), lambda: draw.document(written, path))

    with ProgressReport(err, "ingesting", quiet=call.as_json) as report:
        if len(paths) == 1:
            return take_in(paths[0], report)
        return _each(paths, take_in, report)


def _each(
    paths: list[Path], take_in: Callable[[Path, Progress], CommandResult], report: ProgressReport
) -> CommandResult:
    """Ingest one after the other; what cannot be read is reported, and the others go on."""
    rows: list[dict[str, object]] = []
    drawn: list[RenderableType] = []
    code = 0
    for number, path in enumerate(paths):
        drawn.append(Text(f"{path}:", "bold"))
        try:
            done = take_in(path, partial(_report_part, report, number, len(paths)))
        except (InputError, MissingExtraError) as error:
            code = error.exit_code
            rows.append({"path": str(path), **output.failure_json(type(error).__name__, str(error), code)})
            drawn.append(Text(f"error: {draw.one_line(str(error))}", "yellow"))
        else:
            code = code or done.code
            rows.append({"path": str(path), "done": done.value})
            drawn.append(done.drawing())
    return CommandResult(rows, lambda: Group(*drawn), code=code)


def _report_part(report: ProgressReport, number: int, paths: int, done: int, of: int) -> None:
    """Say how far all is when one path is so far."""
    report(number + done / max(of, 1), paths)


_STYLES = {"added": "green", "changed": "cyan", "removed": "dim", "failed": "yellow"}
# More often is work for nothing, and a file that is being written would hardly ever be found finished.
_LEAST_WATCH_PAUSE = 0.1


def watch(
    call: CommandContext,
    path: Path,
    every: float = 1.0,
    include: list[str] | None = None,
    exclude: list[str] | None = None,
    scope: str = "user",
    *,
    tenant_user: Options,
) -> CommandResult:
    """Ingest a folder, then follow its changes until stopped."""
    if not every >= _LEAST_WATCH_PAUSE:
        raise InputError(f"--every {every} is too often; the least is {_LEAST_WATCH_PAUSE} seconds")
    memory, included, excluded = call.memory, tuple(include or INCLUDED), (*EXCLUDED, *(exclude or ()))
    folder = Folder(path, "", None, included, excluded)

    def take_in() -> FolderReport:
        return memory.ingest_folder(path, scope=scope, include=included, exclude=excluded, **tenant_user)

    def show(change: FileChange) -> None:
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
    return CommandResult({"event": "stopped"}, lambda: Text("stopped"))


def follow(
    look: Callable[[], Stamps], take_in: Callable[[], FolderReport], wait: Callable[[], None]
) -> Iterator[FileChange]:
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
