"""`holdfast assemble`: a context under a budget."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from holdfast.assembly.context import Context
from holdfast.errors import InputError
from holdfast.interfaces import draw, wire
from holdfast.interfaces.options import (
    Agent,
    AsJson,
    AsOf,
    AsTree,
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
    read_text,
    show,
)
from holdfast.types import Projected

# The factors of a score in a context (C11), by the names of its tree.
_FACTORS = {"ω": "standing", "max(sim, 0)": "relevance", "keywords": "words of the question", "Q": "summary"}


def assemble(
    query: Annotated[str | None, typer.Argument(help="The question.", show_default=False)] = None,
    messages: Annotated[
        Path | None,
        typer.Option(
            help="JSON list of messages the host shows already, `-` for standard input; the last user message is the "
            "question."
        ),
    ] = None,
    budget: Annotated[int | None, typer.Option("--budget", "-b", help="Most tokens.", show_default=False)] = None,
    window: Annotated[
        int | None, typer.Option(help="The model's whole window; a share of it is used.", show_default=False)
    ] = None,
    profile: Annotated[str, typer.Option(help="Retrieval recipe.")] = "hybrid",
    explain: Annotated[bool, typer.Option("--explain", help="Show what every score is made of.")] = False,
    tree: AsTree = False,
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
    explain = explain or tree
    row = wire.context_json(context, explain=explain)
    show(row, lambda: _drawn(context, explain=explain, tree=tree), as_json=as_json)


def _asked(query: str | None, messages: Path | None) -> str | list[Mapping[str, Any]]:
    if (query is None) == (messages is None):
        raise InputError("give a question, or --messages FILE; one of the two")
    if messages is None:
        return query or ""
    given = json_argument(f"{messages}:", read_text(messages))
    if not isinstance(given, list):
        raise InputError(f"{messages} is not a JSON list of messages")
    return given


def _drawn(context: Context, *, explain: bool, tree: bool) -> RenderableType:
    parts: list[RenderableType] = [draw.budget_bar(context), Text(context.text)]
    parts += draw.warnings(context.warnings)
    parts += [Text(f"degraded: {context.degraded}", "red")] if context.degraded else []
    if explain:
        projection = context.trace.projection if context.trace is not None else None
        for one in projection.items if projection is not None else ():
            parts += [Text(f"{one.score:.4f}  {one.unit.id}  {_way_in(one.via)}"), *_scores(one, tree=tree)]
        parts += [
            Text(f"left out by {left.cut}: {left.id}, needs {left.needed} tokens, {left.short} short", "dim")
            for left in context.left_out
        ]
    return Group(*parts)


def _scores(one: Projected, *, tree: bool) -> list[RenderableType]:
    """Draw the factors of a projected unit's score, in plain words, or the whole tree."""
    if tree:
        return [Padding.indent(draw.drawn_tree(one.contributions), 3)]
    product = one.contributions.find("ω × sim × keywords × Q")
    if product is None:
        return []
    factors = (f"{_FACTORS[part.name]} {part.value:.2f}" for part in product.parts if part.value != 1.0)
    return [draw.indented(Text(" × ".join(factors), "green"))]


def _way_in(via: str) -> str:
    return "found" if via == "pass 2" else via.replace("hop from", "linked from")
