"""How many tokens there are, and who may take how many of them (C16).

soft:  I2* ≤ min(α2·τ, max(0, τ - I1 - T_base))
tail:  T_recent ≤ min(max(β·τ, T_base), τ - I1 - I2*)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from weakref import WeakKeyDictionary

from holdfast.assembly.context import node_id
from holdfast.assembly.render import RULES, authored_pieces, section_text
from holdfast.assembly.shares import share_of
from holdfast.errors import BudgetError, InputError, shown
from holdfast.language.tokens import TokenCounter, checked
from holdfast.settings import AssemblySettings
from holdfast.types import AuthoredText, digest

# An error names the rules that are worth shortening, not all of them.
_HEAVIEST = 3
# The pieces of a few dozen owners' rules.
_COSTS_KEPT = 4096
# By counter, for as long as somebody has it, and by the hash of a text: what is forgotten does not stay here.
_costs: WeakKeyDictionary[TokenCounter, dict[str, int]] = WeakKeyDictionary()


@dataclass(frozen=True, slots=True)
class Shares:
    """The shares of one budget τ in whole tokens: α1·τ, α2·τ and β·τ."""

    budget: int
    hard: int
    soft: int
    tail: int

    @classmethod
    def of(cls, budget: int, settings: AssemblySettings) -> Shares:
        """Return the shares that the settings give."""
        hard, soft, tail = settings.hard_share, settings.soft_share, settings.tail_share
        return cls(budget, share_of(budget, hard), share_of(budget, soft), share_of(budget, tail))

    def soft_bound(self, hard: int, base: int) -> int:
        """Return how much the soft rules may take beside the hard ones and T_base."""
        return min(self.soft, max(0, self.budget - hard - base))

    def tail_bound(self, hard: int, soft: int, base: int) -> int:
        """Return how much the whole tail may take; T_base may pass its share, never the budget."""
        return min(max(self.tail, base), self.budget - hard - soft)


def choose_budget(settings: AssemblySettings, budget: int | None = None, window: int | None = None) -> int:
    """Return τ: the budget given, else a share of the host's window under the ceiling, else the settings' budget.

    Raises:
        InputError: a value is not a whole number.
        BudgetError: it leaves no room for a single token.
    """
    if budget is not None:
        return check_budget(budget)
    if window is None:
        return settings.budget
    whole = _check_whole("window", window)
    return check_budget(min(share_of(whole, settings.window_fraction), settings.ceiling))


def check_budget(budget: object) -> int:
    """Return the budget unless it is no whole number or leaves no room."""
    tokens = _check_whole("budget", budget)
    if tokens <= 0:
        raise BudgetError(f"a budget of {tokens} tokens holds nothing; give at least 1")
    return tokens


def _check_whole(what: str, value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise InputError(f"the {what} {shown(value)} is not a whole number of tokens; give an int")
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


def counting(counter: TokenCounter, rules: Iterable[str]) -> TokenCounter:
    """Return a counter that counts each text once; what `rules` cost is kept from one context to the next (Ψ).

    Costs are kept by content and counter: an edit, or another counter, is counted anew.
    """
    count, lasting = cache(checked(counter)), frozenset(rules)
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


def heaviest(nodes: Sequence[AuthoredText], pieces: Sequence[str], count: TokenCounter) -> str:
    """Return the end of a message that names the nodes which cost most."""
    costs = sorted(((-count(piece), node_id(node)) for node, piece in zip(nodes, pieces, strict=True)))[:_HEAVIEST]
    named = ", ".join(f"{name} ({-cost})" for cost, name in costs)
    return f"; heaviest: {named}" if named else ""
