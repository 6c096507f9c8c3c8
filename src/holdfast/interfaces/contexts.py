"""`holdfast assemble`: a context under a budget."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Group, RenderableType
from rich.text import Text

from holdfast.assembly.context import Context
from holdfast.errors import InputError
from holdfast.interfaces import draw, wire
from holdfast.interfaces.options import (
    Agent,
    AsJson,
    AsOf,
    Database,
    Everything,
    Filters,
    OnlySession,
    Reference,
    Session,
    Tenant,
    User,
    json_argument,
    open_memory,
    owner_of,
    show,
)


def assemble(
    query: Annotated[str | None, typer.Argument(help="The question.", show_default=False)] = None,
    messages: Annotated[
        Path | None,
        typer.Option(help="JSON list of messages the host shows already; the last user message is the question."),
    ] = None,
    budget: Annotated[int | None, typer.Option("--budget", "-b", help="Most tokens.", show_default=False)] = None,
    window: Annotated[
        int | None, typer.Option(help="The model's whole window; a share of it is used.", show_default=False)
    ] = None,
    profile: Annotated[str, typer.Option(help="Retrieval recipe.")] = "hybrid",
    explain: Annotated[bool, typer.Option("--explain", help="Show what every score is made of.")] = False,
    strict: Annotated[bool, typer.Option("--strict", help="Refuse a context without all last turns.")] = False,
    only_session: OnlySession = False,
    everything: Everything = False,
    filters: Filters = None,
    reference_time: Reference = None,
    as_of: AsOf = None,
    user: User = None,
    session: Session = None,
    agent: Agent = None,
    tenant: Tenant = None,
    db: Database = None,
    as_json: AsJson = False,
) -> None:
    """Pack rules, the last turns and what a question brings up into a prompt that keeps its budget."""
    memory, settings = open_memory(db)
    with memory:
        context = memory.assemble(
            _asked(query, messages),
            user=owner_of(user, settings),
            session=session,
            agent=agent,
            tenant=tenant,
            profile=profile,
            budget=budget,
            window=window,
            filters=json_argument("filter", filters),
            only_session=only_session,
            current_only=not everything,
            reference_time=reference_time,
            as_of=as_of,
            strict=strict,
        )
    show(wire.context_json(context, explain=explain), lambda: _drawn(context, explain=explain), as_json=as_json)


def _asked(query: str | None, messages: Path | None) -> str | list[Mapping[str, Any]]:
    if (query is None) == (messages is None):
        raise InputError("give a question, or --messages FILE; one of the two")
    if messages is None:
        return query or ""
    try:
        text = messages.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{messages} cannot be read: {error}; check its name") from error
    given = json_argument(f"{messages}:", text)
    if not isinstance(given, list):
        raise InputError(f"{messages} is not a JSON list of messages")
    return given


def _drawn(context: Context, *, explain: bool) -> RenderableType:
    parts: list[RenderableType] = [draw.budget_bar(context), Text(context.text)]
    parts += [Text(f"warning: {warning}", "yellow") for warning in context.warnings]
    parts += [Text(f"degraded: {context.degraded}", "red")] if context.degraded else []
    if explain:
        projection = context.trace.projection if context.trace is not None else None
        for one in projection.items if projection is not None else ():
            parts += [Text(f"{one.unit.id}  {one.via}", "dim"), draw.tree(one.contributions)]
        parts += [
            Text(f"left out by {left.cut}: {left.id}, needs {left.needed} tokens, {left.short} short", "dim")
            for left in context.left_out
        ]
    return Group(*parts)
