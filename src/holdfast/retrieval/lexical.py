"""Find by words: fielded BM25 (C4). The store proposes, one kernel scores."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from holdfast.kernels import bm25
from holdfast.retrieval.strategy import kind_of_store
from holdfast.settings import Settings
from holdfast.store.contract import LexicalEvidence, LexicalQuery, Store
from holdfast.types import (
    FIELDS,
    Budget,
    Contribution,
    Deadline,
    QueryProfile,
    RetrievalResult,
    StrategyCandidate,
    Unit,
    View,
)

_TOPIC = FIELDS.index("topic")
# "See also E0303" mentions an error; the page of that name explains it. Of .5 to 1, this puts the page first.
_MENTIONED = 0.75


class LexicalStrategy:
    """BM25 over seven fields, with a boost for the roles the question's act prefers."""

    id = "lexical"

    def __init__(self, settings: Settings) -> None:
        self._settings = settings.lexical
        self._weights = tuple(settings.lexical.weights[name] for name in FIELDS)

    def retrieve(
        self, query: QueryProfile, view: View, store: Store, budget: Budget, deadline: Deadline
    ) -> RetrievalResult:
        """See `Strategy.retrieve`."""
        wanted = LexicalQuery(
            terms=query.terms,
            weights=self._weights,
            k1=self._settings.k1,
            b=self._settings.b,
            boosted_roles=query.needed_roles,
            role_boost=self._settings.role_boost,
        )
        proposal = store.lexical_candidates(view, wanted, budget.max_candidates, deadline)
        evidence = store.lexical_evidence(view, query.terms, proposal.ids)
        scores = self._scores(query, evidence)
        order = sorted(range(len(scores)), key=lambda i: (-scores[i], evidence.ids[i]))
        order = [i for i in order[: budget.max_candidates] if scores[i] > 0.0]
        units = store.units(view, [evidence.ids[i] for i in order])
        best = float(scores[order[0]]) if order else 0.0
        # Another process may have erased a unit between proposal and reading.
        found = [(i, units[evidence.ids[i]]) for i in order if evidence.ids[i] in units]
        candidates = tuple(self._candidate(query, evidence, i, float(scores[i]), best, unit) for i, unit in found)
        return RetrievalResult(self.id, candidates, deadline.elapsed_ms(), proposal.exhausted, best or 1.0)

    def score(
        self, query: QueryProfile, view: View, store: Store, ids: Sequence[str], *, explain: bool = True
    ) -> dict[str, StrategyCandidate]:
        """See `Strategy.score`. Normalised by the best of `ids`, since it does not see the rest; explained."""
        evidence = store.lexical_evidence(view, query.terms, ids)
        scores = self._scores(query, evidence)
        units = store.units(view, evidence.ids)
        best = float(scores.max(initial=0.0))
        found = [(i, units[unit_id]) for i, unit_id in enumerate(evidence.ids) if unit_id in units]
        trees = {i: self._explain(query, evidence, i, unit) for i, unit in found} if explain else {}
        return {
            unit.id: self._candidate(query, evidence, i, float(scores[i]), best, unit, trees.get(i))
            for i, unit in found
        }

    def _scores(self, query: QueryProfile, evidence: LexicalEvidence) -> NDArray[np.float64]:
        boosted = [role in query.needed_roles for role in evidence.roles]
        return bm25.scores(
            evidence.tf,
            evidence.lengths,
            evidence.idfs,
            evidence.averages,
            np.array(self._weights, dtype=np.float64),
            np.where(boosted, self._settings.role_boost, 1.0),
            self._settings.k1,
            self._settings.b,
        )

    def _candidate(
        self,
        query: QueryProfile,
        evidence: LexicalEvidence,
        row: int,
        raw: float,
        best: float,
        unit: Unit,
        tree: Contribution | None = None,
    ) -> StrategyCandidate:
        matched = evidence.matched[row]
        notes = (self.id, *(f"matched: {term}" for term, yes in zip(query.terms, matched, strict=True) if yes))
        normalized = min(raw / best, 1.0) if best > 0.0 else 0.0
        where, coverage = kind_of_store(unit), evidence.coverage[row]
        exact = _identified(query, evidence, row, unit)
        return StrategyCandidate(unit.id, where, raw, normalized, unit, notes, tree, coverage, exact)

    def _explain(self, query: QueryProfile, evidence: LexicalEvidence, row: int, unit: Unit) -> Contribution:
        """Return the raw score as the tree of C4; what a term does not touch adds 0 and is left out."""
        fields: list[Contribution] = []
        for f, name in enumerate(FIELDS):
            parts = [
                self._explain_term(term, evidence, row, f, t)
                for t, term in enumerate(query.terms)
                if evidence.tf[row, f, t]
            ]
            if parts and self._weights[f]:
                words = Contribution.of("words", "sum", *parts)
                fields.append(
                    Contribution.of(f"field {name}", "product", Contribution("field weight", self._weights[f]), words)
                )
        boost = self._settings.role_boost if unit.role in query.needed_roles else 1.0
        matches = Contribution.of("matches", "sum", *fields)
        return Contribution.of("bm25", "product", matches, Contribution("role boost", boost))

    def _explain_term(self, term: str, evidence: LexicalEvidence, row: int, f: int, t: int) -> Contribution:
        tf, length = float(evidence.tf[row, f, t]), float(evidence.lengths[row, f])
        average = float(evidence.averages[f])
        part = bm25.saturation(np.array([tf]), np.array([length]), average, self._settings.k1, self._settings.b)
        rarity = Contribution("idf", float(evidence.idfs[t]))
        return Contribution.of(f"term {term}", "product", rarity, Contribution("tf part", float(part[0])))


def _identified(query: QueryProfile, evidence: LexicalEvidence, row: int, unit: Unit) -> float | None:
    """Return the mean rarity of the question's identifiers that a unit holds; those that nobody holds do not count.

    A unit under a title that holds one is about it and counts in full. Years identify what a document tells; when a
    turn was said is known without words.
    """
    exact = (*query.identifiers, *query.years) if unit.author == "document" else query.identifiers
    places = [place for place, term in enumerate(query.terms) if term in exact and evidence.df[place]]
    if not places:
        return None
    held = [1.0 if evidence.tf[row, _TOPIC, place] else _MENTIONED * evidence.matched[row][place] for place in places]
    return sum(float(evidence.rarities[place]) * share for place, share in zip(places, held, strict=True)) / len(
        places
    )
