"""The command line: translates, calls `Memory`, draws. `--json` on every command, for programs."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, cast

import typer
from rich.progress import Progress, track
from rich.text import Text

from holdfast import __version__, sample
from holdfast.errors import HoldfastError, InputError
from holdfast.interfaces import contexts, draw, evaluation, library, upkeep, wire
from holdfast.interfaces import demo as demonstration
from holdfast.interfaces import doctor as clinic
from holdfast.interfaces.options import (
    FIRST_LOOK,
    Agent,
    AsJson,
    AsOf,
    AsTree,
    Database,
    Everything,
    Filters,
    Limit,
    Links,
    OnlySession,
    Reference,
    Session,
    Tenant,
    UnitId,
    User,
    ValidFrom,
    ValidTo,
    err,
    json_argument,
    open_memory,
    out,
    owner_of,
    read_text,
    show,
)
from holdfast.settings import Settings, unread_file, use_file

app = typer.Typer(
    help="Long-term memory for AI agents: keeps every word, finds the right ones, says why.",
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
# typer may bring a click of its own along: what a wrong call raises is asked for, not imported.
_WRONG_CALL = cast("type[Exception]", typer.BadParameter.__mro__[2])
_INTERRUPTED = 130
# What these commands have written stays, and the same call goes on from there.
_RESUMABLE = ("ingest", "reembed")


def main() -> None:
    """Run the command line; everything that goes wrong becomes one line and an exit code."""
    arguments = sys.argv[1:] or ["--help"]
    try:
        code = app(arguments, prog_name="holdfast", standalone_mode=False)
    except HoldfastError as error:
        code = _failed(type(error).__name__, str(error), error.exit_code)
    except _WRONG_CALL as error:
        code = _failed("UsageError", _usage(error), InputError.exit_code)
    except typer.Abort:
        code = _INTERRUPTED
    if code == _INTERRUPTED:
        goes_on = not {*_RESUMABLE}.isdisjoint(arguments)
        _failed("Interrupted", "stopped; run it again, it goes on where it was" if goes_on else "stopped", code)
    sys.exit(code or 0)


def _failed(kind: str, message: str, exit_code: int) -> int:
    if "--json" in sys.argv:
        wire.print_json(wire.failure_json(kind, message, exit_code))
    else:
        err.print(Text.assemble(("error:", "bold red"), f" {draw.one_line(message)}"), soft_wrap=True)
    return exit_code


def _usage(error: Any) -> str:  # noqa: ANN401 - of one click or another
    """Say what is wrong with a call, and where the right one is written down."""
    message = str(error.format_message()).rstrip(".")
    if "--settings" in message:
        message += ", it stands before the command: holdfast --settings FILE search …"
    return f"{message}; see `{error.ctx.command_path if error.ctx else 'holdfast'} --help`"


# ---------------------------------------------------------------------------------------------- commands


@app.command()
def remember(
    text: Annotated[
        str | None, typer.Argument(help="What to remember; `-` reads standard input.", show_default=False)
    ] = None,
    messages: Annotated[
        Path | None,
        typer.Option(
            help="File of messages: a JSON list, or one JSON object a line; `-` reads standard input.",
            show_default=False,
        ),
    ] = None,
    at: Annotated[str | None, typer.Option(help="When it was said.", show_default=False)] = None,
    author: Annotated[
        str | None, typer.Option(help="Who wrote it: user, assistant, tool …", show_default=False)
    ] = None,
    speaker: Annotated[str | None, typer.Option(help="Name of the speaker.", show_default=False)] = None,
    unit_id: Annotated[str | None, typer.Option("--id", help="Id of your own.", show_default=False)] = None,
    scope: Annotated[str | None, typer.Option(help="session, user or global.", show_default=False)] = None,
    metadata: Annotated[str | None, typer.Option("--metadata", "-m", help="JSON object.", show_default=False)] = None,
    ttl: Annotated[float | None, typer.Option(help="Seconds until it expires.", show_default=False)] = None,
    pinned: Annotated[bool, typer.Option("--pin", help="Never let it expire.")] = False,
    valid_from: ValidFrom = None,
    valid_to: ValidTo = None,
    supersedes: Annotated[
        list[str] | None, typer.Option(help="Id it replaces; repeatable.", show_default=False)
    ] = None,
    links: Links = None,
    user: User = None,
    session: Session = None,
    agent: Agent = None,
    tenant: Tenant = None,
    db: Database = None,
    as_json: AsJson = False,
) -> None:
    """Keep a text, or a file of messages, word for word."""
    if (text is None) == (messages is None):
        raise InputError("give a text, or --messages FILE; one of the two")
    memory, settings = open_memory(db, create=True)
    fields: dict[str, Any] = {
        "user": owner_of(user, settings),
        "agent": agent,
        "tenant": tenant,
        "scope": scope,
        "at": at,
        "author": author,
        "speaker": speaker,
        "metadata": json_argument("metadata", metadata),
        "ttl": ttl,
        "pinned": pinned,
        "valid_from": valid_from,
        "valid_to": valid_to,
        "supersedes": supersedes,
        "links": links,
    }
    with memory:
        if messages is not None:
            written = [
                item
                for name, batch in track(
                    _batches(messages), "remembering", console=err, disable=as_json, transient=True
                )
                for item in memory.remember(batch, session=name or session, **fields)
            ]
        else:
            content = sys.stdin.read() if text == "-" else text or ""
            written = memory.remember(content, session=session, id=unit_id, **fields)
    show(wire.written_json(written), lambda: draw.remembered(written), as_json=as_json)


def _batches(path: Path) -> list[tuple[str | None, list[Any]]]:
    """Return the messages of a file by session, in file order; a message may name its own session."""
    batches: dict[str | None, list[Any]] = {}
    for message in _records(path, read_text(path)):
        name = message.pop("session", None) if isinstance(message, dict) else None
        batches.setdefault(name, []).append(message)
    return list(batches.items())


def _records(path: Path, content: str) -> Iterable[Any]:
    if content.lstrip().startswith("["):
        return list(json_argument(f"{path}:", content))
    # Only a line feed ends a line: a text may hold other separators.
    lines = [(number, line) for number, line in enumerate(content.split("\n"), start=1) if line.strip()]
    return [json_argument(f"{path}, line {number}:", line) for number, line in lines]


@app.command()
def search(
    query: Annotated[str, typer.Argument(help="The question.", show_default=False)],
    profile: Annotated[str, typer.Option(help="Retrieval recipe.")] = "hybrid",
    explain: Annotated[bool, typer.Option("--explain", help="Show what every score is made of.")] = False,
    tree: AsTree = False,
    only_session: OnlySession = False,
    everything: Everything = False,
    filters: Filters = None,
    limit: Limit = FIRST_LOOK,
    reference_time: Reference = None,
    as_of: AsOf = None,
    user: User = None,
    session: Session = None,
    agent: Agent = None,
    tenant: Tenant = None,
    db: Database = None,
    as_json: AsJson = False,
) -> None:
    """Find units by words and by meaning; every score can be explained."""
    memory, settings = open_memory(db)
    owner = owner_of(user, settings)
    with memory:
        result = memory.search(
            query,
            user=owner,
            session=session,
            agent=agent,
            tenant=tenant,
            profile=profile,
            limit=limit,
            filters=json_argument("filter", filters),
            only_session=only_session,
            current_only=not everything,
            reference_time=reference_time,
            as_of=as_of,
            explain=explain or tree,
        )
        stranger = not result.hits and not memory.stats(user=owner, tenant=tenant).units
    show(wire.search_json(result), lambda: draw.hits(result, tree=tree), as_json=as_json)
    if stranger:
        err.print(Text(f"user {owner!r} has nothing in this store; name another with --user", "yellow"))


@app.command()
def why(
    query: Annotated[str, typer.Argument(help="The question.", show_default=False)],
    unit_id: UnitId,
    profile: Annotated[str, typer.Option(help="Retrieval recipe.")] = "hybrid",
    only_session: OnlySession = False,
    everything: Everything = False,
    filters: Filters = None,
    limit: Limit = FIRST_LOOK,
    reference_time: Reference = None,
    as_of: AsOf = None,
    budget: Annotated[int | None, typer.Option(help="Ask about the context of so many tokens.")] = None,
    tree: AsTree = False,
    user: User = None,
    session: Session = None,
    agent: Agent = None,
    tenant: Tenant = None,
    db: Database = None,
    as_json: AsJson = False,
) -> None:
    """Say why a unit is, or is not, among the hits of a question, or in the context of a budget."""
    memory, settings = open_memory(db)
    with memory:
        verdict = memory.why(
            query,
            unit_id,
            user=owner_of(user, settings),
            session=session,
            agent=agent,
            tenant=tenant,
            profile=profile,
            limit=limit,
            filters=json_argument("filter", filters),
            only_session=only_session,
            current_only=not everything,
            reference_time=reference_time,
            as_of=as_of,
            budget=budget,
        )
    show(wire.why_json(verdict), lambda: draw.why(verdict, query, tree=tree), as_json=as_json)


@app.command("show")
def show_unit(
    unit_id: UnitId,
    user: User = None,
    agent: Agent = None,
    tenant: Tenant = None,
    db: Database = None,
    as_json: AsJson = False,
) -> None:
    """Show one unit with every field."""
    memory, settings = open_memory(db)
    with memory:
        unit = memory.get(unit_id, user=owner_of(user, settings), agent=agent, tenant=tenant)
    show(wire.shown_json(unit), lambda: draw.unit(unit), as_json=as_json)


@app.command(name="list")
def list_units(
    filters: Filters = None,
    limit: Annotated[int, typer.Option("--limit", "-n", help="Most units; 0 lists all.")] = 50,
    oldest: Annotated[bool, typer.Option("--oldest", help="Oldest first.")] = False,
    everything: Everything = False,
    user: User = None,
    session: Session = None,
    agent: Agent = None,
    tenant: Tenant = None,
    db: Database = None,
    as_json: AsJson = False,
) -> None:
    """List units by time, newest first."""
    memory, settings = open_memory(db)
    with memory:
        found = memory.list(
            user=owner_of(user, settings),
            session=session,
            agent=agent,
            tenant=tenant,
            limit=limit + 1 if limit > 0 else limit or None,  # one more says whether there are more
            filters=json_argument("filter", filters),
            current_only=not everything,
            order="oldest" if oldest else "newest",
        )
    more = 0 < limit < len(found)
    found = found[:limit] if more else found
    show([wire.unit_json(unit) for unit in found], lambda: draw.units(found), as_json=as_json)
    if more:
        err.print(f"the {'oldest' if oldest else 'newest'} {limit}; there are more: --limit 0 lists all")


_CHANGES = "--text, --topic, --metadata, --pin, --unpin, --ttl, --valid-from, --valid-to, --link"


@app.command()
def update(
    unit_id: UnitId,
    text: Annotated[str | None, typer.Option(help="New words.", show_default=False)] = None,
    topic: Annotated[str | None, typer.Option(help="New topic.", show_default=False)] = None,
    metadata: Annotated[
        str | None, typer.Option("--metadata", "-m", help="New JSON object.", show_default=False)
    ] = None,
    pinned: Annotated[bool | None, typer.Option("--pin/--unpin", help="Pin or unpin.", show_default=False)] = None,
    ttl: Annotated[
        float | None, typer.Option(help="Seconds until it expires; 0 for ever.", show_default=False)
    ] = None,
    valid_from: ValidFrom = None,
    valid_to: ValidTo = None,
    links: Links = None,
    user: User = None,
    agent: Agent = None,
    tenant: Tenant = None,
    db: Database = None,
    as_json: AsJson = False,
) -> None:
    """Make a new version of one unit; the old one stays in its history."""
    given = {
        "text": text,
        "topic": topic,
        "metadata": json_argument("metadata", metadata),
        "pinned": pinned,
        "ttl": ttl,
        "valid_from": valid_from,
        "valid_to": valid_to,
        "links": links,
    }
    changes: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    if not changes:
        raise InputError(f"nothing to change is named; give one of {_CHANGES}")
    if ttl == 0:
        changes["ttl"] = None
    memory, settings = open_memory(db)
    with memory:
        unit = memory.update(unit_id, user=owner_of(user, settings), agent=agent, tenant=tenant, **changes)
    show(wire.unit_json(unit), lambda: draw.unit(unit), as_json=as_json)


@app.command()
def history(
    unit_id: UnitId,
    user: User = None,
    agent: Agent = None,
    tenant: Tenant = None,
    db: Database = None,
    as_json: AsJson = False,
) -> None:
    """Show every version of one unit."""
    memory, settings = open_memory(db)
    with memory:
        found = memory.history(unit_id, user=owner_of(user, settings), agent=agent, tenant=tenant)
    show([wire.unit_json(unit) for unit in found], lambda: draw.versions(found), as_json=as_json)


@app.command()
def stats(user: User = None, tenant: Tenant = None, db: Database = None, as_json: AsJson = False) -> None:
    """Show how much is remembered."""
    memory, settings = open_memory(db)
    with memory:
        found = memory.stats(user=owner_of(user, settings), tenant=tenant, whole=True)
    show(wire.stats_json(found), lambda: draw.stats(found), as_json=as_json)


@app.command()
def reembed(db: Database = None, as_json: AsJson = False) -> None:
    """Give every unit a vector of the embedder that the settings name; goes on where it stopped."""
    memory, _ = open_memory(db)
    with memory, Progress(console=err, disable=as_json, transient=True) as progress:
        task = progress.add_task("embedding", total=memory.stats(user=sample.USER, whole=True).store_units)
        left = memory.reembed(progress=lambda written: progress.advance(task, written))
        space = memory.store.space()
    show({"space": space, "waiting": left}, lambda: Text(f"{space}: {_waiting(left)}"), as_json=as_json)
    if left:
        raise typer.Exit(1)


def _waiting(left: int) -> str:
    return f"{draw.count(left, 'unit')} {'waits' if left == 1 else 'wait'}"


@app.command()
def settings(as_json: AsJson = False) -> None:
    """Print every setting with its value and where it came from."""
    found = Settings.load()
    show(wire.settings_json(found), lambda: draw.settings(found), as_json=as_json)


@app.command()
def doctor(db: Database = None, as_json: AsJson = False) -> None:
    """Prove a live write, read and crash-safe reopen; check a store."""
    found = Settings.load()
    checks = []
    for check in clinic.examine(Path(db or found.store.path), found):
        checks.append(check)
        if not as_json:
            mark = ("✓", "green") if check.passed else ("✗", "bold red")
            out.print(Text.assemble(mark, f" {check.name}: {check.detail}"))
    if as_json:
        wire.print_json([{"name": c.name, "passed": c.passed, "detail": c.detail} for c in checks])
    if not all(check.passed for check in checks):
        raise typer.Exit(1)


@app.command()
def demo(
    db: Annotated[str | None, typer.Option("--db", help="Keep the sample store here.", show_default=False)] = None,
) -> None:
    """Show remembering, searching, explaining and "why not" on a sample history."""
    found = Settings.load()
    if db is not None:
        demonstration.run(out, Path(db), found)
        return
    with tempfile.TemporaryDirectory(prefix="holdfast-demo-") as folder:
        demonstration.run(out, Path(folder) / "demo.db", found)


app.command()(contexts.assemble)
app.command()(library.ingest)
app.command()(library.widen)
for verb in (upkeep.compact, upkeep.expand, upkeep.supersede, upkeep.reinstate, upkeep.forget, upkeep.backup):
    app.command()(verb)
app.command("eval")(evaluation.measure)


@app.callback(invoke_without_command=True)
def begin(
    *,
    settings_file: Annotated[
        Path | None,
        typer.Option("--settings", help="Settings file for this call, as HOLDFAST_SETTINGS.", show_default=False),
    ] = None,
    show_version: Annotated[bool, typer.Option("--version", help="Print the version and leave.")] = False,
) -> None:
    """Long-term memory for AI agents: keeps every word, finds the right ones, says why."""
    if show_version:
        out.print(f"holdfast {__version__}", highlight=False)
        raise typer.Exit
    if settings_file is not None:
        use_file(settings_file)
    if (unread := unread_file()) is not None:
        note = f"note: {unread} of this folder is not read; --settings {unread} reads it, HOLDFAST_SETTINGS always"
        err.print(Text(note, "yellow"))
