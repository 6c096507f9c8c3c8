"""Find by what follows: rules over facts (C8). A unit is found when a proof rests on the fact that it states."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from holdfast.kernels.closure import (
    FURTHER_RULES,
    RULES,
    Closure,
    Limits,
    Proof,
    ScoredProof,
    derive_closure,
    fact_text,
    source_text,
)
from holdfast.kernels.triples import QueryTerms, StatedFact
from holdfast.messages.checks import read_rules
from holdfast.retrieval.strategy import Proposals
from holdfast.settings import Settings
from holdfast.store.contract import Reading
from holdfast.text.names import singular, symbol, symbol_tokens
from holdfast.types import Contribution, Deadline, QueryProfile, StrategyExplanation, StrategyScores


def question_symbols(query: QueryProfile) -> QueryTerms:
    """Return what a question names, read as symbols are; a follow-up also names what the message before it did."""
    texts = [symbol(text) for text in (query.text, query.borrowed) if text]
    # A symbol's head is in the singular, its other words need not be: look both ways. No name runs across a bar.
    alike = [" ".join(map(singular, text.split())) for text in texts]
    terms = frozenset(token for text in texts for token in symbol_tokens(text))
    return QueryTerms(terms, " | ".join((*texts, *alike)), symbol_tokens)


class SymbolicStrategy:
    """Closure over the facts around what the question names; every candidate carries its proof."""

    id = "thinkingdb-symbolic"

    def __init__(self, settings: Settings) -> None:
        own = settings.symbolic
        self._rules = (*RULES, *(FURTHER_RULES if own.further_rules else ()), *read_rules(own.rules))
        self._base_facts = own.base_facts
        self._limits = Limits(goal_bonus=own.goal_bonus, seed_bonus=own.seed_bonus, functional=own.functional)

    def propose(self, query: QueryProfile, reading: Reading, depth: int, deadline: Deadline) -> Proposals:  # noqa: ARG002 - a closure is whole
        """See `Strategy.propose`."""
        closure = self.prove(query, reading, deadline.expired)
        accounts = self._accounts(closure)
        return Proposals(tuple(accounts), closure.exhausted, _claims(tuple(accounts), accounts))

    def score(self, query: QueryProfile, reading: Reading, ids: Sequence[str]) -> StrategyScores:
        """See `Strategy.score`. A unit on which no shown proof rests scores 0."""
        return _claims(ids, self._accounts(self.prove(query, reading)))

    def explain(self, query: QueryProfile, reading: Reading, ids: Sequence[str]) -> dict[str, StrategyExplanation]:
        """See `Strategy.explain`: the tree is the proof."""
        accounts = self._accounts(self.prove(query, reading))
        nothing = StrategyExplanation(Contribution("proof", 0.0), (self.id,))
        return {unit_id: accounts.get(unit_id, nothing) for unit_id in ids}

    def prove(self, query: QueryProfile, reading: Reading, expired: Callable[[], bool] = lambda: False) -> Closure:
        """Return what follows around the question, with the proofs; `explain_proof` shows one."""
        return derive_closure(reading.facts(), question_symbols(query), self._rules, self._limits, expired)

    def _accounts(self, closure: Closure) -> dict[str, StrategyExplanation]:
        """Return each unit's best proof; whoever contradicts a shown fact comes with it, flagged like its rival."""
        best: dict[str, tuple[ScoredProof, StatedFact]] = {}
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
        return {
            unit_id: self._account(standing, fact, closure)
            for unit_id, (standing, fact) in best.items()
            if standing.score > 0.0
        }

    def _account(self, standing: ScoredProof, fact: StatedFact, closure: Closure) -> StrategyExplanation:
        proof = standing.proof
        kind = "base" if proof.rule is None else "derived"
        notes = [self.id, f"{kind}: {fact_text(proof.key)}"]
        if proof.rule is not None:
            notes.append(f"via: {' -> '.join(proof.rules())}")
        # What a unit states itself, and what follows from it, may both be disputed.
        disputed = dict.fromkeys(rival for key in (fact.key, proof.key) for rival in closure.rivals.get(key, ()))
        notes += [f"contradicts: {fact_text(rival)}" for rival in disputed]
        return StrategyExplanation(explain_scored_proof(standing), tuple(notes), proven=proof.rule is not None)


def _claims(ids: Sequence[str], accounts: Mapping[str, StrategyExplanation]) -> StrategyScores:
    claims = StrategyScores.of(ids)
    for row, unit_id in enumerate(ids):
        if (account := accounts.get(unit_id)) is not None:
            claims.raw[row], claims.proven[row] = account.tree.value, account.proven
    return claims


def explain_scored_proof(standing: ScoredProof) -> Contribution:
    """Return a proof's score as a tree: the proof itself, and the factors on top of its raw score."""
    factors = [Contribution(name, factor) for name, factor in standing.factors]
    return Contribution.of("proof", "product", explain_proof(standing.proof), *factors)


def explain_proof(proof: Proof) -> Contribution:
    """Return a raw score as a tree: stated facts are leaves, a rule multiplies its premises and its weight."""
    if proof.rule is None:
        source = f" ({source_text(proof.fact)})" if proof.fact is not None else ""
        return Contribution(f"base: {fact_text(proof.key)}{source}", proof.raw)
    weight = Contribution(f"rule {proof.rule.name}", proof.rule.weight)
    return Contribution.of(f"derived: {fact_text(proof.key)}", "product", *map(explain_proof, proof.premises), weight)
