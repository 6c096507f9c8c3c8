"""The command line: translates, calls `Memory`, draws. `--json` on every command, for programs."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from datetime import UTC, tzinfo
from pathlib import Path
from typing import Any, cast

import typer
from rich.text import Text

from holdfast import sample
from holdfast.arguments import Read, find_zone
from holdfast.cli import draw, ingestion, operations, output
from holdfast.cli.options import (
    CommandContext,
    CommandResult,
    LazyCommand,
    Options,
    ask_before,
    begin,
    command,
    err,
    explain_usage,
    extra,
    json_argument,
    out,
    plain,
    read_batches,
    read_question,
    read_text,
)
from holdfast.cli.output import ProgressReport
from holdfast.errors import HoldfastError, InputError
from holdfast.memory import Memory
from holdfast.settings import Settings

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
_RESUMABLE = ("ingest", "reembed", "import", "migrate", "worker", "reindex")
_CHANGES = "--text, --topic, --metadata, --pin, --unpin, --ttl, --valid-from, --valid-to, --link"


def main() -> None:
    """Run the command line; everything that goes wrong becomes one line and an exit code."""
    arguments = sys.argv[1:] or ["--help"]
    try:
        code = app(arguments, prog_name="holdfast", standalone_mode=False)
    except HoldfastError as error:
        code = _fail(type(error).__name__, str(error), error.exit_code)
    except _WRONG_CALL as error:
        code = _fail("UsageError", explain_usage(error), InputError.exit_code)
    except typer.Abort:
        code = _INTERRUPTED
    if code == _INTERRUPTED:
        goes_on = not {*_RESUMABLE}.isdisjoint(arguments)
        _fail("Interrupted", "stopped; run it again, it goes on where it was" if goes_on else "stopped", code)
    sys.exit(code or 0)


def _fail(kind: str, message: str, exit_code: int) -> int:
    if "--json" in sys.argv:
        output.print_json(output.failure_json(kind, message, exit_code))
    else:
        err.print(Text.assemble(("error:", "bold red"), f" {draw.one_line(message)}"), soft_wrap=True)
    return exit_code


# ------------------------------------------------------------------------------------------------ remembering


@command(app, create=True)
def remember(
    call: CommandContext,
    text: str | None = None,
    messages: Path | None = None,
    at: str | None = None,
    author: str | None = None,
    speaker: str | None = None,
    unit_id: str | None = None,
    scope: str | None = None,
    metadata: str | None = None,
    ttl: float | None = None,
    pinned: bool = False,
    valid_from: str | None = None,
    valid_to: str | None = None,
    supersedes: list[str] | None = None,
    links: list[str] | None = None,
    *,
    clock_owner: Options,
) -> CommandResult:
    """Keep a text, or a file of messages, word for word."""
    if (text is None) == (messages is None):
        raise InputError("give a text, or --messages FILE; one of the two")
    fields: Options = {
        **clock_owner, "scope": scope, "at": at, "author": author, "speaker": speaker, "ttl": ttl,
        "metadata": json_argument("metadata", metadata), "pinned": pinned, "valid_from": valid_from,
        "valid_to": valid_to, "supersedes": supersedes, "links": links,
    }  # fmt: skip
    if messages is None:
        content = sys.stdin.read() if text == "-" else text or ""
        written = call.memory.remember(content, id=unit_id, **fields)
    else:
        batches = read_batches(messages, fields.pop("session"))
        written, whole = [], sum(len(batch) for _, batch in batches)
        with ProgressReport(err, "remembering", quiet=call.as_json) as report:
            for name, batch in batches:
                written += call.memory.remember(batch, session=name, **fields)
                report(len(written), whole)
    return CommandResult(output.written_json(written), lambda: draw.written(written))


# ---------------------------------------------------------------------------------------------------- reading


@command(app)
def search(
    call: CommandContext,
    query: str,
    profile: str = "hybrid",
    explain: bool = False,
    tree: bool = False,
    group: str | None = None,
    read: str | None = None,
    strict: bool = False,
    *,
    limited_view: Options,
    clock_owner: Options,
) -> CommandResult:
    """Find units by words and by meaning; every score can be explained."""
    options = {**limited_view, **clock_owner, "group": group, "strict": strict, "read": _given_read(read)}
    result = call.memory.search(query, profile=profile, explain=explain or tree, **options)
    return CommandResult(output.search_json(result), lambda: draw.hits(result, tree=tree))


def _given_read(read: str | None) -> Read:
    return False if read == "off" else cast("Read", read)


@command(app)
def why(
    call: CommandContext,
    query: str,
    unit_id: str,
    profile: str = "hybrid",
    *,
    limited_view: Options,
    budget: int | None = None,
    read: str | None = None,
    tree: bool = False,
    clock_owner: Options,
) -> CommandResult:
    """Say why a unit is, or is not, among the hits of a question, or in the context of a budget."""
    options: Options = {**limited_view, **clock_owner, "budget": budget, "read": _given_read(read)}
    verdict = call.memory.why(query, unit_id, profile=profile, **options)
    return CommandResult(
        output.why_json(verdict), lambda: draw.why(verdict, query, tree=tree, zone=_zone(call, clock_owner))
    )


def _zone(call: CommandContext, clock_owner: Options) -> tzinfo:
    return find_zone(call.settings, clock_owner["zone"]) or UTC


@command(app, "show")
def show_unit(call: CommandContext, unit_id: str, *, owner: Options) -> CommandResult:
    """Show one unit with every field."""
    unit = call.memory.get(unit_id, **owner)
    return CommandResult(output.shown_json(unit), lambda: draw.unit(unit))


@command(app, "list")
def list_units(
    call: CommandContext,
    filters: str | None = None,
    limit: int = 50,
    oldest: bool = False,
    everything: bool = False,
    *,
    clock_owner: Options,
) -> CommandResult:
    """List units by time, newest first."""
    found = call.memory.list(
        limit=limit + 1 if limit > 0 else limit or None,  # one more says whether there are more
        filters=json_argument("filter", filters),
        current_only=not everything,
        order="oldest" if oldest else "newest",
        **clock_owner,
    )
    more = 0 < limit < len(found)
    found = found[:limit] if more else found
    note = f"the {'oldest' if oldest else 'newest'} {limit}; there are more: --limit 0 lists all" if more else ""
    return CommandResult(
        [output.unit_json(unit) for unit in found], lambda: draw.units(found, _zone(call, clock_owner)), note
    )


@command(app)
def facts(
    call: CommandContext,
    subject: str | None = None,
    relation: str | None = None,
    *,
    view: Options,
    session_owner: Options,
) -> CommandResult:
    """List the statements that rules recognised, with their dates, and what replaced what."""
    found = call.memory.facts(subject=subject, relation=relation, **view, **session_owner)
    return CommandResult([fact.to_json() for fact in found], lambda: draw.facts(found))


@command(app)
def update(
    call: CommandContext,
    unit_id: str,
    text: str | None = None,
    topic: str | None = None,
    metadata: str | None = None,
    pinned: bool | None = None,
    ttl: float | None = None,
    valid_from: str | None = None,
    valid_to: str | None = None,
    links: list[str] | None = None,
    zone: str | None = None,
    *,
    owner: Options,
) -> CommandResult:
    """Make a new version of one unit; the old one stays in its history."""
    given = {
        "text": text, "topic": topic, "metadata": json_argument("metadata", metadata), "pinned": pinned, "ttl": ttl,
        "valid_from": valid_from, "valid_to": valid_to, "links": links,
    }  # fmt: skip
    changes: Options = {name: value for name, value in given.items() if value is not None}
    if not changes:
        raise InputError(f"nothing to change is named; give one of {_CHANGES}")
    if ttl == 0:
        changes["ttl"] = None
    unit = call.memory.update(unit_id, zone=zone, **owner, **changes)
    return CommandResult(output.unit_json(unit), lambda: draw.unit(unit))


@command(app)
def history(call: CommandContext, unit_id: str, *, owner: Options) -> CommandResult:
    """Show every version of one unit."""
    found = call.memory.history(unit_id, **owner)
    return CommandResult([output.unit_json(unit) for unit in found], lambda: draw.versions(found))


@command(app)
def stats(call: CommandContext, *, tenant_user: Options) -> CommandResult:
    """Show how much is remembered."""
    found = call.memory.stats(**tenant_user, whole=True)
    return CommandResult(output.stats_json(found), lambda: draw.stats(found))


@command(app)
def reembed(call: CommandContext) -> CommandResult:
    """Embed every unit with the embedder of the settings; resumes where it stopped."""
    memory = call.memory
    whole, done = memory.stats(user=sample.USER, whole=True).store_units or 0, 0

    def advance(written: int) -> None:
        nonlocal done
        done += written
        report(done, whole)

    with ProgressReport(err, "embedding", quiet=call.as_json) as report:
        left = memory.reembed(progress=advance)
        space = "at the server" if call.is_remote else memory.store.space()
    waiting = f"{draw.count(left, 'unit')} pending"
    return CommandResult(
        {"space": space, "waiting": left}, lambda: Text(f"{space}: {waiting}"), code=1 if left else 0
    )


# ---------------------------------------------------------------------------------------- without a memory


@plain(app)
def settings(as_json: bool = False) -> None:
    """Print every setting with its value and where it came from."""
    found = Settings.load()
    CommandResult(output.settings_json(found), lambda: draw.settings(found)).show(as_json=as_json)


@plain(app)
def doctor(db: str | None = None, as_json: bool = False) -> None:
    """Self-test this installation (write, read, crash-safe reopen); check a store."""
    from holdfast.cli import doctor as clinic  # noqa: PLC0415 - brings SQLite along

    found = Settings.load()
    checks = []
    for check in clinic.examine(db or found.store.path, found):
        checks.append(check)
        if not as_json:
            mark = ("✓", "green") if check.passed else ("✗", "bold red")
            out.print(Text.assemble(mark, f" {check.name}: {check.detail}"))
    if as_json:
        output.print_json([{"name": c.name, "passed": c.passed, "detail": c.detail} for c in checks])
    if not all(check.passed for check in checks):
        raise typer.Exit(1)


@plain(app)
def demo(db: str | None = None) -> None:
    """Show remember, search, explain and "why not" on a sample history."""
    from holdfast.cli import demo as demonstration  # noqa: PLC0415 - as `doctor`

    found = Settings.load()
    if db is not None:
        demonstration.run(out, Path(db), found)
        return
    with tempfile.TemporaryDirectory(prefix="holdfast-demo-") as folder:
        demonstration.run(out, Path(folder) / "demo.db", found)


@plain(app)
def mcp(
    db: str | None = None,
    user: str | None = None,
    agent: str | None = None,
    tenant: str | None = None,
    session: str | None = None,
    allow_scope: bool = False,
    http: bool = False,
    host: str = "127.0.0.1",
    port: int = 8766,
    token_file: Path | None = None,
    allow_host: list[str] | None = None,
    allow_origin: list[str] | None = None,
) -> None:
    """Serve the memory to MCP hosts, over stdio or HTTP."""
    if not http and (token_file or allow_host or allow_origin):
        raise InputError("--token-file, --allow-host and --allow-origin are for --http; add it, or leave them out")
    with extra("mcp"):
        from holdfast.server import transports  # noqa: PLC0415 - needs an extra
        from holdfast.server.mcp import ServerScope  # noqa: PLC0415 - needs an extra

    found = Settings.load()
    scope = ServerScope(user or found.store.user, tenant, agent, session, allow_scope)
    token = read_text(token_file).strip() if token_file is not None else None
    address = (
        transports.Address(host, port, token, tuple(allow_host or ()), tuple(allow_origin or ())) if http else None
    )
    with Memory.open(db or found.store.path, settings=found) as memory:
        transports.serve(memory, scope, address, err.print)


# ------------------------------------------------------------------------------------- contexts and documents


@command(app)
def assemble(
    call: CommandContext,
    query: str | None = None,
    messages: Path | None = None,
    budget: int | None = None,
    window: int | None = None,
    profile: str = "hybrid",
    explain: bool = False,
    tree: bool = False,
    read: str | None = None,
    strict: bool = False,
    *,
    view: Options,
    clock_owner: Options,
) -> CommandResult:
    """Build a prompt within a token budget: rules, the last turns and what a question recalls."""
    memory, explain = call.memory, explain or tree
    context = memory.assemble(
        read_question(query, messages),
        profile=profile,
        budget=budget,
        window=window,
        strict=strict,
        read=_given_read(read),
        **view,
        **clock_owner,
    )
    row = output.context_json(context, explain=explain)
    return CommandResult(row, lambda: draw.context(context, explain=explain, tree=tree))


command(app, create=True)(ingestion.ingest)


@command(app)
def widen(call: CommandContext, unit_id: str, *, owner: Options) -> CommandResult:
    """Show the section of the document that a unit is in."""
    found = call.memory.widen(unit_id, **owner)
    return CommandResult(output.widened_json(found), lambda: draw.section(found))


# ----------------------------------------------------------------------------------------------------- upkeep


@command(app)
def compact(call: CommandContext, *, session_owner: Options) -> CommandResult:
    """Summarise old turns of one session, or of all; originals are kept."""
    memory = call.memory
    with ProgressReport(err, "compacting", quiet=call.as_json) as report:
        done = memory.compact(progress=report, **session_owner)
    return CommandResult([output.compaction_json(one) for one in done], lambda: draw.compactions(done))


@command(app)
def expand(call: CommandContext, unit_id: str, *, owner: Options) -> CommandResult:
    """Show the turns that a summary covers."""
    found = call.memory.expand(unit_id, **owner)
    return CommandResult([output.unit_json(unit) for unit in found], lambda: draw.units(found))


@command(app)
def supersede(call: CommandContext, unit_id: str, by: str, *, owner: Options) -> CommandResult:
    """Replace a unit with another; the old one stays in history."""
    unit = call.memory.supersede(unit_id, by=by, **owner)
    return CommandResult(output.unit_json(unit), lambda: draw.unit(unit))


@command(app)
def reinstate(call: CommandContext, unit_id: str, *, owner: Options) -> CommandResult:
    """Restore a superseded unit."""
    unit = call.memory.reinstate(unit_id, **owner)
    return CommandResult(output.unit_json(unit), lambda: draw.unit(unit))


@command(app)
def forget(
    call: CommandContext,
    ids: list[str] | None = None,
    session: str | None = None,
    filters: str | None = None,
    document: str | None = None,
    everything: bool = False,
    compact: bool = False,
    dry_run: bool = False,
    yes: bool = False,
    zone: str | None = None,
    *,
    owner: Options,
) -> CommandResult:
    """Erase units for good, in every file, with every summary made of them."""
    memory = call.memory
    named: Options = {
        "ids": ids, "session": session, "document": document, "filters": json_argument("filter", filters),
        "all": everything, "zone": zone, **owner,
    }  # fmt: skip
    if not (dry_run or yes):
        ask_before(memory.forget(**named, dry_run=True))
    erasure = memory.forget(**named, dry_run=dry_run, compact=compact)
    return CommandResult(output.erasure_json(erasure), lambda: draw.erasure(erasure))


@command(app)
def backup(call: CommandContext, path: Path) -> CommandResult:
    """Copy the store while it is in use, and read the copy back."""
    units = call.memory.backup(path)
    copied = draw.count(units, "unit")
    return CommandResult({"path": str(path), "units": units}, lambda: Text(f"{copied} copied to {path}"))


@app.command("eval", cls=LazyCommand)
def _eval() -> Callable[..., None]:
    """Measure retrieval on a folder of data; nothing here calls an LLM."""
    from holdfast.cli.evaluation import measure  # noqa: PLC0415 - takes longer than all other commands

    return measure


command(app, create=True)(ingestion.watch)
operations.register(app)
operations.register_postgres(app)
operations.register_tokens(app)


# ------------------------------------------------------------------------------------------------- interfaces


@plain(app)
def serve(
    db: str | None = None,
    host: str = "127.0.0.1",
    port: int = 8377,
    unix: str | None = None,
    work: int = 4,
    rate: float = 1_000.0,
    write: bool = False,
) -> None:
    """Serve a memory to programs and browsers over HTTP: to this machine, or with tokens to others."""
    with extra("server"):
        from holdfast.server import limits, listening  # noqa: PLC0415 - needs an extra

    found = Settings.load()
    how = limits.ServerSettings(host=host, port=port, unix=unix or "", work=work, rate=rate, write=write)
    listening.serve(db or found.store.path, found, how, lambda at: out.print(f"listening at {at}", soft_wrap=True))


plain(app)(operations.inspect)


# --------------------------------------------------------------------------------------------------------- help

# What `--help` lists, in the order of use.
_PANELS = {
    "Remember and recall": "remember search assemble why about",
    "Documents": "ingest watch documents widen",
    "Look up": "show list facts history stats users sessions agents decisions",
    "Change and forget": "update supersede reinstate overrule compact expand forget",
    "Copy and export": "export import backup migrate",
    "Serve": "inspect serve mcp token",
    "Set up and maintain": "demo settings doctor reembed worker postgres eval",
}
_PANEL_OF = {name: panel for panel, names in _PANELS.items() for name in names.split()}
_PLACES = [*_PANEL_OF]
_LISTED: list[Any] = [*app.registered_commands, *app.registered_groups]
for _one in _LISTED:
    _one.rich_help_panel = _PANEL_OF[_one.name]
app.registered_commands.sort(key=lambda one: _PLACES.index(one.name or ""))

app.callback(invoke_without_command=True)(begin)
