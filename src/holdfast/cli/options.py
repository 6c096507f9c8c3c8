"""What the commands share: their options, whose memory they open, and how they answer."""

from __future__ import annotations

import contextlib
import functools
import inspect
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import RenderableType
from rich.text import Text
from typer.core import TyperCommand

from holdfast.cli import draw, output
from holdfast.cli.output import Screen
from holdfast.errors import InputError, MissingExtraError, StoreError, quote_value, say_install
from holdfast.memory import Memory
from holdfast.openers import is_address, is_missing
from holdfast.settings import Settings, unread_file, use_file
from holdfast.settings.loading import server_token
from holdfast.types import Erasure
from holdfast.values import dataclass

out, err = Screen(), Screen(stderr=True)
# What a person reads of one answer; a program names its own limit, or has the profile's.
FIRST_LOOK = 5
Options = dict[str, Any]
_SHOWN_MESSAGES = (
    "JSON list of messages the host shows already, `-` for standard input; the last user message is the question."
)
# What each parameter of a command is called on the command line, and its help. A command's own comes before the
# common one. Without a name, it is an option called as its parameter; `…` makes it an argument.
_HELP: dict[str, tuple[str, ...]] = {
    "query": ("The question.", "…"),
    "unit_id": ("Id of a unit.", "…"),
    "profile": ("Retrieval profile.",),
    "explain": ("Show what every score is made of.", "--explain"),
    "tree": ("Explain with every step of the arithmetic.", "--tree"),
    "read": ("How the first hits are read together: `once`, `wide` or `off` \\[default: as the settings say].",),
    "limit": ("Maximum number of hits.", "--limit", "-n"),
    "filters": ('JSON filter, as {"city": "Lisbon"}.', "--filter", "-f"),
    "only_session": ("Only the named session.", "--only-session"),
    "everything": ("Include superseded and expired units.", "--all"),
    "reference_time": ("Time of the question, as 2026-04-02T09:00:00Z or 2026-04-02.",),
    "zone": ("Time zone for input without offset and for output, as Asia/Tokyo.",),
    "as_of": ("Answer from what was recorded by this time.", "--as-of"),
    "user": ("Whose memory \\[default: me].", "--user", "-u"),
    "session": ("Session name.", "--session", "-s"),
    "agent": ("Agent name.",),
    "tenant": ("Tenant, when there is more than one.",),
    "db": ("Database file \\[default: holdfast.db], or the address of a server.", "--db"),
    "as_json": ("Print JSON, for programs.", "--json"),
    "valid_from": ("Valid from this time.",),
    "valid_to": ("Valid until this time.",),
    "links": ("Id of a linked unit; repeatable.", "--link"),
    "remember.text": ("What to remember; `-` reads standard input.", "…"),
    "remember.messages": ("File of messages: a JSON list, or one JSON object a line; `-` reads standard input.",),
    "remember.at": ("When it was said.",),
    "remember.author": ("Who wrote it: user, assistant, tool …",),
    "remember.speaker": ("Name of the speaker.",),
    "remember.unit_id": ("Id of your own.", "--id"),
    "remember.scope": ("session, user or global.",),
    "remember.metadata": ("JSON object.", "--metadata", "-m"),
    "remember.ttl": ("Seconds until it expires.",),
    "remember.pinned": ("Never let it expire.", "--pin"),
    "remember.supersedes": ("Id it replaces; repeatable.",),
    "search.group": ("`session`: each session once, at its best hit.",),
    "search.strict": ("Fail when the embedder does.", "--strict"),
    "why.budget": ("Ask about a context of this many tokens.",),
    "list.limit": ("Maximum number of units; 0 lists all.", "--limit", "-n"),
    "export.file": ("A new file; `-` writes to standard output.", "…"),
    "export.everything": ("All users of the tenant, and its shared units.", "--all"),
    "export.kind": ("jsonl (complete, for `import`) or markdown (for reading).", "--format"),
    "export.vectors": ("Include vectors, so that an import embeds nothing.", "--vectors"),
    "import.file": ("An export: a file, a folder or a zip archive; `-` reads standard input.", "…"),
    "import.kind": ("Format \\[default: detect]: holdfast, chatgpt, claude, mem0, messages …", "--format"),
    "import.user": ("Whose memory; without it the names in the file, else the default user.", "--user", "-u"),
    "import.session": ("Session for a file that names none.", "--session", "-s"),
    "import.dry_run": ("Report what the file holds; write nothing.", "--dry-run"),
    "migrate.source": ("Store to copy: a file, or the address of a database.", "--from"),
    "migrate.target": ("Target: a file, or the address of a database, as postgresql://host/name.", "--to"),
    "users.limit": ("Maximum number of users; 0 lists all.", "--limit", "-n"),
    "sessions.limit": ("Maximum number of sessions; 0 lists all.", "--limit", "-n"),
    "documents.limit": ("Maximum number of documents; 0 lists all.", "--limit", "-n"),
    "agents.limit": ("Maximum number of agents; 0 lists all.", "--limit", "-n"),
    "facts.subject": ("Who or what it is about.",),
    "facts.relation": ("Relation, as lives_in.",),
    "about.topic": ("The questions of one topic, as Home.",),
    "about.limit": ("Maximum number of lines, best first; 0 shows all.", "--limit", "-n"),
    "list.oldest": ("Oldest first.", "--oldest"),
    "update.text": ("New text.",),
    "update.topic": ("New topic.",),
    "update.metadata": ("New JSON object.", "--metadata", "-m"),
    "update.pinned": ("Pin or unpin.", "--pin/--unpin"),
    "update.ttl": ("Seconds until it expires; 0: never.",),
    "assemble.messages": (_SHOWN_MESSAGES,),
    "assemble.budget": ("Token budget.", "--budget", "-b"),
    "assemble.window": ("The model's whole window; a share of it is used.",),
    "assemble.strict": ("Fail when the last turns do not all fit, or the embedder fails.", "--strict"),
    "ingest.paths": ("Files or folders.", "…"),
    "ingest.core": ("Its rules go into every context.", "--core"),
    "ingest.name": ("Name \\[default: the file's].",),
    "ingest.include": ("Files of a folder, as `*.md`; repeatable.",),
    "ingest.exclude": ("Files to leave out, as `drafts/*`; repeatable.",),
    "ingest.scope": ("user, or global: shared by the tenant.",),
    "watch.path": ("A folder of documents.", "…"),
    "watch.every": ("Polling interval (s).",),
    "watch.include": ("Files to follow, as `*.md`; repeatable.",),
    "watch.exclude": ("Files to leave out, as `drafts/*`; repeatable.",),
    "watch.scope": ("user, or global: shared by the tenant.",),
    "index.offline": ("Faster, while nothing is written.", "--offline"),
    "quota.tenant": ("Name of a tenant.", "…"),
    "quota.most": ("Maximum number of units.", "…"),
    "worker.watch": ("Keep running, and embed new units.", "--watch"),
    "worker.every": ("`--watch`: polling interval (s).",),
    "supersede.by": ("Id of the unit that replaces it.", "--by"),
    "overrule.decision": ("Decision to overrule: superseded, standing, question or earlier.", "…"),
    "overrule.undo": ("Undo the overruling.", "--undo"),
    "forget.ids": ("Ids of units.", "…"),
    "forget.document": ("A document and its units.",),
    "forget.everything": ("Every unit of the user.", "--all"),
    "forget.compact": ("Rewrite the whole file, which shrinks it.", "--compact"),
    "forget.dry_run": ("List what would be erased; erase nothing.", "--dry-run"),
    "forget.yes": ("Do not ask.", "--yes", "-y"),
    "backup.path": ("A new file.", "…"),
    "serve.host": ("Address to listen at; a non-loopback one needs tokens.",),
    "serve.port": ("Port; 0 takes a free one.",),
    "serve.unix": ("Socket file to listen at instead.",),
    "serve.work": ("Maximum number of concurrent requests.",),
    "serve.rate": ("Requests per second and caller.",),
    "serve.write": ("Enable deletion in the pages \\[default: read-only].", "--write"),
    "inspect.port": ("Port; 0 takes a free one.",),
    "inspect.write": ("Enable deletion in the pages \\[default: read-only].", "--write"),
    "name": ("Name of a token.", "…"),
    "mcp.http": ("Serve streamable HTTP instead of stdio.", "--http"),
    "mcp.host": ("`--http`: address to listen at; a non-loopback one needs a token.",),
    "mcp.port": ("`--http`: port; 0 takes a free one.",),
    "mcp.token_file": ("`--http`: file with the token that clients have to send.",),
    "mcp.allow_host": ("`--http`: additional Host header to accept, as memory.example:8766; repeatable.",),
    "mcp.allow_origin": ("`--http`: allowed web origin, as https://app.example; repeatable.",),
    "mcp.allow_scope": ("Let every call name user, agent and tenant.", "--allow-scope"),
    "mcp.session": ("Session for `remember` calls that name none.", "--session", "-s"),
    "demo.db": ("Keep the sample store here.", "--db"),
}
# Options of many commands that are not texts, with their type and default.
_NO_TEXT: dict[str, tuple[type, object]] = {
    "only_session": (bool, False),
    "everything": (bool, False),
    "as_json": (bool, False),
    "limit": (int, FIRST_LOOK),
}
# A parameter of one of these names stands for several options, which the command gets as keywords of `Memory`.
_GROUPS = {
    "view": ("only_session", "everything", "filters", "reference_time", "as_of"),
    "limited_view": ("only_session", "everything", "filters", "limit", "reference_time", "as_of"),
    "session_owner": ("user", "session", "agent", "tenant"),
    "clock_owner": ("user", "session", "agent", "tenant", "zone"),
    "owner": ("user", "agent", "tenant"),
    "tenant_user": ("user", "tenant"),
}


@dataclass(frozen=True, slots=True)
class CommandResult:
    """What a command says: a value for programs, a drawing of it for people, and what it ends with."""

    value: object
    drawing: Callable[[], RenderableType]
    note: Text | str = ""
    code: int = 0

    def show(self, *, as_json: bool) -> None:
        """Print it."""
        if as_json:
            output.print_json(self.value)
        else:
            out.print(self.drawing(), highlight=False)
        if self.note:
            err.print(self.note)
        if self.code:
            raise typer.Exit(self.code)


@dataclass
class CommandContext:
    """One call of a command: its settings, and the memory that it opens when it needs it."""

    database: str | None
    as_json: bool
    create: bool
    settings: Settings = field(default_factory=Settings.load)

    @property
    def is_remote(self) -> bool:
        """Return whether it is a server's memory."""
        return is_address(self.database or self.settings.store.path)

    @cached_property
    def memory(self) -> Memory:
        """Open the store; only few commands make a new one, so that a mistyped name is not an empty memory."""
        path = self.database or self.settings.store.path
        if self.is_remote:
            return Memory.open(path, token=server_token())
        if not self.create and is_missing(path):
            raise StoreError(f"{path} does not exist; check --db, or remember something first")
        return Memory.open(path, settings=self.settings)

    def close(self) -> None:
        """Close the memory if it was opened."""
        if "memory" in vars(self):
            self.memory.close()


class LazyCommand(TyperCommand):
    """A command that is made when it is called, by its function: a call needs the options and modules of one only."""

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:  # noqa: ANN401 - of one click or another
        """Return a call of the whole command."""
        whole = typer.Typer(rich_markup_mode="rich", add_completion=False)
        whole.command(self.name)(self.callback())  # type: ignore[misc]  # it has one
        return typer.main.get_command(whole).make_context(info_name, args, parent, **extra)


def command(app: typer.Typer, name: str = "", *, create: bool = False) -> Callable[..., Callable[..., CommandResult]]:
    """Add a function to the command line; its first parameter is the call, the others are options.

    Every such command has `--db` and `--json`. A parameter named after a group gets a dict with all of its options.
    """

    def add(function: Callable[..., CommandResult]) -> Callable[..., CommandResult]:
        called = name or function.__name__
        app.command(called, help=function.__doc__, cls=LazyCommand)(lambda: _whole(function, called, create=create))
        return function

    return add


def plain(app: typer.Typer) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add a function to the command line that opens no memory by itself."""

    def add(function: Callable[..., None]) -> Callable[..., None]:
        @functools.cache  # a program may run a command twice, and declaring changes the function
        def whole() -> Callable[..., None]:
            parameters = inspect.signature(function, eval_str=True).parameters.values()
            return declare_options(function, function.__name__, parameters)

        app.command(function.__name__, help=function.__doc__, cls=LazyCommand)(whole)
        return function

    return add


def _whole(function: Callable[..., CommandResult], called: str, *, create: bool) -> Callable[..., Any]:
    _, *own = inspect.signature(function, eval_str=True).parameters.values()
    groups = [one.name for one in own if one.name in _GROUPS]

    @functools.wraps(function)
    def run(db: str | None, as_json: bool, **given: Any) -> None:  # noqa: ANN401 - whatever the command takes
        call = CommandContext(db, as_json, create)
        try:
            gathered = {name: _gather(call, {one: given.pop(one) for one in _GROUPS[name]}) for name in groups}
            answer = function(call, **given, **gathered)
        finally:
            call.close()
        answer.show(as_json=as_json)

    return declare_options(run, called, [*own, *map(_common, ("db", "as_json"))])


def _show_version(wanted: bool) -> None:
    from holdfast import __version__  # noqa: PLC0415 - the package stands above its parts

    if wanted:
        out.print(f"holdfast {__version__}", highlight=False)
        raise typer.Exit


# The version comes before all else: reading any other option brings a library of validators along.
def begin(
    settings_file: Annotated[
        Path | None, typer.Option("--settings", help="Settings file for this call, as HOLDFAST_SETTINGS.")
    ] = None,
    show_version: Annotated[  # noqa: ARG001 - answered by then
        bool, typer.Option("--version", help="Print the version and exit.", callback=_show_version, is_eager=True)
    ] = False,
) -> None:
    """Long-term memory for AI agents: keeps every word, finds the right ones, says why."""
    if settings_file is not None:
        use_file(settings_file)
    if (unread := unread_file()) is not None:
        note = f"note: {unread} of this folder is not read; --settings {unread} reads it, HOLDFAST_SETTINGS always"
        err.print(Text(note, "yellow"))


def declare_options(
    run: Callable[..., Any], called: str, parameters: Iterable[inspect.Parameter]
) -> Callable[..., Any]:
    """Give a function the signature that typer reads: groups spelled out, and each option with its name and help."""
    spelled: list[inspect.Parameter] = []
    for one in parameters:
        spelled += map(_common, _GROUPS[one.name]) if one.name in _GROUPS else [one]
    options = [one.replace(kind=one.KEYWORD_ONLY, annotation=_annotated(called, one)) for one in spelled]
    run.__signature__ = inspect.Signature(options)  # type: ignore[attr-defined]  # what typer looks for
    run.__annotations__ = {one.name: one.annotation for one in options}
    return run


def _common(name: str) -> inspect.Parameter:
    kind, default = _NO_TEXT.get(name, (str | None, None))
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)


def _annotated(called: str, one: inspect.Parameter) -> Any:  # noqa: ANN401 - an annotation
    text, *names = _HELP.get(f"{called}.{one.name}") or _HELP[one.name]
    shows = one.default not in (None, one.empty)
    if names == ["…"]:
        return Annotated[one.annotation, typer.Argument(help=text, show_default=shows)]
    return Annotated[one.annotation, typer.Option(*names, help=text, show_default=shows)]


def _gather(call: CommandContext, options: Options) -> Options:
    """Return the options of a group as keywords of `Memory`."""
    if "filters" in options:
        options["filters"] = json_argument("filter", options["filters"])
    if "everything" in options:
        options["current_only"] = not options.pop("everything")
    if "user" in options and options["user"] is None:  # an empty name is refused further on
        options["user"] = call.settings.store.user
    return options


@contextlib.contextmanager
def extra(name: str) -> Iterator[None]:
    """Import what needs an extra of the package in this block; its absence is one clear error."""
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name == "fcntl":
            raise MissingExtraError("this needs file locks of Linux or macOS; run it there, or in WSL") from error
        raise MissingExtraError(f"this needs {error.name}, which is not installed; {say_install(name)}") from error


def read_text(path: Path) -> str:
    """Return the text of a file that the command line names; `-` is standard input."""
    try:
        return sys.stdin.read() if str(path) == "-" else path.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}; check its name") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 text: {error}; convert it") from error


def read_bytes(path: Path) -> bytes:
    """Return the bytes of a document that goes to a server."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}; check its name") from error


def json_argument(what: str, text: str | None) -> Any:  # noqa: ANN401 - whatever the caller wrote
    """Read an argument that is JSON; a missing one is None."""
    if text is None:
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:  # also a number of thousands of digits, and nesting without end
        raise InputError(f"{what} {quote_value(text)} is not JSON: {error}") from error


def read_batches(path: Path, session: str | None) -> list[tuple[str | None, list[Any]]]:
    """Return the messages of a file by session, in file order; a message may name its own session."""
    batches: dict[str | None, list[Any]] = {}
    for message in _read_records(path, read_text(path)):
        name = message.pop("session", None) if isinstance(message, dict) else None
        batches.setdefault(name, []).append(message)
    return [(name or session, batch) for name, batch in batches.items()]


def _read_records(path: Path, content: str) -> Iterable[Any]:
    if content.lstrip().startswith("["):
        return list(json_argument(f"{path}:", content))
    # Only a line feed ends a line: a text may hold other separators.
    lines = [(number, line) for number, line in enumerate(content.split("\n"), start=1) if line.strip()]
    return [json_argument(f"{path}, line {number}:", line) for number, line in lines]


def read_question(query: str | None, messages: Path | None) -> str | list[Mapping[str, Any]]:
    """Return a question, or the messages of a file of which the last one asks."""
    if (query is None) == (messages is None):
        raise InputError("give a question, or --messages FILE; one of the two")
    if messages is None:
        return query or ""
    given = json_argument(f"{messages}:", read_text(messages))
    if not isinstance(given, list):
        raise InputError(f"{messages} is not a JSON list of messages")
    return given


def explain_usage(error: Any) -> str:  # noqa: ANN401 - of one click or another
    """Say what is wrong with a call, and where the right one is written down."""
    message = str(error.format_message()).rstrip(".")
    if "--settings" in message:
        message += ", it goes before the command: holdfast --settings FILE search …"
    return f"{message}; see `{error.ctx.command_path if error.ctx else 'holdfast'} --help`"


def ask_before(planned: Erasure) -> None:
    """Let a person say yes; where nobody can be asked, nothing is erased."""
    units = draw.count(len(planned.units) + len(planned.summaries), "unit")
    if not sys.stdin.isatty():
        raise InputError(f"{units} would be erased, and there is no terminal to ask at; add --yes to erase")
    if not typer.confirm(f"Erase {units} for good?", err=True):
        raise InputError("nothing was erased; add --yes to erase without being asked")
