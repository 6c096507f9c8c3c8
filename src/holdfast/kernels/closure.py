"""Symbolic closure (C8): rules over the facts around a question, and the proofs of what follows from them.

raw(base fact)    = its confidence
raw(derived fact) = Π raw(premise) · rule weight, of its best proof
score(proof)      = raw · 1/(1 + .25·steps) · 1.15 if the question has a term of its ends · 1.10 if it uses a seed

Rules run in rounds; a round joins only what the round before has changed with what is known (semi-naive), by lookups
of (relation, symbol). Facts that lie between two things that the question names are joined, kept and shown first.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import NamedTuple

from holdfast.kernels.triples import (
    Expired,
    Facts,
    Neighbourhood,
    QueryTerms,
    SearchLimits,
    StatedFact,
    TripleKey,
    explore,
)
from holdfast.values import dataclass

# A lookup gives at most this many facts, the best first: as many as may be derived at all.
_JOINED = 64
_SHOWN_SOURCES = 3


class Pattern(NamedTuple):
    """One side of a rule: a relation between two variables."""

    subject: str
    relation: str
    object: str


@dataclass(frozen=True, slots=True)
class Rule:
    """Where every pattern of the body holds, so does the head, as sure as the premises times `weight`."""

    name: str
    body: tuple[Pattern, ...]
    head: Pattern
    weight: float


def _rule(name: str, first: str, second: str, head: str, weight: float) -> Rule:
    """Return the rule x first y, y second z → x head z."""
    return Rule(name, (Pattern("x", first, "y"), Pattern("y", second, "z")), Pattern("x", head, "z"), weight)


# The reference system's eight.
RULES = (
    _rule("tool_to_capability", "uses", "provides", "has_capability", 0.95),
    _rule("capability_to_relevance", "has_capability", "relevant_for", "relevant_for", 0.90),
    _rule("provider_to_relevance", "provides", "relevant_for", "relevant_for", 0.88),
    _rule("dependency_transitive", "depends_on", "depends_on", "depends_on", 0.92),
    _rule("dependency_capability", "depends_on", "has_capability", "has_capability", 0.90),
    _rule("dependency_relevance", "depends_on", "relevant_for", "relevant_for", 0.85),
    _rule("support_to_relevance", "supports", "relevant_for", "relevant_for", 0.88),
    _rule("causal_chain", "causes", "causes", "causes", 0.90),
)
# Ours: what holds of a kind or a whole holds of its instances and parts, and a part may be told from the other end.
FURTHER_RULES = (
    _rule("instance_capability", "instance_of", "has_capability", "has_capability", 0.90),
    _rule("part_relevance", "part_of", "relevant_for", "relevant_for", 0.85),
    Rule("part_inverse", (Pattern("y", "has_part", "x"),), Pattern("x", "part_of", "y"), 1.0),
)
PREFERRED = ("relevant_for", "has_capability", "depends_on", "causes")


@dataclass(frozen=True, slots=True)
class Limits:
    """How much a closure may derive and show, and what makes a proof count (C8)."""

    reach: SearchLimits = field(default_factory=SearchLimits)
    depth: int = 3
    derived: int = 64
    proofs: int = 32
    focused: int = 12
    min_score: float = 0.15
    step_penalty: float = 0.25
    goal_bonus: float = 1.15
    seed_bonus: float = 1.10
    preferred: tuple[str, ...] = PREFERRED
    functional: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Proof:
    """Why a fact holds: it is stated (no rule), or a rule makes it of premises. `nodes` are all facts it rests on."""

    key: TripleKey
    raw: float
    nodes: frozenset[TripleKey]
    rule: Rule | None = None
    premises: tuple[Proof, ...] = ()
    fact: StatedFact | None = None

    @classmethod
    def of(cls, fact: StatedFact) -> Proof:
        """Return the proof of a fact that somebody states."""
        return cls(fact.key, fact.confidence, frozenset((fact.key,)), fact=fact)

    @property
    def steps(self) -> int:
        """Return how many different facts and rule applications the proof has."""
        return len(self.nodes)

    @property
    def between(self) -> frozenset[str]:
        """Return the symbols inside the proof: those of its premises that are not its own ends."""
        return frozenset(end for key in self.nodes for end in (key[0], key[2])) - {self.key[0], self.key[2]}

    def tree(self) -> Iterator[Proof]:
        """Yield the premises' proofs, and theirs, each before what it proves; this one last."""
        for premise in self.premises:
            yield from premise.tree()
        yield self

    def base(self) -> tuple[StatedFact, ...]:
        """Return the stated facts that the proof rests on, in the order of its premises."""
        return tuple({proof.key: proof.fact for proof in self.tree() if proof.fact is not None}.values())

    def rules(self) -> tuple[str, ...]:
        """Return the names of the rules in the order of their application."""
        return tuple(dict.fromkeys(proof.rule.name for proof in self.tree() if proof.rule is not None))

    def order(self) -> tuple[float, int, str, tuple[TripleKey, ...]]:
        """Return what decides between two proofs of one fact: the surer, the shorter, then by name."""
        name = self.rule.name if self.rule is not None else ""
        return (-self.raw, self.steps, name, tuple(premise.key for premise in self.premises))


@dataclass(frozen=True, slots=True)
class ScoredProof:
    """A proof with its score, and the factors that make the score of its raw one, in their order."""

    proof: Proof
    factors: tuple[tuple[str, float], ...]
    score: float


@dataclass(frozen=True, slots=True)
class Closure:
    """What follows around a question. `standings` are the proofs to show, best first.

    `contradicting` are stated facts that disagree with a shown one on a functional relation, and `rivals` says who
    disagrees with whom, both ways. `bounded` tells that a bound other than time held something back.
    """

    seeds: tuple[StatedFact, ...]
    derived: tuple[Proof, ...]
    standings: tuple[ScoredProof, ...]
    contradicting: tuple[ScoredProof, ...]
    rivals: Mapping[TripleKey, tuple[TripleKey, ...]]
    facts: int
    bounded: bool
    exhausted: bool


def derive_closure(
    store: Facts, query: QueryTerms, rules: Sequence[Rule], limits: Limits, expired: Expired
) -> Closure:
    """Return what follows from the facts around what the question names, with proofs.

    When `expired` says that the time has run out, return what there is.
    """
    around = explore(store, query, limits.reach, expired)
    derived, bounded, exhausted = _derive(around, query, rules, limits, expired)
    standings = _rank(derived, around, query, limits)
    others, rivals = _find_rivals(store, standings, limits)
    return Closure(
        around.seeds,
        derived,
        standings,
        _by_score(_stand(Proof.of(fact), around, query, limits) for fact in others),
        rivals,
        len(around.facts),
        around.bounded or bounded,
        around.exhausted or exhausted,
    )


# ------------------------------------------------------------------------------------------- derivation


def _derive(
    around: Neighbourhood, query: QueryTerms, rules: Sequence[Rule], limits: Limits, expired: Expired
) -> tuple[tuple[Proof, ...], bool, bool]:
    """Return what follows within `limits.depth` rounds, whether a bound held something back, and if time ran out.

    Of more than `limits.derived` facts the most wanted ones are kept. A stated fact is never derived again, and a
    fact about a thing and itself says nothing.
    """
    joins = _Joins(around, rules)

    def wish(proof: Proof) -> tuple[float, int, float, TripleKey]:
        detour = around.detour(proof.key, proof.between)
        return (detour, -_focus(proof, around, query, limits), -proof.raw, proof.key)

    derived: dict[TripleKey, Proof] = {}
    delta: Mapping[TripleKey, Proof] = joins.base
    exhausted = False
    for _ in range(limits.depth):
        found, exhausted = joins.run_round(derived, delta, expired)
        better = {
            key: proof for key, proof in found.items() if key not in derived or proof.order() < derived[key].order()
        }
        derived = derived | better
        if len(derived) > limits.derived:
            joins.bounded = True
            derived = {proof.key: proof for proof in sorted(derived.values(), key=wish)[: limits.derived]}
        delta = {key: proof for key, proof in better.items() if key in derived}
        if exhausted or not delta:
            break
    return tuple(derived[key] for key in sorted(derived)), joins.bounded, exhausted


class _Joins:
    """The stated facts by (relation, end), and one round of rules over them and what was derived."""

    def __init__(self, around: Neighbourhood, rules: Sequence[Rule]) -> None:
        self._around, self._rules = around, rules
        self.base = {key: Proof.of(fact) for key, fact in around.facts.items()}
        self.bounded = False
        self._stated = _by_place(self.base.values())
        self._derived: dict[tuple[str, int, str], list[Proof]] = {}
        self._known: Mapping[TripleKey, Proof] = {}
        self._delta: Mapping[TripleKey, Proof] = {}

    def run_round(
        self, derived: Mapping[TripleKey, Proof], delta: Mapping[TripleKey, Proof], expired: Expired
    ) -> tuple[dict[TripleKey, Proof], bool]:
        """Return the best proof of each head that at least one changed fact makes, and whether the time ran out."""
        self._derived, self._known, self._delta = _by_place(derived.values()), derived, delta
        changed: dict[str, list[Proof]] = {}
        for proof in delta.values():
            changed.setdefault(proof.key[1], []).append(proof)
        found: dict[TripleKey, Proof] = {}
        for rule in self._rules:
            # In the first round everything is new: taking the first premise from it covers all.
            for place in range(1 if delta is self.base else len(rule.body)):
                for proof in changed.get(rule.body[place].relation, ()):
                    if expired():
                        return found, True
                    self._apply(rule, place, proof, found)
        return found, False

    def _apply(self, rule: Rule, place: int, proof: Proof, found: dict[TripleKey, Proof]) -> None:
        """Complete a rule from one premise, and keep what is better than what was found."""
        start: list[Proof | None] = [None] * len(rule.body)
        bound = _bind({}, rule.body[place], proof.key)
        if bound is None:
            return
        start[place] = proof
        for premises, binding in self._complete(rule, start, bound, place):
            head = (binding[rule.head.subject], rule.head.relation, binding[rule.head.object])
            if head[0] == head[2] or head in self.base:
                continue
            raw = math.prod(premise.raw for premise in premises) * rule.weight
            present = found.get(head) or self._known.get(head)
            if raw > 0.0 and (present is None or raw >= present.raw):
                nodes = frozenset((head,)).union(*(premise.nodes for premise in premises))
                made = Proof(head, raw, nodes, rule, premises)
                if present is None or made.order() < present.order():
                    found[head] = made

    def _complete(
        self, rule: Rule, chosen: list[Proof | None], binding: Mapping[str, str], changed: int
    ) -> Iterator[tuple[tuple[Proof, ...], Mapping[str, str]]]:
        """Yield every way to fill the open premises, all different; none before the changed one has changed too."""
        open_places = [i for i, proof in enumerate(chosen) if proof is None]
        if not open_places:
            yield tuple(proof for proof in chosen if proof is not None), binding
            return
        place = max(open_places, key=lambda i: (len({rule.body[i][0], rule.body[i][2]} & binding.keys()), -i))
        taken = {proof.key for proof in chosen if proof is not None}
        for proof in self._lookup(rule.body[place], binding):
            if proof.key in taken or (place < changed and proof.key in self._delta):
                continue
            bound = _bind(binding, rule.body[place], proof.key)
            if bound is not None:
                filled = [*chosen[:place], proof, *chosen[place + 1 :]]
                yield from self._complete(rule, filled, bound, changed)

    def _lookup(self, pattern: Pattern, binding: Mapping[str, str]) -> Iterable[Proof]:
        subject, other = binding.get(pattern.subject), binding.get(pattern.object)
        if subject is not None and other is not None:
            key = (subject, pattern.relation, other)
            proof = self.base.get(key) or self._known.get(key)
            return () if proof is None else (proof,)
        if subject is not None:
            place = (pattern.relation, 0, subject)
        elif other is not None:
            place = (pattern.relation, 2, other)
        else:
            return ()  # a rule's premises share variables; language.rules refuses others
        return (*self._best(place), *self._derived.get(place, ()))

    def _best(self, place: tuple[str, int, str]) -> list[Proof]:
        """Return the stated facts at one place; of very many those between named things, then the surest."""
        found = self._stated.get(place, [])
        if len(found) > _JOINED:
            self.bounded = True
            found.sort(key=lambda proof: (self._around.detour(proof.key), -proof.raw, proof.key))
            del found[_JOINED:]
        return found


def _by_place(proofs: Iterable[Proof]) -> dict[tuple[str, int, str], list[Proof]]:
    """Return proofs by relation and end."""
    places: dict[tuple[str, int, str], list[Proof]] = {}
    for proof in proofs:
        subject, relation, other = proof.key
        places.setdefault((relation, 0, subject), []).append(proof)
        places.setdefault((relation, 2, other), []).append(proof)
    return places


def _bind(binding: Mapping[str, str], pattern: Pattern, key: TripleKey) -> dict[str, str] | None:
    """Return the binding with the pattern's variables set, or None when they stand for something else."""
    bound = dict(binding)
    for variable, symbol in ((pattern.subject, key[0]), (pattern.object, key[2])):
        if bound.setdefault(variable, symbol) != symbol:
            return None
    return bound


# ---------------------------------------------------------------------------------------------- ranking


def _focus(proof: Proof, around: Neighbourhood, query: QueryTerms, limits: Limits) -> int:
    """Return how much a proof is about the question: its ends, its relation, whether it is derived, its seeds."""
    preferred = 2 if proof.key[1] in limits.preferred else 0
    derived = 3 if proof.rule is not None else 0
    return query.focus(proof.key) + preferred + derived + (not around.seed_keys.isdisjoint(proof.nodes))


def _stand(proof: Proof, around: Neighbourhood, query: QueryTerms, limits: Limits) -> ScoredProof:
    """Return a proof with its score: raw · step penalty · goal bonus · seed bonus."""
    factors = [("step penalty", 1.0 / (1.0 + limits.step_penalty * proof.steps))]
    if query.matches(proof.key[0]) or query.matches(proof.key[2]):
        factors.append(("goal bonus", limits.goal_bonus))
    if not around.seed_keys.isdisjoint(proof.nodes):
        factors.append(("seed bonus", limits.seed_bonus))
    return ScoredProof(proof, tuple(factors), math.prod((proof.raw, *(factor for _, factor in factors))))


def _rank(
    derived: Iterable[Proof], around: Neighbourhood, query: QueryTerms, limits: Limits
) -> tuple[ScoredProof, ...]:
    """Return the proofs to show, best score first: derived ones, or the seeds when nothing follows from them.

    Derived proofs are ranked apart from stated facts: those have the higher raw scores, and a busy symbol has many.
    Once a proof joins what the question names, those that lead off the way between are left out.
    """
    enough = [
        standing for proof in derived if (standing := _stand(proof, around, query, limits)).score >= limits.min_score
    ]
    if not enough:
        seeds = [_stand(Proof.of(seed), around, query, limits) for seed in around.seeds]
        return _by_score([standing for standing in seeds if standing.score >= limits.min_score])

    detours = {standing.proof.key: around.detour(standing.proof.key, standing.proof.between) for standing in enough}
    focus = {standing.proof.key: _focus(standing.proof, around, query, limits) for standing in enough}
    if any(around.joins(standing.proof.key) for standing in enough):
        enough = [standing for standing in enough if math.isfinite(detours[standing.proof.key])]
    enough.sort(key=lambda s: (detours[s.proof.key], -focus[s.proof.key], -s.proof.raw, s.proof.key))
    enough = enough[: limits.proofs]
    enough.sort(key=lambda s: -focus[s.proof.key])  # stable: detours still decide between equals
    return _by_score(enough[: limits.focused])


def _by_score(standings: Iterable[ScoredProof]) -> tuple[ScoredProof, ...]:
    return tuple(sorted(standings, key=lambda s: (-s.score, s.proof.steps, s.proof.key)))


def _find_rivals(
    store: Facts, standings: Sequence[ScoredProof], limits: Limits
) -> tuple[list[StatedFact], dict[TripleKey, tuple[TripleKey, ...]]]:
    """Return what is stated against a shown fact on a functional relation, and who disagrees with whom."""
    shown = {key for standing in standings for key in standing.proof.nodes if key[1] in limits.functional}
    if not shown:
        return [], {}
    found = store.about(sorted({key[0] for key in shown}), limits.reach.fan_out)
    others = [fact for fact in found if any(_disagree(fact.key, key) for key in shown) and fact.key not in shown]
    keys = sorted(shown | {fact.key for fact in others})
    rivals = {key: tuple(rival for rival in keys if _disagree(key, rival)) for key in keys}
    return others, {key: against for key, against in rivals.items() if against}


def _disagree(one: TripleKey, other: TripleKey) -> bool:
    return one[:2] == other[:2] and one[2] != other[2]


# ---------------------------------------------------------------------------------------------- drawing


def fact_text(key: TripleKey) -> str:
    """Return a fact in words."""
    return " ".join(key)


def source_text(fact: StatedFact) -> str:
    """Return who states a fact; of many sources the first few."""
    further = len(fact.sources) - _SHOWN_SOURCES
    return ", ".join(fact.sources[:_SHOWN_SOURCES]) + (f" and {further} more" if further > 0 else "")
