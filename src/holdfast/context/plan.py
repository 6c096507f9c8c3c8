"""What is decided before units are packed (C15, C16): rules and recent turns, and the room that they leave.

Precedence is I1, T_base, the first hit, soft prefix, tail extension, standing instructions, projection; the text runs
hard, soft, tail, standing, projection. What the tail shows is not projected, so that the tail has to be known first.
Each step counts the whole text as it then stands, and its cost is the growth since the step before: for any counter,
costs add up to what the final text counts.

soft:  I2* ≤ min(α2·τ, max(0, τ - I1 - T_base))
tail:  T_recent ≤ min(max(β·τ, T_base), τ - I1 - I2*)
standing:  ≤ its share of τ, of what these leave beside the first hit

T_base is the shortest suffix of the session with at least m turns, those that the host shows included. T_recent is
the longest suffix that contains it, splits no bundle and fits its bound. A bundle is a user turn with the assistant
and tool turns that answer it, or the turns that share a bundle id; a turn belongs to one bundle, so that coupling
ends where its bundle ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import UTC, tzinfo
from fractions import Fraction
from functools import cache, cached_property, lru_cache
from weakref import WeakKeyDictionary

from holdfast.errors import BudgetError, InputError, quote_value
from holdfast.settings import AssemblySettings
from holdfast.text.quotes import (
    GUIDANCE,
    RULES,
    Cursor,
    Quote,
    authored_pieces,
    quote,
    quotes,
    recalled_heading,
    recent_heading,
    section_text,
    standing_heading,
)
from holdfast.text.tokens import Estimator, TokenCounter, checked_counter
from holdfast.types import Author, AuthoredText, Unit, digest
from holdfast.types.contexts import ContextSection, Item, LeftOutBy, OmittedItem, StandingInstruction, node_id
from holdfast.values import dataclass

_ANSWERING = ("assistant", "tool")


def base_start(turns: int, minimum: int) -> int:
    """Return where T_base starts in a session of so many turns; a minimum of 0 or less means no tail."""
    return turns - min(turns, max(0, minimum))


def safe_starts(turns: Sequence[Unit], base: int) -> list[int]:
    """Return where a suffix that contains T_base can start without splitting a bundle, the shortest suffix first."""
    bundles = _bundles(turns)
    last = {bundle: index for index, bundle in enumerate(bundles)}
    starts, reach = [], 0
    for index, bundle in enumerate(bundles[: base + 1]):
        if index >= reach:
            starts.append(index)
        reach = max(reach, last[bundle] + 1)
    return starts[::-1]


def _bundles(turns: Sequence[Unit]) -> list[object]:
    """Return the bundle of each turn: its id, or the index of the turn that opens it."""
    bundles: list[object] = []
    asked = False  # whether the bundle of the turn before holds a user turn, which can be answered
    for index, turn in enumerate(turns):
        if turn.bundle_id:
            asked = turn.author == "user" or (asked and bundles[-1] == turn.bundle_id)
            bundles.append(turn.bundle_id)
        elif asked and turn.author in _ANSWERING:
            bundles.append(bundles[-1])
        else:
            asked = turn.author == "user"
            bundles.append(index)
    return bundles


# An error names the rules that are worth shortening, not all of them.
_HEAVIEST = 3
# The pieces of a few dozen owners' rules.
_COSTS_KEPT = 4096
# By counter, for as long as somebody has it, and by the hash of a text: what is forgotten does not stay here.
_costs: WeakKeyDictionary[TokenCounter, dict[str, int]] = WeakKeyDictionary()
# So many probes follow the items' own costs; then the interval is halved, which ends soon for any counter.
_GUIDED_PROBES = 4


@dataclass(frozen=True, slots=True)
class ContextRequest:
    """What a context is made of besides the answer to its question.

    `hard` and `soft` stand in their order (document, then position); `said` is what the host shows already, author
    and words. `session_turns` is the active session in its order, without that: `hidden` are those units,
    `hidden_words` what it shows of no known session. `standing` are the user's instructions in order. `first` is
    what the projection will begin with: older turns, then soft rules make room for it. `strict` refuses a context
    that lacks one of the last turns. Times are shown in `zone`.
    """

    budget: int
    counter: TokenCounter
    settings: AssemblySettings
    hard: Sequence[AuthoredText] = ()
    soft: Sequence[AuthoredText] = ()
    said: Sequence[tuple[Author, str]] = ()
    session_turns: Sequence[Unit] = ()
    hidden: frozenset[str] = frozenset()
    hidden_words: frozenset[tuple[str, str]] = frozenset()
    standing: Sequence[StandingInstruction] = ()
    first: Unit | None = None
    strict: bool = False
    zone: tzinfo = UTC


@dataclass(frozen=True, slots=True)
class Plan:
    """The context without its projection. V_rest is everything but `shown_ids`."""

    budget: int
    counter: TokenCounter
    settings: AssemblySettings
    sections: tuple[ContextSection, ContextSection, ContextSection, ContextSection]
    tokens: int
    degraded: str
    warnings: tuple[str, ...]
    left_out: tuple[OmittedItem, ...]
    zone: tzinfo = UTC

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

    @property
    def shown_ids(self) -> frozenset[str]:
        """Return the ids of T_recent and of instructions that are shown whole."""
        return self.tail_ids.union(item.id for item in self.sections[3].items if item.kind == "whole")


def plan_tail(request: ContextRequest) -> Plan:
    """Decide which rules and which recent turns come along.

    Raises:
        BudgetError: the budget is not positive, or less than the hard rules need; or it is less than these and the
            last turns need, and the request is strict.
        InputError: the counter misbehaves, or a node is given twice.
    """
    planner = _Planner(request)
    if planner.with_base > planner.budget:
        return planner.finish(degraded=planner.shorten_tail())
    heavy = planner.heavy_rules()
    if heavy and not request.settings.lenient_hard:
        return planner.finish(degraded=heavy)
    planner.add_soft_rules()
    planner.extend_tail()
    planner.make_room_for_first()
    plan = planner.finish(warnings=[warning for warning in (heavy, planner.split_bundle()) if warning])
    return _add_standing(plan, request) if request.standing else plan


class _Planner:
    """The plan while it is made: `soft` rules and the turns from `start` on, with the exact counts of each step.

    `hard` counts I1, `with_base` also T_base, `with_soft` also the soft rules, `tokens` all of it. `with_first`
    counts the first hit too, where the others had to make room for it.
    """

    def __init__(self, request: ContextRequest) -> None:
        self.request, self.budget, self.turns = request, check_budget(request.budget), request.session_turns
        _check_nodes((*request.hard, *request.soft))
        self.rules, headings = authored_pieces(request.hard)
        self.guidance, _ = authored_pieces(request.soft, headings)
        self.rules_text = section_text(RULES, self.rules)
        # Lines are counted more than once, to find the place and to report; a real tokenizer is not cheap.
        self.count = counting(request.counter, (self.rules_text, *self.rules, *self.guidance))
        self.hard = self.count(self.rules_text)
        if self.hard > self.budget:
            what = "the hard rules need" if self.rules else "even an empty text counts"
            raise BudgetError(
                f"{what} {self.hard} tokens and the budget is {self.budget}; give at least {self.hard}, or shorten "
                f"the rules{heaviest(request.hard, self.rules, self.count)}"
            )
        turns = self.turns
        quoted = self._quoted = cache(lambda place: Quote.whole(turns[place], request.zone))
        self._behind_another = cache(lambda place: quote(quoted(place), quoted(place - 1).cursor)[0])
        # Turns that the host shows are among the last ones: when it shows enough of them, no more are needed.
        self.base = self.start = base_start(len(self.turns), request.settings.min_turns - len(request.hidden))
        self.soft, self.with_first = 0, 0
        self.with_base = self.with_soft = self.tokens = self.total(0, self.base)

    # ------------------------------------------------------------------------------------------- rendering

    def lines(self, start: int, end: int | None = None) -> list[str]:
        """Return the lines of some turns; but for the first, they depend on the turn before alone."""
        places = range(len(self.turns))[start:end]
        head = [quote(self._quoted(place), Cursor())[0] for place in places[:1]]
        return head + [self._behind_another(place) for place in places[1:]]

    def text(self, soft: int, start: int) -> str:
        """Return the text with so many soft rules and the turns from `start` on."""
        guidance = section_text(GUIDANCE, self.guidance[:soft])
        return self.rules_text + guidance + section_text(recent_heading(self.request.zone), self.lines(start))

    def total(self, soft: int, start: int) -> int:
        """Count that text as it stands."""
        return self.count(self.text(soft, start))

    # ----------------------------------------------------------------------------------------------- steps

    def shorten_tail(self) -> str:
        """Degrade to I1 and the longest suffix of whole T_base turns that fits; return why."""
        turns, last = self.turns[self.base :], len(self.turns)
        needs = (
            f"the hard rules and the last {len(turns)} turns need {self.with_base} tokens, "
            f"{self.with_base - self.budget} more than the budget of {self.budget}"
        )
        if self.request.strict:
            raise BudgetError(f"{needs}; give at least {self.with_base}, or do without strict")
        pieces = self.lines(self.base)[::-1]
        kept, self.tokens = longest_prefix(
            len(turns),
            lambda index: self.count(pieces[index]),
            lambda size: self.total(0, last - size),
            self.hard,
            self.budget,
        )
        self.start = last - kept
        absent = ", ".join(turn.id for turn in turns[: len(turns) - kept])
        return f"{needs}; left out: {absent}"

    def heavy_rules(self) -> str:
        """Say when the hard rules take more than their share, or nothing."""
        share = self.request.settings.hard_share
        most = share_of(self.budget, share)
        if self.hard <= most:
            return ""
        return (
            f"the hard rules take {self.hard} of {self.budget} tokens; assembly.hard_share = {share} gives them "
            f"{most}: shorten them, or give more"
        )

    def soft_bound(self) -> int:
        """Return how much the soft rules may take beside the hard ones and T_base."""
        return min(share_of(self.budget, self.request.settings.soft_share), max(0, self.budget - self.with_base))

    def add_soft_rules(self) -> None:
        """Let the longest prefix of the soft rules come along that keeps its bound."""
        self.soft, self.with_soft = longest_prefix(
            len(self.guidance),
            lambda index: self.count(self.guidance[index]),
            lambda size: self.total(size, self.base),
            self.with_base,
            self.with_base + self.soft_bound(),
        )

    def extend_tail(self) -> None:
        """Let T_recent start as early as its bound allows; T_base may pass its share, never the budget."""
        soft, base = self.with_soft - self.with_base, self.with_base - self.hard
        share = share_of(self.budget, self.request.settings.tail_share)
        bound = min(max(share, base), self.budget - self.hard - soft)
        self.start, self.tokens = self._earliest(
            0, lambda start: self.total(self.soft, start), self.with_soft, self.hard + soft + bound
        )

    def make_room_for_first(self) -> None:
        """Leave room for the first hit: older turns give way, then soft rules.

        One that the tail shows needs no room, and one that does not even fit beside I1 and T_base gets none.
        """
        first = self.request.first
        if first is None or any(turn.id == first.id for turn in self.turns[self.start :]):
            return
        zone = self.request.zone
        recalled = section_text(recalled_heading(zone), [quote(Quote.whole(first, zone), Cursor(numbered=True))[0]])

        def total(soft: int, start: int) -> int:
            """Count both texts: for some counters the longer one counts less, and either may be the last one."""
            before = self.text(soft, start)
            return max(self.count(before), self.count(before + recalled))

        alone = total(0, self.base)
        if alone > self.budget or total(self.soft, self.start) <= self.budget:
            return
        self.soft, tokens = longest_prefix(
            self.soft,
            lambda index: self.count(self.guidance[index]),
            lambda size: total(size, self.base),
            alone,
            self.budget,
        )
        self.start, self.with_first = self._earliest(
            self.start, lambda start: total(self.soft, start), tokens, self.budget
        )
        self.with_soft, self.tokens = self.total(self.soft, self.base), self.total(self.soft, self.start)

    def _earliest(self, least: int, total: Callable[[int], int], spent: int, limit: int) -> tuple[int, int]:
        """Return where the tail can start, not before `least`, and what the text then counts."""
        starts = [self.base, *(start for start in self.safe_starts if least <= start < self.base)]
        steps, tokens = longest_prefix(
            len(starts) - 1,
            lambda index: self.count("".join(self.lines(starts[index + 1], starts[index]))),
            lambda size: total(starts[size]),
            spent,
            limit,
        )
        return starts[steps], tokens

    @cached_property
    def safe_starts(self) -> list[int]:
        """Return where T_recent may start; a minimum of no turns means no tail at all."""
        return safe_starts(self.turns, self.base) if self.request.settings.min_turns > 0 else []

    def split_bundle(self) -> str:
        """Say when no suffix without a split bundle fits, so that T_recent is T_base."""
        if self.start >= len(self.turns) or self.start in self.safe_starts:
            return ""
        name = self.turns[self.start].id
        return f"the tail starts inside a bundle, at {name}: the whole bundle passes the tail's bound"

    # -------------------------------------------------------------------------------------------- the plan

    def finish(self, *, degraded: str = "", warnings: Iterable[str] = ()) -> Plan:
        """Return what was decided, with what is left out and why."""
        request, soft_tokens = self.request, self.with_soft - self.with_base
        turns, pieces = self.turns[self.start :], self.lines(self.start)
        tail_tokens = self.tokens - self.hard - soft_tokens
        hard = self._items(((node_id(node), node.markdown) for node in request.hard), self.rules)
        soft = self._items(((node_id(node), node.markdown) for node in request.soft[: self.soft]), self.guidance)
        tail = self._items(((turn.id, turn.text) for turn in turns), pieces)
        sections = (
            ContextSection("hard", self.rules_text, self.hard, hard),
            ContextSection("soft", section_text(GUIDANCE, self.guidance[: self.soft]), soft_tokens, soft),
            ContextSection("tail", section_text(recent_heading(request.zone), pieces), tail_tokens, tail),
            ContextSection("standing"),
        )
        left_out = (*self._turns_left(), *self._soft_left(degraded=bool(degraded)))
        parts = (self.budget, self.count, request.settings, sections, self.tokens)
        return Plan(*parts, degraded, tuple(warnings), left_out, request.zone)

    def _items(self, shown_as: Iterable[tuple[str, str]], pieces: Sequence[str]) -> tuple[Item, ...]:
        counted = zip(shown_as, pieces, strict=False)
        return tuple(Item(name, "whole", text, self.count(piece)) for (name, text), piece in counted)

    def _turns_left(self) -> list[OmittedItem]:
        """Return the turns of T_base that do not fit, the last one first."""
        left = self.turns[self.base : self.start]
        pieces = self.lines(self.base, self.start)
        costs = [(turn.id, self.count(piece)) for turn, piece in zip(left, pieces, strict=True)]
        return _left_out(reversed(costs), "tail", self.budget - self.tokens)

    def _soft_left(self, *, degraded: bool) -> list[OmittedItem]:
        """Return the soft rules that do not fit their bound, or that a degraded context goes without."""
        names = [node_id(node) for node in self.request.soft[self.soft :]]
        costs = [(name, self.count(piece)) for name, piece in zip(names, self.guidance[self.soft :], strict=True)]
        room = self.soft_bound() - (self.with_soft - self.with_base)
        if self.with_first:
            room = min(room, self.budget - self.with_first)
        return _left_out(costs, "degraded" if degraded else "soft", room)


def _add_standing(plan: Plan, request: ContextRequest) -> Plan:
    """Let the first standing instructions come along within their share, beside the first hit where that fits."""
    zone, first, count = request.zone, request.first, plan.counter
    quoted = [
        Quote.whole(unit, zone) if text == unit.text.strip() else Quote.part(unit, text, zone, named=False)
        for unit, text, _ in request.standing
        if unit.id not in plan.tail_ids
    ]
    pieces, heading, recalled = quotes(quoted), standing_heading(zone), ""
    if first is not None and first.id not in plan.tail_ids:
        recalled = section_text(recalled_heading(zone), [quote(Quote.whole(first, zone), Cursor(numbered=True))[0]])
        recalled = recalled if count(plan.text + recalled) <= plan.budget else ""

    def total(size: int) -> int:
        text = plan.text + section_text(heading, pieces[:size])
        return max(count(text), count(text + recalled))

    bound = min(plan.budget, total(0) + share_of(plan.budget, plan.settings.standing_share))
    taken, spent = longest_prefix(len(pieces), lambda index: count(pieces[index]), total, total(0), bound)
    costs = [count(piece) for piece in pieces]
    items = (Item(one.unit.id, one.kind, one.text, cost) for one, cost in zip(quoted[:taken], costs, strict=False))
    rest = ((one.unit.id, cost) for one, cost in zip(quoted[taken:], costs[taken:], strict=True))
    text = section_text(heading, pieces[:taken])
    section = ContextSection("standing", text, count(plan.text + text) - plan.tokens, tuple(items))
    tokens, left_out = plan.tokens + section.tokens, (*plan.left_out, *_left_out(rest, "standing", bound - spent))
    return replace(plan, sections=(*plan.sections[:3], section), tokens=tokens, left_out=left_out)


def _check_nodes(nodes: Iterable[AuthoredText]) -> None:
    """Refuse a node that comes twice: it would be rule and guidance at once, and headings would be missed."""
    seen = set()
    for node in nodes:
        if (node.document, node.position) in seen:
            raise InputError(f"the node {quote_value(node_id(node))} is given twice; give each document its own name")
        seen.add((node.document, node.position))


def _left_out(costs: Iterable[tuple[str, int]], cut: LeftOutBy, room: int) -> list[OmittedItem]:
    """Return each with what it needs, and what is missing for it and those before it."""
    left, ahead = [], 0
    for name, needed in costs:
        ahead += needed
        left.append(OmittedItem(name, needed, max(0, ahead - room), cut))
    return left


def check_budget(budget: object) -> int:
    """Return the budget unless it is no whole number or leaves no room."""
    tokens = check_whole("budget", budget)
    if tokens <= 0:
        raise BudgetError(f"a budget of {tokens} tokens holds nothing; give at least 1")
    return tokens


def check_whole(what: str, value: object) -> int:
    """Return a number of tokens that a caller gives."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise InputError(f"the {what} {quote_value(value)} is not a whole number of tokens; give an int")
    return value


def check_hard(hard: Sequence[AuthoredText], counter: TokenCounter, settings: AssemblySettings) -> int:
    """Return what the hard rules cost as rendered, unless that passes their share of the settings' budget.

    Raises:
        BudgetError: they are too long to be in every context; the message names the heaviest.
    """
    pieces, _ = authored_pieces(hard)
    text = section_text(RULES, pieces)
    count = counting(counter, (text, *pieces))
    tokens = count(text)
    bound = share_of(settings.budget, settings.hard_share)
    if tokens > bound:
        raise BudgetError(
            f"the hard rules need {tokens} tokens; assembly.hard_share = {settings.hard_share} of assembly.budget = "
            f"{settings.budget} gives them {bound}; shorten them, or raise one of the two"
            f"{heaviest(hard, pieces, count)}"
        )
    return tokens


@lru_cache(maxsize=64)  # the same few budgets and shares come again with every context
def share_of(budget: int, share: float) -> int:
    """Return the whole tokens in a share of a budget, exact in decimals: .29 of 100 is 29, in floats it is less."""
    return int(Fraction(str(float(share))) * budget)


def heaviest(nodes: Sequence[AuthoredText], pieces: Sequence[str], count: TokenCounter) -> str:
    """Return the end of a message that names the nodes which cost most."""
    costs = sorted(((-count(piece), node_id(node)) for node, piece in zip(nodes, pieces, strict=True)))[:_HEAVIEST]
    named = ", ".join(f"{name} ({-cost})" for cost, name in costs)
    return f"; heaviest: {named}" if named else ""


# ------------------------------------------------------------------------------------------------ counting


def counting(counter: TokenCounter, rules: Iterable[str]) -> TokenCounter:
    """Return a counter that counts each text once; what `rules` cost is kept from one context to the next (Ψ).

    Costs are kept by content and counter: an edit, or another counter, is counted anew. Our own estimate needs no
    such memory: it counts each line once.
    """
    if isinstance(counter, Estimator):
        return cache(counter.by_lines())
    count, lasting = cache(checked_counter(counter)), frozenset(rules)
    try:
        known = _costs.setdefault(counter, {})
    except TypeError:  # it has no hash, or cannot be referred to weakly: nothing is kept of it
        return count
    return lambda text: _cost(known, count, text) if text in lasting else count(text)


def _cost(known: dict[str, int], count: TokenCounter, text: str) -> int:
    name = digest(text)
    cost = known.get(name)
    if cost is None:
        cost = count(text)
        if len(known) >= _COSTS_KEPT:
            known.clear()
        known[name] = cost
    return cost


def longest_prefix(
    size: int, cost: Callable[[int], int], total: Callable[[int], int], spent: int, limit: int
) -> tuple[int, int]:
    """Return how many of `size` items fit when they are taken in their order, and what the text then counts.

    `total(n)` counts the text with n items, `spent` is the count without any, which fits; `cost(i)` says about what
    item i adds. With the next item the total passes the limit.
    """
    low, high, probe, room = 0, size + 1, 0, limit - spent
    probes = 0
    while high - low > 1:
        probe = _reach(probe, room, size, cost) if probes < _GUIDED_PROBES else (low + high) // 2
        probe = min(max(probe, low + 1), high - 1)
        counted = total(probe)
        room, probes = limit - counted, probes + 1
        if room >= 0:
            low, spent = probe, counted
        else:
            high = probe
    return low, spent


def _reach(start: int, room: int, size: int, cost: Callable[[int], int]) -> int:
    """Return how many items there are after adding as many as there is room for, or taking away as many as needed."""
    while start < size and (added := cost(start)) <= room:
        room -= added
        start += 1
    while start > 0 > room:
        start -= 1
        room += cost(start)
    return start
