"""Print one generated part of the reference as Markdown: see `PARTS`."""

from __future__ import annotations

import dataclasses
import inspect
import json
import sys
import textwrap
import tomllib
from collections.abc import Callable, Iterator, Mapping
from importlib import resources
from pathlib import Path
from typing import Any

import typer

import holdfast
from holdfast import Memory, ProfileSettings, Settings, errors
from holdfast.cli.main import app
from holdfast.models.embedder import SHIPPED, read_provenance, shipped_folder
from holdfast.server.host import HOST_VERBS
from holdfast.store.filters import FIELD_DEFAULTS
from holdfast.verbs import LOCAL, VERBS

RESULTS = Path(__file__).resolve().parent.parent / "benchmarks" / "results"
EVALUATION = Path(__file__).resolve().parent.parent / "docs" / "evaluation.md"
Table = list[tuple[str, ...]]

# What the README shows of the evaluation, and of which systems.
HEADLINES = ("recall@10", "survival@2k")
SYSTEMS = ("plain BM25", "Holdfast")

# Taken by every verb and command that has them; said once instead of each time.
OWNER = ("user", "session", "agent", "tenant")
COMMON_OPTIONS = ("--user", "--session", "--agent", "--tenant", "--db", "--json")

# What each argument means, and what happens without it; `arguments` fails when a verb takes one that is not here.
HTTP = tomllib.loads((resources.files("holdfast.server") / "api.toml").read_text(encoding="utf-8"))
# Those that do not travel: `api.toml` has all others.
LOCAL_ARGUMENTS = {
    "counter": "a function from text to a number of tokens; the estimate",
    "target": "`export`: a new file",
    "folder, include, exclude": "`ingest_folder`: where, and patterns such as `*.md` or `drafts/*`",
    "progress": "a function that is told how far the work is",
    "path": "of the store, or of the backup",
    "settings, now, embedder, redactor, summariser": "`open`: values of yours instead of the configured ones",
    "token": "`open`: what the server at an address asks for",
}
# What has a section of its own on the page.
SECTIONS = {"content": "[Contents](#contents)", "filters": "[Filters](#filters)"}


def verbs() -> Iterator[str]:
    """Every public verb of Memory and every command, with arguments and options of their own."""
    members = {name: member for name, member in inspect.getmembers(Memory, callable) if not name.startswith("_")}
    options = _options()
    for name in sorted({*members, *options}):
        taken = [each for each in _parameters(members[name]) if each not in OWNER] if name in members else []
        called = [f"`{name}({', '.join(taken)})`"] if name in members else []
        further = [each for each in options[name][1] if not _is_argument(each, taken)] if name in options else []
        run = [f"`{' '.join([f'holdfast {name}', *further])}`"] if name in options else []
        yield f"- {', '.join(called + run)}: {_first_line(members[name]) if name in members else options[name][0]}"


def _is_argument(option: str, taken: list[str]) -> bool:
    """Return whether an option is an argument of the verb under the same name; one that repeats is in the plural."""
    name = option.removeprefix("--").replace("-", "_")
    return name in taken or f"{name}s" in taken


def _options() -> dict[str, tuple[str, list[str]]]:
    """Return what each command does, and the options that are its own."""
    group = typer.main.get_command(app)
    found = {}
    for name, command in getattr(group, "commands").items():  # noqa: B009 - typed as a plain command
        whole = command.make_context(
            name, [], resilient_parsing=True
        ).command  # one of them is made when it is called
        given = [each for parameter in whole.params for each in (*parameter.opts, *parameter.secondary_opts)]
        own = [each for each in given if each.startswith("--") and each not in COMMON_OPTIONS]
        found[name] = (str(command.help).split("\n", 1)[0], own)
    return found


def _parameters(member: Callable[..., object]) -> list[str]:
    # Keywords that several verbs share arrive as one; they are owner keys.
    taken = inspect.signature(member).parameters.values()
    return [each.name for each in taken if each.name not in ("self", "cls") and each.kind is not each.VAR_KEYWORD]


def _first_line(member: object) -> str:
    return str(inspect.getdoc(member)).split("\n", 1)[0]


def arguments() -> Iterator[str]:
    """What each argument of a verb means."""
    meanings = {**{name: _meaning(told) for name, told in HTTP["arguments"].items()}, **LOCAL_ARGUMENTS}
    known = {name for names in meanings for name in names.split(", ")}
    public = [member for name, member in inspect.getmembers(Memory, callable) if not name.startswith("_")]
    missing = {name for member in public for name in _parameters(member)} - known
    if missing:
        raise SystemExit(f"server/api.toml or scripts/reference.py lacks {', '.join(sorted(missing))}")
    for names, meaning in meanings.items():
        more = f", see {SECTIONS[names]}" if names in SECTIONS else ""
        yield f"- {', '.join(f'`{name}`' for name in names.split(', '))}: {meaning}{more}"


def _meaning(told: str | Mapping[str, str]) -> str:
    """Return what an argument means, by verb where that differs."""
    if isinstance(told, str):
        return told
    verbs: dict[str, list[str]] = {}
    for verb, one in told.items():
        verbs.setdefault(one.partition(";")[0], []).append("elsewhere" if verb == "other" else f"`{verb}`")
    return "; ".join(f"{', '.join(names)}: {one}" for one, names in verbs.items())


def interfaces() -> Iterator[str]:
    """Each method by interface, and why some have none but Python and the command line."""
    rows: Table = [("verb", "Python", "command", "route", "tool")]
    for verb in VERBS.values():
        tool = f"`{verb.tool}`" if verb.tool else ""
        python, command = f"`memory.{verb.name}`", f"`holdfast {verb.command}`"
        rows.append((verb.name, python, command, f"`{verb.method} {verb.path}`", tool))
    yield from _table(rows)
    yield ""
    yield "Python and command line only:"
    yield ""
    yield from (f"- `{name}` {why}" for name, why in LOCAL.items())


def host() -> Iterator[str]:
    """What an agent host calls around its turns."""
    for verb in HOST_VERBS:
        yield f"- `{verb.method} {verb.path}` ({', '.join(verb.arguments)}): {verb.summary}"


def settings() -> Iterator[str]:
    """Every documented setting: its default, the reference recipe's value where it differs, and what it does."""
    ours, reference = Settings(), Settings.reference()
    yield f"- `recipe` ({ours.recipe}): {_field(Settings, 'recipe').metadata['doc']}"
    groups = [each.name for each in dataclasses.fields(Settings) if each.name not in ("recipe", "origins")]
    for group in groups:
        if not isinstance(getattr(ours, group), ProfileSettings):
            yield from _group(group, getattr(ours, group), getattr(reference, group))
    profiles = [group for group in groups if isinstance(getattr(ours, group), ProfileSettings)]
    yield from _profiles({name: getattr(ours, name) for name in profiles})


def _group(name: str, ours: Any, reference: Any) -> Iterator[str]:
    for field in dataclasses.fields(ours):
        value, theirs = getattr(ours, field.name), getattr(reference, field.name)
        apart = "" if value == theirs else f"; reference {_shown(theirs)}"
        yield f"- `{name}.{field.name}` ({_shown(value)}{apart}): {field.metadata['doc']}"


def _profiles(profiles: Mapping[str, ProfileSettings]) -> Iterator[str]:
    """One line for a key of all profiles: they have the same."""
    for field in dataclasses.fields(ProfileSettings):
        values = {name: _shown(getattr(profile, field.name)) for name, profile in profiles.items()}
        apart = "; ".join(f"{name} {value}" for name, value in values.items())
        shown = next(iter(values.values())) if len(set(values.values())) == 1 else apart
        yield f"- `PROFILE.{field.name}` ({shown}): {field.metadata['doc']}"


def _field(group: type, name: str) -> dataclasses.Field[Any]:
    return next(each for each in dataclasses.fields(group) if each.name == name)


def _shown(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {each}" for name, each in value.items()) or "none"
    if isinstance(value, tuple):
        return ", ".join(map(str, value)) or "none"
    return str(value) if value != "" else "none"


def error_tree() -> Iterator[str]:
    """The tree that the module draws."""
    yield "```text"
    yield textwrap.dedent(str(errors.__doc__).split("::")[1].split("A message")[0]).strip()
    yield "```"


def names() -> Iterator[str]:
    """Every promised name."""
    yield ", ".join(f"`{name}`" for name in holdfast.__all__ if name not in errors.__all__)


def fields() -> Iterator[str]:
    """Every unit field that a filter may name."""
    yield ", ".join(f"`{name}`" for name in FIELD_DEFAULTS)


def models() -> Iterator[str]:
    """Every shipped model, as its own record describes it."""
    rows: Table = [("name", "model", "dims", "format", "size", "licence")]
    for name in SHIPPED:
        record = read_provenance(shipped_folder(name))
        size = sum(file["bytes"] for file in record["files"].values()) / 1e6
        made = (str(record["dims"]), record["format"], f"{size:.0f} MB", record["licence"])
        rows.append((f"`{name}`", record["upstream"], *made))
    return _table(rows)


def cascade() -> Iterator[str]:
    """How much of the exact ten best the funnel finds in stores of several sizes, and the tiers by themselves."""
    measured = {name: _result(f"cascade-{name}.json") for name in SHIPPED}
    sizes = [pool["rows"] for pool in next(iter(measured.values()))["pools"]]
    rows: Table = [("model", *(f"funnel, {size:,}" for size in sizes), "64 dimensions alone", "256 dimensions alone")]
    for name, result in measured.items():
        tiers = result["early exit"]
        alone = (f"{tiers[t]['overlap@10 of all questions']:.3f}" if t in tiers else "all" for t in ("64", "256"))
        found = (f"{pool['recall@10']:.3f} ({pool['handed on']:,})" for pool in result["pools"])
        rows.append((f"`{name}`", *found, *alone))
    return _table(rows)


def headline() -> Iterator[str]:
    """The two figures that matter most, of each set that has both, from the table of the evaluation page."""
    page = EVALUATION.read_text(encoding="utf-8")
    lines = page.split("<!-- figures: sets -->\n")[1].split("<!-- end -->")[0].splitlines()
    head, _, *body = [[cell.strip() for cell in line.strip("| ").split(" |")] for line in lines]
    found: dict[str, dict[str, list[str]]] = {}
    for row in body:
        cells = dict(zip(head, [*row, *[""] * len(head)], strict=False))
        found.setdefault(cells["set"], {})[cells["system"]] = [cells[name].split(" (")[0] for name in HEADLINES]
    rows: Table = [("set", *(f"{name}, {system}" for name in HEADLINES for system in SYSTEMS))]
    for data, systems in found.items():
        figures = [systems.get(system, [""] * len(HEADLINES))[i] for i in range(len(HEADLINES)) for system in SYSTEMS]
        if all(figures):
            rows.append((data, *figures))
    return _table(rows)


def _result(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((RESULTS / name).read_text(encoding="utf-8"))
    return found


def _table(rows: Table) -> Iterator[str]:
    head, *body = rows
    for row in (head, tuple("---" for _ in head), *body):
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |"


PARTS: dict[str, Callable[[], Iterator[str]]] = {
    "verbs": verbs,
    "arguments": arguments,
    "interfaces": interfaces,
    "host": host,
    "settings": settings,
    "errors": error_tree,
    "names": names,
    "fields": fields,
    "models": models,
    "cascade": cascade,
    "headline": headline,
}

if __name__ == "__main__":
    print("\n".join(PARTS[sys.argv[1]]()))
