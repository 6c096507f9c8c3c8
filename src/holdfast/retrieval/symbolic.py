"""Find by what follows: rules over facts (C8). A unit is found when a proof rests on the fact that it states."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from holdfast.kernels.closure import (
    FURTHER_RULES,
    RULES,
    Closure,
    Limits,
    Proof,
    Standing,
    close,
    origin,
    told,
)
from holdfast.kernels.facts import Fact
from holdfast.kernels.neighbourhood import Wanted
from holdfast.language.rules import read_rules
from holdfast.language.symbols import singular, symbol, symbol_tokens
from holdfast.retrieval.strategy import kind_of_store
from holdfast.settings import Settings
from holdfast.store.contract import Store
from holdfast.types import (
    Budget,
    Contribution,
    Deadline,
    QueryProfile,
    RetrievalResult,
    StrategyCandidate,
    Unit,
    View,
)


def wanted_by(query: QueryProfile) -> Wanted:
    """Return what a question names, read as symbols are; a follow-up also names what the message before it did."""
    texts = [symbol(text) for text in (query.text, query.borrowed) if text]
    # A symbol's head is in the singular, its other words need not be: look both ways. No name runs across a bar.
    alike = [" ".join(map(singular, text.split())) for text in texts]
    terms = frozenset(token for text in texts for token in symbol_tokens(text))
    return Wanted(terms, " | ".join((*texts, *alike)), symbol_tokens)


class SymbolicStrategy:
    """Closure over the facts around what the question names; every candidate carries its proof."""

    id = "thinkingdb-symbolic"

    def __init__(self, settings: Settings) -> None:
        own = settings.symbolic
        self._rules = (*RULES, *(FURTHER_RULES if own.further_rules else ()), *read_rules(own.rules))
        self._base_facts = own.base_facts
        self._limits = Limits(goal_bonus=own.goal_bonus, seed_bonus=own.seed_bonus, functional=own.functional)

    def retrieve(
        self, query: QueryProfile, view: View, store: Store, budget: Budget, deadline: Deadline
    ) -> RetrievalResult:
        """See `Strategy.retrieve`."""
        closure = self.prove(query, view, store, deadline.expired)
        claims = self._claims(closure, view, store)
        order = sorted(claims.values(), key=lambda claim: (-claim.raw_score, claim.unit_id))
        return RetrievalResult(
            self.id, tuple(order[: budget.max_candidates]), deadline.elapsed_ms(), closure.exhausted
        )

    def score(
        self,
        query: QueryProfile,
        view: View,
        store: Store,
        ids: Sequence[str],
        *,
        explain: bool = True,  # noqa: ARG002 - the tree is the proof, and there already
    ) -> dict[str, StrategyCandidate]:
        """See `Strategy.score`. A unit on which no shown proof rests scores 0."""
        claims = self._claims(self.prove(query, view, store), view, store)
        return {
            unit_id: claims.get(unit_id) or self._nothing(unit) for unit_id, unit in store.units(view, ids).items()
        }

    def prove(
        self, query: QueryProfile, view: View, store: Store, expired: Callable[[], bool] = lambda: False
    ) -> Closure:
        """Return what follows around the question, with the proofs; `kernels.closure.draw` draws one."""
        facts = store.facts(view)
        return close(facts, wanted_by(query), self._rules, self._limits, expired)

    def _claims(self, closure: Closure, view: View, store: Store) -> dict[str, StrategyCandidate]:
        """Return each unit's best proof; whoever contradicts a shown fact comes with it, flagged like its rival."""
        best: dict[str, tuple[Standing, Fact]] = {}
        # A fact that is only stated tells nothing new, unless another one contradicts it.
        shown = [
            one
            for one in closure.standings
            if self._base_facts or one.proof.rule is not None or one.proof.key in closure.rivals
        ]
        for standing in (*shown, *closure.contradicting):
            for fact in standing.proof.base():
                for source in fact.sources:
                    best.setdefault(source, (standing, fact))
        units = store.units(view, [*best])
        return {
            unit_id: self._claim(units[unit_id], standing, fact, closure)
            for unit_id, (standing, fact) in best.items()
            if unit_id in units and standing.score > 0.0
        }

    def _claim(self, unit: Unit, standing: Standing, fact: Fact, closure: Closure) -> StrategyCandidate:
        proof = standing.proof
        kind = "base" if proof.rule is None else "derived"
        notes = [self.id, f"{kind}: {told(proof.key)}"]
        if proof.rule is not None:
            notes.append(f"via: {' -> '.join(proof.rules())}")
        # What a unit states itself, and what follows from it, may both be disputed.
        disputed = dict.fromkeys(rival for key in (fact.key, proof.key) for rival in closure.rivals.get(key, ()))
        notes += [f"contradicts: {told(rival)}" for rival in disputed]
        tree = explain_standing(standing)
        return StrategyCandidate(
            unit.id, kind_of_store(unit), tree.value, min(tree.value, 1.0), unit, tuple(notes), tree
        )

    def _nothing(self, unit: Unit) -> StrategyCandidate:
        return StrategyCandidate(unit.id, kind_of_store(unit), 0.0, 0.0, unit, (self.id,), Contribution("proof", 0.0))


def explain_standing(standing: Standing) -> Contribution:
    """Return a proof's score as a tree: the proof itself, and the factors on top of its raw score."""
    factors = [Contribution(name, factor) for name, factor in standing.factors]
    return Contribution.of("proof", "product", explain_proof(standing.proof), *factors)


def explain_proof(proof: Proof) -> Contribution:
    """Return a raw score as a tree: stated facts are leaves, a rule multiplies its premises and its weight."""
    if proof.rule is None:
        source = f" ({origin(proof.fact)})" if proof.fact is not None else ""
        return Contribution(f"base: {told(proof.key)}{source}", proof.raw)
    weight = Contribution(f"rule {proof.rule.name}", proof.rule.weight)
    return Contribution.of(f"derived: {told(proof.key)}", "product", *map(explain_proof, proof.premises), weight)
