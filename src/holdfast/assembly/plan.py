"""What is decided before retrieval (C15, C16): rules and recent turns, and the room that they leave.

Precedence is I1, T_base, the first hit, soft prefix, tail extension, projection; the text runs hard, soft, tail,
projection. What the tail shows is not projected, so that the tail has to be known first. Each step counts the whole
text as it then stands, and its cost is the growth since the step before: for any counter, costs add up to what the
final text counts.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from holdfast.assembly.budget import Shares, check_budget, counting, heaviest
from holdfast.assembly.context import Item, LeftOut, LeftOutBy, Section, node_id
from holdfast.assembly.packing import longest_prefix
from holdfast.assembly.render import (
    GUIDANCE,
    RECALLED,
    RECENT,
    RULES,
    Cursor,
    Quote,
    authored_pieces,
    quote,
    quotes,
    section_text,
)
from holdfast.assembly.tail import base_start, safe_starts
from holdfast.errors import BudgetError, InputError, shown
from holdfast.language.tokens import TokenCounter
from holdfast.settings import AssemblySettings
from holdfast.types import AuthoredText, Unit


@dataclass(frozen=True, slots=True)
class Request:
    """What a context is made of before anything is recalled.

    `hard` and `soft` stand in their order (document, then position); `session_turns` is the active session in its
    order, without what the host shows already. `first` is what the projection will begin with: older turns, then soft
    rules make room for it. `strict` refuses a context that lacks one of the last turns.
    """

    budget: int
    counter: TokenCounter
    settings: AssemblySettings
    hard: Sequence[AuthoredText] = ()
    soft: Sequence[AuthoredText] = ()
    session_turns: Sequence[Unit] = ()
    first: Unit | None = None
    strict: bool = False


@dataclass(frozen=True, slots=True)
class Plan:
    """The context without its projection. V_rest is everything but `tail_ids`."""

    budget: int
    counter: TokenCounter
    settings: AssemblySettings
    sections: tuple[Section, Section, Section]
    tokens: int
    degraded: str
    warnings: tuple[str, ...]
    left_out: tuple[LeftOut, ...]

    @property
    def text(self) -> str:
        """Return the text so far."""
        return "".join(section.text for section in self.sections)

    @property
    def room(self) -> int:
        """Return τ_V, what is left for the projection; a degraded plan takes none."""
        return 0 if self.degraded else self.budget - self.tokens

    @property
    def tail_ids(self) -> frozenset[str]:
        """Return the ids of T_recent."""
        return frozenset(item.id for item in self.sections[2].items)


def plan_tail(request: Request) -> Plan:
    """Decide which rules and which recent turns come along.

    Raises:
        BudgetError: the budget is not positive, or less than the hard rules need; or it is less than these and the
            last turns need, and the request is strict.
        InputError: the counter misbehaves, or a node is given twice.
    """
    draft = _draft(request)
    if draft.with_base > draft.budget:
        return _less_tail(draft)
    shares = Shares.of(draft.budget, request.settings)
    heavy = _heavy_rules(draft, shares)
    if heavy and not request.settings.lenient_hard:
        return _plan(draft, _Choice(0, draft.base, draft.with_base, draft.with_base, degraded=heavy))
    soft, with_soft = _soft_prefix(draft, shares)
    start, tokens = _recent_start(draft, shares, soft, with_soft)
    choice = _with_first(draft, _Choice(soft, start, with_soft, tokens))
    warnings = [warning for warning in (heavy, _split_bundle(draft, choice.start)) if warning]
    return _plan(draft, dataclasses.replace(choice, warnings=tuple(warnings)))


# --------------------------------------------------------------------------------------------------- steps


@dataclass(frozen=True, slots=True)
class _Draft:
    """What every step reads: the rendered rules, where T_base starts, and the counts of I1 and of I1 with T_base."""

    request: Request
    budget: int
    count: TokenCounter
    rules: list[str]
    guidance: list[str]
    base: int
    hard: int
    with_base: int

    @property
    def turns(self) -> Sequence[Unit]:
        return self.request.session_turns

    def texts(self, soft: int, start: int) -> tuple[str, str, str]:
        """Return the three sections with so many soft rules and the turns from `start` on."""
        guidance = section_text(GUIDANCE, self.guidance[:soft])
        return section_text(RULES, self.rules), guidance, section_text(RECENT, quotes(self.turns[start:]))

    def counted(self, soft: int, start: int) -> int:
        """Count that text as it stands."""
        return self.count("".join(self.texts(soft, start)))


@dataclass(frozen=True, slots=True)
class _Choice:
    """How many soft rules and the turns from where on; the exact counts with the soft rules, and of all of it.

    `with_first` is the count of all of it and the first hit, where it had to make room for that.
    """

    soft: int
    start: int
    with_soft: int
    tokens: int
    with_first: int = 0
    degraded: str = ""
    warnings: tuple[str, ...] = ()


def _draft(request: Request) -> _Draft:
    budget = check_budget(request.budget)
    _check_nodes((*request.hard, *request.soft))
    rules, headings = authored_pieces(request.hard)
    guidance, _ = authored_pieces(request.soft, headings)
    text = section_text(RULES, rules)
    # Lines are counted more than once, to find the place and to report; a real tokenizer is not cheap.
    count = counting(request.counter, (text, *rules, *guidance))
    hard = count(text)
    if hard > budget:
        what = "the hard rules need" if rules else "even an empty text counts"
        raise BudgetError(
            f"{what} {hard} tokens and the budget is {budget}; give at least {hard}, or shorten the rules"
            f"{heaviest(request.hard, rules, count)}"
        )
    base = base_start(len(request.session_turns), request.settings.min_turns)
    with_base = count(text + section_text(RECENT, quotes(request.session_turns[base:])))
    return _Draft(request, budget, count, rules, guidance, base, hard, with_base)


def _check_nodes(nodes: Iterable[AuthoredText]) -> None:
    """Refuse a node that comes twice: it would be rule and guidance at once, and headings would be missed."""
    seen = set()
    for node in nodes:
        if (node.document, node.position) in seen:
            raise InputError(f"the node {shown(node_id(node))} is given twice; give each document its own name")
        seen.add((node.document, node.position))


def _less_tail(draft: _Draft) -> Plan:
    """Degrade to I1 and the longest suffix of whole T_base turns that fits."""
    turns, last = draft.turns[draft.base :], len(draft.turns)
    short = draft.with_base - draft.budget
    needs = (
        f"the hard rules and the last {len(turns)} turns need {draft.with_base} tokens, {short} more than the budget "
        f"of {draft.budget}"
    )
    if draft.request.strict:
        raise BudgetError(f"{needs}; give at least {draft.with_base}, or do without strict")
    pieces = quotes(turns)[::-1]
    kept, tokens = longest_prefix(
        len(turns),
        lambda index: draft.count(pieces[index]),
        lambda size: draft.counted(0, last - size),
        draft.hard,
        draft.budget,
    )
    absent = ", ".join(turn.id for turn in turns[: len(turns) - kept])
    reason = f"{needs}; left out: {absent}"
    return _plan(draft, _Choice(0, last - kept, draft.with_base, tokens, degraded=reason))


def _heavy_rules(draft: _Draft, shares: Shares) -> str:
    """Say when the hard rules take more than their share, or nothing."""
    if draft.hard <= shares.hard:
        return ""
    share = draft.request.settings.hard_share
    return (
        f"the hard rules take {draft.hard} of {draft.budget} tokens; assembly.hard_share = {share} gives them "
        f"{shares.hard}: shorten them, or give more"
    )


def _soft_prefix(draft: _Draft, shares: Shares) -> tuple[int, int]:
    """Return how many soft rules come along, and what the text then counts."""
    bound = shares.soft_bound(draft.hard, draft.with_base - draft.hard)
    return longest_prefix(
        len(draft.guidance),
        lambda index: draft.count(draft.guidance[index]),
        lambda size: draft.counted(size, draft.base),
        draft.with_base,
        draft.with_base + bound,
    )


def _recent_start(draft: _Draft, shares: Shares, soft: int, with_soft: int) -> tuple[int, int]:
    """Return where T_recent starts, and what the text then counts."""
    soft_tokens = with_soft - draft.with_base
    bound = shares.tail_bound(draft.hard, soft_tokens, draft.with_base - draft.hard)
    starts = [draft.base, *(start for start in _starts(draft) if start < draft.base)]
    steps, tokens = longest_prefix(
        len(starts) - 1,
        lambda index: draft.count("".join(quotes(draft.turns[starts[index + 1] : starts[index]]))),
        lambda size: draft.counted(soft, starts[size]),
        with_soft,
        draft.hard + soft_tokens + bound,
    )
    return starts[steps], tokens


def _with_first(draft: _Draft, choice: _Choice) -> _Choice:
    """Return the choice that leaves room for the first hit: older turns give way, then soft rules.

    One that the tail shows needs no room, and one that does not even fit beside I1 and T_base gets none.
    """
    first = draft.request.first
    if first is None or any(turn.id == first.id for turn in draft.turns[choice.start :]):
        return choice
    recalled = section_text(RECALLED, [quote(Quote.whole(first), Cursor(numbered=True))[0]])

    def counted(soft: int, start: int) -> int:
        """Count both texts: for some counters the longer one counts less, and either may be the last one."""
        before = "".join(draft.texts(soft, start))
        return max(draft.count(before), draft.count(before + recalled))

    alone = counted(0, draft.base)
    if alone > draft.budget or counted(choice.soft, choice.start) <= draft.budget:
        return choice
    soft, tokens = longest_prefix(
        choice.soft,
        lambda index: draft.count(draft.guidance[index]),
        lambda size: counted(size, draft.base),
        alone,
        draft.budget,
    )
    starts = [draft.base, *(start for start in _starts(draft) if choice.start <= start < draft.base)]
    steps, tokens = longest_prefix(
        len(starts) - 1,
        lambda index: draft.count("".join(quotes(draft.turns[starts[index + 1] : starts[index]]))),
        lambda size: counted(soft, starts[size]),
        tokens,
        draft.budget,
    )
    start = starts[steps]
    return _Choice(soft, start, draft.counted(soft, draft.base), draft.counted(soft, start), tokens)


def _starts(draft: _Draft) -> list[int]:
    """Return where T_recent may start; without T_base there is no tail at all."""
    return safe_starts(draft.turns, draft.base) if draft.base < len(draft.turns) else []


def _split_bundle(draft: _Draft, start: int) -> str:
    """Say when no suffix without a split bundle fits, so that T_recent is T_base."""
    if start >= len(draft.turns) or start in _starts(draft):
        return ""
    return f"the tail starts inside a bundle, at {draft.turns[start].id}: the whole bundle passes the tail's bound"


# ------------------------------------------------------------------------------------------------- the plan


def _plan(draft: _Draft, choice: _Choice) -> Plan:
    request, soft_tokens = draft.request, choice.with_soft - draft.with_base
    rules, guidance, recent = draft.texts(choice.soft, choice.start)
    turns = draft.turns[choice.start :]
    hard_items = _items(draft, [(node_id(node), node.markdown) for node in request.hard], draft.rules)
    soft_items = _items(
        draft, [(node_id(node), node.markdown) for node in request.soft[: choice.soft]], draft.guidance
    )
    tail_items = _items(draft, [(turn.id, turn.text) for turn in turns], quotes(turns))
    sections = (
        Section("hard", rules, draft.hard, hard_items),
        Section("soft", guidance, soft_tokens, soft_items),
        Section("tail", recent, choice.tokens - draft.hard - soft_tokens, tail_items),
    )
    left_out = (*_turns_left(draft, choice), *_soft_left(draft, choice))
    return Plan(
        draft.budget,
        draft.count,
        request.settings,
        sections,
        choice.tokens,
        choice.degraded,
        choice.warnings,
        left_out,
    )


def _items(draft: _Draft, shown_as: Sequence[tuple[str, str]], pieces: Sequence[str]) -> tuple[Item, ...]:
    counted = zip(shown_as, pieces, strict=False)
    return tuple(Item(name, "whole", text, draft.count(piece)) for (name, text), piece in counted)


def _turns_left(draft: _Draft, choice: _Choice) -> list[LeftOut]:
    """Return the turns of T_base that do not fit, the last one first."""
    left = draft.turns[draft.base : choice.start]
    pieces = [(turn.id, draft.count(piece)) for turn, piece in zip(left, quotes(left), strict=True)]
    return _left(reversed(pieces), "tail", draft.budget - choice.tokens)


def _soft_left(draft: _Draft, choice: _Choice) -> list[LeftOut]:
    """Return the soft rules that do not fit their bound, or that a degraded context goes without."""
    names = [node_id(node) for node in draft.request.soft[choice.soft :]]
    pieces = [(name, draft.count(piece)) for name, piece in zip(names, draft.guidance[choice.soft :], strict=True)]
    shares = Shares.of(draft.budget, draft.request.settings)
    bound = shares.soft_bound(draft.hard, draft.with_base - draft.hard)
    room = bound - (choice.with_soft - draft.with_base)
    if choice.with_first:
        room = min(room, draft.budget - choice.with_first)
    return _left(pieces, "degraded" if choice.degraded else "soft", room)


def _left(costs: Iterable[tuple[str, int]], cut: LeftOutBy, room: int) -> list[LeftOut]:
    """Return each with what it needs, and what is missing for it and those before it."""
    left, ahead = [], 0
    for name, needed in costs:
        ahead += needed
        left.append(LeftOut(name, needed, max(0, ahead - room), cut))
    return left
